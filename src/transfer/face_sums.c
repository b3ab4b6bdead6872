/* Particles to faces, by linear interpolation on the staggered grid [Zhu & Bridson 2005; Bridson,
 * Fluid Simulation, ch. 7]:
 *
 *     u_f = sum_p V_p N_f(x_p) v_p / sum_p V_p N_f(x_p),   N_f = product of 1 - |x - x_f| / h
 *
 * In 3D the sums of a cell's particles are made in registers before they are added to the faces
 * around it: 18 along each axis, two layers of faces across it and three along the others. */
#include "base/lanes.h"
#include "transfer/transfer.h"

typedef struct faces_args {
    double *const *u, *const *weight;
    const un_grid *grid;
    const un_particles *particles;
} faces_args;

/* ---- particle by particle ---- */

UN_KERNEL void scatter_in(const faces_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    int64_t sy = g->stride[1], sz = g->stride[2];
    for (int64_t q = begin; q < end; q++) {
        un_face_stencil t = un_faces_stencil_in(g, un_particle_position(p, q), dim);
        double volume = p->volume[q]; /* or mass, where density varies */
        if (p->density) volume *= (double)p->density[q];
        double fall = p->fall[q] * (-1.0 / UN_FALL_FREE);
        double lead[3] = {p->lead.x, p->lead.y, p->lead.z};
        for (int axis = 0; axis < dim; axis++) {
            double fx = t.f[0][axis != 0], fy = t.f[1][axis != 1];
            double fz = dim == 2 ? 0 : t.f[2][axis != 2];
            double v = p->v[axis][q] + lead[axis] * fall, wz[2] = {volume * (1 - fz), volume * fz};
            double *u = a->u[axis] + t.base[axis], *w = a->weight[axis] + t.base[axis];
            for (int dz = 0; dz < dim - 1; dz++) {
                double w0 = wz[dz] * (1 - fy), w1 = wz[dz] * fy;
                double w00 = w0 * (1 - fx), w01 = w0 * fx, w10 = w1 * (1 - fx), w11 = w1 * fx;
                u[0] += w00 * v;
                u[1] += w01 * v;
                u[sy] += w10 * v;
                u[sy + 1] += w11 * v;
                w[0] += w00;
                w[1] += w01;
                w[sy] += w10;
                w[sy + 1] += w11;
                u += sz;
                w += sz;
            }
        }
    }
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    const faces_args *a = arg;
    UN_BY_DIM(a->grid->dim, scatter_in(a, begin, end, dim));
}

/* ---- cell by cell ---- */

/* Up to eight particles of a cell. */
typedef struct some {
    double x[3][8];        /* from its lowest corner, in cells */
    double v[3][8];        /* in the middle of the last step */
    double share[3][3][8]; /* of their volume, by axis: for the centres below, at and above it */
    uint32_t here; /* bits: still in the cell; they have been spread since they were sorted */
} some;

UN_KERNEL un_doubles8 load_floats(const float *from, int64_t q, int64_t count)
{
    float padded[8] = {0};
    if (count == 8) return un_doubles8_of_floats(un_lanes8_load(from + q));
    memcpy(padded, from + q, (size_t)count * sizeof *padded);
    return un_doubles8_of_floats(un_lanes8_load(padded));
}

UN_KERNEL un_doubles8 load_bytes(const uint8_t *from, int64_t q, int64_t count)
{
    uint8_t padded[8] = {0};
    if (count < 8) memcpy(padded, from + q, (size_t)count);
    return __builtin_convertvector(un_longs8_of_bytes(count < 8 ? padded : from + q), un_doubles8);
}

