/* Walls that let go.
 *
 * A wall pushes and does not pull: at rows next to walls the pressure is not negative. Where it
 * would be, the liquid leaves the wall and a void opens there:
 *
 *     p >= 0,   lambda = A p - b >= 0,   p lambda = 0   at rows next to walls,
 *     A p = b                                           at all others.
 *
 * lambda is what flows out of a row beyond what is wanted. An active set solves it: rows of the set
 * have p = 0, and others meet their equations. After each solve, rows whose p is too low join, and
 * rows that would be pressed together leave; if few of them are far off, those that join get p = 0
 * without another solve, and their neighbours follow in the next step. It begins with the set of
 * the last step, whose places hold the pressure -0.0, so that nothing else need be remembered. The
 * matrix is an M-matrix on the grid, where the set settles in a few solves; on tets with obtuse
 * angles, and with bodies, it need not be, so their number is bounded. Rows may leave to the last:
 * beside a body hardly narrower than its tank many are pressed together at once, and a third of the
 * liquid vanished in the gap.
 *
 * Surface tension can pull: where the surface's pressure P is negative, as at a wall that liquid
 * climbs, the void would have such a surface too, and p >= P takes the place of p >= 0. With p = 0
 * next to a surface at P, gradients grew as P over the depth (a drop into a pool: 170 m/s in the
 * ripples at the sides).
 *
 * Parts of the liquid that touch no air, or little, are left alone: their pressure is known up to a
 * constant only, or a bubble's would be. Where nothing lets go, one solve is all there is. */
#include "pressure/coupling.h"
#include "pressure/system.h"

#include <stdatomic.h>

/* Solves at most. */
#define SOLVES_MAX 4
/* Parts of the liquid with fewer rows at the air, by number and by share, are left alone. */
#define AIR_ROWS 16
#define AIR_SHARE 0.05
/* A row is at the air if its sum exceeds this share of its diagonal. */
#define ANCHOR 1e-6
/* lambda that counts as pressing, in slacks times the diagonal. */
#define PRESS 0.25
/* So many slacks are far off in a row, and in the sum of those rows. */
#define FAR 2.0
#define FAR_ALL 16.0
#define PART_GRAIN 2048

/* NOW: what is far off, and needs another solve. */
enum { HELD = 0, FREE = 1, JOINS = 2, LEAVES = 3, NOW = 4 };

typedef struct args {
    un_pressure *pr;
    const un_release *rule;
} args;

static un_part own_rows(const un_pressure *pr)
{
    return pr->beside ? pr->own : (un_part){0, pr->matrix.n};
}

static void over_rows(args *s, un_parallel_body *body)
{
    un_parallel_part(s->pr->ctx, own_rows(s->pr), un_block_grain(s->pr->matrix.n), body, s);
}

static void sum_rows(args *s, int32_t width, un_parallel_values *values, double *sums)
{
    const un_pressure *pr = s->pr;
    if (pr->beside)
        un_ranks_sums(pr->ctx, (un_range){pr->own.begin, pr->own.end, pr->matrix.n}, width, values,
                      s, sums);
    else
        un_parallel_sums(pr->ctx, pr->matrix.n, width, values, s, sums);
}

/* x is 0 at the surface. */
static bool limit(const un_release *rule, int32_t r, double *least, double *slack)
{
    bool wall = rule->limit(rule->arg, r, least, slack);
    *least = fmin(*least, 0);
    return wall;
}

/* A x - b in a row, and its diagonal. */
static double residual(const un_pressure *pr, int64_t r, double *diagonal)
{
    const un_csr *a = &pr->matrix;
    double sum = -pr->rhs[r];
    if (un_coupling_any(pr)) sum += pr->coupling.together[r];
    for (int32_t k = a->row[r]; k < a->row[r + 1]; k++) {
        sum += a->val[k] * pr->x[a->col[k]];
        if (a->col[k] == r) *diagonal = a->val[k];
    }
    return sum;
}

