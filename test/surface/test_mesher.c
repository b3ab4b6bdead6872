/* The output surface from particles: closed, flat at rest, cut to walls and solids. */
#include "surface/fields.h"
#include "surface/vessel.h"

static un_trimesh mesh_of(vessel *v, int32_t resolution)
{
    un_trimesh mesh;
    un_mesher in = vessel_mesher(v, resolution);
    check_ok(v->tank.ctx, un_surface_mesh(v->tank.ctx, &mesh, &in));
    for (int32_t n = 0; n < mesh.vertex_count; n++) {
        assert_true(un_finite3(mesh.position[n]) && un_finite3(mesh.velocity[n]));
        check_near(un_length(mesh.normal[n]), 1, 1e-5);
        un_vec3 x = mesh.position[n], s = v->tank.grid.size;
        assert_true(x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= s.x && x.y <= s.y && x.z <= s.z);
    }
    return mesh;
}

static void resting_tank_is_flat_and_closed(void **state)
{
    (void)state;
    static const double heights[] = {0.437, 0.5, 0.26};
    for (int n = 0; n < 3; n++)
        for (int fine = 0; fine < 2; fine++) {
            vessel v;
            un_vec3 size = {1, 1, 0.8};
            vessel_begin(&v, 2, size, 20);
            vessel_build(&v);
            vessel_pour(&v, tank_plane(&v.tank, un_v3(0, heights[n], 0), un_v3(0, 1, 0)),
                        un_v3(1, 2, 3));
            un_trimesh mesh = mesh_of(&v, fine ? 41 : 20);
            un_surface_topology topology = check_closed(v.tank.ctx, &mesh);
            assert_int_equal(topology.component_count, 1);
            assert_int_equal(topology.euler, 2);
            check_near(un_surface_volume(&mesh) / (heights[n] * 0.8), 1, 5e-3);
            double h = v.tank.grid.h;
            int in_planes[5] = {0}, above = 0;
            for (int32_t m = 0; m < mesh.vertex_count; m++) {
                un_vec3 x = mesh.position[m], velocity = mesh.velocity[m];
                bool on[5] = {x.x == 0, x.x == size.x, x.y == 0, x.z == 0, x.z == size.z};
                bool any = false;
                for (int s = 0; s < 5; s++) {
                    in_planes[s] += on[s];
                    any |= on[s];
                }
                if (!any) {
                    check_near(x.y, heights[n], 0.1 * h);
                    check_below(0.98, mesh.normal[m].y);
                    above++;
                }
                check_near(velocity.x, 1, 1e-6);
                check_near(velocity.z, 3, 1e-6);
                /* no vertex a hair off a side: in the plane or clear of it */
                if (!on[0]) check_below(0.1 * h, x.x);
            }
            assert_true(above > 200);
            for (int s = 0; s < 5; s++) assert_true(in_planes[s] > 50);
            un_trimesh_free(v.tank.ctx, &mesh);
            vessel_end(&v);
        }
}

/* A film of air too thin to resolve between water and glass is not shown. */
static void water_next_to_a_side_touches_it(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(1, 1, 0.8), 20);
    vessel_build(&v);
    vessel_pour(&v, tank_plane(&v.tank, un_v3(0, 0.5, 0), un_v3(0, 1, 0)), un_v3(0, 0, 0));
    un_particles *p = &v.particles;
    uint8_t *keep = malloc((size_t)p->count);
    for (int32_t q = 0; q < p->count; q++) keep[q] = p->x[0][q] > 0.4 * v.tank.grid.h;
    un_particles_filter(p, keep);
    free(keep);
    vessel_refresh(&v);
    un_trimesh mesh = mesh_of(&v, 40);
    check_closed(v.tank.ctx, &mesh);
    double area = 0;
    for (int32_t t = 0; t < mesh.triangle_count; t++) {
        const int32_t *c = mesh.triangle[t];
        const un_vec3 *x = mesh.position;
        if (x[c[0]].x == 0 && x[c[1]].x == 0 && x[c[2]].x == 0)
            area += un_length(area_vector(&mesh, t));
    }
    check_below(0.9 * 0.5 * 0.8, area);
    un_trimesh_free(v.tank.ctx, &mesh);
    vessel_end(&v);
}

