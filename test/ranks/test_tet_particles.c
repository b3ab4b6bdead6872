/* What particles of many sizes do among themselves, over ranks: every rank also does it alone with
 * all of them, and finds the same bits. */
#include "particles/swarm.h"

#include "group.h"

/* ---- the tree that they ask for ---- */

/* From a fine surface to coarse liquid, with drops of spray and some outside. */
static void make_askers(un_context *ctx, un_particles *p, int32_t count, bool flat)
{
    p->flat = flat;
    check_ok(ctx, un_particles_reserve(ctx, p, count));
    p->count = count;
    for (int32_t i = 0; i < count; i++) {
        uint64_t q = (uint64_t)i;
        un_vec3 x = un_v3(1.1 * un_random(q, 1) - 0.05, un_random(q, 2), un_random(q, 3));
        if (flat) x.z = 0;
        un_particle_set_position(p, i, x);
        double edge = 0.02 * exp2(4 * fabs(x.y - 0.5) * un_random(q, 4));
        p->volume[i] = (float)(flat ? edge * edge : edge * edge * edge);
        p->flags[i] = i % 7 == 0 ? UN_PARTICLE_BALLISTIC : 0;
        if (i % 3 == 0) p->flags[i] |= UN_PARTICLE_CALM | UN_PARTICLE_SURFACE;
    }
}

/* Those of this rank, from all over. */
static void deal(un_particles *mine, un_context *ctx, const un_particles *all)
{
    int32_t rank = un_rank(ctx), ranks = un_rank_count(ctx);
    mine->flat = all->flat;
    check_ok(ctx, un_particles_reserve(ctx, mine, all->count + 1));
    for (int32_t i = rank; i < all->count; i += ranks) {
        un_particle_set_position(mine, mine->count, un_particle_position(all, i));
        mine->volume[mine->count] = all->volume[i];
        mine->flags[mine->count++] = all->flags[i];
    }
}

static void tree_is_that_of_one_rank(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *alone = check_context();
    static const struct {
        un_vec3 size;
        int32_t count;
    } cases[] = {{{1, 1, 1}, 3000}, {{1, 1, 1}, 2}, {{1, 1, 0}, 500}, {{1, 1, 1}, 0}};
    for (int i = 0; i < 4; i++) {
        un_arena arena, arena_alone;
        un_octree tree, serial;
        un_tree_share part = {.ctx = ctx};
        un_particles all = {0}, mine = {0};
        un_arena_init(&arena, ctx);
        un_arena_init(&arena_alone, alone);
        un_octree_init(ctx, &tree, cases[i].size, 4, 64);
        un_octree_init(alone, &serial, cases[i].size, 4, 64);
        make_askers(alone, &all, cases[i].count, cases[i].size.z == 0);
        deal(&mine, ctx, &all);
        check_ok(alone, un_particles_build_tree(alone, &arena_alone, &serial, &all));
        check_ok(ctx, un_particles_build_tree_ranks(ctx, &arena, &tree, &part, &mine));
        int64_t own = part.leaves.end - part.leaves.begin;
        assert_int_equal(part.leaves.total, serial.leaf_count);
        assert_int_equal(own, part.end - part.begin);
        for (int64_t c = 0; c < own; c++) {
            assert_true(tree.key[part.begin + c] == serial.key[part.leaves.begin + c]);
            assert_int_equal(tree.level[part.begin + c], serial.level[part.leaves.begin + c]);
        }
        if (i == 0) { /* nobody has more than half as much again as its share */
            double most = un_ranks_max(ctx, (double)own) * un_rank_count(ctx);
            check_below(most, 1.5 * serial.leaf_count);
        }
        un_tree_share_free(&part);
        un_octree_free(&tree);
        un_octree_free(&serial);
        un_particles_free(ctx, &mine);
        un_particles_free(alone, &all);
        un_arena_free(&arena);
        un_arena_free(&arena_alone);
    }
    check_context_end(alone);
    check_context_end(ctx);
}

/* ---- a tank of which each rank has a part ---- */

/* Arrays that go with the particles, by particle. */
enum { RADIUS, PHI, NORMAL_X, NORMAL_Y, NORMAL_Z, WALL, GAP, AXIS_X, AXIS_Y, AXIS_Z, EXTRAS };

