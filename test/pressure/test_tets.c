/* Projection on tets: rest on any tree, order, definiteness, degenerate liquids, sources, threads.
 */
#include "pressure/tet_pool.h"

/* phi is a float: its last bit moves the surface by 1e-7 of a cell. */
#define REST_TILTED 1e-6
/* Levels that floats hold exactly: what the solver's tolerance leaves. */
#define REST_EXACT 1e-8

/* Dense Cholesky factorisation; false where a pivot falls below 1e-12 of its diagonal. */
static bool is_definite(const un_csr *a)
{
    size_t n = (size_t)a->n;
    double *l = calloc(n * n, sizeof *l);
    bool definite = true;
    for (size_t i = 0; i < n && definite; i++) {
        for (int32_t s = a->row[i]; s < a->row[i + 1] && a->col[s] <= (int32_t)i; s++)
            l[i * n + (size_t)a->col[s]] = a->val[s];
        double diagonal = l[i * n + i];
        for (size_t j = 0; j <= i; j++) {
            double sum = l[i * n + j];
            for (size_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            if (j < i)
                l[i * n + j] = sum / l[j * n + j];
            else if (sum > 1e-12 * diagonal)
                l[i * n + i] = sqrt(sum);
            else
                definite = false;
        }
    }
    free(l);
    return definite;
}

/* ---- water at rest ---- */

/* Any gravity, any height, grading through the surface. */
static void tilted_water_rests_on_any_tree(void **state)
{
    (void)state;
    int64_t obtuse = 0, unknowns = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        tet_pool p;
        tet_spots spots = {(int32_t)(3 * seed), seed, 0.04};
        tet_pool_begin(&p, 1, un_v3(1, 1, 1), 4, 32, tet_spotted, &spots);
        for (uint64_t k = 0; k < 5; k++) {
            tet_tilt tilt = {.up = tet_direction(100 * seed + k)};
            un_vec3 at = {0.2 + 0.6 * un_random(k, seed), 0.5, 0.5};
            int32_t n = (int32_t)(un_random(k, seed + 1) * p.mesh.node_count);
            /* some pass just above a node */
            tilt.height = un_dot(tilt.up, k < 3 ? at : p.mesh.x[n]) + (k < 3 ? 0 : 1e-5);
            p.in.by_row = k % 2;
            check_below(tet_pool_rest(&p, &tilt), REST_TILTED);
            assert_false(p.report.cautious);
            check_below(p.report.left_count, 1 + 0.002 * p.report.node_count);
            check_below(p.report.max_divergence, 1e-6);
            obtuse += p.in.by_row ? 0 : p.report.obtuse_count;
            unknowns += p.report.node_count;
        }
        tet_pool_end(&p);
    }
    assert_true(unknowns > 100000);
    assert_true(obtuse > 2000); /* the surface does cross graded tets */
}

static void level_water_rests_to_the_solvers_tolerance(void **state)
{
    (void)state;
    static const double heights[] = {0.4375, 0.5, 0.5 + 0x1p-10, 0.5 - 0x1p-10, 0.53125, 0.296875};
    static const double tolerances[] = {1e-10, 1e-4}, limits[] = {REST_EXACT, 1e-2};
    for (uint64_t seed = 0; seed < 4; seed++) {
        tet_pool p;
        tet_spots spots = {(int32_t)(8 * seed), seed, 0.05};
        tet_pool_begin(&p, 1, un_v3(1, 1, 1), 4, 32, tet_spotted, &spots);
        for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
            for (int t = 0; t < 2; t++) {
                static const un_vec3 ups[] = {{0, 1, 0}, {-1, 0, 0}, {0, 0, 1}};
                tet_tilt tilt = {ups[h % 3], heights[h]};
                if (tilt.up.x < 0) tilt.height -= 1;
                p.in.tolerance = tolerances[t];
                check_below(tet_pool_rest(&p, &tilt), limits[t]);
                assert_true(p.report.node_count > 30);
            }
        tet_pool_end(&p);
    }
}

