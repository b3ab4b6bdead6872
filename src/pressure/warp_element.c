/* Quadrature over the open part of a cell that a solid cuts. */
#include "pressure/warp_element.h"

typedef struct simplex {
    double x[4][3]; /* corners */
} simplex;

static double volume_of(const simplex *s, int dim)
{
    double e[3][3];
    for (int i = 0; i < dim; i++)
        for (int a = 0; a < dim; a++) e[i][a] = s->x[i + 1][a] - s->x[0][a];
    if (dim == 2) return fabs(e[0][0] * e[1][1] - e[0][1] * e[1][0]) / 2;
    return fabs(e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) -
                e[0][1] * (e[1][0] * e[2][2] - e[1][2] * e[2][0]) +
                e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0])) /
           6;
}

/* One point towards each corner, exact for quadratics. */
static void add_simplex(un_quadrature *q, const simplex *s, int dim)
{
    double near = dim == 2 ? 2.0 / 3 : 0.58541019662496845446;
    double rest = (1 - near) / dim, volume = volume_of(s, dim);
    if (!(volume > 0)) return;
    for (int i = 0; i <= dim; i++) {
        double *at = q->at[q->count];
        at[0] = at[1] = at[2] = 0;
        for (int k = 0; k <= dim; k++)
            for (int a = 0; a < dim; a++) at[a] += (k == i ? near : rest) * s->x[k][a];
        q->weight[q->count++] = volume / (dim + 1);
    }
}

/* Where the edge from a corner with the value p > 0 to one with n <= 0 is cut. */
static void cut_edge(double out[3], const double a[3], const double b[3], double p, double n)
{
    double t = p / (p - n);
    for (int i = 0; i < 3; i++) out[i] = a[i] + t * (b[i] - a[i]);
}

/* The prism, or in 2D the quad, between the corners lo and hi (dim of each, matched), in simplices.
 */
static void add_prism(un_quadrature *q, double lo[3][3], double hi[3][3], int dim)
{
    for (int i = 0; i < dim; i++) {
        simplex s = {{{0}}};
        for (int k = 0; k <= dim; k++) memcpy(s.x[k], k <= i ? lo[k] : hi[k - 1], sizeof s.x[k]);
        add_simplex(q, &s, dim);
    }
}

static void add_positive(un_quadrature *q, const simplex *s, const double v[4], int dim)
{
    int pos[4], neg[4], p = 0, n = 0;
    double cuts[4][4][3];
    for (int i = 0; i <= dim; i++) {
        if (v[i] > 0)
            pos[p++] = i;
        else
            neg[n++] = i;
    }
    if (n == 0) add_simplex(q, s, dim);
    if (n == 0 || p == 0) return;
    for (int i = 0; i < p; i++)
        for (int k = 0; k < n; k++)
            cut_edge(cuts[i][k], s->x[pos[i]], s->x[neg[k]], v[pos[i]], v[neg[k]]);
    double lo[3][3] = {{0}}, hi[3][3] = {{0}};
    if (p == 1) {
        simplex tip = {{{0}}};
        memcpy(tip.x[0], s->x[pos[0]], sizeof tip.x[0]);
        for (int k = 0; k < n; k++) memcpy(tip.x[k + 1], cuts[0][k], sizeof tip.x[0]);
        add_simplex(q, &tip, dim);
    } else if (n == 1) {
        for (int i = 0; i < p; i++) {
            memcpy(lo[i], s->x[pos[i]], sizeof lo[i]);
            memcpy(hi[i], cuts[i][0], sizeof hi[i]);
        }
        add_prism(q, lo, hi, dim);
    } else { /* two and two: a prism from one positive corner to the other */
        for (int i = 0; i < 3; i++) {
            memcpy(lo[i], i == 0 ? s->x[pos[0]] : cuts[0][i - 1], sizeof lo[i]);
            memcpy(hi[i], i == 0 ? s->x[pos[1]] : cuts[1][i - 1], sizeof hi[i]);
        }
        add_prism(q, lo, hi, dim);
    }
}

void un_quadrature_open(un_quadrature *q, const double v[8], int dim)
{
    static const int tets[6][4] = {{0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7},
                                   {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7}};
    static const int triangles[2][3] = {{0, 1, 3}, {0, 2, 3}};
    q->count = 0;
    for (int t = 0; t < (dim == 2 ? 2 : 6); t++) {
        simplex s = {{{0}}};
        double value[4] = {0};
        for (int i = 0; i <= dim; i++) {
            int m = dim == 2 ? triangles[t][i] : tets[t][i];
            for (int a = 0; a < dim; a++) s.x[i][a] = m >> a & 1;
            value[i] = v[m];
        }
        add_positive(q, &s, value, dim);
    }
}
