/* Multigrid, each scheme: iteration counts that hold with size, and systems meant to break it. */
#include "check.h"
#include "linalg/systems.h"

static un_solver_kind tested; /* the scheme */

static un_solve_report solve_kind(un_context *ctx, test_system *s, double tolerance,
                                  un_solver_kind kind)
{
    un_solver *solver;
    un_solve_report report;
    check_ok(ctx, un_solver_create(ctx, &solver));
    un_solver_set_kind(solver, kind);
    un_system system = {.a = &s->a, .b = s->b, .sites = &s->sites};
    check_ok(ctx, un_solver_solve(solver, &system, s->x, tolerance, 1000, &report));
    un_solver_destroy(solver);
    return report;
}
static un_solve_report solve(un_context *ctx, test_system *s, double tolerance)
{
    return solve_kind(ctx, s, tolerance, tested);
}

/* |b - A x| / |b|, computed afresh. */
static double true_residual(un_context *ctx, const test_system *s)
{
    double *r = malloc((size_t)s->a.n * sizeof *r), norm = 0, of_b = 0;
    un_csr_apply(ctx, r, &s->a, (un_part){0, s->a.n}, s->x);
    for (int32_t i = 0; i < s->a.n; i++) {
        norm += (s->b[i] - r[i]) * (s->b[i] - r[i]);
        of_b += s->b[i] * s->b[i];
    }
    free(r);
    return sqrt(norm / of_b);
}

static double *diagonal(test_system *s, int32_t i)
{
    for (int32_t k = s->a.row[i]; k < s->a.row[i + 1]; k++)
        if (s->a.col[k] == i) return &s->a.val[k];
    fail_msg("row %d has no diagonal", i);
    return NULL;
}

static void counts_hold_with_size(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const struct {
        bool bcc, morton;
    } systems[] = {{true, true}, {false, false}, {true, false}, {false, true}};
    for (int n = 0; n < 4; n++) {
        int32_t least = 1000, most = 0;
        for (int32_t m = 10; m <= (n < 2 ? 40 : 20); m *= 2) {
            test_lattice lattice = {systems[n].bcc ? m * 3 / 4 : m, systems[n].bcc, 1e-6, false};
            test_system s = test_system_make(lattice, systems[n].morton);
            const char *reason = "";
            if (m == 10 && !un_csr_validate(&s.a, &reason)) fail_msg("%s", reason);
            un_solve_report report = solve(ctx, &s, 1e-4);
            assert_true(report.converged);
            check_below(true_residual(ctx, &s), 1.01e-4);
            if (report.iterations < least && m > 10) least = report.iterations;
            if (report.iterations > most) most = report.iterations;
            test_system_free(&s);
        }
        /* the paper's labels depend on the numbering of rows, and its counts with them */
        int32_t spare = tested == UN_SOLVER_CHENTANEZ ? 2 : 1;
        if (most > 12 || most > 1.2 * least + spare)
            fail_msg("system %d: from %d to %d iterations", n, (int)least, (int)most);
    }
    check_context_end(ctx);
}

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        test_system s = test_system_make((test_lattice){20, true, 1e-3, false}, true);
        solve(ctx, &s, 1e-8);
        if (first)
            assert_memory_equal(first, s.x, (size_t)s.a.n * sizeof *s.x);
        else {
            first = s.x;
            s.x = NULL;
        }
        test_system_free(&s);
        check_context_end(ctx);
    }
    free(first);
}

