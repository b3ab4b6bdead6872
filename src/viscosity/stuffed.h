/* Viscous stress on tets that conform to surface and walls. Only stuffed.c and stuffed_bodies.c
 * include this. */
#ifndef UN_VISCOSITY_STUFFED_H
#define UN_VISCOSITY_STUFFED_H

#include "viscosity/dragged.h"

typedef struct un_stuffed_stress {
    un_viscosity *v;
    const un_viscous_stuffed *in;
    const un_stuffing *mesh;
    uint8_t *kind; /* at nodes: UN_WALL_* */
    un_vec3 *wall; /* at nodes: its velocity */
    double (*free)[9];
    double *drag;     /* at nodes that slide: dt mu area / slip, kg */
    un_vec3 *was;     /* at nodes: before the solve */
    double *flux;     /* at tets: divergence times volume, m3/s */
    double *step;     /* at nodes: dt times the pressure that is added next, Pa s */
    double *push;     /* at nodes: dt mu times the divergence, Pa s */
    double last, new; /* weights of the last step and of the divergence in the next */
    un_dragged_list dragged;
    int32_t *stuck;  /* at nodes: the dragged body that they stick to, -1: none; NULL: no bodies */
    un_vec3 *slip;   /* at those: the liquid's velocity less the body's, before the solve */
    int32_t *member; /* these nodes, by body */
    int32_t *beside; /* rows of nodes next to bodies */
    int32_t beside_count;
    int32_t *next; /* scratch, by row of a body */
} un_stuffed_stress;

/* Stress between corners i and j of tet t: dt times the force on i by the velocity of j. */
void un_stuffed_block(const un_stuffed_stress *s, int32_t t, const un_vec3 g[4], int i, int j,
                      double block[9]);
/* Gradients of the tet's hat functions. */
void un_stuffed_gradients(const un_stuffing *mesh, int32_t t, un_vec3 g[4]);
/* The part of a sliding node's velocity that the wall prescribes. */
un_vec3 un_stuffed_given(const un_stuffed_stress *s, int64_t n);

/* ---- bodies that the liquid moves (stuffed_bodies.c) ---- */

/* Places of unknowns: nodes, then two for each body. */
static inline int32_t un_stuffed_place(const un_stuffed_stress *s, int32_t k, int which)
{
    return s->mesh->node_count + 2 * k + which;
}
/* The body that the stress in tet t drags, -1: none: the first of those that its nodes stick to. */
static inline int32_t un_stuffed_owner(const un_stuffed_stress *s, int32_t t)
{
    int32_t owner = -1;
    for (int i = 0; i < 4 && s->stuck; i++) {
        int32_t k = s->stuck[s->mesh->tet[t][i]];
        if (k >= 0 && (owner < 0 || k < owner)) owner = k;
    }
    return owner;
}
/* Before walls are found: which bodies there are. */
un_status un_stuffed_find_bodies(un_stuffed_stress *s, un_arena *arena);
/* After walls are: their nodes, and whether they are unknowns. */
un_status un_stuffed_gather(un_stuffed_stress *s, un_arena *arena);
/* After the rows of nodes: numbers of entries of theirs; these. */
un_status un_stuffed_count(un_stuffed_stress *s, un_arena *arena);
void un_stuffed_fill(un_stuffed_stress *s);
/* What the pressure step pushes them with. */
void un_stuffed_push(un_stuffed_stress *s);
/* After a solve: their change, and their nodes' velocities. */
void un_stuffed_store(un_stuffed_stress *s);

#endif
