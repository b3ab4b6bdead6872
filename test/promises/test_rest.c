/* Promises of every method: what is at rest stays at rest, and probes say so. */
#include "promises/promise.h"

#define DEPTH 0.437 /* between two layers of cells */
#define CELLS 16

static double probe(const world *w, un_probe_kind kind, int32_t axis, double sign, un_vec3 at)
{
    un_probe p = {.kind = kind, .axis = axis, .sign = sign, .at = at};
    return w->method->probe(w->state, &p);
}

/* A tank at rest: the surface, the pressure below it, and how far the water reaches. */
static void water_rests(const un_method *method)
{
    world w;
    double h = 1.0 / CELLS;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {1, 1, 0.5} }, detail = { coarsest = 8, finest = 16 },"
                  " liquid = { plane { point = {0, 0.437, 0}, normal = {0, 1, 0} } } }");
    world_run(&w, 0.25);
    check_below(w.max_speed, 0.03);
    check_below(w.step.max_speed, 0.02);
    check_below(w.max_volume_error, 5e-3);
    check_near(w.step.volume, 0.5 * DEPTH, 0.01 * DEPTH);
    promise_finite(&w, "at rest");
    promise_inside(&w);
    for (double x = 0.1; x < 1; x += 0.2)
        check_near(probe(&w, UN_PROBE_HEIGHT, 0, 0, un_v3(x, 0, 0.2)), DEPTH, 0.25 * h);
    for (double y = 0; y < 0.4; y += 0.1)
        check_near(probe(&w, UN_PROBE_PRESSURE, 0, 0, un_v3(0.4, y, 0.2)),
                   1000 * 9.81 * (DEPTH - y), 0.03 * 1000 * 9.81 * DEPTH);
    check_near(probe(&w, UN_PROBE_FRONT, 1, 1, un_v3(0, 0, 0)), DEPTH, 0.5 * h);
    check_near(probe(&w, UN_PROBE_FRONT, 0, 1, un_v3(0, 0, 0)), 1, 0.5 * h);
    check_near(probe(&w, UN_PROBE_FRONT, 0, -1, un_v3(0, 0, 0)), 0, 0.5 * h);
    world_end(&w);
}

/* Tanks as they come, not made of whole cells: their sides cut the last ones, in the corners two at
 * once. And a narrow one, whose volume as the method sees it begins up to 1.5 % off: it must not
 * shrink so fast that water lets go of the walls. */
static void water_rests_in_any_tank(const un_method *method)
{
    static const char *const sizes[] = {"{0.67, 1, 0.23}", "{0.66, 1, 0.22}", "{0.25, 1, 0.25}"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        world w;
        char text[256];
        snprintf(text, sizeof text,
                 "scene { domain = { size = %s }, detail = { coarsest = 4, finest = 16 }, liquid = "
                 "{ plane { point = {0, 0.737, 0}, normal = {0, 1, 0} } } }",
                 sizes[i]);
        promise_begin(&w, method, CHECK_THREADS, text);
        world_run(&w, 0.4);
        check_below(w.step.max_speed, 0.02);
        check_below(w.max_volume_error, 0.03);
        check_below(fabs(w.step.volume_error), 0.01);
        world_end(&w);
    }
}

/* At the end nothing moves faster than that, rms and at worst, and all of the water is there. */
static void calms_down(const un_method *method, const char *text, double end, double rms,
                       double fastest)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, end);
    check_below(sqrt(2 * w.step.energy_kinetic / (1000 * w.step.volume)), rms);
    check_below(w.step.max_speed, fastest);
    check_below(fabs(w.step.volume_error), 0.01);
    world_end(&w);
}

/* On a ramp, askew in the grid or not, its edge a wedge thinner than any cell: a slope of 37
 * degrees, and one whose shallow end is a third of a cell deep. */
static void water_rests_on_a_slope(const un_method *method)
{
    static const char *const scenes[] = {
        "max = {1, 0.5412, 1} } }, solids = { plane { normal = {-0.7474, 1, 0.18}",
        "max = {1, 0.41, 1} } }, solids = { plane { normal = {-0.4, 1, 0}"};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "scene { domain = { size = {1, 0.75, 0.375} }, detail = { coarsest = 8, finest = "
                 "16 }, liquid = { box { min = {0, 0, 0}, %s, point = {0.2781, 0.1, 0} } } }",
                 scenes[i]);
        calms_down(method, text, 0.7, 0.01, 0.25); /* specks in the tip of the wedge */
    }
}

/* A gap between a block and the floor, a quarter of a cell wide and many cells deep, is full of
 * water. */
static void water_rests_in_gaps(const un_method *method)
{
    /* single particles still hop with some methods */
    calms_down(method,
               "scene { domain = { size = {1, 0.375, 0.5} }, detail = { coarsest = 4, finest = 16 "
               "}, liquid = { box { min = {0, 0, 0}, max = {1, 0.2, 0.5} } }, solids = { box { min "
               "= {0.25, 0.0155, -1}, max = {0.75, 0.3, 0.3} } } }",
               0.4, 0.05, 0.3);
}

/* Full and closed, where pressure is known up to a constant only. */
static void a_full_closed_tank_stands_still(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {1, 0.5, 0.5} }, detail = { coarsest = 4, finest = 16 "
                  "}, gravity = {3, -9, 1}, liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } } "
                  "}");
    world_run(&w, 0.5);
    check_below(w.max_speed, 0.02);
    check_below(w.max_volume_error, 1e-3);
    world_end(&w);
}

static void thick_liquid_rests(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {1, 1, 0.5} }, detail = { coarsest = 8, finest = 16 },"
                  " fluid = { viscosity = 50 },"
                  " liquid = { plane { point = {0, 0.437, 0}, normal = {0, 1, 0} } } }");
    world_run(&w, 0.1);
    check_below(w.max_speed, 0.02);
    check_below(w.max_volume_error, 5e-3);
    world_end(&w);
}

/* A ball in weightlessness goes nowhere. */
static void a_weightless_ball_stays(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { detail = { coarsest = 8, finest = 16 }, gravity = {0, 0, 0},"
                  " liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.3 } } }");
    double ball = 4.0 / 3 * UN_PI * 0.027;
    check_near(w.step.volume, ball, 0.05 * ball);
    world_run(&w, 0.1);
    check_near(w.step.volume, ball, 0.05 * ball);
    /* pulling the crowded apart and mending the volume moves some a little */
    check_below(un_length(w.step.momentum), 1000 * ball * 0.005);
    check_below(w.step.energy_kinetic, 0.5 * 1000 * ball * 0.03 * 0.03);
    world_end(&w);
}

int main(void)
{
    static const promise promises[] = {
        {"water_rests", water_rests, NULL, false},
        {"water_rests_in_any_tank", water_rests_in_any_tank, NULL, false},
        {"water_rests_on_a_slope", water_rests_on_a_slope, NULL, false},
        {"water_rests_in_gaps", water_rests_in_gaps, NULL, false},
        {"a_full_closed_tank_stands_still", a_full_closed_tank_stands_still, NULL, false},
        {"thick_liquid_rests", thick_liquid_rests, method_is_viscous, false},
        {"a_weightless_ball_stays", a_weightless_ball_stays, NULL, false},
    };
    check_races_in("thick_liquid*");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
