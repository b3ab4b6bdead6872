/* Undine: adaptive liquid simulation. The only public header.
 *
 * Every call that can fail returns a un_status; the context keeps
 * the message that explains a failure (un_context_message); it names the file, the line and the
 * remedy. The library never prints, never exits and reads no environment variable. A context and
 * everything made from it belong to one calling thread; several contexts may exist at once.
 *
 *     un_context_def def = un_context_def_default();
 *     un_context *ctx = un_context_create(&def);
 *     un_scene *scene;
 *     if (un_scene_load(ctx, "dam.lua", NULL, 0, &scene)) puts(un_context_message(ctx));
 */
#ifndef UNDINE_H
#define UNDINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define UN_API __attribute__((visibility("default")))
#else
#define UN_API
#endif

typedef enum un_status {
    UN_OK = 0,
    UN_ERROR_MEMORY,      /* out of memory, or the cap was reached */
    UN_ERROR_FILE,        /* a file cannot be read or written */
    UN_ERROR_SCENE,       /* the scene is wrong; the message says where and how to fix it */
    UN_ERROR_ARGUMENT,    /* the call itself is wrong */
    UN_ERROR_NUMERIC,     /* the simulation broke down; the message says where */
    UN_ERROR_UNAVAILABLE, /* known, but not part of this version or build */
    UN_INTERRUPTED        /* the caller's callback asked to stop; finished files are kept */
} un_status;

typedef enum un_log_level { UN_LOG_NOTE, UN_LOG_WARNING } un_log_level;

UN_API const char *un_version(void);

/* ---- context: threads, memory, messages ---- */

typedef struct un_context un_context;
typedef struct un_ranks un_ranks;

typedef struct un_context_def {
    int32_t threads;   /* 0: as many as the machine has processors */
    size_t memory_cap; /* bytes; 0: no cap */
    void (*log)(void *user, un_log_level level, const char *message); /* may be NULL */
    void *user;                                                       /* passed to log */
    int64_t fail_allocation; /* tests: the n-th allocation (1, 2, ...) and all later ones fail */
    un_ranks *ranks;         /* the processes that share the work; NULL: this one is alone */
} un_context_def;

UN_API un_context_def un_context_def_default(void);
UN_API un_context *un_context_create(const un_context_def *def); /* NULL: out of memory */
UN_API void un_context_destroy(un_context *ctx);
UN_API const char *un_context_message(const un_context *ctx); /* of the last failure; "" if none */
UN_API size_t un_context_bytes(const un_context *ctx);        /* in use now */
UN_API size_t un_context_peak_bytes(const un_context *ctx);
UN_API int32_t un_context_threads(const un_context *ctx);

/* ---- ranks: several processes that share the work, by MPI ---- */

/* Every rank makes the same calls with the same arguments. Where a call shares its work (un_share,
 * un_resurface), each rank does a part. Other calls refuse more than one rank.
 *
 * A failure that all ranks know of is returned on all of them, with the same message
 * (un_ranks_agreed). Any other is returned on one rank only, while the others go on working or
 * wait: that rank should say so and call un_ranks_abort. */

UN_API bool un_ranks_available(void); /* whether this build knows MPI */
/* Starts MPI, once in a process; without MPI the process is alone. NULL: out of memory. */
UN_API un_ranks *un_ranks_create(void);
/* After all contexts that use it; every rank waits for the others here. */
UN_API void un_ranks_destroy(un_ranks *ranks);
UN_API int32_t un_ranks_rank(const un_ranks *ranks);  /* from 0; NULL: 0 */
UN_API int32_t un_ranks_count(const un_ranks *ranks); /* NULL: 1 */
/* This machine's processors, or those that the process is bound to, divided among its ranks. */
UN_API int32_t un_ranks_threads(const un_ranks *ranks);
/* NULL: all ranks compute the same bits. Otherwise who does not, and the remedy: a run on them
 * would go wrong. */
UN_API const char *un_ranks_unlike(const un_ranks *ranks);
UN_API bool un_ranks_agreed(const un_ranks *ranks);
/* Whether this rank is doing its part of shared work, so that what it logs is its own. */
UN_API bool un_ranks_apart(const un_ranks *ranks);
/* Joins the statuses of all ranks: that of the first rank that failed goes to all, with its
 * message. Whatever may fail on one rank alone is followed by this before the next call that all
 * must make, or the others would wait forever. */
