/* A shape sampled on a grid: trilinear in between.
 *
 * In a cell each component of the interpolant's gradient is bilinear in the other coordinates, so
 * along every axis the gradient is affine and its length convex: it is largest at a corner, where
 * it is made of the three edge differences that meet there. The largest of these over all corners
 * of all cells is therefore the exact slope, and dividing by it leaves no slope above 1. */
#include "geometry/shape.h"

typedef struct cell_place {
    const double *corner; /* value at the cell's lowest node */
    un_vec3 f;            /* place in the cell, 0..1 */
    int64_t step[3];
} cell_place;

static double split(double u, int32_t n, int32_t *i) {
    if (n < 2) {
        *i = 0;
        return 0;
    }
    double c = un_clamp(u, 0, n - 1);
    *i = c < n - 2 ? (int32_t)c : n - 2;
    return c - *i;
}

static cell_place find_cell(const shape_sampled *s, un_vec3 x) {
    int32_t i, j, k;
    cell_place p;
    p.f.x = split((x.x - s->origin.x) / s->h, s->n[0], &i);
    p.f.y = split((x.y - s->origin.y) / s->h, s->n[1], &j);
    p.f.z = split((x.z - s->origin.z) / s->h, s->n[2], &k);
    p.corner = s->values + (i + (int64_t)s->n[0] * (j + (int64_t)s->n[1] * k));
    p.step[0] = s->n[0] > 1 ? 1 : 0;
    p.step[1] = s->n[1] > 1 ? s->n[0] : 0;
    p.step[2] = s->n[2] > 1 ? (int64_t)s->n[0] * s->n[1] : 0;
    return p;
}

static double mix(double a, double b, double f) {
    return a + (b - a) * f;
}

static double interpolate(const shape_sampled *s, un_vec3 x) {
    cell_place p = find_cell(s, x);
    double v[4];
    for (int e = 0; e < 4; e++) {
        const double *at = p.corner + (e & 1 ? p.step[1] : 0) + (e & 2 ? p.step[2] : 0);
        v[e] = mix(at[0], at[p.step[0]], p.f.x);
    }
    return mix(mix(v[0], v[1], p.f.y), mix(v[2], v[3], p.f.y), p.f.z);
}

static un_box3 grid_box(const shape_sampled *s) {
    un_vec3 size = un_v3(s->h * (s->n[0] - 1), s->h * (s->n[1] - 1), s->h * (s->n[2] - 1));
    return (un_box3){s->origin, un_add(s->origin, size)};
}

/* Beyond the grid a shape that stays clear of its boundary is as far as the nearest grid point
 * says, at a right angle to the way there (Pythagoras never overestimates); one that meets the
 * boundary goes on unchanged, as liquid and terrain do beyond a wall. */
double sampled_distance(const shape_sampled *s, un_vec3 x) {
    if (!un_finite3(x)) return isnan(x.x + x.y + x.z) ? NAN : INFINITY;
    un_box3 box = grid_box(s);
    un_vec3 nearest = larger3(box.min, smaller3(x, box.max));
    double d = interpolate(s, nearest);
    if (!s->closed) return d;
    un_vec3 out = un_sub(x, nearest);
    double r2 = un_dot(out, out);
    return r2 > 0 ? sqrt(d * d + r2) : d;
}

/* Central differences over one spacing: steadier than the interpolant's own gradient, which jumps
 * from cell to cell, and still exact where the values are linear. */
un_vec3 sampled_normal(const shape_sampled *s, un_vec3 x) {
    double e = 0.5 * s->h;
    un_vec3 g;
    g.x = sampled_distance(s, un_v3(x.x + e, x.y, x.z)) -
          sampled_distance(s, un_v3(x.x - e, x.y, x.z));
    g.y = sampled_distance(s, un_v3(x.x, x.y + e, x.z)) -
          sampled_distance(s, un_v3(x.x, x.y - e, x.z));
    g.z = sampled_distance(s, un_v3(x.x, x.y, x.z + e)) -
          sampled_distance(s, un_v3(x.x, x.y, x.z - e));
    return shape_direction(g, un_v3(0, 1, 0));
}

