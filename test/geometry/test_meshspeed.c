/* test-labels: timing
 * A million triangles: loading, report, tree, signed distances. Prints figures; asserts only what
 * any machine should manage, busy or not. */
#include "encode.h"

#include <time.h>
#include <unistd.h>

/* Of this process, so that others on the machine do not count. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void load_all_formats(un_context *ctx, const un_trimesh *ball)
{
    for (int f = 0; f < FORMATS; f++) {
        char path[] = "/tmp/undine-meshspeed-XXXXXX";
        int fd = mkstemp(path);
        text_buffer b = encode(ball, (format)f);
        FILE *file = fdopen(fd, "wb");
        assert_int_equal(fwrite(b.bytes, 1, b.size, file), b.size);
        fclose(file);
        free(b.bytes);
        un_trimesh m;
        double before = processor_seconds();
        check_ok(ctx, un_trimesh_load(ctx, path, &m));
        double seconds = processor_seconds() - before;
        unlink(path);
        print_message("load %-14s %6.1f MB  %.2f s\n", FORMAT_LABEL[f], (double)b.size / 1e6,
                      seconds);
        assert_int_equal(m.triangle_count, ball->triangle_count);
        check_below(seconds, 10);
        un_trimesh_free(ctx, &m);
    }
}

static double radius(const un_vec3 u, double bump)
{
    double a = acos(un_clamp(u.y, -1, 1)), b = atan2(-u.z, u.x);
    return 1 + bump * sin(9 * a) * sin(8 * b);
}

/* Points between `from` and `to` of the ball's radius. */
static void ask(const un_shape *s, const char *what, double from, double to, double bump)
{
    enum { N = 100000 };
    static un_vec3 x[N];
    for (uint64_t i = 0; i < N; i++) {
        un_vec3 u = un_normalize(un_v3(un_random(3 * i, 1) - 0.5, un_random(3 * i + 1, 1) - 0.5,
                                       un_random(3 * i + 2, 1) - 0.5));
        x[i] = un_scale(u, radius(u, bump) * (from + (to - from) * un_random(i, 2)));
    }
    int wrong = 0;
    double before = processor_seconds();
    for (int i = 0; i < N; i++) {
        double d = un_shape_distance(s, x[i]);
        double beyond = un_length(x[i]) - radius(un_normalize(x[i]), bump);
        wrong += fabs(beyond) > 1e-3 && (d < 0) != (beyond < 0);
    }
    double seconds = processor_seconds() - before;
    print_message("ask  %-26s %8.0f a second and core\n", what, N / seconds);
    assert_int_equal(wrong, 0);
    assert_true(N / seconds > 2000);
}

/* Rows of a grid over the ball, as a simulation asks them. */
static void ask_grid(const un_shape *s, int32_t n)
{
    un_vec3 x[512];
    double d[512];
    double before = processor_seconds();
    for (int32_t k = 0; k < n; k++)
        for (int32_t j = 0; j < n; j++) {
            for (int32_t i = 0; i < n; i++)
                x[i] = un_v3(2.4 * i / n - 1.2, 2.4 * j / n - 1.2, 2.4 * k / n - 1.2);
            un_shape_distances(s, x, n, d);
        }
    double seconds = processor_seconds() - before;
    print_message("ask  rows of a grid, %3d^3      %8.0f a second and core\n", n,
                  (double)n * n * n / seconds);
}

/* Runs along the surface, within half a percent of it. */
static void ask_along(const un_shape *s, double bump)
{
    enum { RUNS = 200, N = 500 };
    un_vec3 x[N];
    double d[N], before = processor_seconds();
    for (uint64_t r = 0; r < RUNS; r++) {
        for (uint64_t i = 0; i < N; i++) {
            double a = 0.3 + 2.5 * un_random(r, 4), b = 6 * un_random(r, 5) + 1e-3 * (double)i;
            un_vec3 u = un_v3(sin(a) * cos(b), cos(a), -sin(a) * sin(b));
            x[i] = un_scale(u, radius(u, bump) * (0.995 + 0.01 * un_random(r * N + i, 6)));
        }
        un_shape_distances(s, x, N, d);
    }
    double seconds = processor_seconds() - before;
    print_message("ask  runs along the surface     %8.0f a second and core\n", RUNS * N / seconds);
}

static void a_million_triangles(void **state)
{
    (void)state;
    const double bump = 0.05;
    un_context *ctx = check_context();
    un_trimesh ball = mesh_ball(ctx, 501, bump);
    print_message("%d triangles\n", ball.triangle_count);
    load_all_formats(ctx, &ball);
    size_t bytes = un_context_bytes(ctx);
    double before = un_seconds(), work = processor_seconds();
    un_trimesh_report report;
    check_ok(ctx, un_trimesh_examine(ctx, &ball, &report));
    print_message("report         %.2f s, %.2f s of processor time\n", un_seconds() - before,
                  processor_seconds() - work);
    before = un_seconds(), work = processor_seconds();
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *s;
    check_ok(ctx, un_shape_mesh(set, &ball, &s, &report));
    print_message("report + tree  %.2f s, %.2f s of processor time, %.0f MB\n",
                  un_seconds() - before, processor_seconds() - work,
                  (double)(un_context_bytes(ctx) - bytes) / 1e6);
    check_below(processor_seconds() - work, 10);
    assert_int_equal(report.open_edges, 0);
    ask(s, "at random within 1 %", 0.99, 1.01, bump);
    ask(s, "at random within 10 %", 0.9, 1.1, bump);
    ask(s, "at random inside", 0, 1, bump);
    ask(s, "at random, 2 to 3 radii off", 2, 3, bump);
    ask_along(s, bump);
    ask_grid(s, 64);
    ask_grid(s, 128);
    un_shape_set_destroy(set);
    un_trimesh_free(ctx, &ball);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_triangles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
