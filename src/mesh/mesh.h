/* Mesh: the cells a method computes on, and the solids sampled on them. The uniform grid is here;
 * the octree and its tets have headers of their own. */
#ifndef UN_MESH_H
#define UN_MESH_H

#include "base/base.h"
#include "bodies/bodies.h"
#include "geometry/geometry.h"
#include "mesh/cells.h"
#include "mesh/octree.h"
#include "mesh/faces.h"
#include "mesh/stuffing.h"
#include "mesh/leaves.h"
#include "mesh/tets.h"
#include "ranks/ranks.h"
#include "scene/scene.h"

/* A uniform grid of cubic cells that covers the domain with one layer of cells to spare on each
 * side, so that no stencil of a point in the domain leaves the arrays. Cell (i, j, k) spans
 * origin + h [i, i+1] x ...; cells and nodes are stored x fastest. Face f of axis a between cell
 * c and its lower neighbour along a has the cell's own index c.
 *
 * In two dimensions cells are squares in the plane z = 0: one layer of cells and one of nodes, no
 * faces of the third axis. Volumes are then areas. */
typedef struct un_grid {
    int32_t dim;  /* 2 or 3 */
    int32_t n[3]; /* cells, padding included; 1 along z in 2D */
    double h;     /* m */
    double inverse_h;
    un_vec3 origin; /* of cell (0, 0, 0) */
    un_vec3 size;   /* the domain is [0, size] */
    double volume;  /* of a cell, m3 (2D: m2) */
    double half[3]; /* half a cell, in cells: 1/2; 0 along z in 2D */
    int64_t cell_count, node_count;
    int64_t stride[3];      /* of cells: 1, n0, n0 n1 */
    int64_t node_stride[3]; /* of nodes: 1, n0 + 1, ... */
    un_bars *bars;          /* the rows that this rank computes; NULL: all of them */
} un_grid;

/* finest: cells along the longest side. A size without depth, z = 0, makes a 2D grid. */
un_grid un_grid_make(un_vec3 size, int32_t finest);

/* The rows along x, numbered j + n_y k, and the cells that this rank computes, and `wide` more on
 * all sides along y and z. */
static inline un_runs un_grid_own_rows(const un_grid *g, int32_t wide)
{
    return g->bars ? un_bars_runs(g->bars, 1, wide)
                   : (un_runs){.total = (int64_t)g->n[1] * g->n[2], .each = 1};
}
static inline un_runs un_grid_own_cells(const un_grid *g, int32_t wide)
{
    return g->bars ? un_bars_runs(g->bars, g->n[0], wide)
                   : (un_runs){.total = g->cell_count, .each = g->n[0]};
}
/* Does this rank compute the row of cells? */
static inline bool un_grid_owns(const un_grid *g, int32_t j, int32_t k)
{
    return !g->bars || un_bars_owns(g->bars, un_bar_of(&g->bars->curve, j, k));
}
/* The steps of this rank along a curve through the grid's rows. */
static inline un_part un_grid_own_steps(const un_grid *g, const un_curve *c)
{
    if (!g->bars) return (un_part){0, un_curve_steps(c)};
    const int32_t *first = g->bars->first + un_rank(g->bars->ctx);
    return (un_part){(int64_t)first[0] << c->shift, (int64_t)first[1] << c->shift};
}
/* Copies of the rows within `width` of own ones from the ranks that compute them; UN_ALL_ROWS: of
 * all. Does nothing where there is one rank. */
#define UN_ALL_ROWS INT32_MAX
static inline un_status un_grid_share(const un_grid *g, const un_layered *fields, int32_t count,
                                      int32_t width)
{
    return g->bars ? un_bars_share(g->bars, fields, count, width) : UN_OK;
}
/* Sums over the cells of all ranks, or over the rows, by bars: values gets `each` elements by row.
 */
static inline void un_grid_sums(un_context *ctx, const un_grid *g, int64_t each, int32_t width,
                                un_parallel_values *values, void *arg, double *sums)
{
    un_bars_sums(ctx, g->bars, g->n + 1, each, width, values, arg, sums);
}

