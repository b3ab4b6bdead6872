/* A run made by hand, exported to every format and read back; what is damaged is refused. */
#include "cells.h"
#include "room.h"
#include "../output/scratch.h"

#include "export/export.h"

static un_vec3 positions[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0.5}};
static un_vec3 normals[] = {{-1, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0}};
static un_vec3 velocities[] = {{0.125, 0, 0}, {1, 2, 3}, {0, -9.81, 0}, {0, 0, -1}};
static int32_t triangles[][3] = {{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};

static un_trimesh tetrahedron(void)
{
    return (un_trimesh){.vertex_count = 4,
                        .triangle_count = 4,
                        .position = positions,
                        .normal = normals,
                        .velocity = velocities,
                        .triangle = triangles};
}

static const char scene_text[] =
    "scene { domain = { size = {1, 1, 1} }, detail = { finest = 8, surface = 8 },\n"
    "  frames = { count = 2, rate = 24 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.3, 0.5} } },\n"
    "  solids = { sphere { center = {0.7, 0.1, 0.2}, radius = 0.1 },\n"
    "             sphere { center = {0.2, 0.8, 0.2}, radius = 0.1, velocity = {1, 0, 0} } },\n"
    "  render = { camera = { eye = function(t) return {0.5, 0.25 + 24 * t, 3} end,\n"
    "    target = {0.5, 0.25, 0}, fov = 53.13010235 } } }\n";

/* Three frames; the surface of the middle one is empty. */
static void make_run_of(un_context *ctx, bool mixed)
{
    scratch_write("scene.lua", scene_text, sizeof scene_text - 1);
    for (int frame = 0; frame < 3; frame++) {
        char name[64];
        snprintf(name, sizeof name, "frames/%04d", frame);
        check_ok(ctx, un_directory_create(ctx, scratch_path(name)));
        un_trimesh mesh = tetrahedron();
        if (frame == 1) mesh.vertex_count = mesh.triangle_count = 0;
        snprintf(name, sizeof name, "frames/%04d/surface.ply", frame);
        check_ok(ctx, un_output_surface(ctx, scratch_path(name), &mesh));
        un_particles p = {.mixed = mixed};
        check_ok(ctx, un_particles_reserve(ctx, &p, 5));
        p.count = 5;
        for (int i = 0; mixed && i < 5; i++)
            p.density[i] = 900 + (float)i, p.viscosity[i] = 0.5f * (float)i;
        for (int i = 0; i < 5; i++) {
            for (int a = 0; a < 3; a++) p.x[a][i] = 0.125 * (i + a), p.v[a][i] = i - a;
            p.volume[i] = 1e-3f * (float)(i + 1);
            p.flags[i] = i == 2 ? UN_PARTICLE_BALLISTIC : 0;
        }
        snprintf(name, sizeof name, "frames/%04d/particles.vtp", frame);
        check_ok(ctx, un_output_particles(ctx, scratch_path(name), &p, NULL));
        un_particles_free(ctx, &p);
        un_cells cells;
        check_make_cubes(ctx, &cells, 1, UN_CELL_VOXEL);
        snprintf(name, sizeof name, "frames/%04d/mesh.vtu", frame);
        check_ok(ctx, un_output_cells(ctx, scratch_path(name), &cells));
        un_cells_free(ctx, &cells);
    }
}

static void make_run(un_context *ctx)
{
    make_run_of(ctx, false);
}

static un_export_def define(const char *format)
{
    un_export_def def = un_export_def_default();
    def.directory = scratch;
    def.format = format;
    return def;
}

static void check_surface(un_context *ctx, const char *name, bool has_velocity)
{
    un_trimesh m = {0};
    check_ok(ctx, un_trimesh_load(ctx, scratch_path(name), &m));
    assert_int_equal(m.vertex_count, 4);
    assert_int_equal(m.triangle_count, 4);
    for (int i = 0; i < 4; i++) {
        check_near(un_length(un_sub(m.position[i], positions[i])), 0, 1e-7);
        if (has_velocity) check_near(un_length(un_sub(m.velocity[i], velocities[i])), 0, 1e-6);
        assert_memory_equal(m.triangle[i], triangles[i], sizeof triangles[i]);
    }
    un_trimesh_free(ctx, &m);
}

static void ply_and_obj(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define("ply");
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.frame_count, 3);
    assert_int_equal(report.file_count, 6);
    assert_true(report.bytes > 1000);
    check_surface(ctx, "export/ply/surface.0000.ply", true);
    char *text;
    size_t size;
    check_ok(ctx, un_file_read(ctx, scratch_path("export/ply/particles.0002.ply"), &text, &size));
    assert_non_null(strstr(text, "element vertex 5\n"));
    assert_non_null(strstr(text, "property float radius\nend_header\n"));
    float row[7];
    memcpy(row, strstr(text, "end_header\n") + 11 + 28, sizeof row);
    check_near((double)row[0], 0.125, 0);
    check_near((double)row[3], 1, 0);
    check_near((double)row[6], cbrt(2e-3 * 3 / (4 * UN_PI)), 1e-7);
    un_free(ctx, text);

    def = define("obj");
    def.output = scratch_path("elsewhere/deep");
    def.first = 2;
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.file_count, 1);
    check_surface(ctx, "elsewhere/deep/surface.0002.obj", false);
    check_context_end(ctx);
}

