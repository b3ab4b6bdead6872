/* Particle paths through velocities on the faces of an octree's leaves: the same Runge-Kutta as
 * paths.c, and the midpoint rule where all is slow. */
#include "advect/leaves_ranks.h"
#include "base/lanes.h"

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
    /* By eight: 1 where paths lead beyond the leaves that this rank knows; not moved yet. NULL: it
     * knows all. */
    uint8_t *far;
} path_args;

/* Eight n here. */
static un_part eight_part(const path_args *a, int64_t n)
{
    int64_t begin = 8 * (a->first / 8 + n) - a->first;
    return (un_part){un_max64(begin, 0), un_min64(begin + 8, a->particles->count)};
}

/* The velocities k at eight points x + go dt, kept in the domain; c: the leaves that hold them, or
 * guesses. False if this rank does not know what is there. */
static bool velocities(un_eight *k, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                       const un_eight *go, double dt, int32_t c[8])
{
    const un_leaves *m = a->flow->leaves;
    un_eight to;
    un_advect_go(&to, x, go, dt, a->walls->grid);
    uint32_t left = ~un_leaves_inside_eight(m, c, &to) & 0xff;
    for (; left; left &= left - 1) {
        int n = __builtin_ctz(left);
        int32_t there = un_leaf_of_path(m, c[n], un_eight_of(&to, n));
        if (there < 0) return false;
        c[n] = there;
    }
    for (int n = 0; n < 8 && un_leaves_in_parts(m); n++)
        if (!un_leaves_knows(m, c[n], 1)) return false;
    un_flow_cache_eight(k, cache, c, &to, NULL, NULL);
    return true;
}

static bool are_slow(const un_eight *k, const un_leaf_paths *a, const int32_t c[8])
{
    un_eight centre;
    double edge[8];
    un_leaves_of_eight(&centre, edge, a->flow->leaves, c);
    un_doubles8 most = un_doubles8_load(edge, 8) * (SLOW / a->dt);
    un_longs8 slow = ~(un_longs8){0};
    for (int axis = 0; axis < 3; axis++)
        slow &= un_doubles8_abs(un_doubles8_load(k->of[axis], 8)) < most;
    return un_longs8_all(slow);
}

/* The velocities k at eight points; start: those that are known, or NULL. *slow becomes false
 * unless all are slow. */
static bool begin_path(un_eight *k, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                       const un_eight *start, int32_t c[8], bool *slow)
{
    if (start)
        *k = *start;
    else if (!velocities(k, a, cache, x, x, 0, c))
        return false;
    *slow &= are_slow(k, a, c);
    return true;
}

/* k3: NULL where all are slow. */
static void finish_path(un_eight *step, const un_leaf_paths *a, const un_eight *k1,
                        const un_eight *k2, const un_eight *k3)
{
    if (k3) {
        un_advect_ralston(step, k1, k2, k3, a->dt);
        return;
    }
    for (int axis = 0; axis < 3; axis++)
        for (int n = 0; n < 8; n++) step->of[axis][n] = k2->of[axis][n] * a->dt;
}

/* How far eight points go; slow: all others that belong to these are. False: too far. */
static bool trace(un_eight *step, const un_leaf_paths *a, un_flow_cache *cache, const un_eight *x,
                  const int32_t leaf[8], const un_eight *start, bool slow)
{
    int32_t c[8];
    un_eight k1, k2, k3;
    memcpy(c, leaf, sizeof c);
    if (!begin_path(&k1, a, cache, x, start, c, &slow)) return false;
    if (!velocities(&k2, a, cache, x, &k1, 0.5 * a->dt, c)) return false;
    if (!slow && !velocities(&k3, a, cache, x, &k2, 0.75 * a->dt, c)) return false;
    finish_path(step, a, &k1, &k2, slow ? NULL : &k3);
    return true;
}

/* A particle that a wall may be in the way of. */
static void move_one(const path_args *args, int64_t q, un_vec3 to)
{
    const un_leaf_paths *a = args->paths;
    un_particles *p = args->particles;
    un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), was = v;
    un_hit hit;
    to = un_advect_collide_hit(a->walls, x, to, a->dt, &v, &hit);
    if (args->hits) args->hits[q] = hit;
    if (p->flat) to.z = v.z = 0; /* even if a solid moves along z */
    un_particle_set_position(p, q, to);
    un_advect_finish(p, q, v, was, args->lead);
}

/* Up to eight particles, from x. Which of them walls are too far away for does not depend on the
 * others: ranks have others. */
