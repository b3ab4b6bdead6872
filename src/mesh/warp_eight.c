/* The map of a grid that warps, at eight points at once: the operations of mesh/warp.h in vectors.
 * What a point needs is loaded number by number, as in grid_eight.c. Lanes do not depend on each
 * other: what happens to a point is the same whatever its neighbours are. */
#include "base/lanes.h"
#include "mesh/mesh.h"

UN_KERNEL un_doubles8 clamp(un_doubles8 a, double lo, double hi)
{
    un_longs8 below = a<lo, above = a> hi;
    const un_doubles8 least = lo - (un_doubles8){0}, most = hi - (un_doubles8){0};
    return (un_doubles8)(((un_longs8)a & ~below & ~above) | ((un_longs8)least & below) |
                         ((un_longs8)most & above));
}

UN_KERNEL un_doubles8 pick(un_longs8 mask, un_doubles8 yes, un_doubles8 no)
{
    return (un_doubles8)(((un_longs8)yes & mask) | ((un_longs8)no & ~mask));
}

UN_KERNEL bool any(un_longs8 mask)
{
    return (mask[0] | mask[1] | mask[2] | mask[3] | mask[4] | mask[5] | mask[6] | mask[7]) != 0;
}

UN_KERNEL void set_lane(un_eight *e, int n, un_vec3 v)
{
    e->of[0][n] = v.x;
    e->of[1][n] = v.y;
    e->of[2][n] = v.z;
}

UN_KERNEL un_triple8 get(const un_eight *e)
{
    un_triple8 t;
    for (int a = 0; a < 3; a++) t.of[a] = un_doubles8_load(e->of[a], 8);
    return t;
}

UN_KERNEL void put(un_eight *e, const un_triple8 *t)
{
    memcpy(e, t, sizeof *e);
}

/* ---- places ---- */

/* As un_grid_stencil_in among the centres. */
UN_KERNEL un_longs8 stencil(const un_grid *g, const un_triple8 *xi, un_triple8 *f)
{
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    un_longs8 base = {0};
    for (int a = 0; a < 3; a++) {
        un_doubles8 s = (xi->of[a] - origin[a]) * g->inverse_h - 0.5;
        un_longs8 i = __builtin_convertvector(__builtin_convertvector(s, un_bits8), un_longs8);
        un_longs8 above = i > g->n[a] - 2;
        i = (i & ~above) | ((int64_t)(g->n[a] - 2) & above);
        i &= i > 0;
        f->of[a] = clamp(s - __builtin_convertvector(i, un_doubles8), 0, 1);
        base += i * g->stride[a];
    }
    return base;
}

UN_KERNEL un_triple8 inside(const un_grid *g, const un_triple8 *xi)
{
    return (un_triple8){{clamp(xi->of[0], 0, g->size.x), clamp(xi->of[1], 0, g->size.y),
                         clamp(xi->of[2], 0, g->size.z)}};
}

/* As un_warp_blend_in, of one point in the lanes of its components. */
UN_KERNEL un_doubles4 blend_one(const un_vec3 *field, int64_t sy, int64_t sz, const double f[3],
                                un_doubles4 slope[3])
{
    un_doubles4 along[2][2], here[2];
    for (int k = 0; k < 2; k++, field += sz) {
        un_doubles4 v0 = un_doubles4_load3(&field[0].x), v1 = un_doubles4_load3(&field[1].x);
        un_doubles4 v2 = un_doubles4_load3(&field[sy].x), v3 = un_doubles4_load3(&field[sy + 1].x);
        un_doubles4 low = v1 - v0, high = v3 - v2;
        un_doubles4 from = v0 + low * f[0], to = v2 + high * f[0];
        along[k][0] = low + (high - low) * f[1];
        along[k][1] = to - from;
        here[k] = from + along[k][1] * f[1];
    }
    slope[2] = here[1] - here[0];
    for (int b = 0; b < 2; b++) slope[b] = along[0][b] + (along[1][b] - along[0][b]) * f[2];
    return here[0] + slope[2] * f[2];
}

UN_KERNEL un_triple8 blend(const un_grid *g, const un_vec3 *field, const int64_t at[8],
                           const un_triple8 *f, un_triple8 slope[3])
{
    un_doubles4 v[8], s[3][8];
    un_triple8 out;
    double share[3][8];
    memcpy(share, f, sizeof share);
    for (int n = 0; n < 8; n++) {
        const double own[3] = {share[0][n], share[1][n], share[2][n]};
        un_doubles4 along[3];
        v[n] = blend_one(field + at[n], g->stride[1], g->stride[2], own, along);
        for (int a = 0; a < 3; a++) s[a][n] = along[a];
    }
    un_doubles8_turn(out.of, v);
    for (int a = 0; a < 3; a++) un_doubles8_turn(slope[a].of, s[a]);
    return out;
}

