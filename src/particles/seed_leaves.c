/* Seeding on an octree: eight jittered particles per leaf, on a quadtree four, so that their sizes
 * follow the leaves'. */
#include "particles/fill.h"

#define LEAF_BLOCK 128

typedef struct leaves_args {
    const un_seed_leaves_def *def;
    un_fill fill;
    un_fill_pass pass; /* by leaf */
    int32_t first;     /* leaf */
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
    for (int64_t leaf = begin; leaf < end; leaf++) at += seed_leaf(a, a->first + (int32_t)leaf, at);
    if (!a->pass.particles) *first = at;
}

un_status un_particles_seed_leaves(un_context *ctx, un_particles *particles,
                                   const un_seed_leaves_def *def, double *volume)
{
    leaves_args a = {.def = def,
                     .fill = {def->shape, def->walls, def->tree->size, def->tree->dim, -INFINITY}};
    const un_tree_share *part = def->part;
    int64_t count = part ? part->end - part->begin : def->tree->leaf_count, old = particles->count;
    a.first = part ? part->begin : 0;
    a.pass = (un_fill_pass){.count = count, .grain = LEAF_BLOCK, .body = seed_blocks, .arg = &a};
    un_status status = un_fill_append(ctx, particles, &a.pass, volume);
    if (!part) return status;
    UN_TRY(un_ranks_agree(ctx, status));
    *volume = 0; /* added up as by one rank: one after the other */
    un_ranks_begin_turn(ctx, volume, sizeof *volume);
    for (int64_t q = old; q < particles->count; q++) *volume += particles->volume[q];
    un_ranks_end_turn(ctx, volume, sizeof *volume);
    return UN_OK;
}
