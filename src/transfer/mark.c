/* Marks particles: as ballistic, on tets also as calm or near the surface, and finds how deep each
 * lies there. */
#include "transfer/transfer.h"

#include "base/lanes.h"

/* Particles this close to the surface, in cells, count as near it. */
#define SURFACE_DEPTH 1.5
/* Drops in a leaf this many times wider than their own stay drops (particles/drops.c). */
#define LANDED_WIDTH 2.0
/* How far outside the level set particles at the edges of thick liquid still belong to it, in
 * radii: the edges of a sheet from an emitter stand out by one. */
#define CLING_REACH 2.0
/* Least radius for this, in finest cells: that of a half cell's particle, because the smaller
 * particles at the rim of a stream stand out as far. */
#define HALF_CELL_RADIUS 0.31

double un_cling_reach(const un_cling *c, double radius)
{
    return CLING_REACH * fmax(radius, HALF_CELL_RADIUS * c->h);
}

bool un_cling_holds(const un_cling *c, const un_markers *m, int64_t q, double depth)
{
    const un_particles *p = &m->particles;
    double r = fmax(m->radius[q], HALF_CELL_RADIUS * c->h);
    if (!(depth < CLING_REACH * r)) return false;
    if (c->tension > c->gravity * r * r) return true;
    if (!c->viscous) return false;
    double nu = p->density ? (double)(p->viscosity[q] / p->density[q]) : c->thickness;
    return nu > r * sqrt(c->gravity * r);
}

bool un_cling_holds_in_grid(const un_cling *c, const un_particles *p, int64_t q, double depth)
{
    double r = HALF_CELL_RADIUS * c->h;
    if (!(depth < CLING_REACH * r)) return false;
    if (c->tension > c->gravity * r * r) return true;
    if (!c->viscous) return false;
    double nu = p->density ? (double)(p->viscosity[q] / p->density[q]) : c->thickness;
    return nu > r * sqrt(c->gravity * r);
}

typedef struct mark_args {
    un_markers *markers;
    const un_tets *mesh;
    const float *phi, *wall;
    const uint8_t *thick;
    const un_cling *cling;
    int64_t first; /* number on one rank of the rank's particle 0, where it is its own */
} mark_args;

static void mark_particles(void *arg, int64_t begin, int64_t end, double *sums)
{
    mark_args *a = arg;
    un_markers *s = a->markers;
    un_particles *p = &s->particles;
    const un_tets *mesh = a->mesh;
    double gravity = a->cling->gravity;
    for (int64_t q = begin - a->first; q < end - a->first; q++) {
        int32_t t = s->bins.tet[q];
        const int32_t *n = mesh->tet[t];
        un_tets_place place;
        un_vec3 x = un_particle_position(p, q);
        un_tet_bins_place(&s->bins, mesh, q, x, &place);
        double v[4], wall = INFINITY, far;
        bool wet = false;
        for (int i = 0; i < 4; i++) {
            v[i] = a->phi[n[i]];
            wet |= v[i] < 0;
            far = a->wall[n[i]] - un_length(un_sub(x, mesh->x[n[i]]));
            wall = far < wall ? far : wall;
        }
        double depth = un_tet_sample(mesh, a->phi, &place), h = un_tets_size(mesh, t);
        bool clings = un_cling_holds(a->cling, s, q, depth);
        wet = wet || clings;
        un_vec3 g = un_normalize(un_tets_gradient(mesh, t, v));
        s->depth[q] = (float)depth;
        s->normal[0][q] = (float)g.x;
        s->normal[1][q] = (float)g.y;
        s->normal[2][q] = (float)g.z;
        s->wall[q] = (float)wall;
        un_vec3 u = un_particle_velocity(p, q);
        bool calm_here = un_dot(u, u) < gravity * h + a->cling->tension / h;
        int calm = calm_here ? UN_PARTICLE_CALM : 0;
        int near = depth > -SURFACE_DEPTH * h ? UN_PARTICLE_SURFACE : 0;
        double edge = h / (LANDED_WIDTH * UN_LEAF_WIDTH);
        bool small = edge * edge * edge > p->volume[q];
        /* a particle without cells of its own flies until it meets the surface itself */
        if (small && !clings && depth > (double)s->radius[q]) wet = false;
        bool landed = small && p->flags[q] & UN_PARTICLE_APART;
        int halved = p->flags[q] & UN_PARTICLE_HALVED_MASK;
        int of_liquid = near | calm | halved | (landed ? UN_PARTICLE_LANDED : 0);
        int thin = a->thick && !a->thick[t] ? UN_PARTICLE_THIN : 0;
        p->flags[q] = (uint8_t)((wet ? of_liquid : UN_PARTICLE_BALLISTIC) | thin);
        if (!wet)
            sums[0] += 1;
        else if (depth < 0 && (!a->thick || a->thick[t]))
            sums[1] += p->volume[q];
    }
}

