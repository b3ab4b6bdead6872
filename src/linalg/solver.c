/* Preconditioned conjugate gradients for symmetric positive semi-definite systems.
 *
 *     p = z = M^-1 r, rho = r.z
 *     alpha = rho / p.Ap;  x += alpha p;  r -= alpha Ap
 *     z = M^-1 r;  beta = r.z / rho;  p = z + beta p                 [Saad 2003, algorithm 9.1]
 *
 * Where M varies from one iteration to the next (the K-cycle of amg.c), beta = -z.Ap / p.Ap keeps
 * each direction conjugate to the one before [Notay 2000, flexible CG]; with a fixed M the two are
 * the same.
 *
 * A system may fall into disconnected components (drops). A component whose rows all sum to zero
 * (a closed, full tank) is singular: its null space, the constants, is projected out of b, of each
 * preconditioned residual and of the answer. CG itself runs over all components at once; with the
 * null space removed that is one well-posed problem. */
#include "linalg/components.h"
#include "linalg/dump.h"

struct un_solver {
    un_context *ctx;
    un_solver_kind kind;
    un_preconditioner preconditioner[UN_SOLVER_KIND_COUNT]; /* made when first used */
    un_components parts;
    un_sites sites;
    char *dump; /* folder, NULL: none */
    int32_t dump_every, solve_count;
    double *r, *z, *p, *q;
    size_t capacity_r, capacity_z, capacity_p, capacity_q;
    /* of the solve under way */
    const un_csr *a;
    const double *b;
    double *x;
    double alpha, beta;
};

const char *const un_solver_kind_names[UN_SOLVER_KIND_COUNT + 1] = {
    [UN_SOLVER_AUTO] = "auto",
    [UN_SOLVER_JACOBI] = "jacobi",
    [UN_SOLVER_IC] = "ic",
    [UN_SOLVER_MIC] = "mic",
    [UN_SOLVER_AMG] = "amg",
    [UN_SOLVER_SA] = "sa",
    [UN_SOLVER_CHENTANEZ] = "chentanez",
    [UN_SOLVER_GEOMETRIC] = "geometric",
    [UN_SOLVER_PETSC] = "petsc",
};

un_solver_kind un_solver_kind_find(const char *name)
{
    int k = 0;
    while (k < UN_SOLVER_KIND_COUNT && strcmp(un_solver_kind_names[k], name) != 0) k++;
    return (un_solver_kind)k;
}

static un_status (*const create[UN_SOLVER_KIND_COUNT])(un_context *, un_preconditioner *) = {
    [UN_SOLVER_JACOBI] = un_jacobi_create,
    [UN_SOLVER_IC] = un_ic_create,
    [UN_SOLVER_MIC] = un_mic_create,
    [UN_SOLVER_AMG] = un_amg_create,
    [UN_SOLVER_SA] = un_smoothed_create,
    [UN_SOLVER_CHENTANEZ] = un_chentanez_create,
    [UN_SOLVER_GEOMETRIC] = un_geometric_create,
#ifdef UN_WITH_PETSC
    [UN_SOLVER_PETSC] = un_petsc_create,
#endif
};

bool un_solver_kind_available(un_solver_kind kind)
{
    return kind == UN_SOLVER_AUTO || create[kind];
}

/* Auto: from how many rows on multigrid is quicker, and what is before. From zero to 1e-4, one
 * thread, milliseconds of processor time (bench/solvers.c; grid made, tet dumped from a dam break):
 *
 *     grid  rows   2877   5608   9683  22988      tet  rows   3484   8769  17297  29811  47063
 *     mic           0.6    1.4    4.7   14.8    jacobi         1.1    3.3    7.6   19.6   36.1
 *     amg           0.9    1.9    3.7    9.1    amg            1.6    5.2   10.8   19.6   32.9
 *     geometric     0.8    1.8    3.6    8.0    geometric      1.5    5.3   10.9   18.0   31.2
 *
 * MIC(0) is at its best on stencils without common neighbours, numbered row by row; along the
 * Morton curve it takes as many iterations as Jacobi. The limit for tets is below the crossing:
 * harder systems (long basins, closed tanks) move that, and nothing below it takes long. */
#define NARROW_ROW 8 /* entries */
#define NARROW_MULTIGRID_ROWS 6000
#define WIDE_MULTIGRID_ROWS 15000

static un_solver_kind choose(const un_csr *a)
{
    bool narrow = a->row[a->n] <= NARROW_ROW * (int64_t)a->n;
    if (a->n >= (narrow ? NARROW_MULTIGRID_ROWS : WIDE_MULTIGRID_ROWS)) return UN_SOLVER_GEOMETRIC;
    return narrow ? UN_SOLVER_MIC : UN_SOLVER_JACOBI;
}

