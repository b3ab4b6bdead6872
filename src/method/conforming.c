/* Method `conforming`: tets that follow the liquid's surface and the walls [Chentanez07].
 *
 * A step is that of section 3, begun in the middle of its line 3: forces and pressure act on the
 * mesh of the last step, whose velocity then carries the surface. Velocities are thus those of a
 * leapfrog (core.h), and free fall is exact. Numbers in brackets are the paper's.
 *
 * Where it departs from the paper:
 *  - the surface: exact, curved distances, contour vertices as roots, and a small shift that keeps
 *    the volume (surface/track.c);
 *  - pressure without the liquid's weight, oblique gradients corrected (pressure/stuffed.c);
 *  - velocities are fitted at the nodes of the lattice that the mesh was cut from, and half of what
 *    the fit leaves is given back (transfer/flow.c);
 *  - thin liquid is thickened only while volume is missing (surface/track.c);
 *  - surface leaves have one size, half as fine as the surface's own lattice, unless the scene says
 *    how large they should be (sizing/sizing.c);
 *  - bodies that the liquid moves, with the pressure (pressure/stuffed_bodies.c);
 *  - surface tension, by the curvature of the carried surface (tension/track.c);
 *  - liquid may be viscous, by the full stress at the mesh's nodes [Batty11] (viscosity/stuffed.c);
 *  - walls let go where they would pull (pressure/stuffed_boundary.c, advect/surface.c);
 *  - walls thinner than two leaves count as that thick in the mesh. The liquid between them and the
 *    mesh moves as the mesh's does (un_track_walls.grown). */
#include "method/conforming.h"

enum {
    STAGE_WALLS,
    STAGE_PRESSURE,
    STAGE_FLOW,
    STAGE_SURFACE,
    STAGE_MESH,
    STAGE_CARRY,
    STAGE_MEASURE
};
static const char *const stages[] = {"walls", "pressure", "flow",    "surface",
                                     "mesh",  "carry",    "measure", NULL};

static un_status step(void *state, double dt, un_step *report)
{
    un_conforming *s = state;
    un_stuffed_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_core_move_bodies(&s->core, dt));
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_conforming_project(s, dt, &projection, &report->viscous_iterations)); /* [3] forces */
    UN_TRY(un_core_touch_bodies(&s->core, dt));
    un_stage_end(report, STAGE_PRESSURE, &clock);
    UN_TRY(un_conforming_fit(s, dt));
    un_core_advance_bodies(&s->core, dt);
    un_stage_end(report, STAGE_FLOW, &clock);
    un_core_tick(&s->core, dt);
    UN_TRY(un_conforming_track(s, dt)); /* [1] the surface */
    un_stage_end(report, STAGE_SURFACE, &clock);
    if (un_conforming_sized(s)) UN_TRY(un_conforming_sizes(s, true));
    UN_TRY(un_conforming_build(s, NULL)); /* [2] a mesh for it */
    un_stage_end(report, STAGE_MESH, &clock);
    UN_TRY(un_conforming_carry(s, dt)); /* [3] velocities onto it */
    un_stage_end(report, STAGE_CARRY, &clock);

    UN_TRY(un_conforming_measure(s, report));
    un_stage_end(report, STAGE_MEASURE, &clock);
    un_core_report(&s->core, report, &projection.solve, projection.max_divergence, start);
    return UN_OK;
}

static double step_limit(void *state)
{
    const un_conforming *s = state;
    double h = un_conforming_mesh(s)->tree.h, rate = s->rate;
    if (s->core.bodies->free_count > 0) rate = fmax(rate, un_bodies_speed(s->core.bodies) / h);
    /* No particles calm the shortest waves. A drop of 4 cells' radius is calm with 0.57 of that. */
    return fmin(un_step_limit(s->core.def, h, rate), 0.5 * un_tension_step_limit(s->core.def, h));
}

/* ---- life ---- */

static void end(void *state)
{
    un_conforming *s = state;
    un_context *ctx = s->core.ctx;
    un_track_free(&s->track);
    for (int i = 0; i < 2; i++)
        if (s->mesh[i].ctx) un_stuffing_free(&s->mesh[i]);
    void *blocks[] = {s->grown,     s->deep,  s->thick, s->solid,    s->u,      s->u_old,
                      s->p,         s->p_old, s->slope, s->u_tet,    s->source, s->pushed,
                      s->flow_rate, s->gone,  s->size,  s->p_stress, s->p_total};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    un_flow_free(ctx, &s->flow);
    un_pressure_destroy(s->pressure);
    un_viscosity_destroy(s->viscosity);
    un_core_free(&s->core);
}

