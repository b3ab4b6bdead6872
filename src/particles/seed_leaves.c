/* Seeding on an octree: eight jittered particles per leaf, on a quadtree four, so that their sizes
 * follow the leaves'. */
#include "particles/fill.h"

#define LEAF_BLOCK 128

typedef struct leaves_args {
    const un_seed_leaves_def *def;
    un_fill fill;
    un_fill_pass pass; /* by leaf */
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
    un_fill fill = a->fill;
    if (un_shape_distance(fill.shape, center) > 0.87 * h) return 0;
    fill.wall = un_walls_distance_exact(fill.walls, center) - 0.434 * h;
    for (uint64_t c = 0; c < 1u << tree->dim; c++) {
        un_vec3 x =
            un_mad(corner, un_v3((c & 1) + 0.5, (c >> 1 & 1) + 0.5, flat ? 0 : (c >> 2) + 0.5), s);
        un_vec3 jitter =
            un_fill_jitter(un_hash64(8 * tree->key[leaf] + c), a->def->stream, tree->dim);
        un_seed seed;
        if (!un_fill_half_cell(&fill, x, s, jitter, &seed)) continue;
        if (a->pass.particles)
            un_fill_store(a->pass.particles, at + count, &seed, a->def->velocity, h);
        count++;
    }
    return count;
}

static void seed_blocks(void *arg, int64_t begin, int64_t end)
{
    leaves_args *a = arg;
    int64_t *first = a->pass.begin + begin / LEAF_BLOCK, at = a->pass.particles ? *first : 0;
    for (int64_t leaf = begin; leaf < end; leaf++) at += seed_leaf(a, (int32_t)leaf, at);
    if (!a->pass.particles) *first = at;
}

un_status un_particles_seed_leaves(un_context *ctx, un_particles *particles,
                                   const un_seed_leaves_def *def, double *volume)
{
    leaves_args a = {.def = def,
                     .fill = {def->shape, def->walls, def->tree->size, def->tree->dim, -INFINITY}};
    a.pass = (un_fill_pass){
        .count = def->tree->leaf_count, .grain = LEAF_BLOCK, .body = seed_blocks, .arg = &a};
    return un_fill_append(ctx, particles, &a.pass, volume);
}
