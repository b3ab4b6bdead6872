/* Surface tension on the uniform grid.
 *
 * The particles' level set is smooth over a cell or two and noisy beyond, and a curvature is its
 * second derivative. So phi becomes the distance to its own zero set (distance.c), which brings the
 * surface's shape alone into the band around it; that is smoothed by
 *
 *     T = 2 S - S^2,   S = two passes of (1 2 1) / 4 along each axis
 *
 * which damps long waves in the fourth order of their wave number only, and
 *
 *     kappa = div (grad phi / |grad phi|)
 *
 * is taken at the cells on both sides of the surface, by differences over their neighbours. Linear
 * interpolation, which the projection does, gives it at the crossing: the curvature of a distance's
 * level sets is nearly linear across them. */
#include "tension/lattice.h"

/* Passes of (1 2 1) / 4 in S. */
#define PASSES 2

/* ---- setting up ---- */

static void copy_rows(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    const un_grid *g = l->in->grid;
    double inverse = g->inverse_h;
    for (int64_t row = begin; row < end; row++) {
        /* beyond the domain: as in its outermost cells */
        int32_t j = un_clampi((int32_t)(row % l->n[1]) - l->pad[1], 1, g->n[1] - 2);
        int32_t k =
            l->dim == 2 ? 0 : un_clampi((int32_t)(row / l->n[1]) - l->pad[2], 1, g->n[2] - 2);
        const float *from = l->in->phi + un_grid_cell(g, 0, j, k);
        for (int32_t i = 0; i < l->n[0]; i++)
            l->phi[row * l->n[0] + i] =
                (float)(inverse * (double)from[un_clampi(i - l->pad[0], 1, g->n[0] - 2)]);
    }
}

un_status un_lattice_allocate(un_tension_lattice *l, un_arena *arena)
{
    if (l->count > INT32_MAX)
        return un_fail(l->ctx, UN_ERROR_MEMORY,
                       "surface tension takes at most 2.1 billion cells; lower detail.finest");
    l->phi = un_arena_alloc(arena, (size_t)l->count, sizeof *l->phi);
    l->scratch = un_arena_alloc(arena, (size_t)l->count, sizeof *l->scratch);
    l->near = un_arena_alloc(arena, (size_t)l->count, 1);
    l->number = un_arena_alloc(arena, (size_t)l->count, sizeof *l->number);
    return l->phi && l->scratch && l->near && l->number ? UN_OK : UN_ERROR_MEMORY;
}

static un_status begin(un_tension_lattice *l, un_arena *arena)
{
    const un_grid *g = l->in->grid;
    double origin[3] = {g->origin.x, g->origin.y, g->origin.z},
           size[3] = {g->size.x, g->size.y, g->size.z};
    l->dim = g->dim;
    l->count = 1;
    for (int a = 0; a < 3; a++) {
        l->pad[a] = a < g->dim ? UN_LATTICE_PAD : 0;
        l->n[a] = g->n[a] + 2 * l->pad[a];
        l->stride[a] = l->count;
        l->count *= l->n[a];
        l->low[a] = -origin[a] * g->inverse_h + l->pad[a] - 0.5;
        l->high[a] = l->low[a] + size[a] * g->inverse_h;
    }
    UN_TRY(un_lattice_allocate(l, arena));
    un_parallel_for(l->ctx, l->count / l->n[0], 64, copy_rows, l);
    return UN_OK;
}

/* ---- smoothing ---- */

typedef struct smooth_args {
    const un_tension_lattice *l;
    const float *from;
    float *to;
    int64_t stride;
} smooth_args;

static void smooth_along(void *arg, int64_t begin, int64_t end)
{
    const smooth_args *s = arg;
    const un_tension_lattice *l = s->l;
    for (int64_t n = begin; n < end; n++) {
        int64_t c = l->cell[n];
        int32_t low = l->number[c - s->stride], high = l->number[c + s->stride];
        float here = s->from[n];
        s->to[n] = 0.5f * here +
                   0.25f * ((low < 0 ? here : s->from[low]) + (high < 0 ? here : s->from[high]));
    }
}

/* S, from d[0] to d[0]; d[1] is scratch. */
static void smooth(un_tension_lattice *l)
{
    for (int pass = 0; pass < PASSES * l->dim; pass++) {
        smooth_args s = {l, l->d[0], l->d[1], l->stride[pass % l->dim]};
        un_parallel_for(l->ctx, l->band_count, 4096, smooth_along, &s);
        l->d[1] = l->d[0];
        l->d[0] = s.to;
    }
}

static void combine(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    for (int64_t n = begin; n < end; n++) l->d[0][n] = 2 * l->d[2][n] - l->d[0][n];
}

