/* Meshes, level sets and scenes for the tests of sizing. */
#ifndef UN_TEST_SIZING_FIELDS_H
#define UN_TEST_SIZING_FIELDS_H

#include "scene/files.h"
#include "sizing/sizing.h"

#define WATER "liquid = { box { min = {0, 0, 0}, max = {1, .5, 1} } }"
#define ALONE(term)                                                                                \
    "sizing = { depth = false, curvature = false, solid_curvature = false, strain = false, "       \
    "film = false, " term " }"

typedef double level_set(un_vec3 x, const double *p);

typedef struct bench {
    un_context *ctx;
    un_arena arena;
    un_scene *scene;
    un_octree tree;
    un_tets mesh;
    un_bodies *bodies;
    un_walls *walls;
    un_tet_walls tet_walls;
    float *phi, *size;
    un_vec3 *velocity;
    un_sizing_nodes nodes;
    un_sizing_def def;
} bench;

/* `cells` along the domain's longest side, everywhere. */
static inline void bench_uniform(bench *b, int32_t cells)
{
    un_vec3 size = b->scene->def.domain.size;
    double x = 0.5 * size.x, y = 0.5 * size.y, z = 0.5 * size.z;
    double h = fmax(size.x, fmax(size.y, size.z)) / cells;
    uint8_t level = (uint8_t)un_octree_level(&b->tree, h), reach = (uint8_t)(cells / 2 + 2);
    un_octree_request request = {1, {&x, &y, &z}, &level, &reach};
    check_ok(b->ctx, un_octree_build(&b->tree, &b->arena, &request));
    check_ok(b->ctx, un_tets_build(&b->mesh, &b->arena, &b->tree));
}

/* Of all sizes: random points want random levels. */
static inline void bench_graded(bench *b, int32_t count, uint64_t seed)
{
    un_vec3 size = b->scene->def.domain.size;
    double *x[3];
    uint8_t *level = malloc((size_t)count);
    for (uint64_t a = 0; a < 3; a++) x[a] = malloc((size_t)count * sizeof(double));
    for (int32_t i = 0; i < count; i++) {
        uint64_t k = (uint64_t)i;
        x[0][i] = size.x * un_random(k, seed);
        x[1][i] = size.y * un_random(k, seed + 1);
        x[2][i] = size.z * un_random(k, seed + 2);
        level[i] = (uint8_t)(un_random(k, seed + 3) * (b->tree.level_max + 0.999));
    }
    un_octree_request request = {count, {x[0], x[1], x[2]}, level, NULL};
    check_ok(b->ctx, un_octree_build(&b->tree, &b->arena, &request));
    check_ok(b->ctx, un_tets_build(&b->mesh, &b->arena, &b->tree));
    for (int a = 0; a < 3; a++) free(x[a]);
    free(level);
}

static inline void bench_fields(bench *b, level_set *phi, const double *p)
{
    b->def = (un_sizing_def){.scene = b->scene, .nodes = &b->nodes, .scale = 1};
    if (b->scene->def.solid_count > 0) {
        static un_grid grid;
        grid = un_grid_make(b->scene->def.domain.size, b->scene->def.detail.finest);
        check_ok(b->ctx, un_bodies_create(b->ctx, b->scene, &b->bodies));
        check_ok(b->ctx, un_walls_create(b->ctx, &grid, b->bodies, false, &b->walls));
        un_tet_walls_init(b->ctx, &b->tet_walls, b->walls);
        check_ok(b->ctx, un_tet_walls_sample(&b->tet_walls, &b->arena, &b->mesh));
        b->def.wall = b->tet_walls.phi;
        b->def.solid = b->tet_walls.phi_solid;
        b->def.narrow = b->tet_walls.narrow;
    }
    size_t nodes = (size_t)b->mesh.node_count;
    b->phi = malloc(nodes * sizeof *b->phi);
    b->size = malloc(nodes * sizeof *b->size);
    for (size_t n = 0; n < nodes; n++) {
        b->phi[n] = (float)phi(b->mesh.x[n], p);
        b->size[n] = NAN;
    }
    b->def.phi = b->phi;
}

static inline void bench_begin(bench *b, int32_t threads, const char *text)
{
    *b = (bench){.ctx = check_context_threads(threads)};
    const un_scene_def *def;
    un_arena_init(&b->arena, b->ctx);
    b->scene = load_valid(b->ctx, text);
    def = &b->scene->def;
    un_octree_init(b->ctx, &b->tree, def->domain.size, def->detail.coarsest, def->detail.finest);
    un_tets_init(b->ctx, &b->mesh);
}

static inline void bench_evaluate(bench *b)
{
    un_arena_reset(&b->arena);
    check_ok(b->ctx, un_sizing_nodes_tets(b->ctx, &b->arena, &b->nodes, &b->mesh, b->phi));
    check_ok(b->ctx, un_sizing_evaluate(b->ctx, &b->arena, b->size, &b->def));
}

static inline void bench_end(bench *b)
{
    if (b->walls) un_tet_walls_free(&b->tet_walls);
    un_walls_destroy(b->walls);
    un_bodies_destroy(b->bodies);
    free(b->phi);
    free(b->size);
    free(b->velocity);
    un_tets_free(&b->mesh);
    un_octree_free(&b->tree);
    un_arena_free(&b->arena);
    un_scene_destroy(b->scene);
    check_context_end(b->ctx);
}

/* All of it at once on a uniform mesh. */
static inline void bench_make(bench *b, const char *text, int32_t cells, level_set *phi,
                              const double *p)
{
    bench_begin(b, 2, text);
    bench_uniform(b, cells);
    bench_fields(b, phi, p);
}

/* Least and largest size at nodes with from <= phi <= to and a whole cell inside the brick. */
typedef struct extent {
    double least, most;
    int32_t count;
} extent;
static inline extent bench_extent(const bench *b, double from, double to)
{
    extent e = {INFINITY, -INFINITY, 0};
    for (int32_t n = 0; n < b->mesh.node_count; n++) {
        if (!(b->phi[n] >= from && b->phi[n] <= to)) continue;
        e.least = fmin(e.least, b->size[n]);
        e.most = fmax(e.most, b->size[n]);
        e.count++;
    }
    return e;
}

/* The node nearest to x. */
static inline int32_t bench_node(const bench *b, un_vec3 x)
{
    int32_t best = 0;
    for (int32_t n = 1; n < b->mesh.node_count; n++)
        if (un_length(un_sub(b->mesh.x[n], x)) < un_length(un_sub(b->mesh.x[best], x))) best = n;
    return best;
}

/* p: a point and a normal */
static inline double plane_set(un_vec3 x, const double *p)
{
    return un_dot(un_sub(x, un_v3(p[0], p[1], p[2])), un_normalize(un_v3(p[3], p[4], p[5])));
}
/* p: centre, radius */
static inline double ball_set(un_vec3 x, const double *p)
{
    return un_length(un_sub(x, un_v3(p[0], p[1], p[2]))) - p[3];
}

#endif
