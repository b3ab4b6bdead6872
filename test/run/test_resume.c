/* Runs that stop and go on: the same files as if they had not; what is refused, and why.
 * test-wrap: un_method_find */
#include <fcntl.h>
#include <sys/file.h>

#include "run/folder.h"
#include "run/loop.h"

/* ---- a method that can be made to fail ---- */

const un_method *__real_un_method_find(const char *name);
const un_method *__wrap_un_method_find(const char *name);

static un_method troubled;
static int fail_at_step, fail_times, failed_times; /* 0: never */
static un_status fail_with;
static double shortest;

static un_status troubled_step(void *state, double dt, un_step *report)
{
    un_status status = un_method_uniform.step(state, dt, report);
    shortest = fmin(shortest, dt);
    if (status != UN_OK || report->step != fail_at_step || failed_times >= fail_times)
        return status;
    failed_times++;
    if (fail_with == UN_OK) { /* an explosion that the method does not notice itself */
        report->max_speed = 1e9;
        return UN_OK;
    }
    /* and the state is beyond repair */
    un_particles *p = (un_particles *)un_method_uniform.particles(state);
    for (int32_t q = 0; q < p->count; q++) p->v[0][q] = q == 7 ? NAN : 1e300;
    return fail_with;
}

const un_method *__wrap_un_method_find(const char *name)
{
    if (!fail_at_step) return __real_un_method_find(name);
    troubled = un_method_uniform;
    troubled.step = troubled_step;
    return &troubled;
}

static void trouble(int step, int times, un_status status)
{
    fail_at_step = step;
    fail_times = times;
    fail_with = status;
    failed_times = 0;
    shortest = INFINITY;
}

static void write_scene(void)
{
    scratch_write("scene.lua", FOLDER_SCENE, strlen(FOLDER_SCENE));
}

/* ---- the same files; promises/test_runs.c interrupts runs of every method ---- */

static void more_frames_and_going_back(void **state)
{
    (void)state;
    write_scene();
    folder_run whole = {.name = "whole", .overrides = {"frames.count=6"}, .override_count = 1};
    folder_run run = {.name = "again", .def = {.keep_every = 2}};
    folder_ok(&whole);
    folder_ok(&run);
    run.def.resume = true;
    folder_ok(&run); /* nothing left to do */
    folder_same("again", "again", 3);
    run.overrides[0] = "frames.count=6";
    run.override_count = 1;
    folder_ok(&run);
    folder_same("whole", "again", 6);
    for (int32_t frame = 0; frame <= 6; frame++) {
        run.def.has_from_frame = true;
        run.def.from_frame = frame;
        run.stop_after = 1; /* as far back as asked, and no further than the kept ones */
        folder_go(&run);
        un_info info;
        un_context *ctx = check_context();
        check_ok(ctx, un_info_read(ctx, scratch_path("again"), &info));
        check_context_end(ctx);
        assert_true(info.frames_finished <= frame + 1 && info.frames_finished >= frame - 2);
        run.stop_after = 0;
        folder_ok(&run);
        folder_same("whole", "again", 6);
    }
    run.overrides[0] = "frames.count=2";
    run.def.has_from_frame = false;
    assert_int_equal(folder_go(&run), UN_ERROR_SCENE);
    folder_same("whole", "again", 6); /* refused, and nothing touched */
}

/* A copy of a file with a byte changed or an end cut off. */
static void damage(const char *name, const char *bytes, size_t size, uint64_t seed)
{
    size_t at = (size_t)(un_random(seed, 5) * (double)size);
    char *copy = malloc(size + 1);
    memcpy(copy, bytes, size);
    copy[at] = (char)(copy[at] ^ (1 << seed % 8));
    scratch_write(name, copy, seed % 3 == 0 ? at : size);
    free(copy);
}

