/* Seeding: eight jittered particles a cell.
 *
 * The lattice of half cells carries one particle each. Its volume is the liquid's part of the half
 * cell, found as if the boundary were a plane, and its place is the middle of that part, jittered:
 * so a flat surface at any height starts flat, and the liquid starts with the volume of its shape.
 *
 * Emission is a rigid stream through the emitter's shape: the lattice moves with the stream's
 * velocity, and a lattice point is emitted in the step in which it enters the shape, where it has
 * got to by the end of the step. */
#include "particles/particles.h"

/* Share of the half cell within which a particle is placed at random. Rows of the lattice that live
 * on show as bands once the flow has stretched them, so the more the better; but the colour of a
 * full tank is smooth to a thousandth only up to 0.5 (at 1, 0.4 %). Less within two cells of the
 * free surface, so that it starts smooth: a 32-cell tank at rest starts with 1.7 cm/s at 0.25, 2.3
 * at 0.5 and 6.2 at 1. */
#define JITTER 0.5
#define JITTER_SURFACE 0.25
#define SURFACE_DEPTH 2.0
/* Half cells with less liquid than this are left empty. */
#define FRACTION_MIN 0.02
/* A point has entered an emitter when it is this share of a half cell inside. Points that stop in
 * the very boundary between two steps are common (a box on the lattice, a round speed), and
 * round-off would lose or double them there. */
#define EMISSION_EDGE 1.3e-4

/* Scardovelli & Zaleski 2000, by inclusion and exclusion: for the cube [0,1]^3 and
 * m1 x + m2 y + m3 z <= a with m >= 0, V = (a^3 - sum (a - m_i)^3 + ...) / (6 m1 m2 m3). */
double un_cube_below_plane(un_vec3 n, double d)
{
    double m[3] = {fabs(n.x), fabs(n.y), fabs(n.z)};
    double sum = m[0] + m[1] + m[2];
    double a = d + 0.5 * sum; /* the cube is centred: mirrored so that all m >= 0 */
    if (a <= 0) return 0;
    if (a >= sum) return 1;
    /* Small components make the cubic formula cancel: spread them to a tiny width instead. The
     * round-off of two such components, 1e-16 / small^2, is then as small as the width. */
    double small = 1e-5 * sum;
    for (int i = 0; i < 3; i++)
        if (m[i] < small) {
            a += 0.5 * (small - m[i]);
            m[i] = small;
        }
    double v = 0;
    for (int s = 0; s < 8; s++) {
        double left = a - (s & 1) * m[0] - (s >> 1 & 1) * m[1] - (s >> 2) * m[2];
        if (left <= 0) continue;
        int bits = (s & 1) + (s >> 1 & 1) + (s >> 2);
        v += (bits % 2 ? -1 : 1) * left * left * left;
    }
    return un_clamp(v / (6 * m[0] * m[1] * m[2]), 0, 1);
}

typedef struct seed_args {
    const un_seed_def *def;
    un_particles *particles; /* NULL: count only */
    int64_t lo[3], hi[3];    /* half cells to visit */
    int64_t *row_begin;      /* by slab of half cells: counts, then first places */
} seed_args;

typedef struct seed {
    un_vec3 x;
    double volume;
} seed;

static double region_distance(const un_seed_def *def, un_vec3 x)
{
    double d = un_shape_distance(def->shape, x);
    return fmax(d, -un_walls_distance_exact(def->walls, x));
}

static bool in_domain(const un_grid *g, un_vec3 x)
{
    return x.x > 0 && x.y > 0 && x.z > 0 && x.x < g->size.x && x.y < g->size.y && x.z < g->size.z;
}

/* Are the corners of a cube all in the liquid or on its boundary? In edges and corners of a box
 * that fits the lattice no plane tells that the half cell is full. */
static bool all_inside(const un_seed_def *def, un_vec3 x, double half)
{
    for (int c = 0; c < 8; c++) {
        un_vec3 at = {x.x + (c & 1 ? half : -half), x.y + (c & 2 ? half : -half),
                      x.z + (c & 4 ? half : -half)};
        if (region_distance(def, at) > 1e-6 * half) return false;
    }
    return true;
}

