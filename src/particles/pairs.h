/* Which particles merge (pairs.c, pairs_ranks.c). */
#ifndef UN_PARTICLES_PAIRS_H
#define UN_PARTICLES_PAIRS_H

#include "particles/particles.h"

/* Particle i would merge with j; both by their numbers on one rank. */
typedef struct un_pair_wish {
    uint32_t i, j;
    float distance; /* m */
    float vi, vj;   /* m3, or m2 */
} un_pair_wish;

typedef struct un_pair {
    uint32_t lower, upper; /* particles */
    float volume;          /* of both */
} un_pair;

/* Takes the closest of all wishes first, each particle once; ties in the order of wishes. The
 * rounding error of a volume is carried to the next. total: particles. pairs: from the arena. */
un_status un_pairs_choose(un_context *ctx, un_arena *arena, const un_pair_wish *wishes,
                          int64_t count, int64_t total, un_pair **pairs, int64_t *pair_count);

/* The same over ranks (pairs_ranks.c). own: this rank's particles, by their numbers; wishes: of
 * these. pairs: all that hold one of them; `volume` is set where the lower one is here. */
un_status un_pairs_choose_ranks(un_context *ctx, un_arena *arena, un_range own,
                                const un_pair_wish *wishes, int64_t count, un_pair **pairs,
                                int64_t *pair_count);

#endif
