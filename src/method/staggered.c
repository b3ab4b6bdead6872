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
 *  - Barycentres instead of circumcentres, and weight taken out of the pressure: see
 *    pressure/faces.c.
 *  - The projection before the viscous step, which the paper calls optional, is where gravity acts:
 *    viscous liquid at rest in a vessel then stays at rest.
 *  - What falls into the liquid or is emitted brings its own velocity (advect/faces.c).
 * Where it does not, though it could: viscosity and pressure are solved for in turn, which makes
 * threads too soft; `tet` does better (viscosity/volume.c). */
#include "method/saving.h"
#include "method/tet.h"

#define SIZING_STEPS 2
#define ITERATION_LIMIT 2000
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
    STAGE_MEASURE
};
static const char *const stages[] = {"walls",  "pressure", "viscosity", "extrapolate", "advect",
                                     "resize", "sources",  "mesh",      "level_set",   "to_faces",
                                     "sizing", "measure",  NULL};

typedef struct un_staggered {
    un_tet *tet; /* markers, mesh and what belongs to them */
    un_faces faces;
    double *u;      /* at faces, along their normals */
    uint8_t *known; /* at faces: 1 in the liquid */
    double *p;      /* at tets, Pa */
    size_t capacity[3];
    un_pressure *pressure;
    /* the last mesh, and velocities on it */
    un_octree old_tree;
    un_tets old_mesh;
    un_vec3 *old_node, *old_tet;
    uint8_t *old_liquid;
    size_t old_capacity[3];
} un_staggered;

/* ---- faces ---- */

static un_status number_faces(un_staggered *g)
{
    un_tet *s = g->tet;
    UN_TRY(un_faces_number(s->ctx, &s->arena, &g->faces, &s->mesh));
    un_arena_reset(&s->arena);
    size_t faces = (size_t)g->faces.count + 1, tets = (size_t)s->mesh.tet_count + 1;
    UN_TRY(un_array_need(s->ctx, (void **)&g->u, &g->capacity[0], faces, sizeof *g->u));
    UN_TRY(un_array_need(s->ctx, (void **)&g->known, &g->capacity[1], faces, 1));
    return un_array_need(s->ctx, (void **)&g->p, &g->capacity[2], tets, sizeof *g->p);
}

/* ---- pressure ---- */

/* The nodes' pressure lasts from mesh to mesh: the tets' guess. */
static void guess_pressure(void *arg, int64_t begin, int64_t end)
{
    un_staggered *g = arg;
    const un_tet *s = g->tet;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = s->mesh.tet[t];
        g->p[t] = 0.25 * (s->p[0][n[0]] + s->p[0][n[1]] + s->p[0][n[2]] + s->p[0][n[3]]);
    }
}

/* The mean of the tets in the liquid, the weight between them and the node allowed for. */
static void nodes_pressure(void *arg, int64_t begin, int64_t end)
{
    un_staggered *g = arg;
    un_tet *s = g->tet;
    const un_tets *mesh = &s->mesh;
    un_vec3 weight = un_scale(s->def->gravity, s->def->fluid.density);
    for (int64_t n = begin; n < end; n++) {
        double sum = 0, total = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double w = g->pressure->index[t] >= 0 ? un_tets_volume(mesh, t) : 0;
            un_vec3 way = un_sub(mesh->x[n], un_tets_center(mesh, t));
            sum += w * (g->p[t] + un_dot(weight, way));
            total += w;
        }
        s->p[0][n] = s->phi[n] < 0 && total > 0 ? sum / total : 0;
    }
}

static un_status project(un_staggered *g, double dt, un_vec3 gravity,
                         un_face_projection_report *report)
{
    un_tet *s = g->tet;
    un_face_projection in = {.mesh = &s->mesh,
                             .faces = &g->faces,
                             .u = g->u,
                             .known = g->known,
                             .phi = s->phi,
                             .walls = &s->tet_walls,
                             .open_sides = s->def->domain.open,
                             .p = g->p,
                             .source = s->source,
                             .lightness = s->mixed.lightness,
                             .gravity = gravity,
                             .dt = dt,
                             .density = s->def->fluid.density,
                             .tolerance = s->def->solver.tolerance,
                             .iteration_limit = ITERATION_LIMIT};
    UN_TRY(un_face_pressure_project(g->pressure, &in, report));
    return un_step_solved(s->ctx, &report->solve, s->step_count + 1, s->time,
                          s->def->solver.tolerance);
}

/* ---- viscosity ---- */

