/* Method `warp` where its grid carries what moves: interpolation, MacCormack, and the surface
 * itself (solver.surface = "level-set"). */
#include "method/warp.h"
#include "method/world.h"

#define TRACKED(size, finest, more)                                                                \
    "scene { method = 'warp', domain = { size = " size " }, detail = { finest = " #finest " }, "   \
    "solver = { surface = 'level-set' }, " more " }"
#define POOL "liquid = { box { min = {0, 0, -1}, max = {1, 0.6, 1} } }"

static const un_interpolation kinds[] = {UN_INTERPOLATE_LINEAR, UN_INTERPOLATE_CUBIC,
                                         UN_INTERPOLATE_WENO6};
static const char *const names[] = {"linear", "cubic", "weno6"};

/* ---- fields ---- */

/* Fields on a grid that swings around its place. */
typedef struct carried {
    world w;
    un_warping *warping;
    double *from, *to;
    un_vec3 *u;
    int turn;
} carried;

static void carried_begin(carried *a, const char *text)
{
    world_begin(&a->w, &un_method_warp, 2, text);
    a->warping = a->w.state;
    size_t cells = (size_t)a->warping->warp.grid.cell_count;
    a->from = un_alloc_zero(a->w.ctx, 4 * cells, sizeof *a->from);
    a->to = un_alloc_zero(a->w.ctx, 4 * cells, sizeof *a->to);
    a->u = un_alloc_zero(a->w.ctx, cells, sizeof *a->u);
    assert_true(a->from && a->to && a->u);
    a->turn = 0;
}

static void carried_end(carried *a)
{
    un_free(a->w.ctx, a->from);
    un_free(a->w.ctx, a->to);
    un_free(a->w.ctx, a->u);
    world_end(&a->w);
}

/* Moves the grid and carries `count` fields there. */
static void carried_move(carried *a, int count, un_carry *in)
{
    un_warping *s = a->warping;
    for (int64_t c = 0; c < s->warp.grid.cell_count; c++)
        s->warp.target[c] *= a->turn & 1 ? 1 / 0.7 : 0.7;
    a->turn++;
    check_ok(a->w.ctx, un_warping_move_grid(s, 0.01));
    in->warp = &s->warp;
    in->was = s->was;
    in->u = a->u;
    check_ok(a->w.ctx, un_carry_fields(a->w.ctx, &s->core.arena, a->to, a->from, count, in));
    un_arena_reset(&s->core.arena);
}

static double line_at(un_vec3 x)
{
    return 1 + 2 * x.x - 3 * x.y + 0.7 * x.z;
}

/* A field that is linear in space stays so, whatever the interpolation, on a grid that moves. */
static void linear_fields_are_carried(void **state)
{
    (void)state;
    for (int n = 0; n < 12; n++) {
        carried a;
        double most = 0;
        carried_begin(&a, n & 1 ? TRACKED("{1, 1}", 24, POOL) : TRACKED("{1, 1, 0.6}", 10, POOL));
        const un_warp *warp = &a.warping->warp;
        un_carry in = {.interpolation = kinds[n / 4], .maccormack = n & 2};
        for (int turn = 0; turn < 2; turn++) {
            for (int64_t c = 0; c < warp->grid.cell_count; c++)
                a.from[c] = line_at(warp->centre[c]);
            carried_move(&a, 1, &in);
            for (int64_t c = 0; c < warp->grid.cell_count; c++)
                if (warp->jacobian[c] > 0)
                    most = fmax(most, fabs(a.to[c] - line_at(warp->centre[c])));
        }
        check_below(most, 1e-10);
        carried_end(&a);
    }
}

static double bump(un_vec3 x)
{
    double a = x.x - 0.5, b = x.y - 0.72;
    return exp(-60 * (a * a + b * b));
}

