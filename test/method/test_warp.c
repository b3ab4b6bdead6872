/* Method `warp`. */
#include "method/warp.h"
#include "method/world.h"

typedef struct run {
    const un_method *method;
    un_context *ctx;
    un_scene *scene;
    void *state;
    un_step step;
    double time, most, fastest, least; /* volume error, speed and certificate so far */
} run;

static void run_begin_with(run *r, const un_method *method, int32_t threads, const char *text)
{
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, text);
    *r = (run){.method = method, .ctx = check_context_threads(threads), .least = 1};
    check_ok(r->ctx, un_scene_load(r->ctx, path, NULL, 0, &r->scene));
    unlink(path);
    check_ok(r->ctx, un_method_create(method, r->ctx, r->scene, NULL, &r->state));
}

static void run_begin(run *r, int32_t threads, const char *text)
{
    run_begin_with(r, &un_method_warp, threads, text);
}

static void run_to(run *r, double end)
{
    while (end - r->time > 1e-9) {
        double dt = fmin(r->method->step_limit(r->state), end - r->time);
        check_ok(r->ctx, r->method->step(r->state, dt, &r->step));
        r->time += dt;
        r->most = fmax(r->most, fabs(r->step.volume_error));
        r->fastest = fmax(r->fastest, r->step.max_speed);
        if (r->method == &un_method_warp)
            r->least = fmin(r->least, ((const un_warping *)r->state)->warp.certificate);
    }
}

static void run_end(run *r)
{
    un_method_destroy(r->method, r->state);
    un_scene_destroy(r->scene);
    check_context_end(r->ctx);
}

#define DAM(size, high)                                                                            \
    "scene { method = 'warp', domain = { size = " size " }, detail = { finest = 20 }, liquid = { " \
    "box { min = {0, 0, -1}, max = {0.35, 0.5, 1} } }, solids = { cylinder { from = {0.7, 0, "     \
    "" high "}, to = {0.7, 0.8, " high "}, radius = 0.1 } } }"

/* A dam break keeps its volume and its grid sound and is no faster than with `uniform`, in two
 * dimensions and in three. */
static void dam_breaks(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        const char *text = flat ? DAM("{1, 0.6}", "0") : DAM("{1, 0.6, 0.4}", "0.2");
        run r, s;
        run_begin(&r, 2, text);
        run_begin_with(&s, &un_method_uniform, 2, text);
        run_to(&r, flat ? 0.6 : 0.35);
        run_to(&s, flat ? 0.6 : 0.35);
        print_message("%dD: %.3g m/s (uniform %.3g), volume within %.2f %%, certificate %.3g\n",
                      flat ? 2 : 3, r.fastest, s.fastest, 100 * r.most, r.least);
        check_below(r.most, 0.02);
        check_below(r.fastest, 1.3 * s.fastest);
        check_below(r.fastest, 2 * sqrt(2 * 9.81 * 0.5));
        assert_true(r.least >= UN_WARP_LEAST - 1e-9);
        run_end(&r);
        run_end(&s);
    }
}

/* Liquid at rest stays calm. */
static void rest_is_calm(void **state)
{
    (void)state;
    run r;
    run_begin(&r, 2,
              "scene { method = 'warp', domain = { size = {1, 0.7} }, detail = { finest = 24 }, "
              "liquid = { box { min = {0, 0}, max = {1, 0.43} } } }");
    run_to(&r, 0.5);
    check_below(r.step.max_speed, 0.02);
    check_below(r.most, 0.005);
    run_end(&r);
}

/* A standing wave of 32 cells in two dimensions: what its amplitude loses in a period, by the most
 * energy that its motion has in the first and in the third; and its period, by the moments at which
 * the height at a wall passes the mean. */
