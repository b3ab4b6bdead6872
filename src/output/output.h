/* Output: files of a run. Every file is written under another name, synced and renamed (un_file,
 * base.h), so a file that has its name is complete. */
#ifndef UN_OUTPUT_H
#define UN_OUTPUT_H

#include "base/base.h"
#include "bodies/bodies.h"
#include "geometry/geometry.h"
#include "method/method.h"
#include "particles/particles.h"
#include "scene/scene.h"
#include "state/state.h"

/* ---- numbers as text (number.c), the same in every locale ---- */

#define UN_NUMBER_CHARS 40
/* The shortest form that reads back to the same bits; nan, inf and -inf for what is not finite. */
void un_number_format(char text[UN_NUMBER_CHARS], double value);
/* end: after the number, or text itself if there is none. */
double un_number_parse(const char *text, const char **end);

/* ---- frames ---- */

/* Binary little-endian PLY: float x y z nx ny nz vx vy vz; int triangles (ply.c). */
un_status un_output_surface(un_context *ctx, const char *path, const un_trimesh *mesh);
void un_output_surface_write(un_file *file, const un_trimesh *mesh); /* into an open file */
/* VTK XML PolyData, appended raw: points, velocity, volume, radius, ballistic, and depth unless
 * that is NULL (vtk.c). Separate drops count as ballistic wherever they are. */
/* On several ranks, called by all: each writes its part of the stream. */
un_status un_output_particle_stream(un_context *ctx, const char *path,
                                    const un_particle_stream *stream);
un_status un_output_particles(un_context *ctx, const char *path, const un_particles *particles,
                              const float *depth);
/* VTK XML PolyData of the surface, for surface.pvd: ParaView's PLY reader takes no attributes. */
un_status un_output_surface_vtp(un_context *ctx, const char *path, const un_trimesh *mesh);
/* VTK XML UnstructuredGrid: level, pressure, velocity. */
un_status un_output_cells(un_context *ctx, const char *path, const un_cells *cells);
/* A ParaView collection of DIR/frames/NNNN/<file> for frames 0..frame_count-1. */
un_status un_output_pvd(un_context *ctx, const char *path, const char *file, int32_t frame_count,
                        double rate);

/* Reads files as written above (read.c). Previous contents are not freed. */
un_status un_output_read_surface(un_context *ctx, const char *path, un_trimesh *mesh);
un_status un_output_read_particles(un_context *ctx, const char *path, un_particles *particles);
un_status un_output_read_cells(un_context *ctx, const char *path, un_cells *cells);
/* From the bytes of a file, which are changed; a NUL follows them. path: for messages. */
un_status un_output_parse_cells(un_context *ctx, const char *path, char *text, size_t size,
                                un_cells *cells);

/* ---- tables and run.json ---- */

/* stats.csv, probes.csv and bodies.csv grow by a row per step. The header is written under another
 * name and renamed; each row is appended by one write, and synced at every frame, so a killed run
 * can only cut off the last line. */
typedef struct un_table un_table;
un_status un_table_create(un_context *ctx, const char *path, const char *header, un_table **table);
/* Opens an existing table to continue after `length` bytes. Fails if it is shorter, has another
 * header, or no row ends there. What comes after stays until un_table_cut. */
un_status un_table_open(un_context *ctx, const char *path, const char *header, int64_t length,
                        un_table **table);
un_status un_table_cut(un_table *table);
int64_t un_table_length(const un_table *table); /* bytes of whole rows */
/* Reading the numbers back gives the same bits. */
un_status un_table_row(un_table *table, const double *values, int32_t count);
un_status un_table_sync(un_table *table);
un_status un_table_close(un_table *table); /* syncs; NULL is allowed */

/* length: of a table to continue, as in un_table_open; -1: a new one. */
un_status un_stats_create(un_context *ctx, const char *path, const un_method *method,
                          int64_t length, un_table **table);
