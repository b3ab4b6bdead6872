/* Seeding on an octree: eight jittered particles per leaf, on a quadtree four, so that their sizes
 * follow the leaves'. */
#include "particles/fill.h"

#define LEAF_BLOCK 128

typedef struct leaves_args {
    const un_seed_leaves_def *def;
    un_fill fill;
    un_particles *particles; /* NULL: count only */
    int64_t *block_begin;    /* by block of leaves: counts, then offsets */
} leaves_args;

/* Stores the particles of a leaf from `at` on; returns their number. */
static int64_t seed_leaf(const leaves_args *a, int32_t leaf, int64_t at)
{
    const un_octree *tree = a->def->tree;
    double h = un_octree_size(tree, tree->level[leaf]), s = 0.5 * h;
    un_vec3 corner = un_octree_corner(tree, leaf);
    bool flat = tree->dim == 2;
    un_vec3 center = un_add(corner, un_v3(s, s, flat ? 0 : s));
    int64_t count = 0;
    /* Shape distances never exceed the true ones: beyond half the diagonal the leaf is empty. */
    if (un_shape_distance(a->fill.shape, center) > 0.87 * h) return 0;
    for (uint64_t c = 0; c < 1u << tree->dim; c++) {
        un_vec3 x =
            un_mad(corner, un_v3((c & 1) + 0.5, (c >> 1 & 1) + 0.5, flat ? 0 : (c >> 2) + 0.5), s);
        un_vec3 jitter =
            un_fill_jitter(un_hash64(8 * tree->key[leaf] + c), a->def->stream, tree->dim);
        un_seed seed;
        if (!un_fill_half_cell(&a->fill, x, s, jitter, &seed)) continue;
        if (a->particles) un_fill_store(a->particles, at + count, &seed, a->def->velocity, h);
        count++;
    }
    return count;
}

static void seed_blocks(void *arg, int64_t begin, int64_t end)
{
    leaves_args *a = arg;
    int64_t *first = a->block_begin + begin / LEAF_BLOCK, at = a->particles ? *first : 0;
    for (int64_t leaf = begin; leaf < end; leaf++) at += seed_leaf(a, (int32_t)leaf, at);
    if (!a->particles) *first = at;
}

un_status un_particles_seed_leaves(un_context *ctx, un_particles *particles,
                                   const un_seed_leaves_def *def, double *volume)
{
    int64_t leaves = def->tree->leaf_count, blocks = (leaves + LEAF_BLOCK - 1) / LEAF_BLOCK;
    leaves_args a = {.def = def, .fill = {def->shape, def->walls, def->tree->size, def->tree->dim}};
    int64_t total = particles->count;
    *volume = 0;
    UN_ALLOC(ctx, a.block_begin, blocks + 1);
    un_parallel_for(ctx, leaves, LEAF_BLOCK, seed_blocks, &a);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t n = a.block_begin[b];
        a.block_begin[b] = total;
        total += n;
    }
    un_status status = un_particles_reserve(ctx, particles, total);
    if (status == UN_OK) {
        a.particles = particles;
        un_parallel_for(ctx, leaves, LEAF_BLOCK, seed_blocks, &a);
        for (int64_t i = particles->count; i < total; i++) *volume += particles->volume[i];
        particles->count = (int32_t)total;
    }
    un_free(ctx, a.block_begin);
    return status;
}