static void damaged_checkpoints_are_passed_over(void **state)
{
    (void)state;
    write_scene();
    char names[8][160];
    folder_run whole = {.name = "whole"}, run = {.name = "again", .def = {.keep_every = 1}};
    folder_ok(&whole);
    folder_ok(&run);
    assert_true(folder_checkpoints("again", names, 8) >= 3);
    size_t size[2];
    char *newest = folder_read(names[0], &size[0]), *older = folder_read(names[1], &size[1]);
    un_context *ctx = check_context();
    for (uint64_t i = 0; i < 1000; i++) { /* always seen */
        un_state read;
        un_state_init(&read, ctx);
        damage("bad.state", newest, size[0], i);
        assert_int_equal(un_checkpoint_read(&read, scratch_path("bad.state")), UN_ERROR_FILE);
        un_state_free(&read);
    }
    check_context_end(ctx);
    run.def.resume = true;
    for (uint64_t i = 0; i < 20; i++) { /* and the one before is used */
        scratch_write(names[0], newest, size[0]);
        scratch_write(names[1], older, size[1]);
        damage(names[0], newest, size[0], i);
        folder_ok(&run);
        assert_non_null(strstr(run.log, "damaged"));
        assert_non_null(strstr(run.log, strrchr(names[1], '/')));
        folder_same("whole", "again", 3);
    }
    int count = folder_checkpoints("again", names, 8);
    for (int i = 0; i < count; i++) damage(names[i], newest, size[0], 3);
    assert_int_equal(folder_go(&run), UN_ERROR_FILE);
    assert_non_null(strstr(run.message, "none of the"));
    folder_same("whole", "again", 3);
    free(newest);
    free(older);
}

/* Rows that are gone, or are not ours. */
static void damaged_tables_are_seen(void **state)
{
    (void)state;
    write_scene();
    folder_run whole = {.name = "whole"}, run = {.name = "again", .def = {.keep_every = 1}};
    folder_ok(&whole);
    folder_ok(&run);
    size_t size;
    char *stats = folder_read("again/stats.csv", &size);
    run.def.resume = true;
    /* more rows than the checkpoint knows of: the part of a run that was killed */
    char *longer = malloc(size + 20);
    memcpy(longer, stats, size);
    memcpy(longer + size, "99,1,0.4\n17,", 12);
    scratch_write("again/stats.csv", longer, size + 12);
    folder_ok(&run);
    folder_same("whole", "again", 3);
    /* fewer: an older checkpoint is taken */
    size_t cut = size;
    for (int newlines = 0; newlines < 2;) newlines += stats[--cut] == '\n';
    scratch_write("again/stats.csv", stats, cut + 1);
    folder_ok(&run);
    assert_non_null(strstr(run.log, "has lost rows"));
    folder_same("whole", "again", 3);
    free(stats);
    stats = folder_read("again/stats.csv",
                        &size); /* times are written with as many digits as it takes */
    scratch_write("again/stats.csv", "step,frame\n", 11);
    assert_int_equal(folder_go(&run), UN_ERROR_FILE);
    longer = realloc(longer, size);
    assert_non_null(longer);
    memcpy(longer, stats, size);
    longer[3] = '#';
    scratch_write("again/stats.csv", longer, size);
    assert_int_equal(folder_go(&run), UN_ERROR_FILE);
    assert_non_null(strstr(run.message, "other columns"));
    free(stats);
    free(longer);
}

/* ---- the same scene? ---- */