/* Liquid that sticks has the wall's velocity at its nodes before and after; else what the faces
 * make of it would be taken off the liquid in every step. */
static void stick(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    for (int64_t n = begin; n < end; n++) {
        if (un_tet_sticks(s, n)) s->u_node[n] = s->viscous_walls.u[n];
        s->d_node[n] = s->u_node[n];
    }
}

typedef struct back_args {
    un_staggered *g;
    const uint8_t *reached;
    bool pic;
    double dt;
} back_args;

/* The change of a face's three nodes, or their velocity itself [Batty11 section 5.2]. */
static void change_faces(void *arg, int64_t begin, int64_t end)
{
    back_args *a = arg;
    un_staggered *g = a->g;
    const un_tet *s = g->tet;
    for (int64_t f = begin; f < end; f++) {
        int32_t n[3];
        if (g->known[f] != 1) continue;
        un_face_nodes(&g->faces, &s->mesh, (int32_t)f, n);
        un_vec3 u = {0, 0, 0}, was = {0, 0, 0};
        double nu = 0;
        int reached = 0;
        for (int k = 0; k < 3; k++) {
            if (!a->reached[n[k]]) continue;
            reached++;
            u = un_add(u, s->u_node[n[k]]);
            was = un_add(was, s->d_node[n[k]]);
            nu += un_tet_thickness(s, n[k]) / 3;
        }
        un_vec3 normal = un_normalize(un_face_area(&g->faces, &s->mesh, (int32_t)f));
        double h = un_tets_size(&s->mesh, un_face_tet(&g->faces, (int32_t)f));
        double own = reached < 3 ? 1 : a->pic ? 0 : un_tet_viscous_rest(nu, h, a->dt);
        g->u[f] = un_dot(u, normal) / 3 + own * (g->u[f] - un_dot(was, normal) / 3);
    }
}

static un_status apply_viscosity(un_staggered *g, double dt, int32_t *iterations)
{
    un_tet *s = g->tet;
    back_args a = {g, NULL, strcmp(s->def->solver.coupling, "pic") == 0, dt};
    un_transfer_faces_to_nodes(s->ctx, s->u_node, s->known_node, g->u, g->known, &g->faces,
                               &s->mesh);
    UN_TRY(un_transfer_extrapolate_nodes(s->ctx, &s->arena, s->u_node, NULL, s->known_node,
                                         &s->mesh, 2));
    un_arena_reset(&s->arena);
    un_parallel_for(s->ctx, s->mesh.node_count, 8192, stick, s);
    uint8_t *reached = un_arena_alloc(&s->arena, (size_t)s->mesh.node_count + 1, 1);
    if (!reached) return UN_ERROR_MEMORY;
    a.reached = reached;
    un_viscous_faces on = {&g->faces, g->u, g->known};
    bool implicit = strcmp(s->def->solver.coupling, "implicit") == 0;
    UN_TRY(
        un_tet_solve_stress(s, s->u_node, reached, implicit ? &on : NULL, false, dt, iterations));
    if (!implicit) un_parallel_for(s->ctx, g->faces.count, 4096, change_faces, &a);
    un_arena_reset(&s->arena);
    return UN_OK;
}

/* ---- velocities beyond the liquid ---- */

static un_status spread_velocity(un_staggered *g, double dt)
{
    un_tet *s = g->tet;
    un_transfer_faces_to_nodes(s->ctx, s->u_node, s->known_node, g->u, g->known, &g->faces,
                               &s->mesh);
    un_transfer_faces_to_tets(s->ctx, s->u_tet, s->known_tet, g->u, g->known, &g->faces, &s->mesh);
    size_t nodes = (size_t)s->mesh.node_count;
    memset(s->d_node, 0, nodes * sizeof *s->d_node);
    memset(s->d_tet, 0, (size_t)s->mesh.tet_count * sizeof *s->d_tet);
    UN_TRY(un_array_need(s->ctx, (void **)&g->old_liquid, &g->old_capacity[2], nodes + 1, 1));
    memcpy(g->old_liquid, s->known_node, nodes);
    un_tet_find_rate(s);
    return un_tet_extend_nodes(s, dt);
}

