/* The narrow band on a grid that warps [Ibayashi18 section 5; Ferstl, Ando, Wojtan, Westermann &
 * Thuerey 2016]: particles fill the liquid down to a few cells under its surface, and deeper liquid
 * is carried by the grid.
 *
 * The grid's level set is the number of cells to the surface. It is found anew from the particles'
 * in each step, so that nothing drifts, and carried with the velocity to the next grid,
 *
 *     depth(x_c) <- depth(y),   u(x_c) <- u(y),   y = x_c - dt u(x_c - dt / 2 u(x_c)),
 *
 * x_c: the centres of the new grid, y found on the old one. Velocities are interpolated by cubics,
 * or as solver.interpolation says; solver.maccormack corrects them (warp_carry.c).
 *
 * A cell that is deep by this holds one particle at its centre, which stands for all of its liquid:
 * whatever asks particles for volume, momentum or a surface needs no second answer. At its centre
 * it gives its velocity to its cell alone, so the grid gets back what it carried.
 *
 * What flows from deep cells to others becomes particles: each quarter (3D: eighth) of a cell gets
 * one if its liquid was deep by the foot of a point in it, which is another in each step. In the
 * mean that is what flows, however slowly. Particles that get to deep cells are the grid's. Filling
 * cells of the band up to their volume instead made it too dense where it rises: waves grew by 4 %
 * in a period.
 *
 * Near solids, sources, open sides and where flux is measured particles fill the liquid to any
 * depth. */
#include "advect/carry.h"

#define GRAIN 8
/* A cell is deep this much beyond the band. */
#define BEYOND 0.5
/* Of random numbers. */
#define STREAM 0xbad

void un_band_keep(un_band *band, const un_warp *warp)
{
    if (band->width > 0)
        memcpy(band->was, warp->centre, (size_t)warp->grid.cell_count * sizeof *band->was);
}

/* ---- the deep liquid ---- */

typedef struct carry_args {
    const un_band_carry *in;
    un_warp old;
    un_band *band;
    un_particles *particles;
    uint8_t *deep, *keep; /* deep: at cells of the new grid */
    uint8_t *parts;       /* of cells whose liquid was deep */
    int32_t *first; /* at cells: the first of their new particles, from the end of the old ones */
    double full;    /* the volume of a cell */
    int32_t base;
} carry_args;

/* Where the liquid at x was on the old grid, from a guess. */
UN_KERNEL un_vec3 foot_in(const carry_args *a, un_vec3 x, un_vec3 guess, un_vec3 *foot,
                          bool *outside, int dim)
{
    return un_carry_foot_in(&a->old, a->in->u, a->in->dt, x, guess, foot, outside, dim);
}

UN_KERNEL double depth_in(const carry_args *a, un_vec3 xi, int dim)
{
    const un_grid *g = &a->old.grid;
    un_stencil t = un_grid_stencil_in(g, xi, 0.5, dim);
    double depth = 0;
    for (int m = 0; m < 1 << dim; m++)
        depth += un_warp_weight(&t, m, dim) * a->band->depth[un_warp_corner(g, t.base, m, dim)];
    return depth;
}

UN_KERNEL bool was_deep_in(const carry_args *a, un_vec3 xi, int dim)
{
    const un_grid *g = &a->old.grid;
    un_stencil t = un_grid_stencil_in(g, xi, 0.5, dim);
    for (int m = 0; m < 1 << dim; m++)
        if (a->band->deep[un_warp_corner(g, t.base, m, dim)]) return true;
    return false;
}

/* Does liquid come to x from a closed side? It has let go of that. */
UN_KERNEL bool comes_from_side(const carry_args *a, const int32_t at[3], int dim)
{
    const un_grid *g = &a->old.grid;
    un_vec3 centre = un_grid_center(g, at[0], at[1], at[2]), foot;
    for (int d = 0; d < dim; d++) {
        if (at[d] > 1 && at[d] < g->n[d] - 2) continue;
        double half = (at[d] == 1 ? -0.5 : 0.5) * g->h;
        un_vec3 xi = un_add(centre, un_v3(d == 0 ? half : 0, d == 1 ? half : 0, d == 2 ? half : 0));
        bool outside;
        (void)foot_in(a, un_warp_point_in(a->in->warp, xi, dim).x, xi, &foot, &outside, dim);
        if (outside) return true;
    }
    return false;
}

UN_KERNEL bool is_deep_in(const carry_args *a, const int32_t at[3], bool *near, int dim)
{
    const un_grid *g = &a->old.grid;
    int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
    un_vec3 foot;
    bool outside;
    *near = false;
    if (!(a->in->warp->jacobian[c] > 0) || a->band->depth[c] == 0) return false;
    un_vec3 was = foot_in(a, a->in->warp->centre[c], un_grid_center(g, at[0], at[1], at[2]), &foot,
                          &outside, dim);
    *near = was_deep_in(a, was, dim);
    return !outside && depth_in(a, was, dim) > a->band->width + BEYOND &&
           !comes_from_side(a, at, dim);
}

