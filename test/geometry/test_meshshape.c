/* Mesh shapes: distances against brute force over all triangles; reports. */
#include "meshshapes.h"

static void check_distances(const un_shape *s, const un_trimesh *m, int count, double scale)
{
    un_box3 b = un_shape_bounds(s);
    for (int i = 0; i < count; i++) {
        un_vec3 x = probe(m, &b, i);
        double slow = slow_distance(m, x);
        check_near(fabs(un_shape_distance(s, x)), slow, 1e-14 * (slow + scale));
    }
}

static void distances_are_exact(void **state)
{
    (void)state;
    fixture f = start();
    /* A round one, long thin triangles, a cube far from the origin, one triangle, slivers. */
    un_trimesh ball = mesh_ball(f.ctx, 20, 0.2), needle = mesh_ball(f.ctx, 12, 0.1);
    for (int32_t n = 0; n < needle.vertex_count; n++) needle.position[n].x *= 1e-4;
    un_trimesh far = mesh_cube(f.ctx, un_v3(1e6, -1e6, 3e5));
    un_trimesh tiny = mesh_ball(f.ctx, 10, 0.1);
    for (int32_t n = 0; n < tiny.vertex_count; n++)
        tiny.position[n] = un_scale(tiny.position[n], 1e-7);
    un_trimesh one = mesh_empty(f.ctx, 3, 1);
    one.position[0] = un_v3(0, 0, 0);
    one.position[1] = un_v3(1, 0, 0);
    one.position[2] = un_v3(0, 1, 0.5);
    mesh_set(&one, 0, 0, 1, 2);
    un_trimesh *meshes[] = {&ball, &needle, &far, &tiny, &one};
    const double scales[] = {1, 1, 1e6, 1e-7, 1};
    for (int k = 0; k < 5; k++) {
        check_distances(make(&f, meshes[k], NULL), meshes[k], 500, scales[k]);
        un_trimesh_free(f.ctx, meshes[k]);
    }
    finish(&f);
}

/* Close to vertices and edges, where many triangles are nearly as near as the nearest, and so far
 * away that a triangle is lost in rounding. */
static void distances_very_near_and_far(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 30, 0.1);
    un_shape *s = make(&f, &m, NULL);
    for (int i = 0; i < 700; i++) {
        const int32_t *v = m.triangle[un_hash64((uint64_t)i) % (uint64_t)m.triangle_count];
        double u = i % 2 ? un_random((uint64_t)i, 8) : 0;
        un_vec3 p = un_add(un_scale(m.position[v[0]], 1 - u), un_scale(m.position[v[1]], u));
        p = un_mad(p, random_point((uint64_t)i, 1), pow(10, -7 - 5 * un_random((uint64_t)i, 9)));
        check_near(fabs(un_shape_distance(s, p)), slow_distance(&m, p), 1e-15);
    }
    m.triangle_count = 1;
    s = make(&f, &m, NULL);
    for (int i = 0; i < 500; i++) {
        un_vec3 p = un_scale(random_point((uint64_t)i, 1), pow(10, 12 * un_random((uint64_t)i, 9)));
        double slow = slow_distance(&m, p);
        check_near(un_shape_distance(s, p) / slow, 1, 1e-14);
    }
    const un_vec3 *v = m.position;
    un_vec3 a = v[m.triangle[0][0]], b = v[m.triangle[0][1]], c = v[m.triangle[0][2]];
    un_vec3 n = un_normalize(un_cross(un_sub(b, a), un_sub(c, a)));
    for (double far = 1e-3; far < 1e14; far *= 3) { /* right above it */
        un_vec3 p = un_mad(un_scale(un_add(a, un_add(b, c)), 1.0 / 3), n, far);
        check_near(un_shape_distance(s, p) / far, 1, 1e-12);
    }
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

