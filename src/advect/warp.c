/* Particle paths through velocities at the centres of a grid that warps: the Runge-Kutta of paths.c
 * in space, each of its points located on the grid. */
#include "advect/advect.h"

typedef struct path_args {
    un_particles *particles;
    const un_vec3 *u;
    const float *phi;
    const un_warp *warp;
    const un_walls *walls, *on_warp;
    un_vec3 lead;
    double dt;
} path_args;

UN_KERNEL void move_in(const path_args *a, int64_t begin, int64_t end, int dim)
{
    un_particles *p = a->particles;
    const un_walls *walls = a->walls;
    double dt = a->dt, margin = 0.05 * walls->grid->h;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), step;
        un_vec3 xi = un_v3(p->xi[0][q], p->xi[1][q], p->xi[2][q]);
        un_warp_walker w = {.xi = xi};
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            step = un_scale(v, dt);
        } else {
            w = un_warp_walker_in(a->warp, xi, dim);
            un_vec3 k1 = un_advect_velocity_in(a->u, a->warp, x, &w, dim);
            un_vec3 k2 = un_advect_velocity_in(a->u, a->warp, un_mad(x, k1, 0.5 * dt), &w, dim);
            un_vec3 k3 = un_advect_velocity_in(a->u, a->warp, un_mad(x, k2, 0.75 * dt), &w, dim);
            step = un_scale(un_mad(un_mad(un_scale(k1, 2), k2, 3), k3, 4), dt / 9);
            double falls = un_transfer_falls_in(a->phi, a->on_warp, xi, dim);
            step = un_mad(step, un_sub(un_scale(v, dt), step), falls);
            w.xi = un_mad(xi, un_sub(w.xi, xi), 1 / 0.75);
        }
        un_vec3 to = un_add(x, step);
        bool free = !walls->bodies->moving &&
                    un_warp_clearance(walls, a->on_warp, x, xi) > un_length(step) + margin;
        un_vec3 was = v;
        if (!free) to = un_advect_collide(walls, x, to, dt, &v);
        if (dim == 2) to.z = v.z = 0;
        un_particle_set_position(p, q, to);
        p->xi[0][q] = w.xi.x; /* a guess, until particles are located on the next grid */
        p->xi[1][q] = w.xi.y;
        p->xi[2][q] = w.xi.z;
        un_advect_finish(p, q, v, was, a->lead);
    }
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    UN_BY_DIM(a->warp->grid.dim, move_in(a, begin, end, dim));
}

void un_advect_warped(un_context *ctx, un_particles *particles, const un_vec3 *u, const float *phi,
                      const un_walls *walls, const un_walls *on_warp, un_vec3 gravity, double dt)
{
    path_args a = {particles, u, phi, on_warp->warp, walls, on_warp, un_scale(gravity, 0.5 * dt),
                   dt};
    un_parallel_for(ctx, particles->count, 2048, move, &a);
    particles->lead = a.lead;
}
