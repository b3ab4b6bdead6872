/* Pages saved whole and comparisons: what is in them, of what is damaged, missing or without end.
 */
#include "cells.h"
#include "../output/scratch.h"

#include <zlib.h>

#include "view/view.h"

static const char scene_text[] =
    "scene { domain = { size = {1, 1, 1} }, detail = { finest = 8, surface = 8 },\n"
    "  frames = { count = 2, rate = 24 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.3, 0.5} } },\n"
    "  render = { camera = { eye = {2, 1, 2} } } }\n";
static const char record[] =
    "{\"method\": \"uniform\", \"status\": \"running\", \"frames\": {\"finished\": 1, "
    "\"planned\": 5, \"rate\": 24}}\n";
static const char stats[] =
    "step,frame,time,dt,particles,ballistic,cells,nodes,volume,volume_error,energy_kinetic,"
    "energy_potential,momentum_x,momentum_y,momentum_z,max_speed,max_divergence,"
    "pressure_iterations,pressure_residual,bytes,seconds\n"
    "0,0,0,0,5,0,8,9,1,0,0,0,0,0,0,0,0,0,0,1000,0\n"
    "1,1,0.04,0.04,5,0,8,9,1,0,1,0,0,0,0,2,0,3,1e-5,1000,0.5\n";

static un_vec3 positions[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 0.5}};
static int32_t triangles[][3] = {{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};

/* Frame 0 has a surface, frame 1 an empty one, frame 2 is still being written. */
static void make_run(un_context *ctx, const char *name)
{
    char path[128];
    for (int frame = 0; frame < 3; frame++) {
        snprintf(path, sizeof path, "%s/frames/%04d", name, frame);
        check_ok(ctx, un_directory_create(ctx, scratch_path(path)));
        un_trimesh mesh = {.vertex_count = 4,
                           .triangle_count = 4,
                           .position = positions,
                           .normal = positions,
                           .velocity = positions,
                           .triangle = triangles};
        if (frame == 1) mesh.vertex_count = mesh.triangle_count = 0;
        if (frame == 2) continue;
        snprintf(path, sizeof path, "%s/frames/%04d/surface.ply", name, frame);
        check_ok(ctx, un_output_surface(ctx, scratch_path(path), &mesh));
        un_particles p = {0};
        check_ok(ctx, un_particles_reserve(ctx, &p, 1));
        snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", name, frame);
        check_ok(ctx, un_output_particles(ctx, scratch_path(path), &p, NULL)); /* none */
        un_particles_free(ctx, &p);
    }
    static const struct {
        const char *name, *text;
    } files[] = {{"scene.lua", scene_text}, {"run.json", record}, {"stats.csv", stats}};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", name, files[i].name);
        scratch_write(path, files[i].text, strlen(files[i].text));
    }
}

/* ---- cells ---- */

static uint8_t *unpack(const un_text *t, uLongf *size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static uint8_t packed[1 << 16], bytes[1 << 18];
    size_t used = 0;
    assert_int_equal(t->used % 4, 0);
    for (size_t i = 0; i < t->used; i += 4) {
        uint32_t word = 0;
        for (size_t k = 0; k < 4; k++) {
            const char *digit = strchr(digits, t->bytes[i + k]);
            word = word << 6 | (t->bytes[i + k] == '=' ? 0 : (uint32_t)(digit - digits));
        }
        for (int k = 0; k < 3; k++) packed[used++] = (uint8_t)(word >> (16 - 8 * k));
    }
    *size = sizeof bytes;
    assert_int_equal(uncompress(bytes, size, packed, used), Z_OK);
    return bytes;
}

/* A cut through 8 cubes a side, whole and simplified. */
static void cells_at_the_cut(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_cells cells;
    check_make_cubes(ctx, &cells, 8, UN_CELL_VOXEL);
    cells.pressure[3] = NAN;
    cells.velocity[3].x = INFINITY;
    double at = un_view_cut_at(un_v3(1, 1, 1), 1, UN_VIEW_MIDDLE);
    check_near(at, 0.49995, 1e-12);
    uLongf size;
    for (int i = 0; i < 3; i++) {
        un_text t = {.ctx = ctx};
        check_ok(ctx, un_view_pack_cut(&t, &cells, 1, at, i == 0 ? 64 : i == 1 ? 63 : 5));
        const uint8_t *bytes = unpack(&t, &size);
        uint32_t counts[3];
        float values[12]; /* bounds, fastest, place, sizes, pressures */
        memcpy(counts, bytes, sizeof counts);
        memcpy(values, bytes + sizeof counts, sizeof values);
        if (i == 0) {
            assert_int_equal(counts[0], 81);
            assert_int_equal(counts[1], 64);
            assert_int_equal(counts[2], 256);
        } else {
            assert_true(counts[1] > 0 && counts[1] <= (i == 1 ? 63 : 5) && counts[0] < 81);
        }
        check_near((double)values[6], 1, 0);
        check_near((double)values[7], at, 1e-7);
        check_near((double)values[8], 0.125, 1e-7);
        check_near((double)values[11], 511, 0);
        un_free(ctx, t.bytes);
    }
    cells.count = 0;
    un_text t = {.ctx = ctx};
    check_ok(ctx, un_view_pack_cut(&t, &cells, 2, at, 5));
    unpack(&t, &size);
    un_free(ctx, t.bytes);
    un_cells_free(ctx, &cells);
    check_context_end(ctx);
}

