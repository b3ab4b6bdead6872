/* Sweeps, the V-cycle, and the direct solve of the coarsest level: see block_sa.c. */
#include "linalg/block_sa.h"

typedef struct sweep_args {
    un_sa_level *l, *next;
} sweep_args;

/* ---- sweeps; each is written once for both sizes of rows ---- */

/* Sweeps wait for memory: they skip parts of rows or go from the last row to the first, which
 * processors do not predict. So data is prefetched this many bytes ahead. 21 iterations on 1.1
 * million tets, one thread: backwards 1.03 s without and 0.43 s with it, forwards 0.63 and 0.38
 * s. */
#define AHEAD 4096

static inline void subtract_block(float *y, const un_sa_level *l, int32_t k, const float *x,
                                  const int s, int64_t ahead)
{
    const float *a = l->val + (size_t)k * s * s;
    for (int byte = 0; byte < s * s * (int)sizeof *a; byte += 64)
        __builtin_prefetch((const void *)((uintptr_t)a + (uintptr_t)(ahead + byte)));
    un_sa_subtract(y, a, x + (size_t)l->col[k] * s, s, s);
}

/* x = (D + R + L)^-1 b inside the block. */
static inline void sweep_forward(un_sa_level *l, int64_t begin, int64_t end, const int s)
{
    for (int64_t i = begin; i < end; i++) {
        float y[UN_SA_MODES];
        for (int c = 0; c < s; c++) y[c] = l->b[i * s + c];
        for (int32_t k = l->row[i]; k < l->upper[i]; k++) subtract_block(y, l, k, l->x, s, AHEAD);
        for (int c = 0; c < s; c++) {
            float sum = 0;
            for (int d = 0; d < s; d++) sum += l->inverse[(i * s + c) * s + d] * y[d];
            l->x[i * s + c] = sum;
        }
    }
}

static void forward_block(void *arg, int64_t begin, int64_t end)
{
    un_sa_level *l = ((sweep_args *)arg)->l;
    if (l->size == 3)
        sweep_forward(l, begin, end, 3);
    else
        sweep_forward(l, begin, end, UN_SA_MODES);
}

/* r = b - A x after that sweep: R x - U x - O x. */
static inline void find_rest(un_sa_level *l, int64_t begin, int64_t end, const int s)
{
    for (int64_t i = begin; i < end; i++) {
        float y[UN_SA_MODES];
        for (int c = 0; c < s; c++) y[c] = l->raise[i * s + c] * l->x[i * s + c];
        for (int32_t k = l->upper[i]; k < l->row[i + 1]; k++)
            subtract_block(y, l, k, l->x, s, AHEAD);
        for (int c = 0; c < s; c++) l->r[i * s + c] = y[c];
    }
}

static void rest_block(void *arg, int64_t begin, int64_t end)
{
    un_sa_level *l = ((sweep_args *)arg)->l;
    if (l->size == 3)
        find_rest(l, begin, end, 3);
    else
        find_rest(l, begin, end, UN_SA_MODES);
}

/* b of the next level: P^T r. The entries of a column are far apart, so those of some rows ahead
 * are prefetched. */
#define SOON 8

static inline void restrict_rows(const un_sa_level *l, un_sa_level *next, int64_t begin,
                                 int64_t end, const int s)
{
    for (int64_t i = begin; i < end; i++) {
        float sum[UN_SA_MODES] = {0};
        int32_t last = l->back_row[i + 1] - 1;
        for (int32_t k = l->back_row[i]; k < l->back_row[i + 1]; k++) {
            const float *p = l->p_val + (size_t)l->back_at[k] * s * UN_SA_MODES;
            const float *r = l->r + (size_t)l->back_fine[k] * s;
            int32_t soon = l->back_at[un_min64(k + SOON, last)];
            for (int c = 0; c < s * UN_SA_MODES; c += 16)
                __builtin_prefetch(l->p_val + (size_t)soon * s * UN_SA_MODES + c);
            for (int c = 0; c < s; c++)
                for (int d = 0; d < UN_SA_MODES; d++) sum[d] += p[c * UN_SA_MODES + d] * r[c];
        }
        for (int d = 0; d < UN_SA_MODES; d++) next->b[i * UN_SA_MODES + d] = sum[d];
    }
}

static void restrict_block(void *arg, int64_t begin, int64_t end)
{
    sweep_args *a = arg;
    if (a->l->size == 3)
        restrict_rows(a->l, a->next, begin, end, 3);
    else
        restrict_rows(a->l, a->next, begin, end, UN_SA_MODES);
}

