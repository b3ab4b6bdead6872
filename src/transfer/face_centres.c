/* Velocities of viscous liquid at the faces themselves, on the staggered grid; and its density and
 * viscosity at cells.
 *
 * A face's velocity is the mean over the particles around it; at the surface and at walls that is
 * the velocity of a point inside. A spinning drop would seem to lag behind there, and viscosity
 * would brake all of it; liquid at a wall that it sticks to would seem to slide. So the mean is
 * moved from the centre of its particles to the face, along the gradient between the means around
 * it, taken over the distance of their own centres. */
#include "transfer/transfer.h"

#include "linalg/linalg.h"

/* What is left of a direction's weight in the fit once the others are known, at least. */
#define APART 0.1

typedef struct centre_args {
    double *const *u, *const *weight;
    const float *viscosity;
    const un_grid *grid;
    const un_particles *particles;
    double *centre[3]; /* at faces of one axis: times weight, then in cells */
    double *moved;     /* at faces of that axis */
    int axis;
} centre_args;

UN_KERNEL void scatter_in(const centre_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    int axis = a->axis;
    for (int64_t q = begin; q < end; q++) {
        un_face_stencil t = un_faces_stencil_in(g, un_particle_position(p, q), dim);
        double f[3], w[3][2], mass = p->volume[q];
        if (p->density) mass *= (double)p->density[q];
        for (int d = 0; d < dim; d++) {
            f[d] = t.f[d][d != axis];
            w[d][0] = 1 - f[d];
            w[d][1] = f[d];
        }
        for (int m = 0; m < 1 << dim; m++) {
            int64_t at = t.base[axis];
            double weight = mass;
            for (int d = 0; d < dim; d++) {
                at += (m >> d & 1) * g->stride[d];
                weight *= w[d][m >> d & 1];
            }
            for (int d = 0; d < dim; d++) a->centre[d][at] += weight * (f[d] - (m >> d & 1));
        }
    }
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    const centre_args *a = arg;
    UN_BY_DIM(a->grid->dim, scatter_in(a, begin, end, dim));
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    for (int d = 0; d < a->grid->dim; d++)
        memset(a->centre[d] + begin, 0, (size_t)(end - begin) * sizeof(double));
}

static void divide(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    const double *weight = a->weight[a->axis];
    for (int d = 0; d < a->grid->dim; d++)
        for (int64_t f = begin; f < end; f++)
            if (weight[f] > 0) a->centre[d][f] /= weight[f];
}

/* The change of u from its centre to the face: along the gradient that fits the means of the faces
 * next to it best, each taken at its own centre. Directions that they say little about have none.
 */
static double change_to_face(const centre_args *a, int64_t f, int dim)
{
    const double *u = a->u[a->axis], *weight = a->weight[a->axis];
    double fit[9] = {0}, sum[3] = {0}, change = 0;
    for (int side = 0; side < 2 * dim; side++) {
        int axis = side / 2, way = side & 1 ? 1 : -1;
        int64_t m = f + way * a->grid->stride[axis];
        double apart[3];
        if (!(weight[m] > 0)) continue;
        for (int d = 0; d < dim; d++)
            apart[d] = a->centre[d][m] - a->centre[d][f] + (d == axis ? way : 0);
        for (int d = 0; d < dim; d++) {
            sum[d] += weight[m] * apart[d] * (u[m] - u[f]);
            for (int e = 0; e < dim; e++) fit[dim * d + e] += weight[m] * apart[d] * apart[e];
        }
    }
    un_small_inverse(fit, dim, APART);
    for (int d = 0; d < dim; d++)
        for (int e = 0; e < dim; e++) change -= a->centre[d][f] * fit[dim * d + e] * sum[e];
    return change;
}

static void move_rows(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = row * g->n[0];
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        bool padding = j == 0 || j == g->n[1] - 1;
        if (g->dim == 3) padding = padding || k == 0 || k == g->n[2] - 1;
        for (int64_t f = first; f < first + g->n[0]; f++) {
            double sum = a->u[a->axis][f];
            bool inside = !padding && f > first && f < first + g->n[0] - 1;
            bool thick = !a->viscosity || a->viscosity[f] > 0;
            if (inside && thick && a->weight[a->axis][f] > 0) sum += change_to_face(a, f, g->dim);
            a->moved[f] = sum;
        }
    }
}

un_status un_transfer_move_to_faces(un_context *ctx, un_arena *arena, double *const u[3],
                                    double *const weight[3], const float *viscosity,
                                    const un_grid *grid, const un_bins *bins,
                                    const un_particles *particles)
{
    centre_args a = {
        .u = u, .weight = weight, .viscosity = viscosity, .grid = grid, .particles = particles};
    size_t cells = (size_t)grid->cell_count;
    int64_t grain = un_block_grain(grid->cell_count);
    a.moved = un_arena_alloc(arena, cells, sizeof *a.moved);
    if (!a.moved) return UN_ERROR_MEMORY;
    for (int d = 0; d < grid->dim; d++) {
        a.centre[d] = un_arena_alloc(arena, cells, sizeof(double));
        if (!a.centre[d]) return UN_ERROR_MEMORY;
    }
    un_runs own = un_grid_own_cells(grid, 0);
    for (a.axis = 0; a.axis < grid->dim; a.axis++) {
        un_parallel_runs(ctx, un_grid_own_cells(grid, UN_SCATTER_REACH), grain, clear, &a);
        un_bins_scatter(bins, scatter, &a);
        un_parallel_runs(ctx, own, grain, divide, &a);
        un_layered fields[5] = {{u[a.axis], 8}, {weight[a.axis], 8}};
        for (int d = 0; d < grid->dim; d++) fields[2 + d] = (un_layered){a.centre[d], 8};
        UN_TRY(un_grid_share(grid, fields, 2 + grid->dim, 1));
        un_parallel_runs(ctx, un_grid_own_rows(grid, 0), 64, move_rows, &a);
        un_runs_copy(u[a.axis], a.moved, sizeof *a.moved, own);
    }
    un_arena_reset(arena);
    return UN_OK;
}

