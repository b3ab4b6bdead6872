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
    promise_begin(&w, method, 2,
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

int main(void)
{
    static const promise promises[] = {
        {"a_ball_falls_freely", a_ball_falls_freely, has_particles, false},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
