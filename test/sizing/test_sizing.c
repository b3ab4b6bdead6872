/* Each term asks for the sizes it promises, can be switched and scaled, and the whole stays between
 * the finest and the coarsest cell. */
#include "fields.h"

static const double level[6] = {0.5, 0.47, 0.5, 0, 1, 0};

/* ---- curvature ---- */

/* A ball gets cells of a quarter of its radius, whatever the mesh, as long as it shows the ball. */
static void curvature_of_a_ball(void **state)
{
    (void)state;
    const double ball[4] = {0.51, 0.49, 0.503, 0.3};
    const int32_t cells[2] = {32, 64};
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_make(&b,
                   "scene { method = 'tet', " WATER
                   ", detail = { coarsest = 2, finest = 128 }," ALONE("curvature = true") " }",
                   cells[i], ball_set, ball);
        bench_evaluate(&b);
        double near = 0.5 / cells[i];
        extent e = bench_extent(&b, -near, near);
        assert_true(e.count > 1000);
        check_near(e.least, 0.25 * 0.3, 0.15 * 0.25 * 0.3);
        check_near(e.most, 0.25 * 0.3, 0.15 * 0.25 * 0.3);
        bench_end(&b);
    }
}

static void curvature_scales(void **state)
{
    (void)state;
    const double ball[4] = {0.5, 0.5, 0.5, 0.2};
    double size[2];
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_make(&b,
                   i ? "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = "
                       "128 }," ALONE("curvature = 2") " }"
                     : "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = "
                       "128 }," ALONE("curvature = 1") " }",
                   32, ball_set, ball);
        bench_evaluate(&b);
        size[i] = bench_extent(&b, -0.01, 0.01).least;
        bench_end(&b);
    }
    check_near(size[1], 2 * size[0], 1e-6);
}

/* Any flat surface may be as coarse as a surface may be: at any height and tilt, on any mesh. */
static void flat_is_coarse(void **state)
{
    (void)state;
    const double planes[5][6] = {{0.5, 0.47, 0.5, 0, 1, 0},
                                 {0.5, 0.5, 0.5, 0, 1, 0},
                                 {0.5, 0.51, 0.5, 0.3, 1, -0.2},
                                 {0.5, 0.5, 0.5, 1, 1, 1},
                                 {0.52, 0.5, 0.5, -1, 0, 0}};
    for (int i = 0; i < 10; i++) {
        bench b;
        bench_begin(&b, 2, "scene { method = 'tet', " WATER ", detail = { finest = 64 } }");
        if (i < 5)
            bench_uniform(&b, 32);
        else
            bench_graded(&b, 60, 10 * (uint64_t)i);
        bench_fields(&b, plane_set, planes[i % 5]);
        bench_evaluate(&b);
        extent e = bench_extent(&b, -0.05, 0.02);
        check_near(e.least, 1.0 / 32, 1e-7);
        check_near(e.most, 1.0 / 32, 1e-7);
        bench_end(&b);
    }
}

static double noisy_set(un_vec3 x, const double *p)
{
    uint64_t key =
        (uint64_t)(x.x * 1e4) << 40 | (uint64_t)(x.y * 1e4) << 20 | (uint64_t)(x.z * 1e4);
    return plane_set(x, p) + p[6] * (2 * un_random(key, 3) - 1);
}

/* A surface of particles is never quite flat: up to a tenth of a cell, noise does not keep cells
 * from growing. */
static void noise_is_flat(void **state)
{
    (void)state;
    const double plane[7] = {0.5, 0.51, 0.5, 0.1, 1, 0.05, 0.1 / 32};
    bench b;
    bench_make(&b, "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 128 } }",
               32, noisy_set, plane);
    bench_evaluate(&b);
    check_below(2.0 / 32, bench_extent(&b, -1.0 / 32, 1.0 / 32).least);
    bench_end(&b);
}

/* p: normal's angle */
static double edge_set(un_vec3 x, const double *p)
{
    double a = x.x - 0.503, b = x.y - 0.511;
    double u = cos(p[0]) * a + sin(p[0]) * b, v = cos(p[0]) * b - sin(p[0]) * a;
    double outside = hypot(fmax(u, 0), fmax(v, 0));
    return outside > 0 ? outside : fmax(u, v);
}
static double sheet_set(un_vec3 x, const double *p)
{
    return fabs(x.y - 0.511) - 0.5 * p[0];
}

/* What a mesh barely shows makes it finer, so that it will show: sharp edges, and sheets that are
 * flat but thin; sheets of four cells are thick enough. */
