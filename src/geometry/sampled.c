/* A shape sampled on a grid: trilinear in between.
 *
 * In a cell each component of the interpolant's gradient is bilinear in the other coordinates, so
 * along every axis the gradient is affine and its length convex: it is largest at a corner, where
 * it is made of the three edge differences that meet there. Values are lowered (towards 0) where
 * that slope exceeds 1: at the surface by the slope itself, away from it to what the distances of
 * the neighbours allow, sum over the axes of max(u - u_lower, 0)^2 <= h^2. A function that is a
 * distance already passes unchanged; the one place where less is demanded than a slope of 1 is a
 * ridge, where the interpolant falls short of the distance. */
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

/* ---- slopes ---- */

/* The differences of a true distance exceed 1 by about half a spacing per radius of curvature; a
 * surface so far within rights is left where it is. */
#define STEEP 1.05
/* Of the distance with each spacing, where it had to be lowered. At 1 the scheme, first order and
 * upwind, leaves distances from a ball ten spacings wide up to 3 % too large. */
#define GROWTH 0.97

typedef struct node_place {
    int32_t at[3];
    int64_t index;
} node_place;

static const double *neighbour(const shape_sampled *s, const node_place *p, int a, int side) {
    const int64_t step[3] = {1, s->n[0], (int64_t)s->n[0] * s->n[1]};
    int32_t to = p->at[a] + side;
    return to < 0 || to >= s->n[a] ? NULL : &s->values[p->index + side * step[a]];
}

/* The steepest descent from the node to its neighbours, across the surface or towards it, where
 * there is one across: squared, times h^2. */
static double surface_slope(const shape_sampled *s, const node_place *p) {
    double v = s->values[p->index], slope2 = 0;
    bool any = false;
    for (int a = 0; a < 3; a++) {
        double most = 0;
        for (int side = -1; side <= 1; side += 2) {
            const double *to = neighbour(s, p, a, side);
            if (!to) continue;
            bool crosses = (*to < 0) != (v < 0);
            most = larger(most, crosses ? fabs(v - *to) : fabs(v) - fabs(*to));
            any |= crosses;
        }
        slope2 += most * most;
    }
    return any ? slope2 : 0;
}

typedef void node_action(shape_sampled *s, const node_place *p, void *arg);

/* sweep: bit a set runs down axis a. */
static void for_nodes(shape_sampled *s, int sweep, node_action *action, void *arg) {
    int32_t u[3];
    node_place p;
    for (u[2] = 0; u[2] < s->n[2]; u[2]++)
        for (u[1] = 0; u[1] < s->n[1]; u[1]++)
            for (u[0] = 0; u[0] < s->n[0]; u[0]++) {
                for (int a = 0; a < 3; a++) p.at[a] = sweep >> a & 1 ? s->n[a] - 1 - u[a] : u[a];
                p.index = p.at[0] + (int64_t)s->n[0] * (p.at[1] + (int64_t)s->n[1] * p.at[2]);
                action(s, &p, arg);
            }
}

/* What a node at the surface must lose, and so must the nodes across it: dividing both ends of an
 * edge by the same leaves the surface where it is. */
static void note_factor(shape_sampled *s, const node_place *p, void *arg) {
    float *factors = arg;
    float factor = (float)(sqrt(surface_slope(s, p)) / s->h);
    if (!(factor > STEEP)) return;
    factors[p->index] = factor > factors[p->index] ? factor : factors[p->index];
    for (int i = 0; i < 6; i++) {
        const double *to = neighbour(s, p, i / 2, i % 2 ? 1 : -1);
        if (!to || (*to < 0) == (s->values[p->index] < 0)) continue;
        int64_t other = to - s->values;
        factors[other] = factor > factors[other] ? factor : factors[other];
    }
}

/* The largest u with sum of max(u - low, 0)^2 <= h^2, low ascending. */
static double most_allowed(const double low[3], double h) {
    double u = low[0] + h;
    if (u <= low[1]) return u;
    double d = low[1] - low[0];
    u = 0.5 * (low[0] + low[1] + sqrt(2 * h * h - d * d));
    if (u <= low[2]) return u;
    double sum = low[0] + low[1] + low[2];
    double squares = low[0] * low[0] + low[1] * low[1] + low[2] * low[2];
    return (sum + sqrt(larger(0, sum * sum - 3 * (squares - h * h)))) / 3;
}

static void lower_node(shape_sampled *s, const node_place *p, void *arg) {
    bool *any = arg;
    double v = s->values[p->index], low[3];
    for (int a = 0; a < 3; a++) {
        const double *below = neighbour(s, p, a, -1), *above = neighbour(s, p, a, 1);
        low[a] = smaller(below ? fabs(*below) : INFINITY, above ? fabs(*above) : INFINITY);
    }
    if (low[0] > low[1]) {
        double held = low[0];
        low[0] = low[1];
        low[1] = held;
    }
    if (low[1] > low[2]) {
        double held = low[1];
        low[1] = low[2];
        low[2] = held;
    }
    if (low[0] > low[1]) {
        double held = low[0];
        low[0] = low[1];
        low[1] = held;
    }
    if (!(fabs(v) > most_allowed(low, s->h * (1 + 1e-6)))) return;
    double most = most_allowed(low, GROWTH * s->h);
    *any |= fabs(v) > most + 1e-9 * s->h;
    s->values[p->index] = v < 0 ? -most : most;
}

static void note_steep(shape_sampled *s, const node_place *p, void *arg) {
    bool *any = arg;
    *any |= surface_slope(s, p) > s->h * s->h * STEEP * STEEP;
}

static un_status limit_slope(un_context *ctx, shape_sampled *s) {
    int64_t count = (int64_t)s->n[0] * s->n[1] * s->n[2];
    /* Factors differ from node to node, so that it takes more than once. */
    for (int round = 0; round < 8; round++) {
        bool steep = false;
        for_nodes(s, 0, note_steep, &steep);
        if (!steep) break;
        float *factors;
        UN_ALLOC(ctx, factors, count);
        for (int64_t m = 0; m < count; m++) factors[m] = 1;
        for_nodes(s, 0, note_factor, factors);
        for (int64_t m = 0; m < count; m++) s->values[m] /= (double)factors[m];
        un_free(ctx, factors);
    }
    /* Two rounds of all eight directions suffice unless the way out winds a lot. */
    for (int sweep = 0; sweep < 64; sweep++) {
        bool any = false;
        for_nodes(s, sweep % 8, lower_node, &any);
        if (!any && sweep % 8 == 7) break;
    }
    return UN_OK;
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

static un_status check_values(un_context *ctx, const double *values, const int32_t n[3],
                              un_vec3 origin, double h) {
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
                           un_vec3 origin, double h, un_shape **shape) {
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
