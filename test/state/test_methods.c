/* A method that is saved, forgotten and loaded goes on with the same bits, whatever the threads. */
#include "method/world.h"
#include "state/bytes.h"

static const char busy[] =
    "scene { method = 'tet', domain = { size = {1, 0.8, 0.6}, open = {'top'} },\n"
    "detail = { coarsest = 5, finest = 16 }, frames = { count = 9, rate = 24 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.35, 0.5, 0.6} },\n"
    "  box { min = {0, 0, 0}, max = {1, 0.15, 0.6} } },\n"
    "solids = { sphere { center = {0.6, 0.15, 0.3}, radius = 0.12, friction = 0.2 },\n"
    "  solid { box { min = {0.76, 0.02, 0.1}, max = {0.84, 0.4, 0.5} }, pose = function(t)\n"
    "    return { rotate = {0, 200 * t, 0}, about = {0.8, 0, 0.3} } end } },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.62, 0.3}, radius = 0.08 },\n"
    "    velocity = {1, -1, 0.2} },\n"
    "  emitter { shape = box { min = {0.1, 0.05, 0.1}, max = {0.2, 0.15, 0.3} },\n"
    "    velocity = {0.5, 0.5, 0}, from = 0.02 },\n"
    "  drain { shape = box { min = {0.9, 0, 0}, max = {1, 0.08, 0.6} } } },\n"
    "budget = { particles = 5000 } }\n";

/* From water to honey, carried by particles, that sticks to one wall and slides along others. */
static const char thick[] =
    "scene { method = 'tet', domain = { size = {1, 0.8, 0.6}, slip = { left = math.huge } },\n"
    "detail = { coarsest = 5, finest = 16 }, frames = { count = 9, rate = 24 },\n"
    "fluid = { viscosity = function(x, y, z) return x < 0.2 and 0 or 200 * x end,\n"
    "  density = function(x, y, z) return 800 + 900 * y end },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.35, 0.5, 0.6} },\n"
    "  box { min = {0, 0, 0}, max = {1, 0.15, 0.6} } },\n"
    "solids = { sphere { center = {0.6, 0.15, 0.3}, radius = 0.12, slip = 0.05 },\n"
    "  box { min = {0.8, 0, 0.2}, max = {0.9, 0.3, 0.4}, velocity = {-0.2, 0, 0} } },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.62, 0.3}, radius = 0.08 },\n"
    "    velocity = {1, -1, 0.2}, viscosity = 50, density = 1200 } } }\n";

static const char tiny[] =
    "scene { method = 'tet', domain = { size = {1, 1, 1} },\n"
    "detail = { coarsest = 3, finest = 6 }, frames = { count = 9, rate = 24 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.4, 1} } },\n"
    "sources = { emitter { shape = box { min = {0, 0, 0}, max = {0.5, 0.5, 0.5} },\n"
    "  velocity = {1, 0, 0} } } }";

#define METHODS 3
static const un_method *const methods[METHODS] = {&un_method_uniform, &un_method_tet,
                                                  &un_method_staggered};

static void same_step(const un_step *a, const un_step *b)
{
    un_step c = *b;
    c.bytes = a->bytes;
    c.seconds = a->seconds;
    memcpy(c.stage_seconds, a->stage_seconds, sizeof c.stage_seconds);
    assert_int_equal(a->particles, c.particles);
    assert_int_equal(a->pressure_iterations, c.pressure_iterations);
    assert_memory_equal(a, &c, sizeof c);
}

/* What a checkpoint of w holds; the bytes are the caller's to free. */
static bytes save(const world *w)
{
    un_state saved;
    bytes b = {0};
    un_state_init(&saved, w->ctx);
    check_ok(w->ctx, w->method->save(w->state, &saved));
    check_ok(w->ctx, un_state_encode(&saved, bytes_sink, &b));
    un_state_free(&saved);
    return b;
}

/* Saves w and loads it in a world of its own. */
static void reload(const world *w, world *again, int32_t threads, const char *text)
{
    un_state read;
    bytes b = save(w);
    world_load(again, w->method, threads, text);
    again->time = w->time;
    un_state_init(&read, again->ctx);
    check_ok(again->ctx, bytes_decode(&read, &b));
    check_ok(again->ctx, again->method->load(again->ctx, again->scene, &read, &again->state));
    un_state_free(&read);
    free(b.at);
}

static void going_on_gives_the_same_bits(const un_method *method, int steps, const char *text)
{
    world w, again;
    world_begin(&w, method, 2, text);
    for (int step = 0; step < steps; step++) {
        world_step(&w, 1.5);
        if (step % 4 == 3) {
            reload(&w, &again, step % 8 == 3 ? 1 : 3, text);
            assert_true(state_hash(&w) == state_hash(&again));
            for (int more = 0; more < 3; more++) {
                world_step(&w, 1.5);
                world_step(&again, 1.5);
                same_step(&w.step, &again.step);
                assert_true(state_hash(&w) == state_hash(&again));
            }
            world_end(&again);
        }
    }
    if (text == busy) assert_true(w.step.ballistic > 0); /* busy enough */
    world_end(&w);
}