#define STEPS 80
static void keep_height(const char *band, double growth)
{
    const double depth = 0.5, k = UN_PI, period = 2 * UN_PI / sqrt(9.81 * k * tanh(k * depth));
    double energy[3] = {0}, was = 0.52, first = 0, last = 0;
    int passes = 0;
    const un_probe probe = {.kind = UN_PROBE_HEIGHT, .at = {0, 0, 0}};
    char text[400];
    run r;
    snprintf(text, sizeof text,
             "scene { method = 'warp', domain = { size = {1, 1} }, detail = { finest = 32 }, "
             "liquid = { field(function(x, y, z) return y - 0.5 - 0.02 * math.cos(math.pi * x) "
             "end) }, solver = { band = %s } }",
             band);
    run_begin(&r, 1, text);
    for (int i = 0; i < 3 * STEPS; i++) { /* equal ones */
        run_to(&r, (i + 1) * period / STEPS);
        energy[i / STEPS] = fmax(energy[i / STEPS], r.step.energy_kinetic);
        double height = un_method_warp.probe(r.state, &probe);
        if ((height - depth) * (was - depth) < 0) {
            last = r.time - period / STEPS * (height - depth) / (height - was);
            if (passes++ == 0) first = last;
        }
        was = height;
    }
    double loss = 1 - pow(energy[2] / energy[0], 0.25);
    double off = fabs(2 * (last - first) / ((passes - 1) * period) - 1);
    print_message("band %s, lost in a period: %.2f %%, period off by %.2f %%\n", band, 100 * loss,
                  100 * off);
    assert_int_equal(passes, 6);
    check_below(off, 0.01);
    check_below(loss, 0.02);
    check_below(-loss, growth);
    run_end(&r);
}

static void waves_keep_their_height(void **state)
{
    (void)state;
    keep_height("0", 0.005);
    keep_height("4", 0.005);
}

#define POOL(size, more)                                                                           \
    "scene { method = 'warp', domain = { size = " size " }, detail = { finest = 24 }, liquid = { " \
    "box { min = {0, 0, -1}, max = {1, 0.6, 1} }, sphere { center = {0.5, 0.8, 0}, radius = 0.1 "  \
    "} } " more "}"

static int32_t count_deep(const un_warping *w)
{
    int32_t count = 0;
    for (int32_t q = 0; q < w->particles.count; q++)
        count += (w->particles.flags[q] & UN_PARTICLE_DEEP) != 0;
    return count;
}

/* A drop falls into a pool: with a narrow band there are fewer particles, and the same splash. */
static void bands_splash_alike(void **state)
{
    (void)state;
    run r, s;
    run_begin(&r, 1, POOL("{1, 1}", ""));
    run_begin(&s, 1, POOL("{1, 1}", ", solver = { band = 3 } "));
    run_to(&r, 0.1);
    run_to(&s, 0.1);
    const un_warping *narrow = s.state;
    check_below(s.step.particles, 0.6 * r.step.particles);
    assert_true(count_deep(narrow) > 40);
    for (int i = 1; i <= 3; i++) {
        run_to(&r, 0.1 + 0.1 * i);
        run_to(&s, 0.1 + 0.1 * i);
        check_near(s.step.energy_kinetic, r.step.energy_kinetic, 0.1 * r.step.energy_kinetic);
    }
    check_below(s.most, 0.01);
    check_below(s.fastest, 1.3 * r.fastest);
    check_near(s.step.volume_particles, r.step.volume_particles, 1e-4 * r.step.volume_particles);
    run_end(&r);
    run_end(&s);
}

static un_status step_in_band(un_context *ctx, void *path)
{
    un_scene *scene;
    void *state = NULL;
    un_step step;
    UN_TRY(un_scene_load(ctx, path, NULL, 0, &scene));
    un_status status = un_method_create(&un_method_warp, ctx, scene, NULL, &state);
    for (int i = 0; i < 2 && status == UN_OK; i++) status = un_method_warp.step(state, 0.01, &step);
    if (status == UN_OK) assert_true(count_deep(state) > 0);
    un_method_destroy(&un_method_warp, state);
    un_scene_destroy(scene);
    return status;
}

static void bands_survive_failing_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, "scene { method = 'warp', domain = { size = {1, 1} }, detail = { finest = 9 },"
                     "liquid = { box { min = {0, 0}, max = {1, 0.7} } }, solver = { band = 1 } }");
    check_allocation_failures(step_in_band, path, 2000);
    unlink(path);
}

static un_vec3 linear(un_vec3 x)
{
    return un_v3(1 + 2 * x.x - 3 * x.y, 0.5 + x.x - 2 * x.y, 0.3 + x.z - x.x);
}

