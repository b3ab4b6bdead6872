/* Times viscous solves: a box of thick liquid with a wavy surface that whirls over a floor it
 * sticks to.
 *
 *     build/test/bench_viscous [--cells 64,96] [--viscosity 1,100,1e4] [--kinds jacobi,ic,sa]
 *         [--threads 1,2] [--tolerance 1e-4] [--repeat 3] [--graded 0,1] [--laplacian] [--volume]
 *
 * cells: along each side; graded: that fine at the surface only, four times coarser below. dt is
 * 0.01 s, density 1000. One row of CSV each, the best of `repeat`: seconds are all of it,
 * seconds_assembly the matrix, seconds_setup the preconditioner; tets and nodes those of the
 * liquid; bytes what the solver holds at most, matrix included; rounds those of the pressure that
 * keeps the volume, with --volume, from no guess. */
#include <stdio.h>
#include <stdlib.h>

#include "viscosity/viscosity.h"

static int numbers(const char *text, double *out)
{
    int count = 0;
    for (char *end; *text && count < 16; text = *end ? end + 1 : end)
        out[count++] = strtod(text, &end);
    return count;
}

static void must(un_context *ctx, un_status status)
{
    if (status == UN_OK) return;
    fprintf(stderr, "%s\n", ctx ? un_context_message(ctx) : "no memory");
    exit(1);
}

static double depth(double x, double z)
{
    return 0.8 + 0.06 * sin(7 * x + 1) + 0.05 * cos(9 * z + 4 * x);
}

typedef struct pot {
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_vec3 *u, *start;
    float *phi;
    un_viscous_walls walls;
} pot;

static void pot_make(pot *p, un_context *ctx, int32_t cells, bool graded)
{
    memset(p, 0, sizeof *p);
    p->ctx = ctx;
    un_arena_init(&p->arena, ctx);
    un_octree_init(ctx, &p->tree, un_v3(1, 1, 1), (cells + 7) / 8, cells);
    size_t room = (size_t)cells * (size_t)cells * (size_t)cells, count = 0;
    double *x[3];
    uint8_t *level = un_alloc(ctx, room, 1);
    for (int a = 0; a < 3; a++) x[a] = un_alloc(ctx, room, sizeof *x[a]);
    if (!level || !x[0] || !x[1] || !x[2]) must(ctx, UN_ERROR_MEMORY);
    for (size_t c = 0; c < room; c++) {
        size_t n = (size_t)cells;
        double h = 1.0 / cells,
               at[3] = {h * ((double)(c % n) + 0.5), h * ((double)(c / n % n) + 0.5),
                        h * ((double)(c / n / n) + 0.5)};
        double phi = at[1] - depth(at[0], at[2]);
        if (phi > 3 * h) continue;
        for (int a = 0; a < 3; a++) x[a][count] = at[a];
        level[count++] = (uint8_t)(p->tree.level_max - (graded && phi < -2 * h ? 2 : 0));
    }
    un_octree_request request = {.count = (int64_t)count, .x = {x[0], x[1], x[2]}, .level = level};
    must(ctx, un_octree_build(&p->tree, &p->arena, &request));
    for (int a = 0; a < 3; a++) un_free(ctx, x[a]);
    un_free(ctx, level);
    un_tets_init(ctx, &p->mesh);
    must(ctx, un_tets_build(&p->mesh, &p->arena, &p->tree));
    un_arena_reset(&p->arena);
    size_t nodes = (size_t)p->mesh.node_count;
    p->u = un_alloc(ctx, nodes, sizeof *p->u);
    p->start = un_alloc(ctx, nodes, sizeof *p->start);
    p->phi = un_alloc(ctx, nodes, sizeof *p->phi);
    p->walls.kind = un_alloc_zero(ctx, nodes, 1);
    p->walls.u = un_alloc_zero(ctx, nodes, sizeof *p->walls.u);
    if (!p->u || !p->start || !p->phi || !p->walls.kind || !p->walls.u) must(ctx, UN_ERROR_MEMORY);
    for (size_t n = 0; n < nodes; n++) {
        un_vec3 at = p->mesh.x[n];
        p->phi[n] = (float)(at.y - depth(at.x, at.z));
        p->start[n] = un_v3(sin(5 * at.y) * cos(3 * at.z), -0.1 - sin(4 * at.x), sin(6 * at.x));
        if (at.y < 1e-9) p->walls.kind[n] = UN_WALL_STICKS;
    }
}

