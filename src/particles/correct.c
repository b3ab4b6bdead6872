/* Position correction [Ando13 section 3, overlap form of methods after Ando 2012].
 *
 *     dx_i = k sum_j (d0 - d) n_ij V_j / (V_i + V_j)       over pairs with d < d0
 *
 * FLIP lets particles drift into clumps and gaps. d0 is the spacing of an even filling, less than
 * that of a random packing, so settled liquid relaxes to a packing without overlaps and then stands
 * still. Near the surface only the tangential part is kept, so the correction never raises or
 * lowers it. */
#include "base/lanes.h"
#include "particles/particles.h"

/* d0 in cells. Eight particles per cell pack at random up to 0.53 and as a crystal up to 0.56, four
 * per square up to 0.52 and 0.54. So 0.5 can always be reached, and all neighbours within half a
 * cell lie in eight cells. With 0.45, rows of the initial lattice survive when the flow stretches
 * them, and shallow water behind a dam break has bumps two to three cells wide: 0.058 cells rms,
 * against 0.017 with 0.5. */
#define DISTANCE 0.5
#define STRENGTH 0.5
/* A particle moves at most this far in a step, in cells. */
#define MOVE_MAX 0.1
/* Above this depth, in cells, particles move only along the surface: six radii of a quarter cell
 * [Ando13]. */
#define SURFACE_DEPTH 1.5

/* Particles that are closer are on top of each other, in cells. */
#define SAME_PLACE 1e-5f
#define FAR_AWAY 1e6f
/* A particle meets itself at SAME_PLACE, where (d0 - d) / d is 5e4. More: it meets others there. */
#define MET_MAX 7.5e4f

/* The rows around a block are bits of a number. */
#define DEEP_MAX 12

typedef struct correct_args {
    un_particles *particles;
    const un_bins *bins;
    const float *phi;
    const un_walls *walls;
    float *move[3];
    int32_t deep;
} correct_args;

/* The particles of a block of cells and of one ring of cells around it, cell by cell, x fastest:
 * positions in cells from the ring's corner, in single precision, so that the search vectorises. */
#define SIDE (UN_BLOCK + 2)
#define NEAR_MAX 24576 /* three times an even filling; particles beyond it are ignored */
#define LANES 8
#define WIDE 16
/* Nodes along a side that are nearest to a particle of the block, those in its boundary too. */
#define NODES (UN_BLOCK + 1)
/* Particles of the cells around a node, 64 where they fill it evenly; others are ignored. */
#define AROUND_MAX 1024

typedef struct neighbourhood {
    int32_t first[SIDE * SIDE * SIDE + 1]; /* by cell */
    int32_t id[NEAR_MAX];
    bool even; /* all volumes are the same */
    float x[NEAR_MAX + WIDE], y[NEAR_MAX + WIDE], z[NEAR_MAX + WIDE], volume[NEAR_MAX + WIDE];
    /* the block's own particles that are moved, by their nearest node */
    int32_t at_node[NODES * NODES * NODES + 1];
    int32_t moved[NEAR_MAX];
    int16_t node[NEAR_MAX];
} neighbourhood;

/* The particles of the eight cells around a node, in 2D of four. */
typedef struct surroundings {
    int32_t count;
    float x[AROUND_MAX + WIDE], y[AROUND_MAX + WIDE], z[AROUND_MAX + WIDE];
    float volume[AROUND_MAX + WIDE];
} surroundings;

/* Particles `from` to `end` of a cell, one by one, after the first `count`; returns their number.
 */
UN_KERNEL int32_t gather_some(neighbourhood *near, const un_particles *p, int32_t from, int32_t end,
                              int32_t count, un_vec3 origin, double inverse_h)
{
    for (int32_t q = from; q < end; q++) {
        if ((p->flags[q] & UN_PARTICLE_BALLISTIC) || count >= NEAR_MAX) continue;
        near->id[count] = q;
        near->x[count] = (float)((p->x[0][q] - origin.x) * inverse_h);
        near->y[count] = (float)((p->x[1][q] - origin.y) * inverse_h);
        near->z[count] = (float)((p->x[2][q] - origin.z) * inverse_h);
        near->volume[count++] = p->volume[q];
    }
    return count;
}

