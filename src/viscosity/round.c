/* One round of a viscous solve, the same whatever the unknowns are: nodes of graded or stuffed
 * tets, or faces of the grid. A solve that keeps volume takes several rounds of one matrix. */
#include "viscosity/round.h"

un_status un_viscosity_round(un_viscosity *v, bool has_free, double tolerance,
                             int32_t iteration_limit, un_block_report *report)
{
    un_block_report before = *report;
    bool again = before.kind != UN_BLOCK_AUTO;
    un_block_system system = {.a = &v->matrix,
                              .b = v->b,
                              .place = v->place,
                              .free = has_free ? (const double(*)[9])v->free : NULL,
                              .same = again,
                              .rows = v->shared ? &v->rows : NULL};
    UN_TRY(un_block_solver_solve(v->solver, &system, v->x, tolerance, iteration_limit, report));
    report->iterations += before.iterations;
    report->seconds_setup += before.seconds_setup;
    if (again && report->kind == UN_BLOCK_AUTO) report->kind = before.kind;
    return UN_OK;
}

void un_viscosity_sums(const un_viscosity *v, int32_t width, un_parallel_values *values, void *arg,
                       double *sums)
{
    if (v->shared)
        un_ranks_sums(v->ctx, v->rows, width, values, arg, sums);
    else
        un_parallel_sums(v->ctx, v->matrix.n, width, values, arg, sums);
}
