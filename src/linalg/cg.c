/* Preconditioned conjugate gradients for symmetric positive semi-definite systems.
 *
 *     p = z = M^-1 r, rho = r.z
 *     alpha = rho / p.Ap;  x += alpha p;  r -= alpha Ap
 *     z = M^-1 r;  beta = r.z / rho;  p = z + beta p                 [Saad 2003, algorithm 9.1]
 *
 * A system may fall into disconnected components (drops). A component whose rows all sum to zero
 * (a closed, full tank) is singular: its null space, the constants, is projected out of b, of each
 * preconditioned residual and of the answer. CG itself runs over all components at once; with the
 * null space removed that is one well-posed problem. */
#include "linalg/linalg.h"

struct un_solver {
    un_context *ctx;
    un_preconditioner preconditioner;
    double *r, *z, *p, *q;
    size_t capacity_r, capacity_z, capacity_p, capacity_q;
    int32_t *component; /* singular component of a row, -1 none */
    int32_t *stack;
    size_t capacity_component, capacity_stack;
    double *sums; /* per singular component, and its size */
    size_t capacity_sums;
    int32_t singular_count;
    /* of the solve under way */
    const un_csr *a;
    const double *b;
    double *x;
    double alpha, beta;
};

/* A row counts as anchored when its sum exceeds this share of its diagonal. */
#define ANCHOR 1e-10

un_status un_solver_create(un_context *ctx, un_solver **solver)
{
    un_solver *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    un_status status = un_mic_create(ctx, &s->preconditioner);
    if (status != UN_OK) {
        un_free(ctx, s);
        return status;
    }
    *solver = s;
    return UN_OK;
}

void un_solver_destroy(un_solver *s)
{
    if (!s) return;
    s->preconditioner.destroy(s->preconditioner.state);
    void *blocks[] = {s->r, s->z, s->p, s->q, s->component, s->stack, s->sums};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(s->ctx, blocks[i]);
    un_free(s->ctx, s);
}

/* ---- components ---- */

/* Labels the rows of singular components. Depth-first over the graph of A; the order is the
 * matrix's own, so labels are deterministic. */
static un_status find_components(un_solver *s, const un_csr *a, un_solve_report *report)
{
    UN_TRY(un_array_need(s->ctx, (void **)&s->component, &s->capacity_component, (size_t)a->n,
                         sizeof *s->component));
    UN_TRY(un_array_need(s->ctx, (void **)&s->stack, &s->capacity_stack, (size_t)a->n,
                         sizeof *s->stack));
    int32_t *component = s->component, *stack = s->stack;
    for (int32_t i = 0; i < a->n; i++) component[i] = -2;
    s->singular_count = 0;
    for (int32_t start = 0; start < a->n; start++) {
        if (component[start] != -2) continue;
        /* The stack's array also keeps the finished rows: nothing is ever removed from it. */
        int32_t top = 0;
        bool anchored = false;
        stack[top++] = start;
        component[start] = s->singular_count;
        for (int32_t at = 0; at < top; at++) {
            int32_t i = stack[at];
            double sum = 0, diagonal = 0;
            for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
                int32_t j = a->col[k];
                sum += a->val[k];
                if (j == i) diagonal = a->val[k];
                if (component[j] == -2 && a->val[k] != 0) {
                    component[j] = s->singular_count;
                    stack[top++] = j;
                }
            }
            if (sum > ANCHOR * diagonal) anchored = true;
            if (diagonal == 0) s->x[i] = 0; /* no equation: CG would leave the guess */
        }
        report->component_count++;
        if (anchored)
            for (int32_t at = 0; at < top; at++) component[stack[at]] = -1;
        else
            s->singular_count++;
    }
    report->singular_count = s->singular_count;
    return un_array_need(s->ctx, (void **)&s->sums, &s->capacity_sums,
                         2 * (size_t)s->singular_count + 1, sizeof *s->sums);
}

