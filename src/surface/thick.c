/* Where liquid is thick enough for the level set to tell its volume.
 *
 * The level set comes from smoothed volumes. It encloses the liquid's volume where liquid is
 * thicker than the kernel, and misjudges sheets, streams and drops of a cell or two by tens of per
 * cent, either way. Those have the volume of their particles.
 *
 * Core: liquid whose neighbours are all liquid or wall. Thick: the core and two layers around it,
 * so that every surface of the core's liquid lies in it. */
#include "surface/surface.h"

/* ---- on the grid ---- */

typedef struct grid_args {
    uint8_t *thick;
    const uint8_t *from;
    const float *phi;
    const un_grid *grid;
    const un_walls *walls;
    double reach; /* cells with a larger phi hold no liquid, m */
} grid_args;

UN_KERNEL bool is_padding(const un_grid *g, int32_t j, int32_t k, int dim)
{
    return j == 0 || j == g->n[1] - 1 || (dim == 3 && (k == 0 || k == g->n[2] - 1));
}

UN_KERNEL bool core_at(const grid_args *a, int32_t i, int32_t j, int32_t k, int dim)
{
    const un_grid *g = a->grid;
    int64_t c = un_grid_cell(g, i, j, k);
    if (!(a->phi[c] < 0) || !(a->walls->volume[c] > 0)) return false;
    for (int dz = dim == 3 ? -1 : 0; dz <= (dim == 3 ? 1 : 0); dz++)
        for (int dy = -1; dy <= 1; dy++) {
            if (is_padding(g, j + dy, k + dz, dim)) continue;
            for (int dx = -1; dx <= 1; dx++) {
                int64_t m = c + dx + dy * g->stride[1] + dz * g->stride[2];
                bool padding = i + dx == 0 || i + dx == g->n[0] - 1;
                if (!(a->phi[m] < 0) && !padding && a->walls->volume[m] > 0) return false;
            }
        }
    return true;
}

UN_KERNEL void find_core_in(const grid_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        uint8_t *thick = a->thick + un_grid_cell(g, 0, j, k);
        memset(thick, 0, (size_t)g->n[0]);
        if (is_padding(g, j, k, dim)) continue;
        for (int32_t i = 1; i < g->n[0] - 1; i++) thick[i] = core_at(a, i, j, k, dim);
    }
}

static void find_core(void *arg, int64_t begin, int64_t end)
{
    const grid_args *a = arg;
    UN_BY_DIM(a->grid->dim, find_core_in(a, begin, end, dim));
}

UN_KERNEL void widen_in(const grid_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        int64_t first = un_grid_cell(g, 0, j, k);
        memcpy(a->thick + first, a->from + first, (size_t)g->n[0]);
        if (is_padding(g, j, k, dim)) continue;
        for (int64_t c = first + 1; c < first + g->n[0] - 1; c++) {
            if (a->from[c] || !(a->phi[c] < a->reach)) continue;
            uint8_t any = 0;
            for (int dz = dim == 3 ? -1 : 0; dz <= (dim == 3 ? 1 : 0) && !any; dz++)
                for (int dy = -1; dy <= 1; dy++) {
                    const uint8_t *f = a->from + c + dy * g->stride[1] + dz * g->stride[2];
                    any |= f[-1] | f[0] | f[1];
                }
            a->thick[c] = any;
        }
    }
}

static void widen(void *arg, int64_t begin, int64_t end)
{
    const grid_args *a = arg;
    UN_BY_DIM(a->grid->dim, widen_in(a, begin, end, dim));
}

un_status un_surface_thick_grid(un_context *ctx, un_arena *arena, uint8_t **thick, const float *phi,
                                const un_grid *grid, const un_walls *walls)
{
    size_t cells = (size_t)grid->cell_count + 1;
    uint8_t *first = un_arena_alloc(arena, cells, 1), *second = un_arena_alloc(arena, cells, 1);
    if (!first || !second) return UN_ERROR_MEMORY;
    grid_args a = {first, second, phi, grid, walls, 1.49 * grid->h};
    /* of several ranks, also where this one has copies of particles */
    un_parallel_runs(ctx, un_grid_own_rows(grid, 4), 64, find_core, &a);
    for (int layer = 0; layer < 2; layer++) {
        const uint8_t *last = a.thick;
        a.thick = layer == 0 ? second : first;
        a.from = last;
        un_parallel_runs(ctx, un_grid_own_rows(grid, 3 - layer), 64, widen, &a);
    }
    *thick = a.thick;
    return UN_OK;
}

/* ---- on tets ---- */

typedef struct tet_args {
    uint8_t *tet, *node;
    const float *phi;
    const un_tets *mesh;
    const un_tet_walls *walls;
} tet_args;

enum { WALL = 0, AIR = 1, LIQUID = 2, LIQUID_IN_WALL = 4 };

static void tell_nodes(void *arg, int64_t begin, int64_t end)
{
    const tet_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        bool wet = a->phi[n] < 0, wall = a->walls->phi[n] <= 0;
        a->node[n] = wet ? wall ? LIQUID_IN_WALL : LIQUID : wall ? WALL : AIR;
    }
}

/* Unites the bytes of a tet's nodes. */
static void gather_nodes(void *arg, int64_t begin, int64_t end)
{
    const tet_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->mesh->tet[t];
        a->tet[t] = a->node[n[0]] | a->node[n[1]] | a->node[n[2]] | a->node[n[3]];
    }
}

static void find_core_nodes(void *arg, int64_t begin, int64_t end)
{
    const tet_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        bool core = a->node[n] == LIQUID;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && core; k++)
            core = !(a->tet[mesh->corner[k] >> 2] & AIR);
        a->node[n] = core;
    }
}

/* Adds tets that touch a marked node to those marked. */
static void mark_tets(void *arg, int64_t begin, int64_t end)
{
    const tet_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->mesh->tet[t];
        if (!a->tet[t]) a->tet[t] = a->node[n[0]] | a->node[n[1]] | a->node[n[2]] | a->node[n[3]];
    }
}

static void mark_nodes(void *arg, int64_t begin, int64_t end)
{
    const tet_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++)
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && !a->node[n]; k++)
            a->node[n] = a->tet[mesh->corner[k] >> 2];
}

un_status un_surface_thick_tets(un_context *ctx, un_arena *arena, uint8_t **thick, const float *phi,
                                const un_tets *mesh, const un_tet_walls *walls)
{
    tet_args a = {.phi = phi, .mesh = mesh, .walls = walls};
    a.tet = un_arena_alloc(arena, (size_t)mesh->tet_count + 1, 1);
    a.node = un_arena_alloc(arena, (size_t)mesh->node_count + 1, 1);
    un_field marks = {"thick", a.node, NULL, 1};
    UN_TRY(un_tets_agree(mesh, a.tet && a.node ? UN_OK : UN_ERROR_MEMORY));
    un_parallel_for(ctx, mesh->node_count, 16384, tell_nodes, &a);
    un_parallel_for(ctx, mesh->tet_count, 2048, gather_nodes, &a);
    un_parallel_for(ctx, mesh->node_count, 1024, find_core_nodes, &a);
    UN_TRY(un_tets_share(mesh, &marks, 1));
    un_parallel_for(ctx, mesh->tet_count, 2048, gather_nodes, &a);
    for (int layer = 0; layer < 2; layer++) {
        un_parallel_for(ctx, mesh->node_count, 1024, mark_nodes, &a);
        UN_TRY(un_tets_share(mesh, &marks, 1));
        un_parallel_for(ctx, mesh->tet_count, 2048, mark_tets, &a);
    }
    *thick = a.tet;
    return UN_OK;
}