/* Walls thinner than this do not part liquid on tets: the mesh takes them for as thick. */
#define WALL 2.0 /* leaves */
#define WALL_SAMPLES 48
/* How deep the surface goes on in a wall: in cells of the track, and of the wall's thickness. */
#define DEEP 3.0
#define DEEP_SHARE 0.25
static un_status find_thin_walls(un_conforming *s)
{
    const un_scene_def *def = s->core.def;
    un_context *ctx = s->core.ctx;
    double least = WALL * un_conforming_mesh(s)->tree.h, deep = DEEP * s->track.h;
    if (def->solid_count == 0) return UN_OK;
    UN_ALLOC(ctx, s->grown, def->solid_count);
    UN_ALLOC(ctx, s->deep, def->solid_count);
    UN_ALLOC(ctx, s->thick, def->solid_count);
    s->walls.grown = s->grown;
    s->walls.deep = s->deep;
    s->walls.thick = s->thick;
    double most = un_octree_size(&un_conforming_mesh(s)->tree, 0);
    for (int32_t b = 0; b < def->solid_count; b++) {
        const un_shape *shape = def->solids[b].shape;
        double wall = un_shape_thickness(ctx, shape, def->domain.size, least, WALL_SAMPLES);
        s->grown[b] = fmax(0, 0.5 * (least - wall));
        if (wall > least)
            wall =
                un_shape_thickness(ctx, shape, def->domain.size, deep / DEEP_SHARE, WALL_SAMPLES);
        s->deep[b] = fmin(DEEP_SHARE * wall, deep);
        s->thick[b] = INFINITY;
        if (un_conforming_sized(s))
            s->thick[b] = un_shape_thickness(ctx, shape, def->domain.size, most, WALL_SAMPLES);
    }
    return UN_OK;
}

static un_status allocate(un_conforming *s)
{
    const un_scene_def *def = s->core.def;
    un_context *ctx = s->core.ctx;
    for (int i = 0; i < 2; i++)
        un_stuffing_init(ctx, &s->mesh[i], def->domain.size, def->detail.coarsest,
                         def->detail.finest);
    UN_TRY(un_track_init(&s->track, ctx, def->domain.size, 2 * def->detail.finest));
    UN_TRY(un_pressure_create(ctx, NULL, &s->pressure));
    UN_TRY(un_pressure_configure(s->pressure->solver, def));
    if (un_scene_viscous(def)) UN_TRY(un_viscosity_create(ctx, &s->viscosity));
    s->pushed = un_alloc_zero(ctx, (size_t)def->source_count + 1, sizeof *s->pushed);
    s->flow_rate = un_alloc_zero(ctx, (size_t)def->source_count + 1, sizeof *s->flow_rate);
    if (!s->pushed || !s->flow_rate) return UN_ERROR_MEMORY;
    un_conforming_find_flows(s);
    UN_TRY(find_thin_walls(s));
    if (s->core.bodies->count == 0) return UN_OK;
    UN_ALLOC(ctx, s->solid, un_track_node_count(&s->track));
    return UN_OK;
}

static un_status begin(void *state, un_context *ctx, const un_scene *scene)
{
    un_conforming *s = state;
    UN_TRY(un_core_init(&s->core, ctx, scene, false));
    s->walls = (un_track_walls){.bodies = s->core.bodies,
                                .size = s->core.def->domain.size,
                                .open = s->core.def->domain.open,
                                .gravity = s->core.def->gravity};
    return allocate(s);
}

static un_status fill(void *state)
{
    un_conforming *s = state;
    UN_TRY(un_conforming_start(s));
    if (s->solid) un_track_sample(&s->track, s->solid, un_track_solid, s->core.bodies);
    s->core.sources.ledger.start = un_track_volume(&s->track, s->solid);
    UN_TRY(un_conforming_first_mesh(s));
    un_stuffing_uniform(s->core.ctx, s->u, un_conforming_mesh(s), s->core.def->liquid.velocity);
    memset(s->p, 0, (size_t)un_conforming_mesh(s)->tet_count * sizeof *s->p);
    un_conforming_emit(s, 0);
    un_conforming_weigh(s);
    return un_conforming_measure(s, &s->core.last);
}

const un_method un_method_conforming = {.traits = {.name = "conforming",
                                                   .graded = true,
                                                   .viscous = true,
                                                   .tension = true,
                                                   .bodies = true,
                                                   .thin_walls = true},
                                        .stages = stages,
                                        .size = sizeof(un_conforming),
                                        .begin = begin,
                                        .fill = fill,
                                        .load = un_conforming_load,
                                        .end = end,
                                        .step_limit = step_limit,
                                        .step = step,
                                        .surface = un_conforming_surface,
                                        .cells = un_conforming_cells,
                                        .probe = un_conforming_probe,
                                        .estimate = un_conforming_estimate,
                                        .save = un_conforming_save};