/* p = rho g depth; and the pressure of a step is the next one's guess, whatever its length. */
static void pressure_at_rest_is_depth(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {9, 4, 0.1};
    tet_tilt tilt = {{0, 1, 0}, 0.6171875};
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), 4, 32, tet_spotted, &spots);
    check_below(tet_pool_rest(&p, &tilt), REST_EXACT);
    assert_true(p.report.cut_count > p.report.obtuse_count && p.report.obtuse_count > 0);
    for (int32_t n = 0; n < p.mesh.node_count; n++) {
        double depth = tilt.height - p.mesh.x[n].y;
        check_near(p.p[n], depth > 0 ? 1000 * G * depth : 0, 1e-3);
    }
    p.in.dt *= 0.5;
    un_vec3 fall = {0, -G * p.in.dt, 0};
    tet_pool_move(&p, tet_steady, &fall);
    tet_pool_project(&p);
    assert_in_range(p.report.solve.iterations, 0, 1);
    /* p = 0 at air nodes does not hold still water */
    p.in.first_order = true;
    tet_pool_move(&p, tet_steady, &fall);
    tet_pool_project(&p);
    check_below(0.1 * G * p.in.dt, tet_pool_speed(&p));
    tet_pool_end(&p);
}

/* ---- order ---- */

#define RADIUS 0.367
static const un_vec3 ball_center = {0.503, 0.491, 0.507};

static double ball_phi(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_length(un_sub(x, ball_center)) - RADIUS;
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
    (void)arg;
    un_vec3 r = un_sub(x, ball_center);
    un_vec3 gradient = un_scale(r, 2 * exp(r.x));
    gradient.x += ball_q(r);
    return un_add(gradient, ball_free(r));
}

typedef struct ball_errors {
    double pressure, speed; /* largest, mean */
} ball_errors;

static ball_errors ball_error(int32_t coarsest, tet_detail *detail, const void *arg, bool by_row,
                              bool first_order)
{
    tet_pool p;
    ball_errors e = {0, 0};
    /* two levels below the coarsest, or one level in all */
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), coarsest, detail == tet_finest ? coarsest : 4 * coarsest,
                   detail, arg);
    p.in.by_row = by_row;
    p.in.first_order = first_order;
    tet_pool_fill(&p, ball_phi, NULL);
    tet_pool_move(&p, ball_flow, NULL);
    tet_pool_project(&p);
    check_below(p.report.max_divergence, 1e-6);
    if (detail != tet_finest && !by_row && !first_order) assert_true(p.report.obtuse_count > 100);
    for (int32_t n = 0; n < p.mesh.node_count; n++) {
        double q = p.p[n] * p.in.dt / p.in.density, want = ball_q(un_sub(p.mesh.x[n], ball_center));
        if (p.pressure->index[n] >= 0) e.pressure = fmax(e.pressure, fabs(q - want));
    }
    double volume = 0;
    for (int32_t t = 0; t < p.mesh.tet_count; t++) {
        if (!p.known[t]) continue;
        un_vec3 want = ball_free(un_sub(un_tets_center(&p.mesh, t), ball_center));
        e.speed += un_tets_volume(&p.mesh, t) * un_length(un_sub(p.u[t], want));
        volume += un_tets_volume(&p.mesh, t);
    }
    e.speed /= volume;
    tet_pool_end(&p);
    return e;
}

static void check_ratio(ball_errors coarse, ball_errors fine)
{
    check_below(1.7, log2(coarse.pressure / fine.pressure));
    check_below(1.1, log2(coarse.speed / fine.speed));
}

