/* Linalg: sparse symmetric systems. It knows no physics. */
#ifndef UN_LINALG_H
#define UN_LINALG_H

#include "base/base.h"
#include "linalg/block.h"
#include "linalg/rows.h"
#include "ranks/ranks.h"

/* Compressed sparse rows of a symmetric matrix. Every row holds its diagonal; columns ascend. */
typedef struct un_csr {
    int32_t n;
    int32_t *row; /* n + 1 */
    int32_t *col;
    double *val;
} un_csr;

/* Checks what a solver relies on: sizes, ascending columns, a diagonal in every row, symmetry up to
 * round-off, finite values. For tests and for callers that doubt their matrix. */
bool un_csr_validate(const un_csr *a, const char **reason);
/* y = A x, in these rows. */
void un_csr_apply(un_context *ctx, double *y, const un_csr *a, un_part rows, const double *x);
/* root[r], for the rows of `own`: the least of them that entries other than zero connect r with. a
 * is symmetric. */
void un_csr_parts(un_context *ctx, const un_csr *a, un_part own, int32_t *root);

/* The places of unknowns, for transfers between levels that follow a lattice; it does not matter
 * what the unknowns are. Sites are numbered in the order of their places, unknowns in the order of
 * their sites, or along a curve. */
typedef enum un_sites_kind {
    UN_SITES_NONE,
    UN_SITES_GRID, /* centres of cubes: site = x + size_x (y + size_y z) */
    UN_SITES_BCC   /* corners and centres of the leaves of an octree, and middles of faces in its
                    * boundary; places in units of half the finest leaf, from 0 to size */
} un_sites_kind;
typedef struct un_sites {
    un_sites_kind kind;
    int32_t size[3];
    const int32_t *site;   /* by unknown */
    const un_curve *curve; /* GRID: the order of rows of sites along x; NULL: that of sites */
    const uint64_t *key; /* BCC, by site: Morton code of its place; sites are numbered in the order
                          * of un_morton_order */
    /* BCC, by site: the finest level of the leaves that meet there; level_max has leaves of size 2
     */
    const uint8_t *level;
    int32_t level_max;
} un_sites;
/* GRID: what orders unknowns, from their site, and back. */
static inline uint64_t un_sites_order(const un_sites *s, int32_t x, int32_t y, int32_t z)
{
    uint64_t row = s->curve ? (uint64_t)un_curve_step(s->curve, y, z)
                            : (uint64_t)y + (uint64_t)s->size[1] * (uint64_t)z;
    return (uint64_t)x + (uint64_t)s->size[0] * row;
}
static inline void un_sites_place(const un_sites *s, uint64_t order, int32_t at[3])
{
    /* sites, and steps of a curve with theirs, are fewer than 2^32 */
    uint32_t row = (uint32_t)order / (uint32_t)s->size[0];
    at[0] = (int32_t)((uint32_t)order % (uint32_t)s->size[0]);
    at[1] = (int32_t)(row % (uint32_t)s->size[1]);
    at[2] = (int32_t)(row / (uint32_t)s->size[1]);
    if (s->curve) (void)un_curve_row(s->curve, row, &at[1], &at[2]);
}
static inline uint64_t un_sites_order_of(const un_sites *s, int32_t site)
{
    int32_t row = site / s->size[0];
    if (!s->curve) return (uint64_t)site;
    return un_sites_order(s, site % s->size[0], row % s->size[1], row / s->size[1]);
}
static inline int32_t un_sites_of_order(const un_sites *s, uint64_t order)
{
    int32_t at[3];
    if (!s->curve) return (int32_t)order;
    un_sites_place(s, order, at);
    return at[0] + s->size[0] * (at[1] + s->size[1] * at[2]);
}

/* Columns of a matrix C, mostly zero. A body that the liquid moves has six, one for each of its
 * free motions, scaled such that C C^T = dt J M^-1 J^T, where J^T p is the pressure's force on it
 * and M its mass. The product couples everything that the body touches, and is never formed. */
typedef struct un_columns {
    int32_t count;
    const int32_t *first; /* count + 1 */
    const int32_t *row;   /* ascending in each column */
    const double *val;
} un_columns;

/* (A + C C^T) x = b. */
typedef struct un_system {
    const un_csr *a;
    const un_columns *columns; /* NULL: none */
    int32_t weak;              /* this many of them, the last, are left out of the preconditioner */
    const double *b;
    const un_sites *sites; /* of its unknowns; NULL: not known */
    /* Rows that this rank holds, where several share the system; NULL: all. See below. */
    const un_range *rows;
    /* The same by rank, its first row and the end, and copies of the columns of own rows, where
     * they are known; NULL: ranks ask one another. */
    const int64_t *first;
    un_halo *beside;
    /* All but b is that of the last solve: what was found out about it serves again. */
    bool again;
} un_system;

