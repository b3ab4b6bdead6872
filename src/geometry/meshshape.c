/* Mesh shapes. */
#include "geometry/shape.h"

void mesh_tree_free(un_context *ctx, struct mesh_tree *tree) {
    un_free(ctx, tree);
}

double mesh_distance(const struct mesh_tree *tree, un_vec3 x) {
    (void)tree;
    return un_length(x);
}

un_vec3 mesh_normal(const struct mesh_tree *tree, un_vec3 x) {
    (void)tree;
    return shape_direction(x, un_v3(0, 1, 0));
}

void mesh_distances(const struct mesh_tree *tree, const un_vec3 *x, int32_t count,
                    double *distance) {
    for (int32_t k = 0; k < count; k++) distance[k] = mesh_distance(tree, x[k]);
}

un_status un_shape_mesh(un_shape_set *set, const un_trimesh *mesh, un_shape **shape,
                        un_trimesh_report *report) {
    (void)mesh, (void)shape, (void)report;
    return un_fail(set->ctx, UN_ERROR_UNAVAILABLE, "mesh shapes are not available yet");
}
