/* Geometry: shapes as signed distances, triangle meshes.
 *
 * Distances are negative inside. |distance| never exceeds the true distance to the boundary (it may
 * fall short of it for intersections and subtractions), so marching by it never passes a wall.
 * Shapes are immutable once made and may be evaluated from any thread. */
#ifndef UN_GEOMETRY_H
#define UN_GEOMETRY_H

#include "base/base.h"

/* ---- triangle meshes (trimesh.c, and one file per format) ---- */

/* Output surfaces use it too. normal and velocity may be NULL. */
typedef struct un_trimesh {
    int32_t vertex_count, triangle_count;
    un_vec3 *position;
    un_vec3 *normal;
    un_vec3 *velocity;
    int32_t (*triangle)[3];
} un_trimesh;

void un_trimesh_free(un_context *ctx, un_trimesh *mesh);
/* The format is found from the content, or from the suffix if the content does not tell: PLY
 * (ascii, binary little and big endian), OBJ, STL (ascii, binary), OFF. Faces of more than three
 * corners are fanned. Messages name the file and the line or byte. */
un_status un_trimesh_load(un_context *ctx, const char *path, un_trimesh *mesh);

typedef struct un_trimesh_report {
    int32_t open_edges;        /* edges with one triangle */
    int32_t nonmanifold_edges; /* edges with three or more, or two that run the same way */
    int32_t component_count;
    double volume; /* signed; negative: inverted */
    un_box3 bounds;
} un_trimesh_report;

/* Vertices at the same place count as one (STL has no shared vertices). */
un_status un_trimesh_examine(un_context *ctx, const un_trimesh *mesh, un_trimesh_report *report);

/* ---- shapes (shape.c) ---- */

typedef struct un_shape un_shape;
/* Owns every shape made from it; shapes may share parts. */
typedef struct un_shape_set un_shape_set;

un_shape_set *un_shape_set_create(un_context *ctx); /* NULL: no memory */
void un_shape_set_destroy(un_shape_set *set);

/* Sizes must be positive and finite: the scene checks them and has its own messages; here they are
 * asserted. */
un_status un_shape_box(un_shape_set *set, un_vec3 min, un_vec3 max, un_shape **shape);
un_status un_shape_sphere(un_shape_set *set, un_vec3 center, double radius, un_shape **shape);
un_status un_shape_cylinder(un_shape_set *set, un_vec3 from, un_vec3 to, double radius,
                            un_shape **shape);
un_status un_shape_capsule(un_shape_set *set, un_vec3 from, un_vec3 to, double radius,
                           un_shape **shape);
/* radius: of the ring's centre line; tube: of the tube. */
un_status un_shape_torus(un_shape_set *set, un_vec3 center, un_vec3 axis, double radius,
                         double tube, un_shape **shape);
/* The half space below the plane: (x - point).normal < 0 is inside. */
un_status un_shape_plane(un_shape_set *set, un_vec3 point, un_vec3 normal, un_shape **shape);
/* The mesh is copied. An inverted mesh (negative volume) is flipped; the inside of an open one
 * comes from the generalised winding number. report may be NULL. */
un_status un_shape_mesh(un_shape_set *set, const un_trimesh *mesh, un_shape **shape,
                        un_trimesh_report *report);
/* A distance sampled by the caller at the nodes of a grid, x fastest: values[i + n0 (j + n1 k)] at
 * origin + h (i, j, k). Any function that is negative inside will do. Where it is steeper than a
 * distance it is lowered without moving the surface; the result exceeds the true distance by no
 * more than a fifth of h (for features a few h wide). Outside the grid, the distance to a shape
 * that does not touch the grid's boundary keeps growing; a shape that touches the boundary
 * continues unchanged to infinity. The values are copied; one that is not finite is an error of the
 * scene. */
un_status un_shape_sampled(un_shape_set *set, const double *values, const int32_t n[3],
                           un_vec3 origin, double h, un_shape **shape);
un_status un_shape_union(un_shape_set *set, un_shape *const *parts, int32_t part_count,
                         un_shape **shape);
un_status un_shape_intersect(un_shape_set *set, un_shape *const *parts, int32_t part_count,
                             un_shape **shape);
/* The first part minus all others. */
un_status un_shape_subtract(un_shape_set *set, un_shape *const *parts, int32_t part_count,
                            un_shape **shape);
un_status un_shape_move(un_shape_set *set, const un_shape *part, const un_pose *pose,
                        un_shape **shape);

double un_shape_distance(const un_shape *shape, un_vec3 x);
/* Unit gradient of the distance, outwards; where there is none (a centre), any unit vector. */
un_vec3 un_shape_normal(const un_shape *shape, un_vec3 x);
/* Where the straight way from a, which is outside, to b enters the shape: *share of it, INFINITY if
 * it does not. False if the shape cannot tell at once: only closed meshes can, and unions of them.
 */
bool un_shape_entry(const un_shape *shape, un_vec3 a, un_vec3 b, double *share);
/* The triangles of a mesh from a file, moved or not, counter-clockwise from outside; other shapes
 * have none. */
int32_t un_shape_triangle_count(const un_shape *shape);
void un_shape_triangle(const un_shape *shape, int32_t t, un_vec3 x[3]);
/* Contains every inside point; the sides of planes and other infinite shapes are infinite. */
un_box3 un_shape_bounds(const un_shape *shape);
/* The area of the shape's shadow along a direction, of its part in [0, size], m2; in 2D (size.z is
 * 0) its width, m (shadow.c). */
double un_shape_shadow(un_context *ctx, const un_shape *shape, un_vec3 along, un_vec3 size);
/* The largest depth below the surface found on a lattice of so many samples a side over the part of
 * the shape's box in [0, size]; with `other`, of what is in both (depth.c). 0: nothing is there. */
double un_shape_depth(un_context *ctx, const un_shape *shape, const un_shape *other, un_vec3 size,
                      int32_t samples);
/* The thickness of the shape's thinnest walls in [0, size], if that is below the limit, to a
 * fifteenth of it; otherwise infinite. Rims and tips do not count. */
double un_shape_thickness(un_context *ctx, const un_shape *shape, un_vec3 size, double limit,
                          int32_t samples);
/* Has it a finite size, and no mesh with holes? (mass.c) */
bool un_shape_is_closed(const un_shape *shape);
/* What a body of the shape and of density 1 weighs; in 2D by area (mass.c). */
typedef struct un_shape_sums {
    double volume; /* m3; 2D: m2 */
    un_vec3 centre;
    double inertia[3][3]; /* about the centre, m5; 2D: [2][2] alone counts, m4 */
} un_shape_sums;
/* False if the shape is endless or empty. */
bool un_shape_mass(const un_shape *shape, int32_t dim, un_shape_sums *sums);
/* Points spread over the surface, corners of boxes first; returns how many. 0 if it is endless. */
#define UN_SHAPE_POINTS 768
int32_t un_shape_points(const un_shape *shape, int32_t dim, un_vec3 *x, int32_t room);
/* Distances of many points: mesh shapes are faster on runs of points that are close together. */
void un_shape_distances(const un_shape *shape, const un_vec3 *x, int32_t count, double *distance);

#endif