/* Takes the mean of each singular component out of v. */
static void remove_constants(un_solver *s, double *v)
{
    if (s->singular_count == 0) return;
    memset(s->sums, 0, 2 * (size_t)s->singular_count * sizeof *s->sums);
    double *sums = s->sums, *sizes = s->sums + s->singular_count;
    for (int32_t i = 0; i < s->a->n; i++)
        if (s->component[i] >= 0) {
            sums[s->component[i]] += v[i];
            sizes[s->component[i]] += 1;
        }
    for (int32_t i = 0; i < s->a->n; i++)
        if (s->component[i] >= 0) v[i] -= sums[s->component[i]] / sizes[s->component[i]];
}

/* ---- the kernels of an iteration, each one pass over the vectors ---- */

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

static double product_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double product = 0;
    for (int64_t i = begin; i < end; i++) product += s->r[i] * s->z[i];
    return product;
}

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double beta = s->beta;
    for (int64_t i = begin; i < end; i++) s->p[i] = s->z[i] + beta * s->p[i];
}

static void precondition(un_solver *s)
{
    s->preconditioner.apply(s->preconditioner.state, s->z, s->r);
    remove_constants(s, s->z);
}

static double matrix_rows(void *arg, int64_t begin, int64_t end)
{
    un_solver *s = arg;
    double sum = 0;
    for (int64_t k = s->a->row[begin]; k < s->a->row[end]; k++) sum += s->a->val[k];
    return sum;
}

un_status un_solver_solve(un_solver *s, const un_csr *a, double *x, const double *b,
                          double tolerance, int32_t iteration_limit, un_solve_report *report)
{
    un_context *ctx = s->ctx;
    size_t n = (size_t)a->n;
    *report = (un_solve_report){.converged = true, .finite = true};
    if (a->n == 0) return UN_OK;
    UN_TRY(un_array_need(ctx, (void **)&s->r, &s->capacity_r, n, sizeof *s->r));
    UN_TRY(un_array_need(ctx, (void **)&s->z, &s->capacity_z, n, sizeof *s->z));
    UN_TRY(un_array_need(ctx, (void **)&s->p, &s->capacity_p, n, sizeof *s->p));
    UN_TRY(un_array_need(ctx, (void **)&s->q, &s->capacity_q, n, sizeof *s->q));
    s->a = a;
    s->x = x;
    UN_TRY(find_components(s, a, report));

    memcpy(s->r, b, n * sizeof *b);
    remove_constants(s, s->r);
    double b_norm = sqrt(un_parallel_sum(ctx, a->n, norm_rows, s));
    if (!isfinite(b_norm) || !isfinite(un_parallel_sum(ctx, a->n, matrix_rows, s))) {
        report->finite = report->converged = false;
        memset(x, 0, n * sizeof *x);
        return UN_OK;
    }
    if (b_norm == 0) {
        memset(x, 0, n * sizeof *x);
        return UN_OK;
    }
    for (int32_t i = 0; i < a->n; i++)
        if (!isfinite(x[i])) x[i] = 0;
    double r_norm = sqrt(un_parallel_sum(ctx, a->n, residual_rows, s));
    if (r_norm > b_norm) { /* the guess is worse than none */
        memset(x, 0, n * sizeof *x);
        memcpy(s->r, b, n * sizeof *b);
        remove_constants(s, s->r);
        r_norm = b_norm;
    }
    report->residual = r_norm / b_norm;
    if (report->residual <= tolerance) return UN_OK;

    UN_TRY(s->preconditioner.setup(s->preconditioner.state, a));
    precondition(s);
    memcpy(s->p, s->z, n * sizeof *s->p);
    double rho = un_parallel_sum(ctx, a->n, product_rows, s);
    while (report->iterations < iteration_limit) {
        double curvature = un_parallel_sum(ctx, a->n, direction_rows, s);
        if (!(curvature > 0) || !isfinite(curvature)) break;
        s->alpha = rho / curvature;
        r_norm = sqrt(un_parallel_sum(ctx, a->n, advance_rows, s));
        report->iterations++;
        report->residual = r_norm / b_norm;
        if (!(report->residual > tolerance)) break;
        precondition(s);
        double rho_next = un_parallel_sum(ctx, a->n, product_rows, s);
        s->beta = rho_next / rho;
        rho = rho_next;
        un_parallel_for(ctx, a->n, un_block_grain(a->n), turn_rows, s);
    }
    report->converged = report->residual <= tolerance;
    return UN_OK;
}
