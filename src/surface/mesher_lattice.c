/* The level set of the output surface on a lattice (mesher.c).
 *
 * Only a band around the simulation's surface is sampled: the particles' colour, and spheres and
 * hulls of what it cannot represent. Elsewhere the simulation's own sign is used. */
#include "surface/mesher.h"

/* Particles deeper than this under the colour's surface have no sphere, those above the second
 * level the full one. */
#define LOOSE_FROM -0.10
#define LOOSE_FULL 0.25
/* Reach of the sphere average. */
#define LOOSE_REACH 0.75
/* How far a particle's sphere may have moved. */
#define MOVED 0.25

/* Marks of simulation cells. SAMPLED: its nodes are sampled; FEEDS: its particles contribute to
 * such nodes. */
enum { FEEDS = 1, SAMPLED = 2 };

/* ---- band ---- */

static bool is_wall(const un_mesher *in, int64_t c)
{
    return in->walls->volume[c] <= 0;
}

static bool is_far(const un_lattice_mesher *s, int64_t row)
{
    return s->part && s->part->far[row] > s->part->band;
}

static bool has_particles(const un_lattice_mesher *s, int64_t c, int32_t i, int32_t j, int32_t k)
{
    if (s->part) return s->part->occupied[c];
    const un_bins *bins = s->in->bins;
    uint32_t cell = un_bins_cell(bins, i, j, k);
    return bins->begin[cell] < bins->begin[cell + 1];
}

/* Surface cells: liquid next to air, or air next to liquid, among the 26 neighbours; also every
 * cell that holds particles but no liquid. */
static void mark_surface(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    const un_mesher *in = s->in;
    const un_grid *g = in->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        if (is_far(s, row)) continue;
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            bool liquid = in->phi[c] < 0, near = !liquid && has_particles(s, c, i, j, k);
            for (int n = 0; n < 27 && !near; n++) {
                int32_t a = i + n % 3 - 1, b = j + n / 3 % 3 - 1, d = k + n / 9 - 1;
                if (a < 0 || b < 0 || d < 0 || a >= g->n[0] || b >= g->n[1] || d >= g->n[2])
                    continue;
                int64_t m = un_grid_cell(g, a, b, d);
                if (!is_wall(in, m)) near = (in->phi[m] < 0) != liquid;
            }
            s->band[c] = near && !is_wall(in, c) ? SAMPLED : 0;
        }
    }
}

/* Widens the marked set by one cell: unmarked cells next to marked ones get `mark`. */
typedef struct widen_args {
    const un_lattice_mesher *s;
    const un_grid *grid;
    const uint8_t *from;
    uint8_t *to;
    uint8_t mark;
} widen_args;

static void widen(void *arg, int64_t begin, int64_t end)
{
    widen_args *w = arg;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        if (is_far(w->s, row)) continue;
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            w->to[c] = w->from[c];
            for (int n = 0; n < 27 && !w->to[c]; n++) {
                int32_t a = i + n % 3 - 1, b = j + n / 3 % 3 - 1, d = k + n / 9 - 1;
                if (a < 0 || b < 0 || d < 0 || a >= g->n[0] || b >= g->n[1] || d >= g->n[2])
                    continue;
                if (w->from[un_grid_cell(g, a, b, d)]) w->to[c] = w->mark;
            }
        }
    }
}

/* One more ring of cells is sampled, and two more feed it: the kernel reaches 1.5 cells. */
un_status un_mesher_find_band(un_lattice_mesher *s)
{
    const un_grid *g = s->in->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    uint8_t *other;
    size_t cells = (size_t)g->cell_count;
    s->band = s->part ? un_alloc_zero(s->ctx, cells, 1) : un_alloc(s->ctx, cells, 1);
    other = s->part ? un_alloc_zero(s->ctx, cells, 1) : un_alloc(s->ctx, cells, 1);
    if (!s->band || !other) {
        un_free(s->ctx, other);
        return UN_ERROR_MEMORY;
    }
    un_parallel_for(s->ctx, rows, 64, mark_surface, s);
    for (int ring = 0; ring < 3; ring++) {
        widen_args w = {s, g, s->band, other, ring == 0 ? SAMPLED : FEEDS};
        un_parallel_for(s->ctx, rows, 64, widen, &w);
        uint8_t *swap = s->band;
        s->band = other;
        other = swap;
    }
    un_free(s->ctx, other);
    return UN_OK;
}

/* ---- colour on the lattice ---- */

static inline float spline(float s)
{
    s = fabsf(s);
    if (s < 0.5f) return 0.75f - s * s;
    if (s < 1.5f) return 0.5f * (1.5f - s) * (1.5f - s);
    return 0;
}