/* Deep water has no bubbles in it, however tall. */
static void tall_tanks_have_no_voids(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(0.5, 2, 0.5), 60);
    vessel_build(&v);
    vessel_pour(&v, tank_plane(&v.tank, un_v3(0, 1.713, 0), un_v3(0, 1, 0)), un_v3(0, 0, 0));
    un_trimesh mesh = mesh_of(&v, 90);
    assert_int_equal(check_closed(v.tank.ctx, &mesh).component_count, 1);
    check_near(un_surface_volume(&mesh) / (1.713 * 0.25), 1, 5e-3);
    un_trimesh_free(v.tank.ctx, &mesh);
    vessel_end(&v);
}

static void full_and_empty_tanks(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(1, 1, 1), 10);
    vessel_build(&v);
    vessel_refresh(&v);
    un_trimesh mesh = mesh_of(&v, 20);
    assert_int_equal(mesh.triangle_count, 0);
    un_trimesh_free(v.tank.ctx, &mesh);
    vessel_pour(&v, tank_box(&v.tank, un_v3(-1, -1, -1), un_v3(2, 2, 2)), un_v3(0, 0, 0));
    mesh = mesh_of(&v, 20);
    assert_int_equal(check_closed(v.tank.ctx, &mesh).component_count, 1);
    check_near(un_surface_volume(&mesh), 1, 1e-6);
    un_trimesh_free(v.tank.ctx, &mesh);
    vessel_end(&v);
}

/* A lone particle is a small drop of about its own volume, wherever it is. */
static void lone_particles_are_drops(void **state)
{
    (void)state;
    const un_vec3 places[] = {
        {0.53, 0.51, 0.47}, {0.501, 0.777, 0.3}, {0.02, 0.5, 0.5}, {0.98, 0.98, 0.02}};
    for (int n = 0; n < 4; n++) {
        vessel v;
        vessel_begin(&v, 2, un_v3(1, 1, 1), 12);
        vessel_build(&v);
        double h = v.tank.grid.h, own = h * h * h / 8;
        vessel_add(&v, places[n], own);
        un_trimesh mesh = mesh_of(&v, 48);
        assert_int_equal(check_closed(v.tank.ctx, &mesh).component_count, 1);
        double volume = un_surface_volume(&mesh);
        assert_true(volume > 0.1 * own && volume < 2.5 * own);
        for (int32_t m = 0; m < mesh.vertex_count; m++) {
            check_below(un_length(un_sub(mesh.position[m], places[n])), h);
            check_near(mesh.velocity[m].y, 2, 1e-9);
        }
        un_trimesh_free(v.tank.ctx, &mesh);
        vessel_end(&v);
    }
}

static void surfaces_keep_out_of_solids(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(1, 1, 1), 24);
    tank_solid(&v.tank, tank_sphere(&v.tank, un_v3(0.5, 0.4, 0.5), 0.22), un_v3(0, 0, 0));
    vessel_build(&v);
    vessel_pour(&v, tank_plane(&v.tank, un_v3(0, 0.45, 0), un_v3(0, 1, 0)), un_v3(0, 0, 0));
    un_trimesh mesh = mesh_of(&v, 48);
    check_closed(v.tank.ctx, &mesh);
    check_near(un_surface_volume(&mesh) / v.volume, 1, 0.02);
    int touching = 0;
    for (int32_t m = 0; m < mesh.vertex_count; m++) {
        double d = un_shape_distance(v.tank.solids[0].shape, mesh.position[m]);
        check_below(-0.25 * v.tank.grid.h, d); /* fairing may cut a little */
        touching += fabs(d) < 0.1 * v.tank.grid.h;
        /* the water stands level up to the ball: 0.22 of a cell off where it touches */
        bool on_top = d > 0.15 * v.tank.grid.h && d < v.tank.grid.h && mesh.position[m].y > 0.3;
        if (on_top) check_near(mesh.position[m].y, 0.45, 0.28 * v.tank.grid.h);
    }
    assert_true(touching > 100); /* and no gap */
    un_trimesh_free(v.tank.ctx, &mesh);
    vessel_end(&v);
}

