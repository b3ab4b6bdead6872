/* Fields at centres and velocities on faces of leaves, between them.
 *
 * See leaves.h. On the lattice of level l, a face or a centre that is not the mesh's own takes
 *
 *     the mean of the next finer lattice's values in it,       where the mesh is finer,
 *     the multilinear value of the next coarser lattice,       where it is coarser:
 *
 * both are exact for linear fields. Values beyond the brick are those at its boundary. In a leaf of
 * level l a point takes
 *
 *     u = (1 - w) U_l + w U_(l-1),
 *
 * w the multilinear function that is 1 at the leaf's corners that touch a larger leaf, else 0. All
 * corners of a side towards a larger leaf do, so both leaves have U_(l-1) there. */
#include "mesh/mesh.h"

typedef struct cube {
    int32_t at[3]; /* lower corner, in finest leaves */
    int level;
} cube;

static inline int32_t cube_size(const un_octree *tree, int level)
{
    return 1 << (tree->level_max - level);
}

static inline cube cube_of(const un_octree *tree, int32_t c)
{
    uint64_t k = tree->key[c];
    return (cube){{(int32_t)un_morton_gather(k), (int32_t)un_morton_gather(k >> 1),
                   (int32_t)un_morton_gather(k >> 2)},
                  tree->level[c]};
}

/* The lattice points of the next coarser level on both sides of a place along an axis, which is
 * given in half cubes of the finer level, and the share of the upper one. */
static inline int32_t below_in(int32_t place, int32_t spacing, double *share)
{
    int32_t low = place >= 0 ? place / spacing : -((spacing - 1 - place) / spacing);
    *share = (double)(place - low * spacing) / spacing;
    return low;
}

/* ---- centres ---- */

typedef double take_value(const void *field, int32_t leaf);

static double take_float(const void *field, int32_t leaf)
{
    return ((const float *)field)[leaf];
}

static double take_double(const void *field, int32_t leaf)
{
    return ((const double *)field)[leaf];
}

static double centre_value(const un_leaves *m, const void *field, take_value *take, cube q)
{
    const un_octree *tree = m->tree;
    int32_t s = cube_size(tree, q.level);
    for (int a = 0; a < m->dim; a++) q.at[a] = un_clampi(q.at[a], 0, tree->n[a] - s);
    int32_t leaf = un_octree_find_at(tree, q.at[0], q.at[1], q.at[2]);
    int level = tree->level[leaf];
    if (level == q.level) return take(field, leaf);
    double sum = 0, total = 0;
    if (level > q.level) { /* the mean over the leaves in the cube, which follow each other */
        int shift = 3 * (tree->level_max - q.level);
        uint64_t key = tree->key[leaf] >> shift;
        for (; leaf < m->count && tree->key[leaf] >> shift == key; leaf++) {
            double volume = un_leaf_volume(m, leaf);
            sum += volume * take(field, leaf);
            total += volume;
        }
        return sum / total;
    }
    /* Places in units of s / 2: coarse centres lie at 2, 6, 10, ... */
    int32_t low[3] = {0};
    double share[3] = {0};
    for (int a = 0; a < m->dim; a++) low[a] = below_in(2 * (q.at[a] / s) + 1 - 2, 4, &share[a]);
    for (int k = 0; k < 1 << m->dim; k++) {
        cube from = {{0, 0, 0}, q.level - 1};
        double w = 1;
        for (int a = 0; a < m->dim; a++) {
            from.at[a] = 2 * s * (low[a] + (k >> a & 1));
            w *= k >> a & 1 ? share[a] : 1 - share[a];
        }
        sum += w * centre_value(m, field, take, from);
    }
    return sum;
}

double un_leaves_lattice_value(const un_leaves *m, const float *field, int level,
                               const int32_t at[3])
{
    return centre_value(m, field, take_float, (cube){{at[0], at[1], at[2]}, level});
}

/* ---- faces ---- */

