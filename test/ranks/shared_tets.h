/* A tree and its tets over the ranks of a test, from points that lie anywhere. */
#ifndef UN_TEST_SHARED_TETS_H
#define UN_TEST_SHARED_TETS_H

#include "group.h"

#include "mesh/mesh.h"
#include "mesh/trees.h"

typedef struct shared {
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_tree_share leaves;
    un_tets mesh;
    un_tet_share part;
} shared;

static inline void shared_init(shared *s, un_context *ctx, const check_tree_def *def)
{
    *s = (shared){.ctx = ctx, .leaves = {.ctx = ctx}, .part = {.ctx = ctx}};
    un_arena_init(&s->arena, ctx);
    un_octree_init(ctx, &s->tree, def->size, def->coarsest, def->finest);
    un_tets_init(ctx, &s->mesh);
}

static inline void shared_free(shared *s)
{
    un_tet_share_free(&s->part);
    un_tets_free(&s->mesh);
    un_tree_share_free(&s->leaves);
    un_octree_free(&s->tree);
    un_arena_free(&s->arena);
}

static inline uint64_t key_of(const un_octree *tree, const check_points *p, int64_t i)
{
    return un_morton((uint32_t)un_octree_index(tree, p->x[0][i], 0),
                     (uint32_t)un_octree_index(tree, p->x[1][i], 1),
                     (uint32_t)un_octree_index(tree, p->x[2][i], 2));
}

/* By work, or arbitrary: some parts may be empty. */
enum { CUT_BY_WORK, CUT_AT_RANDOM, CUT_COUNT };

static inline un_status cut_curve(const un_octree *tree, un_arena *arena, const check_points *p,
                                  int kind, uint64_t *cut)
{
    int32_t rank_count = un_ranks_count(group);
    uint64_t end =
        un_morton((uint32_t)tree->n[0] - 1, (uint32_t)tree->n[1] - 1, (uint32_t)tree->n[2] - 1);
    if (kind == CUT_BY_WORK) {
        uint64_t *key = un_arena_alloc(arena, (size_t)p->count + 1, sizeof *key);
        un_status status = key ? UN_OK : UN_ERROR_MEMORY;
        for (int64_t i = 0; key && i < p->count; i++) key[i] = key_of(tree, p, i);
        if (key) status = un_parallel_sort_keys(tree->ctx, arena, key, p->count, 63);
        UN_TRY(un_ranks_agree(tree->ctx, status));
        return un_ranks_cut(tree->ctx, cut, key, NULL, p->count, 57);
    }
    cut[0] = 0;
    for (int32_t r = 1; r < rank_count; r++) {
        uint64_t more = (uint64_t)(un_random((uint64_t)r, 77) * 2 * (double)end / rank_count);
        cut[r] = cut[r - 1] + (r % 3 == 2 ? 0 : more);
    }
    return UN_OK;
}

/* Every rank has some of the points, from all over. */
static inline un_status build_shared(shared *s, const check_points *all, int kind)
{
    int32_t rank = un_rank(s->ctx), rank_count = un_rank_count(s->ctx);
    uint64_t cut[64];
    check_points mine = {.count = 0};
    size_t room = (size_t)all->count + 1;
    for (int a = 0; a < 3; a++) mine.x[a] = malloc(room * sizeof(double));
    mine.level = malloc(room);
    mine.reach = malloc(room);
    for (int64_t i = rank; i < all->count; i += rank_count) {
        for (int a = 0; a < 3; a++) mine.x[a][mine.count] = all->x[a][i];
        mine.level[mine.count] = all->level[i];
        mine.reach[mine.count++] = all->reach[i];
    }
    un_octree_request request = {.count = mine.count,
                                 .x = {mine.x[0], mine.x[1], mine.x[2]},
                                 .level = mine.level,
                                 .reach = mine.reach};
    un_status status = cut_curve(&s->tree, &s->arena, &mine, kind, cut);
    if (status == UN_OK)
        status = un_octree_build_ranks(&s->tree, &s->leaves, &s->arena, &request, cut);
    if (status == UN_OK)
        status = un_ranks_agree(s->ctx, un_tets_build(&s->mesh, &s->arena, &s->tree));
    if (status == UN_OK) status = un_tet_share_find(&s->part, &s->arena, &s->mesh, &s->leaves);
    for (int a = 0; a < 3; a++) free(mine.x[a]);
    free(mine.level);
    free(mine.reach);
    return status;
}

#endif
