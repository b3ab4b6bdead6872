/* Surface: level set from particles, contouring, smoothing. */
#ifndef UN_SURFACE_H
#define UN_SURFACE_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "mesh/mesh.h"
#include "particles/particles.h"

/* ---- level set of the simulation (colour.c) ---- */

/* The part of the smoothing kernel around each cell centre that lies in open space: what a liquid
 * that fills all of it would sum up to. Once for fixed walls, each step for moving ones. */
void un_colour_normalizer(un_context *ctx, float *normalizer, const un_grid *grid,
                          const un_walls *walls);
/* phi at cell centres, m: a signed distance within about a cell of the surface, +-1.5 cells beyond.
 * colour, the particles' smoothed volume fraction, is left in `colour`; both have a value per
 * cell. */
void un_colour_level_set(un_context *ctx, float *phi, float *colour, const un_grid *grid,
                         const un_bins *bins, const un_particles *particles,
                         const float *normalizer);
/* Volume where phi < 0 in open space, m3. */
double un_colour_volume(un_context *ctx, const float *phi, const un_grid *grid,
                        const un_walls *walls);
/* The distance to a flat surface at which the colour is c, in cells; and back. */
double un_colour_distance(double c);
double un_colour_profile(double s);

/* ---- output surface (mesher.c, contour.c, smooth.c) ---- */

typedef struct un_mesher {
    const un_grid *grid;
    const un_bins *bins; /* particles sorted into it */
    const un_particles *particles;
    const un_walls *walls;
    const float *phi;   /* at cells, of the simulation */
    double *const *u;   /* at faces, for vertices that no particle reaches */
    int32_t resolution; /* cells along the longest side */
    int32_t smoothing;  /* passes */
} un_mesher;

/* The liquid's surface, with normals and velocities: closed, cut to walls and solids, drops and
 * thin sheets included. */
un_status un_surface_mesh(un_context *ctx, un_trimesh *mesh, const un_mesher *mesher);
double un_surface_mesh_bytes(const un_grid *grid, int32_t resolution, double particles);

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
 * the space beyond were air. Positions only; triangles counter-clockwise seen from the air. phi of
 * zero and what is not finite count as air; fewer than two nodes along an axis give an empty mesh.
 * What mesh held before is not freed. */
un_status un_surface_contour(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh);

/* Fairing without shrinking (smooth.c): `passes` pairs of Taubin steps. Vertices on the lattice's
 * boundary planes stay in their planes. Keeps the enclosed volume to round-off by a last offset
 * along the normals of free vertices. */
un_status un_surface_smooth(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh,
                            int32_t passes);
/* Vertex normals with the weights of [Max 1999], exact for points on a sphere. Output surfaces take
 * un_surface_normals_at_walls (contour.h) instead, which keeps water flat up to the glass. */
un_status un_surface_normals(un_context *ctx, un_trimesh *mesh);
double un_surface_volume(const un_trimesh *mesh);
/* Euler characteristic, open edges, edges with more than two triangles: for tests. */
typedef struct un_surface_topology {
    int32_t euler, open_edges, nonmanifold_edges, misoriented_edges, component_count;
} un_surface_topology;
un_status un_surface_examine(un_context *ctx, const un_trimesh *mesh, un_surface_topology *report);

#endif
