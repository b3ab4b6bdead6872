/* The level set on tets over ranks, and what is told by it: distances, thick liquid, volumes and
 * marks of particles are those of one rank, bit by bit. */
#include "surface/surface.h"
#include "transfer/transfer.h"

#include "mesh/tank.h"

#include "pair_tets.h"

static const check_tree_def trees[] = {{{1, 1, 1}, 4, 16, 250, 1, false},
                                       {{0.7, 1, 0.4}, 4, 32, 400, 0, true},
                                       {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false}};
#define TREES ((int)(sizeof trees / sizeof *trees))
/* Cells beside ones of an eighth of their size. */
static const check_tree_def fine = {{1, 1, 1}, 4, 64, 1500, 0, false};
static const check_tree_def shell = {{1, 1, 1}, 2, 64, 3000, 0, true};

/* A ramp, and a ball that is half under water. */
static void make_tank(tank *t, un_context *ctx, const check_tree_def *def, bool solids)
{
    un_vec3 s = def->size;
    tank_begin_in(t, ctx, s, def->finest);
    if (solids) {
        tank_solid(t, tank_plane(t, un_v3(0.4 * s.x, 0, 0), un_v3(0.7, 0.7, 0.14)), un_v3(0, 0, 0));
        double wide = 3.3 * fmax(fmax(s.x, s.y), s.z) / def->finest;
        tank_solid(t, tank_sphere(t, un_v3(0.7 * s.x, 0.45 * s.y, 0.5 * s.z), wide),
                   un_v3(0, 0, 0));
    }
    tank_build_exact(t);
}

/* Water with waves, under a drop. */
static double level_at(un_vec3 x, un_vec3 size)
{
    double h = 0.45 * size.y, wave = 0.08 * size.y * sin(9 * x.x / size.x) * cos(7 * x.z / size.z);
    un_vec3 drop = un_sub(x, un_v3(0.5 * size.x, 0.8 * size.y, 0.5 * size.z));
    return fmin(x.y - h - wave, un_length(drop) - 0.12 * size.y);
}

static double random_at(un_vec3 x, uint64_t stream)
{
    return un_random((uint64_t)(x.x * 1e6) + 1048583 * (uint64_t)(x.y * 1e6) +
                         1000003 * (uint64_t)(x.z * 1e6),
                     stream);
}

static bool is_own(const un_tets *mesh, int64_t n)
{
    un_part own = un_tets_own_nodes(mesh);
    return n >= own.begin && n < own.end;
}

/* ---- the level set, and what is told by it ---- */

typedef struct fields {
    un_context *ctx;
    un_arena *arena;
    un_tets *mesh;
    un_tet_walls walls;
    float *volume, *phi, *colour;
    uint8_t *thick;
    double liquid;
    int64_t wet;
} fields;

/* Particles' volumes: uneven, with gaps and bubbles. Right at own nodes only. */
static void make_volumes(fields *f, un_vec3 size)
{
    const un_tets *mesh = f->mesh;
    size_t nodes = (size_t)mesh->node_count + 1;
    f->volume = malloc(nodes * sizeof *f->volume);
    f->phi = malloc(nodes * sizeof *f->phi);
    f->colour = malloc(nodes * sizeof *f->colour);
    for (int32_t n = 0; n < mesh->node_count; n++) {
        un_vec3 x = mesh->x[n];
        double h = un_octree_size(mesh->tree, mesh->node_level[n]), roll = random_at(x, 7);
        double c = un_clamp(0.5 - level_at(x, size) / (1.3 * h), 0, 1) * (0.7 + 0.6 * roll);
        if (random_at(x, 8) < 0.05) c = 0.3 * roll;
        f->volume[n] = is_own(mesh, n) ? (float)(c * f->walls.node_open[n]) : 1e3f;
    }
}

static void find_level_set(fields *f, const bool *open_sides)
{
    un_tet_level_set def = {.phi = f->phi,
                            .colour = f->colour,
                            .volume = f->volume,
                            .mesh = f->mesh,
                            .walls = &f->walls,
                            .open_sides = open_sides};
    check_ok(f->ctx, un_surface_level_set_tets(f->ctx, f->arena, &def));
    check_ok(f->ctx,
             un_surface_thick_tets(f->ctx, f->arena, &f->thick, f->phi, f->mesh, &f->walls));
    f->liquid = un_tets_liquid_volume(f->ctx, f->phi, f->mesh, f->walls.open, f->thick);
    f->wet = un_tets_wet_count(f->ctx, f->phi, f->mesh);
}

static void make_fields(fields *f, un_context *ctx, un_arena *arena, un_tets *mesh,
                        const un_walls *walls, un_vec3 size, const bool *open_sides)
{
    *f = (fields){.ctx = ctx, .arena = arena, .mesh = mesh};
    un_tet_walls_init(ctx, &f->walls, walls);
    check_ok(ctx, un_tet_walls_sample(&f->walls, arena, mesh));
    un_arena_reset(arena);
    make_volumes(f, size);
    find_level_set(f, open_sides);
}

