/* Bars of rows and parts of arrays of full length: every rank gets what it asks for, and nothing
 * else changes. */
#include "group.h"

/* 5 x 3 bars, the last ones not whole. */
enum { NY = 34, NZ = 23, ROWS = NY * NZ, CELLS = 6, ALL = ROWS * CELLS, BARS = 15 };

static double value(int64_t cell)
{
    return 1 / (double)(cell + 3);
}

static un_bars *make_bars(un_context *ctx, const double *work, int32_t cells)
{
    static const double even[BARS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    un_bars *bars;
    check_ok(ctx, un_bars_create(ctx, NY, NZ, cells, work ? work : even, &bars));
    return bars;
}

static bool is_own(const un_bars *b, int64_t row)
{
    return un_bars_owns(b, un_bar_of(&b->curve, (int32_t)(row % NY), (int32_t)(row / NY)));
}

/* Is there an own row so near? Looks at all. */
static bool is_near(const un_bars *b, int64_t row, int64_t width)
{
    for (int64_t k = row / NY - width; k <= row / NY + width; k++)
        for (int64_t j = row % NY - width; j <= row % NY + width; j++)
            if (j >= 0 && k >= 0 && j < NY && k < NZ && is_own(b, j + NY * k)) return true;
    return false;
}

/* ---- the curve ---- */

/* It passes each bar once; from bar to bar it is a step, but where the grid ends between them. */
static void the_curve_passes_every_row(void **state)
{
    (void)state;
    const int32_t sizes[6][2] = {{34, 23}, {64, 64}, {16, 130}, {200, 9}, {50, 1}, {8, 8}};
    un_context *ctx = group_context();
    for (int n = 0; n < 6; n++) {
        const int32_t *rows = sizes[n];
        un_curve c;
        check_ok(ctx, un_curve_init(&c, ctx, rows[0], rows[1]));
        uint8_t *seen = un_alloc_zero(ctx, (size_t)rows[0] * (size_t)rows[1], 1);
        int32_t j, k, far = 0, found = 0;
        assert_non_null(seen);
        for (int64_t step = 0; step < un_curve_steps(&c); step++) {
            if (!un_curve_row(&c, step, &j, &k)) continue;
            assert_int_equal(un_curve_step(&c, j, k), step);
            assert_false(seen[j + rows[0] * k]++);
            found++;
        }
        assert_int_equal(found, rows[0] * rows[1]);
        for (int32_t at = 1; at < c.count; at++) {
            int32_t a = c.bar[at - 1], b = c.bar[at], across = c.bars[0];
            far += abs(a % across - b % across) + abs(a / across - b / across) > 1;
        }
        assert_true(far <= (n == 0 || n == 3 ? c.count / 4 : 0));
        if (rows[1] == 1) /* in 2D bars lie as rows do */
            for (int32_t at = 0; at < c.count; at++) assert_int_equal(c.bar[at], at);
        un_free(ctx, seen);
        un_curve_free(ctx, &c);
    }
    un_context_destroy(ctx);
}

/* Parts follow one another along the curve, and every rank has one while there are bars. */
static void parts_cover_all_bars(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t count = un_ranks_count(group);
    for (int w = 0; w < 3; w++) {
        double work[BARS];
        for (int n = 0; n < BARS; n++) work[n] = w == 0 ? 1 : w == 1 ? 9 * (n == 7) : n;
        un_bars *b = make_bars(ctx, work, CELLS);
        assert_int_equal(b->curve.count, BARS);
        assert_int_equal(b->first[0], 0);
        assert_int_equal(b->first[count], BARS);
        for (int32_t r = 0; r < count; r++) {
            assert_true(b->first[r] <= b->first[r + 1]);
            if (count <= BARS) assert_true(b->first[r] < b->first[r + 1]);
            for (int32_t n = b->first[r]; n < b->first[r + 1]; n++)
                assert_int_equal(b->owner[b->curve.bar[n]], r);
        }
        if (w == 0 && count == 3) assert_int_equal(b->first[1], 5);
        un_bars_destroy(b);
    }
    un_context_destroy(ctx);
}

/* ---- runs ---- */

static void add_ones(void *arg, int64_t begin, int64_t end)
{
    uint8_t *seen = arg;
    for (int64_t c = begin; c < end; c++) seen[c]++;
}

/* Own elements, and those beside them, each once and in order; a loop meets the same. */
static void runs_are_own_rows_and_those_beside(void **state)
{
    (void)state;
    un_context *ctx = group_context_failing(3, 0, 0);
    un_bars *b = make_bars(ctx, NULL, CELLS);
    for (int32_t wide = 0; wide < 40; wide += wide < 9 ? 1 : 15) {
        uint8_t seen[ALL] = {0}, met[ALL] = {0};
        un_runs runs = un_bars_runs(b, CELLS, wide), packed = runs;
        int64_t last = 0, count = un_runs_count(runs);
        un_parallel_runs(ctx, runs, 40, add_ones, met);
        for (un_part run; un_runs_next(&runs, &run); last = run.end) {
            assert_true(run.begin >= last && run.end > run.begin && run.end <= ALL);
            add_ones(seen, run.begin, run.end);
            count -= run.end - run.begin;
        }
        assert_int_equal(count, 0);
        for (int64_t c = 0; c < ALL; c++) assert_int_equal(seen[c], is_near(b, c / CELLS, wide));
        assert_memory_equal(seen, met, sizeof seen);
        uint8_t alone[ALL], back[ALL] = {0};
        un_runs_pack(alone, seen, 1, packed);
        un_runs_unpack(back, alone, 1, packed);
        assert_memory_equal(seen, back, sizeof seen);
    }
    un_bars_destroy(b);
    un_context_destroy(ctx);
}

static void sum_values(void *arg, int64_t begin, int64_t end, double *sums)
{
    const double *v = arg;
    for (int64_t c = begin; c < end; c++) {
        sums[0] += v[c];
        sums[1] += 1;
    }
}

/* The bits of one process, from own elements alone. */
static void sums_are_those_of_one_process(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_bars *b = make_bars(ctx, NULL, CELLS);
    double v[ALL], alone[2], together[2];
    const int32_t rows[2] = {NY, NZ};
    for (int64_t c = 0; c < ALL; c++) v[c] = value(c);
    un_bars_sums(ctx, NULL, rows, CELLS, 2, sum_values, v, alone);
    for (int64_t c = 0; c < ALL; c++) v[c] = is_own(b, c / CELLS) ? value(c) : NAN;
    un_bars_sums(ctx, b, rows, CELLS, 2, sum_values, v, together);
    assert_memory_equal(alone, together, sizeof alone);
    assert_true(alone[1] == ALL);
    un_bars_destroy(b);
    un_context_destroy(ctx);
}

/* ---- copies ---- */

/* Rows from neighbours, and from those beyond them. */
static void rows_come_from_their_ranks(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_bars *b = make_bars(ctx, NULL, CELLS);
    for (int32_t width = 0; width <= NY; width += width < 9 ? 1 : width == 33 ? 1 : 8) {
        double a[ALL];
        uint8_t c[ALL];
        for (int64_t i = 0; i < ALL; i++) {
            bool mine = is_own(b, i / CELLS);
            a[i] = mine ? value(i) : -1;
            c[i] = mine ? (uint8_t)i : 255;
        }
        un_layered fields[] = {{a, sizeof *a}, {c, 1}};
        check_ok(ctx, un_bars_share(b, fields, 2, width));
        for (int64_t i = 0; i < ALL; i++) {
            /* ranks without rows get all of them, too */
            bool there = width >= NY || is_near(b, i / CELLS, width);
            assert_true(a[i] == (there ? value(i) : -1));
            assert_int_equal(c[i], there ? (uint8_t)i : 255);
        }
        check_ok(ctx, un_bars_collect(b, fields, 1));
        for (int64_t i = 0; i < ALL && un_ranks_rank(group) == 0; i++)
            assert_true(a[i] == value(i));
    }
    un_bars_destroy(b);
    un_context_destroy(ctx);
}

/* Runs of equal values of each size, and a value that differs in one bit: what is left out of
 * messages. */
static void equal_values_arrive(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_bars *s = make_bars(ctx, NULL, CELLS);
    double a[ALL], a_all[ALL];
    float b[ALL], b_all[ALL];
    uint8_t c[ALL], c_all[ALL];
    uint16_t d[ALL], d_all[ALL];
    int64_t asked = 0;
    for (int32_t i = 0; i < ALL; i++) {
        bool mine = is_own(s, i / CELLS), there = is_near(s, i / CELLS, 3);
        double all = i % 11 < 7 ? 0.0 : i % 11 < 9 ? -0.0 : i % 5;
        a_all[i] = there ? all : 7;
        b_all[i] = there ? (float)(i / 30) : 7;
        c_all[i] = there ? (uint8_t)(i % 17 == 3) : 7;
        d_all[i] = there ? (uint16_t)(i / 8) : 7;
        a[i] = mine ? a_all[i] : 7;
        b[i] = mine ? b_all[i] : 7;
        c[i] = mine ? c_all[i] : 7;
        d[i] = mine ? d_all[i] : 7;
        asked += there && !mine;
    }
    size_t before = s->bytes;
    un_layered fields[] = {{a, sizeof *a}, {b, sizeof *b}, {c, 1}, {d, sizeof *d}};
    check_ok(ctx, un_bars_share(s, fields, 4, 3));
    assert_memory_equal(a, a_all, sizeof a);
    assert_memory_equal(b, b_all, sizeof b);
    assert_memory_equal(c, c_all, sizeof c);
    assert_memory_equal(d, d_all, sizeof d);
    if (un_ranks_count(group) == 2) { /* 15 bytes a cell as they are */
        double sent[2] = {(double)(s->bytes - before), (double)asked};
        un_ranks_add(ctx, sent, 2);
        assert_true(sent[0] < sent[1] * 15 * 2 / 3);
    }
    un_bars_destroy(s);
    un_context_destroy(ctx);
}

/* Only elements with the mark come, with their marks; others stay as they are. */
static void marked_elements_arrive(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_bars *s = make_bars(ctx, NULL, CELLS);
    uint8_t mark[2][ALL];
    double a[2][ALL];
    for (int32_t c = 0; c < ALL; c++) {
        bool mine = is_own(s, c / CELLS);
        for (int n = 0; n < 2; n++) {
            mark[n][c] = mine ? (uint8_t)((c + n) % 3) : 9;
            a[n][c] = mine ? value(c) + n : -1;
        }
    }
    un_layered fields[] = {{mark[0], 1}, {a[0], sizeof *a[0]}, {mark[1], 1}, {a[1], sizeof *a[1]}};
    check_ok(ctx, un_bars_share_marked(s, fields, 4, 2, 2, 1));
    for (int32_t c = 0; c < ALL; c++) {
        bool mine = is_own(s, c / CELLS), there = is_near(s, c / CELLS, 1);
        for (int n = 0; n < 2; n++) {
            bool came = there && (c + n) % 3 == 2;
            assert_int_equal(mark[n][c], mine ? (c + n) % 3 : came ? 2 : 9);
            assert_true(a[n][c] == (mine || came ? value(c) + n : -1));
        }
    }
    un_bars_destroy(s);
    un_context_destroy(ctx);
}

static void windows_come_to_all_ranks(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_bars *b = make_bars(ctx, NULL, CELLS);
    double a[ALL], out[ALL];
    for (int64_t c = 0; c < ALL; c++) a[c] = is_own(b, c / CELLS) ? value(c) : -1;
    for (int64_t turn = 0; turn < 9; turn++) {
        int64_t begin = (turn * 531 + un_ranks_rank(group) * 977) % ALL;
        int64_t end = un_min64(begin + (turn % 4) * 307, ALL); /* some ranks want nothing */
        for (int64_t c = 0; c < ALL; c++) out[c] = -2;
        check_ok(ctx, un_bars_windows(b, a, sizeof *a, (un_part){begin, end}, out + begin));
        for (int64_t c = 0; c < ALL; c++)
            assert_true(out[c] == (c >= begin && c < end ? value(c) : -2));
    }
    un_bars_destroy(b);
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

static double largest(const un_bars *b, const double *work)
{
    double most = 0;
    for (int32_t r = 0; r < un_ranks_count(group); r++) {
        double sum = 0;
        for (int32_t n = b->first[r]; n < b->first[r + 1]; n++) sum += work[b->curve.bar[n]];
        most = sum > most ? sum : most;
    }
    return most;
}

/* Of bars from `from` on among so many ranks, each at least one: the least that the largest has.
 */
static double least_largest(const double *work, int32_t from, int32_t bars, int32_t ranks)
{
    double best = INFINITY, sum = 0;
    for (int32_t end = from + 1; end <= bars - (ranks - 1); end++) {
        sum += work[end - 1];
        if (ranks == 1 && end < bars) continue;
        double rest = ranks > 1 ? least_largest(work, end, bars, ranks - 1) : 0;
        best = fmin(best, fmax(sum, rest));
    }
    return best;
}

static void cuts_are_the_best_there_are(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t count = un_ranks_count(group);
    for (uint64_t seed = 0; seed < 40 && count <= 4; seed++) {
        double work[BARS], along[BARS];
        for (uint64_t u = 0; u < BARS; u++) work[u] = (double)(un_hash64(BARS * seed + u) % 20);
        un_bars *b = make_bars(ctx, work, CELLS);
        for (int32_t n = 0; n < BARS; n++) along[n] = work[b->curve.bar[n]];
        double best = least_largest(along, 0, BARS, count);
        assert_true(fabs(largest(b, work) - best) < 1e-9 * (1 + best));
        un_bars_destroy(b);
    }
    un_context_destroy(ctx);
}

/* Fields are with the new owners; too little gain changes nothing. */
static void rows_follow_a_new_cut(void **state)
{
    (void)state;
    enum { WIDE = 1024 }; /* doubles, two pages: those of others are given back */
    double left[BARS], right[BARS];
    un_context *ctx = group_context();
    int32_t count = un_ranks_count(group), first[16];
    double *a = un_alloc_zero(ctx, (size_t)ROWS * WIDE, sizeof *a);
    uint8_t *b = un_alloc(ctx, (size_t)ROWS * WIDE, 1);
    bool changed;
    assert_non_null(a);
    assert_non_null(b);
    for (int n = 0; n < BARS; n++) {
        left[n] = n < 5 ? 9 : 1;
        right[n] = n > 9 ? 9 : 1;
    }
    un_bars *s = make_bars(ctx, left, WIDE);
    for (int64_t c = 0; c < (int64_t)ROWS * WIDE; c++)
        if (is_own(s, c / WIDE)) a[c] = value(c), b[c] = (uint8_t)(c % 251);
    un_layered fields[] = {{a, sizeof *a}, {b, 1}};
    memcpy(first, s->first, ((size_t)count + 1) * sizeof *first);
    check_ok(ctx, un_bars_recut(s, right, 0.9, fields, 2, &changed));
    assert_false(changed);
    assert_memory_equal(first, s->first, ((size_t)count + 1) * sizeof *first);
    double was = largest(s, right);
    check_ok(ctx, un_bars_recut(s, right, 0.1, fields, 2, &changed));
    assert_int_equal(changed, count > 1 && count < BARS);
    if (changed) assert_true(largest(s, right) <= 0.9 * was);
    for (int64_t c = 0; c < (int64_t)ROWS * WIDE; c++) {
        if (is_own(s, c / WIDE)) {
            assert_true(a[c] == value(c));
            assert_int_equal(b[c], c % 251);
        } else if (changed && c % WIDE == WIDE / 2 && !is_near(s, c / WIDE, UN_BAR + 1))
            assert_true(a[c] == 0);
    }
    un_bars_destroy(s);
    un_free(ctx, a);
    un_free(ctx, b);
    un_context_destroy(ctx);
}

static double place(void *arg, int64_t begin, int64_t end)
{
    (void)arg, (void)begin;
    return (double)end;
}
static double negative(void *arg, int64_t begin, int64_t end)
{
    (void)arg, (void)end;
    return -(double)begin;
}

static void maximum_is_that_of_all(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_bars *b = make_bars(ctx, NULL, CELLS);
    assert_true(un_ranks_max(ctx, un_runs_max(ctx, un_bars_runs(b, CELLS, 0), place, NULL)) == ALL);
    assert_true(un_runs_max(ctx, un_bars_runs(b, CELLS, 0), negative, NULL) == 0);
    un_bars_destroy(b);
    un_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_passes_every_row),
        cmocka_unit_test(parts_cover_all_bars),
        cmocka_unit_test(runs_are_own_rows_and_those_beside),
        cmocka_unit_test(sums_are_those_of_one_process),
        cmocka_unit_test(rows_come_from_their_ranks),
        cmocka_unit_test(equal_values_arrive),
        cmocka_unit_test(marked_elements_arrive),
        cmocka_unit_test(windows_come_to_all_ranks),
        cmocka_unit_test(parts_are_collected_and_dealt),
        cmocka_unit_test(cuts_are_the_best_there_are),
        cmocka_unit_test(rows_follow_a_new_cut),
        cmocka_unit_test(maximum_is_that_of_all),
    };
    group_run(tests);
}