/* Nodes within reach of x along each axis. */
static void node_range(const un_lattice *l, const double x[3], double reach, int32_t lo[3],
                       int32_t hi[3])
{
    double origin[3] = {l->origin.x, l->origin.y, l->origin.z};
    lo[2] = hi[2] = 0;
    for (int a = 0; a < un_lattice_dim(l); a++) {
        lo[a] = (int32_t)un_clamp(ceil((x[a] - reach - origin[a]) / l->h[a]), 0, l->n[a]);
        hi[a] = (int32_t)un_clamp(floor((x[a] + reach - origin[a]) / l->h[a]), -1, l->n[a] - 1);
    }
}

/* Nodes along three cells, at most 16 a cell (make_lattice; a side of few cells may round up). */
#define SPLINE_NODES_MAX 128

static void scatter_colour(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    const un_grid *g = s->in->grid;
    const un_particles *p = s->in->particles;
    const un_lattice *l = &s->lattice;
    double inverse = 1 / g->h, origin[3] = {l->origin.x, l->origin.y, l->origin.z};
    float inverse_volume = (float)(inverse * inverse * (g->dim == 2 ? 1 : inverse));
    for (int64_t q = begin; q < end; q++) {
        if (!s->band[un_grid_cell_at(g, un_particle_position(p, q))]) continue;
        double x[3] = {p->x[0][q], p->x[1][q], p->x[2][q]};
        int32_t lo[3], hi[3];
        float w[3][SPLINE_NODES_MAX];
        node_range(l, x, 1.5 * g->h, lo, hi);
        w[2][0] = 1;
        for (int a = 0; a < g->dim; a++)
            for (int32_t i = lo[a]; i <= hi[a]; i++)
                w[a][i - lo[a]] = spline((float)((origin[a] + i * l->h[a] - x[a]) * inverse));
        float mass = p->volume[q] * inverse_volume;
        for (int32_t k = lo[2]; k <= hi[2]; k++)
            for (int32_t j = lo[1]; j <= hi[1]; j++) {
                if (un_mesher_skips(s, j + (int64_t)l->n[1] * k, UN_NODES_SAMPLED)) continue;
                float wyz = mass * w[2][k - lo[2]] * w[1][j - lo[1]];
                float *row = l->phi + l->n[0] * (j + (int64_t)l->n[1] * k);
                for (int32_t i = lo[0]; i <= hi[0]; i++) row[i] += wyz * w[0][i - lo[0]];
            }
    }
}

static un_vec3 node_position(const un_lattice *l, int32_t i, int32_t j, int32_t k)
{
    return un_v3(l->origin.x + i * l->h[0], l->origin.y + j * l->h[1], l->origin.z + k * l->h[2]);
}

/* The open part of the kernel at x: exact for the sides; solids are taken as flat. */
static double open_part(const un_mesher *in, un_vec3 x, double solid_distance)
{
    const bool *open = in->walls->scene->def.domain.open;
    double at[3] = {x.x, x.y, x.z}, inverse = 1 / in->grid->h, part = 1;
    double size[3] = {in->grid->size.x, in->grid->size.y, in->grid->size.z};
    for (int a = 0; a < in->grid->dim; a++) {
        double closed = 0;
        if (!open[2 * a]) closed += un_colour_profile(at[a] * inverse);
        if (!open[2 * a + 1]) closed += un_colour_profile((size[a] - at[a]) * inverse);
        part *= 1 - closed;
    }
    return part * (1 - un_colour_profile(solid_distance * inverse));
}

/* The band's cell for a node: the one at its upper side, or the last. */
static int64_t cell_at(const un_grid *g, un_vec3 x)
{
    return un_grid_cell_at(g, x);
}

static void colour_to_phi(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    const un_mesher *in = s->in;
    un_lattice *l = &s->lattice;
    double h = in->grid->h;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % l->n[1]), k = (int32_t)(row / l->n[1]);
        if (un_mesher_skips(s, row, UN_NODES_SAMPLED)) continue;
        float *phi = l->phi + row * l->n[0];
        for (int32_t i = 0; i < l->n[0]; i++) {
            un_vec3 x = node_position(l, i, j, k);
            int64_t c = cell_at(in->grid, x);
            if (s->band[c] != SAMPLED) {
                /* a node on a far side belongs to the padding: sample slightly further in */
                un_vec3 inner =
                    un_min3(x, un_sub(in->grid->size, un_v3(0.01 * h, 0.01 * h, 0.01 * h)));
                if (in->grid->dim == 2) inner.z = 0;
                c = cell_at(in->grid, inner);
            }
            if (s->band[c] != SAMPLED) {
                phi[i] = in->phi[c] < 0 && !is_wall(in, c) ? (float)(-1.5 * h) : (float)(1.5 * h);
                continue;
            }
            double d = in->walls->bodies->count ? un_mesher_solid(in->walls, x) : 2 * h;
            double part = open_part(in, x, d);
            phi[i] =
                part > 0.02 ? (float)(h * un_colour_distance(phi[i] / part)) : (float)(1.5 * h);
        }
    }
}

