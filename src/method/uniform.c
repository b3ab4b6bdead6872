/* Method `uniform`: FLIP on a uniform staggered grid [Zhu & Bridson 2005; Bridson, Fluid Simulation
 * for Computer Graphics, ch. 5 to 8]: what users have today, and the yardstick for the adaptive
 * methods.
 *
 * Where it departs from the textbook:
 *  - the level set comes from a wall-normalised colour function, not from spheres (colour.c);
 *  - the PIC share is a rate in 1/s, higher where the liquid is quiet, so that water settles
 *    whatever the step, and waves are not damped;
 *  - position correction keeps the particles apart [Ando13 section 3], and a ledger of volume
 *    drives a small bounded expansion of the liquid [Ibayashi18 section 9];
 *  - crowded liquid gets a divergence of its own until it has evened out (project.c);
 *  - phi is extended into cells that solids nearly fill, so that these are not pockets of air
 *    (colour.c), and closed faces are constrained both before and after the projection
 *    (constrain.c);
 *  - steps are those of a leapfrog, so that free fall is exact (core.h);
 *  - pressure at walls does not pull (pressure/release.c);
 *  - thin walls part the liquid on their two sides (mesh/walls_thin.c). While they do, the pressure
 *    meets them where the particles do, at the start of the step: at its end they may have passed
 *    particles, which would then be on the wrong side;
 *  - faces that solids leave nearly closed take the velocity of the liquid next to them
 *    (pressure/slivers.c), and no particle passes more than a cell of its liquid in a step
 *    (un_flip_share);
 *  - particles away from the liquid fly by themselves; sheets and threads thinner than a cell are
 *    held together (particles/sheets.c);
 *  - surface tension is a pressure at the surface (tension/grid.c), and bodies that the liquid
 *    moves are solved for with the pressure (pressure/coupling.c);
 *  - deep particles are spread in every second step only; solver.band leaves a narrow band of
 *    particles under the surface, and faces carry deeper liquid (advect/grid_band.c);
 *  - viscosity is solved for on faces [Batty & Bridson 2008] (viscosity/grid.c), with the pressure
 *    before and after it.
 *
 * Several ranks may share a run (uniform_ranks.c); its bits are those of one. */
#include "method/uniform.h"

enum {
    STAGE_WALLS,
    STAGE_CORRECT,
    STAGE_TO_GRID,
    STAGE_PRESSURE,
    STAGE_EXTRAPOLATE,
    STAGE_TO_PARTICLES,
    STAGE_ADVECT,
    STAGE_SOURCES,
    STAGE_SORT,
    STAGE_LEVEL_SET,
    STAGE_MEASURE,
    STAGE_SHEETS,
    STAGE_VISCOSITY
};
static const char *const stages[] = {
    "walls",   "correct", "to_grid",   "pressure", "extrapolate", "to_particles", "advect",
    "sources", "sort",    "level_set", "measure",  "sheets",      "viscosity",    NULL};

