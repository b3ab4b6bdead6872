/* Promises of every method: any allocation may fail, and what is loaded is checked.
 * test-labels: memory slow */
#include "promises/promise.h"

static const char tiny[] =
    "scene { detail = { coarsest = 3, finest = 6, surface = 6 },\n"
    "liquid = { box { min = {0, 0, -1}, max = {1, 0.4, 1} } },\n"
    "solids = { sphere { center = {0.5, 0.2, 0.1}, radius = 0.2, velocity = {0, 0.1, 0} } },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.3, 0.1}, radius = 0.25 },\n"
    "    velocity = {0, -4, 0} } } }";

/* The viscosity, and that of the emitter. */
static const char tiny_thick[] =
    "scene { detail = { coarsest = 2, finest = 4, surface = 4 }, domain = { slip = 0.1 },\n"
    "fluid = { viscosity = %s },\n"
    "liquid = { box { min = {0, 0, -1}, max = {1, 0.4, 1} } },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.3, 0.1}, radius = 0.25 },\n"
    "    velocity = {0, -4, 0}%s } } }";

/* The free body's density is left out for methods that have no such bodies. */
static const char tiny_drop[] =
    "scene { detail = { coarsest = 3, finest = 6, surface = 6 }, domain = { contact_angle = 60 },\n"
    "fluid = { surface_tension = 50 }, liquid = { box { min = {0, 0, -1}, max = {1, 0.4, 1} } },\n"
    "solids = { box { min = {0.3, 0.25, 0}, max = {0.7, 0.6, 0.4}, contact_angle = 120%s } } }";

typedef struct walk {
    const un_method *method;
    char path[32];
    bytes saved;
} walk;

static void walk_begin(walk *a, const un_method *method, const char *text)
{
    *a = (walk){.method = method, .path = "/tmp/undine_test_XXXXXX"};
    scene_file(a->path, text);
}

/* ---- create, step, surface, cells ---- */

static un_status once(un_context *ctx, void *arg)
{
    const walk *a = arg;
    const un_method *method = a->method;
    un_scene *scene;
    void *state = NULL;
    un_step step;
    un_trimesh mesh = {0};
    un_cells cells = {0};
    UN_TRY(promise_scene(ctx, a->method, a->path, &scene));
    un_status status = un_method_create(method, ctx, scene, NULL, &state);
    for (int i = 0; i < 2 && status == UN_OK; i++) status = method->step(state, 0.01, &step);
    if (status == UN_OK) status = method->surface(state, &mesh);
    un_trimesh_free(ctx, &mesh);
    if (status == UN_OK) status = method->cells(state, &cells);
    un_cells_free(ctx, &cells);
    un_method_destroy(method, state);
    un_scene_destroy(scene);
    return status;
}

static void every_failing_allocation_is_survived(const un_method *method)
{
    walk a;
    walk_begin(&a, method, tiny);
    check_allocation_failures(once, &a, 40000);
    unlink(a.path);
}

static void and_in_thick_liquid(const un_method *method)
{
    walk a;
    char text[512];
    bool mixed = method->traits.mixed;
    snprintf(text, sizeof text, tiny_thick, mixed ? "function(x, y, z) return 10 * x end" : "10",
             mixed ? ", viscosity = 3" : "");
    walk_begin(&a, method, text);
    check_allocation_failures(once, &a, 40000);
    unlink(a.path);
}

static void and_with_surface_tension(const un_method *method)
{
    walk a;
    char text[512];
    snprintf(text, sizeof text, tiny_drop, method_has_bodies(method) ? ", density = 500" : "");
    walk_begin(&a, method, text);
    check_allocation_failures(once, &a, 40000);
    unlink(a.path);
}

/* ---- load and save ---- */

static un_status load_once(un_context *ctx, void *arg)
{
    const walk *a = arg;
    un_scene *scene;
    UN_TRY(promise_scene(ctx, a->method, a->path, &scene));
    un_state read, copy;
    un_state_init(&read, ctx);
    un_state_init(&copy, ctx);
    void *loaded = NULL;
    un_status status = bytes_decode(&read, &a->saved);
    if (status == UN_OK) status = un_method_create(a->method, ctx, scene, &read, &loaded);
    un_state_clear(&read);
    if (status == UN_OK) status = a->method->save(loaded, &read);
    if (status == UN_OK) status = un_state_copy(&copy, &read);
    un_state_free(&read);
    un_state_free(&copy);
    un_method_destroy(a->method, loaded);
    un_scene_destroy(scene);
    return status;
}

static void and_while_loading(const un_method *method)
{
    walk a;
    world w;
    promise_begin(&w, method, 1, tiny);
    world_step(&w, 1.5);
    walk_begin(&a, method, tiny);
    a.saved = promise_save(&w);
    world_end(&w);
    check_allocation_failures(load_once, &a, 4000);
    unlink(a.path);
    free(a.saved.at);
}

/* What is missing, of the wrong length or not finite is refused, with a sentence. */
static void what_does_not_fit_is_refused(const un_method *method)
{
    world w;
    promise_begin(&w, method, 1, tiny);
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
                if (here && how == 2 && s->width == 8 && s->count > 0) memcpy(data, &no_number, 8);
            }
            un_status status = un_method_create(w.method, w.ctx, w.scene, &part, &loaded);
            const char *name = saved.sections[left_out].name;
            if (how < 2 && status != UN_ERROR_FILE)
                fail_msg("%s: %s: status %d", w.method->traits.name, name, (int)status);
            if (how == 2 && strncmp(name, "particles.", 10) == 0 &&
                saved.sections[left_out].width == 8)
                assert_int_equal(status, UN_ERROR_FILE);
            if (status == UN_OK) un_method_destroy(w.method, loaded);
        }
    un_state_free(&part);
    un_state_free(&saved);
    world_end(&w);
}

int main(void)
{
    static const promise promises[] = {
        {"every_failing_allocation_is_survived", every_failing_allocation_is_survived, NULL, true},
        {"and_in_thick_liquid", and_in_thick_liquid, method_is_viscous, true},
        {"and_with_surface_tension", and_with_surface_tension, method_has_tension, true},
        {"and_while_loading", and_while_loading, NULL, true},
        {"what_does_not_fit_is_refused", what_does_not_fit_is_refused, NULL, true},
    };
    check_races_in("none: one thread does it");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
