/* Derivatives at nodes from their neighbours alone: least squares.
 *
 * The gradient g of a field f at node n minimises, over the neighbours m at distance d along the
 * unit vector e,
 *
 *     sum_m (g . e - (f_m - f_n) / d)^2.
 *
 * For the curvature div m, m = grad phi / |grad phi|, the gradient halfway to a neighbour is the
 * mean of both nodes' gradients, but along e it is (phi_m - phi_n) / d: normals that turn within
 * one cell, as in a thin sheet, show. The divergence is the trace of the least-squares gradient of
 * m, from the m halfway to the neighbours and their mean. As on tets, flat surfaces are flat at the
 * mesh's boundary too. */
#include "sizing/sizing.h"

/* Least determinant of the normal equations over the cube of their trace; 1/27 for even
 * neighbours. Below, the neighbours are nearly in a plane. */
#define SINGULAR 1e-4

/* Symmetric: xx, yy, zz, yz, zx, xy. */
typedef struct sym3 {
    double a[6];
} sym3;

static inline void add_square(sym3 *s, un_vec3 e)
{
    s->a[0] += e.x * e.x, s->a[1] += e.y * e.y, s->a[2] += e.z * e.z;
    s->a[3] += e.y * e.z, s->a[4] += e.z * e.x, s->a[5] += e.x * e.y;
}

static bool invert(sym3 *inverse, const sym3 *s, int32_t dim)
{
    double xx = s->a[0], yy = s->a[1], zz = s->a[2], yz = s->a[3], zx = s->a[4], xy = s->a[5];
    if (dim == 2) zz = 0.5 * (xx + yy), yz = zx = 0;
    double cx = yy * zz - yz * yz, cy = xx * zz - zx * zx, cz = xx * yy - xy * xy;
    double tx = zx * xy - xx * yz, ty = yz * xy - yy * zx, tz = yz * zx - zz * xy;
    double det = xx * cx + xy * tz + zx * ty, trace = xx + yy + zz;
    if (!(det > SINGULAR * trace * trace * trace)) return false;
    *inverse = (sym3){{cx / det, cy / det, cz / det, tx / det, ty / det, tz / det}};
    return true;
}

static inline un_vec3 times(const sym3 *s, un_vec3 v)
{
    const double *a = s->a;
    return un_v3(a[0] * v.x + a[5] * v.y + a[4] * v.z, a[5] * v.x + a[1] * v.y + a[3] * v.z,
                 a[4] * v.x + a[3] * v.y + a[2] * v.z);
}

/* To neighbour m: the unit vector; distance, 0 for the node itself. */
static inline un_vec3 step_to(const un_sizing_nodes *nodes, int64_t n, int32_t m, double *d)
{
    un_vec3 e = un_sub(nodes->x[m], nodes->x[n]);
    *d = un_length(e);
    return *d > 0 ? un_scale(e, 1 / *d) : e;
}

/* Zero if the neighbours do not tell. Fields may be infinite: differences are bounded. */
static un_vec3 gradient_at(const un_sizing_nodes *nodes, int64_t n, const float *field)
{
    double most = 4 * nodes->cell[nodes->level[n]], d;
    sym3 s = {{0}}, inverse;
    un_vec3 b = {0, 0, 0};
    const int32_t *near = nodes->near + nodes->near_first[n];
    if (!isfinite(field[n])) return b;
    for (int32_t j = 0, count = un_sizing_listed(nodes, n); j < count; j++) {
        un_vec3 e = step_to(nodes, n, near[j], &d);
        if (!(d > 0)) continue;
        add_square(&s, e);
        b = un_mad(b, e, un_clamp(field[near[j]] - field[n], -most, most) / d);
    }
    return invert(&inverse, &s, nodes->dim) ? times(&inverse, b) : un_v3(0, 0, 0);
}

/* ---- curvature ---- */

typedef struct curve_args {
    const un_sizing_nodes *nodes;
    const float *phi;
    const uint8_t *band;
    float *kappa, (*gradient)[3];
} curve_args;

static void find_gradients(void *arg, int64_t begin, int64_t end)
{
    const curve_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        const int32_t *near = a->nodes->near + a->nodes->near_first[n];
        bool needed = a->band[n];
        for (int32_t j = 0, count = un_sizing_listed(a->nodes, n); j < count && !needed; j++)
            needed = a->band[near[j]];
        un_vec3 g = needed ? gradient_at(a->nodes, n, a->phi) : un_v3(0, 0, 0);
        a->gradient[n][0] = (float)g.x;
        a->gradient[n][1] = (float)g.y;
        a->gradient[n][2] = (float)g.z;
    }
}

static inline un_vec3 stored(const curve_args *a, int64_t n)
{
    return un_v3(a->gradient[n][0], a->gradient[n][1], a->gradient[n][2]);
}

