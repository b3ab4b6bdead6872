/* Promises: what every method of the table is held to, so that one that joins it is tested from its
 * first day. A promise is a function that is given a method and looks through the table's functions
 * only; scenes leave out `method`. */
#ifndef UN_TEST_PROMISE_H
#define UN_TEST_PROMISE_H

#include "method/world.h"
#include "state/bytes.h"

typedef struct promise {
    const char *name;
    void (*hold)(const un_method *method);
    bool (*of)(const un_method *method); /* whose promise it is; NULL: everybody's */
    bool flat; /* held in two dimensions too, by methods that can: its scenes reach over z = 0 */
} promise;

/* ---- what methods can do ---- */

static inline bool method_parts_thin_walls(const un_method *method)
{
    return method->traits.thin_walls;
}

static inline bool method_has_particles(const un_method *method)
{
    return method->traits.particles;
}

static bool promise_flat; /* scenes are played in two dimensions */

static inline bool method_is_viscous(const un_method *method)
{
    return promise_flat ? method->traits.syrup_flat : method->traits.viscous;
}

static inline bool method_has_tension(const un_method *method)
{
    return method->traits.tension;
}

static inline bool method_is_adaptive(const un_method *method)
{
    return method->traits.adaptive;
}

static inline bool method_has_bodies(const un_method *method)
{
    return method->traits.bodies;
}

/* Does it take scenes of two dimensions? */
static inline bool method_is_flat(const un_method *method)
{
    char path[] = "/tmp/undine_test_XXXXXX", name[64];
    const char *overrides[] = {name};
    un_context *ctx = check_context_threads(1);
    un_scene *scene;
    snprintf(name, sizeof name, "method=%s", method->traits.name);
    scene_file(path, "scene { domain = { size = {1, 1} }, detail = { finest = 8 }, liquid = { box {"
                     " min = {0, 0, -1}, max = {1, 0.5, 1} } } }");
    bool taken = un_scene_load(ctx, path, overrides, 1, &scene) == UN_OK;
    if (taken) un_scene_destroy(scene);
    check_context_end(ctx);
    unlink(path);
    return taken;
}

/* ---- a world of any method ---- */

/* The scene with this method, and in two dimensions as the domain's x and y. */
static inline un_status promise_scene(un_context *ctx, const un_method *method, const char *path,
                                      un_scene **scene)
{
    char name[64], size[64];
    const char *overrides[] = {name, size};
    snprintf(name, sizeof name, "method=%s", method->traits.name);
    UN_TRY(un_scene_load(ctx, path, overrides, 1, scene));
    if (!promise_flat) return UN_OK;
    un_vec3 whole = (*scene)->def.domain.size;
    snprintf(size, sizeof size, "domain.size={%.17g,%.17g}", whole.x, whole.y);
    un_scene_destroy(*scene);
    return un_scene_load(ctx, path, overrides, 2, scene);
}

static inline void promise_load(world *w, const un_method *method, int32_t threads,
                                const char *text)
{
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, text);
    *w = (world){.ctx = check_context_threads(threads), .method = method};
    check_ok(w->ctx, promise_scene(w->ctx, method, path, &w->scene));
    unlink(path);
}

static inline void promise_begin(world *w, const un_method *method, int32_t threads,
                                 const char *text)
{
    promise_load(w, method, threads, text);
    check_ok(w->ctx, un_method_create(method, w->ctx, w->scene, NULL, &w->state));
    un_method_first(w->state, &w->step);
}

/* What a checkpoint holds; the bytes are the caller's to free. */
static inline bytes promise_save(const world *w)
{
    un_state saved;
    bytes b = {0};
    un_state_init(&saved, w->ctx);
    check_ok(w->ctx, w->method->save(w->state, &saved));
    check_ok(w->ctx, un_state_encode(&saved, bytes_sink, &b));
    un_state_free(&saved);
    return b;
}

/* Of all that the next step depends on, whatever a method's state is made of. */
static inline uint64_t promise_hash(const world *w)
{
    bytes b = promise_save(w);
    uint64_t hash = b.count;
    for (size_t i = 0; i < b.count; i += 8) {
        uint64_t word = 0;
        memcpy(&word, b.at + i, b.count - i < 8 ? b.count - i : 8);
        hash = un_hash64(hash ^ word);
    }
    free(b.at);
    return hash;
}

/* Every number of a report that a table shows. */
static inline void promise_finite(const world *w, const char *when)
{
    const un_step *s = &w->step;
    const double numbers[] = {s->time,           s->volume,           s->volume_error,
                              s->energy_kinetic, s->energy_potential, s->momentum.x,
                              s->momentum.y,     s->momentum.z,       s->max_speed,
                              s->max_divergence, s->pressure_residual};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i])) fail_msg("%s: number %d is %g", when, (int)i, numbers[i]);
    assert_true(s->volume >= 0);
    assert_true(s->particles >= 0 && s->cells >= 0 && s->nodes >= 0);
}

/* What the report says is in the domain, the solids at rest left out. */
static inline void promise_inside(const world *w)
{
    const un_particles *p = w->method->particles ? w->method->particles(w->state) : NULL;
    un_vec3 size = w->scene->def.domain.size;
    if (!p) return;
    assert_int_equal(p->count, w->step.particles);
    for (int64_t q = 0; q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q);
        assert_true(x.x >= 0 && x.y >= 0 && x.z >= 0);
        assert_true(x.x <= size.x && x.y <= size.y && x.z <= size.z);
    }
}

/* ---- going through the table ---- */

typedef struct promise_pair {
    const promise *promise;
    const un_method *method;
    bool flat;
    char name[96];
} promise_pair;

static inline void promise_hold(void **state)
{
    const promise_pair *pair = *state;
    promise_flat = pair->flat;
    pair->promise->hold(pair->method);
}

#define PROMISE_TESTS_MAX 128

/* Each promise of each method is a test: "water_rests (tet)". */
static inline int promises_run(const promise *promises, size_t count, int (*begin)(void **),
                               int (*end)(void **))
{
    static promise_pair pairs[PROMISE_TESTS_MAX];
    static struct CMUnitTest tests[PROMISE_TESTS_MAX];
    size_t used = 0;
    const un_method *method;
    const char *only = getenv("PROMISES_OF"); /* a method's name, to look at it alone */
    if (only && !un_method_find(only)) {
        printf("PROMISES_OF: there is no method \"%s\"\n", only);
        return 1;
    }
    for (int32_t m = 0; (method = un_method_at(m)); m++) {
        if (only && strcmp(only, method->traits.name) != 0) continue;
        bool can_be_flat = method_is_flat(method);
        for (size_t i = 0; i < count; i++)
            for (int flat = 0; flat <= (promises[i].flat && can_be_flat); flat++) {
                promise_pair *pair = &pairs[used];
                promise_flat = flat;
                if (promises[i].of && !promises[i].of(method)) continue;
                assert_true(used < PROMISE_TESTS_MAX);
                *pair = (promise_pair){&promises[i], method, flat, ""};
                snprintf(pair->name, sizeof pair->name, "%s (%s%s)", promises[i].name,
                         method->traits.name, flat ? ", flat" : "");
                tests[used++] = (struct CMUnitTest){pair->name, promise_hold, begin, end, pair};
            }
    }
    return _cmocka_run_group_tests("promises", tests, used, NULL, NULL);
}

#endif
