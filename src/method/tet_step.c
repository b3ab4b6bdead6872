/* The parts of the step of method `tet` that are more than one call. */
#include "method/tet.h"

/* As in method `uniform`: the rate at which quiet liquid relaxes to the mesh's velocity, 1/s, and
 * what counts as quiet, a share of sqrt(g h). */
#define PIC_QUIET 200.0
#define QUIET_SHARE 0.1
/* Time in which a small volume error is corrected, s; the error that is corrected twice as fast;
 * the fastest correction, 1/s. */
#define VOLUME_TIME 1.0
#define VOLUME_ERROR 0.00025
#define VOLUME_RATE_MAX 0.5
/* Crowded liquid evens out in this time, s, once its volume fraction is off by more than the noise;
 * heaps beyond are parted in a few steps. */
#define CROWDING_TIME 0.1
#define CROWDING_NOISE 0.08
#define CROWDING_RATE_MAX 4.0
#define CROWDING_HEAP 0.3
#define CROWDING_STEPS 4
/* More is needed deep inside where cells of several sizes meet; less near the surface, where dips
 * of a few per cent of a cell drive eddies. Nearer to the surface than CROWDING_DEPTH cells the
 * profile is too low to tell. */
#define CROWDING_GRADED 0.12
#define CROWDING_SHALLOW 0.04
#define CROWDING_DEPTH 0.5
#define ITERATION_LIMIT 2000

static double quiet_speed(const un_tet *s)
{
    return QUIET_SHARE * sqrt(fmax(un_length(s->def->gravity), 1e-6) * s->tree.h);
}

/* ---- 9: velocities of the mesh ---- */

/* Quiet liquid also loses what differs from cell to cell, at this rate, 1/s: half of all modes of
 * the velocity pass the projection, and bumps of a cell's width would ring for long. */
#define CALM_RATE 400.0
/* Below about a third of the quiet speed waves no longer show, and all that differs from its
 * surroundings goes: still water has eddies of a few cells, driven by the noise of the level set,
 * that only this brings to rest. The square of stir at which half is kept. */
#define STILL 0.005
/* Where viscosity leaves less than this of that nothing is done. */
#define NOISE_LEAST 0.02f

/* M u, M the consistent mass matrix over its row sums, at quiet nodes; u at others. */
typedef struct smooth_args {
    const un_tet *s;
    un_vec3 *out;
    const un_vec3 *u;   /* at nodes */
    const un_vec3 *tet; /* its means at tets */
    const float *quiet; /* at nodes: 1 at rest, 0 in motion */
} smooth_args;

static void smooth_nodes(void *arg, int64_t begin, int64_t end)
{
    smooth_args *a = arg;
    const un_tets *mesh = &a->s->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->out[n] = a->u[n];
        if (!(a->quiet[n] > 0)) continue;
        un_vec3 sum = {0, 0, 0};
        double total = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double w = un_tets_volume(mesh, t);
            sum = un_mad(sum, a->tet[t], w);
            total += w;
        }
        a->out[n] = un_mad(un_scale(a->u[n], 0.2), sum, 0.8 / total);
    }
}

static void find_quiet(void *arg, int64_t begin, int64_t end)
{
    smooth_args *a = arg;
    const un_tet *s = a->s;
    double quiet = quiet_speed(s);
    for (int64_t n = begin; n < end; n++) {
        double coarse = un_octree_size(&s->tree, s->mesh.node_level[n]) / s->tree.h;
        double stir = un_dot(s->u_node[n], s->u_node[n]) / (quiet * quiet * coarse);
        s->quiet[n] = stir < 10 && s->known_node[n] ? (float)(1 / (1 + stir * stir)) : 0;
        if (!s->viscous) continue;
        double h = un_octree_size(&s->tree, s->mesh.node_level[n]);
        s->quiet[n] *= (float)un_noise_share(un_tet_thickness(s, n), h, quiet);
        if (s->quiet[n] < NOISE_LEAST) s->quiet[n] = 0;
    }
}

