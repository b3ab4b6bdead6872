/* Plain-aggregation multigrid with K-cycle, a preconditioner [Notay 2010].
 *
 * Coarse unknowns are aggregates of about eight rows, prolongation is constant on each, so coarse
 * matrices are sums of entries and set-up is cheap. Plain aggregation underestimates smooth
 * corrections; the K-cycle mends that: on each coarse level one or two steps of flexible conjugate
 * gradients, preconditioned by the levels below. The hierarchy is in floats: a preconditioner needs
 * no more, and memory traffic is what a solve costs. */
#include "linalg/amg.h"

/* Levels of no more rows are solved directly. */
#define DENSE_ROWS 200
/* Coarsening that keeps more than this share of the rows is not worth another level. */
#define COARSENING_MIN 0.8
/* A second step is taken on a coarse level unless the first reduced the residual this much. */
#define ENOUGH 0.25

/* ---- set-up ---- */

static double largest_diagonal(void *arg, int64_t begin, int64_t end)
{
    const un_csr *a = arg;
    double max = 0;
    for (int64_t i = begin; i < end; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] == i) max = fmax(max, a->val[k]);
    return max;
}

static un_status setup(void *state, const un_csr *a)
{
    un_amg *amg = state;
    amg->a = a;
    amg->level_count = 0;
    amg->dense = false;
    amg->residual_scale = 0;
    int exponent = 0;
    double most = un_parallel_max(amg->ctx, a->n, largest_diagonal, (void *)a);
    if (most > 0) frexp(most, &exponent);
    /* The largest diagonal becomes about 1e9: floats then span 30 orders below it. */
    amg->scale = ldexp(1, 30 - exponent);
    un_amg_graph g = {
        .n = a->n, .row = a->row, .col = a->col, .val_a = a->val, .scale = amg->scale};
    for (int32_t l = 0; l < UN_AMG_LEVELS_MAX; l++) {
        un_amg_level *level = &amg->level[l];
        if (l > 0 && g.n <= DENSE_ROWS) {
            UN_AMG_NEED(amg->ctx, level->b, level->capacity[5], g.n);
            UN_AMG_NEED(amg->ctx, level->x, level->capacity[6], g.n);
            level->n = g.n;
            amg->dense = true;
            amg->level_count = l + 1;
            return un_amg_factor(amg, &g);
        }
        UN_TRY(un_amg_build_level(amg, level, &g, l == 0));
        if (l == 0) g.excess = level->x;
        amg->level_count = l + 1;
        int32_t coarse_count;
        UN_TRY(un_amg_aggregate(amg, level, &g, &coarse_count));
        if (coarse_count == 0 || coarse_count > COARSENING_MIN * level->n) break;
        un_amg_graph coarse;
        UN_TRY(un_amg_build_coarse(amg, level, &g, coarse_count, l % 2, &coarse));
        g = coarse;
    }
    return UN_OK;
}

/* ---- the cycle ---- */

static void correct(un_amg *amg, int32_t l, un_amg_correction *correction);

/* x = B b: a sweep down, the coarse levels' correction, a sweep up. */
static void cycle(un_amg *amg, int32_t l, float *x, const float *b, float *scratch)
{
    un_amg_level *level = &amg->level[l];
    if (l == amg->level_count - 1) {
        un_amg_sweep_down(amg->ctx, level, x, b, NULL);
        un_amg_sweep_up(amg->ctx, level, x, b, scratch, NULL);
        return;
    }
    un_amg_correction correction;
    un_amg_sweep_down(amg->ctx, level, x, b, amg->level[l + 1].b);
    correct(amg, l + 1, &correction);
    un_amg_sweep_up(amg->ctx, level, x, b, scratch, &correction);
}

