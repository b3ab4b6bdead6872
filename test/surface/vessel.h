/* A tank with particles, their bins and their level set: all that the output surface needs. */
#ifndef UN_TEST_SURFACE_VESSEL_H
#define UN_TEST_SURFACE_VESSEL_H

#include "mesh/tank.h"
#include "surface/surface.h"
#include "transfer/transfer.h"

typedef struct vessel {
    tank tank;
    un_particles particles;
    un_bins *bins;
    un_arena arena;
    float *normalizer, *colour, *phi;
    double *u[3];
    double volume; /* seeded */
} vessel;

static inline void vessel_begin(vessel *v, int32_t threads, un_vec3 size, int32_t finest)
{
    memset(v, 0, sizeof *v);
    tank_begin(&v->tank, threads, size, finest);
}

/* After the solids are in. */
static inline void vessel_build(vessel *v)
{
    un_context *ctx = v->tank.ctx;
    size_t cells = (size_t)v->tank.grid.cell_count;
    tank_build(&v->tank);
    un_arena_init(&v->arena, ctx);
    check_ok(ctx, un_bins_create(ctx, &v->tank.grid, &v->bins));
    v->normalizer = un_alloc(ctx, cells, sizeof(float));
    v->colour = un_alloc(ctx, cells, sizeof(float));
    v->phi = un_alloc(ctx, cells, sizeof(float));
    for (int a = 0; a < 3; a++) v->u[a] = un_alloc_zero(ctx, cells, sizeof(double));
    check_ok(ctx, un_colour_normalizer(ctx, v->normalizer, &v->tank.grid, v->tank.walls));
}

static inline void vessel_refresh(vessel *v)
{
    check_ok(v->tank.ctx, un_bins_sort(v->bins, &v->arena, &v->particles));
    un_arena_reset(&v->arena);
    check_ok(v->tank.ctx,
             un_colour_level_set(v->tank.ctx, v->phi, v->colour, &v->tank.grid, v->bins,
                                 &v->particles, v->tank.walls, v->normalizer));
}

static inline void vessel_pour(vessel *v, const un_shape *shape, un_vec3 velocity)
{
    double volume;
    un_seed_def def = {
        .grid = &v->tank.grid, .shape = shape, .walls = v->tank.walls, .velocity = velocity};
    check_ok(v->tank.ctx, un_particles_seed(v->tank.ctx, &v->particles, &def, &volume));
    v->volume += volume;
    vessel_refresh(v);
}

static inline void vessel_add(vessel *v, un_vec3 x, double volume)
{
    un_particles *p = &v->particles;
    check_ok(v->tank.ctx, un_particles_reserve(v->tank.ctx, p, p->count + 1));
    int32_t q = p->count++;
    p->x[0][q] = x.x;
    p->x[1][q] = x.y;
    p->x[2][q] = x.z;
    for (int a = 0; a < 3; a++) p->v[a][q] = a + 1;
    p->volume[q] = (float)volume;
    p->flags[q] = 0;
    vessel_refresh(v);
}

static inline un_mesher vessel_mesher(const vessel *v, int32_t resolution)
{
    return (un_mesher){.grid = &v->tank.grid,
                       .bins = v->bins,
                       .particles = &v->particles,
                       .walls = v->tank.walls,
                       .phi = v->phi,
                       .u = v->u,
                       .resolution = resolution,
                       .smoothing = 8};
}

static inline void vessel_end(vessel *v)
{
    un_context *ctx = v->tank.ctx;
    un_particles_free(ctx, &v->particles);
    un_bins_destroy(v->bins);
    un_arena_free(&v->arena);
    un_free(ctx, v->normalizer);
    un_free(ctx, v->colour);
    un_free(ctx, v->phi);
    for (int a = 0; a < 3; a++) un_free(ctx, v->u[a]);
    tank_end(&v->tank);
}

#endif
