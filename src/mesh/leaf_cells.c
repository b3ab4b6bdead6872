/* Leaves as cells for mesh.vtu, and velocities at their centres. */
#include "mesh/mesh.h"

typedef struct cells_args {
    const un_leaf_cells *in;
    int32_t *number; /* by leaf, and one more: of the cells before it */
    uint64_t *key;   /* corners, ascending */
    int64_t key_count;
    un_cells *out;
} cells_args;

static inline uint64_t corner_key(const un_octree *tree, int64_t c, int k)
{
    uint64_t key = tree->key[c];
    uint32_t s = 1u << (tree->level_max - tree->level[c]);
    return un_morton(un_morton_gather(key) + (k & 1 ? s : 0),
                     un_morton_gather(key >> 1) + (k >> 1 & 1 ? s : 0),
                     un_morton_gather(key >> 2) + (k >> 2 & 1 ? s : 0));
}

static void list_corners(void *arg, int64_t begin, int64_t end)
{
    const cells_args *a = arg;
    const un_leaves *m = a->in->leaves;
    int corners = 1 << m->dim;
    for (int64_t c = begin; c < end; c++) {
        if (a->number[c + 1] == a->number[c]) continue;
        for (int k = 0; k < corners; k++)
            a->key[(int64_t)corners * a->number[c] + k] = corner_key(m->tree, c, k);
    }
}

static inline double side_mean(const un_leaves *m, const double *u, int64_t c, int side)
{
    int32_t f = m->side[c][side];
    double sum = 0;
    if (f >= 0) return u[f];
    for (int k = 0; k < un_leaves_group_size(m); k++) sum += u[m->group[~f][k]];
    return sum / un_leaves_group_size(m);
}

static un_vec3 centre_velocity(const un_leaves *m, const double *u, int64_t c)
{
    double v[3] = {0};
    for (int axis = 0; axis < m->dim; axis++)
        v[axis] = 0.5 * (side_mean(m, u, c, 2 * axis) + side_mean(m, u, c, 2 * axis + 1));
    return un_v3(v[0], v[1], v[2]);
}

static void fill_cells(void *arg, int64_t begin, int64_t end)
{
    const cells_args *a = arg;
    const un_leaves *m = a->in->leaves;
    un_cells *out = a->out;
    int corners = 1 << m->dim;
    for (int64_t c = begin; c < end; c++) {
        int32_t to = a->number[c];
        if (a->number[c + 1] == to) continue;
        for (int n = 0; n < corners; n++) {
            int k = m->dim == 2 ? n ^ n >> 1 : n; /* corners of a quad are in cyclic order */
            out->corner[corners * to + n] =
                (int32_t)un_lower_bound(a->key, a->key_count, corner_key(m->tree, c, k));
        }
        out->first[to + 1] = corners * (to + 1);
        out->type[to] = m->dim == 2 ? UN_CELL_QUAD : UN_CELL_VOXEL;
        out->level[to] = m->tree->level[c];
        out->pressure[to] = a->in->p[c];
        out->velocity[to] = centre_velocity(m, a->in->u, c);
    }
}

static un_status make_cells(un_context *ctx, un_arena *arena, cells_args *a)
{
    const un_leaves *m = a->in->leaves;
    int64_t corners = 1 << m->dim;
    a->number = un_arena_alloc(arena, (size_t)m->count + 1, sizeof *a->number);
    if (!a->number) return UN_ERROR_MEMORY;
    for (int32_t c = 0; c < m->count; c++) a->number[c] = a->in->phi[c] < 0 && a->in->open[c] > 0;
    a->number[m->count] = 0;
    int64_t count = un_parallel_scan(ctx, a->number, m->count + 1);
    a->key = un_arena_alloc(arena, (size_t)(corners * count) + 1, sizeof *a->key);
    if (!a->key) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, m->count, 4096, list_corners, a);
    UN_TRY(un_parallel_sort_keys(ctx, arena, a->key, corners * count, 63));
    for (int64_t k = 0; k < corners * count; k++)
        if (k == 0 || a->key[k] != a->key[a->key_count - 1]) a->key[a->key_count++] = a->key[k];
    UN_TRY(un_cells_alloc(ctx, a->out, a->key_count, count, corners * count));
    double h = m->tree->h;
    for (int64_t k = 0; k < a->key_count; k++)
        a->out->point[k] =
            un_v3(h * un_morton_gather(a->key[k]), h * un_morton_gather(a->key[k] >> 1),
                  h * un_morton_gather(a->key[k] >> 2));
    un_parallel_for(ctx, m->count, 4096, fill_cells, a);
    return UN_OK;
}

