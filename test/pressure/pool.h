/* A tank with velocities, a level set and a pressure solver: all that a projection needs. */
#ifndef UN_TEST_PRESSURE_POOL_H
#define UN_TEST_PRESSURE_POOL_H

#include "mesh/tank.h"
#include "pressure/pressure.h"

typedef struct pool {
    tank tank;
    un_pressure *pressure;
    double *u[3];
    uint8_t *known[3];
    float *phi;
    un_projection in;
    un_projection_report report;
} pool;

typedef double level_set(un_vec3 x, const void *arg);
typedef un_vec3 velocity_field(un_vec3 x, const void *arg);

static inline void pool_begin(pool *p, int32_t threads, un_vec3 size, int32_t finest)
{
    memset(p, 0, sizeof *p);
    tank_begin(&p->tank, threads, size, finest);
}

/* After the solids are in. */
static inline void pool_build(pool *p)
{
    un_context *ctx = p->tank.ctx;
    size_t cells = (size_t)p->tank.grid.cell_count;
    tank_build(&p->tank);
    check_ok(ctx, un_pressure_create(ctx, &p->tank.grid, &p->pressure));
    p->phi = un_alloc(ctx, cells, sizeof *p->phi);
    for (int a = 0; a < 3; a++) {
        p->u[a] = un_alloc_zero(ctx, cells, sizeof *p->u[a]);
        p->known[a] = un_alloc_zero(ctx, cells, 1);
    }
    p->in = (un_projection){.u = p->u,
                            .known = p->known,
                            .phi = p->phi,
                            .walls = p->tank.walls,
                            .dt = 0.01,
                            .kick = 0.01,
                            .pace = 1,
                            .density = 1000,
                            .tolerance = 1e-10,
                            .iteration_limit = 3000};
}

static inline void pool_end(pool *p)
{
    un_context *ctx = p->tank.ctx;
    un_pressure_destroy(p->pressure);
    un_free(ctx, p->phi);
    for (int a = 0; a < 3; a++) {
        un_free(ctx, p->u[a]);
        un_free(ctx, p->known[a]);
    }
    tank_end(&p->tank);
}

static inline void pool_fill(pool *p, level_set *phi, const void *arg)
{
    const un_grid *g = &p->tank.grid;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++)
                p->phi[un_grid_cell(g, i, j, k)] = (float)phi(un_grid_center(g, i, j, k), arg);
}

static inline un_vec3 pool_face(const un_grid *g, int axis, int32_t i, int32_t j, int32_t k)
{
    un_vec3 x = un_grid_center(g, i, j, k);
    if (axis == 0) x.x -= 0.5 * g->h;
    if (axis == 1) x.y -= 0.5 * g->h;
    if (axis == 2) x.z -= 0.5 * g->h;
    return x;
}

static inline void pool_move(pool *p, velocity_field *u, const void *arg)
{
    const un_grid *g = &p->tank.grid;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                p->u[0][c] = u(pool_face(g, 0, i, j, k), arg).x;
                p->u[1][c] = u(pool_face(g, 1, i, j, k), arg).y;
                p->u[2][c] = u(pool_face(g, 2, i, j, k), arg).z;
            }
}

static inline void pool_project(pool *p)
{
    check_ok(p->tank.ctx, un_pressure_project(p->pressure, &p->in, &p->report));
    assert_true(p->report.solve.finite);
    assert_true(p->report.solve.converged);
    const char *reason;
    if (p->report.cell_count > 0 && !un_csr_validate(&p->pressure->matrix, &reason))
        fail_msg("%s", reason);
}

/* The fastest of the faces that the projection calls valid. */
static inline double pool_speed(const pool *p)
{
    double max = 0;
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < p->tank.grid.cell_count; f++)
            if (p->known[a][f]) max = fmax(max, isfinite(p->u[a][f]) ? fabs(p->u[a][f]) : INFINITY);
    return max;
}

static inline double flat_phi(un_vec3 x, const void *arg)
{
    return x.y - *(const double *)arg;
}
static inline double everywhere(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return -1;
}
static inline un_vec3 uniform_flow(un_vec3 x, const void *arg)
{
    (void)x;
    return *(const un_vec3 *)arg;
}
static inline un_vec3 wild_flow(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_v3(sin(7 * x.x + 3 * x.y) + 0.3 * x.z, cos(5 * x.y - 2 * x.x), sin(4 * x.z + x.x));
}

#endif
