/* Shared by the stages of isosurface stuffing; only mesh/ includes this. */
#ifndef UN_MESH_STUFFING_INTERNAL_H
#define UN_MESH_STUFFING_INTERNAL_H

#include "mesh/stuffing.h"
#include "mesh/tets_internal.h"

/* Half the diagonal of a cube, rounded up: the surface passes through a leaf only if it is nearer
 * to its middle than this, in leaf edges. */
#define UN_HALF_DIAGONAL 0.87
/* Dihedral angles that tets keep within, degrees. */
#define UN_STUFFING_ANGLE_MIN 10.7
#define UN_STUFFING_ANGLE_MAX 164.8
/* Points handed to the field at once. */
#define UN_STUFFING_BATCH 256

/* A mesh being built. "Edges" are those of the lattice whose ends lie on different sides of the
 * surface, before nodes are moved. */
typedef struct un_stuffing_work {
    un_stuffing *mesh;
    const un_tets *lattice;
    un_arena *arena;
    const un_stuffing_def *def;
    double *leaf_liquid, *leaf_solid; /* in the middles of leaves; NULL: unknown */
    bool cuts_cells[3]; /* by axis: the upper side of the domain is not that of the brick */
    /* By node of the lattice: */
    double *liquid, *solid; /* solid: NULL without solids */
    int8_t *sign;           /* of the level set: -1 inside, 0 on the surface, 1 outside */
    uint8_t *on;            /* UN_ON_* */
    uint8_t *moved;
    uint8_t *held; /* may it not slide along sides? */
    uint8_t *near; /* is it in a tet with nodes on both sides? */
    un_vec3 *x;
    int32_t *first_edge; /* and one more: edges to nodes of higher number */
    int32_t *new_id;     /* and one more: in the mesh, if followed by a greater number */
    /* By edge: */
    int32_t *edge_low, *edge_high; /* nodes */
    double *edge_t;                /* share of the edge from its lower node to the surface */
    uint8_t *edge_on;
    int32_t *edge_node; /* and one more: the cut's number, if followed by a greater one */
    int32_t edge_count;
    uint8_t *mixed; /* by tet of the lattice: are there nodes on both sides? */
    int64_t bad;    /* tets that are cut or bent but not whole ones; graded: that are flat */
    uint8_t *flat;  /* by tet of the lattice: does it make flat tets? NULL: not graded */
} un_stuffing_work;

/* Distance to the sides of the domain that cut cells; infinite if there are none. */
static inline double un_stuffing_sides(const un_stuffing_work *w, un_vec3 x)
{
    const un_vec3 size = w->mesh->tree.size;
    double d = INFINITY;
    if (w->cuts_cells[0]) d = fmin(d, size.x - x.x);
    if (w->cuts_cells[1]) d = fmin(d, size.y - x.y);
    if (w->cuts_cells[2]) d = fmin(d, size.z - x.z);
    return d;
}
/* Is the shape that of an uncut tet of leaves of one size, or half of one at the brick's side? */
static inline bool un_stuffing_whole(uint8_t shape)
{
    return shape < UN_SHAPE_SAME_HALF || (shape >= UN_SHAPE_WALL && shape < UN_SHAPE_WALL_HALF);
}
/* Is tet t cut or bent without being whole? Once outer nodes have moved, tets without inner ones
 * are dropped and may have any shape. */
static inline bool un_stuffing_bad(const un_stuffing_work *w, int64_t t)
{
    if (w->flat) return w->flat[t];
    if (un_stuffing_whole(w->lattice->shape[t])) return false;
    if (w->mixed[t]) return true;
    const int32_t *n = w->lattice->tet[t];
    int32_t in = 0, out = 0, moved = 0;
    for (int i = 0; i < 4; i++) {
        in += w->sign[n[i]] < 0;
        out += w->sign[n[i]] > 0;
        moved += w->moved[n[i]] != 0;
    }
    return moved > 0 && (in > 0 || out == 0);
}
/* The edge between two nodes. */
static inline int32_t un_stuffing_edge(const un_stuffing_work *w, int32_t a, int32_t b)
{
    int32_t low = a < b ? a : b, high = a < b ? b : a, e = w->first_edge[low];
    while (w->edge_high[e] != high) e++;
    return e;
}

/* The level set of the mesh at a point: that of the liquid, or the depth in walls and beyond sides
 * if that is greater. */
double un_stuffing_level_set(const un_stuffing_work *w, un_vec3 x);

/* The sides that node n lies on, as UN_ON_SIDE bits. Sides of the brick that lie beyond the domain
 * count too; the nodes there are outside. */
uint8_t un_stuffing_sides_of(const un_stuffing_work *w, int64_t n);
/* The rim's boxes are a binary tree: node 1 is the root, node i has the children 2 i and 2 i + 1,
 * and leaf r of the rim has the node width + r. Nodes without leaves have an empty box. */
static inline int32_t un_stuffing_rim_width(const un_stuffing *mesh)
{
    int32_t width = 1;
    while (width < mesh->rim_count) width *= 2;
    return width;
}
/* The dihedral angles of a tet, degrees (stuffing_validate.c). */
void un_stuffing_angles(const un_vec3 p[4], double *least, double *greatest);

un_status un_stuffing_refine(un_stuffing_work *w);     /* the first tree (stuffing_tree.c) */
un_status un_stuffing_refine_bad(un_stuffing_work *w); /* again, around bad tets */
un_status un_stuffing_sample(un_stuffing_work *w);     /* the field at nodes (stuffing_sample.c) */
un_status un_stuffing_cut(un_stuffing_work *w);        /* signs, edges, cuts (stuffing_cut.c) */
void un_stuffing_slide(un_stuffing_work *w);           /* along sides (stuffing_slide.c) */
/* Holds nodes that slid and made tets of the mesh flat; returns how many. */
int32_t un_stuffing_hold(un_stuffing_work *w);
/* Marks tets of the lattice that make flat tets, and counts them. */
void un_stuffing_find_flat(un_stuffing_work *w);
void un_stuffing_warp(un_stuffing_work *w);              /* moves nodes (stuffing_warp.c) */
un_status un_stuffing_fill(un_stuffing_work *w);         /* tets (stuffing_fill.c) */
un_status un_stuffing_number_faces(un_stuffing_work *w); /* (stuffing_faces.c) */
un_status un_stuffing_incidence(const un_stuffing_work *w);

#endif
