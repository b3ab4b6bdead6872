/* Mesh shapes against brute force over all triangles; sides of whole, torn, doubled and inverted
 * meshes; reports. */
#include "geometry/meshtree.h"
#include "meshes.h"

typedef struct fixture {
    un_context *ctx;
    un_shape_set *set;
} fixture;

static fixture start(void)
{
    fixture f = {.ctx = check_context()};
    f.set = un_shape_set_create(f.ctx);
    return f;
}

static void finish(fixture *f)
{
    un_shape_set_destroy(f->set);
    check_context_end(f->ctx);
}

static un_shape *make(fixture *f, const un_trimesh *m, un_trimesh_report *report)
{
    un_shape *s;
    check_ok(f->ctx, un_shape_mesh(f->set, m, &s, report));
    return s;
}

static un_vec3 random_point(uint64_t i, double side)
{
    return un_v3(side * (2 * un_random(3 * i, 5) - 1), side * (2 * un_random(3 * i + 1, 5) - 1),
                 side * (2 * un_random(3 * i + 2, 5) - 1));
}

/* ---- brute force, by other means than the library's ---- */

static double segment_distance(un_vec3 a, un_vec3 b, un_vec3 x)
{
    un_vec3 e = un_sub(b, a);
    double l2 = un_dot(e, e), t = l2 > 0 ? un_clamp(un_dot(un_sub(x, a), e) / l2, 0, 1) : 0;
    return un_length(un_sub(x, un_mad(a, e, t)));
}

/* Height over the plane where the foot is inside all three edges, else the nearest edge. */
static double slow_triangle_distance(un_vec3 a, un_vec3 b, un_vec3 c, un_vec3 x)
{
    un_vec3 n = un_cross(un_sub(b, a), un_sub(c, a));
    double area = un_length(n), d = segment_distance(a, b, x);
    d = fmin(d, fmin(segment_distance(b, c, x), segment_distance(c, a, x)));
    if (area == 0) return d;
    n = un_scale(n, 1 / area);
    un_vec3 p = un_mad(x, n, -un_dot(un_sub(x, a), n));
    bool in = un_dot(un_cross(un_sub(b, a), un_sub(p, a)), n) >= 0 &&
              un_dot(un_cross(un_sub(c, b), un_sub(p, b)), n) >= 0 &&
              un_dot(un_cross(un_sub(a, c), un_sub(p, c)), n) >= 0;
    return in ? fmin(d, fabs(un_dot(un_sub(x, a), n))) : d;
}

static double slow_distance(const un_trimesh *m, un_vec3 x)
{
    double d = INFINITY;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        const int32_t *v = m->triangle[t];
        d = fmin(
            d, slow_triangle_distance(m->position[v[0]], m->position[v[1]], m->position[v[2]], x));
    }
    return d;
}

static double slow_winding(const un_trimesh *m, un_vec3 x)
{
    double sum = 0;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        const int32_t *v = m->triangle[t];
        un_vec3 a = un_sub(m->position[v[0]], x), b = un_sub(m->position[v[1]], x);
        un_vec3 c = un_sub(m->position[v[2]], x);
        double la = un_length(a), lb = un_length(b), lc = un_length(c);
        sum += 2 * atan2(un_dot(a, un_cross(b, c)),
                         la * lb * lc + un_dot(a, b) * lc + un_dot(b, c) * la + un_dot(c, a) * lb);
    }
    return sum / (4 * UN_PI);
}

