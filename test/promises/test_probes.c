/* Promises of every method: probes of forces, streams and thin liquid. */
#include "promises/promise.h"

/* The weight of water on a floor, and the lift of a ball in it. */
static void forces_are_hydrostatic(const un_method *method)
{
    world w;
    promise_begin(
        &w, method, CHECK_THREADS,
        "scene { domain = { size = {1, 0.8, 1} }, detail = { coarsest = 10, finest = 20 }, "
        "liquid = { box { min = {0, 0, 0}, max = {1, 0.7, 1} } }, solids = { solid { box {"
        " min = {-1, -1, -1}, max = {2, 0.08, 2} }, name = 'floor' }, sphere { center = "
        "{0.5, 0.4, 0.5}, radius = 0.2, name = 'ball' } } }");
    world_run(&w, 1 / 12.0);
    un_probe force = {.kind = UN_PROBE_FORCE, .axis = 1};
    double lift = 9810 * 4 * UN_PI / 3 * 0.008, weight = 9810 * 0.62;
    check_near(method->probe(w.state, &force), -weight, 0.02 * weight);
    force.solid = 1;
    check_near(method->probe(w.state, &force), lift, 0.02 * lift);
    force.axis = 0;
    check_near(method->probe(w.state, &force), 0, 0.02 * lift);
    world_end(&w);
}

#define JET(low, high)                                                                             \
    "scene { domain = { size = {1, 0.5, 0.5} }, detail = { coarsest = 8, finest = 16 }, gravity "  \
    "= "                                                                                           \
    "{0, 0, 0}, sources = { emitter { shape = box { min = {0.1, 0.125, " low "}, max = {0.2, "     \
    "0.375, " high "} }, velocity = {2, 0, 0} } } }"

/* The volume beyond the plane x = at, and the mean velocity along x within a cell of a point of it.
 */
static double beyond(const world *w, un_vec3 at, double *velocity)
{
    const un_particles *p = w->method->particles(w->state);
    double volume = 0, near = 0, sum = 0;
    for (int64_t q = 0; q < p->count; q++) {
        if (p->x[0][q] > at.x) volume += p->volume[q];
        if (un_length(un_sub(un_particle_position(p, q), at)) > 1 / 16.0) continue;
        near += p->volume[q];
        sum += p->volume[q] * p->v[0][q];
    }
    *velocity = sum / near;
    return volume;
}

/* What has flowed through a plane is beyond it, and the velocity is that of the particles. */
static void jets_have_their_flux(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS, promise_flat ? JET("-1", "1") : JET("0.125", "0.375"));
    world_run(&w, 0.125);
    un_probe flux = {.kind = UN_PROBE_FLUX, .axis = 0, .at = {0.28, 0, 0}, .to = {0.28, 0.5, 0.5}};
    un_probe velocity = {.kind = UN_PROBE_VELOCITY, .axis = 0, .at = {0.28, 0.25, 0}};
    if (!promise_flat) velocity.at.z = 0.25;
    double mean, first = beyond(&w, velocity.at, &mean), flowed = 0;
    double last = method->probe(w.state, &flux);
    while (0.25 - w.time > 1e-9) {
        world_step(&w, 0.25);
        double now = method->probe(w.state, &flux);
        flowed += 0.5 * w.step.dt * (last + now);
        last = now;
    }
    double went = beyond(&w, velocity.at, &mean) - first;
    assert_true(went > 0.2 * (promise_flat ? 0.25 : 0.0625));
    check_near(flowed, went, 0.05 * went);
    flux.at.y = 0.25; /* half of it */
    check_near(method->probe(w.state, &flux), 0.5 * last, 0.05 * last);
    flux.at.y = 0.45;
    check_near(method->probe(w.state, &flux), 0, 0.01 * last);
    check_near(method->probe(w.state, &velocity), mean, 0.25);
    velocity.axis = -1;
    check_near(method->probe(w.state, &velocity), mean, 0.25);
    velocity.axis = 1;
    check_near(method->probe(w.state, &velocity), 0, 0.1);
    velocity.at.y = 0.48;
    assert_true(isnan(method->probe(w.state, &velocity)));
    world_end(&w);
}

/* A film of half a cell is too thin for `front`, but the floor under it is wet; a drop is not. */
static void films_wet_the_floor(const un_method *method)
{
    world w;
    promise_begin(
        &w, method, CHECK_THREADS,
        "scene { domain = { size = {1, 0.5, 0.5} }, detail = { coarsest = 8, finest = 16 }"
        ", liquid = { box { min = {0.2, 0, -1}, max = {0.6, 0.03, 1} }, box { min = "
        "{0.8, 0.3, -1}, max = {0.83, 0.33, 0.03} } } }");
    un_probe front = {.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1};
    un_probe wet = {.kind = UN_PROBE_WET, .axis = 0, .sign = 1};
    assert_true(isnan(method->probe(w.state, &front)));
    check_near(method->probe(w.state, &wet), 0.6, 0.035);
    wet.sign = -1;
    check_near(method->probe(w.state, &wet), 0.2, 0.035);
    world_end(&w);
}

int main(void)
{
    static const promise promises[] = {
        {"forces_are_hydrostatic", forces_are_hydrostatic, NULL, false},
        {"jets_have_their_flux", jets_have_their_flux, method_has_particles, true},
        {"films_wet_the_floor", films_wet_the_floor, NULL, true},
    };
    check_races_in("films*");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
