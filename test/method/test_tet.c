/* Method `tet`: its first state, flight. What takes longer is in test_tet_physics.c. */
#include "method/world.h"

static const un_method *const method = &un_method_tet;

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
        world_begin(&w, method, CHECK_THREADS, text);
        assert_true(w.step.ballistic < 10); /* of thousands */
        check_below(fabs(w.step.volume_error), off[i]);
        world_end(&w);
    }
}

/* A drop and a plate, both thinner than the cells that the pool below is first sampled with. */
static void what_is_small_starts_with_its_volume(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "scene { method = 'tet', domain = { size = {4, 1.5, 4} },"
                " detail = { coarsest = 8, finest = 256 },"
                " liquid = { plane { point = {0, 0.75, 0}, normal = {0, 1, 0} },"
                "            sphere { center = {1.01, 1.02, 1.03}, radius = 0.035 },"
                "            box { min = {2.51, 1, 2.51}, max = {2.81, 1.03, 2.81} } } }");
    const un_particles *p = method->particles(w.state);
    double drop = 0, plate = 0;
    for (int64_t i = 0; i < p->count; i++) {
        if (p->x[1][i] < 0.9) continue;
        *(p->x[0][i] < 2 ? &drop : &plate) += p->volume[i];
    }
    double ball = 4.0 / 3 * UN_PI * pow(0.035, 3), board = 0.3 * 0.3 * 0.03;
    check_below(fabs(drop / ball - 1), 0.05);
    check_below(fabs(plate / board - 1), 0.05);
    world_end(&w);
}

static void flight_conserves_momentum(void **unused)
{
    (void)unused;
    world_flies(method, "coarsest = 6, finest = 24", 1e-3);
    world_throws(method, "coarsest = 4, finest = 16", 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_balls_stay_whole),
        cmocka_unit_test(what_is_small_starts_with_its_volume),
        cmocka_unit_test(flight_conserves_momentum),
    };
    check_races_in("none: promises/test_bits.c looks for them");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
