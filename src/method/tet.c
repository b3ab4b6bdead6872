/* Method `tet`: highly adaptive FLIP on graded BCC tetrahedra [Ando13].
 *
 * The step is Algorithm 1 of the paper, begun at line 9. A step ends by building the mesh and the
 * level set that the next one needs, so that outputs show what the next step will see. Line 9 comes
 * in two parts: nodes gather volume and velocity from the particles in one pass right after
 * sorting, because the level set and the sizes need them too; the velocities of tets begin the
 * step.
 *
 * Where it departs from the paper, and why:
 *  - The mesh is rebuilt every step and follows the particles' sizes; S(x) acts on the particles
 *    (line 8). If the mesh followed S directly, cells would stay empty until particles had split.
 *    Calm liquid has more particles per cell, and its surface runs through cells of one size.
 *  - Before the first step, resizing settles and particles move until the level set matches the
 *    shape (adaptive_start.c). Otherwise every change of cell size would start as a step in the
 *    water. Features thinner than the first samples get finer samples.
 *  - The simulation's level set comes from the particles' volume fraction (surface/tet_colour.c),
 *    not from the union of hulls: pressure takes the bumps of hulls for waves. Hulls make the
 *    output surface.
 *  - Particle velocities go to nodes by hat functions (transfer/tets.c), whose weights are bounded.
 *    The paper's kernel lets small particles outweigh all others. Particles too large for their
 *    cells are spread over several.
 *  - Inside the liquid only nearly empty space counts as a bubble (surface/tet_colour.c).
 *  - Position correction follows the transfer to particles (line 12). It acts along the surface
 *    only and does not pull towards it, which would lose volume. Liquid at rest is not corrected.
 *  - The PIC share (eq. 14) is a rate: stronger, and of second order, where the liquid is quiet.
 *    Differences from cell to cell are calmed there. So water settles and waves are kept.
 *  - Wanted sizes shrink at once, grow slowly and change slowly in space: nothing flickers, and
 *    small particles do not meet large cells. Particles that leave the liquid fly by themselves;
 *    the level set says which, not their distance from others (transfer/mark.c). Drops among much
 *    larger particles ask for no cells (particles/drops.c). When a particle at the surface splits,
 *    not both halves need to stay there (particles/resize.c). Shallow liquid and thin solids have
 *    sizing terms of their own (sizing/sizing.c).
 *  - Steps are those of a leapfrog, so that free fall is exact (core.h). Pressure at walls does not
 *    pull (pressure/release.c).
 *  - Nodes and tets have a copy on each side of a thin wall (mesh/tets_parts.c). Tets that solids
 *    leave nearly closed take the velocity of the nodes around them (pressure/slivers.c), and no
 *    particle passes more than a cell of its liquid in a step (un_flip_share).
 *  - Sheets and threads thinner than a cell are held together: velocities and places are evened
 *    along them, and they do not merge into beads (particles/sheets.c, resize.c).
 *  - Surface tension is a pressure at the surface (tension/tets.c). Bodies that the liquid moves
 *    are solved for with the pressure (pressure/coupling.c).
 *  - Viscosity is solved for at nodes [Batty11], with the pressure before and after it.
 *  - A ledger of volume drives a small bounded expansion [Ibayashi18 section 9], and crowded liquid
 *    evens out, as in method `uniform`.
 *
 * Several ranks may share a run (adaptive_ranks.c); its bits are those of one. */
#include "method/adaptive.h"

enum {
    STAGE_WALLS,
    STAGE_TO_MESH,
    STAGE_PRESSURE,
    STAGE_EXTRAPOLATE,
    STAGE_TO_PARTICLES,
    STAGE_CORRECT,
    STAGE_ADVECT,
    STAGE_RESIZE,
    STAGE_SOURCES,
    STAGE_MESH,
    STAGE_SORT,
    STAGE_LEVEL_SET,
    STAGE_SIZING,
    STAGE_MEASURE,
    STAGE_VISCOSITY,
    STAGE_SHEETS
};
static const char *const stages[] = {
    "walls",     "to_mesh", "pressure", "extrapolate", "to_particles", "correct", "advect",
    "resize",    "sources", "mesh",     "sort",        "level_set",    "sizing",  "measure",
    "viscosity", "sheets",  NULL};

