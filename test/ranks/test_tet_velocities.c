/* Velocities of a step of `tet` over ranks, before and after the pressure: nodes and tets, calming,
 * what the divergence is wanted to be, the projection among solids, slivers, what is extrapolated
 * and stopped at walls, and the fastest rate, as on one rank, bit by bit. */
#include "advect/advect.h"
#include "pressure/pressure.h"
#include "transfer/transfer.h"

#include "pair_particles.h"
#include "pair_tank.h"

typedef struct side {
    un_context *ctx;
    un_arena *arena;
    const un_tets *mesh;
    const un_particles *particles;
    const un_tet_bins *bins;
    un_tet_walls walls;
    un_pressure *pressure;
    float *phi, *colour, *volume, *source, *quiet;
    un_vec3 *u, *d, *sharp, *u_tet, *d_tet;
    uint8_t *known, *known_tet, *changed;
    double *p, rate;
} side;

static void side_init(side *s, tank *t)
{
    size_t nodes = (size_t)s->mesh->node_count + 1, tets = (size_t)s->mesh->tet_count + 1;
    float **floats[] = {&s->phi, &s->colour, &s->volume, &s->source, &s->quiet};
    for (int i = 0; i < 5; i++) *floats[i] = malloc(nodes * sizeof(float));
    un_vec3 **at_nodes[] = {&s->u, &s->d, &s->sharp};
    for (int i = 0; i < 3; i++) *at_nodes[i] = calloc(nodes, sizeof(un_vec3));
    s->u_tet = malloc(tets * sizeof *s->u_tet);
    s->d_tet = malloc(tets * sizeof *s->d_tet);
    s->known = calloc(nodes, 1);
    s->known_tet = malloc(tets);
    s->changed = malloc(tets);
    s->p = calloc(nodes, sizeof *s->p);
    un_tet_walls_init(s->ctx, &s->walls, t->walls);
    check_ok(s->ctx, un_pressure_create(s->ctx, NULL, &s->pressure));
    un_solver_set_kind(s->pressure->solver, UN_SOLVER_GEOMETRIC);
}

static void side_free(side *s)
{
    void *arrays[] = {s->phi, s->colour, s->volume, s->source, s->quiet,     s->u,       s->d,
                      s->p,   s->sharp,  s->u_tet,  s->d_tet,  s->known_tet, s->changed, s->known};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    un_tet_walls_free(&s->walls);
    un_pressure_destroy(s->pressure);
}

/* Waves with noise; what only fills a rank's brick is air. */
static void fill_nodes(side *s, un_vec3 size)
{
    const un_tet_share *share = s->mesh->share;
    for (int32_t n = 0; n < s->mesh->node_count; n++) {
        un_vec3 x = s->mesh->x[n];
        double wave = 0.08 * size.y * sin(9 * x.x / size.x) * cos(7 * x.z / size.z);
        double noise = 0.01 * size.y * sin(917 * x.x + 853 * x.y + 1009 * x.z);
        s->phi[n] = (float)(x.y - 0.45 * size.y - wave + noise);
        s->colour[n] = (float)(1 + 0.7 * sin(31 * x.x + 77 * x.y) * cos(53 * x.z));
    }
    if (!share) return;
    uint8_t *here = calloc((size_t)s->mesh->node_count + 1, 1);
    un_part own = un_tets_own_nodes(s->mesh);
    for (int32_t k = 0; k < share->ghost_count; k++) here[share->ghost[k]] = 1;
    for (int32_t n = 0; n < s->mesh->node_count; n++)
        if (!here[n] && (n < own.begin || n >= own.end)) s->phi[n] = 1;
    free(here);
}

