/* Face velocities in and along walls. */
#include "pressure/pressure.h"

typedef struct constrain_args {
    double *const *u;
    double *const *w; /* other velocities on the same faces; NULL: none */
    uint8_t *const *known;
    const un_grid *grid;
    const un_walls *walls;
    const float *viscosity;
    double dt;
} constrain_args;

static un_vec3 face_center(const un_grid *g, int axis, int32_t i, int32_t j, int32_t k)
{
    return un_v3(g->origin.x + g->h * (i + (axis == 0 ? 0 : 0.5)),
                 g->origin.y + g->h * (j + (axis == 1 ? 0 : 0.5)),
                 g->origin.z + g->h * (k + (axis == 2 ? 0 : g->half[2])));
}

static double component(un_vec3 v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

/* The body that a face lies in, from the nearest of the four nodes (2D: two) around it; -1: a
 * side. */
static int32_t face_body(const un_walls *walls, int axis, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = walls->grid;
    if (!walls->body) return -1;
    int64_t best = un_grid_node(g, i, j, k);
    for (int s = 1; s < 4; s++) {
        int32_t d[3] = {0, 0, 0};
        d[(axis + 1) % 3] = s & 1;
        d[(axis + 2) % 3] = s >> 1;
        if (g->dim == 2 && d[2] != 0) continue;
        int64_t node = un_grid_node(g, i + d[0], j + d[1], k + d[2]);
        if (walls->phi[node] < walls->phi[best]) best = node;
    }
    return walls->body[best];
}

/* The distance of a face's centre to the walls, and their normal there: differences over half a
 * cell of what is linear between nodes, as un_walls_normal finds them. */
UN_KERNEL double face_wall(un_vec3 *normal, const un_walls *walls, int axis, int32_t i, int32_t j,
                           int32_t k, int dim)
{
    const un_grid *g = walls->grid;
    int32_t at[3] = {i, j, k};
    const float *v = walls->phi + un_grid_node(g, i, j, k);
    int b = (axis + 1) % 3, c = (axis + 2) % 3;
    if (dim == 2) b = 1 - axis, c = 2;
    int64_t sa = g->node_stride[axis], sb = g->node_stride[b],
            sc = dim == 3 ? g->node_stride[c] : 0;
    double mean[3], side[4] = {v[0], v[sb], v[sc], v[sb + sc]}, n[3] = {0, 0, 0};
    for (int step = -1; step <= 1; step++) {
        bool inside = at[axis] + step >= 0 && at[axis] + step <= g->n[axis];
        const float *m = v + (inside ? step * sa : 0);
        mean[1 + step] = 0.25 * (((double)m[0] + m[sb]) + ((double)m[sc] + m[sb + sc]));
    }
    n[axis] = 0.25 * (mean[2] - mean[0]);
    n[b] = 0.25 * ((side[1] - side[0]) + (side[3] - side[2]));
    if (dim == 3) n[c] = 0.25 * ((side[2] - side[0]) + (side[3] - side[1]));
    *normal = un_normalize(un_v3(n[0], n[1], n[2]));
    return mean[1];
}

/* Takes the velocity into the wall from face f. */
UN_KERNEL void stop_inward(double *const u[3], const un_grid *g, int axis, int64_t f, un_vec3 x,
                           un_vec3 n, un_vec3 solid, int dim)
{
    un_vec3 v;
    v.x = axis == 0 ? u[0][f] : un_faces_sample_axis(g, u[0], x, 0);
    v.y = axis == 1 ? u[1][f] : un_faces_sample_axis(g, u[1], x, 1);
    v.z = axis == 2 ? u[2][f] : dim == 3 ? un_faces_sample_axis(g, u[2], x, 2) : 0;
    double inward = un_dot(un_sub(v, solid), n);
    u[axis][f] -= inward * component(n, axis);
}

/* One axis per pass: a closed face writes its own axis and reads only its own value of it, so faces
 * may go in any order. Normals of curved walls mix the axes; one pass for each axis is a sweep. */
#define SWEEPS 2 /* one sweep leaves a quarter of the inflow at 45 degrees, two a few per cent */
UN_KERNEL void constrain_axis(constrain_args *a, int axis, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    const un_walls *walls = a->walls;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t f = un_grid_cell(g, i, j, k);
            if (walls->area[axis][f] >= UN_SLIVER || a->known[axis][f] == 1) continue;
            un_vec3 n, x = face_center(g, axis, i, j, k), solid = {0, 0, 0};
            if (face_wall(&n, walls, axis, i, j, k, dim) < -2 * g->h) continue;
            double low[3] = {x.x, x.y, x.z}, size[3] = {g->size.x, g->size.y, g->size.z};
            /* On or beyond a side of the domain nothing moves across it. */
            if (low[axis] < 1e-6 * g->h || low[axis] > size[axis] - 1e-6 * g->h) {
                a->u[axis][f] = 0;
                if (a->w) a->w[axis][f] = 0;
                continue;
            }
            if (walls->bodies->count == 0 || component(n, axis) == 0) continue;
            x = un_min3(un_max3(x, un_v3(0, 0, 0)), g->size);
            int32_t body = face_body(walls, axis, i, j, k);
            if (body >= 0) solid = un_body_velocity(&walls->bodies->body[body], x);
            if (dim == 2) solid.z = 0;
            stop_inward(a->u, g, axis, f, x, n, solid, dim);
            if (a->w) stop_inward(a->w, g, axis, f, x, n, solid, dim);
        }
    }
}

