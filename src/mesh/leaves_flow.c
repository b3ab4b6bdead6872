/* Velocities on the faces of leaves, between them.
 *
 * See leaves.h and leaves_sample.c: on the lattice of level l, a face that is not the mesh's own is
 * the mean of the next finer lattice's faces in it where the mesh is finer, and lies between those
 * of the next coarser lattice where the mesh is coarser. In a leaf of level l a point takes
 *
 *     u = (1 - w) U_l + w U_(l-1),
 *
 * w the multilinear function that is 1 at the leaf's corners that touch a larger leaf, else 0. All
 * corners of a side towards a larger leaf do, so both leaves have U_(l-1) there.
 *
 * What a leaf needs of both lattices is its patch; in even leaves the faces themselves do. Leaves
 * lie along the curve, so that brothers follow each other and find their parent's faces known. */
#include "base/lanes.h"
#include "mesh/leaves_ring.h"

/* Faces of the cubes around one: for each axis the 2 x 3 x 3 lower and upper ones of the cubes
 * beside it, lower ones first, the other two axes ascending. */
enum { RING_AXIS = 18, RING_FACES = 54 };
/* A patch: the ring's faces; then for each axis the 2 x 2 x 2 of the next larger level. */
enum { PARENT = RING_FACES, PARENT_AXIS = 8 };

typedef struct face_ring {
    un_ring at;
    uint64_t have; /* by bit: faces that are found */
    double u[RING_FACES][2];
} face_ring;

/* Faces of one or two fields; by level the ring asked for last. */
typedef struct face_finder {
    const un_leaves *m;
    const double *u[2];
    int fields;
    face_ring ring[UN_LEVELS_MAX + 1];
} face_finder;

static void finder_init(face_finder *s, const un_leaves *m, const double *u, const double *other)
{
    s->m = m;
    s->u[0] = u;
    s->u[1] = other;
    s->fields = other ? 2 : 1;
    for (int l = 0; l <= m->tree->level_max; l++) s->ring[l].at.key = UN_RING_NONE;
}

static inline double side_value(const un_leaves *m, const double *u, int32_t leaf, int side)
{
    int32_t f = m->side[leaf][side];
    if (f >= 0) return u[f];
    const int32_t *g = m->group[~f];
    return m->dim == 2 ? 0.5 * (u[g[0]] + u[g[1]])
                       : 0.25 * ((u[g[0]] + u[g[1]]) + (u[g[2]] + u[g[3]]));
}

static inline void take_side(const face_finder *s, int32_t leaf, int side, double out[2])
{
    out[0] = side_value(s->m, s->u[0], leaf, side);
    if (s->fields == 2) out[1] = side_value(s->m, s->u[1], leaf, side);
}

/* The mean over a side of a cube that is divided; first: the leaf in its lower corner. */
static void take_divided(const face_finder *s, int level, int32_t first, int side, double out[2])
{
    const un_octree *tree = s->m->tree;
    int shift = un_ring_shift(tree, level + 1), axis = side / 2, count = 1 << s->m->dim;
    uint64_t key = tree->key[first];
    double sum[2] = {0, 0}, part[2] = {0, 0};
    for (int k = 0; k < count; k++) {
        if ((k >> axis & 1) != (side & 1)) continue;
        uint64_t child = key + ((uint64_t)k << shift);
        int32_t leaf = first + k;
        if (leaf >= s->m->count || tree->key[leaf] != child) leaf = un_octree_find_key(tree, child);
        if (tree->level[leaf] == level + 1)
            take_side(s, leaf, side, part);
        else
            take_divided(s, level + 1, leaf, side, part);
        sum[0] += part[0];
        sum[1] += part[1];
    }
    out[0] = sum[0] * 2 / count;
    out[1] = sum[1] * 2 / count;
}

static face_ring *ring_of(face_finder *s, int level, uint64_t key, int32_t leaf)
{
    face_ring *r = &s->ring[level];
    if (r->at.key == key) return r;
    un_ring_find(&r->at, s->m, key, level, leaf);
    r->have = 0;
    return r;
}

