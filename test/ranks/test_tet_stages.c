/* Tets over ranks: unknowns of the pressure, rows, right-hand sides, pressures and velocities are
 * those of one rank, bit by bit, and so are the iterations; and so are velocities beyond the
 * liquid. */
#include "pressure/pressure.h"
#include "transfer/transfer.h"

#include "shared_tets.h"

/* Water with waves and noise, under a drop; or all of the tank, closed. Noise of a third of the
 * finest cell makes some nodes too weak to be unknowns. */
static float level_at(un_vec3 x, un_vec3 size, bool closed)
{
    double h = 0.45 * size.y, wave = 0.08 * size.y * sin(9 * x.x / size.x) * cos(7 * x.z / size.z);
    un_vec3 drop = un_sub(x, un_v3(0.5 * size.x, 0.75 * size.y, 0.5 * size.z));
    double noise = 0.01 * size.y * sin(917 * x.x + 853 * x.y + 1009 * x.z);
    return closed ? -1 : (float)(noise + fmin(x.y - h - wave, un_length(drop) - 0.15 * size.y));
}

/* Noise, by place. */
static un_vec3 velocity_at(un_vec3 x)
{
    return un_v3(sin(50 * x.x + 3 * x.y), cos(40 * x.y + x.z), sin(30 * x.z) - 2);
}

typedef struct fields {
    float *phi;
    un_vec3 *u;
    uint8_t *known;
    double *p;
    un_pressure *pr;
    un_tet_projection_report report;
} fields;

static void make_fields(fields *f, un_context *ctx, const un_tets *mesh, const un_tet_share *share,
                        un_vec3 size, bool closed)
{
    size_t nodes = (size_t)mesh->node_count + 1, tets = (size_t)mesh->tet_count + 1;
    *f = (fields){.phi = malloc(nodes * sizeof *f->phi),
                  .u = malloc(tets * sizeof *f->u),
                  .known = malloc(tets),
                  .p = calloc(nodes, sizeof *f->p)};
    for (int32_t n = 0; n < mesh->node_count; n++)
        f->phi[n] = share ? 1 : level_at(mesh->x[n], size, closed);
    if (share) {
        int64_t begin = share->node_begin, end = begin + share->nodes.end - share->nodes.begin;
        for (int64_t n = begin; n < end; n++) f->phi[n] = level_at(mesh->x[n], size, closed);
        for (int32_t k = 0; k < share->ghost_count; k++)
            f->phi[share->ghost[k]] = level_at(mesh->x[share->ghost[k]], size, closed);
    }
    for (int32_t t = 0; t < mesh->tet_count; t++) f->u[t] = velocity_at(un_tets_center(mesh, t));
    check_ok(ctx, un_pressure_create(ctx, NULL, &f->pr));
    un_solver_set_kind(f->pr->solver, UN_SOLVER_GEOMETRIC);
}

static void free_fields(fields *f)
{
    free(f->phi);
    free(f->u);
    free(f->known);
    free(f->p);
    un_pressure_destroy(f->pr);
}

static un_status project(fields *f, un_arena *arena, const un_tets *mesh)
{
    un_tet_projection in = {.mesh = mesh,
                            .u = f->u,
                            .known = f->known,
                            .phi = f->phi,
                            .p = f->p,
                            .dt = 0.01,
                            .density = 1000,
                            .tolerance = 1e-6,
                            .iteration_limit = 500,
                            .let_go = 0.01};
    return un_tet_pressure_project(f->pr, arena, &in, &f->report);
}

static void compare_rows(const shared *s, const fields *mine, const fields *all)
{
    const un_csr *a = &mine->pr->matrix, *b = &all->pr->matrix;
    un_part own = mine->pr->own;
    assert_int_equal(a->n, b->n);
    for (int64_t r = own.begin; r < own.end; r++) {
        int32_t count = a->row[r + 1] - a->row[r];
        assert_int_equal(a->row[r], b->row[r]);
        assert_int_equal(count, b->row[r + 1] - b->row[r]);
        assert_memory_equal(a->col + a->row[r], b->col + b->row[r], (size_t)count * sizeof *a->col);
        assert_memory_equal(a->val + a->row[r], b->val + b->row[r], (size_t)count * sizeof *a->val);
        assert_true(mine->pr->rhs[r] == all->pr->rhs[r]);
        assert_int_equal(mine->pr->place[r] - s->part.node_begin + s->part.nodes.begin,
                         all->pr->place[r]);
    }
}

