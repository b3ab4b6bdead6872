/* Rows that may join an aggregate, with their ties to it, and the numbering of aggregates: for both
 * kinds of aggregation. */
#ifndef UN_LINALG_CANDIDATES_H
#define UN_LINALG_CANDIDATES_H

#include "base/base.h"

#define UN_AMG_EQUAL 1.01f /* ties that differ by less are equal up to round-off */
#define UN_AMG_CANDIDATES_MAX 512

typedef struct un_amg_candidates {
    int32_t id[UN_AMG_CANDIDATES_MAX];
    float tie[UN_AMG_CANDIDATES_MAX];
    int32_t count;
} un_amg_candidates;

/* Removes the candidate with the strongest ties, among equals the one found first: the seed's own
 * neighbours come before theirs, so that aggregates on a grid are cubes and not rods. -1: none. */
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

/* Aggregates are numbered by block, from 0, and first[k + 1] is their number in block k: numbers
 * those of the rows of `own` from 0, over all blocks, and first[k] becomes the first of block k;
 * rows in none get -1. Returns how many there are. */
int32_t un_amg_number(un_context *ctx, int32_t *aggregate, int32_t *first, int64_t n, un_part own,
                      int64_t grain);

#endif
