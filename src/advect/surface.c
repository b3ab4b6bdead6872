/* The liquid's surface through a step [Chentanez07 section 3.2].
 *
 * Points in walls are traced from the nearest open point, and the way there is added to the foot:
 * the surface goes on through the wall as it meets it. Deep in a wall the way is cut short: phi is
 * that of the nearer side there. Where a wall parts liquid and air, the surface so runs in its
 * middle, whatever has moved it in the last step, and does not wander through. */
#include "advect/advect.h"

/* The share of the volume that may be missing until the next step. */
#define LACK 5e-4

typedef struct args {
    const un_surface_advection *in;
    double deepest; /* m: points farther in walls do not count */
    double outside; /* m: how far liquid goes on beyond open sides */
} args;

/* Points in a thin wall that moves come along with it, and those between wall and mesh more and
 * more so: what the flow, extended from the mesh, is off by along the normal would lead through the
 * wall in a few steps. */
static void follow_thin(const args *a, un_vec3 x, un_vec3 open, un_vec3 *foot)
{
    const un_track_walls *w = a->in->walls;
    double d = 2 * a->in->track->h; /* more than they grow by */
    int32_t b = w->grown ? un_bodies_nearest(w->bodies, x, &d) : -1;
    if (b < 0 || !w->bodies->body[b].moves || !(d < w->grown[b])) return;
    double share = un_clamp(1 - d / w->grown[b], 0, 1);
    const un_body *body = &w->bodies->body[b];
    un_vec3 n = un_body_normal(body, open), way = un_sub(*foot, open);
    double wanted = -a->in->dt * un_dot(un_body_velocity(body, open), n);
    *foot = un_mad(*foot, n, share * (wanted - un_dot(way, n)));
}

static bool back(const void *arg, un_vec3 x, un_vec3 *foot)
{
    const args *a = arg;
    un_vec3 open = un_track_into(a->in->walls, x, 0), way = un_sub(x, open);
    if (un_dot(way, way) > a->deepest * a->deepest) return false;
    way = un_track_way(a->in->walls, x, open);
    *foot = un_flow_trace(a->in->flow, open, -a->in->dt);
    follow_thin(a, x, open, foot);
    *foot = un_add(*foot, way);
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

/* Liquid that leaves a wall leaves a void: nothing comes out of the wall, into which the surface
 * goes on. */
static double emptied(const void *arg, un_vec3 x, un_vec3 foot)
{
    const args *a = arg;
    if (!un_flow_gone(a->in->flow, un_track_into(a->in->walls, x, 0))) return -INFINITY;
    double depth = un_length(un_sub(foot, un_track_into(a->in->walls, foot, 0)));
    return depth > 0 ? depth : -INFINITY;
}

/* The shift that brings back what the new surface lacks. */
static double missing(const void *arg, const un_track *next, double shift)
{
    const un_surface_advection *in = ((const args *)arg)->in;
    double lack = in->expected - un_track_volume(next, in->solid);
    if (fabs(lack) <= LACK * in->expected) return 0;
    double area = un_track_area(next, in->solid);
    double most = un_advect_shift_most(in->most, lack, in->expected);
    return area > 0 ? un_clamp(shift + lack / area, -most, most) - shift : 0;
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
    if (a->in->gone) box[count++] = *a->in->gone;
    return count;
}

/* ---- what sources do ---- */

typedef struct sourcing {
    args a;
    const un_source *source;
    int32_t first[3], n[3]; /* cells of the lattice around the shape */
} sourcing;

/* The share of a cell of edge h that lies where phi, at its middle, is negative. */
static double share(double phi, double h)
{
    return un_clamp(0.5 - phi / h, 0, 1);
}

static double sum_cells(void *arg, int64_t begin, int64_t end)
{
    const sourcing *s = arg;
    const un_track *t = s->a.in->track;
    const un_lattice *l = &t->lattice;
    double sum = 0, half[3] = {0.5 * l->h[0], 0.5 * l->h[1], 0.5 * l->h[2]};
    int32_t hint = -1;
    for (int64_t c = begin; c < end; c++) {
        int32_t i = s->first[0] + (int32_t)(c % s->n[0]);
        int32_t j = s->first[1] + (int32_t)(c / s->n[0] % s->n[1]);
        int32_t k = s->first[2] + (int32_t)(c / s->n[0] / s->n[1]);
        un_vec3 x = un_add(un_track_node(t, i, j, k), un_v3(half[0], half[1], half[2])), foot;
        double d = un_shape_distance(s->source->shape, x), open = INFINITY;
        if (d > t->h || !back(&s->a, x, &foot)) continue;
        const un_bodies *bodies = s->a.in->walls->bodies;
        if (bodies->count > 0) open = un_track_solid(bodies, x);
        double phi = un_track_distance(t, foot, &hint);
        double then = s->source->kind == UN_SOURCE_EMITTER ? fmin(phi, d) : fmax(phi, -d);
        sum += fabs(share(then, t->h) - share(phi, t->h)) * share(-open, t->h);
    }
    return sum;
}

double un_advect_sourced(un_context *ctx, const un_surface_advection *in, const un_source *source)
{
    const un_lattice *l = &in->track->lattice;
    sourcing s = {.a = {.in = in, .deepest = 2 * in->track->h}, .source = source};
    un_box3 b = un_shape_bounds(source->shape);
    double lo[3] = {b.min.x, b.min.y, b.min.z}, hi[3] = {b.max.x, b.max.y, b.max.z};
    for (int a = 0; a < 3; a++) {
        int32_t last = UN_TRACK_MARGIN + in->track->cells[a] - 1;
        double least = floor(lo[a] / l->h[a]) - 1 + UN_TRACK_MARGIN;
        double most = floor(hi[a] / l->h[a]) + 1 + UN_TRACK_MARGIN;
        s.first[a] = (int32_t)un_clamp(least, UN_TRACK_MARGIN, last);
        s.n[a] = (int32_t)un_clamp(most, UN_TRACK_MARGIN, last) - s.first[a] + 1;
    }
    double volume = l->h[0] * l->h[1] * l->h[2];
    return volume * un_parallel_sum(ctx, (int64_t)s.n[0] * s.n[1] * s.n[2], sum_cells, &s);
}

static un_vec3 flow_at(const void *arg, un_vec3 x)
{
    return un_flow_at(arg, x);
}

double un_advect_left(const un_surface_advection *in)
{
    double rate = 0;
    for (int side = 0; side < 6; side++)
        if (in->def->domain.open[side])
            rate += un_track_outflow(in->track, in->solid, side, flow_at, in->flow);
    return fmax(0, rate) * in->dt;
}

un_status un_advect_surface(un_context *ctx, un_arena *arena, const un_surface_advection *in)
{
    (void)ctx;
    args a = {.in = in,
              .deepest = (UN_TRACK_MARGIN + 1) * sqrt(3.0) * in->track->h,
              .outside = in->track->h};
    un_box3 *box = un_arena_alloc(arena, (size_t)in->def->source_count + 2, sizeof *box);
    if (!box) return UN_ERROR_MEMORY;
    un_track_motion motion = {.arg = &a,
                              .back = back,
                              .ahead = ahead,
                              .change = change,
                              .emptied = in->gone ? emptied : NULL,
                              .change_in = box,
                              .change_count = find_boxes(&a, box),
                              .missing = in->expected > 0 ? missing : NULL,
                              .shift = in->shift,
                              .thicken = in->thicken,
                              .solid = in->solid};
    return un_track_advance(in->track, arena, &motion);
}
