/* Drops among giants.
 *
 * The mesh follows the particles, and S makes their sizes change gradually in space; but a flying
 * particle keeps its size. A drop of spray that lands on calm liquid, whose particles are many
 * times as wide, would bring its fine leaves with it. Large particles do not fill space in leaves
 * much finer than themselves: the gaps between them look like a surface, its curvature makes S
 * refine the liquid around, and that leaves gaps again. Left alone, eight drops of a few grams
 * refine a basin of tons (test_tet_physics.c).
 *
 * So leaves are not made much finer than the particles that hold the liquid there. Giants are
 * particles that a first tree puts into leaves finer than their own, and that are wide enough for
 * others to be small beside them. If the small particles around
 * a giant have less volume than the giant itself, they are drops: they ask for no leaves, and a
 * second tree is built without them. They stay drops until they have grown by merging or their leaf
 * has shrunk (transfer/mark.c), and are slowed to a stop (drag in transfer/tets.c). If they have
 * more volume, the small ones are the liquid, and the giant is about to split.
 *
 * Over ranks, the level of a leaf is known to the rank that has the leaf, which the others ask.
 * Giants go to all ranks, 32 bytes each. Each lists the small ones of its own around them, unless
 * these alone have the giant's volume, 12 bytes each, for the giant's rank; it sums them in the
 * order of one rank and tells all what they are. */
#include "particles/groups.h"
#include "particles/particles.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Which particles count as small, in a giant's radii, and how far around its centre they are
 * sought. The sizing function never makes sizes change that fast. */
#define SMALL 0.2
#define AROUND 6.0

typedef struct drops_args {
    un_particles *particles;
    const un_octree *tree;
    un_leaf_wishes wishes;
    double volume_least; /* of a particle that may have small ones around it */
    const un_groups *groups;
    const float *radius;
    float *least;       /* by node of the groups' tree and child: the least radius */
    uint8_t *giant;     /* by particle */
    atomic_uchar *drop; /* by particle */
} drops_args;

/* The level that particle q must lie below to be a giant; -1: it cannot be one. One level finer is
 * enough: even such a leaf, coming and going beside a giant's own, stirs it. */
static int32_t giant_level(const drops_args *a, int64_t q)
{
    const un_particles *p = a->particles;
    if (p->flags[q] & UN_PARTICLE_APART || p->volume[q] < a->volume_least) return -1;
    int32_t own = un_leaf_wish(&a->wishes, p, q);
    return own == a->tree->level_max ? -1 : own;
}

static bool is_giant(const drops_args *a, int64_t q)
{
    int32_t own = giant_level(a, q);
    if (own < 0) return false;
    return a->tree->level[un_octree_find(a->tree, un_particle_position(a->particles, q))] > own;
}

/* Less the least volume, since what is found is the most. */
static double least_volume(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    const float *volume = a->particles->volume;
    float least = INFINITY;
    for (int64_t q = begin; q < end; q++) least = fminf(least, volume[q]);
    return -least;
}

static double find_giants(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    double found = 0;
    for (int64_t q = begin; q < end; q++) {
        a->giant[q] = is_giant(a, q);
        found += a->giant[q];
    }
    return found;
}

/* The least radius of each child of a node, as un_group_box has the largest. */
static void find_least(const drops_args *a, int64_t count)
{
    const un_groups *g = a->groups;
    int32_t nodes = g->level_first[g->level_count];
    for (int64_t i = 0; i < 8 * (int64_t)nodes; i++) a->least[i] = INFINITY;
    for (int64_t q = 0; q < count; q++)
        a->least[q / UN_GROUP] = fminf(a->least[q / UN_GROUP], a->radius[q]);
    for (int32_t l = 0; l + 1 < g->level_count; l++)
        for (int32_t n = g->level_first[l]; n < g->level_first[l + 1]; n++) {
            float *to = &a->least[8 * (int64_t)g->level_first[l + 1] + n - g->level_first[l]];
            for (int c = 0; c < 8; c++) *to = fminf(*to, a->least[8 * (int64_t)n + c]);
        }
}

typedef struct giant {
    un_vec3 x;
    float radius, volume;
} giant;

static giant giant_at(const drops_args *a, int64_t q)
{
    return (giant){un_particle_position(a->particles, q), a->radius[q], a->particles->volume[q]};
}

/* What becomes of small particles: counted, made drops, or listed. */
typedef struct visit {
    bool make;
    int32_t *list;
    int64_t count;
} visit;