/* ---- walls ---- */

/* Next to a closed side the kernel sees few particles and their noise makes holes. No film of air
 * thinner than half a cell is resolved there anyway: liquid that comes this close touches. */
#define WALL_GAP 0.5

typedef struct wet_args {
    un_lattice_mesher *s;
    int axis;
    int32_t layer[2]; /* nodes from the low and the high side, -1: open */
} wet_args;

/* A rank that samples a row near a side samples as many rows around it. */
static bool wet_skips(const un_lattice_mesher *s, int64_t node)
{
    return s->part && un_mesher_skips(s, node / s->lattice.n[0], UN_NODES_SAMPLED);
}

static void wet_node(const un_lattice_mesher *s, int64_t node, int64_t from)
{
    float *phi = s->lattice.phi;
    if (!wet_skips(s, node) && !wet_skips(s, from)) phi[node] = fminf(phi[node], phi[from]);
}

static void wet_rows(void *arg, int64_t begin, int64_t end)
{
    wet_args *w = arg;
    un_lattice *l = &w->s->lattice;
    int a = w->axis, b = (a + 1) % 3, c = (a + 2) % 3;
    int64_t stride[3] = {1, l->n[0], (int64_t)l->n[0] * l->n[1]};
    for (int64_t row = begin; row < end; row++) {
        int64_t first = row % l->n[b] * stride[b] + row / l->n[b] * stride[c];
        int32_t last = l->n[a] - 1;
        for (int32_t i = 0; i < w->layer[0]; i++)
            wet_node(w->s, first + i * stride[a], first + w->layer[0] * stride[a]);
        for (int32_t i = 0; i < w->layer[1]; i++)
            wet_node(w->s, first + (last - i) * stride[a],
                     first + (last - w->layer[1]) * stride[a]);
    }
}

static void wet_walls(un_lattice_mesher *s)
{
    un_lattice *l = &s->lattice;
    const bool *open = s->in->walls->scene->def.domain.open;
    for (int a = 0; a < un_lattice_dim(l); a++) {
        int32_t layer = (int32_t)round(WALL_GAP * s->in->grid->h / l->h[a]);
        if (2 * layer >= l->n[a]) continue;
        wet_args w = {s, a, {open[2 * a] ? -1 : layer, open[2 * a + 1] ? -1 : layer}};
        un_parallel_for(s->ctx, (int64_t)l->n[(a + 1) % 3] * l->n[(a + 2) % 3], 256, wet_rows, &w);
    }
}

/* ---- loose particles ---- */

static double node_sample(const un_lattice *l, const double x[3])
{
    double f[3] = {0}, origin[3] = {l->origin.x, l->origin.y, l->origin.z};
    int64_t base = 0, stride[3] = {1, l->n[0], (int64_t)l->n[0] * l->n[1]};
    int32_t dim = un_lattice_dim(l);
    for (int a = 0; a < dim; a++) {
        double s = (x[a] - origin[a]) / l->h[a];
        int32_t i = un_clampi((int32_t)s, 0, l->n[a] - 2);
        f[a] = un_clamp(s - i, 0, 1);
        base += i * stride[a];
    }
    double sum = 0;
    for (int c = 0; c < 1 << dim; c++)
        sum += (c & 1 ? f[0] : 1 - f[0]) * (c & 2 ? f[1] : 1 - f[1]) * (c & 4 ? f[2] : 1 - f[2]) *
               l->phi[base + (c & 1) * stride[0] + (c >> 1 & 1) * stride[1] + (c >> 2) * stride[2]];
    return sum;
}

static void find_loose(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    const un_particles *p = s->in->particles;
    double h = s->in->grid->h;
    for (int64_t q = begin; q < end; q++) {
        s->radius[q] = 0;
        if (s->part && s->part->own[q] < 0) continue;
        if (s->drop && s->drop[q]) continue;
        if (s->band[cell_at(s->in->grid, un_particle_position(p, q))] != SAMPLED) continue;
        double x[3] = {p->x[0][q], p->x[1][q], p->x[2][q]};
        double t = (node_sample(&s->lattice, x) / h - LOOSE_FROM) / (LOOSE_FULL - LOOSE_FROM);
        t = un_clamp(t, 0, 1);
        s->radius[q] = (float)(un_mesher_radius(s, q) * t * t * (3 - 2 * t));
        const un_slim_entry *e = un_mesher_slim(s, q);
        if (e && e->joined) s->radius[q] = fminf(s->radius[q], e->radius);
    }
}

