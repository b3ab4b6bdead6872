/* Velocities between particles and the faces of an octree's leaves, and the particles' volume at
 * leaves.
 *
 *     u_f = sum_p V_p w(x_p - x_f) v_p / sum_p V_p w(x_p - x_f)
 *     c   = sum_p V_p W(x_p - x_c) / h^dim
 *
 * w is the product of hat functions as wide as the face's leaf, the smaller of its two: in a leaf
 * among its like this is the transfer of method `uniform`. Each face gathers from the particles in
 * the cubes around its leaf, which lie one after the other in memory, so that no two threads write
 * to one place. [Hong09] takes one particle's radius instead, which misses faces between large
 * particles. The same particles give c, the colour function before walls are seen to
 * (surface/leaf_colour.c): W is the product of quadratic splines three edges h wide. */
#include "base/lanes.h"
#include "transfer/leaves.h"

typedef struct gather_args {
    double *u;
    uint8_t *known;
    float *colour;
    float (*centre)[4];
    un_leaf_givers from;
    int64_t count; /* of particles, of all ranks */
    double fine;
    const un_leaves *m;
    const int32_t *begin; /* by leaf: its first of those */
    const un_particles *particles;
} gather_args;

/* Places are whole numbers up to this. */
#define FINE 0x40000000

/* Weights and weighted velocities at the faces of one leaf, by side; sixteen particles are added at
 * once, in single precision, from their places relative to the leaf's centre. */
typedef struct face_sums {
    un_lanes16 w[6], wv[6];
    un_lanes16 volume; /* at the centre */
} face_sums;

static inline un_lanes16 hat(un_lanes16 s)
{
    return un_lanes16_positive(1 - un_lanes16_abs(s));
}

static inline un_lanes16 spline(un_lanes16 s)
{
    un_lanes16 wide = un_lanes16_positive(1.5f - un_lanes16_abs(s));
    un_lanes16 narrow = un_lanes16_positive(0.5f - un_lanes16_abs(s));
    return 0.5f * wide * wide - 1.5f * narrow * narrow;
}

/* n: 16, or 1 for the first alone. */
static inline un_lanes16 load_some(const float *v, int n)
{
    un_lanes16 out = {v[0]};
    return n == 16 ? un_lanes16_load(v) : out;
}

/* Those of the particles at .. at + n - 1 that are first .. end - 1; n is 1 or 16. upper: upper
 * faces too. */
UN_KERNEL void add_some(const un_leaf_givers *a, int64_t at, int n, int64_t first, int64_t end,
                        const int32_t centre[3], float inverse, bool upper, face_sums *sums,
                        int dim)
{
    un_lanes16 s[3], c[3];
    un_lanes16 volume = load_some(a->volume + at, n);
    if (at < first || at + n > end) volume = un_lanes16_within(volume, at, first, end);
    for (int axis = 0; axis < dim; axis++) {
        un_bits16 x = {a->x[axis][at]};
        if (n == 16) memcpy(&x, a->x[axis] + at, sizeof x);
        s[axis] = __builtin_convertvector(x - centre[axis], un_lanes16) * inverse;
        c[axis] = hat(s[axis]);
    }
    un_lanes16 smooth = volume;
    for (int axis = 0; axis < dim; axis++) smooth *= spline(s[axis]);
    sums->volume += smooth;
    for (int axis = 0; axis < dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        un_lanes16 across = volume * c[t1];
        if (dim == 3) across *= c[t2];
        un_lanes16 v = load_some(a->v[axis] + at, n);
        un_lanes16 w = across * hat(s[axis] + 0.5f);
        sums->w[2 * axis] += w;
        sums->wv[2 * axis] += w * v;
        if (!upper) continue;
        w = across * hat(s[axis] - 0.5f);
        sums->w[2 * axis + 1] += w;
        sums->wv[2 * axis + 1] += w * v;
    }
}

/* Particles by number; those of ranks lie elsewhere in the arrays. */
UN_KERNEL void add_particles(const gather_args *a, int64_t first, int64_t end,
                             const int32_t centre[3], float inverse, bool upper, face_sums *sums,
                             int dim)
{
    int64_t last = a->count - 16; /* nothing beyond the arrays is read */
    un_leaf_givers from = a->from;
    if (from.stretch) un_leaf_givers_shift(&from, first);
    for (int64_t q = first; last >= 0 && q < end; q += 16)
        add_some(&from, q < last ? q : last, 16, q, end, centre, inverse, upper, sums, dim);
    for (int64_t q = first; last < 0 && q < end; q++)
        add_some(&from, q, 1, q, end, centre, inverse, upper, sums, dim);
}

