/* Particles are optional: a method that keeps its own to itself is run, interrupted, checked,
 * drawn, exported, and its surfaces are made again from checkpoints.
 * test-wrap: un_method_find */
#include "method/core.h"
#include "run/folder.h"

/* ---- uniform, as one without particles would show itself ---- */

const un_method *__wrap_un_method_find(const char *name);

static void tell_nothing(un_step *report)
{
    report->particles = report->ballistic = 0;
    report->work = (double)report->cells;
}

static un_status bare_fill(void *state)
{
    un_status status = un_method_uniform.fill(state);
    tell_nothing(&((un_core *)state)->last);
    return status;
}

static un_status bare_step(void *state, double dt, un_step *report)
{
    un_status status = un_method_uniform.step(state, dt, report);
    tell_nothing(report);
    return status;
}

static un_status bare_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    un_status status = un_method_uniform.estimate(ctx, scene, estimate);
    estimate->particle_count = estimate->particle_count_max = 0;
    return status;
}

const un_method *__wrap_un_method_find(const char *name)
{
    static un_method bare;
    (void)name;
    bare = un_method_uniform;
    bare.traits.particles = false;
    bare.particles = NULL;
    bare.depth = NULL;
    bare.fill = bare_fill;
    bare.step = bare_step;
    bare.estimate = bare_estimate;
    return &bare;
}

/* ---- runs ---- */

static folder_run begin(const char *name)
{
    scratch_write("scene.lua", FOLDER_SCENE, strlen(FOLDER_SCENE));
    return (folder_run){.name = name, .overrides = {"output.mesh=true"}, .override_count = 1};
}

static bool is_there(const char *name)
{
    return access(scratch_path(name), F_OK) == 0;
}

static void a_run_writes_all_but_particles(void **state)
{
    (void)state;
    folder_run run = begin("run");
    un_context *ctx = check_context();
    un_info info;
    folder_ok(&run);
    assert_true(is_there("run/frames/0003/surface.ply") && is_there("run/frames/0003/mesh.vtu"));
    assert_false(is_there("run/frames/0003/particles.vtp") || is_there("run/particles.pvd"));
    check_ok(ctx, un_info_read(ctx, scratch_path("run"), &info));
    assert_string_equal(info.status, "done");
    assert_int_equal(info.particles_max, 0);
    assert_true(info.volume_last > 0);
    check_context_end(ctx);
}

static void an_interrupted_run_goes_on(void **state)
{
    (void)state;
    folder_run whole = begin("whole");
    folder_ok(&whole);
    for (int stop = 1; stop < 6; stop++) {
        folder_run run = begin("again");
        run.stop_after = stop;
        assert_int_equal(folder_go(&run), UN_INTERRUPTED);
        run.stop_after = 0;
        run.def.resume = true;
        folder_ok(&run);
        folder_same("whole", "again", 3);
    }
}

static void check_foretells_without_particles(void **state)
{
    (void)state;
    folder_run run = begin("run");
    un_context *ctx = check_context();
    un_scene *scene;
    un_check check;
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), run.overrides, 1, &scene));
    check_ok(ctx, un_scene_check(ctx, scene, &check));
    un_scene_destroy(scene);
    check_context_end(ctx);
    assert_int_equal(check.particle_count_max, 0);
    assert_true(check.cell_count > 0 && check.bytes > 0 && check.seconds_per_frame > 0);
    for (int i = 0; i < check.warning_count; i++)
        assert_null(strstr(check.warnings[i], "the liquid"));
}

/* ---- what is made of a run ---- */

static void exports_leave_particles_out(void **state)
{
    static const char *const formats[] = {"ply", "obj", "vtk", "usd", "glb"};
    char directory[256];
    (void)state;
    folder_run run = begin("run");
    folder_ok(&run);
    snprintf(directory, sizeof directory, "%s", scratch_path("run"));
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        un_context *ctx = check_context();
        un_export_def def = un_export_def_default();
        un_export_report report;
        def.directory = directory;
        def.format = formats[i];
        def.particles = true;
        check_ok(ctx, un_export(ctx, &def, &report));
        assert_int_equal(report.frame_count, 4);
        assert_true(report.file_count > 0);
        check_context_end(ctx);
    }
}

static void pictures_need_no_particles(void **state)
{
    enum { SIDE = 32 };
    static uint8_t rgb[SIDE * SIDE * 3];
    (void)state;
    folder_run run = begin("run");
    un_context *ctx = check_context();
    un_render_def def = un_render_def_default();
    un_renderer *r;
    folder_ok(&run);
    def.width = def.height = SIDE;
    def.samples = 1;
    un_status status = un_renderer_create(ctx, scratch_path("run"), &def, &r);
    if (status != UN_ERROR_UNAVAILABLE) { /* built without a renderer */
        check_ok(ctx, status);
        check_ok(ctx, un_renderer_frame(r, 3, rgb));
        un_renderer_destroy(r);
        def.particles = true; /* asked for, and told that there are none */
        check_ok(ctx, un_renderer_create(ctx, scratch_path("run"), &def, &r));
        assert_int_equal(un_renderer_frame(r, 3, rgb), UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), "particles"));
        un_renderer_destroy(r);
    }
    check_context_end(ctx);
}

/* ---- surfaces again, from checkpoints ---- */

static char from[256], to[256], said[1024];

static void hear(void *user, un_log_level level, const char *message)
{
    (void)user;
    if (level == UN_LOG_WARNING) snprintf(said, sizeof said, "%s", message);
}

