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

/* Those of eight that no side of the domain is in the way of; returns the others, a bit for each.
 */
static uint32_t move_eight(const path_args *a, un_particles *p, int64_t q, const un_eight *x,
                           const un_eight *step)
{
    const un_grid *g = a->walls->grid;
    const double size[3] = {g->size.x, g->size.y, g->size.z}, margin = UN_ADVECT_MARGIN * g->h;
    const double lead[3] = {a->lead.x, a->lead.y, a->lead.z};
    un_longs8 flies = (un_longs8_of_bytes(p->flags + q) & UN_PARTICLE_BALLISTIC) != 0;
    un_longs8 inside = ~(un_longs8){0};
    un_doubles8 from[3], to[3], v[3];
    for (int axis = 0; axis < 3; axis++) {
        v[axis] = un_doubles8_load(p->v[axis] + q, 8);
        from[axis] = un_doubles8_load(x->of[axis], 8);
        to[axis] = un_doubles8_choose(flies, v[axis] * a->dt, un_doubles8_load(step->of[axis], 8));
        to[axis] += from[axis];
        inside &= (to[axis] >= margin) & (to[axis] <= size[axis] - margin);
    }
    un_doubles8 fall = __builtin_convertvector(un_longs8_of_bytes(p->fall + q), un_doubles8);
    fall *= 1.0 / UN_FALL_FREE;
    for (int axis = 0; axis < 3; axis++) {
        un_doubles8 end = un_doubles8_choose(inside, v[axis] + lead[axis] * fall, v[axis]);
        to[axis] = un_doubles8_choose(inside, to[axis], from[axis]);
        memcpy(p->x[axis] + q, &to[axis], sizeof to[axis]);
        memcpy(p->v[axis] + q, &end, sizeof end);
    }
    return ~un_longs8_mask(inside) & 0xff;
}

/* Fewer than eight, in the same way: compilers round a product with a sum once or twice, and not
 * the same in move_one. */
static uint32_t move_some(const path_args *a, int64_t q, int64_t count, const un_eight *x,
                          const un_eight *step)
{
    const un_particles *p = a->particles;
    double at[3][8], v[3][8] = {0};
    uint8_t flags[8] = {0}, fall[8] = {0};
    un_particles some = {
        .x = {at[0], at[1], at[2]}, .v = {v[0], v[1], v[2]}, .flags = flags, .fall = fall};
    memcpy(flags, p->flags + q, (size_t)count);
    memcpy(fall, p->fall + q, (size_t)count);
    for (int axis = 0; axis < 3; axis++)
        memcpy(v[axis], p->v[axis] + q, (size_t)count * sizeof **v);
    uint32_t left = move_eight(a, &some, 0, x, step);
    for (int axis = 0; axis < 3; axis++) {
        memcpy(p->x[axis] + q, at[axis], (size_t)count * sizeof **at);
        memcpy(p->v[axis] + q, v[axis], (size_t)count * sizeof **v);
    }
    return left;
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
        uint32_t left = 0xff;
        if (sides)
            left = count == 8 ? move_eight(a, a->particles, q, &x, &step)
                              : move_some(a, q, count, &x, &step);
        for (left &= 0xffu >> (8 - count); left; left &= left - 1) {
            int n = __builtin_ctz(left);
            move_one(a, q + n, un_v3(step.of[0][n], step.of[1][n], step.of[2][n]),
                     a->walls->grid->dim);
        }
    }
}

void un_advect_particles(un_context *ctx, un_particles *particles, un_hit *hits, double *const u[3],
                         const un_walls *walls, un_vec3 gravity, double dt)
{
    path_args a = {particles, hits, u, walls, un_scale(gravity, 0.5 * dt), dt};
    un_parallel_for(ctx, particles->count, 2048, move, &a);
    particles->lead = a.lead;
}
