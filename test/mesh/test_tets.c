/* Graded BCC tets: conformity by counting faces, location against brute force. */
#include "trees.h"

static void build_mesh(un_context *ctx, un_octree *tree, un_tets *mesh, const check_tree_def *def,
                       uint64_t seed)
{
    un_arena arena;
    un_arena_init(&arena, ctx);
    check_build_tree(ctx, tree, def, seed);
    un_tets_init(ctx, mesh);
    check_ok(ctx, un_tets_build(mesh, &arena, tree));
    un_arena_free(&arena);
}

static void free_mesh(un_octree *tree, un_tets *mesh)
{
    un_tets_free(mesh);
    un_octree_free(tree);
}

static void conforms(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int i = 0; i < CHECK_TREE_COUNT; i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            un_octree tree;
            un_tets mesh;
            un_tets_report report;
            build_mesh(ctx, &tree, &mesh, &check_trees[i], 100 + seed);
            check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
            assert_int_equal(report.unmatched_faces, 0);
            assert_int_equal(report.misoriented_tets, 0);
            double brick = (double)tree.n[0] * tree.n[1] * tree.n[2] * pow(tree.h, 3), sum = 0;
            check_near(report.volume / brick, 1, 1e-12);
            for (int32_t t = 0; t < mesh.tet_count; t++) sum += un_tets_volume(&mesh, t);
            check_near(sum / brick, 1, 1e-12);
            check_near(report.min_angle, 45, 1e-9);
            check_below(report.max_angle, 120 + 1e-9);
            int64_t count = 0;
            for (int k = 0; k < 5; k++) count += report.kind_count[k];
            assert_int_equal(count, mesh.tet_count);
            assert_int_equal(report.boundary_faces, report.kind_count[UN_TET_BOUNDARY]);
            free_mesh(&tree, &mesh);
            un_arena_reset(&arena);
        }
    un_arena_free(&arena);
    check_context_end(ctx);
}

/* Dihedral angles of a shape, ascending, rounded to degrees. */
static void angles_of(const un_tet_shape *s, int angle[6])
{
    int n = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            const double *p = s->gradient[i], *q = s->gradient[j];
            double dot = p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
            double pp = p[0] * p[0] + p[1] * p[1] + p[2] * p[2];
            double qq = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
            double degrees = acos(-dot / sqrt(pp * qq)) * 180 / UN_PI;
            check_near(degrees, round(degrees), 1e-9);
            int k = n++;
            for (; k > 0 && angle[k - 1] > (int)round(degrees); k--) angle[k] = angle[k - 1];
            angle[k] = (int)round(degrees);
        }
}

static void shapes_are_those_of_the_lattice(void **state)
{
    (void)state;
    static const int expected[5][2][6] = {
        [UN_TET_BCC] = {{60, 60, 60, 60, 90, 90}},
        [UN_TET_BISECTED] = {{45, 60, 60, 90, 90, 90}},
        [UN_TET_QUADRISECTED] = {{45, 45, 60, 90, 90, 90}},
        [UN_TET_HALF_PYRAMID] = {{45, 45, 60, 60, 90, 120}},
        /* at the boundary: bisected and quadrisected ones */
        [UN_TET_BOUNDARY] = {{45, 60, 60, 90, 90, 90}, {45, 45, 60, 90, 90, 90}},
    };
    un_context *ctx = check_context();
    un_tets mesh;
    un_tets_init(ctx, &mesh);
    assert_true(mesh.shape_count > 0 && mesh.shape_count <= UN_TET_SHAPES_MAX);
    for (int k = 0; k < mesh.shape_count; k++) {
        const un_tet_shape *s = &mesh.shapes[k];
        int angle[6];
        angles_of(s, angle);
        if (memcmp(angle, expected[s->kind][0], sizeof angle) &&
            memcmp(angle, expected[s->kind][1], sizeof angle))
            fail_msg("shape %d of kind %d has angles %d %d %d %d %d %d", k, (int)s->kind, angle[0],
                     angle[1], angle[2], angle[3], angle[4], angle[5]);
        assert_true(s->volume > 0);
        for (int i = 0; i < 4; i++) {
            double row = 0;
            for (int j = 0; j < 4; j++) {
                row += s->stiffness[i][j];
                assert_true(s->stiffness[i][j] == s->stiffness[j][i]);
                double at = i == 0 ? 1 : 0; /* coordinate i at node j */
                for (int a = 0; j > 0 && a < 3; a++)
                    at += s->gradient[i][a] * s->edge[j - 1][a] / 2;
                check_near(at, i == j, 1e-15);
            }
            check_near(row, 0, 1e-15);
        }
        for (int j = 0; j < k; j++)
            assert_true(memcmp(s->edge, mesh.shapes[j].edge, sizeof s->edge) ||
                        s->kind != mesh.shapes[j].kind);
    }
    un_tets_free(&mesh);
    check_context_end(ctx);
}

