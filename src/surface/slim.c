/* Liquid thinner than its particles' cells, as the output surface draws it: sheets, threads and
 * drops.
 *
 * The level set of the simulation says nothing about liquid of less than a cell: particles there
 * fly, or lie above the surface of a thin film. Joined as they are, they would be beads and
 * shards. So the neighbours of each, within R = REACH radii and weighted with
 *     w = (1 - d^2 / R^2)^2,
 * tell what it belongs to, by the axes of their covariance: a sheet, a thread, or neither. In a
 * sheet w integrates to pi R^2 / 3, along a thread to 16 R / 15, so the thickness of the sheet and
 * the cross-section of the thread are
 *     t = 3 sum(V w) / (pi R^2),   A = 15 sum(V w) / (16 R).
 * The particle's sphere then gets the radius that makes their hull that thick, and moves to the
 * middle of the sheet or thread as far as it stood out of it.
 *
 * Particles in a sheet are joined across the gaps that its thickness leaves between them, but those
 * in a thin cloud of spray only where they touch: otherwise shards would span the cloud. All shares
 * are continuous in the positions, so that nothing pops from frame to frame.
 *
 * A particle that nothing joins is a drop. Particles of one size would be drops of one size, so
 * drops differ, by a number that does not change in flight; all of them together keep their
 * volume. */
#include "surface/hulls.h"

/* In radii. */
#define REACH UN_SLIM_REACH
/* Liquid is thin where no particle within NEAR radii is deeper than the first, and deep where one
 * is deeper than the second. */
#define DEEP_FROM 2.5
#define DEEP_TO 4.5
#define NEAR 5.0
/* Slow liquid has a square of speed of at most so much times gravity and radius; fast liquid more
 * than the second. */
#define SLOW_FROM 1.0
#define SLOW_TO 4.0
/* Films this close to a wall, in radii, are as thick as the level set says. */
#define WALL 2.5
/* Ratio of the smallest to the largest variance of a sheet, and the middle one to the largest of a
 * thread: none is above the second. */
#define FLAT_FROM 0.15
#define FLAT_TO 0.33
/* Thickness of sheets, in radii, whose particles are too far apart to tell sheet from spray. */
#define TORN_FROM 0.45
#define TORN_TO 0.75
/* Share of space that dense spray fills: clumps of it count as liquid. */
#define DENSE_FROM 0.12
#define DENSE_TO 0.28
/* The same of two or three drops that melt together, and of many. */
#define FEW_FROM 0.04
#define FEW_TO 0.12
/* Sizes, in radii, that decide what is joined: l (size_i + size_j) with l = 2. In spray, where only
 * touching drops melt together; the largest in sheets and threads; and for those in spacings. */
#define SIZE_SPRAY 0.8
#define SIZE_MOST UN_SLIM_SIZE_MOST
#define SIZE_SPACING 0.57
/* Thinner sheets are drawn as thick as the mesh needs (un_slim_def.drawn) first, and their two
 * sides then moved together; most, in radii. */
#define DRAWN_MOST 1.75
/* Largest leaves, in radii of the spheres, that draw a thread without beads. */
#define LEAF_THREAD 1.25
/* Radius of a thread of particles that touch, in theirs: its cross-section is (2 r)^2. */
#define THREAD 1.1284
/* Distance of the neighbours' centroid at a straight rim, in R; half of w lies beyond the rim. */
#define RIM 0.291
#define RIM_LEAST 0.06
/* Drops have radii between these, in those of their volume, once nothing is within so many radii;
 * the mean of their volumes is 1. */
#define DROP_LEAST 0.503
#define DROP_MOST 1.509
#define LONELY_FROM 3.0
#define LONELY_TO 6.0

#define NEAR_MAX 1024

typedef struct slim_args {
    const un_slim_def *def;
    un_slim *slim;
    uint8_t *mark; /* by particle */
} slim_args;

static double ramp(double v, double from, double to)
{
    double t = un_clamp((v - from) / (to - from), 0, 1);
    return t * t * (3 - 2 * t);
}

/* ---- which particles ---- */

static bool is_sound(const un_slim_def *def, int64_t q)
{
    float r = def->radius[q];
    return r > 0 && isfinite(r) && un_finite3(un_particle_position(def->particles, q));
}

