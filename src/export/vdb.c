/* OpenVDB, if the build has it; vdb_shim.cc does the work. */
#include "export/export.h"

#ifndef UN_WITH_VDB

un_status un_export_vdb(un_exporter *e)
{
    return un_fail(e->ctx, UN_ERROR_UNAVAILABLE,
                   "this build cannot write OpenVDB: install it (Debian: libopenvdb-dev g++) and "
                   "build again with the CMake option UNDINE_VDB=ON");
}

#else

#include "export/vdb_shim.h"

static un_status write_file(un_exporter *e, const un_vdb_frame *in)
{
    un_file *file;
    char message[300] = "";
    UN_TRY(un_export_create(e, &file, "liquid.%04d.vdb", in->frame));
    const char *aside = un_file_aside(file);
    if (!un_vdb_write(in, aside, message, sizeof message)) {
        un_file_discard(file);
        return un_fail(e->ctx, UN_ERROR_FILE,
                       "cannot write %s/liquid.%04d.vdb: %s; free some space there or choose "
                       "another output folder",
                       e->report->folder, in->frame, message);
    }
    return un_export_commit(e, file);
}

static un_status write_frame(un_exporter *e, int32_t frame)
{
    un_trimesh mesh = {0};
    un_particles p = {0};
    un_status status = UN_OK;
    if (e->surface) UN_TRY_DONE(un_export_surface(e, frame, &mesh));
    if (e->particles) UN_TRY_DONE(un_export_particles(e, frame, &p));
    un_vec3 size = e->scene->def.domain.size;
    un_vdb_frame in = {
        .voxel = fmax(size.x, fmax(size.y, size.z)) / e->scene->def.detail.surface,
        .surface = e->surface,
        .vertex_count = mesh.vertex_count,
        .triangle_count = mesh.triangle_count,
        .position = (const double *)mesh.position,
        .velocity = (const double *)mesh.velocity,
        .triangle = (const int32_t *)mesh.triangle,
        .particle_count = p.count,
        .x = {p.x[0], p.x[1], p.x[2]},
        .v = {p.v[0], p.v[1], p.v[2]},
        .frame = frame,
    };
    status = write_file(e, &in);
done:
    un_trimesh_free(e->ctx, &mesh);
    un_particles_free(e->ctx, &p);
    return status;
}

un_status un_export_vdb(un_exporter *e)
{
    for (int32_t k = 0; k < e->frame_count; k++) {
        UN_TRY(write_frame(e, un_export_frame(e, k)));
        UN_TRY(un_export_step(e));
    }
    return UN_OK;
}

#endif
