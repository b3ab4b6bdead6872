/* The parts of the step of method `uniform` that are more than one call. */
#include "method/uniform.h"

/* Particles at the end of their band, in cells, do not tell how crowded the liquid is: some have
 * just begun. */
#define BAND_END 1.0
/* Particles deeper than this, in cells, are spread in one of so many steps. The surface of a dam
 * break that settles is as even as with all of them spread in each: at 40 cells, in 14 frames, it
 * was off its mean over three cells by 0.070 cells, the median, either way. */
#define DEEP 2
#define DEEP_STEPS 2

un_status un_uniform_sort(un_uniform *s)
{
    if (s->ranks.bars) return un_uniform_ranks_sort(s);
    UN_TRY(un_bins_sort(s->bins, &s->core.arena, &s->particles));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_uniform_carry(un_uniform *s, double dt, double kick)
{
    un_arena *arena = &s->core.arena;
    un_bins_gone gone;
    int32_t first = s->particles.count;
    if (!(s->band.width > 0)) return un_uniform_sort(s);
    un_band_step in = {.u = s->u,
                       .u_old = s->u_old,
                       .walls = s->core.walls,
                       .gravity = s->core.def->gravity,
                       .kick = kick,
                       .dt = dt,
                       .step = s->core.step_count,
                       .volume = un_ledger_expected(&s->core.sources.ledger),
                       .reach = un_uniform_ranks_stray(s) + 1};
    UN_TRY(un_band_carry_faces(s->core.ctx, arena, &s->band, &s->particles, &gone, &in));
    if (s->ranks.bars) return un_uniform_ranks_carry(s, first, &gone);
    UN_TRY(un_bins_sort_by_id(s->bins, arena, &s->particles, NULL, &gone));
    un_arena_reset(arena);
    return UN_OK;
}

un_status un_uniform_correct(un_uniform *s)
{
    bool all = s->core.step_count % DEEP_STEPS == 0;
    UN_TRY(un_particles_correct(s->core.ctx, &s->core.arena, &s->particles, s->bins, s->phi,
                                s->core.walls, all ? 0 : DEEP));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* Marks particles that fly; the volume of all, and of those in the liquid. */
static void mark(un_uniform *s, const uint8_t *thick, double *total, double *inside)
{
    un_cling cling = un_uniform_cling(s);
    bool clings = s->thick.any || cling.tension > 0;
    un_uniform_weigh(s, thick, clings ? &cling : NULL, total, inside);
    un_band_mark(s->core.ctx, &s->particles, &s->band, &s->core.grid);
}

un_status un_uniform_level_set(un_uniform *s)
{
    uint8_t *thick;
    if (s->core.bodies->moving)
        UN_TRY(un_colour_normalizer(s->core.ctx, s->normalizer, &s->core.grid, s->core.walls));
    UN_TRY(un_colour_level_set(s->core.ctx, s->phi, s->colour, &s->core.grid, s->bins,
                               &s->particles, s->core.walls, s->normalizer));
    if (s->core.def->source_count > 0) /* emitters ask for the level set around them */
        UN_TRY(un_grid_share(&s->core.grid, &(un_layered){s->phi, sizeof *s->phi}, 1, UN_ALL_ROWS));
    UN_TRY(un_surface_thick_grid(s->core.ctx, &s->core.arena, &thick, s->phi, &s->core.grid,
                                 s->core.walls));
    double inside, total;
    mark(s, thick, &total, &inside);
    /* The ledger's expectation is what the particles carry. Thick liquid takes the volume where
     * phi < 0; outside it every particle takes its own. */
    double liquid = un_colour_volume(s->core.ctx, s->phi, &s->core.grid, s->core.walls, thick);
    un_ledger_weigh(&s->core.sources.ledger, liquid + total - inside, total);
    UN_TRY(un_band_measure(s->core.ctx, &s->core.arena, &s->band, s->phi, s->core.walls));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_uniform_to_grid(un_uniform *s, double dt)
{
    double *const *weight = s->u_old; /* until it keeps the velocities before gravity */
    un_transfer_to_faces(s->core.ctx, s->u, weight, &s->core.grid, s->bins, &s->particles);
    UN_TRY(un_uniform_thicken(s, weight));
    un_band_to_faces(s->core.ctx, &s->band, s->u, weight, &s->core.grid);
    un_transfer_mark_reached(s->core.ctx, s->known, weight, &s->core.grid);
    UN_TRY(un_transfer_extrapolate(s->core.ctx, &s->core.arena, s->u, NULL, s->known, &s->core.grid,
                                   1));
    un_arena_reset(&s->core.arena);
    un_transfer_accelerate(s->core.ctx, s->u, s->u_old,
                           un_scale(s->core.def->gravity, un_core_kick(&s->core, dt)),
                           &s->core.grid);
    if (s->ranks.bars) UN_TRY(un_uniform_ranks_drop(s));
    un_layered u[3] = {{s->u[0], 8}, {s->u[1], 8}, {s->u[2], 8}};
    return un_grid_share(&s->core.grid, u, s->core.grid.dim, 1);
}

/* The surface's pressure, from the arena; NULL without tension. */
static un_status find_tension(un_uniform *s, double dt, double **pressure)
{
    const un_scene_def *def = s->core.def;
    *pressure = NULL;
    if (!(def->fluid.surface_tension > 0)) return UN_OK;
    *pressure = un_arena_alloc(&s->core.arena, (size_t)s->core.grid.cell_count, sizeof **pressure);
    if (!*pressure) return UN_ERROR_MEMORY;
    /* every rank finds all of it */
    UN_TRY(un_grid_share(&s->core.grid, &(un_layered){s->phi, sizeof *s->phi}, 1, UN_ALL_ROWS));
    un_tension_grid in = {.pressure = *pressure,
                          .phi = s->phi,
                          .grid = &s->core.grid,
                          .walls = s->core.walls,
                          .def = def,
                          .bodies = un_core_free_bodies(&s->core),
                          .kick = un_core_kick(&s->core, dt)};
    return un_tension_on_grid(s->core.ctx, &s->core.arena, &in);
}

un_status un_uniform_apply_pressure(un_uniform *s, double dt, const double *before,
                                    double *const since[3], un_projection_report *report)
{
    double *surface = NULL;
    if (!before) UN_TRY(find_tension(s, dt, &surface)); /* once in a step */
    un_projection in = {.u = s->u,
                        .known = s->known,
                        .phi = s->phi,
                        .walls = s->core.walls,
                        .surface = surface,
                        .dt = dt,
                        .kick = un_core_kick(&s->core, dt),
                        .let_go = un_core_let_go(&s->core, dt),
                        .density = s->core.def->fluid.density,
                        .densities = s->thick.mix.density,
                        .before = before,
                        .tolerance = s->core.def->solver.tolerance,
                        .iteration_limit = UN_UNIFORM_ITERATIONS,
                        .expansion = un_core_expansion(&s->core, dt),
                        .pace = s->core.pace,
                        .colour = s->colour,
                        .depth = s->band.depth,
                        .deepest = s->band.width - BAND_END,
                        .inflow = &s->inflow,
                        .bodies = un_core_free_bodies(&s->core)};
    UN_TRY(un_pressure_project(s->pressure, &in, report));
    if (in.bodies) un_pressure_impulse(s->pressure, &in, since, &s->impulse);
    if (s->ranks.bars) un_solver_release(s->pressure->solver);
    un_pressure_calm_grid(s->core.ctx, s->u, s->known, s->core.walls);
    return un_step_solved(s->core.ctx, &report->solve, s->core.step_count + 1, s->core.time,
                          s->core.def->solver.tolerance);
}

un_status un_uniform_project(un_uniform *s, double dt, un_projection_report *report)
{
    UN_TRY(un_uniform_apply_pressure(s, dt, NULL, s->u_old, report));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* Velocities before gravity become their change, and back. */
static void take_difference(un_uniform *s, int a)
{
    un_runs own = un_grid_own_cells(&s->core.grid, 0);
    for (un_part run; un_runs_next(&own, &run);)
        un_transfer_difference(s->core.ctx, s->u_old[a] + run.begin, s->u[a] + run.begin,
                               run.end - run.begin);
}

/* Beside solids that move, velocities and their change are extended from different faces. */
static un_status extend_beside(un_uniform *s, int32_t layers)
{
    un_context *ctx = s->core.ctx;
    const un_grid *g = &s->core.grid;
    uint8_t *changed[3] = {NULL, NULL, NULL};
    for (int a = 0; a < g->dim; a++) {
        changed[a] = un_arena_alloc(&s->core.arena, (size_t)g->cell_count, 1);
        if (!changed[a]) return UN_ERROR_MEMORY;
    }
    un_pressure_find_changed(ctx, changed, s->known, s->core.walls);
    for (int a = 0; a < g->dim; a++) take_difference(s, a);
    UN_TRY(un_transfer_extrapolate(ctx, &s->core.arena, s->u_old, NULL, changed, g, layers));
    UN_TRY(un_transfer_extrapolate(ctx, &s->core.arena, s->u, NULL, s->known, g, layers));
    for (int a = 0; a < g->dim; a++) take_difference(s, a);
    return UN_OK;
}

/* Beyond the liquid as far as a particle may go in a step. */
un_status un_uniform_extend(un_uniform *s, double dt)
{
    int32_t layers = (int32_t)ceil(s->core.def->solver.cfl) + 2;
    if (s->core.bodies->moving)
        UN_TRY(extend_beside(s, layers));
    else
        UN_TRY(un_transfer_extrapolate(s->core.ctx, &s->core.arena, s->u, s->u_old, s->known,
                                       &s->core.grid, layers));
    un_arena_reset(&s->core.arena);
    UN_TRY(
        un_pressure_constrain(s->core.ctx, s->u, s->u_old, s->known, &s->core.grid, s->core.walls));
    if (!s->thick.any || s->particles.mixed)
        un_pressure_friction(s->core.ctx, s->u, &s->core.grid, s->core.walls,
                             s->thick.mix.viscosity, dt);
    if (s->thick.any) UN_TRY(un_uniform_stick(s, dt));
    return s->ranks.bars ? un_uniform_ranks_reach(s, dt) : UN_OK;
}

un_status un_uniform_move_free(un_uniform *s, double dt)
{
    if (s->core.bodies->free_count == 0) return UN_OK;
    un_core_advance_bodies(&s->core, dt);
    return s->core.walls->parted ? UN_OK : un_walls_update(s->core.walls);
}

/* They take no more and no less from the grid than its impulse. */
static un_status settle(un_uniform *s, const un_vec3 *was, double kick)
{
    un_settling d = {.was = was,
                     .mesh = &s->impulse,
                     .gravity = un_scale(s->core.def->gravity, kick),
                     .density = s->core.def->fluid.density,
                     .sum = un_uniform_sum_own,
                     .arg = s};
    return was ? un_particles_keep_all(s->core.ctx, &s->particles, &d) : UN_OK;
}

un_status un_uniform_to_particles(un_uniform *s, double dt)
{
    un_flip flip = un_core_flip(&s->core, s->core.grid.h, un_core_kick(&s->core, dt));
    un_vec3 *was;
    flip.pic_thick = strcmp(s->core.def->solver.coupling, "pic") == 0;
    UN_TRY(un_core_note(&s->core, &s->particles, &was));
    un_transfer_to_particles(s->core.ctx, &s->particles, s->u, s->u_old, &s->core.grid, &flip);
    UN_TRY(settle(s, was, flip.dt));
    un_arena_reset(&s->core.arena);
    un_cling cling = un_uniform_cling(s);
    un_advect_hold_drops(s->core.ctx, &s->particles, s->phi, s->core.walls, &cling, dt);
    return UN_OK;
}

un_status un_uniform_advect(un_uniform *s, double dt)
{
    un_hit *hits;
    UN_TRY(un_core_need_hits(&s->core, &s->particles, &hits));
    un_advect_particles(s->core.ctx, &s->particles, hits, s->u, s->core.walls, s->core.def->gravity,
                        dt);
    if (s->ranks.bars && hits)
        UN_TRY(un_advect_push_bodies(s->core.ctx, &s->particles, hits, s->ranks.id, s->core.bodies,
                                     s->core.def->fluid.density));
    else
        UN_TRY(un_core_push_bodies(&s->core, &s->particles, hits));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_uniform_even_sheets(un_uniform *s, double dt)
{
    un_sheets_def def = {.h = s->core.grid.h,
                         .dt = dt,
                         .pace = s->core.pace,
                         .strength = s->core.def->solver.sheets,
                         .walls = s->core.walls};
    if (s->ranks.bars) return un_uniform_ranks_even_sheets(s, &def);
    UN_TRY(un_particles_even_sheets(s->core.ctx, &s->core.arena, &s->particles, &def, NULL));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}