/* Sizes that shrink without end make a deep tree, equal places one that cannot be divided. */
static void lopsided_meshes(void **state)
{
    (void)state;
    fixture f = start();
    enum { N = 3000 };
    un_trimesh m = mesh_empty(f.ctx, 3 * N, N);
    for (int kind = 0; kind < 2; kind++) {
        for (int32_t t = 0; t < N; t++) {
            double size = kind == 0 ? pow(0.98, t) : 1;
            m.position[3 * t] = un_v3(size, 0, 0);
            m.position[3 * t + 1] = un_v3(size, size, 0);
            m.position[3 * t + 2] = un_v3(size, 0, size);
            mesh_set(&m, t, 3 * t, 3 * t + 1, 3 * t + 2);
        }
        un_shape *s = make(&f, &m, NULL);
        for (int i = 0; i < 100; i++) {
            un_vec3 x =
                un_scale(random_point((uint64_t)i, 1), pow(0.1, 20 * un_random((uint64_t)i, 9)));
            check_near(fabs(un_shape_distance(s, x)), slow_distance(&m, x), 1e-15);
        }
    }
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

/* Triangles without area, of all kinds, beside good ones. */
static void degenerate_triangles(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_empty(f.ctx, 12, 12);
    const un_vec3 p[12] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0},
                           {3, 3, 3}, {4, 3, 3}, {4, 3, 3}, {5, 0, 0}, {6, 0, 0}, {5.5, 1e-13, 0}};
    memcpy(m.position, p, sizeof p);
    for (int i = 0; i < 3; i++) { /* each starting from each corner */
        int a = i, b = (i + 1) % 3, c = (i + 2) % 3;
        mesh_set(&m, 4 * i, a, b, c);                 /* in a line */
        mesh_set(&m, 4 * i + 1, 3 + a, 3 + b, 3 + c); /* a point */
        mesh_set(&m, 4 * i + 2, 6 + a, 6 + b, 6 + c); /* an edge */
        mesh_set(&m, 4 * i + 3, 9 + c, 9 + b, 9 + a); /* a sliver */
    }
    /* Alone, so that none hides behind the others. */
    for (int32_t t = 0; t < 12; t++) {
        un_trimesh alone = m;
        alone.triangle = &m.triangle[t];
        alone.triangle_count = 1;
        un_shape *s = make(&f, &alone, NULL);
        for (int i = 0; i < 500; i++) {
            un_vec3 x = un_add(un_v3(3, 1, 1), random_point((uint64_t)i, 4));
            check_near(un_shape_distance(s, x), slow_distance(&alone, x), 1e-12);
        }
    }
    un_shape *s = make(&f, &m, NULL);
    for (int i = 0; i < 2000; i++) {
        un_vec3 x = un_add(un_v3(3, 1, 1), random_point((uint64_t)i, 4));
        check_near(un_shape_distance(s, x), slow_distance(&m, x), 1e-12);
        check_near(un_length(un_shape_normal(s, x)), 1, 1e-12);
    }
    for (int32_t n = 0; n < 12; n++) {
        check_near(un_shape_distance(s, p[n]), 0, 1e-12);
        check_near(un_length(un_shape_normal(s, p[n])), 1, 1e-12);
    }
    /* Everything in one place. */
    for (int32_t n = 0; n < 12; n++) m.position[n] = un_v3(1, 2, 3);
    s = make(&f, &m, NULL);
    check_near(un_shape_distance(s, un_v3(1, 2, 5)), 2, 1e-14);
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

static void odd_points(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 10, 0);
    un_shape *s = make(&f, &m, NULL);
    assert_true(isnan(un_shape_distance(s, un_v3(NAN, 0, 0))));
    assert_true(un_shape_distance(s, un_v3(INFINITY, 0, 0)) == INFINITY);
    check_near(un_shape_distance(s, un_v3(1e12, 0, 0)) / 1e12, 1, 1e-11);
    assert_true(un_shape_distance(s, un_v3(1e200, 0, 0)) > 1e100);
    check_near(un_length(un_shape_normal(s, un_v3(NAN, 0, 0))), 1, 1e-12);
    assert_true(un_shape_distance(s, un_v3(0, 0, 0)) < -0.9);
    un_trimesh_free(f.ctx, &m);
    assert_int_equal(un_shape_mesh(f.set, &m, &s, NULL), UN_ERROR_ARGUMENT);
    finish(&f);
}

static void same_bits(void **state)
{
    (void)state;
    enum { N = 6000 };
    static un_vec3 x[N];
    static double first[N], d[N];
    for (int i = 0; i < N; i++) /* wandering, then jumping */
        x[i] = i < N / 2 ? un_v3(1.2 * cos(i * 0.01), 1.1 * sin(i * 0.0173), 0.8 * sin(i * 0.005))
                         : random_point((uint64_t)i, i % 2 ? 1.3 : 4);
    for (int32_t threads = 1; threads <= 4; threads++) {
        fixture f = {.ctx = check_context_threads(threads)};
        f.set = un_shape_set_create(f.ctx);
        un_trimesh m = mesh_ball(f.ctx, 60, 0.1); /* enough for several tasks */
        un_shape *s = make(&f, &m, NULL), *u;
        un_shape_distances(s, x, N, threads == 1 ? first : d);
        if (threads > 1) assert_memory_equal(d, first, sizeof d);
        for (int i = 0; i < N; i++) assert_true(un_shape_distance(s, x[i]) == first[i]);
        un_shape *dot, *moved;
        un_pose pose = un_pose_euler(un_v3(10, 20, 30));
        pose.translation = un_v3(0.3, 0.1, -0.2);
        check_ok(f.ctx, un_shape_sphere(f.set, un_v3(1, 0.3, 0), 0.3, &dot));
        check_ok(f.ctx, un_shape_move(f.set, s, &pose, &moved));
        check_ok(f.ctx, un_shape_union(f.set, (un_shape *[]){dot, s, moved}, 3, &u));
        un_shape_distances(u, x, N, d);
        for (int i = 0; i < N; i++) {
            assert_true(d[i] == un_shape_distance(u, x[i]));
            double least = fmin(un_shape_distance(dot, x[i]), first[i]);
            check_near(d[i], fmin(least, un_shape_distance(moved, x[i])), 1e-15);
        }
        m.triangle_count /= 2; /* open: a run may change sides without meeting a triangle */
        s = make(&f, &m, NULL);
        un_shape_distances(s, x, N, d);
        for (int i = 0; i < N; i++) assert_true(d[i] == un_shape_distance(s, x[i]));
        un_trimesh_free(f.ctx, &m);
        finish(&f);
    }
}

