/* Sparse symmetric systems with three unknowns per row, such as a velocity at a node. Included
 * through linalg.h. */
#ifndef UN_LINALG_BLOCK_H
#define UN_LINALG_BLOCK_H

#include "base/base.h"
#include "ranks/ranks.h"

/* Compressed sparse rows of 3x3 blocks, each by its rows. Every row holds its diagonal block;
 * columns ascend; the block at (j, i) is the transpose of that at (i, j). */
typedef struct un_block_csr {
    int32_t n; /* rows of blocks */
    int32_t *row, *col;
    double (*val)[9];
} un_block_csr;

static inline un_vec3 un_block_times(const double *a, un_vec3 x)
{
    return un_v3(a[0] * x.x + a[1] * x.y + a[2] * x.z, a[3] * x.x + a[4] * x.y + a[5] * x.z,
                 a[6] * x.x + a[7] * x.y + a[8] * x.z);
}

static inline void un_block_product(double *out, const double *a, const double *b)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

/* As un_csr_validate. */
bool un_block_csr_validate(const un_block_csr *a, const char **reason);
void un_block_csr_apply(un_context *ctx, un_vec3 *y, const un_block_csr *a, const un_vec3 *x);

typedef enum un_block_kind {
    UN_BLOCK_AUTO, /* chosen by the system's size and how weak its diagonal is */
    UN_BLOCK_JACOBI,
    UN_BLOCK_IC,
    UN_BLOCK_SA,
    UN_BLOCK_KIND_COUNT
} un_block_kind;
/* "auto", "jacobi", "ic", "sa", NULL. */
extern const char *const un_block_kind_names[UN_BLOCK_KIND_COUNT + 1];

/* The matrix, and what multigrid needs to know about its rows: their places, because the slowly
 * decaying errors of such systems move whole parts nearly as rigid bodies. */
typedef struct un_block_system {
    const un_block_csr *a; /* positive definite; rows of a zero diagonal give x = 0 */
    const un_vec3 *b;
    const un_vec3 *place;    /* of rows */
    const double (*free)[9]; /* of rows: projection onto the part of the motion that its neighbours
                                determine; NULL: all of it, everywhere */
    bool same;               /* only b has changed since the last solve: nothing is set up again */
    /* Rows that this rank holds, where several share the system; NULL: all. As in un_system: this
     * rank provides a's rows and entries, b, x, place and free in this range, a->row[n] too, and
     * gets x in them and in their columns; all arrays have room for all rows and entries. */
    const un_range *rows;
} un_block_system;

typedef struct un_block_report {
    un_block_kind kind; /* the last one used; UN_BLOCK_AUTO if none was needed */
    int32_t iterations;
    double residual; /* |b - A x| / |b|, 2-norm */
    bool converged;
    bool finite;          /* false: the matrix or the right-hand side held a NaN or infinity */
    int32_t level_count;  /* of multigrid */
    double complexity;    /* of multigrid: entries of all levels / those of the first */
    double seconds_setup; /* of preconditioners */
} un_block_report;

/* Keeps its scratch between solves. If it does not converge, the report says so; it is no error. */
typedef struct un_block_solver un_block_solver;
un_status un_block_solver_create(un_context *ctx, un_block_solver **solver);
void un_block_solver_destroy(un_block_solver *solver);
void un_block_solver_set_kind(un_block_solver *solver, un_block_kind kind);
/* Solves from the guess in x, to |r| <= tolerance |b|. */
un_status un_block_solver_solve(un_block_solver *solver, const un_block_system *system, un_vec3 *x,
                                double tolerance, int32_t iteration_limit, un_block_report *report);
/* About how many bytes it takes for this many rows, without the matrix, b and x. */
double un_block_solver_bytes(double rows);

/* ---- preconditioners ---- */

struct un_spread;
typedef struct un_block_preconditioner {
    void *state;
    un_status (*setup)(void *state, const un_block_system *system, un_block_report *report);
    void (*again)(void *state); /* instead of set-up, for another b; NULL: nothing to do */
    void (*apply)(void *state, un_vec3 *z, const un_vec3 *r);
    void (*destroy)(void *state);
    /* Before setup: which rows are this rank's; NULL: all. Incomplete Cholesky has none: it works
     * on one rank only. */
    void (*spread)(void *state, struct un_spread *spread);
} un_block_preconditioner;

/* The diagonal blocks (block_local.c). */
un_status un_block_jacobi_create(un_context *ctx, un_block_preconditioner *m);
/* Incomplete Cholesky without fill, in fixed blocks of rows (block_local.c). */
un_status un_block_ic_create(un_context *ctx, un_block_preconditioner *m);
/* Smoothed aggregation with rigid motions (block_sa.c). */
un_status un_block_sa_create(un_context *ctx, un_block_preconditioner *m);

/* Inverse of a symmetric positive definite matrix of size <= 6, stored by rows, in place. Where a
 * pivot is not above least times its diagonal entry, its row and column become zero: there is no
 * equation. Returns how many were kept. */
int un_small_inverse(double *a, int size, double least);

#endif
