/* Method `staggered`: normal velocities on the faces of graded tetrahedra and one pressure a tet,
 * the framework of [Batty11] after Batty, Xenos & Houston 2010.
 *
 * A step, with the paper's sections:
 *     project, with gravity                              pressure/faces.c
 *     viscosity at nodes (4), and its change to faces (5.2), or on faces as a whole (5.1); project
 *     again
 *     velocities at nodes and tets from those on faces   transfer/tet_faces.c (5.1, eq. 9)
 *     move markers, build the next mesh around them, find its level set
 *     carry velocities to the new faces, semi-Lagrangian advect/faces.c (3)
 *
 * Where it departs from the paper, and why:
 *  - Markers fill the liquid instead of lying on its surface: they are the particles of method
 *    `tet`, and mesh, sizing, level set, emitters, ledger and output come from there. They carry
 *    no velocity but what outputs show. The paper's own markers lose thin sheets and flicker where
 *    surfaces merge, as it says.
 *  - Velocities at nodes, which are means over the cells around them, get back what that smooths
 *    away before they are carried on (un_transfer_find_lost): a standing wave lost a third of its
 *    height in a period. Markers move with the smooth ones.
 *  - Barycentres instead of circumcentres, and weight taken out of the pressure: see
 *    pressure/faces.c.
 *  - The projection before the viscous step, which the paper calls optional, is where gravity acts:
 *    viscous liquid at rest in a vessel then stays at rest.
 *  - Liquid that falls in or is emitted brings its own velocity (advect/faces.c).
 *  - Thin walls have nodes and tets on each side (mesh/tets_parts.c); sheets thinner than a cell
 *    are held together (particles/sheets.c); surface tension is a pressure at the surface
 *    (tension/tets.c); bodies that the liquid moves are solved for with the pressure
 *    (pressure/coupling.c).
 *  - The solve at nodes keeps volume by a pressure of its own, as in `tet`: in turn, as in the
 *    paper, threads are too soft (viscosity/volume.c). `solver.stress = "split"` and the solve on
 *    faces as a whole keep to the paper. */
#include "method/adaptive.h"

/* A rate so high that particles take the mesh's velocity in every step, 1/s. */
#define ALL 1e9

enum {
    STAGE_WALLS,
    STAGE_PRESSURE,
    STAGE_VISCOSITY,
    STAGE_EXTRAPOLATE,
    STAGE_ADVECT,
    STAGE_RESIZE,
    STAGE_SOURCES,
    STAGE_MESH,
    STAGE_LEVEL_SET,
    STAGE_TO_FACES,
    STAGE_SIZING,
    STAGE_MEASURE,
    STAGE_SHEETS
};
static const char *const stages[] = {"walls",  "pressure", "viscosity", "extrapolate", "advect",
                                     "resize", "sources",  "mesh",      "level_set",   "to_faces",
                                     "sizing", "measure",  "sheets",    NULL};

/* The last mesh, and velocities on it. */
typedef struct un_old_mesh {
    un_octree tree;
    un_tets tets;
    un_vec3 *node, *tet; /* node: until put_mesh_aside what the nodes have lost */
    uint8_t *liquid;     /* at nodes */
    size_t capacity[3];
} un_old_mesh;

typedef struct un_staggered {
    un_adaptive a; /* first: the table's shared entries rely on it */
    un_faces faces;
    double *u;      /* at faces, along their normals */
    uint8_t *known; /* at faces: 1 in the liquid */
    double *p;      /* at tets, Pa */
    size_t capacity[3];
    un_pressure *pressure;
    un_old_mesh old;
} un_staggered;
_Static_assert(offsetof(un_staggered, a) == 0, "see above");

/* ---- faces ---- */

