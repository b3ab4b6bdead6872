/* Sizes on tets over ranks: neighbours, all terms, the limit, sizes at particles and the budget are
 * those of one rank, bit by bit; and a formula that fails on one rank fails the call on all. */
#include "scene/files.h"
#include "sizing/sizing.h"

#include "pair_particles.h"

/* All lengths are shares of the domain's sides. */
#define HEAD                                                                                       \
    "local X, Y, Z, finest, coarsest = %.17g, %.17g, %.17g, %d, %d\n"                              \
    "local h = math.max(X, Y, Z) / finest\n"                                                       \
    "scene { method = 'tet', domain = { size = {X, Y, Z} },\n"                                     \
    "  detail = { coarsest = coarsest, finest = finest },\n"                                       \
    "  liquid = { box { min = {0, 0, 0}, max = {X, .4 * Y, Z} } },\n"
static const char *const scenes[] = {
    /* what is usual */
    HEAD "}",
    /* everything */
    HEAD
    "  solids = { box { min = {.4 * X, 0, 0}, max = {.4 * X + 3.3 * h, .6 * Y, Z} },\n"
    "    sphere { center = {.7 * X, .3 * Y, .5 * Z}, radius = 4 * h } },\n"
    "  sources = { emitter { shape = box { min = {.1 * X, .3 * Y, .1 * Z},\n"
    "      max = {.2 * X, .4 * Y, .3 * Z} }, velocity = {0, -1, 0} },\n"
    "    drain { shape = box { min = {.8 * X, 0, .7 * Z}, max = {.9 * X, .1 * Y, .8 * Z} } } },\n"
    "  sizing = { deformability = 1e4,\n"
    "    camera = { eye = function(t) return {X, Y, 3 * Z + t} end, target = {X, 0, 0}, fov = 20 "
    "},\n"
    "    custom = function(x, y, z, t) return h * (2 + 9 * math.abs(math.sin(9 * x + 7 * z))) end "
    "} }",
    /* one small size, which the limit carries through the domain */
    HEAD "  sizing = { depth = false, curvature = false, solid_curvature = false, strain = false,\n"
         "    film = false, custom = function(x, y, z) if x + z < h then return h end end } }",
    /* an error, at one side */
    HEAD "  sizing = { custom = function(x, y, z, t)\n"
         "    return t > 1 and x > .9 * X and -1 or 1 end } }"};
#define FAILS 3

typedef struct side {
    un_context *ctx;
    un_arena *arena;
    un_tets *mesh;
    un_scene *scene;
    un_grid grid;
    un_bodies *bodies;
    un_walls *walls;
    un_tet_walls tet_walls;
    un_sources sources;
    float *phi, *size;
    un_vec3 *u;
    un_sizing_nodes nodes;
} side;

static void side_init(side *s, const char *text)
{
    size_t nodes = (size_t)s->mesh->node_count + 1;
    s->scene = load_valid(s->ctx, text);
    const un_scene_def *def = &s->scene->def;
    s->grid = un_grid_make(def->domain.size, def->detail.finest);
    check_ok(s->ctx, un_bodies_create(s->ctx, s->scene, &s->bodies));
    check_ok(s->ctx, un_walls_create(s->ctx, &s->grid, s->bodies, false, &s->walls));
    check_ok(s->ctx, un_sources_init(&s->sources, s->ctx, def, &s->grid, s->walls));
    un_tet_walls_init(s->ctx, &s->tet_walls, s->walls);
    check_ok(s->ctx, un_tet_walls_sample(&s->tet_walls, s->arena, s->mesh));
    un_arena_reset(s->arena);
    s->phi = malloc(nodes * sizeof *s->phi);
    s->size = malloc(nodes * sizeof *s->size);
    s->u = malloc(nodes * sizeof *s->u);
    un_vec3 d = def->domain.size;
    for (int32_t n = 0; n < s->mesh->node_count; n++) {
        un_vec3 x = s->mesh->x[n];
        double wave = 0.1 * d.y * sin(5 * x.x / d.x) * cos(4 * x.z / d.z);
        s->phi[n] = (float)(x.y - 0.4 * d.y - wave);
        s->u[n] = un_scale(pair_velocity(x), 0.02);
        s->size[n] = -1; /* junk */
    }
}

static void side_free(side *s)
{
    free(s->phi), free(s->size), free(s->u);
    un_tet_walls_free(&s->tet_walls);
    un_sources_free(&s->sources);
    un_walls_destroy(s->walls);
    un_bodies_destroy(s->bodies);
    un_scene_destroy(s->scene);
}

static un_status evaluate(side *s, double time, double scale)
{
    un_sizing_def def = {.scene = s->scene,
                         .nodes = &s->nodes,
                         .phi = s->phi,
                         .wall = s->tet_walls.phi,
                         .solid = s->tet_walls.phi_solid,
                         .narrow = s->tet_walls.narrow,
                         .velocity = s->u,
                         .sources = &s->sources,
                         .time = time,
                         .scale = scale};
    check_ok(s->ctx, un_sizing_nodes_tets(s->ctx, s->arena, &s->nodes, s->mesh, s->phi));
    return un_sizing_evaluate(s->ctx, s->arena, s->size, &def);
}

