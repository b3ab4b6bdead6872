/* The probes `front` and `height` of a level set on the grid. */
#include "mesh/mesh.h"

/* The farthest place along the axis that is reached by a cube of two cells wholly inside the
 * liquid. Thinner liquid, such as drops and the film ahead of a front, is below the grid's
 * resolution, and single particles would make the probe jump. A cube around a node is liquid when
 * its eight cells' centres, in 2D four, are all at least half a cell deep. */
static double node_phi(const un_grid *g, const float *phi, int64_t c)
{
    double most = -INFINITY;
    for (int n = 0; n < 1 << g->dim; n++) {
        int64_t m = c;
        for (int a = 0; a < g->dim; a++)
            if ((n >> a & 1) && g->n[a] > 3) m -= g->stride[a]; /* a side of one cell has one */
        most = fmax(most, phi[m]);
    }
    return most + 0.5 * g->h;
}

typedef struct front_args {
    const un_grid *grid;
    const float *phi;
    int axis;
    double sign;
} front_args;

/* Is there a node at this place whose cubes are in the domain? */
static bool inner_node(const un_grid *g, int axis, int64_t i)
{
    return axis >= g->dim || (i >= un_min64(2, g->n[axis] - 2) && i <= g->n[axis] - 2);
}

static double front_rows(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_grid *g = f->grid;
    int a = f->axis, b = (a + 1) % 3, c = (a + 2) % 3;
    int32_t first = f->sign > 0 ? g->n[a] - 2 : 2, step = f->sign > 0 ? -1 : 1;
    double front = -INFINITY, origin = a == 0 ? g->origin.x : a == 1 ? g->origin.y : g->origin.z;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % g->n[b], k = row / g->n[b];
        if (!inner_node(g, b, i) || !inner_node(g, c, k)) continue;
        double beyond = g->h; /* as if the surface were on the side itself */
        for (int32_t n = first; n >= 2 && n <= g->n[a] - 2; n += step) {
            if (f->sign * (origin + g->h * (n - 2 * step)) < front) break; /* behind another's */
            double phi =
                node_phi(g, f->phi, i * g->stride[b] + k * g->stride[c] + n * g->stride[a]);
            if (phi < 0) {
                double at = n - step * (phi / (phi - beyond) + 1);
                front = fmax(front, f->sign * (origin + g->h * at));
                break;
            }
            beyond = phi;
        }
    }
    return front;
}

double un_grid_front(un_context *ctx, const float *phi, const un_grid *g, int32_t axis, double sign)
{
    front_args f = {g, phi, axis, sign};
    int64_t rows = (int64_t)g->n[(axis + 1) % 3] * g->n[(axis + 2) % 3];
    double front = un_parallel_max(ctx, rows, front_rows, &f);
    double size = axis == 0 ? g->size.x : axis == 1 ? g->size.y : g->size.z;
    return isfinite(front) ? un_clamp(sign * front, 0, size) : NAN;
}

double un_grid_height(const float *phi, const un_grid *g, un_vec3 at)
{
    double half = 0.5 * g->h, above = INFINITY;
    at.x = un_clamp(at.x, half, g->size.x - half);
    if (g->dim == 3) at.z = un_clamp(at.z, half, g->size.z - half);
    for (int32_t j = g->n[1] - 2; j >= 1; j--) {
        un_vec3 x = un_v3(at.x, un_grid_center(g, 0, j, 0).y, at.z);
        double here = un_grid_sample(g, phi, x);
        if (here < 0)
            return fmin(x.y + (above > 1e9 ? half : g->h * here / (here - above)), g->size.y);
        above = here;
    }
    return 0;
}
