/* Halos, migration, copies and gathering bring every element to its place, and memory that fails on
 * one rank fails the call on all. */
#include "group.h"

typedef struct element {
    double a;
    int32_t b[3];
} element;

static double value(int64_t global)
{
    return 1 / (double)(global + 3);
}

static void set_elements(un_range r, double *x, element *y)
{
    for (int64_t i = r.begin; i < r.end; i++) {
        x[i - r.begin] = value(i);
        y[i - r.begin] = (element){.a = -value(i), .b = {(int32_t)i, 7, 8}};
    }
}

static bool is_element(int64_t global, double x, const element *y)
{
    return x == value(global) && y->a == -value(global) && y->b[0] == global && y->b[2] == 8;
}

/* Arrays of a rank's elements, with room for all that may arrive. */
typedef struct arrays {
    double *x, *to_x;
    element *y, *to_y;
    un_field fields[2];
} arrays;

static void make_arrays(un_context *ctx, arrays *a, un_range r, int64_t room)
{
    size_t mine = (size_t)(r.end - r.begin) + 1;
    a->x = un_alloc(ctx, mine, sizeof *a->x);
    a->y = un_alloc(ctx, mine, sizeof *a->y);
    a->to_x = un_alloc(ctx, (size_t)room + 1, sizeof *a->to_x);
    a->to_y = un_alloc(ctx, (size_t)room + 1, sizeof *a->to_y);
    assert_true(a->x && a->y && a->to_x && a->to_y);
    set_elements(r, a->x, a->y);
    a->fields[0] = (un_field){"x", a->x, a->to_x, sizeof *a->x};
    a->fields[1] = (un_field){"y", a->y, a->to_y, sizeof *a->y};
}

static void free_arrays(un_context *ctx, arrays *a)
{
    un_free(ctx, a->x);
    un_free(ctx, a->y);
    un_free(ctx, a->to_x);
    un_free(ctx, a->to_y);
}

/* Every third element, whoever holds it, this rank's own among them. */
static un_status fetch_halo(un_context *ctx, un_context *test, int spread, int64_t total)
{
    un_range r = group_range(spread, total);
    arrays a;
    un_exchange *halo;
    int64_t *wanted = un_alloc(test, (size_t)total + 1, sizeof *wanted), count = 0;
    for (int64_t i = un_rank(ctx) % 3; i < total; i += 3) wanted[count++] = i;
    make_arrays(test, &a, r, count);
    un_status status = un_exchange_create_halo(ctx, r, wanted, count, &halo);
    for (int round = 0; status == UN_OK && round < 2; round++) {
        assert_int_equal(un_exchange_count(halo), count);
        memset(a.to_x, 0, (size_t)count * sizeof *a.to_x);
        status = un_exchange_run(halo, a.fields, 2);
        for (int64_t k = 0; status == UN_OK && k < count; k++)
            assert_true(is_element(wanted[k], a.to_x[k], &a.to_y[k]));
    }
    if (status == UN_OK && un_rank_count(ctx) == 1) assert_int_equal(un_exchange_bytes(halo), 0);
    un_exchange_destroy(halo);
    free_arrays(test, &a);
    un_free(test, wanted);
    return status;
}

static void halos_arrive_in_order(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    for (int spread = 0; spread < SPREAD_COUNT; spread++)
        for (int64_t total = 0; total < 20000; total = 3 * total + 1)
            check_ok(ctx, fetch_halo(ctx, ctx, spread, total));
    check_context_end(ctx);
}

static void halo_outside_is_refused_by_all(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_range r = group_range(SPREAD_EVEN, 100);
    int64_t wanted = 100;
    un_exchange *halo;
    /* only the last rank asks for what nobody holds */
    int64_t count = un_rank(ctx) == un_rank_count(ctx) - 1;
    assert_int_equal(un_exchange_create_halo(ctx, r, &wanted, count, &halo), UN_ERROR_ARGUMENT);
    assert_null(halo);
    assert_string_equal(un_context_message(ctx), "a halo wants element 100 of 100");
    check_context_end(ctx);
}

/* ---- plans that nobody asks for ---- */

static void list_begins(int64_t *begins, int spread, int64_t total)
{
    for (int32_t r = 0; r <= un_ranks_count(group); r++) begins[r] = group_begin(spread, total, r);
}

