/* OpenVDB files as OpenVDB reads them.
 * test-needs: openvdb */
#include "room.h"
#include "../output/scratch.h"

#include "export/export.h"
#include "vdb_reader.h"

/* 2 m over 32 */
#define VOXEL 0.0625
#define BAND (3 * VOXEL)

/* A cube whose sides lie between voxels, so that none is exactly at the edge of the band. */
static const un_box3 cube = {{0.52, 0.27, 0.27}, {1.02, 0.77, 0.77}};

static double cube_distance(un_vec3 x)
{
    un_vec3 d = un_max3(un_sub(cube.min, x), un_sub(x, cube.max));
    un_vec3 outside = un_max3(d, un_v3(0, 0, 0));
    return un_length(outside) + fmin(fmax(d.x, fmax(d.y, d.z)), 0);
}

/* It falls, turns about z and drifts: every component differs from place to place. */
static un_vec3 velocity_at(un_vec3 x)
{
    return un_v3(0.5 - 2 * x.y, -3 + 2 * x.x, 0.25 + x.z);
}

static void make_cube(un_context *ctx, const char *path)
{
    un_vec3 x[8], v[8];
    static int32_t sides[12][3] = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6},
                                   {0, 1, 4}, {1, 5, 4}, {2, 6, 3}, {3, 6, 7},
                                   {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};
    for (int i = 0; i < 8; i++) {
        x[i] = un_v3(i & 1 ? cube.max.x : cube.min.x, i & 2 ? cube.max.y : cube.min.y,
                     i & 4 ? cube.max.z : cube.min.z);
        v[i] = velocity_at(x[i]);
    }
    un_trimesh mesh = {.vertex_count = 8,
                       .triangle_count = 12,
                       .position = x,
                       .normal = x,
                       .velocity = v,
                       .triangle = sides};
    check_ok(ctx, un_output_surface(ctx, path, &mesh));
}

/* Eight to a voxel, evenly around its middle, so that their mean is the velocity there. */
static void make_particles(un_context *ctx, const char *path)
{
    un_particles p = {0};
    check_ok(ctx, un_particles_reserve(ctx, &p, 20000));
    for (int i = 0; i < 64 * 32 * 32; i++) {
        un_vec3 x = un_v3((i % 64 + 0.5) * VOXEL / 2, (i / 64 % 32 + 0.5) * VOXEL / 2,
                          ((double)(i / 64 / 32) + 0.5) * VOXEL / 2);
        if (cube_distance(x) > 0) continue;
        un_vec3 v = velocity_at(x);
        int32_t n = p.count++;
        p.x[0][n] = x.x, p.x[1][n] = x.y, p.x[2][n] = x.z;
        p.v[0][n] = v.x, p.v[1][n] = v.y, p.v[2][n] = v.z;
        p.volume[n] = 1e-4f;
        p.flags[n] = 0;
    }
    assert_in_range(p.count, 3000, 20000);
    check_ok(ctx, un_output_particles(ctx, path, &p, NULL));
    un_particles_free(ctx, &p);
}

static const char scene_text[] =
    "scene { domain = { size = {2, 1, 1} }, detail = { finest = 16, surface = 32 },\n"
    "  liquid = { box { min = {0.52, 0.27, 0.27}, max = {1.02, 0.77, 0.77} } } }\n";

/* Frame 0 is the cube, frame 1 is empty. */
static void make_run(un_context *ctx)
{
    scratch_write("scene.lua", scene_text, sizeof scene_text - 1);
    check_ok(ctx, un_directory_create(ctx, scratch_path("frames/0000")));
    check_ok(ctx, un_directory_create(ctx, scratch_path("frames/0001")));
    make_cube(ctx, scratch_path("frames/0000/surface.ply"));
    make_particles(ctx, scratch_path("frames/0000/particles.vtp"));
    un_trimesh none = {0};
    un_particles nothing = {0};
    check_ok(ctx, un_output_surface(ctx, scratch_path("frames/0001/surface.ply"), &none));
    check_ok(ctx,
             un_output_particles(ctx, scratch_path("frames/0001/particles.vtp"), &nothing, NULL));
}

