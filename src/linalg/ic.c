/* Incomplete Cholesky without fill, IC(0) [Meijerink & van der Vorst 1977].
 *
 * M = L L^T, L with the entries of the lower half of A:
 *
 *     l_ij = (a_ij - sum_{k<j} l_ik l_jk) / l_jj,   l_ii^2 = a_ii - sum_{k<i} l_ik^2
 *
 * Rows are cut into fixed blocks as in mic.c; couplings between blocks are left out of M. The
 * factor is in doubles: multigrid is compared with this solver. */
#include "linalg/linalg.h"

/* A pivot below this share of the diagonal is replaced by the diagonal. */
#define PIVOT_MIN 1e-3
/* See mic.c. */
#define BLOCK_COUNT_MAX 4
#define BLOCK_ROWS_MIN 8192

typedef struct ic {
    un_context *ctx;
    const un_csr *a;
    int32_t *row, *col;
    double *val;     /* below the diagonal, inside the block */
    double *inverse; /* 1 / l_ii; 0: no equation */
    size_t capacity[4];
    int64_t grain;
    double *z;
    const double *r;
} ic;

static void count_block(void *arg, int64_t begin, int64_t end)
{
    ic *m = arg;
    const un_csr *a = m->a;
    for (int64_t i = begin; i < end; i++) {
        int32_t count = 0;
        for (int32_t s = a->row[i]; a->col[s] < i; s++) count += a->col[s] >= begin;
        m->row[i + 1] = count;
    }
}

/* sum of products of two rows of L at common columns below `limit` */
static double common(const ic *m, int32_t p, int32_t p_end, int32_t q, int32_t q_end, int32_t limit)
{
    double sum = 0;
    while (p < p_end && q < q_end && m->col[p] < limit && m->col[q] < limit) {
        if (m->col[p] == m->col[q])
            sum += m->val[p++] * m->val[q++];
        else if (m->col[p] < m->col[q])
            p++;
        else
            q++;
    }
    return sum;
}

static void factor_block(void *arg, int64_t begin, int64_t end)
{
    ic *m = arg;
    const un_csr *a = m->a;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t first = m->row[i], at = first, s = a->row[i];
        double squares = 0;
        for (; a->col[s] < i; s++) {
            int32_t j = a->col[s];
            if (j < begin) continue;
            double l = a->val[s] - common(m, first, at, m->row[j], m->row[j + 1], j);
            l *= m->inverse[j];
            m->col[at] = j;
            m->val[at++] = l;
            squares += l * l;
        }
        double diagonal = a->val[s], pivot = diagonal - squares;
        if (!(pivot > PIVOT_MIN * diagonal)) pivot = diagonal;
        m->inverse[i] = diagonal > 0 ? 1 / sqrt(pivot) : 0;
    }
}

static void apply_block(void *arg, int64_t begin, int64_t end)
{
    ic *m = arg;
    const int32_t *row = m->row, *col = m->col;
    const double *val = m->val, *inverse = m->inverse;
    double *z = m->z;
    for (int64_t i = begin; i < end; i++) {
        double sum = m->r[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum -= val[k] * z[col[k]];
        z[i] = sum * inverse[i];
    }
    for (int64_t i = end - 1; i >= begin; i--) {
        double value = z[i] *= inverse[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) z[col[k]] -= val[k] * value;
    }
}

static un_status setup(void *state, const un_csr *a, const un_sites *sites, double largest)
{
    ic *m = state;
    un_context *ctx = m->ctx;
    size_t n = (size_t)a->n;
    (void)sites, (void)largest;
    m->a = a;
    m->grain = un_max64(BLOCK_ROWS_MIN, (a->n + BLOCK_COUNT_MAX - 1) / BLOCK_COUNT_MAX);
    UN_TRY(un_array_need(ctx, (void **)&m->row, &m->capacity[0], n + 1, sizeof *m->row));
    UN_TRY(un_array_need(ctx, (void **)&m->inverse, &m->capacity[1], n, sizeof *m->inverse));
    m->row[0] = 0;
    un_parallel_for(ctx, a->n, m->grain, count_block, m);
    for (size_t i = 0; i < n; i++) m->row[i + 1] += m->row[i];
    size_t entries = (size_t)m->row[n] + 1;
    UN_TRY(un_array_need(ctx, (void **)&m->col, &m->capacity[2], entries, sizeof *m->col));
    UN_TRY(un_array_need(ctx, (void **)&m->val, &m->capacity[3], entries, sizeof *m->val));
    un_parallel_for(ctx, a->n, m->grain, factor_block, m);
    return UN_OK;
}

static void apply(void *state, double *z, const double *r)
{
    ic *m = state;
    m->z = z;
    m->r = r;
    un_parallel_for(m->ctx, m->a->n, m->grain, apply_block, m);
}

static void destroy(void *state)
{
    ic *m = state;
    if (!m) return;
    void *blocks[] = {m->row, m->col, m->val, m->inverse};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(m->ctx, blocks[i]);
    un_free(m->ctx, m);
}

un_status un_ic_create(un_context *ctx, un_preconditioner *preconditioner)
{
    ic *m = un_alloc_zero(ctx, 1, sizeof *m);
    if (!m) return UN_ERROR_MEMORY;
    m->ctx = ctx;
    *preconditioner = (un_preconditioner){m, setup, apply, destroy, false, NULL, NULL};
    return UN_OK;
}