static void vtk(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define("vtk");
    def.every = 2;
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.frame_count, 2);
    assert_int_equal(report.file_count, 3 * 3);
    un_particles p;
    check_ok(ctx, un_output_read_particles(ctx, scratch_path("export/vtk/particles.0002.vtp"), &p));
    assert_int_equal(p.count, 5);
    check_near(p.x[1][3], 0.5, 0);
    check_near(p.v[2][1], -1, 0);
    check_near((double)p.volume[4], 5e-3, 1e-9);
    assert_int_equal(p.flags[2], UN_PARTICLE_BALLISTIC);
    assert_int_equal(p.flags[3], 0);
    un_particles_free(ctx, &p);
    un_cells cells;
    check_ok(ctx, un_output_read_cells(ctx, scratch_path("export/vtk/mesh.0000.vtu"), &cells));
    assert_int_equal(cells.count, 1);
    assert_int_equal(cells.point_count, 8);
    check_near(un_cells_size(&cells, 0), 1, 0);
    assert_int_equal(cells.level[0], 4);
    check_near(cells.velocity[0].x, 1, 0);
    un_cells_free(ctx, &cells);
    char *text;
    check_ok(ctx, un_file_read(ctx, scratch_path("export/vtk/surface.pvd"), &text, NULL));
    assert_non_null(strstr(text, "file=\"surface.0002.vtp\""));
    assert_null(strstr(text, "file=\"surface.0001.vtp\""));
    un_free(ctx, text);
    check_context_end(ctx);
}

/* Density and viscosity go along where particles carry them, and are not there where they don't. */
static void mixed_liquid(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int mixed = 0; mixed < 2; mixed++) {
        make_run_of(ctx, mixed);
        static const char *const formats[] = {"ply", "usd", "vtk"};
        un_export_report report;
        for (int f = 0; f < 3; f++) {
            un_export_def def = define(formats[f]);
            check_ok(ctx, un_export(ctx, &def, &report));
        }
        char *text, name[128];
        size_t size;
        check_ok(ctx,
                 un_file_read(ctx, scratch_path("export/ply/particles.0002.ply"), &text, &size));
        assert_true(!strstr(text, "property float density\nproperty float viscosity\n") == !mixed);
        size_t row = mixed ? 36 : 28;
        float last[9];
        memcpy(last, text + size - row, row);
        assert_true(last[0] == 0.5f && last[3] == 4);
        if (mixed) assert_true(last[7] == 904 && last[8] == 2);
        un_free(ctx, text);
        snprintf(name, sizeof name, "export/usd/%s.usda", strrchr(scratch, '/') + 1);
        check_ok(ctx, un_file_read(ctx, scratch_path(name), &text, NULL));
        assert_true(!strstr(text, "float[] primvars:density.timeSamples") == !mixed);
        assert_true(!strstr(text, "2: [0, 0.5, 1, 1.5, 2],") == !mixed);
        un_free(ctx, text);
        un_particles p;
        check_ok(ctx,
                 un_output_read_particles(ctx, scratch_path("export/vtk/particles.0002.vtp"), &p));
        assert_true(!p.density == !mixed);
        if (mixed) assert_true(p.density[3] == 903 && p.viscosity[3] == 1.5f);
        un_particles_free(ctx, &p);
    }
    check_context_end(ctx);
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) count++;
    return count;
}

