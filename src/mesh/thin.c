/* What lies behind the surface of a solid: how thick it is, and where a straight way enters it. */
#include "mesh/thin.h"

/* Steps along a way are at least this share of it. */
#define STEP_MIN 0.02
/* Halvings that find where a way enters a wall. */
#define HALVINGS 12
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

double un_thin_way(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d)
{
    un_vec3 path = un_sub(b, a);
    double length = un_length(path), step = STEP_MIN * length, open = 0, t = fmax(d, step);
    un_vec3 direction = un_scale(path, 1 / length);
    for (;; t += fmax(d, step)) {
        if (t > length) t = length;
        d = distance_at(bodies, un_mad(a, direction, t));
        if (d <= 0) break;
        if (t >= length) return 2 * length;
        open = t;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double middle = 0.5 * (open + t);
        if (distance_at(bodies, un_mad(a, direction, middle)) > 0)
            open = middle;
        else
            t = middle;
    }
    return 0.5 * (open + t);
}

double un_thin_depth(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d, double h)
{
    double length = un_length(un_sub(a, b));
    if (length == 0 || !(d > 0)) return -DEPTH_MIN * h;
    double way = un_thin_way(bodies, a, b, d);
    return fmin(d * (1 - length / fmax(way, d)), -DEPTH_MIN * h);
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