typedef struct un_tet {
    un_adaptive a; /* first: the table's shared entries rely on it */
    un_pressure *pressure;
    un_vec3 *sharp; /* at nodes: detail that a round trip through the particles would blur */
    float *quiet;   /* at nodes: 1 at rest, 0 in motion */
    size_t capacity[2];
    un_impulse impulse; /* of this step, if the liquid moves bodies */
} un_tet;
_Static_assert(offsetof(un_tet, a) == 0, "see above");

/* ---- 9: velocities of the mesh ---- */

static un_status to_mesh(un_tet *s, double dt)
{
    un_adaptive *a = &s->a;
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    size_t nodes = (size_t)tets->node_count + 1;
    /* node.u is what un_adaptive_gather left; particles have not moved since. */
    UN_TRY(un_transfer_extrapolate_nodes(ctx, &a->core.arena, a->node.u, NULL, a->node.known, tets,
                                         2));
    un_arena_reset(&a->core.arena);
    UN_TRY(un_adaptive_thicken(a));
    /* What the tets have before any force, to tell the change from; calming needs it too. */
    un_transfer_nodes_to_tets(ctx, a->tet.u, a->node.u, a->node.known, tets, NULL);
    un_parallel_copy(ctx, a->tet.d, a->tet.u, (size_t)tets->tet_count * sizeof *a->tet.d);
    UN_TRY(un_array_need(ctx, (void **)&s->sharp, &s->capacity[0], nodes, sizeof *s->sharp));
    UN_TRY(un_array_need(ctx, (void **)&s->quiet, &s->capacity[1], nodes, sizeof *s->quiet));
    un_calm_def calm = {.u_tet = a->tet.u,
                        .sharp = s->sharp,
                        .quiet = s->quiet,
                        .u_node = a->node.u,
                        .known_node = a->node.known,
                        .mesh = tets,
                        .bins = &a->markers.bins,
                        .particles = &a->markers.particles,
                        .mix = &a->thick.mix,
                        .viscous = a->thick.any,
                        .quiet_speed = un_core_quiet_speed(&a->core, a->mesh.tree.h),
                        .dt = dt,
                        .pace = a->core.pace};
    UN_TRY(un_transfer_calm(ctx, &a->core.arena, &calm));
    un_transfer_add(ctx, a->tet.u, tets->tet_count,
                    un_scale(a->core.def->gravity, un_core_kick(&a->core, dt)));
    return UN_OK;
}

/* ---- 11: pressure ---- */

/* before: the pressure that was found earlier in this step; NULL: none. */
static un_status apply_pressure(un_tet *s, double dt, const double *before,
                                un_tet_projection_report *report)
{
    un_adaptive *a = &s->a;
    const un_scene_def *def = a->core.def;
    double *surface = NULL;
    if (!before) UN_TRY(un_adaptive_find_tension(a, dt, &surface)); /* once in a step */
    un_tet_projection in = {.mesh = &a->mesh.tets,
                            .u = a->tet.u,
                            .known = a->tet.known,
                            .phi = a->node.phi,
                            .walls = &a->mesh.walls,
                            .u_solid = a->mesh.walls.u_solid,
                            .p = a->node.p[0],
                            .surface = surface,
                            .source = a->node.source,
                            .before = before,
                            .let_go = un_core_let_go(&a->core, dt),
                            .lightness = a->thick.mix.lightness,
                            .bodies = un_core_free_bodies(&a->core),
                            .dt = un_core_kick(&a->core, dt),
                            .density = def->fluid.density,
                            .tolerance = def->solver.tolerance,
                            .iteration_limit = UN_ITERATION_LIMIT};
    UN_TRY(un_tet_pressure_project(s->pressure, &a->core.arena, &in, report));
    un_vec3 gravity = un_scale(def->gravity, before ? 0 : in.dt);
    if (in.bodies) un_tet_impulse(s->pressure, &in, a->tet.d, gravity, &s->impulse);
    if (a->ranks.any) un_solver_release(s->pressure->solver);
    un_arena_reset(&a->core.arena);
    return un_step_solved(a->core.ctx, &report->solve, a->core.step_count + 1, a->core.time,
                          def->solver.tolerance);
}

static un_status project(un_tet *s, double dt, un_tet_projection_report *report)
{
    un_adaptive_want_divergence(&s->a, dt);
    return apply_pressure(s, dt, NULL, report);
}

