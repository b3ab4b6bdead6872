/* One octree over several ranks.
 *
 * A rank has a part of the Morton curve. Inner cubes belong to the rank in whose part their lower
 * corner lies. They are found level by level as on one rank (octree_build.c); after each level
 * every rank hands the cubes that it found, for itself and for neighbours, to their owners. The
 * same way, children of inner cubes go to theirs, who know whether they are inner themselves; the
 * others are leaves. Every rank then has exactly the leaves that one rank would have in its part.
 *
 * Each leaf goes to the ranks that own any place in the 26 cubes of its size around it: at least
 * those whose leaves it touches. A rank asks for its own leaves and those that it got, and builds
 * the coarsest balanced tree that has them. The tree of one rank has them too and is balanced, so
 * it is nowhere coarser; hence none of these leaves is split, and all are as they were. */
#include "mesh/families.h"
#include "mesh/octree_inner.h"

/* A leaf as one number: its key, then its level. */
#define LEVEL_BITS 5

typedef struct share {
    un_octree *tree;
    un_tree_share *part;
    un_arena *arena;
    const uint64_t *cut;
    int32_t rank, rank_count;
    un_octree_inner inner[UN_LEVELS_MAX];
    uint64_t *leaf; /* this rank's, ascending */
    int64_t leaf_count;
} share;

void un_tree_share_free(un_tree_share *part)
{
    un_free(part->ctx, part->first);
    *part = (un_tree_share){.ctx = part->ctx};
}

/* Every number goes to a rank; those that come here, from the arena. */
static un_status send(share *s, un_status status, const int32_t *to, int64_t count,
                      const uint64_t *numbers, uint64_t **arrived, int64_t *arrived_count)
{
    un_context *ctx = s->tree->ctx;
    un_exchange *moves;
    UN_TRY(un_ranks_agree(ctx, status));
    UN_TRY(un_exchange_create_moves(ctx, to, count, &moves));
    *arrived_count = un_exchange_count(moves);
    *arrived = un_arena_alloc(s->arena, (size_t)*arrived_count + 1, sizeof **arrived);
    status = un_ranks_agree(ctx, *arrived ? UN_OK : UN_ERROR_MEMORY);
    un_field field = {"keys", numbers, *arrived, sizeof **arrived};
    if (status == UN_OK) status = un_exchange_run(moves, &field, 1);
    s->part->bytes += un_exchange_bytes(moves);
    un_exchange_destroy(moves);
    return status;
}

/* ---- inner cubes ---- */

static un_status swap_level(void *arg, un_status status, int32_t level, uint64_t **keys,
                            int64_t *count)
{
    share *s = arg;
    int32_t shift = 3 * (s->tree->level_max - level), *to = NULL;
    if (status == UN_OK) {
        to = un_arena_alloc(s->arena, (size_t)*count + 1, sizeof *to);
        if (!to) status = UN_ERROR_MEMORY;
    }
    for (int64_t i = 0; to && i < *count; i++)
        to[i] = un_ranks_owner(s->cut, s->rank_count, (*keys)[i] << shift);
    uint64_t *sent = *keys;
    return send(s, status, to, *count, sent, keys, count);
}

/* ---- leaves ---- */

static uint64_t leaf_of(const un_octree *tree, uint64_t place, int32_t level)
{
    return place << 3 * (tree->level_max - level) << LEVEL_BITS | (uint64_t)level;
}

static bool is_inner(const share *s, uint64_t leaf)
{
    int32_t level = (int32_t)(leaf & ((1 << LEVEL_BITS) - 1));
    if (level == s->tree->level_max) return false;
    const un_octree_inner *inner = &s->inner[level];
    uint64_t key = leaf >> LEVEL_BITS >> 3 * (s->tree->level_max - level);
    int64_t k = un_lower_bound(inner->key, inner->count, key);
    return k < inner->count && inner->key[k] == key;
}

/* Children of inner cubes, and whose they are. */
static un_status list_children(share *s, uint64_t **child, int32_t **to, int64_t *count)
{
    const un_octree *tree = s->tree;
    uint64_t children = (uint64_t)1 << tree->dim;
    int64_t room = 0, n = 0;
    for (int32_t l = 0; l < tree->level_max; l++) room += s->inner[l].count;
    room *= (int64_t)children;
    *child = un_arena_alloc(s->arena, (size_t)room + 1, sizeof **child);
    *to = un_arena_alloc(s->arena, (size_t)room + 1, sizeof **to);
    if (!*child || !*to) return UN_ERROR_MEMORY;
    for (int32_t l = 0; l < tree->level_max; l++)
        for (int64_t i = 0; i < s->inner[l].count; i++)
            for (uint64_t k = 0; k < children; k++, n++) {
                (*child)[n] = leaf_of(tree, s->inner[l].key[i] << 3 | k, l + 1);
                (*to)[n] = un_ranks_owner(s->cut, s->rank_count, (*child)[n] >> LEVEL_BITS);
            }
    *count = n;
    return UN_OK;
}

