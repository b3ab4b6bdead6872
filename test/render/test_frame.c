/* Whole pictures: sound for water, solids and nothing; the same for any thread count; damaged
 * files and failing memory are errors and no more. */
#include "cells.h"
#include "output/output.h"
#include "render/splash.h"

#include <unistd.h>

#define WIDTH 64
#define HEIGHT 36

static char folder[] = "/tmp/undine-frame-XXXXXX";
static char surface[128];
static const char *const names[] = {"frames/0000/surface.ply",
                                    "frames/0000/mesh.vtu",
                                    "frames/0001/surface.ply",
                                    "scene.lua",
                                    "bodies.csv",
                                    "frames/0000",
                                    "frames/0001",
                                    "frames"};

static void name(char *path, const char *rest)
{
    snprintf(path, 128, "%s/%s", folder, rest);
}

static const char *const plain_scene =
    "scene {\n"
    "  domain = { size = {2, 1, 1} },\n"
    "  detail = { finest = 16, surface = 16 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {1, 0.5, 1} } },\n"
    "  solids = { box { min = {1.4, 0, 0.45}, max = {1.5, 0.9, "
    "0.55} } },\n";

static void write_scene(const char *more)
{
    char path[128];
    name(path, "scene.lua");
    FILE *file = fopen(path, "w");
    fprintf(file, "%s%s\n}\n", plain_scene, more);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    char path[128];
    if (!mkdtemp(folder)) return -1;
    for (int i = 7; i >= 5; i--) { /* folders, outermost first */
        name(path, names[i]);
        if (mkdir(path, 0777)) return -1;
    }
    write_scene("");
    name(surface, names[0]);
    splash_mesh mesh;
    double height = 0.47;
    splash_march(&mesh, splash_tank, &height, un_v3(2, 1, 1), 0.125);
    splash_write(&mesh, surface);
    splash_free(&mesh);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        name(path, names[i]);
        remove(path);
    }
    return rmdir(folder);
}

static un_render_def small(void)
{
    un_render_def def = un_render_def_default();
    def.width = WIDTH;
    def.height = HEIGHT;
    def.samples = 4;
    return def;
}

static un_status render(un_context *ctx, int32_t frame, uint8_t *rgb)
{
    un_render_def def = small();
    un_renderer *r;
    UN_TRY(un_renderer_create(ctx, folder, &def, &r));
    un_status status = un_renderer_frame(r, frame, rgb);
    un_renderer_destroy(r);
    return status;
}

/* Builds without Embree say so, and have nothing else to show. */
static void skip_without_embree(un_context *ctx)
{
    un_renderer *r;
    un_render_def def = small();
    un_status status = un_renderer_create(ctx, "/nowhere", &def, &r);
    assert_null(r);
    if (status != UN_ERROR_UNAVAILABLE) return;
    assert_non_null(strstr(un_context_message(ctx), "UNDINE_RENDER"));
    check_context_end(ctx);
    skip();
}

static void pictures_are_sound(void **state)
{
    (void)state;
    static uint8_t water[WIDTH * HEIGHT * 3], empty[WIDTH * HEIGHT * 3];
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    check_ok(ctx, render(ctx, 0, water));
    check_ok(ctx, render(ctx, 1, empty)); /* no surface: floor and solid only */
    double differ = 0, bluer = 0, mean = 0, dark = 0;
    for (int32_t p = 0; p < WIDTH * HEIGHT; p++) {
        const uint8_t *a = water + 3 * p, *b = empty + 3 * p;
        mean += (a[0] + a[1] + a[2]) / 3.0 / (WIDTH * HEIGHT);
        dark += a[0] + a[1] + a[2] < 30;
        bool changed = abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) > 24;
        differ += changed;
        bluer += changed && a[2] - a[0] > b[2] - b[0];
    }
    assert_true(mean > 90 && mean < 230);
    assert_true(dark == 0); /* no black blotches */
    assert_true(differ > 0.1 * WIDTH * HEIGHT && differ < 0.7 * WIDTH * HEIGHT);
    assert_true(bluer > 0.7 * differ);
    check_context_end(ctx);
}