static const double *take_face(face_finder *s, face_ring *r, int level, int axis, int upper, int d1,
                               int d2);

/* Between the faces around the parent. */
static void take_between(face_finder *s, const face_ring *r, int level, int axis, int upper, int d1,
                         int d2, double out[2])
{
    const un_octree *tree = s->m->tree;
    int child = un_ring_child(tree, r->at.key, level), t1 = axis == 0 ? 1 : 0,
        t2 = axis == 2 ? 1 : 2;
    face_ring *parent = ring_of(s, level - 1, un_ring_parent(tree, r->at.key, level), -1);
    double share[2] = {0, 0};
    int plane = (child >> axis & 1) + upper, low[2] = {0, 0}; /* 0, in the middle, 2 */
    low[0] = un_ring_between(child >> t1 & 1, d1, &share[0]);
    if (s->m->dim == 3) low[1] = un_ring_between(child >> t2 & 1, d2, &share[1]);
    out[0] = out[1] = 0;
    for (int k = 0; k < (s->m->dim == 2 ? 4 : 8); k++) {
        int up = k & 1, a = k >> 1 & 1, b = k >> 2;
        if (plane != 1 && plane != 2 * up) continue;
        double w = plane == 1 ? 0.5 : 1;
        w *= a ? share[0] : 1 - share[0];
        if (s->m->dim == 3) w *= b ? share[1] : 1 - share[1];
        const double *u = take_face(s, parent, level - 1, axis, up, low[0] + a, low[1] + b);
        out[0] += w * u[0];
        if (s->fields == 2) out[1] += w * u[1];
    }
}

/* A face of the cube that lies d1, d2 beside the ring's middle along the axes other than `axis`. */
static const double *take_face(face_finder *s, face_ring *r, int level, int axis, int upper, int d1,
                               int d2)
{
    int n = axis * RING_AXIS + upper + 2 * (1 + d1) + 6 * (1 + d2), side = 2 * axis + upper;
    double *out = r->u[n];
    if (r->have >> n & 1) return out;
    r->have |= (uint64_t)1 << n;
    const un_octree *tree = s->m->tree;
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    if (!r->at.in[t1][1 + d1]) d1 = 0; /* beyond the brick: as at its boundary */
    if (!r->at.in[t2][1 + d2]) d2 = 0;
    int at = UN_RING_MIDDLE + un_ring_step[t1] * d1 + un_ring_step[t2] * d2;
    int step = upper ? un_ring_step[axis] : -un_ring_step[axis];
    int32_t own = r->at.near[at];
    int own_level = tree->level[own];
    if (own_level == level) {
        take_side(s, own, side, out);
        return out;
    }
    int32_t other = r->at.in[axis][2 * upper] ? r->at.near[at + step] : -1;
    int other_level = other < 0 ? -1 : tree->level[other];
    if (other_level == level)
        take_side(s, other, side ^ 1, out);
    else if (own_level > level)
        take_divided(s, level, own, side, out);
    else if (other_level > level)
        take_divided(s, level, other, side ^ 1, out);
    else
        take_between(s, r, level, axis, upper, d1, d2, out);
    return out;
}

/* ---- flow ---- */

void un_leaves_flow_free(un_context *ctx, un_leaves_flow *flow)
{
    un_free(ctx, flow->patch);
    un_free(ctx, flow->value);
    *flow = (un_leaves_flow){0};
}

/* Where leaves are parted by thin walls: the step nearest to d, along both axes other than `axis`,
 * to a leaf that c sees. */
static void step_in_sight(const un_leaves *m, int32_t c, int t1, int t2, int d[2])
{
    static const int step[3] = {1, 3, 9};
    const int32_t *near = un_leaf_near(m, c);
    int tries[4][2] = {{d[0], d[1]}, {0, d[1]}, {d[0], 0}, {0, 0}};
    for (int k = 0; k < 4; k++) {
        int n = m->near_count / 2 + step[t1] * tries[k][0];
        if (m->dim == 3) n += step[t2] * tries[k][1];
        if (near[n] < 0) continue;
        d[0] = tries[k][0];
        d[1] = tries[k][1];
        return;
    }
}

