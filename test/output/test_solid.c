/* Triangles of solids: on the boundary, closed, outward, sharp at edges. */
#include "geometry/meshes.h"
#include "output/output.h"
#include "check.h"

static un_vec3 corner(const un_body_mesh *m, int32_t t, int c, bool normal)
{
    const float *p = normal ? m->normal[m->triangle[t][c]] : m->position[m->triangle[t][c]];
    return un_v3((double)p[0], (double)p[1], (double)p[2]);
}

static double volume(const un_body_mesh *m)
{
    double sum = 0;
    for (int32_t t = 0; t < m->triangle_count; t++)
        sum += un_dot(corner(m, t, 0, false),
                      un_cross(corner(m, t, 1, false), corner(m, t, 2, false))) /
               6;
    return sum;
}

/* Greatest distance of a vertex or a centre from the boundary; -1 when a normal points inwards. */
static double worst(const un_body_mesh *m, const un_shape *shape)
{
    double most = 0;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        un_vec3 a = corner(m, t, 0, false), b = corner(m, t, 1, false), c = corner(m, t, 2, false);
        un_vec3 g = un_cross(un_sub(b, a), un_sub(c, a));
        for (int k = 0; k < 3; k++) {
            most = fmax(most, fabs(un_shape_distance(shape, corner(m, t, k, false))));
            if (un_dot(g, corner(m, t, k, true)) < 0) return -1;
            check_near(un_length(corner(m, t, k, true)), 1, 1e-5);
        }
        un_vec3 centre = un_scale(un_add(a, un_add(b, c)), 1.0 / 3);
        most = fmax(most, fabs(un_shape_distance(shape, centre)));
    }
    return most;
}