void un_lattice_sharpen(un_tension_lattice *l)
{
    smooth(l);
    memcpy(l->d[2], l->d[0], (size_t)l->band_count * sizeof *l->d[0]);
    smooth(l);
    un_parallel_for(l->ctx, l->band_count, 4096, combine, l);
}

/* ---- curvature ---- */

static double value_at(const un_tension_lattice *l, int64_t c, double instead)
{
    int32_t q = l->number[c];
    return q < 0 ? instead : (double)l->d[0][q];
}

/* In 1/cells, bounded: smoothing leaves nothing that is rounder than a drop of two cells' radius.
 * With one cell's, single particles on walls were flung off at up to 8 times sqrt(sigma / rho h). */
#define ROUNDEST 0.5
UN_KERNEL double curvature_in(const un_tension_lattice *l, int64_t c, int dim)
{
    double g[3] = {0}, second[3][3] = {{0}}, here = (double)l->d[0][l->number[c]];
    for (int a = 0; a < dim; a++) {
        int64_t s = l->stride[a];
        double low = value_at(l, c - s, here), high = value_at(l, c + s, here);
        g[a] = 0.5 * (high - low);
        second[a][a] = high - 2 * here + low;
        for (int b = 0; b < a; b++) {
            int64_t r = l->stride[b];
            second[a][b] = 0.25 * (value_at(l, c + s + r, here) - value_at(l, c + s - r, here) -
                                   value_at(l, c - s + r, here) + value_at(l, c - s - r, here));
        }
    }
    double square = g[0] * g[0] + g[1] * g[1] + g[2] * g[2], sum = 0;
    for (int a = 0; a < dim; a++) {
        sum += second[a][a] * (square - g[a] * g[a]);
        for (int b = 0; b < a; b++) sum -= 2 * second[a][b] * g[a] * g[b];
    }
    double length = fmax(sqrt(square), 0.1);
    return un_clamp(sum / (length * length * length), -ROUNDEST * (dim - 1), ROUNDEST * (dim - 1));
}

double un_lattice_curvature(const un_tension_lattice *l, int64_t c)
{
    return l->dim == 2 ? curvature_in(l, c, 2) : curvature_in(l, c, 3);
}

typedef struct curvature_args {
    un_tension_lattice *l;
    double scale, mean;
} curvature_args;

/* The cell of the lattice. */
static int64_t lattice_cell(const un_tension_lattice *l, int64_t row)
{
    const un_grid *g = l->in->grid;
    int64_t j = row % g->n[1] + l->pad[1], k = row / g->n[1] + l->pad[2];
    return l->pad[0] + j * l->stride[1] + k * l->stride[2];
}

static void press_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const curvature_args *a = arg;
    const un_tension_lattice *l = a->l;
    const un_grid *g = l->in->grid;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = lattice_cell(l, row);
        double *p = l->in->pressure + row * g->n[0];
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = first + i;
            if (l->near[c] != UN_NEAR) continue;
            p[i] = a->scale * un_lattice_curvature(l, c);
            sums[0] += p[i];
            sums[1] += 1;
        }
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    const curvature_args *a = arg;
    const un_tension_lattice *l = a->l;
    const un_grid *g = l->in->grid;
    for (int64_t row = begin; row < end; row++) {
        const uint8_t *near = l->near + lattice_cell(l, row);
        for (int32_t i = 0; i < g->n[0]; i++)
            if (near[i] != UN_NEAR) l->in->pressure[row * g->n[0] + i] = a->mean;
    }
}

un_status un_lattice_prepare(un_tension_lattice *l, un_arena *arena)
{
    UN_TRY(begin(l, arena));
    un_lattice_extend(l);
    if (l->in->bodies) un_lattice_pull(l);
    UN_TRY(un_lattice_distance(l, arena));
    UN_TRY(un_lattice_turn(l, arena));
    if (l->warp) UN_TRY(un_lattice_measure(l, arena));
    un_lattice_sharpen(l);
    return UN_OK;
}

un_status un_tension_on_grid(un_context *ctx, un_arena *arena, const un_tension_grid *in)
{
    un_tension_lattice l = {.ctx = ctx, .in = in};
    const un_grid *g = in->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    UN_TRY(un_lattice_prepare(&l, arena));
    double sums[2] = {0};
    curvature_args a = {.l = &l, .scale = in->def->fluid.surface_tension / g->h};
    un_parallel_sums(ctx, rows, 2, press_rows, &a, sums);
    a.mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
    un_parallel_for(ctx, rows, 64, fill_rows, &a);
    return UN_OK;
}
