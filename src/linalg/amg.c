/* Multigrid as a preconditioner: the hierarchy and the cycles of four schemes.
 *
 * Plain aggregation with K-cycle [Notay 2010]. Coarse unknowns are aggregates of about eight rows,
 * prolongation is constant on each, so coarse matrices are sums of entries and set-up is cheap.
 * Plain aggregation underestimates smooth corrections. The K-cycle makes up for that: on each
 * coarse level it takes one or two steps of flexible conjugate gradients, preconditioned by the
 * levels below.
 *
 * Smoothed aggregation (amg_smoothed.c) and transfers along a lattice (amg_geometric.c) interpolate
 * better, so a V- or W-cycle with one sweep before and one after the coarse correction is enough.
 *
 * The scheme of [Chentanez07 section 3.5] (amg_chentanez.c) averages; its full cycle solves on the
 * coarsest level first and adds a V-cycle on each finer one. Before and after each correction, the
 * paper makes two Gauss-Seidel iterations; here they are a forward and a backward sweep.
 *
 * The hierarchy is in floats: that is accurate enough for a preconditioner, and the cost of a solve
 * is memory traffic. */
#include "linalg/amg.h"

/* Levels of at most this many rows are solved directly. */
#define DENSE_ROWS 200
/* If coarsening keeps more than this share of the rows, another level is not worth it. */
#define COARSENING_MIN 0.8
/* A coarse level takes a second step unless the first reduced the residual to this share. */
#define ENOUGH 0.25
/* Rows of an aggregate. Smaller aggregates need fewer iterations, which cost more each: to 1e-4 on
 * a million nodes of graded tets 9 iterations and 1.04 s with 6, 10 and 0.95 s with 8, 10 and 0.89
 * s with 10. Grids do best with cubes (184,000 cells: 13, 10 and 19 iterations). */
#define PLAIN_SIZE 8
#define SMOOTHED_SIZE 20

/* Geometric cycles: this many levels below the finest are corrected twice; each costs an eighth of
 * the one above, or less. To 1e-4, two threads, tet-256, even-132 and uniform-170 of
 * bench/solvers.py: 7, 7 and 8 iterations, 0.31, 0.26 and 0.24 s with none, 6, 6 and 6, 0.30, 0.23
 * and 0.20 s with one, 5, 6 and 6, 0.28, 0.23 and 0.21 s with two. */
#define TWICE 2

/* ---- set-up ---- */

/* The next level: its matrix, and P unless it is plain aggregation. */
static un_status coarsen(un_amg *amg, int32_t l, const un_amg_graph *g, un_amg_graph *coarse,
                         int32_t *coarse_count)
{
    un_amg_level *level = &amg->level[l];
    un_amg_transfer *transfer = &amg->transfer[l];
    const float *diagonal = level->diagonal ? level->diagonal : level->b;
    switch (amg->scheme) {
    case UN_AMG_PLAIN:
        if (level->cut) UN_TRY(un_amg_know_beside(amg, l, g));
        UN_TRY(un_amg_aggregate(amg, level, g, coarse_count));
        break;
    case UN_AMG_SMOOTHED:
        UN_TRY(un_amg_smooth_transfer(amg, l, g, diagonal, coarse_count));
        break;
    case UN_AMG_CHENTANEZ:
        UN_TRY(un_amg_average_transfer(amg, l, g, coarse_count));
        break;
    case UN_AMG_GEOMETRIC:
        UN_TRY(un_amg_geometric_transfer(amg, l, g, diagonal, coarse_count));
        break;
    }
    if (*coarse_count == 0 || *coarse_count > COARSENING_MIN * level->n) {
        *coarse_count = 0;
        return UN_OK;
    }
    if (amg->scheme == UN_AMG_PLAIN)
        return un_amg_build_coarse(amg, level, g, *coarse_count, l % 2, coarse);
    if (amg->scheme == UN_AMG_GEOMETRIC)
        return un_amg_build_edges(amg, level, &amg->means[l], g->excess, *coarse_count, l % 2,
                                  coarse);
    return un_amg_build_galerkin(amg, transfer, g, diagonal, *coarse_count, l % 2, coarse);
}