/* The volume of the small particles around a giant, summed up to `most`. */
static double visit_small(const drops_args *a, const giant *at, double most, visit *v)
{
    const un_particles *p = a->particles;
    double reach = AROUND * (double)at->radius, volume = 0;
    float small = (float)SMALL * at->radius;
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->groups, (un_box3){at->x, at->x}, reach, 0);
    v->count = 0;
    for (int32_t g; (g = un_groups_walk_below(&walk, a->least, small)) >= 0;)
        for (int32_t i = g * UN_GROUP; i < (g + 1) * UN_GROUP && i < p->count; i++) {
            un_vec3 d = un_sub(un_particle_position(p, i), at->x);
            if (!(a->radius[i] < small) || !(un_dot(d, d) < reach * reach)) continue;
            if (p->flags[i] & UN_PARTICLE_APART) continue;
            volume += p->volume[i];
            if (v->make) atomic_store_explicit(&a->drop[i], 1, memory_order_relaxed);
            if (v->list) v->list[v->count] = i;
            v->count++;
            if (volume >= most) return volume;
        }
    return volume;
}

static double find_drops(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    double found = 0;
    for (int64_t q = begin; q < end; q++) {
        if (!a->giant[q]) continue;
        giant at = giant_at(a, q);
        visit look = {0}, make = {.make = true};
        double most = (double)at.volume, volume = visit_small(a, &at, most, &look);
        if (!(volume > 0) || volume >= most) continue;
        visit_small(a, &at, most, &make);
        found += 1;
    }
    return found;
}

static void take_drops(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    for (int64_t q = begin; q < end; q++)
        if (atomic_load_explicit(&a->drop[q], memory_order_relaxed))
            a->particles->flags[q] |= UN_PARTICLE_LANDED;
}

/* Most particles are too small to be giants; 0.99 is for rounding. most_negative: less the least
 * volume. */
static drops_args begin_drops(un_markers *m, const un_octree *tree, double most_negative)
{
    double wide = 1 / SMALL;
    drops_args a = {.particles = &m->particles,
                    .tree = tree,
                    .wishes = un_leaf_wishes_make(&m->particles, tree)};
    a.volume_least = 0.99 * -most_negative * (m->particles.flat ? wide * wide : wide * wide * wide);
    return a;
}

/* Groups, and all that goes with them and with drops. */
static un_status prepare(un_context *ctx, un_arena *arena, drops_args *a, un_markers *m)
{
    int64_t count = m->particles.count;
    UN_TRY(un_markers_group(ctx, m));
    a->groups = &m->groups;
    a->radius = m->radius;
    size_t nodes = (size_t)m->groups.level_first[m->groups.level_count];
    a->drop = un_arena_alloc(arena, (size_t)count + 1, sizeof *a->drop);
    a->least = un_arena_alloc(arena, 8 * nodes + 1, sizeof *a->least);
    if (!a->drop || !a->least) return UN_ERROR_MEMORY;
    find_least(a, count);
    for (int64_t q = 0; q < count; q++) atomic_init(&a->drop[q], 0);
    return UN_OK;
}

un_status un_particles_part_drops(un_context *ctx, un_arena *arena, un_markers *m,
                                  const un_octree *tree, bool *found)
{
    int64_t count = m->particles.count;
    drops_args a = {.particles = &m->particles};
    a = begin_drops(m, tree, un_parallel_max(ctx, count, least_volume, &a));
    a.giant = un_arena_alloc(arena, (size_t)count + 1, 1);
    if (!a.giant) return UN_ERROR_MEMORY;
    *found = un_parallel_sum(ctx, count, find_giants, &a) > 0;
    if (!*found) return UN_OK;
    UN_TRY(prepare(ctx, arena, &a, m));
    *found = un_parallel_sum(ctx, count, find_drops, &a) > 0;
    if (*found) un_parallel_for(ctx, count, 16384, take_drops, &a);
    return UN_OK;
}

/* ---- over ranks ---- */

/* Particles that may be giants and lie in the part of another rank. */
typedef struct questions {
    int64_t count;
    int32_t *particle, *to, *from; /* from: this rank, for the answer */
    uint64_t *key;
} questions;

static uint64_t key_at(const un_octree *tree, un_vec3 x)
{
    return un_morton((uint32_t)un_octree_index(tree, x.x, 0),
                     (uint32_t)un_octree_index(tree, x.y, 1),
                     (uint32_t)un_octree_index(tree, x.z, 2));
}

typedef struct part_args {
    const drops_args *drops;
    const un_tree_share *part;
    int32_t *owner; /* of the leaf that a particle lies in, if it may be a giant; else this rank */
} part_args;

