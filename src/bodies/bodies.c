/* Places the scene's solids in a step, and answers what the liquid asks of them: distance, normal,
 * velocity. */
#include "bodies/free.h"

/* Without a step (dt = 0), a body's velocity is its mean over this time, s. */
#define SOON 1e-4
/* Points that un_body_distances transforms into the body's frame at once. */
#define RUN 512

/* ---- distances ---- */

void un_body_distances(const un_body *body, const un_vec3 *x, int32_t count, double *distance)
{
    if (!body->moves) {
        un_shape_distances(body->shape, x, count, distance);
        return;
    }
    un_vec3 local[RUN];
    for (int32_t first = 0; first < count; first += RUN) {
        int32_t run = count - first < RUN ? count - first : RUN;
        for (int32_t i = 0; i < run; i++) local[i] = un_pose_invert(&body->to, x[first + i]);
        un_shape_distances(body->shape, local, run, distance + first);
        for (int32_t i = 0; i < run; i++) distance[first + i] *= body->to.scale;
    }
}

un_vec3 un_body_normal(const un_body *body, un_vec3 x)
{
    if (!body->moves) return un_shape_normal(body->shape, x);
    return un_pose_rotate(&body->to, un_shape_normal(body->shape, un_pose_invert(&body->to, x)));
}

un_vec3 un_body_velocity(const un_body *body, un_vec3 x)
{
    if (body->free)
        return un_add(body->velocity,
                      un_cross(body->spin, un_sub(x, un_pose_apply(&body->to, body->centre))));
    if (!body->moves || body->dt <= 0) return un_v3(0, 0, 0);
    un_vec3 before = un_pose_apply(&body->from, un_pose_invert(&body->to, x));
    return un_scale(un_sub(x, before), 1 / body->dt);
}

un_vec3 un_body_velocity_before(const un_body *body, un_vec3 x)
{
    un_vec3 arm = un_sub(x, un_pose_apply(&body->to, body->centre));
    return un_add(body->old_velocity, un_cross(body->old_spin, arm));
}

/* The largest distance of x beyond a side of the body's box; negative inside. Like the distance to
 * the box it never exceeds the distance to the body, but it needs no square root. */
static double beyond_box(const un_body *body, un_vec3 x)
{
    un_vec3 d = un_max3(un_sub(body->bounds.min, x), un_sub(x, body->bounds.max));
    return fmax(fmax(d.x, d.y), d.z);
}

int32_t un_bodies_nearest(const un_bodies *bodies, un_vec3 x, double *distance)
{
    int32_t nearest = -1;
    for (int32_t b = 0; b < bodies->count; b++) {
        if (beyond_box(&bodies->body[b], x) > *distance) continue;
        double d = un_body_distance(&bodies->body[b], x);
        if (d >= *distance) continue;
        *distance = d;
        nearest = b;
    }
    return nearest;
}

/* ---- motion ---- */

static un_box3 pose_bounds(const un_pose *pose, un_box3 box)
{
    if (!un_finite3(box.min) || !un_finite3(box.max)) return box;
    un_box3 out = {un_v3(INFINITY, INFINITY, INFINITY), un_v3(-INFINITY, -INFINITY, -INFINITY)};
    for (int c = 0; c < 8; c++) {
        un_vec3 x =
            un_pose_apply(pose, un_v3(c & 1 ? box.max.x : box.min.x, c & 2 ? box.max.y : box.min.y,
                                      c & 4 ? box.max.z : box.min.z));
        out.min = un_min3(out.min, x);
        out.max = un_max3(out.max, x);
    }
    return out;
}

void un_body_find_bounds(un_body *body)
{
    un_box3 rest = un_shape_bounds(body->shape);
    un_box3 from = pose_bounds(&body->from, rest), to = pose_bounds(&body->to, rest);
    body->bounds = (un_box3){un_min3(from.min, to.min), un_max3(from.max, to.max)};
}

/* The mean velocity and spin of a motion from one pose to the other in dt. The rotation between the
 * two has the quaternion (cos a/2, axis sin a/2). */
