/* The grid that warps: certificate, volumes, the inverse map, the solver of its potential. */
#include "mesh/tank.h"

/* A monitor around a ball, or a plane for a radius of 0. */
static un_monitor make_monitor(un_context *ctx, un_vec3 size, double strength, double radius)
{
    un_monitor m = {.n = {33, 33, size.z > 0 ? 33 : 1}};
    double side[3] = {size.x, size.y, size.z};
    for (int a = 0; a < 3; a++) m.spacing[a] = side[a] / 32;
    m.density = un_alloc(ctx, (size_t)m.n[0] * (size_t)m.n[1] * (size_t)m.n[2], sizeof(float));
    assert_non_null(m.density);
    for (int32_t k = 0, n = 0; k < m.n[2]; k++)
        for (int32_t j = 0; j < m.n[1]; j++)
            for (int32_t i = 0; i < m.n[0]; i++, n++) {
                un_vec3 x = un_v3(i * m.spacing[0], j * m.spacing[1], k * m.spacing[2]);
                double d = radius > 0 ? un_length(un_sub(x, un_scale(size, 0.45))) - radius
                                      : x.y - 0.4 * size.y;
                m.density[n] = (float)(1 + strength * exp(-10 * fabs(d)));
            }
    return m;
}

static un_warp make_warp(un_context *ctx, un_vec3 size, int32_t finest, double strength,
                         double radius, un_warp_kind kind, int32_t rounds)
{
    un_warp w;
    un_monitor m = make_monitor(ctx, size, strength, radius);
    check_ok(ctx, un_warp_init(&w, ctx, size, finest));
    un_warp_step step = {.monitor = &m, .kind = kind, .strength = strength, .rounds = rounds};
    un_warp_move(&w, &step);
    un_free(ctx, m.density);
    return w;
}

static const un_vec3 square = {1, 0.8, 0}, box = {1, 0.8, 0.6};

/* The certificate is at most what cells span along each axis: the diagonal of the derivative. */
static void check_certificate(const un_warp *w)
{
    const un_grid *g = &w->grid;
    double least = 1;
    for (int32_t k = g->dim == 2 ? 0 : 1; k < (g->dim == 2 ? 1 : g->n[2] - 1); k++)
        for (int32_t j = 1; j < g->n[1] - 1; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                un_vec3 x = un_warp_node(w, i, j, k);
                least = fmin(least, (un_warp_node(w, i + 1, j, k).x - x.x) / w->stretch.x / g->h);
                least = fmin(least, (un_warp_node(w, i, j + 1, k).y - x.y) / w->stretch.y / g->h);
            }
    assert_true(least < 0.9);
    check_below(w->certificate, least + 1e-9);
}

/* Cells cover the domain once: none is inverted, and their volumes add up to it. */
static void covers_the_domain(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int n = 0; n < 8; n++) {
        bool flat = n & 1;
        un_vec3 size = flat ? square : box;
        un_warp w = make_warp(ctx, size, 24, n & 4 ? 60 : 4, 0.25,
                              n & 2 ? UN_WARP_POISSON : UN_WARP_MONGE_AMPERE, 40);
        double sum = 0, least = INFINITY;
        for (int64_t c = 0; c < w.grid.cell_count; c++) {
            if (w.jacobian[c] == 0) continue;
            sum += w.jacobian[c];
            least = fmin(least, w.jacobian[c]);
        }
        assert_true(w.certificate >= UN_WARP_LEAST);
        check_certificate(&w);
        assert_true(least > 0);
        double domain = size.x * size.y * (flat ? 1 : size.z);
        check_near(sum * w.grid.volume / domain, 1, flat ? 1e-6 : 2e-3);
        un_warp_free(&w);
    }
    check_context_end(ctx);
}