/* Eight at once, if none flies. Those of them at `end` or after it are overwritten later. */
UN_KERNEL bool gather_eight(neighbourhood *near, const un_particles *p, int32_t q, int32_t count,
                            un_vec3 origin, double inverse_h)
{
    uint64_t flags;
    if (q + LANES > p->count || count + LANES > NEAR_MAX) return false;
    memcpy(&flags, p->flags + q, sizeof flags);
    if (flags & (0x0101010101010101u * UN_PARTICLE_BALLISTIC)) return false;
    float *const to[3] = {near->x, near->y, near->z};
    const double from[3] = {origin.x, origin.y, origin.z};
    for (int a = 0; a < 3; a++) {
        un_doubles8 x = (un_doubles8_load(p->x[a] + q, 8) - from[a]) * inverse_h;
        un_lanes8_store(to[a] + count, un_doubles8_to_floats(x));
    }
    memcpy(near->volume + count, p->volume + q, LANES * sizeof *near->volume);
    for (int32_t n = 0; n < LANES; n++) near->id[count + n] = q + n;
    return true;
}

/* `cells` cells in a row of a block, as cells c and on; returns the number of particles then. */
UN_KERNEL int32_t gather_cells(neighbourhood *near, const correct_args *a, uint32_t cell, int32_t c,
                               int32_t cells, int32_t count, un_vec3 origin)
{
    const un_particles *p = a->particles;
    const int32_t *begin = a->bins->begin + cell;
    double inverse_h = a->bins->grid->inverse_h;
    bool all = true; /* are taken: at once */
    for (int32_t q = begin[0]; q < begin[cells] && all; q += LANES)
        all = gather_eight(near, p, q, count + q - begin[0], origin, inverse_h);
    for (int32_t n = 0; n < cells; n++) {
        near->first[c + n] = all ? count + begin[n] - begin[0] : count;
        if (!all) count = gather_some(near, p, begin[n], begin[n + 1], count, origin, inverse_h);
    }
    return all ? count + begin[cells] - begin[0] : count;
}

/* corner: the lowest cell of the ring. */
UN_KERNEL void gather(neighbourhood *near, const correct_args *a, const int32_t corner[3], int dim)
{
    const un_grid *g = a->bins->grid;
    un_vec3 origin = un_grid_node_position(g, corner[0], corner[1], corner[2]);
    int32_t count = 0, cells = dim == 2 ? SIDE * SIDE : SIDE * SIDE * SIDE;
    for (int32_t c = 0; c < cells; c += SIDE) {
        int32_t j = corner[1] + c / SIDE % SIDE, k = corner[2] + c / (SIDE * SIDE);
        if (j < 0 || k < 0 || j >= g->n[1] || k >= g->n[2]) {
            for (int32_t n = 0; n < SIDE; n++) near->first[c + n] = count;
            continue;
        }
        int32_t low = corner[0], high = low + SIDE - 1; /* beside the block */
        near->first[c] = count;
        if (low >= 0)
            count = gather_cells(near, a, un_bins_cell(a->bins, low, j, k), c, 1, count, origin);
        count = gather_cells(near, a, un_bins_cell(a->bins, low + 1, j, k), c + 1, UN_BLOCK, count,
                             origin);
        near->first[c + SIDE - 1] = count;
        if (high < g->n[0])
            count = gather_cells(near, a, un_bins_cell(a->bins, high, j, k), c + SIDE - 1, 1, count,
                                 origin);
    }
    near->first[cells] = count;
    bool even = true;
    for (int32_t n = 1; n < count; n++) even &= near->volume[n] == near->volume[0];
    near->even = even;
}

/* Adds the push of particle n on particle q. */
static void add_push(float sum[3], const neighbourhood *near, int32_t n, int32_t q)
{
    float dx = near->x[q] - near->x[n], dy = near->y[q] - near->y[n], dz = near->z[q] - near->z[n];
    float d = sqrtf(dx * dx + dy * dy + dz * dz);
    float share = near->volume[n] / (near->volume[q] + near->volume[n]);
    if (n == q || !(d < (float)DISTANCE)) return;
    if (d < SAME_PLACE) { /* on top of each other: separate them by their order */
        sum[0] += n < q ? (float)DISTANCE * share : -(float)DISTANCE * share;
        return;
    }
    float w = ((float)DISTANCE - d) / d * share;
    sum[0] += w * dx;
    sum[1] += w * dy;
    sum[2] += w * dz;
}

