/* The tets of each node, ascending.
 *
 * Half of all corners are centres of leaves. The tets of a centre are those that its leaf owns and
 * those of the lower faces it shares with leaves of its size: runs of successive tets, written as
 * runs.
 *
 * The others are sorted by node (a counting sort), in blocks that fit the cache. Nodes and tets
 * both follow the leaves, so most corners of the tets of a range of leaves are nodes of the same
 * range. A block is a range of nodes and the tets of the leaves that begin in it: it counts its own
 * corners and hands those of other blocks to them, in the order of the blocks. */
#include "mesh/tets_internal.h"

/* Nodes per block: at least 2^11 (a thousand leaves, 100 kB of tets), more to limit the number of
 * blocks, since counts are kept for all pairs. */
#define BLOCK_BITS 11
#define BLOCKS_MAX 1024

typedef struct export
{
    int32_t node, corner;
}
export;

typedef struct incidence {
    const un_tets_work *work;
    un_tets *mesh;
    int32_t block_bits, block_count;
    int32_t *first_leaf; /* by block, and the end: the first leaf whose first node is in it */
    int32_t *count;      /* by node: corners from its own block, and those of centres */
    /* Corners handed from block s to block d: counts, then places, of handed[s block_count + d]. */
    int32_t *handed;
    /* By block, and the end: where the corners of its nodes begin, and where in exports those
     * handed to it begin, and those from higher blocks. */
    int32_t *first_corner, *first_export, *first_higher;
    export *exports;
} incidence;

typedef struct block {
    int32_t base, width;           /* nodes */
    int32_t first_tet, last_tet;   /* last: one past the end */
    int32_t first_leaf, last_leaf; /* leaves whose centres are in it */
} block;

static inline int32_t center_of(const un_tets_work *w, int32_t c)
{
    return un_leaf_node(w, c, UN_CODE_CENTER);
}

static block block_at(const incidence *b, int64_t i)
{
    const un_tets_work *w = b->work;
    block s = {.base = (int32_t)(i << b->block_bits)};
    s.width = (int32_t)un_min64((int64_t)1 << b->block_bits, b->mesh->node_count - s.base);
    s.first_leaf = b->first_leaf[i];
    s.last_leaf = b->first_leaf[i + 1];
    s.first_tet = w->first_tet[s.first_leaf];
    s.last_tet = w->first_tet[s.last_leaf];
    /* A leaf may begin in one block and have its centre in the next. */
    if (s.first_leaf > 0 && center_of(w, s.first_leaf - 1) >= s.base) s.first_leaf--;
    if (s.last_leaf > s.first_leaf && center_of(w, s.last_leaf - 1) >= s.base + s.width)
        s.last_leaf--;
    return s;
}

/* Finds the runs of a centre's tets in the lower faces, by first tet; returns how many. */
static inline int32_t lower_runs(const un_tets *mesh, int32_t c, int32_t first[3], int32_t count[3])
{
    int32_t n = 0;
    for (int32_t f = 4; f >= 0; f -= 2) {
        uint32_t code = mesh->face_code[c][f];
        if ((code & UN_FACE_KIND) != UN_FACE_OTHER) continue;
        int32_t t = mesh->face_tet[c][f], k = n++;
        for (; k > 0 && first[k - 1] > t; k--) first[k] = first[k - 1], count[k] = count[k - 1];
        first[k] = t;
        count[k] = 4 + __builtin_popcount(code & 0xf);
    }
    return n;
}

/* The first two or three corners of a tet are not centres. */
static inline int32_t plain_corners(const un_tets *mesh, int32_t t)
{
    return mesh->shape[t] < UN_SHAPE_FINER_HALF ? 2 : 3;
}

static void count_corners(void *arg, int64_t begin, int64_t end)
{
    incidence *b = arg;
    const un_tets *mesh = b->mesh;
    for (int64_t i = begin; i < end; i++) {
        block s = block_at(b, i);
        int32_t *handed = b->handed + i * b->block_count, *count = b->count + s.base, sum = 0;
        memset(handed, 0, (size_t)b->block_count * sizeof *handed);
        memset(count, 0, (size_t)s.width * sizeof *count);
        for (int32_t t = s.first_tet; t < s.last_tet; t++)
            for (int32_t k = 0; k < plain_corners(mesh, t); k++) {
                int32_t n = mesh->tet[t][k];
                if ((uint32_t)(n - s.base) < (uint32_t)s.width) {
                    count[n - s.base]++;
                    sum++;
                } else
                    handed[n >> b->block_bits]++;
            }
        for (int32_t c = s.first_leaf; c < s.last_leaf; c++) {
            if (!b->work->mask[c]) continue; /* of a part of a mesh */
            int32_t first[3], run[3], *own = &count[center_of(b->work, c) - s.base];
            *own = b->work->first_tet[c + 1] - b->work->first_tet[c];
            for (int32_t k = lower_runs(mesh, c, first, run) - 1; k >= 0; k--) *own += run[k];
            sum += *own;
        }
        b->first_corner[i] = sum;
    }
}

