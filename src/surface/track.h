/* A surface that a velocity field carries: semi-Lagrangian contouring [Chentanez07 section 3.2,
 * after Strain and Bargteil]. Included through surface.h. */
#ifndef UN_SURFACE_TRACK_H
#define UN_SURFACE_TRACK_H

#include "bodies/bodies.h"
#include "mesh/mesh.h"

/* The surface is a triangle mesh with one vertex on each lattice edge that it crosses. The lattice
 * reaches UN_TRACK_MARGIN cells beyond the box on each side, and there the mesh is open. phi at the
 * lattice's nodes is a distance near the surface, and +-reach elsewhere. */
#define UN_TRACK_MARGIN 6

#define UN_TRACK_BLOCK 4
/* Cubes of a row that one entry of un_track.stretch is for. */
#define UN_TRACK_STRETCH 4

typedef struct un_track {
    un_context *ctx;
    int32_t cells[3]; /* of the box, without the margin */
    un_lattice lattice;
    float *spare;     /* for the next phi */
    double h;         /* the smallest of lattice.h */
    double reach;     /* m: within it distances are exact */
    un_trimesh mesh;  /* with normals; no velocities */
    int64_t *edge;    /* by vertex: 3 node + axis of its lattice edge */
    int32_t *stretch; /* by stretch of cubes along x: its first triangle; one more at the end */
    float *half;      /* by vertex: half of the thickness below it, m; INFINITY from 1.2 cells on */
    float *fill; /* by vertex: the share of what is below it that is liquid; 1: not thickened */
    /* By block of UN_TRACK_BLOCK cubes a side: how far the surface is at least, m. */
    float *far;
    int32_t blocks[3];
    int32_t *column; /* by triangle: the cube along x */
} un_track;

/* A function of place, m: negative inside. Threads call it at once. */
typedef double un_track_shape(const void *arg, un_vec3 x);

/* cells: along the longest side of the box [0, size]. */
un_status un_track_init(un_track *track, un_context *ctx, un_vec3 size, int32_t cells);
void un_track_free(un_track *track);
/* The surface where the function is zero. */
un_status un_track_begin(un_track *track, un_track_shape *shape, const void *arg);
/* For checkpoints: each vertex's coordinate along its edge, m; and the mesh from these, their fill
 * and phi. */
void un_track_places(const un_track *track, double *at);
un_status un_track_restore(un_track *track, const double *at, const float *fill, int64_t count);

/* The signed distance to the surface; beyond `reach` it may be less. hint: a triangle to begin
 * with, -1 none; then the nearest one. Curved between vertices by their normals. */
double un_track_distance(const un_track *track, un_vec3 x, int32_t *hint);
/* The same at any points of a mesh of many sizes: exact up to `within` times the size of each
 * point,
 * +-INFINITY beyond. */
typedef struct un_track_points {
    int64_t count;
    const un_vec3 *x;
    const uint8_t *level; /* of the points */
    const double *size;   /* by level, m */
    double within;
} un_track_points;
void un_track_to_points(un_context *ctx, float *phi, const un_track *track,
                        const un_track_points *points);

/* Update `far` and `half`; un_track_begin, _restore and _advance do. */
void un_track_find_far(un_track *track);
void un_track_find_half(un_track *track);

/* How far the surface moves outwards at each vertex, m, and its fill then; NULL: nobody asks. */
typedef struct un_track_growth {
    float *more, *fill;
} un_track_growth;
/* What makes thin liquid as thick as the lattice needs, by at most `most` (track_thick.c). solid:
 * as in un_track_motion. */
un_status un_track_plan_growth(const un_track *track, un_arena *arena, const float *solid,
                               double most, un_track_growth *growth);
/* The distance to the surface that has grown so, and the fill there. */
double un_track_grown(const un_track *track, un_vec3 x, int32_t *hint,
                      const un_track_growth *growth, double *fill);
/* The fill of the surface nearest to x. */
double un_track_fill(const un_track *track, un_vec3 x);
/* The point of the surface nearest to x; x itself if there is none within reach. */
un_vec3 un_track_foot(const un_track *track, un_vec3 x, int32_t *hint);

typedef struct un_track_motion {
    const void *arg;
    /* Where the liquid at x was at the start of the step. False: x is out of bounds, and the
     * surface there stays as it is. */
    bool (*back)(const void *arg, un_vec3 x, un_vec3 *foot);
    /* Where the liquid at x goes; a cell's error does not matter. */
    un_vec3 (*ahead)(const void *arg, un_vec3 x);
    /* What else becomes of phi at x, m. NULL: nothing. */
    double (*change)(const void *arg, un_vec3 x, double phi);
    /* How far inside a void phi is at least, m, at x, which was at foot. NULL: there are none. */
    double (*emptied)(const void *arg, un_vec3 x, un_vec3 foot);
    const un_box3 *change_in; /* where these may move the surface */
    int32_t change_count;
    /* How much more the new surface should move outwards than the shift that it has, m; 0: not at
     * all. NULL: nobody asks. */
    double (*missing)(const void *arg, const un_track *next, double shift);
    double shift;   /* m: the surface moves outwards by it */
    double thicken; /* m: and by up to this much more where liquid is too thin for the lattice */
    const float *solid; /* the distance to solids at the lattice's nodes; NULL: there are none */
} un_track_motion;

