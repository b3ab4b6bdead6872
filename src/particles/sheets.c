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
    w->box = un_groups_bounds(&thin->groups, group);
    w->half_reach = (double)un_groups_radius(&thin->groups, group);
    un_groups_walk_begin(&w->walk, &thin->groups, w->box, w->half_reach, 1);
}

static double outside(double x, double lo, double hi)
{
    return x < lo ? lo - x : x > hi ? x - hi : 0;
}

bool un_thin_walk_next(un_thin_walk *w, un_thin_chunk *chunk)
{
    const un_thin *t = w->thin;
    chunk->count = 0;
    for (int32_t g;
         chunk->count <= UN_THIN_CHUNK - UN_GROUP && (g = un_groups_walk_next(&w->walk)) >= 0;) {
        int64_t end = un_min64((int64_t)(g + 1) * UN_GROUP, t->count);
        for (int64_t j = (int64_t)g * UN_GROUP; j < end; j++) {
            double x = outside(t->x[0][j], w->box.min.x, w->box.max.x);
            double y = outside(t->x[1][j], w->box.min.y, w->box.max.y);
            double z = outside(t->x[2][j], w->box.min.z, w->box.max.z);
            double reach = w->half_reach + (double)t->half_reach[j];
            if (!(x * x + y * y + z * z < reach * reach)) continue;
            int32_t n = chunk->count++;
            chunk->id[n] = (int32_t)j;
            for (int a = 0; a < 3; a++) chunk->x[a][n] = t->x[a][j];
            chunk->half_reach[n] = (double)t->half_reach[j];
        }
    }
    return chunk->count > 0;
}

/* ---- moments ---- */

typedef struct moments {
    int32_t count;
    double mass, volume; /* weighted */
    double reach;        /* sum of volume w R */
    double x[3], v[3];   /* sum w d, sum w (v_j - v_i) */
    double xx[6];        /* sum w d d^T: xx yy zz yz xz xy */
    double vx[3][3];     /* sum w (v_j - v_i) d^T */
} moments;

static void add_neighbours(moments *m, const un_thin *t, int64_t i, const un_thin_chunk *chunk,
                           const float *volume)
{
    un_vec3 xi = un_thin_position(t, i), vi = un_thin_velocity(t, i);
    double weight[UN_THIN_CHUNK];
    un_thin_weights(weight, t, i, chunk);
    for (int32_t n = 0; n < chunk->count; n++) {
        int32_t j = chunk->id[n];
        double w = weight[n];
        if (!(w > 0)) continue;
        un_vec3 d = un_sub(un_thin_position(t, j), xi);
        un_vec3 u = un_sub(un_thin_velocity(t, j), vi);
        m->count++;
        double volume_w = w * (double)volume[t->id[j]];
        m->volume += volume_w;
        m->reach += volume_w * ((double)t->half_reach[i] + chunk->half_reach[n]);
        w *= t->mass[j];
        m->mass += w;
        double wd[3] = {w * d.x, w * d.y, w * d.z}, uu[3] = {u.x, u.y, u.z};
        m->xx[0] += wd[0] * d.x;
        m->xx[1] += wd[1] * d.y;
        m->xx[2] += wd[2] * d.z;
        m->xx[3] += wd[1] * d.z;
        m->xx[4] += wd[0] * d.z;
        m->xx[5] += wd[0] * d.y;
        for (int a = 0; a < 3; a++) {
            m->x[a] += wd[a];
            m->v[a] += w * uu[a];
            for (int b = 0; b < 3; b++) m->vx[a][b] += uu[a] * wd[b];
        }
    }
}

/* ---- eigenvectors of a symmetric matrix, by Jacobi's rotations ---- */

