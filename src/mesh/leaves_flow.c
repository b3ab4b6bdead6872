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
    int32_t own = un_ring_near(&r->at, tree, at);
    int own_level = tree->level[own];
    if (own_level == level) {
        take_side(s, own, side, out);
        return out;
    }
    int32_t other = r->at.in[axis][2 * upper] ? un_ring_near(&r->at, tree, at + step) : -1;
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
            int n =
                m->near_count / 2 + un_ring_step[t1] * d[0] + (deep ? un_ring_step[t2] * d[1] : 0);
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

/* A point takes eight faces of each axis: lower and upper ones (bit 0 of the lane), beside each
 * other along both other axes (bits 1 and 2). The weight of a lane is |lane's bit - 1 + share|
 * along each: exactly the share of the upper one, or the rest. */
static const un_doubles8 first_bit = {1, 0, 1, 0, 1, 0, 1, 0};
static const un_doubles8 second_bit = {1, 1, 0, 0, 1, 1, 0, 0};
static const un_doubles8 third_bit = {1, 1, 1, 1, 0, 0, 0, 0};

/* Weights by axis; f: where the point lies between faces, g: among the centres beside it. */
UN_KERNEL void find_weights(un_doubles8 w[3], const double f[3], const double g[3], int dim)
{
    un_doubles8 second[2] = {un_doubles8_abs(second_bit - g[0]),
                             un_doubles8_abs(second_bit - g[1])};
    w[0] = un_doubles8_abs(first_bit - f[0]) * second[1];
    w[1] = un_doubles8_abs(first_bit - f[1]) * second[0];
    if (dim == 2) {
        w[0] *= third_bit;
        w[1] *= third_bit;
        return;
    }
    un_doubles8 third[2] = {un_doubles8_abs(third_bit - g[1]), un_doubles8_abs(third_bit - g[2])};
    w[0] *= third[1];
    w[1] *= third[1];
    w[2] = un_doubles8_abs(first_bit - f[2]) * second[0] * third[0];
}

/* Four in a row from v and four from v + row; in 2D only the first four exist. */
UN_KERNEL un_doubles8 load_faces(const double *v, int row, int dim)
{
    un_doubles4 a = un_doubles4_load(v), b = dim == 2 ? a : un_doubles4_load(v + row);
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}

