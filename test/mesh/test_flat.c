/* The grid and walls in 2D. */
#include "mesh/tank.h"

static void one_layer_of_squares(void **state)
{
    (void)state;
    un_grid g = un_grid_make(un_v3(1, 0.5, 0), 20);
    assert_int_equal(g.dim, 2);
    assert_int_equal(g.n[0], 22);
    assert_int_equal(g.n[1], 12);
    assert_int_equal(g.n[2], 1);
    assert_int_equal(g.cell_count, 22 * 12);
    assert_int_equal(g.node_count, 23 * 13);
    check_near(g.volume, 0.05 * 0.05, 1e-15);
    check_near(un_grid_center(&g, 3, 4, 0).z, 0, 0);
    check_near(un_grid_node_position(&g, 3, 4, 0).z, 0, 0);
}

/* Bilinear interpolation is exact for what is linear. */
static void linear_fields_are_exact(void **state)
{
    (void)state;
    un_grid g = un_grid_make(un_v3(1, 0.7, 0), 16);
    un_context *ctx = check_context();
    float *field = un_alloc(ctx, (size_t)g.cell_count, sizeof *field);
    double *u[3] = {un_alloc(ctx, (size_t)g.cell_count, sizeof(double)),
                    un_alloc(ctx, (size_t)g.cell_count, sizeof(double)), NULL};
    for (int32_t j = 0; j < g.n[1]; j++)
        for (int32_t i = 0; i < g.n[0]; i++) {
            un_vec3 x = un_grid_center(&g, i, j, 0);
            int64_t c = un_grid_cell(&g, i, j, 0);
            field[c] = (float)(2 * x.x - 3 * x.y + 0.5);
            u[0][c] = 1 + 2 * (x.x - 0.5 * g.h) - x.y;
            u[1][c] = 3 - x.x + 0.5 * (x.y - 0.5 * g.h);
        }
    for (uint64_t n = 0; n < 50; n++) {
        un_vec3 x = un_v3(0.05 + 0.9 * un_random(n, 1), 0.05 + 0.6 * un_random(n, 2), 0);
        check_near(un_grid_sample(&g, field, x), 2 * x.x - 3 * x.y + 0.5, 1e-6);
        un_vec3 d = un_grid_gradient(&g, field, x), v = un_faces_sample(&g, u, x);
        check_near(d.x, 2, 1e-4);
        check_near(d.y, -3, 1e-4);
        check_near(d.z, 0, 0);
        check_near(v.x, 1 + 2 * x.x - x.y, 1e-12);
        check_near(v.y, 3 - x.x + 0.5 * x.y, 1e-12);
        check_near(v.z, 0, 0);
    }
    un_free(ctx, field);
    un_free(ctx, u[0]);
    un_free(ctx, u[1]);
    check_context_end(ctx);
}

/* Open shares of edges and squares under a tilted floor: those of the straight line. */
static void fractions_of_edges_and_squares(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 0), 20);
    tank_solid(&t, tank_plane(&t, un_v3(0.5, 0.3, 0), un_v3(0.3, 1, 0)), un_v3(0, 0, 0));
    tank_build(&t);
    const un_grid *g = &t.grid;
    assert_null(t.walls->area[2]);
    double open = 0;
    for (int32_t j = 1; j < g->n[1] - 1; j++)
        for (int32_t i = 1; i < g->n[0] - 1; i++) {
            int64_t c = un_grid_cell(g, i, j, 0);
            un_vec3 x = un_grid_node_position(g, i, j, 0);
            open += t.walls->volume[c] * g->volume;
            /* the lower edge along y of the cell, cut by y = 0.3 - 0.3 (x - 0.5) */
            double floor = 0.3 - 0.3 * (x.x - 0.5);
            if (i > 1)
                check_near(t.walls->area[0][c], un_clamp((x.y + g->h - floor) / g->h, 0, 1), 1e-5);
            double at = 0.5 + (0.3 - x.y) / 0.3; /* where the floor has height y */
            if (j > 1)
                check_near(t.walls->area[1][c], un_clamp((x.x + g->h - at) / g->h, 0, 1), 1e-5);
        }
    check_near(open, 0.7, 1e-3); /* where the floor meets the sides it is not a line */
    check_near(un_walls_distance(t.walls, un_v3(0.5, 0.5, 0)), 0.2 / sqrt(1.09), 1e-6);
    un_vec3 n = un_walls_normal(t.walls, un_v3(0.5, 0.32, 0));
    check_near(n.x, 0.3 / sqrt(1.09), 1e-4);
    check_near(n.z, 0, 0);
    tank_end(&t);
}

