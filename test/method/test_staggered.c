/* Method `staggered`: rest, flight, a falling column. */
#include "method/world.h"

static const un_method *const method = &un_method_staggered;

static void water_rests(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "scene { method = 'staggered', detail = { coarsest = 4, finest = 16 },"
                " liquid = { plane { point = {0, 0.437, 0}, normal = {0, 1, 0} } },"
                " solids = { sphere { center = {0.4, 0.2, 0.5}, radius = 0.15 } } }");
    world_run(&w, 0.5);
    check_below(w.max_speed, 0.04);
    check_below(w.max_volume_error, 5e-3);
    un_probe floor = {.kind = UN_PROBE_PRESSURE, .at = {0.8, 0.05, 0.8}};
    check_near(method->probe(w.state, &floor), 1000 * 9.81 * (0.437 - 0.05), 40);
    world_end(&w);
}

static void flight_conserves_momentum(void **unused)
{
    (void)unused;
    world_flies(method, "coarsest = 6, finest = 24", 5e-3);
}

/* A column breaks: the front after 0.2 s is where method `tet` has it, within two cells, and
 * volume stays. */
static void a_column_falls_as_with_tet(void **unused)
{
    (void)unused;
    const un_method *methods[] = {&un_method_tet, &un_method_staggered};
    un_probe front = {.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1};
    double reach[2];
    for (int m = 0; m < 2; m++) {
        world w;
        world_begin(&w, methods[m], 2,
                    "scene { method = 'tet', domain = { size = {1, 0.5, 0.25} },"
                    " detail = { coarsest = 8, finest = 32 },"
                    " liquid = { box { min = {0, 0, 0}, max = {0.25, 0.4, 0.25} } } }");
        world_run(&w, 0.2);
        reach[m] = methods[m]->probe(w.state, &front);
        check_below(w.max_volume_error, 0.015);
        assert_true(w.step.energy_kinetic > 10);
        world_end(&w);
    }
    print_message("fronts: tet %.3f, staggered %.3f m\n", reach[0], reach[1]);
    check_near(reach[1], reach[0], 2.0 / 32);
    assert_true(reach[1] > 0.35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(water_rests),
        cmocka_unit_test(flight_conserves_momentum),
        cmocka_unit_test(a_column_falls_as_with_tet),
    };
    check_races_in("none: promises/test_bits.c looks for them");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
