/* Inside of method `tet`: its state and the parts of its step. Only src/method/tet*.c include
 * this. */
#ifndef UN_METHOD_TET_H
#define UN_METHOD_TET_H

#include "advect/advect.h"
#include "method/method.h"
#include "method/sources.h"
#include "pressure/pressure.h"
#include "sizing/sizing.h"
#include "surface/surface.h"
#include "transfer/transfer.h"
#include "viscosity/viscosity.h"

/* Of liquids that are not the same everywhere; all NULL otherwise. */
typedef struct un_tet_mixed {
    float *density, *viscosity; /* at nodes: kg/m3, Pa s */
    float *lightness;           /* at tets: fluid.density over that of the liquid there */
    size_t capacity[3];
} un_tet_mixed;

typedef struct un_tet {
    un_context *ctx;
    const un_scene *scene;
    const un_scene_def *def;
    un_grid grid; /* of finest cells: numbers only, for emission and collisions */
    un_walls *walls;
    un_arena arena; /* emptied after each stage */
    un_arena lists; /* lives from one sorting to the next: groups */

    /* the mesh of this step, and what stands at its nodes and tets */
    un_octree tree;
    un_tets mesh;
    un_tet_walls tet_walls;
    float *volume, *colour, *phi; /* at nodes: of the particles; level set, m */
    float *size;                  /* at nodes: S, m */
    float *source;                /* at nodes: divergence wanted, 1/s */
    double *p[2];                 /* at nodes, Pa: of the projections; of viscous stress, if any */
    un_vec3 *u_node, *d_node;     /* at nodes: velocity, its change in this step */
    un_vec3 *u_tet, *d_tet;       /* at tets */
    un_vec3 *sharp;               /* at nodes: what transfers to and fro would blur */
    float *quiet;                 /* at nodes: 1 at rest, 0 in motion */
    uint8_t *known_node, *known_tet;
    size_t node_capacity[11], tet_capacity[3], viscous_capacity;
    un_pressure *pressure;
    bool viscous; /* some of the liquid is; else the next two are void */
    un_viscosity *viscosity;
    un_viscous_walls viscous_walls;
    un_tet_mixed mixed;
    uint64_t *old_key; /* nodes of the last mesh, and p there: the next guess */
    double *old_p[2];
    int32_t old_count;
    size_t old_capacity[3];

    /* the particles, and what belongs to each until they are sorted again */
    un_particles particles;
    un_tet_bins bins;
    un_groups groups;
    uint8_t *flags_before; /* flags that mesh and level set were made with; see tet_state.c */
    size_t flags_capacity;
    float *radius, *depth, *normal[3], *wall; /* m; level set there, its direction */
    size_t particle_capacity[6];

    un_sources sources;
    double *emitted; /* at nodes: volume that appeared inside the liquid, m3 */
    size_t emitted_capacity;
    bool has_emitted;
    double scale;           /* of all sizes, to stay inside the budget */
    bool scaled;            /* said so */
    double most;            /* particles that the budget allows; 0: any number */
    bool surface_coarsened; /* said so */
    double time;
    int32_t step_count;
    double volume_now, volume_error; /* m3; relative */
    int64_t ballistic;
    double rate_max; /* of cells crossed, 1/s */
    un_resize_report resized;
    un_step last;
} un_tet;

/* ---- parts of the step (tet_step.c) ---- */

un_status un_tet_to_mesh(un_tet *s, double dt);                                   /* line 9 */
un_status un_tet_project(un_tet *s, double dt, un_tet_projection_report *report); /* 11 */
/* The same for the divergence that is already in s->source. */
un_status un_tet_apply_pressure(un_tet *s, double dt, un_tet_projection_report *report);
un_status un_tet_extend(un_tet *s, double dt);  /* 10 */
void un_tet_to_particles(un_tet *s, double dt); /* 12 */
un_status un_tet_correct(un_tet *s, double dt); /* 4 */
void un_tet_advect(un_tet *s, double dt);       /* 13 */
un_status un_tet_resize(un_tet *s);             /* 8 */

/* How many of p there are. */
static inline int un_tet_pressures(const un_tet *s)
{
    return s->viscous ? 2 : 1;
}

/* ---- viscosity (tet_viscous.c) ---- */

/* Density and viscosity at nodes; liquid that sticks to walls has their velocity. */
un_status un_tet_thicken(un_tet *s);
/* Viscosity, and pressure once more; adds its iterations to the report. */
un_status un_tet_viscosity(un_tet *s, double dt, un_tet_projection_report *projection,
                           int32_t *viscous_iterations);
/* Of that the solve at nodes: u is changed in place where reached is set to 1. faces: the solve is
 * for velocities there instead, and u what they make at nodes; NULL: none, and then volume may be
 * kept by a pressure of its own. */
