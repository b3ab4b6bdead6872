/* Viscous stress on nodal velocities. Only nodes.c, nodes_bodies.c, nodes_ranks.c and volume.c
 * include this. */
#ifndef UN_VISCOSITY_NODES_H
#define UN_VISCOSITY_NODES_H

#include "viscosity/dragged.h"

typedef struct un_stress_nodes {
    un_viscosity *v;
    const un_viscous_def *in;
    const un_tets *mesh;
    double *stiff; /* at tets: dt mu times the liquid's share times the edge; 0: not part of it */
    float *share;  /* at tets: of liquid in open space */
    float *whole;  /* at tets: of liquid, in walls that it sticks to as well */
    double *mass;  /* at nodes */
    un_dragged *dragged;
    int32_t dragged_count,
        *number;     /* number: by the scene's body, -1: none; NULL: there are none */
    int32_t *owner;  /* at tets: the body that the stress there drags, -1: none; NULL likewise */
    int32_t *member; /* nodes that stick to bodies, by body */
    un_vec3 *slip;   /* at those: the liquid's velocity less the body's, before the solve */
    int32_t *beside; /* rows of nodes next to bodies */
    int32_t beside_count;
    int32_t *next; /* of bodies' rows: where the next entry goes */
} un_stress_nodes;

/* Stress between corner i of a tet and its four corners, to be multiplied with s->stiff (nodes.c);
 * room: for tets with a shape of their own. */
const double (*un_stress_of(const un_stress_nodes *s, int32_t t, int i, double (*room)[9]))[9];

/* Is there viscous liquid in a tet, with a node that is free to move? */
bool un_viscous_has_stress(const un_viscous_def *in, int32_t t);

/* ---- over ranks (nodes_ranks.c); they do nothing on one rank unless they say so ---- */

/* After unknowns are chosen at own nodes: ghosts get to know them, and what was done there. */
un_status un_viscous_share_unknowns(un_stress_nodes *s);
/* Numbers the rows; on one rank too. */
un_status un_viscous_number(un_stress_nodes *s, int64_t places);
/* Velocities at ghosts. */
un_status un_viscous_share_velocities(const un_stress_nodes *s);

/* ---- bodies that the liquid moves (nodes_bodies.c) ---- */

/* Places of unknowns: nodes, then two for each body, its velocity and its spin times a length. */
static inline int32_t un_dragged_place(const un_stress_nodes *s, int32_t k, int which)
{
    return s->mesh->node_count + 2 * k + which;
}
/* The body that the stress in a tet drags, -1: none. */
static inline int32_t un_dragged_in(const un_stress_nodes *s, int32_t t)
{
    return s->owner ? s->owner[t] : -1;
}
/* Does node n stick to body k? */
static inline bool un_dragged_has(const un_stress_nodes *s, int32_t k, int64_t n)
{
    const un_viscous_walls *w = s->in->walls;
    return k >= 0 && w->kind[n] == UN_WALL_STICKS && w->body[n] == s->dragged[k].body;
}
/* Before unknowns are chosen: which bodies there are. */
un_status un_dragged_find(un_stress_nodes *s, un_arena *arena);
/* After tets are weighed: their tets and nodes, and whether they are unknowns. */
un_status un_dragged_gather(un_stress_nodes *s, un_arena *arena);
/* Numbers of entries of the bodies' rows, after those of nodes; their rows, after those of nodes.
 */
un_status un_dragged_count(un_stress_nodes *s, un_arena *arena);
void un_dragged_fill(un_stress_nodes *s);
/* After a solve: their change, and their nodes' velocities. */
void un_dragged_store(un_stress_nodes *s);
/* The liquid's momentum at nodes that are solved for and at those that stick to bodies, before the
 * solve or after it. */
un_vec3 un_dragged_momentum(const un_stress_nodes *s, bool before);
/* What forces on nodes add to a row of body k (which: 0 velocity, 1 spin): sums force(arg, t, i)
 * over corners i of tets t that stick to it. */
typedef un_vec3 un_corner_force(const void *arg, int32_t t, int i);
un_vec3 un_dragged_sum(const un_stress_nodes *s, int32_t k, int which, un_corner_force *force,
                       const void *arg);

/* ---- volume (volume.c) ---- */

/* Keeps volume under viscous stress: adds the guessed pressure to b; after a solve, finds the
 * divergence over the strain, rms; and adds the pressure against it to b. */
typedef struct un_viscous_volume {
    float *volume, *flux; /* at tets: volume of liquid, m3; divergence times that volume */
    double *divergence;   /* at nodes, times dt mu */
    double *step;         /* at nodes: change of dt times the pressure */
    double rho;           /* of Chebyshev's iteration; 0 before its first step */
} un_viscous_volume;
un_status un_viscous_volume_begin(un_viscous_volume *keep, un_arena *arena,
                                  const un_stress_nodes *nodes);
double un_viscous_volume_error(un_viscous_volume *keep, const un_stress_nodes *nodes);
un_status un_viscous_volume_push(un_viscous_volume *keep, const un_stress_nodes *nodes);

#endif