/* The mean error of a bump that turns once around the middle, over its mean. */
static double turned(un_interpolation kind, bool maccormack)
{
    carried a;
    enum { STEPS = 48 };
    double wrong = 0, sum = 0;
    carried_begin(&a, TRACKED("{1, 1}", 32, POOL));
    const un_warp *warp = &a.warping->warp;
    un_carry in = {.interpolation = kind, .maccormack = maccormack, .dt = 2 * UN_PI / STEPS};
    for (int64_t c = 0; c < warp->grid.cell_count; c++) a.from[c] = bump(warp->centre[c]);
    for (int step = 0; step < STEPS; step++) {
        for (int64_t c = 0; c < warp->grid.cell_count; c++)
            a.u[c] = un_v3(0.5 - warp->centre[c].y, warp->centre[c].x - 0.5, 0);
        carried_move(&a, 1, &in);
        for (int64_t c = 0; c < warp->grid.cell_count; c++)
            if (warp->jacobian[c] > 0) a.from[c] = a.to[c];
    }
    for (int64_t c = 0; c < warp->grid.cell_count; c++) {
        wrong += fabs(a.from[c] - bump(warp->centre[c])) * warp->jacobian[c];
        sum += bump(warp->centre[c]) * warp->jacobian[c];
    }
    carried_end(&a);
    return wrong / sum;
}

static double ripple(un_vec3 x)
{
    return sin(2 * UN_PI * x.x) * cos(2 * UN_PI * x.y);
}

/* The largest error of a field that has moved by a third of a cell, away from the sides. */
static double moved(un_interpolation kind, const char *text)
{
    carried a;
    double most = 0;
    carried_begin(&a, text);
    const un_warp *warp = &a.warping->warp;
    const un_grid *g = &warp->grid;
    un_vec3 shift = un_v3(g->h / 3, -g->h / 3, 0);
    un_carry in = {.interpolation = kind, .dt = 1};
    for (int64_t c = 0; c < g->cell_count; c++) {
        a.from[c] = ripple(warp->centre[c]);
        a.u[c] = shift;
    }
    carried_move(&a, 1, &in);
    for (int32_t j = 6; j < g->n[1] - 6; j++)
        for (int32_t i = 6; i < g->n[0] - 6; i++) {
            int64_t c = un_grid_cell(g, i, j, 0);
            most = fmax(most, fabs(a.to[c] - ripple(un_sub(warp->centre[c], shift))));
        }
    carried_end(&a);
    return most;
}

/* On a regular grid: linear 2, cubic 3, WENO6 6. */
static void kernels_have_their_order(void **state)
{
    (void)state;
    const double least[] = {1.9, 2.8, 5.4};
    for (int n = 0; n < 3; n++) {
#define REGULAR(finest) TRACKED("{1, 1}", finest, "sizing = { strength = 0 }, " POOL)
        double coarse = moved(kinds[n], REGULAR(24)), fine = moved(kinds[n], REGULAR(48));
        print_message("%s: off by %.2g and %.2g, order %.2f\n", names[n], coarse, fine,
                      log2(coarse / fine));
        assert_true(log2(coarse / fine) > least[n]);
    }
}

/* Better kernels lose less, and MacCormack makes up for a poor one. */
static void better_kernels_lose_less(void **state)
{
    (void)state;
    double plain[3], corrected[3];
    for (int n = 0; n < 3; n++) {
        plain[n] = turned(kinds[n], false);
        corrected[n] = turned(kinds[n], true);
        print_message("a bump turned once, %s: off by %.3g, with MacCormack %.3g\n", names[n],
                      plain[n], corrected[n]);
        check_below(corrected[n], 0.7 * plain[n]);
    }
    check_below(plain[1], 0.2 * plain[0]);
    check_below(plain[2], plain[1]);
}

/* ---- the surface ---- */

/* A standing wave of 32 cells: what its amplitude loses in a period, and the period. */
static void tracked_waves_keep_their_height(void **state)
{
    (void)state;
    for (int n = 1; n < 4; n++) {
        world w;
        char text[400];
        un_probe height = {.kind = UN_PROBE_HEIGHT, .at = {0, 0, 0}};
        double energy[3] = {0}, was = 0.52, first = 0, last = 0;
        int passes = 0;
        enum { STEPS = 80 };
        snprintf(text, sizeof text,
                 "scene { method = 'warp', domain = { size = {1, 1} }, detail = { finest = 32 }, "
                 "liquid = { field(function(x, y, z) return y - 0.5 - 0.02 * math.cos(math.pi * x) "
                 "end) }, solver = { surface = 'level-set', interpolation = '%s', maccormack = %s "
                 "} }",
                 names[n < 3 ? n : 0], n < 3 ? "false" : "true");
        world_begin(&w, &un_method_warp, 1, text);
        for (int i = 0; i < 3 * STEPS; i++) {
            double dt = WORLD_WAVE_PERIOD / STEPS;
            check_ok(w.ctx, un_method_warp.step(w.state, dt, &w.step));
            energy[i / STEPS] = fmax(energy[i / STEPS], w.step.energy_kinetic);
            w.max_volume_error = fmax(w.max_volume_error, fabs(w.step.volume_error));
            double now = un_method_warp.probe(w.state, &height);
            if ((now - 0.5) * (was - 0.5) < 0) {
                last = w.step.time - dt * (now - 0.5) / (now - was);
                if (passes++ == 0) first = last;
            }
            was = now;
        }
        double loss = 1 - pow(energy[2] / energy[0], 0.25);
        double off = fabs(2 * (last - first) / ((passes - 1) * WORLD_WAVE_PERIOD) - 1);
        print_message("%s%s: lost in a period %.2f %%, period off by %.2f %%\n",
                      names[n < 3 ? n : 0], n < 3 ? "" : " with MacCormack", 100 * loss, 100 * off);
        check_below(fabs(loss), 0.02);
        check_below(off, 0.015);
        check_below(w.max_volume_error, 0.001);
        world_end(&w);
    }
}

