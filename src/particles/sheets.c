/* Sheets and threads thinner than a cell.
 *
 * The mesh does not resolve them: their particles keep the noise that FLIP gave them, fly apart
 * along straight lines and leave holes and beads. Here they are recognised; evening.c holds them
 * together.
 *
 * Thin particles are those outside thick liquid (surface/thick.c). For each, with weights
 * w = m_j (1 - d^2 / R^2)^2 over the thin particles within R:
 *
 *     c = <d>,  C = <d d^T> - c c^T = sum_k l_k e_k e_k^T,  l_0 <= l_1 <= l_2
 *
 * A sheet has l_0 << l_2, a thread l_1 << l_2 as well. N projects onto the directions across:
 * e_0 for a sheet, e_0 and e_1 for a thread, with a smooth change from one to the other. The
 * thickness t of a sheet and the cross-section a of a thread follow from the volume within R:
 *
 *     t = 3 sum(V w) / (pi R^2),  a = 15 sum(V w) / (16 R),  w = (1 - d^2 / R^2)^2
 *
 * and from those the spacing of an even layer, sqrt(V / t) or V / a. In 2D a sheet is a line: its
 * thickness is found as a is, and its spacing is V / t. */
#include "particles/sheets.h"

/* R in radii of the particle. A sheet half a cell thick has 28 neighbours. */
#define REACH 6.0
/* Particles smaller than this share of the finest ones reach as far as those. */
#define RADIUS_MIN 1.0
/* Neighbours that a sheet and a thread must have at least; in 2D a sheet is a line, too. */
#define SHEET_COUNT 6
#define THREAD_COUNT 3
/* Ratios of eigenvalues that count as thin: certain below the first, not at all above the second.
 * 0.2 is a sheet as thick as a cell. */
#define THIN_SURE 0.1
#define THIN_MOST 0.2
/* The same for a thread, of its second eigenvalue: 0.28 is a thread 1.2 cells thick. */
#define LINE_SURE 0.2
#define LINE_MOST 0.35
/* Sheets that fill less than this share of their reach are ribbons, and all rim. */
#define RIBBON 0.65
/* A rim: the centre of the neighbours lies this far off, in R. */
#define RIM 0.2

/* ---- neighbours ---- */

void un_thin_walk_begin(un_thin_walk *w, const un_thin *thin, int32_t group)
{
    w->thin = thin;
    un_groups_walk_begin(&w->walk, &thin->groups, un_groups_bounds(&thin->groups, group),
                         (double)un_groups_radius(&thin->groups, group), 1);
}

/* True if the query's box reaches any of the group's particles. */
static bool reached(const un_thin *t, const un_groups_query *q, int32_t group)
{
    const un_lanes8 zero = un_lanes8_all(0);
    un_lanes8 d2 = zero;
    for (int a = 0; a < 3; a++) {
        un_lanes8 x = un_lanes8_load(t->single[a] + (int64_t)group * UN_GROUP);
        un_lanes8 d = un_lanes8_max(un_lanes8_max(q->lo[a] - x, x - q->hi[a]), zero);
        d2 += d * d;
    }
    un_lanes8 reach = un_lanes8_load(t->half_reach + (int64_t)group * UN_GROUP);
    reach += q->reach + t->room;
    return un_lanes8_less(d2, reach * reach) != 0;
}

bool un_thin_walk_next(un_thin_walk *w, un_thin_chunk *chunk)
{
    int32_t count = 0;
    for (int32_t g; count < UN_THIN_CHUNK && (g = un_groups_walk_next(&w->walk)) >= 0;)
        if (reached(w->thin, &w->walk.query, g)) chunk->group[count++] = g;
    if (count > 0) chunk->count = count;
    return count > 0;
}

/* ---- moments ---- */

/* Eight sums at once, for the eight of a group. */
typedef double sums __attribute__((vector_size(64), may_alias));

static sums load(const double *v)
{
    sums out;
    memcpy(&out, v, sizeof out);
    return out;
}
static sums widen(un_lanes8 v)
{
    return __builtin_convertvector(v, sums);
}
static double total(const sums *v)
{
    double out = 0;
    for (int n = 0; n < UN_GROUP; n++) out += (*v)[n];
    return out;
}

/* Weights of the eight from `first` on as neighbours of i: 0 beyond its reach. Single precision is
 * enough, since places and velocities are weighted alike. */
