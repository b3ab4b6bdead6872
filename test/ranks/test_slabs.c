/* Layers and parts of arrays of full length: every rank gets what it asks for, and nothing else
 * changes. */
#include "group.h"

#define LAYERS 41
#define CELLS 6
#define UNIT 8

static double value(int64_t cell)
{
    return 1 / (double)(cell + 3);
}

static un_slabs *make_slabs(un_context *ctx, const double *work)
{
    un_slabs *slabs;
    check_ok(ctx, un_slabs_create(ctx, LAYERS, CELLS, UNIT, work, &slabs));
    return slabs;
}

/* Slabs follow one another, are made of whole units, and every rank has one while there are any. */
static void slabs_cover_all_layers(void **state)
{
    (void)state;
    const double works[4][6] = {
        {1, 1, 1, 1, 1, 0.1}, {0, 0, 9, 0, 0, 0}, {5, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 9}};
    un_context *ctx = group_context();
    int32_t count = un_ranks_count(group);
    for (int w = 0; w < 4; w++) {
        un_slabs *s = make_slabs(ctx, works[w]);
        assert_int_equal(s->first[0], 0);
        assert_int_equal(s->first[count], LAYERS);
        for (int32_t r = 0; r < count; r++) {
            assert_true(s->first[r] <= s->first[r + 1]);
            assert_true(s->first[r] % UNIT == 0 || s->first[r] == LAYERS);
            if (count <= 6) assert_true(s->first[r] < s->first[r + 1]);
            for (int32_t k = s->first[r]; k < s->first[r + 1]; k++)
                assert_int_equal(un_slabs_owner(s, k), r);
        }
        if (w == 0 && count == 2) assert_int_equal(s->first[1], 3 * UNIT);
        if (w == 2 && count == 2) assert_int_equal(s->first[1], UNIT);
        un_slabs_destroy(s);
    }
    un_context_destroy(ctx);
}

/* Layers from neighbours, and from those beyond them. */
static void layers_come_from_their_ranks(void **state)
{
    (void)state;
    const double work[6] = {1, 1, 1, 1, 1, 1};
    un_context *ctx = group_context();
    un_slabs *s = make_slabs(ctx, work);
    for (int32_t width = 0; width <= LAYERS; width += width == 40 ? 1 : 5) {
        double a[LAYERS * CELLS];
        uint8_t b[LAYERS * CELLS];
        un_part own = un_slabs_part(s, 0), wide = un_slabs_part(s, width);
        if (width == LAYERS) wide = (un_part){0, LAYERS}; /* ranks without layers get them, too */
        for (int64_t c = 0; c < LAYERS * CELLS; c++) {
            bool mine = c / CELLS >= own.begin && c / CELLS < own.end;
            a[c] = mine ? value(c) : -1;
            b[c] = mine ? (uint8_t)c : 255;
        }
        un_layered fields[] = {{a, sizeof *a}, {b, 1}};
        check_ok(ctx, un_slabs_share(s, fields, 2, width));
        for (int64_t c = 0; c < LAYERS * CELLS; c++) {
            bool there = c / CELLS >= wide.begin && c / CELLS < wide.end;
            assert_true(a[c] == (there ? value(c) : -1));
            assert_int_equal(b[c], there ? (uint8_t)c : 255);
        }
        check_ok(ctx, un_slabs_collect(s, fields, 1));
        for (int64_t c = 0; c < LAYERS * CELLS && un_ranks_rank(group) == 0; c++)
            assert_true(a[c] == value(c));
    }
    un_slabs_destroy(s);
    un_context_destroy(ctx);
}

/* Runs of equal values of each size, and a value that differs in one bit: what is left out of
 * messages. */
