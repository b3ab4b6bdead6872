/* Face velocities around siblings, on the lattices of their level and of the next larger one.
 *
 * See leaves_flow.c for what a face is that is not the mesh's own. Eight siblings need 3 x 4 x 4
 * faces of each axis, a third of what each by itself would look up, and the same ring around their
 * parent. */
#include "mesh/leaves_patch.h"

void un_face_finder_init(un_face_finder *s, const un_leaves *m, const double *u,
                         const double *other)
{
    s->m = m;
    s->u[0] = u;
    s->u[1] = other ? other : u; /* a second one that nobody asks for costs less than a branch */
    s->fields = other ? 2 : 1;
    for (int l = 0; l <= m->tree->level_max; l++) s->ring[l].at.key = UN_RING_NONE;
}

static inline void take_side(const un_face_finder *s, int32_t leaf, int side, double out[2])
{
    int32_t f = s->m->side[leaf][side];
    out[0] = f >= 0 ? s->u[0][f] : un_leaf_side_value(s->m, s->u[0], leaf, side);
    out[1] = f >= 0 ? s->u[1][f] : un_leaf_side_value(s->m, s->u[1], leaf, side);
}

/* Is the cube of which `first` is the lower corner divided into leaves of one level? In 3D. */
static inline bool is_family(const un_octree *tree, int level, int32_t first)
{
    const uint64_t all = level * UINT64_C(0x0101010101010101);
    uint64_t levels;
    if (first + 8 > tree->leaf_count) return false;
    memcpy(&levels, tree->level + first, sizeof levels);
    return levels == all && tree->key[first + 7] >> un_ring_shift(tree, level - 1) ==
                                tree->key[first] >> un_ring_shift(tree, level - 1);
}