UN_API un_status un_ranks_agree(un_context *ctx, un_status status);
UN_API void un_ranks_tell(un_ranks *ranks, void *values, size_t bytes); /* from rank 0 to all */
/* Ends all ranks at once. Files are either whole or not there. Without MPI it does nothing. */
UN_API void un_ranks_abort(un_ranks *ranks, int exit_status);

/* Pieces of work that do not depend on each other. A rank that is done with one gets the next. */
typedef struct un_share_def {
    int32_t count;
    un_status (*piece)(void *arg, int32_t index);
    void *arg;
    bool (*progress)(void *user, int32_t done, int32_t total); /* on rank 0; false: stop */
    void *user;                                                /* progress may be NULL */
} un_share_def;

/* Returns when all pieces are done on all ranks. UN_INTERRUPTED, without a message, if progress
 * stopped it: the pieces that were begun are finished. */
UN_API un_status un_share(un_context *ctx, const un_share_def *def);

/* ---- scene ---- */

typedef struct un_scene un_scene;

/* Runs the scene file in its sandbox and validates the result. overrides: "key.sub=value" strings
 * in the order given; a value is read as a Lua expression, a bare word as a string. */
UN_API un_status un_scene_load(un_context *ctx, const char *path, const char *const *overrides,
                               int32_t override_count, un_scene **scene);
UN_API void un_scene_destroy(un_scene *scene);

#define UN_WARNINGS_MAX 32

/* What `undine check` reports. Warnings are full sentences; warning_count may exceed the array. */
typedef struct un_check {
    const char *method;
    int32_t cells[3]; /* along each side; in 2D the third is 0 */
    double cell_size; /* m */
    int64_t cell_count;
    int64_t particle_count;     /* at the start */
    int64_t particle_count_max; /* with emitters, at the end */
    double bytes;               /* peak memory */
    double seconds_per_frame;   /* measured on this machine with this number of threads */
    int32_t warning_count;
    char warnings[UN_WARNINGS_MAX][320];
} un_check;

UN_API un_status un_scene_check(un_context *ctx, un_scene *scene, un_check *check);
/* The memory and time of the process that needs most, of this many that share the scene, each on a
 * machine like this one. Fails if the method works in one process only. check:
 * what un_scene_check found. busy: processes that have work. */
typedef struct un_check_share {
    double bytes, seconds_per_frame;
    int32_t busy;
} un_check_share;
UN_API un_status un_scene_check_ranks(un_context *ctx, un_scene *scene, const un_check *check,
                                      int32_t ranks, un_check_share *share);

/* ---- run: simulates a scene into a directory ---- */

typedef struct un_progress {
    int32_t frame, frame_count; /* finished frames; number of the last frame */
    int32_t step;               /* total number of steps */
    double time;                /* simulated, s */
    double frame_fraction;      /* of the current frame, 0..1 */
    int64_t particles;
    double volume_error;
    double seconds;      /* since the start of the run */
    double seconds_left; /* estimated; < 0: not known yet */
    bool suspect;        /* volume, speed or energy went beyond what the scene can explain */
} un_progress;

typedef struct un_run_def {
    const char *directory; /* created if missing */
    const char *command;   /* for run.json, may be NULL */
    /* After each step, on every rank; if it returns false on one of them, all stop. May be NULL. */
    bool (*progress)(void *user, const un_progress *progress);
    void *user;
    /* Continues from the newest intact checkpoint in the directory, with the same bits as a run
     * that never stopped; starts from the beginning if there is none. The scene must be the same
     * except for the number of frames, outputs, solver and budget. */
    bool resume;
    bool has_from_frame; /* with resume: from this frame, or the nearest kept one before it */
    int32_t from_frame;
    int32_t keep_every; /* checkpoints of every n-th frame are kept; 0: every 5th */
} un_run_def;

UN_API un_run_def un_run_def_default(void);
UN_API un_status un_run(un_context *ctx, un_scene *scene, const un_run_def *def);

/* ---- info: summary of a run's directory ---- */

#define UN_STAGES_MAX 24

