/* How thick a shape is, from samples of its distance. */
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