/* Monge-Ampere gives cells the volumes that the monitor asks for. */
static void volumes_follow_the_monitor(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int flat = 0; flat < 2; flat++) {
        un_vec3 size = flat ? square : box;
        un_monitor m = make_monitor(ctx, size, 4, 0.25);
        un_warp w = make_warp(ctx, size, flat ? 48 : 27, 4, 0.25, UN_WARP_MONGE_AMPERE, 80);
        double sum = 0, squares = 0, low = INFINITY, high = 0;
        int64_t count = 0;
        for (int64_t c = 0; c < w.grid.cell_count; c++) {
            if (w.jacobian[c] == 0) continue;
            double is = w.jacobian[c] * un_monitor_at(&m, w.centre[c]);
            sum += is;
            squares += is * is;
            low = fmin(low, w.jacobian[c]);
            high = fmax(high, w.jacobian[c]);
            count++;
        }
        double mean = sum / (double)count, off = sqrt(squares / (double)count - mean * mean) / mean;
        print_message("%dD: volumes off by %.2g of the mean, ratio %.2g\n", flat ? 2 : 3, off,
                      high / low);
        check_below(off, 0.01);
        assert_true(high / low > 3.5);
        un_free(ctx, m.density);
        un_warp_free(&w);
    }
    check_context_end(ctx);
}

/* The grid settles on its target without overshooting, whatever the steps. */
static void follows_in_time(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_monitor m = make_monitor(ctx, square, 4, 0);
    double reached[2], most = 0;
    for (int n = 0; n < 2; n++) {
        un_warp w = make_warp(ctx, square, 16, 4, 0, UN_WARP_MONGE_AMPERE, 60);
        int64_t c = un_grid_cell(&w.grid, 4, 5, 0);
        double target = w.target[c];
        memset(w.potential, 0, (size_t)w.grid.cell_count * sizeof(double));
        memset(w.before, 0, (size_t)w.grid.cell_count * sizeof(double));
        un_warp_step step = {
            .monitor = &m, .strength = 4, .dt = n ? 0.005 : 0.0025, .settle = 0.02};
        for (double t = 0; t < 0.0399; t += step.dt) un_warp_move(&w, &step);
        reached[n] = w.potential[c] / target;
        for (int i = 0; i < 200; i++) {
            un_warp_move(&w, &step);
            most = fmax(most, w.potential[c] / target);
        }
        check_near(w.potential[c] / target, 1, 1e-6);
        un_warp_free(&w);
    }
    check_near(reached[0], 1 - 3 * exp(-2), 0.05);
    check_near(reached[1], reached[0], 0.08);
    check_below(most, 1 + 1e-9);
    un_free(ctx, m.density);
    check_context_end(ctx);
}

/* Every point of the domain is found again, from a bad guess too. */
static void points_are_found(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int flat = 0; flat < 2; flat++) {
        un_vec3 size = flat ? square : box;
        un_warp w = make_warp(ctx, size, 24, 12, 0.2, UN_WARP_MONGE_AMPERE, 60);
        for (uint64_t n = 0; n < 3000; n++) {
            un_vec3 x = un_v3(size.x * un_random(n, 1), size.y * un_random(n, 2),
                              flat ? 0 : size.z * un_random(n, 3));
            if (n % 8 == 0) x.x = n % 16 ? 0 : size.x;
            un_vec3 xi = un_warp_locate(&w, x, un_warp_guess(&w, n % 2 ? x : un_scale(size, 0.5)));
            un_vec3 y = un_warp_map(&w, xi);
            check_below(un_length(un_sub(x, y)), 1e-11);
        }
        un_warp_free(&w);
    }
    check_context_end(ctx);
}

