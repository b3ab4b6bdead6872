/* Valid scenes: every key arrives in the definition, shapes are the shapes described, solids move
 * as told, overrides win, and a saved scene loads to the same scene. */
#include "files.h"

#define WATER "liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } }"

static void defaults(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, "scene { " WATER " }");
    const un_scene_def *def = &scene->def;
    assert_string_equal(def->method, "uniform");
    check_near(def->domain.size.x, 1, 0);
    assert_false(def->domain.open[UN_SIDE_TOP]);
    assert_int_equal(def->detail.finest, 64);
    assert_int_equal(def->detail.coarsest, 8);
    assert_int_equal(def->detail.surface, 128);
    assert_int_equal(def->frames.count, 72);
    check_near(def->frames.rate, 24, 0);
    check_near(def->gravity.y, -9.81, 0);
    check_near(def->fluid.density, 1000, 0);
    check_near(def->solver.tolerance, 1e-4, 0);
    check_near(def->solver.cfl, 3, 0);
    check_near(def->solver.pic, 3, 0);
    assert_string_equal(def->solver.kind, "auto");
    assert_string_equal(def->solver.dump, "");
    assert_int_equal(def->solver.dump_every, 10);
    assert_true(def->output.surface && def->output.particles && !def->output.mesh);
    assert_int_equal(def->solid_count + def->source_count + def->probe_count, 0);
    assert_int_equal(scene->note_count, 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void every_key(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(
        ctx,
        "scene {\n"
        "  method = 'uniform',\n"
        "  domain = { size = {2, 1, 0.5}, open = {'top', 'left', 'front'} },\n"
        "  detail = { coarsest = 4, finest = 40, surface = 90 },\n"
        "  frames = { count = 10, rate = 30 },\n"
        "  gravity = {1, -2, 3},\n"
        "  fluid = { density = 900, viscosity = 0, surface_tension = 0.0 },\n"
        "  liquid = { sphere { center = {1, .5, .25}, radius = .1 },\n"
        "             box { min = {0, 0, 0}, max = {.2, .2, .2} }, velocity = {1, 2, 3} },\n"
        "  solids = { sphere { center = {.5, 0, .5}, radius = .1, friction = .25 },\n"
        "             box { min = {0, 0, 0}, max = {1, .1, .1}, velocity = {0, 1, 0} } },\n"
        "  sources = { emitter { shape = sphere { center = {.2, .9, .25}, radius = .05 },\n"
        "                        velocity = {1, 0, 0}, from = .5, to = 2 },\n"
        "              drain { box { min = {.9, 0, 0}, max = {1, .1, 1} }, to = math.huge } },\n"
        "  probes = { front { axis = '-z' }, height { name = 'h1', at = {.5, .25} },\n"
        "             pressure { name = 'p1', at = {1.9, .02, .25} }, front { name = 'x' } },\n"
        "  budget = { particles = 2e6, memory = '8G' },\n"
        "  solver = { kind = 'amg', dump = 'a b/c', dump_every = 3, tolerance = 1e-6, cfl = 2, pic "
        "= 0 },\n"
        "  output = { surface = false, particles = false, mesh = true },\n"
        "}\n");
    const un_scene_def *def = &scene->def;
    check_near(def->domain.size.z, 0.5, 0);
    const bool open[6] = {true, false, false, true, false, true};
    assert_memory_equal(def->domain.open, open, sizeof open);
    assert_int_equal(def->detail.coarsest, 4);
    assert_int_equal(def->detail.finest, 40);
    assert_int_equal(def->detail.surface, 90);
    assert_int_equal(def->frames.count, 10);
    check_near(def->frames.rate, 30, 0);
    check_near(def->gravity.z, 3, 0);
    check_near(def->fluid.density, 900, 0);
    check_near(def->liquid.velocity.z, 3, 0);
    check_below(un_shape_distance(def->liquid.shape, un_v3(1, 0.5, 0.25)), -0.09);
    check_below(un_shape_distance(def->liquid.shape, un_v3(0.1, 0.1, 0.1)), -0.09);
    check_below(-un_shape_distance(def->liquid.shape, un_v3(0.6, 0.6, 0.1)), -0.2);
    assert_int_equal(def->solid_count, 2);
    assert_string_equal(def->solids[0].label, "solids[1] (sphere)");
    assert_string_equal(def->solids[1].label, "solids[2] (box)");
    check_near(def->solids[0].friction, 0.25, 0);
    assert_false(def->solids[0].moves);
    assert_true(def->solids[1].moves);
    assert_int_equal(def->solids[1].pose, -1);
    check_near(def->solids[1].velocity.y, 1, 0);
    assert_int_equal(def->source_count, 2);
    assert_int_equal(def->sources[0].kind, UN_SOURCE_EMITTER);
    check_near(def->sources[0].from, 0.5, 0);
    check_near(def->sources[0].to, 2, 0);
    check_near(def->sources[0].velocity.x, 1, 0);
    assert_int_equal(def->sources[1].kind, UN_SOURCE_DRAIN);
    assert_string_equal(def->sources[1].name, "sources[2] (drain)");
    assert_true(isinf(def->sources[1].to));
    check_near(un_shape_distance(def->sources[1].shape, un_v3(0.95, 0.05, 0.5)), -0.05, 1e-12);
    assert_int_equal(def->probe_count, 4);
    assert_string_equal(def->probes[0].name, "front");
    assert_int_equal(def->probes[0].axis, 2);
    check_near(def->probes[0].sign, -1, 0);
    assert_int_equal(def->probes[1].kind, UN_PROBE_HEIGHT);
    check_near(def->probes[1].at.z, 0.25, 0);
    assert_int_equal(def->probes[2].kind, UN_PROBE_PRESSURE);
    check_near(def->probes[2].at.y, 0.02, 0);
    assert_string_equal(def->probes[3].name, "x");
    assert_int_equal(def->probes[3].axis, 0);
    check_near(def->budget.particles, 2e6, 0);
    check_near(def->budget.memory, 8.0 * (1 << 30), 0);
    assert_string_equal(def->solver.kind, "amg");
    assert_string_equal(def->solver.dump, "a b/c");
    assert_int_equal(def->solver.dump_every, 3);
    check_near(def->solver.cfl, 2, 0);
    check_near(def->solver.pic, 0, 0);
    assert_true(!def->output.surface && !def->output.particles && def->output.mesh);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Distance of the first solid at a point. */
static double distance_of(un_context *ctx, const char *shape, un_vec3 x)
{
    char text[1024];
    snprintf(text, sizeof text, "scene { " WATER ", solids = { %s } }", shape);
    un_scene *scene = load_valid(ctx, text);
    double distance = un_shape_distance(scene->def.solids[0].shape, x);
    un_scene_destroy(scene);
    return distance;
}

static void shapes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *sphere = "sphere { center = {1, 0, 0}, radius = .5 }";
    char text[512];
    check_near(distance_of(ctx, sphere, un_v3(2, 0, 0)), 0.5, 1e-12);
    check_near(distance_of(ctx, "cylinder { from = {0,0,0}, to = {0,1,0}, radius = .25 }",
                           un_v3(1, 0.5, 0)),
               0.75, 1e-12);
    check_near(
        distance_of(ctx, "capsule { from = {0,0,0}, to = {0,1,0}, radius = .25 }", un_v3(0, 2, 0)),
        0.75, 1e-12);
    check_near(
        distance_of(ctx, "torus { center = {0,0,0}, radius = 1, tube = .25 }", un_v3(2, 0, 0)),
        0.75, 1e-12);
    check_near(distance_of(ctx, "plane { point = {0,1,0}, normal = {0,2,0} }", un_v3(5, 3, 5)), 2,
               1e-12);
    snprintf(text, sizeof text, "move { %s, by = {1, 0, 0}, rotate = {0, 0, 90}, scale = 2 }",
             sphere);
    check_near(distance_of(ctx, text, un_v3(1, 2, 0)), -1, 1e-12);
    snprintf(text, sizeof text,
             "move { shape = %s, rotate = { axis = {0, 0, 1}, angle = 90 }, about = {1, 1, 0} }",
             sphere);
    check_near(distance_of(ctx, text, un_v3(2, 1, 0)), -0.5, 1e-12);
    snprintf(text, sizeof text, "union(%s, sphere { center = {3, 0, 0}, radius = .5 })", sphere);
    check_near(distance_of(ctx, text, un_v3(3, 0, 0)), -0.5, 1e-12);
    snprintf(text, sizeof text, "union { %s, sphere { center = {3, 0, 0}, radius = .5 } }", sphere);
    check_near(distance_of(ctx, text, un_v3(3, 0, 0)), -0.5, 1e-12);
    snprintf(text, sizeof text, "subtract(%s, sphere { center = {1, 0, 0}, radius = .25 })",
             sphere);
    check_near(distance_of(ctx, text, un_v3(1, 0, 0)), 0.25, 1e-12);
    snprintf(text, sizeof text, "intersect { %s, plane { point = {1,0,0}, normal = {1,0,0} } }",
             sphere);
    check_near(distance_of(ctx, text, un_v3(1.25, 0, 0)), 0.25, 1e-12);
    snprintf(text, sizeof text, "solid { %s, friction = 1 }", sphere);
    check_near(distance_of(ctx, text, un_v3(2, 0, 0)), 0.5, 1e-12);
    /* A field is sampled, so it is as good as its cells. */
    check_near(distance_of(ctx, "field(function(x, y, z) return y - 0.25 end)", un_v3(.3, .75, .3)),
               0.5, 1e-6);
    check_near(distance_of(ctx, "field { function(x, y, z) return y - 0.25 end, friction = .5 }",
                           un_v3(.3, .05, .3)),
               -0.2, 1e-6);
    check_context_end(ctx);
}

/* Bounds cut a field off, and its samples lie within them; beyond the domain they do not matter. */
static void bounded_fields(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *slab = "field { function(x, y, z)\n"
                       "  assert(x > .15 and x < .65 and z > .15)\n"
                       "  return math.abs(y - .5) - .1 end, min = {.2, -1, .2}, max = {.6, 2, 2} }";
    check_near(distance_of(ctx, slab, un_v3(.4, .45, .6)), -0.05, 1e-6);
    check_near(distance_of(ctx, slab, un_v3(.4, .8, .6)), 0.2, 1e-6);
    check_near(distance_of(ctx, slab, un_v3(.23, .5, .6)), -0.03, 1e-6);
    check_near(distance_of(ctx, slab, un_v3(.63, .5, .6)), 0.03, 1e-6);
    check_below(0.2, distance_of(ctx, slab, un_v3(.9, .5, .6)));
    check_below(distance_of(ctx, slab, un_v3(.9, .5, .6)), 0.301);
    check_near(distance_of(ctx, slab, un_v3(.4, .45, .99)), -0.05, 1e-6);
    /* none of it in the domain */
    check_below(0, distance_of(ctx,
                               "field { function() return -1 end, min = {3, 3, 3}, "
                               "max = {4, 4, 4} }",
                               un_v3(.5, .5, .5)));
    check_context_end(ctx);
    check_message("local f = field { function() return 1 end,\n min = {0, 0, 0} }",
                  "dam.lua:1: field needs both min and max, or none of them");
    check_message("local f = field { function() return 1 end, min = {0, 0, 0},\n max = {1, 0, 1} }",
                  "dam.lua:2: field.max must be above min along x, y and z, got min = {0, 0, 0}, "
                  "max = {1, 0, 1}");
}

static void loops_and_formulas(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, "local pillars = {}\n"
                                      "for i = 1, 5 do\n"
                                      "  local x = 0.1 * i + 0.01 * math.random()\n"
                                      "  table.insert(pillars, cylinder { from = {x, 0, .5},\n"
                                      "    to = {x, 1, .5}, radius = .02 })\n"
                                      "end\n"
                                      "local s = { solids = pillars, " WATER " }\n"
                                      "s.frames = { count = #pillars }\n"
                                      "scene(s)\n");
    assert_int_equal(scene->def.solid_count, 5);
    assert_int_equal(scene->def.frames.count, 5);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void the_same_every_time(void **state)
{
    (void)state;
    check_message(
        "local order = ''\n"
        "for key in pairs { apple = 1, pear = 2, fig = 3, [1] = 4, [-2.5] = 5, plum = 6,\n"
        "                   [7] = 8, quince = 7, Fig = 8 } do\n"
        "  order = order .. key .. ' '\n"
        "end\n"
        "error(order .. (next(_G) and 'done'), 0)",
        "dam.lua: -2.5 1 7 Fig apple fig pear plum quince done");
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, "local first = math.random()\n"
                                      "math.randomseed()\n"
                                      "assert(math.random() == first)\n"
                                      "math.randomseed(0)\n"
                                      "assert(math.random() == first)\n"
                                      "math.randomseed(1)\n"
                                      "assert(math.random() ~= first)\n"
                                      "scene { " WATER " }");
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void only_poses_stay_in_memory(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, "local large = ('x'):rep(2e7)\nscene { " WATER " }");
    check_below((double)un_context_bytes(ctx), 100e3);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void count_logs(void *user, un_log_level level, const char *message)
{
    int *count = user;
    assert_int_equal(level, UN_LOG_NOTE);
    if (*count == 0) assert_string_equal(message, "dam.lua:1: hello 3 true ?[0m");
    ++*count;
}

static void print_goes_to_the_log(void **state)
{
    (void)state;
    int count = 0;
    un_context_def def = un_context_def_default();
    def.threads = 1;
    def.log = count_logs;
    def.user = &count;
    un_context *ctx = un_context_create(&def);
    un_scene *scene = load_valid(ctx, "print('hello', 3, true, '\\27[0m')\n"
                                      "for i = 1, 1000 do print(i) end\n"
                                      "scene { " WATER " }");
    assert_int_equal(count, 100);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void budgets(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const struct {
        const char *text;
        double bytes;
    } cases[] = {{"'512M'", 512.0 * (1 << 20)},
                 {"'1.5G'", 1.5 * (1 << 30)},
                 {"1e9", 1e9},
                 {"'4096K'", 4 << 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "scene { budget = { memory = %s }, " WATER " }", cases[i].text);
        un_scene *scene = load_valid(ctx, text);
        check_near(scene->def.budget.memory, cases[i].bytes, 0);
        un_scene_destroy(scene);
    }
    check_context_end(ctx);
}

/* ---- poses ---- */

static void poses(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(
        ctx,
        "local ball = sphere { center = {0, 0, 0}, radius = .1 }\n"
        "scene { " WATER ", solids = {\n"
        "  ball,\n"
        "  solid { ball, velocity = {1, 2, 3} },\n"
        "  solid { ball, pose = function(t) return { by = {t, 0, 0}, rotate = {0, 0, 90 * t} } end "
        "},\n"
        "  solid { ball, pose = function(t) return {0, t, 0}, { axis = {0, 1, 0}, angle = 90 } end "
        "},\n"
        "  solid { ball, pose = function(t) return { rotate = {0, 0, 90}, about = {1, 0, 0} } end "
        "},\n"
        "  solid { ball, pose = function(t) return {} end },\n"
        "} }");
    un_pose pose;
    un_vec3 x = un_v3(1, 0, 0);
    check_ok(ctx, un_scene_pose(scene, 0, 3, &pose));
    check_near(un_length(un_sub(un_pose_apply(&pose, x), x)), 0, 0);
    check_ok(ctx, un_scene_pose(scene, 1, 0.5, &pose));
    check_near(un_length(un_sub(un_pose_apply(&pose, x), un_v3(1.5, 1, 1.5))), 0, 1e-15);
    check_ok(ctx, un_scene_pose(scene, 2, 1, &pose));
    check_near(un_length(un_sub(un_pose_apply(&pose, x), un_v3(1, 1, 0))), 0, 1e-15);
    check_ok(ctx, un_scene_pose(scene, 3, 2, &pose));
    check_near(un_length(un_sub(un_pose_apply(&pose, x), un_v3(0, 2, -1))), 0, 1e-15);
    check_ok(ctx, un_scene_pose(scene, 4, 2, &pose));
    check_near(un_length(un_sub(un_pose_apply(&pose, un_v3(2, 0, 0)), un_v3(1, 1, 0))), 0, 1e-15);
    check_ok(ctx, un_scene_pose(scene, 5, 2, &pose));
    check_near(un_length(un_sub(un_pose_apply(&pose, x), x)), 0, 0);
    assert_string_equal(scene->def.solids[2].label, "solids[3] (sphere)");
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Those that move and have no name are numbered among those that move, named or not. */
static void names_of_solids(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene =
        load_valid(ctx, "local ball = sphere { center = {0, 0, 0}, radius = .1 }\n"
                        "scene { " WATER ", solids = {\n"
                        "  ball,\n"
                        "  solid { ball, velocity = {1, 2, 3} },\n"
                        "  solid { ball, velocity = {1, 0, 0}, name = 'left-paddle_2.b' },\n"
                        "  solid { ball, pose = function(t) return {} end },\n"
                        "  box { min = {0, 0, 0}, max = {1, 1, 1}, name = 'floor' },\n"
                        "  union { ball, name = 'pair', velocity = {0, 1, 0} },\n"
                        "} }");
    static const char *const names[] = {"", "body1", "left-paddle_2.b", "body3", "floor", "pair"};
    assert_int_equal(scene->def.solid_count, 6);
    for (int i = 0; i < 6; i++) assert_string_equal(scene->def.solids[i].name, names[i]);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void poses_leave_nothing_behind(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene = load_valid(
        ctx, "scene { " WATER ", solids = { sphere { center = {0, 0, 0}, radius = .1,\n"
             "  pose = function(t) return { by = {t, 0, 0}, rotate = {0, 0, t} } end } } }");
    un_pose pose;
    size_t most = 0;
    for (int i = 0; i < 100000; i++) {
        check_ok(ctx, un_scene_pose(scene, 0, i * 1e-3, &pose));
        if (un_context_bytes(ctx) > most) most = un_context_bytes(ctx);
    }
    check_below((double)most, 200e3);
    check_near(pose.translation.x, 99.999, 1e-9);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void check_pose_message(const char *function, double t, const char *message)
{
    un_context *ctx = check_context_threads(1);
    char text[512];
    snprintf(text, sizeof text,
             "scene { " WATER ", solids = { sphere { center = {0, 0, 0}, radius = .1,\n"
             "pose = %s } } }",
             function);
    un_scene *scene = load_valid(ctx, text);
    un_pose pose;
    assert_int_equal(un_scene_pose(scene, 0, t, &pose), UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx), message);
    /* A failed call is no reason for the next to fail. */
    check_ok(ctx, un_scene_pose(scene, 0, 0, &pose));
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Poses are tried at the start and the end (3 s) when a scene is loaded; these fail in between. */
static void poses_that_fail(void **state)
{
    (void)state;
    check_pose_message("function(t) return { by = {t == 1 and 0/0 or 0, 0, 0} } end", 1,
                       "dam.lua:2: pose.by[1] must be a finite number, got nan (in the pose of "
                       "solids[1] (sphere) at t = 1 s)");
    check_pose_message(
        "function(t) return t ~= 1 and {} or 7 end", 1,
        "dam.lua:2: pose must return a table, as in { by = {x, y, z}, rotate = {x, y, "
        "z} }, got 7 (in the pose of solids[1] (sphere) at t = 1 s)");
    check_pose_message("function(t)\n while t == 1 do end return {} end", 1,
                       "dam.lua:3: the pose function takes more than 1 million instructions; is "
                       "there an endless loop? (in the pose of solids[1] (sphere) at t = 1 s)");
    check_pose_message("function(t) local a if t == 1 then\n a = a.b end return {} end", 1,
                       "dam.lua:3: attempt to index a nil value (local 'a') (in the pose of "
                       "solids[1] (sphere) at t = 1 s)");
    check_pose_message("function(t) return { scale = t == 1 and 2 or nil } end", 1,
                       "dam.lua:2: unknown key \"scale\" in pose; known keys are by, rotate, about "
                       "(in the pose of solids[1] (sphere) at t = 1 s)");
    check_pose_message(
        "function(t) local s = 'x' while t == 1 do s = s .. s end return {} end", 1,
        "dam.lua: the pose function needs more than 64 MB of memory; keep its tables "
        "and strings smaller (in the pose of solids[1] (sphere) at t = 1 s)");
    check_message("scene { " WATER ", solids = { sphere { center = {0, 0, 0}, radius = .1,\n"
                  "pose = function(t) return nil end } } }",
                  "dam.lua:2: pose must return a table, as in { by = {x, y, z}, rotate = {x, y, "
                  "z} }, got nothing (in the pose of solids[1] (sphere) at t = 0 s)");
}

/* ---- overrides ---- */

static const char *const base_scene = "scene {\n  detail = { finest = 32 },\n  " WATER ",\n}\n";

static un_status load_set(un_context *ctx, un_scene **scene, const char *const *set, int32_t count)
{
    write_text("dam.lua", base_scene);
    return un_scene_load(ctx, "dam.lua", set, count, scene);
}

static void overrides(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *const set[] = {
        "method=uniform",        "detail.finest=48",
        "detail.finest=64",      "domain.size={2, 1, 1}",
        "budget.memory=8G",      "gravity={0, -math.pi, 0}",
        "output.mesh=true",      "frames.count=2^4",
        "solver.tolerance=1e-5", "solids={sphere{center={.5,0,.5},radius=.1}}",
        "domain.open={'top'}"};
    un_scene *scene;
    check_ok(ctx, load_set(ctx, &scene, set, sizeof set / sizeof *set));
    const un_scene_def *def = &scene->def;
    assert_int_equal(def->detail.finest, 64);
    check_near(def->domain.size.x, 2, 0);
    check_near(def->budget.memory, 8.0 * (1 << 30), 0);
    check_near(def->gravity.y, -UN_PI, 0);
    assert_true(def->output.mesh);
    assert_int_equal(def->frames.count, 16);
    assert_int_equal(def->solid_count, 1);
    assert_true(def->domain.open[UN_SIDE_TOP]);
    un_scene_destroy(scene);
    static const char *const paths[] = {"out/systems", "/tmp/x-1", "../a.b/c", "./a"};
    for (size_t n = 0; n < sizeof paths / sizeof *paths; n++) {
        char text[64];
        snprintf(text, sizeof text, "solver.dump=%s", paths[n]);
        const char *const path[] = {text, "gravity={0, -math.pi/2, 0}", "fluid.density=1/2"};
        check_ok(ctx, load_set(ctx, &scene, path, 3));
        assert_string_equal(scene->def.solver.dump, paths[n]);
        check_near(scene->def.gravity.y, -UN_PI / 2, 0);
        check_near(scene->def.fluid.density, 0.5, 0);
        un_scene_destroy(scene);
    }
    const char *const one[] = {"detail.finest=40"};
    check_ok(ctx, load_set(ctx, &scene, one, 1));
    assert_int_equal(scene->def.detail.surface, 80);
    un_scene_destroy(scene);
    const char *const nothing[] = {"detail=nil"};
    check_ok(ctx, load_set(ctx, &scene, nothing, 1));
    assert_int_equal(scene->def.detail.finest, 64);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Entries of lists, and what they are made of, are changed as if the file had other values. */
static void overrides_of_entries(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene;
    write_text("dam.lua",
               "scene { liquid = { sphere { center = {0, 0, 0}, radius = 0.5 } },\n"
               " solids = { sphere { center = {1, 0, 0}, radius = 0.2 },\n"
               "  solid { move { box { min = {0, 0, 0}, max = {1, 1, 1} }, by = {0, 1, 0} } } },\n"
               " sources = { emitter { shape = sphere { center = {0.5, 0.5, 0.5}, radius = 0.1 },\n"
               "  velocity = {0, -1, 0} } }, probes = { front { axis = 'x' } } }");
    const char *const set[] = {"solids[1].friction=0.25",      "solids[1].center={0.5,0,0}",
                               "solids[2][1][1].max={2,1,1}",  "sources[1].shape.radius=0.2",
                               "sources[1].velocity={0,-3,0}", "probes[1].name=tip",
                               "liquid[1].radius=0.25"};
    check_ok(ctx, un_scene_load(ctx, "dam.lua", set, 7, &scene));
    const un_scene_def *def = &scene->def;
    check_near(def->solids[0].friction, 0.25, 0);
    check_near(un_shape_distance(def->solids[0].shape, un_v3(0.5, 0, 0)), -0.2, 1e-12);
    check_near(un_shape_distance(def->solids[1].shape, un_v3(3, 1.5, 0.5)), 1, 1e-12);
    check_near(un_shape_distance(def->sources[0].shape, un_v3(0.5, 0.5, 0.5)), -0.2, 1e-12);
    check_near(def->sources[0].velocity.y, -3, 0);
    assert_string_equal(def->probes[0].name, "tip");
    check_near(un_shape_distance(def->liquid.shape, un_v3(0, 0, 0)), -0.25, 1e-12);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void check_set(const char *set, const char *message)
{
    un_context *ctx = check_context_threads(1);
    un_scene *scene = NULL;
    un_status status = load_set(ctx, &scene, &set, 1);
    if (status != UN_ERROR_SCENE || strcmp(un_context_message(ctx), message) != 0)
        fail_msg("\n--set %s\nstatus:   %d\nmessage:  %s\nexpected: %s", set, (int)status,
                 un_context_message(ctx), message);
    check_context_end(ctx);
}

static void overrides_that_are_wrong(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene;
    const char *const twice[] = {"frames.count=3", "frames.count=-3"};
    assert_int_equal(load_set(ctx, &scene, twice, 2), UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx),
                        "--set frames.count=-3: frames.count must be between "
                        "0 and 1000000, got -3");
    check_context_end(ctx);
    check_set("detail.finest=2",
              "--set detail.finest=2: detail.finest must be between 4 and 4096, got 2");
    check_set("detail.finset=64",
              "--set detail.finset=64: unknown key \"finset\" in detail; did you mean \"finest\"?");
    check_set("detial.finest=64",
              "--set detial.finest=64: unknown key \"detial\" in scene; did you mean \"detail\"?");
    check_set("method=unifrom",
              "--set method=unifrom: method = \"unifrom\" is unknown; did you mean \"uniform\"?");
    check_set("domain.size={2,1",
              "--set domain.size={2,1: not a Lua value: '}' expected near <eof>");
    check_set("domain.size={2}", "--set domain.size={2}: domain.size needs three numbers, got 1");
    check_set("detail.finest", "--set detail.finest: no value; write key=value");
    check_set("detail.finest=", "--set detail.finest=: no value; write key=value");
    check_set("=3", "--set =3: no key; write key=value, as in detail.finest=64");
    check_set("a..b=3", "--set a..b=3: no key; write key=value, as in detail.finest=64");
    check_set("liquid.velocity.x=3",
              "--set liquid.velocity.x=3: liquid.velocity needs three numbers, got 1");
    check_set("detail.finest.x=3", "--set detail.finest.x=3: finest holds no keys");
    check_set(
        "frames.count=elsewhere()",
        "--set frames.count=elsewhere(): unknown name \"elsewhere\"; set it before it is used");
    check_set("frames.count=(function() while true do end end)()",
              "--set: the script takes more than 200 million instructions; is there an endless "
              "loop?");
    check_set("frames.count='a\n'", "--set frames.count='a ': the value must be one line of text");
    check_set("solids[1].friction=1", "--set solids[1].friction=1: solids has 0 entries");
    check_set(
        "liquid[1].fricton=1",
        "--set liquid[1].fricton=1: unknown key \"fricton\" in box; did you mean \"friction\"?");
    check_set("liquid[0]=1",
              "--set liquid[0]=1: no entry; write solids[1].friction=0.2, counting from 1");
    check_set("x=_ENV", "--set x=_ENV: _ENV is not available");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_key),
        cmocka_unit_test(shapes),
        cmocka_unit_test(bounded_fields),
        cmocka_unit_test(loops_and_formulas),
        cmocka_unit_test(the_same_every_time),
        cmocka_unit_test(only_poses_stay_in_memory),
        cmocka_unit_test(print_goes_to_the_log),
        cmocka_unit_test(budgets),
        cmocka_unit_test(poses),
        cmocka_unit_test(names_of_solids),
        cmocka_unit_test(poses_leave_nothing_behind),
        cmocka_unit_test(poses_that_fail),
        cmocka_unit_test(overrides),
        cmocka_unit_test(overrides_of_entries),
        cmocka_unit_test(overrides_that_are_wrong),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