/* value: by field. */
static void fill_patch(face_finder *s, int32_t c, double *const value[2])
{
    const un_leaves *m = s->m;
    const un_octree *tree = m->tree;
    int level = tree->level[c], deep = m->dim == 3;
    bool parted = m->parted && m->thin[c] & 2;
    const int32_t *near = un_leaf_near(m, c);
    face_ring *r = ring_of(s, level, tree->key[c], parted ? -1 : c), *parent = NULL;
    int child = un_ring_child(tree, tree->key[c], level);
    if (m->coarse[c]) parent = ring_of(s, level - 1, un_ring_parent(tree, tree->key[c], level), -1);
    for (int axis = 0; axis < m->dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        for (int k = 0; k < (deep ? 18 : 6); k++) {
            int d[2] = {k / 2 % 3 - 1, deep ? k / 6 - 1 : 0};
            if (parted) step_in_sight(m, c, t1, t2, d);
            int n = m->near_count / 2 + un_ring_step[t1] * d[0] + (deep ? un_ring_step[t2] * d[1] : 0);
            double found[2];
            const double *u = found;
            if (near[n] >= 0 && tree->level[near[n]] == level)
                take_side(s, near[n], 2 * axis + (k & 1), found);
            else
                u = take_face(s, r, level, axis, k & 1, d[0], d[1]);
            for (int f = 0; f < s->fields; f++) value[f][axis * RING_AXIS + k] = u[f];
        }
        for (int k = 0; parent && k < (deep ? 8 : 4); k++) {
            /* on the side of the parent that the leaf lies on */
            int d1 = (k >> 1 & 1) - !(child >> t1 & 1);
            int d2 = deep ? (k >> 2) - !(child >> t2 & 1) : 0;
            const double *u = take_face(s, parent, level - 1, axis, k & 1, d1, d2);
            for (int f = 0; f < s->fields; f++) value[f][PARENT + axis * PARENT_AXIS + k] = u[f];
        }
    }
}

typedef struct patch_args {
    un_leaves_flow *flow, *other;
    const int32_t *leaf;
} patch_args;

static void fill_patches(void *arg, int64_t begin, int64_t end)
{
    const patch_args *a = arg;
    face_finder s;
    finder_init(&s, a->flow->leaves, a->flow->u, a->other ? a->other->u : NULL);
    for (int64_t n = begin; n < end; n++) {
        double *value[2] = {a->flow->value[n], a->other ? a->other->value[n] : NULL};
        fill_patch(&s, a->leaf[n], value);
    }
}

static un_status need_patches(un_leaves_flow *flow, const un_leaves *m, const double *u,
                              int32_t count)
{
    flow->leaves = m;
    flow->u = u;
    UN_TRY(un_array_need(m->ctx, (void **)&flow->patch, &flow->capacity[0], (size_t)m->count + 1,
                         sizeof *flow->patch));
    return un_array_need(m->ctx, (void **)&flow->value, &flow->capacity[1], (size_t)count + 1,
                         sizeof *flow->value);
}

un_status un_leaves_flow_build_two(un_leaves_flow *flow, un_leaves_flow *other, const un_leaves *m,
                                   const double *u, const double *u_other, const uint8_t *wanted)
{
    un_context *ctx = m->ctx;
    int32_t count = 0, *leaf;
    UN_ALLOC(ctx, leaf, m->count + 1);
    for (int32_t c = 0; c < m->count; c++)
        if (!m->even[c] && (!wanted || wanted[c])) leaf[count++] = c;
    un_status status = need_patches(flow, m, u, count);
    if (status == UN_OK && other) status = need_patches(other, m, u_other, count);
    if (status == UN_OK) {
        patch_args a = {flow, other, leaf};
        for (int32_t c = 0; c < m->count; c++) flow->patch[c] = -1;
        for (int32_t n = 0; n < count; n++) flow->patch[leaf[n]] = n;
        if (other) memcpy(other->patch, flow->patch, (size_t)m->count * sizeof *flow->patch);
        un_parallel_for(ctx, count, 256, fill_patches, &a);
    }
    un_free(ctx, leaf);
    return status;
}

