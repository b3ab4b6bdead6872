/* Shared by building, locating and checking tets; only mesh/ includes this. */
#ifndef UN_MESH_TETS_INTERNAL_H
#define UN_MESH_TETS_INTERNAL_H

#include "mesh/families.h"
#include "mesh/tets.h"

/* Around a leaf, places in half leaf edges from its centre are numbered like its neighbours:
 * (x + 1) + 3 (y + 1) + 9 (z + 1). The middle of a face has the number of the neighbour behind. */
#define UN_PLACE_CENTER 13
#define UN_PLACE_BEYOND 27 /* the centre of the leaf behind the current face */

/* Face 2 a + s is the lower (s = 0) or upper one of axis a; u = a + 1 and v = a + 2 (mod 3) are the
 * axes in it. Its edges are numbered: at the lower and upper end of u, at the lower and upper end
 * of v. Each edge and the face's middle span a triangle, in two halves if the edge has a midpoint:
 * the half at the lower end of the edge comes first. */
static inline void un_face_axes(int32_t face, int32_t *a, int32_t *u, int32_t *v)
{
    *a = face / 2;
    *u = (*a + 1) % 3;
    *v = (*a + 2) % 3;
}
/* The neighbour behind a face. */
static inline int32_t un_face_beside(int32_t face)
{
    static const uint8_t beside[6] = {12, 14, 10, 16, 4, 22};
    return beside[face];
}

/* face_code: edges with a midpoint in bits 0 to 3, then what the face is. The tets of a face follow
 * each other by edge and half. In a cut face, bit 0 tells the diagonal: 0 means from the lower ends
 * of both axes to the upper ones; the tet at the upper end of u comes first. */
enum {
    UN_FACE_OWN = 0 << 4,   /* same size behind; the tets belong to this leaf */
    UN_FACE_OTHER = 1 << 4, /* same size behind; they belong to that leaf */
    UN_FACE_FAN = 2 << 4,   /* finer or nothing behind: the middle is a node */
    UN_FACE_CUT = 3 << 4    /* larger behind */
};
#define UN_FACE_KIND (3 << 4)

/* The first shape of each family. Shapes are numbered by face (SAME: by axis) and edge, halves also
 * by half; CUT by face, diagonal and side. */
enum {
    UN_SHAPE_SAME = 0,
    UN_SHAPE_SAME_HALF = UN_SHAPE_SAME + 3 * 4,
    UN_SHAPE_FINER_HALF = UN_SHAPE_SAME_HALF + 3 * 8,
    UN_SHAPE_WALL = UN_SHAPE_FINER_HALF + 6 * 8,
    UN_SHAPE_WALL_HALF = UN_SHAPE_WALL + 6 * 4,
    UN_SHAPE_CUT = UN_SHAPE_WALL_HALF + 6 * 8,
    UN_SHAPE_COUNT = UN_SHAPE_CUT + 6 * 4
};

/* By shape: the places of its nodes. Node 3 is the centre of the leaf that owns the tet; in SAME,
 * node 2 is the centre of the leaf behind. */
typedef struct un_tet_template {
    uint8_t place[4];
} un_tet_template;
void un_tet_templates(un_tet_template templates[UN_SHAPE_COUNT]);

/* Computes volume, gradient and stiffness from the edges from node 0 to the others, in leaf
 * edges. */
void un_tet_shape_measure(un_tet_shape *shape, const double edge[3][3]);
/* The place of a node in the tree, before it was moved. */
static inline un_vec3 un_tets_home(const un_tets *mesh, uint64_t key)
{
    double unit = mesh->tree->unit;
    return un_v3(unit * un_morton_gather(key), unit * un_morton_gather(key >> 1),
                 unit * un_morton_gather(key >> 2));
}
/* Points of which locate_closed says too little, next to thin walls (tets_locate.c). */
typedef struct un_tets_crack {
    un_vec3 x, out; /* out: away from the wall */
    double d, h;    /* distance to solids; the cell */
} un_tets_crack;
/* Is x, in place, such a point? */
bool un_tets_in_crack(const un_tets *mesh, un_vec3 x, const un_tets_place *place,
                      un_tets_crack *crack);
