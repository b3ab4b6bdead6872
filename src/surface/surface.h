/* Surface: level set from particles, contouring, smoothing. */
#ifndef UN_SURFACE_H
#define UN_SURFACE_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "mesh/mesh.h"
#include "particles/particles.h"

/* ---- level set of the simulation (colour.c) ---- */

/* The part of the smoothing kernel around each cell centre that lies in open space: the sum over
 * liquid that fills all of it. Call once for fixed walls, each step for moving ones. */
un_status un_colour_normalizer(un_context *ctx, float *normalizer, const un_grid *grid,
                               const un_walls *walls);
/* phi at cell centres, m: a signed distance within about a cell of the surface, +-1.5 cells beyond.
 * colour: the particles' smoothed volume fraction. Both have one value per cell. */
/* Layers around its own in which a rank knows the level set. */
#define UN_PHI_REACH 5
un_status un_colour_level_set(un_context *ctx, float *phi, float *colour, const un_grid *grid,
                              const un_bins *bins, const un_particles *particles,
                              const un_walls *walls, const float *normalizer);
/* The particles' volume around each cell centre by the smoothing kernel, over that of a cell
 * (colour_sum.c). Particles must lie in the cells they are sorted into. */
void un_colour_sum(un_context *ctx, float *colour, const un_grid *grid, const un_bins *bins,
                   const un_particles *particles, const un_walls *walls);
/* The cells of a block of 27 that the kernel reaches, a bit for each: in 2D those of its middle
 * layer. */
static inline uint32_t un_colour_reach(const un_grid *grid)
{
    return grid->dim == 2 ? 0x1ffu << 9 : UN_SIGHT_ALL;
}
/* Volume where phi < 0 in open space, m3 (2D: m2). thick: of these cells only; NULL: of all. */
double un_colour_volume(un_context *ctx, const float *phi, const un_grid *grid,
                        const un_walls *walls, const uint8_t *thick);
/* The distance to a flat surface at which the colour is c, in cells; and its inverse. */
double un_colour_distance(double c);
double un_colour_profile(double s);

/* The colour at a node of the tets at distance phi from a flat surface; h: the edge of the cells
 * there. */
double un_colour_tets_profile(double phi, double h);
/* The same on tets (tet_colour.c): volume is the particles' volume at each node, as transferred.
 * phi: a distance near the surface, +-1.5 of the local cell beyond, extended into walls. colour:
 * smoothed. Over ranks, volume must be right at own nodes; phi and colour will be right at ghosts,
 * too. */
un_status un_colour_tets(un_context *ctx, un_arena *arena, float *phi, float *colour,
                         const float *volume, const un_tets *mesh, const un_tet_walls *walls);

/* Cells, or tets, where liquid is thick enough for the level set to tell its volume: 1, others 0
 * (thick.c). From the arena. Over ranks, phi must be right at own nodes and ghosts; the tets around
 * own nodes will be right. */
un_status un_surface_thick_grid(un_context *ctx, un_arena *arena, uint8_t **thick, const float *phi,
                                const un_grid *grid, const un_walls *walls);
un_status un_surface_thick_tets(un_context *ctx, un_arena *arena, uint8_t **thick, const float *phi,
                                const un_tets *mesh, const un_tet_walls *walls);

/* The same at the centres of an octree's leaves (leaf_colour.c, leaf_front.c). phi: a distance
 * everywhere, huge where there is no surface; extended into walls. */
typedef struct un_leaf_level_set {
    float *phi;    /* set */
    float *colour; /* from un_transfer_to_leaves; set to what it is in open space */
    const un_leaves *leaves;
    const un_leaf_walls *walls;
    const bool *open_sides;
} un_leaf_level_set;
un_status un_leaf_level_set_find(un_context *ctx, un_arena *arena, const un_leaf_level_set *def);
/* As un_colour_volume, and as un_surface_thick_grid. */
double un_leaf_liquid_volume(un_context *ctx, const un_leaf_level_set *def, const uint8_t *thick);
un_status un_surface_thick_leaves(un_context *ctx, un_arena *arena, uint8_t **thick,
                                  const un_leaf_level_set *def);

/* ---- on a grid that warps (warp.c): the level set above, in its reference space ---- */

/* The padding beyond closed sides takes the values of the cells next to it: the map mirrors there.
 */
void un_warp_mirror(un_context *ctx, float *phi, const un_walls *walls);
/* At places, m, from the level set of reference space at cells: a distance in space next to the
 * surface [Ibayashi18 eq. 23]. */
