/* Preconditioned conjugate gradients, one loop for every system of Undine [Saad 2003, algorithm
 * 9.1]:
 *
 *     1   r = b - A x,  z = M^-1 r,  p = z
 *     2   until |r| is small enough:
 *     3       alpha = r.z / p.Ap
 *     4       x += alpha p
 *     5       r -= alpha Ap
 *     6       z = M^-1 r
 *     7       beta = r.z / (r.z before)
 *     8       p = z + beta p
 *
 * Where M varies from one iteration to the next (the K-cycle of amg.c) or is not quite symmetric,
 * beta = -z.Ap / p.Ap keeps each direction conjugate to the one before [Notay 2000, flexible CG];
 * with a fixed, symmetric M the two are the same.
 *
 * The loop knows a system only by its action on vectors: solver.c applies a sparse matrix and
 * columns, block.c a matrix of 3x3 blocks, viscosity/faces.c a product that is never formed. Sums
 * over unknowns are made in fixed blocks, here and in `apply`; where ranks share the rows, each
 * works on its own and `apply` gets the rows that others hold.
 *
 * Two solvers are of another kind and have loops of their own: the K-cycle (amg.c), which takes one
 * or two steps on each level without a stopping rule, and the pressure of viscosity/volume.c, which
 * is a Chebyshev iteration around whole solves. */
#include "linalg/linalg.h"

/* Kernels are written once for both widths; each is one pass over the vectors. The products of a
 * row are summed first, then added to the total. */
static inline double row_dot(const double *a, const double *b, int64_t i, int width)
{
    if (width == 1) return a[i] * b[i];
    a += 3 * i, b += 3 * i;
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* r.z and q.z. */
static inline void products(const un_cg *cg, int64_t begin, int64_t end, double *sums, int width)
{
    const double *r = cg->r, *z = cg->z, *q = cg->q;
    double rz = sums[0], qz = sums[1];
    for (int64_t i = begin; i < end; i++) {
        rz += row_dot(r, z, i, width);
        qz += row_dot(q, z, i, width);
    }
    sums[0] = rz;
    sums[1] = qz;
}
static void product_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_cg *cg = arg;
    if (cg->width == 1)
        products(cg, begin, end, sums, 1);
    else
        products(cg, begin, end, sums, 3);
}

/* Lines 4 and 5, and |r|^2. */
static inline double advance(const un_cg *cg, int64_t begin, int64_t end, double norm, int width)
{
    double *x = cg->x, *r = cg->r;
    const double *p = cg->p, *q = cg->q;
    double alpha = cg->alpha;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t k = width * i; k < width * (i + 1); k++) {
            x[k] += alpha * p[k];
            r[k] -= alpha * q[k];
        }
        norm += row_dot(r, r, i, width);
    }
    return norm;
}
static void advance_rows(void *arg, int64_t begin, int64_t end, double *norm)
{
    const un_cg *cg = arg;
    *norm = cg->width == 1 ? advance(cg, begin, end, *norm, 1) : advance(cg, begin, end, *norm, 3);
}

static void start_rows(void *arg, int64_t begin, int64_t end)
{
    const un_cg *cg = arg;
    size_t bytes = (size_t)((end - begin) * cg->width) * sizeof *cg->p;
    memcpy(cg->p + begin * cg->width, cg->z + begin * cg->width, bytes);
}

static void clear_rows(void *arg, int64_t begin, int64_t end)
{
    const un_cg *cg = arg;
    memset(cg->q + begin * cg->width, 0, (size_t)((end - begin) * cg->width) * sizeof *cg->q);
}

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    const un_cg *cg = arg;
    double beta = cg->beta, *p = cg->p;
    const double *z = cg->z;
    for (int64_t k = begin * cg->width; k < end * cg->width; k++) p[k] = z[k] + beta * p[k];
}

/* ---- over the rows of this rank, and sums over all ---- */

static void over_rows(un_cg *cg, un_parallel_body *body)
{
    un_part own = cg->rows ? (un_part){cg->rows->begin, cg->rows->end} : (un_part){0, cg->n};
    un_parallel_part(cg->ctx, own, un_block_grain(cg->n), body, cg);
}

static void sum_rows(un_cg *cg, int32_t width, un_parallel_values *values, double *sums)
{
    if (cg->rows)
        un_ranks_sums(cg->ctx, *cg->rows, width, values, cg, sums);
    else
        un_parallel_sums(cg->ctx, cg->n, width, values, cg, sums);
}

/* z = M^-1 r; returns r.z. */
static double precondition(un_cg *cg, double *qz)
{
    double sums[2];
    cg->precondition(cg->state, cg->z, cg->r);
    sum_rows(cg, 2, product_rows, sums);
    *qz = sums[1];
    return sums[0];
}

bool un_cg_iterate(un_cg *cg, double b_norm, double tolerance, int32_t limit, int32_t *iterations,
                   double *residual)
{
    double qz;
    UN_ASSERT(cg->width == 1 || cg->width == 3);
    over_rows(cg, clear_rows);
    double rho = precondition(cg, &qz); /* 1 */
    over_rows(cg, start_rows);
    while (*iterations < limit && rho > 0) { /* 2 */
        double curvature = cg->apply(cg->state, cg->q, cg->p);
        if (!(curvature > 0) || !isfinite(curvature)) break;
        cg->alpha = rho / curvature; /* 3 */
        double norm;
        sum_rows(cg, 1, advance_rows, &norm); /* 4, 5 */
        ++*iterations;
        *residual = sqrt(norm) / b_norm;
        if (!(*residual > tolerance)) break;
        if (cg->give_up && cg->give_up(cg->state, *iterations, *residual)) break;
        double rho_next = precondition(cg, &qz);                  /* 6 */
        cg->beta = cg->varies ? -qz / curvature : rho_next / rho; /* 7 */
        rho = rho_next;
        over_rows(cg, turn_rows); /* 8 */
    }
    return rho > 0;
}
