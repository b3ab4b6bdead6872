/* The parts of the step of method `conforming` that are more than one call. */
#include "method/conforming.h"

#include "advect/advect.h"

#define ITERATION_LIMIT 2000
/* Solves for oblique gradients beyond the first, each of which takes the error to a third; they go
 * on from those of the last step. Gradients in a sphere: 14, 4.7, 1.6, 0.6, 0.3 % wrong with 0, 1,
 * 2, 3 and 4 of them. */
#define CORRECTIONS 2
#define FIRST_CORRECTIONS 8
/* Projections beyond the first, where liquid meets or leaves walls. */
#define SOLVES 2
/* The most that the surface is shifted in a step, in cells of the track. */
#define SHIFT 0.2
/* Thin liquid grows by up to this in a step, in cells of the track. [Chentanez07: 0.15] */
#define THICKEN 0.25
/* Share of the paper's thickening of the mesh. With it the thinnest liquid of the track is 1.1
 * leaves thick, so that tets keep it whole and the flow there need not be guessed. */
#define MESH_THICKEN 0.8
/* Meshes made before the first step where the scene says what sizes it wants: each sees curvature
 * from the last. */
#define ROUNDS 2
/* How far from the surface its distance matters to sizes, in leaves: curvature is taken within 1.5
 * of them, from their neighbours. */
#define NEAR 2.8

#define NEED(array, which, count)                                                                  \
    UN_TRY(un_array_need(s->core.ctx, (void **)&s->array, &s->capacity[which],                     \
                         (size_t)(count) + 1, sizeof *s->array))

/* How far from the surface velocities are extended, in nodes. */
static int32_t layers(const un_conforming *s)
{
    return (int32_t)ceil(s->core.def->solver.cfl) + 3;
}

un_status un_conforming_fit(un_conforming *s, double dt)
{
    const un_stuffing *mesh = un_conforming_mesh(s);
    un_stuffing_velocities(s->core.ctx, s->u_tet, mesh, s->u);
    const un_scene_def *def = s->core.def;
    un_flow_def in = {mesh,
                      s->u,
                      s->u_tet,
                      def->domain.size,
                      def->domain.open,
                      s->gone_in.min.x <= s->gone_in.max.x ? s->gone : NULL,
                      layers(s),
                      &s->track,
                      dt};
    return un_flow_fit(s->core.ctx, &s->flow, &in);
}

/* ---- pressure ---- */

/* The pressure at the feet, from the arena; NULL without tension. */
static un_status find_tension(un_conforming *s, const un_stuffed_rim *rim, const double **pressure)
{
    const un_scene_def *def = s->core.def;
    int64_t count = un_conforming_mesh(s)->boundary_count;
    if (!(def->fluid.surface_tension > 0)) return UN_OK;
    double *found = un_arena_alloc(&s->core.arena, (size_t)count + 1, sizeof *found);
    if (!found) return UN_ERROR_MEMORY;
    *pressure = found;
    un_grid grid = un_grid_make(def->domain.size, 2 * def->detail.finest);
    un_tension_track in = {.pressure = found,
                           .x = rim->foot,
                           .count = count,
                           .track = &s->track,
                           .grid = &grid,
                           .walls = s->core.walls,
                           .def = def};
    return un_tension_on_track(s->core.ctx, &s->core.arena, &in);
}

/* Liquid that would run through a wall in this step is projected again with the wall in its way:
 * what goes into walls is lost, and they should turn it aside. Walls that pull let go. */