/* A splash: many loose particles over a pool. */
static void fill_splash(vessel *v, int32_t threads)
{
    vessel_begin(v, threads, un_v3(1, 1, 1), 16);
    tank_solid(&v->tank, tank_box(&v->tank, un_v3(0.6, 0, 0.6), un_v3(0.8, 0.6, 0.8)),
               un_v3(0, 0, 0));
    vessel_build(v);
    vessel_pour(v, tank_plane(&v->tank, un_v3(0, 0.3, 0), un_v3(0.2, 1, 0)), un_v3(0, 0, 0));
    un_particles *p = &v->particles;
    int32_t first = p->count;
    check_ok(v->tank.ctx, un_particles_reserve(v->tank.ctx, p, first + 800));
    p->count = first + 800;
    for (int32_t q = first; q < p->count; q++) {
        for (uint64_t a = 0; a < 3; a++) {
            p->x[a][q] = 0.005 + 0.58 * un_random((uint64_t)q, a);
            p->v[a][q] = un_random((uint64_t)q, 3 + a);
        }
        p->volume[q] = (float)(pow(1.0 / 16, 3) / 8);
        p->flags[q] = 0;
    }
    vessel_refresh(v);
}

static void splashes_are_closed_and_the_same_for_any_thread_count(void **state)
{
    (void)state;
    un_vec3 *first = NULL, *velocity = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        vessel v;
        fill_splash(&v, threads);
        un_trimesh mesh = mesh_of(&v, 32);
        check_closed(v.tank.ctx, &mesh);
        size_t bytes = (size_t)mesh.vertex_count * sizeof *first;
        if (!first) {
            first = memcpy(malloc(bytes), mesh.position, bytes);
            velocity = memcpy(malloc(bytes), mesh.velocity, bytes);
        }
        assert_memory_equal(first, mesh.position, bytes);
        assert_memory_equal(velocity, mesh.velocity, bytes);
        un_trimesh_free(v.tank.ctx, &mesh);
        vessel_end(&v);
    }
    free(first);
    free(velocity);
}

/* Coarser than the simulation, finer than is of use, and sides of a single lattice cell. */
static void any_resolution_gives_a_closed_mesh(void **state)
{
    (void)state;
    static const int32_t resolutions[] = {1, 2, 5, 16, 17, 100};
    for (int n = 0; n < 12; n++) {
        vessel v;
        /* the second tank is a film, thinner than a cell */
        vessel_begin(&v, 2, un_v3(1, n < 6 ? 0.1 : 0.03, 0.3), 10);
        vessel_build(&v);
        vessel_pour(&v, tank_plane(&v.tank, un_v3(0.5, 0.05, 0), un_v3(1, 0.1, 0.2)),
                    un_v3(0, 0, 0));
        un_trimesh mesh = mesh_of(&v, resolutions[n % 6]);
        check_closed(v.tank.ctx, &mesh);
        un_trimesh_free(v.tank.ctx, &mesh);
        vessel_end(&v);
    }
}

static un_status mesh_once(un_context *ctx, void *arg)
{
    vessel *v = arg;
    un_trimesh mesh;
    un_mesher in = vessel_mesher(v, 16);
    UN_TRY(un_surface_mesh(ctx, &mesh, &in));
    un_trimesh_free(ctx, &mesh);
    return UN_OK;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    vessel v;
    fill_splash(&v, 1);
    check_allocation_failures(mesh_once, &v, 300);
    vessel_end(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resting_tank_is_flat_and_closed),
        cmocka_unit_test(water_next_to_a_side_touches_it),
        cmocka_unit_test(tall_tanks_have_no_voids),
        cmocka_unit_test(full_and_empty_tanks),
        cmocka_unit_test(lone_particles_are_drops),
        cmocka_unit_test(surfaces_keep_out_of_solids),
        cmocka_unit_test(splashes_are_closed_and_the_same_for_any_thread_count),
        cmocka_unit_test(any_resolution_gives_a_closed_mesh),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