/* Of the last step's set, rows that liquid runs into leave at once: with p = 0 there and no less
 * around it, lambda is at most -b. */
static void recall(void *arg, int64_t begin, int64_t end, double *sums)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    const un_release *rule = s->rule;
    for (int64_t r = begin; r < end; r++) {
        double least, slack, diagonal = 0;
        pr->free[r] = HELD;
        if (!un_pressure_let_go(rule->p[pr->place[r]])) continue;
        if (!limit(rule, (int32_t)r, &least, &slack)) continue;
        residual(pr, r, &diagonal);
        if (rule->clear == 0 && pr->rhs[r] > PRESS * slack * diagonal) continue;
        pr->free[r] = FREE;
        sums[0] += 1;
    }
}

static void judge(void *arg, int64_t begin, int64_t end, double *sums)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    const un_release *rule = s->rule;
    for (int64_t r = begin; r < end; r++) {
        double least, slack, diagonal = 0;
        if (pr->free[r] != FREE && !(pr->x[r] < rule->clear)) continue;
        if (!limit(rule, (int32_t)r, &least, &slack)) continue;
        bool leaves = pr->free[r] == FREE;
        double off = leaves ? -residual(pr, r, &diagonal) : least - pr->x[r];
        if (leaves) slack *= PRESS * diagonal;
        if (!(off > slack)) continue;
        pr->free[r] = (uint8_t)((leaves ? LEAVES : JOINS) | (off > FAR * slack ? NOW : 0));
        sums[0] += 1;
        sums[1] += off > FAR * slack ? off / slack : 0;
    }
}

/* ---- parts that touch air ---- */

static bool is_sealed(double air, double count)
{
    return air < AIR_ROWS && air < AIR_SHARE * count;
}

typedef struct parts_of_liquid {
    un_pressure *pr;
    int32_t *root;                /* by row: the least of this rank's rows in its part */
    _Atomic int32_t *count, *air; /* by such a row: of this rank's rows */
    un_joint joint;               /* those of several ranks */
} parts_of_liquid;

static void clear_parts(void *arg, int64_t begin, int64_t end)
{
    parts_of_liquid *parts = arg;
    for (int64_t r = begin; r < end; r++) parts->count[r] = parts->air[r] = 0;
}

static bool touches_air(const un_csr *a, int64_t r)
{
    double sum = 0, diagonal = 0;
    for (int32_t k = a->row[r]; k < a->row[r + 1]; k++) {
        sum += a->val[k];
        if (a->col[k] == r) diagonal = a->val[k];
    }
    return sum > ANCHOR * diagonal;
}

/* Rows that follow one another mostly belong to one part: they are added together. */
static void count_rows(void *arg, int64_t begin, int64_t end)
{
    parts_of_liquid *parts = arg;
    for (int64_t r = begin; r < end;) {
        int32_t root = parts->root[r], count = 0, air = 0;
        for (; r < end && parts->root[r] == root; r++, count++)
            air += touches_air(&parts->pr->matrix, r);
        atomic_fetch_add_explicit(&parts->count[root], count, memory_order_relaxed);
        atomic_fetch_add_explicit(&parts->air[root], air, memory_order_relaxed);
    }
}

static void hold_rows(void *arg, int64_t begin, int64_t end)
{
    parts_of_liquid *parts = arg;
    for (int64_t r = begin; r < end; r++) {
        int32_t root = parts->root[r];
        if (is_sealed(parts->air[root], parts->count[root])) parts->pr->free[r] = HELD;
    }
}

/* By least row of a part: its rows on all ranks become those of `count` and `air`. */
static void join_parts(un_pressure *pr, parts_of_liquid *parts)
{
    un_joint *joint = &parts->joint;
    for (int64_t k = 0; k < joint->count; k++) {
        int32_t r = joint->id[k];
        if (r < pr->own.begin || r >= pr->own.end) continue;
        joint->sums[2 * k] = parts->count[r];
        joint->sums[2 * k + 1] = parts->air[r];
    }
    un_joint_sum(pr->ctx, joint);
    for (int64_t k = 0; k < joint->count; k++) {
        int32_t r = joint->id[k];
        if (r < pr->own.begin || r >= pr->own.end) continue;
        parts->count[r] = (int32_t)joint->sums[2 * joint->root[k]];
        parts->air[r] = (int32_t)joint->sums[2 * joint->root[k] + 1];
    }
}

