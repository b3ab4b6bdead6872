/* Surface tension and bodies that the liquid moves: the surface pulls on a body where it meets it.
 */
#include "method/world.h"

static un_vec3 centre(const world *w)
{
    const un_body *body = &un_method_bodies(w->state)->body[0];
    return un_pose_apply(&body->to, body->centre);
}

/* A needle of three times the water's density lies on the water, seen along its axis, on cells of
 * several sizes. Falling onto it, it comes to 11.1 mm. Single particles on the needle reach 0.3 to
 * 1.6 m/s; all of the water together no more than it takes to let the needle in. */
static void a_needle_floats(void **state)
{
    (void)state;
    for (int cells = 56; cells <= 72; cells += 8) {
        world w;
        char text[600];
        double lowest = 1, fastest = 0, mass = 1000 * 0.03 * 0.012;
        snprintf(text, sizeof text,
                 "scene { domain = { size = {0.03, 0.02} }, detail = { finest = %d }, fluid = { "
                 "surface_tension = 0.072 }, liquid = { box { min = {0, 0}, max = {0.03, 0.012} } "
                 "}, solids = { sphere { center = {0.015, 0.0125}, radius = 0.001, density = 3000, "
                 "contact_angle = 110 } } }",
                 cells);
        world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
        while (w.time < 0.12) {
            world_step(&w, 0.12);
            lowest = fmin(lowest, centre(&w).y);
            fastest = fmax(fastest, sqrt(2 * w.step.energy_kinetic / mass));
        }
        check_near(lowest, 0.0111, 0.0002);
        assert_true(centre(&w).y > 0.0113);
        check_below(fastest, 0.02);
        world_end(&w);
    }
}

/* A drop that sits on a ball at its contact angle, weightless: the two meet at right angles. The
 * pull along the circle of contact, 2 pi sigma r R^2 / d^2, would set both in motion if the ball
 * did not get it. */
static void drop_on_ball(const un_method *method)
{
    world w;
    double d = 0.32, r = 0.22, ball = sqrt(d * d - r * r);
    char text[600];
    snprintf(text, sizeof text,
             "scene { detail = { coarsest = 8, finest = 24 }, gravity = {0, 0, 0}, fluid = { "
             "density = 1, surface_tension = 1 }, liquid = { sphere { center = {0.51, 0.62, 0.49}, "
             "radius = %g } }, solids = { sphere { center = {0.51, %g, 0.49}, radius = %.9g, "
             "density = 1 } } }",
             r, 0.62 - d, ball);
    world_begin(&w, method, CHECK_THREADS, text);
    while (w.time < 0.08) world_step(&w, 0.08);
    const un_body *body = &un_method_bodies(w.state)->body[0];
    double pull = 2 * UN_PI * r * ball * ball / (d * d);
    double together = w.step.momentum.y + body->mass * body->velocity.y;
    check_near(together, 0, 0.12 * pull * w.time);
    check_below(un_length(body->spin), 0.05);
    world_end(&w);
}

static void a_drop_on_a_ball_does_not_set_out(void **state)
{
    (void)state;
    drop_on_ball(&un_method_uniform);
    drop_on_ball(&un_method_tet);
    drop_on_ball(&un_method_octree);
}

/* A ball of half the water's density stays half under: the surface is level, and pulls sideways. */
static void ball_afloat(const un_method *method)
{
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "scene { domain = { size = {0.06, 0.06, 0.06} }, detail = { coarsest = 8, finest = "
                "16 }, fluid = { surface_tension = 0.072 }, liquid = { box { min = {0, 0, 0}, max "
                "= {0.06, 0.03, 0.06} } }, solids = { sphere { center = {0.03, 0.03, 0.03}, radius "
                "= 0.014, density = 500 } } }");
    while (w.time < 0.3) world_step(&w, 0.3);
    const un_body *body = &un_method_bodies(w.state)->body[0];
    check_near(un_length(un_sub(centre(&w), body->centre)), 0, 0.1 * 0.06 / 16);
    check_below(un_length(body->velocity), 0.002);
    check_below(un_length(body->spin), 0.01);
    check_below(w.step.max_speed, 0.02);
    world_end(&w);
}

static void a_ball_stays_afloat(void **state)
{
    (void)state;
    ball_afloat(&un_method_uniform);
    ball_afloat(&un_method_tet);
    ball_afloat(&un_method_octree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_needle_floats),
        cmocka_unit_test(a_drop_on_a_ball_does_not_set_out),
        cmocka_unit_test(a_ball_stays_afloat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
