/* A tet mesh in a tank with velocities, a level set and a pressure solver: all that a projection
 * needs. */
#ifndef UN_TEST_PRESSURE_TET_POOL_H
#define UN_TEST_PRESSURE_TET_POOL_H

#include "mesh/tank.h"
#include "pressure/pressure.h"

#define G 9.81

typedef struct tet_pool {
    tank tank;
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_tet_walls walls;
    un_pressure *pressure;
    un_vec3 *u;
    uint8_t *known;
    float *phi;
    double *p;
    un_tet_projection in;
    un_tet_projection_report report;
} tet_pool;

typedef double tet_level_set(un_vec3 x, const void *arg);
typedef un_vec3 tet_velocity(un_vec3 x, const void *arg);

/* The level that a tree must have at x, asked at the centres of all finest cells. */
typedef int32_t tet_detail(un_vec3 x, const void *arg);

static inline int32_t tet_finest(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return UN_LEVELS_MAX;
}
/* The leaves of another tree, at this one's scale: the same mesh, finer. */
static inline int32_t tet_same(un_vec3 x, const void *arg)
{
    const un_octree *tree = arg;
    return tree->level[un_octree_find(tree, x)];
}
/* Refined around random points. */
typedef struct tet_spots {
    int32_t count;
    uint64_t seed;
    double radius;
} tet_spots;
static inline int32_t tet_spotted(un_vec3 x, const void *arg)
{
    const tet_spots *s = arg;
    for (int32_t i = 0; i < s->count; i++) {
        uint64_t k = 3 * (uint64_t)i;
        un_vec3 c = {un_random(k, s->seed), un_random(k + 1, s->seed), un_random(k + 2, s->seed)};
        if (un_length(un_sub(x, c)) < s->radius) return UN_LEVELS_MAX;
    }
    return 0;
}

static inline void tet_pool_begin(tet_pool *p, int32_t threads, un_vec3 size, int32_t coarsest,
                                  int32_t finest, tet_detail *detail, const void *arg)
{
    memset(p, 0, sizeof *p);
    tank_begin(&p->tank, threads, size, finest);
    un_context *ctx = p->ctx = p->tank.ctx;
    un_arena_init(&p->arena, ctx);
    un_octree_init(ctx, &p->tree, size, coarsest, finest);
    const un_octree *tree = &p->tree;
    size_t most = (size_t)tree->n[0] * (size_t)tree->n[1] * (size_t)tree->n[2];
    un_octree_request request = {.count = (int64_t)most};
    double *x[3];
    for (int a = 0; a < 3; a++) request.x[a] = x[a] = un_alloc(ctx, most, sizeof *x[a]);
    uint8_t *level = un_alloc(ctx, most, 1);
    request.level = level;
    for (size_t c = 0; c < most; c++) {
        size_t i = c % (size_t)tree->n[0], j = c / (size_t)tree->n[0];
        x[0][c] = tree->h * ((double)i + 0.5);
        x[1][c] = tree->h * ((double)(j % (size_t)tree->n[1]) + 0.5);
        x[2][c] = tree->h * ((double)(j / (size_t)tree->n[1]) + 0.5);
        level[c] =
            (uint8_t)un_clampi(detail(un_v3(x[0][c], x[1][c], x[2][c]), arg), 0, tree->level_max);
    }
    check_ok(ctx, un_octree_build(&p->tree, &p->arena, &request));
    for (int a = 0; a < 3; a++) un_free(ctx, x[a]);
    un_free(ctx, level);
    un_tets_init(ctx, &p->mesh);
    check_ok(ctx, un_tets_build(&p->mesh, &p->arena, &p->tree));
    un_arena_reset(&p->arena);
    /* with room for the other sides of thin walls */
    size_t nodes = 3 * (size_t)p->mesh.node_count, tets = 3 * (size_t)p->mesh.tet_count;
    check_ok(ctx, un_pressure_create(ctx, NULL, &p->pressure));
    p->u = un_alloc_zero(ctx, tets, sizeof *p->u);
    p->known = un_alloc_zero(ctx, tets, 1);
    p->phi = un_alloc_zero(ctx, nodes, sizeof *p->phi);
    p->p = un_alloc_zero(ctx, nodes, sizeof *p->p);
    p->in = (un_tet_projection){.mesh = &p->mesh,
                                .u = p->u,
                                .known = p->known,
                                .phi = p->phi,
                                .p = p->p,
                                .dt = 0.01,
                                .density = 1000,
                                .tolerance = 1e-10,
                                .iteration_limit = 3000};
}

