/* Inside of method `uniform`: its state and the parts of its step. Only src/method/uniform*.c
 * include this. */
#ifndef UN_METHOD_UNIFORM_H
#define UN_METHOD_UNIFORM_H

#include "method/core.h"
#include "pressure/pressure.h"
#include "surface/surface.h"
#include "tension/tension.h"

typedef struct un_uniform {
    un_core core;
    un_particles particles;
    un_bins *bins;
    int64_t ballistic;                /* particles that fly */
    float *normalizer, *colour, *phi; /* at cells */
    double *u[3], *u_old[3];          /* at faces; NULL for the third axis in 2D */
    uint8_t *known[3];                /* at faces: 1 projected, more: extrapolated */
    un_pressure *pressure;
    un_inflow inflow; /* emitted inside the liquid in the last step */
    double max_speed; /* of the liquid, along an axis */
} un_uniform;

/* Everything but particles. */
un_status un_uniform_begin(un_context *ctx, const un_scene *scene, un_uniform **state);
un_status un_uniform_save(const void *state, un_state *out); /* uniform_state.c */
un_status un_uniform_load(un_context *ctx, const un_scene *scene, const un_state *in, void **state);

/* ---- parts of the step (uniform_step.c) ---- */

/* Particles sorted into cells. */
un_status un_uniform_sort(un_uniform *s);
/* Their level set, who flies, and how much volume there is. With un_uniform_sort this is everything
 * that the next step and the outputs read. */
un_status un_uniform_level_set(un_uniform *s);
un_status un_uniform_to_grid(un_uniform *s, double dt);
un_status un_uniform_project(un_uniform *s, double dt, un_projection_report *report);
un_status un_uniform_extend(un_uniform *s, double dt);
/* Bodies that the liquid moves go to the end of the step, and the walls with them. */
un_status un_uniform_move_free(un_uniform *s, double dt);
void un_uniform_to_particles(un_uniform *s, double dt);
un_status un_uniform_even_sheets(un_uniform *s, double dt);

/* ---- sources (uniform_sources.c) ---- */

un_status un_uniform_remove(un_uniform *s); /* drains, open sides */
un_status un_uniform_emit(un_uniform *s, double dt);

/* ---- what it shows (uniform_outputs.c) ---- */

/* Sums for the report; fails when velocities are no longer finite. */
un_status un_uniform_measure(un_uniform *s, un_step *report);
un_status un_uniform_surface(void *state, un_trimesh *mesh);
un_status un_uniform_cells(const void *state, un_cells *out);
double un_uniform_probe(const void *state, const un_probe *which);

#endif
