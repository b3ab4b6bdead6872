/* Contours are closed, manifold and oriented for any signs, meet the boundary in flat sharp caps,
 * converge at second order, and have the same bits for any thread count. */
#include "surface/fields.h"

static un_trimesh contour_closed(un_context *ctx, const un_lattice *lattice, int32_t euler)
{
    un_trimesh mesh;
    check_ok(ctx, un_surface_contour(ctx, lattice, &mesh));
    assert_int_equal(check_closed(ctx, &mesh).euler, euler);
    return mesh;
}

static double torus(un_vec3 x, const double *p)
{
    double ring = hypot(x.x, x.z) - p[0];
    return hypot(ring, x.y) - p[1];
}

static void examine_sees_defects(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_vec3 x[6] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {2, 2, 2}};
    int32_t tetrahedron[6][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}, {0, 1, 4}};
    un_trimesh mesh = {
        .vertex_count = 6, .triangle_count = 4, .position = x, .triangle = tetrahedron};
    un_surface_topology topology = check_closed(ctx, &mesh);
    assert_int_equal(topology.euler, 2);
    assert_int_equal(topology.component_count, 1);
    check_near(un_surface_volume(&mesh), 1.0 / 6, 1e-16);
    mesh.triangle_count = 5; /* a flap on one edge */
    check_ok(ctx, un_surface_examine(ctx, &mesh, &topology));
    assert_int_equal(topology.nonmanifold_edges, 1);
    assert_int_equal(topology.open_edges, 2);
    mesh.triangle_count = 3;
    check_ok(ctx, un_surface_examine(ctx, &mesh, &topology));
    assert_int_equal(topology.open_edges, 3);
    assert_int_equal(topology.euler, 1);
    mesh.triangle_count = 4;
    tetrahedron[3][1] = 2, tetrahedron[3][2] = 3;
    check_ok(ctx, un_surface_examine(ctx, &mesh, &topology));
    assert_int_equal(topology.misoriented_edges, 3);
    tetrahedron[3][1] = 6;
    assert_int_equal(un_surface_examine(ctx, &mesh, &topology), UN_ERROR_ARGUMENT);
    check_context_end(ctx);
}

static void sphere_converges_at_second_order(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double p[4] = {0.02, -0.013, 0.031, 0.37}, volume_error[3], radius_error[3];
    double exact = 4.0 / 3 * UN_PI * p[3] * p[3] * p[3];
    for (int32_t level = 0; level < 3; level++) {
        int32_t n = 20 << level;
        un_lattice lattice =
            make_lattice(ctx, n + 1, n + 3, n + 2, un_v3(-0.5, -0.5, -0.5), un_v3(1, 1, 1));
        fill(&lattice, sphere, p);
        un_trimesh mesh = contour_closed(ctx, &lattice, 2);
        volume_error[level] = fabs(un_surface_volume(&mesh) / exact - 1);
        radius_error[level] = 0;
        for (int32_t v = 0; v < mesh.vertex_count; v++)
            radius_error[level] = fmax(radius_error[level], fabs(sphere(mesh.position[v], p)));
        un_trimesh_free(ctx, &mesh);
        un_free(ctx, lattice.phi);
    }
    for (int32_t level = 0; level < 2; level++) {
        double order = log2(volume_error[level] / volume_error[level + 1]);
        assert_true(order > 1.8 && order < 2.3);
        assert_true(log2(radius_error[level] / radius_error[level + 1]) > 1.6);
    }
    check_below(volume_error[2], 8e-4);
    check_below(radius_error[2], 1e-4);
    check_context_end(ctx);
}

static void torus_has_a_hole(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double p[2] = {0.6, 0.25};
    un_lattice lattice = make_lattice(ctx, 66, 40, 63, un_v3(-1, -0.5, -1), un_v3(2, 1, 2));
    fill(&lattice, torus, p);
    un_trimesh mesh = contour_closed(ctx, &lattice, 0);
    check_near(un_surface_volume(&mesh), 2 * UN_PI * UN_PI * p[0] * p[1] * p[1], 0.004);
    un_trimesh_free(ctx, &mesh);
    un_free(ctx, lattice.phi);
    check_context_end(ctx);
}

