/* The parts of the step of method `warp` that are more than one call. */
#include "method/warp.h"

#define ITERATION_LIMIT 2000
/* Iterations of the target before the first step, and in each step. */
#define ROUNDS_FIRST 60
#define ROUNDS 2
/* Time in which the grid follows its target, in paces of the scene. */
#define SETTLE 0.02
/* Particles at the end of their band, in cells, do not tell how crowded the liquid is: some have
 * just begun, and waves would grow. */
#define BAND_END 3.0
/* Particles fly only where the cells around them are this far outside the liquid, in cells: small
 * particles at a surface that lies just below a row of centres would fall for a step, at 12 cm/s in
 * still water. */
#define REACH 0.25

/* ---- the grid ---- */

un_status un_warping_find_walls(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    int64_t count = s->walls->parts.side_count;
    if (s->core.bodies->count == 0) return UN_OK;
    un_warp_side *kept = un_arena_alloc(&s->core.arena, (size_t)count + 1, sizeof *kept);
    if (!kept) return UN_ERROR_MEMORY;
    un_warp_parts_keep(kept, s->walls, s->p);
    UN_TRY(un_warp_walls_sample(s->walls));
    size_t places = (size_t)s->walls->parts.place_count;
    UN_TRY(un_array_reserve(ctx, (void **)&s->p, &s->p_capacity, places, sizeof *s->p));
    UN_TRY(
        un_array_need(ctx, (void **)&s->node_phi, &s->phi_capacity, places, sizeof *s->node_phi));
    un_warp_parts_carry(s->p, s->walls, kept, count);
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

static un_status move_grid(un_warping *s, bool known, int32_t rounds, double dt, double settle)
{
    const un_scene_def *def = s->core.def;
    if (!(def->sizing.strength > 0)) return UN_OK;
    un_monitor_def monitor = {.scene = s->core.scene,
                              .warp = &s->warp,
                              .walls = s->walls,
                              .phi = s->phi,
                              .u = known ? s->u : NULL,
                              .strength = def->sizing.strength,
                              .time = s->core.time};
    UN_TRY(un_monitor_find(s->core.ctx, &s->core.arena, &s->monitor, &monitor));
    un_arena_reset(&s->core.arena);
    un_warp_step step = {.monitor = &s->monitor,
                         .kind = strcmp(def->sizing.warp, "poisson") == 0 ? UN_WARP_POISSON
                                                                          : UN_WARP_MONGE_AMPERE,
                         .strength = def->sizing.strength,
                         .rounds = rounds,
                         .dt = dt,
                         .settle = settle};
    un_warp_move(&s->warp, &step);
    return UN_OK;
}

un_status un_warping_settle_grid(un_warping *s)
{
    UN_TRY(move_grid(s, false, ROUNDS_FIRST, 0, 0));
    return un_warping_find_walls(s);
}

un_status un_warping_first_grid(un_warping *s)
{
    if (s->core.def->liquid.shape) {
        un_warp_level_set_shape(s->core.ctx, s->phi, &s->warp, s->core.def->liquid.shape);
        UN_TRY(un_warping_settle_grid(s));
        un_warp_level_set_shape(s->core.ctx, s->phi, &s->warp, s->core.def->liquid.shape);
        UN_TRY(un_warping_settle_grid(s));
    }
    return un_colour_normalizer(s->core.ctx, s->normalizer, &s->warp.grid, s->walls);
}

un_status un_warping_move_grid(un_warping *s, double dt)
{
    un_band_keep(&s->band, &s->warp);
    if (s->carried)
        memcpy(s->was, s->warp.centre, (size_t)s->warp.grid.cell_count * sizeof *s->was);
    if (!s->core.def->sizing.follow) return UN_OK;
    return move_grid(s, true, ROUNDS, dt, SETTLE * s->core.pace);
}

/* ---- particles ---- */

un_status un_warping_bin(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    UN_TRY(un_bins_sort(s->bins, &s->core.arena, &s->particles));
    un_arena_reset(&s->core.arena);
    UN_TRY(un_array_need(ctx, (void **)&s->share, &s->share_capacity,
                         (size_t)s->particles.count + 1, sizeof *s->share));
    un_particles_shares(ctx, s->share, &s->particles, &s->warp);
    return UN_OK;
}

un_status un_warping_sort(un_warping *s)
{
    un_particles_locate(s->core.ctx, &s->particles, &s->warp);
    return un_warping_bin(s);
}

un_status un_warping_carry(un_warping *s, double dt)
{
    un_context *ctx = s->core.ctx;
    un_carry carry = {.warp = &s->warp,
                      .was = s->band.was,
                      .u = s->u,
                      .interpolation = un_interpolation_find(s->core.def->solver.interpolation),
                      .maccormack = s->core.def->solver.maccormack,
                      .dt = dt};
    un_band_carry in = {.warp = &s->warp,
                        .u = s->u,
                        .bins = s->bins,
                        .step = s->core.step_count,
                        .interpolation = carry.interpolation,
                        .dt = dt};
    if (s->carried) return un_warping_track_carry(s, dt);
    if (!(s->band.width > 0)) return UN_OK;
    if (carry.maccormack) {
        un_vec3 *u = un_arena_alloc(&s->core.arena, (size_t)s->warp.grid.cell_count, sizeof *u);
        if (!u) return UN_ERROR_MEMORY;
        UN_TRY(un_carry_fields(ctx, &s->core.arena, &u->x, &s->u->x, 3, &carry));
        in.carried = u;
    }
    UN_TRY(un_band_carry_deep(ctx, &s->core.arena, &s->band, &s->particles, &in));
    un_arena_reset(&s->core.arena);
    return un_warping_bin(s);
}

un_status un_warping_resize(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    un_warp_resize def = {.warp = &s->warp,
                          .bins = s->bins,
                          .share = s->share,
                          .phi = s->phi,
                          .walls = s->core.walls,
                          .stream = (uint64_t)s->core.step_count};
    bool changed;
    if (s->carried) return UN_OK;
    double before = un_particles_volume(ctx, &s->particles);
    UN_TRY(un_particles_resize_warped(ctx, &s->core.arena, &s->particles, &def, &changed));
    un_arena_reset(&s->core.arena);
    if (!changed) return UN_OK;
    /* volumes are rounded to single precision */
    s->core.sources.ledger.in += un_particles_volume(ctx, &s->particles) - before;
    return un_warping_bin(s);
}

un_status un_warping_level_set(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    const un_grid *g = &s->warp.grid;
    un_particles reference = un_particles_view(&s->particles, s->share);
    un_particles view = un_particles_view(&s->particles, NULL);
    un_cling cling = {
        .h = g->h, .reach = REACH * g->h, .touch = UN_FALLS_TO * g->h, .walls = s->walls};
    uint8_t *thick;
    double inside, liquid;
    if (s->carried) return un_warping_track(s);
    if (s->core.bodies->count > 0) UN_TRY(un_colour_normalizer(ctx, s->normalizer, g, s->walls));
    UN_TRY(un_colour_level_set(ctx, s->phi, s->colour, g, s->bins, &reference, s->walls,
                               s->normalizer));
    un_warp_mirror(ctx, s->phi, s->walls);
    un_warp_level_set(ctx, s->node_phi, s->phi, s->walls);
    UN_TRY(un_surface_thick_grid(ctx, &s->core.arena, &thick, s->phi, g, s->walls));
    s->ballistic = un_transfer_mark_ballistic(ctx, &view, s->phi, g, thick, &cling, &inside);
    un_band_mark(ctx, &s->particles, &s->band, g);
    /* As in `uniform`: thick liquid by the level set, the rest by its particles. */
    double total = un_particles_volume(ctx, &s->particles);
    UN_TRY(un_warp_volume(ctx, &s->core.arena, &liquid, s->phi, s->walls, thick));
    s->liquid = liquid;
    un_ledger_weigh(&s->core.sources.ledger, liquid + total - inside, total);
    UN_TRY(un_band_measure(ctx, &s->core.arena, &s->band, s->phi, s->walls));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_warping_correct(un_warping *s)
{
    un_particles view = un_particles_view(&s->particles, s->share);
    if (s->carried) return UN_OK;
    UN_TRY(un_particles_correct(s->core.ctx, &s->core.arena, &view, s->bins, s->phi, s->walls, 0));
    un_arena_reset(&s->core.arena);
    un_particles_map(s->core.ctx, &s->particles, &s->warp, 0, false);
    return UN_OK;
}

/* ---- velocities ---- */

static un_status extend(un_warping *s, int32_t layers, const double *p, double dt)
{
    un_centres_extend def = {.u = s->u,
                             .known = s->known,
                             .warp = &s->warp,
                             .walls = s->walls,
                             .p = p,
                             .layers = layers,
                             .dt = dt};
    UN_TRY(un_transfer_extend_centres(s->core.ctx, &s->core.arena, &def));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_warping_to_grid(un_warping *s, double dt)
{
    un_context *ctx = s->core.ctx;
    size_t cells = (size_t)s->warp.grid.cell_count;
    if (s->carried)
        un_warping_track_to_grid(s);
    else
        UN_TRY(un_transfer_to_centres(ctx, &s->core.arena, s->u, s->known, &s->warp, s->bins,
                                      &s->particles));
    un_arena_reset(&s->core.arena);
    UN_TRY(extend(s, s->carried ? 0 : 1, NULL, 0));
    un_transfer_add(ctx, s->u, (int64_t)cells,
                    un_scale(s->core.def->gravity, un_core_kick(&s->core, dt)));
    return UN_OK;
}

/* The surface's pressure, from the arena; NULL without tension. */
static un_status find_tension(un_warping *s, const double **pressure)
{
    const un_scene_def *def = s->core.def;
    *pressure = NULL;
    if (!(def->fluid.surface_tension > 0)) return UN_OK;
    double *found =
        un_arena_alloc(&s->core.arena, (size_t)s->walls->parts.place_count, sizeof *found);
    if (!found) return UN_ERROR_MEMORY;
    *pressure = found;
    un_tension_warp in = {.pressure = found, .phi = s->phi, .walls = s->walls, .def = def};
    return un_tension_on_warp(s->core.ctx, &s->core.arena, &in);
}

un_status un_warping_project(un_warping *s, double dt, un_projection_report *report)
{
    const un_scene_def *def = s->core.def;
    un_warp_divergence wanted = {.source = s->source,
                                 .walls = s->walls,
                                 .phi = s->phi,
                                 .colour = s->colour,
                                 .depth = s->band.depth,
                                 .deepest = s->band.width - BAND_END,
                                 .expansion = un_core_expansion(&s->core, dt),
                                 .dt = dt,
                                 .pace = s->core.pace};
    un_warp_want_divergence(s->core.ctx, &wanted);
    un_warp_projection in = {.warp = &s->warp,
                             .walls = s->walls,
                             .u = s->u,
                             .known = s->known,
                             .phi = s->node_phi,
                             .p = s->p,
                             .source = s->source,
                             .inflow = &s->inflow,
                             .dt = dt,
                             .kick = un_core_kick(&s->core, dt),
                             .density = def->fluid.density,
                             .tolerance = def->solver.tolerance,
                             .iteration_limit = ITERATION_LIMIT,
                             .let_go = un_core_let_go(&s->core, dt)};
    UN_TRY(find_tension(s, &in.surface));
    double mass = def->fluid.density * s->liquid;
    s->impulse = (un_impulse){.mass = {mass, mass, mass}};
    in.bodies = un_core_free_bodies(&s->core);
    in.impulse = in.bodies && !s->carried ? &s->impulse : NULL;
    in.gravity = un_scale(def->gravity, in.kick);
    UN_TRY(un_warp_pressure_project(s->pressure, &s->core.arena, &in, report));
    un_arena_reset(&s->core.arena);
    s->inflow.count = 0;
    return un_step_solved(s->core.ctx, &report->solve, s->core.step_count + 1, s->core.time,
                          def->solver.tolerance);
}

un_status un_warping_extend(un_warping *s, double dt)
{
    int32_t layers = (int32_t)ceil(s->core.def->solver.cfl) + 2;
    if (s->carried) {
        UN_TRY(extend(s, UN_WARPING_NEAR, s->p, dt));
        un_warping_track_drops(s);
    }
    s->rate = un_transfer_rate_centres(s->core.ctx, s->u, s->known, &s->warp);
    return extend(s, layers, s->p, dt);
}

un_status un_warping_to_particles(un_warping *s, double kick)
{
    un_flip flip = un_core_flip(&s->core, s->warp.grid.h, kick);
    un_vec3 *was = NULL;
    if (!s->carried) UN_TRY(un_core_note(&s->core, &s->particles, &was));
    un_transfer_from_centres(s->core.ctx, &s->particles, s->u, s->phi, s->walls, &flip);
    un_core_settle(&s->core, &s->particles, was, &s->impulse, kick);
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_warping_advect(un_warping *s, double dt)
{
    un_hit *hits = NULL;
    if (!s->carried) UN_TRY(un_core_need_hits(&s->core, &s->particles, &hits));
    un_advect_warped(s->core.ctx, &s->particles, hits, s->u, s->phi, s->core.walls, s->walls,
                     s->core.def->gravity, dt);
    UN_TRY(un_core_push_bodies(&s->core, &s->particles, hits));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_warping_even_sheets(un_warping *s, double dt)
{
    size_t count = (size_t)s->particles.count + 1;
    float *wall = un_arena_alloc(&s->core.arena, count, sizeof *wall);
    if (!wall) return UN_ERROR_MEMORY;
    un_particles_clearances(s->core.ctx, wall, &s->particles, s->core.walls, s->walls);
    un_sheets_def def = {.h = s->warp.grid.h,
                         .dt = dt,
                         .pace = s->core.pace,
                         .strength = s->core.def->solver.sheets,
                         .walls = s->core.walls,
                         .wall = wall};
    UN_TRY(un_particles_even_sheets(s->core.ctx, &s->core.arena, &s->particles, &def, NULL));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* ---- sources ---- */

un_status un_warping_remove(un_warping *s)
{
    UN_TRY(un_particles_remove(&s->core.sources, &s->core.arena, &s->particles, s->core.time));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* As in `uniform`. The place is found on the grid of the step that ends. */
static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    un_warping *s = arg;
    un_vec3 x = un_particle_position(&s->particles, q);
    if (!(un_warp_sample(s->phi, &s->warp, from) < 0)) return UN_OK;
    *keep = !first_filling;
    if (first_filling) return UN_OK;
    un_vec3 xi = un_warp_locate(&s->warp, x, un_warp_guess(&s->warp, x));
    return un_inflow_add(s->core.ctx, &s->inflow, un_grid_cell_at(&s->warp.grid, xi),
                         s->particles.volume[q]);
}

un_status un_warping_emit(un_warping *s, double dt)
{
    if (s->carried) return UN_OK; /* un_warping_track does */
    return un_particles_emit(&s->core.sources, &s->particles, s->core.time, dt, settle, s);
}
