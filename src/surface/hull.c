/* The distance to the convex hull of three spheres [Ando13 section 5].
 *
 * The hull is the union of the spheres around all points of the triangle of centres, with the
 * radius interpolated between the corners. So the distance is the least, over barycentric weights
 * b, of
 *     f(b) = |x - sum b_i x_i| - sum b_i r_i,
 * which is convex in b: exact outside, and inside at least minus the largest radius.
 *
 * Over the whole plane of the triangle, with q the foot of x, h the height over the plane and g the
 * gradient of the radius in it, f has its minimum at q + g h / sqrt(1 - |g|^2) if |g| < 1, and none
 * otherwise. If that point lies in the triangle it is the minimum; else, f being convex, the
 * minimum is on a side. Sides are the same in one dimension less; there |g| >= 1 means that the
 * bigger sphere contains the other.
 *
 * The paper finds the two tangent planes of the three spheres instead and then treats cones and
 * spheres apart; this is the same set.
 *
 * The minimum changes by no more than centres and radii are moved, and the result is the value of f
 * at a point of the triangle, rotated and stretched by round-off: slivers are no worse than other
 * triangles, and collinear centres reduce to their sides. */
#include "surface/surface.h"

static double segment_distance(un_vec3 a, un_vec3 b, double ra, double rb, un_vec3 at)
{
    un_vec3 edge = un_sub(b, a), to = un_sub(at, a);
    double length = un_length(edge), t = ra >= rb ? 0 : 1;
    if (fabs(rb - ra) < length) {
        double k = (rb - ra) / length, along = un_dot(to, edge) / length;
        un_vec3 across = un_mad(to, edge, -along / length);
        t = un_clamp((along + k * un_length(across) / sqrt(1 - k * k)) / length, 0, 1);
    }
    /* from the nearer end, so that the end itself is exact */
    un_vec3 away = t < 0.5 ? un_mad(to, edge, -t) : un_mad(un_sub(at, b), edge, 1 - t);
    return un_length(away) - (ra + (rb - ra) * t);
}

/* The least of f inside the triangle; INFINITY when it is on a side. */
static double face_distance(const un_vec3 x[3], const double r[3], un_vec3 at)
{
    un_vec3 d1 = un_sub(x[1], x[0]), d2 = un_sub(x[2], x[0]), to = un_sub(at, x[0]);
    double u1 = un_length(d1);
    if (!(u1 > 0)) return INFINITY;
    un_vec3 e1 = un_scale(d1, 1 / u1);
    double u2 = un_dot(d2, e1);
    un_vec3 across = un_mad(d2, e1, -u2);
    across = un_mad(across, e1, -un_dot(across, e1)); /* a second time, for slivers */
    double v2 = un_length(across);
    if (!(v2 > 4 * DBL_EPSILON * (u1 + fabs(u2)))) return INFINITY;
    un_vec3 e2 = un_scale(across, 1 / v2), e3 = un_cross(e1, e2);
    double gu = (r[1] - r[0]) / u1, gv = (r[2] - r[0] - gu * u2) / v2;
    double rest = 1 - gu * gu - gv * gv;
    if (!(rest > 0)) return INFINITY;
    double u = un_dot(to, e1), v = un_dot(to, e2), h = fabs(un_dot(to, e3));
    double slide = h / sqrt(rest), b2 = (v + gv * slide) / v2;
    double b1 = (u + gu * slide - b2 * u2) / u1;
    if (!(b1 >= 0 && b2 >= 0 && b1 + b2 <= 1)) return INFINITY;
    double du = u - b1 * u1 - b2 * u2, dv = v - b2 * v2;
    return sqrt(du * du + dv * dv + h * h) - (r[0] + b1 * (r[1] - r[0]) + b2 * (r[2] - r[0]));
}

double un_hull_distance(const un_vec3 x[3], const double r[3], un_vec3 at)
{
    /* measured from the longest side, opposite corner last */
    double longest = -1;
    int32_t first = 0;
    for (int32_t i = 0; i < 3; i++) {
        un_vec3 side = un_sub(x[(i + 1) % 3], x[i]);
        double square = un_dot(side, side);
        if (square > longest) longest = square, first = i;
    }
    un_vec3 y[3];
    double s[3];
    for (int32_t i = 0; i < 3; i++) y[i] = x[(first + i) % 3], s[i] = r[(first + i) % 3];
    double best = face_distance(y, s, at);
    if (best < INFINITY) return best;
    for (int32_t i = 0; i < 3; i++) {
        int32_t j = (i + 1) % 3;
        best = fmin(best, segment_distance(y[i], y[j], s[i], s[j], at));
    }
    return best;
}
