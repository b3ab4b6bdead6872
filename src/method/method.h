/* Method: one file per published algorithm, and the table of methods. */
#ifndef UN_METHOD_H
#define UN_METHOD_H

#include "base/base.h"
#include "bodies/bodies.h"
#include "geometry/geometry.h"
#include "linalg/linalg.h"
#include "mesh/mesh.h"
#include "particles/particles.h"
#include "scene/scene.h"
#include "state/state.h"

#define UN_STAGE_COUNT_MAX UN_STAGES_MAX

/* What a step did: a row of stats.csv. */
typedef struct un_step {
    int32_t step, frame; /* frame: the one this step belongs to */
    double time, dt;     /* at the end of the step */
    int64_t particles, ballistic, cells, nodes;
    double work; /* the cost of a step is proportional to it: particles, else cells */
    double volume, volume_error;             /* m3; relative to the ledger's expectation */
    double volume_particles;                 /* m3, that the particles carry */
    double energy_kinetic, energy_potential; /* J */
    un_vec3 momentum;                        /* kg m/s */
    double max_speed, max_divergence;        /* m/s, 1/s */
    int32_t pressure_iterations, viscous_iterations;
    double pressure_residual; /* relative */
    double bytes, seconds;
    double stage_seconds[UN_STAGE_COUNT_MAX];
} un_step;

typedef struct un_estimate {
    int32_t cells[3]; /* in 2D the third is 0 */
    double cell_size;
    int64_t cell_count, particle_count, particle_count_max;
    double bytes;
} un_estimate;

/* A rank's part of the work, and what it sent of it in the last step. */
typedef struct un_portion {
    int64_t particles, cells;
    int64_t copies, migrated; /* particles whose copies were sent, and that went to another rank */
    int64_t migrated_bytes;
    int32_t cuts; /* how often the work has been divided anew so far */
} un_portion;

/* Saved particles, and the poses of the solids at that time. */
typedef struct un_saved_particles {
    const un_particles *particles;
    un_status (*place)(void *arg, un_bodies *bodies);
    void *arg;
} un_saved_particles;

/* What is needed to show something. */
typedef enum un_show {
    UN_SHOW_LEVEL = 1, /* the level set */
    UN_SHOW_PRESSURE = 2,
    UN_SHOW_VELOCITY = 4,
    UN_SHOW_PARTICLES = 8,
    UN_SHOW_ALL = 15,
    UN_SHOW_PROBES = 32,  /* only the scene's own probes will be asked for, of what else is said */
    UN_SHOW_SURFACE = 64, /* the output surface */
    UN_SHOW_FRONTS = 128  /* the scene's front probes, and how far the floor is wet along theirs */
} un_show;

/* Reads a checkpoint, or what a sieve keeps of it. */
typedef un_status un_reread(void *arg, un_state *state, const un_sieve *sieve);

/* One published algorithm. state is the method's own and begins with a un_core (core.h). All may be
 * called from one thread only. */