static bool holds_all(const un_pressure *pr)
{
    for (int32_t r = 0; r < pr->matrix.n; r++)
        if (pr->free[r] != HELD) return false;
    return true;
}

/* Rows of parts without air are held again. */
static un_status hold_sealed(un_pressure *pr)
{
    un_context *ctx = pr->ctx;
    int64_t n = (int64_t)pr->matrix.n + 1;
    un_part own = own_rows(pr);
    parts_of_liquid parts = {.pr = pr};
    un_status status = UN_OK;
    if (!pr->beside && holds_all(pr)) return UN_OK;
    UN_ALLOC_DONE(ctx, parts.root, n);
    UN_ALLOC_DONE(ctx, parts.count, n);
    UN_ALLOC_DONE(ctx, parts.air, n);
    un_csr_parts(ctx, &pr->matrix, own, parts.root);
    un_parallel_part(ctx, own, PART_GRAIN, clear_parts, &parts);
    un_parallel_part(ctx, own, PART_GRAIN, count_rows, &parts);
    if (pr->beside) {
        UN_TRY_DONE(
            un_joint_build(ctx, &pr->matrix, pr->own, parts.root, pr->beside, 2, 0, &parts.joint));
        join_parts(pr, &parts);
    }
    un_parallel_part(ctx, own, PART_GRAIN, hold_rows, &parts);
done:
    un_joint_free(ctx, &parts.joint);
    un_free(ctx, parts.root);
    un_free(ctx, (void *)parts.count);
    un_free(ctx, (void *)parts.air);
    return status;
}

/* ---- the system with a set ---- */

static void settle(void *arg, int64_t begin, int64_t end, double *sums)
{
    args *s = arg;
    uint8_t *free = s->pr->free;
    for (int64_t r = begin; r < end; r++) {
        sums[1] += free[r] >= NOW;
        free[r] &= NOW - 1;
        free[r] = free[r] == FREE || free[r] == JOINS ? FREE : HELD;
        sums[0] += free[r];
    }
}

static double value_of(const args *s, int32_t r)
{
    double least = 0, slack;
    limit(s->rule, r, &least, &slack);
    return least;
}

static void set_values(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    for (int64_t r = begin; r < end; r++)
        if (pr->free[r] == FREE) pr->x[r] = value_of(s, (int32_t)r);
}

/* Rows of the set hold their diagonals only, and others' entries there move to the right-hand
 * side: symmetric as before. x holds the values of the set. */
static void confine(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    const un_csr *a = &pr->matrix;
    for (int64_t r = begin; r < end; r++) {
        bool free = pr->free[r] == FREE;
        double rhs = free ? 0 : pr->rhs[r];
        for (int32_t k = a->row[r]; k < a->row[r + 1]; k++) {
            int32_t c = a->col[k];
            pr->set_val[k] = a->val[k];
            if (c == r) {
                rhs += free ? a->val[k] * pr->x[r] : 0;
                continue;
            }
            if (free || pr->free[c] == FREE) pr->set_val[k] = 0;
            if (!free && pr->free[c] == FREE) rhs -= a->val[k] * pr->x[c];
        }
        pr->set_rhs[r] = rhs;
    }
}

/* The answer, and which rows have let go. */
static un_status share_free(un_pressure *pr)
{
    un_layered fields[2] = {{pr->x, sizeof *pr->x}, {pr->free, sizeof *pr->free}};
    return un_halo_share_fields(pr->beside, fields, 2);
}

