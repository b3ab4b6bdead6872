/* Evening of sheets and threads: velocities and places of thin particles (sheets.c).
 *
 * Neighbours exchange momentum and way in pairs, so both sums are kept to round-off. With d the
 * way from i to j, N = (N_i + N_j) / 2 the mean projector across, and G_i the gradient of velocity
 * that i's neighbours fit along the layer:
 *
 *     dv_i = sum_j s w_ij (N + tangent (1 - N)) (v_j - v_i - (G_i + G_j) d / 2)
 *     dx_i = sum_j flatten w_ij f_ij N d - spread (d0 - |u|) u / |u| m_j / (m_i + m_j)
 *
 *     w_ij = m_j w / max(sum_i, sum_j),  u = (1 - N) d,  d0 the spacing of an even layer
 *
 * An even stream, a rotation and a stretching layer have no differences beyond G and stay as they
 * are; so does a curved sheet, across which N d is nearly 0. f is 0 for particles that lie within
 * the sheet's thickness. All shares are rates in the scene's own time (un_scene_pace). */
#include "particles/sheets.h"

/* Rates per pace. Across a layer noise must go before it has opened the layer: a sheet that crosses
 * the domain in a tenth of a pace still loses it within a thickness or two. Along it, flow below
 * the reach is real more often. */
#define ACROSS_RATE 200.0
#define ALONG_RATE 40.0
#define FLATTEN_RATE 40.0
#define SPREAD_RATE 60.0
/* d0 in spacings: between pairs, and where one of them is at a rim, which must not creep outwards.
 * An even layer of discs has 1.075. */
#define SPREAD_SHEET 1.5
#define SPREAD_RIM 0.9
#define SPREAD_LINE 1.0
/* Most that pairs may share in a step: more would overshoot. */
#define SPREAD_MOST 0.5
/* A particle moves at most this far in a step, in radii, and in ways travelled, so that liquid at
 * rest stays there (correct_sized.c). */
#define MOVE_MAX 0.4
#define MOVE_WAYS 0.3
/* Moves keep this distance from walls, in radii. */
#define WALL_MARGIN 0.08

typedef struct even_args {
    const un_thin *thin;
    un_particles *particles;
    const un_sheets_def *def;
    double across, along, flatten, spread; /* shares of this step */
    un_vec3 *change, *move;
} even_args;

/* What particle i is told by its neighbours. */
typedef struct told {
    un_vec3 change, move;
} told;

/* The mean of two symmetric matrices, doubled, on v. */
static un_vec3 apply_squares(const float a[6], const float b[6], un_vec3 v)
{
    double m[6];
    for (int k = 0; k < 6; k++) m[k] = (double)(a[k] + b[k]);
    return un_v3(m[0] * v.x + m[5] * v.y + m[4] * v.z, m[5] * v.x + m[1] * v.y + m[3] * v.z,
                 m[4] * v.x + m[3] * v.y + m[2] * v.z);
}
static un_vec3 apply_fits(const double a[3][3], const double b[3][3], un_vec3 v)
{
    double out[3];
    for (int k = 0; k < 3; k++)
        out[k] = (a[k][0] + b[k][0]) * v.x + (a[k][1] + b[k][1]) * v.y + (a[k][2] + b[k][2]) * v.z;
    return un_v3(out[0], out[1], out[2]);
}

static double wanted_distance(const un_lay *a, const un_lay *b, bool flat)
{
    double share = flat || (a->thread && b->thread) ? SPREAD_LINE : SPREAD_SHEET;
    if (a->rim || b->rim) share = fmin(share, SPREAD_RIM);
    return 0.5 * share * (double)(a->spacing + b->spacing);
}

static void add_pair(told *out, const even_args *a, int64_t i, int64_t j)
{
    const un_thin *t = a->thin;
    const un_lay *li = &t->lay[i], *lj = &t->lay[j];
    un_vec3 d = un_sub(un_thin_position(t, j), un_thin_position(t, i));
    double reach = (double)t->half_reach[i] + (double)t->half_reach[j];
    double left = 1 - un_dot(d, d) / (reach * reach);
    if (!(left > 0)) return;
    double strength = (double)(li->strength < lj->strength ? li->strength : lj->strength);
    double mi = t->mass[i], mj = t->mass[j];
    double w = left * left * strength * mj / (li->mass > lj->mass ? li->mass : lj->mass);
    un_vec3 dv = un_sub(un_thin_velocity(t, j), un_thin_velocity(t, i));
    dv = un_mad(dv, apply_fits(li->fit, lj->fit, d), -0.5);
    out->change = un_mad(out->change, dv, w * a->along);
    out->change = un_mad(out->change, apply_squares(li->across, lj->across, dv),
                         0.5 * w * (a->across - a->along));
    un_vec3 height = un_scale(apply_squares(li->across, lj->across, d), 0.5);
    un_vec3 u = un_sub(d, height);
    double flatten = (double)(li->flatten > lj->flatten ? li->flatten : lj->flatten);
    out->move = un_mad(out->move, height, w * a->flatten * flatten);
    double l = un_length(u), want = wanted_distance(li, lj, a->particles->flat);
    if (l < want && l > 1e-6 * want)
        out->move = un_mad(out->move, u, strength * a->spread * (l - want) / l * mj / (mi + mj));
}