/* ---- liquids that differ from place to place ---- */

typedef struct matter_args {
    const un_grid *grid;
    const un_bins *bins;
    const un_particles *particles;
    const un_mixture *mix;
    float *density, *viscosity; /* at cells */
    uint8_t *known, *next;      /* at cells */
} matter_args;

/* Means over particles within a cell, weighted by volume and a linear kernel. */
static void gather_rows(void *arg, int64_t begin, int64_t end)
{
    matter_args *a = arg;
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            un_vec3 x = un_grid_center(g, i, j, k);
            double sum = 0, density = 0, viscosity = 0;
            for (int n = 0; n < (g->dim == 2 ? 9 : 27); n++) {
                int32_t at[3] = {i + n % 3 - 1, j + n / 3 % 3 - 1, g->dim == 2 ? 0 : k + n / 9 - 1};
                if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= g->n[0] || at[1] >= g->n[1] ||
                    at[2] >= g->n[2])
                    continue;
                uint32_t cell = un_bins_cell(a->bins, at[0], at[1], at[2]);
                for (int32_t q = a->bins->begin[cell]; q < a->bins->begin[cell + 1]; q++) {
                    un_vec3 d = un_scale(un_sub(un_particle_position(p, q), x), g->inverse_h);
                    double w = fmax(1 - fabs(d.x), 0) * fmax(1 - fabs(d.y), 0) *
                               (g->dim == 2 ? 1 : fmax(1 - fabs(d.z), 0)) * (double)p->volume[q];
                    sum += w;
                    density += w * (double)p->density[q];
                    viscosity += w * (double)p->viscosity[q];
                }
            }
            a->known[c] = sum > 0;
            a->density[c] = (float)(sum > 0 ? density / sum : a->mix->density_all);
            a->viscosity[c] = (float)(sum > 0 ? viscosity / sum : a->mix->viscosity_all);
        }
    }
}

/* Cells that no particle reaches take the mean of those around them. */
static void spread_rows(void *arg, int64_t begin, int64_t end)
{
    matter_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            int32_t at[3] = {i, j, k};
            double density = 0, viscosity = 0;
            int count = 0;
            a->next[c] = a->known[c];
            if (a->known[c]) continue;
            for (int side = 0; side < 2 * g->dim; side++) {
                int axis = side / 2, to = at[axis] + (side & 1 ? 1 : -1);
                int64_t m = c + (side & 1 ? g->stride[axis] : -g->stride[axis]);
                if (to < 0 || to >= g->n[axis] || !a->known[m]) continue;
                density += (double)a->density[m];
                viscosity += (double)a->viscosity[m];
                count++;
            }
            if (count == 0) continue;
            a->density[c] = (float)(density / count);
            a->viscosity[c] = (float)(viscosity / count);
            a->next[c] = 1;
        }
    }
}

un_status un_transfer_mix_cells(un_context *ctx, un_arena *arena, un_mixture *mix,
                                const un_grid *grid, const un_bins *bins,
                                const un_particles *particles)
{
    size_t cells = (size_t)grid->cell_count;
    UN_TRY(
        un_array_need(ctx, (void **)&mix->density, &mix->capacity[0], cells, sizeof *mix->density));
    UN_TRY(un_array_need(ctx, (void **)&mix->viscosity, &mix->capacity[1], cells,
                         sizeof *mix->viscosity));
    matter_args a = {.grid = grid,
                     .bins = bins,
                     .particles = particles,
                     .mix = mix,
                     .density = mix->density,
                     .viscosity = mix->viscosity,
                     .known = un_arena_alloc(arena, cells, 1),
                     .next = un_arena_alloc(arena, cells, 1)};
    if (!a.known || !a.next) return UN_ERROR_MEMORY;
    un_runs own = un_grid_own_rows(grid, 0), own_cells = un_grid_own_cells(grid, 0);
    un_layered fields[3] = {{mix->density, sizeof *mix->density},
                            {mix->viscosity, sizeof *mix->viscosity},
                            {a.known, 1}};
    un_parallel_runs(ctx, own, 16, gather_rows, &a);
    for (int pass = 0; pass < 2; pass++) {
        UN_TRY(un_grid_share(grid, fields, 3, 1));
        un_parallel_runs(ctx, own, 64, spread_rows, &a);
        un_runs_copy(a.known, a.next, 1, own_cells);
    }
    UN_TRY(un_grid_share(grid, fields, 2, 1));
    un_arena_reset(arena);
    return UN_OK;
}
