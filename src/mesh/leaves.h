/* The leaves of an octree as cells: their neighbours, and the faces between them, for methods with
 * velocities on faces. Quadtrees are made by the same code. Included through mesh.h. */
#ifndef UN_MESH_LEAVES_H
#define UN_MESH_LEAVES_H

#include "mesh/octree.h"

#define UN_LEAVES_AROUND 27

/* Over ranks (leaves_ranks.c): a rank computes some of the leaves and the faces that belong to
 * these. It knows them and some around; arrays have their full length everywhere. */
typedef struct un_leaf_share {
    un_context *ctx;
    int64_t *leaf, *face;      /* by rank: its first one; and the end */
    int32_t rings;             /* how far around its own, in rings (un_leaves_knows) */
    uint8_t *ring;             /* by leaf: 0: own, 1: the next ring, ...; UN_RING_BEYOND */
    un_part *run, *face_run;   /* the leaves that it knows, and the faces of these */
    int64_t *run_at, *face_at; /* by run: how many before it; and the end */
    int32_t run_count;
    un_halo *near, *near_faces; /* those that are not its own, from their ranks */
    size_t capacity[5];
    int64_t sent; /* bytes, in building this */
} un_leaf_share;
#define UN_RING_BEYOND 255

/* Bits of un_leaves.word: the leaf's level; from CHILD on three for its place among its siblings;
 * from COARSE on eight of `coarse`, none where thin walls hide leaves. */
enum { UN_LEAF_LEVEL = 0xff, UN_LEAF_CHILD = 8, UN_LEAF_COARSE = 16 };

/* Sides of a leaf: 2 axis + 1 for the upper one. A face has the size of the smaller of its two
 * leaves. Where a leaf meets smaller ones, its side is a group of their faces. */
typedef struct un_leaves {
    un_context *ctx;
    const un_octree *tree;
    int32_t dim, count;
    un_vec3 *x; /* centres, m */
    /* Of the 3^dim cubes of the leaf's own size around it, x fastest: the leaf that holds the
     * cube's lower corner, -1 beyond the brick. */
    int32_t *near;
    int32_t near_count;                 /* 27, in 2D 9; the leaf itself is in the middle */
    uint8_t order[8][UN_LEAVES_AROUND]; /* by place in the parent: those cubes along the curve */
    /* The same for a leaf among its like: runs of cubes that follow each other in memory, by the
     * first and how many. */
    uint8_t run[8][UN_LEAVES_AROUND][2];
    int32_t run_count;
    uint8_t *coarse; /* by leaf: its corners that touch a larger leaf, as bits */
    uint8_t *even;   /* by leaf: 1 if all leaves around it have its size */
    int32_t *word;   /* by leaf: UN_LEAF_.., for kernels that take eight leaves at once */
    int32_t face_count;
    int32_t *face_side;  /* by face: 6 leaf + side of the smaller leaf, whose side it is */
    int32_t *face_other; /* by face: the leaf beyond it, -1 in the brick's boundary */
    int32_t (*side)[6];  /* by leaf: the face, or ~group */
    int32_t group_count;
    int32_t (*group)[4]; /* faces, in 2D two */
    /* Where walls are thin (leaf_parts.c); undefined unless parted. Leaves on the other side of a
     * wall are then not near. */
    bool parted;
    uint8_t
        *thin; /* by leaf: not 0 next to a thin wall; 2: there are leaves that it does not see */
    un_vec3 *seat; /* by leaf: the place whose side it belongs to */
    size_t capacity[11];
    const un_leaf_share *share; /* NULL: this rank computes all */
} un_leaves;

void un_leaves_free(un_leaves *leaves);
/* For a built tree, which must outlive it. In parallel; arrays keep their capacity. */
un_status un_leaves_build(un_leaves *leaves, un_context *ctx, const un_octree *tree);
/* Leaves where phi < 0. */
int64_t un_leaves_wet_count(const un_leaves *leaves, const float *phi);
/* Checks that leaves and faces name each other. NULL, or what is wrong. */
const char *un_leaves_validate(const un_leaves *leaves);

/* ---- over ranks (leaves_ranks.c) ---- */

void un_leaf_share_free(un_leaf_share *share);
/* As un_leaves_build, where a rank is to know its own leaves of the tree, which is whole on every
 * rank, and so many rings around them. share: zero but for ctx, or of an earlier call. A ring is
 * what interpolation in leaves looks at: what lies in the cubes of their size around siblings and,
 * where any of these leaves is larger, in those around the parent. Sides of leaves in the last ring
 * may lack faces. */
