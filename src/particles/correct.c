/* Position correction [Ando13 section 3, overlap form of methods after Ando 2012].
 *
 *     dx_i = k sum_j (d0 - d) n_ij V_j / (V_i + V_j)       over pairs with d < d0
 *
 * FLIP lets particles drift into clumps and gaps. d0 is below the spacing of an even filling, so
 * settled liquid relaxes to a packing without overlaps and then stands still. Near the surface
 * only the part along it is kept, so the correction never lifts or sinks the surface. */
#include "particles/particles.h"

/* In cells. Eight a cell pack at random up to 0.53 and as a crystal up to 0.56: 0.45 can always be
 * met, and within half a cell the neighbours lie in eight cells. */
#define DISTANCE 0.45
#define STRENGTH 0.5
/* A particle moves at most this far in a step, in cells. */
#define MOVE_MAX 0.1
/* Along the surface only above this depth, in cells: six radii of a quarter cell [Ando13]. */
#define SURFACE_DEPTH 1.5

typedef struct correct_args {
    un_particles *particles;
    const un_bins *bins;
    const float *phi;
    const un_walls *walls;
    float *move[3];
} correct_args;

/* The particles of a cell and its 26 neighbours, gathered once for all particles of the cell: places
 * in cells from the cell's corner, in single precision, so that the search vectorises. */
#define NEAR_MAX 2048 /* a crowd: what exceeds it is not looked at */
#define CHUNK 16

typedef struct neighbourhood {
    int32_t count; /* padded to whole chunks with places far away */
    int32_t id[NEAR_MAX];
    float x[NEAR_MAX], y[NEAR_MAX], z[NEAR_MAX], volume[NEAR_MAX];
} neighbourhood;

static void gather_cell(neighbourhood *near, const correct_args *a, un_vec3 corner, int32_t i,
                        int32_t j, int32_t k)
{
    const un_particles *p = a->particles;
    double inverse = a->bins->grid->inverse_h;
    uint32_t cell = un_bins_cell(a->bins, i, j, k);
    for (int32_t q = a->bins->begin[cell]; q < a->bins->begin[cell + 1]; q++) {
        if ((p->flags[q] & UN_PARTICLE_BALLISTIC) || near->count >= NEAR_MAX - CHUNK) continue;
        near->id[near->count] = q;
        near->x[near->count] = (float)((p->x[0][q] - corner.x) * inverse);
        near->y[near->count] = (float)((p->x[1][q] - corner.y) * inverse);
        near->z[near->count] = (float)((p->x[2][q] - corner.z) * inverse);
        near->volume[near->count++] = p->volume[q];
    }
}

static void gather(neighbourhood *near, const correct_args *a, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = a->bins->grid;
    un_vec3 corner = un_grid_node_position(g, i, j, k);
    near->count = 0;
    for (int32_t c = k - 1; c <= k + 1; c++)
        for (int32_t b = j - 1; b <= j + 1; b++)
            for (int32_t d = i - 1; d <= i + 1; d++)
                if (c >= 0 && b >= 0 && d >= 0 && c < g->n[2] && b < g->n[1] && d < g->n[0])
                    gather_cell(near, a, corner, d, b, c);
    for (; near->count % CHUNK; near->count++) {
        near->x[near->count] = near->y[near->count] = near->z[near->count] = 1e6f;
        near->id[near->count] = -1;
        near->volume[near->count] = 0;
    }
}

/* Is any of the chunk's particles nearer than DISTANCE? Most chunks have none. Vector types of gcc and
 * clang: left to itself the compiler takes the comparison apart. */
typedef float lanes __attribute__((vector_size(CHUNK * sizeof(float)), aligned(4)));
typedef int64_t halves __attribute__((vector_size(CHUNK * sizeof(float))));

static bool any_near(const neighbourhood *near, int32_t first, float x, float y, float z,
                     float d2[CHUNK])
{
    lanes dx = x - *(const lanes *)(near->x + first), dy = y - *(const lanes *)(near->y + first);
    lanes dz = z - *(const lanes *)(near->z + first);
    lanes squares = dx * dx + dy * dy + dz * dz;
    halves hit = (halves)(squares < (float)(DISTANCE * DISTANCE));
    int64_t any = 0;
    for (size_t n = 0; n < sizeof hit / sizeof any; n++) any |= hit[n];
    memcpy(d2, &squares, sizeof squares);
    return any != 0;
}

