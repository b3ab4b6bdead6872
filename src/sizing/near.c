/* Lists of neighbours. */
#include "sizing/near.h"

#define SEEN 1024

typedef struct near_args {
    near_nodes *near;
    const uint8_t *used;
} near_args;

static void list_neighbours(void *arg, int64_t begin, int64_t end)
{
    near_args *a = arg;
    near_nodes *near = a->near;
    const un_tets *mesh = near->mesh;
    /* Pairs that were met last; one that is forgotten is listed twice, which does no harm. */
    uint64_t seen[SEEN];
    for (int s = 0; s < SEEN; s++) seen[s] = UINT64_MAX;
    for (int64_t n = begin; n < end; n++) {
        near->count[n] = 0;
        if (!a->used[n]) continue;
        int64_t from = near_first(near, n), room = near_first(near, n + 1) - from, count = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] >> 2, i = mesh->corner[k] & 3;
            for (int e = 1; e < 4; e++) {
                int32_t j = (i + e) & 3, m = mesh->tet[t][j];
                uint64_t pair = (uint64_t)n << 32 | (uint32_t)m;
                if (seen[m % SEEN] == pair || !a->used[m]) continue;
                seen[m % SEEN] = pair;
                if (count < room) {
                    near->node[from + count] = m;
                    near->code[from + count] = near_code(near, t, i, j);
                }
                count++;
            }
        }
        near->count[n] = count <= room && count < NEAR_MANY ? (uint8_t)count : NEAR_MANY;
    }
}

static void measure_edges(near_nodes *near)
{
    const un_tets *mesh = near->mesh;
    for (int32_t s = 0; s < mesh->shape_count; s++) {
        int8_t corner[4][3] = {{0}};
        memcpy(corner[1], mesh->shapes[s].edge, sizeof mesh->shapes[s].edge);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                int d2 = 0;
                for (int axis = 0; axis < 3; axis++) {
                    int d = corner[i][axis] - corner[j][axis];
                    d2 += d * d;
                }
                UN_ASSERT(d2 < 16);
                near->edge[s][i][j] = (uint8_t)d2;
            }
    }
}

un_status un_near_build(un_context *ctx, un_arena *arena, near_nodes *near, const un_tets *mesh,
                        const uint8_t *used)
{
    *near = (near_nodes){.mesh = mesh};
    size_t room = (size_t)near_first(near, mesh->node_count) + 1;
    near->node = un_arena_alloc(arena, room, sizeof *near->node);
    near->code = un_arena_alloc(arena, room, sizeof *near->code);
    near->count = un_arena_alloc(arena, (size_t)mesh->node_count + 1, 1);
    if (!near->node || !near->code || !near->count) return UN_ERROR_MEMORY;
    measure_edges(near);
    near_args a = {near, used};
    un_parallel_for(ctx, mesh->node_count, 1024, list_neighbours, &a);
    return UN_OK;
}

void un_near_lengths(const near_nodes *near, float length[256])
{
    const un_octree *tree = near->mesh->tree;
    for (int code = 0; code < 256; code++)
        length[code] = (float)(0.5 * sqrt(code & 15) * un_octree_size(tree, code >> 4));
}
