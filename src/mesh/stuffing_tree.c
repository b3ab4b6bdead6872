/* The octree of isosurface stuffing.
 *
 * From the coarsest leaves down: a leaf is halved if it is larger than wanted, or if the surface
 * may come so near that one of its tets could be cut or bent. Both conditions take a sample at its
 * middle. A level set flatter than a distance is caught later, when nodes have their signs. */
#include "mesh/stuffing_internal.h"

/* The surface bends tets of a leaf if it comes within so many of the finest leaves. */
#define MARGIN 1.5

typedef struct refine_args {
    un_stuffing_work *w;
    double *x[3]; /* middles of the leaves */
    uint8_t *level;
    int64_t count;
    double *liquid, *solid; /* in the middles; solid: NULL without solids */
} refine_args;

static un_vec3 middle_of(const un_octree *tree, int64_t c)
{
    double half = 0.5 * un_octree_size(tree, tree->level[c]);
    return un_add(un_octree_corner(tree, (int32_t)c), un_v3(half, half, half));
}

/* The edge that leaves at x should have at most, for a level set of that value. Where the surface
 * passes, a graded mesh takes the least size in the leaf: that in the air says nothing. */
static double wanted_size(const un_stuffing_work *w, un_vec3 x, double value, double h)
{
    const un_stuffing_def *def = w->def;
    double finest = w->mesh->tree.h;
    bool near = !(fabs(value) >= UN_HALF_DIAGONAL * h + MARGIN * finest);
    if (near && !def->graded) return finest;
    if (!def->size) return INFINITY;
    double least = def->size(def->arg, x);
    for (int k = 0; k < 8 && near; k++) {
        un_vec3 to = un_v3(k & 1 ? 0.5 : -0.5, k & 2 ? 0.5 : -0.5, k & 4 ? 0.5 : -0.5);
        least = fmin(least, def->size(def->arg, un_mad(x, to, h)));
    }
    return least;
}

/* Counts the leaves to halve. */
static double look(void *arg, int64_t begin, int64_t end)
{
    refine_args *a = arg;
    const un_stuffing_work *w = a->w;
    const un_octree *tree = &w->mesh->tree;
    un_vec3 x[UN_STUFFING_BATCH];
    double count = 0;
    for (int64_t base = begin; base < end; base += UN_STUFFING_BATCH) {
        int64_t n = un_min64(end - base, UN_STUFFING_BATCH);
        for (int64_t i = 0; i < n; i++) x[i] = middle_of(tree, base + i);
        w->def->field(w->def->arg, n, x, a->liquid + base, a->solid ? a->solid + base : NULL);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = base + i;
            double h = un_octree_size(tree, tree->level[c]);
            double walls = fmin(a->solid ? a->solid[c] : INFINITY, un_stuffing_sides(w, x[i]));
            double value = fmax(a->liquid[c], -walls);
            a->x[0][c] = x[i].x, a->x[1][c] = x[i].y, a->x[2][c] = x[i].z;
            bool halve =
                tree->level[c] < tree->level_max && h > (1 + 1e-9) * wanted_size(w, x[i], value, h);
            a->level[c] = (uint8_t)(tree->level[c] + halve);
            count += halve;
        }
    }
    return count;
}

static un_status begin_request(refine_args *a, int64_t more)
{
    un_stuffing_work *w = a->w;
    const un_octree_request *wanted = w->def->request;
    int64_t leaves = w->mesh->tree.leaf_count, extra = wanted ? wanted->count : 0;
    size_t room = (size_t)(leaves + extra + more + 1);
    a->level = un_arena_alloc(w->arena, room, 1);
    for (int k = 0; k < 3; k++) a->x[k] = un_arena_alloc(w->arena, room, sizeof(double));
    return a->level && a->x[0] && a->x[1] && a->x[2] ? UN_OK : UN_ERROR_MEMORY;
}

static un_status build_tree(un_stuffing_work *w, const refine_args *a, const uint8_t *reach)
{
    un_octree_request request = {
        .count = a->count, .x = {a->x[0], a->x[1], a->x[2]}, .level = a->level, .reach = reach};
    return un_octree_build(&w->mesh->tree, w->arena, &request);
}

un_status un_stuffing_refine(un_stuffing_work *w)
{
    un_octree *tree = &w->mesh->tree;
    un_octree_request none = {0};
    UN_TRY(un_octree_build(tree, w->arena, w->def->request ? w->def->request : &none));
    for (;;) {
        refine_args a = {.w = w, .count = tree->leaf_count};
        size_t leaves = (size_t)tree->leaf_count;
        UN_TRY(begin_request(&a, 0));
        a.liquid = un_arena_alloc(w->arena, leaves, sizeof *a.liquid);
        if (w->def->solids) a.solid = un_arena_alloc(w->arena, leaves, sizeof *a.solid);
        if (!a.liquid || (w->def->solids && !a.solid)) return UN_ERROR_MEMORY;
        if (un_parallel_sum(tree->ctx, tree->leaf_count, look, &a) == 0) {
            w->leaf_liquid = a.liquid;
            w->leaf_solid = a.solid;
            return UN_OK;
        }
        UN_TRY(build_tree(w, &a, NULL));
    }
}

/* ---- around bad tets ---- */

static void keep_leaves(void *arg, int64_t begin, int64_t end)
{
    refine_args *a = arg;
    const un_octree *tree = &a->w->mesh->tree;
    for (int64_t c = begin; c < end; c++) {
        un_vec3 x = middle_of(tree, c);
        a->x[0][c] = x.x, a->x[1][c] = x.y, a->x[2][c] = x.z;
        a->level[c] = tree->level[c];
    }
}

un_status un_stuffing_refine_bad(un_stuffing_work *w)
{
    un_octree *tree = &w->mesh->tree;
    const un_tets *lattice = w->lattice;
    refine_args a = {.w = w, .count = tree->leaf_count};
    UN_TRY(begin_request(&a, w->bad));
    uint8_t *reach =
        un_arena_alloc(w->arena, (size_t)(tree->leaf_count + w->bad) + 1, sizeof *reach);
    if (!reach) return UN_ERROR_MEMORY;
    memset(reach, 0, (size_t)tree->leaf_count);
    un_parallel_for(tree->ctx, tree->leaf_count, 4096, keep_leaves, &a);
    for (int64_t t = 0; t < lattice->tet_count; t++) {
        if (!un_stuffing_bad(w, t)) continue;
        /* The finest of the leaves that meet at its nodes, next to and around the tet; finer ones
         * if these are alike. */
        uint8_t level = 0, least = UINT8_MAX;
        for (int i = 0; i < 4; i++) {
            uint8_t l = lattice->node_level[lattice->tet[t][i]];
            if (l > level) level = l;
            if (l < least) least = l;
        }
        if (w->flat && least == level && level < tree->level_max) level++;
        un_vec3 x = un_tets_center(lattice, (int32_t)t);
        a.x[0][a.count] = x.x, a.x[1][a.count] = x.y, a.x[2][a.count] = x.z;
        reach[a.count] = 1;
        a.level[a.count++] = level;
    }
    w->leaf_liquid = w->leaf_solid = NULL;
    return build_tree(w, &a, reach);
}
