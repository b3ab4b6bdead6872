/* Viscous liquid in methods with particles of many sizes: slumps, sinks, creeps, keeps together.
 * The file that includes this names its method: #define METHOD un_method_tet */
#ifndef UN_TEST_METHOD_VISCOUS_ADAPTIVE_H
#define UN_TEST_METHOD_VISCOUS_ADAPTIVE_H

#include "method/viscous.h"

#define SLAB                                                                                       \
    "scene { method = '%s', domain = { size = {0.4, 0.2, 0.05}, slip = { left = math.huge,\n"      \
    "  front = math.huge, back = math.huge%s } }, detail = { coarsest = 8, finest = 32 },\n"       \
    "frames = { count = 9, rate = 24 }, %s\n"                                                      \
    "liquid = { box { min = {0, 0, 0}, max = {0.1, 0.1, 0.05} } },\n"                              \
    "solver = { coupling = '%s' }, probes = { front { axis = 'x' } } }"

static double front_after(double end, const char *slip, const char *fluid, const char *coupling)
{
    char text[1024];
    world w;
    snprintf(text, sizeof text, SLAB, METHOD.traits.name, slip, fluid, coupling);
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    world_run(&w, end);
    double front = w.method->probe(w.state, &w.scene->def.probes[0]);
    check_below(w.max_volume_error, 0.03);
    world_end(&w);
    return front;
}

/* Huppert's law, coarsely: test/validate/huppert.sh has it in full. */
static void slumps(void **state)
{
    (void)state;
    double theory = 1.4112 * pow(9.81 * 1e-6 / 0.03, 0.2) * pow(0.5, 0.2);
    double flip = front_after(0.5, "", "fluid = { viscosity = 10 },", "flip");
    double pic = front_after(0.5, "", "fluid = { viscosity = 10 },", "pic");
    check_near(flip / theory, 1, 0.12);
    check_near(pic / flip, 1, 0.03);
    /* what slides is faster, what is thicker slower, tar does not move */
    double slides =
        front_after(0.25, ", bottom = math.huge", "fluid = { viscosity = 10 },", "flip");
    assert_true(slides > flip);
    check_below(front_after(0.25, "", "fluid = { viscosity = 100 },", "flip"), 0.8 * flip);
    check_near(front_after(0.25, "", "fluid = { viscosity = 1e6 },", "flip"), 0.1, 0.006);
}

/* A column on a floor that it slides along sinks by its weight at rho g y (H - y / 2) / (3 mu); the
 * pressure in it is a third of what it would be in a tank. Both over that. */
static double sinking(const char *stress, double *pressure)
{
    char text[1024];
    world w;
    snprintf(text, sizeof text,
             "scene { method = '%s', domain = { size = {0.4, 0.5, 0.4}, slip = math.huge },\n"
             "detail = { coarsest = 10, finest = 20 }, frames = { count = 9, rate = 25 },\n"
             "fluid = { viscosity = 1e4 }, solver = { stress = '%s' },\n"
             "liquid = { box { min = {0.1, 0, 0.1}, max = {0.3, 0.4, 0.3} } },\n"
             "probes = { pressure { at = {0.2, 0.2, 0.2} } } }",
             METHOD.traits.name, stress);
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    world_run(&w, 1.0 / 24);
    double speed = world_column_speed(&w, 3);
    *pressure = w.method->probe(w.state, &w.scene->def.probes[0]) / (1000 * 9.81 * 0.2 / 3);
    if (getenv("VERBOSE")) printf("%s: %g, pressure %g\n", stress, speed, *pressure);
    world_end(&w);
    return speed;
}

static void columns_sink_as_trouton_says(void **state)
{
    (void)state;
    double pressure;
    check_near(sinking("full", &pressure), 1, 0.06);
    check_near(pressure, 1, 0.06);
    assert_true(sinking("split", &pressure) > 1.3);
}

