/* Velocities beyond the liquid, one layer per pass: a face gets the mean of its known neighbours of
 * the same axis. */
#include "transfer/transfer.h"

typedef struct extrapolate_args {
    double *u, *w;
    uint8_t *known, *fresh; /* fresh: found in this pass */
    const un_grid *grid;
    uint8_t mark;
} extrapolate_args;

/* Marks the faces of a row that are not known but have a known neighbour; known or not, a neighbour
 * beyond the grid's ends counts as the face itself. A loop that compilers turn into vectors: most
 * faces are known, or far from any that is. */
static void find_fresh(const extrapolate_args *a, int32_t j, int32_t k)
{
    const un_grid *g = a->grid;
    int64_t sy = g->stride[1], sz = g->stride[2], first = un_grid_cell(g, 0, j, k);
    const uint8_t *known = a->known + first;
    const uint8_t *below = known - (j > 0 ? sy : 0), *above = known + (j < g->n[1] - 1 ? sy : 0);
    const uint8_t *behind = known - (k > 0 ? sz : 0), *front = known + (k < g->n[2] - 1 ? sz : 0);
    uint8_t *restrict fresh = a->fresh + first;
    int32_t last = g->n[0] - 1;
    for (int32_t i = 0; i <= last; i++) fresh[i] = below[i] | above[i] | behind[i] | front[i];
    for (int32_t i = 0; i < last; i++) fresh[i] |= known[i + 1];
    for (int32_t i = 1; i <= last; i++) fresh[i] |= known[i - 1];
    for (int32_t i = 0; i <= last; i++) fresh[i] = !known[i] & (fresh[i] != 0);
}

static void take_mean(const extrapolate_args *a, int64_t f, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = a->grid;
    int64_t sy = g->stride[1], sz = g->stride[2], near[6];
    const uint8_t *known = a->known + f;
    int count = 0;
    if (i > 0 && known[-1]) near[count++] = f - 1;
    if (i < g->n[0] - 1 && known[1]) near[count++] = f + 1;
    if (j > 0 && known[-sy]) near[count++] = f - sy;
    if (j < g->n[1] - 1 && known[sy]) near[count++] = f + sy;
    if (k > 0 && known[-sz]) near[count++] = f - sz;
    if (k < g->n[2] - 1 && known[sz]) near[count++] = f + sz;
    double u = 0, w = 0;
    for (int n = 0; n < count; n++) {
        u += a->u[near[n]];
        if (a->w) w += a->w[near[n]];
    }
    a->u[f] = u / count;
    if (a->w) a->w[f] = w / count;
}

static void find(void *arg, int64_t begin, int64_t end)
{
    extrapolate_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        int64_t first = un_grid_cell(g, 0, j, k);
        find_fresh(a, j, k);
        for (int32_t i = 0; i < g->n[0];) {
            uint64_t eight = 1;
            if (i + 8 <= g->n[0]) memcpy(&eight, a->fresh + first + i, sizeof eight);
            int32_t next = un_clampi(i + 8, 0, g->n[0]);
            for (; eight && i < next; i++)
                if (a->fresh[first + i]) take_mean(a, first + i, i, j, k);
            i = next;
        }
    }
}

static void adopt(void *arg, int64_t begin, int64_t end)
{
    extrapolate_args *a = arg;
    const uint8_t *fresh = a->fresh;
    uint8_t *restrict known = a->known, mark = a->mark;
    for (int64_t f = begin; f < end; f++) known[f] = fresh[f] ? mark : known[f];
}

/* With the ranks next to this one: all before the first pass, afterwards what the last one found.
 */
static un_status share(double *const u[3], double *const w[3], uint8_t *const known[3],
                       const un_grid *grid, int32_t layer)
{
    un_layered fields[9];
    int32_t count = 0, group = w ? 3 : 2;
    if (!grid->bars) return UN_OK;
    for (int axis = 0; axis < grid->dim; axis++) {
        fields[count++] = (un_layered){known[axis], 1};
        fields[count++] = (un_layered){u[axis], sizeof *u[axis]};
        if (w) fields[count++] = (un_layered){w[axis], sizeof *w[axis]};
    }
    if (layer == 0) return un_bars_share(grid->bars, fields, count, 1);
    return un_bars_share_marked(grid->bars, fields, count, group, (uint8_t)(layer + 1), 1);
}

un_status un_transfer_extrapolate(un_context *ctx, un_arena *arena, double *const u[3],
                                  double *const w[3], uint8_t *const known[3], const un_grid *grid,
                                  int32_t layers)
{
    uint8_t *fresh = un_arena_alloc(arena, (size_t)grid->cell_count, 1);
    if (!fresh) return UN_ERROR_MEMORY;
    un_runs rows = un_grid_own_rows(grid, 0), cells = un_grid_own_cells(grid, 0);
    for (int32_t layer = 0; layer < layers; layer++) {
        UN_TRY(share(u, w, known, grid, layer));
        for (int axis = 0; axis < grid->dim; axis++) {
            extrapolate_args a = {u[axis], w ? w[axis] : NULL,  known[axis], fresh,
                                  grid,    (uint8_t)(layer + 2)};
            un_parallel_runs(ctx, rows, 64, find, &a);
            un_parallel_runs(ctx, cells, un_block_grain(grid->cell_count), adopt, &a);
        }
    }
    return UN_OK;
}
