/* Viscosity in method `tet`: velocities of tets to nodes, the solve of [Batty11] there, and the
 * change back to tets, from where pressure and particles take it on.
 *
 * Order: forces and pressure first, so that the solve starts from what drives the flow and not from
 * free fall; then viscosity; then pressure again, for viscous velocities have divergence. Liquid
 * that sticks to a wall has the wall's velocity at its nodes before and after: averaged from
 * particles above it the wall would seem to slide, and what stops it would be taken off the liquid
 * in every step.
 *
 * Departures from [Batty11]: pressure is part of the viscous solve (viscosity/volume.c), unless
 * solver.stress = "split" asks for the paper's way. And from section 5.2, for faces as well: what a
 * tet has beyond what its nodes resolve is not kept whole but decays at the viscous rate
 * (un_tet_viscous_rest), or thin layers boil. */
#include "method/tet.h"

#define ITERATION_LIMIT 2000

static double viscosity_at(const un_tet *s, int64_t n)
{
    return s->mixed.viscosity ? (double)s->mixed.viscosity[n] : s->def->fluid.viscosity;
}

double un_tet_thickness(const un_tet *s, int64_t n)
{
    return s->mixed.viscosity ? (double)(s->mixed.viscosity[n] / s->mixed.density[n])
                              : s->def->fluid.viscosity / s->def->fluid.density;
}

bool un_tet_sticks(const un_tet *s, int64_t n)
{
    return s->viscous && s->viscous_walls.kind[n] == UN_WALL_STICKS && viscosity_at(s, n) > 0;
}

typedef struct matter_args {
    un_tet *s;
    const un_vec3 *matter;
    const uint8_t *known;
} matter_args;

static void store_matter(void *arg, int64_t begin, int64_t end)
{
    matter_args *a = arg;
    un_tet *s = a->s;
    for (int64_t n = begin; n < end; n++) {
        const un_scene_def *def = s->def;
        s->mixed.density[n] = (float)(a->known[n] ? a->matter[n].x : def->fluid.density);
        s->mixed.viscosity[n] = (float)(a->known[n] ? a->matter[n].y : 0);
    }
}

static void find_lightness(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = ((matter_args *)arg)->s;
    const float *density = s->mixed.density;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = s->mesh.tet[t];
        double mean =
            0.25 * ((double)density[n[0]] + density[n[1]] + density[n[2]] + density[n[3]]);
        s->mixed.lightness[t] = (float)(s->def->fluid.density / mean);
    }
}

/* Density and viscosity at nodes, of particles that carry their own. */
static un_status mix(un_tet *s)
{
    size_t nodes = (size_t)s->mesh.node_count + 1, tets = (size_t)s->mesh.tet_count + 1;
    un_tet_mixed *m = &s->mixed;
    UN_TRY(un_array_need(s->ctx, (void **)&m->density, &m->capacity[0], nodes, sizeof(float)));
    UN_TRY(un_array_need(s->ctx, (void **)&m->viscosity, &m->capacity[1], nodes, sizeof(float)));
    UN_TRY(un_array_need(s->ctx, (void **)&m->lightness, &m->capacity[2], tets, sizeof(float)));
    un_vec3 *matter = un_arena_alloc(&s->arena, nodes, sizeof *matter);
    uint8_t *known = un_arena_alloc(&s->arena, nodes, 1);
    if (!matter || !known) return UN_ERROR_MEMORY;
    UN_TRY(un_transfer_matter_to_nodes(s->ctx, &s->arena, matter, known, &s->mesh, &s->bins,
                                       &s->particles));
    UN_TRY(un_transfer_extrapolate_nodes(s->ctx, &s->arena, matter, NULL, known, &s->mesh, 2));
    matter_args a = {s, matter, known};
    un_parallel_for(s->ctx, s->mesh.node_count, 16384, store_matter, &a);
    un_parallel_for(s->ctx, s->mesh.tet_count, 16384, find_lightness, &a);
    un_arena_reset(&s->arena);
    return UN_OK;
}

/* ---- velocities at nodes ---- */

/* Velocities of nodes are means over the particles around, at the surface those of a place inside:
 * a spinning drop would seem to lag behind there, and viscosity would brake all of it. They are
 * carried on to the node along the gradient around it, after which transfers to and fro keep all
 * linear velocities. */
