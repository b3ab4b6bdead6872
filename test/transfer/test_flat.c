/* Particles in 2D: seeding, bins, correction, and transfers to faces and back. */
#include "mesh/tank.h"
#include "transfer/transfer.h"

typedef struct pond {
    tank tank;
    un_particles particles;
    un_bins *bins;
    un_arena arena;
    double *u[3], *w[3];
    double volume;
} pond;

/* A box of liquid, seeded and sorted. */
static void pond_begin(pond *p, int32_t threads, un_vec3 min, un_vec3 max)
{
    memset(p, 0, sizeof *p);
    tank_begin(&p->tank, threads, un_v3(1, 0.8, 0), 20);
    un_shape *box = tank_box(&p->tank, min, max);
    tank_build(&p->tank);
    un_context *ctx = p->tank.ctx;
    un_arena_init(&p->arena, ctx);
    p->particles.flat = true;
    un_seed_def def = {.grid = &p->tank.grid,
                       .shape = box,
                       .walls = p->tank.walls,
                       .velocity = un_v3(0.5, -0.25, 0)};
    check_ok(ctx, un_particles_seed(ctx, &p->particles, &def, &p->volume));
    assert_int_equal(un_particles_seed_count(ctx, &def), p->particles.count);
    check_ok(ctx, un_bins_create(ctx, &p->tank.grid, &p->bins));
    check_ok(ctx, un_bins_sort(p->bins, &p->arena, &p->particles));
    for (int a = 0; a < 2; a++) {
        p->u[a] = un_alloc_zero(ctx, (size_t)p->tank.grid.cell_count, sizeof(double));
        p->w[a] = un_alloc_zero(ctx, (size_t)p->tank.grid.cell_count, sizeof(double));
    }
}

static void pond_end(pond *p)
{
    un_context *ctx = p->tank.ctx;
    un_particles_free(ctx, &p->particles);
    un_bins_destroy(p->bins);
    un_arena_free(&p->arena);
    for (int a = 0; a < 2; a++) {
        un_free(ctx, p->u[a]);
        un_free(ctx, p->w[a]);
    }
    tank_end(&p->tank);
}

static void in_the_plane(const un_particles *p)
{
    for (int32_t q = 0; q < p->count; q++) assert_true(p->x[2][q] == 0 && p->v[2][q] == 0);
}

static void four_particles_a_square(void **state)
{
    (void)state;
    pond p;
    pond_begin(&p, 2, un_v3(0, 0, -9), un_v3(0.5, 0.4, 9));
    assert_int_equal(p.particles.count, 10 * 8 * 4);
    check_near(p.volume, 0.5 * 0.4, 1e-6);
    in_the_plane(&p.particles);
    /* each cell of the box has its four */
    for (int32_t j = 0; j < 8; j++)
        for (int32_t i = 0; i < 10; i++) {
            uint32_t cell = un_bins_cell(p.bins, 1 + i, 1 + j, 0);
            assert_int_equal(p.bins->begin[cell + 1] - p.bins->begin[cell], 4);
        }
    pond_end(&p);
    /* a surface between the cells' edges: the volume is that of the shape */
    pond_begin(&p, 2, un_v3(0, 0, -9), un_v3(0.5, 0.437, 9));
    check_near(p.volume, 0.5 * 0.437, 1e-5);
    check_near(un_particle_ball(&p.particles, 0), sqrt(0.025 * 0.025 / UN_PI), 1e-6);
    pond_end(&p);
}

/* The same on the leaves of a quadtree. */
static void four_particles_a_leaf(void **state)
{
    (void)state;
    pond p;
    un_octree tree;
    double volume, x[3] = {0.1, 0.1, 0};
    pond_begin(&p, 2, un_v3(0, 0, -9), un_v3(0.1, 0.1, 9));
    un_context *ctx = p.tank.ctx;
    un_octree_init(ctx, &tree, p.tank.grid.size, 4, 32);
    un_octree_request request = {.count = 1, .x = {&x[0], &x[1], &x[2]}};
    check_ok(ctx, un_octree_build(&tree, &p.arena, &request));
    un_seed_leaves_def def = {.tree = &tree,
                              .shape = tank_box(&p.tank, un_v3(-1, -1, -9), un_v3(2, 2, 9)),
                              .walls = p.tank.walls};
    p.particles.count = 0;
    check_ok(ctx, un_particles_seed_leaves(ctx, &p.particles, &def, &volume));
    assert_true(tree.leaf_count > 20);
    assert_true(p.particles.count > 3 * tree.leaf_count &&
                p.particles.count <= 4 * tree.leaf_count);
    check_near(volume, 0.8, 1e-5);
    in_the_plane(&p.particles);
    un_octree_free(&tree);
    pond_end(&p);
}

