/* A few columns beside a sparse matrix: A + C C^T, never formed.
 *
 * C C^T x takes two sparse products. C^T x is a sum along each column; the second product is
 * gathered row by row, so that each row is written once and in the same order for any number of
 * threads.
 *
 * A preconditioner M of A alone is a poor one for the sum: each column adds a large eigenvalue, the
 * larger the lighter the body. Woodbury's formula corrects it,
 *
 *     (M + C C^T)^-1 = M^-1 - V (1 + C^T V)^-1 C^T M^-1,   V = M^-1 C
 *
 * with one application of M^-1 per column at the start (two if M varies, see solver.c); V is kept.
 * If M is symmetric positive definite, so is this, and it is as good for A + C C^T as M is for A.
 * If M varies, as a K-cycle does, 1 + C^T V is made symmetric; if it is not positive definite, M is
 * used without the correction. Columns that are weak are left out of it: each would cost more than
 * the iterations that it saves. */
#include "linalg/columns.h"

void un_column_work_free(un_column_work *w)
{
    void *blocks[] = {w->touched, w->start, w->which, w->val, w->t, w->place, w->v, w->factor};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(w->ctx, blocks[i]);
}

un_status un_columns_prepare(un_column_work *w, const un_columns *c, const un_components *parts,
                             bool *finite)
{
    un_context *ctx = w->ctx;
    size_t entries = (size_t)c->first[c->count], rows = (size_t)parts->n;
    un_part own = un_spread_part(w->spread, parts->n);
    size_t touched = entries < rows ? entries : rows;
    UN_TRY(
        un_array_need(ctx, (void **)&w->touched, &w->capacity[0], touched + 1, sizeof *w->touched));
    UN_TRY(un_array_need(ctx, (void **)&w->start, &w->capacity[1], touched + 1, sizeof *w->start));
    UN_TRY(un_array_need(ctx, (void **)&w->which, &w->capacity[2], entries + 1, sizeof *w->which));
    UN_TRY(un_array_need(ctx, (void **)&w->val, &w->capacity[3], entries + 1, sizeof *w->val));
    UN_TRY(un_array_need(ctx, (void **)&w->t, &w->capacity[4], (size_t)c->count, sizeof *w->t));
    UN_TRY(un_array_need(ctx, (void **)&w->place, &w->capacity[5], rows, sizeof *w->place));
    /* counts by row, then where a row's next entry goes */
    memset(w->place, 0, rows * sizeof *w->place);
    double all = 0;
    for (size_t e = 0; e < entries; e++) {
        UN_ASSERT(c->row[e] >= 0 && c->row[e] < parts->n);
        all += c->val[e];
        if (c->row[e] < own.begin || c->row[e] >= own.end) continue;
        /* rows that are empty in the matrix have no equation */
        if (parts->singular_count == 0 || parts->code[c->row[e]] != UN_EMPTY) w->place[c->row[e]]++;
    }
    if (!isfinite(all)) *finite = false;
    int32_t count = 0, at = 0;
    for (int32_t i = 0; i < parts->n; i++) {
        int32_t here = w->place[i];
        w->place[i] = here > 0 ? at : -1;
        if (here == 0) continue;
        w->touched[count] = i;
        w->start[count++] = at;
        at += here;
    }
    w->start[count] = at;
    w->touched_count = count;
    for (int32_t k = 0; k < c->count; k++)
        for (int32_t e = c->first[k]; e < c->first[k + 1]; e++) {
            int32_t *place = &w->place[c->row[e]];
            if (*place < 0) continue;
            w->which[*place] = k;
            w->val[(*place)++] = c->val[e];
        }
    w->c = c;
    w->n = parts->n;
    return UN_OK;
}

/* Others' values in rows of the columns. */
static void share(const un_column_work *w, const double *x)
{
    if (w->spread) un_halo_share(w->spread->pushed, (double *)x, sizeof *x);
}

typedef struct args {
    un_column_work *w;
    const double *x;
    double *y, sign;
} args;

static double column_dot(const un_columns *c, int32_t k, const double *x)
{
    double sum = 0;
    for (int32_t e = c->first[k]; e < c->first[k + 1]; e++) sum += c->val[e] * x[c->row[e]];
    return sum;
}

/* t = C^T x. */
static void dot_columns(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t k = begin; k < end; k++) a->w->t[k] = column_dot(a->w->c, (int32_t)k, a->x);
}

