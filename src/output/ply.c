/* The surface as binary little-endian PLY: 36 bytes a vertex, 13 bytes a triangle. Missing normals
 * and velocities are written as zero, so that every file has the same layout. */
#include "output/output.h"

void un_output_surface_write(un_file *file, const un_trimesh *mesh)
{
    un_file_printf(file, "ply\nformat binary_little_endian 1.0\ncomment Undine %s\n", un_version());
    un_file_printf(file, "element vertex %d\n", mesh->vertex_count);
    static const char *const properties[] = {"x", "y", "z", "nx", "ny", "nz", "vx", "vy", "vz"};
    for (int i = 0; i < 9; i++) un_file_printf(file, "property float %s\n", properties[i]);
    un_file_printf(file, "element face %d\nproperty list uchar int vertex_indices\nend_header\n",
                   mesh->triangle_count);
    for (int32_t i = 0; i < mesh->vertex_count; i++) {
        un_vec3 x = mesh->position[i];
        un_vec3 n = mesh->normal ? mesh->normal[i] : un_v3(0, 0, 0);
        un_vec3 v = mesh->velocity ? mesh->velocity[i] : un_v3(0, 0, 0);
        float vertex[9] = {(float)x.x, (float)x.y, (float)x.z, (float)n.x, (float)n.y,
                           (float)n.z, (float)v.x, (float)v.y, (float)v.z};
        un_file_write_little(file, vertex, 9, sizeof *vertex);
    }
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        uint8_t corner_count = 3;
        un_file_write(file, &corner_count, 1);
        un_file_write_little(file, mesh->triangle[t], 3, sizeof(int32_t));
    }
}

un_status un_output_surface(un_context *ctx, const char *path, const un_trimesh *mesh)
{
    un_file *file;
    UN_TRY(un_file_create(ctx, path, &file));
    un_output_surface_write(file, mesh);
    return un_file_commit(file);
}
