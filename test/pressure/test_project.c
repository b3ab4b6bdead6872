/* Projection: rest, closed and moving containers, degenerate liquids, sources. */
#include "pressure/pool.h"

#define G 9.81

/* ---- water at rest ---- */

static void flat_water_at_any_height_stays_at_rest(void **state)
{
    (void)state;
    /* heights between, on, just above and just below centres and faces of cells (h = 1/16) */
    static const double heights[] = {0.437,          0.5,    0.53125, 0.5 + 1e-7, 0.53125 + 1e-7,
                                     0.53125 - 1e-7, 0.01,   0.03126, 0.99,       0.5624999,
                                     1.0 / 3,        0.06251};
    static const double tolerances[] = {1e-10, 1e-4}, limits[] = {1e-8, 1e-3};
    for (size_t n = 0; n < sizeof heights / sizeof *heights; n++)
        for (int t = 0; t < 2; t++) {
            pool p;
            pool_begin(&p, 2, un_v3(1, 1, 0.75), 16);
            pool_build(&p);
            un_vec3 fall = {0, -G * p.in.dt, 0};
            p.in.tolerance = tolerances[t];
            pool_fill(&p, flat_phi, &heights[n]);
            pool_move(&p, uniform_flow, &fall);
            pool_project(&p);
            if (heights[n] < 0.03125)
                assert_int_equal(p.report.cell_count, 0); /* below the first centres */
            else
                assert_true(p.report.cell_count > 0);
            check_below(pool_speed(&p), limits[t] * G * p.in.dt);
            pool_end(&p);
        }
}

/* p = rho g depth, and a tank whose sides are no whole number of cells. */
static void pressure_at_rest_is_depth(void **state)
{
    (void)state;
    double height = 0.437;
    pool p;
    pool_begin(&p, 2, un_v3(0.93, 1, 0.71), 16);
    pool_build(&p);
    const un_grid *g = &p.tank.grid;
    un_vec3 fall = {0, -G * p.in.dt, 0};
    pool_fill(&p, flat_phi, &height);
    pool_move(&p, uniform_flow, &fall);
    pool_project(&p);
    check_below(pool_speed(&p), 1e-7 * G * p.in.dt);
    double deepest = 0;
    for (int32_t k = 1; k < g->n[2] - 1; k++)
        for (int32_t j = 1; j < g->n[1] - 1; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                double depth = height - un_grid_center(g, i, j, k).y;
                check_near(p.pressure->p[c], depth > 0 ? 1000 * G * depth : 0, 0.01);
                deepest = fmax(deepest, p.pressure->p[c]);
            }
    check_below(3900, deepest);
    /* the pressure of this step is the next one's guess, whatever its length */
    p.in.dt *= 0.5;
    p.in.kick *= 0.5;
    fall.y *= 0.5;
    pool_move(&p, uniform_flow, &fall);
    pool_project(&p);
    assert_in_range(p.report.solve.iterations, 0, 1);
    pool_end(&p);
}

typedef struct tilt {
    un_vec3 up;
    double height;
} tilt;

static double tilted_phi(un_vec3 x, const void *arg)
{
    const tilt *t = arg;
    return un_dot(x, t->up) - t->height;
}

static void tilted_water_under_tilted_gravity_stays_at_rest(void **state)
{
    (void)state;
    const tilt tilts[] = {
        {{0.3, 1, 0}, 0.55}, {{0.2, 1, -0.4}, 0.43}, {{1, 1, 1}, 0.8}, {{-1, 0.05, 0.1}, -0.37}};
    for (size_t n = 0; n < sizeof tilts / sizeof *tilts; n++) {
        pool p;
        tilt t = tilts[n];
        t.up = un_normalize(t.up);
        pool_begin(&p, 2, un_v3(1, 1, 1), 15);
        pool_build(&p);
        un_vec3 fall = un_scale(t.up, -G * p.in.dt);
        pool_fill(&p, tilted_phi, &t);
        pool_move(&p, uniform_flow, &fall);
        pool_project(&p);
        assert_true(p.report.cell_count > 100);
        /* phi is a float: its last bit moves the surface by 1e-7 of a cell */
        check_below(pool_speed(&p), 3e-6 * G * p.in.dt);
        pool_end(&p);
    }
}

/* ---- closed and full ---- */

static void full_closed_tank_is_solved(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 2, un_v3(1, 0.8, 0.6), 20);
    pool_build(&p);
    pool_fill(&p, everywhere, NULL);
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    assert_int_equal(p.report.cell_count, 20 * 16 * 12);
    assert_int_equal(p.report.solve.singular_count, 1);
    check_below(p.report.max_divergence, 1e-6);
    /* gravity alone moves nothing there */
    un_vec3 fall = {0, -G * p.in.dt, 0};
    pool_move(&p, uniform_flow, &fall);
    pool_project(&p);
    check_below(pool_speed(&p), 1e-8 * G * p.in.dt);
    pool_end(&p);
}

