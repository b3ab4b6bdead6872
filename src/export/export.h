/* Export: a run's frames in the formats of other programs. Lengths are metres, y is up and times
 * are seconds in the files of a run; each writer converts that to the units, axes and names
 * that its readers expect; docs/export.md has the table. */
#ifndef UN_EXPORT_H
#define UN_EXPORT_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "output/output.h"
#include "scene/scene.h"

#define UN_EXPORT_PATH 4200

/* Shared by all writers. */
typedef struct un_exporter {
    un_context *ctx;
    const un_export_def *def;
    un_export_report *report;
    un_scene *scene;
    char name[128]; /* of the run: the directory's name as an identifier */
    double rate;    /* frames a second */
    int32_t first, last, every, frame_count;
    bool surface, particles, cells; /* requested and present */
    int32_t done, total;            /* for progress: pieces of work */
    un_body_mesh *solids;           /* at rest, m; of usd and glb */
    un_motion *motion;              /* of the same */
} un_exporter;

/* k-th frame of the export. */
static inline int32_t un_export_frame(const un_exporter *e, int32_t k)
{
    return e->first + k * e->every;
}
/* Both must be freed; a frame without the file gives an empty one. */
un_status un_export_surface(const un_exporter *e, int32_t frame, un_trimesh *mesh);
un_status un_export_particles(const un_exporter *e, int32_t frame, un_particles *particles);
/* <folder>/<name> */
un_status un_export_create(un_exporter *e, un_file **file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Commits and counts. */
un_status un_export_commit(un_exporter *e, un_file *file);
/* Another piece is done; UN_INTERRUPTED: the caller wants to stop. */
un_status un_export_step(un_exporter *e);
/* Meshes the scene's solids and reads their poses. */
un_status un_export_solids(un_exporter *e);

un_status un_export_ply(un_exporter *e);
un_status un_export_obj(un_exporter *e);
un_status un_export_vtk(un_exporter *e);
un_status un_export_usd(un_exporter *e);
un_status un_export_glb(un_exporter *e);
un_status un_export_vdb(un_exporter *e);

#endif
