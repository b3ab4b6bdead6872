/* Sizes that change slowly: S_n <= S_m + grade |x_n - x_m| between neighbours.
 *
 * Finds the largest such field below the given one: sweeps over the nodes and lowers sizes until
 * none changes. Nodes are numbered along a Morton curve, so a block of them is a compact piece of
 * space. Within a block a sweep uses new values at once (forwards in one sweep, backwards in the
 * next); from other blocks it uses those of the sweep before, so the result does not depend on the
 * threads. From the second sweep on, blocks around which nothing has changed are left out.
 *
 * Over ranks, each sweeps over its own nodes until none changes, then ghosts get the sizes of their
 * owners, until no ghost of any rank changes. What a neighbour allows, a rounded sum, never falls
 * when its size grows; so lowering one size after the other, in whatever order, never passes below
 * any field that satisfies all bounds and ends at the largest: the same bits for any number of
 * ranks. */
#include "sizing/sizing.h"

/* Nodes. Larger blocks carry values farther in a sweep, smaller ones leave more out of the later
 * sweeps. */
#define BLOCK 2048
/* At most so many neighbouring blocks are remembered per block. One with more is in every sweep. */
#define DEPS_MAX 47

typedef struct deps {
    int32_t count; /* DEPS_MAX + 1: too many */
    int32_t block[DEPS_MAX];
} deps;

typedef struct limit_args {
    const un_sizing_nodes *nodes;
    float *now, *next;
    float least, grade;
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

/* Where the complete list of a node with too many neighbours is. */
static int32_t find_many(const un_sizing_nodes *nodes, int32_t n)
{
    int32_t low = 0, high = nodes->many_count - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (nodes->many[middle] < n)
            low = middle + 1;
        else
            high = middle;
    }
    UN_ASSERT(nodes->many_count > 0 && nodes->many[low] == n);
    return low;
}

static void note_dependencies(limit_args *a, int32_t begin, int32_t end)
{
    const un_sizing_nodes *nodes = a->nodes;
    deps *d = &a->deps[begin / BLOCK];
    d->count = 0;
    for (int32_t n = begin; n < end; n++) {
        if (!(a->next[n] > a->least)) continue; /* will never be lowered */
        const int32_t *near = nodes->near + nodes->near_first[n];
        int32_t count = nodes->near_count[n];
        if (count == UN_NEAR_MANY) {
            int32_t k = find_many(nodes, n);
            near = nodes->many_near + nodes->many_first[k];
            count = nodes->many_first[k + 1] - nodes->many_first[k];
        }
        for (int32_t j = 0; j < count; j++) {
            int32_t m = near[j];
            if (m < begin || m >= end) note_dependency(d, m / BLOCK);
        }
    }
}

/* What the neighbours allow. Sizes of the own block are in `next`, others in `now`. */
static inline float relax(const limit_args *a, int32_t n, int32_t begin, int32_t end)
{
    const un_sizing_nodes *nodes = a->nodes;
    float best = a->next[n];
    int32_t count = nodes->near_count[n];
    const int32_t *near = nodes->near + nodes->near_first[n];
    const uint8_t *code = nodes->near_code + nodes->near_first[n];
    for (int32_t j = 0; j < count; j++) {
        int32_t m = near[j];
        float s = (m >= begin && m < end ? a->next : a->now)[m] + a->rise[code[j]];
        best = s < best ? s : best;
    }
    return best;
}

/* The same where distances are not coded, or the list is elsewhere. */
static float relax_measured(const limit_args *a, int32_t n, int32_t begin, int32_t end)
{
    const un_sizing_nodes *nodes = a->nodes;
    float best = a->next[n];
    int32_t count = nodes->near_count[n];
    const int32_t *near = nodes->near + nodes->near_first[n];
    const float *length = nodes->near_length ? nodes->near_length + nodes->near_first[n] : NULL;
    if (count == UN_NEAR_MANY) {
        int32_t k = find_many(nodes, n);
        near = nodes->many_near + nodes->many_first[k];
        length = nodes->many_length + nodes->many_first[k];
        count = nodes->many_first[k + 1] - nodes->many_first[k];
    }
    for (int32_t j = 0; j < count; j++) {
        int32_t m = near[j];
        float s = (m >= begin && m < end ? a->next : a->now)[m] + length[j] * a->grade;
        best = s < best ? s : best;
    }
    return best;
}

