/* Ghost pressures in one tet; shared by ghost.c, tets.c and their tests. */
#ifndef UN_PRESSURE_GHOST_H
#define UN_PRESSURE_GHOST_H

#include "mesh/mesh.h"

/* Variants; 0 is the scheme at the head of ghost.c. */
typedef enum un_ghost_mode {
    UN_GHOST_BY_ROW = 1,   /* in all tets, not only where eq. 12 fails */
    UN_GHOST_CAUTIOUS = 2, /* shares that would weaken the matrix are left out */
    UN_GHOST_NONE = 4      /* p = 0 at air nodes: first order */
} un_ghost_mode;

/* A tet with some nodes wet (unknowns) and some dry. All in units of a leaf edge of 1. */
typedef struct un_ghost {
    const un_tet_shape *shape;
    double phi[4];
    uint32_t wet;  /* bit i: node i */
    bool by_row;   /* see the head of ghost.c */
    double a[4];   /* eq. 12, at dry nodes: phi_a / sum k_n phi_n; 0 without couplings */
    double row[4]; /* by row, at wet nodes: the dry nodes' share of the diagonal */
    uint32_t mode; /* un_ghost_mode */
} un_ghost;

/* phi: negative at wet nodes. */
un_ghost un_ghost_make(const un_tet_shape *shape, const double phi[4], uint32_t wet, uint32_t mode);

/* The ghosts' share of the stiffness between the wet nodes n and m; multiply by the leaf edge.
 * Symmetric to the last bit. */
static inline double un_ghost_entry(const un_ghost *g, int n, int m)
{
    double sum = 0;
    if (g->by_row) return n == m ? g->row[n] : 0;
    for (int d = 0; d < 4; d++)
        if (!(g->wet >> d & 1))
            sum += g->a[d] * (g->shape->stiffness[d][n] * g->shape->stiffness[d][m]);
    return sum;
}

/* The matching pressure gradient; divide by the leaf edge. Only p at wet nodes is used. */
void un_ghost_gradient(double gradient[3], const un_ghost *g, const double p[4]);

#endif
