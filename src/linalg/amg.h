/* The private part of the multigrids for scalar systems; only amg*.c include this. */
#ifndef UN_LINALG_AMG_H
#define UN_LINALG_AMG_H

#include "linalg/spread.h"

#define UN_AMG_LEVELS_MAX 24
#define UN_AMG_BLOCKS_MAX 2048

enum { UN_AMG_FREE = -1, UN_AMG_OUT = -2 };

/* One matrix of the hierarchy. Rows are cut into fixed blocks of `grain`. Aggregates do not cross
 * blocks; a sweep is Gauss-Seidel inside a block and Jacobi between blocks. Of a pair of entries
 * inside a block only the lower one is stored: one thread works on a block, so a row may add to
 * earlier rows of its block. That saves half of the matrix's memory traffic. */
typedef struct un_amg_level {
    int32_t n;
    int64_t grain;
    un_part own; /* rows of this rank, whole blocks; with one rank or on gathered levels: all */
    /* Several ranks: the first row of each, and the end; copies of the columns of own rows; of rows
     * of other ranks that take their values from own coarse rows; of coarse rows, on the way down
     * to the ranks that have them on the next level, and on the way up. */
    int64_t *cut;
    un_halo *near, *far, *down, *up;
    int64_t
        *gather; /* instead of `down`, where all ranks have the next level: whose rows are whose */
    un_ids beside; /* columns of own rows on other ranks */
    /* entries a_ij with j < i in the block of i, by rows; row i starts at row[i + block] and ends
     * at row[i + block + 1]: there are gaps between blocks */
    int32_t *row, *col;
    float *val;
    /* entries that couple to other blocks, only for rows that have any; block k has the rows
     * outer_first[k] up to outer_first[k + 1] of outer_id, ascending */
    int32_t *outer_first, *outer_id, *outer_row, *outer_col;
    float *outer_val;
    float *outer_raise; /* the smoother's diagonal minus the matrix's */
    float *outer_sum;   /* scratch of the sweeps */
    float *diagonal;    /* not on the finest level */
    float *excess;      /* row sums; [Chentanez07]'s cycles only, for un_amg_residual */
    float *inverse;     /* of the smoother's diagonal; 0: no equation */
    int32_t *aggregate; /* row of the next level, -1: none; before: UN_AMG_FREE or UN_AMG_OUT */
    int32_t *first;     /* by block, and the end: its first row of the next level */
    float *b, *x;
    /* K-cycle, not on the finest level: A x, the second correction y, and A y. Cycles with
     * transfers: v is the residual, y the result of the full cycle or a second correction. */
    float *v, *y, *w;
    size_t capacity[20];
} un_amg_level;

/* Prolongation P from the next level to this one, by rows of this one, and its transpose. Plain
 * aggregation needs none: there P is 1 at a row's aggregate. */
typedef struct un_amg_transfer {
    int32_t *row, *col;
    float *val;
    int32_t *back_row, *back_col;
    float *back_val;
    size_t capacity[6];
} un_amg_transfer;

/* P where nearly all rows are means of two (amg_mean.c): row i has 1/2 at pair[i][0] and 1/2 at
 * pair[i][1], which makes 1 where both are the same; -1: none. pair[i][0] <= UN_AMG_ODD: row
 * UN_AMG_ODD - pair[i][0] of row, col and val. */
enum { UN_AMG_ODD = -2 };
typedef struct un_amg_means {
    int32_t (*pair)[2];
    int32_t *row, *col;
    float *val;
    /* Entries whose coarse row belongs to another block, sorted by that block; far_first also has
     * the end. */
    int32_t *far_first, *far_row, *far_col;
    float *far_val;
    size_t capacity[8];
} un_amg_means;

typedef enum un_amg_scheme {
    UN_AMG_PLAIN,     /* aggregates, K-cycle */
    UN_AMG_SMOOTHED,  /* smoothed aggregates, V-cycle */
    UN_AMG_CHENTANEZ, /* averages over coarse neighbours, full multigrid */
    UN_AMG_GEOMETRIC  /* halfway between two coarse places, V-cycle */
} un_amg_scheme;