/* Carries the surface through a step. */
un_status un_track_advance(un_track *track, un_arena *arena, const un_track_motion *motion);

/* A function at the lattice's nodes, m, at most +-3 cells. */
void un_track_sample(const un_track *track, float *value, un_track_shape *shape, const void *arg);

/* solid: the distance to solids at the lattice's nodes, negative inside; NULL: none. What
 * thickening added does not count. */
double un_track_area(const un_track *track, const float *solid);   /* of the free surface, m2 */
double un_track_volume(const un_track *track, const float *solid); /* in the box, m3 */
/* What flows out of the box through a side (0 to 5: lower and upper end of x, y, z), m3/s. */
typedef un_vec3 un_track_velocity(const void *arg, un_vec3 x);
double un_track_outflow(const un_track *track, const float *solid, int side,
                        un_track_velocity *velocity, const void *arg);

/* The farthest place along an axis that a cube of four cells in the liquid reaches, NaN if there is
 * none (track_probe.c). */
double un_track_front(const un_track *track, const float *solid, int axis, double sign);
/* The same of liquid that lies on a floor, however thin; the height of the surface, searched from
 * the top down, 0 where dry. */
double un_track_wet(const un_track *track, const float *solid, un_vec3 gravity, int axis,
                    double sign);
double un_track_height(const un_track *track, const un_bodies *bodies, double x, double z);

/* The surface cut to the box and to what lies outside solids: closed, with normals. Vertices of the
 * free part are those of the carried mesh. */
un_status un_track_output(const un_track *track, un_arena *arena, const float *solid,
                          un_trimesh *mesh);

/* ---- with walls (track_walls.c) ---- */

typedef struct un_track_walls {
    const un_bodies *bodies;
    un_vec3 size;     /* of the domain */
    const bool *open; /* its sides: nothing ends there */
    /* By body, m: by how much the mesh takes it for thicker on each side, where its walls are too
     * thin to part tets; 0 elsewhere. And how deep the surface goes on in its walls. NULL: there
     * are no bodies. */
    const double *grown, *deep;
    const double *thick; /* by body, m: how thick its thinnest part is; NULL: nobody asks */
    un_vec3 gravity;     /* liquid at rest is level across walls */
} un_track_walls;
/* The nearest point that is at least `inset` away from closed sides and bodies. */
un_vec3 un_track_into(const un_track_walls *walls, un_vec3 x, double inset);
/* The way from the nearest open point to x, or to what speaks for it where x lies deep in a wall.
 */
un_vec3 un_track_way(const un_track_walls *walls, un_vec3 x, un_vec3 open);
/* The surface of a union of shapes, continued through walls. */
un_status un_track_start(un_track *track, const un_shape *const *shapes, int32_t shape_count,
                         const un_track_walls *walls);
/* At points, as far as un_track_points says, INFINITY beyond: the distance to bodies and closed
 * sides, to bodies alone, and the thickness of the nearest one. The last two may be NULL. */
typedef struct un_track_near_walls {
    float *wall, *solid, *narrow;
} un_track_near_walls;
void un_track_walls_to_points(un_context *ctx, const un_track_near_walls *out,
                              const un_track_walls *walls, const un_track_points *points);
/* The distance to the bodies, negative inside; NULL as a shape's arg has no bodies. */
double un_track_solid(const void *bodies, un_vec3 x);
typedef struct un_track_stuffing {
    const un_track *track;
    const un_bodies *bodies;
    const double *grown; /* as in un_track_walls */
    double thicken;      /* the share by which liquid too thin for tets is thickened, 0 to 1 */
    /* Leaves have different sizes along the surface too: those wanted at the nodes of another mesh,
     * or as in a tree of before. NULL: leaves along the surface are the finest. */
    const un_tets *sized;
    const float *size;
    const un_octree_request *leaves;
} un_track_stuffing;
/* Tets in the liquid and outside bodies. */
un_status un_track_stuff(un_stuffing *mesh, un_arena *arena, const un_track_stuffing *def);

static inline int64_t un_track_node_count(const un_track *track)
{
    const int32_t *n = track->lattice.n;
    return (int64_t)n[0] * n[1] * n[2];
}
/* Stretches of cubes, by row j + n[1] k and column i. */
static inline int64_t un_track_stretch(const un_track *track, int64_t row, int32_t i)
{
    return row * (track->lattice.n[0] / UN_TRACK_STRETCH + 1) + i / UN_TRACK_STRETCH;
}
static inline int64_t un_track_stretch_count(const un_track *track)
{
    return un_track_stretch(track, (int64_t)track->lattice.n[1] * track->lattice.n[2], 0);
}
static inline un_vec3 un_track_node(const un_track *track, int32_t i, int32_t j, int32_t k)
{
    const un_lattice *l = &track->lattice;
    return un_v3(l->origin.x + l->h[0] * i, l->origin.y + l->h[1] * j, l->origin.z + l->h[2] * k);
}

#endif
