/* A system of 3x3 blocks whose rows ranks share has the bits of one rank, however they are cut.
 * What a rank does not hold is spoilt beforehand, so that nobody reads it. */
#include "group.h"
#include "linalg/trusses.h"

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    if (from) memcpy(copy, from, bytes);
    return copy;
}

static const un_vec3 spoilt = {NAN, NAN, NAN};

/* The system as a rank has it. */
static test_truss share_of(const test_truss *all, un_range own)
{
    size_t n = (size_t)all->a.n, entries = (size_t)all->a.row[n];
    test_truss t = {.a = {.n = all->a.n}};
    t.a.row = copy_of(all->a.row, (n + 1) * sizeof *t.a.row);
    t.a.col = copy_of(all->a.col, entries * sizeof *t.a.col);
    t.a.val = copy_of(all->a.val, entries * sizeof *t.a.val);
    t.b = copy_of(all->b, n * sizeof *t.b);
    t.x = copy_of(all->x, n * sizeof *t.x);
    t.place = copy_of(all->place, n * sizeof *t.place);
    t.free = copy_of(all->free, n * sizeof *t.free);
    for (int64_t i = 0; i < all->a.n; i++) {
        if (i >= own.begin && i < own.end) continue;
        for (int32_t k = all->a.row[i]; k < all->a.row[i + 1]; k++) {
            t.a.col[k] = -1000000000;
            t.a.val[k][4] = NAN;
        }
        t.b[i] = t.x[i] = t.place[i] = spoilt;
        t.free[i][0] = NAN;
        if (i != own.end) t.a.row[i] = -1000000000;
    }
    return t;
}

static void compare(const test_truss *all, const test_truss *share, un_range own,
                    const un_vec3 *expected)
{
    for (int64_t i = own.begin; i < own.end; i++)
        for (int32_t k = all->a.row[i]; k < all->a.row[i + 1]; k++) {
            int32_t j = all->a.col[k];
            if (memcmp(&share->x[j], &expected[j], sizeof *expected) != 0)
                fail_msg("x[%d] of %d is %.17g, not %.17g", j, all->a.n, share->x[j].x,
                         expected[j].x);
        }
}

static void check_report(const un_block_report *shared, const un_block_report *alone)
{
    assert_int_equal(shared->kind, alone->kind);
    assert_int_equal(shared->iterations, alone->iterations);
    assert_true(shared->residual == alone->residual);
    assert_int_equal(shared->level_count, alone->level_count);
    assert_true(shared->complexity == alone->complexity);
    assert_true(shared->converged && shared->finite);
}

/* Solves it alone and on all ranks, twice with the same matrix. */
static void check_system(const test_truss *t, un_block_kind kind, un_block_kind used)
{
    double tolerance = t->a.n > 30000 ? 1e-4 : 1e-6;
    un_context *alone = check_context();
    size_t bytes = (size_t)t->a.n * sizeof *t->x;
    un_vec3 *expected[2] = {copy_of(t->x, bytes), copy_of(t->x, bytes)}, *b = copy_of(t->b, bytes);
    const double(*free_of)[9] = (const double(*)[9])t->free;
    un_block_report report[2], shared;
    un_block_solver *solver;
    un_block_system system = {.a = &t->a, .b = t->b, .place = t->place, .free = free_of};
    check_ok(alone, un_block_solver_create(alone, &solver));
    un_block_solver_set_kind(solver, kind);
    for (int times = 0; times < 2; times++) {
        check_ok(alone, un_block_solver_solve(solver, &system, expected[times], tolerance, 500,
                                              &report[times]));
        assert_int_equal(report[times].kind, used);
        for (int32_t i = 0; i < t->a.n; i++) b[i].y = (times + 2) * t->b[i].z;
        system.b = b;
        system.same = true;
    }
    un_block_solver_destroy(solver);
    for (int32_t i = 0; i < t->a.n; i++) b[i].y = 2 * t->b[i].z;
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        un_context *ctx = group_context_failing(spread == SPREAD_ODD ? 2 : 1, 0, 0);
        un_range own = group_range(spread, t->a.n);
        test_truss share = share_of(t, own);
        check_ok(ctx, un_block_solver_create(ctx, &solver));
        un_block_solver_set_kind(solver, kind);
        un_block_system mine = {.a = &share.a,
                                .b = share.b,
                                .place = share.place,
                                .free = free_of ? (const double(*)[9])share.free : NULL,
                                .rows = &own};
        for (int times = 0; times < 2; times++) {
            check_ok(ctx, un_block_solver_solve(solver, &mine, share.x, tolerance, 500, &shared));
            compare(t, &share, own, expected[times]);
            check_report(&shared, &report[times]);
            for (int64_t i = own.begin; i < own.end; i++) {
                share.b[i] = b[i];
                share.x[i] = t->x[i];
            }
            mine.same = true;
        }
        un_block_solver_destroy(solver);
        test_truss_free(&share);
        check_context_end(ctx);
    }
    free(expected[0]);
    free(expected[1]);
    free(b);
    check_context_end(alone);
}

