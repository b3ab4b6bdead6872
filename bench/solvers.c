/* Times the linear solvers on pressure systems of growing size:
 *
 *     build/test/bench_solvers [--cells 64,96] [--systems bcc,grid] [--kinds mic,amg]
 *                              [--threads 1,2] [--tolerance 1e-4] [--repeat 3]
 *
 * One row of CSV per system, kind and thread count: the best of `repeat` solves from zero, set-up
 * included in the total; bytes are what the solver holds at most, beside matrix, b and x. */
#include <stdio.h>

#include "../test/linalg/systems.h"

static int numbers(const char *text, double *out)
{
    int count = 0;
    for (char *end; *text && count < 16; text = *end ? end + 1 : end)
        out[count++] = strtod(text, &end);
    return count;
}

int main(int argc, char **argv)
{
    double cells[16] = {32, 64}, threads[16] = {1, 2}, tolerance = 1e-4, repeat = 3;
    int cell_count = 2, thread_count = 2;
    const char *systems = "bcc,grid", *kinds = "jacobi,mic,amg";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--cells")) cell_count = numbers(argv[i + 1], cells);
        if (!strcmp(argv[i], "--threads")) thread_count = numbers(argv[i + 1], threads);
        if (!strcmp(argv[i], "--systems")) systems = argv[i + 1];
        if (!strcmp(argv[i], "--kinds")) kinds = argv[i + 1];
        if (!strcmp(argv[i], "--tolerance")) tolerance = strtod(argv[i + 1], NULL);
        if (!strcmp(argv[i], "--repeat")) repeat = strtod(argv[i + 1], NULL);
    }
    printf("system,unknowns,kind,threads,iterations,residual,seconds_setup,seconds_other,"
           "seconds,us_per_unknown,bytes_per_unknown\n");
    static const char *const names[] = {"bcc", "grid", "bcclex"};
    for (int c = 0; c < cell_count; c++)
        for (int kind = 0; kind < 3; kind++) {
            if (!strstr(systems, names[kind])) continue;
            test_lattice lattice = {(int32_t)cells[c], kind != 1, 1e-6, false};
            test_system s = test_system_make(lattice, kind == 0);
            for (int k = 1; k < UN_SOLVER_KIND_COUNT; k++)
                for (int t = 0; t < thread_count; t++) {
                    if (!strstr(kinds, un_solver_kind_names[k])) continue;
                    un_context_def def = un_context_def_default();
                    def.threads = (int32_t)threads[t];
                    un_context *ctx = un_context_create(&def);
                    un_solver *solver;
                    if (!ctx || un_solver_create(ctx, &solver) != UN_OK) return 1;
                    un_solver_set_kind(solver, (un_solver_kind)k);
                    un_solve_report best = {0};
                    double seconds = INFINITY;
                    for (int q = 0; q < repeat; q++) {
                        memset(s.x, 0, (size_t)s.a.n * sizeof *s.x);
                        un_solve_report report;
                        double start = un_seconds();
                        if (un_solver_solve(solver, &s.a, s.x, s.b, tolerance, 5000, &report) !=
                            UN_OK)
                            return 1;
                        double now = un_seconds() - start;
                        if (now < seconds) {
                            seconds = now;
                            best = report;
                        }
                    }
                    printf("%s,%d,%s,%d,%d,%.2e,%.4f,%.4f,%.4f,%.3f,%.0f\n", names[kind], s.a.n,
                           un_solver_kind_names[k], def.threads, best.iterations, best.residual,
                           best.seconds_setup, seconds - best.seconds_setup, seconds,
                           1e6 * seconds / s.a.n, (double)un_context_peak_bytes(ctx) / s.a.n);
                    fflush(stdout);
                    un_solver_destroy(solver);
                    un_context_destroy(ctx);
                }
            test_system_free(&s);
        }
    return 0;
}
