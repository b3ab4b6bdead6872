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
 * more volume, the small ones are the liquid, and the giant is about to split. */
#include "particles/groups.h"
#include "particles/particles.h"

#include <stdatomic.h>

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

/* One level finer is enough: even such a leaf, coming and going beside a giant's own, stirs it. */
static bool is_giant(const drops_args *a, int64_t q)
{
    const un_particles *p = a->particles;
    const un_octree *tree = a->tree;
    if (p->flags[q] & UN_PARTICLE_APART || p->volume[q] < a->volume_least) return false;
    int32_t own = un_leaf_wish(&a->wishes, p, q);
    if (own == tree->level_max) return false;
    return tree->level[un_octree_find(tree, un_particle_position(p, q))] > own;
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

/* The volume of the small particles around a giant, summed up to its own volume. make: turns them
 * into drops. */
static double visit_small(const drops_args *a, int64_t q, bool make)
{
    const un_particles *p = a->particles;
    un_vec3 x = un_particle_position(p, q);
    double reach = AROUND * (double)a->radius[q], volume = 0;
    float small = (float)SMALL * a->radius[q];
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->groups, (un_box3){x, x}, reach, 0);
    for (int32_t g; (g = un_groups_walk_below(&walk, a->least, small)) >= 0;)
        for (int32_t i = g * UN_GROUP; i < (g + 1) * UN_GROUP && i < p->count; i++) {
            un_vec3 d = un_sub(un_particle_position(p, i), x);
            if (!(a->radius[i] < small) || !(un_dot(d, d) < reach * reach)) continue;
            if (p->flags[i] & UN_PARTICLE_APART) continue;
            volume += p->volume[i];
            if (make) atomic_store_explicit(&a->drop[i], 1, memory_order_relaxed);
            if (volume >= p->volume[q]) return volume;
        }
    return volume;
}

static double find_drops(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    double found = 0;
    for (int64_t q = begin; q < end; q++) {
        if (!a->giant[q]) continue;
        double volume = visit_small(a, q, false);
        if (!(volume > 0) || volume >= a->particles->volume[q]) continue;
        visit_small(a, q, true);
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

un_status un_particles_part_drops(un_context *ctx, un_arena *arena, un_markers *m,
                                  const un_octree *tree, bool *found)
{
    int64_t count = m->particles.count;
    drops_args a = {.particles = &m->particles,
                    .tree = tree,
                    .wishes = un_leaf_wishes_make(&m->particles, tree)};
    a.giant = un_arena_alloc(arena, (size_t)count + 1, 1);
    if (!a.giant) return UN_ERROR_MEMORY;
    /* Most particles are too small to be giants; 0.99 is for rounding. */
    double least = -un_parallel_max(ctx, count, least_volume, &a), wide = 1 / SMALL;
    a.volume_least = 0.99 * least * (m->particles.flat ? wide * wide : wide * wide * wide);
    *found = un_parallel_sum(ctx, count, find_giants, &a) > 0;
    if (!*found) return UN_OK;
    UN_TRY(un_markers_group(ctx, m));
    a.groups = &m->groups;
    a.radius = m->radius;
    a.drop = un_arena_alloc(arena, (size_t)count + 1, sizeof *a.drop);
    size_t nodes = (size_t)m->groups.level_first[m->groups.level_count];
    a.least = un_arena_alloc(arena, 8 * nodes + 1, sizeof *a.least);
    if (!a.drop || !a.least) return UN_ERROR_MEMORY;
    find_least(&a, count);
    for (int64_t q = 0; q < count; q++) atomic_init(&a.drop[q], 0);
    *found = un_parallel_sum(ctx, count, find_drops, &a) > 0;
    if (*found) un_parallel_for(ctx, count, 16384, take_drops, &a);
    return UN_OK;
}
