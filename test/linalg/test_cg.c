/* Conjugate gradients with each preconditioner: known solutions, singular and broken systems. */
#include "check.h"
#include "linalg/linalg.h"

static un_solver_kind kind; /* the one under test */
static bool may_fall_back;  /* to Jacobi, where the preconditioner cannot be positive */

/* The Laplacian of a box of cells, x fastest; closed but for the cells of the last layer along
 * axis `open` (-1: closed all round), which are anchored. */
typedef struct system_box {
    un_csr a;
    int32_t n[3];
    double *x, *b, *want;
    int32_t *site; /* NULL: not known */
    un_columns columns;
    bool again;
} system_box;

static un_status make_solver(un_context *ctx, un_solver **solver)
{
    UN_TRY(un_solver_create(ctx, solver));
    un_solver_set_kind(*solver, kind);
    return UN_OK;
}

static un_status solve_box(un_solver *solver, system_box *s, double tolerance, int32_t limit,
                           un_solve_report *report)
{
    un_sites sites = {.kind = UN_SITES_GRID, .size = {s->n[0], s->n[1], s->n[2]}, .site = s->site};
    un_system system = {.a = &s->a,
                        .columns = s->columns.count > 0 ? &s->columns : NULL,
                        .b = s->b,
                        .sites = s->site ? &sites : NULL,
                        .again = s->again};
    return un_solver_solve(solver, &system, s->x, tolerance, limit, report);
}

static system_box make_box(int32_t nx, int32_t ny, int32_t nz, int open)
{
    system_box s = {.n = {nx, ny, nz}};
    int32_t count = nx * ny * nz, entry = 0;
    s.a.n = count;
    s.a.row = calloc((size_t)count + 1, sizeof *s.a.row);
    s.a.col = calloc(7 * (size_t)count, sizeof *s.a.col);
    s.a.val = calloc(7 * (size_t)count, sizeof *s.a.val);
    s.x = calloc((size_t)count, sizeof *s.x);
    s.b = calloc((size_t)count, sizeof *s.b);
    s.want = calloc((size_t)count, sizeof *s.want);
    s.site = calloc((size_t)count, sizeof *s.site);
    for (int32_t c = 0; c < count; c++) s.site[c] = c;
    int32_t stride[3] = {1, nx, nx * ny};
    for (int32_t c = 0; c < count; c++) {
        int32_t at[3] = {c % nx, c / nx % ny, c / (nx * ny)}, own = -1;
        double diagonal = 0;
        s.a.row[c] = entry;
        for (int side = -3; side <= 3; side++) {
            int axis = abs(side) - 1;
            if (side == 0) {
                own = entry;
                s.a.col[entry++] = c;
                continue;
            }
            bool inside = side < 0 ? at[axis] > 0 : at[axis] < s.n[axis] - 1;
            if (inside) {
                s.a.col[entry] = c + (side < 0 ? -stride[axis] : stride[axis]);
                s.a.val[entry++] = -1;
            }
            if (inside || (side > 0 && axis == open)) diagonal += 1;
        }
        s.a.val[own] = diagonal;
    }
    s.a.row[count] = entry;
    const char *reason;
    if (!un_csr_validate(&s.a, &reason)) fail_msg("%s", reason);
    return s;
}

