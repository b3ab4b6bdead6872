/* What every method's state begins with. Only src/method/ includes this. */
#ifndef UN_METHOD_CORE_H
#define UN_METHOD_CORE_H

#include "advect/advect.h"
#include "method/method.h"
#include "pressure/pressure.h"
#include "sources/sources.h"
#include "tension/tension.h"
#include "transfer/transfer.h"
#include "viscosity/viscosity.h"

typedef struct un_core {
    un_context *ctx;
    const un_scene *scene;
    const un_scene_def *def;
    double pace;  /* s, of the scene: un_scene_pace */
    un_grid grid; /* of finest cells; adaptive methods emit and collide by it, no more */
    un_bodies *bodies;
    un_walls *walls;    /* the bodies and closed sides, as the grid sees them */
    un_arena arena;     /* emptied after each stage */
    un_sources sources; /* and the ledger */
    double time, dt;    /* at the end of the last step, and how long that was */
    int32_t step_count;
    un_step last;
} un_core;

/* sampled: walls are sampled on the grid. The core must not be moved afterwards. */
un_status un_core_init(un_core *core, un_context *ctx, const un_scene *scene, bool sampled);
void un_core_free(un_core *core);
/* Places the bodies for the step. Those that the liquid moves stay where they are. */
un_status un_core_move_bodies(un_core *core, double dt);
/* The bodies that the liquid moves, for projections; NULL: none. */
static inline un_bodies *un_core_free_bodies(const un_core *core)
{
    return core->bodies->free_count > 0 ? core->bodies : NULL;
}
/* After the projection: contacts stop them. Then, where velocities have been extended into solids,
 * they move to the end of the step. */
un_status un_core_touch_bodies(un_core *core, double dt);
void un_core_advance_bodies(un_core *core, double dt);
/* Particles take no more and no less from the mesh than its impulse (un_particles_keep_momentum);
 * only where there are bodies that the liquid moves. was: from the arena; NULL: there are none. */
un_status un_core_note(un_core *core, const un_particles *particles, un_vec3 **was);
void un_core_settle(un_core *core, un_particles *particles, const un_vec3 *was,
                    const un_impulse *mesh, double kick);
/* What particles lose to these bodies when they run into them pushes the bodies. hits: from the
 * arena; NULL: there are none. */
un_status un_core_need_hits(un_core *core, const un_particles *particles, un_hit **hits);
un_status un_core_push_bodies(un_core *core, un_particles *particles, const un_hit *hits);
/* The clock goes on. */
static inline void un_core_tick(un_core *core, double dt)
{
    core->time += dt;
    core->dt = dt;
    core->step_count++;
}
/* The time between the middles of the last step and of this one, in which forces act: velocities
 * are those of a leapfrog (un_particles.lead). The first step begins with half of its own. */
static inline double un_core_kick(const un_core *core, double dt)
{
    return 0.5 * (core->dt + dt);
}
/* How fast pressure must pull liquid onto a wall, m/s, for it to let go; 0: it never does. */
double un_core_let_go(const un_core *core, double dt);
/* The divergence that the ledger wants in a step of dt, 1/s; once a step. */
double un_core_expansion(un_core *core, double dt);
/* Liquid in cells of the edge h is quiet well below this speed, m/s. */
double un_core_quiet_speed(const un_core *core, double h);
/* How particles take over the mesh's velocity, cells having the edge h, after forces have acted for
 * dt. */
un_flip un_core_flip(const un_core *core, double h, double dt);
/* What every method with particles reports: time, volumes, sums over the particles. */
un_status un_core_measure(un_core *core, un_step *report, const un_particles *particles,
                          int64_t ballistic);
/* The same, where the sums have been made. */
un_status un_core_measure_sums(un_core *core, un_step *report, const un_particle_sums *sums,
                               int64_t count, int64_t ballistic);
