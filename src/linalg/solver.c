/* Sparse symmetric positive semi-definite systems, and which preconditioner suits them.
 *
 * A system may fall into disconnected components (drops). A component whose rows all sum to zero
 * (a closed, full tank) is singular: its null space, the constants, is projected out of b, of each
 * preconditioned residual and of the answer. Conjugate gradients (cg.c) run over all components at
 * once; with the null space removed that is one well-posed problem.
 *
 * Columns: columns.c. */
#include "linalg/columns.h"
#include "linalg/amg.h"
#include "linalg/dump.h"

struct un_solver {
    un_context *ctx;
    un_solver_kind kind;
    un_preconditioner preconditioner[UN_SOLVER_KIND_COUNT]; /* made when first used */
    un_components parts;
    un_column_work columns;
    char *dump; /* folder, NULL: none */
    int32_t dump_every, solve_count;
    un_cg cg;
    size_t capacity[4]; /* of r, z, p, q */
    /* of the current solve; preconditioners may keep the matrix */
    un_csr matrix;
    const un_csr *a;
    const double *b;
    un_sites sites;
    const un_preconditioner *with;
    un_spread spread_work;
    un_spread *spread; /* NULL: all rows are here */
    /* of the current matrix: */
    un_solver_kind ready; /* whose preconditioner is set up; UN_SOLVER_AUTO: none */
    bool pinned;
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

/* Auto: the number of rows from which multigrid is faster, and the choice below it. From zero to
 * 1e-4, one thread, milliseconds of processor time (bench/solvers.c; grid generated, tet dumped
 * from a dam break):
 *
 *     grid  rows   2877   5608   9683  22988      tet  rows   3484   8769  17297  29811  47063
 *     mic           0.6    1.4    4.7   14.8    jacobi         1.1    3.3    7.6   19.6   36.1
 *     amg           0.9    1.9    3.7    9.1    amg            1.6    5.2   10.8   19.6   32.9
 *     geometric     0.8    1.8    3.6    8.0    geometric      1.5    5.3   10.9   18.0   31.2
 *
 * MIC(0) is at its best on stencils without common neighbours, numbered row by row; along the
 * Morton curve it takes as many iterations as Jacobi. The limit for tets is below the crossover:
 * harder systems (long basins, closed tanks) lower it, and nothing below the limit takes long.
 *
 * Up to 8192 rows MIC(0) is one block (mic.c). The whole pressure of a step in bench/dam.lua, one
 * thread, milliseconds:
 *
 *     uniform  cells  6200-6500  7700-8000      octree  leaves  6500-7500
 *     mic                 1.8        2.5        mic                3.0
 *     geometric           2.0        2.7        geometric          4.5
 */
#define NARROW_ROW 8 /* entries */
#define NARROW_MULTIGRID_ROWS 8193
#define WIDE_MULTIGRID_ROWS 15000

static un_solver_kind choose(const un_csr *a)
{
    bool narrow = a->row[a->n] <= NARROW_ROW * (int64_t)a->n;
    if (a->n >= (narrow ? NARROW_MULTIGRID_ROWS : WIDE_MULTIGRID_ROWS)) return UN_SOLVER_GEOMETRIC;
    return narrow ? UN_SOLVER_MIC : UN_SOLVER_JACOBI;
}

double un_solver_bytes(double unknowns)
{
    /* vectors and labels of CG; what geometric multigrid needed on grids and tets */
    return unknowns * (4 * 8 + 5 + (unknowns < NARROW_MULTIGRID_ROWS ? 8 : 158));
}

un_status un_solver_create(un_context *ctx, un_solver **solver)
{
    un_solver *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = s->parts.ctx = s->columns.ctx = ctx;
    *solver = s;
    return UN_OK;
}

void un_solver_release(un_solver *s)
{
    double **vectors[4] = {&s->cg.r, &s->cg.z, &s->cg.p, &s->cg.q};
    for (int k = 0; k < UN_SOLVER_KIND_COUNT; k++) {
        if (s->preconditioner[k].state) s->preconditioner[k].destroy(s->preconditioner[k].state);
        s->preconditioner[k].state = NULL;
    }
    for (int k = 0; k < 4; k++) {
        un_free(s->ctx, *vectors[k]);
        *vectors[k] = NULL;
        s->capacity[k] = 0;
    }
    un_spread_end(&s->spread_work);
    s->spread = NULL;
    s->a = NULL;
    s->ready = UN_SOLVER_AUTO;
}

void un_solver_destroy(un_solver *s)
{
    if (!s) return;
    un_solver_release(s);
    un_components_free(&s->parts);
    un_column_work_free(&s->columns);
    un_spread_free(&s->spread_work);
    un_free(s->ctx, s->dump);
    un_free(s->ctx, s);
}

void un_solver_set_kind(un_solver *s, un_solver_kind kind)
{
    UN_ASSERT(un_solver_kind_available(kind));
    s->kind = kind;
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

/* ---- callbacks of CG ---- */

/* r = b. */
static void load_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    memcpy(s->cg.r + begin, s->b + begin, (size_t)(end - begin) * sizeof *s->b);
}

static void load(un_solver *s)
{
    if (s->spread)
        un_spread_load(s->spread, s->cg.r, s->b, sizeof *s->b);
    else
        un_parallel_for(s->ctx, s->a->n, un_block_grain(s->a->n), load_rows, s);
    un_components_remove_means(&s->parts, s->cg.r);
}

/* Elements of other ranks' rows that own rows couple to. */
static void share(const un_solver *s, const double *v)
{
    if (s->spread) un_halo_share(s->spread->near, (double *)v, sizeof *v);
}

static double sum_of(un_solver *s, un_parallel_values *values, void *arg)
{
    double sum;
    un_spread_sums(s->ctx, s->spread, s->a->n, 1, values, arg, &sum);
    return sum;
}

/* r = r - A x, where r holds b; |b|^2 and |r|^2. */
static void residual_rows(void *arg, int64_t begin, int64_t end, double *norms)
{
    un_solver *s = arg;
    const int32_t *row = s->a->row, *col = s->a->col;
    const double *val = s->a->val, *x = s->cg.x;
    double before = norms[0], norm = norms[1], *r = s->cg.r;
    for (int64_t i = begin; i < end; i++) {
        double sum = r[i];
        before += sum * sum;
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum -= val[k] * x[col[k]];
        r[i] = sum;
        norm += sum * sum;
    }
    norms[0] = before;
    norms[1] = norm;
}

static void norm_rows(void *arg, int64_t begin, int64_t end, double *total)
{
    const double *r = ((un_solver *)arg)->cg.r;
    double norm = *total;
    for (int64_t i = begin; i < end; i++) norm += r[i] * r[i];
    *total = norm;
}

typedef struct product {
    const un_csr *a;
    double *q;
    const double *p;
} product;

/* q = A p, and p.q. */
static void direction_rows(void *arg, int64_t begin, int64_t end, double *total)
{
    const product *m = arg;
    const int32_t *row = m->a->row, *col = m->a->col;
    const double *val = m->a->val, *p = m->p;
    double sums = *total, *q = m->q;
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum += val[k] * p[col[k]];
        q[i] = sum;
        sums += sum * p[i];
    }
    *total = sums;
}

