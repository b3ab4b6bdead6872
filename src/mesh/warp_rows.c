/* Rows of a grid that warps, eight cells at once, in 3D: centres and volumes, the density wanted at
 * them, and which of them the certificate has to look at closely. In 2D one after the other. */
#include "base/lanes.h"
#include "mesh/warp_internal.h"

/* ---- centres and volumes ---- */

/* Of the four nodes across a row of cells: their sum, and differences along y and z. */
typedef struct across {
    un_doubles4 sum, y, z;
} across;

UN_KERNEL across across_at(const un_vec3 *node, int64_t sy, int64_t sz)
{
    un_doubles4 v0 = un_doubles4_load3(&node[0].x), v1 = un_doubles4_load3(&node[sy].x);
    un_doubles4 v2 = un_doubles4_load3(&node[sz].x), v3 = un_doubles4_load3(&node[sy + sz].x);
    un_doubles4 low = v0 + v1, high = v2 + v3;
    return (across){low + high, (v1 - v0) + (v3 - v2), high - low};
}

static void cells_3d(const un_warp *w, const un_vec3 *node, int32_t count, un_eight *x,
                     double det[8])
{
    const un_grid *g = &w->grid;
    double scale = g->inverse_h / 4;
    un_doubles4 centre[8], column[3][8];
    un_triple8 at, c[3];
    across from = across_at(node, g->node_stride[1], g->node_stride[2]);
    for (int n = 0; n < 8; n++) { /* the last one again where there are fewer */
        across to = from;
        if (n < count) to = across_at(node + n + 1, g->node_stride[1], g->node_stride[2]);
        centre[n] = (from.sum + to.sum) * 0.125;
        column[0][n] = to.sum - from.sum;
        column[1][n] = from.y + to.y;
        column[2][n] = from.z + to.z;
        from = to;
    }
    un_doubles8_turn(at.of, centre);
    for (int a = 0; a < 3; a++) un_doubles8_turn(c[a].of, column[a]);
    un_triple8 r = un_triple8_cross(&c[1], &c[2]);
    un_doubles8 volume = un_triple8_dot(&c[0], &r) *
                         (scale * scale * scale / (w->stretch.x * w->stretch.y * w->stretch.z));
    memcpy(x, &at, sizeof *x);
    memcpy(det, &volume, sizeof volume);
}

void un_warp_cells_eight(const un_warp *w, const un_vec3 *node, int64_t first, int32_t count,
                         un_eight *x, double det[8])
{
    if (w->grid.dim == 3) {
        cells_3d(w, node + first, count, x, det);
        return;
    }
    for (int n = 0; n < 8; n++) {
        un_vec3 at;
        un_warp_cell(w, node, first + (n < count ? n : count - 1), &at, &det[n]);
        x->of[0][n] = at.x;
        x->of[1][n] = at.y;
        x->of[2][n] = at.z;
    }
}

/* ---- the density wanted ---- */

UN_KERNEL un_doubles8 pick(const float *v, const int64_t at[8])
{
    const un_floats8 f = {v[at[0]], v[at[1]], v[at[2]], v[at[3]],
                          v[at[4]], v[at[5]], v[at[6]], v[at[7]]};
    return __builtin_convertvector(f, un_doubles8);
}

void un_monitor_at_eight(const un_monitor *m, const un_eight *x, double out[8])
{
    if (m->n[2] == 1) {
        for (int n = 0; n < 8; n++) out[n] = un_monitor_at(m, un_eight_of(x, n));
        return;
    }
    const int64_t sy = m->n[0], sz = (int64_t)m->n[0] * m->n[1];
    const int64_t stride[3] = {1, sy, sz};
    un_doubles8 f[3];
    un_longs8 base = {0};
    for (int a = 0; a < 3; a++) {
        un_doubles8 s = un_doubles8_load(x->of[a], 8) * (1 / m->spacing[a]);
        un_longs8 i = __builtin_convertvector(__builtin_convertvector(s, un_bits8), un_longs8);
        un_longs8 above = i > m->n[a] - 2;
        i = (i & ~above) | ((int64_t)(m->n[a] - 2) & above);
        i &= i > 0;
        s = un_doubles8_positive(s - __builtin_convertvector(i, un_doubles8));
        un_longs8 over = s > 1;
        const un_doubles8 one = {1, 1, 1, 1, 1, 1, 1, 1};
        f[a] = (un_doubles8)(((un_longs8)s & ~over) | ((un_longs8)one & over));
        base += i * stride[a];
    }
    int64_t at[8];
    memcpy(at, &base, sizeof at);
    un_doubles8 plane[2];
    for (int k = 0; k < 2; k++) {
        const float *v = m->density + k * sz;
        un_doubles8 a = pick(v, at), b = pick(v + sy, at);
        a += (pick(v + 1, at) - a) * f[0];
        b += (pick(v + sy + 1, at) - b) * f[0];
        plane[k] = a + (b - a) * f[1];
    }
    un_doubles8 sum = plane[0] + (plane[1] - plane[0]) * f[2];
    memcpy(out, &sum, sizeof sum);
}

/* ---- the certificate ---- */

uint32_t un_warp_suspects(const un_vec3 *at, const int64_t stride[3], const double scale[3],
                          int32_t count, double least)
{
    un_triple8 corner[8], edge[3][4];
    for (int m = 0; m < 8; m++) {
        const un_vec3 *from = at + (m & 1) + (m >> 1 & 1) * stride[1] + (m >> 2) * stride[2];
        un_doubles4 v[8];
        for (int n = 0; n < 8; n++) v[n] = un_doubles4_load3(&from[n < count ? n : count - 1].x);
        un_doubles8_turn(corner[m].of, v);
    }
    for (int m = 0; m < 8; m++)
        for (int a = 0; a < 3; a++) {
            if (m >> a & 1) continue;
            int side = a == 0 ? m >> 1 : a == 1 ? (m & 1) | (m >> 2 << 1) : m & 3;
            for (int d = 0; d < 3; d++)
                edge[a][side].of[d] = (corner[m | 1 << a].of[d] - corner[m].of[d]) * scale[d];
        }
    un_longs8 low = {0};
    for (int m = 0; m < 8; m++) {
        const un_triple8 *j[3] = {&edge[0][m >> 1], &edge[1][(m & 1) | (m >> 2 << 1)],
                                  &edge[2][m & 3]};
        un_doubles8 xy = un_doubles8_abs(0.5 * (j[0]->of[1] + j[1]->of[0]));
        un_doubles8 yz = un_doubles8_abs(0.5 * (j[1]->of[2] + j[2]->of[1]));
        un_doubles8 zx = un_doubles8_abs(0.5 * (j[2]->of[0] + j[0]->of[2]));
        low |= ~(j[0]->of[0] - xy - zx >= least) | ~(j[1]->of[1] - xy - yz >= least) |
               ~(j[2]->of[2] - yz - zx >= least);
    }
    uint32_t bits = 0;
    for (int n = 0; n < 8; n++) bits |= (uint32_t)(low[n] & 1) << n;
    return bits & ((1u << (count < 8 ? count : 8)) - 1);
}