/* The same of all particles around, one by one. corner: the lowest cell around the node. */
static void sum_one_by_one(float sum[3], const neighbourhood *near, int32_t corner, int32_t q,
                           int dim)
{
    sum[0] = sum[1] = sum[2] = 0;
    for (int row = 0; row < 1 << (dim - 1); row++) {
        int32_t c = corner + SIDE * ((row & 1) + SIDE * (row >> 1));
        for (int32_t n = near->first[c]; n < near->first[c + 2]; n++) add_push(sum, near, n, q);
    }
}

/* DISTANCE is half a cell, so all particles that overlap with one lie in the cells around its
 * nearest node. They are copied there once for all particles that have this node. */
UN_KERNEL void surround(surroundings *around, const neighbourhood *near, int32_t corner, int dim,
                        bool even)
{
    int32_t count = 0;
    for (int row = 0; row < 1 << (dim - 1); row++) { /* a pair of cells along x is one run */
        int32_t c = corner + SIDE * ((row & 1) + SIDE * (row >> 1));
        int32_t first = near->first[c], some = near->first[c + 2] - first;
        if (some > AROUND_MAX - count) some = AROUND_MAX - count;
        for (int32_t n = 0; n < some; n += WIDE) { /* what is too much is overwritten */
            un_lanes16_store(around->x + count + n, un_lanes16_load(near->x + first + n));
            un_lanes16_store(around->y + count + n, un_lanes16_load(near->y + first + n));
            un_lanes16_store(around->z + count + n, un_lanes16_load(near->z + first + n));
            if (!even)
                un_lanes16_store(around->volume + count + n,
                                 un_lanes16_load(near->volume + first + n));
        }
        count += some;
    }
    un_lanes16_store(around->x + count, un_lanes16_all(FAR_AWAY));
    un_lanes16_store(around->y + count, un_lanes16_all(FAR_AWAY));
    un_lanes16_store(around->z + count, un_lanes16_all(FAR_AWAY));
    if (!even) un_lanes16_store(around->volume + count, un_lanes16_all(1));
    around->count = count;
}

/* The sum over the particles around q's node, sixteen at a time: few of them overlap with q, but
 * which do is hard to foresee, and pushes that are not needed cost less than branches.
 * (d0 - d) / d = d0 / d - 1 is positive only where they overlap, and d is 0 for q itself.
 * even: all volumes are the same. */
UN_KERNEL void overlap_sum(float sum[4], const surroundings *around, const neighbourhood *near,
                           int32_t q, bool even)
{
    const un_lanes16 zero = un_lanes16_all(0), least = un_lanes16_all(SAME_PLACE * SAME_PLACE);
    const un_lanes16 x = un_lanes16_all(near->x[q]), y = un_lanes16_all(near->y[q]);
    const un_lanes16 z = un_lanes16_all(near->z[q]), distance = un_lanes16_all((float)DISTANCE);
    un_lanes16 sums[4] = {zero, zero, zero, zero}; /* of the pushes, of (d0 - d) / d */
    for (int32_t n = 0; n < around->count; n += WIDE) {
        un_lanes16 dx = x - un_lanes16_load(around->x + n);
        un_lanes16 dy = y - un_lanes16_load(around->y + n);
        un_lanes16 dz = z - un_lanes16_load(around->z + n);
        un_lanes16 d2 = un_lanes16_mad(dx, dx, un_lanes16_mad(dy, dy, dz * dz));
        un_lanes16 w = un_lanes16_rsqrt(un_lanes16_max(d2, least));
        w = un_lanes16_max(un_lanes16_mad(distance, w, un_lanes16_all(-1)), zero);
        sums[3] += w;
        if (!even) {
            un_lanes16 volume = un_lanes16_load(around->volume + n);
            w *= volume * un_lanes16_inverse(volume + near->volume[q]);
        }
        sums[0] = un_lanes16_mad(w, dx, sums[0]);
        sums[1] = un_lanes16_mad(w, dy, sums[1]);
        sums[2] = un_lanes16_mad(w, dz, sums[2]);
    }
    un_lanes16_sum4(sum, sums);
    if (even)
        for (int axis = 0; axis < 3; axis++) sum[axis] *= 0.5f;
}

