/* A carried surface at walls.
 *
 * The liquid's surface goes on beyond a wall as if the wall were liquid too: a pool has no bottom,
 * and its surface ends in the wall. So what a mesh or an output is made from is
 * max(phi, distance into the wall), and the surface itself never creeps along walls. */
#include "surface/surface.h"

/* A gap between liquid and wall that is not wider than this, in cells, is none. */
#define GAP 0.5
/* A surface that is steeper than this to the wall's normal ends there. Liquid that fills a corner
 * of three walls does with 0.58. */
#define ALONG 0.55
/* Liquid of twice this thickness, in leaves, is kept by tets [Chentanez07: 0.6]. */
#define THIN 0.6
/* The share of its thickening that is left near bodies: a glass that is poured into throws liquid
 * at 7.6 m/s with all of it, below 5.6 with this. */
#define AT_WALLS 0.6

static un_vec3 into_sides(const un_track_walls *w, un_vec3 x, double inset)
{
    double at[3] = {x.x, x.y, x.z}, size[3] = {w->size.x, w->size.y, w->size.z};
    for (int a = 0; a < 3; a++) {
        double least = fmin(inset, 0.5 * size[a]);
        double lo = w->open && w->open[2 * a] ? -INFINITY : least;
        double hi = w->open && w->open[2 * a + 1] ? INFINITY : size[a] - least;
        at[a] = un_clamp(at[a], lo, hi);
    }
    return un_v3(at[0], at[1], at[2]);
}

static un_vec3 into_bodies(const un_track_walls *w, un_vec3 x, double inset)
{
    double d = inset;
    int32_t b = w->bodies && w->bodies->count > 0 ? un_bodies_nearest(w->bodies, x, &d) : -1;
    return b < 0 ? x : un_mad(x, un_body_normal(&w->bodies->body[b], x), inset - d);
}

un_vec3 un_track_into(const un_track_walls *w, un_vec3 x, double inset)
{
    return into_bodies(w, into_sides(w, x, inset), inset);
}

un_vec3 un_track_way(const un_track_walls *w, un_vec3 x, un_vec3 open)
{
    un_vec3 way = un_sub(x, open);
    double d = 0, length = un_length(way);
    int32_t b = w->deep && length > 0 ? un_bodies_nearest(w->bodies, x, &d) : -1;
    return b >= 0 && length > w->deep[b] ? un_scale(way, w->deep[b] / length) : way;
}

/* The same, and the ways back, along a level where the wall is steep, and again where that ends
 * near another wall, as in corners: liquid that starts at rest in a vessel with tilted walls has a
 * surface that stays flat in them. A bent one moves it at 0.5 g. */
#define STEEP 0.5
#define PASSES 3
static un_vec3 into_bodies_level(const un_track_walls *w, un_vec3 x, double inset,
                                 un_vec3 back[PASSES])
{
    memset(back, 0, PASSES * sizeof *back);
    double g = un_dot(w->gravity, w->gravity);
    for (int pass = 0; pass < PASSES && w->bodies && w->bodies->count > 0; pass++) {
        double d = inset;
        int32_t b = un_bodies_nearest(w->bodies, x, &d);
        if (b < 0) break;
        un_vec3 n = un_body_normal(&w->bodies->body[b], x);
        un_vec3 level = g > 0 ? un_mad(n, w->gravity, -un_dot(n, w->gravity) / g) : n;
        double steep = un_dot(level, level);
        back[pass] =
            steep > STEEP * STEEP ? un_scale(level, (d - inset) / steep) : un_scale(n, d - inset);
        x = un_sub(x, back[pass]);
    }
    return x;
}

typedef struct start {
    const un_shape *const *shapes;
    int32_t shape_count;
    const un_track_walls *walls;
    double inset;
} start;

/* How much phi grows along `way`, from a on, if its slope stays. Where the shape ends at the wall,
 * its distance only tells how far the wall is: nothing. */
static double growth(const start *s, const un_shape *shape, un_vec3 a, double phi, un_vec3 way)
{
    double length = un_length(way), step = 0.02 * s->inset;
    if (length == 0) return 0;
    double slope = (phi - un_shape_distance(shape, un_mad(a, way, -step / length))) / step;
    return fabs(slope) < ALONG ? slope * length : 0;
}

