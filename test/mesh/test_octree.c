/* The octree against brute force on small bricks. */
#include "trees.h"

static void shapes_the_brick(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_octree tree;
    un_octree_init(ctx, &tree, un_v3(1, 0.5, 0.26), 8, 128);
    assert_int_equal(tree.level_max, 4);
    check_near(tree.h, 1.0 / 128, 1e-15);
    check_near(tree.unit, 1.0 / 256, 1e-15);
    assert_int_equal(tree.roots[0], 8);
    assert_int_equal(tree.roots[1], 4);
    assert_int_equal(tree.roots[2], 3);
    assert_int_equal(tree.n[2], 48);
    /* Level 0 is not wider than asked: 100 / 3 halves to 33.3, 16.7, ..., of which 2^5 fit. */
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 3, 100);
    assert_int_equal(tree.level_max, 5);
    assert_int_equal(tree.roots[0], 4);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 8, 4);
    assert_int_equal(tree.level_max, 0);
    assert_int_equal(tree.roots[1], 4);
    /* Sides that are whole but for round-off get no root more. */
    for (int32_t n = 1; n < 200; n++) {
        un_octree_init(ctx, &tree, un_v3(0.1 * n, 0.1, 0.3), n, n);
        assert_int_equal(tree.roots[0], n);
        assert_int_equal(tree.roots[1], 1);
    }
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 8, 64);
    assert_int_equal(un_octree_level(&tree, 1.0 / 8), 0);
    assert_int_equal(un_octree_level(&tree, 10), 0);
    assert_int_equal(un_octree_level(&tree, 0.124), 1);
    assert_int_equal(un_octree_level(&tree, 1.0 / 64), 3);
    assert_int_equal(un_octree_level(&tree, 1e-9), 3);
    assert_int_equal(un_octree_level(&tree, NAN), 3);
    un_octree_free(&tree);
    check_context_end(ctx);
}

/* A dense array of levels, refined until nothing is left to do: the coarsest tree by definition,
 * as each split is forced. */
typedef struct dense {
    const un_octree *tree;
    uint8_t *level; /* by finest cell, x fastest */
} dense;

static uint8_t *dense_at(dense *d, int32_t i, int32_t j, int32_t k)
{
    const int32_t *n = d->tree->n;
    if (i < 0 || j < 0 || k < 0 || i >= n[0] || j >= n[1] || k >= n[2]) return NULL;
    return &d->level[i + (int64_t)n[0] * (j + (int64_t)n[1] * k)];
}

static void dense_split(dense *d, int32_t i, int32_t j, int32_t k)
{
    uint8_t level = *dense_at(d, i, j, k);
    int32_t s = 1 << (d->tree->level_max - level);
    i -= i % s, j -= j % s, k -= k % s;
    for (int32_t z = k; z < k + s && z < d->tree->n[2]; z++) /* one layer in 2D */
        for (int32_t y = j; y < j + s; y++)
            for (int32_t x = i; x < i + s; x++) *dense_at(d, x, y, z) = (uint8_t)(level + 1);
}

static void dense_meet(dense *d, const check_points *p)
{
    const un_octree *tree = d->tree;
    for (int64_t q = 0; q < p->count; q++) {
        int32_t level = p->level[q] < tree->level_max ? p->level[q] : tree->level_max;
        int32_t s = 1 << (tree->level_max - level), r = p->reach[q], at[3];
        for (int a = 0; a < 3; a++) {
            at[a] = (int32_t)un_clamp(floor(p->x[a][q] / tree->h), 0, tree->n[a] - 1);
            at[a] -= at[a] % s;
        }
        for (int32_t z = -r; z <= r; z++)
            for (int32_t y = -r; y <= r; y++)
                for (int32_t x = -r; x <= r; x++) {
                    int32_t i = at[0] + s * x, j = at[1] + s * y, k = at[2] + s * z;
                    while (dense_at(d, i, j, k) && *dense_at(d, i, j, k) < level)
                        dense_split(d, i, j, k);
                }
    }
}

/* Cells that share a face or an edge are those within one step along at most two axes. */
static void dense_balance(dense *d)
{
    const int32_t *n = d->tree->n;
    for (bool again = true; again;) {
        again = false;
        for (int32_t k = 0; k < n[2]; k++)
            for (int32_t j = 0; j < n[1]; j++)
                for (int32_t i = 0; i < n[0]; i++)
                    for (int e = 0; e < 27; e++) {
                        int32_t x = e % 3 - 1, y = e / 3 % 3 - 1, z = e / 9 - 1;
                        if (x && y && z) continue;
                        uint8_t *other = dense_at(d, i + x, j + y, k + z);
                        if (!other || *other + 1 >= *dense_at(d, i, j, k)) continue;
                        dense_split(d, i + x, j + y, k + z);
                        again = true;
                    }
    }
}