static void free_box(system_box *s)
{
    void *blocks[] = {s->a.row, s->a.col, s->a.val, s->x, s->b, s->want, s->site};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* b = A want for a solution of random values. */
static void manufacture(un_context *ctx, system_box *s, uint64_t stream)
{
    for (int32_t i = 0; i < s->a.n; i++) s->want[i] = un_random((uint64_t)i, stream) - 0.5;
    un_csr_apply(ctx, s->b, &s->a, (un_part){0, s->a.n}, s->want);
}

static double largest_difference(const double *a, const double *b, int32_t n)
{
    double max = 0;
    for (int32_t i = 0; i < n; i++) max = fmax(max, isfinite(a[i]) ? fabs(a[i] - b[i]) : INFINITY);
    return max;
}

/* The residual as anyone can compute it, relative to |b|. */
static double true_residual(un_context *ctx, const system_box *s)
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

static un_solve_report solve_within(un_context *ctx, system_box *s, double tolerance, int32_t limit)
{
    un_solver *solver;
    un_solve_report report;
    check_ok(ctx, make_solver(ctx, &solver));
    check_ok(ctx, solve_box(solver, s, tolerance, limit, &report));
    un_solver_kind want = kind == UN_SOLVER_GEOMETRIC && !s->site ? UN_SOLVER_AMG : kind;
    if (may_fall_back && report.kind == UN_SOLVER_JACOBI) want = UN_SOLVER_JACOBI;
    if (report.iterations > 0) assert_int_equal(report.kind, want);
    un_solver_destroy(solver);
    return report;
}
static un_solve_report solve(un_context *ctx, system_box *s, double tolerance)
{
    return solve_within(ctx, s, tolerance, 3000);
}

static void finds_known_solutions_in_one_two_and_three_dimensions(void **state)
{
    (void)state;
    static const int32_t sizes[][3] = {{500, 1, 1}, {1, 300, 1},  {1, 1, 100}, {60, 50, 1},
                                       {1, 40, 40}, {24, 20, 28}, {1, 1, 1},   {2, 1, 1}};
    un_context *ctx = check_context();
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (int open = 0; open < 3; open++) {
            system_box s = make_box(sizes[n][0], sizes[n][1], sizes[n][2], open);
            manufacture(ctx, &s, n);
            un_solve_report report = solve(ctx, &s, 1e-12);
            assert_true(report.converged && report.finite);
            assert_int_equal(report.component_count, 1);
            assert_int_equal(report.singular_count, 0);
            check_below(largest_difference(s.x, s.want, s.a.n), 1e-6);
            check_near(report.residual, true_residual(ctx, &s), 1e-11);
            free_box(&s);
        }
    check_context_end(ctx);
}

/* In one dimension MIC(0) is all but the exact factorization, so CG ends at once. A broken
 * preconditioner still converges, only slowly: the counts would tell. */
static void mic_earns_its_keep(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box line = make_box(4000, 1, 1, 0);
    manufacture(ctx, &line, 1);
    assert_in_range(solve(ctx, &line, 1e-8).iterations, 1, 3);
    free_box(&line);
    /* a smooth answer in a single block of rows: 27 iterations, plain IC(0) takes 44 */
    system_box box = make_box(16, 30, 16, 1);
    for (int32_t c = 0; c < box.a.n; c++) box.b[c] = c / 16 % 30 == 0;
    assert_in_range(solve(ctx, &box, 1e-6).iterations, 1, 33);
    free_box(&box);
    check_context_end(ctx);
}

static void exact_guess_takes_no_iteration(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(12, 13, 14, 1);
    manufacture(ctx, &s, 3);
    memcpy(s.x, s.want, (size_t)s.a.n * sizeof *s.x);
    un_solve_report report = solve(ctx, &s, 1e-8);
    assert_int_equal(report.iterations, 0);
    assert_true(report.converged);
    assert_memory_equal(s.x, s.want, (size_t)s.a.n * sizeof *s.x);
    /* a good guess saves work, a bad one costs none */
    system_box cold = make_box(12, 13, 14, 1);
    manufacture(ctx, &cold, 3);
    int32_t from_zero = solve(ctx, &cold, 1e-8).iterations;
    for (int32_t i = 0; i < s.a.n; i++) s.x[i] = s.want[i] * (1 + 1e-4 * un_random((uint64_t)i, 9));
    assert_in_range(solve(ctx, &s, 1e-8).iterations, 1, from_zero - 1);
    for (int32_t i = 0; i < s.a.n; i++) s.x[i] = 1e9 * un_random((uint64_t)i, 9);
    assert_int_equal(solve(ctx, &s, 1e-8).iterations, from_zero);
    free_box(&s);
    free_box(&cold);
    check_context_end(ctx);
}

static double mean(const double *v, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += v[i];
    return sum / n;
}

static void closed_box_is_solved_up_to_its_mean(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(10, 12, 14, -1);
    manufacture(ctx, &s, 4);
    double shift = 1.5 - mean(s.want, s.a.n);
    for (int32_t i = 0; i < s.a.n; i++) {
        s.want[i] += shift;
        s.x[i] = 1.5; /* the guess's mean stays */
    }
    un_solve_report report = solve(ctx, &s, 1e-12);
    assert_true(report.converged);
    assert_int_equal(report.singular_count, 1);
    check_below(largest_difference(s.x, s.want, s.a.n), 1e-8);
    /* A part that no answer has is left aside. */
    for (int32_t i = 0; i < s.a.n; i++) {
        s.b[i] += 0.7;
        s.x[i] = 1.5;
    }
    report = solve(ctx, &s, 1e-12);
    assert_true(report.converged);
    check_below(largest_difference(s.x, s.want, s.a.n), 1e-8);
    /* Nothing but that part. */
    for (int32_t i = 0; i < s.a.n; i++) s.b[i] = 3;
    report = solve(ctx, &s, 1e-12);
    assert_true(report.converged);
    for (int32_t i = 0; i < s.a.n; i++) assert_true(isfinite(s.x[i]) && fabs(s.x[i]) < 10);
    free_box(&s);
    check_context_end(ctx);
}

/* A box closed but for one pinhole is not singular: its level hangs on the pinhole. */
static void weakly_anchored_box_keeps_its_level(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(8, 8, 8, -1);
    for (int32_t k = s.a.row[100]; k < s.a.row[101]; k++)
        if (s.a.col[k] == 100) s.a.val[k] += 1e-3;
    manufacture(ctx, &s, 12);
    for (int32_t i = 0; i < s.a.n; i++) s.want[i] += 40;
    un_csr_apply(ctx, s.b, &s.a, (un_part){0, s.a.n}, s.want);
    un_solve_report report = solve(ctx, &s, 1e-13);
    assert_int_equal(report.singular_count, 0);
    assert_true(report.converged);
    check_below(largest_difference(s.x, s.want, s.a.n), 1e-5);
    free_box(&s);
    check_context_end(ctx);
}

/* Several boxes in one matrix: part n of it starts at row first[n]. */
static system_box join(const system_box *parts, int32_t count, int32_t *first)
{
    system_box s = {0};
    int32_t rows = 0, entries = 0;
    for (int32_t n = 0; n < count; n++) {
        first[n] = rows;
        rows += parts[n].a.n;
        entries += parts[n].a.row[parts[n].a.n];
    }
    s.a.n = rows;
    s.a.row = calloc((size_t)rows + 1, sizeof *s.a.row);
    s.a.col = calloc((size_t)entries, sizeof *s.a.col);
    s.a.val = calloc((size_t)entries, sizeof *s.a.val);
    s.x = calloc((size_t)rows, sizeof *s.x);
    s.b = calloc((size_t)rows, sizeof *s.b);
    s.want = calloc((size_t)rows, sizeof *s.want);
    int32_t entry = 0;
    for (int32_t n = 0; n < count; n++)
        for (int32_t i = 0; i < parts[n].a.n; i++) {
            s.a.row[first[n] + i] = entry;
            s.b[first[n] + i] = parts[n].b[i];
            s.want[first[n] + i] = parts[n].want[i];
            for (int32_t k = parts[n].a.row[i]; k < parts[n].a.row[i + 1]; k++, entry++) {
                s.a.col[entry] = first[n] + parts[n].a.col[k];
                s.a.val[entry] = parts[n].a.val[k];
            }
        }
    s.a.row[rows] = entry;
    return s;
}

static void several_components_some_of_them_closed(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box parts[5] = {make_box(6, 7, 8, 1), make_box(5, 5, 5, -1), make_box(1, 1, 1, 2),
                           make_box(9, 3, 4, -1), make_box(4, 4, 1, 0)};
    int32_t first[5];
    for (int n = 0; n < 5; n++) {
        manufacture(ctx, &parts[n], (uint64_t)n);
        double part_mean = mean(parts[n].want, parts[n].a.n);
        if (n == 1 || n == 3)
            for (int32_t i = 0; i < parts[n].a.n; i++) {
                parts[n].want[i] -= part_mean;
                parts[n].b[i] += n; /* incompatible by different amounts */
            }
    }
    system_box s = join(parts, 5, first);
    un_solve_report report = solve(ctx, &s, 1e-12);
    assert_true(report.converged);
    assert_int_equal(report.component_count, 5);
    assert_int_equal(report.singular_count, 2);
    check_below(largest_difference(s.x, s.want, s.a.n), 1e-8);
    free_box(&s);
    for (int n = 0; n < 5; n++) free_box(&parts[n]);
    check_context_end(ctx);
}

static void rows_of_zeros_give_zero(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(8, 8, 8, 1);
    manufacture(ctx, &s, 5);
    /* Take rows out of the system: nothing in them, nothing towards them. */
    int32_t dead[3] = {0, 100, 511};
    for (int n = 0; n < 3; n++)
        for (int32_t i = 0; i < s.a.n; i++)
            for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
                if (i == dead[n] || s.a.col[k] == dead[n]) s.a.val[k] = 0;
    for (int n = 0; n < 3; n++) s.want[dead[n]] = 0;
    un_csr_apply(ctx, s.b, &s.a, (un_part){0, s.a.n}, s.want);
    for (int n = 0; n < 3; n++) {
        s.b[dead[n]] = 1;
        s.x[dead[n]] = 7; /* a guess that costs no residual */
    }
    un_solve_report report = solve(ctx, &s, 1e-12);
    assert_true(report.converged && report.finite);
    check_below(largest_difference(s.x, s.want, s.a.n), 1e-8);
    free_box(&s);
    check_context_end(ctx);
}

/* D A D with D from 1e-3 to 1e3: diagonals over twelve orders of magnitude. */
static void scaled_rows_converge(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(10, 10, 10, 1);
    for (int32_t i = 0; i < s.a.n; i++)
        for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
            s.a.val[k] *= pow(10, (i % 7 - 3) + (s.a.col[k] % 7 - 3));
    manufacture(ctx, &s, 6);
    un_solve_report report = solve(ctx, &s, 1e-8);
    assert_true(report.converged);
    check_below(true_residual(ctx, &s), 2e-8);
    free_box(&s);
    /* One row far stiffer than the rest, as a surface that all but touches a cell's centre. */
    s = make_box(10, 10, 10, 1);
    for (int32_t i = 95; i < 1000; i += 100)
        for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
            if (s.a.col[k] == i) s.a.val[k] += 1e6;
    manufacture(ctx, &s, 6);
    for (int32_t i = 95; i < 1000; i += 100) s.want[i] *= 1e-6;
    un_csr_apply(ctx, s.b, &s.a, (un_part){0, s.a.n}, s.want);
    report = solve(ctx, &s, 1e-12);
    assert_true(report.converged);
    check_below(report.iterations, kind == UN_SOLVER_JACOBI ? 120 : 60);
    check_below(largest_difference(s.x, s.want, s.a.n), 1e-7);
    free_box(&s);
    check_context_end(ctx);
}

static void what_is_not_finite_is_reported(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    un_context *ctx = check_context();
    for (int n = 0; n < 3; n++)
        for (int where = 0; where < 4; where++) {
            system_box s = make_box(7, 7, 7, where == 3 ? -1 : 1);
            manufacture(ctx, &s, 7);
            if (where == 0) s.a.val[s.a.row[s.a.n] / 2] = bad[n];
            if (where == 1 || where == 3) s.b[s.a.n / 2] = bad[n];
            if (where == 2) s.x[s.a.n / 2] = bad[n];
            un_solve_report report = solve(ctx, &s, 1e-12);
            assert_true(report.finite == (where == 2));
            assert_true(report.converged == (where == 2));
            for (int32_t i = 0; i < s.a.n; i++) assert_true(isfinite(s.x[i]));
            if (where == 2) check_below(largest_difference(s.x, s.want, s.a.n), 1e-7);
            free_box(&s);
        }
    check_context_end(ctx);
}

static void empty_system_and_zero_right_hand_side(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(5, 5, 5, 1);
    for (int32_t i = 0; i < s.a.n; i++) s.x[i] = 1;
    un_solve_report report = solve(ctx, &s, 1e-6);
    assert_true(report.converged);
    for (int32_t i = 0; i < s.a.n; i++) assert_true(s.x[i] == 0);
    int32_t rows = s.a.n;
    s.a.n = 0;
    report = solve(ctx, &s, 1e-6);
    assert_true(report.converged && report.finite && report.iterations == 0);
    s.a.n = rows;
    free_box(&s);
    check_context_end(ctx);
}

/* A solver that knows its matrix from the last solve, of which it may have needed nothing, finds
 * what a new one finds; and one that is given another matrix does, too. */
static void known_matrices_serve_again(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(12, 9, 7, 1);
    size_t bytes = (size_t)s.a.n * sizeof *s.x;
    double *x = malloc(bytes);
    un_solver *solver;
    un_solve_report report, fresh;
    check_ok(ctx, make_solver(ctx, &solver));
    for (uint64_t stream = 1; stream <= 4; stream++) {
        manufacture(ctx, &s, stream);
        memset(s.x, 0, bytes);
        if (stream == 1) memcpy(s.x, s.want, bytes);
        if (stream == 4)
            for (int32_t i = 0; i < s.a.n; i++)
                for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
                    if (s.a.col[k] == i) s.a.val[k] += i % 3 * 40;
        s.again = stream == 2 || stream == 3;
        check_ok(ctx, solve_box(solver, &s, 1e-6, 3000, &report));
        assert_true(stream == 1 ? report.iterations == 0 : report.iterations > 0);
        memcpy(x, s.x, bytes);
        s.again = false;
        memset(s.x, 0, bytes);
        fresh = solve(ctx, &s, 1e-6);
        if (stream == 1) continue;
        assert_int_equal(report.iterations, fresh.iterations);
        assert_memory_equal(x, s.x, bytes);
    }
    un_solver_destroy(solver);
    free(x);
    free_box(&s);
    check_context_end(ctx);
}

static void running_out_of_iterations_is_data(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(20, 20, 20, 1);
    manufacture(ctx, &s, 8);
    un_solver *solver;
    un_solve_report report;
    check_ok(ctx, make_solver(ctx, &solver));
    check_ok(ctx, solve_box(solver, &s, 1e-12, 3, &report));
    assert_false(report.converged);
    assert_int_equal(report.iterations, 3);
    check_near(report.residual, true_residual(ctx, &s), 1e-12);
    /* the same solver goes on from there, and takes smaller systems too */
    check_ok(ctx, solve_box(solver, &s, 1e-12, 1000, &report));
    assert_true(report.converged);
    system_box small = make_box(3, 3, 3, 0);
    manufacture(ctx, &small, 8);
    check_ok(ctx, solve_box(solver, &small, 1e-12, 1000, &report));
    check_below(largest_difference(small.x, small.want, small.a.n), 1e-9);
    un_solver_destroy(solver);
    free_box(&s);
    free_box(&small);
    check_context_end(ctx);
}

/* Not a system that can be solved this way: it must end, with numbers, and say so. */
static void indefinite_systems_end(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int n = 0; n < 3; n++) {
        system_box s = make_box(12, 14, 16, 1);
        manufacture(ctx, &s, 11);
        for (int32_t i = 7; i < s.a.n; i += n == 0 ? 100000 : 50)
            for (int32_t k = s.a.row[i]; k < s.a.row[i + 1]; k++)
                if (s.a.col[k] == i) s.a.val[k] *= n == 2 ? 0 : -1;
        un_csr_apply(ctx, s.b, &s.a, (un_part){0, s.a.n}, s.want);
        may_fall_back = true;
        un_solve_report report = solve_within(ctx, &s, 1e-10, 300);
        may_fall_back = false;
        for (int32_t i = 0; i < s.a.n; i++) assert_true(isfinite(s.x[i]));
        assert_true(report.finite && isfinite(report.residual));
        if (n > 0 && kind != UN_SOLVER_PETSC) assert_false(report.converged); /* or by luck */
        if (report.converged) check_below(true_residual(ctx, &s), 1e-8);
        free_box(&s);
    }
    check_context_end(ctx);
}

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        system_box s = make_box(24, 26, 28, 1); /* several blocks of rows */
        manufacture(ctx, &s, 9);
        solve(ctx, &s, 1e-4);
        if (first)
            assert_memory_equal(first, s.x, (size_t)s.a.n * sizeof *s.x);
        else {
            first = s.x;
            s.x = NULL;
        }
        free_box(&s);
        check_context_end(ctx);
    }
    free(first);
}