static void usd(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define("usd");
    def.output = scratch_path("u");
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.file_count, 1);
    char name[128], *text;
    snprintf(name, sizeof name, "u/%s.usda", strrchr(scratch, '/') + 1);
    check_ok(ctx, un_file_read(ctx, scratch_path(name), &text, NULL));
    assert_int_equal(strncmp(text, "#usda 1.0\n", 10), 0);
    assert_non_null(strstr(text, "upAxis = \"Y\""));
    assert_non_null(strstr(text, "metersPerUnit = 1"));
    assert_non_null(strstr(text, "timeCodesPerSecond = 24"));
    assert_non_null(strstr(text, "endTimeCode = 2"));
    assert_non_null(strstr(text, "0: [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3],"));
    assert_non_null(strstr(text, "1: [],"));
    assert_non_null(strstr(text, "(0, -9.81, 0)"));
    assert_int_equal(count_of(text, "def Mesh"), 3);
    assert_int_equal(count_of(text, "def Points"), 1);
    assert_int_equal(count_of(text, "xformOp:transform.timeSamples"), 2);
    /* a frame is 1/24 s, and the sphere moves 1 m/s */
    assert_non_null(strstr(text, "(0.0416666667, 0, 0, 1))"));
    /* straight along -z at first, and a field of 2 atan 1/2 */
    assert_int_equal(count_of(text, "def Camera"), 1);
    assert_non_null(
        strstr(text, "0: ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0.5, 0.25, 3, 1)),"));
    assert_non_null(strstr(text, "(0.5, 2.25, 3, 1)),"));
    assert_non_null(strstr(text, "2: 20.25,"));
    un_free(ctx, text);
    check_context_end(ctx);
}

