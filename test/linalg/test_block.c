/* Systems of 3x3 blocks: all preconditioners reach the same answer, multigrid in as many iterations
 * whatever the size and however stiff, with the same bits for any number of threads. */
#include "check.h"
#include "linalg/trusses.h"

static un_block_report solve(un_context *ctx, test_truss *t, un_block_kind kind, double tolerance)
{
    un_block_solver *solver;
    un_block_report report;
    un_block_system system = {
        .a = &t->a, .b = t->b, .place = t->place, .free = (const double(*)[9])t->free};
    check_ok(ctx, un_block_solver_create(ctx, &solver));
    un_block_solver_set_kind(solver, kind);
    check_ok(ctx, un_block_solver_solve(solver, &system, t->x, tolerance, 5000, &report));
    un_block_solver_destroy(solver);
    return report;
}

static double true_residual(un_context *ctx, const test_truss *t)
{
    un_vec3 *r = malloc((size_t)t->a.n * sizeof *r);
    double norm = 0, of_b = 0;
    un_block_csr_apply(ctx, r, &t->a, t->x);
    for (int32_t i = 0; i < t->a.n; i++) {
        r[i] = un_sub(t->b[i], r[i]);
        norm += un_dot(r[i], r[i]);
        of_b += un_dot(t->b[i], t->b[i]);
    }
    free(r);
    return sqrt(norm / of_b);
}

static void all_kinds_agree(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const test_truss_def defs[] = {
        {6, 1e-3, false, 1}, {6, 1e3, true, 1}, {6, 1e4, false, 1}, {8, 1e3, true, 1e-4}};
    for (size_t d = 0; d < sizeof defs / sizeof *defs; d++) {
        test_truss t = test_truss_make(defs[d]);
        const char *reason = "";
        if (!un_block_csr_validate(&t.a, &reason)) fail_msg("%s", reason);
        for (int kind = 0; kind < UN_BLOCK_KIND_COUNT; kind++) {
            memset(t.x, 0, (size_t)t.a.n * sizeof *t.x);
            un_block_report report = solve(ctx, &t, (un_block_kind)kind, 1e-8);
            assert_true(report.converged && report.finite);
            check_near(true_residual(ctx, &t), report.residual, 1e-9);
        }
        test_truss_free(&t);
    }
    check_context_end(ctx);
}

/* Iterations of multigrid hold with size, with stiffness, afloat or held. */
static void counts_hold(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int held = 0; held < 2; held++)
        for (double stiffness = 1e2; stiffness < 1e7; stiffness *= 1e2)
            for (int32_t m = 6; m <= 14; m += 4) {
                test_truss t = test_truss_make((test_truss_def){m, stiffness, held, 1});
                un_block_report report = solve(ctx, &t, UN_BLOCK_SA, 1e-6);
                assert_true(report.converged);
                if (getenv("VERBOSE"))
                    printf("held %d stiffness %g m %d: %d iterations, %d levels, %.2f\n", held,
                           stiffness, m, report.iterations, report.level_count, report.complexity);
                check_below(report.iterations, 40);
                check_below(report.complexity, 2);
                test_truss_free(&t);
            }
    check_context_end(ctx);
}

/* A second b for the same matrix: the same answer, to the bit, as with a preconditioner of its own,
 * which takes no time. Another matrix after that has its own again. */
