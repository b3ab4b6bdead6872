/* Sweeps over a level of the aggregation multigrid.
 *
 * The smoother is M = D' + L, where L is the lower part inside each block of rows: a forward sweep
 * before the coarse correction, and its transpose, a backward sweep, after it. With E the couplings
 * between blocks, M + M^T - A = 2 D' - D - E. Sweeps converge if that is positive definite, so D'
 * is the diagonal, raised where a row of E nearly exceeds it [after Baker, Falgout, Kolev & Yang
 * 2011].
 *
 * A level stores L, not its transpose U: the entries of row i of L are also used the other way,
 * from row i to the earlier rows. */
#include "linalg/amg.h"

typedef struct sweep {
    const un_amg_level *level;
    float *x, *scratch, *coarse, *rest;
    const float *b;
    const un_amg_correction *correction;
    /* sums by block */
    const float *w;
    double (*partial)[4];
    double s;
} sweep;

static inline float outer_row(const un_amg_level *level, const float *x, int32_t k)
{
    float sum = 0;
    for (int32_t e = level->outer_row[k]; e < level->outer_row[k + 1]; e++)
        sum += level->outer_val[e] * x[level->outer_col[e]];
    return sum;
}

/* ---- down: from zero (D' + L) x = b, so that b - A x = (D' - D) x - U x - outer x ---- */

