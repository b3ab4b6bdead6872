/* Triangle meshes. */
#include "geometry/geometry.h"

void un_trimesh_free(un_context *ctx, un_trimesh *mesh) {
    un_free(ctx, mesh->position);
    un_free(ctx, mesh->normal);
    un_free(ctx, mesh->velocity);
    un_free(ctx, mesh->triangle);
    *mesh = (un_trimesh){0};
}

un_status un_trimesh_load(un_context *ctx, const char *path, un_trimesh *mesh) {
    *mesh = (un_trimesh){0};
    return un_fail(ctx, UN_ERROR_UNAVAILABLE, "%s: mesh files are not available yet", path);
}

un_status un_trimesh_examine(un_context *ctx, const un_trimesh *mesh, un_trimesh_report *report) {
    (void)mesh;
    *report = (un_trimesh_report){0};
    return un_fail(ctx, UN_ERROR_UNAVAILABLE, "mesh reports are not available yet");
}
