/* Particles: position correction. */
#include "particles/crowd.h"

static double nearest_pair(const un_particles *p)
{
    double nearest = INFINITY;
    for (int32_t q = 0; q < p->count; q++)
        for (int32_t r = 0; r < q; r++)
            nearest = fmin(
                nearest, un_length(un_sub(un_particle_position(p, q), un_particle_position(p, r))));
    return nearest;
}

static void clumps_are_spread(void **state)
{
    (void)state;
    crowd c;
    crowd_begin(&c, 2, false);
    un_particles *p = &c.particles;
    fill_at_random(&c.tank, p, 60);
    un_vec3 middle = {0.52, 0.51, 0.53};
    for (int32_t q = 0; q < p->count; q++) {
        double *x[3] = {&middle.x, &middle.y, &middle.z};
        for (int a = 0; a < 3; a++)
            p->x[a][q] = *x[a] + 0.06 * (un_random((uint64_t)q, 20 + (uint64_t)a) - 0.5);
        p->volume[q] = 1;
        p->flags[q] = 0;
    }
    for (int a = 0; a < 3; a++) p->x[a][1] = p->x[a][0]; /* two at the same place */
    double before = nearest_pair(p), drift = 0;
    assert_true(before == 0);
    for (int round = 0; round < 60; round++) crowd_correct(&c);
    assert_int_equal(p->count, 60);
    check_below(0.3 * c.tank.grid.h, nearest_pair(p));
    /* equal volumes push each other alike: the middle stays */
    for (int32_t q = 0; q < p->count; q++) drift += (p->x[1][q] - middle.y) / p->count;
    check_below(fabs(drift), 0.1 * c.tank.grid.h);
    crowd_end(&c);
}

static void settled_lattices_are_left_alone(void **state)
{
    (void)state;
    crowd c;
    un_particles *p = crowd_fill(&c, 8000);
    for (int32_t q = 0; q < 8000; q++) {
        p->x[0][q] = 0.05 * (q % 20 + 0.5);
        p->x[1][q] = 0.05 * (q / 20 % 20 + 0.5);
        p->x[2][q] = 0.05 * (q / 400 + 0.5);
    }
    crowd_correct(&c);
    for (int32_t q = 0; q < 8000; q++)
        for (int a = 0; a < 3; a++) {
            double s = p->x[a][q] / 0.05 - 0.5;
            check_near(s, round(s), 1e-12);
        }
    crowd_end(&c);
}

/* Rows 1.4 cells apart, as a flow leaves them that stretches liquid: they must not live on. Counted
 * in slabs of half a cell across them, off the ends. */
static void stretched_rows_dissolve(void **state)
{
    (void)state;
    crowd c;
    un_particles *p = crowd_fill(&c, 8000);
    for (int32_t q = 0; q < 8000; q++) {
        double row = 0.14 * floor(p->x[0][q] / 0.14);
        p->x[0][q] = un_clamp(row + 0.04 + 0.06 * un_random((uint64_t)q, 30), 0.001, 0.999);
    }
    for (int round = 0; round < 40; round++) crowd_correct(&c);
    double slab[20] = {0}, off = 0;
    for (int32_t q = 0; q < p->count; q++) slab[un_clampi((int32_t)(20 * p->x[0][q]), 0, 19)]++;
    for (int i = 3; i < 17; i++) off += pow(slab[i] / 400 - 1, 2) / 14;
    check_below(sqrt(off), 0.25); /* 0.19; 0.38 if pushed apart below 0.45 of a cell only */
    crowd_end(&c);
}

/* Near the surface moves go along it only. */
/* What the correction should do to particle q, pair by pair and in double precision. phi falls
 * along `slope` from 0 at the middle, in m. */
static un_vec3 move_by_hand(const un_particles *p, int32_t q, double h, un_vec3 slope)
{
    un_vec3 x = un_particle_position(p, q), sum = {0, 0, 0};
    for (int32_t r = 0; r < p->count; r++) {
        un_vec3 apart = un_sub(x, un_particle_position(p, r));
        double d = un_length(apart) / h, share = p->volume[r] / (p->volume[q] + p->volume[r]);
        if (r == q || (p->flags[r] & UN_PARTICLE_BALLISTIC) || d >= 0.5) continue;
        sum = un_mad(sum, apart, (0.5 - d) / d * share / h);
    }
    sum = un_scale(sum, 0.5);
    double phi = un_dot(slope, un_sub(x, un_v3(0.5, 0.5, 0.5)));
    if (phi > -1.5 * h) sum = un_mad(sum, slope, -un_dot(sum, slope) / un_dot(slope, slope));
    double length = un_length(sum);
    return un_scale(sum, length > 0.1 ? 0.1 * h / length : h);
}

