/* Drops among giants.
 *
 * The mesh follows the particles, and S keeps their sizes changing gradually from place to place;
 * but what flies carries its size along. A drop of spray that comes down on calm liquid, whose
 * particles are many times as wide, would bring its fine leaves with it, and in leaves much finer
 * than they are wide large particles do not fill space: the gaps between them are taken for a
 * surface, the curvature of which makes S refine the liquid around, which leaves gaps again. Left
 * alone, eight drops of a few grams refine a basin of tons (test_tet_physics.c).
 *
 * So leaves are not made much finer than the particles that hold the liquid there. Giants are those
 * that a first tree puts into leaves finer than their own. Where one has fewer small particles
 * around it than would make up itself, these are drops: they ask for no leaves, and a second tree
 * is made without them. They stay drops until they have grown by merging or their leaf has shrunk
 * (transfer/mark.c), and stop where they are (drag in transfer/tets.c). Where there are more, the
 * small ones are the liquid, and the giant is about to split. */
#include "particles/groups.h"
#include "particles/particles.h"

#include <stdatomic.h>

/* What counts as small, in a giant's radii, and how far around its centre. Sizes that the sizing
 * function makes do not change as fast as that. */
#define SMALL 0.2
#define AROUND 6.0

typedef struct drops_args {
    un_particles *particles;
    const un_octree *tree;
    const un_groups *groups;
    const float *radius;
    uint8_t *giant;     /* by particle */
    atomic_uchar *drop; /* by particle */
} drops_args;

/* A leaf one level finer that comes and goes beside a giant's stirs it already. */
static bool is_giant(const un_particles *p, const un_octree *tree, int64_t q)
{
    if (p->flags[q] & UN_PARTICLE_APART) return false;
    int32_t own = un_particles_leaf_level(p, tree, q);
    if (own == tree->level_max) return false;
    return tree->level[un_octree_find(tree, un_particle_position(p, q))] > own;
}

static double find_giants(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    double found = 0;
    for (int64_t q = begin; q < end; q++) {
        a->giant[q] = is_giant(a->particles, a->tree, q);
        found += a->giant[q];
    }
    return found;
}

/* The volume of the small ones around a giant, up to its own; they are made drops. */
static double visit_small(const drops_args *a, int64_t q, bool make)
{
    const un_particles *p = a->particles;
    un_vec3 x = un_particle_position(p, q);
    double reach = AROUND * (double)a->radius[q], volume = 0;
    float small = (float)SMALL * a->radius[q];
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->groups, (un_box3){x, x}, reach, 0);
    for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
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
    drops_args a = {.particles = &m->particles, .tree = tree};
    a.giant = un_arena_alloc(arena, (size_t)count + 1, 1);
    if (!a.giant) return UN_ERROR_MEMORY;
    *found = un_parallel_sum(ctx, count, find_giants, &a) > 0;
    if (!*found) return UN_OK;
    UN_TRY(un_markers_group(ctx, m));
    a.groups = &m->groups;
    a.radius = m->radius;
    a.drop = un_arena_alloc(arena, (size_t)count + 1, sizeof *a.drop);
    if (!a.drop) return UN_ERROR_MEMORY;
    for (int64_t q = 0; q < count; q++) atomic_init(&a.drop[q], 0);
    *found = un_parallel_sum(ctx, count, find_drops, &a) > 0;
    if (*found) un_parallel_for(ctx, count, 16384, take_drops, &a);
    return UN_OK;
}
