/* The output surface of particles of many sizes: closed, flat at rest, in the domain, cut to
 * solids, of the particles' volume. */
#include "surface/bath.h"

static double graded(un_vec3 x)
{
    double d = fmax(hypot(x.x - 0.3, x.z - 0.4) - 0.1, fabs(x.y - 0.5));
    return fmin(fmax(0.3 * d, 1.0 / 64), 0.125);
}
static double even(un_vec3 x)
{
    (void)x;
    return 1.0 / 32;
}

/* Jittered particles of many sizes, in tanks of odd sizes: one piece, closed at the sides. */
static void resting_tank_is_flat_and_closed(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        bath b;
        un_vec3 size = un_v3(1, 1, kind & 1 ? 1 : 0.75);
        double jitter = kind & 2 ? 0.25 : 0;
        bath_begin(&b, 2, size);
        drops_fill(&b.drops, un_v3(0, 0, 0), 1, 0.5, graded, jitter, 3);
        bath_build(&b);
        un_trimesh mesh = bath_mesh(&b, kind & 1 ? 64 : 50, kind & 4);
        un_surface_topology t = check_closed(b.tank.ctx, &mesh);
        assert_int_equal(t.component_count, 1);
        assert_int_equal(t.euler, 2);
        check_near(un_surface_volume(&mesh) / (0.5 * size.z), 1, 6e-3);
        double worst = 0;
        int sides[6] = {0}, above = 0;
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 x = mesh.position[v];
            double at[3] = {x.x, x.y, x.z}, end[3] = {size.x, size.y, size.z};
            bool any = false;
            for (int a = 0; a < 6; a++) {
                bool in = fabs(at[a / 2] - (a & 1 ? end[a / 2] : 0)) < 1e-15;
                sides[a] += in;
                any |= in;
            }
            if (any) continue;
            double r = 0.5 * graded(x); /* of the particles there */
            worst = fmax(worst, fabs(x.y - 0.5) / r);
            if (jitter == 0) check_below(0.9999, mesh.normal[v].y);
            above++;
        }
        assert_true(above > 1000);
        for (int a = 0; a < 6; a++) assert_true(a == 3 ? sides[a] == 0 : sides[a] > 20);
        /* where depths are known spheres touch the surface they are measured from */
        check_below(worst, jitter == 0 ? 1e-3 : kind & 4 ? 0.05 : 0.9);
        un_trimesh_free(b.tank.ctx, &mesh);
        bath_end(&b);
    }
}

/* In draining water the layer at the surface has gaps, and some of its particles all but lie in the
 * surface: it stays closed above the next layer. */
static void gaps_in_the_upper_layer_do_not_show(void **state)
{
    (void)state;
    double worst = 0, r = 0.5 * even(un_v3(0, 0, 0));
    bath b;
    bath_begin(&b, 2, un_v3(1, 1, 1));
    drops_fill(&b.drops, un_v3(0, 0, 0), 1, 0.5, even, 0.2, 7);
    for (int64_t q = 0; q < b.drops.count; q++) {
        if (b.drops.depth[q] < -1.5 * r) continue;
        double chance = un_random((uint64_t)q, 5), depth = chance < 0.4 ? 0.2 : 1;
        if (chance > 0.88) depth = 2.2; /* a gap */
        b.drops.x[1][q] = 0.5 - depth * r;
        b.drops.depth[q] = (float)(-depth * r);
    }
    bath_build(&b);
    un_trimesh mesh = bath_mesh(&b, 64, true);
    check_closed(b.tank.ctx, &mesh);
    for (int32_t v = 0; v < mesh.vertex_count; v++)
        if (mesh.position[v].y > 0.25 && mesh.normal[v].y > 0.3)
            worst = fmax(worst, fabs(mesh.position[v].y - 0.5) / r);
    check_below(worst, 0.5); /* 0.79 if spheres grow by no more than 0.8 radii */
    un_trimesh_free(b.tank.ctx, &mesh);
    bath_end(&b);
}

static void solids_cut_the_liquid(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, un_v3(1, 1, 1));
    tank_solid(&b.tank, tank_sphere(&b.tank, un_v3(0.5, 0.5, 0.5), 0.25), un_v3(0, 0, 0));
    drops_fill(&b.drops, un_v3(0, 0, 0), 1, 0.5, even, 0.1, 3);
    bath_build(&b);
    un_trimesh mesh = bath_mesh(&b, 64, true);
    check_closed(b.tank.ctx, &mesh);
    double wanted = 0.5 - 2.0 / 3 * UN_PI * 0.25 * 0.25 * 0.25, touching = 0;
    check_near(un_surface_volume(&mesh) / wanted, 1, 0.01);
    for (int32_t v = 0; v < mesh.vertex_count; v++) {
        double d = un_length(un_sub(mesh.position[v], un_v3(0.5, 0.5, 0.5))) - 0.25;
        check_below(-0.006, d);
        touching += fabs(d) < 0.006;
    }
    assert_true(touching > 500);
    un_trimesh_free(b.tank.ctx, &mesh);
    bath_end(&b);
}