/* The grid carries a velocity that is linear in space to where it has moved. */
static void bands_carry_linear_fields(void **state)
{
    (void)state;
    static const char *const scenes[] = {
        POOL("{1, 1}", ", solver = { band = 3 } "), POOL("{1, 1, 0.6}", ", solver = { band = 3 } "),
        POOL("{1, 1}", ", solver = { band = 3, interpolation = 'weno6' } "),
        POOL("{1, 1}", ", solver = { band = 3, maccormack = true } ")};
    for (int n = 0; n < 4; n++) {
        run r;
        run_begin(&r, 2, scenes[n]);
        un_warping *w = r.state;
        for (int turn = 0; turn < 4; turn++) {
            for (int64_t c = 0; c < w->warp.grid.cell_count; c++) {
                w->u[c] = linear(w->warp.centre[c]);
                w->warp.target[c] *= turn & 1 ? 1.4 : 0.6;
            }
            check_ok(r.ctx, un_warping_move_grid(w, 0.01));
            check_ok(r.ctx, un_warping_sort(w));
            check_ok(r.ctx, un_warping_carry(w, 0));
            assert_true(count_deep(w) > 40);
            for (int32_t q = 0; q < w->particles.count; q++) {
                if (!(w->particles.flags[q] & UN_PARTICLE_DEEP)) continue;
                un_vec3 want = linear(un_particle_position(&w->particles, q));
                un_vec3 found = un_particle_middle(&w->particles, q);
                check_below(un_length(un_sub(found, want)), 1e-10);
            }
        }
        run_end(&r);
    }
}

/* Going on from saved arrays gives the same bits, for any number of threads. */
static void go_on(const char *text)
{
    run r, s;
    un_state saved;
    run_begin(&r, 1, text);
    run_begin(&s, 2, text);
    run_to(&r, 0.1);
    run_to(&s, 0.1);
    un_state_init(&saved, s.ctx);
    check_ok(s.ctx, un_method_warp.save(s.state, &saved));
    void *again;
    check_ok(s.ctx, un_method_create(&un_method_warp, s.ctx, s.scene, &saved, &again));
    un_state_free(&saved);
    un_method_destroy(&un_method_warp, s.state);
    s.state = again;
    run_to(&r, 0.2);
    run_to(&s, 0.2);
    const un_particles *a = un_method_warp.particles(r.state), *b = un_method_warp.particles(again);
    assert_int_equal(a->count, b->count);
    for (int axis = 0; axis < 2; axis++) {
        assert_memory_equal(a->x[axis], b->x[axis], (size_t)a->count * sizeof(double));
        assert_memory_equal(a->v[axis], b->v[axis], (size_t)a->count * sizeof(double));
    }
    run_end(&r);
    run_end(&s);
}

/* Water beside a wall of a third of a cell. */
#define PARTED                                                                                     \
    "scene { method = 'warp', domain = { size = {1, 0.8} }, detail = { finest = 20 }, liquid = { " \
    "box { min = {0, 0, -1}, max = {0.48, 0.5, 1} } }, solids = { box { min = {0.48, -1, -1}, "    \
    "max = {0.497, 0.6, 1} } } }"

static void goes_on_bit_for_bit(void **state)
{
    (void)state;
    go_on(DAM("{1, 0.6}", "0"));
    go_on(POOL("{1, 1}", ", solver = { band = 3 } "));
    go_on(PARTED);
}

/* Nodes at a thin wall have a copy for its other side, with a pressure of its own: that of the
 * water on one, none on the other. It stays with its side when the walls are found again. */
static void copies_keep_their_side(void **state)
{
    (void)state;
    run r;
    run_begin(&r, 2, PARTED);
    run_to(&r, 0.05);
    un_warping *w = r.state;
    const un_warp_parts *parts = &w->walls->parts;
    int64_t count = parts->place_count, two_sided = 0;
    assert_true(parts->side_count >= 2 * 8 && count > w->warp.grid.node_count);
    for (int64_t i = 0; i + 1 < parts->side_count; i++) {
        const un_warp_side *a = &parts->side[i], *b = a + 1;
        if (a->node != b->node || !(w->warp.node[a->node].y < 0.4)) continue;
        double low = fmin(w->p[a->place], w->p[b->place]);
        double high = fmax(w->p[a->place], w->p[b->place]);
        double depth = 0.5 - w->warp.node[a->node].y;
        assert_true(low == 0);
        check_near(high, 1000 * 9.81 * depth, 0.2 * 1000 * 9.81 * depth);
        two_sided++;
    }
    assert_true(two_sided >= 6);
    double *before = un_alloc(r.ctx, (size_t)count, sizeof *before);
    assert_non_null(before);
    memcpy(before, w->p, (size_t)count * sizeof *before);
    check_ok(r.ctx, un_warping_find_walls(w));
    assert_int_equal(parts->place_count, count);
    assert_memory_equal(w->p, before, (size_t)count * sizeof *before);
    un_free(r.ctx, before);
    run_end(&r);
}

