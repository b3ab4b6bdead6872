/* Fields at the centres of leaves, between them.
 *
 * See leaves.h. On the lattice of level l, a centre that is not the mesh's own takes
 *
 *     the mean over the leaves in it,                          where the mesh is finer,
 *     the multilinear value of the next coarser lattice,       where it is coarser:
 *
 * both are exact for linear fields. Values beyond the brick are those at its boundary. Between the
 * lattices of two levels a point takes the same shares as velocities do (leaves_flow.c). */
#include "mesh/leaves_ring.h"

void un_centre_finder_init(un_centre_finder *s, const un_leaves *m, const float *field,
                           const double *doubles)
{
    s->m = m;
    s->field = field;
    s->doubles = doubles;
    for (int l = 0; l <= m->tree->level_max; l++) s->ring[l].at.key = UN_RING_NONE;
}

static inline double take(const un_centre_finder *s, int32_t leaf)
{
    return s->field ? s->field[leaf] : s->doubles[leaf];
}

/* The mean over the leaves in a cube, which follow each other. */
static double take_divided(const un_centre_finder *s, int level, int32_t leaf)
{
    const un_octree *tree = s->m->tree;
    int shift = un_ring_shift(tree, level);
    uint64_t key = tree->key[leaf] >> shift;
    double sum = 0, total = 0;
    for (; leaf < s->m->count && tree->key[leaf] >> shift == key; leaf++) {
        double volume = un_leaf_volume(s->m, leaf);
        sum += volume * take(s, leaf);
        total += volume;
    }
    return sum / total;
}

static un_centre_ring *ring_of(un_centre_finder *s, int level, uint64_t key, int32_t leaf)
{
    un_centre_ring *r = &s->ring[level];
    if (r->at.key == key) return r;
    un_ring_find(&r->at, s->m, key, level, leaf);
    r->have = 0;
    return r;
}

static double find_centre(un_centre_finder *s, un_centre_ring *r, int level, const int d[3]);

/* The cube that lies d beside the ring's middle. */
static inline double take_centre(un_centre_finder *s, un_centre_ring *r, int level, const int d[3])
{
    int n = UN_RING_MIDDLE + d[0] + 3 * d[1] + 9 * d[2];
    return r->have >> n & 1 ? r->value[n] : find_centre(s, r, level, d);
}

/* Between the centres around the parent of the cube with this key. */
static double take_between(un_centre_finder *s, uint64_t key, int level, const int d[3])
{
    const un_octree *tree = s->m->tree;
    int child = un_ring_child(tree, key, level), low[3] = {0}, dim = s->m->dim;
    un_centre_ring *parent = ring_of(s, level - 1, un_ring_parent(tree, key, level), -1);
    double share[3], w[3][2], sum = 0;
    for (int a = 0; a < dim; a++) {
        low[a] = un_ring_between(child >> a & 1, d[a], &share[a]);
        w[a][0] = 1 - share[a];
        w[a][1] = share[a];
    }
    for (int k = 0; k < 1 << dim; k++) {
        int x = k & 1, y = k >> 1 & 1, z = k >> 2;
        int at[3] = {low[0] + x, low[1] + y, low[2] + z};
        double weight = w[0][x] * w[1][y];
        if (dim == 3) weight *= w[2][z];
        sum += weight * take_centre(s, parent, level - 1, at);
    }
    return sum;
}

static double find_centre(un_centre_finder *s, un_centre_ring *r, int level, const int d[3])
{
    int n = UN_RING_MIDDLE + d[0] + 3 * d[1] + 9 * d[2], in[3], at = UN_RING_MIDDLE;
    r->have |= 1u << n;
    for (int a = 0; a < 3; a++) {
        in[a] = r->at.in[a][1 + d[a]] ? d[a] : 0; /* beyond the brick: as at its boundary */
        at += un_ring_step[a] * in[a];
    }
    int32_t leaf = un_ring_near(&r->at, s->m->tree, at);
    int there = s->m->tree->level[leaf];
    r->value[n] = there == level  ? take(s, leaf)
                  : there > level ? take_divided(s, level, leaf)
                                  : take_between(s, r->at.key, level, in);
    return r->value[n];
}

