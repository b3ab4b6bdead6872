/* A viscous step on the faces of an octree's leaves. Only leaves.c, leaves_beyond.c and
 * leaves_ranks.c include this. */
#ifndef UN_VISCOSITY_LEAVES_H
#define UN_VISCOSITY_LEAVES_H

#include "viscosity/fit.h"

typedef struct un_fit_gradient {
    un_vec3 of[3]; /* by component */
} un_fit_gradient;

typedef struct un_stress_leaves {
    const un_viscosity *v;
    const un_viscous_leaves *step;
    un_viscous_fit fit;
    float *mass;      /* of the liquid in leaves, kg */
    float *moved;     /* the same, of leaves that are liquid */
    uint8_t *axis;    /* at faces */
    int32_t *cursor;  /* by node */
    un_vec3 *u;       /* at nodes */
    uint8_t *reached; /* at nodes: 1 solved for */
    uint8_t *told;    /* at nodes: 1 where the velocity is found, or a wall's */
    uint8_t *mark;    /* at nodes: which have faces; later which have a gradient, or get a velocity,
                         in a pass beyond the surface */
    un_fit_gradient *gradient; /* at nodes that have one */
    int32_t (*beyond)[4];      /* at faces: their corners, -1 where there is none */
} un_stress_leaves;

/* Is the velocity of a node known once the others' are? */
static inline bool un_stress_leaves_tells(const un_stress_leaves *s, int32_t n)
{
    const un_viscous_walls *w = s->step->solve.walls;
    return s->reached[n] || (w && w->kind[n] == UN_WALL_STICKS);
}
/* Which this rank computes: all of one. */
static inline void un_stress_leaves_over_nodes(un_stress_leaves *s, int64_t grain,
                                               un_parallel_body *body)
{
    un_parallel_part(s->v->ctx, un_tets_own_nodes(s->step->solve.mesh), grain, body, s);
}
static inline void un_stress_leaves_over_faces(un_stress_leaves *s, int64_t grain,
                                               un_parallel_body *body)
{
    un_parallel_part(s->v->ctx, un_leaves_own_faces(s->step->leaves), grain, body, s);
}

/* After the solve: velocities at nodes beyond the surface (leaves_beyond.c). */
un_status un_stress_leaves_extend(un_stress_leaves *s);

/* ---- over ranks (leaves_ranks.c); these do nothing on one rank ---- */

/* Velocities at faces next to own nodes; and masses, and the nodes of faces, as those who have them
 * found these. */
un_status un_stress_leaves_share_input(const un_stress_leaves *s);
void un_stress_leaves_share_faces(un_stress_leaves *s);
/* Arrays at nodes, to those who know them. */
un_status un_stress_leaves_share_nodes(const un_stress_leaves *s, un_field a, un_field b);
/* Adds up what a rank finds at its own faces, in the order of one rank. */
void un_stress_leaves_sums(un_stress_leaves *s, int32_t width, un_parallel_values *values,
                           double *sums);

#endif