static inline int64_t un_grid_cell(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return i + g->stride[1] * j + g->stride[2] * k;
}
static inline int64_t un_grid_node(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return i + g->node_stride[1] * j + g->node_stride[2] * k;
}
static inline un_vec3 un_grid_center(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return un_v3(g->origin.x + g->h * (i + 0.5), g->origin.y + g->h * (j + 0.5),
                 g->origin.z + g->h * (k + g->half[2]));
}
static inline un_vec3 un_grid_node_position(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return un_v3(g->origin.x + g->h * i, g->origin.y + g->h * j, g->origin.z + g->h * k);
}

/* Fields at cell centres, multilinear. The point must lie in the domain. Functions that end in _in
 * take the dimension as an argument, for kernels that know it. */
typedef struct un_stencil {
    int64_t base;
    double f[3];
} un_stencil;
/* shift: 0 for the cell of x, 1/2 for the lower of the centres around it. */
UN_KERNEL un_stencil un_grid_stencil_in(const un_grid *g, un_vec3 x, double shift, int dim)
{
    double s[3] = {(x.x - g->origin.x) * g->inverse_h - shift,
                   (x.y - g->origin.y) * g->inverse_h - shift,
                   (x.z - g->origin.z) * g->inverse_h - shift};
    un_stencil t = {0};
    for (int a = 0; a < dim; a++) {
        int32_t i = un_clampi((int32_t)s[a], 0, g->n[a] - 2);
        t.f[a] = un_clamp(s[a] - i, 0, 1);
        t.base += i * g->stride[a];
    }
    return t;
}
static inline int64_t un_grid_cell_at(const un_grid *g, un_vec3 x)
{
    return g->dim == 2 ? un_grid_stencil_in(g, x, 0, 2).base : un_grid_stencil_in(g, x, 0, 3).base;
}
UN_KERNEL double un_grid_sample_in(const un_grid *g, const float *field, un_vec3 x, int dim)
{
    un_stencil t = un_grid_stencil_in(g, x, 0.5, dim);
    const float *v = field + t.base, *w = v + g->stride[2];
    int64_t sy = g->stride[1];
    double fx = t.f[0], fy = t.f[1], fz = t.f[2];
    double low = (v[0] + (v[1] - v[0]) * fx) * (1 - fy) + (v[sy] + (v[sy + 1] - v[sy]) * fx) * fy;
    if (dim == 2) return low;
    double high = (w[0] + (w[1] - w[0]) * fx) * (1 - fy) + (w[sy] + (w[sy + 1] - w[sy]) * fx) * fy;
    return low + (high - low) * fz;
}
static inline double un_grid_sample(const un_grid *g, const float *field, un_vec3 x)
{
    return g->dim == 2 ? un_grid_sample_in(g, field, x, 2) : un_grid_sample_in(g, field, x, 3);
}
/* The gradient of the same interpolant, 1/m. */
UN_KERNEL un_vec3 un_grid_gradient_in(const un_grid *g, const float *field, un_vec3 x, int dim)
{
    un_stencil t = un_grid_stencil_in(g, x, 0.5, dim);
    double v[8];
    for (int c = 0; c < 1 << dim; c++)
        v[c] = field[t.base + (c & 1) + (c >> 1 & 1) * g->stride[1] + (c >> 2) * g->stride[2]];
    double fx = t.f[0], fy = t.f[1], fz = t.f[2];
    if (dim == 2)
        return un_v3(((v[1] - v[0]) * (1 - fy) + (v[3] - v[2]) * fy) / g->h,
                     ((v[2] - v[0]) * (1 - fx) + (v[3] - v[1]) * fx) / g->h, 0);
    double x00 = v[0] + (v[1] - v[0]) * fx, x10 = v[2] + (v[3] - v[2]) * fx;
    double x01 = v[4] + (v[5] - v[4]) * fx, x11 = v[6] + (v[7] - v[6]) * fx;
    double dx = ((v[1] - v[0]) * (1 - fy) + (v[3] - v[2]) * fy) * (1 - fz) +
                ((v[5] - v[4]) * (1 - fy) + (v[7] - v[6]) * fy) * fz;
    double dy = (x10 - x00) * (1 - fz) + (x11 - x01) * fz;
    double dz = (x01 + (x11 - x01) * fy) - (x00 + (x10 - x00) * fy);
    return un_v3(dx / g->h, dy / g->h, dz / g->h);
}
static inline un_vec3 un_grid_gradient(const un_grid *g, const float *field, un_vec3 x)
{
    return g->dim == 2 ? un_grid_gradient_in(g, field, x, 2) : un_grid_gradient_in(g, field, x, 3);
}
/* Velocities at faces: u[a] of the lower face of axis a. Along each axis a point has a place among
 * the faces and one among the centres; each component uses the first along its own axis and the
 * second along the others. */
