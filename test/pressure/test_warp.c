/* The projection on a grid that warps: water at rest, figure 7 of [Ibayashi18], a sphere, solids
 * that cut and that move, closed tanks. */
#include "pressure/basin.h"

static double fastest(const basin *b)
{
    double most = 0;
    for (int64_t c = 0; c < b->warp.grid.cell_count; c++)
        if (b->known[c]) most = fmax(most, un_length(b->u[c]));
    return most;
}

/* ---- rest ---- */

static double plane(un_vec3 x, const void *arg)
{
    const un_vec3 *n = arg;
    return un_dot(un_sub(x, un_v3(0.47, 0.43, n->z != 0 ? 0.48 : 0)), *n);
}

static double still_water(un_vec3 size, int32_t finest, un_vec3 up, int solids)
{
    basin b;
    up = un_normalize(up);
    basin_begin(&b, size, finest);
    double z = size.z / 2;
    if (solids) tank_solid(&b.tank, tank_sphere(&b.tank, un_v3(0.4, 0.3, z), 0.21), un_v3(0, 0, 0));
    if (solids)
        tank_solid(&b.tank, tank_plane(&b.tank, un_v3(0.1, 0, z), un_v3(0.8, 0.6, 0)),
                   un_v3(0, 0, 0));
    basin_build(&b, 4, plane, &up);
    for (int64_t c = 0; c < b.warp.grid.cell_count; c++) b.u[c] = un_scale(up, -9.81 * b.in.dt);
    basin_project(&b);
    assert_true(b.report.solve.converged);
    double most = fastest(&b) / (9.81 * b.in.dt);
    const char *reason = NULL;
    assert_true(un_csr_validate(&b.pressure->matrix, &reason));
    const un_csr *a = &b.pressure->matrix;
    for (int32_t i = 0; i < a->n; i++) /* to the last bit */
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            for (int32_t l = a->row[a->col[k]]; l < a->row[a->col[k] + 1]; l++)
                if (a->col[l] == i) assert_true(a->val[l] == a->val[k]);
    basin_end(&b);
    return most;
}

/* A flat surface at any tilt stands still on a warped grid, beside walls that cut its cells too. */
static void still_at_any_tilt(void **state)
{
    (void)state;
    double most = 0;
    for (int solids = 0; solids < 2; solids++) {
        for (int n = 0; n < 4; n++) {
            double a = 0.3 + 1.5 * n;
            most = fmax(most, still_water(un_v3(1, 0.9, 0), 24, un_v3(sin(a), cos(a), 0), solids));
        }
        most = fmax(most, still_water(un_v3(1, 1, 1), 10, un_v3(0.3, 1, -0.4), solids));
    }
    print_message("still water: %.2g g dt\n", most);
    check_below(most, 1e-10);
}

/* A pressure of the surface that is the same everywhere adds to the one below it; one that is
 * linear in space moves all of the liquid alike. */
static double round_pool(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_length(un_sub(x, un_v3(0.51, 0.48, x.z))) - 0.3;
}

static void surface_presses(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        basin b;
        un_vec3 up = un_normalize(un_v3(0.3, 1, 0)), force = {600, -250, 0};
        basin_begin(&b, un_v3(1, 1, 0), 24);
        basin_build(&b, 4, round == 0 ? plane : round_pool, &up);
        const un_grid *g = &b.warp.grid;
        double *surface = un_alloc(b.tank.ctx, (size_t)g->node_count, sizeof *surface);
        assert_non_null(surface);
        if (round == 0) force = un_scale(up, -9.81 * b.in.density);
        for (int64_t n = 0; n < g->node_count; n++)
            surface[n] = round == 0 ? 500 : 40 + un_dot(force, b.warp.node[n]);
        for (int64_t c = 0; c < g->cell_count; c++)
            b.u[c] = un_scale(force, b.in.kick / b.in.density);
        b.in.surface = surface;
        basin_project(&b);
        check_below(fastest(&b), 1e-9 * un_length(force) * b.in.kick / b.in.density);
        for (int64_t n = 0; n < g->node_count; n++) {
            double level = round == 0 ? 500 + 9.81 * b.in.density * -b.phi[n] : surface[n];
            if (b.p[n] != 0) check_near(b.p[n], level, 1e-6);
        }
        un_free(b.tank.ctx, surface);
        basin_end(&b);
    }
}