/* As method `tet` has it. */
static void to_mesh(side *s, double quiet_speed)
{
    check_ok(s->ctx, un_transfer_to_nodes(s->ctx, s->arena, s->volume, s->u, s->known, s->mesh,
                                          s->bins, s->particles));
    un_field fields[2] = {{"u", s->u, NULL, sizeof *s->u}, {"known", s->known, NULL, 1}};
    check_ok(s->ctx, un_tets_share(s->mesh, fields, 2));
    un_arena_reset(s->arena);
    check_ok(s->ctx,
             un_transfer_extrapolate_nodes(s->ctx, s->arena, s->u, NULL, s->known, s->mesh, 2));
    un_transfer_nodes_to_tets(s->ctx, s->u_tet, s->u, s->known, s->mesh, NULL);
    memcpy(s->d_tet, s->u_tet, (size_t)s->mesh->tet_count * sizeof *s->d_tet);
    un_mixture mix = {0};
    un_calm_def calm = {.u_tet = s->u_tet,
                        .sharp = s->sharp,
                        .quiet = s->quiet,
                        .u_node = s->u,
                        .known_node = s->known,
                        .mesh = s->mesh,
                        .bins = s->bins,
                        .particles = s->particles,
                        .mix = &mix,
                        .quiet_speed = quiet_speed,
                        .dt = 0.01,
                        .pace = 1};
    check_ok(s->ctx, un_transfer_calm(s->ctx, s->arena, &calm));
    un_transfer_add(s->ctx, s->u_tet, s->mesh->tet_count, un_v3(0, -0.0981, 0));
}

static void project(side *s)
{
    un_tet_projection_report report;
    un_divergence_def divergence = {.source = s->source,
                                    .mesh = s->mesh,
                                    .walls = &s->walls,
                                    .phi = s->phi,
                                    .colour = s->colour,
                                    .expansion = 0.02,
                                    .dt = 0.01,
                                    .pace = 1};
    un_pressure_want_divergence(s->ctx, &divergence);
    un_tet_projection in = {.mesh = s->mesh,
                            .u = s->u_tet,
                            .known = s->known_tet,
                            .phi = s->phi,
                            .walls = &s->walls,
                            .u_solid = s->walls.u_solid,
                            .p = s->p,
                            .source = s->source,
                            .dt = 0.01,
                            .density = 1000,
                            .tolerance = 1e-4,
                            .iteration_limit = 500,
                            .let_go = 0.01};
    check_ok(s->ctx, un_tet_pressure_project(s->pressure, s->arena, &in, &report));
    un_arena_reset(s->arena);
}

static void after_pressure(side *s)
{
    s->rate = un_advect_rate_tets(s->ctx, s->u_tet, s->known_tet, s->bins, s->mesh);
    un_pressure_calm_tets(s->ctx, s->u_tet, s->known_tet, s->changed, &s->walls);
    un_transfer_change(s->ctx, s->d_tet, s->u_tet, s->d_tet, s->changed, s->mesh->tet_count);
    check_ok(s->ctx, un_transfer_tets_to_nodes(s->ctx, s->d, s->known, s->d_tet, s->changed,
                                               s->mesh, s->walls.open));
    un_transfer_add_change(s->ctx, s->u, s->d, s->known, s->mesh->node_count);
}

static void extend(side *s)
{
    static const bool open[6] = {false, false, false, true, false, false};
    un_node_constraint walls = {.u = s->u,
                                .change = s->d,
                                .known = s->known,
                                .mesh = s->mesh,
                                .walls = &s->walls,
                                .open_sides = open,
                                .p = s->p,
                                .dt = 0.01};
    check_ok(s->ctx,
             un_transfer_extrapolate_nodes(s->ctx, s->arena, s->u, s->d, s->known, s->mesh, 3));
    check_ok(s->ctx, un_pressure_constrain_nodes(s->ctx, &walls));
    un_transfer_nodes_to_tets(s->ctx, s->u_tet, s->u, s->known, s->mesh, s->known_tet);
    un_transfer_nodes_to_tets(s->ctx, s->d_tet, s->d, s->known, s->mesh, s->changed);
    un_arena_reset(s->arena);
}