static void nodes_are_numbered_along_the_curve(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int i = 0; i < CHECK_TREE_COUNT; i++) {
        un_octree tree;
        un_tets mesh;
        build_mesh(ctx, &tree, &mesh, &check_trees[i], 200);
        for (int32_t n = 0; n < mesh.node_count; n++) {
            if (n > 0) assert_true(un_tets_order(&mesh, n - 1) < un_tets_order(&mesh, n));
            uint64_t k = mesh.node_key[n];
            assert_true(mesh.x[n].x == tree.unit * un_morton_gather(k));
            assert_true(mesh.x[n].y == tree.unit * un_morton_gather(k >> 1));
            assert_true(mesh.x[n].z == tree.unit * un_morton_gather(k >> 2));
            /* The finest of the leaves that hold one of the eight cubes around it. */
            int32_t at[3], level = 0;
            for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(k >> a);
            for (int o = 0; o < 8; o++) {
                int32_t leaf =
                    un_octree_find_at(&tree, (at[0] - (o & 1)) >> 1, (at[1] - (o >> 1 & 1)) >> 1,
                                      (at[2] - (o >> 2)) >> 1);
                if (leaf >= 0 && tree.level[leaf] > level) level = tree.level[leaf];
            }
            assert_int_equal(mesh.node_level[n], level);
            assert_true(mesh.first[n + 1] > mesh.first[n]);
        }
        /* Every corner and centre of a leaf is a node. */
        for (int32_t c = 0; c < tree.leaf_count; c++)
            for (int o = 0; o < 9; o++) {
                uint32_t s = 2u << (tree.level_max - tree.level[c]);
                uint32_t d[3] = {(o & 1) * s, (o >> 1 & 1) * s, (o >> 2 & 1) * s};
                if (o == 8) d[0] = d[1] = d[2] = s / 2;
                uint64_t key = un_morton(2 * un_morton_gather(tree.key[c]) + d[0],
                                         2 * un_morton_gather(tree.key[c] >> 1) + d[1],
                                         2 * un_morton_gather(tree.key[c] >> 2) + d[2]);
                int32_t lo = 0, hi = mesh.node_count - 1;
                while (lo < hi) {
                    int32_t mid = (lo + hi) / 2;
                    if (un_tets_order(&mesh, mid) < un_morton_order(key, mesh.end_key))
                        lo = mid + 1;
                    else
                        hi = mid;
                }
                assert_true(mesh.node_key[lo] == key);
            }
        free_mesh(&tree, &mesh);
    }
    check_context_end(ctx);
}