static void what_matters_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gravity={0,-9,0}",
         "gravity was 0 -9.81 0 when the checkpoint was written and is now 0 -9 0"},
        {"detail.finest=7", "detail.finest was 6"},
        {"domain.size={1,1,1.5}", "domain.size"},
        {"domain.open={}", "domain.open"},
        {"frames.rate=24", "frames.rate"},
        {"method=tet", "--method uniform"},
        {"fluid.density=900", "fluid.density was 1000"},
        {"liquid={box{min={0,0,0},max={.5,.51,1}}}", "the shape of liquid"},
        {"solids={}", "the number of solids was 1"},
        {"solids={solid{sphere{center={.7,.3,.5},radius=.2},velocity={-.4,0,0}}}", "the motion of"},
        {"solids={solid{sphere{center={.7,.3,.5},radius=.21},velocity={-.3,0,0}}}", "the shape of"},
        {"solids={solid{sphere{center={.7,.3,.5},radius=.2},velocity={-.3,0,0},friction=1}}",
         "the friction of"},
        {"solids={solid{sphere{center={.7,.3,.5},radius=.2},velocity={-.3,0,0},name='ball'}}",
         "the name of solids[1] (sphere)"},
        {"sources={}", "the number of sources"},
        {"probes={front{axis='y'},height{at={.2,.5}}}", "probe 1"},
        {"probes={front{axis='x'}}", "the number of probes"},
        {"frames.count=1", "--from-frame 1"},
    };
    write_scene();
    folder_run whole = {.name = "whole"}, run = {.name = "again"};
    folder_ok(&whole);
    folder_ok(&run);
    run.def.resume = true;
    run.override_count = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run.overrides[0] = cases[i][0];
        assert_int_equal(folder_go(&run), UN_ERROR_SCENE);
        if (!strstr(run.message, cases[i][1]))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i][0], run.message, cases[i][1]);
    }
    folder_same("whole", "again", 3);
}

/* Where solids were: a row for the start and one for each step, cut with the other tables. */
static void the_motion_of_solids_has_no_gaps(void **state)
{
    (void)state;
    write_scene();
    folder_run whole = {.name = "whole"}, run = {.name = "again", .def = {.keep_every = 1}};
    folder_ok(&whole);
    folder_ok(&run);
    size_t size, stats_size;
    char *table = folder_read("again/bodies.csv", &size);
    char *stats = folder_read("again/stats.csv", &stats_size);
    int rows = 0, steps = 0;
    for (size_t i = 0; i < size; i++) rows += table[i] == '\n';
    for (size_t i = 0; i < stats_size; i++) steps += stats[i] == '\n';
    assert_int_equal(rows, steps);
    assert_non_null(strstr(table, "\n0,0.7,0.3,0.5,1,0,0,0,-0."));
    free(stats);
    /* rows gone: an older checkpoint is taken */
    size_t cut = size;
    for (int newlines = 0; newlines < 2;) newlines += table[--cut] == '\n';
    scratch_write("again/bodies.csv", table, cut + 1);
    run.def.resume = true;
    folder_ok(&run);
    assert_non_null(strstr(run.log, "bodies.csv has lost rows"));
    folder_same("whole", "again", 3);
    free(table);
    /* a scene where nothing moves, in the same place: no table is left */
    run.def.resume = false;
    run.overrides[0] = "solids={}";
    run.override_count = 1;
    folder_ok(&run);
    assert_int_not_equal(access(scratch_path("again/bodies.csv"), F_OK), 0);
}

/* A checkpoint of a version without bodies.csv: the run goes on, and without it. */
static void runs_without_the_table_go_on(void **state)
{
    (void)state;
    write_scene();
    char names[8][160];
    folder_run run = {.name = "again", .stop_after = 2};
    assert_int_equal(folder_go(&run), UN_INTERRUPTED);
    assert_true(folder_checkpoints("again", names, 8) >= 1);
    un_context *ctx = check_context();
    un_state read, old;
    un_state_init(&read, ctx);
    un_state_init(&old, ctx);
    check_ok(ctx, un_checkpoint_read(&read, scratch_path(names[0])));
    assert_non_null(un_state_find(&read, "run.bodies"));
    for (int32_t s = 0; s < read.count; s++) {
        const un_section *section = &read.sections[s];
        if (strcmp(section->name, "run.bodies") == 0) continue;
        check_ok(ctx, un_state_add(&old, section->name, un_section_data(section), section->count,
                                   section->width));
    }
    check_ok(ctx, un_checkpoint_write(ctx, scratch_path(names[0]), &old));
    un_state_free(&old);
    un_state_free(&read);
    check_context_end(ctx);
    assert_int_equal(remove(scratch_path("again/bodies.csv")), 0);
    run.stop_after = 0;
    run.def.resume = true;
    folder_ok(&run);
    assert_int_not_equal(access(scratch_path("again/bodies.csv"), F_OK), 0);
    folder_ok(&run); /* and once more, from its own checkpoints */
}