static void find_velocities(un_body *body, const un_pose *from, const un_pose *to, double dt)
{
    un_vec3 way = un_sub(un_pose_apply(to, body->centre), un_pose_apply(from, body->centre));
    un_pose back = un_pose_identity(), turn;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) back.rotation[i][j] = from->rotation[j][i];
    turn = un_pose_compose(to, &back);
    double q[4];
    un_pose_quaternion(&turn, q);
    un_vec3 axis = un_v3(q[1], q[2], q[3]);
    double sine = un_length(axis), angle = 2 * atan2(sine, q[0]);
    body->velocity = un_scale(way, 1 / dt);
    body->spin = sine > 0 ? un_scale(axis, angle / (sine * dt)) : un_v3(0, 0, 0);
}

static un_status move_body(un_bodies *bodies, int32_t b)
{
    un_body *body = &bodies->body[b];
    double t = bodies->time, dt = bodies->dt;
    UN_TRY(un_scene_pose(bodies->scene, b, t, &body->from));
    UN_TRY(un_scene_pose(bodies->scene, b, t + dt, &body->to));
    body->dt = dt;
    un_body_find_bounds(body);
    un_pose soon = body->to;
    if (!(dt > 0)) UN_TRY(un_scene_pose(bodies->scene, b, t + SOON, &soon));
    find_velocities(body, &body->from, &soon, dt > 0 ? dt : SOON);
    return UN_OK;
}

un_status un_bodies_update(un_bodies *bodies, double t, double dt)
{
    bodies->time = t;
    bodies->dt = dt;
    for (int32_t b = 0; b < bodies->count; b++)
        if (bodies->body[b].moves && !bodies->body[b].free) UN_TRY(move_body(bodies, b));
    return UN_OK;
}

void un_body_place(un_body *body, const un_pose *pose)
{
    body->from = body->to = *pose;
    body->dt = 0;
    body->velocity = body->spin = un_v3(0, 0, 0);
    un_body_find_bounds(body);
}

/* ---- create and destroy ---- */

un_vec3 un_body_reference(const un_solid *solid)
{
    if (solid->density > 0) return solid->sums.centre;
    un_box3 bounds = un_shape_bounds(solid->shape);
    un_vec3 middle = un_scale(un_add(bounds.min, bounds.max), 0.5);
    return un_finite3(middle) ? middle : un_v3(0, 0, 0);
}

un_status un_bodies_create(un_context *ctx, const un_scene *scene, un_bodies **out)
{
    *out = NULL;
    un_bodies *bodies = un_alloc_zero(ctx, 1, sizeof *bodies);
    if (!bodies) return UN_ERROR_MEMORY;
    un_status status = UN_OK;
    bodies->ctx = ctx;
    bodies->scene = scene;
    UN_ALLOC_DONE(ctx, bodies->body, scene->def.solid_count + 1);
    bodies->count = scene->def.solid_count;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_solid *solid = &scene->def.solids[b];
        bodies->body[b] = (un_body){.shape = solid->shape,
                                    .name = solid->name,
                                    .centre = un_body_reference(solid),
                                    .friction = solid->friction,
                                    .slip = solid->slip,
                                    .contact_angle = solid->contact_angle,
                                    .moves = solid->moves,
                                    .free = solid->density > 0,
                                    .restitution = solid->restitution,
                                    .grip = solid->grip,
                                    .hold = solid->hold,
                                    .from = un_pose_identity(),
                                    .to = un_pose_identity(),
                                    .bounds = un_shape_bounds(solid->shape)};
        bodies->moving |= solid->moves;
        bodies->scripted |= solid->moves && !(solid->density > 0);
        bodies->free_count += solid->density > 0;
        bodies->friction |= solid->friction > 0;
    }
    status = un_bodies_update(bodies, 0, 0);
    if (status == UN_OK && bodies->free_count > 0) status = un_free_bodies_create(bodies);
done:
    if (status == UN_OK)
        *out = bodies;
    else
        un_bodies_destroy(bodies);
    return status;
}

void un_bodies_destroy(un_bodies *bodies)
{
    if (!bodies) return;
    un_free_bodies_destroy(bodies);
    un_free(bodies->ctx, bodies->body);
    un_free(bodies->ctx, bodies);
}
