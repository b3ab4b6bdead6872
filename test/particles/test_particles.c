/* Particles: seeding, emission, sorting, filtering, position correction. */
#include "particles/crowd.h"

/* ---- a plane through a cube ---- */

static void cubes_are_cut_as_sampling_says(void **state)
{
    (void)state;
    static const un_vec3 normals[] = {{0, 1, 0},       {1, 0, 0},      {0, 0, -1},   {1, 1, 0},
                                      {1, 1, 1},       {-1, 2, -3},    {1, 1e-5, 0}, {0.3, 1e-9, 1},
                                      {1, 1e-3, 1e-3}, {-0.2, 1, 0.01}};
    static const double at[] = {-0.95, -0.5, -0.3, -0.1, 0, 0.02, 0.25, 0.5, 0.7, 0.95};
    for (size_t n = 0; n < sizeof normals / sizeof *normals; n++)
        for (size_t s = 0; s < sizeof at / sizeof *at; s++) {
            un_vec3 m = un_normalize(normals[n]);
            double inside = 0;
            int count = 20000;
            for (uint64_t i = 0; i < (uint64_t)count; i++) {
                un_vec3 x = {un_random(i, 1) - 0.5, un_random(i, 2) - 0.5, un_random(i, 3) - 0.5};
                inside += un_dot(m, x) < at[s];
            }
            double got = un_cube_below_plane(m, at[s]);
            check_near(got, inside / count, 0.015);
            /* the other side has the rest */
            check_near(got + un_cube_below_plane(un_scale(m, -1), -at[s]), 1, 1e-6);
        }
    check_near(un_cube_below_plane(un_v3(0, 1, 0), 0.2), 0.7, 1e-6);
    check_near(un_cube_below_plane(un_v3(1e-8, 1, 0), 0.5 - 1e-9), 1, 1e-5);
    check_near(un_cube_below_plane(un_v3(0, 1, 0), -0.6), 0, 0);
    check_near(un_cube_below_plane(un_v3(0, 1, 0), 5), 1, 0);
}

/* ---- seeding ---- */

typedef struct seeded {
    un_particles particles;
    double volume;
} seeded;

static seeded seed(tank *t, const un_shape *shape)
{
    seeded s = {.volume = -1};
    un_seed_def def = {
        .grid = &t->grid, .shape = shape, .walls = t->walls, .velocity = un_v3(1, 2, 3)};
    int64_t want = un_particles_seed_count(t->ctx, &def);
    check_ok(t->ctx, un_particles_seed(t->ctx, &s.particles, &def, &s.volume));
    assert_int_equal(s.particles.count, want);
    check_near(s.volume, un_particles_volume(t->ctx, &s.particles), 1e-9);
    for (int32_t q = 0; q < s.particles.count; q++) {
        un_vec3 x = un_particle_position(&s.particles, q),
                v = un_particle_velocity(&s.particles, q);
        check_below(0, un_walls_distance_exact(t->walls, x));
        assert_true(x.x > 0 && x.x < t->grid.size.x && x.y > 0 && x.y < t->grid.size.y);
        check_below(un_shape_distance(shape, x), 0.05 * t->grid.h);
        assert_true(v.x == 1 && v.y == 2 && v.z == 3);
        assert_true(s.particles.volume[q] > 0 && s.particles.flags[q] == 0);
    }
    return s;
}

static void boxes_are_filled_to_their_volume(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 20);
    tank_build(&t);
    /* on the lattice: eight a cell, all of one volume */
    seeded s = seed(&t, tank_box(&t, un_v3(0, 0, 0), un_v3(0.4, 0.5, 1)));
    assert_int_equal(s.particles.count, 8 * 8 * 10 * 20);
    check_near(s.volume, 0.2, 1e-6);
    un_particles_free(t.ctx, &s.particles);
    /* at odd heights the last layer carries what is left */
    static const double heights[] = {0.437, 0.4251, 0.4249, 0.26, 0.0513};
    for (int n = 0; n < 5; n++) {
        s = seed(&t, tank_box(&t, un_v3(-1, -1, -1), un_v3(2, heights[n], 2)));
        check_near(s.volume / heights[n], 1, 2e-3);
        un_particles_free(t.ctx, &s.particles);
    }
    /* nothing beyond the domain, nothing of nothing */
    s = seed(&t, tank_box(&t, un_v3(-3, -3, -3), un_v3(3, 3, 3)));
    check_near(s.volume, 1, 1e-6);
    assert_int_equal(s.particles.count, 8 * 20 * 20 * 20);
    un_particles_free(t.ctx, &s.particles);
    s = seed(&t, tank_box(&t, un_v3(3, 3, 3), un_v3(4, 4, 4)));
    assert_int_equal(s.particles.count, 0);
    check_near(s.volume, 0, 0);
    un_particles_free(t.ctx, &s.particles);
    tank_end(&t);
}