/* Points of all distances: about the whole mesh and close to its triangles. */
static un_vec3 probe(const un_trimesh *m, const un_box3 *b, int i)
{
    un_vec3 size = un_sub(b->max, b->min), r = random_point((uint64_t)i, 1);
    if (i % 2) {
        un_vec3 middle = un_scale(un_add(b->min, b->max), 0.5);
        return un_add(middle, un_v3(r.x * size.x, r.y * size.y, r.z * size.z));
    }
    const int32_t *v = m->triangle[un_hash64((uint64_t)i) % (uint64_t)m->triangle_count];
    double u = un_random((uint64_t)i, 8), w = (1 - u) * un_random((uint64_t)i, 9);
    un_vec3 p = un_add(un_scale(m->position[v[0]], 1 - u - w),
                       un_add(un_scale(m->position[v[1]], u), un_scale(m->position[v[2]], w)));
    return un_mad(p, r, un_length(size) * pow(10, -1 - 8 * un_random((uint64_t)i, 10)));
}

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

/* ---- sides ---- */

/* The side is right at all distances from the surface, on faces, near edges and vertices. */
static void sides_close_to_the_surface(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 24, 0.2);
    un_trimesh_report report;
    un_shape *s = make(&f, &m, &report);
    assert_int_equal(report.open_edges + report.nonmanifold_edges, 0);
    assert_int_equal(report.component_count, 1);
    for (int i = 0; i < 4000; i++) {
        int32_t t = (int32_t)(un_hash64((uint64_t)i) % (uint64_t)m.triangle_count);
        const int32_t *v = m.triangle[t];
        un_vec3 a = m.position[v[0]], b = m.position[v[1]], c = m.position[v[2]];
        double margin = i % 3 ? 1e-3 : 0.2; /* weights of the corners at least */
        double u = margin + (1 - 3 * margin) * un_random((uint64_t)i, 1);
        double w = margin + (1 - 2 * margin - u) * un_random((uint64_t)i, 2);
        un_vec3 n = un_normalize(un_cross(un_sub(b, a), un_sub(c, a)));
        un_vec3 p = un_add(un_scale(a, 1 - u - w), un_add(un_scale(b, u), un_scale(c, w)));
        double h = pow(10, -12 + 7 * un_random((uint64_t)i, 3));
        double out = un_shape_distance(s, un_mad(p, n, h));
        double in = un_shape_distance(s, un_mad(p, n, -h));
        check_near(out, h, 1e-15);
        check_near(in, -h, 1e-15);
    }
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

static bool outside(const un_box3 *b, un_vec3 x)
{
    return x.x < b->min.x || x.x > b->max.x || x.y < b->min.y || x.y > b->max.y || x.z < b->min.z ||
           x.z > b->max.z;
}

static void winding_numbers(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 40, 0.3);
    for (int32_t n = 0; n < m.vertex_count; n++) m.position[n].y *= 0.05; /* flat and folded */
    m.triangle_count -= m.triangle_count / 7;                             /* and open */
    un_trimesh_report report;
    check_ok(f.ctx, un_trimesh_examine(f.ctx, &m, &report));
    mesh_tree *tree;
    check_ok(f.ctx, mesh_tree_build(f.ctx, &m, &report, &tree));
    double worst = 0;
    for (int i = 0; i < 500; i++) {
        un_vec3 x = probe(&m, &report.bounds, i);
        worst = fmax(worst, fabs(mesh_tree_winding(tree, x) - slow_winding(&m, x)));
    }
    check_below(worst, 0.03);
    mesh_tree_free(f.ctx, tree);
    un_trimesh_free(f.ctx, &m);

    /* The side follows from it, close to 1/2 too: across the mouth of a bowl. */
    m = mesh_ball(f.ctx, 24, 0.1);
    int32_t kept = 0;
    for (int32_t t = 0; t < m.triangle_count; t++)
        if (m.position[m.triangle[t][0]].y < 0.3) memcpy(m.triangle[kept++], m.triangle[t], 12);
    m.triangle_count = kept;
    un_shape *s = make(&f, &m, NULL);
    un_box3 b = un_shape_bounds(s);
    int near_half = 0;
    for (int i = 0; i < 800; i++) {
        un_vec3 r = random_point((uint64_t)i, 1),
                x = un_v3(0.7 * r.x, 0.15 + 0.15 * r.y, 0.7 * r.z);
        double w = slow_winding(&m, x);
        if (fabs(w - 0.5) < 0.01 || outside(&b, x)) continue;
        near_half += fabs(w - 0.5) < 0.1;
        assert_int_equal(un_shape_distance(s, x) < 0, w > 0.5);
    }
    assert_true(near_half > 150);
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

