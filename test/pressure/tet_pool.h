/* A tet mesh with velocities, a level set and a pressure solver: all that a projection needs. */
#ifndef UN_TEST_PRESSURE_TET_POOL_H
#define UN_TEST_PRESSURE_TET_POOL_H

#include "check.h"
#include "pressure/pressure.h"

typedef struct tet_pool {
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_tet_pressure *pressure;
    un_vec3 *u;
    uint8_t *known;
    float *phi, *source;
    double *p;
    un_tet_walls walls; /* made by hand; only open and node_open */
    un_vec3 *u_solid;
    un_tet_projection in;
    un_tet_projection_report report;
} tet_pool;

typedef double tet_level_set(un_vec3 x, const void *arg);
typedef un_vec3 tet_velocity(un_vec3 x, const void *arg);

/* What the tree resolves: `level` at points where it is not negative, asked at the centres of the
 * finest leaves. */
typedef int32_t tet_detail(un_vec3 x, const void *arg);

static inline int32_t tet_uniform(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return -1;
}

static inline void tet_pool_begin(tet_pool *p, int32_t threads, un_vec3 size, int32_t coarsest,
                                  int32_t finest, tet_detail *detail, const void *arg)
{
    memset(p, 0, sizeof *p);
    un_context *ctx = p->ctx = check_context_threads(threads);
    un_arena_init(&p->arena, ctx);
    un_octree_init(ctx, &p->tree, size, coarsest, finest);
    size_t most = (size_t)p->tree.n[0] * (size_t)p->tree.n[1] * (size_t)p->tree.n[2];
    double *x[3];
    for (int a = 0; a < 3; a++) x[a] = un_alloc(ctx, most, sizeof *x[a]);
    uint8_t *level = un_alloc(ctx, most, 1);
    int64_t count = 0;
    for (int32_t k = 0; k < p->tree.n[2]; k++)
        for (int32_t j = 0; j < p->tree.n[1]; j++)
            for (int32_t i = 0; i < p->tree.n[0]; i++) {
                un_vec3 c = un_scale(un_v3(i + 0.5, j + 0.5, k + 0.5), p->tree.h);
                int32_t l = detail(c, arg);
                if (l < 0) continue;
                x[0][count] = c.x, x[1][count] = c.y, x[2][count] = c.z;
                level[count++] = (uint8_t)un_clampi(l, 0, p->tree.level_max);
            }
    un_octree_request request = {count, {x[0], x[1], x[2]}, level, NULL};
    check_ok(ctx, un_octree_build(&p->tree, &p->arena, &request));
    for (int a = 0; a < 3; a++) un_free(ctx, x[a]);
    un_free(ctx, level);
    un_tets_init(ctx, &p->mesh);
    check_ok(ctx, un_tets_build(&p->mesh, &p->arena, &p->tree));
    size_t nodes = (size_t)p->mesh.node_count, tets = (size_t)p->mesh.tet_count;
    check_ok(ctx, un_tet_pressure_create(ctx, &p->pressure));
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

static inline void tet_pool_end(tet_pool *p)
{
    un_context *ctx = p->ctx;
    un_tet_pressure_destroy(p->pressure);
    void *blocks[] = {p->u,          p->known,           p->phi,    p->source, p->p,
                      p->walls.open, p->walls.node_open, p->u_solid};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    un_tets_free(&p->mesh);
    un_octree_free(&p->tree);
    un_arena_free(&p->arena);
    check_context_end(ctx);
}

static inline void tet_pool_fill(tet_pool *p, tet_level_set *phi, const void *arg)
{
    for (int32_t n = 0; n < p->mesh.node_count; n++) p->phi[n] = (float)phi(p->mesh.x[n], arg);
}

static inline void tet_pool_move(tet_pool *p, tet_velocity *u, const void *arg)
{
    for (int32_t t = 0; t < p->mesh.tet_count; t++) p->u[t] = u(un_tets_center(&p->mesh, t), arg);
}

/* Solids where wall < 0. Cells beyond the domain's sides are closed as well. */
static inline void tet_pool_walls(tet_pool *p, tet_level_set *wall, const void *arg)
{
    const un_tets *m = &p->mesh;
    if (!p->walls.open) {
        p->walls.open = un_alloc(p->ctx, (size_t)m->tet_count, sizeof *p->walls.open);
        p->walls.node_open = un_alloc(p->ctx, (size_t)m->node_count, sizeof *p->walls.node_open);
    }
    memset(p->walls.node_open, 0, (size_t)m->node_count * sizeof *p->walls.node_open);
    for (int32_t t = 0; t < m->tet_count; t++) {
        double v[4], integral[4], open = 0;
        for (int i = 0; i < 4; i++) {
            un_vec3 x = m->x[m->tet[t][i]], size = p->tree.size;
            double side = fmin(fmin(size.x - x.x, size.y - x.y), size.z - x.z);
            v[i] = wall ? fmin(wall(x, arg), side > -1e-9 ? INFINITY : side) : side;
            if (v[i] == INFINITY || (!wall && side > -1e-9)) v[i] = 1;
        }
        un_tet_open_integrals(v, integral);
        for (int i = 0; i < 4; i++) {
            open += integral[i];
            p->walls.node_open[m->tet[t][i]] += (float)(integral[i] * un_tets_volume(m, t));
        }
        p->walls.open[t] = (float)open;
    }
    p->in.walls = &p->walls;
}

static inline void tet_pool_project(tet_pool *p)
{
    check_ok(p->ctx, un_tet_pressure_project(p->pressure, &p->arena, &p->in, &p->report));
    un_arena_reset(&p->arena);
    assert_true(p->report.solve.finite);
    assert_true(p->report.solve.converged);
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

#endif
