/* Method `conforming` in action: a dam break keeps its volume, and nothing in it is thrown away. */
#include "method/world.h"

/* It meets the far wall after a third of a second, rises and falls back. */
static void dams_keep_their_volume(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_conforming, 2,
                "scene { method = 'conforming', domain = { size = {1, 1, 0.25} },"
                " detail = { coarsest = 4, finest = 16 },"
                " liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } } }");
    world_run(&w, 0.9);
    check_below(w.max_volume_error, 0.003);
    check_below(w.max_speed, 8); /* 2 sqrt(g H) is 5.6 */
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dams_keep_their_volume)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
