/* What method `warp` reports and shows: sums, surface, cells, probes, estimates. */
#include "method/warp.h"

un_status un_warping_measure(un_warping *s, un_step *report)
{
    report->nodes = s->warp.grid.node_count;
    return un_core_measure(&s->core, report, &s->particles, s->ballistic);
}

/* The surface is made in reference space, as on any grid, and moved to space [section 7]. */
un_status un_warping_surface(void *state, un_trimesh *mesh)
{
    un_warping *s = state;
    un_context *ctx = s->core.ctx;
    un_particles view = un_particles_view(&s->particles, s->share);
    un_arena arena;
    double *u[3] = {NULL, NULL, NULL};
    un_arena_free(&s->core.arena); /* the surface has one of its own */
    un_arena_init(&arena, ctx);
    if (s->carried)
        return un_warp_contour(ctx, mesh, s->phi, s->u, s->walls, s->core.def->detail.surface,
                               UN_SMOOTHING);
    un_status status = un_transfer_centres_to_faces(ctx, &arena, u, s->u, &s->warp);
    un_mesher mesher = {.grid = &s->warp.grid,
                        .bins = s->bins,
                        .particles = &view,
                        .walls = s->walls,
                        .phi = s->phi,
                        .u = u,
                        .resolution = s->core.def->detail.surface,
                        .smoothing = UN_SMOOTHING};
    if (status == UN_OK) status = un_surface_mesh(ctx, mesh, &mesher);
    if (status == UN_OK) un_warp_surface(ctx, mesh, &s->warp);
    un_arena_free(&arena);
    return status;
}

un_status un_warping_cells(const void *state, un_cells *out)
{
    const un_warping *s = state;
    un_grid_cells in = {.grid = &s->warp.grid,
                        .phi = s->phi,
                        .open = s->walls->volume,
                        .warp = &s->warp,
                        .node_p = s->p,
                        .centre_u = s->u};
    return un_cells_from_grid(s->core.ctx, out, &in);
}

static double pressure_at(const un_warping *s, un_vec3 x)
{
    const un_scene_def *def = s->core.def;
    return un_warp_pressure_at(s->p, s->node_phi, s->walls, x,
                               un_scale(def->gravity, def->fluid.density));
}

static double pressure_sample(const void *state, un_vec3 x, bool *wet)
{
    const un_warping *s = state;
    *wet = un_core_is_open(&s->core, x) && un_warp_sample(s->phi, &s->warp, x) < 0;
    return *wet ? pressure_at(s, x) : 0;
}

double un_warping_probe(const void *state, const un_probe *which)
{
    const un_warping *s = state;
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return un_warp_front(s->core.ctx, s->phi, &s->warp, which->axis, which->sign);
    case UN_PROBE_HEIGHT:
        return un_warp_height(s->phi, &s->warp, which->at);
    case UN_PROBE_PRESSURE:
        return pressure_at(s, which->at);
    case UN_PROBE_VELOCITY:
        if (s->core.step_count == 0 || !(un_warp_sample(s->phi, &s->warp, which->at) < 0))
            return NAN;
        return un_probe_component(un_warp_sample3(s->u, &s->warp, which->at), which->axis);
    case UN_PROBE_WET:
    case UN_PROBE_FLUX:
        return un_core_probe(&s->core, which, &s->particles);
    case UN_PROBE_FORCE:
        return un_core_force(&s->core, which, pressure_sample, s);
    }
    return NAN;
}

/* Of a node's row: 27 entries and half as many again while it is made. Of a cell beyond what
 * `uniform` has: places, potentials and levels. */
#define ROW_BYTES 800.0
#define CELL_BYTES 220.0
/* Of a particle: place in reference space, affine velocity, share. */
#define PARTICLE_BYTES 64.0
/* Of a cell, where particles form a narrow band. They fill all of the liquid at the start. */
#define BAND_BYTES 130.0

/* Cells along the longest side, and along any, on which it is tried how much the grid gathers in
 * the liquid. */
#define TRIED 16
#define TRIED_LEAST 4

/* Particles at the start over those of a grid that is not warped. */
static un_status gathered(un_context *ctx, const un_scene *scene, double *times)
{
    un_scene small = *scene;
    un_estimate even;
    void *state = NULL;
    un_vec3 size = scene->def.domain.size;
    double narrow = size.z > 0 ? fmin(size.z, fmin(size.x, size.y)) : fmin(size.x, size.y);
    double tried = TRIED_LEAST * fmax(size.z, fmax(size.x, size.y)) / narrow;
    small.def.detail.finest = (int32_t)fmin(scene->def.detail.finest, fmax(TRIED, tried));
    *times = 1;
    UN_TRY(un_uniform_estimate(ctx, &small, &even));
    if (even.particle_count == 0) return UN_OK;
    un_status status = un_method_create(&un_method_warp, ctx, &small, NULL, &state);
    if (status == UN_OK)
        *times = un_method_warp.particles(state)->count / (double)even.particle_count;
    un_method_destroy(&un_method_warp, state);
    return status;
}

un_status un_warping_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    double times;
    UN_TRY(gathered(ctx, scene, &times));
    UN_TRY(un_uniform_estimate(ctx, scene, estimate));
    double even = (double)estimate->particle_count_max, particles = even * times;
    double rows = particles / (estimate->cells[2] == 0 ? 4 : 8);
    estimate->particle_count = (int64_t)((double)estimate->particle_count * times);
    estimate->particle_count_max = (int64_t)particles;
    estimate->bytes += rows * ROW_BYTES + (double)estimate->cell_count * CELL_BYTES +
                       particles * PARTICLE_BYTES +
                       (particles - even) * (double)un_particles_bytes_each();
    if (scene->def.solver.band > 0) estimate->bytes += (double)estimate->cell_count * BAND_BYTES;
    return UN_OK;
}
