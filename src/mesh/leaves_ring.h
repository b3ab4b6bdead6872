/* The cubes of one size around a cube, for values on the lattices of an octree's levels
 * (leaves_sample.c, leaves_flow.c).
 *
 * Where the mesh is coarser, values on the lattice of level l lie between those of level l - 1.
 * What the 3^dim cubes around a cube need there belongs to the 3^dim around its parent: so one ring
 * for each level is enough, and siblings share those of their parents. */
#ifndef UN_MESH_LEAVES_RING_H
#define UN_MESH_LEAVES_RING_H

#include "base/lanes.h"
#include "mesh/mesh.h"

static const int un_ring_step[3] = {1, 3, 9};

/* No cube has this key. */
#define UN_RING_NONE UINT64_MAX
#define UN_RING_UNKNOWN (-2)

static inline int un_ring_shift(const un_octree *tree, int level)
{
    return 3 * (tree->level_max - level);
}

/* The key of the parent of a cube of a level. */
static inline uint64_t un_ring_parent(const un_octree *tree, uint64_t key, int level)
{
    int shift = un_ring_shift(tree, level - 1);
    return key >> shift << shift;
}

/* Which child of its parent a cube is: bit a along axis a. */
static inline int un_ring_child(const un_octree *tree, uint64_t key, int level)
{
    return (int)(key >> un_ring_shift(tree, level)) & 7;
}

/* leaf: the middle cube if it is a leaf that sees all leaves around it, else -1. */
static inline void un_ring_find(un_ring *r, const un_leaves *m, uint64_t key, int level,
                                int32_t leaf)
{
    const un_octree *tree = m->tree;
    int32_t s = 1 << (tree->level_max - level);
    int deep = m->dim == 3;
    r->key = key;
    for (int a = 0; a < 3; a++) {
        int32_t at = (int32_t)un_morton_gather(key >> a);
        for (int d = 0; d < 3; d++) {
            int32_t i = at + (d - 1) * s;
            r->in[a][d] = d == 1 || (i >= 0 && i < tree->n[a] && (a < 2 || deep));
            if (leaf < 0 && r->in[a][d])
                r->part[a][d] = un_morton_spread((uint64_t)(uint32_t)i) << a;
        }
    }
    if (leaf >= 0) {
        const int32_t *near = un_leaf_near(m, leaf);
        for (int n = 0; n < m->near_count; n++) r->near[deep ? n : 9 + n] = near[n];
        return;
    }
    for (int n = deep ? 0 : 9; n < (deep ? 27 : 18); n++) r->near[n] = UN_RING_UNKNOWN;
}

static inline int32_t un_ring_near(un_ring *r, const un_octree *tree, int n)
{
    if (r->near[n] != UN_RING_UNKNOWN) return r->near[n];
    int x = n % 3, y = n / 3 % 3, z = n / 9;
    bool in = r->in[0][x] && r->in[1][y] && r->in[2][z];
    uint64_t key = in ? r->part[0][x] | r->part[1][y] | r->part[2][z] : 0;
    return r->near[n] = in ? un_octree_find_key(tree, key) : -1;
}

/* Where cube b + d of the finer level lies among the centres of the coarser one, b the middle
 * cube's place in its parent: between centres `low` and low + 1, by this share. */
static inline int un_ring_between(int b, int d, double *share)
{
    int place = b + d; /* -1 .. 2 */
    *share = place & 1 ? 0.25 : 0.75;
    return place < 1 ? -1 : 0;
}

/* Where x lies in a leaf: 0 .. 1 along each axis. */
static inline void un_leaf_place(const un_leaves *m, int32_t c, un_vec3 x, double f[3])
{
    double scale = m->tree->inverse_edge[m->tree->level[c]];
    un_vec3 d = un_scale(un_sub(x, m->x[c]), scale);
    f[0] = un_clamp(d.x + 0.5, 0, 1);
    f[1] = un_clamp(d.y + 0.5, 0, 1);
    f[2] = m->dim == 2 ? 0 : un_clamp(d.z + 0.5, 0, 1);
}

/* The same place in the cube of the next larger level. */
static inline void un_leaf_place_in_parent(const un_leaves *m, int child, const double f[3],
                                           double out[3])
{
    for (int a = 0; a < (m->dim == 2 ? 2 : 3); a++) out[a] = 0.5 * (f[a] + (child >> a & 1));
}

/* How much of the next larger level's lattice a point takes: the multilinear value of 1 at corners
 * that touch it. */
static inline double un_leaf_coarse_share(const un_leaves *m, int32_t c, const double f[3])
{
    const un_doubles8 x = {1, 0, 1, 0, 1, 0, 1, 0}, y = {1, 1, 0, 0, 1, 1, 0, 0};
    const un_doubles8 z = {1, 1, 1, 1, 0, 0, 0, 0};
    const un_longs8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    un_doubles8 w = un_doubles8_abs(x - f[0]) * un_doubles8_abs(y - f[1]);
    w *= un_doubles8_abs(z - f[2]); /* in 2D f[2] is 0 */
    return un_doubles8_sum((un_doubles8)((un_longs8)w & ((bit & (int64_t)m->coarse[c]) != 0)));
}

#endif