static void validation_finds_each_defect(void **state)
{
    (void)state;
    static const char *const reasons[] = {"start at 0",   "descend",  "out of range",
                                          "out of range", "ascend",   "finite",
                                          "symmetric",    "diagonal", "symmetric"};
    for (int defect = 0; defect < 9; defect++) {
        system_box s = make_box(4, 4, 4, 1);
        int32_t k = 1, *row = s.a.row, *col = s.a.col;
        if (defect == 0) row[0] = 1;
        if (defect == 1) row[30] = row[31] + 1;
        if (defect == 2) col[k] = -1;
        if (defect == 3) col[k] = s.a.n;
        if (defect == 4) col[k + 1] = col[k];
        if (defect == 5) s.a.val[k] = NAN;
        if (defect == 6) s.a.val[k] *= 1.001;
        if (defect == 7) /* the first row becomes its upper part */
            for (int32_t i = 0; i < s.a.n; i++)
                if (i > 0) row[i]--;
        if (defect == 7) {
            row[s.a.n]--;
            memmove(col, col + 1, (size_t)row[s.a.n] * sizeof *col);
            memmove(s.a.val, s.a.val + 1, (size_t)row[s.a.n] * sizeof *s.a.val);
        }
        if (defect == 8) s.a.val[k] = 0;
        const char *reason = "valid";
        assert_false(un_csr_validate(&s.a, &reason));
        if (!strstr(reason, reasons[defect])) fail_msg("defect %d: %s", defect, reason);
        free_box(&s);
    }
}

