/* Closed sides and solids on the grid.
 *
 * Solids enter the pressure equation through the open fraction of each face [Batty, Bertails &
 * Bridson 2007; the variational view]: phi is sampled at the nodes, and the part of a face or cell
 * with phi > 0 is found as if phi were linear on the triangles or tets that the corners span. A
 * wall that coincides with faces closes them exactly: where all corners lie on it, nothing is open;
 * where none lies inside it, everything is open, even in the edges and corners of a box, where the
 * distance is far from linear. */
#include "mesh/mesh.h"

/* Distances below this share of a cell are a boundary that coincides with a node up to round-off.
 */
#define SNAP 1e-6
/* Cells around a solid in which its distance is sampled exactly. */
#define BAND 3

/* ---- fractions of simplices where a linear function is positive ---- */

/* The positive share of an edge from a positive value to a non-positive one. */
static inline double cut(double positive, double other)
{
    return positive / (positive - other);
}

double un_triangle_fraction(const double v[3])
{
    int positive = (v[0] > 0) + (v[1] > 0) + (v[2] > 0);
    if (positive == 0) return 0;
    if (positive == 3) return 1;
    for (int i = 0; i < 3; i++) { /* the corner that differs from the other two */
        double a = v[i], b = v[(i + 1) % 3], c = v[(i + 2) % 3];
        if ((a > 0) == (b > 0) || (a > 0) == (c > 0)) continue;
        double share = a / (a - b) * (a / (a - c));
        return a > 0 ? share : 1 - share;
    }
    return 0;
}

/* Corners in cyclic order. The mean over both diagonals, so that no direction is preferred. */
static double square_fraction(double a, double b, double c, double d)
{
    if (!(a > 0 || b > 0 || c > 0 || d > 0)) return 0;
    if (!(a < 0 || b < 0 || c < 0 || d < 0)) return 1;
    return 0.25 *
           (un_triangle_fraction((double[]){a, b, c}) + un_triangle_fraction((double[]){a, c, d}) +
            un_triangle_fraction((double[]){a, b, d}) + un_triangle_fraction((double[]){b, c, d}));
}

double un_tet_fraction(const double v[4])
{
    double pos[4], neg[4];
    int p = 0, n = 0;
    for (int i = 0; i < 4; i++) {
        if (v[i] > 0)
            pos[p++] = v[i];
        else
            neg[n++] = v[i];
    }
    if (p == 0) return 0;
    if (p == 4) return 1;
    if (p == 1) return cut(pos[0], neg[0]) * cut(pos[0], neg[1]) * cut(pos[0], neg[2]);
    if (p == 3)
        return 1 -
               (1 - cut(pos[0], neg[0])) * (1 - cut(pos[1], neg[0])) * (1 - cut(pos[2], neg[0]));
    /* The prism between edge (pos0, pos1) and the cut, as three tets. */
    double s = cut(pos[0], neg[0]), t = cut(pos[0], neg[1]);
    double q = cut(pos[1], neg[0]), r = cut(pos[1], neg[1]);
    return s * t + r * s * (1 - t) + (1 - s) * q * r;
}

static double edge_fraction(double a, double b)
{
    if (!(a > 0 || b > 0)) return 0;
    if (!(a < 0 || b < 0)) return 1;
    return a > 0 ? cut(a, b) : cut(b, a);
}

static double cube_fraction(const double v[8])
{
    /* Six tets around the main diagonal 0-7, corners numbered x + 2 y + 4 z. */
    static const int tets[6][4] = {{0, 1, 3, 7}, {0, 1, 5, 7}, {0, 2, 3, 7},
                                   {0, 2, 6, 7}, {0, 4, 5, 7}, {0, 4, 6, 7}};
    int positive = 0, negative = 0;
    for (int i = 0; i < 8; i++) {
        positive += v[i] > 0;
        negative += v[i] < 0;
    }
    if (positive == 0) return 0;
    if (negative == 0) return 1;
    double sum = 0;
    for (int t = 0; t < 6; t++) {
        double corners[4] = {v[tets[t][0]], v[tets[t][1]], v[tets[t][2]], v[tets[t][3]]};
        sum += un_tet_fraction(corners);
    }
    return sum / 6;
}

