/* One particle for the liquid of a half cell.
 *
 * Its volume is the liquid part of the half cell, with the boundary taken as a plane, and its
 * position is the middle of that part, jittered. So a flat surface at any height starts flat, and
 * the liquid starts with the volume of its shape. */
#include "particles/fill.h"

/* Share of the half cell within which a particle is placed at random. Surviving rows of the lattice
 * show as bands once the flow has stretched them, so more is better; but the colour of a full tank
 * is smooth to a thousandth only up to 0.5 (at 1, 0.4 %). It is smaller within two cells of the
 * free surface, so that the surface starts smooth: a 32-cell tank at rest starts with 1.7 cm/s at
 * 0.25, 2.3 at 0.5 and 6.2 at 1. */
#define JITTER 0.5
/* Space over reference space, at most, along any direction. */
#define STRETCH_MAX 4.0
#define SURFACE_DEPTH 2.0

/* Scardovelli & Zaleski 2000, by inclusion and exclusion: for the cube [0,1]^3 and
 * m1 x + m2 y + m3 z <= a with m >= 0, V = (a^3 - sum (a - m_i)^3 + ...) / (6 m1 m2 m3). */
double un_cube_below_plane(un_vec3 n, double d)
{
    double m[3] = {fabs(n.x), fabs(n.y), fabs(n.z)};
    double sum = m[0] + m[1] + m[2];
    double a = d + 0.5 * sum; /* the cube is centred; mirror it so that all m >= 0 */
    if (a <= 0) return 0;
    if (a >= sum) return 1;
    /* The cubic formula cancels for small components: widen them to a tiny width instead. The
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

/* On a grid that warps, x is in its reference space, and distances are in space. */
static double shape_distance(const un_fill *f, un_vec3 x)
{
    return un_shape_distance(f->shape, un_walls_place(f->walls, x));
}

static double stretch(const un_fill *f)
{
    return f->walls->warp ? STRETCH_MAX : 1;
}

/* The distance to the region that liquid may fill, at x. Walls made of triangles take their time:
 * they are not asked where they are too far to matter. wall: at most what their distance is. */
static double region_distance(const un_fill *f, un_vec3 x, double wall)
{
    double d = shape_distance(f, x);
    return d >= -wall ? d : fmax(d, -un_walls_distance_exact(f->walls, x));
}

/* True if all corners of a cube are in the liquid or on its boundary. At edges and corners of a box
 * that fits the lattice, no plane shows that the half cell is full. */
static bool all_inside(const un_fill *f, un_vec3 x, double half, double wall)
{
    double away = half * 1.7321 * stretch(f); /* from x to a corner */
    for (int c = 0; c < 1 << f->dim; c++) {
        un_vec3 at = {x.x + (c & 1 ? half : -half), x.y + (c & 2 ? half : -half), x.z};
        if (f->dim == 3) at.z += c & 4 ? half : -half;
        if (region_distance(f, at, wall - away) > 1e-6 * half) return false;
    }
    return true;
}

/* True near the free surface: a step along some axis leaves the shape and ends in open space, not
 * in a wall. A box flush with the floor has no surface there. */
static bool near_surface(const un_fill *f, un_vec3 x, double h)
{
    double reach = SURFACE_DEPTH * h;
    if (shape_distance(f, x) < -reach) return false;
    for (int n = 0; n < 2 * f->dim; n++) {
        double step = n & 1 ? reach : -reach;
        un_vec3 y =
            un_add(x, un_v3(n / 2 == 0 ? step : 0, n / 2 == 1 ? step : 0, n / 2 == 2 ? step : 0));
        if (shape_distance(f, y) > 0 && un_walls_distance_exact(f->walls, y) > 0) return true;
    }
    return false;
}

/* ---- half cells that the liquid's boundary cuts, and a wall too ---- */

typedef struct boundary {
    un_vec3 normal;
    double d;
    bool cuts; /* the half cell */
} boundary;

/* Sides of the domain do not count: half cells that they cut are cut once more by the surface, but
 * at right angles. */
static double body_distance(const un_fill *f, un_vec3 x)
{
    double d = INFINITY;
    un_bodies_nearest(f->walls->bodies, un_walls_place(f->walls, x), &d);
    return d;
}

/* The boundary as a plane: distance(x + r) = d + normal . r. */
static boundary boundary_at(const un_fill *f, double (*distance)(const un_fill *, un_vec3),
                            un_vec3 x, double d, double s)
{
    double e = 0.05 * s, n[3] = {0}, reach = 0;
    for (int a = 0; a < f->dim; a++) {
        un_vec3 step = un_v3(a == 0 ? e : 0, a == 1 ? e : 0, a == 2 ? e : 0);
        n[a] = (distance(f, un_add(x, step)) - distance(f, un_sub(x, step))) / (2 * e);
        reach += 0.5 * s * fabs(n[a]);
    }
    return (boundary){un_v3(n[0], n[1], n[2]), d, fabs(d) < reach * (1 - 1e-6)};
}

/* The liquid share of a half cell in a wedge between surface and wall, and its middle; below 0
 * where it is not in one. One plane for both would put water above the surface, at the edge of a
 * pool on a slope by half a cell. */
#define WEDGE_SAMPLES 6
static double wedge_share(const un_fill *f, un_vec3 x, double s, double d, double wall,
                          un_vec3 *middle)
{
    double reach = 0.87 * s * stretch(f);
    if (!(fabs(d) < reach && fabs(wall) < reach)) return -1;
    boundary surface = boundary_at(f, shape_distance, x, d, s),
             solid = boundary_at(f, body_distance, x, wall, s);
    if (!surface.cuts || !solid.cuts) return -1;
    /* liquid that lies flat on the wall */
    if (un_dot(surface.normal, solid.normal) < -0.99) return -1;
    int count = 0, all = f->dim == 2 ? WEDGE_SAMPLES * WEDGE_SAMPLES
                                     : WEDGE_SAMPLES * WEDGE_SAMPLES * WEDGE_SAMPLES;
    un_vec3 sum = {0, 0, 0};
    for (int i = 0; i < all; i++) {
        double step = s / WEDGE_SAMPLES, first = 0.5 * (step - s);
        un_vec3 r = {first + step * (i % WEDGE_SAMPLES),
                     first + step * (i / WEDGE_SAMPLES % WEDGE_SAMPLES),
                     f->dim == 2 ? 0 : first + step * (i / WEDGE_SAMPLES / WEDGE_SAMPLES)};
        if (surface.d + un_dot(surface.normal, r) > 0 || solid.d + un_dot(solid.normal, r) < 0)
            continue;
        sum = un_add(sum, r);
        count++;
    }
    *middle = count > 0 ? un_mad(x, sum, 1.0 / count) : x;
    return (double)count / all;
}

bool un_fill_half_cell(const un_fill *f, un_vec3 x, double s, un_vec3 jitter, un_seed *out)
{
    double d = shape_distance(f, x), reach = 0.87 * s * stretch(f);
    if (d >= reach) return false;
    double wall = f->wall, fraction = 1;
    if (wall < fmin(-d, reach)) wall = un_walls_distance_exact(f->walls, x);
    double surface = d;
    d = fmax(d, -wall);
    if (d >= reach) return false;
    if (surface > -reach && f->wall < reach && f->walls->bodies->count > 0) {
        un_vec3 middle;
        double share = wedge_share(f, x, s, surface, body_distance(f, x), &middle);
        if (share >= 0) {
            bool open =
                un_fill_in_domain(f, middle) && un_walls_distance_exact(f->walls, middle) > 0;
            *out = (un_seed){middle, un_fill_volume(s, f->dim) * share};
            return share >= UN_FRACTION_MIN && open;
        }
    }
    bool cut = d > -reach;
    if (cut) {
        double e = 0.05 * s, near = wall - e * stretch(f);
        un_vec3 n = {region_distance(f, un_v3(x.x + e, x.y, x.z), near) -
                         region_distance(f, un_v3(x.x - e, x.y, x.z), near),
                     region_distance(f, un_v3(x.x, x.y + e, x.z), near) -
                         region_distance(f, un_v3(x.x, x.y - e, x.z), near),
                     f->dim == 2 ? 0
                                 : region_distance(f, un_v3(x.x, x.y, x.z + e), near) -
                                       region_distance(f, un_v3(x.x, x.y, x.z - e), near)};
        if (f->walls->warp) d /= fmax(un_length(n) / (2 * e), 1 / STRETCH_MAX);
        n = un_normalize(n);
        fraction = all_inside(f, x, 0.5 * s, wall) ? 1 : un_cube_below_plane(n, -d / s);
        if (fraction < UN_FRACTION_MIN) return false;
        double back = 0.5 * s * (1 - fraction);
        x = un_mad(x, n, -back);
        back *= stretch(f);
        if (wall <= back) wall = back + un_walls_distance_exact(f->walls, x);
        wall -= back;
        /* Limit jitter across the surface to the liquid's thickness. */
        jitter = un_mad(jitter, n, -un_dot(jitter, n) * (1 - fraction));
    }
    if (!un_fill_in_domain(f, x) || wall <= 0) return false;
    double share = near_surface(f, x, 2 * s) ? UN_JITTER_SURFACE : JITTER;
    un_vec3 moved = un_mad(x, jitter, share * s);
    double way = share * s * un_length(jitter) * stretch(f);
    bool inside = (!cut && way < reach) || region_distance(f, moved, wall - way) < 0;
    if (un_fill_in_domain(f, moved) && inside) x = moved;
    out->x = x;
    out->volume = un_fill_volume(s, f->dim) * fraction;
    return true;
}

un_vec3 un_fill_jitter(uint64_t index, uint64_t stream, int32_t dim)
{
    return un_v3(un_random(index, stream) - 0.5, un_random(index, stream + 1) - 0.5,
                 dim == 2 ? 0 : un_random(index, stream + 2) - 0.5);
}

void un_fill_store(un_particles *p, int64_t at, const un_seed *seed, un_vec3 velocity, double cell)
{
    double x[3] = {seed->x.x, seed->x.y, seed->x.z};
    double v[3] = {velocity.x, velocity.y, velocity.z};
    for (int a = 0; a < 3; a++) {
        p->x[a][at] = x[a];
        p->v[a][at] = v[a];
    }
    p->volume[at] = (float)seed->volume;
    p->flags[at] = 0;
    p->fall[at] = UN_FALL_FREE;
    for (int a = 0; a < 3 && p->warped; a++) p->xi[a][at] = x[a];
    for (int a = 0; a < 9 && p->warped; a++) p->affine[a][at] = 0;
    if (p->size) p->size[at] = (float)cell;
    if (p->density) p->density[at] = p->viscosity[at] = 0; /* set by whoever seeds mixed liquid */
}

un_status un_fill_append(un_context *ctx, un_particles *particles, un_fill_pass *pass,
                         double *volume)
{
    int64_t blocks = (pass->count + pass->grain - 1) / pass->grain;
    *volume = 0;
    UN_ALLOC(ctx, pass->begin, blocks + 1);
    un_parallel_for(ctx, pass->count, pass->grain, pass->body, pass->arg);
    int64_t total = un_bins_offsets(pass->begin, blocks, particles->count);
    un_status status = un_particles_reserve(ctx, particles, total);
    if (status == UN_OK) {
        pass->particles = particles;
        un_parallel_for(ctx, pass->count, pass->grain, pass->body, pass->arg);
        for (int64_t i = particles->count; i < total; i++) *volume += particles->volume[i];
        particles->count = (int32_t)total;
    }
    un_free(ctx, pass->begin);
    return status;
}
