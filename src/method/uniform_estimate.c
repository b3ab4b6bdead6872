/* What a uniform run will take: cells, particles, memory. */
#include "method/method.h"

#include "pressure/pressure.h"
#include "surface/surface.h"
#include "viscosity/viscosity.h"

/* Liquid is counted on a grid no finer than this; its volume then tells the number of particles. */
#define COUNT_CELLS 96

/* Per vertex of the surface mesh, with its triangles and what smoothing takes: measured. */
#define MESH_BYTES 110

/* Of a particle, to find and even sheets and threads: measured. */
#define SHEETS_BYTES 20

/* Of a particle, without the spare arrays for sorting. */
#define COPY_BYTES 54

/* Of a particle that has density and viscosity of its own, and a copy of both. */
#define MIXED_BYTES 24

/* Where particles form a narrow band. Of a cell, without what there is along each axis; of a
 * particle: they fill all of the liquid in the first step, beside those that stand for cells. */
#define BAND_BYTES 2
#define NARROWED_BYTES 20

/* Whatever the size: sorting's counts, files' buffers; and the least arena of a step. */
#define FIXED_BYTES 0.5e6
#define ARENA_BYTES 1e6

/* Of a half cell. */
static double half_cell(const un_grid *grid)
{
    return grid->volume / (1 << grid->dim);
}

/* Vertices of the output surface. Of a body of this volume, as ragged as a splash; in 2D its area
 * is meshed. */
static double surface_vertices(const un_grid *grid, double volume, double fine)
{
    return grid->dim == 2 ? volume / (fine * fine) : 18 * pow(volume, 2.0 / 3) / (fine * fine);
}

un_status un_uniform_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    const un_scene_def *def = &scene->def;
    un_grid grid = un_grid_make(def->domain.size, def->detail.finest);
    un_grid coarse = un_grid_make(def->domain.size, un_clampi(def->detail.finest, 1, COUNT_CELLS));
    *estimate =
        (un_estimate){.cells = {grid.n[0] - 2, grid.n[1] - 2, grid.dim == 2 ? 0 : grid.n[2] - 2},
                      .cell_size = grid.h,
                      .cell_count = grid.cell_count};
    un_bodies *bodies;
    un_walls *walls;
    UN_TRY(un_bodies_create(ctx, scene, &bodies));
    un_status status = un_walls_create(ctx, &coarse, bodies, false, &walls);
    if (status != UN_OK) {
        un_bodies_destroy(bodies);
        return status;
    }
    double half = 0.5 * coarse.h, per_coarse = coarse.h / grid.h;
    per_coarse = grid.dim == 2 ? per_coarse * per_coarse : per_coarse * per_coarse * per_coarse;
    double start = 0, emitted = 0;
    if (def->liquid.shape) {
        un_seed_def seed = {.grid = &coarse, .shape = def->liquid.shape, .walls = walls};
        int64_t count = un_particles_seed_count(ctx, &seed);
        if (count < 0) status = UN_ERROR_MEMORY;
        start += (double)count * per_coarse;
    }
    double duration = def->frames.count / def->frames.rate;
    for (int32_t n = 0; n < def->source_count && status == UN_OK; n++) {
        const un_source *source = &def->sources[n];
        if (source->kind != UN_SOURCE_EMITTER || source->from > duration) continue;
        un_seed_def seed = {.grid = &coarse, .shape = source->shape, .walls = walls};
        int64_t filling = un_particles_seed_count(ctx, &seed), entering = 0;
        double speed = un_length(source->velocity);
        if (speed > 0) {
            /* points that enter while the stream moves by half a cell */
            seed.emitting = true;
            seed.step = un_scale(source->velocity, half / speed);
            entering = un_particles_seed_count(ctx, &seed);
        }
        if (filling < 0 || entering < 0) status = UN_ERROR_MEMORY;
        double seconds = fmin(source->to, duration) - fmax(source->from, 0);
        emitted += (double)filling * per_coarse;
        if (source->from <= 0) start += (double)filling * per_coarse;
        emitted += (double)entering * per_coarse * speed * fmax(seconds, 0) / half;
        if (source->from <= 0) emitted -= (double)filling * per_coarse;
    }
    un_walls_destroy(walls);
    un_bodies_destroy(bodies);
    UN_TRY(status);
    estimate->particle_count = (int64_t)start;
    estimate->particle_count_max = (int64_t)(start + emitted);

    /* Arrays of the grid and of the particles, and the larger of what a step and what the output
     * surface takes for itself for a while; a step has a copy of particles and pressure to go back
     * to. */
    double particles = start + emitted, cells = (double)grid.cell_count;
    double grid_bytes = cells * (3 * 4 + grid.dim * (2 * 8 + 1)) +
                        (double)un_walls_bytes(&grid, scene) + (double)un_bins_bytes(&grid);
    double step_bytes = ARENA_BYTES + particles * (12 + COPY_BYTES) + cells * (1 + 8);
    if (grid.dim == 3) step_bytes += particles * SHEETS_BYTES;
    double surface_bytes = 0;
    if (def->output.surface) {
        /* meshed and smoothed */
        double fine = grid.h * def->detail.finest / fmax(def->detail.surface, 1);
        surface_bytes = un_surface_mesh_bytes(&grid, def->detail.surface, particles) +
                        MESH_BYTES * surface_vertices(&grid, particles * half_cell(&grid), fine);
    }
    estimate->bytes = FIXED_BYTES + grid_bytes + particles * (double)un_particles_bytes_each() +
                      un_pressure_bytes(&grid, particles / (1 << grid.dim)) +
                      fmax(step_bytes, surface_bytes);
    if (un_scene_viscous(def))
        estimate->bytes += un_viscosity_grid_bytes(&grid, particles / (1 << grid.dim));
    else if (def->solver.band > 0)
        estimate->bytes += cells * (BAND_BYTES + 2 * 8 * grid.dim) + particles * NARROWED_BYTES;
    if (un_scene_mixed(def)) estimate->bytes += particles * MIXED_BYTES + cells * 2 * 4;
    return UN_OK;
}