static un_status project(un_conforming *s, un_stuffed_projection *in, un_stuffed_rim *rim,
                         double dt, un_stuffed_projection_report *report)
{
    un_context *ctx = s->core.ctx;
    int32_t iterations = 0;
    size_t bytes = (size_t)in->mesh->face_count * sizeof *s->u;
    double *u = un_arena_alloc(&s->core.arena, (size_t)in->mesh->face_count + 1, sizeof *u);
    size_t body_bytes = (size_t)rim->bodies->count * sizeof *rim->bodies->body;
    un_body *bodies = un_arena_alloc(&s->core.arena, body_bytes + 1, 1);
    if (!u || !bodies) return UN_ERROR_MEMORY;
    un_stuffed_release release = {.gone = s->gone,
                                  .rim = rim,
                                  .mesh = in->mesh,
                                  .u = s->u,
                                  .p = s->p,
                                  .open_sides = s->core.def->domain.open,
                                  .let_go = un_core_let_go(&s->core, dt),
                                  .scale = in->dt / in->density};
    memcpy(u, s->u, bytes);
    memcpy(bodies, rim->bodies->body, body_bytes);
    memset(s->gone, 0, (size_t)in->mesh->boundary_count);
    in->gone = s->gone;
    for (int32_t solve = 0;; solve++) {
        UN_TRY(un_stuffed_pressure_project(s->pressure, &s->core.arena, in, report));
        iterations += report->solve.iterations;
        if (solve == SOLVES || !report->solve.finite) break;
        int64_t count =
            solve > 0 ? 0 : un_stuffed_meet_walls(ctx, rim, in->mesh, s->u, &s->walls, dt);
        count += un_stuffed_let_go(ctx, &release);
        if (count == 0) break;
        memcpy(s->u, u, bytes);
        memcpy(rim->bodies->body, bodies, body_bytes);
        in->warm = true;
    }
    report->solve.iterations = iterations;
    s->gone_in = un_stuffed_gone_in(in->mesh, s->gone, UN_TRACK_MARGIN * s->track.h);
    return UN_OK;
}

/* Nodes take the flow's velocity, are solved for, and give the change back to faces; the pressure
 * that then keeps the volume is small beside the first. Outputs have the sum of these and of the
 * viscous solve's own. */
static un_status apply_viscosity(un_conforming *s, un_stuffed_projection *in,
                                 un_stuffed_projection_report *report, int32_t *viscous_iterations)
{
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    const un_stuffing *mesh = in->mesh;
    un_vec3 *u_node = un_arena_alloc(arena, (size_t)mesh->node_count + 1, sizeof *u_node);
    double *p = un_arena_alloc(arena, (size_t)mesh->tet_count + 1, sizeof *p);
    if (!u_node || !p) return UN_ERROR_MEMORY;
    NEED(p_stress, 9, mesh->node_count);
    UN_TRY(un_conforming_fit(s, in->dt));
    un_flow_to_points(ctx, u_node, &s->flow, mesh->x, mesh->node_count);
    un_viscous_stuffed step = {.mesh = mesh,
                               .u = s->u,
                               .u_node = u_node,
                               .bodies = s->core.bodies,
                               .def = s->core.def,
                               .dt = in->dt,
                               .tolerance = in->tolerance,
                               .iteration_limit = in->iteration_limit,
                               .p = s->p_stress,
                               .keeps_volume = strcmp(s->core.def->solver.stress, "full") == 0,
                               .laplacian = strcmp(s->core.def->solver.stress, "laplacian") == 0};
    un_viscous_report viscous;
    UN_TRY(un_viscosity_step_stuffed(s->viscosity, arena, &step, &viscous));
    UN_TRY(un_core_viscous_solved(&s->core, &viscous.solve));
    *viscous_iterations = viscous.solve.iterations;
    int32_t iterations = report->solve.iterations;
    in->p = p;
    in->slope = NULL;
    in->warm = false;
    in->gravity = un_v3(0, 0, 0);
    in->surface = NULL;
    UN_TRY(un_stuffed_pressure_project(s->pressure, arena, in, report));
    un_pressure_add(ctx, s->p, p, mesh->tet_count);
    report->solve.iterations += iterations;
    return UN_OK;
}

