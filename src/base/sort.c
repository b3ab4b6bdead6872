/* Stable parallel radix sorts, least significant digit first, and running sums.
 *
 * Each pass: every fixed block counts its digits, the counts are summed digit by digit and block
 * by block, and every block scatters to its own places. Block boundaries depend on the count
 * only. */
#include "base/base.h"

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
#define DIGIT_GRAIN 128
#define SORT_BLOCKS 32

typedef struct sort_pass {
    const uint32_t *keys; /* of the original indices */
    const int32_t *from;  /* NULL: the identity */
    int32_t *to;
    uint32_t *counts; /* [block][digit], then first places */
    int64_t grain;
    int32_t shift;
    uint32_t mask;
} sort_pass;

static inline int32_t source(const sort_pass *s, int64_t k)
{
    return s->from ? s->from[k] : (int32_t)k;
}

static void count_digits(void *arg, int64_t begin, int64_t end)
{
    sort_pass *s = arg;
    uint32_t *counts = s->counts + begin / s->grain * DIGITS;
    memset(counts, 0, (s->mask + 1) * sizeof *counts);
    for (int64_t k = begin; k < end; k++) counts[(s->keys[source(s, k)] >> s->shift) & s->mask]++;
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    sort_pass *s = arg;
    uint32_t *places = s->counts + begin / s->grain * DIGITS;
    for (int64_t k = begin; k < end; k++) {
        int32_t i = source(s, k);
        s->to[places[(s->keys[i] >> s->shift) & s->mask]++] = i;
    }
}

typedef struct place_pass {
    uint32_t *counts;
    int64_t block_count;
    uint32_t first[DIGITS / DIGIT_GRAIN + 1]; /* place by piece of digits */
} place_pass;

static void count_pieces(void *arg, int64_t begin, int64_t end)
{
    place_pass *p = arg;
    uint32_t sum = 0;
    for (int64_t b = 0; b < p->block_count; b++)
        for (int64_t digit = begin; digit < end; digit++) sum += p->counts[b * DIGITS + digit];
    p->first[begin / DIGIT_GRAIN + 1] = sum;
}

static void place_piece(void *arg, int64_t begin, int64_t end)
{
    place_pass *p = arg;
    uint32_t place = p->first[begin / DIGIT_GRAIN];
    for (int64_t digit = begin; digit < end; digit++)
        for (int64_t b = 0; b < p->block_count; b++) {
            uint32_t n = p->counts[b * DIGITS + digit];
            p->counts[b * DIGITS + digit] = place;
            place += n;
        }
}

/* Counts become first places: digit by digit, and block by block within a digit. */
static void place_digits(un_context *ctx, uint32_t *counts, uint32_t digit_count,
                         int64_t block_count)
{
    place_pass p = {counts, block_count, {0}};
    un_parallel_for(ctx, digit_count, DIGIT_GRAIN, count_pieces, &p);
    for (int k = 0; k < DIGITS / DIGIT_GRAIN; k++) p.first[k + 1] += p.first[k];
    un_parallel_for(ctx, digit_count, DIGIT_GRAIN, place_piece, &p);
}

un_status un_parallel_sort(un_context *ctx, un_arena *arena, int32_t *order, const uint32_t *keys,
                           int64_t count, int32_t key_bits)
{
    UN_ASSERT(count <= INT32_MAX && key_bits >= 1 && key_bits <= 32);
    int32_t pass_count = (key_bits + DIGIT_BITS - 1) / DIGIT_BITS;
    int32_t *other = un_arena_alloc(arena, (size_t)count + 1, sizeof *other);
    uint32_t *counts = un_arena_alloc(arena, SORT_BLOCKS * DIGITS, sizeof *counts);
    if (!other || !counts) return UN_ERROR_MEMORY;
    int32_t digit_bits = (key_bits + pass_count - 1) / pass_count;
    sort_pass s = {.keys = keys, .counts = counts, .mask = (1u << digit_bits) - 1};
    s.grain = un_max64(4096, (count + SORT_BLOCKS - 1) / SORT_BLOCKS);
    int64_t block_count = (count + s.grain - 1) / s.grain;
    /* So that the last pass ends in order. */
    int32_t *buffers[2] = {pass_count % 2 ? order : other, pass_count % 2 ? other : order};
    for (int32_t pass = 0; pass < pass_count; pass++) {
        s.shift = pass * digit_bits;
        s.from = pass ? buffers[(pass + 1) % 2] : NULL;
        s.to = buffers[pass % 2];
        un_parallel_for(ctx, count, s.grain, count_digits, &s);
        place_digits(ctx, counts, s.mask + 1, block_count);
        un_parallel_for(ctx, count, s.grain, scatter, &s);
    }
    return UN_OK;
}

/* ---- 64-bit keys ---- */

/* Keys move along with their indices, so that every pass reads in sequence. */
typedef struct wide_pass {
    const uint64_t *from;
    uint64_t *to;
    const int32_t *from_index; /* NULL: the identity, or no indices at all */
    int32_t *to_index;         /* NULL: keys alone */
    uint32_t *counts;          /* [block][digit], then first places */
    int64_t grain;
    int32_t shift;
    uint32_t mask;
} wide_pass;

static void count_wide_digits(void *arg, int64_t begin, int64_t end)
{
    wide_pass *s = arg;
    uint32_t *counts = s->counts + begin / s->grain * DIGITS;
    memset(counts, 0, (s->mask + 1) * sizeof *counts);
    for (int64_t k = begin; k < end; k++) counts[(s->from[k] >> s->shift) & s->mask]++;
}