/* Sides: only four count, and the middle of a square is half its width from them. */
static void four_sides(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 0), 16);
    t.scene.def.domain.open[UN_SIDE_TOP] = true;
    tank_build(&t);
    check_near(un_walls_sides(t.walls, un_v3(0.5, 0.9, 0)), 0.5, 1e-12);
    check_near(un_walls_distance(t.walls, un_v3(0.5, 0.25, 0)), 0.25, 1e-6);
    int64_t inside = un_grid_cell(&t.grid, 5, 5, 0), beyond = un_grid_cell(&t.grid, 5, 0, 0);
    check_near(t.walls->volume[inside], 1, 0);
    check_near(t.walls->volume[beyond], 0, 0);
    tank_end(&t);
}

static void a_moving_solid_has_its_velocity(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 0), 16);
    tank_solid(&t, tank_box(&t, un_v3(0.3, 0.3, -9), un_v3(0.6, 0.6, 9)), un_v3(0.5, -0.25, 0));
    tank_build(&t);
    tank_move(&t, 0, 0.01);
    un_grid *g = &t.grid;
    int64_t c = un_grid_cell(g, 1 + 7, 1 + 7, 0);
    assert_true(t.walls->area[0][c] == 0 && t.walls->area[1][c] == 0);
    check_near(t.walls->velocity[0][c], 0.5, 1e-6);
    check_near(t.walls->velocity[1][c], -0.25, 1e-6);
    tank_end(&t);
}

/* Front, from both sides, and height of a body of liquid with flat faces. */
static void probes_of_a_level_set(void **state)
{
    (void)state;
    un_grid g = un_grid_make(un_v3(1, 1, 0), 20);
    un_context *ctx = check_context();
    float *phi = un_alloc(ctx, (size_t)g.cell_count, sizeof *phi);
    for (int32_t j = 0; j < g.n[1]; j++)
        for (int32_t i = 0; i < g.n[0]; i++) {
            un_vec3 x = un_grid_center(&g, i, j, 0);
            phi[un_grid_cell(&g, i, j, 0)] = (float)fmax(x.x - 0.63, fmax(0.22 - x.x, x.y - 0.47));
        }
    check_near(un_grid_front(ctx, phi, &g, 0, 1), 0.63, 0.2 * g.h);
    check_near(un_grid_front(ctx, phi, &g, 0, -1), 0.22, 0.2 * g.h);
    check_near(un_grid_front(ctx, phi, &g, 1, 1), 0.47, 0.2 * g.h);
    check_near(un_grid_height(phi, &g, un_v3(0.4, 0, 0)), 0.47, 1e-5);
    check_near(un_grid_height(phi, &g, un_v3(0.9, 0, 0)), 0, 0);
    for (int64_t c = 0; c < g.cell_count; c++) phi[c] = 1;
    assert_true(isnan(un_grid_front(ctx, phi, &g, 0, 1)));
    un_free(ctx, phi);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_layer_of_squares),
        cmocka_unit_test(linear_fields_are_exact),
        cmocka_unit_test(fractions_of_edges_and_squares),
        cmocka_unit_test(four_sides),
        cmocka_unit_test(a_moving_solid_has_its_velocity),
        cmocka_unit_test(probes_of_a_level_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