/* With M the mean over neighbours and T what a way to the particles and back makes of a field:
 *
 *     u <- u - share quiet ((1 - waves) (1 - M) u + waves (1 - M)^2 u),   sharp = waves (u - T u)
 *
 * Little is left of what alternates from node to node; of waves of ten cells still water loses a
 * share, moving water a thousandth. sharp is for the particles. */
typedef struct calm_args {
    un_tet *s;
    const un_vec3 *once, *twice;
    un_vec3 *calm;
    double share;
} calm_args;

static void calm_nodes(void *arg, int64_t begin, int64_t end)
{
    calm_args *a = arg;
    un_tet *s = a->s;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 u = s->u_node[n], fine = un_sub(u, a->once[n]);
        un_vec3 finest = un_sub(fine, un_sub(a->once[n], a->twice[n]));
        double waves = s->quiet[n] > 0 ? 1 - s->quiet[n] : 1; /* stir^2 / (1 + stir^2) */
        waves /= waves + STILL * (1 - waves);
        un_vec3 off = un_mad(un_scale(fine, 1 - waves), finest, waves);
        s->sharp[n] = un_scale(un_sub(u, s->sharp[n]), waves);
        a->calm[n] = un_mad(u, off, -a->share * s->quiet[n]);
    }
}

/* Leaves the calmed velocity at tets. */
static un_status calm(un_tet *s, double dt)
{
    un_context *ctx = s->ctx;
    size_t nodes = (size_t)s->mesh.node_count + 1, tets = (size_t)s->mesh.tet_count + 1;
    un_vec3 *mean = un_arena_alloc(&s->arena, tets, sizeof *mean), *out[3];
    for (int i = 0; i < 3; i++) out[i] = un_arena_alloc(&s->arena, nodes, sizeof **out);
    if (!mean || !out[0] || !out[1] || !out[2]) return UN_ERROR_MEMORY;
    smooth_args m = {.s = s, .out = out[0], .u = s->u_node, .tet = s->u_tet, .quiet = s->quiet};
    un_parallel_for(ctx, s->mesh.node_count, 8192, find_quiet, &m);
    un_parallel_for(ctx, s->mesh.node_count, 2048, smooth_nodes, &m);
    un_transfer_nodes_to_tets(ctx, mean, out[0], s->known_node, &s->mesh, NULL);
    m = (smooth_args){.s = s, .out = out[1], .u = out[0], .tet = mean, .quiet = s->quiet};
    un_parallel_for(ctx, s->mesh.node_count, 2048, smooth_nodes, &m);
    UN_TRY(un_transfer_blur(ctx, &s->arena, s->sharp, s->u_node, s->quiet, &s->mesh, &s->bins,
                            &s->particles));
    calm_args c = {s, out[0], out[1], out[2], 1 - exp(-CALM_RATE * dt)};
    un_parallel_for(ctx, s->mesh.node_count, 8192, calm_nodes, &c);
    un_transfer_nodes_to_tets(ctx, s->u_tet, out[2], s->known_node, &s->mesh, NULL);
    un_arena_reset(&s->arena);
    return UN_OK;
}

typedef struct force_args {
    un_tet *s;
    un_vec3 change;
} force_args;

static void accelerate(void *arg, int64_t begin, int64_t end)
{
    force_args *a = arg;
    un_tet *s = a->s;
    for (int64_t t = begin; t < end; t++) s->u_tet[t] = un_add(s->u_tet[t], a->change);
}

un_status un_tet_to_mesh(un_tet *s, double dt)
{
    force_args a = {s, un_scale(s->def->gravity, dt)};
    /* u_node is what un_tet_level_set transferred; particles have not moved since. */
    UN_TRY(un_transfer_extrapolate_nodes(s->ctx, &s->arena, s->u_node, NULL, s->known_node,
                                         &s->mesh, 2));
    un_arena_reset(&s->arena);
    UN_TRY(un_tet_thicken(s));
    /* What the tets have before any force, to tell the change from; calm needs it too. */
    un_transfer_nodes_to_tets(s->ctx, s->u_tet, s->u_node, s->known_node, &s->mesh, NULL);
    memcpy(s->d_tet, s->u_tet, (size_t)s->mesh.tet_count * sizeof *s->d_tet);
    UN_TRY(calm(s, dt));
    un_parallel_for(s->ctx, s->mesh.tet_count, 16384, accelerate, &a);
    return UN_OK;
}