static un_context *listening_context(void)
{
    un_context_def context = un_context_def_default();
    context.log = hear;
    said[0] = 0;
    return un_context_create(&context);
}

/* A run of six frames with a checkpoint of each, or only of 0, 5 and 6. */
static un_resurface_def begin_surfaces(bool all)
{
    folder_run run = begin("run");
    char names[8][160];
    run.def.keep_every = 1;
    run.overrides[run.override_count++] = "frames.count=6";
    folder_ok(&run);
    assert_int_equal(folder_checkpoints("run", names, 8), 7);
    for (int i = 2; i < 6 && !all; i++) remove(scratch_path(names[i]));
    snprintf(from, sizeof from, "%s", scratch_path("run"));
    snprintf(to, sizeof to, "%s", scratch_path("to"));
    un_resurface_def def = un_resurface_def_default();
    def.directory = from;
    def.output = to;
    return def;
}

/* A surface without its velocities. Where no particle is near, uniform takes them from faces, whose
 * velocities are no part of its state. */
static char *read_shape(const char *name, size_t *size)
{
    char *text = folder_read(name, size);
    assert_non_null(text);
    const char *count = strstr(text, "element vertex "), *end = strstr(text, "end_header\n");
    assert_true(count && end);
    size_t at = (size_t)(end - text) + strlen("end_header\n");
    for (long v = strtol(count + strlen("element vertex "), NULL, 10); v > 0; v--, at += 36) {
        assert_true(at + 36 <= *size);
        memset(text + at + 24, 0, 12);
    }
    return text;
}

static void surfaces_come_from_checkpoints(void **state)
{
    (void)state;
    un_resurface_def def = begin_surfaces(true);
    un_context *ctx = listening_context();
    char names[2][64];
    size_t size[2];
    check_ok(ctx, un_resurface(ctx, &def));
    assert_string_equal(said, "");
    for (int frame = 0; frame <= 6; frame++) { /* bit by bit those of the run */
        snprintf(names[0], sizeof names[0], "run/frames/%04d/surface.ply", frame);
        snprintf(names[1], sizeof names[1], "to/frames/%04d/surface.ply", frame);
        char *first = read_shape(names[0], &size[0]), *second = read_shape(names[1], &size[1]);
        assert_true(size[0] == size[1] && size[0] > 500);
        assert_memory_equal(first, second, size[0]);
        free(first);
        free(second);
    }
    assert_true(is_there("to/surface.pvd") && is_there("to/run.json"));
    def.resolution = 24;
    def.first = def.last = 4;
    check_ok(ctx, un_resurface(ctx, &def));
    free(folder_read("run/frames/0004/surface.ply", &size[0]));
    free(folder_read("to/frames/0004/surface.ply", &size[1]));
    assert_true(size[1] > 4 * size[0]);
    check_context_end(ctx);
}

static void only_frames_with_a_checkpoint_can_be_made(void **state)
{
    (void)state;
    un_resurface_def def = begin_surfaces(false);
    un_context *ctx = listening_context();
    def.first = 2;
    def.last = 3;
    assert_int_equal(un_resurface(ctx, &def), UN_ERROR_ARGUMENT);
    assert_non_null(strstr(un_context_message(ctx), "frames 0, 5, 6;"));
    assert_false(is_there("to"));
    def.first = 0;
    def.last = -1;
    check_ok(ctx, un_resurface(ctx, &def));
    assert_non_null(strstr(said, "frames 0, 5, 6 only"));
    assert_true(is_there("to/frames/0000/surface.ply") && is_there("to/frames/0005/surface.ply"));
    assert_false(is_there("to/frames/0003") || is_there("to/surface.pvd"));
    check_context_end(ctx);
}

static void what_cannot_be_made_is_said(void **state)
{
    (void)state;
    un_resurface_def def = begin_surfaces(false);
    un_context *ctx = check_context();
    char names[8][160];
    def.smoothing = 3;
    assert_int_equal(un_resurface(ctx, &def), UN_ERROR_ARGUMENT);
    assert_non_null(strstr(un_context_message(ctx), "no particles"));
    def.smoothing = -1;
    int count = folder_checkpoints("run", names, 8);
    assert_int_equal(count, 3);
    scratch_write(names[0], "nonsense", 8);
    assert_int_equal(un_resurface(ctx, &def), UN_ERROR_FILE);
    for (int i = 0; i < count; i++) remove(scratch_path(names[i]));
    assert_int_equal(un_resurface(ctx, &def), UN_ERROR_ARGUMENT);
    assert_non_null(strstr(un_context_message(ctx), "holds none;"));
    check_context_end(ctx);
}

static un_status make_last(un_context *ctx, void *def)
{
    return un_resurface(ctx, def);
}

static void failing_allocations(void **state)
{
    (void)state;
    un_resurface_def def = begin_surfaces(false);
    def.first = def.last = 6;
    check_allocation_failures(make_last, &def, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_run_writes_all_but_particles),
        FOLDER_TEST(an_interrupted_run_goes_on),
        FOLDER_TEST(check_foretells_without_particles),
        FOLDER_TEST(exports_leave_particles_out),
        FOLDER_TEST(pictures_need_no_particles),
        FOLDER_TEST(surfaces_come_from_checkpoints),
        FOLDER_TEST(only_frames_with_a_checkpoint_can_be_made),
        FOLDER_TEST(what_cannot_be_made_is_said),
        FOLDER_TEST(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