double un_walls_cell_fraction(const double v[8], int32_t dim)
{
    return dim == 2 ? square_fraction(v[0], v[1], v[3], v[2]) : cube_fraction(v);
}

double un_walls_face_fraction(const double v[4], int32_t dim)
{
    return dim == 2 ? edge_fraction(v[0], v[1]) : square_fraction(v[0], v[1], v[2], v[3]);
}

/* ---- distances ---- */

/* Unlike fmin, inlined. */
static inline double least(double a, double b)
{
    return a < b ? a : b;
}

double un_walls_sides(const un_walls *walls, un_vec3 x)
{
    const bool *open = walls->scene->def.domain.open;
    un_vec3 s = walls->grid->size;
    double d = INFINITY;
    if (!open[UN_SIDE_LEFT]) d = least(d, x.x);
    if (!open[UN_SIDE_RIGHT]) d = least(d, s.x - x.x);
    if (!open[UN_SIDE_BOTTOM]) d = least(d, x.y);
    if (!open[UN_SIDE_TOP]) d = least(d, s.y - x.y);
    if (walls->grid->dim == 2) return least(d, 1e30);
    if (!open[UN_SIDE_BACK]) d = least(d, x.z);
    if (!open[UN_SIDE_FRONT]) d = least(d, s.z - x.z);
    return least(d, 1e30);
}

double un_walls_distance_exact(const un_walls *walls, un_vec3 x)
{
    double d = un_walls_sides(walls, x);
    un_bodies_nearest(walls->bodies, un_walls_place(walls, x), &d);
    return d;
}

typedef struct grid_point {
    int64_t base;
    double f[3];
} grid_point;

/* The cell of nodes around x and the place in it; points outside the grid count at its boundary. */
UN_KERNEL grid_point locate(const un_grid *g, un_vec3 x, int dim)
{
    double local[3] = {(x.x - g->origin.x) * g->inverse_h, (x.y - g->origin.y) * g->inverse_h,
                       (x.z - g->origin.z) * g->inverse_h};
    grid_point p = {0};
    for (int a = 0; a < dim; a++) {
        double s = un_clamp(local[a], 0, g->n[a] - 1e-9);
        int32_t i = (int32_t)s;
        p.f[a] = s - i;
        p.base += i * g->node_stride[a];
    }
    return p;
}

UN_KERNEL double distance_in(const un_walls *walls, un_vec3 x, int dim)
{
    const un_grid *g = walls->grid;
    grid_point p = locate(g, x, dim);
    const float *v = walls->phi + p.base;
    int64_t sy = g->node_stride[1], sz = g->node_stride[2];
    double fx = p.f[0], fy = p.f[1], fz = p.f[2];
    double low =
        (v[0] * (1 - fx) + v[1] * fx) * (1 - fy) + (v[sy] * (1 - fx) + v[sy + 1] * fx) * fy;
    if (dim == 2) return low;
    v += sz;
    double high =
        (v[0] * (1 - fx) + v[1] * fx) * (1 - fy) + (v[sy] * (1 - fx) + v[sy + 1] * fx) * fy;
    return low * (1 - fz) + high * fz;
}

double un_walls_distance(const un_walls *walls, un_vec3 x)
{
    return walls->grid->dim == 2 ? distance_in(walls, x, 2) : distance_in(walls, x, 3);
}

un_vec3 un_walls_normal(const un_walls *walls, un_vec3 x)
{
    double e = 0.25 * walls->grid->h;
    un_vec3 g = {un_walls_distance(walls, un_v3(x.x + e, x.y, x.z)) -
                     un_walls_distance(walls, un_v3(x.x - e, x.y, x.z)),
                 un_walls_distance(walls, un_v3(x.x, x.y + e, x.z)) -
                     un_walls_distance(walls, un_v3(x.x, x.y - e, x.z)),
                 un_walls_distance(walls, un_v3(x.x, x.y, x.z + e)) -
                     un_walls_distance(walls, un_v3(x.x, x.y, x.z - e))};
    return un_normalize(g);
}

/* ---- sampling ---- */

