/* Matrices of 3x3 blocks, and solving with them: conjugate gradients (cg.c), with the flexible beta
 * for all preconditioners, because single precision makes multigrid vary a little. */
#include "linalg/block_sa.h"
#include "linalg/spread.h"

struct un_block_solver {
    un_context *ctx;
    un_block_kind kind;
    un_block_preconditioner preconditioner[UN_BLOCK_KIND_COUNT]; /* made when first used */
    un_block_kind ready; /* the one that is set up for this matrix; UN_BLOCK_AUTO: none */
    un_cg cg;
    size_t capacity[4]; /* of r, z, p, q */
    un_spread spread_work;
    un_spread *spread; /* NULL: all rows are here */
    /* of the current solve */
    const un_block_csr *a;
    const un_vec3 *b;
    un_vec3 *x;
    const un_block_preconditioner *with;
    double tolerance, watched; /* watched: an earlier residual */
};

const char *const un_block_kind_names[UN_BLOCK_KIND_COUNT + 1] = {[UN_BLOCK_AUTO] = "auto",
                                                                  [UN_BLOCK_JACOBI] = "jacobi",
                                                                  [UN_BLOCK_IC] = "ic",
                                                                  [UN_BLOCK_SA] = "sa"};

static un_status (*const create[UN_BLOCK_KIND_COUNT])(un_context *, un_block_preconditioner *) = {
    [UN_BLOCK_JACOBI] = un_block_jacobi_create,
    [UN_BLOCK_IC] = un_block_ic_create,
    [UN_BLOCK_SA] = un_block_sa_create};

/* ---- small and sparse matrices ---- */

int un_small_inverse(double *a, int size, double least)
{
    double limit[6];
    bool dropped[6];
    int kept = 0;
    UN_ASSERT(size <= 6);
    for (int k = 0; k < size; k++) limit[k] = least * a[k * size + k];
    /* Gauss-Jordan in place; a skipped row changes no other. */
    for (int k = 0; k < size; k++) {
        double pivot = a[k * size + k];
        dropped[k] = !(pivot > limit[k]) || !(pivot > 0) || !isfinite(pivot);
        if (dropped[k]) continue;
        double inverse = 1 / pivot;
        kept++;
        for (int i = 0; i < size; i++) {
            if (i == k) continue;
            double f = a[i * size + k] * inverse;
            for (int j = 0; j < size; j++)
                if (j != k) a[i * size + j] -= f * a[k * size + j];
            a[i * size + k] = -f;
        }
        for (int j = 0; j < size; j++) a[k * size + j] *= inverse;
        a[k * size + k] = inverse;
    }
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            if (dropped[i] || dropped[j]) a[i * size + j] = 0;
    return kept;
}

static const double *find(const un_block_csr *a, int32_t i, int32_t j)
{
    for (int32_t s = a->row[i]; s < a->row[i + 1]; s++)
        if (a->col[s] == j) return a->val[s];
    return NULL;
}

static bool mirrored(const double *v, const double *w)
{
    double most = 0, off = 0;
    for (int c = 0; c < 9; c++) {
        most = fmax(most, fabs(v[c]));
        off = fmax(off, fabs(v[c] - w[c % 3 * 3 + c / 3]));
    }
    return off <= 1e-12 * most;
}

bool un_block_csr_validate(const un_block_csr *a, const char **reason)
{
    *reason = un_rows_validate(a->n, a->row, a->col);
    for (int32_t i = 0; i < a->n && !*reason; i++)
        for (int32_t s = a->row[i]; s < a->row[i + 1] && !*reason; s++) {
            const double *other = find(a, a->col[s], i);
            bool finite = true;
            for (int c = 0; c < 9; c++) finite &= isfinite(a->val[s][c]);
            if (!finite)
                *reason = "a value is not finite";
            else if (!other || !mirrored(a->val[s], other))
                *reason = "the matrix is not symmetric";
        }
    return !*reason;
}