static void move_eight(const path_args *args, int64_t q, int64_t count, const int32_t leaf[8],
                       const un_eight *x, const un_eight *step)
{
    const un_leaf_paths *a = args->paths;
    un_particles *p = args->particles;
    const double lead[3] = {args->lead.x, args->lead.y, args->lead.z};
    uint8_t flags[8] = {0}, fall[8] = {0};
    un_eight v = {0}, to;
    un_bits8 c;
    memcpy(&c, leaf, sizeof c);
    memcpy(flags, p->flags + q, (size_t)count);
    memcpy(fall, p->fall + q, (size_t)count);
    un_longs8 flies = (un_longs8_of_bytes(flags) & UN_PARTICLE_BALLISTIC) != 0;
    un_doubles8 way2 = {0}, gone2 = {0};
    un_eight centre;
    double edge[8];
    un_leaves_of_eight(&centre, edge, a->flow->leaves, leaf);
    for (int axis = 0; axis < 3; axis++) {
        memcpy(v.of[axis], p->v[axis] + q, (size_t)count * sizeof **v.of);
        un_doubles8 way = un_doubles8_choose(flies, un_doubles8_load(v.of[axis], 8) * a->dt,
                                             un_doubles8_load(step->of[axis], 8));
        un_doubles8 at = un_doubles8_load(x->of[axis], 8) + way,
                    gone = at - un_doubles8_load(centre.of[axis], 8);
        un_doubles8_store(to.of[axis], at);
        way2 += way * way;
        gone2 += gone * gone;
    }
    /* Distances change by no more than the distance travelled. */
    un_doubles8 reach = un_doubles8_of_floats(un_lanes8_gather(a->wall, c));
    un_longs8 free =
        reach - un_doubles8_sqrt(gone2) > un_doubles8_sqrt(way2) + MARGIN * a->walls->grid->h;
    uint32_t most = 0xffu >> (8 - count);
    uint32_t left = a->walls->bodies->moving ? most : ~un_longs8_mask(free) & most;
    un_doubles8 falls = __builtin_convertvector(un_longs8_of_bytes(fall), un_doubles8);
    falls *= 1.0 / UN_FALL_FREE;
    for (int axis = 0; axis < 3; axis++) {
        un_doubles8 end = un_doubles8_load(v.of[axis], 8) + lead[axis] * falls;
        if (left == 0 && count == 8) { /* mostly */
            un_doubles8_store(p->x[axis] + q, un_doubles8_load(to.of[axis], 8));
            un_doubles8_store(p->v[axis] + q, end);
            continue;
        }
        for (int64_t n = 0; n < count; n++) {
            if (left >> n & 1) continue;
            p->x[axis][q + n] = to.of[axis][n];
            p->v[axis][q + n] = end[n];
        }
    }
    for (int64_t n = 0; n < count && args->hits; n++) args->hits[q + n] = (un_hit){.body = -1};
    for (; left; left &= left - 1) {
        int n = __builtin_ctz(left);
        move_one(args, q + n, un_eight_of(&to, n));
    }
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
        bool near = trace(&step, a->paths, &cache, &x, leaf, known ? &start : NULL,
                          edge < 0 || a->slow[edge]);
        if (a->far) a->far[e] = !near;
        if (!near) continue;
        move_eight(a, q, count, leaf, &x, &step);
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

/* Eight paths on their way, of which some lead far. */
typedef struct far_path {
    int64_t eight;
    int32_t leaf[8];
    bool known, slow; /* its start is; all are slow */
    un_eight x, k1, k2, k3;
} far_path;

static void load_path(const path_args *a, far_path *p)
{
    un_part part = eight_part(a, p->eight);
    int edge = edge_of(a, p->eight);
    int64_t count = part.end - part.begin;
    un_tet_bins_eight(&p->x, p->leaf, a->paths->bins, a->particles, part.begin, count);
    p->known = load_start(&p->k1, a, part.begin, count) && (edge < 0 || a->still[edge]);
    p->slow = edge < 0 || a->slow[edge];
}

/* Velocities of paths at x + go dt; stage 1: where they begin, as far as these are not known; 3: of
 * those that are not slow. */
static un_status ask(un_context *ctx, const path_args *a, far_path *path, int64_t count, int stage,
                     double share)
{
    const un_leaf_paths *paths = a->paths;
    un_leaf_query *query = un_alloc(ctx, 8 * (size_t)count + 1, sizeof *query);
    UN_TRY(un_ranks_agree(ctx, query ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t i = 0; i < count; i++) {
        far_path *p = &path[i];
        un_eight to;
        un_advect_go(&to, &p->x,
                     stage == 1   ? &p->x
                     : stage == 2 ? &p->k1
                                  : &p->k2,
                     share * paths->dt, paths->walls->grid);
        bool wanted = stage == 1 ? !p->known : stage == 2 || !p->slow;
        for (int n = 0; n < 8; n++) {
            un_vec3 x = un_eight_of(&to, n);
            query[8 * i + n] = (un_leaf_query){{x.x, x.y, x.z}, p->leaf[n], wanted};
        }
    }
    un_status status = un_leaf_paths_ask(ctx, paths, query, 8 * count);
    for (int64_t i = 0; i < count && status == UN_OK; i++) {
        far_path *p = &path[i];
        un_eight *k = stage == 1 ? &p->k1 : stage == 2 ? &p->k2 : &p->k3;
        for (int n = 0; n < 8 && query[8 * i].wanted; n++) {
            p->leaf[n] = query[8 * i + n].leaf;
            for (int axis = 0; axis < 3; axis++) k->of[axis][n] = query[8 * i + n].v[axis];
        }
    }
    un_free(ctx, query);
    return status;
}

static un_status begin_edges(const path_args *a, far_path *path, int64_t count)
{
    un_flow_cache cache;
    un_flow_cache_init(&cache, a->paths->flow);
    for (int64_t k = 0; k < count; k++)
        if (!path[k].known)
            velocities(&path[k].k1, a->paths, &cache, &path[k].x, &path[k].x, 0, path[k].leaf);
    return UN_OK;
}

static un_status find_edges(un_context *ctx, path_args *a, int64_t eights)
{
    int64_t count = eights > 0 ? 2 : 0;
    edge_note *all = un_alloc(ctx, (size_t)un_rank_count(ctx), sizeof *all);
    UN_TRY(un_ranks_agree(ctx, all ? UN_OK : UN_ERROR_MEMORY));
    far_path path[2];
    for (int k = 0; k < 2; k++) {
        a->slow[k] = a->still[k] = true;
        if (eights == 0) continue;
        path[k].eight = k == 0 ? 0 : eights - 1;
        a->edge[k] = a->first / 8 + path[k].eight;
        load_path(a, &path[k]);
        a->still[k] = path[k].known;
    }
    ask_all(ctx, a, all, a->still);
    for (int64_t k = 0; k < count; k++) path[k].known = a->still[k];
    un_status status = un_leaves_in_parts(a->paths->flow->leaves) ? ask(ctx, a, path, count, 1, 0)
                                                                  : begin_edges(a, path, count);
    if (status == UN_OK) {
        for (int64_t k = 0; k < count; k++)
            a->slow[k] = are_slow(&path[k].k1, a->paths, path[k].leaf);
        ask_all(ctx, a, all, a->slow);
    }
    un_free(ctx, all);
    return status;
}

/* Those that were too far. */
static un_status move_far(un_context *ctx, const path_args *a, int64_t eights)
{
    int64_t count = 0;
    for (int64_t e = 0; e < eights; e++) count += a->far[e];
    if (un_ranks_total(ctx, count) == 0) return UN_OK;
    far_path *path = un_alloc(ctx, (size_t)count + 1, sizeof *path);
    UN_TRY(un_ranks_agree(ctx, path ? UN_OK : UN_ERROR_MEMORY));
    count = 0;
    for (int64_t e = 0; e < eights; e++) {
        if (!a->far[e]) continue;
        path[count].eight = e;
        load_path(a, &path[count++]);
    }
    un_status status = ask(ctx, a, path, count, 1, 0);
    for (int64_t i = 0; i < count && status == UN_OK; i++)
        path[i].slow &= are_slow(&path[i].k1, a->paths, path[i].leaf);
    if (status == UN_OK) status = ask(ctx, a, path, count, 2, 0.5);
    if (status == UN_OK) status = ask(ctx, a, path, count, 3, 0.75);
    for (int64_t i = 0; i < count && status == UN_OK; i++) {
        far_path *p = &path[i];
        un_part part = eight_part(a, p->eight);
        un_eight step, x;
        int32_t leaf[8];
        finish_path(&step, a->paths, &p->k1, &p->k2, p->slow ? NULL : &p->k3);
        un_tet_bins_eight(&x, leaf, a->paths->bins, a->particles, part.begin,
                          part.end - part.begin);
        move_eight(a, part.begin, part.end - part.begin, leaf, &x, &step);
    }
    un_free(ctx, path);
    return status;
}

static un_status move_ranks(un_context *ctx, path_args *a, int64_t eights)
{
    bool parts = un_leaves_in_parts(a->paths->flow->leaves);
    UN_TRY(find_edges(ctx, a, eights));
    if (parts) {
        a->far = un_alloc_zero(ctx, (size_t)eights + 1, 1);
        UN_TRY(un_ranks_agree(ctx, a->far ? UN_OK : UN_ERROR_MEMORY));
    }
    un_parallel_for(ctx, eights, 128, move, a);
    un_status status = parts ? move_far(ctx, a, eights) : UN_OK;
    un_free(ctx, a->far);
    return status;
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
    if (share)
        UN_TRY(move_ranks(ctx, &a, eights));
    else
        un_parallel_for(ctx, eights, 128, move, &a);
    particles->lead = a.lead;
    return UN_OK;
}
