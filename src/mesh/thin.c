/* How far solids are, and what lies behind their surface: how thick they are, and where a straight
 * way enters them. */
#include "mesh/thin.h"

/* Steps along a way are at least this share of it. */
#define STEP_MIN 0.02
/* Where a way enters a wall is found to this share of its length, */
#define PRECISION 2.5e-4
/* by so many points at most. */
#define POINTS_MAX 12
/* Nodes behind a wall are at least so deep, in cells. */
#define DEPTH_MIN 1e-3
/* The step of differences that find the direction to a solid, in finest cells. */
#define DIFFERENCE 0.05

static double distance_at(const un_bodies *bodies, un_vec3 x)
{
    double d = 1e30;
    un_bodies_nearest(bodies, x, &d);
    return d;
}

/* Where the way from a to b enters a solid, as a share of it, INFINITY if it does not; false if the
 * solids must be asked point by point. Those from a file take long to say on which side of them a
 * point is, but know at once where a way meets them. */
static bool find_entry(const un_bodies *bodies, un_vec3 a, un_vec3 b, double *share)
{
    *share = INFINITY;
    for (int32_t n = 0; n < bodies->count; n++) {
        const un_body *body = &bodies->body[n];
        const un_pose *to = &body->to;
        double own;
        if (!un_body_is_near(body, a, b, 0)) continue;
        if (!un_shape_entry(body->shape, body->moves ? un_pose_invert(to, a) : a,
                            body->moves ? un_pose_invert(to, b) : b, &own))
            return false;
        *share = fmin(*share, own);
    }
    return true;
}

typedef struct way_point {
    double t, d; /* length of the way so far, distance from the solids */
} way_point;

/* Goes from a, at distance d, until the way enters a solid between two points; false if it does
 * not. */
static bool enters(const un_bodies *bodies, un_vec3 a, un_vec3 direction, double length, double d,
                   way_point *before, way_point *behind)
{
    double step = STEP_MIN * length;
    *behind = (way_point){0, d};
    do {
        *before = *behind;
        behind->t = fmin(before->t + fmax(before->d, step), length);
        behind->d = distance_at(bodies, un_mad(a, direction, behind->t));
        if (behind->d <= 0) return true;
    } while (behind->t < length);
    return false;
}

bool un_thin_sees(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d)
{
    un_vec3 path = un_sub(b, a);
    double length = un_length(path), share;
    way_point before, behind;
    if (find_entry(bodies, a, b, &share)) return share > 1;
    return !enters(bodies, a, un_scale(path, 1 / length), length, d, &before, &behind);
}

/* The length of the way from a, at distance d from the solids, before it enters one; more than the
 * length to b if it does not. */
static double way_to(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d)
{
    un_vec3 path = un_sub(b, a);
    double length = un_length(path), t = 0, share;
    un_vec3 direction = un_scale(path, 1 / length);
    way_point before, behind;
    if (find_entry(bodies, a, b, &share)) return fmin(share, 2) * length;
    if (!enters(bodies, a, direction, length, d, &before, &behind)) return 2 * length;
    /* false position: exact where the wall is flat, so that two points are enough */
    for (int i = 0; i < POINTS_MAX; i++) {
        double part = before.d / (before.d - behind.d);
        t = before.t + fmin(fmax(part, 0.05), 0.95) * (behind.t - before.t);
        d = distance_at(bodies, un_mad(a, direction, t));
        if (fabs(d) < PRECISION * length) break;
        if (d > 0)
            before = (way_point){t, d};
        else
            behind = (way_point){t, d};
    }
    return t;
}

double un_thin_depth(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d, double h)
{
    double length = un_length(un_sub(a, b));
    if (length == 0 || !(d > 0)) return -DEPTH_MIN * h;
    double way = way_to(bodies, a, b, d);
    return fmin(d * (1 - length / fmax(way, d)), -DEPTH_MIN * h);
}

double un_thin_nearest(const un_bodies *bodies, un_vec3 x, bool moving, double most)
{
    double d = most;
    for (int32_t b = 0; b < bodies->count; b++) {
        if (bodies->body[b].moves != moving) continue;
        double bound = un_body_box_distance(&bodies->body[b], x);
        if (bound > 0 && bound >= d) continue;
        d = fmin(d, un_body_distance(&bodies->body[b], x));
    }
    return d;
}

static double still_distance(const un_bodies *bodies, un_vec3 x)
{
    double d = 1e30;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *body = &bodies->body[b];
        if (!body->moves && un_body_box_distance(body, x) < d)
            d = fmin(d, un_body_distance(body, x));
    }
    return d;
}

/* The answer must not depend on the mesh: a run that goes on from a checkpoint asks again. */
double un_thin_thickness(const un_bodies *bodies, bool still, un_vec3 x, double d, double h,
                         double most)
{
    double (*distance)(const un_bodies *, un_vec3) = still ? still_distance : distance_at;
    double e = DIFFERENCE * h;
    un_vec3 n = un_normalize(un_v3(distance(bodies, un_v3(x.x + e, x.y, x.z)) - d,
                                   distance(bodies, un_v3(x.x, x.y + e, x.z)) - d,
                                   distance(bodies, un_v3(x.x, x.y, x.z + e)) - d));
    /* next to an edge the way may miss the solid */
    bool entered = false;
    for (double t = e; t < most && (entered || t < 4 * e);) {
        double inside = -distance(bodies, un_mad(x, n, -(d + t)));
        if (entered && inside < 0) return t;
        entered |= inside > 0;
        t += fmax(inside, e);
    }
    return most;
}