/* A body that moves in a full tank displaces as much in front as it leaves behind: all of the
 * liquid can follow, with no divergence left. */
static void full_closed_tank_with_a_moving_body(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 20);
    tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.47, 0.5, 0.52), 0.21), un_v3(0.6, 0.2, 0));
    pool_build(&p);
    tank_move(&p.tank, 0, p.in.dt);
    pool_fill(&p, everywhere, NULL);
    un_vec3 still = {0, 0, 0};
    pool_move(&p, uniform_flow, &still);
    pool_project(&p);
    assert_int_equal(p.report.solve.singular_count, 1);
    check_below(0.1, pool_speed(&p)); /* it does move */
    check_below(pool_speed(&p), 1.5);
    /* What the fractions of faces leave over is the same small expansion in every cell. */
    check_below(p.report.max_divergence, 0.02);
    pool_end(&p);
}

/* A piston that fills the tank's cross-section: the liquid in front moves with it, as a block. */
static void piston_velocity_is_met(void **state)
{
    (void)state;
    double edge = 0.3;
    for (int tilted = 0; tilted < 2; tilted++) {
        pool p;
        pool_begin(&p, 2, un_v3(1, 0.5, 0.5), 20);
        p.tank.scene.def.domain.open[UN_SIDE_RIGHT] = true;
        un_vec3 velocity = {0.7, 0, 0};
        tank_solid(&p.tank, tank_box(&p.tank, un_v3(-1, -1, -1), un_v3(edge + 0.013, 2, 2)),
                   velocity);
        pool_build(&p);
        tank_move(&p.tank, 0, p.in.dt);
        pool_fill(&p, everywhere, NULL);
        const un_grid *g = &p.tank.grid;
        un_vec3 start = {tilted ? -0.4 : 0, 0, 0};
        pool_move(&p, uniform_flow, &start);
        pool_project(&p);
        int faces = 0;
        for (int32_t k = 1; k < g->n[2] - 1; k++)
            for (int32_t j = 1; j < g->n[1] - 1; j++)
                for (int32_t i = 9; i < g->n[0] - 1; i++) {
                    int64_t f = un_grid_cell(g, i, j, k);
                    check_near(p.u[0][f], 0.7, 1e-6);
                    faces++;
                }
        assert_true(faces > 900);
        pool_end(&p);
    }
}

/* A plate across the tank: two chambers, both full, each fixed only up to its own constant. */
static void two_closed_chambers(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 2, un_v3(1, 0.5, 0.5), 20);
    tank_solid(&p.tank, tank_box(&p.tank, un_v3(0.41, -1, -1), un_v3(0.56, 2, 2)), un_v3(0, 0, 0));
    pool_build(&p);
    pool_fill(&p, everywhere, NULL);
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    assert_int_equal(p.report.solve.component_count, 2);
    assert_int_equal(p.report.solve.singular_count, 2);
    check_below(p.report.max_divergence, 1e-6);
    /* An expansion that a closed chamber cannot follow is given up, not blown up. */
    p.in.expansion = 0.5;
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    check_below(pool_speed(&p), 5);
    pool_end(&p);
}

/* ---- odd liquids ---- */

static double drops_phi(un_vec3 x, const void *arg)
{
    double d = INFINITY;
    for (int n = 0; n < *(const int *)arg; n++) {
        un_vec3 c = {0.2 + 0.3 * (n % 3), 0.2 + 0.3 * (n / 3 % 3), 0.2 + 0.3 * (n / 9)};
        d = fmin(d, un_length(un_sub(x, c)) - 0.11);
    }
    return d;
}

static void separate_drops_fall_freely(void **state)
{
    (void)state;
    int count = 27;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 20);
    pool_build(&p);
    pool_fill(&p, drops_phi, &count);
    un_vec3 fall = {0.2, -G * p.in.dt, 0};
    pool_move(&p, uniform_flow, &fall);
    pool_project(&p);
    assert_int_equal(p.report.solve.component_count, 27);
    assert_int_equal(p.report.solve.singular_count, 0);
    /* nothing holds them: no pressure, the velocity stays */
    for (int64_t c = 0; c < p.tank.grid.cell_count; c++) {
        check_near(p.pressure->p[c], 0, 1e-6);
        if (p.known[1][c]) check_near(p.u[1][c], fall.y, 1e-9);
    }
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    check_below(p.report.max_divergence, 1e-6);
    pool_end(&p);
}

