/* Tets that thin walls part, over ranks: nodes, tets and their copies, what sides see, open shares,
 * and the tets of places, also where these are beside them on another rank, as on one rank. Memory
 * that fails on one rank fails the call on all. */
#include "mesh/tank.h"

#include "pair_tets.h"

/* A tub with walls of 0.7 finest cells, inside a box of half the domain, turned or not. */
static un_pose tub_pose(const check_tree_def *def, double turn)
{
    un_pose pose = un_pose_axis(un_v3(0, 0, 1), turn);
    pose.translation = un_scale(def->size, 0.5);
    return pose;
}

static void tub_tank(tank *t, un_context *ctx, const check_tree_def *def, double turn)
{
    un_vec3 s = def->size;
    double wide = 0.7 * fmax(fmax(s.x, s.y), s.z) / def->finest;
    un_pose pose = tub_pose(def, turn);
    un_vec3 in = un_scale(s, 0.25), out = un_add(in, un_v3(wide, wide, wide));
    un_shape *parts[2] = {tank_box(t, un_scale(out, -1), un_v3(out.x, in.y, out.z)),
                          tank_box(t, un_scale(in, -1), un_v3(in.x, s.y, in.z))};
    un_shape *vessel, *turned;
    check_ok(ctx, un_shape_subtract(t->shapes, parts, 2, &vessel));
    check_ok(ctx, un_shape_move(t->shapes, vessel, &pose, &turned));
    tank_solid(t, turned, un_v3(0, 0, 0));
    tank_build_exact(t);
    check_ok(ctx, un_bodies_update(t->bodies, 0, 0.1));
}

static void same_mesh(const pair *p)
{
    const un_tets *m = &p->s.mesh, *w = &p->mesh;
    const un_tet_share *s = &p->s.part;
    int32_t *node = malloc(((size_t)m->node_count + 1) * sizeof *node);
    int32_t *tet = malloc(((size_t)m->tet_count + 1) * sizeof *tet);
    assert_true(m->parted && w->parted);
    assert_int_equal(s->nodes.total, w->node_count);
    assert_int_equal(s->tets.total, w->tet_count);
    for (int64_t n = s->nodes.begin; n < s->nodes.end; n++) {
        int64_t own = s->node_begin + n - s->nodes.begin;
        assert_int_equal(m->first[own + 1] - m->first[own], w->first[n + 1] - w->first[n]);
    }
    pair_number(p, node, tet);
    for (int64_t t = s->tets.begin; t < s->tets.end; t++)
        assert_int_equal(tet[s->tet_begin + t - s->tets.begin], t);
    for (int32_t t = 0; t < m->tet_count; t++)
        for (int i = 0; i < 4 && tet[t] >= 0; i++)
            assert_int_equal(node[m->tet[t][i]], w->tet[tet[t]][i]);
    pair_same_nodes(p, m->node_key, w->node_key, sizeof *m->node_key, "key");
    pair_same_nodes(p, m->node_level, w->node_level, sizeof *m->node_level, "level");
    pair_same_nodes(p, m->side, w->side, sizeof *m->side, "side");
    free(node);
    free(tet);
}

/* Returns how many places have their seats elsewhere; *far: whose tets are on another rank. */
static int64_t same_places(const pair *p, const un_pose *pose, int64_t *far)
{
    enum { COUNT = 3000 };
    const un_tets *m = &p->s.mesh, *w = &p->mesh;
    un_context *ctx = p->s.ctx;
    un_vec3 *x = malloc(COUNT * sizeof *x), *seat = malloc(COUNT * sizeof *seat), s = m->tree->size;
    int32_t *rank = malloc(COUNT * sizeof *rank);
    int64_t count = 0, moved = 0;
    for (uint64_t k = 0; count < COUNT; k++) { /* along the inner edges of the tub */
        double at[3], in[3] = {0.25 * s.x, 0.25 * s.y, 0.25 * s.z};
        for (uint64_t a = 0; a < 3; a++) {
            double u = un_random(3 * k + a, 7);
            bool low = u < 0.5, near = k % 3 != a;
            at[a] = near ? in[a] - m->tree->h * un_random(3 * k + a, 8) : in[a] * (2 * u - 1);
            if (near && (low || a == 1)) at[a] = -at[a];
        }
        x[count++] = un_pose_apply(pose, un_v3(at[0], at[1], at[2]));
    }
    check_ok(ctx, un_tets_seats(m, x, COUNT, seat, rank));
    for (int64_t k = 0; k < COUNT; k++) {
        un_tets_place here, there;
        int32_t owner =
            un_ranks_owner(m->share->tree->first, un_rank_count(ctx), un_tets_place_key(m, x[k]));
        if (rank[k] < 0) {
            assert_true(owner != un_rank(ctx));
            continue;
        }
        un_tets_locate(w, x[k], &there);
        un_tets_locate_closed(w, seat[k], &here);
        assert_int_equal(here.tet, there.tet);
        assert_memory_equal(here.w, there.w, sizeof here.w);
        if (rank[k] == un_rank(ctx))
            assert_true(here.tet >= m->share->tets.begin && here.tet < m->share->tets.end);
        bool beside = memcmp(&x[k], &seat[k], sizeof *x) != 0;
        moved += beside;
        *far += beside && rank[k] != owner;
        if (un_tets_locate_here(m, x[k], &here))
            assert_memory_equal(here.w, there.w, sizeof here.w);
    }
    free(x);
    free(seat);
    free(rank);
    return moved;
}

