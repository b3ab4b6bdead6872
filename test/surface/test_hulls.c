/* The union of hulls: pruning changes nothing outside, flat layers are flat, crowds and nonsense do
 * no harm. */
#include "surface/drops.h"
#include "surface/hulls.h"

/* From 1/8 at one end to 1/64 at the other. */
static double graded(un_vec3 x)
{
    return 0.125 * pow(2, -3 * x.x);
}

static bool joined(const drops *d, int64_t i, int64_t j, double reach)
{
    double dx = d->x[0][i] - d->x[0][j], dy = d->x[1][i] - d->x[1][j], dz = d->x[2][i] - d->x[2][j];
    double l = reach * ((double)d->radius[i] + (double)d->radius[j]);
    return dx * dx + dy * dy + dz * dz <= l * l;
}

static double hull_of(const drops *d, int64_t i, int64_t j, int64_t k, un_vec3 at)
{
    un_vec3 x[3];
    double r[3];
    int64_t id[3] = {i, j, k};
    for (int c = 0; c < 3; c++) {
        x[c] = un_v3(d->x[0][id[c]], d->x[1][id[c]], d->x[2][id[c]]);
        r[c] = d->radius[id[c]];
    }
    return un_hull_distance(x, r, at);
}

/* Every triplet, every pair, every sphere. */
static double unpruned(const drops *d, double reach, un_vec3 at)
{
    double best = INFINITY;
    for (int64_t i = 0; i < d->count; i++) {
        best = fmin(best, hull_of(d, i, i, i, at));
        for (int64_t j = i + 1; j < d->count; j++) {
            if (!joined(d, i, j, reach)) continue;
            best = fmin(best, hull_of(d, i, j, j, at));
            for (int64_t k = j + 1; k < d->count; k++)
                if (joined(d, i, k, reach) && joined(d, j, k, reach))
                    best = fmin(best, hull_of(d, i, j, k, at));
        }
    }
    return best;
}

static un_vec3 point_around(uint64_t n, double reach)
{
    return un_v3(0.5 + reach * (un_random(n, 71) - 0.5), 0.5 + reach * (un_random(n, 72) - 0.5),
                 0.5 + reach * (un_random(n, 73) - 0.5));
}

static void check_unpruned(un_context *ctx, const drops *d, double reach, double scale)
{
    un_hulls_report report;
    un_hulls *hulls = drops_hulls(ctx, d, false, reach, &report);
    int outside = 0;
    for (uint64_t n = 0; n < 250; n++) {
        un_vec3 at = point_around(n, 1.6);
        double wanted = unpruned(d, reach, at), found = un_hulls_distance(hulls, at, 10);
        /* pruned hulls are among all hulls: never nearer */
        if (!(found > wanted - 1e-6)) fail_msg("%.9g nearer than %.9g", found, wanted);
        if (wanted < 1e-6) continue;
        check_near(found, wanted, 2e-6 * scale + 5e-7 * wanted); /* far: single precision */
        outside++;
    }
    assert_true(outside > 60);
    un_hulls_destroy(hulls);
}

static void pruning_keeps_the_outside(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (uint64_t seed = 0; seed < 12; seed++) {
        drops d = {0};
        double base = seed % 3 == 0 ? 0.05 : 0.1, ratio = seed % 2 ? 8 : 1;
        for (uint64_t n = 0; n < 45; n++) {
            double r = base * pow(ratio, -un_random(n, 5 + seed));
            un_vec3 x = un_v3(un_random(n, 100 + seed), un_random(n, 200 + seed),
                              seed % 4 == 0 ? 0.5 : un_random(n, 300 + seed));
            drops_add(&d, x, r, 0);
        }
        check_unpruned(ctx, &d, 2, base);
        drops_free(&d);
    }
    check_context_end(ctx);
}

/* Lattices put many particles into one plane, on one line, at the limit of being joined. */
static void pruning_keeps_lattices(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int kind = 0; kind < 4; kind++) {
        drops d = {0};
        int n = kind == 0 ? 4 : kind == 1 ? 7 : kind == 2 ? 3 : 40;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < (kind == 3 ? 1 : n); j++)
                for (int k = 0; k < (kind == 0 || kind == 2 ? n : 1); k++)
                    drops_add(&d, un_v3(0.1 + 0.125 * i, 0.2 + 0.125 * j, 0.5 + 0.125 * k), 0.0625,
                              0);
        if (kind == 2) drops_add(&d, un_v3(0.3, 0.8, 0.6), 0.25, 0);
        check_unpruned(ctx, &d, 2, 0.0625);
        drops_free(&d);
    }
    check_context_end(ctx);
}

/* Particles of many sizes, all tangent to one plane from below: the surface is that plane. */
static void unjittered_sizes_are_flat(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    drops d = {0};
    drops_fill(&d, un_v3(0, 0, 0), 1, 0.5, graded, 0, 1);
    un_hulls_report report;
    un_hulls *hulls = drops_hulls(ctx, &d, true, 2, &report);
    double worst = 0;
    for (uint64_t n = 0; n < 4000; n++) {
        un_vec3 at = un_v3(0.15 + 0.7 * un_random(n, 1), 0.5, 0.15 + 0.7 * un_random(n, 2));
        worst = fmax(worst, fabs(un_hulls_distance(hulls, at, 1)));
        at.y = 0.52;
        worst = fmax(worst, fabs(un_hulls_distance(hulls, at, 1) - 0.02));
    }
    /* in smallest radii */
    check_below(worst * 128, 2e-5);
    un_hulls_destroy(hulls);
    drops_free(&d);
    check_context_end(ctx);
}

/* Depths that are not given are measured: deep inside as deep as is asked for, near the surface the
 * distance to it. */
