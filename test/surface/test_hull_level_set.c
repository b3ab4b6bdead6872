/* Hulls as a level set on tets: flat where particles are, no gaps inside, the same for any number
 * of threads. */
#include "mesh/tank.h"
#include "surface/cut.h"
#include "surface/drops.h"
#include "surface/hulls.h"
#include "surface/meshes.h"

typedef struct pool {
    un_context *ctx;
    un_arena arena;
    drops drops;
    un_groups groups;
    un_octree tree;
    un_tets mesh;
    float *phi;
} pool;

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

/* A mesh whose leaves hold eight particles each, over the particles of `drops`. */
static void pool_begin(pool *p, int32_t threads, int32_t finest)
{
    p->ctx = check_context_threads(threads);
    un_arena_init(&p->arena, p->ctx);
    un_octree_init(p->ctx, &p->tree, un_v3(1, 1, 1), 4, finest);
    size_t n = (size_t)p->drops.count + 1;
    uint8_t *level = un_arena_alloc(&p->arena, n, 1), *reach = un_arena_alloc(&p->arena, n, 1);
    for (int64_t q = 0; q < p->drops.count; q++) {
        level[q] = (uint8_t)un_octree_level(&p->tree, 4.04 * p->drops.radius[q]);
        reach[q] = p->drops.depth[q] > -4 * p->drops.radius[q];
    }
    un_octree_request request = {
        p->drops.count, {p->drops.x[0], p->drops.x[1], p->drops.x[2]}, level, reach};
    check_ok(p->ctx, un_octree_build(&p->tree, &p->arena, &request));
    un_tets_init(p->ctx, &p->mesh);
    check_ok(p->ctx, un_tets_build(&p->mesh, &p->arena, &p->tree));
    p->phi = un_alloc(p->ctx, (size_t)p->mesh.node_count, sizeof *p->phi);
    un_arena_reset(&p->arena);
}

static un_status pool_level_set(un_context *ctx, un_arena *arena, pool *p, bool deep)
{
    const drops *d = &p->drops;
    un_hulls *hulls;
    UN_TRY(un_groups_build(ctx, arena, &p->groups,
                           (const double *const[3]){d->x[0], d->x[1], d->x[2]}, d->radius,
                           d->count));
    un_hulls_def def = {.groups = &p->groups, .radius = d->radius, .flags = d->flags, .reach = 2};
    def.depth = deep ? d->depth : NULL;
    UN_TRY(un_hulls_create(ctx, arena, &def, &hulls, NULL));
    un_status status =
        un_hulls_level_set(ctx, arena, p->phi, &p->mesh, hulls, &p->groups, d->radius, def.depth);
    un_hulls_destroy(hulls);
    return status;
}

static void pool_fill(pool *p, bool deep)
{
    check_ok(p->ctx, pool_level_set(p->ctx, &p->arena, p, deep));
    un_arena_reset(&p->arena);
}

static void pool_end(pool *p)
{
    un_free(p->ctx, p->phi);
    un_tets_free(&p->mesh);
    un_octree_free(&p->tree);
    un_arena_free(&p->arena);
    check_context_end(p->ctx);
    drops_free(&p->drops);
}

static void unjittered_sizes_are_flat(void **state)
{
    (void)state;
    for (int deep = 0; deep < 2; deep++) {
        pool p = {0};
        drops_fill(&p.drops, un_v3(0, 0, 0), 1, 0.5, graded, 0, 1);
        pool_begin(&p, 2, 32);
        pool_fill(&p, deep);
        double worst = 0;
        int count = 0;
        for (int32_t n = 0; n < p.mesh.node_count; n++) {
            un_vec3 x = p.mesh.x[n];
            if (fmin(fmin(x.x, 1 - x.x), fmin(x.z, 1 - x.z)) < 0.1 + fabs(x.y - 0.5)) continue;
            double h = un_octree_size(&p.tree, p.mesh.node_level[n]);
            if (fabs(x.y - 0.5) > 2 * h) continue;
            worst = fmax(worst, fabs(p.phi[n] - (x.y - 0.5)) / h);
            count++;
        }
        assert_true(count > 200);
        check_below(worst, 2e-5);
        pool_end(&p);
    }
}

/* A block of jittered particles of many sizes is one piece without holes, as wide as it should be.
 */
static void no_gaps_inside(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        pool p = {0};
        drops_fill(&p.drops, un_v3(0, 0, 0), 1, 0.75, kind & 1 ? graded : even, 0.3, 5);
        /* away from the brick's sides, so that all of the surface is free */
        for (int64_t q = 0; q < p.drops.count; q++) {
            p.drops.depth[q] = (float)fmax(p.drops.depth[q], -p.drops.x[1][q]);
            for (int a = 0; a < 3; a++) {
                double x = p.drops.x[a][q];
                if (a != 1) p.drops.depth[q] = (float)fmax(p.drops.depth[q], fmax(-x, x - 1));
                p.drops.x[a][q] = 0.2 + 0.6 * x;
            }
            p.drops.radius[q] *= 0.6f;
            p.drops.depth[q] *= 0.6f;
        }
        pool_begin(&p, 2, 32);
        pool_fill(&p, kind & 2);
        un_trimesh surface;
        check_ok(p.ctx, un_tets_contour(p.ctx, &p.arena, p.phi, &p.mesh, &surface));
        un_surface_topology t = check_closed(p.ctx, &surface);
        assert_int_equal(t.component_count, 1);
        assert_int_equal(t.euler, 2);
        check_near(un_surface_volume(&surface) / (0.6 * 0.6 * 0.45), 1, 0.03);
        for (int32_t n = 0; n < p.mesh.node_count; n++) {
            un_vec3 x = p.mesh.x[n];
            double inside = fmin(fmin(fmin(x.x - 0.2, 0.8 - x.x), fmin(x.z - 0.2, 0.8 - x.z)),
                                 fmin(x.y - 0.2, 0.65 - x.y));
            if (inside > 0.03) assert_true(p.phi[n] < 0);
            if (inside > 0.06) check_near(p.phi[n], -inside, 0.02);
            if (inside < -0.03) assert_true(p.phi[n] > 0);
        }
        un_trimesh_free(p.ctx, &surface);
        pool_end(&p);
    }
}