static un_export_def define(void)
{
    un_export_def def = un_export_def_default();
    def.directory = scratch;
    def.format = "vdb";
    return def;
}

static un_vec3 middle_of(const int32_t ijk[3])
{
    return un_v3(ijk[0] * VOXEL, ijk[1] * VOXEL, ijk[2] * VOXEL);
}

static void check_grid(const vdb_grid *g, const char *type, double background)
{
    assert_string_equal(g->type, type);
    for (int a = 0; a < 3; a++) {
        check_near(g->voxel[a], VOXEL, 1e-12);
        check_near(g->origin[a], 0, 1e-12);
    }
    check_near(g->background[0], background, 1e-6);
}

/* Grid `surface`: the distance to the cube, negative inside, as far as the band goes. */
static void check_level_set(const char *path)
{
    vdb_grid g;
    assert_true(vdb_grid_read(path, "surface", &g));
    check_grid(&g, "float", BAND);
    assert_string_equal(g.grid_class, "level set");
    int64_t found = 0, inside = 0;
    for (int32_t k = -8; k < 24; k++)
        for (int32_t j = -8; j < 24; j++)
            for (int32_t i = -8; i < 40; i++) {
                int32_t ijk[3] = {i, j, k};
                double d = cube_distance(middle_of(ijk)), value[3];
                bool active = vdb_value(path, "surface", ijk, value);
                /* at its outer edge OpenVDB may leave out a corner */
                if (fabs(fabs(d) - BAND) > 0.1 * VOXEL) {
                    assert_int_equal(active, fabs(d) < BAND);
                    check_near(value[0], un_clamp(d, -BAND, BAND), 1e-5);
                }
                found += active;
                inside += value[0] < 0;
            }
    assert_int_equal(g.active, found);                               /* and none elsewhere */
    check_near((double)inside * VOXEL * VOXEL * VOXEL, 0.125, 1e-9); /* 8 voxels each way */
}

/* Grid `vel`: the particles' velocity where they are, and beyond the surface as far as motion blur
 * of the level set needs it. */
static void check_velocity(const char *path, bool has_surface)
{
    vdb_grid g;
    assert_true(vdb_grid_read(path, "vel", &g));
    check_grid(&g, "vec3s", 0);
    for (int32_t k = 6; k <= 10; k++)
        for (int32_t j = 6; j <= 10; j++)
            for (int32_t i = 10; i <= 14; i++) {
                int32_t ijk[3] = {i, j, k};
                un_vec3 v = velocity_at(middle_of(ijk));
                double value[3];
                assert_true(vdb_value(path, "vel", ijk, value));
                check_near(value[0], v.x, 1e-5);
                check_near(value[1], v.y, 1e-5);
                check_near(value[2], v.z, 1e-5);
            }
    static const int32_t beyond[3] = {12, 14, 8}, far[3] = {30, 8, 8};
    double value[3];
    assert_int_equal(vdb_value(path, "vel", beyond, value), has_surface);
    if (has_surface) check_near(value[1], velocity_at(un_v3(12 * VOXEL, 0.77, 0.5)).y, 0.1);
    assert_false(vdb_value(path, "vel", far, value));
}

static void grids(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define();
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.frame_count, 2);
    assert_int_equal(report.file_count, 2);
    assert_true(report.bytes > 1000);
    const char *path = scratch_path("export/vdb/liquid.0000.vdb");
    assert_int_equal(vdb_grid_count(path), 2);
    check_level_set(path);
    check_velocity(path, true);
    check_context_end(ctx);
}

static void empty_frame(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define();
    def.first = 1;
    check_ok(ctx, un_export(ctx, &def, &report));
    const char *path = scratch_path("export/vdb/liquid.0001.vdb");
    vdb_grid g;
    assert_int_equal(vdb_grid_count(path), 2);
    assert_true(vdb_grid_read(path, "surface", &g));
    check_grid(&g, "float", BAND);
    assert_string_equal(g.grid_class, "level set");
    assert_int_equal(g.active, 0);
    assert_true(vdb_grid_read(path, "vel", &g));
    check_grid(&g, "vec3s", 0);
    assert_int_equal(g.active, 0);
    check_context_end(ctx);
}