/* Eight moves, in cells. */
typedef struct moves {
    un_lanes8 of[3];
} moves;

/* phi and its gradient times h at eight particles, the same interpolant as un_grid_sample_in. x: in
 * cells from the corner. */
UN_KERNEL un_lanes8 sample_phi(un_lanes8 gradient[3], const un_grid *g, const float *phi,
                               const int32_t corner[3], const un_lanes8 x[3], int dim)
{
    un_lanes8 f[3], v[8];
    un_bits8 base = {0};
    for (int a = 0; a < dim; a++) {
        un_lanes8 s = x[a] - 0.5f;
        un_lanes8 lo = un_lanes8_all((float)-corner[a]);
        un_lanes8 hi = un_lanes8_all((float)(g->n[a] - 2 - corner[a]));
        un_bits8 i = __builtin_convertvector(un_lanes8_min(un_lanes8_max(s, lo), hi), un_bits8);
        f[a] = s - __builtin_convertvector(i, un_lanes8);
        f[a] = un_lanes8_min(un_lanes8_max(f[a], un_lanes8_all(0)), un_lanes8_all(1));
        base += (i + corner[a]) * (int32_t)g->stride[a];
    }
    for (int c = 0; c < 1 << dim; c++)
        v[c] = un_lanes8_gather(
            phi, base + (int32_t)((c & 1) + (c >> 1 & 1) * g->stride[1] + (c >> 2) * g->stride[2]));
    un_lanes8 low0 = v[0] + (v[1] - v[0]) * f[0], low1 = v[2] + (v[3] - v[2]) * f[0];
    un_lanes8 low = low0 + (low1 - low0) * f[1];
    if (dim == 2) {
        gradient[0] = (v[1] - v[0]) * (1 - f[1]) + (v[3] - v[2]) * f[1];
        gradient[1] = low1 - low0;
        gradient[2] = un_lanes8_all(0);
        return low;
    }
    un_lanes8 high0 = v[4] + (v[5] - v[4]) * f[0], high1 = v[6] + (v[7] - v[6]) * f[0];
    un_lanes8 high = high0 + (high1 - high0) * f[1];
    gradient[0] = ((v[1] - v[0]) * (1 - f[1]) + (v[3] - v[2]) * f[1]) * (1 - f[2]) +
                  ((v[5] - v[4]) * (1 - f[1]) + (v[7] - v[6]) * f[1]) * f[2];
    gradient[1] = (low1 - low0) * (1 - f[2]) + (high1 - high0) * f[2];
    gradient[2] = high - low;
    return low + (high - low) * f[2];
}

/* The slopes of phi on the particles' own side of thin walls. */
static void slopes_on_side(un_lanes8 n[3], const correct_args *a, const int32_t *id, int32_t count)
{
    float of[3][LANES] = {0};
    for (int32_t i = 0; i < count; i++) {
        un_vec3 x = un_particle_position(a->particles, id[i]);
        un_vec3 slope = un_walls_gradient_side(a->walls, a->phi, x);
        of[0][i] = (float)slope.x;
        of[1][i] = (float)slope.y;
        of[2][i] = (float)slope.z;
    }
    for (int axis = 0; axis < 3; axis++) n[axis] = un_lanes8_load(of[axis]);
}

/* The moves of `count` particles, limited to MOVE_MAX and, near the surface, to their tangential
 * part. To metres. */
