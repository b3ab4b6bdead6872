/* Thin walls, as grids and tets ask for them; only mesh/ includes this. */
#ifndef UN_MESH_THIN_H
#define UN_MESH_THIN_H

#include "bodies/bodies.h"
#include "mesh/mesh.h"

/* Walls thinner than this many cells have two sides. */
#define UN_THIN 2.0
/* Distances below this share of a finest cell are a surface that coincides with a node up to
 * round-off. */
#define UN_SNAP 1e-6
/* A side's view of a node counts if it is deeper by this share of the cell. */
#define UN_DEEPER 0.02

/* The distance to the nearest of the bodies that move, or of those that stand still; at most
 * `most`. */
double un_thin_nearest(const un_bodies *bodies, un_vec3 x, bool moving, double most);
/* How thick the solid is behind the point of its surface next to x, which is at distance d; at most
 * `most`. h: the finest cell. still: bodies that move do not count. */
double un_thin_thickness(const un_bodies *bodies, bool still, un_vec3 x, double d, double h,
                         double most);
/* Does the way from a, at distance d from the solids, to b meet none of them? */
bool un_thin_sees(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d);
/* How deep b is in a wall or behind it, seen from a at distance d from the solids: negative, and
 * such that linear interpolation between the two is zero where the wall begins. h: the cell. */
double un_thin_depth(const un_bodies *bodies, un_vec3 a, un_vec3 b, double d, double h);

/* Is either leaf of a face next to a thin wall (leaf_parts.c)? At the rim of what this rank knows,
 * the one beyond does not count: nobody looks there. */
bool un_leaf_beside_thin(const un_leaves *leaves, int64_t face);

#endif
