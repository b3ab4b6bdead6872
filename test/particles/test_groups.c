/* Groups: boxes that hold what they should, and near groups against brute force. */
#include "check.h"
#include "particles/particles.h"

typedef struct cloud {
    double *x[3];
    float *radius;
    int64_t count;
} cloud;

/* Around a wandering point, so that neighbours in the list are near each other; radii 1 to 64. */
static cloud cloud_make(int64_t count, double middle, double spread)
{
    cloud c = {.count = count};
    size_t room = (size_t)count + 1;
    for (int a = 0; a < 3; a++) c.x[a] = malloc(room * sizeof(double));
    c.radius = malloc(room * sizeof(float));
    double at[3] = {middle, -middle, 0};
    for (uint64_t q = 0; q < (uint64_t)count; q++) {
        for (uint64_t a = 0; a < 3; a++) {
            at[a] += 0.3 * spread * (un_random(q, a) - 0.5);
            c.x[a][q] = at[a] + 0.1 * spread * (un_random(q, 3 + a) - 0.5);
        }
        c.radius[q] = (float)(0.001 * spread * exp2(6 * un_random(q / 50, 7)));
    }
    return c;
}

static void cloud_free(cloud *c)
{
    for (int a = 0; a < 3; a++) free(c->x[a]);
    free(c->radius);
}

static double box_gap(un_box3 a, un_box3 b)
{
    un_vec3 d = un_max3(un_sub(a.min, b.max), un_sub(b.min, a.max));
    return un_length(un_max3(d, un_v3(0, 0, 0)));
}

static void build(un_context *ctx, un_arena *arena, un_groups *groups, const cloud *c)
{
    const double *const x[3] = {c->x[0], c->x[1], c->x[2]};
    check_ok(ctx, un_groups_build(ctx, arena, groups, x, c->radius, c->count));
}

static void check_near_groups(const un_groups *g, const cloud *c, un_box3 box, double reach,
                              double factor)
{
    int32_t *list = malloc((size_t)(g->group_count + 1) * sizeof *list);
    uint8_t *listed = calloc((size_t)g->group_count + 1, 1);
    int32_t count = un_groups_near(g, box, reach, factor, list, g->group_count);
    assert_true(count >= 0 && count <= g->group_count);
    for (int32_t n = 0; n < count; n++) {
        assert_true(list[n] >= 0 && list[n] < g->group_count && (!n || list[n] > list[n - 1]));
        listed[list[n]] = 1;
        /* not more than need be, but for the box's rounding */
        double ulp = 1.2e-7 * (fabs(box.max.x) + fabs(box.max.y) + fabs(box.max.z));
        double limit = reach + factor * (double)un_groups_radius(g, list[n]);
        check_below(box_gap(box, un_groups_bounds(g, list[n])), limit * (1 + 1e-5) + ulp + 1e-17);
    }
    for (int64_t q = 0; q < c->count; q++) {
        un_vec3 x = {c->x[0][q], c->x[1][q], c->x[2][q]};
        if (box_gap(box, (un_box3){x, x}) <= reach + factor * (double)c->radius[q])
            assert_true(listed[q / UN_GROUP]);
    }
    if (count > 0) { /* a list that is too short */
        int32_t part[4], room = count > 4 ? 4 : count - 1;
        assert_int_equal(un_groups_near(g, box, reach, factor, part, room), -1 - count);
        for (int32_t n = 0; n < room; n++) assert_int_equal(part[n], list[n]);
        assert_int_equal(un_groups_near(g, box, reach, factor, NULL, 0), -1 - count);
    }
    free(list);
    free(listed);
}

static void near_groups_are_those_of_brute_force(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4097};
    static const double middles[] = {0, 0.4, 3e4};
    un_context *ctx = check_context();
    for (size_t m = 0; m < 3; m++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            cloud c = cloud_make(counts[n], middles[m], 1);
            un_arena arena;
            un_groups g;
            un_arena_init(&arena, ctx);
            build(ctx, &arena, &g, &c);
            assert_int_equal(g.group_count, (counts[n] + 7) / 8);
            for (int64_t q = 0; q < c.count; q++) {
                un_vec3 x = {c.x[0][q], c.x[1][q], c.x[2][q]};
                check_near(box_gap(un_groups_bounds(&g, (int32_t)(q / 8)), (un_box3){x, x}), 0, 0);
                assert_true(un_groups_radius(&g, (int32_t)(q / 8)) >= c.radius[q]);
            }
            for (uint64_t k = 0; k < 60; k++) {
                int64_t q = (int64_t)(un_random(k, 90) * (double)c.count);
                un_vec3 x = {middles[m], -middles[m], 0};
                if (c.count) x = un_v3(c.x[0][q], c.x[1][q], c.x[2][q]);
                double size = k % 3 ? 0.2 * un_random(k, 91) : 0;
                un_box3 box = {un_mad(x, un_v3(1, 0.3, 2), -size),
                               un_mad(x, un_v3(0.4, 1, 0), size)};
                double reach = k % 4 ? exp2(-10 * un_random(k, 92)) : 0;
                check_near_groups(&g, &c, box, reach, k % 5 ? 3 * un_random(k, 93) : 0);
                /* a point that one particle only just reaches */
                if (!c.count || k % 4 == 0) continue;
                un_vec3 way = un_normalize(
                    un_v3(un_random(k, 94) - 0.5, un_random(k, 95) - 0.5, un_random(k, 96) - 0.5));
                reach *= 0.01;
                x = un_mad(x, way, (reach + 2 * (double)c.radius[q]) * (1 - 1e-9));
                check_near_groups(&g, &c, (un_box3){x, x}, reach, 2);
            }
            /* everything, and a box of all space */
            un_vec3 all = {INFINITY, INFINITY, INFINITY};
            assert_int_equal(un_groups_near(&g, (un_box3){un_scale(all, -1), all}, 0, 0, NULL, 0),
                             g.group_count ? -1 - g.group_count : 0);
            assert_int_equal(
                un_groups_near(&g, (un_box3){{0, 0, 0}, {0, 0, 0}}, INFINITY, 1, NULL, 0),
                g.group_count ? -1 - g.group_count : 0);
            un_arena_free(&arena);
            cloud_free(&c);
        }
    check_context_end(ctx);
}

static void boxes_are_the_same_for_any_thread_count(void **state)
{
    (void)state;
    cloud c = cloud_make(300007, 0.5, 0.01);
    un_group_box *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        un_arena arena;
        un_groups g;
        un_arena_init(&arena, ctx);
        build(ctx, &arena, &g, &c);
        assert_int_equal(g.level_first[g.level_count] - g.level_first[g.level_count - 1], 1);
        size_t bytes = (size_t)g.level_first[g.level_count] * sizeof *first;
        if (!first) first = memcpy(malloc(bytes), g.boxes, bytes);
        assert_memory_equal(first, g.boxes, bytes);
        un_arena_free(&arena);
        check_context_end(ctx);
    }
    free(first);
    cloud_free(&c);
}

static un_status build_once(un_context *ctx, void *arg)
{
    const cloud *c = arg;
    un_arena arena;
    un_groups g;
    const double *const x[3] = {c->x[0], c->x[1], c->x[2]};
    un_arena_init(&arena, ctx);
    un_status status = un_groups_build(ctx, &arena, &g, x, c->radius, c->count);
    un_arena_free(&arena);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    cloud c = cloud_make(100, 0, 1);
    check_allocation_failures(build_once, &c, 10);
    cloud_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_groups_are_those_of_brute_force),
        cmocka_unit_test(boxes_are_the_same_for_any_thread_count),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
