/* Promises of every method: the same bits for any number of threads, and the same bits when it goes
 * on from what it has saved, with everything a scene may have. */
#include "promises/promise.h"

#define SCENE                                                                                      \
    "scene { domain = { size = {1, 0.8, 0.6}, open = {'top'}, slip = { left = math.huge } },\n"    \
    "detail = { coarsest = 4, finest = 16 }, frames = { count = 9, rate = 24 },\n"                 \
    "liquid = { box { min = {0, 0, -1}, max = {0.35, 0.5, 0.6} },\n"                               \
    "  box { min = {0, 0, -1}, max = {1, 0.15, 0.6} } },\n"                                        \
    "solids = { sphere { center = {0.6, 0.15, 0.06}, radius = 0.12, friction = 0.2, slip = 0.05 "  \
    "},\n"                                                                                         \
    "  solid { box { min = {0.76, 0.02, -1}, max = {0.84, 0.4, 0.5} }, pose = function(t)\n"       \
    "    return { rotate = {0, 0, 200 * t}, about = {0.8, 0, 0.3} } end } },\n"                    \
    "sources = { emitter { shape = sphere { center = {0.5, 0.62, 0.06}, radius = 0.1 },\n"         \
    "    velocity = {1, -1, 0} },\n"                                                               \
    "  emitter { shape = box { min = {0.1, 0.05, -1}, max = {0.2, 0.15, 0.3} },\n"                 \
    "    velocity = {0, 0.7, 0}, from = 0.02 },\n"                                                 \
    "  drain { shape = box { min = {0.9, 0, -1}, max = {1, 0.08, 0.6} } } },\n"

static const char busy[] = SCENE "budget = { particles = 5000 } }\n";

/* From water to honey, of several densities, which the liquid carries along. */
#define THICK                                                                                      \
    SCENE "fluid = { viscosity = function(x, y, z) return x < 0.2 and 0 or 200 * x end,\n"         \
          "  density = function(x, y, z) return 800 + 900 * y end"
static const char thick[] = THICK " } }\n",
                  thick_and_tense[] = THICK ", surface_tension = 20 } }\n",
                  thick_alike[] = SCENE "fluid = { viscosity = 20 } }\n";

static const char *thick_for(const un_method *method)
{
    if (!method->traits.mixed) return thick_alike;
    return CHECK_RACES_ONLY && method->traits.tension ? thick_and_tense : thick;
}

/* Held together by surface tension, wetting some walls and not others. */
static const char tense[] =
    "scene { domain = { size = {1, 0.8, 0.6}, contact_angle = 60 },\n"
    "detail = { coarsest = 4, finest = 16 }, frames = { count = 9, rate = 24 },\n"
    "fluid = { surface_tension = 200 },\n"
    "liquid = { box { min = {0, 0, -1}, max = {0.6, 0.4, 0.4} } },\n"
    "solids = { sphere { center = {0.6, 0.3, 0.2}, radius = 0.15, contact_angle = 130 } } }\n";

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

/* ---- any number of threads ---- */

static uint64_t hash_array(uint64_t hash, const void *array, size_t count, size_t width)
{
    const uint8_t *at = array;
    for (size_t i = 0; array && i < count * width; i++) hash = un_hash64(hash ^ at[i]);
    return hash;
}

/* Of what a frame's files are written from, and what probes say. */
static uint64_t outputs_hash(const world *w)
{
    un_trimesh mesh;
    un_cells cells;
    un_probe probes[] = {{.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1},
                         {.kind = UN_PROBE_HEIGHT, .at = {0.2, 0, 0.3}},
                         {.kind = UN_PROBE_PRESSURE, .at = {0.1, 0.05, 0.3}}};
    uint64_t hash = 0;
    check_ok(w->ctx, w->method->surface(w->state, &mesh));
    assert_true(mesh.vertex_count > 20);
    hash = hash_array(hash, mesh.position, (size_t)mesh.vertex_count, sizeof *mesh.position);
    hash = hash_array(hash, mesh.normal, (size_t)mesh.vertex_count, sizeof *mesh.normal);
    hash = hash_array(hash, mesh.velocity, (size_t)mesh.vertex_count, sizeof *mesh.velocity);
    hash = hash_array(hash, mesh.triangle, (size_t)mesh.triangle_count, sizeof *mesh.triangle);
    un_trimesh_free(w->ctx, &mesh);
    check_ok(w->ctx, w->method->cells(w->state, &cells));
    assert_true(cells.count > 0);
    hash = hash_array(hash, cells.level, (size_t)cells.count, sizeof *cells.level);
    hash = hash_array(hash, cells.pressure, (size_t)cells.count, sizeof *cells.pressure);
    hash = hash_array(hash, cells.velocity, (size_t)cells.count, sizeof *cells.velocity);
    un_cells_free(w->ctx, &cells);
    for (int i = 0; i < 3; i++) {
        double value = w->method->probe(w->state, &probes[i]);
        assert_true(isfinite(value));
        hash = hash_array(hash, &value, 1, sizeof value);
    }
    return hash;
}