static void sweep(void *arg, int64_t from, int64_t to)
{
    limit_args *a = arg;
    for (int64_t k = from; k < to; k++) {
        int32_t b = a->active ? a->active[k] : (int32_t)k, begin = b * BLOCK;
        int32_t end = (int32_t)un_min64(begin + BLOCK, a->nodes->count);
        bool changed = false;
        if (a->first) note_dependencies(a, begin, end);
        for (int32_t i = begin; i < end; i++) {
            int32_t n = a->backwards ? end - 1 - (i - begin) : i;
            int32_t count = a->nodes->near_count[n];
            if (!(a->next[n] > a->least) || count == 0) continue;
            float s = count == UN_NEAR_MANY || a->nodes->near_length
                          ? relax_measured(a, n, begin, end)
                          : relax(a, n, begin, end);
            if (!(s < a->next[n])) continue;
            a->next[n] = s;
            changed = true;
        }
        a->changed[b] = changed;
    }
}

/* Blocks that have changed or have a neighbour that has, ascending. */
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

/* Sweeps until nothing changes: sizes only fall, and not below the least. count: active blocks. */
static void settle(un_context *ctx, limit_args *a, int32_t *active, int32_t count,
                   int32_t block_count)
{
    const un_sizing_nodes *nodes = a->nodes;
    while (count > 0) {
        un_parallel_for(ctx, count, 1, sweep, a);
        bool any = false;
        for (int32_t k = 0; k < count; k++) {
            int32_t b = a->active ? a->active[k] : k, begin = b * BLOCK;
            if (!a->changed[b]) continue;
            any = true;
            size_t n = (size_t)un_min64(BLOCK, nodes->count - begin);
            memcpy(a->now + begin, a->next + begin, n * sizeof *a->now);
        }
        if (!any) break;
        count = find_active(a, active, block_count);
        memset(a->changed, 0, (size_t)block_count);
        a->active = active;
        a->first = false;
        a->backwards = !a->backwards;
    }
}

static bool has_fallen(limit_args *a, int32_t n)
{
    if (!(a->next[n] < a->now[n])) return false;
    a->now[n] = a->next[n];
    a->changed[n / BLOCK] = 1;
    return true;
}

/* Ghosts get the sizes of their owners. *any: one has changed, on some rank. */
static un_status hear(un_context *ctx, limit_args *a, int32_t block_count, bool *any)
{
    const un_leaves *leaves = a->nodes->leaves;
    const un_tet_share *share = leaves ? NULL : a->nodes->shared->share;
    int64_t count = 0;
    UN_TRY(un_sizing_share(a->nodes, a->next));
    memset(a->changed, 0, (size_t)block_count);
    for (int32_t k = 0; share && k < share->ghost_count; k++)
        count += has_fallen(a, share->ghost[k]);
    for (int32_t k = 0; leaves && k < un_leaves_runs(leaves); k++)
        for (int64_t n = un_leaves_run(leaves, k).begin; n < un_leaves_run(leaves, k).end; n++)
            count += has_fallen(a, (int32_t)n);
    *any = un_ranks_total(ctx, count) > 0;
    return UN_OK;
}

un_status un_sizing_limit(un_context *ctx, un_arena *arena, float *size,
                          const un_sizing_nodes *nodes, double grade)
{
    int32_t block_count = (nodes->count + BLOCK - 1) / BLOCK, count = block_count;
    size_t blocks = (size_t)block_count + 1, node_count = (size_t)nodes->count;
    limit_args a = {.nodes = nodes,
                    .now = un_arena_alloc(arena, node_count + 1, sizeof *size),
                    .next = size,
                    .least = (float)nodes->finest,
                    .grade = (float)grade,
                    .deps = un_arena_alloc(arena, blocks, sizeof *a.deps),
                    .changed = un_arena_alloc(arena, blocks, 1),
                    .first = true};
    int32_t *active = un_arena_alloc(arena, blocks, sizeof *active);
    bool room = a.now && a.deps && a.changed && active, any;
    UN_TRY(un_sizing_agree(ctx, nodes, room ? UN_OK : UN_ERROR_MEMORY));
    for (int code = 0; code < 256; code++) a.rise[code] = nodes->length[code] * a.grade;
    UN_TRY(un_sizing_share(nodes, size));
    memcpy(a.now, size, node_count * sizeof *size);
    for (;;) {
        settle(ctx, &a, active, count, block_count);
        if (!nodes->shared && !nodes->leaves) return UN_OK;
        UN_TRY(hear(ctx, &a, block_count, &any));
        if (!any) return UN_OK;
        count = find_active(&a, active, block_count);
        a.active = active;
        a.first = false;
    }
}