static void constrain_x(void *arg, int64_t begin, int64_t end)
{
    constrain_args *a = arg;
    UN_BY_DIM(a->grid->dim, constrain_axis(a, 0, begin, end, dim));
}
static void constrain_y(void *arg, int64_t begin, int64_t end)
{
    constrain_args *a = arg;
    UN_BY_DIM(a->grid->dim, constrain_axis(a, 1, begin, end, dim));
}
static void constrain_z(void *arg, int64_t begin, int64_t end)
{
    constrain_axis(arg, 2, begin, end, 3);
}

/* A pass reads the other axes' velocities at the faces around. */
static un_status share(const constrain_args *a)
{
    un_layered fields[6];
    int32_t count = 0;
    if (a->walls->bodies->count == 0) return UN_OK; /* each face its own */
    for (int axis = 0; axis < a->grid->dim; axis++) {
        fields[count++] = (un_layered){a->u[axis], sizeof *a->u[axis]};
        if (a->w) fields[count++] = (un_layered){a->w[axis], sizeof *a->w[axis]};
    }
    return un_grid_share(a->grid, fields, count, 1);
}

un_status un_pressure_constrain(un_context *ctx, double *const u[3], double *const w[3],
                                uint8_t *const known[3], const un_grid *grid, const un_walls *walls)
{
    un_parallel_body *const passes[] = {constrain_x, constrain_y, constrain_z};
    constrain_args a = {.u = u, .w = w, .known = known, .grid = grid, .walls = walls};
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int axis = 0; axis < grid->dim; axis++) {
            UN_TRY(share(&a));
            un_parallel_runs(ctx, un_grid_own_rows(grid, 0), 64, passes[axis], &a);
        }
    return UN_OK;
}

static void friction_rows(void *arg, int64_t begin, int64_t end)
{
    constrain_args *a = arg;
    const un_grid *g = a->grid;
    const un_walls *walls = a->walls;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t f = un_grid_cell(g, i, j, k);
            for (int axis = 0; axis < g->dim; axis++) {
                int32_t b = face_body(walls, axis, i, j, k);
                if (b < 0 || walls->bodies->body[b].friction <= 0) continue;
                if (a->viscosity && a->viscosity[f] > 0) continue;
                un_vec3 x = face_center(g, axis, i, j, k);
                if (un_walls_distance(walls, x) > 0.5 * g->h) continue;
                double left = un_body_slip_left(&walls->bodies->body[b], a->dt);
                double solid = component(un_body_velocity(&walls->bodies->body[b], x), axis);
                a->u[axis][f] = solid + (a->u[axis][f] - solid) * left;
            }
        }
    }
}

void un_pressure_friction(un_context *ctx, double *const u[3], const un_grid *grid,
                          const un_walls *walls, const float *viscosity, double dt)
{
    if (!walls->bodies->friction) return;
    constrain_args a = {.u = u, .grid = grid, .walls = walls, .viscosity = viscosity, .dt = dt};
    un_parallel_runs(ctx, un_grid_own_rows(grid, 0), 64, friction_rows, &a);
}
