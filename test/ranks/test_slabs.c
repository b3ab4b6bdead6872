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
    for (int32_t width = 0; width <= LAYERS; width += 5) {
        double a[LAYERS * CELLS];
        uint8_t b[LAYERS * CELLS];
        un_part own = un_slabs_part(s, 0), wide = un_slabs_part(s, width);
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
        cmocka_unit_test(parts_are_collected_and_dealt),
        cmocka_unit_test(maximum_is_that_of_all),
    };
    group_run(tests);
}
