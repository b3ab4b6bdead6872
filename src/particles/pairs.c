/* Which particles merge: the closest pairs first. */
#include "particles/pairs.h"

static bool is_taken(const uint8_t *taken, uint32_t i)
{
    return taken[i / 8] >> i % 8 & 1;
}

static void take(uint8_t *taken, uint32_t i)
{
    taken[i / 8] |= (uint8_t)(1 << i % 8);
}

un_status un_pairs_choose(un_context *ctx, un_arena *arena, const un_pair_wish *wishes,
                          int64_t count, int64_t total, un_pair **pairs, int64_t *pair_count)
{
    size_t room = (size_t)count + 1, bytes = (size_t)total / 8 + 1;
    uint32_t *keys = un_arena_alloc(arena, room, sizeof *keys);
    int32_t *order = un_arena_alloc(arena, room, sizeof *order);
    uint8_t *taken = un_arena_alloc(arena, bytes, 1);
    *pairs = un_arena_alloc(arena, room, sizeof **pairs);
    *pair_count = 0;
    if (!keys || !order || !taken || !*pairs) return UN_ERROR_MEMORY;
    memset(taken, 0, bytes);
    /* non-negative floats sort like their bits */
    for (int64_t n = 0; n < count; n++) memcpy(&keys[n], &wishes[n].distance, sizeof *keys);
    UN_TRY(un_parallel_sort(ctx, arena, order, keys, count, 32));
    double carry = 0; /* m3 lost to rounding so far */
    for (int64_t k = 0; k < count; k++) {
        const un_pair_wish *w = &wishes[order[k]];
        if (is_taken(taken, w->i) || is_taken(taken, w->j)) continue;
        take(taken, w->i);
        take(taken, w->j);
        double v = (double)w->vi + (double)w->vj + carry;
        carry = v - (double)(float)v;
        (*pairs)[(*pair_count)++] = (un_pair){.lower = w->i < w->j ? w->i : w->j,
                                              .upper = w->i < w->j ? w->j : w->i,
                                              .volume = (float)v};
    }
    return UN_OK;
}
