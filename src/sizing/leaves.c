/* Leaves of an octree as nodes of sizing: their centres, with the leaves across their sides as
 * neighbours. */
#include "sizing/sizing.h"

typedef struct leaf_args {
    const un_leaves *m;
    const uint8_t *used;
    int32_t *first, *near;
    uint8_t *count;
    float *length;
} leaf_args;

/* The leaves beyond the sides, into `near` unless that is NULL; returns their number. */
static int32_t list_leaf(const un_leaves *m, int32_t c, int32_t *near, float *length)
{
    int32_t count = 0;
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[c][side];
        for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
            int32_t face = f < 0 ? m->group[~f][k] : f, own = m->face_side[face] / 6;
            int32_t there = own == c ? m->face_other[face] : own;
            if (there < 0) continue;
            if (near) {
                near[count] = there;
                length[count] = (float)un_length(un_sub(m->x[there], m->x[c]));
            }
            count++;
        }
    }
    return count;
}

/* Over ranks: own leaves and those next to them. */
static bool is_listed(const leaf_args *a, int64_t c)
{
    return a->used[c] && (!un_leaves_in_parts(a->m) || a->m->share->ring[c] <= 1);
}

static void count_near(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        a->first[c] = is_listed(a, c) ? list_leaf(a->m, (int32_t)c, NULL, NULL) : 0;
}

static void list_near(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        a->count[c] = 0;
        if (!is_listed(a, c)) continue;
        int32_t first = a->first[c];
        a->count[c] = (uint8_t)list_leaf(a->m, (int32_t)c, a->near + first, a->length + first);
    }
}

un_status un_sizing_nodes_leaves(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                                 const un_leaves *m, const float *phi)
{
    const un_octree *tree = m->tree;
    *nodes = (un_sizing_nodes){.count = m->count,
                               .dim = m->dim,
                               .x = m->x,
                               .level = tree->level,
                               .cell = tree->edge,
                               .finest = tree->h,
                               .leaves = un_leaves_in_parts(m) ? m : NULL,
                               .coarsest = un_octree_size(tree, 0)};
    UN_TRY(un_sizing_choose(ctx, arena, nodes, phi));
    leaf_args a = {.m = m, .used = nodes->used};
    a.first = un_arena_alloc(arena, (size_t)m->count + 1, sizeof *a.first);
    a.count = un_arena_alloc(arena, (size_t)m->count + 1, 1);
    if (!a.first || !a.count) return UN_ERROR_MEMORY;
    if (nodes->leaves) memset(a.first, 0, (size_t)m->count * sizeof *a.first);
    if (nodes->leaves) memset(a.count, 0, (size_t)m->count);
    un_leaves_each(m, 4096, count_near, &a);
    a.first[m->count] = 0;
    int64_t total = un_parallel_scan(ctx, a.first, m->count + 1);
    a.near = un_arena_alloc(arena, (size_t)total + 1, sizeof *a.near);
    a.length = un_arena_alloc(arena, (size_t)total + 1, sizeof *a.length);
    if (!a.near || !a.length) return UN_ERROR_MEMORY;
    un_leaves_each(m, 4096, list_near, &a);
    nodes->near_first = a.first;
    nodes->near_count = a.count;
    nodes->near = a.near;
    nodes->near_length = a.length;
    return UN_OK;
}

void un_sizing_at_leaves(const void *arg, const un_particles *p, int64_t begin, int64_t end,
                         double *size)
{
    const un_sizing_on_leaves *on = arg;
    const double *const x[3] = {p->x[0] + begin, p->x[1] + begin, p->x[2] + begin};
    un_leaves_sample_points(on->leaves, on->size, INFINITY, end - begin, on->leaf + begin, x, size,
                            NULL);
}