typedef struct both {
    swarm all;    /* on one rank */
    un_sheets of; /* its sheets */
    un_context *ctx;
    un_arena arena;
    un_markers mine;
    un_particle_share share;
    un_sheets sheets;
} both;

static void find_extras(both *b, bool mine, float **extra[EXTRAS])
{
    un_sheets *sheets = mine ? &b->sheets : &b->of;
    float **list[EXTRAS] = {mine ? &b->mine.radius : &b->all.radius,
                            mine ? &b->mine.depth : &b->all.phi,
                            mine ? &b->mine.normal[0] : &b->all.normal[0],
                            mine ? &b->mine.normal[1] : &b->all.normal[1],
                            mine ? &b->mine.normal[2] : &b->all.normal[2],
                            mine ? &b->mine.wall : &b->all.wall,
                            &sheets->gap,
                            &sheets->axis[0],
                            &sheets->axis[1],
                            &sheets->axis[2]};
    memcpy(extra, list, sizeof list);
}

static double level_at(un_vec3 x)
{
    return fmax(x.y - 0.8 - 0.05 * sin(7 * x.x), 0.15 - un_length(un_sub(x, un_v3(0.2, 0.3, 0.8))));
}

static double even(un_vec3 x)
{
    (void)x;
    return 1.0 / 8;
}

/* Particles of all kinds around a ball and a plate. */
static void both_begin(both *b)
{
    swarm *s = &b->all;
    memset(b, 0, sizeof *b);
    swarm_begin(s, CHECK_THREADS);
    tank_solid(&s->tank, tank_sphere(&s->tank, un_v3(0.5, 0.5, 0.5), 0.2), un_v3(0, 0, 0));
    tank_solid(&s->tank, tank_box(&s->tank, un_v3(0.2, -1, -1), un_v3(0.201, 2, 2)),
               un_v3(0, 0, 0));
    tank_build(&s->tank);
    s->p.mixed = true;
    swarm_seed(s, 3, even, tank_box(&s->tank, un_v3(-1, -1, -1), un_v3(2, 2, 2)));
    for (int32_t i = 0; i < s->p.count; i++) {
        uint64_t q = (uint64_t)i;
        for (uint64_t a = 0; a < 3; a++) s->p.v[a][i] = un_random(q, 40 + a) - 0.5;
        s->p.density[i] = (float)(900 + 200 * un_random(q, 43));
        s->p.viscosity[i] = (float)un_random(q, 44);
        s->p.fall[i] = (uint8_t)(200 * un_random(q, 45));
    }
    b->ctx = group_context();
    un_arena_init(&b->arena, b->ctx);
    un_markers_init(b->ctx, &b->mine);
    b->mine.particles.sized = b->mine.particles.mixed = true;
    b->share.ctx = b->ctx;
    b->mine.share = &b->share;
}

static void both_end(both *b)
{
    un_sheets_free(b->all.tank.ctx, &b->of);
    un_sheets_free(b->ctx, &b->sheets);
    un_free(b->ctx, b->share.group);
    un_free(b->ctx, b->share.id);
    un_markers_free(b->ctx, &b->mine);
    un_arena_free(&b->arena);
    check_context_end(b->ctx);
    swarm_end(&b->all);
}

/* Wanted sizes and sheets for a new round, in the order of a curve. */
static void both_want(both *b, uint64_t round)
{
    swarm *s = &b->all;
    un_particles *p = &s->p;
    un_arena_reset(&s->arena);
    swarm_sort(s, 1.0 / 64);
    swarm_look(s, level_at);
    size_t room = (size_t)p->count + 1;
    check_ok(s->tank.ctx, un_array_need(s->tank.ctx, (void **)&b->of.gap, &b->of.capacity[0], room,
                                        sizeof(float)));
    for (int a = 0; a < 3; a++)
        check_ok(s->tank.ctx, un_array_need(s->tank.ctx, (void **)&b->of.axis[a],
                                            &b->of.capacity[1 + a], room, sizeof(float)));
    b->of.any = true;
    for (int32_t i = 0; i < p->count; i++) {
        uint64_t q = (uint64_t)i, stream = 100 * round;
        un_vec3 x = un_particle_position(p, i), axis = un_normalize(swarm_point(q, stream + 9));
        p->size[i] =
            (float)(fmax(1.0 / 16, 0.4 * fabs(x.y - 0.4)) * (0.8 + 0.4 * un_random(q, stream + 1)));
        double roll = un_random(q, stream + 2);
        p->flags[i] = roll < 0.1 ? UN_PARTICLE_BALLISTIC : (uint8_t)((int)(roll * 4) << 5);
        b->of.gap[i] = (float)(roll > 0.97 ? 2.5 * un_random(q, stream + 3) : 0);
        if (roll > 0.985) b->of.gap[i] *= -1;
        b->of.axis[0][i] = (float)axis.x;
        b->of.axis[1][i] = (float)axis.y;
        b->of.axis[2][i] = (float)axis.z;
    }
}

