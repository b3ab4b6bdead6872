/* The key `render`: how pictures of a run look. */
#include "files.h"

#define WATER "liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } }"

static void check_vector(un_vec3 a, double x, double y, double z)
{
    check_near(un_length(un_sub(a, un_v3(x, y, z))), 0, 0);
}

static void defaults(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const char *const texts[] = {"scene { " WATER " }", "scene { " WATER ", render = {} }",
                                        "scene { " WATER ", render = { camera = {} } }"};
    for (int i = 0; i < 3; i++) {
        un_scene *scene = load_valid(ctx, texts[i]);
        const un_scene_def *def = &scene->def;
        assert_false(def->render.has_light || def->render.has_water || def->render.has_solid ||
                     def->render.has_background);
        assert_false(def->render.camera.has_eye || def->render.camera.has_target ||
                     def->render.camera.has_fov);
        un_viewpoint camera;
        check_ok(ctx, un_scene_render_camera(scene, 1, &camera));
        un_scene_destroy(scene);
    }
    check_context_end(ctx);
}

static void every_key(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(
        ctx, "local view = { eye = function(t) return {1 + t, 2, 3} end, target = {0, .5, 0},\n"
             "  fov = 50, aspect = 2 }\n"
             "scene { method = 'tet', " WATER ", sizing = { camera = view },\n"
             "  render = { camera = view, light = { elevation = 30 }, water = {.1, .2, .3},\n"
             "    solid = {1, 0, .5}, background = {0, 0, 0} } }");
    const un_scene_def *def = &scene->def;
    assert_true(def->render.camera.has_eye && def->render.camera.has_target &&
                def->render.camera.has_fov && def->render.has_light);
    check_near(def->render.light.azimuth, 231, 0);
    check_near(def->render.light.elevation, 30, 0);
    assert_true(def->render.has_water && def->render.has_solid && def->render.has_background);
    check_vector(def->render.water, 0.1, 0.2, 0.3);
    check_vector(def->render.solid, 1, 0, 0.5);
    check_vector(def->render.background, 0, 0, 0);
    un_viewpoint a, b;
    check_ok(ctx, un_scene_render_camera(scene, 2, &a));
    check_vector(a.eye, 3, 2, 3);
    check_vector(a.target, 0, 0.5, 0);
    check_near(a.fov, 50, 0);
    check_ok(ctx, un_scene_camera(scene, 2, &b));
    assert_memory_equal(&a, &b, sizeof a);
    un_scene_destroy(scene);

    const char *const set[] = {"render.water={1, 1, 0}", "render.camera.eye={1, 1, 1}"};
    write_text("dam.lua", "scene { " WATER " }");
    check_ok(ctx, un_scene_load(ctx, "dam.lua", set, 2, &scene));
    check_vector(scene->def.render.water, 1, 1, 0);
    assert_true(scene->def.render.camera.has_eye && !scene->def.render.camera.has_target);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void mistakes(void **state)
{
    (void)state;
    static const char *const list[][2] = {
        {"render = 3", "dam.lua:2: render must be a table, as in { camera = { eye = {2, 1, 2} }, "
                       "water = {0.2, 0.5, 0.6} }, got 3"},
        {"render = { wter = {0, 0, 0} }",
         "dam.lua:2: unknown key \"wter\" in render; did you mean \"water\"?"},
        {"render = {\n  water = {0, 2, 0} }",
         "dam.lua:3: render.water[2] must be between 0 and 1: a colour is {red, green, blue}, got "
         "2"},
        {"render = { solid = {0, 0, -1} }",
         "dam.lua:2: render.solid[3] must be between 0 and 1: a colour is {red, green, blue}, got "
         "-1"},
        {"render = { background = 'red' }",
         "dam.lua:2: render.background needs three numbers, as in {1, 2, 3}, got \"red\""},
        {"render = { light = {\n  elevation = 1 } }",
         "dam.lua:3: render.light.elevation must be between 5 and 90, got 1"},
        {"render = { light = { azimuth = 1e9 } }",
         "dam.lua:2: render.light.azimuth must be between -360 and 360, got 1000000000"},
        {"render = { light = { height = 1 } }",
         "dam.lua:2: unknown key \"height\" in render.light; known keys are azimuth, elevation"},
        {"render = { camera = { position = {0, 0, 0} } }",
         "dam.lua:2: unknown key \"position\" in render.camera; known keys are eye, target, fov, "
         "aspect"},
        {"render = { camera = { fov = 160 } }",
         "dam.lua:2: render.camera.fov must be between 1 and 150, got 160"},
        {"render = { camera = { eye = {1, 1, 1}, target = {1, 1, 1} } }",
         "dam.lua:2: render.camera.target must be another point than eye (in render.camera at t = "
         "0 s)"},
        {"render = { camera = {\n  eye = function(t) end } }",
         "dam.lua:3: render.camera.eye returned nothing (in render.camera at t = 0 s)"},
        {"render = { camera = {\n  fov = function(t) return 30 + 60 * t end } }",
         "dam.lua:3: render.camera.fov must be between 1 and 150, got 210 (in render.camera at t = "
         "3 s)"},
        {"render = { camera = { eye = function() while true do end end } }",
         "dam.lua:2: the camera's function takes more than 1 million instructions; is there an "
         "endless loop? (in render.camera at t = 0 s)"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char text[512];
        snprintf(text, sizeof text, "scene { " WATER ",\n%s }", list[i][0]);
        check_message(text, list[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_key),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