/* Water at rest, between layers of cells, in 2D and 3D: calm, and its surface is flat. */
static void tracked_water_rests(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        world w;
        world_begin(
            &w, &un_method_warp, 2,
            flat ? TRACKED("{1, 0.8}", 24, "liquid = { box { min = {0, 0}, max = {1, 0.43} } }")
                 : TRACKED("{1, 1, 1}", 12,
                           "liquid = { box { min = {0, 0, 0}, max = {1, 0.43, 1} } }"));
        world_run(&w, flat ? 0.5 : 0.25);
        check_below(w.max_speed, 0.01);
        check_below(w.max_volume_error, 0.002);
        double low, high;
        if (!flat) {
            surface_heights(&w, &low, &high);
            check_near(low, 0.43, 0.004);
            check_near(high, 0.43, 0.004);
        }
        world_end(&w);
    }
}

/* A dam break keeps its volume, and runs as far as that of particles. */
static void tracked_dam_breaks(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        world w, v;
        un_probe front = {.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1};
#define DAM(size, solver)                                                                          \
    "scene { method = 'warp', domain = { size = " size " }, detail = { finest = 20 }, " solver     \
    "liquid = { box { min = {0, 0, -1}, max = {0.35, 0.5, 1} } } }"
#define TRACK "solver = { surface = 'level-set' }, "
        world_begin(&w, &un_method_warp, 2,
                    flat ? DAM("{1, 0.6}", TRACK) : DAM("{1, 0.6, 0.2}", TRACK));
        world_begin(&v, &un_method_warp, 2, flat ? DAM("{1, 0.6}", "") : DAM("{1, 0.6, 0.2}", ""));
        world_run(&w, 0.2);
        world_run(&v, 0.2);
        check_near(un_method_warp.probe(w.state, &front), un_method_warp.probe(v.state, &front),
                   0.05);
        world_run(&w, flat ? 0.8 : 0.35);
        print_message("dam break, %dD: volume within %.2f %%, %.3g m/s\n", flat ? 2 : 3,
                      100 * w.max_volume_error, w.max_speed);
        check_below(w.max_volume_error, 0.03);
        check_below(w.max_speed, 2 * sqrt(2 * 9.81 * 0.5));
        world_end(&w);
        world_end(&v);
    }
}

/* A drop that no projection reaches falls freely. */
static void tracked_drops_fall(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_warp, 2,
                TRACKED("{1, 1, 1}", 16,
                        "liquid = { sphere { center = {0.5, 0.8, 0.5}, radius = 0.07 } }"));
    world_run(&w, 0.25);
    double sum = 0, weight = 0;
    const un_particles *p = un_method_warp.particles(w.state);
    for (int32_t q = 0; q < p->count; q++) {
        sum += p->volume[q] * p->x[1][q];
        weight += p->volume[q];
    }
    assert_true(weight > 0);
    check_near(sum / weight, 0.8 - 0.5 * 9.81 * 0.25 * 0.25, 0.015);
    world_end(&w);
}

/* An emitter brings what its stream does, a drain and an open side take theirs: the ledger and the
 * liquid agree. */
