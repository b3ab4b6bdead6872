/* Method `uniform`: flight. test_uniform_physics.c has the rest. */
#include "method/world.h"

static const un_method *const method = &un_method_uniform;

static void flight_conserves_momentum(void **unused)
{
    (void)unused;
    world_flies(method, "finest = 24", 1e-3);
    world_throws(method, "finest = 16", 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flight_conserves_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