static void closed_tanks_converge_too(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int32_t m = 4; m <= 20; m += 8)
        for (int bcc = 0; bcc < 2; bcc++) {
            test_system s = test_system_make((test_lattice){m, bcc, 1, true}, true);
            un_solve_report report = solve(ctx, &s, 1e-8);
            assert_true(report.converged);
            assert_int_equal(report.singular_count, 1);
            check_below(report.iterations, 30);
            double mean = 0;
            for (int32_t i = 0; i < s.a.n; i++) mean += s.b[i] / s.a.n;
            for (int32_t i = 0; i < s.a.n; i++) s.b[i] -= mean;
            check_below(true_residual(ctx, &s), 1.01e-8);
            /* all but closed: a pinhole fixes the level */
            *diagonal(&s, s.a.n / 3) += 1e-4;
            for (int32_t i = 0; i < s.a.n; i++) s.b[i] = s.x[i] = 0;
            s.b[s.a.n / 3] = 40e-4; /* 40 everywhere */
            report = solve(ctx, &s, 1e-8);
            assert_true(report.converged);
            assert_int_equal(report.singular_count, 0);
            /* With one size in four the paper's scheme is no better than none: 9 m iterations. */
            check_below(report.iterations, tested == UN_SOLVER_CHENTANEZ ? 12 * m : 45);
            for (int32_t i = 0; i < s.a.n; i++) check_near(s.x[i], 40, 1e-2);
            test_system_free(&s);
        }
    check_context_end(ctx);
}

/* Walls cut a closed tank into chambers, single cells and cells of which nothing is left, all of
 * them at their sites: every part is fixed up to a constant, and none may leak into another. */
static void chambers_and_single_cells(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    test_system s = test_system_make((test_lattice){27, false, 1, true}, false);
    int32_t *chamber = malloc((size_t)s.a.n * sizeof *chamber), parts = 0;
    for (int32_t i = 0; i < s.a.n; i++) {
        int32_t x = s.site[i] % 27, y = s.site[i] / 27 % 27, z = s.site[i] / 27 / 27;
        bool alone = x % 5 == 2 && y % 7 == 3 && z % 6 == 1;
        chamber[i] = alone ? 8 + parts++ : (x >= 7) + 2 * (y >= 16) + 4 * (z >= 13);
    }
    for (int32_t i = 0; i < s.a.n; i++)
        for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
            if (chamber[i] != chamber[s.a.col[k]]) {
                *diagonal(&s, i) += s.a.val[k];
                s.a.val[k] = 0;
            }
    /* one chamber is open: a pinhole, all but touching */
    *diagonal(&s, 0) += 1e7;
    double *mean = calloc((size_t)parts + 8, sizeof *mean), *size = calloc((size_t)parts + 8, 8);
    un_solve_report report = solve(ctx, &s, 1e-8);
    assert_true(report.converged && report.finite);
    assert_int_equal(report.component_count, 8 + parts);
    assert_int_equal(report.singular_count, 7 + parts);
    check_below(report.iterations,
                tested == UN_SOLVER_CHENTANEZ ? 300 : 24); /* by Jacobi at last */
    double *ax = malloc((size_t)s.a.n * sizeof *ax);
    un_csr_apply(ctx, ax, &s.a, (un_part){0, s.a.n}, s.x);
    for (int32_t i = 0; i < s.a.n; i++) {
        mean[chamber[i]] += s.b[i];
        size[chamber[i]]++;
    }
    for (int32_t i = 0; i < s.a.n; i++) {
        double part = chamber[i] == 0 ? 0 : mean[chamber[i]] / size[chamber[i]];
        assert_true(isfinite(s.x[i]));
        check_near(ax[i], s.b[i] - part, 1e-4);
        if (chamber[i] >= 8) assert_true(s.x[i] == 0);
    }
    free(chamber);
    free(mean);
    free(size);
    free(ax);
    test_system_free(&s);
    check_context_end(ctx);
}

/* Surfaces that all but touch: rows up to 1e12 times stiffer than others, at their sites. */
static void extreme_rows_converge(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int bcc = 0; bcc < 2; bcc++) {
        test_system s = test_system_make((test_lattice){18, bcc, 1e-3, false}, bcc);
        for (int32_t i = 0; i < s.a.n; i += 11)
            *diagonal(&s, i) *= pow(10, 12 * un_random((uint64_t)i, 77));
        un_solve_report report = solve(ctx, &s, 1e-8);
        assert_true(report.converged);
        check_below(report.iterations, 40);
        check_below(true_residual(ctx, &s), 1.01e-8);
        test_system_free(&s);
    }
    check_context_end(ctx);
}