static uint32_t word_at(const char *bytes, size_t at)
{
    uint32_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

/* Five particles: positions, colours, velocities, radii. */
static void check_points(const char *binary)
{
    float x[5][3], v[5][3], radius[5];
    uint8_t colour[5][4];
    memcpy(x, binary, sizeof x);
    memcpy(colour, binary + 60, sizeof colour);
    memcpy(v, binary + 80, sizeof v);
    memcpy(radius, binary + 140, sizeof radius);
    for (int i = 0; i < 5; i++) {
        for (int a = 0; a < 3; a++) {
            check_near((double)x[i][a], 0.125 * (i + a), 0);
            check_near((double)v[i][a], i - a, 0);
        }
        check_near((double)radius[i], cbrt(1e-3 * (i + 1) * 3 / (4 * UN_PI)), 1e-7);
        assert_int_equal(colour[i][3], 255);
    }
    assert_memory_equal(colour[0], colour[1], 4); /* both faster than what is known of the run */
}

static void glb(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define("glb");
    def.output = scratch_path("g");
    check_ok(ctx, un_export(ctx, &def, &report));
    assert_int_equal(report.file_count, 8);
    char film[128], dots[128];
    snprintf(film, sizeof film, "g/%s.glb", strrchr(scratch, '/') + 1);
    snprintf(dots, sizeof dots, "g/%s_particles.glb", strrchr(scratch, '/') + 1);
    const char *names[] = {"g/surface.0000.glb", "g/surface.0001.glb", film, "g/particles.0001.glb",
                           dots};
    /* what is shown, how often it is switched, moving solids */
    static const int shown[] = {1, 0, 2, 1, 3}, scales[] = {0, 0, 2, 0, 3},
                     moves[] = {0, 0, 1, 0, 1};
    for (int i = 0; i < 5; i++) {
        char *bytes;
        size_t size;
        check_ok(ctx, un_file_read(ctx, scratch_path(names[i]), &bytes, &size));
        assert_int_equal(word_at(bytes, 0), 0x46546c67);
        assert_int_equal(word_at(bytes, 8), size);
        uint32_t json = word_at(bytes, 12);
        assert_int_equal(json % 4, 0);
        assert_int_equal(word_at(bytes, 20 + json) + 28 + json, size);
        char *text = bytes + 20;
        text[json] = 0; /* the length that follows is not needed any more */
        assert_int_equal(count_of(text, "\"material\":0"), shown[i]);
        assert_int_equal(count_of(text, "\"material\":1"), 2);
        assert_int_equal(count_of(text, "\"mode\":0"), i < 3 ? 0 : shown[i]);
        assert_int_equal(count_of(text, "\"path\":\"scale\""), scales[i]);
        assert_int_equal(count_of(text, "\"path\":\"translation\""), moves[i]);
        if (i == 3) check_points(bytes + 28 + json);
        un_free(ctx, bytes);
    }
    check_context_end(ctx);
}

/* Changed by hand: the solid is there in what is exported. */
static void solids_are_where_the_table_says(void **state)
{
    (void)state;
    static const char table[] = "time,body1_x,body1_y,body1_z,body1_qw,body1_qx,body1_qy,body1_qz\n"
                                "0,0.2,0.8,0.2,1,0,0,0\n"
                                "0.041666666666666664,0.7,0.8,0.2,1,0,0,0\n"
                                "0.08333333333333333,0.2,0.8,0.2,0,0,1,0\n";
    un_context *ctx = check_context();
    un_export_report report;
    char *text, name[128];
    size_t size;
    make_run(ctx);
    scratch_write("bodies.csv", table, sizeof table - 1);
    un_export_def def = define("usd");
    check_ok(ctx, un_export(ctx, &def, &report));
    snprintf(name, sizeof name, "export/usd/%s.usda", strrchr(scratch, '/') + 1);
    check_ok(ctx, un_file_read(ctx, scratch_path(name), &text, NULL));
    assert_non_null(strstr(text, "1: ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0.5, 0, 0, 1))"));
    assert_non_null(
        strstr(text, "2: ((-1, 0, 0, 0), (0, 1, 0, 0), (0, 0, -1, 0), (0.4, 0, 0.4, 1))"));
    un_free(ctx, text);
    def = define("glb");
    check_ok(ctx, un_export(ctx, &def, &report));
    check_ok(ctx, un_file_read(ctx, scratch_path("export/glb/surface.0001.glb"), &text, &size));
    assert_non_null(memmem(text, size, "0.5,0,0,1]", 10));
    un_free(ctx, text);
    scratch_write("bodies.csv", table, 100); /* frame 1 is gone */
    static const char *const formats[] = {"usd", "glb"};
    for (int i = 0; i < 2; i++) {
        def = define(formats[i]);
        assert_int_equal(un_export(ctx, &def, &report), UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), "bodies.csv has no row for frame 1"));
    }
    check_context_end(ctx);
}

static bool stop_at_once(void *user, int32_t done, int32_t total)
{
    assert_true(done >= 1 && done <= total);
    ++*(int *)user;
    return false;
}

