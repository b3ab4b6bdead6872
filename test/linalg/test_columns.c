/* Systems with columns, as bodies make them that the liquid moves: the answers of dense solves,
 * iterations that do not depend on how light a body is, closed tanks, threads. */
#include "check.h"
#include "linalg/linalg.h"

/* A tank of cubes with solid boxes in it; the top is open unless it is closed. Cell by cell the
 * Laplacian, with q = p dt / rho; each box is a body of six columns. */
#define BODIES_MAX 8
typedef struct raft {
    un_csr a;
    un_columns columns;
    un_sites sites;
    int32_t *site, *first, *row;
    double *val, *b, *x;
} raft;

typedef struct raft_def {
    int32_t m; /* cells along each side */
    int32_t body_count;
    int32_t low[BODIES_MAX][3], size; /* in cells */
    double density;                   /* over the liquid's */
    bool closed;
} raft_def;

/* The body in a cell; -1: liquid, -2: beyond the walls, -3: the air above. */
static int32_t what(const raft_def *d, const int32_t at[3])
{
    if (at[1] >= d->m) return d->closed ? -2 : -3;
    for (int a = 0; a < 3; a++)
        if (at[a] < 0 || at[a] >= d->m) return -2;
    for (int32_t k = 0; k < d->body_count; k++) {
        bool in = true;
        for (int a = 0; a < 3; a++) in &= at[a] >= d->low[k][a] && at[a] < d->low[k][a] + d->size;
        if (in) return k;
    }
    return -1;
}

static raft raft_make(const raft_def *d)
{
    raft r = {0};
    int32_t m = d->m, cells = m * m * m, n = 0, entry = 0;
    int32_t *index = malloc((size_t)cells * sizeof *index);
    r.site = malloc((size_t)cells * sizeof *r.site);
    for (int32_t c = 0; c < cells; c++) {
        int32_t at[3] = {c % m, c / m % m, c / m / m};
        index[c] = what(d, at) == -1 ? n : -1;
        if (index[c] >= 0) r.site[n++] = c;
    }
    r.a.n = n;
    r.a.row = malloc(((size_t)n + 1) * sizeof *r.a.row);
    r.a.col = malloc(7 * (size_t)n * sizeof *r.a.col);
    r.a.val = malloc(7 * (size_t)n * sizeof *r.a.val);
    r.b = malloc((size_t)n * sizeof *r.b);
    r.x = calloc((size_t)n, sizeof *r.x);
    int32_t count = 6 * d->body_count, room = 6 * d->size * d->size * 6 * d->body_count;
    r.first = calloc((size_t)count + 1, sizeof *r.first);
    r.row = malloc(((size_t)room + 1) * sizeof *r.row);
    r.val = malloc(((size_t)room + 1) * sizeof *r.val);
    double(*dense)[6] = calloc((size_t)n * (size_t)(d->body_count + 1), sizeof *dense);
    for (int32_t i = 0; i < n; i++) {
        int32_t c = r.site[i], at[3] = {c % m, c / m % m, c / m / m};
        double diagonal = 0;
        r.a.row[i] = entry;
        int32_t place = -1;
        for (int side = -3; side <= 3; side++) {
            if (side == 0) {
                place = entry;
                r.a.col[entry++] = i;
                continue;
            }
            int axis = abs(side) - 1, way = side < 0 ? -1 : 1;
            int32_t next[3] = {at[0], at[1], at[2]};
            next[axis] += way;
            int32_t there = what(d, next);
            diagonal += there == -1 ? 1 : there == -3 ? 2 : 0;
            if (there == -1) {
                r.a.col[entry] = index[next[0] + m * (next[1] + m * next[2])];
                r.a.val[entry++] = -1;
            }
            if (there < 0) continue;
            /* what the pressure here pushes, in units of a cell */
            double arm[3], half = 0.5 * d->size, cube = (double)d->size * d->size * d->size;
            for (int k = 0; k < 3; k++) arm[k] = at[k] + 0.5 - d->low[there][k] - half;
            arm[axis] += 0.5 * way;
            double *row = dense[(size_t)there * (size_t)n + (size_t)i];
            double push = way / sqrt(d->density * cube);
            double turn = way / sqrt(d->density * cube * d->size * d->size / 6);
            row[axis] += push;
            row[3 + (axis + 1) % 3] += turn * arm[(axis + 2) % 3];
            row[3 + (axis + 2) % 3] -= turn * arm[(axis + 1) % 3];
        }
        r.a.val[place] = diagonal;
        r.b[i] = un_random((uint64_t)i, 3) - 0.5;
    }
    r.a.row[n] = entry;
    int32_t e = 0;
    for (int32_t k = 0; k < count; k++) {
        for (int32_t i = 0; i < n; i++) {
            double v = dense[(size_t)(k / 6) * (size_t)n + (size_t)i][k % 6];
            if (v == 0) continue;
            r.row[e] = i;
            r.val[e++] = v;
        }
        r.first[k + 1] = e;
    }
    assert_true(e <= room);
    r.columns = (un_columns){count, r.first, r.row, r.val};
    r.sites = (un_sites){.kind = UN_SITES_GRID, .size = {m, m, m}, .site = r.site};
    free(dense);
    free(index);
    return r;
}