/* x += P x_next, and a copy of it in r. */
static inline void prolong_rows(un_sa_level *l, const un_sa_level *next, int64_t begin, int64_t end,
                                const int s)
{
    for (int64_t i = begin; i < end; i++) {
        float y[UN_SA_MODES];
        for (int c = 0; c < s; c++) y[c] = l->x[i * s + c];
        for (int32_t k = l->p_row[i]; k < l->p_row[i + 1]; k++) {
            const float *p = l->p_val + (size_t)k * s * UN_SA_MODES;
            const float *x = next->x + (size_t)l->p_col[k] * UN_SA_MODES;
            for (int c = 0; c < s; c++)
                for (int d = 0; d < UN_SA_MODES; d++) y[c] += p[c * UN_SA_MODES + d] * x[d];
        }
        for (int c = 0; c < s; c++) l->x[i * s + c] = l->r[i * s + c] = y[c];
    }
}

static void prolong_block(void *arg, int64_t begin, int64_t end)
{
    sweep_args *a = arg;
    if (a->l->size == 3)
        prolong_rows(a->l, a->next, begin, end, 3);
    else
        prolong_rows(a->l, a->next, begin, end, UN_SA_MODES);
}

static void copy_block(void *arg, int64_t begin, int64_t end)
{
    un_sa_level *l = ((sweep_args *)arg)->l;
    memcpy(l->r + begin * l->size, l->x + begin * l->size,
           (size_t)((end - begin) * l->size) * sizeof *l->x);
}

/* x += (D + R + U)^-1 (b - A x) inside the block; r holds the old x of other blocks. */
static inline void sweep_backward(un_sa_level *l, int64_t begin, int64_t end, const int s)
{
    for (int64_t i = end - 1; i >= begin; i--) {
        float y[UN_SA_MODES];
        for (int c = 0; c < s; c++) y[c] = l->b[i * s + c] + l->raise[i * s + c] * l->x[i * s + c];
        for (int32_t k = l->row[i]; k < l->row[i + 1]; k++)
            subtract_block(y, l, k, k < l->outer[i] ? l->x : l->r, s, -AHEAD);
        for (int c = 0; c < s; c++) {
            float sum = 0;
            for (int d = 0; d < s; d++) sum += l->inverse[(i * s + c) * s + d] * y[d];
            l->x[i * s + c] = sum;
        }
    }
}

static void backward_block(void *arg, int64_t begin, int64_t end)
{
    un_sa_level *l = ((sweep_args *)arg)->l;
    if (l->size == 3)
        sweep_backward(l, begin, end, 3);
    else
        sweep_backward(l, begin, end, UN_SA_MODES);
}

/* ---- the coarsest level ---- */

un_status un_sa_factor(un_sa *sa)
{
    const un_sa_level *l = &sa->level[sa->level_count - 1];
    const int s = l->size;
    size_t n = (size_t)l->n * (size_t)s;
    UN_SA_NEED(sa->ctx, sa->factor, sa->capacity_factor, n * n);
    UN_SA_NEED(sa->ctx, sa->solution, sa->capacity_solution, n);
    double *f = sa->factor;
    memset(f, 0, n * n * sizeof *f);
    for (int32_t i = 0; i < l->n; i++) {
        for (int c = 0; c < s * s; c++)
            f[((size_t)i * s + c / s) * n + (size_t)i * s + c % s] = l->diagonal[i * s * s + c];
        for (int32_t k = l->row[i]; k < l->row[i + 1]; k++)
            for (int c = 0; c < s * s; c++)
                f[((size_t)i * s + c / s) * n + (size_t)l->col[k] * s + c % s] =
                    l->val[(size_t)k * s * s + c];
    }
    /* Cholesky by rows; a row whose pivot is lost has no equation. */
    for (size_t i = 0; i < n; i++) {
        double *row = f + i * n, diagonal = row[i];
        for (size_t j = 0; j < i; j++) {
            const double *other = f + j * n;
            double sum = row[j];
            for (size_t k = 0; k < j; k++) sum -= row[k] * other[k];
            row[j] = sum * other[j];
        }
        double pivot = diagonal;
        for (size_t k = 0; k < i; k++) pivot -= row[k] * row[k];
        row[i] = pivot > 1e-7 * diagonal ? 1 / sqrt(pivot) : 0;
    }
    sa->dense = true;
    return UN_OK;
}