static void check_order(int32_t coarsest, tet_detail *detail, const void *arg)
{
    ball_errors e[3], by_row[2], first[2];
    for (int n = 0; n < 3; n++) e[n] = ball_error(coarsest << n, detail, arg, false, false);
    for (int n = 0; n < 2; n++) {
        by_row[n] = ball_error(coarsest << n, detail, arg, true, false);
        first[n] = ball_error(coarsest << n, detail, arg, false, true);
    }
    check_ratio(e[0], e[1]);
    check_ratio(e[1], e[2]);
    check_ratio(by_row[0], by_row[1]);
    check_below(log2(first[0].pressure / first[1].pressure), 1.4);
    check_below(log2(first[0].speed / first[1].speed), 1.05);
    check_below(10 * e[1].pressure, first[1].pressure);
}

static void pressure_in_a_sphere_is_second_order(void **state)
{
    (void)state;
    check_order(12, tet_finest, NULL);
}

static int32_t ball_patches(un_vec3 x, const void *arg)
{
    (void)arg;
    return sin(20 * x.x) * sin(20 * x.y) * sin(20 * x.z) > 0.3 ? UN_LEVELS_MAX : 0;
}

/* Leaves of three sizes all over the sphere, halved from mesh to mesh. */
static void pressure_in_a_sphere_is_second_order_on_graded_meshes(void **state)
{
    (void)state;
    tet_pool base;
    tet_pool_begin(&base, 1, un_v3(1, 1, 1), 4, 16, ball_patches, NULL);
    check_order(4, tet_same, &base.tree);
    tet_pool_end(&base);
}

/* ---- the matrix ---- */

static void matrices_are_positive_definite(void **state)
{
    (void)state;
    int solved = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        tet_pool p;
        tet_spots spots = {(int32_t)seed, seed, 0.08};
        tet_pool_begin(&p, 1, un_v3(1, 1, 1), 2, 8, tet_spotted, &spots);
        for (uint64_t k = 0; k < 6; k++) {
            tet_tilt tilt = {tet_direction(1000 * seed + k), 0};
            tilt.height = un_dot(tilt.up, un_v3(0.5, 0.3 + 0.4 * un_random(k, seed), 0.5));
            tet_pool_fill(&p, tet_tilted, &tilt);
            for (int32_t n = 0; n < p.mesh.node_count && k % 2; n++)
                p.phi[n] += (float)(0.05 * (un_random((uint64_t)n, k) - 0.5));
            tet_pool_move(&p, tet_wild, NULL);
            p.in.by_row = k % 3 == 0;
            tet_pool_project(&p);
            assert_true(is_definite(&p.pressure->matrix));
            check_below(p.report.max_divergence, 1e-5);
            solved += p.report.obtuse_count > 0;
        }
        tet_pool_end(&p);
    }
    assert_true(solved > 30);
}

/* Nothing open but half-pyramids: all that makes up for positive couplings is walled off. */
static void weak_nodes_are_left_out(void **state)
{
    (void)state;
    int64_t left = 0;
    for (uint64_t seed = 0; seed < 16; seed++) {
        tet_pool p;
        tet_spots spots = {4, seed, 0.1};
        tet_pool_begin(&p, 1, un_v3(1, 1, 1), 4, 16, tet_spotted, &spots);
        tet_pool_walls(&p);
        for (int32_t t = 0; t < p.mesh.tet_count; t++)
            p.walls.open[t] = p.mesh.shapes[p.mesh.shape[t]].kind == UN_TET_HALF_PYRAMID;
        for (uint64_t k = 0; k < 6; k++) {
            tet_tilt tilt = {tet_direction(100 * seed + k), 0};
            tilt.height = un_dot(tilt.up, un_v3(0.5, 0.3 + 0.4 * un_random(k, seed), 0.5));
            double speed = tet_pool_rest(&p, &tilt);
            check_below(speed, REST_TILTED);
            assert_false(p.report.cautious);
            check_below(p.report.max_divergence, 1e-6);
            left += p.report.left_count;
        }
        tet_pool_end(&p);
    }
    assert_true(left > 20);
}

/* phi and walls made of noise: no meaning, but a solution. Some matrices are not definite, which
 * conjugate gradients find out; their second try is. */