static inline double side_value(const un_leaves *m, const double *u, int32_t leaf, int side)
{
    int32_t f = m->side[leaf][side];
    if (f >= 0) return u[f];
    const int32_t *g = m->group[~f];
    return m->dim == 2 ? 0.5 * (u[g[0]] + u[g[1]])
                       : 0.25 * ((u[g[0]] + u[g[1]]) + (u[g[2]] + u[g[3]]));
}

/* Faces of one level's lattice that have been found: those of the cubes up to two away from a first
 * one. What lies between coarse faces asks for the same few of them again and again. */
#define MEMO_REACH 2
#define MEMO_SIDE (2 * MEMO_REACH + 1)
typedef struct memo {
    cube first;
    double value[3][MEMO_SIDE * MEMO_SIDE * MEMO_SIDE]; /* by axis; NaN: not yet */
} memo;

static void memo_begin(memo *known, cube first, int dim)
{
    known->first = first;
    for (int axis = 0; axis < dim; axis++)
        for (int n = 0; n < MEMO_SIDE * MEMO_SIDE * MEMO_SIDE; n++) known->value[axis][n] = NAN;
}

static double *memo_at(memo *known, int axis, const cube *q, int32_t s, int dim)
{
    int n = 0;
    if (!known || known->first.level != q->level) return NULL;
    for (int a = dim - 1; a >= 0; a--) {
        int32_t d = (q->at[a] - known->first.at[a]) / s + MEMO_REACH;
        if (d < 0 || d >= MEMO_SIDE) return NULL;
        n = n * MEMO_SIDE + d;
    }
    return &known->value[axis][n];
}

static double find_face(const un_leaves *m, const double *u, int axis, cube q, memo *known);

/* The lower face along `axis` of a cube; the cube may lie right above the brick. known: NULL, or
 * faces that need not be found again. */
static double face_value(const un_leaves *m, const double *u, int axis, cube q, memo *known)
{
    double *kept = memo_at(known, axis, &q, cube_size(m->tree, q.level), m->dim);
    if (!kept) return find_face(m, u, axis, q, known);
    if (isnan(*kept)) *kept = find_face(m, u, axis, q, known);
    return *kept;
}

static double find_face(const un_leaves *m, const double *u, int axis, cube q, memo *known)
{
    const un_octree *tree = m->tree;
    int32_t s = cube_size(tree, q.level), *at = q.at;
    for (int a = 0; a < m->dim; a++)
        at[a] = un_clampi(at[a], 0, a == axis ? tree->n[a] : tree->n[a] - s);
    int32_t under[3] = {at[0], at[1], at[2]};
    under[axis] -= s;
    int32_t above = at[axis] < tree->n[axis] ? un_octree_find_at(tree, at[0], at[1], at[2]) : -1;
    int32_t below = at[axis] > 0 ? un_octree_find_at(tree, under[0], under[1], under[2]) : -1;
    int high = above < 0 ? -1 : tree->level[above], low = below < 0 ? -1 : tree->level[below];
    int level = high > low ? high : low;
    if (level == q.level)
        return high == level ? side_value(m, u, above, 2 * axis)
                             : side_value(m, u, below, 2 * axis + 1);
    double sum = 0;
    if (level > q.level) {
        for (int k = 0; k < 1 << m->dim; k++) {
            if (k >> axis & 1) continue;
            cube part = {{at[0], at[1], at[2]}, q.level + 1};
            for (int a = 0; a < m->dim; a++) part.at[a] += k >> a & 1 ? s / 2 : 0;
            sum += face_value(m, u, axis, part, known);
        }
        return sum / (1 << (m->dim - 1));
    }
    int32_t first[3] = {0};
    double share[3] = {0};
    for (int a = 0; a < m->dim; a++) {
        int32_t place = 2 * (at[a] / s) + (a == axis ? 0 : 1 - 2);
        first[a] = below_in(place, 4, &share[a]);
    }
    for (int k = 0; k < 1 << m->dim; k++) {
        cube from = {{0, 0, 0}, q.level - 1};
        double w = 1;
        for (int a = 0; a < m->dim; a++) {
            from.at[a] = 2 * s * (first[a] + (k >> a & 1));
            w *= k >> a & 1 ? share[a] : 1 - share[a];
        }
        if (w > 0) sum += w * face_value(m, u, axis, from, known);
    }
    return sum;
}

