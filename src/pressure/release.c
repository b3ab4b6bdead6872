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

/* NOW: what is far off, and needs another solve. */
enum { HELD = 0, FREE = 1, JOINS = 2, LEAVES = 3, NOW = 4 };

typedef struct args {
    un_pressure *pr;
    const un_release *rule;
} args;

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

/* Rows of the part that `first` is in, into list; returns their number. */
static int32_t collect_part(const un_csr *a, uint8_t *seen, int32_t *list, int32_t first,
                            int32_t *air)
{
    int32_t count = 1;
    list[0] = first;
    seen[first] = 1;
    *air = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t r = list[i];
        double sum = 0, diagonal = 0;
        for (int32_t k = a->row[r]; k < a->row[r + 1]; k++) {
            int32_t c = a->col[k];
            sum += a->val[k];
            if (c == r) diagonal = a->val[k];
            if (a->val[k] == 0 || seen[c]) continue;
            seen[c] = 1;
            list[count++] = c;
        }
        *air += sum > ANCHOR * diagonal;
    }
    return count;
}

/* Rows of parts without air are held again. */
static un_status hold_sealed(un_pressure *pr)
{
    un_context *ctx = pr->ctx;
    const un_csr *a = &pr->matrix;
    size_t n = (size_t)a->n + 1;
    uint8_t *seen = un_alloc_zero(ctx, n, 1);
    int32_t *list = un_alloc(ctx, n, sizeof *list);
    un_status status = seen && list ? UN_OK : UN_ERROR_MEMORY;
    for (int32_t r = 0; status == UN_OK && r < a->n; r++) {
        int32_t air;
        if (pr->free[r] == HELD || seen[r]) continue;
        int32_t count = collect_part(a, seen, list, r, &air);
        bool sealed = air < AIR_ROWS && air < AIR_SHARE * count;
        for (int32_t i = 0; sealed && i < count; i++) pr->free[list[i]] = HELD;
    }
    un_free(ctx, seen);
    un_free(ctx, list);
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

/* Rows of the set hold their diagonals only, and others' entries there move to the right-hand
 * side: symmetric as before. */
static void confine(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    const un_csr *a = &pr->matrix;
    for (int64_t r = begin; r < end; r++) {
        bool free = pr->free[r] == FREE;
        double least = free ? value_of(s, (int32_t)r) : 0, rhs = free ? 0 : pr->rhs[r];
        if (free) pr->x[r] = least;
        for (int32_t k = a->row[r]; k < a->row[r + 1]; k++) {
            int32_t c = a->col[k];
            pr->set_val[k] = a->val[k];
            if (c == r) {
                rhs += free ? a->val[k] * least : 0;
                continue;
            }
            if (free || pr->free[c] == FREE) pr->set_val[k] = 0;
            if (!free && pr->free[c] == FREE) rhs -= a->val[k] * value_of(s, c);
        }
        pr->set_rhs[r] = rhs;
    }
}

static un_status solve_set(args *s, const un_sites *sites, double tolerance,
                           int32_t iteration_limit, un_solve_report *report)
{
    un_pressure *pr = s->pr;
    int32_t iterations = report->iterations;
    un_csr a = pr->matrix;
    un_system system = {.a = &a, .b = pr->rhs, .sites = sites};
    un_columns columns = pr->coupling.columns;
    if (un_coupling_any(pr)) {
        system.columns = &columns;
        system.weak = pr->coupling.weak;
    }
    if (pr->free_count > 0) {
        UN_TRY(un_pressure_need_set(pr));
        un_parallel_for(pr->ctx, a.n, un_block_grain(a.n), confine, s);
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
    if (un_coupling_any(pr) && s->rule->on) un_coupling_find_together(pr);
    return UN_OK;
}

/* again: another solve is needed. */
static un_status find_set(args *s, bool *again)
{
    un_pressure *pr = s->pr;
    double sums[2];
    un_parallel_sums(pr->ctx, pr->matrix.n, 2, judge, s, sums);
    *again = sums[1] > FAR_ALL;
    if (sums[0] == 0) return UN_OK;
    UN_TRY(hold_sealed(pr));
    un_parallel_sums(pr->ctx, pr->matrix.n, 2, settle, s, sums);
    pr->free_count = (int32_t)sums[0];
    *again = *again && sums[1] > 0; /* not all of them in sealed parts */
    return UN_OK;
}

/* Rows that join too late for another solve pull no longer all the same. */
static void let_go_late(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    for (int64_t r = begin; r < end; r++)
        if (pr->free[r] == FREE) pr->x[r] = value_of(s, (int32_t)r);
}

un_status un_pressure_solve(un_pressure *pr, const un_sites *sites, double tolerance,
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
    un_parallel_sums(pr->ctx, n, 1, recall, &s, count);
    if (count[0] > 0) {
        UN_TRY(hold_sealed(pr));
        un_parallel_sums(pr->ctx, n, 2, settle, &s, count);
        pr->free_count = (int32_t)count[0];
    }
    for (;;) {
        bool again;
        UN_TRY(solve_set(&s, sites, tolerance, iteration_limit, report));
        if (!report->finite || pr->solve_count == SOLVES_MAX) return UN_OK;
        UN_TRY(find_set(&s, &again));
        if (!again) break;
    }
    if (pr->free_count > 0) un_parallel_for(pr->ctx, n, un_block_grain(n), let_go_late, &s);
    return UN_OK;
}