/* Particles even and crowded, with equal volumes or not, some of them flying. */
static void correction_is_the_sum_over_pairs(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++) {
        crowd c;
        un_particles *p = crowd_fill(&c, what & 1 ? 4000 : 1500), was = {0};
        const un_grid *g = &c.tank.grid;
        un_vec3 slope = un_normalize(un_v3(0.3, 1, -0.2));
        for (int32_t q = 0; q < p->count; q++) {
            if (what & 1) /* most in a corner: more in two cells than are compared at once */
                for (int a = 0; a < 3; a++) p->x[a][q] = 0.03 + 0.55 * p->x[a][q];
            p->volume[q] = what & 2 ? (float)(1e-5 * (1 + q % 5)) : 1e-5f;
            if (q % 50 == 0) p->flags[q] = UN_PARTICLE_BALLISTIC;
        }
        for (int64_t n = 0; n < g->cell_count; n++) {
            int64_t i = n % g->n[0], j = n / g->n[0] % g->n[1], k = n / g->stride[2];
            un_vec3 x = un_v3(g->origin.x + g->h * (i + 0.5), g->origin.y + g->h * (j + 0.5),
                              g->origin.z + g->h * (k + 0.5));
            c.phi[n] = (float)un_dot(slope, un_sub(x, un_v3(0.5, 0.5, 0.5)));
        }
        check_ok(c.tank.ctx, un_bins_sort(c.bins, &c.arena, p));
        check_ok(c.tank.ctx, un_particles_reserve(c.tank.ctx, &was, (size_t)p->count));
        was.count = p->count;
        for (int a = 0; a < 3; a++) memcpy(was.x[a], p->x[a], (size_t)p->count * sizeof *was.x[a]);
        memcpy(was.volume, p->volume, (size_t)p->count * sizeof *was.volume);
        memcpy(was.flags, p->flags, (size_t)p->count);
        check_ok(c.tank.ctx,
                 un_particles_correct(c.tank.ctx, &c.arena, p, c.bins, c.phi, c.tank.walls, 0));
        int32_t moved = 0;
        for (int32_t q = 0; q < p->count; q++) {
            un_vec3 move = un_sub(un_particle_position(p, q), un_particle_position(&was, q));
            un_vec3 expected = move_by_hand(&was, q, g->h, slope);
            un_vec3 to = un_add(un_particle_position(&was, q), expected);
            double low = fmin(to.x, fmin(to.y, to.z)), high = fmax(to.x, fmax(to.y, to.z));
            if (was.flags[q] & UN_PARTICLE_BALLISTIC) {
                assert_true(un_length(move) == 0);
            } else if (low > 0.03 * g->h && high < 1 - 0.03 * g->h) { /* not stopped by a side */
                check_below(un_length(un_sub(move, expected)), 2e-4 * g->h);
                moved += un_length(move) > 0.01 * g->h;
            }
        }
        assert_true(moved > 500);
        un_particles_free(c.tank.ctx, &was);
        crowd_end(&c);
    }
}

/* Particles with liquid for two cells around stay, up to the sides; others move as all do. */
static void deep_particles_are_left_out(void **state)
{
    (void)state;
    crowd all, some;
    un_particles *p = crowd_fill(&all, 8000), *q = crowd_fill(&some, 8000);
    const un_grid *g = &all.tank.grid;
    for (int64_t n = 0; n < g->cell_count; n++)
        if (n / g->n[0] % g->n[1] > 7) all.phi[n] = some.phi[n] = (float)g->h;
    crowd_correct(&all);
    check_ok(some.tank.ctx, un_bins_sort(some.bins, &some.arena, q));
    un_particles was = {0};
    check_ok(some.tank.ctx, un_particles_reserve(some.tank.ctx, &was, q->count));
    for (int a = 0; a < 3; a++) memcpy(was.x[a], q->x[a], (size_t)q->count * sizeof *was.x[a]);
    check_ok(some.tank.ctx, un_particles_correct(some.tank.ctx, &some.arena, q, some.bins, some.phi,
                                                 some.tank.walls, 2));
    int32_t deep = 0, moved = 0;
    for (int32_t n = 0; n < q->count; n++) {
        un_vec3 x = un_particle_position(q, n), from = un_particle_position(&was, n);
        bool stays = from.y < 0.5; /* liquid ends at 0.7 */
        un_vec3 want = stays ? from : un_particle_position(p, n);
        assert_true(x.x == want.x && x.y == want.y && x.z == want.z);
        deep += stays && un_particle_position(p, n).x != from.x;
        moved += !stays && x.x != from.x;
    }
    assert_true(deep > 1000 && moved > 1000);
    un_particles_free(some.tank.ctx, &was);
    crowd_end(&all);
    crowd_end(&some);
}