static void copy_particle(un_particles *to, int32_t q, const un_particles *from, int32_t i)
{
    un_particle_set_position(to, q, un_particle_position(from, i));
    un_particle_set_velocity(to, q, un_particle_velocity(from, i));
    to->volume[q] = from->volume[i];
    to->flags[q] = from->flags[i];
    to->fall[q] = from->fall[i];
    to->size[q] = from->size[i];
    to->density[q] = from->density[i];
    to->viscosity[q] = from->viscosity[i];
}

static void is_the_same(const un_particles *a, int32_t q, const un_particles *b, int32_t i)
{
    for (int axis = 0; axis < 3; axis++) {
        assert_memory_equal(&a->x[axis][q], &b->x[axis][i], sizeof(double));
        assert_memory_equal(&a->v[axis][q], &b->v[axis][i], sizeof(double));
    }
    assert_memory_equal(&a->volume[q], &b->volume[i], sizeof(float));
    assert_memory_equal(&a->size[q], &b->size[i], sizeof(float));
    assert_memory_equal(&a->density[q], &b->density[i], sizeof(float));
    assert_memory_equal(&a->viscosity[q], &b->viscosity[i], sizeof(float));
    assert_int_equal(a->flags[q], b->flags[i]);
    assert_int_equal(a->fall[q], b->fall[i]);
}

/* Gives this rank its own particles and copies of the groups that `wanted` names, and all that goes
 * with them. */
static void both_deal(both *b, un_range own, const uint8_t *wanted)
{
    const un_particles *all = &b->all.p;
    un_markers *m = &b->mine;
    un_particle_share *share = &b->share;
    float **from[EXTRAS], **to[EXTRAS];
    int32_t groups = b->all.groups.group_count, count = 0;
    check_ok(b->ctx, un_particles_reserve(b->ctx, &m->particles, all->count + 1));
    m->particles.count = all->count;
    check_ok(b->ctx, un_markers_group(b->ctx, m)); /* room */
    check_ok(b->ctx, un_array_need(b->ctx, (void **)&share->group, &share->capacity_group,
                                   (size_t)groups + 1, sizeof *share->group));
    find_extras(b, false, from);
    find_extras(b, true, to);
    for (int k = GAP; k < EXTRAS; k++)
        check_ok(b->ctx, un_array_need(b->ctx, (void **)to[k], &b->sheets.capacity[k - GAP],
                                       (size_t)all->count + 1, sizeof(float)));
    b->sheets.any = true;
    share->own = own;
    share->begin = 0;
    for (int32_t g = 0, n = 0; g < groups; g++) {
        if (!wanted[g]) continue;
        share->group[n++] = g;
        for (int32_t i = g * UN_GROUP; i < (g + 1) * UN_GROUP && i < all->count; i++, count++) {
            if (i == own.begin) share->begin = count;
            copy_particle(&m->particles, count, all, i);
            for (int k = 0; k < EXTRAS; k++) (*to[k])[count] = (*from[k])[i];
        }
    }
    m->particles.count = count;
    check_ok(b->ctx, un_markers_regroup(b->ctx, m));
}

/* ---- resizing ---- */

/* Own groups, and those with any that own particles ask for. */
static uint8_t *near_groups(const both *b, un_range own, const un_resize_def *def)
{
    const un_particles *p = &b->all.p;
    uint8_t *wanted = calloc((size_t)b->all.groups.group_count + 1, 1);
    uint8_t *asks = calloc((size_t)p->count + 1, 1);
    un_particles_find_resized(b->ctx, asks, p, def);
    for (int32_t i = (int32_t)own.begin; i < own.end; i++) {
        double reach = (double)un_resize_reach(b->all.radius[i], b->of.gap[i]);
        wanted[i / UN_GROUP] = 1;
        if (!asks[i]) continue;
        for (int32_t j = 0; j < p->count; j++) {
            un_vec3 d = un_sub(un_particle_position(p, i), un_particle_position(p, j));
            double far = UN_RESIZE_FACTOR * (reach + (double)b->all.radius[j]);
            if (un_dot(d, d) < far * far) wanted[j / UN_GROUP] = 1;
        }
    }
    free(asks);
    return wanted;
}

