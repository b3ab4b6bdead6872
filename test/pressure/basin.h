/* Liquid on a grid that warps around its surface, for tests. */
#ifndef UN_TEST_PRESSURE_BASIN_H
#define UN_TEST_PRESSURE_BASIN_H

#include "mesh/tank.h"
#include "pressure/pressure.h"

typedef struct basin {
    tank tank;
    un_warp warp;
    un_walls *walls;
    un_pressure *pressure;
    un_arena arena;
    un_vec3 *u;
    uint8_t *known;
    double *phi, *p;
    un_warp_projection in;
    un_projection_report report;
} basin;

typedef double level_set(un_vec3 x, const void *arg);

static inline void basin_begin(basin *b, un_vec3 size, int32_t finest)
{
    memset(b, 0, sizeof *b);
    tank_begin(&b->tank, 2, size, finest);
}

/* The grid gathers around the level set. */
static inline void basin_warp(basin *b, double strength, level_set *phi, const void *arg)
{
    un_context *ctx = b->tank.ctx;
    un_vec3 size = b->warp.size;
    un_monitor m = {.n = {65, 65, size.z > 0 ? 65 : 1},
                    .spacing = {size.x / 64, size.y / 64, size.z / 64}};
    m.density = un_alloc(ctx, (size_t)m.n[0] * (size_t)m.n[1] * (size_t)m.n[2], sizeof(float));
    assert_non_null(m.density);
    for (int32_t k = 0, n = 0; k < m.n[2]; k++)
        for (int32_t j = 0; j < m.n[1]; j++)
            for (int32_t i = 0; i < m.n[0]; i++, n++)
                m.density[n] =
                    (float)(1 +
                            strength * exp(-10 * fabs(phi(un_v3(i * m.spacing[0], j * m.spacing[1],
                                                                k * m.spacing[2]),
                                                          arg))));
    un_warp_step step = {.monitor = &m, .strength = strength, .rounds = strength > 0 ? 50 : 0};
    un_warp_move(&b->warp, &step);
    un_free(ctx, m.density);
}

static inline void basin_build(basin *b, double strength, level_set *phi, const void *arg)
{
    un_context *ctx = b->tank.ctx;
    tank_build_exact(&b->tank);
    check_ok(ctx, un_warp_init(&b->warp, ctx, b->tank.scene.def.domain.size,
                               b->tank.scene.def.detail.finest));
    basin_warp(b, strength, phi, arg);
    check_ok(ctx, un_warp_walls_create(ctx, &b->warp, b->tank.bodies, &b->walls));
    check_ok(ctx, un_pressure_create(ctx, NULL, &b->pressure));
    un_arena_init(&b->arena, ctx);
    const un_grid *g = &b->warp.grid;
    b->u = un_alloc_zero(ctx, (size_t)g->cell_count, sizeof *b->u);
    b->known = un_alloc_zero(ctx, (size_t)g->cell_count, 1);
    b->p = un_alloc_zero(ctx, (size_t)g->node_count, sizeof *b->p);
    b->phi = un_alloc_zero(ctx, (size_t)g->node_count, sizeof *b->phi);
    for (int64_t n = 0; n < g->node_count; n++) b->phi[n] = phi(b->warp.node[n], arg);
    b->in = (un_warp_projection){.warp = &b->warp,
                                 .walls = b->walls,
                                 .u = b->u,
                                 .known = b->known,
                                 .phi = b->phi,
                                 .p = b->p,
                                 .dt = 0.01,
                                 .kick = 0.01,
                                 .density = 1000,
                                 .tolerance = 1e-13,
                                 .iteration_limit = 3000};
}

static inline void basin_project(basin *b)
{
    check_ok(b->tank.ctx, un_warp_pressure_project(b->pressure, &b->arena, &b->in, &b->report));
    un_arena_reset(&b->arena);
}

static inline void basin_end(basin *b)
{
    un_context *ctx = b->tank.ctx;
    un_arena_free(&b->arena);
    un_pressure_destroy(b->pressure);
    un_walls_destroy(b->walls);
    un_warp_free(&b->warp);
    un_free(ctx, b->u);
    un_free(ctx, b->known);
    un_free(ctx, b->p);
    un_free(ctx, b->phi);
    tank_end(&b->tank);
}

#endif
