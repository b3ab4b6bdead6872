/* Paths through leaves of several ranks; only src/advect/leaves*.c include this. */
#ifndef UN_ADVECT_LEAVES_RANKS_H
#define UN_ADVECT_LEAVES_RANKS_H

#include "advect/advect.h"

/* A point of a path: where it is and the leaf where the path was last; then the velocity there, and
 * its leaf. */
typedef struct un_leaf_query {
    double v[3];
    int32_t leaf;
    bool wanted;
} un_leaf_query;
/* All ranks ask at once; fails on all or on none. */
un_status un_leaf_paths_ask(un_context *ctx, const un_leaf_paths *paths, un_leaf_query *query,
                            int64_t count);

/* The leaf that holds x, of a path that was last in leaf c, around which leaves are known. ~leaf:
 * as un_leaves_step. */
static inline int32_t un_leaf_of_path(const un_leaves *m, int32_t c, un_vec3 x)
{
    double half = 0.5 * un_leaf_size(m, c);
    un_vec3 d = un_sub(x, m->x[c]);
    bool inside = fabs(d.x) < half && fabs(d.y) < half && (m->dim == 2 || fabs(d.z) < half);
    return inside ? c : un_leaves_step(m, c, x);
}

#endif