static void equal_values_arrive(void **state)
{
    (void)state;
    enum { WIDE = 21 };
    const double work[6] = {1, 1, 1, 1, 1, 1};
    un_context *ctx = group_context();
    un_slabs *s;
    check_ok(ctx, un_slabs_create(ctx, LAYERS, WIDE, UNIT, work, &s));
    double a[LAYERS * WIDE], a_all[LAYERS * WIDE];
    float b[LAYERS * WIDE], b_all[LAYERS * WIDE];
    uint8_t c[LAYERS * WIDE], c_all[LAYERS * WIDE];
    uint16_t d[LAYERS * WIDE], d_all[LAYERS * WIDE];
    un_part own = un_slabs_part(s, 0), wide = un_slabs_part(s, 3);
    for (int32_t i = 0; i < LAYERS * WIDE; i++) {
        bool mine = i / WIDE >= own.begin && i / WIDE < own.end;
        bool there = i / WIDE >= wide.begin && i / WIDE < wide.end;
        double all = i % 11 < 7 ? 0.0 : i % 11 < 9 ? -0.0 : i % 5;
        a_all[i] = there ? all : 7;
        b_all[i] = there ? (float)(i / 30) : 7;
        c_all[i] = there ? (uint8_t)(i % 17 == 3) : 7;
        d_all[i] = there ? (uint16_t)(i / 8) : 7;
        a[i] = mine ? a_all[i] : 7;
        b[i] = mine ? b_all[i] : 7;
        c[i] = mine ? c_all[i] : 7;
        d[i] = mine ? d_all[i] : 7;
    }
    size_t before = s->bytes;
    un_layered fields[] = {{a, sizeof *a}, {b, sizeof *b}, {c, 1}, {d, sizeof *d}};
    check_ok(ctx, un_slabs_share(s, fields, 4, 3));
    assert_memory_equal(a, a_all, sizeof a);
    assert_memory_equal(b, b_all, sizeof b);
    assert_memory_equal(c, c_all, sizeof c);
    assert_memory_equal(d, d_all, sizeof d);
    if (un_ranks_count(group) == 2) /* three layers of 15 bytes a cell as they are */
        assert_true(s->bytes - before < 3 * WIDE * 15 * 2 / 3);
    un_slabs_destroy(s);
    un_context_destroy(ctx);
}

/* Only elements with the mark come, with their marks; others stay as they are. */
static void marked_elements_arrive(void **state)
{
    (void)state;
    const double work[6] = {1, 1, 1, 1, 1, 1};
    un_context *ctx = group_context();
    un_slabs *s = make_slabs(ctx, work);
    uint8_t mark[2][LAYERS * CELLS];
    double a[2][LAYERS * CELLS];
    un_part own = un_slabs_part(s, 0), wide = un_slabs_part(s, 1);
    for (int32_t c = 0; c < LAYERS * CELLS; c++) {
        bool mine = c / CELLS >= own.begin && c / CELLS < own.end;
        for (int n = 0; n < 2; n++) {
            mark[n][c] = mine ? (uint8_t)((c + n) % 3) : 9;
            a[n][c] = mine ? value(c) + n : -1;
        }
    }
    un_layered fields[] = {{mark[0], 1}, {a[0], sizeof *a[0]}, {mark[1], 1}, {a[1], sizeof *a[1]}};
    check_ok(ctx, un_slabs_share_marked(s, fields, 4, 2, 2, 1));
    for (int32_t c = 0; c < LAYERS * CELLS; c++) {
        bool mine = c / CELLS >= own.begin && c / CELLS < own.end;
        bool there = c / CELLS >= wide.begin && c / CELLS < wide.end;
        for (int n = 0; n < 2; n++) {
            bool came = there && (c + n) % 3 == 2;
            assert_int_equal(mark[n][c], mine ? (c + n) % 3 : came ? 2 : 9);
            assert_true(a[n][c] == (mine || came ? value(c) + n : -1));
        }
    }
    un_slabs_destroy(s);
    un_context_destroy(ctx);
}

static void parts_are_collected_and_dealt(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        double a[100];
        un_range r = group_range(spread, 100);
        for (int64_t i = 0; i < 100; i++) a[i] = i >= r.begin && i < r.end ? value(i) : -1;
        un_ranks_collect(ctx, r, a, sizeof *a);
        for (int64_t i = 0; i < 100 && un_ranks_rank(group) == 0; i++)
            assert_true(a[i] == value(i));
        for (int64_t i = 0; i < 100 && un_ranks_rank(group) > 0; i++) a[i] = -1;
        /* parts overlap */
        un_part part = {un_max64(r.begin - 3, 0), un_min64(r.end + 3, 100)};
        check_ok(ctx, un_ranks_deal(ctx, part, a, sizeof *a));
        for (int64_t i = 0; i < 100; i++) {
            bool there = un_ranks_rank(group) == 0 || (i >= part.begin && i < part.end);
            assert_true(a[i] == (there ? value(i) : -1));
        }
    }
    un_context_destroy(ctx);
}

/* ---- cut again ---- */

static double largest(const un_slabs *s, const double *work)
{
    double most = 0;
    for (int32_t r = 0; r < un_ranks_count(group); r++) {
        double sum = 0;
        for (int32_t u = s->first[r] / UNIT; u * UNIT < s->first[r + 1]; u++) sum += work[u];
        most = sum > most ? sum : most;
    }
    return most;
}