/* Chains of 1, 2, 3, ... rows, every third one closed, between a tank's rows. */
static void hundreds_of_drops(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    test_system tank = test_system_make((test_lattice){12, true, 1e-6, false}, true);
    int32_t chains = 400, rows = tank.a.n, entries = tank.a.row[tank.a.n];
    for (int32_t c = 0; c < chains; c++) rows += 1 + c % 37;
    size_t room = (size_t)entries + 3 * (size_t)rows;
    test_system s = {.a = {.n = rows}};
    s.a.row = malloc(((size_t)rows + 1) * sizeof *s.a.row);
    s.a.col = malloc(room * sizeof *s.a.col);
    s.a.val = malloc(room * sizeof *s.a.val);
    s.b = malloc((size_t)rows * sizeof *s.b);
    s.x = calloc((size_t)rows, sizeof *s.x);
    memcpy(s.a.row, tank.a.row, (size_t)tank.a.n * sizeof *s.a.row);
    memcpy(s.a.col, tank.a.col, (size_t)entries * sizeof *s.a.col);
    memcpy(s.a.val, tank.a.val, (size_t)entries * sizeof *s.a.val);
    int32_t i = tank.a.n, closed = 0;
    for (int32_t c = 0; c < chains; c++) {
        int32_t length = 1 + c % 37;
        closed += c % 3 == 0;
        for (int32_t at = 0; at < length; at++, i++) {
            s.a.row[i] = entries;
            double sum = c % 3 != 0 && at == 0 ? 1e3 : 0;
            if (at > 0) {
                s.a.col[entries] = i - 1;
                s.a.val[entries++] = -1;
                sum += 1;
            }
            int32_t own = entries;
            s.a.col[entries++] = i;
            if (at < length - 1) {
                s.a.col[entries] = i + 1;
                s.a.val[entries++] = -1;
                sum += 1;
            }
            s.a.val[own] = sum;
        }
    }
    s.a.row[rows] = entries;
    for (i = 0; i < rows; i++) s.b[i] = un_random((uint64_t)i, 3) - 0.5;
    const char *reason;
    if (!un_csr_validate(&s.a, &reason)) fail_msg("%s", reason);
    un_solve_report report = solve(ctx, &s, 1e-9);
    assert_true(report.converged);
    assert_int_equal(report.component_count, 1 + chains);
    assert_int_equal(report.singular_count, closed);
    check_below(report.iterations, tested == UN_SOLVER_SA ? 90 : 40);
    test_system_free(&tank);
    test_system_free(&s);
    check_context_end(ctx);
}

/* Half-pyramids tie nodes with the wrong sign. */
static void positive_couplings_converge(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    test_system s = test_system_make((test_lattice){20, true, 1e-4, false}, true);
    for (int32_t i = 0; i < s.a.n; i++)
        for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
            if (s.a.val[k] == 0) {
                double positive = (i + s.a.col[k]) % 3 == 0 ? 0.2 : 0.02;
                s.a.val[k] = positive;
                *diagonal(&s, i) -= positive;
            }
    un_solve_report report = solve(ctx, &s, 1e-6);
    assert_true(report.converged);
    check_below(report.iterations, 30);
    check_below(true_residual(ctx, &s), 1.01e-6);
    test_system_free(&s);
    check_context_end(ctx);
}

