/* The cells around the surface, with room beyond the domain; private to src/tension. */
#ifndef UN_TENSION_LATTICE_H
#define UN_TENSION_LATTICE_H

#include "tension/tension.h"

/* Cells from the surface, along each axis, to which distances are found: S twice and differences
 * reach as far. */
#define UN_BAND 5
/* Cells of the lattice beyond those of the grid. */
#define UN_LATTICE_PAD 5

/* Places are in cells, centres at integers; cell i of the grid is cell i + pad[axis]. */
typedef struct un_tension_lattice {
    un_context *ctx;
    const un_tension_grid *in;
    const un_warp *warp; /* the grid is its reference space; NULL: the grid is in space */
    int32_t dim, n[3], pad[3];
    int64_t stride[3], count;
    double low[3], high[3]; /* the domain's sides */
    float *phi, *scratch;   /* in cells; negative is liquid */
    uint8_t *near;          /* UN_NEAR: next to the surface; UN_BESIDE: in the band; 0 */
    float *own;             /* for angles: phi before them */
    uint8_t *beyond;        /* and 1 where it goes on in a wall */
    uint8_t *mark;          /* UN_MAY_BE_SOLID, UN_OWN_LEVEL, on octrees; NULL: all are both */
    /* The band: */
    int32_t *number; /* by cell: its number, -1 none */
    int32_t band_count, *cell;
    float (*foot)[3], (*foot_next)[3]; /* the nearest point of the surface */
    uint8_t *pass;                     /* in which it was found */
    uint8_t now;
    float *d[3];   /* distance, then smoothed */
    float *way[3]; /* on a grid that warps: from the place in reference space to that in space, in
                    * cells, smoothed like the distance */
} un_tension_lattice;
enum { UN_BESIDE = 1, UN_NEAR = 2 };
enum { UN_MAY_BE_SOLID = 1, UN_OWN_LEVEL = 2 };

static inline void un_lattice_place(const un_tension_lattice *l, int64_t c, double x[3])
{
    x[0] = (double)(c % l->stride[1]);
    x[1] = (double)(c / l->stride[1] % l->n[1]);
    x[2] = l->dim == 2 ? 0 : (double)(c / l->stride[2]);
}
/* The same in the world. */
static inline un_vec3 un_lattice_world(const un_tension_lattice *l, const double x[3])
{
    const un_grid *g = l->in->grid;
    return un_v3(g->origin.x + g->h * (x[0] - l->pad[0] + 0.5),
                 g->origin.y + g->h * (x[1] - l->pad[1] + 0.5),
                 g->origin.z + g->h * (l->dim == 2 ? g->half[2] : x[2] - l->pad[2] + 0.5));
}
/* On a grid that warps: the cell of the grid, -1 in the lattice's own; where a place is, with the
 * map there, which goes on beyond the domain as its mirror image; and back into the domain, from a
 * place nearby (warp.c). */
int64_t un_lattice_grid_cell(const un_tension_lattice *l, int64_t c);
un_warp_point un_lattice_map(const un_tension_lattice *l, const double x[3]);
void un_lattice_find(const un_tension_lattice *l, un_vec3 at, const double near[3], double x[3]);
/* The size of a cell there, over that in reference space. */
static inline double un_lattice_size(const un_warp_point *p, int dim)
{
    double det = fabs(un_warp_det(p));
    return dim == 2 ? sqrt(det) : cbrt(det);
}
/* phi at a place, multilinear, and its gradient; places outside count at the boundary. */
double un_lattice_sample(const un_tension_lattice *l, const double x[3], double gradient[3]);

/* Makes room for phi, scratch, near and number. */
un_status un_lattice_allocate(un_tension_lattice *l, un_arena *arena);
/* From phi on the grid to a smoothed distance, ready for curvatures (grid.c). */
un_status un_lattice_prepare(un_tension_lattice *l, un_arena *arena);
/* Smooths the distance d[0]; then the curvature at a cell of the band, 1/cells (grid.c). */
void un_lattice_sharpen(un_tension_lattice *l);
double un_lattice_curvature(const un_tension_lattice *l, int64_t c);

/* Finds the band around the surface, and the distance to it in the band: d[0] (distance.c). */
un_status un_lattice_distance(un_tension_lattice *l, un_arena *arena);

/* Onto the surface, from nearby; false if there is none. normal: in cells. */
bool un_lattice_settle(const un_tension_lattice *l, double y[3], double normal[3]);
/* On a grid that warps: d[0] becomes the distance in space, over the edge of cells in reference
 * space; finds `way` (warp.c). */
un_status un_lattice_measure(un_tension_lattice *l, un_arena *arena);

/* Carries phi on beyond the sides and into solids, at right angles (contact.c). */
void un_lattice_extend(un_tension_lattice *l);
/* The surface pulls on bodies where it meets them (line.c). phi must go on into them. */
void un_lattice_pull(const un_tension_lattice *l);
/* If some wall has another angle than 90 degrees: phi goes on at the walls' angles, and d[0] is the
 * distance to that surface. Takes d[0] of the one at right angles. */
un_status un_lattice_turn(un_tension_lattice *l, un_arena *arena);

#endif
