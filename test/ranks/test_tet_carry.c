/* What nodes carry from mesh to mesh over ranks, though the next mesh is cut elsewhere: numbers,
 * and distances to solids, open shares and volumes, as on one rank, bit by bit. Memory that fails
 * on one rank fails the call on all, in finding sizes too. */
#include "sizing/sizing.h"

#include "pair_tank.h"
#include "pair_tets.h"

static void same_walls(const pair *p, const un_tet_walls *a, const un_tet_walls *b)
{
    pair_same_nodes(p, a->phi, b->phi, sizeof *a->phi, "phi");
    pair_same_nodes(p, a->node_open, b->node_open, sizeof *a->node_open, "node_open");
    pair_same_tets(p, a->open, b->open, sizeof *a->open, "open");
    assert_int_equal(a->cut != NULL, b->cut != NULL);
    if (a->cut) pair_same_nodes(p, a->cut, b->cut, sizeof *a->cut, "cut");
    if (!a->phi_solid) return;
    pair_same_nodes(p, a->phi_solid, b->phi_solid, sizeof *a->phi_solid, "phi_solid");
    pair_same_nodes(p, a->narrow, b->narrow, sizeof *a->narrow, "narrow");
    pair_same_nodes(p, a->body, b->body, sizeof *a->body, "body");
    pair_same_tets(p, a->u_solid, b->u_solid, sizeof *a->u_solid, "u_solid");
}

static int64_t count_narrow(const un_tet_walls *w)
{
    int64_t count = 0;
    for (int32_t n = 0; w->narrow && n < w->mesh->node_count; n++) count += isfinite(w->narrow[n]);
    return count;
}

/* Two numbers at nodes, by place. */
static void fill_numbers(const un_tets *mesh, double *value[2])
{
    for (int k = 0; k < 2; k++) value[k] = malloc(((size_t)mesh->node_count + 1) * sizeof(double));
    un_part own = un_tets_own_nodes(mesh);
    for (int32_t n = 0; n < mesh->node_count; n++) {
        un_vec3 x = mesh->x[n];
        bool mine = n >= own.begin && n < own.end; /* junk at others must do no harm */
        value[0][n] = mine ? sin(31 * x.x + 7 * x.y) + x.z : 1e3;
        value[1][n] = mine ? cos(13 * x.z) * x.x : -1e3;
    }
}

static void need_numbers(const un_tets *mesh, double *value[2])
{
    for (int k = 0; k < 2; k++)
        value[k] = realloc(value[k], ((size_t)mesh->node_count + 1) * sizeof(double));
}

static un_status recall(un_context *ctx, const un_node_memory *m, const un_tets *mesh,
                        double *value[2])
{
    uint8_t *known = malloc((size_t)mesh->node_count + 1);
    need_numbers(mesh, value);
    un_status status = un_node_memory_recall(ctx, m, mesh, value, 2, known);
    free(known);
    return status;
}

static void carries(un_context *ctx, un_context *alone, const check_tree_def *def, bool solids)
{
    pair p;
    tank here, there;
    un_tet_walls walls[2];
    un_node_memory memory[2] = {{0}};
    double *mine[2], *all[2];
    pair_tank(&here, ctx, def, solids);
    pair_tank(&there, alone, def, solids);
    un_tet_walls_init(ctx, &walls[0], here.walls);
    un_tet_walls_init(alone, &walls[1], there.walls);
    pair_init(&p, ctx, alone, def);
    pair_build(&p, def, 300, CUT_BY_WORK);
    fill_numbers(&p.s.mesh, mine);
    fill_numbers(&p.mesh, all);
    for (int round = 0; round < 3; round++) {
        check_ok(ctx, un_bodies_update(here.bodies, 0.1 * round, 0.1));
        check_ok(alone, un_bodies_update(there.bodies, 0.1 * round, 0.1));
        check_ok(ctx, un_tet_walls_sample(&walls[0], &p.s.arena, &p.s.mesh));
        check_ok(alone, un_tet_walls_sample(&walls[1], &p.arena, &p.mesh));
        if (solids) assert_true(count_narrow(&walls[1]) > 10);
        same_walls(&p, &walls[0], &walls[1]);
        pair_reset(&p);
        if (solids) {
            check_ok(ctx, un_bodies_update(here.bodies, 0.1 * round, 0.2));
            check_ok(alone, un_bodies_update(there.bodies, 0.1 * round, 0.2));
            check_ok(ctx, un_tet_walls_move(&walls[0], &p.s.arena, &p.s.mesh));
            check_ok(alone, un_tet_walls_move(&walls[1], &p.arena, &p.mesh));
            same_walls(&p, &walls[0], &walls[1]);
            pair_reset(&p);
        }
        check_ok(ctx, un_node_memory_keep(ctx, &memory[0], &p.s.mesh, mine, 2));
        check_ok(alone, un_node_memory_keep(alone, &memory[1], &p.mesh, all, 2));

        pair_build(&p, def, 300 + (uint64_t)round % 2, (round + 1) % CUT_COUNT);
        check_ok(ctx, un_node_memory_move(ctx, &memory[0], &p.s.arena, &p.s.leaves));
        check_ok(ctx, recall(ctx, &memory[0], &p.s.mesh, mine));
        check_ok(alone, recall(alone, &memory[1], &p.mesh, all));
        for (int k = 0; k < 2; k++) pair_same_nodes(&p, mine[k], all[k], sizeof **all, "recalled");
        pair_same_nodes(&p, p.s.mesh.node_level, p.mesh.node_level, 1, "level");
        pair_reset(&p);
    }
    for (int k = 0; k < 2; k++) free(mine[k]), free(all[k]);
    un_node_memory_free(ctx, &memory[0]);
    un_node_memory_free(alone, &memory[1]);
    un_tet_walls_free(&walls[0]);
    un_tet_walls_free(&walls[1]);
    pair_free(&p);
    tank_free(&here);
    tank_free(&there);
}

