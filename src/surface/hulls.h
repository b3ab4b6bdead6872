/* Internals of the union of hulls, shared by construction, pruning and evaluation. */
#ifndef UN_SURFACE_HULLS_H
#define UN_SURFACE_HULLS_H

#include "ranks/ranks.h"
#include "surface/boxes.h"
#include "surface/cut.h"
#include "surface/surface.h"

/* Roles of a point. */
enum {
    UN_HULL_HELPER = 1, /* takes part in the tests */
    UN_HULL_OWNER = 2,  /* has hulls; a helper too */
    UN_HULL_ALONE = 4,  /* a sphere, joined to nothing */
    UN_HULL_IMAGE = 8   /* mirror image of a particle behind a wall */
};

/* The particles that matter, along the curve, each followed by its images in walls. */
typedef struct un_hull_points {
    int32_t count;
    double *x[3];
    float *radius; /* of its sphere */
    float *size;   /* radius of its particle: decides which points are joined */
    uint8_t *role;
    int32_t *particle; /* the particle that it is, or is the image of */
    uint32_t *number;  /* among all points, as un_hulls_def.number; NULL: these are all */
    double reach;
    un_groups groups;
} un_hull_points;

/* Three points each; a cone repeats its last, a sphere its only one. sides: bit 0, the face on the
 * side of (x1 - x0) x (x2 - x0) is exposed; bit 1, the other. */
typedef struct un_hull_entry {
    int32_t corner[3];
    int32_t sides;
} un_hull_entry;
typedef struct un_hull_list {
    int64_t count;
    un_hull_entry *entry;
} un_hull_list;

/* The points that a particle with an entry makes: itself, and its images (hulls.c). */
int32_t un_hull_points_of(const un_hulls_def *def, int64_t q);

/* The exposed hulls, in the order of the points (hulls_prune.c). From the arena. */
un_status un_hulls_prune(un_context *ctx, un_arena *arena, const un_hull_points *points,
                         bool shared, un_hull_list *list, un_hulls_report *report);

/* Eight hulls, each in the frame of its triangle: origin and axes e1 (along its first side), e2,
 * e3.
 */
typedef struct un_hull_block {
    double origin[3][8];
    float e1[3][8], e2[3][8], e3[3][8];
    float u1[8], u2[8], v2[8]; /* the corners are (0, 0), (u1, 0), (u2, v2) */
    float b1[8], b2[8], c2[8]; /* barycentric: b1 u - c2 v, b2 v; NaN: no face */
    float r0[8], gu[8], gv[8]; /* radius r0 + gu u + gv v */
    float slide[8];            /* 1 / sqrt(1 - |g|^2) */
    /* sides, from the first corner to the second, the third, and from the second to the third */
    float dir[3][2][8], length[3][8], r[3][8], k[3][8], w[3][8];
} un_hull_block;

typedef struct un_hull_shape {
    un_vec3 x[3];
    double r[3];
} un_hull_shape;
void un_hull_block_set(un_hull_block *block, int32_t lane, const un_hull_shape *shape);

/* A piece of the outside: an exposed face, between the points where it touches the spheres; or the
 * axis of a cone or sphere. */
typedef struct un_hull_sheet {
    float x[3][3];
    float size;   /* of the smallest particle */
    float radius; /* around an axis; 0: a face */
    float leaf;   /* largest leaf that draws it, in a thread or sheet; else 0 */
} un_hull_sheet;

struct un_hulls {
    un_context *ctx;
    int64_t count; /* of hulls */
    int64_t block_count;
    un_hull_block *blocks;
    un_boxes boxes;        /* over the hulls: of the centres, and the largest radius */
    un_range own;          /* over ranks: blocks of this one, an even part */
    uint8_t *here;         /* over ranks, by block: it and its boxes are here; NULL: all are */
    un_hull_sheet *sheets; /* if wanted; over ranks, of own blocks */
    int64_t sheet_count;
    float *depth;   /* at the particles, if they came without depths; else NULL */
    int32_t *piece; /* at the particles, if thin ones were given: one of those connected to it
                       through hulls, the same for all of them; over ranks, on rank 0 */
};

/* ---- spheres under the shell of hulls (hull_balls.c) ---- */