static inline un_vec3 row_product(const un_block_csr *a, int64_t i, const un_vec3 *x)
{
    double s0 = 0, s1 = 0, s2 = 0;
    for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
        const double *v = a->val[k];
        un_vec3 y = x[a->col[k]];
        s0 += v[0] * y.x + v[1] * y.y + v[2] * y.z;
        s1 += v[3] * y.x + v[4] * y.y + v[5] * y.z;
        s2 += v[6] * y.x + v[7] * y.y + v[8] * y.z;
    }
    return un_v3(s0, s1, s2);
}

typedef struct apply_args {
    un_vec3 *y;
    const un_block_csr *a;
    const un_vec3 *x;
} apply_args;

static void apply_rows(void *arg, int64_t begin, int64_t end)
{
    apply_args *p = arg;
    for (int64_t i = begin; i < end; i++) p->y[i] = row_product(p->a, i, p->x);
}

void un_block_csr_apply(un_context *ctx, un_vec3 *y, const un_block_csr *a, const un_vec3 *x)
{
    apply_args args = {y, a, x};
    un_parallel_for(ctx, a->n, un_block_grain(a->n), apply_rows, &args);
}

/* ---- over the rows of this rank, and sums over all ---- */

static double sum_of(un_block_solver *s, un_parallel_values *values, void *arg)
{
    double sum;
    un_spread_sums(s->ctx, s->spread, s->a->n, 1, values, arg, &sum);
    return sum;
}

/* Rows of a vector that others hold and own rows couple to. */
static void know(un_block_solver *s, un_vec3 *v)
{
    if (s->spread) un_halo_share(s->spread->near, v, sizeof *v);
}

/* ---- callbacks of CG; a row of its vectors is a un_vec3 ---- */

static void norm_b_rows(void *arg, int64_t begin, int64_t end, double *norm)
{
    un_block_solver *s = arg;
    for (int64_t i = begin; i < end; i++) *norm += un_dot(s->b[i], s->b[i]);
}

/* r = b - A x, and |r|^2. */
static void residual_rows(void *arg, int64_t begin, int64_t end, double *sum)
{
    un_block_solver *s = arg;
    un_vec3 *r = (un_vec3 *)s->cg.r;
    double norm = *sum;
    for (int64_t i = begin; i < end; i++) {
        r[i] = un_sub(s->b[i], row_product(s->a, i, s->x));
        norm += un_dot(r[i], r[i]);
    }
    *sum = norm;
}

/* q = A p, and p.q. */
static void direction_rows(void *arg, int64_t begin, int64_t end, double *sum)
{
    apply_args *m = arg;
    double product = *sum;
    for (int64_t i = begin; i < end; i++) {
        m->y[i] = row_product(m->a, i, m->x);
        product += un_dot(m->y[i], m->x[i]);
    }
    *sum = product;
}

static double apply(void *state, double *q, const double *p)
{
    un_block_solver *s = state;
    apply_args m = {(un_vec3 *)q, s->a, (const un_vec3 *)p};
    know(s, (un_vec3 *)(uintptr_t)p);
    return sum_of(s, direction_rows, &m);
}

static void precondition(void *state, double *z, const double *r)
{
    un_block_solver *s = state;
    s->with->apply(s->with->state, (un_vec3 *)z, (const un_vec3 *)r);
}

/* The guess in x, made finite, and zero in empty rows. */
static void guess_rows(void *arg, int64_t begin, int64_t end)
{
    un_block_solver *s = arg;
    for (int64_t i = begin; i < end; i++) {
        const double *d = find(s->a, (int32_t)i, (int32_t)i);
        if (!un_finite3(s->x[i]) || !(d[0] + d[4] + d[8] > 0)) s->x[i] = un_v3(0, 0, 0);
    }
}

/* ---- which preconditioner ---- */

/* Let k be the ratio of the diagonal to the row sum. Then the diagonal alone takes 8 to 12 sqrt(k)
 * iterations to 1e-4. Multigrid is set up if that is more than a few dozen and the system is not
 * small. */
#define JACOBI_RATIO 80.0
#define SMALL_ROWS 1500
/* If multigrid may help, the diagonal alone is abandoned when it would take more iterations than
 * this: 100 of them cost as much as setting up multigrid and solving with it. The number it would
 * take is estimated from the fall of the residual between the two iterations below; afterwards the
 * residual falls as steadily. */
#define JACOBI_LIMIT 100
#define WATCH_FROM 16
#define WATCH_TO 32

