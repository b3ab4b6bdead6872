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
    int32_t rank;          /* over ranks: of the one that is not here; this one: both are */
    bool asked_there;      /* its wish */
} un_pair;

/* Takes the closest of all wishes first, each particle once; ties in the order of wishes. The
 * rounding error of a volume is carried to the next. total: particles. pairs: from the arena. */
un_status un_pairs_choose(un_context *ctx, un_arena *arena, const un_pair_wish *wishes,
                          int64_t count, int64_t total, un_pair **pairs, int64_t *pair_count);

/* The same over ranks (pairs_ranks.c). own: this rank's particles, by their numbers; wishes: of
 * these. pairs: all that hold one of them, in the same order on
 * all ranks; `volume` is set where the lower one is here. */
un_status un_pairs_choose_ranks(un_context *ctx, un_arena *arena, un_range own,
                                const un_pair_wish *wishes, int64_t count, un_pair **pairs,
                                int64_t *pair_count);

/* What the lower particle of a pair has to know of the upper one. */
typedef struct un_partner {
    double x[3], v[3];
    float volume, size, density, viscosity, phi, normal[3];
    uint8_t fall;
} un_partner;

/* Over ranks, the upper particles of pairs that the rank of the lower one has not asked for: it had
 * no wish of its own. */
typedef struct un_pairs_post {
    int32_t *slot; /* by pair: its partner in `out` or `in`; -1: none is sent */
    un_partner *out, *in;
    un_mail *out_mail, *in_mail;
    int32_t out_ranks, in_ranks;
} un_pairs_post;
/* Room for them. Then the caller sets what goes out. */
un_status un_pairs_address(un_context *ctx, un_arena *arena, un_pairs_post *post, un_range own,
                           const un_pair *pairs, int64_t count);
void un_pairs_send(un_context *ctx, const un_pairs_post *post);

#endif
