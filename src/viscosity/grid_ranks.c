/* The viscous system of the grid over ranks. A rank finds the rows of the cells in its slab,
 * numbered as on one rank, from the liquid in some layers beside it; the solver shares them
 * (linalg/block.h). Strains, volumes and faces that follow need velocities in two layers beside the
 * slab. */
#include "viscosity/grid.h"

#define NEED(v, array, which, count)                                                               \
    UN_TRY(un_array_need((v)->ctx, (void **)&(array), &(v)->capacity[which], (size_t)(count) + 1,  \
                         sizeof *(array)))

/* ---- loops and sums ---- */

void un_stress_over_rows(const un_stress_grid *s, int32_t wide, un_parallel_body *body, void *arg)
{
    un_parallel_part(s->v->ctx, un_grid_own_rows(s->g, wide), 16, body, arg);
}

void un_stress_over_cells(const un_stress_grid *s, un_parallel_body *body, void *arg)
{
    un_parallel_part(s->v->ctx, un_grid_own_cells(s->g, 0), un_block_grain(s->g->cell_count), body,
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
    const un_grid *g = s->g;
    un_part own = un_grid_own_cells(g, 0);
    if (g->slabs)
        un_ranks_sums(s->v->ctx, (un_range){own.begin, own.end, g->cell_count}, width, values, arg,
                      sums);
    else
        un_parallel_sums(s->v->ctx, g->cell_count, width, values, arg, sums);
}

/* ---- layers ---- */

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

static un_status number_cells(un_stress_grid *s)
{
    un_viscosity *v = s->v;
    const un_grid *g = s->g;
    un_part own = un_grid_own_cells(g, 0);
    int64_t count = 0;
    if (!v->shared) {
        int32_t n;
        UN_TRY(un_unknowns_number(v->ctx, v->index, g->cell_count, &v->node, &v->capacity[1], &n));
        v->rows = (un_range){0, n, n};
        return UN_OK;
    }
    for (int64_t c = own.begin; c < own.end; c++) count += v->index[c] >= 0;
    v->rows = un_ranks_range(v->ctx, count);
    NEED(v, v->node, 1, v->rows.total + 2 * s->body_count);
    int32_t row = (int32_t)v->rows.begin; /* no more than cells, which 32 bits count */
    for (int64_t c = own.begin; c < own.end; c++) {
        if (v->index[c] < 0) continue;
        v->node[row] = (int32_t)c;
        v->index[c] = row++;
    }
    return un_grid_share(g, &(un_layered){v->index, sizeof *v->index}, 1, UN_STRESS_BESIDE);
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