static void boxes_are_sharp(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *box, *turned;
    check_ok(ctx, un_shape_box(set, un_v3(0.1, 0, 0.2), un_v3(0.5, 0.6, 0.35), &box));
    un_pose pose = un_pose_axis(un_v3(0.3, 1, 0.2), 33);
    check_ok(ctx, un_shape_move(set, box, &pose, &turned));
    const un_shape *shapes[] = {box, turned};
    for (int i = 0; i < 2; i++) {
        un_body_mesh mesh;
        check_ok(ctx, un_body_mesh_build(ctx, shapes[i], false, un_v3(1, 1, 1), &mesh));
        double off = worst(&mesh, shapes[i]);
        assert_true(off >= 0);
        check_below(off, 1e-3); /* a bevel of half a cell would be 3e-3 */
        check_near(volume(&mesh), 0.4 * 0.6 * 0.15, 2e-5);
        un_body_mesh_free(ctx, &mesh);
    }
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

static void spheres_are_round(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *sphere;
    check_ok(ctx, un_shape_sphere(set, un_v3(3, 2, 1), 0.5, &sphere));
    un_body_mesh mesh;
    check_ok(ctx, un_body_mesh_build(ctx, sphere, false, un_v3(9, 9, 9), &mesh));
    double off = worst(&mesh, sphere);
    assert_true(off >= 0);
    check_below(off, 4e-4);
    check_near(volume(&mesh), 4 * UN_PI / 3 * 0.125, 1e-3);
    for (int32_t v = 0; v < mesh.vertex_count; v++) /* nothing stands in its light */
        assert_true(mesh.sky[v] > 230);
    int32_t corners = mesh.vertex_count;
    double was = volume(&mesh);
    check_ok(ctx, un_body_mesh_weld(ctx, &mesh));
    assert_true(mesh.vertex_count < corners / 3);
    check_near(volume(&mesh), was, 1e-12);
    un_body_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

static void endless_shapes_end_at_the_domain(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *slope, *far;
    check_ok(ctx, un_shape_plane(set, un_v3(0, 0.5, 0), un_v3(-1, 2, 0), &slope));
    check_ok(ctx, un_shape_plane(set, un_v3(0, -1, 0), un_v3(0, 1, 0), &far));
    un_body_mesh mesh;
    check_ok(ctx, un_body_mesh_build(ctx, slope, false, un_v3(1, 1, 2), &mesh));
    check_near(volume(&mesh), 1.5, 1e-3);
    un_body_mesh_free(ctx, &mesh);
    check_ok(ctx, un_body_mesh_build(ctx, far, false, un_v3(1, 1, 2), &mesh));
    assert_int_equal(mesh.triangle_count, 0);
    un_body_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

/* A round tank cut from a block larger than the domain: only its inner wall is drawn. */
static void containers_are_open_to_view(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *block, *hole, *wall, *low, *bowl;
    check_ok(ctx, un_shape_box(set, un_v3(-1, -1, -1), un_v3(2, 2, 2), &block));
    check_ok(ctx, un_shape_cylinder(set, un_v3(0.5, -2, 0.5), un_v3(0.5, 3, 0.5), 0.45, &hole));
    check_ok(ctx, un_shape_subtract(set, (un_shape *[]){block, hole}, 2, &wall));
    check_ok(ctx, un_shape_box(set, un_v3(-1, -1, -1), un_v3(2, 0.4, 2), &low));
    check_ok(ctx, un_shape_subtract(set, (un_shape *[]){low, hole}, 2, &bowl));
    un_body_mesh mesh;
    check_ok(ctx, un_body_mesh_build(ctx, wall, false, un_v3(1, 1, 1), &mesh));
    assert_true(mesh.triangle_count > 1000);
    assert_true(mesh.container);
    int32_t inner = 0;
    for (int32_t t = 0; t < mesh.triangle_count; t++) {
        un_vec3 x = corner(&mesh, t, 0, false);
        inner += fabs(hypot(x.x - 0.5, x.z - 0.5) - 0.45) < 1e-3;
        check_near(fabs(x.y - 0.5), 0, 0.501);
    }
    assert_true(inner > 0.2 * mesh.triangle_count); /* the rest is the bottom, below the floor */
    un_body_mesh_free(ctx, &mesh);
    /* One that can be looked into from above is drawn whole, cut off at the domain. */
    check_ok(ctx, un_body_mesh_build(ctx, bowl, false, un_v3(1, 1, 1), &mesh));
    assert_false(mesh.container);
    check_near(volume(&mesh), 0.4 * (1 - UN_PI * 0.45 * 0.45), 1e-3);
    un_body_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

static void thin_plates_keep_two_faces(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *plate;
    check_ok(ctx, un_shape_box(set, un_v3(0, 0.5, 0), un_v3(1, 0.503, 1), &plate));
    un_body_mesh mesh;
    check_ok(ctx, un_body_mesh_build(ctx, plate, false, un_v3(1, 1, 1), &mesh));
    check_near(volume(&mesh), 0.003, 1e-5);
    un_body_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

/* Solids from a file are their own triangles: round where these go on into each other, with sharp
 * edges where they do not. */
static void files_keep_their_triangles(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_shape_set *set = un_shape_set_create(ctx);
    un_trimesh ball = mesh_ball(ctx, 24, 0), cube = mesh_cube(ctx, un_v3(0, 0, 0));
    un_shape *round, *moved, *edged;
    un_trimesh_report report;
    un_body_mesh mesh;
    un_pose pose = un_pose_axis(un_v3(1, 1, 0), 30);
    pose.scale = 0.5;
    pose.translation = un_v3(1, 1, 1);
    check_ok(ctx, un_shape_mesh(set, &ball, &round, &report));
    check_ok(ctx, un_shape_move(set, round, &pose, &moved));
    check_ok(ctx, un_body_mesh_build(ctx, moved, false, un_v3(2, 2, 2), &mesh));
    assert_int_equal(mesh.triangle_count, ball.triangle_count);
    check_near(volume(&mesh), report.volume / 8, 1e-6);
    for (int32_t t = 0; t < mesh.triangle_count; t++)
        for (int c = 0; c < 3; c++) {
            un_vec3 out = un_sub(corner(&mesh, t, c, false), un_v3(1, 1, 1));
            assert_true(un_dot(corner(&mesh, t, c, true), un_normalize(out)) > 0.999);
        }
    un_body_mesh_free(ctx, &mesh);
    check_ok(ctx, un_shape_mesh(set, &cube, &edged, NULL));
    check_ok(ctx, un_body_mesh_build(ctx, edged, true, un_v3(2, 2, 2), &mesh));
    assert_int_equal(mesh.triangle_count, 12);
    for (int32_t t = 0; t < 12; t++)
        for (int c = 0; c < 3; c++) {
            un_vec3 n = corner(&mesh, t, c, true);
            check_near(fmax(fabs(n.x), fmax(fabs(n.y), fabs(n.z))), 1, 1e-6);
        }
    un_body_mesh_free(ctx, &mesh);
    un_trimesh_free(ctx, &ball);
    un_trimesh_free(ctx, &cube);
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

static un_status make_from_file(un_context *ctx, void *arg)
{
    static un_vec3 position[4] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    static int32_t triangle[4][3] = {{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};
    un_trimesh file = {
        .vertex_count = 4, .triangle_count = 4, .position = position, .triangle = triangle};
    un_shape_set *set = un_shape_set_create(ctx);
    if (!set) return UN_ERROR_MEMORY;
    un_shape *shape;
    un_body_mesh mesh = {0};
    (void)arg;
    un_status status = un_shape_mesh(set, &file, &shape, NULL);
    if (status == UN_OK) status = un_body_mesh_build(ctx, shape, true, un_v3(1, 1, 1), &mesh);
    un_body_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    return status;
}

static un_status make(un_context *ctx, void *arg)
{
    un_shape_set *set = un_shape_set_create(ctx);
    if (!set) return UN_ERROR_MEMORY;
    un_shape *box;
    un_body_mesh mesh = {0};
    (void)arg;
    un_status status = un_shape_box(set, un_v3(0, 0, 0), un_v3(1, 0.1, 0.1), &box);
    if (status == UN_OK) status = un_body_mesh_build(ctx, box, false, un_v3(1, 1, 1), &mesh);
    un_body_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    return status;
}

static void survives_allocation_failures(void **state)
{
    (void)state;
    check_allocation_failures(make, NULL, 100);
    check_allocation_failures(make_from_file, NULL, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_sharp),
        cmocka_unit_test(spheres_are_round),
        cmocka_unit_test(endless_shapes_end_at_the_domain),
        cmocka_unit_test(containers_are_open_to_view),
        cmocka_unit_test(thin_plates_keep_two_faces),
        cmocka_unit_test(files_keep_their_triangles),
        cmocka_unit_test(survives_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