typedef struct un_info {
    char version[32], method[32], status[32], message[512];
    char suspect[640]; /* why the run is not to be trusted; "": it is */
    int32_t frames_finished, frames_planned;
    int32_t steps;
    double time; /* simulated, s */
    double rate; /* frames per second of film */
    int32_t cells[3];
    double cell_size;
    int64_t particles_first, particles_last, particles_max;
    double volume_first, volume_last, volume_error_last, volume_error_max;
    double max_speed; /* over the run, m/s */
    double bytes_max;
    double seconds; /* total */
    int32_t stage_count;
    struct {
        char name[32];
        double seconds;
    } stages[UN_STAGES_MAX];
} un_info;

UN_API un_status un_info_read(un_context *ctx, const char *directory, un_info *info);
/* Number of consecutive frames from 0000 on. The frame that a run is writing, or was writing when
 * it was killed, does not count. */
UN_API int32_t un_frame_count(un_context *ctx, const char *directory);

/* ---- surface: made again from saved particles, or from checkpoints ---- */

typedef struct un_resurface_def {
    const char *directory; /* of a run */
    const char *output;    /* a new directory; NULL: replace the run's surfaces */
    const char *kind;      /* hulls, grid; NULL: as the run's method */
    int32_t resolution;    /* cells along the longest side; 0: the scene's detail.surface */
    int32_t smoothing;     /* passes of fairing; -1: as in the run */
    int32_t first, last;   /* frames; last < 0: the last one that exists */
    bool (*progress)(void *user, int32_t done, int32_t total); /* false: stop; may be NULL */
    void *user;
} un_resurface_def;

/* Of a method without particles kind and smoothing are its own, and of the frames those are made
 * that have a checkpoint. Ranks share the frames; progress is called on rank 0. */

UN_API un_resurface_def un_resurface_def_default(void);
UN_API un_status un_resurface(un_context *ctx, const un_resurface_def *def);

/* ---- tetmesh: the inside of a closed surface, as tets of good quality ---- */

typedef struct un_tetmesh_def {
    const char *input;  /* a surface (PLY, OBJ, STL, OFF) or a scene (.lua) */
    const char *output; /* .vtu: tets, and the triangles of their boundary with what is behind */
    /* Of a scene: the name of a solid; NULL: the liquid as it starts, around the solids. */
    const char *part;
    const char *const *overrides; /* of a scene, as for un_scene_load */
    int32_t override_count;
    double size;    /* edge of the leaves along the surface; 0: a 32nd of the longest side */
    double grading; /* the largest leaves inside, in sizes; >= 1, rounded down to a power of 2 */
} un_tetmesh_def;

typedef struct un_tetmesh_report {
    int64_t node_count, tet_count;
    int64_t surface_count, wall_count, side_count; /* triangles of the boundary */
    double volume;                                 /* of the tets, m3 */
    double size, largest;                          /* edges of leaves */
    double min_angle, max_angle;                   /* dihedral, degrees */
    double common_min, common_max;                 /* that 99 % of the tets keep within */
    int64_t unmatched_faces, misoriented_tets;     /* 0, or the mesh is wrong */
} un_tetmesh_report;

UN_API un_tetmesh_def un_tetmesh_def_default(void);
UN_API un_status un_tetmesh(un_context *ctx, const un_tetmesh_def *def, un_tetmesh_report *report);

/* ---- export: a run in the formats of other programs ---- */

typedef struct un_export_def {
    const char *directory; /* of a run */
    const char *format;    /* ply, obj, vtk, usd, glb, vdb */
    const char *output;    /* folder to write to, created if missing; NULL: DIR/export/<format> */
    bool surface, particles, cells; /* what to write, if format and run have it */
    int32_t first, last, every;     /* frames; last < 0: the last one that exists */
    bool (*progress)(void *user, int32_t done, int32_t total); /* false: stop; may be NULL */
    void *user;
} un_export_def;

typedef struct un_export_report {
    int32_t frame_count, file_count;
    double bytes;
    char folder[2048];
} un_export_report;

UN_API un_export_def un_export_def_default(void);
UN_API un_status un_export(un_context *ctx, const un_export_def *def, un_export_report *report);

/* ---- view: runs in the browser ---- */

