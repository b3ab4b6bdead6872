/* The keys of adaptive methods: sizing, its camera and formula, and the level set of the solver. */
#include "files.h"

#define WATER "liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } }"
#define TET "scene { method = 'tet', " WATER ",\n"

static void defaults(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, TET "}");
    const un_scene_def *def = &scene->def;
    assert_string_equal(def->method, "tet");
    assert_string_equal(def->solver.surface, "colour");
    check_near(def->sizing.depth, 1, 0);
    check_near(def->sizing.curvature, 1, 0);
    check_near(def->sizing.solid_curvature, 1, 0);
    check_near(def->sizing.strain, 1, 0);
    check_near(def->sizing.film, 1, 0);
    check_near(def->sizing.sources, 1, 0);
    assert_false(def->sizing.has_camera || def->sizing.has_custom);
    assert_int_equal(scene->note_count, 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void every_key(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(
        ctx, TET "solver = { surface = 'hulls' },\n"
                 "sizing = { depth = false, curvature = true, solid_curvature = 2, strain = .5,\n"
                 "  film = 3, sources = false,\n"
                 "  camera = { eye = {1, 2, 3}, target = {0, .5, 0}, fov = 50, aspect = 2 },\n"
                 "  custom = function(x, y, z, t)\n"
                 "    if x > .5 then return .01 + y + 2 * z + 4 * t end\n"
                 "  end } }");
    const un_scene_def *def = &scene->def;
    assert_string_equal(def->solver.surface, "hulls");
    check_near(def->sizing.depth, 0, 0);
    check_near(def->sizing.curvature, 1, 0);
    check_near(def->sizing.solid_curvature, 2, 0);
    check_near(def->sizing.strain, 0.5, 0);
    check_near(def->sizing.film, 3, 0);
    check_near(def->sizing.sources, 0, 0);
    assert_true(def->sizing.has_camera && def->sizing.has_custom);
    un_viewpoint camera;
    check_ok(ctx, un_scene_camera(scene, 1, &camera));
    check_near(un_length(un_sub(camera.eye, un_v3(1, 2, 3))), 0, 0);
    check_near(un_length(un_sub(camera.target, un_v3(0, 0.5, 0))), 0, 0);
    check_near(camera.fov, 50, 0);
    check_near(camera.aspect, 2, 0);
    const un_vec3 x[3] = {{0.75, 0.25, 0.5}, {0.25, 0, 0}, {1, 0, 0}};
    float size[3];
    check_ok(ctx, un_scene_custom_sizes(scene, 2, x, 3, size));
    check_near(size[0], 9.26, 1e-6);
    assert_true(isinf(size[1]));
    check_near(size[2], 8.01, 1e-6);
    check_ok(ctx, un_scene_custom_sizes(scene, 2, x, 0, size));
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void moving_camera(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(
        ctx, TET "sizing = { camera = { eye = function(t) return {math.sin(t), 1, 2} end,\n"
                 "  target = function(t) return {t, 0, 0} end,\n"
                 "  fov = function(t) return 30 + t end } } }");
    un_viewpoint camera;
    check_ok(ctx, un_scene_camera(scene, 2, &camera));
    check_near(un_length(un_sub(camera.eye, un_v3(sin(2), 1, 2))), 0, 1e-15);
    check_near(camera.target.x, 2, 0);
    check_near(camera.fov, 32, 0);
    check_near(camera.aspect, 16.0 / 9, 0);
    un_scene_destroy(scene);
    scene = load_valid(ctx, TET "sizing = { camera = { eye = {1, 1, 1}, target = {0, 0, 0} } } }");
    check_ok(ctx, un_scene_camera(scene, 2, &camera));
    check_near(camera.fov, 30, 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void uniform_has_none(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, "scene { " WATER ",\n sizing = { depth = true } }");
    assert_int_equal(scene->note_count, 1);
    assert_string_equal(scene->notes[0],
                        "dam.lua:2: sizing has no effect with method \"uniform\", whose cells are "
                        "all alike; use method = \"tet\" or remove it");
    un_scene_destroy(scene);
    const char *const set[] = {"sizing.strain=2"};
    write_text("dam.lua", "scene { " WATER " }");
    check_ok(ctx, un_scene_load(ctx, "dam.lua", set, 1, &scene));
    assert_int_equal(scene->note_count, 1);
    assert_true(strncmp(scene->notes[0], "--set sizing.strain=2: sizing has no", 36) == 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void overrides(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *const set[] = {
        "method=tet",
        "sizing.depth=false",
        "sizing.strain=3",
        "solver.surface=hulls",
        "sizing.custom=function(x, y, z, t) return 0.25 + t end",
        "sizing.camera.fov=function(t) return 40 + t end",
        "detail.coarsest=4",
    };
    un_scene *scene, *again;
    write_text("dam.lua", "scene { " WATER ", sizing = { curvature = 2,\n"
                          "  camera = { eye = {1, 1, 1}, target = {0, 0, 0} } } }");
    check_ok(ctx, un_scene_load(ctx, "dam.lua", set, sizeof set / sizeof *set, &scene));
    char *text;
    check_ok(ctx, un_scene_text(scene, &text));
    write_text("saved.lua", text);
    un_free(ctx, text);
    check_ok(ctx, un_scene_load(ctx, "saved.lua", NULL, 0, &again));
    for (int i = 0; i < 2; i++) {
        const un_scene *s = i ? again : scene;
        const un_scene_def *def = &s->def;
        assert_string_equal(def->method, "tet");
        assert_string_equal(def->solver.surface, "hulls");
        check_near(def->sizing.depth, 0, 0);
        check_near(def->sizing.curvature, 2, 0);
        check_near(def->sizing.strain, 3, 0);
        assert_int_equal(def->detail.coarsest, 4);
        un_viewpoint camera;
        float size;
        check_ok(ctx, un_scene_camera(s, 2, &camera));
        check_near(camera.fov, 42, 0);
        check_ok(ctx, un_scene_custom_sizes(s, 2, &camera.eye, 1, &size));
        check_near(size, 2.25, 0);
    }
    un_scene_destroy(again);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void mistakes(void **state)
{
    (void)state;
    const struct {
        const char *text, *message;
    } list[] = {
        {TET "sizing = { depht = true } }",
         "dam.lua:2: unknown key \"depht\" in sizing; did you mean \"depth\"?"},
        {TET "sizing = true }",
         "dam.lua:2: sizing must be a table, as in { depth = true, curvature = true }, got true"},
        {TET "sizing = {\n depth = 'no' } }", "dam.lua:3: sizing.depth must be true, false or a "
                                              "factor (2: cells twice as large), got \"no\""},
        {TET "sizing = { strain = 0 } }",
         "dam.lua:2: sizing.strain must be above 0 and at most 1000000, got 0"},
        {TET "sizing = { strain = -1 } }",
         "dam.lua:2: sizing.strain must be above 0 and at most 1000000, got -1"},
        {TET "sizing = { curvature = 0/0 } }",
         "dam.lua:2: sizing.curvature must be a finite number, got nan"},
        {TET "sizing = { custom = 3 } }",
         "dam.lua:2: sizing.custom must be a function, as in function(x, y, z, t) return 0.02 end, "
         "got 3"},
        {TET "sizing = {\n camera = { eye = {1, 1, 1} } } }",
         "dam.lua:3: sizing.camera needs target, as in { eye = {2, 1, 2}, target = {0, 0, 0}, fov "
         "= 40 }"},
        {TET "sizing = { camera = {} } }",
         "dam.lua:2: sizing.camera needs eye, as in { eye = {2, 1, 2}, target = {0, 0, 0}, fov = "
         "40 }"},
        {TET "sizing = { camera = { eye = {1, 1}, target = {0, 0, 0} } } }",
         "dam.lua:2: sizing.camera.eye needs three numbers, got 2"},
        {TET "sizing = { camera = { eye = {1, 1, 1}, target = {0, 0, 0},\n fov = 180 } } }",
         "dam.lua:3: sizing.camera.fov must be between 1 and 170, got 180"},
        {TET "sizing = { camera = { eye = {1, 1, 1}, target = {0, 0, 0}, aspect = 0 } } }",
         "dam.lua:2: sizing.camera.aspect must be between 0.01 and 100, got 0"},
        {TET "sizing = { camera = { eye = {1, 1, 1}, target = {1, 1, 1} } } }",
         "dam.lua:2: sizing.camera.target must be another point than eye (in sizing.camera at t = "
         "0 s)"},
        {TET "sizing = { camera = { target = {1, 1, 1},\n eye = function(t) end } } }",
         "dam.lua:3: sizing.camera.eye returned nothing (in sizing.camera at t = 0 s)"},
        {TET "sizing = { camera = { target = {1, 1, 1},\n eye = function(t) return 1 end } } }",
         "dam.lua:3: sizing.camera.eye needs three numbers, as in {1, 2, 3}, got 1 (in "
         "sizing.camera at t = 0 s)"},
        {TET "sizing = { camera = { target = {1, 1, 1},\n"
             "eye = function(t) return {0, t < 1 and 0 or 0/0, 0} end } } }",
         "dam.lua:3: sizing.camera.eye[2] must be a finite number, got nan (in sizing.camera at t "
         "= 3 s)"},
        {TET "sizing = { camera = { target = {1, 1, 1},\n"
             "eye = function(t)\n while true do end end } } }",
         "dam.lua:4: the camera's function takes more than 1 million instructions; is there an "
         "endless loop? (in sizing.camera at t = 0 s)"},
        {TET "sizing = {\n custom = function(x, y, z, t) return 'small' end } }",
         "dam.lua:3: sizing.custom must return a cell's edge in m, above 0, or nil where it has no "
         "opinion, got \"small\" (in sizing.custom at x, y, z, t = 0.43, 0.29, 0.58, 0)"},
        {TET "sizing = { custom = function(x, y, z, t) return\n x.y end } }",
         "dam.lua:3: attempt to index a number value (local 'x') (in sizing.custom at x, y, z, t = "
         "0.43, 0.29, 0.58, 0)"},
        {TET "sizing = { custom = function(x, y, z, t)\n while t > 1 do end end } }",
         "dam.lua:3: sizing.custom takes more than 20000 instructions; is there an endless loop? "
         "(in sizing.custom at x, y, z, t = 0.43, 0.29, 0.58, 3)"},
        {TET "solver = { surface = 'hull' } }",
         "dam.lua:2: solver.surface = \"hull\" is unknown; did you mean \"hulls\"?"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        check_message(list[i].text, list[i].message);

    un_context *ctx = check_context_threads(1);
    un_scene *scene = NULL;
    const char *set = "sizing.custom=function() return -1 end";
    write_text("dam.lua", TET "}");
    assert_int_equal(un_scene_load(ctx, "dam.lua", &set, 1, &scene), UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx),
                        "--set sizing.custom=function() return -1 end: sizing.custom must return a "
                        "cell's edge in m, above 0, or nil where it has no opinion, got -1 (in "
                        "sizing.custom at x, y, z, t = 0.43, 0.29, 0.58, 0)");
    check_context_end(ctx);
}

/* What only shows during a run: the message names the node. */
static void formulas_that_fail_later(void **state)
{
    (void)state;
    const struct {
        const char *body, *message;
    } list[] = {
        {"return x - .25",
         "dam.lua:3: sizing.custom must return a cell's edge in m, above 0, or nil where it has no "
         "opinion, got 0 (in sizing.custom at x, y, z, t = 0.25, 0.5, 0.5, 2)"},
        {"return x == .25 and math.huge or .1",
         "dam.lua:3: sizing.custom must return a cell's edge in m, above 0, or nil where it has no "
         "opinion, got inf (in sizing.custom at x, y, z, t = 0.25, 0.5, 0.5, 2)"},
        {"return x == .25 and 0/0 or .1",
         "dam.lua:3: sizing.custom must return a cell's edge in m, above 0, or nil where it has no "
         "opinion, got nan (in sizing.custom at x, y, z, t = 0.25, 0.5, 0.5, 2)"},
        {"local s = 'x' while x == .25 do s = s .. s end return 1",
         "dam.lua: sizing.custom needs more than 64 MB of memory; keep its tables and strings "
         "smaller (in sizing.custom at x, y, z, t = 0.25, 0.5, 0.5, 2)"},
    };
    const un_vec3 x[2] = {{0.75, 0.5, 0.5}, {0.25, 0.5, 0.5}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        un_context *ctx = check_context_threads(1);
        char text[512];
        float size[2];
        snprintf(text, sizeof text, TET "sizing = {\n custom = function(x, y, z, t) %s end } }",
                 list[i].body);
        un_scene *scene = load_valid(ctx, text);
        assert_int_equal(un_scene_custom_sizes(scene, 2, x, 2, size), UN_ERROR_SCENE);
        assert_string_equal(un_context_message(ctx), list[i].message);
        check_ok(ctx, un_scene_custom_sizes(scene, 2, x, 1, size)); /* the next call is free */
        un_scene_destroy(scene);
        check_context_end(ctx);
    }
}

/* A large mesh asks often: nothing may pile up, and the count of instructions starts anew. */
static void many_calls(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene =
        load_valid(ctx, TET "sizing = { custom = function(x, y, z, t) local p = {x, y, z}\n"
                            "  return .01 + (p[1] - .5)^2 + (p[2] - .5)^2 + (p[3] - .5)^2 end } }");
    static un_vec3 x[100000];
    static float size[100000];
    for (int i = 0; i < 100000; i++) x[i] = un_v3(un_random((uint64_t)i, 1), 0.5, 0.5);
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        check_ok(ctx, un_scene_custom_sizes(scene, i, x, 100000, size));
        if (un_context_bytes(ctx) > most) most = un_context_bytes(ctx);
    }
    check_below((double)most, 500e3);
    for (int i = 0; i < 100000; i += 999)
        check_near(size[i], 0.01 + (x[i].x - 0.5) * (x[i].x - 0.5), 1e-6);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* 1024 cells along a cube are too many for a uniform grid, not for one that adapts. */
static void fine_detail(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, TET "detail = { coarsest = 8, finest = 1024 } }");
    assert_int_equal(scene->def.detail.finest, 1024);
    un_scene_destroy(scene);
    check_context_end(ctx);
    check_message("scene { " WATER ", detail = { finest = 1024 } }",
                  "dam.lua:1: detail.finest = 1024 makes 1.08e+09 cells of this domain, more than "
                  "1e+09; lower it or use method = \"tet\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_key),
        cmocka_unit_test(moving_camera),
        cmocka_unit_test(uniform_has_none),
        cmocka_unit_test(overrides),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(formulas_that_fail_later),
        cmocka_unit_test(many_calls),
        cmocka_unit_test(fine_detail),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
