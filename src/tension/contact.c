/* The level set beyond walls: the surface goes on in them as it would if they were not there, so
 * that what smooths it and what measures its curvature need not know of walls.
 *
 * At a right angle that is the mirror image. At a contact angle theta, measured in the liquid, the
 * mirror image is sheared along the wall:
 *
 *     phi(x) = phi(x + 2 d n - 2 d cot(theta) t)
 *
 * with d the depth of x in the wall, n the wall's normal and t the direction along the wall from
 * the liquid to the air. A straight line at the angle theta goes on straight, and the curvature of
 * a curved one goes on too; at any other angle there is a kink at the wall, whose curvature drives
 * the surface towards theta. */
#include "tension/lattice.h"

/* Cells into a wall; deeper ones take what is next to them. */
#define DEPTH 5.0
/* Steeper angles, degrees, are taken for this one: the shear must stay within the band. */
#define STEEPEST 12.0
/* Cells by which a shear may move a point. */
#define SHEAR_MAX 8.0
/* At an angle, the level set within so many cells of a solid's surface is not used: cells below it
 * are part of what is sampled there. */
#define LEAST 0.6
/* Share of phi's slope along the wall below which the surface runs beside the wall and does not
 * meet it. */
#define MEETS 0.2
/* Cells whose centres lie no deeper in a solid, in cells, have a level set of their own: where all
 * of them took the image of what lies above, a bead of 30 degrees on a plate that leaves cells a
 * third to a half open shed a film that the tension did not see. */
#define KEPT 0.2
/* Images at an angle are taken from distances, and these from the images: a bead of 30 degrees at
 * 48 cells is 30 to 36 degrees after one round, 30 to 31 after two, and the same after three. */
#define ROUNDS 2

static double cot_of(double degrees)
{
    double theta = un_clamp(degrees, STEEPEST, 180 - STEEPEST) * UN_PI / 180;
    return cos(theta) / sin(theta);
}

static bool has_angles(const un_tension_lattice *l)
{
    const un_scene_def *def = l->in->def;
    bool has = def->domain.contact_angle != 90;
    for (int32_t i = 0; i < def->solid_count; i++) has |= def->solids[i].contact_angle != 90;
    return has;
}

/* phi at x, at the depth d in a wall with the normal n, from a place at least `least` above it. */
static float beyond(const un_tension_lattice *l, const double x[3], const double n[3], double d,
                    double least, double cot)
{
    double y[3], g[3], along = 0, slide = 0, t[3], lift = d + fmax(d, least);
    for (int a = 0; a < 3; a++) y[a] = x[a] + lift * n[a];
    double value = un_lattice_sample(l, y, g);
    if (cot == 0) return (float)value;
    for (int a = 0; a < 3; a++) along += g[a] * n[a];
    for (int a = 0; a < 3; a++) {
        t[a] = g[a] - along * n[a];
        slide += t[a] * t[a];
    }
    slide = sqrt(slide);
    double shear = un_clamp(lift * cot, -SHEAR_MAX, SHEAR_MAX) / fmax(slide, MEETS);
    for (int a = 0; a < 3; a++) y[a] -= shear * t[a];
    return (float)un_lattice_sample(l, y, g);
}

/* The same on a grid that warps; d and n are in space, d and least in m, and x may lie beyond a
 * side of the domain, which is a mirror of the grid too: then y is its image. */
static float beyond_warped(const un_tension_lattice *l, const double y[3], un_vec3 n, double lift,
                           double cot)
{
    double g[3], z[3], value = un_lattice_sample(l, y, g);
    if (cot == 0) return (float)value;
    un_warp_point p = un_lattice_map(l, y);
    un_vec3 slope = un_normalize(un_warp_gradient(&p, un_v3(g[0], g[1], l->dim == 2 ? 0 : g[2])));
    un_vec3 t = un_mad(slope, n, -un_dot(slope, n));
    double size = l->in->grid->h * un_lattice_size(&p, l->dim);
    double shear = un_clamp(lift * cot, -SHEAR_MAX * size, SHEAR_MAX * size);
    un_lattice_find(l, un_mad(p.x, t, -shear / fmax(un_length(t), MEETS)), y, z);
    return (float)un_lattice_sample(l, z, g);
}

typedef struct extend_args {
    un_tension_lattice *l;
    bool straight;
    int axis; /* of the side; -1: solids */
    double plane, sign;
    double cot;
} extend_args;

/* ---- solids ---- */

static bool in_domain(const un_tension_lattice *l, const double x[3])
{
    for (int a = 0; a < l->dim; a++)
        if (!(x[a] > l->low[a] && x[a] < l->high[a])) return false;
    return true;
}