/* A whole matrix by rows, during set-up: A itself or a coarse one. */
typedef struct un_amg_graph {
    int32_t n;
    const int32_t *row, *col;
    const double *val_a; /* val_a or val is set; entries of A include the diagonal */
    const float *val;
    double scale;        /* of val_a */
    const float *excess; /* row sums */
} un_amg_graph;

static inline float un_amg_entry(const un_amg_graph *g, int32_t k)
{
    return g->val_a ? (float)(g->val_a[k] * g->scale) : g->val[k];
}

/* The arrays of a coarse matrix, during set-up. */
typedef struct un_amg_full {
    int32_t *row, *col;
    float *val, *excess;
    size_t capacity[4];
} un_amg_full;

/* A contribution to entry (row, col) of a coarse matrix, from a block that does not own the row.
 * next: the next contribution for the same block, -1: none. */
typedef struct un_amg_spill {
    int32_t row, col;
    float value;
    int32_t next;
} un_amg_spill;

/* Some entries of a row that is being summed; col -1: unused. One cache line. */
#define UN_AMG_CHUNK 8
typedef struct un_amg_chunk {
    int32_t col[UN_AMG_CHUNK];
    float val[UN_AMG_CHUNK];
} un_amg_chunk;

typedef struct un_amg {
    un_context *ctx;
    un_spread *spread; /* NULL: all rows are here */
    un_amg_scheme scheme;
    int32_t aggregate_size;
    const un_csr *a;
    un_amg_level level[UN_AMG_LEVELS_MAX];
    un_amg_transfer transfer[UN_AMG_LEVELS_MAX];
    un_amg_means means[UN_AMG_LEVELS_MAX]; /* instead, for geometric transfers */
    int32_t level_count;
    double scale; /* of the hierarchy's matrix relative to A */
    /* Scale of r, from the first residual: later ones are smaller, and floats have 30 orders of
     * magnitude left. */
    double residual_scale;
    /* the coarsest level, if dense: L D L^T by rows, 1 / D on the diagonal, 0 where singular */
    bool dense;
    double *factor, *solution;
    size_t capacity_factor, capacity_solution;
    /* set-up */
    un_amg_full full[2];
    int32_t *member_first, *member, *marker;
    size_t capacity_member_first, capacity_member, capacity_marker;
    float *weight; /* by row: the sum of its row of P */
    size_t capacity_weight;
    /* geometric transfers: places and scales of the rows of a level and of the next one */
    un_sites sites;
    uint64_t *place[2];
    uint8_t *scale_of[2];
    int32_t *table;
    int32_t *far;  /* entries of P from block to block */
    uint8_t *some; /* by entry: it is not zero; over ranks */
    size_t capacity_place[2], capacity_scale_of[2], capacity_table, capacity_far, capacity_some;
    /* the lower half of a coarse matrix while it is summed, and the blocks' contributions to
     * others */
    int32_t *half_size;
    un_amg_chunk *half;
    int32_t *half_next; /* by chunk: the next chunk of its row, -1: none */
    un_amg_spill *spill;
    size_t capacity_half_size, capacity_half, capacity_half_next, capacity_spill;
} un_amg;

#define UN_AMG_NEED(ctx, array, capacity, count)                                                   \
    UN_TRY(un_array_need((ctx), (void **)&(array), &(capacity), (size_t)(count), sizeof *(array)))

static inline int64_t un_amg_blocks(const un_amg_level *level)
{
    return (level->n + level->grain - 1) / level->grain;
}
/* Blocks of this rank. */
static inline un_part un_amg_own_blocks(const un_amg_level *level)
{
    int64_t last = level->grain - 1;
    return (un_part){(level->own.begin + last) / level->grain,
                     (level->own.end + last) / level->grain};
}
static inline void un_amg_for_blocks(un_context *ctx, const un_amg_level *level,
                                     un_parallel_body *body, void *arg)
{
    un_parallel_part(ctx, level->own, level->grain, body, arg);
}
/* Have coarse levels small blocks, also in systems that are not large? */
static inline bool un_amg_small(const un_amg *amg)
{
    return amg->scheme == UN_AMG_GEOMETRIC && amg->sites.kind == UN_SITES_GRID;
}
/* Of the blocks of a level with n rows, where the system has `finest`; amg_levels.c. */
int64_t un_amg_grain(int64_t n, int64_t finest, bool small);

