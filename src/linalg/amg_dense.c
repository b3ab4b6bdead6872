/* The coarsest level: L D L^T of a dense matrix in double. A part whose rows sum to zero leaves a
 * pivot of round-off; its unknown is pinned at zero, which solves that part up to a constant. */
#include "linalg/amg.h"

/* A pivot below this share of its diagonal is round-off. */
#define PIVOT_MIN 1e-13

un_status un_amg_factor(un_amg *amg, const un_amg_graph *g)
{
    size_t n = (size_t)g->n;
    UN_AMG_NEED(amg->ctx, amg->factor, amg->capacity_factor, n * n);
    UN_AMG_NEED(amg->ctx, amg->solution, amg->capacity_solution, 2 * n);
    double *l = amg->factor, *scaled = amg->solution;
    memset(l, 0, n * n * sizeof *l);
    for (size_t i = 0; i < n; i++) {
        l[i * n + i] = g->excess[i];
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
            l[i * n + i] -= g->val[k];
            if ((size_t)g->col[k] < i) l[i * n + (size_t)g->col[k]] = g->val[k];
        }
    }
    /* Row by row: l_ij holds l_ij d_j until the row's pivot is known. */
    for (size_t i = 0; i < n; i++) {
        double *row = l + i * n, diagonal = row[i], pivot = row[i];
        for (size_t j = 0; j < i; j++) {
            const double *other = l + j * n;
            double sum = row[j];
            for (size_t k = 0; k < j; k++) sum -= row[k] * other[k];
            row[j] = sum;
        }
        for (size_t j = 0; j < i; j++) {
            scaled[j] = row[j] * l[j * n + j];
            pivot -= row[j] * scaled[j];
        }
        memcpy(row, scaled, i * sizeof *row);
        row[i] = pivot > PIVOT_MIN * diagonal ? 1 / pivot : 0;
    }
    return UN_OK;
}

void un_amg_solve_dense(un_amg *amg, int32_t count, float *x, const float *b)
{
    size_t n = (size_t)count;
    const double *l = amg->factor;
    double *y = amg->solution;
    for (size_t i = 0; i < n; i++) {
        double sum = b[i];
        for (size_t j = 0; j < i; j++) sum -= l[i * n + j] * y[j];
        y[i] = sum;
    }
    for (size_t i = 0; i < n; i++) y[i] *= l[i * n + i];
    for (size_t i = n; i-- > 0;) {
        x[i] = (float)y[i];
        for (size_t j = 0; j < i; j++) y[j] -= l[i * n + j] * y[i];
    }
}