double un_leaves_lattice_value(const un_leaves *m, const float *field, int level,
                               const int32_t at[3])
{
    const un_octree *tree = m->tree;
    int32_t size = 1 << (tree->level_max - level), q[3] = {0};
    for (int a = 0; a < m->dim; a++) q[a] = un_clampi(at[a], 0, tree->n[a] - size);
    uint64_t key = un_morton((uint32_t)q[0], (uint32_t)q[1], (uint32_t)q[2]);
    int32_t leaf = un_octree_find_key(tree, key);
    if (tree->level[leaf] == level) return field[leaf];
    un_centre_finder s;
    un_centre_finder_init(&s, m, field, NULL);
    return tree->level[leaf] > level ? take_divided(&s, level, leaf)
                                     : take_between(&s, key, level, (int[3]){0});
}

/* ---- a point in a leaf ---- */

/* Where a point lies among the centres: the lower ones beside the middle, and the share of the
 * upper ones. */
static void place_among(const un_leaves *m, const double f[3], int off[3], double g[3])
{
    off[2] = 0;
    for (int a = 0; a < (m->dim == 2 ? 2 : 3); a++) {
        off[a] = f[a] < 0.5 ? -1 : 0;
        g[a] = f[a] - 0.5 - off[a];
    }
}

static inline double mix(double a, double b, double share)
{
    return a + share * (b - a);
}

/* The multilinear value; slope: NULL, or its gradient. */
UN_KERNEL double between_in(const double v[8], const double g[3], double h, un_vec3 *slope, int dim)
{
    double x[4], y[2];
    for (int k = 0; k < 1 << (dim - 1); k++) x[k] = mix(v[2 * k], v[2 * k + 1], g[0]);
    for (int k = 0; k < 1 << (dim - 2); k++) y[k] = mix(x[2 * k], x[2 * k + 1], g[1]);
    if (slope && dim == 2)
        *slope = un_v3(mix(v[1] - v[0], v[3] - v[2], g[1]) / h, (x[1] - x[0]) / h, 0);
    else if (slope)
        *slope = un_v3(
            mix(mix(v[1] - v[0], v[3] - v[2], g[1]), mix(v[5] - v[4], v[7] - v[6], g[1]), g[2]) / h,
            mix(x[1] - x[0], x[3] - x[2], g[2]) / h, (y[1] - y[0]) / h);
    return dim == 2 ? y[0] : mix(y[0], y[1], g[2]);
}

static double between(const un_leaves *m, const double v[8], const double g[3], double h,
                      un_vec3 *slope)
{
    return m->dim == 2 ? between_in(v, g, h, slope, 2) : between_in(v, g, h, slope, 3);
}

/* Values in the ring of a leaf or its parent, at the corners of the point's cube of centres. */
static void take_corners(un_centre_finder *s, un_centre_ring *r, int level, const int off[3],
                         double v[8])
{
    for (int k = 0; k < 1 << s->m->dim; k++)
        v[k] = take_centre(s, r, level,
                           (int[3]){off[0] + (k & 1), off[1] + (k >> 1 & 1),
                                    s->m->dim == 2 ? 0 : off[2] + (k >> 2)});
}

/* Values on the leaf's own lattice: those of leaves that it does not see are its own. */
static void take_own(un_centre_finder *s, int32_t c, const int off[3], double v[8])
{
    const un_leaves *m = s->m;
    const un_octree *tree = m->tree;
    bool parted = m->parted && m->thin[c] & 2;
    if (!m->even[c] && !parted) {
        take_corners(s, ring_of(s, tree->level[c], tree->key[c], c), tree->level[c], off, v);
        return;
    }
    const int32_t *near = un_leaf_near(m, c);
    for (int k = 0; k < 1 << m->dim; k++) {
        int d[3] = {off[0] + (k & 1), off[1] + (k >> 1 & 1), m->dim == 2 ? 0 : off[2] + (k >> 2)};
        int32_t there = near[m->near_count / 2 + d[0] + 3 * d[1] + 9 * d[2]];
        if (there < 0) there = c;
        v[k] =
            tree->level[there] == tree->level[c]
                ? take(s, there)
                : take_centre(s, ring_of(s, tree->level[c], tree->key[c], -1), tree->level[c], d);
    }
}

