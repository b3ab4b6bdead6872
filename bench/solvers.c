/* Times the linear solvers on dumped systems (solver.dump) and on made ones:
 *
 *     build/test/bench_solvers [--kinds mic,amg] [--threads 1,2] [--tolerance 1e-4] [--repeat 3]
 *         [--systems bcc,grid --cells 64,96] [--write FOLDER] FOLDER/NUMBER...
 *
 * Made systems, water with a wavy surface in a box of `cells` along each side:
 *   tet    the tet method's, finest at the surface, four times coarser below; gravity and a whirl
 *   bcc    the same lattice everywhere, as nodes along the Morton curve
 *   lex    the same, x fastest
 *   grid   the seven-point stencil of a uniform grid, x fastest
 * One row of CSV per system, kind and thread count: the best of `repeat` solves from zero. seconds
 * are all of a solve, seconds_cpu those of all threads; bytes are what the solver holds at most,
 * beside matrix, b and x. --write dumps the made systems and solves nothing. */
#include <stdio.h>
#include <time.h>

#include "../test/linalg/systems.h"
#include "pressure/pressure.h"

static int numbers(const char *text, double *out)
{
    int count = 0;
    for (char *end; *text && count < 16; text = *end ? end + 1 : end)
        out[count++] = strtod(text, &end);
    return count;
}

static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0)) return true;
    return false;
}

static void must(un_context *ctx, un_status status)
{
    if (status == UN_OK) return;
    fprintf(stderr, "%s\n", ctx ? un_context_message(ctx) : "no memory");
    exit(1);
}

static test_system copy_system(const un_csr *a, const double *b, const un_sites *sites)
{
    size_t n = (size_t)a->n, entries = (size_t)a->row[a->n];
    test_system s = {.a = {.n = a->n}};
    s.a.row = memcpy(malloc((n + 1) * sizeof *s.a.row), a->row, (n + 1) * sizeof *s.a.row);
    s.a.col = memcpy(malloc(entries * sizeof *s.a.col), a->col, entries * sizeof *s.a.col);
    s.a.val = memcpy(malloc(entries * sizeof *s.a.val), a->val, entries * sizeof *s.a.val);
    s.b = memcpy(malloc(n * sizeof *s.b), b, n * sizeof *s.b);
    s.x = calloc(n, sizeof *s.x);
    s.sites = *sites;
    s.sites.site = s.site = malloc(n * sizeof *s.site);
    s.sites.key = s.key = malloc(n * sizeof *s.key);
    s.sites.level = s.level = malloc(n);
    for (size_t i = 0; i < n; i++) {
        s.site[i] = (int32_t)i;
        s.key[i] = sites->key[sites->site[i]];
        s.level[i] = sites->level[sites->site[i]];
    }
    return s;
}