static void noise_is_solved(void **state)
{
    (void)state;
    static const double depths[] = {1e-9, 1e-4, 1e-4, 1e-2, 0.1, 0.1, 0.1, 0.1};
    int32_t cautious = 0;
    for (uint64_t seed = 2; seed < 6; seed++) {
        tet_pool p;
        tet_spots spots = {2 + (int32_t)seed % 5, seed, 0.12};
        tet_pool_begin(&p, 1, un_v3(1, 1, 1), 2, 8, tet_spotted, &spots);
        tet_pool_walls(&p);
        for (uint64_t k = 0; k < 40; k++) {
            for (int32_t t = 0; t < p.mesh.tet_count; t++) {
                double r = un_random((uint64_t)t, 100 * seed + k);
                bool half = p.mesh.shapes[p.mesh.shape[t]].kind == UN_TET_HALF_PYRAMID;
                p.walls.open[t] = (float)(k % 3 == 0 || half ? 1 : r < 0.3 ? r : 0);
            }
            for (int32_t n = 0; n < p.mesh.node_count; n++) {
                uint64_t depth = un_hash64((uint64_t)n + 1000 * k) % 8;
                p.phi[n] = (float)(depths[depth] * (un_random((uint64_t)n, seed + k) - 0.5));
            }
            p.in.by_row = k % 4 == 3;
            tet_pool_move(&p, tet_wild, NULL);
            tet_pool_project(&p);
            check_below(p.report.max_divergence, 1e-3);
            check_below(tet_pool_speed(&p), 1e4);
            if (p.report.solve.singular_count == 0 && (k < 4 || p.report.cautious))
                assert_true(is_definite(&p.pressure->matrix));
            cautious += p.report.cautious;
        }
        tet_pool_end(&p);
    }
    assert_in_range(cautious, 1, 60);
}

/* ---- closed, empty and small ---- */

static void full_closed_tank_stands_still(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {6, 2, 0.1};
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), 4, 32, tet_spotted, &spots);
    tet_pool_fill(&p, tet_everywhere, NULL);
    un_vec3 fall = {0.3 * G * p.in.dt, -G * p.in.dt, 0};
    tet_pool_move(&p, tet_steady, &fall);
    tet_pool_project(&p);
    assert_int_equal(p.report.node_count, p.mesh.node_count);
    assert_int_equal(p.report.cut_count, 0);
    assert_int_equal(p.report.solve.singular_count, 1);
    check_below(tet_pool_speed(&p), REST_EXACT * G * p.in.dt);
    tet_pool_move(&p, tet_wild, NULL);
    tet_pool_project(&p);
    check_below(p.report.max_divergence, 1e-6);
    check_below(0.1, tet_pool_speed(&p));
    tet_pool_end(&p);
}

static double drops_phi(un_vec3 x, const void *arg)
{
    double d = INFINITY;
    for (int n = 0; n < *(const int *)arg; n++) {
        un_vec3 c = {0.2 + 0.3 * (n % 3), 0.2 + 0.3 * (n / 3 % 3), 0.2 + 0.3 * (n / 9)};
        d = fmin(d, un_length(un_sub(x, c)) - 0.11);
    }
    return d;
}

/* Nothing holds them: no pressure, the velocity stays. */
static void drops_fall_freely(void **state)
{
    (void)state;
    int count = 27;
    tet_pool p;
    tet_spots spots = {20, 7, 0.1};
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), 8, 32, tet_spotted, &spots);
    tet_pool_fill(&p, drops_phi, &count);
    un_vec3 fall = {0.2, -G * p.in.dt, 0};
    tet_pool_move(&p, tet_steady, &fall);
    tet_pool_project(&p);
    assert_int_equal(p.report.solve.component_count, 27);
    assert_int_equal(p.report.solve.singular_count, 0);
    assert_true(p.report.obtuse_count > 0);
    for (int32_t n = 0; n < p.mesh.node_count; n++) check_near(p.p[n], 0, 1e-6);
    for (int32_t t = 0; t < p.mesh.tet_count; t++) check_near(p.u[t].y, fall.y, 1e-9);
    tet_pool_end(&p);
}

