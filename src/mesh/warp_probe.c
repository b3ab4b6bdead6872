/* Fields of a grid that warps at points of space, and the probes `front` and `height`. */
#include "mesh/mesh.h"

static un_warp_point point_at(const un_warp *w, un_vec3 x)
{
    un_vec3 xi = un_warp_guess(w, x);
    un_warp_point p;
    x = un_min3(un_max3(x, un_v3(0, 0, 0)), w->size);
    UN_BY_DIM(w->grid.dim, p = un_warp_locate_in(w, x, &xi, dim));
    return p;
}

double un_warp_sample(const float *field, const un_warp *w, un_vec3 x)
{
    un_warp_point p = point_at(w, x);
    double sum = 0;
    for (int m = 0; m < 1 << w->grid.dim; m++)
        sum += un_warp_weight(&p.at, m, w->grid.dim) *
               field[un_warp_corner(&w->grid, p.at.base, m, w->grid.dim)];
    return sum;
}

un_vec3 un_warp_sample3(const un_vec3 *field, const un_warp *w, un_vec3 x)
{
    un_warp_point p = point_at(w, x);
    un_vec3 sum = {0, 0, 0};
    for (int m = 0; m < 1 << w->grid.dim; m++)
        sum = un_mad(sum, field[un_warp_corner(&w->grid, p.at.base, m, w->grid.dim)],
                     un_warp_weight(&p.at, m, w->grid.dim));
    return sum;
}

/* The place is found among the nodes themselves: a few Newton steps in the cell. */
int un_warp_places_around(const un_walls *walls, un_vec3 x, int64_t place[8], double weight[8])
{
    const un_warp *w = walls->warp;
    const un_grid *g = &w->grid;
    un_vec3 xi = un_warp_locate(w, x, un_warp_guess(w, x));
    int count = 1 << g->dim;
    int32_t n[3];
    for (int i = 0; i < 8; i++) {
        un_stencil t;
        UN_BY_DIM(g->dim, t = un_grid_stencil_in(g, xi, 0, dim));
        n[0] = (int32_t)(t.base % g->n[0]);
        n[1] = (int32_t)(t.base / g->n[0] % g->n[1]);
        n[2] = (int32_t)(t.base / g->stride[2]);
        for (int a = 0; a < g->dim; a++) {
            int32_t in = un_clampi(n[a], 1, g->n[a] - 2);
            t.f[a] += n[a] - in;
            n[a] = in;
        }
        un_warp_point p = {.column = {{0}, {0}, {0, 0, g->dim == 2}}};
        for (int m = 0; m < count; m++) {
            un_vec3 at = un_warp_node(w, n[0] + (m & 1), n[1] + (m >> 1 & 1), n[2] + (m >> 2));
            weight[m] = un_warp_weight(&t, m, g->dim);
            p.x = un_mad(p.x, at, weight[m]);
            for (int a = 0; a < g->dim; a++)
                p.column[a] =
                    un_mad(p.column[a], at, un_warp_slope(&t, m, a, g->dim) * g->inverse_h);
        }
        xi = un_warp_inside(g, un_add(xi, un_warp_pull(&p, un_sub(x, p.x))));
    }
    un_warp_places(walls, n[0], n[1], n[2], place);
    return count;
}

/* ---- front ---- */

typedef struct front_args {
    const un_warp *warp;
    const float *phi;
    int axis;
    double sign;
} front_args;

/* As in probe.c: a cube of two cells around a node is liquid if their centres are all at least half
 * a cell deep. */
static double cube_phi(const un_grid *g, const float *phi, const int32_t n[3])
{
    double most = -INFINITY;
    for (int m = 0; m < 1 << g->dim; m++)
        most =
            fmax(most, phi[un_grid_cell(g, n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2))]);
    return most + 0.5 * g->h;
}

static double front_rows(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_grid *g = &f->warp->grid;
    int a = f->axis, b = a == 0 ? 1 : 0, c = 3 - a - b, step = f->sign > 0 ? -1 : 1;
    double front = -INFINITY;
    for (int64_t row = begin; row < end; row++) {
        int32_t n[3], inner = g->n[b] - 3;
        n[b] = 2 + (int32_t)(row % inner);
        n[c] = c < g->dim ? 2 + (int32_t)(row / inner) : 0;
        double beyond = g->h;
        for (n[a] = step < 0 ? g->n[a] - 2 : 2; n[a] >= 2 && n[a] <= g->n[a] - 2; n[a] += step) {
            double phi = cube_phi(g, f->phi, n);
            if (phi < 0) {
                un_vec3 xi = un_grid_node_position(g, n[0], n[1], n[2]);
                double along = -step * (phi / (phi - beyond) + 1) * g->h;
                xi = un_add(xi, un_v3(a == 0 ? along : 0, a == 1 ? along : 0, a == 2 ? along : 0));
                un_vec3 x = un_warp_map(f->warp, un_warp_inside(g, xi));
                front = fmax(front, f->sign * (a == 0 ? x.x : a == 1 ? x.y : x.z));
                break;
            }
            beyond = phi;
        }
    }
    return front;
}

double un_warp_front(un_context *ctx, const float *phi, const un_warp *warp, int32_t axis,
                     double sign)
{
    const un_grid *g = &warp->grid;
    front_args f = {warp, phi, axis, sign};
    int b = axis == 0 ? 1 : 0, c = 3 - axis - b;
    int64_t rows = (int64_t)(g->n[b] - 3) * (c < g->dim ? g->n[c] - 3 : 1);
    double front = rows > 0 ? un_parallel_max(ctx, rows, front_rows, &f) : -INFINITY;
    return isfinite(front) ? sign * front : NAN;
}

/* ---- height ---- */

/* Steps of the search, in cells. */
#define STEP 0.25

double un_warp_height(const float *phi, const un_warp *w, un_vec3 at)
{
    double step = STEP * w->grid.h, above = INFINITY;
    for (double y = w->size.y; y >= 0; y -= step) {
        double here = un_warp_sample(phi, w, un_v3(at.x, y, at.z));
        if (here < 0) return above > 1e9 ? y : y + step * here / (here - above);
        above = here;
    }
    return 0;
}
