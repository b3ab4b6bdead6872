/* Shared work: every piece is done once, progress counts to the end, an interruption stops all, and
 * a status of one rank becomes that of all. */
#include "group.h"

#include <unistd.h>

typedef struct work {
    int32_t done[64]; /* by this rank */
    int32_t fail_at;
    int32_t seen, stop_at; /* by progress */
    un_context *ctx;
} work;

static un_status do_piece(void *arg, int32_t index)
{
    work *w = arg;
    assert_true(un_ranks_count(group) == 1 || un_ranks_apart(group));
    usleep(500 * (useconds_t)(1 + (index * 7 + un_ranks_rank(group)) % 5)); /* they differ */
    w->done[index]++;
    return UN_OK;
}

static bool see(void *user, int32_t done, int32_t total)
{
    work *w = user;
    assert_int_equal(un_ranks_rank(group), 0);
    assert_true(total == 64 && done > w->seen && done <= total);
    w->seen = done;
    return done < w->stop_at;
}

static int64_t total_done(un_context *ctx, const work *w, bool once)
{
    int64_t all = 0;
    for (int32_t i = 0; i < 64; i++) {
        int64_t times = un_ranks_total(ctx, w->done[i]);
        if (once) assert_int_equal(times, 1);
        all += times;
    }
    return all;
}

static void every_piece_is_done_once(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    for (int round = 0; round < 3; round++) {
        work w = {.stop_at = 1000};
        un_share_def def = {64, do_piece, &w, round ? see : NULL, &w};
        check_ok(ctx, un_share(ctx, &def));
        assert_false(un_ranks_apart(group));
        assert_int_equal(total_done(ctx, &w, true), 64);
        if (round && un_rank(ctx) == 0) assert_int_equal(w.seen, 64);
    }
    check_context_end(ctx);
}

static void all_ranks_help(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    work w = {.stop_at = 1000};
    un_share_def def = {64, do_piece, &w, NULL, NULL};
    check_ok(ctx, un_share(ctx, &def));
    int32_t mine = 0;
    for (int32_t i = 0; i < 64; i++) mine += w.done[i];
    assert_int_equal(un_ranks_total(ctx, mine > 0), un_rank_count(ctx));
    check_context_end(ctx);
}

static void fewer_pieces_than_ranks(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    for (int32_t count = 0; count < 3; count++) {
        work w = {.stop_at = 1000};
        un_share_def def = {count, do_piece, &w, NULL, NULL};
        check_ok(ctx, un_share(ctx, &def));
        assert_int_equal(total_done(ctx, &w, false), count);
    }
    check_context_end(ctx);
}

static void interruption_stops_all(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    work w = {.stop_at = 10};
    un_share_def def = {64, do_piece, &w, see, &w};
    un_fail(ctx, UN_OK, "of an earlier call");
    assert_int_equal(un_share(ctx, &def), UN_INTERRUPTED);
    assert_true(un_ranks_agreed(group));
    assert_string_equal(un_context_message(ctx), "");
    int64_t all = total_done(ctx, &w, false);
    /* what was begun or promised is finished: two pieces a rank */
    assert_in_range(all, 10, 10 + 2 * (un_rank_count(ctx) - 1));
    if (un_rank(ctx) == 0) assert_int_equal(w.seen, all);
    check_context_end(ctx);
}

static un_status fail_piece(void *arg, int32_t index)
{
    work *w = arg;
    return index == w->fail_at ? un_fail(w->ctx, UN_ERROR_FILE, "no disk") : do_piece(arg, index);
}

/* On one rank; on more the failing one ends the program, which test/program/ranks.sh tries. */
static void failure_ends_it(void **state)
{
    (void)state;
    if (un_ranks_count(group) > 1) return;
    un_context *ctx = group_context();
    work w = {.fail_at = 5, .ctx = ctx};
    un_share_def def = {64, fail_piece, &w, NULL, NULL};
    assert_int_equal(un_share(ctx, &def), UN_ERROR_FILE);
    assert_string_equal(un_context_message(ctx), "no disk");
    assert_int_equal(total_done(ctx, &w, false), 5);
    check_context_end(ctx);
}

static void status_of_one_is_that_of_all(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t rank = un_rank(ctx), count = un_rank_count(ctx);
    assert_int_equal(un_ranks_agree(ctx, UN_OK), UN_OK);
    for (int32_t bad = 0; bad < count; bad++) {
        un_status status = UN_OK;
        char expected[64];
        if (rank >= bad) status = un_fail(ctx, UN_ERROR_FILE, "rank %d has no disk", rank);
        assert_int_equal(un_ranks_agree(ctx, status), UN_ERROR_FILE);
        snprintf(expected, sizeof expected, "rank %d has no disk", bad);
        assert_string_equal(un_context_message(ctx), expected);
        assert_true(un_ranks_agreed(group));
    }
    check_context_end(ctx);
}

static void refuses_more_than_one(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_status status = un_ranks_refuse(ctx, "a run");
    if (un_rank_count(ctx) == 1) {
        assert_int_equal(status, UN_OK);
    } else {
        assert_int_equal(status, UN_ERROR_UNAVAILABLE);
        assert_non_null(strstr(un_context_message(ctx), "without mpirun"));
    }
    assert_in_range(un_ranks_threads(group), 1, 4096);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_done_once), cmocka_unit_test(all_ranks_help),
        cmocka_unit_test(fewer_pieces_than_ranks),  cmocka_unit_test(interruption_stops_all),
        cmocka_unit_test(failure_ends_it),          cmocka_unit_test(status_of_one_is_that_of_all),
        cmocka_unit_test(refuses_more_than_one)};
    group_run(tests);
}