static void tracked_sources_balance(void **state)
{
    (void)state;
    static const char *const sources[] = {
        ("sources = { emitter { shape = sphere { center = {0.5, 0.8}, radius = 0.1 }, "
         "velocity = {0, -1.5, 0} } }, "),
        "sources = { drain { shape = box { min = {0.4, 0, -1}, max = {0.6, 0.1, 1} } } }, ", ""};
    for (int n = 0; n < 3; n++) {
        world w;
        char text[600];
        snprintf(text, sizeof text,
                 "scene { method = 'warp', domain = { size = {1, 1}, open = {%s} }, detail = { "
                 "finest = 24 }, %ssolver = { surface = 'level-set' }, liquid = { box { min = {0, "
                 "0}, max = {1, 0.4} } } }",
                 n == 2 ? "'right'" : "", sources[n]);
        world_begin(&w, &un_method_warp, 2, text);
        double before = w.step.volume;
        world_run(&w, 0.3);
        double change = w.step.volume - before;
        print_message("%s: %+.3g m2, volume within %.2f %%\n",
                      n == 0   ? "emitter"
                      : n == 1 ? "drain"
                               : "open side",
                      change, 100 * w.max_volume_error);
        if (n == 0)
            check_near(change, 0.2 * 1.5 * 0.3, 0.15 * 0.2 * 1.5 * 0.3);
        else
            check_below(change, -0.05);
        check_below(w.max_volume_error, 0.05);
        world_end(&w);
    }
}

/* ---- going on ---- */

#define SPLASH                                                                                     \
    TRACKED("{1, 1}", 24,                                                                          \
            "liquid = { box { min = {0, 0}, max = {1, 0.4} }, sphere { center = {0.5, 0.7}, "      \
            "radius = 0.12 } }, solids = { sphere { center = {0.2, 0.3}, radius = 0.1 } }")

static void tracking_goes_on_bit_for_bit(void **state)
{
    (void)state;
    world r, s;
    un_state saved;
    void *again;
    world_begin(&r, &un_method_warp, 1, SPLASH);
    world_begin(&s, &un_method_warp, 2, SPLASH);
    for (int i = 0; i < 10; i++) world_step(&r, 1);
    for (int i = 0; i < 10; i++) world_step(&s, 1);
    un_state_init(&saved, s.ctx);
    check_ok(s.ctx, un_method_warp.save(s.state, &saved));
    check_ok(s.ctx, un_method_create(&un_method_warp, s.ctx, s.scene, &saved, &again));
    un_state_free(&saved);
    un_method_destroy(&un_method_warp, s.state);
    s.state = again;
    for (int i = 0; i < 10; i++) world_step(&r, 1);
    for (int i = 0; i < 10; i++) world_step(&s, 1);
    const un_warping *a = r.state, *b = s.state;
    size_t cells = (size_t)a->warp.grid.cell_count;
    assert_memory_equal(a->phi, b->phi, cells * sizeof *a->phi);
    assert_memory_equal(a->u, b->u, cells * sizeof *a->u);
    assert_memory_equal(a->p, b->p, (size_t)a->walls->parts.place_count * sizeof *a->p);
    world_end(&r);
    world_end(&s);
}

static un_status step_and_show(un_context *ctx, void *path)
{
    un_scene *scene;
    void *state = NULL;
    un_step step;
    un_trimesh mesh = {0};
    UN_TRY(un_scene_load(ctx, path, NULL, 0, &scene));
    un_status status = un_method_create(&un_method_warp, ctx, scene, NULL, &state);
    if (status == UN_OK) status = un_method_warp.step(state, 0.01, &step);
    if (status == UN_OK) status = un_method_warp.surface(state, &mesh);
    un_trimesh_free(ctx, &mesh);
    un_method_destroy(&un_method_warp, state);
    un_scene_destroy(scene);
    return status;
}

static void tracking_survives_failing_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, "scene { method = 'warp', domain = { size = {1, 1} }, detail = { finest = 8, "
                     "surface = 8 }, liquid = { box { min = {0, 0}, max = {1, 0.7} } }, solver = { "
                     "surface = 'level-set', maccormack = true } }");
    check_allocation_failures(step_and_show, path, 1000);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_fields_are_carried),
        cmocka_unit_test(kernels_have_their_order),
        cmocka_unit_test(better_kernels_lose_less),
        cmocka_unit_test(tracked_waves_keep_their_height),
        cmocka_unit_test(tracked_water_rests),
        cmocka_unit_test(tracked_dam_breaks),
        cmocka_unit_test(tracked_drops_fall),
        cmocka_unit_test(tracked_sources_balance),
        cmocka_unit_test(tracking_goes_on_bit_for_bit),
        cmocka_unit_test(tracking_survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
