/* Surface tension on the leaves of an octree.
 *
 * Curvature is found as on the grid (grid.c), on the lattice of each level that leaves next to the
 * surface have: a leaf takes it from the lattice of its own size, where the cells of other sizes
 * are continued (mesh/leaves_sample.c). Such a lattice covers the box around those leaves.
 *
 * Over ranks, all get to know the level set at all leaves, and every rank finds the curvature of
 * the whole surface. */
#include "tension/lattice.h"

/* Cells of a lattice beyond the box: the band, and what finds it. */
#define PAD (UN_BAND + 3)
/* Leaves farther than so many cells of the lattice from the surface have no part in it. */
#define FAR 14.0

typedef struct leaf_args {
    un_tension_lattice *l;
    const un_tension_leaves *in;
    const float *phi, *solid; /* at all leaves; solid as in un_leaf_walls */
    uint8_t *wanted;          /* by leaf: next to the surface */
    uint8_t *found;           /* by leaf: its pressure is */
    int level;
    int32_t size;    /* of the lattice's cells, in finest leaves */
    int32_t from[3]; /* lowest cell of the lattice, in its cells */
    double scale, mean;
} leaf_args;

/* ---- which leaves ---- */

static void find_wanted(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->in->leaves;
    const float *phi = a->phi;
    for (int64_t c = begin; c < end; c++) {
        bool liquid = phi[c] < 0, crossed = false;
        for (int side = 0; side < 2 * m->dim && !crossed; side++) {
            int32_t g = m->side[c][side];
            for (int k = 0; k < (g < 0 ? un_leaves_group_size(m) : 1); k++) {
                int32_t f = g < 0 ? m->group[~g][k] : g, own = m->face_side[f] / 6;
                int32_t there = own == c ? m->face_other[f] : own;
                crossed |= there >= 0 && (phi[there] < 0) != liquid;
            }
        }
        a->wanted[c] = crossed;
    }
}

static void corner_of(const un_octree *tree, int64_t c, int32_t at[3])
{
    for (int k = 0; k < 3; k++) at[k] = (int32_t)un_morton_gather(tree->key[c] >> k);
}

/* The lattice of a level; false if it has no leaves next to the surface. */
static bool place_lattice(leaf_args *a, un_grid *g)
{
    const un_leaves *m = a->in->leaves;
    const un_octree *tree = m->tree;
    un_tension_lattice *l = a->l;
    int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, high[3] = {-1, -1, -1}, at[3];
    a->size = 1 << (tree->level_max - a->level);
    for (int32_t c = 0; c < m->count; c++) {
        if (!a->wanted[c] || tree->level[c] != a->level) continue;
        corner_of(tree, c, at);
        for (int k = 0; k < 3; k++) {
            low[k] = at[k] / a->size < low[k] ? at[k] / a->size : low[k];
            high[k] = at[k] / a->size > high[k] ? at[k] / a->size : high[k];
        }
    }
    if (high[0] < 0) return false;
    double h = tree->edge[a->level], origin[3] = {0};
    const double size[3] = {tree->size.x, tree->size.y, tree->size.z};
    *g = (un_grid){.dim = m->dim, .h = h, .inverse_h = 1 / h, .size = tree->size};
    l->dim = m->dim;
    l->count = 1;
    for (int k = 0; k < 3; k++) {
        l->pad[k] = k < m->dim ? PAD : 0;
        a->from[k] = low[k] - l->pad[k];
        l->n[k] = high[k] - low[k] + 1 + 2 * l->pad[k];
        l->stride[k] = l->count;
        l->count *= l->n[k];
        origin[k] = k < m->dim ? h * low[k] : 0;
        g->half[k] = k < m->dim ? 0.5 : 0;
        l->low[k] = -origin[k] / h + l->pad[k] - 0.5;
        l->high[k] = l->low[k] + size[k] / h;
    }
    g->origin = un_v3(origin[0], origin[1], origin[2]);
    return true;
}

/* ---- the level set on the lattice ---- */