/* Walls and solids; after the solids are in the tank. Without this everything is open. */
static inline void tet_pool_walls(tet_pool *p)
{
    tank *t = &p->tank;
    tank_build_exact(t);
    tank_move(t, 0, p->in.dt);
    un_tet_walls_init(p->ctx, &p->walls, t->walls);
    check_ok(p->ctx, un_tet_walls_sample(&p->walls, &p->arena, &p->mesh));
    for (int32_t n = p->mesh.node_count - 1; p->mesh.parted && n >= 0; n--)
        p->phi[n] = p->phi[p->mesh.origin[n]];
    p->in.walls = &p->walls;
    p->in.u_solid = p->walls.u_solid;
}

static inline void tet_pool_end(tet_pool *p)
{
    un_context *ctx = p->ctx;
    un_pressure_destroy(p->pressure);
    void *blocks[] = {p->u, p->known, p->phi, p->p};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    if (p->in.walls) un_tet_walls_free(&p->walls);
    un_tets_free(&p->mesh);
    un_octree_free(&p->tree);
    un_arena_free(&p->arena);
    tank_end(&p->tank);
}

static inline void tet_pool_fill(tet_pool *p, tet_level_set *phi, const void *arg)
{
    for (int32_t n = 0; n < p->mesh.node_count; n++) p->phi[n] = (float)phi(p->mesh.x[n], arg);
}

static inline void tet_pool_move(tet_pool *p, tet_velocity *u, const void *arg)
{
    for (int32_t t = 0; t < p->mesh.tet_count; t++) p->u[t] = u(un_tets_center(&p->mesh, t), arg);
}

static inline void tet_pool_forget(tet_pool *p)
{
    memset(p->p, 0, (size_t)p->mesh.node_count * sizeof *p->p);
}

static inline void tet_pool_project(tet_pool *p)
{
    check_ok(p->ctx, un_tet_pressure_project(p->pressure, &p->arena, &p->in, &p->report));
    un_arena_reset(&p->arena);
    assert_true(p->report.solve.finite);
    assert_true(p->report.solve.converged);
    const char *reason;
    if (p->report.node_count > 0 && !un_csr_validate(&p->pressure->matrix, &reason))
        fail_msg("%s", reason);
}

/* The fastest of the tets that the projection calls valid. */
static inline double tet_pool_speed(const tet_pool *p)
{
    double max = 0;
    for (int32_t t = 0; t < p->mesh.tet_count; t++)
        if (p->known[t]) max = fmax(max, un_finite3(p->u[t]) ? un_length(p->u[t]) : INFINITY);
    return max;
}

typedef struct tet_tilt {
    un_vec3 up;
    double height;
} tet_tilt;

static inline double tet_tilted(un_vec3 x, const void *arg)
{
    const tet_tilt *t = arg;
    return un_dot(x, t->up) - t->height;
}
static inline double tet_everywhere(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return -1;
}
static inline un_vec3 tet_steady(un_vec3 x, const void *arg)
{
    (void)x;
    return *(const un_vec3 *)arg;
}
static inline un_vec3 tet_wild(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_v3(sin(7 * x.x + 3 * x.y) + 0.3 * x.z, cos(5 * x.y - 2 * x.x), sin(4 * x.z + x.x));
}
static inline un_vec3 tet_direction(uint64_t seed)
{
    return un_normalize(
        un_v3(un_random(0, seed) - 0.5, un_random(1, seed) - 0.5, un_random(2, seed) - 0.5));
}

/* Water under the plane, falling for a step and projected: the fastest tet, in g dt. */
static inline double tet_pool_rest(tet_pool *p, const tet_tilt *tilt)
{
    un_vec3 fall = un_scale(tilt->up, -G * p->in.dt);
    tet_pool_fill(p, tet_tilted, tilt);
    tet_pool_move(p, tet_steady, &fall);
    tet_pool_forget(p);
    tet_pool_project(p);
    return tet_pool_speed(p) / (G * p->in.dt);
}

#endif
