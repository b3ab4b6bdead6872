/* Declarations beyond surface.h that contouring, smoothing and their tests share. */
#ifndef UN_SURFACE_CONTOUR_H
#define UN_SURFACE_CONTOUR_H

#include "surface/surface.h"

/* Vertices off the boundary planes keep at least this fraction of a lattice step from them and,
 * as contoured, from the nodes: they never coincide, not even in single precision at 256 cells
 * (4e-7 of the domain). */
#define UN_SURFACE_HAIR 1e-4

/* A place given in node steps. Boundary planes have the same bits wherever they are computed. */
static inline un_vec3 un_lattice_point(const un_lattice *lattice, double i, double j, double k)
{
    return un_v3(lattice->origin.x + lattice->h[0] * i, lattice->origin.y + lattice->h[1] * j,
                 lattice->origin.z + lattice->h[2] * k);
}

/* Turns the counts of each row, stored at row + 1, into the number of its first vertex and
 * triangle; fails if there are too many to number. */
un_status un_surface_number_rows(un_context *ctx, int64_t *vertex, int64_t *triangle, int64_t rows);

/* Rows of a lattice that one of several ranks contours: its own. Of the two rows after each of
 * these, along y, z and both, it must know the samples, too. */
enum { UN_ROW_KNOWN = 1, UN_ROW_OWN = 2 };
typedef struct un_contour_part {
    const uint8_t *rows;           /* by row: 0: nothing is known */
    int32_t *vertices, *triangles; /* room by row; set on all ranks, of all */
} un_contour_part;
/* All ranks call; each gets the vertices and triangles of its rows, and these have the numbers of
 * one rank. */
un_status un_surface_contour_part(un_context *ctx, const un_lattice *lattice,
                                  const un_contour_part *part, un_trimesh *mesh);

/* Replaces all vertices v with the same same[v] (the first of them) by one vertex in their middle,
 * wherever the mesh stays closed, manifold and unfolded (cluster.c). Changes `same`: vertices that
 * could not be merged stand for themselves again. Positions only. */
un_status un_surface_merge(un_context *ctx, un_trimesh *mesh, int32_t *same);

/* As un_surface_smooth, but first separates vertices that crowd together, as marching tetrahedra
 * leave them around nodes: fairing would fold them over each other. */
un_status un_surface_fair(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh,
                          int32_t spread_passes, int32_t passes);

/* As un_surface_normals, but triangles in the lattice's boundary planes do not count at vertices
 * that also belong to the free surface: the water's surface is shaded right up to the glass. */
un_status un_surface_normals_at_walls(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh);

/* The connected piece of each vertex, numbered by first vertex (examine.c). Vertices without a
 * triangle are pieces of their own. */
un_status un_surface_components(un_context *ctx, const un_trimesh *mesh, int32_t *component,
                                int32_t *component_count);

#endif
