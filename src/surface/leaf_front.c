/* Distances from the surface at the centres of an octree's leaves, by a front that moves along the
 * leaves, away from those next to the surface; solved for by all threads at once. [Hong09] sweeps,
 * one leaf after the other. Good for depth, 0.04 of an edge off in the mean, not for curvature. */
#include "surface/leaf_front.h"

/* A distance that falls by less, in edges, has settled. A decision that noise may take either way:
 * at 1e-3 a step turned noise of 1e-16 into 2e-5 m. */
#define DEPTH_NOISE 1e-9
/* The mean distance beyond a side, and how far the centres there are; false where the brick ends.
 */
static bool depth_beyond(const un_leaves *m, int32_t c, int side, const double *depth,
                         double *value, double *way)
{
    int32_t f = m->side[c][side], there = un_leaf_beyond(m, c, side);
    if (there < 0) return false;
    *way = 0.5 * (un_leaf_size(m, c) + un_leaf_size(m, there));
    *value = depth[there];
    if (f >= 0) return true;
    int count = un_leaves_group_size(m);
    double sum = 0;
    for (int k = 0; k < count; k++) sum += depth[m->face_side[m->group[~f][k]] / 6];
    *value = sum / count;
    *way = 0.75 * un_leaf_size(m, c);
    return true;
}

/* Swaps two values unless they ascend, without a branch: it is a toss-up. */
static inline void order(double *a, double *b)
{
    double low = *a < *b ? *a : *b, high = *a < *b ? *b : *a;
    *a = low;
    *b = high;
}

/* The nearer neighbour along each axis in leaves among their like, nearest first; returns how many
 * there are. All are one edge away. */
static int nearest_equals(const un_leaves *m, int32_t c, const double *depth, double v[3])
{
    static const int step[3] = {1, 3, 9};
    const int32_t *near = un_leaf_near(m, c) + m->near_count / 2;
    int count = 0;
    v[2] = (double)UN_LEAF_FAR;
    for (int axis = 0; axis < m->dim; axis++) {
        double below = depth[near[-step[axis]]], above = depth[near[step[axis]]];
        v[axis] = below < above ? below : above;
        count += v[axis] < (double)UN_LEAF_FAR;
    }
    order(&v[0], &v[1]);
    order(&v[1], &v[2]);
    order(&v[0], &v[1]);
    return count;
}

/* The same anywhere; d: how far away each is. */
static int nearest_of(const un_leaves *m, int32_t c, const double *depth, double v[3], double d[3])
{
    int count = 0;
    for (int axis = 0; axis < m->dim; axis++) {
        double best = INFINITY, way = 1;
        for (int side = 2 * axis; side < 2 * axis + 2; side++) {
            double value, distance;
            if (!depth_beyond(m, c, side, depth, &value, &distance)) continue;
            if (value < best) best = value, way = distance;
        }
        if (best >= (double)UN_LEAF_FAR) continue;
        int k = count++;
        for (; k > 0 && v[k - 1] > best; k--) v[k] = v[k - 1], d[k] = d[k - 1];
        v[k] = best, d[k] = way;
    }
    return count;
}

/* Of two values, without a branch. */
static inline double pick(bool first, double a, double b)
{
    double values[2] = {b, a};
    return values[first];
}

/* |grad phi| = 1 from the nearer neighbour along each axis: t with sum ((t - v_i) / d_i)^2 = 1 over
 * those below t. Distances are relative to the nearest, v_0. */
static double solve_leaf(const un_leaves *m, int32_t c, const double *depth)
{
    double v[3], d[3];
    int count = nearest_of(m, c, depth, v, d);
    if (count == 0) return INFINITY;
    double t = d[0], s0 = 1 / (d[0] * d[0]), s1 = 0, s2 = -1;
    for (int n = 1; n < count && t > v[n] - v[0]; n++) {
        double way = v[n] - v[0], w = 1 / (d[n] * d[n]);
        s0 += w;
        s1 += w * way;
        s2 += w * way * way;
        double root = s1 * s1 - s0 * s2;
        if (root < 0) break;
        t = (s1 + sqrt(root)) / s0;
    }
    return v[0] + t;
}

