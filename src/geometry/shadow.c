/* The area of a shape's shadow: the cross-section of a stream out of it.
 *
 * Lines along the stream sample the square around the shadow. The least distance on a line tells
 * how far it lies from the shadow's rim, so that a line's square counts by the part in the shadow.
 */
#include "geometry/geometry.h"

/* Lines along each side: a disc is right to 1e-3. */
#define LINES 64
/* Shortest way from sample to sample on a line, in distances of lines. */
#define LINE_STEP 0.25

typedef struct shadow_args {
    const un_shape *shape;
    un_vec3 size; /* of the domain, which the shape is cut to */
    bool flat;
    un_vec3 along, a, b, corner; /* unit vectors; where lines begin */
    double da, db, length;       /* between lines; of lines */
} shadow_args;

static double cut_distance(const shadow_args *s, un_vec3 x)
{
    double d = un_shape_distance(s->shape, x);
    d = fmax(d, fmax(-x.x, x.x - s->size.x));
    d = fmax(d, fmax(-x.y, x.y - s->size.y));
    return s->flat ? d : fmax(d, fmax(-x.z, x.z - s->size.z));
}

static double line_share(const shadow_args *s, un_vec3 x)
{
    double width = fmax(s->da, s->db), least = INFINITY;
    for (double t = 0; t <= s->length && least > -width;) {
        double d = cut_distance(s, un_mad(x, s->along, t));
        least = fmin(least, d);
        t += fmax(fabs(d), LINE_STEP * width);
    }
    return un_clamp(0.5 - least / width, 0, 1);
}

static double shadow_rows(void *arg, int64_t begin, int64_t end)
{
    const shadow_args *s = arg;
    double sum = 0;
    for (int64_t j = begin; j < end; j++)
        for (int32_t i = 0; i < LINES; i++) {
            un_vec3 x = un_mad(s->corner, s->a, s->da * (i + 0.5));
            sum += line_share(s, un_mad(x, s->b, s->db * ((double)j + 0.5)));
        }
    return sum;
}

static void extent(const un_box3 *box, un_vec3 axis, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (int c = 0; c < 8; c++) {
        un_vec3 x = {c & 1 ? box->max.x : box->min.x, c & 2 ? box->max.y : box->min.y,
                     c & 4 ? box->max.z : box->min.z};
        *low = fmin(*low, un_dot(x, axis));
        *high = fmax(*high, un_dot(x, axis));
    }
}

double un_shape_shadow(un_context *ctx, const un_shape *shape, un_vec3 along, un_vec3 size)
{
    un_box3 box = un_shape_bounds(shape);
    shadow_args s = {.shape = shape, .size = size, .flat = size.z == 0};
    box.min = un_max3(box.min, un_v3(0, 0, 0));
    box.max = un_min3(box.max, size);
    if (s.flat) box.min.z = box.max.z = 0;
    if (!(box.max.x > box.min.x && box.max.y > box.min.y && (s.flat || box.max.z > box.min.z)))
        return 0;
    s.along = un_normalize(along);
    un_vec3 axis = fabs(s.along.x) < 0.6 ? un_v3(1, 0, 0) : un_v3(0, 1, 0);
    s.a = un_normalize(un_mad(axis, s.along, -un_dot(axis, s.along)));
    s.b = un_cross(s.along, s.a);
    double low[3], high[3];
    extent(&box, s.a, &low[0], &high[0]);
    extent(&box, s.b, &low[1], &high[1]);
    extent(&box, s.along, &low[2], &high[2]);
    s.da = (high[0] - low[0]) / LINES;
    s.db = s.flat ? 0 : (high[1] - low[1]) / LINES;
    s.length = high[2] - low[2];
    s.corner = un_mad(un_scale(s.a, low[0]), s.along, low[2]);
    if (!s.flat) s.corner = un_mad(s.corner, s.b, low[1]);
    double lines = un_parallel_sum(ctx, s.flat ? 1 : LINES, shadow_rows, &s);
    return lines * s.da * (s.flat ? 1 : s.db);
}
