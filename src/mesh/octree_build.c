/* Building the octree from points.
 *
 * A cube that is split is called inner. Level by level, I_l is the sorted set of inner cubes, each
 * as the Morton code of its place among the cubes of level l. A leaf wanted at level l makes its
 * parent inner. From the finest level up: if q is inner, its 18 neighbours across faces and edges
 * must exist, so their parents and its own are inner:
 *
 *     I_(l-1) = wanted_(l-1) + parents of I_l + parents of the neighbours of I_l
 *
 * That is necessary and sufficient for balance, so the tree is the coarsest. Siblings share the
 * parents of their neighbours: a family is handled at once, and a level costs little more than an
 * eighth of the next finer one. Leaves are the children of inner cubes that are not inner
 * themselves; counts of leaves go up the tree, first places come down. */
#include "mesh/collect.h"
#include "mesh/octree_inner.h"

/* A filter of recently seen codes, by block of requests: particles come along a curve, tens to a
 * cube. */
#define FILTER_BITS 11
#define LANE_BITS_MAX 19 /* node coordinates, in half finest leaves, must stay below 2^21 */

typedef struct build {
    un_octree *tree;
    un_arena *arena;
    const un_octree_request *request;
    int32_t root_bits; /* of one coordinate at level 0 */
    int64_t grain;
    /* Requests by family, nearly without repeats: the parent's place with a leading one bit that
     * marks its level, the wanted children, and their reach. */
    uint64_t *code;
    uint8_t *children, *reach;
    int32_t *kept;                       /* by block */
    int64_t (*wanted_at)[UN_LEVELS_MAX]; /* by block and level: counts, then places */
    uint64_t *wanted[UN_LEVELS_MAX];
    int64_t wanted_count[UN_LEVELS_MAX];
    un_octree_inner inner[UN_LEVELS_MAX];
} build;

/* The last place along an axis among the cubes of a level. */
static inline int32_t last_place(const un_octree *tree, int axis, int32_t level)
{
    return axis == tree->dim ? 0 : (tree->roots[axis] << level) - 1;
}

static inline uint32_t filter_slot(uint64_t code)
{
    return (uint32_t)(code * 0x9e3779b97f4a7c15u >> (64 - FILTER_BITS));
}

static void filter_requests(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    const un_octree *tree = b->tree;
    const un_octree_request *request = b->request;
    uint64_t seen[1 << FILTER_BITS] = {0}; /* codes */
    int64_t seen_at[1 << FILTER_BITS];
    int64_t n = begin;
    for (int64_t i = begin; i < end; i++) {
        int32_t level = request->level ? request->level[i] : tree->level_max;
        uint8_t reach = request->reach ? request->reach[i] : 0;
        if (level > tree->level_max) level = tree->level_max;
        if (level == 0) continue;
        int32_t shift = tree->level_max - level;
        uint64_t place = un_morton((uint32_t)un_octree_index(tree, request->x[0][i], 0) >> shift,
                                   (uint32_t)un_octree_index(tree, request->x[1][i], 1) >> shift,
                                   (uint32_t)un_octree_index(tree, request->x[2][i], 2) >> shift);
        uint64_t code = place >> 3 | (uint64_t)1 << 3 * (b->root_bits + level - 1);
        uint8_t child = (uint8_t)(1u << (place & 7));
        uint32_t slot = filter_slot(code + reach);
        if (seen[slot] == code && b->reach[seen_at[slot]] == reach) {
            b->children[seen_at[slot]] |= child;
            continue;
        }
        seen[slot] = code;
        seen_at[slot] = n;
        b->code[n] = code;
        b->children[n] = child;
        b->reach[n++] = reach;
    }
    b->kept[begin / b->grain] = (int32_t)(n - begin);
}

typedef struct want_list {
    uint64_t seen[1 << FILTER_BITS]; /* with the mark of the level */
    uint64_t *const *out;            /* by level; NULL: only counted */
    int64_t *at;                     /* by level */
} want_list;

static inline void want_parent(want_list *list, uint64_t parent, uint64_t mark, int32_t level)
{
    uint32_t slot = filter_slot(parent | mark);
    if (list->seen[slot] == (parent | mark)) return;
    list->seen[slot] = parent | mark;
    if (list->out) list->out[level][list->at[level]] = parent;
    list->at[level]++;
}