/* Squares of a third of a cell leave the lattice as it is; of three cells each they leave patches
 * whose points are shared as before. */
static void simpler_cuts(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_cells cells;
    un_slice slice;
    check_make_cubes(ctx, &cells, 9, UN_CELL_VOXEL);
    check_ok(ctx, un_cells_cut(ctx, &slice, &cells, 2, 0.4));
    check_ok(ctx, un_view_simplify_cut(ctx, &slice, 2, 0.037));
    assert_int_equal(slice.count, 81);
    assert_int_equal(slice.point_count, 100);
    check_ok(ctx, un_view_simplify_cut(ctx, &slice, 2, 1.0 / 3 + 1e-6));
    assert_true(slice.point_count <= 16 && slice.count >= 4 && slice.count <= 9);
    for (int32_t i = 0; i < slice.count; i++) {
        assert_true(slice.first[i + 1] - slice.first[i] >= 3);
        for (int32_t k = slice.first[i]; k < slice.first[i + 1]; k++)
            assert_in_range(slice.corner[k], 0, slice.point_count - 1);
    }
    un_slice_free(ctx, &slice);
    un_cells_free(ctx, &cells);
    check_context_end(ctx);
}

/* ---- pages ---- */

static un_status save(un_context *ctx, void *arg)
{
    (void)arg;
    un_view_save_def def = un_view_save_def_default();
    const char *directories[] = {scratch_path("run")};
    def.directories = directories;
    def.directory_count = 1;
    def.path = scratch_path("page.html");
    return un_view_save(ctx, &def);
}

static un_status compare(un_context *ctx, void *arg)
{
    un_compare_def def = un_compare_def_default();
    const char *directories[] = {scratch_path("run"), scratch_path(arg)};
    def.directories = directories;
    def.directory_count = 2;
    def.picture_count = 0;
    def.path = scratch_path("page.html");
    return un_compare(ctx, &def);
}

static void saved_pages(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx, "run");
    assert_int_equal(un_frame_count(ctx, scratch_path("run")), 2);
    assert_int_equal(un_frame_count(ctx, scratch_path("nowhere")), 0);
    un_status status = save(ctx, NULL);
    if (status == UN_ERROR_UNAVAILABLE) skip(); /* without npm */
    check_ok(ctx, status);
    char *text;
    check_ok(ctx, un_file_read(ctx, scratch_path("page.html"), &text, NULL));
    assert_non_null(strstr(text, "\"frames\":2,\"about\""));
    assert_non_null(strstr(text, "id=\"undine-0-surface-1\""));
    assert_null(strstr(text, "id=\"undine-0-surface-2\""));
    assert_non_null(strstr(text, "\"eye\":[2,1,2]"));
    un_free(ctx, text);
    /* damaged: named, and the page that was there stays */
    static const char *const files[] = {"surface.ply", "particles.vtp", "mesh.vtu"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "run/frames/0001/%s", files[i]);
        scratch_write(name, "damaged", 7);
        assert_int_equal(save(ctx, NULL), UN_ERROR_FILE);
        check_message(ctx, name);
        remove(scratch_path(name));
    }
    assert_int_equal(access(scratch_path("page.html"), R_OK), 0);
    check_context_end(ctx);
}

static void comparisons(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const char odd[] = "<b> \xc3\xa4\xff\xed\xa0\x80\x01";
    make_run(ctx, "run");
    make_run(ctx, odd);
    check_ok(ctx, compare(ctx, (void *)(uintptr_t)odd));
    char *text;
    check_ok(ctx, un_file_read(ctx, scratch_path("page.html"), &text, NULL));
    assert_non_null(strstr(text, "run, &lt;b&gt; \xc3\xa4?????"));
    for (const char *c = text; *c; c += un_view_character(c)) assert_true(un_view_character(c) > 0);
    un_free(ctx, text);
    assert_int_equal(compare(ctx, "nowhere"), UN_ERROR_ARGUMENT);
    check_message(ctx, "nowhere has no frames");
    check_context_end(ctx);
}

static void allocation_failures(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    make_run(ctx, "run");
    un_cells cells;
    check_make_cubes(ctx, &cells, 4, UN_CELL_VOXEL);
    check_ok(ctx, un_output_cells(ctx, scratch_path("run/frames/0000/mesh.vtu"), &cells));
    un_cells_free(ctx, &cells);
    bool has_page = save(ctx, NULL) == UN_OK;
    check_context_end(ctx);
    if (has_page) check_allocation_failures(save, NULL, 20000);
    check_allocation_failures(compare, "run", 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_at_the_cut),
        cmocka_unit_test(simpler_cuts),
        cmocka_unit_test_setup_teardown(saved_pages, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(comparisons, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(allocation_failures, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