static un_lanes8 weigh(const un_thin *t, int64_t i, int64_t first)
{
    const un_lanes8 zero = un_lanes8_all(0);
    un_lanes8 d2 = zero, reach = un_lanes8_load(t->half_reach + first) + t->half_reach[i];
    for (int a = 0; a < 3; a++) {
        un_lanes8 d = un_lanes8_load(t->single[a] + first) - t->single[a][i];
        d2 += d * d;
    }
    un_lanes8 left = un_lanes8_max(1 - d2 / (reach * reach), zero);
    return left * left;
}

typedef struct moments {
    int32_t count;
    double mass, volume; /* weighted */
    double reach;        /* sum of volume w R */
    double x[3], v[3];   /* sum w d, sum w (v_j - v_i) */
    double xx[6];        /* sum w d d^T: xx yy zz yz xz xy */
    double vx[3][3];     /* sum w (v_j - v_i) d^T */
} moments;

static void add_places(moments *m, const un_thin *t, int64_t i, const un_thin_chunk *chunk)
{
    sums mass = {0}, volume = {0}, reach = {0}, x[3] = {{0}}, xx[6] = {{0}};
    for (int32_t n = 0; n < chunk->count; n++) {
        int64_t first = (int64_t)chunk->group[n] * UN_GROUP;
        un_lanes8 single = weigh(t, i, first);
        uint32_t bits = un_lanes8_less(un_lanes8_all(0), single);
        if (!bits) continue;
        m->count += __builtin_popcount(bits);
        sums w = widen(single), v = w * load(t->volume + first), d[3], wd[3];
        volume += v;
        reach += v * widen(un_lanes8_load(t->half_reach + first) + t->half_reach[i]);
        w *= load(t->mass + first);
        mass += w;
        for (int a = 0; a < 3; a++) {
            d[a] = load(t->x[a] + first) - t->x[a][i];
            wd[a] = w * d[a];
            x[a] += wd[a];
        }
        xx[0] += wd[0] * d[0];
        xx[1] += wd[1] * d[1];
        xx[2] += wd[2] * d[2];
        xx[3] += wd[1] * d[2];
        xx[4] += wd[0] * d[2];
        xx[5] += wd[0] * d[1];
    }
    m->mass += total(&mass);
    m->volume += total(&volume);
    m->reach += total(&reach);
    for (int a = 0; a < 3; a++) m->x[a] += total(&x[a]);
    for (int k = 0; k < 6; k++) m->xx[k] += total(&xx[k]);
}

static void add_velocities(moments *m, const un_thin *t, int64_t i, const un_thin_chunk *chunk)
{
    sums v[3] = {{0}}, vx[3][3] = {{{0}}};
    for (int32_t n = 0; n < chunk->count; n++) {
        int64_t first = (int64_t)chunk->group[n] * UN_GROUP;
        un_lanes8 single = weigh(t, i, first);
        if (!un_lanes8_less(un_lanes8_all(0), single)) continue;
        sums w = widen(single) * load(t->mass + first), d[3];
        for (int b = 0; b < 3; b++) d[b] = load(t->x[b] + first) - t->x[b][i];
        for (int a = 0; a < 3; a++) {
            sums wu = w * (load(t->v[a] + first) - t->v[a][i]);
            v[a] += wu;
            for (int b = 0; b < 3; b++) vx[a][b] += wu * d[b];
        }
    }
    for (int a = 0; a < 3; a++) {
        m->v[a] += total(&v[a]);
        for (int b = 0; b < 3; b++) m->vx[a][b] += total(&vx[a][b]);
    }
}

/* ---- eigenvectors of a symmetric matrix, by Jacobi's rotations ---- */

