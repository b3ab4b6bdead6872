/* Transfers to leaves over ranks: copies of the particles in leaves around a rank's own, as much of
 * them as leaves gather, 28 bytes each. Ranges of particles, and their places in vectors,
 * are found from the numbers that particles have among all, so sums are those of one rank. */
#include "transfer/leaves.h"

#include <stdlib.h>

/* Vectors of sixteen may be read from so far before the first particle, and after the last. */
#define ROOM 16

/* Leaves of others that own ones gather from. */
static void mark_around(uint8_t *wanted, const un_leaves *m)
{
    un_part own = un_leaves_own(m);
    memset(wanted, 0, (size_t)m->count);
    for (int64_t c = own.begin; c < own.end; c++)
        for (int n = 0; n < m->near_count; n++) {
            int32_t first, end;
            un_leaves_range(m, (int32_t)c, n, &first, &end);
            if (first >= own.begin && end <= own.end) continue;
            for (int32_t k = first; k < end; k++) wanted[k] = k < own.begin || k >= own.end;
        }
}

/* Numbers of their particles, and the stretches that these form with own ones. */
static un_status list_wanted(un_arena *arena, const un_leaves *m, const un_tet_bins *bins,
                             int64_t **number, int64_t *lower, int64_t *count,
                             un_leaf_givers *givers)
{
    un_part own = un_leaves_own(m);
    int64_t n = 0, place = 0, last = -1, total = 0;
    int32_t stretches = 0;
    uint8_t *wanted = un_arena_alloc(arena, (size_t)m->count + 1, 1);
    if (!wanted) return UN_ERROR_MEMORY;
    mark_around(wanted, m);
    for (int64_t c = 0; c < m->count; c++)
        if (wanted[c]) total += bins->all[c + 1] - bins->all[c], stretches++;
    *number = un_arena_alloc(arena, (size_t)total + 1, sizeof **number);
    un_leaf_stretch *stretch = un_arena_alloc(arena, (size_t)stretches + 2, sizeof *stretch);
    if (!*number || !stretch) return UN_ERROR_MEMORY;
    stretches = 0;
    for (int64_t c = 0; c < m->count; c++) {
        bool mine = c >= own.begin && c < own.end;
        int64_t from = bins->all[c], to = bins->all[c + 1];
        if (c == own.begin) *lower = n;
        if ((!mine && !wanted[c]) || from == to) continue;
        if (last != from) stretch[stretches++] = (un_leaf_stretch){from, place};
        for (int64_t q = from; q < to && !mine; q++) (*number)[n++] = q;
        place += to - from;
        last = to;
    }
    if (own.begin == m->count) *lower = n;
    *count = n;
    givers->stretch = stretch;
    givers->stretch_count = stretches;
    return UN_OK;
}

/* Copies before own ones, own ones, copies after them, with room around. */
static char *make_room(un_arena *arena, int64_t count)
{
    size_t room = (size_t)(count + 2 * ROOM);
    char *all = un_arena_alloc(arena, room, 4);
    if (!all) return NULL;
    memset(all, 0, (size_t)ROOM * 4);
    memset(all + (room - ROOM) * 4, 0, (size_t)ROOM * 4);
    return all + (size_t)ROOM * 4;
}

un_status un_leaf_givers_fetch(un_context *ctx, un_arena *arena, un_leaf_givers *givers,
                               const un_leaves *m, const un_tet_bins *bins, un_status status)
{
    static const char *const names[7] = {"volume", "vx", "vy", "vz", "x", "y", "z"};
    un_range range = bins->share->own;
    int64_t *number = NULL, lower = 0, count = 0, own = range.end - range.begin;
    un_exchange *halo;
    un_field fields[7];
    char *all[7] = {0}, *arrived[7] = {0};
    if (status == UN_OK) status = list_wanted(arena, m, bins, &number, &lower, &count, givers);
    const void *mine[7] = {givers->volume, givers->v[0], givers->v[1], givers->v[2],
                           givers->x[0],   givers->x[1], givers->x[2]};
    int32_t n = 0;
    for (int k = 0; k < 7 && status == UN_OK; k++) {
        if (!mine[k]) continue;
        all[k] = make_room(arena, own + count);
        arrived[k] = un_arena_alloc(arena, (size_t)count + 1, 4);
        if (!all[k] || !arrived[k]) status = UN_ERROR_MEMORY;
        fields[n++] = (un_field){names[k], mine[k], arrived[k], 4};
    }
    UN_TRY(un_ranks_agree(ctx, status));
    UN_TRY(un_exchange_create_halo(ctx, range, number, count, &halo));
    status = un_exchange_run(halo, fields, n);
    bins->share->halo_bytes += un_exchange_bytes(halo);
    bins->share->copied += (int64_t)(un_exchange_bytes(halo) / (size_t)(4 * n));
    un_exchange_destroy(halo);
    UN_TRY(status);
    for (int k = 0; k < 7; k++) {
        if (!mine[k]) continue;
        memcpy(all[k], arrived[k], (size_t)lower * 4);
        memcpy(all[k] + lower * 4, mine[k], (size_t)own * 4);
        memcpy(all[k] + (lower + own) * 4, arrived[k] + lower * 4, (size_t)(count - lower) * 4);
    }
    givers->own = (un_part){range.begin, range.end};
    givers->own_shift = lower - range.begin;
    givers->volume = (const float *)(void *)all[0];
    for (int a = 0; a < 3; a++) {
        givers->v[a] = (float *)(void *)all[1 + a];
        givers->x[a] = (int32_t *)(void *)all[4 + a];
    }
    return UN_OK;
}

/* ---- what emitters brought ---- */

typedef struct emitted_one {
    uint32_t id;
    int32_t leaf;
    float volume;
} emitted_one;

static int by_id(const void *a, const void *b)
{
    uint32_t i = ((const emitted_one *)a)->id, j = ((const emitted_one *)b)->id;
    return (i > j) - (i < j);
}

un_status un_emitted_place_ranks(un_context *ctx, un_emitted *emitted, const un_octree *tree,
                                 const un_markers *m, un_status status)
{
    const un_particles *p = &m->particles;
    int64_t count = 0, all_count = 0;
    emitted_one *mine = NULL, *all = NULL;
    for (int32_t q = 0; q < p->count; q++) count += (p->flags[q] & UN_PARTICLE_EMITTED) != 0;
    mine = un_alloc(ctx, (size_t)count + 1, sizeof *mine);
    status = un_ranks_agree(ctx, mine ? status : UN_ERROR_MEMORY);
    count = 0;
    for (int32_t q = 0; q < p->count && status == UN_OK; q++)
        if (p->flags[q] & UN_PARTICLE_EMITTED)
            mine[count++] = (emitted_one){
                m->share->id[q], un_octree_find(tree, un_particle_position(p, q)), p->volume[q]};
    if (status == UN_OK)
        status = un_ranks_list(ctx, mine, count, sizeof *mine, (void **)&all, &all_count);
    un_free(ctx, mine);
    UN_TRY(status);
    if (all_count > 0) qsort(all, (size_t)all_count, sizeof *all, by_id);
    memset(emitted->volume, 0, (size_t)tree->leaf_count * sizeof *emitted->volume);
    /* in the order of one rank */
    for (int64_t k = 0; k < all_count; k++) emitted->volume[all[k].leaf] += all[k].volume;
    un_free(ctx, all);
    return UN_OK;
}