typedef struct sample_args {
    un_walls *walls;
    float *phi;
    int32_t body;         /* the one to add; -1: the sides */
    int32_t lo[3], hi[3]; /* nodes near the body */
} sample_args;

static void sample_sides(void *arg, int64_t begin, int64_t end)
{
    sample_args *a = arg;
    const un_grid *g = a->walls->grid;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i <= g->n[0]; i++) {
            int32_t k = (int32_t)(row / (g->n[1] + 1)), j = (int32_t)(row % (g->n[1] + 1));
            double d = un_walls_sides(a->walls, un_grid_node_position(g, i, j, k));
            int64_t node = un_grid_node(g, i, j, k);
            a->phi[node] = fabs(d) < SNAP * g->h ? 0.0f : (float)d;
            if (a->walls->body) a->walls->body[node] = -1;
        }
}

static int64_t node_rows(const un_grid *g)
{
    return g->node_count / (g->n[0] + 1);
}

/* Far from the body the distance to its box is used, a lower bound (static bodies only). */
static void sample_body(void *arg, int64_t begin, int64_t end)
{
    sample_args *a = arg;
    const un_grid *g = a->walls->grid;
    const un_body *body = &a->walls->bodies->body[a->body];
    for (int64_t row = begin; row < end; row++) {
        int32_t k = (int32_t)(row / (g->n[1] + 1)), j = (int32_t)(row % (g->n[1] + 1));
        bool near_row = k >= a->lo[2] && k <= a->hi[2] && j >= a->lo[1] && j <= a->hi[1];
        if (body->moves && !near_row) continue;
        for (int32_t i = 0; i <= g->n[0]; i++) {
            bool near = near_row && i >= a->lo[0] && i <= a->hi[0];
            if (body->moves && !near) continue;
            un_vec3 x = un_grid_node_position(g, i, j, k);
            int64_t node = un_grid_node(g, i, j, k);
            double d = near ? un_body_distance(body, x) : un_body_box_distance(body, x);
            if (fabs(d) < SNAP * g->h) d = 0;
            if (d < (double)a->phi[node]) {
                a->phi[node] = (float)d;
                if (a->walls->body) a->walls->body[node] = (int16_t)a->body;
            }
        }
    }
}

static void add_body(un_walls *walls, int32_t b, float *phi)
{
    const un_grid *g = walls->grid;
    sample_args a = {.walls = walls, .phi = phi, .body = b};
    un_box3 box = walls->bodies->body[b].bounds;
    double lo[3] = {box.min.x, box.min.y, box.min.z}, hi[3] = {box.max.x, box.max.y, box.max.z};
    double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    for (int d = 0; d < g->dim; d++) {
        a.lo[d] = (int32_t)un_clamp(floor((lo[d] - origin[d]) / g->h) - BAND, 0, g->n[d]);
        a.hi[d] = (int32_t)un_clamp(ceil((hi[d] - origin[d]) / g->h) + BAND, 0, g->n[d]);
    }
    un_parallel_for(walls->ctx, node_rows(g), 64, sample_body, &a);
}

/* ---- fractions and velocities ---- */

/* Face of axis a at cell (i, j, k): the four nodes of its lower side; in 2D the two with z = 0. */
static const int face_corner[3][4][3] = {{{0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}},
                                         {{0, 0, 0}, {0, 0, 1}, {1, 0, 1}, {1, 0, 0}},
                                         {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}}};

UN_KERNEL void face_velocity(un_walls *walls, int32_t i, int32_t j, int32_t k, int a,
                             const int64_t corner[4], int dim)
{
    const un_grid *g = walls->grid;
    int64_t c = un_grid_cell(g, i, j, k), nearest = corner[0];
    walls->velocity[a][c] = 0;
    if (walls->area[a][c] >= 1) return;
    for (int s = 1; s < 1 << (dim - 1); s++)
        if (walls->phi[corner[s]] < walls->phi[nearest]) nearest = corner[s];
    if (walls->body[nearest] < 0) return;
    double shift[3] = {0.5, 0.5, g->half[2]};
    shift[a] = 0;
    un_vec3 x = un_v3(g->origin.x + g->h * (i + shift[0]), g->origin.y + g->h * (j + shift[1]),
                      g->origin.z + g->h * (k + shift[2]));
    un_vec3 v = un_body_velocity(&walls->bodies->body[walls->body[nearest]], x);
    walls->velocity[a][c] = (float)(a == 0 ? v.x : a == 1 ? v.y : v.z);
}

