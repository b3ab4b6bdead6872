/* Where liquid on an octree's leaves is thick, as in thick.c. */
#include "surface/surface.h"

/* Leaves that a wall leaves open by less are not core by themselves: with a thin open layer under
 * it, a film of less than a cell would be, and a sheet would leave a plate with all of its noise.
 */
#define CORE_OPEN 0.5

typedef struct thick_args {
    uint8_t *thick;
    const uint8_t *from; /* for the core: 1 where there is liquid or nothing is open */
    const un_leaf_level_set *def;
} thick_args;

/* Are the flags of all leaves around c other than this value? */
static bool all_around(const un_leaves *m, int64_t c, const uint8_t *flag, uint8_t not )
{
    const int32_t *near = un_leaf_near(m, c);
    const uint8_t *level = m->tree->level;
    for (int n = 0; n < m->near_count; n++) {
        int32_t first = near[n], last = first + 1;
        if (first < 0) continue;
        if (level[first] > level[c]) un_leaves_range(m, (int32_t)c, n, &first, &last);
        for (int32_t k = first; k < last; k++)
            if (flag[k] == not ) return false;
    }
    return true;
}

static void find_core(void *arg, int64_t begin, int64_t end)
{
    const thick_args *a = arg;
    const un_leaves *m = a->def->leaves;
    const float *phi = a->def->phi, *open = a->def->walls->volume;
    for (int64_t c = begin; c < end; c++) {
        bool core = phi[c] < 0 && open[c] >= (float)CORE_OPEN;
        a->thick[c] = core && all_around(m, c, a->from, 0);
    }
}

static void widen(void *arg, int64_t begin, int64_t end)
{
    const thick_args *a = arg;
    const un_leaves *m = a->def->leaves;
    for (int64_t c = begin; c < end; c++) {
        bool thick = a->from[c];
        if (!thick && a->def->phi[c] < (float)(1.49 * un_leaf_size(m, c)))
            thick = !all_around(m, c, a->from, 1);
        a->thick[c] = thick;
    }
}

un_status un_surface_thick_leaves(un_context *ctx, un_arena *arena, uint8_t **thick,
                                  const un_leaf_level_set *def)
{
    size_t n = (size_t)def->leaves->count + 1;
    uint8_t *first = un_arena_alloc(arena, n, 1), *second = un_arena_alloc(arena, n, 1);
    uint8_t *full = un_arena_alloc(arena, n, 1);
    bool able = first && second && full;
    UN_TRY(un_leaves_agree(def->leaves, able ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t k = 0; k < un_leaves_runs(def->leaves); k++)
        for (int64_t c = un_leaves_run(def->leaves, k).begin; c < un_leaves_run(def->leaves, k).end;
             c++)
            full[c] = def->phi[c] < 0 || !(def->walls->volume[c] > 0);
    thick_args a = {first, full, def};
    un_part own = un_leaves_own(def->leaves);
    un_parallel_part(ctx, own, 1024, find_core, &a);
    un_leaves_spread(def->leaves, a.thick, 1);
    for (int layer = 0; layer < 2; layer++) {
        const uint8_t *last = a.thick;
        a.thick = layer == 0 ? second : first;
        a.from = last;
        un_parallel_part(ctx, own, 1024, widen, &a);
        un_leaves_spread(def->leaves, a.thick, 1);
    }
    *thick = a.thick;
    return UN_OK;
}