/* Steps ten times as long as usual stay stable; what moves mends the volume. */
static void viscous_long_steps(double fastest)
{
    static const char scene[] =
        "scene { method = '%s', domain = { size = {1, 1, 1} }, detail = { coarsest = 4,\n"
        "  finest = 16 }, fluid = { viscosity = 1e6 },\n"
        "  liquid = { box { min = {0.2, 0, 0.2}, max = {0.8, 0.7, 0.8} } } }";
    char text[1024];
    world w;
    snprintf(text, sizeof text, scene, METHOD.traits.name);
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    double dt = 10 * w.method->step_limit(w.state);
    for (int step = 0; step < 4; step++) {
        check_ok(w.ctx, w.method->step(w.state, dt, &w.step));
        check_below(w.step.max_speed, fastest);
        check_below(w.step.energy_kinetic, 2);
    }
    world_end(&w);
}

/* A puddle two cells deep creeps: what differs from tet to tet, which the solve at nodes does not
 * see, must not feed on pressure. Kept whole it made 3e-7 J of it. */
static void puddles_do_not_boil(void **state)
{
    (void)state;
    static const char scene[] =
        "scene { method = '%s', domain = { size = {0.084, 0.042, 0.084}, slip = {\n"
        "  left = math.huge, right = math.huge, front = math.huge, back = math.huge } },\n"
        "detail = { coarsest = 4, finest = 32 }, fluid = { viscosity = 40 }, liquid = {\n"
        "  cylinder { from = {0, -0.1, 0}, to = {0, 0.009, 0}, radius = 0.07 } } }";
    char text[1024];
    world w;
    double sum = 0;
    int steps = 0;
    snprintf(text, sizeof text, scene, METHOD.traits.name);
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    while (w.time < 0.6 - 1e-9) {
        world_step(&w, 0.6);
        if (w.time < 0.3) continue;
        sum += w.step.energy_kinetic;
        steps++;
    }
    check_below(sum / steps, 1.2e-7);
    world_end(&w);
}

static int32_t count_flying(world *w)
{
    const un_particles *p = w->method->particles(w->state);
    int32_t flying = 0; /* below the emitter, where they are new */
    for (int32_t q = 0; q < p->count; q++)
        flying += p->x[1][q] < 0.15 && p->flags[q] & UN_PARTICLE_BALLISTIC;
    return flying;
}

/* A bar with sharp edges comes out of an emitter, a ball lies below, whose rim is cut to particles
 * of any size: nothing flies beside them. Once 209 particles did, and 53 of the ball. */
static void edges_shed_no_drops(void **state)
{
    (void)state;
    static const char scene[] =
        "scene { method = '%s', domain = { size = {0.1, 0.2, 0.1} }, detail = { coarsest = 8,\n"
        "  finest = 32 }, fluid = { viscosity = 100 }, sources = { emitter { shape = box {\n"
        "  min = {0.035, 0.16, 0.035}, max = {0.065, 0.19, 0.065} }, velocity = {0, -0.4, 0} } },\n"
        "  liquid = { sphere { center = {0.051, 0.03, 0.052}, radius = 0.022 } } }";
    char text[1024];
    world w;
    snprintf(text, sizeof text, scene, METHOD.traits.name);
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    if (getenv("VERBOSE")) printf("%d fly at the start\n", count_flying(&w));
    assert_int_equal(count_flying(&w), 0);
    world_run(&w, 0.25);
    if (getenv("VERBOSE")) printf("%d fly\n", count_flying(&w));
    assert_true(w.method->particles(w.state)->count > 3000);
    check_below(count_flying(&w), 2);
    check_below(fabs(w.step.volume_error), 0.05);
    world_end(&w);
}

static void balls_sink_as_stokes_says(void **state)
{
    (void)state;
    check_near(viscous_ball_speed(&METHOD, 24, 3, 0.15), 1, 0.1);
}

#endif