void un_warp_level_set(un_context *ctx, double *node_phi, const float *phi, const un_walls *walls);
/* phi at cells: the distance of their centres to a shape, m. */
void un_warp_level_set_shape(un_context *ctx, float *phi, const un_warp *warp,
                             const un_shape *shape);
/* Volume in space where phi < 0, as un_colour_volume. */
un_status un_warp_volume(un_context *ctx, un_arena *arena, double *volume, const float *phi,
                         const un_walls *walls, const uint8_t *thick);
/* Moves a surface of reference space to space, normals too. */
void un_warp_surface(un_context *ctx, un_trimesh *mesh, const un_warp *warp);
/* Of a level set that the grid carries (warp_track.c): makes it a distance again in reference
 * space, so many cells from the surface as a third of `rounds`; and its surface in space, as
 * un_surface_mesh. u: at cells. */
un_status un_warp_redistance(un_context *ctx, un_arena *arena, float *phi, const un_grid *grid,
                             int32_t rounds);
un_status un_warp_contour(un_context *ctx, un_trimesh *mesh, const float *phi, const un_vec3 *u,
                          const un_walls *walls, int32_t resolution, int32_t smoothing);

/* ---- output surface (mesher.c, contour.c, smooth.c) ---- */

typedef struct un_mesher {
    const un_grid *grid;
    const un_bins *bins; /* particles sorted into grid cells */
    const un_particles *particles;
    const un_walls *walls;
    const float *phi;   /* at cells, of the simulation */
    double *const *u;   /* at faces, for vertices that no particle reaches */
    int32_t resolution; /* cells along the longest side */
    int32_t smoothing;  /* passes */
    /* In 3D, over ranks: all call and share the work; rank 0 gets the mesh. The particles are this
     * rank's, with copies of others in the rows beside its own. Of the grid, phi, open volumes
     * and velocities of own cells are right; copies of others are set. */
    const un_bins_share *share; /* NULL: one rank has all */
    un_particle_stream *stream; /* of all particles */
} un_mesher;

/* The liquid's surface, with normals and velocities: closed, cut to walls and solids, drops and
 * thin sheets included. In 2D the liquid's area, as by un_surface_area. */
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
/* One layer of nodes is 2D. */
static inline int32_t un_lattice_dim(const un_lattice *lattice)
{
    return lattice->n[2] == 1 ? 2 : 3;
}

/* ---- 2D (flat.c): the liquid's area and its outline ---- */

/* The part of a lattice of one layer where phi < 0, as flat triangles that share their vertices and
 * face +z, normals included. `passes` pairs of Taubin steps fair the outline; each piece of it
 * keeps its enclosed area. Previous contents of mesh are not freed. */
un_status un_surface_area(un_context *ctx, const un_lattice *lattice, int32_t passes,
                          un_trimesh *mesh);

/* Closed lines around a flat mesh, the liquid to their left. */
typedef struct un_outline {
    int32_t vertex_count, loop_count;
    int32_t *vertex; /* of the mesh, loop after loop, each once */
    int32_t *first;  /* of each loop; one more at the end */
    un_vec3 *normal; /* by place in `vertex`: in the plane, outwards */
} un_outline;
un_status un_outline_create(un_context *ctx, const un_trimesh *mesh, un_outline *outline);
void un_outline_free(un_context *ctx, un_outline *outline);
/* True for a surface of 2D, all of it in the plane z = 0. */
bool un_surface_is_flat(const un_trimesh *mesh);
/* Area of a flat mesh, m2. */
double un_surface_flat_area(const un_trimesh *mesh);

/* The zero surface of phi as a closed, edge-manifold, outward-oriented mesh (contour.c). Liquid
 * that meets the lattice's boundary is closed exactly in the boundary plane, with a sharp edge, as
 * if the space beyond were air. Positions only; triangles counter-clockwise seen from the air. Zero
 * and non-finite values of phi count as air; fewer than two nodes along an axis give an empty mesh.
 * Previous contents of mesh are not freed. */
un_status un_surface_contour(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh);
/* The same without what closes it in the boundary. Triangles are sorted by their cubes, along x,
 * then y, then z. */
un_status un_surface_contour_open(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh);

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

/* ---- particles of many sizes: the union of hulls of triplets [Ando13 section 5] (hulls.c) ---- */

