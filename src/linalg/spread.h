/* A system whose rows several ranks share; only linalg/ includes this. */
#ifndef UN_LINALG_SPREAD_H
#define UN_LINALG_SPREAD_H

#include "linalg/linalg.h"

/* Rows are numbered over all ranks, and arrays have their full length everywhere: a rank knows its
 * own rows, and copies of those it needs. `cut` is near the ranks' rows as the caller has them, but
 * where blocks of the multigrid meet: a block is one rank's, so all that is made block by block has
 * the bits of one rank. */
struct un_spread {
    un_context *ctx;
    int64_t *first;  /* by rank: the caller's first row; and the end */
    int64_t *cut;    /* the same for the solve */
    un_range rows;   /* of this rank, by cut */
    un_halo *shift;  /* rows that a rank gets for the solve */
    un_halo *near;   /* columns of its rows */
    un_ids beside;   /* these columns */
    un_halo *pushed; /* rows of the system's `columns`; NULL: it has none */
    /* places of unknowns and their scales, if the system has sites; see amg_geometric.c */
    uint64_t *place;
    uint8_t *scale;
    size_t capacity[3];
};

/* The rows of this rank; spread may be NULL: all. */
static inline un_part un_spread_part(const un_spread *spread, int64_t n)
{
    return spread ? (un_part){spread->rows.begin, spread->rows.end} : (un_part){0, n};
}
/* Sums over all rows in fixed blocks. values adds to the sums one by one, in order. */
void un_spread_sums(un_context *ctx, const un_spread *spread, int64_t n, int32_t width,
                    un_parallel_values *values, void *arg, double *sums);
/* One after the other, without blocks. */
void un_spread_sum_in_turn(const un_spread *spread, int32_t width, un_parallel_values *values,
                           void *arg, double *sums);

/* Cuts [0, n) into ranks' parts where blocks of `grain` meet, near `first`. */
void un_spread_cut(int64_t *cut, const int64_t *first, int32_t rank_count, int64_t n,
                   int64_t grain);
int32_t un_spread_owner(const int64_t *cut, int32_t rank_count, int64_t row);

/* Rows come up many times while they are listed: most of them are left out at once, so that little
 * is left to sort. All zero at first. */
#define UN_RECENT 1024
typedef struct un_recent {
    int32_t row[UN_RECENT], rank[UN_RECENT]; /* row + 1 */
} un_recent;
static inline bool un_is_recent(un_recent *r, int32_t rank, int32_t row)
{
    uint32_t at = ((uint32_t)row + 97 * (uint32_t)rank) % UN_RECENT;
    if (r->row[at] == row + 1 && r->rank[at] == rank) return true;
    r->row[at] = row + 1;
    r->rank[at] = rank;
    return false;
}

/* Whose rows are whose, for rows that mostly belong to the rank of the one before. */
typedef struct un_owners {
    const int64_t *cut;
    int32_t ranks, last;
} un_owners;
static inline int32_t un_owner_of(un_owners *o, int64_t row)
{
    if (row < o->cut[o->last] || row >= o->cut[o->last + 1])
        o->last = un_spread_owner(o->cut, o->ranks, row);
    return o->last;
}

/* Own rows that other ranks want. Couplings are mutual, so a rank knows it without asking. */
typedef struct un_wishes {
    un_ids row, rank; /* as listed */
    un_recent recent;
    int32_t *given; /* once they are sorted: by rank, ascending, none twice */
    int64_t *count;
} un_wishes;
un_status un_wishes_add(un_context *ctx, un_wishes *w, int32_t rank, int32_t row);
/* except: sorted ones that are left out; NULL: none. */
un_status un_wishes_sort(un_context *ctx, un_wishes *w, const un_wishes *except);
/* The rows that couple to those of other ranks. */
un_status un_wishes_of_couplings(un_context *ctx, un_wishes *w, const int64_t *cut,
                                 const int32_t *row, const int32_t *col);
/* Sorts them, and plans copies of `wanted`. */
un_status un_wishes_plan(un_context *ctx, un_wishes *w, const un_wishes *except, const int64_t *cut,
                         const un_ids *wanted, un_halo **halo);
void un_wishes_free(un_context *ctx, un_wishes *w);

/* Gives every rank its rows for the solve, by cut; x and b's copy r follow. */
un_status un_spread_begin(un_spread *spread, un_context *ctx, const un_system *system, double *x,
                          int64_t grain);
/* The same for a system of blocks. */
un_status un_spread_begin_blocks(un_spread *spread, un_context *ctx, const un_block_system *system,
                                 un_vec3 *x, int64_t grain);
/* For another solve of the same system with another b and guess. size: bytes of a row of x. */
void un_spread_guess(un_spread *spread, void *x, size_t size);
/* Every rank gets to know what others have in the rows of these columns. */
un_status un_spread_know_columns(un_spread *spread, const un_columns *columns);
/* r = b, in the rows of the solve. */
void un_spread_load(un_spread *spread, void *r, const void *b, size_t size);
/* x to the caller's rows and their columns: a's rows, without its values. beside: as un_system has
 * it. */
un_status un_spread_answer(un_spread *spread, const int32_t *row, const int32_t *col, void *x,
                           size_t size, un_halo *beside);
/* Rank 0 solves by itself: for systems that are small, or that only one can solve. */
typedef un_status un_spread_solve(void *arg, const un_system *system, double *x,
                                  un_solve_report *report);
un_status un_spread_on_first(un_spread *spread, un_context *ctx, const un_system *system, double *x,
                             un_spread_solve *solve, void *arg, un_solve_report *report);
void un_spread_end(un_spread *spread);  /* frees what belongs to one solve */
void un_spread_free(un_spread *spread); /* all */

#endif