static void find_own_giants(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    const drops_args *d = a->drops;
    int32_t me = un_rank(a->part->ctx), ranks = un_rank_count(a->part->ctx);
    for (int64_t q = begin; q < end; q++) {
        uint64_t key = key_at(d->tree, un_particle_position(d->particles, q));
        bool may = giant_level(d, q) >= 0;
        a->owner[q] = may ? un_ranks_owner(a->part->first, ranks, key) : me;
        d->giant[q] = may && a->owner[q] == me && is_giant(d, q);
    }
}

/* Giants in this rank's part; questions about others. */
static un_status begin_giants(un_arena *arena, drops_args *a, questions *ask,
                              const un_tree_share *part)
{
    un_context *ctx = part->ctx;
    const un_particles *p = a->particles;
    int32_t me = un_rank(ctx);
    size_t room = (size_t)p->count + 1;
    int32_t *owner = un_arena_alloc(arena, room, sizeof *owner);
    part_args args = {a, part, owner};
    a->giant = un_arena_alloc(arena, room, 1);
    if (!owner || !a->giant) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, p->count, 8192, find_own_giants, &args);
    for (int64_t q = 0; q < p->count; q++) ask->count += owner[q] != me;
    room = (size_t)ask->count + 1;
    ask->particle = un_arena_alloc(arena, room, sizeof *ask->particle);
    ask->to = un_arena_alloc(arena, room, sizeof *ask->to);
    ask->from = un_arena_alloc(arena, room, sizeof *ask->from);
    ask->key = un_arena_alloc(arena, room, sizeof *ask->key);
    if (!ask->particle || !ask->to || !ask->from || !ask->key) return UN_ERROR_MEMORY;
    for (int64_t q = 0, n = 0; q < p->count; q++) {
        if (owner[q] == me) continue;
        ask->particle[n] = (int32_t)q;
        ask->to[n] = owner[q];
        ask->from[n] = me;
        ask->key[n++] = key_at(a->tree, un_particle_position(p, q));
    }
    return UN_OK;
}

/* Levels of leaves that others ask for. */
static un_status answer(un_arena *arena, const un_octree *tree, un_exchange *asked,
                        const questions *ask, int32_t **from, uint8_t **level)
{
    un_context *ctx = tree->ctx;
    int64_t count = un_exchange_count(asked);
    uint64_t *key = un_arena_alloc(arena, (size_t)count + 1, sizeof *key);
    *from = un_arena_alloc(arena, (size_t)count + 1, sizeof **from);
    *level = un_arena_alloc(arena, (size_t)count + 1, 1);
    UN_TRY(un_ranks_agree(ctx, key && *from && *level ? UN_OK : UN_ERROR_MEMORY));
    un_field fields[2] = {{"keys", ask->key, key, sizeof *key},
                          {"from", ask->from, *from, sizeof **from}};
    UN_TRY(un_exchange_run(asked, fields, 2));
    for (int64_t n = 0; n < count; n++) (*level)[n] = tree->level[un_octree_find_key(tree, key[n])];
    return UN_OK;
}

/* Answers come in the order of ranks, and of each rank in the order of questions. */
static un_status take_answers(un_arena *arena, drops_args *a, un_exchange *told,
                              const questions *ask, const uint8_t *level)
{
    un_context *ctx = a->tree->ctx;
    int32_t ranks = un_rank_count(ctx);
    uint8_t *arrived = un_arena_alloc(arena, (size_t)ask->count + 1, 1);
    int64_t *next = un_arena_alloc(arena, (size_t)ranks + 1, sizeof *next);
    UN_TRY(un_ranks_agree(ctx, arrived && next ? UN_OK : UN_ERROR_MEMORY));
    UN_ASSERT(un_exchange_count(told) == ask->count);
    un_field field = {"levels", level, arrived, 1};
    UN_TRY(un_exchange_run(told, &field, 1));
    memset(next, 0, ((size_t)ranks + 1) * sizeof *next);
    for (int64_t n = 0; n < ask->count; n++) next[ask->to[n]]++;
    un_bins_offsets(next, ranks, 0);
    for (int64_t n = 0; n < ask->count; n++) {
        int32_t q = ask->particle[n];
        a->giant[q] = arrived[next[ask->to[n]]++] > giant_level(a, q);
    }
    return UN_OK;
}

