/* The parts of the step of method `octree`. */
#include "method/octree.h"

/* ---- walls, forces, pressure ---- */

un_status un_octree_move_walls(un_octree_flip *s, double dt)
{
    UN_TRY(un_core_move_bodies(&s->core, dt));
    return s->core.bodies->scripted ? un_leaf_walls_move(&s->walls, &s->leaves) : UN_OK;
}

un_status un_octree_accelerate(un_octree_flip *s, double dt)
{
    un_context *ctx = s->core.ctx;
    /* at.u is what un_octree_gather left; particles have not moved since. */
    UN_TRY(un_octree_thicken(s));
    UN_TRY(un_transfer_extrapolate_leaves(ctx, &s->core.arena, s->at.u, NULL, s->at.known,
                                          &s->leaves, 1));
    un_arena_reset(&s->core.arena);
    un_leaf_accelerate(ctx, s->at.u, s->at.before,
                       un_scale(s->core.def->gravity, un_core_kick(&s->core, dt)), &s->leaves,
                       &s->walls);
    return UN_OK;
}

/* The surface's pressure, from the arena; NULL without tension. */
static un_status find_tension(un_octree_flip *s, double dt, const double **pressure)
{
    const un_scene_def *def = s->core.def;
    *pressure = NULL;
    if (!(def->fluid.surface_tension > 0)) return UN_OK;
    double *found = un_arena_alloc(&s->core.arena, (size_t)s->leaves.count + 1, sizeof *found);
    UN_TRY(un_octree_agree(s, found ? UN_OK : UN_ERROR_MEMORY));
    un_tension_leaves in = {.pressure = found,
                            .phi = s->at.phi,
                            .leaves = &s->leaves,
                            .walls = &s->walls,
                            .def = def,
                            .bodies = un_core_free_bodies(&s->core),
                            .kick = un_core_kick(&s->core, dt)};
    *pressure = found;
    return un_tension_on_leaves(s->core.ctx, &s->core.arena, &in);
}

un_status un_octree_apply_pressure(un_octree_flip *s, double dt, const double *earlier,
                                   const double *since, un_leaf_projection_report *report)
{
    const un_scene_def *def = s->core.def;
    un_leaf_projection in = {.leaves = &s->leaves,
                             .u = s->at.u,
                             .before = s->at.before,
                             .known = s->at.known,
                             .phi = s->at.phi,
                             .walls = &s->walls,
                             .p = s->at.p,
                             .dt = dt,
                             .kick = un_core_kick(&s->core, dt),
                             .density = def->fluid.density,
                             .tolerance = def->solver.tolerance,
                             .iteration_limit = UN_OCTREE_ITERATIONS,
                             .let_go = un_core_let_go(&s->core, dt),
                             .expansion = un_core_expansion(&s->core, dt),
                             .pace = s->core.pace,
                             .colour = s->at.colour,
                             .emitted = s->emitted.any ? s->emitted.volume : NULL,
                             .earlier = earlier,
                             .again = s->thick.any && !earlier,
                             .bodies = un_core_free_bodies(&s->core)};
    if (!earlier) UN_TRY(un_octree_agree(s, find_tension(s, dt, &in.surface))); /* once in a step */
    UN_TRY(un_leaf_pressure_project(s->pressure, &s->core.arena, &in, report));
    if (in.bodies)
        un_leaf_impulse(s->pressure, &in, since, un_scale(def->gravity, earlier ? 0 : in.kick),
                        &s->impulse);
    un_arena_reset(&s->core.arena);
    un_pressure_calm_leaves(s->core.ctx, s->at.u, s->at.known, &s->leaves, &s->walls, s->at.p);
    if (!in.again) s->emitted.any = false;
    return un_octree_agree(s, un_step_solved(s->core.ctx, &report->solve, s->core.step_count + 1,
                                             s->core.time, def->solver.tolerance));
}

un_status un_octree_keep_pressure(un_octree_flip *s)
{
    if (un_leaves_in_parts(&s->leaves))
        return un_leaf_memory_keep_ranks(s->core.ctx, &s->memory, &s->leaves, s->at.p);
    return un_leaf_memory_keep(s->core.ctx, &s->memory, &s->tree, s->at.p);
}

un_status un_octree_project(un_octree_flip *s, double dt, un_leaf_projection_report *report)
{
    UN_TRY(un_octree_apply_pressure(s, dt, NULL, s->at.before, report));
    return un_octree_keep_pressure(s);
}

