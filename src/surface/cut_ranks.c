/* The cut surface over ranks: all of it on every rank.
 *
 * Walks to the nearest point (tet_distance.c) go wherever the surface leads, far from a rank's own
 * nodes, so every rank has all vertices and triangles: some 80 bytes for a vertex and its two
 * triangles, and 56 of them sent, once per level set. A dam break of 128 cells has 17 thousand
 * vertices beside 211 thousand tets: 1.4 MB.
 *
 * A vertex belongs to the rank of its edge's lesser node, a triangle to that of its tet. Both are
 * numbered along the mesh, so the ranks' lists, one after the other, have the numbers of one rank,
 * and walks meet triangles in the same order. */
#include "surface/cut.h"

/* A vertex as the other ranks see it. */
typedef struct crossing {
    uint32_t end[2]; /* nodes on one rank, the lesser first */
    un_vec3 x;
} crossing;
/* In `end`: the vertex lies on that node. */
#define ON_NODE 0x80000000u

static uint64_t edge_of(const crossing *c)
{
    return (uint64_t)(c->end[0] & ~ON_NODE) << 32 | (c->end[1] & ~ON_NODE);
}

/* A node's number on one rank; -1: neither own nor a ghost. */
static int64_t number_of(const un_tet_share *share, int32_t n)
{
    int64_t own = share->nodes.begin + n - share->node_begin;
    if (own >= share->nodes.begin && own < share->nodes.end) return own;
    int32_t low = 0, high = share->ghost_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (share->ghost[middle] < n)
            low = middle + 1;
        else
            high = middle;
    }
    return low < share->ghost_count && share->ghost[low] == n ? share->ghost_id[low] : -1;
}

/* Vertices on edges whose lesser node is this rank's own. */
static un_part own_vertices(const un_cut *cut)
{
    return (un_part){cut->first[cut->own.begin], cut->first[cut->own.end]};
}

static void list_crossings(const un_cut *cut, crossing *mine)
{
    const un_tet_share *share = cut->mesh->share;
    un_part own = own_vertices(cut);
    for (int64_t v = own.begin; v < own.end; v++, mine++) {
        int32_t node = un_cut_next_to(cut, (int32_t)v), end[2] = {cut->from[v], cut->to[v]};
        *mine = (crossing){.x = node < 0 ? cut->x[v] : cut->mesh->x[node]};
        for (int32_t e = 0; e < 2; e++) {
            mine->end[e] = (uint32_t)number_of(share, end[e]);
            if (node == end[e]) mine->end[e] |= ON_NODE;
        }
    }
}

/* Of the vertices on a node the first stands for all. */
static un_status merge(un_context *ctx, un_arena *arena, const crossing *all, int32_t count,
                       int32_t *stands)
{
    int64_t moved = 0, k = 0;
    for (int32_t v = 0; v < count; v++) {
        stands[v] = v;
        moved += ((all[v].end[0] | all[v].end[1]) & ON_NODE) != 0;
    }
    uint64_t *key = un_arena_alloc(arena, (size_t)moved + 1, sizeof *key); /* node, then vertex */
    if (!key) return UN_ERROR_MEMORY;
    for (int32_t v = 0; v < count; v++)
        for (int32_t e = 0; e < 2; e++)
            if (all[v].end[e] & ON_NODE)
                key[k++] = (uint64_t)(all[v].end[e] & ~ON_NODE) << 32 | (uint32_t)v;
    UN_TRY(un_parallel_sort_keys(ctx, arena, key, moved, 63));
    for (int64_t i = 1; i < moved; i++)
        if (key[i] >> 32 == key[i - 1] >> 32)
            stands[(uint32_t)key[i]] = stands[(uint32_t)key[i - 1]];
    return UN_OK;
}

/* The vertex on an edge between nodes of one rank; -1: none is there. */
static int32_t find_crossing(const crossing *all, int32_t count, int64_t from, int64_t to)
{
    uint64_t edge = (uint64_t)from << 32 | (uint64_t)to;
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (edge_of(&all[middle]) < edge)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && edge_of(&all[low]) == edge ? low : -1;
}

