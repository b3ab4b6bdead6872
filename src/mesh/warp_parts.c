/* Nodes of a grid that warps, one for each side of a thin wall.
 *
 * A node in or next to a thin wall is a corner of cells on both of its sides. Pressure and level
 * set need a value for each side there. The open cells around a node fall into groups of those that
 * see one another (walls_thin.c). The first group has the node itself; each further one gets a copy
 * of it, a place beyond the nodes. */
#include "mesh/mesh.h"

/* Cells less open than this are closed. */
#define OPEN_MIN 1e-3f

/* The cell at corner m of a node: (i, j, k) is the node's own upper cell. */
static int64_t cell_of(const un_grid *g, int64_t c, int m)
{
    return c - !(m & 1) - !(m >> 1 & 1) * g->stride[1] -
           (g->dim == 2 ? 0 : !(m >> 2) * g->stride[2]);
}

/* Of the open cells around a node, by bit x + 2 y + 4 z: those that are of one group, the largest
 * first. Returns how many groups there are. c: the cell above the node. */
static int find_groups(const un_walls *w, int64_t c, uint8_t group[8])
{
    const un_grid *g = w->grid;
    uint32_t left = 0;
    bool parted = false;
    int count = 0, cells = 1 << g->dim;
    for (int m = 0; m < cells; m++) {
        int64_t here = cell_of(g, c, m);
        if (!(w->volume[here] > OPEN_MIN) || !(w->warp->jacobian[here] > 0)) continue;
        left |= 1u << m;
        parted |= w->sight[here] != UN_SIGHT_ALL;
    }
    if (!parted) return left != 0;
    while (left) {
        uint32_t found = left & -left, done = 0;
        while (found != done) {
            int m = __builtin_ctz(found & ~done);
            uint32_t sight = w->sight[cell_of(g, c, m)];
            done |= 1u << m;
            for (int l = 0; l < cells; l++) {
                int way = (l & 1) - (m & 1) + 3 * ((l >> 1 & 1) - (m >> 1 & 1)) +
                          9 * ((l >> 2) - (m >> 2));
                if (left >> l & 1 && sight >> (13 + way) & 1) found |= 1u << l;
            }
        }
        left &= ~found;
        int at = count++;
        for (; at > 0 && __builtin_popcount(group[at - 1]) < __builtin_popcount(found); at--)
            group[at] = group[at - 1];
        group[at] = (uint8_t)found;
    }
    return count;
}

typedef struct part_args {
    const un_walls *walls;
    uint8_t *groups; /* at nodes */
} part_args;

static void count_groups(void *arg, int64_t begin, int64_t end)
{
    part_args *a = arg;
    const un_grid *g = a->walls->grid;
    int32_t rows = g->n[1] + 1;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % rows), k = (int32_t)(row / rows);
        for (int32_t i = 0; i <= g->n[0]; i++) {
            bool inside = i > 0 && i < g->n[0] && j > 0 && j < g->n[1] &&
                          (g->dim == 2 || (k > 0 && k < g->n[2]));
            uint8_t group[8];
            a->groups[un_grid_node(g, i, j, k)] =
                inside ? (uint8_t)find_groups(a->walls, un_grid_cell(g, i, j, k), group) : 0;
        }
    }
}

static void node_indices(const un_grid *g, int64_t n, int32_t at[3])
{
    at[0] = (int32_t)(n % (g->n[0] + 1));
    at[1] = (int32_t)(n / (g->n[0] + 1) % (g->n[1] + 1));
    at[2] = g->dim == 2 ? 0 : (int32_t)(n / g->node_stride[2]);
}

/* The cells of a copy's group take it as their corner. */
static un_status give_corners(un_context *ctx, un_warp_parts *p, const un_grid *g,
                              const un_warp_side *side)
{
    int32_t at[3];
    node_indices(g, side->node, at);
    for (uint32_t left = side->cells; left; left &= left - 1) {
        int m = __builtin_ctz(left), corners = 1 << g->dim, own = ~m & (corners - 1);
        int64_t c = cell_of(g, un_grid_cell(g, at[0], at[1], at[2]), m);
        if (p->at[c] < 0) {
            UN_TRY(un_array_reserve(ctx, (void **)&p->corner, &p->corner_capacity,
                                    (size_t)p->cell_count + 1, sizeof *p->corner));
            for (int l = 0; l < corners; l++)
                p->corner[p->cell_count][l] =
                    side->node + (l & 1) - (own & 1) +
                    ((l >> 1 & 1) - (own >> 1 & 1)) * g->node_stride[1] +
                    (g->dim == 2 ? 0 : ((l >> 2) - (own >> 2)) * g->node_stride[2]);
            p->at[c] = (int32_t)p->cell_count++;
        }
        p->corner[p->at[c]][own] = side->place;
    }
    return UN_OK;
}

