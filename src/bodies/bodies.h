/* Bodies: the scene's solids at their places in a step. The samples of them on a mesh are the
 * walls' (mesh/mesh.h). */
#ifndef UN_BODIES_H
#define UN_BODIES_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "scene/scene.h"

/* ---- where they are (bodies.c) ---- */

/* The inverse of a body's mass, along the axes, and of its inertia at its place; zero where it is
 * held. */
typedef struct un_inverse_mass {
    double along[3], about[3][3];
} un_inverse_mass;

typedef struct un_body {
    const un_shape *shape;
    const char *name; /* from the scene; "" for a static solid without a name */
    un_vec3 centre;   /* reference point at rest, see un_body_reference */
    double friction, slip, contact_angle;
    bool moves;
    bool free;                /* the liquid moves it; the next are of such bodies: */
    double mass;              /* kg; 2D: kg/m */
    double inertia[3][3];     /* about the centre, at rest */
    double restitution, grip; /* of contacts; of all bodies */
    uint32_t hold;            /* as in un_solid */
    double round[3][3];       /* sum of a a^T over its axes of symmetry a, at rest */
    un_inverse_mass inverse;
    un_pose from, to;       /* at the start and the end of the step */
    un_box3 bounds;         /* of the shape at both poses */
    double dt;              /* between the two poses */
    un_vec3 velocity, spin; /* means over the step: of the reference point, m/s, and rad/s */
    un_vec3 old_velocity, old_spin; /* of free bodies, before this step's forces */
} un_body;

typedef struct un_bodies {
    un_context *ctx;
    const un_scene *scene;
    un_body *body; /* one for each solid of the scene, in the scene's order */
    int32_t count;
    bool moving, friction;        /* any body moves, any has friction */
    bool scripted;                /* any moves as the scene says */
    int32_t free_count;           /* bodies that the liquid moves */
    struct un_contacts *contacts; /* among them; NULL without such bodies */
    double time, dt;              /* of the last update: the step that the bodies are placed for */
} un_bodies;

/* A body's reference point at rest: its centre of mass if the liquid moves it; else the middle of
 * its shape's bounds, or the origin if the shape has none. */
un_vec3 un_body_reference(const un_solid *solid);
/* The bodies are placed at time 0. */
un_status un_bodies_create(un_context *ctx, const un_scene *scene, un_bodies **bodies);
void un_bodies_destroy(un_bodies *bodies);
/* Places the bodies that move as the scene says for a step from t to t + dt. With dt = 0
 * un_body_velocity is zero, and velocity and spin are those right after t. */
un_status un_bodies_update(un_bodies *bodies, double t, double dt);
/* Puts a body at a pose, at rest. */
void un_body_place(un_body *body, const un_pose *pose);

/* ---- bodies that the liquid moves (free.c, round.c, contacts.c) ---- */

/* Changes velocity and spin by an impulse, N s, and one of torque about the centre, N m s. */
void un_body_push(un_body *body, un_vec3 impulse, un_vec3 twist);
/* The part of a spin, or of a torque, that is not about an axis of symmetry (round.c). */
un_vec3 un_body_pushing_turn(const un_body *body, un_vec3 turn);
/* A step begins: gravity acts for `kick`, and contacts push as they did in the last step. The
 * bodies stay where they are until un_bodies_advance. */
void un_bodies_begin(un_bodies *bodies, un_vec3 gravity, double kick, double dt);
/* Contacts stop the velocities that the liquid has left the bodies with. */
un_status un_bodies_touch(un_bodies *bodies, double dt);
/* Moves them to the end of the step. */
void un_bodies_advance(un_bodies *bodies, double dt);
/* The fastest speed of a point of theirs, m/s. */
double un_bodies_speed(const un_bodies *bodies);
/* Writes all numbers that the next step depends on; returns how many. state NULL: only counts.
 * Loading returns false if the numbers are impossible. */
int64_t un_bodies_save(const un_bodies *bodies, double *state);
un_status un_bodies_load(un_bodies *bodies, const double *state, int64_t count, bool *sound);

/* ---- as the liquid sees them, at the end of the step ---- */

/* Distance to the body, negative inside. */
static inline double un_body_distance(const un_body *body, un_vec3 x)
{
    if (!body->moves) return un_shape_distance(body->shape, x);
    return un_shape_distance(body->shape, un_pose_invert(&body->to, x)) * body->to.scale;
}
/* The same for many points. */
void un_body_distances(const un_body *body, const un_vec3 *x, int32_t count, double *distance);
/* Unit vector that points away from the body. */
un_vec3 un_body_normal(const un_body *body, un_vec3 x);
/* Velocity of the body's material at x. */
un_vec3 un_body_velocity(const un_body *body, un_vec3 x);
/* The same of a body that the liquid moves, before this step's forces. */
un_vec3 un_body_velocity_before(const un_body *body, un_vec3 x);
/* The fraction of the slip along the body that is left after dt: friction removes its share every
 * 1/100 s. */
static inline double un_body_slip_left(const un_body *body, double dt)
{
    return pow(1 - body->friction, 100 * dt);
}
/* Distance to the box that holds the body at both ends of the step; 0 inside. Never more than the
 * distance to the body. */
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
/* The nearest body among those nearer than *distance, which becomes the distance to it; -1 if there
 * is none. Where bodies overlap, the one that x is deepest in. */
int32_t un_bodies_nearest(const un_bodies *bodies, un_vec3 x, double *distance);

#endif