/* What a stream pours in a second is its width times its speed, at any angle. */
static void emission_pours_what_it_should(void **state)
{
    (void)state;
    pond p;
    pond_begin(&p, 2, un_v3(0.2, 0.2, -9), un_v3(0.3, 0.4, 9));
    un_vec3 velocity = un_v3(0.8, 0, 0), shift = {0, 0, 0};
    double poured = 0, dt = 0.01;
    un_shape *mouth = tank_box(&p.tank, un_v3(0.2, 0.21, -9), un_v3(0.3, 0.4, 9));
    for (int step = 0; step < 25; step++) {
        double volume;
        un_seed_def def = {.grid = &p.tank.grid,
                           .shape = mouth,
                           .walls = p.tank.walls,
                           .velocity = velocity,
                           .emitting = true,
                           .step = un_scale(velocity, dt)};
        shift = un_add(shift, def.step);
        def.shift = shift;
        check_ok(p.tank.ctx, un_particles_seed(p.tank.ctx, &p.particles, &def, &volume));
        poured += volume;
    }
    check_near(poured, 0.19 * 0.8 * 0.25, 0.02 * 0.19 * 0.8 * 0.25);
    in_the_plane(&p.particles);
    pond_end(&p);
}

/* Momentum on the faces is the particles'; velocities that are the same everywhere come back. */
static void momentum_is_kept(void **state)
{
    (void)state;
    pond p;
    pond_begin(&p, 2, un_v3(0.1, 0.1, -9), un_v3(0.6, 0.5, 9));
    un_particles *q = &p.particles;
    double momentum[2] = {0}, faces[2] = {0};
    for (int32_t n = 0; n < q->count; n++)
        for (uint64_t a = 0; a < 2; a++) {
            q->v[a][n] = un_random((uint64_t)n, a) - 0.3;
            momentum[a] += q->volume[n] * q->v[a][n];
        }
    un_transfer_to_faces(p.tank.ctx, p.u, p.w, &p.tank.grid, p.bins, q);
    for (int a = 0; a < 2; a++) {
        for (int64_t f = 0; f < p.tank.grid.cell_count; f++) faces[a] += p.w[a][f] * p.u[a][f];
        check_near(faces[a], momentum[a], 1e-12);
    }
    for (int32_t n = 0; n < q->count; n++) q->v[0][n] = 0.5, q->v[1][n] = -2;
    un_transfer_to_faces(p.tank.ctx, p.u, p.w, &p.tank.grid, p.bins, q);
    un_flip flip = {.dt = 0.01, .pic = INFINITY, .pic_quiet = INFINITY, .quiet_speed = 1};
    un_transfer_to_particles(p.tank.ctx, q, p.u, p.u, &p.tank.grid, &flip);
    for (int32_t n = 0; n < q->count; n++) {
        check_near(q->v[0][n], 0.5, 1e-12);
        check_near(q->v[1][n], -2, 1e-12);
    }
    in_the_plane(q);
    pond_end(&p);
}

/* Two particles almost in one place part, in the plane. */
static void correction_parts_what_is_crowded(void **state)
{
    (void)state;
    pond p;
    pond_begin(&p, 2, un_v3(0.1, 0.1, -9), un_v3(0.9, 0.7, 9));
    un_context *ctx = p.tank.ctx;
    un_particles *q = &p.particles;
    const un_grid *g = &p.tank.grid;
    float *phi = un_alloc(ctx, (size_t)g->cell_count, sizeof *phi);
    for (int64_t c = 0; c < g->cell_count; c++) phi[c] = (float)(-3 * g->h);
    int32_t n = q->count / 2;
    q->x[0][n + 1] = q->x[0][n] + 0.05 * g->h;
    q->x[1][n + 1] = q->x[1][n];
    check_ok(ctx, un_bins_sort(p.bins, &p.arena, q));
    double before = INFINITY, after = INFINITY;
    for (int pass = 0; pass < 2; pass++) {
        double *nearest = pass ? &after : &before;
        for (int32_t i = 0; i < q->count; i++)
            for (int32_t j = 0; j < i; j++)
                *nearest = fmin(*nearest, hypot(q->x[0][i] - q->x[0][j], q->x[1][i] - q->x[1][j]));
        if (!pass)
            check_ok(ctx, un_particles_correct(ctx, &p.arena, q, p.bins, phi, p.tank.walls, 0));
    }
    check_near(before, 0.05 * g->h, 1e-9);
    assert_true(after > 2 * before);
    in_the_plane(q);
    un_free(ctx, phi);
    pond_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_particles_a_square),          cmocka_unit_test(four_particles_a_leaf),
        cmocka_unit_test(emission_pours_what_it_should),    cmocka_unit_test(momentum_is_kept),
        cmocka_unit_test(correction_parts_what_is_crowded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