static void tets_match_their_shapes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int i = 0; i < CHECK_TREE_COUNT; i++) {
        un_octree tree;
        un_tets mesh;
        build_mesh(ctx, &tree, &mesh, &check_trees[i], 300);
        for (int32_t t = 0; t < mesh.tet_count; t++) {
            const un_tet_shape *s = &mesh.shapes[mesh.shape[t]];
            int32_t scale = 1 << (tree.level_max - mesh.level[t]);
            for (int k = 1; k < 4; k++)
                for (int a = 0; a < 3; a++) {
                    int32_t from = (int32_t)un_morton_gather(mesh.node_key[mesh.tet[t][0]] >> a);
                    int32_t to = (int32_t)un_morton_gather(mesh.node_key[mesh.tet[t][k]] >> a);
                    assert_int_equal(to - from, scale * s->edge[k - 1][a]);
                }
            /* A linear function has its gradient. */
            double v[4];
            for (int k = 0; k < 4; k++) {
                un_vec3 x = mesh.x[mesh.tet[t][k]];
                v[k] = 1 + 2 * x.x - 3 * x.y + 0.5 * x.z;
            }
            un_vec3 g = un_tets_gradient(&mesh, t, v);
            check_near(g.x, 2, 1e-11);
            check_near(g.y, -3, 1e-11);
            check_near(g.z, 0.5, 1e-11);
        }
        free_mesh(&tree, &mesh);
    }
    check_context_end(ctx);
}

static void knows_the_tets_of_nodes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int i = 0; i < CHECK_TREE_COUNT; i++) {
        un_octree tree;
        un_tets mesh;
        build_mesh(ctx, &tree, &mesh, &check_trees[i], 400);
        assert_int_equal(mesh.first[0], 0);
        assert_int_equal(mesh.first[mesh.node_count], 4 * mesh.tet_count);
        for (int32_t n = 0; n < mesh.node_count; n++)
            for (int32_t k = mesh.first[n]; k < mesh.first[n + 1]; k++) {
                assert_int_equal(mesh.tet[mesh.corner[k] / 4][mesh.corner[k] % 4], n);
                if (k > mesh.first[n]) assert_true(mesh.corner[k - 1] < mesh.corner[k]);
            }
        free_mesh(&tree, &mesh);
    }
    check_context_end(ctx);
}

/* The least weight of x in tet t, from its nodes alone. */
static double weights_of(const un_tets *mesh, int32_t t, un_vec3 x, double w[4])
{
    un_vec3 p[4];
    for (int i = 0; i < 4; i++) p[i] = un_sub(mesh->x[mesh->tet[t][i]], x);
    double least = 1, sum = 0;
    for (int i = 0; i < 4; i++) {
        un_vec3 a = p[(i + 1) % 4], b = p[(i + 2) % 4], c = p[(i + 3) % 4];
        w[i] = (i % 2 ? -1 : 1) * un_dot(a, un_cross(b, c));
        sum += w[i];
    }
    for (int i = 0; i < 4; i++) {
        w[i] /= sum;
        least = fmin(least, w[i]);
    }
    return least;
}

static void check_location(const un_tets *mesh, un_vec3 x)
{
    un_tets_place place;
    double w[4], sum = 0;
    un_tets_locate(mesh, x, &place);
    assert_in_range(place.tet, 0, mesh->tet_count - 1);
    double least = weights_of(mesh, place.tet, x, w);
    if (!(least >= -1e-9)) fail_msg("point %g %g %g: weight %g", x.x, x.y, x.z, least);
    for (int i = 0; i < 4; i++) {
        assert_true(place.w[i] >= -1e-9);
        check_near(place.w[i], w[i], 1e-9);
        sum += place.w[i];
    }
    check_near(sum, 1, 1e-15);
    un_tets_place again;
    assert_true(un_tets_locate_in(mesh, place.tet, x, &again));
    assert_int_equal(again.tet, place.tet);
    for (int i = 0; i < 4; i++) check_near(again.w[i], place.w[i], 1e-10);
}