/* ---- a point in a leaf ---- */

/* Where x lies in a cube: 0 .. 1 along each axis. */
static inline void place_in(const un_octree *tree, const cube *q, un_vec3 x, double f[3])
{
    double scale = 1 / un_octree_size(tree, q->level), at[3] = {x.x, x.y, x.z};
    for (int a = 0; a < 3; a++) f[a] = un_clamp((at[a] - tree->h * q->at[a]) * scale, 0, 1);
    if (tree->dim == 2) f[2] = 0;
}

/* The cube of the next larger level around a leaf's. */
static inline cube parent_of(const un_octree *tree, const cube *q)
{
    int32_t s = cube_size(tree, q->level);
    cube p = {{0, 0, 0}, q->level - 1};
    for (int a = 0; a < 3; a++) p.at[a] = q->at[a] & ~(2 * s - 1);
    return p;
}

static inline double coarse_share(const un_leaves *m, int32_t c, const double f[3])
{
    uint8_t mask = m->coarse[c];
    double w = 0;
    for (int k = 0; k < 1 << m->dim; k++)
        if (mask >> k & 1)
            w += (k & 1 ? f[0] : 1 - f[0]) * (k >> 1 & 1 ? f[1] : 1 - f[1]) *
                 (m->dim == 2  ? 1
                  : k >> 2 & 1 ? f[2]
                               : 1 - f[2]);
    return w;
}

/* The multilinear value on the lattice of the cube's level; slope: NULL, or its gradient. */
static double centres_at(const un_leaves *m, const void *field, take_value *take, const cube *q,
                         int32_t leaf, const double f[3], double slope[3])
{
    const un_octree *tree = m->tree;
    int32_t s = cube_size(tree, q->level);
    int off[3] = {0};
    double g[3] = {0}, v[8], sum = 0;
    for (int a = 0; a < m->dim; a++) {
        off[a] = f[a] < 0.5 ? -1 : 0;
        g[a] = f[a] - 0.5 - off[a];
    }
    for (int k = 0; k < 1 << m->dim; k++) {
        int d[3] = {off[0] + (k & 1), off[1] + (k >> 1 & 1),
                    m->dim == 2 ? 0 : off[2] + (k >> 2 & 1)};
        int32_t near =
            leaf < 0 ? -1 : un_leaf_near(m, leaf)[m->near_count / 2 + d[0] + 3 * d[1] + 9 * d[2]];
        if (near < 0 && leaf >= 0 && m->parted && m->thin[leaf] & 2) near = leaf;
        cube there = {{q->at[0] + s * d[0], q->at[1] + s * d[1], q->at[2] + s * d[2]}, q->level};
        v[k] = near >= 0 && tree->level[near] == q->level ? take(field, near)
                                                          : centre_value(m, field, take, there);
        double w = 1;
        for (int a = 0; a < m->dim; a++) w *= k >> a & 1 ? g[a] : 1 - g[a];
        sum += w * v[k];
    }
    if (!slope) return sum;
    for (int a = 0; a < m->dim; a++) {
        slope[a] = 0;
        for (int k = 0; k < 1 << m->dim; k++) {
            double w = k >> a & 1 ? 1 : -1;
            for (int b = 0; b < m->dim; b++)
                if (b != a) w *= k >> b & 1 ? g[b] : 1 - g[b];
            slope[a] += w * v[k];
        }
        slope[a] /= un_octree_size(tree, q->level);
    }
    return sum;
}

static double sample_centres(const un_leaves *m, const void *field, take_value *take, int32_t c,
                             un_vec3 x)
{
    cube q = cube_of(m->tree, c);
    double f[3];
    place_in(m->tree, &q, x, f);
    double own = centres_at(m, field, take, &q, c, f, NULL);
    if (!m->coarse[c] || (m->parted && m->thin[c] & 2)) return own;
    double w = coarse_share(m, c, f);
    cube p = parent_of(m->tree, &q);
    place_in(m->tree, &p, x, f);
    return own + w * (centres_at(m, field, take, &p, -1, f, NULL) - own);
}

