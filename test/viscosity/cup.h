/* Nodal velocities on a tet mesh with what a viscous solve needs. */
#ifndef UN_TEST_VISCOSITY_CUP_H
#define UN_TEST_VISCOSITY_CUP_H

#include "pressure/tet_pool.h"
#include "viscosity/viscosity.h"

typedef struct cup {
    tet_pool pool;
    un_context *ctx;
    const un_tets *mesh;
    un_viscosity *viscosity;
    un_viscous_walls walls;
    un_vec3 *u;
    float *mu;
    uint8_t *reached;
    un_viscous_def in;
    un_viscous_report report;
} cup;

static inline void cup_begin(cup *c, int32_t threads, un_vec3 size, int32_t coarsest,
                             int32_t finest, tet_detail *detail, const void *arg)
{
    memset(c, 0, sizeof *c);
    tet_pool_begin(&c->pool, threads, size, coarsest, finest, detail, arg);
    c->ctx = c->pool.ctx;
    c->mesh = &c->pool.mesh;
    size_t nodes = 3 * (size_t)c->mesh->node_count;
    check_ok(c->ctx, un_viscosity_create(c->ctx, &c->viscosity));
    c->u = un_alloc_zero(c->ctx, nodes, sizeof *c->u);
    c->mu = un_alloc_zero(c->ctx, nodes, sizeof *c->mu);
    c->reached = un_alloc_zero(c->ctx, nodes, 1);
    for (size_t n = 0; n < nodes; n++) c->pool.phi[n] = -1;
    c->in = (un_viscous_def){.mesh = c->mesh,
                             .u = c->u,
                             .reached = c->reached,
                             .phi = c->pool.phi,
                             .viscosity_all = 100,
                             .density_all = 1000,
                             .dt = 0.01,
                             .tolerance = 1e-12,
                             .keeps_volume = true,
                             .iteration_limit = 5000};
}

/* The tank's sides and solids. */
static inline void cup_walls(cup *c)
{
    tet_pool_walls(&c->pool);
    check_ok(c->ctx, un_viscous_walls_find(c->ctx, &c->walls, &c->pool.walls));
    c->in.tet_walls = &c->pool.walls;
    c->in.walls = &c->walls;
}

/* Instead: nothing is a wall until cup_hold makes it one. */
static inline void cup_no_walls(cup *c)
{
    size_t nodes = (size_t)c->mesh->node_count;
    c->walls.kind = un_alloc_zero(c->ctx, nodes, 1);
    c->walls.u = un_alloc_zero(c->ctx, nodes, sizeof *c->walls.u);
    c->in.walls = &c->walls;
}
static inline void cup_hold(cup *c, int32_t n, un_vec3 u)
{
    c->walls.kind[n] = UN_WALL_STICKS;
    c->walls.u[n] = u;
}

static inline void cup_solve(cup *c)
{
    check_ok(c->ctx, un_viscosity_solve(c->viscosity, &c->pool.arena, &c->in, &c->report));
    un_arena_reset(&c->pool.arena);
    assert_true(c->report.solve.finite);
    if (!c->report.solve.converged)
        fail_msg("%d iterations left %g", c->report.solve.iterations, c->report.solve.residual);
}

static inline void cup_end(cup *c)
{
    un_viscosity_destroy(c->viscosity);
    un_viscous_walls_free(c->ctx, &c->walls);
    un_free(c->ctx, c->u);
    un_free(c->ctx, c->mu);
    un_free(c->ctx, c->reached);
    tet_pool_end(&c->pool);
}

#endif
