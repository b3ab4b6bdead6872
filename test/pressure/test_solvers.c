/* Every solver on systems of the methods themselves: graded tets with solids and drops, and a
 * grid's of the same shape. */
#include "check.h"
#include "pressure/pool.h"
#include "pressure/tet_pool.h"

static double waves(un_vec3 x, const void *arg)
{
    (void)arg;
    double drop = un_length(un_sub(x, un_v3(0.3, 0.85, 0.4))) - 0.07;
    return fmin(x.y - 0.55 - 0.08 * sin(7 * x.x + 1) - 0.05 * cos(9 * x.z), drop);
}
static un_vec3 wild(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_v3(sin(9 * x.y), cos(7 * x.z + x.x) - 1, sin(5 * x.x * x.y));
}
static int32_t fine_at_surface(un_vec3 x, const void *arg)
{
    return fabs(waves(x, NULL)) < 0.1 ? *(const int32_t *)arg : 1;
}

typedef struct outcome {
    int32_t iterations, rows;
    double *x;
} outcome;

static outcome keep(const un_solve_report *report, un_solver_kind kind, const double *x, int32_t n)
{
    assert_true(report->converged);
    assert_int_equal(report->kind, kind);
    outcome out = {report->iterations, n, malloc((size_t)n * sizeof *x)};
    memcpy(out.x, x, (size_t)n * sizeof *x);
    return out;
}

static outcome solve_tets(un_solver_kind kind, int32_t threads, int32_t levels)
{
    tet_pool p;
    tet_pool_begin(&p, threads, un_v3(1, 1, 1), 4, 4 << levels, fine_at_surface, &levels);
    tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.7, 0.4, 0.6), 0.15), un_v3(0, 0, 0));
    tet_pool_walls(&p);
    tet_pool_fill(&p, waves, NULL);
    tet_pool_move(&p, wild, NULL);
    p.in.tolerance = 1e-4;
    un_solver_set_kind(p.pressure->solver, kind);
    tet_pool_project(&p);
    assert_false(p.report.cautious);
    outcome out = keep(&p.report.solve, kind, p.pressure->x, p.pressure->matrix.n);
    tet_pool_end(&p);
    return out;
}

static outcome solve_grid(un_solver_kind kind, int32_t threads, int32_t cells)
{
    pool p;
    pool_begin(&p, threads, un_v3(1, 1, 1), cells);
    tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.7, 0.4, 0.6), 0.15), un_v3(0, 0, 0));
    pool_build(&p);
    pool_fill(&p, waves, NULL);
    pool_move(&p, wild, NULL);
    p.in.tolerance = 1e-4;
    un_solver_set_kind(p.pressure->solver, kind);
    check_ok(p.tank.ctx, un_pressure_project(p.pressure, &p.in, &p.report));
    outcome out = keep(&p.report.solve, kind, p.pressure->x, p.pressure->matrix.n);
    pool_end(&p);
    return out;
}

/* Geometric multigrid keeps its counts with size. */
static void geometric_counts_hold(void **state)
{
    (void)state;
    int32_t first = 0;
    for (int32_t size = 0; size < 2; size++) {
        outcome tets = solve_tets(UN_SOLVER_GEOMETRIC, 2, 3 + size);
        outcome grid = solve_grid(UN_SOLVER_GEOMETRIC, 2, 24 << size);
        check_below(tets.iterations, 9);
        check_below(grid.iterations, 10);
        if (size == 0) first = tets.iterations;
        check_below(tets.iterations, first + 2);
        free(tets.x);
        free(grid.x);
    }
}

static void all_kinds_agree(void **state)
{
    (void)state;
    outcome want[2] = {{0}, {0}};
    for (un_solver_kind kind = UN_SOLVER_JACOBI; kind < UN_SOLVER_KIND_COUNT; kind++) {
        if (!un_solver_kind_available(kind)) continue;
        for (int method = 0; method < 2; method++) {
            outcome got = method ? solve_grid(kind, 2, 20) : solve_tets(kind, 2, 3);
            if (!want[method].x) {
                want[method] = got;
                continue;
            }
            double most = 0;
            assert_int_equal(got.rows, want[method].rows);
            for (int32_t i = 0; i < got.rows; i++) most = fmax(most, fabs(got.x[i]));
            for (int32_t i = 0; i < got.rows; i++)
                check_near(got.x[i], want[method].x[i], 2e-3 * most);
            free(got.x);
        }
    }
    free(want[0].x);
    free(want[1].x);
}

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    for (int method = 0; method < 2; method++) {
        outcome want = {0};
        for (int32_t threads = 1; threads <= 3; threads++) {
            outcome got = method ? solve_grid(UN_SOLVER_GEOMETRIC, threads, 40)
                                 : solve_tets(UN_SOLVER_GEOMETRIC, threads, 4);
            assert_true(got.rows > 3 * 4096); /* several blocks */
            if (want.x) {
                assert_memory_equal(got.x, want.x, (size_t)got.rows * sizeof *got.x);
                free(got.x);
            } else
                want = got;
        }
        free(want.x);
    }
}

int main(void)
{
    check_races_in("same_bits*");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(geometric_counts_hold),
        cmocka_unit_test(all_kinds_agree),
        cmocka_unit_test(same_bits_for_any_thread_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