static void are_the_coarsest_balanced(const check_tree_def *trees, int count)
{
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int t = 0; t < count; t++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            un_octree tree;
            un_octree_init(ctx, &tree, trees[t].size, trees[t].coarsest, trees[t].finest);
            check_points points = check_make_points(ctx, &trees[t], &tree, 10 * seed);
            un_octree_request request = check_request(&points);
            check_ok(ctx, un_octree_build(&tree, &arena, &request));
            const char *reason = NULL;
            if (!un_octree_validate(&tree, &reason)) fail_msg("tree %d: %s", t, reason);

            size_t cells = (size_t)tree.n[0] * (size_t)tree.n[1] * (size_t)tree.n[2];
            dense d = {&tree, un_alloc_zero(ctx, cells, 1)};
            dense_meet(&d, &points);
            dense_balance(&d);
            for (int32_t k = 0; k < tree.n[2]; k++)
                for (int32_t j = 0; j < tree.n[1]; j++)
                    for (int32_t i = 0; i < tree.n[0]; i++) {
                        int32_t leaf = un_octree_find_at(&tree, i, j, k);
                        assert_int_equal(tree.level[leaf], *dense_at(&d, i, j, k));
                    }
            un_free(ctx, d.level);
            check_free_points(ctx, &points);
            un_octree_free(&tree);
            un_arena_reset(&arena);
        }
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void is_the_coarsest_balanced_tree(void **state)
{
    (void)state;
    are_the_coarsest_balanced(check_trees, CHECK_TREE_COUNT);
}

/* A domain without depth: squares in the plane, and points find theirs. */
static void is_a_quadtree_in_2d(void **state)
{
    (void)state;
    static const check_tree_def flat[] = {
        {{1, 1, 0}, 1, 1, 3, 0, false},       {{1, 1, 0}, 4, 4, 5, 1, false},
        {{1, 1, 0}, 1, 16, 6, 0, false},      {{1, 1, 0}, 2, 64, 40, 1, false},
        {{2, 1, 0}, 4, 64, 12, 3, false},     {{0.3, 1.7, 0}, 3, 56, 30, 2, false},
        {{1, 0.02, 0}, 9, 144, 10, 1, false},
    };
    int count = (int)(sizeof flat / sizeof *flat);
    are_the_coarsest_balanced(flat, count);
    un_context *ctx = check_context();
    for (int t = 0; t < count; t++) {
        un_octree tree;
        check_build_tree(ctx, &tree, &flat[t], 5);
        assert_int_equal(tree.dim, 2);
        double area = 0;
        for (int32_t c = 0; c < tree.leaf_count; c++) {
            un_vec3 at = un_octree_corner(&tree, c);
            double s = un_octree_size(&tree, tree.level[c]);
            assert_true(at.z == 0);
            assert_int_equal(un_octree_find(&tree, un_v3(at.x + s / 2, at.y + s / 2, 0)), c);
            area += s * s;
        }
        double root = un_octree_size(&tree, 0);
        check_near(area, tree.roots[0] * root * tree.roots[1] * root, 1e-9);
        un_octree_free(&tree);
    }
    check_context_end(ctx);
}

static void finds_points(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int t = 0; t < CHECK_TREE_COUNT; t++) {
        un_octree tree;
        check_build_tree(ctx, &tree, &check_trees[t], 5);
        for (int32_t c = 0; c < tree.leaf_count; c++) {
            un_vec3 at = un_octree_corner(&tree, c);
            double s = un_octree_size(&tree, tree.level[c]);
            assert_int_equal(un_octree_find(&tree, at), c);
            assert_int_equal(un_octree_find(&tree, un_v3(at.x + s / 2, at.y + s / 2, at.z + s / 2)),
                             c);
            /* Half-open: the last number below the next corner is still inside. */
            uint64_t k = tree.key[c];
            uint32_t cells = 1u << (tree.level_max - tree.level[c]);
            un_vec3 end = un_v3(tree.h * (un_morton_gather(k) + cells),
                                tree.h * (un_morton_gather(k >> 1) + cells),
                                tree.h * (un_morton_gather(k >> 2) + cells));
            assert_int_equal(un_octree_find(&tree, un_v3(nextafter(end.x, 0), nextafter(end.y, 0),
                                                         nextafter(end.z, 0))),
                             c);
        }
        /* Outside counts at the boundary. */
        double far = 1e300;
        int32_t last = un_octree_find_at(&tree, tree.n[0] - 1, tree.n[1] - 1, tree.n[2] - 1);
        assert_int_equal(un_octree_find(&tree, un_v3(-far, -far, -far)), 0);
        assert_int_equal(un_octree_find(&tree, un_v3(far, far, far)), last);
        assert_int_equal(un_octree_find(&tree, un_v3(INFINITY, INFINITY, INFINITY)), last);
        assert_int_equal(un_octree_find(&tree, un_v3(NAN, NAN, NAN)), 0);
        assert_int_equal(un_octree_find_at(&tree, -1, 0, 0), -1);
        assert_int_equal(un_octree_find_at(&tree, 0, tree.n[1], 0), -1);
        assert_int_equal(un_octree_find_at(&tree, 0, 0, INT32_MAX), -1);
        un_octree_free(&tree);
    }
    check_context_end(ctx);
}

