/* PLY: surfaces as in the run's own frames, particles as points with velocity and radius, and with
 * density and viscosity if they differ within the liquid. */
#include "export/export.h"

static un_status write_surface(un_exporter *e, int32_t frame)
{
    un_trimesh mesh;
    un_file *file;
    UN_TRY(un_export_surface(e, frame, &mesh));
    un_status status = un_export_create(e, &file, "surface.%04d.ply", frame);
    if (status == UN_OK) {
        un_output_surface_write(file, &mesh);
        status = un_export_commit(e, file);
    }
    un_trimesh_free(e->ctx, &mesh);
    return status;
}

static un_status write_particles(un_exporter *e, int32_t frame)
{
    un_particles p;
    un_file *file;
    UN_TRY(un_export_particles(e, frame, &p));
    un_status status = un_export_create(e, &file, "particles.%04d.ply", frame);
    if (status == UN_OK) {
        static const char *const properties[] = {"x",  "y",      "z",       "vx",       "vy",
                                                 "vz", "radius", "density", "viscosity"};
        int count = p.density ? 9 : 7;
        un_file_printf(file, "ply\nformat binary_little_endian 1.0\ncomment Undine %s\n",
                       un_version());
        un_file_printf(file, "element vertex %d\n", p.count);
        for (int i = 0; i < count; i++) un_file_printf(file, "property float %s\n", properties[i]);
        un_file_printf(file, "end_header\n");
        for (int32_t i = 0; i < p.count; i++) {
            float row[9] = {(float)p.x[0][i],
                            (float)p.x[1][i],
                            (float)p.x[2][i],
                            (float)p.v[0][i],
                            (float)p.v[1][i],
                            (float)p.v[2][i],
                            (float)un_particle_ball(&p, i),
                            p.density ? p.density[i] : 0,
                            p.viscosity ? p.viscosity[i] : 0};
            un_file_write_little(file, row, (size_t)count, sizeof *row);
        }
        status = un_export_commit(e, file);
    }
    un_particles_free(e->ctx, &p);
    return status;
}

un_status un_export_ply(un_exporter *e)
{
    for (int32_t k = 0; k < e->frame_count; k++) {
        int32_t frame = un_export_frame(e, k);
        if (e->surface) UN_TRY(write_surface(e, frame));
        if (e->particles) UN_TRY(write_particles(e, frame));
        UN_TRY(un_export_step(e));
    }
    return UN_OK;
}