static un_status render_cells(un_context *ctx, uint8_t *rgb)
{
    un_render_def def = small();
    un_renderer *r;
    def.water = false, def.cells = true;
    def.cut_axis = 2, def.cut_at = 0.53;
    UN_TRY(un_renderer_create(ctx, folder, &def, &r));
    un_status status = un_renderer_frame(r, 0, rgb);
    un_renderer_destroy(r);
    return status;
}

static un_status render_cells_once(un_context *ctx, void *arg)
{
    return render_cells(ctx, arg);
}

/* Cells at the cut, those of one level blue and of the other purple; hexahedra as voxels. */
static void cells_are_drawn_where_they_are_cut(void **state)
{
    (void)state;
    static uint8_t rgb[2][WIDTH * HEIGHT * 3];
    char path[128];
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    name(path, "frames/0000/mesh.vtu");
    for (int i = 0; i < 2; i++) {
        un_cells cells;
        check_make_cubes(ctx, &cells, 4, i ? UN_CELL_HEXAHEDRON : UN_CELL_VOXEL);
        for (int c = 0; c < 64; c++) cells.level[c] = c % 4 / 2;
        check_ok(ctx, un_output_cells(ctx, path, &cells));
        un_cells_free(ctx, &cells);
        check_ok(ctx, render_cells(ctx, rgb[i]));
    }
    int blue = 0, purple = 0;
    for (int32_t p = 0; p < WIDTH * HEIGHT; p++) {
        const uint8_t *a = rgb[0] + 3 * p;
        blue += a[2] > a[0] + 40 && a[1] > a[0] + 5;
        purple += a[2] > a[1] + 40 && a[0] > a[1] + 20;
    }
    assert_true(blue > 50 && purple > 50);
    assert_memory_equal(rgb[0], rgb[1], sizeof rgb[0]);
    check_context_end(ctx);
    check_allocation_failures(render_cells_once, rgb[0], 10000);
}

/* Straight down through half a metre of water: much less red than on the dry floor. */
static void deep_water_is_blue_green(void **state)
{
    (void)state;
    double ratio[2];
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    un_render_def def = small();
    def.has_eye = def.has_target = true;
    def.eye[0] = def.target[0] = 0.6;
    def.eye[2] = def.target[2] = 0.5;
    def.eye[1] = 3;
    def.fov = 4;
    un_renderer *r;
    check_ok(ctx, un_renderer_create(ctx, folder, &def, &r));
    for (int frame = 0; frame < 2; frame++) {
        static uint8_t rgb[WIDTH * HEIGHT * 3];
        double sum[3] = {0, 0, 0};
        check_ok(ctx, un_renderer_frame(r, frame, rgb));
        for (int32_t i = 0; i < WIDTH * HEIGHT * 3; i++) sum[i % 3] += rgb[i];
        ratio[frame] = sum[0] / sum[2];
    }
    check_near(ratio[1], 1, 0.1);
    check_below(ratio[0], 0.75);
    un_renderer_destroy(r);
    check_context_end(ctx);
}

/* ---- what the scene says of pictures ---- */

typedef struct picture {
    uint8_t rgb[WIDTH * HEIGHT * 3];
} picture;

static void take_picture(un_context *ctx, const char *more, un_render_def def, int32_t frame,
                         picture *out)
{
    un_renderer *r;
    write_scene(more);
    check_ok(ctx, un_renderer_create(ctx, folder, &def, &r));
    check_ok(ctx, un_renderer_frame(r, frame, out->rgb));
    un_renderer_destroy(r);
}

#define SAME(a, b) (memcmp(&(a), &(b), sizeof(picture)) == 0)