typedef struct un_hulls un_hulls;

typedef struct un_hulls_def {
    const un_groups *groups; /* over particles sorted along a curve */
    const float *radius;
    const uint8_t *flags;  /* ballistic particles count as spheres only; NULL: none is ballistic */
    const float *depth;    /* at particles: phi of the last step, negative inside, for choosing the
                              candidates; NULL: all are candidates */
    double reach;          /* l: a pair is joined within l (r_i + r_j) */
    double touch;          /* share of a radius by which spheres near the surface may be smaller or
                              larger, so that they touch where depth says it is. For output only: fed
                              back into a simulation the surface would flicker */
    bool sheets;           /* keep the pieces of the outside, for meshing it */
    const un_walls *walls; /* particles next to them are mirrored, so that hulls fill the gap; NULL:
                              none are */
    const struct un_slim *slim; /* particles that are drawn in another way, hulls.h; NULL: none */
    /* Of a rank that has some of all particles: the numbers of their first points among those of
     * all, and whose hulls connect them; NULL: it has all. */
    const uint32_t *number;
    const uint8_t *own;
    bool shared; /* all ranks call with the same, and share the work */
} un_hulls_def;

/* Counts before and after pruning, for docs and tests. */
typedef struct un_hulls_report {
    int64_t candidate_count, pair_count, triplet_count; /* before pruning */
    int64_t face_count, cone_count, sphere_count;       /* kept */
    int32_t resolution;                                 /* of the output mesh */
} un_hulls_report;

/* Finds the exposed faces, cones and spheres. The result keeps its own copies and belongs to the
 * caller. */
un_status un_hulls_create(un_context *ctx, un_arena *arena, const un_hulls_def *def,
                          un_hulls **hulls, un_hulls_report *report);
void un_hulls_destroy(un_hulls *hulls);
/* Signed distance to the union: exact outside, at least -r inside; `bound` if it is farther. */
double un_hulls_distance(const un_hulls *hulls, un_vec3 x, double bound);
/* The distance to the hull of three spheres, for tests. */
double un_hull_distance(const un_vec3 x[3], const double r[3], un_vec3 at);

/* phi at the nodes of a mesh: sign and crossings from the hulls in a band around the particles,
 * redistanced from there on both sides. Nodes without a crossing anywhere get +-INFINITY. */
un_status un_hulls_level_set(un_context *ctx, un_arena *arena, float *phi, const un_tets *mesh,
                             const un_hulls *hulls, const un_groups *groups, const float *radius,
                             const float *depth);

/* ---- level sets on tets ---- */

/* Makes phi a distance: nodes of cut tets keep sign and crossings and get distances to the linear
 * surface; all others get the distance found along the mesh (tet_distance.c). Over ranks, phi must
 * be and will be right at own nodes and ghosts. */
un_status un_tets_redistance(un_context *ctx, un_arena *arena, float *phi, const un_tets *mesh);
/* Volume where phi < 0, weighted with the open share of each tet (NULL: 1). thick: of these tets
 * only; NULL: of all. Over ranks, of all ranks; so is the number below. */
double un_tets_liquid_volume(un_context *ctx, const float *phi, const un_tets *mesh,
                             const float *open, const uint8_t *thick);
/* Number of tets that have a node where phi < 0. */
int64_t un_tets_wet_count(un_context *ctx, float *phi, const un_tets *mesh);

/* The level set of the simulation from the particles' volume at nodes (tet_level_set.c). */
typedef struct un_tet_level_set {
    float *phi, *colour; /* at nodes, set: the level set, m; the smoothed volume fraction */
    const float *volume; /* at nodes: of the particles, m3 */
    const un_tets *mesh;
    const un_tet_walls *walls;
    const un_markers *markers; /* grouped; read for hulls only */
    const bool *open_sides;    /* nodes there are air */
    bool hulls;                /* use the paper's union of hulls, for comparison */
} un_tet_level_set;
/* Empties the arena. Over ranks, volume must be right at own nodes. */
un_status un_surface_level_set_tets(un_context *ctx, un_arena *arena, const un_tet_level_set *def);

/* Moves particles until the level set matches the shape, where the shape is smooth (fit.c): call
 * begin, then move several times, sorting the particles and finding phi again after each, then
 * end. */