static void hand_over(void *arg, int64_t begin, int64_t end)
{
    incidence *b = arg;
    const un_tets *mesh = b->mesh;
    for (int64_t i = begin; i < end; i++) {
        block s = block_at(b, i);
        int32_t *handed = b->handed + i * b->block_count;
        for (int32_t t = s.first_tet; t < s.last_tet; t++)
            for (int32_t k = 0; k < plain_corners(mesh, t); k++) {
                int32_t n = mesh->tet[t][k];
                if ((uint32_t)(n - s.base) >= (uint32_t)s.width)
                    b->exports[handed[n >> b->block_bits]++] = (export){n, 4 * t + k};
            }
    }
}

static void write_center(const incidence *b, int32_t c, int32_t *out)
{
    int32_t first[3], count[3], runs = lower_runs(b->mesh, c, first, count);
    for (int32_t r = 0; r < runs; r++)
        for (int32_t k = 0; k < count[r]; k++) *out++ = 4 * (first[r] + k) + 2;
    for (int32_t t = b->work->first_tet[c]; t < b->work->first_tet[c + 1]; t++) *out++ = 4 * t + 3;
}

/* Collects the corners of a block: from lower blocks, its own, from higher blocks, so that they
 * ascend. */
static void place_corners(void *arg, int64_t begin, int64_t end)
{
    incidence *b = arg;
    un_tets *mesh = b->mesh;
    for (int64_t i = begin; i < end; i++) {
        block d = block_at(b, i);
        int32_t *first = mesh->first + d.base, *place = b->count + d.base, *corner = mesh->corner;
        int32_t in = b->first_export[i], split = b->first_higher[i], out = b->first_export[i + 1];
        for (int32_t e = in; e < out; e++) place[b->exports[e].node - d.base]++;
        int32_t next = b->first_corner[i];
        for (int32_t n = 0; n < d.width; n++) {
            int32_t count = place[n];
            first[n] = place[n] = next;
            next += count;
        }
        for (int32_t e = in; e < split; e++)
            corner[place[b->exports[e].node - d.base]++] = b->exports[e].corner;
        for (int32_t t = d.first_tet; t < d.last_tet; t++)
            for (int32_t k = 0; k < plain_corners(mesh, t); k++) {
                int32_t n = mesh->tet[t][k] - d.base;
                if ((uint32_t)n < (uint32_t)d.width) corner[place[n]++] = 4 * t + k;
            }
        for (int32_t e = split; e < out; e++)
            corner[place[b->exports[e].node - d.base]++] = b->exports[e].corner;
        for (int32_t c = d.first_leaf; c < d.last_leaf; c++)
            if (b->work->mask[c])
                write_center(b, c, corner + first[center_of(b->work, c) - d.base]);
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
    incidence b = {.work = work, .mesh = mesh, .block_bits = BLOCK_BITS};
    while ((int64_t)BLOCKS_MAX << b.block_bits < mesh->node_count) b.block_bits++;
    b.block_count = ((mesh->node_count - 1) >> b.block_bits) + 1;
    size_t block_count = (size_t)b.block_count;
    b.first_leaf = un_arena_alloc(arena, 4 * (block_count + 1), sizeof *b.first_leaf);
    b.handed = un_arena_alloc(arena, block_count * block_count, sizeof *b.handed);
    b.count = un_arena_alloc(arena, (size_t)mesh->node_count, sizeof *b.count);
    if (!b.first_leaf || !b.handed || !b.count) return UN_ERROR_MEMORY;
    b.first_corner = b.first_leaf + block_count + 1;
    b.first_export = b.first_corner + block_count + 1;
    b.first_higher = b.first_export + block_count + 1;
    for (int32_t s = 0; s < b.block_count; s++)
        b.first_leaf[s] = first_leaf_from(work, (int64_t)s << b.block_bits);
    b.first_leaf[b.block_count] = work->tree->leaf_count;
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
    UN_ASSERT(corner == 4 * mesh->tet_count);
    b.exports = un_arena_alloc(arena, (size_t)place + 1, sizeof *b.exports);
    if (!b.exports) return UN_ERROR_MEMORY;
    un_parallel_for(mesh->ctx, b.block_count, 1, hand_over, &b);
    un_parallel_for(mesh->ctx, b.block_count, 1, place_corners, &b);
    mesh->first[mesh->node_count] = 4 * mesh->tet_count;
    return UN_OK;
}