un_status un_conforming_project(un_conforming *s, double dt, un_stuffed_projection_report *report,
                                int32_t *viscous_iterations)
{
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    const un_scene_def *def = s->core.def;
    const un_stuffing *mesh = un_conforming_mesh(s);
    size_t count = (size_t)mesh->boundary_count + 1;
    un_stuffed_rim rim = {.foot = un_arena_alloc(arena, count, sizeof *rim.foot),
                          .wall = un_arena_alloc(arena, count, sizeof *rim.wall),
                          .bodies = s->core.bodies,
                          .grown = s->grown};
    if (un_core_free_bodies(&s->core)) {
        rim.body = un_arena_alloc(arena, count, sizeof *rim.body);
        if (!rim.body) return UN_ERROR_MEMORY;
    }
    if (!rim.foot || !rim.wall) return UN_ERROR_MEMORY;
    UN_TRY(un_array_need(ctx, (void **)&s->gone, &s->capacity[7], count, sizeof *s->gone));
    UN_TRY(un_array_need(ctx, (void **)&s->slope, &s->capacity[5], (size_t)mesh->tet_count + 1,
                         sizeof *s->slope));
    un_stuffed_find_rim(ctx, &rim, mesh, &s->track);
    un_stuffed_projection in = {.mesh = mesh,
                                .u = s->u,
                                .p = s->p,
                                .slope = s->slope,
                                .warm = s->core.step_count > 0,
                                .rim = &rim,
                                .open_sides = def->domain.open,
                                .source = s->source,
                                .gravity = def->gravity,
                                .dt = un_core_kick(&s->core, dt),
                                .density = def->fluid.density,
                                .tolerance = def->solver.tolerance,
                                .corrections =
                                    s->core.step_count > 0 ? CORRECTIONS : FIRST_CORRECTIONS,
                                .iteration_limit = ITERATION_LIMIT};
    un_stuffed_room room = {0};
    in.room = &room;
    UN_TRY(find_tension(s, &rim, &in.surface));
    UN_TRY(project(s, &in, &rim, dt, report));
    if (s->viscosity) UN_TRY(apply_viscosity(s, &in, report, viscous_iterations));
    un_arena_reset(arena);
    return un_step_solved(ctx, &report->solve, s->core.step_count + 1, s->core.time,
                          def->solver.tolerance);
}

/* ---- surface ---- */

un_status un_conforming_track(un_conforming *s, double dt)
{
    un_surface_advection in = {.track = &s->track,
                               .flow = &s->flow,
                               .walls = &s->walls,
                               .def = s->core.def,
                               .time = s->core.time,
                               .dt = dt,
                               .gone = s->gone_in.min.x <= s->gone_in.max.x ? &s->gone_in : NULL,
                               .solid = s->solid,
                               .shift = s->shift,
                               .most = SHIFT * s->track.h,
                               .thicken = THICKEN * s->core.def->solver.thickening * s->track.h};
    un_conforming_book(s, &in);
    in.expected = un_ledger_expected(&s->core.sources.ledger);
    if (s->solid && s->core.bodies->moving)
        un_track_sample(&s->track, s->solid, un_track_solid, s->core.bodies);
    UN_TRY(un_advect_surface(s->core.ctx, &s->core.arena, &in));
    un_arena_reset(&s->core.arena);
    un_conforming_weigh(s);
    return UN_OK;
}

void un_conforming_weigh(un_conforming *s)
{
    un_ledger *ledger = &s->core.sources.ledger;
    double found = un_track_volume(&s->track, s->solid);
    double area = un_track_area(&s->track, s->solid);
    un_ledger_weigh(ledger, found, found);
    double expected = un_ledger_expected(ledger), lack = expected - found;
    double most = un_advect_shift_most(SHIFT * s->track.h, lack, expected);
    s->shift = area > 0 ? un_clamp(lack / area, -most, most) : 0;
}

/* ---- mesh and velocities ---- */

