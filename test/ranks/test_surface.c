/* The output surface of hulls, made by several ranks: rank 0 gets that of one rank, bit by bit. */
#include "surface/surface.h"

#include "surface/bath.h"

#include "group.h"

static double graded(un_vec3 x)
{
    double d = fmax(hypot(x.x - 0.3, x.z - 0.4) - 0.1, fabs(x.y - 0.5));
    return fmin(fmax(0.3 * d, 1.0 / 32), 0.125);
}

/* Water of particles of many sizes around a ball and a ramp; above it a sheet, spray and drops.
 * hollow: nobody knows how deep they are, so hulls leave gaps. */
static void begin_splash(bath *b, un_context *ctx, bool solids, bool hollow)
{
    memset(b, 0, sizeof *b);
    un_vec3 size = un_v3(1, 1, 0.75);
    tank_begin_in(&b->tank, ctx, size, 16);
    if (solids) {
        tank_solid(&b->tank, tank_sphere(&b->tank, un_v3(0.6, 0.5, 0.4), 0.15), un_v3(0, 0, 0));
        tank_solid(&b->tank, tank_plane(&b->tank, un_v3(0.1, 0, 0), un_v3(0.9, 0.4, 0.1)),
                   un_v3(0, 0, 0));
    }
    drops_fill(&b->drops, un_v3(0, 0, 0), 1, 0.5, graded, 0.25, 3);
    int64_t water = b->drops.count;
    for (uint64_t i = 0; i < 900; i++) { /* a sheet with holes */
        double u = un_random(i, 1), v = un_random(i, 2), w = un_random(i, 3);
        drops_add(&b->drops, un_v3(0.2 + 0.4 * u, 0.75 + 0.1 * u + 0.004 * w, 0.2 + 0.4 * v), 0.008,
                  0.02);
    }
    for (uint64_t i = 0; i < 300; i++)
        drops_add(&b->drops, un_v3(un_random(i, 5), 0.52 + 0.4 * un_random(i, 6), un_random(i, 7)),
                  0.008, 0.02);
    for (int64_t q = water; q < b->drops.count; q++) b->drops.flags[q] = UN_PARTICLE_BALLISTIC;
    for (int64_t q = 0; q < water && hollow; q++) b->drops.depth[q] = -1.2f * b->drops.radius[q];
    bath_build(b);
    for (int32_t q = 0; q < b->particles.count; q++)
        for (int a = 0; a < 3; a++)
            b->particles.v[a][q] = 4 * un_random((uint64_t)q, (uint64_t)a) - 2;
}

static void end_splash(bath *b) /* but for its context */
{
    un_particles_free(b->tank.ctx, &b->particles);
    drops_free(&b->drops);
    tank_free(&b->tank);
}

static un_hull_mesher mesher_of(const bath *b, int spread)
{
    un_hull_mesher in = bath_mesher(b, 56, true);
    in.shared = true;
    in.range = group_range(spread, b->particles.count);
    in.own = (un_part){in.range.begin, in.range.end};
    return in;
}

static void is_that_of_one_rank(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        un_context *ctx = group_context_failing(kind == 1 ? 2 : 1, 0, 0), *alone = check_context();
        un_trimesh mesh, wanted;
        un_hulls_report report, report_alone;
        bath shared, one;
        begin_splash(&shared, ctx, kind != 2, kind == 2);
        begin_splash(&one, alone, kind != 2, kind == 2);
        un_hull_mesher in = mesher_of(&shared, kind % SPREAD_COUNT);
        un_hull_mesher in_alone = bath_mesher(&one, 56, true);
        if (kind == 3) in.bytes_max = in_alone.bytes_max = 4e6; /* it gets coarser */
        check_ok(ctx, un_surface_mesh_hulls(ctx, &mesh, &in, &report));
        check_ok(alone, un_surface_mesh_hulls(alone, &wanted, &in_alone, &report_alone));
        assert_int_equal(report.resolution, report_alone.resolution);
        assert_true((report.resolution < 56) == (kind == 3));
        assert_int_equal(report.triplet_count, report_alone.triplet_count);
        if (un_ranks_rank(group) == 0) {
            assert_true(wanted.vertex_count > (kind == 3 ? 1000 : 5000));
            assert_int_equal(mesh.vertex_count, wanted.vertex_count);
            assert_int_equal(mesh.triangle_count, wanted.triangle_count);
            size_t v = (size_t)wanted.vertex_count, t = (size_t)wanted.triangle_count;
            assert_memory_equal(mesh.position, wanted.position, v * sizeof *mesh.position);
            assert_memory_equal(mesh.normal, wanted.normal, v * sizeof *mesh.normal);
            assert_memory_equal(mesh.velocity, wanted.velocity, v * sizeof *mesh.velocity);
            assert_memory_equal(mesh.triangle, wanted.triangle, t * sizeof *mesh.triangle);
        } else {
            assert_int_equal(mesh.vertex_count, 0);
        }
        un_trimesh_free(ctx, &mesh);
        un_trimesh_free(alone, &wanted);
        end_splash(&shared);
        end_splash(&one);
        check_context_end(alone);
        check_context_end(ctx);
    }
}

/* An allocation that fails on one rank fails on all, and none waits. */
static void memory_fails_on_all(void **state)
{
    (void)state;
    int32_t failures = 0;
    bool done = false;
    un_context *alone = check_context();
    bath b;
    begin_splash(&b, alone, true, false);
    un_hull_mesher in = mesher_of(&b, SPREAD_EVEN);
    in.resolution = 8;
    for (int64_t n = 1; !done; n += 1 + n / 8) {
        un_context *ctx = group_context_failing(1, n, (int32_t)(n % un_ranks_count(group)));
        un_trimesh mesh;
        un_hulls_report report;
        un_status status = un_surface_mesh_hulls(ctx, &mesh, &in, &report);
        double failed = un_ranks_max(ctx, status != UN_OK);
        assert_true(failed == (status != UN_OK));
        if (status != UN_OK) assert_int_equal(status, UN_ERROR_MEMORY);
        failures += status != UN_OK;
        done = status == UN_OK && n > 300;
        un_trimesh_free(ctx, &mesh);
        check_context_end(ctx);
    }
    assert_true(failures >= 15);
    end_splash(&b);
    check_context_end(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_that_of_one_rank),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
