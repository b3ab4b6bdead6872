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
    int64_t first; /* number of the first particle here: eights are those of one rank */
    /* Of the first and the last eight here, of which other ranks may have a part: numbers, and
     * whether all of them are slow, and where they were. */
    int64_t edge[2];
    bool slow[2], still[2];
} path_args;

/* Eight n here. */
static un_part eight_part(const path_args *a, int64_t n)
{
    int64_t begin = 8 * (a->first / 8 + n) - a->first;
    return (un_part){un_max64(begin, 0), un_min64(begin + 8, a->particles->count)};
}

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

/* The velocities k at eight points; start: those that are known, or NULL. Returns whether all are
 * slow. */
static bool begin_path(un_eight *k, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                       const un_eight *start, int32_t c[8])
{
    bool slow = true;
    if (start)
        *k = *start;
    else
        velocities(k, a, cache, x, x, 0, c);
    for (int n = 0; n < 8; n++) {
        double most = SLOW * un_leaf_size(a->flow->leaves, c[n]) / a->dt;
        for (int axis = 0; axis < 3; axis++) slow &= fabs(k->of[axis][n]) < most;
    }
    return slow;
}

/* How far eight points go; slow: all others that belong to these are. */
static void trace(un_eight *step, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                  const int32_t leaf[8], const un_eight *start, bool slow)
{
    int32_t c[8];
    un_eight k1, k2, k3;
    memcpy(c, leaf, sizeof c);
    slow &= begin_path(&k1, a, cache, x, start, c);
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

/* Which of the eights that others may have a part of is it? -1: none. */
static int edge_of(const path_args *a, int64_t n)
{
    int64_t number = a->first / 8 + n;
    return number == a->edge[0] ? 0 : number == a->edge[1] ? 1 : -1;
}

static void move(void *arg, int64_t begin, int64_t end)
{
    const path_args *a = arg;
    un_flow_cache cache;
    un_flow_cache_init(&cache, a->paths->flow);
    for (int64_t e = begin; e < end; e++) {
        un_part part = eight_part(a, e);
        int64_t q = part.begin, count = part.end - q;
        int edge = edge_of(a, e);
        un_eight x, step, start;
        int32_t leaf[8];
        un_tet_bins_eight(&x, leaf, a->paths->bins, a->particles, q, count);
        bool known = load_start(&start, a, q, count) && (edge < 0 || a->still[edge]);
        trace(&step, a->paths, &cache, &x, leaf, known ? &start : NULL, edge < 0 || a->slow[edge]);
        for (int64_t n = 0; n < count; n++) move_one(a, q + n, leaf[n], un_eight_of(&step, n));
    }
}

/* ---- over ranks ---- */

typedef struct edge_note {
    int64_t number[2];
    int64_t yes[2];
} edge_note;

/* Is it so on all ranks that have a part of the eight? */
static void ask_all(un_context *ctx, const path_args *a, edge_note *all, bool yes[2])
{
    edge_note mine = {{a->edge[0], a->edge[1]}, {yes[0], yes[1]}};
    un_ranks_gather(ctx, all, &mine, sizeof mine);
    for (int k = 0; k < 2; k++)
        for (int32_t n = 0; n < 2 * un_rank_count(ctx); n++)
            if (all[n / 2].number[n % 2] == a->edge[k]) yes[k] &= all[n / 2].yes[n % 2] != 0;
}

static un_status find_edges(un_context *ctx, path_args *a, int64_t eights)
{
    edge_note *all = un_alloc(ctx, (size_t)un_rank_count(ctx), sizeof *all);
    UN_TRY(un_ranks_agree(ctx, all ? UN_OK : UN_ERROR_MEMORY));
    un_flow_cache cache;
    un_flow_cache_init(&cache, a->paths->flow);
    un_part part[2] = {{0, 0}, {0, 0}};
    un_eight start[2];
    for (int k = 0; k < 2; k++) {
        a->slow[k] = a->still[k] = true;
        if (eights == 0) continue;
        a->edge[k] = a->first / 8 + (k == 0 ? 0 : eights - 1);
        part[k] = eight_part(a, k == 0 ? 0 : eights - 1);
        a->still[k] = load_start(&start[k], a, part[k].begin, part[k].end - part[k].begin);
    }
    ask_all(ctx, a, all, a->still);
    for (int k = 0; k < 2 && eights > 0; k++) {
        un_eight x, u;
        int32_t leaf[8];
        un_tet_bins_eight(&x, leaf, a->paths->bins, a->particles, part[k].begin,
                          part[k].end - part[k].begin);
        a->slow[k] = begin_path(&u, a->paths, &cache, &x, a->still[k] ? &start[k] : NULL, leaf);
    }
    ask_all(ctx, a, all, a->slow);
    un_free(ctx, all);
    return UN_OK;
}

un_status un_advect_leaves(un_context *ctx, un_particles *particles, un_hit *hits,
                           const un_leaf_paths *paths)
{
    const un_particle_share *share = paths->bins->share;
    path_args a = {.particles = particles,
                   .hits = hits,
                   .paths = paths,
                   .lead = un_scale(paths->gravity, 0.5 * paths->dt),
                   .first = share ? share->own.begin : 0,
                   .edge = {-1, -1}};
    int64_t eights = particles->count > 0 ? (a.first + particles->count + 7) / 8 - a.first / 8 : 0;
    if (share) UN_TRY(find_edges(ctx, &a, eights));
    un_parallel_for(ctx, eights, 128, move, &a);
    particles->lead = a.lead;
    return UN_OK;
}