typedef struct centre_args {
    un_tet *s;
    const un_vec3 *centre, *u;
    const uint8_t *known;
} centre_args;

static void move_to_nodes(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    un_tet *s = a->s;
    const un_tets *mesh = &s->mesh;
    for (int64_t n = begin; n < end; n++) {
        if (!a->known[n] || !(viscosity_at(s, n) > 0)) continue;
        un_vec3 sum = {0, 0, 0}, off = a->centre[n];
        double total = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            const int32_t *m = mesh->tet[t];
            if (!(a->known[m[0]] && a->known[m[1]] && a->known[m[2]] && a->known[m[3]])) continue;
            const un_tet_shape *shape = &mesh->shapes[mesh->shape[t]];
            double over = 1 / un_tets_size(mesh, t), w = un_tets_volume(mesh, t);
            for (int i = 0; i < 4; i++) {
                /* from where the mean of node i stands */
                const double *g = shape->gradient[i];
                double along = over * (g[0] * off.x + g[1] * off.y + g[2] * off.z);
                sum = un_mad(sum, a->u[m[i]], w * along);
            }
            total += w;
        }
        if (total > 0) s->u_node[n] = un_mad(a->u[n], sum, -1 / total);
    }
}

static un_status correct_nodes(un_tet *s)
{
    size_t nodes = (size_t)s->mesh.node_count + 1;
    un_vec3 *centre = un_arena_alloc(&s->arena, nodes, sizeof *centre);
    un_vec3 *u = un_arena_alloc(&s->arena, nodes, sizeof *u);
    uint8_t *known = un_arena_alloc(&s->arena, nodes, 1);
    if (!centre || !u || !known) return UN_ERROR_MEMORY;
    UN_TRY(
        un_transfer_centres(s->ctx, &s->arena, centre, known, &s->mesh, &s->bins, &s->particles));
    memcpy(u, s->u_node, nodes * sizeof *u - sizeof *u);
    centre_args a = {s, centre, u, known};
    un_parallel_for(s->ctx, s->mesh.node_count, 1024, move_to_nodes, &a);
    un_arena_reset(&s->arena);
    return UN_OK;
}

static void stick(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    for (int64_t n = begin; n < end; n++)
        if (un_tet_sticks(s, n)) {
            s->u_node[n] = s->viscous_walls.u[n];
            s->known_node[n] = 1;
        }
}

/* Liquid in an emitter moves as that says: thick liquid would hang in it, or drag at it. */
static void hold_emitters(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    for (int32_t i = 0; i < s->def->source_count; i++) {
        const un_source *source = &s->def->sources[i];
        bool active = s->time >= source->from && s->time <= source->to;
        if (source->kind != UN_SOURCE_EMITTER || !active) continue;
        un_box3 box = un_shape_bounds(source->shape);
        for (int64_t n = begin; n < end; n++) {
            un_vec3 x = s->mesh.x[n];
            bool near = x.x > box.min.x && x.y > box.min.y && x.z > box.min.z && x.x < box.max.x &&
                        x.y < box.max.y && x.z < box.max.z;
            if (!near || !(un_shape_distance(source->shape, x) < 0)) continue;
            s->viscous_walls.kind[n] = UN_WALL_STICKS;
            s->viscous_walls.u[n] = source->velocity;
        }
    }
}

un_status un_tet_thicken(un_tet *s)
{
    if (s->particles.mixed) UN_TRY(mix(s));
    if (!s->viscous) return UN_OK;
    UN_TRY(correct_nodes(s));
    UN_TRY(un_viscous_walls_find(s->ctx, &s->viscous_walls, &s->tet_walls));
    un_parallel_for(s->ctx, s->mesh.node_count, 8192, hold_emitters, s);
    un_parallel_for(s->ctx, s->mesh.node_count, 8192, stick, s);
    return UN_OK;
}

/* ---- the solve ---- */

typedef struct viscous_args {
    un_tet *s;
    un_vec3 *change;  /* at tets: of this step so far */
    un_vec3 *u, *was; /* at nodes: with that change; before the solve */
    uint8_t *reached;
    bool pic;
    double dt;
} viscous_args;

