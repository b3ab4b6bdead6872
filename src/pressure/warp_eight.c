/* Eight cells of a grid that warps at once, which are full of liquid and cut by nothing, in 3D: the
 * integrals that warp.c wants of them. With r_a the cross products of the map's derivatives at a
 * quadrature point, det its determinant,
 *
 *     grad N_m = sum_a s_a(m) r_a / det,     s_a(m) = +- the product of weights along other axes,
 *
 * so that the integral of grad N_m needs no division. */
#include "base/lanes.h"
#include "pressure/warp_element.h"

#define LOW 0.21132486540518711775
#define HIGH 0.78867513459481288225

/* Weights of the four edges along an axis at one of its four lines of quadrature points; both
 * numbered by bits of the other axes. */
UN_KERNEL double line_weight(int line, int edge)
{
    double p = ((line ^ edge) & 1) ? LOW : HIGH, q = ((line ^ edge) & 2) ? LOW : HIGH;
    return p * q;
}

UN_KERNEL void load_corners(un_triple8 corner[8], const un_vec3 *node, const int64_t first[8],
                            int64_t sy, int64_t sz)
{
    for (int m = 0; m < 8; m++) {
        const un_vec3 *at = node + (m & 1) + (m >> 1 & 1) * sy + (m >> 2) * sz;
        un_doubles4 v[8];
        for (int n = 0; n < 8; n++) v[n] = un_doubles4_load3(&at[first[n]].x);
        un_doubles8_turn(corner[m].of, v);
    }
}

/* The derivative along each axis on each of its lines of quadrature points: it does not change
 * along them. */
UN_KERNEL void find_columns(un_triple8 column[3][4], const un_triple8 corner[8])
{
    for (int a = 0; a < 3; a++) {
        un_triple8 edge[4];
        for (int m = 0; m < 8; m++) {
            if (m >> a & 1) continue;
            for (int d = 0; d < 3; d++)
                edge[un_element_side(m, a)].of[d] = corner[m | 1 << a].of[d] - corner[m].of[d];
        }
        for (int l = 0; l < 4; l++)
            for (int d = 0; d < 3; d++)
                column[a][l].of[d] =
                    edge[0].of[d] * line_weight(l, 0) + edge[1].of[d] * line_weight(l, 1) +
                    edge[2].of[d] * line_weight(l, 2) + edge[3].of[d] * line_weight(l, 3);
    }
}

/* At quadrature point q: gradients of the hat functions times the determinant, which is returned.
 */
UN_KERNEL un_doubles8 gradients(un_triple8 grad[8], const un_triple8 column[3][4], int q)
{
    const un_triple8 *c0 = &column[0][un_element_side(q, 0)],
                     *c1 = &column[1][un_element_side(q, 1)],
                     *c2 = &column[2][un_element_side(q, 2)];
    un_triple8 r[3] = {un_triple8_cross(c1, c2), un_triple8_cross(c2, c0),
                       un_triple8_cross(c0, c1)},
               p[3][4];
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < 4; i++)
            for (int d = 0; d < 3; d++)
                p[a][i].of[d] = r[a].of[d] * line_weight(un_element_side(q, a), i);
    for (int m = 0; m < 8; m++)
        for (int d = 0; d < 3; d++) {
            un_doubles8 x = p[0][un_element_side(m, 0)].of[d],
                        y = p[1][un_element_side(m, 1)].of[d];
            un_doubles8 z = p[2][un_element_side(m, 2)].of[d];
            grad[m].of[d] = (m & 1 ? x : -x) + (m & 2 ? y : -y) + (m & 4 ? z : -z);
        }
    return un_triple8_dot(c0, &r[0]);
}

UN_KERNEL double hat_at(int m, int q)
{
    double v = 1;
    for (int a = 0; a < 3; a++) v *= ((m ^ q) >> a & 1) ? LOW : HIGH;
    return v;
}

void un_element_eight_sums(un_element_eight *out, const un_vec3 *node, const int64_t first[8],
                           int64_t sy, int64_t sz)
{
    un_triple8 corner[8], column[3][4], grad[8], flow[8] = {{{{0}}}};
    un_doubles8 matrix[36] = {{0}}, hat[8] = {{0}};
    load_corners(corner, node, first, sy, sz);
    find_columns(column, corner);
#pragma GCC unroll 8
    for (int q = 0; q < 8; q++) {
        un_doubles8 det = gradients(grad, column, q), weight = 0.125 / det;
        for (int m = 0, e = 0; m < 8; m++) {
            un_triple8 g;
            for (int d = 0; d < 3; d++) {
                flow[m].of[d] += grad[m].of[d];
                g.of[d] = grad[m].of[d] * weight;
            }
            hat[m] += det * hat_at(m, q);
            for (int l = m; l < 8; l++, e++) matrix[e] += un_triple8_dot(&g, &grad[l]);
        }
    }
    for (int m = 0; m < 8; m++) {
        for (int d = 0; d < 3; d++) flow[m].of[d] *= 0.125;
        hat[m] *= 0.125;
    }
    memcpy(out->matrix, matrix, sizeof out->matrix);
    memcpy(out->flow, flow, sizeof out->flow);
    memcpy(out->hat, hat, sizeof out->hat);
}

void un_element_eight_slope(un_eight *slope, const double x[8][8], const un_vec3 *node,
                            const int64_t first[8], int64_t sy, int64_t sz)
{
    un_triple8 corner[8], column[3][4], grad[8], sum = {{{0}}};
    un_doubles8 volume = {0};
    load_corners(corner, node, first, sy, sz);
    find_columns(column, corner);
#pragma GCC unroll 8
    for (int q = 0; q < 8; q++) {
        volume += gradients(grad, column, q);
        for (int m = 0; m < 8; m++)
            for (int d = 0; d < 3; d++) sum.of[d] += grad[m].of[d] * un_doubles8_load(x[m], 8);
    }
    for (int d = 0; d < 3; d++) {
        un_doubles8 mean = sum.of[d] / volume;
        memcpy(slope->of[d], &mean, sizeof mean);
    }
}