/* Multigrid on the lattice takes stretched cells in its stride. */
static void stretched_cells_converge(void **state)
{
    (void)state;
    basin b;
    un_vec3 up = {0, 1, 0};
    basin_begin(&b, un_v3(1, 1, 1), 24);
    basin_build(&b, 0, plane, &up);
    double aspect = 0, turn = 2 * UN_PI;
    const un_grid *g = &b.warp.grid;
    /* cells in the middle have a tenth of the height, and are wider */
    for (int64_t c = 0; c < g->cell_count; c++) {
        double x = ((double)(c % g->n[0]) - 0.5) * g->h;
        double y = ((double)(c / g->stride[1] % g->n[1]) - 0.5) * g->h;
        b.warp.potential[c] =
            (0.9 * cos(turn * (y - 0.5)) - 0.3 * cos(turn * (x - 0.5))) / (turn * turn);
    }
    un_warp_place(&b.warp);
    for (int64_t n = 0; n < g->node_count; n++) b.phi[n] = plane(b.warp.node[n], &up);
    for (int32_t j = 1; j < g->n[1] - 1; j++) {
        int64_t n = un_grid_node(g, 12, j, 12);
        double tall = b.warp.node[n + g->node_stride[1]].y - b.warp.node[n].y;
        aspect = fmax(aspect, (b.warp.node[n + 1].x - b.warp.node[n].x) / tall);
    }
    for (int64_t c = 0; c < g->cell_count; c++)
        b.u[c] =
            un_v3(un_random((uint64_t)c, 1), un_random((uint64_t)c, 2), un_random((uint64_t)c, 3));
    b.in.tolerance = 1e-6;
    un_solver_set_kind(b.pressure->solver, UN_SOLVER_GEOMETRIC);
    basin_project(&b);
    print_message("aspect %.3g: %d iterations\n", aspect, b.report.solve.iterations);
    assert_true(aspect > 10);
    assert_true(b.report.solve.converged && b.report.solve.iterations <= 12);
    basin_end(&b);
}

/* ---- figure 7 ---- */

static double disc(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_length(un_sub(x, un_v3(0.5, 0.5, 0))) - 0.4;
}

static double ball(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_length(un_sub(x, un_v3(0.5, 0.5, 0.5))) - 0.4;
}

/* The mean error of a source in the middle, at nodes in the liquid of cut cells. */
static double error_around_source(un_vec3 size, int32_t finest, double strength)
{
    basin b;
    bool flat = size.z == 0;
    basin_begin(&b, size, finest);
    basin_build(&b, strength, flat ? disc : ball, NULL);
    const un_grid *g = &b.warp.grid;
    int32_t cell[8], middle = finest / 2, count = 1 << g->dim;
    double volume[8], sum = 0;
    for (int m = 0; m < count; m++) {
        cell[m] = (int32_t)un_grid_cell(g, middle + (m & 1), middle + (m >> 1 & 1),
                                        flat ? 0 : middle + (m >> 2));
        volume[m] = b.in.dt / count;
    }
    un_inflow inflow = {.cell = cell, .volume = volume, .count = count};
    b.in.inflow = &inflow;
    b.in.tolerance = 1e-10;
    basin_project(&b);
    int64_t nodes = 0;
    for (int32_t r = 0; r < b.pressure->matrix.n; r++) {
        int32_t n = b.pressure->place[r];
        bool cut = false;
        for (int o = 0; o < (flat ? 9 : 27); o++)
            cut = cut || b.phi[n + o % 3 - 1 + (o / 3 % 3 - 1) * g->node_stride[1] +
                               (flat ? 0 : (o / 9 - 1) * g->node_stride[2])] >= 0;
        if (!cut) continue;
        double radius = b.phi[n] + 0.4, x = b.p[n] * b.in.dt / b.in.density;
        double exact =
            flat ? log(0.4 / radius) / (2 * UN_PI) : (1 / radius - 1 / 0.4) / (4 * UN_PI);
        sum += fabs(x - exact);
        nodes++;
    }
    basin_end(&b);
    return sum / (double)nodes;
}

/* The table's errors at 64 and 256, and its order. */
static void figure_seven(void **state)
{
    (void)state;
    const double regular[2] = {5.2e-5, 3.4e-6}, warped[2] = {2.8e-5, 1.3e-6};
    for (int n = 0; n < 2; n++) {
        double coarse = error_around_source(un_v3(1, 1, 0), 64, n ? 4 : 0);
        double fine = error_around_source(un_v3(1, 1, 0), 256, n ? 4 : 0);
        print_message("figure 7, %s: %.3g at 64, %.3g at 256\n", n ? "warped" : "regular", coarse,
                      fine);
        check_below(coarse, (n ? warped : regular)[0]);
        check_below(fine, (n ? warped : regular)[1]);
        assert_true(log2(coarse / fine) / 2 > 1.8);
    }
}