/* Whole matrices far from 1, and rows that floats cannot hold beside the others. */
static void any_scale_converges(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int32_t counts[3];
    for (int n = 0; n < 3; n++) {
        static const double scales[] = {1, 1e200, 1e-200};
        test_system s = test_system_make((test_lattice){12, true, 1e-6, false}, true);
        for (int32_t k = 0; k < s.a.row[s.a.n]; k++) s.a.val[k] *= scales[n];
        un_solve_report report = solve(ctx, &s, 1e-8);
        assert_true(report.converged);
        counts[n] = report.iterations;
        for (int32_t i = 0; i < s.a.n; i++) s.b[i] *= 1e-30;
        memset(s.x, 0, (size_t)s.a.n * sizeof *s.x);
        assert_int_equal(solve(ctx, &s, 1e-8).iterations, counts[n]);
        test_system_free(&s);
    }
    check_near(counts[1], counts[0], 1);
    check_near(counts[2], counts[0], 1);
    test_system s = test_system_make((test_lattice){12, true, 1, false}, true);
    for (int32_t i = 0; i < s.a.n; i++)
        for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++) {
            if (i % 50 == 0) s.a.val[k] *= 1e-25;
            if (s.a.col[k] % 50 == 0) s.a.val[k] *= 1e-25;
        }
    for (int32_t i = 0; i < s.a.n; i += 50) s.b[i] *= 1e-25;
    un_solve_report report = solve(ctx, &s, 1e-8);
    assert_true(report.converged);
    for (int32_t i = 0; i < s.a.n; i++) assert_true(isfinite(s.x[i]));
    test_system_free(&s);
    check_context_end(ctx);
}

/* One row tied to all others, and a matrix without ties. */
static void stars_and_dust(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int32_t n = 20000, entries = 0;
    test_system s = {.a = {.n = n}};
    s.a.row = malloc(((size_t)n + 1) * sizeof *s.a.row);
    s.a.col = malloc(3 * (size_t)n * sizeof *s.a.col);
    s.a.val = malloc(3 * (size_t)n * sizeof *s.a.val);
    s.b = malloc((size_t)n * sizeof *s.b);
    s.x = calloc((size_t)n, sizeof *s.x);
    for (int32_t i = 0; i < n; i++) {
        s.a.row[i] = entries;
        if (i > 0) {
            s.a.col[entries] = 0;
            s.a.val[entries++] = -1;
        }
        s.a.col[entries] = i;
        s.a.val[entries++] = i == 0 ? n : 1.01;
        for (int32_t j = 1; i == 0 && j < n; j++) {
            s.a.col[entries] = j;
            s.a.val[entries++] = -1;
        }
        s.b[i] = un_random((uint64_t)i, 4);
    }
    s.a.row[n] = entries;
    un_solve_report report = solve(ctx, &s, 1e-10);
    assert_true(report.converged);
    check_below(true_residual(ctx, &s), 2e-10);
    check_below(report.iterations, 40);
    for (int32_t i = 0; i <= n; i++) s.a.row[i] = i;
    for (int32_t i = 0; i < n; i++) {
        s.a.col[i] = i;
        s.a.val[i] = 1 + i;
        s.x[i] = 0;
    }
    report = solve(ctx, &s, 1e-6);
    assert_true(report.converged);
    check_below(report.iterations, 4);
    test_system_free(&s);
    check_context_end(ctx);
}

