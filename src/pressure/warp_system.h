/* The system of a projection on a grid that warps, as its files share it: warp.c, warp_bodies.c.
 * Private to pressure/. */
#ifndef UN_PRESSURE_WARP_SYSTEM_H
#define UN_PRESSURE_WARP_SYSTEM_H

#include "pressure/warp_element.h"

/* Cells less open than this are closed. */
#define UN_WARP_OPEN_MIN 1e-3

typedef struct un_warp_args {
    un_pressure *pr;
    const un_warp_projection *in;
    const un_warp *warp;
    double *stencil;      /* by row: couplings to itself and to nodes after it */
    double *hats;         /* by row: the integral of its hat function */
    double *depth;        /* at places: positive in the liquid */
    int16_t *mover;       /* at nodes: the body that moves next to it, -1; NULL: none moves */
    double (*matrix)[36]; /* of cells with copies as corners: their couplings, of corners m <= l */
    double (*push)[6];    /* by row: see un_coupling_rows; NULL: no body is free */
    int colour, width;
    int32_t *entry_count;
} un_warp_args;

/* The distance to solids at corner m of cell c, as the cell's side sees it. */
UN_KERNEL double un_warp_wall_at(const un_warp_args *s, int64_t c, int64_t place, int m)
{
    const un_walls *w = s->in->walls;
    return w->parted && w->split[c] >= 0 ? w->splits[w->split[c]].phi[m]
                                         : w->phi[un_warp_node_of(w, place)];
}

/* Is any corner that lies in the open in the liquid? */
UN_KERNEL bool un_warp_is_wet(const un_warp_args *s, const un_element *e, int64_t c, int dim)
{
    if (s->in->walls->volume[c] >= 1) return e->wet > 0;
    for (int m = 0; m < 1 << dim; m++)
        if (e->psi[m] > 0 && un_warp_wall_at(s, c, e->place[m], m) > 0) return true;
    return false;
}

UN_KERNEL void un_warp_load_element(const un_warp_args *s, un_element *e, const int32_t c[3],
                                    int dim)
{
    const un_walls *w = s->in->walls;
    e->wet = 0;
    un_warp_places(w, c[0], c[1], c[2], e->place);
    for (int m = 0; m < 1 << dim; m++) {
        int32_t n[3] = {c[0] + (m & 1), c[1] + (m >> 1 & 1), c[2] + (m >> 2)};
        e->x[m] = s->warp->node[un_grid_node(w->grid, n[0], n[1], n[2])];
        e->psi[m] = s->depth[e->place[m]];
        e->wet += e->psi[m] > 0;
    }
    un_element_edges(e, dim);
}

UN_KERNEL void un_warp_quadrature(const un_warp_args *s, un_quadrature *q, const un_element *e,
                                  int64_t c, int dim)
{
    double v[8], share = s->in->walls->volume[c];
    q->count = 0;
    if (share >= 1) un_quadrature_full(q, dim);
    if (share >= 1 || share <= UN_WARP_OPEN_MIN) return;
    for (int m = 0; m < 1 << dim; m++) v[m] = un_warp_wall_at(s, c, e->place[m], m);
    un_quadrature_open(q, v, dim);
}

/* Bodies that the liquid moves (warp_bodies.c): finds how they push on rows, takes what their
 * velocities bring off the right-hand side, and makes columns of them. Call after the rows. */
un_status un_warp_couple(un_warp_args *s, un_arena *arena);
/* What the pressure and gravity gave the liquid; see un_warp_projection. */
void un_warp_find_impulse(const un_warp_args *s);

#endif
