/* Promises of every method: what falls falls as it should, whatever the step. */
#include "promises/promise.h"

#define GRAVITY 9.81

static bool has_particles(const un_method *method)
{
    return method->particles != NULL;
}

/* Height of the centre of mass, m, and the mass, kg. */
static double centre(const world *w, double *mass)
{
    const un_particles *p = w->method->particles(w->state);
    double sum = 0, volume = 0;
    for (int64_t q = 0; q < p->count; q++) {
        sum += (double)p->volume[q] * p->x[1][q];
        volume += (double)p->volume[q];
    }
    *mass = 1000 * volume;
    return sum / volume;
}

/* A ball falls for half a second at the default step: its way, its speed and its energy. */
static void a_ball_falls_freely(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {0.8, 2, 0.8} }, detail = { coarsest = 8, finest = 32 "
                  "}, liquid = { sphere { center = {0.4, 1.6, 0.4}, radius = 0.3 },"
                  " velocity = {0.1, 0, 0} } }");
    double mass, t = 0.5, way = 0.5 * GRAVITY * t * t, start = centre(&w, &mass);
    double energy = w.step.energy_kinetic + w.step.energy_potential;
    world_run(&w, t);
    check_near(start - centre(&w, &mass), way, 1e-3 * way);
    check_near(w.step.momentum.y, -mass * GRAVITY * t, 1e-3 * mass * GRAVITY * t);
    check_near(w.step.energy_kinetic + w.step.energy_potential, energy, 1e-3 * energy);
    world_end(&w);
}

/* ---- walls that let go ---- */

#define LAYER "scene { domain = { size = {1, 1, 0.5} }, detail = { coarsest = 8, finest = 16 }, "

/* The speed along gravity after a quarter of a second, in that of free fall in the middle of the
 * last step: of methods without particles. */
static double speeds(const un_method *method, const char *text)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 0.25);
    double sign = w.scene->def.gravity.y < 0 ? -1 : 1, mass = 1000 * w.step.volume;
    double speed = sign * w.step.momentum.y / mass;
    check_below(fabs(w.step.volume_error), 0.03);
    world_end(&w);
    return speed / (GRAVITY * (0.25 - 0.5 * w.step.dt));
}

/* How far the liquid falls along gravity in a quarter of a second, in ways of free fall. */
static double falls(const un_method *method, const char *text)
{
    world w;
    double mass;
    if (!method->particles) return speeds(method, text);
    promise_begin(&w, method, CHECK_THREADS, text);
    double start = centre(&w, &mass), sign = w.scene->def.gravity.y < 0 ? -1 : 1;
    world_run(&w, 0.25);
    double way = sign * (centre(&w, &mass) - start);
    check_below(fabs(w.step.volume_error), 0.03);
    promise_inside(&w);
    world_end(&w);
    return way / (0.5 * GRAVITY * 0.25 * 0.25);
}

/* A layer under the ceiling falls; under a tilted one as well; with gravity turned round it leaves
 * the floor. */
static void walls_let_go(const un_method *method)
{
    check_near(falls(method, LAYER "liquid = { box { min = {0, 0.7, -1}, max = {1, 1, 1} } } }"), 1,
               0.02);
    check_near(falls(method, LAYER "gravity = {0, 9.81, 0}, liquid = { box { min = {0, 0, -1}, max "
                                   "= {1, 0.3, 1} } } }"),
               1, 0.02);
    check_near(falls(method, LAYER
                     "liquid = { subtract { plane { point = {0.5, 0.7, 0}, normal = {-0.3, 1, 0} },"
                     " plane { point = {0.5, 0.5, 0}, normal = {-0.3, 1, 0} } } },"
                     " solids = { plane { point = {0.5, 0.7, 0}, normal = {0.3, -1, 0} } } }"),
               1, 0.02);
}

static void suction_holds(const un_method *method)
{
    double way = falls(method, LAYER "solver = { suction = true }, liquid = { box { min = {0, 0.7, "
                                     "-1}, max = {1, 1, 1} } } }");
    check_near(way, 0, 0.05);
}

/* Where nothing lets go, a step is the same to the last bit. */
static void rest_needs_no_suction(const un_method *method)
{
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        char text[256];
        world w;
        snprintf(text, sizeof text,
                 "scene { domain = { size = {1, 1, 0.25} }, detail = { coarsest = 4, finest = 12 },"
                 " solver = { suction = %s }, liquid = { plane { point = {0.5, 0.437, 0},"
                 " normal = {0.3, 1, 0} } } }",
                 i ? "true" : "false");
        promise_begin(&w, method, CHECK_THREADS, text);
        world_run(&w, 0.125);
        hash[i] = promise_hash(&w);
        world_end(&w);
    }
    assert_true(hash[0] == hash[1]);
}

int main(void)
{
    static const promise promises[] = {
        {"a_ball_falls_freely", a_ball_falls_freely, has_particles, false},
        {"walls_let_go", walls_let_go, NULL, true},
        {"suction_holds", suction_holds, NULL, true},
        {"rest_needs_no_suction", rest_needs_no_suction, NULL, true},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
