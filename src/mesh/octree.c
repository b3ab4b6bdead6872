/* The octree's shape, lookup and checks; built in octree_build.c. */
#include "mesh/octree.h"

/* A side that is a whole number of cubes up to this share of one gets no extra cube. */
#define SIDE_TOLERANCE 1e-6

void un_octree_init(un_context *ctx, un_octree *tree, un_vec3 size, int32_t coarsest,
                    int32_t finest)
{
    double side[3] = {size.x, size.y, size.z};
    double longest = fmax(fmax(size.x, size.y), size.z);
    UN_ASSERT(longest > 0 && coarsest >= 1 && finest >= 1);
    *tree = (un_octree){.ctx = ctx, .dim = size.z > 0 ? 3 : 2, .size = size};
    while (tree->level_max < UN_LEVELS_MAX && (int64_t)coarsest << (tree->level_max + 1) <= finest)
        tree->level_max++;
    tree->h = longest / finest;
    tree->unit = tree->h / 2;
    tree->inverse_h = finest / longest;
    for (int32_t l = 0; l <= tree->level_max; l++) {
        tree->edge[l] = ldexp(tree->h, tree->level_max - l);
        tree->inverse_edge[l] = 1 / tree->edge[l];
    }
    double root = tree->edge[0];
    for (int a = 0; a < 3; a++) {
        tree->roots[a] = (int32_t)fmax(1, ceil(side[a] / root - SIDE_TOLERANCE));
        tree->n[a] = tree->roots[a] << tree->level_max;
    }
    if (tree->dim == 2) tree->n[2] = 1;
}

void un_octree_free(un_octree *tree)
{
    un_free(tree->ctx, tree->key);
    un_free(tree->ctx, tree->level);
    un_free(tree->ctx, tree->table);
    un_free(tree->ctx, tree->known);
    tree->known = NULL;
    tree->capacity_known = 0;
    tree->partial = false;
    tree->key = NULL;
    tree->level = NULL;
    tree->table = NULL;
    tree->capacity_key = tree->capacity_level = tree->capacity_table = 0;
    tree->leaf_count = 0;
}

int32_t un_octree_find(const un_octree *tree, un_vec3 x)
{
    return un_octree_find_key(tree, un_morton((uint32_t)un_octree_index(tree, x.x, 0),
                                              (uint32_t)un_octree_index(tree, x.y, 1),
                                              (uint32_t)un_octree_index(tree, x.z, 2)));
}

int32_t un_octree_find_at(const un_octree *tree, int32_t i, int32_t j, int32_t k)
{
    if (i < 0 || j < 0 || k < 0 || i >= tree->n[0] || j >= tree->n[1] || k >= tree->n[2]) return -1;
    return un_octree_find_key(tree, un_morton((uint32_t)i, (uint32_t)j, (uint32_t)k));
}

int32_t un_octree_level(const un_octree *tree, double size)
{
    for (int32_t l = 0; l < tree->level_max; l++)
        if (un_octree_size(tree, l) <= size * (1 + 1e-9)) return l;
    return tree->level_max;
}

static bool invalid(const char **reason, const char *why)
{
    if (reason) *reason = why;
    return false;
}

bool un_octree_validate(const un_octree *tree, const char **reason)
{
    uint64_t volume = 0, brick = 1, plane = UN_MORTON_LANE | UN_MORTON_LANE << 1;
    for (int a = 0; a < 3; a++) brick *= (uint64_t)tree->n[a];
    for (int32_t c = 0; c < tree->leaf_count; c++) {
        if (tree->level[c] > tree->level_max) return invalid(reason, "a leaf is too deep");
        int32_t above = tree->level_max - tree->level[c];
        uint64_t key = tree->key[c], codes = (uint64_t)1 << 3 * above;
        if (key % codes) return invalid(reason, "a leaf is not at a place of its size");
        if (c > 0) {
            uint64_t last = (uint64_t)1 << 3 * (tree->level_max - tree->level[c - 1]);
            if (tree->key[c - 1] + last > key)
                return invalid(reason, "leaves overlap or are not sorted");
        }
        for (int a = 0; a < 3; a++)
            if (un_morton_gather(key >> a) >= (uint32_t)tree->n[a])
                return invalid(reason, "a leaf lies outside the brick");
        volume += (uint64_t)1 << tree->dim * above;
        uint64_t last_cube = key + (tree->dim == 2 ? (codes - 1) & plane : codes - 1);
        if (un_octree_find_key(tree, key) != c || un_octree_find_key(tree, last_cube) != c)
            return invalid(reason, "a leaf is not found at its corners");
    }
    if (volume != brick) return invalid(reason, "leaves do not fill the brick");
    for (int32_t c = 0; c < tree->leaf_count; c++) {
        int32_t s = 1 << (tree->level_max - tree->level[c]), at[3], d[3];
        for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(tree->key[c] >> a);
        for (int e = 0; e < 27; e++) {
            d[0] = e % 3 - 1, d[1] = e / 3 % 3 - 1, d[2] = e / 9 - 1;
            if (d[0] && d[1] && d[2]) continue;
            int32_t m =
                un_octree_find_at(tree, at[0] + s * d[0], at[1] + s * d[1], at[2] + s * d[2]);
            /* A neighbour that is finer by two levels is found from its own side. */
            if (m >= 0 && tree->level[m] + 1 < tree->level[c])
                return invalid(reason, "leaves that share a face or an edge differ by two levels");
        }
    }
    return true;
}

un_status un_octree_request_leaves(un_octree_request *request, un_arena *arena,
                                   const un_octree *tree, const uint64_t *key, const uint8_t *level,
                                   int64_t count)
{
    double *x[3];
    uint8_t *wanted = un_arena_alloc(arena, (size_t)count + 1, sizeof *wanted);
    for (int a = 0; a < 3; a++)
        if (!(x[a] = un_arena_alloc(arena, (size_t)count + 1, sizeof *x[a])))
            return UN_ERROR_MEMORY;
    if (!wanted) return UN_ERROR_MEMORY;
    for (int64_t c = 0; c < count; c++) {
        wanted[c] = level[c] <= tree->level_max ? level[c] : (uint8_t)tree->level_max;
        double half = 0.5 * un_octree_size(tree, wanted[c]);
        for (int a = 0; a < 3; a++) x[a][c] = tree->h * un_morton_gather(key[c] >> a) + half;
    }
    *request = (un_octree_request){.count = count, .x = {x[0], x[1], x[2]}, .level = wanted};
    return UN_OK;
}
