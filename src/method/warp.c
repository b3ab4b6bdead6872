/* Method `warp`: a regular grid that warps towards what matters [Ibayashi18].
 *
 * Numbers in brackets are the lines of the paper's Algorithm 1. A step begins at its line 5: grid
 * and level set are made at the end of the step before, so that outputs show what the next step
 * sees.
 *
 * Where it departs from the paper:
 *  - the potential that moves the grid obeys a Monge-Ampere equation unless sizing.warp asks for
 *    the paper's, and a certificate keeps cells from inverting (mesh/warp_solve.c, mesh/warp.c);
 *  - particles fill the liquid and carry velocity (APIC) and surface: there is no level set to
 *    advect, and what moves is never read from a moving grid. solver.band leaves a narrow band of
 *    them, as in the paper (advect/warp_band.c), solver.surface = "level-set" none: then the grid
 *    carries level set and velocities (method/warp_track.c, advect/warp_carry.c);
 *  - there the level set is at cell centres, not at nodes, and paths lead back through space to the
 *    grid before it moved, not through reference space against the velocity of the grid;
 *  - one map, between cell centres, locates particles and interpolates (mesh/warp.h);
 *  - pressure: see pressure/warp.c;
 *  - thin walls part the liquid: a cell belongs to one side, nodes between sides have a pressure
 *    and a level set for each (mesh/warp_parts.c). Velocities are extended and interpolated across
 *    such walls; the paper has no walls thinner than cells;
 *  - particles split and merge as the grid gathers and spreads (particles/warp_resize.c);
 *  - as in `uniform`: leapfrog, position correction, crowding, the ledger, walls that let go. */
#include "method/warp.h"

#include "advect/advect.h"

enum {
    STAGE_WALLS,
    STAGE_CORRECT,
    STAGE_TO_GRID,
    STAGE_PRESSURE,
    STAGE_EXTRAPOLATE,
    STAGE_TO_PARTICLES,
    STAGE_SHEETS,
    STAGE_ADVECT,
    STAGE_SOURCES,
    STAGE_WARP,
    STAGE_SORT,
    STAGE_RESIZE,
    STAGE_LEVEL_SET,
    STAGE_MEASURE
};
static const char *const stages[] = {
    "walls",   "correct", "to_grid", "pressure", "extrapolate", "to_particles", "sheets", "advect",
    "sources", "warp",    "sort",    "resize",   "level_set",   "measure",      NULL};

static un_status step(void *state, double dt, un_step *report)
{
    un_warping *s = state;
    double clock = un_seconds(), start = clock, kick = un_core_kick(&s->core, dt);
    un_projection_report projection;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_core_move_bodies(&s->core, dt)); /* move the solids */
    /* where thin walls part the liquid, pressure and particles meet them where they were */
    if (s->core.bodies->scripted && !s->walls->parted) UN_TRY(un_warping_find_walls(s));
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_warping_correct(s)); /* spread the particles */
    un_stage_end(report, STAGE_CORRECT, &clock);
    UN_TRY(un_warping_to_grid(s, dt)); /* [5] velocities, gravity */
    un_stage_end(report, STAGE_TO_GRID, &clock);
    UN_TRY(un_warping_project(s, dt, &projection)); /* [6] pressure */
    UN_TRY(un_core_touch_bodies(&s->core, dt));
    un_stage_end(report, STAGE_PRESSURE, &clock);
    UN_TRY(un_warping_extend(s, dt));
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    un_core_advance_bodies(&s->core, dt); /* those that the liquid moves */
    UN_TRY(un_warping_to_particles(s, kick));
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    UN_TRY(un_warping_even_sheets(s, dt));
    un_stage_end(report, STAGE_SHEETS, &clock);
    UN_TRY(un_warping_advect(s, dt)); /* [3, 4] */
    un_stage_end(report, STAGE_ADVECT, &clock);
    un_core_tick(&s->core, dt);
    UN_TRY(un_warping_remove(s));
    UN_TRY(un_warping_emit(s, dt));
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(un_warping_move_grid(s, dt)); /* [1, 2] */
    un_stage_end(report, STAGE_WARP, &clock);
    UN_TRY(un_warping_find_walls(s));
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_warping_sort(s));
    un_stage_end(report, STAGE_SORT, &clock);
    UN_TRY(un_warping_carry(s, dt)); /* [3, 4] deep in the liquid */
    un_stage_end(report, STAGE_ADVECT, &clock);
    UN_TRY(un_warping_resize(s));
    un_stage_end(report, STAGE_RESIZE, &clock);
    UN_TRY(un_warping_level_set(s)); /* [7] */
    un_stage_end(report, STAGE_LEVEL_SET, &clock);

    UN_TRY(un_warping_measure(s, report));
    report->cells = projection.cell_count;
    un_stage_end(report, STAGE_MEASURE, &clock);
    un_core_report(&s->core, report, &projection.solve, projection.max_divergence, start);
    return UN_OK;
}