static un_status find_leaves(share *s, const uint64_t *roots)
{
    un_octree *tree = s->tree;
    uint64_t *child = NULL, *arrived;
    int32_t *to = NULL;
    int64_t count = 0, arrived_count, n = 0;
    int64_t root_count = (int64_t)tree->roots[0] * tree->roots[1] * tree->roots[2];
    un_status status = list_children(s, &child, &to, &count);
    UN_TRY(send(s, status, to, count, child, &arrived, &arrived_count));
    s->leaf = un_arena_alloc(s->arena, (size_t)(arrived_count + root_count) + 1, sizeof *s->leaf);
    if (!s->leaf) return UN_ERROR_MEMORY;
    for (int64_t i = 0; i < arrived_count; i++)
        if (!is_inner(s, arrived[i])) s->leaf[n++] = arrived[i];
    for (int64_t i = 0; i < root_count; i++) {
        uint64_t leaf = leaf_of(tree, roots[i], 0);
        if (un_ranks_owner(s->cut, s->rank_count, leaf >> LEVEL_BITS) == s->rank &&
            !is_inner(s, leaf))
            s->leaf[n++] = leaf;
    }
    s->leaf_count = n;
    return un_parallel_sort_keys(tree->ctx, s->arena, s->leaf, n, 62);
}

/* Where parts really begin: at their first leaf, so that all of a leaf is in one part. */
static un_status find_parts(share *s)
{
    un_context *ctx = s->tree->ctx;
    un_tree_share *part = s->part;
    un_free(ctx, part->first);
    part->first = un_alloc(ctx, (size_t)s->rank_count + 1, sizeof *part->first);
    UN_TRY(un_ranks_agree(ctx, part->first ? UN_OK : UN_ERROR_MEMORY));
    uint64_t first = s->leaf_count > 0 ? s->leaf[0] >> LEVEL_BITS : UINT64_MAX;
    un_ranks_gather(ctx, part->first, &first, sizeof first);
    part->first[s->rank_count] = UINT64_MAX;
    for (int32_t r = s->rank_count - 1; r >= 0; r--)
        if (part->first[r] == UINT64_MAX) part->first[r] = part->first[r + 1];
    part->leaves = un_ranks_range(ctx, s->leaf_count);
    return UN_OK;
}

/* ---- leaves of others ---- */

/* True if a box of finest cubes is all this rank's. Codes ascend with each coordinate, so those of
 * its cubes lie between those of two of its corners. */
static bool is_own_box(const uint64_t *first, int32_t rank, const int32_t low[3],
                       const int32_t high[3])
{
    return un_morton((uint32_t)low[0], (uint32_t)low[1], (uint32_t)low[2]) >= first[rank] &&
           un_morton((uint32_t)high[0], (uint32_t)high[1], (uint32_t)high[2]) < first[rank + 1];
}

/* Most leaves lie in the middle of a part, and are found out quickly. */
static bool is_inside(const share *s, const int32_t at[3], int32_t size)
{
    int32_t low[3], high[3];
    if (s->tree->dim == 2) return false;
    for (int a = 0; a < 3; a++) {
        low[a] = at[a] > size ? at[a] - size : 0;
        high[a] = at[a] + 2 * size - 1;
    }
    return is_own_box(s->part->first, s->rank, low, high);
}

/* The ranks other than this one that own a part of the cubes around a leaf; returns how many, and
 * lists them if `to` is not NULL. */
static int64_t ranks_around(const share *s, uint64_t leaf, int32_t *seen, int32_t mark, int32_t *to)
{
    const un_octree *tree = s->tree;
    const uint64_t *first = s->part->first;
    int32_t level = (int32_t)(leaf & ((1 << LEVEL_BITS) - 1)), at[3];
    int32_t size = 1 << (tree->level_max - level);
    uint64_t key = leaf >> LEVEL_BITS, cubes = (uint64_t)1 << 3 * (tree->level_max - level);
    int64_t count = 0;
    for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(key >> a);
    if (is_inside(s, at, size)) return 0;
    uint32_t set = UN_BESIDE_ALL & ~un_beside_outside(tree, at, size);
    if (tree->dim == 2) set &= 0x1ffu << 9;
    for (; set; set &= set - 1) {
        uint64_t from = un_beside_key(at, size, __builtin_ctz(set)), last = from + cubes - 1;
        if (from >= first[s->rank] && last < first[s->rank + 1]) continue;
        for (int32_t r = un_ranks_owner(first, s->rank_count, from);
             r < s->rank_count && first[r] <= last; r++) {
            if (r == s->rank || seen[r] == mark || first[r] == first[r + 1]) continue;
            seen[r] = mark;
            if (to) to[count] = r;
            count++;
        }
    }
    return count;
}