typedef struct un_face_stencil {
    int64_t base[3]; /* by component */
    double f[3][2];  /* by axis: share towards the upper face, the upper centre */
} un_face_stencil;
UN_KERNEL un_face_stencil un_faces_stencil_in(const un_grid *g, un_vec3 x, int dim)
{
    double s[3] = {(x.x - g->origin.x) * g->inverse_h, (x.y - g->origin.y) * g->inverse_h,
                   (x.z - g->origin.z) * g->inverse_h};
    un_face_stencil t;
    int64_t at[3][2];
    if (dim == 2) at[2][0] = at[2][1] = 0;
    for (int a = 0; a < dim; a++) {
        int32_t i = un_clampi((int32_t)s[a], 0, g->n[a] - 2);
        int32_t c = un_clampi((int32_t)(s[a] - 0.5), 0, g->n[a] - 2);
        t.f[a][0] = s[a] - i;
        t.f[a][1] = s[a] - 0.5 - c;
        at[a][0] = i * g->stride[a];
        at[a][1] = c * g->stride[a];
    }
    t.base[0] = at[0][0] + at[1][1] + at[2][1];
    t.base[1] = at[0][1] + at[1][0] + at[2][1];
    t.base[2] = at[0][1] + at[1][1] + at[2][0];
    return t;
}
UN_KERNEL double un_faces_at_axis_in(const un_grid *g, const double *u, const un_face_stencil *t,
                                     int axis, int dim)
{
    const double *v = u + t->base[axis];
    int64_t sy = g->stride[1];
    double fx = t->f[0][axis != 0], fy = t->f[1][axis != 1];
    double a = v[0] + (v[1] - v[0]) * fx, b = v[sy] + (v[sy + 1] - v[sy]) * fx;
    if (dim == 2) return a + (b - a) * fy;
    const double *w = v + g->stride[2];
    double fz = t->f[2][axis != 2];
    double c = w[0] + (w[1] - w[0]) * fx, d = w[sy] + (w[sy + 1] - w[sy]) * fx;
    double low = a + (b - a) * fy, high = c + (d - c) * fy;
    return low + (high - low) * fz;
}
UN_KERNEL un_vec3 un_faces_at_in(const un_grid *g, double *const u[3], const un_face_stencil *t,
                                 int dim)
{
    return un_v3(un_faces_at_axis_in(g, u[0], t, 0, dim), un_faces_at_axis_in(g, u[1], t, 1, dim),
                 dim == 2 ? 0 : un_faces_at_axis_in(g, u[2], t, 2, dim));
}
UN_KERNEL un_vec3 un_faces_sample_in(const un_grid *g, double *const u[3], un_vec3 x, int dim)
{
    un_face_stencil t = un_faces_stencil_in(g, x, dim);
    return un_faces_at_in(g, u, &t, dim);
}
static inline un_vec3 un_faces_sample(const un_grid *g, double *const u[3], un_vec3 x)
{
    return g->dim == 2 ? un_faces_sample_in(g, u, x, 2) : un_faces_sample_in(g, u, x, 3);
}
UN_KERNEL double un_faces_sample_axis_in(const un_grid *g, const double *u, un_vec3 x, int axis,
                                         int dim)
{
    un_face_stencil t = un_faces_stencil_in(g, x, dim);
    return un_faces_at_axis_in(g, u, &t, axis, dim);
}
static inline double un_faces_sample_axis(const un_grid *g, const double *u, un_vec3 x, int axis)
{
    return g->dim == 2 ? un_faces_sample_axis_in(g, u, x, axis, 2)
                       : un_faces_sample_axis_in(g, u, x, axis, 3);
}
/* Of the `count` points from number q on: eight, the last one again where there are fewer. */
static inline void un_eight_load(un_eight *to, double *const from[3], int64_t q, int64_t count)
{
    for (int a = 0; a < 3; a++) {
        if (count >= 8) {
            memcpy(to->of[a], from[a] + q, sizeof to->of[a]);
            continue;
        }
        for (int64_t n = 0; n < 8; n++) to->of[a][n] = from[a][q + (n < count ? n : count - 1)];
    }
}
static inline void un_eight_store(double *const to[3], const un_eight *from, int64_t q,
                                  int64_t count)
{
    for (int a = 0; a < 3; a++) {
        if (count >= 8)
            memcpy(to[a] + q, from->of[a], sizeof from->of[a]);
        else
            memcpy(to[a] + q, from->of[a], (size_t)count * sizeof(double));
    }
}
static inline un_vec3 un_eight_of(const un_eight *e, int64_t n)
{
    return un_v3(e->of[0][n], e->of[1][n], e->of[2][n]);
}
/* The velocity at eight points (grid_eight.c), a third of the time for each. */
void un_faces_sample_eight(un_eight *out, const un_grid *g, double *const u[3], const un_eight *x);
/* Two velocities at the same points. */
void un_faces_sample_two(un_eight out[2], const un_grid *g, double *const u[3],
                         double *const other[3], const un_eight *x);