/* Counts rows, and sums their ratios of row sum to diagonal, both by the trace. */
static void trace_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_block_csr *a = ((un_block_solver *)arg)->a;
    for (int64_t i = begin; i < end; i++) {
        double diagonal = 0, excess = 0;
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
            double trace = a->val[k][0] + a->val[k][4] + a->val[k][8];
            excess += trace;
            if (a->col[k] == i) diagonal = trace;
        }
        if (!(diagonal > 0)) continue;
        sums[0] += 1;
        sums[1] += un_clamp(excess / diagonal, 0, 1);
    }
}

static un_block_kind choose(un_block_solver *s)
{
    double sums[2];
    if (s->a->n < SMALL_ROWS) return UN_BLOCK_JACOBI;
    un_spread_sums(s->ctx, s->spread, s->a->n, 2, trace_rows, s, sums);
    return sums[1] * JACOBI_RATIO > sums[0] ? UN_BLOCK_JACOBI : UN_BLOCK_SA;
}

/* ---- solving ---- */

/* The total number of iterations if the residual goes on falling as before. */
static double foresee(double from, double to, double tolerance)
{
    double rate = log(from / to) / (WATCH_TO - WATCH_FROM);
    return rate > 0 ? WATCH_TO + log(to / tolerance) / rate : INFINITY;
}

static bool give_up(void *state, int32_t iterations, double residual)
{
    un_block_solver *s = state;
    if (iterations == WATCH_FROM) s->watched = residual;
    return iterations == WATCH_TO && foresee(s->watched, residual, s->tolerance) > JACOBI_LIMIT;
}

/* Solves from x, whose residual is in r. false: the preconditioner turned out not to be positive.
 * Gives up early unless `patient`. */
static un_status iterate(un_block_solver *s, const un_block_system *system, un_block_kind kind,
                         double b_norm, double tolerance, int32_t limit, bool patient,
                         un_block_report *report, bool *positive)
{
    un_block_preconditioner *m = &s->preconditioner[kind];
    report->kind = kind;
    double start = un_seconds();
    if (!m->state) UN_TRY(create[kind](s->ctx, m));
    if (s->ready != kind) {
        s->ready = UN_BLOCK_AUTO;
        if (m->spread) m->spread(m->state, s->spread);
        UN_TRY(m->setup(m->state, system, report));
        s->ready = kind;
    } else if (m->again) {
        m->again(m->state);
    }
    report->seconds_setup += un_seconds() - start;
    s->with = m;
    s->tolerance = tolerance;
    s->cg.give_up = patient ? NULL : give_up;
    *positive =
        un_cg_iterate(&s->cg, b_norm, tolerance, limit, &report->iterations, &report->residual);
    return UN_OK;
}

