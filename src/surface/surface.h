/* Surface: level set from particles, contouring, smoothing. */
#ifndef UN_SURFACE_H
#define UN_SURFACE_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "mesh/mesh.h"
#include "particles/particles.h"

/* Samples of a level set at the nodes of a box lattice, x fastest; spacing may differ by axis.
 * Node (i, j, k) lies at origin + (i h0, j h1, k h2). Negative is liquid. */
typedef struct un_lattice {
    int32_t n[3]; /* nodes */
    double h[3];
    un_vec3 origin;
    float *phi;
} un_lattice;

/* The zero surface of phi as a closed, edge-manifold, outward-oriented mesh (contour.c). What
 * meets the lattice's boundary is closed exactly in the boundary plane, with a sharp edge, as if
 * the space beyond were air. Positions only; triangles counter-clockwise seen from the air. */
un_status un_surface_contour(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh);

/* Fairing without shrinking (smooth.c): `passes` pairs of Taubin steps. Vertices on the lattice's
 * boundary planes stay in their planes. Keeps the enclosed volume to round-off by a last offset
 * along the normals of free vertices. */
un_status un_surface_smooth(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh,
                            int32_t passes);
/* Area-weighted vertex normals; sharp at boundary planes is not attempted. */
un_status un_surface_normals(un_context *ctx, un_trimesh *mesh);
double un_surface_volume(const un_trimesh *mesh);
/* Euler characteristic, open edges, edges with more than two triangles: for tests. */
typedef struct un_surface_topology {
    int32_t euler, open_edges, nonmanifold_edges, misoriented_edges, component_count;
} un_surface_topology;
un_status un_surface_examine(un_context *ctx, const un_trimesh *mesh, un_surface_topology *report);

#endif
