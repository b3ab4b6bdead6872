/* Velocities in and along walls, after extrapolation; friction. */
#include "pressure/pool.h"

static void nothing_crosses_the_sides(void **state)
{
    (void)state;
    pool p;
    un_vec3 flow = {1, -2, 3};
    pool_begin(&p, 2, un_v3(1, 0.9, 0.8), 10);
    p.tank.scene.def.domain.open[UN_SIDE_TOP] = true;
    pool_build(&p);
    pool_move(&p, uniform_flow, &flow);
    un_pressure_constrain(p.tank.ctx, p.u, NULL, p.known, &p.tank.grid, p.tank.walls);
    const un_grid *g = &p.tank.grid;
    for (int32_t k = 1; k < g->n[2] - 1; k++)
        for (int32_t j = 1; j < g->n[1] - 1; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                assert_true(p.u[0][c] == (i == 1 ? 0 : 1));
                assert_true(p.u[1][c] == (j == 1 ? 0 : -2));
                assert_true(p.u[2][c] == (k == 1 ? 0 : 3));
                assert_true(p.u[0][un_grid_cell(g, g->n[0] - 1, j, k)] == 0);
                assert_true(p.u[1][un_grid_cell(g, i, g->n[1] - 1, k)] == -2); /* open */
                assert_true(p.u[2][un_grid_cell(g, i, j, g->n[2] - 1)] == 0);
            }
    pool_end(&p);
}

/* In a block that fills the lower part, at rest or rising, the layer under its surface takes the
 * block's velocity across it and keeps the flow along it. */
static void solids_take_the_part_across_them(void **state)
{
    (void)state;
    for (int moving = 0; moving < 2; moving++) {
        pool p;
        un_vec3 flow = {1, -2, 3};
        double rise = moving ? 0.5 : 0, dt = 0.01;
        pool_begin(&p, 2, un_v3(1, 1, 1), 10);
        tank_solid(&p.tank, tank_box(&p.tank, un_v3(-1, -1, -1), un_v3(2, 0.43, 2)),
                   un_v3(0, rise, 0));
        pool_build(&p);
        tank_move(&p.tank, 0, dt);
        pool_move(&p, uniform_flow, &flow);
        un_pressure_constrain(p.tank.ctx, p.u, NULL, p.known, &p.tank.grid, p.tank.walls);
        const un_grid *g = &p.tank.grid;
        for (int32_t k = 3; k < 9; k++)
            for (int32_t i = 3; i < 9; i++) {
                /* faces at 0.4 and 0.3 lie in the block, 0.5 above it */
                check_near(p.u[1][un_grid_cell(g, i, 5, k)], rise, 1e-5);
                check_near(p.u[1][un_grid_cell(g, i, 6, k)], -2, 0);
                check_near(p.u[0][un_grid_cell(g, i, 4, k)], 1, 1e-5);
                check_near(p.u[2][un_grid_cell(g, i, 4, k)], 3, 1e-5);
            }
        pool_end(&p);
    }
}

/* Across a slanted wall most of it goes; along it all stays. */
static void slanted_walls_turn_the_flow(void **state)
{
    (void)state;
    pool p;
    un_vec3 n = un_normalize(un_v3(1, 1, 0)), along = un_normalize(un_v3(-1, 1, 0));
    pool_begin(&p, 2, un_v3(1, 1, 1), 16);
    tank_solid(&p.tank, tank_plane(&p.tank, un_v3(0.5, 0.5, 0.5), n), un_v3(0, 0, 0));
    pool_build(&p);
    for (int kind = 0; kind < 2; kind++) {
        un_vec3 flow = kind ? along : un_scale(n, -1);
        pool_move(&p, uniform_flow, &flow);
        un_pressure_constrain(p.tank.ctx, p.u, NULL, p.known, &p.tank.grid, p.tank.walls);
        un_vec3 x = {0.5 - 0.06, 0.5 - 0.06, 0.5}; /* 1.4 cells in */
        un_vec3 v = un_faces_sample(&p.tank.grid, p.u, x);
        if (kind) check_near(un_length(un_sub(v, along)), 0, 1e-5);
        if (!kind) check_below(fabs(un_dot(v, n)), 0.4);
    }
    pool_end(&p);
}

/* The velocities before the projection lose as much as those after it. */
static void two_fields_are_stopped_alike(void **state)
{
    (void)state;
    pool p;
    un_vec3 flow = {1, -2, 3}, n = un_normalize(un_v3(1, 2, 3));
    pool_begin(&p, 2, un_v3(1, 1, 1), 12);
    tank_solid(&p.tank, tank_plane(&p.tank, un_v3(0.5, 0.5, 0.5), n), un_v3(0, 0, 0));
    pool_build(&p);
    pool_move(&p, uniform_flow, &flow);
    size_t bytes = (size_t)p.tank.grid.cell_count * sizeof *p.u[0];
    double *w[3];
    for (int a = 0; a < 3; a++) {
        w[a] = un_alloc(p.tank.ctx, bytes, 1);
        memcpy(w[a], p.u[a], bytes);
    }
    un_pressure_constrain(p.tank.ctx, p.u, w, p.known, &p.tank.grid, p.tank.walls);
    for (int a = 0; a < 3; a++) {
        assert_memory_equal(w[a], p.u[a], bytes);
        un_free(p.tank.ctx, w[a]);
    }
    pool_end(&p);
}

/* The slip falls by the friction each hundredth of a second, whatever the step. */
static void rough_solids_slow_what_slides(void **state)
{
    (void)state;
    for (int steps = 1; steps <= 4; steps *= 4) {
        pool p;
        un_vec3 flow = {1, 0, 3};
        pool_begin(&p, 2, un_v3(1, 1, 1), 10);
        tank_solid(&p.tank, tank_box(&p.tank, un_v3(-1, -1, -1), un_v3(2, 0.4, 2)), un_v3(0, 0, 0));
        p.tank.solids[0].friction = 0.5;
        pool_build(&p);
        pool_move(&p, uniform_flow, &flow);
        for (int n = 0; n < steps; n++)
            un_pressure_friction(p.tank.ctx, p.u, &p.tank.grid, p.tank.walls, NULL, 0.02 / steps);
        const un_grid *g = &p.tank.grid;
        check_near(p.u[0][un_grid_cell(g, 5, 4, 5)], 0.25, 1e-9); /* half a cell in */
        check_near(p.u[2][un_grid_cell(g, 5, 4, 5)], 0.75, 1e-9);
        check_near(p.u[0][un_grid_cell(g, 5, 7, 5)], 1, 0); /* a cell and a half off */
        pool_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_crosses_the_sides),
        cmocka_unit_test(solids_take_the_part_across_them),
        cmocka_unit_test(slanted_walls_turn_the_flow),
        cmocka_unit_test(two_fields_are_stopped_alike),
        cmocka_unit_test(rough_solids_slow_what_slides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
