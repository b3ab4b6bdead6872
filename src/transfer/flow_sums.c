/* Velocities of tets with normal velocities on their faces, and sums over them. */
#include "transfer/transfer.h"

#include "surface/surface.h"

typedef struct args {
    un_vec3 *u_tet;
    double *u;
    const un_stuffing *mesh;
    un_vec3 velocity;
} args;

/* Divergence-free: the velocity is sum_f s_f u_f A_f (x_f - c) / V, exact for a uniform one. */
static void find_velocities(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_stuffing *m = a->mesh;
    for (int64_t t = begin; t < end; t++) {
        un_vec3 sum = {0}, c = un_stuffing_center(m, (int32_t)t);
        for (int i = 0; i < 4; i++) {
            int32_t f = m->tet_face[t][i];
            double flow = un_stuffing_sign(m, (int32_t)t, i) * a->u[f] * un_length(m->area[f]);
            sum = un_mad(sum, un_sub(m->center[f], c), flow / m->volume[t]);
        }
        a->u_tet[t] = sum;
    }
}

void un_stuffing_velocities(un_context *ctx, un_vec3 *u_tet, const un_stuffing *mesh,
                            const double *u)
{
    args a = {.u_tet = u_tet, .u = (double *)u, .mesh = mesh};
    un_parallel_for(ctx, mesh->tet_count, 2048, find_velocities, &a);
}

static void set_faces(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t f = begin; f < end; f++)
        a->u[f] = un_dot(a->velocity, un_normalize(a->mesh->area[f]));
}

void un_stuffing_uniform(un_context *ctx, double *u, const un_stuffing *mesh, un_vec3 velocity)
{
    args a = {.u = u, .mesh = mesh, .velocity = velocity};
    un_parallel_for(ctx, mesh->face_count, 8192, set_faces, &a);
}

/* Thin liquid is no farther than this from its surface, in cells of the track. */
#define THIN 2.0

typedef struct adding {
    const un_stuffing *mesh;
    const un_vec3 *u;
    un_vec3 gravity;
    const un_track *track; /* NULL: it has no thin liquid */
    bool by_leaf;
} adding;

static bool has_thin(const un_track *t)
{
    for (int32_t v = 0; t && v < t->mesh.vertex_count; v++)
        if (t->fill[v] < 1) return true;
    return false;
}

/* The share of a tet that is liquid: thin liquid is thickened by the track, and more by the mesh.
 */
static double real_share(const un_track *t, un_vec3 x, int32_t *hint)
{
    double phi = un_track_distance(t, x, hint);
    if (phi > 0) return 0;
    return phi < -THIN * t->h ? 1 : un_track_fill(t, x);
}

static void add_tets(void *arg, int64_t begin, int64_t end, double *sums)
{
    adding *a = arg;
    int32_t hint = -1;
    for (int64_t t = begin; t < end; t++) {
        double v = a->mesh->volume[t];
        un_vec3 u = a->u[t], x = un_stuffing_center(a->mesh, (int32_t)t);
        if (a->track) v *= real_share(a->track, x, &hint);
        sums[0] += v;
        sums[1] += 0.5 * v * un_dot(u, u);
        sums[2] -= v * un_dot(a->gravity, x);
        sums[3] += v * u.x, sums[4] += v * u.y, sums[5] += v * u.z;
    }
}

static double fastest(void *arg, int64_t begin, int64_t end)
{
    adding *a = arg;
    double most = 0;
    for (int64_t t = begin; t < end; t++) {
        double s = un_length(a->u[t]);
        if (a->by_leaf) s /= un_octree_size(&a->mesh->tree, a->mesh->level[t]);
        if (!(s <= most)) most = s; /* NaN counts */
    }
    return most;
}

void un_stuffing_sum(un_context *ctx, un_stuffing_sums *out, const un_stuffing *mesh,
                     const un_vec3 *u_tet, const un_track *track, un_vec3 gravity, double density)
{
    adding a = {mesh, u_tet, gravity, has_thin(track) ? track : NULL, false};
    double s[6] = {0};
    *out = (un_stuffing_sums){0};
    if (mesh->tet_count == 0) return;
    un_parallel_sums(ctx, mesh->tet_count, 6, add_tets, &a, s);
    out->volume = s[0];
    out->energy_kinetic = density * s[1];
    out->energy_potential = density * s[2];
    out->momentum = un_scale(un_v3(s[3], s[4], s[5]), density);
    out->max_speed = un_parallel_max(ctx, mesh->tet_count, fastest, &a);
    a.by_leaf = true;
    out->rate = un_parallel_max(ctx, mesh->tet_count, fastest, &a);
}

typedef struct points {
    un_vec3 *u;
    const un_flow *flow;
    const un_vec3 *x;
} points;

static void sample_points(void *arg, int64_t begin, int64_t end)
{
    points *p = arg;
    for (int64_t i = begin; i < end; i++) p->u[i] = un_flow_at(p->flow, p->x[i]);
}

