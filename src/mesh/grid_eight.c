/* Velocities at eight points at once: the same operations as un_faces_sample, so the same bits, but
 * in vectors. What a point needs is loaded two numbers at a time and put together in registers:
 * instructions that gather take longer. */
#include "base/lanes.h"
#include "mesh/mesh.h"

/* v[at[0]], v[at[0] + 1], v[at[2]], v[at[2] + 1], ..: two numbers in one load */
UN_KERNEL un_doubles8 load_pairs(const double *v, const int64_t *at)
{
#if defined(__AVX512DQ__)
    /* loads that fill a part of the vector, so that nothing has to be moved afterwards */
    __m512d pairs = _mm512_broadcast_f64x2(_mm_loadu_pd(v + at[0]));
    pairs = _mm512_mask_broadcast_f64x2(pairs, 0x0c, _mm_loadu_pd(v + at[2]));
    pairs = _mm512_mask_broadcast_f64x2(pairs, 0x30, _mm_loadu_pd(v + at[4]));
    pairs = _mm512_mask_broadcast_f64x2(pairs, 0xc0, _mm_loadu_pd(v + at[6]));
    return (un_doubles8)pairs;
#else
    un_doubles2 pair[4];
    for (int i = 0; i < 4; i++) memcpy(&pair[i], v + at[2 * i], sizeof pair[i]);
    un_doubles4 low = __builtin_shufflevector(pair[0], pair[1], 0, 1, 2, 3);
    un_doubles4 high = __builtin_shufflevector(pair[2], pair[3], 0, 1, 2, 3);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

UN_KERNEL un_doubles8 between(un_doubles8 a, un_doubles8 b, un_doubles8 f)
{
    return a + (b - a) * f;
}

/* Between v[at] and v[at + 1]. */
UN_KERNEL un_doubles8 along_x(const double *v, const int64_t *at, un_doubles8 f)
{
    un_doubles8 even = load_pairs(v, at), odd = load_pairs(v, at + 1);
    return between(__builtin_shufflevector(even, odd, 0, 8, 2, 10, 4, 12, 6, 14),
                   __builtin_shufflevector(even, odd, 1, 9, 3, 11, 5, 13, 7, 15), f);
}

/* f: shares towards the upper ones along x, y and z. */
UN_KERNEL un_doubles8 sample(const un_grid *g, const double *v, un_longs8 base,
                             const un_doubles8 f[3])
{
    int64_t at[8], sy = g->stride[1];
    const double *w = v + g->stride[2];
    memcpy(at, &base, sizeof at);
    un_doubles8 a = along_x(v, at, f[0]), b = along_x(v + sy, at, f[0]);
    un_doubles8 c = along_x(w, at, f[0]), d = along_x(w + sy, at, f[0]);
    return between(between(a, b, f[1]), between(c, d, f[1]), f[2]);
}

/* Where eight points are among faces and among centres: whole numbers of cells times the stride,
 * and the shares towards the upper ones. */
typedef struct eight_places {
    un_doubles8 face[3], centre[3], at_face[3], at_centre[3];
} eight_places;

UN_KERNEL void find_places(eight_places *p, const un_grid *g, const un_eight *x)
{
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    for (int a = 0; a < 3; a++) {
        un_doubles8 s = (un_doubles8_load(x->of[a], 8) - origin[a]) * g->inverse_h;
        un_doubles8 i = un_doubles8_place(s, g->n[a] - 2);
        un_doubles8 c = un_doubles8_place(s - 0.5, g->n[a] - 2);
        p->face[a] = s - i;
        p->centre[a] = s - 0.5 - c;
        p->at_face[a] = i * (double)g->stride[a];
        p->at_centre[a] = c * (double)g->stride[a];
    }
}

/* One component of one velocity field, or of two. */
UN_KERNEL void sample_axis(un_eight *const *out, const un_grid *g, double *const *const *u,
                           const eight_places *p, int a, int fields)
{
    int b = (a + 1) % 3, c = (a + 2) % 3;
    un_doubles8 f[3], base = p->at_face[a] + p->at_centre[b] + p->at_centre[c];
    f[a] = p->face[a], f[b] = p->centre[b], f[c] = p->centre[c];
    un_longs8 whole = __builtin_convertvector(base, un_longs8);
    for (int n = 0; n < fields; n++) {
        un_doubles8 v = sample(g, u[n][a], whole, f);
        memcpy(out[n]->of[a], &v, sizeof v);
    }
}

UN_KERNEL void sample_3d(un_eight *const *out, const un_grid *g, double *const *const *u,
                         const un_eight *x, int fields)
{
    eight_places p;
    find_places(&p, g, x);
    sample_axis(out, g, u, &p, 0, fields);
    sample_axis(out, g, u, &p, 1, fields);
    sample_axis(out, g, u, &p, 2, fields);
}

static void sample_2d(un_eight *out, const un_grid *g, double *const u[3], const un_eight *x)
{
    for (int n = 0; n < 8; n++) {
        un_vec3 v = un_faces_sample_in(g, u, un_v3(x->of[0][n], x->of[1][n], x->of[2][n]), 2);
        out->of[0][n] = v.x;
        out->of[1][n] = v.y;
        out->of[2][n] = v.z;
    }
}

void un_faces_sample_eight(un_eight *out, const un_grid *g, double *const u[3], const un_eight *x)
{
    if (g->dim == 3)
        sample_3d(&out, g, &u, x, 1);
    else
        sample_2d(out, g, u, x);
}

void un_faces_sample_two(un_eight out[2], const un_grid *g, double *const u[3],
                         double *const other[3], const un_eight *x)
{
    un_eight *const both[2] = {&out[0], &out[1]};
    double *const *const fields[2] = {u, other};
    if (g->dim == 3) {
        sample_3d(both, g, fields, x, 2);
        return;
    }
    sample_2d(&out[0], g, u, x);
    sample_2d(&out[1], g, other, x);
}