double un_leaves_sample(const un_leaves *m, const float *field, int32_t c, un_vec3 x)
{
    return sample_centres(m, field, take_float, c, x);
}

double un_leaves_sample_double(const un_leaves *m, const double *field, int32_t c, un_vec3 x)
{
    return sample_centres(m, field, take_double, c, x);
}

un_vec3 un_leaves_slope(const un_leaves *m, const float *field, int32_t c, un_vec3 x)
{
    cube q = cube_of(m->tree, c);
    double f[3], slope[3] = {0};
    place_in(m->tree, &q, x, f);
    centres_at(m, field, take_float, &q, c, f, slope);
    return un_v3(slope[0], slope[1], slope[2]);
}

/* ---- flow ---- */

void un_leaves_flow_free(un_context *ctx, un_leaves_flow *flow)
{
    un_free(ctx, flow->patch);
    un_free(ctx, flow->value);
    *flow = (un_leaves_flow){0};
}

/* Values of a patch: for each axis the 2 x 3 x 3 faces of the leaf's level, lower ones first, the
 * other two axes ascending; then for each axis the 2 x 2 x 2 of the next larger level around it. */
enum { OWN_AXIS = 18, PARENT = 54, PARENT_AXIS = 8 };

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

static void fill_patch(const un_leaves *m, const double *u, int32_t c, double *value)
{
    static const int step[3] = {1, 3, 9};
    const un_octree *tree = m->tree;
    const int32_t *near = un_leaf_near(m, c);
    cube q = cube_of(tree, c), p = parent_of(tree, &q);
    int32_t s = cube_size(tree, q.level);
    int depth = m->dim == 2 ? 1 : 3;
    memo known;
    memo_begin(&known, p, m->dim);
    for (int axis = 0; axis < m->dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        for (int k = 0; k < 6 * depth; k++) {
            cube at = q;
            int d[2] = {k / 2 % 3 - 1, m->dim == 3 ? k / 6 - 1 : 0};
            if (m->parted && m->thin[c] & 2) step_in_sight(m, c, t1, t2, d);
            int32_t there = near[m->near_count / 2 + step[t1] * d[0] + step[t2] * d[1]];
            if (there >= 0 && tree->level[there] == q.level) {
                value[axis * OWN_AXIS + k] = side_value(m, u, there, 2 * axis + (k & 1));
                continue;
            }
            at.at[axis] += s * (k & 1);
            at.at[t1] += s * d[0];
            if (m->dim == 3) at.at[t2] += s * d[1];
            value[axis * OWN_AXIS + k] = face_value(m, u, axis, at, &known);
        }
        for (int k = 0; m->coarse[c] && k < (m->dim == 2 ? 4 : 8); k++) {
            cube at = p;
            at.at[axis] += 2 * s * (k & 1);
            /* on the side of the parent that the leaf lies on */
            at.at[t1] += 2 * s * ((k >> 1 & 1) - (q.at[t1] == p.at[t1]));
            if (m->dim == 3) at.at[t2] += 2 * s * ((k >> 2 & 1) - (q.at[t2] == p.at[t2]));
            value[PARENT + axis * PARENT_AXIS + k] = face_value(m, u, axis, at, &known);
        }
    }
}

typedef struct patch_args {
    un_leaves_flow *flow;
    const int32_t *leaf;
} patch_args;

static void fill_patches(void *arg, int64_t begin, int64_t end)
{
    const patch_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        fill_patch(a->flow->leaves, a->flow->u, a->leaf[n], a->flow->value[n]);
}