static double step_limit(void *state)
{
    const un_warping *s = state;
    const un_scene_def *def = s->core.def;
    double least = s->warp.grid.h * s->warp.certificate, rate = s->rate;
    /* bodies cross one cell in a step: with solver.cfl of them a light crate that leaves the water
     * flung particles at 10 to 14 m/s, with one at 4 */
    if (s->core.bodies->free_count > 0)
        rate = fmax(rate, def->solver.cfl * un_bodies_speed(s->core.bodies) / least);
    double flow = un_step_limit_flow(def, least, rate);
    if (!(def->fluid.surface_tension > 0)) return flow;
    double apart = un_tension_warp_spacing(s->core.ctx, &s->warp, s->phi);
    return fmin(flow, un_tension_step_limit(def, apart));
}

static const un_particles *particles(const void *state)
{
    return &((const un_warping *)state)->particles;
}

/* ---- life ---- */

static void end(void *state)
{
    un_warping *s = state;
    un_context *ctx = s->core.ctx;
    un_bins_destroy(s->bins);
    un_pressure_destroy(s->pressure);
    un_particles_free(ctx, &s->particles);
    void *arrays[] = {s->share, s->normalizer, s->colour, s->phi, s->source, s->node_phi,
                      s->p,     s->u,          s->known,  s->was, s->flow};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    un_inflow_free(ctx, &s->inflow);
    un_walls_destroy(s->walls);
    un_monitor_free(ctx, &s->monitor);
    un_band_free(ctx, &s->band);
    un_warp_free(&s->warp);
    un_core_free(&s->core);
}

static un_status allocate(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    const un_scene_def *def = s->core.def;
    UN_TRY(un_warp_init(&s->warp, ctx, def->domain.size, def->detail.finest));
    UN_TRY(un_monitor_init(ctx, &s->monitor, def->domain.size, def->detail.finest));
    UN_TRY(un_warp_walls_create(ctx, &s->warp, s->core.bodies, &s->walls));
    UN_TRY(un_bins_create(ctx, &s->warp.grid, &s->bins));
    UN_TRY(un_pressure_create(ctx, NULL, &s->pressure));
    UN_TRY(un_pressure_configure(s->pressure->solver, def));
    /* rows of 27 entries: multigrid is best at any size */
    if (strcmp(def->solver.kind, "auto") == 0)
        un_solver_set_kind(s->pressure->solver, UN_SOLVER_GEOMETRIC);
    size_t cells = (size_t)s->warp.grid.cell_count;
    UN_TRY(un_band_init(ctx, &s->band, def->solver.band, &s->warp.grid, true));
    UN_ALLOC(ctx, s->normalizer, cells);
    UN_ALLOC(ctx, s->colour, cells);
    UN_ALLOC(ctx, s->phi, cells);
    UN_ALLOC(ctx, s->source, cells);
    s->phi_capacity = s->p_capacity = (size_t)s->walls->parts.place_count;
    UN_ALLOC(ctx, s->node_phi, s->phi_capacity);
    s->p = un_alloc_zero(ctx, s->p_capacity, sizeof *s->p);
    s->u = un_alloc_zero(ctx, cells, sizeof *s->u);
    s->known = un_alloc_zero(ctx, cells, 1);
    return s->p && s->u && s->known ? un_warping_track_init(s) : UN_ERROR_MEMORY;
}

static un_status fill(void *state)
{
    un_warping *s = state;
    un_context *ctx = s->core.ctx;
    UN_TRY(un_particles_reserve(ctx, &s->particles, 1));
    UN_TRY(un_warping_first_grid(s));
    if (s->core.def->liquid.shape && s->carried) UN_TRY(un_warping_track_shape(s));
    if (s->core.def->liquid.shape && !s->carried) {
        un_seed_def def = {.grid = &s->warp.grid,
                           .shape = s->core.def->liquid.shape,
                           .walls = s->walls,
                           .velocity = s->core.def->liquid.velocity};
        double reference;
        UN_TRY(un_particles_seed(ctx, &s->particles, &def, &reference));
        un_particles_map(ctx, &s->particles, &s->warp, 0, true);
        s->core.sources.ledger.start = un_particles_volume(ctx, &s->particles);
    }
    UN_TRY(un_warping_sort(s));
    UN_TRY(un_warping_level_set(s));
    UN_TRY(un_warping_emit(s, 0));
    UN_TRY(un_warping_sort(s));
    UN_TRY(un_warping_level_set(s));
    UN_TRY(un_warping_measure(s, &s->core.last));
    s->rate = s->core.last.max_speed / (s->warp.grid.h * s->warp.certificate);
    return UN_OK;
}

static un_status begin(void *state, un_context *ctx, const un_scene *scene)
{
    un_warping *s = state;
    UN_TRY(un_core_init(&s->core, ctx, scene, false));
    s->particles.flat = s->core.grid.dim == 2;
    s->particles.warped = true;
    return allocate(s);
}

const un_method un_method_warp = {.traits = {.name = "warp",
                                             .particles = true,
                                             .warps = true,
                                             .flat = true,
                                             .tension = true,
                                             .bodies = true,
                                             .momentum = true,
                                             .thin_walls = true,
                                             .band = true},
                                  .stages = stages,
                                  .size = sizeof(un_warping),
                                  .begin = begin,
                                  .fill = fill,
                                  .load = un_warping_load,
                                  .end = end,
                                  .step_limit = step_limit,
                                  .step = step,
                                  .particles = particles,
                                  .surface = un_warping_surface,
                                  .restore = un_warping_restore,
                                  .cells = un_warping_cells,
                                  .probe = un_warping_probe,
                                  .estimate = un_warping_estimate,
                                  .save = un_warping_save};
