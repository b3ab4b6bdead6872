/* Projection on an octree's leaves: still water at any tilt, across changes of size and at walls
 * that cut them; order in a circle and a sphere; multigrid; threads. In 2D and 3D. */
#include "mesh/tank.h"
#include "pressure/pressure.h"

#define G 9.81

typedef struct leaf_pool {
    tank tank;
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_leaves leaves;
    un_leaf_walls walls;
    un_pressure *pressure;
    float *phi;
    double *u, *before, *p;
    uint8_t *known;
    un_leaf_projection in;
    un_leaf_projection_report report;
} leaf_pool;

/* Leaves of many sizes: finest around random spots. base: the leaves of another tree instead, at
 * this one's scale. */
static void pool_tree(leaf_pool *p, bool flat, int32_t coarsest, int32_t finest, uint64_t seed,
                      const un_octree *base)
{
    un_vec3 size = {1, 1, flat ? 0 : 1};
    memset(p, 0, sizeof *p);
    tank_begin(&p->tank, 2, size, finest);
    p->ctx = p->tank.ctx;
    un_arena_init(&p->arena, p->ctx);
    un_octree_init(p->ctx, &p->tree, size, coarsest, finest);
    const un_octree *tree = &p->tree;
    int64_t n[3] = {tree->n[0], tree->n[1], tree->n[2]}, count = n[0] * n[1] * n[2], parts = 1;
    if (base) { /* each of its leaves is divided so many times along each axis */
        parts = tree->n[0] / base->n[0];
        count = base->leaf_count * (flat ? parts * parts : parts * parts * parts);
    }
    double *x[3];
    uint8_t *level = un_alloc(p->ctx, (size_t)count, 1);
    for (int a = 0; a < 3; a++) x[a] = un_alloc(p->ctx, (size_t)count, sizeof *x[a]);
    for (int64_t i = 0; i < count; i++) {
        if (base) {
            int32_t leaf = (int32_t)(i % base->leaf_count);
            int64_t part = i / base->leaf_count;
            un_vec3 corner = un_octree_corner(base, leaf);
            double edge = un_octree_size(base, base->level[leaf]) / (double)parts;
            x[0][i] = corner.x + edge * ((double)(part % parts) + 0.5);
            x[1][i] = corner.y + edge * ((double)(part / parts % parts) + 0.5);
            x[2][i] = flat ? 0 : corner.z + edge * ((double)(part / parts / parts) + 0.5);
            level[i] = base->level[leaf];
            continue;
        }
        int64_t at[3] = {i % n[0], i / n[0] % n[1], i / (n[0] * n[1])};
        for (int a = 0; a < 3; a++) x[a][i] = a == 2 && flat ? 0 : tree->h * ((double)at[a] + 0.5);
        un_vec3 here = {x[0][i], x[1][i], x[2][i]};
        level[i] = 0;
        for (uint64_t k = 0; k < 8; k++) {
            un_vec3 spot = {un_random(3 * k, seed), un_random(3 * k + 1, seed),
                            flat ? 0 : un_random(3 * k + 2, seed)};
            if (un_length(un_sub(here, spot)) < 0.12) level[i] = (uint8_t)tree->level_max;
        }
    }
    un_octree_request request = {.count = count, .x = {x[0], x[1], x[2]}, .level = level};
    check_ok(p->ctx, un_octree_build(&p->tree, &p->arena, &request));
    un_arena_reset(&p->arena);
    for (int a = 0; a < 3; a++) un_free(p->ctx, x[a]);
    un_free(p->ctx, level);
    check_ok(p->ctx, un_leaves_build(&p->leaves, p->ctx, &p->tree));
}

/* After the solids are in the tank. */
static void pool_walls(leaf_pool *p)
{
    un_context *ctx = p->ctx;
    size_t leaves = (size_t)p->leaves.count, faces = (size_t)p->leaves.face_count;
    tank_build_exact(&p->tank);
    check_ok(ctx, un_leaf_walls_sample(&p->walls, ctx, p->tank.walls, &p->leaves));
    check_ok(ctx, un_pressure_create(ctx, NULL, &p->pressure));
    p->phi = un_alloc_zero(ctx, leaves, sizeof *p->phi);
    p->p = un_alloc_zero(ctx, leaves, sizeof *p->p);
    p->u = un_alloc_zero(ctx, faces, sizeof *p->u);
    p->before = un_alloc_zero(ctx, faces, sizeof *p->before);
    p->known = un_alloc_zero(ctx, faces, 1);
    p->in = (un_leaf_projection){.leaves = &p->leaves,
                                 .u = p->u,
                                 .known = p->known,
                                 .phi = p->phi,
                                 .walls = &p->walls,
                                 .p = p->p,
                                 .dt = 0.01,
                                 .kick = 0.01,
                                 .density = 1000,
                                 .tolerance = 1e-13,
                                 .iteration_limit = 3000,
                                 .pace = 1};
}