/* Deep liquid on one side of a plate of half a cell: its large spheres do not come out behind it.
 */
static void spheres_stay_on_their_side(void **state)
{
    (void)state;
    const double inner = 13.0 / 32, outer = inner + 1.0 / 64;
    pool p = {0};
    drops all = {0};
    drops_fill(&all, un_v3(0, 0, 0), 1, 0.5, even, 0.2, 3);
    for (int64_t q = 0; q < all.count; q++)
        if (all.x[0][q] < inner - 0.2 * all.radius[q])
            drops_add(&p.drops, un_v3(all.x[0][q], all.x[1][q], all.x[2][q]), all.radius[q],
                      all.depth[q]);
    drops_free(&all);
    tank k;
    tank_begin(&k, 1, un_v3(1, 1, 1), 16);
    tank_solid(&k, tank_box(&k, un_v3(inner, -1, -1), un_v3(outer, 2, 2)), un_v3(0, 0, 0));
    tank_build_exact(&k);
    pool_begin(&p, 2, 32);
    const drops *d = &p.drops;
    un_hulls *hulls;
    un_cut cut;
    un_tet_graph graph;
    check_ok(p.ctx, un_groups_build(p.ctx, &p.arena, &p.groups,
                                    (const double *const[3]){d->x[0], d->x[1], d->x[2]}, d->radius,
                                    d->count));
    un_hulls_def def = {.groups = &p.groups,
                        .radius = d->radius,
                        .flags = d->flags,
                        .depth = d->depth,
                        .reach = 2,
                        .walls = k.walls};
    check_ok(p.ctx, un_hulls_create(p.ctx, &p.arena, &def, &hulls, NULL));
    check_ok(p.ctx, un_tet_graph_build(p.ctx, &p.arena, &graph, &p.mesh));
    un_hulls_cut_def cut_def = {.mesh = &p.mesh,
                                .graph = &graph,
                                .hulls = hulls,
                                .groups = &p.groups,
                                .radius = d->radius,
                                .depth = d->depth,
                                .walls = k.walls};
    check_ok(p.ctx, un_hulls_cut(p.ctx, &p.arena, &p.arena, &cut_def, p.phi, &cut));
    int liquid = 0, beyond = 0;
    for (int32_t n = 0; n < p.mesh.node_count; n++) {
        un_vec3 x = p.mesh.x[n];
        if (x.x > outer + 0.5 / 32) {
            assert_true(p.phi[n] > 0);
            beyond++;
        } else if (x.x < inner - 0.5 / 32 && x.x > 0.05 && x.y < 0.45 &&
                   fmin(x.z, 1 - x.z) > 0.05) {
            assert_true(p.phi[n] < 0);
            liquid++;
        }
    }
    assert_true(liquid > 200 && beyond > 200);
    un_hulls_destroy(hulls);
    pool_end(&p);
    tank_end(&k);
}

static void empty_is_air(void **state)
{
    (void)state;
    pool p = {0};
    pool_begin(&p, 2, 8);
    pool_fill(&p, true);
    for (int32_t n = 0; n < p.mesh.node_count; n++) assert_true(p.phi[n] == INFINITY);
    pool_end(&p);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    pool keep = {0};
    for (int32_t threads = 1; threads <= 4; threads += threads) {
        pool p = {0};
        drops_fill(&p.drops, un_v3(0, 0, 0), 1, 0.5, graded, 0.25, 3);
        pool_begin(&p, threads, 32);
        pool_fill(&p, threads != 3);
        if (threads == 1) {
            keep = p;
            continue;
        }
        assert_memory_equal(p.phi, keep.phi, (size_t)p.mesh.node_count * sizeof *p.phi);
        pool_end(&p);
    }
    pool_end(&keep);
}

static un_status level_set_once(un_context *ctx, void *arg)
{
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_status status = pool_level_set(ctx, &arena, arg, true);
    un_arena_free(&arena);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    pool p = {0};
    drops_fill(&p.drops, un_v3(0, 0, 0), 0.5, 0.25, even, 0.25, 3);
    pool_begin(&p, 1, 8);
    check_allocation_failures(level_set_once, &p, 200);
    pool_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unjittered_sizes_are_flat),  cmocka_unit_test(no_gaps_inside),
        cmocka_unit_test(spheres_stay_on_their_side), cmocka_unit_test(empty_is_air),
        cmocka_unit_test(threads_do_not_matter),      cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests_name("hull level set", tests, NULL, NULL);
}