/* The middle of the lower face of cell (i, j, k) across an axis. */
static inline un_vec3 un_grid_face_center(const un_grid *g, int axis, int32_t i, int32_t j,
                                          int32_t k)
{
    double half[3] = {0.5, 0.5, g->half[2]};
    half[axis] = 0;
    return un_v3(g->origin.x + g->h * (i + half[0]), g->origin.y + g->h * (j + half[1]),
                 g->origin.z + g->h * (k + half[2]));
}
/* Is x inside the domain, not on its boundary? */
static inline bool un_grid_encloses(const un_grid *g, un_vec3 x)
{
    un_vec3 size = g->size;
    return x.x > 0 && x.y > 0 && x.x < size.x && x.y < size.y &&
           (g->dim == 2 || (x.z > 0 && x.z < size.z));
}

#include "mesh/warp.h"

/* ---- probes of a level set at cell centres (probe.c) ---- */

/* The liquid's largest (sign +1) or smallest coordinate along an axis; NaN without liquid. */
double un_grid_front(un_context *ctx, const float *phi, const un_grid *grid, int32_t axis,
                     double sign);
/* The height of the first liquid from the top down at at.x, at.z; 0 where it is dry. */
double un_grid_height(const float *phi, const un_grid *grid, un_vec3 at);

/* ---- walls (walls.c): closed sides and solids ---- */

/* A cell with a thin wall across it, which keeps one side of it. */
typedef struct un_split_cell {
    float phi[8];    /* at its corners: distance to the wall as the kept side sees it */
    uint32_t beyond; /* of the 27 cells around it, those on the other side */
} un_split_cell;

typedef struct un_walls {
    un_context *ctx;
    const un_grid *grid;
    const un_scene *scene;
    const un_bodies *bodies; /* not owned */
    const un_warp *warp;     /* whose reference space the grid is; NULL: the grid is in space */
    /* At nodes: distance to the nearest closed side or solid, negative inside it; far from solids a
     * lower bound. Moving bodies count only within three cells of them. */
    float *phi;
    float *phi_static;    /* without the moving bodies; phi itself if none moves */
    int16_t *body;        /* at nodes: the nearest body, -1 a side; NULL unless a body needs it */
    int16_t *body_static; /* without the moving bodies; NULL unless a body moves */
    float *area[3];       /* at faces: open fraction; NULL for the third axis in 2D */
    float *volume;        /* at cells: open fraction */
    float *velocity[3];   /* at faces: of the solid there; NULL unless a body moves */
    /* Where walls are thin (walls_thin.c); undefined unless parted. At cells: */
    bool parted;
    uint32_t *sees;  /* of the 27 cells around it, x fastest, those that it reaches */
    uint32_t *sight; /* those that reach it, too */
    int32_t *split;  /* its number among the split cells, -1 */
    un_split_cell *splits;
    size_t split_capacity;
    un_warp_parts parts; /* of a grid that warps */
} un_walls;

/* Where a point of the grid is in space, among the bodies. */
static inline un_vec3 un_walls_place(const un_walls *walls, un_vec3 x)
{
    return walls->warp ? un_warp_map(walls->warp, x) : x;
}
/* sampled: false leaves the arrays out, for callers that need exact distances only. */
un_status un_walls_create(un_context *ctx, const un_grid *grid, const un_bodies *bodies,
                          bool sampled, un_walls **walls);
void un_walls_destroy(un_walls *walls);
/* Samples the bodies again after they have moved, at the end of the step: the pressure must match
 * them there. */