static un_resize_def my_resize_def(both *b, uint64_t stream)
{
    un_resize_def def = swarm_resize_def(&b->all, stream);
    def.groups = &b->mine.groups;
    def.radius = b->mine.radius;
    def.phi = b->mine.depth;
    for (int a = 0; a < 3; a++) def.normal[a] = b->mine.normal[a];
    def.sheets = &b->sheets;
    def.share = &b->share;
    return def;
}

static void resizing_is_that_of_one_rank(void **state)
{
    (void)state;
    both b;
    both_begin(&b);
    un_context *alone = b.all.tank.ctx;
    int64_t splits = 0, merges = 0;
    for (uint64_t round = 0; round < 3; round++) {
        un_resize_report report, expected;
        double volume;
        both_want(&b, round);
        un_range own = group_range((int)round % SPREAD_COUNT, b.all.p.count);
        un_resize_def def = swarm_resize_def(&b.all, round);
        def.sheets = &b.of;
        uint8_t *wanted = near_groups(&b, own, &def);
        both_deal(&b, own, wanted);
        un_resize_def mine = my_resize_def(&b, round);
        check_ok(b.ctx, un_markers_volume(b.ctx, &b.mine, &volume));
        assert_true(volume == un_particles_volume(alone, &b.all.p));
        check_ok(alone, un_particles_resize(alone, &b.all.arena, &b.all.p, &def, &expected));
        check_ok(b.ctx, un_particles_resize(b.ctx, &b.arena, &b.mine.particles, &mine, &report));
        un_arena_reset(&b.arena);
        assert_int_equal(report.split_count, expected.split_count);
        assert_int_equal(report.merge_count, expected.merge_count);
        assert_int_equal(b.share.id_total, b.all.p.count);
        assert_int_equal(un_ranks_total(b.ctx, b.mine.particles.count), b.all.p.count);
        for (int32_t q = 0; q < b.mine.particles.count; q++) {
            assert_true(q == 0 || b.share.id[q] > b.share.id[q - 1]);
            is_the_same(&b.mine.particles, q, &b.all.p, (int32_t)b.share.id[q]);
        }
        check_ok(b.ctx, un_markers_volume(b.ctx, &b.mine, &volume));
        assert_true(volume == un_particles_volume(alone, &b.all.p));
        splits += report.split_count;
        merges += report.merge_count;
        free(wanted);
    }
    assert_true(splits > 1000 && merges > 500);
    both_end(&b);
}

/* ---- correction ---- */

/* A third of the particles crowd in one place, more than are gathered at once, and some have the
 * same place as another. */
static void crowd_together(un_particles *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        uint64_t q = (uint64_t)i;
        un_vec3 x = un_mad(un_v3(0.8, 0.2, 0.3), swarm_point(q, 60), 0.05);
        if (i % 3 == 0) un_particle_set_position(p, i, x);
        if (i % 50 == 0 && i > 0) un_particle_set_position(p, i, un_particle_position(p, i - 1));
    }
}

/* The batches that hold own particles and what may touch them. */
static uint8_t *touching_groups(both *b, un_range own)
{
    const un_groups *all = &b->all.groups;
    uint8_t *wanted = calloc((size_t)all->group_count + 1, 1);
    int32_t *list = malloc(((size_t)all->group_count + 1) * sizeof *list);
    b->share.own = own;
    un_part groups = un_correct_groups(&b->share);
    for (int64_t g = groups.begin; g < groups.end; g += UN_CORRECT_BATCH) {
        int32_t first = (int32_t)g, end = (int32_t)un_min64(g + UN_CORRECT_BATCH, groups.end);
        un_box3 box[UN_CORRECT_BOXES];
        float reach[UN_CORRECT_BOXES];
        int32_t count = un_correct_boxes(all, first, end, box, reach);
        memset(wanted + first, 1, (size_t)(end - first));
        for (int32_t n = 0; n < count; n++) {
            int32_t near = un_groups_near(all, box[n], (double)reach[n], 1, list, all->group_count);
            for (int32_t k = 0; k < near; k++) wanted[list[k]] = 1;
        }
    }
    free(list);
    return wanted;
}