/* y += sign C t. */
static void add_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_column_work *w = a->w;
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int32_t e = w->start[i]; e < w->start[i + 1]; e++)
            sum += w->val[e] * w->t[w->which[e]];
        a->y[w->touched[i]] += a->sign * sum;
    }
}

double un_columns_apply(un_column_work *w, double *y, const double *x, double sign)
{
    args a = {w, x, y, sign};
    double square = 0;
    share(w, x);
    un_parallel_for(w->ctx, w->c->count, 1, dot_columns, &a);
    un_parallel_for(w->ctx, w->touched_count, 2048, add_rows, &a);
    for (int32_t k = 0; k < w->c->count; k++) square += w->t[k] * w->t[k];
    return square;
}

/* ---- the correction ---- */

/* Columns that are corrected for. */
static int32_t strong_count(const un_column_work *w)
{
    return w->c->count - w->weak;
}

un_status un_columns_begin(un_column_work *w)
{
    size_t count = (size_t)strong_count(w);
    w->corrected = false;
    UN_TRY(
        un_array_need(w->ctx, (void **)&w->v, &w->capacity[6], count * (size_t)w->n, sizeof *w->v));
    return un_array_need(w->ctx, (void **)&w->factor, &w->capacity[7], count * count,
                         sizeof *w->factor);
}

double *un_columns_spread(un_column_work *w, int32_t k, double *dense)
{
    const un_columns *c = w->c;
    un_part own = un_spread_part(w->spread, w->n);
    memset(dense + own.begin, 0, (size_t)(own.end - own.begin) * sizeof *dense);
    for (int32_t e = c->first[k]; e < c->first[k + 1]; e++)
        if (w->place[c->row[e]] >= 0) dense[c->row[e]] = c->val[e];
    return w->v + (size_t)k * (size_t)w->n;
}

/* Cholesky, in the lower half. */
static bool factorize(double *s, int32_t count)
{
    for (int32_t j = 0; j < count; j++) {
        double *row = s + (size_t)j * (size_t)count;
        for (int32_t k = 0; k <= j; k++) {
            const double *other = s + (size_t)k * (size_t)count;
            double sum = row[k];
            for (int32_t i = 0; i < k; i++) sum -= row[i] * other[i];
            if (k == j && (!(sum > 0) || !isfinite(sum))) return false;
            row[k] = k == j ? sqrt(sum) : sum / other[k];
        }
    }
    return true;
}

void un_columns_end(un_column_work *w)
{
    int32_t count = strong_count(w);
    double *s = w->factor;
    for (int32_t k = 0; k < count; k++) share(w, w->v + (size_t)k * (size_t)w->n);
    for (int32_t k = 0; k < count; k++)
        for (int32_t l = 0; l < count; l++)
            s[(size_t)k * (size_t)count + (size_t)l] =
                column_dot(w->c, k, w->v + (size_t)l * (size_t)w->n);
    for (int32_t k = 0; k < count; k++)
        for (int32_t l = 0; l <= k; l++) {
            double *here = &s[(size_t)k * (size_t)count + (size_t)l];
            *here = 0.5 * (*here + s[(size_t)l * (size_t)count + (size_t)k]) + (k == l);
        }
    w->corrected = factorize(s, count);
}

/* z -= V t. */
static void subtract_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_column_work *w = a->w;
    for (int32_t k = 0; k < strong_count(w); k++) {
        const double *v = w->v + (size_t)k * (size_t)w->n;
        double t = w->t[k];
        for (int64_t i = begin; i < end; i++) a->y[i] -= t * v[i];
    }
}

void un_columns_correct(un_column_work *w, double *z)
{
    args a = {.w = w, .x = z, .y = z};
    int32_t count = strong_count(w);
    double *t = w->t;
    const double *l = w->factor;
    if (!w->corrected) return;
    share(w, z);
    un_parallel_for(w->ctx, count, 1, dot_columns, &a);
    for (int32_t k = 0; k < count; k++) {
        for (int32_t i = 0; i < k; i++) t[k] -= l[(size_t)k * (size_t)count + (size_t)i] * t[i];
        t[k] /= l[(size_t)k * (size_t)count + (size_t)k];
    }
    for (int32_t k = count - 1; k >= 0; k--) {
        for (int32_t i = k + 1; i < count; i++)
            t[k] -= l[(size_t)i * (size_t)count + (size_t)k] * t[i];
        t[k] /= l[(size_t)k * (size_t)count + (size_t)k];
    }
    un_parallel_part(w->ctx, un_spread_part(w->spread, w->n), un_block_grain(w->n), subtract_rows,
                     &a);
}