static void locates_points(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int i = 0; i < CHECK_TREE_COUNT; i++) {
        un_octree tree;
        un_tets mesh;
        build_mesh(ctx, &tree, &mesh, &check_trees[i], 500);
        double top[3];
        for (int a = 0; a < 3; a++) top[a] = tree.h * tree.n[a];
        for (uint64_t q = 0; q < 1500; q++)
            check_location(&mesh, un_v3(top[0] * un_random(q, 1), top[1] * un_random(q, 2),
                                        top[2] * un_random(q, 3)));
        /* Nodes, and middles of edges, faces and tets, or close by. */
        int32_t step = mesh.tet_count / 1000 + 1;
        for (int32_t t = 0; t < mesh.tet_count; t += step)
            for (int set = 1; set < 16; set++) {
                un_vec3 x = {0, 0, 0};
                int n = 0;
                for (int k = 0; k < 4; k++)
                    if (set >> k & 1) x = un_add(x, mesh.x[mesh.tet[t][k]]), n++;
                x = un_scale(x, 1.0 / n);
                check_location(&mesh,
                               un_v3(fmin(x.x, top[0]), fmin(x.y, top[1]), fmin(x.z, top[2])));
                un_tets_place place;
                if (set == 15) {
                    un_tets_locate(&mesh, x, &place);
                    assert_int_equal(place.tet, t);
                }
                x.x = un_clamp(nextafter(x.x, set & 1 ? 9 : -9), 0, top[0]);
                x.y = un_clamp(nextafter(x.y, set & 2 ? 9 : -9), 0, top[1]);
                x.z = un_clamp(nextafter(x.z, set & 4 ? 9 : -9), 0, top[2]);
                check_location(&mesh, x);
            }
        free_mesh(&tree, &mesh);
    }
    check_context_end(ctx);
}

/* Each tet that holds a point is a right answer, and there is none other. */
static void agrees_with_brute_force(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_octree tree;
    un_tets mesh;
    build_mesh(ctx, &tree, &mesh, &check_trees[5], 7);
    for (uint64_t q = 0; q < 150; q++) {
        un_vec3 x =
            un_v3(tree.h * tree.n[0] * un_random(q, 1), tree.h * tree.n[1] * un_random(q, 2),
                  tree.h * tree.n[2] * un_random(q, 3));
        un_tets_place place;
        un_tets_locate(&mesh, x, &place);
        int32_t holders = 0;
        for (int32_t t = 0; t < mesh.tet_count; t++) {
            double w[4];
            un_tets_place ignored;
            bool inside = weights_of(&mesh, t, x, w) > 1e-6;
            if (inside) assert_int_equal(t, place.tet);
            if (inside) assert_true(un_tets_locate_in(&mesh, t, x, &ignored));
            if (weights_of(&mesh, t, x, w) < -1e-6)
                assert_false(un_tets_locate_in(&mesh, t, x, &ignored));
            holders += inside;
        }
        assert_in_range(holders, 0, 1);
    }
    /* Outside counts at the boundary; nothing is no place. */
    un_tets_place place, end;
    un_tets_locate(&mesh, un_v3(-5, 1e9, -INFINITY), &place);
    un_tets_locate(&mesh, un_v3(0, tree.h * tree.n[1], 0), &end);
    assert_int_equal(place.tet, end.tet);
    un_tets_locate(&mesh, un_v3(NAN, NAN, NAN), &place);
    assert_in_range(place.tet, 0, mesh.tet_count - 1);
    assert_false(un_tets_locate_in(&mesh, 0, un_v3(NAN, 0, 0), &place));
    free_mesh(&tree, &mesh);
    check_context_end(ctx);
}

