/* The linear system of a projection: creation, destruction, memory. */
#include "pressure/coupling.h"
#include "pressure/system.h"

un_status un_pressure_create(un_context *ctx, const un_grid *grid, un_pressure **pressure)
{
    un_pressure *pr = un_alloc_zero(ctx, 1, sizeof *pr);
    if (!pr) return UN_ERROR_MEMORY;
    pr->ctx = ctx;
    pr->grid = grid;
    un_status status = un_solver_create(ctx, &pr->solver);
    if (status == UN_OK && grid) {
        status = un_pressure_need_places(pr, grid->cell_count);
        if (status == UN_OK) status = un_curve_init(&pr->curve, ctx, grid->n[1], grid->n[2]);
        pr->p = un_alloc_zero(ctx, (size_t)grid->cell_count, sizeof *pr->p);
        if (!pr->p) status = UN_ERROR_MEMORY;
    }
    if (status != UN_OK) {
        un_pressure_destroy(pr);
        return status;
    }
    *pressure = pr;
    return UN_OK;
}

void un_pressure_destroy(un_pressure *pr)
{
    if (!pr) return;
    un_solver_destroy(pr->solver);
    un_halo_destroy(pr->beside);
    un_curve_free(pr->ctx, &pr->curve);
    un_free(pr->ctx, pr->near.id);
    un_coupling_free(pr->ctx, &pr->coupling);
    void *blocks[] = {pr->p,   pr->index, pr->place, pr->matrix.row, pr->matrix.col, pr->matrix.val,
                      pr->rhs, pr->x,     pr->free,  pr->set_val,    pr->set_rhs,    pr->first};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(pr->ctx, blocks[i]);
    un_free(pr->ctx, pr);
}

enum { INDEX, PLACE, ROW, COL, VAL, RHS, X, FREE, SET_VAL, SET_RHS };
#define NEED(array, which, count)                                                                  \
    UN_TRY(un_array_need(pr->ctx, (void **)&(array), &pr->capacity[which], (size_t)(count) + 1,    \
                         sizeof *(array)))

un_status un_pressure_need_places(un_pressure *pr, int64_t count)
{
    NEED(pr->index, INDEX, count);
    return UN_OK;
}

un_status un_pressure_number(un_pressure *pr, int64_t place_count)
{
    return un_unknowns_number(pr->ctx, pr->index, place_count, &pr->place, &pr->capacity[PLACE],
                              &pr->matrix.n);
}

un_status un_pressure_need_rows(un_pressure *pr, int32_t n)
{
    NEED(pr->place, PLACE, n);
    NEED(pr->matrix.row, ROW, n);
    NEED(pr->rhs, RHS, n);
    NEED(pr->x, X, n);
    return UN_OK;
}

un_status un_pressure_need_entries(un_pressure *pr, size_t count)
{
    NEED(pr->matrix.col, COL, count);
    NEED(pr->matrix.val, VAL, count);
    return UN_OK;
}

un_status un_pressure_need_free(un_pressure *pr)
{
    NEED(pr->free, FREE, pr->matrix.n);
    return UN_OK;
}

un_status un_pressure_need_set(un_pressure *pr)
{
    NEED(pr->set_val, SET_VAL, pr->matrix.row[pr->matrix.n]);
    NEED(pr->set_rhs, SET_RHS, pr->matrix.n);
    return UN_OK;
}

un_status un_pressure_know_rows(un_pressure *pr, const int32_t *rows, int64_t count)
{
    un_halo_destroy(pr->beside);
    un_free(pr->ctx, pr->first);
    pr->beside = NULL;
    UN_TRY(un_ranks_begins(pr->ctx, pr->own.begin, pr->matrix.n, &pr->first));
    return un_halo_create(pr->ctx, pr->first, rows, count, &pr->beside);
}

typedef struct add_args {
    double *p;
    const double *more;
} add_args;

static void add(void *arg, int64_t begin, int64_t end)
{
    add_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->p[n] += a->more[n];
}

void un_pressure_add(un_context *ctx, double *p, const double *more, int64_t count)
{
    add_args a = {p, more};
    un_parallel_for(ctx, count, 4096, add, &a);
}