/* ---- reports ---- */

static void reports(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh_report r;
    un_trimesh m = mesh_cube(f.ctx, un_v3(1, 2, 3));
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges, 0);
    assert_int_equal(r.nonmanifold_edges, 0);
    assert_int_equal(r.component_count, 1);
    check_near(r.volume, 1, 1e-14);
    assert_true(r.bounds.min.x == 1 && r.bounds.max.y == 3 && r.bounds.max.z == 4);

    mesh_set(&m, 3, m.triangle[3][0], m.triangle[3][2], m.triangle[3][1]); /* one turned */
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges, 0);
    assert_int_equal(r.nonmanifold_edges, 3);
    mesh_set(&m, 3, m.triangle[3][0], m.triangle[3][2], m.triangle[3][1]);

    m.triangle_count = 11; /* one missing */
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges, 3);
    assert_int_equal(r.nonmanifold_edges, 0);
    m.triangle_count = 12;

    un_trimesh point = mesh_empty(f.ctx, 2, 2); /* triangles without area change nothing */
    point.position[0] = m.position[0];
    point.position[1] = m.position[1];
    mesh_set(&point, 0, 0, 0, 1);
    mesh_set(&point, 1, 1, 1, 1);
    m = mesh_join(f.ctx, &m, &point);
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges + r.nonmanifold_edges, 0);
    assert_int_equal(r.component_count, 1);
    m.triangle_count = 12;

    un_trimesh other = mesh_cube(f.ctx, un_v3(2, 2, 3)); /* shares a whole face's places */
    m = mesh_join(f.ctx, &m, &other);
    m = mesh_soup(f.ctx, &m);
    m.position[0].x += 0.0; /* -0 and 0 are one place */
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges, 0);
    assert_int_equal(r.nonmanifold_edges, 5);
    assert_int_equal(r.component_count, 1);
    check_near(r.volume, 2, 1e-14);
    un_trimesh_free(f.ctx, &m);

    m = mesh_cube(f.ctx, un_v3(0, 0, 0));
    m.position[3].z = -0.0;
    m = mesh_soup(f.ctx, &m);
    for (int32_t n = 0; n < m.vertex_count; n += 2)
        if (m.position[n].z == 0) m.position[n].z = -0.0;
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges, 0);
    un_trimesh_free(f.ctx, &m);

    /* A fan whose hub has hundreds of edges, each twice: once a triangle, and a spare vertex. */
    m = mesh_empty(f.ctx, 302, 300);
    m.position[0] = un_v3(0, 0, 0);
    m.position[301] = un_v3(99, 99, 99);
    for (int32_t i = 0; i < 300; i++) {
        m.position[i + 1] = un_v3(cos(i * UN_PI / 150), sin(i * UN_PI / 150), 0);
        mesh_set(&m, (i * 7) % 300, 0, i + 1, (i + 1) % 300 + 1);
    }
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.open_edges, 300);
    assert_int_equal(r.nonmanifold_edges, 0);
    assert_int_equal(r.component_count, 1);
    check_near(r.volume, 0, 1e-14);
    assert_true(r.bounds.max.x <= 1);
    m.triangle_count = 0;
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &r));
    assert_int_equal(r.component_count, 0);
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

/* ---- allocation ---- */

static un_status build_shape(un_context *ctx, void *arg)
{
    un_shape *s;
    un_shape_set *set = un_shape_set_create(ctx);
    if (!set) return UN_ERROR_MEMORY;
    un_status status = un_shape_mesh(set, arg, &s, NULL);
    un_shape_set_destroy(set);
    return status;
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 60, 0.1);
    check_allocation_failures(build_shape, &m, 100);
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_exact),
        cmocka_unit_test(distances_very_near_and_far),
        cmocka_unit_test(lopsided_meshes),
        cmocka_unit_test(degenerate_triangles),
        cmocka_unit_test(odd_points),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(reports),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