static void pool_end(leaf_pool *p)
{
    un_context *ctx = p->ctx;
    void *blocks[] = {p->phi, p->p, p->u, p->before, p->known};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    un_pressure_destroy(p->pressure);
    un_leaf_walls_free(&p->walls);
    un_leaves_free(&p->leaves);
    un_octree_free(&p->tree);
    un_arena_free(&p->arena);
    tank_end(&p->tank);
}

static void pool_project(leaf_pool *p)
{
    const char *reason;
    check_ok(p->ctx, un_leaf_pressure_project(p->pressure, &p->arena, &p->in, &p->report));
    un_arena_reset(&p->arena);
    assert_true(p->report.solve.finite);
    assert_true(p->report.solve.converged);
    if (p->report.cell_count > 0 && !un_csr_validate(&p->pressure->matrix, &reason))
        fail_msg("%s", reason);
}

/* The fastest face after one projection of still water, in g dt. up and height: of the surface;
 * gravity points the other way. */
static double rest(leaf_pool *p, un_vec3 up, double height)
{
    double max = 0, length = un_length(up);
    for (int32_t c = 0; c < p->leaves.count; c++)
        p->phi[c] = (float)(un_dot(up, p->leaves.x[c]) - height);
    memset(p->u, 0, (size_t)p->leaves.face_count * sizeof *p->u);
    memset(p->p, 0, (size_t)p->leaves.count * sizeof *p->p);
    un_leaf_accelerate(p->ctx, p->u, p->before, un_scale(up, -G * p->in.kick / length), &p->leaves,
                       &p->walls);
    pool_project(p);
    for (int32_t f = 0; f < p->leaves.face_count; f++)
        if (p->known[f]) max = fmax(max, fabs(p->u[f]));
    return max / (G * p->in.kick);
}

/* A direction whose level set is exact in single precision. */
static un_vec3 direction(uint64_t seed, bool flat)
{
    un_vec3 d = {floor(64 * un_random(0, seed)) - 32, floor(64 * un_random(1, seed)) - 32,
                 flat ? 0 : floor(64 * un_random(2, seed)) - 32};
    return un_scale(un_dot(d, d) > 0 ? d : un_v3(0, 32, 0), 1.0 / 32);
}

static void still_water_stays_still(void **state)
{
    (void)state;
    int64_t unknowns = 0;
    double worst = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        leaf_pool p;
        bool flat = seed % 3 != 0, solids = seed % 2;
        pool_tree(&p, flat, 4, flat ? 64 : 16, seed, NULL);
        if (solids) {
            tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.4, 0.5, flat ? 0 : 0.45), 0.23),
                       un_v3(0, 0, 0));
            tank_solid(&p.tank, tank_plane(&p.tank, un_v3(0.8, 0.15, 0), direction(seed, flat)),
                       un_v3(0, 0, 0));
        }
        pool_walls(&p);
        for (uint64_t k = 0; k < 6; k++) {
            un_vec3 up = k == 0 ? un_v3(0, 1, 0) : direction(100 + 10 * seed + k, flat);
            double height = un_dot(up, un_v3(0.5, 0.5, flat ? 0 : 0.5)) + 0.125 * ((double)k - 2);
            worst = fmax(worst, rest(&p, up, height));
            unknowns += p.report.cell_count;
        }
        pool_end(&p);
    }
    if (getenv("VERBOSE")) print_message("rest %.3g g dt\n", worst);
    assert_true(unknowns > 20000);
    check_below(worst, 1e-8);
}

/* ---- order ---- */

typedef struct errors {
    double p_max, p_rms, u_max, u_rms;
} errors;