typedef struct un_hull_balls {
    const un_groups *groups;     /* of particles */
    const float *radius, *depth; /* of these; depth NULL: no spheres */
    const un_walls *walls;       /* NULL: no solids */
    float *r;                    /* of their spheres; 0: none */
    un_boxes boxes;              /* over the groups: boxes of their spheres */
} un_hull_balls;
/* The first four are given; the others come from the arena. */
un_status un_hull_balls_build(un_context *ctx, un_arena *arena, un_hull_balls *balls);
/* A particle whose sphere contains x, -1: none. */
int64_t un_hull_balls_at(const un_hull_balls *balls, un_vec3 x);
static inline bool un_hull_balls_hold(const un_hull_balls *balls, int64_t q, un_vec3 x)
{
    const un_groups *g = balls->groups;
    double dx = g->x[0][q] - x.x, dy = g->x[1][q] - x.y, dz = g->x[2][q] - x.z, r = balls->r[q];
    return dx * dx + dy * dy + dz * dz < r * r;
}

/* ---- sheets, threads and drops (slim.c) ---- */

/* How a particle in thin liquid is drawn. */
typedef struct un_slim_entry {
    un_vec3 x;     /* middle of its sphere */
    float radius;  /* of its sphere */
    float size;    /* decides what it is joined to */
    float lonely;  /* 1: nothing is near; 0: something touches it */
    float stretch; /* of a drop along its motion: 0 none, 1 most */
    bool joined;   /* else a drop */
    bool body;     /* of liquid that is not thin after all: only its sphere differs */
    float inset;   /* how far the surface is to move inwards once it is drawn */
    float leaf;    /* largest leaf that draws it, if it is of a thread or sheet; else 0 */
} un_slim_entry;
typedef struct un_slim {
    int32_t count;
    int32_t *particle; /* by entry, ascending */
    int32_t *place;    /* by particle: its entry; -1: none */
    un_slim_entry *entry;
} un_slim;
typedef struct un_slim_def {
    const un_particles *particles;
    const un_groups *groups;
    const float *radius,
        *depth;            /* depth may be NULL: then what flies is thin, and what `thin` says */
    uint8_t *thin;         /* by particle, NULL: none */
    const un_walls *walls; /* NULL: none */
    un_vec3 size, gravity; /* of the domain */
    double reach;          /* l, as un_hulls_def */
    float touch;           /* as un_hulls_def */
    double leaf;           /* edge of the mesh's finest leaves, m; 0: it is a lattice */
    double drawn;          /* radius of spheres whose sheet those draw without holes, m */
    bool drawn_all;        /* threads and spray are that thick, too: they get no finer leaves */
    bool shared;           /* all ranks call with the same */
} un_slim_def;
/* Finds the particles of thin liquid and how to draw them. From the arena. */
un_status un_slim_find(un_context *ctx, un_arena *arena, un_slim *slim, const un_slim_def *def);

/* The same step by step, for one particle each and without depths. Neighbours within UN_SLIM_REACH
 * radii tell how to draw a particle; UN_SLIM_SIZE_MOST: the largest size, in radii. */
#define UN_SLIM_REACH 7.0
#define UN_SLIM_SIZE_MOST 1.7
bool un_slim_is(const un_slim_def *def, int64_t q);
static inline bool un_slim_flies(const un_particles *p, int64_t q)
{
    return (p->flags[q] & UN_PARTICLE_APART) == UN_PARTICLE_BALLISTIC;
}
void un_slim_shape(const un_slim_def *def, int64_t q, un_slim_entry *entry);
/* Is a particle that flies joined to one at x of this size? */
static inline bool un_slim_touches(const un_slim_entry *e, double reach, un_vec3 x, double size)
{
    double with = reach * (e->size + size);
    un_vec3 to = un_sub(x, e->x);
    return un_dot(to, to) < with * with;
}
/* Makes a drop of one that is joined to nothing. Its radius, in that of its volume, counts for the
 * scale of all drops, which goes by all of them in their order. */
typedef struct un_slim_drops {
    double volume, drawn;
} un_slim_drops;
double un_slim_drop(const un_slim_def *def, int64_t q, un_slim_entry *entry);
void un_slim_add_drop(un_slim_drops *drops, float volume, double radius);
float un_slim_scale(const un_slim_drops *drops);

/* Radius with which a particle's sphere touches the surface at this depth, or as near to that as
 * `touch` allows (hulls.c). */
float un_hull_touching(float radius, float depth, float touch);

/* ---- drops as spheres (spheres.c) ---- */

/* A sphere of a particle's volume, in its radii: cbrt(6 / pi). */
#define UN_HULL_DROP 1.2407009817988f
/* Distance of the farthest corner of its mesh from its middle, in radii of the sphere. */
#define UN_SPHERE_CORNER 1.19

