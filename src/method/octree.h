/* Inside of method `octree`: its state and the parts of its step. Only src/method/octree*.c
 * include this. */
#ifndef UN_METHOD_OCTREE_H
#define UN_METHOD_OCTREE_H

#include "advect/advect.h"
#include "method/core.h"
#include "pressure/pressure.h"
#include "sizing/sizing.h"
#include "surface/surface.h"
#include "transfer/transfer.h"
#include "viscosity/viscosity.h"

#define UN_OCTREE_FIXED_BYTES 4e6
#define UN_OCTREE_ITERATIONS 2000

/* At leaves and at faces; room for the mesh as it is. */
typedef struct un_leaf_fields {
    float *phi, *colour; /* level set, m; the particles' smoothed volume fraction */
    float *size;         /* S, m */
    double *p;           /* Pa */
    un_vec3 *centre;     /* velocity, for sizing */
    double *u, *before;  /* at faces: velocity; what it was before forces acted */
    uint8_t *known;      /* at faces: 1 right, more: extrapolated, 0 void */
    size_t capacity[8];
} un_leaf_fields;

/* Viscosity (octree_viscous.c): tets on the leaves, while it is solved for, and what is kept from
 * step to step: the pressure of viscous stress at their nodes. */
typedef struct un_thick_leaves {
    bool any;
    un_viscosity *solver;
    un_octree part; /* over ranks: the tree that they are built on */
    un_tets tets;
    un_tet_walls tet_walls;
    un_viscous_walls walls;
    un_node_memory memory;
    float *phi; /* at nodes, as are the next three */
    un_vec3 *u;
    double *p; /* Pa */
    uint8_t *known;
    double *shown;      /* at leaves: the whole pressure, Pa */
    float (*centre)[4]; /* at faces: of the particles around them; as in un_leaf_gather */
    double slip[6];     /* of the domain's sides; infinite where they are open */
    size_t capacity[6];
} un_thick_leaves;

/* Several ranks share the state (octree_ranks.c, octree_whole.c). */
typedef struct un_octree_ranks {
    bool wanted; /* it is to be shared once there are particles */
    bool any;    /* it is; what follows is used */
    un_tree_share tree;
    un_leaf_share leaves;
    un_tet_share tets; /* where liquid is viscous, and the next: */
    un_range kept;     /* pressures of viscous stress, this rank's among all */
    un_particle_share particles;
    un_markers *whole;    /* rank 0: all particles, with radii and depths, until the next step */
    un_leaves all_leaves; /* rank 0: likewise, with walls; what is at them is in its place */
    un_leaf_walls all_walls;
    bool shows_leaves;
    double *probed; /* until the next step: see un_core_probe_ranks */
    bool has_probed;
    void *fetched;
    size_t fetched_room;
} un_octree_ranks;

typedef struct un_octree_flip {
    un_core core;
    un_octree tree;
    un_leaves leaves;
    un_leaf_walls walls;
    un_leaf_memory memory; /* pressures of the last mesh */
    un_leaf_fields at;
    un_leaves_flow now, before; /* the face velocities between faces */
    un_markers markers;
    float *start[3]; /* by particle: `now` where it is, until particles are spread or move */
    size_t start_capacity[3];
    bool start_known;
    un_sheets sheets;
    un_impulse impulse; /* of this step, if the liquid moves bodies */
    un_emitted emitted; /* by leaf */
    un_budget budget;
    un_pressure *pressure;
    un_thick_leaves thick;
    double rate_max;        /* of cells crossed, 1/s */
    double tension_bytes;   /* that surface tension takes in a step; 0 without */
    bool surface_coarsened; /* warned already */
    un_octree_ranks ranks;
} un_octree_flip;

/* Over ranks, all know of a failure before the next message. */
static inline un_status un_octree_agree(const un_octree_flip *s, un_status status)
{
    return s->ranks.any ? un_ranks_agree(s->core.ctx, status) : status;
}

/* ---- parts of the step (octree_step.c) ---- */

un_status un_octree_move_walls(un_octree_flip *s, double dt);
un_status un_octree_accelerate(un_octree_flip *s, double dt);
un_status un_octree_project(un_octree_flip *s, double dt, un_leaf_projection_report *report);
un_status un_octree_keep_pressure(un_octree_flip *s); /* for the next guess */
/* earlier: the pressure found before in this step; NULL: none. since: velocities that the impulse
 * is reckoned from. */
un_status un_octree_apply_pressure(un_octree_flip *s, double dt, const double *earlier,
                                   const double *since, un_leaf_projection_report *report);
/* Bodies that the liquid moves go to the end of the step. */
un_status un_octree_move_free(un_octree_flip *s, double dt);
un_status un_octree_extend(un_octree_flip *s, double dt);
un_status un_octree_to_particles(un_octree_flip *s, double dt);
un_status un_octree_even_sheets(un_octree_flip *s, double dt);
un_status un_octree_correct(un_octree_flip *s, double dt);
un_status un_octree_advect(un_octree_flip *s, double dt);
un_status un_octree_resize(un_octree_flip *s);
un_status un_octree_remove(un_octree_flip *s);
un_status un_octree_emit(un_octree_flip *s, double dt);
/* As in method `uniform`: what appears inside the liquid pushes it apart in the next projection,
 * unless it belongs to the first filling. phi: where particle q comes from. False: it does not
 * appear. */