un_status un_octree_move_free(un_octree_flip *s, double dt)
{
    if (s->core.bodies->free_count == 0) return UN_OK;
    un_core_advance_bodies(&s->core, dt);
    return s->leaves.parted ? UN_OK : un_leaf_walls_move(&s->walls, &s->leaves);
}

static void copy_known(const un_octree_flip *s, uint8_t *to)
{
    for (int32_t k = 0; k < un_leaves_runs(&s->leaves); k++) {
        un_part run = un_leaves_face_run(&s->leaves, k);
        memcpy(to + run.begin, s->at.known + run.begin, (size_t)(run.end - run.begin));
    }
}

/* Faces that viscous liquid has reached in this step have no change: they were not there before. */
static void leave_out_new(const un_octree_flip *s, uint8_t *changed)
{
    for (int32_t k = 0; k < un_leaves_runs(&s->leaves); k++)
        for (int64_t f = un_leaves_face_run(&s->leaves, k).begin;
             f < un_leaves_face_run(&s->leaves, k).end; f++)
            changed[f] = changed[f] && s->at.known[f] == 1;
}

/* As in method `uniform`. */
static un_status extend_beside(un_octree_flip *s, int32_t layers)
{
    un_context *ctx = s->core.ctx;
    const un_leaves *m = &s->leaves;
    uint8_t *changed = un_alloc(ctx, (size_t)m->face_count + 1, 1);
    un_status status = un_octree_agree(s, changed ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) {
        if (s->core.bodies->moving)
            un_pressure_find_changed_leaves(ctx, changed, s->at.known, m, &s->walls);
        else
            copy_known(s, changed);
        if (s->thick.any) leave_out_new(s, changed);
        un_transfer_difference_leaves(s->at.before, s->at.u, m);
        status = un_transfer_extrapolate_leaves(ctx, &s->core.arena, s->at.before, NULL, changed, m,
                                                layers);
    }
    un_free(ctx, changed);
    un_arena_reset(&s->core.arena);
    UN_TRY(status);
    UN_TRY(
        un_transfer_extrapolate_leaves(ctx, &s->core.arena, s->at.u, NULL, s->at.known, m, layers));
    un_transfer_difference_leaves(s->at.before, s->at.u, m);
    return UN_OK;
}

/* At walls, and between faces. */
static un_status find_flow(un_octree_flip *s, double dt)
{
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    UN_TRY(un_leaf_constrain(ctx, arena, s->at.u, s->at.known, &s->leaves, &s->walls));
    un_arena_reset(arena);
    UN_TRY(un_leaf_constrain(ctx, arena, s->at.before, s->at.known, &s->leaves, &s->walls));
    un_arena_reset(arena);
    if (s->thick.any)
        un_octree_stick(s);
    else
        un_leaf_friction(ctx, s->at.u, &s->leaves, &s->walls, dt);
    uint8_t *reached = un_arena_alloc(arena, (size_t)s->leaves.count + 1, 1);
    if (!reached) return UN_ERROR_MEMORY;
    un_transfer_reached_leaves(ctx, reached, &s->leaves, &s->markers.bins);
    s->now.slip = s->before.slip = s->thick.any ? s->thick.slip : NULL;
    UN_TRY(
        un_leaves_flow_build_two(&s->now, &s->before, &s->leaves, s->at.u, s->at.before, reached));
    un_arena_reset(arena);
    return UN_OK;
}

un_status un_octree_extend(un_octree_flip *s, double dt)
{
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    int32_t layers = (int32_t)ceil(s->core.def->solver.cfl) + 2;
    un_octree_forget_system(s);
    s->rate_max = un_transfer_rate_leaves(ctx, s->at.u, s->at.known, &s->markers.bins, &s->leaves);
    if (s->core.bodies->moving || s->thick.any)
        UN_TRY(extend_beside(s, layers));
    else
        UN_TRY(un_transfer_extrapolate_leaves(ctx, arena, s->at.u, s->at.before, s->at.known,
                                              &s->leaves, layers));
    un_arena_reset(arena);
    return un_octree_agree(s, find_flow(s, dt));
}

/* ---- particles ---- */