/* A plane's contour is the plane, within what the float samples and the hair allow. */
static void plane_is_planar_at_any_tilt(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (uint64_t seed = 0; seed < 20; seed++) {
        un_vec3 normal = un_normalize(
            un_v3(un_random(0, seed) - 0.5, un_random(1, seed) - 0.5, un_random(2, seed) - 0.5));
        double p[4] = {normal.x, normal.y, normal.z, 0.4 * (un_random(3, seed) - 0.5)};
        un_lattice lattice = make_lattice(ctx, 17, 20, 12, un_v3(-1, -1, -1), un_v3(2, 2.5, 2));
        fill(&lattice, plane, p);
        un_trimesh mesh = contour_closed(ctx, &lattice, 2);
        int32_t on_plane = 0, off_plane = 0;
        un_vec3 far = un_lattice_point(&lattice, 16, 19, 11);
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 x = mesh.position[v];
            double distance = plane(x, p);
            bool wall =
                x.x == -1 || x.y == -1 || x.z == -1 || x.x == far.x || x.y == far.y || x.z == far.z;
            check_below(distance, 2e-5);
            if (!wall && fabs(distance) > 1e-6) off_plane++;
            if (fabs(distance) < 1e-6) on_plane++;
        }
        assert_true(on_plane > 100 && off_plane < 5);
        /* Free triangles face along the normal. */
        for (int32_t t = 0; t < mesh.triangle_count; t++) {
            double d[3];
            for (int32_t c = 0; c < 3; c++)
                d[c] = fabs(plane(mesh.position[mesh.triangle[t][c]], p));
            if (fmax(d[0], fmax(d[1], d[2])) > 1e-6) continue;
            assert_true(un_dot(area_vector(&mesh, t), normal) > 0);
        }
        un_trimesh_free(ctx, &mesh);
        un_free(ctx, lattice.phi);
    }
    check_context_end(ctx);
}

static double constant(un_vec3 x, const double *p)
{
    (void)x;
    return p[0];
}

/* All liquid: the lattice's own box, to the last bit of its planes, with no thin triangles. */
static void full_lattice_is_its_box(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int32_t sizes[][3] = {{2, 2, 2},  {3, 2, 2},  {2, 5, 3}, {9, 8, 7},
                          {66, 4, 5}, {64, 3, 3}, {65, 3, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int32_t *n = sizes[s];
        un_lattice lattice =
            make_lattice(ctx, n[0], n[1], n[2], un_v3(0.3, -7, 2), un_v3(1.7, 0.9, 1.1));
        fill(&lattice, constant, (double[]){-1});
        un_trimesh mesh = contour_closed(ctx, &lattice, 2);
        int32_t a = n[0] - 1, b = n[1] - 1, c = n[2] - 1;
        assert_int_equal(mesh.triangle_count, 4 * (a * b + b * c + c * a));
        check_near(un_surface_volume(&mesh), 1.7 * 0.9 * 1.1, 1e-13);
        double least = 0.49 * fmin(lattice.h[0] * lattice.h[1],
                                   fmin(lattice.h[1] * lattice.h[2], lattice.h[2] * lattice.h[0]));
        for (int32_t t = 0; t < mesh.triangle_count; t++)
            assert_true(un_length(area_vector(&mesh, t)) > least);
        un_trimesh_free(ctx, &mesh);
        un_free(ctx, lattice.phi);
    }
    check_context_end(ctx);
}

/* Half full: flat top at its height, everything else in the walls, every triangle's normal along
 * an axis. */
static void tank_is_sharp(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double heights[] = {0.51234, 0.3, 0.013, 0.987};
    for (size_t s = 0; s < sizeof heights / sizeof *heights; s++) {
        double p[4] = {0, 1, 0, heights[s]};
        un_lattice lattice = make_lattice(ctx, 33, 34, 20, un_v3(0, 0, 0), un_v3(1, 1, 0.6));
        fill(&lattice, plane, p);
        un_trimesh mesh = contour_closed(ctx, &lattice, 2);
        check_near(un_surface_volume(&mesh) / (0.6 * heights[s]), 1, 1e-6);
        un_vec3 far = un_lattice_point(&lattice, 32, 33, 19);
        double top = -1;
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 x = mesh.position[v];
            bool wall = x.x == 0 || x.x == far.x || x.y == 0 || x.z == 0 || x.z == far.z;
            top = fmax(top, x.y);
            if (!wall) check_near(x.y, heights[s], 1e-7);
            assert_true(x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= far.x && x.z <= far.z);
        }
        check_near(top, heights[s], 1e-7);
        double areas[3][2] = {{0}};
        for (int32_t t = 0; t < mesh.triangle_count; t++) {
            un_vec3 a = area_vector(&mesh, t);
            double part[3] = {a.x, a.y, a.z}, length = un_length(a);
            int32_t axis = fabs(a.x) > fabs(a.y) ? (fabs(a.x) > fabs(a.z) ? 0 : 2)
                                                 : (fabs(a.y) > fabs(a.z) ? 1 : 2);
            check_near(fabs(part[axis]), length, 1e-9 * length);
            areas[axis][part[axis] > 0] += length;
        }
        for (int32_t side = 0; side < 2; side++) {
            check_near(areas[0][side], 0.6 * heights[s], 1e-6);
            check_near(areas[1][side], 0.6, 1e-6);
            check_near(areas[2][side], heights[s], 1e-6);
        }
        un_trimesh_free(ctx, &mesh);
        un_free(ctx, lattice.phi);
    }
    check_context_end(ctx);
}