/* From one cut to another. */
static void elements_follow_a_cut(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t me = un_rank(ctx);
    enum { ALL = 500 };
    for (int n = 0; n < SPREAD_COUNT * SPREAD_COUNT; n++) {
        int64_t first[65], cut[65];
        double a[ALL];
        un_halo *halo;
        list_begins(first, n % SPREAD_COUNT, ALL);
        list_begins(cut, n / SPREAD_COUNT, ALL);
        for (int64_t i = 0; i < ALL; i++) a[i] = i >= first[me] && i < first[me + 1] ? 3.0 * i : -1;
        check_ok(ctx, un_halo_create_cut(ctx, first, cut, &halo));
        un_halo_share(halo, a, sizeof *a);
        for (int64_t i = 0; i < ALL; i++) {
            bool known = (i >= first[me] && i < first[me + 1]) || (i >= cut[me] && i < cut[me + 1]);
            assert_true(a[i] == (known ? 3.0 * i : -1));
        }
        un_halo_destroy(halo);
    }
    check_context_end(ctx);
}

/* Those within three of a rank's own, of which others know that it wants them. */
#define NEAR 3
static bool is_near(const int64_t *first, int32_t rank, int64_t i)
{
    bool any = first[rank] < first[rank + 1];
    bool own = i >= first[rank] && i < first[rank + 1];
    return any && !own && i >= first[rank] - NEAR && i < first[rank + 1] + NEAR;
}

static un_status fetch_near(un_context *ctx, const int64_t *first, int32_t *a, int32_t total)
{
    int32_t me = un_rank(ctx), given[512], wanted[512];
    int64_t count[64], given_count = 0, wanted_count = 0;
    un_halo *halo;
    for (int32_t i = 0; i < total; i++)
        if (is_near(first, me, i)) wanted[wanted_count++] = i;
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        count[r] = given_count;
        for (int64_t i = first[me]; i < first[me + 1]; i++)
            if (is_near(first, r, i)) given[given_count++] = (int32_t)i;
        count[r] = given_count - count[r];
    }
    un_given all = {given, count};
    UN_TRY(un_halo_create_known(ctx, first, wanted, wanted_count, &all, &halo));
    un_halo_share(halo, a, sizeof *a);
    un_halo_destroy(halo);
    return UN_OK;
}

static void known_elements_arrive(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t me = un_rank(ctx);
    enum { ALL = 60 };
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        int64_t first[65];
        int32_t a[ALL];
        list_begins(first, spread, ALL);
        for (int32_t i = 0; i < ALL; i++) a[i] = i >= first[me] && i < first[me + 1] ? 7 * i : -1;
        check_ok(ctx, fetch_near(ctx, first, a, ALL));
        for (int32_t i = 0; i < ALL; i++) {
            bool known = (i >= first[me] && i < first[me + 1]) || is_near(first, me, i);
            assert_int_equal(a[i], known ? 7 * i : -1);
        }
    }
    check_context_end(ctx);
}

/* ---- migration ---- */

/* Sorts stably by the new owner, as one rank would with all elements; some are lost. */
static un_status move_elements(un_context *ctx, un_context *test, int64_t total)
{
    un_range r = group_range(SPREAD_ODD, total);
    int32_t rank = un_rank(ctx), count = un_rank_count(ctx);
    arrays a;
    un_exchange *moves;
    int32_t *to = un_alloc(test, (size_t)(r.end - r.begin) + 1, sizeof *to);
    for (int64_t i = r.begin; i < r.end; i++)
        to[i - r.begin] = i % 11 == 0 ? -1 : (int32_t)(un_hash64((uint64_t)i) % (uint64_t)count);
    make_arrays(test, &a, r, total);
    un_status status = un_exchange_create_moves(ctx, to, r.end - r.begin, &moves);
    if (status == UN_OK) status = un_exchange_run(moves, a.fields, 2);
    if (status == UN_OK) {
        int64_t arrived = 0;
        for (int64_t i = 0; i < total; i++) {
            if (i % 11 == 0 || (int32_t)(un_hash64((uint64_t)i) % (uint64_t)count) != rank)
                continue;
            assert_true(is_element(i, a.to_x[arrived], &a.to_y[arrived]));
            arrived++;
        }
        assert_int_equal(arrived, un_exchange_count(moves));
        int64_t kept = un_ranks_total(ctx, arrived);
        assert_int_equal(kept, total - (total + 10) / 11);
    }
    un_exchange_destroy(moves);
    free_arrays(test, &a);
    un_free(test, to);
    return status;
}

