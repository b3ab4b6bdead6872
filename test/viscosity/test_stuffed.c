/* Viscosity on tets that conform to surface and walls: rigid motions feel nothing, liquid between
 * plates shears evenly, a shaken one comes to rest as fast as it should, with walls that it slides
 * along too. */
#include "check.h"
#include "surface/surface.h"
#include "viscosity/viscosity.h"

typedef un_vec3 velocity(un_vec3 x);

typedef struct jar {
    un_context *ctx;
    un_arena arena;
    un_track track;
    un_stuffing mesh;
    un_bodies bodies;
    un_scene_def def;
    un_viscosity *viscosity;
    double *u;
    un_vec3 *u_node;
} jar;

static void set(jar *j, velocity *of)
{
    for (int32_t f = 0; f < j->mesh.face_count; f++)
        j->u[f] = un_dot(of(j->mesh.center[f]), un_normalize(j->mesh.area[f]));
    for (int32_t n = 0; n < j->mesh.node_count; n++) j->u_node[n] = of(j->mesh.x[n]);
}

static void begin(jar *j, int32_t cells, un_track_shape *shape, velocity *of)
{
    *j = (jar){.ctx = check_context()};
    un_vec3 size = un_v3(1, 1, 0.5);
    un_arena_init(&j->arena, j->ctx);
    check_ok(j->ctx, un_track_init(&j->track, j->ctx, size, 2 * cells));
    check_ok(j->ctx, un_track_begin(&j->track, shape, NULL));
    un_stuffing_init(j->ctx, &j->mesh, size, cells, cells);
    un_track_stuffing def = {.track = &j->track, .bodies = &j->bodies};
    check_ok(j->ctx, un_track_stuff(&j->mesh, &j->arena, &def));
    un_arena_reset(&j->arena);
    j->u = un_alloc(j->ctx, (size_t)j->mesh.face_count, sizeof *j->u);
    j->u_node = un_alloc(j->ctx, (size_t)j->mesh.node_count, sizeof *j->u_node);
    set(j, of);
    j->def.domain.size = size;
    j->def.fluid.density = 1000;
    j->def.fluid.viscosity = 100;
    check_ok(j->ctx, un_viscosity_create(j->ctx, &j->viscosity));
}

static void end(jar *j)
{
    un_viscosity_destroy(j->viscosity);
    un_free(j->ctx, j->u);
    un_free(j->ctx, j->u_node);
    un_stuffing_free(&j->mesh);
    un_track_free(&j->track);
    un_arena_free(&j->arena);
    check_context_end(j->ctx);
}

static void step_by(jar *j, double dt, bool laplacian)
{
    un_viscous_report report;
    un_viscous_stuffed in = {.mesh = &j->mesh,
                             .u = j->u,
                             .u_node = j->u_node,
                             .bodies = &j->bodies,
                             .def = &j->def,
                             .dt = dt,
                             .tolerance = 1e-12,
                             .iteration_limit = 5000,
                             .laplacian = laplacian};
    check_ok(j->ctx, un_viscosity_step_stuffed(j->viscosity, &j->arena, &in, &report));
    un_arena_reset(&j->arena);
    assert_true(report.solve.converged && report.solve.finite);
}

static void step(jar *j, double dt)
{
    step_by(j, dt, false);
}

/* The worst error of faces and nodes. */
static double worst(const jar *j, velocity *of)
{
    double most = 0;
    for (int32_t f = 0; f < j->mesh.face_count; f++) {
        double want = un_dot(of(j->mesh.center[f]), un_normalize(j->mesh.area[f]));
        most = fmax(most, fabs(j->u[f] - want));
    }
    for (int32_t n = 0; n < j->mesh.node_count; n++)
        most = fmax(most, un_length(un_sub(j->u_node[n], of(j->mesh.x[n]))));
    return most;
}

static double ball(const void *arg, un_vec3 x)
{
    (void)arg;
    return un_length(un_sub(x, un_v3(0.5, 0.5, 0.25))) - 0.21;
}

static un_vec3 turning(un_vec3 x)
{
    return un_add(un_v3(0.2, -0.3, 1), un_cross(un_v3(1, 2, -3), x));
}

/* Traction at the surface is zero, and rigid motions have no stress: nothing changes. The Laplacian
 * would stop the turning. */
