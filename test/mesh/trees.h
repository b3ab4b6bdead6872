/* Trees for the tests of the octree and its tets. */
#ifndef UN_TEST_MESH_TREES_H
#define UN_TEST_MESH_TREES_H

#include "check.h"
#include "mesh/tets.h"

typedef struct check_points {
    int64_t count;
    double *x[3];
    uint8_t *level, *reach;
} check_points;

typedef struct check_tree_def {
    un_vec3 size;
    int32_t coarsest, finest;
    int64_t points;
    int32_t reach; /* points reach 0 .. reach */
    bool ball;     /* points near a sphere instead of everywhere, all of the finest level */
} check_tree_def;

/* Several shapes of brick, from one leaf to thin and uneven ones. */
static const check_tree_def check_trees[] = {
    {{1, 1, 1}, 1, 1, 3, 0, false},         {{1, 1, 1}, 4, 4, 5, 1, false},
    {{1, 1, 1}, 1, 16, 6, 0, false},        {{1, 1, 1}, 2, 32, 40, 1, false},
    {{2, 1, 1}, 4, 32, 12, 3, false},       {{0.3, 1.7, 0.9}, 3, 28, 30, 2, false},
    {{1, 0.02, 0.02}, 9, 72, 10, 1, false}, {{1, 1, 0.05}, 5, 40, 20, 0, false},
    {{0.7, 1, 0.4}, 4, 64, 3000, 0, true},  {{3, 3, 3}, 3, 12, 1, 2, false},
};
#define CHECK_TREE_COUNT ((int)(sizeof check_trees / sizeof *check_trees))

static inline check_points check_make_points(un_context *ctx, const check_tree_def *def,
                                             const un_octree *tree, uint64_t seed)
{
    check_points p = {.count = def->points};
    double side[3] = {def->size.x, def->size.y, def->size.z};
    for (int a = 0; a < 3; a++) p.x[a] = un_alloc(ctx, (size_t)p.count + 1, sizeof(double));
    p.level = un_alloc(ctx, (size_t)p.count + 1, 1);
    p.reach = un_alloc(ctx, (size_t)p.count + 1, 1);
    for (int64_t i = 0; i < p.count; i++) {
        double u[3];
        for (int a = 0; a < 3; a++) u[a] = un_random((uint64_t)(3 * i + a), seed);
        if (def->ball) {
            double z = 2 * u[0] - 1, r = sqrt(1 - z * z), angle = 2 * UN_PI * u[1];
            u[0] = 0.5 + 0.3 * r * cos(angle), u[1] = 0.5 + 0.3 * r * sin(angle);
            u[2] = 0.5 + 0.3 * z;
        }
        /* Some lie outside. */
        for (int a = 0; a < 3; a++) p.x[a][i] = side[a] * (def->ball ? u[a] : 1.2 * u[a] - 0.1);
        double roll = un_random((uint64_t)i, seed + 1);
        p.level[i] =
            (uint8_t)(def->ball ? tree->level_max : (int)(roll * (tree->level_max + 1.999)));
        p.reach[i] = (uint8_t)(un_random((uint64_t)i, seed + 2) * (def->reach + 1));
        if (i % 4 == 3) { /* the same place again, with a reach of its own */
            for (int a = 0; a < 3; a++) p.x[a][i] = p.x[a][i - 1];
            p.level[i] = p.level[i - 1];
        }
    }
    return p;
}

static inline void check_free_points(un_context *ctx, check_points *p)
{
    for (int a = 0; a < 3; a++) un_free(ctx, p->x[a]);
    un_free(ctx, p->level);
    un_free(ctx, p->reach);
}

static inline un_octree_request check_request(const check_points *p)
{
    return (un_octree_request){p->count, {p->x[0], p->x[1], p->x[2]}, p->level, p->reach};
}

/* A built tree; ends with un_octree_free. */
static inline void check_build_tree(un_context *ctx, un_octree *tree, const check_tree_def *def,
                                    uint64_t seed)
{
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, tree, def->size, def->coarsest, def->finest);
    check_points points = check_make_points(ctx, def, tree, seed);
    un_octree_request request = check_request(&points);
    check_ok(ctx, un_octree_build(tree, &arena, &request));
    check_free_points(ctx, &points);
    un_arena_free(&arena);
}

#endif