static void the_same_matrix_is_not_set_up_again(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int kind = 0; kind < UN_BLOCK_KIND_COUNT; kind++) {
        test_truss t = test_truss_make((test_truss_def){10, 1e4, false, 1});
        size_t bytes = (size_t)t.a.n * sizeof *t.x;
        un_block_system system = {
            .a = &t.a, .b = t.b, .place = t.place, .free = (const double(*)[9])t.free};
        un_block_solver *solver;
        un_block_report report;
        un_vec3 *once = malloc(bytes);
        check_ok(ctx, un_block_solver_create(ctx, &solver));
        un_block_solver_set_kind(solver, (un_block_kind)kind);
        check_ok(ctx, un_block_solver_solve(solver, &system, t.x, 1e-6, 5000, &report));
        for (int32_t i = 0; i < t.a.n; i++) t.b[i] = un_scale(t.place[i], 1 + i % 3);
        for (int same = 1; same >= 0; same--) {
            system.same = same;
            memset(t.x, 0, bytes);
            check_ok(ctx, un_block_solver_solve(solver, &system, t.x, 1e-6, 5000, &report));
            assert_true(report.converged && report.iterations > 2);
            if (same) {
                memcpy(once, t.x, bytes);
                check_near(report.level_count, 0, 0); /* nothing was set up */
            }
        }
        if (kind != UN_BLOCK_AUTO) assert_memory_equal(once, t.x, bytes);
        check_below(true_residual(ctx, &t), 2e-6);
        for (int32_t k = 0; k < t.a.row[t.a.n]; k++)
            for (int c = 0; c < 9; c++) t.a.val[k][c] *= 3;
        memset(t.x, 0, bytes);
        check_ok(ctx, un_block_solver_solve(solver, &system, t.x, 1e-6, 5000, &report));
        check_below(true_residual(ctx, &t), 2e-6);
        un_block_solver_destroy(solver);
        free(once);
        test_truss_free(&t);
    }
    check_context_end(ctx);
}

/* Where the diagonal alone would take long it is soon given up, not after a hundred iterations. */
static void slow_diagonals_are_given_up(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int slow = 0;
    for (double stiffness = 10; stiffness < 30; stiffness *= 2) {
        test_truss t = test_truss_make((test_truss_def){13, stiffness, false, 1});
        int32_t alone = solve(ctx, &t, UN_BLOCK_JACOBI, 1e-9).iterations;
        memset(t.x, 0, (size_t)t.a.n * sizeof *t.x);
        un_block_report report = solve(ctx, &t, UN_BLOCK_AUTO, 1e-9);
        assert_true(report.converged);
        if (getenv("VERBOSE"))
            printf("stiffness %g: %d alone, %d chosen\n", stiffness, alone, report.iterations);
        if (alone > 105) check_below(report.iterations, 80);
        if (alone < 90) assert_int_equal(report.iterations, alone);
        slow += alone > 105 && report.iterations > 45;
        test_truss_free(&t);
    }
    assert_true(slow > 0); /* some were begun with the diagonal */
    check_context_end(ctx);
}

/* Nodes of one side may slide along it only. */
static void slides(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    test_truss t = test_truss_make((test_truss_def){10, 1e4, false, 1});
    t.free = calloc((size_t)t.a.n, sizeof *t.free);
    for (int32_t i = 0; i < t.a.n; i++) {
        bool side = t.place[i].x == 0;
        for (int c = 0; c < 9; c += 4) t.free[i][c] = c == 0 && side ? 0 : 1;
    }
    for (int32_t i = 0; i < t.a.n; i++)
        for (int32_t k = t.a.row[i]; k < t.a.row[i + 1]; k++) {
            int32_t j = t.a.col[k];
            for (int c = 0; c < 9; c++)
                t.a.val[k][c] *= t.free[i][c / 3 * 4] * t.free[j][c % 3 * 4];
            if (i == j && t.place[i].x == 0) t.a.val[k][0] = 1e4;
        }
    un_block_report report = solve(ctx, &t, UN_BLOCK_SA, 1e-6);
    assert_true(report.converged);
    check_below(report.iterations, 40);
    check_below(true_residual(ctx, &t), 1.1e-6);
    test_truss_free(&t);
    check_context_end(ctx);
}

static void same_bits(void **state)
{
    (void)state;
    test_truss_def def = {12, 1e4, true, 1e-2};
    for (int kind = 0; kind < UN_BLOCK_KIND_COUNT; kind++) {
        un_vec3 *first = NULL;
        for (int32_t threads = 1; threads <= 4; threads++) {
            un_context *ctx = check_context_threads(threads);
            test_truss t = test_truss_make(def);
            solve(ctx, &t, (un_block_kind)kind, 1e-5);
            size_t bytes = (size_t)t.a.n * sizeof *t.x;
            if (first) assert_memory_equal(first, t.x, bytes);
            if (!first) first = memcpy(malloc(bytes), t.x, bytes);
            test_truss_free(&t);
            check_context_end(ctx);
        }
        free(first);
    }
}

