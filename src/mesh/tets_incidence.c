/* The tets of each node, ascending.
 *
 * A stable counting sort of all corners by node, in blocks that fit the cache. Nodes and tets both
 * follow the leaves, so nearly all corners of the tets of a range of leaves are nodes of the same
 * range. A block is a range of nodes and the leaves that begin in it: it counts its own corners,
 * and hands those of other blocks over to them, in order of the blocks. */
#include "mesh/tets_internal.h"

/* Nodes per block: 2^11 at least (100 kB of tets to a thousand leaves), more to bound the number of
 * blocks, as counts are kept for all pairs. */
#define BLOCK_BITS 11
#define BLOCKS_MAX 1024

typedef struct export
{
    int32_t node, corner;
}
export;

typedef struct incidence {
    un_tets *mesh;
    int32_t block_bits, block_count;
    int32_t *first_tet; /* by block, and one more */
    /* Corners handed from block s to block d: counts, then places, of handed[s block_count + d]. */
    int32_t *handed;
    /* By block, and one more: where corners of its nodes begin, where in exports those handed to it
     * begin, and those from higher blocks. */
    int32_t *first_corner, *first_export, *first_higher;
    export *exports;
} incidence;

static void count_corners(void *arg, int64_t begin, int64_t end)
{
    incidence *b = arg;
    const int32_t *node = b->mesh->tet[0];
    for (int64_t s = begin; s < end; s++) {
        int32_t base = (int32_t)(s << b->block_bits), count = 0;
        int32_t *handed = b->handed + s * b->block_count;
        uint32_t width = 1u << b->block_bits;
        for (int64_t k = 4 * (int64_t)b->first_tet[s]; k < 4 * (int64_t)b->first_tet[s + 1]; k++)
            if ((uint32_t)(node[k] - base) < width)
                count++;
            else
                handed[node[k] >> b->block_bits]++;
        b->first_corner[s] = count;
    }
}

static void hand_over(void *arg, int64_t begin, int64_t end)
{
    incidence *b = arg;
    const int32_t *node = b->mesh->tet[0];
    for (int64_t s = begin; s < end; s++) {
        int32_t base = (int32_t)(s << b->block_bits), *handed = b->handed + s * b->block_count;
        uint32_t width = 1u << b->block_bits;
        for (int64_t k = 4 * (int64_t)b->first_tet[s]; k < 4 * (int64_t)b->first_tet[s + 1]; k++)
            if ((uint32_t)(node[k] - base) >= width)
                b->exports[handed[node[k] >> b->block_bits]++] = (export){node[k], (int32_t)k};
    }
}

/* Corners of block d: from lower blocks, its own, from higher blocks, so that they ascend. */
static void place_corners(void *arg, int64_t begin, int64_t end)
{
    incidence *b = arg;
    un_tets *mesh = b->mesh;
    const int32_t *node = mesh->tet[0];
    for (int64_t d = begin; d < end; d++) {
        int32_t base = (int32_t)(d << b->block_bits);
        int32_t count = (int32_t)un_min64((int64_t)1 << b->block_bits, mesh->node_count - base);
        int32_t *first = mesh->first + base, *corner = mesh->corner;
        int32_t in = b->first_export[d], split = b->first_higher[d], out = b->first_export[d + 1];
        int64_t k_begin = 4 * (int64_t)b->first_tet[d], k_end = 4 * (int64_t)b->first_tet[d + 1];
        memset(first, 0, (size_t)count * sizeof *first);
        for (int32_t i = in; i < out; i++) first[b->exports[i].node - base]++;
        for (int64_t k = k_begin; k < k_end; k++)
            if ((uint32_t)(node[k] - base) < (uint32_t)count) first[node[k] - base]++;
        int32_t place = b->first_corner[d];
        for (int32_t n = 0; n < count; n++) {
            int32_t own = first[n];
            first[n] = place;
            place += own;
        }
        for (int32_t i = in; i < split; i++)
            corner[first[b->exports[i].node - base]++] = b->exports[i].corner;
        for (int64_t k = k_begin; k < k_end; k++)
            if ((uint32_t)(node[k] - base) < (uint32_t)count)
                corner[first[node[k] - base]++] = (int32_t)k;
        for (int32_t i = split; i < out; i++)
            corner[first[b->exports[i].node - base]++] = b->exports[i].corner;
        /* Each place has moved on to the next node's. */
        memmove(first + 1, first, (size_t)(count - 1) * sizeof *first);
        first[0] = b->first_corner[d];
    }
}

static int32_t first_leaf_from(const un_tets_work *work, int64_t node)
{
    int32_t lo = 0, hi = work->tree->leaf_count;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (work->first_node[mid] < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

un_status un_tets_incidence(const un_tets_work *work, un_arena *arena)
{
    un_tets *mesh = work->mesh;
    incidence b = {.mesh = mesh, .block_bits = BLOCK_BITS};
    while ((int64_t)BLOCKS_MAX << b.block_bits < mesh->node_count) b.block_bits++;
    b.block_count = ((mesh->node_count - 1) >> b.block_bits) + 1;
    size_t pair_count = (size_t)b.block_count * (size_t)b.block_count;
    b.first_tet = un_arena_alloc(arena, (size_t)b.block_count + 1, sizeof *b.first_tet);
    b.first_corner = un_arena_alloc(arena, (size_t)b.block_count + 1, sizeof *b.first_corner);
    b.first_export = un_arena_alloc(arena, (size_t)b.block_count + 1, sizeof *b.first_export);
    b.first_higher = un_arena_alloc(arena, (size_t)b.block_count + 1, sizeof *b.first_higher);
    b.handed = un_arena_alloc(arena, pair_count, sizeof *b.handed);
    if (!b.first_tet || !b.first_corner || !b.first_export || !b.first_higher || !b.handed)
        return UN_ERROR_MEMORY;
    memset(b.handed, 0, pair_count * sizeof *b.handed);
    for (int32_t s = 0; s < b.block_count; s++)
        b.first_tet[s] = work->first_tet[first_leaf_from(work, (int64_t)s << b.block_bits)];
    b.first_tet[b.block_count] = mesh->tet_count;
    un_parallel_for(mesh->ctx, b.block_count, 1, count_corners, &b);
    int32_t place = 0, corner = 0;
    for (int32_t d = 0; d < b.block_count; d++) {
        int32_t own = b.first_corner[d];
        b.first_export[d] = place;
        for (int32_t s = 0; s < b.block_count; s++) {
            int32_t *handed = &b.handed[(int64_t)s * b.block_count + d], count = *handed;
            if (s == d) b.first_higher[d] = place;
            *handed = place;
            place += count;
        }
        b.first_corner[d] = corner;
        corner += own + place - b.first_export[d];
    }
    b.first_export[b.block_count] = place;
    b.exports = un_arena_alloc(arena, (size_t)place + 1, sizeof *b.exports);
    if (!b.exports) return UN_ERROR_MEMORY;
    un_parallel_for(mesh->ctx, b.block_count, 1, hand_over, &b);
    un_parallel_for(mesh->ctx, b.block_count, 1, place_corners, &b);
    mesh->first[mesh->node_count] = 4 * mesh->tet_count;
    return UN_OK;
}
