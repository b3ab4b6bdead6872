/* Internals of the tree of groups, for loops over near groups that need no list. */
#ifndef UN_PARTICLES_GROUPS_H
#define UN_PARTICLES_GROUPS_H

#include "base/lanes.h"
#include "particles/particles.h"

/* A box and its reach, repeated in eight lanes. */
typedef struct un_groups_query {
    un_lanes8 lo[3], hi[3]; /* the box, widened to single precision */
    float reach, factor;
} un_groups_query;

/* A walk through the tree, depth first, lower numbers first. */
typedef struct un_groups_walk {
    const un_groups *groups;
    un_groups_query query;
    int32_t level;                /* of the current node; level_count when done */
    int32_t node[UN_LEVELS_MAX];  /* by level, within the level */
    uint32_t left[UN_LEVELS_MAX]; /* by level: children still to visit, one bit each */
} un_groups_walk;

/* A tree over boxes instead of particles; the walk then finds boxes. */
un_status un_groups_build_boxes(un_context *ctx, un_arena *arena, un_groups *groups,
                                const un_box3 *box, const float *radius, int64_t count);

un_groups_query un_groups_query_make(un_box3 box, double reach, double factor);

/* Mask of a node's children that the query's box may reach. reach and factor allow for rounding.
 * Lanes without a child have a radius of NaN, for which every comparison is false. */
static inline uint32_t un_groups_reached(const un_groups_query *q, const un_group_box *node)
{
    const un_lanes8 zero = un_lanes8_all(0);
    un_lanes8 gap2 = zero;
    for (int a = 0; a < 3; a++) {
        un_lanes8 lo = *(const un_lanes8 *)node->lo[a], hi = *(const un_lanes8 *)node->hi[a];
        un_lanes8 gap = un_lanes8_max(un_lanes8_max(lo - q->hi[a], q->lo[a] - hi), zero);
        gap2 += gap * gap;
    }
    un_lanes8 reach = q->reach + q->factor * *(const un_lanes8 *)node->radius;
    return un_lanes8_less(gap2, reach * reach);
}

static inline const un_group_box *un_groups_node(const un_groups *g, int32_t level, int32_t node)
{
    return g->boxes + g->level_first[level] + node;
}

void un_groups_walk_begin(un_groups_walk *walk, const un_groups *groups, un_box3 box, double reach,
                          double factor);

/* The next group in reach, -1 after the last. value: at each group and, from 8 level_first[l] on,
 * at each node of level l; without what is not below the limit. NULL: all. */
static inline int32_t un_groups_walk_below(un_groups_walk *w, const float *value, float limit)
{
    const un_groups *g = w->groups;
    while (w->level < g->level_count) {
        int32_t l = w->level;
        if (!w->left[l]) {
            w->level++;
            continue;
        }
        int32_t child = 8 * w->node[l] + __builtin_ctz(w->left[l]);
        w->left[l] &= w->left[l] - 1;
        if (value && !(value[8 * (int64_t)g->level_first[l] + child] < limit)) continue;
        if (l == 0) return child;
        w->level = l - 1;
        w->node[l - 1] = child;
        w->left[l - 1] = un_groups_reached(&w->query, un_groups_node(g, l - 1, child));
    }
    return -1;
}
static inline int32_t un_groups_walk_next(un_groups_walk *w)
{
    return un_groups_walk_below(w, NULL, 0);
}

#endif