static double apply(void *state, double *q, const double *p)
{
    un_solver *s = state;
    product m = {s->a, q, p};
    share(s, p);
    double pq = sum_of(s, direction_rows, &m);
    if (!s->columns.c) return pq;
    pq += un_columns_apply(&s->columns, q, p, 1);
    un_components_remove_means(&s->parts, q); /* p has zero means: p.q does not change */
    return pq;
}

static void precondition(void *state, double *z, const double *r)
{
    un_solver *s = state;
    s->with->apply(s->with->state, z, r);
    un_components_remove_means(&s->parts, z);
    if (s->columns.c) un_columns_correct(&s->columns, z);
}

/* Makes the guess finite, and zero in empty rows. */
static void guess_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double *x = s->cg.x;
    for (int64_t i = begin; i < end; i++) {
        if (!isfinite(x[i])) x[i] = 0;
        if (s->parts.singular_count > 0 && s->parts.code[i] == UN_EMPTY) x[i] = 0;
    }
}

/* ---- solving ---- */

/* q = q - p. */
static void subtract_rows(void *arg, int64_t begin, int64_t end)
{
    un_cg *cg = arg;
    for (int64_t i = begin; i < end; i++) cg->q[i] -= cg->p[i];
}

typedef struct sum {
    double *to;
    const double *z;
} sum;

static void add_rows(void *arg, int64_t begin, int64_t end)
{
    sum *a = arg;
    for (int64_t i = begin; i < end; i++) a->to[i] += a->z[i];
}

/* V = M^-1 C. An M that varies is a different one for each column: then V gets a second step
 * towards A^-1 C, to which any M leads. (Without it the K-cycle takes 17 iterations instead of 12,
 * and 11 without bodies; for a fixed M it would only spoil the symmetry.) */
