/* Inside of transfers to leaves: who gives, on this rank and on others. Only transfer/leaves*.c
 * include this. */
#ifndef UN_TRANSFER_LEAVES_H
#define UN_TRANSFER_LEAVES_H

#include "transfer/transfer.h"

/* Particles whose numbers follow one another, copies and own ones. */
typedef struct un_leaf_stretch {
    int64_t number; /* of the first, among those of all ranks */
    int64_t place;  /* of the first, in the arrays here */
} un_leaf_stretch;

/* What leaves gather. */
typedef struct un_leaf_givers {
    const float *volume; /* m3 */
    float *v[3];         /* velocity in the middle of the last step */
    int32_t *x[3]; /* place, in units of 1 / fine: half the bytes, and exact enough for shares */
    /* Over ranks: where the particles of own leaves and those around them are; ascending. The
     * arrays have room for sixteen more at either end. NULL: all are here, by number. */
    const un_leaf_stretch *stretch;
    int32_t stretch_count;
    un_part own; /* numbers of own particles, and what their places are more */
    int64_t own_shift;
} un_leaf_givers;

/* v and x hold those of own particles, volume too: copies come beside them. Fails on all ranks or
 * on none; status: of this rank so far. */
un_status un_leaf_givers_fetch(un_context *ctx, un_arena *arena, un_leaf_givers *givers,
                               const un_leaves *leaves, const un_tet_bins *bins, un_status status);
/* Moves the arrays so that this particle, and those that follow it, are found by number. */
static inline void un_leaf_givers_shift(un_leaf_givers *g, int64_t number)
{
    int32_t low = 0, high = g->stretch_count;
    bool own = number >= g->own.begin && number < g->own.end;
    while (!own && high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (g->stretch[middle].number <= number)
            low = middle;
        else
            high = middle;
    }
    int64_t shift = own ? g->own_shift : g->stretch[low].place - g->stretch[low].number;
    g->volume += shift;
    for (int a = 0; a < 3; a++) {
        if (g->v[a]) g->v[a] += shift;
        if (g->x[a]) g->x[a] += shift;
    }
}

/* un_emitted_place_leaves where other ranks have particles too. */
un_status un_emitted_place_ranks(un_context *ctx, un_emitted *emitted, const un_octree *tree,
                                 const un_markers *markers, un_status status);

#endif
