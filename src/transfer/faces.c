/* Particles to faces and back, by linear interpolation on the staggered grid [Zhu & Bridson 2005;
 * Bridson, Fluid Simulation, ch. 7]. */
#include "transfer/transfer.h"

typedef struct faces_args {
    double *const *u, *const *weight;
    const un_grid *grid;
    const un_particles *particles;
} faces_args;

static void scatter(void *arg, int64_t begin, int64_t end)
{
    faces_args *a = arg;
    const un_grid *g = a->grid;
    const un_particles *p = a->particles;
    int64_t sy = g->stride[1], sz = g->stride[2];
    for (int64_t q = begin; q < end; q++) {
        un_face_stencil t = un_faces_stencil(g, un_particle_position(p, q));
        double volume = p->volume[q];
        for (int axis = 0; axis < 3; axis++) {
            double fx = t.f[0][axis != 0], fy = t.f[1][axis != 1], fz = t.f[2][axis != 2];
            double v = p->v[axis][q], wz[2] = {volume * (1 - fz), volume * fz};
            double *u = a->u[axis] + t.base[axis], *w = a->weight[axis] + t.base[axis];
            for (int dz = 0; dz < 2; dz++) {
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

static void clear(void *arg, int64_t begin, int64_t end)
{
    faces_args *a = arg;
    for (int axis = 0; axis < 3; axis++) {
        memset(a->u[axis] + begin, 0, (size_t)(end - begin) * sizeof(double));
        memset(a->weight[axis] + begin, 0, (size_t)(end - begin) * sizeof(double));
    }
}

static void divide(void *arg, int64_t begin, int64_t end)
{
    faces_args *a = arg;
    for (int axis = 0; axis < 3; axis++)
        for (int64_t f = begin; f < end; f++)
            if (a->weight[axis][f] > 0) a->u[axis][f] /= a->weight[axis][f];
}

void un_transfer_to_faces(un_context *ctx, double *const u[3], double *const weight[3],
                          const un_grid *grid, const un_bins *bins, const un_particles *particles)
{
    faces_args a = {u, weight, grid, particles};
    int64_t grain = un_block_grain(grid->cell_count);
    un_parallel_for(ctx, grid->cell_count, grain, clear, &a);
    un_bins_scatter(bins, scatter, &a);
    un_parallel_for(ctx, grid->cell_count, grain, divide, &a);
}

/* ---- back to the particles ---- */

typedef struct particles_args {
    un_particles *particles;
    double *const *u_new, *const *u_old;
    const un_grid *grid;
    const un_flip *flip;
} particles_args;

static void update(void *arg, int64_t begin, int64_t end)
{
    particles_args *a = arg;
    un_particles *p = a->particles;
    const un_flip *flip = a->flip;
    double inverse_quiet = 1 / (flip->quiet_speed * flip->quiet_speed);
    for (int64_t q = begin; q < end; q++) {
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            p->v[0][q] += flip->dt * flip->gravity.x;
            p->v[1][q] += flip->dt * flip->gravity.y;
            p->v[2][q] += flip->dt * flip->gravity.z;
            continue;
        }
        un_face_stencil at = un_faces_stencil(a->grid, un_particle_position(p, q));
        un_vec3 now = un_faces_at(a->grid, a->u_new, &at);
        un_vec3 before = un_faces_at(a->grid, a->u_old, &at);
        un_vec3 v = un_add(un_particle_velocity(p, q), un_sub(now, before));
        double stir = un_dot(now, now) * inverse_quiet;
        double pic = flip->pic + (flip->pic_quiet - flip->pic) / (1 + stir * stir);
        p->v[0][q] = v.x + pic * (now.x - v.x);
        p->v[1][q] = v.y + pic * (now.y - v.y);
        p->v[2][q] = v.z + pic * (now.z - v.z);
    }
}

void un_transfer_to_particles(un_context *ctx, un_particles *particles, double *const u_new[3],
                              double *const u_old[3], const un_grid *grid, const un_flip *flip)
{
    particles_args a = {particles, u_new, u_old, grid, flip};
    un_parallel_for(ctx, particles->count, 4096, update, &a);
}

/* ---- ballistic ---- */

typedef struct mark_args {
    un_particles *particles;
    const float *phi;
    const un_grid *grid;
} mark_args;

static void mark(void *arg, int64_t begin, int64_t end, double *sums)
{
    mark_args *a = arg;
    un_particles *p = a->particles;
    const un_grid *g = a->grid;
    for (int64_t q = begin; q < end; q++) {
        un_stencil t = un_grid_stencil(g, un_particle_position(p, q), 0.5, 0.5, 0.5);
        const float *v = a->phi + t.base;
        int64_t sy = g->stride[1], sz = g->stride[2];
        bool wet = v[0] < 0 || v[1] < 0 || v[sy] < 0 || v[sy + 1] < 0 || v[sz] < 0 ||
                   v[sz + 1] < 0 || v[sz + sy] < 0 || v[sz + sy + 1] < 0;
        p->flags[q] = wet ? 0 : UN_PARTICLE_BALLISTIC;
        if (!wet)
            sums[0] += 1;
        else if (un_grid_sample(g, a->phi, un_particle_position(p, q)) < 0)
            sums[1] += p->volume[q];
    }
}

int64_t un_transfer_mark_ballistic(un_context *ctx, un_particles *particles, const float *phi,
                                   const un_grid *grid, double *volume_inside)
{
    mark_args a = {particles, phi, grid};
    double sums[2];
    un_parallel_sums(ctx, particles->count, 2, mark, &a, sums);
    *volume_inside = sums[1];
    return (int64_t)sums[0];
}