static void compare_answers(const shared *s, const fields *mine, const fields *all)
{
    const un_tet_share *p = &s->part;
    for (int64_t n = p->nodes.begin; n < p->nodes.end; n++)
        assert_memory_equal(&mine->p[p->node_begin + n - p->nodes.begin], &all->p[n],
                            sizeof *all->p);
    for (int32_t k = 0; k < p->ghost_count; k++)
        assert_memory_equal(&mine->p[p->ghost[k]], &all->p[p->ghost_id[k]], sizeof *all->p);
    for (int64_t t = p->tets.begin; t < p->tets.end; t++) {
        int64_t own = p->tet_begin + t - p->tets.begin;
        assert_int_equal(mine->known[own], all->known[t]);
        assert_memory_equal(&mine->u[own], &all->u[t], sizeof *all->u);
    }
    const un_tet_projection_report *a = &mine->report, *b = &all->report;
    assert_true(a->solve.converged);
    assert_int_equal(a->solve.iterations, b->solve.iterations);
    assert_true(a->solve.residual == b->solve.residual);
    assert_int_equal(a->left_count, b->left_count);
    assert_int_equal(a->cut_count, b->cut_count);
    assert_true(a->max_divergence == b->max_divergence);
    assert_int_equal(mine->pr->free_count, all->pr->free_count);
}

/* Five layers of the velocities at nodes under water. */
static void extend(un_context *ctx, un_arena *arena, const un_tets *mesh, const fields *f,
                   un_vec3 *u, uint8_t *known)
{
    for (int32_t n = 0; n < mesh->node_count; n++) {
        known[n] = f->phi[n] < 0;
        u[n] = known[n] ? velocity_at(mesh->x[n]) : un_v3(0, 0, 0);
    }
    check_ok(ctx, un_transfer_extrapolate_nodes(ctx, arena, u, NULL, known, mesh, 5));
}

static void compare_extended(const shared *s, const fields *mine, un_context *alone,
                             un_arena *arena, const un_tets *serial, const fields *all)
{
    size_t here = (size_t)s->mesh.node_count, there = (size_t)serial->node_count;
    const un_tet_share *p = &s->part;
    un_vec3 *u = malloc(here * sizeof *u), *v = malloc(there * sizeof *v);
    uint8_t *known = malloc(here), *known_all = malloc(there);
    un_arena own;
    un_arena_init(&own, s->ctx);
    extend(s->ctx, &own, &s->mesh, mine, u, known);
    extend(alone, arena, serial, all, v, known_all);
    for (int64_t n = p->nodes.begin; n < p->nodes.end; n++) {
        int64_t m = p->node_begin + n - p->nodes.begin;
        assert_int_equal(known[m], known_all[n]);
        assert_memory_equal(&u[m], &v[n], sizeof *u);
    }
    for (int32_t k = 0; k < p->ghost_count; k++)
        assert_memory_equal(&u[p->ghost[k]], &v[p->ghost_id[k]], sizeof *u);
    un_arena_free(&own);
    free(u);
    free(v);
    free(known);
    free(known_all);
}

static void is_that_of_one_rank(void **state)
{
    (void)state;
    static const check_tree_def trees[] = {{{1, 1, 1}, 4, 32, 4000, 1, false},
                                           {{0.7, 1, 0.4}, 4, 64, 3000, 0, true},
                                           {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false}};
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < 6; i++) {
        const check_tree_def *def = &trees[i % 3];
        bool closed = i >= 3;
        un_arena arena;
        un_octree tree;
        un_tets mesh;
        shared s;
        fields mine, all;
        un_arena_init(&arena, alone);
        check_build_tree(alone, &tree, def, 300);
        un_tets_init(alone, &mesh);
        check_ok(alone, un_tets_build(&mesh, &arena, &tree));
        make_fields(&all, alone, &mesh, NULL, def->size, closed);
        un_arena_reset(&arena);
        check_points points = check_make_points(alone, def, &tree, 300);
        shared_init(&s, ctx, def);
        check_ok(ctx, build_shared(&s, &points, i % CUT_COUNT));
        un_arena_reset(&s.arena);
        make_fields(&mine, ctx, &s.mesh, &s.part, def->size, closed);
        for (int round = 0; round < 2; round++) { /* the second begins with what let go */
            check_ok(alone, project(&all, &arena, &mesh));
            check_ok(ctx, project(&mine, &s.arena, &s.mesh));
            compare_rows(&s, &mine, &all);
            compare_answers(&s, &mine, &all);
            un_arena_reset(&arena);
            un_arena_reset(&s.arena);
        }
        compare_extended(&s, &mine, alone, &arena, &mesh, &all);
        if (i == 0) assert_true(all.report.node_count > 20000); /* all ranks solve */
        if (i == 0) assert_true(all.report.left_count > 0);
        free_fields(&mine);
        free_fields(&all);
        check_free_points(alone, &points);
        shared_free(&s);
        un_tets_free(&mesh);
        un_octree_free(&tree);
        un_arena_free(&arena);
    }
    check_context_end(alone);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_that_of_one_rank)};
    group_run(tests);
}
