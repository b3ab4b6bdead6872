/* The viscous system of the grid over ranks. Cells are numbered bar by bar along the curve, so that
 * those of a rank are a range. A rank finds their rows from the liquid in some rows of cells beside
 * its own; the solver shares them (linalg/block.h). Strains, volumes and faces that follow need
 * velocities in two rows beside own ones. */
#include "viscosity/grid.h"

#define NEED(v, array, which, count)                                                               \
    UN_TRY(un_array_need((v)->ctx, (void **)&(array), &(v)->capacity[which], (size_t)(count) + 1,  \
                         sizeof *(array)))

/* ---- loops and sums ---- */

void un_stress_over_rows(const un_stress_grid *s, int32_t wide, un_parallel_body *body, void *arg)
{
    un_parallel_runs(s->v->ctx, un_grid_own_rows(s->g, wide), 16, body, arg);
}

void un_stress_over_cells(const un_stress_grid *s, un_parallel_body *body, void *arg)
{
    un_parallel_runs(s->v->ctx, un_grid_own_cells(s->g, 0), un_block_grain(s->g->cell_count), body,
                     arg);
}

void un_stress_over_unknowns(const un_stress_grid *s, un_parallel_body *body, void *arg)
{
    const un_viscosity *v = s->v;
    un_parallel_part(v->ctx, un_viscosity_rows(v), un_block_grain(v->matrix.n), body, arg);
}

void un_stress_sums(const un_stress_grid *s, int32_t width, un_parallel_values *values, void *arg,
                    double *sums)
{
    un_grid_sums(s->v->ctx, s->g, s->g->n[0], width, values, arg, sums);
}

/* ---- rows of others ---- */

un_status un_stress_share_input(const un_stress_grid *s)
{
    const un_viscous_grid *in = s->in;
    un_layered fields[6];
    int32_t count = 0;
    fields[count++] = (un_layered){(void *)(uintptr_t)in->phi, sizeof *in->phi};
    if (in->viscosity)
        fields[count++] = (un_layered){(void *)(uintptr_t)in->viscosity, sizeof *in->viscosity};
    if (in->density)
        fields[count++] = (un_layered){(void *)(uintptr_t)in->density, sizeof *in->density};
    UN_TRY(un_grid_share(s->g, fields, count, UN_STRESS_SHARES + 1));
    for (int a = 0; a < s->g->dim; a++) fields[a] = (un_layered){in->known[a], 1};
    UN_TRY(un_grid_share(s->g, fields, s->g->dim, UN_STRESS_BESIDE));
    return un_stress_share_velocities(s);
}

un_status un_stress_share_velocities(const un_stress_grid *s)
{
    un_layered u[3];
    for (int a = 0; a < s->g->dim; a++) u[a] = (un_layered){s->in->u[a], sizeof *s->in->u[a]};
    return un_grid_share(s->g, u, s->g->dim, UN_STRESS_BESIDE);
}

/* ---- numbers ---- */

/* The cells of some steps along the curve whose index is not negative; numbers them from `first`
 * on, unless it is negative. */
static int64_t visit_cells(un_stress_grid *s, un_part steps, int64_t first)
{
    un_viscosity *v = s->v;
    int64_t row = un_max64(first, 0);
    for (int64_t step = steps.begin; step < steps.end; step++) {
        int32_t j, k;
        if (!un_curve_row(&v->curve, step, &j, &k)) continue;
        int64_t c = un_grid_cell(s->g, 0, j, k), end = c + s->g->n[0];
        for (; c < end; c++) {
            if (v->index[c] < 0) continue;
            if (first >= 0) {
                v->node[row] = (int32_t)c;
                v->index[c] = (int32_t)row; /* no more than cells, which 32 bits count */
            }
            row++;
        }
    }
    return row - un_max64(first, 0);
}

static un_status number_cells(un_stress_grid *s)
{
    un_viscosity *v = s->v;
    un_part own = un_grid_own_steps(s->g, &v->curve);
    int64_t count = visit_cells(s, own, -1);
    v->rows = v->shared ? un_ranks_range(v->ctx, count) : (un_range){0, count, count};
    NEED(v, v->node, 1, v->rows.total + 2 * s->body_count);
    visit_cells(s, own, v->rows.begin);
    return un_grid_share(s->g, &(un_layered){v->index, sizeof *v->index}, 1, UN_STRESS_BESIDE);
}

un_status un_stress_number(un_stress_grid *s)
{
    un_viscosity *v = s->v;
    int64_t cells = s->g->cell_count;
    UN_TRY(number_cells(s));
    int32_t first = (int32_t)v->rows.total, bodies = 2 * s->body_count;
    UN_TRY(un_array_reserve(v->ctx, (void **)&v->node, &v->capacity[1],
                            (size_t)first + (size_t)bodies + 1, sizeof *v->node));
    for (int32_t m = 0; m < bodies; m++) {
        v->index[cells + m] = first + m;
        v->node[first + m] = (int32_t)(cells + m);
    }
    v->matrix.n = first + bodies;
    v->rows.total = v->matrix.n;
    if (un_stress_has_bodies(s)) v->rows.end = v->matrix.n;
    return UN_OK;
}

un_status un_stress_start_rows(const un_stress_grid *s)
{
    static const char what[] = "cells of viscous liquid";
    un_viscosity *v = s->v;
    int32_t *row = v->matrix.row;
    if (!v->shared) return un_rows_start(v->ctx, row, v->matrix.n, what);
    return un_rows_start_own(v->ctx, row, v->rows, what);
}

/* ---- bodies ---- */

void un_stress_tell_bodies(const un_stress_grid *s)
{
    un_context *ctx = s->v->ctx;
    for (int32_t k = 0; k < s->body_count && s->v->shared; k++) {
        double change[6];
        un_ranks_begin_turn(ctx, change, sizeof change);
        memcpy(change, s->body[k].change, sizeof change);
        un_ranks_end_turn(ctx, change, sizeof change);
        memcpy(s->body[k].change, change, sizeof change);
    }
}
