/* Position correction of particles of many sizes. */
#include "swarm.h"

static un_vec3 moved(const un_particles *p, const double *before, int32_t q)
{
    return un_v3(p->x[0][q] - before[q], p->x[1][q] - before[p->count + q],
                 p->x[2][q] - before[2 * p->count + q]);
}

/* ---- the sum ---- */

/* The move of particle i by the formula, pair by pair; size: the sum of its parts' lengths. */
static un_vec3 formula(const swarm *s, const double *at, int32_t i, double *size)
{
    const un_particles *p = &s->p;
    int32_t n = p->count;
    un_vec3 x = {at[i], at[n + i], at[2 * n + i]}, sum = {0, 0, 0};
    double ri = s->radius[i], vi = p->volume[i];
    *size = 0;
    for (int32_t j = 0; j < n; j++) {
        un_vec3 d = un_sub(x, un_v3(at[j], at[n + j], at[2 * n + j]));
        double rj = s->radius[j], d0 = ri + rj - 0.04 * fmin(ri, rj), vj = p->volume[j];
        double length = un_length(d);
        if (j == i || length >= d0) continue;
        double push = 0.5 * (d0 - length) * vj / (vi + vj);
        sum = un_mad(sum, d, push / length);
        *size += push;
    }
    return sum;
}

/* Two that overlap, in a step: at rest they stay, slow ones part by a share of their way, fast ones
 * as if there were no such bound. */
static void still_water_is_let_be(void **state)
{
    (void)state;
    const double speed[3] = {0, 0.1, 100}, most[3] = {0, 0.3 * 0.1 * 0.01, 0.25 * 0.078};
    for (int i = 0; i < 3; i++) {
        swarm s;
        swarm_begin(&s, 1);
        tank_build(&s.tank);
        swarm_make(&s, 2);
        swarm_place(&s, 0, un_v3(0.49, 0.5, 0.5), 0.05);
        swarm_place(&s, 1, un_v3(0.51, 0.5, 0.5), 0.05);
        swarm_look(&s, NULL);
        for (int32_t q = 0; q < 2; q++) s.p.v[1][q] = speed[i];
        double *before = swarm_copy(&s.p);
        un_correct_def def = swarm_correct_def(&s);
        def.dt = 0.01;
        check_ok(s.tank.ctx, un_particles_correct_sized(s.tank.ctx, &s.arena, &s.p, &def));
        check_near(moved(&s.p, before, 0).x, -most[i], 1e-3 * most[i]);
        check_near(moved(&s.p, before, 1).x, most[i], 1e-3 * most[i]);
        free(before);
        swarm_end(&s);
    }
}

/* Radii over a factor of 16, as crowded as liquid and half as much again; then thousands of small
 * ones under one that touches them all. */
static void moves_are_those_of_the_formula(void **state)
{
    (void)state;
    for (int giant = 0; giant < 2; giant++) {
        swarm s;
        swarm_begin(&s, 2);
        tank_build(&s.tank);
        swarm_make(&s, giant ? 6001 : 1501);
        un_particles *p = &s.p;
        for (int32_t q = 0; q < p->count; q++) {
            un_vec3 x = un_mad(un_v3(0.3, 0.3, 0.3), swarm_point((uint64_t)q, 1), 0.4);
            swarm_place(&s, q, x, 0.005 * exp2(4 * pow(un_random((uint64_t)q, 4), 3)));
        }
        if (giant) swarm_place(&s, 0, un_v3(0.45, 0.5, 0.5), 0.4);
        swarm_sort(&s, 1.0 / 64);
        swarm_look(&s, NULL);
        double *before = swarm_copy(p);
        swarm_correct(&s);
        int bounded = 0, pushed = 0;
        for (int32_t i = 0; i < p->count; i++) {
            double ri = s.radius[i], size;
            if (giant && i % 20 && ri < 0.3) continue;
            un_vec3 move = formula(&s, before, i, &size);
            if (un_length(move) > 0.4 * ri) {
                move = un_scale(un_normalize(move), 0.4 * ri);
                bounded++;
            }
            pushed += size > 0;
            check_below(un_length(un_sub(moved(p, before, i), move)), 1e-5 * (size + ri));
        }
        assert_true(bounded > 100 && (giant || pushed - bounded > 100));
        free(before);
        swarm_end(&s);
    }
}

