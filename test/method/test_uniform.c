/* Method `uniform`: flight, threads, failing memory. test_uniform_physics.c has the rest. */
#include "method/world.h"

static const un_method *const method = &un_method_uniform;

static void flight_conserves_momentum(void **unused)
{
    (void)unused;
    world_flies(method, "finest = 24", 1e-3);
    world_throws(method, "finest = 16", 1e-9);
}

static void any_thread_count_gives_the_same_bits(void **unused)
{
    (void)unused;
    world_same_bits(method, "finest = 24", 0.25);
}

static void every_failing_allocation_is_survived(void **unused)
{
    (void)unused;
    static const char text[] =
        "scene { detail = { finest = 6 }, liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } },"
        " solids = { sphere { center = {0.5, 0.2, 0.5}, radius = 0.2, velocity = {0, 0.1, 0} } },"
        " sources = { emitter { shape = sphere { center = {0.5, 0.3, 0.5}, radius = 0.25 },"
        "                       velocity = {0, -4, 0} } } }";
    world_allocation_failures(method, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flight_conserves_momentum),
        cmocka_unit_test(any_thread_count_gives_the_same_bits),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