static un_status setup(void *state, const un_csr *a, const un_sites *sites, double largest)
{
    un_amg *amg = state;
    amg->a = a;
    amg->sites = *sites;
    amg->level_count = 0;
    amg->dense = false;
    amg->residual_scale = 0;
    un_amg_forget_ranks(amg);
    int exponent = 0;
    if (largest > 0) frexp(largest, &exponent);
    /* The largest diagonal becomes about 1e9: floats then span 30 orders below it. */
    amg->scale = ldexp(1, 30 - exponent);
    un_amg_graph g = {
        .n = a->n, .row = a->row, .col = a->col, .val_a = a->val, .scale = amg->scale};
    for (int32_t l = 0; l < UN_AMG_LEVELS_MAX; l++) {
        un_amg_level *level = &amg->level[l];
        if (l > 0 && g.n <= DENSE_ROWS) {
            UN_AMG_NEED(amg->ctx, level->b, level->capacity[5], g.n);
            UN_AMG_NEED(amg->ctx, level->x, level->capacity[6], g.n);
            UN_AMG_NEED(amg->ctx, level->y, level->capacity[9], g.n);
            level->n = g.n;
            amg->dense = true;
            amg->level_count = l + 1;
            return un_amg_factor(amg, &g);
        }
        if (l == 0 && amg->spread) {
            level->own = (un_part){amg->spread->rows.begin, amg->spread->rows.end};
            level->cut = amg->spread->cut;
        }
        UN_TRY(un_amg_build_level(amg, level, &g, l == 0));
        if (l == 0) g.excess = level->excess ? level->excess : level->x;
        amg->level_count = l + 1;
        int32_t coarse_count;
        un_amg_graph coarse;
        UN_TRY(coarsen(amg, l, &g, &coarse, &coarse_count));
        if (coarse_count == 0) break;
        if (level->cut)
            UN_TRY(un_amg_divide_next(amg, l, &amg->full[l % 2], 1 - l % 2, coarse_count));
        g = coarse;
    }
    return UN_OK;
}

/* ---- the cycle ---- */

static void correct(un_amg *amg, int32_t l, un_amg_correction *correction);

/* The next level's b to the ranks that have its rows there. */
static void to_next(un_amg *amg, const un_amg_level *level)
{
    float *b = level[1].b;
    if (level->gather)
        un_halo_spread(amg->ctx, level->gather, b, sizeof *b);
    else
        un_halo_share(level->down, b, sizeof *b);
}

/* x = B b: a sweep on the way down, the correction from the coarse levels, a sweep on the way
 * up. */
static void cycle(un_amg *amg, int32_t l, float *x, const float *b, float *scratch)
{
    un_amg_level *level = &amg->level[l];
    if (l == amg->level_count - 1) {
        un_amg_sweep_down(amg->ctx, level, x, b, NULL, NULL);
        un_amg_sweep_up(amg->ctx, level, x, b, scratch, NULL);
        return;
    }
    un_amg_correction correction;
    un_amg_level *next = level + 1;
    un_amg_sweep_down(amg->ctx, level, x, b, next->b, NULL);
    to_next(amg, level);
    correct(amg, l + 1, &correction);
    un_halo_share(level->up, next->x, sizeof *next->x);
    if (correction.z) un_halo_share(level->up, next->y, sizeof *next->y);
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

/* x = B b by a V-cycle with one sweep on each side; with geometric transfers, a W-cycle on the
 * finer levels. scratch may be b itself. */
static void v_cycle(un_amg *amg, int32_t l, float *x, const float *b, float *scratch)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l], *next = level + 1;
    if (l == amg->level_count - 1) {
        if (amg->dense)
            un_amg_solve_dense(amg, level->n, x, b);
        else {
            un_amg_sweep_down(ctx, level, x, b, NULL, NULL);
            un_amg_sweep_up(ctx, level, x, b, scratch, NULL);
        }
        return;
    }
    bool means = amg->scheme == UN_AMG_GEOMETRIC;
    un_amg_sweep_down(ctx, level, x, b, NULL, level->v);
    if (means) {
        un_amg_restrict_means(ctx, level, &amg->means[l], next->b, level->v);
        to_next(amg, level);
    } else
        un_amg_restrict(ctx, &amg->transfer[l], next->b, next->n, level->v);
    bool twice = means && l < TWICE && l + 1 < amg->level_count - 1;
    v_cycle(amg, l + 1, next->x, next->b, twice ? next->v : next->b);
    if (twice) {
        un_amg_residual(ctx, next, next->b, next->x, next->b);
        v_cycle(amg, l + 1, next->y, next->b, next->b);
        un_amg_add(ctx, next, next->x, next->y);
    }
    if (means) {
        un_halo_share(level->up, next->x, sizeof *next->x);
        un_amg_prolong_means(ctx, level, &amg->means[l], x, next->x);
    } else
        un_amg_prolong(ctx, &amg->transfer[l], x, level->n, next->x, false);
    un_amg_sweep_up(ctx, level, x, b, scratch, NULL);
}