static void same_neighbours(const pair *p, const un_sizing_nodes *a, const un_sizing_nodes *b)
{
    const un_tet_share *s = &p->s.part;
    int32_t *node = malloc(((size_t)p->s.mesh.node_count + 1) * sizeof *node);
    int32_t *tet = malloc(((size_t)p->s.mesh.tet_count + 1) * sizeof *tet);
    pair_number(p, node, tet);
    for (int64_t n = s->nodes.begin; n < s->nodes.end; n++) {
        int64_t m = s->node_begin + n - s->nodes.begin;
        assert_int_equal(a->near_count[m], b->near_count[n]);
        assert_int_equal(a->near_first[m + 1] - a->near_first[m],
                         b->near_first[n + 1] - b->near_first[n]);
        for (int32_t k = 0; k < un_sizing_listed(b, n); k++)
            assert_int_equal(node[a->near[a->near_first[m] + k]], b->near[b->near_first[n] + k]);
    }
    free(node), free(tet);
}

/* The rank's own particles are those in its own tets. */
static void same_particles(pair *p, side *s)
{
    pair_particles m;
    pair_fill(p, &m, 5000, 0.5 * p->tree.size.y);
    un_part tets = un_tets_own(&p->s.mesh);
    un_particle_share share = {.ctx = s[0].ctx, .begin = m.own.begin[tets.begin]};
    share.own = un_ranks_range(s[0].ctx, m.own.begin[tets.end] - share.begin);
    assert_int_equal(share.own.total, m.all.count);
    un_markers mine = {.particles = m.mine, .share = &share}, all = {.particles = m.all};
    un_sizing_on_tets on[2] = {{s[0].mesh, s[0].size, &m.own},
                               {s[1].mesh, s[1].size, &m.bins}};
    un_sizing_to_particles(s[0].ctx, &mine.particles, un_markers_own(&mine), un_sizing_at_tets,
                           &on[0], 0.1);
    un_sizing_to_particles(s[1].ctx, &all.particles, un_markers_own(&all), un_sizing_at_tets,
                           &on[1], 0.1);
    double least = 0.5 * p->tree.h, most = 0.5 * un_octree_size(&p->tree, 0);
    un_resize_def range = {.volume_min = least * least * least, .volume_max = most * most * most};
    un_budget budget[2] = {{.scale = 1}, {.scale = 1}};
    double expected = un_particles_expected(s[1].ctx, &all.particles, NULL, &range, 1.1);
    assert_true(expected == un_particles_expected(s[0].ctx, &mine.particles, &share, &range, 1.1));
    double few = 0.5 * un_particles_expected(s[1].ctx, &all.particles, NULL, &range, 1);
    un_budget_keep(s[0].ctx, &budget[0], &mine, &range, few, 1);
    un_budget_keep(s[1].ctx, &budget[1], &all, &range, few, 1);
    assert_true(budget[0].scale == budget[1].scale && budget[1].scale > 1);
    un_part own = un_markers_own(&mine);
    for (int64_t q = own.begin; q < own.end; q++) {
        assert_int_equal(m.id[q], share.own.begin + q - own.begin);
        assert_true(m.mine.size[q] == m.all.size[m.id[q]]);
    }
    pair_empty(p, &m);
}

static int64_t count_limited(const side *s)
{
    int64_t count = 0;
    for (int32_t n = 0; n < s->mesh->node_count; n++)
        count += s->nodes.used[n] && s->size[n] < 0.9 * (double)s->nodes.coarsest;
    return count;
}

static void sizes(un_context *ctx, un_context *alone, const check_tree_def *def, int kind, int cut)
{
    char text[2048];
    pair p;
    pair_init(&p, ctx, alone, def);
    pair_build(&p, def, 300, cut);
    side s[2] = {{.ctx = ctx, .arena = &p.s.arena, .mesh = &p.s.mesh},
                 {.ctx = alone, .arena = &p.arena, .mesh = &p.mesh}};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, scenes[kind], def->size.x, def->size.y, def->size.z, def->finest,
             def->coarsest);
#pragma GCC diagnostic pop
    for (int i = 0; i < 2; i++) side_init(&s[i], text);
    double time = kind == FAILS ? 2 : 0.5;
    un_status status[2] = {evaluate(&s[0], time, 1.1), evaluate(&s[1], time, 1.1)};
    assert_int_equal(status[0], status[1]);
    if (kind == FAILS) {
        assert_int_equal(status[0], UN_ERROR_SCENE);
        assert_string_equal(un_context_message(ctx), un_context_message(alone));
        un_ranks_recover(ctx);
    } else {
        check_ok(ctx, status[0]);
        pair_same_nodes(&p, s[0].size, s[1].size, sizeof(float), "size");
        same_neighbours(&p, &s[0].nodes, &s[1].nodes);
        assert_true(count_limited(&s[1]) > p.mesh.node_count / 20);
        pair_reset(&p);
        if (kind == 1) same_particles(&p, s);
    }
    side_free(&s[0]);
    side_free(&s[1]);
    pair_free(&p);
}

static void are_those_of_one_rank(void **state)
{
    (void)state;
    static const check_tree_def trees[] = {{{1, 1, 1}, 4, 32, 300, 1, false},
                                           {{0.7, 1, 0.4}, 4, 64, 1000, 0, true},
                                           {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false}};
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < 7; i++) sizes(ctx, alone, &trees[i % 3], i / 2, i % CUT_COUNT);
    check_context_end(alone);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(are_those_of_one_rank, enter_folder, leave_folder)};
    group_run(tests);
}
