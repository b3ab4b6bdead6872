/* A scene stepped by a method, for tests of methods. */
#ifndef UN_TEST_METHOD_WORLD_H
#define UN_TEST_METHOD_WORLD_H

#include "check.h"

#include <stdio.h>
#include <unistd.h>

#include "method/method.h"
#include "surface/surface.h"

typedef struct world {
    un_context *ctx;
    const un_method *method;
    un_scene *scene;
    void *state;
    un_step step; /* the last one's report */
    double time, max_speed, max_volume_error;
} world;

static inline void scene_file(char *path, const char *text)
{
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

/* A context and the scene, without a state yet. */
static inline void world_load(world *w, const un_method *method, int32_t threads, const char *text)
{
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, text);
    *w = (world){.ctx = check_context_threads(threads), .method = method};
    check_ok(w->ctx, un_scene_load(w->ctx, path, NULL, 0, &w->scene));
    unlink(path);
}

static inline void world_begin(world *w, const un_method *method, int32_t threads, const char *text)
{
    world_load(w, method, threads, text);
    check_ok(w->ctx, un_method_create(method, w->ctx, w->scene, NULL, &w->state));
    un_method_first(w->state, &w->step);
}

static inline void world_end(world *w)
{
    un_method_destroy(w->method, w->state);
    un_scene_destroy(w->scene);
    check_context_end(w->ctx);
}

/* One step, no longer than to `end`. */
static inline void world_step(world *w, double end)
{
    double limit = w->method->step_limit(w->state), left = end - w->time;
    check_ok(w->ctx,
             w->method->step(w->state, left / fmax(1, ceil(left / limit - 1e-9)), &w->step));
    w->time = w->step.time;
    w->max_speed = fmax(w->max_speed, w->step.max_speed);
    w->max_volume_error = fmax(w->max_volume_error, fabs(w->step.volume_error));
}

static inline void world_run(world *w, double end)
{
    while (end - w->time > 1e-9) {
        double next = fmin(end, (floor(w->time * 24 + 1e-6) + 1) / 24);
        while (next - w->time > 1e-9) world_step(w, next);
    }
}

/* Top vertices of the output surface away from the walls: lowest, highest. */
static inline void surface_heights(world *w, double *low, double *high)
{
    un_trimesh mesh;
    check_ok(w->ctx, w->method->surface(w->state, &mesh));
    un_surface_topology topology;
    check_ok(w->ctx, un_surface_examine(w->ctx, &mesh, &topology));
    assert_int_equal(topology.open_edges, 0);
    assert_int_equal(topology.nonmanifold_edges, 0);
    assert_int_equal(topology.component_count, 1);
    *low = INFINITY;
    *high = -INFINITY;
    for (int32_t v = 0; v < mesh.vertex_count; v++) {
        un_vec3 x = mesh.position[v];
        if (x.y < 0.1 || x.x < 1e-6 || x.x > 1 - 1e-6 || x.z < 1e-6 || x.z > 1 - 1e-6) continue;
        *low = fmin(*low, x.y);
        *high = fmax(*high, x.y);
    }
    un_trimesh_free(w->ctx, &mesh);
}

/* ---- what more than one method is held to ---- */

/* The first standing wave in a tank 1 m long, 0.5 m deep: w^2 = g k tanh(k h), k = pi / L. */
#define WORLD_WAVE                                                                                 \
    " domain = { size = {1, 1, 0.125} }, liquid = { field(function(x, y, z)"                       \
    " return y - 0.5 - 0.02 * math.cos(math.pi * x) end) } }"
#define WORLD_WAVE_PERIOD 1.18181552

typedef struct wave {
    double period, trough, crest; /* s; m, of the first half period and the one after */
} wave;

static inline wave world_wave(const un_method *method, const char *text)
{
    world w;
    world_begin(&w, method, CHECK_THREADS, text);
    un_probe height = {.kind = UN_PROBE_HEIGHT, .at = {0, 0, 0.0625}};
    double crossings[8], before = method->probe(w.state, &height) - 0.5;
    wave found = {0};
    int count = 0;
    while (w.time < 2.2) {
        double t = w.time;
        world_step(&w, 3);
        double now = method->probe(w.state, &height) - 0.5;
        if ((now > 0) != (before > 0) && count < 8)
            crossings[count++] = t + (w.time - t) * before / (before - now);
        if (count == 1) found.trough = fmin(found.trough, now);
        if (count == 2) found.crest = fmax(found.crest, now);
        before = now;
    }
    assert_true(count >= 3);
    found.period = 2 * (crossings[count - 1] - crossings[0]) / (count - 1);
    world_end(&w);
    return found;
}

/* Water at rest in a round tank with a ball in it. Cells that a solid cuts must not become pockets
 * of air, nor be taken for crowded. */
static inline void world_rest_in_round_tank(const un_method *method, const char *detail,
                                            double fastest, double at_last)
{
    char text[512];
    snprintf(text, sizeof text,
             "scene { method = '%s', detail = { %s }, liquid = { box { min = {0, 0, 0}, max = {1, "
             "0.437, 1} } },"
             " solids = { subtract { box { min = {-1, -1, -1}, max = {2, 2, 2} },"
             "   cylinder { from = {0.5, 0, 0.5}, to = {0.5, 1, 0.5}, radius = 0.45 } },"
             "   sphere { center = {0.6, 0.15, 0.5}, radius = 0.13 } } }",
             method->traits.name, detail);
    world w;
    world_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 1);
    check_below(w.max_speed, fastest);
    check_below(w.step.max_speed, at_last);
    check_below(w.max_volume_error, 0.01);
    world_end(&w);
}