static void single_cell_puddle_and_lone_drop(void **state)
{
    (void)state;
    for (int corner = 0; corner < 2; corner++) {
        pool p;
        pool_begin(&p, 2, un_v3(1, 1, 1), 8);
        pool_build(&p);
        const un_grid *g = &p.tank.grid;
        for (int64_t c = 0; c < g->cell_count; c++) p.phi[c] = 0.1f;
        int32_t at = corner ? 1 : 4;
        p.phi[un_grid_cell(g, at, 1, at)] = -0.01f;
        un_vec3 fall = {0, -G * p.in.dt, 0};
        pool_move(&p, uniform_flow, &fall);
        pool_project(&p);
        assert_int_equal(p.report.cell_count, 1);
        check_below(p.report.max_divergence, 1e-6);
        assert_true(p.u[1][un_grid_cell(g, at, 1, at)] == 0); /* the floor holds it */
        pool_end(&p);
    }
}

static double nowhere(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return 1;
}

/* A cell in the corner of a floor and a wall that is barely liquid; air around it. */
static double speck_phi(un_vec3 x, const void *arg)
{
    double h = *(const double *)arg;
    return x.x < h && x.y < h && fabs(x.z - 0.5 - 0.5 * h) < 0.1 * h ? -0.05 * h : 0.95 * h;
}

static un_vec3 away(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return un_v3(1, 0, 0);
}

/* Liquid that leaves a wall is not held back there by a pressure which is little over a cell, but
 * acts over a twentieth of one; nor for the one step in which the wall lets it go. */
static void walls_do_not_hold_what_is_barely_liquid(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 8);
    pool_build(&p);
    const un_grid *g = &p.tank.grid;
    pool_fill(&p, speck_phi, &g->h);
    pool_move(&p, away, NULL);
    p.in.let_go = 1e-3;
    pool_project(&p);
    assert_int_equal(p.report.cell_count, 1);
    int64_t c = p.pressure->place[0];
    check_near(p.u[0][c + 1], 1, 1e-9);
    assert_true(un_pressure_let_go(p.pressure->p[c]));
    pool_end(&p);
}

static void no_liquid_at_all(void **state)
{
    (void)state;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 8);
    tank_solid(&p.tank, tank_box(&p.tank, un_v3(-1, -1, -1), un_v3(2, 0.52, 2)), un_v3(0, 0, 0));
    pool_build(&p);
    for (int round = 0; round < 2; round++) {
        double height = 0.5;
        if (round == 0)
            pool_fill(&p, nowhere, NULL);
        else
            pool_fill(&p, flat_phi, &height); /* all of it inside the solid */
        pool_move(&p, wild_flow, NULL);
        pool_project(&p);
        check_below(p.report.max_divergence, 1e-6);
        for (int64_t c = 0; c < p.tank.grid.cell_count; c++)
            assert_true(isfinite(p.pressure->p[c]));
        if (round == 0) assert_int_equal(p.report.cell_count, 0);
    }
    pool_end(&p);
}

/* ---- sources and corrections ---- */

static double outflow(const pool *p, int64_t c)
{
    const un_grid *g = &p->tank.grid;
    double sum = 0;
    for (int a = 0; a < 3; a++) {
        int64_t up = c + g->stride[a];
        sum += p->tank.walls->area[a][up] * p->u[a][up] - p->tank.walls->area[a][c] * p->u[a][c];
    }
    return sum / g->h;
}

static void divergence_is_what_sources_ask_for(void **state)
{
    (void)state;
    double height = 0.62;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 16);
    pool_build(&p);
    const un_grid *g = &p.tank.grid;
    int32_t cell[3] = {(int32_t)un_grid_cell(g, 5, 4, 6), (int32_t)un_grid_cell(g, 9, 3, 1),
                       (int32_t)un_grid_cell(g, 5, 4, 6)}; /* one twice */
    double rate[3] = {2.0, -0.5, 0.25};
    double volume[3];
    for (int i = 0; i < 3; i++) volume[i] = rate[i] * g->volume * p.in.dt;
    un_inflow inflow = {.cell = cell, .volume = volume, .count = 3};
    p.in.inflow = &inflow;
    p.in.expansion = 0.125;
    pool_fill(&p, flat_phi, &height);
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    for (int32_t k = 1; k < g->n[2] - 1; k++)
        for (int32_t j = 1; j < g->n[1] - 1; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                if (!(p.phi[c] < 0)) continue;
                double want = 0.125 + (c == cell[0] ? 2.25 : c == cell[1] ? -0.5 : 0);
                check_near(outflow(&p, c), want, 1e-6);
            }
    /* a source in the air, or in nothing, is nobody's */
    cell[0] = cell[1] = cell[2] = (int32_t)un_grid_cell(g, 5, 14, 6);
    p.in.expansion = 0;
    pool_project(&p);
    check_below(p.report.max_divergence, 1e-6);
    pool_end(&p);
}

