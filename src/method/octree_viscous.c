/* Viscosity in method `octree`: solved for on faces and on the nodes of graded tets of the same
 * tree (viscosity/leaves.c), with the pressure before and after it. */
#include "method/octree.h"

void un_octree_thick_free(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    un_context *ctx = s->core.ctx;
    void *arrays[] = {t->phi, t->u, t->p, t->known, t->shown, t->centre};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    un_viscous_walls_free(ctx, &t->walls);
    if (t->any) {
        un_tet_walls_free(&t->tet_walls);
        un_tets_free(&t->tets);
        un_free(ctx, t->part.known);
        t->part.known = NULL;
        t->part.capacity_known = 0;
    }
    t->phi = NULL;
    t->u = NULL;
    t->p = t->shown = NULL;
    t->known = NULL;
    t->centre = NULL;
    memset(t->capacity, 0, sizeof t->capacity);
}

void un_octree_thick_init(un_octree_flip *s)
{
    const un_scene_def *def = s->core.def;
    if (!s->thick.any) return;
    for (int side = 0; side < 6; side++)
        s->thick.slip[side] = def->domain.open[side] ? INFINITY : def->domain.slip[side];
    un_tets_init(s->core.ctx, &s->thick.tets);
    un_tet_walls_init(s->core.ctx, &s->thick.tet_walls, s->core.walls);
}

un_status un_octree_need_centres(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    if (!t->any) return UN_OK;
    UN_TRY(un_array_need(s->core.ctx, (void **)&t->centre, &t->capacity[5],
                         (size_t)s->leaves.face_count + 1, sizeof *t->centre));
    un_leaves_forget_faces(&s->leaves, t->centre, sizeof *t->centre);
    return UN_OK;
}

un_status un_octree_thicken(un_octree_flip *s)
{
    if (!s->thick.any) return UN_OK;
    return un_transfer_move_to_leaf_faces(s->core.ctx, &s->core.arena, s->at.u, s->at.known,
                                          (const float(*)[4])s->thick.centre, &s->leaves);
}

/* ---- the mesh of nodes ---- */

static un_status need_nodes(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    size_t nodes = (size_t)t->tets.node_count + 1;
    un_context *ctx = s->core.ctx;
    UN_TRY(un_array_need(ctx, (void **)&t->phi, &t->capacity[0], nodes, sizeof *t->phi));
    UN_TRY(un_array_need(ctx, (void **)&t->u, &t->capacity[1], nodes, sizeof *t->u));
    UN_TRY(un_array_need(ctx, (void **)&t->p, &t->capacity[2], nodes, sizeof *t->p));
    return un_array_need(ctx, (void **)&t->known, &t->capacity[3], nodes, 1);
}

/* What no rank knows better is air at rest. */
static void clear_nodes(void *arg, int64_t begin, int64_t end)
{
    un_octree_flip *s = arg;
    for (int64_t n = begin; n < end; n++) {
        s->thick.phi[n] = (float)s->tree.h;
        s->thick.u[n] = un_v3(0, 0, 0);
        s->thick.known[n] = 0;
    }
}

static void sample_nodes(void *arg, int64_t begin, int64_t end)
{
    un_octree_flip *s = arg;
    const un_tets *tets = &s->thick.tets;
    un_centre_finder finder;
    un_centre_finder_init(&finder, &s->leaves, s->at.phi, NULL);
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = tets->x[n];
        s->thick.phi[n] = (float)un_centre_finder_at(&finder, un_octree_find(&s->tree, x), x);
    }
}

static un_status find_level_set(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    un_field phi = {"phi", t->phi, NULL, sizeof *t->phi};
    un_parallel_for(s->core.ctx, t->tets.node_count, 8192, clear_nodes, s);
    un_parallel_part(s->core.ctx, un_tets_own_nodes(&t->tets), 512, sample_nodes, s);
    return un_tets_share(&t->tets, &phi, 1);
}

/* Over ranks, of own leaves and those that touch them. */
static un_status build_tets(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    un_arena *arena = &s->core.arena;
    const un_octree *tree = &s->tree;
    un_status status = UN_OK;
    if (s->ranks.any) {
        status = un_leaves_part_tree(&t->part, &s->leaves);
        tree = &t->part;
    }
    if (status == UN_OK) status = un_tets_build(&t->tets, arena, tree);
    un_arena_reset(arena);
    UN_TRY(un_octree_agree(s, status));
    if (s->ranks.any) UN_TRY(un_tet_share_find(&s->ranks.tets, arena, &t->tets, &s->ranks.tree));
    un_arena_reset(arena);
    return UN_OK;
}

