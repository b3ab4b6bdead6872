/* Projection: its order, and a pressure given at the surface. */
#include "pressure/pool.h"

/* ---- order ---- */

#define RADIUS 0.367

typedef struct ball {
    un_vec3 center;
} ball;

static double ball_phi(un_vec3 x, const void *arg)
{
    return un_length(un_sub(x, ((const ball *)arg)->center)) - RADIUS;
}

/* q = (r^2 - R^2) e^x vanishes on the sphere. The velocity is its gradient plus a field without
 * divergence, so the projection must find q and leave that field. */
static double ball_q(un_vec3 r)
{
    return (un_dot(r, r) - RADIUS * RADIUS) * exp(r.x);
}

static un_vec3 ball_free(un_vec3 r)
{
    return un_v3(sin(3 * r.y), cos(2 * r.z), r.x * r.y);
}

static un_vec3 ball_flow(un_vec3 x, const void *arg)
{
    un_vec3 r = un_sub(x, ((const ball *)arg)->center);
    un_vec3 gradient = un_scale(r, 2 * exp(r.x));
    gradient.x += ball_q(r);
    return un_add(gradient, ball_free(r));
}

/* p dt / rho. */
static double ball_found(const pool *p, int64_t c)
{
    return p->pressure->p[c] * p->in.dt / p->in.density;
}

/* The ball in a pool, with a flow that the projection is to free of divergence. */
static void ball_project(pool *p, const ball *b, un_vec3 (*flow)(un_vec3 x, const void *arg))
{
    pool_fill(p, ball_phi, b);
    pool_move(p, flow, b);
    pool_project(p);
}

static void ball_error(int32_t finest, double *pressure_error, double *speed_error)
{
    pool p;
    ball b = {{0.503, 0.491, 0.507}};
    pool_begin(&p, 2, un_v3(1, 1, 1), finest);
    pool_build(&p);
    const un_grid *g = &p.tank.grid;
    ball_project(&p, &b, ball_flow);
    check_below(p.report.max_divergence, 1e-6);
    double q_max = 0, sum = 0, count = 0;
    for (int32_t k = 1; k < g->n[2] - 1; k++)
        for (int32_t j = 1; j < g->n[1] - 1; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                un_vec3 r = un_sub(un_grid_center(g, i, j, k), b.center);
                double q = ball_found(&p, c);
                if (p.phi[c] < 0) q_max = fmax(q_max, fabs(q - ball_q(r)));
                for (int a = 0; a < 3; a++) {
                    if (!p.known[a][c]) continue;
                    un_vec3 want = ball_free(un_sub(pool_face(g, a, i, j, k), b.center));
                    double w = a == 0 ? want.x : a == 1 ? want.y : want.z;
                    sum += fabs(p.u[a][c] - w);
                    count++;
                }
            }
    *pressure_error = q_max;
    *speed_error = sum / count;
    pool_end(&p);
}

static void pressure_in_a_sphere_converges_with_second_order(void **state)
{
    (void)state;
    double pressure[3], speed[3];
    for (int n = 0; n < 3; n++) ball_error(16 << n, &pressure[n], &speed[n]);
    check_below(pressure[2], 2e-4);
    for (int n = 0; n < 2; n++) {
        check_below(1.7, log2(pressure[n] / pressure[n + 1]));
        check_below(1.4, log2(speed[n] / speed[n + 1]));
    }
}

/* ---- a pressure at the surface ---- */

typedef double surface_field(un_vec3 x, const void *arg);

static double *surface_make(pool *p, surface_field *value, const void *arg)
{
    const un_grid *g = &p->tank.grid;
    double *surface = un_alloc(p->tank.ctx, (size_t)g->cell_count, sizeof *surface);
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++)
                surface[un_grid_cell(g, i, j, k)] = value(un_grid_center(g, i, j, k), arg);
    return surface;
}

static double steady_pressure(un_vec3 x, const void *arg)
{
    (void)x;
    return *(const double *)arg;
}
static double linear_pressure(un_vec3 x, const void *arg)
{
    return un_dot(x, *(const un_vec3 *)arg) + 120;
}
static un_vec3 pushed_wild_flow(un_vec3 x, const void *arg)
{
    return un_add(wild_flow(x, NULL), *(const un_vec3 *)arg);
}
static double leaning_phi(un_vec3 x, const void *arg)
{
    (void)arg;
    return 0.8 * (x.y - 0.52) + 0.6 * (x.x - 0.47);
}

/* Two pools with the same liquid, the second under a pressure or pushed: the largest differences of
 * valid velocities, and of pressures less `shift`. */