static void rotate(double c[3][3], double e[3][3], int p, int q)
{
    if (c[p][q] == 0) return;
    int r = 3 - p - q;
    double theta = (c[q][q] - c[p][p]) / (2 * c[p][q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double cosine = 1 / sqrt(t * t + 1), sine = t * cosine;
    c[p][p] -= t * c[p][q];
    c[q][q] += t * c[p][q];
    c[p][q] = c[q][p] = 0;
    double a = c[r][p], b = c[r][q];
    c[r][p] = c[p][r] = cosine * a - sine * b;
    c[r][q] = c[q][r] = sine * a + cosine * b;
    for (int k = 0; k < 3; k++) {
        a = e[k][p], b = e[k][q];
        e[k][p] = cosine * a - sine * b;
        e[k][q] = sine * a + cosine * b;
    }
}

/* Ascending; c is destroyed. */
static void find_axes(double c[3][3], double value[3], un_vec3 axis[3])
{
    double e[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    double size = c[0][0] + c[1][1] + c[2][2];
    for (int sweep = 0; sweep < 8; sweep++) {
        if (fabs(c[0][1]) + fabs(c[0][2]) + fabs(c[1][2]) <= 1e-12 * size) break;
        rotate(c, e, 0, 1);
        rotate(c, e, 0, 2);
        rotate(c, e, 1, 2);
    }
    int order[3] = {0, 1, 2};
    for (int n = 0; n < 3; n++)
        for (int k = n; k > 0 && c[order[k]][order[k]] < c[order[k - 1]][order[k - 1]]; k--) {
            int other = order[k];
            order[k] = order[k - 1];
            order[k - 1] = other;
        }
    for (int n = 0; n < 3; n++) {
        int k = order[n];
        value[n] = fmax(c[k][k], 0);
        axis[n] = un_v3(e[0][k], e[1][k], e[2][k]);
    }
}

/* ---- the lay of a particle ---- */

static double certainty(double ratio, double sure, double most)
{
    return un_clamp((most - ratio) / (most - sure), 0, 1);
}

static void add_outer(double m[3][3], un_vec3 a, un_vec3 b, double s)
{
    double u[3] = {a.x, a.y, a.z}, v[3] = {b.x, b.y, b.z};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) m[i][k] += s * u[i] * v[k];
}
static void add_square(float m[6], un_vec3 a, double s)
{
    double squares[6] = {a.x * a.x, a.y * a.y, a.z * a.z, a.y * a.z, a.x * a.z, a.x * a.y};
    for (int k = 0; k < 6; k++) m[k] += (float)(s * squares[k]);
}

/* The gradient along one axis of the layer, from the covariance of velocity and place. */
static un_vec3 slope(const moments *m, const double centre[3], un_vec3 e, double value)
{
    double out[3], along[3] = {e.x, e.y, e.z};
    for (int a = 0; a < 3; a++) {
        out[a] = 0;
        for (int b = 0; b < 3; b++)
            out[a] += (m->vx[a][b] / m->mass - m->v[a] / m->mass * centre[b]) * along[b];
        out[a] /= value;
    }
    return un_v3(out[0], out[1], out[2]);
}

static void set_covariance(double c[3][3], const moments *m, const double centre[3], bool flat)
{
    static const int at[3][3] = {{0, 5, 4}, {5, 1, 3}, {4, 3, 2}};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) c[a][b] = m->xx[at[a][b]] / m->mass - centre[a] * centre[b];
    if (flat) c[2][2] = c[0][0] + c[1][1]; /* as far along z as along the line */
}

/* How much of the reach the layer fills along an axis of eigenvalue l: 1 of a wide one, less of a
 * ribbon and at a rim. full: R^2 / l of a wide one. */
static double filled(double l, double full, double reach)
{
    return fmin(1, sqrt(full * l) / reach);
}

/* off: how far the particle lies from the middle of the layer. */
static void set_spacing(un_lay *lay, const moments *m, const double l[3], double volume,
                        double radius, double off, bool flat)
{
    double reach = m->reach / m->volume, half; /* the mean of the pairs' */
    if (lay->thread || flat) {
        double length = filled(l[flat ? 1 : 2], 7, reach) * 16 * reach / 15;
        double section = m->volume / length;
        lay->spacing = (float)(volume / section);
        half = flat ? 0.5 * section : sqrt(section / UN_PI);
    } else {
        double wide = filled(l[1], 8, reach) * filled(l[2], 8, reach);
        double thickness = m->volume / (wide * UN_PI * reach * reach / 3);
        lay->spacing = (float)sqrt(volume / thickness);
        lay->rim = lay->rim || wide < RIBBON;
        half = 0.5 * thickness;
    }
    double most = fmax(half - radius, 0);
    lay->flatten = off > most ? (float)((off - most) / off) : 0;
}

/* True if no axis can be short enough, without looking for axes: l_0 l_1 l_2 / (l_0 + l_1 + l_2)^3
 * is 0.0188 where l_0 = 0.2 l_2 and 0.0249 where l_1 = 0.35 l_2, at most, and 1/27 of a ball. */
static bool surely_round(const double c[3][3])
{
    double trace = c[0][0] + c[1][1] + c[2][2];
    double det = c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[1][2]) -
                 c[0][1] * (c[0][1] * c[2][2] - c[1][2] * c[0][2]) +
                 c[0][2] * (c[0][1] * c[1][2] - c[1][1] * c[0][2]);
    return det > 0.0255 * trace * trace * trace;
}