void un_walls_find_velocity(un_walls *walls, int32_t i, int32_t j, int32_t k, int a)
{
    const un_grid *g = walls->grid;
    int64_t corner[4];
    for (int s = 0, n = 0; s < 4; s++) {
        const int *d = face_corner[a][s];
        if (g->dim == 2 && d[2] != 0) continue;
        corner[n++] = un_grid_node(g, i + d[0], j + d[1], k + d[2]);
    }
    UN_BY_DIM(g->dim, face_velocity(walls, i, j, k, a, corner, dim));
}

/* What is inside the domain of a cell, along each axis, in cells; true if a closed side touches it
 * or cuts it, *cuts: whether one cuts it. */
static bool meet_sides(const un_walls *walls, const int32_t at[3], double inside[3], bool *cuts)
{
    const un_grid *g = walls->grid;
    const bool *open = walls->scene->def.domain.open;
    double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    double size[3] = {g->size.x, g->size.y, g->size.z};
    bool touches = false;
    *cuts = false;
    for (int a = 0; a < 3; a++) {
        inside[a] = 1;
        if (a >= g->dim) continue;
        if (at[a] < 1 || at[a] > g->n[a] - 2) return *cuts = false;
        touches |= at[a] == 1 && !open[2 * a];
        if (at[a] < g->n[a] - 2 || open[2 * a + 1]) continue;
        touches = true;
        double rest = (size[a] - origin[a]) * g->inverse_h - at[a];
        if (rest > 1 - 1e-6) continue;
        inside[a] = rest;
        *cuts = true;
    }
    return touches;
}

bool un_walls_side_cuts(const un_walls *walls, int32_t i, int32_t j, int32_t k, double inside[3])
{
    bool cuts;
    meet_sides(walls, (int32_t[]){i, j, k}, inside, &cuts);
    return cuts;
}

bool un_walls_at_side(const un_walls *walls, int32_t i, int32_t j, int32_t k, double inside[3])
{
    bool cuts;
    return meet_sides(walls, (int32_t[]){i, j, k}, inside, &cuts);
}

bool un_walls_cut(const un_walls *walls)
{
    const un_grid *g = walls->grid;
    double inside[3];
    return walls->bodies->count > 0 || un_walls_side_cuts(walls, g->n[0] - 2, g->n[1] - 2,
                                                          g->dim == 2 ? 0 : g->n[2] - 2, inside);
}

/* Nodes in a side know its distance only, so there the bodies are asked again where one cuts the
 * cell. */
void un_walls_body_corners(const un_walls *walls, int32_t i, int32_t j, int32_t k, double v[8])
{
    const un_grid *g = walls->grid;
    uint32_t unknown = 0;
    bool cut = false;
    for (int m = 0; m < 1 << g->dim; m++) {
        int32_t at[3] = {i + (m & 1), j + (m >> 1 & 1), k + (m >> 2)};
        double d = walls->phi[un_grid_node(g, at[0], at[1], at[2])];
        double side = un_walls_sides(walls, un_grid_node_position(g, at[0], at[1], at[2]));
        bool known = d < side - 1e-6 * g->h;
        v[m] = known ? d : g->h;
        if (!known) unknown |= 1u << m;
        cut |= known && d <= 0;
    }
    for (; cut && unknown; unknown &= unknown - 1) {
        int m = __builtin_ctz(unknown);
        un_vec3 x = un_grid_node_position(g, i + (m & 1), j + (m >> 1 & 1), k + (m >> 2));
        double d = INFINITY;
        un_bodies_nearest(walls->bodies, un_walls_place(walls, x), &d);
        v[m] = fabs(d) < SNAP * g->h ? 0 : d;
    }
}

/* A cell at a side of the domain: what is inside, and of that what bodies leave. By the distances
 * at its corners, which are those to the nearest of all, the cut would run to the corner of the
 * domain wherever two sides meet, and a slope would rise towards the side that it leans on: water
 * on a beach never came to rest. */