/* Does the way from x - step to x lead into the shape, from outside? Marches by the distance, so
 * that a step longer than the shape is thick, or a chord near its rim, loses nothing. What ends
 * beyond the shape must not have met a wall on the way. */
static bool enters(const un_seed_def *def, un_vec3 x, double s)
{
    double length = un_length(def->step), edge = -EMISSION_EDGE * s, least = 0.02 * s;
    un_vec3 from = un_sub(x, def->step);
    double d = un_shape_distance(def->shape, from), t = 0;
    if (d < edge || un_walls_distance_exact(def->walls, x) <= 0) return false;
    un_vec3 direction = un_normalize(def->step);
    if (un_shape_distance(def->shape, x) < edge) return true;
    for (; d >= edge; d = un_shape_distance(def->shape, un_mad(from, direction, t))) {
        t += fmax(d, least);
        if (t >= length) return false;
    }
    while (t < length) {
        double wall = un_walls_distance_exact(def->walls, un_mad(from, direction, t));
        if (wall <= 0) return false;
        t += fmax(wall, least);
    }
    return true;
}

/* Near the free surface? A step along some axis leads out of the shape and into open space, not
 * into a wall: a box flush with the floor has no surface there. */
static bool near_surface(const un_seed_def *def, un_vec3 x)
{
    double reach = SURFACE_DEPTH * def->grid->h;
    if (un_shape_distance(def->shape, x) < -reach) return false;
    for (int n = 0; n < 6; n++) {
        double step = n & 1 ? reach : -reach;
        un_vec3 y =
            un_add(x, un_v3(n / 2 == 0 ? step : 0, n / 2 == 1 ? step : 0, n / 2 == 2 ? step : 0));
        if (un_shape_distance(def->shape, y) > 0 && un_walls_distance_exact(def->walls, y) > 0)
            return true;
    }
    return false;
}

/* The particle of half cell (i, j, k), if it has one. */
static bool seed_at(const un_seed_def *def, int64_t i, int64_t j, int64_t k, seed *out)
{
    const un_grid *g = def->grid;
    double s = 0.5 * g->h;
    un_vec3 x = un_add(un_v3((i + 0.5) * s, (j + 0.5) * s, (k + 0.5) * s), def->shift);
    uint64_t index =
        un_hash64((uint64_t)i * 0x10000000000u + (uint64_t)j * 0x100000u + (uint64_t)k);
    un_vec3 jitter = {un_random(index, def->stream) - 0.5, un_random(index, def->stream + 1) - 0.5,
                      un_random(index, def->stream + 2) - 0.5};
    out->volume = s * s * s;
    if (def->emitting) {
        if (!in_domain(g, x) || !enters(def, x, s)) return false;
        un_vec3 moved = un_mad(x, jitter, JITTER_SURFACE * s);
        if (in_domain(g, moved) && un_walls_distance_exact(def->walls, moved) > 0) x = moved;
        out->x = x;
        return true;
    }
    double d = region_distance(def, x);
    if (d >= 0.87 * s) return false;
    double fraction = 1;
    if (d > -0.87 * s) {
        double e = 0.05 * s;
        un_vec3 n = {region_distance(def, un_v3(x.x + e, x.y, x.z)) -
                         region_distance(def, un_v3(x.x - e, x.y, x.z)),
                     region_distance(def, un_v3(x.x, x.y + e, x.z)) -
                         region_distance(def, un_v3(x.x, x.y - e, x.z)),
                     region_distance(def, un_v3(x.x, x.y, x.z + e)) -
                         region_distance(def, un_v3(x.x, x.y, x.z - e))};
        n = un_normalize(n);
        fraction = all_inside(def, x, 0.5 * s) ? 1 : un_cube_below_plane(n, -d / s);
        if (fraction < FRACTION_MIN) return false;
        x = un_mad(x, n, -0.5 * s * (1 - fraction));
        /* Jitter across the surface only as far as the liquid goes. */
        jitter = un_mad(jitter, n, -un_dot(jitter, n) * (1 - fraction));
    }
    if (!in_domain(g, x) || un_walls_distance_exact(def->walls, x) <= 0) return false;
    un_vec3 moved = un_mad(x, jitter, (near_surface(def, x) ? JITTER_SURFACE : JITTER) * s);
    if (in_domain(g, moved) && region_distance(def, moved) < 0) x = moved;
    out->x = x;
    out->volume *= fraction;
    return true;
}