static void find_change(void *arg, int64_t begin, int64_t end)
{
    viscous_args *a = arg;
    const un_tet *s = a->s;
    for (int64_t t = begin; t < end; t++)
        a->change[t] = s->known_tet[t] == 1 ? un_sub(s->u_tet[t], s->d_tet[t]) : un_v3(0, 0, 0);
}

static void add_change(void *arg, int64_t begin, int64_t end)
{
    viscous_args *a = arg;
    const un_tet *s = a->s;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 u = un_add(s->u_node[n], a->u[n]);
        a->u[n] = a->was[n] = un_tet_sticks(s, n) ? s->viscous_walls.u[n] : u;
    }
}

static void change_tets(void *arg, int64_t begin, int64_t end)
{
    viscous_args *a = arg;
    un_tet *s = a->s;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = s->mesh.tet[t];
        un_vec3 u = {0, 0, 0}, was = {0, 0, 0};
        double nu = 0;
        int reached = 0;
        if (s->known_tet[t] != 1) continue;
        for (int i = 0; i < 4; i++) {
            if (!a->reached[n[i]]) continue;
            reached++;
            u = un_mad(u, a->u[n[i]], 0.25);
            was = un_mad(was, a->was[n[i]], 0.25);
            nu += 0.25 * un_tet_thickness(s, n[i]);
        }
        double h = un_tets_size(&s->mesh, (int32_t)t);
        double own = reached < 4 ? 1 : a->pic ? 0 : un_tet_viscous_rest(nu, h, a->dt);
        s->u_tet[t] = un_mad(u, un_sub(s->u_tet[t], was), own);
    }
}

un_status un_tet_solve_stress(un_tet *s, un_vec3 *u, uint8_t *reached,
                              const un_viscous_faces *faces, bool keeps_volume, double dt,
                              int32_t *iterations)
{
    un_viscous_def def = {.mesh = &s->mesh,
                          .u = u,
                          .reached = reached,
                          .phi = s->phi,
                          .tet_walls = &s->tet_walls,
                          .walls = &s->viscous_walls,
                          .viscosity = s->mixed.viscosity,
                          .density = s->mixed.density,
                          .viscosity_all = s->def->fluid.viscosity,
                          .density_all = s->def->fluid.density,
                          .keeps_volume = keeps_volume,
                          .p = s->p[1],
                          .dt = dt,
                          .tolerance = s->def->solver.tolerance,
                          .iteration_limit = ITERATION_LIMIT,
                          .laplacian = strcmp(s->def->solver.stress, "laplacian") == 0};
    un_viscous_report report;
    if (faces)
        UN_TRY(un_viscosity_solve_faces(s->viscosity, &s->arena, &def, faces, &report));
    else
        UN_TRY(un_viscosity_solve(s->viscosity, &s->arena, &def, &report));
    if (!report.solve.finite)
        return un_fail(s->ctx, UN_ERROR_NUMERIC,
                       "the viscous system of step %d (t = %.6g s) holds a value that is not "
                       "finite; lower solver.cfl or look for extreme velocities in the scene",
                       s->step_count + 1, s->time);
    if (!report.solve.converged)
        un_log(s->ctx, UN_LOG_WARNING,
               "step %d: the viscous solve stopped after %d iterations at a residual of %.2g "
               "(wanted %.2g)",
               s->step_count + 1, report.solve.iterations, report.solve.residual,
               s->def->solver.tolerance);
    *iterations = report.solve.iterations;
    return UN_OK;
}

static un_status solve(un_tet *s, double dt, int32_t *iterations)
{
    un_context *ctx = s->ctx;
    size_t nodes = (size_t)s->mesh.node_count + 1, tets = (size_t)s->mesh.tet_count + 1;
    viscous_args a = {.s = s,
                      .change = un_arena_alloc(&s->arena, tets, sizeof *a.change),
                      .u = un_arena_alloc(&s->arena, nodes, sizeof *a.u),
                      .was = un_arena_alloc(&s->arena, nodes, sizeof *a.was),
                      .reached = un_arena_alloc(&s->arena, nodes, 1),
                      .pic = strcmp(s->def->solver.coupling, "pic") == 0,
                      .dt = dt};
    if (!a.change || !a.u || !a.was || !a.reached) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, s->mesh.tet_count, 16384, find_change, &a);
    un_transfer_tets_to_nodes(ctx, a.u, a.reached, a.change, s->known_tet, &s->mesh,
                              s->tet_walls.open);
    un_parallel_for(ctx, s->mesh.node_count, 16384, add_change, &a);
    bool full = strcmp(s->def->solver.stress, "full") == 0;
    UN_TRY(un_tet_solve_stress(s, a.u, a.reached, NULL, full, dt, iterations));
    un_parallel_for(ctx, s->mesh.tet_count, 8192, change_tets, &a);
    return UN_OK;
}

