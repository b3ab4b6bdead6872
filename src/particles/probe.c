/* Probes of what the level set cannot see: thin liquid on the floor, and streams of any width. */
#include "particles/particles.h"
#include "ranks/ranks.h"

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

typedef struct wet_floor {
    wet_args args;
    int32_t axis;
    double sign, least;
    int32_t strip_count;
    double *volume; /* by strip, of what lies there */
} wet_floor;

static int32_t strip_of(const wet_floor *f, double at)
{
    return un_clampi((int32_t)(at / f->args.h), 0, f->strip_count - 1);
}

static un_status begin_floor(un_context *ctx, wet_floor *f, const un_particles *p,
                             const un_walls *walls, un_vec3 gravity)
{
    const un_grid *g = walls->grid;
    wet_args *a = &f->args;
    *a = (wet_args){.particles = p, .walls = walls, .down = un_normalize(gravity), .h = g->h};
    a->large = 0.25 * g->h * g->h * (g->dim == 2 ? 1 : g->h);
    if (!(un_length(gravity) > 0)) a->down = un_v3(0, -1, 0);
    double across = g->dim == 2 ? 1 : f->axis == 0 ? g->size.z : g->size.x;
    f->least = WET_DEPTH * g->h * g->h * across;
    f->strip_count = g->n[f->axis];
    a->lies = un_alloc(ctx, (size_t)p->count + 1, 1);
    f->volume = un_alloc_zero(ctx, (size_t)f->strip_count, sizeof *f->volume);
    return a->lies && f->volume ? UN_OK : UN_ERROR_MEMORY;
}

static void end_floor(un_context *ctx, wet_floor *f)
{
    un_free(ctx, f->args.lies);
    un_free(ctx, f->volume);
}

static void add_strips(un_context *ctx, wet_floor *f)
{
    const un_particles *p = f->args.particles;
    un_parallel_for(ctx, p->count, 4096, find_lying, &f->args);
    for (int64_t q = 0; q < p->count; q++)
        if (f->args.lies[q])
            f->volume[strip_of(f, along(un_particle_position(p, q), f->axis))] += p->volume[q];
}

static double find_farthest(const wet_floor *f)
{
    const un_particles *p = f->args.particles;
    double wet = NAN;
    for (int64_t q = 0; q < p->count; q++) {
        double at = along(un_particle_position(p, q), f->axis);
        if (!f->args.lies[q] || f->volume[strip_of(f, at)] < f->least) continue;
        if (!(f->sign * at <= f->sign * wet)) wet = at;
    }
    return wet;
}

double un_particles_wet(un_context *ctx, const un_particles *p, const un_walls *walls,
                        un_vec3 gravity, int32_t axis, double sign)
{
    wet_floor f = {.axis = axis, .sign = sign};
    double wet = NAN;
    if (begin_floor(ctx, &f, p, walls, gravity) == UN_OK) {
        add_strips(ctx, &f);
        wet = find_farthest(&f);
    }
    end_floor(ctx, &f);
    return wet;
}

/* Ranks add to the strips in turn, so in the order of one rank. */
un_status un_markers_wet(un_context *ctx, const un_markers *m, const un_walls *walls,
                         un_vec3 gravity, int32_t axis, double sign, double *wet)
{
    un_particles mine = un_particles_part(&m->particles, un_markers_own(m));
    wet_floor f = {.axis = axis, .sign = sign};
    un_status status = un_ranks_agree(ctx, begin_floor(ctx, &f, &mine, walls, gravity));
    if (status == UN_OK) {
        size_t bytes = (size_t)f.strip_count * sizeof *f.volume;
        un_ranks_begin_turn(ctx, f.volume, bytes);
        add_strips(ctx, &f);
        un_ranks_end_turn(ctx, f.volume, bytes);
        double far = find_farthest(&f);
        far = un_ranks_max(ctx, isnan(far) ? -INFINITY : sign * far);
        *wet = isfinite(far) ? sign * far : NAN;
    }
    end_floor(ctx, &f);
    return status;
}

/* What lies on the floor, on its way to rank 0. */
typedef struct lying {
    uint32_t id;
    float volume;
    double at;
} lying;

