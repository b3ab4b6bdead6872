/* Tets that follow a surface and walls: isosurface stuffing on the graded lattice of tets.h
 * [Labelle & Shewchuk 2007; Chentanez07 section 3.1].
 *
 * The mesh fills the part of the domain where the liquid's level set is negative and the solids'
 * positive. Deep inside, its tets are those of the lattice. Along the surface, nodes of the lattice
 * are moved onto it and tets are cut; sides of the domain lie on planes of the lattice. stuffing.c
 * says how. Everything is the same for any number of threads. */
#ifndef UN_MESH_STUFFING_H
#define UN_MESH_STUFFING_H

#include "mesh/tets.h"

/* Writes the liquid's level set at the points, negative in the liquid, and the distance to the
 * solids, negative inside them; solid is NULL if the definition has none. in m. Called from
 * any thread. Both must continue beyond the surface and through walls. Where they are much steeper
 * than a distance, coarse leaves may miss thin parts. Sides of the domain are no solids. */
typedef void un_stuffing_field(void *arg, int64_t count, const un_vec3 *x, double *liquid,
                               double *solid);
/* The wanted edge of leaves at x, m. */
typedef double un_stuffing_size(void *arg, un_vec3 x);

typedef struct un_stuffing_def {
    un_stuffing_field *field;
    un_stuffing_size *size; /* away from the surface; NULL: as large as balance allows */
    bool graded;            /* size counts along the surface too, as far as angles allow */
    void *arg;              /* of both */
    bool solids;
    bool linear; /* places cuts by the nodes' values alone, not by finding roots of the field */
    double snap; /* nodes in the liquid this near to a wall are put on it, in leaf edges; default
                    1/8, at most 0.2 */
    const un_octree_request *request; /* leaves wanted besides, NULL: none */
} un_stuffing_def;
un_stuffing_def un_stuffing_default(void);

/* Where a node lies; several may hold along creases and contact lines. */
enum {
    UN_ON_SURFACE = 1, /* the liquid's */
    UN_ON_WALL = 2,    /* of a solid */
    UN_ON_SIDE = 4     /* << side: of the domain, -x, +x, -y, +y, -z, +z */
};
/* What is behind a face. */
enum {
    UN_BEHIND_TET,
    UN_BEHIND_AIR,
    UN_BEHIND_WALL,
    UN_BEHIND_SIDE /* + side, 0 .. 5 */
};

typedef struct un_stuffing {
    un_context *ctx;
    un_octree tree;  /* built by un_stuffing_build, like the lattice */
    un_tets lattice; /* of all leaves, nodes unmoved */
    /* Nodes: first those of the lattice that the mesh uses, in their order, then cuts. */
    int32_t node_count, lattice_node_count;
    un_vec3 *x;
    uint8_t *on;          /* UN_ON_*: 0 inside */
    int32_t *node_source; /* the lattice's; of a cut, the inner end of its edge */
    /* Tets, in the order of the leaves. */
    int32_t tet_count;
    int32_t (*tet)[4]; /* nodes, positively oriented */
    double *volume;    /* m3 */
    uint8_t *level;    /* of the leaf */
    int32_t *leaf;     /* that it was made in; ascending */
    int32_t *source;   /* the lattice's tet; ascending */
    /* By leaf, and one more: the first tet of the leaf; by lattice tet, and one more. */
    int32_t *leaf_tet, *source_tet;
    /* Faces, in the order of their first tets. */
    int32_t face_count;
    int32_t (*face)[3];     /* nodes, counterclockwise as seen from outside of the first tet */
    int32_t (*face_tet)[2]; /* the first tet has the lower number; -1: no second one */
    uint8_t *face_behind;   /* UN_BEHIND_*, as seen from the first tet */
    un_vec3 *area;          /* normal times area, out of the first tet, m2 */
    un_vec3 *center;        /* m */
    int32_t (*tet_face)[4]; /* by tet: the face opposite each node */
    /* Faces with one tet, ascending. */
    int32_t boundary_count;
    int32_t *boundary;
    /* By node: its tets, as 4 t + corner, ascending; node n has first[n] .. first[n + 1]. */
    int32_t *first, *corner;
    /* Leaves whose tets have faces in the boundary, ascending. */
    int32_t rim_count;
    int32_t *rim;
    int32_t *rim_first; /* and one more: the first of their faces in `boundary` */
    un_box3 *rim_box;   /* around them; a binary tree, see stuffing_locate.c */
    int32_t passes;     /* lattices that the build made until all cut tets were whole */
    size_t capacity[22];
} un_stuffing;

