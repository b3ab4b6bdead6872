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
 * that a first tree puts into leaves finer than their own. Where one has fewer small
 * particles around it than would make up itself, these are drops: they ask for no leaves, and a
 * second tree is made without them. They are so until they have grown by merging or their leaf has
 * shrunk (un_tet_level_set), and stop where they are (drag in transfer/tets.c). Where there are
 * more the small ones are the liquid, and the giant is about to split. */
#include "method/tet.h"

typedef struct giants_args {
    const un_tet *s;
    uint8_t *giant; /* by particle */
} giants_args;

/* A leaf one level finer that comes and goes beside a giant's stirs it already. */
static bool is_giant(const un_tet *s, int64_t q)
{
    const un_octree *tree = &s->tree;
    if (s->particles.flags[q] & UN_PARTICLE_APART) return false;
    int32_t own = un_tet_leaf_level(s, q);
    if (own == tree->level_max) return false;
    return tree->level[un_octree_find(tree, un_particle_position(&s->particles, q))] > own;
}

static double find_giants(void *arg, int64_t begin, int64_t end)
{
    const giants_args *a = arg;
    double found = 0;
    for (int64_t q = begin; q < end; q++) {
        a->giant[q] = is_giant(a->s, q);
        found += a->giant[q];
    }
    return found;
}

un_status un_tet_part_drops(un_tet *s)
{
    int64_t count = s->particles.count;
    giants_args a = {s, un_arena_alloc(&s->arena, (size_t)count + 1, 1)};
    if (!a.giant) return UN_ERROR_MEMORY;
    bool found = un_parallel_sum(s->ctx, count, find_giants, &a) > 0;
    if (found) {
        UN_TRY(un_tet_group(s));
        UN_TRY(un_particles_part_drops(s->ctx, &s->arena, &s->particles, &s->groups, s->radius,
                                       a.giant, &found));
    }
    un_arena_reset(&s->arena);
    return found ? un_tet_build_tree(s) : UN_OK;
}