static un_correct_def my_correct_def(both *b)
{
    un_correct_def def = swarm_correct_def(&b->all);
    def.groups = &b->mine.groups;
    def.radius = b->mine.radius;
    def.phi = b->mine.depth;
    for (int a = 0; a < 3; a++) def.normal[a] = b->mine.normal[a];
    def.wall = b->mine.wall;
    def.share = &b->share;
    return def;
}

static void correction_is_that_of_one_rank(void **state)
{
    (void)state;
    both b;
    both_begin(&b);
    crowd_together(&b.all.p);
    un_context *alone = b.all.tank.ctx;
    for (uint64_t round = 0; round < 2; round++) {
        both_want(&b, round);
        un_range own = group_range((int)round % SPREAD_COUNT, b.all.p.count);
        uint8_t *wanted = touching_groups(&b, own);
        both_deal(&b, own, wanted);
        un_correct_def def = swarm_correct_def(&b.all), mine = my_correct_def(&b);
        check_ok(b.ctx, un_particles_correct_sized(b.ctx, &b.arena, &b.mine.particles, &mine));
        check_ok(alone, un_particles_correct_sized(alone, &b.all.arena, &b.all.p, &def));
        un_arena_reset(&b.arena);
        for (int64_t i = own.begin; i < own.end; i++)
            is_the_same(&b.mine.particles, (int32_t)(b.share.begin + i - own.begin), &b.all.p,
                        (int32_t)i);
        free(wanted);
    }
    both_end(&b);
}

/* ---- sheets ---- */

/* A sheet along x and z, and a thread across the tank; how far off a particle is. */
static double off_sheet(un_vec3 x)
{
    return fabs(x.y - 0.7 - 0.02 * sin(9 * x.x));
}
static double off_thread(un_vec3 x)
{
    return hypot(x.y - 0.1, x.z - 0.3 * x.x - 0.5);
}

static void roll_out(un_particles *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        un_vec3 x = un_particle_position(p, i);
        if (i % 5 == 0) p->x[1][i] += (0.7 + 0.02 * sin(9 * x.x) - x.y) * 0.98;
        if (i % 31 == 1) un_particle_set_position(p, i, un_v3(x.x, 0.1, 0.3 * x.x + 0.5));
        p->volume[i] *= 0.2f;
    }
}

static void sheets_are_those_of_one_rank(void **state)
{
    (void)state;
    both b;
    both_begin(&b);
    roll_out(&b.all.p);
    un_context *alone = b.all.tank.ctx;
    for (uint64_t round = 0; round < 3; round++) { /* the last has next to no thin ones */
        both_want(&b, round);
        int64_t laid = 0, groups = b.all.groups.group_count;
        for (int32_t i = 0; i < b.all.p.count; i++) {
            un_vec3 x = un_particle_position(&b.all.p, i);
            if (round == 2 ? i == 17 : off_sheet(x) < 0.01 || off_thread(x) < 0.01)
                b.all.p.flags[i] |= UN_PARTICLE_THIN;
        }
        un_range own = group_range((int)round % SPREAD_COUNT, b.all.p.count);
        uint8_t *wanted = calloc((size_t)groups + 1, 1);
        for (int64_t g = 0; g < groups; g++)
            wanted[g] = (g + 1) * UN_GROUP > own.begin && g * UN_GROUP < own.end;
        both_deal(&b, own, wanted);
        un_sheets_def def = {.h = 1.0 / 16,
                             .dt = 0.01,
                             .pace = 0.5,
                             .strength = 1,
                             .walls = b.all.tank.walls,
                             .wall = b.all.wall};
        check_ok(alone, un_particles_even_sheets(alone, &b.all.arena, &b.all.p, &def, &b.of));
        def.wall = b.mine.wall;
        check_ok(b.ctx, un_markers_even_sheets(b.ctx, &b.arena, &b.mine, &def, &b.sheets));
        un_arena_reset(&b.arena);
        assert_int_equal(b.sheets.any, b.of.any);
        for (int64_t i = own.begin; i < own.end; i++) {
            int64_t q = b.share.begin + i - own.begin;
            is_the_same(&b.mine.particles, (int32_t)q, &b.all.p, (int32_t)i);
            if (!b.of.any) continue;
            assert_memory_equal(&b.sheets.gap[q], &b.of.gap[i], sizeof(float));
            laid += b.of.gap[i] != 0;
            for (int a = 0; a < 3 && b.of.gap[i] != 0; a++)
                assert_memory_equal(&b.sheets.axis[a][q], &b.of.axis[a][i], sizeof(float));
        }
        laid = un_ranks_total(b.ctx, laid);
        if (round < 2) assert_true(laid > 500);
        if (round == 2) assert_false(b.sheets.any);
        free(wanted);
    }
    both_end(&b);
}