un_status un_stats_row(un_table *table, const un_method *method, const un_step *step);

/* Header: time, then the probes' names. Rows by un_table_row: the time, then a value per probe. */
un_status un_probes_create(un_context *ctx, const char *path, const un_probe *probes,
                           int32_t probe_count, int64_t length, un_table **table);

/* ---- bodies.csv (bodies.c): poses of the moving solids ---- */

/* length: as above. */
un_status un_bodies_table_create(un_context *ctx, const char *path, const un_bodies *bodies,
                                 int64_t length, un_table **table);
/* Writes their poses at the end of the step. */
un_status un_bodies_table_row(un_context *ctx, un_table *table, const un_bodies *bodies,
                              double time);

/* Poses of a run's solids, from DIR/bodies.csv. Earlier versions wrote no such file, and all their
 * solids move by functions of time: for these runs the scene gives the poses. */
typedef struct un_motion un_motion;
/* The scene must outlive it. */
un_status un_motion_read(un_context *ctx, const char *directory, const un_scene *scene,
                         un_motion **motion);
void un_motion_destroy(un_motion *motion);
bool un_motion_is_recorded(const un_motion *motion); /* or taken from the scene */
/* Of a solid of the scene, at a frame. */
un_status un_motion_pose(const un_motion *motion, int32_t solid, int32_t frame, un_pose *pose);
/* Places all bodies as they were at a frame. */
un_status un_motion_place(const un_motion *motion, un_bodies *bodies, int32_t frame);

/* ---- checkpoints (checkpoint.c) ---- */

/* Written under another name, synced, read back, checked, then renamed. On several ranks, called by
 * all, which do that together: rank 0's state has all sections, others' those that are fetched. */
un_status un_checkpoint_write(un_context *ctx, const char *path, const un_state *state);
/* The state must be empty. UN_ERROR_FILE: the file is missing or damaged. */
un_status un_checkpoint_read(un_state *state, const char *path);
un_status un_checkpoint_read_some(un_state *state, const char *path, const un_sieve *sieve);

/* Zero stands for unknown. */
typedef struct un_run_record {
    const char *command, *method, *status,
        *message;                            /* status: running, done, failed, interrupted */
    const char *suspect;                     /* why it is not to be trusted; "" or NULL: it is */
    int32_t frames_finished, frames_planned; /* frame 0 is not counted */
    double rate;
    int32_t cells[3];
    double cell_size;
    double bytes_peak; /* peak memory */
    double seconds;
    const char *const *stages; /* NULL-terminated, with their times so far, or NULL */
    const double *stage_seconds;
} un_run_record;
un_status un_output_run_json(un_context *ctx, const char *path, const un_run_record *record);

/* ---- triangles of solids, for pictures and files (solid.c, solid_flat.c, solid_weld.c) ---- */

typedef struct un_body_mesh {
    int32_t vertex_count, triangle_count;
    float (*position)[3]; /* m */
    float (*normal)[3];
    uint8_t *sky; /* at vertices: fraction of the sky that the solid itself does not hide, of 255 */
    uint32_t (*triangle)[3];
    bool container; /* hides the liquid from outside: pictures show its inner side only */
} un_body_mesh;

/* Meshes a solid at rest, with sharp edges. A shape without bounds, or one that does not move and
 * extends beyond the domain on all sides, is cut off at the domain's box. If it also hides what is
 * inside, it is a container: the sides of the box are left out. The result may be empty. In 2D it
 * is the solid's cross-section with the plane z = 0. */
un_status un_body_mesh_build(un_context *ctx, const un_shape *shape, bool moves, un_vec3 domain,
                             un_body_mesh *mesh);
void un_body_mesh_free(un_context *ctx, un_body_mesh *mesh);
/* Merges vertices with the same position and normal. */
un_status un_body_mesh_weld(un_context *ctx, un_body_mesh *mesh);

#endif