static void pot_free(pot *p)
{
    un_free(p->ctx, p->u);
    un_free(p->ctx, p->start);
    un_free(p->ctx, p->phi);
    un_viscous_walls_free(p->ctx, &p->walls);
    un_tets_free(&p->mesh);
    un_octree_free(&p->tree);
    un_arena_free(&p->arena);
}

int main(int argc, char **argv)
{
    double cells[16] = {48}, mu[16] = {100}, threads[16] = {2}, graded[16] = {0}, one[16];
    int cell_count = 1, mu_count = 1, thread_count = 1, graded_count = 1, repeat = 3;
    const char *kinds = "jacobi,ic,sa";
    double tolerance = 1e-4;
    bool laplacian = false, volume = false;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(name, "--laplacian") == 0) {
            laplacian = true;
            continue;
        }
        if (strcmp(name, "--volume") == 0) {
            volume = true;
            continue;
        }
        i++;
        if (strcmp(name, "--cells") == 0) cell_count = numbers(value, cells);
        if (strcmp(name, "--viscosity") == 0) mu_count = numbers(value, mu);
        if (strcmp(name, "--threads") == 0) thread_count = numbers(value, threads);
        if (strcmp(name, "--graded") == 0) graded_count = numbers(value, graded);
        if (strcmp(name, "--kinds") == 0) kinds = value;
        if (strcmp(name, "--tolerance") == 0 && numbers(value, one)) tolerance = one[0];
        if (strcmp(name, "--repeat") == 0 && numbers(value, one)) repeat = (int)one[0];
    }
    printf("cells,graded,tets,nodes,viscosity,kind,threads,iterations,residual,levels,complexity,"
           "seconds,seconds_assembly,seconds_setup,bytes,rounds\n");
    for (int run = 0; run < cell_count * graded_count * thread_count; run++) {
        un_context_def def = un_context_def_default();
        def.threads = (int32_t)threads[run % thread_count];
        un_context *ctx = un_context_create(&def);
        if (!ctx) return 1;
        int32_t m = (int32_t)cells[run / thread_count / graded_count];
        bool fine = graded[run / thread_count % graded_count] != 0;
        pot p;
        pot_make(&p, ctx, m, fine);
        size_t nodes = (size_t)p.mesh.node_count, before = un_context_bytes(ctx);
        for (int k = 0; k < mu_count * UN_BLOCK_KIND_COUNT; k++) {
            int kind = k % UN_BLOCK_KIND_COUNT;
            if (!strstr(kinds, un_block_kind_names[kind])) continue;
            un_viscosity *v;
            un_viscous_report report, best = {0};
            double least = INFINITY, bytes = 0;
            must(ctx, un_viscosity_create(ctx, &v));
            un_block_solver_set_kind(v->solver, (un_block_kind)kind);
            for (int r = 0; r < repeat; r++) {
                un_viscous_def in = {.mesh = &p.mesh,
                                     .u = p.u,
                                     .phi = p.phi,
                                     .walls = &p.walls,
                                     .viscosity_all = mu[k / UN_BLOCK_KIND_COUNT],
                                     .density_all = 1000,
                                     .dt = 0.01,
                                     .tolerance = tolerance,
                                     .iteration_limit = 5000,
                                     .keeps_volume = volume,
                                     .laplacian = laplacian};
                memcpy(p.u, p.start, nodes * sizeof *p.u);
                double start = un_seconds();
                must(ctx, un_viscosity_solve(v, &p.arena, &in, &report));
                double seconds = un_seconds() - start;
                bytes = fmax(bytes, (double)(un_context_bytes(ctx) - before));
                un_arena_reset(&p.arena);
                if (seconds >= least) continue;
                least = seconds;
                best = report;
            }
            printf("%d,%d,%d,%d,%g,%s,%d,%d,%.2e,%d,%.2f,%.3f,%.3f,%.3f,%.0f,%d\n", m, fine,
                   best.tet_count, best.node_count, mu[k / UN_BLOCK_KIND_COUNT],
                   un_block_kind_names[kind], def.threads, best.solve.iterations,
                   best.solve.residual, best.solve.level_count, best.solve.complexity, least,
                   best.seconds_assembly, best.solve.seconds_setup, bytes, best.rounds);
            fflush(stdout);
            un_viscosity_destroy(v);
        }
        pot_free(&p);
        un_context_destroy(ctx);
    }
    return 0;
}
