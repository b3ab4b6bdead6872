/* Contours of tets: closed, manifold, sharp at the brick, of second order, the same for any number
 * of threads; and the liquid's volume. */
#include "surface/meshes.h"

static void sphere_converges_at_second_order(void **state)
{
    (void)state;
    double p[4] = {0.52, 0.487, 0.531, 0.37}, exact = 4.0 / 3 * UN_PI * p[3] * p[3] * p[3];
    for (int graded = 0; graded < 2; graded++) {
        double error[3], share[3];
        for (int level = 0; level < 3; level++) {
            mesh_case c;
            case_sphere(&c, 2, graded ? 4 : 0, 12 << level, p);
            un_trimesh mesh = case_contour(&c);
            un_surface_topology t = check_closed(c.ctx, &mesh);
            assert_int_equal(t.euler, 2);
            assert_int_equal(t.component_count, 1);
            double volume = un_surface_volume(&mesh);
            error[level] = fabs(volume / exact - 1);
            share[level] =
                fabs(un_tets_liquid_volume(c.ctx, c.phi, &c.mesh, NULL, NULL) / volume - 1);
            un_trimesh_free(c.ctx, &mesh);
            case_end(&c);
        }
        for (int level = 0; level < 2; level++) {
            double order = log2(error[level] / error[level + 1]);
            assert_true(order > 1.8 && order < 2.3);
        }
        check_below(error[2], 2e-3);
        for (int level = 0; level < 3; level++) check_below(share[level], 2e-6);
    }
}

/* Noise of every density on trees of every kind, with sides of the brick full of it. */
static void noise_is_closed(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int i = 0; i < CHECK_TREE_COUNT; i++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            un_octree tree;
            un_tets mesh;
            check_build_tree(ctx, &tree, &check_trees[i], seed);
            un_tets_init(ctx, &mesh);
            check_ok(ctx, un_tets_build(&mesh, &arena, &tree));
            float *phi = un_alloc(ctx, (size_t)mesh.node_count, sizeof *phi);
            for (int32_t n = 0; n < mesh.node_count; n++) {
                phi[n] = (float)(un_random((uint64_t)n, seed) - 0.02 - 0.19 * (double)seed);
                if (seed == 5) phi[n] = n % 7 ? phi[n] : n % 3 ? NAN : n % 2 ? -INFINITY : 0;
            }
            un_trimesh surface;
            check_ok(ctx, un_tets_contour(ctx, &arena, phi, &mesh, &surface));
            check_closed(ctx, &surface);
            double volume = un_tets_liquid_volume(ctx, phi, &mesh, NULL, NULL), brick = 1;
            if (seed < 5) check_near(un_surface_volume(&surface), volume, 1e-3 * volume);
            for (int a = 0; a < 3; a++) brick *= tree.h * tree.n[a];
            un_vec3 top = {tree.h * tree.n[0], tree.h * tree.n[1], tree.h * tree.n[2]};
            for (int32_t v = 0; v < surface.vertex_count; v++) {
                un_vec3 x = surface.position[v];
                assert_true(x.x >= 0 && x.y >= 0 && x.z >= 0);
                assert_true(x.x <= top.x && x.y <= top.y && x.z <= top.z);
            }
            un_trimesh_free(ctx, &surface);
            /* full to the brim */
            for (int32_t n = 0; n < mesh.node_count; n++) phi[n] = n % 2 ? -1 : -INFINITY;
            check_ok(ctx, un_tets_contour(ctx, &arena, phi, &mesh, &surface));
            assert_int_equal(check_closed(ctx, &surface).euler, 2);
            check_near(un_surface_volume(&surface) / brick, 1, 1e-12);
            check_near(un_tets_liquid_volume(ctx, phi, &mesh, NULL, NULL) / brick, 1, 1e-12);
            un_trimesh_free(ctx, &surface);
            un_free(ctx, phi);
            un_tets_free(&mesh);
            un_octree_free(&tree);
            un_arena_reset(&arena);
        }
    un_arena_free(&arena);
    check_context_end(ctx);
}

