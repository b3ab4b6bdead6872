/* Nodal velocities that are fitted to those on the faces of leaves (leaves.c), in the rows of
 * nodes.c. Only leaves.h and nodes.c include this. */
#ifndef UN_VISCOSITY_FIT_H
#define UN_VISCOSITY_FIT_H

#include "viscosity/nodes.h"

/* The nodes whose velocities make up that of a face: its corners, then the centres of its two
 * leaves. */
enum { UN_FIT_NODES = 6 };

/* What a node keeps of the liquid's mass around it, where faces have it all. It only says what
 * nodes do that nothing else holds: they follow those around them. */
#define UN_FIT_FOLLOWS 1e-6

struct un_viscous_fit {
    const double *u;     /* at faces: before the solve */
    const uint8_t *axis; /* at faces; valid where nodes are */
    int32_t (
        *node)[UN_FIT_NODES]; /* at faces; node[0] -1: not part of it; node[4] -1: corners only */
    double *mass;             /* at faces, kg: of the share that nodes decide on */
    int32_t *first, *entry;   /* by node: its faces, as 8 face + place */
};

static inline double un_fit_weight(const un_viscous_fit *fit, int64_t f, int k)
{
    bool corners = fit->node[f][4] < 0;
    return k < 4 ? (corners ? 0.25 : 0.125) : corners ? 0 : 0.25;
}
static inline int un_fit_count(const un_viscous_fit *fit, int64_t f)
{
    return fit->node[f][4] < 0 ? 4 : UN_FIT_NODES;
}
static inline double un_fit_component(un_vec3 v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}
/* What nodal velocities make of a face's. */
static inline double un_fit_value(const un_viscous_fit *fit, int64_t f, const un_vec3 *u)
{
    double sum = 0;
    for (int k = 0; k < un_fit_count(fit, f); k++)
        sum += un_fit_weight(fit, f, k) * un_fit_component(u[fit->node[f][k]], fit->axis[f]);
    return sum;
}

/* Adds to row n what holds nodes to the faces; val NULL: only finds which nodes. */
void un_fit_row(const un_stress_nodes *s, int64_t n, un_row *r, double (*val)[9], un_vec3 *b);

#endif
