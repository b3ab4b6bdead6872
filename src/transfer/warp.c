/* Particles and velocities at the centres of a grid that warps.
 *
 * APIC [Jiang, Schroeder, Selle, Teran & Stomakhin 2015] with linear kernels in reference space: a
 * particle brings v + A (x_c - x_p) to the centres around it, and takes back
 *
 *     v = sum_c w_c u_c,     A = (sum_c u_c grad_xi w_c) J^-1.
 *
 * The map is interpolated by the same kernel, so velocities that are linear in space come back
 * exactly, whatever the grid. */
#include "base/lanes.h"
#include "transfer/transfer.h"

#define GRAIN 4096
/* Liquid forgets the slope of its velocity well below this share of the quiet speed, next to cells
 * that a solid cuts below the other: there few particles tell the surface, and what they tell
 * changes as they move. A standing wave of 32 cells in 2D loses 6 % of its amplitude in a period at
 * 1, 2.3 at 1/2, 0.3 at 1/4; in a tilted trough the waterline swings at 5 cm/s with 1/4 at its
 * walls, 2 with 1. */
#define QUIET 0.25
#define QUIET_CUT 1.0

static un_vec3 load_xi(const un_particles *p, int64_t q)
{
    return un_v3(p->xi[0][q], p->xi[1][q], p->xi[2][q]);
}

/* ---- to centres ---- */

typedef struct centre_args {
    un_vec3 *u;
    uint8_t *known;
    double *sum; /* at cells: of weighed velocities, and of weights */
    const un_warp *warp;
    const un_particles *particles;
} centre_args;

/* In the lanes of a vector: velocity and weight. */
UN_KERNEL void scatter_in(const centre_args *a, int64_t begin, int64_t end, int dim)
{
    const un_particles *p = a->particles;
    const un_grid *g = &a->warp->grid;
    for (int64_t q = begin; q < end; q++) {
        un_stencil t = un_grid_stencil_in(g, load_xi(p, q), 0.5, dim);
        un_vec3 x = un_particle_position(p, q), v = un_particle_middle(p, q);
        double volume = p->volume[q];
        float *const *f = p->affine;
        un_doubles4 along[3];
        for (int d = 0; d < 3; d++)
            along[d] = (un_doubles4){f[d][q], f[3 + d][q], dim == 2 ? 0 : f[6 + d][q], 0};
        un_doubles4 here = {v.x, v.y, dim == 2 ? 0 : v.z, 1};
        here = here - along[0] * x.x - along[1] * x.y - along[2] * x.z;
        for (int m = 0; m < 1 << dim; m++) {
            int64_t c = un_warp_corner(g, t.base, m, dim);
            const un_vec3 *at = &a->warp->centre[c];
            un_doubles4 there = here + along[0] * at->x + along[1] * at->y + along[2] * at->z;
            un_doubles4 sum = un_doubles4_load(a->sum + 4 * c);
            sum += there * (un_warp_weight(&t, m, dim) * volume);
            memcpy(a->sum + 4 * c, &sum, sizeof sum);
        }
    }
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
    const centre_args *a = arg;
    UN_BY_DIM(a->warp->grid.dim, scatter_in(a, begin, end, dim));
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    memset(a->sum + 4 * begin, 0, 4 * (size_t)(end - begin) * sizeof *a->sum);
}

static void divide(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        const double *sum = a->sum + 4 * c;
        a->known[c] = a->warp->jacobian[c] > 0 && sum[3] > 0;
        double share = a->known[c] ? 1 / sum[3] : 0;
        a->u[c] = un_v3(sum[0] * share, sum[1] * share, sum[2] * share);
    }
}

un_status un_transfer_to_centres(un_context *ctx, un_arena *arena, un_vec3 *u, uint8_t *known,
                                 const un_warp *warp, const un_bins *bins,
                                 const un_particles *particles)
{
    int64_t count = warp->grid.cell_count, grain = un_block_grain(count);
    double *sum = un_arena_alloc(arena, 4 * (size_t)count, sizeof *sum);
    if (!sum) return UN_ERROR_MEMORY;
    centre_args a = {u, known, sum, warp, particles};
    un_parallel_for(ctx, count, grain, clear, &a);
    un_bins_scatter(bins, scatter, &a);
    un_parallel_for(ctx, count, grain, divide, &a);
    return UN_OK;
}