/* u = x - x0 is the gradient of a pressure that is zero on a circle or a sphere. */
static errors round_errors(leaf_pool *p)
{
    const un_leaves *m = &p->leaves;
    un_vec3 x0 = {0.51, 0.48, m->dim == 2 ? 0 : 0.505};
    double radius = 0.37, to_pascal = p->in.density / p->in.kick, count = 0, faces = 0;
    errors e = {0};
    for (int32_t c = 0; c < m->count; c++)
        p->phi[c] = (float)(un_length(un_sub(m->x[c], x0)) - radius);
    for (int32_t f = 0; f < m->face_count; f++)
        p->u[f] = un_vec3_at(un_sub(un_leaf_face_center(m, f), x0), un_leaf_face_axis(m, f));
    pool_project(p);
    for (int32_t c = 0; c < m->count; c++) {
        if (!(p->phi[c] < 0)) continue;
        un_vec3 d = un_sub(m->x[c], x0);
        double off = fabs(p->p[c] / to_pascal - 0.5 * (un_dot(d, d) - radius * radius));
        e.p_max = fmax(e.p_max, off);
        e.p_rms += off * off * un_leaf_volume(m, c);
        count += un_leaf_volume(m, c);
    }
    for (int32_t f = 0; f < m->face_count; f++) {
        int32_t below, above;
        un_leaf_face_leaves(m, f, &below, &above);
        if (!p->known[f] || !(p->phi[below] < 0) || !(p->phi[above] < 0)) continue;
        double volume = un_leaf_volume(m, m->face_side[f] / 6);
        e.u_max = fmax(e.u_max, fabs(p->u[f]));
        e.u_rms += p->u[f] * p->u[f] * volume;
        faces += volume;
    }
    e.p_rms = sqrt(e.p_rms / count);
    e.u_rms = sqrt(e.u_rms / faces);
    return e;
}

static void check_order(bool flat, int32_t coarsest, int32_t finest, int doublings)
{
    leaf_pool base;
    errors e[4];
    pool_tree(&base, flat, coarsest, finest, 3, NULL);
    for (int k = 0; k <= doublings; k++) {
        leaf_pool p;
        pool_tree(&p, flat, coarsest << k, finest << k, 3, &base.tree);
        pool_walls(&p);
        e[k] = round_errors(&p);
        pool_end(&p);
    }
    tank_build_exact(&base.tank);
    un_leaves_free(&base.leaves);
    un_octree_free(&base.tree);
    un_arena_free(&base.arena);
    tank_end(&base.tank);
    double n = doublings, p_rms = log2(e[0].p_rms / e[doublings].p_rms) / n,
           p_max = log2(e[0].p_max / e[doublings].p_max) / n,
           u_rms = log2(e[0].u_rms / e[doublings].u_rms) / n;
    if (getenv("VERBOSE"))
        print_message("%s: p %.2f (max %.2f), its gradient %.2f (max %.2f)\n",
                      flat ? "circle" : "sphere", p_rms, p_max, u_rms,
                      log2(e[0].u_max / e[doublings].u_max) / n);
    assert_true(p_rms > 1.8);
    assert_true(u_rms > 1.4);
}

static void pressure_in_a_circle_is_second_order(void **state)
{
    (void)state;
    check_order(true, 8, 32, 3);
}

static void pressure_in_a_sphere_is_second_order(void **state)
{
    (void)state;
    check_order(false, 8, 16, 2);
}

/* ---- solver ---- */

/* The same leaves divided again and again, to the tolerance of runs: multigrid takes as many
 * iterations for each. */
static void iterations_do_not_grow(void **state)
{
    (void)state;
    const char *sizes =
        getenv("SIZES"); /* 5: four million cells, for which there is no time here */
    int last = sizes ? atoi(sizes) : 3, first = 2;
    int32_t iterations[8] = {0}, cells[8] = {0};
    leaf_pool base;
    pool_tree(&base, false, 4, 16, 3, NULL);
    for (int k = first; k <= last && k < 8; k++) {
        leaf_pool p;
        pool_tree(&p, false, 4 << k, 16 << k, 3, &base.tree);
        pool_walls(&p);
        p.in.tolerance = 1e-4;
        round_errors(&p);
        iterations[k] = p.report.solve.iterations;
        cells[k] = p.report.cell_count;
        if (getenv("VERBOSE")) print_message("%d cells: %d iterations\n", cells[k], iterations[k]);
        pool_end(&p);
    }
    tank_build_exact(&base.tank);
    un_leaves_free(&base.leaves);
    un_octree_free(&base.tree);
    un_arena_free(&base.arena);
    tank_end(&base.tank);
    assert_true(cells[first] > 8000 && cells[last] > 7 * cells[first]);
    check_below(iterations[last], 1.2 * iterations[first]);
}

/* ---- heaps ---- */

/* Liquid that stands twice in one place is parted, no faster than HEAP_TIME allows however short
 * the steps are, and particles gain no speed by it: a jet that turned under a lid left it with
 * twice its speed, the more the shorter the steps. steps: an ordinary one and a very short one. */