UN_KERNEL void allow_moves(moves *m, const correct_args *a, const int32_t corner[3],
                           const un_lanes8 x[3], const int32_t *id, int32_t count, int dim)
{
    const un_grid *g = a->bins->grid;
    un_lanes8 n[3];
    un_lanes8 phi = sample_phi(n, g, a->phi, corner, x, dim);
    un_bits8 shallow = (un_bits8)(phi > (float)(-SURFACE_DEPTH * g->h));
    if (un_bits8_mask(shallow)) {
        if (a->walls->parted) slopes_on_side(n, a, id, count);
        un_lanes8 n2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
        un_lanes8 along = m->of[0] * n[0] + m->of[1] * n[1] + m->of[2] * n[2];
        along = un_lanes8_where(shallow, along / un_lanes8_max(n2, un_lanes8_all(1e-30f)));
        for (int axis = 0; axis < 3; axis++) m->of[axis] -= along * n[axis];
    }
    un_lanes8 d2 = m->of[0] * m->of[0] + m->of[1] * m->of[1] + m->of[2] * m->of[2];
    un_lanes8 d = un_lanes8_max(un_lanes8_sqrt(d2), un_lanes8_all(1e-30f));
    un_lanes8 scale = (float)g->h * un_lanes8_min(un_lanes8_all(1), (float)MOVE_MAX / d);
    for (int axis = 0; axis < 3; axis++) m->of[axis] *= scale;
}

/* Particles whose pushes have been added up. */
typedef struct pending {
    int32_t count, q[LANES];
    float move[3][LANES];
} pending;

UN_KERNEL void move_pending(const correct_args *a, const neighbourhood *near,
                            const int32_t corner[3], pending *some, int dim)
{
    float at[3][LANES] = {0};
    int32_t id[LANES];
    for (int32_t n = 0; n < some->count; n++) {
        int32_t q = some->q[n];
        id[n] = near->id[q];
        at[0][n] = near->x[q], at[1][n] = near->y[q], at[2][n] = near->z[q];
    }
    un_lanes8 x[3];
    moves m;
    for (int axis = 0; axis < 3; axis++) {
        x[axis] = un_lanes8_load(at[axis]);
        m.of[axis] = un_lanes8_load(some->move[axis]);
    }
    allow_moves(&m, a, corner, x, id, some->count, dim);
    for (int axis = 0; axis < 3; axis++)
        for (int32_t n = 0; n < some->count; n++) a->move[axis][id[n]] = m.of[axis][n];
    some->count = 0;
}

/* Of the block's own particles in a bit's row each, by their nearest node. */
UN_KERNEL void sort_by_node(neighbourhood *near, uint64_t rows, int dim)
{
    const int32_t nodes = dim == 2 ? NODES * NODES : NODES * NODES * NODES;
    memset(near->at_node, 0, (size_t)(nodes + 1) * sizeof *near->at_node);
    for (uint64_t left = rows; left; left &= left - 1) {
        int32_t row = __builtin_ctzll(left), k = row / UN_BLOCK;
        int32_t c = 1 + SIDE * (row % UN_BLOCK + 1 + (dim == 2 ? 0 : SIDE * (k + 1)));
        for (int32_t q = near->first[c]; q < near->first[c + UN_BLOCK]; q++) {
            int32_t node = un_clampi((int32_t)(near->x[q] - 0.5f), 0, NODES - 1);
            node += NODES * un_clampi((int32_t)(near->y[q] - 0.5f), 0, NODES - 1);
            if (dim == 3)
                node += NODES * NODES * un_clampi((int32_t)(near->z[q] - 0.5f), 0, NODES - 1);
            near->node[q] = (int16_t)node;
        }
        for (int32_t q = near->first[c]; q < near->first[c + UN_BLOCK]; q++)
            near->at_node[near->node[q] + 1]++;
    }
    for (int32_t n = 0; n < nodes; n++) near->at_node[n + 1] += near->at_node[n];
    for (uint64_t left = rows; left; left &= left - 1) {
        int32_t row = __builtin_ctzll(left), k = row / UN_BLOCK;
        int32_t c = 1 + SIDE * (row % UN_BLOCK + 1 + (dim == 2 ? 0 : SIDE * (k + 1)));
        for (int32_t q = near->first[c]; q < near->first[c + UN_BLOCK]; q++)
            near->moved[near->at_node[near->node[q]]++] = q; /* now where a node's end */
    }
}