static void edges_and_sheets_are_fine(void **state)
{
    (void)state;
    const double h = 1.0 / 32;
    const struct {
        level_set *set;
        double p, least, most; /* cells */
    } cases[] = {
        {edge_set, 0, 0.5, 0.71},      {edge_set, 0.4, 0.5, 0.71},    {edge_set, 0.785, 0.5, 0.71},
        {sheet_set, 1 * h, 0.2, 0.71}, {sheet_set, 2 * h, 0.2, 0.71}, {sheet_set, 3 * h, 0.3, 0.75},
        {sheet_set, 4.1 * h, 4, 100},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b;
        bench_make(&b,
                   "scene { method = 'tet', " WATER
                   ", detail = { coarsest = 1, finest = 256 }," ALONE("curvature = true") " }",
                   32, cases[i].set, &cases[i].p);
        bench_evaluate(&b);
        double least = bench_extent(&b, -h, h).least / h;
        if (!(least >= cases[i].least && least <= cases[i].most))
            fail_msg("case %d: %g cells", (int)i, least);
        bench_end(&b);
    }
}

/* ---- solids ---- */

static void solid_curvature(void **state)
{
    (void)state;
    bench b;
    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 128 },\n"
               "solids = { sphere { center = {.5, .47, .5}, radius = .2 } }, " ALONE(
                   "solid_curvature = true") " }",
               32, plane_set, level);
    bench_evaluate(&b);
    /* Half the radius at the solid, more away from it, where it is dry nothing. */
    double h = 1.0 / 32, least = INFINITY;
    for (int32_t n = 0; n < b.mesh.node_count; n++) {
        double d = un_length(un_sub(b.mesh.x[n], un_v3(0.5, 0.47, 0.5))) - 0.2;
        if (fabs(d) < 0.5 * h && b.phi[n] < h) {
            check_below(b.size[n], 0.5 * 0.2 * 1.2);
            least = fmin(least, b.size[n]);
        }
        if (b.phi[n] > 2.5 * h) check_near(b.size[n], 0.5, 0);
    }
    check_near(least, 0.5 * 0.2, 0.15 * 0.5 * 0.2);
    check_near(b.size[bench_node(&b, un_v3(0.5, 0.1, 0.5))], 0.5 * 0.2 + 0.3 * (0.17 - 1.5 * h),
               0.03);
    bench_end(&b);

    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 128 },\n"
               "solids = { sphere { center = {.5, .47, .5}, radius = .2 } },\n"
               "sizing = { solid_curvature = false } }",
               32, plane_set, level);
    bench_evaluate(&b);
    check_near(bench_extent(&b, -0.1, 0.02).least, 0.125, 1e-7);
    bench_end(&b);
}

/* Within a coarsest surface cell a solid's influence fades, it does not grow. */
static void solid_influence_fades(void **state)
{
    (void)state;
    bench b;
    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 256 },\n"
               "solids = { sphere { center = {.503, .26, .49}, radius = .06 } }, " ALONE(
                   "solid_curvature = true") " }",
               16, plane_set, level);
    bench_evaluate(&b);
    double near = INFINITY, far = INFINITY;
    for (int32_t n = 0; n < b.mesh.node_count; n++) {
        double d = un_length(un_sub(b.mesh.x[n], un_v3(0.503, 0.26, 0.49))) - 0.06;
        if (d > 0 && d < 0.02) near = fmin(near, b.size[n]);
        if (d > 0.05 && d < 0.07) far = fmin(far, b.size[n]);
    }
    check_below(near, 0.045);
    check_below(near + 0.005, far);
    bench_end(&b);
}

/* Cells at a plate thinner than they are get halved; one of three cells is let be. */
static void thin_plates(void **state)
{
    (void)state;
    const double thick[4] = {0.1, 0.5, 1, 3}, high[6] = {0.5, 0.9, 0.5, 0, 1, 0}, h = 1.0 / 32;
    for (int i = 0; i < 4; i++) {
        char text[400];
        bench b;
        snprintf(text, sizeof text,
                 "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 512 },"
                 " solids = { box { min = {-1, -1, .47}, max = {2, .7, %g} } }, " ALONE(
                     "solid_curvature = true") " }",
                 0.47 + thick[i] * h);
        bench_make(&b, text, 32, plane_set, high);
        bench_evaluate(&b);
        double least = INFINITY, most = 0;
        for (int32_t n = 0; n < b.mesh.node_count; n++) {
            un_vec3 x = b.mesh.x[n];
            double d = fabs(x.z - 0.47 - 0.5 * thick[i] * h) - 0.5 * thick[i] * h;
            if (!(d < 0.5 * h && x.y > 0.2 && x.y < 0.4 && x.x > 0.3 && x.x < 0.7)) continue;
            least = fmin(least, b.size[n]);
            most = fmax(most, b.size[n]);
        }
        if (i < 3)
            check_below(most, 0.9 * h);
        else
            check_below(1.2 * h, least);
        if (i < 3) check_below(least, 0.55 * h);
        bench_end(&b);
    }
}