static void free_fields(fields *f)
{
    un_tet_walls_free(&f->walls);
    free(f->volume);
    free(f->phi);
    free(f->colour);
}

/* ---- particles ---- */

/* Particles anywhere, sorted by tet: all, or a rank's own, and others in whole groups. */
static void make_particles(un_context *ctx, un_markers *m, int32_t count)
{
    un_markers_init(ctx, m);
    m->particles.sized = true;
    check_ok(ctx, un_particles_reserve(ctx, &m->particles, count + 1));
    m->particles.count = count;
}

static void scatter(const un_tets *mesh, un_particles *p)
{
    un_vec3 size = mesh->tree->size;
    memset(p->fall, 0, (size_t)p->count);
    for (int32_t q = 0; q < p->count; q++) {
        uint64_t k = (uint64_t)q;
        double r = 1e-3 + 0.02 * un_random(k, 4);
        un_particle_set_position(
            p, q,
            un_v3(size.x * un_random(k, 1), size.y * un_random(k, 2), size.z * un_random(k, 3)));
        un_particle_set_velocity(p, q, un_v3(un_random(k, 5), 0, 0));
        p->volume[q] = (float)(8 * r * r * r);
        p->size[q] = 1;
        p->flags[q] = q % 3 == 0 ? UN_PARTICLE_LANDED : 0;
    }
}

/* This rank's part of them: those in its own tets. */
static void take_own(const pair *p, un_markers *mine, un_particle_share *share,
                     const un_markers *all)
{
    const un_tet_share *s = &p->s.part;
    int32_t begin = all->bins.begin[s->tets.begin], end = all->bins.begin[s->tets.end];
    int32_t first = begin / UN_GROUP * UN_GROUP;
    make_particles(p->s.ctx, mine, end - first);
    *share = (un_particle_share){.ctx = p->s.ctx, .begin = begin - first};
    share->own = un_ranks_range(p->s.ctx, end - begin);
    assert_int_equal(share->own.begin, begin);
    const un_particles *a = &all->particles;
    un_particles *b = &mine->particles;
    mine->bins.tet = un_alloc(p->s.ctx, (size_t)b->count + 1, sizeof *mine->bins.tet);
    for (int32_t q = 0; q < b->count; q++) {
        un_particle_set_position(b, q, un_particle_position(a, first + q));
        un_particle_set_velocity(b, q, un_particle_velocity(a, first + q));
        b->volume[q] = a->volume[first + q];
        b->flags[q] = a->flags[first + q];
        b->fall[q] = 0;
        b->size[q] = 1;
        int64_t t = all->bins.tet[first + q] - s->tets.begin + s->tet_begin;
        mine->bins.tet[q] = first + q < begin ? 0 : (int32_t)t;
    }
    check_ok(p->s.ctx, un_markers_group(p->s.ctx, mine));
    mine->share = share;
}

static double mark(const fields *f, un_markers *m)
{
    un_cling cling = {.tension = 1e-4, .gravity = 9.81, .h = f->mesh->tree->h};
    return un_transfer_mark(f->ctx, m, f->mesh, f->phi, f->walls.phi, f->thick, &cling);
}

static void compare_marks(pair *p, const fields *mine, const fields *all)
{
    un_markers here, there;
    un_particle_share share;
    make_particles(p->alone, &there, 3000);
    scatter(&p->mesh, &there.particles);
    check_ok(p->alone, un_markers_sort(p->alone, &p->arena, &there, &p->mesh));
    take_own(p, &here, &share, &there);
    double inside = mark(all, &there);
    assert_true(mark(mine, &here) == inside);
    assert_true(inside > 0);
    assert_int_equal(here.ballistic, there.ballistic);
    assert_in_range(there.ballistic, 100, 2900);
    for (int64_t q = share.own.begin; q < share.own.end; q++) {
        int64_t k = q - share.own.begin + share.begin;
        assert_int_equal(here.particles.flags[k], there.particles.flags[q]);
        assert_memory_equal(&here.depth[k], &there.depth[q], sizeof *here.depth);
        assert_memory_equal(&here.wall[k], &there.wall[q], sizeof *here.wall);
        for (int a = 0; a < 3; a++)
            assert_memory_equal(&here.normal[a][k], &there.normal[a][q], sizeof **here.normal);
    }
    un_markers_free(p->s.ctx, &here);
    un_markers_free(p->alone, &there);
}

/* ---- all of it ---- */

static void compare(const pair *p, const fields *mine, const fields *all)
{
    pair_same_nodes(p, mine->phi, all->phi, sizeof *all->phi, "phi");
    pair_same_nodes(p, mine->colour, all->colour, sizeof *all->colour, "colour");
    pair_same_tets(p, mine->thick, all->thick, 1, "thick");
    assert_true(mine->liquid == all->liquid);
    assert_true(all->liquid > 0);
    assert_int_equal(mine->wet, all->wet);
}