static double sphere_error(int32_t finest)
{
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), finest);
    tank_build(&t);
    seeded s = seed(&t, tank_sphere(&t, un_v3(0.507, 0.493, 0.511), 0.31));
    un_particles_free(t.ctx, &s.particles);
    tank_end(&t);
    return fabs(s.volume / (4.0 / 3 * UN_PI * 0.31 * 0.31 * 0.31) - 1);
}

static void spheres_are_filled_with_second_order(void **state)
{
    (void)state;
    double coarse = sphere_error(8), fine = sphere_error(32);
    check_below(coarse, 0.02);
    check_below(fine, 0.002);
    check_below(1.5, 0.5 * log2(coarse / fine));
}

static void solids_displace_what_is_seeded(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 24);
    tank_solid(&t, tank_sphere(&t, un_v3(0.5, 0.4, 0.5), 0.2), un_v3(0, 0, 0));
    tank_build(&t);
    seeded s = seed(&t, tank_box(&t, un_v3(-1, -1, -1), un_v3(2, 0.7, 2)));
    check_near(s.volume / (0.7 - 4.0 / 3 * UN_PI * 0.008), 1, 2e-3);
    un_particles_free(t.ctx, &s.particles);
    tank_end(&t);
}

static void seeds_are_the_same_for_any_thread_count(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        tank t;
        tank_begin(&t, threads, un_v3(1, 1, 1), 16);
        tank_build(&t);
        seeded s = seed(&t, tank_sphere(&t, un_v3(0.4, 0.5, 0.6), 0.3));
        size_t bytes = (size_t)s.particles.count * sizeof *first;
        if (!first) first = memcpy(malloc(bytes), s.particles.x[1], bytes);
        assert_memory_equal(first, s.particles.x[1], bytes);
        un_particles_free(t.ctx, &s.particles);
        tank_end(&t);
    }
    free(first);
}

/* ---- emission ---- */

/* The volume emitted in `steps` steps of uneven length, 0.5 s in all. */
static double emitted(tank *t, const un_shape *shape, un_vec3 velocity, int steps)
{
    un_particles p = {0};
    un_vec3 shift = {0, 0, 0};
    double total = 0;
    for (int n = 0; n < steps; n++) {
        double dt = 0.5 / steps * (n % 2 ? 1.5 : 0.5), volume;
        un_seed_def def = {.grid = &t->grid,
                           .shape = shape,
                           .walls = t->walls,
                           .velocity = velocity,
                           .step = un_scale(velocity, dt),
                           .emitting = true,
                           .stream = 16};
        shift = un_add(shift, def.step);
        def.shift = shift;
        int32_t before = p.count;
        check_ok(t->ctx, un_particles_seed(t->ctx, &p, &def, &volume));
        total += volume;
        for (int32_t q = before; q < p.count; q++) {
            un_vec3 x = un_particle_position(&p, q);
            check_below(un_shape_distance(shape, x), 0.25 * t->grid.h + un_length(def.step));
            check_below(0, un_walls_distance_exact(t->walls, x));
        }
    }
    check_near(total, un_particles_volume(t->ctx, &p), 1e-9);
    un_particles_free(t->ctx, &p);
    return total;
}