/* ---- depth ---- */

static void depth(void **state)
{
    (void)state;
    const char *const texts[3] = {
        "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 64 } }",
        "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 64 },"
        " sizing = { depth = .5 } }",
        "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 64 },"
        " sizing = { depth = false } }"};
    const double high[6] = {0.5, 0.93, 0.5, 0, 1, 0};
    for (int i = 0; i < 3; i++) {
        bench b;
        bench_make(&b, texts[i], 16, plane_set, high);
        bench_evaluate(&b);
        for (int32_t n = 0; n < b.mesh.node_count; n++) {
            double d = -b.phi[n], factor = i == 0 ? 0.3 : i == 1 ? 0.15 : 0;
            if (d < -0.1) continue;
            check_near(b.size[n], fmin(0.5, fmax(0.125, factor * d)), 1e-6);
        }
        bench_end(&b);
    }
}

/* Beside a body that the liquid moves depth counts from the body; beside another it does not. */
static void depth_beside_bodies(void **state)
{
    (void)state;
    const double high[6] = {0.5, 0.93, 0.5, 0, 1, 0};
    for (int free = 0; free < 2; free++) {
        char text[300];
        snprintf(text, sizeof text,
                 "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 64 },"
                 " solids = { sphere { center = {.5, .25, .5}, radius = .12%s } },"
                 " sizing = { solid_curvature = false, film = false } }",
                 free ? ", density = 500" : "");
        bench b;
        bench_make(&b, text, 16, plane_set, high);
        b.def.bodies = b.bodies;
        bench_evaluate(&b);
        int beside = 0;
        for (int32_t n = 0; n < b.mesh.node_count; n++) {
            double way = un_length(un_sub(b.mesh.x[n], un_v3(0.5, 0.25, 0.5))) - 0.12;
            double d = free ? fmin(-b.phi[n], fmax(way, 0)) : -b.phi[n];
            if (d < -0.1) continue;
            beside += way < 0.2 && -b.phi[n] > 0.5;
            check_near(b.size[n], fmin(0.5, fmax(0.125, 0.3 * d)), 1e-6);
        }
        assert_true(beside > 10);
        bench_end(&b);
    }
}

/* ---- film ---- */

/* Half of the thickness over the floor, down to four finest cells; side walls ask for nothing. */
static void film(void **state)
{
    (void)state;
    const double height[3] = {0.16, 0.02, 0.9}, wanted[3] = {0.08, 4.0 / 128, 0.125};
    for (int i = 0; i < 3; i++) {
        bench b;
        bench_make(&b,
                   "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 128 },"
                   " solids = { sphere { center = {.5, .99, .5}, radius = .005 } }, " ALONE(
                       "film = true") " }",
                   32, plane_set, (const double[6]){0.5, height[i], 0.5, 0, 1, 0});
        bench_evaluate(&b);
        int32_t count = 0;
        for (int32_t n = 0; n < b.mesh.node_count; n++) {
            un_vec3 x = b.mesh.x[n];
            bool inside = x.x > 0.3 && x.x < 0.7 && x.z > 0.3 && x.z < 0.7;
            if (!(b.phi[n] < -1e-6) || (!inside && i < 2)) continue;
            check_near(b.size[n], wanted[i], 1e-6);
            count++;
        }
        assert_true(count > 20);
        bench_end(&b);
    }
}

/* ---- strain ---- */

typedef un_vec3 flow(un_vec3 x);
static un_vec3 shear(un_vec3 x)
{
    return un_v3(20 * x.y, 0, 0);
}
static un_vec3 stretch(un_vec3 x)
{
    return un_v3(10 * x.x, -20 * x.y, 10 * x.z);
}
static un_vec3 turn(un_vec3 x)
{
    return un_v3(100 * x.y + 3, -100 * x.x, 50);
}

static void set_velocity(bench *b, flow *f)
{
    b->velocity = malloc((size_t)b->mesh.node_count * sizeof *b->velocity);
    for (int32_t n = 0; n < b->mesh.node_count; n++) /* outside the liquid nobody knows */
        b->velocity[n] = b->phi[n] < 0 ? f(b->mesh.x[n]) : un_v3(1e9, -1e9, NAN);
    b->def.velocity = b->velocity;
}

