/* Method `uniform` against what is known from outside: rest, waves, a dam break. Longer versions of
 * these run under `make validate`.
 * test-labels: once slow */
#include "method/world.h"

static const un_method *const method = &un_method_uniform;

static void water_at_rest_stays_at_rest(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "scene { detail = { finest = 32 },"
                " liquid = { box { min = {0, 0, 0}, max = {1, 0.437, 1} } } }");
    double low, high, h = 1.0 / 32;
    surface_heights(&w, &low, &high);
    check_below(high - low, 0.1 * h);
    check_near(0.5 * (low + high), 0.437, 0.1 * h);
    world_run(&w, 2);
    check_below(w.max_speed, 0.02);
    check_below(w.step.max_speed, 0.003); /* and it has settled, not just stayed slow */
    check_below(w.max_volume_error, 0.002);
    surface_heights(&w, &low, &high);
    check_below(high - low, 0.1 * h);
    check_near(0.5 * (low + high), 0.437, 0.1 * h);
    un_probe bottom = {.kind = UN_PROBE_PRESSURE, .at = {0.5, 0, 0.5}};
    check_near(method->probe(w.state, &bottom), 1000 * 9.81 * 0.437, 0.01 * 1000 * 9.81 * 0.437);
    world_end(&w);
}

static void standing_wave_has_its_period(void **unused)
{
    (void)unused;
    wave found = world_wave(method, "scene { detail = { finest = 48 }," WORLD_WAVE);
    check_near(found.period, WORLD_WAVE_PERIOD, 0.03 * WORLD_WAVE_PERIOD);
    /* little is lost in half a period */
    assert_true(found.crest > 0.85 * -found.trough && found.crest < 1.15 * -found.trough);
}

/* Martin & Moyce 1952, table 2: T = t sqrt(2 g / a), Z = x / a. 24 cells over the column's height.
 */
static void dam_break_front_follows_the_experiment(void **unused)
{
    (void)unused;
    static const double table[][2] = {{0.41, 1.11}, {0.84, 1.22}, {1.19, 1.44}, {1.43, 1.67},
                                      {1.63, 1.89}, {1.83, 2.11}, {1.98, 2.33}, {2.20, 2.56},
                                      {2.32, 2.78}, {2.51, 3.00}, {2.65, 3.22}, {2.83, 3.44},
                                      {2.98, 3.67}, {3.11, 3.89}, {3.33, 4.11}};
    double a = 0.05715, scale = sqrt(2 * 9.81 / a), error = 0;
    size_t rows = sizeof table / sizeof *table, row = 0;
    world w;
    world_begin(
        &w, method, CHECK_THREADS,
        "local a = 0.05715 scene { domain = { size = {5 * a, 3 * a, a / 2} },"
        " detail = { finest = 60 }, liquid = { box { min = {0, 0, 0}, max = {a, 2 * a, a} } } }");
    un_probe front = {.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1};
    check_near(method->probe(w.state, &front), a, 0.2 * a / 12);
    double x = a, t = 0;
    while (row < rows) {
        world_step(&w, w.time + 0.005);
        double now = method->probe(w.state, &front);
        for (; row < rows && table[row][0] / scale <= w.time; row++) {
            double s = (table[row][0] / scale - t) / (w.time - t);
            error += fabs((x + s * (now - x)) / a - table[row][1]) / table[row][1];
        }
        x = now;
        t = w.time;
    }
    check_below(error / (double)rows, 0.10);
    check_below(w.max_volume_error, 0.01);
    world_end(&w);
}

static void water_rests_against_curved_walls(void **unused)
{
    (void)unused;
    world w;
    world_begin(
        &w, method, CHECK_THREADS,
        "scene { detail = { finest = 20 }, liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } },"
        " solids = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.2 } } }");
    world_run(&w, 0.3);
    check_below(w.max_speed, 0.01);
    world_end(&w);
    world_rest_in_round_tank(method, "finest = 24", 0.1, 0.015);
}

/* Once a push meant for emitters under water blew some of it away. */
static void jets_stay_together(void **state)
{
    (void)state;
    check_below(jet_spray(&un_method_uniform), 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jets_stay_together),
        cmocka_unit_test(water_at_rest_stays_at_rest),
        cmocka_unit_test(standing_wave_has_its_period),
        cmocka_unit_test(dam_break_front_follows_the_experiment),
        cmocka_unit_test(water_rests_against_curved_walls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