static void touch_nodes(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    const un_lattice *l = &s->lattice;
    for (int64_t q = begin; q < end; q++) {
        if (s->radius[q] <= 0) continue;
        un_vec3 at = un_mesher_sphere(s, q);
        double x[3] = {at.x, at.y, at.z};
        int32_t lo[3], hi[3];
        node_range(l, x, LOOSE_REACH * s->in->grid->h, lo, hi);
        for (int32_t k = lo[2]; k <= hi[2]; k++)
            for (int32_t j = lo[1]; j <= hi[1]; j++) {
                if (un_mesher_skips(s, j + (int64_t)l->n[1] * k, UN_NODES_LOOSE)) continue;
                for (int32_t i = lo[0]; i <= hi[0]; i++)
                    s->touched[i + l->n[0] * (j + (int64_t)l->n[1] * k)] = 1;
            }
    }
}

/* phi = |x - mean position| - mean radius over the loose particles near x. */
static double loose_distance(const un_lattice_mesher *s, un_vec3 x)
{
    const un_mesher *in = s->in;
    double reach = LOOSE_REACH * in->grid->h, sum = 0, radius = 0;
    double moved = s->slim.count ? MOVED * in->grid->h : 0;
    un_vec3 mean = {0, 0, 0};
    int32_t lo[3], hi[3];
    un_mesher_cells(in->grid, x, reach + moved, lo, hi);
    for (int32_t k = lo[2]; k <= hi[2]; k++)
        for (int32_t j = lo[1]; j <= hi[1]; j++)
            for (int32_t i = lo[0]; i <= hi[0]; i++) {
                uint32_t cell = un_bins_cell(in->bins, i, j, k);
                for (int32_t q = in->bins->begin[cell]; q < in->bins->begin[cell + 1]; q++) {
                    if (s->radius[q] <= 0) continue;
                    un_vec3 to = un_sub(un_mesher_sphere(s, q), x);
                    double t = 1 - un_dot(to, to) / (reach * reach);
                    if (t <= 0) continue;
                    double w = t * t * t * s->radius[q]; /* faint spheres weigh little */
                    sum += w;
                    radius += w * s->radius[q];
                    mean = un_mad(mean, to, w);
                }
            }
    if (sum <= 0) return INFINITY;
    return un_length(mean) / sum - radius / sum;
}

static void add_loose(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    un_lattice *l = &s->lattice;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < l->n[0]; i++) {
            int64_t node = row * l->n[0] + i;
            if (!s->touched[node]) continue;
            un_vec3 x = node_position(l, i, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            l->phi[node] = (float)fmin(l->phi[node], loose_distance(s, x));
            if (s->hulls)
                l->phi[node] = (float)fmin(
                    l->phi[node], un_hulls_distance(s->hulls, x, LOOSE_REACH * s->in->grid->h));
        }
}

static void cut_solids(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    un_lattice *l = &s->lattice;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < l->n[0] && !un_mesher_skips(s, row, UN_NODES_LOOSE); i++) {
            int64_t node = row * l->n[0] + i;
            un_vec3 x = node_position(l, i, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            double d = un_mesher_solid(s->in->walls, x);
            if (-d > l->phi[node]) l->phi[node] = (float)-d;
        }
}

/* ---- all of it ---- */

un_status un_mesher_find_colour(un_lattice_mesher *s)
{
    un_context *ctx = s->ctx;
    const un_mesher *in = s->in;
    un_lattice *l = &s->lattice;
    int64_t nodes = (int64_t)l->n[0] * l->n[1] * l->n[2], rows = (int64_t)l->n[1] * l->n[2];
    l->phi = un_alloc_zero(ctx, (size_t)nodes, sizeof *l->phi);
    s->touched = un_alloc_zero(ctx, (size_t)nodes, 1);
    s->radius = un_alloc(ctx, (size_t)in->particles->count + 1, sizeof *s->radius);
    if (!l->phi || !s->touched || !s->radius) return UN_ERROR_MEMORY;
    un_bins_scatter(in->bins, scatter_colour, s);
    un_parallel_for(ctx, rows, 64, colour_to_phi, s);
    wet_walls(s);
    un_parallel_for(ctx, in->particles->count, 8192, find_loose, s);
    return UN_OK;
}

void un_mesher_add_loose(un_lattice_mesher *s)
{
    int64_t rows = (int64_t)s->lattice.n[1] * s->lattice.n[2];
    un_bins_scatter(s->in->bins, touch_nodes, s);
    un_parallel_for(s->ctx, rows, 16, add_loose, s);
    if (s->in->walls->bodies->count) un_parallel_for(s->ctx, rows, 64, cut_solids, s);
}

un_status un_mesher_sample(un_lattice_mesher *s)
{
    UN_TRY(un_mesher_find_band(s));
    UN_TRY(un_mesher_find_colour(s));
    un_mesher_add_loose(s);
    return UN_OK;
}
