/* The cut surface over ranks: vertices of ghosts for a level set, and for an output all vertices to
 * all, numbered as on one rank.
 *
 * A vertex belongs to the rank of its edge's lesser node, a triangle to that of its tet. Both are
 * numbered along the mesh, so the ranks' lists, one after the other, have the numbers of one
 * rank. */
#include "surface/cut.h"

/* A vertex as the other ranks see it. */
typedef struct crossing {
    uint32_t end[2]; /* nodes on one rank, the lesser first */
    un_vec3 x;
} crossing;

static uint64_t edge_of(const crossing *c)
{
    return (uint64_t)c->end[0] << 32 | c->end[1];
}

static void list_crossings(const un_cut *cut, crossing *mine)
{
    const un_tet_share *share = cut->mesh->share;
    un_part own = un_cut_own_vertices(cut);
    for (int64_t v = own.begin; v < own.end; v++)
        *mine++ = (crossing){
            {un_tet_share_number(share, cut->from[v]), un_tet_share_number(share, cut->to[v])},
            cut->x[v]};
}

/* The vertex on an edge between nodes of one rank; -1: none is there. */
static int32_t find_crossing(const crossing *all, int64_t count, uint32_t from, uint32_t to)
{
    uint64_t edge = (uint64_t)from << 32 | to;
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (edge_of(&all[middle]) < edge)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && edge_of(&all[low]) == edge ? (int32_t)low : -1;
}

/* Numbers of this rank's vertices among all. Ghosts have edges that other ranks do not have; no
 * tet around an own node has them. */
static void number_vertices(un_cut *cut, const crossing *all, int64_t count, int64_t first)
{
    const un_tet_share *share = cut->mesh->share;
    un_part own = un_cut_own_vertices(cut);
    for (int32_t v = 0; v < cut->first[cut->node_count]; v++) {
        cut->same[v] = (int32_t)(first + v - own.begin);
        if (v >= own.begin && v < own.end) continue;
        uint32_t from = un_tet_share_number(share, cut->from[v]),
                 to = un_tet_share_number(share, cut->to[v]);
        cut->same[v] = from == UN_TET_SHARE_NOWHERE || to == UN_TET_SHARE_NOWHERE
                           ? -1
                           : find_crossing(all, count, from, to);
    }
}

static un_status take_vertices(un_context *ctx, un_arena *arena, un_cut *cut, const crossing *all,
                               int64_t count, int64_t first)
{
    if (count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the surface would have %.3g vertices, more than 32-bit numbers can count; "
                       "lower detail.surface",
                       (double)count);
    un_vec3 *x = un_arena_alloc(arena, (size_t)count + 1, sizeof *x);
    cut->same = un_arena_alloc(arena, (size_t)cut->vertex_count + 1, sizeof *cut->same);
    if (!x || !cut->same) return UN_ERROR_MEMORY;
    number_vertices(cut, all, count, first);
    for (int64_t v = 0; v < count; v++) x[v] = all[v].x;
    cut->x = x;
    cut->vertex_count = (int32_t)count;
    return UN_OK;
}

/* Of the cut tets, this rank's own. */
static void keep_own_tets(un_cut *cut)
{
    un_part own = un_tets_own(cut->mesh);
    int32_t begin = 0, end;
    while (begin < cut->tet_count && cut->tet[begin] < own.begin) begin++;
    for (end = begin; end < cut->tet_count && cut->tet[end] < own.end;) end++;
    cut->tet += begin;
    cut->tet_count = end - begin;
}

un_status un_cut_unite(un_context *ctx, un_arena *arena, un_cut *cut)
{
    un_part own = un_cut_own_vertices(cut);
    un_range range = un_ranks_range(ctx, own.end - own.begin);
    crossing *mine = un_arena_alloc(arena, (size_t)(own.end - own.begin) + 1, sizeof *mine);
    void *all = NULL;
    int64_t count;
    UN_TRY(un_ranks_agree(ctx, mine ? UN_OK : UN_ERROR_MEMORY));
    list_crossings(cut, mine);
    UN_TRY(un_ranks_list(ctx, mine, own.end - own.begin, sizeof *mine, &all, &count));
    un_status status = take_vertices(ctx, arena, cut, all, count, range.begin);
    un_free(ctx, all);
    keep_own_tets(cut);
    return un_ranks_agree(ctx, status);
}

/* ---- vertices of ghosts ---- */

typedef struct edge_name {
    uint32_t end[2]; /* nodes on one rank, the lesser first */
    int32_t from;    /* the rank that asks */
} edge_name;

typedef struct vertex_questions {
    edge_name *mine, *asked;
    un_vec3 *known, *told;
    int32_t *vertex, *to, *back; /* to ascends, because nodes do */
    int64_t count, asked_count;
} vertex_questions;