static void moves_keep_the_order(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    for (int64_t total = 0; total < 20000; total = 3 * total + 1)
        check_ok(ctx, move_elements(ctx, ctx, total));
    check_context_end(ctx);
}

static void copies_go_to_several(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t rank = un_rank(ctx), count = un_rank_count(ctx), k = 0;
    un_range r = {rank * 10, rank * 10 + 10, count * 10};
    arrays a;
    un_exchange *copies;
    make_arrays(ctx, &a, r, 2 * count);
    int32_t *index = un_alloc(ctx, (size_t)(2 * count), sizeof *index);
    int32_t *to = un_alloc(ctx, (size_t)(2 * count), sizeof *to);
    for (int32_t other = count - 1; other >= 0; other--) /* elements 9 and 4, in this order */
        for (int32_t e = 9; e >= 4; e -= 5) index[k] = e, to[k++] = other;
    check_ok(ctx, un_exchange_create_copies(ctx, index, to, k, &copies));
    check_ok(ctx, un_exchange_run(copies, a.fields, 2));
    assert_int_equal(un_exchange_count(copies), 2 * count);
    for (int32_t from = 0; from < count; from++)
        for (int32_t e = 0; e < 2; e++)
            assert_true(is_element(10 * from + (e == 0 ? 9 : 4), a.to_x[2 * from + e],
                                   &a.to_y[2 * from + e]));
    /* to each other rank a hash and two elements of both arrays */
    size_t message = 8 + 2 * (sizeof(double) + sizeof(element));
    assert_int_equal(un_exchange_bytes(copies), (size_t)(count - 1) * message);
    un_exchange_destroy(copies);
    un_free(ctx, index);
    un_free(ctx, to);
    free_arrays(ctx, &a);
    check_context_end(ctx);
}

static void gather_brings_all_to_the_first(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_range r = group_range(SPREAD_ODD, 5000);
    arrays a;
    un_exchange *gather;
    make_arrays(ctx, &a, r, 5000);
    check_ok(ctx, un_exchange_create_gather(ctx, r.end - r.begin, &gather));
    check_ok(ctx, un_exchange_run(gather, a.fields, 2));
    assert_int_equal(un_exchange_count(gather), un_rank(ctx) == 0 ? 5000 : 0);
    for (int64_t i = 0; i < un_exchange_count(gather); i++)
        assert_true(is_element(i, a.to_x[i], &a.to_y[i]));
    un_exchange_destroy(gather);
    free_arrays(ctx, &a);
    check_context_end(ctx);
}

static void ranks_out_of_step_find_out(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t count = un_rank_count(ctx);
    double mine = un_rank(ctx), *theirs = un_alloc(ctx, (size_t)count, sizeof *theirs);
    int32_t *zeros = un_alloc_zero(ctx, (size_t)count, sizeof *zeros);
    int32_t *to = un_alloc(ctx, (size_t)count, sizeof *to);
    un_exchange *all;
    for (int32_t r = 0; r < count; r++) to[r] = r;
    check_ok(ctx, un_exchange_create_copies(ctx, zeros, to, count, &all));
    un_field field = {un_rank(ctx) == 0 ? "phi" : "psi", &mine, theirs, sizeof mine};
    un_status status = un_exchange_run(all, &field, 1);
    assert_int_equal(status, count == 1 ? UN_OK : UN_ERROR_ARGUMENT);
    if (count > 1) assert_non_null(strstr(un_context_message(ctx), "out of step"));
    un_exchange_destroy(all);
    un_free(ctx, theirs);
    un_free(ctx, zeros);
    un_free(ctx, to);
    check_context_end(ctx);
}

/* Every allocation of an exchange fails in turn, on the last rank only. */
static void memory_that_fails_on_one_fails_on_all(void **state)
{
    (void)state;
    int32_t failing = un_ranks_count(group) - 1, failures = 0;
    for (int what = 0; what < 2; what++)
        for (int64_t n = 1;; n++) {
            un_context *ctx = group_context_failing(1, n, failing), *test = group_context();
            un_status status =
                what == 0 ? fetch_halo(ctx, test, SPREAD_EVEN, 100) : move_elements(ctx, test, 100);
            if (status != UN_OK) {
                failures++;
                assert_int_equal(status, UN_ERROR_MEMORY);
                assert_true(un_ranks_agreed(group));
                assert_non_null(strstr(un_context_message(ctx), "out of memory"));
            }
            check_context_end(test);
            check_context_end(ctx);
            if (status == UN_OK) break;
        }
    assert_true(failures >= 12);
}