static void raft_free(raft *r)
{
    void *blocks[] = {r->a.row, r->a.col, r->a.val, r->site, r->first, r->row, r->val, r->b, r->x};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

static un_status raft_try(un_context *ctx, raft *r, un_solver_kind kind, bool with,
                          double tolerance, un_solve_report *report)
{
    un_solver *solver;
    UN_TRY(un_solver_create(ctx, &solver));
    un_solver_set_kind(solver, kind);
    un_system system = {
        .a = &r->a, .columns = with ? &r->columns : NULL, .b = r->b, .sites = &r->sites};
    un_status status = un_solver_solve(solver, &system, r->x, tolerance, 3000, report);
    un_solver_destroy(solver);
    return status;
}

static un_solve_report raft_solve(un_context *ctx, raft *r, un_solver_kind kind, bool with,
                                  double tolerance)
{
    un_solve_report report;
    memset(r->x, 0, (size_t)r->a.n * sizeof *r->x);
    check_ok(ctx, raft_try(ctx, r, kind, with, tolerance, &report));
    assert_true(report.converged && report.finite);
    return report;
}

/* Gauss with pivots on A + C C^T; of a singular one the answer of mean zero. */
static double *dense_solve(const raft *r, bool singular)
{
    size_t n = (size_t)r->a.n;
    double *a = calloc(n * n, sizeof *a), *x = malloc(n * sizeof *x), mean = 0;
    for (size_t i = 0; i < n; i++)
        for (int32_t k = r->a.row[i]; k < r->a.row[i + 1]; k++)
            a[i * n + (size_t)r->a.col[k]] += r->a.val[k];
    for (int32_t k = 0; k < r->columns.count; k++)
        for (int32_t e = r->first[k]; e < r->first[k + 1]; e++)
            for (int32_t f = r->first[k]; f < r->first[k + 1]; f++)
                a[(size_t)r->row[e] * n + (size_t)r->row[f]] += r->val[e] * r->val[f];
    for (size_t i = 0; i < n; i++) mean += r->b[i] / (double)n;
    for (size_t i = 0; i < n; i++) x[i] = r->b[i] - (singular ? mean : 0);
    if (singular)
        for (size_t i = 0; i < n * n; i++) a[i] += 1 / (double)n;
    for (size_t j = 0; j < n; j++) {
        size_t best = j;
        for (size_t i = j + 1; i < n; i++)
            if (fabs(a[i * n + j]) > fabs(a[best * n + j])) best = i;
        for (size_t k = 0; k < n && best != j; k++) {
            double keep = a[j * n + k];
            a[j * n + k] = a[best * n + k];
            a[best * n + k] = keep;
        }
        double keep = x[j];
        x[j] = x[best];
        x[best] = keep;
        for (size_t i = j + 1; i < n; i++) {
            double f = a[i * n + j] / a[j * n + j];
            if (f == 0) continue;
            for (size_t k = j; k < n; k++) a[i * n + k] -= f * a[j * n + k];
            x[i] -= f * x[j];
        }
    }
    for (size_t j = n; j-- > 0;) {
        for (size_t k = j + 1; k < n; k++) x[j] -= a[j * n + k] * x[k];
        x[j] /= a[j * n + j];
    }
    free(a);
    return x;
}

static void check_dense(const raft_def *d, int32_t singular_count, double limit)
{
    un_context *ctx = check_context();
    raft r = raft_make(d);
    const char *reason;
    if (!un_csr_validate(&r.a, &reason)) fail_msg("%s", reason);
    double *want = dense_solve(&r, singular_count > 0);
    for (int k = UN_SOLVER_AUTO; k < UN_SOLVER_PETSC; k++) {
        un_solve_report report = raft_solve(ctx, &r, (un_solver_kind)k, true, 1e-12);
        assert_int_equal(report.singular_count, singular_count);
        for (int32_t i = 0; i < r.a.n; i++) check_near(r.x[i], want[i], limit);
        /* the answer as a guess needs nothing more */
        check_ok(ctx, raft_try(ctx, &r, (un_solver_kind)k, true, 1e-11, &report));
        assert_int_equal(report.iterations, 0);
    }
    free(want);
    raft_free(&r);
    check_context_end(ctx);
}

static void finds_what_dense_solves_find(void **state)
{
    (void)state;
    raft_def light = {9, 2, {{1, 2, 1}, {5, 4, 5}}, 3, 0.01, false};
    raft_def heavy = {9, 1, {{3, 3, 3}}, 3, 5, false};
    raft_def none = {8, 0, {{0}}, 0, 1, false};
    check_dense(&light, 0, 1e-9);
    check_dense(&heavy, 0, 1e-9);
    check_dense(&none, 0, 1e-9);
}

/* A body inside a closed, full tank leaves the mean pressure open; one that reaches through a wall,
 * as a piston does, does not. */
static void closed_tanks(void **state)
{
    (void)state;
    raft_def inside = {9, 1, {{3, 2, 4}}, 3, 0.01, true};
    raft_def piston = {9, 1, {{3, 0, 4}}, 3, 0.01, true};
    check_dense(&inside, 1, 1e-9);
    check_dense(&piston, 0, 1e-7);
}

/* With a hundredth of the liquid's density, with and without columns. */
static void light_bodies_take_no_more_iterations(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    raft_def d = {28, 5,    {{2, 3, 2}, {12, 10, 3}, {20, 21, 20}, {3, 12, 19}, {19, 4, 10}},
                  6,  0.01, false};
    raft r = raft_make(&d);
    double worst = 0;
    for (int k = UN_SOLVER_JACOBI; k < UN_SOLVER_PETSC; k++) {
        int32_t without = raft_solve(ctx, &r, (un_solver_kind)k, false, 1e-6).iterations;
        un_solve_report report = raft_solve(ctx, &r, (un_solver_kind)k, true, 1e-6);
        print_message("%s: %d iterations, with columns %d\n", un_solver_kind_names[k], without,
                      report.iterations);
        assert_int_equal(report.kind, k);
        worst = fmax(worst, report.iterations / fmax(1.2 * without, without + 1));
    }
    check_below(worst, 1);
    raft_free(&r);
    check_context_end(ctx);
}

/* What was found out serves again, for columns too; not for a solve that has none. */
static void solves_that_follow_take_as_few(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    raft_def d = {28, 2, {{2, 3, 2}, {12, 10, 3}}, 6, 0.01, false};
    raft r = raft_make(&d);
    for (int k = UN_SOLVER_JACOBI; k < UN_SOLVER_PETSC; k++) {
        un_solver *solver;
        un_solve_report first, report;
        check_ok(ctx, un_solver_create(ctx, &solver));
        un_solver_set_kind(solver, (un_solver_kind)k);
        un_system system = {.a = &r.a, .columns = &r.columns, .b = r.b, .sites = &r.sites};
        for (int times = 0; times < 4; times++) {
            bool with = times < 2;
            system.again = times % 2 == 1;
            system.columns = with ? &r.columns : NULL;
            memset(r.x, 0, (size_t)r.a.n * sizeof *r.x);
            check_ok(ctx, un_solver_solve(solver, &system, r.x, 1e-6, 3000, &report));
            assert_true(report.converged);
            if (times % 2 == 0) first = report;
            if (report.iterations > first.iterations)
                fail_msg("%s: %d iterations, then %d", un_solver_kind_names[k], first.iterations,
                         report.iterations);
        }
        un_solver_destroy(solver);
    }
    raft_free(&r);
    check_context_end(ctx);
}

static void same_bits_with_any_number_of_threads(void **state)
{
    (void)state;
    raft_def d = {22, 2, {{2, 3, 2}, {12, 10, 3}}, 6, 0.01, false};
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context_def def = un_context_def_default();
        def.threads = threads;
        un_context *ctx = un_context_create(&def);
        assert_non_null(ctx);
        raft r = raft_make(&d);
        raft_solve(ctx, &r, UN_SOLVER_GEOMETRIC, true, 1e-8);
        size_t bytes = (size_t)r.a.n * sizeof *first;
        if (first)
            assert_memory_equal(first, r.x, bytes);
        else
            first = memcpy(malloc(bytes), r.x, bytes);
        raft_free(&r);
        un_context_destroy(ctx);
    }
    free(first);
}