static void emitters_pour_area_times_speed(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 20);
    tank_build(&t);
    un_shape *box = tank_box(&t, un_v3(0.4, 0.7, 0.3), un_v3(0.6, 0.8, 0.6));
    check_near(emitted(&t, box, un_v3(0, -2, 0), 40) / (0.2 * 0.3 * 2 * 0.5), 1, 1e-6);
    check_near(emitted(&t, box, un_v3(1.7, 0, 0), 32) / (0.1 * 0.3 * 1.7 * 0.5), 1, 1e-6);
    check_near(emitted(&t, box, un_v3(1.7, 0, 0), 8) / (0.1 * 0.3 * 1.7 * 0.5), 1, 1e-6);
    /* off the lattice: corners are cut as if by a plane */
    un_shape *off = tank_box(&t, un_v3(0.387, 0.72, 0.311), un_v3(0.604, 0.81, 0.618));
    check_near(emitted(&t, off, un_v3(0, -2, 0), 40) / (0.217 * 0.307 * 2 * 0.5), 1, 0.006);
    /* aslant: the sum of the faces it enters through */
    check_near(emitted(&t, box, un_v3(1, -0.83, 0), 40) / ((0.1 + 0.2 * 0.83) * 0.3 * 0.5), 1,
               0.005);
    un_shape *sphere = tank_sphere(&t, un_v3(0.51, 0.6, 0.49), 0.17);
    check_near(emitted(&t, sphere, un_v3(0, -2, 0), 40) / (UN_PI * 0.17 * 0.17 * 2 * 0.5), 1,
               0.002);
    check_near(emitted(&t, sphere, un_v3(0.9, -0.7, 0.4), 40) /
                   (UN_PI * 0.17 * 0.17 * un_length(un_v3(0.9, -0.7, 0.4)) * 0.5),
               1, 0.002);
    /* thinner than a step is long: nothing slips through */
    un_shape *disc = tank_box(&t, un_v3(0.5, 0.4, 0.4), un_v3(0.51, 0.6, 0.6));
    check_near(emitted(&t, disc, un_v3(2, 0, 0), 10) / (0.2 * 0.2 * 2 * 0.5), 1, 1e-6);
    check_near(emitted(&t, disc, un_v3(-2, 0, 0), 10) / (0.2 * 0.2 * 2 * 0.5), 1, 1e-6);
    tank_end(&t);
}

/* A wall right behind a thin emitter: its stream does not appear beyond. */
static void emission_does_not_pass_walls(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 20);
    tank_solid(&t, tank_box(&t, un_v3(0.53, -1, -1), un_v3(0.531, 2, 2)), un_v3(0, 0, 0));
    tank_build(&t);
    un_shape *disc = tank_box(&t, un_v3(0.5, 0.4, 0.4), un_v3(0.51, 0.6, 0.6));
    un_particles p = {0};
    double volume;
    un_seed_def def = {.grid = &t.grid,
                       .shape = disc,
                       .walls = t.walls,
                       .shift = un_v3(0.1, 0, 0),
                       .step = un_v3(0.1, 0, 0),
                       .emitting = true};
    check_ok(t.ctx, un_particles_seed(t.ctx, &p, &def, &volume));
    assert_true(p.count > 0);
    for (int32_t q = 0; q < p.count; q++) check_below(p.x[0][q], 0.53);
    un_particles_free(t.ctx, &p);
    tank_end(&t);
}

/* Particles of a stream lie anywhere across it: rows behind each other would leave seams where it
 * spreads. */
static void streams_have_no_seams(void **state)
{
    (void)state;
    const un_vec3 along[3] = {{0, -2, 0}, {1, -2, 0}, {1, 1, -1.5}};
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 20);
    tank_build(&t);
    un_shape *ball = tank_sphere(&t, un_v3(0.5, 0.5, 0.5), 0.2);
    for (int kind = 0; kind < 3; kind++) {
        un_particles p = {0};
        un_vec3 shift = {0, 0, 0};
        double total = 0, phase[8] = {0}, s = 0.5 * t.grid.h, dt = 0.01;
        for (int n = 0; n < 40; n++) {
            double volume;
            un_seed_def def = {.grid = &t.grid,
                               .shape = ball,
                               .walls = t.walls,
                               .velocity = along[kind],
                               .step = un_scale(along[kind], dt),
                               .emitting = true,
                               .jitter = 0.5,
                               .stream = 16};
            shift = un_add(shift, def.step);
            def.shift = shift;
            check_ok(t.ctx, un_particles_seed(t.ctx, &p, &def, &volume));
            total += volume;
        }
        /* across: x, or z where the stream runs along x too */
        const double *x = kind == 0 ? p.x[0] : kind == 1 ? p.x[2] : p.x[1];
        for (int32_t q = 0; q < p.count; q++) phase[(int)(8 * (x[q] / s)) % 8] += 1;
        for (int n = 0; n < 8; n++) check_near(phase[n] / p.count, 0.125, 0.05);
        double want = UN_PI * 0.04 * un_length(along[kind]) * 40 * dt;
        check_near(total / want, 1, 0.03);
        un_particles_free(t.ctx, &p);
    }
    tank_end(&t);
}

/* ---- sorting ---- */

