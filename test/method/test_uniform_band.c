/* Method `uniform` with a narrow band of particles (solver.band). */
#include "method/uniform.h"
#include "method/world.h"

typedef struct run {
    un_context *ctx;
    un_scene *scene;
    void *state;
    un_step step;
    double time, most; /* volume error so far */
} run;

static void run_begin(run *r, int32_t threads, const char *text)
{
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, text);
    *r = (run){.ctx = check_context_threads(threads)};
    check_ok(r->ctx, un_scene_load(r->ctx, path, NULL, 0, &r->scene));
    unlink(path);
    check_ok(r->ctx, un_method_create(&un_method_uniform, r->ctx, r->scene, NULL, &r->state));
}

static void run_to(run *r, double end)
{
    while (end - r->time > 1e-9) {
        double dt = fmin(un_method_uniform.step_limit(r->state), end - r->time);
        check_ok(r->ctx, un_method_uniform.step(r->state, dt, &r->step));
        r->time += dt;
        r->most = fmax(r->most, fabs(r->step.volume_error));
    }
}

static void run_end(run *r)
{
    un_method_destroy(&un_method_uniform, r->state);
    un_scene_destroy(r->scene);
    un_context_destroy(r->ctx);
}

/* A column that collapses, at a side of its tank. */
#define COLUMN(size, finest, more)                                                                 \
    "scene { domain = { size = " size " }, detail = { finest = " finest " }, liquid = { box { "    \
    "min = {0, 0, -1}, max = {0.5, 0.75, 1} } } " more "}"

static int32_t count_deep(const un_uniform *s)
{
    int32_t count = 0;
    for (int32_t q = 0; q < s->particles.count; q++)
        count += (s->particles.flags[q] & UN_PARTICLE_DEEP) != 0;
    return count;
}

/* With a band there are fewer particles, of the same volume, and the liquid moves alike. */
static void collapse_alike(const char *wide, const char *narrow, double energy)
{
    run r, s;
    run_begin(&r, 1, wide);
    run_begin(&s, 1, narrow);
    for (int i = 1; i <= 5; i++) {
        run_to(&r, 0.08 * i);
        run_to(&s, 0.08 * i);
        assert_true(count_deep(s.state) > 40);
        check_below(s.step.particles, 0.7 * r.step.particles);
        check_near(s.step.energy_kinetic, r.step.energy_kinetic, energy * r.step.energy_kinetic);
        if (i <= 3) /* the front reaches the far side */
            check_near(s.step.momentum.x, r.step.momentum.x, energy * fabs(r.step.momentum.x));
        check_near(s.step.volume_particles, r.step.volume_particles,
                   1e-6 * r.step.volume_particles);
    }
    print_message("volume off by %.4f, without a band %.4f\n", s.most, r.most);
    check_below(s.most, r.most + 0.003);
    run_end(&r);
    run_end(&s);
}

static void columns_collapse_alike(void **state)
{
    (void)state;
    collapse_alike(COLUMN("{1, 1}", "48", ""), COLUMN("{1, 1}", "48", ", solver = { band = 4 }"),
                   0.03);
    collapse_alike(COLUMN("{1, 1, 0.4}", "28", ""),
                   COLUMN("{1, 1, 0.4}", "28", ", solver = { band = 3 }"), 0.03);
}

static un_vec3 linear(un_vec3 x)
{
    return un_v3(0.4 + 2 * x.x - 3 * x.y, 0.2 + x.x - 2 * x.y, 0.3 + x.z - x.x);
}

