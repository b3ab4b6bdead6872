/* The projection on tets that conform to surface and walls: gradients in a sphere, liquid at rest
 * in a bowl under any gravity, walls that move, closed tanks. */
#include "check.h"
#include "pressure/pressure.h"
#include "transfer/transfer.h"

typedef struct pool {
    un_context *ctx;
    un_arena arena;
    un_track track;
    un_stuffing mesh;
    un_bodies bodies;
    un_pressure *pressure;
    un_stuffed_rim rim;
    double *surface, *u, *p;
} pool;

static double ball(const void *arg, un_vec3 x)
{
    (void)arg;
    return un_length(un_sub(x, un_v3(0.5, 0.51, 0.48))) - 0.35;
}

static void begin_in(pool *s, un_vec3 size, int32_t cells, un_track_shape *shape, const void *arg)
{
    *s = (pool){.ctx = check_context()};
    un_arena_init(&s->arena, s->ctx);
    check_ok(s->ctx, un_track_init(&s->track, s->ctx, size, 2 * cells));
    check_ok(s->ctx, un_track_begin(&s->track, shape, arg));
    un_stuffing_init(s->ctx, &s->mesh, size, 4, cells);
    un_track_stuffing def = {.track = &s->track, .bodies = &s->bodies};
    check_ok(s->ctx, un_track_stuff(&s->mesh, &s->arena, &def));
    un_arena_reset(&s->arena);
    check_ok(s->ctx, un_pressure_create(s->ctx, NULL, &s->pressure));
    size_t boundary = (size_t)s->mesh.boundary_count + 1;
    s->rim.foot = un_alloc(s->ctx, boundary, sizeof *s->rim.foot);
    s->rim.wall = un_alloc(s->ctx, boundary, sizeof *s->rim.wall);
    s->surface = un_alloc_zero(s->ctx, boundary, sizeof *s->surface);
    s->u = un_alloc_zero(s->ctx, (size_t)s->mesh.face_count + 1, sizeof *s->u);
    s->p = un_alloc_zero(s->ctx, (size_t)s->mesh.tet_count + 1, sizeof *s->p);
    s->rim.bodies = &s->bodies;
    un_stuffed_find_rim(s->ctx, &s->rim, &s->mesh, &s->track);
}

static void begin(pool *s, int32_t cells, un_track_shape *shape)
{
    begin_in(s, un_v3(1, 1, 1), cells, shape, NULL);
}

static un_stuffed_projection_report project(pool *s, un_vec3 gravity, int32_t corrections)
{
    un_stuffed_projection_report report;
    un_stuffed_projection in = {.mesh = &s->mesh,
                                .u = s->u,
                                .p = s->p,
                                .rim = &s->rim,
                                .surface = s->surface,
                                .gravity = gravity,
                                .dt = 1,
                                .density = 1,
                                .tolerance = 1e-10,
                                .corrections = corrections,
                                .iteration_limit = 1000};
    check_ok(s->ctx, un_stuffed_pressure_project(s->pressure, &s->arena, &in, &report));
    un_arena_reset(&s->arena);
    return report;
}

static void end(pool *s)
{
    un_pressure_destroy(s->pressure);
    un_free(s->ctx, s->rim.foot);
    un_free(s->ctx, s->rim.wall);
    un_free(s->ctx, s->surface);
    un_free(s->ctx, s->u);
    un_free(s->ctx, s->p);
    un_stuffing_free(&s->mesh);
    un_track_free(&s->track);
    un_arena_free(&s->arena);
    check_context_end(s->ctx);
}

/* p = x y + z is harmonic, and known at the surface. */
static double rms_gradient(int32_t cells, int32_t corrections)
{
    pool s;
    begin(&s, cells, ball);
    for (int32_t b = 0; b < s.mesh.boundary_count; b++)
        s.surface[b] = s.rim.foot[b].x * s.rim.foot[b].y + s.rim.foot[b].z;
    project(&s, un_v3(0, 0, 0), corrections);
    double sum = 0, all = 0;
    for (int32_t f = 0; f < s.mesh.face_count; f++) {
        un_vec3 x = s.mesh.center[f], g = {-x.y, -x.x, -1}, n = un_normalize(s.mesh.area[f]);
        double d = s.u[f] - un_dot(g, n), a = un_length(s.mesh.area[f]);
        sum += a * d * d, all += a * un_dot(g, g) / 3;
    }
    end(&s);
    return sqrt(sum / all);
}