/* Adds the parents of the leaves that a block of requests wants to their levels. A reach of 2 k
 * leaves is a reach of k parents from any child; with 2 k + 1, the odd leaf reaches one parent
 * further, downwards from the lower children and upwards from the upper ones. */
static void want(build *b, int64_t begin, bool count_only)
{
    static const uint32_t lower[3] = {0x55, 0x33, 0x0f}, upper[3] = {0xaa, 0xcc, 0xf0};
    int64_t block = begin / b->grain;
    want_list list = {{0}, count_only ? NULL : b->wanted, b->wanted_at[block]};
    for (int64_t i = begin; i < begin + b->kept[block]; i++) {
        uint64_t code = b->code[i];
        int32_t reach = b->reach[i], lane_bits = (63 - __builtin_clzll(code)) / 3;
        int32_t level = lane_bits - b->root_bits, whole = reach / 2, far = (reach + 1) / 2;
        uint64_t mark = (uint64_t)1 << 3 * lane_bits, place = code - mark;
        if (reach == 0) {
            want_parent(&list, place, mark, level);
            continue;
        }
        int32_t c[3], lo[3], hi[3];
        for (int a = 0; a < 3; a++) {
            int32_t last = last_place(b->tree, a, level);
            c[a] = (int32_t)un_morton_gather(place >> a);
            lo[a] = c[a] > far ? c[a] - far : 0;
            hi[a] = last - c[a] > far ? c[a] + far : last;
        }
        for (int32_t z = lo[2]; z <= hi[2]; z++)
            for (int32_t y = lo[1]; y <= hi[1]; y++)
                for (int32_t x = lo[0]; x <= hi[0]; x++) {
                    int32_t step[3] = {x - c[0], y - c[1], z - c[2]};
                    uint32_t from = b->children[i];
                    for (int a = 0; a < 3; a++) {
                        if (step[a] < -whole) from &= lower[a];
                        if (step[a] > whole) from &= upper[a];
                    }
                    if (from)
                        want_parent(&list, un_morton((uint32_t)x, (uint32_t)y, (uint32_t)z), mark,
                                    level);
                }
    }
}

static void count_wanted(void *arg, int64_t begin, int64_t end)
{
    (void)end;
    build *b = arg;
    memset(b->wanted_at[begin / b->grain], 0, sizeof *b->wanted_at);
    want(b, begin, true);
}

static void fill_wanted(void *arg, int64_t begin, int64_t end)
{
    (void)end;
    want(arg, begin, false);
}

static un_status too_many(const un_octree *tree, const char *what, int64_t count)
{
    return un_fail(tree->ctx, UN_ERROR_MEMORY,
                   "the octree would have %.3g %s, more than 32-bit indices can count; make "
                   "detail.finest smaller, or detail.coarsest, or use a smaller domain",
                   (double)count, what);
}