/* slope: NULL, or that of the leaf's own lattice. */
static double sample(un_centre_finder *s, int32_t c, un_vec3 x, un_vec3 *slope)
{
    const un_leaves *m = s->m;
    const un_octree *tree = m->tree;
    double f[3] = {0}, in[3] = {0}, g[3] = {0}, v[8];
    int off[3], level = tree->level[c];
    un_leaf_place(m, c, x, f);
    place_among(m, f, off, g);
    take_own(s, c, off, v);
    double own = between(m, v, g, un_leaf_size(m, c), slope);
    if (!m->coarse[c] || (m->parted && m->thin[c] & 2)) return own;
    double w = un_leaf_coarse_share(m, c, f);
    un_leaf_place_in_parent(m, un_ring_child(tree, tree->key[c], level), f, in);
    place_among(m, in, off, g);
    take_corners(s, ring_of(s, level - 1, un_ring_parent(tree, tree->key[c], level), -1), level - 1,
                 off, v);
    return own + w * (between(m, v, g, 1, NULL) - own);
}

double un_centre_finder_at(un_centre_finder *s, int32_t c, un_vec3 x)
{
    return sample(s, c, x, NULL);
}

double un_leaves_sample(const un_leaves *m, const float *field, int32_t c, un_vec3 x)
{
    un_centre_finder s;
    un_centre_finder_init(&s, m, field, NULL);
    return sample(&s, c, x, NULL);
}

double un_leaves_sample_double(const un_leaves *m, const double *field, int32_t c, un_vec3 x)
{
    un_centre_finder s;
    un_centre_finder_init(&s, m, NULL, field);
    return sample(&s, c, x, NULL);
}

un_vec3 un_leaves_slope(const un_leaves *m, const float *field, int32_t c, un_vec3 x)
{
    un_centre_finder s;
    un_vec3 slope;
    double f[3] = {0}, g[3] = {0}, v[8];
    int off[3];
    un_centre_finder_init(&s, m, field, NULL);
    un_leaf_place(m, c, x, f);
    place_among(m, f, off, g);
    take_own(&s, c, off, v);
    between(m, v, g, un_leaf_size(m, c), &slope);
    return slope;
}

/* ---- many points ---- */

/* What points in one leaf need: values on its own lattice, and of the parent's the 2 x 2 x 2 around
 * the leaf. The leaf's siblings share its lattice: 4 x 4 x 4 values around all of them. */
typedef struct centre_patch {
    int32_t leaf;
    uint64_t parent; /* key; UN_RING_NONE if nothing is shared */
    int level, child;
    bool coarse;
    uint64_t have; /* by bit: own values that are found */
    float own[64], around[8];
} centre_patch;

/* Of the 64: those around child 0; in 2D the lowest layer. */
#define AROUND_FIRST (UINT64_C(0x777) | UINT64_C(0x777) << 16 | UINT64_C(0x777) << 32)
static inline uint64_t around_child(int child, int dim)
{
    uint64_t first = dim == 2 ? UINT64_C(0x777) : AROUND_FIRST;
    return first << ((child & 1) + 4 * (child >> 1 & 1) + 16 * (child >> 2 & 1));
}

/* The value of the cube that lies d beside leaf c. */
static double take_beside(un_centre_finder *s, int32_t c, const int32_t *near, bool blind,
                          const int d[3])
{
    const un_leaves *m = s->m;
    const un_octree *tree = m->tree;
    int level = tree->level[c], in[3] = {0}, middle = m->near_count / 2;
    int32_t there = near[middle + d[0] + 3 * d[1] + 9 * d[2]];
    if (there >= 0 && tree->level[there] == level) return take(s, there);
    if (blind) /* as take_own */
        return there < 0 ? take(s, c)
                         : take_centre(s, ring_of(s, level, tree->key[c], -1), level, d);
    if (there >= 0 && tree->level[there] > level) return take_divided(s, level, there);
    for (int a = 0, n = middle; a < m->dim; a++) /* beyond the brick: as at its boundary */
        in[a] = near[n + un_ring_step[a] * d[a]] < 0 ? 0 : d[a];
    there = near[middle + in[0] + 3 * in[1] + 9 * in[2]];
    return tree->level[there] == level  ? take(s, there)
           : tree->level[there] > level ? take_divided(s, level, there)
                                        : take_between(s, tree->key[c], level, in);
}

