/* Drops among giants.
 *
 * The mesh follows the particles, and S keeps their sizes changing gradually from place to place;
 * but what flies carries its size along. A drop of spray that comes down on calm liquid, whose
 * particles are many times as wide, would bring its fine leaves with it, and in leaves much finer
 * than they are wide large particles do not fill space: the gaps between them are taken for a
 * surface, the curvature of which makes S refine the liquid around, which leaves gaps again. Left
 * alone, eight drops of a few grams refine a basin of tons (test_tet.c).
 *
 * So leaves are not made much finer than the particles that hold the liquid there. Giants are those
 * that a first tree puts into leaves GIANT_LEVELS finer than their own. Where one has fewer small
 * particles around it than would make up itself, these are drops: they ask for no leaves, and a
 * second tree is made without them. They are so until they have grown by merging or their leaf has
 * shrunk (un_tet_level_set), and stop where they are (drag in transfer/tets.c). Where there are
 * more the small ones are the liquid, and the giant is about to split. */
#include "method/tet.h"
#include "particles/groups.h"

#include <stdatomic.h>

#define GIANT_LEVELS 1
/* What counts as small, in a giant's radii, and how far around its centre. Sizes that S makes do
 * not change as fast as that. A leaf that comes and goes beside a giant's stirs it too. */
#define SMALL 0.2
#define AROUND 6.0

typedef struct drops_args {
    un_tet *s;
    atomic_uchar *drop; /* by particle */
} drops_args;

static bool is_giant(const un_tet *s, int64_t q)
{
    const un_octree *tree = &s->tree;
    if (s->particles.flags[q] & UN_PARTICLE_APART) return false;
    int32_t own = un_tet_leaf_level(s, q), limit = own + GIANT_LEVELS;
    if (limit > tree->level_max) return false;
    return tree->level[un_octree_find(tree, un_particle_position(&s->particles, q))] >= limit;
}

/* Smaller ones around a giant: their volume, or made drops. */
static double visit_small(const drops_args *a, int64_t q, bool make)
{
    const un_particles *p = &a->s->particles;
    un_vec3 x = un_particle_position(p, q);
    double r = a->s->radius[q], reach2 = AROUND * r * AROUND * r, volume = 0;
    float small = (float)(SMALL * r);
    un_groups_walk walk;
    un_groups_walk_begin(&walk, &a->s->groups, (un_box3){x, x}, AROUND * r, 0);
    for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
        for (int32_t i = g * UN_GROUP; i < (g + 1) * UN_GROUP && i < p->count; i++) {
            un_vec3 d = un_sub(un_particle_position(p, i), x);
            if (!(a->s->radius[i] < small) || !(un_dot(d, d) < reach2)) continue;
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
        if (!is_giant(a->s, q)) continue;
        double volume = visit_small(a, q, false);
        if (!(volume > 0) || volume >= a->s->particles.volume[q]) continue;
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
            a->s->particles.flags[q] |= UN_PARTICLE_LANDED;
}

un_status un_tet_part_drops(un_tet *s)
{
    int64_t count = s->particles.count;
    UN_TRY(un_tet_group(s));
    drops_args a = {s, un_arena_alloc(&s->arena, (size_t)count + 1, sizeof *a.drop)};
    if (!a.drop) return UN_ERROR_MEMORY;
    for (int64_t q = 0; q < count; q++) atomic_init(&a.drop[q], 0);
    bool found = un_parallel_sum(s->ctx, count, find_drops, &a) > 0;
    if (found) un_parallel_for(s->ctx, count, 16384, take_drops, &a);
    un_arena_reset(&s->arena);
    return found ? un_tet_build_tree(s) : UN_OK;
}
