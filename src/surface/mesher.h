/* What mesher.c and mesher_lattice.c share: the output surface on a lattice while it is made. */
#ifndef UN_SURFACE_MESHER_H
#define UN_SURFACE_MESHER_H

#include "surface/contour.h"
#include "surface/hulls.h"
#include "surface/offset.h"
#include "surface/surface.h"

/* What one of several ranks finds (mesher_ranks.c). Rows run along x and are numbered j + n_1 k. */
enum { UN_NODES_SAMPLED = 1, UN_NODES_LOOSE = 2, UN_NODES_OWN = 3 };
typedef struct un_mesher_part {
    uint8_t *nodes;    /* by row of the lattice: 0: nothing; the colour there; loose particles, too;
                        * it is this rank's */
    uint8_t *far;      /* by row of cells: rows to the nearest own one; UN_MESHER_FAR: more */
    int32_t band;      /* the band is found in rows of cells that are no farther */
    uint8_t *occupied; /* by cell: has particles */
    const int32_t *own; /* by particle: not negative if it is this rank's */
} un_mesher_part;
#define UN_MESHER_FAR 255

typedef struct un_lattice_mesher {
    un_context *ctx;
    const un_mesher *in;
    un_lattice lattice;
    uint8_t *band;    /* by simulation cell: 1 near the surface */
    uint8_t *touched; /* by node: a loose particle is near */
    float *radius;    /* by particle, m; 0: not loose */
    un_trimesh *mesh;
    /* of what flies, in 3D */
    un_arena arena;
    un_groups groups;
    float *size; /* by particle: its radius */
    un_slim slim;
    un_hulls *hulls; /* of sheets and threads; NULL: there are none */
    uint8_t *drop;   /* by particle: 1 if it is a drop by itself */
    /* by vertex, as in un_offset */
    float *loose, *held, *too_thick; /* held: not loose */
    uint8_t *still;
    int32_t *nearest;
    const un_mesher_part *part; /* of several ranks; NULL: this one makes all of it */
    un_pieces_weigh *weigh;     /* as un_pieces */
    void *weigh_arg;
} un_lattice_mesher;

/* The lattice of a grid, without values (mesher.c). */
void un_mesher_lattice(un_lattice *lattice, const un_grid *grid, int32_t resolution);
/* Samples the level set on the lattice (mesher_lattice.c). lattice.phi and radius are the
 * caller's. */
un_status un_mesher_sample(un_lattice_mesher *s);
/* The same in three: where, the colour and which particles are loose, and what these add. */
un_status un_mesher_find_band(un_lattice_mesher *s);
un_status un_mesher_find_colour(un_lattice_mesher *s);
void un_mesher_add_loose(un_lattice_mesher *s);
static inline bool un_mesher_skips(const un_lattice_mesher *s, int64_t row, uint8_t least)
{
    return s->part && s->part->nodes[row] < least;
}

/* The steps of the recipe that ranks share (mesher.c). What flies, once it has been found: */
bool un_mesher_is_clear(const un_lattice_mesher *s, un_vec3 x, double radius);
un_status un_mesher_find_thin(un_lattice_mesher *s, uint8_t *thin);
un_status un_mesher_smooth(un_lattice_mesher *s);
/* Velocities and what moves vertices, at those of s->mesh, which has no velocities yet. */
un_status un_mesher_look_around(un_lattice_mesher *s);
/* Volumes of pieces, drops. */
un_status un_mesher_fit_volume(un_lattice_mesher *s);
void un_mesher_free(un_lattice_mesher *s);
/* Radius, in steps of the lattice, of spheres whose sheet has no holes even where it lies between
 * the nodes: half of a cube's diagonal. */
#define UN_MESHER_DRAWN 0.87
/* How far from a vertex particles matter to it, in cells. */
#define UN_MESHER_REACH 1.0
/* ---- several ranks (mesher_ranks.c, mesher_flying.c, mesher_rank0.c) ---- */

/* All ranks call. */
un_status un_surface_mesh_ranks(un_context *ctx, un_trimesh *mesh, const un_mesher *in);