static const check_tree_def trees[] = {{{1, 1, 1}, 4, 16, 200, 1, false},
                                       {{0.7, 1, 0.4}, 4, 32, 1000, 0, true},
                                       {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false},
                                       {{1, 1, 1}, 16, 16, 5, 0, false}};

static void is_that_of_one_rank(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *alone = check_context();
    int64_t moved = 0, far = 0;
    for (int i = 0; i < 4; i++) {
        const check_tree_def *def = &trees[i];
        double turn = i % 2 ? 25 : 7;
        un_pose pose = tub_pose(def, turn);
        pair p;
        tank here, there;
        un_tet_walls a, b;
        tank_begin_in(&here, ctx, def->size, def->finest);
        tank_begin_in(&there, alone, def->size, def->finest);
        tub_tank(&here, ctx, def, turn);
        tub_tank(&there, alone, def, turn);
        un_tet_walls_init(ctx, &a, here.walls);
        un_tet_walls_init(alone, &b, there.walls);
        pair_init(&p, ctx, alone, def);
        for (int round = 0; round < 2; round++) { /* arrays are used again */
            pair_build(&p, def, 300 + (uint64_t)round, (i + round) % CUT_COUNT);
            check_ok(ctx, un_tet_walls_sample(&a, &p.s.arena, &p.s.mesh));
            check_ok(alone, un_tet_walls_sample(&b, &p.arena, &p.mesh));
            same_mesh(&p);
            pair_same_nodes(&p, a.node_open, b.node_open, sizeof *a.node_open, "node_open");
            pair_same_nodes(&p, a.phi_solid, b.phi_solid, sizeof *a.phi_solid, "phi_solid");
            pair_same_tets(&p, a.open, b.open, sizeof *a.open, "open");
            moved += same_places(&p, &pose, &far);
            pair_reset(&p);
        }
        un_tet_walls_free(&a);
        un_tet_walls_free(&b);
        pair_free(&p);
        tank_free(&here);
        tank_free(&there);
    }
    far = un_ranks_total(ctx, far);
    assert_true(moved > 100);
    assert_true(far > 10 || un_rank_count(ctx) == 1);
    check_context_end(alone);
    check_context_end(ctx);
}

static void memory_fails_on_all(void **state)
{
    (void)state;
    const check_tree_def *def = &trees[0];
    un_context *alone = check_context();
    int failures = 0;
    for (bool done = false; !done;) {
        un_context *ctx = group_context(), *failing;
        tank t;
        pair p;
        un_tet_walls walls;
        un_arena arena;
        tank_begin_in(&t, alone, def->size, def->finest);
        tub_tank(&t, alone, def, 25);
        pair_init(&p, ctx, alone, def);
        pair_build(&p, def, 300, CUT_BY_WORK);
        failing = group_context_failing(1, 3 * failures + 1, un_ranks_count(group) - 1);
        un_arena_init(&arena, failing);
        un_tet_walls_init(failing, &walls, t.walls);
        un_status status = un_tet_walls_sample(&walls, &arena, &p.s.mesh);
        done = status == UN_OK;
        if (!done) assert_int_equal(status, UN_ERROR_MEMORY);
        failures += !done;
        un_tet_walls_free(&walls);
        un_arena_free(&arena);
        check_context_end(failing);
        pair_free(&p);
        tank_free(&t);
        check_context_end(ctx);
    }
    assert_true(failures > 3);
    check_context_end(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_that_of_one_rank),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