static inline uint64_t state_hash(const world *w)
{
    const un_particles *p = w->method->particles(w->state);
    uint64_t hash = (uint64_t)p->count;
    for (int a = 0; a < 3; a++)
        for (int32_t q = 0; q < p->count; q++) {
            uint64_t bits[2];
            memcpy(&bits[0], &p->x[a][q], 8);
            memcpy(&bits[1], &p->v[a][q], 8);
            hash = un_hash64(hash ^ bits[0]) + un_hash64(hash ^ bits[1]);
        }
    return hash;
}

/* A blob without gravity moves on as it began: its momentum after 0.3 s, off by `share` of what it
 * was at most. */
static inline void world_flies(const un_method *method, const char *detail, double share)
{
    char text[512];
    snprintf(text, sizeof text,
             "scene { method = '%s', detail = { %s }, gravity = {0, 0, 0}, liquid = {"
             " sphere { center = {0.3, 0.5, 0.5}, radius = 0.15 }, velocity = {1, 0, 0.5} } }",
             method->traits.name, detail);
    world w;
    world_begin(&w, method, CHECK_THREADS, text);
    un_vec3 before = w.step.momentum;
    world_run(&w, 0.3);
    check_near(w.step.momentum.x, before.x, share * before.x);
    check_near(w.step.momentum.z, before.z, share * before.x);
    check_near(w.step.momentum.y, 0, share * before.x);
    world_end(&w);
}

/* A drop too small for a cell flies a parabola, to within `off` metres. */
static inline void world_throws(const un_method *method, const char *detail, double off)
{
    char text[512];
    snprintf(text, sizeof text,
             "scene { method = '%s', detail = { %s }, liquid = {"
             " sphere { center = {0.2, 0.8, 0.5}, radius = 0.02 }, velocity = {1, 1, 0} } }",
             method->traits.name, detail);
    world w;
    world_begin(&w, method, 1, text);
    const un_particles *p = method->particles(w.state);
    assert_true(p->count > 0 && w.step.ballistic == p->count);
    double x = p->x[0][0], y = p->x[1][0];
    world_run(&w, 0.25);
    p = method->particles(w.state);
    check_near(p->x[0][0], x + 0.25, off);
    check_near(p->x[1][0], y + 0.25 - 0.5 * 9.81 * 0.0625, off);
    world_end(&w);
}

typedef struct tiny_args {
    const un_method *method;
    const char *path;
} tiny_args;

static inline un_status tiny_run(un_context *ctx, void *arg)
{
    const tiny_args *a = arg;
    const un_method *method = a->method;
    un_scene *scene;
    void *state = NULL;
    un_step step;
    un_status status = un_scene_load(ctx, a->path, NULL, 0, &scene);
    if (status != UN_OK) return status;
    status = un_method_create(method, ctx, scene, NULL, &state);
    for (int i = 0; i < 2 && status == UN_OK; i++) status = method->step(state, 0.01, &step);
    un_trimesh mesh = {0};
    if (status == UN_OK) status = method->surface(state, &mesh);
    un_trimesh_free(ctx, &mesh);
    un_cells cells = {0};
    if (status == UN_OK) status = method->cells(state, &cells);
    un_cells_free(ctx, &cells);
    un_method_destroy(method, state);
    un_scene_destroy(scene);
    return status;
}

static inline void world_allocation_failures(const un_method *method, const char *text)
{
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, text);
    tiny_args a = {method, path};
    check_allocation_failures(tiny_run, &a, 40000);
    unlink(path);
}

/* A stream of water that falls out of an emitter, in air: the share of it below the mouth that
 * flies outwards or has left the stream. The edge of its tip, which the level set rounds off, flies
 * by itself and as fast as the stream: that is no spray. */
static inline double jet_spray(const un_method *method)
{
    char text[512];
    world w;
    double spray = 0, all = 0;
    snprintf(
        text, sizeof text,
        "scene { method = '%s', domain = { size = {1, 2, 1} }, detail = { %sfinest = 48 },\n"
        "sources = { emitter { shape = cylinder { from = {0.5, 1.7, 0.5}, to = {0.5, 1.9, 0.5},"
        "\nradius = 0.12 }, velocity = {0, -1.5, 0} } } }",
        method->traits.name, strcmp(method->traits.name, "tet") == 0 ? "coarsest = 12, " : "");
    world_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 0.25);
    const un_particles *p = method->particles(w.state);
    for (int64_t q = 0; q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q);
        if (x.y > 1.7) continue;
        double r = hypot(x.x - 0.5, x.z - 0.5);
        double out = r > 0 ? (v.x * (x.x - 0.5) + v.z * (x.z - 0.5)) / r : 0;
        if (out > 0.2 || r > 0.12 + 0.5 / 48) spray += (double)p->volume[q];
        all += (double)p->volume[q];
    }
    if (getenv("VERBOSE")) printf("%g of %g m3 is spray\n", spray, all);
    assert_true(all > 0.01);
    world_end(&w);
    return spray / all;
}

/* How fast a column of thick liquid on a floor without friction sinks, of what theory says: 0.4 m
 * high, 1e4 Pa s, its resistance to stretching `trouton` times that (3 in 3D, 4 in 2D). */
static inline double world_column_speed(const world *w, double trouton)
{
    const un_particles *p = w->method->particles(w->state);
    double above = 0, below = 0;
    for (int64_t q = 0; q < p->count; q++) {
        double y = p->x[1][q], theory = -1000 * 9.81 * y * (0.4 - y / 2) / (trouton * 1e4);
        above += p->v[1][q] * theory;
        below += theory * theory;
    }
    return above / below;
}

#endif
