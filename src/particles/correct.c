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

typedef struct correct_args {
    un_particles *particles;
    const un_bins *bins;
    const float *phi;
    const un_walls *walls;
    float *move[3];
    int32_t deep;
} correct_args;

/* The particles of a block of cells and of one ring of cells around it, cell by cell, x fastest:
 * positions in cells from the ring's corner, in single precision, so that the search vectorises. A
 * pair of neighbouring cells along x is one run. */
#define SIDE (UN_BLOCK + 2)
#define NEAR_MAX 24576 /* three times an even filling; particles beyond it are ignored */
#define LANES 8
#define RUN (3 * LANES) /* particles that are compared with one at least */

typedef struct neighbourhood {
    int32_t first[SIDE * SIDE * SIDE + 1]; /* by cell */
    int32_t id[NEAR_MAX];
    bool even; /* all volumes are the same */
    float x[NEAR_MAX + RUN], y[NEAR_MAX + RUN], z[NEAR_MAX + RUN], volume[NEAR_MAX];
} neighbourhood;

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

/* corner: the lowest cell of the ring. */
UN_KERNEL void gather(neighbourhood *near, const correct_args *a, const int32_t corner[3], int dim)
{
    const un_grid *g = a->bins->grid;
    const un_particles *p = a->particles;
    un_vec3 origin = un_grid_node_position(g, corner[0], corner[1], corner[2]);
    int32_t count = 0, cells = dim == 2 ? SIDE * SIDE : SIDE * SIDE * SIDE;
    for (int32_t c = 0; c < cells; c++) {
        int32_t i = corner[0] + c % SIDE, j = corner[1] + c / SIDE % SIDE;
        int32_t k = corner[2] + c / (SIDE * SIDE);
        near->first[c] = count;
        if (i < 0 || j < 0 || k < 0 || i >= g->n[0] || j >= g->n[1] || k >= g->n[2]) continue;
        uint32_t cell = un_bins_cell(a->bins, i, j, k);
        int32_t end = a->bins->begin[cell + 1];
        for (int32_t q = a->bins->begin[cell]; q < end; q += LANES) {
            int32_t some = (int32_t)un_min64(end - q, LANES);
            if (gather_eight(near, p, q, count, origin, g->inverse_h))
                count += some;
            else
                count = gather_some(near, p, q, q + some, count, origin, g->inverse_h);
        }
    }
    near->first[cells] = count;
    for (int32_t n = count; n < count + RUN; n++) near->x[n] = near->y[n] = near->z[n] = 1e6f;
    bool even = true;
    for (int32_t n = 1; n < count; n++) even &= near->volume[n] == near->volume[0];
    near->even = even;
}

/* Adds the push of particle n on particle q. even: all volumes are the same. */
UN_KERNEL void add_push(float sum[3], const neighbourhood *near, int32_t n, int32_t q, bool even)
{
    float dx = near->x[q] - near->x[n], dy = near->y[q] - near->y[n], dz = near->z[q] - near->z[n];
    float d = sqrtf(dx * dx + dy * dy + dz * dz);
    float share = even ? 0.5f : near->volume[n] / (near->volume[q] + near->volume[n]);
    if (d < 1e-5f) { /* on top of each other: separate them by their order */
        sum[0] += n < q ? (float)DISTANCE * share : -(float)DISTANCE * share;
        return;
    }
    float w = ((float)DISTANCE - d) / d * share;
    sum[0] += w * dx;
    sum[1] += w * dy;
    sum[2] += w * dz;
}

/* A bit for each of the `count` <= RUN particles from `first` on that is near particle q, but not
 * for itself. RUN of them are compared even if there are fewer: two cells hold some 16, and a
 * processor does not foresee their number. */