static void interleaves(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) {
        uint32_t c[3];
        for (uint64_t a = 0; a < 3; a++) c[a] = (uint32_t)(un_hash64(3 * i + a) & 0x1fffff);
        uint64_t key = un_morton(c[0], c[1], c[2]), slow = 0;
        for (int bit = 0; bit < 21; bit++)
            for (int a = 0; a < 3; a++) slow |= (uint64_t)(c[a] >> bit & 1) << (3 * bit + a);
        assert_true(key == slow);
        for (int a = 0; a < 3; a++) assert_int_equal(un_morton_gather(key >> a), c[a]);
    }
}

/* The same for any order of the points and any number of threads; arrays are used again. */
static void does_not_depend_on_order(void **state)
{
    (void)state;
    check_tree_def def = {{1, 0.8, 0.6}, 4, 128, 20000, 1, false};
    un_octree trees[4];
    un_context *ctx[4];
    for (int i = 0; i < 4; i++) {
        ctx[i] = check_context_threads(i + 1);
        un_arena arena;
        un_arena_init(&arena, ctx[i]);
        un_octree_init(ctx[i], &trees[i], def.size, def.coarsest, def.finest);
        check_points points = check_make_points(ctx[i], &def, &trees[i], 3);
        un_octree_request request = check_request(&points);
        if (i == 2) {
            request.count = 0;
            check_ok(ctx[i], un_octree_build(&trees[i], &arena, &request));
            assert_int_equal(trees[i].leaf_count, 4 * 4 * 3);
            request.count = points.count;
        }
        for (int64_t k = 0; k < points.count && i % 2; k++) {
            int64_t j = (int64_t)(un_random((uint64_t)k, 77) * (double)points.count);
            for (int a = 0; a < 3; a++) {
                double swap = points.x[a][k];
                points.x[a][k] = points.x[a][j];
                points.x[a][j] = swap;
            }
            uint8_t level = points.level[k], reach = points.reach[k];
            points.level[k] = points.level[j], points.reach[k] = points.reach[j];
            points.level[j] = level, points.reach[j] = reach;
        }
        check_ok(ctx[i], un_octree_build(&trees[i], &arena, &request));
        check_free_points(ctx[i], &points);
        un_arena_free(&arena);
        assert_true(trees[0].leaf_count > 10000);
        assert_int_equal(trees[i].leaf_count, trees[0].leaf_count);
        assert_memory_equal(trees[i].key, trees[0].key,
                            (size_t)trees[0].leaf_count * sizeof *trees[0].key);
        assert_memory_equal(trees[i].level, trees[0].level, (size_t)trees[0].leaf_count);
    }
    for (int i = 0; i < 4; i++) {
        un_octree_free(&trees[i]);
        check_context_end(ctx[i]);
    }
}