static un_status stay(void *arg, un_bodies *bodies)
{
    (void)arg;
    (void)bodies;
    return UN_OK;
}

/* A grid made again from particles alone gathers as the run's own, and holds as much liquid. */
static void grids_are_made_again(void **state)
{
    (void)state;
    run r, s;
    run_begin(&r, 2, POOL("{1, 1}", ""));
    run_to(&r, 0.15);
    run_begin(&s, 2, POOL("{1, 1}", ""));
    un_warping *w = r.state, *again = s.state;
    un_saved_particles saved = {.particles = &w->particles, .place = stay};
    check_ok(s.ctx, un_method_warp.restore(s.state, &saved));
    double off = 0, most = 0, even = w->warp.grid.h;
    int64_t cells = 0;
    for (int64_t c = 0; c < w->warp.grid.cell_count; c++) {
        if (!(w->warp.jacobian[c] > 0)) continue;
        off += un_length(un_sub(w->warp.centre[c], again->warp.centre[c]));
        most = fmax(most, fabs(w->warp.jacobian[c] - 1));
        cells++;
    }
    assert_true(most > 0.3); /* it has gathered at all */
    check_below(off / (double)cells, 0.3 * even);
    assert_int_equal(again->particles.count, w->particles.count);
    un_trimesh first, second;
    check_ok(r.ctx, un_method_warp.surface(r.state, &first));
    check_ok(s.ctx, un_method_warp.surface(s.state, &second));
    check_near(un_surface_flat_area(&second) / un_surface_flat_area(&first), 1, 0.003);
    un_trimesh_free(r.ctx, &first);
    un_trimesh_free(s.ctx, &second);
    run_end(&r);
    run_end(&s);
}

/* sizing.follow = false: the grid has gathered, and stays while the liquid moves. */
static void grids_may_stay(void **state)
{
    (void)state;
    run r;
    run_begin(&r, 2, POOL("{1, 1}", ", sizing = { follow = false }"));
    const un_warp *warp = &((un_warping *)r.state)->warp;
    size_t bytes = (size_t)warp->grid.node_count * sizeof *warp->node;
    un_vec3 *before = un_alloc(r.ctx, bytes, 1);
    assert_non_null(before);
    memcpy(before, warp->node, bytes);
    assert_true(warp->certificate < 0.9);
    run_to(&r, 0.1);
    assert_memory_equal(warp->node, before, bytes);
    check_below(0.5, r.step.max_speed);
    un_free(r.ctx, before);
    run_end(&r);
}

/* What is foretold of memory and particles, with a band and without particles of their own too. */
static void memory_is_foretold(void **state)
{
    (void)state;
    static const char *const scenes[] = {
        POOL("{1, 1, 1}", ", output = { surface = false } "),
        POOL("{1, 1, 1}", ", output = { surface = false }, solver = { band = 3 } "),
        POOL("{1, 1, 1}", ", output = { surface = false }, solver = { surface = 'level-set' } ")};
    double bytes = INFINITY;
    for (int n = 0; n < 3; n++) {
        run r;
        un_estimate foretold;
        run_begin(&r, 1, scenes[n]);
        int32_t count = un_method_warp.particles(r.state)->count;
        for (int i = 0; i < 3; i++) check_ok(r.ctx, r.method->step(r.state, 0.005, &r.step));
        double found = (double)un_context_peak_bytes(r.ctx);
        check_ok(r.ctx, un_method_warp.estimate(r.ctx, r.scene, &foretold));
        print_message("foretold %lld particles, %.3g MB; found %d, %.3g MB\n",
                      (long long)foretold.particle_count, foretold.bytes / 1e6, (int)count,
                      found / 1e6);
        check_near((double)foretold.particle_count, count, 0.15 * count);
        check_below(found, foretold.bytes); /* outputs and checkpoints come on top */
        check_below(n == 1 ? bytes : foretold.bytes, n == 1 ? foretold.bytes : bytes);
        bytes = foretold.bytes;
        run_end(&r);
    }
}

