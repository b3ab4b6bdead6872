/* Splitting and merging on a grid that warps.
 *
 * An even filling has 2^dim particles in each cell of reference space. Where the grid gathers,
 * particles fill more than that share, where it spreads they fill less. A particle of more than two
 * shares splits in two, along the surface if it is near; one of little, deep in the liquid, joins
 * the nearest one of its cell. Volume, momentum and centre of mass are kept. */
#include "particles/particles.h"

#define SPLIT 2.0
#define MERGE 0.45
/* What a merged particle may have at most, in shares. */
#define MERGED 1.3
/* Deeper than this many cells particles merge. */
#define DEEP 1.5
/* A half stays away from sides by this share of its way. */
#define MARGIN 1e-3
/* Distances this close are the same: where particles lie evenly, rounding must not choose. */
#define TIE 1e-9
/* A half is moved by this share of a cell. */
#define APART 0.2

typedef struct resize_args {
    un_particles *particles;
    const un_warp_resize *def;
    uint8_t *keep, *split;
    double full; /* volume of a share */
} resize_args;

static un_vec3 load_xi(const un_particles *p, int64_t q)
{
    return un_v3(p->xi[0][q], p->xi[1][q], p->xi[2][q]);
}

static void store_xi(un_particles *p, int64_t q, un_vec3 xi)
{
    p->xi[0][q] = xi.x;
    p->xi[1][q] = xi.y;
    p->xi[2][q] = xi.z;
}

/* Particle q takes over particle r. */
static void join(resize_args *a, int32_t q, int32_t r)
{
    un_particles *p = a->particles;
    double total = (double)p->volume[q] + p->volume[r], t = p->volume[r] / total;
    for (int d = 0; d < 3; d++) {
        p->x[d][q] += t * (p->x[d][r] - p->x[d][q]);
        p->v[d][q] += t * (p->v[d][r] - p->v[d][q]);
        p->xi[d][q] += t * (p->xi[d][r] - p->xi[d][q]);
    }
    for (int d = 0; d < 9; d++) p->affine[d][q] += (float)t * (p->affine[d][r] - p->affine[d][q]);
    p->fall[q] = (uint8_t)(p->fall[q] + t * (p->fall[r] - p->fall[q]) + 0.5);
    p->volume[q] = (float)total;
    a->def->share[q] += a->def->share[r];
    a->keep[r] = 0;
    store_xi(p, q, un_warp_locate(a->def->warp, un_particle_position(p, q), load_xi(p, q)));
}

/* The nearest particle of the cell's range that q may join, -1: none. */
static int32_t partner(const resize_args *a, int32_t q, int32_t begin, int32_t end)
{
    const un_particles *p = a->particles;
    un_vec3 xi = load_xi(p, q);
    double least = 1e300;
    int32_t found = -1;
    for (int32_t r = begin; r < end; r++) {
        if (r == q || !a->keep[r] || p->flags[r] & UN_PARTICLE_BALLISTIC) continue;
        if (a->def->share[q] + a->def->share[r] > MERGED * a->full) continue;
        un_vec3 way = un_sub(load_xi(p, r), xi);
        double d = un_dot(way, way);
        if (d < least * (1 - TIE)) least = d, found = r;
    }
    if (found < 0) return -1;
    bool open =
        un_open_way(a->def->walls, un_particle_position(p, q), un_particle_position(p, found));
    return open ? found : -1;
}

static void resize_cells(void *arg, int64_t begin, int64_t end)
{
    resize_args *a = arg;
    const un_bins *b = a->def->bins;
    const un_grid *g = b->grid;
    const un_particles *p = a->particles;
    for (int64_t c = begin; c < end; c++)
        for (int32_t q = b->begin[c]; q < b->begin[c + 1]; q++) {
            double share = a->def->share[q] / a->full;
            bool deep = p->flags[q] & UN_PARTICLE_DEEP;
            a->split[q] = a->keep[q] && share > SPLIT && !deep;
            if (!a->keep[q] || deep || share > MERGE || p->flags[q] & UN_PARTICLE_BALLISTIC)
                continue;
            if (!(un_grid_sample(g, a->def->phi, load_xi(p, q)) < -DEEP * g->h + 1e-3 * g->h))
                continue;
            int32_t r = partner(a, q, b->begin[c], b->begin[c + 1]);
            if (r >= 0) join(a, q, r);
        }
}

