/* Stable parallel radix sort of 32-bit keys, least significant digit first.
 *
 * Each pass: every fixed block counts its digits, the counts are summed digit by digit and block
 * by block, and every block scatters to its own places. Block boundaries depend on the count
 * only. */
#include "base/base.h"

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
#define SORT_BLOCKS 16

typedef struct sort_pass {
    const uint32_t *keys; /* of the original indices */
    const int32_t *from;  /* NULL: the identity */
    int32_t *to;
    uint32_t *counts; /* [block][digit], then first places */
    int64_t grain;
    int32_t shift;
} sort_pass;

static inline int32_t source(const sort_pass *s, int64_t k)
{
    return s->from ? s->from[k] : (int32_t)k;
}

static void count_digits(void *arg, int64_t begin, int64_t end)
{
    sort_pass *s = arg;
    uint32_t *counts = s->counts + begin / s->grain * DIGITS;
    memset(counts, 0, DIGITS * sizeof *counts);
    for (int64_t k = begin; k < end; k++)
        counts[(s->keys[source(s, k)] >> s->shift) & (DIGITS - 1)]++;
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    sort_pass *s = arg;
    uint32_t *places = s->counts + begin / s->grain * DIGITS;
    for (int64_t k = begin; k < end; k++) {
        int32_t i = source(s, k);
        s->to[places[(s->keys[i] >> s->shift) & (DIGITS - 1)]++] = i;
    }
}

un_status un_parallel_sort(un_context *ctx, un_arena *arena, int32_t *order, const uint32_t *keys,
                           int64_t count, int32_t key_bits)
{
    UN_ASSERT(count <= INT32_MAX && key_bits >= 1 && key_bits <= 32);
    int32_t pass_count = (key_bits + DIGIT_BITS - 1) / DIGIT_BITS;
    int32_t *other = un_arena_alloc(arena, (size_t)count + 1, sizeof *other);
    uint32_t *counts = un_arena_alloc(arena, SORT_BLOCKS * DIGITS, sizeof *counts);
    if (!other || !counts) return UN_ERROR_MEMORY;
    sort_pass s = {.keys = keys, .counts = counts};
    s.grain = un_max64(4096, (count + SORT_BLOCKS - 1) / SORT_BLOCKS);
    int64_t block_count = (count + s.grain - 1) / s.grain;
    /* So that the last pass lands in order. */
    int32_t *buffers[2] = {pass_count % 2 ? order : other, pass_count % 2 ? other : order};
    for (int32_t pass = 0; pass < pass_count; pass++) {
        s.shift = pass * DIGIT_BITS;
        s.from = pass ? buffers[(pass + 1) % 2] : NULL;
        s.to = buffers[pass % 2];
        un_parallel_for(ctx, count, s.grain, count_digits, &s);
        uint32_t place = 0;
        for (int32_t digit = 0; digit < DIGITS; digit++)
            for (int64_t b = 0; b < block_count; b++) {
                uint32_t n = counts[b * DIGITS + digit];
                counts[b * DIGITS + digit] = place;
                place += n;
            }
        un_parallel_for(ctx, count, s.grain, scatter, &s);
    }
    return UN_OK;
}
