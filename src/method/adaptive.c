/* Particles on graded tets: the calls that `tet` and `staggered` share, in the order of a step. */
#include "method/adaptive.h"

/* Rounds of resizing and meshing before the first step. */
#define START_ROUNDS 6

/* ---- walls and forces ---- */

un_status un_adaptive_move_walls(un_adaptive *a, double dt)
{
    UN_TRY(un_core_move_bodies(&a->core, dt));
    if (!a->core.bodies->scripted) return UN_OK;
    UN_TRY(un_tet_walls_move(&a->mesh.walls, &a->core.arena, &a->mesh.tets));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

un_status un_adaptive_move_free(un_adaptive *a, double dt)
{
    if (a->core.bodies->free_count == 0) return UN_OK;
    un_core_advance_bodies(&a->core, dt);
    UN_TRY(un_tet_walls_move(&a->mesh.walls, &a->core.arena, &a->mesh.tets));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

un_status un_adaptive_thicken(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    const un_particles *particles = &a->markers.particles;
    un_thick *thick = &a->thick;
    if (particles->mixed)
        UN_TRY(
            un_transfer_mix(ctx, &a->core.arena, &thick->mix, tets, &a->markers.bins, particles));
    if (!thick->any) return UN_OK;
    UN_TRY(un_transfer_move_to_nodes(ctx, &a->core.arena, a->node.u, &thick->mix, tets,
                                     &a->markers.bins, particles));
    UN_TRY(un_viscous_walls_find(ctx, &thick->walls, &a->mesh.walls));
    un_viscous_walls_hold(ctx, &thick->walls, a->node.u, a->node.known, tets, &thick->mix,
                          a->core.def, a->core.time);
    return UN_OK;
}

un_status un_adaptive_find_tension(un_adaptive *a, double dt, double **pressure)
{
    const un_tets *tets = &a->mesh.tets;
    *pressure = NULL;
    if (!(a->core.def->fluid.surface_tension > 0)) return UN_OK;
    *pressure = un_arena_alloc(&a->core.arena, (size_t)tets->node_count + 1, sizeof **pressure);
    if (!*pressure) return UN_ERROR_MEMORY;
    un_tension_tets in = {.pressure = *pressure,
                          .phi = a->node.phi,
                          .mesh = tets,
                          .walls = &a->mesh.walls,
                          .def = a->core.def,
                          .bodies = un_core_free_bodies(&a->core),
                          .kick = un_core_kick(&a->core, dt)};
    return un_tension_on_tets(a->core.ctx, &a->core.arena, &in);
}

void un_adaptive_want_divergence(un_adaptive *a, double dt)
{
    un_divergence_def def = {.source = a->node.source,
                             .mesh = &a->mesh.tets,
                             .walls = &a->mesh.walls,
                             .phi = a->node.phi,
                             .colour = a->node.colour,
                             .emitted = a->emitted.any ? a->emitted.volume : NULL,
                             .expansion = un_core_expansion(&a->core, dt),
                             .pace = a->core.pace,
                             .dt = dt};
    un_pressure_want_divergence(a->core.ctx, &def);
    a->emitted.any = false;
}

un_viscous_step un_adaptive_viscous_step(const un_adaptive *a, bool keeps_volume, double dt)
{
    const un_scene_def *def = a->core.def;
    return (un_viscous_step){.solve = {.mesh = &a->mesh.tets,
                                       .phi = a->node.phi,
                                       .tet_walls = &a->mesh.walls,
                                       .walls = &a->thick.walls,
                                       .bodies = un_core_free_bodies(&a->core),
                                       .viscosity = a->thick.mix.viscosity,
                                       .density = a->thick.mix.density,
                                       .viscosity_all = def->fluid.viscosity,
                                       .density_all = def->fluid.density,
                                       .keeps_volume = keeps_volume,
                                       .p = a->node.p[1],
                                       .dt = un_core_kick(&a->core, dt),
                                       .tolerance = def->solver.tolerance,
                                       .iteration_limit = UN_ITERATION_LIMIT,
                                       .laplacian = strcmp(def->solver.stress, "laplacian") == 0},
                             .mix = &a->thick.mix,
                             .pic = strcmp(def->solver.coupling, "pic") == 0};
}

/* ---- 10: velocities beyond the liquid and at walls ---- */

void un_adaptive_find_rate(un_adaptive *a)
{
    a->rate_max =
        un_advect_rate_tets(a->core.ctx, a->tet.u, a->tet.known, &a->markers.bins, &a->mesh.tets);
}

un_status un_adaptive_extend(un_adaptive *a, double dt)
{
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    un_node_fields *node = &a->node;
    int32_t layers = (int32_t)ceil(a->core.def->solver.cfl) + 2;
    if (a->thick.any) un_viscous_walls_follow(ctx, &a->thick.walls, &a->mesh.walls);
    un_node_constraint walls = {.u = node->u,
                                .change = node->d,
                                .known = node->known,
                                .mesh = tets,
                                .walls = &a->mesh.walls,
                                .open_sides = a->core.def->domain.open,
                                .p = node->p[0],
                                .held = a->thick.any ? a->thick.walls.held : NULL,
                                .u_held = a->thick.walls.u,
                                .dt = dt};
    UN_TRY(un_transfer_extrapolate_nodes(ctx, &a->core.arena, node->u, node->d, node->known, tets,
                                         layers));
    un_arena_reset(&a->core.arena);
    UN_TRY(un_pressure_constrain_nodes(ctx, &walls));
    un_transfer_nodes_to_tets(ctx, a->tet.u, node->u, node->known, tets, a->tet.known);
    un_transfer_nodes_to_tets(ctx, a->tet.d, node->d, node->known, tets, a->tet.changed);
    return UN_OK;
}

/* ---- 4, 13, 8: particles ---- */

un_status un_adaptive_even_sheets(un_adaptive *a, double dt)
{
    un_sheets_def def = {.h = a->mesh.tree.h,
                         .dt = dt,
                         .pace = a->core.pace,
                         .strength = a->core.def->solver.sheets,
                         .walls = a->core.walls,
                         .wall = a->markers.wall};
    UN_TRY(un_markers_even_sheets(a->core.ctx, &a->core.arena, &a->markers, &def, &a->sheets));
    un_arena_reset(&a->core.arena);
    return un_adaptive_refresh_places(a);
}

un_status un_adaptive_correct(un_adaptive *a, double dt)
{
    un_markers *m = &a->markers;
    un_correct_def def = {.groups = &m->groups,
                          .radius = m->radius,
                          .phi = m->depth,
                          .normal = {m->normal[0], m->normal[1], m->normal[2]},
                          .wall = m->wall,
                          .walls = a->core.walls,
                          .dt = dt,
                          .share = m->share};
    UN_TRY(un_particles_correct_sized(a->core.ctx, &a->core.arena, &m->particles, &def));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

un_status un_adaptive_advect(un_adaptive *a, bool pushes, double dt)
{
    un_particles *p = &a->markers.particles;
    un_tet_field u = {a->tet.u, a->node.u};
    un_hit *hits = NULL;
    if (pushes) UN_TRY(un_adaptive_agree(a, un_core_need_hits(&a->core, p, &hits)));
    UN_TRY(un_advect_tets(a->core.ctx, &a->core.arena, p, hits, &a->markers.bins, &a->mesh.tets, &u,
                          a->mesh.walls.phi, a->core.walls, a->core.def->gravity, dt));
    UN_TRY(a->ranks.any ? un_adaptive_push_bodies_ranks(a, hits)
                        : un_core_push_bodies(&a->core, p, hits));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

un_status un_adaptive_resize(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    un_markers *m = &a->markers;
    un_resize_report resized;
    un_resize_def def = un_adaptive_resize_range(a);
    un_sheets *sheets = a->sheets.any ? &a->sheets : NULL;
    def.walls = a->core.walls;
    def.sheets = sheets;
    def.stream = (uint64_t)a->core.step_count;
    def.share = m->share;
    double before, after;
    int64_t count = m->share ? m->share->own.total : m->particles.count;
    UN_TRY(un_markers_volume(ctx, m, &before));
    /* What emitters bring is not foreseen: above the budget nothing smaller than the mean is made,
     * and what is smaller merges. */
    if (a->budget.most > 0 && (double)count > a->budget.most)
        def.volume_min = fmin(fmax(def.volume_min, before / a->budget.most), def.volume_max);
    UN_TRY(un_markers_fetch_near(ctx, &a->core.arena, m, sheets, &def));
    UN_TRY(un_markers_regroup(ctx, m));
    def.groups = &m->groups;
    def.radius = m->radius;
    def.phi = m->depth;
    for (int axis = 0; axis < 3; axis++) def.normal[axis] = m->normal[axis];
    UN_TRY(un_particles_resize(ctx, &a->core.arena, &m->particles, &def, &resized));
    /* Volumes are rounded to single precision, which adds up over a hundred thousand merges: the
     * ledger books it, as it books what comes and goes. */
    UN_TRY(un_markers_volume(ctx, m, &after));
    a->core.sources.ledger.in += after - before;
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

/* ---- sources ---- */

un_status un_adaptive_remove(un_adaptive *a)
{
    if (a->ranks.any) return un_core_remove_ranks(&a->core, &a->markers);
    UN_TRY(
        un_particles_remove(&a->core.sources, &a->core.arena, &a->markers.particles, a->core.time));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

/* As in method `uniform`: what appears inside the liquid pushes it apart in the next projection,
 * unless it belongs to the first filling. The mesh is still that of the step; the place is found
 * again on the next one, in un_adaptive_place_emitted. */
bool un_adaptive_settle(un_adaptive *a, int32_t q, double phi, bool first_filling)
{
    un_particles *p = &a->markers.particles;
    p->flags[q] = UN_PARTICLE_SURFACE;
    p->size[q] = (float)a->mesh.tree.h;
    if (!(phi < 0)) return true;
    if (!first_filling) p->flags[q] |= UN_PARTICLE_EMITTED;
    return !first_filling;
}

static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    un_adaptive *a = arg;
    un_tets_place place;
    un_tets_locate(&a->mesh.tets, from, &place);
    double phi = un_tet_sample(&a->mesh.tets, a->node.phi, &place);
    *keep = un_adaptive_settle(a, q, phi, first_filling);
    return UN_OK;
}

un_status un_adaptive_emit(un_adaptive *a, double dt)
{
    if (a->ranks.any) return un_adaptive_emit_ranks(a, dt);
    return un_particles_emit(&a->core.sources, &a->markers.particles, a->core.time, dt, settle, a);
}

un_status un_adaptive_place_emitted(un_adaptive *a)
{
    if (a->core.def->source_count == 0) return UN_OK;
    if (a->ranks.any) return un_adaptive_place_emitted_ranks(a);
    return un_emitted_place(a->core.ctx, &a->emitted, &a->mesh.tets, &a->markers.particles);
}

/* ---- 7: octree and tets ---- */

un_status un_adaptive_need_fields(un_adaptive *a)
{
    size_t nodes = (size_t)a->mesh.tets.node_count + 1, tets = (size_t)a->mesh.tets.tet_count + 1;
    un_node_fields *n = &a->node;
    un_tet_fields *t = &a->tet;
    struct {
        void *array;
        size_t size;
    } node[] = {{&n->volume, sizeof *n->volume},
                {&n->colour, sizeof *n->colour},
                {&n->phi, sizeof *n->phi},
                {&n->size, sizeof *n->size},
                {&n->source, sizeof *n->source},
                {&n->p[0], sizeof **n->p},
                {&n->u, sizeof *n->u},
                {&n->d, sizeof *n->d},
                {&n->known, 1},
                {&n->p[1], sizeof **n->p}},
      tet[] = {{&t->u, sizeof *t->u}, {&t->d, sizeof *t->d}, {&t->known, 1}, {&t->changed, 1}};
    size_t node_count = sizeof node / sizeof *node - !a->thick.any;
    for (size_t i = 0; i < node_count; i++)
        UN_TRY(un_array_need(a->core.ctx, node[i].array, &n->capacity[i], nodes, node[i].size));
    for (size_t i = 0; i < sizeof tet / sizeof *tet; i++)
        UN_TRY(un_array_need(a->core.ctx, tet[i].array, &t->capacity[i], tets, tet[i].size));
    return UN_OK;
}

un_status un_adaptive_keep_pressure(un_adaptive *a)
{
    return un_node_memory_keep(a->core.ctx, &a->mesh.memory, &a->mesh.tets, a->node.p,
                               un_adaptive_pressures(a));
}

un_status un_adaptive_build_tree(un_adaptive *a)
{
    if (a->ranks.any) {
        UN_TRY(un_particles_build_tree_ranks(a->core.ctx, &a->core.arena, &a->mesh.tree,
                                             &a->ranks.tree, &a->markers.particles));
        un_arena_reset(&a->core.arena);
        return UN_OK;
    }
    UN_TRY(
        un_particles_build_tree(a->core.ctx, &a->core.arena, &a->mesh.tree, &a->markers.particles));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

un_status un_adaptive_part_drops(un_adaptive *a)
{
    bool found;
    if (a->ranks.any)
        UN_TRY(un_particles_part_drops_ranks(a->core.ctx, &a->core.arena, &a->markers,
                                             &a->mesh.tree, &a->ranks.tree, &found));
    else
        UN_TRY(un_particles_part_drops(a->core.ctx, &a->core.arena, &a->markers, &a->mesh.tree,
                                       &found));
    un_arena_reset(&a->core.arena);
    return found ? un_adaptive_build_tree(a) : UN_OK;
}

un_status un_adaptive_build_mesh(un_adaptive *a)
{
    UN_TRY(un_adaptive_keep_pressure(a));
    un_status status = un_tets_build(&a->mesh.tets, &a->core.arena, &a->mesh.tree);
    un_arena_reset(&a->core.arena);
    UN_TRY(un_adaptive_agree(a, status));
    UN_TRY(un_adaptive_share_mesh(a));
    UN_TRY(un_tet_walls_sample(&a->mesh.walls, &a->core.arena, &a->mesh.tets));
    un_arena_reset(&a->core.arena);
    UN_TRY(un_adaptive_agree(a, un_adaptive_need_fields(a)));
    if (a->ranks.any) {
        UN_TRY(un_node_memory_move(a->core.ctx, &a->mesh.memory, &a->core.arena, &a->ranks.tree));
        un_arena_reset(&a->core.arena);
    }
    return un_node_memory_recall(a->core.ctx, &a->mesh.memory, &a->mesh.tets, a->node.p,
                                 un_adaptive_pressures(a), a->node.known);
}

un_status un_adaptive_sort(un_adaptive *a)
{
    if (a->ranks.any)
        return un_markers_sort_ranks(a->core.ctx, &a->core.arena, &a->markers, &a->mesh.tets,
                                     &a->ranks.tree);
    return un_markers_sort(a->core.ctx, &a->core.arena, &a->markers, &a->mesh.tets);
}

/* ---- 9, 2, 3, 6: from particles to nodes ---- */

un_status un_adaptive_gather(un_adaptive *a)
{
    un_node_fields *n = &a->node;
    UN_TRY(un_transfer_to_nodes(a->core.ctx, &a->core.arena, n->volume, n->u, n->known,
                                &a->mesh.tets, &a->markers.bins, &a->markers.particles));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

un_status un_adaptive_level_set(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    un_tet_level_set def = {.phi = a->node.phi,
                            .colour = a->node.colour,
                            .volume = a->node.volume,
                            .mesh = tets,
                            .walls = &a->mesh.walls,
                            .markers = &a->markers,
                            .open_sides = a->core.def->domain.open,
                            .hulls = strcmp(a->core.def->solver.surface, "hulls") == 0};
    un_cling cling = un_adaptive_cling(a);
    UN_TRY(un_surface_level_set_tets(ctx, &a->core.arena, &def));
    UN_TRY(un_markers_keep_flags(ctx, &a->markers));
    uint8_t *thick;
    UN_TRY(un_surface_thick_tets(ctx, &a->core.arena, &thick, a->node.phi, tets, &a->mesh.walls));
    double inside =
        un_transfer_mark(ctx, &a->markers, tets, a->node.phi, a->mesh.walls.phi, thick, &cling);
    /* As in method `uniform`: thick liquid by the level set, the rest by its particles. */
    double total;
    UN_TRY(un_markers_volume(ctx, &a->markers, &total));
    double liquid = un_tets_liquid_volume(ctx, a->node.phi, tets, a->mesh.walls.open, thick);
    un_ledger_weigh(&a->core.sources.ledger, liquid + total - inside, total);
    un_arena_reset(&a->core.arena);
    return un_adaptive_refresh_flags(a);
}

un_status un_adaptive_sizes(un_adaptive *a, double dt)
{
    un_sizing_nodes nodes;
    un_sizing_def def = {.scene = a->core.scene,
                         .nodes = &nodes,
                         .phi = a->node.phi,
                         .wall = a->mesh.walls.phi,
                         .solid = a->mesh.walls.phi_solid,
                         .narrow = a->mesh.walls.narrow,
                         .velocity = a->node.u,
                         .sources = &a->core.sources,
                         .time = a->core.time,
                         .scale = a->budget.scale};
    UN_TRY(un_sizing_nodes_tets(a->core.ctx, &a->core.arena, &nodes, &a->mesh.tets, def.phi));
    UN_TRY(un_sizing_evaluate(a->core.ctx, &a->core.arena, a->node.size, &def));
    un_arena_reset(&a->core.arena);
    un_sizing_on_tets on = {&a->mesh.tets, a->node.size, &a->markers.bins};
    un_sizing_to_particles(a->core.ctx, &a->markers.particles, un_markers_own(&a->markers),
                           un_sizing_at_tets, &on, dt / a->core.pace);
    un_adaptive_keep_budget(a);
    return UN_OK;
}

/* ---- sums ---- */

un_status un_adaptive_measure(un_adaptive *a, un_step *report)
{
    report->cells = un_tets_wet_count(a->core.ctx, a->node.phi, &a->mesh.tets);
    report->nodes = un_tets_node_total(&a->mesh.tets);
    if (a->ranks.any)
        UN_TRY(un_core_measure_ranks(&a->core, &a->markers, report));
    else
        UN_TRY(un_core_measure(&a->core, report, &a->markers.particles, a->markers.ballistic));
    /* Before the first step the mesh knows nothing yet. */
    if (a->core.step_count == 0) a->rate_max = report->max_speed / a->mesh.tree.h;
    return UN_OK;
}

/* ---- life ---- */

void un_adaptive_release(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    un_node_fields *n = &a->node;
    un_tet_fields *t = &a->tet;
    void *arrays[] = {n->volume, n->colour, n->phi,   n->size, n->source, n->p[0],  n->p[1],
                      n->u,      n->d,      n->known, t->u,    t->d,      t->known, t->changed};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    *n = (un_node_fields){0};
    *t = (un_tet_fields){0};
    un_node_memory_free(ctx, &a->mesh.memory);
    un_emitted_free(ctx, &a->emitted);
    un_sheets_free(ctx, &a->sheets);
    un_mixture_free(ctx, &a->thick.mix);
    un_viscous_walls_free(ctx, &a->thick.walls);
    un_tet_walls_free(&a->mesh.walls);
    un_tets_free(&a->mesh.tets);
    un_markers_release(ctx, &a->markers);
    un_arena_free(&a->core.arena);
}

void un_adaptive_free(un_adaptive *a)
{
    if (!a->core.ctx) return;
    un_adaptive_ranks_free(a);
    un_adaptive_release(a);
    un_octree_free(&a->mesh.tree);
    un_viscosity_destroy(a->thick.solver);
    un_markers_free(a->core.ctx, &a->markers);
    un_core_free(&a->core);
}

un_status un_adaptive_begin(un_adaptive *a, un_context *ctx, const un_scene *scene)
{
    const un_scene_def *def = &scene->def;
    un_status status = un_core_init(&a->core, ctx, scene, false);
    a->budget.scale = 1;
    a->thick.any = un_scene_viscous(def);
    a->thick.mix.density_all = def->fluid.density;
    a->thick.mix.viscosity_all = def->fluid.viscosity;
    un_markers_init(ctx, &a->markers);
    un_octree_init(ctx, &a->mesh.tree, def->domain.size, def->detail.coarsest, def->detail.finest);
    un_tets_init(ctx, &a->mesh.tets);
    un_tet_walls_init(ctx, &a->mesh.walls, a->core.walls);
    UN_TRY(status);
    if (a->thick.any) UN_TRY(un_viscosity_create(ctx, &a->thick.solver));
    a->markers.particles.sized = true;
    a->markers.particles.mixed = un_scene_mixed(def);
    return un_particles_reserve(ctx, &a->markers.particles, 1);
}

un_status un_adaptive_fill(un_adaptive *a)
{
    bool liquid = a->core.def->liquid.shape != NULL;
    if (liquid) {
        UN_TRY(un_adaptive_first_mesh(a));
        UN_TRY(un_adaptive_unshare(a));
        un_adaptive_release(a); /* the first rounds sample more evenly, and take more room */
        un_tets_init(a->core.ctx, &a->mesh.tets);
        un_octree_free(&a->mesh.tree);
        UN_TRY(un_adaptive_agree(a, un_particles_trim(a->core.ctx, &a->markers.particles)));
    }
    /* Resizing comes to rest and the surface to its shape before the first step. */
    for (int round = 0; round < START_ROUNDS; round++) {
        bool last = round == START_ROUNDS - 1;
        if (round > 0 && !last) UN_TRY(un_adaptive_resize(a));
        if (last) UN_TRY(un_adaptive_unshare(a));
        if (round == 1) UN_TRY(un_adaptive_emit(a, 0));
        UN_TRY(un_adaptive_build_tree(a));
        UN_TRY(un_adaptive_build_mesh(a));
        UN_TRY(un_adaptive_sort(a));
        UN_TRY(un_adaptive_gather(a));
        UN_TRY(un_adaptive_level_set(a));
        if (round >= START_ROUNDS - 3 && !last && liquid) UN_TRY(un_adaptive_fit_surface(a));
        UN_TRY(un_adaptive_sizes(a, 0));
    }
    return un_adaptive_measure(a, &a->core.last);
}