static void one_liquid_node_or_none(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {2, 3, 0.1};
    tet_pool_begin(&p, 1, un_v3(1, 1, 1), 2, 8, tet_spotted, &spots);
    int32_t nodes = p.mesh.node_count;
    for (int32_t wet = -1; wet < nodes; wet++) {
        for (int32_t n = 0; n < nodes; n++) p.phi[n] = n == wet ? -1e-4f : 0.05f;
        tet_pool_move(&p, tet_wild, NULL);
        tet_pool_project(&p);
        assert_int_equal(p.report.node_count + p.report.left_count, wet >= 0);
        check_below(p.report.max_divergence, 1e-6);
        int32_t known = 0;
        for (int32_t t = 0; t < p.mesh.tet_count; t++) {
            bool touched = false;
            for (int i = 0; i < 4; i++) touched |= p.mesh.tet[t][i] == wet;
            assert_true(touched || !p.known[t]);
            known += p.known[t];
            un_vec3 before = tet_wild(un_tets_center(&p.mesh, t), NULL);
            if (!p.known[t]) assert_memory_equal(&p.u[t], &before, sizeof before);
            assert_true(un_finite3(p.u[t]));
        }
        if (p.report.node_count)
            assert_int_equal(known, p.mesh.first[wet + 1] - p.mesh.first[wet]);
        else
            assert_int_equal(known, 0);
    }
    tet_pool_end(&p);
}

/* ---- sources ---- */

static void divergence_is_what_sources_ask_for(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {6, 5, 0.12};
    tet_tilt tilt = {{0, 1, 0}, 0.62};
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), 4, 16, tet_spotted, &spots);
    float *source = un_alloc_zero(p.ctx, (size_t)p.mesh.node_count, sizeof *source);
    p.in.source = source;
    for (int32_t n = 0; n < p.mesh.node_count; n += 3) source[n] = (float)(n % 5) - 2;
    tet_pool_fill(&p, tet_tilted, &tilt);
    tet_pool_move(&p, tet_wild, NULL);
    tet_pool_project(&p);
    check_below(p.report.max_divergence, 1e-6); /* less what was asked for */
    /* - int grad N . u, in and at the wall of nothing but open tets, is that divergence */
    for (int32_t n = 0; n < p.mesh.node_count; n++) {
        double inflow = 0, hat = 0;
        if (!(p.phi[n] < 0)) continue;
        for (int32_t e = p.mesh.first[n]; e < p.mesh.first[n + 1]; e++) {
            int32_t t = p.mesh.corner[e] / 4, i = p.mesh.corner[e] % 4;
            double one[4] = {i == 0, i == 1, i == 2, i == 3}, v = un_tets_volume(&p.mesh, t);
            inflow += v * un_dot(un_tets_gradient(&p.mesh, t, one), p.u[t]);
            hat += 0.25 * v;
        }
        check_near(-inflow / hat, source[n], 1e-6);
    }
    un_free(p.ctx, source);
    tet_pool_end(&p);
}