static void down_block(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    const int32_t *row = level->row + begin / level->grain, *col = level->col;
    const int32_t *aggregate = level->aggregate;
    const float *val = level->val, *inverse = level->inverse, *b = s->b;
    float *x = s->x, *coarse = s->coarse;
    if (coarse) {
        int64_t block = begin / level->grain;
        for (int32_t c = level->first[block]; c < level->first[block + 1]; c++) coarse[c] = 0;
    }
    for (int64_t i = begin; i < end && s->rest; i++) {
        float sum = b[i], *rest = s->rest;
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum -= val[k] * x[col[k]];
        sum *= inverse[i];
        x[i] = sum;
        rest[i] = 0;
        for (int32_t k = row[i]; k < row[i + 1]; k++) rest[col[k]] -= val[k] * sum;
    }
    for (int64_t i = begin; i < end && !s->rest; i++) {
        float sum = b[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum -= val[k] * x[col[k]];
        sum *= inverse[i];
        x[i] = sum;
        if (!coarse) continue;
        for (int32_t k = row[i]; k < row[i + 1]; k++) {
            int32_t c = aggregate[col[k]];
            if (c >= 0) coarse[c] -= val[k] * sum;
        }
    }
}

/* Subtracts the couplings to other blocks, once all of x is known. */
static void down_outer(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    (void)end;
    int64_t block = begin / level->grain;
    for (int32_t k = level->outer_first[block]; k < level->outer_first[block + 1]; k++) {
        int32_t i = level->outer_id[k], c = level->aggregate[i];
        float change = level->outer_raise[k] * s->x[i] - outer_row(level, s->x, k);
        if (s->rest)
            s->rest[i] += change;
        else if (c >= 0)
            s->coarse[c] += change;
    }
}

void un_amg_sweep_down(un_context *ctx, const un_amg_level *level, float *x, const float *b,
                       float *coarse, float *rest)
{
    sweep s = {.level = level, .x = x, .b = b, .coarse = coarse, .rest = rest};
    un_amg_for_blocks(ctx, level, down_block, &s);
    if ((!coarse && !rest) || level->n <= level->grain) return;
    un_halo_share(level->near, x, sizeof *x);
    un_amg_for_blocks(ctx, level, down_outer, &s);
}

/* ---- up: x_i = (b_i - U x_new - L x_old - outer x_old + (d' - d) x_old) / d' ---- */

static void correct_block(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const int32_t *aggregate = s->level->aggregate;
    const un_amg_correction *p = s->correction;
    for (int64_t i = begin; i < end; i++) {
        int32_t c = aggregate[i];
        if (c < 0) continue;
        s->x[i] += p->z ? p->s * p->y[c] + p->t * p->z[c] : p->s * p->y[c];
    }
}

static void up_outer(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    (void)end;
    int64_t block = begin / level->grain;
    for (int32_t k = level->outer_first[block]; k < level->outer_first[block + 1]; k++)
        level->outer_sum[k] =
            level->outer_raise[k] * s->x[level->outer_id[k]] - outer_row(level, s->x, k);
}

static void up_block(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    const int32_t *row = level->row + begin / level->grain, *col = level->col;
    const float *val = level->val, *inverse = level->inverse;
    float *x = s->x, *rest = s->scratch;
    int64_t block = begin / level->grain;
    if (rest != s->b) memcpy(rest + begin, s->b + begin, (size_t)(end - begin) * sizeof *rest);
    for (int32_t k = level->outer_first[block]; k < level->outer_first[block + 1]; k++)
        rest[level->outer_id[k]] += level->outer_sum[k];
    for (int64_t i = end - 1; i >= begin; i--) {
        float sum = rest[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum -= val[k] * x[col[k]];
        sum *= inverse[i];
        x[i] = sum;
        for (int32_t k = row[i]; k < row[i + 1]; k++) rest[col[k]] -= val[k] * sum;
    }
}

void un_amg_sweep_up(un_context *ctx, const un_amg_level *level, float *x, const float *b,
                     float *scratch, const un_amg_correction *correction)
{
    sweep s = {.level = level, .x = x, .b = b, .scratch = scratch, .correction = correction};
    if (correction) un_amg_for_blocks(ctx, level, correct_block, &s);
    if (level->n > level->grain) {
        un_halo_share(level->near, x, sizeof *x);
        un_amg_for_blocks(ctx, level, up_outer, &s);
    }
    un_amg_for_blocks(ctx, level, up_block, &s);
}

/* ---- products, summed in block order ---- */

static void apply_block(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    const int32_t *row = level->row + begin / level->grain, *col = level->col;
    const float *val = level->val, *x = s->x, *b = s->b, *w = s->w;
    float *v = s->scratch;
    int64_t block = begin / level->grain;
    for (int64_t i = begin; i < end; i++) v[i] = level->diagonal[i] * x[i];
    for (int32_t k = level->outer_first[block]; k < level->outer_first[block + 1]; k++)
        v[level->outer_id[k]] += outer_row(level, x, k);
    for (int64_t i = begin; i < end; i++) {
        float sum = v[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) {
            sum += val[k] * x[col[k]];
            v[col[k]] += val[k] * x[i];
        }
        v[i] = sum;
    }
    double xv = 0, xb = 0, bb = 0, xw = 0;
    for (int64_t i = begin; i < end; i++) {
        xv += (double)x[i] * v[i];
        xb += (double)x[i] * b[i];
        bb += (double)b[i] * b[i];
        if (w) xw += (double)x[i] * w[i];
    }
    double *partial = s->partial[block];
    partial[0] = xv, partial[1] = xb, partial[2] = bb, partial[3] = xw;
}

/* Over ranks, those of the others' blocks come from them. */
static void clear_partial(const un_amg_level *level, double (*partial)[4])
{
    if (level->cut) memset(partial, 0, (size_t)un_amg_blocks(level) * sizeof *partial);
}

static void share_partial(un_context *ctx, const un_amg_level *level, double (*partial)[4])
{
    if (level->cut) un_ranks_add(ctx, partial[0], 4 * un_amg_blocks(level));
}

void un_amg_apply(un_context *ctx, const un_amg_level *level, float *v, const float *x,
                  const float *b, const float *w, double sums[4])
{
    double partial[UN_AMG_BLOCKS_MAX][4];
    sweep s = {.level = level, .x = (float *)x, .b = b, .w = w, .scratch = v, .partial = partial};
    un_halo_share(level->near, (float *)x, sizeof *x);
    clear_partial(level, partial);
    un_amg_for_blocks(ctx, level, apply_block, &s);
    share_partial(ctx, level, partial);
    for (int q = 0; q < 4; q++) sums[q] = 0;
    for (int64_t k = 0; k < un_amg_blocks(level); k++)
        for (int q = 0; q < 4; q++) sums[q] += partial[k][q];
}

static void residual_block(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    const int32_t *row = level->row + begin / level->grain, *col = level->col;
    const float *val = level->val, *x = s->x;
    float *rest = s->rest;
    int64_t block = begin / level->grain;
    for (int64_t i = begin; i < end; i++) rest[i] = s->b[i] - level->diagonal[i] * x[i];
    for (int32_t k = level->outer_first[block]; k < level->outer_first[block + 1]; k++)
        rest[level->outer_id[k]] -= outer_row(level, x, k);
    for (int64_t i = begin; i < end; i++) {
        float sum = rest[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) {
            sum -= val[k] * x[col[k]];
            rest[col[k]] -= val[k] * x[i];
        }
        rest[i] = sum;
    }
}

/* The same by differences, b_i - excess_i x_i - sum a_ij (x_j - x_i): exact for a constant however
 * large, of which a tank that is all but closed has much. Products with the diagonal would leave
 * it to round-off. */
static void residual_by_differences(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    const un_amg_level *level = s->level;
    const int32_t *row = level->row + begin / level->grain, *col = level->col;
    const float *val = level->val, *x = s->x;
    float *rest = s->rest;
    int64_t block = begin / level->grain;
    for (int64_t i = begin; i < end; i++) rest[i] = s->b[i] - level->excess[i] * x[i];
    for (int32_t k = level->outer_first[block]; k < level->outer_first[block + 1]; k++) {
        float sum = 0, own = x[level->outer_id[k]];
        for (int32_t e = level->outer_row[k]; e < level->outer_row[k + 1]; e++)
            sum += level->outer_val[e] * (x[level->outer_col[e]] - own);
        rest[level->outer_id[k]] -= sum;
    }
    for (int64_t i = begin; i < end; i++) {
        float sum = rest[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) {
            float change = val[k] * (x[col[k]] - x[i]);
            sum -= change;
            rest[col[k]] += change;
        }
        rest[i] = sum;
    }
}

void un_amg_residual(un_context *ctx, const un_amg_level *level, float *rest, const float *x,
                     const float *b)
{
    sweep s = {.level = level, .x = (float *)x, .b = b, .rest = rest};
    un_halo_share(level->near, (float *)x, sizeof *x);
    un_amg_for_blocks(ctx, level, level->excess ? residual_by_differences : residual_block, &s);
}

static void add_rows(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    for (int64_t i = begin; i < end; i++) s->x[i] += s->b[i];
}

void un_amg_add(un_context *ctx, const un_amg_level *level, float *x, const float *y)
{
    sweep s = {.x = x, .b = y};
    un_parallel_part(ctx, level->own, un_block_grain(level->n), add_rows, &s);
}

static void subtract_block(void *arg, int64_t begin, int64_t end)
{
    const sweep *s = arg;
    float *b = s->x, factor = (float)s->s;
    const float *v = s->b;
    double bb = 0;
    for (int64_t i = begin; i < end; i++) {
        b[i] -= factor * v[i];
        bb += (double)b[i] * b[i];
    }
    s->partial[begin / s->level->grain][0] = bb;
}

double un_amg_subtract(un_context *ctx, const un_amg_level *level, float *b, const float *v,
                       double factor)
{
    double partial[UN_AMG_BLOCKS_MAX][4], sum = 0;
    sweep s = {.level = level, .x = b, .b = v, .s = factor, .partial = partial};
    clear_partial(level, partial);
    un_amg_for_blocks(ctx, level, subtract_block, &s);
    share_partial(ctx, level, partial);
    for (int64_t k = 0; k < un_amg_blocks(level); k++) sum += partial[k][0];
    return sum;
}
