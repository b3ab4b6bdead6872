/* The tree behind mesh shapes; only geometry/ includes this.
 *
 * Nodes have up to eight children, so that one node's boxes are tested side by side in vector
 * registers. Boxes and moments are floats in the tree's own units (origin at the middle of the
 * bounds, the bounds within -1..1); triangles are the caller's doubles, sorted leaf by leaf. */
#ifndef UN_GEOMETRY_MESHTREE_H
#define UN_GEOMETRY_MESHTREE_H

#include "geometry/geometry.h"

#define TREE_WIDTH 8
#define TREE_LEAF 8 /* triangles at most */
#define TREE_DEPTH_MAX 48
/* A query keeps at most the unvisited siblings along one path. */
#define TREE_STACK (TREE_DEPTH_MAX * (TREE_WIDTH - 1) + 1)

typedef struct tree_node {
    float lo[3][TREE_WIDTH], hi[3][TREE_WIDTH]; /* rounded outwards; unused: lo > hi */
    int32_t child[TREE_WIDTH];                  /* node, or first triangle of a leaf */
    int32_t leaf_count[TREE_WIDTH];             /* triangles of a leaf, 0 for a node */
} tree_node;

/* For the triangles below each child: a coin (a flat cylinder) that holds them, around their
 * area-weighted centre and across their mean normal, and their moments about that centre (Barill et
 * al. 2018), divided by 4 pi: the sum of a n is strength * normal, S the symmetric part of the sum
 * of a (c - center) n^T. */
typedef struct tree_moments {
    float center[3][TREE_WIDTH];
    float radius[TREE_WIDTH]; /* reaches every corner; negative: no child */
    float normal[3][TREE_WIDTH];
    float thickness[TREE_WIDTH]; /* on either side */
    float strength[TREE_WIDTH];
    float s[6][TREE_WIDTH]; /* xx yy zz xy yz zx */
} tree_moments;

typedef struct tree_triangle {
    un_vec3 v[3];
} tree_triangle;

typedef struct mesh_tree {
    tree_node *nodes; /* nodes[0] is the root */
    tree_moments *moments;
    tree_triangle *triangles;
    int32_t node_count, triangle_count;
    un_vec3 center;
    double unit, per_unit; /* length of the tree's unit, and 1 / unit */
    un_box3 bounds;
    bool closed; /* winding numbers are whole and change at triangles only */
} mesh_tree;

/* An inverted mesh (by the report) is flipped. */
un_status mesh_tree_build(un_context *ctx, const un_trimesh *mesh, const un_trimesh_report *report,
                          mesh_tree **tree);
void mesh_tree_free(un_context *ctx, mesh_tree *tree);

/* The generalised winding number, accurate to about 0.01 (checked by tests). */
double mesh_tree_winding(const mesh_tree *tree, un_vec3 x);

#endif