/* A place in registers. */
typedef struct spot {
    un_triple8 f, x, column[3];
    int64_t base[8];
} spot;

UN_KERNEL spot spot_at(const un_warp *w, const un_triple8 *xi)
{
    const un_grid *g = &w->grid;
    spot s;
    un_longs8 base = stencil(g, xi, &s.f);
    memcpy(s.base, &base, sizeof s.base);
    s.x = blend(g, w->centre, s.base, &s.f, s.column);
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) s.column[a].of[b] *= g->inverse_h;
    return s;
}

UN_KERNEL void store(un_warp_eight *e, const un_triple8 *xi, const spot *s)
{
    put(&e->xi, xi);
    put(&e->f, &s->f);
    put(&e->x, &s->x);
    for (int a = 0; a < 3; a++) put(&e->column[a], &s->column[a]);
    memcpy(e->base, s->base, sizeof e->base);
}

static un_warp_point point_of(const un_warp_eight *e, int n)
{
    un_warp_point p = {.at = {.base = e->base[n]}, .x = un_eight_of(&e->x, n)};
    for (int a = 0; a < 3; a++) {
        p.at.f[a] = e->f.of[a][n];
        p.column[a] = un_eight_of(&e->column[a], n);
    }
    return p;
}

static void set_point(un_warp_eight *e, int n, const un_warp_point *p)
{
    e->base[n] = p->at.base;
    set_lane(&e->x, n, p->x);
    for (int a = 0; a < 3; a++) {
        e->f.of[a][n] = p->at.f[a];
        set_lane(&e->column[a], n, p->column[a]);
    }
}

void un_warp_eight_at(const un_warp *w, un_warp_eight *e)
{
    if (w->grid.dim == 3) {
        un_triple8 xi = get(&e->xi);
        spot s = spot_at(w, &xi);
        store(e, &xi, &s);
        return;
    }
    for (int n = 0; n < 8; n++) {
        un_warp_point p = un_warp_point_in(w, un_eight_of(&e->xi, n), 2);
        set_point(e, n, &p);
    }
}

/* ---- fields ---- */

void un_warp_eight_blend(const un_grid *g, const un_vec3 *field, const un_warp_eight *e,
                         un_eight *v, un_eight slope[3])
{
    if (g->dim == 3) {
        un_triple8 f = get(&e->f), s[3], out = blend(g, field, e->base, &f, s);
        put(v, &out);
        for (int a = 0; a < 3; a++) put(&slope[a], &s[a]);
        return;
    }
    for (int n = 0; n < 8; n++) {
        un_warp_point p = point_of(e, n);
        un_vec3 s[3] = {{0}};
        set_lane(v, n, un_warp_blend_in(g, field, &p.at, s, 2));
        for (int a = 0; a < 3; a++) set_lane(&slope[a], n, s[a]);
    }
}

void un_warp_eight_sample(const un_grid *g, const float *field, const un_warp_eight *e,
                          double out[8])
{
    for (int n = 0; n < 8; n++) {
        const float *v = field + e->base[n], *w = v + g->stride[2];
        int64_t sy = g->stride[1];
        double fx = e->f.of[0][n], fy = e->f.of[1][n], fz = e->f.of[2][n];
        double a = v[0] + (v[1] - v[0]) * fx, b = v[sy] + (v[sy + 1] - v[sy]) * fx;
        out[n] = a + (b - a) * fy;
        if (g->dim == 2) continue;
        double c = w[0] + (w[1] - w[0]) * fx, d = w[sy] + (w[sy + 1] - w[sy]) * fx;
        out[n] += (c + (d - c) * fy - out[n]) * fz;
    }
}

void un_warp_eight_gradient(const un_warp_eight *e, const un_eight slope[3], double scale,
                            un_eight row[3])
{
    un_triple8 c[3], s[3];
    for (int a = 0; a < 3; a++) c[a] = get(&e->column[a]), s[a] = get(&slope[a]);
    un_triple8 r[3] = {un_triple8_cross(&c[1], &c[2]), un_triple8_cross(&c[2], &c[0]),
                       un_triple8_cross(&c[0], &c[1])};
    un_doubles8 inverse = scale / un_triple8_dot(&c[0], &r[0]);
    for (int i = 0; i < 3; i++) { /* by component of the field */
        un_triple8 out;
        for (int b = 0; b < 3; b++)
            out.of[b] =
                (r[0].of[b] * s[0].of[i] + r[1].of[b] * s[1].of[i] + r[2].of[b] * s[2].of[i]) *
                inverse;
        put(&row[i], &out);
    }
}

