/* Whole runs of tiny scenes: what is written, what is warned of, what memory does. */
#include "run/folder.h"

static un_scene *load(un_context *ctx, const char *text)
{
    un_scene *scene;
    scratch_write("scene.lua", text, strlen(text));
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), NULL, 0, &scene));
    return scene;
}

static bool exists(const char *name)
{
    struct stat found;
    return stat(scratch_path(name), &found) == 0 && found.st_size > 0;
}

/* The file's text, for the caller to free. */
static char *read_text(const char *name)
{
    FILE *file = fopen(scratch_path(name), "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    size_t length = fread(text, 1, (1 << 16) - 1, file);
    fclose(file);
    text[length] = 0;
    return text;
}

static int lines(const char *text)
{
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

static int columns(const char *line)
{
    int count = 1;
    for (; *line && *line != '\n'; line++) count += *line == ',';
    return count;
}

static const char tiny[] =
    "scene {\n"
    "  domain = { size = {1, 1, 1} },\n"
    "  detail = { finest = 8, surface = 12 },\n"
    "  frames = { count = 2, rate = 24 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } },\n"
    "  probes = { front { axis = 'x' }, height { name = 'h1', at = {0.2, 0.5} },\n"
    "             pressure { name = 'p1', at = {0.1, 0.1, 0.5} } },\n"
    "  output = { mesh = true },\n"
    "}\n";

static un_status run_to(un_context *ctx, un_scene *scene, const char *name)
{
    un_run_def def = un_run_def_default();
    char directory[256];
    snprintf(directory, sizeof directory, "%s", scratch_path(name));
    def.directory = directory;
    def.command = "undine run scene.lua";
    return un_run(ctx, scene, &def);
}

static void a_run_writes_what_the_contract_says(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx, tiny);
    check_ok(ctx, run_to(ctx, scene, "out"));
    static const char *const files[] = {"scene.lua",   "run.json",      "stats.csv", "probes.csv",
                                        "surface.pvd", "particles.pvd", "mesh.pvd"};
    char name[128];
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        snprintf(name, sizeof name, "out/%s", files[f]);
        if (!exists(name)) fail_msg("%s is missing", name);
    }
    static const char *const frame_files[] = {"surface.ply", "surface.vtp", "particles.vtp",
                                              "mesh.vtu"};
    for (int frame = 0; frame <= 2; frame++)
        for (int f = 0; f < 4; f++) {
            snprintf(name, sizeof name, "out/frames/%04d/%s", frame, frame_files[f]);
            if (!exists(name)) fail_msg("%s is missing", name);
        }
    char *stats = read_text("out/stats.csv"), *probes = read_text("out/probes.csv");
    char *record = read_text("out/run.json"), *kept = read_text("out/scene.lua");
    static const char head[] = "step,frame,time,dt,particles,ballistic,cells,nodes,volume,"
                               "volume_error,energy_kinetic,energy_potential,momentum_x,momentum_y,"
                               "momentum_z,max_speed,max_divergence,pressure_iterations,"
                               "pressure_residual,bytes,seconds,seconds_";
    assert_memory_equal(stats, head, strlen(head));
    assert_memory_equal(probes, "time,front,h1,p1\n", 17);
    assert_int_equal(lines(stats), lines(probes));
    assert_true(lines(stats) >= 4);
    for (const char *line = stats; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(columns(line), columns(stats));
    for (const char *line = probes; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(columns(line), 4);
    double time, front, height;
    assert_int_equal(sscanf(strchr(probes, '\n') + 1, "%lf,%lf,%lf", &time, &front, &height), 3);
    check_near(time, 0, 0);
    check_near(front, 0.4, 0.02);
    check_near(height, 0.6, 0.02);
    assert_non_null(strstr(record, "\"done\""));
    assert_non_null(strstr(kept, "min = {0, 0, 0}"));
    free(stats);
    free(probes);
    free(record);
    free(kept);
    un_info info;
    check_ok(ctx, un_info_read(ctx, scratch_path("out"), &info));
    assert_int_equal(info.frames_finished, 2);
    check_near(info.time, 2.0 / 24, 1e-9);
    check_below(fabs(info.volume_error_max), 0.05);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void a_second_run_replaces_the_first_ones_frames(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx, tiny);
    check_ok(ctx, run_to(ctx, scene, "out"));
    scratch_write("out/frames/0002/mine.txt", "mine", 4);
    scene->def.frames.count = 1;
    scene->def.output.mesh = false;
    check_ok(ctx, run_to(ctx, scene, "out"));
    assert_true(exists("out/frames/0001/surface.ply"));
    assert_false(exists("out/frames/0001/mesh.vtu"));
    assert_false(exists("out/frames/0002/surface.ply"));
    assert_true(exists("out/frames/0002/mine.txt")); /* not ours to remove */
    char *pvd = read_text("out/surface.pvd");
    assert_null(strstr(pvd, "0002"));
    free(pvd);
    un_info info;
    check_ok(ctx, un_info_read(ctx, scratch_path("out"), &info));
    assert_int_equal(info.frames_finished, 1);
    assert_int_equal(info.frames_planned, 1);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static bool stop_after(void *user, const un_progress *progress)
{
    int *left = user;
    assert_true(progress->frame_count == 2 && progress->particles > 0);
    return --*left > 0;
}

/* A press on liquid that has no way out: the volume cannot be kept, and the run says so. */
static void impossible_runs_are_suspect(void **state)
{
    (void)state;
    static const char press[] =
        "scene { detail = { coarsest = 4, finest = 8 }, frames = { count = 14, rate = 24 },\n"
        "  liquid = { box { min = {0, 0, 0}, max = {1, 0.75, 1} } }, output = { surface = false "
        "},\n"
        "  solids = { solid { box { min = {-1, 0.75, -1}, max = {2, 2, 2} }, velocity = {0, -0.5,"
        " 0} } } }\n";
    un_context *ctx = check_context_threads(1);
    un_info info;
    for (int i = 0; i < 2; i++) {
        un_scene *scene = load(ctx, i ? press : tiny);
        check_ok(ctx, run_to(ctx, scene, "out"));
        check_ok(ctx, un_info_read(ctx, scratch_path("out"), &info));
        const char *want = i ? "% less volume than it should" : "";
        if (i ? !strstr(info.suspect, want) : info.suspect[0] != 0)
            fail_msg("expected \"%s\", got \"%s\"", want, info.suspect);
        un_scene_destroy(scene);
    }
    char *record = read_text("out/run.json");
    assert_non_null(strstr(record, "\"suspect\": \"from step "));
    free(record);
    check_context_end(ctx);
}

/* If speeds go wild, the message says between which walls. */
static void bad_speeds_name_their_walls(void **state)
{
    (void)state;
    static const char text[] =
        "scene { detail = { finest = 8 }, frames = { count = 1 }, liquid = { box { min = {0, 0, 0},"
        " max = {1, 0.5, 1} } }, output = { surface = false },\n"
        "  solids = { solid { box { min = {0.2, 0, 0.2}, max = {0.4, 0.6, 0.4} }, name = 'post' } "
        "},\n sources = { emitter { shape = box { min = {0.4, 0.6, 0.2}, max = {0.6, 0.8, 0.4} },"
        " velocity = {-1e6, 0, 0}, from = 0.01 } } }\n";
    un_context *ctx = check_context_threads(1);
    un_scene *scene = load(ctx, text);
    assert_int_equal(run_to(ctx, scene, "out"), UN_ERROR_NUMERIC);
    const char *said = un_context_message(ctx);
    if (!strstr(said, ", next to solids[1] (box) \"post\" and the back side")) fail_msg("%s", said);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* The floor is wet, and `front` sees nothing: the run says so, once. */
static void fronts_that_see_nothing_are_warned_of(void **state)
{
    (void)state;
    static const char text[] =
        "scene { detail = { finest = 8 }, frames = { count = 2 }, liquid = { box { min = {0, 0, 0},"
        " max = {0.9, %s, 1} } }, output = { surface = false }, probes = { front {} } }\n";
    for (int thin = 0; thin < 2; thin++) {
        folder_run run = {.name = "out"};
        char scene[512];
        snprintf(scene, sizeof scene, text, thin ? "0.08" : "0.5");
        scratch_write("scene.lua", scene, strlen(scene));
        folder_ok(&run);
        const char *said = strstr(run.log, "probe \"front\" sees only liquid");
        assert_int_equal(said != NULL, thin);
        if (said) assert_null(strstr(said + 10, "probe \"front\" sees only liquid"));
    }
}

static void any_number_of_probes_is_written(void **state)
{
    (void)state;
    static const char text[] =
        "local p = {} for i = 1, 300 do p[i] = height { name = 'h' .. i, at = {i / 301, 0.5} } end "
        "scene { detail = { finest = 8 }, frames = { count = 1 }, liquid = { box { min = {0, 0, "
        "0}, max = {1, 0.5, 1} } }, output = { surface = false }, probes = p }\n";
    folder_run run = {.name = "out"};
    scratch_write("scene.lua", text, strlen(text));
    folder_ok(&run);
    char *probes = read_text("out/probes.csv");
    for (const char *line = probes; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(columns(line), 301);
    free(probes);
}

static void an_interrupted_run_says_so(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx, tiny);
    int steps = 2;
    char directory[256];
    snprintf(directory, sizeof directory, "%s", scratch_path("out"));
    un_run_def def = {.directory = directory, .progress = stop_after, .user = &steps};
    assert_int_equal(un_run(ctx, scene, &def), UN_INTERRUPTED);
    check_message(ctx, "interrupted");
    un_info info;
    check_ok(ctx, un_info_read(ctx, directory, &info));
    assert_string_equal(info.status, "interrupted");
    assert_true(exists("out/frames/0000/surface.ply"));
    def.directory = "";
    assert_int_equal(un_run(ctx, scene, &def), UN_ERROR_ARGUMENT);
    def.directory = "/dev/null/no";
    assert_int_equal(un_run(ctx, scene, &def), UN_ERROR_FILE);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Every file of a run but the timings. */
static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    char *first[2] = {NULL, NULL};
    static const char *const files[2] = {"out/frames/0002/surface.ply",
                                         "out/frames/0002/particles.vtp"};
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = check_context_threads(threads);
        un_scene *scene = load(ctx, tiny);
        check_ok(ctx, run_to(ctx, scene, "out"));
        for (int f = 0; f < 2; f++) {
            char *bytes = read_text(files[f]);
            if (first[f]) assert_memory_equal(first[f], bytes, 1 << 16);
            if (first[f]) free(bytes);
            if (!first[f]) first[f] = bytes;
        }
        un_scene_destroy(scene);
        check_context_end(ctx);
    }
    free(first[0]);
    free(first[1]);
}

/* ---- check ---- */

static void check_warns(const char *parts, const char *warning)
{
    un_context *ctx = check_context();
    char text[1024];
    snprintf(text, sizeof text,
             "scene { domain = { size = {1, 1, 1} }, detail = { finest = 8, surface = 8 },\n"
             "frames = { count = 2, rate = 24 }, %s }\n",
             parts);
    un_scene *scene = load(ctx, text);
    un_check check;
    check_ok(ctx, un_scene_check(ctx, scene, &check));
    bool found = !warning && check.warning_count == 0;
    for (int32_t n = 0; n < check.warning_count && warning; n++)
        found |= strstr(check.warnings[n], warning) != NULL;
    if (!found)
        fail_msg("%s: %d warnings, the first \"%s\"; expected \"%s\"", parts, check.warning_count,
                 check.warnings[0], warning ? warning : "none");
    assert_int_equal(check.cells[0], 8);
    check_near(check.cell_size, 0.125, 1e-12);
    assert_true(check.bytes > 0 && check.seconds_per_frame >= 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void check_finds_what_will_go_wrong(void **state)
{
    (void)state;
#define WATER "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.5, 1} } }"
    check_warns(WATER, NULL);
    check_warns(WATER ", solids = { box { min = {0.6, 0, 0}, max = {0.62, 1, 1} } }", "thick");
    check_warns(WATER ", solids = { box { min = {0.2, 0, 0.2}, max = {0.8, 0.4, 0.6} } }",
                "overlaps");
    check_warns(WATER ", solids = { box { min = {3, 0, 0}, max = {4, 1, 1} } }", "outside");
    check_warns(WATER ", sources = { emitter { shape = sphere { center = {0.5, 0.8, 0.5}, "
                      "radius = 0.03 }, velocity = {0, -1, 0} } }",
                "smaller than a cell");
    check_warns(WATER ", sources = { emitter { shape = sphere { center = {2.5, 0.8, 0.5}, "
                      "radius = 0.2 }, velocity = {0, -1, 0} } }",
                "outside");
    check_warns(WATER ", sources = { emitter { shape = sphere { center = {0.5, 0.8, 0.5}, "
                      "radius = 0.15 }, velocity = {0, 0, 0} } }",
                "no velocity");
    check_warns(WATER ", sources = { drain { shape = sphere { center = {0.5, 0.1, 0.5}, "
                      "radius = 0.15 }, from = 7 } }",
                "after the last frame");
    check_warns("liquid = { box { min = {2, 0, 0}, max = {3, 1, 1} } }", "there is none");
    check_warns("liquid = { box { min = {0, 0, 0}, max = {1, 0.05, 1} } }", "thick");
#undef WATER
/* a shell with a bottom thicker than its wall, of 0.5, 0.96 and 1.3 cells */
#define BOWL(method, radius)                                                                       \
    "method = '" method "', liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.2 } }, "      \
    "solids = { subtract { sphere { center = {0.5, 0.5, 0.5}, radius = " radius " }, cylinder { "  \
    "from = {0.5, 0.9, 0.5}, to = {0.5, 2, 0.5}, radius = 0.1 }, intersect { sphere { center = "   \
    "{0.5, 0.5, 0.5}, radius = 0.3 }, box { min = {0, 0.3, 0}, max = {1, 1, 1} } } } }"
    check_warns(BOWL("uniform", "0.3625"), "has walls about 0.06");
    check_warns(BOWL("uniform", "0.42"), "has walls about 0.1");
    check_warns(BOWL("uniform", "0.4625"), NULL);
    check_warns(BOWL("tet", "0.34"), "less than half a finest cell");
    check_warns(BOWL("tet", "0.37"), NULL);
#undef BOWL
}

static void budgets_lower_the_detail(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx, tiny);
    un_check check;
    scene->def.budget.particles = 300;
    check_ok(ctx, un_scene_check(ctx, scene, &check));
    assert_true(check.particle_count_max <= 300);
    assert_true(scene->def.detail.finest < 8 && scene->def.detail.finest >= 4);
    assert_non_null(strstr(check.warnings[0], "lowered"));
    scene->def.budget.particles = 3; /* not even at the coarsest */
    assert_int_equal(un_scene_check(ctx, scene, &check), UN_ERROR_SCENE);
    check_message(ctx, "budget");
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* ---- memory ---- */

/* A splash with three fifths of the memory that it takes by itself: cells and surface become
 * coarser, it is said, and the run comes to its end without having been refused any. */
static void memory_stays_below_a_cap(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'tet', domain = { size = {1, 1, 1} },\n"
        "detail = { coarsest = 6, finest = 24 }, frames = { count = 5, rate = 12 },\n"
        "liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } } }\n";
    double free_peak = 0, free_particles = 0;
    for (int capped = 0; capped < 2; capped++) {
        folder_run r = {.name = "out", .threads = 2};
        scratch_write("scene.lua", text, sizeof text - 1);
        if (capped) r.memory_cap = (size_t)(0.6 * free_peak);
        un_status status = folder_go(&r);
        if (status != UN_OK) fail_msg("with a cap of %zu: %s", r.memory_cap, r.message);
        un_info info;
        un_context *ctx = check_context();
        check_ok(ctx, un_info_read(ctx, scratch_path("out"), &info));
        check_context_end(ctx);
        check_below(info.volume_error_max, 0.06);
        if (capped) {
            check_below(r.peak, 0.97 * (double)r.memory_cap); /* nothing was refused */
            check_below(0.5 * (double)r.memory_cap, r.peak);
            check_below((double)info.particles_max, 0.7 * free_particles);
            assert_non_null(strstr(r.log, "cells are made larger"));
        } else {
            assert_true(r.log[0] == 0);
        }
        free_peak = r.peak;
        free_particles = (double)info.particles_max;
    }
}

/* The n-th allocation of a whole run and all later ones fail. */
static un_status run_once(un_context *ctx)
{
    un_scene *scene;
    UN_TRY(un_scene_load(ctx, scratch_path("scene.lua"), NULL, 0, &scene));
    un_status status = run_to(ctx, scene, "out");
    un_scene_destroy(scene);
    return status;
}

static un_status check_once(un_context *ctx, void *arg)
{
    (void)arg;
    un_scene *scene;
    un_check check;
    UN_TRY(un_scene_load(ctx, scratch_path("scene.lua"), NULL, 0, &scene));
    un_status status = un_scene_check(ctx, scene, &check);
    un_scene_destroy(scene);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] =
        "scene { domain = { size = {1, 1, 1} }, detail = { finest = 6, surface = 6 },\n"
        "frames = { count = 1, rate = 96 }, liquid = { box { min = {0, 0, 0}, max = {0.5, 0.5, 1} "
        "} },\n"
        "solids = { solid { sphere { center = {0.7, 0.3, 0.5}, radius = 0.2 }, velocity = {-1, 0, "
        "0} } },\n"
        "sources = { emitter { shape = box { min = {0.2, 0.1, 0.2}, max = {0.5, 0.4, 0.6} },\n"
        "velocity = {1, 0, 0} }, drain { shape = box { min = {0, 0, 0}, max = {0.2, 0.1, 0.2} } } "
        "},\n"
        "probes = { front { axis = 'x' } }, output = { mesh = true } }\n";
    scratch_write("scene.lua", text, sizeof text - 1);
    int64_t n = -1;
    for (bool done = false; !done;) { /* every second one */
        un_context_def def = un_context_def_default();
        def.threads = 1;
        def.fail_allocation = n += 2;
        un_context *ctx = un_context_create(&def);
        un_status status = run_once(ctx);
        if (status != UN_OK && status != UN_ERROR_MEMORY)
            fail_msg("allocation %d: status %d: %s", (int)n, (int)status, un_context_message(ctx));
        if (status != UN_OK && !*un_context_message(ctx))
            fail_msg("allocation %d: no message", (int)n);
        done = status == UN_OK;
        check_context_end(ctx);
        assert_true(n < 5000);
    }
    check_allocation_failures(check_once, NULL, 5000);
    assert_true(n > 300); /* 643 when this was written */
}

/* The estimate of a run against its peak: of a splash, for which it is made, with a surface and
 * without, and of calm water. */
static void memory_is_as_estimated(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double most; /* times the peak */
    } scenes[] = {
        {"frames = { count = 8, rate = 8 }, liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} "
         "} }",
         1.2},
        {"frames = { count = 1, rate = 60 }, liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } "
         "}, solids = { solid {\n"
         "sphere { center = {0.5, 0.3, 0.5}, radius = 0.2 }, velocity = {1, 0, 0} } }",
         1.45},
        {"frames = { count = 8, rate = 8 }, liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} "
         "} }, output = { surface = false }",
         1.2},
    };
    for (size_t s = 0; s < sizeof scenes / sizeof *scenes; s++)
        for (int32_t finest = 24; finest <= (s == 2 ? 32 : 24); finest += 8) {
            un_context *ctx = check_context();
            char text[1024];
            snprintf(text, sizeof text,
                     "scene { domain = { size = {1, 1, 1} }, detail = { finest = %d }, %s }\n",
                     finest, scenes[s].text);
            un_scene *scene = load(ctx, text);
            un_estimate estimate;
            check_ok(ctx, un_run_fit_budget(ctx, scene, &estimate));
            check_ok(ctx, run_to(ctx, scene, "out"));
            double peak = (double)un_context_peak_bytes(ctx), ratio = estimate.bytes / peak;
            /* tiny runs have overheads that no one plans by */
            if (!(ratio > 0.8 && ratio < scenes[s].most))
                fail_msg("scene %d at %d: estimated %.3g MB, took %.3g MB", (int)s, finest,
                         estimate.bytes / 1e6, peak / 1e6);
            un_scene_destroy(scene);
            check_context_end(ctx);
        }
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, folder_begin, scratch_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(a_run_writes_what_the_contract_says),
        RUN_TEST(a_second_run_replaces_the_first_ones_frames),
        RUN_TEST(impossible_runs_are_suspect),
        RUN_TEST(bad_speeds_name_their_walls),
        RUN_TEST(fronts_that_see_nothing_are_warned_of),
        RUN_TEST(any_number_of_probes_is_written),
        RUN_TEST(an_interrupted_run_says_so),
        RUN_TEST(same_bits_for_any_thread_count),
        RUN_TEST(check_finds_what_will_go_wrong),
        RUN_TEST(budgets_lower_the_detail),
        RUN_TEST(memory_is_as_estimated),
        RUN_TEST(memory_stays_below_a_cap),
        RUN_TEST(every_allocation_may_fail),
    };
    check_races_in("same_bits*");
    check_once_in("memory_*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
