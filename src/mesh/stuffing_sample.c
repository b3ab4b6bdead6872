/* The field at the nodes of the lattice, evaluated where it matters: the octree has asked for it in
 * the middles of leaves already, and where the surface is farther from a middle than the leaf's
 * corners, their signs are known. These get the middle's values. */
#include "mesh/stuffing_internal.h"

/* How much farther, in the finest leaves: the surface must not cut the nodes' edges, whose cuts are
 * found from exact values. */
#define SAFETY 1.05

typedef struct sample_args {
    un_stuffing_work *w;
    uint8_t *known;
} sample_args;

/* A leaf's upper faces belong to it: the centre is node 3 of the tets there. */
static void copy_middles(void *arg, int64_t begin, int64_t end)
{
    sample_args *a = arg;
    un_stuffing_work *w = a->w;
    const un_tets *lattice = w->lattice;
    for (int64_t c = begin; c < end; c++) {
        int32_t n = lattice->tet[lattice->face_tet[c][1]][3];
        w->liquid[n] = w->leaf_liquid[c];
        if (w->solid) w->solid[n] = w->leaf_solid[c];
        a->known[n] = 1;
    }
}

/* Copies the values of the middle of a leaf around node n if the surface is far from both. */
static bool copy_far(const sample_args *a, int64_t n)
{
    un_stuffing_work *w = a->w;
    const un_tets *lattice = w->lattice;
    const un_octree *tree = lattice->tree;
    int32_t middle = lattice->tet[lattice->corner[lattice->first[n]] / 4][3];
    double walls =
        fmin(w->solid ? w->solid[middle] : INFINITY, un_stuffing_sides(w, lattice->x[middle]));
    double value = fmax(w->liquid[middle], -walls);
    double h = un_octree_size(tree, lattice->node_level[middle]);
    double edge = w->def->graded ? h : tree->h;
    if (!(fabs(value) > UN_HALF_DIAGONAL * h + SAFETY * edge)) return false;
    w->liquid[n] = w->liquid[middle];
    if (w->solid) w->solid[n] = w->solid[middle];
    return true;
}

static void sample_nodes(void *arg, int64_t begin, int64_t end)
{
    sample_args *a = arg;
    un_stuffing_work *w = a->w;
    un_vec3 x[UN_STUFFING_BATCH];
    double liquid[UN_STUFFING_BATCH], solid[UN_STUFFING_BATCH];
    int32_t node[UN_STUFFING_BATCH], count = 0;
    for (int64_t n = begin; n <= end; n++) {
        if (count == UN_STUFFING_BATCH || (n == end && count > 0)) {
            w->def->field(w->def->arg, count, x, liquid, w->solid ? solid : NULL);
            for (int32_t i = 0; i < count; i++) {
                w->liquid[node[i]] = liquid[i];
                if (w->solid) w->solid[node[i]] = solid[i];
            }
            count = 0;
        }
        if (n == end || (w->leaf_liquid && (a->known[n] || copy_far(a, n)))) continue;
        node[count] = (int32_t)n;
        x[count++] = w->lattice->x[n];
    }
}

un_status un_stuffing_sample(un_stuffing_work *w)
{
    un_context *ctx = w->mesh->ctx;
    int64_t nodes = w->lattice->node_count;
    sample_args a = {w, NULL};
    if (w->leaf_liquid) {
        a.known = un_arena_alloc(w->arena, (size_t)nodes, sizeof *a.known);
        if (!a.known) return UN_ERROR_MEMORY;
        memset(a.known, 0, (size_t)nodes);
        un_parallel_for(ctx, w->mesh->tree.leaf_count, 8192, copy_middles, &a);
    }
    un_parallel_for(ctx, nodes, 4 * UN_STUFFING_BATCH, sample_nodes, &a);
    return UN_OK;
}