/* Some bars only: the particles of the others are gone, and their cells empty. */
static void bins_hold_some_bars(void **state)
{
    (void)state;
    tank t;
    un_arena arena;
    un_bins *all, *some;
    un_particles p = {0}, q = {0};
    tank_begin(&t, 2, un_v3(1, 1, 1), 38);
    tank_build(&t);
    un_arena_init(&arena, t.ctx);
    fill_at_random(&t, &p, 20000);
    fill_at_random(&t, &q, 20000);
    check_ok(t.ctx, un_bins_create(t.ctx, &t.grid, &all));
    check_ok(t.ctx, un_bins_create(t.ctx, &t.grid, &some));
    check_ok(t.ctx, un_bins_sort(all, &arena, &p));
    uint8_t held[25] = {[3] = 1, [4] = 1, [11] = 1}; /* 5 x 5 bars */
    int32_t *list = un_arena_alloc(&arena, 20000, sizeof *list), gone = 0, found = 0;
    for (int32_t i = 0; i < q.count; i++) {
        int32_t j = (int32_t)((q.x[1][i] - t.grid.origin.y) / t.grid.h);
        int32_t k = (int32_t)((q.x[2][i] - t.grid.origin.z) / t.grid.h);
        if (!held[j / UN_BLOCK + 5 * (k / UN_BLOCK)]) list[gone++] = i;
    }
    check_ok(t.ctx, un_bins_hold(some, held));
    assert_int_equal(some->held_count, 3 * some->blocks[0]);
    check_ok(t.ctx, un_bins_sort_by_id(some, &arena, &q, NULL, &(un_bins_gone){list, gone}));
    assert_true(gone > 10000 && q.count == 20000 - gone);
    for (int32_t k = 0; k < t.grid.n[2]; k++)
        for (int32_t c = 0; c < t.grid.n[0] * t.grid.n[1]; c++) {
            int32_t i = c % t.grid.n[0], j = c / t.grid.n[0];
            bool here = held[j / UN_BLOCK + 5 * (k / UN_BLOCK)];
            const int32_t *begin = some->begin + un_bins_cell(some, i, j, k);
            const int32_t *whole = all->begin + un_bins_cell(all, i, j, k);
            assert_int_equal(begin[1] - begin[0], here ? whole[1] - whole[0] : 0);
            for (int32_t n = 0; n < begin[1] - begin[0]; n++, found++)
                assert_true(q.x[0][begin[0] + n] == p.x[0][whole[0] + n]);
        }
    assert_int_equal(found, q.count);
    un_particles_free(t.ctx, &p);
    un_particles_free(t.ctx, &q);
    un_bins_destroy(all);
    un_bins_destroy(some);
    un_arena_free(&arena);
    tank_end(&t);
}

static void sorting_keeps_particles_whole_and_finds_cells(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        tank t;
        un_arena arena;
        un_bins *bins;
        un_particles p = {0};
        tank_begin(&t, threads, un_v3(1, 1, 1), 21);
        tank_build(&t);
        un_arena_init(&arena, t.ctx);
        check_ok(t.ctx, un_bins_create(t.ctx, &t.grid, &bins));
        fill_at_random(&t, &p, 40000);
        double sum = 0, sorted = 0;
        for (int32_t q = 0; q < p.count; q++) sum += p.x[0][q];
        check_ok(t.ctx, un_bins_sort(bins, &arena, &p));
        const un_grid *g = &t.grid;
        int64_t total = (int64_t)bins->block_count * bins->block_cells, found = 0;
        for (int32_t q = 0; q < p.count; q++) {
            assert_true(p.v[0][q] == 2 * p.x[0][q] && p.v[1][q] == p.x[0][q] - p.x[1][q]);
            assert_true(p.v[2][q] == p.x[2][q] * p.x[1][q]);
            assert_true(p.volume[q] == (float)(p.x[0][q] + 3 * p.x[2][q]));
            assert_true(p.flags[q] == (p.x[1][q] > 0.5));
            sorted += p.x[0][q];
        }
        check_near(sum, sorted, 1e-8);
        assert_int_equal(bins->begin[0], 0);
        assert_int_equal(bins->begin[total], p.count);
        for (int64_t c = 0; c < total; c++) assert_true(bins->begin[c] <= bins->begin[c + 1]);
        for (int32_t k = 0; k < g->n[2]; k++)
            for (int32_t j = 0; j < g->n[1]; j++)
                for (int32_t i = 0; i < g->n[0]; i++) {
                    uint32_t cell = un_bins_cell(bins, i, j, k);
                    assert_true(cell < total);
                    for (int32_t q = bins->begin[cell]; q < bins->begin[cell + 1]; q++, found++) {
                        un_vec3 x = un_sub(un_particle_position(&p, q), g->origin);
                        assert_true(floor(x.x / g->h + 1e-12) >= i &&
                                    x.x <= (i + 1) * g->h + 1e-12);
                        assert_true(floor(x.y / g->h + 1e-12) >= j &&
                                    x.y <= (j + 1) * g->h + 1e-12);
                        assert_true(floor(x.z / g->h + 1e-12) >= k &&
                                    x.z <= (k + 1) * g->h + 1e-12);
                    }
                }
        assert_int_equal(found, p.count);
        /* sorted is sorted: a second time changes nothing */
        double *x = memcpy(malloc(40000 * sizeof *x), p.x[0], 40000 * sizeof *x);
        check_ok(t.ctx, un_bins_sort(bins, &arena, &p));
        assert_memory_equal(x, p.x[0], 40000 * sizeof *x);
        free(x);
        p.count = 0; /* none at all */
        check_ok(t.ctx, un_bins_sort(bins, &arena, &p));
        for (int64_t c = 0; c <= total; c++) assert_int_equal(bins->begin[c], 0);
        un_particles_free(t.ctx, &p);
        un_bins_destroy(bins);
        un_arena_free(&arena);
        tank_end(&t);
    }
}

