/* BoomerAMG of hypre [Henson & Yang 2002] through PETSc, as a preconditioner on one process: for
 * comparison, and as a way to several machines later. Only built with -DUNDINE_PETSC=ON.
 *
 * PETSc reads our arrays directly. The context neither counts nor caps its memory. There is one
 * PETSc for the whole process: it is initialized when first used and stays so, and its signal
 * handlers are removed again. It reads PETSC_OPTIONS and ~/.petscrc, where users of PETSc can set
 * options, with the prefix undine_. */
#include <petscksp.h>

#include "linalg/linalg.h"

typedef struct petsc {
    un_context *ctx;
    const un_csr *a;
    Mat matrix;
    PC pc;
    Vec r, z;
    /* A with a diagonal in empty rows, since hypre divides by it; only if there are any */
    double *val;
    size_t capacity;
} petsc;

/* Settings for a three-dimensional Laplacian [hypre's manual, BoomerAMG]. The smoother is
 * symmetric, as CG needs it, and so is that of the coarsest level, which is singular in closed
 * tanks. */
static const char *const options[][2] = {
    {"-undine_pc_hypre_boomeramg_strong_threshold", "0.5"},
    {"-undine_pc_hypre_boomeramg_coarsen_type", "HMIS"},
    {"-undine_pc_hypre_boomeramg_interp_type", "ext+i"},
    {"-undine_pc_hypre_boomeramg_P_max", "4"},
    {"-undine_pc_hypre_boomeramg_agg_nl", "1"},
    {"-undine_pc_hypre_boomeramg_relax_type_all", "symmetric-SOR/Jacobi"},
};

static un_status fail(un_context *ctx, PetscErrorCode error)
{
    const char *text = NULL;
    PetscErrorMessage(error, &text, NULL);
    return un_fail(ctx, error == PETSC_ERR_MEM ? UN_ERROR_MEMORY : UN_ERROR_NUMERIC,
                   "PETSc failed: %s; use another solver.kind", text ? text : "no reason given");
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        PetscErrorCode try_error = (call);                                                         \
        if (try_error) return fail(m->ctx, try_error);                                             \
    } while (0)

static void release(petsc *m)
{
    PCDestroy(&m->pc);
    MatDestroy(&m->matrix);
    VecDestroy(&m->r);
    VecDestroy(&m->z);
}

static un_status fill_empty_rows(petsc *m, const un_csr *a)
{
    int32_t empty = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < a->n; i++)
            for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
                if (a->col[k] != i || a->val[k] != 0) continue;
                empty++;
                if (pass == 1) m->val[k] = 1;
            }
        if (empty == 0 || pass == 1) break;
        size_t entries = (size_t)a->row[a->n];
        UN_TRY(un_array_need(m->ctx, (void **)&m->val, &m->capacity, entries, sizeof *m->val));
        memcpy(m->val, a->val, entries * sizeof *m->val);
    }
    if (empty == 0) {
        un_free(m->ctx, m->val);
        m->val = NULL;
        m->capacity = 0;
    }
    return UN_OK;
}

static un_status setup(void *state, const un_csr *a, const un_sites *sites, double largest)
{
    petsc *m = state;
    (void)sites, (void)largest;
    release(m);
    m->a = a;
    UN_TRY(fill_empty_rows(m, a));
    TRY(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, a->n, a->n, a->row, a->col,
                                  m->val ? m->val : a->val, &m->matrix));
    TRY(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, a->n, NULL, &m->r));
    TRY(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, a->n, NULL, &m->z));
    TRY(PCCreate(PETSC_COMM_SELF, &m->pc));
    TRY(PCSetOptionsPrefix(m->pc, "undine_"));
    TRY(PCSetOperators(m->pc, m->matrix, m->matrix));
    TRY(PCSetType(m->pc, PCHYPRE));
    TRY(PCHYPRESetType(m->pc, "boomeramg"));
    TRY(PCSetFromOptions(m->pc));
    TRY(PCSetUp(m->pc));
    return UN_OK;
}

/* After a failure z is zero: then r.z is not positive, and the solve goes on without PETSc. */
static void apply(void *state, double *z, const double *r)
{
    petsc *m = state;
    memset(z, 0, (size_t)m->a->n * sizeof *z);
    if (VecPlaceArray(m->r, r) == 0 && VecPlaceArray(m->z, z) == 0)
        (void)PCApply(m->pc, m->r, m->z);
    VecResetArray(m->r);
    VecResetArray(m->z);
}

static void destroy(void *state)
{
    petsc *m = state;
    if (!m) return;
    release(m);
    un_free(m->ctx, m->val);
    un_free(m->ctx, m);
}

un_status un_petsc_create(un_context *ctx, un_preconditioner *preconditioner)
{
    petsc *m = un_alloc_zero(ctx, 1, sizeof *m);
    if (!m) return UN_ERROR_MEMORY;
    m->ctx = ctx;
    *preconditioner = (un_preconditioner){m, setup, apply, destroy, true, NULL, NULL};
    PetscBool ready;
    PetscErrorCode error = PetscInitialized(&ready);
    if (!error && !ready) {
        error = PetscInitializeNoArguments();
        if (!error) error = PetscPopSignalHandler();
        if (!error) error = PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
    }
    for (size_t i = 0; i < sizeof options / sizeof *options && !error; i++) {
        PetscBool set;
        error = PetscOptionsHasName(NULL, NULL, options[i][0], &set);
        if (!error && !set) error = PetscOptionsSetValue(NULL, options[i][0], options[i][1]);
    }
    if (!error) return UN_OK;
    destroy(m);
    *preconditioner = (un_preconditioner){0};
    return fail(ctx, error);
}
