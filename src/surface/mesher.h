/* What mesher.c and mesher_lattice.c share: the output surface on a lattice while it is made. */
#ifndef UN_SURFACE_MESHER_H
#define UN_SURFACE_MESHER_H

#include "surface/contour.h"
#include "surface/hulls.h"
#include "surface/surface.h"

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
} un_lattice_mesher;

/* The lattice of a grid, without values (mesher.c). */
void un_mesher_lattice(un_lattice *lattice, const un_grid *grid, int32_t resolution);
/* Samples the level set on the lattice (mesher_lattice.c). lattice.phi and radius are the
 * caller's. */
un_status un_mesher_sample(un_lattice_mesher *s);

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