/* ---- threads, memory, nonsense ---- */

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    un_vec3 *first = NULL;
    double *first_p = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        tet_pool p;
        tet_spots spots = {12, 8, 0.2};
        tet_tilt tilt = {un_normalize(un_v3(0.1, 1, 0.2)), 0.7};
        tet_pool_begin(&p, threads, un_v3(1, 1, 0.9), 4, 32, tet_spotted, &spots);
        tank_solid(&p.tank, tank_sphere(&p.tank, un_v3(0.4, 0.5, 0.5), 0.2), un_v3(0.5, 0, 0));
        tet_pool_walls(&p);
        tet_pool_fill(&p, tet_tilted, &tilt);
        tet_pool_move(&p, tet_wild, NULL);
        tet_pool_project(&p);
        assert_true(p.report.node_count > 10000 && p.report.obtuse_count > 0);
        size_t bytes = (size_t)p.mesh.tet_count * sizeof *p.u;
        size_t bytes_p = (size_t)p.mesh.node_count * sizeof *p.p;
        if (!first) {
            first = malloc(bytes);
            first_p = malloc(bytes_p);
            memcpy(first, p.u, bytes);
            memcpy(first_p, p.p, bytes_p);
        }
        assert_memory_equal(first, p.u, bytes);
        assert_memory_equal(first_p, p.p, bytes_p);
        tet_pool_end(&p);
    }
    free(first);
    free(first_p);
}

static void what_is_not_finite_is_reported(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {3, 6, 0.1};
    tet_tilt tilt = {{0, 1, 0}, 0.61};
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), 4, 16, tet_spotted, &spots);
    tet_pool_fill(&p, tet_tilted, &tilt);
    int32_t low = 0, above = 0;
    while (un_tets_center(&p.mesh, low).y > 0.3) low++;
    for (int32_t n = 0; n < p.mesh.node_count; n++)
        if (p.phi[n] > 0 && p.phi[n] < 0.03f) above = n;
    for (int round = 0; round < 3; round++) {
        tet_pool_move(&p, tet_wild, NULL);
        float kept = p.phi[above];
        if (round == 0) p.u[low].y = NAN;
        if (round == 1) p.u[low].x = INFINITY;
        if (round == 2) p.phi[above] = NAN;
        check_ok(p.ctx, un_tet_pressure_project(p.pressure, &p.arena, &p.in, &p.report));
        un_arena_reset(&p.arena);
        assert_false(p.report.solve.finite);
        p.phi[above] = kept;
        /* and the next step is not poisoned */
        p.p[5] = NAN;
        tet_pool_move(&p, tet_wild, NULL);
        tet_pool_project(&p);
        check_below(p.report.max_divergence, 1e-6);
    }
    /* stopped early is data */
    p.in.iteration_limit = 2;
    tet_pool_move(&p, tet_wild, NULL);
    tet_pool_forget(&p);
    check_ok(p.ctx, un_tet_pressure_project(p.pressure, &p.arena, &p.in, &p.report));
    assert_true(p.report.solve.finite && !p.report.solve.converged && !p.report.cautious);
    assert_int_equal(p.report.solve.iterations, 2);
    tet_pool_end(&p);
}

static un_status project_once(un_context *ctx, void *arg)
{
    tet_pool *p = arg;
    un_pressure *pressure;
    un_tet_projection_report report;
    un_arena arena;
    un_arena_init(&arena, ctx);
    UN_TRY(un_pressure_create(ctx, NULL, &pressure));
    un_status status = un_tet_pressure_project(pressure, &arena, &p->in, &report);
    un_pressure_destroy(pressure);
    un_arena_free(&arena);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {3, 6, 0.1};
    tet_tilt tilt = {{0, 1, 0}, 0.61};
    tet_pool_begin(&p, 1, un_v3(1, 1, 1), 4, 16, tet_spotted, &spots);
    tet_pool_fill(&p, tet_tilted, &tilt);
    tet_pool_move(&p, tet_wild, NULL);
    check_allocation_failures(project_once, &p, 100);
    tet_pool_end(&p);
}

/* ---- a pressure at the surface ---- */

/* Under P = f.x + c the liquid moves as under the force -f, and c does nothing, on a graded mesh
 * with a solid in it and liquid of varying density. */