/* amg_levels.c */
/* Makes a level, ready to sweep, from the rows of a graph. */
un_status un_amg_build_level(un_amg *amg, un_amg_level *level, const un_amg_graph *g, bool finest);
/* Levels of at most this many rows are gathered on all ranks. */
int64_t un_amg_gathered(int64_t finest, bool small);
/* Sums rows and columns of a graph over aggregates, into amg->full[slot]. */
un_status un_amg_build_coarse(un_amg *amg, const un_amg_level *fine, const un_amg_graph *g,
                              int32_t coarse_count, int slot, un_amg_graph *coarse);
/* amg_aggregate.c: fills aggregate and first, and counts the aggregates. */
/* Closes the gaps between the rows that blocks of `grain` wrote, which makes the coarse graph.
 * Block k wrote count[k] entries from room[k] on; row[c + 1] holds the length of row c. */
void un_amg_close_rows(un_amg_full *full, int32_t coarse_count, int64_t grain, const int64_t *room,
                       const int32_t *count, un_amg_graph *coarse);
un_status un_amg_aggregate(un_amg *amg, un_amg_level *level, const un_amg_graph *g, int32_t *count);
/* A row of P while it is made: coarse rows and weights. */
#define UN_AMG_PARENTS_MAX 64
typedef struct un_amg_parents {
    int32_t count;
    int32_t id[UN_AMG_PARENTS_MAX];
    float weight[UN_AMG_PARENTS_MAX];
} un_amg_parents;
/* Makes row i of P: coarse ids in any order, none twice. It is called twice for each row. */
typedef void un_amg_row_of(const void *arg, int32_t i, un_amg_parents *parents);

/* amg_transfer.c */
/* Gathers P and its transpose, and row sums of P. */
un_status un_amg_build_transfer(un_amg *amg, const un_amg_level *level, un_amg_transfer *p,
                                int32_t coarse_count, un_amg_row_of *row_of, const void *arg);
/* P^T A P, into amg->full[slot]. diagonal: of the graph. */
un_status un_amg_build_galerkin(un_amg *amg, const un_amg_transfer *p, const un_amg_graph *g,
                                const float *diagonal, int32_t coarse_count, int slot,
                                un_amg_graph *coarse);
void un_amg_restrict(un_context *ctx, const un_amg_transfer *p, float *coarse, int32_t coarse_count,
                     const float *fine);
/* fine += P coarse, or with `set` fine = P coarse. */
void un_amg_prolong(un_context *ctx, const un_amg_transfer *p, float *fine, int32_t fine_count,
                    const float *coarse, bool set);

/* amg_mean.c */
/* other, unless NULL, has by row the two rows that it lies between; where both survive, row_of is
 * not called. */
un_status un_amg_build_means(un_amg *amg, un_amg_level *level, un_amg_means *p,
                             const int32_t (*other)[2], un_amg_row_of *row_of, const void *arg);
void un_amg_restrict_means(un_context *ctx, const un_amg_level *level, const un_amg_means *p,
                           float *coarse, const float *fine);
/* fine += P coarse. */
void un_amg_prolong_means(un_context *ctx, const un_amg_level *level, const un_amg_means *p,
                          float *fine, const float *coarse);
/* amg_edges.c: P^T A P, into amg->full[slot]; the level holds the off-diagonal entries of A. */
un_status un_amg_build_edges(un_amg *amg, const un_amg_level *level, const un_amg_means *p,
                             const float *excess, int32_t coarse_count, int slot,
                             un_amg_graph *coarse);

/* Each chooses the rows of the next level and makes P: amg_smoothed.c, amg_chentanez.c,
 * amg_geometric.c. excess, diagonal: of the graph. */
un_status un_amg_smooth_transfer(un_amg *amg, int32_t l, const un_amg_graph *g,
                                 const float *diagonal, int32_t *coarse_count);
un_status un_amg_average_transfer(un_amg *amg, int32_t l, const un_amg_graph *g,
                                  int32_t *coarse_count);
un_status un_amg_geometric_transfer(un_amg *amg, int32_t l, const un_amg_graph *g,
                                    const float *diagonal, int32_t *coarse_count);