static void what_does_not_matter_may_change(void **state)
{
    (void)state;
    write_scene();
    folder_run run = {.name = "again"};
    folder_ok(&run);
    /* other words for the same */
    char text[2048];
    snprintf(text, sizeof text, "-- once more\nlocal r = 0.4 / 2\n%s", FOLDER_SCENE);
    char *radius = strstr(text, "radius = 0.2 ");
    assert_non_null(radius);
    memcpy(radius, "radius = r   ", 13);
    scratch_write("scene.lua", text, strlen(text));
    run.def.resume = true;
    run.override_count = 4;
    run.overrides[0] = "output.mesh=true";
    run.overrides[1] = "frames.count=4";
    run.overrides[2] = "detail.surface=9";
    run.overrides[3] = "solver.cfl=0.9";
    folder_ok(&run);
    assert_non_null(strstr(run.log, "solver.cfl was"));
    assert_int_equal(access(scratch_path("again/frames/0004/mesh.vtu"), F_OK), 0);
    assert_int_not_equal(access(scratch_path("again/frames/0003/mesh.vtu"), F_OK), 0);
}

/* ---- numbers that go bad ---- */

static void bad_numbers_are_tried_again(void **state)
{
    (void)state;
    write_scene();
    for (int kind = 0; kind < 2; kind++) {
        folder_run run = {.name = "again"};
        trouble(3, 2, kind ? UN_OK : UN_ERROR_NUMERIC);
        folder_ok(&run);
        assert_int_equal(failed_times, 2);
        assert_non_null(strstr(run.log, "trying again with a step of"));
        assert_non_null(strstr(run.log, "particle is at ("));
        assert_true(shortest < 0.02 && shortest > 0);
        trouble(0, 0, UN_OK);
    }
}

static void a_run_that_breaks_down_can_be_resumed(void **state)
{
    (void)state;
    write_scene();
    folder_run whole = {.name = "whole"};
    folder_ok(&whole);
    for (int kind = 0; kind < 3; kind++) {
        static const un_status statuses[] = {UN_ERROR_NUMERIC, UN_OK, UN_ERROR_MEMORY};
        folder_run run = {.name = "again"};
        trouble(4, 100, statuses[kind]);
        assert_int_equal(folder_go(&run), kind == 2 ? UN_ERROR_MEMORY : UN_ERROR_NUMERIC);
        assert_int_equal(failed_times, kind == 2 ? 2 : 4);
        if (kind < 2) {
            assert_non_null(strstr(run.message, "step 3"));
            assert_non_null(strstr(run.message, "particle is at ("));
        }
        trouble(0, 0, UN_OK);
        char names[8][160];
        assert_true(folder_checkpoints("again", names, 8) > 0);
        assert_non_null(strstr(names[0], "step00000003")); /* the last good state */
        run.def.resume = true;
        folder_ok(&run);
        folder_same("whole", "again", 3);
    }
}

/* ---- memory, and others in the same place ---- */

/* Refused once, a step is tried again with what loading the state anew leaves: to the same bits. */
static void a_step_without_memory_is_tried_again(void **state)
{
    (void)state;
    write_scene();
    folder_run whole = {.name = "whole"}, again = {.name = "again"};
    folder_ok(&whole);
    trouble(3, 1, UN_ERROR_MEMORY);
    folder_ok(&again);
    assert_int_equal(failed_times, 1);
    trouble(0, 0, UN_OK);
    folder_same("whole", "again", 3);
}

