/* A carried surface at walls.
 *
 * The liquid's surface goes on beyond a wall as if the wall were liquid too: a pool has no bottom,
 * and its surface ends in the wall. So what a mesh or an output is made from is
 * max(phi, distance into the wall), and the surface itself never creeps along walls. */
#include "surface/surface.h"

/* A gap between liquid and wall that is not wider than this, in cells, is none. */
#define GAP 0.5
/* A surface that is steeper than this to the wall's normal ends there. */
#define ALONG 0.9

un_vec3 un_track_into(const un_track_walls *w, un_vec3 x, double inset)
{
    double at[3] = {x.x, x.y, x.z}, size[3] = {w->size.x, w->size.y, w->size.z};
    for (int a = 0; a < 3; a++) {
        double lo = w->open && w->open[2 * a] ? -INFINITY : fmin(inset, 0.5 * size[a]);
        double hi = w->open && w->open[2 * a + 1] ? INFINITY : size[a] - fmin(inset, 0.5 * size[a]);
        at[a] = un_clamp(at[a], lo, hi);
    }
    x = un_v3(at[0], at[1], at[2]);
    double d = inset;
    int32_t b = w->bodies && w->bodies->count > 0 ? un_bodies_nearest(w->bodies, x, &d) : -1;
    return b < 0 ? x : un_mad(x, un_body_normal(&w->bodies->body[b], x), inset - d);
}

typedef struct start {
    const un_shape *const *shapes;
    int32_t shape_count;
    const un_track_walls *walls;
    double inset;
} start;

/* Linear beyond the wall, from just inside it, unless liquid ends at the wall: there the shape's
 * distance only tells how far the wall is. */
static double start_phi(const void *arg, un_vec3 x)
{
    const start *s = arg;
    un_vec3 a = un_track_into(s->walls, x, s->inset);
    un_vec3 b = un_track_into(s->walls, x, 1.02 * s->inset);
    double way = un_length(un_sub(x, a)), step = un_length(un_sub(a, b)), least = INFINITY;
    for (int32_t n = 0; n < s->shape_count; n++) {
        double phi = un_shape_distance(s->shapes[n], a);
        if (way > 0) {
            double slope = (phi - un_shape_distance(s->shapes[n], b)) / step;
            if (fabs(slope) < ALONG) phi += slope * way;
        }
        least = fmin(least, phi);
    }
    return least;
}

un_status un_track_start(un_track *t, const un_shape *const *shapes, int32_t shape_count,
                         const un_track_walls *walls)
{
    start s = {shapes, shape_count, walls, GAP * t->h};
    return un_track_begin(t, start_phi, &s);
}

double un_track_solid(const void *bodies, un_vec3 x)
{
    double d = INFINITY;
    un_bodies_nearest(bodies, x, &d);
    return d;
}

typedef struct field {
    const un_track *track;
    const un_bodies *bodies;
} field;

static void sample_field(void *arg, int64_t count, const un_vec3 *x, double *liquid, double *solid)
{
    const field *f = arg;
    int32_t hint = -1;
    for (int64_t i = 0; i < count; i++) {
        liquid[i] = un_track_distance(f->track, x[i], &hint);
        if (solid) solid[i] = un_track_solid(f->bodies, x[i]);
    }
}

un_status un_track_stuff(const un_track *t, un_stuffing *mesh, un_arena *arena,
                         const un_bodies *bodies)
{
    field f = {t, bodies};
    un_stuffing_def def = un_stuffing_default();
    def.field = sample_field;
    def.arg = &f;
    def.solids = bodies->count > 0;
    return un_stuffing_build(mesh, arena, &def);
}