static un_status solve_set(args *s, const un_sites *sites, double tolerance,
                           int32_t iteration_limit, un_solve_report *report)
{
    un_pressure *pr = s->pr;
    int32_t iterations = report->iterations;
    un_csr a = pr->matrix;
    un_range rows = {pr->own.begin, pr->own.end, a.n};
    un_system system = {.a = &a,
                        .b = pr->rhs,
                        .sites = sites,
                        .rows = pr->beside ? &rows : NULL,
                        .first = pr->beside ? pr->first : NULL,
                        .beside = pr->beside,
                        .again = pr->again};
    un_columns columns = pr->coupling.columns;
    if (un_coupling_any(pr)) {
        system.columns = &columns;
        system.weak = pr->coupling.weak;
    }
    if (pr->free_count > 0) {
        system.again = pr->again = false; /* its rows have changed */
        UN_TRY(un_pressure_need_set(pr));
        over_rows(s, set_values);
        UN_TRY(share_free(pr));
        over_rows(s, confine);
        a.val = pr->set_val;
        system.b = pr->set_rhs;
        if (un_coupling_any(pr)) {
            UN_TRY(un_coupling_confine(pr, pr->set_rhs));
            columns.val = pr->coupling.set_val;
        }
    }
    pr->solve_count++;
    UN_TRY(un_solver_solve(pr->solver, &system, pr->x, tolerance, iteration_limit, report));
    report->iterations += iterations;
    if (un_coupling_any(pr) && s->rule->on) {
        un_halo_share(pr->beside, pr->x, sizeof *pr->x);
        un_coupling_find_together(pr);
    }
    return UN_OK;
}

/* again: another solve is needed. */
static un_status find_set(args *s, bool *again)
{
    un_pressure *pr = s->pr;
    double sums[2];
    sum_rows(s, 2, judge, sums);
    *again = sums[1] > FAR_ALL;
    if (sums[0] == 0) return UN_OK;
    UN_TRY(hold_sealed(pr));
    sum_rows(s, 2, settle, sums);
    pr->free_count = (int32_t)sums[0];
    *again = *again && sums[1] > 0; /* not all of them in sealed parts */
    return UN_OK;
}

static un_status solve_sets(un_pressure *pr, const un_sites *sites, double tolerance,
                            int32_t iteration_limit, const un_release *rule,
                            un_solve_report *report)
{
    args s = {.pr = pr, .rule = rule};
    int32_t n = pr->matrix.n;
    double count[2];
    *report = (un_solve_report){0};
    pr->solve_count = pr->free_count = 0;
    if (!rule->on) return solve_set(&s, sites, tolerance, iteration_limit, report);
    UN_TRY(un_pressure_need_free(pr));
    if (un_coupling_any(pr)) {
        UN_TRY(un_coupling_need_together(pr));
        memset(pr->coupling.together, 0, (size_t)n * sizeof *pr->coupling.together);
    }
    sum_rows(&s, 1, recall, count);
    if (count[0] > 0) {
        UN_TRY(hold_sealed(pr));
        sum_rows(&s, 2, settle, count);
        pr->free_count = (int32_t)count[0];
    }
    for (;;) {
        bool again;
        UN_TRY(solve_set(&s, sites, tolerance, iteration_limit, report));
        if (!report->finite || pr->solve_count == SOLVES_MAX) return UN_OK;
        UN_TRY(find_set(&s, &again));
        if (!again) break;
    }
    /* Rows that join too late for another solve pull no longer all the same. */
    if (pr->free_count > 0) over_rows(&s, set_values);
    return UN_OK;
}

un_status un_pressure_solve(un_pressure *pr, const un_sites *sites, double tolerance,
                            int32_t iteration_limit, const un_release *rule,
                            un_solve_report *report)
{
    UN_TRY(solve_sets(pr, sites, tolerance, iteration_limit, rule, report));
    if (pr->free_count > 0) return share_free(pr);
    un_halo_share(pr->beside, pr->x, sizeof *pr->x);
    return UN_OK;
}