/* Longest axis of the ellipsoid of a stretched drop, in radii of its sphere. */
#define UN_DROP_LONGEST 1.25

/* Drops below this radius, in leaves, are coarse. */
#define UN_DROP_FINE 0.75

typedef struct un_drop {
    un_vec3 x, velocity;
    double radius;
    double stretch; /* as in un_slim_entry */
} un_drop;
/* Appends drops to a mesh with normals and velocities, coarser for radii below `small`. Each has
 * the volume of a sphere of its radius. */
un_status un_surface_add_drops(un_context *ctx, un_arena *arena, un_trimesh *mesh,
                               const un_drop *drops, int32_t count, double small);

/* ---- distances ---- */

/* As un_hulls_distance, but inside any negative value may be returned. direction, unless NULL: the
 * gradient of the distance, zero where unknown. */
double un_hulls_sign(const un_hulls *hulls, un_vec3 x, double bound, un_vec3 *direction);

/* The hulls within reach of a box, for many evaluations inside it. */
#define UN_HULL_LOCAL_MAX 64
typedef struct un_hull_local {
    const un_hulls *hulls;
    int32_t count; /* more than fit: all hulls are evaluated */
    un_hull_block block[UN_HULL_LOCAL_MAX / 8];
} un_hull_local;
void un_hulls_gather(const un_hulls *hulls, un_box3 box, double reach, un_hull_local *local);
/* As un_hulls_sign, but for these hulls only, and exact inside too unless there are too many. */
double un_hull_local_distance(const un_hull_local *local, un_vec3 x, double bound,
                              un_vec3 *direction);

/* Over ranks: marks the blocks that those two may look at, for this box and reach or less; then all
 * ranks get those they have marked. Others must not be looked at (hulls_fetch.c). */
void un_hulls_want(const un_hulls *hulls, un_box3 box, double reach, uint8_t *want);
un_status un_hulls_fetch(const un_hulls *hulls, const uint8_t *want);

/* ---- several ranks make one output surface (hull_ranks.c) ---- */

/* For loops whose last bits depend on where blocks begin, over elements that ranks hold in ranges:
 * those of this rank, and copies of others that make its first and its last block whole. */
typedef struct un_blocks {
    un_context *ctx;
    un_range own;
    int64_t begin, end; /* with the copies */
    un_exchange *halo;
    char *arrived;
    size_t room;
} un_blocks;
/* blocks: zero. Free it whatever the status. */
un_status un_blocks_create(un_context *ctx, un_blocks *blocks, un_range own, int64_t grain);
void un_blocks_free(un_blocks *blocks);
/* Arrays of the elements begin to end, this rank's own set: sets the copies. `to` of the fields is
 * not used. */
un_status un_blocks_share(un_blocks *blocks, const un_field *fields, int32_t count);

/* What this rank computes of `count` elements that all ranks have, or without ranks all. */
static inline un_part un_hulls_part(const un_context *ctx, bool shared, int64_t count)
{
    return shared ? un_ranks_even(ctx, count) : (un_part){0, count};
}
/* A failure of one rank is one of all. */
static inline un_status un_hulls_agree(un_context *ctx, bool shared, un_status status)
{
    return shared ? un_ranks_agree(ctx, status) : status;
}
/* Brings to all what each has computed of its part. */
static inline void un_hulls_spread(un_context *ctx, bool shared, int64_t count, void *array,
                                   size_t size)
{
    if (shared) un_ranks_spread_even(ctx, count, array, size);
}

/* The surface of hulls on a mesh (hull_level_set.c). */
typedef struct un_hulls_cut_def {
    const un_tets *mesh; /* may be stripped */
    const un_tet_graph *graph;
    const un_hulls *hulls;
    const un_groups *groups;
    const float *radius, *depth; /* depth may be NULL */
    const un_walls *walls;       /* their solids cut the liquid; NULL: none do */
} un_hulls_cut_def;
/* Finds cut tets and edges with their crossings, not yet triangulated. The cut goes to one arena,
 * temporaries to the other. phi: room for a value per node, set to -1 in liquid, 1 elsewhere. Over
 * ranks: around this rank's own nodes. */
un_status un_hulls_cut(un_context *ctx, un_arena *arena, un_arena *scratch,
                       const un_hulls_cut_def *def, float *phi, un_cut *cut);

#endif
