/* The divergence that cells of a grid that warps should have: what the ledger misses, and room for
 * particles that have crowded together. */
#include "pressure/crowding.h"
#include "pressure/pressure.h"

/* As in project.c: noise of the fraction, what is a heap, what counts next to cells that a solid
 * cuts. */
#define CROWDING_NOISE 0.05
#define CROWDING_HEAP 0.25
#define CROWDING_CUT 1.0

static double wanted(const un_warp_divergence *d, int64_t c)
{
    const un_grid *g = d->walls->grid;
    double sigma = d->expansion, crowding = d->colour[c] - 1;
    if (fabs(crowding) < CROWDING_NOISE || !(d->phi[c] < 0)) return sigma;
    bool cut = d->walls->volume[c] < 1, air = false;
    bool deep = d->depth && d->depth[c] > d->deepest;
    for (int f = 0; f < 2 * g->dim; f++) {
        int64_t m = c + (f & 1 ? g->stride[f / 2] : -g->stride[f / 2]);
        float open = d->walls->volume[m];
        cut = cut || (open > 0 && open < 1);
        air = air || (open > 0 && !(d->phi[m] < 0));
    }
    if (deep || (cut && crowding < CROWDING_CUT) || (air && crowding < 0)) return sigma;
    double heap = crowding - CROWDING_HEAP;
    crowding -= copysign(CROWDING_NOISE, crowding);
    return un_crowding_add(sigma, crowding, heap, d->dt, d->pace);
}

static void want_rows(void *arg, int64_t begin, int64_t end)
{
    const un_warp_divergence *d = arg;
    const un_grid *g = d->walls->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        bool padding = j == 0 || j == g->n[1] - 1 || (g->dim == 3 && (k == 0 || k == g->n[2] - 1));
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            d->source[c] = padding || i == 0 || i == g->n[0] - 1 ? 0 : (float)wanted(d, c);
        }
    }
}

void un_warp_want_divergence(un_context *ctx, const un_warp_divergence *def)
{
    un_warp_divergence d = *def;
    un_parallel_for(ctx, (int64_t)d.walls->grid->n[1] * d.walls->grid->n[2], 32, want_rows, &d);
}