/* A system of several ranks. Rows are numbered over all of them, and each holds a range, in the
 * order of ranks; it may be empty. Arrays have their full length, and indices, row[i] included, are
 * those of one rank: pages that nobody touches cost nothing. A rank provides
 *
 *     a->n, a->row[n]                   rows and entries of all ranks;
 *     a->row[begin] to a->row[end]      and their entries: columns are any rows;
 *     columns                           all of them, the same on all ranks;
 *     b, x, sites->site                 in [begin, end);
 *     sites->key and level              at the sites of these rows;
 *
 * and calls un_solver_solve together with all others. It gets x in its rows and in their columns,
 * with the bits of one rank, and the same report everywhere. a->row, col and val need room for all
 * rows and entries: the solve puts rows of other ranks there, unchanged. Where row i has an entry
 * in column j, row j has one in column i. Large systems are solved by all ranks
 * (UN_SOLVER_GEOMETRIC, UN_SOLVER_JACOBI, without columns UN_SOLVER_AMG), others by rank 0, which
 * then holds them whole. */

/* Systems of fewer rows are solved by rank 0: messages would take longer. */
#define UN_SPREAD_ROWS 16384

typedef enum un_solver_kind {
    UN_SOLVER_AUTO, /* chosen by the system's size and stencil */
    UN_SOLVER_JACOBI,
    UN_SOLVER_IC,
    UN_SOLVER_MIC,
    UN_SOLVER_AMG,
    UN_SOLVER_SA,
    UN_SOLVER_CHENTANEZ,
    UN_SOLVER_GEOMETRIC, /* without sites: UN_SOLVER_AMG */
    UN_SOLVER_PETSC,     /* hypre's, where the build has it */
    UN_SOLVER_KIND_COUNT
} un_solver_kind;
/* "auto", "jacobi", ..., NULL: the words of solver.kind. */
extern const char *const un_solver_kind_names[UN_SOLVER_KIND_COUNT + 1];
bool un_solver_kind_available(un_solver_kind kind);   /* in this build */
un_solver_kind un_solver_kind_find(const char *name); /* UN_SOLVER_KIND_COUNT: unknown */

typedef struct un_solve_report {
    un_solver_kind kind; /* the last one used; UN_SOLVER_AUTO if none was needed */
    int32_t iterations;
    double residual; /* |b - A x| / |b|, 2-norm, b without its incompatible part */
    bool converged;
    bool finite;             /* false: the matrix or the right-hand side held a NaN or infinity */
    int32_t component_count; /* disconnected parts of the system */
    int32_t singular_count;  /* of these, parts determined only up to a constant */
    double seconds_setup;    /* of the preconditioner */
} un_solve_report;

/* A solver keeps its scratch between solves. If it does not converge, the report says so; the
 * status is for errors of memory, and of files if systems are dumped. */
typedef struct un_solver un_solver;

un_status un_solver_create(un_context *ctx, un_solver **solver);
void un_solver_destroy(un_solver *solver);
/* Gives back the memory of the last solve. The next one begins anew. */
void un_solver_release(un_solver *solver);
void un_solver_set_kind(un_solver *solver, un_solver_kind kind); /* UN_SOLVER_AUTO at first */
/* Writes the system of solve 1, 1 + every, 1 + 2 every, ... into a folder, which is created
 * (dump.c). NULL: stops that. */
un_status un_solver_set_dump(un_solver *solver, const char *folder, int32_t every);
/* About how many bytes it takes for this many unknowns, without the matrix, b and x. */
double un_solver_bytes(double unknowns);

/* Solves the system from the guess in x, to |r| <= tolerance |b|. A is symmetric positive
 * semi-definite, and none of its row sums is negative, up to round-off. Parts of its graph whose
 * rows all sum to zero are singular: there b is made compatible and x keeps the mean of its guess,
 * unless a column fixes that mean. Rows with a zero diagonal give x = 0. Each column costs one
 * application of the preconditioner, and a vector. */
un_status un_solver_solve(un_solver *solver, const un_system *system, double *x, double tolerance,
                          int32_t iteration_limit, un_solve_report *report);

/* ---- conjugate gradients for anything that acts on vectors (cg.c) ---- */

typedef struct un_cg {
    un_context *ctx;
    int32_t n, width;     /* rows, and unknowns in each: 1 or 3 */
    const un_range *rows; /* of this rank; NULL: all are here */
    double *x;            /* the guess, then the answer */
    double *r;            /* b - A x, at the start and at the end */
    double *z, *p, *q;    /* scratch of the same size */
    void *state;          /* for the caller's functions: */
    double (*apply)(void *state, double *q, const double *p);          /* q = A p; returns p.q */
    void (*precondition)(void *state, double *z, const double *r);     /* z = M^-1 r */
    bool (*give_up)(void *state, int32_t iterations, double residual); /* NULL: never */
    bool varies;        /* M depends on r, or is not symmetric */
    double alpha, beta; /* of the current iteration */
} un_cg;

