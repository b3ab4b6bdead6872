/* Inside of the aggregation multigrid; only amg*.c include this. */
#ifndef UN_LINALG_AMG_H
#define UN_LINALG_AMG_H

#include "linalg/linalg.h"

#define UN_AMG_LEVELS_MAX 24
#define UN_AMG_BLOCKS_MAX 32

enum { UN_AMG_FREE = -1, UN_AMG_OUT = -2 };

/* One matrix of the hierarchy. Rows are cut into fixed blocks of `grain`. Aggregates do not cross
 * blocks; a sweep is Gauss-Seidel inside a block and Jacobi between blocks. Of a pair of entries
 * inside a block only the lower one is stored: a block is one thread's work, so a row may add to
 * earlier rows of its block, and half of the matrix's memory traffic is saved. */
typedef struct un_amg_level {
    int32_t n;
    int64_t grain;
    /* entries a_ij with j < i in the block of i, by rows */
    int32_t *row, *col;
    float *val;
    /* entries that leave the block, only of rows that have any; block k has the rows outer_first[k]
     * up to outer_first[k + 1] of outer_id, ascending */
    int32_t *outer_first, *outer_id, *outer_row, *outer_col;
    float *outer_val;
    float *outer_raise; /* smoother's diagonal less the matrix's */
    float *outer_sum;   /* scratch of the sweeps */
    float *diagonal;    /* not on the finest level */
    float *inverse;     /* of the smoother's diagonal; 0: no equation */
    int32_t *aggregate; /* row of the next level, -1 none; at first UN_AMG_FREE or UN_AMG_OUT */
    int32_t *first;     /* by block, and one more: its first row of the next level */
    float *b, *x;
    /* of the K-cycle, not on the finest level: A x, the second correction y, and A y */
    float *v, *y, *w;
    size_t capacity[19];
} un_amg_level;

/* A whole matrix by rows while levels are built: A itself or a coarse one. */
typedef struct un_amg_graph {
    int32_t n;
    const int32_t *row, *col;
    const double *val_a; /* one of the two; entries of A include the diagonal */
    const float *val;
    double scale;        /* of val_a */
    const float *excess; /* row sums */
} un_amg_graph;

static inline float un_amg_entry(const un_amg_graph *g, int32_t k)
{
    return g->val_a ? (float)(g->val_a[k] * g->scale) : g->val[k];
}

/* Arrays of a coarse matrix while it serves as a graph. */
typedef struct un_amg_full {
    int32_t *row, *col;
    float *val, *excess;
    size_t capacity[4];
} un_amg_full;

typedef struct un_amg {
    un_context *ctx;
    const un_csr *a;
    un_amg_level level[UN_AMG_LEVELS_MAX];
    int32_t level_count;
    double scale; /* of the hierarchy's matrix against A */
    /* Of r, from the first one: residuals only fall from there, and floats have 30 orders to go. */
    double residual_scale;
    /* the coarsest level, if dense: L D L^T by rows, 1 / D on the diagonal, 0 where singular */
    bool dense;
    double *factor, *solution;
    size_t capacity_factor, capacity_solution;
    /* set-up */
    un_amg_full full[2];
    int32_t *member_first, *member, *marker;
    size_t capacity_member_first, capacity_member, capacity_marker;
} un_amg;

#define UN_AMG_NEED(ctx, array, capacity, count)                                                   \
    UN_TRY(un_array_need((ctx), (void **)&(array), &(capacity), (size_t)(count), sizeof *(array)))

static inline int64_t un_amg_blocks(const un_amg_level *level)
{
    return (level->n + level->grain - 1) / level->grain;
}

/* amg_levels.c */
/* The rows of a graph as a level, ready to sweep. */
un_status un_amg_build_level(un_amg *amg, un_amg_level *level, const un_amg_graph *g, bool finest);
/* Sums rows and columns of a graph over aggregates, into amg->full[slot]. */
un_status un_amg_build_coarse(un_amg *amg, const un_amg_level *fine, const un_amg_graph *g,
                              int32_t coarse_count, int slot, un_amg_graph *coarse);
/* amg_aggregate.c: fills aggregate and first, gives the number of aggregates. */
un_status un_amg_aggregate(un_amg *amg, un_amg_level *level, const un_amg_graph *g, int32_t *count);
/* amg_dense.c */
un_status un_amg_factor(un_amg *amg, const un_amg_graph *g);
void un_amg_solve_dense(un_amg *amg, int32_t n, float *x, const float *b);

/* amg_sweep.c */
/* x = M^-1 b, one forward sweep from zero; then coarse = P^T (b - A x), unless coarse is NULL. */
void un_amg_sweep_down(un_context *ctx, const un_amg_level *level, float *x, const float *b,
                       float *coarse);
/* x += P (s y + t z), z may be NULL; then one backward sweep, x += M^-T (b - A x). y NULL: only the
 * sweep. scratch may be b itself where b is no longer needed. */
typedef struct un_amg_correction {
    const float *y, *z;
    float s, t;
} un_amg_correction;
void un_amg_sweep_up(un_context *ctx, const un_amg_level *level, float *x, const float *b,
                     float *scratch, const un_amg_correction *correction);
/* v = A x; sums: x.v, x.b, b.b, and x.w if w is given. */
void un_amg_apply(un_context *ctx, const un_amg_level *level, float *v, const float *x,
                  const float *b, const float *w, double sums[4]);
/* b -= s v; returns b.b. */
double un_amg_subtract(un_context *ctx, const un_amg_level *level, float *b, const float *v,
                       double s);

#endif