/* Where the open tet next to it may be, in the order of trying. */
#define UN_TETS_CRACK_WAYS 8
un_vec3 un_tets_crack_way(const un_tets_crack *crack, int k);
/* True if it is this one. */
bool un_tets_crack_opens(const un_tets *mesh, const un_tets_crack *crack,
                         const un_tets_place *beside);
/* Walks from place->tet to the tet that holds x, or is nearest; for meshes with moved nodes. */
void un_tets_walk(const un_tets *mesh, un_vec3 x, un_tets_place *place);

/* Leaves per block of the loops over them. */
#define UN_TETS_GRAIN 512

typedef struct un_leaf_info {
    uint32_t finer, larger; /* neighbours across faces and edges */
} un_leaf_info;

/* A leaf's edge along axis a is numbered 4 a + its side (0 or 1) along a + 1 + twice that along
 * a + 2. */
static inline int32_t un_leaf_edge(int32_t along, int32_t side_u, int32_t side_v)
{
    return 4 * along + side_u + 2 * side_v;
}

/* Over ranks only known leaves have tets, and those around them the nodes of these. Places in other
 * tets are in one of UN_NOWHERE_TETS at the end, all of whose nodes are the last one. */
enum { UN_LEAF_NODES = 1, UN_LEAF_TETS = 2 };
#define UN_NOWHERE_TETS 4 /* one by edge of a face, as un_tets_locate counts them */

/* A mesh being built. */
typedef struct un_tets_work {
    un_tets *mesh;
    const un_octree *tree;
    un_leaf_info *info;
    uint64_t *mask;        /* by leaf: places that are nodes of its own, by un_place_code */
    uint8_t *corner_level; /* by leaf: the finest level of the leaves at its lower corner */
    uint8_t *use;          /* by leaf: UN_LEAF_NODES, UN_LEAF_TETS or 0; NULL: all have both */
    int32_t *first_node;   /* by leaf, and one more */
    int32_t *first_tet;    /* by leaf, and one more */
    un_family_steps steps;
    uint32_t edge_beside[12]; /* by leaf edge: the neighbours that meet at it */
    uint8_t edge_place[12];   /* by leaf edge: its middle */
    uint8_t face_edge[6][4];  /* by face and its edge: the leaf edge */
    uint32_t face_edges[6];   /* the same as sets */
    un_tet_template templates[UN_SHAPE_COUNT];
} un_tets_work;

/* Places of a leaf in the order of their nodes: by octant, then by the upper ends they lie at.
 * Coordinates are 0, 1 or 2 half leaf edges from its lower corner. */
static inline uint32_t un_place_code(int32_t x, int32_t y, int32_t z)
{
    return (uint32_t)((x > 0) << 3 | (y > 0) << 4 | (z > 0) << 5 | (x > 1) | (y > 1) << 1 |
                      (z > 1) << 2);
}
#define UN_CODE_CENTER 56

/* The number of a node of the leaf's own. */
static inline int32_t un_leaf_node(const un_tets_work *w, int32_t c, uint32_t code)
{
    return w->first_node[c] + __builtin_popcountll(w->mask[c] & (((uint64_t)1 << code) - 1));
}

/* The middles of a leaf's edges that are nodes. */
static inline uint32_t un_leaf_midpoints(const un_tets_work *w, uint32_t finer)
{
    uint32_t mids = 0;
    if (finer)
        for (int32_t e = 0; e < 12; e++)
            if (finer & w->edge_beside[e]) mids |= 1u << e;
    return mids;
}

/* Numbers everything and fills the arrays of nodes; makes room for those of tets (tets_nodes.c). */
un_status un_tets_number(un_tets_work *work, un_arena *arena);
/* The number of the node at (x, y, z), in units. */
int32_t un_tets_node_at(const un_tets_work *work, int32_t x, int32_t y, int32_t z);
/* The first node whose order is not below (tets_ranks.c). */
int32_t un_tets_node_from(const un_tets *mesh, uint64_t order);
/* Makes first and corner from tet (tets_incidence.c). */
un_status un_tets_incidence(const un_tets_work *work, un_arena *arena);

#endif
