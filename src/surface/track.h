/* A surface that a velocity field carries: semi-Lagrangian contouring [Chentanez07 section 3.2,
 * after Strain and Bargteil]. Included through surface.h. */
#ifndef UN_SURFACE_TRACK_H
#define UN_SURFACE_TRACK_H

#include "base/base.h"

/* The surface is a triangle mesh with one vertex on each lattice edge that it crosses. The lattice
 * reaches UN_TRACK_MARGIN cells beyond the box on each side, and there the mesh is open. phi at the
 * lattice's nodes is a distance near the surface, and +-reach elsewhere. */
#define UN_TRACK_MARGIN 6

typedef struct un_track {
    un_context *ctx;
    int32_t cells[3]; /* of the box, without the margin */
    un_lattice lattice;
    float *spare;    /* for the next phi */
    double h;        /* the smallest of lattice.h */
    double reach;    /* m: within it distances are exact */
    un_trimesh mesh; /* with normals; no velocities */
    int64_t *edge;   /* by vertex: 3 node + axis of its lattice edge */
    int32_t *row;    /* by row of cubes: its first triangle; one more at the end */
    int32_t *column; /* by triangle: the cube along x */
} un_track;

/* A function of place, m: negative inside. Threads call it at once. */
typedef double un_track_shape(const void *arg, un_vec3 x);

/* cells: along the longest side of the box [0, size]. */
un_status un_track_init(un_track *track, un_context *ctx, un_vec3 size, int32_t cells);
void un_track_free(un_track *track);
/* The surface where the function is zero. */
un_status un_track_begin(un_track *track, un_arena *arena, un_track_shape *shape, const void *arg);
/* The mesh from phi and the vertices' places on their edges, as a checkpoint holds them. */
un_status un_track_restore(un_track *track, const double *at, int64_t count);

/* The signed distance to the surface, at most `reach`. hint: a triangle to begin with, -1 none;
 * then the nearest one. Curved between vertices by their normals. */
double un_track_distance(const un_track *track, un_vec3 x, int32_t *hint);

typedef struct un_track_motion {
    const void *arg;
    /* Where the liquid at x was at the start of the step. False: x is out of bounds, and the
     * surface there stays as it is. */
    bool (*back)(const void *arg, un_vec3 x, un_vec3 *foot);
    /* Where the liquid at x goes; a cell's error does not matter. */
    un_vec3 (*ahead)(const void *arg, un_vec3 x);
    /* What else becomes of phi at x, m. NULL: nothing. */
    double (*change)(const void *arg, un_vec3 x, double phi);
    const un_box3 *change_in; /* where that may move the surface */
    int32_t change_count;
    double shift; /* m: the surface moves outwards by it */
} un_track_motion;

/* Carries the surface through a step. */
un_status un_track_advance(un_track *track, un_arena *arena, const un_track_motion *motion);

/* A function at the lattice's nodes, m, at most +-3 cells. */
void un_track_sample(const un_track *track, float *value, un_track_shape *shape, const void *arg);

/* solid: the distance to solids at the lattice's nodes, negative inside; NULL: none. */
double un_track_area(const un_track *track, const float *solid);   /* of the free surface, m2 */
double un_track_volume(const un_track *track, const float *solid); /* in the box, m3 */

/* The surface cut to the box and to what lies outside solids: closed, with normals. Vertices of the
 * free part are those of the carried mesh. */
un_status un_track_output(const un_track *track, un_arena *arena, const float *solid,
                          un_trimesh *mesh);

static inline un_vec3 un_track_node(const un_track *track, int32_t i, int32_t j, int32_t k)
{
    const un_lattice *l = &track->lattice;
    return un_v3(l->origin.x + l->h[0] * i, l->origin.y + l->h[1] * j, l->origin.z + l->h[2] * k);
}

#endif