double un_transfer_mark(un_context *ctx, un_markers *markers, const un_tets *mesh, const float *phi,
                        const float *wall, const uint8_t *thick, const un_cling *cling)
{
    double sums[2];
    const un_particle_share *share = markers->share;
    mark_args a = {markers, mesh, phi, wall, thick, cling, 0};
    if (share) {
        a.first = share->own.begin - share->begin;
        un_ranks_sums(ctx, share->own, 2, mark_particles, &a, sums);
    } else {
        un_parallel_sums(ctx, markers->particles.count, 2, mark_particles, &a, sums);
    }
    markers->ballistic = (int64_t)sums[0];
    return sums[1];
}

/* ---- on the grid ---- */

typedef struct grid_args {
    un_particles *particles;
    const float *phi;
    const un_grid *grid;
    const uint8_t *thick;
    const un_cling *cling;
} grid_args;

/* One instruction, where fminf and fmaxf are calls. */
static inline float lesser(float a, float b)
{
    return a < b ? a : b;
}
static inline float greater(float a, float b)
{
    return a > b ? a : b;
}

/* Cells of a particle: the lowest of those whose centres are around it, and the one it is in. */
typedef struct mark_places {
    int64_t base[8], cell[8];
} mark_places;

UN_KERNEL void find_one_place(mark_places *at, const grid_args *a, int64_t q, int dim)
{
    un_vec3 x = un_particle_position(a->particles, q);
    at->base[0] = un_grid_stencil_in(a->grid, x, 0.5, dim).base;
    at->cell[0] = un_grid_stencil_in(a->grid, x, 0, dim).base;
}

/* The same of eight. */
UN_KERNEL void find_places(mark_places *at, const grid_args *a, int64_t q, int dim)
{
    const un_grid *g = a->grid;
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    un_doubles8 base = {0}, cell = {0};
    for (int axis = 0; axis < dim; axis++) {
        un_doubles8 s = un_doubles8_load(a->particles->x[axis] + q, 8) - origin[axis];
        s *= g->inverse_h;
        base += un_doubles8_place(s - 0.5, g->n[axis] - 2) * (double)g->stride[axis];
        cell += un_doubles8_place(s, g->n[axis] - 2) * (double)g->stride[axis];
    }
    un_longs8 whole[2] = {__builtin_convertvector(base, un_longs8),
                          __builtin_convertvector(cell, un_longs8)};
    memcpy(at->base, &whole[0], sizeof at->base);
    memcpy(at->cell, &whole[1], sizeof at->cell);
}