/* Of units from `from` on among so many ranks, each at least one: the least that the largest has.
 */
static double least_largest(const double *work, int32_t from, int32_t units, int32_t ranks)
{
    double best = INFINITY, sum = 0;
    for (int32_t end = from + 1; end <= units - (ranks - 1); end++) {
        sum += work[end - 1];
        if (ranks == 1 && end < units) continue;
        double rest = ranks > 1 ? least_largest(work, end, units, ranks - 1) : 0;
        best = fmin(best, fmax(sum, rest));
    }
    return best;
}

static void cuts_are_the_best_there_are(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t count = un_ranks_count(group);
    for (uint64_t seed = 0; seed < 40 && count <= 6; seed++) {
        double work[6];
        for (uint64_t u = 0; u < 6; u++) work[u] = (double)(un_hash64(6 * seed + u) % 20);
        un_slabs *s = make_slabs(ctx, work);
        double best = least_largest(work, 0, 6, count);
        assert_true(fabs(largest(s, work) - best) < 1e-9 * (1 + best));
        un_slabs_destroy(s);
    }
    un_context_destroy(ctx);
}

/* Fields are with the new owners; too little gain changes nothing. */
static void layers_follow_a_new_cut(void **state)
{
    (void)state;
    enum { WIDE = 1024 }; /* doubles, two pages: those of others are given back */
    const double left[6] = {9, 9, 1, 1, 1, 1}, right[6] = {1, 1, 1, 1, 9, 9};
    un_context *ctx = group_context();
    int32_t count = un_ranks_count(group), first[16];
    double *a = un_alloc(ctx, (size_t)LAYERS * WIDE, sizeof *a);
    uint8_t *b = un_alloc(ctx, (size_t)LAYERS * WIDE, 1);
    un_slabs *s;
    bool changed;
    assert_non_null(a);
    assert_non_null(b);
    check_ok(ctx, un_slabs_create(ctx, LAYERS, WIDE, UNIT, left, &s));
    un_part own = un_slabs_part(s, 0);
    for (int64_t c = own.begin * WIDE; c < own.end * WIDE; c++)
        a[c] = value(c), b[c] = (uint8_t)(c % 251);
    un_layered fields[] = {{a, sizeof *a}, {b, 1}};
    memcpy(first, s->first, ((size_t)count + 1) * sizeof *first);
    check_ok(ctx, un_slabs_recut(s, right, 0.9, fields, 2, &changed));
    assert_false(changed);
    assert_memory_equal(first, s->first, ((size_t)count + 1) * sizeof *first);
    double was = largest(s, right);
    check_ok(ctx, un_slabs_recut(s, right, 0.1, fields, 2, &changed));
    assert_int_equal(changed, count > 1 && count < 6);
    if (changed) assert_true(largest(s, right) <= 0.9 * was);
    own = un_slabs_part(s, 0);
    for (int64_t c = own.begin * WIDE; c < own.end * WIDE; c++) {
        assert_true(a[c] == value(c));
        assert_int_equal(b[c], c % 251);
    }
    un_slabs_destroy(s);
    un_free(ctx, a);
    un_free(ctx, b);
    un_context_destroy(ctx);
}

static double negative(void *arg, int64_t begin, int64_t end)
{
    (void)arg, (void)end;
    return -(double)begin;
}

static void maximum_is_that_of_all(void **state)
{
    (void)state;
    const double work[6] = {1, 1, 1, 1, 1, 1};
    un_context *ctx = group_context();
    un_slabs *s = make_slabs(ctx, work);
    un_part own = un_slabs_part(s, 0), none = {7, 7};
    bool first = un_ranks_rank(group) == 0;
    assert_true(un_slabs_max(s, own, negative, NULL) == 0);
    assert_true(un_slabs_max(s, first && un_ranks_count(group) > 1 ? none : own, negative, NULL) ==
                (un_ranks_count(group) > 1 ? -s->first[1] : 0));
    un_slabs_destroy(s);
    un_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_cover_all_layers),
        cmocka_unit_test(layers_come_from_their_ranks),
        cmocka_unit_test(equal_values_arrive),
        cmocka_unit_test(marked_elements_arrive),
        cmocka_unit_test(parts_are_collected_and_dealt),
        cmocka_unit_test(cuts_are_the_best_there_are),
        cmocka_unit_test(layers_follow_a_new_cut),
        cmocka_unit_test(maximum_is_that_of_all),
    };
    group_run(tests);
}
