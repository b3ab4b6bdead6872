#include "linalg/linalg.h"

typedef struct apply_args {
    double *y;
    const un_csr *a;
    const double *x;
} apply_args;

static void apply_rows(void *arg, int64_t begin, int64_t end)
{
    apply_args *p = arg;
    const int32_t *row = p->a->row, *col = p->a->col;
    const double *val = p->a->val, *x = p->x;
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int32_t s = row[i]; s < row[i + 1]; s++) sum += val[s] * x[col[s]];
        p->y[i] = sum;
    }
}

void un_csr_apply(un_context *ctx, double *y, const un_csr *a, un_part rows, const double *x)
{
    apply_args args = {y, a, x};
    un_parallel_part(ctx, rows, un_block_grain(a->n), apply_rows, &args);
}

static double entry(const un_csr *a, int32_t i, int32_t j)
{
    for (int32_t s = a->row[i]; s < a->row[i + 1]; s++)
        if (a->col[s] == j) return a->val[s];
    return 0;
}

bool un_csr_validate(const un_csr *a, const char **reason)
{
    *reason = un_rows_validate(a->n, a->row, a->col);
    for (int32_t i = 0; i < a->n && !*reason; i++)
        for (int32_t s = a->row[i]; s < a->row[i + 1] && !*reason; s++) {
            if (!isfinite(a->val[s]))
                *reason = "a value is not finite";
            else if (fabs(entry(a, a->col[s], i) - a->val[s]) > 1e-12 * fabs(a->val[s]))
                *reason = "the matrix is not symmetric";
        }
    return !*reason;
}