static bool is_at_wall(const un_slim_def *def, un_vec3 x, double near)
{
    un_vec3 far = un_sub(def->size, x);
    double side = fmin(fmin(x.x, fmin(x.y, x.z)), fmin(far.x, fmin(far.y, far.z)));
    return side < near || (def->walls && un_bodies_nearest(def->walls->bodies, x, &near) >= 0);
}

/* Depth of the deepest particle around, in radii of q. */
static double deepest_near(const un_slim_def *def, int64_t q)
{
    const un_particles *p = def->particles;
    double r = def->radius[q], reach = NEAR * r, most = 0;
    int32_t near[NEAR_MAX];
    un_vec3 x = un_particle_position(p, q);
    int32_t count = un_groups_near(def->groups, (un_box3){x, x}, reach, 0, near, NEAR_MAX);
    if (count < 0) return INFINITY;
    for (int32_t g = 0; g < count && most < DEEP_TO * r; g++) {
        int64_t last = un_min64(p->count, UN_GROUP * ((int64_t)near[g] + 1));
        for (int64_t j = UN_GROUP * (int64_t)near[g]; j < last; j++) {
            if (!(-def->depth[j] > most)) continue;
            un_vec3 to = un_sub(un_particle_position(p, j), x);
            if (un_dot(to, to) < reach * reach) most = -def->depth[j];
        }
    }
    return most / r;
}

static double slowness(const un_slim_def *def, int64_t q)
{
    un_vec3 v = un_particle_velocity(def->particles, q);
    double fall = un_length(def->gravity) * def->radius[q];
    return 1 - ramp(un_dot(v, v), SLOW_FROM * fall, SLOW_TO * fall);
}

/* How much the level set says about a wet particle's distance from the surface: all where liquid is
 * deep, or slow. */
static double trust(const un_slim_def *def, int64_t q)
{
    double slow = slowness(def, q);
    if (slow >= 1) return 1;
    return fmax(slow, ramp(deepest_near(def, q), DEEP_FROM, DEEP_TO));
}

enum { NOT_SLIM, SLIM, DISTRUSTED };

static uint8_t mark_of(const un_slim_def *def, int64_t q)
{
    if (!is_sound(def, q)) return NOT_SLIM;
    if (un_slim_flies(def->particles, q)) return SLIM;
    if (def->particles->flags[q] & UN_PARTICLE_APART) return NOT_SLIM;
    float r = def->radius[q];
    bool near = def->depth ? def->depth[q] > -(float)DEEP_FROM * r : def->thin && def->thin[q];
    if (!near) return NOT_SLIM;
    double trusted = def->depth ? trust(def, q) : slowness(def, q);
    if (trusted == 0 && !is_at_wall(def, un_particle_position(def->particles, q), WALL * r))
        return SLIM;
    return trusted < 1 && def->depth ? DISTRUSTED : NOT_SLIM;
}

bool un_slim_is(const un_slim_def *def, int64_t q)
{
    return mark_of(def, q) == SLIM;
}

static void find_slim(void *arg, int64_t begin, int64_t end)
{
    slim_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->mark[q] = mark_of(a->def, q);
}

/* ---- neighbours ---- */

typedef struct around {
    double mass, volume, nearest; /* sum of V w; of it alone; distance */
    int32_t count;
    un_vec3 middle;    /* sum of V w (x - x_i) */
    double product[6]; /* of the same: xx, yy, zz, yz, zx, xy */
} around;

static void look_around(const un_slim_def *def, int64_t q, double reach, around *s)
{
    const un_particles *p = def->particles;
    int32_t near[NEAR_MAX];
    un_vec3 x = un_particle_position(p, q);
    *s = (around){.nearest = reach};
    int32_t count = un_groups_near(def->groups, (un_box3){x, x}, reach, 0, near, NEAR_MAX);
    if (count < 0) count = NEAR_MAX;
    for (int32_t g = 0; g < count; g++) {
        int64_t last = un_min64(p->count, UN_GROUP * ((int64_t)near[g] + 1));
        for (int64_t j = UN_GROUP * (int64_t)near[g]; j < last; j++) {
            un_vec3 d = un_sub(un_particle_position(p, j), x);
            double d2 = un_dot(d, d), t = 1 - d2 / (reach * reach);
            if (!(t > 0) || p->flags[j] & UN_PARTICLE_LANDED) continue;
            double w = p->volume[j] * t * t;
            s->mass += w;
            if (j == q) continue;
            s->nearest = fmin(s->nearest, sqrt(d2));
            s->count++;
            s->middle = un_mad(s->middle, d, w);
            s->product[0] += w * d.x * d.x, s->product[1] += w * d.y * d.y;
            s->product[2] += w * d.z * d.z, s->product[3] += w * d.y * d.z;
            s->product[4] += w * d.z * d.x, s->product[5] += w * d.x * d.y;
        }
    }
}

