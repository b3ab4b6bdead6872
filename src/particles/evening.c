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

static un_vec3 apply(double m[3][3], un_vec3 v)
{
    return un_v3(m[0][0] * v.x + m[0][1] * v.y + m[0][2] * v.z,
                 m[1][0] * v.x + m[1][1] * v.y + m[1][2] * v.z,
                 m[2][0] * v.x + m[2][1] * v.y + m[2][2] * v.z);
}

static void sum(double out[3][3], const double a[3][3], const double b[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) out[i][k] = 0.5 * (a[i][k] + b[i][k]);
}

static double wanted_distance(const un_lay *a, const un_lay *b, bool flat)
{
    double share = flat || (a->thread && b->thread) ? SPREAD_LINE : SPREAD_SHEET;
    if (a->rim || b->rim) share = fmin(share, SPREAD_RIM);
    return 0.5 * share * (a->spacing + b->spacing);
}

static void add_pair(told *out, const even_args *a, int64_t i, int64_t j, un_vec3 d, double w)
{
    const un_thin *t = a->thin;
    const un_lay *li = &t->lay[i], *lj = &t->lay[j];
    double across[3][3], fit[3][3], strength = fmin(li->strength, lj->strength);
    double mi = t->mass[i], mj = t->mass[j];
    w *= strength * mj / fmax(li->mass, lj->mass);
    sum(across, li->across, lj->across);
    sum(fit, li->fit, lj->fit);
    un_vec3 dv = un_sub(un_sub(un_thin_velocity(t, j), un_thin_velocity(t, i)), apply(fit, d));
    out->change = un_mad(out->change, dv, w * a->along);
    out->change = un_mad(out->change, apply(across, dv), w * (a->across - a->along));
    un_vec3 height = apply(across, d), u = un_sub(d, height);
    out->move = un_mad(out->move, height, w * a->flatten * fmax(li->flatten, lj->flatten));
    double l = un_length(u), want = wanted_distance(li, lj, a->particles->flat);
    if (l < want && l > 1e-6 * want)
        out->move = un_mad(out->move, u, strength * a->spread * (l - want) / l * mj / (mi + mj));
}

static void listen(told *out, const even_args *a, int64_t i, const un_thin_chunk *chunk)
{
    const un_thin *t = a->thin;
    un_vec3 x = un_thin_position(t, i);
    double w[UN_THIN_CHUNK];
    un_thin_weights(w, t, i, chunk);
    for (int32_t n = 0; n < chunk->count; n++) {
        int32_t j = chunk->id[n];
        if (!(w[n] > 0) || j == i || !(t->lay[j].strength > 0)) continue;
        add_pair(out, a, i, j, un_sub(un_thin_position(t, j), x), w[n]);
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
        un_vec3 v = un_particle_velocity(p, q), x = un_particle_position(p, q), move = a->move[i];
        un_particle_set_velocity(p, q, un_add(v, a->change[i]));
        double radius = un_thin_radius(p->volume[q], p->flat);
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