static un_status find_giants_ranks(un_arena *arena, drops_args *a, const un_tree_share *part)
{
    un_context *ctx = a->tree->ctx;
    questions ask = {0};
    un_exchange *asked, *told = NULL;
    int32_t *from;
    uint8_t *level;
    UN_TRY(un_ranks_agree(ctx, begin_giants(arena, a, &ask, part)));
    UN_TRY(un_exchange_create_moves(ctx, ask.to, ask.count, &asked));
    un_status status = answer(arena, a->tree, asked, &ask, &from, &level);
    if (status == UN_OK)
        status = un_exchange_create_moves(ctx, from, un_exchange_count(asked), &told);
    if (status == UN_OK) status = take_answers(arena, a, told, &ask, level);
    un_exchange_destroy(asked);
    un_exchange_destroy(told);
    return status;
}

/* Giants of all ranks, and the small ones of this rank around them. */
typedef struct nearby {
    const giant *giants;
    int64_t giant_count;
    int64_t *first;  /* by giant: its first small one in the list; one more */
    int32_t *small;  /* particles here; -1: enough of them to be the liquid */
    uint32_t *giant; /* of each small one */
    uint32_t *id;
    float *volume;
    int32_t *to; /* the giant's rank */
} nearby;

typedef struct nearby_args {
    const drops_args *drops;
    nearby *near;
} nearby_args;

/* A rank that has this much of a giant's volume has enough, however all of it is summed. */
#define ENOUGH 1.001

static void count_small(void *arg, int64_t begin, int64_t end)
{
    const nearby_args *a = arg;
    for (int64_t g = begin; g < end; g++) {
        visit look = {0};
        double most = ENOUGH * (double)a->near->giants[g].volume;
        bool enough = visit_small(a->drops, &a->near->giants[g], most, &look) >= most;
        a->near->first[g] = enough ? -1 : look.count;
    }
}

static void list_small(void *arg, int64_t begin, int64_t end)
{
    const nearby_args *a = arg;
    for (int64_t g = begin; g < end; g++) {
        int32_t *list = a->near->small + a->near->first[g];
        if (a->near->first[g] == a->near->first[g + 1] || *list == -1) continue;
        visit all = {.list = list};
        visit_small(a->drops, &a->near->giants[g], INFINITY, &all);
    }
}

static un_status find_nearby(un_context *ctx, un_arena *arena, const drops_args *d, nearby *near,
                             const int64_t *giants_begin, const uint32_t *id)
{
    nearby_args a = {d, near};
    int64_t count = 0;
    near->first = un_arena_alloc(arena, (size_t)near->giant_count + 1, sizeof *near->first);
    if (!near->first) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, near->giant_count, 16, count_small, &a);
    for (int64_t g = 0; g < near->giant_count; g++) count += llabs(near->first[g]);
    near->small = un_arena_alloc(arena, (size_t)count + 1, sizeof *near->small);
    near->giant = un_arena_alloc(arena, (size_t)count + 1, sizeof *near->giant);
    near->id = un_arena_alloc(arena, (size_t)count + 1, sizeof *near->id);
    near->volume = un_arena_alloc(arena, (size_t)count + 1, sizeof *near->volume);
    near->to = un_arena_alloc(arena, (size_t)count + 1, sizeof *near->to);
    if (!near->small || !near->giant || !near->id || !near->volume || !near->to)
        return UN_ERROR_MEMORY;
    count = 0;
    for (int64_t g = 0; g < near->giant_count; g++) {
        bool enough = near->first[g] < 0;
        int64_t n = llabs(near->first[g]);
        near->first[g] = count;
        if (n > 0) near->small[count] = enough ? -1 : 0;
        count += n;
    }
    near->first[near->giant_count] = count;
    un_parallel_for(ctx, near->giant_count, 16, list_small, &a);
    int32_t rank = 0;
    for (int64_t g = 0; g < near->giant_count; g++) {
        while (g >= giants_begin[rank + 1]) rank++;
        for (int64_t n = near->first[g]; n < near->first[g + 1]; n++) {
            int32_t i = near->small[n];
            near->giant[n] = (uint32_t)g;
            near->id[n] = i < 0 ? 0 : id[i];
            near->volume[n] = i < 0 ? INFINITY : d->particles->volume[i];
            near->to[n] = rank;
        }
    }
    return UN_OK;
}

/* Sums what all ranks have around this rank's giants, from number `first` on. verdict: are they
 * drops? */
