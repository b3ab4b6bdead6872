/* The system of several ranks, each of which has assembled its own rows.
 *
 * Rows are numbered as by one rank, so those of all ranks, one after the other, are its system.
 * Rank 0 gets them and solves; the others get their part of the answer. What rows at walls may do
 * (release.c) depends on velocities that rank 0 does not know, so it comes with the rows. */
#include "pressure/system.h"

/* By row: what the rule says of it, and whether it had let go. */
enum { AT_WALL = 1, WAS_FREE = 2 };
typedef struct limits {
    un_pressure *pr;
    const un_release *rule;
    double *least, *slack;
    uint8_t *what;
} limits;

static void find_limits(void *arg, int64_t begin, int64_t end)
{
    const limits *a = arg;
    const un_release *rule = a->rule;
    for (int64_t r = begin; r < end; r++) {
        bool wall = rule->limit(rule->arg, (int32_t)r, &a->least[r], &a->slack[r]);
        bool was = un_pressure_let_go(rule->p[a->pr->place[r]]);
        a->what[r] = (uint8_t)((wall ? AT_WALL : 0) | (was ? WAS_FREE : 0));
    }
}

static bool listed(const void *arg, int32_t row, double *least, double *slack)
{
    const limits *a = arg;
    *least = a->least[row];
    *slack = a->slack[row];
    return a->what[row] & AT_WALL;
}

/* As the rule reads it: -0.0 where a row had let go. */
static void recall_free(void *arg, int64_t begin, int64_t end)
{
    const limits *a = arg;
    for (int64_t r = begin; r < end; r++)
        a->pr->p[a->pr->place[r]] = a->what[r] & WAS_FREE ? -0.0 : 0;
}

static un_status solve_on_first(limits *a, const un_sites *sites, double tolerance,
                                int32_t iteration_limit, un_solve_report *report)
{
    un_pressure *pr = a->pr;
    un_release rule = {a, listed, a->rule->clear, pr->p, a->rule->on};
    if (rule.on)
        un_parallel_for(pr->ctx, pr->matrix.n, un_block_grain(pr->matrix.n), recall_free, a);
    return un_pressure_solve(pr, sites, tolerance, iteration_limit, &rule, report);
}

/* Rank 0 gets the rows of all. */
static void collect(const limits *a, un_range rows, un_range entries)
{
    un_pressure *pr = a->pr;
    un_context *ctx = pr->ctx;
    un_ranks_collect(ctx, rows, pr->place, sizeof *pr->place);
    un_ranks_collect(ctx, rows, pr->matrix.row, sizeof *pr->matrix.row);
    un_ranks_collect(ctx, rows, pr->rhs, sizeof *pr->rhs);
    un_ranks_collect(ctx, rows, pr->x, sizeof *pr->x);
    un_ranks_collect(ctx, entries, pr->matrix.col, sizeof *pr->matrix.col);
    un_ranks_collect(ctx, entries, pr->matrix.val, sizeof *pr->matrix.val);
    if (!a->rule->on) return;
    un_ranks_collect(ctx, rows, a->least, sizeof *a->least);
    un_ranks_collect(ctx, rows, a->slack, sizeof *a->slack);
    un_ranks_collect(ctx, rows, a->what, sizeof *a->what);
}

typedef struct outcome {
    un_solve_report report;
    int32_t free_count;
} outcome;

static un_status spread(limits *a, const un_sites *sites, double tolerance, int32_t iteration_limit,
                        un_solve_report *report)
{
    un_pressure *pr = a->pr;
    un_context *ctx = pr->ctx;
    outcome told = {0};
    un_range rows = {pr->own.begin, pr->own.end, pr->matrix.n};
    un_range entries = {pr->matrix.row[rows.begin], pr->matrix.row[rows.end],
                        pr->matrix.row[pr->matrix.n]};
    if (pr->own.begin == pr->own.end) entries.begin = entries.end; /* the first row is another's */
    if (a->rule->on) {
        UN_TRY(un_pressure_need_free(pr));
        un_parallel_part(ctx, pr->own, un_block_grain(pr->matrix.n), find_limits, a);
    }
    collect(a, rows, entries);
    if (un_rank(ctx) == 0) {
        UN_TRY(solve_on_first(a, sites, tolerance, iteration_limit, &told.report));
        told.free_count = pr->free_count;
    }
    un_ranks_tell(un_context_ranks(ctx), &told, sizeof told);
    *report = told.report;
    pr->free_count = told.free_count;
    UN_TRY(un_ranks_deal(ctx, pr->near, pr->x, sizeof *pr->x));
    return pr->free_count > 0 ? un_ranks_deal(ctx, pr->near, pr->free, sizeof *pr->free) : UN_OK;
}

un_status un_pressure_solve_ranks(un_pressure *pr, const un_sites *sites, double tolerance,
                                  int32_t iteration_limit, const un_release *rule,
                                  un_solve_report *report)
{
    if (!pr->grid->slabs)
        return un_pressure_solve(pr, sites, tolerance, iteration_limit, rule, report);
    size_t n = (size_t)pr->matrix.n + 1;
    limits a = {.pr = pr, .rule = rule};
    un_status status = UN_OK;
    if (rule->on) {
        UN_ALLOC_DONE(pr->ctx, a.least, n);
        UN_ALLOC_DONE(pr->ctx, a.slack, n);
        UN_ALLOC_DONE(pr->ctx, a.what, n);
    }
    status = spread(&a, sites, tolerance, iteration_limit, report);
done:
    un_free(pr->ctx, a.least);
    un_free(pr->ctx, a.slack);
    un_free(pr->ctx, a.what);
    return status;
}