/* Rows numbered at random: nearly all couplings leave their block. */
static void any_numbering_converges(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    test_system s = test_system_make((test_lattice){20, true, 1e-3, false}, true);
    int32_t n = s.a.n, *to = malloc((size_t)n * sizeof *to), *from = malloc((size_t)n * sizeof *to);
    for (int32_t i = 0; i < n; i++) from[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t j = (int32_t)(un_random((uint64_t)i, 6) * (i + 1)), keep = from[i];
        from[i] = from[j];
        from[j] = keep;
    }
    for (int32_t i = 0; i < n; i++) to[from[i]] = i;
    test_system t = {.a = {.n = n}};
    t.a.row = malloc(((size_t)n + 1) * sizeof *t.a.row);
    t.a.col = malloc((size_t)s.a.row[n] * sizeof *t.a.col);
    t.a.val = malloc((size_t)s.a.row[n] * sizeof *t.a.val);
    t.b = malloc((size_t)n * sizeof *t.b);
    t.x = calloc((size_t)n, sizeof *t.x);
    t.a.row[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t at = t.a.row[i], first = s.a.row[from[i]], end = s.a.row[from[i] + 1];
        for (int32_t k = first; k < end; k++) t.a.col[at++] = to[s.a.col[k]];
        qsort(t.a.col + t.a.row[i], (size_t)(end - first), sizeof *t.a.col, test_compare);
        for (int32_t q = t.a.row[i]; q < at; q++)
            for (int32_t k = first; k < end; k++)
                if (to[s.a.col[k]] == t.a.col[q]) t.a.val[q] = s.a.val[k];
        t.a.row[i + 1] = at;
        t.b[i] = s.b[from[i]];
    }
    un_solve_report report = solve(ctx, &t, 1e-6);
    assert_true(report.converged);
    check_below(report.iterations, 22);
    solve(ctx, &s, 1e-6);
    double most = 0;
    for (int32_t i = 0; i < n; i++) most = fmax(most, fabs(s.x[i]));
    for (int32_t i = 0; i < n; i++) check_near(t.x[i], s.x[from[i]], 1e-4 * most);
    free(to);
    free(from);
    test_system_free(&s);
    test_system_free(&t);
    check_context_end(ctx);
}

/* Cliques of four rows, far apart, whose couplings are positive: Jacobi between blocks alone would
 * diverge. */
static void positive_couplings_between_blocks_converge(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int32_t apart = 5000, n = 4 * apart;
    test_system s = {.a = {.n = n}};
    s.a.row = malloc(((size_t)n + 1) * sizeof *s.a.row);
    s.a.col = malloc(4 * (size_t)n * sizeof *s.a.col);
    s.a.val = malloc(4 * (size_t)n * sizeof *s.a.val);
    s.b = malloc((size_t)n * sizeof *s.b);
    s.x = calloc((size_t)n, sizeof *s.x);
    for (int32_t i = 0; i < n; i++) {
        s.a.row[i] = 4 * i;
        for (int32_t q = 0; q < 4; q++) {
            int32_t j = i % apart + q * apart;
            s.a.col[4 * i + q] = j;
            s.a.val[4 * i + q] = i == j ? 1 : 0.8 + 0.1 * un_random((uint64_t)(i % apart), 2);
        }
        s.b[i] = un_random((uint64_t)i, 4);
    }
    s.a.row[n] = 4 * n;
    un_solve_report report = solve(ctx, &s, 1e-8);
    assert_true(report.converged);
    check_below(report.iterations, 30);
    check_below(true_residual(ctx, &s), 1.01e-8);
    test_system_free(&s);
    check_context_end(ctx);
}

/* One solver for systems that grow and shrink; a good guess pays. */
static void one_solver_for_many_systems(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_solver *solver;
    check_ok(ctx, un_solver_create(ctx, &solver));
    un_solver_set_kind(solver, tested);
    static const int32_t sizes[] = {12, 20, 3, 1, 16};
    for (int n = 0; n < 5; n++) {
        test_system s = test_system_make((test_lattice){sizes[n], true, 1e-6, n == 3}, n % 2);
        un_system system = {.a = &s.a, .b = s.b, .sites = &s.sites};
        un_solve_report cold, warm;
        check_ok(ctx, un_solver_solve(solver, &system, s.x, 1e-6, 100, &cold));
        assert_true(cold.converged);
        check_below(cold.iterations, 25);
        for (int32_t i = 0; i < s.a.n; i++) s.x[i] *= 1 + 1e-3 * un_random((uint64_t)i / 100, 8);
        check_ok(ctx, un_solver_solve(solver, &system, s.x, 1e-6, 100, &warm));
        assert_true(warm.converged);
        if (sizes[n] > 10) check_below(warm.iterations, 0.75 * cold.iterations);
        test_system_free(&s);
    }
    un_solver_destroy(solver);
    check_context_end(ctx);
}