static void seed_slabs(void *arg, int64_t begin, int64_t end)
{
    seed_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t slab = begin; slab < end; slab++) {
        int64_t k = a->lo[2] + slab, at = p ? a->row_begin[slab] : 0;
        for (int64_t j = a->lo[1]; j <= a->hi[1]; j++)
            for (int64_t i = a->lo[0]; i <= a->hi[0]; i++) {
                seed s;
                if (!seed_at(a->def, i, j, k, &s)) continue;
                if (p) {
                    double x[3] = {s.x.x, s.x.y, s.x.z};
                    double v[3] = {a->def->velocity.x, a->def->velocity.y, a->def->velocity.z};
                    for (int c = 0; c < 3; c++) {
                        p->x[c][at] = x[c];
                        p->v[c][at] = v[c];
                    }
                    p->volume[at] = (float)s.volume;
                    p->flags[at] = 0;
                }
                at++;
            }
        if (!p) a->row_begin[slab] = at;
    }
}

/* Half cells that may hold a seed: those of the shape's box within the domain. */
static int64_t visit_range(seed_args *a)
{
    const un_grid *g = a->def->grid;
    un_box3 box = un_shape_bounds(a->def->shape);
    double s = 0.5 * g->h;
    double lo[3] = {box.min.x, box.min.y, box.min.z}, hi[3] = {box.max.x, box.max.y, box.max.z};
    double size[3] = {g->size.x, g->size.y, g->size.z};
    double shift[3] = {a->def->shift.x, a->def->shift.y, a->def->shift.z};
    double step[3] = {a->def->step.x, a->def->step.y, a->def->step.z};
    for (int c = 0; c < 3; c++) {
        lo[c] += fmin(step[c], 0); /* a stream may have passed the shape within its step */
        hi[c] += fmax(step[c], 0);
        a->lo[c] = (int64_t)floor((fmax(lo[c], 0) - shift[c]) / s) - 1;
        a->hi[c] = (int64_t)floor((fmin(hi[c], size[c]) - shift[c]) / s) + 1;
        if (a->hi[c] < a->lo[c]) return 0;
    }
    return a->hi[2] - a->lo[2] + 1;
}

int64_t un_particles_seed_count(un_context *ctx, const un_seed_def *def)
{
    seed_args a = {.def = def};
    int64_t slabs = visit_range(&a), total = 0;
    a.row_begin = un_alloc(ctx, (size_t)slabs + 1, sizeof *a.row_begin);
    if (!a.row_begin) return -1;
    un_parallel_for(ctx, slabs, 1, seed_slabs, &a);
    for (int64_t s = 0; s < slabs; s++) total += a.row_begin[s];
    un_free(ctx, a.row_begin);
    return total;
}

un_status un_particles_seed(un_context *ctx, un_particles *particles, const un_seed_def *def,
                            double *volume)
{
    seed_args a = {.def = def};
    int64_t slabs = visit_range(&a), total = particles->count;
    UN_ALLOC(ctx, a.row_begin, slabs + 1);
    un_parallel_for(ctx, slabs, 1, seed_slabs, &a);
    for (int64_t s = 0; s < slabs; s++) {
        int64_t n = a.row_begin[s];
        a.row_begin[s] = total;
        total += n;
    }
    un_status status = un_particles_reserve(ctx, particles, total);
    if (status == UN_OK) {
        a.particles = particles;
        un_parallel_for(ctx, slabs, 1, seed_slabs, &a);
        *volume = 0;
        for (int64_t i = particles->count; i < total; i++) *volume += particles->volume[i];
        particles->count = (int32_t)total;
    }
    un_free(ctx, a.row_begin);
    return status;
}