static void refused(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    un_export_report report;
    un_export_def def = define("abc");
    assert_int_equal(un_export(ctx, &def, &report), UN_ERROR_ARGUMENT);
    check_message(ctx, "ply, obj, vtk, usd, glb or vdb");
    def = define("ply");
    def.directory = "/nowhere";
    assert_int_equal(un_export(ctx, &def, &report), UN_ERROR_ARGUMENT);
    check_message(ctx, "/nowhere");
    def = define("ply");
    def.first = 2, def.last = 7;
    assert_int_equal(un_export(ctx, &def, &report), UN_ERROR_ARGUMENT);
    check_message(ctx, "frames 0 to 2");
    def = define("obj");
    def.surface = false;
    assert_int_equal(un_export(ctx, &def, &report), UN_ERROR_ARGUMENT);
    check_message(ctx, "has nothing of the requested kind");
    def = define("ply");
    def.output = scratch_path("scene.lua"); /* a file */
    assert_int_equal(un_export(ctx, &def, &report), UN_ERROR_FILE);
    check_message(ctx, "a file has that name");
    int calls = 0;
    static const char *const formats[] = {"ply", "obj", "vtk", "usd", "glb"};
    for (int f = 0; f < 5; f++) {
        def = define(formats[f]);
        def.progress = stop_at_once;
        def.user = &calls;
        assert_int_equal(un_export(ctx, &def, &report), UN_INTERRUPTED);
        assert_int_equal(calls, f + 1);
    }
    scratch_write("frames/0001/surface.ply", "ply\n", 4);
    for (int f = 0; f < 5; f++) {
        def = define(formats[f]);
        assert_int_not_equal(un_export(ctx, &def, &report), UN_OK);
        check_message(ctx, "0001/surface.ply");
    }
    check_context_end(ctx);
}

/* A limit on files stands for a disk that is full. */
static void full_disk(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    static const char *const formats[] = {"ply", "obj", "vtk", "usd", "glb"};
    for (int f = 0; f < 5; f++) {
        un_export_report report;
        un_export_def def = define(formats[f]);
        room_for_files(150);
        un_status status = un_export(ctx, &def, &report);
        room_for_files(RLIM_INFINITY);
        assert_int_equal(status, UN_ERROR_FILE);
        check_message(ctx, "cannot write");
        check_message(ctx, "; ");
    }
    check_context_end(ctx);
}

/* Every file cut short at every byte, and with every byte of its head changed, of cells those of
 * the data too, is read or refused, and nothing leaks. */
static void damaged(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    static const char *const names[] = {"frames/0000/particles.vtp", "frames/0000/mesh.vtu",
                                        "frames/0000/surface.ply"};
    for (int f = 0; f < 3; f++) {
        char *bytes;
        size_t size;
        check_ok(ctx, un_file_read(ctx, scratch_path(names[f]), &bytes, &size));
        const char *end = strstr(bytes, f < 2 ? "raw\">\n_" : "end_header\n");
        size_t data = (size_t)(end - bytes);
        for (size_t n = 0; n < size + (f == 1 ? size : data); n++) {
            char *copy = un_alloc(ctx, size, 1);
            memcpy(copy, bytes, size);
            if (n >= size) copy[n - size] ^= 1 + (n & 15);
            scratch_write("damaged", copy, n < size ? n : size);
            un_free(ctx, copy);
            un_particles p;
            un_cells cells;
            un_trimesh mesh;
            un_status status = f == 0 ? un_output_read_particles(ctx, scratch_path("damaged"), &p)
                               : f == 1
                                   ? un_output_read_cells(ctx, scratch_path("damaged"), &cells)
                                   : un_output_read_surface(ctx, scratch_path("damaged"), &mesh);
            if (status == UN_OK && f == 0) un_particles_free(ctx, &p);
            if (status == UN_OK && f == 1) un_cells_free(ctx, &cells);
            if (status == UN_OK && f == 2) un_trimesh_free(ctx, &mesh);
            if (n < data) assert_int_equal(status, UN_ERROR_FILE);
        }
        un_free(ctx, bytes);
    }
    check_context_end(ctx);
}

static un_status export_all(un_context *ctx, void *arg)
{
    un_export_report report;
    un_export_def def = define(arg);
    def.last = 0;
    return un_export(ctx, &def, &report);
}

static void allocation_failures(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx);
    check_context_end(ctx);
    /* meshing solids takes its time, and has tests of its own */
    static const char plain[] = "scene { liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } } }\n";
    scratch_write("scene.lua", plain, sizeof plain - 1);
    static const char *const formats[] = {"ply", "obj", "vtk", "usd", "glb"};
    for (int f = 0; f < 5; f++) check_allocation_failures(export_all, (void *)formats[f], 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ply_and_obj, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(vtk, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(mixed_liquid, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(usd, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(glb, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(solids_are_where_the_table_says, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(refused, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(full_disk, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(damaged, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(allocation_failures, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