static un_status solve_once(un_context *ctx, void *arg)
{
    system_box *s = arg;
    un_solver *solver;
    un_solve_report report;
    UN_TRY(make_solver(ctx, &solver));
    memset(s->x, 0, (size_t)s->a.n * sizeof *s->x);
    un_status status = solve_box(solver, s, 1e-8, 1000, &report);
    un_solver_destroy(solver);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    system_box s = make_box(6, 6, 6, -1);
    manufacture(ctx, &s, 10);
    check_allocation_failures(solve_once, &s, 100);
    free_box(&s);
    check_context_end(ctx);
}

int main(void)
{
    check_races_in("same_bits*");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_known_solutions_in_one_two_and_three_dimensions),
        cmocka_unit_test(exact_guess_takes_no_iteration),
        cmocka_unit_test(closed_box_is_solved_up_to_its_mean),
        cmocka_unit_test(weakly_anchored_box_keeps_its_level),
        cmocka_unit_test(several_components_some_of_them_closed),
        cmocka_unit_test(rows_of_zeros_give_zero),
        cmocka_unit_test(scaled_rows_converge),
        cmocka_unit_test(what_is_not_finite_is_reported),
        cmocka_unit_test(empty_system_and_zero_right_hand_side),
        cmocka_unit_test(known_matrices_serve_again),
        cmocka_unit_test(running_out_of_iterations_is_data),
        cmocka_unit_test(indefinite_systems_end),
        cmocka_unit_test(same_bits_for_any_thread_count),
        cmocka_unit_test(validation_finds_each_defect),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    const struct CMUnitTest mic_tests[] = {
        cmocka_unit_test(mic_earns_its_keep),
    };
    int failed = 0;
    for (kind = UN_SOLVER_JACOBI; kind < UN_SOLVER_KIND_COUNT; kind++)
        if (un_solver_kind_available(kind))
            failed += cmocka_run_group_tests_name(un_solver_kind_names[kind], tests, NULL, NULL);
    kind = UN_SOLVER_MIC;
    return failed + cmocka_run_group_tests(mic_tests, NULL, NULL);
}
