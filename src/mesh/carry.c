/* Numbers at nodes, carried from mesh to mesh.
 *
 * Nodes that stay are found by their order and keep their numbers. New nodes take the mean of the
 * nodes around them. */
#include "mesh/mesh.h"

un_status un_node_memory_keep(un_context *ctx, un_node_memory *m, const un_tets *mesh,
                              double *const *value, int width)
{
    size_t count = (size_t)mesh->plain_nodes; /* copies are guessed again */
    if (mesh->node_count == 0) return UN_OK;  /* no mesh yet, or its values were kept before */
    m->count = 0;
    UN_TRY(un_array_need(ctx, (void **)&m->order, &m->capacity[0], count + 1, sizeof *m->order));
    for (size_t n = 0; n < count; n++) m->order[n] = un_tets_order(mesh, (int64_t)n);
    for (int k = 0; k < width; k++) {
        UN_TRY(un_array_need(ctx, (void **)&m->value[k], &m->capacity[1 + k], count + 1,
                             sizeof **m->value));
        memcpy(m->value[k], value[k], count * sizeof **m->value);
    }
    m->count = (int32_t)count;
    return UN_OK;
}

void un_node_memory_free(un_context *ctx, un_node_memory *m)
{
    un_free(ctx, m->order);
    for (int k = 0; k < UN_NODE_MEMORY_WIDTH; k++) un_free(ctx, m->value[k]);
    *m = (un_node_memory){0};
}

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
        bool plain = n < a->mesh->plain_nodes;
        a->known[n] = plain && lo < m->count && m->order[lo] == order;
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

void un_node_memory_recall(un_context *ctx, const un_node_memory *m, const un_tets *mesh,
                           double *const *value, int width, uint8_t *known)
{
    recall_args a = {m, mesh, value, width, known};
    un_parallel_for(ctx, mesh->node_count, 8192, recall, &a);
    un_parallel_for(ctx, mesh->node_count, 4096, guess, &a);
}
