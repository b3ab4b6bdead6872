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

static un_vec3 overlap_sum(const correct_args *a, int64_t q, un_vec3 x) {
    const un_grid *g = a->bins->grid;
    const un_particles *p = a->particles;
    double d0 = DISTANCE * g->h, inverse = 1 / g->h;
    double s[3] = {(x.x - g->origin.x) * inverse - 0.5, (x.y - g->origin.y) * inverse - 0.5,
                   (x.z - g->origin.z) * inverse - 0.5};
    int32_t lo[3];
    for (int axis = 0; axis < 3; axis++) lo[axis] = un_clampi((int32_t)s[axis], 0, g->n[axis] - 2);
    un_vec3 sum = {0, 0, 0};
    for (int c = 0; c < 8; c++) {
        uint32_t cell =
            un_bins_cell(a->bins, lo[0] + (c & 1), lo[1] + (c >> 1 & 1), lo[2] + (c >> 2));
        for (int32_t r = a->bins->begin[cell]; r < a->bins->begin[cell + 1]; r++) {
            double dx = x.x - p->x[0][r], dy = x.y - p->x[1][r], dz = x.z - p->x[2][r];
            double d2 = dx * dx + dy * dy + dz * dz;
            if (d2 >= d0 * d0 || r == q || (p->flags[r] & UN_PARTICLE_BALLISTIC)) continue;
            double d = sqrt(d2);
            if (d < 1e-6 * d0) { /* on top of each other: part them by their order */
                dx = r > q ? d0 : -d0;
                dy = dz = 0;
                d = d0;
                sum.x += dx * p->volume[r] / (p->volume[q] + p->volume[r]);
                continue;
            }
            double w = (d0 - d) / d * p->volume[r] / (p->volume[q] + p->volume[r]);
            sum.x += w * dx;
            sum.y += w * dy;
            sum.z += w * dz;
        }
    }
    return un_scale(sum, STRENGTH);
}

static void find_moves(void *arg, int64_t begin, int64_t end) {
    correct_args *a = arg;
    const un_grid *g = a->bins->grid;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(a->particles, q), move = {0, 0, 0};
        if (!(a->particles->flags[q] & UN_PARTICLE_BALLISTIC)) move = overlap_sum(a, q, x);
        if (un_dot(move, move) > 0 && un_grid_sample(g, a->phi, x) > -SURFACE_DEPTH * g->h) {
            un_vec3 n = un_normalize(un_grid_gradient(g, a->phi, x));
            move = un_mad(move, n, -un_dot(move, n));
        }
        double length = un_length(move);
        if (length > MOVE_MAX * g->h) move = un_scale(move, MOVE_MAX * g->h / length);
        a->move[0][q] = (float)move.x;
        a->move[1][q] = (float)move.y;
        a->move[2][q] = (float)move.z;
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
    un_parallel_for(ctx, particles->count, 2048, find_moves, &a);
    un_parallel_for(ctx, particles->count, 8192, apply_moves, &a);
    return UN_OK;
}