static void heaps_do_not_burst(void **state)
{
    (void)state;
    const double steps[2] = {1e-2, 1e-5};
    double fastest[2];
    for (int k = 0; k < 2; k++) {
        leaf_pool p;
        pool_tree(&p, true, 8, 32, 1, NULL);
        pool_walls(&p);
        float *colour = un_alloc(p.ctx, (size_t)p.leaves.count, sizeof *colour);
        double *before = un_alloc(p.ctx, (size_t)p.leaves.face_count, sizeof *before);
        for (int32_t c = 0; c < p.leaves.count; c++) {
            un_vec3 x = p.leaves.x[c];
            p.phi[c] = (float)(x.y - 0.5);
            colour[c] = x.x < 0.25 && x.y < 0.25 ? 3 : 1;
        }
        memset(before, 0, (size_t)p.leaves.face_count * sizeof *before);
        p.in.colour = colour;
        p.in.before = before;
        p.in.dt = p.in.kick = steps[k];
        p.in.pace = 0.3;
        pool_project(&p);
        double gained = 0;
        fastest[k] = 0;
        for (int32_t f = 0; f < p.leaves.face_count; f++) {
            if (!p.known[f]) continue;
            fastest[k] = fmax(fastest[k], fabs(p.u[f]));
            gained = fmax(gained, fabs(p.u[f] - before[f]));
        }
        assert_true(fastest[k] > 1); /* it is parted */
        check_below(gained, 1e-3 * fastest[k]);
        un_free(p.ctx, before);
        un_free(p.ctx, colour);
        pool_end(&p);
    }
    check_below(fastest[1], 5 * fastest[0]);
}

/* Water beside one side of the domain, and a heap in it or not. */
static void project_beside(leaf_pool *p, int axis, float *colour, float heap)
{
    for (int32_t c = 0; c < p->leaves.count; c++) {
        un_vec3 x = p->leaves.x[c];
        p->phi[c] = (float)((axis == 0 ? x.x : x.y) - 0.5);
        colour[c] = x.x < 0.25 && x.y < 0.25 ? heap : 1;
    }
    memset(p->u, 0, (size_t)p->leaves.face_count * sizeof *p->u);
    memset(p->p, 0, (size_t)p->leaves.count * sizeof *p->p);
    un_leaf_accelerate(p->ctx, p->u, p->before, un_v3(-0.1, -0.05, 0), &p->leaves, &p->walls);
    p->in.colour = colour;
    pool_project(p);
}

/* What parts a heap has the matrix of the pressure, which is set up once for both. The next
 * projection has another matrix, here with as many rows: its answer is that of a solver that has
 * seen nothing before, bit by bit. */
static void heaps_share_one_matrix(void **state)
{
    (void)state;
    leaf_pool used, fresh;
    pool_tree(&used, true, 16, 16, 1, NULL);
    pool_walls(&used);
    pool_tree(&fresh, true, 16, 16, 1, NULL);
    pool_walls(&fresh);
    float *colour = un_alloc(used.ctx, (size_t)used.leaves.count, sizeof *colour);
    project_beside(&used, 0, colour, 3);
    assert_true(used.pressure->again);
    int64_t rows = used.report.cell_count;
    project_beside(&used, 1, colour, 1);
    project_beside(&fresh, 1, colour, 1);
    assert_int_equal(used.report.cell_count, rows);
    assert_int_equal(used.report.solve.iterations, fresh.report.solve.iterations);
    assert_memory_equal(used.p, fresh.p, (size_t)used.leaves.count * sizeof *used.p);
    un_free(used.ctx, colour);
    pool_end(&used);
    pool_end(&fresh);
}

/* ---- walls that let go ---- */

/* A surface that pulls everywhere alike moves nothing, however close to it a centre at a wall is: a
 * void at the wall would pull as well. */
static void steady_pull_moves_nothing(void **state)
{
    (void)state;
    const double pull = 100, thin[2] = {0.2, 1e-4};
    for (int k = 0; k < 2; k++) {
        leaf_pool p;
        pool_tree(&p, true, 16, 16, 1, NULL);
        pool_walls(&p);
        double h = p.tree.h, *surface;
        surface = un_alloc(p.ctx, (size_t)p.leaves.count, sizeof *surface);
        for (int32_t c = 0; c < p.leaves.count; c++) {
            p.phi[c] = (float)(p.leaves.x[c].y - (0.5 + thin[k]) * h);
            surface[c] = -pull;
        }
        p.in.surface = surface;
        p.in.let_go = 1e-6;
        pool_project(&p);
        assert_true(p.report.cell_count > 0);
        for (int32_t f = 0; f < p.leaves.face_count; f++)
            if (p.known[f]) check_below(fabs(p.u[f]), 1e-12);
        un_free(p.ctx, surface);
        pool_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(still_water_stays_still),
        cmocka_unit_test(pressure_in_a_circle_is_second_order),
        cmocka_unit_test(pressure_in_a_sphere_is_second_order),
        cmocka_unit_test(iterations_do_not_grow),
        cmocka_unit_test(heaps_do_not_burst),
        cmocka_unit_test(heaps_share_one_matrix),
        cmocka_unit_test(steady_pull_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