/* Numbers of this rank's vertices among all. Ghosts have edges that other ranks do not have; no
 * tet around an own node has them. */
static void number_vertices(un_cut *cut, const crossing *all, int32_t count, int64_t first,
                            const int32_t *stands)
{
    const un_tet_share *share = cut->mesh->share;
    un_part own = own_vertices(cut);
    for (int32_t v = 0; v < cut->first[cut->node_count]; v++) {
        int32_t number = (int32_t)(first + v - own.begin);
        if (v < own.begin || v >= own.end) {
            int64_t from = number_of(share, cut->from[v]), to = number_of(share, cut->to[v]);
            number = from < 0 || to < 0 ? -1 : find_crossing(all, count, from, to);
        }
        cut->same[v] = number < 0 ? -1 : stands[number];
    }
}

static un_status take_vertices(un_context *ctx, un_arena *arena, un_cut *cut, const crossing *all,
                               int64_t count, int64_t first)
{
    if (count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the surface would have %.3g vertices, more than 32-bit numbers can count; "
                       "make detail.finest smaller",
                       (double)count);
    int32_t *stands = un_arena_alloc(arena, (size_t)count + 1, sizeof *stands);
    un_vec3 *x = un_arena_alloc(arena, (size_t)count + 1, sizeof *x);
    cut->same = un_arena_alloc(arena, (size_t)cut->vertex_count + 1, sizeof *cut->same);
    if (!stands || !x || !cut->same) return UN_ERROR_MEMORY;
    UN_TRY(merge(ctx, arena, all, (int32_t)count, stands));
    number_vertices(cut, all, (int32_t)count, first, stands);
    for (int64_t v = 0; v < count; v++) x[v] = all[v].x;
    cut->x = x;
    cut->vertex_count = (int32_t)count;
    return UN_OK;
}

static un_status unite_vertices(un_context *ctx, un_arena *arena, un_cut *cut)
{
    un_part own = own_vertices(cut);
    un_range range = un_ranks_range(ctx, own.end - own.begin);
    crossing *mine = un_arena_alloc(arena, (size_t)(own.end - own.begin) + 1, sizeof *mine);
    void *all = NULL;
    int64_t count;
    UN_TRY(un_ranks_agree(ctx, mine ? UN_OK : UN_ERROR_MEMORY));
    list_crossings(cut, mine);
    UN_TRY(un_ranks_list(ctx, mine, own.end - own.begin, sizeof *mine, &all, &count));
    un_status status = take_vertices(ctx, arena, cut, all, count, range.begin);
    un_free(ctx, all);
    return un_ranks_agree(ctx, status);
}

static un_status take_triangles(un_context *ctx, un_arena *arena, un_cut *cut, const void *all,
                                int64_t count)
{
    if (count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the surface would have %.3g triangles, more than 32-bit numbers can "
                       "count; make detail.finest smaller",
                       (double)count);
    cut->triangle = un_arena_alloc(arena, (size_t)count + 1, sizeof *cut->triangle);
    if (!cut->triangle) return UN_ERROR_MEMORY;
    memcpy(cut->triangle, all, (size_t)count * sizeof *cut->triangle);
    cut->triangle_count = (int32_t)count;
    return UN_OK;
}

un_status un_cut_unite(un_context *ctx, un_arena *arena, un_cut *cut)
{
    void *all = NULL;
    int64_t count;
    UN_TRY(unite_vertices(ctx, arena, cut));
    UN_TRY(un_ranks_agree(ctx, un_cut_triangulate(ctx, arena, cut)));
    UN_TRY(un_ranks_list(ctx, cut->triangle, cut->triangle_count, sizeof *cut->triangle, &all,
                         &count));
    un_status status = take_triangles(ctx, arena, cut, all, count);
    un_free(ctx, all);
    return un_ranks_agree(ctx, status);
}
