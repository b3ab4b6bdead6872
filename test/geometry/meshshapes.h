/* Mesh shapes for tests, and the same answers by brute force. */
#ifndef UN_TEST_GEOMETRY_MESHSHAPES_H
#define UN_TEST_GEOMETRY_MESHSHAPES_H

#include "meshes.h"

typedef struct fixture {
    un_context *ctx;
    un_shape_set *set;
} fixture;

static inline fixture start(void)
{
    fixture f = {.ctx = check_context()};
    f.set = un_shape_set_create(f.ctx);
    return f;
}

static inline void finish(fixture *f)
{
    un_shape_set_destroy(f->set);
    check_context_end(f->ctx);
}

static inline un_shape *make(fixture *f, const un_trimesh *m, un_trimesh_report *report)
{
    un_shape *s;
    check_ok(f->ctx, un_shape_mesh(f->set, m, &s, report));
    return s;
}

static inline un_vec3 random_point(uint64_t i, double side)
{
    return un_v3(side * (2 * un_random(3 * i, 5) - 1), side * (2 * un_random(3 * i + 1, 5) - 1),
                 side * (2 * un_random(3 * i + 2, 5) - 1));
}

/* ---- brute force, by other means than the library's ---- */

static inline double segment_distance(un_vec3 a, un_vec3 b, un_vec3 x)
{
    un_vec3 e = un_sub(b, a);
    double l2 = un_dot(e, e), t = l2 > 0 ? un_clamp(un_dot(un_sub(x, a), e) / l2, 0, 1) : 0;
    return un_length(un_sub(x, un_mad(a, e, t)));
}

/* Height over the plane where the foot is inside all three edges, else the nearest edge. */
static inline double slow_triangle_distance(un_vec3 a, un_vec3 b, un_vec3 c, un_vec3 x)
{
    un_vec3 n = un_cross(un_sub(b, a), un_sub(c, a));
    double area = un_length(n), d = segment_distance(a, b, x);
    d = fmin(d, fmin(segment_distance(b, c, x), segment_distance(c, a, x)));
    if (area == 0) return d;
    n = un_scale(n, 1 / area);
    un_vec3 p = un_mad(x, n, -un_dot(un_sub(x, a), n));
    bool in = un_dot(un_cross(un_sub(b, a), un_sub(p, a)), n) >= 0 &&
              un_dot(un_cross(un_sub(c, b), un_sub(p, b)), n) >= 0 &&
              un_dot(un_cross(un_sub(a, c), un_sub(p, c)), n) >= 0;
    return in ? fmin(d, fabs(un_dot(un_sub(x, a), n))) : d;
}

static inline double slow_distance(const un_trimesh *m, un_vec3 x)
{
    double d = INFINITY;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        const int32_t *v = m->triangle[t];
        d = fmin(
            d, slow_triangle_distance(m->position[v[0]], m->position[v[1]], m->position[v[2]], x));
    }
    return d;
}

static inline double slow_winding(const un_trimesh *m, un_vec3 x)
{
    double sum = 0;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        const int32_t *v = m->triangle[t];
        un_vec3 a = un_sub(m->position[v[0]], x), b = un_sub(m->position[v[1]], x);
        un_vec3 c = un_sub(m->position[v[2]], x);
        double la = un_length(a), lb = un_length(b), lc = un_length(c);
        sum += 2 * atan2(un_dot(a, un_cross(b, c)),
                         la * lb * lc + un_dot(a, b) * lc + un_dot(b, c) * la + un_dot(c, a) * lb);
    }
    return sum / (4 * UN_PI);
}

/* Points of all distances: about the whole mesh and close to its triangles. */
static inline un_vec3 probe(const un_trimesh *m, const un_box3 *b, int i)
{
    un_vec3 size = un_sub(b->max, b->min), r = random_point((uint64_t)i, 1);
    if (i % 2) {
        un_vec3 middle = un_scale(un_add(b->min, b->max), 0.5);
        return un_add(middle, un_v3(r.x * size.x, r.y * size.y, r.z * size.z));
    }
    const int32_t *v = m->triangle[un_hash64((uint64_t)i) % (uint64_t)m->triangle_count];
    double u = un_random((uint64_t)i, 8), w = (1 - u) * un_random((uint64_t)i, 9);
    un_vec3 p = un_add(un_scale(m->position[v[0]], 1 - u - w),
                       un_add(un_scale(m->position[v[1]], u), un_scale(m->position[v[2]], w)));
    return un_mad(p, r, un_length(size) * pow(10, -1 - 8 * un_random((uint64_t)i, 10)));
}

#endif