static void solve_dense(un_sa *sa, un_sa_level *l)
{
    size_t n = (size_t)l->n * (size_t)l->size;
    const double *f = sa->factor;
    double *y = sa->solution;
    for (size_t i = 0; i < n; i++) {
        double sum = l->b[i];
        for (size_t k = 0; k < i; k++) sum -= f[i * n + k] * y[k];
        y[i] = sum * f[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        y[i] *= f[i * n + i];
        for (size_t k = 0; k < i; k++) y[k] -= f[i * n + k] * y[i];
    }
    for (size_t i = 0; i < n; i++) l->x[i] = (float)y[i];
}

/* Sweeps on the last level if it is not solved directly: its rows are hardly coupled. */
#define LAST_SWEEPS 4

void un_sa_cycle(un_sa *sa, int32_t index)
{
    un_context *ctx = sa->ctx;
    un_sa_level *l = &sa->level[index];
    bool last = index + 1 == sa->level_count;
    sweep_args a = {l, last ? NULL : l + 1};
    if (last && sa->dense) {
        solve_dense(sa, l);
        return;
    }
    un_parallel_part(ctx, l->own, l->grain, forward_block, &a);
    if (last) {
        for (int sweep = 0; sweep < LAST_SWEEPS; sweep++) {
            un_parallel_part(ctx, l->own, l->grain, copy_block, &a);
            un_sa_know(l, l->r, l->size);
            un_parallel_part(ctx, l->own, l->grain, backward_block, &a);
        }
        return;
    }
    un_sa_know(l, l->x, l->size);
    un_parallel_part(ctx, l->own, l->grain, rest_block, &a);
    un_sa_know(l, l->r, l->size);
    un_parallel_part(ctx, l->made, a.next->grain, restrict_block, &a);
    un_sa_go_down(sa, index);
    un_sa_cycle(sa, index + 1);
    un_sa_come_up(sa, index);
    un_parallel_part(ctx, l->own, l->grain, prolong_block, &a);
    un_sa_know(l, l->r, l->size);
    un_parallel_part(ctx, l->own, l->grain, backward_block, &a);
}

/* ---- the largest eigenvalue of D^-1 A ---- */

#define POWER_STEPS 6
/* So few steps underestimate it. */
#define POWER_SAFETY 1.15

/* x = D^-1 (A r), and x.x. */
static inline double multiply(un_sa_level *l, int64_t begin, int64_t end, double norm, const int s)
{
    for (int64_t i = begin; i < end; i++) {
        float y[UN_SA_MODES] = {0};
        un_sa_subtract(y, l->diagonal + i * s * s, l->r + i * s, s, s);
        for (int32_t k = l->row[i]; k < l->row[i + 1]; k++)
            un_sa_subtract(y, l->val + (size_t)k * s * s, l->r + (size_t)l->col[k] * s, s, s);
        for (int c = 0; c < s; c++) {
            float sum = 0;
            for (int d = 0; d < s; d++) sum -= l->plain[(i * s + c) * s + d] * y[d];
            l->x[i * s + c] = sum;
            norm += (double)sum * (double)sum;
        }
    }
    return norm;
}

static void multiply_rows(void *arg, int64_t begin, int64_t end, double *norm)
{
    un_sa_level *l = arg;
    *norm = l->size == 3 ? multiply(l, begin, end, *norm, 3)
                         : multiply(l, begin, end, *norm, UN_SA_MODES);
}

static double multiply_all(un_sa *sa, un_sa_level *l)
{
    un_range rows = {l->own.begin, l->own.end, l->n};
    double norm;
    un_sa_know(l, l->r, l->size);
    if (l->cut)
        un_ranks_sums(sa->ctx, rows, 1, multiply_rows, l, &norm);
    else
        un_parallel_sums(sa->ctx, l->n, 1, multiply_rows, l, &norm);
    return norm;
}

double un_sa_spectral_radius(un_sa *sa, int32_t index)
{
    un_sa_level *l = &sa->level[index];
    int64_t n = (int64_t)l->n * l->size, begin = l->own.begin * l->size, end = l->own.end * l->size;
    double norm = 0, radius = 1;
    for (int64_t i = 0; i < n; i++) {
        float r = (float)(un_random((uint64_t)i, 7) - 0.5);
        if (i >= begin && i < end) l->r[i] = r;
        norm += (double)r * (double)r;
    }
    for (int step = 0; step < POWER_STEPS && norm > 0; step++) {
        double next = multiply_all(sa, l);
        radius = sqrt(next / norm);
        float scale = (float)(1 / sqrt(next));
        for (int64_t i = begin; i < end; i++) l->r[i] = l->x[i] * scale;
        norm = 1;
        if (!(next > 0) || !isfinite(next)) return 2;
    }
    return POWER_SAFETY * radius;
}