static void knows_neighbours(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_octree tree;
    un_tets mesh;
    build_mesh(ctx, &tree, &mesh, &check_trees[4], 8);
    int32_t *adjacency = un_alloc(ctx, 4 * (size_t)mesh.tet_count, sizeof *adjacency);
    check_ok(ctx, un_tets_adjacency(&mesh, &arena, adjacency));
    un_tets_report report;
    check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
    int64_t none = 0;
    for (int32_t t = 0; t < mesh.tet_count; t++)
        for (int i = 0; i < 4; i++) {
            int32_t other = adjacency[4 * t + i], shared = 0, back = 0;
            if (other < 0) {
                none++;
                continue;
            }
            for (int j = 0; j < 4; j++)
                for (int k = 0; k < 4; k++) shared += mesh.tet[t][j] == mesh.tet[other][k];
            assert_int_equal(shared, 3);
            for (int k = 0; k < 4; k++) {
                assert_int_not_equal(mesh.tet[t][i], mesh.tet[other][k]);
                back += adjacency[4 * other + k] == t;
            }
            assert_int_equal(back, 1);
        }
    assert_int_equal(none, report.boundary_faces);
    un_free(ctx, adjacency);
    free_mesh(&tree, &mesh);
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void has_the_same_bits_for_any_threads(void **state)
{
    (void)state;
    check_tree_def def = {{1, 0.8, 0.6}, 4, 128, 6000, 1, false};
    un_context *ctx[4];
    un_octree trees[4];
    un_tets meshes[4];
    for (int i = 0; i < 4; i++) {
        ctx[i] = check_context_threads(i + 1);
        un_tets *m = &meshes[i], *m0 = &meshes[0];
        if (i == 2) { /* arrays that have held something else */
            build_mesh(ctx[i], &trees[i], m, &check_trees[3], 1);
            un_octree_free(&trees[i]);
            un_arena arena;
            un_arena_init(&arena, ctx[i]);
            check_build_tree(ctx[i], &trees[i], &def, 11);
            check_ok(ctx[i], un_tets_build(m, &arena, &trees[i]));
            un_arena_free(&arena);
        } else
            build_mesh(ctx[i], &trees[i], m, &def, 11);
        size_t nodes = (size_t)m0->node_count, tets = (size_t)m0->tet_count;
        size_t leaves = (size_t)trees[0].leaf_count;
        assert_true(tets > 100000);
        assert_int_equal(m->node_count, m0->node_count);
        assert_int_equal(m->tet_count, m0->tet_count);
        assert_memory_equal(m->node_key, m0->node_key, nodes * sizeof *m->node_key);
        assert_memory_equal(m->x, m0->x, nodes * sizeof *m->x);
        assert_memory_equal(m->node_level, m0->node_level, nodes);
        assert_memory_equal(m->tet, m0->tet, tets * sizeof *m->tet);
        assert_memory_equal(m->shape, m0->shape, tets);
        assert_memory_equal(m->level, m0->level, tets);
        assert_memory_equal(m->face_tet, m0->face_tet, leaves * sizeof *m->face_tet);
        assert_memory_equal(m->face_code, m0->face_code, leaves * sizeof *m->face_code);
        assert_memory_equal(m->first, m0->first, (nodes + 1) * sizeof *m->first);
        assert_memory_equal(m->corner, m0->corner, 4 * tets * sizeof *m->corner);
    }
    for (int i = 0; i < 4; i++) {
        free_mesh(&trees[i], &meshes[i]);
        check_context_end(ctx[i]);
    }
}

/* What validate counts: break a mesh and see. */
static void sees_broken_meshes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_octree tree;
    un_tets mesh;
    un_tets_report report;
    build_mesh(ctx, &tree, &mesh, &check_trees[3], 9);
    int32_t *n = mesh.tet[mesh.tet_count / 2], swap = n[0];
    n[0] = n[1], n[1] = swap;
    check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
    assert_int_equal(report.misoriented_tets, 1);
    assert_int_equal(report.unmatched_faces, 0);
    n[1] = n[0], n[0] = swap;
    n[3] = n[3] > 0 ? n[3] - 1 : 1;
    check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
    assert_true(report.unmatched_faces >= 3);
    free_mesh(&tree, &mesh);
    un_arena_free(&arena);
    check_context_end(ctx);
}