/* Rows that the matrix says nothing of stay zero, whatever a column says; and a column with a value
 * that is not finite is reported. */
static void columns_that_make_no_sense(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    raft_def d = {6, 1, {{2, 2, 2}}, 2, 0.1, false};
    raft r = raft_make(&d);
    int32_t row = r.row[0];
    for (int32_t i = 0; i < r.a.n; i++)
        for (int32_t k = r.a.row[i]; k < r.a.row[i + 1]; k++)
            if (i == row || r.a.col[k] == row) r.a.val[k] = 0;
    raft_solve(ctx, &r, UN_SOLVER_AUTO, true, 1e-10);
    assert_true(r.x[row] == 0);
    un_solve_report report;
    r.val[3] = NAN;
    check_ok(ctx, raft_try(ctx, &r, UN_SOLVER_AUTO, true, 1e-10, &report));
    assert_false(report.finite);
    for (int32_t i = 0; i < r.a.n; i++) assert_true(r.x[i] == 0);
    raft_free(&r);
    check_context_end(ctx);
}

static un_status solve_once(un_context *ctx, void *arg)
{
    un_solve_report report;
    return raft_try(ctx, arg, UN_SOLVER_MIC, true, 1e-8, &report);
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    raft_def d = {6, 1, {{2, 2, 2}}, 2, 0.1, false};
    raft r = raft_make(&d);
    check_allocation_failures(solve_once, &r, 100);
    raft_free(&r);
}

int main(void)
{
    check_races_in("same_bits*");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_dense_solves_find),
        cmocka_unit_test(closed_tanks),
        cmocka_unit_test(light_bodies_take_no_more_iterations),
        cmocka_unit_test(same_bits_with_any_number_of_threads),
        cmocka_unit_test(solves_that_follow_take_as_few),
        cmocka_unit_test(columns_that_make_no_sense),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
