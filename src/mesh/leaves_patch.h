/* Face velocities around siblings, for velocities between faces (leaves_patch.c, leaves_flow.c). */
#ifndef UN_MESH_LEAVES_PATCH_H
#define UN_MESH_LEAVES_PATCH_H

#include "mesh/leaves_ring.h"

/* A patch: for each axis the faces across it on the lattice of the siblings, by layer of siblings
 * along the axis (2), by the other two axes (4 x 4 cubes, the siblings in the middle; in 2D one
 * row), lower and upper face. The upper faces of the first layer are the lower ones of the second:
 * they stand twice, so that four faces that a point needs follow each other. Then for each axis
 * the faces of the next larger level: 3 x 3 cubes, the parent in the middle, lower and upper
 * face. */
enum {
    UN_PATCH_AXIS = 64,
    UN_PATCH_LAYER = 32,
    UN_PATCH_ROW = 8,
    UN_PATCH_PARENT = 3 * UN_PATCH_AXIS,
    UN_PATCH_PARENT_AXIS = 18,
    UN_PATCH_PARENT_ROW = 6
};

/* The leaves among the children of one cube. A leaf that does not see all leaves around it is on
 * its own. */
typedef struct un_siblings {
    uint64_t parent;  /* key */
    int32_t child[8]; /* leaves, -1 where a child is divided or beyond the brick */
    uint8_t wanted;   /* by bit: children whose faces are needed */
    uint8_t level;    /* of the children */
    bool alone;
} un_siblings;

/* Faces of the cubes around one: for each axis the 2 x 3 x 3 lower and upper ones of the cubes
 * beside it, lower ones first, the other two axes ascending. */
enum { UN_RING_AXIS = 18, UN_RING_FACES = 54 };

typedef struct un_face_ring {
    un_ring at;
    uint64_t have; /* by bit: faces that are found */
    double u[UN_RING_FACES][2];
} un_face_ring;

/* Faces of one or two fields; by level the ring asked for last. */
typedef struct un_face_finder {
    const un_leaves *m;
    const double *u[2];
    int fields;
    un_face_ring ring[UN_LEVELS_MAX + 1];
} un_face_finder;

void un_face_finder_init(un_face_finder *s, const un_leaves *m, const double *u,
                         const double *other);
/* value: by field. */
void un_patch_fill(un_face_finder *s, const un_siblings *b, float *const value[2]);
/* In 3D, for liquid that sticks to sides; slip: as in un_leaves_flow (leaves_slip.c). */
void un_patch_slip(const un_leaves *m, const un_siblings *of, const double slip[6], float *value);
/* Leaf c as the only one wanted. */
un_siblings un_siblings_of_one(const un_leaves *m, int32_t c);

/* True if thin walls hide some of the leaves around c. */
static inline bool un_leaf_is_blind(const un_leaves *m, int32_t c)
{
    return m->parted && m->thin[c] & 2;
}

/* The mean velocity through a side of a leaf. */
static inline double un_leaf_side_value(const un_leaves *m, const double *u, int32_t leaf, int side)
{
    int32_t f = m->side[leaf][side];
    if (f >= 0) return u[f];
    const int32_t *g = m->group[~f];
    return m->dim == 2 ? 0.5 * (u[g[0]] + u[g[1]])
                       : 0.25 * ((u[g[0]] + u[g[1]]) + (u[g[2]] + u[g[3]]));
}

#endif
