/* The private part of block_sa*.c. */
#ifndef UN_LINALG_BLOCK_SA_H
#define UN_LINALG_BLOCK_SA_H

#include "linalg/spread.h"

#define UN_SA_LEVELS_MAX 16
#define UN_SA_BLOCKS_MAX 32
#define UN_SA_BLOCK_ROWS_MIN 256
#define UN_SA_MODES 6 /* shifts and turns of a rigid body: the unknowns of an aggregate */

/* One matrix of the hierarchy, with `size` unknowns per row: 3 on the first level, 6 on others.
 * Rows are cut into fixed blocks of `grain`: a sweep is Gauss-Seidel inside a block and Jacobi
 * between blocks, and aggregates do not cross blocks. */
typedef struct un_sa_level {
    int32_t n, size;
    int64_t grain;
    un_part own;  /* rows of this rank, whole blocks; with one rank or on gathered levels: all */
    un_part made; /* rows of the next level whose aggregates are in these blocks */
    /* Several ranks: see block_sa_ranks.c. The first row of each, and the end, NULL: all are here;
     * copies of the columns of own rows; of rows of the next level, on the way down to the ranks
     * that have them there, and on the way up. */
    int64_t *cut;
    un_halo *near, *down, *up;
    int64_t *gather; /* instead of `down`, where all ranks have the next level: whose are whose */
    un_ids beside;   /* columns of own rows on other ranks */
    /* Entries off the diagonal. Row i: [row, upper) in the block and before i, [upper, outer) in
     * the block and after i, [outer, row + 1) in other blocks. */
    int32_t *row, *upper, *outer, *col;
    float *val;      /* size^2 each, by rows */
    float *diagonal; /* size^2 each */
    float *inverse;  /* of the diagonal, raised so that sweeps converge */
    float *raise;    /* size each: by how much */
    float *plain;    /* size^2: inverse of the diagonal as it is; scratch of the set-up */
    un_vec3 *place;  /* about which the row turns */
    float *scale;    /* m per unit of its rotation unknowns; NULL on the first level */
    int32_t *aggregate, *first; /* row of the next level, -1: none; by block, the first one */
    /* P to the next level by rows, size x 6 each; and its columns: which rows, which entries */
    int32_t *p_row, *p_col;
    float *p_val;
    int32_t *back_row, *back_fine, *back_at;
    float *b, *x, *r;
    size_t capacity[22];
} un_sa_level;

typedef struct un_sa {
    un_context *ctx;
    un_arena arena; /* of the set-up */
    un_sa_level level[UN_SA_LEVELS_MAX];
    int32_t level_count;
    double scale; /* of the hierarchy's matrix relative to A */
    bool dense;   /* the coarsest level has a factor, L by rows, 1 / l_ii on the diagonal */
    double *factor, *solution;
    size_t capacity_factor, capacity_solution;
    const un_block_system *system;
    un_spread *spread; /* NULL: all rows are here */
    /* of the current application */
    un_vec3 *z;
    const un_vec3 *rest;
    double rest_scale;
} un_sa;

#define UN_SA_NEED(ctx, array, capacity, count)                                                    \
    UN_TRY(un_array_need((ctx), (void **)&(array), &(capacity), (size_t)(count) + 1,               \
                         sizeof *(array)))

static inline int64_t un_sa_grain(int32_t n)
{
    return un_max64(UN_SA_BLOCK_ROWS_MIN, (n + UN_SA_BLOCKS_MAX - 1) / UN_SA_BLOCKS_MAX);
}

/* y -= A x, A of size m x n by rows; inlined with constant sizes. */
static inline void un_sa_subtract(float *y, const float *a, const float *x, const int m,
                                  const int n)
{
    for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int j = 0; j < n; j++) sum += a[i * n + j] * x[j];
        y[i] -= sum;
    }
}

/* block_sa_ranks.c */
void un_sa_forget_ranks(un_sa *sa); /* of the last set-up */
void un_sa_divide_first(un_sa *sa);
/* The columns of own rows; lists and halos. */
un_status un_sa_know_beside(un_sa *sa, int32_t l);
/* Numbers what own rows have counted in row[own.begin + 1] and so on, over all ranks; row[n] is the
 * total. */
void un_sa_number_entries(un_sa *sa, const un_sa_level *l, int32_t *row, un_part own, int32_t n);
/* Adds up numbers by block, each counted by the rank that has the block. */
void un_sa_share_counts(un_sa *sa, const un_sa_level *l, int32_t *counts);
/* Gives rows of level l + 1 to the ranks that have them there. */
un_status un_sa_divide_next(un_sa *sa, int32_t l);
/* For cycles: b of the next level to the ranks that have its rows there, and x back. */
void un_sa_go_down(un_sa *sa, int32_t l);
void un_sa_come_up(un_sa *sa, int32_t l);
/* Copies of an array of level l, `size` floats a row, in the rows beside own ones. */
static inline void un_sa_know(const un_sa_level *l, float *array, int size)
{
    if (l->near) un_halo_share(l->near, array, (size_t)size * sizeof *array);
}
/* Own rows and those beside them, ascending: their number, and the k-th. */
static inline int64_t un_sa_known_count(const un_sa_level *l)
{
    return l->beside.count + l->own.end - l->own.begin;
}
static inline int32_t un_sa_known(const un_sa_level *l, int64_t before, int64_t k)
{
    int64_t own = l->own.end - l->own.begin;
    if (k < before) return l->beside.id[k];
    return k < before + own ? (int32_t)(l->own.begin + k - before) : l->beside.id[k - own];
}
int64_t un_sa_known_before(const un_sa_level *l); /* how many of them come before own rows */

/* block_sa_transfer.c */
/* Smoothed P of level l, and P^T A P as the matrix of level l + 1. */
un_status un_sa_build_transfer(un_sa *sa, int32_t l, int32_t coarse_count);
un_status un_sa_build_coarse(un_sa *sa, int32_t l);

/* block_sa_cycle.c */
void un_sa_cycle(un_sa *sa, int32_t l); /* x from b, on level l */
un_status un_sa_factor(un_sa *sa);      /* the last level */
/* An estimate of the largest eigenvalue of D^-1 A on level l. */
double un_sa_spectral_radius(un_sa *sa, int32_t l);

#endif