/* x += S (b - A x), where S is a forward and a backward sweep; a faster form if x is zero. */
static void relax(un_amg *amg, int32_t l, float *x, const float *b, bool from_zero)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l];
    if (from_zero) {
        un_amg_sweep_down(ctx, level, x, b, NULL, NULL);
        un_amg_sweep_up(ctx, level, x, b, level->v, NULL);
        return;
    }
    un_amg_residual(ctx, level, level->v, x, b);
    un_amg_sweep_down(ctx, level, level->w, level->v, NULL, NULL);
    un_amg_sweep_up(ctx, level, level->w, level->v, level->v, NULL);
    un_amg_add(ctx, level, x, level->w);
}

/* VCYCLEMULTIGRID of [Chentanez07], from x = 0. */
static void deep_cycle(un_amg *amg, int32_t l, float *x, const float *b)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l], *next = level + 1;
    if (l == amg->level_count - 1 && amg->dense) {
        un_amg_solve_dense(amg, level->n, x, b);
        return;
    }
    relax(amg, l, x, b, true);
    if (l < amg->level_count - 1) {
        un_amg_residual(ctx, level, level->v, x, b);
        un_amg_restrict(ctx, &amg->transfer[l], next->b, next->n, level->v);
        deep_cycle(amg, l + 1, next->x, next->b);
        un_amg_prolong(ctx, &amg->transfer[l], x, level->n, next->x, false);
    }
    relax(amg, l, x, b, false);
}

/* FULLCYCLEMULTIGRID of [Chentanez07]: y of the finest level from its b. Cycles on a level change
 * only b of coarser levels, which is no longer needed by then. */
static void full_cycle(un_amg *amg)
{
    un_context *ctx = amg->ctx;
    int32_t last = amg->level_count - 1;
    un_amg_level *level = amg->level;
    for (int32_t l = 0; l < last; l++)
        un_amg_restrict(ctx, &amg->transfer[l], level[l + 1].b, level[l + 1].n, level[l].b);
    deep_cycle(amg, last, level[last].y, level[last].b);
    for (int32_t l = last - 1; l >= 0; l--) {
        un_amg_prolong(ctx, &amg->transfer[l], level[l].y, level[l].n, level[l + 1].y, true);
        un_amg_residual(ctx, &level[l], level[l].b, level[l].y, level[l].b);
        deep_cycle(amg, l, level[l].x, level[l].b);
        un_amg_add(ctx, &level[l], level[l].y, level[l].x);
    }
}

/* ---- the preconditioner ---- */

typedef struct convert {
    const un_amg *amg;
    const float *x;
    double *z;
    const double *r;
    double scale;
} convert;

static double largest_of(void *arg, int64_t begin, int64_t end)
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
    const float *x = p->x, *inverse = p->amg->level[0].inverse;
    double scale = p->scale > 0 ? p->amg->scale / p->scale : 0;
    for (int64_t i = begin; i < end; i++) {
        p->z[i] = x[i] * scale;
        if (inverse[i] != 0) continue;
        /* no equation, or a diagonal too small for floats */
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] == i) p->z[i] = a->val[k] > 0 ? p->r[i] / a->val[k] : 0;
    }
}

