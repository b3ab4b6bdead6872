/* bodies.csv: what is written is what the scene's functions say, and reads back; damage is seen. */
#include "output/scratch.h"

static const char scene_text[] =
    "scene { domain = { size = {1, 1, 1} }, frames = { count = 8, rate = 10 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } }, solids = {\n"
    "  sphere { center = {.2, .3, .4}, radius = .1, velocity = {1, -2, 3}, name = 'ball' },\n"
    "  box { min = {0, 0, 0}, max = {1, .1, 1} },\n"
    "  box { min = {0, 0, 0}, max = {.2, .4, .6}, pose = function(t)\n"
    "    return { rotate = {310 * t, 20 - 100 * t, 7}, about = {.3, .4, .9}, by = {0, t, t * t} }\n"
    "    end } } }\n";

static un_scene *load(un_context *ctx)
{
    un_scene *scene;
    scratch_write("scene.lua", scene_text, sizeof scene_text - 1);
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), NULL, 0, &scene));
    return scene;
}

/* Two steps a frame. */
static void write_table(un_context *ctx, const un_scene *scene, int steps)
{
    un_bodies *bodies;
    un_table *table;
    check_ok(ctx, un_bodies_create(ctx, scene, &bodies));
    check_ok(ctx, un_bodies_table_create(ctx, scratch_path("bodies.csv"), bodies, -1, &table));
    check_ok(ctx, un_bodies_table_row(ctx, table, bodies, 0));
    for (int s = 1; s <= steps; s++) {
        check_ok(ctx, un_bodies_update(bodies, 0.05 * (s - 1), 0.05));
        check_ok(ctx, un_bodies_table_row(ctx, table, bodies, 0.05 * s));
    }
    check_ok(ctx, un_table_close(table));
    un_bodies_destroy(bodies);
}

static void reads_back_what_was_written(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx);
    un_motion *motion;
    write_table(ctx, scene, 16);
    char *text;
    check_ok(ctx, un_file_read(ctx, scratch_path("bodies.csv"), &text, NULL));
    static const char header[] =
        "time,ball_x,ball_y,ball_z,ball_qw,ball_qx,ball_qy,ball_qz,ball_vx,ball_vy,ball_vz,ball_wx,"
        "ball_wy,ball_wz,body2_x,body2_y,body2_z,body2_qw,body2_qx,body2_qy,body2_qz,body2_vx,"
        "body2_vy,body2_vz,body2_wx,body2_wy,body2_wz\n";
    assert_true(strncmp(text, header, sizeof header - 1) == 0);
    assert_true(strncmp(text + sizeof header - 1, "0,0.2,0.3,0.4,1,0,0,0,", 22) == 0);
    un_free(ctx, text);
    check_ok(ctx, un_motion_read(ctx, scratch, scene, &motion));
    assert_true(un_motion_is_recorded(motion));
    for (int32_t frame = 0; frame <= 8; frame++)
        for (int32_t s = 0; s < 3; s++) {
            un_pose is, should;
            check_ok(ctx, un_motion_pose(motion, s, frame, &is));
            check_ok(ctx, un_scene_pose(scene, s, frame / 10.0, &should));
            for (int k = 0; k < 4; k++) {
                un_vec3 x = un_v3(k == 1, k == 2, k == 3);
                un_vec3 off = un_sub(un_pose_apply(&is, x), un_pose_apply(&should, x));
                check_near(un_length(off), 0, 1e-12);
            }
        }
    un_bodies *bodies;
    check_ok(ctx, un_bodies_create(ctx, scene, &bodies));
    check_ok(ctx, un_motion_place(motion, bodies, 5));
    check_near(un_body_distance(&bodies->body[0], un_v3(0.7, -0.7, 1.9)), -0.1, 1e-12);
    un_bodies_destroy(bodies);
    un_pose pose;
    assert_int_equal(un_motion_pose(motion, 0, 9, &pose), UN_ERROR_FILE);
    assert_non_null(strstr(un_context_message(ctx), "has no row for frame 9 (t = 0.9 s)"));
    check_ok(ctx, un_motion_pose(motion, 1, 9, &pose)); /* stands still */
    un_motion_destroy(motion);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* As versions left it that wrote no such table. */
static void without_a_table_the_scene_answers(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx);
    un_motion *motion;
    un_pose pose;
    check_ok(ctx, un_motion_read(ctx, scratch, scene, &motion));
    assert_false(un_motion_is_recorded(motion));
    check_ok(ctx, un_motion_pose(motion, 0, 5, &pose));
    check_near(un_length(un_sub(pose.translation, un_v3(0.5, -1, 1.5))), 0, 1e-15);
    un_motion_destroy(motion);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

