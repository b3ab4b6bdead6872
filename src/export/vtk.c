/* VTK XML: surface, particles and cells, each as a numbered file per frame and a .pvd with the
 * times. */
#include "export/export.h"

#include <stdio.h>
#include <sys/stat.h>

static un_status count_file(un_exporter *e, const char *path, un_status status)
{
    struct stat found;
    if (status != UN_OK) return status;
    if (stat(path, &found) == 0) e->report->bytes += (double)found.st_size;
    e->report->file_count++;
    return UN_OK;
}

static un_status write_surface(un_exporter *e, int32_t frame, const char *path)
{
    un_trimesh mesh;
    UN_TRY(un_export_surface(e, frame, &mesh));
    un_status status = un_output_surface_vtp(e->ctx, path, &mesh);
    un_trimesh_free(e->ctx, &mesh);
    return count_file(e, path, status);
}

static un_status write_particles(un_exporter *e, int32_t frame, const char *path)
{
    un_particles particles;
    UN_TRY(un_export_particles(e, frame, &particles));
    un_status status = un_output_particles(e->ctx, path, &particles, particles.depth);
    un_particles_free(e->ctx, &particles);
    return count_file(e, path, status);
}

static un_status write_cells(un_exporter *e, int32_t frame, const char *path)
{
    char from[UN_EXPORT_PATH];
    un_cells cells;
    snprintf(from, sizeof from, "%s/frames/%04d/mesh.vtu", e->def->directory, frame);
    UN_TRY(un_output_read_cells(e->ctx, from, &cells));
    un_status status = un_output_cells(e->ctx, path, &cells);
    un_cells_free(e->ctx, &cells);
    return count_file(e, path, status);
}

static un_status write_collection(un_exporter *e, const char *name, const char *ending)
{
    un_file *file;
    UN_TRY(un_export_create(e, &file, "%s.pvd", name));
    un_file_printf(file, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\" "
                         "byte_order=\"LittleEndian\">\n<Collection>\n");
    for (int32_t k = 0; k < e->frame_count; k++) {
        char time[UN_NUMBER_CHARS];
        un_number_format(time, un_export_frame(e, k) / e->rate);
        un_file_printf(file,
                       "<DataSet timestep=\"%s\" group=\"\" part=\"0\" file=\"%s.%04d.%s\"/>\n",
                       time, name, un_export_frame(e, k), ending);
    }
    un_file_printf(file, "</Collection>\n</VTKFile>\n");
    return un_export_commit(e, file);
}

un_status un_export_vtk(un_exporter *e)
{
    const struct {
        bool wanted;
        const char *name, *ending;
        un_status (*write)(un_exporter *, int32_t, const char *);
    } parts[] = {{e->surface, "surface", "vtp", write_surface},
                 {e->particles, "particles", "vtp", write_particles},
                 {e->cells, "mesh", "vtu", write_cells}};
    for (int32_t k = 0; k < e->frame_count; k++) {
        int32_t frame = un_export_frame(e, k);
        for (int i = 0; i < 3; i++) {
            char path[UN_EXPORT_PATH];
            snprintf(path, sizeof path, "%s/%s.%04d.%s", e->report->folder, parts[i].name, frame,
                     parts[i].ending);
            if (parts[i].wanted) UN_TRY(parts[i].write(e, frame, path));
        }
        UN_TRY(un_export_step(e));
    }
    for (int i = 0; i < 3; i++)
        if (parts[i].wanted) UN_TRY(write_collection(e, parts[i].name, parts[i].ending));
    return UN_OK;
}
