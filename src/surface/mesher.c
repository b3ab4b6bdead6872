/* Output surface from particles.
 *
 * The body of the liquid is the half-way level of the same colour function that the simulation
 * uses (colour.c), sampled on a finer lattice whose outer nodes lie in the domain's sides: at rest
 * it is flat, right up to the walls. Drops and sheets thinner than 0.7 of a simulation cell, which
 * the colour cannot represent, are added as averaged spheres [Zhu & Bridson 2005] around the loose
 * particles only: those that the colour's surface leaves outside, or nearly so. A particle's sphere
 * grows smoothly from nothing as it comes loose, so nothing pops.
 *
 * What flies, and fast liquid outside thick liquid (thick.c), is sheets, threads and drops
 * (slim.c). Drops by themselves are ready-made spheres; spheres of sheets and threads move to the
 * middle of those, and are joined by hulls [Ando13 section 5], because averages of spheres leave
 * holes. Every piece of the surface then gets its particles' volume (offset.c); the body of the
 * liquid moves only where particles are loose.
 *
 * Only a band around the simulation's surface is sampled; elsewhere the simulation's own sign is
 * used.
 *
 * In 2D the lattice is one layer of nodes, spheres are discs, and the result is the liquid's area
 * (flat.c). */
#include "surface/contour.h"
#include "surface/hulls.h"
#include "surface/offset.h"
#include "surface/surface.h"

/* All in simulation cells. A loose particle's full radius: the sphere of its volume (0.31 for an
 * eighth of a cell) a little enlarged, so that neighbours at the usual spacing of 0.5 join. */
#define LOOSE_RADIUS 0.34
/* The same in 2D: a disc of a quarter of a cell has 0.28, enlarged as much. */
#define LOOSE_RADIUS_FLAT 0.325
/* Particles deeper than this under the colour's surface have no sphere, those above the second
 * level the full one. */
#define LOOSE_FROM -0.10
#define LOOSE_FULL 0.25
/* Reach of the sphere average. */
#define LOOSE_REACH 0.75
/* Radius, in steps of the lattice, of spheres whose sheet has no holes even where it lies between
 * the nodes: half of a cube's diagonal. */
#define DRAWN 0.87
/* Reach of the velocity average at vertices. */
#define VELOCITY_REACH 1.0

/* Largest offsets of pieces, and of loose parts of the body, in radii of particles: a quarter of a
 * cell. */
#define PIECE_MOST 1.2
#define SHEET_MOST 0.8
/* The same of the rest of the body, which stays unless its volume is wrong by more than a share: at
 * rest the colour is right. */
#define BODY_MOST 0.4
#define BODY_SLACK 0.004
/* Pieces below this volume, in cubes of the lattice, are drawn as drops. */
#define SPECK 2.5
/* Solids hold vertices that are this near. */
#define AT_SOLID 0.25
/* How far a particle's sphere may have moved. */
#define MOVED 0.25

/* Marks of simulation cells. SAMPLED: its nodes are sampled; FEEDS: its particles contribute to
 * such nodes. */
enum { FEEDS = 1, SAMPLED = 2 };

typedef struct mesher_state {
    un_context *ctx;
    const un_mesher *in;
    un_lattice lattice;
    uint8_t *band;    /* by simulation cell: 1 near the surface */
    uint8_t *touched; /* by node: a loose particle is near */
    float *radius;    /* by particle, m; 0: not loose */
    un_trimesh *mesh;
    /* of what flies, in 3D */
    un_arena arena;
    un_groups groups;
    float *size; /* by particle: its radius */
    un_slim slim;
    un_hulls *hulls; /* of sheets and threads; NULL: there are none */
    uint8_t *drop;   /* by particle: 1 if it is a drop by itself */
    /* by vertex, as in un_offset */
    float *loose, *held, *too_thick; /* held: not loose */
    uint8_t *still;
    int32_t *nearest;
} mesher_state;

static const un_slim_entry *slim_entry(const mesher_state *s, int64_t q)
{
    return s->slim.count && s->slim.place[q] >= 0 ? &s->slim.entry[s->slim.place[q]] : NULL;
}