void un_flow_to_points(un_context *ctx, un_vec3 *u, const un_flow *flow, const un_vec3 *x,
                       int64_t count)
{
    points p = {u, flow, x};
    un_parallel_for(ctx, count, 2048, sample_points, &p);
}

typedef struct crossing {
    const un_stuffing *mesh;
    const un_vec3 *u;
    double min[3], step[3];
    int32_t n[3];
    int axis;
} crossing;

static double sum_crossing(void *arg, int64_t begin, int64_t end)
{
    crossing *c = arg;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3] = {i % c->n[0], i / c->n[0] % c->n[1], i / c->n[0] / c->n[1]};
        double x[3];
        for (int a = 0; a < 3; a++) x[a] = c->min[a] + c->step[a] * ((double)at[a] + 0.5);
        un_tets_place place;
        if (!un_stuffing_locate(c->mesh, un_v3(x[0], x[1], x[2]), -1, &place)) continue;
        un_vec3 u = c->u[place.tet];
        sum += c->axis == 0 ? u.x : c->axis == 1 ? u.y : u.z;
    }
    return sum;
}

double un_stuffing_flux(un_context *ctx, const un_stuffing *mesh, const un_vec3 *u_tet, un_vec3 min,
                        un_vec3 max, int axis)
{
    double lo[3] = {min.x, min.y, min.z}, hi[3] = {max.x, max.y, max.z}, area = 1;
    crossing c = {.mesh = mesh, .u = u_tet, .axis = axis};
    if (mesh->tet_count == 0) return 0;
    for (int a = 0; a < 3; a++) {
        double length = a == axis ? 0 : hi[a] - lo[a];
        c.n[a] = a == axis ? 1 : (int32_t)un_clamp(ceil(2 * length / mesh->tree.h), 1, 4096);
        c.min[a] = lo[a];
        c.step[a] = length / c.n[a];
        if (a != axis) area *= c.step[a];
    }
    return area * un_parallel_sum(ctx, (int64_t)c.n[0] * c.n[1] * c.n[2], sum_crossing, &c);
}

/* ---- emitters ---- */

typedef struct emitting {
    double *u, *divergence;
    const un_stuffing *mesh;
    const un_source *source;
    double rate;
} emitting;

static void emit_faces(void *arg, int64_t begin, int64_t end)
{
    emitting *e = arg;
    for (int64_t f = begin; f < end; f++)
        if (un_shape_distance(e->source->shape, e->mesh->center[f]) < 0)
            e->u[f] = un_dot(e->source->velocity, un_normalize(e->mesh->area[f]));
}

static double emitting_volume(void *arg, int64_t begin, int64_t end)
{
    emitting *e = arg;
    double sum = 0;
    for (int64_t t = begin; t < end; t++) {
        un_vec3 x = un_stuffing_center(e->mesh, (int32_t)t);
        if (un_shape_distance(e->source->shape, x) < 0) sum += e->mesh->volume[t];
    }
    return sum;
}

static void emit_tets(void *arg, int64_t begin, int64_t end)
{
    emitting *e = arg;
    for (int64_t t = begin; t < end; t++) {
        un_vec3 x = un_stuffing_center(e->mesh, (int32_t)t);
        if (un_shape_distance(e->source->shape, x) < 0) e->divergence[t] += e->rate;
    }
}

void un_stuffing_emit(un_context *ctx, double *u, double *divergence, const un_stuffing *mesh,
                      const un_source *source, double volume, double dt)
{
    emitting e = {u, divergence, mesh, source, 0};
    un_parallel_for(ctx, mesh->face_count, 4096, emit_faces, &e);
    if (!(volume > 0)) return;
    double room = un_parallel_sum(ctx, mesh->tet_count, emitting_volume, &e);
    e.rate = room > 0 ? volume / (room * dt) : 0;
    un_parallel_for(ctx, mesh->tet_count, 4096, emit_tets, &e);
}

/* ---- drains ---- */

typedef struct draining {
    const un_stuffing *mesh;
    const double *u;
    const un_shape *shape;
    double margin;
} draining;

static double sum_drained(void *arg, int64_t begin, int64_t end)
{
    draining *d = arg;
    double sum = 0;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = d->mesh->boundary[b];
        if (d->mesh->face_behind[f] != UN_BEHIND_AIR) continue;
        if (un_shape_distance(d->shape, d->mesh->center[f]) < d->margin)
            sum += d->u[f] * un_length(d->mesh->area[f]);
    }
    return sum;
}

double un_stuffing_drained(un_context *ctx, const un_stuffing *mesh, const double *u,
                           const un_shape *shape, double margin)
{
    draining d = {mesh, u, shape, margin};
    return un_parallel_sum(ctx, mesh->boundary_count, sum_drained, &d);
}