bool un_octree_settle_emitted(un_octree_flip *s, int32_t q, double phi, bool first_filling);
un_status un_octree_build_tree(un_octree_flip *s);
un_status un_octree_part_drops(un_octree_flip *s);
un_status un_octree_build_leaves(un_octree_flip *s); /* with fields, walls, the last pressure */
un_status un_octree_sort(un_octree_flip *s);
un_status un_octree_gather(un_octree_flip *s); /* velocities at faces, volume at leaves */
un_status un_octree_level_set(un_octree_flip *s);
un_status un_octree_sizes(un_octree_flip *s, double dt);
un_status un_octree_measure(un_octree_flip *s, un_step *report);

/* ---- viscosity (octree_viscous.c) ---- */

void un_octree_thick_init(un_octree_flip *s);
/* All but the solver and what is kept. */
void un_octree_thick_free(un_octree_flip *s);
un_status un_octree_need_centres(un_octree_flip *s);
/* Velocities at faces rather than at the particles around them; nothing unless liquid is thick. */
un_status un_octree_thicken(un_octree_flip *s);
/* The viscous solve, and the pressure once more. */
un_status un_octree_apply_viscosity(un_octree_flip *s, double dt,
                                    un_leaf_projection_report *projection, int32_t *iterations);
/* Once there is a new mesh: over ranks, what was kept goes to those who have its places now. Then
 * the whole pressure, of the projections and of viscous stress. */
un_status un_octree_show_pressure(un_octree_flip *s);
static inline const double *un_octree_pressure(const un_octree_flip *s)
{
    return s->thick.any ? s->thick.shown : s->at.p;
}
/* Faces in solids that liquid sticks to have their velocity. */
void un_octree_stick(un_octree_flip *s);
/* Which particles outside the level set stay part of thick liquid. */
un_cling un_octree_cling(const un_octree_flip *s);

/* ---- life (octree_start.c) ---- */

/* Everything but particles and mesh; then the scene's liquid. */
un_status un_octree_begin(void *state, un_context *ctx, const un_scene *scene);
un_status un_octree_fill(void *state);
void un_octree_end(void *state);

/* ---- several ranks (octree_ranks.c) ---- */

void un_octree_ranks_free(un_octree_flip *s);
/* From here on this is one of several, if it is to be. */
void un_octree_begin_share(un_octree_flip *s);
/* These do nothing on one rank. */
un_status un_octree_share_leaves(un_octree_flip *s);
/* Particles are known by their numbers until they are sorted again. */
un_status un_octree_number(un_octree_flip *s);
/* The same for particles that have just been seeded: those of ranks follow one another. */
un_status un_octree_number_new(un_octree_flip *s);
/* un_core_settle and un_core_push_bodies, over ranks too. */
un_status un_octree_settle(un_octree_flip *s, const un_vec3 *was, double kick);
un_status un_octree_push_bodies(un_octree_flip *s, const un_hit *hits);
un_status un_octree_emit_ranks(un_octree_flip *s, double dt);
/* Before copies of others' particles come: gives back what is not in use. Not more often: pages
 * that come back cost a twentieth of a step. */
void un_octree_make_room(un_octree_flip *s);
/* Where a rank knows some of the leaves, what is made anew in each step gives back its memory once
 * it has been used. That costs some hundredths of a step. Of the solved system: */
void un_octree_forget_system(un_octree_flip *s);
/* Particles have moved: what is between faces is not needed until the next step's. */
void un_octree_forget_flow(un_octree_flip *s);
/* What rank 0 shows is no longer true; counters begin anew. */
void un_octree_begin_step(un_octree_flip *s);
void un_octree_portion(const void *state, un_portion *out);
/* Particles of all ranks. */
static inline int64_t un_octree_particle_count(const un_octree_flip *s)
{
    return s->ranks.any ? s->ranks.particles.own.total : s->markers.particles.count;
}

/* ---- what several ranks show (octree_whole.c) ---- */

un_status un_octree_save_particles(const un_octree_flip *s, un_state *out);
/* Sections from `first` on are what is at leaves. */
void un_octree_fetch_leaves(const un_octree_flip *s, un_state *out, int32_t first);
/* The same of what is kept at nodes. */
void un_octree_fetch_kept(const un_octree_flip *s, un_state *out, int32_t first);
uint64_t un_octree_hash(const un_octree_flip *s);
un_status un_octree_gather_ranks(void *state, unsigned what);
un_status un_octree_stream(void *state, un_particle_stream *stream);
void un_octree_show_nothing(un_octree_flip *s);
/* What outputs are made from. */
static inline const un_markers *un_octree_shown(const un_octree_flip *s)
{
    return s->ranks.whole ? s->ranks.whole : &s->markers;
}
static inline const un_leaves *un_octree_shown_leaves(const un_octree_flip *s)
{
    return s->ranks.shows_leaves ? &s->ranks.all_leaves : &s->leaves;
}
static inline const un_leaf_walls *un_octree_shown_walls(const un_octree_flip *s)
{
    return s->ranks.shows_leaves ? &s->ranks.all_walls : &s->walls;
}

/* ---- checkpoints (octree_state.c) ---- */

un_status un_octree_save(const void *state, un_state *out);
un_status un_octree_keep(void *state, un_state *out);
un_status un_octree_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                         void *arg);
un_status un_octree_load(void *state, const un_state *in);

/* ---- memory, the budget and what it shows (octree_outputs.c) ---- */

un_resize_def un_octree_resize_range(const un_octree_flip *s);
void un_octree_keep_budget(un_octree_flip *s);
double un_octree_bytes(const void *state);
un_status un_octree_surface(void *state, un_trimesh *mesh);
un_status un_octree_cells(const void *state, un_cells *out);
double un_octree_probe(const void *state, const un_probe *which);
un_status un_octree_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate);

#endif