/* The lattice's cell with the lowest corner at a place, in finest leaves; false outside. */
static bool cell_at(const leaf_args *a, const int32_t at[3], int64_t *cell)
{
    const un_tension_lattice *l = a->l;
    *cell = 0;
    for (int k = 0; k < l->dim; k++) {
        int32_t i = at[k] / a->size - a->from[k];
        if (i < 0 || i >= l->n[k]) return false;
        *cell += i * l->stride[k];
    }
    return true;
}

/* The cells that a leaf fills, or the one that it is the first leaf in. */
static void fill_leaves(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->in->leaves;
    const un_octree *tree = m->tree;
    un_tension_lattice *l = a->l;
    double h = tree->edge[a->level];
    for (int64_t c = begin; c < end; c++) {
        int32_t at[3], corner[3], cells = 1;
        int64_t cell;
        corner_of(tree, c, corner);
        int level = tree->level[c];
        if (level < a->level) cells = 1 << (a->level - level);
        if (level > a->level && ((corner[0] | corner[1] | corner[2]) & (a->size - 1)) != 0)
            continue;
        double edge = fmax(un_leaf_size(m, c), h), phi = a->phi[c];
        bool far = fabs(phi) > FAR * h + edge;
        bool solid = a->solid && a->solid[c] < (float)edge;
        uint8_t mark =
            (uint8_t)((solid ? UN_MAY_BE_SOLID : 0) | (level == a->level ? UN_OWN_LEVEL : 0));
        for (int32_t n = 0; n < (m->dim == 2 ? 1 : cells) * cells * cells; n++) {
            const int32_t step[3] = {n % cells, n / cells % cells, n / cells / cells};
            for (int k = 0; k < 3; k++) at[k] = corner[k] + step[k] * a->size;
            if (!cell_at(a, at, &cell)) continue;
            double value =
                level == a->level || far ? phi : un_leaves_lattice_value(m, a->phi, a->level, at);
            l->phi[cell] = (float)(value / h);
            l->mark[cell] = mark;
        }
    }
}

/* Beyond the brick: as in its outermost cells. */
static void fill_beyond(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_octree *tree = a->in->leaves->tree;
    un_tension_lattice *l = a->l;
    for (int64_t row = begin; row < end; row++) {
        const int32_t at[3] = {0, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1])};
        int64_t from = 0;
        bool beyond = false;
        int32_t first = 0, last = 0;
        for (int k = 0; k < l->dim; k++) {
            int32_t low = -a->from[k], high = tree->n[k] / a->size - 1 - a->from[k];
            int32_t inside = un_clampi(at[k], low, high);
            if (k == 0) {
                first = low > 0 ? low : 0;
                last = high < l->n[0] - 1 ? high : l->n[0] - 1;
                continue;
            }
            beyond |= inside != at[k];
            from += inside * l->stride[k];
        }
        float *phi = l->phi + row * l->n[0];
        for (int32_t i = 0; i < l->n[0]; i++) {
            if (!beyond && i >= first && i <= last) continue;
            phi[i] = l->phi[from + un_clampi(i, first, last)];
            l->mark[row * l->n[0] + i] = 0;
        }
    }
}

/* ---- curvature ---- */

static void press_leaves(void *arg, int64_t begin, int64_t end, double *sums)
{
    const leaf_args *a = arg;
    const un_octree *tree = a->in->leaves->tree;
    for (int64_t c = begin; c < end; c++) {
        int32_t at[3];
        int64_t cell;
        if (!a->wanted[c] || tree->level[c] != a->level) continue;
        corner_of(tree, c, at);
        if (!cell_at(a, at, &cell) || a->l->number[cell] < 0) continue;
        a->in->pressure[c] = a->scale * un_lattice_curvature(a->l, cell);
        a->found[c] = 1;
        sums[0] += a->in->pressure[c];
        sums[1] += 1;
    }
}

static void fill_rest(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        if (!a->found[c]) a->in->pressure[c] = a->mean;
}