static void hostile_systems(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int kind = 0; kind < UN_BLOCK_KIND_COUNT; kind++) {
        test_truss t = test_truss_make((test_truss_def){4, 10, false, 1});
        /* what is not a number is said */
        t.b[7].y = NAN;
        assert_false(solve(ctx, &t, (un_block_kind)kind, 1e-6).finite);
        t.b[7].y = 0;
        t.a.val[40][3] = INFINITY;
        assert_false(solve(ctx, &t, (un_block_kind)kind, 1e-6).finite);
        t.a.val[40][3] = 0;
        test_truss_free(&t);
        t = test_truss_make((test_truss_def){4, 10, false, 1});
        /* a guess that is none, and a row without equations */
        t.x[3].x = NAN;
        int32_t empty = 20;
        for (int32_t i = 0; i < t.a.n; i++)
            for (int32_t k = t.a.row[i]; k < t.a.row[i + 1]; k++)
                if (i == empty || t.a.col[k] == empty) memset(t.a.val[k], 0, sizeof t.a.val[k]);
        t.b[empty] = un_v3(0, 0, 0);
        un_block_report report = solve(ctx, &t, (un_block_kind)kind, 1e-6);
        assert_true(report.converged);
        check_near(un_length(t.x[empty]), 0, 0);
        /* nothing asked: nothing done, from any guess */
        memset(t.b, 0, (size_t)t.a.n * sizeof *t.b);
        report = solve(ctx, &t, (un_block_kind)kind, 1e-6);
        assert_int_equal(report.iterations, 0);
        check_near(un_length(t.x[5]), 0, 0);
        test_truss_free(&t);
    }
    test_truss none = {0};
    none.a.row = calloc(1, sizeof *none.a.row);
    assert_true(solve(ctx, &none, UN_BLOCK_SA, 1e-6).converged);
    test_truss_free(&none);
    check_context_end(ctx);
}

static void small_inverse(void **state)
{
    (void)state;
    double a[9] = {4, 1, 2, 1, 3, 0, 2, 0, 5}, b[9], one[9] = {0};
    memcpy(b, a, sizeof a);
    assert_int_equal(un_small_inverse(b, 3, 1e-12), 3);
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 3; k++) one[i] += a[i / 3 * 3 + k] * b[3 * k + i % 3];
    for (int i = 0; i < 9; i++) check_near(one[i], i % 4 == 0, 1e-14);
    /* what has no equation gets none; the rest is solved without it */
    double c[4] = {2, 2, 2, 2};
    assert_int_equal(un_small_inverse(c, 2, 1e-6), 1);
    check_near(c[0], 0.5, 1e-15);
    assert_true(c[1] == 0 && c[2] == 0 && c[3] == 0);
}

static un_status solve_once(un_context *ctx, void *arg)
{
    test_truss *t = arg;
    un_block_solver *solver;
    un_block_report report;
    un_block_system system = {.a = &t->a, .b = t->b, .place = t->place};
    UN_TRY(un_block_solver_create(ctx, &solver));
    un_status status = UN_OK;
    for (int kind = 1; kind < UN_BLOCK_KIND_COUNT && status == UN_OK; kind++) {
        un_block_solver_set_kind(solver, (un_block_kind)kind);
        memset(t->x, 0, (size_t)t->a.n * sizeof *t->x);
        status = un_block_solver_solve(solver, &system, t->x, 1e-4, 500, &report);
    }
    un_block_solver_destroy(solver);
    return status;
}

static void memory_may_end(void **state)
{
    (void)state;
    test_truss t = test_truss_make((test_truss_def){7, 1e3, true, 1});
    check_allocation_failures(solve_once, &t, 400);
    test_truss_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_agree),
        cmocka_unit_test(counts_hold),
        cmocka_unit_test(the_same_matrix_is_not_set_up_again),
        cmocka_unit_test(slow_diagonals_are_given_up),
        cmocka_unit_test(slides),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(hostile_systems),
        cmocka_unit_test(small_inverse),
        cmocka_unit_test(memory_may_end),
    };
    check_races_in("same_bits");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
