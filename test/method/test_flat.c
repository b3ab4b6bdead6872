/* Method `uniform` in 2D: rest, waves, a dam break, sources and moving solids, the same bits for
 * any threads and after going on from a checkpoint. */
#include "method/world.h"
#include "state/bytes.h"

static const un_method *const method = &un_method_uniform;

static const char busy[] =
    "scene { domain = { size = {1, 0.8}, open = {'top'} }, detail = { finest = 40 },\n"
    "liquid = { box { min = {0, 0}, max = {0.35, 0.5} }, box { min = {0, 0}, max = {1, 0.15} },\n"
    "  velocity = {0.1, 0} },\n"
    "solids = { sphere { center = {0.6, 0.15}, radius = 0.12, friction = 0.2 },\n"
    "  solid { box { min = {0.76, 0.12}, max = {0.84, 0.4} }, pose = function(t)\n"
    "    return { by = {-0.1 * t, 0}, rotate = {0, 0, 200 * t}, about = {0.8, 0.3} } end } },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.62}, radius = 0.08 },\n"
    "    velocity = {1, -1} },\n"
    "  emitter { shape = box { min = {0.1, 0.05}, max = {0.2, 0.15} }, velocity = {0.5, 0.5},\n"
    "    from = 0.02 },\n"
    "  drain { shape = box { min = {0.9, 0}, max = {1, 0.08} } } } }\n";

static void in_the_plane(const world *w)
{
    const un_particles *p = method->particles(w->state);
    for (int32_t q = 0; q < p->count; q++)
        if (p->x[2][q] != 0 || p->v[2][q] != 0) fail_msg("particle %d has left the plane", q);
}

/* The output surface: closed, and as large as the liquid. */
static void surface_fits(world *w, double share)
{
    un_trimesh mesh;
    un_outline outline;
    check_ok(w->ctx, method->surface(w->state, &mesh));
    assert_true(un_surface_is_flat(&mesh));
    check_near(un_surface_flat_area(&mesh), w->step.volume, share * w->step.volume);
    check_ok(w->ctx, un_outline_create(w->ctx, &mesh, &outline));
    assert_true(outline.loop_count >= 1);
    un_outline_free(w->ctx, &outline);
    un_trimesh_free(w->ctx, &mesh);
}

static void water_at_rest_stays_at_rest(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "scene { domain = { size = {1, 1} }, detail = { finest = 32 },"
                " liquid = { box { min = {0, 0}, max = {1, 0.437} } } }");
    assert_int_equal(w.step.particles, 64 * 28);
    check_near(w.step.volume, 0.437, 0.0005);
    surface_fits(&w, 0.002);
    world_run(&w, 2);
    check_below(w.max_speed, 0.02);
    check_below(w.step.max_speed, 0.003);
    check_below(w.max_volume_error, 0.002);
    surface_fits(&w, 0.002);
    un_probe bottom = {.kind = UN_PROBE_PRESSURE, .at = {0.5, 0, 0}};
    check_near(method->probe(w.state, &bottom), 1000 * 9.81 * 0.437, 0.005 * 1000 * 9.81 * 0.437);
    un_probe height = {.kind = UN_PROBE_HEIGHT, .at = {0.3, 0, 0}};
    check_near(method->probe(w.state, &height), 0.437, 0.05 / 32);
    world_end(&w);
}

/* Gravity aslant, over a floor that cuts cells aslant. */
static void tilted_water_stays_at_rest(void **unused)
{
    (void)unused;
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "scene { domain = { size = {1, 1} }, detail = { finest = 32 }, gravity = {1.7, "
                "-9.6}, liquid = { plane { point = {0.5, 0.45}, normal = {-1.7, 9.6} } },"
                " solids = { plane { point = {0.5, 0.1}, normal = {0.3, 1} } } }");
    world_run(&w, 1);
    check_below(w.max_speed, 0.02);
    check_below(w.max_volume_error, 0.002);
    world_end(&w);
}

static void standing_wave_has_its_period(void **unused)
{
    (void)unused;
    wave found = world_wave(method, "scene { domain = { size = {1, 1} }, detail = { finest = 48 },"
                                    " liquid = { field(function(x, y) return y - 0.5 - 0.02 *"
                                    " math.cos(math.pi * x) end) } }");
    check_near(found.period, WORLD_WAVE_PERIOD, 0.01 * WORLD_WAVE_PERIOD);
    assert_true(found.crest > 0.85 * -found.trough && found.crest < 1.15 * -found.trough);
}

/* Martin & Moyce 1952, table 2, as in test_uniform_physics.c. */
static void dam_break_follows_the_experiment(void **unused)
{
    (void)unused;
    static const double table[][2] = {{0.84, 1.22}, {1.43, 1.67}, {1.98, 2.33},
                                      {2.51, 3.00}, {2.98, 3.67}, {3.33, 4.11}};
    double a = 0.05715, scale = sqrt(2 * 9.81 / a), error = 0;
    world w;
    world_begin(&w, method, CHECK_THREADS,
                "local a = 0.05715 scene { domain = { size = {5 * a, 3 * a} }, detail = { finest = "
                "60 }, liquid = { box { min = {0, 0}, max = {a, 2 * a} } } }");
    un_probe front = {.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1};
    check_near(method->probe(w.state, &front), a, 0.2 * a / 12);
    for (size_t row = 0; row < 6; row++) {
        while (table[row][0] / scale - w.time > 1e-9) world_step(&w, table[row][0] / scale);
        error += fabs(method->probe(w.state, &front) / a - table[row][1]) / table[row][1];
    }
    check_below(error / 6, 0.10);
    check_below(w.max_volume_error, 0.01);
    surface_fits(&w, 0.0075); /* of the film ahead of the front little is seen */
    in_the_plane(&w);
    world_end(&w);
}