/* Tets around the leaves, what is known at their nodes, and walls there. */
static un_status build_nodes(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    un_mixture mix = {.density_all = s->core.def->fluid.density,
                      .viscosity_all = s->core.def->fluid.viscosity};
    UN_TRY(build_tets(s));
    UN_TRY(un_tet_walls_sample(&t->tet_walls, arena, &t->tets));
    un_arena_reset(arena);
    UN_TRY(un_octree_agree(s, need_nodes(s)));
    UN_TRY(un_node_memory_recall(ctx, &t->memory, &t->tets, &t->p, 1, t->known));
    UN_TRY(find_level_set(s));
    UN_TRY(un_viscous_walls_find(ctx, &t->walls, &t->tet_walls));
    un_viscous_walls_follow(ctx, &t->walls, &t->tet_walls);
    un_viscous_walls_hold(ctx, &t->walls, t->u, t->known, &t->tets, &mix, s->core.def,
                          s->core.time);
    return UN_OK;
}

/* ---- the solve ---- */

static un_status solve(un_octree_flip *s, double dt, uint8_t *solved, un_viscous_report *report)
{
    const un_scene_def *def = s->core.def;
    un_thick_leaves *t = &s->thick;
    un_viscous_leaves step = {.solve = {.mesh = &t->tets,
                                        .phi = t->phi,
                                        .tet_walls = &t->tet_walls,
                                        .walls = &t->walls,
                                        .bodies = un_core_free_bodies(&s->core),
                                        .viscosity_all = def->fluid.viscosity,
                                        .density_all = def->fluid.density,
                                        .dt = un_core_kick(&s->core, dt),
                                        .tolerance = def->solver.tolerance,
                                        .iteration_limit = UN_OCTREE_ITERATIONS,
                                        .keeps_volume = strcmp(def->solver.stress, "full") == 0,
                                        .p = t->p,
                                        .laplacian = strcmp(def->solver.stress, "laplacian") == 0},
                              .leaves = &s->leaves,
                              .walls = &s->walls,
                              .phi = s->at.phi,
                              .u = s->at.u,
                              .known = s->at.known,
                              .solved = solved,
                              .pic = strcmp(def->solver.coupling, "pic") == 0};
    UN_TRY(un_viscosity_step_leaves(t->solver, &s->core.arena, &step, t->u, report));
    un_arena_reset(&s->core.arena);
    UN_TRY(un_core_viscous_solved(&s->core, &report->solve));
    return un_node_memory_keep(s->core.ctx, &t->memory, &t->tets, &t->p, 1);
}

/* Of leaves that this rank knows. */
static void add_first(un_octree_flip *s, const double *first)
{
    for (int32_t k = 0; k < un_leaves_runs(&s->leaves); k++) {
        un_part run = un_leaves_run(&s->leaves, k);
        un_pressure_add(s->core.ctx, s->at.p + run.begin, first + run.begin, run.end - run.begin);
    }
}

/* Puts the pressure aside, and the velocities that the next one is to change. */
static void put_aside(un_octree_flip *s, double *first, double *since)
{
    const un_leaves *m = &s->leaves;
    for (int32_t k = 0; k < un_leaves_runs(m); k++) {
        un_part run = un_leaves_run(m, k), faces = un_leaves_face_run(m, k);
        size_t leaves = (size_t)(run.end - run.begin) * sizeof *first;
        memcpy(first + run.begin, s->at.p + run.begin, leaves);
        memset(s->at.p + run.begin, 0, leaves);
        memcpy(since + faces.begin, s->at.u + faces.begin,
               (size_t)(faces.end - faces.begin) * sizeof *since);
    }
}

/* The second pressure is small beside the first; outputs and the next guess have their sum. */
static un_status project_again(un_octree_flip *s, double dt, un_vec3 stress, double *first,
                               double *since, un_leaf_projection_report *projection)
{
    un_vec3 got = un_add(s->impulse.momentum, stress);
    int32_t iterations = projection->solve.iterations;
    put_aside(s, first, since);
    UN_TRY(un_octree_apply_pressure(s, dt, first, since, projection));
    s->impulse.momentum = un_add(s->impulse.momentum, got);
    add_first(s, first);
    projection->solve.iterations += iterations;
    return un_octree_keep_pressure(s);
}

/* Faces that belong to thick liquid only since it was solved for. */
static void mark_solved(un_octree_flip *s, const uint8_t *solved)
{
    for (int32_t k = 0; k < un_leaves_runs(&s->leaves); k++)
        for (int64_t f = un_leaves_face_run(&s->leaves, k).begin;
             f < un_leaves_face_run(&s->leaves, k).end; f++)
            if (solved[f] && !s->at.known[f]) s->at.known[f] = 2;
}

static un_status solve_and_project(un_octree_flip *s, double dt, uint8_t *solved, double *first,
                                   double *since, un_leaf_projection_report *projection,
                                   int32_t *iterations)
{
    un_viscous_report report;
    UN_TRY(solve(s, dt, solved, &report));
    *iterations = report.solve.iterations;
    UN_TRY(project_again(s, dt, report.impulse, first, since, projection));
    mark_solved(s, solved);
    return UN_OK;
}