static void filtering_keeps_order_and_tells_the_volume(void **state)
{
    (void)state;
    tank t;
    un_particles p = {0};
    tank_begin(&t, 1, un_v3(1, 1, 1), 8);
    tank_build(&t);
    fill_at_random(&t, &p, 1000);
    uint8_t keep[1000];
    double out = 0, last = -1, kept = 0;
    for (int32_t q = 0; q < p.count; q++) {
        p.v[0][q] = q;
        keep[q] = un_random((uint64_t)q, 9) < 0.7;
        kept += keep[q];
        if (!keep[q]) out += p.volume[q];
    }
    check_near(un_particles_filter(&p, keep), out, 1e-12);
    assert_int_equal(p.count, (int32_t)kept);
    for (int32_t q = 0; q < p.count; q++) {
        assert_true(p.v[0][q] > last && keep[(int)p.v[0][q]]);
        last = p.v[0][q];
        assert_true(p.volume[q] == (float)(p.x[0][q] + 3 * p.x[2][q]));
        assert_true(p.flags[q] == (p.x[1][q] > 0.5));
    }
    memset(keep, 0, sizeof keep);
    un_particles_filter(&p, keep);
    assert_int_equal(p.count, 0);
    un_particles_free(t.ctx, &p);
    tank_end(&t);
}

/* ---- memory ---- */

static un_status live_once(un_context *ctx, void *arg)
{
    tank *t = arg;
    un_arena arena;
    un_bins *bins = NULL;
    un_particles p = {0};
    double volume;
    un_arena_init(&arena, ctx);
    float *phi = NULL;
    un_status status = un_bins_create(ctx, &t->grid, &bins);
    if (status == UN_OK) {
        un_seed_def def = {.grid = &t->grid, .shape = t->solids[1].shape, .walls = t->walls};
        status = un_particles_seed(ctx, &p, &def, &volume);
    }
    if (status == UN_OK) status = un_bins_sort(bins, &arena, &p);
    if (status == UN_OK) {
        phi = un_alloc_zero(ctx, (size_t)t->grid.cell_count, sizeof *phi);
        if (!phi) status = UN_ERROR_MEMORY;
    }
    if (status == UN_OK) status = un_particles_correct(ctx, &arena, &p, bins, phi, t->walls, 0);
    un_free(ctx, phi);
    un_particles_free(ctx, &p);
    un_bins_destroy(bins);
    un_arena_free(&arena);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 1, un_v3(1, 1, 1), 6);
    tank_solid(&t, tank_sphere(&t, un_v3(0.9, 0.9, 0.9), 0.2), un_v3(0, 0, 0));
    tank_build(&t);
    t.solids[1].shape = tank_sphere(&t, un_v3(0.5, 0.5, 0.5), 0.3);
    check_allocation_failures(live_once, &t, 100);
    un_particles p = {0};
    assert_int_equal(un_particles_reserve(t.ctx, &p, (int64_t)3e9), UN_ERROR_MEMORY);
    un_particles_free(t.ctx, &p);
    tank_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubes_are_cut_as_sampling_says),
        cmocka_unit_test(boxes_are_filled_to_their_volume),
        cmocka_unit_test(spheres_are_filled_with_second_order),
        cmocka_unit_test(solids_displace_what_is_seeded),
        cmocka_unit_test(seeds_are_the_same_for_any_thread_count),
        cmocka_unit_test(emitters_pour_area_times_speed),
        cmocka_unit_test(streams_have_no_seams),
        cmocka_unit_test(emission_does_not_pass_walls),
        cmocka_unit_test(sorting_keeps_particles_whole_and_finds_cells),
        cmocka_unit_test(bins_hold_some_bars),
        cmocka_unit_test(filtering_keeps_order_and_tells_the_volume),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    check_races_in("s*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
