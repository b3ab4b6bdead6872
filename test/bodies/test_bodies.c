/* Bodies: where they are in a step, distances to them, their velocities. */
#include "mesh/tank.h"
#include "scene/files.h"

static void check_vector(un_vec3 a, un_vec3 b, double slack)
{
    check_near(un_length(un_sub(a, b)), 0, slack);
}

/* ---- quaternions ---- */

static void rotations_survive_quaternions(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 5000; k++) {
        un_vec3 axis = un_v3(un_random(k, 1) - 0.5, un_random(k, 2) - 0.5, un_random(k, 3) - 0.5);
        double degrees = 720 * un_random(k, 4) - 360;
        if (k < 12) axis = un_v3(k % 3 == 0, k % 3 == 1, k % 3 == 2), degrees = 60 * (double)k;
        if (k > 4900) degrees = 180 + 1e-9 * ((double)k - 4950);
        un_pose pose = un_pose_axis(axis, degrees);
        double q[4], sum = 0;
        un_pose_quaternion(&pose, q);
        for (int i = 0; i < 4; i++) sum += q[i] * q[i];
        check_near(sum, 1, 1e-14);
        assert_true(q[0] >= 0);
        check_near(q[0], fabs(cos(degrees * UN_PI / 360)), 1e-14);
        un_pose back = un_pose_of_quaternion(q, un_v3(1, 2, 3));
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) check_near(back.rotation[i][j], pose.rotation[i][j], 1e-14);
        check_vector(back.translation, un_v3(1, 2, 3), 0);
    }
}

/* ---- distances ---- */

static void distances_are_to_where_bodies_are(void **state)
{
    (void)state;
    tank t;
    un_vec3 v = {0.4, -0.3, 0.2};
    tank_begin(&t, 2, un_v3(1, 1, 1), 16);
    tank_solid(&t, tank_sphere(&t, un_v3(0.4, 0.5, 0.5), 0.2), v);
    tank_solid(&t, tank_box(&t, un_v3(0.75, 0, 0), un_v3(1, 0.25, 1)), un_v3(0, 0, 0));
    tank_build_exact(&t);
    tank_move(&t, 0.5, 0.02);
    un_vec3 center = un_mad(un_v3(0.4, 0.5, 0.5), v, 0.52);
    un_vec3 x[700];
    double d[700];
    for (int i = 0; i < 700; i++)
        x[i] =
            un_v3(un_random((uint64_t)i, 1), un_random((uint64_t)i, 2), un_random((uint64_t)i, 3));
    for (int b = 0; b < 2; b++) {
        const un_body *body = &t.bodies->body[b];
        un_body_distances(body, x, 700, d);
        for (int i = 0; i < 700; i++) {
            check_near(un_body_distance(body, x[i]), d[i], 0);
            assert_true(un_body_box_distance(body, x[i]) <= fmax(d[i], 0));
            if (b == 0) check_near(d[i], un_length(un_sub(x[i], center)) - 0.2, 1e-12);
            if (b == 0)
                check_vector(un_body_normal(body, x[i]), un_normalize(un_sub(x[i], center)), 1e-9);
        }
    }
    int counts[3] = {0};
    for (int i = 0; i < 700; i++) {
        double nearest = 0.3;
        int32_t b = un_bodies_nearest(t.bodies, x[i], &nearest);
        double d0 = un_body_distance(&t.bodies->body[0], x[i]);
        double d1 = un_body_distance(&t.bodies->body[1], x[i]);
        assert_int_equal(b, fmin(d0, d1) >= 0.3 ? -1 : d0 < d1 ? 0 : 1);
        check_near(nearest, fmin(0.3, fmin(d0, d1)), 0);
        counts[b + 1]++;
        double whole = fmin(un_walls_sides(t.walls, x[i]), fmin(d0, d1));
        check_near(un_walls_distance_exact(t.walls, x[i]), whole, 0);
    }
    for (int i = 0; i < 3; i++) assert_true(counts[i] > 20);
    tank_end(&t);
}

static void deepest_counts_where_bodies_overlap(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 1, un_v3(1, 1, 1), 16);
    tank_solid(&t, tank_sphere(&t, un_v3(0.5, 0.5, 0.5), 0.1), un_v3(0, 0, 0));
    tank_solid(&t, tank_sphere(&t, un_v3(0.52, 0.5, 0.5), 0.3), un_v3(0, 0, 0));
    tank_build_exact(&t);
    double d = 1;
    assert_int_equal(un_bodies_nearest(t.bodies, un_v3(0.5, 0.5, 0.5), &d), 1);
    check_near(d, -0.28, 1e-12);
    tank_end(&t);
}

/* ---- motion ---- */

#define WATER "liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } }"