static void is_that_of_one_rank(void **state)
{
    (void)state;
    static const check_tree_def trees[] = {{{1, 1, 1}, 4, 32, 500, 1, false},
                                           {{0.7, 1, 0.4}, 4, 64, 1000, 0, true},
                                           {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false}};
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < 4; i++) carries(ctx, alone, &trees[i % 3], i < 3);
    check_context_end(alone);
    check_context_end(ctx);
}

/* All that asks for memory, on the mesh of `p`; what it asks for comes from ctx. */
static un_status carry(un_context *ctx, pair *p, const tank *t, float *phi, double *value[2])
{
    un_arena arena;
    un_tet_walls walls;
    un_node_memory memory = {0};
    un_sizing_nodes nodes;
    un_sizing_def sizing = {.scene = &t->scene, .nodes = &nodes, .phi = phi, .scale = 1};
    float *size = malloc(((size_t)p->s.mesh.node_count + 1) * sizeof *size);
    un_arena_init(&arena, ctx);
    un_tet_walls_init(ctx, &walls, t->walls);
    un_status status = un_tet_walls_sample(&walls, &arena, &p->s.mesh);
    if (status == UN_OK) status = un_node_memory_keep(ctx, &memory, &p->s.mesh, value, 2);
    if (status == UN_OK) status = un_node_memory_move(ctx, &memory, &arena, &p->s.leaves);
    if (status == UN_OK) status = recall(ctx, &memory, &p->s.mesh, value);
    if (status == UN_OK) status = un_sizing_nodes_tets(ctx, &arena, &nodes, &p->s.mesh, phi);
    sizing.wall = walls.phi;
    sizing.solid = walls.phi_solid;
    sizing.narrow = walls.narrow;
    if (status == UN_OK) status = un_sizing_evaluate(ctx, &arena, size, &sizing);
    un_node_memory_free(ctx, &memory);
    un_tet_walls_free(&walls);
    un_arena_free(&arena);
    free(size);
    return status;
}

static void memory_fails_on_all(void **state)
{
    (void)state;
    const check_tree_def *def = &check_trees[3];
    un_context *good = group_context(), *alone = check_context();
    pair p;
    tank t;
    double *value[2];
    pair_tank(&t, alone, def, true);
    pair_init(&p, good, alone, def);
    pair_build(&p, def, 300, CUT_BY_WORK);
    fill_numbers(&p.s.mesh, value);
    float *phi = malloc(((size_t)p.s.mesh.node_count + 1) * sizeof *phi);
    for (int32_t n = 0; n < p.s.mesh.node_count; n++) phi[n] = (float)(p.s.mesh.x[n].y - 0.5);
    int failures = 0;
    for (bool done = false; !done;) {
        un_context *ctx = group_context_failing(1, failures + 1, un_ranks_count(group) - 1);
        un_status status = carry(ctx, &p, &t, phi, value);
        done = status == UN_OK;
        if (!done) assert_int_equal(status, UN_ERROR_MEMORY);
        failures += !done;
        un_ranks_recover(ctx);
        check_context_end(ctx);
    }
    assert_true(failures > 15);
    free(phi), free(value[0]), free(value[1]);
    pair_free(&p);
    tank_free(&t);
    check_context_end(alone);
    check_context_end(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_that_of_one_rank),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