static un_status press_level(leaf_args *a, un_arena *arena, double sums[2])
{
    un_context *ctx = a->l->ctx;
    un_tension_lattice *l = a->l;
    const un_tension_leaves *in = a->in;
    un_grid grid;
    double here[2] = {0};
    un_tension_grid as_grid = {.grid = &grid,
                               .walls = in->walls->walls,
                               .def = in->def,
                               .bodies = in->bodies,
                               .kick = in->kick};
    if (!place_lattice(a, &grid)) return UN_OK;
    l->in = &as_grid;
    UN_TRY(un_lattice_allocate(l, arena));
    l->mark = un_arena_alloc(arena, (size_t)l->count, 1);
    if (!l->mark) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, in->leaves->count, 512, fill_leaves, a);
    un_parallel_for(ctx, l->count / l->n[0], 64, fill_beyond, a);
    un_lattice_extend(l);
    if (in->bodies) un_lattice_pull(l);
    UN_TRY(un_lattice_distance(l, arena));
    UN_TRY(un_lattice_turn(l, arena));
    un_lattice_sharpen(l);
    a->scale = in->def->fluid.surface_tension / grid.h;
    un_parallel_sums(ctx, in->leaves->count, 2, press_leaves, a, here);
    sums[0] += here[0];
    sums[1] += here[1];
    return UN_OK;
}

/* Own values of a field, in an array for those of all leaves. */
static float *copy_own(un_arena *arena, const un_leaves *m, const float *field)
{
    float *all = un_arena_alloc(arena, (size_t)m->count + 1, sizeof *all);
    un_part own = un_leaves_own(m);
    if (all)
        memcpy(all + own.begin, field + own.begin, (size_t)(own.end - own.begin) * sizeof *all);
    return all;
}

/* The level set at all leaves, and which of them are next to the surface. */
static un_status know_all(leaf_args *a, un_context *ctx, un_arena *arena)
{
    const un_leaves *m = a->in->leaves;
    float *phi = NULL, *solid = NULL;
    bool able = a->wanted && a->found, parts = un_leaves_in_parts(m);
    if (parts) {
        a->phi = phi = copy_own(arena, m, a->in->phi);
        able = able && phi;
    }
    if (parts && a->solid) {
        a->solid = solid = copy_own(arena, m, a->solid);
        able = able && solid;
    }
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    if (phi) un_ranks_spread(ctx, m->share->leaf, phi, sizeof *phi);
    if (solid) un_ranks_spread(ctx, m->share->leaf, solid, sizeof *solid);
    un_parallel_part(ctx, un_leaves_own(m), 4096, find_wanted, a);
    if (m->share) un_ranks_spread(ctx, m->share->leaf, a->wanted, 1);
    return UN_OK;
}

un_status un_tension_on_leaves(un_context *ctx, un_arena *arena, const un_tension_leaves *in)
{
    size_t count = (size_t)in->leaves->count + 1;
    leaf_args a = {.in = in,
                   .phi = in->phi,
                   .solid = in->walls->solid,
                   .wanted = un_arena_alloc(arena, count, 1),
                   .found = un_arena_alloc(arena, count, 1)};
    double sums[2] = {0};
    UN_TRY(know_all(&a, ctx, arena));
    memset(a.found, 0, count);
    for (a.level = in->leaves->tree->level_max; a.level >= 0; a.level--) {
        un_tension_lattice l = {.ctx = ctx};
        a.l = &l;
        UN_TRY(press_level(&a, arena, sums));
    }
    a.mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
    un_parallel_for(ctx, in->leaves->count, 8192, fill_rest, &a);
    return UN_OK;
}

/* Bytes for each cell of a lattice, and for all levels together over those of the finest. */
#define CELL_BYTES 16.0
#define LEVELS 1.2

double un_tension_leaves_bytes(const un_leaves *m, const float *phi)
{
    double low[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, high[3] = {-1, -1, -1}, cells = 1;
    un_part own = un_leaves_own(m);
    for (int64_t c = own.begin; c < own.end; c++) {
        int32_t size = 1 << (m->tree->level_max - m->tree->level[c]), at[3];
        if (!(phi[c] < 0)) continue;
        corner_of(m->tree, c, at);
        for (int k = 0; k < 3; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k] + size);
        }
    }
    for (int k = 0; k < 3 && m->share; k++) {
        low[k] = -un_ranks_max(m->share->ctx, -low[k]);
        high[k] = un_ranks_max(m->share->ctx, high[k]);
    }
    if (high[0] < 0) return 0;
    for (int k = 0; k < m->dim; k++) cells *= high[k] - low[k] + 2 * PAD;
    return LEVELS * CELL_BYTES * cells;
}
