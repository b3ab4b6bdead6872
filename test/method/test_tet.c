/* Method `tet`: flight, a closed tank, threads, memory. What takes longer is in test_tet_physics.c.
 */
#include "method/world.h"

static const un_method *const method = &un_method_tet;

static void a_full_closed_tank_stands_still(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, 2,
                "scene { method = 'tet', domain = { size = {1, 0.5, 0.5} },"
                " detail = { coarsest = 4, finest = 16 }, gravity = {3, -9, 1},"
                " liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } } }");
    world_run(&w, 0.5);
    check_below(w.max_speed, 0.02);
    check_below(w.max_volume_error, 1e-3);
    world_end(&w);
}

/* Moving the first particles to where the surface should be must not blow up a ball of few cells:
 * three of them see too little of its surface, six see it well. */
static void small_balls_stay_whole(void **unused)
{
    (void)unused;
    const double off[] = {0.15, 0.005};
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "scene { method = 'tet', detail = { coarsest = 4, finest = %d }, gravity = {0, 0, "
                 "0}, liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.2 } } }",
                 16 << i);
        world w;
        world_begin(&w, method, 2, text);
        assert_true(w.step.ballistic < 10); /* of thousands */
        check_below(fabs(w.step.volume_error), off[i]);
        world_end(&w);
    }
}

/* Drops of a few grams fall on calm water whose cells are many times as wide. In flight they have
 * cells of their own; landed they have the water's, stop there, and its particles stay nearly as
 * many. With the cells they bring the mesh would grow to 166 thousand nodes; fast ones would go
 * on through the water at 5 m/s and stir it up. */
static void spray_lands_in_the_cells_there_are(void **unused)
{
    (void)unused;
    const char *const velocity[] = {"{0, -5, 0}", "{6, -7, 1}"};
    for (int fast = 0; fast < 2; fast++) {
        char text[600];
        snprintf(text, sizeof text,
                 "local s = {} for i = 1, 8 do s[i] = emitter { shape = sphere { center = {"
                 " 0.2 + (i %% 5) * 0.2, 1, 0.5 + 0.5 * (i %% 3) }, radius = 0.012 },"
                 " velocity = %s, from = 0.02 * i - 0.003, to = 0.02 * i + 0.002 } end "
                 "scene { method = 'tet', domain = { size = {2, 1.5, 2} }, sources = s,"
                 " detail = { coarsest = 2, finest = 128 },"
                 " liquid = { plane { point = {0, 0.75, 0}, normal = {0, 1, 0} } } }",
                 velocity[fast]);
        world w;
        world_begin(&w, method, 2, text);
        int32_t first = method->particles(w.state)->count;
        int64_t nodes = w.step.nodes, most = 0, flew = 0;
        double energy = 0;
        for (int step = 0; step < 90; step++) { /* short ones: each emitter works in one */
            check_ok(w.ctx, method->step(w.state, 0.005, &w.step));
            most = w.step.nodes > most ? w.step.nodes : most;
            flew = w.step.ballistic > flew ? w.step.ballistic : flew;
            energy = fmax(energy, w.step.energy_kinetic);
        }
        assert_true(flew > 4);
        assert_true(most > nodes && most < 5 * nodes);
        check_below(energy, fast ? 1.5 : 0.8); /* drops: 0.7, 0.3 J; air that they drag along: 5 */
        check_below(w.step.max_speed, 0.5);    /* all are in, and have stopped */
        const un_particles *p = method->particles(w.state);
        assert_true(p->count < 1.5 * first);
        for (int32_t i = 0; i < p->count; i++) check_below(p->x[1][i], 0.78); /* none hovers */
        world_end(&w);
    }
}

static void flight_conserves_momentum(void **unused)
{
    (void)unused;
    world_flies(method, "coarsest = 6, finest = 24", 1e-3);
    world_throws(method, "coarsest = 4, finest = 16", 0.02);
}

static void any_thread_count_gives_the_same_bits(void **unused)
{
    (void)unused;
    world_same_bits(method, "coarsest = 6, finest = 24", 0.25);
}

static void every_failing_allocation_is_survived(void **unused)
{
    (void)unused;
    world_allocation_failures(
        method,
        "scene { method = 'tet', detail = { coarsest = 3, finest = 6, surface = 6 },"
        " liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } },"
        " solids = { sphere { center = {0.5, 0.2, 0.5}, radius = 0.2, velocity = {0, 0.1, 0} } },"
        " sources = { emitter { shape = sphere { center = {0.5, 0.3, 0.5}, radius = 0.25 },"
        "                       velocity = {0, -4, 0} } } }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_closed_tank_stands_still),
        cmocka_unit_test(small_balls_stay_whole),
        cmocka_unit_test(spray_lands_in_the_cells_there_are),
        cmocka_unit_test(flight_conserves_momentum),
        cmocka_unit_test(any_thread_count_gives_the_same_bits),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    check_races_in("any_thread*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
