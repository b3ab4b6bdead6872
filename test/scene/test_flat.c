/* Scenes in 2D: two sides of the domain make them, and what they then may say. */
#include "scene/files.h"

static void two_sides_make_a_plane(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene = load_valid(
        ctx, "scene { domain = { size = {2, 1} }, gravity = {0, -5}, detail = { finest = 100 },\n"
             "liquid = { box { min = {0, 0}, max = {0.5, 0.7} }, velocity = {1, 2} },\n"
             "solids = { sphere { center = {1, 0.1}, radius = 0.2, velocity = {0.5, 0} } },\n"
             "sources = { emitter { shape = box { min = {1, 0.5}, max = {1.2, 0.6} },\n"
             "  velocity = {0, -1} } },\n"
             "probes = { height { at = {0.3} }, pressure { at = {0.2, 0.1} } } }");
    const un_scene_def *def = &scene->def;
    assert_int_equal(def->domain.dim, 2);
    check_near(def->domain.size.z, 0, 0);
    check_near(def->gravity.y, -5, 0);
    assert_int_equal(def->detail.surface, 400);
    check_near(def->liquid.velocity.y, 2, 0);
    check_near(un_shape_distance(def->liquid.shape, un_v3(0.25, 0.35, 0)), -0.25, 1e-9);
    check_near(un_shape_distance(def->solids[0].shape, un_v3(1, 0.4, 0)), 0.1, 1e-9);
    check_near(def->probes[0].at.x, 0.3, 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Boxes and cylinders given with z are sections where they meet the plane, be it with an end. */
static void sections_of_solid_shapes(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene = load_valid(
        ctx, "scene { domain = { size = {1, 1} }, liquid = { box { min = {0, 0, 0}, max = {0.6, "
             "0.4, 1} } }, solids = {\n"
             "cylinder { from = {0.8, 0.5, 0}, to = {0.8, 0.5, 1}, radius = 0.1 },\n"
             "box { min = {0.1, 0.7, 0.5}, max = {0.3, 0.9, 1} },\n"
             "field(function(x, y) return 0.1 - math.min(y, 1 - y) end) } }");
    const un_scene_def *def = &scene->def;
    check_near(un_shape_distance(def->liquid.shape, un_v3(0.3, 0.2, 0)), -0.2, 1e-9);
    check_near(un_shape_distance(def->solids[0].shape, un_v3(0.8, 0.55, 0)), -0.05, 1e-9);
    assert_true(un_shape_distance(def->solids[1].shape, un_v3(0.2, 0.8, 0)) > 0);
    assert_true(un_shape_distance(def->solids[2].shape, un_v3(0.5, 0.5, 0)) < -0.3);
    assert_true(un_shape_distance(def->solids[2].shape, un_v3(0.5, 0.05, 0)) > 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* Slip by side knows the four sides of the plane. */
static void slip_by_side(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene = load_valid(
        ctx, "scene { domain = { size = {1, 1}, slip = { left = 0.5, top = math.huge } },\n"
             "liquid = { box { min = {0, 0}, max = {1, 0.5} } } }");
    const double *slip = scene->def.domain.slip;
    check_near(slip[UN_SIDE_LEFT], 0.5, 0);
    assert_true(slip[UN_SIDE_TOP] == INFINITY);
    assert_true(slip[UN_SIDE_BACK] == slip[UN_SIDE_RIGHT] &&
                slip[UN_SIDE_FRONT] == slip[UN_SIDE_BOTTOM]);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

#define LIQUID "liquid = { box { min = {0, 0}, max = {1, 1} } }"

static void messages(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } list[] = {
        {"scene {\n domain = { size = {1, 1} }, method = 'tet', " LIQUID " }",
         "dam.lua:2: domain.size has two numbers, a scene in 2D, which method = \"tet\" cannot "
         "compute; use method = \"uniform\", or give three numbers"},
        {"local s = sphere {\n  center = {0, 0}, radius = 1 }\nscene { liquid = { s } }",
         "dam.lua:2: sphere.center needs three numbers, got 2; {x, y} is for 2D, a domain of two "
         "sides"},
        {"scene { domain = { size = {1, 1, 1} },\n gravity = {0, -9}, liquid = { box { min = {0, "
         "0, 0}, max = {1, 1, 1} } } }",
         "dam.lua:2: gravity needs three numbers, got 2; {x, y} is for 2D, a domain of two sides"},
        {"scene { domain = { size = {1, 1, 1} }, liquid = { box { min = {0, 0, 0}, max = {1, 1, "
         "1} } },\n probes = { height { at = {0.5} } } }",
         "dam.lua:2: height.at needs two numbers, got 1; {x} is for 2D, a domain of two sides"},
        {"box { min = {0, 0}, max = {1, 1, 1} }",
         "dam.lua:1: box.max must have as many numbers as min"},
        {"box { min = {0, 0}, max = {1, 0} }",
         "dam.lua:1: box.max must be above min along x and y, got min = {0, 0}, max = {1, 0}"},
        {"scene { domain = { size = {1, 1}, open = {'front'} }, " LIQUID " }",
         "dam.lua:1: domain.open[1] = \"front\" is no side in 2D; use left, right, bottom, top"},
        {"scene { domain = { size = {1, 1} }, gravity = {0, -9, 1}, " LIQUID " }",
         "dam.lua:1: gravity must not point along z in 2D, got {0, -9, 1}"},
        {"scene { domain = { size = {1, 1} }, probes = { front { axis = 'z' } }, " LIQUID " }",
         "dam.lua:1: probes[1] (front) looks along z, which does not exist in 2D; use x or y"},
        {"scene { domain = { size = {1, 1} }, probes = { pressure { at = {0, 0, 1} } }, " LIQUID
         " }",
         "dam.lua:1: probes[1] (pressure) lies outside the domain: z = 1 is not between 0 and 0"},
        {"scene { domain = { size = {1, 1} }, " LIQUID ",\n sources = {\n  emitter { shape = "
         "sphere { center = {0, 0}, radius = 1 }, velocity = {0, 0, 1} } } }",
         "dam.lua:3: emitter.velocity must not point along z in 2D, got {0, 0, 1}"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        check_message(list[i].text, list[i].message);
}

/* A pose may be given in the plane; in 3D that is an error, found when it is called. */
static void poses(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_pose pose;
    un_scene *scene = load_valid(
        ctx, "scene { domain = { size = {1, 1} }, " LIQUID ", solids = { sphere { center = {0.5, "
             "0.5}, radius = 0.1, pose = function(t) return { by = {t, 2 * t} } end } } }");
    check_ok(ctx, un_scene_pose(scene, 0, 0.25, &pose));
    check_near(pose.translation.x, 0.25, 1e-12);
    check_near(pose.translation.y, 0.5, 1e-12);
    check_near(pose.translation.z, 0, 0);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sides_make_a_plane),
        cmocka_unit_test(sections_of_solid_shapes),
        cmocka_unit_test(slip_by_side),
        cmocka_unit_test(messages),
        cmocka_unit_test(poses),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