/* ---- 11: pressure ---- */

typedef struct source_args {
    un_tet *s;
    double dt, expansion;
} source_args;

/* Where cells of different sizes meet, hat functions are lopsided and evenly spread particles do
 * not sum up to one. */
static bool is_graded(const un_tets *mesh, int64_t n)
{
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4;
        un_tet_kind kind = mesh->shapes[mesh->shape[t]].kind;
        if (kind != UN_TET_BCC && kind != UN_TET_BOUNDARY) return true;
    }
    return false;
}

/* By how much the liquid around a node is too dense, relative to what it should be at its depth,
 * and beyond the noise of the estimate. Splitting and merging move volume about by a radius; what
 * they leave too thin would stay so, for the flow is free of divergence, and show as a dip that
 * never closes. Next to solids the fraction is weighed less exactly and left alone. */
static double crowding_at(const un_tet *s, int64_t n, double h)
{
    if (!(s->phi[n] < -CROWDING_DEPTH * h)) return fmax(0, s->colour[n] - 1 - CROWDING_HEAP);
    double crowding = s->colour[n] / un_colour_tets_profile(s->phi[n], h) - 1;
    double size = fabs(crowding) - CROWDING_SHALLOW;
    if (size <= 0) return 0;
    if (s->tet_walls.phi_solid && s->tet_walls.phi_solid[n] < 2 * h) return 0;
    bool graded = is_graded(&s->mesh, n);
    if (graded || s->phi[n] < -1.5 * h)
        size = fabs(crowding) - (graded ? CROWDING_GRADED : CROWDING_NOISE);
    return size > 0 ? copysign(size, crowding) : 0;
}

/* Divergence wanted at a node: the ledger's, what evens out crowding, what emitters bring. */
static void wanted_divergence(void *arg, int64_t begin, int64_t end)
{
    source_args *a = arg;
    un_tet *s = a->s;
    for (int64_t n = begin; n < end; n++) {
        double h = un_octree_size(&s->tree, s->mesh.node_level[n]), sigma = a->expansion;
        double crowding = s->phi[n] < 0 ? crowding_at(s, n, h) : 0;
        double time = fmax(CROWDING_TIME, 2 * a->dt);
        sigma += fmax(0, crowding - CROWDING_HEAP) / (CROWDING_STEPS * a->dt);
        sigma += un_clamp(crowding / time, -CROWDING_RATE_MAX, CROWDING_RATE_MAX);
        if (s->has_emitted && s->tet_walls.node_open[n] > 0)
            sigma += s->emitted[n] / (s->tet_walls.node_open[n] * a->dt);
        s->source[n] = (float)sigma;
    }
}

void un_tet_want_divergence(un_tet *s, double dt)
{
    double rate = (1 + fabs(s->volume_error) / VOLUME_ERROR) / VOLUME_TIME;
    source_args a = {s, dt, un_clamp(-s->volume_error * rate, -VOLUME_RATE_MAX, VOLUME_RATE_MAX)};
    un_parallel_for(s->ctx, s->mesh.node_count, 8192, wanted_divergence, &a);
    s->has_emitted = false;
}

un_status un_tet_project(un_tet *s, double dt, un_tet_projection_report *report)
{
    un_tet_want_divergence(s, dt);
    return un_tet_apply_pressure(s, dt, report);
}

un_status un_tet_apply_pressure(un_tet *s, double dt, un_tet_projection_report *report)
{
    un_tet_projection in = {.mesh = &s->mesh,
                            .u = s->u_tet,
                            .known = s->known_tet,
                            .phi = s->phi,
                            .walls = &s->tet_walls,
                            .u_solid = s->tet_walls.u_solid,
                            .p = s->p[0],
                            .source = s->source,
                            .lightness = s->mixed.lightness,
                            .dt = dt,
                            .density = s->def->fluid.density,
                            .tolerance = s->def->solver.tolerance,
                            .iteration_limit = ITERATION_LIMIT};
    UN_TRY(un_tet_pressure_project(s->pressure, &s->arena, &in, report));
    un_arena_reset(&s->arena);
    return un_step_solved(s->ctx, &report->solve, s->step_count + 1, s->time,
                          s->def->solver.tolerance);
}