/* ---- drops ---- */

/* Coarse liquid with clusters of drops, of less and of more volume than what is around them. */
static void splash(un_context *ctx, un_particles *p, bool drops)
{
    const int32_t coarse = 40, clusters = 12;
    int32_t count = coarse;
    for (int32_t c = 0; c < clusters; c++) count += drops ? 20 + 12 * c * c : 0;
    p->sized = p->mixed = true;
    check_ok(ctx, un_particles_reserve(ctx, p, count));
    p->count = count;
    for (int32_t i = 0, c = 0, left = 20; i < count; i++) {
        uint64_t q = (uint64_t)i;
        bool drop = i >= coarse;
        un_vec3 x = swarm_point(q, 5);
        if (drop) x = un_mad(un_scale(swarm_point((uint64_t)c, 9), 0.95), x, 0.05);
        double edge = (drop ? 0.011 : 0.09) * (1 + 0.3 * un_random(q, 8));
        un_particle_set_position(p, i, x);
        un_particle_set_velocity(p, i, un_v3(0, 0, 0));
        p->volume[i] = (float)(edge * edge * edge);
        p->flags[i] = i % 11 == 0 ? UN_PARTICLE_BALLISTIC : 0;
        p->size[i] = p->density[i] = p->viscosity[i] = 1;
        p->fall[i] = 0;
        if (drop && --left == 0) c++, left = 20 + 12 * c * c;
    }
}

/* Every rank has every so-manieth, so sums go from rank to rank and back. */
static void drops_are_those_of_one_rank(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *alone = check_context();
    int32_t rank = un_rank(ctx), ranks = un_rank_count(ctx);
    for (int drops = 0; drops < 2; drops++) {
        un_arena arena, arena_alone;
        un_octree tree, serial;
        un_tree_share part = {.ctx = ctx};
        un_markers all, mine;
        bool found, expected;
        int64_t landed = 0;
        un_markers_init(alone, &all);
        un_markers_init(ctx, &mine);
        un_arena_init(&arena, ctx);
        un_arena_init(&arena_alone, alone);
        un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 64);
        un_octree_init(alone, &serial, un_v3(1, 1, 1), 4, 64);
        splash(alone, &all.particles, drops > 0);
        un_particle_share share = {.ctx = ctx, .id_total = all.particles.count};
        share.id = malloc((size_t)all.particles.count * sizeof *share.id);
        mine.share = &share;
        mine.particles.sized = mine.particles.mixed = true;
        check_ok(ctx, un_particles_reserve(ctx, &mine.particles, all.particles.count));
        for (int32_t i = rank; i < all.particles.count; i += ranks) {
            share.id[mine.particles.count] = (uint32_t)i;
            copy_particle(&mine.particles, mine.particles.count++, &all.particles, i);
        }
        check_ok(alone, un_particles_build_tree(alone, &arena_alone, &serial, &all.particles));
        check_ok(ctx, un_particles_build_tree_ranks(ctx, &arena, &tree, &part, &mine.particles));
        check_ok(alone, un_particles_part_drops(alone, &arena_alone, &all, &serial, &expected));
        check_ok(ctx, un_particles_part_drops_ranks(ctx, &arena, &mine, &tree, &part, &found));
        assert_int_equal(found, expected);
        assert_int_equal(found, drops);
        for (int32_t q = 0; q < mine.particles.count; q++) {
            assert_int_equal(mine.particles.flags[q], all.particles.flags[share.id[q]]);
            landed += (mine.particles.flags[q] & UN_PARTICLE_LANDED) != 0;
        }
        landed = un_ranks_total(ctx, landed);
        if (drops) assert_true(landed > 500 && landed < all.particles.count - 1000);
        free(share.id);
        un_tree_share_free(&part);
        un_octree_free(&tree);
        un_octree_free(&serial);
        un_markers_free(ctx, &mine);
        un_markers_free(alone, &all);
        un_arena_free(&arena);
        un_arena_free(&arena_alone);
    }
    check_context_end(alone);
    check_context_end(ctx);
}