/* Eigenvalues of a symmetric matrix, falling, with their vectors: Jacobi's rotations. */
static void find_axes(double m[3][3], double value[3], un_vec3 axis[3])
{
    double v[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int32_t round = 0; round < 24; round++) {
        int32_t i = round % 3, j = (i + 1) % 3;
        if (m[i][j] == 0) continue;
        double theta = (m[j][j] - m[i][i]) / (2 * m[i][j]);
        double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1));
        double c = 1 / sqrt(t * t + 1), s = t * c;
        for (int32_t k = 0; k < 3; k++) {
            double a = m[k][i], b = m[k][j];
            m[k][i] = c * a - s * b, m[k][j] = s * a + c * b;
        }
        for (int32_t k = 0; k < 3; k++) {
            double a = m[i][k], b = m[j][k];
            m[i][k] = c * a - s * b, m[j][k] = s * a + c * b;
        }
        for (int32_t k = 0; k < 3; k++) {
            double a = v[k][i], b = v[k][j];
            v[k][i] = c * a - s * b, v[k][j] = s * a + c * b;
        }
    }
    for (int32_t i = 0; i < 3; i++) {
        int32_t rank = 0;
        for (int32_t j = 0; j < 3; j++) rank += m[j][j] > m[i][i] || (m[j][j] == m[i][i] && j < i);
        value[rank] = fmax(0, m[i][i]);
        axis[rank] = un_v3(v[0][i], v[1][i], v[2][i]);
    }
}

/* ---- what they make of it ---- */

/* As far as d is longer than `room`. */
static un_vec3 excess(un_vec3 d, double room)
{
    double length = un_length(d);
    return length > room ? un_scale(d, 1 - room / length) : un_v3(0, 0, 0);
}

void un_slim_shape(const un_slim_def *def, int64_t q, un_slim_entry *e)
{
    double r = def->radius[q], reach = REACH * r, value[3];
    around s;
    un_vec3 x = un_particle_position(def->particles, q), axis[3];
    look_around(def, q, reach, &s);
    *e = (un_slim_entry){.x = x, .radius = (float)r, .size = (float)(SIZE_SPRAY * r)};
    e->lonely = (float)ramp(s.nearest / r, LONELY_FROM, LONELY_TO);
    if (s.count == 0 || !(s.mass > 0)) return;

    un_vec3 middle = un_scale(s.middle, 1 / s.mass);
    const double *c = s.product, w = 1 / s.mass;
    double m[3][3] = {{w * c[0], w * c[5], w * c[4]},
                      {w * c[5], w * c[1], w * c[3]},
                      {w * c[4], w * c[3], w * c[2]}};
    double d[3] = {middle.x, middle.y, middle.z};
    for (int32_t i = 0; i < 3; i++)
        for (int32_t j = 0; j < 3; j++) m[i][j] -= d[i] * d[j];
    find_axes(m, value, axis);
    if (!(value[0] > 0)) return;

    double rim = fmax(0, un_length(middle) / reach - RIM_LEAST) / (RIM - RIM_LEAST);
    double mass = s.mass / (1 - 0.5 * fmin(1, rim));
    double thread = (1 - ramp(value[1] / value[0], FLAT_FROM, FLAT_TO)) * ramp(s.count, 1, 4);
    double sheet = (1 - ramp(value[2] / value[0], FLAT_FROM, FLAT_TO)) * ramp(s.count, 3, 7);
    double t = 3 * mass / (UN_PI * reach * reach), area = 15 * mass / (16 * reach);
    sheet *= (1 - thread) * ramp(t / r, TORN_FROM, TORN_TO);

    double half = fmin(0.5 * t, r), thick = sqrt(area / UN_PI), round = fmin(thick, THREAD * r);
    un_vec3 off_sheet = un_scale(axis[2], un_dot(middle, axis[2]));
    un_vec3 off_thread = un_mad(middle, axis[0], -un_dot(middle, axis[0]));
    e->x = un_mad(e->x, excess(off_sheet, 0.5 * t - half), sheet);
    e->x = un_mad(e->x, excess(off_thread, thick - round), thread);
    double share = s.mass / (0.957 * reach * reach * reach);
    double dense = ramp(share, DENSE_FROM, DENSE_TO), few = 1 - ramp(share, FEW_FROM, FEW_TO);
    double base = r * (1 + (UN_HULL_DROP - 1) * few);
    e->radius = (float)(base + sheet * (half - base) + thread * (round - base));

    double volume = def->particles->volume[q], spacing = sheet * sqrt(volume / t);
    spacing += thread * volume / area;
    double coherent = fmax(dense, sheet + thread), size = fmax(r, SIZE_SPACING * spacing);
    e->size += (float)(coherent * (fmin(size, SIZE_MOST * r) - SIZE_SPRAY * r));
    double drawn = (def->drawn_all ? 1 : fmin(1, 2 * sheet)) * def->drawn;
    double least = fmin(drawn, DRAWN_MOST * r);
    e->inset = (float)fmax(0, least - (double)e->radius);
    e->radius += e->inset;
    if (thread >= 0.5)
        e->leaf = (float)LEAF_THREAD * e->radius;
    else if (sheet >= 0.5)
        e->leaf = (float)(def->leaf * fmax(1, (double)e->radius / def->drawn));
}