static void fill_patch(un_centre_finder *s, int32_t c, centre_patch *t)
{
    const un_leaves *m = s->m;
    const un_octree *tree = m->tree;
    int level = tree->level[c], low = m->dim == 2 ? 0 : -1;
    bool blind = m->parted && m->thin[c] & 2;
    uint64_t parent = un_ring_parent(tree, tree->key[c], level);
    const int32_t *near = un_leaf_near(m, c);
    if (blind || t->parent != parent || t->level != level) t->have = 0;
    t->leaf = c;
    t->parent = blind ? UN_RING_NONE : parent;
    t->level = level;
    t->child = un_ring_child(tree, tree->key[c], level);
    t->coarse = m->coarse[c] && !blind;
    uint64_t need = around_child(t->child, m->dim) & ~t->have;
    t->have |= need;
    if (m->even[c] && m->dim == 3 && !blind) { /* all around have its size */
        float *own = t->own + (t->child & 1) + 4 * (t->child >> 1 & 1) + 16 * (t->child >> 2);
        for (int n = 0; n < 27; n++)
            own[n % 3 + 4 * (n / 3 % 3) + 16 * (n / 9)] = (float)take(s, near[n]);
        need = 0;
    }
    for (; need; need &= need - 1) {
        int n = __builtin_ctzll(need);
        int d[3] = {(n & 3) - 1 - (t->child & 1), (n >> 2 & 3) - 1 - (t->child >> 1 & 1),
                    m->dim == 2 ? 0 : (n >> 4) - 1 - (t->child >> 2)};
        t->own[n] = (float)take_beside(s, c, near, blind, d);
    }
    if (!t->coarse) return;
    int off[3] = {t->child & 1 ? 0 : -1, t->child & 2 ? 0 : -1, t->child & 4 ? 0 : low};
    double v[8];
    take_corners(s, ring_of(s, level - 1, parent, -1), level - 1, off, v);
    for (int k = 0; k < 1 << m->dim; k++) t->around[k] = (float)v[k];
}

/* Eight points of one leaf. Along each axis a point lies between two of three centres: weights of
 * all three, one of them 0, and what they change by towards the upper one. */
typedef struct run_place {
    un_lanes8 f[3]; /* 0 .. 1 in the leaf */
    un_lanes8 w[3][3], dw[3][3];
} run_place;

UN_KERNEL void place_run(run_place *r, const un_leaves *m, int32_t c, const un_eight *x, int dim)
{
    double scale = m->tree->inverse_edge[m->tree->level[c]];
    double centre[3] = {m->x[c].x, m->x[c].y, m->x[c].z};
    for (int a = 0; a < dim; a++) {
        un_doubles8 way = (un_doubles8_load(x->of[a], 8) - centre[a]) * scale + 0.5;
        un_lanes8 f = un_lanes8_positive(un_doubles8_to_floats(way));
        f = un_lanes8_min(f, un_lanes8_all(1));
        r->f[a] = f;
        r->w[a][0] = un_lanes8_positive(0.5f - f);
        r->w[a][2] = un_lanes8_positive(f - 0.5f);
        r->w[a][1] = 1 - r->w[a][0] - r->w[a][2];
        un_lanes8 low = un_lanes8_where((un_bits8)(f < 0.5f), un_lanes8_all(-1));
        r->dw[a][0] = low;
        r->dw[a][1] = -1 - 2 * low;
        r->dw[a][2] = 1 + low;
    }
}

/* Between values at eight corners. */
UN_KERNEL un_lanes8 between_corners(const float v[8], const un_lanes8 f[3], int dim)
{
    un_lanes8 x[4];
    for (int k = 0; k < 1 << (dim - 1); k++) x[k] = v[2 * k] + (v[2 * k + 1] - v[2 * k]) * f[0];
    for (int k = 0; k < 1 << (dim - 2); k++) x[k] = x[2 * k] + (x[2 * k + 1] - x[2 * k]) * f[1];
    if (dim == 3) x[0] += (x[1] - x[0]) * f[2];
    return x[0];
}

UN_KERNEL un_lanes8 weigh(const un_lanes8 v[3], const un_lanes8 w[3])
{
    return v[0] * w[0] + v[1] * w[1] + v[2] * w[2];
}

