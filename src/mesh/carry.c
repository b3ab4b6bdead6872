/* Numbers at nodes, carried from mesh to mesh.
 *
 * Nodes that stay are found by their order and keep their numbers. New nodes take the mean of the
 * nodes around them. Over ranks, a node that stays may get another owner; both the old and the new
 * owners' nodes follow one another along the curve, so what arrives is in order. */
#include "mesh/mesh.h"

static un_status keep(un_context *ctx, un_node_memory *m, const un_tets *mesh, double *const *value,
                      int width)
{
    un_part own = un_tets_own_nodes(mesh);
    size_t count = (size_t)(own.end - own.begin);
    m->count = 0;
    m->width = width;
    UN_TRY(un_array_need(ctx, (void **)&m->order, &m->capacity[0], count + 1, sizeof *m->order));
    for (size_t n = 0; n < count; n++) m->order[n] = un_tets_order(mesh, own.begin + (int64_t)n);
    for (int k = 0; k < width; k++) {
        UN_TRY(un_array_need(ctx, (void **)&m->value[k], &m->capacity[1 + k], count + 1,
                             sizeof **m->value));
        memcpy(m->value[k], value[k] + own.begin, count * sizeof **m->value);
    }
    m->count = (int32_t)count;
    return UN_OK;
}

un_status un_node_memory_keep(un_context *ctx, un_node_memory *m, const un_tets *mesh,
                              double *const *value, int width)
{
    if (mesh->node_count == 0) return UN_OK; /* no mesh yet, or its values were kept before */
    un_status status = keep(ctx, m, mesh, value, width);
    return mesh->share ? un_ranks_agree(ctx, status) : status;
}

void un_node_memory_free(un_context *ctx, un_node_memory *m)
{
    un_free(ctx, m->order);
    for (int k = 0; k < UN_NODE_MEMORY_WIDTH; k++) un_free(ctx, m->value[k]);
    *m = (un_node_memory){0};
}

/* ---- to the ranks that have the nodes now ---- */

static un_status move(un_context *ctx, un_node_memory *m, un_arena *arena, un_exchange *moves)
{
    size_t count = (size_t)un_exchange_count(moves);
    un_field fields[1 + UN_NODE_MEMORY_WIDTH] = {{"order", m->order, NULL, sizeof *m->order}};
    un_status status = UN_OK;
    for (int k = 0; k < m->width; k++)
        fields[1 + k] = (un_field){"value", m->value[k], NULL, sizeof **m->value};
    for (int f = 0; f < 1 + m->width; f++) {
        fields[f].to = un_arena_alloc(arena, count + 1, fields[f].size);
        if (!fields[f].to) status = UN_ERROR_MEMORY;
    }
    UN_TRY(un_ranks_agree(ctx, status));
    UN_TRY(un_exchange_run(moves, fields, 1 + m->width));
    status = un_array_need(ctx, (void **)&m->order, &m->capacity[0], count + 1, sizeof *m->order);
    for (int k = 0; k < m->width && status == UN_OK; k++)
        status = un_array_need(ctx, (void **)&m->value[k], &m->capacity[1 + k], count + 1,
                               sizeof **m->value);
    UN_TRY(un_ranks_agree(ctx, status));
    memcpy(m->order, fields[0].to, count * sizeof *m->order);
    for (int k = 0; k < m->width; k++)
        memcpy(m->value[k], fields[1 + k].to, count * sizeof **m->value);
    m->count = (int32_t)count;
    return UN_OK;
}

un_status un_node_memory_move(un_context *ctx, un_node_memory *m, un_arena *arena,
                              const un_tree_share *tree)
{
    if (!tree) return UN_OK;
    int32_t *to = un_arena_alloc(arena, (size_t)m->count + 1, sizeof *to);
    UN_TRY(un_ranks_agree(ctx, to ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t k = 0; k < m->count; k++)
        to[k] = un_ranks_owner(tree->first, un_rank_count(ctx), m->order[k] >> UN_TETS_ORDER_BITS);
    un_exchange *moves;
    UN_TRY(un_exchange_create_moves(ctx, to, m->count, &moves));
    un_status status = move(ctx, m, arena, moves);
    un_exchange_destroy(moves);
    return status;
}

/* ---- on the next mesh ---- */

typedef struct recall_args {
    const un_node_memory *memory;
    const un_tets *mesh;
    double *const *value;
    int width;
    uint8_t *known;
} recall_args;

static void recall(void *arg, int64_t begin, int64_t end)
{
    recall_args *a = arg;
    const un_node_memory *m = a->memory;
    int64_t lo = un_lower_bound(m->order, m->count, un_tets_order(a->mesh, begin));
    for (int64_t n = begin; n < end; n++) {
        uint64_t order = un_tets_order(a->mesh, n);
        while (lo < m->count && m->order[lo] < order) lo++;
        bool copy = un_tets_is_copy(a->mesh, n); /* guessed again */
        a->known[n] = !copy && lo < m->count && m->order[lo] == order;
        for (int k = 0; k < a->width; k++) a->value[k][n] = a->known[n] ? m->value[k][lo] : 0;
    }
}

static void guess(void *arg, int64_t begin, int64_t end)
{
    recall_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        if (a->known[n]) continue;
        double sum[UN_NODE_MEMORY_WIDTH] = {0};
        int32_t count = 0;
        for (int32_t e = mesh->first[n]; e < mesh->first[n + 1]; e++) {
            const int32_t *m = mesh->tet[mesh->corner[e] / 4];
            for (int i = 0; i < 4; i++) {
                if (!a->known[m[i]]) continue;
                for (int k = 0; k < a->width; k++) sum[k] += a->value[k][m[i]];
                count++;
            }
        }
        for (int k = 0; k < a->width; k++)
            if (count > 0) a->value[k][n] = sum[k] / count;
    }
}

static un_status share(const recall_args *a, bool known)
{
    un_field fields[UN_NODE_MEMORY_WIDTH + 1];
    for (int k = 0; k < a->width; k++)
        fields[k] = (un_field){"value", a->value[k], NULL, sizeof **a->value};
    fields[a->width] = (un_field){"known", a->known, NULL, 1};
    return un_tets_share(a->mesh, fields, a->width + known);
}

un_status un_node_memory_recall(un_context *ctx, const un_node_memory *m, const un_tets *mesh,
                                double *const *value, int width, uint8_t *known)
{
    recall_args a = {m, mesh, value, width, known};
    un_parallel_for(ctx, mesh->node_count, 2048, recall, &a);
    UN_TRY(share(&a, true));
    un_parallel_for(ctx, mesh->node_count, 1024, guess, &a);
    return share(&a, false);
}
