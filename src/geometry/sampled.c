/* A shape sampled on a grid: trilinear in between.
 *
 * In a cell each component of the interpolant's gradient is bilinear in the other coordinates, so
 * along every axis the gradient is affine and its length convex: it is largest at a corner, where
 * it is made of the three edge differences that meet there. Values are lowered (towards 0) where
 * that slope exceeds 1: at the surface by the slope itself, away from it to what the distances of
 * the neighbours allow, sum over the axes of max(u - u_lower, 0)^2 <= h^2. A function that is
 * already a distance stays unchanged except near its ridges (the middle of a ball), where it may
 * lose a spacing or two. On a ridge itself slopes above 1 remain but are harmless: there the
 * interpolant falls short of the distance. */
#include "geometry/shape.h"

typedef struct cell_place {
    const double *corner; /* value at the cell's lowest node */
    un_vec3 f;            /* place in the cell, 0..1 */
    int64_t step[3];
} cell_place;

static double split(double u, int32_t n, int32_t *i)
{
    if (n < 2) {
        *i = 0;
        return 0;
    }
    double c = un_clamp(u, 0, n - 1);
    *i = c < n - 2 ? (int32_t)c : n - 2;
    return c - *i;
}

static cell_place find_cell(const shape_sampled *s, un_vec3 x)
{
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

static double mix(double a, double b, double f)
{
    return a + (b - a) * f;
}

static double interpolate(const shape_sampled *s, un_vec3 x)
{
    cell_place p = find_cell(s, x);
    double v[4];
    for (int e = 0; e < 4; e++) {
        const double *at = p.corner + (e & 1 ? p.step[1] : 0) + (e & 2 ? p.step[2] : 0);
        v[e] = mix(at[0], at[p.step[0]], p.f.x);
    }
    return mix(mix(v[0], v[1], p.f.y), mix(v[2], v[3], p.f.y), p.f.z);
}

static un_box3 grid_box(const shape_sampled *s)
{
    un_vec3 size = un_v3(s->h * (s->n[0] - 1), s->h * (s->n[1] - 1), s->h * (s->n[2] - 1));
    return (un_box3){s->origin, un_add(s->origin, size)};
}

/* Beyond the grid, the distance to a shape that does not touch the grid's boundary combines the
 * distance to the nearest point of the grid and the value there as at a right angle (Pythagoras
 * never overestimates). A shape that touches the boundary continues unchanged, as liquid and
 * terrain do beyond a wall. */
double sampled_distance(const shape_sampled *s, un_vec3 x)
{
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
un_vec3 sampled_normal(const shape_sampled *s, un_vec3 x)
{
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

/* ---- slopes ---- */

/* The differences of a true distance exceed 1 by about half a spacing per radius of curvature; a
 * surface within this tolerance is left where it is. */
#define STEEP 1.05
/* Slope of the distance where it had to be lowered. At 1 the scheme, first order and upwind, leaves
 * distances from a ball ten spacings wide up to 3 % too large. */
#define GROWTH 0.97

static const double *neighbour(const shape_sampled *s, int64_t index, int a, int side)
{
    const int64_t step[3] = {1, s->n[0], (int64_t)s->n[0] * s->n[1]};
    int64_t to = index / step[a] % s->n[a] + side;
    return to < 0 || to >= s->n[a] ? NULL : &s->values[index + side * step[a]];
}

/* The steepest slope from the node down to its neighbours, across the surface or towards it; 0 if
 * no neighbour lies across. */
static double surface_slope(const shape_sampled *s, int64_t index)
{
    double v = s->values[index], slope2 = 0;
    bool any = false;
    for (int a = 0; a < 3; a++) {
        double most = 0;
        for (int side = -1; side <= 1; side += 2) {
            const double *to = neighbour(s, index, a, side);
            if (!to) continue;
            bool crosses = (*to < 0) != (v < 0);
            most = larger(most, crosses ? fabs(v - *to) : fabs(v) - fabs(*to));
            any |= crosses;
        }
        slope2 += most * most;
    }
    return any ? sqrt(slope2) / s->h : 0;
}

/* The divisor of a node at the surface: its own slope or that of a node across. Dividing both ends
 * of an edge by the same number leaves the surface where it is. */
static double surface_factor(const shape_sampled *s, int64_t index)
{
    double factor = surface_slope(s, index);
    for (int i = 0; i < 6; i++) {
        const double *to = neighbour(s, index, i / 2, i % 2 ? 1 : -1);
        if (to && (*to < 0) != (s->values[index] < 0))
            factor = larger(factor, surface_slope(s, to - s->values));
    }
    return factor > STEEP ? factor : 1;
}

typedef struct surface_nodes {
    int64_t *index;
    double *factor;
    size_t count, capacity, factor_capacity;
} surface_nodes;

static un_status find_surface(un_context *ctx, const shape_sampled *s, surface_nodes *nodes)
{
    int64_t count = (int64_t)s->n[0] * s->n[1] * s->n[2], slab = (int64_t)s->n[0] * s->n[1];
    for (int64_t m = 0; m < count; m++) {
        bool inside = s->values[m] < 0;
        /* Cheap; its only flaw is that it looks past the ends of rows. */
        if (m >= slab && m + slab < count && inside == (s->values[m - 1] < 0) &&
            inside == (s->values[m + 1] < 0) && inside == (s->values[m - s->n[0]] < 0) &&
            inside == (s->values[m + s->n[0]] < 0) && inside == (s->values[m - slab] < 0) &&
            inside == (s->values[m + slab] < 0))
            continue;
        if (surface_slope(s, m) == 0) continue;
        UN_TRY(un_array_reserve(ctx, (void **)&nodes->index, &nodes->capacity, nodes->count + 1,
                                sizeof *nodes->index));
        nodes->index[nodes->count++] = m;
    }
    return un_array_reserve(ctx, (void **)&nodes->factor, &nodes->factor_capacity, nodes->count + 1,
                            sizeof *nodes->factor);
}

/* Divisors differ from node to node, so it takes more than one round. */
static void lower_surface(shape_sampled *s, surface_nodes *nodes)
{
    bool any = true;
    for (int round = 0; round < 8 && any; round++) {
        any = false;
        for (size_t i = 0; i < nodes->count; i++) {
            nodes->factor[i] = surface_factor(s, nodes->index[i]);
            any |= nodes->factor[i] > 1;
        }
        for (size_t i = 0; i < nodes->count; i++) s->values[nodes->index[i]] /= nodes->factor[i];
    }
}

/* The largest u with sum of max(u - low, 0)^2 <= h^2. */
static double most_allowed(double a, double b, double c, double h)
{
    double low = smaller(a, smaller(b, c)), high = larger(a, larger(b, c));
    double middle = larger(smaller(a, b), smaller(larger(a, b), c));
    double u = low + h;
    if (u <= middle) return u;
    double d = middle - low;
    u = 0.5 * (low + middle + sqrt(2 * h * h - d * d));
    if (u <= high) return u;
    double sum = a + b + c, squares = a * a + b * b + c * c;
    return (sum + sqrt(larger(0, sum * sum - 3 * (squares - h * h)))) / 3;
}

static inline double square_above(double u, double low)
{
    double d = u > low ? u - low : 0;
    return d * d;
}

static inline bool lower_node(double *v, double x, double y, double z, double h)
{
    double u = fabs(*v);
    double slope2 = square_above(u, x) + square_above(u, y) + square_above(u, z);
    if (slope2 <= h * h * (1 + 1e-6)) return false;
    double most = most_allowed(x, y, z, GROWTH * h);
    *v = *v < 0 ? -most : most;
    return u > most + 1e-9 * h;
}

static inline double lowest(const double *a, const double *b)
{
    return smaller(a ? fabs(*a) : INFINITY, b ? fabs(*b) : INFINITY);
}

/* Row (j, k), from its start or from its end. */
static bool lower_row(shape_sampled *s, int32_t j, int32_t k, bool down)
{
    int64_t slab = (int64_t)s->n[0] * s->n[1];
    double *row = s->values + s->n[0] * (int64_t)j + slab * k;
    bool any = false;
    for (int32_t m = 0; m < s->n[0]; m++) {
        int32_t i = down ? s->n[0] - 1 - m : m;
        double x = lowest(i > 0 ? row + i - 1 : NULL, i < s->n[0] - 1 ? row + i + 1 : NULL);
        double y =
            lowest(j > 0 ? row + i - s->n[0] : NULL, j < s->n[1] - 1 ? row + i + s->n[0] : NULL);
        double z = lowest(k > 0 ? row + i - slab : NULL, k < s->n[2] - 1 ? row + i + slab : NULL);
        any |= lower_node(&row[i], x, y, z, s->h);
    }
    return any;
}

/* Has the row or one beside it changed since the row was last visited? */
static bool is_stale(const shape_sampled *s, const int32_t *changed, int32_t j, int32_t k,
                     int32_t sweep)
{
    int64_t row = j + (int64_t)s->n[1] * k;
    return changed[row] >= sweep - 1 || (j > 0 && changed[row - 1] >= sweep - 1) ||
           (j < s->n[1] - 1 && changed[row + 1] >= sweep - 1) ||
           (k > 0 && changed[row - s->n[1]] >= sweep - 1) ||
           (k < s->n[2] - 1 && changed[row + s->n[1]] >= sweep - 1);
}

/* Sweeps in all eight directions, one after the other, until one changes nothing: sixteen sweeps,
 * unless paths from the surface wind. changed: when each row last changed. */
static void lower_far(shape_sampled *s, int32_t *changed)
{
    bool any = true;
    for (int64_t row = 0; row < (int64_t)s->n[1] * s->n[2]; row++) changed[row] = -1;
    for (int32_t sweep = 0; sweep < 64 && any; sweep++) {
        any = false;
        for (int32_t m = 0; m < s->n[2]; m++)
            for (int32_t l = 0; l < s->n[1]; l++) {
                int32_t j = sweep & 2 ? s->n[1] - 1 - l : l, k = sweep & 4 ? s->n[2] - 1 - m : m;
                if (!is_stale(s, changed, j, k, sweep) || !lower_row(s, j, k, sweep & 1)) continue;
                changed[j + (int64_t)s->n[1] * k] = sweep;
                any = true;
            }
    }
}

static un_status limit_slope(un_context *ctx, shape_sampled *s)
{
    surface_nodes nodes = {0};
    int32_t *changed;
    UN_ALLOC(ctx, changed, (size_t)s->n[1] * (size_t)s->n[2]);
    un_status status = find_surface(ctx, s, &nodes);
    if (status == UN_OK) {
        lower_surface(s, &nodes);
        lower_far(s, changed);
    }
    un_free(ctx, nodes.index);
    un_free(ctx, nodes.factor);
    un_free(ctx, changed);
    return status;
}

/* Where the shape touches a side of the grid, it continues to infinity. */
static void find_bounds(shape_sampled *s, un_box3 *bounds)
{
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

static un_status check_values(un_context *ctx, const double *values, const int32_t n[3],
                              un_vec3 origin, double h)
{
    size_t m = 0;
    for (int32_t k = 0; k < n[2]; k++)
        for (int32_t j = 0; j < n[1]; j++)
            for (int32_t i = 0; i < n[0]; i++, m++)
                if (!isfinite(values[m]))
                    return un_fail(ctx, UN_ERROR_SCENE,
                                   "a field is %g at {%g, %g, %g}; it must be a finite number "
                                   "everywhere",
                                   values[m], origin.x + h * i, origin.y + h * j, origin.z + h * k);
    return UN_OK;
}

un_status un_shape_sampled(un_shape_set *set, const double *values, const int32_t n[3],
                           un_vec3 origin, double h, un_shape **shape)
{
    UN_ASSERT(n[0] >= 1 && n[1] >= 1 && n[2] >= 1 && isfinite(h) && h > 0 && un_finite3(origin));
    size_t count = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    UN_TRY(check_values(set->ctx, values, n, origin, h));
    un_shape *s = shape_new(set, SHAPE_SAMPLED);
    if (!s) return UN_ERROR_MEMORY;
    s->sampled = (shape_sampled){.n = {n[0], n[1], n[2]}, .origin = origin, .h = h};
    s->sampled.values = un_alloc(set->ctx, count, sizeof *values);
    if (!s->sampled.values) {
        un_free(set->ctx, s);
        return UN_ERROR_MEMORY;
    }
    memcpy(s->sampled.values, values, count * sizeof *values);
    un_status status = limit_slope(set->ctx, &s->sampled);
    if (status != UN_OK) {
        un_free(set->ctx, s->sampled.values);
        un_free(set->ctx, s);
        return status;
    }
    find_bounds(&s->sampled, &s->bounds);
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}