static void moves(un_context *ctx, un_context *alone, const check_tree_def *def, int cut,
                  bool solids)
{
    pair p;
    tank here, there;
    pair_particles m;
    pair_tank(&here, ctx, def, solids);
    pair_tank(&there, alone, def, solids);
    pair_init(&p, ctx, alone, def);
    pair_build(&p, def, 300, cut);
    pair_fill(&p, &m, 8000, 0.5 * def->size.y);
    side s[2] = {
        {.ctx = ctx, .arena = &p.s.arena, .mesh = &p.s.mesh, .particles = &m.mine, .bins = &m.own},
        {.ctx = alone, .arena = &p.arena, .mesh = &p.mesh, .particles = &m.all, .bins = &m.bins}};
    side_init(&s[0], &here);
    side_init(&s[1], &there);
    check_ok(ctx, un_bodies_update(here.bodies, 0, 0.1));
    check_ok(alone, un_bodies_update(there.bodies, 0, 0.1));
    check_ok(ctx, un_tet_walls_sample(&s[0].walls, &p.s.arena, &p.s.mesh));
    check_ok(alone, un_tet_walls_sample(&s[1].walls, &p.arena, &p.mesh));
    pair_reset(&p);
    for (int i = 0; i < 2; i++) fill_nodes(&s[i], def->size), to_mesh(&s[i], 0.5);
    pair_same_nodes(&p, s[0].quiet, s[1].quiet, sizeof(float), "quiet");
    pair_same_nodes(&p, s[0].sharp, s[1].sharp, sizeof(un_vec3), "sharp");
    pair_same_tets(&p, s[0].d_tet, s[1].d_tet, sizeof(un_vec3), "velocities");
    pair_same_tets(&p, s[0].u_tet, s[1].u_tet, sizeof(un_vec3), "calmed velocities");
    int64_t quiet = 0;
    for (int32_t n = 0; n < p.mesh.node_count; n++) quiet += s[1].quiet[n] > 0;
    assert_true(quiet > p.mesh.node_count / 20 && quiet < p.mesh.node_count);
    for (int i = 0; i < 2; i++) project(&s[i]);
    pair_same_nodes(&p, s[0].p, s[1].p, sizeof(double), "pressure");
    pair_same_tets(&p, s[0].known_tet, s[1].known_tet, 1, "known");
    pair_same_tets(&p, s[0].u_tet, s[1].u_tet, sizeof(un_vec3), "projected velocities");
    for (int i = 0; i < 2; i++) after_pressure(&s[i]);
    assert_true(s[0].rate == s[1].rate && s[1].rate > 0);
    pair_same_tets(&p, s[0].changed, s[1].changed, 1, "changed");
    pair_same_nodes(&p, s[0].known, s[1].known, 1, "known");
    pair_same_nodes(&p, s[0].u, s[1].u, sizeof(un_vec3), "velocities of nodes");
    for (int i = 0; i < 2; i++) extend(&s[i]);
    pair_same_nodes(&p, s[0].u, s[1].u, sizeof(un_vec3), "velocities at walls");
    pair_same_nodes(&p, s[0].d, s[1].d, sizeof(un_vec3), "changes at walls");
    pair_same_tets(&p, s[0].u_tet, s[1].u_tet, sizeof(un_vec3), "last velocities");
    pair_same_tets(&p, s[0].d_tet, s[1].d_tet, sizeof(un_vec3), "last changes");
    side_free(&s[0]);
    side_free(&s[1]);
    pair_empty(&p, &m);
    pair_free(&p);
    tank_free(&here);
    tank_free(&there);
}

static void are_those_of_one_rank(void **state)
{
    (void)state;
    static const check_tree_def trees[] = {{{1, 1, 1}, 4, 32, 300, 1, false},
                                           {{0.7, 1, 0.4}, 4, 64, 1000, 0, true},
                                           {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false}};
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < 4; i++) moves(ctx, alone, &trees[i % 3], i % CUT_COUNT, i < 3);
    check_context_end(alone);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_those_of_one_rank)};
    group_run(tests);
}