/* Crowded liquid gets an expansion; thinned liquid inside a contraction; next to air none. */
static void crowding_becomes_divergence(void **state)
{
    (void)state;
    double height = 0.62;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 16);
    pool_build(&p);
    const un_grid *g = &p.tank.grid;
    float *colour = un_alloc(p.tank.ctx, (size_t)g->cell_count, sizeof *colour);
    for (int64_t c = 0; c < g->cell_count; c++) colour[c] = 1.03f; /* noise */
    int64_t crowded = un_grid_cell(g, 5, 4, 6), thin = un_grid_cell(g, 9, 3, 3);
    int64_t top = un_grid_cell(g, 8, 10, 8); /* the last liquid layer, centre at 0.594 */
    colour[crowded] = 1.15f;
    colour[thin] = 0.85f;
    colour[top] = 0.6f;
    p.in.colour = colour;
    pool_fill(&p, flat_phi, &height);
    assert_true(p.phi[top] < 0 && p.phi[top + g->stride[1]] > 0);
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    check_near(outflow(&p, crowded), 1.0, 1e-5);
    check_near(outflow(&p, thin), -1.0, 1e-5);
    check_near(outflow(&p, top), 0, 1e-6);
    check_near(outflow(&p, un_grid_cell(g, 3, 3, 3)), 0, 1e-6);
    un_free(p.tank.ctx, colour);
    pool_end(&p);
}

/* ---- threads, memory, nonsense ---- */

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    double *first[3] = {NULL, NULL, NULL};
    for (int32_t threads = 1; threads <= 4; threads++) {
        pool p;
        double height = 0.7;
        pool_begin(&p, threads, un_v3(1, 1, 1), 30);
        tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.4, 0.5, 0.5), 0.2), un_v3(0.5, 0, 0));
        pool_build(&p);
        tank_move(&p.tank, 0, p.in.dt);
        size_t bytes = (size_t)p.tank.grid.cell_count * sizeof(double);
        pool_fill(&p, flat_phi, &height);
        pool_move(&p, wild_flow, NULL);
        pool_project(&p);
        assert_int_equal(un_pressure_constrain(p.tank.ctx, p.u, NULL, p.known, &p.tank.grid,
                                               p.tank.walls),
                         UN_OK);
        for (int a = 0; a < 3; a++) {
            if (threads == 1) {
                first[a] = malloc(bytes);
                memcpy(first[a], p.u[a], bytes);
            }
            assert_memory_equal(first[a], p.u[a], bytes);
        }
        pool_end(&p);
    }
    for (int a = 0; a < 3; a++) free(first[a]);
}

static void what_is_not_finite_is_reported(void **state)
{
    (void)state;
    double height = 0.62;
    pool p;
    pool_begin(&p, 2, un_v3(1, 1, 1), 8);
    pool_build(&p);
    pool_fill(&p, flat_phi, &height);
    pool_move(&p, wild_flow, NULL);
    p.u[1][un_grid_cell(&p.tank.grid, 4, 3, 4)] = NAN;
    check_ok(p.tank.ctx, un_pressure_project(p.pressure, &p.in, &p.report));
    assert_false(p.report.solve.finite);
    /* and the next step is not poisoned */
    pool_move(&p, wild_flow, NULL);
    pool_project(&p);
    check_below(p.report.max_divergence, 1e-6);
    pool_end(&p);
}

static un_status project_once(un_context *ctx, void *arg)
{
    pool *p = arg;
    un_pressure *pressure;
    un_projection_report report;
    UN_TRY(un_pressure_create(ctx, &p->tank.grid, &pressure));
    un_status status = un_pressure_project(pressure, &p->in, &report);
    un_pressure_destroy(pressure);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    double height = 0.62;
    pool p;
    pool_begin(&p, 1, un_v3(1, 1, 1), 6);
    pool_build(&p);
    pool_fill(&p, flat_phi, &height);
    pool_move(&p, wild_flow, NULL);
    check_allocation_failures(project_once, &p, 100);
    pool_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_water_at_any_height_stays_at_rest),
        cmocka_unit_test(pressure_at_rest_is_depth),
        cmocka_unit_test(tilted_water_under_tilted_gravity_stays_at_rest),
        cmocka_unit_test(full_closed_tank_is_solved),
        cmocka_unit_test(full_closed_tank_with_a_moving_body),
        cmocka_unit_test(piston_velocity_is_met),
        cmocka_unit_test(two_closed_chambers),
        cmocka_unit_test(separate_drops_fall_freely),
        cmocka_unit_test(single_cell_puddle_and_lone_drop),
        cmocka_unit_test(walls_do_not_hold_what_is_barely_liquid),
        cmocka_unit_test(no_liquid_at_all),
        cmocka_unit_test(divergence_is_what_sources_ask_for),
        cmocka_unit_test(crowding_becomes_divergence),
        cmocka_unit_test(same_bits_for_any_thread_count),
        cmocka_unit_test(what_is_not_finite_is_reported),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
