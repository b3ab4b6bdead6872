/* Systems written by solver.dump: the same bits when read back, and clean failures. */
#include "room.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pressure/pool.h"
#include "pressure/tet_pool.h"

static char folder[64];

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/undine_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

static int end(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in_folder(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int entries;
static int count_entry(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)path, (void)s, (void)ftw;
    entries += kind == FTW_F;
    return 0;
}
static int file_count(void)
{
    entries = 0;
    nftw(folder, count_entry, 16, FTW_PHYS);
    return entries;
}

static double tilted(un_vec3 x, const void *arg)
{
    (void)arg;
    return x.y - 0.55 - 0.1 * x.x;
}
static un_vec3 wild(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_v3(sin(9 * x.y), cos(7 * x.z + x.x), sin(5 * x.x * x.y));
}
static int32_t fine_on_top(un_vec3 x, const void *arg)
{
    (void)arg;
    return x.y > 0.4 ? 3 : 1;
}

static void check_matrix(const un_csr *got, const un_csr *want)
{
    assert_int_equal(got->n, want->n);
    size_t n = (size_t)want->n, count = (size_t)want->row[n];
    assert_memory_equal(got->row, want->row, (n + 1) * sizeof *got->row);
    assert_memory_equal(got->col, want->col, count * sizeof *got->col);
    assert_memory_equal(got->val, want->val, count * sizeof *got->val);
}

static void a_grids_system_comes_back(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 0.5), 12);
    pool_build(&p);
    pool_fill(&p, tilted, NULL);
    un_context *ctx = p.tank.ctx;
    const char *deep = in_folder("a/b");
    check_ok(ctx, un_solver_set_dump(p.pressure->solver, deep, 2));
    for (int step = 0; step < 4; step++) {
        pool_move(&p, wild, NULL);
        check_ok(ctx, un_pressure_project(p.pressure, &p.in, &p.report));
    }
    assert_int_equal(file_count(), 8); /* solves 1 and 3 */
    un_system_file s;
    check_ok(ctx, un_system_read(ctx, deep, 3, &s));
    check_matrix(&s.a, &p.pressure->matrix);
    assert_memory_equal(s.b, p.pressure->rhs, (size_t)s.a.n * sizeof *s.b);
    /* solve 3 started from what solve 2 found, which is what all of them find */
    for (int32_t i = 0; i < s.a.n; i++) check_near(s.x[i], p.pressure->x[i], 1e-9);
    assert_int_equal(s.sites.kind, UN_SITES_GRID);
    for (int a = 0; a < 3; a++) assert_int_equal(s.sites.size[a], p.tank.grid.n[a]);
    assert_memory_equal(s.site, p.pressure->place, (size_t)s.a.n * sizeof *s.site);
    un_system_free(ctx, &s);
    pool_end(&p);
}

static void a_tet_system_comes_back(void **state)
{
    (void)state;
    tet_pool p;
    tet_pool_begin(&p, 2, un_v3(1, 1, 0.5), 4, 32, fine_on_top, NULL);
    tet_pool_fill(&p, tilted, NULL);
    tet_pool_move(&p, wild, NULL);
    check_ok(p.ctx, un_solver_set_dump(p.pressure->solver, folder, 1));
    tet_pool_project(&p);
    un_system_file s;
    check_ok(p.ctx, un_system_read(p.ctx, folder, 1, &s));
    check_matrix(&s.a, &p.pressure->matrix);
    assert_memory_equal(s.b, p.pressure->rhs, (size_t)s.a.n * sizeof *s.b);
    assert_int_equal(s.sites.kind, UN_SITES_BCC);
    assert_int_equal(s.sites.level_max, p.tree.level_max);
    for (int32_t i = 0; i < s.a.n; i++) {
        assert_true(s.key[i] == p.mesh.node_key[p.pressure->place[i]]);
        assert_int_equal(s.level[i], p.mesh.node_level[p.pressure->place[i]]);
        assert_true(un_morton_gather(s.key[i]) <= (uint32_t)s.sites.size[0]);
    }
    un_system_free(p.ctx, &s);
    tet_pool_end(&p);
}