/* ---- to particles ---- */

typedef struct particle_args {
    un_particles *particles;
    const un_vec3 *u;
    const un_warp *warp;
    un_vec3 kick, fall_unit;
    const un_walls *walls;
    const float *open, *phi;         /* at cells: their open share; the level set */
    double forget, inverse_quiet[2]; /* share forgotten at rest; 1 over the quiet speed squared, by
                                      * whether a solid cuts cells around */
} particle_args;

void un_transfer_falls_eight(const float *phi, const un_walls *walls, const un_warp_eight *e,
                             double falls[8])
{
    const un_grid *g = walls->grid;
    double from = UN_FALLS_FROM * g->h;
    un_warp_eight_sample(g, phi, e, falls);
    for (int n = 0; n < 8; n++) {
        double out = falls[n];
        falls[n] = 0;
        if (!(out > from)) continue;
        if (walls->parted)
            out = fmin(out, un_walls_sample_side(walls, phi, un_eight_of(&e->xi, n)));
        falls[n] = un_clamp((out - from) / (UN_FALLS_TO * g->h - from), 0, 1);
    }
}

/* Does a solid cut a cell around the place? */
static bool is_cut(const particle_args *a, int64_t base)
{
    const un_grid *g = &a->warp->grid;
    for (int m = 0; m < 1 << g->dim; m++) {
        float open = a->open[un_warp_corner(g, base, m, g->dim)];
        if (open > 0 && open < 1) return true;
    }
    return false;
}

/* v: the liquid's velocity there. */
static void gather_one(const particle_args *a, int64_t q, un_vec3 v, double falls)
{
    un_particles *p = a->particles;
    un_vec3 was = un_particle_middle(p, q);
    if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
        un_particle_set_velocity(p, q, un_add(was, a->kick));
        p->fall[q] = UN_FALL_FREE;
        for (int i = 0; i < 9; i++) p->affine[i][q] = 0;
        return;
    }
    if (falls > 0) v = un_mad(v, un_sub(un_add(was, a->kick), v), falls);
    un_particle_set_velocity(p, q, v);
    p->fall[q] = un_particle_fall(un_sub(v, was), a->fall_unit);
}

static void gather(void *arg, int64_t begin, int64_t end)
{
    const particle_args *a = arg;
    un_particles *p = a->particles;
    const un_grid *g = &a->warp->grid;
    bool solids = a->walls->bodies->count > 0;
    un_warp_eight e;
    un_eight v, slope[3], row[3];
    double keep[8], falls[8];
    for (int64_t q = begin; q < end; q += 8) {
        int64_t count = un_min64(end - q, 8);
        un_eight_load(&e.xi, p->xi, q, count);
        un_warp_eight_at(a->warp, &e);
        un_warp_eight_blend(g, a->u, &e, &v, slope);
        un_warp_eight_gradient(&e, slope, g->inverse_h, row);
        un_transfer_falls_eight(a->phi, a->walls, &e, falls);
        for (int n = 0; n < 8; n++) {
            double speed =
                v.of[0][n] * v.of[0][n] + v.of[1][n] * v.of[1][n] + v.of[2][n] * v.of[2][n];
            double stir = speed * a->inverse_quiet[solids && is_cut(a, e.base[n])];
            keep[n] = 1 - a->forget / (1 + stir * stir);
        }
        for (int i = 0; i < 9; i++) {
            const double *of = row[i / 3].of[i % 3];
            float kept[8];
            for (int n = 0; n < 8; n++) kept[n] = (float)(keep[n] * of[n]);
            if (count == 8)
                memcpy(p->affine[i] + q, kept, sizeof kept);
            else
                memcpy(p->affine[i] + q, kept, (size_t)count * sizeof *kept);
        }
        for (int64_t n = 0; n < count; n++) gather_one(a, q + n, un_eight_of(&v, n), falls[n]);
    }
}