/* What a rank has of the surface while it is made. */
typedef struct un_mesher_region {
    un_context *ctx;
    const un_mesher *in;
    un_arena arena;
    un_lattice lattice; /* without values */
    /* by particle here, copies of others' too */
    uint32_t *id; /* their numbers among all */
    uint8_t *own, *drop;
    float *size, *radius;        /* as of un_lattice_mesher */
    int32_t *owner, *node_owner; /* ranks: by block, by row of the lattice */
    uint8_t *far, *nodes;        /* as of un_mesher_part */
    int32_t reach;               /* rows of cells around its own that it has nodes in */
    double largest;              /* size of a particle */
    /* own particles in sheets, threads and drops */
    int64_t slim_total; /* of all ranks */
    int32_t slim_count, *slim;
    un_slim_entry *entry; /* by number in that list */
    /* those of all ranks that are joined and near, in the order of their numbers */
    un_slim near;
    uint32_t *near_id;
    un_hulls *hulls; /* where any rank has such particles */
} un_mesher_region;
/* The rank that a place belongs to. */
int32_t un_mesher_owner(const un_mesher_region *r, un_vec3 x);
/* Finds what flies, and the hulls around this rank's part (mesher_flying.c). */
un_status un_mesher_find_flying(un_mesher_region *r);
/* By particle of a list in the order of numbers: its place among `near`; -1: none. */
void un_mesher_place_near(const un_mesher_region *r, int32_t *place, const uint32_t *id,
                          int32_t count);
/* How to look at what flies. */
un_slim_def un_mesher_slim_def(const un_mesher_region *r);

/* What rank 0 has of all particles: one that stands for the body, then those of thin liquid. */
typedef struct un_mesher_rank0 {
    un_mesher_region *r;
    un_particles particles;
    uint32_t *id;        /* of those of thin liquid */
    int32_t count, body; /* of these; 1 if there are others */
    bool alone;          /* a window failed here and nowhere else: the run ends */
} un_mesher_rank0;
/* In `nearest` of rank 0, whose vertices have the numbers of particles: none is there. */
#define UN_MESHER_NOBODY UINT32_MAX
/* Particles of thin liquid to rank 0, and pieces of their hulls; `nearest` gets places among these
 * (mesher_rank0.c). */
un_status un_mesher_gather_thin(un_mesher_region *r, un_lattice_mesher *s, un_mesher_rank0 *z);
/* As un_mesher_fit_volume, of all ranks' particles. */
un_status un_mesher_fit_volume_ranks(un_mesher_region *r, un_lattice_mesher *s, un_mesher_rank0 *z);

static inline const un_slim_entry *un_mesher_slim(const un_lattice_mesher *s, int64_t q)
{
    return s->slim.count && s->slim.place[q] >= 0 ? &s->slim.entry[s->slim.place[q]] : NULL;
}

static inline un_vec3 un_mesher_sphere(const un_lattice_mesher *s, int64_t q)
{
    const un_slim_entry *e = un_mesher_slim(s, q);
    return e && e->joined ? e->x : un_particle_position(s->in->particles, q);
}

/* All in simulation cells. A loose particle's full radius: the sphere of its volume (0.31 for an
 * eighth of a cell) a little enlarged, so that neighbours at the usual spacing of 0.5 join. */
#define LOOSE_RADIUS 0.34
/* The same in 2D: a disc of a quarter of a cell has 0.28, enlarged as much. */
#define LOOSE_RADIUS_FLAT 0.325
/* Full radius of a loose particle's sphere. From its volume: a half-full particle makes a smaller
 * drop. */
static inline double un_mesher_radius(const un_lattice_mesher *s, int64_t q)
{
    double h = s->in->grid->h, volume = s->in->particles->volume[q];
    if (s->in->grid->dim == 2) return LOOSE_RADIUS_FLAT * h * sqrt(4 * volume / (h * h));
    return LOOSE_RADIUS * h * cbrt(8 * volume / (h * h * h));
}

/* Distance to solids alone, exact where it matters. */
static inline double un_mesher_solid(const un_walls *walls, un_vec3 x)
{
    double near = 2 * walls->grid->h, d = near;
    if (walls->bodies->count == 0 || un_walls_distance(walls, x) > near) return near;
    un_bodies_nearest(walls->bodies, un_walls_place(walls, x), &d);
    return d;
}

/* Cells that overlap the ball around x. */
static inline void un_mesher_cells(const un_grid *g, un_vec3 x, double reach, int32_t lo[3],
                                   int32_t hi[3])
{
    double s[3] = {x.x - g->origin.x, x.y - g->origin.y, x.z - g->origin.z};
    lo[2] = hi[2] = 0;
    for (int a = 0; a < g->dim; a++) {
        lo[a] = un_clampi((int32_t)((s[a] - reach) / g->h), 0, g->n[a] - 1);
        hi[a] = un_clampi((int32_t)((s[a] + reach) / g->h), 0, g->n[a] - 1);
    }
}

#endif
