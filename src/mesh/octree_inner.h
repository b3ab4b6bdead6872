/* The inner cubes of an octree that is being built; only octree_build.c and octree_ranks.c include
 * this. */
#ifndef UN_MESH_OCTREE_INNER_H
#define UN_MESH_OCTREE_INNER_H

#include "mesh/octree.h"

/* Of one level. */
typedef struct un_octree_inner {
    uint64_t *key; /* places among the cubes of the level; ascending */
    int64_t count;
    int32_t *child;  /* first of its children among the next level's */
    int32_t *leaves; /* below it */
    int32_t *place;  /* of its first leaf */
} un_octree_inner;

/* Called after each level, from the finest up: gives each rank the keys that are its own, in any
 * order, with repeats. status: of this rank so far; all ranks go on or none. */
typedef struct un_octree_swap {
    un_status (*run)(void *arg, un_status status, int32_t level, uint64_t **keys, int64_t *count);
    void *arg;
} un_octree_swap;

/* The inner cubes that requests and balance need, by level, and the cubes of level 0, along the
 * curve; from the arena. */
un_status un_octree_find_inner(un_octree *tree, un_arena *arena, const un_octree_request *request,
                               const un_octree_swap *swap, un_octree_inner inner[UN_LEVELS_MAX],
                               uint64_t **roots);

/* As un_octree_build, of the requests of all ranks; every rank gets the whole tree. */
un_status un_octree_build_whole(un_octree *tree, un_arena *arena, const un_octree_request *request);

#endif