/* Where the level set cannot be trusted spheres are not made to touch it. */
static void keep_radius(const un_slim_def *def, int64_t q, un_slim_entry *e)
{
    float r = def->radius[q], touching = un_hull_touching(r, def->depth[q], def->touch);
    *e = (un_slim_entry){.x = un_particle_position(def->particles, q), .size = r, .body = true};
    e->radius = r + (float)trust(def, q) * (touching - r);
}

static void shape_all(void *arg, int64_t begin, int64_t end)
{
    slim_args *a = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t q = a->slim->particle[i];
        if (a->mark[q] == SLIM)
            un_slim_shape(a->def, q, &a->slim->entry[i]);
        else
            keep_radius(a->def, q, &a->slim->entry[i]);
    }
}

/* Radius of a particle's sphere, and its place and size. */
static double size_of(const slim_args *a, int64_t q, un_vec3 *x)
{
    int32_t at = a->slim->place[q];
    *x = at >= 0 ? a->slim->entry[at].x : un_particle_position(a->def->particles, q);
    return at >= 0 ? a->slim->entry[at].size : a->def->radius[q];
}

/* Finds out which flying particles are joined to any other. */
static void find_joined(void *arg, int64_t begin, int64_t end)
{
    slim_args *a = arg;
    const un_slim_def *def = a->def;
    const un_particles *p = def->particles;
    for (int64_t i = begin; i < end; i++) {
        un_slim_entry *e = &a->slim->entry[i];
        int64_t q = a->slim->particle[i];
        int32_t near[NEAR_MAX];
        e->joined = !un_slim_flies(def->particles, q);
        if (e->joined) continue;
        /* sizes and moves are at most SIZE_MOST and a few radii of their particles */
        double reach = def->reach * e->size + REACH * def->radius[q];
        int32_t count = un_groups_near(def->groups, (un_box3){e->x, e->x}, reach,
                                       def->reach * SIZE_MOST, near, NEAR_MAX);
        if (count < 0) count = NEAR_MAX;
        for (int32_t g = 0; g < count && !e->joined; g++) {
            int64_t last = un_min64(p->count, UN_GROUP * ((int64_t)near[g] + 1));
            for (int64_t j = UN_GROUP * (int64_t)near[g]; j < last && !e->joined; j++) {
                un_vec3 x;
                if (j == q || p->flags[j] & UN_PARTICLE_LANDED || !is_sound(def, j)) continue;
                double size = size_of(a, j, &x);
                e->joined = un_slim_touches(e, def->reach, x, size);
            }
        }
    }
}

/* ---- drops ---- */

/* A number that a particle keeps in flight: from its velocity across gravity, or where it has
 * none, from its place. */
