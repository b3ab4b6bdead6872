/* The first particles of `tet` over ranks: each rank has a part of the tree that covers a shape,
 * and the seeds in its leaves are a range of one rank's, bit by bit, as is the volume of all. No
 * rank has much more than its share, nor do samples of a field depend on who has them. */
#include "particles/particles.h"

#include "mesh/tank.h"
#include "shared_tets.h"

static un_status seed(un_context *ctx, tank *t, const un_octree *tree, const un_tree_share *part,
                      const un_shape *shape, un_particles *p, double *volume)
{
    un_seed_leaves_def def = {.tree = tree,
                              .shape = shape,
                              .walls = t->walls,
                              .velocity = un_v3(1, 2, 3),
                              .stream = 5,
                              .part = part};
    p->sized = true;
    return un_particles_seed_leaves(ctx, p, &def, volume);
}

static un_status cover(un_octree *tree, un_arena *arena, const un_shape *shape)
{
    UN_TRY(un_octree_cover(tree, arena, un_shape_bounds(shape), 2000));
    return un_octree_follow(tree, arena, shape, 40000);
}

/* Of nodes by place, at places anywhere: the others'. */
static void compare_samples(shared *s, const un_tets *all)
{
    int64_t count = 20 + 7 * un_rank(s->ctx);
    float *mine = malloc(((size_t)s->mesh.node_count + 1) * sizeof *mine);
    float *whole = malloc(((size_t)all->node_count + 1) * sizeof *whole);
    un_vec3 *x = malloc((size_t)count * sizeof *x);
    un_tets_sampled *told = malloc((size_t)count * sizeof *told);
    for (int32_t n = 0; n < s->mesh.node_count; n++) mine[n] = (float)sin(9 * s->mesh.x[n].x);
    for (int32_t n = 0; n < all->node_count; n++) whole[n] = (float)sin(9 * all->x[n].x);
    for (int64_t k = 0; k < count; k++) {
        uint64_t i = (uint64_t)k, r = 5 * (uint64_t)un_rank(s->ctx);
        x[k] = un_v3(un_random(i, r), un_random(i, r + 1), un_random(i, r + 2));
    }
    check_ok(s->ctx, un_tets_ask(&s->mesh, mine, x, count, told));
    for (int64_t k = 0; k < count; k++) {
        un_tets_place place;
        un_tets_locate(all, x[k], &place);
        assert_true(told[k].value == un_tet_sample(all, whole, &place));
    }
    free(mine);
    free(whole);
    free(x);
    free(told);
}

static void parts_are_those_of_one_rank(void **state)
{
    (void)state;
    un_context *alone = check_context(), *ctx = group_context();
    check_tree_def def = {.size = un_v3(1, 1, 1), .coarsest = 4, .finest = 32};
    shared s;
    tank t;
    un_octree tree;
    un_tets mesh;
    un_arena arena;
    un_particles all = {0}, mine = {0};
    double volume, volume_all;
    shared_init(&s, ctx, &def);
    tank_begin_in(&t, alone, def.size, def.finest);
    tank_build_exact(&t);
    const un_shape *shape = tank_sphere(&t, un_v3(0.45, 0.5, 0.55), 0.3);
    un_arena_init(&arena, alone);
    un_octree_init(alone, &tree, def.size, def.coarsest, def.finest);
    un_tets_init(alone, &mesh);
    check_ok(alone, cover(&tree, &arena, shape));
    check_ok(alone, seed(alone, &t, &tree, NULL, shape, &all, &volume_all));
    check_ok(alone, un_tets_build(&mesh, &arena, &tree));

    check_ok(ctx, cover(&s.tree, &s.arena, shape));
    check_ok(ctx, un_particles_divide_tree(ctx, &s.arena, &s.tree, &s.leaves, shape));
    assert_int_equal(s.leaves.leaves.total, tree.leaf_count);
    for (int64_t c = s.leaves.begin; c < s.leaves.end; c++) {
        int64_t there = s.leaves.leaves.begin + c - s.leaves.begin;
        assert_true(s.tree.key[c] == tree.key[there]);
        assert_int_equal(s.tree.level[c], tree.level[there]);
    }
    check_ok(ctx, seed(ctx, &t, &s.tree, &s.leaves, shape, &mine, &volume));
    un_range own = un_ranks_range(ctx, mine.count);
    assert_int_equal(own.total, all.count);
    assert_true(volume == volume_all && volume > 0);
    /* a leaf's work is that of six particles, and eight are in it: here within a fifth of even */
    check_below(mine.count, 1.2 * all.count / un_rank_count(ctx) + 64);
    for (int64_t q = 0; q < mine.count; q++) {
        for (int a = 0; a < 3; a++) assert_true(mine.x[a][q] == all.x[a][own.begin + q]);
        assert_true(mine.volume[q] == all.volume[own.begin + q]);
    }
    check_ok(ctx, un_tets_build(&s.mesh, &s.arena, &s.tree));
    check_ok(ctx, un_tet_share_find(&s.part, &s.arena, &s.mesh, &s.leaves));
    compare_samples(&s, &mesh);

    un_particles_free(ctx, &mine);
    un_particles_free(alone, &all);
    un_tets_free(&mesh);
    un_octree_free(&tree);
    un_arena_free(&arena);
    tank_free(&t);
    shared_free(&s);
    check_context_end(alone);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_those_of_one_rank)};
    group_run(tests);
}