static un_status number_faces(un_staggered *s)
{
    un_context *ctx = s->a.core.ctx;
    UN_TRY(un_faces_number(ctx, &s->a.core.arena, &s->faces, &s->a.mesh.tets));
    un_arena_reset(&s->a.core.arena);
    size_t faces = (size_t)s->faces.count + 1, tets = (size_t)s->a.mesh.tets.tet_count + 1;
    UN_TRY(un_array_need(ctx, (void **)&s->u, &s->capacity[0], faces, sizeof *s->u));
    UN_TRY(un_array_need(ctx, (void **)&s->known, &s->capacity[1], faces, 1));
    return un_array_need(ctx, (void **)&s->p, &s->capacity[2], tets, sizeof *s->p);
}

/* ---- pressure ---- */

/* before: at tets, the pressure that was found earlier in this step; NULL: none. */
static un_status apply_pressure(un_staggered *s, double dt, un_vec3 gravity, const double *before,
                                un_face_projection_report *report)
{
    un_adaptive *a = &s->a;
    const un_scene_def *def = a->core.def;
    double *surface = NULL;
    if (!before) UN_TRY(un_adaptive_find_tension(a, dt, &surface)); /* once in a step */
    un_face_projection in = {.mesh = &a->mesh.tets,
                             .faces = &s->faces,
                             .u = s->u,
                             .known = s->known,
                             .phi = a->node.phi,
                             .walls = &a->mesh.walls,
                             .open_sides = def->domain.open,
                             .p = s->p,
                             .surface = surface,
                             .source = a->node.source,
                             .before = before,
                             .let_go = un_core_let_go(&a->core, dt),
                             .lightness = a->thick.mix.lightness,
                             .gravity = gravity,
                             .dt = un_core_kick(&a->core, dt),
                             .density = def->fluid.density,
                             .tolerance = def->solver.tolerance,
                             .iteration_limit = UN_ITERATION_LIMIT,
                             .bodies = un_core_free_bodies(&a->core)};
    UN_TRY(un_face_pressure_project(s->pressure, &in, report));
    return un_step_solved(a->core.ctx, &report->solve, a->core.step_count + 1, a->core.time,
                          def->solver.tolerance);
}

/* With gravity. The nodes' pressure lasts from mesh to mesh: the tets' guess. */
static un_status project(un_staggered *s, double dt, un_face_projection_report *report)
{
    un_adaptive *a = &s->a;
    un_vec3 gravity = a->core.def->gravity;
    un_adaptive_want_divergence(a, dt);
    un_face_pressure_guess(a->core.ctx, s->p, a->node.p[0], &a->mesh.tets);
    UN_TRY(apply_pressure(s, dt, gravity, NULL, report));
    un_arena_reset(&a->core.arena);
    un_face_pressure_to_nodes(s->pressure, a->node.p[0], s->p, &a->mesh.tets, a->node.phi,
                              un_scale(gravity, a->core.def->fluid.density));
    return UN_OK;
}

/* Once more after viscosity: small beside the first. */
static un_status project_again(un_staggered *s, double dt, un_face_projection_report *report)
{
    int32_t iterations = report->solve.iterations;
    size_t tets = (size_t)s->a.mesh.tets.tet_count;
    double *first = un_arena_alloc(&s->a.core.arena, tets + 1, sizeof *first);
    if (!first) return UN_ERROR_MEMORY;
    memcpy(first, s->p, tets * sizeof *first);
    memset(s->p, 0, tets * sizeof *s->p);
    UN_TRY(apply_pressure(s, dt, un_v3(0, 0, 0), first, report));
    un_arena_reset(&s->a.core.arena);
    report->solve.iterations += iterations;
    return UN_OK;
}

/* ---- viscosity ---- */

