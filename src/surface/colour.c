/* Level set of the simulation from the particles' volumes.
 *
 *     c(x) = sum_p V_p W(x - x_p) / integral of W over open space,     phi = h F^-1(c)
 *
 * W is the product of quadratic B-splines of width 3 h. Across a flat surface of evenly filled
 * liquid c falls along the known profile F(s) = integral from s to 3/2 of the spline, so phi is
 * the signed distance in cells, exact for axis-aligned and nearly exact for tilted surfaces. The
 * division makes walls invisible: water stays flat up to them, in edges and corners too.
 *
 * Compared with spheres or averaged positions [Zhu & Bridson 2005], c is smooth in the particle
 * positions (nothing flickers at rest), needs no radius, and weighs each particle by its volume,
 * so the surface encloses the particles' volume. Sheets and drops thinner than about 0.7 of a cell
 * have c < 1/2 throughout: their particles fly by themselves (ballistic). */
#include "surface/surface.h"

double un_colour_profile(double s)
{
    if (s < 0) return 1 - un_colour_profile(-s);
    if (s >= 1.5) return 0;
    if (s >= 0.5) return (1.5 - s) * (1.5 - s) * (1.5 - s) / 6;
    return 0.5 - s * (0.75 - s * s / 3);
}

double un_colour_distance(double c)
{
    if (!(c > 0)) return 1.5;
    if (c > 0.5) return -un_colour_distance(1 - c);
    if (c <= 1.0 / 6) return 1.5 - cbrt(6 * c);
    double s = (0.5 - c) / 0.72;
    for (int i = 0; i < 3; i++) s -= (s * (0.75 - s * s / 3) - (0.5 - c)) / (0.75 - s * s);
    return s;
}

/* ---- normalizer: the kernel's integral over cells is (1/6, 2/3, 1/6) along each axis ---- */

UN_KERNEL bool is_padding(const un_grid *g, int32_t i, int32_t j, int32_t k, int dim)
{
    return i == 0 || j == 0 || i == g->n[0] - 1 || j == g->n[1] - 1 ||
           (dim == 3 && (k == 0 || k == g->n[2] - 1));
}

typedef struct normalizer_args {
    float *out;
    const un_grid *grid;
    const un_walls *walls;
} normalizer_args;

UN_KERNEL void normalize_in(const normalizer_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    static const double w[3] = {1.0 / 6, 2.0 / 3, 1.0 / 6};
    const float *volume = a->walls->volume;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            if (is_padding(g, i, j, k, dim)) {
                a->out[c] = 1; /* beyond a wall or an open side */
                continue;
            }
            double sum = 0;
            for (int dz = 0; dz < (dim == 2 ? 1 : 3); dz++)
                for (int dy = 0; dy < 3; dy++)
                    for (int dx = 0; dx < 3; dx++) {
                        int64_t m = c + dx - 1 + (dy - 1) * g->stride[1];
                        if (dim == 2)
                            sum += w[dx] * w[dy] * volume[m];
                        else
                            sum += w[dx] * w[dy] * w[dz] * volume[m + (dz - 1) * g->stride[2]];
                    }
            a->out[c] = (float)sum;
        }
    }
}

static void normalize_rows(void *arg, int64_t begin, int64_t end)
{
    const normalizer_args *a = arg;
    UN_BY_DIM(a->grid->dim, normalize_in(a, begin, end, dim));
}

void un_colour_normalizer(un_context *ctx, float *normalizer, const un_grid *grid,
                          const un_walls *walls)
{
    normalizer_args a = {normalizer, grid, walls};
    un_parallel_for(ctx, (int64_t)grid->n[1] * grid->n[2], 64, normalize_rows, &a);
}

/* ---- colour and phi ---- */

typedef struct colour_args {
    float *phi, *colour;
    const un_grid *grid;
    const un_particles *particles;
    const float *normalizer;
} colour_args;

UN_KERNEL void scatter_in(const colour_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    double inverse = 1 / g->h, inverse_volume = inverse * inverse;
    if (dim == 3) inverse_volume *= inverse;
    int64_t sy = g->stride[1], sz = g->stride[2];
    for (int64_t q = begin; q < end; q++) {
        double s[3] = {(p->x[0][q] - g->origin.x) * inverse, (p->x[1][q] - g->origin.y) * inverse,
                       (p->x[2][q] - g->origin.z) * inverse};
        float w[3][3];
        int64_t base = 0;
        for (int axis = 0; axis < dim; axis++) {
            int32_t i = un_clampi((int32_t)s[axis], 1, g->n[axis] - 2);
            float f = (float)(s[axis] - i - 0.5); /* from the cell's centre, -1/2..1/2 */
            w[axis][0] = 0.5f * (0.5f - f) * (0.5f - f);
            w[axis][1] = 0.75f - f * f;
            w[axis][2] = 0.5f * (0.5f + f) * (0.5f + f);
            base += (i - 1) * g->stride[axis];
        }
        float mass = p->volume[q] * (float)inverse_volume;
        for (int dz = 0; dz < (dim == 2 ? 1 : 3); dz++)
            for (int dy = 0; dy < 3; dy++) {
                float wyz = (dim == 2 ? mass : mass * w[2][dz]) * w[1][dy];
                float *row = a->colour + base + dy * sy + dz * sz;
                row[0] += wyz * w[0][0];
                row[1] += wyz * w[0][1];
                row[2] += wyz * w[0][2];
            }
    }
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    const colour_args *a = arg;
    UN_BY_DIM(a->grid->dim, scatter_in(a, begin, end, dim));
}

