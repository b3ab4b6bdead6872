/* Cells for tests. */
#ifndef UN_TEST_CELLS_H
#define UN_TEST_CELLS_H

#include "check.h"
#include "mesh/mesh.h"

/* n cells along each side of the unit cube, as voxels or hexahedra; p is their number, u (1, 0, 0).
 */
static inline void check_make_cubes(un_context *ctx, un_cells *cells, int32_t n, un_cell_type type)
{
    static const int order[8] = {0, 1, 3, 2, 4, 5, 7, 6}; /* of a hexahedron's corners */
    int32_t m = n + 1;
    check_ok(ctx, un_cells_alloc(ctx, cells, m * m * m, n * n * n, 8 * n * n * n));
    for (int32_t i = 0; i < m * m * m; i++)
        cells->point[i] =
            un_v3((double)(i % m) / n, (double)(i / m % m) / n, (double)(i / m / m) / n);
    for (int32_t c = 0; c < n * n * n; c++) {
        int32_t at[3] = {c % n, c / n % n, c / n / n};
        for (int k = 0; k < 8; k++) {
            int s = type == UN_CELL_HEXAHEDRON ? order[k] : k;
            cells->corner[8 * c + k] =
                at[0] + (s & 1) + m * (at[1] + (s >> 1 & 1) + m * (at[2] + (s >> 2)));
        }
        cells->first[c + 1] = 8 * (c + 1);
        cells->type[c] = (uint8_t)type;
        cells->level[c] = 4;
        cells->pressure[c] = c;
        cells->velocity[c] = un_v3(1, 0, 0);
    }
}

#endif
