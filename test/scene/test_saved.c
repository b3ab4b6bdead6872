/* A scene saved with its overrides loads to the same scene, from any folder, and saves to the same
 * text again. */
#include "files.h"

#include <sys/stat.h>

static const char *const ball = "scene {\n  detail = { finest = 16 },\n"
                                "  liquid = { sphere { center = {.5, .5, .5}, radius = .3 } },\n}";

static const char *const marker = "-- undine: added when this scene was run:\n";

static un_scene *load(un_context *ctx, const char *path, const char *const *set, int32_t count)
{
    un_scene *scene = NULL;
    check_ok(ctx, un_scene_load(ctx, path, set, count, &scene));
    return scene;
}

/* What differs between two definitions: numbers first, then shapes at some points. */
static void check_same(const un_scene *a, const un_scene *b)
{
    assert_int_equal(a->def.domain.dim, b->def.domain.dim);
    assert_memory_equal(&a->def.domain.size, &b->def.domain.size, sizeof a->def.domain.size);
    assert_memory_equal(a->def.domain.open, b->def.domain.open, sizeof a->def.domain.open);
    assert_memory_equal(a->def.domain.slip, b->def.domain.slip, sizeof a->def.domain.slip);
    check_near(a->def.domain.contact_angle, b->def.domain.contact_angle, 0);
    assert_memory_equal(&a->def.detail, &b->def.detail, sizeof a->def.detail);
    assert_int_equal(a->def.frames.count, b->def.frames.count);
    check_near(a->def.frames.rate, b->def.frames.rate, 0);
    assert_memory_equal(&a->def.gravity, &b->def.gravity, sizeof a->def.gravity);
    assert_memory_equal(&a->def.budget, &b->def.budget, sizeof a->def.budget);
    assert_int_equal(a->def.solid_count, b->def.solid_count);
    for (int i = 0; i < 100; i++) {
        un_vec3 x = {un_random((uint64_t)i, 0), un_random((uint64_t)i, 1),
                     un_random((uint64_t)i, 2)};
        check_near(un_shape_distance(a->def.liquid.shape, x),
                   un_shape_distance(b->def.liquid.shape, x), 0);
        for (int32_t s = 0; s < a->def.solid_count; s++)
            check_near(un_shape_distance(a->def.solids[s].shape, x),
                       un_shape_distance(b->def.solids[s].shape, x), 0);
    }
}

static void unchanged_without_overrides(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *const texts[] = {ball, "scene { liquid = { sphere {\r\n center = {.5, .5, .5},\r\n"
                                       "radius = .3 } } }\r\n\r\n"};
    for (int i = 0; i < 2; i++) {
        un_scene *scene = load_valid(ctx, texts[i]);
        char *text;
        check_ok(ctx, un_scene_text(scene, &text));
        assert_string_equal(text, texts[i]);
        un_free(ctx, text);
        un_scene_destroy(scene);
    }
    check_context_end(ctx);
}

