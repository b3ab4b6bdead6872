/* A step that goes wrong is repeated from before, on all ranks, with shorter ones: every particle
 * is then where it is on one rank. */
#include "method/method.h"
#include "output/scratch.h"
#include "run/loop.h"

#include "ranks/group.h"

static const char scene_text[] =
    "scene { domain = { size = {0.5, 0.5, 1} }, detail = { finest = 24 },\n"
    "frames = { count = 3, rate = 24 }, fluid = { surface_tension = 0.07 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.2, 0.5} } },\n"
    "solids = { solid { sphere { center = {0.25, 0.25, 0.3}, radius = 0.1 }, density = 400 } },\n"
    "sources = { emitter { shape = sphere { center = {0.25, 0.1, 0.2}, radius = 0.06 },\n"
    "velocity = {0, 0, 1} } } }\n";

/* ---- a method whose step can be made to fail ---- */

static const un_method *usual;
static un_method troubled;
static int fail_times;
static double tried[8]; /* steps */
static int try_count;

static un_status troubled_step(void *state, double dt, un_step *report)
{
    un_status status = usual->step(state, dt, report);
    tried[try_count++ % 8] = dt;
    if (status != UN_OK || fail_times == 0) return status;
    fail_times--;
    report->max_speed = 1e9; /* and the state goes on from there */
    return UN_OK;
}

static un_loop begin_loop(un_context *ctx, un_scene *scene)
{
    un_loop l = {.ctx = ctx, .scene = scene, .def = &scene->def, .method = &troubled, .lock = -1};
    troubled = *usual;
    troubled.step = troubled_step;
    un_state_init(&l.seen, ctx);
    un_state_init(&l.before, ctx);
    l.max_speed = 1;
    check_ok(ctx, un_method_create(&troubled, ctx, scene, NULL, &l.state));
    return l;
}

static void end_loop(un_loop *l)
{
    un_method_destroy(l->method, l->state);
    un_state_free(&l->seen);
    un_state_free(&l->before);
}

/* Steps, of which the third fails twice. */
static void go(un_loop *l, un_step *last)
{
    for (int step = 0; step < 4; step++) {
        fail_times = step == 2 ? 2 : 0;
        try_count = 0;
        check_ok(l->ctx, un_loop_step(l, 0.01, last));
        assert_int_equal(try_count, step == 2 ? 3 : 1);
        assert_true(tried[try_count - 1] == (step == 2 ? 0.01 / 16 : 0.01));
        l->step = last->step;
        l->time = last->time;
    }
}

/* Those of one rank, and of all: each rank has a part of the order. */
static void compare_particles(un_context *ctx, const void *serial, void *shared)
{
    const un_particles *p = troubled.particles(serial);
    un_particle_stream stream;
    un_particles q;
    if (un_ranks_count(group) == 1) return;
    check_ok(ctx, troubled.stream(shared, &stream));
    assert_int_equal(p->count, stream.count);
    un_part part = stream.part;
    check_ok(ctx, stream.window(stream.arg, UN_PLACES | UN_VELOCITIES, part.begin, part.end, &q));
    assert_int_equal(un_ranks_total(ctx, part.end - part.begin), p->count);
    size_t bytes = (size_t)(part.end - part.begin) * sizeof(double);
    for (int a = 0; a < 3 && bytes > 0; a++) {
        assert_memory_equal(p->x[a] + part.begin, q.x[a], bytes);
        assert_memory_equal(p->v[a] + part.begin, q.v[a], bytes);
    }
}

static void check_method(const un_method *method)
{
    un_context_def def = un_context_def_default();
    un_step one, many;
    un_scene *scene;
    char by[32];
    const char *set = by;
    usual = method;
    snprintf(by, sizeof by, "method=%s", method->traits.name);
    scratch_write("scene.lua", scene_text, strlen(scene_text));
    def.threads = 1;
    un_context *alone = un_context_create(&def), *ctx = group_context();
    check_ok(alone, un_scene_load(alone, scratch_path("scene.lua"), &set, 1, &scene));
    un_loop serial = begin_loop(alone, scene), shared = begin_loop(ctx, scene);
    go(&serial, &one);
    go(&shared, &many);
    assert_true(one.energy_kinetic == many.energy_kinetic);
    assert_true(one.momentum.z == many.momentum.z && one.volume == many.volume);
    assert_int_equal(one.particles, many.particles);
    compare_particles(ctx, serial.state, shared.state);
    end_loop(&serial);
    end_loop(&shared);
    un_scene_destroy(scene);
    un_context_destroy(ctx);
    un_context_destroy(alone);
}

static void a_bad_step_is_repeated(void **state)
{
    (void)state;
    if (un_ranks_count(group) == 4) skip(); /* 3 and 7 find what 4 do */
    check_method(&un_method_uniform);
    check_method(&un_method_octree);
    check_method(&un_method_tet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_bad_step_is_repeated, scratch_begin, scratch_end),
    };
    group_run(tests);
}