static void listen(told *out, const even_args *a, int64_t i, const un_thin_chunk *chunk)
{
    const un_thin *t = a->thin;
    float half_reach = t->half_reach[i] + t->room; /* a pair must find each other */
    for (int32_t n = 0; n < chunk->count; n++) {
        int64_t first = (int64_t)chunk->group[n] * UN_GROUP;
        un_lanes8 d2 = un_lanes8_all(0);
        for (int k = 0; k < 3; k++) {
            un_lanes8 d = un_lanes8_load(t->single[k] + first) - t->single[k][i];
            d2 += d * d;
        }
        un_lanes8 reach = un_lanes8_load(t->half_reach + first) + half_reach;
        for (uint32_t near = un_lanes8_less(d2, reach * reach); near; near &= near - 1) {
            int64_t j = first + __builtin_ctz(near);
            if (j != i && t->lay[j].strength > 0) add_pair(out, a, i, j);
        }
    }
}

static void find_changes(void *arg, int64_t begin, int64_t end)
{
    const even_args *a = arg;
    const un_thin *t = a->thin;
    for (int64_t g = begin; g < end; g++) {
        int64_t first = g * UN_GROUP, last = un_min64(first + UN_GROUP, t->count);
        told out[UN_GROUP] = {0};
        bool any = false;
        for (int64_t i = first; i < last; i++) any |= t->lay[i].strength > 0;
        if (t->own && !t->own[g]) any = false;
        un_thin_walk walk;
        un_thin_chunk chunk;
        if (any) un_thin_walk_begin(&walk, t, (int32_t)g);
        while (any && un_thin_walk_next(&walk, &chunk))
            for (int64_t i = first; i < last; i++)
                if (t->lay[i].strength > 0) listen(&out[i - first], a, i, &chunk);
        for (int64_t i = first; i < last; i++) {
            a->change[i] = out[i - first].change;
            a->move[i] = out[i - first].move;
        }
    }
}

/* True if the particle may move to x + move: no wall in between, none much closer. */
static bool may_go(const even_args *a, int32_t q, un_vec3 x, un_vec3 move, double radius)
{
    const un_walls *walls = a->def->walls;
    un_vec3 to = un_add(x, move);
    if (!un_grid_encloses(walls->grid, to)) return false;
    double margin = WALL_MARGIN * radius;
    double wall = a->def->wall ? (double)a->def->wall[q]
                               : un_walls_distance(walls, x) - 1.75 * walls->grid->h;
    if (!walls->bodies->moving && wall - un_length(move) > margin) return true;
    return un_open_move(walls, x, to, margin);
}

static void apply_changes(void *arg, int64_t begin, int64_t end)
{
    const even_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t i = begin; i < end; i++) {
        int32_t q = a->thin->id[i];
        if (!(a->thin->lay[i].strength > 0)) continue;
        if (a->thin->own && !a->thin->own[i / UN_GROUP]) continue;
        un_vec3 v = un_particle_velocity(p, q), x = un_particle_position(p, q), move = a->move[i];
        un_particle_set_velocity(p, q, un_add(v, a->change[i]));
        double radius = a->thin->radius[i];
        double most = fmin(MOVE_MAX * radius, MOVE_WAYS * un_length(v) * a->def->dt);
        double length = un_length(move);
        if (!(length > 0)) continue;
        if (length > most) move = un_scale(move, most / length);
        if (may_go(a, q, x, move, radius)) un_particle_set_position(p, q, un_add(x, move));
    }
}

un_status un_thin_even(un_context *ctx, un_arena *arena, const un_thin *thin, un_particles *p,
                       const un_sheets_def *def)
{
    double t = def->strength * def->dt / def->pace;
    even_args a = {.thin = thin,
                   .particles = p,
                   .def = def,
                   .across = 1 - exp(-ACROSS_RATE * t),
                   .along = 1 - exp(-ALONG_RATE * t),
                   .flatten = 1 - exp(-FLATTEN_RATE * t),
                   .spread = SPREAD_MOST * (1 - exp(-SPREAD_RATE * t))};
    a.change = un_arena_alloc(arena, (size_t)thin->count + 1, sizeof *a.change);
    a.move = un_arena_alloc(arena, (size_t)thin->count + 1, sizeof *a.move);
    if (!a.change || !a.move) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, thin->groups.group_count, 16, find_changes, &a);
    un_parallel_for(ctx, thin->count, 4096, apply_changes, &a);
    return UN_OK;
}
