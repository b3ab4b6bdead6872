/* Octrees that cover a shape, from which a method starts. */
#include "mesh/mesh.h"

/* Leaves are halved where the shape's distance in the middle differs from that at the corners by
 * this share of their size: otherwise drops and sheets thinner than the samples would start far too
 * large. */
#define SHAPE_BENT 0.15

un_status un_octree_cover(un_octree *tree, un_arena *arena, un_box3 box, double particles_max)
{
    un_vec3 lo = un_max3(box.min, un_v3(0, 0, 0)), hi = un_min3(box.max, tree->size);
    un_vec3 side = un_max3(un_sub(hi, lo), un_v3(0, 0, 0));
    int32_t level = tree->level_max;
    bool flat = tree->dim == 2;
    double h = un_octree_size(tree, level), volume = side.x * side.y * (flat ? 1 : side.z);
    while (level > 0 && (flat ? 4 * volume / (h * h) : 8 * volume / (h * h * h)) > particles_max)
        h = un_octree_size(tree, --level);
    int64_t n[3] = {(int64_t)(side.x / h) + 2, (int64_t)(side.y / h) + 2,
                    (int64_t)(side.z / h) + 2};
    int64_t count = n[0] * n[1] * n[2];
    double *x[3];
    uint8_t *levels = un_arena_alloc(arena, (size_t)count, 1);
    for (int a = 0; a < 3; a++) x[a] = un_arena_alloc(arena, (size_t)count, sizeof(double));
    if (!levels || !x[0] || !x[1] || !x[2]) return UN_ERROR_MEMORY;
    memset(levels, level, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        x[0][i] = fmin(lo.x + h * (double)(i % n[0]), hi.x);
        x[1][i] = fmin(lo.y + h * (double)(i / n[0] % n[1]), hi.y);
        x[2][i] = fmin(lo.z + h * (double)(i / (n[0] * n[1])), hi.z);
    }
    un_octree_request all = {.count = count, .x = {x[0], x[1], x[2]}, .level = levels};
    UN_TRY(un_octree_build(tree, arena, &all));
    un_arena_reset(arena);
    return UN_OK;
}

typedef struct bend_args {
    const un_octree *tree;
    const un_shape *shape;
    double *x[3]; /* middles of the leaves */
    uint8_t *level;
} bend_args;

/* Counts the leaves to halve. */
static double bends(void *arg, int64_t begin, int64_t end)
{
    bend_args *a = arg;
    const un_octree *tree = a->tree;
    double count = 0;
    for (int64_t leaf = begin; leaf < end; leaf++) {
        double h = un_octree_size(tree, tree->level[leaf]), around = 0;
        un_vec3 corner = un_octree_corner(tree, (int32_t)leaf);
        un_vec3 middle = un_add(corner, un_v3(0.5 * h, 0.5 * h, 0.5 * h));
        a->x[0][leaf] = middle.x;
        a->x[1][leaf] = middle.y;
        a->x[2][leaf] = middle.z;
        a->level[leaf] = tree->level[leaf];
        if (tree->level[leaf] == tree->level_max) continue;
        double d = un_shape_distance(a->shape, middle);
        if (fabs(d) > 0.87 * h) continue; /* no surface here */
        for (int c = 0; c < 8; c++)
            around += 0.125 * un_shape_distance(
                                  a->shape, un_mad(corner, un_v3(c & 1, c >> 1 & 1, c >> 2), h));
        if (fabs(around - d) < SHAPE_BENT * h) continue;
        a->level[leaf]++;
        count++;
    }
    return count;
}

un_status un_octree_follow(un_octree *tree, un_arena *arena, const un_shape *shape,
                           double particles_max)
{
    for (;;) {
        int64_t leaves = tree->leaf_count;
        bend_args a = {
            .tree = tree, .shape = shape, .level = un_arena_alloc(arena, (size_t)leaves, 1)};
        for (int i = 0; i < 3; i++) a.x[i] = un_arena_alloc(arena, (size_t)leaves, sizeof(double));
        if (!a.level || !a.x[0] || !a.x[1] || !a.x[2]) return UN_ERROR_MEMORY;
        double count = un_parallel_sum(tree->ctx, leaves, bends, &a);
        bool done = count == 0 || 8 * ((double)leaves + 7 * count) > particles_max;
        un_octree_request all = {.count = leaves, .x = {a.x[0], a.x[1], a.x[2]}, .level = a.level};
        un_status status = done ? UN_OK : un_octree_build(tree, arena, &all);
        un_arena_reset(arena);
        if (done || status) return status;
    }
}
