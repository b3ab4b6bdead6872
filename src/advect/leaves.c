/* Particle paths through velocities on the faces of an octree's leaves: the same Runge-Kutta as
 * paths.c. */
#include "advect/advect.h"

/* Collisions keep particles off walls by a hundredth of a cell; twice that is clear of them. */
#define MARGIN 0.02

typedef struct path_args {
    un_particles *particles;
    un_hit *hits;
    const un_tet_bins *bins;
    const un_leaves_flow *flow;
    const float *wall;
    const un_walls *walls;
    un_vec3 lead;
    double dt;
} path_args;

/* c: the leaf that holds x, or a guess. */
static un_vec3 velocity(const path_args *a, un_flow_cache *cache, un_vec3 x, int32_t *c)
{
    const un_leaves *m = a->flow->leaves;
    double half = 0.5 * un_leaf_size(m, *c);
    un_vec3 d = un_sub(x, m->x[*c]);
    x = un_min3(un_max3(x, un_v3(0, 0, 0)), a->walls->grid->size);
    if (!(fabs(d.x) < half && fabs(d.y) < half && (m->dim == 2 || fabs(d.z) < half)))
        *c = un_leaves_step(m, *c, x);
    return un_flow_cache_at(cache, *c, x);
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    un_particles *p = a->particles;
    const un_leaves *m = a->flow->leaves;
    double dt = a->dt;
    un_flow_cache cache;
    un_flow_cache_init(&cache, a->flow);
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), step;
        int32_t from = a->bins->tet[q], c = from;
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            step = un_scale(v, dt);
        } else {
            un_vec3 k1 = velocity(a, &cache, x, &c);
            un_vec3 k2 = velocity(a, &cache, un_mad(x, k1, 0.5 * dt), &c);
            un_vec3 k3 = velocity(a, &cache, un_mad(x, k2, 0.75 * dt), &c);
            step = un_scale(un_mad(un_mad(un_scale(k1, 2), k2, 3), k3, 4), dt / 9);
        }
        un_vec3 to = un_add(x, step);
        /* Distances change by no more than the distance travelled. */
        double reach = a->wall[from] - un_length(un_sub(to, m->x[from]));
        bool free =
            !a->walls->bodies->moving && reach > un_length(step) + MARGIN * a->walls->grid->h;
        un_vec3 was = v;
        un_hit hit = {.body = -1};
        if (!free) to = un_advect_collide_hit(a->walls, x, to, dt, &v, &hit);
        if (a->hits) a->hits[q] = hit;
        if (m->dim == 2) to.z = v.z = 0; /* even if a solid moves along z */
        un_particle_set_position(p, q, to);
        un_advect_finish(p, q, v, was, a->lead);
    }
}

void un_advect_leaves(un_context *ctx, un_particles *particles, un_hit *hits,
                      const un_tet_bins *bins, const un_leaves_flow *flow, const float *wall,
                      const un_walls *walls, un_vec3 gravity, double dt)
{
    path_args a = {particles, hits, bins, flow, wall, walls, un_scale(gravity, 0.5 * dt), dt};
    un_parallel_for(ctx, particles->count, 1024, move, &a);
    particles->lead = a.lead;
}
