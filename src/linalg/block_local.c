/* Preconditioners of 3x3 blocks that use direct neighbours only: the diagonal blocks, and
 * incomplete Cholesky without fill,
 *
 *     M = L D L^T,   W_ij = A_ij - sum_{k<j} W_ik L_jk^T,   L_ij = W_ij D_j^-1,
 *     D_i = A_ii - sum_{j<i} L_ij W_ij^T
 *
 * with the blocks of the lower half of A. Rows are cut into fixed blocks as in ic.c; couplings
 * between these are left out of M. Both are in doubles: multigrid is compared with them. */
#include "linalg/spread.h"

/* A pivot below this share of the diagonal is replaced by the diagonal. */
#define PIVOT_MIN 1e-2
#define BLOCK_COUNT_MAX 4
#define BLOCK_ROWS_MIN 4096

typedef struct local {
    un_context *ctx;
    const un_block_csr *a;
    double (*inverse)[9]; /* of diagonal blocks, or of D */
    int32_t *row, *col;   /* of L */
    double (*val)[9];
    size_t capacity[4];
    int64_t grain;
    un_part own; /* rows of this rank */
    un_spread *spread;
    un_vec3 *z;
    const un_vec3 *r;
} local;

static inline un_vec3 times(const double *v, un_vec3 x)
{
    return un_v3(v[0] * x.x + v[1] * x.y + v[2] * x.z, v[3] * x.x + v[4] * x.y + v[5] * x.z,
                 v[6] * x.x + v[7] * x.y + v[8] * x.z);
}
static inline un_vec3 times_transposed(const double *v, un_vec3 x)
{
    return un_v3(v[0] * x.x + v[3] * x.y + v[6] * x.z, v[1] * x.x + v[4] * x.y + v[7] * x.z,
                 v[2] * x.x + v[5] * x.y + v[8] * x.z);
}
/* c += sign a b^T */
static inline void add_outer(double *c, const double *a, const double *b, double sign)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c[3 * i + j] += sign * (a[3 * i] * b[3 * j] + a[3 * i + 1] * b[3 * j + 1] +
                                    a[3 * i + 2] * b[3 * j + 2]);
}

/* ---- diagonal blocks ---- */

static void invert_rows(void *arg, int64_t begin, int64_t end)
{
    local *m = arg;
    const un_block_csr *a = m->a;
    for (int64_t i = begin; i < end; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] == i) {
                memcpy(m->inverse[i], a->val[k], sizeof m->inverse[i]);
                un_small_inverse(m->inverse[i], 3, 1e-12);
            }
}

static un_status setup_jacobi(void *state, const un_block_system *system, un_block_report *report)
{
    local *m = state;
    (void)report;
    m->a = system->a;
    m->grain = un_block_grain(m->a->n);
    m->own = un_spread_part(m->spread, m->a->n);
    UN_TRY(un_array_need(m->ctx, (void **)&m->inverse, &m->capacity[0], (size_t)m->a->n,
                         sizeof *m->inverse));
    un_parallel_part(m->ctx, m->own, m->grain, invert_rows, m);
    return UN_OK;
}

static void scale_rows(void *arg, int64_t begin, int64_t end)
{
    local *m = arg;
    for (int64_t i = begin; i < end; i++) m->z[i] = times(m->inverse[i], m->r[i]);
}

static void apply_jacobi(void *state, un_vec3 *z, const un_vec3 *r)
{
    local *m = state;
    m->z = z;
    m->r = r;
    un_parallel_part(m->ctx, m->own, m->grain, scale_rows, m);
}

static void spread_jacobi(void *state, un_spread *spread)
{
    ((local *)state)->spread = spread;
}

/* ---- incomplete Cholesky ---- */

static void count_block(void *arg, int64_t begin, int64_t end)
{
    local *m = arg;
    const un_block_csr *a = m->a;
    for (int64_t i = begin; i < end; i++) {
        int32_t count = 0;
        for (int32_t s = a->row[i]; a->col[s] < i; s++) count += a->col[s] >= begin;
        m->row[i + 1] = count;
    }
}

/* w -= sum of W_ik L_jk^T at common columns; p: of row i so far, q: of row j */
static void subtract_common(const local *m, double *w, int32_t p, int32_t p_end, int32_t q,
                            int32_t q_end)
{
    while (p < p_end && q < q_end) {
        if (m->col[p] == m->col[q])
            add_outer(w, m->val[p++], m->val[q++], -1);
        else if (m->col[p] < m->col[q])
            p++;
        else
            q++;
    }
}