/* The value on the leaf's own lattice; slope: NULL, or by axis per edge. */
UN_KERNEL un_lanes8 own_run(const centre_patch *t, const run_place *r, un_lanes8 slope[3], int dim)
{
    const float *first = t->own + (t->child & 1) + 4 * (t->child >> 1 & 1) + 16 * (t->child >> 2);
    un_lanes8 z[3], zx[3], zy[3];
    for (int k = 0; k < (dim == 2 ? 1 : 3); k++) {
        un_lanes8 y[3], yx[3];
        for (int j = 0; j < 3; j++) {
            const float *v = first + 4 * j + 16 * k;
            y[j] = v[0] * r->w[0][0] + v[1] * r->w[0][1] + v[2] * r->w[0][2];
            if (slope) yx[j] = v[0] * r->dw[0][0] + v[1] * r->dw[0][1] + v[2] * r->dw[0][2];
        }
        z[k] = weigh(y, r->w[1]);
        if (!slope) continue;
        zx[k] = weigh(yx, r->w[1]);
        zy[k] = weigh(y, r->dw[1]);
    }
    if (slope) {
        slope[0] = dim == 2 ? zx[0] : weigh(zx, r->w[2]);
        slope[1] = dim == 2 ? zy[0] : weigh(zy, r->w[2]);
        if (dim == 3) slope[2] = weigh(z, r->dw[2]);
    }
    if (dim == 3) z[0] = weigh(z, r->w[2]);
    return z[0];
}

/* Points first .. end - 1, at most eight, in the patch's leaf. */
UN_KERNEL void sample_run(const un_leaves *m, const centre_patch *t, int64_t first, int64_t end,
                          const double *const x[3], double *value, un_vec3 *slope, int dim)
{
    un_eight at = {0};
    run_place r;
    un_lanes8 slopes[3] = {{0}};
    for (int a = 0; a < dim; a++)
        memcpy(at.of[a], x[a] + first, (size_t)(end - first) * sizeof **x);
    place_run(&r, m, t->leaf, &at, dim);
    un_lanes8 v = slope ? own_run(t, &r, slopes, dim) : own_run(t, &r, NULL, dim);
    if (t->coarse) {
        float corner[8];
        un_lanes8 g[3];
        for (int k = 0; k < 1 << dim; k++) corner[k] = m->coarse[t->leaf] >> k & 1;
        un_lanes8 w = between_corners(corner, r.f, dim);
        for (int a = 0; a < dim; a++) g[a] = 0.5f * r.f[a] + (t->child >> a & 1 ? 0 : 0.5f);
        v += w * (between_corners(t->around, g, dim) - v);
    }
    double inverse = m->tree->inverse_edge[m->tree->level[t->leaf]];
    for (int64_t q = first; q < end; q++) {
        int64_t n = q - first;
        value[q] = v[n];
        if (slope) slope[q] = un_scale(un_v3(slopes[0][n], slopes[1][n], slopes[2][n]), inverse);
    }
}

/* The value at the leaf's centre and slopes from the leaves beside it, no longer than 1. */
typedef struct centre_plane {
    un_vec3 at, slope;
    double value;
} centre_plane;

static centre_plane plane_at(const un_leaves *m, const float *field, int32_t c)
{
    const int32_t *near = un_leaf_near(m, c) + m->near_count / 2;
    double slope[3] = {0};
    for (int a = 0; a < m->dim; a++) {
        int32_t below = near[-un_ring_step[a]], above = near[un_ring_step[a]];
        if (below < 0) below = c;
        if (above < 0) above = c;
        if (below == above) continue;
        slope[a] = (double)(field[above] - field[below]) /
                   (un_vec3_at(m->x[above], a) - un_vec3_at(m->x[below], a));
    }
    un_vec3 v = un_v3(slope[0], slope[1], slope[2]);
    return (centre_plane){m->x[c], un_scale(v, 1 / fmax(1, un_length(v))), field[c]};
}

void un_leaves_sample_points(const un_leaves *m, const float *field, double far, int64_t count,
                             const int32_t *leaf, const double *const x[3], double *value,
                             un_vec3 *slope)
{
    un_centre_finder s;
    centre_patch t = {.leaf = -1, .parent = UN_RING_NONE};
    un_centre_finder_init(&s, m, field, NULL);
    for (int64_t q = 0, end; q < count; q = end) {
        int32_t c = leaf[q];
        for (end = q + 1; end < count && leaf[end] == c;) end++;
        if (fabs((double)field[c]) > far * un_leaf_size(m, c)) {
            centre_plane p = plane_at(m, field, c);
            for (; q < end; q++) {
                un_vec3 way = {x[0][q] - p.at.x, x[1][q] - p.at.y, x[2][q] - p.at.z};
                value[q] = p.value + un_dot(p.slope, way);
                if (slope) slope[q] = p.slope;
            }
            continue;
        }
        fill_patch(&s, c, &t);
        for (; q < end; q += 8) {
            int64_t last = un_min64(q + 8, end);
            UN_BY_DIM(m->dim, sample_run(m, &t, q, last, x, value, slope, dim));
        }
    }
}