static void the_same_bits_for_any_threads(void **unused)
{
    (void)unused;
    uint64_t hash = 0;
    for (int32_t threads = 1; threads <= 4; threads *= 2) {
        world w;
        world_begin(&w, method, threads, busy);
        world_run(&w, 0.4);
        in_the_plane(&w);
        assert_true(w.step.ballistic > 0 && w.step.volume > 0);
        check_below(fabs(w.step.volume_error), 0.1);
        if (threads > 1) assert_true(state_hash(&w) == hash);
        hash = state_hash(&w);
        world_end(&w);
    }
}

static void going_on_gives_the_same_bits(void **unused)
{
    (void)unused;
    world w, again;
    un_state saved, read;
    bytes b = {0};
    world_begin(&w, method, CHECK_THREADS, busy);
    world_run(&w, 0.2);
    un_state_init(&saved, w.ctx);
    check_ok(w.ctx, method->save(w.state, &saved));
    check_ok(w.ctx, un_state_encode(&saved, bytes_sink, &b));
    un_state_free(&saved);
    world_load(&again, method, 1, busy);
    again.time = w.time;
    un_state_init(&read, again.ctx);
    check_ok(again.ctx, bytes_decode(&read, &b));
    check_ok(again.ctx, un_method_create(method, again.ctx, again.scene, &read, &again.state));
    un_state_free(&read);
    free(b.at);
    world_run(&w, 0.4);
    world_run(&again, 0.4);
    assert_true(state_hash(&w) == state_hash(&again));
    world_end(&w);
    world_end(&again);
}

/* Cells are squares, with the velocity of their faces. */
static void cells_are_squares(void **unused)
{
    (void)unused;
    world w;
    un_cells cells;
    world_begin(&w, method, CHECK_THREADS, busy);
    world_run(&w, 0.1);
    check_ok(w.ctx, method->cells(w.state, &cells));
    const char *reason = NULL;
    assert_true(cells.count > 100);
    if (!un_cells_validate(&cells, &reason)) fail_msg("%s", reason);
    for (int64_t c = 0; c < cells.count; c++)
        assert_true(cells.type[c] == UN_CELL_QUAD && cells.velocity[c].z == 0);
    for (int32_t n = 0; n < cells.point_count; n++) assert_true(cells.point[n].z == 0);
    un_cells_free(w.ctx, &cells);
    world_end(&w);
}

/* The estimate is what the run takes, to a fifth, and its particles are those seeded. */
static void estimate_holds(void **unused)
{
    (void)unused;
    world w;
    un_estimate estimate;
    world_begin(&w, method, 1,
                "scene { domain = { size = {2, 1} }, detail = { finest = 160 }, output = { surface "
                "= false },"
                " liquid = { box { min = {0, 0}, max = {1, 0.5} } } }");
    check_ok(w.ctx, method->estimate(w.ctx, w.scene, &estimate));
    assert_int_equal(estimate.cells[0], 160);
    assert_int_equal(estimate.cells[2], 0);
    check_near((double)estimate.particle_count, (double)w.step.particles,
               0.02 * (double)w.step.particles);
    world_run(&w, 0.1);
    assert_true(estimate.bytes > 0.7 * (double)un_context_bytes(w.ctx));
    assert_true(estimate.bytes < 3 * (double)un_context_bytes(w.ctx));
    world_end(&w);
}

static un_status short_life(un_context *ctx, void *arg)
{
    void *state = NULL;
    un_scene *scene = NULL;
    un_trimesh mesh = {0};
    un_step step;
    un_status status = un_scene_load(ctx, arg, NULL, 0, &scene);
    if (status == UN_OK) status = un_method_create(method, ctx, scene, NULL, &state);
    if (status == UN_OK) status = method->step(state, 0.01, &step);
    if (status == UN_OK) status = method->surface(state, &mesh);
    un_trimesh_free(ctx, &mesh);
    un_method_destroy(method, state);
    if (scene) un_scene_destroy(scene);
    return status;
}

static void no_memory(void **unused)
{
    (void)unused;
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, "scene { domain = { size = {1, 1} }, detail = { finest = 8 },"
                     " liquid = { box { min = {0, 0}, max = {0.5, 0.5} } } }");
    check_allocation_failures(short_life, path, 3000);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(water_at_rest_stays_at_rest),
        cmocka_unit_test(tilted_water_stays_at_rest),
        cmocka_unit_test(standing_wave_has_its_period),
        cmocka_unit_test(dam_break_follows_the_experiment),
        cmocka_unit_test(the_same_bits_for_any_threads),
        cmocka_unit_test(going_on_gives_the_same_bits),
        cmocka_unit_test(cells_are_squares),
        cmocka_unit_test(estimate_holds),
        cmocka_unit_test(no_memory),
    };
    check_races_in("the_same_bits*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
