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

/* ---- eight cells of a row (warp_rows.c) ---- */

/* The same of `count` cells of a row, up to eight; the last one again where there are fewer. */
void un_warp_cells_eight(const un_warp *warp, const un_vec3 *node, int64_t first, int32_t count,
                         un_eight *x, double det[8]);
void un_monitor_at_eight(const un_monitor *monitor, const un_eight *x, double out[8]);
/* A bit for each of up to eight cells of a 3D lattice that may have an eigenvalue below `least` at
 * a corner, by Gershgorin's circles. at: the first cell's lowest corner. */
uint32_t un_warp_suspects(const un_vec3 *at, const int64_t stride[3], const double scale[3],
                          int32_t count, double least);

#endif