static void cut_at_side(un_walls *walls, int32_t i, int32_t j, int32_t k, const double inside[3])
{
    const un_grid *g = walls->grid;
    int64_t c = un_grid_cell(g, i, j, k);
    int32_t at[3] = {i, j, k};
    double v[8], within = inside[0] * inside[1] * inside[2];
    un_walls_body_corners(walls, i, j, k, v);
    walls->volume[c] = (float)(within * un_walls_cell_fraction(v, g->dim));
    for (int a = 0; a < g->dim; a++) {
        double corner[4];
        if (at[a] < 2) continue; /* in a side itself */
        for (int s = 0, n = 0; s < 4; s++) {
            const int *d = face_corner[a][s];
            if (g->dim == 2 && d[2] != 0) continue;
            corner[n++] = v[d[0] + 2 * d[1] + 4 * d[2]];
        }
        walls->area[a][c] = (float)(within / inside[a] * un_walls_face_fraction(corner, g->dim));
    }
}

UN_KERNEL void find_fractions(un_walls *walls, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = walls->grid;
    const float *phi = walls->phi;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
            int64_t c = un_grid_cell(g, i, j, k);
            double v[8];
            for (int m = 0; m < 1 << dim; m++)
                v[m] = phi[un_grid_node(g, i + (m & 1), j + (m >> 1 & 1), k + (m >> 2))];
            walls->volume[c] =
                (float)(dim == 2 ? square_fraction(v[0], v[1], v[3], v[2]) : cube_fraction(v));
            for (int a = 0; a < dim; a++) {
                int64_t corner[4];
                for (int s = 0, n = 0; s < 4; s++) {
                    const int *d = face_corner[a][s];
                    if (dim == 2 && d[2] != 0) continue;
                    corner[n++] = un_grid_node(g, i + d[0], j + d[1], k + d[2]);
                }
                walls->area[a][c] =
                    (float)(dim == 2 ? edge_fraction(phi[corner[0]], phi[corner[1]])
                                     : square_fraction(phi[corner[0]], phi[corner[1]],
                                                       phi[corner[2]], phi[corner[3]]));
                if (walls->velocity[a]) face_velocity(walls, i, j, k, a, corner, dim);
            }
            double inside[3];
            bool in_body = false, cuts;
            for (int m = 0; m < 1 << dim; m++) in_body |= v[m] < 0;
            bool touches = meet_sides(walls, (int32_t[]){i, j, k}, inside, &cuts);
            if (cuts || (touches && in_body)) cut_at_side(walls, i, j, k, inside);
        }
}

static void fractions(void *arg, int64_t begin, int64_t end)
{
    un_walls *walls = arg;
    UN_BY_DIM(walls->grid->dim, find_fractions(walls, begin, end, dim));
}

void un_walls_find_fractions(un_walls *w, un_runs rows)
{
    un_parallel_runs(w->ctx, rows, 64, fractions, w);
}

static void find_all_fractions(un_walls *w)
{
    un_grid all = *w->grid;
    all.bars = NULL;
    un_walls_find_fractions(w, un_grid_own_rows(&all, 0));
}

static void velocities(void *arg, int64_t begin, int64_t end)
{
    un_walls *w = arg;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++)
            for (int a = 0; a < g->dim; a++)
                un_walls_find_velocity(w, i, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1]), a);
}

un_status un_walls_refresh_velocities(un_walls *w)
{
    if (w->bodies->moving && w->phi)
        un_parallel_for(w->ctx, (int64_t)w->grid->n[1] * w->grid->n[2], 64, velocities, w);
    return UN_OK;
}

/* ---- create and destroy ---- */

static bool needs_body(const un_scene *scene)
{
    for (int32_t b = 0; b < scene->def.solid_count; b++)
        if (scene->def.solids[b].moves || scene->def.solids[b].friction > 0) return true;
    return scene->def.solid_count > 0 && un_scene_viscous(&scene->def);
}

static bool any_moves(const un_scene *scene)
{
    for (int32_t b = 0; b < scene->def.solid_count; b++)
        if (scene->def.solids[b].moves) return true;
    return false;
}