/* The same in a leaf among its like, all multiplied by h^2: how many neighbours count is a toss-up,
 * so all three answers are found. */
static double solve_even(const un_leaves *m, int32_t c, const double *depth)
{
    double v[3], h = un_leaf_size(m, c), s2 = -h * h;
    if (nearest_equals(m, c, depth, v) == 0) return INFINITY;
    double way1 = v[1] - v[0], way2 = v[2] - v[0];
    s2 += way1 * way1;
    double root = way1 * way1 - 2 * s2;
    bool two = (h > way1) & (root >= 0);
    double t = pick(two, (way1 + sqrt(root)) / 2, h);
    double s1 = way1 + way2;
    s2 += way2 * way2;
    root = s1 * s1 - 3 * s2;
    bool three = two & (t > way2) & (root >= 0);
    return v[0] + pick(three, (s1 + sqrt(root)) / 3, t);
}

typedef struct front_args {
    const un_leaves *m;
    double *depth;       /* by leaf */
    const int32_t *leaf; /* of the front */
    double *found;       /* by place in the front */
} front_args;

static void solve_front(void *arg, int64_t begin, int64_t end)
{
    const front_args *f = arg;
    for (int64_t n = begin; n < end; n++) {
        int32_t c = f->leaf[n];
        f->found[n] = f->m->even[c] ? solve_even(f->m, c, f->depth) : solve_leaf(f->m, c, f->depth);
    }
}

/* The front while it is made; kept: by leaf, is its distance not to be found, or has it joined? */
typedef struct joining {
    const un_leaves *m;
    const double *depth;
    uint8_t *kept;
    int32_t *front, count;
} joining;

/* Without a branch: whether it may is a toss-up. The front has room for one more than all. */
static inline void join_if(joining *j, int32_t there, bool may)
{
    j->front[j->count] = there;
    j->count += may;
    j->kept[there] |= (uint8_t)may;
}

/* The leaves at the sides of c that c may bring nearer to the surface join the front, once each. A
 * larger leaf sees the mean over the leaves beside it. */
static void join_beside(joining *j, int32_t c)
{
    const un_leaves *m = j->m;
    double depth = j->depth[c];
    const int32_t *near = un_leaf_near(m, c) + m->near_count / 2;
    static const int step[6] = {-1, 1, -3, 3, -9, 9};
    if (m->even[c]) {
        for (int side = 0; side < 2 * m->dim; side++) {
            int32_t there = near[step[side]];
            join_if(j, there, !j->kept[there] & (j->depth[there] > depth));
        }
        return;
    }
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[c][side], there = near[step[side]];
        if (there < 0) continue;
        for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
            if (f < 0) there = m->face_side[m->group[~f][k]] / 6;
            bool nearer = j->depth[there] > depth || m->tree->level[there] < m->tree->level[c];
            join_if(j, there, !j->kept[there] & nearer);
        }
    }
}

/* Leaves whose distance has changed wait until those nearer to the surface have told theirs: those
 * tell together that are less than this many edges of any of them farther. A leaf is solved for
 * some 2.6 times then, 7 times if all tell at once, and a dam break of 128 cells takes 70 rounds:
 * 59 with a width of 3, 104 with 1. */
#define FRONT_WIDTH 2.0

typedef struct redistancing {
    double *depth, *found;
    int32_t *front, *wait, waiting;
    uint8_t *kept, *waits;
} redistancing;

/* The farthest distance that is told at once. */
static double front_limit(const un_leaves *m, const redistancing *r)
{
    double limit = INFINITY;
    for (int32_t i = 0; i < r->waiting; i++) { /* fmin is a call */
        int32_t c = r->wait[i];
        double told = r->depth[c] + FRONT_WIDTH * un_leaf_size(m, c);
        limit = told < limit ? told : limit;
    }
    if (un_leaves_in_parts(m)) limit = -un_ranks_max(m->share->ctx, -limit);
    return limit;
}

/* A leaf's distance has changed, or not: without a branch. There is room for one more than all. */
static inline void changes_if(redistancing *r, int32_t c, bool changed)
{
    r->wait[r->waiting] = c;
    r->waiting += changed & !r->waits[c];
    r->waits[c] |= (uint8_t)changed;
}