typedef struct un_method {
    un_traits traits;          /* its name, and what it can do */
    const char *const *stages; /* names for the columns seconds_<stage>, NULL-terminated */
    size_t size;               /* of its state */
    /* Makes the parts of a state that is all zeros but for core.ctx; then `fill` brings it to the
     * scene's start, or `load` to a checkpoint. `end` frees the parts, of a state whose beginning
     * failed too. Callers use un_method_create and un_method_destroy. */
    un_status (*begin)(void *state, un_context *ctx, const un_scene *scene);
    un_status (*fill)(void *state);
    un_status (*load)(void *state, const un_state *in);
    void (*end)(void *state);
    /* The longest step that is stable and accurate now, s. */
    double (*step_limit)(void *state);
    un_status (*step)(void *state, double dt, un_step *report);
    /* NULL: it has none. */
    const un_particles *(*particles)(const void *state);
    /* The level set at the particles, m, which re-meshing needs. May be NULL. */
    const float *(*depth)(const void *state);
    /* The output surface: closed, with normals and velocities. On several ranks, called by all:
     * rank 0 gets it, the others an empty mesh. */
    un_status (*surface)(void *state, un_trimesh *mesh);
    /* Instead of `fill`: a state to make the surface of saved particles with. NULL: that needs no
     * state. */
    un_status (*restore)(void *state, const un_saved_particles *saved);
    un_status (*cells)(const void *state, un_cells *cells); /* for mesh.vtu */
    /* NaN where a probe has nothing to say. */
    double (*probe)(const void *state, const un_probe *probe);
    /* What can be told before a run. An adaptive method builds its first state for it. */
    un_status (*estimate)(un_context *ctx, const un_scene *scene, un_estimate *estimate);
    /* The peak memory of steps and output surfaces in the present state, without a budget. NULL
     * where the estimate already says it. */
    double (*bytes)(const void *state);
    /* Everything that the next step depends on. Arrays are not copied and stay valid until the next
     * step. */
    un_status (*save)(const void *state, un_state *out);
    /* On several ranks, called by all: brings to rank 0, until the next step, what its particles,
     * surface, cells and probe show; only rank 0 calls those but surface. All call save, whose
     * arrays are fetched while they are written. what: a sum of un_show. NULL: it
     * runs on one rank only. */
    un_status (*gather)(void *state, unsigned what);
    /* On several ranks, called by all: its particles, until the next step. */
    un_status (*stream)(void *state, un_particle_stream *stream);
    /* On several ranks, called by all: as save, what this rank needs to go back to this state; load
     * takes it on the same ranks. NULL: steps are not repeated. */
    un_status (*keep)(void *state, un_state *out);
    /* On several ranks: reads what this rank needs of a checkpoint, as `keep` has it. NULL: all of
     * it is read. */
    un_status (*sift)(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                      void *arg);
    /* On several ranks: this one's part. NULL: it runs on one rank only. */
    void (*portion)(const void *state, un_portion *out);
} un_method;

/* in: the checkpoint to go on from, which gives the same bits as if the run had never stopped;
 * NULL: the scene's start. */
un_status un_method_create(const un_method *method, un_context *ctx, const un_scene *scene,
                           const un_state *in, void **state);
/* The state to make the surface of saved particles with. */
un_status un_method_restore(const un_method *method, un_context *ctx, const un_scene *scene,
                            const un_saved_particles *saved, void **state);
void un_method_destroy(const un_method *method, void *state);
/* The state before any step. */
void un_method_first(const void *state, un_step *report);
/* Where the solids are, at the end of the last step. */
const un_bodies *un_method_bodies(const void *state);

/* NULL when unknown or not available in this version. */
const un_method *un_method_find(const char *name);
/* The methods of this version in order, from 0; NULL beyond the last. */
const un_method *un_method_at(int32_t index);
void un_step_init(un_step *step);
/* The longest step, s, for finest cells of h and liquid that crosses `rate` cells a second. */
double un_step_limit(const un_scene_def *def, double h, double rate);
/* The same without what surface tension allows. */
double un_step_limit_flow(const un_scene_def *def, double h, double rate);
/* Judges a pressure solve: numbers that are not finite end the step, a missed tolerance is
 * logged. */
un_status un_step_solved(un_context *ctx, const un_solve_report *solve, int32_t step, double time,
                         double tolerance);
/* Books the time since *clock to a stage and restarts the clock. */
void un_stage_end(un_step *step, int32_t stage, double *clock);
/* Particles, energies, momentum, the fastest speed. Fails when velocities are no longer finite. */
un_status un_step_sum(un_context *ctx, un_step *step, const un_particle_sums *sums, int64_t count);

extern const un_method un_method_uniform;
extern const un_method un_method_tet;
extern const un_method un_method_staggered;
extern const un_method un_method_conforming;
extern const un_method un_method_octree;
extern const un_method un_method_warp;
un_status un_uniform_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate);

#endif