#define UN_VIEW_RUNS_MAX 8

typedef struct un_viewer un_viewer;

typedef struct un_viewer_def {
    const char *const *directories; /* of runs; several are shown side by side */
    int32_t directory_count;        /* at most UN_VIEW_RUNS_MAX */
    int32_t port;                   /* 0: the first free one from 8080 */
    double patience;                /* s that the header of a request may take; 0: 5 */
} un_viewer_def;

/* Serves the viewer's page and the runs' files on 127.0.0.1, to programs on this machine only.
 * Reads nothing outside the directories and writes nothing. */
UN_API un_status un_viewer_create(un_context *ctx, const un_viewer_def *def, un_viewer **viewer);
UN_API int32_t un_viewer_port(const un_viewer *viewer);
/* Answers pending requests, and waits up to this many seconds for more. */
UN_API un_status un_viewer_serve(un_viewer *viewer, double seconds);
UN_API void un_viewer_destroy(un_viewer *viewer);

typedef struct un_view_save_def {
    const char *const *directories;
    int32_t directory_count;
    const char *path;    /* of the page */
    int32_t frame_count; /* at most this many of each run, evenly spread */
    size_t bytes;        /* approximate limit of the page; surfaces are coarsened to fit */
    bool (*progress)(void *user, int32_t done, int32_t total); /* false: stop; may be NULL */
    void *user;
} un_view_save_def;

UN_API un_view_save_def un_view_save_def_default(void);
/* Writes the page with the runs in it: one self-contained file. */
UN_API un_status un_view_save(un_context *ctx, const un_view_save_def *def);

/* ---- compare: several runs on one page ---- */

typedef struct un_compare_def {
    const char *const *directories; /* 1 to UN_VIEW_RUNS_MAX runs */
    int32_t directory_count;
    const char *path;       /* of the page */
    int32_t picture_count;  /* number of times with pictures; 0: none */
    int32_t width, samples; /* of a picture */
    bool (*progress)(void *user, int32_t done, int32_t total); /* false: stop; may be NULL */
    void *user;
} un_compare_def;

UN_API un_compare_def un_compare_def_default(void);
/* Writes one self-contained file: pictures at matching times, charts, costs. */
UN_API un_status un_compare(un_context *ctx, const un_compare_def *def);

/* ---- render: pictures of a run ---- */

/* What is not set (has_... false) is taken from the scene's `render`, or chosen to suit. */
typedef struct un_render_def {
    int32_t width, height;
    int32_t samples; /* paths per pixel */
    bool has_eye, has_target, has_fov;
    double eye[3], target[3];
    double fov;        /* degrees, vertical */
    bool scene_camera; /* the scene's sizing.camera at the time of the frame */
    bool water, particles, cells;
    int32_t cut_axis; /* 0 x, 1 y, 2 z: water beyond cut_at is hidden, and cells are drawn where the
                         plane cuts them; -1: no cut */
    double cut_at;    /* m */
    bool has_light;
    double light_azimuth, light_elevation; /* degrees, from +z towards +x, and above the floor */
    bool has_water_colour, has_solid_colour, has_background;
    double water_colour[3], solid_colour[3]; /* 0..1, linear; water: a quarter of the domain deep */
    double background[3];                    /* of the horizon, which tints the sky */
} un_render_def;

typedef struct un_renderer un_renderer;

UN_API un_render_def un_render_def_default(void);
/* Reads DIR/scene.lua for the domain, the solids and `render`. */
UN_API un_status un_renderer_create(un_context *ctx, const char *directory,
                                    const un_render_def *def, un_renderer **renderer);
UN_API void un_renderer_destroy(un_renderer *renderer);
/* rgb: width * height * 3 bytes, top row first. */
UN_API un_status un_renderer_frame(un_renderer *renderer, int32_t frame, uint8_t *rgb);
/* Written under another name, synced, renamed. */
UN_API un_status un_png_write(un_context *ctx, const char *path, const uint8_t *rgb, int32_t width,
                              int32_t height);
/* A picture of exactly this size; anything else is UN_ERROR_FILE. */
UN_API un_status un_png_read(un_context *ctx, const char *path, uint8_t *rgb, int32_t width,
                             int32_t height);

#endif