static un_status step(void *state, double dt, un_step *report)
{
    un_uniform *s = state;
    un_projection_report projection;
    double clock = un_seconds(), start = clock, kick = un_core_kick(&s->core, dt);
    un_step_init(report);
    report->dt = dt;

    bool parted = s->core.walls->parted;
    un_uniform_whole_forget(s);
    UN_TRY(un_core_move_bodies(&s->core, dt)); /* 1 move the solids */
    if (parted)
        UN_TRY(un_walls_refresh_velocities(s->core.walls));
    else if (s->core.bodies->scripted)
        UN_TRY(un_walls_update(s->core.walls));
    un_stage_end(report, STAGE_WALLS, &clock);
    /* 2 spread the particles */
    UN_TRY(un_uniform_correct(s));
    if (s->ranks.bars) UN_TRY(un_uniform_ranks_refresh(s));
    un_stage_end(report, STAGE_CORRECT, &clock);
    UN_TRY(un_uniform_to_grid(s, dt)); /* 3 velocities, gravity */
    un_stage_end(report, STAGE_TO_GRID, &clock);
    UN_TRY(un_uniform_project(s, dt, &projection)); /* 4 pressure */
    un_stage_end(report, STAGE_PRESSURE, &clock);
    if (s->thick.any) /* and 4 again */
        UN_TRY(un_uniform_apply_viscosity(s, dt, &projection, &report->viscous_iterations));
    s->inflow.count = 0;
    un_stage_end(report, STAGE_VISCOSITY, &clock);
    UN_TRY(un_core_touch_bodies(&s->core, dt));
    un_stage_end(report, STAGE_PRESSURE, &clock);
    UN_TRY(un_uniform_extend(s, dt)); /* 5 beyond the surface */
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    UN_TRY(un_uniform_move_free(s, dt)); /* bodies that the liquid moves */
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_uniform_to_particles(s, dt)); /* 6 FLIP update */
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    UN_TRY(un_uniform_even_sheets(s, dt));
    un_stage_end(report, STAGE_SHEETS, &clock);
    UN_TRY(un_uniform_advect(s, dt));                   /* 7 move */
    if (parted) UN_TRY(un_walls_update(s->core.walls)); /* 1, second half */
    un_stage_end(report, STAGE_ADVECT, &clock);
    un_core_tick(&s->core, dt);
    UN_TRY(un_uniform_remove(s));   /* 8 drains, open sides */
    UN_TRY(un_uniform_emit(s, dt)); /* 9 emitters */
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(un_uniform_carry(s, dt, kick)); /* 10 deep liquid; along the curve */
    un_stage_end(report, STAGE_SORT, &clock);
    UN_TRY(un_uniform_level_set(s)); /* 11 surface and volume */
    un_stage_end(report, STAGE_LEVEL_SET, &clock);

    UN_TRY(un_uniform_measure(s, report, &projection.max_divergence));
    report->cells = projection.cell_count;
    un_stage_end(report, STAGE_MEASURE, &clock);
    un_core_report(&s->core, report, &projection.solve, projection.max_divergence, start);
    return UN_OK;
}

static double step_limit(void *state)
{
    const un_uniform *s = state;
    double speed = s->max_speed;
    if (s->core.bodies->free_count > 0) speed = fmax(speed, un_bodies_speed(s->core.bodies));
    return un_step_limit(s->core.def, s->core.grid.h, speed / s->core.grid.h);
}

static const un_particles *shown_particles(const void *state)
{
    return un_uniform_shown(state);
}

/* ---- life ---- */

static void end(void *state)
{
    un_uniform *s = state;
    un_context *ctx = s->core.ctx;
    un_uniform_ranks_free(s);
    un_bins_destroy(s->bins);
    un_pressure_destroy(s->pressure);
    un_particles_free(ctx, &s->particles);
    un_free(ctx, s->normalizer);
    un_free(ctx, s->colour);
    un_free(ctx, s->phi);
    for (int a = 0; a < 3; a++) {
        un_free(ctx, s->u[a]);
        un_free(ctx, s->u_old[a]);
        un_free(ctx, s->known[a]);
    }
    un_inflow_free(ctx, &s->inflow);
    un_viscosity_destroy(s->thick.solver);
    un_mixture_free(ctx, &s->thick.mix);
    un_free(ctx, s->thick.p);
    un_band_free(ctx, &s->band);
    un_core_free(&s->core);
}