/* Where the particles are that the faces of leaf c are the mean of, on these sides of it. */
static void find_centres(const gather_args *a, int32_t c, const int *sides, int count,
                         const int32_t (*range)[2], int ranges, const int32_t centre[3],
                         double inverse)
{
    int dim = a->m->dim;
    double sums[6][4] = {{0}};
    for (int n = 0; n < ranges; n++) {
        un_leaf_givers from = a->from;
        if (from.stretch) un_leaf_givers_shift(&from, range[n][0]);
        for (int64_t q = range[n][0]; q < range[n][1]; q++) {
            double s[3] = {0}, w[3] = {1, 1, 1};
            for (int axis = 0; axis < dim; axis++) {
                s[axis] = (from.x[axis][q] - centre[axis]) * inverse;
                w[axis] = fmax(1 - fabs(s[axis]), 0);
            }
            for (int k = 0; k < count; k++) {
                int axis = sides[k] / 2;
                double along = s[axis] - (sides[k] & 1 ? 0.5 : -0.5), at[3] = {s[0], s[1], s[2]};
                double weight = from.volume[q] * fmax(1 - fabs(along), 0);
                for (int b = 0; b < dim; b++) weight *= b == axis ? 1 : w[b];
                at[axis] = along;
                for (int b = 0; b < dim; b++) sums[k][b] += weight * at[b];
                sums[k][3] += weight;
            }
        }
    }
    for (int k = 0; k < count; k++) {
        float *to = a->centre[a->m->side[c][sides[k]]];
        double total = sums[k][3];
        for (int b = 0; b < 3; b++) to[b] = (float)(total > 0 ? sums[k][b] / total : 0);
        to[3] = (float)(total / un_leaf_volume(a->m, c));
    }
}

UN_KERNEL void gather_leaf(const gather_args *a, int32_t c, int dim)
{
    const un_leaves *m = a->m;
    face_sums sums;
    memset(&sums, 0, sizeof sums);
    int own[6], count = 0;
    bool upper = false;
    for (int side = 0; side < 2 * dim; side++) {
        int32_t f = m->side[c][side];
        if (f < 0 || m->face_side[f] != 6 * c + side) continue;
        own[count++] = side;
        upper = upper || side & 1;
    }
    int32_t range[UN_LEAVES_AROUND][2];
    int ranges = un_leaves_around(m, a->begin, c, range);
    float inverse = (float)(1 / (a->fine * un_leaf_size(m, c)));
    int32_t centre[3];
    for (int axis = 0; axis < 3; axis++)
        centre[axis] = (int32_t)lrint(a->fine * un_vec3_at(m->x[c], axis));
    for (int n = 0; n < ranges; n++)
        add_particles(a, range[n][0], range[n][1], centre, inverse, upper, &sums, dim);
    a->colour[c] = (float)(un_lanes16_sum(sums.volume) / un_leaf_volume(m, c));
    for (int k = 0; k < count; k++) {
        int32_t f = m->side[c][own[k]];
        double w = un_lanes16_sum(sums.w[own[k]]);
        a->known[f] = w > 0;
        a->u[f] = a->known[f] ? un_lanes16_sum(sums.wv[own[k]]) / w : 0;
    }
    if (a->centre)
        find_centres(a, c, own, count, (const int32_t(*)[2])range, ranges, centre, inverse);
}

static void gather_leaves(void *arg, int64_t begin, int64_t end)
{
    const gather_args *a = arg;
    for (int64_t c = begin; c < end; c++) UN_BY_DIM(a->m->dim, gather_leaf(a, (int32_t)c, dim));
}

static void find_middles(void *arg, int64_t begin, int64_t end)
{
    const gather_args *a = arg;
    const un_particles *p = a->particles;
    double lead[3] = {p->lead.x, p->lead.y, p->lead.z};
    for (int axis = 0; axis < a->m->dim; axis++) {
        float share = (float)(lead[axis] * (1.0 / UN_FALL_FREE));
        for (int64_t q = begin; q < end; q++)
            a->from.v[axis][q] = (float)p->v[axis][q] - (float)p->fall[q] * share;
        for (int64_t q = begin; q < end; q++) {
            double x = a->fine * p->x[axis][q];
            x = x < FINE ? x : FINE;
            a->from.x[axis][q] = (int32_t)(x > -FINE ? x + 0.5 : -FINE);
        }
    }
}

un_status un_transfer_to_leaves(un_context *ctx, un_arena *arena, const un_leaf_gather *out,
                                const un_leaves *leaves, const un_tet_bins *bins,
                                const un_particles *particles)
{
    gather_args a = {.u = out->u,
                     .known = out->known,
                     .colour = out->colour,
                     .centre = out->centre,
                     .m = leaves,
                     .begin = bins->all ? bins->all : bins->begin,
                     .particles = particles};
    un_vec3 size = leaves->tree->size;
    un_leaf_givers *from = &a.from;
    a.fine = FINE / fmax(size.x, fmax(size.y, size.z));
    a.count = a.begin[leaves->count];
    from->volume = particles->volume;
    un_status status = UN_OK;
    for (int axis = 0; axis < leaves->dim; axis++) {
        from->v[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof **from->v);
        from->x[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof **from->x);
        if (!from->v[axis] || !from->x[axis]) status = UN_ERROR_MEMORY;
    }
    if (status == UN_OK) un_parallel_for(ctx, particles->count, 16384, find_middles, &a);
    if (leaves->share) status = un_leaf_givers_fetch(ctx, arena, from, leaves, bins, status);
    UN_TRY(status);
    un_parallel_part(ctx, un_leaves_own(leaves), 256, gather_leaves, &a);
    un_leaves_spread_faces(leaves, out->u, sizeof *out->u);
    un_leaves_spread_faces(leaves, out->known, sizeof *out->known);
    un_leaves_spread(leaves, out->colour, sizeof *out->colour);
    if (out->centre) un_leaves_spread_faces(leaves, out->centre, sizeof *out->centre);
    return UN_OK;
}