static uint64_t find_number(const un_slim_def *def, int64_t q)
{
    un_vec3 g = un_normalize(def->gravity), v = un_particle_velocity(def->particles, q);
    un_vec3 across = un_mad(v, g, -un_dot(v, g));
    if (un_dot(across, across) == 0) {
        un_vec3 x = un_particle_position(def->particles, q);
        across = un_mad(x, g, -un_dot(x, g));
    }
    float part[3] = {(float)across.x, (float)across.y, (float)across.z};
    uint64_t number = 0;
    for (int32_t i = 0; i < 3; i++) {
        uint32_t bits;
        memcpy(&bits, &part[i], sizeof bits);
        /* without the last bits, which gravity off the axes rounds */
        number = un_hash64(number ^ bits >> 8);
    }
    return number;
}

double un_slim_drop(const un_slim_def *def, int64_t q, un_slim_entry *e)
{
    uint64_t number = find_number(def, q);
    double part = pow(un_random(number, 1), 1.5); /* more small ones than large ones */
    double r = DROP_LEAST + part * (DROP_MOST - DROP_LEAST);
    r = 1 + e->lonely * (r - 1);
    e->x = un_particle_position(def->particles, q);
    e->radius = (float)(r * UN_HULL_DROP * (double)def->radius[q]);
    e->stretch = (float)(e->lonely * un_random(number, 2));
    return r;
}

void un_slim_add_drop(un_slim_drops *drops, float volume, double r)
{
    drops->volume += volume;
    drops->drawn += volume * r * r * r;
}

float un_slim_scale(const un_slim_drops *drops)
{
    return drops->drawn > 0 ? (float)cbrt(drops->volume / drops->drawn) : 1;
}

/* Sizes of drops, which together keep their volume. */
static void size_drops(slim_args *a)
{
    un_slim *slim = a->slim;
    un_slim_drops drops = {0, 0};
    for (int32_t i = 0; i < slim->count; i++) {
        if (slim->entry[i].joined) continue;
        int32_t q = slim->particle[i];
        double r = un_slim_drop(a->def, q, &slim->entry[i]);
        un_slim_add_drop(&drops, a->def->particles->volume[q], r);
    }
    float scale = un_slim_scale(&drops);
    for (int32_t i = 0; i < slim->count; i++)
        if (!slim->entry[i].joined) slim->entry[i].radius *= scale;
}

static un_status list_slim(un_context *ctx, un_arena *arena, slim_args *a)
{
    un_slim *slim = a->slim;
    int64_t count = a->def->particles->count;
    UN_TRY(un_cut_list(ctx, arena, a->mark, count, &slim->particle, &slim->count));
    slim->entry = un_arena_alloc(arena, (size_t)slim->count + 1, sizeof *slim->entry);
    if (!slim->entry) return UN_ERROR_MEMORY;
    for (int64_t q = 0; q < count; q++) slim->place[q] = -1;
    for (int32_t i = 0; i < slim->count; i++) slim->place[slim->particle[i]] = i;
    return UN_OK;
}

un_status un_slim_find(un_context *ctx, un_arena *arena, un_slim *slim, const un_slim_def *def)
{
    int64_t count = def->particles->count;
    bool shared = def->shared;
    slim_args a = {.def = def, .slim = slim};
    *slim = (un_slim){0};
    slim->place = un_arena_alloc(arena, (size_t)count + 1, sizeof *slim->place);
    a.mark = un_arena_alloc(arena, (size_t)count + 1, 1);
    UN_TRY(un_hulls_agree(ctx, shared, slim->place && a.mark ? UN_OK : UN_ERROR_MEMORY));
    un_parallel_part(ctx, un_hulls_part(ctx, shared, count), 1024, find_slim, &a);
    un_hulls_spread(ctx, shared, count, a.mark, 1);
    UN_TRY(un_hulls_agree(ctx, shared, list_slim(ctx, arena, &a)));
    un_part part = un_hulls_part(ctx, shared, slim->count);
    un_parallel_part(ctx, part, 64, shape_all, &a);
    un_hulls_spread(ctx, shared, slim->count, slim->entry, sizeof *slim->entry);
    un_parallel_part(ctx, part, 256, find_joined, &a);
    un_hulls_spread(ctx, shared, slim->count, slim->entry, sizeof *slim->entry);
    size_drops(&a);
    return UN_OK;
}
