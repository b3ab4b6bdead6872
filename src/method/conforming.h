/* Inside of method `conforming`: its state and the parts of its step. Only
 * src/method/conforming*.c include this. */
#ifndef UN_METHOD_CONFORMING_H
#define UN_METHOD_CONFORMING_H

#include "advect/advect.h"
#include "method/core.h"
#include "sizing/sizing.h"
#include "surface/surface.h"
#include "tension/tension.h"
#include "viscosity/viscosity.h"

typedef struct un_conforming {
    un_core core;
    un_track_walls walls;
    un_track track;               /* the liquid's surface */
    double *grown, *deep, *thick; /* by body, as in un_track_walls; NULL: there are none */
    float *solid;        /* at the track's nodes: distance to the solids; NULL: there are none */
    un_stuffing mesh[2]; /* one of them is that of the last step, */
    int now;             /* and this the other */
    double *u, *u_old;   /* at faces of both */
    double *p, *p_old;   /* at tets */
    double *p_stress;    /* at nodes of the last mesh: the viscous solve's own; NULL: not viscous */
    double *p_total;     /* at tets: both, for outputs; NULL: not viscous */
    un_vec3 *slope;      /* at tets of the last mesh: the pressure's gradient */
    un_vec3 *u_tet;      /* at tets: the faces' velocity */
    double *source;      /* at tets, 1/s: the divergence that emitters want */
    double *flow_rate;   /* by source: m3/s */
    double *pushed;      /* by source: m3 that it brings inside the liquid */
    un_flow flow;
    float *size; /* at nodes of the flow's lattice, m: leaves that the next mesh should have */
    un_pressure *pressure;
    un_viscosity *viscosity; /* NULL: the liquid is not viscous */
    double shift;            /* m: that keeps the volume in the next step */
    double rate;             /* leaves that the liquid crosses in a second */
    uint8_t *gone;           /* at the mesh's boundary: 1 where a wall lets go in this step */
    un_box3 gone_in;         /* around those; empty: there are none */
    size_t capacity[11];
} un_conforming;

static inline const un_stuffing *un_conforming_mesh(const un_conforming *s)
{
    return &s->mesh[s->now];
}

un_status un_conforming_save(const void *state, un_state *out); /* conforming_state.c */
un_status un_conforming_load(void *state, const un_state *in);

/* ---- parts of the step (conforming_step.c) ---- */

un_status un_conforming_project(un_conforming *s, double dt, un_stuffed_projection_report *report,
                                int32_t *viscous_iterations);
/* The flow of the mesh's velocities. */
un_status un_conforming_fit(un_conforming *s, double dt);
un_status un_conforming_track(un_conforming *s, double dt);
/* What emitters bring in a second. */
void un_conforming_find_flows(un_conforming *s);
/* What sources bring and take in that step, for the ledger. */
void un_conforming_book(un_conforming *s, const un_surface_advection *in);
/* The surface that the scene starts with, its emitters filled. */
un_status un_conforming_start(un_conforming *s);
/* Does the scene say what sizes leaves should have? */
static inline bool un_conforming_sized(const un_conforming *s)
{
    return s->core.def->sizing.given;
}
/* The sizes that it wants, on the mesh there is. flow: does that have a flow? */
un_status un_conforming_sizes(un_conforming *s, bool flow);
/* The mesh of the surface; the old one is kept. leaves: those of a checkpoint; NULL: by the sizes.
 */
un_status un_conforming_build(un_conforming *s, const un_octree_request *leaves);
/* The first mesh. */
un_status un_conforming_first_mesh(un_conforming *s);
/* Velocities and divergence in emitters. */
void un_conforming_emit(un_conforming *s, double dt);
un_status un_conforming_carry(un_conforming *s, double dt);
/* Volume against the ledger, and the shift that mends it. */
void un_conforming_weigh(un_conforming *s);

/* ---- what it shows (conforming_outputs.c) ---- */

un_status un_conforming_measure(un_conforming *s, un_step *report);
un_status un_conforming_surface(void *state, un_trimesh *mesh);
un_status un_conforming_cells(const void *state, un_cells *out);
double un_conforming_probe(const void *state, const un_probe *which);
un_status un_conforming_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate);

#endif