static void uniform_goes_on(void **state)
{
    (void)state;
    going_on_gives_the_same_bits(&un_method_uniform, 12, busy);
}

static void tet_goes_on(void **state)
{
    (void)state;
    going_on_gives_the_same_bits(&un_method_tet, 12, busy);
}

static void thick_goes_on(void **state)
{
    (void)state;
    going_on_gives_the_same_bits(&un_method_tet, 8, thick);
}

static void staggered_goes_on(void **state)
{
    (void)state;
    going_on_gives_the_same_bits(&un_method_staggered, 12, busy);
    going_on_gives_the_same_bits(&un_method_staggered, 4, thick);
}

/* The first state, before any step. */
static void beginning_gives_the_same_bits(void **state)
{
    (void)state;
    for (int m = 0; m < METHODS; m++) {
        world w, again;
        world_begin(&w, methods[m], 2, busy);
        reload(&w, &again, 2, busy);
        for (int step = 0; step < 2; step++) {
            world_step(&w, 1.5);
            world_step(&again, 1.5);
            same_step(&w.step, &again.step);
        }
        assert_true(state_hash(&w) == state_hash(&again));
        world_end(&again);
        world_end(&w);
    }
}

/* What is missing, of the wrong length or not finite is refused, with a sentence. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    for (int m = 0; m < METHODS; m++) {
        world w;
        world_begin(&w, methods[m], 1, tiny);
        world_step(&w, 1.5);
        un_state saved, part;
        void *loaded = NULL;
        un_state_init(&saved, w.ctx);
        un_state_init(&part, w.ctx);
        check_ok(w.ctx, w.method->save(w.state, &saved));
        for (int32_t left_out = 0; left_out < saved.count; left_out++)
            for (int how = 0; how < 3; how++) {
                un_state_clear(&part);
                for (int32_t i = 0; i < saved.count; i++) {
                    const un_section *s = &saved.sections[i];
                    double no_number = NAN;
                    bool here = i == left_out;
                    void *data;
                    int64_t count = here && how == 1 ? s->count + 1 : s->count;
                    if (here && how == 0) continue;
                    check_ok(w.ctx, un_state_add_own(&part, s->name, count, s->width, &data));
                    memset(data, 0, (size_t)(count * s->width));
                    memcpy(data, un_section_data(s), (size_t)(s->count * s->width));
                    if (here && how == 2 && s->width == 8 && s->count > 0)
                        memcpy(data, &no_number, 8);
                }
                un_status status = w.method->load(w.ctx, w.scene, &part, &loaded);
                const char *name = saved.sections[left_out].name;
                if (how < 2 && status != UN_ERROR_FILE)
                    fail_msg("%s: %s: status %d", w.method->traits.name, name, (int)status);
                if (how == 2 && strncmp(name, "particles.", 10) == 0 &&
                    saved.sections[left_out].width == 8)
                    assert_int_equal(status, UN_ERROR_FILE);
                if (status == UN_OK) w.method->destroy(loaded);
            }
        un_state_free(&part);
        un_state_free(&saved);
        world_end(&w);
    }
}

typedef struct load_args {
    const char *path;
    const un_method *method;
    const bytes *bytes;
} load_args;

static un_status load_once(un_context *ctx, void *arg)
{
    const load_args *a = arg;
    un_scene *scene;
    UN_TRY(un_scene_load(ctx, a->path, NULL, 0, &scene));
    un_state read, copy;
    un_state_init(&read, ctx);
    un_state_init(&copy, ctx);
    void *loaded = NULL;
    un_status status = bytes_decode(&read, a->bytes);
    if (status == UN_OK) status = a->method->load(ctx, scene, &read, &loaded);
    un_state_clear(&read);
    if (status == UN_OK) status = a->method->save(loaded, &read);
    if (status == UN_OK) status = un_state_copy(&copy, &read);
    un_state_free(&read);
    un_state_free(&copy);
    if (loaded) a->method->destroy(loaded);
    un_scene_destroy(scene);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int m = 0; m < METHODS; m++) {
        world w;
        world_begin(&w, methods[m], 1, tiny);
        world_step(&w, 1.5);
        bytes b = save(&w);
        world_end(&w);
        char path[] = "/tmp/undine_test_XXXXXX";
        scene_file(path, tiny);
        load_args a = {path, methods[m], &b};
        check_allocation_failures(load_once, &a, 4000);
        unlink(path);
        free(b.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_goes_on),
        cmocka_unit_test(tet_goes_on),
        cmocka_unit_test(thick_goes_on),
        cmocka_unit_test(staggered_goes_on),
        cmocka_unit_test(beginning_gives_the_same_bits),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    check_races_in("thick_goes_on");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
