/* Viscous liquid in method `uniform`: slumps, sticks, slides, carries its viscosity, keeps
 * spinning, in two and three dimensions. test-labels: slow */
#include "method/world.h"

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
             "detail = { finest = 16 },\n"
             "fluid = { viscosity = function(x, y, z) return x < 0.5 and 1 or 500 end,\n"
             "  density = function(x, y, z) return x < 0.5 and 700 or 1000 end },\n"
             "liquid = { sphere { center = {0.5, 0.5, %s}, radius = 0.3 } } }",
             dim == 2 ? "" : ", 1", dim == 2 ? "0" : "0.5");
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    un_particles *p = (un_particles *)(uintptr_t)w.method->particles(w.state);
    un_vec3 middle = un_v3(0.5, 0.5, dim == 2 ? 0 : 0.5), l[2] = {{0}};
    un_vec3 turn = dim == 2 ? un_v3(0, 0, 2) : un_v3(0.3, 2, 0.5);
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 v = un_cross(turn, un_sub(un_particle_position(p, q), middle));
        p->v[0][q] = v.x;
        p->v[1][q] = v.y;
        if (dim == 3) p->v[2][q] = v.z;
    }
    double mass[2] = {0, 0};
    for (int when = 0; when < 2; when++) {
        p = (un_particles *)(uintptr_t)w.method->particles(w.state);
        for (int32_t q = 0; q < p->count; q++) {
            double m = (double)p->volume[q] * (double)p->density[q];
            un_vec3 x = un_sub(un_particle_position(p, q), middle);
            l[when] = un_mad(l[when], un_cross(x, un_particle_velocity(p, q)), m);
            mass[when] += m;
            assert_true(p->viscosity[q] >= 1 && p->viscosity[q] <= 500);
            assert_true(p->density[q] >= 700 && p->density[q] <= 1000);
        }
        if (when == 0) world_run(&w, 0.5);
    }
    check_near(mass[1] / mass[0], 1, 1e-5);
    world_end(&w);
    double lost = un_length(un_sub(l[1], l[0])) / un_length(l[0]);
    if (getenv("VERBOSE")) printf("spin in %dD: lost %g\n", dim, lost);
    return lost;
}

static void spins_on(void **state)
{
    (void)state;
    for (int dim = 2; dim <= 3; dim++) check_below(spin_lost(dim), 0.08);
}

/* ---- bodies ---- */

/* The speed of a ball of radius 0.1 m that sinks or rises in a closed, full vessel, over what
 * theory says: in a cylinder [Haberman & Sayre 1958], in 2D between two plates [Faxen 1946]. */
static double sinking_ball(int dim, int cells, double density, double end)
{
    char text[1024];
    world w;
    double radius = dim == 2 ? 0.4 : 0.3, k = 0.1 / radius, mu = 500, theory;
    snprintf(
        text, sizeof text,
        "scene { method = 'uniform', domain = { size = %s }, detail = { finest = %d },\n"
        "fluid = { viscosity = 500 }, liquid = { box { min = {0, 0, -1}, max = {2, 2, 2} } },\n"
        "solids = { %s solid { shape = sphere { center = {%g, %g, %g}, radius = 0.1 },\n"
        "  density = %g, name = 'ball' } } }",
        dim == 2 ? "{0.8, 1.6}" : "{0.6, 0.8, 0.6}", cells,
        dim == 2 ? ""
                 : "solid { shape = subtract { box { min = {-1, -1, -1}, max = {2, 2, 2} },\n"
                   "  cylinder { from = {0.3, -3, 0.3}, to = {0.3, 3, 0.3}, radius = 0.3 } } },",
        radius, dim == 2 ? 0.8 : 0.4, dim == 2 ? 0 : 0.3, density);
    if (dim == 2) {
        double drag = 4 * UN_PI * mu /
                      (-log(k) - 0.9157 + 1.7244 * pow(k, 2) - 1.7302 * pow(k, 4) +
                       2.4056 * pow(k, 6) - 4.5913 * pow(k, 8));
        theory = (density - 1000) * 9.81 * UN_PI * 0.01 / drag;
    } else {
        double more = (1 - 0.75857 * pow(k, 5)) / (1 - 2.105 * k + 2.0865 * pow(k, 3) -
                                                   1.7068 * pow(k, 5) + 0.72603 * pow(k, 6));
        theory = 2.0 / 9 * (density - 1000) * 9.81 * 0.01 / (mu * more);
    }
    world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
    world_run(&w, end);
    const un_bodies *bodies = un_method_bodies(w.state);
    double speed = -bodies->body[bodies->count - 1].velocity.y / theory;
    if (getenv("VERBOSE")) printf("ball in %dD, %g kg/m3: %g\n", dim, density, speed);
    world_end(&w);
    return speed;
}

static void balls_sink_as_stokes_says(void **state)
{
    (void)state;
    check_near(sinking_ball(2, 48, 2000, 0.4), 1, 0.1);
    check_near(sinking_ball(2, 48, 10, 0.4), 1, 0.1); /* it rises */
    check_near(sinking_ball(3, 20, 2000, 0.25), 1, 0.1);
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
