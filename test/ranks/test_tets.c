/* Trees and tets over ranks are those of one rank: own leaves, nodes and tets, the tets around each
 * own node, numbers and values of ghosts; and memory that fails on one rank fails the call on all.
 */
#include "shared_tets.h"

static void compare_leaves(const shared *s, const un_octree *serial)
{
    const un_tree_share *p = &s->leaves;
    const char *reason = "";
    if (!un_octree_validate(&s->tree, &reason)) fail_msg("%s", reason);
    assert_int_equal(p->leaves.total, serial->leaf_count);
    assert_int_equal(p->leaves.end - p->leaves.begin, p->end - p->begin);
    for (int64_t c = p->leaves.begin; c < p->leaves.end; c++) {
        int64_t own = p->begin + c - p->leaves.begin;
        assert_true(s->tree.key[own] == serial->key[c]);
        assert_int_equal(s->tree.level[own], serial->level[c]);
    }
}

/* The same nodes at the same corners, of the same shape. */
static void compare_tet(const un_tets *a, int32_t t, const un_tets *b, int32_t u)
{
    for (int i = 0; i < 4; i++) assert_true(a->node_key[a->tet[t][i]] == b->node_key[b->tet[u][i]]);
    assert_int_equal(a->shape[t], b->shape[u]);
    assert_int_equal(a->level[t], b->level[u]);
}

static void compare_mesh(const shared *s, const un_tets *serial)
{
    const un_tets *m = &s->mesh;
    const un_tet_share *p = &s->part;
    assert_int_equal(p->nodes.total, serial->node_count);
    assert_int_equal(p->tets.total, serial->tet_count);
    for (int64_t u = p->tets.begin; u < p->tets.end; u++)
        compare_tet(m, (int32_t)(p->tet_begin + u - p->tets.begin), serial, (int32_t)u);
    for (int64_t n = p->nodes.begin; n < p->nodes.end; n++) {
        int64_t own = p->node_begin + n - p->nodes.begin;
        assert_true(m->node_key[own] == serial->node_key[n]);
        assert_int_equal(m->node_level[own], serial->node_level[n]);
        int32_t count = m->first[own + 1] - m->first[own];
        assert_int_equal(count, serial->first[n + 1] - serial->first[n]);
        for (int32_t k = 0; k < count; k++) {
            int32_t a = m->corner[m->first[own] + k], b = serial->corner[serial->first[n] + k];
            assert_int_equal(a % 4, b % 4);
            compare_tet(m, a / 4, serial, b / 4);
        }
    }
    for (int32_t k = 0; k < p->ghost_count; k++) {
        int64_t id = p->ghost_id[k];
        assert_true(id < p->nodes.begin || id >= p->nodes.end);
        assert_true(m->node_key[p->ghost[k]] == serial->node_key[id]);
    }
}

/* Leaves that only fill the brick have no tets, and places there are in none that is known. */
static void check_rest(const shared *s)
{
    const un_tets *m = &s->mesh;
    const un_octree *tree = &s->tree;
    int32_t rest = m->tet_count - 4; /* nowhere */
    if (s->leaves.begin == s->leaves.end) return;
    for (int32_t t = 0; t < rest; t++)
        assert_true(tree->known[un_octree_find_key(tree, m->node_key[m->tet[t][3]] >> 3)]);
    for (uint64_t k = 0; k < 200; k++) {
        un_vec3 x = un_v3(tree->size.x * un_random(k, 1), tree->size.y * un_random(k, 2),
                          tree->size.z * un_random(k, 3));
        int32_t known = tree->known[un_octree_find(tree, x)];
        un_tets_place place;
        un_tets_locate(m, x, &place);
        if (known == UN_LEAF_OWN) assert_true(un_tets_knows(m, place.tet) && place.tet < rest);
        if (!known) assert_false(un_tets_knows(m, place.tet));
    }
}