/* Below this most of the kernel lies in a wall, and the little it sees is not reliable: phi is
 * extended from the open cells around. Otherwise a cell that a solid almost fills would be a pocket
 * of air, and the water around it would rush in. */
#define NORMALIZER_MIN 0.5f

static void invert(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    double h = a->grid->h;
    for (int64_t c = begin; c < end; c++) {
        float value = a->normalizer[c] > NORMALIZER_MIN ? a->colour[c] / a->normalizer[c] : 0;
        a->colour[c] = value;
        a->phi[c] = (float)(h * (value <= 0 ? 1.5 : value >= 1 ? -1.5 : un_colour_distance(value)));
    }
}

/* Takes the mean of the open neighbours, weighted by nearness: they lie on one side, as many above
 * as below, so a level surface continues level. */
static void extend_rows(void *arg, int64_t begin, int64_t end)
{
    static const double weight[4] = {0, 1, 0.5, 1.0 / 3}; /* by squared distance */
    colour_args *a = arg;
    const un_grid *g = a->grid;
    bool flat = g->dim == 2;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        if (is_padding(g, 1, j, k, g->dim)) continue;
        for (int32_t i = 1; i < g->n[0] - 1; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            if (a->normalizer[c] > NORMALIZER_MIN) continue;
            double sum = 0, total = 0;
            for (int n = 0; n < (flat ? 9 : 27); n++) {
                int d[3] = {n % 3 - 1, n / 3 % 3 - 1, flat ? 0 : n / 9 - 1};
                int32_t at[3] = {i + d[0], j + d[1], k + d[2]};
                int64_t m = un_grid_cell(g, at[0], at[1], at[2]);
                if (is_padding(g, at[0], at[1], at[2], g->dim) ||
                    a->normalizer[m] <= NORMALIZER_MIN)
                    continue;
                double w = weight[d[0] * d[0] + d[1] * d[1] + d[2] * d[2]];
                sum += w * a->phi[m];
                total += w;
            }
            if (total > 0) a->phi[c] = (float)(sum / total);
        }
    }
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    memset(a->colour + begin, 0, (size_t)(end - begin) * sizeof *a->colour);
}

void un_colour_level_set(un_context *ctx, float *phi, float *colour, const un_grid *grid,
                         const un_bins *bins, const un_particles *particles,
                         const float *normalizer)
{
    colour_args a = {phi, colour, grid, particles, normalizer};
    int64_t grain = un_block_grain(grid->cell_count);
    un_parallel_for(ctx, grid->cell_count, grain, clear, &a);
    un_bins_scatter(bins, scatter, &a);
    un_parallel_for(ctx, grid->cell_count, grain, invert, &a);
    un_parallel_for(ctx, (int64_t)grid->n[1] * grid->n[2], 64, extend_rows, &a);
}

/* ---- volume ---- */

typedef struct volume_args {
    const float *phi;
    const un_grid *grid;
    const un_walls *walls;
    const uint8_t *thick;
} volume_args;

/* A cut cell counts with its volume below the plane given by phi and its gradient. */
UN_KERNEL double volume_in(const volume_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    double sum = 0;
    for (int64_t row = begin; row < end; row++) {
        int32_t k = (int32_t)(row / g->n[1]), j = (int32_t)(row % g->n[1]);
        if (is_padding(g, 1, j, k, dim)) continue;
        for (int32_t i = 1; i < g->n[0] - 1; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            const float *phi = a->phi + c;
            double open = a->walls->volume[c], d = phi[0] / g->h;
            if (open <= 0 || d >= 0.87 || (a->thick && !a->thick[c])) continue;
            if (d <= -0.87) {
                sum += open;
                continue;
            }
            /* one-sided where a neighbour lies in a wall */
            double n[3] = {0};
            for (int axis = 0; axis < dim; axis++) {
                int64_t s = g->stride[axis];
                bool low = a->walls->volume[c - s] > 0, high = a->walls->volume[c + s] > 0;
                n[axis] = low && high ? 0.5 * (phi[s] - phi[-s])
                          : high      ? phi[s] - phi[0]
                          : low       ? phi[0] - phi[-s]
                                      : 0;
            }
            sum += open * un_cube_below_plane(un_normalize(un_v3(n[0], n[1], n[2])), -d);
        }
    }
    return sum;
}

static double volume_rows(void *arg, int64_t begin, int64_t end)
{
    const volume_args *a = arg;
    return a->grid->dim == 2 ? volume_in(a, begin, end, 2) : volume_in(a, begin, end, 3);
}

double un_colour_volume(un_context *ctx, const float *phi, const un_grid *grid,
                        const un_walls *walls, const uint8_t *thick)
{
    volume_args a = {phi, grid, walls, thick};
    double cells = un_parallel_sum(ctx, (int64_t)grid->n[1] * grid->n[2], volume_rows, &a);
    return grid->dim == 2 ? cells * grid->volume : cells * grid->h * grid->h * grid->h;
}
