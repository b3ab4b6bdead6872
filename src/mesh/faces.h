/* Numbered faces of tets, for methods with velocities on faces. */
#ifndef UN_MESH_FACES_H
#define UN_MESH_FACES_H

#include "mesh/tets.h"

/* A face belongs to the first of its tets; its normal points out of that tet. */
typedef struct un_faces {
    int32_t count;
    int32_t *corner;      /* 4 t + i: the face of tet t opposite its node i */
    int32_t *other;       /* the tet behind it, -1 in the brick's boundary */
    int32_t (*of_tet)[4]; /* the face opposite each node of a tet */
    size_t capacity[3];
} un_faces;

void un_faces_free(un_context *ctx, un_faces *faces);
un_status un_faces_number(un_context *ctx, un_arena *arena, un_faces *faces, const un_tets *mesh);

static inline int32_t un_face_tet(const un_faces *faces, int32_t f)
{
    return faces->corner[f] / 4;
}
/* The nodes of a face. */
static inline void un_face_nodes(const un_faces *faces, const un_tets *mesh, int32_t f,
                                 int32_t n[3])
{
    int32_t c = faces->corner[f];
    for (int k = 0; k < 3; k++) n[k] = mesh->tet[c / 4][(c + 1 + k) & 3];
}
static inline un_vec3 un_face_center(const un_faces *faces, const un_tets *mesh, int32_t f)
{
    int32_t n[3];
    un_face_nodes(faces, mesh, f, n);
    un_vec3 sum = un_add(un_add(mesh->x[n[0]], mesh->x[n[1]]), mesh->x[n[2]]);
    return un_scale(sum, 1.0 / 3);
}
/* Normal times area: -3 V times the gradient of the opposite node's barycentric coordinate. */
static inline un_vec3 un_face_area(const un_faces *faces, const un_tets *mesh, int32_t f)
{
    int32_t c = faces->corner[f], t = c / 4;
    const double *g = un_tets_shape(mesh, t)->gradient[c & 3];
    double scale = -3 * un_tets_volume(mesh, t) / un_tets_size(mesh, t);
    return un_v3(scale * g[0], scale * g[1], scale * g[2]);
}

#endif
