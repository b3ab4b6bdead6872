/* The order of bars: along a Hilbert curve in the plane of y and z, so that those which follow one
 * another are next to each other, and a part of the curve has a short border. */
#include "ranks/ranks.h"

/* Where a square of side n (a power of two) is passed: the d-th of its places. */
static void hilbert(int64_t n, int64_t d, int32_t *y, int32_t *z)
{
    int64_t at[2] = {0, 0};
    for (int64_t s = 1; s < n; s *= 2, d /= 4) {
        int64_t right = d / 2 & 1, up = (d ^ right) & 1;
        if (!up) {
            if (right) {
                at[0] = s - 1 - at[0];
                at[1] = s - 1 - at[1];
            }
            int64_t swap = at[0];
            at[0] = at[1];
            at[1] = swap;
        }
        at[0] += s * right;
        at[1] += s * up;
    }
    *y = (int32_t)at[0];
    *z = (int32_t)at[1];
}

/* Long grids are passed square by square. */
static void order(un_curve *c)
{
    int along = c->bars[1] > c->bars[0], across = 1 - along;
    int64_t side = 1, count = 0;
    while (side < c->bars[across]) side *= 2;
    for (int64_t begin = 0; begin < c->bars[along]; begin += side)
        for (int64_t d = 0; d < side * side; d++) {
            int32_t at[2];
            /* the curve ends where the next square begins */
            hilbert(side, d, &at[along], &at[across]);
            if (begin + at[along] >= c->bars[along] || at[across] >= c->bars[across]) continue;
            at[along] += (int32_t)begin;
            int32_t bar = at[0] + c->bars[0] * at[1];
            c->place[bar] = (int32_t)count;
            c->bar[count++] = bar;
        }
}

un_status un_curve_init(un_curve *c, un_context *ctx, int32_t rows_y, int32_t rows_z)
{
    *c = (un_curve){.rows = {rows_y, rows_z}, .shift = rows_z == 1 ? 3 : 6};
    for (int a = 0; a < 2; a++) c->bars[a] = (c->rows[a] + UN_BAR - 1) / UN_BAR;
    c->count = c->bars[0] * c->bars[1];
    UN_ALLOC(ctx, c->place, c->count);
    UN_ALLOC(ctx, c->bar, c->count);
    order(c);
    return UN_OK;
}

void un_curve_free(un_context *ctx, un_curve *c)
{
    un_free(ctx, c->place);
    un_free(ctx, c->bar);
    *c = (un_curve){0};
}
