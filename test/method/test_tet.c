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

static void flight_conserves_momentum(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, 2,
                "scene { method = 'tet', detail = { coarsest = 6, finest = 24 },"
                " gravity = {0, 0, 0}, liquid = {"
                " sphere { center = {0.3, 0.5, 0.5}, radius = 0.15 }, velocity = {1, 0, 0.5} } }");
    un_vec3 before = w.step.momentum;
    world_run(&w, 0.3);
    check_near(w.step.momentum.x, before.x, 1e-3 * before.x);
    check_near(w.step.momentum.z, before.z, 1e-3 * before.x);
    check_near(w.step.momentum.y, 0, 1e-3 * before.x);
    world_end(&w);

    world_begin(&w, method, 1,
                "scene { method = 'tet', detail = { coarsest = 4, finest = 16 }, liquid = {"
                " sphere { center = {0.2, 0.8, 0.5}, radius = 0.02 }, velocity = {1, 1, 0} } }");
    const un_particles *p = method->particles(w.state);
    assert_true(p->count > 0 && w.step.ballistic == p->count);
    double x = p->x[0][0], y = p->x[1][0];
    world_run(&w, 0.25);
    p = method->particles(w.state);
    check_near(p->x[0][0], x + 0.25, 0.02);
    check_near(p->x[1][0], y + 0.25 - 0.5 * 9.81 * 0.0625, 0.02);
    world_end(&w);
}

static void any_thread_count_gives_the_same_bits(void **unused)
{
    (void)unused;
    uint64_t first = 0;
    for (int32_t threads = 1; threads <= 4; threads++) {
        world w;
        world_begin(
            &w, method, threads,
            "scene { method = 'tet', domain = { size = {1, 1, 0.5}, open = {'right'} },"
            " detail = { coarsest = 6, finest = 24 },"
            " liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } },"
            " solids = { sphere { center = {0.6, 0.1, 0.25}, radius = 0.12 },"
            "   box { min = {0.2, 0.3, 0.1}, max = {0.25, 0.6, 0.4}, friction = 0.5,"
            "         pose = function(t) return { by = {0.3 * math.sin(6 * t), 0, 0} } end } },"
            " sources = { emitter { shape = sphere { center = {0.7, 0.8, 0.25}, radius = 0.1 },"
            "               velocity = {-1, -1, 0} },"
            "             drain { shape = box { min = {0, 0, 0}, max = {0.1, 0.05, 1} } } } }");
        world_run(&w, 0.25);
        uint64_t hash = state_hash(&w);
        if (threads == 1) first = hash;
        assert_true(hash == first);
        const un_particles *p = method->particles(w.state);
        for (int32_t q = 0; q < p->count; q++) {
            un_vec3 x = un_particle_position(p, q);
            assert_true(un_length(un_sub(x, un_v3(0.6, 0.1, 0.25))) >= 0.12);
            assert_true(x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= 1 && x.y <= 1 && x.z <= 0.5);
        }
        world_end(&w);
    }
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
        cmocka_unit_test(flight_conserves_momentum),
        cmocka_unit_test(any_thread_count_gives_the_same_bits),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    check_races_in("any_thread*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