UN_KERNEL un_vec3 sum_lanes(const un_doubles8 v[3], int dim)
{
    un_doubles4 s[3];
    for (int a = 0; a < dim; a++)
        s[a] = __builtin_shufflevector(v[a], v[a], 0, 1, 2, 3) +
               __builtin_shufflevector(v[a], v[a], 4, 5, 6, 7);
    un_doubles4 xy = __builtin_shufflevector(s[0], s[1], 0, 4, 2, 6) +
                     __builtin_shufflevector(s[0], s[1], 1, 5, 3, 7);
    double z = dim == 2 ? 0 : (s[2][0] + s[2][1]) + (s[2][2] + s[2][3]);
    return un_v3(xy[0] + xy[2], xy[1] + xy[3], z);
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

/* A point in a leaf: which faces of the leaf's patch it takes, and by what weights. */
typedef struct patch_place {
    int first[3]; /* by axis */
    un_doubles8 own[3], parent[3];
    bool coarse;
} patch_place;

UN_KERNEL void place_in_patch(patch_place *t, const un_leaves *m, int32_t c, un_vec3 x, int dim)
{
    double f[3] = {0}, g[3];
    int off[3];
    un_leaf_place(m, c, x, f);
    centre_place(f, off, g, dim);
    find_weights(t->own, f, g, dim);
    for (int axis = 0; axis < dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        t->first[axis] = axis * RING_AXIS + 2 * (1 + off[t1]) + (dim == 2 ? 0 : 6 * (1 + off[t2]));
    }
    t->coarse = m->coarse[c] && !(m->parted && m->thin[c] & 2);
    if (!t->coarse) return;
    int child = un_ring_child(m->tree, m->tree->key[c], m->tree->level[c]);
    double w = un_leaf_coarse_share(m, c, f), in[3] = {0};
    un_leaf_place_in_parent(m, child, f, in);
    for (int a = 0; a < dim; a++) g[a] = in[a] - (child >> a & 1 ? 0.5 : -0.5);
    find_weights(t->parent, in, g, dim);
    for (int axis = 0; axis < dim; axis++) {
        t->own[axis] *= 1 - w;
        t->parent[axis] *= w;
    }
}

UN_KERNEL un_vec3 take_from_patch(const patch_place *t, const double *value, int dim)
{
    un_doubles8 sum[3];
    for (int axis = 0; axis < dim; axis++) {
        sum[axis] = t->own[axis] * load_faces(value + t->first[axis], 6, dim);
        if (t->coarse)
            sum[axis] += t->parent[axis] * load_faces(value + PARENT + axis * PARENT_AXIS, 4, dim);
    }
    return sum_lanes(sum, dim);
}

UN_KERNEL un_vec3 from_patch(const un_leaves *m, int32_t c, const double *value, un_vec3 x, int dim)
{
    patch_place t;
    place_in_patch(&t, m, c, x, dim);
    return take_from_patch(&t, value, dim);
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

/* The patch of leaf c. Slots in `busy` hold what is still needed: then it goes to `spare`. */
static const double *cached_patch(un_flow_cache *cache, int32_t c, uint32_t *busy, double *spare)
{
    const un_leaves_flow *flow = cache->flow;
    const un_leaves *m = flow->leaves;
    if (!m->even[c] && flow->patch && flow->patch[c] >= 0) return flow->value[flow->patch[c]];
    int slot = c % UN_FLOW_CACHE;
    double *value = cache->value[slot];
    bool known = cache->leaf[slot] == c, taken = *busy >> slot & 1;
    if (!known && taken) value = spare;
    if (!taken) cache->leaf[slot] = c;
    *busy |= (uint32_t)1 << slot;
    if (known) return value;
    if (m->even[c])
        UN_BY_DIM(m->dim, even_patch(m, flow->u, c, value, dim));
    else
        find_patch(flow, c, value);
    return value;
}

/* Eight points, each in its own leaf: shares towards upper faces, and among the centres beside. */
typedef struct eight_places {
    int32_t leaf[8];
    un_doubles8 f[3], g[3];
    int64_t first[3][8];       /* by axis: the lowest of its eight faces in its patch */
    un_doubles8 coarse;        /* share of the next larger level, 0 if it has none */
    un_doubles8 in[3], gin[3]; /* the same as f and g on its lattice */
    bool any_coarse, is_coarse[8];
} eight_places;

UN_KERNEL un_doubles8 between(un_doubles8 a, un_doubles8 b, un_doubles8 f)
{
    return a + (b - a) * f;
}

UN_KERNEL un_doubles8 clamp_share(un_doubles8 f)
{
    f = un_doubles8_positive(f);
    return 1 - un_doubles8_positive(1 - f);
}

/* As un_leaf_coarse_share: between bits at the corners. */
UN_KERNEL un_doubles8 coarse_shares(un_longs8 bits, const un_doubles8 f[3])
{
    un_doubles8 v[8];
    for (int k = 0; k < 8; k++) v[k] = __builtin_convertvector(bits >> k & 1, un_doubles8);
    for (int k = 0; k < 8; k += 2) v[k] = between(v[k], v[k + 1], f[0]);
    for (int k = 0; k < 8; k += 4) v[k] = between(v[k], v[k + 2], f[1]);
    return between(v[0], v[4], f[2]);
}

static void place_eight(eight_places *t, const un_leaves *m, const un_eight *x)
{
    const un_octree *tree = m->tree;
    double at[3][8], inverse[8], child[3][8] = {{0}};
    int64_t bits[8];
    t->any_coarse = false;
    for (int n = 0; n < 8; n++) {
        int32_t c = t->leaf[n];
        int level = tree->level[c];
        un_vec3 centre = m->x[c];
        at[0][n] = centre.x;
        at[1][n] = centre.y;
        at[2][n] = centre.z;
        inverse[n] = tree->inverse_edge[level];
        t->is_coarse[n] = m->coarse[c] && !(m->parted && m->thin[c] & 2);
        bits[n] = t->is_coarse[n] ? m->coarse[c] : 0;
        if (!t->is_coarse[n]) continue;
        int of = un_ring_child(tree, tree->key[c], level);
        for (int a = 0; a < 3; a++) child[a][n] = of >> a & 1;
        t->any_coarse = true;
    }
    un_longs8 up[3];
    for (int a = 0; a < 3; a++) {
        un_doubles8 f = (un_doubles8_load(x->of[a], 8) - un_doubles8_load(at[a], 8)) *
                        un_doubles8_load(inverse, 8);
        t->f[a] = clamp_share(f + 0.5);
        up[a] = -(t->f[a] >= 0.5);
        t->g[a] = t->f[a] + 0.5 - __builtin_convertvector(up[a], un_doubles8);
    }
    for (int a = 0; a < 3; a++) {
        un_longs8 first = a * RING_AXIS + 2 * up[a == 0 ? 1 : 0] + 6 * up[a == 2 ? 1 : 2];
        memcpy(t->first[a], &first, sizeof first);
    }
    if (!t->any_coarse) return;
    un_longs8 corners;
    memcpy(&corners, bits, sizeof corners);
    t->coarse = coarse_shares(corners, t->f);
    for (int a = 0; a < 3; a++) {
        un_doubles8 side = un_doubles8_load(child[a], 8);
        t->in[a] = 0.5 * (t->f[a] + side);
        t->gin[a] = t->in[a] + 0.5 - side;
    }
}

/* v: by lane, its faces; the upper ones of the third axis lie `row` after the lower ones. f:
 * between faces, g, h: along the other two axes. */
UN_KERNEL un_doubles8 between_faces(const double *const v[8], int row, un_doubles8 f, un_doubles8 g,
                                    un_doubles8 h)
{
    un_doubles8 u[8];
    for (int k = 0; k < 8; k++) {
        int i = (k & 3) + (k >> 2) * row;
        u[k] =
            (un_doubles8){v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], v[5][i], v[6][i], v[7][i]};
    }
    for (int k = 0; k < 8; k += 2) u[k] = between(u[k], u[k + 1], f);
    return between(between(u[0], u[2], g), between(u[4], u[6], g), h);
}

static void take_eight(un_eight *out, const eight_places *t, un_flow_cache *cache)
{
    static const double none[UN_PATCH - PARENT] = {0};
    const double *value[8], *v[8];
    uint32_t busy = 0;
    value[0] = cached_patch(cache, t->leaf[0], &busy, cache->spare[0]);
    for (int n = 1; n < 8; n++)
        value[n] = t->leaf[n] == t->leaf[n - 1]
                       ? value[n - 1]
                       : cached_patch(cache, t->leaf[n], &busy, cache->spare[n]);
    for (int a = 0; a < 3; a++) {
        int t1 = a == 0 ? 1 : 0, t2 = a == 2 ? 1 : 2;
        for (int n = 0; n < 8; n++) v[n] = value[n] + t->first[a][n];
        un_doubles8 u = between_faces(v, 6, t->f[a], t->g[t1], t->g[t2]);
        if (t->any_coarse) {
            for (int n = 0; n < 8; n++)
                v[n] = (t->is_coarse[n] ? value[n] + PARENT : none) + a * PARENT_AXIS;
            un_doubles8 larger = between_faces(v, 4, t->in[a], t->gin[t1], t->gin[t2]);
            u += t->coarse * (larger - u);
        }
        memcpy(out->of[a], &u, sizeof u);
    }
}

/* In the plane, one by one. */
static void take_one_by_one(un_eight *out, const int32_t leaf[8], un_flow_cache *cache,
                            const un_eight *x)
{
    for (int n = 0; n < 8; n++) {
        uint32_t busy = 0;
        const double *value = cached_patch(cache, leaf[n], &busy, cache->spare[n]);
        un_vec3 at = {x->of[0][n], x->of[1][n], 0};
        un_vec3 u = from_patch(cache->flow->leaves, leaf[n], value, at, 2);
        out->of[0][n] = u.x;
        out->of[1][n] = u.y;
        out->of[2][n] = 0;
    }
}

void un_flow_cache_eight(un_eight *out, un_flow_cache *cache, const int32_t leaf[8],
                         const un_eight *x, un_eight *out_other, un_flow_cache *other)
{
    const un_leaves *m = cache->flow->leaves;
    if (m->dim == 2) {
        take_one_by_one(out, leaf, cache, x);
        if (other) take_one_by_one(out_other, leaf, other, x);
        return;
    }
    eight_places t;
    memcpy(t.leaf, leaf, sizeof t.leaf);
    place_eight(&t, m, x);
    take_eight(out, &t, cache);
    if (other) take_eight(out_other, &t, other);
}

un_vec3 un_leaves_velocity_at(const un_leaves *leaves, const double *u, un_vec3 x)
{
    un_leaves_flow flow = {.leaves = leaves, .u = u};
    return un_leaves_flow_at(&flow, un_octree_find(leaves->tree, x), x);
}