/* The mean over a side of a cube that is divided; first: the leaf in its lower corner. */
static void take_divided(const un_face_finder *s, int level, int32_t first, int side, double out[2])
{
    const un_octree *tree = s->m->tree;
    int shift = un_ring_shift(tree, level + 1), axis = side / 2, count = 1 << s->m->dim;
    uint64_t key = tree->key[first];
    double sum[2] = {0, 0}, part[2] = {0, 0};
    if (count == 8 && is_family(tree, level + 1, first)) { /* mostly */
        int32_t corner = first + (side & 1 ? 1 << axis : 0);
        int t1 = axis == 0 ? 2 : 1, t2 = axis == 2 ? 2 : 4;
        for (int k = 0; k < 4; k++) {
            take_side(s, corner + (k & 1 ? t1 : 0) + (k & 2 ? t2 : 0), side, part);
            sum[0] += part[0];
            sum[1] += part[1];
        }
        out[0] = sum[0] * 0.25;
        out[1] = sum[1] * 0.25;
        return;
    }
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

/* A face of a cube of this level whose leaf `own` is of another one, from the leaf behind it (-1:
 * none) or from smaller ones on either side. False if both sides are larger. */
static bool take_uneven(const un_face_finder *s, int level, int32_t own, int32_t other, int side,
                        double out[2])
{
    const uint8_t *levels = s->m->tree->level;
    int other_level = other < 0 ? -1 : levels[other];
    if (other_level == level)
        take_side(s, other, side ^ 1, out);
    else if (levels[own] > level)
        take_divided(s, level, own, side, out);
    else if (other_level > level)
        take_divided(s, level, other, side ^ 1, out);
    else
        return false;
    return true;
}

static un_face_ring *ring_of(un_face_finder *s, int level, uint64_t key, int32_t leaf)
{
    un_face_ring *r = &s->ring[level];
    if (r->at.key == key) return r;
    un_ring_find(&r->at, s->m, key, level, leaf);
    r->have = 0;
    return r;
}

static const double *take_face(un_face_finder *s, un_face_ring *r, int level, int axis, int upper,
                               int d1, int d2);

/* Between the faces around the parent. */
static void take_between(un_face_finder *s, const un_face_ring *r, int level, int axis, int upper,
                         int d1, int d2, double out[2])
{
    const un_octree *tree = s->m->tree;
    int child = un_ring_child(tree, r->at.key, level), t1 = axis == 0 ? 1 : 0,
        t2 = axis == 2 ? 1 : 2;
    un_face_ring *parent = ring_of(s, level - 1, un_ring_parent(tree, r->at.key, level), -1);
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
static const double *take_face(un_face_finder *s, un_face_ring *r, int level, int axis, int upper,
                               int d1, int d2)
{
    int n = axis * UN_RING_AXIS + upper + 2 * (1 + d1) + 6 * (1 + d2), side = 2 * axis + upper;
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
    if (tree->level[own] == level) {
        take_side(s, own, side, out);
        return out;
    }
    int32_t other = r->at.in[axis][2 * upper] ? un_ring_near(&r->at, tree, at + step) : -1;
    if (!take_uneven(s, level, own, other, side, out))
        take_between(s, r, level, axis, upper, d1, d2, out);
    return out;
}

/* ---- siblings ---- */

/* The 4 x 4 x 4 cubes around siblings (in 2D 4 x 4), which are those with places 1 and 2. */
typedef struct block {
    const un_siblings *of;
    int32_t leaf[64];    /* holds each cube's lower corner, -1 beyond the brick, or
                            UN_RING_UNKNOWN: ask leaf_at */
    uint64_t equal;      /* by bit: known to be a leaf of the siblings' level */
    bool in[3][4];       /* by axis and place: in the brick? */
    int inside[3][4];    /* that place, or the next one in the brick */
    uint64_t part[3][4]; /* what the cubes' codes are made of, if any is unknown */
} block;

static const int block_step[3] = {1, 4, 16};

/* Beyond the brick as at its boundary. */
static int place_inside(const bool in[4], int i)
{
    if (i == 0) return in[0] ? 0 : 1;
    while (!in[i]) i--;
    return i;
}

/* Each cube from the nearest sibling. */
static void find_block(block *b, const un_leaves *m, const un_siblings *of)
{
    const un_octree *tree = m->tree;
    int deep = m->dim == 3;
    int32_t s = 1 << (tree->level_max - of->level);
    bool whole = true;
    b->of = of;
    for (int k = 0; k < (deep ? 8 : 4); k++) whole &= of->child[k] >= 0;
    for (int a = 0; a < 3; a++) {
        int32_t at = (int32_t)un_morton_gather(of->parent >> a);
        for (int i = 0; i < 4; i++) {
            int32_t q = at + (i - 1) * s;
            b->in[a][i] = a == 2 && !deep ? i == 0 : q >= 0 && q < tree->n[a];
            if (!whole && b->in[a][i])
                b->part[a][i] = a == 2 && !deep ? 0 : un_morton_spread((uint64_t)(uint32_t)q) << a;
        }
        for (int i = 0; i < 4; i++)
            b->inside[a][i] = a == 2 && !deep ? 0 : place_inside(b->in[a], i);
    }
    b->equal = 0;
    for (int k = 0; k < (deep ? 4 : 1); k++)
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 4; i++) {
                int child = (i > 1) + 2 * (j > 1) + 4 * (k > 1), n = i + 4 * j + 16 * k;
                int32_t c = of->child[child];
                int d = i - 1 - (i > 1) + 3 * (j - 1 - (j > 1));
                if (deep) d += 9 * (k - 1 - (k > 1));
                int32_t there = c < 0 ? UN_RING_UNKNOWN : un_leaf_near(m, c)[m->near_count / 2 + d];
                b->leaf[n] = there;
                if (there >= 0) b->equal |= (uint64_t)(tree->level[there] == of->level) << n;
            }
}

static int32_t leaf_at(block *b, const un_octree *tree, int n)
{
    if (b->leaf[n] != UN_RING_UNKNOWN) return b->leaf[n];
    int x = n & 3, y = n >> 2 & 3, z = n >> 4;
    bool in = b->in[0][x] && b->in[1][y] && b->in[2][z];
    uint64_t key = in ? b->part[0][x] | b->part[1][y] | b->part[2][z] : 0;
    return b->leaf[n] = in ? un_octree_find_key(tree, key) : -1;
}

/* Between the faces around the parent; plane: 0 .. 2 along the axis, i: places along the others. */
UN_KERNEL void between_parents_in(un_face_finder *s, const un_siblings *of, int axis, int plane,
                                  const int i[2], double out[2], int dim)
{
    int level = of->level, low[2] = {0, 0};
    un_face_ring *parent = ring_of(s, level - 1, of->parent, -1);
    double share[2] = {0, 0}, sum[2] = {0, 0};
    low[0] = un_ring_between(0, i[0] - 1, &share[0]);
    if (dim == 3) low[1] = un_ring_between(0, i[1] - 1, &share[1]);
    int first = axis * UN_RING_AXIS + 2 * (1 + low[0]) + 6 * (1 + low[1]);
    int begin = plane == 2, end = plane == 0 ? 1 : 2;
    for (int k = 0; k < 1 << (dim - 1); k++) {
        int a = k & 1, b = k >> 1;
        double w = (plane == 1 ? 0.5 : 1) * (a ? share[0] : 1 - share[0]);
        if (dim == 3) w *= b ? share[1] : 1 - share[1];
        for (int up = begin; up < end; up++) {
            int n = first + up + 2 * a + 6 * b;
            const double *u = parent->u[n];
            if (!(parent->have >> n & 1))
                u = take_face(s, parent, level - 1, axis, up, low[0] + a, low[1] + b);
            sum[0] += w * u[0];
            sum[1] += w * u[1];
        }
    }
    out[0] = sum[0];
    out[1] = sum[1];
}

static void between_parents(un_face_finder *s, const un_siblings *of, int axis, int plane,
                            const int i[2], double out[2])
{
    UN_BY_DIM(s->m->dim, between_parents_in(s, of, axis, plane, i, out, dim));
}

/* The face in a plane across an axis, 0 .. 2, of the cubes at places i along the other two. */
static inline void plane_face(un_face_finder *s, block *b, int axis, int plane, const int i[2],
                              double out[2])
{
    const un_octree *tree = s->m->tree;
    int level = b->of->level, t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    int at = block_step[t1] * i[0] + block_step[t2] * i[1];
    int inner = plane < 2 ? 1 : 2, outer = plane == 0 ? 0 : inner + 1,
        side = 2 * axis + (plane > 0);
    int32_t own = b->leaf[at + block_step[axis] * inner];
    if (own < 0) own = leaf_at(b, tree, at + block_step[axis] * inner);
    if (tree->level[own] == level) {
        take_side(s, own, side, out);
        return;
    }
    int32_t other = b->in[axis][outer] ? leaf_at(b, tree, at + block_step[axis] * outer) : -1;
    if (!take_uneven(s, level, own, other, side, out))
        between_parents(s, b->of, axis, plane, i, out);
}

/* By bit i + 4 j: the columns of cubes along the axis that the wanted siblings of a layer need. */
static uint32_t columns_of(const un_siblings *of, int axis, int layer, int dim)
{
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    uint32_t columns = 0;
    if (of->wanted == (dim == 2 ? 0xfu : 0xffu)) return dim == 2 ? 0xfu : 0xffffu;
    for (uint32_t left = of->wanted; left; left &= left - 1) {
        int k = __builtin_ctz(left);
        if ((k >> axis & 1) != layer) continue;
        columns |= (dim == 2 ? 0x7u : 0x777u) << ((k >> t1 & 1) + 4 * (k >> t2 & 1));
    }
    return columns;
}

UN_KERNEL void fill_own(un_face_finder *s, block *b, float *const value[2], int dim)
{
    for (int axis = 0; axis < dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        uint32_t lower = columns_of(b->of, axis, 0, dim), upper = columns_of(b->of, axis, 1, dim);
        for (uint32_t left = lower | upper; left; left &= left - 1) {
            int n = __builtin_ctz(left), at = axis * UN_PATCH_AXIS + 2 * n;
            int i[2] = {b->inside[t1][n & 3], dim == 2 ? 0 : b->inside[t2][n >> 2]};
            int low = block_step[axis] + block_step[t1] * i[0] + block_step[t2] * i[1];
            int high = low + block_step[axis];
            double u[3][2];
            int first = lower >> n & 1 ? 0 : 1, last = upper >> n & 1 ? 2 : 1;
            if (b->equal >> low & 1) { /* mostly, here and below */
                take_side(s, b->leaf[low], 2 * axis, u[0]);
                take_side(s, b->leaf[low], 2 * axis + 1, u[1]);
            } else {
                if (first == 0) plane_face(s, b, axis, 0, i, u[0]);
                plane_face(s, b, axis, 1, i, u[1]);
            }
            if (last == 2 && b->equal >> high & 1)
                take_side(s, b->leaf[high], 2 * axis + 1, u[2]);
            else if (last == 2)
                plane_face(s, b, axis, 2, i, u[2]);
            for (int f = 0; f < s->fields; f++) {
                float *v = value[f] + at, middle = (float)u[1][f];
                if (first == 0) v[0] = (float)u[0][f], v[1] = middle;
                if (last == 2) v[UN_PATCH_LAYER] = middle, v[UN_PATCH_LAYER + 1] = (float)u[2][f];
            }
        }
    }
}

static void fill_parent(un_face_finder *s, const un_siblings *of, float *const value[2])
{
    const un_leaves *m = s->m;
    int deep = m->dim == 3;
    for (int axis = 0; axis < m->dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        uint32_t columns = 0; /* by bit i + 3 j */
        for (uint32_t left = of->wanted; left; left &= left - 1) {
            int k = __builtin_ctz(left);
            if (!m->coarse[of->child[k]]) continue;
            columns |= (deep ? 0x1bu : 0x3u) << ((k >> t1 & 1) + (deep ? 3 * (k >> t2 & 1) : 0));
        }
        if (!columns) return;
        un_face_ring *parent = ring_of(s, of->level - 1, of->parent, -1);
        for (; columns; columns &= columns - 1) {
            int n = __builtin_ctz(columns), to = UN_PATCH_PARENT + axis * UN_PATCH_PARENT_AXIS;
            for (int up = 0; up < 2; up++) {
                const double *u =
                    take_face(s, parent, of->level - 1, axis, up, n % 3 - 1, deep ? n / 3 - 1 : 0);
                for (int f = 0; f < s->fields; f++) value[f][to + 2 * n + up] = (float)u[f];
            }
        }
    }
}

/* The step nearest to d, along both axes other than `axis`, to a leaf that c sees. */
static void step_in_sight(const un_leaves *m, int32_t c, int t1, int t2, int d[2])
{
    const int32_t *near = un_leaf_near(m, c);
    int tries[4][2] = {{d[0], d[1]}, {0, d[1]}, {d[0], 0}, {0, 0}};
    for (int k = 0; k < 4; k++) {
        int n = m->near_count / 2 + un_ring_step[t1] * tries[k][0];
        if (m->dim == 3) n += un_ring_step[t2] * tries[k][1];
        if (near[n] < 0) continue;
        d[0] = tries[k][0];
        d[1] = tries[k][1];
        return;
    }
}

/* A leaf that does not see all leaves around it takes none of the next larger level. */
static void fill_alone(un_face_finder *s, const un_siblings *of, float *const value[2])
{
    const un_leaves *m = s->m;
    const un_octree *tree = m->tree;
    int child = __builtin_ctz(of->wanted), level = of->level, deep = m->dim == 3;
    int32_t c = of->child[child];
    const int32_t *near = un_leaf_near(m, c);
    un_face_ring *r = ring_of(s, level, tree->key[c], -1);
    for (int axis = 0; axis < m->dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        int to = axis * UN_PATCH_AXIS + UN_PATCH_LAYER * (child >> axis & 1) +
                 2 * (child >> t1 & 1) + UN_PATCH_ROW * (child >> t2 & 1);
        for (int k = 0; k < (deep ? 18 : 6); k++) {
            int d[2] = {k / 2 % 3 - 1, deep ? k / 6 - 1 : 0};
            int at = to + k % 6 + UN_PATCH_ROW * (k / 6), n = m->near_count / 2;
            step_in_sight(m, c, t1, t2, d);
            n += un_ring_step[t1] * d[0] + (deep ? un_ring_step[t2] * d[1] : 0);
            double found[2];
            const double *u = found;
            if (near[n] >= 0 && tree->level[near[n]] == level)
                take_side(s, near[n], 2 * axis + (k & 1), found);
            else
                u = take_face(s, r, level, axis, k & 1, d[0], d[1]);
            for (int f = 0; f < s->fields; f++) value[f][at] = (float)u[f];
        }
    }
}

void un_patch_fill(un_face_finder *s, const un_siblings *of, float *const value[2])
{
    if (of->alone) {
        fill_alone(s, of, value);
        return;
    }
    block b;
    find_block(&b, s->m, of);
    UN_BY_DIM(s->m->dim, fill_own(s, &b, value, dim));
    fill_parent(s, of, value);
}

un_siblings un_siblings_of_one(const un_leaves *m, int32_t c)
{
    const un_octree *tree = m->tree;
    int level = tree->level[c], child = un_ring_child(tree, tree->key[c], level);
    un_siblings of = {.parent = un_ring_parent(tree, tree->key[c], level),
                      .child = {-1, -1, -1, -1, -1, -1, -1, -1},
                      .wanted = (uint8_t)(1u << child),
                      .level = (uint8_t)level,
                      .alone = un_leaf_is_blind(m, c)};
    of.child[child] = c;
    return of;
}