static void strain(void **state)
{
    (void)state;
    const struct {
        flow *f;
        double norm;
    } cases[] = {{shear, 20 / sqrt(2)}, {stretch, sqrt(600)}, {turn, 0}};
    for (int i = 0; i < 9; i++) {
        bench b;
        const char *terms[3] = {ALONE("strain = true"), ALONE("strain = 3"),
                                ALONE("strain = false, curvature = true")};
        char text[400];
        snprintf(text, sizeof text,
                 "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 512 }, %s }",
                 terms[i / 3]);
        bench_begin(&b, 2, text);
        if (i % 2)
            bench_uniform(&b, 16);
        else
            bench_graded(&b, 40, 99);
        bench_fields(&b, plane_set, level);
        set_velocity(&b, cases[i % 3].f);
        bench_evaluate(&b);
        double factor = i / 3 == 0 ? 1 : i / 3 == 1 ? 3 : 0;
        double want = 0.3 * sqrt(9.81) * factor / cases[i % 3].norm;
        if (!(want > 0 && want < 0.125)) want = 0.125;
        extent e = bench_extent(&b, -1, -0.1);
        check_near(e.least, want, 1e-4 * want);
        check_near(e.most, want, 1e-4 * want);
        bench_end(&b);
    }
}

/* ---- deformability ---- */

static un_vec3 still(un_vec3 x)
{
    (void)x;
    return un_v3(0, 0, 0);
}
static un_vec3 together(un_vec3 x)
{
    (void)x;
    return un_v3(3, -1, 2);
}
static un_vec3 wavy(un_vec3 x)
{
    return un_v3(1 + 0.5 * sin(4 * x.x), 0, 0);
}

/* [Hong09]'s measure: smooth flow merges, the rest splits, by its table's thresholds. */
static void deformability(void **state)
{
    (void)state;
    const double high[6] = {0.5, 0.93, 0.5, 0, 1, 0};
    flow *const flows[5] = {still, together, shear, stretch, wavy};
    for (int i = 0; i < 5; i++) {
        bench b;
        int32_t merged = 0, split = 0;
        /* nu = 1 m2/s */
        bench_make(&b,
                   "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 64 },"
                   " fluid = { viscosity = 1000 }, sizing = { deformability = true } }",
                   32, plane_set, high);
        set_velocity(&b, flows[i]);
        bench_evaluate(&b);
        float *share = malloc((size_t)b.mesh.node_count * sizeof *share);
        un_sizing_deformability(b.ctx, share, &b.def, 1);
        for (int32_t n = 0; n < b.mesh.node_count; n++) {
            un_vec3 x = b.mesh.x[n];
            double depth = -b.phi[n] * 64, s = 4 * x.x;
            bool edge = fmin(fmin(x.x, 1 - x.x), fmin(fmin(x.y, x.z), 1 - x.z)) < 0.05;
            if (depth < 4) {
                assert_true(share[n] == 1); /* layers A and B */
                continue;
            }
            if (depth < 8 || edge) continue;
            double df = i < 3   ? 0 /* nothing is carried along in a shear flow either */
                        : i < 4 ? INFINITY
                                : fabs((1 + 0.5 * sin(s)) * 2 * cos(s)) / fabs(8 * sin(s));
            if (df < 0.04) check_near(share[n], 1, 1e-6);
            if (df > 0.12) check_near(share[n], 0.5, 1e-6);
            merged += df < 0.04;
            split += df > 0.12;
        }
        assert_true(merged + split > 1000);
        if (i == 4) assert_true(merged > 100 && split > 100);
        free(share);
        bench_end(&b);
    }
}

/* In weightless liquid the speeds that the scene gives take gravity's place. */
static void strain_without_gravity(void **state)
{
    (void)state;
    bench b;
    bench_make(&b,
               "scene { method = 'tet', gravity = {0, 0, 0}, detail = { coarsest = 1, finest = "
               "512 }, liquid = { box { min = {0, 0, 0}, max = {1, .5, 1} }, "
               "velocity = {0, 2, 0} }, " ALONE("strain = true") " }",
               16, plane_set, level);
    set_velocity(&b, shear);
    bench_evaluate(&b);
    check_near(bench_extent(&b, -1, -0.1).least, 0.3 * 2 * sqrt(2) / 20, 1e-5);
    bench_end(&b);
    bench_make(
        &b, "scene { method = 'tet', gravity = {0, 0, 0}, " WATER ", " ALONE("strain = true") " }",
        16, plane_set, level);
    set_velocity(&b, shear);
    bench_evaluate(&b); /* nothing to compare with: no opinion */
    check_near(bench_extent(&b, -1, 0).least, 1.0 / 32, 0);
    bench_end(&b);
}

