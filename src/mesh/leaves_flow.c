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
 * What a leaf needs of both lattices is its patch, which it shares with its siblings
 * (leaves_patch.c). */
#include "base/lanes.h"
#include "mesh/leaves_patch.h"

/* ---- flow ---- */

void un_leaves_flow_free(un_context *ctx, un_leaves_flow *flow)
{
    un_free(ctx, flow->patch);
    un_free(ctx, flow->value);
    *flow = (un_leaves_flow){0};
}

typedef struct patch_args {
    un_leaves_flow *flow, *other;
    const un_siblings *siblings;
} patch_args;

static void fill_patches(void *arg, int64_t begin, int64_t end)
{
    const patch_args *a = arg;
    un_face_finder s;
    un_face_finder_init(&s, a->flow->leaves, a->flow->u, a->other ? a->other->u : NULL);
    for (int64_t n = begin; n < end; n++) {
        float *value[2] = {a->flow->value[n], a->other ? a->other->value[n] : NULL};
        un_patch_fill(&s, &a->siblings[n], value);
        for (int k = 0; a->flow->slip && k < 2 && value[k]; k++)
            un_patch_slip(a->flow->leaves, &a->siblings[n], a->flow->slip, value[k]);
    }
}

/* Siblings of which any is wanted, in the order of the first of each; patch: by leaf, their number
 * or -1. Returns how many. Leaves lie along the curve: of the cubes of a level, only the last one
 * met can have more children to come. */
typedef struct sibling_list {
    un_siblings *siblings;
    int32_t count, last[UN_LEVELS_MAX + 1]; /* by level: the last one met */
} sibling_list;

static void add_leaf(sibling_list *s, int32_t *patch, const un_leaves *m, int32_t c, bool wanted)
{
    const un_octree *tree = m->tree;
    int level = tree->level[c], child = un_ring_child(tree, tree->key[c], level);
    int32_t n = s->last[level];
    patch[c] = -1;
    if (un_leaf_is_blind(m, c)) {
        if (!wanted) return;
        patch[c] = s->count;
        s->siblings[s->count++] = un_siblings_of_one(m, c);
        return;
    }
    if (n < 0 || s->siblings[n].parent != un_ring_parent(tree, tree->key[c], level)) {
        s->last[level] = n = s->count++;
        s->siblings[n] = un_siblings_of_one(m, c);
        s->siblings[n].wanted = 0;
    }
    s->siblings[n].child[child] = c;
    if (!wanted) return;
    patch[c] = n;
    s->siblings[n].wanted |= (uint8_t)(1u << child);
}

static int32_t find_siblings(un_siblings *siblings, int32_t *patch, const un_leaves *m,
                             const uint8_t *wanted)
{
    sibling_list s = {.siblings = siblings};
    for (int l = 0; l <= m->tree->level_max; l++) s.last[l] = -1;
    if (un_leaves_in_parts(m)) memset(patch, 0xff, (size_t)m->count * sizeof *patch); /* -1 */
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t c = un_leaves_run(m, k).begin; c < un_leaves_run(m, k).end; c++)
            add_leaf(&s, patch, m, (int32_t)c, !wanted || wanted[c]);
    int32_t left = 0;
    for (int32_t n = 0; n < s.count; n++) {
        un_siblings of = siblings[n];
        if (!of.wanted) continue;
        for (uint32_t bits = of.wanted; bits; bits &= bits - 1)
            patch[of.child[__builtin_ctz(bits)]] = left;
        siblings[left++] = of;
    }
    return left;
}

