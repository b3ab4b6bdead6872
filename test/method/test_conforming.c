/* Method `conforming` in action: a dam break keeps its volume, and nothing in it is thrown away. */
#include "method/viscous.h"

#include "method/conforming.h"

/* It meets the far wall after a third of a second, rises and falls back. */
static void dams_keep_their_volume(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_conforming, CHECK_THREADS,
                "scene { method = 'conforming', domain = { size = {1, 1, 0.25} },"
                " detail = { coarsest = 4, finest = 16 },"
                " liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } } }");
    world_run(&w, 0.9);
    check_below(w.max_volume_error, 0.003);
    check_below(w.max_speed, 8); /* 2 sqrt(g H) is 5.6 */
    world_end(&w);
}

/* A sheet of half a cell is thickened, but weighs no more for it: its energy is that of free fall,
 * and the puddle's on the floor. */
static void thin_sheets_weigh_what_they_are(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_conforming, CHECK_THREADS,
                "scene { method = 'conforming', domain = { size = {1, 1, 0.25} },"
                " detail = { coarsest = 4, finest = 16 }, gravity = {0, -10, 0},"
                " liquid = { box { min = {0, 0, 0}, max = {0.3, 0.1, 0.25} },"
                "            box { min = {0.1, 0.785, 0}, max = {0.9, 0.815, 0.25} } } }");
    double wanted = 10000 * (0.0075 * 0.05 + 0.006 * 0.8);
    for (int step = 1; step <= 6; step++) world_step(&w, 0.01 * step);
    double found = w.step.energy_kinetic + w.step.energy_potential;
    if (getenv("VERBOSE")) print_message("a thin sheet's energy: %g\n", found / wanted);
    check_below(fabs(found / wanted - 1), 0.05);
    world_end(&w);
}

/* In still water nothing pushes a floating ball aside, wherever it cuts the mesh. */
static void floating_balls_stay(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_conforming, CHECK_THREADS,
                "scene { method = 'conforming', domain = { size = {1, 1, 1} },"
                " detail = { coarsest = 8, finest = 16 },"
                " liquid = { box { min = {0, 0, 0}, max = {1, 0.5, 1} } }, solids = { sphere {"
                "   center = {0.523, 0.5, 0.509}, radius = 0.2, density = 500 } } }");
    world_run(&w, 0.4);
    un_vec3 u = un_method_bodies(w.state)->body[0].velocity;
    if (getenv("VERBOSE")) print_message("ball afloat: %g %g %g\n", u.x, u.y, u.z);
    check_below(hypot(u.x, u.z), 1e-3);
    world_end(&w);
}

/* Cells are as large as the scene wants them, along the surface too, and angles stay as good. A
 * state that was saved goes on with the same bits. */
static void cells_have_the_size_that_the_scene_wants(void **state)
{
    (void)state;
    world w;
    un_state saved;
    void *again;
    world_begin(&w, &un_method_conforming, CHECK_THREADS,
                "scene { method = 'conforming', domain = { size = {1, 0.6, 0.25} },"
                " detail = { coarsest = 4, finest = 32 },"
                " solids = { sphere { center = {0.5, 0, 0.1}, radius = 0.08 } },"
                " sizing = { depth = false, curvature = false, strain = false, film = false,"
                "            solid_curvature = false,"
                "            custom = function(x, y, z, t) return x < 0.5 and 0.03 or 0.13 end },"
                " liquid = { box { min = {0, 0, 0}, max = {0.4, 0.4, 1} },"
                "            box { min = {0, 0, 0}, max = {1, 0.15, 1} } } }");
    for (int step = 0; step < 8; step++) {
        const un_stuffing *mesh = un_conforming_mesh(w.state);
        un_stuffing_report r;
        un_arena arena;
        int32_t faces[2][UN_LEVELS_MAX + 1] = {0};
        if (step > 0) world_step(&w, 1);
        un_arena_init(&arena, w.ctx);
        check_ok(w.ctx, un_stuffing_validate(mesh, &arena, &r));
        un_arena_free(&arena);
        assert_int_equal(r.unmatched_faces + r.misoriented_tets + r.wrong_faces, 0);
        check_below(10.7, r.min_angle);
        check_below(r.max_angle, 164.8);
        for (int32_t b = 0; b < mesh->boundary_count; b++) {
            int32_t f = mesh->boundary[b];
            faces[mesh->center[f].x > 0.75][mesh->level[mesh->face_tet[f][0]]]++;
        }
        assert_true(faces[0][3] > 500);
        assert_true(faces[1][1] > 20 && faces[1][3] == 0);
    }
    check_below(w.max_volume_error, 0.003);
    un_state_init(&saved, w.ctx);
    check_ok(w.ctx, w.method->save(w.state, &saved));
    check_ok(w.ctx, un_method_create(w.method, w.ctx, w.scene, &saved, &again));
    un_state_free(&saved);
    un_step report;
    check_ok(w.ctx, w.method->step(w.state, 0.005, &w.step));
    check_ok(w.ctx, w.method->step(again, 0.005, &report));
    assert_memory_equal(&report.momentum, &w.step.momentum, sizeof report.momentum);
    assert_int_equal(report.cells, w.step.cells);
    un_method_destroy(w.method, again);
    world_end(&w);
}

/* A column on a floor that it slides along sinks by its weight at rho g y (H - y / 2) / (3 mu). */
static void columns_sink_as_trouton_says(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        char text[600];
        world w;
        snprintf(text, sizeof text,
                 "scene { method = 'conforming', domain = { size = {0.4, 0.5, 0.4}, slip = "
                 "math.huge },\n"
                 "detail = { coarsest = 10, finest = 20 }, frames = { count = 9, rate = 25 },\n"
                 "fluid = { viscosity = 1e4 }, solver = { stress = '%s' },\n"
                 "liquid = { box { min = {0.1, 0, 0.1}, max = {0.3, 0.4, 0.3} } },\n"
                 "probes = { velocity { at = {0.2, 0.3, 0.2}, axis = 'y' },\n"
                 "           pressure { at = {0.2, 0.15, 0.2} } } }",
                 split ? "split" : "full");
        world_begin(&w, &un_method_conforming, CHECK_THREADS, text);
        world_run(&w, 1.0 / 24);
        double theory = -1000 * 9.81 * 0.3 * (0.4 - 0.15) / 3e4;
        double speed = w.method->probe(w.state, &w.scene->def.probes[0]) / theory;
        /* rho g (H - y) / 3 */
        double pressure = w.method->probe(w.state, &w.scene->def.probes[1]) / (9810 * 0.25 / 3);
        if (getenv("VERBOSE")) printf("%g, pressure %g\n", speed, pressure);
        if (split)
            assert_true(speed > 1.3);
        else {
            check_near(speed, 1, 0.06);
            check_near(pressure, 1, 0.06);
        }
        world_end(&w);
    }
}

static void balls_sink_as_stokes_says(void **state)
{
    (void)state;
    check_near(viscous_ball_speed(&un_method_conforming, 16, 3, 0.1), 1, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dams_keep_their_volume),
                                       cmocka_unit_test(thin_sheets_weigh_what_they_are),
                                       cmocka_unit_test(floating_balls_stay),
                                       cmocka_unit_test(cells_have_the_size_that_the_scene_wants),
                                       cmocka_unit_test(columns_sink_as_trouton_says),
                                       cmocka_unit_test(balls_sink_as_stokes_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
