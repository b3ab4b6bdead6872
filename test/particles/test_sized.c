/* Particles of many sizes: the store, seeding on leaves. */
#include "swarm.h"

/* ---- the store ---- */

static void fill(un_context *ctx, un_particles *p, int32_t count)
{
    check_ok(ctx, un_particles_reserve(ctx, p, count));
    p->count = count;
    for (int32_t q = 0; q < count; q++) {
        for (int a = 0; a < 3; a++) {
            p->x[a][q] = q + 0.1 * a;
            p->v[a][q] = -q - 0.1 * a;
        }
        p->volume[q] = (float)(2 * q);
        p->flags[q] = (uint8_t)(q % 7);
        if (p->size) p->size[q] = (float)(3 * q);
    }
}

static void check_whole(const un_particles *p, int32_t q, int32_t was)
{
    for (int a = 0; a < 3; a++)
        assert_true(p->x[a][q] == was + 0.1 * a && p->v[a][q] == -was - 0.1 * a);
    assert_true(p->volume[q] == (float)(2 * was) && p->flags[q] == was % 7);
    if (p->sized) assert_true(p->size[q] == (float)(3 * was));
}

static void sizes_go_where_their_particles_go(void **state)
{
    (void)state;
    const int32_t n = 50000;
    int32_t *order = malloc((size_t)n * sizeof *order);
    uint8_t *keep = malloc((size_t)n);
    for (int sized = 0; sized < 2; sized++)
        for (int32_t threads = 1; threads <= 3; threads++) {
            un_context *ctx = check_context_threads(threads);
            un_particles p = {.sized = sized};
            fill(ctx, &p, n / 2);
            assert_true((p.size != NULL) == sized);
            fill(ctx, &p, n); /* growing */
            for (int32_t q = 0; q < n; q++) order[q] = (int32_t)((q * 7919LL + 13) % n);
            un_particles_reorder(ctx, &p, order);
            assert_int_equal(p.count, n);
            for (int32_t q = 0; q < n; q++) check_whole(&p, q, order[q]);
            un_particles_reorder(ctx, &p, order);
            for (int32_t q = 0; q < n; q++) check_whole(&p, q, order[order[q]]);
            fill(ctx, &p, n);
            for (int32_t q = 0; q < n; q++) keep[q] = q % 3 != 1;
            un_particles_filter(&p, keep);
            for (int32_t q = 0; q < p.count; q++) check_whole(&p, q, q / 2 * 3 + q % 2 * 2);
            un_particles_take(ctx, &p, (const int32_t[]){5, 0, 2}, 3);
            assert_int_equal(p.count, 3);
            check_whole(&p, 0, 8);
            check_whole(&p, 1, 0);
            check_whole(&p, 2, 3);
            un_particles_take(ctx, &p, NULL, 0);
            assert_int_equal(p.count, 0);
            un_particles_free(ctx, &p);
            un_particles none = {.sized = sized};
            un_particles_reorder(ctx, &none, NULL);
            un_particles_free(ctx, &none);
            check_context_end(ctx);
        }
    free(order);
    free(keep);
}

/* ---- seeding on leaves ---- */

static double graded(un_vec3 x)
{
    return 0.03 + 0.5 * fabs(x.y - 0.6);
}
static double even(un_vec3 x)
{
    (void)x;
    return 1.0 / 16;
}

static void seed(tank *t, const un_octree *tree, const un_shape *shape, un_particles *p,
                 double *volume)
{
    un_seed_leaves_def def = {
        .tree = tree, .shape = shape, .walls = t->walls, .velocity = un_v3(1, 2, 3), .stream = 5};
    int32_t before = p->count;
    check_ok(t->ctx, un_particles_seed_leaves(t->ctx, p, &def, volume));
    double sum = 0;
    for (int32_t q = before; q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q);
        check_below(0, un_walls_distance_exact(t->walls, x));
        check_below(un_shape_distance(shape, x), 0.05 * p->size[q]);
        assert_true(v.x == 1 && v.y == 2 && v.z == 3 && p->flags[q] == 0);
        double whole = pow(0.5 * (double)p->size[q], 3);
        assert_true(p->volume[q] > 0 && p->volume[q] <= (float)whole * 1.00001f);
        sum += p->volume[q];
    }
    check_near(*volume, sum, 1e-12);
}

