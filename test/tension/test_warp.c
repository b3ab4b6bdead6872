/* Curvature on a grid that warps: of a tilted plane, a circle and a ball that lie anyhow. */
#include "tension/tension.h"
#include "pressure/basin.h"

typedef struct form {
    un_vec3 centre, up;
    double radius; /* 0: a plane */
} form;

static double distance(un_vec3 x, const void *arg)
{
    const form *f = arg;
    un_vec3 to = un_sub(x, f->centre);
    return f->radius > 0 ? un_length(to) - f->radius : un_dot(to, f->up);
}

/* The mean and the largest error of the curvature at corners of cells that the surface cuts, 1/m.
 */
static void find_errors(un_vec3 size, int32_t finest, const form *f, double *mean, double *most)
{
    basin b;
    basin_begin(&b, size, finest);
    b.tank.scene.def.domain.contact_angle = 90;
    b.tank.scene.def.fluid.surface_tension = 1;
    basin_build(&b, 4, distance, f);
    const un_grid *g = &b.warp.grid;
    float *phi = un_alloc(b.tank.ctx, (size_t)g->cell_count, sizeof *phi);
    assert_non_null(phi);
    for (int64_t c = 0; c < g->cell_count; c++) phi[c] = (float)distance(b.warp.centre[c], f);
    un_tension_warp in = {b.p, phi, b.walls, &b.tank.scene.def};
    check_ok(b.tank.ctx, un_tension_on_warp(b.tank.ctx, &b.arena, &in));
    double exact = f->radius > 0 ? (g->dim - 1) / f->radius : 0, sum = 0, count = 0;
    *most = 0;
    for (int64_t c = 0; c < g->cell_count; c++) {
        int32_t at[3] = {(int32_t)(c % g->n[0]), (int32_t)(c / g->n[0] % g->n[1]),
                         (int32_t)(c / g->stride[2])};
        int wet = 0;
        double error[8];
        /* a plane meets the sides at an angle of its own */
        bool inside = b.warp.jacobian[c] > 0;
        for (int a = 0; a < g->dim && f->radius == 0; a++)
            inside = inside && at[a] > 8 && at[a] < g->n[a] - 9;
        for (int m = 0; m < 1 << g->dim && inside; m++) {
            int64_t n = un_grid_node(g, at[0] + (m & 1), at[1] + (m >> 1 & 1), at[2] + (m >> 2));
            wet += b.phi[n] < 0;
            error[m] = b.p[n] - exact;
        }
        if (wet == 0 || wet == 1 << g->dim) continue;
        for (int m = 0; m < 1 << g->dim; m++) {
            sum += error[m];
            count++;
            *most = fmax(*most, fabs(error[m]));
        }
    }
    assert_true(count > 0);
    *mean = sum / count;
    if (getenv("VERBOSE")) printf("curvature %g: %g off, at most %g\n", exact, *mean, *most);
    un_free(b.tank.ctx, phi);
    basin_end(&b);
}

static void curvature_is_exact(void **state)
{
    (void)state;
    const form disc = {.centre = {0.51, 0.52, 0}, .radius = 0.25},
               ball = {.centre = {0.51, 0.52, 0.49}, .radius = 0.25},
               plane = {.centre = {0.5, 0.47, 0}, .up = un_normalize(un_v3(0.3, 1, 0))};
    double mean, most;
    find_errors(un_v3(1, 1, 0), 32, &disc, &mean, &most); /* of 4 */
    check_below(fabs(mean), 0.02);
    check_below(most, 0.15);
    find_errors(un_v3(1, 1, 1), 24, &ball, &mean, &most); /* of 8, 6 cells a radius */
    check_below(fabs(mean), 0.05);
    check_below(most, 0.4);
    find_errors(un_v3(1, 1, 0), 48, &plane, &mean, &most);
    check_below(most, 0.1);
}

/* Cells that gather at a surface come closer across it, and hardly along it. */
static void steps_follow_the_surface(void **state)
{
    (void)state;
    const form level = {.centre = {0, 0.5, 0}, .up = {0, 1, 0}};
    basin b;
    basin_begin(&b, un_v3(1, 1, 0), 32);
    basin_build(&b, 4, distance, &level);
    const un_grid *g = &b.warp.grid;
    float *phi = un_alloc(b.tank.ctx, (size_t)g->cell_count, sizeof *phi);
    assert_non_null(phi);
    for (int64_t c = 0; c < g->cell_count; c++) phi[c] = (float)distance(b.warp.centre[c], &level);
    assert_true(b.warp.certificate < 0.6);
    check_near(un_tension_warp_spacing(b.tank.ctx, &b.warp, phi), g->h, 0.01 * g->h);
    for (int64_t c = 0; c < g->cell_count; c++) phi[c] = 1;
    assert_true(isinf(un_tension_warp_spacing(b.tank.ctx, &b.warp, phi)));
    un_free(b.tank.ctx, phi);
    basin_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curvature_is_exact),
        cmocka_unit_test(steps_follow_the_surface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