un_status un_leaves_flow_build(un_leaves_flow *flow, const un_leaves *m, const double *u,
                               const uint8_t *wanted)
{
    un_context *ctx = m->ctx;
    flow->leaves = m;
    flow->u = u;
    UN_TRY(un_array_need(ctx, (void **)&flow->patch, &flow->capacity[0], (size_t)m->count + 1,
                         sizeof *flow->patch));
    int32_t count = 0, *leaf;
    for (int32_t c = 0; c < m->count; c++)
        flow->patch[c] = !m->even[c] && (!wanted || wanted[c]) ? count++ : -1;
    UN_TRY(un_array_need(ctx, (void **)&flow->value, &flow->capacity[1], (size_t)count + 1,
                         sizeof *flow->value));
    UN_ALLOC(ctx, leaf, count + 1);
    for (int32_t c = 0; c < m->count; c++)
        if (flow->patch && flow->patch[c] >= 0) leaf[flow->patch[c]] = c;
    patch_args a = {flow, leaf};
    un_parallel_for(ctx, count, 128, fill_patches, &a);
    un_free(ctx, leaf);
    return UN_OK;
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

static double patch_at(const double *value, int axis, const double f[3], const int off[3],
                       const double g[3], int dim)
{
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    const double *v = value + axis * OWN_AXIS;
    double sum = 0;
    for (int k = 0; k < 1 << (dim - 1); k++) {
        int n = 2 * (1 + off[t1] + (k & 1));
        double w = k & 1 ? g[t1] : 1 - g[t1];
        if (dim == 3) {
            n += 6 * (1 + off[t2] + (k >> 1));
            w *= k >> 1 ? g[t2] : 1 - g[t2];
        }
        sum += w * (v[n] + f[axis] * (v[n + 1] - v[n]));
    }
    return sum;
}

static double parent_at(const double *value, int axis, const double f[3], const double g[3],
                        int dim)
{
    int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
    const double *v = value + PARENT + axis * PARENT_AXIS;
    double sum = 0;
    for (int k = 0; k < 1 << (dim - 1); k++) {
        double w = k & 1 ? g[t1] : 1 - g[t1];
        if (dim == 3) w *= k >> 1 ? g[t2] : 1 - g[t2];
        sum += w * (v[2 * k] + f[axis] * (v[2 * k + 1] - v[2 * k]));
    }
    return sum;
}

static inline void centre_place(const double f[3], int off[3], double g[3], int dim)
{
    for (int a = 0; a < dim; a++) {
        off[a] = f[a] < 0.5 ? -1 : 0;
        g[a] = f[a] - 0.5 - off[a];
    }
}

UN_KERNEL un_vec3 flow_at_in(const un_leaves_flow *flow, int32_t c, un_vec3 x, int dim)
{
    const un_leaves *m = flow->leaves;
    cube q = cube_of(m->tree, c);
    double f[3], g[3], out[3] = {0};
    int off[3];
    place_in(m->tree, &q, x, f);
    centre_place(f, off, g, dim);
    if (m->even[c]) {
        const int32_t *near = un_leaf_near(m, c);
        for (int axis = 0; axis < dim; axis++)
            out[axis] = even_at(m, flow->u, near, axis, f, off, g, dim);
        return un_v3(out[0], out[1], out[2]);
    }
    double own[UN_PATCH];
    const double *value = own;
    if (flow->patch && flow->patch[c] >= 0)
        value = flow->value[flow->patch[c]];
    else
        fill_patch(m, flow->u, c, own);
    for (int axis = 0; axis < dim; axis++) out[axis] = patch_at(value, axis, f, off, g, dim);
    if (m->coarse[c] && !(m->parted && m->thin[c] & 2)) {
        double w = coarse_share(m, c, f);
        cube p = parent_of(m->tree, &q);
        place_in(m->tree, &p, x, f);
        for (int a = 0; a < dim; a++) g[a] = f[a] - (q.at[a] == p.at[a] ? -0.5 : 0.5);
        for (int axis = 0; axis < dim; axis++)
            out[axis] += w * (parent_at(value, axis, f, g, dim) - out[axis]);
    }
    return un_v3(out[0], out[1], out[2]);
}

un_vec3 un_leaves_flow_at(const un_leaves_flow *flow, int32_t c, un_vec3 x)
{
    return flow->leaves->dim == 2 ? flow_at_in(flow, c, x, 2) : flow_at_in(flow, c, x, 3);
}

un_vec3 un_leaves_velocity_at(const un_leaves *leaves, const double *u, un_vec3 x)
{
    un_leaves_flow flow = {.leaves = leaves, .u = u};
    return un_leaves_flow_at(&flow, un_octree_find(leaves->tree, x), x);
}