static un_status list_lying(un_context *ctx, const wet_floor *f, const un_listed *own, lying **list,
                            int32_t **to, int64_t *count)
{
    const un_particles *p = f->args.particles;
    int64_t n = 0;
    for (int64_t k = 0; k < own->count; k++) n += f->args.lies[own->index[k]];
    *list = un_alloc(ctx, (size_t)n + 1, sizeof **list);
    *to = un_alloc_zero(ctx, (size_t)n + 1, sizeof **to);
    if (!*list || !*to) return UN_ERROR_MEMORY;
    *count = 0;
    for (int64_t k = 0; k < own->count; k++) {
        int32_t q = own->index[k];
        if (!f->args.lies[q]) continue;
        memset(&(*list)[*count], 0, sizeof **list);
        (*list)[*count].id = own->id[k];
        (*list)[*count].volume = p->volume[q];
        (*list)[(*count)++].at = along(un_particle_position(p, q), f->axis);
    }
    return UN_OK;
}

/* Of all that lies, as find_farthest, adding up in the order of numbers. */
static un_status find_wet(un_context *ctx, wet_floor *f, const lying *all, int64_t count,
                          double *wet)
{
    un_arena arena;
    un_arena_init(&arena, ctx);
    uint32_t *id = un_arena_alloc(&arena, (size_t)count + 1, sizeof *id);
    int32_t *order = un_arena_alloc(&arena, (size_t)count + 1, sizeof *order);
    un_status status = id && order ? UN_OK : UN_ERROR_MEMORY;
    for (int64_t i = 0; status == UN_OK && i < count; i++) id[i] = all[i].id;
    if (status == UN_OK) status = un_parallel_sort(ctx, &arena, order, id, count, 32);
    *wet = NAN;
    for (int64_t i = 0; status == UN_OK && i < count; i++)
        f->volume[strip_of(f, all[order[i]].at)] += all[order[i]].volume;
    for (int64_t i = 0; status == UN_OK && i < count; i++) {
        double at = all[i].at;
        if (f->volume[strip_of(f, at)] < f->least) continue;
        if (!(f->sign * at <= f->sign * *wet)) *wet = at;
    }
    un_arena_free(&arena);
    return status;
}

un_status un_particles_wet_listed(un_context *ctx, const un_particles *p, const un_listed *own,
                                  const un_walls *walls, un_vec3 gravity, int32_t axis, double sign,
                                  double *wet)
{
    wet_floor f = {.axis = axis, .sign = sign};
    lying *mine = NULL;
    int32_t *to = NULL;
    void *all = NULL;
    int64_t count = 0, all_count = 0;
    un_status status = begin_floor(ctx, &f, p, walls, gravity);
    if (status == UN_OK) {
        un_parallel_for(ctx, p->count, 4096, find_lying, &f.args);
        status = list_lying(ctx, &f, own, &mine, &to, &count);
    }
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK)
        status = un_exchange_send(ctx, "lying", mine, to, count, sizeof *mine, &all, &all_count);
    if (status == UN_OK) status = un_ranks_agree(ctx, find_wet(ctx, &f, all, all_count, wet));
    un_free(ctx, mine);
    un_free(ctx, to);
    un_free(ctx, all);
    end_floor(ctx, &f);
    return status;
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
static void add_flux(void *arg, int64_t begin, int64_t end, double *sums)
{
    const flux_args *a = arg;
    const un_particles *p = a->particles;
    double sum = *sums;
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
    *sums = sum;
}

static flux_args through(const un_particles *p, un_vec3 min, un_vec3 max, int32_t axis, double h)
{
    return (flux_args){p, {min.x, min.y, min.z}, {max.x, max.y, max.z}, axis, p->flat ? 2 : 3, h};
}

double un_particles_flux(un_context *ctx, const un_particles *particles, un_vec3 min, un_vec3 max,
                         int32_t axis, double h)
{
    flux_args a = through(particles, min, max, axis, h);
    double flux;
    un_parallel_sums(ctx, particles->count, 1, add_flux, &a, &flux);
    return flux;
}

un_status un_markers_flux(un_context *ctx, const un_markers *m, un_vec3 min, un_vec3 max,
                          int32_t axis, double h, double *flux)
{
    flux_args a = through(&m->particles, min, max, axis, h);
    return un_markers_sums(ctx, m, 1, add_flux, &a, flux);
}

un_status un_particles_flux_summed(const un_particles *particles, un_particles_summer *sum,
                                   void *arg, un_vec3 min, un_vec3 max, int32_t axis, double h,
                                   double *flux)
{
    flux_args a = through(particles, min, max, axis, h);
    return sum(arg, 1, add_flux, &a, flux);
}