static void check_alike(const pool *a, const pool *b, double shift, double speed, double pressure)
{
    assert_int_equal(a->report.cell_count, b->report.cell_count);
    for (int64_t c = 0; c < a->tank.grid.cell_count; c++) {
        for (int axis = 0; axis < 3; axis++) {
            assert_int_equal(a->known[axis][c], b->known[axis][c]);
            if (a->known[axis][c]) check_near(a->u[axis][c], b->u[axis][c], speed);
        }
        if (a->pressure->index[c] >= 0)
            check_near(b->pressure->p[c] - a->pressure->p[c], shift, pressure);
    }
}

static void open_pool(pool *p)
{
    pool_begin(p, 2, un_v3(1, 1, 1), 16);
    tank_solid(&p->tank, tank_sphere(&p->tank, un_v3(0.3, 0.3, 0.5), 0.17), un_v3(0, 0, 0));
    pool_build(p);
    pool_fill(p, leaning_phi, NULL);
    pool_move(p, wild_flow, NULL);
    p->in.tolerance = 1e-12;
}

static void steady_surface_pressure_moves_nothing(void **state)
{
    (void)state;
    double air = 5000;
    pool a, b;
    open_pool(&a);
    open_pool(&b);
    double *surface = surface_make(&b, steady_pressure, &air);
    b.in.surface = surface;
    pool_project(&a);
    pool_project(&b);
    check_alike(&a, &b, air, 1e-12, 1e-6);
    /* from its own answer as the guess nothing is left to be done */
    pool_move(&b, wild_flow, NULL);
    pool_project(&b);
    check_below(b.report.solve.iterations, 1);
    un_free(b.tank.ctx, surface);
    pool_end(&a);
    pool_end(&b);
}

/* Under P = f.x liquid moves as under the force -f. */
static void linear_surface_pressure_is_a_force(void **state)
{
    (void)state;
    un_vec3 slope = {700, -300, 450};
    pool a, b;
    open_pool(&a);
    open_pool(&b);
    double *surface = surface_make(&b, linear_pressure, &slope);
    un_vec3 push = un_scale(slope, -b.in.dt / b.in.density);
    b.in.surface = surface;
    pool_move(&a, pushed_wild_flow, &push);
    pool_project(&a);
    pool_project(&b);
    for (int64_t c = 0; c < a.tank.grid.cell_count; c++)
        if (a.pressure->index[c] >= 0) b.pressure->p[c] -= surface[c];
    check_alike(&a, &b, 0, 1e-11, 1e-5);
    un_free(b.tank.ctx, surface);
    pool_end(&a);
    pool_end(&b);
}

/* q = ball_q + f, f known on the sphere alone and continued along its radii. */
static double ball_air(un_vec3 r)
{
    return 0.1 * (r.x * r.y + r.z * r.z * r.x + r.y);
}
static double ball_surface(un_vec3 x, const void *arg)
{
    const pool *p = arg;
    ball b = {{0.503, 0.491, 0.507}};
    un_vec3 r = un_sub(x, b.center);
    double radius = un_length(r) - ball_phi(x, &b);
    return ball_air(un_scale(r, radius / un_length(r))) * p->in.density / p->in.dt;
}
static un_vec3 ball_air_flow(un_vec3 x, const void *arg)
{
    un_vec3 r = un_sub(x, ((const ball *)arg)->center);
    return un_add(ball_flow(x, arg), un_scale(un_v3(r.y + r.z * r.z, r.x + 1, 2 * r.x * r.z), 0.1));
}

static double ball_air_error(int32_t finest)
{
    pool p;
    ball b = {{0.503, 0.491, 0.507}};
    pool_begin(&p, 2, un_v3(1, 1, 1), finest);
    pool_build(&p);
    const un_grid *g = &p.tank.grid;
    double *surface = surface_make(&p, ball_surface, &p), most = 0;
    p.in.surface = surface;
    ball_project(&p, &b, ball_air_flow);
    for (int32_t k = 1; k < g->n[2] - 1; k++)
        for (int32_t j = 1; j < g->n[1] - 1; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                un_vec3 r = un_sub(un_grid_center(g, i, j, k), b.center);
                double q = ball_found(&p, c);
                if (p.phi[c] < 0) most = fmax(most, fabs(q - ball_q(r) - ball_air(r)));
            }
    un_free(p.tank.ctx, surface);
    pool_end(&p);
    return most;
}

static void surface_pressure_on_a_sphere_is_of_second_order(void **state)
{
    (void)state;
    double coarse = ball_air_error(16), fine = ball_air_error(32);
    print_message("under a pressure: %.2e, %.2e, order %.2f\n", coarse, fine, log2(coarse / fine));
    check_below(fine, 8e-4);
    check_below(1.7, log2(coarse / fine));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pressure_in_a_sphere_converges_with_second_order),
        cmocka_unit_test(steady_surface_pressure_moves_nothing),
        cmocka_unit_test(linear_surface_pressure_is_a_force),
        cmocka_unit_test(surface_pressure_on_a_sphere_is_of_second_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