/* Viscosity with a pressure of its own, which keeps the volume under it; then 11 once more. */
static un_status apply_viscosity(un_tet *s, double dt, un_tet_projection_report *projection,
                                 int32_t *viscous_iterations)
{
    un_adaptive *a = &s->a;
    bool full = strcmp(a->core.def->solver.stress, "full") == 0;
    un_viscous_step viscous = un_adaptive_viscous_step(a, full, dt);
    un_viscous_report report;
    un_viscous_walls_follow(a->core.ctx, &a->thick.walls, &a->mesh.walls);
    un_status status = un_viscosity_step_tets(a->thick.solver, &a->core.arena, &viscous, a->tet.u,
                                              a->tet.d, a->tet.known, a->node.u, &report);
    un_arena_reset(&a->core.arena);
    UN_TRY(status);
    UN_TRY(un_core_viscous_solved(&a->core, &report.solve));
    *viscous_iterations = report.solve.iterations;
    /* The second pressure is small beside the first; outputs and the next guess have their sum. */
    int32_t nodes = a->mesh.tets.node_count, iterations = projection->solve.iterations;
    un_vec3 got = un_add(s->impulse.momentum, report.impulse);
    double *first = un_alloc(a->core.ctx, (size_t)nodes + 1, sizeof *first);
    status = un_adaptive_agree(a, first ? UN_OK : UN_ERROR_MEMORY);
    if (status != UN_OK) {
        un_free(a->core.ctx, first);
        return status;
    }
    memcpy(first, a->node.p[0], (size_t)nodes * sizeof *first);
    memset(a->node.p[0], 0, (size_t)nodes * sizeof *first);
    status = apply_pressure(s, dt, first, projection);
    s->impulse.momentum = un_add(s->impulse.momentum, got);
    un_pressure_add(a->core.ctx, a->node.p[0], first, nodes);
    un_free(a->core.ctx, first);
    projection->solve.iterations += iterations;
    return status;
}

/* ---- 10, 12 ---- */

static un_status extend(un_adaptive *a, double dt)
{
    un_context *ctx = a->core.ctx;
    const un_tets *tets = &a->mesh.tets;
    un_adaptive_find_rate(a);
    un_pressure_calm_tets(ctx, a->tet.u, a->tet.known, a->tet.changed, &a->mesh.walls);
    un_transfer_change(ctx, a->tet.d, a->tet.u, a->tet.d, a->tet.changed, tets->tet_count);
    UN_TRY(un_transfer_tets_to_nodes(ctx, a->node.d, a->node.known, a->tet.d, a->tet.changed, tets,
                                     a->mesh.walls.open));
    un_transfer_add_change(ctx, a->node.u, a->node.d, a->node.known, tets->node_count);
    return un_adaptive_extend(a, dt);
}

static un_status to_particles(un_tet *s, double dt)
{
    un_adaptive *a = &s->a;
    un_vec3 *was;
    UN_TRY(un_adaptive_agree(a, un_core_note(&a->core, &a->markers.particles, &was)));
    un_flip flip = un_core_flip(&a->core, a->mesh.tree.h, un_core_kick(&a->core, dt));
    un_tet_field u = {a->tet.u, a->node.u}, change = {a->tet.d, a->node.d};
    un_cling cling = un_adaptive_cling(a);
    UN_TRY(un_transfer_tets_to_particles(a->core.ctx, &a->core.arena, &a->markers.particles,
                                         &a->markers.bins, &a->mesh.tets, &u, &change, s->sharp,
                                         &flip, 0.25 * a->mesh.tree.h));
    if (a->ranks.any)
        UN_TRY(un_adaptive_settle_ranks(a, was, &s->impulse, flip.dt));
    else
        un_core_settle(&a->core, &a->markers.particles, was, &s->impulse, flip.dt);
    un_arena_reset(&a->core.arena);
    un_advect_draw_in(a->core.ctx, &a->markers, a->core.walls, &cling, UN_DRAW_HELD, dt,
                      a->core.pace);
    return UN_OK;
}

/* ---- the step ---- */