/* ---- memory ---- */

/* All of it, with memory of a context of its own. */
static un_status do_all(both *b, un_context *ctx, un_arena *arena)
{
    un_markers *m = &b->mine;
    un_sheets_def sheets = {.h = 1.0 / 16,
                            .dt = 0.01,
                            .pace = 0.5,
                            .strength = 1,
                            .walls = b->all.tank.walls,
                            .wall = m->wall};
    un_correct_def correct = my_correct_def(b);
    un_resize_def resize = my_resize_def(b, 1);
    un_resize_report report;
    double volume;
    UN_TRY(un_markers_even_sheets(ctx, arena, m, &sheets, &b->sheets));
    un_arena_reset(arena);
    UN_TRY(un_particles_correct_sized(ctx, arena, &m->particles, &correct));
    un_arena_reset(arena);
    UN_TRY(un_particles_resize(ctx, arena, &m->particles, &resize, &report));
    return un_markers_volume(ctx, m, &volume);
}

static un_status part_all(un_context *ctx, un_arena *arena, un_particles *p)
{
    un_octree tree;
    un_tree_share part = {.ctx = ctx};
    un_particle_share share = {.ctx = ctx, .id_total = p->count};
    un_markers m;
    bool found;
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 64);
    un_markers_init(ctx, &m);
    m.particles = *p;
    m.share = &share;
    share.id = calloc((size_t)p->count + 1, sizeof *share.id);
    for (int32_t q = 0; q < p->count; q++) share.id[q] = (uint32_t)q;
    un_status status = un_particles_build_tree_ranks(ctx, arena, &tree, &part, p);
    un_arena_reset(arena);
    if (status == UN_OK)
        status = un_particles_part_drops_ranks(ctx, arena, &m, &tree, &part, &found);
    free(share.id);
    un_markers_release(ctx, &m);
    un_tree_share_free(&part);
    un_octree_free(&tree);
    return status;
}

static void memory_fails_on_all(void **state)
{
    (void)state;
    both b;
    un_particles drops = {0};
    both_begin(&b);
    both_want(&b, 0);
    for (int32_t i = 0; i < b.all.p.count; i += 3) b.all.p.flags[i] |= UN_PARTICLE_THIN;
    splash(b.ctx, &drops, true);
    un_range own = group_range(SPREAD_EVEN, b.all.p.count);
    uint8_t *wanted = malloc((size_t)b.all.groups.group_count + 1);
    memset(wanted, 1, (size_t)b.all.groups.group_count);
    check_ok(b.ctx, un_particles_reserve(b.ctx, &b.mine.particles, 2 * (int64_t)b.all.p.count));
    int64_t n[2] = {1, 1};
    int failures[2] = {0};
    for (int which = 0; which < 2; which++)
        for (bool done = false; !done;) {
            un_context *ctx = group_context_failing(1, n[which], un_ranks_count(group) - 1);
            un_arena arena;
            un_arena_init(&arena, ctx);
            both_deal(&b, own, wanted);
            un_status status = which ? part_all(ctx, &arena, &drops) : do_all(&b, ctx, &arena);
            done = status == UN_OK;
            if (!done) assert_int_equal(status, UN_ERROR_MEMORY);
            failures[which] += !done;
            n[which] += 1 + n[which] / 2;
            un_free(ctx, b.share.id);
            b.share.id = NULL;
            b.share.capacity_id = 0;
            un_arena_free(&arena);
            check_context_end(ctx);
        }
    assert_true(failures[0] > 3 && failures[1] > 5);
    free(wanted);
    un_particles_free(b.ctx, &drops);
    both_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tree_is_that_of_one_rank),
                                       cmocka_unit_test(resizing_is_that_of_one_rank),
                                       cmocka_unit_test(correction_is_that_of_one_rank),
                                       cmocka_unit_test(sheets_are_those_of_one_rank),
                                       cmocka_unit_test(drops_are_those_of_one_rank),
                                       cmocka_unit_test(memory_fails_on_all)};
    group_run(tests);
}