static un_status list_around(share *s, int32_t **index, int32_t **to, int64_t *count)
{
    int32_t *seen = un_arena_alloc(s->arena, (size_t)s->rank_count, sizeof *seen);
    int64_t n = 0;
    if (!seen) return UN_ERROR_MEMORY;
    memset(seen, 0, (size_t)s->rank_count * sizeof *seen);
    for (int64_t i = 0; i < s->leaf_count; i++)
        n += ranks_around(s, s->leaf[i], seen, (int32_t)i + 1, NULL);
    *index = un_arena_alloc(s->arena, (size_t)n + 1, sizeof **index);
    *to = un_arena_alloc(s->arena, (size_t)n + 1, sizeof **to);
    if (!*index || !*to) return UN_ERROR_MEMORY;
    *count = n;
    n = 0;
    memset(seen, 0, (size_t)s->rank_count * sizeof *seen);
    for (int64_t i = 0; i < s->leaf_count; i++) {
        int64_t more = ranks_around(s, s->leaf[i], seen, (int32_t)i + 1, *to + n);
        for (int64_t k = 0; k < more; k++) (*index)[n++] = (int32_t)i;
    }
    return UN_OK;
}

/* Ghosts: leaves of others that touch this rank's, and some more. */
static un_status get_ghosts(share *s, uint64_t **ghost, int64_t *ghost_count)
{
    un_context *ctx = s->tree->ctx;
    int32_t *index = NULL, *to = NULL;
    int64_t count = 0;
    un_exchange *copies;
    UN_TRY(un_ranks_agree(ctx, list_around(s, &index, &to, &count)));
    UN_TRY(un_exchange_create_copies(ctx, index, to, count, &copies));
    *ghost_count = un_exchange_count(copies);
    *ghost = un_arena_alloc(s->arena, (size_t)*ghost_count + 1, sizeof **ghost);
    un_status status = un_ranks_agree(ctx, *ghost ? UN_OK : UN_ERROR_MEMORY);
    un_field field = {"leaves", s->leaf, *ghost, sizeof **ghost};
    if (status == UN_OK) status = un_exchange_run(copies, &field, 1);
    s->part->bytes += un_exchange_bytes(copies);
    un_exchange_destroy(copies);
    return status;
}

/* ---- the rank's own tree ---- */

static un_status mark_known(const share *s, const uint64_t *ghost, int64_t ghost_count)
{
    un_octree *tree = s->tree;
    size_t leaves = (size_t)tree->leaf_count, own = (size_t)s->part->begin;
    UN_TRY(un_array_need(tree->ctx, (void **)&tree->known, &tree->capacity_known, leaves + 1, 1));
    memset(tree->known, 0, leaves);
    memset(tree->known + own, UN_LEAF_OWN, (size_t)s->leaf_count);
    for (int64_t i = 0; i < ghost_count; i++)
        tree->known[un_octree_find_key(tree, ghost[i] >> LEVEL_BITS)] = UN_LEAF_GHOST;
    tree->partial = true;
    return UN_OK;
}

static un_status build_own(share *s, const uint64_t *ghost, int64_t ghost_count)
{
    un_octree *tree = s->tree;
    un_tree_share *part = s->part;
    size_t count = (size_t)(s->leaf_count + ghost_count);
    double *x = un_arena_alloc(s->arena, 3 * count + 1, sizeof *x);
    uint8_t *level = un_arena_alloc(s->arena, count + 1, sizeof *level);
    if (!x || !level) return UN_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        uint64_t leaf = i < (size_t)s->leaf_count ? s->leaf[i] : ghost[i - (size_t)s->leaf_count];
        level[i] = (uint8_t)(leaf & ((1 << LEVEL_BITS) - 1));
        for (int a = 0; a < 3; a++)
            x[count * (size_t)a + i] =
                tree->h * (un_morton_gather(leaf >> LEVEL_BITS >> a) + 0.5); /* a cube inside */
    }
    un_octree_request request = {
        .count = (int64_t)count, .x = {x, x + count, x + 2 * count}, .level = level};
    UN_TRY(un_octree_build(tree, s->arena, &request));
    part->begin = part->end = 0;
    part->ghost_count = ghost_count;
    if (s->leaf_count == 0) return UN_OK;
    part->begin = un_octree_find_key(tree, s->leaf[0] >> LEVEL_BITS);
    part->end = part->begin + (int32_t)s->leaf_count;
    UN_ASSERT(part->end <= tree->leaf_count);
    UN_ASSERT(tree->key[part->end - 1] == s->leaf[s->leaf_count - 1] >> LEVEL_BITS);
    return mark_known(s, ghost, ghost_count);
}

