/* Particles on a grid that warps: their places in reference space, and back. */
#include "particles/particles.h"

#define GRAIN 4096

typedef struct map_args {
    un_particles *particles;
    const un_warp *warp;
    float *share;
    int32_t first;
    bool seeded;
} map_args;

static void store_xi(un_particles *p, int64_t q, un_vec3 xi)
{
    p->xi[0][q] = xi.x;
    p->xi[1][q] = xi.y;
    p->xi[2][q] = xi.z;
}

static un_vec3 load_xi(const un_particles *p, int64_t q)
{
    return un_v3(p->xi[0][q], p->xi[1][q], p->xi[2][q]);
}

static void locate(void *arg, int64_t begin, int64_t end)
{
    map_args *a = arg;
    un_eight x, xi;
    for (int64_t q = begin; q < end; q += 8) {
        un_eight_load(&x, a->particles->x, q, end - q);
        un_eight_load(&xi, a->particles->xi, q, end - q);
        un_warp_eight_find(a->warp, &x, &xi);
        un_eight_store(a->particles->xi, &xi, q, end - q);
    }
}

void un_particles_locate(un_context *ctx, un_particles *p, const un_warp *warp)
{
    map_args a = {.particles = p, .warp = warp};
    un_parallel_for(ctx, p->count, GRAIN, locate, &a);
}

un_status un_particles_adopt(un_context *ctx, un_particles *p, const un_particles *from,
                             const un_warp *warp)
{
    UN_TRY(un_particles_reserve(ctx, p, (int64_t)from->count + 1));
    p->count = from->count;
    for (int32_t q = 0; q < from->count; q++) {
        un_vec3 x = un_particle_position(from, q);
        un_particle_set_position(p, q, x);
        un_particle_set_velocity(p, q, un_particle_velocity(from, q));
        p->volume[q] = from->volume[q];
        p->flags[q] = p->fall[q] = 0;
        for (int i = 0; i < 9; i++) p->affine[i][q] = 0;
        store_xi(p, q, un_warp_guess(warp, x));
    }
    return UN_OK;
}

static void map(void *arg, int64_t begin, int64_t end)
{
    map_args *a = arg;
    un_particles *p = a->particles;
    un_warp_eight e;
    double det[8];
    for (int64_t q = a->first + begin; q < a->first + end; q += 8) {
        int64_t count = un_min64(a->first + end - q, 8);
        un_eight_load(&e.xi, a->seeded ? p->x : p->xi, q, count);
        un_warp_eight_at(a->warp, &e);
        un_eight_store(p->x, &e.x, q, count);
        if (!a->seeded) continue;
        un_eight_store(p->xi, &e.xi, q, count);
        un_warp_eight_det(&e, det);
        for (int64_t n = 0; n < count; n++) p->volume[q + n] = (float)(p->volume[q + n] * det[n]);
    }
}

void un_particles_map(un_context *ctx, un_particles *p, const un_warp *warp, int32_t first,
                      bool seeded)
{
    map_args a = {.particles = p, .warp = warp, .first = first, .seeded = seeded};
    un_parallel_for(ctx, p->count - first, GRAIN, map, &a);
}

static void find_shares(void *arg, int64_t begin, int64_t end)
{
    map_args *a = arg;
    const un_warp *w = a->warp;
    const un_particles *p = a->particles;
    un_warp_eight e;
    double det[8];
    for (int64_t q = begin; q < end; q += 8) {
        int64_t count = un_min64(end - q, 8);
        un_eight_load(&e.xi, p->xi, q, count);
        un_warp_eight_at(w, &e);
        un_warp_eight_det(&e, det);
        for (int64_t n = 0; n < count; n++) {
            /* one that stands for a cell lies at its centre, where the map has a kink */
            if (p->flags[q + n] & UN_PARTICLE_DEEP)
                det[n] = w->jacobian[un_grid_cell_at(&w->grid, un_eight_of(&e.xi, n))];
            a->share[q + n] = (float)(p->volume[q + n] / det[n]);
        }
    }
}

void un_particles_shares(un_context *ctx, float *share, const un_particles *p, const un_warp *warp)
{
    map_args a = {.particles = (un_particles *)(uintptr_t)p, .warp = warp, .share = share};
    un_parallel_for(ctx, p->count, GRAIN, find_shares, &a);
}

/* ---- distance to walls ---- */

double un_warp_clearance(const un_walls *walls, const un_walls *on_warp, un_vec3 x, un_vec3 xi)
{
    const un_grid *g = on_warp->grid;
    if (walls->bodies->count == 0) return un_walls_sides(walls, x);
    double s[3] = {xi.x * g->inverse_h, xi.y * g->inverse_h, xi.z * g->inverse_h};
    int32_t n[3] = {0};
    for (int a = 0; a < g->dim; a++) n[a] = un_clampi((int32_t)s[a] + 1, 1, g->n[a] - 1);
    int64_t node = un_grid_node(g, n[0], n[1], n[2]);
    double solid = on_warp->phi[node] - un_length(un_sub(on_warp->warp->node[node], x));
    return fmin(solid, un_walls_sides(walls, x));
}

typedef struct clear_args {
    float *wall;
    const un_particles *particles;
    const un_walls *walls, *on_warp;
} clear_args;

static void find_clearances(void *arg, int64_t begin, int64_t end)
{
    clear_args *a = arg;
    for (int64_t q = begin; q < end; q++)
        a->wall[q] = (float)un_warp_clearance(
            a->walls, a->on_warp, un_particle_position(a->particles, q), load_xi(a->particles, q));
}

void un_particles_clearances(un_context *ctx, float *wall, const un_particles *particles,
                             const un_walls *walls, const un_walls *on_warp)
{
    clear_args a = {wall, particles, walls, on_warp};
    un_parallel_for(ctx, particles->count, GRAIN, find_clearances, &a);
}