/* Under water depth wins over strain, at the surface strain. */
static void depth_bounds_strain(void **state)
{
    (void)state;
    const double high[6] = {0.5, 0.93, 0.5, 0, 1, 0};
    bench b;
    bench_make(&b, "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 64 } }",
               16, plane_set, high);
    set_velocity(&b, stretch);
    bench_evaluate(&b);
    double want = 0.3 * sqrt(9.81) / sqrt(600);
    check_near(bench_extent(&b, -0.05, -0.01).least, want, 1e-3);
    extent e = bench_extent(&b, -0.75, -0.7);
    check_below(0.2, e.least);
    bench_end(&b);
}

/* ---- all together ---- */

static void switched_off(void **state)
{
    (void)state;
    const double ball[4] = {0.5, 0.5, 0.5, 0.1};
    bench b;
    bench_make(&b,
               "scene { method = 'tet', " WATER
               ", detail = { coarsest = 2, finest = 64 }, " ALONE("") " }",
               32, ball_set, ball);
    set_velocity(&b, stretch);
    bench_evaluate(&b);
    check_near(bench_extent(&b, -1, 1).least, 0.5, 0);
    bench_end(&b);
}

static void scale(void **state)
{
    (void)state;
    const double ball[4] = {0.5, 0.5, 0.5, 0.3};
    double least[3];
    for (int i = 0; i < 3; i++) {
        bench b;
        bench_make(&b,
                   "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 128 } }",
                   32, ball_set, ball);
        b.def.scale = 1 + i;
        bench_evaluate(&b);
        least[i] = bench_extent(&b, -0.01, 0.01).least;
        bench_end(&b);
    }
    check_near(least[1], 2 * least[0], 1e-6);
    check_near(least[2], 3 * least[0], 0.1 * least[0]); /* steeper than the limit here and there */
}

/* ---- budget ---- */

/* Particles as a power of the scale. */
typedef struct splash {
    double wanted, scale, power;
} splash;

static double splash_count(void *arg, double factor)
{
    const splash *s = arg;
    return s->wanted * pow(s->scale * factor, -s->power);
}

/* Not fewer than 500, when all are as large as they get. */
static double limited_count(void *arg, double factor)
{
    return fmax(splash_count(arg, factor), 500);
}

static void budget(void **state)
{
    (void)state;
    splash s = {1e9, 1, 0};
    assert_true(un_sizing_budget(1, 0, splash_count, &s) == 1);
    assert_true(un_sizing_budget(5, 0, splash_count, &s) == 1);
    s.wanted = 10;
    assert_true(un_sizing_budget(1, 100, splash_count, &s) == 1);
    s.wanted = 85;
    check_near(un_sizing_budget(2, 100, splash_count, &s), 2, 0);
    /* What cannot be kept is kept as well as can be, and forgotten as soon as any other. */
    s = (splash){.wanted = 4000, .scale = 1, .power = 3};
    for (int step = 0; step < 100; step++)
        s.scale = un_sizing_budget(s.scale, 100, limited_count, &s);
    check_below(limited_count(&s, 1), 511);
    check_below(s.scale, 2.2);
    /* A splash comes, stays and goes: it is met at once, and forgotten slowly. */
    for (s.power = 1.5; s.power <= 3; s.power += 0.5) {
        s.scale = 1;
        for (int step = 0; step < 400; step++) {
            s.wanted = step < 50 ? 50 : step < 200 ? 1000 : 50;
            double next = un_sizing_budget(s.scale, 100, splash_count, &s);
            check_below(0.96 * s.scale, next);
            s.scale = next;
            check_below(splash_count(&s, 1), 96);
            if (step >= 50 && step < 200) check_below(60, splash_count(&s, 1));
        }
        check_near(s.scale, 1, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curvature_of_a_ball),
        cmocka_unit_test(curvature_scales),
        cmocka_unit_test(flat_is_coarse),
        cmocka_unit_test(noise_is_flat),
        cmocka_unit_test(edges_and_sheets_are_fine),
        cmocka_unit_test(solid_curvature),
        cmocka_unit_test(solid_influence_fades),
        cmocka_unit_test(thin_plates),
        cmocka_unit_test(depth),
        cmocka_unit_test(depth_beside_bodies),
        cmocka_unit_test(film),
        cmocka_unit_test(strain),
        cmocka_unit_test(deformability),
        cmocka_unit_test(strain_without_gravity),
        cmocka_unit_test(depth_bounds_strain),
        cmocka_unit_test(switched_off),
        cmocka_unit_test(scale),
        cmocka_unit_test(budget),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