/* Distances of ball against those of the whole one; points nearer than `margin` to the surface are
 * left out. Returns how many are on the wrong side. */
static int wrong_sides(const un_shape *s, const un_shape *whole, double margin)
{
    int wrong = 0;
    for (int i = 0; i < 4000; i++) {
        un_vec3 x = random_point((uint64_t)i, 1.3);
        double d = un_shape_distance(whole, x);
        if (fabs(d) < margin) continue;
        wrong += (un_shape_distance(s, x) < 0) != (d < 0);
    }
    return wrong;
}

static void sides_of_damaged_meshes(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 30, 0.1), copy;
    un_trimesh_report report;
    un_shape *whole = make(&f, &m, NULL);
    assert_int_equal(wrong_sides(whole, whole, 0), 0);

    /* Turned inside out: reported, and turned back. */
    mesh_turn(&m);
    un_shape *s = make(&f, &m, &report);
    assert_true(report.volume < -3);
    for (int i = 0; i < 1000; i++) {
        un_vec3 x = random_point((uint64_t)i, 1.3);
        check_near(un_shape_distance(s, x), un_shape_distance(whole, x), 1e-13);
    }
    mesh_turn(&m);

    /* Every triangle with its own vertices. */
    copy = mesh_ball(f.ctx, 30, 0.1);
    copy = mesh_soup(f.ctx, &copy);
    s = make(&f, &copy, &report);
    assert_int_equal(report.open_edges, 0);
    assert_int_equal(wrong_sides(s, whole, 0), 0);

    /* One in twenty missing: right beyond the size of a hole. */
    int32_t kept = 0;
    for (int32_t t = 0; t < copy.triangle_count; t++)
        if (un_hash64((uint64_t)t) % 20) memcpy(copy.triangle[kept++], copy.triangle[t], 12);
    assert_in_range(kept, copy.triangle_count * 92 / 100, copy.triangle_count * 97 / 100);
    copy.triangle_count = kept;
    s = make(&f, &copy, &report);
    assert_true(report.open_edges > 100);
    assert_int_equal(wrong_sides(s, whole, 0.07), 0);
    assert_true(wrong_sides(s, whole, 0) < 20);
    un_trimesh_free(f.ctx, &copy);

    /* One in ten twice, then all of them. */
    copy = mesh_empty(f.ctx, m.vertex_count, 2 * m.triangle_count);
    memcpy(copy.position, m.position, (size_t)m.vertex_count * sizeof *m.position);
    for (int part = 10; part >= 1; part -= 9) {
        copy.triangle_count = 0;
        for (int32_t t = 0; t < m.triangle_count; t++)
            for (int32_t k = 0; k < (t % part ? 1 : 2); k++)
                memcpy(copy.triangle[copy.triangle_count++], m.triangle[t], 12);
        s = make(&f, &copy, &report);
        assert_true(report.nonmanifold_edges > 100);
        assert_int_equal(wrong_sides(s, whole, 0), 0);
    }
    un_trimesh_free(f.ctx, &copy);

    /* A few triangles the wrong way round. */
    for (int32_t t = 0; t < m.triangle_count; t += 50)
        mesh_set(&m, t, m.triangle[t][0], m.triangle[t][2], m.triangle[t][1]);
    s = make(&f, &m, &report);
    assert_true(report.nonmanifold_edges > 100);
    assert_int_equal(wrong_sides(s, whole, 0.1), 0);
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

/* Overlapping parts are one body, a shell turned inwards is a hollow, a bowl holds what is in it,
 * a sheet holds nothing. */