static void apply(void *state, double *z, const double *r)
{
    un_amg *amg = state;
    un_amg_level *finest = &amg->level[0];
    if (amg->residual_scale == 0) {
        un_part own = finest->own;
        double most =
            un_parallel_max(amg->ctx, own.end - own.begin, largest_of, (void *)(r + own.begin));
        if (amg->spread) most = un_ranks_max(amg->ctx, most);
        if (most > 0 && isfinite(most)) amg->residual_scale = 1 / most;
    }
    bool full = amg->scheme == UN_AMG_CHENTANEZ;
    convert p = {amg, full ? finest->y : finest->x, z, r, amg->residual_scale};
    int64_t grain = un_block_grain(finest->n);
    un_parallel_part(amg->ctx, finest->own, grain, to_float, &p);
    if (full)
        full_cycle(amg);
    else if (amg->scheme == UN_AMG_PLAIN)
        cycle(amg, 0, finest->x, finest->b, finest->b);
    else
        v_cycle(amg, 0, finest->x, finest->b, finest->b);
    un_parallel_part(amg->ctx, finest->own, grain, to_double, &p);
}

static void again(void *state)
{
    ((un_amg *)state)->residual_scale = 0;
}

static void spread(void *state, un_spread *over)
{
    ((un_amg *)state)->spread = over;
}

static void destroy(void *state)
{
    un_amg *amg = state;
    if (!amg) return;
    un_amg_forget_ranks(amg);
    for (int l = 0; l < UN_AMG_LEVELS_MAX; l++) {
        un_amg_level *level = &amg->level[l];
        void *blocks[] = {level->row,         level->col,       level->val,
                          level->outer_first, level->outer_id,  level->outer_row,
                          level->outer_col,   level->outer_val, level->outer_sum,
                          level->outer_raise, level->diagonal,  level->inverse,
                          level->aggregate,   level->first,     level->b,
                          level->x,           level->v,         level->w,
                          level->y,           level->excess,    level->beside.id};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(amg->ctx, blocks[i]);
        un_amg_transfer *p = &amg->transfer[l];
        void *parts[] = {p->row, p->col, p->val, p->back_row, p->back_col, p->back_val};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) un_free(amg->ctx, parts[i]);
        un_amg_means *m = &amg->means[l];
        void *lists[] = {m->pair,      m->row,     m->col,     m->val,
                         m->far_first, m->far_row, m->far_col, m->far_val};
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) un_free(amg->ctx, lists[i]);
    }
    for (int s = 0; s < 2; s++) {
        void *blocks[] = {amg->full[s].row,    amg->full[s].col, amg->full[s].val,
                          amg->full[s].excess, amg->place[s],    amg->scale_of[s]};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(amg->ctx, blocks[i]);
    }
    void *blocks[] = {amg->factor,    amg->solution, amg->member_first, amg->member,    amg->marker,
                      amg->weight,    amg->table,    amg->far,          amg->half_size, amg->half,
                      amg->half_next, amg->spill,    amg->some};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(amg->ctx, blocks[i]);
    un_free(amg->ctx, amg);
}

static un_status create(un_context *ctx, un_preconditioner *preconditioner, un_amg_scheme scheme)
{
    un_amg *amg = un_alloc_zero(ctx, 1, sizeof *amg);
    if (!amg) return UN_ERROR_MEMORY;
    amg->ctx = ctx;
    amg->scheme = scheme;
    amg->aggregate_size = scheme == UN_AMG_PLAIN ? PLAIN_SIZE : SMOOTHED_SIZE;
    /* the CG steps of a K-cycle depend on r; a full cycle is linear but not symmetric */
    bool varies = scheme == UN_AMG_PLAIN || scheme == UN_AMG_CHENTANEZ;
    bool shared = scheme == UN_AMG_PLAIN || scheme == UN_AMG_GEOMETRIC;
    *preconditioner =
        (un_preconditioner){amg, setup, apply, destroy, varies, shared ? spread : NULL, again};
    return UN_OK;
}

un_status un_amg_create(un_context *ctx, un_preconditioner *preconditioner)
{
    return create(ctx, preconditioner, UN_AMG_PLAIN);
}

un_status un_smoothed_create(un_context *ctx, un_preconditioner *preconditioner)
{
    return create(ctx, preconditioner, UN_AMG_SMOOTHED);
}

un_status un_chentanez_create(un_context *ctx, un_preconditioner *preconditioner)
{
    return create(ctx, preconditioner, UN_AMG_CHENTANEZ);
}

un_status un_geometric_create(un_context *ctx, un_preconditioner *preconditioner)
{
    return create(ctx, preconditioner, UN_AMG_GEOMETRIC);
}