/* coarsest, finest: as for un_octree_init. Unless it is graded, the surface gets the finest leaves,
 * whatever `size` wants. Sides of the domain are sharpest if they are a whole number of the finest
 * leaves long. */
void un_stuffing_init(un_context *ctx, un_stuffing *mesh, un_vec3 size, int32_t coarsest,
                      int32_t finest);
void un_stuffing_free(un_stuffing *mesh);
/* Builds tree, lattice, tets, faces and incidence. A field that is nowhere negative gives an empty
 * mesh. Arrays keep their capacity; the arena gets the scratch and is not reset. */
un_status un_stuffing_build(un_stuffing *mesh, un_arena *arena, const un_stuffing_def *def);

/* The tet across the face opposite corner i; -1: none. */
static inline int32_t un_stuffing_beside(const un_stuffing *mesh, int32_t t, int i)
{
    const int32_t *pair = mesh->face_tet[mesh->tet_face[t][i]];
    return pair[0] == t ? pair[1] : pair[0];
}
/* +1 if the face's normal points out of the tet, else -1. */
static inline double un_stuffing_sign(const un_stuffing *mesh, int32_t t, int i)
{
    return mesh->face_tet[mesh->tet_face[t][i]][0] == t ? 1 : -1;
}
/* The edge of the leaf that a face's first tet was made in, m. */
static inline double un_stuffing_leaf(const un_stuffing *mesh, int32_t f)
{
    return un_octree_size(&mesh->tree, mesh->level[mesh->face_tet[f][0]]);
}
static inline un_vec3 un_stuffing_center(const un_stuffing *mesh, int32_t t)
{
    const int32_t *n = mesh->tet[t];
    const un_vec3 *x = mesh->x;
    return un_scale(un_add(un_add(x[n[0]], x[n[1]]), un_add(x[n[2]], x[n[3]])), 0.25);
}
/* Barycentric coordinates of any point; they sum to 1. */
void un_stuffing_weights(const un_stuffing *mesh, int32_t t, un_vec3 x, double w[4]);
/* The tet that holds x, with the weights of x in it: true. Outside the mesh: false, with the tet
 * nearest to x and the weights of the point of it that is nearest. guess: a tet to try first, -1
 * none; it changes the time taken, and which of the tets that share x is found. The mesh must not
 * be empty. x may be anything; NaN counts as 0. */
bool un_stuffing_locate(const un_stuffing *mesh, un_vec3 x, int32_t guess, un_tets_place *place);

typedef struct un_stuffing_report {
    int64_t unmatched_faces;     /* with more than two tets; within the mesh with one tet */
    int64_t misoriented_tets;    /* without positive volume, or with a wrong one */
    int64_t wrong_faces;         /* whose tets, normal or sum over a tet do not match */
    int64_t wrong_nodes;         /* unused, or not in the tets that the incidence names */
    int64_t behind_count[9];     /* faces by what is behind them */
    double volume;               /* m3 */
    double min_angle, max_angle; /* dihedral, degrees */
} un_stuffing_report;
/* Checks that do not rely on how the mesh was built. */
un_status un_stuffing_validate(const un_stuffing *mesh, un_arena *arena,
                               un_stuffing_report *report);

/* Dihedral angles (degrees, to a tenth) that all but a `share` of the tets stay above, and all but
 * such a share below. */
void un_stuffing_common_angles(const un_stuffing *mesh, double share, double *least,
                               double *greatest);

#endif