static bool every; /* allocation, or some of them */

static void a_run_that_ran_out_of_memory_goes_on(void **state)
{
    (void)state;
    const un_method *method;
    write_scene();
    for (int32_t m = 0; (method = un_method_at(m)); m++) {
        char override[64];
        snprintf(override, sizeof override, "method=%s", method->traits.name);
        folder_run whole = {.name = "whole", .overrides = {override}, .override_count = 1};
        folder_ok(&whole);
        bool finished = false;
        int64_t n = 3, sites = 0;
        for (; !finished && n < 10000;
             n += every ? 1 : (n < 600 ? 47 : 397) << CHECK_SHORT, sites++) {
            folder_run run = {.name = "again",
                              .overrides = {override},
                              .override_count = 1,
                              .fail_allocation = n};
            un_status status = folder_go(&run);
            finished = status == UN_OK;
            if (!finished) assert_int_equal(status, UN_ERROR_MEMORY);
            run.fail_allocation = 0;
            run.def.resume = true;
            folder_ok(&run);
            folder_same("whole", "again", 3);
            char command[320];
            snprintf(command, sizeof command, "rm -r %s", scratch_path("again"));
            assert_int_equal(system(command), 0);
        }
        if (every)
            printf("%s: %d allocations, each failed once\n", method->traits.name, (int)sites);
        assert_true(n > 500);
    }
}

static void one_run_at_a_time(void **state)
{
    (void)state;
    write_scene();
    folder_run run = {.name = "again"};
    folder_ok(&run);
    int fd = open(scratch_path("again/state/lock"), O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    for (int resume = 0; resume < 2; resume++) {
        run.def.resume = resume;
        assert_int_equal(folder_go(&run), UN_ERROR_FILE);
        assert_non_null(strstr(run.message, "another run is writing to"));
    }
    folder_same("again", "again", 3);
    close(fd);
    folder_ok(&run);
}

/* What a killed run left aside goes away, what is not ours stays. */
static void asides_are_cleared(void **state)
{
    (void)state;
    write_scene();
    folder_run run = {.name = "again"};
    folder_ok(&run);
    static const char *const ours[] = {"again/state/frame0003.step00000009.state.77.tmp",
                                       "again/stats.csv.77.tmp", "again/run.json.77.tmp",
                                       "again/frames/0002/surface.ply.77.tmp"};
    static const char *const others[] = {"again/state/mine.tmp", "again/mine.tmp",
                                         "again/frames/0002/mine.tmp", "again/state/frame.state"};
    for (int i = 0; i < 4; i++) scratch_write(ours[i], "x", 1);
    for (int i = 0; i < 4; i++) scratch_write(others[i], "x", 1);
    run.def.resume = true;
    folder_ok(&run);
    for (int i = 0; i < 4; i++) assert_int_not_equal(access(scratch_path(ours[i]), F_OK), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(access(scratch_path(others[i]), F_OK), 0);
}

int main(int argc, char **argv)
{
    every = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(more_frames_and_going_back),
        FOLDER_TEST(damaged_checkpoints_are_passed_over),
        FOLDER_TEST(damaged_tables_are_seen),
        FOLDER_TEST(the_motion_of_solids_has_no_gaps),
        FOLDER_TEST(runs_without_the_table_go_on),
        FOLDER_TEST(what_matters_is_refused),
        FOLDER_TEST(what_does_not_matter_may_change),
        FOLDER_TEST(bad_numbers_are_tried_again),
        FOLDER_TEST(a_run_that_breaks_down_can_be_resumed),
        FOLDER_TEST(a_step_without_memory_is_tried_again),
        FOLDER_TEST(a_run_that_ran_out_of_memory_goes_on),
        FOLDER_TEST(one_run_at_a_time),
        FOLDER_TEST(asides_are_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
