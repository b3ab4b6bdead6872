/* Open shares around bodies that the liquid moves.
 *
 * There a face's share is that of the cube around it, from centre to centre of its two cells, as in
 * the variational view of [Batty, Bertails & Bridson 2007], and not that of the face itself: the
 * pressure's force on a body is then the weight of the water in its place, whatever cells its
 * bottom lies in. With shares of faces the volume that a box displaces jumps from cell to cell, and
 * it floats up to a fifth of a cell off. */
#include "mesh/mesh.h"

typedef struct dual_args {
    un_walls *walls;
    int32_t lo[3], n[3]; /* cells to visit */
    int32_t body;
} dual_args;

/* The part of the cube around a face that no wall fills, from the distances at nodes: those at the
 * corners of one half of it are the face's own, and those in the middle of the edges that leave it.
 */
UN_KERNEL double half_share(const un_walls *w, const int64_t *corner, int64_t stride, int dim)
{
    double v[8];
    int corners = dim == 2 ? 2 : 4;
    for (int c = 0; c < corners; c++) {
        double here = w->phi[corner[c]], there = w->phi[corner[c] + stride];
        v[c] = here;
        v[c + corners] = 0.5 * (here + there);
    }
    return un_walls_cell_fraction(v, dim);
}

/* The same, where one body is all there is: from distances half a cell apart. Linear between nodes
 * a round or sharp body is too small, by a tenth of a cell of its draught if it is ten cells wide.
 */
UN_KERNEL double fine_share(const un_walls *w, const un_body *body, un_vec3 middle, int dim)
{
    double d[27], sum = 0, step = 0.5 * w->grid->h;
    un_vec3 x[27];
    int count = dim == 2 ? 9 : 27;
    for (int n = 0; n < count; n++)
        x[n] = un_add(middle, un_v3(step * (n % 3 - 1), step * (n / 3 % 3 - 1),
                                    dim == 2 ? 0 : step * (n / 9 - 1)));
    un_body_distances(body, x, count, d);
    for (int part = 0; part < 1 << dim; part++) {
        int first = (part & 1) + 3 * (part >> 1 & 1) + 9 * (part >> 2);
        double v[8];
        for (int c = 0; c < 1 << dim; c++)
            v[c] = d[first + (c & 1) + 3 * (c >> 1 & 1) + 9 * (c >> 2)];
        sum += un_walls_cell_fraction(v, dim);
    }
    return sum / (1 << dim);
}

/* Do all nodes around the cube belong to one body? */
UN_KERNEL bool is_alone(const un_walls *w, const int64_t corner[4], int64_t stride, int32_t body,
                        int dim)
{
    for (int c = 0; c < (dim == 2 ? 2 : 4); c++)
        for (int side = -1; side <= 1; side++)
            if (w->body[corner[c] + side * stride] != body) return false;
    return true;
}

UN_KERNEL void face_corners(const un_grid *g, int64_t first, int axis, int64_t corner[4], int dim)
{
    int b = (axis + 1) % dim, d = dim == 3 ? (axis + 2) % 3 : 0;
    corner[0] = first;
    corner[1] = first + g->node_stride[b];
    corner[2] = corner[3] = corner[1];
    if (dim == 2) return;
    corner[2] = first + g->node_stride[d];
    corner[3] = corner[1] + g->node_stride[d];
}

/* The body that the liquid moves which the cube around a face is cut by; -1: none. */
UN_KERNEL int32_t owner_of(const un_walls *w, const int64_t corner[4], int64_t stride, bool closed,
                           int dim)
{
    int64_t nearest = corner[0], own = corner[0];
    for (int c = 0; c < (dim == 2 ? 2 : 4); c++) {
        if (w->phi[corner[c]] < w->phi[own]) own = corner[c];
        for (int side = -1; side <= 1; side++)
            if (w->phi[corner[c] + side * stride] < w->phi[nearest])
                nearest = corner[c] + side * stride;
    }
    if (!(w->phi[nearest] < 0)) return -1;
    /* what other walls have closed stays closed */
    int32_t body = w->body[closed ? own : nearest];
    return body >= 0 && w->bodies->body[body].free ? body : -1;
}

/* Closed sides of the domain stay closed. */
static bool in_side(const un_walls *w, int32_t i, int32_t j, int32_t k, int axis)
{
    const un_grid *g = w->grid;
    return w->area[axis][un_grid_cell(g, i, j, k)] <= 0 &&
           un_walls_sides(w, un_grid_face_center(g, axis, i, j, k)) < 1e-6 * g->h;
}