static void choice(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define();
    def.last = 0;
    def.surface = false;
    check_ok(ctx, un_export(ctx, &def, &report));
    const char *path = scratch_path("export/vdb/liquid.0000.vdb");
    assert_int_equal(vdb_grid_count(path), 1);
    check_velocity(path, false);
    /* velocities of the surface's vertices, which the cube has at its corners only */
    def = define();
    def.last = 0;
    def.particles = false;
    def.output = scratch_path("corners");
    check_ok(ctx, un_export(ctx, &def, &report));
    path = scratch_path("corners/liquid.0000.vdb");
    assert_int_equal(vdb_grid_count(path), 2);
    check_level_set(path);
    static const int32_t corner[3] = {8, 4, 4}; /* the voxel that holds 0.52, 0.27, 0.27 */
    un_vec3 v = velocity_at(cube.min);
    double value[3];
    assert_true(vdb_value(path, "vel", corner, value));
    check_near(value[0], v.x, 1e-5);
    check_near(value[1], v.y, 1e-5);
    check_near(value[2], v.z, 1e-5);
    check_context_end(ctx);
}

/* A real run: a drop that falls, two frames of 1/24 s. */
static void falling_drop(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const char drop[] =
        "scene { domain = { size = {1, 1, 1} }, detail = { finest = 16, surface = 16 },\n"
        "  frames = { count = 2, rate = 24 },\n"
        "  liquid = { sphere { center = {0.5, 0.6, 0.5}, radius = 0.25 },\n"
        "             velocity = {0.75, 0, 0} } }\n";
    scratch_write("drop.lua", drop, sizeof drop - 1);
    un_scene *scene;
    check_ok(ctx, un_scene_load(ctx, scratch_path("drop.lua"), NULL, 0, &scene));
    un_run_def run = un_run_def_default();
    run.directory = scratch_path("drop");
    check_ok(ctx, un_run(ctx, scene, &run));
    un_scene_destroy(scene);
    un_export_report report;
    un_export_def def = define();
    def.directory = scratch_path("drop");
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.file_count, 3);
    for (int frame = 0; frame < 3; frame++) {
        char name[64];
        snprintf(name, sizeof name, "drop/export/vdb/liquid.%04d.vdb", frame);
        double t = frame / 24.0, value[3];
        /* where its middle has gone, to the nearest voxel */
        int32_t ijk[3] = {(int32_t)lround(16 * (0.5 + 0.75 * t)),
                          (int32_t)lround(16 * (0.6 - 0.5 * 9.81 * t * t)), 8};
        const char *path = scratch_path(name);
        assert_true(vdb_value(path, "vel", ijk, value));
        check_near(value[0], 0.75, 0.02);
        check_near(value[1], -9.81 * t, 0.02);
        check_near(value[2], 0, 0.02);
        vdb_value(path, "surface", ijk, value);
        check_near(value[0], -3 / 16.0, 1e-6); /* deep inside */
    }
    check_context_end(ctx);
}

/* A limit on files stands for a disk that is full. */
static void full_disk(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    for (rlim_t room = 100; room < 40000; room *= 4) {
        un_export_report report;
        un_export_def def = define();
        room_for_files(room);
        un_status status = un_export(ctx, &def, &report);
        room_for_files(RLIM_INFINITY);
        assert_int_equal(status, UN_ERROR_FILE);
        check_message(ctx, "cannot write");
        check_message(ctx, "liquid.0000.vdb");
        /* nothing is left of it */
        assert_int_equal(rmdir(scratch_path("export/vdb")), 0);
    }
    check_context_end(ctx);
}

static un_status export_frame(un_context *ctx, void *arg)
{
    (void)arg;
    un_export_report report;
    un_export_def def = define();
    def.last = 0;
    return un_export(ctx, &def, &report);
}

static void allocation_failures(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    check_context_end(ctx);
    check_allocation_failures(export_frame, NULL, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grids, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(empty_frame, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(choice, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(falling_drop, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(full_disk, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(allocation_failures, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