/* A level through the nodes is air there and stays a hair below them. */
static void zero_is_air(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double p[4] = {0, 1, 0, 0.5};
    un_lattice lattice = make_lattice(ctx, 9, 9, 9, un_v3(0, 0, 0), un_v3(1, 1, 1));
    fill(&lattice, plane, p);
    un_trimesh mesh = contour_closed(ctx, &lattice, 2);
    check_near(un_surface_volume(&mesh), 0.5 - UN_SURFACE_HAIR / 8, 1e-14);
    un_trimesh_free(ctx, &mesh);
    fill(&lattice, constant, (double[]){0});
    mesh = contour_closed(ctx, &lattice, 0);
    assert_int_equal(mesh.vertex_count, 0);
    un_trimesh_free(ctx, &mesh);
    un_free(ctx, lattice.phi);
    check_context_end(ctx);
}

/* White noise meets every case next to every other, on the boundary too. */
static void noise_is_manifold(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (uint64_t seed = 0; seed < 40; seed++) {
        double liquid = 0.2 + 0.15 * (double)(seed % 5);
        int32_t n0 = seed % 4 == 3 ? 70 : 20;
        un_lattice lattice = make_lattice(ctx, n0, 20, 20, un_v3(1, 2, 3), un_v3(1, 2, 1));
        fill_noise(&lattice, seed, liquid);
        un_trimesh mesh;
        check_ok(ctx, un_surface_contour(ctx, &lattice, &mesh));
        assert_true(mesh.triangle_count > 1000);
        check_closed(ctx, &mesh);
        assert_true(un_surface_volume(&mesh) > 0);
        for (int32_t t = 0; t < mesh.triangle_count; t++)
            assert_true(un_length(area_vector(&mesh, t)) > 0);
        /* No vertex is left over. */
        uint8_t *used = un_alloc_zero(ctx, (size_t)mesh.vertex_count, 1);
        assert_non_null(used);
        for (int64_t t = 0; t < 3 * (int64_t)mesh.triangle_count; t++)
            used[mesh.triangle[t / 3][t % 3]] = 1;
        for (int32_t v = 0; v < mesh.vertex_count; v++) assert_int_equal(used[v], 1);
        un_free(ctx, used);
        un_trimesh_free(ctx, &mesh);
        un_free(ctx, lattice.phi);
    }
    check_context_end(ctx);
}

/* One cube, all its 256 cases: closed, manifold, and every piece a ball. */
static void every_single_cube_is_closed(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int32_t signs = 0; signs < 256; signs++) {
        un_lattice lattice = make_lattice(ctx, 2, 2, 2, un_v3(0, 0, 0), un_v3(1, 1, 1));
        for (int32_t c = 0; c < 8; c++) lattice.phi[c] = signs >> c & 1 ? -1.0f : 1.0f;
        un_trimesh mesh;
        check_ok(ctx, un_surface_contour(ctx, &lattice, &mesh));
        un_surface_topology topology = check_closed(ctx, &mesh);
        assert_int_equal(topology.euler, 2 * topology.component_count);
        assert_int_equal(topology.component_count > 0, signs != 0);
        un_trimesh_free(ctx, &mesh);
        un_free(ctx, lattice.phi);
    }
    check_context_end(ctx);
}