UN_KERNEL void load_some(some *s, const faces_args *a, int64_t q, int64_t count,
                         const int32_t cell[3])
{
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    const double lead[3] = {p->lead.x, p->lead.y, p->lead.z};
    const un_doubles8 zero = {0};
    un_eight x, v;
    un_longs8 here = ~(un_longs8){0};
    if (q + 8 <= p->count) count = 8; /* with some of other cells */
    un_eight_load(&x, p->x, q, count);
    un_eight_load(&v, p->v, q, count);
    un_doubles8 mass = load_floats(p->volume, q, count), fall = load_bytes(p->fall, q, count);
    if (p->density) mass *= load_floats(p->density, q, count);
    fall *= -1.0 / UN_FALL_FREE;
    for (int axis = 0; axis < 3; axis++) {
        un_doubles8 f = (un_doubles8_load(x.of[axis], 8) - origin[axis]) * g->inverse_h;
        f -= cell[axis];
        here &= (f >= 0) & (f < 1);
        un_doubles8 middle = un_doubles8_load(v.of[axis], 8);
        middle += lead[axis] * fall;
        un_doubles8 t = f - 0.5;
        un_doubles8 share[3] = {mass * un_doubles8_max(-t, zero), mass * (1 - un_doubles8_abs(t)),
                                mass * un_doubles8_max(t, zero)};
        memcpy(s->x[axis], &f, sizeof f);
        memcpy(s->v[axis], &middle, sizeof middle);
        memcpy(s->share[axis], share, sizeof share);
    }
    s->here = un_longs8_mask(here);
}

/* Sums over a cell's particles for the faces across an axis: three vectors of eight faces, of
 * weights and of weights times velocities. */
typedef struct face_sums {
    un_doubles8 weight[3], u[3];
} face_sums;

UN_KERNEL void add_vector(face_sums *sum, int d, un_doubles8 w, double v)
{
    sum->weight[d] += w;
    sum->u[d] = un_doubles8_mad(w, un_doubles8_all(v), sum->u[d]);
}

/* Not a loop: compilers would keep the sums in memory. */
UN_KERNEL void add_three(face_sums *sum, un_doubles8 w, const double share[3][8], int64_t n,
                         double v)
{
    add_vector(sum, 0, w * share[0][n], v);
    add_vector(sum, 1, w * share[1][n], v);
    add_vector(sum, 2, w * share[2][n], v);
}

/* A lane is a face. Across x: two faces along x, at the four centres along y from the one below on
 * (the last has no share); vectors along z. Across y: four centres along x, two faces along y;
 * vectors along z. Across z: four centres along x, two faces along z; vectors along y. */
UN_KERNEL void add_one(face_sums sum[3], const some *s, int64_t n)
{
    const un_doubles8 two = {0, 1, 0, 1, 0, 1, 0, 1}, twice = {0, 0, 0, 0, 1, 1, 1, 1};
    const un_doubles8 four = {-0.5, 0.5, 1.5, 2.5, -0.5, 0.5, 1.5, 2.5};
    const un_doubles8 four_wide = {-0.5, -0.5, 0.5, 0.5, 1.5, 1.5, 2.5, 2.5}, zero = {0};
    double x = s->x[0][n], y = s->x[1][n], z = s->x[2][n];
    un_doubles8 along_x = un_doubles8_max(1 - un_doubles8_abs(x - four), zero);
    un_doubles8 along_y = un_doubles8_max(1 - un_doubles8_abs(y - four_wide), zero);
    un_doubles8 across[3] = {1 - un_doubles8_abs(x - two), 1 - un_doubles8_abs(y - twice),
                             1 - un_doubles8_abs(z - twice)};
    add_three(&sum[0], across[0] * along_y, s->share[2], n, s->v[0][n]);
    add_three(&sum[1], across[1] * along_x, s->share[2], n, s->v[1][n]);
    add_three(&sum[2], across[2] * along_x, s->share[1], n, s->v[2][n]);
}

/* To two faces in a row, or three. */
UN_KERNEL void add_row(double *to, const double *from, int count)
{
    un_doubles2 sum, more;
    memcpy(&sum, to, sizeof sum);
    memcpy(&more, from, sizeof more);
    sum += more;
    memcpy(to, &sum, sizeof sum);
    if (count == 3) to[2] += from[2];
}

/* below: the cell below this one, in all three directions. */
UN_KERNEL void add_faces(double *const *field, const un_grid *g, int64_t below,
                         const double lane[3][3][8])
{
    const int64_t sy = g->stride[1], sz = g->stride[2];
    for (int d = 0; d < 3; d++) {
        for (int n = 0; n < 3; n++)
            add_row(field[0] + below + 1 + n * sy + d * sz, lane[0][d] + 2 * n, 2);
        for (int n = 0; n < 2; n++) {
            add_row(field[1] + below + (1 + n) * sy + d * sz, lane[1][d] + 4 * n, 3);
            add_row(field[2] + below + d * sy + (1 + n) * sz, lane[2][d] + 4 * n, 3);
        }
    }
}