/* Of a large and a small one the small one moves; together they stay where they were. */
static void the_small_give_way(void **state)
{
    (void)state;
    static const double ratios[] = {1, 2, 8, 64, 1000};
    for (int n = 0; n < 5; n++) {
        swarm s;
        swarm_begin(&s, 1);
        tank_build(&s.tank);
        swarm_make(&s, 2);
        un_particles *p = &s.p;
        double large = 0.1, small = large / ratios[n];
        swarm_place(&s, 0, un_v3(0.5, 0.5, 0.5), large);
        swarm_place(&s, 1, un_mad(un_v3(0.5, 0.5, 0.5), un_v3(0.6, 0, -0.8), large + 0.7 * small),
                    small);
        swarm_look(&s, NULL);
        double *before = swarm_copy(p);
        swarm_correct(&s);
        un_vec3 a = moved(p, before, 0), b = moved(p, before, 1);
        double ma = p->volume[0], mb = p->volume[1];
        check_below(0.05 * small, un_dot(b, un_v3(0.6, 0, -0.8)));
        check_near(un_length(un_add(un_scale(a, ma), un_scale(b, mb))) / (mb * small), 0,
                   1e-5 + 1e-15 * ma / (mb * small));
        check_below(un_length(b), 0.4001 * small);
        free(before);
        swarm_end(&s);
    }
}

static void two_at_one_place_part(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 1);
    tank_build(&s.tank);
    swarm_make(&s, 2);
    for (int32_t q = 0; q < 2; q++) swarm_place(&s, q, un_v3(0.4, 0.5, 0.6), 0.01);
    swarm_look(&s, NULL);
    double *before = swarm_copy(&s.p);
    swarm_correct(&s);
    un_vec3 a = moved(&s.p, before, 0), b = moved(&s.p, before, 1);
    check_near(un_length(a), 0.004, 1e-8);
    check_near(un_length(un_add(a, b)), 0, 1e-9);
    free(before);
    swarm_end(&s);
}

/* ---- what must stand still ---- */

static double graded(un_vec3 x)
{
    return fmax(1.0 / 64, 0.3 * fabs(x.y - 0.4));
}
static double even(un_vec3 x)
{
    (void)x;
    return 1.0 / 10;
}

static void even_fillings_stay(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        swarm s;
        swarm_begin(&s, 2);
        tank_build(&s.tank);
        un_octree tree = leaves_make(un_v3(1, 1, 1), 1, 6, kind ? graded : even);
        swarm_make(&s, 8 * tree.leaf_count);
        un_particles *p = &s.p;
        for (int32_t q = 0; q < p->count; q++) {
            double h = un_octree_size(&tree, tree.level[q / 8]), c = 0.5 * h;
            un_vec3 corner = un_octree_corner(&tree, q / 8);
            swarm_place(
                &s, q,
                un_mad(corner, un_v3((q & 1) + 0.5, (q >> 1 & 1) + 0.5, (q >> 2 & 1) + 0.5), c),
                0.25 * h);
        }
        swarm_look(&s, NULL);
        double *before = swarm_copy(p);
        swarm_correct(&s);
        for (int a = 0; a < 3; a++)
            assert_memory_equal(before + a * p->count, p->x[a], (size_t)p->count * sizeof *before);
        free(before);
        leaves_free(&tree);
        swarm_end(&s);
    }
}

static void ballistic_ones_neither_move_nor_push(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 1);
    tank_build(&s.tank);
    swarm_make(&s, 20); /* all in one heap */
    un_particles *p = &s.p;
    for (int32_t q = 0; q < 20; q++) {
        swarm_place(&s, q, un_mad(un_v3(0.5, 0.5, 0.5), swarm_point((uint64_t)q, 1), 0.01), 0.01);
        if (q != 3) p->flags[q] = UN_PARTICLE_BALLISTIC;
    }
    p->flags[3] = 2; /* some other flag */
    swarm_look(&s, NULL);
    double *before = swarm_copy(p);
    swarm_correct(&s);
    for (int32_t q = 0; q < 20; q++) check_near(un_length(moved(p, before, q)), 0, 0);
    p->flags[17] = 0;
    swarm_correct(&s);
    for (int32_t q = 0; q < 20; q++)
        assert_true((un_length(moved(p, before, q)) > 0) == (q == 3 || q == 17));
    free(before);
    swarm_end(&s);
}

/* ---- crowds ---- */

static double worst_overlap(const swarm *s)
{
    const un_particles *p = &s->p;
    double worst = 0;
    for (int32_t i = 0; i < p->count; i++)
        for (int32_t j = 0; j < i; j++) {
            double d = un_length(un_sub(un_particle_position(p, i), un_particle_position(p, j)));
            double d0 = (double)s->radius[i] + (double)s->radius[j];
            worst = fmax(worst, (d0 - d) / d0);
        }
    return worst;
}

