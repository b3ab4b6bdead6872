/* Output: files of a run. Every file is written aside, synced and renamed, so that a name only
 * ever stands for a complete file. */
#ifndef UN_OUTPUT_H
#define UN_OUTPUT_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "method/method.h"
#include "particles/particles.h"
#include "scene/scene.h"

/* ---- files (file.c) ---- */

typedef struct un_file un_file;
/* Opens path.tmp-ish beside path; nothing appears under path before un_file_commit. All writes
 * are buffered; the first failure sticks and is reported by commit. */
un_status un_file_create(un_context *ctx, const char *path, un_file **file);
void un_file_write(un_file *file, const void *bytes, size_t count);
void un_file_printf(un_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Flush, sync, rename, sync the folder; frees the handle either way and removes the aside file
 * on failure. */
un_status un_file_commit(un_file *file);
void un_file_discard(un_file *file);
/* mkdir -p. */
un_status un_directory_create(un_context *ctx, const char *path);
/* Whole file, NUL-terminated; size may be NULL. Free with un_free. */
un_status un_file_read(un_context *ctx, const char *path, char **text, size_t *size);

/* ---- frames ---- */

/* Binary little-endian PLY: float x y z nx ny nz vx vy vz; int triangles (ply.c). */
un_status un_output_surface(un_context *ctx, const char *path, const un_trimesh *mesh);
/* VTK XML PolyData, appended raw: points, velocity, volume, radius, ballistic (vtk.c). */
un_status un_output_particles(un_context *ctx, const char *path, const un_particles *particles);
/* VTK XML PolyData of the surface, for surface.pvd: ParaView's PLY reader takes no attributes. */
un_status un_output_surface_vtp(un_context *ctx, const char *path, const un_trimesh *mesh);
/* VTK XML UnstructuredGrid of voxels: level, pressure, velocity. */
un_status un_output_cells(un_context *ctx, const char *path, const un_cells *cells);
/* A ParaView collection of DIR/frames/NNNN/<file> for frames 0..frame_count-1. */
un_status un_output_pvd(un_context *ctx, const char *path, const char *file, int32_t frame_count,
                        double rate);

/* ---- tables and run.json ---- */

/* stats.csv and probes.csv grow by a row per step. A table is appended to, flushed and synced at
 * every frame; the header is written at creation. */
typedef struct un_table un_table;
un_status un_table_create(un_context *ctx, const char *path, const char *header, un_table **table);
un_status un_table_row(un_table *table, const double *values, int32_t count);
un_status un_table_sync(un_table *table);
un_status un_table_close(un_table *table); /* NULL is fine */

un_status un_stats_create(un_context *ctx, const char *path, const un_method *method,
                          un_table **table);
un_status un_stats_row(un_table *table, const un_method *method, const un_step *step);

typedef struct un_run_record {
    const char *command, *method, *status, *message; /* status: running, done, failed, interrupted */
    int32_t frames_finished, frames_planned;
    double rate;
    int32_t cells[3];
    double cell_size;
    double seconds;
} un_run_record;
un_status un_output_run_json(un_context *ctx, const char *path, const un_run_record *record);

#endif
