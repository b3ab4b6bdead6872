/* un_tetmesh: what it reports, and that it cleans up when memory fails. */
#include "output/scratch.h"

/* An octahedron of radius 1. */
static void write_surface(void)
{
    static const char text[] =
        "v 1 0 0\nv -1 0 0\nv 0 1 0\nv 0 -1 0\nv 0 0 1\nv 0 0 -1\n"
        "f 1 3 5\nf 3 2 5\nf 2 4 5\nf 4 1 5\nf 3 1 6\nf 2 3 6\nf 4 2 6\nf 1 4 6\n";
    scratch_write("surface.obj", text, sizeof text - 1);
}

static un_tetmesh_def def_of(double size, double grading)
{
    un_tetmesh_def def = un_tetmesh_def_default();
    def.input = scratch_path("surface.obj");
    def.output = scratch_path("mesh.vtu");
    def.size = size;
    def.grading = grading;
    return def;
}

static void reports_the_mesh(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    write_surface();
    un_tetmesh_report graded, even;
    un_tetmesh_def def = def_of(0.0625, 8);
    check_ok(ctx, un_tetmesh(ctx, &def, &graded));
    check_near(graded.volume, 4.0 / 3, 0.02);
    check_near(graded.size, 0.0625, 1e-12);
    check_near(graded.largest, 0.125, 1e-12);
    assert_int_equal(graded.unmatched_faces, 0);
    assert_int_equal(graded.misoriented_tets, 0);
    assert_true(graded.surface_count > 0 && graded.wall_count == 0 && graded.side_count == 0);
    check_below(10.7, graded.min_angle);
    check_below(graded.max_angle, 164.8);
    assert_true(graded.common_min >= graded.min_angle - 0.1);
    assert_true(graded.common_max <= graded.max_angle + 0.1);
    def = def_of(0.0625, 1);
    check_ok(ctx, un_tetmesh(ctx, &def, &even));
    check_near(even.largest, 0.0625, 1e-12);
    check_below((double)graded.tet_count, (double)even.tet_count);
    assert_int_equal(scratch_entries(), 2);
    check_context_end(ctx);
}

static un_status make_once(un_context *ctx, void *arg)
{
    un_tetmesh_report report;
    un_tetmesh_def def = def_of(0.5, 2);
    un_status status = un_tetmesh(ctx, &def, &report);
    (void)arg;
    assert_int_equal(scratch_entries(), status == UN_OK ? 2 : 1);
    return status;
}

static void survives_no_memory(void **state)
{
    (void)state;
    write_surface();
    check_allocation_failures(make_once, NULL, 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reports_the_mesh, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(survives_no_memory, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