static void scatter_wide(void *arg, int64_t begin, int64_t end)
{
    wide_pass *s = arg;
    uint32_t *places = s->counts + begin / s->grain * DIGITS;
    if (!s->to_index)
        for (int64_t k = begin; k < end; k++) {
            uint64_t key = s->from[k];
            s->to[places[(key >> s->shift) & s->mask]++] = key;
        }
    else
        for (int64_t k = begin; k < end; k++) {
            uint64_t key = s->from[k];
            uint32_t place = places[(key >> s->shift) & s->mask]++;
            s->to[place] = key;
            s->to_index[place] = s->from_index ? s->from_index[k] : (int32_t)k;
        }
}

/* keys[0] is the input. The passes alternate between keys[1] and keys[2] (which may be the input)
 * and between the two index arrays, and end in the first of each pair. */
static un_status sort_wide(un_context *ctx, un_arena *arena, uint64_t *const keys[3],
                           int32_t *const index[2], int64_t count, int32_t pass_count,
                           int32_t key_bits)
{
    uint32_t *counts = un_arena_alloc(arena, SORT_BLOCKS * DIGITS, sizeof *counts);
    if (!counts) return UN_ERROR_MEMORY;
    int32_t digit_bits = (key_bits + pass_count - 1) / pass_count;
    wide_pass s = {.counts = counts, .mask = (1u << digit_bits) - 1};
    s.grain = un_max64(4096, (count + SORT_BLOCKS - 1) / SORT_BLOCKS);
    int64_t block_count = (count + s.grain - 1) / s.grain;
    for (int32_t pass = 0; pass < pass_count; pass++) {
        int32_t side = (pass_count - 1 - pass) % 2;
        s.shift = pass * digit_bits;
        s.from = pass ? s.to : keys[0];
        s.from_index = pass ? s.to_index : NULL;
        s.to = keys[1 + side];
        s.to_index = index[side];
        un_parallel_for(ctx, count, s.grain, count_wide_digits, &s);
        place_digits(ctx, counts, s.mask + 1, block_count);
        un_parallel_for(ctx, count, s.grain, scatter_wide, &s);
    }
    return UN_OK;
}

un_status un_parallel_sort64(un_context *ctx, un_arena *arena, int32_t *order, const uint64_t *keys,
                             int64_t count, int32_t key_bits)
{
    UN_ASSERT(count <= INT32_MAX && key_bits >= 1 && key_bits <= 64);
    int32_t pass_count = (key_bits + DIGIT_BITS - 1) / DIGIT_BITS;
    uint64_t *a = un_arena_alloc(arena, (size_t)count + 1, sizeof *a);
    uint64_t *b = un_arena_alloc(arena, (size_t)count + 1, sizeof *b);
    int32_t *other = un_arena_alloc(arena, (size_t)count + 1, sizeof *other);
    if (!a || !b || !other) return UN_ERROR_MEMORY;
    uint64_t *const buffers[3] = {(uint64_t *)keys, a, b}; /* the input is only read */
    int32_t *const index[2] = {order, other};
    return sort_wide(ctx, arena, buffers, index, count, pass_count, key_bits);
}

un_status un_parallel_sort_keys(un_context *ctx, un_arena *arena, uint64_t *keys, int64_t count,
                                int32_t key_bits)
{
    UN_ASSERT(count <= INT32_MAX && key_bits >= 1 && key_bits <= 64);
    int32_t pass_count = (key_bits + DIGIT_BITS - 1) / DIGIT_BITS;
    pass_count += pass_count % 2; /* so that the last pass ends in keys */
    uint64_t *other = un_arena_alloc(arena, (size_t)count + 1, sizeof *other);
    if (!other) return UN_ERROR_MEMORY;
    uint64_t *const buffers[3] = {keys, keys, other};
    int32_t *const index[2] = {NULL, NULL};
    return sort_wide(ctx, arena, buffers, index, count, pass_count, key_bits);
}

/* ---- running sums ---- */

typedef struct scan_args {
    int32_t *values;
    int64_t *sums; /* of each block, then of all before it */
    int64_t grain;
} scan_args;

static void sum_block(void *arg, int64_t begin, int64_t end)
{
    scan_args *s = arg;
    int64_t sum = 0;
    for (int64_t k = begin; k < end; k++) sum += s->values[k];
    s->sums[begin / s->grain] = sum;
}

static void scan_block(void *arg, int64_t begin, int64_t end)
{
    scan_args *s = arg;
    uint32_t sum = (uint32_t)s->sums[begin / s->grain];
    for (int64_t k = begin; k < end; k++) {
        uint32_t value = (uint32_t)s->values[k];
        s->values[k] = (int32_t)sum;
        sum += value;
    }
}

int64_t un_parallel_scan(un_context *ctx, int32_t *values, int64_t count)
{
    int64_t sums[UN_BLOCKS_MAX] = {0}, total = 0;
    scan_args s = {values, sums, un_block_grain(count)};
    un_parallel_for(ctx, count, s.grain, sum_block, &s);
    for (int64_t b = 0; b * s.grain < count; b++) {
        int64_t sum = sums[b];
        sums[b] = total;
        total += sum;
    }
    un_parallel_for(ctx, count, s.grain, scan_block, &s);
    return total;
}