static void with_overrides(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *const set[] = {"detail.finest=24", "gravity={0, -1, 0.25}", "budget.memory=2G",
                               "domain.open={'top', \"left\"}", "detail.finest=20"};
    write_text("dam.lua", ball);
    un_scene *scene = load(ctx, "dam.lua", set, 5);
    char *text;
    check_ok(ctx, un_scene_text(scene, &text));
    char expected[1024];
    snprintf(expected, sizeof expected,
             "%s\n%s-- undine: set detail.finest=24\n-- undine: set gravity={0, -1, 0.25}\n"
             "-- undine: set budget.memory=2G\n-- undine: set domain.open={'top', \"left\"}\n"
             "-- undine: set detail.finest=20\n",
             ball, marker);
    assert_string_equal(text, expected);

    mkdir("out", 0777);
    write_text("out/scene.lua", text);
    un_scene *again = load(ctx, "out/scene.lua", NULL, 0);
    assert_int_equal(again->def.detail.finest, 20);
    check_same(scene, again);
    char *text_again;
    check_ok(ctx, un_scene_text(again, &text_again));
    assert_string_equal(text, text_again);

    /* More overrides on top of the saved ones come last and win. */
    const char *const more[] = {"detail.finest=12"};
    un_scene *third = load(ctx, "out/scene.lua", more, 1);
    assert_int_equal(third->def.detail.finest, 12);
    check_near(third->def.gravity.z, 0.25, 0);
    char *text_third;
    check_ok(ctx, un_scene_text(third, &text_third));
    assert_non_null(strstr(text_third, "finest=20\n-- undine: set detail.finest=12\n"));
    const char *first = strstr(text_third, marker);
    assert_non_null(first);
    assert_null(strstr(first + 1, marker));

    un_free(ctx, text_third);
    un_free(ctx, text_again);
    un_free(ctx, text);
    un_scene_destroy(third);
    un_scene_destroy(again);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void edited_by_hand(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    char text[1024];
    snprintf(text, sizeof text, "%s\n%s-- undine: set detail.finest=24\r\n-- a remark\n", ball,
             marker);
    un_scene *scene = load_valid(ctx, text);
    assert_int_equal(scene->def.detail.finest, 24);
    char *saved;
    check_ok(ctx, un_scene_text(scene, &saved));
    snprintf(text, sizeof text, "%s\n-- a remark\n%s-- undine: set detail.finest=24\n", ball,
             marker);
    assert_string_equal(saved, text);
    un_free(ctx, saved);
    un_scene_destroy(scene);
    snprintf(text, sizeof text, "%s\n%s-- undine: set detail.finest=2\n", ball, marker);
    check_message(text, "--set detail.finest=2: detail.finest must be between 4 and 4096, got 2");
    check_context_end(ctx);
}

static void meshes_are_found_from_elsewhere(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *tetra = "OFF\n4 4 6\n0 0 0\n.5 0 0\n0 .5 0\n0 0 .5\n"
                        "3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n";
    mkdir("models 100%\nodd", 0777);
    mkdir("models 100%\nodd/parts", 0777);
    mkdir("far", 0777);
    write_text("models 100%\nodd/parts/tetra.off", tetra);
    write_text("models 100%\nodd/dam.lua",
               "local m = { file = 'parts/tetra.off' }\n"
               "scene { detail = { finest = 16 }, liquid = { mesh(m) }, solids = { mesh(m) } }\n");
    un_scene *scene = load(ctx, "models 100%\nodd/dam.lua", NULL, 0);
    assert_int_equal(scene->note_count, 0);
    assert_ptr_equal(scene->def.liquid.shape, scene->def.solids[0].shape); /* read once */
    char *text;
    check_ok(ctx, un_scene_text(scene, &text));
    assert_non_null(strstr(text, "-- undine: folder /"));
    assert_non_null(strstr(text, "/models 100%25%0Aodd\n"));
    write_text("far/scene.lua", text);
    un_scene *again = load(ctx, "far/scene.lua", NULL, 0);
    check_same(scene, again);
    char *text_again;
    check_ok(ctx, un_scene_text(again, &text_again));
    assert_string_equal(text, text_again);
    un_free(ctx, text_again);
    un_free(ctx, text);
    un_scene_destroy(again);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void example_scenes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *const names[] = {"dam",     "pour",    "stir",    "rest",      "figure1",
                                 "figure3", "figure6", "figure7", "rest_mixed"};
    const char *const small[] = {"detail.finest=32"}; /* a field takes seconds at 512 */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, UN_SOURCE_DIR "/scenes/%s.lua", names[i]);
        un_scene *scene = load(ctx, path, small, 1);
        assert_int_equal(scene->note_count, 0);
        un_scene_destroy(scene);
    }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_without_overrides),
        cmocka_unit_test(with_overrides),
        cmocka_unit_test(edited_by_hand),
        cmocka_unit_test(meshes_are_found_from_elsewhere),
        cmocka_unit_test(example_scenes),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