UN_KERNEL uint32_t find_near(const neighbourhood *near, int32_t first, int32_t count, int32_t q)
{
    const un_lanes8 reach2 = un_lanes8_all((float)(DISTANCE * DISTANCE));
    uint32_t hits = 0, self = (uint32_t)(q - first);
    for (int32_t n = 0; n < RUN; n += LANES) {
        un_lanes8 dx = near->x[q] - un_lanes8_load(near->x + first + n);
        un_lanes8 dy = near->y[q] - un_lanes8_load(near->y + first + n);
        un_lanes8 dz = near->z[q] - un_lanes8_load(near->z + first + n);
        hits |= un_lanes8_less(dx * dx + dy * dy + dz * dz, reach2) << n;
    }
    hits &= (1u << count) - 1;
    return hits & ~(self < RUN ? 1u << self : 0);
}

/* DISTANCE is half a cell, so all overlapping particles lie in the eight cells around the nearest
 * node: four runs of two cells; in 2D four cells, two runs. The few that are near are taken one by
 * one, those of two runs together. */
UN_KERNEL void overlap_sum(float sum[3], const neighbourhood *near, int32_t q, int dim, bool even)
{
    const float x[3] = {near->x[q], near->y[q], near->z[q]};
    int32_t lo[3] = {0}, from[2];
    for (int a = 0; a < dim; a++) lo[a] = un_clampi((int32_t)(x[a] - 0.5f), 0, SIDE - 2);
    for (int pair = 0; pair < 1 << (dim - 2); pair++) {
        uint64_t hits = 0;
        for (int half = 0; half < 2; half++) {
            int32_t c = lo[0] + SIDE * (lo[1] + half + SIDE * (lo[2] + pair));
            int32_t first = near->first[c], end = near->first[c + 2];
            for (; end - first > RUN; first += RUN)
                for (uint32_t more = find_near(near, first, RUN, q); more; more &= more - 1)
                    add_push(sum, near, first + __builtin_ctz(more), q, even);
            from[half] = first - 32 * half;
            hits |= (uint64_t)find_near(near, first, end - first, q) << 32 * half;
        }
        for (; hits; hits &= hits - 1) {
            int32_t bit = __builtin_ctzll(hits);
            add_push(sum, near, from[bit >> 5] + bit, q, even);
        }
    }
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

/* Eight particles from q on, or those of them before end. */
UN_KERNEL void find_eight(const correct_args *a, const neighbourhood *near, const int32_t corner[3],
                          int32_t q, int32_t end, int dim, bool even)
{
    int32_t count = (int32_t)un_min64(end - q, LANES);
    float move[3][LANES] = {0};
    bool any = false;
    for (int32_t n = 0; n < count; n++) {
        float sum[3] = {0, 0, 0};
        overlap_sum(sum, near, q + n, dim, even);
        any |= sum[0] != 0 || sum[1] != 0 || sum[2] != 0;
        for (int axis = 0; axis < 3; axis++) move[axis][n] = (float)STRENGTH * sum[axis];
    }
    if (!any) return; /* all are zero already */
    un_lanes8 x[3] = {un_lanes8_load(near->x + q), un_lanes8_load(near->y + q),
                      un_lanes8_load(near->z + q)};
    moves m;
    for (int axis = 0; axis < 3; axis++) m.of[axis] = un_lanes8_load(move[axis]);
    allow_moves(&m, a, corner, x, near->id + q, count, dim);
    for (int axis = 0; axis < 3; axis++) {
        un_lanes8_store(move[axis], m.of[axis]);
        for (int32_t n = 0; n < count; n++) a->move[axis][near->id[q + n]] = move[axis][n];
    }
}

/* Does the liquid end, or the domain not, within a->deep cells of a row of a block's cells? */
UN_KERNEL bool is_shallow(const correct_args *a, const int32_t from[3], int dim)
{
    const un_grid *g = a->bins->grid;
    int32_t low[3] = {0}, high[3] = {0};
    for (int axis = 0; axis < dim; axis++) {
        low[axis] = un_clampi(from[axis] - a->deep, 1, g->n[axis] - 2);
        high[axis] =
            un_clampi(from[axis] + (axis == 0 ? UN_BLOCK - 1 : 0) + a->deep, 1, g->n[axis] - 2);
    }
    for (int32_t k = low[2]; k <= high[2]; k++)
        for (int32_t j = low[1]; j <= high[1]; j++) {
            const float *phi = a->phi + un_grid_cell(g, 0, j, k);
            bool air = false;
            for (int32_t i = low[0]; i <= high[0]; i++) air |= !(phi[i] < 0);
            if (air) return true;
        }
    return false;
}

/* Of the rows of a block, a bit for each that is not left out. corner: the lowest cell of the ring.
 */
UN_KERNEL uint64_t find_rows(const correct_args *a, const int32_t corner[3], int dim)
{
    uint64_t rows = 0;
    for (int32_t row = 0; row < (dim == 2 ? UN_BLOCK : UN_BLOCK * UN_BLOCK); row++) {
        const int32_t from[3] = {corner[0] + 1, corner[1] + 1 + row % UN_BLOCK,
                                 dim == 2 ? 0 : corner[2] + 1 + row / UN_BLOCK};
        rows |= (uint64_t)(a->deep == 0 || is_shallow(a, from, dim)) << row;
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
        for (int32_t row = 0; row < block_cells / UN_BLOCK; row++) {
            if (!(rows >> row & 1)) continue;
            int32_t c = 1 + SIDE * (row % UN_BLOCK + 1 + SIDE * (row / UN_BLOCK + 1));
            if (dim == 2) c = 1 + SIDE * (row + 1);
            int32_t last = near.first[c + UN_BLOCK];
            for (int32_t q = near.first[c]; q < last; q += LANES) {
                if (near.even)
                    find_eight(a, &near, corner, q, last, dim, true);
                else
                    find_eight(a, &near, corner, q, last, dim, false);
            }
        }
    }
}

static void find_moves(void *arg, int64_t begin, int64_t end)
{
    const correct_args *a = arg;
    UN_BY_DIM(a->bins->grid->dim, find_moves_in(a, begin, end, dim));
}

/* Drops a move that would pass through a wall, or end too close to one and closer than it began. */
static void apply_moves(void *arg, int64_t begin, int64_t end)
{
    correct_args *a = arg;
    un_particles *p = a->particles;
    const un_grid *g = a->bins->grid;
    double margin = 0.02 * g->h;
    double size[3] = {g->size.x, g->size.y, g->size.z};
    for (int64_t q = begin; q < end; q++) {
        if (a->move[0][q] == 0 && a->move[1][q] == 0 && a->move[2][q] == 0) continue;
        un_vec3 x = un_particle_position(p, q);
        un_vec3 to = {x.x + a->move[0][q], x.y + a->move[1][q], x.z + a->move[2][q]};
        double t[3] = {to.x, to.y, to.z};
        bool outside = false;
        for (int axis = 0; axis < g->dim; axis++)
            outside |= t[axis] < margin || t[axis] > size[axis] - margin;
        if (outside) continue;
        /* A thin plate between nodes seems farther away than it is, by less than a cell, and the
         * nodes no longer know where a moving one came from. */
        if (a->walls->bodies->count > 0) {
            bool near = un_walls_distance(a->walls, to) < g->h;
            if (near && !un_open_move(a->walls, x, to, margin)) continue;
            if (!near && a->walls->bodies->moving && !un_open_way(a->walls, x, to)) continue;
        }
        for (int axis = 0; axis < 3; axis++) p->x[axis][q] = t[axis];
    }
}

un_status un_particles_correct(un_context *ctx, un_arena *arena, un_particles *particles,
                               const un_bins *bins, const float *phi, const un_walls *walls,
                               int32_t deep)
{
    correct_args a = {particles, bins, phi, walls, {NULL, NULL, NULL}, deep};
    for (int axis = 0; axis < 3; axis++) {
        a.move[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof(float));
        if (!a.move[axis]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, bins->held_count, 1, find_moves, &a);
    un_parallel_for(ctx, particles->count, 8192, apply_moves, &a);
    return UN_OK;
}
