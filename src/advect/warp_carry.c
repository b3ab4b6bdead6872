/* Fields that a grid carries which warps [Ibayashi18 section 5]: semi-Lagrangian,
 *
 *     f'(x_c) = f(y),   y = x_c - dt u(x_c - dt / 2 u(x_c)),
 *
 * x_c: the centres of the new grid, y found on the old one. The paper goes along u less the grid's
 * velocity in reference space; from the new places of centres to old places of the liquid is the
 * same way without a grid's velocity.
 *
 * MacCormack [Selle, Fedkiw, Kim, Liu & Rossignac 2008]: f'' goes back from f' to the old centres;
 * half of f - f'' is what one way costs,
 *
 *     f'_c += (f_c - f''_c) / 2,
 *
 * unless that leaves the range of the values around y, or is next to the domain's sides. */
#include "advect/carry.h"

#define GRAIN 8

un_interpolation un_interpolation_find(const char *name)
{
    return strcmp(name, "weno6") == 0    ? UN_INTERPOLATE_WENO6
           : strcmp(name, "linear") == 0 ? UN_INTERPOLATE_LINEAR
                                         : UN_INTERPOLATE_CUBIC;
}

typedef struct carry_args {
    const un_carry *in;
    un_warp old;
    un_carry_field from;
    double *to, *back; /* back: f'' at cells of the old grid */
} carry_args;

/* Does what is read around a place reach the padding, which is not carried? */
UN_KERNEL bool reads_padding(const un_grid *g, un_interpolation kind, un_vec3 xi, int dim)
{
    int wide = kind == UN_INTERPOLATE_WENO6 ? 2 : kind == UN_INTERPOLATE_CUBIC ? 1 : 0;
    int64_t base = un_grid_stencil_in(g, xi, 0.5, dim).base;
    for (int d = 0; d < dim; d++) {
        int64_t at = d == 0 ? base % g->n[0] : base / g->stride[d] % g->n[d];
        if (at - wide < 1 || at + 1 + wide > g->n[d] - 2) return true;
    }
    return false;
}

/* The values around a place. */
UN_KERNEL void range_in(const un_grid *g, const un_carry_field *field, un_vec3 xi, double *low,
                        double *high, int dim)
{
    un_stencil t = un_grid_stencil_in(g, xi, 0.5, dim);
    for (int k = 0; k < field->count; k++) {
        low[k] = INFINITY;
        high[k] = -INFINITY;
        for (int m = 0; m < 1 << dim; m++) {
            double v = field->value[un_warp_corner(g, t.base, m, dim) * field->count + k];
            low[k] = fmin(low[k], v);
            high[k] = fmax(high[k], v);
        }
    }
}

enum { FORWARD, BACK, CORRECT };

UN_KERNEL void carry_in(const carry_args *a, int pass, int64_t begin, int64_t end, int dim)
{
    const un_carry *in = a->in;
    const un_grid *g = &a->old.grid;
    int count = a->from.count;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            un_vec3 xi = un_grid_center(g, at[0], at[1], at[2]), y;
            bool outside;
            if (dim == 2) xi.z = 0;
            if (!(in->warp->jacobian[c] > 0)) continue;
            if (pass == BACK) {
                un_carry_field there = {a->to, count};
                (void)un_carry_foot_in(&a->old, in->u, -in->dt, a->old.centre[c], xi, &y, &outside,
                                       dim);
                xi = un_warp_find_in(in->warp, y, xi, dim);
                double *found = a->back + c * count;
                if (reads_padding(g, in->interpolation, xi, dim))
                    memcpy(found, a->from.value + c * count, (size_t)count * sizeof *found);
                else
                    un_carry_sample_in(in->warp, &there, in->interpolation, y, xi, found, dim);
                continue;
            }
            xi = un_carry_foot_in(&a->old, in->u, in->dt, in->warp->centre[c], xi, &y, &outside,
                                  dim);
            if (pass == FORWARD) {
                un_carry_sample_in(&a->old, &a->from, in->interpolation, y, xi, a->to + c * count,
                                   dim);
                continue;
            }
            double low[UN_CARRY_FIELDS], high[UN_CARRY_FIELDS];
            range_in(g, &a->from, xi, low, high, dim);
            for (int k = 0; k < count; k++) {
                double *f = a->to + c * count + k;
                double better = *f + 0.5 * (a->from.value[c * count + k] - a->back[c * count + k]);
                if (better >= low[k] && better <= high[k]) *f = better;
            }
        }
    }
}

#define PASS(name, pass)                                                                           \
    static void name(void *arg, int64_t begin, int64_t end)                                        \
    {                                                                                              \
        const carry_args *a = arg;                                                                 \
        UN_BY_DIM(a->old.grid.dim, carry_in(a, pass, begin, end, dim));                            \
    }
PASS(forward, FORWARD)
PASS(back, BACK)
PASS(correct, CORRECT)

un_status un_carry_fields(un_context *ctx, un_arena *arena, double *to, const double *from,
                          int count, const un_carry *in)
{
    const un_grid *g = &in->warp->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    carry_args a = {.in = in, .old = *in->warp, .from = {from, count}, .to = to};
    UN_ASSERT(count <= UN_CARRY_FIELDS);
    a.old.centre = (un_vec3 *)(uintptr_t)in->was;
    un_parallel_for(ctx, rows, GRAIN, forward, &a);
    if (!in->maccormack) return UN_OK;
    a.back = un_arena_alloc(arena, (size_t)g->cell_count * (size_t)count, sizeof *a.back);
    if (!a.back) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, rows, GRAIN, back, &a);
    un_parallel_for(ctx, rows, GRAIN, correct, &a);
    return UN_OK;
}