/* The point of part m of a cell that is looked at in this step, in reference space: evenly spread
 * over the part from step to step, for each by an offset of its own. */
UN_KERNEL un_vec3 point_in(const carry_args *a, const int32_t at[3], int m, int dim)
{
    static const double turn[2][3] = {{0.7548776662466927, 0.5698402909980532, 0},
                                      {0.8191725133961645, 0.6710436067037893, 0.5497004779019703}};
    const un_grid *g = &a->old.grid;
    uint64_t id = (uint64_t)un_grid_cell(g, at[0], at[1], at[2]) * 8 + (uint64_t)m;
    double f[3] = {0};
    for (int d = 0; d < dim; d++) {
        double s = un_random(id, STREAM + (uint64_t)d) + (double)a->in->step * turn[dim - 2][d];
        f[d] = (0.5 * ((m >> d & 1) + s - floor(s)) - 0.5) * g->h;
    }
    un_vec3 centre = un_grid_center(g, at[0], at[1], at[2]);
    return un_v3(centre.x + f[0], centre.y + f[1], dim == 2 ? 0 : centre.z + f[2]);
}

/* Parts of a cell whose liquid comes from deep cells, a bit for each. */
UN_KERNEL uint32_t parts_in(const carry_args *a, const int32_t at[3], int dim)
{
    uint32_t parts = 0;
    for (int m = 0; m < 1 << dim; m++) {
        un_vec3 xi = point_in(a, at, m, dim), foot;
        bool outside;
        un_vec3 was =
            foot_in(a, un_warp_point_in(a->in->warp, xi, dim).x, xi, &foot, &outside, dim);
        if (!outside && a->band->deep[un_grid_cell_at(&a->old.grid, was)]) parts |= 1u << m;
    }
    return parts;
}

UN_KERNEL void plan_in(carry_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = &a->old.grid;
    const un_particles *p = a->particles;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            const int32_t *range =
                a->in->bins->begin + un_bins_cell(a->in->bins, at[0], at[1], at[2]);
            bool near;
            a->deep[c] = is_deep_in(a, at, &near, dim);
            for (int32_t q = range[0]; q < range[1]; q++)
                a->keep[q] = !a->deep[c] && !(p->flags[q] & UN_PARTICLE_DEEP);
            a->parts[c] = (uint8_t)(near && !a->deep[c] ? parts_in(a, at, dim) : 0);
            a->first[c] = a->deep[c] ? 1 : __builtin_popcount(a->parts[c]);
        }
    }
}

static void plan_rows(void *arg, int64_t begin, int64_t end)
{
    carry_args *a = arg;
    UN_BY_DIM(a->old.grid.dim, plan_in(a, begin, end, dim));
}

/* A new particle with the velocity that was at the foot of its place, or with `carried`. */
UN_KERNEL void add_in(const carry_args *a, int32_t q, un_vec3 xi, double volume, uint8_t flags,
                      uint8_t fall, const un_vec3 *carried, int dim)
{
    un_particles *p = a->particles;
    const un_grid *g = &a->old.grid;
    un_warp_point at = un_warp_point_in(a->in->warp, xi, dim);
    bool outside;
    un_vec3 y, foot = foot_in(a, at.x, xi, &y, &outside, dim), slope[3] = {{0}};
    un_warp_point was = un_warp_point_in(&a->old, foot, dim);
    double v[3];
    const un_carry_field field = {&a->in->u->x, 3};
    un_carry_sample_in(&a->old, &field, a->in->interpolation, y, foot, v, dim);
    (void)un_warp_blend_in(g, a->in->u, &was.at, slope, dim);
    for (int d = 0; d < dim; d++) slope[d] = un_scale(slope[d], g->inverse_h);
    un_vec3 gradient[3] = {
        un_warp_gradient(&was, un_v3(slope[0].x, slope[1].x, slope[2].x)),
        un_warp_gradient(&was, un_v3(slope[0].y, slope[1].y, slope[2].y)),
        un_warp_gradient(&was, un_v3(slope[0].z, slope[1].z, slope[2].z)),
    };
    for (int i = 0; i < 3; i++) {
        p->affine[3 * i][q] = (float)gradient[i].x;
        p->affine[3 * i + 1][q] = (float)gradient[i].y;
        p->affine[3 * i + 2][q] = (float)gradient[i].z;
    }
    p->xi[0][q] = xi.x;
    p->xi[1][q] = xi.y;
    p->xi[2][q] = xi.z;
    un_particle_set_position(p, q, at.x);
    un_vec3 middle = carried ? *carried : un_v3(v[0], v[1], v[2]);
    un_particle_set_velocity(p, q, un_mad(middle, p->lead, fall * (1.0 / UN_FALL_FREE)));
    p->volume[q] = (float)volume;
    p->flags[q] = flags;
    p->fall[q] = fall;
}