/* ---- 10: velocities beyond the liquid and at walls ---- */

static void find_change(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    for (int64_t t = begin; t < end; t++)
        s->d_tet[t] = s->known_tet[t] == 1 ? un_sub(s->u_tet[t], s->d_tet[t]) : un_v3(0, 0, 0);
}

/* Nodes the projection reaches get its change; d_node stands at all others for the extrapolation
 * to fill. */
static void add_change(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    for (int64_t n = begin; n < end; n++)
        if (s->known_node[n]) s->u_node[n] = un_add(s->u_node[n], s->d_node[n]);
}

static void stop_at_side(double *u, double *d, double x, double top, bool low_closed,
                         bool high_closed, double snap)
{
    if ((low_closed && x < snap) || (high_closed && x > top - snap)) *u = *d = 0;
}

/* What a velocity loses at a solid: its part into it. */
static un_vec3 slide(un_vec3 u, un_vec3 solid, un_vec3 normal)
{
    double into = un_dot(un_sub(u, solid), normal);
    return into < 0 ? un_mad(u, normal, -into) : u;
}

typedef struct wall_args {
    un_tet *s;
    double dt;
} wall_args;

/* Nodes on closed sides and in solids do not move into them: before and after the projection alike,
 * for their difference is what particles get and it must not push them off the wall. */
static void constrain(void *arg, int64_t begin, int64_t end)
{
    wall_args *a = arg;
    un_tet *s = a->s;
    const bool *open = s->def->domain.open;
    un_vec3 top = s->def->domain.size;
    double snap = 1e-6 * s->tree.h;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 *u = &s->u_node[n], *d = &s->d_node[n], x = s->mesh.x[n];
        if (!s->known_node[n]) continue;
        if (un_tet_sticks(s, n)) {
            *u = s->viscous_walls.u[n];
            *d = un_v3(0, 0, 0);
            continue;
        }
        stop_at_side(&u->x, &d->x, x.x, top.x, !open[0], !open[1], snap);
        stop_at_side(&u->y, &d->y, x.y, top.y, !open[2], !open[3], snap);
        stop_at_side(&u->z, &d->z, x.z, top.z, !open[4], !open[5], snap);
        double h = un_octree_size(&s->tree, s->mesh.node_level[n]);
        if (!s->tet_walls.phi_solid || s->tet_walls.phi_solid[n] > 0.5 * h) continue;
        const un_body *body = &s->bodies->body[s->tet_walls.body[n]];
        un_vec3 solid = un_body_velocity(body, x), old = un_sub(*u, *d);
        if (s->tet_walls.phi_solid[n] <= 0) {
            un_vec3 normal = un_tet_walls_normal(&s->tet_walls, n);
            *u = slide(*u, solid, normal);
            old = slide(old, solid, normal);
        }
        *u = un_mad(solid, un_sub(*u, solid), un_body_slip_left(body, a->dt));
        *d = un_sub(*u, old);
    }
}

/* Cells that liquid crosses in a second, along an axis: in tets with particles, for tets that the
 * surface barely cuts may have any velocity. */
static double rate_block(void *arg, int64_t begin, int64_t end)
{
    const un_tet *s = arg;
    double max = 0;
    for (int64_t t = begin; t < end; t++) {
        if (s->known_tet[t] != 1 || s->bins.begin[t] == s->bins.begin[t + 1]) continue;
        un_vec3 u = s->u_tet[t];
        double speed = fmax(fabs(u.x), fmax(fabs(u.y), fabs(u.z)));
        max = fmax(max, speed / un_tets_size(&s->mesh, (int32_t)t));
    }
    return max;
}

void un_tet_find_rate(un_tet *s)
{
    s->rate_max = un_parallel_max(s->ctx, s->mesh.tet_count, rate_block, s);
}

