/* Leaves over ranks.
 *
 * Every rank has the whole tree. What is known at leaves and faces, their neighbours included, a
 * rank finds at its own leaves, those in its part of the curve, and at the faces that belong to
 * these; of leaves around its own it gets to know what others have found there.
 *
 * Numbers of leaves and faces are those of one rank. */
#include "linalg/linalg.h"
#include "mesh/mesh.h"

void un_leaf_share_free(un_leaf_share *s)
{
    void *arrays[] = {s->leaf, s->face, s->ring, s->run, s->face_run, s->run_at, s->face_at};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(s->ctx, arrays[i]);
    un_halo_destroy(s->near);
    un_halo_destroy(s->near_faces);
    *s = (un_leaf_share){.ctx = s->ctx};
}

/* ---- what is known ---- */

typedef struct marking {
    un_leaf_share *s;
    const un_octree *tree;
    uint64_t low, end; /* keys of own leaves */
    un_ids next;       /* leaves of the ring that is made */
} marking;

/* The parent's cube; of the coarsest leaves their own. */
static void parent_of(const un_octree *tree, int32_t c, int32_t at[3], int32_t *size)
{
    int level = tree->level[c] > 0 ? tree->level[c] - 1 : 0, shift = tree->level_max - level;
    *size = 1 << shift;
    for (int a = 0; a < 3; a++)
        at[a] = (int32_t)un_morton_gather(tree->key[c] >> a) >> shift << shift;
}

/* Are all cubes around it this rank's? Codes ascend with each coordinate. */
static bool is_inside(const marking *k, const int32_t at[3], int32_t size)
{
    uint32_t low[3], high[3];
    for (int a = 0; a < 3; a++) {
        int32_t last = at[a] + 2 * size - 1;
        low[a] = at[a] > size ? (uint32_t)(at[a] - size) : 0;
        high[a] = (uint32_t)(last < k->tree->n[a] ? last : k->tree->n[a] - 1);
    }
    return un_morton(low[0], low[1], low[2]) >= k->low &&
           un_morton(high[0], high[1], high[2]) < k->end;
}