un_status un_walls_update(un_walls *walls);
/* Leaves the walls where they are and finds how they move in the step that the bodies are placed
 * for. */
un_status un_walls_refresh_velocities(un_walls *walls);
/* Distance to closed sides and solids, interpolated from the nodes. */
/* Finds again what is open of the cells and faces in some rows. */
void un_walls_find_fractions(un_walls *walls, un_runs rows);
double un_walls_distance(const un_walls *walls, un_vec3 x);
/* As above but exact, bodies at the end of the step: slow, for the few points that need it. */
double un_walls_distance_exact(const un_walls *walls, un_vec3 x);
un_vec3 un_walls_normal(const un_walls *walls,
                        un_vec3 x); /* away from the wall; zero far from it */
/* Distance from x to the closed sides of the domain alone, positive inside. */
double un_walls_sides(const un_walls *walls, un_vec3 x);
size_t un_walls_bytes(const un_grid *grid, const un_scene *scene); /* that create will take */

/* The bodies on a grid that warps (warp_walls.c): phi, m, at its nodes, to the bodies alone, and
 * open shares of its cells; padding is open beyond open sides. Then again after the grid or bodies
 * have moved. */
un_status un_warp_walls_create(un_context *ctx, const un_warp *warp, const un_bodies *bodies,
                               un_walls **walls);
un_status un_warp_walls_sample(un_walls *walls);
/* Places hold nodal values: a node has one place for each side of a thin wall (warp_parts.c). Call
 * after the walls are parted. */
un_status un_warp_parts_find(un_walls *walls);
void un_warp_parts_free(un_context *ctx, un_warp_parts *parts);
void un_warp_places(const un_walls *walls, int32_t i, int32_t j, int32_t k, int64_t place[8]);
static inline int64_t un_warp_node_of(const un_walls *walls, int64_t place)
{
    int64_t nodes = walls->grid->node_count;
    return place < nodes ? place : walls->parts.copy[place - nodes];
}
/* The places of the cell around x, by corner, and their weights; returns how many (warp_probe.c).
 */
int un_warp_places_around(const un_walls *walls, un_vec3 x, int64_t place[8], double weight[8]);
/* Keeps values at places while the grid changes; `kept` has room for all sides. */
void un_warp_parts_keep(un_warp_side *kept, const un_walls *walls, const double *value);
void un_warp_parts_carry(double *value, const un_walls *walls, const un_warp_side *kept,
                         int64_t count);

/* Parts cells and faces along thin walls, after their fractions were found. */
un_status un_walls_part(un_walls *walls);
/* Of the 27 cells around cell c, x fastest, those on the same side of a thin wall as x in it. */
#define UN_SIGHT_ALL ((1u << 27) - 1)
uint32_t un_walls_sight_split(const un_walls *walls, int64_t c, un_vec3 x);
static inline uint32_t un_walls_sight(const un_walls *walls, int64_t c, un_vec3 x)
{
    if (!walls->parted) return UN_SIGHT_ALL;
    return walls->split[c] < 0 ? walls->sight[c] : un_walls_sight_split(walls, c, x);
}
/* A field of cells at x and its gradient, from those around it that are on x's side of a thin wall.
 */
double un_walls_sample_side(const un_walls *walls, const float *field, un_vec3 x);
un_vec3 un_walls_gradient_side(const un_walls *walls, const float *field, un_vec3 x);
/* The solid's velocity at the lower face of cell (i, j, k) along axis a, once its area is known. */
void un_walls_find_velocity(un_walls *walls, int32_t i, int32_t j, int32_t k, int a);
/* Around bodies that the liquid moves (walls_dual.c). In this order: open shares of the cubes
 * around faces, which replace those of faces; the bodies' velocities, when these change; the cells
 * around a body, padding included; the body that a face belongs to, -1: none. */
void un_walls_weigh_faces(un_walls *walls);
void un_walls_find_velocities(un_walls *walls);
void un_walls_cells_around(const un_walls *walls, int32_t body, int32_t lo[3], int32_t n[3]);
int32_t un_walls_free_body(const un_walls *walls, int32_t i, int32_t j, int32_t k, int axis);
/* Does a closed side of the domain cut cell (i, j, k)? inside: what is within, along each axis, in
 * cells. */