un_status un_tet_extend(un_tet *s, double dt)
{
    un_tet_find_rate(s);
    un_parallel_for(s->ctx, s->mesh.tet_count, 16384, find_change, s);
    un_transfer_tets_to_nodes(s->ctx, s->d_node, s->known_node, s->d_tet, s->known_tet, &s->mesh,
                              s->tet_walls.open);
    un_parallel_for(s->ctx, s->mesh.node_count, 16384, add_change, s);
    return un_tet_extend_nodes(s, dt);
}

un_status un_tet_extend_nodes(un_tet *s, double dt)
{
    int32_t layers = (int32_t)ceil(s->def->solver.cfl) + 2;
    wall_args walls = {s, dt};
    UN_TRY(un_transfer_extrapolate_nodes(s->ctx, &s->arena, s->u_node, s->d_node, s->known_node,
                                         &s->mesh, layers));
    un_arena_reset(&s->arena);
    un_parallel_for(s->ctx, s->mesh.node_count, 4096, constrain, &walls);
    un_transfer_nodes_to_tets(s->ctx, s->u_tet, s->u_node, s->known_node, &s->mesh, s->known_tet);
    un_transfer_nodes_to_tets(s->ctx, s->d_tet, s->d_node, s->known_node, &s->mesh, s->known_tet);
    return UN_OK;
}

/* ---- 12, 4, 13, 8: particles ---- */

void un_tet_to_particles(un_tet *s, double dt)
{
    un_flip flip = {.dt = dt,
                    .gravity = s->def->gravity,
                    .pic = s->def->solver.pic,
                    .pic_quiet = fmax(PIC_QUIET, s->def->solver.pic),
                    .quiet_speed = quiet_speed(s),
                    .thickness = s->def->fluid.viscosity / s->def->fluid.density};
    un_tet_field u = {s->u_tet, s->u_node}, change = {s->d_tet, s->d_node};
    un_transfer_tets_to_particles(s->ctx, &s->particles, &s->bins, &s->mesh, &u, &change, s->sharp,
                                  &flip, 0.25 * s->tree.h);
    un_tet_draw_in(s, dt, false);
}

un_status un_tet_correct(un_tet *s, double dt)
{
    un_correct_def def = {.groups = &s->groups,
                          .radius = s->radius,
                          .phi = s->depth,
                          .normal = {s->normal[0], s->normal[1], s->normal[2]},
                          .wall = s->wall,
                          .walls = s->walls,
                          .dt = dt};
    UN_TRY(un_particles_correct_sized(s->ctx, &s->arena, &s->particles, &def));
    un_arena_reset(&s->arena);
    return UN_OK;
}

void un_tet_advect(un_tet *s, double dt)
{
    un_tet_field u = {s->u_tet, s->u_node};
    un_advect_tets(s->ctx, &s->particles, &s->bins, &s->mesh, &u, s->tet_walls.phi, s->walls,
                   s->def->gravity, dt);
}

un_status un_tet_resize(un_tet *s)
{
    /* They have moved; their order is still good enough for groups. */
    const double *x[3] = {s->particles.x[0], s->particles.x[1], s->particles.x[2]};
    un_arena_reset(&s->lists);
    UN_TRY(un_groups_build(s->ctx, &s->lists, &s->groups, x, s->radius, s->particles.count));
    un_resize_def def = un_tet_resize_range(s);
    def.groups = &s->groups;
    def.radius = s->radius;
    def.phi = s->depth;
    for (int axis = 0; axis < 3; axis++) def.normal[axis] = s->normal[axis];
    def.walls = s->walls;
    def.stream = (uint64_t)s->step_count;
    double before = un_particles_volume(s->ctx, &s->particles);
    /* What emitters bring is not foreseen: above the budget nothing smaller than the mean is made,
     * and what is smaller merges. */
    if (s->most > 0 && s->particles.count > s->most)
        def.volume_min = fmin(fmax(def.volume_min, before / s->most), def.volume_max);
    UN_TRY(un_particles_resize(s->ctx, &s->arena, &s->particles, &def, &s->resized));
    /* Volumes are rounded to single precision, which adds up over a hundred thousand merges: the
     * ledger books it, as it books what comes and goes. */
    s->sources.volume_in += un_particles_volume(s->ctx, &s->particles) - before;
    un_arena_reset(&s->arena);
    return UN_OK;
}