static void sides_of_several_parts(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh a = mesh_cube(f.ctx, un_v3(0, 0, 0)), b = mesh_cube(f.ctx, un_v3(0.5, 0.5, 0.5));
    un_trimesh two = mesh_join(f.ctx, &a, &b);
    un_trimesh_report report;
    un_shape *s = make(&f, &two, &report);
    assert_int_equal(report.component_count, 2);
    check_near(report.volume, 2, 1e-12);
    check_near(un_shape_distance(s, un_v3(0.75, 0.75, 0.75)), -0.25, 1e-14);
    check_near(un_shape_distance(s, un_v3(0.25, 0.25, 0.25)), -0.25, 1e-14);
    check_near(un_shape_distance(s, un_v3(1.25, 0.25, 0.25)), 0.25, 1e-14);
    un_trimesh_free(f.ctx, &two);

    a = mesh_ball(f.ctx, 16, 0);
    b = mesh_ball(f.ctx, 16, 0);
    for (int32_t n = 0; n < b.vertex_count; n++) b.position[n] = un_scale(b.position[n], 0.5);
    mesh_turn(&b);
    two = mesh_join(f.ctx, &a, &b);
    s = make(&f, &two, NULL);
    assert_true(un_shape_distance(s, un_v3(0, 0, 0)) > 0.4);
    assert_true(un_shape_distance(s, un_v3(0.7, 0, 0)) < -0.15);
    un_trimesh_free(f.ctx, &two);

    a = mesh_ball(f.ctx, 30, 0);
    int32_t kept = 0;
    for (int32_t t = 0; t < a.triangle_count; t++)
        if (a.position[a.triangle[t][0]].y < 0.4) memcpy(a.triangle[kept++], a.triangle[t], 12);
    a.triangle_count = kept;
    s = make(&f, &a, &report);
    assert_int_equal(report.open_edges, 60);
    assert_true(un_shape_distance(s, un_v3(0, 0, 0)) < -0.9);
    assert_true(un_shape_distance(s, un_v3(0, 0.1, 0)) < 0);
    assert_true(un_shape_distance(s, un_v3(0, 0.9, 0)) > 0);
    mesh_turn(&a); /* an open mesh is turned too */
    s = make(&f, &a, &report);
    assert_true(report.volume < 0);
    assert_true(un_shape_distance(s, un_v3(0, 0, 0)) < -0.9);
    un_trimesh_free(f.ctx, &a);

    a = mesh_empty(f.ctx, 4, 2);
    for (int i = 0; i < 4; i++) a.position[i] = un_v3(i & 1, 0, i >> 1);
    mesh_set(&a, 0, 0, 2, 1);
    mesh_set(&a, 1, 1, 2, 3);
    s = make(&f, &a, &report);
    assert_int_equal(report.open_edges, 4);
    check_near(un_shape_distance(s, un_v3(0.5, -0.1, 0.5)), 0.1, 1e-15);
    check_near(un_shape_distance(s, un_v3(0.5, 0.1, 0.5)), 0.1, 1e-15);
    un_trimesh_free(f.ctx, &a);
    a = mesh_empty(f.ctx, 4, 6); /* three sheets in one place: bounds hold all the same */
    for (int i = 0; i < 4; i++) a.position[i] = un_v3(i & 1, 0, i >> 1);
    for (int k = 0; k < 6; k += 2) {
        mesh_set(&a, k, 0, 2, 1);
        mesh_set(&a, k + 1, 1, 2, 3);
    }
    s = make(&f, &a, &report);
    check_near(un_shape_distance(s, un_v3(0.5, -0.1, 0.5)), 0.1, 1e-15);
    check_near(un_shape_distance(s, un_v3(0.5, 0.1, 0.5)), 0.1, 1e-15);
    un_trimesh_free(f.ctx, &a);
    finish(&f);
}