/* The axes of a particle's neighbours. */
typedef struct axes {
    double centre[3], l[3];
    un_vec3 e[3];
    double thread;
} axes;

/* From where the neighbours are: all but the fit of velocities. */
static void set_lay(un_lay *lay, axes *x, const un_thin *t, int64_t i, const moments *m, bool flat)
{
    *lay = (un_lay){.mass = m->mass};
    int32_t others = m->count - 1;
    if (others < THREAD_COUNT || !(m->mass > 0)) return;
    double c[3][3], *l = x->l;
    for (int a = 0; a < 3; a++) x->centre[a] = m->x[a] / m->mass;
    set_covariance(c, m, x->centre, flat);
    if (!flat && surely_round(c)) return;
    find_axes(c, l, x->e);
    if (!(l[2] > 0)) return;
    x->thread = flat ? 0 : certainty(l[1] / l[2], LINE_SURE, LINE_MOST);
    double sheet = certainty(l[0] / l[2 - flat], THIN_SURE, THIN_MOST);
    if (!flat && others < SHEET_COUNT) sheet = 0;
    lay->strength = (float)fmax(sheet, x->thread);
    if (!(lay->strength > 0)) return;
    lay->thread = x->thread > 0.5;
    un_vec3 axis = lay->thread ? x->e[2] : x->e[0];
    lay->axis[0] = (float)axis.x;
    lay->axis[1] = (float)axis.y;
    lay->axis[2] = (float)axis.z;
    add_square(lay->across, x->e[0], 1);
    add_square(lay->across, x->e[1], x->thread);
    un_vec3 off = un_v3(x->centre[0], x->centre[1], x->centre[2]);
    un_vec3 out = un_scale(x->e[0], un_dot(x->e[0], off));
    out = un_mad(out, x->e[1], x->thread * un_dot(x->e[1], off));
    lay->rim = un_length(un_sub(off, out)) > RIM * 2 * (double)t->half_reach[i];
    set_spacing(lay, m, l, t->volume[i], t->radius[i], un_length(out), flat);
}

static void set_fit(un_lay *lay, const axes *x, const moments *m, bool flat)
{
    const double *l = x->l;
    add_outer(lay->fit, slope(m, x->centre, x->e[2], l[2]), x->e[2], flat ? 0 : 1);
    if (l[1] > 0.02 * l[2])
        add_outer(lay->fit, slope(m, x->centre, x->e[1], l[1]), x->e[1], 1 - x->thread);
}

typedef struct lay_args {
    un_thin *thin;
    bool flat;
} lay_args;

/* A group of eight: first where the neighbours of each are, then, of those that are part of a sheet
 * or thread, how they move. */
static void find_group(un_thin *t, int32_t group, bool flat)
{
    int64_t first = (int64_t)group * UN_GROUP, last = un_min64(first + UN_GROUP, t->count);
    moments m[UN_GROUP] = {0};
    axes x[UN_GROUP];
    un_thin_walk walk;
    un_thin_chunk chunk;
    int32_t chunks = 0;
    bool any = false;
    un_thin_walk_begin(&walk, t, group);
    for (; un_thin_walk_next(&walk, &chunk); chunks++)
        for (int64_t i = first; i < last; i++) add_places(&m[i - first], t, i, &chunk);
    for (int64_t i = first; i < last; i++) {
        set_lay(&t->lay[i], &x[i - first], t, i, &m[i - first], flat);
        any |= t->lay[i].strength > 0;
    }
    if (!any) return;
    if (chunks > 1) un_thin_walk_begin(&walk, t, group);
    for (int32_t n = 0; n < chunks; n++) {
        if (chunks > 1) un_thin_walk_next(&walk, &chunk);
        for (int64_t i = first; i < last; i++)
            if (t->lay[i].strength > 0) add_velocities(&m[i - first], t, i, &chunk);
    }
    for (int64_t i = first; i < last; i++)
        if (t->lay[i].strength > 0) set_fit(&t->lay[i], &x[i - first], &m[i - first], flat);
}

static void find_lay(void *arg, int64_t begin, int64_t end)
{
    const lay_args *a = arg;
    un_thin *t = a->thin;
    for (int64_t g = begin; g < end; g++) {
        if (!t->near || atomic_load_explicit(&t->near[g], memory_order_relaxed))
            find_group(t, (int32_t)g, a->flat);
        else
            memset(&t->lay[g * UN_GROUP], 0, UN_GROUP * sizeof *t->lay);
    }
}