/* Options and scene say the same in other words; an option wins over the scene. */
static void the_scene_says_how_it_looks(void **state)
{
    (void)state;
    static picture a, b, usual;
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    take_picture(ctx, "", small(), 0, &usual);

    un_render_def def = small();
    def.has_eye = def.has_target = def.has_fov = true;
    def.eye[0] = 3, def.eye[1] = 1, def.eye[2] = 2.5;
    def.target[0] = 1, def.fov = 40;
    take_picture(ctx, "", def, 0, &a);
    assert_false(SAME(a, usual));
    static const char camera[] =
        "render = { camera = { eye = {3, 1, 2.5}, target = {1, 0, 0}, fov = 40 } }";
    take_picture(ctx, camera, small(), 0, &b);
    assert_true(SAME(a, b));
    un_render_def other = small();
    other.has_fov = true, other.fov = 25;
    take_picture(ctx, camera, other, 0, &b);
    assert_false(SAME(a, b));
    def.fov = 25;
    take_picture(ctx, "", def, 0, &a);
    assert_true(SAME(a, b));

    def = small();
    def.has_light = def.has_water_colour = def.has_solid_colour = def.has_background = true;
    def.light_azimuth = 20, def.light_elevation = 40;
    def.water_colour[0] = 0.7, def.water_colour[1] = 0.2, def.water_colour[2] = 0.1;
    def.solid_colour[1] = 0.5;
    def.background[2] = 0.3;
    take_picture(ctx, "", def, 0, &a);
    take_picture(ctx,
                 "render = { light = { azimuth = 20, elevation = 40 }, water = {.7, .2, .1},\n"
                 "  solid = {0, .5, 0}, background = {0, 0, .3} }",
                 small(), 0, &b);
    assert_true(SAME(a, b));
    static const char *const each[] = {"light = { azimuth = 20, elevation = 40 }",
                                       "water = {.7, .2, .1}",
                                       "solid = {0, .5, 0}",
                                       "background = {0, 0, .3}",
                                       "camera = { fov = 45 }",
                                       "camera = { target = {0, 0, 0} }"};
    for (int i = 0; i < 6; i++) {
        char more[80];
        snprintf(more, sizeof more, "render = { %s }", each[i]);
        take_picture(ctx, more, small(), 0, &a);
        assert_false(SAME(a, usual));
        assert_false(SAME(a, b));
    }

    /* it moves, with the frame's time: no liquid in frame 1, so that only the camera differs */
    static const char moving[] =
        "render = { camera = { eye = function(t) return {3, 1 + 24 * t, 2.5} end } }";
    take_picture(ctx, moving, small(), 1, &a);
    take_picture(ctx, "render = { camera = { eye = {3, 2, 2.5} } }", small(), 1, &b);
    assert_true(SAME(a, b));
    take_picture(ctx, "render = { camera = { eye = {3, 1, 2.5} } }", small(), 1, &b);
    assert_false(SAME(a, b));

    /* together they may be wrong */
    write_scene(camera);
    def = small();
    def.has_eye = true, def.eye[0] = 1;
    un_renderer *r;
    assert_int_equal(un_renderer_create(ctx, folder, &def, &r), UN_ERROR_ARGUMENT);
    assert_non_null(strstr(un_context_message(ctx), "same point"));
    write_scene("");
    check_context_end(ctx);
}

