/* Velocities at eight points at once: the same operations as un_faces_sample, so the same bits, but
 * in vectors. What a point needs is loaded two numbers at a time and put together in registers:
 * instructions that gather take longer. */
#include "base/lanes.h"
#include "mesh/mesh.h"

/* Truncated, and between 0 and hi. */
UN_KERNEL un_longs8 place(un_doubles8 s, int64_t hi)
{
    un_bits8 whole = __builtin_convertvector(s, un_bits8); /* as a cast to int32_t */
    un_longs8 i = __builtin_convertvector(whole, un_longs8);
    un_longs8 above = i > hi;
    i = (i & ~above) | (hi & above);
    return i & (i > 0);
}

/* v[at[0]], v[at[0] + 1], v[at[2]], v[at[2] + 1], ..: two numbers in one load */
UN_KERNEL un_doubles8 load_pairs(const double *v, const int64_t *at)
{
    un_doubles2 pair[4];
    for (int i = 0; i < 4; i++) memcpy(&pair[i], v + at[2 * i], sizeof pair[i]);
    un_doubles4 low = __builtin_shufflevector(pair[0], pair[1], 0, 1, 2, 3);
    un_doubles4 high = __builtin_shufflevector(pair[2], pair[3], 0, 1, 2, 3);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
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

static void sample_3d(un_eight *out, const un_grid *g, double *const u[3], const un_eight *x)
{
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    un_doubles8 face[3], centre[3]; /* shares by axis */
    un_longs8 at_face[3], at_centre[3];
    for (int a = 0; a < 3; a++) {
        un_doubles8 s = (un_doubles8_load(x->of[a], 8) - origin[a]) * g->inverse_h;
        un_longs8 i = place(s, g->n[a] - 2), c = place(s - 0.5, g->n[a] - 2);
        face[a] = s - __builtin_convertvector(i, un_doubles8);
        centre[a] = s - 0.5 - __builtin_convertvector(c, un_doubles8);
        at_face[a] = i * g->stride[a];
        at_centre[a] = c * g->stride[a];
    }
    for (int a = 0; a < 3; a++) {
        int b = (a + 1) % 3, c = (a + 2) % 3;
        un_doubles8 f[3];
        f[a] = face[a], f[b] = centre[b], f[c] = centre[c];
        un_doubles8 v = sample(g, u[a], at_face[a] + at_centre[b] + at_centre[c], f);
        memcpy(out->of[a], &v, sizeof v);
    }
}

void un_faces_sample_eight(un_eight *out, const un_grid *g, double *const u[3], const un_eight *x)
{
    if (g->dim == 3) {
        sample_3d(out, g, u, x);
        return;
    }
    for (int n = 0; n < 8; n++) {
        un_vec3 v = un_faces_sample_in(g, u, un_v3(x->of[0][n], x->of[1][n], x->of[2][n]), 2);
        out->of[0][n] = v.x;
        out->of[1][n] = v.y;
        out->of[2][n] = v.z;
    }
}
