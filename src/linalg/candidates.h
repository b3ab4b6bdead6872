/* Rows that may join an aggregate, with their ties to it: for both kinds of aggregation. */
#ifndef UN_LINALG_CANDIDATES_H
#define UN_LINALG_CANDIDATES_H

#include <stdint.h>

#define UN_AMG_EQUAL 1.01f /* ties that differ by less are equal but for round-off */
#define UN_AMG_CANDIDATES_MAX 512

typedef struct un_amg_candidates {
    int32_t id[UN_AMG_CANDIDATES_MAX];
    float tie[UN_AMG_CANDIDATES_MAX];
    int32_t count;
} un_amg_candidates;

/* Takes out the candidate with the strongest ties, of equals the one found first: the seed's own
 * neighbours come before theirs, so that a grid's aggregates are cubes and not rods. -1 none. */
static inline int32_t un_amg_take_best(un_amg_candidates *c, int32_t *slot)
{
    int32_t best = 0;
    if (c->count == 0) return -1;
    for (int32_t at = 1; at < c->count; at++)
        if (c->tie[at] > UN_AMG_EQUAL * c->tie[best]) best = at;
    int32_t id = c->id[best];
    c->count--;
    for (int32_t at = best; at < c->count; at++) {
        c->id[at] = c->id[at + 1];
        c->tie[at] = c->tie[at + 1];
        slot[c->id[at]] = at;
    }
    return id;
}

#endif