static un_status collect_wanted(build *b)
{
    un_octree *tree = b->tree;
    int64_t count = b->request->count;
    b->grain = un_block_grain(count);
    int64_t block_count = (count + b->grain - 1) / b->grain;
    b->code = un_arena_alloc(b->arena, (size_t)count + 1, sizeof *b->code);
    b->children = un_arena_alloc(b->arena, (size_t)count + 1, sizeof *b->children);
    b->reach = un_arena_alloc(b->arena, (size_t)count + 1, sizeof *b->reach);
    b->kept = un_arena_alloc(b->arena, (size_t)block_count + 1, sizeof *b->kept);
    b->wanted_at = un_arena_alloc(b->arena, (size_t)block_count + 1, sizeof *b->wanted_at);
    if (!b->code || !b->children || !b->reach || !b->kept || !b->wanted_at) return UN_ERROR_MEMORY;
    un_parallel_for(tree->ctx, count, b->grain, filter_requests, b);
    un_parallel_for(tree->ctx, count, b->grain, count_wanted, b);
    for (int32_t l = 0; l < tree->level_max; l++) {
        int64_t total = 0;
        for (int64_t k = 0; k < block_count; k++) {
            int64_t n = b->wanted_at[k][l];
            b->wanted_at[k][l] = total;
            total += n;
        }
        b->wanted_count[l] = total;
        b->wanted[l] = un_arena_alloc(b->arena, (size_t)total + 1, sizeof **b->wanted);
        if (!b->wanted[l]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(tree->ctx, count, b->grain, fill_wanted, b);
    return UN_OK;
}

/* ---- inner cubes ---- */

/* Neighbours are numbered (dx + 1) + 3 (dy + 1) + 9 (dz + 1). The cubes beside a child, across
 * faces and edges, or corners too, that are not its siblings lie in these neighbours of the
 * parent. */
static uint32_t parents_beside(int32_t child, bool corners)
{
    int32_t d[3] = {child & 1 ? 1 : -1, child & 2 ? 1 : -1, child & 4 ? 1 : -1};
    int32_t at = 13, step[3] = {d[0], 3 * d[1], 9 * d[2]};
    uint32_t corner = corners ? 1u << (at + step[0] + step[1] + step[2]) : 0;
    return corner | 1u << at | 1u << (at + step[0]) | 1u << (at + step[1]) | 1u << (at + step[2]) |
           1u << (at + step[0] + step[1]) | 1u << (at + step[0] + step[2]) |
           1u << (at + step[1] + step[2]);
}

typedef struct spread_args {
    const uint64_t *key; /* of one level */
    int64_t count;
    uint64_t last[3]; /* the brick's last place along each axis one level up, bits spread */
    uint32_t beside[8];
} spread_args;

static int64_t spread_families(const void *arg, int64_t begin, int64_t end, uint64_t *out)
{
    const spread_args *s = arg;
    int64_t n = 0;
    for (int64_t i = begin; i < end;) {
        uint64_t parent = s->key[i] >> 3;
        bool first = i == 0 || s->key[i - 1] >> 3 != parent;
        uint32_t beside = 0;
        int64_t j = i;
        for (; j < s->count && s->key[j] >> 3 == parent; j++) beside |= s->beside[s->key[j] & 7];
        i = j;
        if (!first) continue; /* a family belongs to the block of its first child */
        uint64_t lane[3][3];  /* by axis: the coordinate below, here, above */
        for (int a = 0; a < 3; a++) {
            uint64_t here = parent >> a & UN_MORTON_LANE;
            lane[a][0] = (here - 1) & UN_MORTON_LANE;
            lane[a][1] = here;
            lane[a][2] = ((here | ~UN_MORTON_LANE) + 1) & UN_MORTON_LANE;
            uint32_t low = 0x1249249u, third = a == 0 ? low : a == 1 ? 0x1c0e07u : 0x1ffu;
            if (here == 0) beside &= ~third;
            if (here == s->last[a]) beside &= ~(third << (a == 0 ? 2 : a == 1 ? 6 : 18));
        }
        if (!out) {
            n += __builtin_popcount(beside);
            continue;
        }
        for (; beside; beside &= beside - 1) {
            int32_t d = __builtin_ctz(beside);
            out[n++] = lane[0][d % 3] | lane[1][d / 3 % 3] << 1 | lane[2][d / 9] << 2;
        }
    }
    return n;
}

static int64_t drop_repeats(const void *arg, int64_t begin, int64_t end, uint64_t *out)
{
    const uint64_t *key = arg;
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++)
        if (i == 0 || key[i] != key[i - 1]) {
            if (out) out[n] = key[i];
            n++;
        }
    return n;
}

/* Sorts the keys of a level and drops repeats. */
static un_status set_inner(build *b, int32_t level, uint64_t *keys, int64_t count)
{
    un_octree *tree = b->tree;
    un_octree_inner *inner = &b->inner[level];
    uint64_t greatest = 1;
    for (int a = 0; a < 3; a++)
        greatest |= un_morton_spread((uint64_t)last_place(tree, a, level)) << a;
    UN_TRY(un_parallel_sort_keys(tree->ctx, b->arena, keys, count, 64 - __builtin_clzll(greatest)));
    return un_collect(tree->ctx, b->arena, drop_repeats, keys, count, &inner->key, &inner->count,
                      0);
}

static un_status find_level(build *b, int32_t level)
{
    un_octree *tree = b->tree;
    bool finest = level == tree->level_max - 1;
    int64_t count, wanted_count = b->wanted_count[level];
    uint64_t *keys;
    spread_args s = {.key = finest ? NULL : b->inner[level + 1].key,
                     .count = finest ? 0 : b->inner[level + 1].count};
    for (int32_t child = 0; child < 8; child++)
        s.beside[child] = parents_beside(child, tree->corners);
    for (int a = 0; a < 3; a++) s.last[a] = un_morton_spread((uint64_t)last_place(tree, a, level));
    UN_TRY(
        un_collect(tree->ctx, b->arena, spread_families, &s, s.count, &keys, &count, wanted_count));
    if (count + wanted_count > INT32_MAX)
        return too_many(tree, "split cells", count + wanted_count);
    memcpy(keys + count, b->wanted[level], (size_t)wanted_count * sizeof *keys);
    return set_inner(b, level, keys, count + wanted_count);
}

static un_status find_inner(build *b, const un_octree_swap *swap, un_status status)
{
    for (int32_t l = b->tree->level_max - 1; l >= 0; l--) {
        un_octree_inner *inner = &b->inner[l];
        if (status == UN_OK) status = find_level(b, l);
        if (swap) {
            uint64_t *keys = inner->key;
            int64_t count = inner->count;
            status = swap->run(swap->arg, status, l, &keys, &count);
            if (status == UN_OK) status = set_inner(b, l, keys, count);
        } else
            UN_TRY(status);
    }
    return status;
}

/* ---- leaves ---- */

typedef struct leaf_args {
    un_octree *tree;
    un_octree_inner *inner; /* of this level; those of the next level follow */
    bool finest;            /* all children are leaves */
    int32_t level;
} leaf_args;

static void count_leaves(void *arg, int64_t begin, int64_t end)
{
    leaf_args *args = arg;
    un_octree_inner *inner = args->inner, *below = inner + 1;
    int32_t children = 1 << args->tree->dim;
    if (args->finest) {
        for (int64_t i = begin; i < end; i++) inner->leaves[i] = children;
        return;
    }
    int32_t j = (int32_t)un_lower_bound(below->key, below->count, inner->key[begin] << 3);
    for (int64_t i = begin; i < end; i++) {
        int32_t leaves = children;
        inner->child[i] = j;
        for (; j < below->count && below->key[j] >> 3 == inner->key[i]; j++)
            leaves += below->leaves[j] - 1;
        inner->leaves[i] = leaves;
    }
}

static void place_leaves(void *arg, int64_t begin, int64_t end)
{
    leaf_args *args = arg;
    un_octree *tree = args->tree;
    un_octree_inner *inner = args->inner, *below = inner + 1;
    int32_t shift = 3 * (tree->level_max - args->level - 1);
    uint8_t level = (uint8_t)(args->level + 1);
    uint64_t children = (uint64_t)1 << tree->dim;
    for (int64_t i = begin; i < end; i++) {
        int32_t place = inner->place[i], j = args->finest ? 0 : inner->child[i];
        for (uint64_t child = 0; child < children; child++) {
            uint64_t key = inner->key[i] << 3 | child;
            if (!args->finest && j < below->count && below->key[j] == key) {
                below->place[j] = place;
                place += below->leaves[j++];
            } else {
                tree->key[place] = key << shift;
                tree->level[place++] = level;
            }
        }
    }
}

/* Visits the roots inside the brick along the curve: octants of the enclosing cube, depth first. */
static void list_roots(const un_octree *tree, uint64_t octant, int32_t bits, uint64_t **out)
{
    for (int a = 0; a < 3; a++)
        if (un_morton_gather(octant >> a) << bits >= (uint32_t)tree->roots[a]) return;
    if (bits == 0)
        *(*out)++ = octant;
    else
        for (uint64_t child = 0; child < 8; child++)
            list_roots(tree, octant << 3 | child, bits - 1, out);
}

static un_status list_all_roots(build *b, uint64_t **roots)
{
    const un_octree *tree = b->tree;
    int64_t count = (int64_t)tree->roots[0] * tree->roots[1] * tree->roots[2];
    if (count > INT32_MAX) return too_many(b->tree, "coarsest cells", count);
    uint64_t *next = *roots = un_arena_alloc(b->arena, (size_t)count, sizeof *next);
    if (!next) return UN_ERROR_MEMORY;
    list_roots(tree, 0, b->root_bits, &next);
    UN_ASSERT(next == *roots + count);
    return UN_OK;
}

/* Leaves of level 0, and the places of the inner cubes; the first pass only counts. */
static int64_t place_roots(build *b, const uint64_t *roots, int64_t root_count, bool count_only)
{
    un_octree *tree = b->tree;
    un_octree_inner *inner = &b->inner[0];
    int64_t place = 0, j = 0;
    for (int64_t r = 0; r < root_count; r++)
        if (j < inner->count && inner->key[j] == roots[r]) {
            if (!count_only) inner->place[j] = (int32_t)place;
            place += inner->leaves[j++];
        } else {
            if (!count_only) {
                tree->key[place] = roots[r] << 3 * tree->level_max;
                tree->level[place] = 0;
            }
            place++;
        }
    return place;
}

#define LEAF_GRAIN 4096

static un_status find_leaves(build *b)
{
    un_octree *tree = b->tree;
    int64_t root_count = (int64_t)tree->roots[0] * tree->roots[1] * tree->roots[2];
    uint64_t *roots = NULL;
    UN_TRY(list_all_roots(b, &roots));
    /* A sum over a few levels, so that overflow of the 32-bit counts below is noticed. */
    int64_t bound = root_count;
    for (int32_t l = 0; l < tree->level_max; l++)
        bound += ((1 << tree->dim) - 1) * b->inner[l].count;
    if (bound > INT32_MAX) return too_many(tree, "cells", bound);
    for (int32_t l = tree->level_max - 1; l >= 0; l--) {
        un_octree_inner *inner = &b->inner[l];
        size_t room = (size_t)inner->count + 1;
        inner->child = un_arena_alloc(b->arena, room, sizeof *inner->child);
        inner->leaves = un_arena_alloc(b->arena, room, sizeof *inner->leaves);
        inner->place = un_arena_alloc(b->arena, room, sizeof *inner->place);
        if (!inner->child || !inner->leaves || !inner->place) return UN_ERROR_MEMORY;
        leaf_args args = {tree, inner, l == tree->level_max - 1, l};
        un_parallel_for(tree->ctx, inner->count, LEAF_GRAIN, count_leaves, &args);
    }
    int64_t count = place_roots(b, roots, root_count, true);
    UN_ASSERT(count == bound);
    UN_TRY(un_array_need(tree->ctx, (void **)&tree->key, &tree->capacity_key, (size_t)count,
                         sizeof *tree->key));
    UN_TRY(un_array_need(tree->ctx, (void **)&tree->level, &tree->capacity_level, (size_t)count,
                         sizeof *tree->level));
    place_roots(b, roots, root_count, false);
    for (int32_t l = 0; l < tree->level_max; l++) {
        leaf_args args = {tree, &b->inner[l], l == tree->level_max - 1, l};
        un_parallel_for(tree->ctx, b->inner[l].count, LEAF_GRAIN, place_leaves, &args);
    }
    tree->leaf_count = (int32_t)count;
    return UN_OK;
}

/* ---- table ---- */

static void fill_table(void *arg, int64_t begin, int64_t end)
{
    un_octree *tree = arg;
    for (int64_t c = begin; c < end; c++) {
        uint64_t m = c > 0 ? (tree->key[c - 1] >> tree->table_shift) + 1 : 0;
        for (; m <= tree->key[c] >> tree->table_shift; m++) tree->table[m] = (int32_t)c;
    }
}

static un_status build_table(un_octree *tree)
{
    uint64_t greatest =
        un_morton((uint32_t)tree->n[0] - 1, (uint32_t)tree->n[1] - 1, (uint32_t)tree->n[2] - 1);
    int32_t level = tree->level_max;
    uint64_t room = (uint64_t)un_max64(4096, 8 * (int64_t)tree->leaf_count);
    while (level > 0 && greatest >> 3 * (tree->level_max - level) >= room) level--;
    tree->table_level = level;
    tree->table_shift = 3 * (tree->level_max - level);
    uint64_t entry_count = (greatest >> tree->table_shift) + 2;
    UN_TRY(un_array_need(tree->ctx, (void **)&tree->table, &tree->capacity_table,
                         (size_t)entry_count, sizeof *tree->table));
    un_parallel_for(tree->ctx, tree->leaf_count, LEAF_GRAIN, fill_table, tree);
    for (uint64_t m = (tree->key[tree->leaf_count - 1] >> tree->table_shift) + 1; m < entry_count;
         m++)
        tree->table[m] = tree->leaf_count;
    return UN_OK;
}

static un_status begin(build *b)
{
    un_octree *tree = b->tree;
    int32_t most = 0;
    tree->leaf_count = 0;
    tree->partial = false;
    for (int a = 0; a < 3; a++) most = tree->roots[a] > most ? tree->roots[a] : most;
    while (((int64_t)1 << b->root_bits) < most) b->root_bits++;
    if (b->root_bits + tree->level_max <= LANE_BITS_MAX) return UN_OK;
    return un_fail(tree->ctx, UN_ERROR_ARGUMENT,
                   "the octree would have %.3g finest cells along a side, at most %d are "
                   "possible; make detail.finest smaller",
                   ldexp(most, tree->level_max), 1 << LANE_BITS_MAX);
}

static un_status finish(build *b)
{
    UN_TRY(find_leaves(b));
    un_status status = build_table(b->tree);
    if (status != UN_OK) b->tree->leaf_count = 0;
    return status;
}

un_status un_octree_build(un_octree *tree, un_arena *arena, const un_octree_request *request)
{
    build b = {.tree = tree, .arena = arena, .request = request};
    UN_TRY(begin(&b));
    UN_TRY(find_inner(&b, NULL, collect_wanted(&b)));
    return finish(&b);
}

/* ---- over ranks ---- */

/* What this rank wants, without repeats. */
static un_status sort_wanted(build *b)
{
    UN_TRY(collect_wanted(b));
    for (int32_t l = 0; l < b->tree->level_max; l++) {
        UN_TRY(set_inner(b, l, b->wanted[l], b->wanted_count[l]));
        b->wanted[l] = b->inner[l].key;
        b->wanted_count[l] = b->inner[l].count;
    }
    return UN_OK;
}

/* What all ranks want. */
static un_status gather_wanted(build *b)
{
    un_status status = UN_OK;
    for (int32_t l = 0; l < b->tree->level_max; l++) {
        void *all;
        int64_t count;
        UN_TRY(un_ranks_list(b->tree->ctx, b->wanted[l], b->wanted_count[l], sizeof **b->wanted,
                             &all, &count));
        b->wanted[l] = un_arena_alloc(b->arena, (size_t)count + 1, sizeof **b->wanted);
        b->wanted_count[l] = count;
        if (b->wanted[l])
            memcpy(b->wanted[l], all, (size_t)count * sizeof **b->wanted);
        else
            status = UN_ERROR_MEMORY;
        un_free(b->tree->ctx, all);
    }
    return status;
}

un_status un_octree_build_whole(un_octree *tree, un_arena *arena, const un_octree_request *request)
{
    build b = {.tree = tree, .arena = arena, .request = request};
    UN_TRY(begin(&b)); /* fails on all ranks or on none */
    UN_TRY(un_ranks_agree(tree->ctx, sort_wanted(&b)));
    un_status status = find_inner(&b, NULL, gather_wanted(&b));
    if (status == UN_OK) status = finish(&b);
    return un_ranks_agree(tree->ctx, status);
}

un_status un_octree_find_inner(un_octree *tree, un_arena *arena, const un_octree_request *request,
                               const un_octree_swap *swap, un_octree_inner inner[UN_LEVELS_MAX],
                               uint64_t **roots)
{
    build b = {.tree = tree, .arena = arena, .request = request};
    UN_TRY(begin(&b)); /* fails on all ranks or on none */
    UN_TRY(find_inner(&b, swap, collect_wanted(&b)));
    memcpy(inner, b.inner, sizeof b.inner);
    return list_all_roots(&b, roots);
}