static void clumps_are_spread(void **state)
{
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        swarm s;
        swarm_begin(&s, 2);
        tank_build(&s.tank);
        swarm_make(&s, 60);
        un_vec3 middle = {0.5, 0.5, 0.5};
        for (int32_t q = 0; q < 60; q++)
            swarm_place(&s, q, un_mad(un_v3(0.49, 0.49, 0.49), swarm_point((uint64_t)q, 7), 0.02),
                        mixed && q % 3 ? 0.005 : 0.02);
        for (int32_t q = 20; q < 30; q++) swarm_place(&s, q, middle, 0.005); /* all at one place */
        swarm_look(&s, NULL);
        assert_true(worst_overlap(&s) == 1);
        for (int round = 0; round < 200; round++) {
            swarm_look(&s, NULL);
            swarm_correct(&s);
        }
        swarm_look(&s, NULL);
        check_below(worst_overlap(&s), 0.1);
        /* in all directions, not along a line or a plane */
        double sum[3] = {0, 0, 0};
        for (int32_t q = 20; q < 30; q++)
            for (int a = 0; a < 3; a++) sum[a] += fabs(s.p.x[a][q] - 0.5);
        for (int a = 0; a < 3; a++) check_below(0.02, sum[a]);
        swarm_end(&s);
    }
}

/* Thousands at one place, under one far larger: nothing breaks, nothing goes far. */
static void crowds_beyond_measure_do_no_harm(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 2);
    tank_build(&s.tank);
    swarm_make(&s, 2500);
    un_particles *p = &s.p;
    for (int32_t q = 0; q < p->count; q++)
        swarm_place(&s, q,
                    un_mad(un_v3(0.5, 0.5, 0.5), swarm_point((uint64_t)q, 1), q % 2 ? 1e-4 : 0),
                    1e-4);
    swarm_place(&s, 4, un_v3(0.5, 0.5, 0.5), 0.2);
    p->volume[9] = 0; /* of no volume at all */
    for (int round = 0; round < 3; round++) {
        swarm_look(&s, NULL);
        double *before = swarm_copy(p);
        swarm_correct(&s);
        for (int32_t q = 0; q < p->count; q++) {
            assert_true(un_finite3(un_particle_position(p, q)));
            check_below(un_length(moved(p, before, q)), 0.40001 * (double)s.radius[q] + 1e-12);
        }
        free(before);
    }
    swarm_end(&s);
}

static void none_and_one_are_fine(void **state)
{
    (void)state;
    for (int32_t count = 0; count < 2; count++) {
        swarm s;
        swarm_begin(&s, 2);
        tank_build(&s.tank);
        swarm_make(&s, count);
        swarm_look(&s, NULL);
        swarm_correct(&s);
        if (count) assert_true(s.p.x[0][0] == 0.5 && s.p.x[1][0] == 0.5 && s.p.x[2][0] == 0.5);
        swarm_end(&s);
    }
}

/* ---- the surface ---- */

static double slope(un_vec3 x)
{
    return un_dot(un_sub(x, un_v3(0.5, 0.7, 0.5)), un_v3(0.6, 0.8, 0));
}

/* Within six radii along the surface only; freely from eight on; the share grows in between. */
static void correction_does_not_lift_the_surface(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 2);
    tank_build(&s.tank);
    swarm_make(&s, 60000);
    un_particles *p = &s.p;
    double radius = 0.015;
    for (int32_t q = 0; q < p->count; q++) swarm_place(&s, q, swarm_point((uint64_t)q, 1), radius);
    swarm_sort(&s, 1.0 / 32);
    swarm_look(&s, slope);
    double *before = swarm_copy(p), across[3] = {0, 0, 0}, along[3] = {0, 0, 0};
    swarm_correct(&s);
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 x = {before[q], before[p->count + q], before[2 * p->count + q]};
        un_vec3 move = moved(p, before, q), n = {0.6, 0.8, 0};
        if (x.x < 0.05 || x.x > 0.95 || x.y < 0.05 || x.y > 0.95 || x.z < 0.05 || x.z > 0.95)
            continue;
        double depth = -slope(x) / radius, part = un_dot(move, n);
        if (depth < 6) check_near(part, 0, 1e-6 * radius);
        int band = depth < 6 ? 0 : depth < 8 ? 1 : 2;
        across[band] += fabs(part);
        along[band] += un_length(un_mad(move, n, -part));
    }
    assert_true(along[0] > 1000 * radius * 0.1);
    check_near(across[2] / along[2], 0.64, 0.06); /* E|cos| / E|sin| = 2 / pi */
    check_below(0.15, across[1] / along[1]);
    check_below(across[1] / along[1], 0.5);
    free(before);
    swarm_end(&s);
}

