/* Neighbours of leaves, eight leaves at a time.
 *
 * Eight leaves of one size that fill a cube are called a family; they follow each other along the
 * Morton curve. If the cubes of that size beside them are families too, as in most of a mesh, one
 * lookup for each cube gives the neighbours of all eight. */
#ifndef UN_MESH_FAMILIES_H
#define UN_MESH_FAMILIES_H

#include "mesh/octree.h"

/* Neighbours of a leaf, or cubes beside a family, are numbered (x + 1) + 3 (y + 1) + 9 (z + 1),
 * with steps x, y, z of -1, 0 or 1; a set of them is 27 bits. */
#define UN_BESIDE_SELF 13
#define UN_BESIDE_ALL (0x7ffffffu ^ 1u << UN_BESIDE_SELF)
#define UN_BESIDE_UPPER (1u << 14 | 1u << 16 | 1u << 17 | 1u << 22 | 1u << 23 | 1u << 25 | 1u << 26)
#define UN_BESIDE_CORNERS                                                                          \
    (1u << 0 | 1u << 2 | 1u << 6 | 1u << 8 | 1u << 18 | 1u << 20 | 1u << 24 | 1u << 26)

/* By child and neighbour: the cube beside the family in which the neighbour lies, and which child
 * of that cube it is. By child and cube: the neighbours in that cube. */
typedef struct un_family_steps {
    uint8_t cube[8][27], child[8][27];
    uint32_t in_cube[8][27];
} un_family_steps;

static inline void un_family_steps_init(un_family_steps *steps)
{
    memset(steps, 0, sizeof *steps);
    for (int32_t k = 0; k < 8; k++)
        for (int32_t d = 0; d < 27; d++) {
            int32_t at[3] = {d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1}, cube = 0, child = 0;
            static const int32_t power[3] = {1, 3, 9};
            for (int a = 0; a < 3; a++) {
                int32_t place = (k >> a & 1) + at[a]; /* -1 .. 2 */
                cube += (place < 0 ? 0 : place > 1 ? 2 : 1) * power[a];
                child |= (place & 1) << a;
            }
            steps->cube[k][d] = (uint8_t)cube;
            steps->child[k][d] = (uint8_t)child;
            steps->in_cube[k][cube] |= 1u << d;
        }
}

typedef struct un_leaf_place {
    int32_t at[3], size; /* in finest leaves */
    uint32_t outside;    /* neighbours beyond the brick */
} un_leaf_place;

static inline uint32_t un_beside_outside(const un_octree *tree, const int32_t at[3], int32_t size)
{
    static const uint32_t lower[3] = {0x1249249, 0x1c0e07, 0x1ff};
    static const int32_t shift[3] = {2, 6, 18};
    uint32_t outside = 0;
    for (int a = 0; a < 3; a++) {
        if (at[a] == 0) outside |= lower[a];
        if (at[a] + size >= tree->n[a]) outside |= lower[a] << shift[a];
    }
    return outside;
}

static inline un_leaf_place un_leaf_place_of(const un_octree *tree, int32_t c)
{
    un_leaf_place p = {.size = 1 << (tree->level_max - tree->level[c])};
    for (int a = 0; a < 3; a++) p.at[a] = (int32_t)un_morton_gather(tree->key[c] >> a);
    p.outside = un_beside_outside(tree, p.at, p.size);
    return p;
}

/* The cube of the given size beside a place; it must lie in the brick. */
static inline uint64_t un_beside_key(const int32_t at[3], int32_t size, int32_t d)
{
    return un_morton((uint32_t)(at[0] + (d % 3 - 1) * size),
                     (uint32_t)(at[1] + (d / 3 % 3 - 1) * size),
                     (uint32_t)(at[2] + (d / 9 - 1) * size));
}

/* Are leaves c .. c + 7 a family? Between the first and the last child there is room for exactly
 * six others. */
static inline bool un_is_family(const un_octree *tree, int32_t c)
{
    int32_t shift = 3 * (tree->level_max - tree->level[c]);
    return (tree->key[c] >> shift & 7) == 0 && tree->leaf_count - c >= 8 &&
           tree->level[c + 7] == tree->level[c] &&
           tree->key[c + 7] == tree->key[c] + ((uint64_t)7 << shift);
}

typedef struct un_family {
    int32_t first;      /* of its leaves; -1: a single leaf, not a family */
    uint32_t larger;    /* cubes beside it that lie in a larger leaf */
    uint32_t mixed;     /* cubes beside it that hold anything but a family of the same size */
    int32_t beside[27]; /* the larger leaf, or the family's first; not set where mixed */
} un_family;

/* Examines the cubes of the set beside the family that starts at leaf c. If no family starts there:
 * false, and a single leaf. */
static inline bool un_family_look(const un_octree *tree, int32_t c, uint32_t set, un_family *family)
{
    family->first = -1;
    family->larger = family->mixed = 0;
    if (!un_is_family(tree, c)) return false;
    family->first = family->beside[UN_BESIDE_SELF] = c;
    int32_t size = 2 << (tree->level_max - tree->level[c]), at[3];
    for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(tree->key[c] >> a);
    for (set &= ~un_beside_outside(tree, at, size); set; set &= set - 1) {
        int32_t d = __builtin_ctz(set), m = un_octree_find_key(tree, un_beside_key(at, size, d));
        family->beside[d] = m;
        if (tree->level[m] < tree->level[c])
            family->larger |= 1u << d;
        else if (tree->level[m] > tree->level[c] || !un_is_family(tree, m))
            family->mixed |= 1u << d;
    }
    return true;
}

/* In loops over blocks of leaves a family belongs to the block of its first leaf. Returns the first
 * leaf from `begin` on that is not part of an earlier block's family. */
static inline int64_t un_family_begin(const un_octree *tree, int64_t begin)
{
    int32_t shift = 3 * (tree->level_max - tree->level[begin]);
    int64_t child = (int64_t)(tree->key[begin] >> shift & 7), first = begin - child;
    if (child == 0 || first < 0 || tree->level[first] != tree->level[begin] ||
        !un_is_family(tree, (int32_t)first))
        return begin;
    return first + 8;
}

/* The leaf at the near corner of neighbour d of child k, or of the single leaf if there is no
 * family. It must lie in the brick and in the set that was examined. */
static inline int32_t un_family_neighbour(const un_octree *tree, const un_family *family,
                                          const un_family_steps *steps, int32_t k,
                                          const un_leaf_place *p, int32_t d)
{
    int32_t cube = steps->cube[k][d];
    if (family->first >= 0 && !(family->mixed >> cube & 1))
        return family->beside[cube] + (family->larger >> cube & 1 ? 0 : steps->child[k][d]);
    return un_octree_find_key(tree, un_beside_key(p->at, p->size, d));
}

#endif