un_status un_leaves_flow_build(un_leaves_flow *flow, const un_leaves *m, const double *u,
                               const uint8_t *wanted)
{
    return un_leaves_flow_build_two(flow, NULL, m, u, NULL, wanted);
}

/* One component in an even leaf. */
UN_KERNEL double even_at(const un_leaves *m, const double *u, const int32_t *near, int axis,
                         const double f[3], const int off[3], const double g[3], int dim)
{
    static const int step[3] = {1, 3, 9};
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2, middle = dim == 2 ? 4 : 13;
    double sum = 0;
    for (int k = 0; k < 1 << (dim - 1); k++) {
        int n = middle + step[t1] * (off[t1] + (k & 1));
        double w = k & 1 ? g[t1] : 1 - g[t1];
        if (dim == 3) {
            n += step[t2] * (off[t2] + (k >> 1));
            w *= k >> 1 ? g[t2] : 1 - g[t2];
        }
        const int32_t *side = m->side[near[n]];
        double low = side[2 * axis] >= 0 ? u[side[2 * axis]] : side_value(m, u, near[n], 2 * axis);
        double high = side[2 * axis + 1] >= 0 ? u[side[2 * axis + 1]]
                                              : side_value(m, u, near[n], 2 * axis + 1);
        sum += w * (low + f[axis] * (high - low));
    }
    return sum;
}

/* One component at a point: from the four pairs of faces, a lower and an upper one each, that
 * follow each other at v and at v + row; f: the share of the upper ones, g1, g2: those of the
 * second and the third pair. In the order of the formula, so that lanes change no bit. */
UN_KERNEL double pairs_at(const double *v, int row, double f, double g1, double g2)
{
    un_doubles4 a = un_doubles4_load(v), b = un_doubles4_load(v + row);
    un_doubles4 low = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    un_doubles4 high = __builtin_shufflevector(a, b, 1, 3, 5, 7);
    un_doubles4 w1 = {1 - g1, g1, 1 - g1, g1}, w2 = {1 - g2, 1 - g2, g2, g2};
    un_doubles4 part = w1 * w2 * (low + f * (high - low));
    return ((part[0] + part[1]) + part[2]) + part[3];
}

UN_KERNEL double pair_at(const double *v, double f, double g)
{
    double low = (1 - g) * (v[0] + f * (v[1] - v[0]));
    return low + g * (v[2] + f * (v[3] - v[2]));
}

UN_KERNEL double patch_at(const double *value, int axis, const double f[3], const int off[3],
                          const double g[3], int dim)
{
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    const double *v = value + axis * RING_AXIS + 2 * (1 + off[t1]);
    return dim == 2 ? pair_at(v, f[axis], g[t1])
                    : pairs_at(v + 6 * (1 + off[t2]), 6, f[axis], g[t1], g[t2]);
}

UN_KERNEL double parent_at(const double *value, int axis, const double f[3], const double g[3],
                           int dim)
{
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    const double *v = value + PARENT + axis * PARENT_AXIS;
    return dim == 2 ? pair_at(v, f[axis], g[t1]) : pairs_at(v, 4, f[axis], g[t1], g[t2]);
}

static inline void centre_place(const double f[3], int off[3], double g[3], int dim)
{
    for (int a = 0; a < dim; a++) {
        off[a] = f[a] < 0.5 ? -1 : 0;
        g[a] = f[a] - 0.5 - off[a];
    }
}

static __attribute__((noinline)) void find_patch(const un_leaves_flow *flow, int32_t c, double *own)
{
    face_finder s;
    finder_init(&s, flow->leaves, flow->u, NULL);
    fill_patch(&s, c, (double *const[2]){own, NULL});
}