un_status un_octree_apply_viscosity(un_octree_flip *s, double dt,
                                    un_leaf_projection_report *projection, int32_t *iterations)
{
    un_context *ctx = s->core.ctx;
    size_t faces = (size_t)s->leaves.face_count + 1;
    un_octree_forget_system(s);
    UN_TRY(build_nodes(s));
    uint8_t *solved = un_alloc(ctx, faces, 1);
    double *first = un_alloc(ctx, (size_t)s->leaves.count + 1, sizeof *first);
    double *since = un_alloc(ctx, faces, sizeof *since);
    un_status status = un_octree_agree(s, solved && first && since ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK)
        status = solve_and_project(s, dt, solved, first, since, projection, iterations);
    un_free(ctx, solved);
    un_free(ctx, first);
    un_free(ctx, since);
    return status;
}

/* ---- what it shows ---- */

/* What was kept at a node, or where there is none at one before it along the curve, which may be
 * before all of this rank's. */
static double kept_at(const un_node_memory *memory, uint64_t order, double before)
{
    int64_t low = 0, high = memory->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (memory->order[middle] <= order)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? memory->value[0][low - 1] : before;
}

typedef struct show_args {
    const un_octree_flip *s;
    double before;
} show_args;

static void add_kept(void *arg, int64_t begin, int64_t end)
{
    const show_args *a = arg;
    const un_octree_flip *s = a->s;
    const un_octree *tree = &s->tree;
    for (int64_t c = begin; c < end; c++) {
        uint64_t key = tree->key[c];
        uint32_t half = 1u << (tree->level_max - tree->level[c]);
        uint32_t x = 2 * un_morton_gather(key) + half, y = 2 * un_morton_gather(key >> 1) + half,
                 z = 2 * un_morton_gather(key >> 2) + half;
        /* no centre lies in the brick's upper faces */
        uint64_t order = un_morton(x, y, z) << 3;
        bool liquid = s->at.phi[c] < 0 && s->at.p[c] != 0;
        s->thick.shown[c] = s->at.p[c] + (liquid ? kept_at(&s->thick.memory, order, a->before) : 0);
    }
}

/* The last of a rank. */
typedef struct kept_last {
    double value;
    int64_t rank;
} kept_last;

/* What was kept goes to the ranks that have its places now. *before: the last of those before this
 * one. */
static un_status move_kept(un_octree_flip *s, double *before)
{
    un_context *ctx = s->core.ctx;
    un_node_memory *kept = &s->thick.memory;
    kept_last mine = {.rank = un_rank(ctx)}, *all;
    int64_t count;
    UN_TRY(un_node_memory_move(ctx, kept, &s->core.arena, &s->ranks.tree));
    un_arena_reset(&s->core.arena);
    s->ranks.kept = un_ranks_range(ctx, kept->count);
    if (kept->count > 0) mine.value = kept->value[0][kept->count - 1];
    UN_TRY(un_ranks_list(ctx, &mine, kept->count > 0, sizeof mine, (void **)&all, &count));
    for (int64_t k = 0; k < count; k++)
        if (all[k].rank < mine.rank) *before = all[k].value;
    un_free(ctx, all);
    return UN_OK;
}

un_status un_octree_show_pressure(un_octree_flip *s)
{
    un_thick_leaves *t = &s->thick;
    if (!t->any) return UN_OK;
    show_args a = {.s = s};
    UN_TRY(un_octree_agree(s, un_array_need(s->core.ctx, (void **)&t->shown, &t->capacity[4],
                                            (size_t)s->leaves.count + 1, sizeof *t->shown)));
    un_leaves_forget(&s->leaves, t->shown, sizeof *t->shown);
    if (s->ranks.any) UN_TRY(move_kept(s, &a.before));
    un_parallel_part(s->core.ctx, un_leaves_own(&s->leaves), 4096, add_kept, &a);
    return UN_OK;
}

/* ---- at walls ---- */

static void stick_faces(void *arg, int64_t begin, int64_t end)
{
    un_octree_flip *s = arg;
    const un_leaves *m = &s->leaves;
    const un_leaf_walls *w = &s->walls;
    const un_bodies *bodies = s->core.bodies;
    for (int64_t f = begin; f < end; f++) {
        if (s->at.known[f] == 1 || w->body[f] < 0 || w->area[f] >= UN_SLIVER) continue;
        const un_body *body = &bodies->body[w->body[f]];
        if (body->slip > 0) continue;
        un_vec3 u = un_body_velocity(body, un_leaf_face_center(m, f));
        s->at.u[f] = s->at.before[f] = un_vec3_at(u, un_leaf_face_axis(m, f));
    }
}

void un_octree_stick(un_octree_flip *s)
{
    if (s->walls.body) un_leaves_each_face(&s->leaves, 4096, stick_faces, s);
}

un_cling un_octree_cling(const un_octree_flip *s)
{
    const un_scene_def *def = s->core.def;
    return (un_cling){.viscous = s->thick.any,
                      .thickness = def->fluid.viscosity / def->fluid.density,
                      .tension = 0,
                      .gravity = un_length(def->gravity),
                      .h = s->tree.h};
}