/* Eight points at once are found and read as one is, and none depends on the others. */
static void eight_are_as_one(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int flat = 0; flat < 2; flat++) {
        un_vec3 size = flat ? square : box;
        un_warp w = make_warp(ctx, size, 24, 12, 0.2, UN_WARP_MONGE_AMPERE, 60);
        un_warp_eight e = {.xi = {{{0.3}, {0.4}, {flat ? 0 : 0.2}}}};
        un_warp_eight_at(&w, &e);
        for (uint64_t n = 0; n < 400; n++) {
            un_eight x, xi, turned, again, step, v, slope[3], row[3];
            double det[8];
            for (uint64_t i = 0; i < 8; i++) {
                uint64_t q = 8 * n + i;
                double at[3] = {size.x * un_random(q, 1), size.y * un_random(q, 2),
                                size.z * un_random(q, 3)};
                if (q % 9 == 0) at[0] = q % 2 ? 0 : size.x;
                un_vec3 guess =
                    un_warp_guess(&w, q % 3 ? un_v3(at[0], at[1], at[2]) : un_scale(size, 0.5));
                const double from[3] = {guess.x, guess.y, guess.z};
                for (int a = 0; a < 3; a++) {
                    x.of[a][i] = at[a];
                    xi.of[a][i] = from[a];
                    /* half of them among easy ones */
                    turned.of[a][7 - i] = i % 2 ? at[a] : e.x.of[a][0];
                    again.of[a][7 - i] = i % 2 ? from[a] : e.xi.of[a][0];
                }
            }
            un_warp_eight_find(&w, &x, &xi);
            un_warp_eight_find(&w, &turned, &again);
            e.xi = xi;
            un_warp_eight_at(&w, &e);
            un_warp_eight_det(&e, det);
            un_warp_eight_blend(&w.grid, w.centre, &e, &v, slope);
            un_warp_eight_gradient(&e, slope, w.grid.inverse_h, row);
            for (int i = 0; i < 8; i++) {
                un_vec3 to = un_eight_of(&xi, i), place = un_eight_of(&e.x, i);
                un_warp_point one;
                UN_BY_DIM(w.grid.dim, one = un_warp_point_in(&w, to, dim));
                for (int a = 0; a < 3 && i % 2; a++) assert_true(xi.of[a][i] == again.of[a][7 - i]);
                check_below(un_length(un_sub(place, un_eight_of(&x, i))), 1e-11);
                check_below(un_length(un_sub(place, one.x)), 1e-14);
                check_near(det[i], un_warp_det(&one), 1e-12);
                assert_true(e.base[i] == one.at.base);
                /* the place itself as a field: its gradient is the unit matrix */
                check_below(un_length(un_sub(un_eight_of(&v, i), place)), 1e-14);
                for (int a = 0; a < w.grid.dim; a++)
                    for (int b = 0; b < w.grid.dim; b++) check_near(row[a].of[b][i], a == b, 1e-10);
            }
            /* from there to the next eight */
            un_warp_eight_walk(&w, &e, &turned, UN_WARP_EXACT, &step);
            for (int i = 0; i < 8; i++)
                check_below(un_length(un_sub(un_eight_of(&e.x, i), un_eight_of(&turned, i))),
                            1e-11);
        }
        un_warp_free(&w);
    }
    check_context_end(ctx);
}

/* A V-cycle takes more than half off the error, on odd grids too. */
static void cycles_converge(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_warp w;
    for (int n = 0; n < 2; n++) {
        check_ok(ctx, un_warp_init(&w, ctx, n ? square : un_v3(1, 0.7, 0.37), n ? 57 : 29));
        int64_t count = w.level[0].count;
        double *b = un_alloc(ctx, (size_t)count, sizeof *b), mean = 0;
        double *x = un_alloc(ctx, 3 * (size_t)count, sizeof *x), error[2] = {0};
        assert_non_null(b);
        assert_non_null(x);
        for (int64_t c = 0; c < count; c++) mean += b[c] = un_random((uint64_t)c, 5);
        for (int64_t c = 0; c < count; c++) b[c] -= mean / (double)count;
        for (int cycles = 0; cycles < 3; cycles++)
            un_warp_solve(&w, x + cycles * count, b, cycles == 2 ? 30 : 3 + cycles);
        for (int64_t c = 0; c < count; c++)
            for (int cycles = 0; cycles < 2; cycles++)
                error[cycles] += pow(x[cycles * count + c] - x[2 * count + c], 2);
        check_below(sqrt(error[1] / error[0]), 0.4);
        un_free(ctx, b);
        un_free(ctx, x);
        un_warp_free(&w);
    }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_the_domain), cmocka_unit_test(volumes_follow_the_monitor),
        cmocka_unit_test(follows_in_time),   cmocka_unit_test(points_are_found),
        cmocka_unit_test(eight_are_as_one),  cmocka_unit_test(cycles_converge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
