/* Progress: the time left, of a run that was suspended for a day.
 * test-wrap: un_seconds */
#include "run/folder.h"

double __real_un_seconds(void);
double __wrap_un_seconds(void);

static double asleep;

double __wrap_un_seconds(void)
{
    return __real_un_seconds() + asleep;
}

static bool sleep_a_day(void *user, const un_progress *progress)
{
    double *left = user;
    if (progress->frame_fraction > 0) asleep = 86400; /* in the middle of a frame */
    *left = fmax(*left, progress->seconds_left);
    return true;
}

static void a_day_asleep_is_no_work(void **state)
{
    (void)state;
    static const char text[] = "scene { detail = { finest = 8 }, frames = { count = 6, rate = 4 },"
                               " output = { surface = false, particles = false },"
                               " liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } } }";
    un_context *ctx = check_context();
    un_scene *scene;
    scratch_write("scene.lua", text, strlen(text));
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), NULL, 0, &scene));
    double left = 0;
    char directory[256];
    snprintf(directory, sizeof directory, "%s", scratch_path("out"));
    un_run_def def = un_run_def_default();
    def.directory = directory, def.command = "undine run scene.lua";
    def.progress = sleep_a_day, def.user = &left;
    check_ok(ctx, un_run(ctx, scene, &def));
    assert_true(asleep > 0);
    check_below(left, 600);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_day_asleep_is_no_work, folder_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
