/* Wavefront OBJ: positions, normals, triangles. The format cannot hold velocities. */
#include "export/export.h"

static un_status write_surface(un_exporter *e, int32_t frame)
{
    un_trimesh m;
    un_file *file;
    UN_TRY(un_export_surface(e, frame, &m));
    un_status status = un_export_create(e, &file, "surface.%04d.obj", frame);
    if (status == UN_OK) {
        un_file_printf(file, "# Undine %s, frame %d, metres, y up\no surface\n", un_version(),
                       frame);
        for (int32_t i = 0; i < m.vertex_count; i++)
            un_file_printf(file, "v %.7g %.7g %.7g\n", m.position[i].x, m.position[i].y,
                           m.position[i].z);
        for (int32_t i = 0; m.normal && i < m.vertex_count; i++)
            un_file_printf(file, "vn %.5g %.5g %.5g\n", m.normal[i].x, m.normal[i].y,
                           m.normal[i].z);
        for (int32_t t = 0; t < m.triangle_count; t++) {
            int32_t a = m.triangle[t][0] + 1, b = m.triangle[t][1] + 1, c = m.triangle[t][2] + 1;
            if (m.normal)
                un_file_printf(file, "f %d//%d %d//%d %d//%d\n", a, a, b, b, c, c);
            else
                un_file_printf(file, "f %d %d %d\n", a, b, c);
        }
        status = un_export_commit(e, file);
    }
    un_trimesh_free(e->ctx, &m);
    return status;
}

un_status un_export_obj(un_exporter *e)
{
    for (int32_t k = 0; k < e->frame_count; k++) {
        UN_TRY(write_surface(e, un_export_frame(e, k)));
        UN_TRY(un_export_step(e));
    }
    return UN_OK;
}