/* What lies in a cube. *coarse: that is a leaf larger than the cube. */
static un_status mark_cube(marking *k, const int32_t at[3], int32_t size, uint8_t ring,
                           bool *coarse)
{
    const un_octree *tree = k->tree;
    for (int a = 0; a < 3; a++)
        if (at[a] < 0 || at[a] >= tree->n[a]) return UN_OK;
    int shift = 3 * __builtin_ctz((unsigned)size);
    uint64_t key = un_morton((uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
    int32_t c = un_octree_find_key(tree, key);
    *coarse |= 1 << (tree->level_max - tree->level[c]) > size;
    do {
        if (k->s->ring[c] == UN_RING_BEYOND) {
            k->s->ring[c] = ring;
            UN_TRY(un_ids_add(k->s->ctx, &k->next, c));
        }
    } while (++c < tree->leaf_count && tree->key[c] >> shift == key >> shift);
    return UN_OK;
}

/* Cubes of a size around a cube of a size, and in it. */
static un_status mark_cubes(marking *k, const int32_t at[3], int32_t of, int32_t size, uint8_t ring,
                            bool *coarse)
{
    bool deep = k->tree->dim == 3;
    for (int32_t z = deep ? -size : 0; z <= (deep ? of : 0); z += size)
        for (int32_t y = -size; y <= of; y += size)
            for (int32_t x = -size; x <= of; x += size) {
                int32_t p[3] = {at[0] + x, at[1] + y, at[2] + z};
                UN_TRY(mark_cube(k, p, size, ring, coarse));
            }
    return UN_OK;
}

static un_status mark_around(marking *k, int32_t c, uint8_t ring)
{
    const un_octree *tree = k->tree;
    int32_t at[3], parent, size = 1 << (tree->level_max - tree->level[c]);
    bool coarse = false;
    parent_of(tree, c, at, &parent);
    if (ring == 1 && is_inside(k, at, parent)) return UN_OK;
    UN_TRY(mark_cubes(k, at, parent, size, ring, &coarse));
    return coarse ? mark_cubes(k, at, parent, parent, ring, &coarse) : UN_OK;
}

/* Is c the first in a list of leaves with its parent? */
static bool is_first_child(const un_octree *tree, int32_t c, int32_t before)
{
    int shift = 3 * (tree->level_max - tree->level[c] + 1);
    return before < 0 || tree->level[before] != tree->level[c] || tree->level[c] == 0 ||
           tree->key[before] >> shift != tree->key[c] >> shift;
}

static un_status mark_rings(marking *k, un_part own)
{
    un_leaf_share *s = k->s;
    for (int32_t c = (int32_t)own.begin; c < own.end; c++)
        if (is_first_child(k->tree, c, c > own.begin ? c - 1 : -1)) UN_TRY(mark_around(k, c, 1));
    for (int32_t ring = 2; ring <= s->rings; ring++) {
        un_ids last = k->next;
        un_status status = UN_OK;
        k->next = (un_ids){0};
        un_ids_sort(&last);
        for (int64_t i = 0; i < last.count && status == UN_OK; i++)
            if (is_first_child(k->tree, last.id[i], i > 0 ? last.id[i - 1] : -1))
                status = mark_around(k, last.id[i], (uint8_t)ring);
        un_free(s->ctx, last.id);
        UN_TRY(status);
    }
    return UN_OK;
}

static un_status list_runs(un_leaf_share *s, int32_t count)
{
    un_context *ctx = s->ctx;
    int32_t runs = 0;
    for (int32_t c = 0; c < count; c++)
        runs += s->ring[c] != UN_RING_BEYOND && (c == 0 || s->ring[c - 1] == UN_RING_BEYOND);
    size_t room = (size_t)runs + 1;
    UN_TRY(un_array_need(ctx, (void **)&s->run, &s->capacity[1], room, sizeof *s->run));
    UN_TRY(un_array_need(ctx, (void **)&s->face_run, &s->capacity[2], room, sizeof *s->face_run));
    UN_TRY(un_array_need(ctx, (void **)&s->run_at, &s->capacity[3], room, sizeof *s->run_at));
    UN_TRY(un_array_need(ctx, (void **)&s->face_at, &s->capacity[4], room, sizeof *s->face_at));
    s->run_count = 0;
    s->run_at[0] = 0;
    for (int32_t c = 0; c < count;) {
        int32_t first = c;
        bool known = s->ring[c] != UN_RING_BEYOND;
        while (c < count && (s->ring[c] != UN_RING_BEYOND) == known) c++;
        if (!known) continue;
        s->run[s->run_count++] = (un_part){first, c};
        s->run_at[s->run_count] = s->run_at[s->run_count - 1] + c - first;
    }
    return UN_OK;
}

un_status un_leaf_share_mark(un_leaf_share *s, const un_octree *tree, un_part own)
{
    int32_t count = tree->leaf_count;
    marking k = {.s = s, .tree = tree};
    UN_TRY(un_array_need(s->ctx, (void **)&s->ring, &s->capacity[0], (size_t)count + 1, 1));
    memset(s->ring, UN_RING_BEYOND, (size_t)count);
    memset(s->ring + own.begin, 0, (size_t)(own.end - own.begin));
    k.low = own.begin < count ? tree->key[own.begin] : UINT64_MAX;
    k.end = own.end < count ? tree->key[own.end] : UINT64_MAX;
    un_status status = mark_rings(&k, own);
    un_free(s->ctx, k.next.id);
    return status == UN_OK ? list_runs(s, count) : status;
}

/* ---- loops ---- */

typedef struct runs_args {
    un_parallel_body *body;
    void *arg;
    const un_part *run;
    const int64_t *at;
    int32_t count;
} runs_args;

static void over_runs(void *arg, int64_t begin, int64_t end)
{
    const runs_args *a = arg;
    int32_t low = 0, high = a->count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (a->at[middle] <= begin)
            low = middle;
        else
            high = middle;
    }
    for (int32_t k = low; begin < end; k++) {
        int64_t until = un_min64(end, a->at[k + 1]), first = a->run[k].begin + begin - a->at[k];
        if (until > begin) a->body(a->arg, first, first + until - begin);
        begin = until;
    }
}

void un_leaves_each(const un_leaves *m, int64_t grain, un_parallel_body *body, void *arg)
{
    const un_leaf_share *s = m->share;
    if (!un_leaves_in_parts(m)) {
        un_parallel_for(m->ctx, m->count, grain, body, arg);
        return;
    }
    runs_args a = {body, arg, s->run, s->run_at, s->run_count};
    un_parallel_for(m->ctx, s->run_at[s->run_count], grain, over_runs, &a);
}

void un_leaves_each_face(const un_leaves *m, int64_t grain, un_parallel_body *body, void *arg)
{
    const un_leaf_share *s = m->share;
    if (!un_leaves_in_parts(m)) {
        un_parallel_for(m->ctx, m->face_count, grain, body, arg);
        return;
    }
    runs_args a = {body, arg, s->face_run, s->face_at, s->run_count};
    un_parallel_for(m->ctx, s->face_at[s->run_count], grain, over_runs, &a);
}

/* Shorter gaps are not worth a call. */
#define GAP 1024

static void forget(const un_part *run, int32_t run_count, int64_t count, void *array, size_t size)
{
    int64_t known = 0; /* up to here */
    for (int32_t k = 0; k <= run_count; k++) {
        int64_t next = k < run_count ? run[k].begin : count;
        if (next - known >= GAP) un_give_back(array, (size_t)known * size, (size_t)next * size);
        if (k < run_count) known = run[k].end;
    }
}

void un_leaves_forget(const un_leaves *m, void *array, size_t size)
{
    const un_leaf_share *s = m->share;
    if (un_leaves_in_parts(m)) forget(s->run, s->run_count, m->count, array, size);
}

void un_leaves_forget_faces(const un_leaves *m, void *array, size_t size)
{
    const un_leaf_share *s = m->share;
    if (un_leaves_in_parts(m)) forget(s->face_run, s->run_count, m->face_count, array, size);
}

/* ---- values carried from mesh to mesh ---- */

un_status un_leaf_memory_keep_ranks(un_context *ctx, un_leaf_memory *k, const un_leaves *m,
                                    const double *value)
{
    size_t n = (size_t)m->count;
    un_part own = un_leaves_own(m);
    k->count = 0;
    un_free(ctx, k->first);
    k->first = un_alloc(ctx, (size_t)un_rank_count(ctx) + 1, sizeof *k->first);
    un_status status = k->first ? UN_OK : UN_ERROR_MEMORY;
    void **arrays[3] = {(void **)&k->key, (void **)&k->level, (void **)&k->value};
    static const size_t sizes[3] = {sizeof *k->key, 1, sizeof *k->value};
    for (int i = 0; i < 3 && status == UN_OK; i++)
        status = un_array_need(ctx, arrays[i], &k->capacity[i], n + 1, sizes[i]);
    UN_TRY(un_ranks_agree(ctx, status));
    memcpy(k->first, m->share->leaf, ((size_t)un_rank_count(ctx) + 1) * sizeof *k->first);
    memcpy(k->key, m->tree->key, n * sizeof *k->key);
    memcpy(k->level, m->tree->level, n);
    memcpy(k->value + own.begin, value + own.begin,
           (size_t)(own.end - own.begin) * sizeof *k->value);
    k->count = m->count;
    return UN_OK;
}

/* Old leaves of others where own ones are now. */
static un_status list_old(un_context *ctx, un_ids *ids, const un_leaf_memory *k,
                          const un_octree *tree, un_part own)
{
    int32_t rank = un_rank(ctx);
    if (own.begin == own.end) return UN_OK;
    int64_t i = un_lower_bound(k->key, k->count, tree->key[own.begin]), last = -1;
    for (int64_t c = own.begin; c < own.end; c++) {
        while (i < k->count && k->key[i] < tree->key[c]) i++;
        int64_t from = i < k->count && k->key[i] == tree->key[c] ? i : i - 1;
        if (from == last || (from >= k->first[rank] && from < k->first[rank + 1])) continue;
        last = from;
        UN_TRY(un_ids_add(ctx, ids, (int32_t)from));
    }
    return UN_OK;
}

un_status un_leaf_memory_recall_ranks(un_context *ctx, un_leaf_memory *k, const un_leaves *m,
                                      double *value)
{
    un_part own = un_leaves_own(m);
    if (k->first && k->count > 0) {
        un_ids ids = {0};
        un_halo *halo = NULL;
        un_status status = un_ranks_agree(ctx, list_old(ctx, &ids, k, m->tree, own));
        if (status == UN_OK)
            status = un_halo_create_agreed(ctx, k->first, ids.id, ids.count, &halo);
        if (status == UN_OK) un_halo_share(halo, k->value, sizeof *k->value);
        un_halo_destroy(halo);
        un_free(ctx, ids.id);
        UN_TRY(status);
    }
    un_leaf_memory_recall_part(ctx, k, m->tree, own, value);
    return UN_OK;
}