/* Moves every third node inside the brick by up to a share of the edges there. */
static int32_t shake(un_tets *mesh, double share)
{
    int32_t moved = 0;
    for (int32_t n = 0; n < mesh->node_count; n++) {
        double way = 0.25 * share * un_octree_size(mesh->tree, mesh->node_level[n]);
        bool inside = true;
        for (int a = 0; a < 3; a++) {
            uint32_t at = un_morton_gather(mesh->node_key[n] >> a);
            inside &= at > 0 && at < 2 * (uint32_t)mesh->tree->n[a];
        }
        if (n % 3 || !inside) continue;
        uint64_t q = (uint64_t)n;
        mesh->x[n] = un_add(mesh->x[n],
                            un_v3(way * (2 * un_random(q, 1) - 1), way * (2 * un_random(q, 2) - 1),
                                  way * (2 * un_random(q, 3) - 1)));
        moved++;
    }
    return moved;
}

static double true_volume(const un_tets *mesh, int32_t t)
{
    const int32_t *n = mesh->tet[t];
    un_vec3 o = mesh->x[n[0]];
    return un_dot(un_sub(mesh->x[n[1]], o),
                  un_cross(un_sub(mesh->x[n[2]], o), un_sub(mesh->x[n[3]], o))) /
           6;
}

/* Moved nodes: volumes, gradients of linear functions and stiffness are those of the places; faces
 * of a tet close up; points are found; and the table's shapes are back after the next build. */
static void measures_moved_nodes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int i = 2; i < CHECK_TREE_COUNT; i++) {
        un_octree tree;
        un_tets mesh;
        un_tets_report before, report;
        build_mesh(ctx, &tree, &mesh, &check_trees[i], 70);
        check_ok(ctx, un_tets_validate(&mesh, &arena, &before));
        assert_int_equal(before.mismeasured_tets, 0);
        check_ok(ctx, un_tets_remeasure(&mesh, &arena));
        assert_int_equal(mesh.own_count, 0);
        int32_t moved = shake(&mesh, 0.6);
        assert_true(moved > 0);
        check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
        assert_true(report.mismeasured_tets > moved);
        check_ok(ctx, un_tets_remeasure(&mesh, &arena));
        assert_int_equal(mesh.own_count, report.mismeasured_tets);
        check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
        assert_int_equal(report.mismeasured_tets, 0);
        assert_int_equal(report.misoriented_tets, 0);
        assert_int_equal(report.unmatched_faces, 0);
        check_near(report.volume, before.volume, 1e-12 * before.volume);
        assert_true(report.min_angle < before.min_angle);
        for (int32_t t = 0; t < mesh.tet_count; t++) {
            double h = un_tets_size(&mesh, t), v[4];
            check_near(un_tets_volume(&mesh, t), true_volume(&mesh, t), 1e-14 * h * h * h);
            un_vec3 slope = un_v3(0.3, -1.7, 2.9);
            for (int k = 0; k < 4; k++) v[k] = 5 + un_dot(slope, mesh.x[mesh.tet[t][k]]);
            check_near(un_length(un_sub(un_tets_gradient(&mesh, t, v), slope)), 0, 1e-10 / h);
            const un_tet_shape *s = un_tets_shape(&mesh, t);
            double energy = 0;
            for (int k = 0; k < 4; k++)
                for (int j = 0; j < 4; j++)
                    energy += h * s->stiffness[k][j] * (v[k] - 5) * (v[j] - 5);
            check_near(energy, un_dot(slope, slope) * true_volume(&mesh, t), 1e-9 * h * h);
        }
        double top[3];
        for (int a = 0; a < 3; a++) top[a] = tree.h * tree.n[a];
        for (uint64_t q = 0; q < 500; q++)
            check_location(&mesh, un_v3(top[0] * un_random(q, 4), top[1] * un_random(q, 5),
                                        top[2] * un_random(q, 6)));
        un_tets_place place;
        un_tets_locate(&mesh, un_v3(NAN, 0, 0), &place);
        assert_in_range(place.tet, 0, mesh.tet_count - 1);
        check_ok(ctx, un_tets_build(&mesh, &arena, &tree));
        assert_int_equal(mesh.own_count, 0);
        check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
        assert_memory_equal(&report, &before, sizeof report);
        free_mesh(&tree, &mesh);
        un_arena_reset(&arena);
    }
    un_arena_free(&arena);
    check_context_end(ctx);
}