un_status un_tet_solve_stress(un_tet *s, un_vec3 *u, uint8_t *reached,
                              const un_viscous_faces *faces, bool keeps_volume, double dt,
                              int32_t *iterations);
/* The share of velocities finer than nodes resolve, of tets or faces between them, that a step with
 * viscosity leaves: the solve does not see them, and kept whole they grow where pressure feeds
 * them. Thin liquid keeps all. A sheet of 10 Pa s two cells high (half of
 * scenes/huppert_round.lua's) boils without this once it is thinner, dt nu / h^2 being 3; from a
 * rate of 1 on it is as still as with PIC. h is the cell's edge. */
static inline double un_tet_viscous_rest(double nu, double h, double dt)
{
    return 1 / (1 + 3 * nu * dt / (h * h));
}
/* Particle q, which the level set leaves outside, is part of the thick liquid next to it. */
bool un_tet_clings(const un_tet *s, int64_t q, double depth);
/* Moves these a little towards it; all: thin liquid's as well. */
void un_tet_draw_in(un_tet *s, double dt, bool all);
double un_tet_thickness(const un_tet *s, int64_t n); /* kinematic viscosity at a node, m2/s */
bool un_tet_sticks(const un_tet *s, int64_t n);

/* Parts of the above, which method `staggered` shares: s->source; the longest step from the tets'
 * velocities; from nodes that are known, with u_node and d_node, to those around and to tets. */
void un_tet_want_divergence(un_tet *s, double dt);
void un_tet_find_rate(un_tet *s);
un_status un_tet_extend_nodes(un_tet *s, double dt);

/* ---- the mesh around the particles (tet_mesh.c) ---- */

un_status un_tet_keep_pressure(un_tet *s);             /* for the nodes of the next mesh */
int32_t un_tet_leaf_level(const un_tet *s, int64_t q); /* of the leaf that a particle asks for */
un_status un_tet_build_tree(un_tet *s);                /* 7: the octree that particles ask for */
un_status un_tet_build_mesh(un_tet *s);                /* 7: tets on it */
un_status un_tet_group(un_tet *s);                     /* particles as they are: radii and groups */
un_status un_tet_sort(un_tet *s);                      /* particles by tet, their groups */
un_status un_tet_level_set(un_tet *s);                 /* 2, 3 */
un_status un_tet_sizes(un_tet *s, double dt);          /* 6 */
/* Room for fields on the mesh as it is. */
un_status un_tet_need_fields(un_tet *s);

/* ---- drops among giants (tet_drops.c) ---- */

/* Particles too small for the liquid they are in ask for no leaves; the tree is made anew if there
 * are such. */
un_status un_tet_part_drops(un_tet *s);

/* ---- checkpoints (tet_state.c) ---- */

/* Everything but particles and mesh. */
un_status un_tet_begin(un_context *ctx, const un_scene *scene, un_tet **state);
un_status un_tet_save(const void *state, un_state *out);
un_status un_tet_load(un_context *ctx, const un_scene *scene, const un_state *in, void **state);

/* ---- first state (tet_start.c) ---- */

/* The mesh that the scene's liquid wants at the start, by refining where S is smaller than a cell;
 * phi and size are left at its nodes. */
un_status un_tet_first_mesh(un_tet *s);
/* Moves particles until the level set is the shape's, where that is smooth. */
un_status un_tet_fit_surface(un_tet *s);

/* What a run will take (tet_estimate.c). */
un_status un_tet_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate);

/* ---- memory and the budget (tet_budget.c) ---- */

#define UN_TET_FIXED_BYTES 4e6
#define UN_TET_USUAL_BYTES 2500.0 /* per particle in all, before there is a mesh */
/* The peak of steps and output surfaces, per particle, as the mesh is now. */
double un_tet_bytes_each(const un_tet *s);
/* The peak in all, as the mesh is now, without a budget. */
double un_tet_bytes(const void *state);
/* That the output surface may take; 0: any. */
double un_tet_surface_bytes(const un_tet *s);
/* Makes wanted sizes larger when there will be more particles than the budget allows. */
void un_tet_keep_budget(un_tet *s);
/* Volumes between which particles are resized. */
un_resize_def un_tet_resize_range(const un_tet *s);

/* ---- sources (tet_sources.c) ---- */

un_status un_tet_remove(un_tet *s);
un_status un_tet_emit(un_tet *s, double dt);
/* Shares out what was emitted inside the liquid to the nodes of a new mesh; before the level set,
 * which takes the mark from the particles. */
un_status un_tet_place_emitted(un_tet *s);

/* ---- what it shows (tet_outputs.c) ---- */

un_status un_tet_measure(un_tet *s, un_step *report);
un_status un_tet_surface(void *state, un_trimesh *mesh);
un_status un_tet_cells(const void *state, un_cells *out);
double un_tet_probe(const void *state, const un_probe *which);

#endif