int32_t un_walls_free_body(const un_walls *w, int32_t i, int32_t j, int32_t k, int axis)
{
    const un_grid *g = w->grid;
    bool closed = w->area[axis][un_grid_cell(g, i, j, k)] <= 0;
    int64_t corner[4], first = un_grid_node(g, i, j, k), stride = g->node_stride[axis];
    if (in_side(w, i, j, k, axis)) return -1;
    if (g->dim == 2) {
        face_corners(g, first, axis, corner, 2);
        return owner_of(w, corner, stride, closed, 2);
    }
    face_corners(g, first, axis, corner, 3);
    return owner_of(w, corner, stride, closed, 3);
}

UN_KERNEL void find_shares(const dual_args *a, int64_t begin, int64_t end, int dim)
{
    un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = a->lo[1] + (int32_t)(row % a->n[1]), k = a->lo[2] + (int32_t)(row / a->n[1]);
        for (int32_t i = a->lo[0]; i < a->lo[0] + a->n[0]; i++)
            for (int axis = 0; axis < dim; axis++) {
                float *area = &w->area[axis][un_grid_cell(g, i, j, k)];
                int64_t corner[4], stride = g->node_stride[axis];
                if (in_side(w, i, j, k, axis)) continue;
                face_corners(g, un_grid_node(g, i, j, k), axis, corner, dim);
                int32_t body = owner_of(w, corner, stride, *area <= 0, dim);
                if (body < 0) continue;
                if (is_alone(w, corner, stride, body, dim))
                    *area = (float)fine_share(w, &w->bodies->body[body],
                                              un_grid_face_center(g, axis, i, j, k), dim);
                else
                    *area = (float)(0.5 * (half_share(w, corner, stride, dim) +
                                           half_share(w, corner, -stride, dim)));
            }
    }
}

static void shares(void *arg, int64_t begin, int64_t end)
{
    const dual_args *a = arg;
    UN_BY_DIM(a->walls->grid->dim, find_shares(a, begin, end, dim));
}

void un_walls_cells_around(const un_walls *w, int32_t b, int32_t lo[3], int32_t n[3])
{
    const un_grid *g = w->grid;
    un_box3 box = w->bodies->body[b].bounds;
    const double low[3] = {box.min.x, box.min.y, box.min.z};
    const double high[3] = {box.max.x, box.max.y, box.max.z};
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    for (int d = 0; d < 3; d++) {
        lo[d] = 0;
        n[d] = 1;
        if (d >= g->dim) continue;
        int32_t last = g->n[d] - 1;
        lo[d] = (int32_t)un_clamp(floor((low[d] - origin[d]) / g->h) - 1, 1, last);
        n[d] = (int32_t)un_clamp(ceil((high[d] - origin[d]) / g->h) + 1, 1, last) + 1 - lo[d];
    }
}

void un_walls_weigh_faces(un_walls *w)
{
    for (int32_t b = 0; b < w->bodies->count; b++) {
        dual_args a = {.walls = w, .body = b};
        if (!w->bodies->body[b].free) continue;
        un_walls_cells_around(w, b, a.lo, a.n);
        un_parallel_for(w->ctx, (int64_t)a.n[1] * a.n[2], 16, shares, &a);
    }
}

/* ---- velocities ---- */

static void velocities(void *arg, int64_t begin, int64_t end)
{
    const dual_args *a = arg;
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    const un_body *body = &w->bodies->body[a->body];
    un_vec3 centre = un_pose_apply(&body->to, body->centre);
    un_vec3 spin = un_body_pushing_turn(body, body->spin);
    for (int64_t row = begin; row < end; row++) {
        int32_t j = a->lo[1] + (int32_t)(row % a->n[1]), k = a->lo[2] + (int32_t)(row / a->n[1]);
        for (int32_t i = a->lo[0]; i < a->lo[0] + a->n[0]; i++)
            for (int axis = 0; axis < g->dim; axis++) {
                if (un_walls_free_body(w, i, j, k, axis) != a->body) continue;
                un_vec3 x = un_grid_face_center(g, axis, i, j, k);
                un_vec3 v = un_add(body->velocity, un_cross(spin, un_sub(x, centre)));
                w->velocity[axis][un_grid_cell(g, i, j, k)] = (float)(axis == 0   ? v.x
                                                                      : axis == 1 ? v.y
                                                                                  : v.z);
            }
    }
}

void un_walls_find_velocities(un_walls *w)
{
    for (int32_t b = 0; b < w->bodies->count; b++) {
        dual_args a = {.walls = w, .body = b};
        if (!w->bodies->body[b].free) continue;
        un_walls_cells_around(w, b, a.lo, a.n);
        un_parallel_for(w->ctx, (int64_t)a.n[1] * a.n[2], 16, velocities, &a);
    }
}