un_status un_leaves_build_ranks(un_leaves *leaves, un_context *ctx, const un_octree *tree,
                                un_leaf_share *share, const un_tree_share *part, int32_t rings);
/* Marks the leaves to be known, and lists them as runs (for un_leaves_build_ranks). */
un_status un_leaf_share_mark(un_leaf_share *share, const un_octree *tree, un_part own);
/* The leaves' tree as a rank's part of it: tets on it are those of its own leaves and of all that
 * touch these. It has the arrays of the tree but `known`, its own. Of leaves in parts. */
un_status un_leaves_part_tree(un_octree *part, const un_leaves *leaves);
/* Are there leaves that this rank does not know? */
static inline bool un_leaves_in_parts(const un_leaves *leaves)
{
    return leaves->share != NULL;
}
/* Does this rank know the leaf and so many rings around it? */
static inline bool un_leaves_knows(const un_leaves *leaves, int64_t c, int rings)
{
    const un_leaf_share *s = leaves->share;
    return !s || s->ring[c] + rings <= s->rings;
}
/* Runs of leaves, or faces, that this rank knows: how many there are, and one of them. */
static inline int32_t un_leaves_runs(const un_leaves *leaves)
{
    return un_leaves_in_parts(leaves) ? leaves->share->run_count : 1;
}
static inline un_part un_leaves_run(const un_leaves *leaves, int32_t k)
{
    return un_leaves_in_parts(leaves) ? leaves->share->run[k] : (un_part){0, leaves->count};
}
static inline un_part un_leaves_face_run(const un_leaves *leaves, int32_t k)
{
    return un_leaves_in_parts(leaves) ? leaves->share->face_run[k]
                                      : (un_part){0, leaves->face_count};
}
/* A parallel loop over all leaves, or faces, that this rank knows. */
void un_leaves_each(const un_leaves *leaves, int64_t grain, un_parallel_body *body, void *arg);
void un_leaves_each_face(const un_leaves *leaves, int64_t grain, un_parallel_body *body, void *arg);
/* Gives back the pages of an array by leaf, or by face, that hold nothing that this rank knows:
 * parts move, and what was known once would take up memory for ever. */
void un_leaves_forget(const un_leaves *leaves, void *array, size_t size);
void un_leaves_forget_faces(const un_leaves *leaves, void *array, size_t size);
/* This rank's. */
static inline un_part un_leaves_own(const un_leaves *leaves)
{
    const un_leaf_share *s = leaves->share;
    int32_t rank = s ? un_rank(s->ctx) : 0;
    return s ? (un_part){s->leaf[rank], s->leaf[rank + 1]} : (un_part){0, leaves->count};
}
static inline un_part un_leaves_own_faces(const un_leaves *leaves)
{
    const un_leaf_share *s = leaves->share;
    int32_t rank = s ? un_rank(s->ctx) : 0;
    return s ? (un_part){s->face[rank], s->face[rank + 1]} : (un_part){0, leaves->face_count};
}
/* All ranks get what each has found at its own leaves or faces, as far as they know these. Nothing
 * happens on one rank. size: UN_HALO_SIZE at most. */
static inline void un_leaves_spread(const un_leaves *leaves, void *array, size_t size)
{
    if (leaves->share) un_halo_share(leaves->share->near, array, size);
}
static inline void un_leaves_spread_faces(const un_leaves *leaves, void *array, size_t size)
{
    if (leaves->share) un_halo_share(leaves->share->near_faces, array, size);
}

/* A failure on one rank is one on all. */
static inline un_status un_leaves_agree(const un_leaves *leaves, un_status status)
{
    const un_leaf_share *s = leaves->share;
    return s ? un_ranks_agree(s->ctx, status) : status;
}
static inline double un_leaf_size(const un_leaves *leaves, int64_t c)
{
    return leaves->tree->edge[leaves->tree->level[c]];
}
static inline double un_leaf_volume(const un_leaves *leaves, int64_t c)
{
    double h = un_leaf_size(leaves, c);
    return leaves->dim == 2 ? h * h : h * h * h;
}
static inline const int32_t *un_leaf_near(const un_leaves *leaves, int64_t c)
{
    return leaves->near + (ptrdiff_t)leaves->near_count * c;
}
/* The leaf beyond a side; -1 beyond the brick and where it is not seen; a leaf of the cube there if
 * that is divided. */
