/* Octree leaves made by hand: one root cube, cut as a function says. */
#ifndef UN_TEST_PARTICLES_LEAVES_H
#define UN_TEST_PARTICLES_LEAVES_H

#include "check.h"
#include "mesh/mesh.h"

/* The wanted edge of the leaf around x, m. */
typedef double leaf_size(un_vec3 x);

static inline void leaves_cut(un_octree *t, leaf_size *wanted, const uint32_t at[3], int32_t level)
{
    uint32_t edge = 1u << (t->level_max - level);
    double h = t->h * edge;
    un_vec3 center = {t->h * at[0] + 0.5 * h, t->h * at[1] + 0.5 * h, t->h * at[2] + 0.5 * h};
    if (level < t->level_max && h > 1.001 * wanted(center)) {
        for (uint32_t c = 0; c < 8; c++) {
            uint32_t child[3] = {at[0] + edge / 2 * (c & 1), at[1] + edge / 2 * (c >> 1 & 1),
                                 at[2] + edge / 2 * (c >> 2)};
            leaves_cut(t, wanted, child, level + 1);
        }
        return;
    }
    if (t->leaf_count % 4096 == 0) {
        size_t room = (size_t)t->leaf_count + 4096;
        t->key = realloc(t->key, room * sizeof *t->key);
        t->level = realloc(t->level, room);
    }
    t->key[t->leaf_count] = un_morton(at[0], at[1], at[2]);
    t->level[t->leaf_count++] = (uint8_t)level;
}

/* Of the domain [0, size], which lies in the root cube of the given edge. */
static inline un_octree leaves_make(un_vec3 size, double edge, int32_t level_max, leaf_size *wanted)
{
    un_octree t = {.dim = 3, .size = size, .level_max = level_max, .h = ldexp(edge, -level_max)};
    t.unit = 0.5 * t.h;
    t.inverse_h = 1 / t.h;
    for (int32_t l = 0; l <= level_max; l++) t.edge[l] = ldexp(edge, -l);
    for (int a = 0; a < 3; a++) {
        t.roots[a] = 1;
        t.n[a] = 1 << level_max;
    }
    leaves_cut(&t, wanted, (uint32_t[3]){0, 0, 0}, 0);
    return t;
}

static inline void leaves_free(un_octree *t)
{
    free(t->key);
    free(t->level);
}

#endif
