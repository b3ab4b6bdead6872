/* Numbering of unknowns, and rows gathered from elements. */
#include "check.h"
#include "linalg/linalg.h"

/* In the order of their places, for any number of threads. */
static void unknowns_are_numbered_in_order(void **state)
{
    (void)state;
    enum { PLACES = 100000 };
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        un_context *ctx = check_context_threads(threads);
        int32_t *index = malloc(PLACES * sizeof *index), *place = NULL, count, want = 0;
        size_t capacity = 0;
        for (int32_t n = 0; n < PLACES; n++) index[n] = un_random((uint64_t)n, 4) < 0.3 ? 0 : -1;
        check_ok(ctx, un_unknowns_number(ctx, index, PLACES, &place, &capacity, &count));
        for (int32_t n = 0; n < PLACES; n++) {
            bool unknown = un_random((uint64_t)n, 4) < 0.3;
            assert_int_equal(index[n], unknown ? want : -1);
            if (unknown) assert_int_equal(place[want++], n);
        }
        assert_int_equal(count, want);
        check_ok(ctx, un_unknowns_number(ctx, index, 0, &place, &capacity, &count));
        assert_int_equal(count, 0);
        free(index);
        un_free(ctx, place);
        check_context_end(ctx);
    }
}

static void too_many_entries_are_refused(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int32_t row[] = {7, 3, 0, 2}, many[] = {0, INT32_MAX - 1, 1, 1};
    check_ok(ctx, un_rows_start(ctx, row, 3, "liquid nodes"));
    for (int i = 0; i < 4; i++) assert_int_equal(row[i], ((int[]){0, 3, 3, 5})[i]);
    assert_int_equal(un_rows_start(ctx, many, 3, "liquid nodes"), UN_ERROR_MEMORY);
    assert_non_null(strstr(un_context_message(ctx), "liquid nodes are too many"));
    check_context_end(ctx);
}

/* Sums of what was added at each place, whatever the order and the collisions in the table. */
static void rows_hold_the_sums_of_their_elements(void **state)
{
    (void)state;
    enum { PLACES = 100000 };
    int32_t *index = malloc(PLACES * sizeof *index);
    for (int32_t n = 0; n < PLACES; n++) index[n] = n / 2;
    for (uint64_t trial = 0; trial < 200; trial++) {
        int32_t nodes[UN_ROW_MAX], col[UN_ROW_MAX];
        double sums[UN_ROW_MAX][9] = {{0}}, val[UN_ROW_MAX][9], out[UN_ROW_MAX][9];
        int count = 1 + (int)(trial % UN_ROW_MAX);
        /* even places, all different; some rows are full */
        for (int k = 0; k < count; k++)
            nodes[k] = 2 * (int32_t)((trial * 911 + (uint64_t)k * 7919) % (PLACES / 2));
        un_row row;
        un_row_begin(&row);
        memset(val, 0xff, sizeof val);
        for (uint64_t add = 0; add < 1000; add++) {
            int k = add < (uint64_t)count ? (int)add : (int)(un_random(add, trial) * count);
            double *at = un_row_at(&row, val[0], 9, nodes[k]);
            for (int c = 0; c < 9; c++) {
                at[c] += (double)add + c;
                sums[k][c] += (double)add + c;
            }
        }
        assert_int_equal(row.count, count);
        un_row_store(&row, val[0], 9, index, col, out[0]);
        for (int i = 0; i < count; i++) {
            if (i > 0) assert_true(col[i] > col[i - 1]);
            int k = 0;
            while (nodes[k] != 2 * col[i]) k++;
            assert_memory_equal(out[i], sums[k], sizeof out[i]);
        }
    }
    free(index);
}

/* Rows are tied to those STEP before and after, and by entries of zero to their neighbours. */
static void parts_have_their_least_row(void **state)
{
    (void)state;
    enum { ROWS = 40000, STEP = 37, FROM = 1000, TO = ROWS - 500 };
    static int32_t row[ROWS + 1], col[5 * ROWS], root[ROWS];
    static double val[5 * ROWS];
    int32_t count = 0;
    for (int32_t r = 0; r < ROWS; r++) {
        const int32_t offsets[5] = {-STEP, -1, 0, 1, STEP};
        for (int k = 0; k < 5; k++) {
            int32_t c = r + offsets[k];
            if (c < 0 || c >= ROWS) continue;
            col[count] = c;
            val[count++] = c == r ? 2 : abs(offsets[k]) == 1 ? 0 : -1;
        }
        row[r + 1] = count;
    }
    un_csr a = {.n = ROWS, .row = row, .col = col, .val = val};
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        un_context *ctx = check_context_threads(threads);
        memset(root, 0xff, sizeof root);
        un_csr_parts(ctx, &a, (un_part){FROM, TO}, root);
        for (int32_t r = 0; r < ROWS; r++)
            assert_int_equal(root[r], r < FROM || r >= TO ? -1 : FROM + (r - FROM) % STEP);
        check_context_end(ctx);
    }
}

/* Few and many, with several of each, in steps that need one digit or four. */
static void ids_are_sorted(void **state)
{
    (void)state;
    un_context *ctx = un_context_create(NULL);
    for (int32_t count = 1; count < 20000; count = 3 * count + 1)
        for (int shift = 0; shift < 17; shift += 8) {
            un_ids ids = {0};
            uint8_t *there = un_alloc_zero(ctx, (size_t)count + 1, 1);
            int64_t different = 0, at = 0;
            assert_non_null(there);
            for (int32_t k = 0; k < 2 * count; k++) {
                int32_t i = (int32_t)(un_hash64((uint64_t)k) % (uint64_t)count);
                different += !there[i];
                there[i] = 1;
                check_ok(ctx, un_ids_add(ctx, &ids, i << shift));
            }
            un_ids_sort(&ids);
            assert_int_equal(ids.count, different);
            for (int32_t i = 0; i < count; i++)
                if (there[i]) assert_int_equal(ids.id[at++], i << shift);
            un_free(ctx, there);
            un_free(ctx, ids.id);
        }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknowns_are_numbered_in_order),
        cmocka_unit_test(too_many_entries_are_refused),
        cmocka_unit_test(rows_hold_the_sums_of_their_elements),
        cmocka_unit_test(parts_have_their_least_row),
        cmocka_unit_test(ids_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