static un_status correct(un_solver *s)
{
    un_context *ctx = s->ctx;
    un_part own = un_spread_part(s->spread, s->a->n);
    int64_t grain = un_block_grain(s->a->n);
    UN_TRY(un_columns_begin(&s->columns));
    for (int32_t k = 0; k < s->columns.c->count - s->columns.weak; k++) {
        double *column = s->cg.q, *v = un_columns_spread(&s->columns, k, column);
        s->with->apply(s->with->state, v, column);
        un_components_remove_means(&s->parts, v);
        if (!s->with->varies) continue;
        sum add = {v, s->cg.z};
        share(s, v);
        un_csr_apply(ctx, s->cg.p, s->a, own, v);
        un_parallel_part(ctx, own, grain, subtract_rows, &s->cg);
        s->with->apply(s->with->state, s->cg.z, column);
        un_components_remove_means(&s->parts, s->cg.z);
        un_parallel_part(ctx, own, grain, add_rows, &add);
    }
    un_columns_end(&s->columns);
    return UN_OK;
}

/* Solves from x, whose residual is in r. kind must not be UN_SOLVER_AUTO. false: the preconditioner
 * turned out not to be positive. */
static un_status iterate(un_solver *s, un_solver_kind kind, double b_norm, double tolerance,
                         int32_t iteration_limit, un_solve_report *report, bool *positive)
{
    un_preconditioner *m = &s->preconditioner[kind];
    report->kind = kind;
    double start = un_seconds();
    if (!m->state) UN_TRY(create[kind](s->ctx, m));
    s->with = m;
    if (s->ready != kind) {
        s->ready = UN_SOLVER_AUTO;
        if (m->spread) m->spread(m->state, s->spread);
        UN_TRY(m->setup(m->state, s->a, &s->sites, s->parts.largest));
        if (s->columns.c) UN_TRY(correct(s));
        s->ready = kind;
    }
    report->seconds_setup += un_seconds() - start;
    s->cg.varies = m->varies || s->columns.c;
    *positive = un_cg_iterate(&s->cg, b_norm, tolerance, iteration_limit, &report->iterations,
                              &report->residual);
    return UN_OK;
}

/* r = b - (A + C C^T) x; norms: |b| and |r|. */
static void find_residual(un_solver *s, double norms[2])
{
    load(s);
    un_parallel_part(s->ctx, un_spread_part(s->spread, s->a->n), un_block_grain(s->a->n),
                     guess_rows, s);
    share(s, s->cg.x);
    un_spread_sums(s->ctx, s->spread, s->a->n, 2, residual_rows, s, norms);
    if (s->columns.c) {
        un_columns_apply(&s->columns, s->cg.r, s->cg.x, -1);
        un_components_remove_means(&s->parts, s->cg.r);
        norms[1] = sum_of(s, norm_rows, s);
    }
    for (int i = 0; i < 2; i++) norms[i] = sqrt(norms[i]);
}

/* x = 0, in the rows of this rank. */
static void clear_answer(un_solver *s)
{
    un_part own = un_spread_part(s->spread, s->a->n);
    memset(s->cg.x + own.begin, 0, (size_t)(own.end - own.begin) * sizeof *s->cg.x);
}

static un_solver_kind kind_for(const un_solver *s, const un_system *system)
{
    un_solver_kind kind = s->kind == UN_SOLVER_AUTO ? choose(system->a) : s->kind;
    bool sites = system->sites && system->sites->kind != UN_SITES_NONE;
    return kind == UN_SOLVER_GEOMETRIC && !sites ? UN_SOLVER_AMG : kind;
}