/* Where several ranks have particles (markers_ranks.c): un_particles_remove and un_core_measure. */
un_status un_core_remove_ranks(un_core *core, un_markers *markers);
/* Emission there: all ranks emit the same particles, and each keeps some. */
typedef struct un_emit_ranks {
    /* The level set at places in this rank's part; phi is 0 at others. All ranks call it; fails on
     * all or on none. */
    un_status (*levels)(void *arg, const un_vec3 *from, double *phi, int64_t count);
    /* What becomes of particle q, which comes from where the level set is phi; false: nothing. */
    bool (*settle)(void *arg, int32_t q, double phi, bool first_filling);
    void *arg;
} un_emit_ranks;
un_status un_core_emit_ranks(un_core *core, un_markers *markers, double dt,
                             const un_emit_ranks *how);
un_status un_core_measure_ranks(un_core *core, const un_markers *markers, un_step *report);
/* Judges a viscous solve as un_step_solved does a pressure solve. */
un_status un_core_viscous_solved(const un_core *core, const un_block_report *solve);
/* The end of a step: what came of the projection, the time that it all took. */
void un_core_report(un_core *core, un_step *report, const un_solve_report *solve,
                    double max_divergence, double start);

/* ---- probes that methods share ---- */

/* Those of the particles: wet, flux. */
double un_core_probe(const un_core *core, const un_probe *which, const un_particles *particles);
/* Several ranks find those of the scene together: the value of its probe i in probed[i], and with
 * `fronts`, how far the floor is wet along front probe i, in probed[probe_count + i]. */
un_status un_core_probe_ranks(const un_core *core, const un_markers *markers, bool fronts,
                              double *probed);
/* What they found for this one; NULL: nothing. */
const double *un_core_probed(const un_core *core, const un_probe *which, const double *probed);
/* The force of the method's pressure on a solid. */
double un_core_force(const un_core *core, const un_probe *which, un_pressure_sample *pressure,
                     const void *state);
/* The same over ranks. */
un_status un_core_force_ranks(const un_core *core, const un_probe *which,
                              const un_force_ranks *with, const void *state, double *value);
/* Is x in the domain, and in no solid? */
static inline bool un_core_is_open(const un_core *core, un_vec3 x)
{
    return un_grid_encloses(&core->grid, x) && un_walls_distance_exact(core->walls, x) > 0;
}
/* A component, or for axis -1 the length. */
static inline double un_probe_component(un_vec3 u, int32_t axis)
{
    return axis == 0 ? u.x : axis == 1 ? u.y : axis == 2 ? u.z : un_length(u);
}

/* ---- checkpoints (saving.c) ---- */

un_status un_core_save(const un_core *core, un_state *out);
un_status un_core_load(un_core *core, const un_state *in);
/* flags: instead of the particles' own; NULL: those. */
un_status un_save_particles(un_state *out, const un_particles *particles, const uint8_t *flags);
/* Call after un_core_load, with `particles` empty except for the flag `sized`. Fails if a value is
 * not finite or a particle is outside the domain. */
un_status un_load_particles(const un_core *core, const un_state *in, un_particles *particles);
/* What was emitted inside the liquid, of a grid with so many cells. */
un_status un_save_inflow(un_state *out, const un_inflow *inflow);
un_status un_load_inflow(un_context *ctx, const un_state *in, un_inflow *inflow,
                         int64_t cell_count);

/* un_method.sift where particles lie along the curve: a rank reads a range of them, and of the
 * sections `shared`, which ends with NULL; ranges are even and follow those of the ranks before. */
un_status un_sift_evenly(un_context *ctx, un_state *in, un_reread *read, void *arg,
                         const char *const *shared);

/* A hash that tells whether the data rebuilt from a checkpoint are the same as before; of an array
 * in pieces, or at once. */
typedef struct un_hashing {
    uint64_t hash;
    uint8_t left[8];
    int32_t left_count;
} un_hashing;
void un_hashing_add(un_hashing *hashing, const void *bytes, size_t count);
uint64_t un_hashing_end(un_hashing *hashing);
/* Of an array that ranks hold one after the other, this rank's part of it; ends the array. shared:
 * ranks do hold it, and all call this. */
void un_hashing_part(un_context *ctx, bool shared, un_hashing *hashing, const void *bytes,
                     size_t count);
uint64_t un_saving_hash(uint64_t hash, const void *bytes, size_t count);
un_status un_save_hash(un_state *out, uint64_t hash);
/* Another machine or compiler may round differently: that is logged and is no error. */
un_status un_load_hash(un_context *ctx, const un_state *in, uint64_t hash);

#endif
