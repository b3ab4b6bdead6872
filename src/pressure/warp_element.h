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

/* The corners of cell (i, j, k), and at a quadrature point: gradients of their hat functions, 1/m,
 * and the volume that the point stands for, over its weight. */
typedef struct un_element {
    int64_t place[8];
    un_vec3 x[8];
    double psi[8]; /* depth: positive in the liquid */
    int wet;       /* corners in the liquid */
} un_element;
UN_KERNEL double un_element_gradients(const un_element *e, const double at[3], un_vec3 grad[8],
                                      double hat[8], int dim)
{
    double slope[8][3];
    un_warp_point p = {.column = {{0}, {0}, {0, 0, dim == 2}}};
    for (int m = 0; m < 1 << dim; m++) {
        hat[m] = 1;
        for (int a = 0; a < dim; a++) {
            hat[m] *= m >> a & 1 ? at[a] : 1 - at[a];
            slope[m][a] = m >> a & 1 ? 1 : -1;
            for (int b = 0; b < dim; b++)
                if (b != a) slope[m][a] *= m >> b & 1 ? at[b] : 1 - at[b];
            p.column[a] = un_mad(p.column[a], e->x[m], slope[m][a]);
        }
    }
    un_vec3 row[3] = {un_cross(p.column[1], p.column[2]), un_cross(p.column[2], p.column[0]),
                      un_cross(p.column[0], p.column[1])};
    double det = un_dot(p.column[0], row[0]), inverse = 1 / det;
    for (int m = 0; m < 1 << dim; m++) {
        un_vec3 g = un_scale(row[0], slope[m][0]);
        for (int a = 1; a < dim; a++) g = un_mad(g, row[a], slope[m][a]);
        grad[m] = un_scale(g, inverse);
    }
    return det;
}
/* The ghost matrix at a point: maps the gradient with zero in the air to that of the distance. */
UN_KERNEL un_ghost_matrix un_element_ghost(const un_element *e, const un_vec3 grad[8], int dim)
{
    un_vec3 a = {0, 0, 0}, b = {0, 0, 0};
    for (int m = 0; m < 1 << dim; m++) {
        a = un_mad(a, grad[m], e->psi[m]);
        if (e->psi[m] > 0) b = un_mad(b, grad[m], e->psi[m]);
    }
    return un_ghost_find(a, b);
}

#endif
