/* Axes of symmetry. A body that turns about one stays in its own place: it moves no liquid, and
 * pressure does not turn it. On cells that cut its surface both would hold only roughly, and balls
 * and discs would spin up for ever. */
#include "bodies/free.h"

/* A body is round if points of its surface, turned, stay on it within this share of its reach. */
#define ROUND 1e-3
/* Angles at which that is tried, degrees. */
static const double angles[] = {40, 107, 211};

static bool is_round(const un_body *body, const un_vec3 *points, int32_t count, un_vec3 axis,
                     double reach)
{
    for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
        un_pose turn = un_pose_axis(axis, angles[i]);
        for (int32_t p = 0; p < count; p++) {
            un_vec3 arm = un_pose_rotate(&turn, un_sub(points[p], body->centre));
            double off = un_shape_distance(body->shape, un_add(body->centre, arm));
            if (!(fabs(off) < ROUND * reach)) return false;
        }
    }
    return count > 0;
}

/* The only axis that a body which is not a ball can be round about: along it the inertia differs
 * most from its mean. False: along all axes it is the same. */
static bool find_axis(un_vec3 *axis, const un_body *body)
{
    double mean = (body->inertia[0][0] + body->inertia[1][1] + body->inertia[2][2]) / 3;
    double v[3] = {0.62, 0.55, 0.56}, off = 0;
    for (int pass = 0; pass < 40; pass++) {
        double w[3] = {0}, length = 0;
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) w[i] += (body->inertia[i][j] - (i == j ? mean : 0)) * v[j];
            length += w[i] * w[i];
        }
        off = sqrt(length);
        if (!(off > ROUND * mean)) return false;
        for (int i = 0; i < 3; i++) v[i] = w[i] / off;
    }
    *axis = un_v3(v[0], v[1], v[2]);
    return true;
}

void un_body_find_round(un_body *body, const un_vec3 *points, int32_t count, double reach,
                        int32_t dim)
{
    un_vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    int first = dim == 2 ? 2 : 0, last = dim == 2 || !find_axis(&axis[0], body) ? 2 : 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) body->round[i][j] = 0;
    for (int a = first; a <= last; a++) {
        const double v[3] = {axis[a].x, axis[a].y, axis[a].z};
        if (!is_round(body, points, count, axis[a], reach)) continue;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) body->round[i][j] += v[i] * v[j];
    }
}

un_vec3 un_body_pushing_turn(const un_body *body, un_vec3 turn)
{
    un_vec3 t = un_pose_unrotate(&body->to, turn);
    const double(*m)[3] = body->round;
    un_vec3 along = {m[0][0] * t.x + m[0][1] * t.y + m[0][2] * t.z,
                     m[1][0] * t.x + m[1][1] * t.y + m[1][2] * t.z,
                     m[2][0] * t.x + m[2][1] * t.y + m[2][2] * t.z};
    return un_sub(turn, un_pose_rotate(&body->to, along));
}