static void factor_block(void *arg, int64_t begin, int64_t end)
{
    local *m = arg;
    const un_block_csr *a = m->a;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t first = m->row[i], at = first, s = a->row[i];
        for (; a->col[s] < i; s++) {
            int32_t j = a->col[s];
            if (j < begin) continue;
            m->col[at] = j;
            memcpy(m->val[at], a->val[s], sizeof m->val[at]);
            subtract_common(m, m->val[at], first, at, m->row[j], m->row[j + 1]);
            at++;
        }
        double d[9], w[9];
        memcpy(d, a->val[s], sizeof d);
        for (int32_t k = first; k < at; k++) {
            memcpy(w, m->val[k], sizeof w);
            memset(m->val[k], 0, sizeof m->val[k]);
            add_outer(m->val[k], w, m->inverse[m->col[k]], 1); /* the inverse is symmetric */
            add_outer(d, m->val[k], w, -1);
        }
        bool sound = true;
        for (int c = 0; c < 9; c += 4) sound &= d[c] > PIVOT_MIN * a->val[s][c];
        memcpy(m->inverse[i], d, sizeof d);
        if (!sound || un_small_inverse(m->inverse[i], 3, PIVOT_MIN) < 3) {
            memcpy(m->inverse[i], a->val[s], sizeof d);
            un_small_inverse(m->inverse[i], 3, 1e-12);
        }
    }
}

static un_status setup_ic(void *state, const un_block_system *system, un_block_report *report)
{
    local *m = state;
    un_context *ctx = m->ctx;
    size_t n = (size_t)system->a->n;
    (void)report;
    m->a = system->a;
    m->grain = un_max64(BLOCK_ROWS_MIN, (m->a->n + BLOCK_COUNT_MAX - 1) / BLOCK_COUNT_MAX);
    UN_TRY(un_array_need(ctx, (void **)&m->inverse, &m->capacity[0], n, sizeof *m->inverse));
    UN_TRY(un_array_need(ctx, (void **)&m->row, &m->capacity[1], n + 1, sizeof *m->row));
    m->row[0] = 0;
    un_parallel_for(ctx, m->a->n, m->grain, count_block, m);
    for (size_t i = 0; i < n; i++) m->row[i + 1] += m->row[i];
    size_t entries = (size_t)m->row[n] + 1;
    UN_TRY(un_array_need(ctx, (void **)&m->col, &m->capacity[2], entries, sizeof *m->col));
    UN_TRY(un_array_need(ctx, (void **)&m->val, &m->capacity[3], entries, sizeof *m->val));
    un_parallel_for(ctx, m->a->n, m->grain, factor_block, m);
    return UN_OK;
}

static void solve_block(void *arg, int64_t begin, int64_t end)
{
    local *m = arg;
    un_vec3 *z = m->z;
    for (int64_t i = begin; i < end; i++) {
        un_vec3 sum = m->r[i];
        for (int32_t k = m->row[i]; k < m->row[i + 1]; k++)
            sum = un_sub(sum, times(m->val[k], z[m->col[k]]));
        z[i] = sum;
    }
    for (int64_t i = begin; i < end; i++) z[i] = times(m->inverse[i], z[i]);
    for (int64_t i = end - 1; i >= begin; i--)
        for (int32_t k = m->row[i]; k < m->row[i + 1]; k++)
            z[m->col[k]] = un_sub(z[m->col[k]], times_transposed(m->val[k], z[i]));
}

static void apply_ic(void *state, un_vec3 *z, const un_vec3 *r)
{
    local *m = state;
    m->z = z;
    m->r = r;
    un_parallel_for(m->ctx, m->a->n, m->grain, solve_block, m);
}

/* ---- create and destroy ---- */

static void destroy(void *state)
{
    local *m = state;
    if (!m) return;
    void *blocks[] = {m->inverse, m->row, m->col, m->val};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(m->ctx, blocks[i]);
    un_free(m->ctx, m);
}

static un_status begin_local(un_context *ctx, un_block_preconditioner *p)
{
    local *m = un_alloc_zero(ctx, 1, sizeof *m);
    if (!m) return UN_ERROR_MEMORY;
    m->ctx = ctx;
    p->state = m;
    p->destroy = destroy;
    return UN_OK;
}

un_status un_block_jacobi_create(un_context *ctx, un_block_preconditioner *p)
{
    p->setup = setup_jacobi;
    p->apply = apply_jacobi;
    p->spread = spread_jacobi;
    return begin_local(ctx, p);
}

un_status un_block_ic_create(un_context *ctx, un_block_preconditioner *p)
{
    p->setup = setup_ic;
    p->apply = apply_ic;
    return begin_local(ctx, p);
}