/* A drop that flies alone has its particle's volume; others are cut by walls or melt together. */
static void drops_have_their_volume(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, un_v3(1, 1, 1));
    drops_add(&b.drops, un_v3(0.3, 0.4, 0.5), 0.008, 0);
    drops_add(&b.drops, un_v3(0.7, 0.61, 0.52), 0.04, 0.01);
    b.drops.flags[0] = b.drops.flags[1] = UN_PARTICLE_BALLISTIC;
    bath_build(&b);
    for (int deep = 0; deep < 2; deep++) {
        un_trimesh mesh = bath_mesh(&b, 64, deep);
        un_surface_topology t = check_closed(b.tank.ctx, &mesh);
        assert_int_equal(t.component_count, 2);
        assert_int_equal(t.euler, 4);
        assert_int_equal(mesh.vertex_count, 12 + 42); /* small and large */
        check_near(un_surface_volume(&mesh) / b.volume, 1, 1e-6);
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 out =
                un_sub(mesh.position[v], v < 12 ? un_v3(0.3, 0.4, 0.5) : un_v3(0.7, 0.61, 0.52));
            check_below(0.94, un_dot(un_normalize(out), mesh.normal[v])); /* a little stretched */
        }
        un_trimesh_free(b.tank.ctx, &mesh);
    }
    bath_end(&b);

    bath_begin(&b, 2, un_v3(1, 1, 1));
    drops_add(&b.drops, un_v3(0.5, 0.5, 1 - 1.003 * UN_HULL_DROP * 0.01), 0.01, 0);
    b.drops.flags[0] = UN_PARTICLE_BALLISTIC;
    bath_build(&b);
    un_trimesh mesh = bath_mesh(&b, 64, true);
    for (int32_t v = 0; v < mesh.vertex_count; v++) check_below(mesh.position[v].z, 1 + 1e-12);
    un_trimesh_free(b.tank.ctx, &mesh);
    bath_end(&b);

    bath_begin(&b, 2, un_v3(1, 1, 1));
    drops_add(&b.drops, un_v3(0.005, 0.4, 0.5), 0.03, 0);
    drops_add(&b.drops, un_v3(0.7, 0.61, 0.52), 0.04, 0.01);
    drops_add(&b.drops, un_v3(0.75, 0.61, 0.52), 0.04, 0.01);
    for (int q = 0; q < 3; q++) b.drops.flags[q] = UN_PARTICLE_BALLISTIC;
    bath_build(&b);
    mesh = bath_mesh(&b, 64, true);
    un_surface_topology t = check_closed(b.tank.ctx, &mesh);
    assert_int_equal(t.component_count, 2);
    assert_int_equal(t.euler, 4);
    un_trimesh_free(b.tank.ctx, &mesh);
    bath_end(&b);
}

static void nothing_gives_nothing(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, un_v3(1, 0.03, 0.4));
    drops_add(&b.drops, un_v3(2, 2, 2), 0.02, 0); /* outside */
    bath_build(&b);
    un_trimesh mesh = bath_mesh(&b, 40, true);
    assert_int_equal(mesh.vertex_count, 0);
    assert_int_equal(mesh.triangle_count, 0);
    un_trimesh_free(b.tank.ctx, &mesh);
    bath_end(&b);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    un_trimesh first = {0};
    bath keep;
    for (int32_t threads = 1; threads <= 4; threads += threads) {
        bath b;
        bath_begin(&b, threads, un_v3(1, 1, 1));
        drops_fill(&b.drops, un_v3(0, 0, 0), 1, 0.5, graded, 0.3, 3);
        bath_build(&b);
        un_trimesh mesh = bath_mesh(&b, 40, threads != 3);
        if (threads == 1) {
            first = mesh;
            keep = b;
            keep.tank.walls->ctx = keep.tank.ctx;
            continue;
        }
        size_t n = (size_t)mesh.vertex_count;
        assert_int_equal(mesh.vertex_count, first.vertex_count);
        assert_int_equal(mesh.triangle_count, first.triangle_count);
        assert_memory_equal(mesh.position, first.position, n * sizeof *mesh.position);
        assert_memory_equal(mesh.normal, first.normal, n * sizeof *mesh.normal);
        assert_memory_equal(mesh.velocity, first.velocity, n * sizeof *mesh.velocity);
        assert_memory_equal(mesh.triangle, first.triangle,
                            (size_t)mesh.triangle_count * sizeof *mesh.triangle);
        un_trimesh_free(b.tank.ctx, &mesh);
        bath_end(&b);
    }
    un_trimesh_free(keep.tank.ctx, &first);
    bath_end(&keep);
}

static un_status mesh_once(un_context *ctx, void *arg)
{
    un_trimesh mesh;
    un_hulls_report report;
    un_status status = un_surface_mesh_hulls(ctx, &mesh, arg, &report);
    if (status == UN_OK) un_trimesh_free(ctx, &mesh);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 1, un_v3(1, 1, 1));
    drops_fill(&b.drops, un_v3(0, 0, 0), 0.25, 0.25, even, 0.2, 3);
    bath_build(&b);
    un_hull_mesher in = bath_mesher(&b, 16, false);
    check_allocation_failures(mesh_once, &in, 400);
    bath_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resting_tank_is_flat_and_closed),
        cmocka_unit_test(gaps_in_the_upper_layer_do_not_show),
        cmocka_unit_test(solids_cut_the_liquid),
        cmocka_unit_test(drops_have_their_volume),
        cmocka_unit_test(nothing_gives_nothing),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(survives_lack_of_memory),
    };
    check_races_in("threads*");
    return cmocka_run_group_tests_name("hull mesher", tests, NULL, NULL);
}