static un_status apply_viscosity(un_staggered *s, double dt, int32_t *iterations)
{
    un_adaptive *a = &s->a;
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    un_viscous_faces on = {&s->faces, s->u, s->known};
    bool implicit = strcmp(a->core.def->solver.coupling, "implicit") == 0;
    bool full = !implicit && strcmp(a->core.def->solver.stress, "full") == 0;
    un_viscous_step viscous = un_adaptive_viscous_step(a, full, dt);
    un_viscous_report report;
    /* What is pressed through slivers, at up to 300 m/s around a ball that sinks, is not for nodes.
     */
    un_pressure_calm_faces(ctx, s->u, s->known, &s->faces, &a->mesh.walls);
    un_transfer_faces_to_nodes(ctx, a->node.u, a->node.known, s->u, s->known, &s->faces, tets);
    UN_TRY(un_transfer_extrapolate_nodes(ctx, &a->core.arena, a->node.u, NULL, a->node.known, tets,
                                         2));
    un_arena_reset(&a->core.arena);
    /* Liquid that sticks has the wall's velocity at its nodes before and after; else what the faces
     * make of it would be taken off the liquid in every step. At a body that the liquid moves it
     * has its own momentum: the solve shares it out. */
    un_viscous_walls_follow(ctx, &a->thick.walls, &a->mesh.walls);
    un_viscous_walls_stick(ctx, &a->thick.walls, a->node.u, a->node.d, tets->node_count);
    UN_TRY(un_viscosity_step_faces(a->thick.solver, &a->core.arena, &viscous, &on, a->node.u,
                                   a->node.d, implicit, &report));
    un_arena_reset(&a->core.arena);
    *iterations = report.solve.iterations;
    return un_core_viscous_solved(&a->core, &report.solve);
}

/* ---- velocities beyond the liquid ---- */

static un_status spread_velocity(un_staggered *s, double dt)
{
    un_adaptive *a = &s->a;
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    size_t nodes = (size_t)tets->node_count;
    un_pressure_calm_faces(ctx, s->u, s->known, &s->faces, &a->mesh.walls);
    un_transfer_faces_to_nodes(ctx, a->node.u, a->node.known, s->u, s->known, &s->faces, tets);
    un_transfer_faces_to_tets(ctx, a->tet.u, a->tet.known, s->u, s->known, &s->faces, tets);
    un_face_velocities made = {.faces = &s->faces,
                               .mesh = tets,
                               .u = s->u,
                               .known = s->known,
                               .node = a->node.u,
                               .tet = a->tet.u,
                               .known_node = a->node.known,
                               .known_tet = a->tet.known,
                               .dt = dt};
    UN_TRY(un_array_need(ctx, (void **)&s->old.node, &s->old.capacity[0], nodes + 1,
                         sizeof *s->old.node));
    UN_TRY(un_transfer_find_lost(ctx, &a->core.arena, s->old.node, &made));
    un_arena_reset(&a->core.arena);
    memset(a->node.d, 0, nodes * sizeof *a->node.d);
    memset(a->tet.d, 0, (size_t)tets->tet_count * sizeof *a->tet.d);
    memcpy(a->tet.changed, a->tet.known, (size_t)tets->tet_count);
    UN_TRY(un_array_need(ctx, (void **)&s->old.liquid, &s->old.capacity[2], nodes + 1, 1));
    memcpy(s->old.liquid, a->node.known, nodes);
    un_adaptive_find_rate(a);
    return un_adaptive_extend(a, dt);
}

static un_status take_velocity(un_adaptive *a, double dt)
{
    un_flip flip = {.dt = un_core_kick(&a->core, dt),
                    .gravity = a->core.def->gravity,
                    .pic = ALL,
                    .pic_quiet = ALL,
                    .quiet_speed = 1};
    un_tet_field u = {a->tet.u, a->node.u}, change = {a->tet.d, a->node.d};
    un_cling cling = un_adaptive_cling(a);
    UN_TRY(un_transfer_tets_to_particles(a->core.ctx, &a->core.arena, &a->markers.particles,
                                         &a->markers.bins, &a->mesh.tets, &u, &change, NULL, &flip,
                                         0.25 * a->mesh.tree.h));
    un_advect_draw_in(a->core.ctx, &a->markers, a->core.walls, &cling,
                      a->core.def->solver.sheets > 0 ? UN_DRAW_WHOLE : UN_DRAW_ALL, dt,
                      a->core.pace);
    return UN_OK;
}