static void threads_agree(const un_method *method, const char *text, int steps)
{
    uint64_t first = 0, outputs = 0;
    size_t used = 0;
    un_step wanted = {0};
    for (int32_t threads = CHECK_SHORT ? 4 : 1; threads <= 4; threads += 3) {
        world w;
        promise_begin(&w, method, threads, text);
        for (int step = 0; step < (CHECK_SHORT ? 2 : steps); step++) {
            world_step(&w, 1.5);
            promise_inside(&w);
        }
        uint64_t hash = promise_hash(&w), shown = outputs_hash(&w);
        if (!first) {
            first = hash;
            outputs = shown;
            used = un_context_bytes(w.ctx);
            wanted = w.step;
        }
        assert_true(hash == first);
        assert_true(shown == outputs);
        assert_int_equal(un_context_bytes(w.ctx), used);
        same_step(&wanted, &w.step);
        world_end(&w);
    }
}

static void any_number_of_threads(const un_method *method)
{
    threads_agree(method, busy, 3);
}

static void any_number_of_threads_in_thick_liquid(const un_method *method)
{
    threads_agree(method, thick_for(method), 2);
}

static void any_number_of_threads_under_tension(const un_method *method)
{
    threads_agree(method, tense, 2);
}

/* ---- saved and loaded ---- */

/* Saves w and loads it in a world of its own. */
static void reload(const world *w, world *again, int32_t threads, const char *text)
{
    un_state read;
    bytes b = promise_save(w);
    promise_load(again, w->method, threads, text);
    again->time = w->time;
    un_state_init(&read, again->ctx);
    check_ok(again->ctx, bytes_decode(&read, &b));
    check_ok(again->ctx,
             un_method_create(again->method, again->ctx, again->scene, &read, &again->state));
    un_state_free(&read);
    free(b.at);
    assert_true(promise_hash(w) == promise_hash(again));
}

/* From the first state, and from those after 3, 6, ... steps, with another number of threads. */
static void goes_on(const un_method *method, const char *text, int steps)
{
    world w, again;
    int64_t flew = 0;
    promise_begin(&w, method, 2, text);
    if (CHECK_SHORT) steps = 3;
    bool must_fly = text == busy && !CHECK_SHORT && method->particles;
    for (int step = 0; step < steps || (must_fly && flew == 0 && step < 24); step += 3) {
        reload(&w, &again, step % 2 ? 1 : 3, text);
        for (int more = 0; more < 3; more++) {
            world_step(&w, 1.5);
            world_step(&again, 1.5);
            same_step(&w.step, &again.step);
            flew += w.step.ballistic;
        }
        assert_true(promise_hash(&w) == promise_hash(&again));
        world_end(&again);
    }
    if (must_fly) assert_true(flew > 0); /* busy enough */
    world_end(&w);
}

static void goes_on_from_what_is_saved(const un_method *method)
{
    goes_on(method, busy, 6);
}

/* The walls that have let go are known again. */
static void goes_on_while_walls_let_go(const un_method *method)
{
    goes_on(method,
            "scene { domain = { size = {1, 1, 0.5} }, detail = { coarsest = 4, finest = 12 },"
            " liquid = { box { min = {0, 0.6, -1}, max = {1, 1, 1} } } }",
            6);
}

static void goes_on_in_thick_liquid(const un_method *method)
{
    goes_on(method, method->traits.mixed ? thick : thick_alike, 3);
}

static void goes_on_under_tension(const un_method *method)
{
    goes_on(method, tense, 3);
}

/* Where only races are looked for, what a thick liquid takes a method through is not taken again.
 */
static bool apart(const un_method *method)
{
    return !(CHECK_RACES_ONLY && method->traits.viscous);
}

static bool apart_with_tension(const un_method *method)
{
    return apart(method) && method->traits.tension;
}

int main(void)
{
    static const promise promises[] = {
        {"any_number_of_threads", any_number_of_threads, apart, true},
        {"any_number_of_threads_in_thick_liquid", any_number_of_threads_in_thick_liquid,
         method_is_viscous, true},
        {"any_number_of_threads_under_tension", any_number_of_threads_under_tension,
         apart_with_tension, true},
        {"goes_on_under_tension", goes_on_under_tension, method_has_tension, true},
        {"goes_on_from_what_is_saved", goes_on_from_what_is_saved, NULL, true},
        {"goes_on_while_walls_let_go", goes_on_while_walls_let_go, NULL, true},
        {"goes_on_in_thick_liquid", goes_on_in_thick_liquid, method_is_viscous, true},
    };
    check_races_in("any_number*");
    check_memory_in("goes_on*");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