un_status un_octree_to_particles(un_octree_flip *s, double dt)
{
    un_flip flip = un_core_flip(&s->core, s->tree.h, un_core_kick(&s->core, dt));
    un_vec3 *was;
    flip.pic_thick = strcmp(s->core.def->solver.coupling, "pic") == 0;
    un_status status = un_core_note(&s->core, &s->markers.particles, &was);
    for (int axis = 0; axis < 3 && status == UN_OK; axis++)
        status = un_array_need(s->core.ctx, (void **)&s->start[axis], &s->start_capacity[axis],
                               (size_t)s->markers.particles.count + 1, sizeof **s->start);
    UN_TRY(un_octree_agree(s, status));
    un_transfer_leaves_to_particles(s->core.ctx, &s->markers.particles, s->start, &s->markers.bins,
                                    &s->now, &s->before, &flip);
    s->start_known = true;
    UN_TRY(un_octree_settle(s, was, flip.dt));
    un_arena_reset(&s->core.arena);
    un_cling cling = un_octree_cling(s);
    if (s->thick.any)
        un_advect_draw_in(s->core.ctx, &s->markers, s->core.walls, &cling, UN_DRAW_HELD, dt,
                          s->core.pace);
    return UN_OK;
}

un_status un_octree_even_sheets(un_octree_flip *s, double dt)
{
    un_sheets_def def = {.h = s->tree.h,
                         .dt = dt,
                         .pace = s->core.pace,
                         .strength = s->core.def->solver.sheets,
                         .walls = s->core.walls,
                         .wall = s->markers.wall};
    UN_TRY(un_markers_even_sheets(s->core.ctx, &s->core.arena, &s->markers, &def, &s->sheets));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_octree_correct(un_octree_flip *s, double dt)
{
    un_markers *m = &s->markers;
    un_octree_make_room(s);
    UN_TRY(un_markers_fetch_touching(s->core.ctx, &s->core.arena, m));
    UN_TRY(un_octree_agree(s, un_markers_regroup(s->core.ctx, m)));
    un_correct_def def = {.groups = &m->groups,
                          .radius = m->radius,
                          .phi = m->depth,
                          .normal = {m->normal[0], m->normal[1], m->normal[2]},
                          .wall = m->wall,
                          .walls = s->core.walls,
                          .dt = dt,
                          .share = m->share};
    un_status status = un_particles_correct_sized(s->core.ctx, &s->core.arena, &m->particles, &def);
    UN_TRY(un_octree_agree(s, status));
    un_markers_drop_touching(m);
    s->start_known = false;
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_octree_advect(un_octree_flip *s, double dt)
{
    un_particles *p = &s->markers.particles;
    un_hit *hits;
    UN_TRY(un_octree_agree(s, un_core_need_hits(&s->core, p, &hits)));
    un_leaf_paths paths = {.bins = &s->markers.bins,
                           .flow = &s->now,
                           .wall = s->walls.phi,
                           .walls = s->core.walls,
                           .gravity = s->core.def->gravity,
                           .dt = dt};
    for (int axis = 0; axis < 3; axis++) paths.start[axis] = s->start_known ? s->start[axis] : NULL;
    UN_TRY(un_advect_leaves(s->core.ctx, p, hits, &paths));
    UN_TRY(un_octree_push_bodies(s, hits));
    un_arena_reset(&s->core.arena);
    un_octree_forget_flow(s);
    return UN_OK;
}

un_status un_octree_resize(un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    un_markers *m = &s->markers;
    un_resize_report resized;
    un_octree_make_room(s);
    un_resize_def def = un_octree_resize_range(s);
    un_sheets *sheets = s->sheets.any ? &s->sheets : NULL;
    def.walls = s->core.walls;
    def.sheets = sheets;
    def.stream = (uint64_t)s->core.step_count;
    def.share = m->share;
    double before, after;
    UN_TRY(un_markers_volume(ctx, m, &before));
    /* What emitters bring is not foreseen: above the budget nothing smaller than the mean is made,
     * and what is smaller merges. */
    if (s->budget.most > 0 && (double)un_octree_particle_count(s) > s->budget.most)
        def.volume_min = fmin(fmax(def.volume_min, before / s->budget.most), def.volume_max);
    UN_TRY(un_markers_fetch_near(ctx, &s->core.arena, m, sheets, &def));
    UN_TRY(un_octree_agree(s, un_markers_regroup(ctx, m)));
    def.groups = &m->groups;
    def.radius = m->radius;
    def.phi = m->depth;
    for (int axis = 0; axis < 3; axis++) def.normal[axis] = m->normal[axis];
    UN_TRY(un_particles_resize(ctx, &s->core.arena, &m->particles, &def, &resized));
    /* rounding of merged volumes is booked, as what comes and goes is */
    UN_TRY(un_markers_volume(ctx, m, &after));
    s->core.sources.ledger.in += after - before;
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* ---- sources ---- */

un_status un_octree_remove(un_octree_flip *s)
{
    UN_TRY(un_octree_number(s));
    if (s->ranks.any) return un_core_remove_ranks(&s->core, &s->markers);
    UN_TRY(
        un_particles_remove(&s->core.sources, &s->core.arena, &s->markers.particles, s->core.time));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

bool un_octree_settle_emitted(un_octree_flip *s, int32_t q, double phi, bool first_filling)
{
    un_particles *p = &s->markers.particles;
    p->flags[q] = UN_PARTICLE_SURFACE;
    p->size[q] = (float)s->tree.h;
    if (!(phi < 0)) return true;
    if (!first_filling) p->flags[q] |= UN_PARTICLE_EMITTED;
    return !first_filling;
}

/* The leaves are still those of the step. */
static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    un_octree_flip *s = arg;
    double phi = un_leaves_sample(&s->leaves, s->at.phi, un_octree_find(&s->tree, from), from);
    *keep = un_octree_settle_emitted(s, q, phi, first_filling);
    return UN_OK;
}

un_status un_octree_emit(un_octree_flip *s, double dt)
{
    if (s->ranks.any) return un_octree_emit_ranks(s, dt);
    return un_particles_emit(&s->core.sources, &s->markers.particles, s->core.time, dt, settle, s);
}

/* ---- mesh ---- */

un_status un_octree_build_tree(un_octree_flip *s)
{
    if (s->ranks.any)
        UN_TRY(un_particles_build_tree_ranks(s->core.ctx, &s->core.arena, &s->tree, &s->ranks.tree,
                                             &s->markers.particles));
    else
        UN_TRY(
            un_particles_build_tree(s->core.ctx, &s->core.arena, &s->tree, &s->markers.particles));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_octree_part_drops(un_octree_flip *s)
{
    bool found;
    if (s->ranks.any)
        UN_TRY(un_particles_part_drops_ranks(s->core.ctx, &s->core.arena, &s->markers, &s->tree,
                                             &s->ranks.tree, &found));
    else
        UN_TRY(un_particles_part_drops(s->core.ctx, &s->core.arena, &s->markers, &s->tree, &found));
    un_arena_reset(&s->core.arena);
    return found ? un_octree_build_tree(s) : UN_OK;
}

static un_status need_fields(un_octree_flip *s)
{
    size_t leaves = (size_t)s->leaves.count + 1, faces = (size_t)s->leaves.face_count + 1;
    un_leaf_fields *a = &s->at;
    struct {
        void **array;
        size_t count, size;
    } need[] = {{(void **)&a->phi, leaves, sizeof *a->phi},
                {(void **)&a->colour, leaves, sizeof *a->colour},
                {(void **)&a->size, leaves, sizeof *a->size},
                {(void **)&a->p, leaves, sizeof *a->p},
                {(void **)&a->centre, leaves, sizeof *a->centre},
                {(void **)&a->u, faces, sizeof *a->u},
                {(void **)&a->before, faces, sizeof *a->before},
                {(void **)&a->known, faces, 1}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        UN_TRY(un_array_need(s->core.ctx, need[i].array, &a->capacity[i], need[i].count,
                             need[i].size));
        if (i < 5)
            un_leaves_forget(&s->leaves, *need[i].array, need[i].size);
        else
            un_leaves_forget_faces(&s->leaves, *need[i].array, need[i].size);
    }
    return UN_OK;
}

static un_status build_leaves(un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    if (s->ranks.any) {
        UN_TRY(un_octree_share_leaves(s));
        UN_TRY(un_leaf_walls_sample(&s->walls, ctx, s->core.walls, &s->leaves));
    } else if (!un_leaf_walls_hold(&s->walls,
                                   &s->tree)) { /* seeing what thin walls part takes long */
        UN_TRY(un_leaves_build(&s->leaves, ctx, &s->tree));
        UN_TRY(un_leaf_walls_sample(&s->walls, ctx, s->core.walls, &s->leaves));
    }
    return need_fields(s);
}

un_status un_octree_build_leaves(un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    UN_TRY(un_octree_agree(s, build_leaves(s)));
    if (s->ranks.any)
        UN_TRY(un_leaf_memory_recall_ranks(ctx, &s->memory, &s->leaves, s->at.p));
    else
        un_leaf_memory_recall(ctx, &s->memory, &s->tree, s->at.p);
    if (s->core.def->source_count == 0) return UN_OK;
    return un_emitted_place_leaves(ctx, &s->emitted, &s->tree, &s->markers);
}

un_status un_octree_sort(un_octree_flip *s)
{
    if (s->ranks.any)
        return un_markers_sort_leaves_ranks(s->core.ctx, &s->core.arena, &s->markers, &s->leaves,
                                            s->core.bodies);
    return un_markers_sort_leaves(s->core.ctx, &s->core.arena, &s->markers, &s->leaves,
                                  s->core.bodies);
}

un_status un_octree_gather(un_octree_flip *s)
{
    un_leaf_gather out = {s->at.u, s->at.known, s->at.colour, NULL};
    UN_TRY(un_octree_agree(s, un_octree_need_centres(s)));
    if (s->thick.any) out.centre = s->thick.centre;
    UN_TRY(un_transfer_to_leaves(s->core.ctx, &s->core.arena, &out, &s->leaves, &s->markers.bins,
                                 &s->markers.particles));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* ---- level set and sizes ---- */

/* thick: from the arena. */
static un_status find_surface(un_octree_flip *s, const un_leaf_level_set *def, uint8_t **thick)
{
    un_context *ctx = s->core.ctx;
    UN_TRY(un_leaf_level_set_find(ctx, &s->core.arena, def));
    un_arena_reset(&s->core.arena);
    UN_TRY(un_octree_agree(s, un_markers_keep_flags(ctx, &s->markers)));
    return un_surface_thick_leaves(ctx, &s->core.arena, thick, def);
}

un_status un_octree_level_set(un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    un_leaf_level_set def = {.phi = s->at.phi,
                             .colour = s->at.colour,
                             .leaves = &s->leaves,
                             .walls = &s->walls,
                             .open_sides = s->core.def->domain.open};
    un_cling cling = un_octree_cling(s);
    uint8_t *thick;
    UN_TRY(find_surface(s, &def, &thick));
    double inside = un_transfer_mark_leaves(ctx, &s->markers, &s->leaves, s->at.phi, s->walls.phi,
                                            thick, &cling);
    /* As in method `uniform`: thick liquid by the level set, the rest by its particles. */
    double total;
    UN_TRY(un_markers_volume(ctx, &s->markers, &total));
    double liquid = un_leaf_liquid_volume(ctx, &def, thick);
    un_ledger_weigh(&s->core.sources.ledger, liquid + total - inside, total);
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_octree_sizes(un_octree_flip *s, double dt)
{
    un_context *ctx = s->core.ctx;
    un_sizing_nodes nodes;
    un_sizing_def def = {.scene = s->core.scene,
                         .nodes = &nodes,
                         .phi = s->at.phi,
                         .wall = s->walls.phi,
                         .solid = s->walls.solid,
                         .narrow = s->walls.narrow,
                         .velocity = s->at.centre,
                         .sources = &s->core.sources,
                         .bodies = un_core_free_bodies(&s->core),
                         .time = s->core.time,
                         .scale = s->budget.scale};
    un_leaves_centre_velocity(ctx, s->at.centre, &s->leaves, s->at.u);
    un_status status = un_sizing_nodes_leaves(ctx, &s->core.arena, &nodes, &s->leaves, def.phi);
    if (un_leaves_in_parts(&s->leaves)) status = un_octree_agree(s, status);
    if (status == UN_OK) status = un_sizing_evaluate(ctx, &s->core.arena, s->at.size, &def);
    UN_TRY(un_octree_agree(s, status));
    un_arena_reset(&s->core.arena);
    un_sizing_on_leaves on = {&s->leaves, s->at.size, s->markers.bins.tet};
    un_sizing_to_particles(ctx, &s->markers.particles, un_markers_own(&s->markers),
                           un_sizing_at_leaves, &on, dt / s->core.pace);
    un_octree_keep_budget(s);
    return UN_OK;
}

un_status un_octree_measure(un_octree_flip *s, un_step *report)
{
    report->cells = un_leaves_wet_count(&s->leaves, s->at.phi);
    report->nodes = s->leaves.count;
    UN_TRY(un_octree_show_pressure(s));
    s->tension_bytes =
        s->core.def->fluid.surface_tension > 0 ? un_tension_leaves_bytes(&s->leaves, s->at.phi) : 0;
    if (s->ranks.any)
        UN_TRY(un_core_measure_ranks(&s->core, &s->markers, report));
    else
        UN_TRY(un_core_measure(&s->core, report, &s->markers.particles, s->markers.ballistic));
    /* Before the first step the mesh knows nothing yet. */
    if (s->core.step_count == 0) s->rate_max = report->max_speed / s->tree.h;
    return UN_OK;
}
