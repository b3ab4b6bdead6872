/* The surface made ready: no bottom, flat sides with sharp edges, contact with solids. */
#include "render/splash.h"
#include "render/render.h"

#include <unistd.h>

static const un_vec3 size = {2, 1, 1};
#define UNIT 2.0
#define REACH 0.02f
#define HEIGHT 0.47

static void load(un_context *ctx, splash_field *field, const void *arg, un_render_mesh *mesh)
{
    char path[] = "/tmp/undine-mesh-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    splash_mesh splash;
    splash_march(&splash, field, arg, size, 0.0625);
    splash_write(&splash, path);
    splash_free(&splash);
    check_ok(ctx, un_render_mesh_load(ctx, path, UNIT, mesh));
    unlink(path);
}

static un_fvec corner(const un_render_mesh *m, int32_t t, int c)
{
    const float *p = m->position[m->triangle[t][c]];
    return un_f3(p[0], p[1], p[2]);
}

static void a_tank_has_no_bottom_and_sharp_edges(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_render_mesh mesh;
    double height = HEIGHT;
    load(ctx, splash_tank, &height, &mesh);
    check_ok(ctx, un_render_mesh_prepare(ctx, &mesh, un_f3_of(size, 1 / UNIT), UNIT, REACH, NULL));
    int32_t flat = 0, top = 0;
    for (int32_t t = 0; t < mesh.triangle_count; t++) {
        un_fvec a = corner(&mesh, t, 0), b = corner(&mesh, t, 1), c = corner(&mesh, t, 2);
        un_fvec g = un_fnormalize(un_fcross(b - a, c - a));
        assert_true(g[1] > -0.9f); /* nothing faces the floor */
        if (mesh.face[t].kind == UN_FACE_FLAT) {
            flat++;
            check_near((double)g[1], 0, 1e-3);
            continue;
        }
        assert_int_equal(mesh.face[t].kind, UN_FACE_PLAIN);
        top++;
        /* Up to the very rim the surface looks straight up. */
        for (int k = 0; k < 3; k++)
            check_near((double)un_fnormalize(un_normal_unpack(mesh.face[t].normal[k]))[1], 1, 1e-3);
    }
    assert_true(flat > 100 && top > 100);
    un_render_mesh_free(ctx, &mesh);
    check_context_end(ctx);
}

/* Water around a ball that leaves a gap of a fifth of a cell. */
static double around_ball(const void *arg, un_vec3 x)
{
    return fmax(x.y - HEIGHT, *(const double *)arg - un_length(un_sub(x, un_v3(1, 0.2, 0.5))));
}

static void water_touches_solids(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_render_mesh mesh;
    double hole = 0.2 + 0.0125;
    load(ctx, around_ball, &hole, &mesh);
    un_shape_set *set = un_shape_set_create(ctx);
    un_shape *ball;
    check_ok(ctx, un_shape_sphere(set, un_v3(0, 0, 0), 0.1, &ball));
    /* The pose counts: twice the size, elsewhere. */
    un_body body = {.shape = ball, .moves = true};
    un_solid solid = {.material = "matte"};
    un_scene scene = {.def = {.solids = &solid, .solid_count = 1}};
    un_bodies bodies = {.scene = &scene, .body = &body, .count = 1};
    un_pose pose = un_pose_identity();
    pose.scale = 2;
    pose.translation = un_v3(1, 0.2, 0.5);
    un_body_place(&body, &pose);
    check_ok(ctx,
             un_render_mesh_prepare(ctx, &mesh, un_f3_of(size, 1 / UNIT), UNIT, REACH, &bodies));
    int32_t touch = 0;
    for (int32_t t = 0; t < mesh.triangle_count; t++) {
        un_fvec away = corner(&mesh, t, 0) - un_f3(0.5f, 0.1f, 0.25f);
        bool near = un_flength(away) < 0.115f;
        bool top = corner(&mesh, t, 0)[1] > 0.23f;
        if (mesh.face[t].kind == UN_FACE_TOUCH) {
            touch++;
            assert_true(near);
            un_fvec n = un_fnormalize(un_normal_unpack(mesh.face[t].normal[0]));
            check_near((double)un_fdot(n, un_fnormalize(away)), -1, 1e-3); /* into the ball */
        } else {
            assert_true(!near || top);
        }
    }
    assert_true(touch > 100);
    un_render_mesh_free(ctx, &mesh);
    un_shape_set_destroy(set);
    check_context_end(ctx);
}

static void normals_survive_packing(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 20000; k++) {
        un_fvec n = un_f3((float)un_random(k, 1) - 0.5f, (float)un_random(k, 2) - 0.5f,
                          (float)un_random(k, 3) - 0.5f);
        if (k < 6) n = un_f3(k == 0, k == 1, k == 2) - un_f3(k == 3, k == 4, k == 5);
        n = un_fnormalize(n);
        int16_t packed[2];
        un_normal_pack(n, packed);
        un_fvec back = un_fnormalize(un_normal_unpack(packed));
        check_below((double)un_flength(n - back), 1e-4);
    }
}

static void nothing_is_fine(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_render_mesh mesh;
    check_ok(ctx, un_render_mesh_load(ctx, "/nowhere/surface.ply", 1, &mesh));
    assert_int_equal(mesh.triangle_count, 0);
    check_ok(ctx, un_render_mesh_prepare(ctx, &mesh, un_f3(1, 1, 1), 1, REACH, NULL));
    un_render_mesh_free(ctx, &mesh);
    assert_int_equal(un_render_mesh_load(ctx, "/", 1, &mesh), UN_ERROR_FILE);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tank_has_no_bottom_and_sharp_edges),
        cmocka_unit_test(water_touches_solids),
        cmocka_unit_test(normals_survive_packing),
        cmocka_unit_test(nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