double un_solver_bytes(double unknowns)
{
    /* vectors and labels of CG; what geometric multigrid took on grids and tets */
    return unknowns * (4 * 8 + 5 + (unknowns < NARROW_MULTIGRID_ROWS ? 8 : 158));
}

un_status un_solver_create(un_context *ctx, un_solver **solver)
{
    un_solver *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = s->parts.ctx = ctx;
    *solver = s;
    return UN_OK;
}

void un_solver_destroy(un_solver *s)
{
    if (!s) return;
    for (int k = 0; k < UN_SOLVER_KIND_COUNT; k++)
        if (s->preconditioner[k].state) s->preconditioner[k].destroy(s->preconditioner[k].state);
    un_components_free(&s->parts);
    un_free(s->ctx, s->dump);
    void *blocks[] = {s->r, s->z, s->p, s->q};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(s->ctx, blocks[i]);
    un_free(s->ctx, s);
}

void un_solver_set_kind(un_solver *s, un_solver_kind kind)
{
    UN_ASSERT(un_solver_kind_available(kind));
    s->kind = kind;
}

void un_solver_set_sites(un_solver *s, const un_sites *sites)
{
    s->sites = sites ? *sites : (un_sites){.kind = UN_SITES_NONE};
}

un_status un_solver_set_dump(un_solver *s, const char *folder, int32_t every)
{
    un_free(s->ctx, s->dump);
    s->dump = NULL;
    s->dump_every = every;
    s->solve_count = 0;
    if (!folder) return UN_OK;
    UN_TRY(un_system_folder(s->ctx, folder));
    s->dump = un_strdup(s->ctx, folder);
    return s->dump ? UN_OK : UN_ERROR_MEMORY;
}

/* ---- the kernels of an iteration, each one pass over the vectors ---- */

/* r = b, q = 0. */
static void load_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    memcpy(s->r + begin, s->b + begin, (size_t)(end - begin) * sizeof *s->r);
    memset(s->q + begin, 0, (size_t)(end - begin) * sizeof *s->q);
}

/* r = r - A x, and |r|^2; r holds b. */
static double residual_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    const int32_t *row = s->a->row, *col = s->a->col;
    const double *val = s->a->val;
    double norm = 0;
    for (int64_t i = begin; i < end; i++) {
        double sum = s->r[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum -= val[k] * s->x[col[k]];
        s->r[i] = sum;
        norm += sum * sum;
    }
    return norm;
}

static double norm_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double norm = 0;
    for (int64_t i = begin; i < end; i++) norm += s->r[i] * s->r[i];
    return norm;
}

/* q = A p, and p.q. */
static double direction_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    const int32_t *row = s->a->row, *col = s->a->col;
    const double *val = s->a->val, *p = s->p;
    double product = 0;
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum += val[k] * p[col[k]];
        s->q[i] = sum;
        product += sum * p[i];
    }
    return product;
}

/* x += alpha p, r -= alpha q, and |r|^2. */
static double advance_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double norm = 0, alpha = s->alpha;
    for (int64_t i = begin; i < end; i++) {
        s->x[i] += alpha * s->p[i];
        double r = s->r[i] - alpha * s->q[i];
        s->r[i] = r;
        norm += r * r;
    }
    return norm;
}

/* r.z and q.z. */
static void product_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    un_solver *s = arg;
    double rz = 0, qz = 0;
    for (int64_t i = begin; i < end; i++) {
        rz += s->r[i] * s->z[i];
        qz += s->q[i] * s->z[i];
    }
    sums[0] += rz;
    sums[1] += qz;
}

static void start_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    memcpy(s->p + begin, s->z + begin, (size_t)(end - begin) * sizeof *s->p);
}

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double beta = s->beta;
    for (int64_t i = begin; i < end; i++) s->p[i] = s->z[i] + beta * s->p[i];
}

/* z = M^-1 r, and r.z. */
static double precondition(un_solver *s, const un_preconditioner *m, double *qz)
{
    double sums[2];
    m->apply(m->state, s->z, s->r);
    un_components_remove_means(&s->parts, s->z);
    un_parallel_sums(s->ctx, s->a->n, 2, product_rows, s, sums);
    *qz = sums[1];
    return sums[0];
}

/* The guess, made finite and zero in empty rows; its largest value. */
static double guess_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double max = 0;
    for (int64_t i = begin; i < end; i++) {
        if (!isfinite(s->x[i])) s->x[i] = 0;
        if (s->parts.singular_count > 0 && s->parts.code[i] == UN_EMPTY) s->x[i] = 0;
        max = fabs(s->x[i]) > max ? fabs(s->x[i]) : max;
    }
    return max;
}