UN_KERNEL un_vec3 from_patch(const un_leaves *m, int32_t c, const double *value, un_vec3 x, int dim)
{
    double f[3] = {0}, g[3], out[3] = {0};
    int off[3];
    un_leaf_place(m, c, x, f);
    centre_place(f, off, g, dim);
    for (int axis = 0; axis < dim; axis++) out[axis] = patch_at(value, axis, f, off, g, dim);
    if (m->coarse[c] && !(m->parted && m->thin[c] & 2)) {
        int child = un_ring_child(m->tree, m->tree->key[c], m->tree->level[c]);
        double w = un_leaf_coarse_share(m, c, f), in[3] = {0};
        un_leaf_place_in_parent(m, child, f, in);
        for (int a = 0; a < dim; a++) g[a] = in[a] - (child >> a & 1 ? 0.5 : -0.5);
        for (int axis = 0; axis < dim; axis++)
            out[axis] += w * (parent_at(value, axis, in, g, dim) - out[axis]);
    }
    return un_v3(out[0], out[1], out[2]);
}

UN_KERNEL un_vec3 flow_at_in(const un_leaves_flow *flow, int32_t c, un_vec3 x, int dim)
{
    const un_leaves *m = flow->leaves;
    if (m->even[c]) {
        double f[3] = {0}, g[3], out[3] = {0};
        int off[3];
        const int32_t *near = un_leaf_near(m, c);
        un_leaf_place(m, c, x, f);
        centre_place(f, off, g, dim);
        for (int axis = 0; axis < dim; axis++)
            out[axis] = even_at(m, flow->u, near, axis, f, off, g, dim);
        return un_v3(out[0], out[1], out[2]);
    }
    double own[UN_PATCH];
    const double *value = own;
    if (flow->patch && flow->patch[c] >= 0)
        value = flow->value[flow->patch[c]];
    else
        find_patch(flow, c, own);
    return from_patch(m, c, value, x, dim);
}

un_vec3 un_leaves_flow_at(const un_leaves_flow *flow, int32_t c, un_vec3 x)
{
    return flow->leaves->dim == 2 ? flow_at_in(flow, c, x, 2) : flow_at_in(flow, c, x, 3);
}

/* ---- many points ---- */

void un_flow_cache_init(un_flow_cache *cache, const un_leaves_flow *flow)
{
    cache->flow = flow;
    for (int k = 0; k < UN_FLOW_CACHE; k++) cache->leaf[k] = -1;
}

/* The faces around a leaf among its like. */
UN_KERNEL void even_patch(const un_leaves *m, const double *u, int32_t c, double *value, int dim)
{
    static const int step[3] = {1, 3, 9};
    const int32_t *near = un_leaf_near(m, c);
    for (int axis = 0; axis < dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        for (int k = 0; k < (dim == 2 ? 3 : 9); k++) {
            int n = m->near_count / 2 + step[t1] * (k % 3 - 1);
            if (dim == 3) n += step[t2] * (k / 3 - 1);
            value[axis * RING_AXIS + 2 * k] = side_value(m, u, near[n], 2 * axis);
            value[axis * RING_AXIS + 2 * k + 1] = side_value(m, u, near[n], 2 * axis + 1);
        }
    }
}

static const double *cached_patch(un_flow_cache *cache, int32_t c)
{
    const un_leaves_flow *flow = cache->flow;
    const un_leaves *m = flow->leaves;
    if (!m->even[c] && flow->patch && flow->patch[c] >= 0) return flow->value[flow->patch[c]];
    int slot = c % UN_FLOW_CACHE;
    double *value = cache->value[slot];
    if (cache->leaf[slot] == c) return value;
    cache->leaf[slot] = c;
    if (m->even[c])
        UN_BY_DIM(m->dim, even_patch(m, flow->u, c, value, dim));
    else
        find_patch(flow, c, value);
    return value;
}

un_vec3 un_flow_cache_at(un_flow_cache *cache, int32_t c, un_vec3 x)
{
    const un_leaves *m = cache->flow->leaves;
    const double *value = cached_patch(cache, c);
    return m->dim == 2 ? from_patch(m, c, value, x, 2) : from_patch(m, c, value, x, 3);
}

un_vec3 un_leaves_velocity_at(const un_leaves *leaves, const double *u, un_vec3 x)
{
    un_leaves_flow flow = {.leaves = leaves, .u = u};
    return un_leaves_flow_at(&flow, un_octree_find(leaves->tree, x), x);
}
