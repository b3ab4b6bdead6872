/* A linear octree: leaves sorted along the Morton curve, integer coordinates.
 *
 * The domain is covered by a brick of cubes of level 0 (the coarsest leaves); level l + 1 halves
 * level l, level_max is the finest. Where a side of the domain is not a whole number of cubes long
 * the brick goes beyond it, and the wall cuts the cells. Integer coordinates count in units of half
 * the finest leaf, so that corners and centres of leaves are integers: places compare, sort and
 * match exactly.
 *
 * A domain without depth has a quadtree: one layer of squares in the plane z = 0, made by the same
 * code. Keys keep their three coordinates; z is 0. */
#ifndef UN_MESH_OCTREE_H
#define UN_MESH_OCTREE_H

#include "ranks/ranks.h"

#define UN_LEVELS_MAX 16

enum { UN_LEAF_OWN = 1, UN_LEAF_GHOST = 2 };

typedef struct un_octree {
    un_context *ctx;
    int32_t dim;       /* 2: a quadtree */
    un_vec3 size;      /* of the domain, [0, size] */
    bool corners;      /* leaves that touch at a corner are balanced too; set after init */
    int32_t level_max; /* leaves have levels 0 .. level_max */
    double h;          /* edge of the finest leaf, m */
    double edge[UN_LEVELS_MAX + 1]; /* of the leaves of each level, m */
    double inverse_edge[UN_LEVELS_MAX + 1];
    double unit; /* h / 2 */
    double inverse_h;
    int32_t roots[3]; /* cubes of level 0 along each axis; 1 along z in 2D */
    int32_t n[3];     /* finest leaves along each axis; 1 along z in 2D */
    int32_t leaf_count;
    uint64_t *key;  /* Morton code of the lower corner, counted in finest leaves; ascending */
    uint8_t *level; /* by leaf */
    size_t capacity_key, capacity_level;
    /* Lookup: a table along the curve at one level bounds the bisection. */
    int32_t *table; /* first leaf at or after each cube of level table_level, and the end */
    int32_t table_level, table_shift;
    size_t capacity_table;
    /* Over ranks: by leaf, whether it is as on one rank. Tets are built of those that are.
     * Undefined unless partial. */
    bool partial;
    uint8_t *known; /* UN_LEAF_OWN, UN_LEAF_GHOST or 0 */
    size_t capacity_known;
} un_octree;

/* coarsest, finest: leaves along the longest side. h = longest / finest; level 0 is the power of
 * two times h nearest to longest / coarsest from below. A size without depth, z = 0, makes a
 * quadtree. The tree is empty until built. */
void un_octree_init(un_context *ctx, un_octree *tree, un_vec3 size, int32_t coarsest,
                    int32_t finest);
void un_octree_free(un_octree *tree);

/* What a tree must resolve: the leaf at point i has at least level[i], and so do all leaves in the
 * block of (2 reach[i] + 1)^dim leaves of that level around it. Points outside the brick count at
 * its boundary. level and reach may be NULL: level_max and 0. */
typedef struct un_octree_request {
    int64_t count;
    const double *x[3];
    const uint8_t *level;
    const uint8_t *reach;
} un_octree_request;

/* What asks for given leaves, from the arena: keys and levels as in a tree; levels beyond this
 * tree's count as its finest. */
un_status un_octree_request_leaves(un_octree_request *request, un_arena *arena,
                                   const un_octree *tree, const uint64_t *key, const uint8_t *level,
                                   int64_t count);
/* The coarsest tree that meets the request and whose leaves differ by at most one level across
 * faces and edges, in 2D sides and corners; in 3D corners too if the tree says so. Built in
 * parallel; the same for any order of the points. */
un_status un_octree_build(un_octree *tree, un_arena *arena, const un_octree_request *request);

/* The index of the finest cube along an axis that holds the coordinate x: exactly h i <= x < h (i +
 * 1), with corners and nodes computed the same way. Clamped to the brick; NaN gives its lower
 * end. */