un_status un_cells_from_leaves(un_context *ctx, un_cells *out, const un_leaf_cells *in)
{
    cells_args a = {.in = in, .out = out};
    un_arena arena;
    *out = (un_cells){0};
    un_arena_init(&arena, ctx);
    un_status status = make_cells(ctx, &arena, &a);
    un_arena_free(&arena);
    return status;
}

typedef struct centre_args {
    un_vec3 *v;
    const un_leaves *m;
    const double *u;
} centre_args;

static void find_centres(void *arg, int64_t begin, int64_t end)
{
    const centre_args *a = arg;
    for (int64_t c = begin; c < end; c++) a->v[c] = centre_velocity(a->m, a->u, c);
}

void un_leaves_centre_velocity(un_context *ctx, un_vec3 *v, const un_leaves *m, const double *u)
{
    centre_args a = {v, m, u};
    (void)ctx;
    un_leaves_each(m, 4096, find_centres, &a);
}

/* ---- values carried from mesh to mesh ---- */

un_status un_leaf_memory_keep(un_context *ctx, un_leaf_memory *k, const un_octree *tree,
                              const double *value)
{
    size_t n = (size_t)tree->leaf_count;
    k->count = 0;
    UN_TRY(un_array_need(ctx, (void **)&k->key, &k->capacity[0], n + 1, sizeof *k->key));
    UN_TRY(un_array_need(ctx, (void **)&k->level, &k->capacity[1], n + 1, 1));
    UN_TRY(un_array_need(ctx, (void **)&k->value, &k->capacity[2], n + 1, sizeof *k->value));
    memcpy(k->key, tree->key, n * sizeof *k->key);
    memcpy(k->level, tree->level, n);
    memcpy(k->value, value, n * sizeof *k->value);
    k->count = tree->leaf_count;
    un_free(ctx, k->first);
    k->first = NULL;
    return UN_OK;
}

void un_leaf_memory_free(un_context *ctx, un_leaf_memory *k)
{
    un_free(ctx, k->key);
    un_free(ctx, k->level);
    un_free(ctx, k->value);
    un_free(ctx, k->first);
    *k = (un_leaf_memory){0};
}

typedef struct recall_args {
    const un_leaf_memory *k;
    const un_octree *tree;
    double *value;
} recall_args;

/* Leaves that are new take the value of the old leaf at their lower corner. */
static void recall(void *arg, int64_t begin, int64_t end)
{
    const recall_args *a = arg;
    const un_leaf_memory *k = a->k;
    int64_t i = un_lower_bound(k->key, k->count, a->tree->key[begin]);
    for (int64_t c = begin; c < end; c++) {
        uint64_t key = a->tree->key[c];
        while (i < k->count && k->key[i] < key) i++;
        bool same = i < k->count && k->key[i] == key;
        int64_t from = same ? i : i - 1;
        double v = from >= 0 && from < k->count ? k->value[from] : 0;
        a->value[c] = same && k->level[i] == a->tree->level[c] ? v : v + 0.0;
    }
}

void un_leaf_memory_recall_part(un_context *ctx, const un_leaf_memory *k, const un_octree *tree,
                                un_part part, double *value)
{
    recall_args a = {k, tree, value};
    un_parallel_part(ctx, part, 8192, recall, &a);
}

void un_leaf_memory_recall(un_context *ctx, const un_leaf_memory *k, const un_octree *tree,
                           double *value)
{
    un_leaf_memory_recall_part(ctx, k, tree, (un_part){0, tree->leaf_count}, value);
}