void un_transfer_from_centres(un_context *ctx, un_particles *particles, const un_vec3 *u,
                              const float *phi, const un_walls *walls, const un_flip *flip)
{
    double quiet = fmax(QUIET * flip->quiet_speed, 1e-150);
    double cut = fmax(QUIET_CUT * flip->quiet_speed, 1e-150);
    particle_args a = {.particles = particles,
                       .u = u,
                       .warp = walls->warp,
                       .walls = walls,
                       .open = walls->volume,
                       .phi = phi,
                       .kick = un_scale(flip->gravity, flip->dt),
                       .fall_unit = un_particle_fall_unit(flip->gravity, flip->dt),
                       .forget = 1 - exp(-flip->pic_quiet * flip->dt),
                       .inverse_quiet = {1 / (quiet * quiet), 1 / (cut * cut)}};
    un_parallel_for(ctx, particles->count, GRAIN, gather, &a);
}

/* ---- beyond the liquid ---- */

typedef struct extend_args {
    const un_centres_extend *def;
    uint8_t *next;
    uint8_t pass;
} extend_args;

static bool is_padding(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return i == 0 || j == 0 || i == g->n[0] - 1 || j == g->n[1] - 1 ||
           (g->dim == 3 && (k == 0 || k == g->n[2] - 1));
}

static void spread_rows(void *arg, int64_t begin, int64_t end)
{
    extend_args *a = arg;
    const un_grid *g = &a->def->warp->grid;
    const uint8_t *known = a->def->known;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        memcpy(a->next + row * g->n[0], known + row * g->n[0], (size_t)g->n[0]);
        for (int32_t i = 1; i < g->n[0] - 1 && !is_padding(g, 1, j, k); i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            un_vec3 sum = {0, 0, 0};
            int count = 0;
            if (known[c]) continue;
            for (int f = 0; f < 2 * g->dim; f++) {
                int64_t m = c + (f & 1 ? g->stride[f / 2] : -g->stride[f / 2]);
                if (!known[m]) continue;
                sum = un_add(sum, a->def->u[m]);
                count++;
            }
            if (count == 0) continue;
            a->def->u[c] = un_scale(sum, 1.0 / count);
            a->next[c] = a->pass;
        }
    }
}

static void constrain_rows(void *arg, int64_t begin, int64_t end)
{
    extend_args *a = arg;
    const un_walls *walls = a->def->walls;
    const un_grid *g = walls->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 1; i < g->n[0] - 1 && !is_padding(g, 1, j, k); i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            if (a->def->known[c] <= 1 || walls->volume[c] >= 1) continue;
            un_vec3 x = a->def->warp->centre[c];
            double d = 2 * g->h;
            int32_t b = un_bodies_nearest(walls->bodies, x, &d);
            if (b < 0) continue;
            const un_body *body = &walls->bodies->body[b];
            un_vec3 n = un_body_normal(body, x), solid = un_body_velocity(body, x);
            if (g->dim == 2) n.z = solid.z = 0;
            un_vec3 slip = un_sub(a->def->u[c], solid);
            double into = un_dot(slip, n);
            if (into < 0) slip = un_mad(slip, n, -into);
            a->def->u[c] = un_mad(solid, slip, un_body_slip_left(body, a->def->dt));
        }
    }
}

/* Has liquid let go of the side below (or above) the inner cell at `in` along the axis? */
static bool lets_go(const un_centres_extend *def, const int32_t in[3], int axis, bool above)
{
    const un_grid *g = &def->warp->grid;
    int free = 0, sides = 1 << (g->dim - 1);
    if (!def->p) return false;
    for (int m = 0; m < 1 << g->dim; m++) {
        if ((m >> axis & 1) != above) continue;
        double p = def->p[un_grid_node(g, in[0] + (m & 1), in[1] + (m >> 1 & 1), in[2] + (m >> 2))];
        free += p == 0 && signbit(p);
    }
    return 2 * free > sides;
}