static un_status list_questions(un_context *ctx, const un_cut *cut, vertex_questions *q)
{
    const un_tet_share *share = cut->mesh->share;
    un_part own = un_cut_own_vertices(cut);
    size_t room = (size_t)(cut->vertex_count - (own.end - own.begin)) + 1;
    UN_ALLOC(ctx, q->mine, room);
    UN_ALLOC(ctx, q->vertex, room);
    UN_ALLOC(ctx, q->to, room);
    for (int32_t v = 0; v < cut->vertex_count; v++) {
        if (v >= own.begin && v < own.end) continue;
        uint32_t from = un_tet_share_number(share, cut->from[v]),
                 to = un_tet_share_number(share, cut->to[v]);
        if (from == UN_TET_SHARE_NOWHERE || to == UN_TET_SHARE_NOWHERE) continue;
        q->mine[q->count] = (edge_name){{from, to}, un_rank(ctx)};
        q->to[q->count] = un_tets_node_owner(cut->mesh, share->tree, cut->from[v]);
        q->vertex[q->count++] = v;
    }
    return UN_OK;
}

/* NaN where there is no such edge: ghosts have some that no tet around an own node has. */
static un_vec3 find_vertex(const un_cut *cut, const edge_name *name)
{
    const un_tet_share *share = cut->mesh->share;
    int64_t n = (int64_t)name->end[0] - share->nodes.begin + share->node_begin;
    int32_t place = cut->place[n];
    for (int32_t v = place < 0 ? 0 : cut->first[place]; place >= 0 && v < cut->first[place + 1];
         v++)
        if (un_tet_share_number(share, cut->to[v]) == name->end[1]) return cut->x[v];
    return un_v3(NAN, NAN, NAN);
}

static un_status answer_questions(un_context *ctx, const un_cut *cut, vertex_questions *q)
{
    UN_ALLOC(ctx, q->known, q->asked_count + 1);
    UN_ALLOC(ctx, q->back, q->asked_count + 1);
    for (int64_t k = 0; k < q->asked_count; k++) {
        q->known[k] = find_vertex(cut, &q->asked[k]);
        q->back[k] = q->asked[k].from;
    }
    return UN_OK;
}

static un_status ask_vertices(un_context *ctx, un_cut *cut, vertex_questions *q)
{
    UN_TRY(un_ranks_agree(ctx, list_questions(ctx, cut, q)));
    UN_TRY(un_exchange_once(ctx, q->mine, q->to, q->count, sizeof *q->mine, (void **)&q->asked,
                            &q->asked_count));
    UN_TRY(un_ranks_agree(ctx, answer_questions(ctx, cut, q)));
    UN_TRY(un_exchange_reply(ctx, q->known, q->back, q->asked_count, sizeof *q->known, q->to,
                             q->count, (void **)&q->told));
    for (int64_t k = 0; k < q->count; k++)
        if (!isnan(q->told[k].x)) cut->x[q->vertex[k]] = q->told[k];
    return UN_OK;
}

un_status un_cut_share_vertices(un_context *ctx, un_cut *cut)
{
    vertex_questions q = {0};
    if (!cut->mesh->share) return UN_OK;
    un_status status = ask_vertices(ctx, cut, &q);
    void *blocks[] = {q.mine, q.asked, q.known, q.told, q.vertex, q.to, q.back};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    return status;
}

/* ---- rank 0 gets what stands for clusters ---- */

static un_status list_nearest(un_arena *arena, const un_cut *cut, uint32_t **nearest)
{
    const un_tets *mesh = cut->mesh;
    un_part own = un_cut_own_vertices(cut);
    *nearest = un_arena_alloc(arena, (size_t)(own.end - own.begin) + 1, sizeof **nearest);
    if (!*nearest) return UN_ERROR_MEMORY;
    for (int64_t v = own.begin; v < own.end; v++) {
        int32_t node = un_cut_nearest(cut, (int32_t)v, cut->x[cut->same[v]]);
        (*nearest)[v - own.begin] =
            node < 0 ? UN_TET_SHARE_NOWHERE : un_tet_share_number(mesh->share, node);
    }
    return UN_OK;
}

un_status un_cut_gather_nearest(un_context *ctx, un_arena *arena, const un_cut *cut, uint32_t **all)
{
    un_part own = un_cut_own_vertices(cut);
    uint32_t *mine;
    UN_TRY(un_ranks_agree(ctx, list_nearest(arena, cut, &mine)));
    un_range range = un_ranks_range(ctx, own.end - own.begin);
    *all = NULL;
    if (un_rank(ctx) == 0) *all = un_arena_alloc(arena, (size_t)range.total + 1, sizeof **all);
    UN_TRY(un_ranks_agree(ctx, *all || un_rank(ctx) > 0 ? UN_OK : UN_ERROR_MEMORY));
    un_ranks_own_window(ctx, range, mine, sizeof *mine, 0, range.total, *all);
    return UN_OK;
}