void un_warp_eight_det(const un_warp_eight *e, double det[8])
{
    un_triple8 c[3];
    for (int a = 0; a < 3; a++) c[a] = get(&e->column[a]);
    un_triple8 r = un_triple8_cross(&c[1], &c[2]);
    un_doubles8 d = un_triple8_dot(&c[0], &r);
    memcpy(det, &d, sizeof d);
}

/* ---- the inverse map ---- */

/* As un_warp_pull. */
UN_KERNEL un_triple8 pull(const spot *s, const un_triple8 *x)
{
    const un_triple8 *c = s->column;
    un_triple8 v = {{x->of[0] - s->x.of[0], x->of[1] - s->x.of[1], x->of[2] - s->x.of[2]}};
    un_triple8 r[3] = {un_triple8_cross(&c[1], &c[2]), un_triple8_cross(&c[2], &c[0]),
                       un_triple8_cross(&c[0], &c[1])};
    un_doubles8 inverse = 1 / un_triple8_dot(&c[0], &r[0]);
    return (un_triple8){{un_triple8_dot(&r[0], &v) * inverse, un_triple8_dot(&r[1], &v) * inverse,
                         un_triple8_dot(&r[2], &v) * inverse}};
}

/* As un_warp_walk_in. Points that have arrived stay. */
UN_KERNEL un_triple8 walk(const un_warp *w, un_triple8 *xi, spot *s, const un_triple8 *x,
                          double near)
{
    const un_grid *g = &w->grid;
    double close = near * g->h, most = UN_WARP_STEP * g->h;
    un_triple8 step, none = {{{0}}};
    un_longs8 far = {0};
    for (int i = 0; i < UN_WARP_NEWTON; i++) {
        step = pull(s, x);
        un_doubles8 square = un_triple8_dot(&step, &step);
        far = ~(square <= close * close);
        if (!any(far)) return step;
        un_triple8 way = step;
        if (i >= UN_WARP_FREE) {
            un_doubles8 scale;
            for (int n = 0; n < 8; n++) scale[n] = fmin(1, most / sqrt(square[n]));
            for (int a = 0; a < 3; a++) way.of[a] *= scale;
        }
        for (int a = 0; a < 3; a++) way.of[a] += xi->of[a];
        un_triple8 to = inside(g, &way);
        for (int a = 0; a < 3; a++) xi->of[a] = pick(far, to.of[a], xi->of[a]);
        *s = spot_at(w, xi);
    }
    for (int a = 0; a < 3; a++) step.of[a] = pick(far, none.of[a], step.of[a]);
    return step;
}

void un_warp_eight_walk(const un_warp *w, un_warp_eight *e, const un_eight *x, double near,
                        un_eight *step)
{
    if (w->grid.dim == 3) {
        un_triple8 xi = get(&e->xi), to = get(x);
        spot s = {.f = get(&e->f), .x = get(&e->x)};
        for (int a = 0; a < 3; a++) s.column[a] = get(&e->column[a]);
        memcpy(s.base, e->base, sizeof s.base);
        un_triple8 left = walk(w, &xi, &s, &to, near);
        store(e, &xi, &s);
        put(step, &left);
        return;
    }
    for (int n = 0; n < 8; n++) {
        un_warp_walker k = {.xi = un_eight_of(&e->xi, n), .at = point_of(e, n)};
        set_lane(step, n, un_warp_walk_in(w, &k, un_eight_of(x, n), near, 2));
        set_lane(&e->xi, n, k.xi);
        set_point(e, n, &k.at);
    }
}

/* As un_warp_find_in. */
static void find_3d(const un_warp *w, const un_eight *x, un_eight *xi)
{
    un_triple8 to = get(x), at = get(xi), f;
    at = inside(&w->grid, &at);
    spot s = spot_at(w, &at);
    un_triple8 step = walk(w, &at, &s, &to, UN_WARP_LAST);
    for (int a = 0; a < 3; a++) step.of[a] += at.of[a];
    un_triple8 last = inside(&w->grid, &step);
    un_longs8 base, there = stencil(&w->grid, &last, &f);
    memcpy(&base, s.base, sizeof base);
    un_longs8 other = there != base;
    put(xi, &last);
    if (!any(other)) return;
    (void)walk(w, &at, &s, &to, UN_WARP_EXACT);
    for (int a = 0; a < 3; a++) last.of[a] = pick(other, at.of[a], last.of[a]);
    put(xi, &last);
}

void un_warp_eight_find(const un_warp *w, const un_eight *x, un_eight *xi)
{
    if (w->grid.dim == 3) {
        find_3d(w, x, xi);
        return;
    }
    for (int n = 0; n < 8; n++)
        set_lane(xi, n, un_warp_find_in(w, un_eight_of(x, n), un_eight_of(xi, n), 2));
}