/* Frame 1 has no liquid: only the solid can differ. */
static void solids_are_where_the_table_says(void **state)
{
    (void)state;
    static uint8_t function[WIDTH * HEIGHT * 3], table[WIDTH * HEIGHT * 3],
        moved[WIDTH * HEIGHT * 3];
    static const char moving[] = "solids = { box { min = {.2, 0, .4}, max = {.4, .5, .6},\n"
                                 "velocity = {12, 0, 0} } }, frames = { count = 1, rate = 12 }";
    un_context *ctx = check_context();
    char path[128];
    skip_without_embree(ctx);
    write_scene(moving);
    check_ok(ctx, render(ctx, 1, function)); /* of a version that wrote no table */
    name(path, "bodies.csv");
    for (int row = 0; row < 3; row++) {
        FILE *file = fopen(path, "w");
        fprintf(file, "time,body1_x,body1_y,body1_z,body1_qw,body1_qx,body1_qy,body1_qz\n");
        fprintf(file, "0,0.3,0.25,0.5,1,0,0,0\n");
        if (row < 2) fprintf(file, "%.17g,%g,0.25,0.5,1,0,0,0\n", 1 / 12.0, row ? 0.9 : 1.3);
        fclose(file);
        if (row < 2) check_ok(ctx, render(ctx, 1, row ? moved : table));
    }
    assert_memory_equal(function, table, sizeof table);
    assert_memory_not_equal(table, moved, sizeof table);
    assert_int_equal(render(ctx, 1, moved), UN_ERROR_FILE); /* cut short */
    assert_non_null(strstr(un_context_message(ctx), "no row for frame 1"));
    remove(path);
    write_scene("");
    check_context_end(ctx);
}

static void any_thread_count_gives_the_same_bits(void **state)
{
    (void)state;
    static uint8_t first[WIDTH * HEIGHT * 3], next[WIDTH * HEIGHT * 3];
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        if (threads == 1) skip_without_embree(ctx);
        check_ok(ctx, render(ctx, 0, threads == 1 ? first : next));
        if (threads > 1) assert_memory_equal(first, next, sizeof first);
        check_context_end(ctx);
    }
}

static void wrong_definitions_are_refused(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    un_render_def def[9];
    for (int i = 0; i < 9; i++) def[i] = small();
    def[0].width = 0;
    def[1].width = def[1].height = INT32_MAX;
    def[2].samples = 0;
    def[3].fov = NAN;
    def[4].has_eye = true;
    def[4].eye[2] = INFINITY;
    def[5].has_eye = def[5].has_target = true;
    def[6].height = -5;
    def[7].has_water_colour = true;
    def[7].water_colour[1] = 1.5;
    def[8].has_background = true;
    def[8].background[2] = NAN;
    for (int i = 0; i < 9; i++) {
        un_renderer *r;
        assert_int_equal(un_renderer_create(ctx, folder, &def[i], &r), UN_ERROR_ARGUMENT);
        assert_null(r);
    }
    un_renderer *r;
    assert_int_equal(un_renderer_create(ctx, "/nowhere", &def[0], &r), UN_ERROR_ARGUMENT);
    def[0] = small();
    assert_int_equal(un_renderer_create(ctx, "/nowhere", &def[0], &r), UN_ERROR_FILE);
    assert_non_null(strstr(un_context_message(ctx), "/nowhere"));
    uint8_t pixel[3];
    check_ok(ctx, un_renderer_create(ctx, folder, &def[0], &r));
    assert_int_equal(un_renderer_frame(r, -1, pixel), UN_ERROR_ARGUMENT);
    un_renderer_destroy(r);
    un_renderer_destroy(NULL);
    check_context_end(ctx);
}

