/* Promises of every method, of whole runs in a folder: what `check` says beforehand, every export,
 * and files that do not tell whether the run was interrupted. */
#include "promises/promise.h"
#include "run/folder.h"

static const char text[] =
    "scene { domain = { size = {1, 1, 1}, open = {'top'} },\n"
    "detail = { coarsest = 4, finest = 8, surface = 8 }, frames = { count = 2, rate = 24 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.5, 1} } },\n"
    "solids = { solid { sphere { center = {0.7, 0.3, 0.5}, radius = 0.2 },\n"
    "  velocity = {-0.3, 0, 0} } },\n"
    "sources = { emitter { shape = box { min = {0.2, 0.1, 0.2}, max = {0.5, 0.4, 0.6} },\n"
    "  velocity = {1, 0, 0} }, drain { shape = box { min = {0, 0, 0}, max = {0.2, 0.1, 0.2} } } "
    "},\n"
    "probes = { front { axis = 'x' }, height { at = {0.2, 0.5} } }, output = { mesh = true } }\n";

/* A run of this method in the folder `name`. */
static folder_run begin(const un_method *method, const char *name)
{
    static char override[64];
    snprintf(override, sizeof override, "method=%s", method->traits.name);
    scratch_write("scene.lua", text, strlen(text));
    return (folder_run){.name = name, .overrides = {override}, .override_count = 1};
}

/* ---- beforehand ---- */

static void check_foretells_the_run(const un_method *method)
{
    folder_run run = begin(method, "run");
    un_context *ctx = check_context();
    un_scene *scene;
    un_check check;
    un_info info;
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), run.overrides, 1, &scene));
    check_ok(ctx, un_scene_check(ctx, scene, &check));
    un_scene_destroy(scene);
    folder_ok(&run);
    check_ok(ctx, un_info_read(ctx, scratch_path("run"), &info));
    check_context_end(ctx);
    assert_string_equal(check.method, method->traits.name);
    assert_string_equal(info.method, method->traits.name);
    for (int a = 0; a < 3; a++) assert_int_equal(check.cells[a], info.cells[a]);
    check_near(check.cell_size, 0.125, 1e-12);
    assert_true(check.cell_count > 0);
    assert_true(isfinite(check.seconds_per_frame) && check.seconds_per_frame >= 0);
    if (method->particles) {
        check_near((double)check.particle_count, (double)info.particles_first,
                   0.25 * (double)info.particles_first);
        check_below((double)info.particles_max, 2 * (double)check.particle_count_max);
    }
    /* bytes: finite, and within a factor of what the run took, a small one being coarse to foretell
     */
    print_message("%s: foretold %.3g bytes, took %.3g\n", method->traits.name, check.bytes,
                  run.peak);
    assert_true(isfinite(check.bytes));
    check_below(check.bytes, 4 * run.peak);
    check_below(run.peak, 4 * check.bytes);
}

/* ---- afterwards ---- */

static void every_export_succeeds(const un_method *method)
{
    static const char *const formats[] = {"ply", "obj", "vtk", "usd", "glb", "vdb"};
    folder_run run = begin(method, "run");
    char directory[256];
    folder_ok(&run);
    snprintf(directory, sizeof directory, "%s", scratch_path("run"));
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        un_context *ctx = check_context();
        un_export_def def = un_export_def_default();
        un_export_report report = {0};
        def.directory = directory;
        def.format = formats[i];
        un_status status = un_export(ctx, &def, &report);
        if (status != UN_ERROR_UNAVAILABLE || strcmp(formats[i], "vdb") != 0) {
            if (status != UN_OK) fail_msg("%s: %s", formats[i], un_context_message(ctx));
            assert_int_equal(report.frame_count, 3);
            assert_true(report.file_count > 0 && report.bytes > 100);
        }
        check_context_end(ctx);
    }
}

static void surfaces_can_be_made_again(const un_method *method)
{
    folder_run run = begin(method, "run");
    char directory[256], again[256];
    size_t size[2];
    un_context *ctx = check_context();
    un_resurface_def def = un_resurface_def_default();
    folder_ok(&run);
    snprintf(directory, sizeof directory, "%s", scratch_path("run"));
    snprintf(again, sizeof again, "%s", scratch_path("again"));
    def.directory = directory;
    def.output = again;
    check_ok(ctx, un_resurface(ctx, &def));
    check_context_end(ctx);
    char *first = folder_read("run/frames/0002/surface.ply", &size[0]);
    char *second = folder_read("again/frames/0002/surface.ply", &size[1]);
    assert_true(first && second && size[0] > 1000);
    check_near((double)size[1] / (double)size[0], 1, 0.1);
    if (method->traits.adaptive) { /* from particles alone */
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(first, second, size[0]);
    }
    free(first);
    free(second);
}

/* ---- interrupted ---- */

/* Stopped after each step in turn, and resumed with other threads. */
static void an_interrupted_run_leaves_the_same_files(const un_method *method)
{
    folder_run whole = begin(method, "whole");
    folder_ok(&whole);
    for (int stop = 1; stop < 100; stop++) {
        folder_run run = begin(method, "again");
        run.threads = 1 + stop % 3;
        run.stop_after = stop;
        un_status status = folder_go(&run);
        if (status == UN_OK) return;
        assert_int_equal(status, UN_INTERRUPTED);
        run.def.resume = true;
        run.stop_after = stop % 2 ? 0 : 1; /* some are interrupted a second time */
        run.threads = 1 + stop % 2;
        if (folder_go(&run) == UN_INTERRUPTED) folder_ok(&run);
        assert_non_null(strstr(run.log, "resuming from"));
        folder_same("whole", "again", 2);
    }
    fail_msg("it takes more than 100 steps");
}

int main(void)
{
    static const promise promises[] = {
        {"check_foretells_the_run", check_foretells_the_run, NULL, false},
        {"every_export_succeeds", every_export_succeeds, NULL, false},
        {"surfaces_can_be_made_again", surfaces_can_be_made_again, NULL, false},
        {"an_interrupted_run_leaves_the_same_files", an_interrupted_run_leaves_the_same_files, NULL,
         false},
    };
    check_races_in("every_export*");
    return promises_run(promises, sizeof promises / sizeof *promises, folder_begin, scratch_end);
}