static void velocities_are_those_of_the_reference_point(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(
        ctx, "scene { " WATER ", solids = {\n"
             "  sphere { center = {.2, .3, .4}, radius = .1, velocity = {1, -2, 3} },\n"
             "  box { min = {0, 0, 0}, max = {.2, .4, .6}, pose = function(t)\n"
             "    return { rotate = { axis = {1, 2, 2}, angle = 90 * t }, about = {.1, .2, .3},\n"
             "             by = {t * t, 0, 0} } end },\n"
             "  plane { point = {0, .1, 0}, normal = {0, 1, 0}, velocity = {0, 1, 0} },\n"
             "  sphere { center = {.2, .3, .4}, radius = .1 } } }");
    un_bodies *bodies;
    check_ok(ctx, un_bodies_create(ctx, scene, &bodies));
    const un_body *ball = &bodies->body[0], *box = &bodies->body[1], *plane = &bodies->body[2];
    const un_body *still = &bodies->body[3];
    assert_true(bodies->moving && !still->moves && bodies->count == 4);
    assert_string_equal(box->name, "body2");
    check_vector(ball->centre, un_v3(0.2, 0.3, 0.4), 1e-15);
    check_vector(box->centre, un_v3(0.1, 0.2, 0.3), 1e-15);
    check_vector(plane->centre, un_v3(0, 0, 0), 0);
    un_vec3 spin = un_scale(un_normalize(un_v3(1, 2, 2)), 0.5 * UN_PI);
    /* before the first step: as they set out */
    check_vector(ball->velocity, un_v3(1, -2, 3), 1e-9);
    check_vector(box->spin, spin, 1e-9);
    check_vector(box->velocity, un_v3(0, 0, 0), 1e-3);
    check_vector(un_body_velocity(ball, un_v3(0, 0, 0)), un_v3(0, 0, 0), 0);
    check_ok(ctx, un_bodies_update(bodies, 1, 0.01));
    check_vector(ball->velocity, un_v3(1, -2, 3), 1e-10);
    check_vector(ball->spin, un_v3(0, 0, 0), 0);
    check_vector(box->spin, spin, 1e-10);
    check_vector(box->velocity, un_v3(2.01, 0, 0), 1e-10);
    check_vector(plane->velocity, un_v3(0, 1, 0), 1e-10);
    check_vector(still->velocity, un_v3(0, 0, 0), 0);
    un_vec3 at = un_pose_apply(&box->to, box->centre);
    check_vector(un_body_velocity(box, at), box->velocity, 1e-10);
    /* of the material elsewhere: v + w x r, but for the way's bend within a step */
    un_vec3 x = un_add(at, un_v3(0.1, -0.05, 0.2));
    un_vec3 rigid = un_add(box->velocity, un_cross(box->spin, un_sub(x, at)));
    check_vector(un_body_velocity(box, x), rigid, 5e-3);
    check_ok(ctx, un_bodies_update(bodies, 1.01, 0)); /* as a checkpoint of the start asks for */
    check_vector(box->spin, spin, 1e-9);
    check_vector(un_body_velocity(box, x), un_v3(0, 0, 0), 0);
    un_bodies_destroy(bodies);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void bodies_can_be_placed(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 1, un_v3(1, 1, 1), 16);
    tank_solid(&t, tank_box(&t, un_v3(0, 0, 0), un_v3(0.4, 0.1, 0.1)), un_v3(1, 0, 0));
    tank_build(&t);
    un_pose pose = un_pose_axis(un_v3(0, 0, 1), 90);
    pose.translation = un_v3(0.5, 0.3, 0.4);
    un_body_place(&t.bodies->body[0], &pose);
    check_ok(t.ctx, un_walls_update(t.walls));
    un_vec3 inside = {0.45, 0.5, 0.45};
    check_near(un_body_distance(&t.bodies->body[0], inside), -0.05, 1e-12);
    check_below(un_walls_distance(t.walls, inside), -0.02);
    check_near(un_body_box_distance(&t.bodies->body[0], un_v3(0.45, 0.2, 0.45)), 0.1, 1e-12);
    check_vector(un_body_velocity(&t.bodies->body[0], inside), un_v3(0, 0, 0), 0);
    tank_end(&t);
}

static un_status make(un_context *ctx, void *arg)
{
    tank *t = arg;
    un_bodies *bodies;
    UN_TRY(un_bodies_create(ctx, &t->scene, &bodies));
    un_bodies_destroy(bodies);
    return UN_OK;
}

static void survives_allocation_failures(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 1, un_v3(1, 1, 1), 16);
    tank_solid(&t, tank_sphere(&t, un_v3(0.5, 0.5, 0.5), 0.1), un_v3(1, 0, 0));
    check_allocation_failures(make, &t, 10);
    t.solids[0].density = 300; /* one that the liquid moves */
    assert_true(un_shape_mass(t.solids[0].shape, 3, &t.solids[0].sums));
    check_allocation_failures(make, &t, 10);
    tank_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotations_survive_quaternions),
        cmocka_unit_test(distances_are_to_where_bodies_are),
        cmocka_unit_test(deepest_counts_where_bodies_overlap),
        cmocka_unit_test(velocities_are_those_of_the_reference_point),
        cmocka_unit_test(bodies_can_be_placed),
        cmocka_unit_test(survives_allocation_failures),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