un_status un_leaves_flow_build_two(un_leaves_flow *flow, un_leaves_flow *other, const un_leaves *m,
                                   const double *u, const double *u_other, const uint8_t *wanted)
{
    un_context *ctx = m->ctx;
    un_siblings *siblings;
    flow->leaves = m;
    flow->u = u;
    UN_TRY(un_array_need(ctx, (void **)&flow->patch, &flow->capacity[0], (size_t)m->count + 1,
                         sizeof *flow->patch));
    UN_ALLOC(ctx, siblings, m->count + 1);
    int32_t count = find_siblings(siblings, flow->patch, m, wanted);
    un_status status = un_array_need(ctx, (void **)&flow->value, &flow->capacity[1],
                                     (size_t)count + 1, sizeof *flow->value);
    if (status == UN_OK && other) {
        other->leaves = m;
        other->u = u_other;
        status = un_array_need(ctx, (void **)&other->patch, &other->capacity[0],
                               (size_t)m->count + 1, sizeof *other->patch);
        if (status == UN_OK)
            status = un_array_need(ctx, (void **)&other->value, &other->capacity[1],
                                   (size_t)count + 1, sizeof *other->value);
        if (status == UN_OK)
            memcpy(other->patch, flow->patch, (size_t)m->count * sizeof *flow->patch);
    }
    if (status == UN_OK) {
        patch_args a = {flow, other, siblings};
        un_parallel_for(ctx, count, 64, fill_patches, &a);
    }
    un_free(ctx, siblings);
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
        double low =
            side[2 * axis] >= 0 ? u[side[2 * axis]] : un_leaf_side_value(m, u, near[n], 2 * axis);
        double high = side[2 * axis + 1] >= 0 ? u[side[2 * axis + 1]]
                                              : un_leaf_side_value(m, u, near[n], 2 * axis + 1);
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
UN_KERNEL un_floats8 load_faces(const float *v, int row, int dim)
{
    un_floats4 a, b;
    memcpy(&a, v, sizeof a);
    memcpy(&b, dim == 2 ? v : v + row, sizeof b);
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

static __attribute__((noinline)) void find_patch(const un_leaves_flow *flow, int32_t c, float *own)
{
    un_face_finder s;
    un_siblings of = un_siblings_of_one(flow->leaves, c);
    un_face_finder_init(&s, flow->leaves, flow->u, NULL);
    un_patch_fill(&s, &of, (float *const[2]){own, NULL});
    if (flow->slip) un_patch_slip(flow->leaves, &of, flow->slip, own);
}

/* A point in a leaf: which faces of the leaf's patch it takes, and by what weights. */
typedef struct patch_place {
    int first[3], first_parent[3]; /* by axis */
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
    int child = un_ring_child(m->tree, m->tree->key[c], m->tree->level[c]);
    for (int axis = 0; axis < dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        int b1 = child >> t1 & 1, b2 = child >> t2 & 1;
        t->first[axis] =
            axis * UN_PATCH_AXIS + UN_PATCH_LAYER * (child >> axis & 1) + 2 * (b1 + 1 + off[t1]);
        if (dim == 3) t->first[axis] += UN_PATCH_ROW * (b2 + 1 + off[t2]);
        t->first_parent[axis] = UN_PATCH_PARENT + axis * UN_PATCH_PARENT_AXIS + 2 * b1 +
                                (dim == 3 ? UN_PATCH_PARENT_ROW * b2 : 0);
    }
    t->coarse = m->coarse[c] && !un_leaf_is_blind(m, c);
    if (!t->coarse) return;
    double w = un_leaf_coarse_share(m, c, f), in[3] = {0};
    un_leaf_place_in_parent(m, child, f, in);
    for (int a = 0; a < dim; a++) g[a] = in[a] - (child >> a & 1 ? 0.5 : -0.5);
    find_weights(t->parent, in, g, dim);
    for (int axis = 0; axis < dim; axis++) {
        t->own[axis] *= 1 - w;
        t->parent[axis] *= w;
    }
}

UN_KERNEL un_vec3 take_from_patch(const patch_place *t, const float *value, int dim)
{
    un_doubles8 sum[3];
    for (int axis = 0; axis < dim; axis++) {
        un_floats8 u = load_faces(value + t->first[axis], UN_PATCH_ROW, dim);
        sum[axis] = t->own[axis] * __builtin_convertvector(u, un_doubles8);
        if (!t->coarse) continue;
        u = load_faces(value + t->first_parent[axis], UN_PATCH_PARENT_ROW, dim);
        sum[axis] += t->parent[axis] * __builtin_convertvector(u, un_doubles8);
    }
    return sum_lanes(sum, dim);
}

UN_KERNEL un_vec3 from_patch(const un_leaves *m, int32_t c, const float *value, un_vec3 x, int dim)
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
    float own[UN_PATCH];
    const float *value = own;
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
    for (int k = 0; k < 8; k++) cache->leaf[k] = -1;
}

/* The patch of leaf c for point n. */
static inline const float *cached_patch(un_flow_cache *cache, int32_t c, int n)
{
    const un_leaves_flow *flow = cache->flow;
    if (flow->patch && flow->patch[c] >= 0) return flow->value[flow->patch[c]];
    if (cache->leaf[n] != c) find_patch(flow, c, cache->value[n]);
    cache->leaf[n] = c;
    return cache->value[n];
}

/* Eight points, each in its own leaf: shares towards upper faces, and among the centres beside. */
typedef struct eight_places {
    int32_t leaf[8];
    un_lanes8 f[3], g[3];
    int32_t first[3][8]; /* by axis: the lowest of its eight faces in its patch */
    int32_t first_parent[3][8];
    un_lanes8 coarse;        /* share of the next larger level, 0 if it has none */
    un_lanes8 in[3], gin[3]; /* the same as f and g on its lattice */
    uint32_t coarse_mask;    /* lanes that have one */
} eight_places;

UN_KERNEL un_lanes8 between(un_lanes8 a, un_lanes8 b, un_lanes8 f)
{
    return a + (b - a) * f;
}

UN_KERNEL un_lanes8 clamp_share(un_lanes8 f)
{
    return un_lanes8_min(un_lanes8_positive(f), un_lanes8_all(1));
}

UN_KERNEL un_lanes8 lanes_of(un_bits8 v)
{
    return (un_lanes8) __builtin_convertvector(v, un_floats8);
}

/* As un_leaf_coarse_share: between bits at the corners. */
UN_KERNEL un_lanes8 coarse_shares(un_bits8 bits, const un_lanes8 f[3])
{
    un_lanes8 v[8];
    for (int k = 0; k < 8; k++) v[k] = lanes_of(bits >> k & 1);
    for (int k = 0; k < 8; k += 2) v[k] = between(v[k], v[k + 1], f[0]);
    for (int k = 0; k < 8; k += 4) v[k] = between(v[k], v[k + 2], f[1]);
    return between(v[0], v[4], f[2]);
}

UN_KERNEL void find_centres(un_doubles8 centre[3], const un_leaves *m, const int32_t leaf[8])
{
    un_doubles4 at[8];
    for (int n = 0; n < 8; n++) at[n] = un_doubles4_load(&m->x[leaf[n]].x); /* and the next */
    un_doubles8_turn(centre, at);
}

void un_leaves_of_eight(un_eight *centre, double edge[8], const un_leaves *m, const int32_t leaf[8])
{
    un_doubles8 x[3];
    un_bits8 c;
    memcpy(&c, leaf, sizeof c);
    find_centres(x, m, leaf);
    for (int a = 0; a < 3; a++) un_doubles8_store(centre->of[a], x[a]);
    c = un_bits8_gather(m->word, c) & UN_LEAF_LEVEL;
    un_doubles8_store(edge, un_doubles8_gather(m->tree->edge, c));
}

/* The words of eight leaves, and the way of points from their centres. */
UN_KERNEL un_bits8 way_from_centres(un_doubles8 way[3], const un_leaves *m, const int32_t leaf[8],
                                    const un_eight *x)
{
    un_doubles8 centre[3];
    un_bits8 c;
    memcpy(&c, leaf, sizeof c);
    find_centres(centre, m, leaf);
    for (int a = 0; a < 3; a++) way[a] = un_doubles8_load(x->of[a], 8) - centre[a];
    return un_bits8_gather(m->word, c);
}

uint32_t un_leaves_inside_eight(const un_leaves *m, const int32_t leaf[8], const un_eight *x)
{
    un_doubles8 way[3];
    un_longs8 inside = ~(un_longs8){0};
    un_bits8 word = way_from_centres(way, m, leaf, x);
    un_doubles8 half = 0.5 * un_doubles8_gather(m->tree->edge, word & UN_LEAF_LEVEL);
    for (int a = 0; a < m->dim; a++) inside &= un_doubles8_abs(way[a]) < half;
    return un_longs8_mask(inside);
}

static void place_eight(eight_places *t, const un_leaves *m, const un_eight *x)
{
    un_doubles8 way[3];
    un_bits8 word = way_from_centres(way, m, t->leaf, x);
    un_bits8 up[3], child[3], corners = word >> UN_LEAF_COARSE & 0xff;
    un_doubles8 inverse = un_doubles8_gather(m->tree->inverse_edge, word & UN_LEAF_LEVEL);
    t->coarse_mask = un_bits8_mask(corners != 0);
    for (int a = 0; a < 3; a++) {
        child[a] = word >> (UN_LEAF_CHILD + a) & 1;
        t->f[a] = clamp_share(un_doubles8_to_floats(way[a] * inverse + 0.5));
        up[a] = -(un_bits8)(t->f[a] >= 0.5f);
        t->g[a] = t->f[a] + 0.5f - lanes_of(up[a]);
    }
    for (int a = 0; a < 3; a++) {
        int t1 = a == 0 ? 1 : 0, t2 = a == 2 ? 1 : 2;
        un_bits8 first = a * UN_PATCH_AXIS + UN_PATCH_LAYER * child[a] + 2 * (child[t1] + up[t1]) +
                         UN_PATCH_ROW * (child[t2] + up[t2]);
        memcpy(t->first[a], &first, sizeof first);
    }
    if (!t->coarse_mask) return;
    t->coarse = coarse_shares(corners, t->f);
    for (int a = 0; a < 3; a++) {
        int t1 = a == 0 ? 1 : 0, t2 = a == 2 ? 1 : 2;
        un_bits8 first = UN_PATCH_PARENT + a * UN_PATCH_PARENT_AXIS + 2 * child[t1] +
                         UN_PATCH_PARENT_ROW * child[t2];
        un_lanes8 side = lanes_of(child[a]);
        memcpy(t->first_parent[a], &first, sizeof first);
        t->in[a] = 0.5f * (t->f[a] + side);
        t->gin[a] = t->in[a] + 0.5f - side;
    }
}

/* v: by lane, its faces; the upper ones of the third axis lie `row` after the lower ones. f:
 * between faces, g, h: along the other two axes. */
UN_KERNEL un_lanes8 between_faces(const float *const v[8], int row, un_lanes8 f, un_lanes8 g,
                                  un_lanes8 h)
{
    un_lanes8 u[8];
    for (int n = 0; n < 8; n++) u[n] = (un_lanes8)load_faces(v[n], row, 3);
    un_lanes8_turn(u);
    for (int k = 0; k < 8; k += 2) u[k] = between(u[k], u[k + 1], f);
    return between(between(u[0], u[2], g), between(u[4], u[6], g), h);
}

static void take_eight(un_eight *out, const eight_places *t, un_flow_cache *cache)
{
    static const float none[UN_PATCH] = {0};
    const float *value[8], *v[8];
    for (int n = 0; n < 8; n++) value[n] = cached_patch(cache, t->leaf[n], n);
    for (int a = 0; a < 3; a++) {
        int t1 = a == 0 ? 1 : 0, t2 = a == 2 ? 1 : 2;
        for (int n = 0; n < 8; n++) v[n] = value[n] + t->first[a][n];
        un_lanes8 u = between_faces(v, UN_PATCH_ROW, t->f[a], t->g[t1], t->g[t2]);
        if (t->coarse_mask) {
            for (int n = 0; n < 8; n++)
                v[n] = (t->coarse_mask >> n & 1 ? value[n] : none) + t->first_parent[a][n];
            un_lanes8 larger =
                between_faces(v, UN_PATCH_PARENT_ROW, t->in[a], t->gin[t1], t->gin[t2]);
            u += t->coarse * (larger - u);
        }
        un_doubles8 wide = __builtin_convertvector((un_floats8)u, un_doubles8);
        memcpy(out->of[a], &wide, sizeof wide);
    }
}

/* In the plane, one by one. */
static void take_one_by_one(un_eight *out, const int32_t leaf[8], un_flow_cache *cache,
                            const un_eight *x)
{
    for (int n = 0; n < 8; n++) {
        const float *value = cached_patch(cache, leaf[n], n);
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
