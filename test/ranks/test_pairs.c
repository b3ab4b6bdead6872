/* Which particles merge, over ranks: every rank also chooses alone from all wishes, and finds the
 * same pairs and the same volumes. */
#include "particles/pairs.h"

#include "group.h"

#include <stdlib.h>

enum {
    CHAIN, /* each wants the next, nearer and nearer: the last pair decides all, over all borders */
    ALTERED, /* the same, but every tenth distance repeats the one before */
    RANDOM,  /* up to four wishes of each, to particles anywhere near */
    FAR,     /* to any particle of any rank */
    KIND_COUNT
};

/* Volumes whose sums are exact; those of some need rounding, where large ones are among small. */
static float volume_of(uint32_t q, int rounded)
{
    float v = (float)exp2(-3.0 * (q % 4)) * (float)(1 + q % 3);
    if (rounded && un_random(q, 7) < 1.0 / rounded) v += (float)(1e-7 * un_random(q, 8));
    return v;
}

/* In the order of particles, nearest first. */
static int64_t make_wishes(un_pair_wish *wishes, int kind, uint32_t total, int rounded)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < total; i++) {
        int64_t first = count;
        for (uint32_t k = 0; k < (kind >= RANDOM ? 4u : 1u); k++) {
            uint32_t j = i + 1;
            float distance = (float)(total - i);
            if (kind == ALTERED && i % 10 == 9) distance += 1;
            if (kind >= RANDOM) {
                double way = un_random(i, 2 * k) - 0.5;
                j = kind == FAR ? (uint32_t)(un_random(i, 2 * k) * total)
                                : (uint32_t)((int64_t)i + (int64_t)(40 * way));
                distance = (float)(1 + (i + j) % 50); /* many are equal; the same both ways */
                if (un_random(i, 9) < 0.3) continue;
            }
            if (j >= total || j == i) continue;
            un_pair_wish wish = {i, j, distance, volume_of(i, rounded), volume_of(j, rounded)};
            int64_t n = count++;
            for (; n > first && wishes[n - 1].distance > distance; n--) wishes[n] = wishes[n - 1];
            wishes[n] = wish;
        }
    }
    return count;
}

static int by_lower(const void *a, const void *b)
{
    uint32_t p = ((const un_pair *)a)->lower, q = ((const un_pair *)b)->lower;
    return (p > q) - (p < q);
}

/* Returns how many pairs there are over all. */
static int64_t compare(un_context *ctx, un_context *alone, un_range own, const un_pair_wish *all,
                       int64_t all_count)
{
    un_arena arena, arena_alone;
    un_pair *pairs, *expected;
    int64_t count, expected_count, first = 0, end, mine = 0;
    un_arena_init(&arena, ctx);
    un_arena_init(&arena_alone, alone);
    while (first < all_count && (int64_t)all[first].i < own.begin) first++;
    for (end = first; end < all_count && (int64_t)all[end].i < own.end;) end++;
    check_ok(alone, un_pairs_choose(alone, &arena_alone, all, all_count, own.total, &expected,
                                    &expected_count));
    check_ok(ctx,
             un_pairs_choose_ranks(ctx, &arena, own, all + first, end - first, &pairs, &count));
    qsort(pairs, (size_t)count, sizeof *pairs, by_lower);
    qsort(expected, (size_t)expected_count, sizeof *expected, by_lower);
    for (int64_t n = 0; n < expected_count; n++) {
        const un_pair *e = &expected[n];
        bool lower = (int64_t)e->lower >= own.begin && (int64_t)e->lower < own.end;
        bool upper = (int64_t)e->upper >= own.begin && (int64_t)e->upper < own.end;
        if (!lower && !upper) continue;
        assert_true(mine < count);
        assert_int_equal(pairs[mine].lower, e->lower);
        assert_int_equal(pairs[mine].upper, e->upper);
        if (lower) assert_true(pairs[mine].volume == e->volume);
        mine++;
    }
    assert_int_equal(mine, count);
    un_arena_free(&arena);
    un_arena_free(&arena_alone);
    return expected_count;
}

static void pairs_are_those_of_one_rank(void **state)
{
    (void)state;
    static const uint32_t totals[] = {0, 1, 7, 500, 3000};
    static const int rounded[] = {0, 1, 3, 200}; /* none, all, every so many */
    un_context *ctx = group_context(), *alone = check_context();
    un_pair_wish *wishes = malloc(4 * 3000 * sizeof *wishes);
    int64_t pairs = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
            for (int spread = 0; spread < SPREAD_COUNT; spread++)
                for (int r = 0; r < 4; r++) {
                    int64_t count = make_wishes(wishes, kind, totals[t], rounded[r]);
                    pairs += compare(ctx, alone, group_range(spread, totals[t]), wishes, count);
                }
    assert_true(pairs > 50000);
    free(wishes);
    check_context_end(alone);
    check_context_end(ctx);
}

static void memory_fails_on_all(void **state)
{
    (void)state;
    un_pair_wish *all = malloc(4 * 3000 * sizeof *all);
    un_range own = group_range(SPREAD_EVEN, 3000);
    int64_t all_count = make_wishes(all, RANDOM, 3000, 3), first = 0, end, failures = 0;
    while (first < all_count && (int64_t)all[first].i < own.begin) first++;
    for (end = first; end < all_count && (int64_t)all[end].i < own.end;) end++;
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        un_context *ctx = group_context_failing(1, n, un_ranks_count(group) - 1);
        un_arena arena;
        un_pair *pairs;
        int64_t count;
        un_arena_init(&arena, ctx);
        un_status status =
            un_pairs_choose_ranks(ctx, &arena, own, all + first, end - first, &pairs, &count);
        done = status == UN_OK;
        if (!done) assert_int_equal(status, UN_ERROR_MEMORY);
        failures += !done;
        un_arena_free(&arena);
        check_context_end(ctx);
    }
    assert_true(failures > 5);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs_are_those_of_one_rank),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