/* Iterates until |r| <= tolerance b_norm. Adds to iterations, up to limit; residual: |r| / b_norm
 * after the last one. false: M turned out not to be positive. */
bool un_cg_iterate(un_cg *cg, double b_norm, double tolerance, int32_t limit, int32_t *iterations,
                   double *residual);

/* ---- Matrix Market files (dump.c) ---- */

/* NNNNNN.mtx the matrix, lower half; NNNNNN_b.mtx and NNNNNN_x.mtx the right-hand side and the
 * guess; NNNNNN_places.mtx, where sites are known, x y z of each unknown and, with BCC, its
 * level; NNNNNN_columns.mtx C, where there are columns. Each appears under its name only when
 * complete. */
un_status un_system_write(un_context *ctx, const char *folder, int32_t number,
                          const un_system *system, const double *x);
/* A system read back; free it with un_system_free. sites.kind tells whether sites were known,
 * columns.count whether there were columns. */
typedef struct un_system_file {
    un_csr a;
    un_columns columns;
    double *b, *x;
    un_sites sites; /* of this struct: it must stay where it is */
    un_curve curve;
    int32_t *site;
    uint64_t *key;
    uint8_t *level;
    int32_t *column_first, *column_row;
    double *column_val;
} un_system_file;
un_status un_system_read(un_context *ctx, const char *folder, int32_t number, un_system_file *file);
void un_system_free(un_context *ctx, un_system_file *file);

/* ---- parts of a system of several ranks (joint.c) ---- */

/* Sets of ids, ascending once they are sorted. */
typedef struct un_ids {
    int32_t *id;
    int64_t count;
    size_t room;
} un_ids;
un_status un_ids_add(un_context *ctx, un_ids *ids, int32_t id); /* unless it is the last one */
un_status un_ids_append(un_context *ctx, un_ids *ids, int32_t id);
void un_ids_sort(un_ids *ids);                      /* none twice */
int64_t un_ids_find(const un_ids *ids, int32_t id); /* -1: not there */

/* Rows are joined by their couplings. Each rank has done so with its own rows: root[i] is the least
 * of its rows that row i is joined to. Those that other ranks' rows join, in all ranks alike: */
typedef struct un_joint {
    int64_t count;
    int32_t *id;   /* such roots, ascending */
    int32_t *root; /* the first of those that are one part, as an index into id */
    double *sums;  /* for the caller, at first 0: so many for each, */
    double *more;  /* and so many besides */
    int32_t width, more_count;
} un_joint;
/* beside: rows of others that own rows couple to; root is shared with these by `near`. */
un_status un_joint_build(un_context *ctx, const un_csr *a, un_part own, int32_t *root,
                         un_halo *near, int32_t width, int32_t more, un_joint *joint);
int64_t un_joint_find(const un_joint *joint, int32_t id); /* -1: of one rank alone */
/* Adds up the sums of all ranks, which are whole numbers, and those of each part, at its first. */
void un_joint_sum(un_context *ctx, un_joint *joint);
void un_joint_free(un_context *ctx, un_joint *joint);

/* ---- preconditioners ---- */

typedef struct un_spread un_spread;

/* A preconditioner as CG sees it: set-up for a matrix, whose unknowns may have sites and whose
 * largest diagonal is known, then z = M^-1 r for a symmetric positive definite M. */
typedef struct un_preconditioner {
    void *state;
    un_status (*setup)(void *state, const un_csr *a, const un_sites *sites, double largest);
    void (*apply)(void *state, double *z, const double *r);
    void (*destroy)(void *state);
    bool varies; /* M depends on r, or is not symmetric: CG must be flexible */
    /* Before setup: which rows are this rank's; NULL: all. A preconditioner without it works on one
     * rank only. */
    void (*spread)(void *state, un_spread *spread);
    void (*again)(void *state); /* instead of set-up, for another b; NULL: nothing to do */
} un_preconditioner;

un_status un_jacobi_create(un_context *ctx, un_preconditioner *preconditioner);

/* Incomplete Cholesky without fill, in fixed blocks of rows (ic.c). */
un_status un_ic_create(un_context *ctx, un_preconditioner *preconditioner);
/* Modified incomplete Cholesky without fill, in fixed blocks of rows (mic.c). */
un_status un_mic_create(un_context *ctx, un_preconditioner *preconditioner);
/* Plain-aggregation multigrid with K-cycle (amg.c). */
un_status un_amg_create(un_context *ctx, un_preconditioner *preconditioner);
/* Multigrid with other transfers and cycles (amg.c). */
un_status un_smoothed_create(un_context *ctx, un_preconditioner *preconditioner);
un_status un_chentanez_create(un_context *ctx, un_preconditioner *preconditioner);
un_status un_geometric_create(un_context *ctx, un_preconditioner *preconditioner);
/* BoomerAMG of hypre, through PETSc; in builds with UN_WITH_PETSC (petsc.c). */
un_status un_petsc_create(un_context *ctx, un_preconditioner *preconditioner);

#endif
