/* Sums over ranks have the bits of un_parallel_sums, however the elements are spread. */
#include "group.h"

/* One by one, with rounding in each addition. */
static void add(void *arg, int64_t begin, int64_t end, double *sums)
{
    (void)arg;
    for (int64_t i = begin; i < end; i++) {
        sums[0] += 1.0 / (double)(i + 1);
        sums[1] += sin((double)i) * 1e3;
        sums[2] += 1;
    }
}

static void sums_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    const int64_t totals[] = {0, 1, 6, 2047, 2048, 2049, 50001, 700003};
    for (int32_t threads = 1; threads <= 2; threads++) {
        un_context *ctx = group_context_failing(threads, 0, 0), *alone = check_context();
        for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
            for (int spread = 0; spread < SPREAD_COUNT; spread++) {
                double sums[3], expected[3];
                un_range range = group_range(spread, totals[t]);
                un_parallel_sums(alone, totals[t], 3, add, NULL, expected);
                un_ranks_sums(ctx, range, 3, add, NULL, sums);
                assert_memory_equal(sums, expected, sizeof sums);
                assert_true(sums[2] == (double)totals[t]);
            }
        check_context_end(alone);
        check_context_end(ctx);
    }
}

/* Of elements that have numbers. */
static void add_listed(void *arg, int64_t begin, int64_t end, double *sums)
{
    const uint32_t *id = arg;
    for (int64_t k = begin; k < end; k++) add(NULL, id[k], (int64_t)id[k] + 1, sums);
}

/* Whose a number is: a range and another after all first ranges; stretches of any length in any
 * order; all the last one's. */
static int32_t owner_of(int kind, int64_t i, int64_t total)
{
    int32_t ranks = un_ranks_count(group);
    int64_t half = 2 * total / 3;
    if (kind == 0) return (int32_t)(i < half ? i * ranks / half : (i - half) * ranks / total);
    if (kind == 1) return (int32_t)(un_random((uint64_t)(i / 777), 5) * ranks);
    return ranks - 1;
}

static void listed_sums_have_the_bits_of_one_rank(void **state)
{
    (void)state;
    const int64_t totals[] = {0, 1, 6, 2047, 2049, 50001};
    for (int32_t threads = 1; threads <= 2; threads++) {
        un_context *ctx = group_context_failing(threads, 0, 0), *alone = check_context();
        for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
            for (int kind = 0; kind < 3; kind++) {
                double sums[3], expected[3];
                uint32_t *id = malloc((size_t)totals[t] * sizeof *id + 1);
                un_numbers numbers = {.id = id, .total = totals[t]};
                for (int64_t i = 0; i < totals[t]; i++)
                    if (owner_of(kind, i, totals[t]) == un_ranks_rank(group))
                        id[numbers.count++] = (uint32_t)i;
                un_parallel_sums(alone, totals[t], 3, add, NULL, expected);
                check_ok(ctx, un_ranks_listed_sums(ctx, &numbers, 3, add_listed, id, sums));
                assert_memory_equal(sums, expected, sizeof sums);
                free(id);
            }
        check_context_end(alone);
        check_context_end(ctx);
    }
}

static void ranges_follow_one_another(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        un_range expected = group_range(spread, 12345);
        un_range range = un_ranks_range(ctx, expected.end - expected.begin);
        assert_memory_equal(&range, &expected, sizeof range);
    }
    check_context_end(ctx);
}

static void maximum_and_total(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t rank = un_rank(ctx), count = un_rank_count(ctx);
    assert_true(un_ranks_max(ctx, -1.0 - rank) == -1);
    assert_true(un_ranks_max(ctx, rank) == count - 1);
    assert_int_equal(un_ranks_total(ctx, (int64_t)1 << 40), (int64_t)count << 40);
    double sent = rank == 0 ? 1.25 : 0;
    un_ranks_tell(group, &sent, sizeof sent);
    assert_true(sent == 1.25);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_have_the_bits_of_one_rank),
                                       cmocka_unit_test(listed_sums_have_the_bits_of_one_rank),
                                       cmocka_unit_test(ranges_follow_one_another),
                                       cmocka_unit_test(maximum_and_total)};
    group_run(tests);
}