static void folders_that_cannot_be_used(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_solver *solver;
    check_ok(ctx, un_solver_create(ctx, &solver));
    FILE *file = fopen(in_folder("file"), "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(un_solver_set_dump(solver, in_folder("file"), 1), UN_ERROR_FILE);
    assert_non_null(strstr(un_context_message(ctx), "solver.dump names the folder"));
    assert_int_equal(un_solver_set_dump(solver, in_folder("file/x"), 1), UN_ERROR_FILE);
    assert_int_equal(un_solver_set_dump(solver, "", 1), UN_ERROR_FILE);
    assert_int_equal(un_solver_set_dump(solver, "/proc/undine/dump", 1), UN_ERROR_FILE);
    un_solver_destroy(solver);
    check_context_end(ctx);
}

/* A disk that takes no more: the limit on a file's size stands for it. */
static void a_full_disk_ends_the_solve(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 1, un_v3(1, 1, 1), 16);
    pool_build(&p);
    pool_fill(&p, tilted, NULL);
    pool_move(&p, wild, NULL);
    check_ok(p.tank.ctx, un_solver_set_dump(p.pressure->solver, folder, 1));
    room_for_files(10000);
    un_status status = un_pressure_project(p.pressure, &p.in, &p.report);
    room_for_files(RLIM_INFINITY);
    assert_int_equal(status, UN_ERROR_FILE);
    assert_non_null(strstr(un_context_message(p.tank.ctx), "000001_b.mtx"));
    assert_int_equal(file_count(), 0); /* nothing half-written stays */
    /* with room again the next one is whole */
    check_ok(p.tank.ctx, un_pressure_project(p.pressure, &p.in, &p.report));
    assert_int_equal(file_count(), 4);
    /* and a folder that has gone is told of */
    for (int k = 0; k < 4; k++) {
        static const char *const names[] = {"000002.mtx", "000002_b.mtx", "000002_x.mtx",
                                            "000002_places.mtx"};
        assert_int_equal(remove(in_folder(names[k])), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(un_pressure_project(p.pressure, &p.in, &p.report), UN_ERROR_FILE);
    mkdir(folder, 0700);
    pool_end(&p);
}

static void broken_files_are_refused(void **state)
{
    (void)state;
    static const char head[] = "%%MatrixMarket matrix coordinate real symmetric\n";
    static const char *const bodies[] = {
        "",
        "2 2 3\n1 1 2\n2 1 -1\n",          /* an entry is missing */
        "2 3 3\n1 1 2\n2 1 -1\n2 2 2\n",   /* not square */
        "2 2 3\n1 1 2\n1 2 -1\n2 2 2\n",   /* upper half */
        "2 2 3\n1 1 2\n2 2 -1\n2 1 2\n",   /* not ascending */
        "2 2 3\n1 1 2\n3 1 -1\n2 2 2\n",   /* out of range */
        "2 2 3\n1 1 x\n2 1 -1\n2 2 2\n",   /* not a number */
        "2 2 99999999999\n1 1 2\n",        /* too many */
        "-2 -2 3\n1 1 2\n2 1 -1\n2 2 2\n", /* negative */
        "2 2 3\n1 1 2\n2 1 -1\n2 2 2\n",   /* whole, but there is no right-hand side */
    };
    un_context *ctx = check_context();
    for (size_t n = 0; n <= sizeof bodies / sizeof *bodies; n++) {
        FILE *file = fopen(in_folder("000007.mtx"), "w");
        assert_non_null(file);
        if (n < sizeof bodies / sizeof *bodies) fprintf(file, "%s%s", head, bodies[n]);
        fclose(file);
        un_system_file s;
        assert_int_equal(un_system_read(ctx, folder, 7, &s), UN_ERROR_FILE);
        assert_null(s.a.row);
        assert_int_equal(un_context_bytes(ctx), 0);
    }
    check_context_end(ctx);
}

static un_status write_and_read(un_context *ctx, void *arg)
{
    (void)arg;
    int32_t row[] = {0, 2, 4}, col[] = {0, 1, 0, 1}, site[] = {0, 3};
    double val[] = {2, -1, -1, 2}, b[] = {1, 2}, x[] = {0, 0};
    un_csr a = {2, row, col, val};
    un_sites sites = {.kind = UN_SITES_GRID, .size = {2, 2, 2}, .site = site};
    un_system_file s;
    un_solver *solver;
    UN_TRY(un_solver_create(ctx, &solver));
    un_status status = un_solver_set_dump(solver, folder, 1);
    un_solver_destroy(solver);
    UN_TRY(status);
    int32_t first[] = {0, 1, 1, 3}, touched[] = {1, 0, 1};
    double value[] = {0.1, -3, 1e-30};
    un_columns columns = {3, first, touched, value};
    un_system system = {.a = &a, .columns = &columns, .b = b, .sites = &sites};
    UN_TRY(un_system_write(ctx, folder, 1, &system, x));
    UN_TRY(un_system_read(ctx, folder, 1, &s));
    assert_int_equal(s.site[1], 3);
    assert_int_equal(s.columns.count, 3);
    assert_memory_equal(s.columns.first, first, sizeof first);
    assert_memory_equal(s.columns.row, touched, sizeof touched);
    assert_memory_equal(s.columns.val, value, sizeof value);
    un_system_free(ctx, &s);
    return UN_OK;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    check_allocation_failures(write_and_read, NULL, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_grids_system_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(a_tet_system_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(folders_that_cannot_be_used, begin, end),
        cmocka_unit_test_setup_teardown(a_full_disk_ends_the_solve, begin, end),
        cmocka_unit_test_setup_teardown(broken_files_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(failing_allocations_are_clean, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
