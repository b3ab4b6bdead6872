/* The diagonal as preconditioner. */
#include "linalg/spread.h"

typedef struct jacobi {
    un_context *ctx;
    const un_csr *a;
    double *inverse;
    size_t capacity;
    un_spread *spread;
    double *z;
    const double *r;
} jacobi;

static void invert_rows(void *arg, int64_t begin, int64_t end)
{
    jacobi *m = arg;
    const un_csr *a = m->a;
    for (int64_t i = begin; i < end; i++) {
        double diagonal = 0;
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] == i) diagonal = a->val[k];
        m->inverse[i] = diagonal > 0 ? 1 / diagonal : 0;
    }
}

static void apply_rows(void *arg, int64_t begin, int64_t end)
{
    jacobi *m = arg;
    for (int64_t i = begin; i < end; i++) m->z[i] = m->inverse[i] * m->r[i];
}

static un_status setup(void *state, const un_csr *a, const un_sites *sites, double largest)
{
    (void)sites, (void)largest;
    jacobi *m = state;
    m->a = a;
    UN_TRY(un_array_need(m->ctx, (void **)&m->inverse, &m->capacity, (size_t)a->n,
                         sizeof *m->inverse));
    un_parallel_part(m->ctx, un_spread_part(m->spread, a->n), un_block_grain(a->n), invert_rows, m);
    return UN_OK;
}

static void apply(void *state, double *z, const double *r)
{
    jacobi *m = state;
    m->z = z;
    m->r = r;
    int64_t n = m->a->n;
    un_parallel_part(m->ctx, un_spread_part(m->spread, n), un_block_grain(n), apply_rows, m);
}

static void spread(void *state, un_spread *over)
{
    ((jacobi *)state)->spread = over;
}

static void destroy(void *state)
{
    jacobi *m = state;
    if (!m) return;
    un_free(m->ctx, m->inverse);
    un_free(m->ctx, m);
}

un_status un_jacobi_create(un_context *ctx, un_preconditioner *preconditioner)
{
    jacobi *m = un_alloc_zero(ctx, 1, sizeof *m);
    if (!m) return UN_ERROR_MEMORY;
    m->ctx = ctx;
    *preconditioner = (un_preconditioner){m, setup, apply, destroy, false, spread, NULL};
    return UN_OK;
}
