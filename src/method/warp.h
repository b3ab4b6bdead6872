/* Inside of method `warp`: its state and the parts of its step. Only src/method/warp*.c include
 * this. */
#ifndef UN_METHOD_WARP_H
#define UN_METHOD_WARP_H

#include "advect/advect.h"
#include "method/core.h"
#include "pressure/pressure.h"
#include "sizing/sizing.h"
#include "surface/surface.h"

typedef struct un_warping {
    un_core core;
    un_warp warp;
    un_monitor monitor;
    un_walls *walls;        /* on the warp */
    un_particles particles; /* warped */
    un_bins *bins;          /* of cells in reference space */
    float *share;           /* at particles: volume in reference space */
    size_t share_capacity;
    int64_t ballistic;                /* particles that fly */
    float *normalizer, *colour, *phi; /* at cells, in reference space */
    float *source;                    /* at cells: divergence wanted, 1/s */
    double *node_phi, *p;             /* at places: level set in space, m; pressure, Pa */
    size_t phi_capacity, p_capacity;
    un_vec3 *u;     /* at cells */
    uint8_t *known; /* at cells: 1 projected, more: extended */
    un_pressure *pressure;
    un_band band;       /* where the liquid is deep */
    un_inflow inflow;   /* emitted inside the liquid in the last step */
    double liquid;      /* m3, where the level set is negative */
    un_impulse impulse; /* of the projection */
    double rate;        /* cells that liquid crosses in a second, at most */
    bool carried;       /* the grid carries the surface, and there are no particles of their own */
    un_vec3 *was;       /* then, at cells: the centres before the grid moved */
    double *flow;       /* by source: what an emitter brings, m3/s */
    double last_dt;     /* of the step that ends */
} un_warping;

/* To a checkpoint and back, and from particles alone (warp_state.c). */
un_status un_warping_save(const void *state, un_state *out);
un_status un_warping_restore(void *state, const un_saved_particles *saved);
un_status un_warping_load(void *state, const un_state *in);

/* ---- parts of the step (warp_step.c) ---- */

/* Finds the walls on the grid, and the pressure at their sides. */
un_status un_warping_find_walls(un_warping *s);
/* Moves the grid. first: all the way, from the liquid's shape, and finds the walls there. settle:
 * all the way, from the level set. move: towards that, as far as one step goes. */
un_status un_warping_first_grid(un_warping *s);
un_status un_warping_settle_grid(un_warping *s);
un_status un_warping_move_grid(un_warping *s, double dt);
/* Finds the particles' cells, sorts them, and recomputes what belongs to each. bin: where their
 * cells are known. */
un_status un_warping_sort(un_warping *s);
un_status un_warping_bin(un_warping *s);
un_status un_warping_carry(un_warping *s, double dt); /* the deep liquid */
un_status un_warping_resize(un_warping *s);
un_status un_warping_level_set(un_warping *s);
un_status un_warping_correct(un_warping *s);
un_status un_warping_to_grid(un_warping *s, double dt);
un_status un_warping_project(un_warping *s, double dt, un_projection_report *report);
un_status un_warping_extend(un_warping *s, double dt);
un_status un_warping_to_particles(un_warping *s, double kick);
un_status un_warping_advect(un_warping *s, double dt);
un_status un_warping_even_sheets(un_warping *s, double dt);
un_status un_warping_remove(un_warping *s); /* drains, open sides */
un_status un_warping_emit(un_warping *s, double dt);

/* ---- the grid carries the surface (warp_track.c) ---- */

/* Asks the scene whether it does. */
un_status un_warping_track_init(un_warping *s);
/* The liquid at the start, on the grid. */
un_status un_warping_track_shape(un_warping *s);
/* Velocities are at the cells already. */
void un_warping_track_to_grid(un_warping *s);
/* Velocities are known in liquid that is too small for the projection and farther than so many
 * cells from what it has reached: it falls. */
#define UN_WARPING_NEAR 2
void un_warping_track_drops(un_warping *s);
/* Carries the surface and the velocities to the grid that has moved. */
un_status un_warping_track_carry(un_warping *s, double dt);
/* Sources, distances, volume. weigh: where phi is what it shall be. */
un_status un_warping_track(un_warping *s);
un_status un_warping_track_weigh(un_warping *s);

/* ---- what it shows (warp_outputs.c) ---- */

un_status un_warping_measure(un_warping *s, un_step *report);
un_status un_warping_surface(void *state, un_trimesh *mesh);
un_status un_warping_cells(const void *state, un_cells *out);
double un_warping_probe(const void *state, const un_probe *which);
un_status un_warping_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate);

#endif
