/* Viscous liquid in method `octree`: slumps, sticks, slides, carries its viscosity, keeps spinning.
 * test-labels: slow */
#define METHOD un_method_octree
#include "method/viscous_adaptive.h"

static void long_steps(void **state)
{
    (void)state;
    viscous_long_steps(2);
}

/* A blob of honey in weightlessness goes on turning and drifting. */
static double spin(const world *w, un_vec3 middle, un_vec3 *drift)
{
    const un_particles *p = w->method->particles(w->state);
    un_vec3 l = un_v3(0, 0, 0);
    *drift = l;
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 x = un_sub(un_particle_position(p, q), middle), v = un_particle_velocity(p, q);
        l = un_mad(l, un_cross(x, v), p->volume[q]);
        *drift = un_mad(*drift, v, p->volume[q]);
    }
    return un_length(l);
}

static void spins_on(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'octree', gravity = {0, 0, 0}, domain = { size = {1, 1, 1} },\n"
        "detail = { coarsest = 8, finest = 16 }, fluid = { viscosity = 100 },\n"
        "liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.3 } } }";
    world w;
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    un_vec3 middle = un_v3(0.5, 0.5, 0.5), drift;
    viscous_turn(&w, middle, un_v3(0.3, 2, 0.5));
    check_ok(w.ctx, w.method->step(w.state, 1e-6, &w.step));
    w.time = w.step.time;
    double first = spin(&w, middle, &drift);
    world_run(&w, 0.5);
    double last = spin(&w, middle, &drift);
    if (getenv("VERBOSE")) printf("spin kept: %g\n", last / first);
    check_near(last / first, 1, 0.08);
    world_end(&w);
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
