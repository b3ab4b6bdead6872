/* Viscous liquid in method `uniform`: slumps, sticks, slides, carries its viscosity, keeps
 * spinning, in two and three dimensions. test-labels: slow */
#include "method/viscous.h"

/* ---- slumps ---- */

#define SLAB                                                                                       \
    "scene { method = 'uniform', domain = { size = {0.4, 0.2%s}, slip = { left = math.huge%s\n"    \
    "  } }, detail = { finest = 32 },\n"                                                           \
    "frames = { count = 9, rate = 24 }, %s\n"                                                      \
    "liquid = { box { min = {0, 0, -1}, max = {0.1, 0.1, 1} } },\n"                                \
    "solver = { coupling = '%s' }, probes = { front { axis = 'x' } } }"

static double front_after(int dim, double end, const char *slip, const char *fluid,
                          const char *coupling)
{
    char text[1024];
    world w;
    snprintf(text, sizeof text, SLAB, dim == 2 ? "" : ", 0.05", slip, fluid, coupling);
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    world_run(&w, end);
    double front = w.method->probe(w.state, &w.scene->def.probes[0]);
    if (getenv("VERBOSE"))
        printf("%dD %s %s: %g, volume %g\n", dim, fluid, coupling, front, w.max_volume_error);
    check_below(w.max_volume_error, 0.03);
    world_end(&w);
    return front;
}

/* Huppert's law, coarsely: test/validate has it in full. */
static void slumps(void **state)
{
    (void)state;
    double theory = 1.4112 * pow(9.81 * 1e-6 / 0.03, 0.2) * pow(0.5, 0.2);
    double flip = front_after(2, 0.5, "", "fluid = { viscosity = 10 },", "flip");
    double pic = front_after(2, 0.5, "", "fluid = { viscosity = 10 },", "pic");
    double deep = front_after(3, 0.5, ", front = math.huge, back = math.huge",
                              "fluid = { viscosity = 10 },", "flip");
    check_near(flip / theory, 1, 0.12);
    check_near(pic / flip, 1, 0.03);
    check_near(deep / flip, 1, 0.02);
    /* what slides is faster, what is thicker slower, tar does not move */
    double slides =
        front_after(2, 0.25, ", bottom = math.huge", "fluid = { viscosity = 10 },", "flip");
    assert_true(slides > flip);
    check_below(front_after(2, 0.25, "", "fluid = { viscosity = 100 },", "flip"), 0.8 * flip);
    check_near(front_after(2, 0.25, "", "fluid = { viscosity = 1e6 },", "flip"), 0.1, 0.006);
}

/* ---- columns ---- */

/* On a floor that it slides along, a column sinks by its weight at rho g y (H - y / 2) / (3 mu), a
 * wall of liquid in 2D with 4 mu; the pressure in it is a third, or a half, of what it would be in
 * a tank. Both over that. */
static double sinking(int dim, const char *stress, double *pressure)
{
    char text[1024];
    world w;
    double k = dim == 2 ? 4 : 3;
    snprintf(text, sizeof text,
             "scene { method = 'uniform', domain = { size = {0.4, 0.5%s}, slip = math.huge },\n"
             "detail = { finest = 20 }, frames = { count = 9, rate = 25 },\n"
             "fluid = { viscosity = 1e4 }, solver = { stress = '%s' },\n"
             "liquid = { box { min = {0.1, 0, %s}, max = {0.3, 0.4, %s} } },\n"
             "probes = { pressure { at = {0.2, 0.2%s} } } }",
             dim == 2 ? "" : ", 0.4", stress, dim == 2 ? "-1" : "0.1", dim == 2 ? "1" : "0.3",
             dim == 2 ? "" : ", 0.2");
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    world_run(&w, 1.0 / 24);
    double speed = world_column_speed(&w, k);
    *pressure = w.method->probe(w.state, &w.scene->def.probes[0]) /
                (1000 * 9.81 * 0.2 * (dim == 2 ? 0.5 : 1.0 / 3));
    if (getenv("VERBOSE")) printf("%dD %s: %g, pressure %g\n", dim, stress, speed, *pressure);
    world_end(&w);
    return speed;
}

static void columns_sink_as_trouton_says(void **state)
{
    (void)state;
    double pressure;
    for (int dim = 2; dim <= 3; dim++) {
        check_near(sinking(dim, "full", &pressure), 1, 0.06);
        check_near(pressure, 1, 0.06);
        assert_true(sinking(dim, "split", &pressure) > 1.3);
    }
}

/* ---- stability ---- */

/* Steps ten times as long as usual stay stable. */
static void long_steps(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'uniform', domain = { size = {1, 1, 1} }, detail = { finest = 16 },\n"
        "fluid = { viscosity = 1e6 }, liquid = { box { min = {0.2, 0, 0.2}, max = {0.8, 0.7, 0.8} "
        "} } }";
    world w;
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    double dt = 10 * w.method->step_limit(w.state);
    for (int step = 0; step < 4; step++) {
        check_ok(w.ctx, w.method->step(w.state, dt, &w.step));
        if (getenv("VERBOSE")) printf("long: %g m/s\n", w.step.max_speed);
        check_below(w.step.max_speed, 1.5); /* what is left mends the volume */
    }
    world_end(&w);
}

