/* The neighbours of every node of a tet mesh: nodes that share an edge.
 *
 * A node's tets name each neighbour some five times and lie far apart in memory; a list of the
 * neighbours pays for any code that visits them twice. The tets around a node inside the brick are
 * bounded by a triangulated sphere, so F tets have F / 2 + 2 neighbours (Euler): only nodes on the
 * boundary must be counted, and over ranks those of others. */
#include "surface/cut.h"

#define NODE_GRAIN 512
/* Slots of a table that records the neighbours seen; some 14 are usual. */
#define SLOTS 1024
#define ROW_MAX 256

typedef struct graph_args {
    un_tet_graph *graph;
    const un_tets *mesh;
} graph_args;

static bool is_inside(const un_tets *mesh, int32_t n)
{
    uint64_t key = mesh->node_key[n];
    un_part own = un_tets_own_nodes(mesh);
    if (mesh->parted) return false; /* the tets of a side need not close around a node */
    if (n < own.begin || n >= own.end) return false; /* nor all be here */
    for (int32_t a = 0; a < 3; a++) {
        uint32_t at = un_morton_gather(key >> a);
        if (at == 0 || at == 2 * (uint32_t)mesh->tree->n[a]) return false;
    }
    return true;
}

/* Over ranks nobody asks for rows beyond own nodes and ghosts. */
static bool is_asked_for(const un_tets *mesh, int32_t n)
{
    const un_tet_share *share = mesh->share;
    un_part own = un_tets_own_nodes(mesh);
    if (!share || (n >= own.begin && n < own.end)) return true;
    return un_tet_share_ghost(share, n) >= 0;
}

/* Neighbours of n, each once, in the order of first appearance. Two that share a slot may appear
 * several times, unless `exact`. */
static int32_t find_row(const un_tets *mesh, int32_t n, int32_t row[ROW_MAX], uint64_t *seen,
                        bool exact)
{
    int32_t count = 0;
    for (int32_t q = mesh->first[n]; q < mesh->first[n + 1] && count <= ROW_MAX - 3; q++) {
        int32_t corner = mesh->corner[q];
        const int32_t *tet = mesh->tet[corner / 4];
        for (int32_t c = 1; c < 4; c++) {
            int32_t m = tet[(corner + c) & 3];
            uint64_t tag = (uint64_t)n << 32 | (uint32_t)m;
            uint64_t *slot = &seen[((uint32_t)m * 0x9e3779b1u) >> 22];
            bool fresh = *slot != tag;
            *slot = tag;
            if (exact)
                for (int32_t i = 0; i < count && fresh; i++) fresh = row[i] != m;
            row[count] = m;
            count += fresh;
        }
    }
    return count;
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    graph_args *a = arg;
    int32_t row[ROW_MAX];
    uint64_t seen[SLOTS];
    memset(seen, -1, sizeof seen);
    for (int64_t n = begin; n < end; n++) {
        int32_t tets = a->mesh->first[n + 1] - a->mesh->first[n];
        a->graph->first[n + 1] = 0;
        if (!is_asked_for(a->mesh, (int32_t)n)) continue;
        a->graph->first[n + 1] = is_inside(a->mesh, (int32_t)n)
                                     ? tets / 2 + 2
                                     : find_row(a->mesh, (int32_t)n, row, seen, true);
    }
}

static void write_rows(void *arg, int64_t begin, int64_t end)
{
    graph_args *a = arg;
    int32_t row[ROW_MAX];
    uint64_t seen[SLOTS];
    memset(seen, -1, sizeof seen);
    for (int64_t n = begin; n < end; n++) {
        int32_t first = a->graph->first[n], wanted = a->graph->first[n + 1] - first;
        if (wanted == 0) continue;
        int32_t count = find_row(a->mesh, (int32_t)n, row, seen, false);
        if (count != wanted) {
            memset(seen, -1, sizeof seen);
            count = find_row(a->mesh, (int32_t)n, row, seen, true);
        }
        UN_ASSERT(count == wanted);
        memcpy(a->graph->to + first, row, (size_t)wanted * sizeof *row);
    }
}

un_status un_tet_graph_build(un_context *ctx, un_arena *arena, un_tet_graph *graph,
                             const un_tets *mesh)
{
    graph_args a = {graph, mesh};
    graph->first = un_arena_alloc(arena, (size_t)mesh->node_count + 1, sizeof *graph->first);
    if (!graph->first) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, count_rows, &a);
    graph->first[0] = 0;
    for (int32_t n = 0; n < mesh->node_count; n++) graph->first[n + 1] += graph->first[n];
    size_t total = (size_t)graph->first[mesh->node_count];
    graph->to = un_arena_alloc(arena, total + 1, sizeof *graph->to);
    if (!graph->to) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, write_rows, &a);
    return UN_OK;
}
