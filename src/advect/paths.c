/* Particle paths: Ralston's third-order Runge-Kutta through the frozen velocity field
 *
 *     k1 = u(x), k2 = u(x + dt/2 k1), k3 = u(x + 3dt/4 k2), x += dt (2 k1 + 3 k2 + 4 k3) / 9
 *
 * then one swept collision along the chord. Ballistic particles move straight on with their
 * velocity in the middle of the step: a parabola. */
#include "advect/advect.h"

#include "base/lanes.h"

typedef struct path_args {
    un_particles *particles;
    un_hit *hits;
    double *const *u;
    const un_walls *walls;
    un_vec3 lead;
    double dt;
} path_args;

void un_advect_trace(un_eight *step, const un_grid *g, double *const u[3], const un_eight *x,
                     double dt)
{
    un_eight k1, k2, k3, at;
    un_faces_sample_eight(&k1, g, u, x);
    un_advect_go(&at, x, &k1, 0.5 * dt, g);
    un_faces_sample_eight(&k2, g, u, &at);
    un_advect_go(&at, x, &k2, 0.75 * dt, g);
    un_faces_sample_eight(&k3, g, u, &at);
    un_advect_ralston(step, &k1, &k2, &k3, dt);
}

static void move_one(const path_args *a, int64_t q, un_vec3 step, int dim)
{
    un_particles *p = a->particles;
    const un_walls *walls = a->walls;
    const un_grid *g = walls->grid;
    un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q);
    if (p->flags[q] & UN_PARTICLE_BALLISTIC) step = un_scale(v, a->dt);
    un_vec3 to = un_add(x, step);
    /* Far from all walls there is nothing to hit: phi is a lower bound of the distance. */
    bool free =
        !walls->bodies->moving && un_walls_distance(walls, x) > un_length(step) + 1.75 * g->h;
    un_vec3 was = v;
    un_hit hit = {.body = -1};
    if (!free) to = un_advect_collide_hit(walls, x, to, a->dt, &v, &hit);
    if (a->hits) a->hits[q] = hit;
    if (dim == 2) to.z = v.z = 0; /* even if a solid moves along z */
    un_particle_set_position(p, q, to);
    un_advect_finish(p, q, v, was, a->lead);
}

/* Eight at once, with the same bits, if no side of the domain is in their way; false: one may be.
 */
static bool move_eight(const path_args *a, int64_t q, const un_eight *x, const un_eight *step)
{
    un_particles *p = a->particles;
    const un_grid *g = a->walls->grid;
    const double size[3] = {g->size.x, g->size.y, g->size.z}, margin = UN_ADVECT_MARGIN * g->h;
    const double lead[3] = {a->lead.x, a->lead.y, a->lead.z};
    un_longs8 flies = (un_longs8_of_bytes(p->flags + q) & UN_PARTICLE_BALLISTIC) != 0;
    un_longs8 inside = ~(un_longs8){0};
    un_doubles8 to[3], v[3];
    for (int axis = 0; axis < 3; axis++) {
        v[axis] = un_doubles8_load(p->v[axis] + q, 8);
        to[axis] = un_doubles8_choose(flies, v[axis] * a->dt, un_doubles8_load(step->of[axis], 8));
        to[axis] += un_doubles8_load(x->of[axis], 8);
        inside &= (to[axis] >= margin) & (to[axis] <= size[axis] - margin);
    }
    if (!un_longs8_all(inside)) return false;
    un_doubles8 fall = __builtin_convertvector(un_longs8_of_bytes(p->fall + q), un_doubles8);
    fall *= 1.0 / UN_FALL_FREE;
    for (int axis = 0; axis < 3; axis++) {
        v[axis] += lead[axis] * fall;
        memcpy(p->x[axis] + q, &to[axis], sizeof to[axis]);
        memcpy(p->v[axis] + q, &v[axis], sizeof v[axis]);
    }
    return true;
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    un_eight x, step;
    bool sides = a->walls->bodies->count == 0 && a->walls->grid->dim == 3; /* nothing else */
    for (int64_t q = begin; q < end; q += 8) {
        int64_t count = un_min64(end - q, 8);
        un_eight_load(&x, a->particles->x, q, count);
        un_advect_trace(&step, a->walls->grid, a->u, &x, a->dt);
        if (sides && count == 8 && move_eight(a, q, &x, &step)) continue;
        for (int64_t n = 0; n < count; n++)
            move_one(a, q + n, un_v3(step.of[0][n], step.of[1][n], step.of[2][n]),
                     a->walls->grid->dim);
    }
}

void un_advect_particles(un_context *ctx, un_particles *particles, un_hit *hits, double *const u[3],
                         const un_walls *walls, un_vec3 gravity, double dt)
{
    path_args a = {particles, hits, u, walls, un_scale(gravity, 0.5 * dt), dt};
    un_parallel_for(ctx, particles->count, 2048, move, &a);
    particles->lead = a.lead;
}
