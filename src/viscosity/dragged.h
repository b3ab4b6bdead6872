/* Bodies that the liquid sticks to and moves, as unknowns of a viscous system of nodes (dragged.c);
 * private to this folder. */
#ifndef UN_VISCOSITY_DRAGGED_H
#define UN_VISCOSITY_DRAGGED_H

#include "viscosity/round.h"

/* A body that the liquid sticks to and moves. */
typedef struct un_dragged {
    int32_t body;
    un_vec3 centre;
    double length;        /* m: what spins are multiplied with */
    bool moves[6];        /* along axes and about them: not held */
    double change[6];     /* of its velocity, and of its spin times the length */
    int32_t first, count; /* its nodes in a list of members: this rank's */
    bool any;             /* of nodes.c: some rank has such nodes */
} un_dragged;

typedef struct un_dragged_list {
    un_dragged *at;
    int32_t count;
    int32_t *number; /* by the scene's body: its place here, -1: none; NULL: there are none */
} un_dragged_list;
/* Of bodies that are free to move. */
un_status un_dragged_find_free(un_dragged_list *list, un_arena *arena, const un_bodies *bodies);
/* The body's velocity (which: 0) and spin times a length (1) at x, as blocks: a block times its
 * change is that of x. */
void un_dragged_motion(const un_dragged *d, un_vec3 x, int which, double block[9]);
void un_dragged_motions(const un_dragged *d, un_vec3 x, double motion[2][9]);

/* A body's own equations: velocity, then spin. */
typedef struct un_dragged_own {
    double m[6][6], b[6];
} un_dragged_own;
/* The inertia of what is free to move. */
void un_dragged_begin(un_dragged_own *own, const un_dragged *d, const un_bodies *bodies);
/* Adds left^T k right to the matrix; motion^T force to the right side. */
void un_dragged_add_pair(un_dragged_own *own, const double left[2][9], const double *k,
                         const double right[2][9]);
void un_dragged_add_force(un_dragged_own *own, const double motion[2][9], un_vec3 force);
/* The last two entries of the body's rows, row[0] and row[1], and their right sides. */
void un_dragged_set_rows(un_viscosity *v, const un_dragged *d, const int32_t row[2],
                         un_dragged_own *own);
/* Rows of the nodes `beside` have their couplings to bodies, whose places come after `nodes`;
 * bodies get the transposes. next: scratch, two for each body. */
void un_dragged_couple(un_viscosity *v, int32_t nodes, int32_t body_count, const int32_t *beside,
                       int32_t beside_count, int32_t *next);
/* After a solve: a body's change; at the end bodies take it. */
void un_dragged_take(un_dragged *d, un_vec3 along, un_vec3 about);
void un_dragged_move(const un_dragged *d, int32_t count, un_bodies *bodies);

#endif
