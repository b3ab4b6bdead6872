/* Particles of many sizes over ranks: who has which, and copies of others' (ranks.c,
 * ranks_copies.c). Included in the middle of particles.h, of which it needs what comes before. */
#ifndef UN_PARTICLES_SHARE_H
#define UN_PARTICLES_SHARE_H

/* Over ranks (ranks.c): what is this one's. Sorted particles lie along the curve, and every rank
 * has a range of them, its own. Beside them it may have copies of others: whole groups of eight as
 * on one rank, all in the order of one rank, so that kernels see the same groups in the same order.
 * Own ones follow one another. */
typedef struct un_particle_share {
    un_context *ctx;
    un_range own;   /* numbers of its own particles on one rank; end - begin of them, of total */
    int32_t begin;  /* the first of them here */
    int64_t *group; /* by group here: its number on one rank, ascending */
    size_t capacity_group;
    /* From resizing to sorting, when there are no copies: by particle, its number on one rank,
     * ascending; of id_total. own is then undefined. */
    uint32_t *id;
    int64_t id_total;
    size_t capacity_id;
    uint8_t
        *beside; /* by particle, after sorting: its tet has a node of another rank than its own */
    size_t capacity_beside;
    un_exchange *copies;  /* own particles to the ranks that have copies; NULL: none */
    un_particles arrived; /* room for what comes from others */
    char *room;           /* for other arrays */
    size_t capacity_room;
    size_t halo_bytes, move_bytes; /* sent so far: copies; particles that change ranks */
    int64_t moved, copied;         /* particles sent so far */
} un_particle_share;
/* The number on one rank of a particle here, between sorting and resizing. */
static inline int64_t un_particle_number(const un_particle_share *s, int64_t q)
{
    return s ? UN_GROUP * s->group[q / UN_GROUP] + q % UN_GROUP : q;
}

/* This rank's own of `count` particles here, between sorting and resizing. */
static inline un_part un_particle_own(const un_particle_share *s, int64_t count)
{
    if (!s) return (un_part){0, count};
    return (un_part){s->begin, s->begin + s->own.end - s->own.begin};
}

/* ---- markers ---- */

typedef struct un_markers un_markers;

void un_particle_share_free(un_particle_share *share);
/* As un_markers_sort, where every rank has own particles only, numbered in share->id, wherever they
 * lie. Afterwards each has those in its own tets, and copies of those that its nodes and its
 * particles' corrections need. */
un_status un_markers_sort_ranks(un_context *ctx, un_arena *arena, un_markers *markers,
                                const un_tets *mesh, const un_tree_share *tree);
/* As un_markers_sort_leaves, of leaves that ranks share. Afterwards each has the particles in its
 * own leaves and no copies; bins->all is set. */
un_status un_markers_sort_leaves_ranks(un_context *ctx, un_arena *arena, un_markers *markers,
                                       const un_leaves *leaves, const un_bodies *bodies);
/* From here on particles are known by the numbers that they have; as after resizing. */
un_status un_particle_share_number(un_particle_share *share, const un_particles *particles);
/* Copies of particles get their owners' values. Arrays are those of all particles here; `to` of the
 * fields is not used. Nothing happens on one rank. */
un_status un_particle_refresh(un_particle_share *share, const un_field *fields, int32_t count);
/* Only own particles are left, and arrays of theirs (size: bytes of an element). */
void un_markers_drop_copies(un_markers *markers, const un_layered *arrays, int32_t count);
/* After un_markers_drop_copies: copies of all whole groups that own particles reach where they are
 * now, closer than factor times the sum of radii. reach: by own particle, instead of its radius;
 * NULL: that. The arrays have room for all, or are made larger: *array is allocated. */
typedef struct un_copied {
    void *array; /* address of the pointer */
    size_t *capacity;
    size_t size;
    const char *name;
} un_copied;
un_status un_markers_fetch(un_context *ctx, un_arena *arena, un_markers *markers,
                           const float *reach, double factor, const un_copied *arrays,
                           int32_t count);
/* For position correction, of markers without copies: gets those of what own particles may touch
 * where they are now; and drops them again. Nothing happens on one rank. */
un_status un_markers_fetch_touching(un_context *ctx, un_arena *arena, un_markers *markers);
void un_markers_drop_touching(un_markers *markers);

#endif
