/* Particles of `tet` over ranks: those of a rank are a range of one rank's, in the same order, with
 * copies in whole groups; what nodes gather, what particles take from tets and where they go are as
 * on one rank, bit by bit; and all that particles may reach is there. */
#include "advect/advect.h"
#include "transfer/transfer.h"

#include "pair_tank.h"
#include "pair_tets.h"

#define COUNT 6000

typedef struct markers_pair {
    un_markers all, mine;
    un_particle_share share;
} markers_pair;

static un_vec3 velocity_at(un_vec3 x)
{
    return un_v3(3 * sin(50 * x.x + 3 * x.y), 2 * cos(40 * x.y + x.z), 4 * sin(30 * x.z) - 1);
}

/* Small ones in small heaps far apart: groups that follow the curve from heap to heap are wide. */
static bool in_heaps;
#define HEAP 43

/* Of many sizes, some larger than their cells, some calm, some flying. */
static void fill(pair *p, un_particles *to, un_context *ctx)
{
    un_vec3 size = p->tree.size;
    to->sized = true;
    check_ok(ctx, un_particles_reserve(ctx, to, COUNT));
    to->count = COUNT;
    to->lead = un_v3(0, -0.01, 0);
    for (int32_t q = 0; q < COUNT; q++) {
        uint64_t k = (uint64_t)q;
        un_vec3 x = {size.x * un_random(k, 1), size.y * un_random(k, 2), size.z * un_random(k, 3)};
        uint64_t heap = (uint64_t)(q / HEAP);
        un_vec3 of = {size.x * un_random(heap, 6), size.y * un_random(heap, 7),
                      size.z * un_random(heap, 8)};
        if (in_heaps) x = un_mad(un_scale(of, 0.99), x, 0.01);
        un_tets_place place;
        un_tets_locate(&p->mesh, x, &place);
        double edge = un_tets_size(&p->mesh, place.tet) * (0.35 + 0.3 * un_random(k, 4));
        if (q % 23 == 0) edge *= 3;
        if (q % 101 == 0) edge *= 3;
        if (in_heaps) edge = 0.003 * fmin(size.x, fmin(size.y, size.z));
        un_particle_set_position(to, q, x);
        un_particle_set_velocity(to, q, velocity_at(x));
        to->volume[q] = (float)(edge * edge * edge);
        to->flags[q] = q % 3 == 0 ? UN_PARTICLE_CALM : q % 17 == 0 ? UN_PARTICLE_BALLISTIC : 0;
        to->fall[q] = (uint8_t)(q % 129);
        to->size[q] = (float)(q + 1);
    }
}

/* Each rank keeps a range of what all have. */
static void share_out(un_particle_share *s, un_particles *p)
{
    un_part own = un_ranks_even(s->ctx, p->count);
    for (int64_t q = own.begin; q < own.end && own.begin > 0; q++)
        un_particle_copy(p, q - own.begin, q);
    p->count = (int32_t)(own.end - own.begin);
    s->own = un_ranks_range(s->ctx, p->count);
    check_ok(s->ctx, un_particle_share_number(s, p));
}

static void markers_init(markers_pair *m, pair *p)
{
    un_context *ctx = p->s.ctx;
    *m = (markers_pair){.share = {.ctx = ctx}};
    un_markers_init(p->alone, &m->all);
    un_markers_init(ctx, &m->mine);
    fill(p, &m->all.particles, p->alone);
    fill(p, &m->mine.particles, ctx);
    m->mine.share = &m->share;
    share_out(&m->share, &m->mine.particles);
}

static void markers_free(markers_pair *m, pair *p)
{
    un_particle_share_free(&m->share);
    un_markers_free(p->alone, &m->all);
    un_markers_free(p->s.ctx, &m->mine);
}

static void compare_particle(const un_particles *a, int64_t q, const un_particles *b, int64_t n)
{
    for (int k = 0; k < 3; k++) {
        assert_true(a->x[k][q] == b->x[k][n]);
        assert_true(a->v[k][q] == b->v[k][n]);
    }
    assert_true(a->volume[q] == b->volume[n]);
    assert_int_equal(a->flags[q], b->flags[n]);
    assert_int_equal(a->fall[q], b->fall[n]);
    assert_true(a->size[q] == b->size[n]);
}

/* copies: those are compared, too. */
static void compare_particles(const markers_pair *m, bool copies)
{
    const un_particle_share *s = &m->share;
    un_part part = copies ? (un_part){0, m->mine.particles.count} : un_markers_own(&m->mine);
    assert_int_equal(s->own.total, m->all.particles.count);
    if (s->own.begin < s->own.end) assert_int_equal(un_particle_number(s, s->begin), s->own.begin);
    for (int64_t q = part.begin; q < part.end; q++)
        compare_particle(&m->mine.particles, q, &m->all.particles, un_particle_number(s, q));
    for (int64_t g = 1; g < (m->mine.particles.count + 7) / 8; g++)
        assert_true(s->group[g] > s->group[g - 1]);
}

