/* The projection in 2D. */
#include "pressure/pool.h"

typedef struct slope {
    un_vec3 gravity;
    double level;
} slope;

static double tilted_phi(un_vec3 x, const void *arg)
{
    const slope *s = arg;
    return -un_dot(un_normalize(s->gravity), un_sub(x, un_v3(0.5, s->level, 0)));
}

/* Water at rest under a surface across gravity, over a floor that cuts cells aslant: the pressure
 * takes all of gravity. */
static void tilted_water_stands_still(void **state)
{
    (void)state;
    pool p;
    slope s = {un_v3(1.7, -9.6, 0), 0.53};
    pool_begin(&p, 2, un_v3(1, 1, 0), 24);
    tank_solid(&p.tank, tank_plane(&p.tank, un_v3(0.5, 0.13, 0), un_v3(0.3, 1, 0)), un_v3(0, 0, 0));
    pool_build(&p);
    pool_fill(&p, tilted_phi, &s);
    for (int a = 0; a < 2; a++)
        for (int64_t f = 0; f < p.tank.grid.cell_count; f++)
            p.u[a][f] = p.in.dt * (a == 0 ? s.gravity.x : s.gravity.y);
    pool_project(&p);
    assert_true(p.report.cell_count > 200);
    check_below(pool_speed(&p), 1e-6);
    check_below(p.report.max_divergence, 1e-6);
    un_vec3 x = un_v3(0.4, 0.35, 0);
    check_near(un_pressure_at(p.pressure, x), -1000 * un_length(s.gravity) * tilted_phi(x, &s),
               0.5);
    assert_int_equal(p.report.cell_count, p.pressure->matrix.n);
    un_pressure_forget(p.pressure);
    check_near(un_pressure_at(p.pressure, x), 0, 0);
    pool_end(&p);
}

/* Whatever flows becomes free of divergence, with every kind of solver. */
static void wild_flow_loses_its_divergence(void **state)
{
    (void)state;
    double level = 0.71;
    for (int32_t kind = 0; un_solver_kind_names[kind]; kind++) {
        pool p;
        if (!un_solver_kind_available(un_solver_kind_find(un_solver_kind_names[kind]))) continue;
        pool_begin(&p, 2, un_v3(1, 1, 0), 40);
        tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.4, 0.3, 0), 0.15), un_v3(0, 0, 0));
        pool_build(&p);
        snprintf(p.tank.scene.def.solver.kind, sizeof p.tank.scene.def.solver.kind, "%s",
                 un_solver_kind_names[kind]);
        check_ok(p.tank.ctx, un_pressure_configure(p.pressure->solver, &p.tank.scene.def));
        pool_fill(&p, flat_phi, &level);
        for (int32_t j = 0; j < p.tank.grid.n[1]; j++)
            for (int32_t i = 0; i < p.tank.grid.n[0]; i++) {
                int64_t c = un_grid_cell(&p.tank.grid, i, j, 0);
                p.u[0][c] = wild_flow(pool_face(&p.tank.grid, 0, i, j, 0), NULL).x;
                p.u[1][c] = wild_flow(pool_face(&p.tank.grid, 1, i, j, 0), NULL).y;
            }
        pool_project(&p);
        check_below(p.report.max_divergence, 1e-5);
        pool_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tilted_water_stands_still),
        cmocka_unit_test(wild_flow_loses_its_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