static void correction_does_not_lift_the_surface(void **state)
{
    (void)state;
    crowd c;
    crowd_begin(&c, 2, false);
    un_particles *p = &c.particles;
    const un_grid *g = &c.tank.grid;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++)
                c.phi[un_grid_cell(g, i, j, k)] = (float)(un_grid_center(g, i, j, k).y - 0.5);
    fill_at_random(&c.tank, p, 3000);
    for (int32_t q = 0; q < p->count; q++) {
        p->x[1][q] = 0.4 + 0.1 * un_random((uint64_t)q, 31);
        p->v[1][q] = p->x[1][q];
        p->v[0][q] = p->x[0][q];
        p->flags[q] = 0;
        p->volume[q] = 1;
    }
    crowd_correct(&c);
    int moved = 0;
    for (int32_t q = 0; q < p->count; q++) {
        check_near(p->x[1][q], p->v[1][q], 1e-7);
        moved += fabs(p->x[0][q] - p->v[0][q]) > 1e-4;
        check_below(fabs(p->x[0][q] - p->v[0][q]), 0.11 * g->h);
    }
    assert_true(moved > 1000);
    crowd_end(&c);
}

static void correction_keeps_out_of_walls(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 0; threads <= 4; threads++) { /* 0: no ball, the sides alone */
        crowd c;
        crowd_begin(&c, threads ? threads : 2, threads > 0);
        un_particles *p = &c.particles;
        fill_at_random(&c.tank, p, 8000);
        int32_t kept = 0;
        uint8_t keep[8000];
        for (int32_t q = 0; q < p->count; q++) {
            un_vec3 x = un_particle_position(p, q);
            keep[q] = un_walls_distance_exact(c.tank.walls, x) > 1e-9;
            kept += keep[q];
            p->flags[q] = 0;
        }
        un_particles_filter(p, keep);
        for (int round = 0; round < 6; round++) {
            crowd_correct(&c);
            for (int32_t q = 0; q < p->count; q++)
                check_below(0, un_walls_distance_exact(c.tank.walls, un_particle_position(p, q)));
        }
        assert_int_equal(p->count, kept);
        size_t bytes = (size_t)kept * sizeof *first;
        if (threads == 1) first = memcpy(malloc(bytes), p->x[2], bytes);
        if (threads > 1) assert_memory_equal(first, p->x[2], bytes);
        crowd_end(&c);
    }
    free(first);
}

/* A thousand in one cell, more than are looked at: slow to part, but nothing breaks. */
static void crowds_beyond_measure_do_no_harm(void **state)
{
    (void)state;
    crowd c;
    crowd_begin(&c, 2, false);
    un_particles *p = &c.particles;
    fill_at_random(&c.tank, p, 6000);
    for (int32_t q = 0; q < p->count; q++)
        for (int a = 0; a < 3; a++) {
            p->x[a][q] = 0.51 + 0.001 * un_random((uint64_t)q, 40 + (uint64_t)a);
            p->volume[q] = 1e-6f;
            p->flags[q] = 0;
        }
    for (int round = 0; round < 3; round++) crowd_correct(&c);
    for (int32_t q = 0; q < p->count; q++)
        assert_true(un_finite3(un_particle_position(p, q)) && p->x[0][q] > 0 && p->x[0][q] < 1);
    crowd_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clumps_are_spread),
        cmocka_unit_test(settled_lattices_are_left_alone),
        cmocka_unit_test(stretched_rows_dissolve),
        cmocka_unit_test(correction_is_the_sum_over_pairs),
        cmocka_unit_test(deep_particles_are_left_out),
        cmocka_unit_test(correction_does_not_lift_the_surface),
        cmocka_unit_test(correction_keeps_out_of_walls),
        cmocka_unit_test(crowds_beyond_measure_do_no_harm),
    };
    check_races_in("s*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