static void damaged_surfaces_are_named(void **state)
{
    (void)state;
    static uint8_t bytes[1 << 20], rgb[WIDTH * HEIGHT * 3];
    char damaged[128];
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    name(damaged, names[2]);
    FILE *file = fopen(surface, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 1000 && size < sizeof bytes);
    un_render_def def = small();
    un_renderer *r;
    check_ok(ctx, un_renderer_create(ctx, folder, &def, &r));
    size_t cuts[] = {0, 3, 40, 300, 500, size / 2, size - 1};
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        file = fopen(damaged, "wb");
        fwrite(bytes, 1, cuts[c], file);
        fclose(file);
        assert_int_equal(un_renderer_frame(r, 1, rgb), UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), damaged));
    }
    const char *garbage[] = {
        "ply\nformat ascii 1.0\nend_header\n",
        "solid x\n",
        "ply\nformat binary_little_endian 1.0\nelement vertex 99999999999\nend_header\n",
        "ply\nformat binary_little_endian 1.0\nelement vertex -1\n",
    };
    for (int i = 0; i < 4; i++) {
        file = fopen(damaged, "wb");
        fputs(garbage[i], file);
        fclose(file);
        assert_int_equal(un_renderer_frame(r, 1, rgb), UN_ERROR_FILE);
    }
    /* An index out of range, a face that is no triangle, a vertex that is no number. */
    const char *end = memmem(bytes, size, "end_header\n", 11);
    size_t start = (size_t)(end - (char *)bytes) + 11, places[] = {size - 1, size - 13, start + 3};
    for (int i = 0; i < 3; i++) {
        uint8_t old = bytes[places[i]], old2 = bytes[places[i] - 1];
        bytes[places[i]] = i == 1 ? 4 : 0x7f;
        if (i == 2) bytes[places[i] - 1] = 0xff; /* NaN */
        file = fopen(damaged, "wb");
        fwrite(bytes, 1, size, file);
        fclose(file);
        bytes[places[i]] = old;
        bytes[places[i] - 1] = old2;
        assert_int_equal(un_renderer_frame(r, 1, rgb), UN_ERROR_FILE);
    }
    /* And goes on afterwards. */
    check_ok(ctx, un_renderer_frame(r, 0, rgb));
    remove(damaged);
    un_renderer_destroy(r);
    check_context_end(ctx);
}

/* Crumpled, inside out, without area, out of this world: not beautiful, but drawn. */
static void any_mesh_can_be_drawn(void **state)
{
    (void)state;
    enum { VERTICES = 300, TRIANGLES = 900 };
    static uint8_t rgb[WIDTH * HEIGHT * 3];
    static un_vec3 position[VERTICES], normal[VERTICES];
    static int32_t triangle[TRIANGLES][3];
    char path[128];
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    name(path, names[2]);
    for (uint64_t round = 0; round < 4; round++) {
        for (uint64_t v = 0; v < VERTICES; v++) {
            double far = round == 3 && v % 50 == 0 ? 1e30 : 1;
            position[v] = un_v3(2 * far * un_random(v, 10 * round),
                                far * un_random(v, 10 * round + 1), un_random(v, 10 * round + 2));
            if (round == 2) position[v].y = 0;
        }
        for (uint64_t t = 0; t < TRIANGLES; t++)
            for (uint64_t c = 0; c < 3; c++)
                triangle[t][c] = (int32_t)(VERTICES * un_random(3 * t + c, 10 * round + 3));
        splash_mesh mesh = {.position = position,
                            .normal = normal,
                            .triangle = triangle,
                            .vertex_count = VERTICES,
                            .triangle_count = TRIANGLES};
        splash_write(&mesh, path);
        check_ok(ctx, render(ctx, 1, rgb));
    }
    remove(path);
    check_context_end(ctx);
}

static un_status tiny(un_context *ctx, void *arg)
{
    (void)arg;
    uint8_t rgb[4 * 4 * 3];
    un_render_def def = small();
    def.width = def.height = 4;
    def.samples = 1;
    un_renderer *r;
    UN_TRY(un_renderer_create(ctx, folder, &def, &r));
    un_status status = un_renderer_frame(r, 0, rgb);
    un_renderer_destroy(r);
    return status;
}

/* The scene's own allocations are walked in its tests: those here are the last ones. */
static void survives_allocation_failures(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    skip_without_embree(ctx);
    check_context_end(ctx);
    check_allocation_failures(tiny, NULL, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_sound),
        cmocka_unit_test(cells_are_drawn_where_they_are_cut),
        cmocka_unit_test(deep_water_is_blue_green),
        cmocka_unit_test(the_scene_says_how_it_looks),
        cmocka_unit_test(solids_are_where_the_table_says),
        cmocka_unit_test(any_thread_count_gives_the_same_bits),
        cmocka_unit_test(wrong_definitions_are_refused),
        cmocka_unit_test(any_mesh_can_be_drawn),
        cmocka_unit_test(damaged_surfaces_are_named),
        cmocka_unit_test(survives_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
