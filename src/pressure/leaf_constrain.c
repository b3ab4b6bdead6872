/* Velocities on faces between the leaves of an octree: what walls do to them, with friction; and
 * the pressure at a point. */
#include "pressure/system.h"

/* ---- velocities at walls ---- */

typedef struct constrain_args {
    double *u;
    const uint8_t *known;
    const un_leaves_flow *flow;
    const un_leaf_walls *walls;
    const int32_t *face; /* closed ones in solids, and slivers */
    double *value;
    double dt;
} constrain_args;

/* The part of the velocity into the solid is taken away. */
static void constrain_faces(void *arg, int64_t begin, int64_t end)
{
    const constrain_args *a = arg;
    const un_leaves *m = a->flow->leaves;
    const un_bodies *bodies = a->walls->walls->bodies;
    for (int64_t n = begin; n < end; n++) {
        int32_t f = a->face[n];
        const un_body *body = &bodies->body[a->walls->body[f]];
        int axis = un_leaf_face_axis(m, f);
        un_vec3 x = un_leaf_face_center(m, f), normal = un_body_normal(body, x);
        un_vec3 v = un_leaves_flow_at(a->flow, m->face_side[f] / 6, x);
        un_vec3 solid = body->moves ? un_body_velocity(body, x) : un_v3(0, 0, 0);
        if (m->dim == 2) solid.z = 0;
        a->value[n] = a->u[f] - un_dot(un_sub(v, solid), normal) * un_vec3_at(normal, axis);
    }
}

#define SWEEPS 2

/* A rank that knows some of the faces finds its own, and hears of the others after each sweep. */
static un_status constrain_in(constrain_args *a, un_context *ctx, un_arena *arena, int32_t *face,
                              uint8_t *wanted, un_leaves_flow *flow)
{
    const un_leaves *m = flow->leaves;
    const un_leaf_walls *walls = a->walls;
    bool parts = un_leaves_in_parts(m);
    un_part own = un_leaves_own_faces(m);
    int32_t count = 0;
    memset(wanted, 0, (size_t)m->count);
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t f = un_leaves_face_run(m, k).begin; f < un_leaves_face_run(m, k).end; f++) {
            if (a->known[f] == 1 || walls->area[f] >= UN_SLIVER) continue;
            if (un_leaf_face_on_side(m, f)) {
                a->u[f] = 0;
            } else if (a->known[f] > 0 && walls->body && walls->body[f] >= 0 &&
                       (!parts || (f >= own.begin && f < own.end))) {
                wanted[m->face_side[f] / 6] = 1;
                face[count++] = (int32_t)f;
            }
        }
    if (parts ? !walls->body : count == 0) return UN_OK;
    a->face = face;
    a->value = un_arena_alloc(arena, (size_t)count + 1, sizeof *a->value);
    un_status status = a->value ? UN_OK : UN_ERROR_MEMORY;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        if (status == UN_OK) status = un_leaves_flow_build(flow, m, a->u, wanted);
        if (parts) status = un_leaves_agree(m, status);
        UN_TRY(status);
        un_parallel_for(ctx, count, 256, constrain_faces, a);
        for (int32_t n = 0; n < count; n++) a->u[face[n]] = a->value[n];
        if (parts) un_leaves_spread_faces(m, a->u, sizeof *a->u);
    }
    return UN_OK;
}

un_status un_leaf_constrain(un_context *ctx, un_arena *arena, double *u, const uint8_t *known,
                            const un_leaves *m, const un_leaf_walls *walls)
{
    un_leaves_flow flow = {.leaves = m};
    constrain_args a = {.u = u, .known = known, .walls = walls, .flow = &flow};
    int32_t *face = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof *face);
    uint8_t *wanted = un_arena_alloc(arena, (size_t)m->count + 1, 1);
    un_status status = face && wanted ? UN_OK : UN_ERROR_MEMORY;
    if (un_leaves_in_parts(m)) status = un_leaves_agree(m, status);
    if (status == UN_OK) status = constrain_in(&a, ctx, arena, face, wanted, &flow);
    un_leaves_flow_free(ctx, &flow);
    return status;
}

static void friction_faces(void *arg, int64_t begin, int64_t end)
{
    const constrain_args *a = arg;
    const un_leaves *m = a->flow->leaves;
    const un_leaf_walls *w = a->walls;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6;
        double h = un_leaf_size(m, c);
        if (!(w->solid[c] < (float)(1.5 * h))) continue;
        un_vec3 x = un_leaf_face_center(m, f);
        double d = 0.5 * h;
        int32_t b = un_bodies_nearest(w->walls->bodies, x, &d);
        if (b < 0 || w->walls->bodies->body[b].friction <= 0) continue;
        const un_body *body = &w->walls->bodies->body[b];
        double solid = un_vec3_at(un_body_velocity(body, x), un_leaf_face_axis(m, f));
        a->u[f] = solid + (a->u[f] - solid) * un_body_slip_left(body, a->dt);
    }
}

void un_leaf_friction(un_context *ctx, double *u, const un_leaves *m, const un_leaf_walls *walls,
                      double dt)
{
    if (!walls->walls->bodies->friction) return;
    un_leaves_flow flow = {.leaves = m};
    constrain_args a = {.u = u, .flow = &flow, .walls = walls, .dt = dt};
    (void)ctx;
    un_leaves_each_face(m, 2048, friction_faces, &a);
}

/* ---- at a point ---- */

/* The mean pressure beyond a side, where that is liquid. */
static bool pressure_beyond(const un_leaves *m, const double *p, const float *phi, int32_t c,
                            int side, double *value, double *distance)
{
    int32_t f = m->side[c][side];
    int count = 0;
    *value = 0;
    for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
        int32_t face = f < 0 ? m->group[~f][k] : f, own = m->face_side[face] / 6;
        int32_t there = own == c ? m->face_other[face] : own;
        if (there < 0 || !(phi[there] < 0) || p[there] == 0) continue; /* 0: closed by a solid */
        *value += p[there];
        *distance = 0.5 * (un_leaf_size(m, c) + un_leaf_size(m, there));
        count++;
    }
    if (count > 0) *value /= count;
    return count > 0;
}

double un_leaf_pressure_at(const un_leaves *m, const double *p, const float *phi, un_vec3 x)
{
    int32_t c = un_octree_find(m->tree, x);
    double value = p[c];
    if (!(phi[c] < 0)) return 0;
    un_vec3 way = un_sub(x, m->x[c]);
    for (int axis = 0; axis < m->dim; axis++) {
        double low, high, below = 0, above = 0;
        bool has_low = pressure_beyond(m, p, phi, c, 2 * axis, &low, &below);
        bool has_high = pressure_beyond(m, p, phi, c, 2 * axis + 1, &high, &above);
        double slope = has_low && has_high ? (high - low) / (below + above)
                       : has_high          ? (high - p[c]) / above
                       : has_low           ? (p[c] - low) / below
                                           : 0;
        value += un_vec3_at(way, axis) * slope;
    }
    return value;
}