/* A rank solves for its own leaves, and hears of those around. */
static void hear_of_others(const un_leaves *m, redistancing *r, double *before)
{
    un_part own = un_leaves_own(m);
    un_leaves_spread(m, r->depth, sizeof *r->depth);
    for (int32_t k = 0; k < un_leaves_runs(m); k++) {
        un_part run = un_leaves_run(m, k);
        for (int64_t c = run.begin; c < run.end; c++) {
            if (c == own.begin) c = un_min64(own.end, run.end);
            if (c == run.end || !(r->depth[c] < before[c])) continue;
            before[c] = r->depth[c];
            changes_if(r, (int32_t)c, true);
        }
    }
}

/* The leaves next to those that are told, and not told of yet. */
static int32_t next_front(const un_leaves *m, redistancing *r, double limit)
{
    int32_t left = 0;
    joining j = {m, r->depth, r->kept, r->front, 0};
    for (int32_t i = 0; i < r->waiting; i++) {
        int32_t c = r->wait[i];
        if (r->depth[c] > limit) {
            r->wait[left++] = c;
            continue;
        }
        r->waits[c] = 0;
        if (un_leaves_knows(m, c, 1)) join_beside(&j, c);
    }
    r->waiting = left;
    return j.count;
}

/* Of several ranks in parts: own leaves of the front. */
static int32_t keep_own(const un_leaves *m, redistancing *r, int32_t count)
{
    un_part own = un_leaves_own(m);
    int32_t left = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t c = r->front[i];
        if (c >= own.begin && c < own.end)
            r->front[left++] = c;
        else
            r->kept[c] = 0;
    }
    return left;
}

/* Distances are found without a sign. A front of leaves next to those that have just changed
 * moves away from the surface: its leaves are solved for at once, from what was there before, so
 * that threads and their number make no difference. */
un_status un_leaf_front_run(un_context *ctx, un_arena *arena, const un_leaf_front *def)
{
    const un_leaves *m = def->leaves;
    const uint8_t *band = def->band;
    size_t n = (size_t)m->count + 1;
    bool parts = un_leaves_in_parts(m);
    float *phi = def->phi;
    redistancing r = {.depth = un_arena_alloc(arena, n, sizeof *r.depth),
                      .found = un_arena_alloc(arena, n, sizeof *r.found),
                      .front = un_arena_alloc(arena, n, sizeof *r.front),
                      .wait = un_arena_alloc(arena, n, sizeof *r.wait),
                      .kept = un_arena_alloc(arena, n, 1),
                      .waits = un_arena_alloc(arena, n, 1)};
    double *before = parts ? un_arena_alloc(arena, n, sizeof *before) : r.found;
    bool able = r.depth && r.found && r.front && r.wait && r.kept && r.waits && before;
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t c = un_leaves_run(m, k).begin; c < un_leaves_run(m, k).end; c++) {
            r.kept[c] = r.waits[c] = band[c];
            r.depth[c] = band[c] ? fabs((double)phi[c]) : (double)UN_LEAF_FAR;
            if (parts) before[c] = r.depth[c];
            if (band[c]) r.wait[r.waiting++] = (int32_t)c;
        }
    for (;;) {
        double limit = front_limit(m, &r);
        if (limit == INFINITY) break;
        int32_t count = next_front(m, &r, limit);
        front_args f = {m, r.depth, r.front, r.found};
        if (parts) count = keep_own(m, &r, count);
        un_parallel_for(ctx, count, 512, solve_front, &f);
        for (int32_t i = 0; i < count; i++) {
            int32_t c = r.front[i];
            r.kept[c] = 0;
            bool falls = r.found[i] < r.depth[c] - DEPTH_NOISE * un_leaf_size(m, c);
            r.depth[c] = pick(falls, r.found[i], r.depth[c]);
            changes_if(&r, c, falls);
        }
        if (parts) hear_of_others(m, &r, before);
    }
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t c = un_leaves_run(m, k).begin; c < un_leaves_run(m, k).end; c++)
            if (!band[c] && def->known[c] != UN_LEAF_UNKNOWN)
                phi[c] = (float)(phi[c] < 0 ? -r.depth[c] : r.depth[c]);
    return UN_OK;
}
