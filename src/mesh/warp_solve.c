/* The potential that moves the grid.
 *
 * Monge-Ampere (default). A cell's volume, det J, should go with 1 / m, m the wanted density:
 *
 *     L phi <- L phi + omega (c / m(x) - det J),     c such that the mean target is 1.
 *
 * Poisson [Ibayashi18 eq. 1]. L phi = S (f - mean) / max(|min (f - mean)|, 1/2), f = (1 - m) /
 * strength, damped by half as in the paper. Its S is 1, which is degenerate: across a flat surface
 * cells have the width 1 - S. Here S = strength / (1 + strength), so that they get the width that
 * the other equation gives them there. Its division by the minimum amplifies weak contrast; hence
 * the bound.
 *
 * Over time the potential follows its target as eq. 5 does, a critically damped filter, written
 * with time: z = exp(-dt / settle), phi = (1 - z)^2 target + 2 z phi_t - z^2 phi_{t-1}.
 *
 * L is the Laplacian of cells with mirrored boundaries, solved by V-cycles: red-black Gauss-Seidel,
 * volumes that halve along every axis, the last one of an odd number staying single, linear
 * interpolation between centres. */
#include "mesh/warp_internal.h"

#define OMEGA 0.3
#define DAMPING 0.5
#define CONTRAST_LEAST 0.5
/* Sweeps before and after each coarser level, and on the coarsest. */
#define SWEEPS 1
#define SWEEPS_LAST 16
#define ROW_GRAIN 16

/* ---- levels ---- */

static un_status halve_axis(un_context *ctx, un_warp_level *fine, un_warp_level *coarse, int a)
{
    int32_t n = fine->n[a], half = (n + 1) / 2;
    coarse->n[a] = half;
    UN_ALLOC(ctx, coarse->width[a], half);
    UN_ALLOC(ctx, fine->low[a], n);
    UN_ALLOC(ctx, fine->high[a], n);
    UN_ALLOC(ctx, fine->share[a], n);
    for (int32_t i = 0; i < half; i++)
        coarse->width[a][i] =
            fine->width[a][2 * i] + (2 * i + 1 < n ? fine->width[a][2 * i + 1] : 0);
    double edge = 0, coarse_edge = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t own = i / 2;
        if (i % 2 == 0 && i > 0) coarse_edge += coarse->width[a][own - 1];
        double at = edge + 0.5 * fine->width[a][i];
        double centre = coarse_edge + 0.5 * coarse->width[a][own];
        int32_t other = un_clampi(at < centre ? own - 1 : own + 1, 0, half - 1);
        double apart = 0.5 * (coarse->width[a][own] + coarse->width[a][other]);
        fine->low[a][i] = own;
        fine->high[a][i] = other;
        fine->share[a][i] = other == own ? 0 : fabs(at - centre) / apart;
        edge += fine->width[a][i];
    }
    return UN_OK;
}

static un_status allocate(un_context *ctx, un_warp_level *v)
{
    v->count = (int64_t)v->n[0] * v->n[1] * v->n[2];
    for (int a = 0; a < 3; a++) {
        const double *width = v->width[a];
        int32_t n = v->n[a];
        UN_ALLOC(ctx, v->link[a], n + 1);
        for (int32_t i = 0; i <= n; i++)
            v->link[a][i] = i > 0 && i < n ? 2 / (width[i - 1] + width[i]) : 0;
    }
    UN_ALLOC(ctx, v->x, v->count);
    UN_ALLOC(ctx, v->b, v->count);
    UN_ALLOC(ctx, v->r, v->count);
    return UN_OK;
}