bool un_walls_side_cuts(const un_walls *walls, int32_t i, int32_t j, int32_t k, double inside[3]);
/* Or touch it? */
bool un_walls_at_side(const un_walls *walls, int32_t i, int32_t j, int32_t k, double inside[3]);
/* Is any cell cut, by bodies or sides? */
bool un_walls_cut(const un_walls *walls);
/* Distances to the bodies at such a cell's corners; a cell where no body cuts it. */
void un_walls_body_corners(const un_walls *walls, int32_t i, int32_t j, int32_t k, double v[8]);
/* Open share of a cell with these distances at its corners, x fastest; of a face, corners in cyclic
 * order. */
double un_walls_cell_fraction(const double v[8], int32_t dim);
double un_walls_face_fraction(const double v[4], int32_t dim);

/* Share of a triangle where the linear function with these values at its corners is positive. */
double un_triangle_fraction(const double v[3]);
/* Share of a tet's volume where the linear function with these values at its nodes is positive. */
double un_tet_fraction(const double v[4]);
/* Integrals of the four hat functions over that part, divided by the tet's volume. Their sum is the
 * share. */
void un_tet_open_integrals(const double v[4], double integral[4]);

/* ---- walls on tets (tet_walls.c) ---- */

/* The closed sides and solids of `walls` (made without samples of its own), sampled on the tets. */
typedef struct un_tet_walls {
    un_context *ctx;
    const un_walls *walls;
    const un_tets *mesh;
    /* At nodes: distance to the nearest closed side or solid, negative inside it; far from solids
     * a lower bound. */
    float *phi;
    float *cut;       /* the same without the sides that cross no cell; NULL: nothing is cut */
    float *phi_solid; /* to solids alone; NULL without solids */
    int16_t *body;    /* at nodes: the nearest solid; NULL without solids */
    float *narrow;    /* at nodes near solids: how thick these are, else INFINITY; NULL likewise */
    float *open;      /* at tets: open share of the volume */
    float *node_open; /* at nodes: integral of the node's hat function over open space, m3 */
    un_vec3 *
        u_solid; /* at tets: velocity of the solid in it, zero without one; NULL unless one moves */
    /* Distances to static solids, kept from mesh to mesh: they are not computed again at nodes that
     * stay. */
    uint64_t *old_order; /* of nodes, un_tets_order */
    float *still, *old_still;
    int16_t *still_body, *old_still_body;
    float *thickness, *old_thickness; /* behind the surface next to the node */
    int32_t old_count;
    size_t capacity[15];
} un_tet_walls;

void un_tet_walls_init(un_context *ctx, un_tet_walls *tw, const un_walls *walls);
void un_tet_walls_free(un_tet_walls *tw);
/* Samples the walls on a new mesh, with the bodies at the end of the step, and parts the mesh along
 * thin walls. */
un_status un_tet_walls_sample(un_tet_walls *tw, un_arena *arena, un_tets *mesh);
/* Again on the same mesh, after bodies have moved; on a mesh that is parted only how they move. */
un_status un_tet_walls_move(un_tet_walls *tw, un_arena *arena, un_tets *mesh);

/* The body that the liquid moves in tet t, -1: none; the velocities of such bodies at tets, which
 * may change without a move (tet_walls_free.c). */
int32_t un_tet_walls_free_body(const un_tet_walls *tw, int32_t t);
void un_tet_walls_find_velocities(un_tet_walls *tw);
/* Recomputes the open shares of tets that such bodies cut, from distances at half the spacing: if
 * distances are linear between nodes, a round body is too small and floats too low. */
void un_tet_walls_weigh(un_tet_walls *tw);

/* ---- walls on leaves (leaf_walls.c) ---- */

/* The closed sides and solids of `walls` (made without samples of its own), on the leaves of an
 * octree and the faces between them. */
typedef struct un_leaf_walls {
    un_context *ctx;
    const un_walls *walls;
    float *phi;      /* at leaves: distance from the centre to the nearest closed side or solid; far
                      * from solids a lower bound */
    float *solid;    /* the same to solids alone; NULL without solids */
    float *volume;   /* at leaves: open share */
    float *area;     /* at faces: open share; of the domain's open sides 1 */
    float *velocity; /* at faces: of the solid there; NULL unless a body moves */
    float *narrow;   /* at leaves near solids: how thick these are, else INFINITY; NULL without */
    int16_t *body;   /* at faces: the solid that closes some of it, -1; NULL without solids */
    /* Distances to static solids at centres, kept from mesh to mesh. */
    uint64_t *old_key;
    uint8_t *old_level;
    float *still, *old_still;
    float *thickness, *old_thickness; /* behind the surface next to the centre; -1 not asked yet */
    int32_t old_count;
    double cut[3]; /* closed upper ends of the domain inside the brick; else huge */
    size_t capacity[13];
} un_leaf_walls;
void un_leaf_walls_free(un_leaf_walls *walls);
/* Samples the walls, with the bodies at the end of the step, and parts the leaves along thin
 * walls. */