/* Without levels and reaches: the finest, alone. */
static void takes_defaults(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_octree tree;
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 64);
    double x[3] = {0.1, NAN, 0.6};
    un_octree_request request = {3, {x, x, x}, NULL, NULL};
    check_ok(ctx, un_octree_build(&tree, &arena, &request));
    assert_int_equal(tree.level[un_octree_find(&tree, un_v3(0.1, 0.1, 0.1))], 4);
    assert_int_equal(tree.level[un_octree_find(&tree, un_v3(0.6, 0.6, 0.6))], 4);
    assert_int_equal(tree.level[0], 4);
    const char *reason;
    assert_true(un_octree_validate(&tree, &reason));
    un_octree_free(&tree);
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void refuses_what_cannot_be_counted(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_octree tree;
    un_octree_request none = {0};
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 1, 1 << 19);
    assert_int_equal(un_octree_build(&tree, &arena, &none), UN_OK);
    double x = 0.3;
    un_octree_request one = {1, {&x, &x, &x}, NULL, NULL};
    assert_int_equal(un_octree_build(&tree, &arena, &one), UN_OK);
    assert_true(un_octree_validate(&tree, NULL));
    un_octree_free(&tree);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 64, 1 << 20);
    assert_int_equal(un_octree_build(&tree, &arena, &none), UN_ERROR_ARGUMENT);
    un_octree_free(&tree);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 1400, 1400);
    assert_int_equal(un_octree_build(&tree, &arena, &none), UN_ERROR_MEMORY);
    un_octree_free(&tree);
    un_arena_free(&arena);
    check_context_end(ctx);
}

static void sees_broken_trees(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_octree tree;
    check_build_tree(ctx, &tree, &check_trees[4], 1);
    const char *reason = NULL;
    assert_true(un_octree_validate(&tree, &reason));
    uint8_t level = tree.level[3];
    tree.level[3] = 9;
    assert_false(un_octree_validate(&tree, &reason));
    assert_string_equal(reason, "a leaf is too deep");
    tree.level[3] = level;
    tree.leaf_count--;
    assert_false(un_octree_validate(&tree, NULL));
    tree.leaf_count++;
    uint64_t key = tree.key[5];
    tree.key[5] = tree.key[6];
    tree.key[6] = key;
    assert_false(un_octree_validate(&tree, &reason));
    un_octree_free(&tree);

    /* One leaf split twice in a corner, nothing else: not balanced. */
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 2, 16);
    un_arena arena;
    un_arena_init(&arena, ctx);
    double x = 0.49;
    un_octree_request request = {1, {&x, &x, &x}, (const uint8_t[]){2}, NULL};
    check_ok(ctx, un_octree_build(&tree, &arena, &request));
    assert_true(un_octree_validate(&tree, &reason));
    int32_t leaf = un_octree_find(&tree, un_v3(0.6, 0.1, 0.1));
    assert_int_equal(tree.level[leaf], 1);
    /* Merging that leaf's family by hand leaves a jump of two across a face. */
    leaf = un_octree_find(&tree, un_v3(0.51, 0.01, 0.01));
    tree.level[leaf]--;
    memmove(tree.key + leaf + 1, tree.key + leaf + 8,
            (size_t)(tree.leaf_count - leaf - 8) * sizeof *tree.key);
    memmove(tree.level + leaf + 1, tree.level + leaf + 8, (size_t)(tree.leaf_count - leaf - 8));
    tree.leaf_count -= 7;
    tree.table_level = 0, tree.table_shift = 3 * tree.level_max;
    for (uint64_t m = 0, c = 0; m <= 8; m++) {
        while (c < (uint64_t)tree.leaf_count && tree.key[c] >> tree.table_shift < m) c++;
        tree.table[m] = (int32_t)c;
    }
    assert_false(un_octree_validate(&tree, &reason));
    assert_string_equal(reason, "leaves that share a face or an edge differ by two levels");
    un_octree_free(&tree);
    un_arena_free(&arena);
    check_context_end(ctx);
}

static un_status build_once(un_context *ctx, void *arg)
{
    const check_tree_def *def = arg;
    un_arena arena;
    un_octree tree;
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, &tree, def->size, def->coarsest, def->finest);
    double x[2] = {0.2, 0.5};
    un_octree_request request = {2, {x, x, x}, NULL, NULL};
    un_status status = un_octree_build(&tree, &arena, &request);
    if (status != UN_OK) assert_int_equal(tree.leaf_count, 0);
    un_octree_free(&tree);
    un_arena_free(&arena);
    return status;
}

static void survives_no_memory(void **state)
{
    (void)state;
    check_tree_def def = {{1, 1, 1}, 2, 64, 0, 0, false};
    check_allocation_failures(build_once, &def, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_the_brick),
        cmocka_unit_test(interleaves),
        cmocka_unit_test(is_the_coarsest_balanced_tree),
        cmocka_unit_test(is_a_quadtree_in_2d),
        cmocka_unit_test(finds_points),
        cmocka_unit_test(does_not_depend_on_order),
        cmocka_unit_test(takes_defaults),
        cmocka_unit_test(refuses_what_cannot_be_counted),
        cmocka_unit_test(sees_broken_trees),
        cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
