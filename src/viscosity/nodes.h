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
    int32_t *next;       /* of bodies' rows: where the next entry goes */
    un_dragged_own *own; /* equations of bodies, or what is added to them */
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
un_status un_viscous_number(un_stress_nodes *s);
/* Velocities at ghosts. */
un_status un_viscous_share_velocities(const un_stress_nodes *s);
/* Adds up numbers of all ranks. */
void un_viscous_add(const un_stress_nodes *s, double *values, int64_t count);
/* Sums over the nodes of all ranks, in the order of one: one rank after the other adds its own. */
void un_viscous_begin_turn(const un_stress_nodes *s, void *values, size_t bytes);
void un_viscous_end_turn(const un_stress_nodes *s, void *values, size_t bytes);
/* Is this the rank that begins sums; that has the rows of bodies, which come last? On one rank,
 * both. */
static inline bool un_viscous_first(const un_stress_nodes *s)
{
    return !s->v->shared || un_rank(s->v->ctx) == 0;
}
static inline bool un_viscous_last(const un_stress_nodes *s)
{
    return !s->v->shared || un_rank(s->v->ctx) + 1 == un_rank_count(s->v->ctx);
}
/* Gives rows of bodies the transposes of couplings in rows beside them; on several ranks only. */
un_status un_viscous_couple_bodies(un_stress_nodes *s);

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
/* After tets are weighed: their tets and own nodes, and whether they are unknowns. */
un_status un_dragged_gather(un_stress_nodes *s, un_arena *arena);
/* Numbers of entries of the bodies' rows, after those of nodes; their rows, after those of nodes.
 */
un_status un_dragged_count(un_stress_nodes *s, un_arena *arena);
un_status un_dragged_fill(un_stress_nodes *s);
/* After a solve: their change, and their own nodes' velocities. */
void un_dragged_store(un_stress_nodes *s);
/* The liquid's momentum at nodes that are solved for and at those that stick to bodies, before the
 * solve or after it. */
un_vec3 un_dragged_momentum(const un_stress_nodes *s, bool before);
/* Adds to the bodies' rows what forces on nodes do: force(arg, t, i) at corners i of tets t that
 * stick to them. */
typedef un_vec3 un_corner_force(const void *arg, int32_t t, int i);
void un_dragged_push(const un_stress_nodes *s, un_corner_force *force, const void *arg);

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