/* The largest gradient at the corner (i, j, k), over the cells that meet there. */
static double corner_slope(const shape_sampled *s, int32_t i, int32_t j, int32_t k) {
    const int32_t at[3] = {i, j, k};
    const int64_t step[3] = {1, s->n[0], (int64_t)s->n[0] * s->n[1]};
    const double *v = s->values + (i + step[1] * j + step[2] * k);
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        double below = at[a] > 0 ? fabs(v[0] - v[-step[a]]) : 0;
        double above = at[a] < s->n[a] - 1 ? fabs(v[step[a]] - v[0]) : 0;
        double d = larger(below, above) / s->h;
        sum += d * d;
    }
    return sqrt(sum);
}

static void limit_slope(shape_sampled *s) {
    double slope = 0;
    for (int32_t k = 0; k < s->n[2]; k++)
        for (int32_t j = 0; j < s->n[1]; j++)
            for (int32_t i = 0; i < s->n[0]; i++) slope = larger(slope, corner_slope(s, i, j, k));
    if (slope <= 1) return;
    int64_t count = (int64_t)s->n[0] * s->n[1] * s->n[2];
    for (int64_t m = 0; m < count; m++) s->values[m] /= slope;
}

/* Where the shape meets a side of the grid it is taken to go on for ever. */
static void find_bounds(shape_sampled *s, un_box3 *bounds) {
    un_box3 box = grid_box(s);
    int32_t lo[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, hi[3] = {-1, -1, -1};
    const double *v = s->values;
    for (int32_t k = 0; k < s->n[2]; k++)
        for (int32_t j = 0; j < s->n[1]; j++)
            for (int32_t i = 0; i < s->n[0]; i++, v++) {
                if (*v > 0) continue;
                const int32_t at[3] = {i, j, k};
                for (int a = 0; a < 3; a++) {
                    if (at[a] < lo[a]) lo[a] = at[a];
                    if (at[a] > hi[a]) hi[a] = at[a];
                }
            }
    if (hi[0] < 0) { /* nothing inside */
        un_vec3 middle = un_scale(un_add(box.min, box.max), 0.5);
        s->closed = true;
        *bounds = (un_box3){middle, middle};
        return;
    }
    double min[3], max[3];
    const double origin[3] = {s->origin.x, s->origin.y, s->origin.z};
    s->closed = true;
    for (int a = 0; a < 3; a++) {
        min[a] = lo[a] > 0 ? origin[a] + s->h * (lo[a] - 1) : -INFINITY;
        max[a] = hi[a] < s->n[a] - 1 ? origin[a] + s->h * (hi[a] + 1) : INFINITY;
        if (isinf(min[a]) || isinf(max[a])) s->closed = false;
    }
    *bounds = (un_box3){{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
}

un_status un_shape_sampled(un_shape_set *set, const double *values, const int32_t n[3],
                           un_vec3 origin, double h, un_shape **shape) {
    UN_ASSERT(n[0] >= 1 && n[1] >= 1 && n[2] >= 1 && isfinite(h) && h > 0 && un_finite3(origin));
    size_t count = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    un_shape *s = shape_new(set, SHAPE_SAMPLED);
    if (!s) return UN_ERROR_MEMORY;
    s->sampled = (shape_sampled){.n = {n[0], n[1], n[2]}, .origin = origin, .h = h};
    s->sampled.values = un_alloc(set->ctx, count, sizeof *values);
    if (!s->sampled.values) {
        un_free(set->ctx, s);
        return UN_ERROR_MEMORY;
    }
    memcpy(s->sampled.values, values, count * sizeof *values);
    limit_slope(&s->sampled);
    find_bounds(&s->sampled, &s->bounds);
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}
