/* The allocator counts to the byte, honours its cap, refuses overflow and fails on demand. */
#include "check.h"

static void counts_bytes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double *a = un_alloc(ctx, 100, sizeof *a);
    assert_int_equal(un_context_bytes(ctx), 800);
    assert_int_equal((uintptr_t)a % 64, 0);
    a[99] = 7;
    a = un_realloc(ctx, a, 200, sizeof *a);
    assert_true(a[99] == 7);
    assert_int_equal(un_context_bytes(ctx), 1600);
    un_free(ctx, a);
    un_free(ctx, NULL);
    assert_int_equal(un_context_peak_bytes(ctx), 2400);
    check_context_end(ctx);
}

static void refuses_overflow_and_cap(void **state)
{
    (void)state;
    un_context_def def = un_context_def_default();
    def.memory_cap = 1000;
    un_context *ctx = un_context_create(&def);
    assert_null(un_alloc(ctx, SIZE_MAX / 2, 3));
    assert_null(un_alloc(ctx, 1001, 1));
    assert_non_null(strstr(un_context_message(ctx), "cap"));
    void *a = un_alloc(ctx, 600, 1);
    assert_non_null(a);
    assert_null(un_alloc(ctx, 600, 1));
    un_free(ctx, a);
    check_context_end(ctx);
}

static void arrays_keep_their_contents_when_growth_fails(void **state)
{
    (void)state;
    un_context_def def = un_context_def_default();
    def.fail_allocation = 2;
    un_context *ctx = un_context_create(&def);
    int32_t *array = NULL;
    size_t capacity = 0;
    check_ok(ctx, un_array_reserve(ctx, (void **)&array, &capacity, 10, sizeof *array));
    array[9] = 5;
    assert_int_equal(un_array_reserve(ctx, (void **)&array, &capacity, 1000, sizeof *array),
                     UN_ERROR_MEMORY);
    assert_int_equal(capacity, 10);
    assert_int_equal(array[9], 5);
    un_free(ctx, array);
    check_context_end(ctx);
}

static void arena_keeps_what_it_gave(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int round = 0; round < 3; round++) {
        unsigned char *blocks[40];
        for (int i = 0; i < 40; i++) {
            blocks[i] = un_arena_alloc(&arena, 100000, 1);
            memset(blocks[i], i, 100000);
        }
        for (int i = 0; i < 40; i++)
            for (int k = 0; k < 100000; k += 999) assert_int_equal(blocks[i][k], i);
        un_arena_reset(&arena);
    }
    un_arena_free(&arena);
    check_context_end(ctx);
}

/* What each of two phases of a step takes, in blocks of 100 kB. */
static size_t use(un_arena *arena, int blocks)
{
    for (int i = 0; i < blocks; i++) un_arena_alloc(arena, 100000, 1);
    size_t bytes = un_context_bytes(arena->ctx);
    un_arena_reset(arena);
    return bytes;
}

static void arena_stops_asking_and_forgets(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int step = 0; step < 2; step++) use(&arena, 400), use(&arena, 30);
    size_t settled = un_context_bytes(ctx); /* kept while nothing is handed out */
    assert_true(settled > 40000000);
    for (int step = 0; step < 10; step++) {
        assert_true(use(&arena, 400) == settled && use(&arena, 30) == settled);
        assert_true(un_context_bytes(ctx) == settled);
    }
    for (int step = 0; step < 200; step++) use(&arena, 30);
    assert_true(use(&arena, 30) < 8000000);
    un_arena_free(&arena);
    check_context_end(ctx);
}

/* Room for what may follow is a wish: under a cap an arena takes only what it needs. */
static void arena_fits_under_a_cap(void **state)
{
    (void)state;
    un_context_def def = un_context_def_default();
    def.memory_cap = 44000000;
    un_context *ctx = un_context_create(&def);
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 400; i++) assert_non_null(un_arena_alloc(&arena, 100000, 1));
        un_arena_reset(&arena);
    }
    un_arena_free(&arena);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_bytes),
        cmocka_unit_test(refuses_overflow_and_cap),
        cmocka_unit_test(arrays_keep_their_contents_when_growth_fails),
        cmocka_unit_test(arena_keeps_what_it_gave),
        cmocka_unit_test(arena_stops_asking_and_forgets),
        cmocka_unit_test(arena_fits_under_a_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