/* In cells. */
static un_vec3 overlap_sum(const neighbourhood *near, int32_t q, float x, float y, float z,
                           float volume)
{
    float sum[3] = {0, 0, 0}, d2[CHUNK];
    for (int32_t first = 0; first < near->count; first += CHUNK) {
        if (!any_near(near, first, x, y, z, d2)) continue;
        for (int32_t r = 0; r < CHUNK; r++) {
            int32_t n = first + r;
            if (!(d2[r] < (float)(DISTANCE * DISTANCE)) || near->id[n] == q) continue;
            float d = sqrtf(d2[r]), share = near->volume[n] / (volume + near->volume[n]);
            if (d < 1e-5f) { /* on top of each other: part them by their order */
                sum[0] += near->id[n] < q ? (float)DISTANCE * share : -(float)DISTANCE * share;
                continue;
            }
            float w = ((float)DISTANCE - d) / d * share;
            sum[0] += w * (x - near->x[n]);
            sum[1] += w * (y - near->y[n]);
            sum[2] += w * (z - near->z[n]);
        }
    }
    return un_v3(STRENGTH * sum[0], STRENGTH * sum[1], STRENGTH * sum[2]);
}

/* Near the surface only along it, and never far. move: in cells. */
static un_vec3 allowed_move(const correct_args *a, int32_t q, un_vec3 move)
{
    const un_grid *g = a->bins->grid;
    un_vec3 x = un_particle_position(a->particles, q);
    if (un_grid_sample(g, a->phi, x) > -SURFACE_DEPTH * g->h) {
        un_vec3 n = un_normalize(un_grid_gradient(g, a->phi, x));
        move = un_mad(move, n, -un_dot(move, n));
    }
    double length = un_length(move);
    return un_scale(move, g->h * fmin(1, MOVE_MAX / fmax(length, 1e-30)));
}

static void correct_cell(const correct_args *a, neighbourhood *near, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = a->bins->grid;
    const un_particles *p = a->particles;
    uint32_t cell = un_bins_cell(a->bins, i, j, k);
    int32_t begin = a->bins->begin[cell], end = a->bins->begin[cell + 1];
    if (begin == end) return;
    un_vec3 corner = un_grid_node_position(g, i, j, k);
    gather(near, a, i, j, k);
    for (int32_t q = begin; q < end; q++) {
        un_vec3 move = {0, 0, 0};
        if (!(p->flags[q] & UN_PARTICLE_BALLISTIC))
            move = overlap_sum(near, q, (float)((p->x[0][q] - corner.x) * g->inverse_h),
                               (float)((p->x[1][q] - corner.y) * g->inverse_h),
                               (float)((p->x[2][q] - corner.z) * g->inverse_h), p->volume[q]);
        if (un_dot(move, move) > 0) move = allowed_move(a, q, move);
        a->move[0][q] = (float)move.x;
        a->move[1][q] = (float)move.y;
        a->move[2][q] = (float)move.z;
    }
}

static void find_moves(void *arg, int64_t begin, int64_t end)
{
    const correct_args *a = arg;
    const un_bins *b = a->bins;
    neighbourhood near;
    for (int64_t n = begin; n < end; n++) {
        int32_t block = b->coloured[n]; /* any order that lists every block once */
        const int32_t *first = b->begin + (int64_t)b->rank[block] * UN_BLOCK_CELLS;
        if (first[0] == first[UN_BLOCK_CELLS]) continue;
        int32_t i0 = block % b->blocks[0] * UN_BLOCK, j0 = block / b->blocks[0] % b->blocks[1] * UN_BLOCK;
        int32_t k0 = block / (b->blocks[0] * b->blocks[1]) * UN_BLOCK;
        for (int32_t c = 0; c < UN_BLOCK_CELLS; c++)
            if (first[c] < first[c + 1])
                correct_cell(a, &near, i0 + c % UN_BLOCK, j0 + c / UN_BLOCK % UN_BLOCK,
                             k0 + c / (UN_BLOCK * UN_BLOCK));
    }
}

/* A move that would end closer to a wall than it began, and too close, is dropped. */
static void apply_moves(void *arg, int64_t begin, int64_t end) {
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
        for (int axis = 0; axis < 3; axis++)
            outside |= t[axis] < margin || t[axis] > size[axis] - margin;
        if (outside) continue;
        if (a->walls->body_count > 0 && un_walls_distance(a->walls, to) < 0.5 * g->h) {
            double d = un_walls_distance_exact(a->walls, to);
            if (d < margin && d < un_walls_distance_exact(a->walls, x)) continue;
        }
        for (int axis = 0; axis < 3; axis++) p->x[axis][q] = t[axis];
    }
}

un_status un_particles_correct(un_context *ctx, un_arena *arena, un_particles *particles,
                               const un_bins *bins, const float *phi, const un_walls *walls) {
    correct_args a = {particles, bins, phi, walls, {NULL, NULL, NULL}};
    for (int axis = 0; axis < 3; axis++) {
        a.move[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof(float));
        if (!a.move[axis]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, bins->block_count, 1, find_moves, &a);
    un_parallel_for(ctx, particles->count, 8192, apply_moves, &a);
    return UN_OK;
}
