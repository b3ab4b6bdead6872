/* Probes of what the level set cannot see: thin liquid on the floor, and streams of any width. */
#include "particles/particles.h"

/* ---- wet: how far the floor is wet ---- */

/* Liquid lies on the floor if a wall is this many finest cells below it, or its own radius. */
#define FLOOR_CELLS 0.75
/* Sampled distances are at most this many cells off: enough to tell what lies nowhere. */
#define FAR_CELLS 1.5
/* Mean depth over a strip of the floor, a cell wide and as long as the domain, that makes it wet,
 * in cells. A drop alone does not. */
#define WET_DEPTH 0.05

typedef struct wet_args {
    const un_particles *particles;
    const un_walls *walls;
    un_vec3 down;
    double h, large; /* cell, and a volume whose ball is less than half as wide as that */
    uint8_t *lies;
} wet_args;

static void find_lying(void *arg, int64_t begin, int64_t end)
{
    const wet_args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        double reach = FLOOR_CELLS * a->h; /* more for those larger than half a cell */
        if (a->particles->volume[q] > a->large)
            reach = fmax(reach, 1.5 * un_particle_ball(a->particles, q));
        un_vec3 x = un_particle_position(a->particles, q), below = un_mad(x, a->down, reach);
        bool far = a->walls->phi && un_walls_distance(a->walls, x) > reach + FAR_CELLS * a->h;
        a->lies[q] = !far && un_walls_distance_exact(a->walls, below) <= 0;
    }
}

static double along(un_vec3 x, int32_t axis)
{
    return axis == 0 ? x.x : axis == 1 ? x.y : x.z;
}

double un_particles_wet(un_context *ctx, const un_particles *p, const un_walls *walls,
                        un_vec3 gravity, int32_t axis, double sign)
{
    const un_grid *g = walls->grid;
    wet_args a = {.particles = p, .walls = walls, .down = un_normalize(gravity), .h = g->h};
    a.large = 0.25 * g->h * g->h * (g->dim == 2 ? 1 : g->h);
    if (!(un_length(gravity) > 0)) a.down = un_v3(0, -1, 0);
    int64_t strips = g->n[axis];
    double across = axis == 0 ? g->size.z : g->size.x, wet = NAN, *volume;
    if (g->dim == 2) across = 1;
    a.lies = un_alloc(ctx, (size_t)p->count + 1, 1);
    volume = un_alloc_zero(ctx, (size_t)strips, sizeof *volume);
    if (a.lies && volume) {
        un_parallel_for(ctx, p->count, 4096, find_lying, &a);
        for (int64_t q = 0; q < p->count; q++)
            if (a.lies[q])
                volume[un_clampi((int32_t)(along(un_particle_position(p, q), axis) / g->h), 0,
                                 (int32_t)strips - 1)] += p->volume[q];
        double least = WET_DEPTH * g->h * g->h * across;
        for (int64_t q = 0; q < p->count; q++) {
            double at = along(un_particle_position(p, q), axis);
            if (!a.lies[q] ||
                volume[un_clampi((int32_t)(at / g->h), 0, (int32_t)strips - 1)] < least)
                continue;
            if (!(sign * at <= sign * wet)) wet = at;
        }
    }
    un_free(ctx, a.lies);
    un_free(ctx, volume);
    return wet;
}

/* ---- flux: volume through a rectangle ---- */

typedef struct flux_args {
    const un_particles *particles;
    double min[3], max[3];
    int32_t axis, dim;
    double h;
} flux_args;

/* A particle is spread along the axis by a hat of a cell's width, of its own where that is larger:
 * its velocity times its share of the plane. */
static double flux_of(void *arg, int64_t begin, int64_t end)
{
    const flux_args *a = arg;
    const un_particles *p = a->particles;
    double sum = 0;
    for (int64_t q = begin; q < end; q++) {
        bool in = true;
        for (int axis = 0; axis < a->dim; axis++)
            in = in && (axis == a->axis ||
                        (p->x[axis][q] >= a->min[axis] && p->x[axis][q] <= a->max[axis]));
        if (!in) continue;
        double width = fmax(a->h, 3.2 * un_particle_ball(p, q));
        double d = fabs(p->x[a->axis][q] - a->min[a->axis]) / width;
        if (d < 1) sum += p->volume[q] * p->v[a->axis][q] * (1 - d) / width;
    }
    return sum;
}

double un_particles_flux(un_context *ctx, const un_particles *particles, un_vec3 min, un_vec3 max,
                         int32_t axis, double h)
{
    flux_args a = {particles, {min.x, min.y, min.z},   {max.x, max.y, max.z},
                   axis,      particles->flat ? 2 : 3, h};
    return un_parallel_sum(ctx, particles->count, flux_of, &a);
}
