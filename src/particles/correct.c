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
} correct_args;

/* The particles of a block of cells and of one ring of cells around it, cell by cell, x fastest:
 * positions in cells from the ring's corner, in single precision, so that the search vectorises. A
 * pair of neighbouring cells along x is one run. */
#define SIDE (UN_BLOCK + 2)
#define NEAR_MAX 24576 /* three times an even filling; particles beyond it are ignored */
#define LANES 8

typedef struct neighbourhood {
    int32_t first[SIDE * SIDE * SIDE + 1]; /* by cell */
    int32_t id[NEAR_MAX];
    float x[NEAR_MAX + LANES], y[NEAR_MAX + LANES], z[NEAR_MAX + LANES], volume[NEAR_MAX];
} neighbourhood;

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
        for (int32_t q = a->bins->begin[cell]; q < a->bins->begin[cell + 1]; q++) {
            if ((p->flags[q] & UN_PARTICLE_BALLISTIC) || count >= NEAR_MAX) continue;
            near->id[count] = q;
            near->x[count] = (float)((p->x[0][q] - origin.x) * g->inverse_h);
            near->y[count] = (float)((p->x[1][q] - origin.y) * g->inverse_h);
            near->z[count] = (float)((p->x[2][q] - origin.z) * g->inverse_h);
            near->volume[count++] = p->volume[q];
        }
    }
    near->first[cells] = count;
    for (int32_t n = count; n < count + LANES; n++) near->x[n] = near->y[n] = near->z[n] = 1e6f;
}

/* Adds the push of a run's particles on particle q at x, in cells: eight of them are compared at
 * once, and the few that are near taken one by one. */
static void add_run(float sum[3], const neighbourhood *near, int32_t begin, int32_t end, int32_t q,
                    const float x[3])
{
    const un_lanes8 reach2 = un_lanes8_all((float)(DISTANCE * DISTANCE));
    float d2[LANES];
    for (int32_t first = begin; first < end; first += LANES) {
        un_lanes8 dx = x[0] - un_lanes8_load(near->x + first);
        un_lanes8 dy = x[1] - un_lanes8_load(near->y + first);
        un_lanes8 dz = x[2] - un_lanes8_load(near->z + first);
        un_lanes8 squares = dx * dx + dy * dy + dz * dz;
        uint32_t hits = un_lanes8_less(squares, reach2);
        if (end - first < LANES) hits &= (1u << (end - first)) - 1;
        if (q >= first && q < first + LANES) hits &= ~(1u << (q - first));
        if (!hits) continue;
        un_lanes8_store(d2, squares);
        for (; hits; hits &= hits - 1) {
            int32_t n = first + __builtin_ctz(hits);
            float d = sqrtf(d2[n - first]);
            float share = near->volume[n] / (near->volume[q] + near->volume[n]);
            if (d < 1e-5f) { /* on top of each other: separate them by their order */
                sum[0] += n < q ? (float)DISTANCE * share : -(float)DISTANCE * share;
                continue;
            }
            float w = ((float)DISTANCE - d) / d * share;
            sum[0] += w * (x[0] - near->x[n]);
            sum[1] += w * (x[1] - near->y[n]);
            sum[2] += w * (x[2] - near->z[n]);
        }
    }
}

/* DISTANCE is half a cell, so all overlapping particles lie in the eight cells around the nearest
 * node: four runs of two cells; in 2D four cells, two runs. */
UN_KERNEL un_vec3 overlap_sum(const neighbourhood *near, int32_t q, int dim)
{
    float x[3] = {near->x[q], near->y[q], near->z[q]}, sum[3] = {0, 0, 0};
    int32_t lo[3] = {0};
    for (int a = 0; a < dim; a++) lo[a] = un_clampi((int32_t)(x[a] - 0.5f), 0, SIDE - 2);
    for (int run = 0; run < 1 << (dim - 1); run++) {
        int32_t c = lo[0] + SIDE * (lo[1] + (run & 1) + SIDE * (lo[2] + (run >> 1)));
        add_run(sum, near, near->first[c], near->first[c + 2], q, x);
    }
    return un_v3(STRENGTH * sum[0], STRENGTH * sum[1], STRENGTH * sum[2]);
}

/* The move, limited to MOVE_MAX and, near the surface, to its tangential part. move: in cells. */
UN_KERNEL un_vec3 allowed_move(const correct_args *a, int32_t q, un_vec3 move, int dim)
{
    const un_grid *g = a->bins->grid;
    un_vec3 x = un_particle_position(a->particles, q);
    if (un_grid_sample_in(g, a->phi, x, dim) > -SURFACE_DEPTH * g->h) {
        un_vec3 n = un_normalize(un_grid_gradient_in(g, a->phi, x, dim));
        move = un_mad(move, n, -un_dot(move, n));
    }
    double length = un_length(move);
    return un_scale(move, g->h * fmin(1, MOVE_MAX / fmax(length, 1e-30)));
}

UN_KERNEL void find_moves_in(const correct_args *a, int64_t begin, int64_t end, int dim)
{
    const int32_t block_cells = dim == 2 ? UN_BLOCK * UN_BLOCK : UN_BLOCK * UN_BLOCK * UN_BLOCK;
    const un_bins *b = a->bins;
    neighbourhood near;
    for (int64_t n = begin; n < end; n++) {
        int32_t block = b->coloured[n]; /* any order that lists every block once */
        const int32_t *first = b->begin + (int64_t)b->rank[block] * block_cells;
        for (int32_t q = first[0]; q < first[block_cells]; q++)
            a->move[0][q] = a->move[1][q] = a->move[2][q] = 0;
        if (first[0] == first[block_cells]) continue;
        int32_t corner[3] = {block % b->blocks[0] * UN_BLOCK - 1,
                             block / b->blocks[0] % b->blocks[1] * UN_BLOCK - 1,
                             block / (b->blocks[0] * b->blocks[1]) * UN_BLOCK - 1};
        if (dim == 2) corner[2] = 0;
        gather(&near, a, corner, dim);
        for (int32_t row = 0; row < block_cells / UN_BLOCK; row++) {
            int32_t c = 1 + SIDE * (row % UN_BLOCK + 1 + SIDE * (row / UN_BLOCK + 1));
            if (dim == 2) c = 1 + SIDE * (row + 1);
            for (int32_t q = near.first[c]; q < near.first[c + UN_BLOCK]; q++) {
                un_vec3 move = overlap_sum(&near, q, dim);
                if (!(un_dot(move, move) > 0)) continue;
                move = allowed_move(a, near.id[q], move, dim);
                a->move[0][near.id[q]] = (float)move.x;
                a->move[1][near.id[q]] = (float)move.y;
                a->move[2][near.id[q]] = (float)move.z;
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
                               const un_bins *bins, const float *phi, const un_walls *walls)
{
    correct_args a = {particles, bins, phi, walls, {NULL, NULL, NULL}};
    for (int axis = 0; axis < 3; axis++) {
        a.move[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof(float));
        if (!a.move[axis]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, bins->block_count, 1, find_moves, &a);
    un_parallel_for(ctx, particles->count, 8192, apply_moves, &a);
    return UN_OK;
}