static void balls_go_on_turning(void **state)
{
    (void)state;
    jar j;
    begin(&j, 16, ball, turning);
    step(&j, 0.1);
    check_below(worst(&j, turning), 1e-8);
    end(&j);
}

static double full(const void *arg, un_vec3 x)
{
    (void)arg;
    (void)x;
    return -1;
}

static un_vec3 shear(un_vec3 x)
{
    return un_v3(x.y - 0.5, 0, 0);
}

static un_vec3 still(un_vec3 x)
{
    (void)x;
    return un_v3(0, 0, 0);
}

/* Floor and ceiling hold liquid: its slowest mode decays by exp(-nu (pi / H)^2 t). By the
 * Laplacian, which does not mind the ends. */
static un_vec3 mode(un_vec3 x)
{
    return un_v3(sin(UN_PI * x.y), 0, 0);
}

/* A cell turning between walls that it slides along: no stress on them; 2 nu pi^2. */
static un_vec3 cell(un_vec3 x)
{
    double a = UN_PI * x.x, b = UN_PI * x.y;
    return un_v3(sin(a) * cos(b), -cos(a) * sin(b), 0);
}

/* The share that twenty steps leave of a velocity. */
static double left_of(jar *j, velocity *of, bool laplacian)
{
    double sum = 0, whole = 0;
    for (int i = 0; i < 20; i++) step_by(j, 0.02, laplacian);
    for (int32_t t = 0; t < j->mesh.tet_count; t++)
        for (int i = 0; i < 4; i++) {
            int32_t n = j->mesh.tet[t][i];
            un_vec3 w = of(j->mesh.x[n]);
            sum += j->mesh.volume[t] * un_dot(j->u_node[n], w);
            whole += j->mesh.volume[t] * un_dot(w, w);
        }
    return sum / whole;
}

static void shear_decays_as_it_should(void **state)
{
    (void)state;
    jar j;
    begin(&j, 16, full, mode);
    for (int side = 0; side < 6; side++) j.def.domain.open[side] = side / 2 != 1;
    double left = pow(1 + 0.02 * 0.1 * UN_PI * UN_PI, -20); /* of backward Euler */
    check_near(left_of(&j, mode, true), left, 0.01 * left);
    end(&j);
    begin(&j, 16, full, cell);
    for (int side = 0; side < 6; side++) j.def.domain.slip[side] = INFINITY;
    left = pow(1 + 0.02 * 0.1 * 2 * UN_PI * UN_PI, -20);
    check_near(left_of(&j, cell, false), left, 0.02 * left);
    end(&j);
}

/* Walls that do not hold on to it leave a sliding block alone; with a slip length it feels a drag
 * of mu / slip on every square metre. */
static un_vec3 sliding(un_vec3 x)
{
    (void)x;
    return un_v3(1, 0, 0);
}

static void slipping_walls_drag(void **state)
{
    (void)state;
    jar j;
    begin(&j, 16, full, sliding);
    for (int side = 0; side < 6; side++) {
        j.def.domain.open[side] = side / 2 == 0;
        j.def.domain.slip[side] = INFINITY;
    }
    step(&j, 0.1);
    check_below(worst(&j, sliding), 1e-9);
    /* d(momentum) = -dt (mu / slip) area u, where u is next to the wall */
    j.def.domain.slip[2] = j.def.domain.slip[3] = 50;
    step(&j, 0.1);
    double lost = 0.5;
    for (int32_t t = 0; t < j.mesh.tet_count; t++)
        for (int i = 0; i < 4; i++) lost -= 0.25 * j.mesh.volume[t] * j.u_node[j.mesh.tet[t][i]].x;
    check_near(lost, 0.1 * 0.1 / 50 * 2 * 0.5, 0.02 * 0.0002);
    end(&j);
}

/* Sticking to sides all around, it is all but at rest after a long step. */
static void sticking_walls_hold(void **state)
{
    (void)state;
    jar j;
    begin(&j, 8, full, shear);
    step(&j, 1000);
    check_below(worst(&j, still), 1e-3);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balls_go_on_turning),
        cmocka_unit_test(shear_decays_as_it_should),
        cmocka_unit_test(slipping_walls_drag),
        cmocka_unit_test(sticking_walls_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