static un_status solve(un_block_solver *s, const un_block_system *system, un_vec3 *x,
                       double tolerance, int32_t iteration_limit, un_block_report *report)
{
    un_context *ctx = s->ctx;
    const un_block_csr *a = system->a;
    size_t n = (size_t)a->n;
    un_part own = un_spread_part(s->spread, a->n);
    if (!system->same) s->ready = UN_BLOCK_AUTO;
    un_cg *cg = &s->cg;
    double **vectors[4] = {&cg->r, &cg->z, &cg->p, &cg->q};
    for (int i = 0; i < 4; i++)
        UN_TRY(un_array_need(ctx, (void **)vectors[i], &s->capacity[i], n, sizeof(un_vec3)));
    cg->ctx = ctx;
    cg->n = a->n;
    cg->width = 3;
    cg->rows = s->spread ? &s->spread->rows : NULL;
    cg->x = (double *)x;
    cg->state = s;
    cg->apply = apply;
    cg->precondition = precondition;
    cg->varies = true;
    s->a = a;
    s->b = system->b;
    s->x = x;
    if (s->spread) {
        un_spread_load(s->spread, cg->r, system->b, sizeof *s->b);
        s->b = (const un_vec3 *)cg->r;
    }
    double b_norm = sqrt(sum_of(s, norm_b_rows, s));
    un_parallel_part(ctx, own, un_block_grain(a->n), guess_rows, s);
    know(s, x);
    double r_norm = sqrt(sum_of(s, residual_rows, s));
    report->finite = isfinite(b_norm) && isfinite(r_norm);
    if (!report->finite || b_norm == 0) {
        report->converged = report->finite;
        memset(x + own.begin, 0, (size_t)(own.end - own.begin) * sizeof *x);
        return UN_OK;
    }
    report->residual = r_norm / b_norm;
    if (report->residual <= tolerance) return UN_OK;
    un_block_kind kind = s->kind;
    bool automatic = kind == UN_BLOCK_AUTO, positive;
    if (automatic) kind = s->ready != UN_BLOCK_AUTO ? s->ready : choose(s);
    bool patient = !automatic || kind != UN_BLOCK_JACOBI || a->n < SMALL_ROWS;
    int32_t limit = patient ? iteration_limit : (int32_t)un_min64(JACOBI_LIMIT, iteration_limit);
    UN_TRY(iterate(s, system, kind, b_norm, tolerance, limit, patient, report, &positive));
    if (!patient && report->residual > tolerance)
        UN_TRY(iterate(s, system, kind = UN_BLOCK_SA, b_norm, tolerance, iteration_limit, true,
                       report, &positive));
    if (!positive && kind != UN_BLOCK_JACOBI && report->residual > tolerance)
        UN_TRY(iterate(s, system, UN_BLOCK_JACOBI, b_norm, tolerance, iteration_limit, true, report,
                       &positive));
    report->converged = report->residual <= tolerance;
    report->finite = isfinite(report->residual);
    return UN_OK;
}

/* ---- one rank or several ---- */

static un_status solve_over_ranks(un_block_solver *s, const un_block_system *system, un_vec3 *x,
                                  double tolerance, int32_t iteration_limit,
                                  un_block_report *report)
{
    un_spread *over = &s->spread_work;
    UN_ASSERT(s->kind != UN_BLOCK_IC);
    if (system->same && s->spread) {
        un_spread_guess(over, x, sizeof *x);
    } else {
        un_spread_end(over);
        UN_TRY(un_spread_begin_blocks(over, s->ctx, system, x, un_sa_grain(system->a->n)));
    }
    s->spread = over;
    UN_TRY(solve(s, system, x, tolerance, iteration_limit, report));
    return un_spread_answer(over, system->a->row, system->a->col, x, sizeof *x, NULL);
}

un_status un_block_solver_solve(un_block_solver *s, const un_block_system *system, un_vec3 *x,
                                double tolerance, int32_t iteration_limit, un_block_report *report)
{
    *report = (un_block_report){.converged = true, .finite = true};
    if (system->a->n == 0) {
        s->ready = UN_BLOCK_AUTO;
        return UN_OK;
    }
    un_status status = UN_OK;
    if (system->rows && un_rank_count(s->ctx) > 1) {
        status = solve_over_ranks(s, system, x, tolerance, iteration_limit, report);
        if (status == UN_OK) return UN_OK; /* the next may have the same matrix */
    }
    if (s->spread_work.ctx) un_spread_end(&s->spread_work);
    s->spread = NULL;
    if (status != UN_OK) return status;
    return solve(s, system, x, tolerance, iteration_limit, report);
}

double un_block_solver_bytes(double rows)
{
    /* vectors of CG; a hierarchy in single precision took this much on graded tets */
    return rows * (4 * 24 + 2150);
}

/* ---- create and destroy ---- */

un_status un_block_solver_create(un_context *ctx, un_block_solver **solver)
{
    un_block_solver *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    *solver = s;
    return UN_OK;
}

void un_block_solver_destroy(un_block_solver *s)
{
    if (!s) return;
    for (int k = 0; k < UN_BLOCK_KIND_COUNT; k++)
        if (s->preconditioner[k].state) s->preconditioner[k].destroy(s->preconditioner[k].state);
    un_spread_free(&s->spread_work);
    void *blocks[] = {s->cg.r, s->cg.z, s->cg.p, s->cg.q};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(s->ctx, blocks[i]);
    un_free(s->ctx, s);
}

void un_block_solver_set_kind(un_block_solver *s, un_block_kind kind)
{
    s->kind = kind;
}
