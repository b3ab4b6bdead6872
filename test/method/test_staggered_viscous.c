/* Viscous slumps by method `staggered`, with all couplings of viscosity to faces.
 * test-labels: slow */
#include "method/viscous.h"

static const un_method *const method = &un_method_staggered;

static double slump(const char *coupling, const char *viscosity, double end, int32_t threads,
                    uint64_t *hash)
{
    char text[1024];
    world w;
    snprintf(text, sizeof text,
             "scene { method = 'staggered', domain = { size = {0.4, 0.2, 0.05}, slip = { left = "
             "math.huge, front = math.huge, back = math.huge } }, detail = { coarsest = 8, finest "
             "= 32 }, fluid = { viscosity = %s }, liquid = { box { min = {0, 0, 0}, max = {0.1, "
             "0.1, 0.05} } }, solver = { coupling = '%s' }, probes = { front { axis = 'x' } } }",
             viscosity, coupling);
    world_begin(&w, method, threads, text);
    world_run(&w, end);
    double front = w.method->probe(w.state, &w.scene->def.probes[0]);
    if (getenv("VERBOSE")) printf("%s %s: %g\n", coupling, viscosity, front);
    check_below(w.max_volume_error, 0.03);
    if (hash) *hash = state_hash(&w);
    world_end(&w);
    return front;
}

static void couplings_agree(void **state)
{
    (void)state;
    double flip = slump("flip", "10", 0.2, 2, NULL), pic = slump("pic", "10", 0.2, 2, NULL);
    double implicit = slump("implicit", "10", 0.2, 2, NULL);
    assert_true(flip > 0.14); /* 0.1 at first */
    check_near(pic / flip, 1, 0.05);
    check_near(implicit / flip, 1, 0.03);
}

static void tar_stays(void **state)
{
    (void)state;
    check_near(slump("flip", "1e6", 0.05, 2, NULL), 0.1, 0.01);
    check_near(slump("implicit", "1e4", 0.05, 2, NULL), 0.1, 0.01);
}

/* Markers that the level set leaves outside come back to it; they once stayed where they were for
 * good, as cones on the surface. */
static void settled_liquid_is_even(void **state)
{
    (void)state;
    static const char text[] =
        "scene { method = 'staggered', domain = { size = {0.8, 0.4, 0.3} }, detail = {\n"
        "  coarsest = 4, finest = 16 }, fluid = { viscosity = 2 }, liquid = { box {\n"
        "  min = {0, 0, 0}, max = {0.35, 0.3, 0.3} } } }";
    world w;
    un_trimesh mesh;
    double sum = 0, count = 0, high = 0;
    world_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 2.5);
    check_ok(w.ctx, w.method->surface(w.state, &mesh));
    for (int pass = 0; pass < 2; pass++)
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 x = mesh.position[v];
            if (x.y < 0.05 || x.x < 0.05 || x.x > 0.75 || x.z < 0.05 || x.z > 0.25) continue;
            if (pass == 0) sum += x.y, count++;
            high = fmax(high, pass == 1 ? x.y - sum / count : 0);
        }
    if (getenv("VERBOSE")) printf("%g cells high\n", high / 0.05);
    assert_true(count > 100);
    check_below(high / 0.05, 0.12);
    un_trimesh_free(w.ctx, &mesh);
    world_end(&w);
}

/* A column on a floor that it slides along sinks by its weight at rho g y (H - y / 2) / (3 mu): its
 * speed over that. */
static double sinking(const char *stress)
{
    char text[1024];
    world w;
    snprintf(
        text, sizeof text,
        "scene { method = 'staggered', domain = { size = {0.4, 0.5, 0.4}, slip = math.huge },\n"
        "detail = { coarsest = 10, finest = 20 }, frames = { count = 9, rate = 25 },\n"
        "fluid = { viscosity = 1e4 }, solver = { stress = '%s' },\n"
        "liquid = { box { min = {0.1, 0, 0.1}, max = {0.3, 0.4, 0.3} } } }",
        stress);
    world_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 1.0 / 24);
    double speed = world_column_speed(&w, 3);
    if (getenv("VERBOSE")) printf("%s: %g\n", stress, speed);
    world_end(&w);
    return speed;
}

static void columns_sink_as_trouton_says(void **state)
{
    (void)state;
    check_near(sinking("full"), 1, 0.08);
    assert_true(sinking("split") > 1.3);
}

/* A ball in a narrow cylinder was once pushed aside by what slivers let through. */
static void balls_sink_as_stokes_says(void **state)
{
    (void)state;
    double theory = viscous_ball_theory(2000, 2), aside = 0;
    world w;
    viscous_ball_begin(&w, method, 18, 2000, 2, 6);
    const un_body *ball = viscous_ball(&w);
    while (w.time < 0.2 - 1e-9) {
        world_step(&w, 0.2);
        aside = fmax(aside, fmax(fabs(ball->velocity.x), fabs(ball->velocity.z)) / theory);
    }
    if (getenv("VERBOSE")) printf("ball: %g, aside %g\n", -ball->velocity.y / theory, aside);
    check_near(-ball->velocity.y / theory, 1, 0.1);
    check_below(aside, 0.01);
    world_end(&w);
}

static void same_bits(void **state)
{
    (void)state;
    uint64_t one, three;
    slump("implicit", "5", 0.06, 1, &one);
    slump("implicit", "5", 0.06, 3, &three);
    assert_true(one == three);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    world_allocation_failures(
        method,
        "scene { method = 'staggered', detail = { coarsest = 2, finest = 4, surface = 4 },"
        " fluid = { viscosity = function(x, y, z) return 10 * x end }, domain = { slip = 0.1 },"
        " liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } }, solver = { coupling = "
        "'implicit' } }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(couplings_agree),
                                       cmocka_unit_test(tar_stays),
                                       cmocka_unit_test(settled_liquid_is_even),
                                       cmocka_unit_test(columns_sink_as_trouton_says),
                                       cmocka_unit_test(balls_sink_as_stokes_says),
                                       cmocka_unit_test(same_bits),
                                       cmocka_unit_test(every_failing_allocation_is_survived)};
    check_races_in("same_bits");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