static un_status move_markers(un_adaptive *a, double dt)
{
    UN_TRY(un_adaptive_correct(a, dt)); /* or they line up, and the surface has ridges */
    return un_adaptive_advect(a, false, dt);
}

/* ---- from mesh to mesh ---- */

/* The mesh and the velocities on it, with what nodes lost of them, become the old ones. */
static un_status put_mesh_aside(un_staggered *s)
{
    un_adaptive *a = &s->a;
    un_context *ctx = a->core.ctx;
    un_old_mesh *old = &s->old;
    size_t tets = (size_t)a->mesh.tets.tet_count;
    UN_TRY(un_adaptive_keep_pressure(a));
    UN_TRY(un_array_need(ctx, (void **)&old->tet, &old->capacity[1], tets + 1, sizeof *old->tet));
    un_transfer_add_nodes(ctx, old->node, a->node.u, a->mesh.tets.node_count);
    memcpy(old->tet, a->tet.u, tets * sizeof *old->tet);
    un_octree tree = a->mesh.tree;
    un_tets mesh = a->mesh.tets;
    a->mesh.tree = old->tree;
    a->mesh.tets = old->tets;
    old->tree = tree;
    old->tets = mesh;
    old->tets.tree = &old->tree;
    a->mesh.tets.tree = &a->mesh.tree;
    a->mesh.tets.node_count = a->mesh.tets.tet_count = 0;
    return UN_OK;
}

static un_status carry_velocity(un_staggered *s, double dt)
{
    un_adaptive *a = &s->a;
    uint8_t *thick = NULL;
    if (a->core.def->solver.sheets > 0)
        UN_TRY(un_surface_thick_tets(a->core.ctx, &a->core.arena, &thick, a->node.phi,
                                     &a->mesh.tets, &a->mesh.walls));
    un_face_advection in = {.mesh = &a->mesh.tets,
                            .old_mesh = &s->old.tets,
                            .faces = &s->faces,
                            .phi = a->node.phi,
                            .old = {s->old.tet, s->old.node},
                            .old_liquid = s->old.liquid,
                            .drops = a->node.u,
                            .drops_known = a->node.known,
                            .thick = thick,
                            .dt = dt,
                            .reach = 2};
    un_advect_faces(a->core.ctx, s->u, &in);
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

/* ---- the step ---- */

static un_status step(void *state, double dt, un_step *report)
{
    un_staggered *s = state;
    un_adaptive *a = &s->a;
    un_face_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_adaptive_move_walls(a, dt));
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_adaptive_thicken(a)); /* density and viscosity at nodes */
    UN_TRY(project(s, dt, &projection));
    un_stage_end(report, STAGE_PRESSURE, &clock);
    if (a->thick.any) {
        UN_TRY(apply_viscosity(s, dt, &report->viscous_iterations));
        un_stage_end(report, STAGE_VISCOSITY, &clock);
        UN_TRY(project_again(s, dt, &projection));
        un_stage_end(report, STAGE_PRESSURE, &clock);
    }
    UN_TRY(un_core_touch_bodies(&a->core, dt)); /* contacts of bodies that the liquid moves */
    UN_TRY(spread_velocity(s, dt));
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    UN_TRY(un_adaptive_move_free(a, dt));
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(take_velocity(a, dt));
    un_stage_end(report, STAGE_ADVECT, &clock);
    UN_TRY(un_adaptive_even_sheets(a, dt));
    un_stage_end(report, STAGE_SHEETS, &clock);
    UN_TRY(move_markers(a, dt));
    un_stage_end(report, STAGE_ADVECT, &clock);
    un_core_tick(&a->core, dt);
    UN_TRY(un_adaptive_resize(a));
    un_stage_end(report, STAGE_RESIZE, &clock);
    UN_TRY(un_adaptive_remove(a));
    UN_TRY(un_adaptive_emit(a, dt));
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(put_mesh_aside(s));
    UN_TRY(un_adaptive_build_tree(a));
    UN_TRY(un_adaptive_build_mesh(a));
    UN_TRY(un_adaptive_place_emitted(a));
    UN_TRY(un_adaptive_sort(a));
    UN_TRY(number_faces(s));
    un_stage_end(report, STAGE_MESH, &clock);
    UN_TRY(un_adaptive_gather(a));
    UN_TRY(un_adaptive_level_set(a));
    un_stage_end(report, STAGE_LEVEL_SET, &clock);
    UN_TRY(carry_velocity(s, dt));
    un_stage_end(report, STAGE_TO_FACES, &clock);
    if (a->core.step_count % UN_SIZING_STEPS == 0)
        UN_TRY(un_adaptive_sizes(a, UN_SIZING_STEPS * dt));
    un_stage_end(report, STAGE_SIZING, &clock);

    UN_TRY(un_adaptive_measure(a, report));
    un_stage_end(report, STAGE_MEASURE, &clock);
    un_core_report(&a->core, report, &projection.solve, projection.max_divergence, start);
    return UN_OK;
}

