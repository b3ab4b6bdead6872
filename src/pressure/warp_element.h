/* One cell of a grid that warps as a finite element: quadrature over its open part, and the
 * generalised ghost fluid [Ibayashi18 section 6.2, appendix A]. Private to pressure/.
 *
 * Corners are numbered x + 2 y + 4 z; places in the cell run from 0 to 1. */
#ifndef UN_PRESSURE_WARP_ELEMENT_H
#define UN_PRESSURE_WARP_ELEMENT_H

#include "pressure/pressure.h"

/* Of a cell that a solid cuts: six tets, of three parts, of four points. */
#define UN_ELEMENT_POINTS 72

typedef struct un_quadrature {
    int count;
    double at[UN_ELEMENT_POINTS][3], weight[UN_ELEMENT_POINTS]; /* of the unit cell */
} un_quadrature;

/* Two points along each axis. */
UN_KERNEL void un_quadrature_full(un_quadrature *q, int dim)
{
    const double low = 0.21132486540518711775, high = 0.78867513459481288225;
    q->count = 1 << dim;
    for (int m = 0; m < q->count; m++) {
        for (int a = 0; a < 3; a++) q->at[m][a] = m >> a & 1 ? high : low;
        q->weight[m] = 1.0 / q->count;
    }
}
/* Over the part where the distance v at the corners is positive, linear on the simplices around the
 * main diagonal: exact for what is quadratic there (warp_element.c). */
void un_quadrature_open(un_quadrature *q, const double v[8], int dim);

/* A symmetric matrix M with a = M b, of the least condition number, as c I + d (e1 e1 - e2 e2) + e
 * (e1 e2 + e2 e1). */
typedef struct un_ghost_matrix {
    double c, d, e;
    un_vec3 e1, e2;
} un_ghost_matrix;
/* The gradients must not be more than this apart: then M = I. */
#define UN_GHOST_COSINE 0.3
UN_KERNEL un_ghost_matrix un_ghost_find(un_vec3 a, un_vec3 b)
{
    un_ghost_matrix m = {.c = 1};
    double length = un_length(b), whole = un_length(a);
    if (!(length > 0)) return m;
    un_vec3 e1 = un_scale(b, 1 / length);
    double ax = un_dot(a, e1);
    if (!(ax > UN_GHOST_COSINE * whole)) return m;
    un_vec3 side = un_mad(a, e1, -ax);
    double ay = un_length(side);
    m.c = whole * whole / (ax * length);
    m.d = -ay * ay / (ax * length);
    m.e = ay / length;
    m.e1 = e1;
    m.e2 = ay > 0 ? un_scale(side, 1 / ay) : un_v3(0, 0, 0);
    return m;
}
UN_KERNEL un_vec3 un_ghost_apply(const un_ghost_matrix *m, un_vec3 v)
{
    double x = un_dot(m->e1, v), y = un_dot(m->e2, v);
    un_vec3 r = un_mad(un_scale(v, m->c), m->e1, m->d * x + m->e * y);
    return un_mad(r, m->e2, m->e * x - m->d * y);
}

/* The corners of a cell. */
typedef struct un_element {
    int64_t place[8];
    un_vec3 x[8];
    un_vec3 edge[3][4]; /* by axis, and by corner without that axis */
    double psi[8];      /* depth: positive in the liquid */
    int wet;            /* corners in the liquid */
} un_element;
/* Corner m without bit a. */
UN_KERNEL int un_element_side(int m, int a)
{
    return a == 0 ? m >> 1 : a == 1 ? (m & 1) | (m >> 2 << 1) : m & 3;
}
UN_KERNEL void un_element_edges(un_element *e, int dim)
{
    for (int a = 0; a < dim; a++)
        for (int m = 0; m < 1 << dim; m++)
            if (!(m >> a & 1))
                e->edge[a][un_element_side(m, a)] = un_sub(e->x[m | 1 << a], e->x[m]);
}
/* At a point of the cell: hat functions and their gradients, 1/m; returns the volume that the point
 * stands for, over its weight. */
typedef struct un_hats {
    double value[8], grad[3][8];
} un_hats;
UN_KERNEL double un_element_hats(const un_element *e, const double at[3], un_hats *h, int dim)
{
    double w[3][4]; /* by axis: products of the weights along the other ones */
    un_vec3 column[3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, dim == 2}};
    for (int a = 0; a < dim; a++) {
        double p = at[a == 0 ? 1 : 0], q = dim == 2 ? 0 : at[a == 2 ? 1 : 2];
        for (int i = 0; i < 1 << (dim - 1); i++) {
            w[a][i] = (i & 1 ? p : 1 - p) * (i >> 1 ? q : 1 - q);
            column[a] = un_mad(column[a], e->edge[a][i], w[a][i]);
        }
    }
    un_vec3 row[3] = {un_cross(column[1], column[2]), un_cross(column[2], column[0]),
                      un_cross(column[0], column[1])};
    double det = un_dot(column[0], row[0]), inverse = 1 / det;
    for (int a = 0; a < 3; a++) row[a] = un_scale(row[a], inverse);
    for (int m = 0; m < 1 << dim; m++) {
        un_vec3 g = {0, 0, 0};
        for (int a = 0; a < dim; a++) {
            double slope = w[a][un_element_side(m, a)];
            g = un_mad(g, row[a], m >> a & 1 ? slope : -slope);
        }
        h->grad[0][m] = g.x;
        h->grad[1][m] = g.y;
        h->grad[2][m] = g.z;
        h->value[m] = w[0][un_element_side(m, 0)] * (m & 1 ? at[0] : 1 - at[0]);
    }
    return det;
}
UN_KERNEL un_vec3 un_hats_grad(const un_hats *h, int m)
{
    return un_v3(h->grad[0][m], h->grad[1][m], h->grad[2][m]);
}
/* The ghost matrix at a point: maps the gradient with zero in the air to that of the distance. */
UN_KERNEL un_ghost_matrix un_element_ghost(const un_element *e, const un_hats *h, int dim)
{
    un_vec3 a = {0, 0, 0}, b = {0, 0, 0};
    for (int m = 0; m < 1 << dim; m++) {
        a = un_mad(a, un_hats_grad(h, m), e->psi[m]);
        if (e->psi[m] > 0) b = un_mad(b, un_hats_grad(h, m), e->psi[m]);
    }
    return un_ghost_find(a, b);
}

/* ---- eight full cells (warp_eight.c) ---- */

/* Integrals by corner, and by cell: couplings of corners m <= l, of the gradients of hat functions,
 * of these. */
typedef struct un_element_eight {
    double matrix[36][8], flow[8][3][8], hat[8][8];
} un_element_eight;
/* first: their lowest nodes; sy, sz: steps from node to node. */
void un_element_eight_sums(un_element_eight *out, const un_vec3 *node, const int64_t first[8],
                           int64_t sy, int64_t sz);
/* The mean gradient of what is x at their corners. */
void un_element_eight_slope(un_eight *slope, const double x[8][8], const un_vec3 *node,
                            const int64_t first[8], int64_t sy, int64_t sz);

#endif