static un_status weigh(un_context *ctx, un_arena *arena, const nearby *near, un_exchange *sent,
                       int64_t first, int64_t own_count, uint8_t *verdict)
{
    size_t count = (size_t)un_exchange_count(sent);
    uint32_t *of = un_arena_alloc(arena, count + 1, sizeof *of);
    uint32_t *id = un_arena_alloc(arena, count + 1, sizeof *id);
    float *volume = un_arena_alloc(arena, count + 1, sizeof *volume);
    uint64_t *key = un_arena_alloc(arena, count + 1, sizeof *key);
    int32_t *order = un_arena_alloc(arena, count + 1, sizeof *order);
    UN_TRY(un_ranks_agree(ctx, of && id && volume && key && order ? UN_OK : UN_ERROR_MEMORY));
    un_field fields[3] = {{"giants", near->giant, of, sizeof *of},
                          {"ids", near->id, id, sizeof *id},
                          {"volumes", near->volume, volume, sizeof *volume}};
    UN_TRY(un_exchange_run(sent, fields, 3));
    for (size_t n = 0; n < count; n++) key[n] = (uint64_t)(of[n] - first) << 32 | id[n];
    UN_TRY(un_ranks_agree(ctx, un_parallel_sort64(ctx, arena, order, key, (int64_t)count, 64)));
    size_t n = 0;
    for (int64_t g = 0; g < own_count; g++) {
        double sum = 0;
        for (; n < count && of[order[n]] == first + g; n++) sum += volume[order[n]];
        verdict[g] = sum > 0 && !(sum >= (double)near->giants[first + g].volume);
    }
    return UN_OK;
}

static un_status send_small(un_context *ctx, un_arena *arena, const nearby *near, int64_t first,
                            int64_t own_count, uint8_t *verdict)
{
    un_exchange *sent;
    UN_TRY(un_exchange_create_moves(ctx, near->to, near->first[near->giant_count], &sent));
    un_status status = weigh(ctx, arena, near, sent, first, own_count, verdict);
    un_exchange_destroy(sent);
    return status;
}

/* Turns into drops what is small around the giants of all ranks. */
static un_status make_drops(un_context *ctx, un_arena *arena, drops_args *a, nearby *near,
                            const giant *mine, int64_t count, const uint32_t *id, bool *found)
{
    un_range range = un_ranks_range(ctx, count);
    uint8_t *verdict = un_arena_alloc(arena, (size_t)count + 1, 1);
    void *giants = NULL, *verdicts = NULL;
    int64_t *begins = NULL, all;
    UN_TRY(un_ranks_agree(ctx, verdict ? UN_OK : UN_ERROR_MEMORY));
    un_status status = un_ranks_begins(ctx, range.begin, range.total, &begins);
    if (status == UN_OK)
        status = un_ranks_list(ctx, mine, count, sizeof *mine, &giants, &near->giant_count);
    near->giants = giants;
    if (status == UN_OK) status = un_ranks_agree(ctx, find_nearby(ctx, arena, a, near, begins, id));
    if (status == UN_OK) status = send_small(ctx, arena, near, range.begin, count, verdict);
    if (status == UN_OK) status = un_ranks_list(ctx, verdict, count, 1, &verdicts, &all);
    for (int64_t g = 0; status == UN_OK && g < near->giant_count; g++) {
        if (!((const uint8_t *)verdicts)[g]) continue;
        *found = true;
        for (int64_t n = near->first[g]; n < near->first[g + 1]; n++)
            a->particles->flags[near->small[n]] |= UN_PARTICLE_LANDED;
    }
    un_free(ctx, begins);
    un_free(ctx, giants);
    un_free(ctx, verdicts);
    return status;
}

un_status un_particles_part_drops_ranks(un_context *ctx, un_arena *arena, un_markers *m,
                                        const un_octree *tree, const un_tree_share *part,
                                        bool *found)
{
    int64_t count = m->particles.count, giants = 0, n = 0;
    drops_args a = {.particles = &m->particles};
    nearby near = {0};
    giant *mine = NULL;
    double most = un_parallel_max(ctx, count, least_volume, &a);
    a = begin_drops(m, tree, un_ranks_max(ctx, most));
    *found = false;
    UN_TRY(find_giants_ranks(arena, &a, part));
    for (int64_t q = 0; q < count; q++) giants += a.giant[q];
    if (un_ranks_total(ctx, giants) == 0) return UN_OK;
    un_status status = prepare(ctx, arena, &a, m);
    if (status == UN_OK) {
        mine = un_arena_alloc(arena, (size_t)giants + 1, sizeof *mine);
        if (!mine) status = UN_ERROR_MEMORY;
    }
    UN_TRY(un_ranks_agree(ctx, status));
    for (int64_t q = 0; q < count; q++)
        if (a.giant[q]) mine[n++] = giant_at(&a, q);
    return make_drops(ctx, arena, &a, &near, mine, giants, m->share->id, found);
}