/* ---- life ---- */

static void end(void *state)
{
    un_staggered *s = state;
    un_context *ctx = s->a.core.ctx;
    void *arrays[] = {s->u, s->known, s->p, s->old.node, s->old.tet, s->old.liquid};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    un_faces_free(ctx, &s->faces);
    un_pressure_destroy(s->pressure);
    un_tets_free(&s->old.tets);
    un_octree_free(&s->old.tree);
    un_adaptive_free(&s->a);
}

static un_status fill(void *state)
{
    un_staggered *s = state;
    UN_TRY(un_adaptive_fill(&s->a));
    UN_TRY(number_faces(s));
    un_transfer_nodes_to_faces(s->a.core.ctx, s->u, s->a.node.u, &s->faces, &s->a.mesh.tets);
    return UN_OK;
}

static un_status load(void *state, const un_state *in)
{
    un_staggered *s = state;
    UN_TRY(un_adaptive_load(&s->a, in));
    UN_TRY(number_faces(s));
    return un_state_take(in, "face_velocity", s->u, s->faces.count, 8);
}

static un_status begin(void *state, un_context *ctx, const un_scene *scene)
{
    un_staggered *s = state;
    const un_scene_def *def = &scene->def;
    un_octree_init(ctx, &s->old.tree, def->domain.size, def->detail.coarsest, def->detail.finest);
    un_tets_init(ctx, &s->old.tets);
    UN_TRY(un_adaptive_begin(&s->a, ctx, scene));
    UN_TRY(un_pressure_create(ctx, NULL, &s->pressure));
    return un_pressure_configure(s->pressure->solver, def);
}

static un_status save(const void *state, un_state *out)
{
    const un_staggered *s = state;
    UN_TRY(un_adaptive_save(&s->a, out));
    return un_state_add(out, "face_velocity", s->u, s->faces.count, 8);
}

const un_method un_method_staggered = {.traits = {.name = "staggered",
                                                  .particles = true,
                                                  .adaptive = true,
                                                  .viscous = true,
                                                  .mixed = true,
                                                  .tension = true,
                                                  .thin_walls = true,
                                                  .bodies = true,
                                                  .faces = true},
                                       .stages = stages,
                                       .size = sizeof(un_staggered),
                                       .begin = begin,
                                       .fill = fill,
                                       .load = load,
                                       .end = end,
                                       .step_limit = un_adaptive_step_limit,
                                       .step = step,
                                       .particles = un_adaptive_particles,
                                       .depth = un_adaptive_depth,
                                       .surface = un_adaptive_surface,
                                       .cells = un_adaptive_cells,
                                       .probe = un_adaptive_probe,
                                       .estimate = un_adaptive_estimate,
                                       .bytes = un_adaptive_bytes,
                                       .save = save};