static un_status step(void *state, double dt, un_step *report)
{
    un_tet *s = state;
    un_adaptive *a = &s->a;
    un_tet_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;
    un_adaptive_begin_step(a);

    UN_TRY(un_adaptive_move_walls(a, dt)); /* solids, at the end of the step */
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(to_mesh(s, dt)); /* 9 mesh velocity from particle velocities */
    un_stage_end(report, STAGE_TO_MESH, &clock);
    UN_TRY(project(s, dt, &projection)); /* 11 solve pressure, update velocity */
    un_stage_end(report, STAGE_PRESSURE, &clock);
    if (a->thick.any) /* [Batty11], and 11 again */
        UN_TRY(apply_viscosity(s, dt, &projection, &report->viscous_iterations));
    un_stage_end(report, STAGE_VISCOSITY, &clock);
    UN_TRY(un_core_touch_bodies(&a->core, dt)); /* contacts of bodies that the liquid moves */
    UN_TRY(extend(a, dt));                      /* 10 extrapolate outside the liquid */
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    UN_TRY(un_adaptive_move_free(a, dt));
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(to_particles(s, dt)); /* 12 update particle velocities */
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    UN_TRY(un_adaptive_even_sheets(a, dt));
    un_stage_end(report, STAGE_SHEETS, &clock);
    UN_TRY(un_adaptive_correct(a, dt)); /* 4 correct particle positions */
    un_stage_end(report, STAGE_CORRECT, &clock);
    UN_TRY(un_adaptive_advect(a, true, dt)); /* 13 advect particles */
    un_stage_end(report, STAGE_ADVECT, &clock);
    un_core_tick(&a->core, dt);
    UN_TRY(un_adaptive_resize(a)); /* 8 merge and split */
    un_stage_end(report, STAGE_RESIZE, &clock);
    UN_TRY(un_adaptive_remove(a));
    UN_TRY(un_adaptive_emit(a, dt));
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(un_adaptive_build_tree(a)); /* 7 octree and BCC mesh */
    UN_TRY(un_adaptive_part_drops(a));
    UN_TRY(un_adaptive_build_mesh(a));
    UN_TRY(un_adaptive_place_emitted(a));
    un_stage_end(report, STAGE_MESH, &clock);
    UN_TRY(un_adaptive_sort(a));
    un_stage_end(report, STAGE_SORT, &clock);
    UN_TRY(un_adaptive_gather(a));    /* 9 volume and velocity at nodes, for all that follows */
    UN_TRY(un_adaptive_level_set(a)); /* 2, 3 simulation surface, phi for all particles */
    un_stage_end(report, STAGE_LEVEL_SET, &clock);
    if (a->core.step_count % UN_SIZING_STEPS == 0)
        UN_TRY(un_adaptive_sizes(a, UN_SIZING_STEPS * dt)); /* 6 sizing function at particles */
    un_stage_end(report, STAGE_SIZING, &clock);

    UN_TRY(un_adaptive_measure(a, report));
    un_stage_end(report, STAGE_MEASURE, &clock);
    un_core_report(&a->core, report, &projection.solve, projection.max_divergence, start);
    return UN_OK;
}

/* ---- life ---- */

static void end(void *state)
{
    un_tet *s = state;
    un_free(s->a.core.ctx, s->sharp);
    un_free(s->a.core.ctx, s->quiet);
    un_pressure_destroy(s->pressure);
    un_adaptive_free(&s->a);
}

static un_status begin(void *state, un_context *ctx, const un_scene *scene)
{
    un_tet *s = state;
    UN_TRY(un_adaptive_begin(&s->a, ctx, scene));
    un_adaptive_want_ranks(&s->a);
    UN_TRY(un_pressure_create(ctx, NULL, &s->pressure));
    return un_pressure_configure(s->pressure->solver, &scene->def);
}

static un_status fill(void *state)
{
    un_adaptive *a = &((un_tet *)state)->a;
    un_adaptive_begin_share(a);
    return un_adaptive_fill(a);
}

static un_status load(void *state, const un_state *in)
{
    return un_adaptive_load(&((un_tet *)state)->a, in);
}

static un_status save(const void *state, un_state *out)
{
    return un_adaptive_save(&((const un_tet *)state)->a, out);
}

const un_method un_method_tet = {.traits = {.name = "tet",
                                            .particles = true,
                                            .adaptive = true,
                                            .viscous = true,
                                            .mixed = true,
                                            .tension = true,
                                            .bodies = true,
                                            .momentum = true,
                                            .thin_walls = true,
                                            .ranks = true},
                                 .stages = stages,
                                 .size = sizeof(un_tet),
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
                                 .save = save,
                                 .gather = un_adaptive_gather_ranks,
                                 .stream = un_adaptive_stream,
                                 .keep = un_adaptive_keep,
                                 .sift = un_adaptive_sift,
                                 .portion = un_adaptive_portion};
