/* The force of the liquid's pressure on a solid.
 *
 *     F = - integral of p n over the solid's surface, n out of the solid
 *
 * in cubes of half the finest cell's edge: with whole ones a ball of four cells' radius would lose
 * 1.7 % of its lift to corners cut off, with halves 0.4 %. The faces of a cube that the surface
 * cuts are open by a part f; what is left of a closed surface is the solid's: n A = sum of f_i n_i
 * over the cube's faces. Both cubes of a face see the same part, so that areas sum to nothing
 * around a solid, and a pressure that is the same everywhere moves nothing. */
#include "pressure/pressure.h"

/* Cubes along a cell's edge. */
#define CUBES 2
/* Where pressures are taken, in cells from the surface; the wall's is extrapolated from both. */
#define NEAR 0.5
#define FAR 1.0

typedef struct force_args {
    const un_force *in;
    int32_t lo[3], n[3]; /* cubes to visit */
} force_args;

/* The open part of a face with these distances at its corners, in order around it. */
static double open_part(const double v[4], int dim)
{
    if (dim == 2) { /* an edge: v[0] and v[1] */
        double low = fmin(v[0], v[1]), high = fmax(v[0], v[1]);
        return low >= 0 ? high > 0 : high <= 0 ? 0 : high / (high - low);
    }
    double mid = 0.25 * (v[0] + v[1] + v[2] + v[3]), sum = 0;
    for (int i = 0; i < 4; i++) sum += un_triangle_fraction((double[3]){v[i], v[(i + 1) & 3], mid});
    return 0.25 * sum;
}

/* The solid's surface in the cube: its area along each axis, out of the solid. */
static un_vec3 surface_in(const double d[8], double h, int dim)
{
    double open[3][2];
    for (int a = 0; a < dim; a++)
        for (int side = 0; side < 2; side++) {
            int b = 1 << (a + 1) % dim, c = dim == 3 ? 1 << (a + 2) % 3 : 0;
            int base = side << a;
            const double v[4] = {d[base], d[base + b], d[base + b + c], d[base + c]};
            open[a][side] = open_part(v, dim);
        }
    double area = dim == 2 ? h : h * h;
    return un_v3(area * (open[0][1] - open[0][0]), area * (open[1][1] - open[1][0]),
                 dim == 3 ? area * (open[2][1] - open[2][0]) : 0);
}

static double pressure_on(const un_force *in, un_vec3 x, un_vec3 n)
{
    double h = in->grid->h;
    bool near = false, far = false;
    un_vec3 at = un_mad(x, n, NEAR * h);
    double p = in->pressure(in->state, at, &near);
    if (!near) return 0;
    double beyond = in->pressure(in->state, un_mad(x, n, FAR * h), &far);
    if (far) return p + (p - beyond) * NEAR / (FAR - NEAR);
    return p + in->density * un_dot(in->gravity, un_sub(x, at));
}

static double force_rows(void *arg, int64_t begin, int64_t end)
{
    const force_args *a = arg;
    const un_force *in = a->in;
    int dim = in->grid->dim;
    double h = in->grid->h / CUBES, sum = 0;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < a->n[0]; i++) {
            int32_t j = a->lo[1] + (int32_t)(row % a->n[1]),
                    k = a->lo[2] + (int32_t)(row / a->n[1]);
            un_vec3 low = un_v3((a->lo[0] + i) * h, j * h, dim == 3 ? k * h : 0);
            un_vec3 mid = un_add(low, un_v3(0.5 * h, 0.5 * h, dim == 3 ? 0.5 * h : 0));
            double d[8], here = un_body_distance(in->body, mid);
            if (fabs(here) > 0.87 * h) continue;
            for (int c = 0; c < 1 << dim; c++)
                d[c] = un_body_distance(
                    in->body, un_add(low, un_v3(c & 1 ? h : 0, c & 2 ? h : 0, c & 4 ? h : 0)));
            un_vec3 area = surface_in(d, h, dim), n = un_body_normal(in->body, mid);
            double along = in->axis == 0 ? area.x : in->axis == 1 ? area.y : area.z;
            if (along != 0) sum -= along * pressure_on(in, un_mad(mid, n, -here), n);
        }
    return sum;
}

double un_pressure_force(un_context *ctx, const un_force *in)
{
    const un_grid *g = in->grid;
    const un_box3 *box = &in->body->bounds;
    force_args a = {.in = in, .n = {1, 1, 1}};
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};
    for (int axis = 0; axis < g->dim; axis++) {
        double most = CUBES * (g->n[axis] - 2), h = g->h / CUBES; /* cubes of the domain */
        a.lo[axis] = (int32_t)un_clamp(floor(low[axis] / h) - 1, 0, most);
        a.n[axis] = (int32_t)un_clamp(ceil(high[axis] / h) + 1, 0, most) - a.lo[axis];
        if (a.n[axis] <= 0) return 0;
    }
    return un_parallel_sum(ctx, (int64_t)a.n[1] * a.n[2], force_rows, &a);
}