/* Of walls without samples. */
static un_vec3 solid_normal(const un_walls *walls, un_vec3 x)
{
    double distance = INFINITY;
    int32_t b = un_bodies_nearest(walls->bodies, x, &distance);
    return b < 0 ? un_v3(0, 0, 0) : un_body_normal(&walls->bodies->body[b], x);
}

/* True if the cell lies in a solid. */
static bool in_solid(const extend_args *e, int64_t c, double x[3], double n[3], double *depth)
{
    const un_tension_lattice *l = e->l;
    un_lattice_place(l, c, x);
    if ((l->mark && !(l->mark[c] & UN_MAY_BE_SOLID)) || !in_domain(l, x)) return false;
    un_vec3 at = un_lattice_world(l, x);
    const un_walls *walls = l->in->walls;
    double d = walls->phi ? un_walls_distance(walls, at) : un_walls_distance_exact(walls, at);
    *depth = -d / l->in->grid->h;
    if (!(*depth > KEPT && *depth < DEPTH)) return false;
    un_vec3 normal = walls->phi ? un_walls_normal(walls, at) : solid_normal(walls, at);
    n[0] = normal.x, n[1] = normal.y, n[2] = normal.z;
    return un_dot(normal, normal) > 0;
}

/* On a grid that warps, from a place at least `least` cells above the solid. */
static bool extend_warped(const extend_args *e, int64_t c, double least)
{
    un_tension_lattice *l = e->l;
    const un_bodies *bodies = l->in->walls->bodies;
    int64_t cell = un_lattice_grid_cell(l, c);
    double x[3], y[3], distance = INFINITY;
    if (cell < 0 || l->in->walls->volume[cell] >= 1) return false;
    un_lattice_place(l, c, x);
    un_warp_point p = un_lattice_map(l, x);
    int32_t b = un_bodies_nearest(bodies, p.x, &distance);
    double size = l->in->grid->h * un_lattice_size(&p, l->dim), depth = -distance / size;
    if (b < 0 || !(depth > KEPT && depth < DEPTH)) return false;
    un_vec3 n = un_body_normal(&bodies->body[b], p.x);
    double lift = size * (depth + fmax(depth, least));
    un_lattice_find(l, un_mad(p.x, n, lift), x, y);
    l->scratch[c] =
        beyond_warped(l, y, n, lift, e->straight ? 0 : cot_of(bodies->body[b].contact_angle));
    return true;
}

static double solid_cot(const un_tension_lattice *l, const double x[3])
{
    const un_bodies *bodies = l->in->walls->bodies;
    double distance = INFINITY;
    int32_t b = un_bodies_nearest(bodies, un_lattice_world(l, x), &distance);
    return b < 0 ? 0 : cot_of(bodies->body[b].contact_angle);
}

static void extend_solids(void *arg, int64_t begin, int64_t end)
{
    const extend_args *e = arg;
    un_tension_lattice *l = e->l;
    for (int64_t c = begin; c < end; c++) {
        double x[3], n[3], depth;
        l->scratch[c] = l->phi[c];
        if (!e->straight && l->number[c] < 0) continue;
        if (l->warp && extend_warped(e, c, e->straight ? 0 : LEAST) && l->beyond) l->beyond[c] = 1;
        if (l->warp || !in_solid(e, c, x, n, &depth)) continue;
        if (l->beyond) l->beyond[c] = 1;
        l->scratch[c] =
            beyond(l, x, n, depth, e->straight ? 0 : LEAST, e->straight ? 0 : solid_cot(l, x));
    }
}

/* ---- sides ---- */

static float beyond_side(const extend_args *e, const double x[3], const double n[3], double depth)
{
    double y[3] = {x[0], x[1], x[2]};
    y[e->axis] += 2 * depth * n[e->axis];
    un_warp_point p = un_lattice_map(e->l, y);
    const double at[3] = {p.x.x, p.x.y, p.x.z};
    const un_vec3 size = e->l->warp->size;
    const double far[3] = {size.x, size.y, size.z};
    double height = e->sign > 0 ? at[e->axis] : far[e->axis] - at[e->axis];
    return beyond_warped(e->l, y, un_v3(n[0], n[1], n[2]), 2 * height, e->cot);
}

static void extend_side(void *arg, int64_t begin, int64_t end)
{
    const extend_args *e = arg;
    un_tension_lattice *l = e->l;
    double n[3] = {0};
    n[e->axis] = e->sign;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = row * l->n[0];
        double x[3];
        memcpy(l->scratch + first, l->phi + first, (size_t)l->n[0] * sizeof *l->phi);
        un_lattice_place(l, first, x);
        double depth = e->sign * (e->plane - x[e->axis]);
        if (e->axis > 0 && !(depth > 0)) continue;
        for (int32_t i = 0; i < l->n[0]; i++) {
            x[0] = i;
            depth = e->sign * (e->plane - x[e->axis]);
            if (!(depth > 0) || (!e->straight && l->number[first + i] < 0)) continue;
            if (l->beyond) l->beyond[first + i] = 1;
            l->scratch[first + i] = e->cot != 0 && l->warp ? beyond_side(e, x, n, depth)
                                                           : beyond(l, x, n, depth, 0, e->cot);
        }
    }
}