static inline int32_t un_octree_index(const un_octree *tree, double x, int axis)
{
    double s = x * tree->inverse_h;
    int32_t last = tree->n[axis] - 1;
    if (!(s > 0)) return 0;
    if (s >= last) s = last;
    int32_t i = (int32_t)s;
    i -= x < tree->h * i;
    i += i < last && x >= tree->h * (i + 1);
    return i;
}

/* The leaf that holds x (half-open boxes; points outside the brick count at its boundary). */
int32_t un_octree_find(const un_octree *tree, un_vec3 x);
/* The leaf that holds the cube of size one whose lower corner is (i, j, k), in finest leaves;
 * -1 outside the brick. */
int32_t un_octree_find_at(const un_octree *tree, int32_t i, int32_t j, int32_t k);

/* The same from the cube's Morton code, which must lie in the brick. */
static inline int32_t un_octree_find_key(const un_octree *tree, uint64_t key)
{
    uint64_t m = key >> tree->table_shift;
    int32_t first = tree->table[m];
    uint32_t count = (uint32_t)(tree->table[m + 1] - first);
    const uint64_t *k = tree->key + first;
    /* Counts the leaves that begin in the cube at or before the key. */
    while (count > 0) {
        uint32_t half = (count + 1) / 2;
        k += k[half - 1] <= key ? half : 0;
        count -= half;
    }
    return (int32_t)(k - tree->key) - 1;
}

/* The leaf that holds x, sooner if c does. */
static inline int32_t un_octree_find_near(const un_octree *tree, int32_t c, un_vec3 x)
{
    uint64_t key =
        un_morton((uint32_t)un_octree_index(tree, x.x, 0), (uint32_t)un_octree_index(tree, x.y, 1),
                  (uint32_t)un_octree_index(tree, x.z, 2));
    bool here = tree->key[c] <= key && (c + 1 == tree->leaf_count || key < tree->key[c + 1]);
    return here ? c : un_octree_find_key(tree, key);
}

static inline double un_octree_size(const un_octree *tree, int32_t level)
{
    return tree->edge[level];
}
/* The coarsest level whose leaves are at most `size` wide (up to round-off); level_max if none
 * is. */
int32_t un_octree_level(const un_octree *tree, double size);
static inline un_vec3 un_octree_corner(const un_octree *tree, int32_t leaf)
{
    uint64_t k = tree->key[leaf];
    return un_v3(tree->h * un_morton_gather(k), tree->h * un_morton_gather(k >> 1),
                 tree->h * un_morton_gather(k >> 2));
}

/* ---- a tree over ranks (octree_ranks.c) ---- */

/* What a rank has of a tree that all share. Its un_octree is a whole tree: its own leaves, and all
 * that touch them, are those that one rank would have; elsewhere leaves are as large as balance
 * allows. */
typedef struct un_tree_share {
    un_context *ctx;
    uint64_t *first;    /* by rank: the first key of its part of the curve, a leaf's; and the end */
    un_range leaves;    /* this rank's, numbered as on one rank */
    int32_t begin, end; /* the same in the rank's own tree */
    int64_t ghost_count;
    size_t bytes; /* sent to others in building it */
    bool whole;   /* set by the caller: every rank has all leaves as one rank would */
} un_tree_share;
void un_tree_share_free(un_tree_share *part);
/* As un_octree_build, of the requests of all ranks, which may lie anywhere. cut: by rank, where its
 * part of the curve is to begin, cut[0] = 0; a leaf belongs to the rank in whose part it begins.
 * part: zero but for ctx, or of an earlier call. */
un_status un_octree_build_ranks(un_octree *tree, un_tree_share *part, un_arena *arena,
                                const un_octree_request *request, const uint64_t *cut);

/* True if all places in the box are this rank's. */
bool un_tree_share_has_box(const un_octree *tree, const un_tree_share *part, un_box3 box);
/* Sets has[r] for every other rank r that owns a place in the box, and maybe some beside it, and
 * lists those that were not set. */
void un_tree_share_in_box(const un_octree *tree, const un_tree_share *part, un_box3 box,
                          uint8_t *has, int32_t *list, int32_t *count);

/* Checks that leaves are sorted, complete, and balanced across faces and edges. */
bool un_octree_validate(const un_octree *tree, const char **reason);

#endif