/* Ranks share the second level, too; a few rows lie anywhere, and some slide. */
static void large_systems(void **state)
{
    (void)state;
    test_truss t = test_truss_make((test_truss_def){25, 1e3, true, 1e-2});
    assert_true(t.a.n > 30000);
    for (int32_t i = 0; i < t.a.n; i++) t.x[i] = un_v3(un_random((uint64_t)i, 9), 0, 1);
    check_system(&t, UN_BLOCK_AUTO, UN_BLOCK_SA);
    test_truss_free(&t);
}

static double (*all_free(int32_t n))[9]
{
    double(*to)[9] = calloc((size_t)n, sizeof *to);
    for (int32_t i = 0; i < n; i++)
        for (int a = 0; a < 3; a++) to[i][4 * a] = a == 1 && i % 50 < 25 ? 0 : 1;
    return to;
}

/* Of fewer blocks than ranks, some of which then have no rows; with directions that are not free;
 * and where the diagonal is given up. */
static void small_systems(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        static const test_truss_def defs[] = {
            {4, 1e3, true, 1}, {9, 1e4, false, 1}, {9, 1e-3, false, 1}, {9, 300, true, 1e-4}};
        test_truss t = test_truss_make(defs[k]);
        if (k == 1) t.free = all_free(t.a.n);
        un_block_kind kind = k == 0 || k == 2 ? UN_BLOCK_JACOBI : UN_BLOCK_SA;
        check_system(&t, UN_BLOCK_AUTO, kind);
        if (k == 0) check_system(&t, UN_BLOCK_SA, UN_BLOCK_SA);
        test_truss_free(&t);
    }
}

/* Rows that nothing couples: no level is worth while, and the last one is shared. */
static void loose_rows(void **state)
{
    (void)state;
    test_truss t = test_truss_make((test_truss_def){7, 1e-9, false, 1});
    check_system(&t, UN_BLOCK_SA, UN_BLOCK_SA);
    test_truss_free(&t);
}

static void nothing_and_nan(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    un_block_solver *solver;
    un_block_report report;
    int32_t row = 0;
    un_block_csr none = {.n = 0, .row = &row};
    un_range own = {0, 0, 0};
    un_block_system system = {.a = &none, .rows = &own};
    check_ok(ctx, un_block_solver_create(ctx, &solver));
    check_ok(ctx, un_block_solver_solve(solver, &system, NULL, 1e-4, 100, &report));
    assert_true(report.converged);
    test_truss t = test_truss_make((test_truss_def){6, 1e3, false, 1});
    own = group_range(SPREAD_EVEN, t.a.n);
    t.b[t.a.n - 1].y = NAN;
    test_truss share = share_of(&t, own);
    system = (un_block_system){.a = &share.a, .b = share.b, .place = share.place, .rows = &own};
    check_ok(ctx, un_block_solver_solve(solver, &system, share.x, 1e-4, 100, &report));
    assert_false(report.finite);
    for (int64_t i = own.begin; i < own.end; i++) assert_true(share.x[i].x == 0);
    test_truss_free(&share);
    test_truss_free(&t);
    un_block_solver_destroy(solver);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_systems),
        cmocka_unit_test(small_systems),
        cmocka_unit_test(loose_rows),
        cmocka_unit_test(nothing_and_nan),
    };
    group_run(tests);
}
