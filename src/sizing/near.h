/* Inside of the sizing folder: neighbours along the edges of the mesh, for nodes that matter.
 *
 * Each neighbour of a node is shared by four to six of its tets. What passes over neighbours again
 * and again is quicker with each of them listed once. */
#ifndef UN_SIZING_NEAR_H
#define UN_SIZING_NEAR_H

#include "sizing/sizing.h"

/* A node inside the mesh with T tets has T / 2 + 2 neighbours (its link is a sphere of T
 * triangles), one in the boundary some more. The few that do not fit are asked through their tets.
 */
#define NEAR_SPARE 5
#define NEAR_MANY 255

typedef struct near_nodes {
    const un_tets *mesh;
    int32_t *node;  /* those of node n from near_first(n) on */
    uint8_t *code;  /* of the edge: level * 16 + its squared length in half leaf edges */
    uint8_t *count; /* by node; 0: it does not matter, NEAR_MANY */
    uint8_t edge[UN_TET_SHAPES_MAX][4][4]; /* squared lengths between a shape's corners */
} near_nodes;

static inline int64_t near_first(const near_nodes *near, int64_t n)
{
    return near->mesh->first[n] / 2 + NEAR_SPARE * n;
}

/* Lists the neighbours of nodes with used[n]. */
un_status un_near_build(un_context *ctx, un_arena *arena, near_nodes *near, const un_tets *mesh,
                        const uint8_t *used);
/* length[code], m. */
void un_near_lengths(const near_nodes *near, float length[256]);
/* Lowers sizes until none exceeds a neighbour's by more than grade times their distance (limit.c).
 * Nodes that do not matter stay as they are and limit nothing. */
un_status un_sizing_limit(un_context *ctx, un_arena *arena, float *size, const near_nodes *near,
                          double grade);

/* The code of the edge between corners i and j of a tet. */
static inline uint8_t near_code(const near_nodes *near, int32_t t, int i, int j)
{
    return (uint8_t)(near->mesh->level[t] << 4 | near->edge[near->mesh->shape[t]][i][j]);
}

#endif