/* A block of groups with an own particle is there, and all groups that its box reaches, or if it is
 * wide its own particles. */
static void check_reach(const markers_pair *m)
{
    const un_particle_share *s = &m->share;
    const un_groups *groups = &m->all.groups;
    uint8_t *here = calloc((size_t)groups->group_count + 8, 1);
    for (int64_t g = 0; g < (m->mine.particles.count + 7) / 8; g++) here[s->group[g]] = 1;
    for (int64_t b = s->own.begin / 64; b < (s->own.end + 63) / 64 && s->own.begin < s->own.end;
         b++) {
        int32_t begin = (int32_t)(8 * b), near[COUNT];
        int32_t end = (int32_t)un_min64(begin + 8, groups->group_count);
        un_box3 box[UN_CORRECT_BOXES];
        float reach[UN_CORRECT_BOXES];
        int32_t boxes = un_correct_boxes(groups, begin, end, box, reach);
        for (int32_t g = begin; g < end; g++) assert_true(here[g]);
        for (int64_t q = un_max64(64 * b, s->own.begin);
             boxes > 1 && q < un_min64(64 * b + 64, s->own.end); q++) {
            const un_particles *all = &m->all.particles;
            for (int64_t j = 0; j < all->count; j++) {
                un_vec3 to = un_sub(un_particle_position(all, j), un_particle_position(all, q));
                bool touches = un_length(to) < (double)(m->all.radius[q] + m->all.radius[j]);
                if (touches) assert_true(here[j / UN_GROUP]);
            }
        }
        int32_t count =
            boxes > 1 ? 0 : un_groups_near(groups, box[0], (double)reach[0], 1, near, COUNT);
        for (int32_t k = 0; k < count; k++) assert_true(here[near[k]]);
    }
    free(here);
}

/* ---- what resizing asks for ---- */

/* Every so many want to split. */
static void set_sizes(un_particles *p, const un_particle_share *s)
{
    for (int64_t q = 0; q < p->count; q++) {
        double edge = cbrt(p->volume[q]);
        p->size[q] = (float)(un_particle_number(s, q) % 37 == 5 ? edge : 2 * edge);
    }
}

/* All groups that those in need reach are there, but fewer than if all asked. */
static void check_asked(pair *p, markers_pair *m)
{
    un_particle_share *s = &m->share;
    un_resize_def def = {.volume_min = 1e-30, .volume_max = 1e30};
    const un_particles *all = &m->all.particles;
    set_sizes(&m->all.particles, NULL);
    set_sizes(&m->mine.particles, s);
    check_ok(p->s.ctx, un_markers_fetch_near(p->s.ctx, &p->s.arena, &m->mine, NULL, &def));
    compare_particles(m, true);
    uint8_t *here = calloc((size_t)m->all.groups.group_count + 8, 1);
    uint8_t *asks = calloc((size_t)all->count + 1, 1);
    un_particles_find_resized(p->alone, asks, all, &def);
    for (int64_t g = 0; g < (m->mine.particles.count + 7) / 8; g++) here[s->group[g]] = 1;
    for (int64_t i = s->own.begin; i < s->own.end; i++)
        for (int64_t j = 0; asks[i] && j < all->count; j++) {
            double d =
                un_length(un_sub(un_particle_position(all, i), un_particle_position(all, j)));
            double r = (double)m->all.radius[i] + (double)m->all.radius[j];
            if (d < UN_RESIZE_FACTOR * r) assert_true(here[j / UN_GROUP]);
        }
    free(here);
    free(asks);
    int64_t few = m->mine.particles.count - (s->own.end - s->own.begin);
    un_layered kept = {m->mine.radius, sizeof(float)};
    un_copied radius = {&m->mine.radius, &m->mine.capacity[0], sizeof(float), "radius"};
    un_markers_drop_copies(&m->mine, &kept, 1);
    check_ok(p->s.ctx,
             un_markers_fetch(p->s.ctx, &p->s.arena, &m->mine, NULL, UN_RESIZE_FACTOR, &radius, 1));
    assert_true(few <= m->mine.particles.count - (s->own.end - s->own.begin));
}

/* ---- what nodes gather ---- */

typedef struct nodal {
    float *volume;
    un_vec3 *u, *tet;
    uint8_t *known;
} nodal;

static nodal make_nodal(const un_tets *mesh)
{
    size_t nodes = (size_t)mesh->node_count + 1, tets = (size_t)mesh->tet_count + 1;
    return (nodal){calloc(nodes, sizeof(float)), calloc(nodes, sizeof(un_vec3)),
                   calloc(tets, sizeof(un_vec3)), calloc(nodes, 1)};
}
static void free_nodal(nodal *n)
{
    free(n->volume), free(n->u), free(n->tet), free(n->known);
}

