/* What warp.c and warp_solve.c share. */
#ifndef UN_MESH_WARP_INTERNAL_H
#define UN_MESH_WARP_INTERNAL_H

#include "mesh/mesh.h"

/* Makes the levels of the potential's multigrid. */
un_status un_warp_levels(un_warp *warp);
/* Nodes for any potential. */
void un_warp_place_nodes(un_warp *warp, un_vec3 *node, const double *potential);
/* The centre of the cell whose lowest node is n, and the determinant of the derivative there,
 * without S. */
void un_warp_cell(const un_warp *warp, const un_vec3 *node, int64_t n, un_vec3 *x, double *det);

#endif
