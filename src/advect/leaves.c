/* Particle paths through velocities on the faces of an octree's leaves: the same Runge-Kutta as
 * paths.c, and the midpoint rule where all is slow. */
#include "advect/advect.h"

/* Collisions keep particles off walls by a hundredth of a cell; twice that is clear of them. */
#define MARGIN 0.02
/* Where no point goes farther in a step, in edges of its leaf, the midpoint rule is enough. */
#define SLOW 0.25

typedef struct path_args {
    un_particles *particles;
    un_hit *hits;
    const un_leaf_paths *paths;
    un_vec3 lead;
} path_args;

/* The velocities k at eight points x + go dt, kept in the domain; c: the leaves that hold them, or
 * guesses. */
static void velocities(un_eight *k, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                       const un_eight *go, double dt, int32_t c[8])
{
    const un_leaves *m = a->flow->leaves;
    un_eight to;
    un_advect_go(&to, x, go, dt, a->walls->grid);
    for (int n = 0; n < 8; n++) {
        double half = 0.5 * un_leaf_size(m, c[n]);
        un_vec3 at = un_eight_of(&to, n), d = un_sub(at, m->x[c[n]]);
        if (!(fabs(d.x) < half && fabs(d.y) < half && (m->dim == 2 || fabs(d.z) < half)))
            c[n] = un_leaves_step(m, c[n], at);
    }
    un_flow_cache_eight(k, cache, c, &to, NULL, NULL);
}

/* How far eight points go; start: the velocities there, or NULL. */
static void trace(un_eight *step, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                  const int32_t leaf[8], const un_eight *start)
{
    int32_t c[8];
    un_eight k1, k2, k3;
    memcpy(c, leaf, sizeof c);
    if (start)
        k1 = *start;
    else
        velocities(&k1, a, cache, x, x, 0, c);
    bool slow = true;
    for (int n = 0; n < 8; n++) {
        double most = SLOW * un_leaf_size(a->flow->leaves, c[n]) / a->dt;
        for (int axis = 0; axis < 3; axis++) slow &= fabs(k1.of[axis][n]) < most;
    }
    velocities(&k2, a, cache, x, &k1, 0.5 * a->dt, c);
    if (slow) {
        for (int axis = 0; axis < 3; axis++)
            for (int n = 0; n < 8; n++) step->of[axis][n] = k2.of[axis][n] * a->dt;
        return;
    }
    velocities(&k3, a, cache, x, &k2, 0.75 * a->dt, c);
    un_advect_ralston(step, &k1, &k2, &k3, a->dt);
}

static void move_one(const path_args *args, int64_t q, int32_t leaf, un_vec3 step)
{
    const un_leaf_paths *a = args->paths;
    un_particles *p = args->particles;
    const un_leaves *m = a->flow->leaves;
    un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q);
    if (p->flags[q] & UN_PARTICLE_BALLISTIC) step = un_scale(v, a->dt);
    un_vec3 to = un_add(x, step);
    /* Distances change by no more than the distance travelled. */
    double reach = a->wall[leaf] - un_length(un_sub(to, m->x[leaf]));
    bool free = !a->walls->bodies->moving && reach > un_length(step) + MARGIN * a->walls->grid->h;
    un_vec3 was = v;
    un_hit hit = {.body = -1};
    if (!free) to = un_advect_collide_hit(a->walls, x, to, a->dt, &v, &hit);
    if (args->hits) args->hits[q] = hit;
    if (m->dim == 2) to.z = v.z = 0; /* even if a solid moves along z */
    un_particle_set_position(p, q, to);
    un_advect_finish(p, q, v, was, args->lead);
}

/* The velocities that are known of particles q .. q + count - 1; false if any may have moved. */
static bool load_start(un_eight *start, const path_args *a, int64_t q, int64_t count)
{
    const un_leaf_paths *paths = a->paths;
    if (!paths->start[0]) return false;
    for (int64_t n = 0; n < 8; n++) {
        int64_t from = q + (n < count ? n : count - 1);
        if (a->particles->flags[from] & UN_PARTICLE_THIN) return false;
        for (int axis = 0; axis < 3; axis++) start->of[axis][n] = (double)paths->start[axis][from];
    }
    return true;
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    un_flow_cache cache;
    un_flow_cache_init(&cache, a->paths->flow);
    for (int64_t q = begin; q < end; q += 8) {
        int64_t count = un_min64(end - q, 8);
        un_eight x, step, start;
        int32_t leaf[8];
        un_tet_bins_eight(&x, leaf, a->paths->bins, a->particles, q, count);
        bool known = load_start(&start, a, q, count);
        trace(&step, a->paths, &cache, &x, leaf, known ? &start : NULL);
        for (int64_t n = 0; n < count; n++) move_one(a, q + n, leaf[n], un_eight_of(&step, n));
    }
}

void un_advect_leaves(un_context *ctx, un_particles *particles, un_hit *hits,
                      const un_leaf_paths *paths)
{
    path_args a = {particles, hits, paths, un_scale(paths->gravity, 0.5 * paths->dt)};
    un_parallel_for(ctx, particles->count, 1024, move, &a);
    particles->lead = a.lead;
}