un_status un_warp_levels(un_warp *w)
{
    un_warp_level *v = w->level;
    for (int a = 0; a < 3; a++) {
        v->n[a] = a < w->grid.dim ? w->grid.n[a] - 2 : 1;
        UN_ALLOC(w->ctx, v->width[a], v->n[a]);
        for (int32_t i = 0; i < v->n[a]; i++) v->width[a][i] = 1;
    }
    UN_TRY(allocate(w->ctx, v));
    w->level_count = 1;
    while (v->count > 1 && w->level_count < UN_WARP_LEVELS_MAX) {
        for (int a = 0; a < 3; a++) UN_TRY(halve_axis(w->ctx, v, v + 1, a));
        v++;
        UN_TRY(allocate(w->ctx, v));
        w->level_count++;
    }
    return UN_OK;
}

/* ---- sweeps ---- */

typedef struct level_args {
    un_warp_level *v, *coarse;
    int colour;
    bool residual;
} level_args;

/* One colour of a Gauss-Seidel sweep, or the residual, of integrated fluxes: between neighbours
 * along an axis area / distance. */
static void relax_rows(void *arg, int64_t begin, int64_t end)
{
    level_args *s = arg;
    un_warp_level *v = s->v;
    int64_t sy = v->n[0], sz = (int64_t)v->n[0] * v->n[1];
    const double *wx = v->width[0], *lx = v->link[0];
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % v->n[1]), k = (int32_t)(row / v->n[1]), n = v->n[0];
        double wy = v->width[1][j], wz = v->width[2][k], area = wy * wz;
        /* per width along x */
        double y0 = wz * v->link[1][j], y1 = wz * v->link[1][j + 1];
        double z0 = wy * v->link[2][k], z1 = wy * v->link[2][k + 1], across = y0 + y1 + z0 + z1;
        double *x = v->x + row * sy;
        const double *b = v->b + row * sy, *low = j > 0 ? x - sy : x, *below = k > 0 ? x - sz : x;
        const double *high = j + 1 < v->n[1] ? x + sy : x, *above = k + 1 < v->n[2] ? x + sz : x;
        int32_t first = s->residual ? 0 : (s->colour + j + k) & 1, step = s->residual ? 1 : 2;
        for (int32_t i = first; i < n; i += step) {
            double x0 = area * lx[i], x1 = area * lx[i + 1], diagonal = x0 + x1 + wx[i] * across;
            double sum = x0 * x[i > 0 ? i - 1 : i] + x1 * x[i + 1 < n ? i + 1 : i] +
                         wx[i] * (y0 * low[i] + y1 * high[i] + z0 * below[i] + z1 * above[i]);
            if (s->residual)
                v->r[i + row * sy] = b[i] - sum + diagonal * x[i];
            else if (diagonal > 0)
                x[i] = (sum - b[i]) / diagonal;
        }
    }
}

static void sweep(un_context *ctx, un_warp_level *v, int colour)
{
    level_args s = {.v = v, .colour = colour};
    un_parallel_for(ctx, (int64_t)v->n[1] * v->n[2], ROW_GRAIN, relax_rows, &s);
}

static void restrict_rows(void *arg, int64_t begin, int64_t end)
{
    level_args *s = arg;
    const un_warp_level *v = s->v;
    un_warp_level *coarse = s->coarse;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % coarse->n[1]), k = (int32_t)(row / coarse->n[1]);
        for (int32_t i = 0; i < coarse->n[0]; i++) {
            double sum = 0;
            for (int m = 0; m < 8; m++) {
                int32_t x = 2 * i + (m & 1), y = 2 * j + (m >> 1 & 1), z = 2 * k + (m >> 2);
                if (x < v->n[0] && y < v->n[1] && z < v->n[2])
                    sum += v->r[x + v->n[0] * (y + (int64_t)v->n[1] * z)];
            }
            coarse->b[i + row * coarse->n[0]] = sum;
            coarse->x[i + row * coarse->n[0]] = 0;
        }
    }
}