/* Linear into the walls, from just outside them. */
static double start_phi(const void *arg, un_vec3 x)
{
    const start *s = arg;
    un_vec3 side = into_sides(s->walls, x, s->inset);
    un_vec3 back[PASSES], a = into_bodies_level(s->walls, side, s->inset, back);
    un_vec3 out = un_sub(x, side);
    double least = INFINITY;
    for (int32_t n = 0; n < s->shape_count; n++) {
        const un_shape *shape = s->shapes[n];
        double phi = un_shape_distance(shape, a), sum = phi;
        sum += growth(s, shape, a, phi, un_v3(out.x, 0, 0));
        sum += growth(s, shape, a, phi, un_v3(0, out.y, 0));
        sum += growth(s, shape, a, phi, un_v3(0, 0, out.z));
        for (int pass = 0; pass < PASSES; pass++) sum += growth(s, shape, a, phi, back[pass]);
        least = fmin(least, sum);
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

/* ---- what sizing asks for ---- */

typedef struct near_walls {
    const un_track_near_walls *out;
    const un_track_walls *walls;
    const un_track_points *points;
} near_walls;

static double side_distance(const un_track_walls *w, un_vec3 x)
{
    const double gap[6] = {x.x, w->size.x - x.x, x.y, w->size.y - x.y, x.z, w->size.z - x.z};
    double least = INFINITY;
    for (int side = 0; side < 6; side++)
        if (!w->open || !w->open[side]) least = fmin(least, gap[side]);
    return least;
}

static void look_at_walls(void *arg, int64_t begin, int64_t end)
{
    const near_walls *a = arg;
    const un_track_near_walls *out = a->out;
    const un_bodies *bodies = a->walls->bodies;
    for (int64_t i = begin; i < end; i++) {
        un_vec3 x = a->points->x[i];
        double most = a->points->within * a->points->size[a->points->level[i]];
        double d = most, side = side_distance(a->walls, x);
        int32_t b = bodies->count > 0 ? un_bodies_nearest(bodies, x, &d) : -1;
        double solid = b >= 0 ? d : INFINITY;
        out->wall[i] = (float)(fmin(solid, side) < most ? fmin(solid, side) : INFINITY);
        if (out->solid) out->solid[i] = (float)solid;
        if (out->narrow) out->narrow[i] = (float)(b >= 0 ? a->walls->thick[b] : INFINITY);
    }
}

void un_track_walls_to_points(un_context *ctx, const un_track_near_walls *out,
                              const un_track_walls *walls, const un_track_points *points)
{
    near_walls a = {out, walls, points};
    un_parallel_for(ctx, points->count, 1024, look_at_walls, &a);
}

/* ---- tets ---- */

typedef struct field {
    const un_track *track;
    const un_bodies *bodies;
    const double *grown;
    un_track_growth growth;
    const un_tets *sized; /* NULL: leaves along the surface have one size */
    const float *size;
} field;

static double grown_solid(const field *f, un_vec3 x)
{
    double least = un_track_solid(f->bodies, x);
    for (int32_t b = 0; f->grown && b < f->bodies->count; b++)
        if (f->grown[b] > 0)
            least = fmin(least, un_body_distance(&f->bodies->body[b], x) - f->grown[b]);
    return least;
}

static void sample_field(void *arg, int64_t count, const un_vec3 *x, double *liquid, double *solid)
{
    const field *f = arg;
    int32_t hint = -1;
    for (int64_t i = 0; i < count; i++) {
        liquid[i] = un_track_grown(f->track, x[i], &hint, &f->growth, NULL);
        if (solid) solid[i] = grown_solid(f, x[i]);
    }
}

static double sample_size(void *arg, un_vec3 x)
{
    const field *f = arg;
    un_tets_place place;
    un_tets_locate(f->sized, x, &place);
    return un_tet_sample(f->sized, f->size, &place);
}

un_status un_track_stuff(un_stuffing *mesh, un_arena *arena, const un_track_stuffing *in)
{
    const un_track *t = in->track;
    float *more = un_arena_alloc(arena, (size_t)t->mesh.vertex_count + 1, sizeof *more);
    if (!more) return UN_ERROR_MEMORY;
    field f = {t, in->bodies, in->grown, {more, NULL}, in->sized, in->size};
    /* half the thickness that the finest tets need, and what the thinnest liquid lacks of it */
    double thin = THIN * mesh->tree.h;
    for (int32_t v = 0; v < t->mesh.vertex_count; v++) {
        more[v] = (float)(in->thicken * fmax(0, thin - t->half[v]));
        if (more[v] > 0 && un_track_solid(in->bodies, t->mesh.position[v]) < 2 * thin)
            more[v] *= (float)AT_WALLS;
    }
    un_stuffing_def def = un_stuffing_default();
    def.field = sample_field;
    def.arg = &f;
    def.solids = in->bodies->count > 0;
    def.graded = in->sized || in->leaves;
    def.size = in->sized ? sample_size : NULL;
    def.request = in->leaves;
    return un_stuffing_build(mesh, arena, &def);
}
