/* The liquid's surface through a step [Chentanez07 section 3.2].
 *
 * Points in walls are traced from the nearest open point, and the way there is added to the foot:
 * the surface goes on through the wall as it meets it. */
#include "advect/advect.h"

typedef struct args {
    const un_surface_advection *in;
    double deepest; /* m: points farther in walls do not count */
    double outside; /* m: how far liquid goes on beyond open sides */
} args;

static bool back(const void *arg, un_vec3 x, un_vec3 *foot)
{
    const args *a = arg;
    un_vec3 open = un_track_into(a->in->walls, x, 0), way = un_sub(x, open);
    if (un_dot(way, way) > a->deepest * a->deepest) return false;
    *foot = un_add(un_flow_trace(a->in->flow, open, -a->in->dt), way);
    return true;
}

static un_vec3 ahead(const void *arg, un_vec3 x)
{
    const args *a = arg;
    un_vec3 open = un_track_into(a->in->walls, x, 0);
    return un_mad(x, un_flow_at(a->in->flow, open), a->in->dt);
}

static double change(const void *arg, un_vec3 x, double phi)
{
    const args *a = arg;
    const un_scene_def *def = a->in->def;
    un_vec3 size = def->domain.size;
    double beyond[6] = {-x.x, x.x - size.x, -x.y, x.y - size.y, -x.z, x.z - size.z};
    for (int side = 0; side < 6; side++)
        if (def->domain.open[side]) phi = fmax(phi, beyond[side] - a->outside);
    for (int32_t n = 0; n < def->source_count; n++) {
        const un_source *s = &def->sources[n];
        if (!un_source_active(s, a->in->time)) continue;
        double d = un_shape_distance(s->shape, x);
        phi = s->kind == UN_SOURCE_EMITTER ? fmin(phi, d) : fmax(phi, -d);
    }
    return phi;
}

/* Of the sources that act now, cut to the lattice. */
static int32_t find_boxes(const args *a, un_box3 *box)
{
    const un_scene_def *def = a->in->def;
    un_vec3 size = def->domain.size;
    int32_t count = 0;
    for (int32_t n = 0; n < def->source_count; n++) {
        if (!un_source_active(&def->sources[n], a->in->time)) continue;
        un_box3 b = un_shape_bounds(def->sources[n].shape);
        b.min = un_max3(b.min, un_v3(0, 0, 0));
        b.max = un_min3(b.max, size);
        if (b.min.x <= b.max.x && b.min.y <= b.max.y && b.min.z <= b.max.z) box[count++] = b;
    }
    return count;
}

un_status un_advect_surface(un_context *ctx, un_arena *arena, const un_surface_advection *in)
{
    (void)ctx;
    args a = {.in = in,
              .deepest = (UN_TRACK_MARGIN + 1) * sqrt(3.0) * in->track->h,
              .outside = in->track->h};
    un_box3 *box = un_arena_alloc(arena, (size_t)in->def->source_count + 1, sizeof *box);
    if (!box) return UN_ERROR_MEMORY;
    un_track_motion motion = {.arg = &a,
                              .back = back,
                              .ahead = ahead,
                              .change = change,
                              .change_in = box,
                              .change_count = find_boxes(&a, box),
                              .shift = in->shift};
    return un_track_advance(in->track, arena, &motion);
}