/* Solves in the rows of this rank, all of which are at hand. */
static un_status solve(un_solver *s, const un_system *system, double *x, double tolerance,
                       int32_t iteration_limit, un_solve_report *report)
{
    un_context *ctx = s->ctx;
    const un_csr *a = system->a;
    un_cg *cg = &s->cg;
    size_t n = (size_t)a->n;
    double **vectors[4] = {&cg->r, &cg->z, &cg->p, &cg->q};
    for (int i = 0; i < 4; i++)
        UN_TRY(un_array_need(ctx, (void **)vectors[i], &s->capacity[i], n, sizeof **vectors[i]));
    cg->ctx = ctx;
    cg->n = a->n;
    cg->width = 1;
    cg->x = x;
    cg->state = s;
    cg->apply = apply;
    cg->precondition = precondition;
    cg->rows = s->spread ? &s->spread->rows : NULL;
    bool again = system->again && s->a && s->matrix.n == a->n;
    s->matrix = *a;
    s->a = &s->matrix;
    s->b = system->b;
    s->parts.spread = s->spread;
    s->sites = system->sites ? *system->sites : (un_sites){.kind = UN_SITES_NONE};
    if (!again) {
        s->ready = UN_SOLVER_AUTO;
        s->pinned = false;
        UN_TRY(un_components_find(&s->parts, a, &report->finite));
    }
    const un_columns *columns =
        system->columns && system->columns->count > 0 ? system->columns : NULL;
    if (!again || !columns || !s->columns.c) s->columns.corrected = false;
    s->columns.c = NULL;
    s->columns.spread = s->spread;
    s->columns.weak = system->weak;
    if (columns) {
        if (!again) s->pinned = un_components_pin(&s->parts, columns);
        UN_TRY(un_columns_prepare(&s->columns, columns, &s->parts, &report->finite));
    }
    /* with columns the preconditioner has been applied in the set-up, and stays as it was then */
    un_preconditioner *known = &s->preconditioner[s->ready];
    if (again && s->ready != UN_SOLVER_AUTO && !s->columns.c && known->again)
        known->again(known->state);
    report->component_count = s->parts.count;
    report->singular_count = s->parts.singular_count;

    double norms[2];
    find_residual(s, norms);
    double b_norm = norms[0], r_norm = norms[1];
    if (!isfinite(b_norm)) report->finite = false;
    if (!report->finite || b_norm == 0) {
        report->converged = report->finite;
        clear_answer(s);
        return UN_OK;
    }
    if (!(r_norm <= b_norm)) { /* the guess is worse than zero */
        clear_answer(s);
        load(s);
        r_norm = b_norm;
    }
    report->residual = r_norm / b_norm;
    if (report->residual <= tolerance) return UN_OK;

    un_solver_kind kind = kind_for(s, system);
    /* The others know A only, and miss the constants that only columns fix. */
    if (s->pinned) kind = UN_SOLVER_JACOBI;
    bool positive;
    UN_TRY(iterate(s, kind, b_norm, tolerance, iteration_limit, report, &positive));
    /* Jacobi cannot fail that way: it continues from there. */
    if (!positive && kind != UN_SOLVER_JACOBI && report->residual > tolerance)
        UN_TRY(iterate(s, UN_SOLVER_JACOBI, b_norm, tolerance, iteration_limit, report, &positive));
    report->converged = report->residual <= tolerance;
    return UN_OK;
}

/* ---- one rank or several ---- */

typedef struct first_args {
    un_solver *s;
    double tolerance;
    int32_t iteration_limit;
} first_args;

static un_status solve_alone(void *arg, const un_system *system, double *x, un_solve_report *report)
{
    const first_args *a = arg;
    un_solver *s = a->s;
    s->spread = NULL;
    if (s->dump && (s->solve_count - 1) % s->dump_every == 0)
        UN_TRY(un_system_write(s->ctx, s->dump, s->solve_count, system, x));
    return solve(s, system, x, a->tolerance, a->iteration_limit, report);
}

static un_status solve_over_ranks(un_solver *s, const un_system *system, double *x,
                                  const first_args *args, un_solve_report *report)
{
    un_spread *over = &s->spread_work;
    un_solver_kind kind = kind_for(s, system);
    bool columns = system->columns && system->columns->count > 0;
    bool able = kind == UN_SOLVER_GEOMETRIC || kind == UN_SOLVER_JACOBI || kind == UN_SOLVER_AMG;
    if (!able || system->a->n < UN_SPREAD_ROWS || s->dump) {
        un_spread_end(over);
        s->spread = NULL;
        return un_spread_on_first(over, s->ctx, system, x, solve_alone, (void *)args, report);
    }
    if (system->again && s->spread) {
        un_spread_guess(over, x, sizeof *x);
    } else {
        un_spread_end(over);
        UN_TRY(un_spread_begin(over, s->ctx, system, x,
                               un_amg_grain(system->a->n, system->a->n, false)));
        if (columns) UN_TRY(un_spread_know_columns(over, system->columns));
    }
    s->spread = over;
    UN_TRY(solve(s, system, x, args->tolerance, args->iteration_limit, report));
    return un_spread_answer(over, system->a->row, system->a->col, x, sizeof *x, system->beside);
}

un_status un_solver_solve(un_solver *s, const un_system *system, double *x, double tolerance,
                          int32_t iteration_limit, un_solve_report *report)
{
    first_args args = {s, tolerance, iteration_limit};
    *report = (un_solve_report){.converged = true, .finite = true};
    s->solve_count++;
    if (system->a->n == 0) return UN_OK;
    if (!system->rows || un_rank_count(s->ctx) == 1) return solve_alone(&args, system, x, report);
    un_status status = solve_over_ranks(s, system, x, &args, report);
    if (status == UN_OK && s->spread) return UN_OK; /* the next may have the same matrix */
    un_spread_end(&s->spread_work);
    s->spread = NULL;
    return status;
}