/* Conjugate gradients from x, whose residual r holds. UN_SOLVER_AUTO is not a kind here. false: the
 * preconditioner turned out not to be positive. */
static un_status iterate(un_solver *s, un_solver_kind kind, double b_norm, double tolerance,
                         int32_t iteration_limit, un_solve_report *report, bool *positive)
{
    un_context *ctx = s->ctx;
    const un_csr *a = s->a;
    int64_t grain = un_block_grain(a->n);
    un_preconditioner *m = &s->preconditioner[kind];
    report->kind = kind;
    double start = un_seconds(), qz;
    if (!m->state) UN_TRY(create[kind](ctx, m));
    UN_TRY(m->setup(m->state, a, &s->sites, s->parts.largest));
    report->seconds_setup += un_seconds() - start;
    double rho = precondition(s, m, &qz);
    un_parallel_for(ctx, a->n, grain, start_rows, s);
    while (report->iterations < iteration_limit && rho > 0) {
        double curvature = un_parallel_sum(ctx, a->n, direction_rows, s);
        if (!(curvature > 0) || !isfinite(curvature)) break;
        s->alpha = rho / curvature;
        double r_norm = sqrt(un_parallel_sum(ctx, a->n, advance_rows, s));
        report->iterations++;
        report->residual = r_norm / b_norm;
        if (!(report->residual > tolerance)) break;
        double rho_next = precondition(s, m, &qz);
        s->beta = m->varies ? -qz / curvature : rho_next / rho;
        rho = rho_next;
        un_parallel_for(ctx, a->n, grain, turn_rows, s);
    }
    *positive = rho > 0;
    return UN_OK;
}

un_status un_solver_solve(un_solver *s, const un_csr *a, double *x, const double *b,
                          double tolerance, int32_t iteration_limit, un_solve_report *report)
{
    un_context *ctx = s->ctx;
    size_t n = (size_t)a->n;
    *report = (un_solve_report){.converged = true, .finite = true};
    int32_t number = ++s->solve_count;
    if (a->n == 0) return UN_OK;
    if (s->dump && (number - 1) % s->dump_every == 0)
        UN_TRY(un_system_write(ctx, s->dump, number, a, b, x, &s->sites));
    UN_TRY(un_array_need(ctx, (void **)&s->r, &s->capacity_r, n, sizeof *s->r));
    UN_TRY(un_array_need(ctx, (void **)&s->z, &s->capacity_z, n, sizeof *s->z));
    UN_TRY(un_array_need(ctx, (void **)&s->p, &s->capacity_p, n, sizeof *s->p));
    UN_TRY(un_array_need(ctx, (void **)&s->q, &s->capacity_q, n, sizeof *s->q));
    s->a = a;
    s->b = b;
    s->x = x;
    UN_TRY(un_components_find(&s->parts, a, &report->finite));
    report->component_count = s->parts.count;
    report->singular_count = s->parts.singular_count;

    int64_t grain = un_block_grain(a->n);
    un_parallel_for(ctx, a->n, grain, load_rows, s);
    un_components_remove_means(&s->parts, s->r);
    double b_norm = sqrt(un_parallel_sum(ctx, a->n, norm_rows, s));
    if (!isfinite(b_norm)) report->finite = false;
    if (!report->finite || b_norm == 0) {
        report->converged = report->finite;
        memset(x, 0, n * sizeof *x);
        return UN_OK;
    }
    double r_norm = b_norm;
    if (un_parallel_max(ctx, a->n, guess_rows, s) > 0)
        r_norm = sqrt(un_parallel_sum(ctx, a->n, residual_rows, s));
    if (!(r_norm <= b_norm)) { /* the guess is worse than none */
        memset(x, 0, n * sizeof *x);
        un_parallel_for(ctx, a->n, grain, load_rows, s);
        un_components_remove_means(&s->parts, s->r);
        r_norm = b_norm;
    }
    report->residual = r_norm / b_norm;
    if (report->residual <= tolerance) return UN_OK;

    un_solver_kind kind = s->kind;
    if (kind == UN_SOLVER_AUTO) kind = choose(a);
    if (kind == UN_SOLVER_GEOMETRIC && s->sites.kind == UN_SITES_NONE) kind = UN_SOLVER_AMG;
    bool positive;
    UN_TRY(iterate(s, kind, b_norm, tolerance, iteration_limit, report, &positive));
    /* A diagonal cannot fail that way: it goes on from there. */
    if (!positive && kind != UN_SOLVER_JACOBI && report->residual > tolerance)
        UN_TRY(iterate(s, UN_SOLVER_JACOBI, b_norm, tolerance, iteration_limit, report, &positive));
    report->converged = report->residual <= tolerance;
    return UN_OK;
}