static void prolong_rows(void *arg, int64_t begin, int64_t end)
{
    level_args *s = arg;
    un_warp_level *v = s->v;
    const un_warp_level *coarse = s->coarse;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % v->n[1]), k = (int32_t)(row / v->n[1]);
        const double *from[4]; /* rows of the coarser level around this one */
        double w[4], *x = v->x + row * v->n[0];
        for (int m = 0; m < 4; m++) {
            int32_t y = m & 1 ? v->high[1][j] : v->low[1][j];
            int32_t z = m >> 1 ? v->high[2][k] : v->low[2][k];
            from[m] = coarse->x + coarse->n[0] * (y + (int64_t)coarse->n[1] * z);
            w[m] = (m & 1 ? v->share[1][j] : 1 - v->share[1][j]) *
                   (m >> 1 ? v->share[2][k] : 1 - v->share[2][k]);
        }
        for (int32_t i = 0; i < v->n[0]; i++) {
            int32_t a = v->low[0][i], b = v->high[0][i];
            double low = 0, high = 0;
            for (int m = 0; m < 4; m++) {
                low += w[m] * from[m][a];
                high += w[m] * from[m][b];
            }
            x[i] += low + (high - low) * v->share[0][i];
        }
    }
}

static void cycle(un_warp *w, int32_t l)
{
    un_context *ctx = w->ctx;
    un_warp_level *v = &w->level[l];
    if (l + 1 == w->level_count) {
        for (int i = 0; i < SWEEPS_LAST; i++) sweep(ctx, v, i & 1);
        return;
    }
    level_args s = {.v = v, .coarse = v + 1, .residual = true};
    for (int i = 0; i < 2 * SWEEPS; i++) sweep(ctx, v, i & 1);
    un_parallel_for(ctx, (int64_t)v->n[1] * v->n[2], ROW_GRAIN, relax_rows, &s);
    un_parallel_for(ctx, (int64_t)v[1].n[1] * v[1].n[2], ROW_GRAIN, restrict_rows, &s);
    cycle(w, l + 1);
    un_parallel_for(ctx, (int64_t)v->n[1] * v->n[2], ROW_GRAIN, prolong_rows, &s);
    for (int i = 2 * SWEEPS; i-- > 0;) sweep(ctx, v, i & 1);
}

static double sum_block(void *arg, int64_t begin, int64_t end)
{
    const double *x = arg;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += x[i];
    return sum;
}

/* Solves with level 0's right-hand side, which is in cells' units: fluxes of cells of edge 1. */
static void solve(un_warp *w, int32_t cycles)
{
    un_warp_level *v = w->level;
    memset(v->x, 0, (size_t)v->count * sizeof *v->x);
    for (int32_t i = 0; i < cycles; i++) cycle(w, 0);
    double mean = un_parallel_sum(w->ctx, v->count, sum_block, v->x) / (double)v->count;
    for (int64_t c = 0; c < v->count; c++) v->x[c] -= mean;
}

void un_warp_solve(un_warp *w, double *x, const double *b, int32_t cycles)
{
    un_warp_level *v = w->level;
    memcpy(v->b, b, (size_t)v->count * sizeof *b);
    solve(w, cycles);
    memcpy(x, v->x, (size_t)v->count * sizeof *x);
}

/* ---- the target ---- */

typedef struct target_args {
    un_warp *warp;
    const un_warp_step *step;
    const un_vec3 *node;
    double mean, scale, share;
} target_args;

/* Level 0's r gets 1 / m, and b the determinant; or r gets m. */
static void measure_rows(void *arg, int64_t begin, int64_t end)
{
    target_args *t = arg;
    un_warp *w = t->warp;
    const un_grid *g = &w->grid;
    un_warp_level *v = w->level;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % v->n[1]) + 1, k = (int32_t)(row / v->n[1]) + (g->dim == 3);
        for (int32_t i = 0; i < v->n[0]; i += 8) {
            int32_t count = v->n[0] - i < 8 ? v->n[0] - i : 8;
            un_eight x;
            double det[8], m[8];
            un_warp_cells_eight(w, t->node, un_grid_node(g, i + 1, j, k), count, &x, det);
            un_monitor_at_eight(t->step->monitor, &x, m);
            for (int32_t n = 0; n < count; n++) {
                int64_t c = i + n + row * v->n[0];
                v->r[c] = t->step->kind == UN_WARP_POISSON ? m[n] : 1 / m[n];
                v->b[c] = det[n];
            }
        }
    }
}