/* A tilted plane through the brick: flat where free, sharp where it meets the sides. */
static void plane_is_planar(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        un_vec3 normal = un_normalize(
            un_v3(un_random(0, seed) - 0.5, un_random(1, seed) - 0.5, un_random(2, seed) - 0.5));
        double p[4] = {normal.x, normal.y, normal.z, un_dot(normal, un_v3(0.5, 0.45, 0.3))};
        mesh_case c;
        un_vec3 at[2] = {{0.5, 0.45, 0.3}, {0.9, 0.1, 0.5}};
        case_begin(&c, 2, un_v3(1, 1, 0.5), 4, 32, at, 2);
        case_fill(&c, plane, p);
        un_trimesh mesh = case_contour(&c);
        assert_int_equal(check_closed(c.ctx, &mesh).euler, 2);
        int on = 0;
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 x = mesh.position[v];
            bool side = x.x == 0 || x.y == 0 || x.z == 0 || x.x == 1 || x.y == 1 || x.z == 0.5;
            check_below(plane(x, p), 3e-5);
            if (side) continue;
            check_near(plane(x, p), 0, 3e-5);
            on++;
        }
        assert_true(on > 100);
        for (int32_t t = 0; t < mesh.triangle_count; t++) {
            un_vec3 area = area_vector(&mesh, t);
            bool cap = false;
            for (int a = 0; a < 6; a++) {
                bool all = true;
                for (int k = 0; k < 3; k++) {
                    un_vec3 x = mesh.position[mesh.triangle[t][k]];
                    double q[6] = {x.x, 1 - x.x, x.y, 1 - x.y, x.z, 0.5 - x.z};
                    all &= q[a] == 0;
                }
                double out[6] = {-area.x, area.x, -area.y, area.y, -area.z, area.z};
                if (all) cap = true, assert_true(out[a] > 0);
            }
            if (!cap && un_length(area) > 1e-9) assert_true(un_dot(area, normal) > 0);
        }
        un_trimesh_free(c.ctx, &mesh);
        case_end(&c);
    }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    double p[4] = {0.3, 0.5, 0.6, 0.45};
    un_trimesh first = {0};
    mesh_case keep;
    for (int32_t threads = 1; threads <= 4; threads++) {
        mesh_case c;
        case_sphere(&c, threads, 4, 64, p);
        un_trimesh mesh = case_contour(&c);
        if (threads == 1) {
            first = mesh;
            keep = c;
            continue;
        }
        assert_int_equal(mesh.vertex_count, first.vertex_count);
        assert_int_equal(mesh.triangle_count, first.triangle_count);
        assert_memory_equal(mesh.position, first.position,
                            (size_t)mesh.vertex_count * sizeof *mesh.position);
        assert_memory_equal(mesh.triangle, first.triangle,
                            (size_t)mesh.triangle_count * sizeof *mesh.triangle);
        assert_true(un_tets_liquid_volume(c.ctx, c.phi, &c.mesh, NULL, NULL) ==
                    un_tets_liquid_volume(keep.ctx, keep.phi, &keep.mesh, NULL, NULL));
        un_trimesh_free(c.ctx, &mesh);
        case_end(&c);
    }
    un_trimesh_free(keep.ctx, &first);
    case_end(&keep);
}

typedef struct walk_arg {
    const float *phi;
    const un_tets *mesh;
} walk_arg;

static un_status contour_once(un_context *ctx, void *arg)
{
    walk_arg *a = arg;
    un_arena arena;
    un_trimesh surface;
    un_arena_init(&arena, ctx);
    un_status status = un_tets_contour(ctx, &arena, a->phi, a->mesh, &surface);
    if (status == UN_OK) un_trimesh_free(ctx, &surface);
    un_arena_free(&arena);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    double p[4] = {0.3, 0.5, 0.6, 0.45};
    mesh_case c;
    case_sphere(&c, 1, 0, 24, p);
    walk_arg arg = {c.phi, &c.mesh};
    check_allocation_failures(contour_once, &arg, 100);
    case_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sphere_converges_at_second_order),
        cmocka_unit_test(noise_is_closed),
        cmocka_unit_test(plane_is_planar),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(survives_lack_of_memory),
    };
    check_races_in("threads*");
    return cmocka_run_group_tests_name("marching", tests, NULL, NULL);
}