UN_KERNEL void find_moves_of(const correct_args *a, const neighbourhood *near,
                             const int32_t corner[3], int dim, bool even)
{
    surroundings around;
    pending some = {.count = 0};
    for (int32_t node = 0, m = 0; node < (dim == 2 ? NODES * NODES : NODES * NODES * NODES);
         node++) {
        if (m == near->at_node[node]) continue;
        int32_t c = node % NODES + SIDE * (node / NODES % NODES + SIDE * (node / (NODES * NODES)));
        surround(&around, near, c, dim, even);
        for (; m < near->at_node[node]; m++) {
            int32_t q = near->moved[m];
            float sum[4];
            overlap_sum(sum, &around, near, q, even);
            if (sum[3] > MET_MAX) sum_one_by_one(sum, near, c, q, dim);
            some.q[some.count] = q;
            for (int axis = 0; axis < 3; axis++)
                some.move[axis][some.count] = (float)STRENGTH * sum[axis];
            if (++some.count == LANES) move_pending(a, near, corner, &some, dim);
        }
    }
    if (some.count > 0) move_pending(a, near, corner, &some, dim);
}

/* Is there air, or an open side, among the cells from low to high of a row? */
UN_KERNEL bool has_air(const float *phi, int32_t low, int32_t high)
{
    bool air = false;
    if (high - low + 1 < LANES) {
        for (int32_t i = low; i <= high; i++) air |= !(phi[i] < 0);
        return air;
    }
    un_bits8 liquid = ~(un_bits8){0};
    for (int32_t i = low; i + LANES <= high; i += LANES)
        liquid &= (un_bits8)(un_lanes8_load(phi + i) < 0);
    liquid &= (un_bits8)(un_lanes8_load(phi + high - LANES + 1) < 0);
    return un_bits8_mask(liquid) != (1u << LANES) - 1;
}

/* Of the rows of a block, a bit for each that is not left out: the liquid ends, or the domain does
 * not, within a->deep cells of it. corner: the lowest cell of the ring. */
UN_KERNEL uint64_t find_rows(const correct_args *a, const int32_t corner[3], int dim)
{
    const un_grid *g = a->bins->grid;
    const int32_t reach = a->deep, side = UN_BLOCK + 2 * reach, layers = dim == 2 ? 1 : side;
    uint32_t air[UN_BLOCK + 2 * DEEP_MAX]; /* by layer: a bit for each row around the block */
    uint64_t rows = 0;
    if (reach == 0) return UINT64_MAX >> (dim == 2 ? 64 - UN_BLOCK : 0);
    const int32_t from[3] = {corner[0] + 1 - reach, corner[1] + 1 - reach, corner[2] + 1 - reach};
    int32_t low = un_clampi(from[0], 1, g->n[0] - 2);
    int32_t high = un_clampi(from[0] + side - 1, 1, g->n[0] - 2);
    for (int32_t z = 0; z < layers; z++) {
        int32_t k = dim == 2 ? 0 : un_clampi(from[2] + z, 1, g->n[2] - 2);
        air[z] = 0;
        for (int32_t y = 0; y < side; y++) {
            int32_t j = un_clampi(from[1] + y, 1, g->n[1] - 2);
            air[z] |= (uint32_t)has_air(a->phi + un_grid_cell(g, 0, j, k), low, high) << y;
        }
    }
    for (int32_t k = 0; k < (dim == 2 ? 1 : UN_BLOCK); k++) {
        uint32_t around = 0, shallow = 0;
        for (int32_t z = k; z <= (dim == 2 ? k : k + 2 * reach); z++) around |= air[z];
        for (int32_t y = 0; y <= 2 * reach; y++) shallow |= around >> y;
        rows |= (uint64_t)(shallow & ((1u << UN_BLOCK) - 1)) << UN_BLOCK * k;
    }
    return rows;
}

UN_KERNEL void find_moves_in(const correct_args *a, int64_t begin, int64_t end, int dim)
{
    const int32_t block_cells = dim == 2 ? UN_BLOCK * UN_BLOCK : UN_BLOCK * UN_BLOCK * UN_BLOCK;
    const un_bins *b = a->bins;
    neighbourhood near;
    for (int64_t n = begin; n < end; n++) {
        int32_t block = b->coloured[n]; /* any order that lists every block once */
        const int32_t *first = b->begin + (int64_t)b->rank[block] * block_cells;
        for (int axis = 0; axis < 3; axis++)
            memset(a->move[axis] + first[0], 0,
                   (size_t)(first[block_cells] - first[0]) * sizeof(float));
        if (first[0] == first[block_cells] || !un_bins_owns(b, block)) continue;
        int32_t corner[3] = {block % b->blocks[0] * UN_BLOCK - 1,
                             block / b->blocks[0] % b->blocks[1] * UN_BLOCK - 1,
                             block / (b->blocks[0] * b->blocks[1]) * UN_BLOCK - 1};
        if (dim == 2) corner[2] = 0;
        uint64_t rows = find_rows(a, corner, dim);
        if (!rows) continue;
        gather(&near, a, corner, dim);
        sort_by_node(&near, rows, dim);
        if (near.even)
            find_moves_of(a, &near, corner, dim, true);
        else
            find_moves_of(a, &near, corner, dim, false);
    }
}

