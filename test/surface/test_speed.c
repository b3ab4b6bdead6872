/* test-labels: timing
 * What surfaces of particles of many sizes cost. Prints figures; asserts only what any machine
 * should manage, busy or not. */
#include "surface/drops.h"
#include "surface/meshes.h"
#include "mesh/tank.h"

#include <time.h>

/* Of this process, so that others on the machine do not count; one core. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void redistancing(void **state)
{
    (void)state;
    double p[4] = {0.52, 0.487, 0.531, 0.37};
    for (int graded = 0; graded < 2; graded++) {
        int64_t count = 0;
        int32_t finest = graded ? 128 : 64;
        un_vec3 *x = graded ? points_on_sphere(p, 1.0 / finest, &count) : NULL;
        mesh_case c;
        case_begin(&c, 1, un_v3(1, 1, 1), 4, finest, x, count);
        free(x);
        double distance = INFINITY, contour = INFINITY;
        for (int round = 0; round < 4; round++) {
            case_fill(&c, sphere, p);
            double t0 = processor_seconds();
            case_redistance(&c);
            double t1 = processor_seconds();
            un_trimesh mesh = case_contour(&c);
            distance = fmin(distance, t1 - t0);
            contour = fmin(contour, processor_seconds() - t1);
            un_trimesh_free(c.ctx, &mesh);
        }
        print_message("%-8s %8d nodes: redistance %.3f us, contour %.3f us each\n",
                      graded ? "graded" : "even", c.mesh.node_count,
                      1e6 * distance / c.mesh.node_count, 1e6 * contour / c.mesh.node_count);
        check_below(1e6 * distance / c.mesh.node_count, 5);
        case_end(&c);
    }
}

/* Finest in a disc of the surface, 64 times coarser in the depth and far from it. */
static double disc(un_vec3 x)
{
    double d = fmax(hypot(x.x - 0.3, x.z - 0.4) - 0.1, fabs(x.y - 0.5));
    return fmin(fmax(0.25 * d, 1.0 / 512), 1.0 / 8);
}

static void hulls(void **state)
{
    (void)state;
    drops d = {0};
    drops_fill(&d, un_v3(0, 0, 0), 1, 0.5, disc, 0.25, 1);
    un_context *ctx = check_context_threads(1);
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_octree tree;
    un_tets mesh;
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 256);
    uint8_t *level = malloc((size_t)d.count), *reach = malloc((size_t)d.count);
    for (int64_t q = 0; q < d.count; q++) {
        level[q] = (uint8_t)un_octree_level(&tree, 4.04 * d.radius[q]);
        reach[q] = d.depth[q] > -4 * d.radius[q];
    }
    un_octree_request request = {d.count, {d.x[0], d.x[1], d.x[2]}, level, reach};
    check_ok(ctx, un_octree_build(&tree, &arena, &request));
    un_tets_init(ctx, &mesh);
    check_ok(ctx, un_tets_build(&mesh, &arena, &tree));
    float *phi = malloc((size_t)mesh.node_count * sizeof *phi);
    double create = INFINITY, level_set = INFINITY;
    un_hulls_report report;
    for (int round = 0; round < 4; round++) {
        un_arena_reset(&arena);
        un_groups groups = drops_groups(ctx, &arena, &d);
        un_hulls_def def = {.groups = &groups, .radius = d.radius, .depth = d.depth, .reach = 2};
        un_hulls *found;
        double t0 = processor_seconds();
        check_ok(ctx, un_hulls_create(ctx, &arena, &def, &found, &report));
        double t1 = processor_seconds();
        check_ok(ctx,
                 un_hulls_level_set(ctx, &arena, phi, &mesh, found, &groups, d.radius, d.depth));
        create = fmin(create, t1 - t0);
        level_set = fmin(level_set, processor_seconds() - t1);
        un_hulls_destroy(found);
    }
    double owners = (double)report.candidate_count;
    print_message(
        "hulls    %8lld particles, %lld near the surface: %.1f pairs and %.1f triplets each, "
        "%.2f faces kept\n",
        (long long)d.count, (long long)report.candidate_count, (double)report.pair_count / owners,
        (double)report.triplet_count / owners, (double)report.face_count / owners);
    print_message("         %.2f us each to find them, %.2f us for the level set at %d nodes\n",
                  1e6 * create / owners, 1e6 * level_set / owners, mesh.node_count);
    check_below(1e6 * create / owners, 20);
    check_below(1e6 * level_set / owners, 40);
    assert_true(report.face_count < 2 * report.candidate_count);
    free(phi);
    free(level);
    free(reach);
    un_tets_free(&mesh);
    un_octree_free(&tree);
    un_arena_free(&arena);
    check_context_end(ctx);
    drops_free(&d);
}

static void output(void **state)
{
    (void)state;
    tank t;
    drops d = {0};
    tank_begin(&t, 1, un_v3(1, 1, 1), 16);
    tank_build(&t);
    drops_fill(&d, un_v3(0, 0, 0), 1, 0.5, disc, 0.25, 1);
    un_particles p = {0};
    check_ok(t.ctx, un_particles_reserve(t.ctx, &p, d.count));
    p.count = (int32_t)d.count;
    for (int64_t q = 0; q < d.count; q++) {
        for (int a = 0; a < 3; a++) p.x[a][q] = d.x[a][q], p.v[a][q] = 0;
        p.volume[q] = 8 * d.radius[q] * d.radius[q] * d.radius[q];
        p.flags[q] = 0;
    }
    un_hull_mesher in = {.particles = &p,
                         .radius = d.radius,
                         .depth = d.depth,
                         .walls = t.walls,
                         .size = un_v3(1, 1, 1),
                         .coarsest = 4,
                         .resolution = 512,
                         .smoothing = 8};
    double best = INFINITY;
    int32_t vertices = 0;
    for (int round = 0; round < 2; round++) {
        un_trimesh mesh;
        un_hulls_report report;
        double t0 = processor_seconds();
        check_ok(t.ctx, un_surface_mesh_hulls(t.ctx, &mesh, &in, &report));
        best = fmin(best, processor_seconds() - t0);
        vertices = mesh.vertex_count;
        un_trimesh_free(t.ctx, &mesh);
    }
    print_message("output   %8d vertices: %.2f us each\n", vertices, 1e6 * best / vertices);
    check_below(1e6 * best / vertices, 100);
    un_particles_free(t.ctx, &p);
    drops_free(&d);
    tank_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redistancing),
        cmocka_unit_test(hulls),
        cmocka_unit_test(output),
    };
    return cmocka_run_group_tests_name("surface speed", tests, NULL, NULL);
}
