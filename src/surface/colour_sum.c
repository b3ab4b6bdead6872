/* The particles' volumes at cells, smoothed by the product of quadratic B-splines (colour.c). */
#include "base/lanes.h"
#include "surface/surface.h"

typedef struct sum_args {
    float *colour;
    const un_grid *grid;
    const un_particles *particles;
    const un_walls *walls;
    double inverse_volume; /* of a cell */
} sum_args;

/* ---- particle by particle ---- */

UN_KERNEL void scatter_in(const sum_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    double inverse = 1 / g->h;
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
        float mass = p->volume[q] * (float)a->inverse_volume;
        uint32_t sight = UN_SIGHT_ALL;
        if (a->walls->parted)
            sight = un_walls_sight(a->walls, base + 1 + sy + (dim == 3 ? sz : 0),
                                   un_particle_position(p, q));
        for (sight &= un_colour_reach(g); sight; sight &= sight - 1) {
            int n = __builtin_ctz(sight), dx = n % 3, dy = n / 3 % 3, dz = dim == 2 ? 0 : n / 9;
            a->colour[base + dx + dy * sy + dz * sz] +=
                (dim == 2 ? mass : mass * w[2][dz]) * w[1][dy] * w[0][dx];
        }
    }
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    const sum_args *a = arg;
    UN_BY_DIM(a->grid->dim, scatter_in(a, begin, end, dim));
}

/* ---- cell by cell ---- */

/* Up to eight particles of a cell. */
typedef struct some {
    float x[8], y[8];  /* from its centre, in cells */
    float share[3][8]; /* of their volume, for the layers below, at and above it */
} some;

UN_KERNEL void load_some(some *s, const sum_args *a, int64_t q, int64_t count,
                         const double centre[3])
{
    const un_grid *g = a->grid;
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    un_eight x;
    un_lanes8 f[3], mass = {0};
    if (q + 8 <= a->particles->count) count = 8; /* with some of other cells */
    un_eight_load(&x, a->particles->x, q, count);
    if (count == 8)
        mass = un_lanes8_load(a->particles->volume + q);
    else
        memcpy(&mass, a->particles->volume + q, (size_t)count * sizeof(float));
    mass *= (float)a->inverse_volume;
    for (int axis = 0; axis < 3; axis++) {
        un_doubles8 at = (un_doubles8_load(x.of[axis], 8) - origin[axis]) * (1 / g->h);
        f[axis] = un_doubles8_to_floats(at - centre[axis]);
    }
    un_lanes8_store(s->x, f[0]);
    un_lanes8_store(s->y, f[1]);
    un_lanes8_store(s->share[0], mass * (0.5f * (0.5f - f[2]) * (0.5f - f[2])));
    un_lanes8_store(s->share[1], mass * (0.75f - f[2] * f[2]));
    un_lanes8_store(s->share[2], mass * (0.5f * (0.5f + f[2]) * (0.5f + f[2])));
}

/* c0 + c1 f + c2 f^2 are the splines of three cells in a row, and nothing for a fourth: a lane is a
 * cell of a layer, four along x times four along y. */
#define FOUR(a, b, c, d)                                                                           \
    {                                                                                              \
        a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d                                             \
    }
#define EACH_FOUR(a, b, c, d)                                                                      \
    {                                                                                              \
        a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d                                             \
    }

static void add_cell(const sum_args *a, const int32_t cell[3], int64_t begin, int64_t end)
{
    const un_lanes16 x0 = FOUR(0.125f, 0.75f, 0.125f, 0), x1 = FOUR(-0.5f, 0, 0.5f, 0);
    const un_lanes16 x2 = FOUR(0.5f, -1, 0.5f, 0), y0 = EACH_FOUR(0.125f, 0.75f, 0.125f, 0);
    const un_lanes16 y1 = EACH_FOUR(-0.5f, 0, 0.5f, 0), y2 = EACH_FOUR(0.5f, -1, 0.5f, 0);
    const un_grid *g = a->grid;
    un_lanes16 sum[3] = {{0}, {0}, {0}};
    double centre[3];
    int64_t base = 0;
    for (int axis = 0; axis < 3; axis++) {
        int32_t i = un_clampi(cell[axis], 1, g->n[axis] - 2);
        centre[axis] = i + 0.5;
        base += (i - 1) * g->stride[axis];
    }
    for (; begin < end; begin += 8) {
        some s;
        int64_t count = un_min64(end - begin, 8);
        load_some(&s, a, begin, count, centre);
        for (int64_t n = 0; n < count; n++) {
            un_lanes16 x = un_lanes16_all(s.x[n]), y = un_lanes16_all(s.y[n]);
            un_lanes16 w = un_lanes16_mad(un_lanes16_mad(x2, x, x1), x, x0);
            w *= un_lanes16_mad(un_lanes16_mad(y2, y, y1), y, y0);
            for (int z = 0; z < 3; z++)
                sum[z] = un_lanes16_mad(w, un_lanes16_all(s.share[z][n]), sum[z]);
        }
    }
    for (int z = 0; z < 3; z++) {
        float layer[16];
        un_lanes16_store(layer, sum[z]);
        for (int y = 0; y < 3; y++) {
            float *row = a->colour + base + y * g->stride[1] + z * g->stride[2];
            for (int x = 0; x < 3; x++) row[x] += layer[4 * y + x];
        }
    }
}

static void scatter_cells(void *arg, const int32_t corner[3], const int32_t *first)
{
    const sum_args *a = arg;
    for (int32_t c = 0; c < UN_BLOCK * UN_BLOCK * UN_BLOCK; c++) {
        if (first[c] == first[c + 1]) continue;
        const int32_t cell[3] = {corner[0] + c % UN_BLOCK, corner[1] + c / UN_BLOCK % UN_BLOCK,
                                 corner[2] + c / (UN_BLOCK * UN_BLOCK)};
        add_cell(a, cell, first[c], first[c + 1]);
    }
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    const sum_args *a = arg;
    memset(a->colour + begin, 0, (size_t)(end - begin) * sizeof *a->colour);
}

void un_colour_sum(un_context *ctx, float *colour, const un_grid *grid, const un_bins *bins,
                   const un_particles *particles, const un_walls *walls)
{
    sum_args a = {colour, grid, particles, walls, 1 / (grid->h * grid->h)};
    if (grid->dim == 3) a.inverse_volume /= grid->h;
    un_parallel_runs(ctx, un_grid_own_cells(grid, UN_SCATTER_REACH),
                     un_block_grain(grid->cell_count), clear, &a);
    if (grid->dim == 3 && !walls->parted)
        un_bins_scatter_cells(bins, scatter_cells, &a);
    else
        un_bins_scatter(bins, scatter, &a);
}
