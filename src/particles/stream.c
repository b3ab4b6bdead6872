/* A half cell of a stream, cut to the emitter's rim.
 *
 * The cross-section of a stream is the shadow of its emitter's shape along the stream. A half cell
 * of the lattice that moves with the stream carries the part of it in the shadow, as one particle
 * in the middle of that part, as in filling (fill.c). With whole half cells a thread would come out
 * with the lattice's stair steps around it. */
#include "particles/fill.h"

/* The shadow is found from distances along lines, this share of a half cell apart or more: at 0.5 a
 * tilted box pours 1.1 % too little, at 0.25 0.3 %. */
#define LINE_STEP 0.25
/* Half cells deeper than this inside the shape, in half cells along the stream, entered earlier; so
 * did those that the rim cuts, if the shape's mouth is at most this steep. */
#define ENTERED 2.0

typedef struct stream {
    const un_shape *shape;
    un_vec3 along, centre;
    double reach, s;
} stream;

/* The least distance to the shape on the line through x: the same for every point of the line. */
static double shadow_distance(const stream *f, un_vec3 x)
{
    double t = -f->reach, least = INFINITY;
    un_vec3 foot = un_mad(x, f->along, un_dot(un_sub(f->centre, x), f->along));
    while (t <= f->reach) {
        double d = un_shape_distance(f->shape, un_mad(foot, f->along, t));
        least = fmin(least, d);
        if (least < -f->s) break;
        t += fmax(fabs(d), LINE_STEP * f->s);
    }
    return least;
}

static bool inside_upstream(const stream *f, un_vec3 x, double way)
{
    return un_shape_distance(f->shape, un_mad(x, f->along, -way)) < 0;
}

/* True if the half cell around x certainly was in the shape before this step, or does not reach
 * it. */
static bool out_of_question(const stream *f, un_vec3 x, un_vec3 step)
{
    double reach = 0.87 * f->s, length = un_length(step);
    double before = un_shape_distance(f->shape, un_sub(x, step));
    if (before < -reach || before > reach + length) return true;
    double d = un_shape_distance(f->shape, x), way = length + ENTERED * f->s;
    if (d > reach + length) return true;
    if (d < 0) return inside_upstream(f, x, way);
    un_vec3 n = un_shape_normal(f->shape, x);
    return inside_upstream(f, un_mad(x, n, -d - 0.05 * f->s), way);
}

static stream make_stream(const un_shape *shape, un_vec3 step, double s, int32_t dim)
{
    un_box3 box = un_shape_bounds(shape);
    if (dim == 2) box.min.z = box.max.z = 0;
    stream f = {.shape = shape, .along = un_normalize(step), .s = s};
    f.centre = un_scale(un_add(box.min, box.max), 0.5);
    f.reach = 0.5 * un_length(un_sub(box.max, box.min)) + s;
    return f;
}

double un_stream_distance(const un_shape *shape, un_vec3 step, un_vec3 x, double s, int32_t dim)
{
    stream f = make_stream(shape, step, s, dim);
    return isfinite(f.reach) ? shadow_distance(&f, x) : un_shape_distance(shape, x);
}

double un_stream_half_cell(const un_shape *shape, un_vec3 step, un_vec3 *x, double s, int32_t dim)
{
    stream f = make_stream(shape, step, s, dim);
    if (!isfinite(f.reach)) return 1;
    if (!(un_length(step) > 0)) return 0;
    if (out_of_question(&f, *x, step)) return 0;
    /* most are far from the rim; one distance ahead shows it */
    if (un_shape_distance(shape, un_mad(*x, f.along, ENTERED * s)) <= -0.87 * s) return 1;
    double d = shadow_distance(&f, *x);
    if (d >= 0.87 * s) return 0;
    if (d <= -0.87 * s) return 1;
    /* across the stream: as close to the axes as possible, because the lattice follows them */
    un_vec3 axis = fabs(f.along.x) < 0.6 ? un_v3(1, 0, 0) : un_v3(0, 1, 0);
    un_vec3 a = un_normalize(un_mad(axis, f.along, -un_dot(axis, f.along)));
    un_vec3 b = dim == 2 ? un_v3(0, 0, 0) : un_cross(f.along, a);
    double e = 0.05 * s, half = 0.5 * s, most = -INFINITY;
    double da = shadow_distance(&f, un_mad(*x, a, e)) - shadow_distance(&f, un_mad(*x, a, -e));
    double db = shadow_distance(&f, un_mad(*x, b, e)) - shadow_distance(&f, un_mad(*x, b, -e));
    double length = hypot(da, db);
    for (int c = 0; c < 4; c++) {
        un_vec3 corner = un_mad(un_mad(*x, a, c & 1 ? half : -half), b, c & 2 ? half : -half);
        most = fmax(most, shadow_distance(&f, corner));
    }
    if (most < 1e-6 * s) return 1;
    if (!(length > 0)) return d < 0;
    double fraction = un_cube_below_plane(un_v3(da / length, db / length, 0), -d / s);
    if (fraction < UN_FRACTION_MIN) return 0;
    double in = half * (1 - fraction) / length;
    *x = un_mad(un_mad(*x, a, -in * da), b, -in * db);
    return fraction;
}