static test_system make_tet_system(int32_t cells)
{
    un_context_def def = un_context_def_default();
    un_context *ctx = un_context_create(&def);
    if (!ctx) exit(1);
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_pressure *pressure;
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), (cells + 7) / 8, cells);
    int64_t count = 0, room = 7 * (int64_t)cells * cells + (int64_t)cells * cells * cells / 64;
    double *x[3];
    uint8_t *level = un_alloc(ctx, (size_t)room, 1);
    for (int a = 0; a < 3; a++) x[a] = un_alloc(ctx, (size_t)room, sizeof *x[a]);
    if (!level || !x[0] || !x[1] || !x[2]) must(ctx, UN_ERROR_MEMORY);
    /* three layers around the surface, a quarter of the resolution elsewhere */
    for (int32_t k = 0; k < cells; k++)
        for (int32_t i = 0; i < cells; i++)
            for (int32_t d = -3; d <= 3; d++) {
                double px = (i + 0.5) / cells, pz = (k + 0.5) / cells;
                x[0][count] = px, x[1][count] = test_depth(px, pz) + (double)d / cells;
                x[2][count] = pz;
                level[count++] = (uint8_t)tree.level_max;
            }
    for (int32_t k = 0; k < cells / 4; k++)
        for (int32_t j = 0; j < cells / 4; j++)
            for (int32_t i = 0; i < cells / 4; i++) {
                x[0][count] = 4 * (i + 0.5) / cells, x[1][count] = 4 * (j + 0.5) / cells;
                x[2][count] = 4 * (k + 0.5) / cells;
                level[count++] = (uint8_t)un_clampi(tree.level_max - 2, 0, 15);
            }
    un_octree_request request = {count, {x[0], x[1], x[2]}, level, NULL};
    must(ctx, un_octree_build(&tree, &arena, &request));
    un_tets_init(ctx, &mesh);
    must(ctx, un_tets_build(&mesh, &arena, &tree));
    must(ctx, un_pressure_create(ctx, NULL, &pressure));
    size_t nodes = (size_t)mesh.node_count, tets = (size_t)mesh.tet_count;
    un_vec3 *u = un_alloc(ctx, tets, sizeof *u);
    uint8_t *known = un_alloc(ctx, tets, 1);
    float *phi = un_alloc(ctx, nodes, sizeof *phi);
    double *p = un_alloc_zero(ctx, nodes, sizeof *p);
    if (!u || !known || !phi || !p) must(ctx, UN_ERROR_MEMORY);
    for (size_t n = 0; n < nodes; n++)
        phi[n] = (float)(mesh.x[n].y - test_depth(mesh.x[n].x, mesh.x[n].z));
    for (size_t t = 0; t < tets; t++) {
        un_vec3 c = un_tets_center(&mesh, (int32_t)t);
        u[t] = un_v3(0.5 - c.y, c.x - 0.6 - 0.1, sin(9 * c.x));
    }
    un_tet_projection in = {.mesh = &mesh,
                            .u = u,
                            .known = known,
                            .phi = phi,
                            .p = p,
                            .dt = 0.01,
                            .density = 1000,
                            .tolerance = 1e-4,
                            .iteration_limit = 0};
    un_tet_projection_report report;
    must(ctx, un_tet_pressure_project(pressure, &arena, &in, &report));
    un_sites sites = {.kind = UN_SITES_BCC,
                      .size = {2 * tree.n[0], 2 * tree.n[1], 2 * tree.n[2]},
                      .site = pressure->place,
                      .key = mesh.node_key,
                      .level = mesh.node_level,
                      .level_max = tree.level_max};
    test_system s = copy_system(&pressure->matrix, pressure->rhs, &sites);
    void *blocks[] = {x[0], x[1], x[2], level, u, known, phi, p};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    un_pressure_destroy(pressure);
    un_tets_free(&mesh);
    un_octree_free(&tree);
    un_arena_free(&arena);
    un_context_destroy(ctx);
    return s;
}

static test_system make_system(const char *name, int32_t cells)
{
    if (!strcmp(name, "tet")) return make_tet_system(cells);
    test_lattice lattice = {cells, strcmp(name, "grid") != 0, 1e-6, false};
    return test_system_make(lattice, !strcmp(name, "bcc"));
}

typedef struct settings {
    double threads[16], tolerance, repeat;
    int thread_count;
    const char *kinds;
} settings;

static void run(const char *name, const un_csr *a, const double *b, const un_sites *sites,
                un_solver_kind kind, int32_t threads, const settings *set)
{
    un_context_def def = un_context_def_default();
    def.threads = threads;
    un_context *ctx = un_context_create(&def);
    un_solver *solver;
    if (!ctx) exit(1);
    must(ctx, un_solver_create(ctx, &solver));
    un_solver_set_kind(solver, kind);
    un_system system = {.a = a, .b = b, .sites = sites};
    un_solve_report report;
    int32_t iterations = 0;
    double setup = INFINITY, seconds = INFINITY, cpu = INFINITY;
    double *x = malloc((size_t)a->n * sizeof *x);
    for (int q = 0; q < set->repeat; q++) {
        memset(x, 0, (size_t)a->n * sizeof *x);
        clock_t ticks = clock();
        double start = un_seconds();
        must(ctx, un_solver_solve(solver, &system, x, set->tolerance, 5000, &report));
        seconds = fmin(seconds, un_seconds() - start);
        if (q > 0 && report.iterations != iterations) {
            fprintf(stderr, "%s, %s: %d iterations, then %d\n", name, un_solver_kind_names[kind],
                    iterations, report.iterations);
            exit(1);
        }
        iterations = report.iterations;
        cpu = fmin(cpu, (double)(clock() - ticks) / CLOCKS_PER_SEC);
        setup = fmin(setup, report.seconds_setup);
    }
    printf("%s,%d,%d,%s,%d,%d,%.1e,%.4f,%.4f,%.4f,%.3f,%.0f\n", name, a->n, a->row[a->n],
           un_solver_kind_names[kind], threads, report.iterations, report.residual, setup, seconds,
           cpu, 1e6 * seconds / a->n, (double)un_context_peak_bytes(ctx) / a->n);
    fflush(stdout);
    free(x);
    un_solver_destroy(solver);
    un_context_destroy(ctx);
}