/* A direction in reference space, along the surface where it is near. */
static un_vec3 direction_of(const resize_args *a, int32_t q)
{
    const un_grid *g = a->def->bins->grid;
    uint64_t id = (uint64_t)q, stream = un_hash64(a->def->stream + 77);
    un_vec3 xi = load_xi(a->particles, q);
    un_vec3 d = un_v3(un_random(id, stream) - 0.5, un_random(id, stream + 1) - 0.5,
                      g->dim == 2 ? 0 : un_random(id, stream + 2) - 0.5);
    if (un_grid_sample(g, a->def->phi, xi) > -DEEP * g->h) {
        un_vec3 n = un_normalize(un_grid_gradient(g, a->def->phi, xi));
        d = un_mad(d, n, -un_dot(d, n));
        if (g->dim == 2 && un_dot(n, n) > 0) d = un_v3(-n.y, n.x, 0);
    }
    return un_normalize(d);
}

/* Halves particle q; the other half becomes particle r. */
static void halve(resize_args *a, int32_t q, int32_t r)
{
    un_particles *p = a->particles;
    const un_warp *w = a->def->warp;
    un_vec3 x = un_particle_position(p, q), xi = load_xi(p, q);
    un_vec3 step = un_scale(direction_of(a, q), APART * w->grid.h);
    un_vec3 target = un_warp_inside(&w->grid, un_add(xi, step));
    /* not on a side itself, where rounding would tell whether it is outside */
    un_vec3 to = un_scale(un_sub(un_warp_map(w, target), x), 1 - MARGIN);
    p->volume[q] *= 0.5f;
    un_particle_copy(p, r, q);
    /* shorter until both halves are free of walls */
    for (int i = 0; i < 4; i++, to = un_scale(to, 0.5)) {
        un_vec3 one = un_add(x, to), other = un_sub(x, to);
        if (!un_open_way(a->def->walls, x, one) || !un_open_way(a->def->walls, x, other)) continue;
        un_particle_set_position(p, q, one);
        un_particle_set_position(p, r, other);
        store_xi(p, q, un_warp_locate(w, one, xi));
        store_xi(p, r, un_warp_locate(w, other, xi));
        double d[3] = {to.x, to.y, to.z};
        for (int i3 = 0; i3 < 3; i3++)
            for (int b = 0; b < 3; b++) {
                double change = p->affine[3 * i3 + b][q] * d[b];
                p->v[i3][q] += change;
                p->v[i3][r] -= change;
            }
        return;
    }
}

un_status un_particles_resize_warped(un_context *ctx, un_arena *arena, un_particles *p,
                                     const un_warp_resize *def, bool *changed)
{
    const un_bins *b = def->bins;
    resize_args a = {.particles = p, .def = def};
    int32_t count = p->count, extra = 0, merged = 0;
    a.full = def->warp->grid.volume / (1 << def->warp->grid.dim);
    a.keep = un_arena_alloc(arena, (size_t)count + 1, 1);
    a.split = un_arena_alloc(arena, (size_t)count + 1, 1);
    if (!a.keep || !a.split) return UN_ERROR_MEMORY;
    memset(a.keep, 1, (size_t)count);
    un_parallel_for(ctx, (int64_t)b->block_count * b->block_cells, 512, resize_cells, &a);
    for (int32_t q = 0; q < count; q++) {
        extra += a.split[q] && a.keep[q];
        merged += !a.keep[q];
    }
    *changed = extra > 0 || merged > 0;
    if (!*changed) return UN_OK;
    /* merged ones make room for halves */
    UN_TRY(un_particles_reserve(ctx, p, (int64_t)count + extra));
    int32_t place = 0, end = count;
    for (int32_t q = 0; q < count; q++) {
        if (!a.split[q] || !a.keep[q]) continue;
        while (place < count && a.keep[place]) place++;
        int32_t r = place < count ? place : end++;
        halve(&a, q, r);
        if (r < count) {
            a.keep[r] = 1;
            a.split[r] = 0;
        }
    }
    p->count = end;
    if (extra >= merged) return UN_OK;
    int32_t kept = 0;
    for (int32_t q = 0; q < end; q++) {
        if (q < count && !a.keep[q]) continue;
        if (kept != q) un_particle_copy(p, kept, q);
        kept++;
    }
    p->count = kept;
    return UN_OK;
}
