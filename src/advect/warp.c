/* Particle paths through velocities at the centres of a grid that warps: the Runge-Kutta of paths.c
 * in space, each of its points located on the grid. */
#include "advect/advect.h"

typedef struct path_args {
    un_particles *particles;
    un_hit *hits;
    const un_vec3 *u;
    const float *phi;
    const un_warp *warp;
    const un_walls *walls, *on_warp;
    un_vec3 lead;
    double dt;
} path_args;

/* The velocity at eight points: as un_advect_velocity_in. */
static void velocity(un_eight *v, const path_args *a, un_warp_eight *w, const un_eight *x)
{
    const un_grid *g = &a->warp->grid;
    un_eight step, slope[3];
    un_warp_eight_walk(a->warp, w, x, UN_ADVECT_NEAR, &step);
    un_warp_eight_blend(g, a->u, w, v, slope);
    for (int d = 0; d < 3; d++)
        for (int b = 0; b < g->dim; b++)
            for (int n = 0; n < 8; n++)
                v->of[d][n] += slope[b].of[d][n] * (step.of[b][n] * g->inverse_h);
}

/* x + k dt, in the domain. */
static void go(un_eight *to, const un_eight *x, const un_eight *k, double dt, const un_warp *w)
{
    const double size[3] = {w->size.x, w->size.y, w->size.z};
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < 8; n++) {
            double at = x->of[d][n] + k->of[d][n] * dt;
            at = at > 0 ? at : 0;
            to->of[d][n] = at < size[d] ? at : size[d];
        }
}

/* How far eight points go, what share of free fall they follow, and where they are in the end,
 * about. */
static void trace(un_eight *step, double falls[8], un_eight *end, const path_args *a,
                  const un_eight *x, const un_eight *xi)
{
    un_eight k1, k2, k3, at;
    un_warp_eight w = {.xi = *xi};
    un_warp_eight_at(a->warp, &w);
    un_transfer_falls_eight(a->phi, a->on_warp, &w, falls);
    un_eight none = {{{0}}};
    go(&at, x, &none, 0, a->warp);
    velocity(&k1, a, &w, &at);
    go(&at, x, &k1, 0.5 * a->dt, a->warp);
    velocity(&k2, a, &w, &at);
    go(&at, x, &k2, 0.75 * a->dt, a->warp);
    velocity(&k3, a, &w, &at);
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < 8; n++) {
            step->of[d][n] = (k1.of[d][n] * 2 + k2.of[d][n] * 3 + k3.of[d][n] * 4) * (a->dt / 9);
            end->of[d][n] = xi->of[d][n] + (w.xi.of[d][n] - xi->of[d][n]) / 0.75;
        }
}

UN_KERNEL void move_one(const path_args *a, int64_t q, un_vec3 xi, un_vec3 step, double falls,
                        un_vec3 end, int dim)
{
    un_particles *p = a->particles;
    const un_walls *walls = a->walls;
    double dt = a->dt, margin = 0.05 * walls->grid->h;
    un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), was = v;
    if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
        step = un_scale(v, dt);
        end = xi;
    } else if (falls > 0) {
        step = un_mad(step, un_sub(un_scale(v, dt), step), falls);
    }
    un_vec3 to = un_add(x, step);
    bool free = !walls->bodies->moving &&
                un_warp_clearance(walls, a->on_warp, x, xi) > un_length(step) + margin;
    un_hit hit = {.body = -1};
    if (!free) to = un_advect_collide_hit(walls, x, to, dt, &v, &hit);
    if (a->hits) a->hits[q] = hit;
    if (dim == 2) to.z = v.z = 0;
    un_particle_set_position(p, q, to);
    p->xi[0][q] = end.x; /* a guess, until particles are located on the next grid */
    p->xi[1][q] = end.y;
    p->xi[2][q] = end.z;
    un_advect_finish(p, q, v, was, a->lead);
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    un_eight x, xi, step, last;
    double falls[8];
    for (int64_t q = begin; q < end; q += 8) {
        int64_t count = un_min64(end - q, 8);
        un_eight_load(&x, a->particles->x, q, count);
        un_eight_load(&xi, a->particles->xi, q, count);
        trace(&step, falls, &last, a, &x, &xi);
        for (int64_t n = 0; n < count; n++)
            UN_BY_DIM(a->warp->grid.dim,
                      move_one(a, q + n, un_eight_of(&xi, n), un_eight_of(&step, n), falls[n],
                               un_eight_of(&last, n), dim));
    }
}

void un_advect_warped(un_context *ctx, un_particles *particles, un_hit *hits, const un_vec3 *u,
                      const float *phi, const un_walls *walls, const un_walls *on_warp,
                      un_vec3 gravity, double dt)
{
    path_args a = {
        particles, hits, u, phi, on_warp->warp, walls, on_warp, un_scale(gravity, 0.5 * dt), dt};
    un_parallel_for(ctx, particles->count, 2048, move, &a);
    particles->lead = a.lead;
}
