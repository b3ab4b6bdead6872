/* How thick a shape is at most, and its walls at least, from samples of its distance. */
#include "geometry/geometry.h"

typedef struct depth_args {
    const un_shape *shape, *other;
    un_vec3 min, step;
    int32_t n;
} depth_args;

static double depth_rows(void *arg, int64_t begin, int64_t end)
{
    depth_args *a = arg;
    double deepest = 0;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < a->n; i++) {
            un_vec3 x = un_add(a->min, un_v3(a->step.x * (i + 0.5),
                                             a->step.y * ((double)(row % a->n) + 0.5),
                                             a->step.z * ((double)(row / a->n) + 0.5)));
            double d = un_shape_distance(a->shape, x);
            if (a->other) d = fmax(d, un_shape_distance(a->other, x));
            deepest = fmax(deepest, -d);
        }
    return deepest;
}

double un_shape_depth(un_context *ctx, const un_shape *shape, const un_shape *other, un_vec3 size,
                      int32_t samples)
{
    un_box3 box = un_shape_bounds(shape);
    depth_args a = {.shape = shape, .other = other, .n = samples};
    un_vec3 max = un_min3(box.max, size);
    a.min = un_max3(box.min, un_v3(0, 0, 0));
    un_vec3 side = un_sub(max, a.min);
    bool flat = size.z == 0; /* 2D: one layer of samples, in the plane */
    if (!(side.x > 0 && side.y > 0 && (flat || side.z > 0))) return 0;
    if (flat) a.min.z = side.z = 0;
    a.step = un_scale(side, 1.0 / samples);
    int64_t rows = flat ? samples : (int64_t)samples * samples;
    return un_parallel_max(ctx, rows, depth_rows, &a);
}

/* ---- walls ---- */

/* Share of the surface that may be thinner: rims and tips are. */
#define THIN_SHARE 0.02
#define THICKNESS_BINS 15

typedef struct wall_args {
    const un_shape *shape;
    un_vec3 min, step, size;
    int32_t n;
    double reach,
        limit; /* surface points are sought so near a sample; thicker walls do not matter */
} wall_args;

static bool in_domain(const wall_args *a, un_vec3 x)
{
    return x.x > 0 && x.y > 0 && x.x < a->size.x && x.y < a->size.y &&
           (a->size.z == 0 || (x.z > 0 && x.z < a->size.z));
}

/* From a point of the surface straight through the shape; INFINITY where nothing thinner than the
 * limit has open space behind it. */
static double wall_thickness(const wall_args *a, un_vec3 x, un_vec3 n)
{
    double t = 1e-3 * a->limit;
    if (!(un_shape_distance(a->shape, un_mad(x, n, -t)) < 0)) return INFINITY;
    while (t < a->limit) {
        double d = un_shape_distance(a->shape, un_mad(x, n, -t));
        if (d > 0) return in_domain(a, un_mad(x, n, -t - 0.05 * a->limit)) ? t : INFINITY;
        t += fmax(-d, 0.01 * a->limit);
    }
    return INFINITY;
}

/* sums: surface points by thickness, then all of them. */
static void thickness_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const wall_args *a = arg;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < a->n; i++) {
            un_vec3 x = un_add(a->min, un_v3(a->step.x * (i + 0.5),
                                             a->step.y * ((double)(row % a->n) + 0.5),
                                             a->step.z * ((double)(row / a->n) + 0.5)));
            double d = un_shape_distance(a->shape, x);
            if (!(fabs(d) < a->reach)) continue;
            un_vec3 n = un_shape_normal(a->shape, x), at = un_mad(x, n, -d);
            if (!in_domain(a, at) || !(un_length(n) > 0.5)) continue;
            double t = wall_thickness(a, at, n) / a->limit;
            sums[THICKNESS_BINS] += 1;
            if (t < 1) sums[(int)(t * THICKNESS_BINS)] += 1;
        }
}

double un_shape_thickness(un_context *ctx, const un_shape *shape, un_vec3 size, double limit,
                          int32_t samples)
{
    un_box3 box = un_shape_bounds(shape);
    wall_args a = {.shape = shape, .size = size, .n = samples, .limit = limit};
    bool flat = size.z == 0;
    a.min = un_max3(un_sub(box.min, un_v3(limit, limit, limit)), un_v3(0, 0, 0));
    un_vec3 side = un_sub(un_min3(un_add(box.max, un_v3(limit, limit, limit)), size), a.min);
    if (!(side.x > 0 && side.y > 0 && (flat || side.z > 0))) return INFINITY;
    if (flat) a.min.z = side.z = 0;
    a.step = un_scale(side, 1.0 / samples);
    a.reach = fmax(a.step.x, fmax(a.step.y, a.step.z));
    double sums[THICKNESS_BINS + 1], thin = 0;
    int64_t rows = flat ? samples : (int64_t)samples * samples;
    un_parallel_sums(ctx, rows, THICKNESS_BINS + 1, thickness_rows, &a, sums);
    for (int b = 0; b < THICKNESS_BINS; b++) {
        thin += sums[b];
        if (thin > THIN_SHARE * sums[THICKNESS_BINS]) return limit * (b + 0.5) / THICKNESS_BINS;
    }
    return INFINITY;
}