/* ---- walls ---- */

/* On which side of the thin plate: -1, 1, or 0 past its ends, where particles may go round it. */
static double beyond(un_vec3 x)
{
    return x.y < 0.35 || x.y > 0.75 ? 0 : x.x < 0.2 ? -1 : 1;
}

static double *first_bits;
static void correction_keeps_out_of_walls(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 4; threads++) {
        swarm s;
        swarm_begin(&s, threads);
        tank_solid(&s.tank, tank_sphere(&s.tank, un_v3(0.5, 0.5, 0.5), 0.2), un_v3(0, 0, 0));
        tank_solid(&s.tank, tank_box(&s.tank, un_v3(0.2, 0.3, -1), un_v3(0.201, 0.8, 2)),
                   un_v3(0, 0, 0));
        s.tank.scene.def.domain.open[UN_SIDE_TOP] = true;
        tank_build(&s.tank);
        swarm_make(&s, 20000);
        un_particles *p = &s.p;
        uint8_t *keep = malloc(20000);
        for (int32_t q = 0; q < p->count; q++) {
            swarm_place(&s, q, swarm_point((uint64_t)q, 1),
                        0.01 * exp2(2 * un_random((uint64_t)q, 9)));
            keep[q] = un_walls_distance_exact(s.tank.walls, un_particle_position(p, q)) > 1e-7;
        }
        un_particles_filter(p, keep);
        free(keep);
        swarm_sort(&s, 1.0 / 32);
        for (int32_t q = 0; q < p->count; q++) p->v[0][q] = beyond(un_particle_position(p, q));
        for (int round = 0; round < 5; round++) {
            swarm_look(&s, NULL);
            swarm_correct(&s);
            for (int32_t q = 0; q < p->count; q++) {
                un_vec3 x = un_particle_position(p, q);
                assert_true(p->v[0][q] * beyond(x) >= 0);
                check_below(0, un_walls_distance_exact(s.tank.walls, x));
                assert_true(x.y <= 1);
            }
        }
        size_t bytes = (size_t)(3 * p->count) * sizeof(double);
        double *bits = swarm_copy(p);
        if (threads == 1)
            first_bits = bits;
        else {
            assert_memory_equal(first_bits, bits, bytes);
            free(bits);
        }
        swarm_end(&s);
    }
    free(first_bits);
}

/* Pressed against a wall, particles still part along it. */
static void particles_part_along_walls(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 1);
    tank_build(&s.tank);
    swarm_make(&s, 3);
    un_particles *p = &s.p;
    swarm_place(&s, 0, un_v3(0.5, 1e-5, 0.5), 0.01);
    swarm_place(&s, 1, un_v3(0.505, 1e-5, 0.5), 0.01);
    swarm_place(&s, 2, un_v3(0.503, 0.012, 0.5), 0.01);
    for (int round = 0; round < 60; round++) {
        swarm_look(&s, NULL);
        swarm_correct(&s);
    }
    check_below(0.019, p->x[0][1] - p->x[0][0]);
    check_below(0, p->x[1][0]);
    swarm_end(&s);
}

/* ---- memory ---- */

static un_status correct_once(un_context *ctx, void *arg)
{
    swarm *s = arg;
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_correct_def def = swarm_correct_def(s);
    un_status status = un_particles_correct_sized(ctx, &arena, &s->p, &def);
    un_arena_free(&arena);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 1);
    tank_build(&s.tank);
    swarm_make(&s, 300000); /* more than a chunk of the arena each */
    swarm_look(&s, NULL);
    s.groups.group_count = 8;
    s.groups.level_count = 1;
    s.groups.count = 64;
    check_allocation_failures(correct_once, &s, 10);
    swarm_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(still_water_is_let_be),
        cmocka_unit_test(moves_are_those_of_the_formula),
        cmocka_unit_test(the_small_give_way),
        cmocka_unit_test(two_at_one_place_part),
        cmocka_unit_test(even_fillings_stay),
        cmocka_unit_test(ballistic_ones_neither_move_nor_push),
        cmocka_unit_test(clumps_are_spread),
        cmocka_unit_test(crowds_beyond_measure_do_no_harm),
        cmocka_unit_test(none_and_one_are_fine),
        cmocka_unit_test(correction_does_not_lift_the_surface),
        cmocka_unit_test(correction_keeps_out_of_walls),
        cmocka_unit_test(particles_part_along_walls),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