static inline int32_t un_leaf_beyond(const un_leaves *leaves, int64_t c, int side)
{
    int step = side < 2 ? 1 : side < 4 ? 3 : 9;
    return un_leaf_near(leaves, c)[leaves->near_count / 2 + (side & 1 ? step : -step)];
}
/* Faces of a group. */
static inline int un_leaves_group_size(const un_leaves *leaves)
{
    return leaves->dim == 2 ? 2 : 4;
}
static inline double un_vec3_at(un_vec3 v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}
static inline int un_leaf_face_axis(const un_leaves *leaves, int64_t f)
{
    return leaves->face_side[f] % 6 / 2;
}
static inline double un_leaf_face_size(const un_leaves *leaves, int64_t f)
{
    return un_leaf_size(leaves, leaves->face_side[f] / 6);
}
/* m2; in 2D m. */
static inline double un_leaf_face_area(const un_leaves *leaves, int64_t f)
{
    double h = un_leaf_face_size(leaves, f);
    return leaves->dim == 2 ? h : h * h;
}
static inline un_vec3 un_leaf_face_center(const un_leaves *leaves, int64_t f)
{
    int32_t c = leaves->face_side[f] / 6, side = leaves->face_side[f] % 6;
    double d = (side & 1 ? 0.5 : -0.5) * un_leaf_size(leaves, c);
    un_vec3 x = leaves->x[c];
    if (side < 2)
        x.x += d;
    else if (side < 4)
        x.y += d;
    else
        x.z += d;
    return x;
}
/* The leaves below and above a face; -1 beyond the brick. */
static inline void un_leaf_face_leaves(const un_leaves *leaves, int64_t f, int32_t *below,
                                       int32_t *above)
{
    int32_t c = leaves->face_side[f] / 6, other = leaves->face_other[f];
    bool upper = leaves->face_side[f] & 1;
    *below = upper ? c : other;
    *above = upper ? other : c;
}
/* Does the face lie in or beyond a side of the domain across its axis? */
static inline bool un_leaf_face_on_side(const un_leaves *leaves, int64_t f)
{
    int axis = un_leaf_face_axis(leaves, f);
    double at = un_vec3_at(un_leaf_face_center(leaves, f), axis);
    double near = 1e-6 * leaves->tree->h;
    return at < near || at > un_vec3_at(leaves->tree->size, axis) - near;
}
static inline un_vec3 un_leaf_centre(const un_octree *tree, int32_t c)
{
    double half = 0.5 * un_octree_size(tree, tree->level[c]);
    return un_add(un_octree_corner(tree, c), un_v3(half, half, tree->dim == 2 ? 0 : half));
}
/* As un_leaf_near, also of a leaf that this rank does not know; thin walls hide none. */
void un_leaves_list_around(const un_leaves *leaves, int32_t c, int32_t near[UN_LEAVES_AROUND]);
/* The leaves, and thereby the particles sorted by leaf, in cube n around leaf c: first .. end - 1.
 * Where the cube is part of a larger leaf, that leaf. Empty beyond the brick. */
void un_leaves_range(const un_leaves *leaves, int32_t c, int n, int32_t *first, int32_t *end);
/* What lies in all cubes around leaf c and in itself, sorted by leaf (begin: by leaf, the first),
 * as few ranges; what is in larger leaves once. Returns their number. */
int un_leaves_around(const un_leaves *leaves, const int32_t *begin, int32_t c,
                     int32_t range[UN_LEAVES_AROUND][2]);

/* ---- fields (leaves_sample.c, leaves_flow.c) ---- */

/* A field at centres is continued as values on the lattice of each level: the value of the leaf
 * that is such a cube, the mean over the leaves in it, or between the lattice points of the next
 * larger level. A point in a leaf takes the multilinear value on the leaf's own lattice; towards
 * corners that touch larger leaves it takes over that of the larger one's, so that the field is
 * continuous. Linear fields are exact away from the brick's boundary. */
double un_leaves_sample(const un_leaves *leaves, const float *field, int32_t c, un_vec3 x);
double un_leaves_sample_double(const un_leaves *leaves, const double *field, int32_t c, un_vec3 x);
/* Its value at a point of the lattice of a level: that of the cube with the lowest corner `at`, in
 * finest leaves. */
double un_leaves_lattice_value(const un_leaves *leaves, const float *field, int level,
                               const int32_t at[3]);