static double curvature_at(const curve_args *a, int64_t n)
{
    const un_sizing_nodes *nodes = a->nodes;
    const int32_t *near = nodes->near + nodes->near_first[n];
    un_vec3 here = stored(a, n), sum = {0, 0, 0}, ends = {0, 0, 0}, column[3] = {{0}};
    double most = 4 * nodes->cell[nodes->level[n]], d, weight = 0;
    sym3 s = {{0}}, inverse;
    for (int32_t j = 0, count = un_sizing_listed(nodes, n); j < count; j++) {
        un_vec3 e = step_to(nodes, n, near[j], &d);
        if (!(d > 0)) continue;
        /* nodes that do not matter have no gradient */
        un_vec3 g = here;
        if (nodes->near_count[near[j]] > 0) g = un_scale(un_add(here, stored(a, near[j])), 0.5);
        double along = un_clamp(a->phi[near[j]] - a->phi[n], -most, most) / d;
        un_vec3 m = un_normalize(un_mad(g, e, along - un_dot(g, e)));
        /* halfway: m - mean = J (d / 2) e, divided by d / 2 */
        double w = 2 / d;
        add_square(&s, e);
        column[0] = un_mad(column[0], e, w * m.x);
        column[1] = un_mad(column[1], e, w * m.y);
        column[2] = un_mad(column[2], e, w * m.z);
        ends = un_mad(ends, e, w);
        sum = un_add(sum, m);
        weight++;
    }
    if (!invert(&inverse, &s, nodes->dim)) return 0;
    un_vec3 mean = un_scale(sum, 1 / weight);
    column[0] = un_mad(column[0], ends, -mean.x);
    column[1] = un_mad(column[1], ends, -mean.y);
    column[2] = un_mad(column[2], ends, -mean.z);
    return times(&inverse, column[0]).x + times(&inverse, column[1]).y +
           times(&inverse, column[2]).z;
}

static void find_curvature(void *arg, int64_t begin, int64_t end)
{
    const curve_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->kappa[n] = a->band[n] ? (float)curvature_at(a, n) : 0;
}

static un_status near_curvature(un_context *ctx, un_arena *arena, float *kappa,
                                const un_sizing_nodes *nodes, const float *phi, const uint8_t *band)
{
    curve_args a = {nodes, phi, band, kappa, NULL};
    a.gradient = un_arena_alloc(arena, (size_t)nodes->count + 1, sizeof *a.gradient);
    if (!a.gradient) return UN_ERROR_MEMORY;
    un_sizing_each(ctx, nodes, 1024, find_gradients, &a);
    un_parallel_part(ctx, un_sizing_own(nodes), 1024, find_curvature, &a);
    return UN_OK;
}

/* ---- strain ---- */

typedef struct strain_args {
    const un_sizing_nodes *nodes;
    const un_sizing_flow *flow;
    float *length;
} strain_args;

static double strain_at(const un_sizing_nodes *nodes, const un_sizing_flow *flow, int64_t n)
{
    const int32_t *near = nodes->near + nodes->near_first[n];
    un_vec3 b[3] = {{0}};
    sym3 s = {{0}}, inverse;
    double d;
    for (int32_t j = 0, count = un_sizing_listed(nodes, n); j < count; j++) {
        un_vec3 e = step_to(nodes, n, near[j], &d), u = un_sub(flow->u[near[j]], flow->u[n]);
        if (!(flow->phi[near[j]] < 0) || !(d > 0)) continue;
        add_square(&s, e);
        b[0] = un_mad(b[0], e, u.x / d);
        b[1] = un_mad(b[1], e, u.y / d);
        b[2] = un_mad(b[2], e, u.z / d);
    }
    if (!invert(&inverse, &s, nodes->dim)) return 0;
    un_vec3 x = times(&inverse, b[0]), y = times(&inverse, b[1]), z = times(&inverse, b[2]);
    double xy = x.y + y.x, yz = y.z + z.y, zx = z.x + x.z;
    return sqrt(x.x * x.x + y.y * y.y + z.z * z.z + 0.5 * (xy * xy + yz * yz + zx * zx));
}

static void find_strain(void *arg, int64_t begin, int64_t end)
{
    const strain_args *a = arg;
    const un_sizing_flow *flow = a->flow;
    for (int64_t n = begin; n < end; n++) {
        bool counts = flow->phi[n] < 0 && flow->phi[n] >= -flow->deep;
        a->length[n] = counts ? (float)(flow->speed / strain_at(a->nodes, flow, n)) : INFINITY;
    }
}

static un_status near_strain(un_context *ctx, un_arena *arena, float *length,
                             const un_sizing_nodes *nodes, const un_sizing_flow *flow)
{
    (void)arena;
    strain_args a = {nodes, flow, length};
    un_parallel_part(ctx, un_sizing_own(nodes), 1024, find_strain, &a);
    return UN_OK;
}

/* ---- direction ---- */

static un_vec3 near_direction(const un_sizing_nodes *nodes, int32_t n, const float *field)
{
    return un_normalize(gradient_at(nodes, n, field));
}

const un_sizing_slopes un_sizing_slopes_near = {near_curvature, near_strain, near_direction};