/* The whole table, for docs/methods.md: test_pressure warp figure7. */
static void print_figure_seven(void)
{
    printf("grid,resolution,L1\n");
    for (int n = 0; n < 2; n++)
        for (int finest = 32; finest <= 1024; finest *= 2)
            printf("%s,%d,%.2g\n", n ? "warped" : "regular", finest,
                   error_around_source(un_v3(1, 1, 0), finest, n ? 4 : 0));
}

static void sphere_is_second_order(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        double coarse = error_around_source(un_v3(1, 1, 1), 16, n ? 4 : 0);
        double fine = error_around_source(un_v3(1, 1, 1), 32, n ? 4 : 0);
        print_message("sphere, %s: %.3g at 16, %.3g at 32\n", n ? "warped" : "regular", coarse,
                      fine);
        assert_true(log2(coarse / fine) > 1.9);
    }
}

/* ---- solids ---- */

static double everywhere(un_vec3 x, const void *arg)
{
    (void)arg;
    (void)x;
    return -1;
}

/* A slanting wall that fills half of a closed tank turns a uniform flow along itself away: in a
 * channel between two slanting walls it stays what it is. */
static void flow_along_a_wall(void **state)
{
    (void)state;
    basin b;
    un_vec3 along = un_v3(0.8, 0.6, 0);
    basin_begin(&b, un_v3(1, 1, 0), 24);
    for (int s = 0; s < 4; s++) b.tank.scene.def.domain.open[s] = true;
    tank_solid(&b.tank, tank_plane(&b.tank, un_v3(0.5, 0.31, 0), un_v3(-0.6, 0.8, 0)),
               un_v3(0, 0, 0));
    tank_solid(&b.tank, tank_plane(&b.tank, un_v3(0.5, 0.7, 0), un_v3(0.6, -0.8, 0)),
               un_v3(0, 0, 0));
    basin_build(&b, 0, everywhere, NULL);
    for (int64_t c = 0; c < b.warp.grid.cell_count; c++) b.u[c] = along;
    basin_project(&b);
    double most = 0;
    for (int64_t c = 0; c < b.warp.grid.cell_count; c++)
        if (b.known[c]) most = fmax(most, un_length(un_sub(b.u[c], along)));
    print_message("flow along a wall: off by %.3g\n", most);
    check_below(most, 0.02);
    basin_end(&b);
}

/* A piston that fills a channel's end pushes the liquid ahead of it. */
static void piston_pushes(void **state)
{
    (void)state;
    basin b;
    basin_begin(&b, un_v3(1, 0.4, 0), 20);
    b.tank.scene.def.domain.open[UN_SIDE_RIGHT] = true;
    tank_solid(&b.tank, tank_box(&b.tank, un_v3(-1, -1, -1), un_v3(0.33, 2, 1)), un_v3(0.7, 0, 0));
    basin_build(&b, 0, everywhere, NULL);
    check_ok(b.tank.ctx, un_bodies_update(b.tank.bodies, 0, 1e-6));
    check_ok(b.tank.ctx, un_warp_walls_sample(b.walls));
    basin_project(&b);
    for (int64_t c = 0; c < b.warp.grid.cell_count; c++)
        if (b.known[c]) check_near(b.u[c].x, 0.7, 1e-6);
    basin_end(&b);
}

/* A full tank has no pressure of its own level: it still stops the flow in it. */
static void closed_tank(void **state)
{
    (void)state;
    basin b;
    basin_begin(&b, un_v3(1, 0.7, 0), 16);
    basin_build(&b, 0, everywhere, NULL);
    for (int64_t c = 0; c < b.warp.grid.cell_count; c++) b.u[c] = un_v3(0.3, -1, 0);
    basin_project(&b);
    assert_int_equal(b.report.solve.singular_count, 1);
    check_below(fastest(&b), 1e-8);
    basin_end(&b);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "figure7") == 0) {
        print_figure_seven();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(still_at_any_tilt),
        cmocka_unit_test(surface_presses),
        cmocka_unit_test(stretched_cells_converge),
        cmocka_unit_test(figure_seven),
        cmocka_unit_test(sphere_is_second_order),
        cmocka_unit_test(flow_along_a_wall),
        cmocka_unit_test(piston_pushes),
        cmocka_unit_test(closed_tank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