static un_status list_sides(un_walls *w, un_warp_parts *p, const uint8_t *groups)
{
    const un_grid *g = w->grid;
    for (int64_t n = 0; n < g->node_count; n++) {
        uint8_t group[8];
        int32_t at[3];
        if (groups[n] < 2) continue;
        node_indices(g, n, at);
        int count = find_groups(w, un_grid_cell(g, at[0], at[1], at[2]), group);
        UN_TRY(un_array_reserve(w->ctx, (void **)&p->side, &p->side_capacity,
                                (size_t)p->side_count + (size_t)count, sizeof *p->side));
        for (int i = 0; i < count; i++) {
            un_warp_side side = {.node = n, .place = i == 0 ? n : p->place_count++};
            side.cells = group[i];
            if (i > 0) {
                UN_TRY(un_array_reserve(w->ctx, (void **)&p->copy, &p->copy_capacity,
                                        (size_t)(p->place_count - g->node_count), sizeof *p->copy));
                p->copy[side.place - g->node_count] = n;
            }
            p->side[p->side_count++] = side;
            if (i > 0) UN_TRY(give_corners(w->ctx, p, g, &side));
        }
    }
    return UN_OK;
}

un_status un_warp_parts_find(un_walls *w)
{
    un_warp_parts *p = &w->parts;
    const un_grid *g = w->grid;
    p->side_count = p->cell_count = 0;
    p->place_count = g->node_count;
    if (!w->parted) return UN_OK;
    part_args a = {w, un_alloc(w->ctx, (size_t)g->node_count, 1)};
    if (!a.groups) return UN_ERROR_MEMORY;
    un_parallel_for(w->ctx, g->node_count / (g->n[0] + 1), 32, count_groups, &a);
    un_status status = UN_OK;
    if (!p->at) p->at = un_alloc(w->ctx, (size_t)g->cell_count, sizeof *p->at);
    if (!p->at) status = UN_ERROR_MEMORY;
    for (int64_t c = 0; status == UN_OK && c < g->cell_count; c++) p->at[c] = -1;
    if (status == UN_OK) status = list_sides(w, p, a.groups);
    un_free(w->ctx, a.groups);
    return status;
}

void un_warp_parts_free(un_context *ctx, un_warp_parts *p)
{
    un_free(ctx, p->side);
    un_free(ctx, p->copy);
    un_free(ctx, p->at);
    un_free(ctx, p->corner);
    *p = (un_warp_parts){0};
}

void un_warp_places(const un_walls *w, int32_t i, int32_t j, int32_t k, int64_t place[8])
{
    const un_grid *g = w->grid;
    int32_t at = w->parts.cell_count > 0 ? w->parts.at[un_grid_cell(g, i, j, k)] : -1;
    if (at >= 0) {
        memcpy(place, w->parts.corner[at], sizeof w->parts.corner[at]);
        return;
    }
    for (int m = 0; m < 1 << g->dim; m++)
        place[m] = un_grid_node(g, i + (m & 1), j + (m >> 1 & 1), k + (m >> 2));
}

/* ---- values at places, from one grid to the next ---- */

void un_warp_parts_keep(un_warp_side *kept, const un_walls *w, const double *value)
{
    for (int64_t i = 0; i < w->parts.side_count; i++) {
        kept[i] = w->parts.side[i];
        kept[i].value = value[kept[i].place];
    }
}

/* A side takes the value of the one before that has most of its cells. */
void un_warp_parts_carry(double *value, const un_walls *w, const un_warp_side *kept, int64_t count)
{
    int64_t at = 0;
    for (int64_t i = 0; i < w->parts.side_count; i++) {
        const un_warp_side *side = &w->parts.side[i];
        int most = -1;
        if (side->place != side->node) value[side->place] = value[side->node];
        while (at < count && kept[at].node < side->node) at++;
        for (int64_t k = at; k < count && kept[k].node == side->node; k++) {
            int both = __builtin_popcount(kept[k].cells & side->cells);
            if (both > most) value[side->place] = kept[k].value;
            most = both > most ? both : most;
        }
    }
}