UN_KERNEL void mark_one(const grid_args *a, int64_t q, int64_t base, int64_t cell, double *sums,
                        int dim)
{
    un_particles *p = a->particles;
    const un_grid *g = a->grid;
    float reach = a->cling ? (float)a->cling->reach : 0;
    bool thin = a->cling && a->cling->walls && a->cling->walls->parted;
    const float *v = a->phi + base;
    int64_t sy = g->stride[1];
    float least = lesser(lesser(v[0], v[1]), lesser(v[sy], v[sy + 1]));
    float most = greater(greater(v[0], v[1]), greater(v[sy], v[sy + 1]));
    if (dim == 3) {
        v += g->stride[2];
        least = lesser(least, lesser(lesser(v[0], v[1]), lesser(v[sy], v[sy + 1])));
        most = greater(most, greater(greater(v[0], v[1]), greater(v[sy], v[sy + 1])));
    }
    bool wet = least < reach;
    if (!wet && a->cling) {
        un_vec3 x = un_particle_position(p, q);
        double depth = un_grid_sample_in(g, a->phi, x, dim);
        if (thin) depth = fmin(depth, un_walls_sample_side(a->cling->walls, a->phi, x));
        wet = depth < a->cling->touch || un_cling_holds_in_grid(a->cling, p, q, depth);
    }
    bool thick = !a->thick || a->thick[cell];
    p->flags[q] = (wet ? 0 : UN_PARTICLE_BALLISTIC) | (thick ? 0 : UN_PARTICLE_THIN);
    if (!wet)
        sums[0] += 1;
    else if (thick &&
             (most < 0 || un_grid_sample_in(g, a->phi, un_particle_position(p, q), dim) < 0))
        sums[1] += p->volume[q];
}

UN_KERNEL void mark_in_grid(const grid_args *a, int64_t begin, int64_t end, double *sums, int dim)
{
    mark_places at;
    for (; begin + 8 <= end; begin += 8) {
        find_places(&at, a, begin, dim);
        for (int n = 0; n < 8; n++) mark_one(a, begin + n, at.base[n], at.cell[n], sums, dim);
    }
    for (; begin < end; begin++) {
        find_one_place(&at, a, begin, dim);
        mark_one(a, begin, at.base[0], at.cell[0], sums, dim);
    }
}

static void mark_grid(void *arg, int64_t begin, int64_t end, double *sums)
{
    const grid_args *a = arg;
    UN_BY_DIM(a->grid->dim, mark_in_grid(a, begin, end, sums, dim));
}

int64_t un_transfer_mark_ballistic(un_context *ctx, un_particles *particles, const float *phi,
                                   const un_grid *grid, const uint8_t *thick, const un_cling *cling,
                                   double *volume_inside)
{
    grid_args a = {particles, phi, grid, thick, cling};
    double sums[2];
    un_parallel_sums(ctx, particles->count, 2, mark_grid, &a, sums);
    *volume_inside = sums[1];
    return (int64_t)sums[0];
}

void un_transfer_mark_some(un_particles *particles, const float *phi, const un_grid *grid,
                           const uint8_t *thick, const un_cling *cling, int64_t begin, int64_t end,
                           double sums[2])
{
    grid_args a = {particles, phi, grid, thick, cling};
    mark_grid(&a, begin, end, sums);
}

/* ---- emitted volume ---- */

void un_emitted_add(un_emitted *emitted, const un_tets *mesh, const un_tets_place *place,
                    double volume)
{
    for (int i = 0; i < 4; i++) emitted->volume[mesh->tet[place->tet][i]] += place->w[i] * volume;
}

un_status un_emitted_place(un_context *ctx, un_emitted *emitted, const un_tets *mesh,
                           const un_particles *p)
{
    UN_TRY(un_emitted_need(ctx, emitted, mesh->node_count));
    memset(emitted->volume, 0, (size_t)mesh->node_count * sizeof *emitted->volume);
    for (int32_t q = 0; q < p->count; q++) {
        un_tets_place place;
        if (!(p->flags[q] & UN_PARTICLE_EMITTED)) continue;
        un_tets_locate(mesh, un_particle_position(p, q), &place);
        un_emitted_add(emitted, mesh, &place, p->volume[q]);
    }
    return UN_OK;
}

un_status un_emitted_need(un_context *ctx, un_emitted *emitted, int64_t nodes)
{
    UN_TRY(un_array_need(ctx, (void **)&emitted->volume, &emitted->capacity, (size_t)nodes + 1,
                         sizeof *emitted->volume));
    emitted->any = true;
    return UN_OK;
}

void un_emitted_free(un_context *ctx, un_emitted *emitted)
{
    un_free(ctx, emitted->volume);
    *emitted = (un_emitted){0};
}
