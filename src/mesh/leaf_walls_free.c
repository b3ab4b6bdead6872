/* Open shares of leaves' faces around bodies that the liquid moves.
 *
 * As on the grid (walls_dual.c), a face's share is that of the box around it, from the centre of
 * the leaf below to that of the leaf above: the pressure's force on a body is then the weight of
 * the water in its place. Next to a larger leaf the box reaches to that one's middle, which is the
 * way that the pressure's derivative there is taken over (pressure/leaves.c). */
#include "mesh/mesh.h"

#include "mesh/thin.h"

/* Points along each axis of a box. */
#define ACROSS 3
#define POINTS_MAX 27

typedef struct free_args {
    un_leaf_walls *w;
    const un_leaves *m;
} free_args;

/* The box around a face: its middle, and half its edges. */
static un_vec3 box_around(const un_leaves *m, int64_t f, double half[3])
{
    int32_t other = m->face_other[f];
    int axis = un_leaf_face_axis(m, f);
    double own = 0.5 * un_leaf_face_size(m, f), beyond = 0.5 * un_leaf_size(m, other);
    double x[3], way = (m->face_side[f] & 1 ? 1 : -1) * 0.5 * (beyond - own);
    un_vec3 centre = un_leaf_face_center(m, f);
    x[0] = centre.x, x[1] = centre.y, x[2] = centre.z;
    for (int a = 0; a < 3; a++) half[a] = a < m->dim ? own : 0;
    half[axis] = 0.5 * (own + beyond);
    x[axis] += way;
    return un_v3(x[0], x[1], x[2]);
}

static bool near_free_body(const un_bodies *bodies, un_vec3 x, const double half[3])
{
    un_vec3 reach = {half[0], half[1], half[2]};
    for (int32_t b = 0; b < bodies->count; b++)
        if (bodies->body[b].free &&
            un_body_is_near(&bodies->body[b], un_sub(x, reach), un_add(x, reach), 0))
            return true;
    return false;
}

/* The share from the distances at the box's points. */
static double share_of(const double d[POINTS_MAX], int dim)
{
    double sum = 0;
    for (int part = 0; part < 1 << dim; part++) {
        int first = (part & 1) + ACROSS * (part >> 1 & 1) + ACROSS * ACROSS * (part >> 2);
        double v[8];
        for (int k = 0; k < 1 << dim; k++)
            v[k] = d[first + (k & 1) + ACROSS * (k >> 1 & 1) + ACROSS * ACROSS * (k >> 2)];
        sum += un_walls_cell_fraction(v, dim);
    }
    return sum / (1 << dim);
}

static void weigh_face(const free_args *a, int64_t f)
{
    const un_leaves *m = a->m;
    un_leaf_walls *w = a->w;
    const un_bodies *bodies = w->walls->bodies;
    double half[3], d[POINTS_MAX], least = 0;
    un_vec3 middle = box_around(m, f, half);
    int32_t owner = -1;
    if (!near_free_body(bodies, middle, half)) return;
    for (int n = 0; n < (m->dim == 2 ? 9 : POINTS_MAX); n++) {
        un_vec3 x = un_add(
            middle, un_v3(half[0] * (n % 3 - 1), half[1] * (n / 3 % 3 - 1), half[2] * (n / 9 - 1)));
        d[n] = 1e30;
        int32_t b = un_bodies_nearest(bodies, x, &d[n]);
        if (fabs(d[n]) < UN_SNAP * m->tree->h) d[n] = 0;
        if (d[n] < least) least = d[n], owner = b;
    }
    if (owner < 0 || !bodies->body[owner].free) return;
    /* what other walls have closed stays closed */
    if (w->area[f] == 0 && w->body[f] >= 0 && !bodies->body[w->body[f]].free) return;
    w->area[f] = (float)(un_leaf_walls_within(w, m, un_leaf_face_center(m, f),
                                              un_leaf_face_size(m, f), un_leaf_face_axis(m, f)) *
                         share_of(d, m->dim));
    w->body[f] = (int16_t)owner;
}

static void weigh_faces(void *arg, int64_t begin, int64_t end)
{
    const free_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, other = m->face_other[f];
        if (other < 0 || (m->parted && un_leaf_beside_thin(m, f))) continue;
        if (!(a->w->solid[c] < (float)(2 * un_leaf_size(m, other)))) continue;
        weigh_face(a, f);
    }
}

void un_leaf_walls_weigh_faces(un_leaf_walls *w, const un_leaves *m)
{
    free_args a = {w, m};
    if (w->walls->bodies->free_count > 0) un_leaves_each_face(m, 1024, weigh_faces, &a);
}
