/* Cells of any kind, as mesh.vtu holds them, and how a plane cuts them. */
#ifndef UN_MESH_CELLS_H
#define UN_MESH_CELLS_H

#include "base/base.h"

/* Type numbers and the order of corners are VTK's. Triangles and quads are the cells in 2D. */
typedef enum un_cell_type {
    UN_CELL_TRIANGLE = 5,
    UN_CELL_QUAD = 9,
    UN_CELL_TETRA = 10,
    UN_CELL_VOXEL = 11,     /* axis-aligned; x fastest */
    UN_CELL_HEXAHEDRON = 12 /* the lower square in cyclic order, then the upper one */
} un_cell_type;

#define UN_CELL_CORNERS_MAX 8

typedef struct un_cells {
    int32_t point_count;
    un_vec3 *point; /* shared by the cells that meet there; none is unused */
    int64_t count;
    int32_t *first;  /* count + 1: cell c has corner[first[c]] .. corner[first[c + 1]] */
    int32_t *corner; /* points */
    uint8_t *type;   /* un_cell_type */
    int32_t *level;
    double *pressure;  /* Pa */
    un_vec3 *velocity; /* m/s */
    int32_t *tag;      /* NULL: none; with tags there is neither pressure nor velocity */
} un_cells;

/* The number of corners; 0: an unknown type. */
int32_t un_cell_corners(int32_t type);
/* Allocates for these counts; the caller fills first, corner and type. */
un_status un_cells_alloc(un_context *ctx, un_cells *cells, int64_t point_count, int64_t count,
                         int64_t corner_count);
void un_cells_free(un_context *ctx, un_cells *cells);
/* The same for cells with tags. */
un_status un_cells_alloc_tagged(un_context *ctx, un_cells *cells, int64_t point_count,
                                int64_t count, int64_t corner_count);
/* Checks that types are known and have the right number of corners, that corners are points, and
 * that no cell has zero size. */
bool un_cells_validate(const un_cells *cells, const char **reason);
/* The longest side of the cell's bounding box, m. For the tets of a leaf it is the leaf's edge or
 * half of it. */
double un_cells_size(const un_cells *cells, int64_t c);

/* The polygons in which the plane x[axis] = at meets the cells, corners counterclockwise as seen
 * from above the plane. A cell includes its lower end but not its upper one, so that a plane
 * through faces shows each face once. A flat cell that lies in the plane is its own polygon.
 * Neighbouring polygons share points. The result is the same for any number of threads. */
typedef struct un_slice {
    int32_t point_count, count;
    un_vec3 *point;
    int32_t *first; /* count + 1: polygon i has corner[first[i]] .. corner[first[i + 1]] */
    int32_t *corner;
    int32_t *cell; /* the cell of each polygon; ascending */
} un_slice;

un_status un_cells_cut(un_context *ctx, un_slice *slice, const un_cells *cells, int32_t axis,
                       double at);
void un_slice_free(un_context *ctx, un_slice *slice);

#endif