UN_KERNEL void store_sums(double weight[3][8], double u[3][8], const face_sums *sum)
{
    un_doubles8_store(weight[0], sum->weight[0]);
    un_doubles8_store(weight[1], sum->weight[1]);
    un_doubles8_store(weight[2], sum->weight[2]);
    un_doubles8_store(u[0], sum->u[0]);
    un_doubles8_store(u[1], sum->u[1]);
    un_doubles8_store(u[2], sum->u[2]);
}

static void add_cell(const faces_args *a, const int32_t cell[3], int64_t begin, int64_t end)
{
    const un_grid *g = a->grid;
    const un_doubles8 zero = {0};
    const face_sums none = {{zero, zero, zero}, {zero, zero, zero}};
    face_sums sum[3] = {none, none, none};
    double weight[3][3][8], u[3][3][8];
    for (; begin < end; begin += 8) {
        some s;
        int64_t count = un_min64(end - begin, 8);
        load_some(&s, a, begin, count, cell);
        for (int64_t n = 0; n < count; n++)
            if (s.here >> n & 1)
                add_one(sum, &s, n);
            else
                scatter((void *)(uintptr_t)a, begin + n, begin + n + 1);
    }
    int64_t below = un_grid_cell(g, cell[0] - 1, cell[1] - 1, cell[2] - 1);
    store_sums(weight[0], u[0], &sum[0]);
    store_sums(weight[1], u[1], &sum[1]);
    store_sums(weight[2], u[2], &sum[2]);
    add_faces(a->weight, g, below, weight);
    add_faces(a->u, g, below, u);
}

/* In the outermost cells, beyond the sides, faces would be missing. */
static bool is_inner(const un_grid *g, const int32_t cell[3])
{
    for (int axis = 0; axis < 3; axis++)
        if (cell[axis] < 1 || cell[axis] > g->n[axis] - 2) return false;
    return true;
}

static void scatter_cells(void *arg, const int32_t corner[3], const int32_t *first)
{
    const faces_args *a = arg;
    for (int32_t c = 0; c < UN_BLOCK * UN_BLOCK * UN_BLOCK; c++) {
        if (first[c] == first[c + 1]) continue;
        const int32_t cell[3] = {corner[0] + c % UN_BLOCK, corner[1] + c / UN_BLOCK % UN_BLOCK,
                                 corner[2] + c / (UN_BLOCK * UN_BLOCK)};
        if (is_inner(a->grid, cell))
            add_cell(a, cell, first[c], first[c + 1]);
        else
            scatter(arg, first[c], first[c + 1]);
    }
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    faces_args *a = arg;
    for (int axis = 0; axis < a->grid->dim; axis++) {
        memset(a->u[axis] + begin, 0, (size_t)(end - begin) * sizeof(double));
        memset(a->weight[axis] + begin, 0, (size_t)(end - begin) * sizeof(double));
    }
}

static void divide(void *arg, int64_t begin, int64_t end)
{
    faces_args *a = arg;
    for (int axis = 0; axis < a->grid->dim; axis++) {
        double *restrict u = a->u[axis];
        const double *restrict weight = a->weight[axis];
        for (int64_t f = begin; f < end; f++)
            if (weight[f] > 0) u[f] /= weight[f];
    }
}

void un_transfer_to_faces(un_context *ctx, double *const u[3], double *const weight[3],
                          const un_grid *grid, const un_bins *bins, const un_particles *particles)
{
    faces_args a = {u, weight, grid, particles};
    int64_t grain = un_block_grain(grid->cell_count);
    un_parallel_runs(ctx, un_grid_own_cells(grid, UN_SCATTER_REACH), grain, clear, &a);
    if (grid->dim == 3)
        un_bins_scatter_cells(bins, scatter_cells, &a);
    else
        un_bins_scatter(bins, scatter, &a);
    un_parallel_runs(ctx, un_grid_own_cells(grid, 0), grain, divide, &a);
}