static void mirror_rows(void *arg, int64_t begin, int64_t end)
{
    extend_args *a = arg;
    const un_centres_extend *def = a->def;
    const un_grid *g = &def->warp->grid;
    const bool *open = def->walls->scene->def.domain.open;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        bool all = is_padding(g, 1, at[1], at[2]);
        for (at[0] = 0; at[0] < g->n[0]; at[0] += all ? 1 : g->n[0] - 1) {
            int32_t in[3] = {at[0], at[1], at[2]};
            for (int d = 0; d < g->dim; d++) in[d] = un_clampi(at[d], 1, g->n[d] - 2);
            un_vec3 u = def->u[un_grid_cell(g, in[0], in[1], in[2])];
            double v[3] = {u.x, u.y, u.z};
            for (int d = 0; d < g->dim; d++) {
                bool above = at[d] > in[d];
                if (at[d] == in[d] || open[2 * d + above]) continue;
                bool leaves = above ? v[d] < 0 : v[d] > 0;
                if (!(leaves && lets_go(def, in, d, above))) v[d] = -v[d];
            }
            def->u[un_grid_cell(g, at[0], at[1], at[2])] = un_v3(v[0], v[1], v[2]);
        }
    }
}

un_status un_transfer_extend_centres(un_context *ctx, un_arena *arena, const un_centres_extend *def)
{
    const un_grid *g = &def->warp->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    extend_args a = {.def = def};
    a.next = un_arena_alloc(arena, (size_t)g->cell_count + 1, 1);
    if (!a.next) return UN_ERROR_MEMORY;
    for (int32_t layer = 0; layer < def->layers; layer++) {
        a.pass = (uint8_t)(2 + layer);
        un_parallel_for(ctx, rows, 32, spread_rows, &a);
        memcpy(def->known, a.next, (size_t)g->cell_count);
    }
    if (def->walls->bodies->count > 0) un_parallel_for(ctx, rows, 32, constrain_rows, &a);
    un_parallel_for(ctx, rows, 32, mirror_rows, &a);
    return UN_OK;
}

/* ---- to faces ---- */

typedef struct face_args {
    double **face;
    const un_vec3 *u;
    const un_grid *grid;
} face_args;

static void mean_faces(void *arg, int64_t begin, int64_t end)
{
    face_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t c = begin; c < end; c++)
        for (int d = 0; d < g->dim; d++) {
            const un_vec3 *up = a->u + c, *low = c >= g->stride[d] ? up - g->stride[d] : up;
            a->face[d][c] = d == 0   ? 0.5 * (up->x + low->x)
                            : d == 1 ? 0.5 * (up->y + low->y)
                                     : 0.5 * (up->z + low->z);
        }
}

un_status un_transfer_centres_to_faces(un_context *ctx, un_arena *arena, double *u_face[3],
                                       const un_vec3 *u, const un_warp *warp)
{
    face_args a = {u_face, u, &warp->grid};
    for (int d = 0; d < warp->grid.dim; d++) {
        u_face[d] = un_arena_alloc(arena, (size_t)warp->grid.cell_count, sizeof *u_face[d]);
        if (!u_face[d]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, warp->grid.cell_count, 8192, mean_faces, &a);
    return UN_OK;
}

/* ---- how fast ---- */

typedef struct rate_args {
    const un_vec3 *u;
    const uint8_t *known;
    const un_warp *warp;
} rate_args;

UN_KERNEL double rate_in(const rate_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = &a->warp->grid;
    double most = 0;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            if (a->known[c] != 1) continue;
            un_warp_point p = un_warp_point_in(a->warp, un_grid_center(g, i, j, k), dim);
            un_vec3 r = un_warp_pull(&p, a->u[c]);
            most = fmax(most, fmax(fabs(r.x), fmax(fabs(r.y), fabs(r.z))) * g->inverse_h);
        }
    }
    return most;
}

static double rate_rows(void *arg, int64_t begin, int64_t end)
{
    const rate_args *a = arg;
    return a->warp->grid.dim == 2 ? rate_in(a, begin, end, 2) : rate_in(a, begin, end, 3);
}

double un_transfer_rate_centres(un_context *ctx, const un_vec3 *u, const uint8_t *known,
                                const un_warp *warp)
{
    rate_args a = {u, known, warp};
    return un_parallel_max(ctx, (int64_t)warp->grid.n[1] * warp->grid.n[2], rate_rows, &a);
}
