/* Particle paths: Ralston's third-order Runge-Kutta through the frozen velocity field
 *
 *     k1 = u(x), k2 = u(x + dt/2 k1), k3 = u(x + 3dt/4 k2), x += dt (2 k1 + 3 k2 + 4 k3) / 9
 *
 * then one swept collision along the chord. Ballistic particles move straight on with their
 * velocity in the middle of the step: a parabola. */
#include "advect/advect.h"

typedef struct path_args {
    un_particles *particles;
    un_hit *hits;
    double *const *u;
    const un_walls *walls;
    un_vec3 lead;
    double dt;
} path_args;

static un_vec3 in_domain(const un_grid *g, un_vec3 x)
{
    return un_min3(un_max3(x, un_v3(0, 0, 0)), g->size);
}

UN_KERNEL void move_in(const path_args *a, int64_t begin, int64_t end, int dim)
{
    un_particles *p = a->particles;
    const un_walls *walls = a->walls;
    const un_grid *g = walls->grid;
    double dt = a->dt;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), step;
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            step = un_scale(v, dt);
        } else {
            un_vec3 k1 = un_faces_sample_in(g, a->u, x, dim);
            un_vec3 k2 = un_faces_sample_in(g, a->u, in_domain(g, un_mad(x, k1, 0.5 * dt)), dim);
            un_vec3 k3 = un_faces_sample_in(g, a->u, in_domain(g, un_mad(x, k2, 0.75 * dt)), dim);
            step = un_scale(un_mad(un_mad(un_scale(k1, 2), k2, 3), k3, 4), dt / 9);
        }
        un_vec3 to = un_add(x, step);
        /* Far from all walls there is nothing to hit: phi is a lower bound of the distance. */
        bool free =
            !walls->bodies->moving && un_walls_distance(walls, x) > un_length(step) + 1.75 * g->h;
        un_vec3 was = v;
        un_hit hit = {.body = -1};
        if (!free) to = un_advect_collide_hit(walls, x, to, dt, &v, &hit);
        if (a->hits) a->hits[q] = hit;
        if (dim == 2) to.z = v.z = 0; /* even if a solid moves along z */
        un_particle_set_position(p, q, to);
        un_advect_finish(p, q, v, was, a->lead);
    }
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    UN_BY_DIM(a->walls->grid->dim, move_in(a, begin, end, dim));
}

void un_advect_particles(un_context *ctx, un_particles *particles, un_hit *hits, double *const u[3],
                         const un_walls *walls, un_vec3 gravity, double dt)
{
    path_args a = {particles, hits, u, walls, un_scale(gravity, 0.5 * dt), dt};
    un_parallel_for(ctx, particles->count, 2048, move, &a);
    particles->lead = a.lead;
}