un_status un_leaf_walls_sample(un_leaf_walls *walls, un_context *ctx, const un_walls *exact,
                               un_leaves *leaves);
/* The share of a cube, or of its middle across an axis (-1: none), that those ends leave. */
double un_leaf_walls_within(const un_leaf_walls *walls, const un_leaves *leaves, un_vec3 centre,
                            double edge, int across);
/* Do the samples hold for this tree, because it is the last one and nothing moves? */
bool un_leaf_walls_hold(const un_leaf_walls *walls, const un_octree *tree);
/* Again on the same leaves, after bodies have moved; on leaves that are parted only how they
 * move. */
un_status un_leaf_walls_move(un_leaf_walls *walls, const un_leaves *leaves);
/* Velocities of the bodies at faces, which may change without a move. */
void un_leaf_walls_find_velocities(un_leaf_walls *walls, const un_leaves *leaves);
/* Faces around bodies that the liquid moves: the open share of the box between the centres of their
 * leaves (leaf_walls_free.c). Not next to thin walls. */
void un_leaf_walls_weigh_faces(un_leaf_walls *walls, const un_leaves *leaves);

/* Both sides of thin walls (leaf_parts.c): sets narrow, parts the leaves. There are solids. */
un_status un_leaf_walls_part(un_leaf_walls *walls, un_leaves *leaves);
/* The leaf of a particle at x: the one that holds it, unless a thin wall is between them. */
int32_t un_leaves_home(const un_leaves *leaves, const un_bodies *bodies, int32_t guess, un_vec3 x);
/* The leaf at x as seen from leaf `from`; `from` itself if a thin wall is between them. ~leaf if
 * that depends on whether one is next to a leaf that this rank does not know: `from` if so, else
 * that leaf. */
int32_t un_leaves_step(const un_leaves *leaves, int32_t from, un_vec3 x);

/* ---- both sides of thin walls (tets_parts.c) ---- */

/* Parts a mesh that has just been built along walls thinner than two cells: nodes and tets get a
 * copy for each further side. At nodes, distance: to the solids; thin: next to a thin wall. */
un_status un_tets_part(un_tets *mesh, un_arena *arena, const un_bodies *bodies,
                       const float *distance, const uint8_t *thin);
/* The normal at node n, away from the solid: the mean over the node's tets. There must be
 * solids. */
un_vec3 un_tet_walls_normal(const un_tet_walls *tw, int64_t n);

/* ---- values carried from mesh to mesh (carry.c) ---- */

/* Numbers at the nodes of the last mesh, by the nodes' order (un_tets_order). */
#define UN_NODE_MEMORY_WIDTH 2
typedef struct un_node_memory {
    uint64_t *order;
    double *value[UN_NODE_MEMORY_WIDTH];
    int width;
    int32_t count;
    size_t capacity[1 + UN_NODE_MEMORY_WIDTH];
} un_node_memory;
void un_node_memory_free(un_context *ctx, un_node_memory *memory);
/* Does nothing for a mesh without nodes. A rank keeps its own nodes' numbers. */
un_status un_node_memory_keep(un_context *ctx, un_node_memory *memory, const un_tets *mesh,
                              double *const *value, int width);
/* Over ranks: brings what was kept to the ranks whose parts of the next tree hold the nodes. Before
 * un_node_memory_recall, with the tree that its mesh was built on. NULL: all is here. */
un_status un_node_memory_move(un_context *ctx, un_node_memory *memory, un_arena *arena,
                              const un_tree_share *tree);
/* value[k][n] at the nodes of a new mesh, over ranks at own nodes and ghosts; known: scratch, one
 * byte per node. */
un_status un_node_memory_recall(un_context *ctx, const un_node_memory *memory, const un_tets *mesh,
                                double *const *value, int width, uint8_t *known);