static un_status move_markers(un_tet *s, double dt)
{
    un_flip flip = {
        .dt = dt, .gravity = s->def->gravity, .pic = ALL, .pic_quiet = ALL, .quiet_speed = 1};
    un_tet_field u = {s->u_tet, s->u_node}, change = {s->d_tet, s->d_node};
    un_transfer_tets_to_particles(s->ctx, &s->particles, &s->bins, &s->mesh, &u, &change, NULL,
                                  &flip, 0.25 * s->tree.h);
    un_tet_draw_in(s, dt, true);
    UN_TRY(un_tet_correct(s, dt)); /* or they line up, and the surface has ridges */
    un_tet_advect(s, dt);
    return UN_OK;
}

/* ---- from mesh to mesh ---- */

/* The mesh and the velocities on it become the old ones. */
static un_status put_mesh_aside(un_staggered *g)
{
    un_tet *s = g->tet;
    size_t nodes = (size_t)s->mesh.node_count, tets = (size_t)s->mesh.tet_count;
    UN_TRY(un_tet_keep_pressure(s));
    UN_TRY(un_array_need(s->ctx, (void **)&g->old_node, &g->old_capacity[0], nodes + 1,
                         sizeof *g->old_node));
    UN_TRY(un_array_need(s->ctx, (void **)&g->old_tet, &g->old_capacity[1], tets + 1,
                         sizeof *g->old_tet));
    memcpy(g->old_node, s->u_node, nodes * sizeof *g->old_node);
    memcpy(g->old_tet, s->u_tet, tets * sizeof *g->old_tet);
    un_octree tree = s->tree;
    un_tets mesh = s->mesh;
    s->tree = g->old_tree;
    s->mesh = g->old_mesh;
    g->old_tree = tree;
    g->old_mesh = mesh;
    g->old_mesh.tree = &g->old_tree;
    s->mesh.tree = &s->tree;
    s->mesh.node_count = s->mesh.tet_count = 0;
    return UN_OK;
}

static void carry_velocity(un_staggered *g, double dt)
{
    un_tet *s = g->tet;
    un_face_advection in = {.mesh = &s->mesh,
                            .old_mesh = &g->old_mesh,
                            .faces = &g->faces,
                            .phi = s->phi,
                            .old = {g->old_tet, g->old_node},
                            .old_liquid = g->old_liquid,
                            .drops = s->u_node,
                            .drops_known = s->known_node,
                            .dt = dt,
                            .reach = 2};
    un_advect_faces(s->ctx, g->u, &in);
}

/* ---- the step ---- */

static un_status step(void *state, double dt, un_step *report)
{
    un_staggered *g = state;
    un_tet *s = g->tet;
    un_face_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_walls_update(s->walls, s->time, dt));
    if (s->walls->moving) un_tet_walls_move(&s->tet_walls);
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_tet_thicken(s)); /* density and viscosity at nodes */
    un_tet_want_divergence(s, dt);
    un_parallel_for(s->ctx, s->mesh.tet_count, 8192, guess_pressure, g);
    UN_TRY(project(g, dt, s->def->gravity, &projection));
    un_parallel_for(s->ctx, s->mesh.node_count, 4096, nodes_pressure, g);
    un_stage_end(report, STAGE_PRESSURE, &clock);
    if (s->viscous) {
        UN_TRY(apply_viscosity(g, dt, &report->viscous_iterations));
        un_stage_end(report, STAGE_VISCOSITY, &clock);
        memset(g->p, 0, (size_t)s->mesh.tet_count * sizeof *g->p); /* small beside the first */
        int32_t iterations = projection.solve.iterations;
        UN_TRY(project(g, dt, un_v3(0, 0, 0), &projection));
        projection.solve.iterations += iterations;
        un_stage_end(report, STAGE_PRESSURE, &clock);
    }
    UN_TRY(spread_velocity(g, dt));
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    UN_TRY(move_markers(s, dt));
    un_stage_end(report, STAGE_ADVECT, &clock);
    s->time += dt;
    s->step_count++;
    UN_TRY(un_tet_resize(s));
    un_stage_end(report, STAGE_RESIZE, &clock);
    UN_TRY(un_tet_remove(s));
    UN_TRY(un_tet_emit(s, dt));
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(put_mesh_aside(g));
    UN_TRY(un_tet_build_tree(s));
    UN_TRY(un_tet_build_mesh(s));
    UN_TRY(un_tet_place_emitted(s));
    UN_TRY(un_tet_sort(s));
    UN_TRY(number_faces(g));
    un_stage_end(report, STAGE_MESH, &clock);
    UN_TRY(un_tet_level_set(s));
    un_stage_end(report, STAGE_LEVEL_SET, &clock);
    carry_velocity(g, dt);
    un_stage_end(report, STAGE_TO_FACES, &clock);
    if (s->step_count % SIZING_STEPS == 0) UN_TRY(un_tet_sizes(s, SIZING_STEPS * dt));
    un_stage_end(report, STAGE_SIZING, &clock);

    UN_TRY(un_tet_measure(s, report));
    report->max_divergence = projection.max_divergence;
    report->pressure_iterations = projection.solve.iterations;
    report->pressure_residual = projection.solve.residual;
    report->bytes = (double)un_context_bytes(s->ctx);
    un_stage_end(report, STAGE_MEASURE, &clock);
    report->seconds = un_seconds() - start;
    s->last = *report;
    return UN_OK;
}

