/* Mesh: the cells a method computes on. The uniform grid so far. */
#ifndef UN_MESH_H
#define UN_MESH_H

#include "base/base.h"

/* A uniform grid of cubic cells that covers the domain with one layer of cells to spare on each
 * side, so that no stencil of a point in the domain leaves the arrays. Cell (i, j, k) spans
 * origin + h [i, i+1] x ...; cells and nodes are stored x fastest. Face f of axis a between cell
 * c and its lower neighbour along a has the cell's own index c. */
typedef struct un_grid {
    int32_t n[3];      /* cells, padding included */
    double h;          /* m */
    un_vec3 origin;    /* of cell (0, 0, 0) */
    un_vec3 size;      /* the domain is [0, size] */
    int64_t cell_count, node_count;
    int64_t stride[3];      /* of cells: 1, n0, n0 n1 */
    int64_t node_stride[3]; /* of nodes: 1, n0 + 1, ... */
} un_grid;

/* finest: cells along the longest side. */
un_grid un_grid_make(un_vec3 size, int32_t finest);

static inline int64_t un_grid_cell(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return i + g->stride[1] * j + g->stride[2] * k;
}
static inline int64_t un_grid_node(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return i + g->node_stride[1] * j + g->node_stride[2] * k;
}
static inline un_vec3 un_grid_center(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return un_v3(g->origin.x + g->h * (i + 0.5), g->origin.y + g->h * (j + 0.5),
                 g->origin.z + g->h * (k + 0.5));
}
static inline un_vec3 un_grid_node_position(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return un_v3(g->origin.x + g->h * i, g->origin.y + g->h * j, g->origin.z + g->h * k);
}

#endif