static un_vec3 sphere_position(const mesher_state *s, int64_t q)
{
    const un_slim_entry *e = slim_entry(s, q);
    return e && e->joined ? e->x : un_particle_position(s->in->particles, q);
}

/* Full radius of a loose particle's sphere. From its volume: a half-full particle makes a smaller
 * drop. */
static double full_radius(const mesher_state *s, int64_t q)
{
    double h = s->in->grid->h, volume = s->in->particles->volume[q];
    if (s->in->grid->dim == 2) return LOOSE_RADIUS_FLAT * h * sqrt(4 * volume / (h * h));
    return LOOSE_RADIUS * h * cbrt(8 * volume / (h * h * h));
}

/* ---- band ---- */

static bool is_wall(const un_mesher *in, int64_t c)
{
    return in->walls->volume[c] <= 0;
}

/* Surface cells: liquid next to air, or air next to liquid, among the 26 neighbours; also every
 * cell that holds particles but no liquid. */
static void mark_surface(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    const un_mesher *in = s->in;
    const un_grid *g = in->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            bool liquid = in->phi[c] < 0, near = false;
            if (!liquid) {
                uint32_t cell = un_bins_cell(in->bins, i, j, k);
                near = in->bins->begin[cell] < in->bins->begin[cell + 1];
            }
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
static un_status find_band(mesher_state *s)
{
    const un_grid *g = s->in->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    uint8_t *other = un_alloc(s->ctx, (size_t)g->cell_count, 1);
    if (!other) return UN_ERROR_MEMORY;
    un_parallel_for(s->ctx, rows, 64, mark_surface, s);
    for (int ring = 0; ring < 3; ring++) {
        widen_args w = {g, s->band, other, ring == 0 ? SAMPLED : FEEDS};
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
    mesher_state *s = arg;
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

/* Distance to solids alone, exact where it matters. */
static double solid_distance(const un_walls *walls, un_vec3 x)
{
    double near = 2 * walls->grid->h, d = near;
    if (walls->bodies->count == 0 || un_walls_distance(walls, x) > near) return near;
    un_bodies_nearest(walls->bodies, un_walls_place(walls, x), &d);
    return d;
}

/* The band's cell for a node: the one at its upper side, or the last. */
static int64_t cell_at(const un_grid *g, un_vec3 x)
{
    return un_grid_cell_at(g, x);
}

static void colour_to_phi(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    const un_mesher *in = s->in;
    un_lattice *l = &s->lattice;
    double h = in->grid->h;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % l->n[1]), k = (int32_t)(row / l->n[1]);
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
            double d = in->walls->bodies->count ? solid_distance(in->walls, x) : 2 * h;
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
    mesher_state *s;
    int axis;
    int32_t layer[2]; /* nodes from the low and the high side, -1: open */
} wet_args;

static void wet_rows(void *arg, int64_t begin, int64_t end)
{
    wet_args *w = arg;
    un_lattice *l = &w->s->lattice;
    int a = w->axis, b = (a + 1) % 3, c = (a + 2) % 3;
    int64_t stride[3] = {1, l->n[0], (int64_t)l->n[0] * l->n[1]};
    for (int64_t row = begin; row < end; row++) {
        float *phi = l->phi + row % l->n[b] * stride[b] + row / l->n[b] * stride[c];
        int32_t last = l->n[a] - 1;
        for (int32_t i = 0; i < w->layer[0]; i++)
            phi[i * stride[a]] = fminf(phi[i * stride[a]], phi[w->layer[0] * stride[a]]);
        for (int32_t i = 0; i < w->layer[1]; i++) {
            float *at = phi + (last - i) * stride[a];
            *at = fminf(*at, phi[(last - w->layer[1]) * stride[a]]);
        }
    }
}

static void wet_walls(mesher_state *s)
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

static double lattice_sample(const un_lattice *l, const double x[3])
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
    mesher_state *s = arg;
    const un_particles *p = s->in->particles;
    double h = s->in->grid->h;
    for (int64_t q = begin; q < end; q++) {
        s->radius[q] = 0;
        if (s->drop && s->drop[q]) continue;
        if (s->band[cell_at(s->in->grid, un_particle_position(p, q))] != SAMPLED) continue;
        double x[3] = {p->x[0][q], p->x[1][q], p->x[2][q]};
        double t = (lattice_sample(&s->lattice, x) / h - LOOSE_FROM) / (LOOSE_FULL - LOOSE_FROM);
        t = un_clamp(t, 0, 1);
        s->radius[q] = (float)(full_radius(s, q) * t * t * (3 - 2 * t));
        const un_slim_entry *e = slim_entry(s, q);
        if (e && e->joined) s->radius[q] = fminf(s->radius[q], e->radius);
    }
}

static void touch_nodes(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    const un_lattice *l = &s->lattice;
    for (int64_t q = begin; q < end; q++) {
        if (s->radius[q] <= 0) continue;
        un_vec3 at = sphere_position(s, q);
        double x[3] = {at.x, at.y, at.z};
        int32_t lo[3], hi[3];
        node_range(l, x, LOOSE_REACH * s->in->grid->h, lo, hi);
        for (int32_t k = lo[2]; k <= hi[2]; k++)
            for (int32_t j = lo[1]; j <= hi[1]; j++)
                for (int32_t i = lo[0]; i <= hi[0]; i++)
                    s->touched[i + l->n[0] * (j + (int64_t)l->n[1] * k)] = 1;
    }
}

/* Cells that overlap the ball around x. */
static void cell_range(const un_grid *g, un_vec3 x, double reach, int32_t lo[3], int32_t hi[3])
{
    double s[3] = {x.x - g->origin.x, x.y - g->origin.y, x.z - g->origin.z};
    lo[2] = hi[2] = 0;
    for (int a = 0; a < g->dim; a++) {
        lo[a] = un_clampi((int32_t)((s[a] - reach) / g->h), 0, g->n[a] - 1);
        hi[a] = un_clampi((int32_t)((s[a] + reach) / g->h), 0, g->n[a] - 1);
    }
}

/* phi = |x - mean position| - mean radius over the loose particles near x. */
static double loose_distance(const mesher_state *s, un_vec3 x)
{
    const un_mesher *in = s->in;
    double reach = LOOSE_REACH * in->grid->h, sum = 0, radius = 0;
    double moved = s->slim.count ? MOVED * in->grid->h : 0;
    un_vec3 mean = {0, 0, 0};
    int32_t lo[3], hi[3];
    cell_range(in->grid, x, reach + moved, lo, hi);
    for (int32_t k = lo[2]; k <= hi[2]; k++)
        for (int32_t j = lo[1]; j <= hi[1]; j++)
            for (int32_t i = lo[0]; i <= hi[0]; i++) {
                uint32_t cell = un_bins_cell(in->bins, i, j, k);
                for (int32_t q = in->bins->begin[cell]; q < in->bins->begin[cell + 1]; q++) {
                    if (s->radius[q] <= 0) continue;
                    un_vec3 to = un_sub(sphere_position(s, q), x);
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
    mesher_state *s = arg;
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
    mesher_state *s = arg;
    un_lattice *l = &s->lattice;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < l->n[0]; i++) {
            int64_t node = row * l->n[0] + i;
            un_vec3 x = node_position(l, i, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            double d = solid_distance(s->in->walls, x);
            if (-d > l->phi[node]) l->phi[node] = (float)-d;
        }
}

/* ---- velocities ---- */

/* What the particles of sheets and threads near a vertex say: sums with their weights. */
typedef struct slim_sums {
    double weight, radius, inset;
} slim_sums;

/* How far a vertex of a sheet or thread still has to move inwards, and how far it will then be from
 * the middle. Fairing has moved those of rims and thin threads already; by all of the inset their
 * sides would pass each other. */
static double excess_at(const mesher_state *s, un_vec3 x, const slim_sums *sums, double *left)
{
    *left = 0;
    if (!(sums->weight > 0)) return 0;
    double radius = sums->radius / sums->weight, inset = sums->inset / sums->weight;
    double d = un_hulls_distance(s->hulls, x, s->in->grid->h);
    *left = un_clamp(radius + d, 0, radius - inset);
    return un_clamp(inset + d, 0, inset);
}

static void vertex_velocities(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    const un_mesher *in = s->in;
    const un_grid *g = in->grid;
    const un_particles *p = in->particles;
    double reach = VELOCITY_REACH * g->h;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = s->mesh->position[v], sum = {0, 0, 0};
        double weight = 0, loose = 0, held = 0, least = INFINITY;
        slim_sums sums = {0, 0, 0};
        int32_t nearest = -1;
        int32_t lo[3], hi[3];
        cell_range(g, x, reach, lo, hi);
        for (int32_t k = lo[2]; k <= hi[2]; k++)
            for (int32_t j = lo[1]; j <= hi[1]; j++)
                for (int32_t i = lo[0]; i <= hi[0]; i++) {
                    uint32_t cell = un_bins_cell(in->bins, i, j, k);
                    for (int32_t q = in->bins->begin[cell]; q < in->bins->begin[cell + 1]; q++) {
                        un_vec3 to = un_sub(un_particle_position(p, q), x);
                        double t = 1 - un_dot(to, to) / (reach * reach);
                        if (t <= 0) continue;
                        double w = t * t * t;
                        weight += w;
                        sum = un_mad(sum, un_particle_velocity(p, q), w);
                        if (!s->loose) continue;
                        const un_slim_entry *e = slim_entry(s, q);
                        double away = un_length(un_sub(sphere_position(s, q), x)) - s->radius[q];
                        bool slim = e && e->joined;
                        double share = slim ? 1 : s->radius[q] / full_radius(s, q);
                        if (slim) {
                            sums.weight += w;
                            sums.radius += w * e->radius;
                            sums.inset += w * e->inset;
                        } else {
                            loose += w * s->size[q];
                        }
                        held += w * s->size[q] * (1 - share);
                        if (away < least && !s->drop[q]) least = away, nearest = q;
                    }
                }
        if (s->loose) {
            double left, share = weight > 0 ? sums.weight / weight : 0;
            s->too_thick[v] = (float)(share * excess_at(s, x, &sums, &left));
            s->loose[v] = weight > 0 ? (float)(loose / weight + share * left) : 0;
            s->held[v] = weight > 0 ? (float)(held / weight) : 0;
            s->nearest[v] = nearest;
            s->still[v] =
                in->walls->bodies->count && solid_distance(in->walls, x) < AT_SOLID * g->h;
        }
        s->mesh->velocity[v] =
            weight > 0 ? un_scale(sum, 1 / weight) : un_faces_sample(g, in->u, x);
    }
}

/* ---- what flies ---- */

static bool is_clear_of_walls(const mesher_state *s, un_vec3 x, double radius)
{
    un_vec3 far = un_sub(s->in->grid->size, x);
    double side = fmin(fmin(x.x, fmin(x.y, x.z)), fmin(far.x, fmin(far.y, far.z)));
    return side >= radius &&
           !(s->in->walls->bodies->count && solid_distance(s->in->walls, x) < radius);
}

/* Finds drops. Sizes by how lonely they are keep them from touching anything. */
static void find_drops(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    for (int64_t i = begin; i < end; i++) {
        const un_slim_entry *e = &s->slim.entry[i];
        double reach = UN_SPHERE_CORNER * UN_DROP_LONGEST * e->radius;
        if (!e->joined && is_clear_of_walls(s, e->x, reach)) s->drop[s->slim.particle[i]] = 1;
    }
}

/* Particles outside thick liquid. */
static un_status find_thin(mesher_state *s, uint8_t *thin)
{
    const un_mesher *in = s->in;
    uint8_t *thick;
    UN_TRY(un_surface_thick_grid(s->ctx, &s->arena, &thick, in->phi, in->grid, in->walls));
    for (int32_t q = 0; q < in->particles->count; q++)
        thin[q] = !thick[un_grid_cell_at(in->grid, un_particle_position(in->particles, q))];
    return UN_OK;
}

/* Hulls of the sheets' and threads' particles. All others are too deep to take part. */
static un_status join_slim(mesher_state *s)
{
    const un_particles *p = s->in->particles;
    un_hulls_report report;
    float *depth = un_arena_alloc(&s->arena, (size_t)p->count + 1, sizeof *depth);
    if (!depth) return UN_ERROR_MEMORY;
    for (int32_t q = 0; q < p->count; q++) {
        const un_slim_entry *e = slim_entry(s, q);
        depth[q] = e && e->joined ? 0 : -FLT_MAX;
    }
    un_hulls_def def = {.groups = &s->groups,
                        .radius = s->size,
                        .depth = depth,
                        .reach = 2,
                        .walls = s->in->walls,
                        .slim = &s->slim};
    return un_hulls_create(s->ctx, &s->arena, &def, &s->hulls, &report);
}

static un_status find_flying(mesher_state *s)
{
    const un_particles *p = s->in->particles;
    size_t count = (size_t)p->count + 1;
    s->size = un_arena_alloc(&s->arena, count, sizeof *s->size);
    s->drop = un_arena_alloc(&s->arena, count, 1);
    if (!s->size || !s->drop) return UN_ERROR_MEMORY;
    memset(s->drop, 0, count);
    for (int32_t q = 0; q < p->count; q++) s->size[q] = (float)un_particle_radius(p->volume[q]);
    UN_TRY(un_groups_build(s->ctx, &s->arena, &s->groups,
                           (const double *const[3]){p->x[0], p->x[1], p->x[2]}, s->size, p->count));
    un_slim_def def = {.particles = p,
                       .groups = &s->groups,
                       .radius = s->size,
                       .walls = s->in->walls,
                       .size = s->in->grid->size,
                       .gravity = s->in->walls->scene->def.gravity,
                       .reach = 2,
                       .drawn = DRAWN * s->lattice.h[0],
                       .drawn_all = true};
    def.thin = un_arena_alloc(&s->arena, count, 1);
    if (!def.thin) return UN_ERROR_MEMORY;
    UN_TRY(find_thin(s, def.thin));
    UN_TRY(un_slim_find(s->ctx, &s->arena, &s->slim, &def));
    un_parallel_for(s->ctx, s->slim.count, 256, find_drops, s);
    return s->slim.count ? join_slim(s) : UN_OK;
}

static un_status vertex_arrays(mesher_state *s)
{
    size_t vertices = (size_t)s->mesh->vertex_count + 1;
    s->loose = un_arena_alloc(&s->arena, vertices, sizeof *s->loose);
    s->held = un_arena_alloc(&s->arena, vertices, sizeof *s->held);
    s->too_thick = un_arena_alloc(&s->arena, vertices, sizeof *s->too_thick);
    s->still = un_arena_alloc(&s->arena, vertices, 1);
    s->nearest = un_arena_alloc(&s->arena, vertices, sizeof *s->nearest);
    bool all = s->loose && s->held && s->too_thick && s->still && s->nearest;
    return all ? UN_OK : UN_ERROR_MEMORY;
}

static bool flies_clear(const mesher_state *s, int64_t q)
{
    const un_slim_entry *e = q >= 0 ? slim_entry(s, q) : NULL;
    if (!e || (s->in->particles->flags[q] & UN_PARTICLE_APART) != UN_PARTICLE_BALLISTIC)
        return false;
    return is_clear_of_walls(s, e->x, UN_SPHERE_CORNER * UN_HULL_DROP * s->size[q]);
}

/* Pieces of a few steps of the lattice would be octahedra: their particles become drops. speck: by
 * piece. */
static un_status find_specks(mesher_state *s, const un_pieces *pieces, uint8_t **speck)
{
    const un_particles *p = s->in->particles;
    size_t count = (size_t)p->count + 1;
    uint8_t *with = un_arena_alloc(&s->arena, count, 1); /* by particle: of hulls in a speck */
    *speck = un_arena_alloc(&s->arena, (size_t)pieces->count + 1, 1);
    if (!with || !*speck) return UN_ERROR_MEMORY;
    memset(with, 0, count);
    double most = SPECK * s->lattice.h[0] * s->lattice.h[1] * s->lattice.h[2];
    for (int32_t i = 0; i < pieces->count; i++)
        (*speck)[i] = pieces->piece[i].wanted < most && !(pieces->has_body && i == 0);
    for (int32_t v = 0; v < s->mesh->vertex_count; v++) {
        uint8_t *mark = &(*speck)[pieces->of_vertex[v]];
        *mark = *mark && flies_clear(s, s->nearest[v]);
    }
    for (int32_t v = 0; v < s->mesh->vertex_count; v++)
        if ((*speck)[pieces->of_vertex[v]]) with[s->hulls->piece[s->nearest[v]]] = 1;
    for (int32_t q = 0; q < p->count; q++)
        if (slim_entry(s, q) && with[s->hulls->piece[q]]) s->drop[q] = 1;
    return UN_OK;
}

/* Adds the drops, and what the lattice has missed. */
static un_status add_drops(mesher_state *s, const un_pieces *pieces)
{
    const un_particles *p = s->in->particles;
    un_drop *drops = un_arena_alloc(&s->arena, (size_t)s->slim.count + 1, sizeof *drops);
    int32_t count = 0;
    if (!drops) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < s->slim.count; i++) {
        const un_slim_entry *e = &s->slim.entry[i];
        int32_t q = s->slim.particle[i];
        bool lost = pieces->wanting[q] && !e->joined &&
                    is_clear_of_walls(s, e->x, UN_SPHERE_CORNER * UN_DROP_LONGEST * e->radius);
        if (!s->drop[q] && !lost) continue;
        drops[count++] =
            (un_drop){.x = e->x,
                      .velocity = un_particle_velocity(p, q),
                      .radius = e->joined ? cbrt(0.75 / UN_PI * p->volume[q]) : (double)e->radius,
                      .stretch = e->stretch};
    }
    return un_surface_add_drops(s->ctx, &s->arena, s->mesh, drops, count,
                                UN_DROP_FINE * s->lattice.h[0]);
}

/* Sheets that run into the body are inside its surface and have none of their own. */
static void give_hidden_to_body(const mesher_state *s, un_pieces *pieces)
{
    if (!pieces->has_body) return;
    for (int32_t i = 0; i < s->slim.count; i++) {
        int32_t q = s->slim.particle[i];
        if (pieces->wanting[q] && s->slim.entry[i].joined)
            pieces->piece[0].wanted += s->in->particles->volume[q];
    }
}

static un_status fit_volume(mesher_state *s)
{
    const un_particles *p = s->in->particles;
    int32_t *piece = un_arena_alloc(&s->arena, (size_t)p->count + 1, sizeof *piece), body = -1;
    un_vec3 *direction =
        un_arena_alloc(&s->arena, (size_t)s->mesh->vertex_count + 1, sizeof *direction);
    if (!piece || !direction) return UN_ERROR_MEMORY;
    for (int32_t q = 0; q < p->count; q++) {
        if (!slim_entry(s, q) && body < 0) body = q;
        piece[q] = s->hulls ? s->hulls->piece[q] : slim_entry(s, q) ? q : body;
    }
    un_pieces pieces = {
        .mesh = s->mesh, .particles = p, .of_particle = piece, .nearest = s->nearest, .body = body};
    un_offset offset = {.mesh = s->mesh,
                        .lattice = &s->lattice,
                        .pieces = &pieces,
                        .still = s->still,
                        .radius = s->held,
                        .near_radius = s->loose,
                        .too_thick = s->too_thick,
                        .direction = direction,
                        .body = BODY_MOST,
                        .sheets = SHEET_MOST,
                        .most = PIECE_MOST,
                        .slack = BODY_SLACK};
    un_status status = un_pieces_find(s->ctx, &pieces);
    if (status == UN_OK) give_hidden_to_body(s, &pieces);
    if (status == UN_OK) un_offset_pieces(s->ctx, &offset);
    uint8_t *speck = NULL;
    if (status == UN_OK && s->hulls) status = find_specks(s, &pieces, &speck);
    if (status == UN_OK && speck) status = un_pieces_remove(s->ctx, &pieces, s->mesh, speck);
    if (status == UN_OK) status = add_drops(s, &pieces);
    un_pieces_free(s->ctx, &pieces);
    return status;
}

/* ---- the recipe ---- */

static void make_lattice(un_lattice *l, const un_grid *g, int32_t resolution)
{
    double size[3] = {g->size.x, g->size.y, g->size.z};
    /* keeps the nodes along a kernel within SPLINE_NODES_MAX; the scene's limit on `surface` is
     * stricter */
    double step = fmax(fmax(size[0], fmax(size[1], size[2])) / resolution, g->h / 16);
    l->origin = un_v3(0, 0, 0);
    l->n[2] = 1;
    l->h[2] = 0;
    for (int a = 0; a < g->dim; a++) {
        int32_t cells = (int32_t)fmax(1, round(size[a] / step));
        l->n[a] = cells + 1;
        l->h[a] = size[a] / cells;
    }
}

double un_surface_mesh_bytes(const un_grid *grid, int32_t resolution, double particles)
{
    un_lattice l;
    make_lattice(&l, grid, resolution);
    double nodes = (double)l.n[0] * l.n[1] * l.n[2];
    return nodes * (sizeof(float) + 1) + (double)grid->cell_count +
           particles * (5 * sizeof(float) + 1);
}

static un_status sample_level_set(mesher_state *s)
{
    un_context *ctx = s->ctx;
    const un_mesher *in = s->in;
    un_lattice *l = &s->lattice;
    int64_t nodes = (int64_t)l->n[0] * l->n[1] * l->n[2], rows = (int64_t)l->n[1] * l->n[2];
    s->band = un_alloc(ctx, (size_t)in->grid->cell_count, 1);
    l->phi = un_alloc_zero(ctx, (size_t)nodes, sizeof *l->phi);
    s->touched = un_alloc_zero(ctx, (size_t)nodes, 1);
    s->radius = un_alloc(ctx, (size_t)in->particles->count + 1, sizeof *s->radius);
    if (!s->band || !l->phi || !s->touched || !s->radius) return UN_ERROR_MEMORY;
    UN_TRY(find_band(s));
    un_bins_scatter(in->bins, scatter_colour, s);
    un_parallel_for(ctx, rows, 64, colour_to_phi, s);
    wet_walls(s);
    un_parallel_for(ctx, in->particles->count, 8192, find_loose, s);
    un_bins_scatter(in->bins, touch_nodes, s);
    un_parallel_for(ctx, rows, 16, add_loose, s);
    if (in->walls->bodies->count) un_parallel_for(ctx, rows, 64, cut_solids, s);
    return UN_OK;
}

un_status un_surface_mesh(un_context *ctx, un_trimesh *mesh, const un_mesher *in)
{
    mesher_state s = {.ctx = ctx, .in = in, .mesh = mesh};
    bool flat = in->grid->dim == 2;
    *mesh = (un_trimesh){0};
    un_arena_init(&s.arena, ctx);
    make_lattice(&s.lattice, in->grid, in->resolution);
    un_status status = flat ? UN_OK : find_flying(&s);
    if (status == UN_OK) status = sample_level_set(&s);
    un_free(ctx, s.band);
    un_free(ctx, s.touched);
    if (status == UN_OK && flat) status = un_surface_area(ctx, &s.lattice, in->smoothing, mesh);
    if (status == UN_OK && !flat) status = un_surface_contour(ctx, &s.lattice, mesh);
    un_free(ctx, s.lattice.phi);
    if (status == UN_OK && !flat) {
        status = un_surface_smooth(ctx, &s.lattice, mesh, in->smoothing);
        if (status == UN_OK) status = un_surface_normals_at_walls(ctx, &s.lattice, mesh);
    }
    if (status == UN_OK) {
        mesh->velocity = un_alloc(ctx, (size_t)mesh->vertex_count + 1, sizeof *mesh->velocity);
        if (!mesh->velocity) status = UN_ERROR_MEMORY;
    }
    if (status == UN_OK && !flat) status = vertex_arrays(&s);
    if (status == UN_OK) un_parallel_for(ctx, mesh->vertex_count, 1024, vertex_velocities, &s);
    if (status == UN_OK && !flat) status = fit_volume(&s);
    un_free(ctx, s.radius);
    un_hulls_destroy(s.hulls);
    un_arena_free(&s.arena);
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    return status;
}
