/* Times PETSc and hypre on dumped systems, on as many processes as mpirun starts:
 *
 *     mpirun -n 2 build/petsc/test/bench_solvers_petsc [--tolerance 1e-4] [--repeat 3]
 * FOLDER/NUMBER...
 *
 * icc     CG with incomplete Cholesky, block Jacobi between processes
 * gamg    CG with PETSc's smoothed aggregation
 * hypre   CG with BoomerAMG: threshold 0.5, HMIS, ext+i, four entries per row of P, one aggressive
 *         level
 * Rows as those of bench/solvers.c; threads are processes, bytes what all of them hold more of
 * after a solve than before its set-up. From zero, to the true residual, the matrix already
 * distributed. */
#include <malloc.h>
#include <petscksp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "linalg/linalg.h"

static const struct {
    const char *name, *options;
} solvers[] = {
    {"icc", "-pc_type bjacobi -sub_pc_type icc"},
    {"gamg", "-pc_type gamg"},
    {"hypre", "-pc_type hypre -pc_hypre_type boomeramg -pc_hypre_boomeramg_strong_threshold 0.5 "
              "-pc_hypre_boomeramg_coarsen_type HMIS -pc_hypre_boomeramg_interp_type ext+i "
              "-pc_hypre_boomeramg_P_max 4 -pc_hypre_boomeramg_agg_nl 1 "
              "-pc_hypre_boomeramg_relax_type_all symmetric-SOR/Jacobi"},
};

static double tolerance = 1e-4;
static int repeat = 3, rank, ranks;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if (call) {                                                                                \
            fprintf(stderr, "%s failed\n", #call);                                                 \
            MPI_Abort(PETSC_COMM_WORLD, 1);                                                        \
        }                                                                                          \
    } while (0)

static double seconds(void)
{
    MPI_Barrier(PETSC_COMM_WORLD);
    return MPI_Wtime();
}

static double sum(double own)
{
    double all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD);
    return all;
}

/* What malloc has handed out: resident memory tells nothing after the first solver. */
static double bytes_now(void)
{
    struct mallinfo2 info = mallinfo2();
    return sum((double)info.uordblks + (double)info.hblkhd);
}

static void run(const char *name, const un_system_file *s, Mat matrix, Vec b, Vec x, size_t which)
{
    double best_setup = 1e9, best = 1e9, cpu = 1e9, bytes = 0, residual = 0;
    PetscInt iterations = 0;
    MUST(PetscOptionsClear(NULL));
    MUST(PetscOptionsInsertString(NULL, solvers[which].options));
    for (int q = 0; q < repeat; q++) {
        KSP ksp;
        double before = bytes_now(), start = seconds();
        clock_t ticks = clock();
        MUST(KSPCreate(PETSC_COMM_WORLD, &ksp));
        MUST(KSPSetOperators(ksp, matrix, matrix));
        MUST(KSPSetType(ksp, KSPCG));
        MUST(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
        MUST(KSPSetTolerances(ksp, tolerance, 1e-300, 1e10, 5000));
        MUST(KSPSetFromOptions(ksp));
        MUST(VecSet(x, 0));
        MUST(KSPSetUp(ksp));
        MUST(KSPSetUpOnBlocks(ksp));
        double between = seconds();
        MUST(KSPSolve(ksp, b, x));
        double end = seconds();
        best_setup = fmin(best_setup, between - start);
        best = fmin(best, end - start);
        cpu = fmin(cpu, sum((double)(clock() - ticks) / CLOCKS_PER_SEC));
        bytes = fmax(bytes, bytes_now() - before);
        MUST(KSPGetIterationNumber(ksp, &iterations));
        MUST(KSPGetResidualNorm(ksp, &residual));
        MUST(KSPDestroy(&ksp));
    }
    PetscReal b_norm;
    MUST(VecNorm(b, NORM_2, &b_norm));
    if (rank == 0)
        printf("%s,%d,%d,%s,%d,%d,%.1e,%.4f,%.4f,%.4f,%.3f,%.0f\n", name, s->a.n, s->a.row[s->a.n],
               solvers[which].name, ranks, (int)iterations, residual / b_norm, best_setup, best,
               cpu, 1e6 * best / s->a.n, bytes / s->a.n);
    fflush(stdout);
}

static void run_all(un_context *ctx, char *path)
{
    char *slash = strrchr(path, '/');
    un_system_file s;
    if (!slash) exit(2);
    *slash = 0;
    if (un_system_read(ctx, path, atoi(slash + 1), &s) != UN_OK) {
        fprintf(stderr, "%s\n", un_context_message(ctx));
        MPI_Abort(PETSC_COMM_WORLD, 1);
    }
    const char *folder = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    int32_t first = (int32_t)((int64_t)s.a.n * rank / ranks);
    int32_t count = (int32_t)((int64_t)s.a.n * (rank + 1) / ranks) - first, start = s.a.row[first];
    int32_t *row = malloc(((size_t)count + 1) * sizeof *row);
    for (int32_t i = 0; i <= count; i++) row[i] = s.a.row[first + i] - start;
    Mat matrix;
    Vec b, x;
    MUST(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, count, count, s.a.n, s.a.n, row,
                                   s.a.col + start, s.a.val + start, &matrix));
    MUST(MatSetOption(matrix, MAT_SPD, PETSC_TRUE));
    MUST(VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, count, s.a.n, s.b + first, &b));
    MUST(VecDuplicate(b, &x));
    for (size_t which = 0; which < sizeof solvers / sizeof *solvers; which++)
        run(folder, &s, matrix, b, x, which);
    MUST(MatDestroy(&matrix));
    MUST(VecDestroy(&b));
    MUST(VecDestroy(&x));
    free(row);
    un_system_free(ctx, &s);
}

int main(int argc, char **argv)
{
    MUST(PetscInitialize(NULL, NULL, NULL, NULL));
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
    un_context_def def = un_context_def_default();
    def.threads = 1;
    un_context *ctx = un_context_create(&def);
    if (!ctx) return 1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--tolerance") && i + 1 < argc)
            tolerance = strtod(argv[++i], NULL);
        else if (!strcmp(argv[i], "--repeat") && i + 1 < argc)
            repeat = atoi(argv[++i]);
        else
            run_all(ctx, argv[i]);
    }
    un_context_destroy(ctx);
    return PetscFinalize();
}
