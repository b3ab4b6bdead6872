/* Bodies: the scene's solids as they stand in a step, apart from what a mesh samples of them. */
#ifndef UN_BODIES_H
#define UN_BODIES_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "scene/scene.h"

/* ---- where they are (bodies.c) ---- */

typedef struct un_body {
    const un_shape *shape;
    const char *name; /* the scene's; "" for a solid without one that stands still */
    un_vec3 centre;   /* reference point, at rest: un_body_reference */
    double friction, slip;
    bool moves;
    un_pose from, to;       /* at the start and the end of the step */
    un_box3 bounds;         /* of the shape at both */
    double dt;              /* between the two */
    un_vec3 velocity, spin; /* of the reference point, m/s, and rad/s: means over the step */
} un_body;

typedef struct un_bodies {
    un_context *ctx;
    const un_scene *scene;
    un_body *body; /* one for each solid of the scene, in its order */
    int32_t count;
    bool moving, friction; /* any body does, has */
    double time, dt;       /* of the last update: the step that they are placed for */
} un_bodies;

/* A body's reference point at rest: the middle of its shape's bounds, or the origin if the shape
 * has none. */
un_vec3 un_body_reference(const un_shape *shape);
/* Placed at time 0. */
un_status un_bodies_create(un_context *ctx, const un_scene *scene, un_bodies **bodies);
void un_bodies_destroy(un_bodies *bodies);
/* Places those that move for a step from t to t + dt. With dt = 0 nothing moves against the liquid,
 * and the velocities are those right after t. */
un_status un_bodies_update(un_bodies *bodies, double t, double dt);
/* Puts a body at a pose, where it rests. */
void un_body_place(un_body *body, const un_pose *pose);

/* ---- what they are to the liquid: at the end of the step ---- */

/* Distance to the body, negative inside. */
static inline double un_body_distance(const un_body *body, un_vec3 x)
{
    if (!body->moves) return un_shape_distance(body->shape, x);
    return un_shape_distance(body->shape, un_pose_invert(&body->to, x)) * body->to.scale;
}
/* The same for many points. */
void un_body_distances(const un_body *body, const un_vec3 *x, int32_t count, double *distance);
/* Away from the body, a unit vector. */
un_vec3 un_body_normal(const un_body *body, un_vec3 x);
/* Of the body's material at x. */
un_vec3 un_body_velocity(const un_body *body, un_vec3 x);
/* The fraction of a slip along the body that is left after dt: friction takes its share each
 * 1/100 s. */
static inline double un_body_slip_left(const un_body *body, double dt)
{
    return pow(1 - body->friction, 100 * dt);
}
/* Distance to the box around the body's way through the step; 0 inside. No more than the distance
 * to the body. */
static inline double un_body_box_distance(const un_body *body, un_vec3 x)
{
    un_vec3 d = un_max3(un_sub(body->bounds.min, x), un_sub(x, body->bounds.max));
    return un_length(un_max3(d, un_v3(0, 0, 0)));
}
/* Does the box between a and b come within `margin` of the body's box? */
static inline bool un_body_is_near(const un_body *body, un_vec3 a, un_vec3 b, double margin)
{
    un_vec3 lo = un_min3(a, b), hi = un_max3(a, b);
    const un_box3 *box = &body->bounds;
    return hi.x >= box->min.x - margin && lo.x <= box->max.x + margin &&
           hi.y >= box->min.y - margin && lo.y <= box->max.y + margin &&
           hi.z >= box->min.z - margin && lo.z <= box->max.z + margin;
}
/* The nearest body of those nearer than *distance, which becomes its distance; -1: none is. Where
 * bodies overlap, the one that x is deepest in. */
int32_t un_bodies_nearest(const un_bodies *bodies, un_vec3 x, double *distance);

#endif