/* What a part of a cell holds in space. */
UN_KERNEL double part_volume_in(const carry_args *a, un_vec3 xi, int dim)
{
    un_warp_point at = un_warp_point_in(a->in->warp, xi, dim);
    return a->full / (1 << dim) * un_warp_det(&at);
}

UN_KERNEL void place_in(const carry_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = &a->old.grid;
    const un_particles *p = a->particles;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            int32_t q = a->base + a->first[c];
            if (a->first[c + 1] == a->first[c]) continue;
            const int32_t *range =
                a->in->bins->begin + un_bins_cell(a->in->bins, at[0], at[1], at[2]);
            uint8_t fall = 0;
            for (int32_t r = range[0]; r < range[1]; r++)
                if (p->flags[r] & UN_PARTICLE_DEEP) fall = p->fall[r];
            un_vec3 centre = un_grid_center(g, at[0], at[1], at[2]);
            if (dim == 2) centre.z = 0;
            if (a->deep[c])
                add_in(a, q, centre, a->full * a->in->warp->jacobian[c], UN_PARTICLE_DEEP, fall,
                       a->in->carried ? &a->in->carried[c] : NULL, dim);
            for (int m = 0; m < 1 << dim && !a->deep[c]; m++) {
                if (!(a->parts[c] >> m & 1)) continue;
                un_vec3 xi = point_in(a, at, m, dim);
                add_in(a, q++, xi, part_volume_in(a, xi, dim), 0, fall, NULL, dim);
            }
        }
    }
}

static void place_rows(void *arg, int64_t begin, int64_t end)
{
    const carry_args *a = arg;
    UN_BY_DIM(a->old.grid.dim, place_in(a, begin, end, dim));
}

typedef struct volume_args {
    un_particles *particles;
    float factor;
} volume_args;

static double deep_volume(void *arg, int64_t begin, int64_t end)
{
    const un_particles *p = ((const volume_args *)arg)->particles;
    double sum = 0;
    for (int64_t q = begin; q < end; q++)
        if (p->flags[q] & UN_PARTICLE_DEEP) sum += p->volume[q];
    return sum;
}

static void scale_deep(void *arg, int64_t begin, int64_t end)
{
    const volume_args *a = arg;
    for (int64_t q = begin; q < end; q++)
        if (a->particles->flags[q] & UN_PARTICLE_DEEP) a->particles->volume[q] *= a->factor;
}

/* What flowed between band and grid was counted in whole particles: the grid's take the rest, so
 * that all together keep their volume. */
static void keep_volume(un_context *ctx, un_particles *p, double before)
{
    volume_args a = {.particles = p};
    double deep = un_parallel_sum(ctx, p->count, deep_volume, &a);
    if (!(deep > 0)) return;
    a.factor = (float)un_clamp(1 + (before - un_particles_volume(ctx, p)) / deep, 0.5, 2);
    un_parallel_for(ctx, p->count, 4096, scale_deep, &a);
}

un_status un_band_carry_deep(un_context *ctx, un_arena *arena, un_band *band, un_particles *p,
                             const un_band_carry *in)
{
    const un_grid *g = &in->warp->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2], total = 0;
    double before = un_particles_volume(ctx, p);
    carry_args a = {.in = in,
                    .old = *in->warp,
                    .band = band,
                    .particles = p,
                    .full = g->volume,
                    .base = p->count};
    a.old.centre = band->was;
    a.deep = un_arena_alloc(arena, (size_t)g->cell_count, 1);
    a.parts = un_arena_alloc(arena, (size_t)g->cell_count, 1);
    a.keep = un_arena_alloc(arena, (size_t)p->count + 1, 1);
    a.first = un_arena_alloc(arena, (size_t)g->cell_count + 1, sizeof *a.first);
    if (!a.deep || !a.parts || !a.keep || !a.first) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, rows, GRAIN, plan_rows, &a);
    for (int64_t c = 0; c <= g->cell_count; c++) {
        int32_t count = c < g->cell_count ? a.first[c] : 0;
        a.first[c] = (int32_t)total;
        total += count;
    }
    UN_TRY(un_particles_reserve(ctx, p, p->count + total));
    uint8_t *keep = un_arena_alloc(arena, (size_t)(p->count + total) + 1, 1);
    if (!keep) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, rows, GRAIN, place_rows, &a);
    memcpy(keep, a.keep, (size_t)p->count);
    memset(keep + p->count, 1, (size_t)total);
    memcpy(band->deep, a.deep, (size_t)g->cell_count);
    p->count += (int32_t)total;
    (void)un_particles_filter(p, keep);
    keep_volume(ctx, p, before);
    return UN_OK;
}
