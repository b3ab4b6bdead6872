/* Loops cover every index once, sums have the same bits for any thread count, sorting is right and
 * stable. */
#include "check.h"

static void mark(void *arg, int64_t begin, int64_t end)
{
    int32_t *marks = arg;
    for (int64_t i = begin; i < end; i++) marks[i]++;
}

static void covers_each_index_once(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        for (int64_t count = 0; count < 5000; count = count * 3 + 1) {
            int32_t *marks = un_alloc_zero(ctx, (size_t)count + 1, sizeof *marks);
            for (int round = 0; round < 50; round++) un_parallel_for(ctx, count, 7, mark, marks);
            for (int64_t i = 0; i < count; i++) assert_int_equal(marks[i], 50);
            assert_int_equal(marks[count], 0);
            un_free(ctx, marks);
        }
        check_context_end(ctx);
    }
}

static double reciprocals(void *arg, int64_t begin, int64_t end)
{
    (void)arg;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += 1.0 / (double)(i + 1);
    return sum;
}

static void sums_have_the_same_bits(void **state)
{
    (void)state;
    double first = 0;
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        double sum = un_parallel_sum(ctx, 1000003, reciprocals, NULL);
        if (threads == 1) first = sum;
        assert_memory_equal(&sum, &first, sizeof sum);
        check_near(sum, 14.392729722865, 1e-9);
        check_context_end(ctx);
    }
}

static void sorts_stably(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(3);
    un_arena arena;
    un_arena_init(&arena, ctx);
    int32_t counts[] = {0, 1, 2, 4095, 100000};
    int32_t bits[] = {5, 11, 12, 22, 30, 32};
    for (size_t a = 0; a < sizeof counts / sizeof *counts; a++)
        for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
            int32_t n = counts[a];
            uint32_t *keys = un_alloc(ctx, (size_t)n + 1, sizeof *keys);
            int32_t *order = un_alloc(ctx, (size_t)n + 1, sizeof *order);
            for (int32_t i = 0; i < n; i++)
                keys[i] = (uint32_t)(un_hash64((uint64_t)i) >> (64 - bits[b]));
            check_ok(ctx, un_parallel_sort(ctx, &arena, order, keys, n, bits[b]));
            for (int32_t k = 1; k < n; k++) {
                assert_true(keys[order[k - 1]] <= keys[order[k]]);
                if (keys[order[k - 1]] == keys[order[k]]) assert_true(order[k - 1] < order[k]);
            }
            un_free(ctx, keys);
            un_free(ctx, order);
            un_arena_reset(&arena);
        }
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void sorts_wide_keys(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(3);
    un_arena arena;
    un_arena_init(&arena, ctx);
    int32_t counts[] = {0, 1, 2, 4095, 50000};
    int32_t bits[] = {1, 5, 11, 12, 23, 33, 48, 63, 64};
    for (size_t a = 0; a < sizeof counts / sizeof *counts; a++)
        for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
            int32_t n = counts[a];
            uint64_t *keys = un_alloc(ctx, (size_t)n + 1, sizeof *keys);
            uint64_t *sorted = un_alloc(ctx, (size_t)n + 1, sizeof *keys);
            int32_t *order = un_alloc(ctx, (size_t)n + 1, sizeof *order);
            for (int32_t i = 0; i < n; i++)
                sorted[i] = keys[i] = un_hash64((uint64_t)i % 40000) >> (64 - bits[b]);
            check_ok(ctx, un_parallel_sort64(ctx, &arena, order, keys, n, bits[b]));
            check_ok(ctx, un_parallel_sort_keys(ctx, &arena, sorted, n, bits[b]));
            for (int32_t k = 0; k < n; k++) {
                assert_true(keys[k] == un_hash64((uint64_t)k % 40000) >> (64 - bits[b]));
                assert_true(sorted[k] == keys[order[k]]);
                if (k == 0) continue;
                assert_true(sorted[k - 1] <= sorted[k]);
                if (sorted[k - 1] == sorted[k]) assert_true(order[k - 1] < order[k]);
            }
            un_free(ctx, keys);
            un_free(ctx, sorted);
            un_free(ctx, order);
            un_arena_reset(&arena);
        }
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void finds_the_first_key_that_is_not_below(void **state)
{
    (void)state;
    static const uint64_t keys[] = {2, 3, 3, 3, 8, UINT64_MAX};
    assert_int_equal(un_lower_bound(keys, 6, 0), 0);
    assert_int_equal(un_lower_bound(keys, 6, 3), 1);
    assert_int_equal(un_lower_bound(keys, 6, 4), 4);
    assert_int_equal(un_lower_bound(keys, 6, UINT64_MAX), 5);
    assert_int_equal(un_lower_bound(keys, 5, 9), 5);
    assert_int_equal(un_lower_bound(keys, 0, 1), 0);
}

static void scans(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(3);
    int32_t counts[] = {0, 1, 2, 2048, 100001};
    for (size_t a = 0; a < sizeof counts / sizeof *counts; a++) {
        int32_t n = counts[a], sum = 0;
        int32_t *values = un_alloc(ctx, (size_t)n + 1, sizeof *values);
        for (int32_t i = 0; i < n; i++) values[i] = (int32_t)(un_hash64((uint64_t)i) % 7) - 1;
        int64_t total = un_parallel_scan(ctx, values, n);
        for (int32_t i = 0; i < n; i++) {
            assert_int_equal(values[i], sum);
            sum += (int32_t)(un_hash64((uint64_t)i) % 7) - 1;
        }
        assert_int_equal(total, sum);
        for (int32_t i = 0; i < n; i++) values[i] = INT32_MAX;
        assert_true(un_parallel_scan(ctx, values, n) == (int64_t)n * INT32_MAX);
        un_free(ctx, values);
    }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_each_index_once),
        cmocka_unit_test(sums_have_the_same_bits),
        cmocka_unit_test(sorts_stably),
        cmocka_unit_test(sorts_wide_keys),
        cmocka_unit_test(finds_the_first_key_that_is_not_below),
        cmocka_unit_test(scans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