typedef struct un_surface_fit {
    un_markers *markers;
    const un_tets *mesh;
    const un_shape *shape;
    const un_walls *walls;
    const float *phi; /* at nodes */
    float *distance;  /* at nodes: to the shape, m */
    float *bent;      /* at nodes: how much that distance's gradient varies around them */
} un_surface_fit;
un_status un_surface_fit_begin(un_context *ctx, un_surface_fit *fit);
un_status un_surface_fit_move(un_context *ctx, un_surface_fit *fit);
void un_surface_fit_end(un_context *ctx, un_surface_fit *fit);

/* The same on leaves (leaf_fit.c). End after a begin that failed, too. */
typedef struct un_leaf_fit {
    un_markers *markers;
    const un_leaves *leaves;
    const un_shape *shape;
    const un_walls *walls;
    const float *phi; /* at leaves */
    float *distance;  /* at leaves: to the shape, m */
    float *bent;      /* at leaves: how much that distance's gradient varies around them */
    un_vec3 *slope;   /* at leaves: that gradient */
} un_leaf_fit;
un_status un_leaf_fit_begin(un_context *ctx, un_leaf_fit *fit);
void un_leaf_fit_move(un_context *ctx, un_leaf_fit *fit);
void un_leaf_fit_end(un_context *ctx, un_leaf_fit *fit);

/* Probes (probe_tets.c): the farthest point along an axis that a cube of two finest cells in the
 * liquid reaches, NaN if none fits; the height of the surface, searched from the top down, 0 where
 * dry. */
double un_probe_front_tets(un_context *ctx, const float *phi, const un_tets *mesh, int axis,
                           double sign);
double un_probe_height_tets(const float *phi, const un_tets *mesh, double x, double z);
/* The same over ranks; all ranks call them, and rank 0 gets to know. */
un_status un_probe_front_ranks(un_context *ctx, const float *phi, const un_tets *mesh, int axis,
                               double sign, double *front);
un_status un_probe_height_ranks(un_context *ctx, const float *phi, const un_tets *mesh, double x,
                                double z, double *height);

/* The same on leaves (leaf_flat.c). */
double un_probe_front_leaves(un_context *ctx, const float *phi, const un_leaves *leaves, int axis,
                             double sign);
double un_probe_height_leaves(const float *phi, const un_leaves *leaves, double x, double z);

/* The liquid's area in 2D, from the level set on a quadtree's leaves (leaf_flat.c). */
typedef struct un_leaf_flat {
    const un_leaves *leaves;
    const float *phi;           /* at leaves */
    const un_leaves_flow *flow; /* for velocities */
    const un_markers *markers;  /* with depths */
    const un_walls *walls;
    int32_t resolution; /* along the longest side */
    int32_t smoothing;  /* passes */
} un_leaf_flat;
un_status un_surface_mesh_flat(un_context *ctx, un_trimesh *mesh, const un_leaf_flat *in);

/* The zero surface as a closed, edge-manifold, outward-oriented mesh: marching tetrahedra, closed
 * in the brick's boundary with sharp edges (marching.c). Positions only. */
un_status un_tets_contour(un_context *ctx, un_arena *arena, const float *phi, const un_tets *mesh,
                          un_trimesh *surface);

/* ---- a surface that is carried from step to step (track.h) ---- */

#include "surface/track.h"

/* Passes of fairing that methods use, and for thick liquid. Thick liquid has no detail as small as
 * a cell, but the eye sees dents of a hundredth of one on it. */
#define UN_SMOOTHING 8
#define UN_SMOOTHING_THICK 64

/* The output surface of particles of many sizes: hulls on a mesh of its own, refined to
 * `resolution` around the surface where particles are that small, contoured, cut to walls and
 * solids, smoothed, with normals and velocities (hull_mesher.c). */
typedef struct un_hull_mesher {
    const un_particles *particles; /* sorted along a curve */
    const float *radius;
    const float *depth; /* as un_hulls_def */
    const un_walls *walls;
    un_vec3 size; /* of the domain */
    int32_t coarsest, resolution;
    int32_t smoothing; /* passes */
    double bytes_max;  /* memory limit: the resolution is lowered to stay within it; 0: none */
    /* All ranks call and share the work; rank 0 gets the mesh. Each gives the part `own` of its
     * particles, which are `range` of those of all; radius and depth too. */
    bool shared;
    un_part own;
    un_range range;
} un_hull_mesher;
un_status un_surface_mesh_hulls(un_context *ctx, un_trimesh *mesh, const un_hull_mesher *mesher,
                                un_hulls_report *report);

#endif