static void is_that_of_one_rank(void **state)
{
    (void)state;
    static const bool open_sides[2][6] = {{false}, {true, false, false, false, true, false}};
    un_context *ctx = group_context(), *alone = check_context();
    for (int i = 0; i < 4; i++) {
        const check_tree_def *def = &trees[i % TREES];
        pair p;
        tank t;
        fields mine, all;
        make_tank(&t, alone, def, i != 1);
        pair_init(&p, ctx, alone, def);
        pair_build(&p, def, 300, i % CUT_COUNT);
        make_fields(&all, alone, &p.arena, &p.mesh, t.walls, def->size, open_sides[i / 2]);
        make_fields(&mine, ctx, &p.s.arena, &p.s.mesh, t.walls, def->size, open_sides[i / 2]);
        compare(&p, &mine, &all);
        compare_marks(&p, &mine, &all);
        free_fields(&mine);
        free_fields(&all);
        pair_free(&p);
        tank_free(&t);
    }
    check_context_end(alone);
    check_context_end(ctx);
}

/* ---- distances alone ---- */

/* Surfaces that go through nodes, so that vertices merge; rough ones, on which walks go from rank
 * to rank; no surface at all. */
enum { ROUGH = 3, BUMPS, NOWHERE };

static float surface_at(un_vec3 x, un_vec3 size, int kind)
{
    double plane = x.y - 0.5 * size.y, ball = un_length(un_sub(x, un_scale(size, 0.5)));
    if (kind == 0) return (float)plane;
    if (kind == 1) return (float)fmin(plane, x.x - 0.25 * size.x);
    if (kind == 2) return (float)(ball - 0.3 * size.z);
    if (kind == NOWHERE) return 1;
    if (kind == BUMPS) return (float)(ball - 0.3 - 0.03 * sin(23 * x.x) * sin(19 * x.y + 17 * x.z));
    /* in sixteenths, most of them less than a cell: many are 0 */
    return (float)(round(16 * (plane / size.y + 0.3 * random_at(x, 9) - 0.15)) / 16);
}

static float *make_distances(un_context *ctx, un_arena *arena, const un_tets *mesh, un_vec3 size,
                             int kind)
{
    const un_tet_share *share = mesh->share;
    float *phi = malloc(((size_t)mesh->node_count + 1) * sizeof *phi);
    for (int32_t n = 0; n < mesh->node_count; n++)
        phi[n] =
            !share || is_own(mesh, n) ? surface_at(mesh->x[n], size, kind) : (float)(n % 2) - 0.5f;
    for (int32_t k = 0; share && k < share->ghost_count; k++)
        phi[share->ghost[k]] = surface_at(mesh->x[share->ghost[k]], size, kind);
    check_ok(ctx, un_tets_redistance(ctx, arena, phi, mesh));
    return phi;
}

static void distances_are_those_of_one_rank(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *alone = check_context();
    for (int kind = 0; kind <= NOWHERE; kind++) {
        const check_tree_def *def = kind == ROUGH   ? &fine
                                    : kind == BUMPS ? &shell
                                                    : &trees[kind % TREES];
        pair p;
        pair_init(&p, ctx, alone, def);
        pair_build(&p, def, 500, (kind + 1) % CUT_COUNT);
        float *all = make_distances(alone, &p.arena, &p.mesh, def->size, kind);
        float *mine = make_distances(ctx, &p.s.arena, &p.s.mesh, def->size, kind);
        pair_same_nodes(&p, mine, all, sizeof *all, "distance");
        assert_int_equal(isfinite(all[0]), kind != NOWHERE);
        free(mine);
        free(all);
        pair_free(&p);
    }
    check_context_end(alone);
    check_context_end(ctx);
}

/* An allocation that fails on one rank fails on all, and none waits. */
static void memory_fails_on_all(void **state)
{
    (void)state;
    const check_tree_def *def = &trees[1];
    un_context *group_ctx = group_context(), *alone = check_context();
    int failures = 0;
    bool done = false;
    pair p;
    pair_init(&p, group_ctx, alone, def);
    pair_build(&p, def, 900, CUT_BY_WORK);
    float *phi = malloc(((size_t)p.s.mesh.node_count + 1) * sizeof *phi);
    for (int64_t n = 1; !done; n++) {
        un_context *ctx = group_context_failing(1, n, un_ranks_count(group) - 1);
        un_arena arena;
        un_arena_init(&arena, ctx);
        for (int32_t i = 0; i < p.s.mesh.node_count; i++)
            phi[i] = surface_at(p.s.mesh.x[i], def->size, 2);
        un_status status = un_tets_redistance(ctx, &arena, phi, &p.s.mesh);
        done = status == UN_OK;
        if (!done) assert_int_equal(status, UN_ERROR_MEMORY);
        failures += !done;
        un_arena_free(&arena);
        check_context_end(ctx);
    }
    assert_true(failures >= 5); /* the arena, and lists of all ranks */
    free(phi);
    pair_free(&p);
    check_context_end(alone);
    check_context_end(group_ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_that_of_one_rank),
                                       cmocka_unit_test(distances_are_those_of_one_rank),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
