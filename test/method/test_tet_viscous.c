/* Viscous liquid in method `tet`: slumps, sticks, slides, carries its viscosity, keeps spinning.
 * test-labels: slow */
#define METHOD un_method_tet
#include "method/viscous_adaptive.h"

static void long_steps(void **state)
{
    (void)state;
    viscous_long_steps(1.5);
}

/* A blob of honey in weightlessness goes on turning and drifting; particles keep their own
 * viscosity and density. */
static void spins_on(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'tet', gravity = {0, 0, 0}, domain = { size = {1, 1, 1} },\n"
        "detail = { coarsest = 8, finest = 16 }, " VISCOUS_HALVES ",\n"
        "liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.3 } } }";
    world w;
    world_begin(&w, &METHOD, CHECK_THREADS, text);
    un_vec3 middle = un_v3(0.5, 0.5, 0.5);
    viscous_turn(&w, middle, un_v3(0.3, 2, 0.5));
    /* The mesh learns of it in the first step. */
    check_ok(w.ctx, w.method->step(w.state, 1e-6, &w.step));
    w.time = w.step.time;
    check_below(viscous_spin_lost(&w, middle), 0.08);
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