/* ---- beside the surface ---- */

/* The level set cuts edges round and leaves the particles in them outside. Water flings them off.
 * Thick liquid sheds nothing, but they would fly beside it as drops, or stand out of its surface as
 * a ragged seam. So they are part of it, and are drawn in to the level set little by little.
 *
 * How far from it, in radii: edges of a sheet from an emitter stand out by one. The time that it
 * takes, s: drawn in at once (0.02 s) a thread four cells thick lost up to a tenth (8 %) of its
 * volume, for it grows denser before it grows wider; at 0.04 s 3 %, at 0.1 s 1 %, with edges less
 * smooth. */
#define CLING_REACH 2.0
#define DRAWN_TIME 0.05

/* A particle's own; no less than that of a finest half cell, for the rim of a stream has smaller
 * ones, which stand out as far. */
#define HALF_CELL_RADIUS 0.31

static double cling_radius(const un_tet *s, int64_t q)
{
    return fmax(s->radius[q], HALF_CELL_RADIUS * s->tree.h);
}

/* Thick is what does not outrun viscosity, falling by its own radius. */
bool un_tet_clings(const un_tet *s, int64_t q, double depth)
{
    const un_particles *p = &s->particles;
    double r = cling_radius(s, q);
    if (!s->viscous || !(depth < CLING_REACH * r)) return false;
    double nu = p->density ? (double)(p->viscosity[q] / p->density[q])
                           : s->def->fluid.viscosity / s->def->fluid.density;
    return nu > r * sqrt(un_length(s->def->gravity) * r);
}

typedef struct draw_args {
    un_tet *s;
    double dt;
    bool all;
} draw_args;

static void draw_in(void *arg, int64_t begin, int64_t end)
{
    draw_args *a = arg;
    un_tet *s = a->s;
    un_particles *p = &s->particles;
    for (int64_t q = begin; q < end; q++) {
        double depth = s->depth[q];
        bool near = a->all ? depth < CLING_REACH * cling_radius(s, q) : un_tet_clings(s, q, depth);
        if (!(depth > 0 && near)) continue;
        double way = depth * fmin(1, a->dt / DRAWN_TIME);
        un_vec3 normal = un_v3(s->normal[0][q], s->normal[1][q], s->normal[2][q]);
        un_vec3 x = un_particle_position(p, q), unused = {0, 0, 0};
        un_vec3 to = un_advect_collide(s->walls, x, un_mad(x, normal, -way), a->dt, &unused);
        un_particle_set_position(p, q, to);
    }
}

void un_tet_draw_in(un_tet *s, double dt, bool all)
{
    draw_args a = {s, dt, all};
    if (s->viscous || all) un_parallel_for(s->ctx, s->particles.count, 16384, draw_in, &a);
}

/* ---- the step ---- */

un_status un_tet_viscosity(un_tet *s, double dt, un_tet_projection_report *projection,
                           int32_t *viscous_iterations)
{
    un_status status = solve(s, dt, viscous_iterations);
    un_arena_reset(&s->arena);
    UN_TRY(status);
    /* The second pressure is small beside the first; outputs and the next guess have their sum. */
    int32_t nodes = s->mesh.node_count, iterations = projection->solve.iterations;
    double *first;
    UN_ALLOC(s->ctx, first, nodes + 1);
    memcpy(first, s->p[0], (size_t)nodes * sizeof *first);
    memset(s->p[0], 0, (size_t)nodes * sizeof *first);
    status = un_tet_apply_pressure(s, dt, projection);
    for (int32_t n = 0; n < nodes; n++) s->p[0][n] += first[n];
    un_free(s->ctx, first);
    projection->solve.iterations += iterations;
    return status;
}
