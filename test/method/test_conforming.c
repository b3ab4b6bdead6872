/* Method `conforming` in action: a dam break keeps its volume, and nothing in it is thrown away. */
#include "method/viscous.h"

/* It meets the far wall after a third of a second, rises and falls back. */
static void dams_keep_their_volume(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_conforming, CHECK_THREADS,
                "scene { method = 'conforming', domain = { size = {1, 1, 0.25} },"
                " detail = { coarsest = 4, finest = 16 },"
                " liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } } }");
    world_run(&w, 0.9);
    check_below(w.max_volume_error, 0.003);
    check_below(w.max_speed, 8); /* 2 sqrt(g H) is 5.6 */
    world_end(&w);
}

/* A column on a floor that it slides along sinks by its weight at rho g y (H - y / 2) / (3 mu). */
static void columns_sink_as_trouton_says(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        char text[600];
        world w;
        snprintf(text, sizeof text,
                 "scene { method = 'conforming', domain = { size = {0.4, 0.5, 0.4}, slip = "
                 "math.huge },\n"
                 "detail = { coarsest = 10, finest = 20 }, frames = { count = 9, rate = 25 },\n"
                 "fluid = { viscosity = 1e4 }, solver = { stress = '%s' },\n"
                 "liquid = { box { min = {0.1, 0, 0.1}, max = {0.3, 0.4, 0.3} } },\n"
                 "probes = { velocity { at = {0.2, 0.3, 0.2}, axis = 'y' } } }",
                 split ? "split" : "full");
        world_begin(&w, &un_method_conforming, CHECK_THREADS, text);
        world_run(&w, 1.0 / 24);
        double theory = -1000 * 9.81 * 0.3 * (0.4 - 0.15) / 3e4;
        double speed = w.method->probe(w.state, &w.scene->def.probes[0]) / theory;
        if (getenv("VERBOSE")) printf("%g\n", speed);
        if (split)
            assert_true(speed > 1.3);
        else
            check_near(speed, 1, 0.06);
        world_end(&w);
    }
}

static void balls_sink_as_stokes_says(void **state)
{
    (void)state;
    check_near(viscous_ball_speed(&un_method_conforming, 16, 3, 0.1), 1, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dams_keep_their_volume),
                                       cmocka_unit_test(columns_sink_as_trouton_says),
                                       cmocka_unit_test(balls_sink_as_stokes_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