static void run_all(const char *name, const un_csr *a, const double *b, const un_sites *sites,
                    const settings *set)
{
    for (int k = 1; k < UN_SOLVER_KIND_COUNT; k++)
        for (int t = 0; t < set->thread_count; t++)
            if (listed(set->kinds, un_solver_kind_names[k]) &&
                un_solver_kind_available((un_solver_kind)k))
                run(name, a, b, sites, (un_solver_kind)k, (int32_t)set->threads[t], set);
}

/* FOLDER/NUMBER */
static void run_dumped(const char *path, const settings *set)
{
    un_context_def def = un_context_def_default();
    un_context *ctx = un_context_create(&def);
    const char *slash = strrchr(path, '/');
    un_system_file s;
    if (!ctx || !slash) {
        fprintf(stderr, "%s: name a system as FOLDER/NUMBER\n", path);
        exit(2);
    }
    char folder[1024];
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    must(ctx, un_system_read(ctx, folder, (int32_t)strtol(slash + 1, NULL, 10), &s));
    const char *name = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    run_all(name, &s.a, s.b, &s.sites, set);
    un_system_free(ctx, &s);
    un_context_destroy(ctx);
}

int main(int argc, char **argv)
{
    settings set = {{1, 2}, 1e-4, 3, 2, "jacobi,ic,mic,amg,sa,chentanez,geometric"};
    double cells[16] = {32, 64};
    int cell_count = 2;
    const char *systems = "", *write = NULL;
    bool head = false;
    static const char *const names[] = {"tet", "bcc", "lex", "grid"};
    for (int i = 1; i <= argc; i++) {
        if (i < argc && !strncmp(argv[i], "--", 2)) {
            const char *value = i + 1 < argc ? argv[i + 1] : "";
            if (!strcmp(argv[i], "--cells")) cell_count = numbers(value, cells);
            if (!strcmp(argv[i], "--threads")) set.thread_count = numbers(value, set.threads);
            if (!strcmp(argv[i], "--systems")) systems = value;
            if (!strcmp(argv[i], "--kinds")) set.kinds = value;
            if (!strcmp(argv[i], "--tolerance")) set.tolerance = strtod(value, NULL);
            if (!strcmp(argv[i], "--repeat")) set.repeat = strtod(value, NULL);
            if (!strcmp(argv[i], "--write")) write = value;
            i++;
            continue;
        }
        if (!head && !write)
            printf("system,unknowns,entries,kind,threads,iterations,residual,seconds_setup,seconds,"
                   "seconds_cpu,us_per_unknown,bytes_per_unknown\n");
        head = true;
        if (i < argc) run_dumped(argv[i], &set);
    }
    for (int c = 0; c < cell_count; c++)
        for (int n = 0; n < 4; n++) {
            if (!listed(systems, names[n])) continue;
            test_system s = make_system(names[n], (int32_t)cells[c]);
            if (write) {
                un_context_def def = un_context_def_default();
                un_context *ctx = un_context_create(&def);
                if (!ctx) exit(1);
                un_system system = {.a = &s.a, .b = s.b, .sites = &s.sites};
                must(ctx, un_system_write(ctx, write, 1, &system, s.x));
                un_context_destroy(ctx);
            } else
                run_all(names[n], &s.a, s.b, &s.sites, &set);
            test_system_free(&s);
        }
    return 0;
}