/* Every rank has all leaves; which are whose. */
static un_status divide_whole(un_octree *tree, un_tree_share *part, const uint64_t *cut)
{
    un_context *ctx = tree->ctx;
    int32_t rank = un_rank(ctx), ranks = un_rank_count(ctx), begin = 0, end = tree->leaf_count;
    un_free(ctx, part->first);
    part->first = un_alloc(ctx, (size_t)ranks + 1, sizeof *part->first);
    UN_TRY(un_ranks_agree(ctx, part->first ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t r = 0; r < ranks; r++) {
        int64_t leaf = un_lower_bound(tree->key, tree->leaf_count, cut[r]);
        part->first[r] = leaf < tree->leaf_count ? tree->key[leaf] : UINT64_MAX;
        if (r == rank) begin = (int32_t)leaf;
        if (r == rank + 1) end = (int32_t)leaf;
    }
    part->first[ranks] = UINT64_MAX;
    part->begin = begin;
    part->end = end;
    part->leaves = (un_range){begin, end, tree->leaf_count};
    part->ghost_count = tree->leaf_count - (end - begin);
    return UN_OK;
}

un_status un_octree_build_ranks(un_octree *tree, un_tree_share *part, un_arena *arena,
                                const un_octree_request *request, const uint64_t *cut)
{
    un_context *ctx = tree->ctx;
    if (part->whole) {
        part->bytes = 0;
        UN_TRY(un_octree_build_whole(tree, arena, request));
        return divide_whole(tree, part, cut);
    }
    share s = {.tree = tree,
               .part = part,
               .arena = arena,
               .cut = cut,
               .rank = un_rank(ctx),
               .rank_count = un_rank_count(ctx)};
    un_octree_swap swap = {swap_level, &s};
    uint64_t *roots, *ghost;
    int64_t ghost_count;
    part->bytes = 0;
    UN_TRY(un_ranks_agree(ctx, un_octree_find_inner(tree, arena, request, &swap, s.inner, &roots)));
    UN_TRY(un_ranks_agree(ctx, find_leaves(&s, roots)));
    UN_TRY(find_parts(&s));
    UN_TRY(get_ghosts(&s, &ghost, &ghost_count));
    return un_ranks_agree(ctx, build_own(&s, ghost, ghost_count));
}

/* ---- boxes ---- */

bool un_tree_share_has_box(const un_octree *tree, const un_tree_share *part, un_box3 box)
{
    int32_t low[3] = {un_octree_index(tree, box.min.x, 0), un_octree_index(tree, box.min.y, 1),
                      un_octree_index(tree, box.min.z, 2)};
    int32_t high[3] = {un_octree_index(tree, box.max.x, 0), un_octree_index(tree, box.max.y, 1),
                       un_octree_index(tree, box.max.z, 2)};
    return is_own_box(part->first, un_rank(tree->ctx), low, high);
}

/* Cubes as wide as the box, or wider: at most two along each axis. */
void un_tree_share_in_box(const un_octree *tree, const un_tree_share *part, un_box3 box,
                          uint8_t *has, int32_t *list, int32_t *count)
{
    int32_t low[3] = {un_octree_index(tree, box.min.x, 0), un_octree_index(tree, box.min.y, 1),
                      un_octree_index(tree, box.min.z, 2)};
    int32_t high[3] = {un_octree_index(tree, box.max.x, 0), un_octree_index(tree, box.max.y, 1),
                       un_octree_index(tree, box.max.z, 2)};
    int32_t ranks = un_rank_count(tree->ctx), me = un_rank(tree->ctx), shift = 0;
    for (int a = 0; a < 3; a++)
        while ((high[a] >> shift) - (low[a] >> shift) > 1) shift++;
    uint64_t cubes = (uint64_t)1 << 3 * shift;
    for (int32_t k = low[2] >> shift; k <= high[2] >> shift; k++)
        for (int32_t j = low[1] >> shift; j <= high[1] >> shift; j++)
            for (int32_t i = low[0] >> shift; i <= high[0] >> shift; i++) {
                uint64_t from = un_morton((uint32_t)i, (uint32_t)j, (uint32_t)k) << 3 * shift;
                for (int32_t r = un_ranks_owner(part->first, ranks, from);
                     r < ranks && part->first[r] < from + cubes; r++) {
                    if (has[r] || r == me) continue;
                    has[r] = 1;
                    list[(*count)++] = r;
                }
            }
}
