/* Mesh shapes: sides of whole, torn, doubled and inverted meshes, normals and ways in. */
#include "geometry/meshtree.h"
#include "meshshapes.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_close_to_the_surface),
        cmocka_unit_test(winding_numbers),
        cmocka_unit_test(sides_of_damaged_meshes),
        cmocka_unit_test(sides_of_several_parts),
        cmocka_unit_test(normals),
        cmocka_unit_test(ways_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