size_t un_walls_bytes(const un_grid *g, const un_scene *scene)
{
    size_t cells = (size_t)g->cell_count, nodes = (size_t)g->node_count;
    size_t axes = (size_t)g->dim;
    size_t bytes = nodes * sizeof(float) + (axes + 1) * cells * sizeof(float);
    if (any_moves(scene))
        bytes += nodes * (sizeof(float) + sizeof(int16_t)) + axes * cells * sizeof(float);
    if (needs_body(scene)) bytes += nodes * sizeof(int16_t);
    return bytes;
}

static un_status allocate(un_walls *w)
{
    size_t cells = (size_t)w->grid->cell_count, nodes = (size_t)w->grid->node_count;
    UN_ALLOC(w->ctx, w->phi, nodes);
    UN_ALLOC(w->ctx, w->volume, cells);
    for (int a = 0; a < w->grid->dim; a++) UN_ALLOC(w->ctx, w->area[a], cells);
    if (needs_body(w->scene)) UN_ALLOC(w->ctx, w->body, nodes);
    w->phi_static = w->phi;
    if (!w->bodies->moving) return UN_OK;
    w->phi_static = NULL;
    UN_ALLOC(w->ctx, w->phi_static, nodes);
    UN_ALLOC(w->ctx, w->body_static, nodes);
    for (int a = 0; a < w->grid->dim; a++) UN_ALLOC(w->ctx, w->velocity[a], cells);
    return UN_OK;
}

un_status un_walls_update(un_walls *w)
{
    if (!w->bodies->moving || !w->phi) return UN_OK;
    size_t nodes = (size_t)w->grid->node_count;
    memcpy(w->phi, w->phi_static, nodes * sizeof *w->phi);
    memcpy(w->body, w->body_static, nodes * sizeof *w->body);
    for (int32_t b = 0; b < w->bodies->count; b++)
        if (w->bodies->body[b].moves) add_body(w, b, w->phi);
    find_all_fractions(w);
    if (w->bodies->free_count > 0) un_walls_weigh_faces(w);
    return un_walls_part(w);
}

static un_status sample(un_walls *w)
{
    UN_TRY(allocate(w));
    sample_args sides = {.walls = w, .phi = w->phi_static, .body = -1};
    un_parallel_for(w->ctx, node_rows(w->grid), 64, sample_sides, &sides);
    for (int32_t b = 0; b < w->bodies->count; b++)
        if (!w->bodies->body[b].moves) add_body(w, b, w->phi_static);
    if (w->bodies->moving) {
        memcpy(w->body_static, w->body, (size_t)w->grid->node_count * sizeof *w->body);
        return un_walls_update(w);
    }
    find_all_fractions(w);
    return un_walls_part(w);
}

un_status un_walls_create(un_context *ctx, const un_grid *grid, const un_bodies *bodies,
                          bool sampled, un_walls **walls)
{
    un_walls *w = un_alloc_zero(ctx, 1, sizeof *w);
    if (!w) return UN_ERROR_MEMORY;
    w->ctx = ctx;
    w->grid = grid;
    w->scene = bodies->scene;
    w->bodies = bodies;
    un_status status = sampled ? sample(w) : UN_OK;
    if (status != UN_OK) {
        un_walls_destroy(w);
        return status;
    }
    *walls = w;
    return UN_OK;
}

void un_walls_destroy(un_walls *w)
{
    if (!w) return;
    if (w->phi_static != w->phi) un_free(w->ctx, w->phi_static);
    un_free(w->ctx, w->phi);
    un_free(w->ctx, w->body);
    un_free(w->ctx, w->body_static);
    un_free(w->ctx, w->volume);
    for (int a = 0; a < 3; a++) {
        un_free(w->ctx, w->area[a]);
        un_free(w->ctx, w->velocity[a]);
    }
    un_free(w->ctx, w->sees);
    un_free(w->ctx, w->sight);
    un_warp_parts_free(w->ctx, &w->parts);
    un_free(w->ctx, w->split);
    un_free(w->ctx, w->splits);
    un_free(w->ctx, w);
}