/* A node moved through the face opposite to it turns a tet inside out, and out of the brick puts
 * points at its boundary outside. */
static void sees_tets_turned_inside_out(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_tets_report report;
    un_arena_init(&arena, ctx);
    build_mesh(ctx, &tree, &mesh, &check_trees[1], 3);
    int32_t n = 0;
    while (un_length(un_sub(mesh.x[n], un_v3(0.5, 0.5, 0.5))) > 1e-9) n++;
    mesh.x[n].x += 0.4;
    check_ok(ctx, un_tets_remeasure(&mesh, &arena));
    check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
    assert_true(report.misoriented_tets > 0);
    assert_int_equal(report.mismeasured_tets, 0);
    check_near(report.volume, 1, 1e-12);
    mesh.x[n].x -= 0.4;
    for (n = 0; n < mesh.node_count; n++) mesh.x[n].x = 0.1 + 0.8 * mesh.x[n].x;
    check_ok(ctx, un_tets_remeasure(&mesh, &arena));
    check_ok(ctx, un_tets_validate(&mesh, &arena, &report));
    assert_int_equal(report.misoriented_tets, 0);
    check_near(report.volume, 0.8, 1e-12);
    un_tets_place place;
    un_tets_locate(&mesh, un_v3(0.01, 0.52, 0.53), &place);
    double x = 0, sum = 0;
    for (int i = 0; i < 4; i++) {
        x += place.w[i] * mesh.x[mesh.tet[place.tet][i]].x;
        sum += place.w[i];
        assert_true(place.w[i] >= 0);
    }
    check_near(x, 0.1, 0.02);
    check_near(sum, 1, 1e-15);
    free_mesh(&tree, &mesh);
    un_arena_free(&arena);
    check_context_end(ctx);
}

static un_status build_once(un_context *ctx, void *arg)
{
    (void)arg;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 2, 16);
    un_tets_init(ctx, &mesh);
    double x[2] = {0.2, 0.5};
    un_octree_request request = {2, {x, x, x}, NULL, NULL};
    un_status status = un_octree_build(&tree, &arena, &request);
    if (status == UN_OK) status = un_tets_build(&mesh, &arena, &tree);
    un_tets_report report;
    if (status == UN_OK) shake(&mesh, 0.5);
    if (status == UN_OK) status = un_tets_remeasure(&mesh, &arena);
    if (status == UN_OK) status = un_tets_validate(&mesh, &arena, &report);
    if (status != UN_OK && mesh.tet_count == 0) assert_int_equal(mesh.node_count, 0);
    un_tets_free(&mesh);
    un_octree_free(&tree);
    un_arena_free(&arena);
    return status;
}

static void survives_no_memory(void **state)
{
    (void)state;
    check_allocation_failures(build_once, NULL, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_those_of_the_lattice),
        cmocka_unit_test(conforms),
        cmocka_unit_test(nodes_are_numbered_along_the_curve),
        cmocka_unit_test(tets_match_their_shapes),
        cmocka_unit_test(knows_the_tets_of_nodes),
        cmocka_unit_test(locates_points),
        cmocka_unit_test(agrees_with_brute_force),
        cmocka_unit_test(knows_neighbours),
        cmocka_unit_test(has_the_same_bits_for_any_threads),
        cmocka_unit_test(sees_broken_meshes),
        cmocka_unit_test(measures_moved_nodes),
        cmocka_unit_test(sees_tets_turned_inside_out),
        cmocka_unit_test(survives_no_memory),
    };
    check_races_in("has_the_same*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