un_status un_conforming_sizes(un_conforming *s, bool flow)
{
    const un_stuffing *mesh = un_conforming_mesh(s);
    const un_tets *lattice = &mesh->lattice;
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    size_t room = (size_t)lattice->node_count + 1;
    float *phi = un_arena_alloc(arena, room, sizeof *phi);
    un_track_near_walls near = {.wall = un_arena_alloc(arena, room, sizeof *near.wall)};
    if (s->core.bodies->count > 0) {
        near.solid = un_arena_alloc(arena, room, sizeof *near.solid);
        near.narrow = un_arena_alloc(arena, room, sizeof *near.narrow);
        if (!near.solid || !near.narrow) return UN_ERROR_MEMORY;
    }
    if (!phi || !near.wall) return UN_ERROR_MEMORY;
    NEED(size, 8, lattice->node_count);
    un_track_points points = {lattice->node_count, lattice->x, lattice->node_level, mesh->tree.edge,
                              NEAR};
    un_track_to_points(ctx, phi, &s->track, &points);
    un_track_walls_to_points(ctx, &near, &s->walls, &points);
    un_sizing_nodes nodes;
    un_sizing_def def = {.scene = s->core.scene,
                         .nodes = &nodes,
                         .phi = phi,
                         .wall = near.wall,
                         .solid = near.solid,
                         .narrow = near.narrow,
                         .velocity = flow ? s->flow.u : NULL,
                         .sources = &s->core.sources,
                         .time = s->core.time,
                         .scale = 1};
    UN_TRY(un_sizing_nodes_tets(ctx, arena, &nodes, lattice, phi));
    UN_TRY(un_sizing_evaluate(ctx, arena, s->size, &def));
    un_arena_reset(arena);
    return UN_OK;
}

un_status un_conforming_build(un_conforming *s, const un_octree_request *leaves)
{
    un_stuffing *mesh = &s->mesh[1 - s->now];
    bool sized = s->size && !leaves;
    un_track_stuffing def = {.track = &s->track,
                             .bodies = s->core.bodies,
                             .grown = s->grown,
                             .thicken = MESH_THICKEN * fmin(1, s->core.def->solver.thickening),
                             .sized = sized ? &un_conforming_mesh(s)->lattice : NULL,
                             .size = s->size,
                             .leaves = leaves};
    UN_TRY(un_track_stuff(mesh, &s->core.arena, &def));
    un_arena_reset(&s->core.arena);
    NEED(u_old, 0, mesh->face_count);
    NEED(p_old, 1, mesh->tet_count);
    NEED(u_tet, 2, mesh->tet_count);
    NEED(source, 6, mesh->tet_count);
    double *u = s->u, *p = s->p;
    size_t room_u = s->capacity[0], room_p = s->capacity[1];
    s->u = s->u_old, s->p = s->p_old;
    s->u_old = u, s->p_old = p;
    s->capacity[0] = s->capacity[3], s->capacity[1] = s->capacity[4];
    s->capacity[3] = room_u, s->capacity[4] = room_p;
    s->now = 1 - s->now;
    s->gone_in = (un_box3){{1, 1, 1}, {0, 0, 0}}; /* empty */
    return UN_OK;
}

un_status un_conforming_first_mesh(un_conforming *s)
{
    UN_TRY(un_conforming_build(s, NULL));
    for (int32_t round = 0; round < ROUNDS && un_conforming_sized(s); round++) {
        UN_TRY(un_conforming_sizes(s, false));
        UN_TRY(un_conforming_build(s, NULL));
    }
    return UN_OK;
}

un_status un_conforming_carry(un_conforming *s, double dt)
{
    const un_stuffing *mesh = un_conforming_mesh(s), *old = &s->mesh[1 - s->now];
    un_flow_to_faces(s->core.ctx, s->u, &s->flow, mesh, dt);
    un_stuffed_pressure_carry(s->core.ctx, s->p, mesh, s->p_old, s->slope, old);
    un_conforming_emit(s, dt);
    if (!s->viscosity) return UN_OK;
    NEED(p_total, 10, mesh->tet_count);
    un_stuffed_pressure_total(s->core.ctx, s->p_total, mesh, s->p, s->p_stress, old);
    return UN_OK;
}