/* amg_ranks.c: what a rank needs of the others; nothing of this is called with one rank. */
/* Rows of a graph that own rows couple to: sets `beside` and `near`. */
un_status un_amg_know_beside(un_amg *amg, int32_t l, const un_amg_graph *g);
/* The same with their couplings, those of the rows that these couple to, and places. */
un_status un_amg_know_rows(un_amg *amg, int32_t l, const un_amg_graph *g);
/* Rows of other ranks at places; places ascend, -1: none. cut and place: of the level. */
typedef struct un_amg_query {
    uint64_t *key;
    int32_t *row;
    int64_t count;
    size_t room_key, room_row;
} un_amg_query;
typedef int32_t un_amg_row_at(const void *arg, uint64_t key);
un_status un_amg_ask(un_amg *amg, const un_amg_level *level, const uint64_t *place,
                     un_amg_query *query, un_amg_row_at *row_at, const void *arg);
/* Copies of what decides rows of P, for own rows and those beside them. */
typedef struct un_amg_ways {
    int32_t *aggregate;
    int32_t (*other)[2];
    float *excess, *diagonal;
} un_amg_ways;
un_status un_amg_know_ways(un_amg *amg, const un_amg_level *level, const un_amg_ways *ways);
/* Numbers by block, of which each rank knows its own, to all. */
void un_amg_share_counts(un_amg *amg, int32_t *counts, int64_t blocks);
/* Records for the blocks of other ranks. Those that arrive are sorted by block, and within a block
 * in the order of the ranks they come from and of their lists. before: how many of a block come
 * from ranks before this one. */
typedef struct un_amg_record {
    int32_t block, row, col;
    float value;
    int32_t rank;
} un_amg_record;
typedef struct un_amg_records {
    un_amg_record *record, *sorted;
    int64_t count, sorted_count;
    size_t room, sorted_room;
    int32_t first[UN_AMG_BLOCKS_MAX + 1], before[UN_AMG_BLOCKS_MAX];
} un_amg_records;
un_status un_amg_record_add(un_amg *amg, un_amg_records *records, un_amg_record record);
un_status un_amg_records_send(un_amg *amg, const un_amg_level *level, un_amg_records *records);
void un_amg_records_free(un_amg *amg, un_amg_records *records);
/* Rows of the next level to those who have them there. */
un_status un_amg_divide_next(un_amg *amg, int32_t l, un_amg_full *full, int slot,
                             int32_t coarse_count);
un_status un_amg_list_parents(un_amg *amg, int32_t l);
void un_amg_forget_ranks(un_amg *amg);

/* amg_dense.c */
un_status un_amg_factor(un_amg *amg, const un_amg_graph *g);
void un_amg_solve_dense(un_amg *amg, int32_t n, float *x, const float *b);

/* amg_sweep.c */
/* x = M^-1 b, one forward sweep from zero; then coarse = P^T (b - A x) with aggregates, or rest =
 * b - A x, unless NULL. */
void un_amg_sweep_down(un_context *ctx, const un_amg_level *level, float *x, const float *b,
                       float *coarse, float *rest);
/* x += P (s y + t z), z may be NULL; then one backward sweep, x += M^-T (b - A x). If y is NULL,
 * only the sweep. scratch may be b itself if b is no longer needed. */
typedef struct un_amg_correction {
    const float *y, *z;
    float s, t;
} un_amg_correction;
void un_amg_sweep_up(un_context *ctx, const un_amg_level *level, float *x, const float *b,
                     float *scratch, const un_amg_correction *correction);
/* v = A x; sums: x.v, x.b, b.b, and x.w if w is given. */
void un_amg_apply(un_context *ctx, const un_amg_level *level, float *v, const float *x,
                  const float *b, const float *w, double sums[4]);
/* rest = b - A x; needs the diagonal. rest may be b. */
void un_amg_residual(un_context *ctx, const un_amg_level *level, float *rest, const float *x,
                     const float *b);
/* x += y. */
void un_amg_add(un_context *ctx, const un_amg_level *level, float *x, const float *y);
/* b -= s v; returns b.b. */
double un_amg_subtract(un_context *ctx, const un_amg_level *level, float *b, const float *v,
                       double s);

#endif
