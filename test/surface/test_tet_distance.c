/* Redistancing on tets: exact for planes on any mesh, of second order near a sphere, signs and
 * crossings kept, the same for any number of threads. */
#include "surface/meshes.h"

/* Any monotone function of a distance is a level set. */
static double squeezed_plane(un_vec3 x, const double *p)
{
    return 0.1 * plane(x, p);
}
static double squeezed_sphere(un_vec3 x, const double *p)
{
    double d = sphere(x, p);
    return 3 * d + 4 * d * d;
}

typedef struct errors {
    double near, far, rms; /* near: of nodes within two finest cells; in finest cells */
    double relative;       /* far, of the distance */
} errors;

static errors find_errors(const mesh_case *c, field *exact, const double *p)
{
    errors e = {0};
    double h = c->tree.h, sum = 0;
    int64_t count = 0;
    for (int32_t n = 0; n < c->mesh.node_count; n++) {
        double wanted = exact(c->mesh.x[n], p), error = fabs(c->phi[n] - wanted);
        if (fabs(wanted) < 2 * h) {
            e.near = fmax(e.near, error / h);
            sum += error * error / (h * h);
            count++;
        } else {
            e.far = fmax(e.far, error / h);
            e.relative = fmax(e.relative, error / fabs(wanted));
        }
    }
    e.rms = sqrt(sum / (double)count);
    return e;
}

static void planes_are_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        un_vec3 normal = un_normalize(
            un_v3(un_random(0, seed) - 0.5, un_random(1, seed) - 0.5, un_random(2, seed) - 0.5));
        if (seed == 0) normal = un_v3(0, 1, 0);
        double p[4] = {normal.x, normal.y, normal.z, un_dot(normal, un_v3(0.5, 0.45, 0.4))};
        mesh_case c;
        un_vec3 at[3] = {{0.5, 0.45, 0.3}, {0.9, 0.1, 0.5}, {0.2, 0.8, 0.1}};
        case_begin(&c, 2, un_v3(1, 1, 0.5), 4, 32, at, seed % 2 ? 0 : 3);
        case_fill(&c, squeezed_plane, p);
        case_redistance(&c);
        /* The foot of a node is on the surface only if it lies in the brick. */
        double worst = 0;
        for (int32_t n = 0; n < c.mesh.node_count; n++) {
            double d = plane(c.mesh.x[n], p);
            un_vec3 foot = un_mad(c.mesh.x[n], normal, -d);
            if (foot.x < 0 || foot.y < 0 || foot.z < 0 || foot.x > 1 || foot.y > 1 || foot.z > 0.5)
                continue;
            worst = fmax(worst, fabs(c.phi[n] - d));
        }
        check_below(worst / c.tree.h, 1e-5);
        case_end(&c);
    }
}

static void sphere_converges(void **state)
{
    (void)state;
    double p[4] = {0.52, 0.487, 0.531, 0.37};
    for (int graded = 0; graded < 2; graded++) {
        errors e[3];
        for (int level = 0; level < 3; level++) {
            int64_t count = 0;
            int32_t finest = 12 << level;
            un_vec3 *x = graded ? points_on_sphere(p, 1.0 / finest, &count) : NULL;
            mesh_case c;
            case_begin(&c, 2, un_v3(1, 1, 1), 4, finest, x, count);
            free(x);
            case_fill(&c, sphere, p);
            case_redistance(&c);
            e[level] = find_errors(&c, sphere, p);
            /* a function that is no distance: crossings move at second order only */
            case_fill(&c, squeezed_sphere, p);
            case_redistance(&c);
            errors s = find_errors(&c, sphere, p);
            check_below(s.near, 0.16 / (1 << level));
            check_below(s.relative, 0.1);
            case_end(&c);
        }
        for (int level = 0; level < 2; level++)
            assert_true(log2(e[level].rms / e[level + 1].rms) > 0.9); /* in cells: h^2 in metres */
    }
}

static void signs_and_broken_values(void **state)
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
            size_t nodes = (size_t)mesh.node_count;
            float *phi = un_alloc(ctx, nodes, sizeof *phi),
                  *was = un_alloc(ctx, nodes, sizeof *was);
            int32_t liquid = 0;
            for (int32_t n = 0; n < mesh.node_count; n++) {
                phi[n] = (float)(un_random((uint64_t)n, seed) - 0.02 - 0.19 * (double)seed);
                if (seed == 5) phi[n] = n % 7 ? phi[n] : n % 3 ? NAN : n % 2 ? -INFINITY : 0;
                liquid += phi[n] < 0;
            }
            memcpy(was, phi, nodes * sizeof *phi);
            check_ok(ctx, un_tets_redistance(ctx, &arena, phi, &mesh));
            double reach = un_octree_size(&tree, 0) * 2;
            for (int32_t n = 0; n < mesh.node_count; n++) {
                assert_int_equal(phi[n] < 0, was[n] < 0);
                if (liquid > 0 && liquid < mesh.node_count)
                    check_below(fabs(phi[n]), liquid > 20 ? 40 * reach : 1e3);
                else
                    assert_true(isinf(phi[n]));
            }
            un_free(ctx, phi);
            un_free(ctx, was);
            un_tets_free(&mesh);
            un_octree_free(&tree);
            un_arena_reset(&arena);
        }
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    double p[4] = {0.3, 0.5, 0.6, 0.45};
    mesh_case keep;
    for (int32_t threads = 1; threads <= 4; threads++) {
        int64_t count;
        un_vec3 *x = points_on_sphere(p, 1.0 / 64, &count);
        mesh_case c;
        case_begin(&c, threads, un_v3(1, 1, 1), 4, 64, x, count);
        free(x);
        case_fill(&c, squeezed_sphere, p);
        case_redistance(&c);
        if (threads == 1) {
            keep = c;
            continue;
        }
        assert_memory_equal(c.phi, keep.phi, (size_t)c.mesh.node_count * sizeof *c.phi);
        case_end(&c);
    }
    case_end(&keep);
}

static un_status redistance_once(un_context *ctx, void *arg)
{
    mesh_case *c = arg;
    un_arena arena;
    un_arena_init(&arena, ctx);
    double p[4] = {0.3, 0.5, 0.6, 0.45};
    case_fill(c, sphere, p);
    un_status status = un_tets_redistance(ctx, &arena, c->phi, &c->mesh);
    un_arena_free(&arena);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    mesh_case c;
    case_begin(&c, 1, un_v3(1, 1, 1), 4, 24, NULL, 0);
    check_allocation_failures(redistance_once, &c, 200);
    case_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_are_exact),        cmocka_unit_test(sphere_converges),
        cmocka_unit_test(signs_and_broken_values), cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(survives_lack_of_memory),
    };
    check_races_in("threads*");
    return cmocka_run_group_tests_name("tet distance", tests, NULL, NULL);
}