/* The colour of a cell next to a side is the mean over the open part of its kernel, whose centre
 * lies LOPSIDED cells off the cell's: phi is moved back along its slope. (Next to solids colour.c
 * does so itself.) */
#define LOPSIDED 0.15

static void centre_side(void *arg, int64_t begin, int64_t end)
{
    const extend_args *e = arg;
    un_tension_lattice *l = e->l;
    int64_t inwards = e->sign > 0 ? l->stride[e->axis] : -l->stride[e->axis];
    for (int64_t c = begin; c < end; c++) {
        double x[3];
        l->scratch[c] = l->phi[c];
        un_lattice_place(l, c, x);
        double height = e->sign * (x[e->axis] - e->plane);
        if (!(fabs(height - 0.5) < 1e-3) || !in_domain(l, x)) continue;
        double here = l->phi[c], next = l->phi[c + inwards], slope = l->phi[c + 2 * inwards] - next;
        if (fabs(here) < 1.2 && fabs(next) < 1.4)
            l->scratch[c] = (float)(here - LOPSIDED * un_clamp(slope, -1, 1));
    }
}

static void commit(un_tension_lattice *l)
{
    float *phi = l->phi;
    l->phi = l->scratch;
    l->scratch = phi;
}

/* Before angles: phi is the distance, as far as it is known. */
static void take_distance(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    for (int64_t c = begin; c < end; c++) {
        int32_t q = l->number[c];
        l->phi[c] = q >= 0 ? l->d[0][q] : l->phi[c] < 0 ? -UN_BAND : UN_BAND;
    }
}

/* straight: at right angles; otherwise at the contact angles, from d[0]. */
static void extend(un_tension_lattice *l, bool straight)
{
    const un_scene_def *def = l->in->def;
    int64_t rows = l->count / l->n[0], grain = un_block_grain(l->count);
    if (!straight) un_parallel_for(l->ctx, l->count, grain, take_distance, l);
    for (int side = 0; straight && side < 2 * l->dim; side++) {
        if (def->domain.open[side]) continue;
        extend_args e = {.l = l,
                         .axis = side / 2,
                         .plane = side % 2 ? l->high[side / 2] : l->low[side / 2],
                         .sign = side % 2 ? -1 : 1};
        un_parallel_for(l->ctx, l->count, grain, centre_side, &e);
        commit(l);
    }
    if (def->solid_count > 0) {
        extend_args e = {.l = l, .straight = straight, .axis = -1};
        un_parallel_for(l->ctx, l->count, grain, extend_solids, &e);
        commit(l);
    }
    for (int side = 0; side < 2 * l->dim; side++) {
        bool high = side % 2;
        if (def->domain.open[side]) continue;
        extend_args e = {.l = l,
                         .straight = straight,
                         .axis = side / 2,
                         .plane = high ? l->high[side / 2] : l->low[side / 2],
                         .sign = high ? -1 : 1,
                         .cot = straight ? 0 : cot_of(def->domain.contact_angle)};
        un_parallel_for(l->ctx, rows, 64, extend_side, &e);
        commit(l);
    }
}

/* Outside walls the level set is its own again. The distance is no substitute: that to a surface
 * that goes on at a right angle is one to a blunt edge, and its zero lies farther in. */
static void restore(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    for (int64_t c = begin; c < end; c++)
        if (!l->beyond[c]) l->phi[c] = l->own[c];
}

void un_lattice_extend(un_tension_lattice *l)
{
    extend(l, true);
}

un_status un_lattice_turn(un_tension_lattice *l, un_arena *arena)
{
    int64_t grain = un_block_grain(l->count);
    if (!has_angles(l)) return UN_OK;
    l->own = un_arena_alloc(arena, (size_t)l->count, sizeof *l->own);
    l->beyond = un_arena_alloc(arena, (size_t)l->count, 1);
    if (!l->own || !l->beyond) return UN_ERROR_MEMORY;
    memcpy(l->own, l->phi, (size_t)l->count * sizeof *l->own);
    memset(l->beyond, 0, (size_t)l->count);
    for (int round = 0; round < ROUNDS; round++) {
        extend(l, false);
        un_parallel_for(l->ctx, l->count, grain, restore, l);
        UN_TRY(un_lattice_distance(l, arena));
    }
    return UN_OK;
}