void un_thin_find_lay(un_context *ctx, un_thin *thin, bool flat)
{
    lay_args a = {thin, flat};
    un_parallel_for(ctx, thin->groups.group_count, 16, find_lay, &a);
}

/* ---- the thin particles ---- */

static double is_thin(void *arg, int64_t begin, int64_t end)
{
    const un_particles *p = arg;
    int64_t count = 0;
    for (int64_t q = begin; q < end; q++) count += (p->flags[q] & UN_PARTICLE_THIN) != 0;
    return (double)count;
}

static un_status allocate(un_arena *arena, un_thin *t)
{
    size_t n = (size_t)t->count + UN_GROUP; /* whole groups */
    t->id = un_arena_alloc(arena, n, sizeof *t->id);
    t->mass = un_arena_alloc(arena, n, sizeof *t->mass);
    t->volume = un_arena_alloc(arena, n, sizeof *t->volume);
    t->radius = un_arena_alloc(arena, n, sizeof *t->radius);
    t->half_reach = un_arena_alloc(arena, n, sizeof *t->half_reach);
    t->lay = un_arena_alloc(arena, n, sizeof *t->lay);
    bool all = t->id && t->mass && t->volume && t->radius && t->half_reach && t->lay;
    for (int a = 0; a < 3; a++) {
        t->x[a] = un_arena_alloc(arena, n, sizeof *t->x[a]);
        t->v[a] = un_arena_alloc(arena, n, sizeof *t->v[a]);
        t->single[a] = un_arena_alloc(arena, n, sizeof *t->single[a]);
        all = all && t->x[a] && t->v[a] && t->single[a];
    }
    return all ? UN_OK : UN_ERROR_MEMORY;
}

typedef struct copy_args {
    un_thin *thin;
    const un_particles *particles;
    double radius_min;
} copy_args;

static void copy_thin(void *arg, int64_t begin, int64_t end)
{
    const copy_args *a = arg;
    un_thin *t = a->thin;
    const un_particles *p = a->particles;
    double radius = 0;
    for (int64_t i = begin; i < end; i++) {
        int32_t q = t->id[i];
        double volume = p->volume[q];
        if (i == begin || p->volume[q] != p->volume[t->id[i - 1]]) /* most are alike */
            radius = un_thin_radius(volume, p->flat);
        t->radius[i] = radius;
        t->volume[i] = volume;
        for (int k = 0; k < 3; k++) {
            t->x[k][i] = p->x[k][q];
            t->single[k][i] = (float)p->x[k][q];
            t->v[k][i] = p->v[k][q];
        }
        t->mass[i] = p->density ? volume * (double)p->density[q] : volume;
        t->half_reach[i] = (float)(0.5 * REACH * fmax(radius, a->radius_min));
    }
}

/* Particles that fly lie in large cells, and the order by cells says little of where: these are
 * sorted by cells of edge h, or wider where 1024 are too few. */
static un_status list_thin(un_context *ctx, un_arena *arena, un_thin *t, const un_particles *p,
                           double h)
{
    size_t n = (size_t)t->count + 1;
    int32_t *id = un_arena_alloc(arena, n, sizeof *id);
    int32_t *order = un_arena_alloc(arena, n, sizeof *order);
    uint32_t *keys = un_arena_alloc(arena, n, sizeof *keys);
    if (!id || !order || !keys) return UN_ERROR_MEMORY;
    int64_t count = 0;
    double far = 0;
    for (int32_t q = 0; q < p->count; q++) {
        if (!(p->flags[q] & UN_PARTICLE_THIN)) continue;
        id[count++] = q;
        for (int a = 0; a < 3; a++) far = fmax(far, p->x[a][q]);
    }
    t->room = (float)(1e-6 * far);
    double cells = 1 / fmax(h, far / 1023);
    for (int64_t i = 0; i < count; i++) {
        uint32_t c[3];
        for (int a = 0; a < 3; a++) c[a] = (uint32_t)un_clamp(p->x[a][id[i]] * cells, 0, 1023);
        keys[i] = (uint32_t)un_morton(c[0], c[1], c[2]);
    }
    UN_TRY(un_parallel_sort(ctx, arena, order, keys, count, 30));
    for (int64_t i = 0; i < count; i++) t->id[i] = id[order[i]];
    return UN_OK;
}