/* Values at nodes that the serial number gives; ghosts get theirs from their owners. */
static void compare_values(shared *s)
{
    const un_tet_share *p = &s->part;
    size_t count = (size_t)s->mesh.node_count + 1;
    double *value = calloc(count, sizeof *value);
    int32_t(*pair)[2] = calloc(count, sizeof *pair);
    for (int64_t n = p->nodes.begin; n < p->nodes.end; n++) {
        int64_t own = p->node_begin + n - p->nodes.begin;
        value[own] = 1 / (double)(n + 3);
        pair[own][0] = (int32_t)n, pair[own][1] = -1;
    }
    un_field fields[2] = {{"value", value, NULL, sizeof *value},
                          {"pair", pair, NULL, sizeof *pair}};
    check_ok(s->ctx, un_tets_share(&s->mesh, fields, 2));
    for (int32_t k = 0; k < p->ghost_count; k++) {
        assert_true(value[p->ghost[k]] == 1 / (double)(p->ghost_id[k] + 3));
        assert_true(pair[p->ghost[k]][0] == p->ghost_id[k] && pair[p->ghost[k]][1] == -1);
    }
    free(value);
    free(pair);
}

static void are_those_of_one_rank(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < CHECK_TREE_COUNT; i++)
        for (int kind = 0; kind < CUT_COUNT; kind++) {
            un_arena arena;
            un_octree tree;
            un_tets mesh;
            shared s;
            un_arena_init(&arena, alone);
            check_build_tree(alone, &tree, &check_trees[i], 300);
            un_tets_init(alone, &mesh);
            check_ok(alone, un_tets_build(&mesh, &arena, &tree));
            check_points points = check_make_points(alone, &check_trees[i], &tree, 300);
            shared_init(&s, ctx, &check_trees[i]);
            for (int round = 0; round < 2; round++) { /* arrays are used again */
                check_ok(ctx, build_shared(&s, &points, kind));
                compare_leaves(&s, &tree);
                compare_mesh(&s, &mesh);
                compare_values(&s);
                check_rest(&s);
                un_arena_reset(&s.arena);
            }
            check_free_points(alone, &points);
            shared_free(&s);
            un_tets_free(&mesh);
            un_octree_free(&tree);
            un_arena_free(&arena);
        }
    check_context_end(alone);
    check_context_end(ctx);
}

/* Elements of equal work that lie evenly are divided evenly. */
static void cuts_share_the_work(void **state)
{
    (void)state;
    un_context *ctx = group_context();
    int32_t rank = un_rank(ctx), count = un_rank_count(ctx);
    uint64_t key[1000], cut[64];
    double work[1000], below[64] = {0}, total = 0;
    for (int64_t i = 0; i < 1000; i++) {
        key[i] = (uint64_t)(i * 7 + rank) << 20;
        work[i] = rank == 0 ? 2 : 1;
        total += work[i];
    }
    check_ok(ctx, un_ranks_cut(ctx, cut, key, work, 1000, 40));
    for (int64_t i = 0; i < 1000; i++) below[un_ranks_owner(cut, count, key[i])] += work[i];
    un_ranks_add(ctx, below, count);
    un_ranks_add(ctx, &total, 1);
    assert_true(cut[0] == 0);
    for (int32_t r = 0; r < count; r++) check_near(below[r], total / count, 2.01 * count);
    check_context_end(ctx);
}

static void memory_fails_on_all(void **state)
{
    (void)state;
    const check_tree_def *def = &check_trees[3];
    un_context *alone = check_context();
    un_octree tree;
    check_build_tree(alone, &tree, def, 300);
    check_points points = check_make_points(alone, def, &tree, 300);
    un_octree_free(&tree);
    int failures = 0;
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        un_context *ctx = group_context_failing(1, n, un_ranks_count(group) - 1);
        shared s;
        shared_init(&s, ctx, def);
        un_status status = build_shared(&s, &points, CUT_BY_WORK);
        done = status == UN_OK;
        if (!done) assert_int_equal(status, UN_ERROR_MEMORY);
        failures += !done;
        shared_free(&s);
        check_context_end(ctx);
    }
    assert_true(failures > 10);
    check_free_points(alone, &points);
    check_context_end(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_those_of_one_rank),
                                       cmocka_unit_test(cuts_share_the_work),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