#define BALL "ball_x,ball_y,ball_z,ball_qw,ball_qx,ball_qy,ball_qz"
#define BODY "body2_x,body2_y,body2_z,body2_qw,body2_qx,body2_qy,body2_qz"
#define AT_REST "0,0,0,1,0,0,0"

static void damage_is_seen(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx);
    un_motion *motion;
    static const char *const bad[][2] = {
        {"", "is empty"},
        {"time," BALL, "is empty"}, /* no line is whole */
        {"time," BALL "\n", ":1: column body2_x is missing"},
        {BALL "," BODY "\n", ":1: column time is missing"},
        {"time," BALL "," BODY "\n0," AT_REST "\n", ":2: the row and the header differ"},
        {"time," BALL "," BODY "\n0," AT_REST "," AT_REST ",1\n",
         ":2: the row and the header differ"},
        {"time," BALL "," BODY "\n0," AT_REST ",0,0,x,1,0,0,0\n", ":2: a number is missing"},
        {"time," BALL "," BODY "\n0," AT_REST ",0,0,nan,1,0,0,0\n", ":2: a number is missing"},
        {"time," BALL "," BODY "\n0," AT_REST "," AT_REST "\n\n", ":3: a number is missing"},
        {"time," BALL "," BODY "\n0," AT_REST "," AT_REST "\n0," AT_REST "," AT_REST "\n",
         ":3: time does not increase"},
        {"time," BALL "," BODY "\n0," AT_REST ",0,0,0,0,0,0,0\n", ":2: a quaternion is not"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scratch_write("bodies.csv", bad[i][0], strlen(bad[i][0]));
        assert_int_equal(un_motion_read(ctx, scratch, scene, &motion), UN_ERROR_FILE);
        assert_null(motion);
        if (!strstr(un_context_message(ctx), bad[i][1]) ||
            !strstr(un_context_message(ctx), "bodies.csv"))
            fail_msg("%zu: %s", i, un_context_message(ctx));
    }
    /* columns in another order, more of them, line ends of another system, a row cut short */
    static const char good[] = "more," BODY ",time," BALL "\r\n7,1,2,3,1,0,0,0,0," AT_REST
                               "\r\nnan,4,5,6,1,0,0,0,0.1," AT_REST "\r\n7,4,5,6,1";
    un_pose pose;
    scratch_write("bodies.csv", good, sizeof good - 1);
    check_ok(ctx, un_motion_read(ctx, scratch, scene, &motion));
    check_ok(ctx, un_motion_pose(motion, 2, 1, &pose));
    check_near(un_length(un_sub(pose.translation, un_v3(3.9, 4.8, 5.7))), 0, 1e-12);
    assert_int_equal(un_motion_pose(motion, 2, 2, &pose), UN_ERROR_FILE);
    un_motion_destroy(motion);
    /* whatever the bytes */
    write_table(ctx, scene, 4);
    char *text;
    size_t size;
    check_ok(ctx, un_file_read(ctx, scratch_path("bodies.csv"), &text, &size));
    for (uint64_t i = 0; i < 400; i++) {
        size_t at = (size_t)(un_random(i, 1) * (double)size);
        char was = text[at];
        text[at] = (char)(int)(un_random(i, 2) * 256);
        scratch_write("bodies.csv", text, i % 3 ? size : at);
        un_status status = un_motion_read(ctx, scratch, scene, &motion);
        assert_true(status == UN_OK || status == UN_ERROR_FILE);
        for (int32_t frame = 0; status == UN_OK && frame < 3; frame++)
            un_motion_pose(motion, 2, frame, &pose);
        un_motion_destroy(motion);
        text[at] = was;
    }
    un_free(ctx, text);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static un_status there_and_back(un_context *ctx, void *arg)
{
    const un_scene *scene = arg;
    un_bodies *bodies;
    un_table *table = NULL;
    un_motion *motion = NULL;
    UN_TRY(un_bodies_create(ctx, scene, &bodies));
    un_status status = un_bodies_table_create(ctx, scratch_path("bodies.csv"), bodies, -1, &table);
    if (status == UN_OK) status = un_bodies_table_row(ctx, table, bodies, 0);
    un_table_close(table);
    if (status == UN_OK) status = un_motion_read(ctx, scratch, scene, &motion);
    if (status == UN_OK) status = un_motion_place(motion, bodies, 0);
    un_motion_destroy(motion);
    un_bodies_destroy(bodies);
    return status;
}

static void survives_allocation_failures(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load(ctx);
    check_allocation_failures(there_and_back, scene, 60);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_begin, scratch_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_back_what_was_written),
        TEST(without_a_table_the_scene_answers),
        TEST(damage_is_seen),
        TEST(survives_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