/* Numbers at the leaves of the last octree, by key (leaf_cells.c). New leaves take the number of
 * the old leaf at their place. */
typedef struct un_leaf_memory {
    uint64_t *key;
    uint8_t *level;
    double *value;
    int32_t count;
    int64_t *first; /* by rank: the first that it knows; NULL: all are known */
    size_t capacity[3];
} un_leaf_memory;
void un_leaf_memory_free(un_context *ctx, un_leaf_memory *memory);
un_status un_leaf_memory_keep(un_context *ctx, un_leaf_memory *memory, const un_octree *tree,
                              const double *value);
void un_leaf_memory_recall(un_context *ctx, const un_leaf_memory *memory, const un_octree *tree,
                           double *value);
/* Over ranks (leaves_ranks.c): numbers at own leaves. */
un_status un_leaf_memory_keep_ranks(un_context *ctx, un_leaf_memory *memory,
                                    const un_leaves *leaves, const double *value);
un_status un_leaf_memory_recall_ranks(un_context *ctx, un_leaf_memory *memory,
                                      const un_leaves *leaves, double *value);
/* For `part` of the tree's leaves, as un_leaf_memory_recall. */
void un_leaf_memory_recall_part(un_context *ctx, const un_leaf_memory *memory,
                                const un_octree *tree, un_part part, double *value);

/* ---- trees around a shape (octree_shape.c) ---- */

/* Leaves of one size over the box, as fine as eight particles in each allow. Empties the arena. */
un_status un_octree_cover(un_octree *tree, un_arena *arena, un_box3 box, double particles_max);
/* Halves leaves where the shape is curved, as long as there are not more particles than this. */
un_status un_octree_follow(un_octree *tree, un_arena *arena, const un_shape *shape,
                           double particles_max);

/* ---- cells of a stuffed mesh for tetmesh (stuffing_tagged.c) ---- */

/* All tets, then the triangles of the boundary, tagged with what is behind them (UN_BEHIND_*);
 * points are moved by `offset`. */
un_status un_cells_tagged(un_context *ctx, un_cells *cells, const un_stuffing *mesh,
                          un_vec3 offset);

/* ---- cells for mesh.vtu (cells.c): those whose centre lies in the liquid and not in a solid ----
 */

typedef struct un_grid_cells {
    const un_grid *grid;
    const float *phi;   /* at cells: negative in the liquid */
    const float *open;  /* at cells: open share of the volume */
    const double *p;    /* at cells, Pa */
    double *const *u;   /* at faces, by axis */
    const double *more; /* at cells, Pa: the rest of the pressure; NULL: none */
    /* On a grid that warps: where its nodes are, pressure there and velocities at cells, instead */
    const un_warp *warp;
    const double *node_p;
    const un_vec3 *centre_u;
} un_grid_cells;
un_status un_cells_from_grid(un_context *ctx, un_cells *cells, const un_grid_cells *in);

typedef struct un_tets_cells {
    const un_tets *mesh;
    const float *phi;   /* at nodes: negative in the liquid */
    const float *walls; /* at nodes: positive outside solids; NULL: there are none */
    int32_t pressure_count;
    double *const *p; /* at nodes, Pa: their sum is shown */
    const un_vec3 *u; /* at nodes */
} un_tets_cells;
/* Over ranks, called by all: rank 0 gets those of all. */
un_status un_cells_from_tets(un_context *ctx, un_cells *cells, const un_tets_cells *in);

typedef struct un_stuffing_cells {
    const un_stuffing *mesh;
    const double *p;  /* at tets, Pa */
    const un_vec3 *u; /* at tets */
} un_stuffing_cells;
un_status un_cells_from_stuffing(un_context *ctx, un_cells *cells, const un_stuffing_cells *in);

typedef struct un_leaf_cells {
    const un_leaves *leaves;
    const float *phi;  /* at leaves: negative in the liquid */
    const float *open; /* at leaves: open share of the volume */
    const double *p;   /* at leaves, Pa */
    const double *u;   /* at faces */
} un_leaf_cells;
un_status un_cells_from_leaves(un_context *ctx, un_cells *cells, const un_leaf_cells *in);
/* The mean over a leaf's sides. */
void un_leaves_centre_velocity(un_context *ctx, un_vec3 *v, const un_leaves *leaves,
                               const double *u);

#endif