static un_status gather_thin(un_context *ctx, un_arena *arena, un_thin *t, const un_particles *p,
                             double h)
{
    UN_TRY(allocate(arena, t));
    UN_TRY(list_thin(ctx, arena, t, p, h));
    copy_args a = {t, p, 0.25 * RADIUS_MIN * h};
    un_parallel_for(ctx, t->count, 4096, copy_thin, &a);
    for (int64_t i = t->count; i % UN_GROUP; i++) { /* out of reach */
        for (int k = 0; k < 3; k++) t->single[k][i] = INFINITY, t->x[k][i] = t->v[k][i] = 0;
        t->mass[i] = t->volume[i] = 0;
        t->half_reach[i] = 0;
    }
    const double *x[3] = {t->x[0], t->x[1], t->x[2]};
    return un_groups_build(ctx, arena, &t->groups, x, t->half_reach, t->count);
}

typedef struct own_args {
    un_thin *thin;
    const uint8_t *own; /* by particle */
} own_args;

static void find_near(void *arg, int64_t begin, int64_t end)
{
    const own_args *a = arg;
    un_thin *t = a->thin;
    for (int64_t g = begin; g < end; g++) {
        un_thin_walk walk;
        un_thin_chunk chunk;
        t->own[g] = 0;
        for (int64_t i = g * UN_GROUP; i < un_min64((g + 1) * UN_GROUP, t->count); i++)
            t->own[g] |= a->own[t->id[i]];
        if (!t->own[g]) continue;
        un_thin_walk_begin(&walk, t, (int32_t)g);
        while (un_thin_walk_next(&walk, &chunk))
            for (int32_t n = 0; n < chunk.count; n++)
                atomic_store_explicit(&t->near[chunk.group[n]], 1, memory_order_relaxed);
    }
}

/* Only some particles are to change. */
static un_status choose_own(un_context *ctx, un_arena *arena, un_thin *t, const uint8_t *own)
{
    own_args a = {t, own};
    int32_t groups = t->groups.group_count;
    t->own = un_arena_alloc(arena, (size_t)groups + 1, 1);
    t->near = un_arena_alloc(arena, (size_t)groups + 1, sizeof *t->near);
    if (!t->own || !t->near) return UN_ERROR_MEMORY;
    for (int32_t g = 0; g < groups; g++) atomic_init(&t->near[g], 0);
    un_parallel_for(ctx, groups, 16, find_near, &a);
    return UN_OK;
}

/* ---- what resizing must know ---- */

void un_sheets_free(un_context *ctx, un_sheets *s)
{
    un_free(ctx, s->gap);
    for (int a = 0; a < 3; a++) un_free(ctx, s->axis[a]);
    *s = (un_sheets){0};
}

static un_status note(un_context *ctx, un_sheets *s, const un_thin *t, const un_particles *p)
{
    size_t n = (size_t)p->count + 1;
    UN_TRY(un_array_need(ctx, (void **)&s->gap, &s->capacity[0], n, sizeof *s->gap));
    for (int a = 0; a < 3; a++)
        UN_TRY(un_array_need(ctx, (void **)&s->axis[a], &s->capacity[1 + a], n, sizeof **s->axis));
    memset(s->gap, 0, n * sizeof *s->gap);
    for (int64_t i = 0; i < t->count; i++) {
        const un_lay *lay = &t->lay[i];
        int32_t q = t->id[i];
        if (!(lay->strength > 0)) continue;
        double gap = (double)lay->spacing / (2 * t->radius[i]);
        if (lay->rim || lay->strength < 0.5f) gap = fmin(gap, 1.1); /* no split */
        s->gap[q] = (float)(lay->thread ? -gap : gap);
        for (int a = 0; a < 3; a++) s->axis[a][q] = lay->axis[a];
    }
    s->any = true;
    return UN_OK;
}

un_status un_particles_even_sheets(un_context *ctx, un_arena *arena, un_particles *particles,
                                   const un_sheets_def *def, un_sheets *sheets)
{
    un_thin thin = {0};
    if (sheets) sheets->any = false;
    if (!(def->strength > 0)) return UN_OK;
    thin.count = (int64_t)un_parallel_sum(ctx, particles->count, is_thin, particles);
    if (thin.count <= THREAD_COUNT) return UN_OK;
    UN_TRY(gather_thin(ctx, arena, &thin, particles, def->h));
    if (def->own) UN_TRY(choose_own(ctx, arena, &thin, def->own));
    un_thin_find_lay(ctx, &thin, particles->flat);
    UN_TRY(un_thin_even(ctx, arena, &thin, particles, def));
    return sheets ? note(ctx, sheets, &thin, particles) : UN_OK;
}