static void find_moves(void *arg, int64_t begin, int64_t end)
{
    const correct_args *a = arg;
    UN_BY_DIM(a->bins->grid->dim, find_moves_in(a, begin, end, dim));
}

/* Eight from q on, where only the sides of the domain can stop them. */
UN_KERNEL void apply_eight(const correct_args *a, int64_t q, double margin, int dim)
{
    const un_grid *g = a->bins->grid;
    const double size[3] = {g->size.x, g->size.y, g->size.z};
    un_doubles8 x[3], to[3];
    un_longs8 inside = ~(un_longs8){0};
    for (int axis = 0; axis < dim; axis++) {
        x[axis] = un_doubles8_load(a->particles->x[axis] + q, 8);
        to[axis] = x[axis] + un_doubles8_of_floats(un_lanes8_load(a->move[axis] + q));
        inside &= (to[axis] >= margin) & (to[axis] <= size[axis] - margin);
    }
    for (int axis = 0; axis < dim; axis++) {
        to[axis] = un_doubles8_choose(inside, to[axis], x[axis]);
        memcpy(a->particles->x[axis] + q, &to[axis], sizeof to[axis]);
    }
}

/* Drops a move that would pass through a wall, or end too close to one and closer than it began. */
static void apply_one(const correct_args *a, int64_t q, double margin)
{
    un_particles *p = a->particles;
    const un_grid *g = a->bins->grid;
    const double size[3] = {g->size.x, g->size.y, g->size.z};
    if (a->move[0][q] == 0 && a->move[1][q] == 0 && a->move[2][q] == 0) return;
    un_vec3 x = un_particle_position(p, q);
    un_vec3 to = {x.x + a->move[0][q], x.y + a->move[1][q], x.z + a->move[2][q]};
    double t[3] = {to.x, to.y, to.z};
    for (int axis = 0; axis < g->dim; axis++)
        if (t[axis] < margin || t[axis] > size[axis] - margin) return;
    /* A thin plate between nodes seems farther away than it is, by less than a cell, and the nodes
     * no longer know where a moving one came from. */
    if (a->walls->bodies->count > 0) {
        bool near = un_walls_distance(a->walls, to) < g->h;
        if (near && !un_open_move(a->walls, x, to, margin)) return;
        if (!near && a->walls->bodies->moving && !un_open_way(a->walls, x, to)) return;
    }
    for (int axis = 0; axis < g->dim; axis++) p->x[axis][q] = t[axis];
}

static void apply_moves(void *arg, int64_t begin, int64_t end)
{
    const correct_args *a = arg;
    double margin = 0.02 * a->bins->grid->h;
    if (a->walls->bodies->count == 0)
        for (; begin + 8 <= end; begin += 8)
            UN_BY_DIM(a->bins->grid->dim, apply_eight(a, begin, margin, dim));
    for (; begin < end; begin++) apply_one(a, begin, margin);
}

un_status un_particles_correct(un_context *ctx, un_arena *arena, un_particles *particles,
                               const un_bins *bins, const float *phi, const un_walls *walls,
                               int32_t deep)
{
    UN_ASSERT(deep <= DEEP_MAX);
    correct_args a = {particles, bins, phi, walls, {NULL, NULL, NULL}, deep};
    for (int axis = 0; axis < 3; axis++) {
        a.move[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof(float));
        if (!a.move[axis]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, bins->held_count, 1, find_moves, &a);
    un_parallel_for(ctx, particles->count, 8192, apply_moves, &a);
    return UN_OK;
}
