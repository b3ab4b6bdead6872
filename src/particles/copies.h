/* How copies of other ranks' particles are made. Only src/particles/copies_*.c and ranks_copies.c
 * include this. */
#ifndef UN_PARTICLES_COPIES_H
#define UN_PARTICLES_COPIES_H

#include "particles/ranks.h"

#define UN_COPY_BLOCK_GROUPS UN_CORRECT_BATCH
#define UN_COPY_BLOCK (UN_COPY_BLOCK_GROUPS * UN_GROUP)

/* The box of a block's particles, or of those on one rank. */
typedef struct un_block_box {
    int64_t block;
    float lo[3], hi[3], r;
    int32_t rank;
} un_block_box;

typedef struct un_copying {
    un_context *ctx;
    un_arena *arena;
    const un_particles *particles;
    un_range own;        /* particles here: those, from 0 on */
    const float *reach;  /* of own particles */
    const uint8_t *asks; /* own particles that need others; NULL: all, and whole blocks */
    double factor;       /* times the sum of reaches */
    int32_t me, ranks;
    int32_t other_count;     /* ranks that may reach this one's particles */
    int32_t *other;          /* these ranks */
    un_groups *others;       /* the trees of their blocks */
    uint8_t *near;           /* the block goes near them */
    const un_block_box *box; /* of own blocks */
    uint8_t *wanted;         /* by rank: the group goes there */
    int32_t *set;            /* ranks that are wanted */
    int32_t set_count;
    uint8_t *split[2];   /* by rank: the first and the last group, if others have a part */
    int32_t *index, *to; /* particles, and ranks that they go to */
    int64_t count;
    size_t capacity_index, capacity_to;
    /* NULL: what nodes need does not matter */
    const un_tets *mesh;
    const un_tree_share *tree;
    const int32_t *tet; /* of own particles */
} un_copying;

/* Own particles of group or block k, of `size` particles. */
static inline un_part un_copying_members(const un_copying *c, int64_t k, int64_t size)
{
    int64_t begin = un_max64(k * size, c->own.begin), end = un_min64((k + 1) * size, c->own.end);
    return (un_part){begin - c->own.begin, end - c->own.begin};
}
/* Groups or blocks that own particles are in. */
static inline un_part un_copying_units(const un_copying *c, int64_t size)
{
    if (c->own.begin == c->own.end) return (un_part){0, 0};
    return (un_part){c->own.begin / size, (c->own.end - 1) / size + 1};
}

/* copies_near.c. Tells others the boxes of own blocks, and finds out theirs. */
un_status un_copying_tell(un_copying *copying);
/* The box of own particles of group or block k. */
un_block_box un_copying_box(const un_copying *copying, int64_t k, int64_t size);
/* Whether boxes of the k-th of the other ranks reach into this one. */
bool un_copying_reaches(const un_copying *copying, int32_t k, const un_block_box *box);

/* copies_list.c. Lists which particle goes to which rank. */
un_status un_copying_list(un_copying *copying);

#endif