/* Its slope, 1/m, from the leaf's own lattice. */
un_vec3 un_leaves_slope(const un_leaves *leaves, const float *field, int32_t c, un_vec3 x);

/* The cubes of one size around a cube. */
enum { UN_RING = 27, UN_RING_MIDDLE = 13 };

typedef struct un_ring {
    uint64_t key;          /* Morton code of the middle cube's lower corner */
    int32_t near[UN_RING]; /* the leaf that holds each cube's lower corner, -1 beyond the brick,
                              or not yet known */
    uint64_t part[3][3];   /* by axis: what the cubes' codes are made of, if any is unknown */
    bool in[3][3];         /* by axis: do the cubes below, in the middle, above lie in the brick? */
} un_ring;

/* Values of a field at the centres of a ring's cubes. */
typedef struct un_centre_ring {
    un_ring at;
    uint32_t have; /* by bit: values that are found */
    double value[UN_RING];
} un_centre_ring;

/* For many values of a field by one thread: by level the ring asked for last (leaves_ring.h). The
 * nearer to each other the points are, the less it looks up. */
typedef struct un_centre_finder {
    const un_leaves *m;
    const float *field; /* or NULL: */
    const double *doubles;
    un_centre_ring ring[UN_LEVELS_MAX + 1];
} un_centre_finder;
void un_centre_finder_init(un_centre_finder *s, const un_leaves *m, const float *field,
                           const double *doubles);
/* As un_leaves_sample. */
double un_centre_finder_at(un_centre_finder *s, int32_t c, un_vec3 x);

/* Value and slope (or NULL) at many points in single precision, the faster the longer those of one
 * leaf follow each other. far: in leaves whose own value is more than so many edges, both are those
 * of a plane for each leaf with a slope of up to 1, neither exact nor continuous; for distances.
 * INFINITY: exact.
 */
void un_leaves_sample_points(const un_leaves *leaves, const float *field, double far, int64_t count,
                             const int32_t *leaf, const double *const x[3], double *value,
                             un_vec3 *slope);

/* Velocities on faces, continued in the same way; what points need is found once for all points in
 * siblings, leaves with one parent (leaves_patch.h). */
#define UN_PATCH 246
typedef struct un_leaves_flow {
    const un_leaves *leaves;
    const double *u;          /* at faces */
    int32_t *patch;           /* by leaf: its siblings' number, -1 if there is none */
    float (*value)[UN_PATCH]; /* by number; half the bytes, and exact enough for particles */
    /* By side of the domain, m: the slip length of liquid there; infinite where a side is open.
     * NULL: it slides along all. */
    const double *slip;
    size_t capacity[2];
} un_leaves_flow;
void un_leaves_flow_free(un_context *ctx, un_leaves_flow *flow);
/* wanted: leaves that will be asked; NULL: all. Others may still be asked, slowly. */
un_status un_leaves_flow_build(un_leaves_flow *flow, const un_leaves *leaves, const double *u,
                               const uint8_t *wanted);
/* Two fields at once, which costs little more than one. */
un_status un_leaves_flow_build_two(un_leaves_flow *flow, un_leaves_flow *other,
                                   const un_leaves *leaves, const double *u, const double *u_other,
                                   const uint8_t *wanted);
/* The velocity at x in leaf c; at x, for a few points. */
un_vec3 un_leaves_velocity_at(const un_leaves *leaves, const double *u, un_vec3 x);
un_vec3 un_leaves_flow_at(const un_leaves_flow *flow, int32_t c, un_vec3 x);

/* The same for many points near each other, by one thread: leaves without a patch get one. */
typedef struct un_flow_cache {
    const un_leaves_flow *flow;
    int32_t leaf[8]; /* by place among eight: the leaf that the patch here is of */
    float value[8][UN_PATCH];
} un_flow_cache;
void un_flow_cache_init(un_flow_cache *cache, const un_leaves_flow *flow);
/* Centres and edges of eight leaves. */
void un_leaves_of_eight(un_eight *centre, double edge[8], const un_leaves *leaves,
                        const int32_t leaf[8]);
/* By bit, which of eight points lie in their leaf, and not on its sides. */
uint32_t un_leaves_inside_eight(const un_leaves *leaves, const int32_t leaf[8], const un_eight *x);
/* At eight points, each in its leaf; other: a second field on the same leaves, or NULL. */
void un_flow_cache_eight(un_eight *out, un_flow_cache *cache, const int32_t leaf[8],
                         const un_eight *x, un_eight *out_other, un_flow_cache *other);

#endif