/* A puddle two cells deep creeps and does not boil. */
static void puddles_do_not_boil(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'uniform', domain = { size = {0.084, 0.042}, slip = {\n"
        "  left = math.huge, right = math.huge } },\n"
        "detail = { finest = 32 }, fluid = { viscosity = 40 }, liquid = {\n"
        "  box { min = {0, 0, -1}, max = {0.07, 0.009, 1} } } }";
    world w;
    double most = 0;
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    while (w.time < 0.6 - 1e-9) {
        world_step(&w, 0.6);
        if (w.time > 0.3) most = fmax(most, w.step.max_speed);
    }
    if (getenv("VERBOSE")) printf("puddle: %g m/s at most\n", most);
    check_below(most, 0.01);
    world_end(&w);
}

/* A bar with sharp edges comes out of an emitter, a ball lies below: nothing flies beside them. */
static void edges_shed_no_drops(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'uniform', domain = { size = {0.1, 0.2, 0.1} }, detail = { finest = 32 "
        "},\n  fluid = { viscosity = 100 }, sources = { emitter { shape = box {\n"
        "  min = {0.035, 0.16, 0.035}, max = {0.065, 0.19, 0.065} }, velocity = {0, -0.403, 0} } "
        "},\n"
        "  liquid = { sphere { center = {0.051, 0.03, 0.052}, radius = 0.022 } } }";
    world w;
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    world_run(&w, 0.25);
    if (getenv("VERBOSE"))
        printf("%d of %d fly, volume %g\n", (int)w.step.ballistic, (int)w.step.particles,
               w.step.volume_error);
    check_below((double)w.step.ballistic, 2);
    check_below(fabs(w.step.volume_error), 0.05);
    world_end(&w);
}

/* ---- spinning ---- */

/* A blob of honey in weightlessness goes on turning; particles keep their own viscosity and
 * density. */
static double spin_lost(int dim)
{
    char text[1024];
    world w;
    snprintf(text, sizeof text,
             "scene { method = 'uniform', gravity = {0, 0, 0}, domain = { size = {1, 1%s} },\n"
             "detail = { finest = 16 }, " VISCOUS_HALVES ",\n"
             "liquid = { sphere { center = {0.5, 0.5, %s}, radius = 0.3 } } }",
             dim == 2 ? "" : ", 1", dim == 2 ? "0" : "0.5");
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    un_vec3 middle = un_v3(0.5, 0.5, dim == 2 ? 0 : 0.5);
    viscous_turn(&w, middle, dim == 2 ? un_v3(0, 0, 2) : un_v3(0.3, 2, 0.5));
    double lost = viscous_spin_lost(&w, middle);
    world_end(&w);
    return lost;
}

static void spins_on(void **state)
{
    (void)state;
    for (int dim = 2; dim <= 3; dim++) check_below(spin_lost(dim), 0.08);
}

/* ---- bodies ---- */

/* The speed of a ball of radius 0.1 m that sinks or rises in 2D between two closed plates four
 * times as far apart, over what theory says [Faxen 1946]. */
static double flat_ball_speed(double density)
{
    char text[1024];
    world w;
    double k = 1.0 / 4;
    snprintf(
        text, sizeof text,
        "scene { method = 'uniform', domain = { size = {0.8, 1.6} }, detail = { finest = 48 },\n"
        "fluid = { viscosity = %g }, liquid = { box { min = {0, 0}, max = {2, 2} } },\n"
        "solids = { solid { shape = sphere { center = {0.4, 0.8}, radius = 0.1 },\n"
        "  density = %g, name = 'ball' } } }",
        VISCOUS_BALL_MU, density);
    double drag = 4 * UN_PI * VISCOUS_BALL_MU /
                  (-log(k) - 0.9157 + 1.7244 * pow(k, 2) - 1.7302 * pow(k, 4) + 2.4056 * pow(k, 6) -
                   4.5913 * pow(k, 8));
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    world_run(&w, 0.4);
    double speed = -viscous_ball(&w)->velocity.y * drag / ((density - 1000) * 9.81 * UN_PI * 0.01);
    if (getenv("VERBOSE")) printf("ball in 2D, %g kg/m3: %g\n", density, speed);
    world_end(&w);
    return speed;
}

static void balls_sink_as_stokes_says(void **state)
{
    (void)state;
    check_near(flat_ball_speed(2000), 1, 0.1);
    check_near(flat_ball_speed(10), 1, 0.1); /* it rises */
    check_near(viscous_ball_speed(&un_method_uniform, 20, 3, 0.25), 1, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slumps),
                                       cmocka_unit_test(columns_sink_as_trouton_says),
                                       cmocka_unit_test(long_steps),
                                       cmocka_unit_test(puddles_do_not_boil),
                                       cmocka_unit_test(edges_shed_no_drops),
                                       cmocka_unit_test(spins_on),
                                       cmocka_unit_test(balls_sink_as_stokes_says)};
    check_races_in("long_steps");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
