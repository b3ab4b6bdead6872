/* What building, locating and checking tets share beyond tets.h. */
#ifndef UN_MESH_TETS_INTERNAL_H
#define UN_MESH_TETS_INTERNAL_H

#include "mesh/tets.h"

/* Around a leaf, places in half leaf edges from its centre are numbered
 * (x + 1) + 3 (y + 1) + 9 (z + 1); neighbours, in leaf edges, likewise. */
#define UN_PLACE_CENTER 13
#define UN_PLACE_BEYOND 27 /* the centre of the leaf behind the face at hand */

/* Face 2 a + s is the lower (s = 0) or upper one of axis a; u = a + 1 and v = a + 2 (mod 3) are the
 * axes in it. Its edges are numbered: at the lower and upper end of u, at the lower and upper end
 * of v. Each edge and the face's middle span a triangle, in two halves where the edge has a
 * midpoint: first that at the lower end of the edge. */
static inline void un_face_axes(int32_t face, int32_t *a, int32_t *u, int32_t *v)
{
    *a = face / 2;
    *u = (*a + 1) % 3;
    *v = (*a + 2) % 3;
}

/* face_code: edges with a midpoint in bits 0 to 3, then what the face is. The tets of a face follow
 * each other by edge and half. Of a cut face, bit 0 tells the diagonal: 0 from the lower ends of
 * both axes to the upper ones; the tet at the upper end of u comes first. */
enum {
    UN_FACE_OWN = 0 << 4,   /* same size behind; the tets belong to this leaf */
    UN_FACE_OTHER = 1 << 4, /* same size behind; they belong to that leaf */
    UN_FACE_FAN = 2 << 4,   /* finer or nothing behind: the middle is a node */
    UN_FACE_CUT = 3 << 4    /* larger behind */
};
#define UN_FACE_KIND (3 << 4)

/* First shapes of their families, by face (for SAME by axis) and edge, halves by half also; CUT by
 * face, diagonal and side. */
enum {
    UN_SHAPE_SAME = 0,
    UN_SHAPE_SAME_HALF = UN_SHAPE_SAME + 3 * 4,
    UN_SHAPE_FINER_HALF = UN_SHAPE_SAME_HALF + 3 * 8,
    UN_SHAPE_WALL = UN_SHAPE_FINER_HALF + 6 * 8,
    UN_SHAPE_WALL_HALF = UN_SHAPE_WALL + 6 * 4,
    UN_SHAPE_CUT = UN_SHAPE_WALL_HALF + 6 * 8,
    UN_SHAPE_COUNT = UN_SHAPE_CUT + 6 * 4
};

/* By shape: the places of its nodes. Node 3 is the centre of the leaf that owns the tet, and so is
 * node 2 that of the leaf behind in SAME. */
typedef struct un_tet_template {
    uint8_t place[4];
} un_tet_template;
void un_tet_templates(un_tet_template templates[UN_SHAPE_COUNT]);

/* first and corner from tet (tets_incidence.c). leaf_node, leaf_tet: first node and tet by leaf,
 * and one more. */
un_status un_tets_incidence(un_tets *mesh, un_arena *arena, const int32_t *leaf_node,
                            const int32_t *leaf_tet);

#endif
