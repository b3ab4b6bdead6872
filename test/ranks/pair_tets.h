/* One mesh twice: over the ranks of a test, and whole in a context of its own, to compare with. */
#ifndef UN_TEST_PAIR_TETS_H
#define UN_TEST_PAIR_TETS_H

#include "shared_tets.h"

typedef struct pair {
    un_context *alone;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    shared s;
} pair;

static inline void pair_init(pair *p, un_context *ctx, un_context *alone, const check_tree_def *def)
{
    p->alone = alone;
    un_arena_init(&p->arena, alone);
    un_octree_init(alone, &p->tree, def->size, def->coarsest, def->finest);
    un_tets_init(alone, &p->mesh);
    shared_init(&p->s, ctx, def);
}

static inline void pair_free(pair *p)
{
    shared_free(&p->s);
    un_tets_free(&p->mesh);
    un_octree_free(&p->tree);
    un_arena_free(&p->arena);
}

static inline void pair_reset(pair *p)
{
    un_arena_reset(&p->arena);
    un_arena_reset(&p->s.arena);
}

/* Again with other points. The trees are built first, as in a step, and keep the rest. */
static inline void pair_build(pair *p, const check_tree_def *def, uint64_t seed, int cut)
{
    check_points points = check_make_points(p->alone, def, &p->tree, seed);
    un_octree_request request = check_request(&points);
    check_ok(p->alone, un_octree_build(&p->tree, &p->arena, &request));
    check_ok(p->alone, un_tets_build(&p->mesh, &p->arena, &p->tree));
    check_ok(p->s.ctx, build_shared(&p->s, &points, cut));
    check_free_points(p->alone, &points);
    pair_reset(p);
}

/* Values at own nodes and ghosts are those of one rank. */
static inline void pair_same_nodes(const pair *p, const void *mine, const void *all, size_t size,
                                   const char *what)
{
    const un_tet_share *s = &p->s.part;
    const char *a = mine, *b = all;
    for (int64_t n = s->nodes.begin; n < s->nodes.end; n++) {
        int64_t m = s->node_begin + n - s->nodes.begin;
        if (memcmp(a + (size_t)m * size, b + (size_t)n * size, size) != 0)
            fail_msg("%s: own node %lld of %lld differs", what, (long long)n,
                     (long long)s->nodes.total);
    }
    for (int32_t k = 0; k < s->ghost_count; k++)
        if (memcmp(a + (size_t)s->ghost[k] * size, b + (size_t)s->ghost_id[k] * size, size) != 0)
            fail_msg("%s: ghost %lld of %lld differs", what, (long long)s->ghost_id[k],
                     (long long)s->nodes.total);
}

/* The same for tets around own nodes. */
static inline void pair_same_tets(const pair *p, const void *mine, const void *all, size_t size,
                                  const char *what)
{
    const un_tet_share *s = &p->s.part;
    const un_tets *m = &p->s.mesh, *w = &p->mesh;
    const char *a = mine, *b = all;
    for (int64_t n = s->nodes.begin; n < s->nodes.end; n++) {
        int64_t own = s->node_begin + n - s->nodes.begin;
        for (int32_t k = 0; k < w->first[n + 1] - w->first[n]; k++) {
            int32_t t = m->corner[m->first[own] + k] / 4, u = w->corner[w->first[n] + k] / 4;
            if (memcmp(a + (size_t)t * size, b + (size_t)u * size, size) != 0)
                fail_msg("%s: tet %d of %d differs", what, u, w->tet_count);
        }
    }
}

/* The serial number of a node here, -1: it fills the brick. The same for tets around own nodes. */
static inline void pair_number(const pair *p, int32_t *node, int32_t *tet)
{
    const un_tet_share *s = &p->s.part;
    const un_tets *m = &p->s.mesh, *w = &p->mesh;
    for (int32_t n = 0; n < m->node_count; n++) node[n] = -1;
    for (int32_t t = 0; t < m->tet_count; t++) tet[t] = -1;
    for (int32_t k = 0; k < s->ghost_count; k++) node[s->ghost[k]] = (int32_t)s->ghost_id[k];
    for (int64_t n = s->nodes.begin; n < s->nodes.end; n++) {
        int64_t own = s->node_begin + n - s->nodes.begin;
        node[own] = (int32_t)n;
        for (int32_t k = 0; k < w->first[n + 1] - w->first[n]; k++)
            tet[m->corner[m->first[own] + k] / 4] = w->corner[w->first[n] + k] / 4;
    }
}

#endif