/* Sizes and numbers are those of the leaves; volumes those of the shapes, sides and solids cut. */
static void leaves_are_filled_to_their_volume(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        tank t;
        un_particles p = {.sized = true};
        un_vec3 size = cut ? un_v3(0.9, 0.77, 0.63) : un_v3(1, 1, 1);
        tank_begin(&t, 2, size, 16);
        if (cut) tank_solid(&t, tank_sphere(&t, un_v3(0.4, 0.3, 0.3), 0.17), un_v3(0, 0, 0));
        tank_build(&t);
        un_octree tree = leaves_make(size, 1, 6, graded);
        double height = cut ? 0.6237 : 0.6, volume;
        seed(&t, &tree, tank_box(&t, un_v3(-1, -1, -1), un_v3(2, height, 2)), &p, &volume);
        double expect = size.x * height * size.z - cut * 4.0 / 3 * UN_PI * pow(0.17, 3);
        check_near(volume / expect, 1, cut ? 6e-3 : 1e-3);
        /* every size present is a leaf's, and small ones are where small leaves are */
        for (int32_t q = 0; q < p.count; q++) {
            double level = log2((double)p.size[q]);
            check_near(level, round(level), 1e-6);
            double wanted = graded(un_particle_position(&p, q));
            check_below((double)p.size[q], 2 * wanted);
            check_below(fmin(wanted, 1) / 4, (double)p.size[q] + 1e-9);
        }
        assert_true(p.count > 5000);
        /* appends, at the same places for the same stream */
        int32_t first = p.count;
        seed(&t, &tree, tank_box(&t, un_v3(-1, -1, -1), un_v3(2, height, 2)), &p, &volume);
        assert_int_equal(p.count, 2 * first);
        for (int32_t q = 0; q < first; q++) assert_true(p.x[0][q] == p.x[0][q + first]);
        seed(&t, &tree, tank_box(&t, un_v3(3, 3, 3), un_v3(4, 4, 4)), &p, &volume);
        assert_int_equal(p.count, 2 * first);
        check_near(volume, 0, 0);
        leaves_free(&tree);
        un_particles_free(t.ctx, &p);
        tank_end(&t);
    }
}

/* On leaves of one size it is the lattice of the grid: as many, of the same volumes. */
static void even_leaves_are_seeded_as_a_grid(void **state)
{
    (void)state;
    tank t;
    un_particles p = {.sized = true}, onto = {0};
    double volume, expect;
    tank_begin(&t, 2, un_v3(1, 1, 1), 16);
    tank_build(&t);
    un_octree tree = leaves_make(un_v3(1, 1, 1), 1, 4, even);
    un_shape *ball = tank_sphere(&t, un_v3(0.52, 0.45, 0.61), 0.31);
    seed(&t, &tree, ball, &p, &volume);
    un_seed_def def = {.grid = &t.grid, .shape = ball, .walls = t.walls};
    check_ok(t.ctx, un_particles_seed(t.ctx, &onto, &def, &expect));
    assert_int_equal(p.count, onto.count);
    check_near(volume, expect, 1e-9);
    un_particles_free(t.ctx, &p);
    un_particles_free(t.ctx, &onto);
    leaves_free(&tree);
    tank_end(&t);
}

static void seeds_are_the_same_for_any_thread_count(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        tank t;
        un_particles p = {.sized = true};
        double volume;
        tank_begin(&t, threads, un_v3(1, 1, 1), 16);
        tank_build(&t);
        un_octree tree = leaves_make(un_v3(1, 1, 1), 1, 6, graded);
        seed(&t, &tree, tank_sphere(&t, un_v3(0.4, 0.5, 0.6), 0.3), &p, &volume);
        size_t bytes = (size_t)p.count * sizeof *first;
        if (!first) first = memcpy(malloc(bytes), p.x[1], bytes);
        assert_memory_equal(first, p.x[1], bytes);
        leaves_free(&tree);
        un_particles_free(t.ctx, &p);
        tank_end(&t);
    }
    free(first);
}

/* ---- memory ---- */

static un_status live_once(un_context *ctx, void *arg)
{
    tank *t = arg;
    un_particles p = {.sized = true};
    double volume;
    un_octree tree = leaves_make(un_v3(1, 1, 1), 1, 4, even);
    un_seed_leaves_def def = {.tree = &tree, .shape = t->solids[0].shape, .walls = t->walls};
    un_status status = un_particles_seed_leaves(ctx, &p, &def, &volume);
    leaves_free(&tree);
    un_particles_free(ctx, &p);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 1, un_v3(1, 1, 1), 6);
    tank_build(&t);
    t.solids[0].shape = tank_sphere(&t, un_v3(0.5, 0.5, 0.5), 0.3);
    check_allocation_failures(live_once, &t, 40);
    tank_end(&t);
}

/* Radii found eight at a time are those of one at a time, for any count and any volume. */
static void radii_are_half_the_spacing(void **state)
{
    (void)state;
    enum { MOST = 700 };
    float volume[MOST], radius[MOST + 1];
    for (int flat = 0; flat < 2; flat++) {
        for (int n = 0; n < MOST; n++) volume[n] = powf(10, (float)n / 10 - 35);
        for (int n = 0; n < MOST; n += 50) volume[n] = 0;
        for (int count = MOST - 9; count <= MOST; count++) {
            radius[count] = -1;
            un_particles_radii(radius, volume, count, flat);
            for (int n = 0; n < count; n++) {
                double v = volume[n], exact = 0.5 * (flat ? sqrt(v) : cbrt(v));
                check_near((double)radius[n], exact, 3e-7 * exact);
            }
            assert_true(radius[count] == -1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(radii_are_half_the_spacing),
        cmocka_unit_test(sizes_go_where_their_particles_go),
        cmocka_unit_test(leaves_are_filled_to_their_volume),
        cmocka_unit_test(even_leaves_are_seeded_as_a_grid),
        cmocka_unit_test(seeds_are_the_same_for_any_thread_count),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