static void surface_pressure_is_a_force(void **state)
{
    (void)state;
    for (int linear = 0; linear < 2; linear++) {
        un_vec3 slope = linear ? un_v3(700, -300, 450) : un_v3(0, 0, 0);
        tet_pool p[2];
        double *surface = NULL;
        float *light[2];
        for (int k = 0; k < 2; k++) {
            tet_spots spots = {9, 5, 0.07};
            tet_tilt tilt = {.up = tet_direction(3), .height = 0.1};
            tilt.height = un_dot(tilt.up, un_v3(0.5, 0.5, 0.5));
            tet_pool_begin(&p[k], 2, un_v3(1, 1, 1), 4, 16, tet_spotted, &spots);
            tank_solid(&p[k].tank, tank_sphere(&p[k].tank, un_v3(0.3, 0.3, 0.5), 0.17),
                       un_v3(0, 0, 0));
            tet_pool_walls(&p[k]);
            tet_pool_fill(&p[k], tet_tilted, &tilt);
            tet_pool_move(&p[k], tet_wild, NULL);
            light[k] = un_alloc(p[k].ctx, (size_t)p[k].mesh.tet_count, sizeof *light[k]);
            for (int32_t t = 0; t < p[k].mesh.tet_count; t++)
                light[k][t] = (float)(1 + 0.3 * un_tets_center(&p[k].mesh, t).x);
            p[k].in.lightness = light[k];
            p[k].in.tolerance = 1e-12;
        }
        un_vec3 push = un_scale(slope, -p[0].in.dt / p[0].in.density);
        for (int32_t t = 0; t < p[0].mesh.tet_count; t++)
            p[0].u[t] = un_mad(p[0].u[t], push, light[0][t]);
        surface = un_alloc(p[1].ctx, (size_t)p[1].mesh.node_count, sizeof *surface);
        for (int32_t n = 0; n < p[1].mesh.node_count; n++)
            surface[n] = 5000 + un_dot(slope, p[1].mesh.x[n]);
        p[1].in.surface = surface;
        for (int k = 0; k < 2; k++) tet_pool_project(&p[k]);
        assert_true(p[0].report.node_count > 300);
        for (int32_t t = 0; t < p[0].mesh.tet_count; t++) {
            assert_int_equal(p[0].known[t], p[1].known[t]);
            if (p[0].known[t]) check_below(un_length(un_sub(p[0].u[t], p[1].u[t])), 1e-9);
        }
        for (int32_t n = 0; n < p[0].mesh.node_count; n++)
            if (p[0].pressure->index[n] >= 0)
                check_near(p[1].p[n] - p[0].p[n], surface[n], 1e-4);
            else
                assert_true(p[1].p[n] == 0);
        /* from its own answer as the guess nothing is left to be done */
        tet_pool_move(&p[1], tet_wild, NULL);
        tet_pool_project(&p[1]);
        check_below(p[1].report.solve.iterations, 1);
        un_free(p[1].ctx, surface);
        for (int k = 0; k < 2; k++) {
            un_free(p[k].ctx, light[k]);
            tet_pool_end(&p[k]);
        }
    }
}

int main(void)
{
    check_races_in("same_bits*");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tilted_water_rests_on_any_tree),
        cmocka_unit_test(level_water_rests_to_the_solvers_tolerance),
        cmocka_unit_test(pressure_at_rest_is_depth),
        cmocka_unit_test(pressure_in_a_sphere_is_second_order),
        cmocka_unit_test(pressure_in_a_sphere_is_second_order_on_graded_meshes),
        cmocka_unit_test(matrices_are_positive_definite),
        cmocka_unit_test(weak_nodes_are_left_out),
        cmocka_unit_test(noise_is_solved),
        cmocka_unit_test(full_closed_tank_stands_still),
        cmocka_unit_test(drops_fall_freely),
        cmocka_unit_test(one_liquid_node_or_none),
        cmocka_unit_test(divergence_is_what_sources_ask_for),
        cmocka_unit_test(same_bits_for_any_thread_count),
        cmocka_unit_test(what_is_not_finite_is_reported),
        cmocka_unit_test(failing_allocations_are_clean),
        cmocka_unit_test(surface_pressure_is_a_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