/* ---- life ---- */

static void destroy(void *state)
{
    un_staggered *g = state;
    if (!g || !g->tet) return;
    un_context *ctx = g->tet->ctx;
    void *arrays[] = {g->u, g->known, g->p, g->old_node, g->old_tet, g->old_liquid};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    un_faces_free(ctx, &g->faces);
    un_pressure_destroy(g->pressure);
    un_tets_free(&g->old_mesh);
    un_octree_free(&g->old_tree);
    un_method_tet.destroy(g->tet);
    un_free(ctx, g);
}

/* Around the state of method `tet`, which it takes over. */
static un_status wrap(un_context *ctx, const un_scene *scene, un_tet *tet, un_staggered **state)
{
    const un_scene_def *def = &scene->def;
    un_staggered *g = un_alloc_zero(ctx, 1, sizeof *g);
    if (!g) {
        un_method_tet.destroy(tet);
        return UN_ERROR_MEMORY;
    }
    g->tet = tet;
    un_octree_init(ctx, &g->old_tree, def->domain.size, def->detail.coarsest, def->detail.finest);
    un_tets_init(ctx, &g->old_mesh);
    un_status status = un_pressure_create(ctx, NULL, &g->pressure);
    if (status == UN_OK) status = un_pressure_configure(g->pressure->solver, def);
    if (status == UN_OK) status = number_faces(g);
    if (status != UN_OK) {
        destroy(g);
        return status;
    }
    *state = g;
    return UN_OK;
}

static un_status create(un_context *ctx, const un_scene *scene, void **state)
{
    void *tet;
    un_staggered *g;
    UN_TRY(un_method_tet.create(ctx, scene, &tet));
    UN_TRY(wrap(ctx, scene, tet, &g));
    un_transfer_nodes_to_faces(ctx, g->u, g->tet->u_node, &g->faces, &g->tet->mesh);
    *state = g;
    return UN_OK;
}

static un_status save(const void *state, un_state *out)
{
    const un_staggered *g = state;
    UN_TRY(un_tet_save(g->tet, out));
    return un_state_add(out, "face_velocity", g->u, g->faces.count, 8);
}

static un_status load(un_context *ctx, const un_scene *scene, const un_state *in, void **state)
{
    void *tet;
    un_staggered *g;
    UN_TRY(un_tet_load(ctx, scene, in, &tet));
    UN_TRY(wrap(ctx, scene, tet, &g));
    un_status status = un_state_take(in, "face_velocity", g->u, g->faces.count, 8);
    if (status != UN_OK) {
        destroy(g);
        return status;
    }
    *state = g;
    return UN_OK;
}

/* ---- what method `tet` answers ---- */

static const un_tet *inner(const void *state)
{
    return ((const un_staggered *)state)->tet;
}
static void first(const void *state, un_step *report)
{
    un_method_tet.first(inner(state), report);
}
static double step_limit(void *state)
{
    return un_method_tet.step_limit(((un_staggered *)state)->tet);
}
static const un_particles *particles(const void *state)
{
    return &inner(state)->particles;
}
static un_status surface(void *state, un_trimesh *mesh)
{
    return un_tet_surface(((un_staggered *)state)->tet, mesh);
}
static un_status cells(const void *state, un_cells *out)
{
    return un_tet_cells(inner(state), out);
}
static double probe(const void *state, const un_probe *which)
{
    return un_tet_probe(inner(state), which);
}

const un_method un_method_staggered = {.name = "staggered",
                                       .adaptive = true,
                                       .stages = stages,
                                       .create = create,
                                       .destroy = destroy,
                                       .first = first,
                                       .step_limit = step_limit,
                                       .step = step,
                                       .particles = particles,
                                       .surface = surface,
                                       .cells = cells,
                                       .probe = probe,
                                       .estimate = un_tet_estimate,
                                       .bytes = un_tet_bytes,
                                       .save = save,
                                       .load = load};