static un_status allocate(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    size_t n = (size_t)s->core.grid.cell_count;
    UN_TRY(un_bins_create(ctx, &s->core.grid, &s->bins));
    UN_TRY(un_pressure_create(ctx, &s->core.grid, &s->pressure));
    UN_TRY(un_pressure_configure(s->pressure->solver, s->core.def));
    UN_ALLOC(ctx, s->normalizer, n);
    UN_ALLOC(ctx, s->colour, n);
    UN_ALLOC(ctx, s->phi, n);
    for (int a = 0; a < s->core.grid.dim; a++) {
        s->u[a] = un_alloc_zero(ctx, n, sizeof *s->u[a]);
        s->u_old[a] = un_alloc_zero(ctx, n, sizeof *s->u_old[a]);
        s->known[a] = un_alloc_zero(ctx, n, 1);
        if (!s->u[a] || !s->u_old[a] || !s->known[a]) return UN_ERROR_MEMORY;
    }
    bool even = !s->thick.any && !s->particles.mixed;
    UN_TRY(un_band_init(ctx, &s->band, even ? s->core.def->solver.band : 0, &s->core.grid, false));
    if (!s->thick.any) return UN_OK;
    s->thick.p = un_alloc_zero(ctx, n, sizeof *s->thick.p);
    s->pressure->more = s->thick.p;
    return s->thick.p ? un_viscosity_create(ctx, &s->thick.solver) : UN_ERROR_MEMORY;
}

static un_status fill(void *state)
{
    un_uniform *s = state;
    UN_TRY(un_colour_normalizer(s->core.ctx, s->normalizer, &s->core.grid, s->core.walls));
    UN_TRY(un_particles_reserve(s->core.ctx, &s->particles, 1));
    if (s->core.def->liquid.shape) {
        un_seed_def def = {.grid = &s->core.grid,
                           .shape = s->core.def->liquid.shape,
                           .walls = s->core.walls,
                           .velocity = s->core.def->liquid.velocity};
        if (un_rank_count(s->core.ctx) > 1)
            UN_TRY(un_uniform_ranks_seed(s, &def));
        else
            UN_TRY(
                un_particles_seed(s->core.ctx, &s->particles, &def, &s->core.sources.ledger.start));
        UN_TRY(un_particles_give_matter(&s->core.sources, &s->particles, 0,
                                        &s->core.def->fluid.matter));
    }
    if (!s->ranks.bars) UN_TRY(un_uniform_share_out(s));
    UN_TRY(un_uniform_sort(s));
    UN_TRY(un_uniform_level_set(s));
    if (s->ranks.bars) UN_TRY(un_uniform_ranks_drop(s));
    UN_TRY(un_uniform_emit(s, 0));
    UN_TRY(un_uniform_sort(s));
    UN_TRY(un_uniform_level_set(s));
    return un_uniform_measure(s, &s->core.last, &(double){0});
}

static un_status begin(void *state, un_context *ctx, const un_scene *scene)
{
    un_uniform *s = state;
    UN_TRY(un_core_init(&s->core, ctx, scene, true));
    un_particles *particles[] = {&s->particles, &s->ranks.arrived, &s->ranks.whole,
                                 &s->ranks.window};
    for (int i = 0; i < 4; i++) {
        particles[i]->flat = s->core.grid.dim == 2;
        particles[i]->mixed = un_scene_mixed(&scene->def);
    }
    s->thick.any = un_scene_viscous(&scene->def);
    s->thick.mix.density_all = scene->def.fluid.density;
    s->thick.mix.viscosity_all = scene->def.fluid.viscosity;
    return allocate(s);
}

const un_method un_method_uniform = {.traits = {.name = "uniform",
                                                .particles = true,
                                                .viscous = true,
                                                .syrup_flat = true,
                                                .mixed = true,
                                                .tension = true,
                                                .bodies = true,
                                                .momentum = true,
                                                .flat = true,
                                                .thin_walls = true,
                                                .ranks = true,
                                                .band = true},
                                     .stages = stages,
                                     .size = sizeof(un_uniform),
                                     .begin = begin,
                                     .fill = fill,
                                     .load = un_uniform_load,
                                     .end = end,
                                     .step_limit = step_limit,
                                     .step = step,
                                     .particles = shown_particles,
                                     .surface = un_uniform_surface,
                                     .cells = un_uniform_cells,
                                     .probe = un_uniform_probe,
                                     .estimate = un_uniform_estimate,
                                     .save = un_uniform_save,
                                     .gather = un_uniform_gather,
                                     .stream = un_uniform_stream,
                                     .keep = un_uniform_keep,
                                     .sift = un_uniform_sift,
                                     .portion = un_uniform_portion};