static void gather(pair *p, markers_pair *m, nodal *all, nodal *mine)
{
    check_ok(p->alone, un_transfer_to_nodes(p->alone, &p->arena, all->volume, all->u, all->known,
                                            &p->mesh, &m->all.bins, &m->all.particles));
    check_ok(p->s.ctx,
             un_transfer_to_nodes(p->s.ctx, &p->s.arena, mine->volume, mine->u, mine->known,
                                  &p->s.mesh, &m->mine.bins, &m->mine.particles));
    un_arena_reset(&p->arena);
    un_arena_reset(&p->s.arena);
    pair_same_nodes(p, mine->volume, all->volume, sizeof *all->volume, "volume");
    pair_same_nodes(p, mine->known, all->known, 1, "known");
    pair_same_nodes(p, mine->u, all->u, sizeof *all->u, "velocity");
    un_transfer_nodes_to_tets(p->alone, all->tet, all->u, all->known, &p->mesh, NULL);
    un_transfer_nodes_to_tets(p->s.ctx, mine->tet, mine->u, mine->known, &p->s.mesh, NULL);
}

/* ---- what particles take, and where they go ---- */

static void move(un_context *ctx, un_arena *arena, un_markers *m, const un_tets *mesh,
                 const nodal *n, const tank *t, const float *wall)
{
    un_tet_field u = {n->tet, n->u};
    un_flip flip = {
        .dt = 0.02, .gravity = {0, -9.81, 0}, .pic = 3, .pic_quiet = 10, .quiet_speed = 0.1};
    check_ok(ctx, un_transfer_tets_to_particles(ctx, arena, &m->particles, &m->bins, mesh, &u, &u,
                                                n->u, &flip, 0.25 * mesh->tree->h));
    un_arena_reset(arena);
    check_ok(ctx, un_advect_tets(ctx, arena, &m->particles, NULL, &m->bins, mesh, &u, wall,
                                 t->walls, un_v3(0, -9.81, 0), 0.05));
    un_arena_reset(arena);
}

static void is_that_of_one_rank(void **state)
{
    (void)state;
    static const check_tree_def trees[] = {{{1, 1, 1}, 4, 32, 3000, 1, false},
                                           {{0.7, 1, 0.4}, 4, 32, 2000, 0, true},
                                           {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false}};
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < 9; i++) {
        pair p;
        markers_pair m;
        tank here, there;
        in_heaps = i >= 6;
        un_tet_walls walls, walls_all;
        pair_init(&p, ctx, alone, &trees[i % 3]);
        pair_build(&p, &trees[i % 3], 300, i % CUT_COUNT);
        pair_tank(&there, alone, &trees[i % 3], i >= 3);
        pair_tank(&here, ctx, &trees[i % 3], i >= 3);
        un_tet_walls_init(alone, &walls_all, there.walls);
        un_tet_walls_init(ctx, &walls, here.walls);
        check_ok(alone, un_tet_walls_sample(&walls_all, &p.arena, &p.mesh));
        check_ok(ctx, un_tet_walls_sample(&walls, &p.s.arena, &p.s.mesh));
        un_arena_reset(&p.arena);
        un_arena_reset(&p.s.arena);
        markers_init(&m, &p);
        check_ok(alone, un_markers_sort(alone, &p.arena, &m.all, &p.mesh));
        check_ok(ctx, un_markers_sort_ranks(ctx, &p.s.arena, &m.mine, &p.s.mesh, &p.s.leaves));
        compare_particles(&m, true);
        check_reach(&m);
        nodal all = make_nodal(&p.mesh), mine = make_nodal(&p.s.mesh);
        gather(&p, &m, &all, &mine);
        move(alone, &p.arena, &m.all, &p.mesh, &all, &there, walls_all.phi);
        move(ctx, &p.s.arena, &m.mine, &p.s.mesh, &mine, &here, walls.phi);
        compare_particles(&m, false);
        un_markers_drop_copies(&m.mine, &(un_layered){m.mine.radius, sizeof(float)}, 1);
        un_copied radius = {&m.mine.radius, &m.mine.capacity[0], sizeof(float), "radius"};
        check_ok(ctx, un_markers_fetch(ctx, &p.s.arena, &m.mine, NULL, 1, &radius, 1));
        check_ok(alone, un_markers_regroup(alone, &m.all));
        compare_particles(&m, true);
        check_reach(&m);
        for (int64_t q = 0; q < m.mine.particles.count; q++)
            assert_true(m.mine.radius[q] == m.all.radius[un_particle_number(&m.share, q)]);
        check_asked(&p, &m);
        free_nodal(&all);
        free_nodal(&mine);
        markers_free(&m, &p);
        un_tet_walls_free(&walls);
        un_tet_walls_free(&walls_all);
        tank_free(&here);
        tank_free(&there);
        pair_free(&p);
    }
    check_context_end(alone);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_that_of_one_rank)};
    group_run(tests);
}