static void gradients_in_a_sphere(void **state)
{
    (void)state;
    check_below(rms_gradient(12, 2), 0.02);
    check_below(rms_gradient(12, 6), 0.005);
}

static double wavy(const void *arg, un_vec3 x)
{
    (void)arg;
    return 0.95 * (x.y - 0.5 - 0.02 * cos(UN_PI * x.x));
}

static void waves_in_a_tank(void **state)
{
    (void)state;
    pool s;
    begin(&s, 12, wavy);
    double k = UN_PI, top = sinh(k * 0.5), sum = 0, all = 0;
    for (int32_t b = 0; b < s.mesh.boundary_count; b++)
        s.surface[b] = cos(k * s.rim.foot[b].x) * cosh(k * s.rim.foot[b].y) / (k * top);
    un_stuffed_projection_report report = project(&s, un_v3(0, 0, 0), 6);
    check_below(report.max_divergence, 1e-6);
    for (int32_t f = 0; f < s.mesh.face_count; f++) {
        un_vec3 x = s.mesh.center[f], n = un_normalize(s.mesh.area[f]);
        if (s.mesh.face_behind[f] != UN_BEHIND_AIR) continue;
        un_vec3 g = {sin(k * x.x) * cosh(k * x.y), -cos(k * x.x) * sinh(k * x.y), 0};
        double d = s.u[f] - un_dot(g, n) / top, a = un_length(s.mesh.area[f]);
        sum += a * d * d, all += a;
    }
    check_below(sqrt(sum / all), 0.03);
    end(&s);
}

/* Under a tilted gravity, with a surface across it at an odd height. */
static const un_vec3 tilted = {1, -9, 0.5};

static double flat(const void *arg, un_vec3 x)
{
    (void)arg;
    return -un_dot(un_sub(x, un_v3(0.5, 0.437, 0.5)), un_normalize(tilted));
}

static void still_water_stays_still(void **state)
{
    (void)state;
    pool s;
    begin(&s, 12, flat);
    project(&s, tilted, 2);
    for (int32_t f = 0; f < s.mesh.face_count; f++) check_below(fabs(s.u[f]), 1e-9);
    end(&s);
}

/* No air at all: walls at rest stop what flows into them. */
static double full(const void *arg, un_vec3 x)
{
    (void)arg;
    (void)x;
    return -1;
}

static void closed_tanks_are_solved(void **state)
{
    (void)state;
    pool s;
    begin(&s, 8, full);
    un_stuffing_uniform(s.ctx, s.u, &s.mesh, un_v3(0.3, -1, 0.2));
    un_stuffed_projection_report report = project(&s, un_v3(0, -9.81, 0), 10);
    assert_true(report.solve.converged);
    for (int32_t f = 0; f < s.mesh.face_count; f++) check_below(fabs(s.u[f]), 1e-5);
    end(&s);
}

/* An uneven film, about a leaf thick, on a side that cuts cells. arg: where its bumps are. */
static double film(const void *arg, un_vec3 x)
{
    double at = arg ? *(const double *)arg : 0;
    return 0.7 * (0.77 - x.z - 0.06 - 0.04 * sin(17 * x.x + 3 * x.y + at) * cos(13 * x.y - 2 * at));
}

static void films_do_not_throw_liquid(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        pool s;
        double most = 0, at = 0.7 * k;
        begin_in(&s, un_v3(1, 0.8, 0.77), 14, film, &at);
        un_stuffing_uniform(s.ctx, s.u, &s.mesh, un_v3(1, -1, 1));
        project(&s, un_v3(0, -1, 0), 20);
        for (int32_t f = 0; f < s.mesh.face_count; f++) most = fmax(most, fabs(s.u[f]));
        check_below(most, 8);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_in_a_sphere),     cmocka_unit_test(waves_in_a_tank),
        cmocka_unit_test(still_water_stays_still),   cmocka_unit_test(closed_tanks_are_solved),
        cmocka_unit_test(films_do_not_throw_liquid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
