/* The parts that methods with particles on graded tets are made of, and the calls on them that
 * these methods share. Only src/method/ includes this.
 *
 * The mesh is built anew around the particles in every step; see docs/architecture.md. */
#ifndef UN_METHOD_ADAPTIVE_H
#define UN_METHOD_ADAPTIVE_H

#include "advect/advect.h"
#include "method/core.h"
#include "pressure/pressure.h"
#include "sizing/sizing.h"
#include "surface/surface.h"
#include "tension/tension.h"
#include "transfer/transfer.h"
#include "viscosity/viscosity.h"

#define UN_ITERATION_LIMIT 2000
/* Wanted sizes are found every so many steps. Particles split and merge in every step: three
 * splittings make a level, and a splash does not wait. */
#define UN_SIZING_STEPS 2

/* The mesh of this step. */
typedef struct un_tet_mesh {
    un_octree tree;
    un_tets tets;
    un_tet_walls walls;
    un_node_memory memory; /* pressures at the nodes of the last mesh: the next guess */
} un_tet_mesh;

typedef struct un_node_fields {
    float *volume, *colour, *phi; /* of the particles, m3; its smoothed fraction; level set, m */
    float *size;                  /* S, m */
    float *source;                /* divergence wanted, 1/s */
    double *p[2];                 /* Pa: of the projections; of viscous stress, if any */
    un_vec3 *u, *d;               /* velocity; its change in this step */
    uint8_t *known;               /* 1: u is right here; more: extrapolated; 0: void */
    size_t capacity[10];
} un_node_fields;

typedef struct un_tet_fields {
    un_vec3 *u, *d; /* velocity; its change in this step */
    uint8_t *known;
    uint8_t *changed; /* 1 where d is what forces did to the liquid */
    size_t capacity[4];
} un_tet_fields;

/* Viscosity. Only the mixture is valid if no liquid is viscous. */
typedef struct un_thick {
    bool any;
    un_viscosity *solver;
    un_viscous_walls walls;
    un_mixture mix;
} un_thick;

/* Several ranks share the state (adaptive_ranks.c, adaptive_whole.c). */
typedef struct un_adaptive_ranks {
    bool wanted; /* it is to be shared once there are particles */
    bool any;    /* it is; what follows is used */
    un_tree_share tree;
    un_tet_share tets;
    un_particle_share particles;
    double *probed; /* values of the scene's probes in this step; then how far the floor is wet
                       along those of fronts */
    bool has_probed;
    un_cells cells; /* rank 0: those of all, until the next step or until they are taken */
    void *fetched;
    size_t fetched_room;
} un_adaptive_ranks;

typedef struct un_adaptive {
    un_core core;
    un_tet_mesh mesh;
    un_node_fields node;
    un_tet_fields tet;
    un_markers markers;
    un_sheets sheets; /* from evening to resizing */
    un_emitted emitted;
    un_thick thick;
    un_budget budget;
    double rate_max;        /* of cells crossed, 1/s */
    bool surface_coarsened; /* warned already */
    un_adaptive_ranks ranks;
} un_adaptive;

/* ---- life (adaptive.c) ---- */

/* Everything but particles and mesh. */
un_status un_adaptive_begin(un_adaptive *a, un_context *ctx, const un_scene *scene);
/* Seeds the scene's liquid: particles, mesh and level set as before the first step. */
un_status un_adaptive_fill(un_adaptive *a);
void un_adaptive_free(un_adaptive *a);
/* Gives back everything that the next building of the mesh makes anew. */
void un_adaptive_release(un_adaptive *a);
/* Room for fields on the mesh as it is. */
un_status un_adaptive_need_fields(un_adaptive *a);
/* The particles at the start, by refining where S is smaller than a cell (adaptive_start.c). */
un_status un_adaptive_first_mesh(un_adaptive *a);
/* Moves particles until the level set is the shape's, where that is smooth. */
un_status un_adaptive_fit_surface(un_adaptive *a);

/* ---- parts of a step (adaptive.c); numbers are lines of Algorithm 1 in [Ando13] ---- */

un_status un_adaptive_move_walls(un_adaptive *a, double dt);
/* Bodies that the liquid moves go to the end of the step, and the walls with them. */
un_status un_adaptive_move_free(un_adaptive *a, double dt);
/* Density and viscosity at nodes; liquid that sticks to walls has their velocity. */
un_status un_adaptive_thicken(un_adaptive *a);
void un_adaptive_want_divergence(un_adaptive *a, double dt);
/* The surface's pressure at nodes, from the arena; NULL without tension. */
un_status un_adaptive_find_tension(un_adaptive *a, double dt, double **pressure);
/* What liquid crosses in a second, for the next step's length. */
void un_adaptive_find_rate(un_adaptive *a);
/* 10: extends node.u and node.d beyond the liquid, stops them at walls, carries them to tets. */
un_status un_adaptive_extend(un_adaptive *a, double dt);
/* Evens sheets and threads thinner than a cell. */
un_status un_adaptive_even_sheets(un_adaptive *a, double dt);
un_status un_adaptive_correct(un_adaptive *a, double dt);             /* 4 */
un_status un_adaptive_advect(un_adaptive *a, bool pushes, double dt); /* 13 */
un_status un_adaptive_resize(un_adaptive *a);                         /* 8 */
un_status un_adaptive_remove(un_adaptive *a);
un_status un_adaptive_emit(un_adaptive *a, double dt);
un_status un_adaptive_keep_pressure(un_adaptive *a); /* for the nodes of the next mesh */
un_status un_adaptive_build_tree(un_adaptive *a);    /* 7: the octree that particles ask for */
un_status un_adaptive_part_drops(un_adaptive *a);    /* 7: once more without drops */
un_status un_adaptive_build_mesh(un_adaptive *a);    /* 7: tets on it */
un_status un_adaptive_place_emitted(un_adaptive *a);
un_status un_adaptive_sort(un_adaptive *a);
un_status un_adaptive_gather(un_adaptive *a);           /* 9: volume and velocity at nodes */
un_status un_adaptive_level_set(un_adaptive *a);        /* 2, 3 */
un_status un_adaptive_sizes(un_adaptive *a, double dt); /* 6 */
un_status un_adaptive_measure(un_adaptive *a, un_step *report);
/* What the viscous solves of both methods have in common. */
un_viscous_step un_adaptive_viscous_step(const un_adaptive *a, bool keeps_volume, double dt);