static void rotate(double c[3][3], double e[3][3], int p, int q)
{
    if (c[p][q] == 0) return;
    double theta = (c[q][q] - c[p][p]) / (2 * c[p][q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double cosine = 1 / sqrt(t * t + 1), sine = t * cosine;
    for (int k = 0; k < 3; k++) {
        double a = c[k][p], b = c[k][q];
        c[k][p] = cosine * a - sine * b;
        c[k][q] = sine * a + cosine * b;
    }
    for (int k = 0; k < 3; k++) {
        double a = c[p][k], b = c[q][k];
        c[p][k] = cosine * a - sine * b;
        c[q][k] = sine * a + cosine * b;
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
        lay->spacing = volume / section;
        half = flat ? 0.5 * section : sqrt(section / UN_PI);
    } else {
        double wide = filled(l[1], 8, reach) * filled(l[2], 8, reach);
        double thickness = m->volume / (wide * UN_PI * reach * reach / 3);
        lay->spacing = sqrt(volume / thickness);
        lay->rim = lay->rim || wide < RIBBON;
        half = 0.5 * thickness;
    }
    double most = fmax(half - radius, 0);
    lay->flatten = off > most ? (off - most) / off : 0;
}

static void set_lay(un_lay *lay, const un_thin *t, int64_t i, const moments *m,
                    const un_particles *p)
{
    *lay = (un_lay){.mass = m->mass};
    int32_t others = m->count - 1;
    if (others < THREAD_COUNT || !(m->mass > 0)) return;
    double centre[3], c[3][3], l[3];
    un_vec3 e[3];
    for (int a = 0; a < 3; a++) centre[a] = m->x[a] / m->mass;
    set_covariance(c, m, centre, p->flat);
    find_axes(c, l, e);
    if (!(l[2] > 0)) return;
    double thread = p->flat ? 0 : certainty(l[1] / l[2], LINE_SURE, LINE_MOST);
    double sheet = certainty(l[0] / l[2 - p->flat], THIN_SURE, THIN_MOST);
    if (!p->flat && others < SHEET_COUNT) sheet = 0;
    lay->strength = fmax(sheet, thread);
    if (!(lay->strength > 0)) return;
    lay->thread = thread > 0.5;
    lay->axis = lay->thread ? e[2] : e[0];
    add_outer(lay->across, e[0], e[0], 1);
    add_outer(lay->across, e[1], e[1], thread);
    add_outer(lay->fit, slope(m, centre, e[2], l[2]), e[2], p->flat ? 0 : 1);
    if (l[1] > 0.02 * l[2]) add_outer(lay->fit, slope(m, centre, e[1], l[1]), e[1], 1 - thread);
    un_vec3 off = un_v3(centre[0], centre[1], centre[2]);
    un_vec3 out = un_scale(e[0], un_dot(e[0], off));
    out = un_mad(out, e[1], thread * un_dot(e[1], off));
    double volume = p->volume[t->id[i]];
    double radius = un_thin_radius(volume, p->flat);
    lay->rim = un_length(un_sub(off, out)) > RIM * 2 * (double)t->half_reach[i];
    set_spacing(lay, m, l, volume, radius, un_length(out), p->flat);
}

typedef struct lay_args {
    un_thin *thin;
    const un_particles *particles;
} lay_args;

static void find_lay(void *arg, int64_t begin, int64_t end)
{
    const lay_args *a = arg;
    un_thin *t = a->thin;
    for (int64_t g = begin; g < end; g++) {
        int64_t first = g * UN_GROUP, last = un_min64(first + UN_GROUP, t->count);
        moments m[UN_GROUP] = {0};
        un_thin_walk walk;
        un_thin_chunk chunk;
        un_thin_walk_begin(&walk, t, (int32_t)g);
        while (un_thin_walk_next(&walk, &chunk))
            for (int64_t i = first; i < last; i++)
                add_neighbours(&m[i - first], t, i, &chunk, a->particles->volume);
        for (int64_t i = first; i < last; i++)
            set_lay(&t->lay[i], t, i, &m[i - first], a->particles);
    }
}

void un_thin_find_lay(un_context *ctx, un_thin *thin, const un_particles *particles)
{
    lay_args a = {thin, particles};
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
    size_t n = (size_t)t->count + 1;
    t->id = un_arena_alloc(arena, n, sizeof *t->id);
    t->mass = un_arena_alloc(arena, n, sizeof *t->mass);
    t->half_reach = un_arena_alloc(arena, n, sizeof *t->half_reach);
    t->lay = un_arena_alloc(arena, n, sizeof *t->lay);
    bool all = t->id && t->mass && t->half_reach && t->lay;
    for (int a = 0; a < 3; a++) {
        t->x[a] = un_arena_alloc(arena, n, sizeof *t->x[a]);
        t->v[a] = un_arena_alloc(arena, n, sizeof *t->v[a]);
        all = all && t->x[a] && t->v[a];
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
    for (int64_t i = begin; i < end; i++) {
        int32_t q = t->id[i];
        double volume = p->volume[q];
        double radius = un_thin_radius(volume, p->flat);
        for (int k = 0; k < 3; k++) {
            t->x[k][i] = p->x[k][q];
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
    const double *x[3] = {t->x[0], t->x[1], t->x[2]};
    return un_groups_build(ctx, arena, &t->groups, x, t->half_reach, t->count);
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
        double gap = lay->spacing / (2 * un_thin_radius(p->volume[q], p->flat));
        if (lay->rim || lay->strength < 0.5) gap = fmin(gap, 1.1); /* no split */
        s->gap[q] = (float)(lay->thread ? -gap : gap);
        s->axis[0][q] = (float)lay->axis.x;
        s->axis[1][q] = (float)lay->axis.y;
        s->axis[2][q] = (float)lay->axis.z;
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
    un_thin_find_lay(ctx, &thin, particles);
    UN_TRY(un_thin_even(ctx, arena, &thin, particles, def));
    return sheets ? note(ctx, sheets, &thin, particles) : UN_OK;
}