static void want_cells(void *arg, int64_t begin, int64_t end)
{
    target_args *t = arg;
    un_warp_level *v = t->warp->level;
    bool poisson = t->step->kind == UN_WARP_POISSON;
    for (int64_t c = begin; c < end; c++)
        v->b[c] = poisson ? t->scale * (t->mean - v->r[c])
                          : OMEGA * (v->r[c] / t->mean - v->b[c]) - t->scale;
}

static double max_block(void *arg, int64_t begin, int64_t end)
{
    const double *x = arg;
    double most = 0;
    for (int64_t i = begin; i < end; i++) most = fmax(most, x[i]);
    return most;
}

static void add_rows(void *arg, int64_t begin, int64_t end)
{
    target_args *t = arg;
    un_warp *w = t->warp;
    const un_grid *g = &w->grid;
    un_warp_level *v = w->level;
    double unit = g->h * g->h;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % v->n[1]) + 1, k = (int32_t)(row / v->n[1]) + (g->dim == 3);
        for (int32_t i = 0; i < v->n[0]; i++) {
            double *p = &w->target[un_grid_cell(g, i + 1, j, k)];
            *p = t->share * *p + (1 - t->share) * unit * v->x[i + row * v->n[0]];
            if (t->share == 1) *p += unit * v->x[i + row * v->n[0]];
        }
    }
}

/* One iteration. The nodes of the target are put where the grid's own will be placed again. */
static void improve(un_warp *w, const un_warp_step *step)
{
    un_context *ctx = w->ctx;
    un_warp_level *v = w->level;
    target_args t = {.warp = w, .step = step, .node = w->node, .share = 1};
    int64_t rows = (int64_t)v->n[1] * v->n[2], grain = un_block_grain(v->count);
    un_warp_place_nodes(w, w->node, w->target);
    un_parallel_for(ctx, rows, ROW_GRAIN, measure_rows, &t);
    t.mean = un_parallel_sum(ctx, v->count, sum_block, v->r) / (double)v->count;
    if (step->kind == UN_WARP_POISSON) {
        double most = (un_parallel_max(ctx, v->count, max_block, v->r) - t.mean) / step->strength;
        t.scale = 1 / ((1 + step->strength) * fmax(most, CONTRAST_LEAST));
        t.share = DAMPING;
    } else {
        double det = un_parallel_sum(ctx, v->count, sum_block, v->b) / (double)v->count;
        t.scale = OMEGA * (1 - det);
    }
    un_parallel_for(ctx, v->count, grain, want_cells, &t);
    solve(w, 1);
    un_parallel_for(ctx, rows, ROW_GRAIN, add_rows, &t);
}

typedef struct follow_args {
    un_warp *warp;
    double z;
} follow_args;

static void follow(void *arg, int64_t begin, int64_t end)
{
    follow_args *f = arg;
    un_warp *w = f->warp;
    double z = f->z, now = (1 - z) * (1 - z);
    for (int64_t c = begin; c < end; c++) {
        double next = now * w->target[c] + 2 * z * w->potential[c] - z * z * w->before[c];
        w->before[c] = w->potential[c];
        w->potential[c] = next;
    }
}

void un_warp_move(un_warp *w, const un_warp_step *step)
{
    follow_args f = {w, step->settle > 0 ? exp(-step->dt / step->settle) : 0};
    for (int32_t i = 0; i < step->rounds; i++) improve(w, step);
    un_parallel_for(w->ctx, w->grid.cell_count, un_block_grain(w->grid.cell_count), follow, &f);
    if (!(step->settle > 0))
        memcpy(w->before, w->potential, (size_t)w->grid.cell_count * sizeof *w->before);
    un_warp_place(w);
}