/* Where there is room on all ranks, they need not agree that nobody failed. */
static void runs_with_room_wait_for_nobody(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *test = group_context();
    un_range r = group_range(SPREAD_EVEN, 100);
    int32_t next = (un_rank(ctx) + 1) % un_rank_count(ctx), to[100];
    un_exchange *e;
    arrays a;
    make_arrays(test, &a, r, 100);
    for (int64_t i = 0; i < r.end - r.begin; i++) to[i] = next;
    check_ok(ctx, un_exchange_create_moves(ctx, to, r.end - r.begin, &e));
    check_ok(ctx, un_exchange_run(e, &a.fields[1], 1));
    double calls = un_ranks_traffic(ctx).calls;
    check_ok(ctx, un_exchange_run(e, a.fields, 1)); /* smaller elements */
    assert_true(un_ranks_traffic(ctx).calls == calls);
    check_ok(ctx, un_exchange_run(e, a.fields, 2));
    if (un_rank_count(ctx) > 1) assert_true(un_ranks_traffic(ctx).calls == calls + 1);
    un_exchange_destroy(e);
    free_arrays(test, &a);
    check_context_end(test);
    check_context_end(ctx);
}

/* Tokens that go round the ranks as often as they say, and end where they should. */
typedef struct token {
    int32_t left, place;
} token;

static un_status run_rounds(un_context *ctx, un_context *test)
{
    int32_t ranks = un_rank_count(ctx), me = un_rank(ctx);
    un_exchange *e;
    token *mine = un_alloc(test, 100, sizeof *mine);
    int32_t *to = un_alloc(test, 100, sizeof *to);
    int64_t count = 3, rounds = 0, ended = 0;
    un_status status = un_ranks_agree(ctx, un_exchange_create_rounds(ctx, &e));
    for (int32_t k = 0; k < count; k++) mine[k] = (token){me + k, me}, to[k] = (me + 1) % ranks;
    for (; status == UN_OK; rounds++) {
        un_round round = {.from = mine,
                          .to = to,
                          .count = count,
                          .size = sizeof *mine,
                          .any = rounds == 1 && !me};
        double calls = un_ranks_traffic(ctx).calls;
        status = un_exchange_round(e, UN_OK, &round);
        if (status != UN_OK || round.all == 0) break;
        assert_true(un_ranks_traffic(ctx).calls == calls + 1);
        assert_true(round.any);
        const token *in = round.in;
        count = round.in_count;
        for (int64_t k = 0; k < round.in_count; k++) {
            mine[k] = in[k];
            mine[k].place = (mine[k].place + 1) % ranks;
            assert_int_equal(mine[k].place, me);
            to[k] = mine[k].left == 0 ? -1 : (me + 1) % ranks;
            ended += mine[k].left-- == 0;
        }
    }
    if (status == UN_OK) {
        assert_int_equal(rounds, ranks - 1 + 3); /* the farthest goes that far */
        assert_int_equal(un_ranks_total(ctx, ended), 3 * ranks);
    }
    un_exchange_destroy(e);
    un_free(test, mine);
    un_free(test, to);
    return status;
}

static void rounds_go_on_until_none_is_left(void **state)
{
    (void)state;
    int32_t failures = 0;
    for (int64_t n = 0;; n++) {
        un_context *ctx = group_context_failing(1, n, un_ranks_count(group) - 1);
        un_context *test = group_context();
        un_status status = run_rounds(ctx, test);
        if (status != UN_OK) {
            failures++;
            assert_int_equal(status, UN_ERROR_MEMORY);
            assert_true(un_ranks_agreed(group));
        }
        check_context_end(test);
        check_context_end(ctx);
        if (n > 0 && status == UN_OK) break;
    }
    assert_true(failures >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halos_arrive_in_order),
                                       cmocka_unit_test(halo_outside_is_refused_by_all),
                                       cmocka_unit_test(elements_follow_a_cut),
                                       cmocka_unit_test(known_elements_arrive),
                                       cmocka_unit_test(moves_keep_the_order),
                                       cmocka_unit_test(copies_go_to_several),
                                       cmocka_unit_test(gather_brings_all_to_the_first),
                                       cmocka_unit_test(ranks_out_of_step_find_out),
                                       cmocka_unit_test(runs_with_room_wait_for_nobody),
                                       cmocka_unit_test(rounds_go_on_until_none_is_left),
                                       cmocka_unit_test(memory_that_fails_on_one_fails_on_all)};
    group_run(tests);
}