static void auto_chooses_by_size_and_stencil(void **state)
{
    (void)state;
    static const struct {
        test_lattice lattice;
        un_solver_kind want;
    } cases[] = {{{6, true, 1e-6, false}, UN_SOLVER_JACOBI},
                 {{12, false, 1e-6, false}, UN_SOLVER_MIC},
                 {{30, true, 1e-6, false}, UN_SOLVER_GEOMETRIC},
                 {{30, false, 1e-6, false}, UN_SOLVER_GEOMETRIC}};
    un_context *ctx = check_context();
    for (int n = 0; n < 4; n++) {
        test_system s = test_system_make(cases[n].lattice, cases[n].lattice.bcc);
        size_t before = un_context_peak_bytes(ctx);
        un_solve_report report = solve_kind(ctx, &s, 1e-4, UN_SOLVER_AUTO);
        assert_true(report.converged);
        assert_int_equal(report.kind, cases[n].want);
        double bytes = (double)un_context_peak_bytes(ctx), foretold = un_solver_bytes(s.a.n);
        if (bytes > before) /* it set a new peak */
            if (bytes > 1.15 * foretold || (n > 0 && bytes < 0.8 * foretold))
                fail_msg("case %d: %g bytes, foretold %g", n, bytes, foretold);
        if (cases[n].want == UN_SOLVER_GEOMETRIC) { /* nothing to go by */
            s.sites.kind = UN_SITES_NONE;
            memset(s.x, 0, (size_t)s.a.n * sizeof *s.x);
            assert_int_equal(solve_kind(ctx, &s, 1e-4, UN_SOLVER_AUTO).kind, UN_SOLVER_AMG);
        }
        test_system_free(&s);
    }
    check_context_end(ctx);
}

static un_status solve_once(un_context *ctx, void *arg)
{
    test_system *s = arg;
    un_solver *solver;
    un_solve_report report;
    UN_TRY(un_solver_create(ctx, &solver));
    un_solver_set_kind(solver, tested);
    un_system system = {.a = &s->a, .b = s->b, .sites = &s->sites};
    memset(s->x, 0, (size_t)s->a.n * sizeof *s->x);
    un_status status = un_solver_solve(solver, &system, s->x, 1e-2, 100, &report);
    un_solver_destroy(solver);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    test_system s = test_system_make((test_lattice){14, true, 1e-2, false}, true);
    check_allocation_failures(solve_once, &s, 200);
    test_system_free(&s);
}

int main(void)
{
    check_races_in("same_bits*");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_hold_with_size),
        cmocka_unit_test(same_bits_for_any_thread_count),
        cmocka_unit_test(closed_tanks_converge_too),
        cmocka_unit_test(chambers_and_single_cells),
        cmocka_unit_test(extreme_rows_converge),
        cmocka_unit_test(hundreds_of_drops),
        cmocka_unit_test(positive_couplings_converge),
        cmocka_unit_test(any_scale_converges),
        cmocka_unit_test(stars_and_dust),
        cmocka_unit_test(any_numbering_converges),
        cmocka_unit_test(positive_couplings_between_blocks_converge),
        cmocka_unit_test(one_solver_for_many_systems),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    const struct CMUnitTest choice[] = {
        cmocka_unit_test(auto_chooses_by_size_and_stencil),
    };
    int failed = 0;
    for (tested = UN_SOLVER_AMG; tested <= UN_SOLVER_GEOMETRIC; tested++)
        failed += cmocka_run_group_tests_name(un_solver_kind_names[tested], tests, NULL, NULL);
    return failed + cmocka_run_group_tests(choice, NULL, NULL);
}