/* How many of node.p there are. */
static inline int un_adaptive_pressures(const un_adaptive *a)
{
    return a->thick.any ? 2 : 1;
}
static inline un_cling un_adaptive_cling(const un_adaptive *a)
{
    return (un_cling){.viscous = a->thick.any,
                      .thickness = a->core.def->fluid.viscosity / a->core.def->fluid.density,
                      .tension = a->core.def->fluid.surface_tension / a->core.def->fluid.density,
                      .gravity = un_length(a->core.def->gravity),
                      .h = a->mesh.tree.h};
}

/* True if a particle emitted where the level set is phi stays. */
bool un_adaptive_settle(un_adaptive *a, int32_t q, double phi, bool first_filling);

/* ---- several ranks (adaptive_ranks.c, adaptive_whole.c) ---- */

/* After un_adaptive_begin: on several ranks the state is to be shared. */
void un_adaptive_want_ranks(un_adaptive *a);
void un_adaptive_ranks_free(un_adaptive *a);
/* From here on this is one of several, if it was wanted; before un_adaptive_fill. */
void un_adaptive_begin_share(un_adaptive *a);
/* Over ranks, particles here are all this rank's, and follow those of the ranks before. */
un_status un_adaptive_number(un_adaptive *a);
/* The same after copies of others have gone. */
un_status un_adaptive_unshare(un_adaptive *a);
/* These do nothing on one rank. */
un_status un_adaptive_share_mesh(un_adaptive *a);
un_status un_adaptive_refresh_places(un_adaptive *a);
/* Over ranks, all know of a failure before the next message. */
static inline un_status un_adaptive_agree(const un_adaptive *a, un_status status)
{
    return a->ranks.any ? un_ranks_agree(a->core.ctx, status) : status;
}
un_status un_adaptive_refresh_flags(un_adaptive *a);
/* Instead of the calls without `ranks`. */
un_status un_adaptive_emit_ranks(un_adaptive *a, double dt);
un_status un_adaptive_place_emitted_ranks(un_adaptive *a);
un_status un_adaptive_settle_ranks(un_adaptive *a, const un_vec3 *was, const un_impulse *impulse,
                                   double kick);
un_status un_adaptive_push_bodies_ranks(un_adaptive *a, const un_hit *hits);
/* Makes what has been put into sections from `first` on, this rank's part, that of all ranks. Does
 * nothing on one rank. */
void un_adaptive_fetch_particles(const un_adaptive *a, un_state *out, int32_t first);
void un_adaptive_fetch_nodes(const un_adaptive *a, un_state *out, int32_t first);
uint64_t un_adaptive_hash(const un_adaptive *a);
/* The value of a probe, from what this rank has; and those that ranks find together. */
double un_adaptive_probe_here(const un_adaptive *a, const un_probe *which);
un_status un_adaptive_probe_ranks(un_adaptive *a, unsigned what);
un_status un_adaptive_force_ranks(const un_adaptive *a, const un_probe *which, double *value);
/* Entries of a method's table. */
un_status un_adaptive_gather_ranks(void *state, unsigned what);
un_status un_adaptive_stream(void *state, un_particle_stream *stream);
void un_adaptive_portion(const void *state, un_portion *out);
/* What rank 0 shows is no longer true; counters begin anew. */
void un_adaptive_begin_step(un_adaptive *a);
void un_adaptive_show_nothing(un_adaptive *a);
/* Those of the mesh; over ranks, called by all, to rank 0. */
un_status un_adaptive_find_cells(const un_adaptive *a, un_cells *out);

/* ---- checkpoints (adaptive_state.c) ---- */

un_status un_adaptive_save(const un_adaptive *a, un_state *out);
/* Into one that has begun. */
un_status un_adaptive_load(un_adaptive *a, const un_state *in);
/* Entries of a method's table. */
un_status un_adaptive_keep(void *state, un_state *out);
un_status un_adaptive_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                           void *arg);

/* ---- memory and the budget (adaptive_budget.c) ---- */

#define UN_ADAPTIVE_FIXED_BYTES 4e6
/* That the output surface may take; 0: any. */
double un_adaptive_surface_bytes(const un_adaptive *a);
/* Volumes between which particles are resized. */
un_resize_def un_adaptive_resize_range(const un_adaptive *a);
void un_adaptive_keep_budget(un_adaptive *a);

/* ---- entries of a method's table, for states that begin with un_adaptive ---- */

double un_adaptive_step_limit(void *state);
const un_particles *un_adaptive_particles(const void *state);
const float *un_adaptive_depth(const void *state);
un_status un_adaptive_surface(void *state, un_trimesh *mesh);
un_status un_adaptive_cells(const void *state, un_cells *out);
double un_adaptive_probe(const void *state, const un_probe *which);
/* The peak in all, as the mesh is now, without a budget. */
double un_adaptive_bytes(const void *state);
un_status un_adaptive_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate);

#endif