/* The scenes of [Ibayashi18], small: they begin, and a few steps keep their volume. */
static void scenes_of_the_paper_run(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *cells;
    } scenes[] = {{"leak", "detail.finest=14"},    {"merge", "detail.finest=16"},
                  {"comb", "detail.finest=16"},    {"dam", "detail.finest=16"},
                  {"ripples", "detail.finest=16"}, {"drop", "detail.finest=14"},
                  {"drop_2d", "detail.finest=24"}, {"comb_2d", "detail.finest=40"}};
    for (size_t n = 0; n < sizeof scenes / sizeof *scenes; n++) {
        char path[400];
        const char *sets[] = {scenes[n].cells};
        run r = {.method = &un_method_warp, .ctx = check_context_threads(1), .least = 1};
        snprintf(path, sizeof path, UN_SOURCE_DIR "/scenes/warp_%s.lua", scenes[n].name);
        check_ok(r.ctx, un_scene_load(r.ctx, path, sets, 1, &r.scene));
        check_ok(r.ctx, un_method_create(&un_method_warp, r.ctx, r.scene, NULL, &r.state));
        run_to(&r, 0.1);
        print_message("%s: volume within %.2f %%, %.3g m/s, certificate %.2g\n", scenes[n].name,
                      100 * r.most, r.fastest, r.least);
        check_below(r.most, 0.04);
        check_below(r.fastest, 4);
        assert_true(r.least >= UN_WARP_LEAST - 1e-9);
        run_end(&r);
    }
}

/* A velocity that is linear in space comes back from a grid that has moved meanwhile. */
static void linear_fields_survive(void **state)
{
    (void)state;
    run r;
    run_begin(&r, 2, DAM("{1, 0.6}", "0"));
    un_warping *w = r.state;
    un_particles *p = &w->particles;
    for (int32_t q = 0; q < p->count; q++) {
        p->fall[q] = 0;
        un_particle_set_velocity(
            p, q, un_v3(1 + 2 * p->x[0][q] - 3 * p->x[1][q], 0.5 + p->x[0][q] - 2 * p->x[1][q], 0));
        const float slope[9] = {2, -3, 0, 1, -2, 0, 0, 0, 0};
        for (int i = 0; i < 9; i++) p->affine[i][q] = slope[i];
    }
    for (int turn = 0; turn < 5; turn++) {
        for (int64_t c = 0; c < w->warp.grid.cell_count; c++)
            w->warp.target[c] *= turn & 1 ? 1.4 : 0.6;
        check_ok(r.ctx, un_warping_move_grid(w, 0.01));
        check_ok(r.ctx, un_warping_sort(w));
        check_ok(r.ctx, un_transfer_to_centres(r.ctx, &w->core.arena, w->u, w->known, &w->warp,
                                               w->bins, p));
        un_arena_reset(&w->core.arena);
        un_transfer_from_centres(r.ctx, p, w->u, w->phi, w->walls, &(un_flip){0});
        for (int32_t q = 0; q < p->count; q++) {
            /* away from sides and the surface, where centres without particles are read */
            if (!(un_grid_sample(&w->warp.grid, w->phi, un_v3(p->xi[0][q], p->xi[1][q], 0)) <
                  -1.2 * w->warp.grid.h) ||
                p->x[0][q] < 0.1 || p->x[1][q] < 0.1) {
                un_particle_set_velocity(p, q,
                                         un_v3(1 + 2 * p->x[0][q] - 3 * p->x[1][q],
                                               0.5 + p->x[0][q] - 2 * p->x[1][q], 0));
                const float slope[9] = {2, -3, 0, 1, -2, 0, 0, 0, 0};
                for (int i = 0; i < 9; i++) p->affine[i][q] = slope[i];
                continue;
            }
            check_near(p->v[0][q], 1 + 2 * p->x[0][q] - 3 * p->x[1][q], 1e-6);
            check_near(p->v[1][q], 0.5 + p->x[0][q] - 2 * p->x[1][q], 1e-6);
        }
    }
    run_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dam_breaks),
        cmocka_unit_test(rest_is_calm),
        cmocka_unit_test(waves_keep_their_height),
        cmocka_unit_test(bands_splash_alike),
        cmocka_unit_test(bands_survive_failing_memory),
        cmocka_unit_test(bands_carry_linear_fields),
        cmocka_unit_test(goes_on_bit_for_bit),
        cmocka_unit_test(copies_keep_their_side),
        cmocka_unit_test(grids_are_made_again),
        cmocka_unit_test(grids_may_stay),
        cmocka_unit_test(memory_is_foretold),
        cmocka_unit_test(scenes_of_the_paper_run),
        cmocka_unit_test(linear_fields_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