static void depths_are_found(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    drops d = {0};
    drops_fill(&d, un_v3(0, 0, 0), 1, 0.5, graded, 0, 1);
    un_hulls *hulls = drops_hulls(ctx, &d, false, 2, NULL);
    int deep = 0, middle = 0;
    for (int64_t q = 0; q < d.count; q++) {
        double r = d.radius[q], edge = 0.5;
        for (int a = 0; a < 3; a++)
            if (a != 1) edge = fmin(edge, fmin(d.x[a][q], 1 - d.x[a][q]));
        edge = fmin(edge, d.x[1][q]);
        double wanted = fmax(-fmin(edge, -d.depth[q]), -8.5 * r);
        if (edge < 0.1) continue;
        check_near(hulls->depth[q], wanted, 0.3 * r);
        deep += wanted == -8.5 * r;
        middle += wanted > -8.5 * r && wanted < -1.1 * r;
    }
    assert_true(deep > 50 && middle > 500);
    un_hulls_destroy(hulls);
    drops_free(&d);
    check_context_end(ctx);
}

static void nonsense_does_no_harm(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int kind = 0; kind < 8; kind++) {
        drops d = {0};
        int64_t n = kind == 0 ? 0 : kind == 1 ? 1 : 2000;
        for (int64_t q = 0; q < n; q++) {
            uint64_t u = (uint64_t)q;
            un_vec3 x = un_v3(un_random(u, 1), un_random(u, 2), un_random(u, 3));
            double r = 0.02, depth = -0.01;
            if (kind == 2) x = un_v3(0.5, 0.5, 0.5); /* all in one place */
            if (kind == 3) x = un_mad(un_v3(0.5, 0.5, 0.5), x, 1e-5);
            if (kind == 4 && q % 5 == 0) x.y = NAN;
            if (kind == 4 && q % 7 == 0) x.z = INFINITY;
            if (kind == 4 && q % 3 == 0) r = q % 2 ? NAN : -1;
            if (kind == 4 && q % 11 == 0) depth = q % 2 ? NAN : -INFINITY;
            if (kind == 5) r = 0;
            if (kind == 6) r = q % 10 ? 1e-4 : 1; /* giants among dust */
            if (kind == 7) r = 1e-30, x = un_scale(x, 1e-30);
            drops_add(&d, x, r, depth);
            if (kind == 4) d.flags[q] = (uint8_t)(q % 13 == 0);
        }
        for (int deep = 0; deep < 2; deep++) {
            un_hulls_report report;
            un_hulls *hulls = drops_hulls(ctx, &d, deep, 2, &report);
            double distance = un_hulls_distance(hulls, un_v3(0.5, 0.5, 3.5), 7);
            if (kind == 0) assert_true(distance == 7);
            if (kind == 1) assert_int_equal(report.sphere_count, 1);
            if (kind == 2 || kind == 3) check_near(distance, 2.98, 1e-4);
            assert_false(isnan(distance));
            assert_true(un_hulls_distance(hulls, un_v3(NAN, 0, 0), 7) == 7);
            un_hulls_destroy(hulls);
        }
        drops_free(&d);
    }
    check_context_end(ctx);
}

/* Lonely ones are spheres, joined to nothing. */
static void ballistic_ones_stay_alone(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    drops d = {0};
    drops_add(&d, un_v3(0, 0, 0), 0.1, 0);
    drops_add(&d, un_v3(0.3, 0, 0), 0.1, 0);
    un_hulls_report report;
    un_hulls *hulls = drops_hulls(ctx, &d, true, 2, &report);
    assert_int_equal(report.cone_count, 1);
    check_below(un_hulls_distance(hulls, un_v3(0.15, 0, 0), 1), 0);
    un_hulls_destroy(hulls);
    for (int i = 0; i < 2; i++) { /* so is one that has landed and is not yet inside */
        d.flags[0] = i ? UN_PARTICLE_LANDED : UN_PARTICLE_BALLISTIC;
        hulls = drops_hulls(ctx, &d, true, 2, &report);
        assert_int_equal(report.sphere_count, 2);
        /* a lonely one is a sphere of its volume */
        check_near(un_hulls_distance(hulls, un_v3(0.15, 0, 0), 1), 0.15 - 0.12407, 1e-6);
        check_near(un_hulls_distance(hulls, un_v3(0.25, 0, 0), 1), -0.05, 1e-7);
        un_hulls_destroy(hulls);
    }
    drops_free(&d);
    check_context_end(ctx);
}

static un_status create_once(un_context *ctx, void *arg)
{
    drops *d = arg;
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_groups groups;
    un_hulls *hulls = NULL;
    un_status status =
        un_groups_build(ctx, &arena, &groups, (const double *const[3]){d->x[0], d->x[1], d->x[2]},
                        d->radius, d->count);
    un_hulls_def def = {.groups = &groups, .radius = d->radius, .reach = 2};
    if (status == UN_OK) status = un_hulls_create(ctx, &arena, &def, &hulls, NULL);
    un_hulls_destroy(hulls);
    un_arena_free(&arena);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    drops d = {0};
    drops_fill(&d, un_v3(0, 0, 0), 0.25, 0.1875, graded, 0.1, 1);
    check_allocation_failures(create_once, &d, 200);
    drops_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pruning_keeps_the_outside), cmocka_unit_test(pruning_keeps_lattices),
        cmocka_unit_test(unjittered_sizes_are_flat), cmocka_unit_test(depths_are_found),
        cmocka_unit_test(nonsense_does_no_harm),     cmocka_unit_test(ballistic_ones_stay_alone),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests_name("hulls", tests, NULL, NULL);
}
