/* Sizes that change slowly: S_n <= S_m + grade |x_n - x_m| along every edge of the mesh.
 *
 * The largest such field below the given one is found by relaxing nodes until none changes. Nodes
 * are numbered along a Morton curve, so a block of them is a compact piece of space: within a block
 * new values count at once (forwards in one sweep, backwards in the next), those of other blocks
 * from the sweep before, which makes the result independent of who computes what. From the second
 * sweep on only blocks are looked at that have seen a change. */
#include "sizing/near.h"

/* Nodes. Larger blocks carry values farther in a sweep, smaller ones leave more out of the later
 * sweeps. */
#define BLOCK 2048
/* Blocks that one looks into, the most that is kept; a block with more is always looked at. */
#define DEPS_MAX 47
/* Far more than a mesh of 16 levels needs to carry its smallest size to its far end. */
#define SWEEPS_MAX 200

typedef struct deps {
    int32_t count; /* DEPS_MAX + 1: too many */
    int32_t block[DEPS_MAX];
} deps;

typedef struct limit_args {
    const near_nodes *near;
    float *now, *next;
    float least;
    float rise[256]; /* by code: grade times length */
    deps *deps;
    const int32_t *active; /* NULL: all */
    uint8_t *changed;      /* by block */
    bool first, backwards;
} limit_args;

static void note_dependency(deps *d, int32_t block)
{
    if (d->count > DEPS_MAX) return;
    for (int32_t i = d->count; i-- > 0;)
        if (d->block[i] == block) return;
    if (d->count < DEPS_MAX) d->block[d->count] = block;
    d->count++;
}

static void note_dependencies(limit_args *a, int32_t begin, int32_t end)
{
    const near_nodes *near = a->near;
    const un_tets *mesh = near->mesh;
    deps *d = &a->deps[begin / BLOCK];
    d->count = 0;
    for (int32_t n = begin; n < end; n++) {
        if (!(a->next[n] > a->least)) continue; /* will never be lowered */
        if (near->count[n] == NEAR_MANY) {
            for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++)
                for (int j = 0; j < 4; j++) {
                    int32_t m = mesh->tet[mesh->corner[k] >> 2][j];
                    if (m < begin || m >= end) note_dependency(d, m / BLOCK);
                }
            continue;
        }
        const int32_t *node = near->node + near_first(near, n);
        for (int j = 0; j < near->count[n]; j++) {
            int32_t m = node[j];
            if (m < begin || m >= end) note_dependency(d, m / BLOCK);
        }
    }
}

/* What the neighbours allow. Own values are in `next`, others in `now`. */
static inline float relax(const limit_args *a, int32_t n, int32_t begin, int32_t end)
{
    const near_nodes *near = a->near;
    float best = a->next[n];
    int32_t count = near->count[n];
    const int32_t *node = near->node + near_first(near, n);
    const uint8_t *code = near->code + near_first(near, n);
    for (int j = 0; j < count; j++) {
        int32_t m = node[j];
        float s = (m >= begin && m < end ? a->next : a->now)[m] + a->rise[code[j]];
        best = s < best ? s : best;
    }
    return best;
}

static float relax_many(const limit_args *a, int32_t n, int32_t begin, int32_t end)
{
    const un_tets *mesh = a->near->mesh;
    float best = a->next[n];
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] >> 2, i = mesh->corner[k] & 3;
        for (int j = 0; j < 4; j++) {
            int32_t m = mesh->tet[t][j];
            if (!a->near->count[m]) continue;
            float s = (m >= begin && m < end ? a->next : a->now)[m];
            s += a->rise[near_code(a->near, t, i, j)];
            best = s < best ? s : best;
        }
    }
    return best;
}

static void sweep(void *arg, int64_t from, int64_t to)
{
    limit_args *a = arg;
    for (int64_t k = from; k < to; k++) {
        int32_t b = a->active ? a->active[k] : (int32_t)k, begin = b * BLOCK;
        int32_t end = (int32_t)un_min64(begin + BLOCK, a->near->mesh->node_count);
        bool changed = false;
        if (a->first) note_dependencies(a, begin, end);
        for (int32_t i = begin; i < end; i++) {
            int32_t n = a->backwards ? end - 1 - (i - begin) : i;
            int32_t count = a->near->count[n];
            if (!(a->next[n] > a->least) || count == 0) continue;
            float s = count == NEAR_MANY ? relax_many(a, n, begin, end) : relax(a, n, begin, end);
            if (!(s < a->next[n])) continue;
            a->next[n] = s;
            changed = true;
        }
        a->changed[b] = changed;
    }
}

/* Blocks that have changed or read one that has, in order. */
static int32_t find_active(const limit_args *a, int32_t *active, int32_t block_count)
{
    int32_t count = 0;
    for (int32_t b = 0; b < block_count; b++) {
        const deps *d = &a->deps[b];
        bool look = a->changed[b] || d->count > DEPS_MAX;
        for (int32_t i = 0; i < d->count && !look; i++) look = a->changed[d->block[i]];
        if (look) active[count++] = b;
    }
    return count;
}

un_status un_sizing_limit(un_context *ctx, un_arena *arena, float *size, const near_nodes *near,
                          double grade)
{
    const un_tets *mesh = near->mesh;
    int32_t block_count = (mesh->node_count + BLOCK - 1) / BLOCK, count = block_count;
    size_t blocks = (size_t)block_count + 1, nodes = (size_t)mesh->node_count;
    limit_args a = {.near = near,
                    .now = un_arena_alloc(arena, nodes + 1, sizeof *size),
                    .next = size,
                    .least = (float)mesh->tree->h,
                    .deps = un_arena_alloc(arena, blocks, sizeof *a.deps),
                    .changed = un_arena_alloc(arena, blocks, 1),
                    .first = true};
    int32_t *active = un_arena_alloc(arena, blocks, sizeof *active);
    if (!a.now || !a.deps || !a.changed || !active) return UN_ERROR_MEMORY;
    un_near_lengths(near, a.rise);
    for (int code = 0; code < 256; code++) a.rise[code] *= (float)grade;
    memcpy(a.now, size, nodes * sizeof *size);
    for (int32_t s = 0; s < SWEEPS_MAX && count > 0; s++) {
        un_parallel_for(ctx, count, 4, sweep, &a);
        bool any = false;
        for (int32_t k = 0; k < count; k++) {
            int32_t b = a.active ? a.active[k] : k, begin = b * BLOCK;
            if (!a.changed[b]) continue;
            any = true;
            size_t n = (size_t)un_min64(BLOCK, mesh->node_count - begin);
            memcpy(a.now + begin, a.next + begin, n * sizeof *size);
        }
        if (!any) break;
        count = find_active(&a, active, block_count);
        memset(a.changed, 0, (size_t)block_count);
        a.active = active;
        a.first = false;
        a.backwards = !a.backwards;
    }
    return UN_OK;
}