/* Faces take over a velocity that is linear in space, where they lie as where liquid comes from. */
static void bands_carry_linear_fields(void **state)
{
    (void)state;
    static const char *const scenes[] = {COLUMN("{1, 1}", "32", ", solver = { band = 3 }"),
                                         COLUMN("{1, 1, 0.8}", "20", ", solver = { band = 2 }")};
    for (int n = 0; n < 2; n++) {
        run r;
        run_begin(&r, 2, scenes[n]);
        run_to(&r, 0.02);
        un_uniform *s = r.state;
        const un_grid *g = &s->core.grid;
        for (int64_t c = 0; c < g->cell_count; c++) {
            int32_t at[3] = {(int32_t)(c % g->n[0]), (int32_t)(c / g->n[0] % g->n[1]),
                             (int32_t)(c / g->stride[2])};
            for (int a = 0; a < g->dim; a++) {
                un_vec3 u = linear(un_grid_face_center(g, a, at[0], at[1], at[2]));
                s->u[a][c] = s->u_old[a][c] = a == 0 ? u.x : a == 1 ? u.y : u.z;
            }
        }
        const double dt = 0.004;
        check_ok(r.ctx, un_uniform_carry(s, dt, dt));
        int64_t found = 0;
        double most = 0, far = 0;
        for (int64_t c = 0; c < g->cell_count; c++)
            for (int a = 0; a < g->dim; a++) {
                int32_t at[3] = {(int32_t)(c % g->n[0]), (int32_t)(c / g->n[0] % g->n[1]),
                                 (int32_t)(c / g->stride[2])};
                if (s->band.deep[c] != 1 || at[a] < 3) continue;
                un_vec3 x = un_grid_face_center(g, a, at[0], at[1], at[2]), y = x;
                un_vec3 k1 = linear(x), k2 = linear(un_mad(x, k1, -0.5 * dt));
                un_vec3 k3 = linear(un_mad(x, k2, -0.75 * dt));
                y = un_mad(y, un_add(un_add(un_scale(k1, 2), un_scale(k2, 3)), un_scale(k3, 4)),
                           -dt / 9);
                if (!un_grid_encloses(g, un_mad(x, un_sub(y, x), 3))) continue;
                un_vec3 want = linear(y), here = linear(x);
                double u = s->band.u[a][c];
                most = fmax(most, fabs(u - (a == 0 ? want.x : a == 1 ? want.y : want.z)));
                far = fmax(far, fabs(u - (a == 0 ? here.x : a == 1 ? here.y : here.z)));
                found++;
            }
        assert_true(found > 100);
        check_below(most, 1e-12);
        assert_true(far > 1e-3);
        run_end(&r);
    }
}

/* Going on from saved arrays gives the same bits, for any number of threads. */
static void goes_on_bit_for_bit(void **state)
{
    (void)state;
    run r, s;
    un_state saved;
    run_begin(&r, 1, COLUMN("{1, 1, 0.4}", "20", ", solver = { band = 2 }"));
    run_begin(&s, 2, COLUMN("{1, 1, 0.4}", "20", ", solver = { band = 2 }"));
    run_to(&r, 0.15);
    run_to(&s, 0.15);
    un_state_init(&saved, s.ctx);
    check_ok(s.ctx, un_method_uniform.save(s.state, &saved));
    void *again;
    check_ok(s.ctx, un_method_create(&un_method_uniform, s.ctx, s.scene, &saved, &again));
    un_state_free(&saved);
    un_method_destroy(&un_method_uniform, s.state);
    s.state = again;
    assert_true(count_deep(again) > 40);
    run_to(&r, 0.3);
    run_to(&s, 0.3);
    const un_particles *a = un_method_uniform.particles(r.state);
    const un_particles *b = un_method_uniform.particles(again);
    assert_int_equal(a->count, b->count);
    for (int axis = 0; axis < 3; axis++) {
        assert_memory_equal(a->x[axis], b->x[axis], (size_t)a->count * sizeof(double));
        assert_memory_equal(a->v[axis], b->v[axis], (size_t)a->count * sizeof(double));
    }
    run_end(&r);
    run_end(&s);
}

static un_status step_in_band(un_context *ctx, void *path)
{
    un_scene *scene;
    void *state = NULL;
    un_step step;
    UN_TRY(un_scene_load(ctx, path, NULL, 0, &scene));
    un_status status = un_method_create(&un_method_uniform, ctx, scene, NULL, &state);
    for (int i = 0; i < 2 && status == UN_OK; i++)
        status = un_method_uniform.step(state, 0.01, &step);
    if (status == UN_OK) assert_true(count_deep(state) > 0);
    un_method_destroy(&un_method_uniform, state);
    un_scene_destroy(scene);
    return status;
}

static void bands_survive_failing_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, COLUMN("{1, 1}", "12", ", solver = { band = 1 }"));
    check_allocation_failures(step_in_band, path, 2000);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_collapse_alike), cmocka_unit_test(bands_carry_linear_fields),
        cmocka_unit_test(goes_on_bit_for_bit), cmocka_unit_test(bands_survive_failing_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