static void any_thread_count_gives_the_same_bits(void **state)
{
    (void)state;
    un_trimesh first = {0};
    un_context *owner = check_context();
    un_lattice lattice = make_lattice(owner, 71, 37, 40, un_v3(0, 0, 0), un_v3(1, 1, 1));
    fill_noise(&lattice, 7, 0.5);
    for (int32_t threads = 1; threads <= 4; threads++) {
        un_context *ctx = threads == 1 ? owner : check_context_threads(threads);
        un_trimesh mesh;
        check_ok(ctx, un_surface_contour(ctx, &lattice, &mesh));
        if (threads == 1) {
            first = mesh;
            continue;
        }
        assert_int_equal(mesh.vertex_count, first.vertex_count);
        assert_int_equal(mesh.triangle_count, first.triangle_count);
        assert_memory_equal(mesh.position, first.position,
                            (size_t)mesh.vertex_count * sizeof *mesh.position);
        assert_memory_equal(mesh.triangle, first.triangle,
                            (size_t)mesh.triangle_count * sizeof *mesh.triangle);
        un_trimesh_free(ctx, &mesh);
        check_context_end(ctx);
    }
    un_trimesh_free(owner, &first);
    un_free(owner, lattice.phi);
    check_context_end(owner);
}

static un_status contour_and_examine(un_context *ctx, void *arg)
{
    un_trimesh mesh;
    un_surface_topology topology;
    un_status status = un_surface_contour(ctx, arg, &mesh);
    if (status == UN_OK) status = un_surface_examine(ctx, &mesh, &topology);
    un_trimesh_free(ctx, &mesh);
    return status;
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_lattice lattice = make_lattice(ctx, 10, 10, 10, un_v3(0, 0, 0), un_v3(1, 1, 1));
    fill_noise(&lattice, 1, 0.5);
    check_allocation_failures(contour_and_examine, &lattice, 20);
    un_free(ctx, lattice.phi);
    check_context_end(ctx);
}

/* Lattices with hardly any nodes, and values no solver should produce. */
static void degenerate_lattices_are_harmless(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    int32_t sizes[] = {0, 1, 2, 3};
    float values[] = {NAN,     INFINITY, -INFINITY, 0.0f,    -0.0f,   1e-45f,
                      -1e-45f, 1,        -1,        FLT_MAX, -FLT_MAX};
    enum { VALUES = sizeof values / sizeof *values };
    for (int32_t s = 0; s < 64; s++)
        for (uint64_t seed = 0; seed < 4 + VALUES; seed++) {
            un_lattice lattice = make_lattice(ctx, sizes[s & 3], sizes[s >> 2 & 3], sizes[s >> 4],
                                              un_v3(0, 0, 0), un_v3(1, 1, 1));
            int64_t count = (int64_t)lattice.n[0] * lattice.n[1] * lattice.n[2];
            bool flat = lattice.n[0] < 2 || lattice.n[1] < 2 || lattice.n[2] < 2;
            for (int64_t n = 0; n < count; n++)
                lattice.phi[n] =
                    values[seed < VALUES ? seed
                                         : (uint64_t)(un_random((uint64_t)n, seed) * VALUES)];
            un_trimesh mesh;
            check_ok(ctx, un_surface_contour(ctx, &lattice, &mesh));
            check_closed(ctx, &mesh);
            if (flat) assert_int_equal(mesh.vertex_count, 0);
            if (!flat && seed < VALUES)
                check_near(un_surface_volume(&mesh), values[seed] < 0 && isfinite(values[seed]),
                           1e-14);
            for (int32_t v = 0; v < mesh.vertex_count; v++)
                assert_true(un_finite3(mesh.position[v]));
            un_trimesh_free(ctx, &mesh);
            un_free(ctx, lattice.phi);
        }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examine_sees_defects),
        cmocka_unit_test(sphere_converges_at_second_order),
        cmocka_unit_test(torus_has_a_hole),
        cmocka_unit_test(plane_is_planar_at_any_tilt),
        cmocka_unit_test(full_lattice_is_its_box),
        cmocka_unit_test(tank_is_sharp),
        cmocka_unit_test(zero_is_air),
        cmocka_unit_test(noise_is_manifold),
        cmocka_unit_test(every_single_cube_is_closed),
        cmocka_unit_test(any_thread_count_gives_the_same_bits),
        cmocka_unit_test(allocation_failures_are_clean),
        cmocka_unit_test(degenerate_lattices_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