static void normals(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh m = mesh_ball(f.ctx, 60, 0);
    un_shape *s = make(&f, &m, NULL);
    for (int i = 0; i < 2000; i++) {
        un_vec3 x = random_point((uint64_t)i, 1.2);
        un_vec3 n = un_shape_normal(s, x);
        check_near(un_length(n), 1, 1e-12);
        double d = un_shape_distance(s, x);
        check_near(un_shape_distance(s, un_mad(x, n, -d)), 0, 1e-13);
        if (fabs(d) < 0.3) check_below(1 - un_dot(n, un_normalize(x)), 0.01);
    }
    for (int32_t t = 0; t < m.triangle_count; t++) { /* on faces and vertices themselves */
        const int32_t *v = m.triangle[t];
        un_vec3 a = m.position[v[0]], b = m.position[v[1]], c = m.position[v[2]];
        un_vec3 middle = un_scale(un_add(a, un_add(b, c)), 1.0 / 3);
        check_below(1 - un_dot(un_shape_normal(s, middle), un_normalize(middle)), 0.01);
        check_below(1 - un_dot(un_shape_normal(s, a), un_normalize(a)), 0.01);
    }
    un_trimesh_free(f.ctx, &m);
    finish(&f);
}

/* Runs, single questions and any number of threads give the same bits; also inside a union. */
/* A way enters where the distance vanishes, and nowhere before; those through corners and edges do
 * not slip in between the triangles. */
static void ways_in(void **state)
{
    (void)state;
    fixture f = start();
    un_trimesh ball = mesh_ball(f.ctx, 20, 0.2), cube = mesh_cube(f.ctx, un_v3(1.1, -0.5, -0.5));
    un_pose pose = un_pose_axis(un_v3(1, 2, 3), 40);
    pose.scale = 1.5;
    un_shape *moved, *both, *round;
    un_shape *parts[2] = {make(&f, &ball, NULL), make(&f, &cube, NULL)};
    check_ok(f.ctx, un_shape_union(f.set, parts, 2, &both));
    check_ok(f.ctx, un_shape_move(f.set, both, &pose, &moved));
    int entered = 0, passed = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        un_vec3 a = random_point(2 * i, 3), b = random_point(2 * i + 1, 3);
        double share;
        if (un_shape_distance(moved, a) <= 0) continue;
        assert_true(un_shape_entry(moved, a, b, &share));
        if (share <= 1)
            check_near(un_shape_distance(moved, un_mad(a, un_sub(b, a), share)), 0, 1e-12);
        for (int k = 0; k < 40; k++)
            assert_true(
                un_shape_distance(moved, un_mad(a, un_sub(b, a), fmin(share, 1) * k / 40.001)) > 0);
        entered += share <= 1;
        passed += share > 1;
    }
    assert_true(entered > 300 && passed > 300);
    for (int32_t t = 0; t < ball.triangle_count; t++) {
        un_vec3 v = ball.position[ball.triangle[t][0]], w = ball.position[ball.triangle[t][1]];
        double share;
        assert_true(un_shape_entry(parts[0], un_scale(v, 2), un_v3(0, 0, 0), &share));
        check_near(share, 0.5, 1e-12);
        assert_true(un_shape_entry(parts[0], un_add(v, w), un_v3(0, 0, 0), &share));
        check_near(share, 0.5, 1e-12);
    }
    double share;
    check_ok(f.ctx, un_shape_sphere(f.set, un_v3(0, 0, 0), 1, &round));
    assert_false(un_shape_entry(round, un_v3(2, 0, 0), un_v3(0, 0, 0), &share));
    ball.triangle_count--; /* a hole */
    assert_false(un_shape_entry(make(&f, &ball, NULL), un_v3(2, 0, 0), un_v3(0, 0, 0), &share));
    un_trimesh_free(f.ctx, &ball);
    un_trimesh_free(f.ctx, &cube);
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
        cmocka_unit_test(sides_close_to_the_surface),
        cmocka_unit_test(winding_numbers),
        cmocka_unit_test(sides_of_damaged_meshes),
        cmocka_unit_test(sides_of_several_parts),
        cmocka_unit_test(normals),
        cmocka_unit_test(ways_in),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(reports),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