/* About A_l^-1 b as s y + t z: one or two steps of flexible CG [Notay 2008, algorithm 3.2]. */
static void correct(un_amg *amg, int32_t l, un_amg_correction *out)
{
    un_amg_level *level = &amg->level[l];
    *out = (un_amg_correction){.y = level->x, .s = 1};
    if (amg->dense && l == amg->level_count - 1) {
        un_amg_solve_dense(amg, level->n, level->x, level->b);
        return;
    }
    double sums[4];
    cycle(amg, l, level->x, level->b, level->v);
    un_amg_apply(amg->ctx, level, level->v, level->x, level->b, NULL, sums);
    double rho1 = sums[0], alpha1 = sums[1], bb = sums[2];
    if (!(rho1 > 0)) return;
    out->s = (float)(alpha1 / rho1);
    double rr = un_amg_subtract(amg->ctx, level, level->b, level->v, alpha1 / rho1);
    if (!(rr > ENOUGH * ENOUGH * bb)) return;
    cycle(amg, l, level->y, level->b, level->w);
    un_amg_apply(amg->ctx, level, level->w, level->y, level->b, level->v, sums);
    double beta = sums[0], alpha2 = sums[1], gamma = sums[3];
    double rho2 = beta - gamma * gamma / rho1;
    if (!(rho2 > 0)) return;
    out->s = (float)(alpha1 / rho1 - gamma * alpha2 / (rho1 * rho2));
    out->z = level->y;
    out->t = (float)(alpha2 / rho2);
}

/* ---- the preconditioner ---- */

typedef struct convert {
    const un_amg *amg;
    double *z;
    const double *r;
    double scale;
} convert;

static double largest(void *arg, int64_t begin, int64_t end)
{
    const double *r = arg;
    double max = 0;
    for (int64_t i = begin; i < end; i++) max = fabs(r[i]) > max ? fabs(r[i]) : max;
    return max;
}

static void to_float(void *arg, int64_t begin, int64_t end)
{
    convert *p = arg;
    float *b = p->amg->level[0].b;
    for (int64_t i = begin; i < end; i++) b[i] = (float)(p->r[i] * p->scale);
}

static void to_double(void *arg, int64_t begin, int64_t end)
{
    convert *p = arg;
    const un_csr *a = p->amg->a;
    const float *x = p->amg->level[0].x, *inverse = p->amg->level[0].inverse;
    double scale = p->scale > 0 ? p->amg->scale / p->scale : 0;
    for (int64_t i = begin; i < end; i++) {
        p->z[i] = x[i] * scale;
        if (inverse[i] != 0) continue;
        /* no equation, or one too small for floats */
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] == i) p->z[i] = a->val[k] > 0 ? p->r[i] / a->val[k] : 0;
    }
}

static void apply(void *state, double *z, const double *r)
{
    un_amg *amg = state;
    un_amg_level *finest = &amg->level[0];
    if (amg->residual_scale == 0) {
        double most = un_parallel_max(amg->ctx, amg->a->n, largest, (void *)r);
        if (most > 0 && isfinite(most)) amg->residual_scale = 1 / most;
    }
    convert p = {amg, z, r, amg->residual_scale};
    int64_t grain = un_block_grain(finest->n);
    un_parallel_for(amg->ctx, finest->n, grain, to_float, &p);
    cycle(amg, 0, finest->x, finest->b, finest->b);
    un_parallel_for(amg->ctx, finest->n, grain, to_double, &p);
}

static void destroy(void *state)
{
    un_amg *amg = state;
    if (!amg) return;
    for (int l = 0; l < UN_AMG_LEVELS_MAX; l++) {
        un_amg_level *level = &amg->level[l];
        void *blocks[] = {
            level->row,       level->col,         level->val,       level->outer_first,
            level->outer_id,  level->outer_row,   level->outer_col, level->outer_val,
            level->outer_sum, level->outer_raise, level->diagonal,  level->inverse,
            level->aggregate, level->first,       level->b,         level->x,
            level->v,         level->w,           level->y};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(amg->ctx, blocks[i]);
    }
    for (int s = 0; s < 2; s++) {
        void *blocks[] = {amg->full[s].row, amg->full[s].col, amg->full[s].val,
                          amg->full[s].excess};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(amg->ctx, blocks[i]);
    }
    void *blocks[] = {amg->factor, amg->solution, amg->member_first, amg->member, amg->marker};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(amg->ctx, blocks[i]);
    un_free(amg->ctx, amg);
}

un_status un_amg_create(un_context *ctx, un_preconditioner *preconditioner)
{
    un_amg *amg = un_alloc_zero(ctx, 1, sizeof *amg);
    if (!amg) return UN_ERROR_MEMORY;
    amg->ctx = ctx;
    *preconditioner = (un_preconditioner){amg, setup, apply, destroy, true};
    return UN_OK;
}
