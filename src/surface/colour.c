/* Level set of the simulation from the particles' volumes.
 *
 *     c(x) = sum_p V_p W(x - x_p) / integral of W over open space,     phi = h F^-1(c)
 *
 * W is the product of quadratic B-splines of width 3 h. Across a flat surface of evenly filled
 * liquid c falls along the known profile F(s) = integral from s to 3/2 of the spline, so phi is
 * the signed distance in cells, exact for axis-aligned and nearly exact for tilted surfaces. The
 * division makes walls invisible: water stays flat up to them, in edges and corners too.
 *
 * Compared with spheres or averaged positions [Zhu & Bridson 2005], c is smooth in the particle
 * positions (nothing flickers at rest), needs no radius, and weighs each particle by its volume,
 * so the surface encloses the particles' volume. Sheets and drops thinner than about 0.7 of a cell
 * have c < 1/2 throughout: their particles fly by themselves (ballistic). */
#include "surface/surface.h"

double un_colour_profile(double s)
{
    if (s < 0) return 1 - un_colour_profile(-s);
    if (s >= 1.5) return 0;
    if (s >= 0.5) return (1.5 - s) * (1.5 - s) * (1.5 - s) / 6;
    return 0.5 - s * (0.75 - s * s / 3);
}

double un_colour_distance(double c)
{
    if (!(c > 0)) return 1.5;
    if (c > 0.5) return -un_colour_distance(1 - c);
    if (c <= 1.0 / 6) return 1.5 - cbrt(6 * c);
    double s = (0.5 - c) / 0.72;
    for (int i = 0; i < 3; i++) s -= (s * (0.75 - s * s / 3) - (0.5 - c)) / (0.75 - s * s);
    return s;
}

/* ---- normalizer: the kernel's integral over cells is (1/6, 2/3, 1/6) along each axis ---- */

UN_KERNEL bool is_padding(const un_grid *g, int32_t i, int32_t j, int32_t k, int dim)
{
    return i == 0 || j == 0 || i == g->n[0] - 1 || j == g->n[1] - 1 ||
           (dim == 3 && (k == 0 || k == g->n[2] - 1));
}

/* A cell of the block around c, n = x + 3 y + 9 z from 0 to 26. */
static inline int64_t near_cell(const un_grid *g, int64_t c, int n)
{
    return c + n % 3 - 1 + (n / 3 % 3 - 1) * g->stride[1] + (n / 9 - 1) * g->stride[2];
}

static inline double near_weight(const un_grid *g, int n)
{
    static const double w[3] = {1.0 / 6, 2.0 / 3, 1.0 / 6};
    return w[n % 3] * w[n / 3 % 3] * (g->dim == 2 ? 1 : w[n / 9]);
}

/* Those cells of the block around (i, j, k) that are no padding. */
static uint32_t inner_cells(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    uint32_t set = 0;
    for (int n = 0; n < 27; n++)
        if (!is_padding(g, i + n % 3 - 1, j + n / 3 % 3 - 1, k + n / 9 - 1, g->dim)) set |= 1u << n;
    return set;
}

/* Samples along each axis of a cell that a wall cuts. */
#define SAMPLES 4

typedef struct normalizer_args {
    float *out;
    const un_grid *grid;
    const un_walls *walls;
    int32_t *cut;       /* at cells: number among those that a wall cuts, -1 */
    float (*share)[27]; /* of these: the integral over its open part of the kernel of each cell
                         * around it */
} normalizer_args;

/* Of several ranks, each finds the normalizer for its rows and this many more on all sides. */
#define NORMALIZED_ROWS 7

static bool is_cut(const un_walls *walls, int64_t c)
{
    return walls->volume[c] > 0 && walls->volume[c] < 1;
}

static int64_t number_cut(normalizer_args *a)
{
    int64_t count = 0;
    un_runs cells = un_grid_own_cells(a->grid, NORMALIZED_ROWS + 1);
    for (un_part run; un_runs_next(&cells, &run);)
        for (int64_t c = run.begin; c < run.end; c++)
            a->cut[c] = is_cut(a->walls, c) ? (int32_t)count++ : -1;
    return count;
}

/* Distances to the wall at the cell's corners, as its side sees them; at a side of the
 * domain to bodies only. */
static void corner_distances(const un_walls *walls, int32_t i, int32_t j, int32_t k,
                             double inside[3], double v[8])
{
    const un_grid *g = walls->grid;
    bool sides = un_walls_at_side(walls, i, j, k, inside);
    int64_t c = un_grid_cell(g, i, j, k);
    int32_t split = walls->parted ? walls->split[c] : -1;
    if (sides && split < 0) {
        un_walls_body_corners(walls, i, j, k, v);
        for (int m = 4; m < 8 && g->dim == 2; m++) v[m] = v[m - 4];
        return;
    }
    for (int m = 0; m < 8; m++) {
        int z = g->dim == 2 ? 0 : m >> 2;
        int64_t n = un_grid_node(g, i + (m & 1), j + (m >> 1 & 1), k + z);
        v[m] = split < 0 ? walls->phi[n] : walls->splits[split].phi[g->dim == 2 ? m & 3 : m];
    }
}

/* Samples of the open part of a cell that a wall cuts, from its centre in cells; returns how many.
 */
#define SAMPLES_MAX (SAMPLES * SAMPLES * SAMPLES)
static int sample_open(const un_walls *walls, int32_t i, int32_t j, int32_t k,
                       double at[SAMPLES_MAX][3])
{
    int count = 0, flat = walls->grid->dim == 2;
    double v[8], inside[3];
    corner_distances(walls, i, j, k, inside, v);
    for (int s = 0; s < (flat ? SAMPLES * SAMPLES : SAMPLES_MAX); s++) {
        double f[3] = {(s % SAMPLES + 0.5) / SAMPLES, (s / SAMPLES % SAMPLES + 0.5) / SAMPLES,
                       flat ? 0.5 : (s / SAMPLES / SAMPLES + 0.5) / SAMPLES},
               d = 0;
        for (int axis = 0; axis < walls->grid->dim; axis++) f[axis] *= inside[axis];
        for (int m = 0; m < 8; m++)
            d += v[m] * (m & 1 ? f[0] : 1 - f[0]) * (m >> 1 & 1 ? f[1] : 1 - f[1]) *
                 (m >> 2 ? f[2] : 1 - f[2]);
        if (!(d > 0)) continue;
        for (int axis = 0; axis < 3; axis++) at[count][axis] = f[axis] - 0.5;
        count++;
    }
    return count;
}

/* The kernels of the cells below, at and above a point's own along an axis, at x from its centre.
 */
static inline void kernels_at(double x, double w[3])
{
    w[0] = 0.5 * (0.5 - x) * (0.5 - x);
    w[1] = 0.75 - x * x;
    w[2] = 0.5 * (0.5 + x) * (0.5 + x);
}

/* Where a wall cuts a cell, the kernel is integrated over what is open of it: the mean over the
 * cell, as elsewhere, would take the half next to the wall for the other one. */
static void share_out(const normalizer_args *a, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = a->grid;
    int64_t c = un_grid_cell(g, i, j, k);
    float *share = a->share[a->cut[c]];
    double at[SAMPLES_MAX][3], sum[27] = {0};
    int count = sample_open(a->walls, i, j, k, at);
    for (int s = 0; s < count; s++) {
        double w[3][3];
        for (int axis = 0; axis < 3; axis++) kernels_at(at[s][axis], w[axis]);
        for (int n = 0; n < 27; n++)
            sum[n] += w[0][n % 3] * w[1][n / 3 % 3] * (g->dim == 2 ? 1 : w[2][n / 9]);
    }
    double volume = a->walls->volume[c];
    for (int n = 0; n < 27; n++)
        share[n] = (float)(count > 0 ? volume * sum[n] / count : volume * near_weight(g, n));
}

static void share_rows(void *arg, int64_t begin, int64_t end)
{
    const normalizer_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++)
            if (a->cut[un_grid_cell(g, i, j, k)] >= 0) share_out(a, i, j, k);
    }
}

static void normalize_rows(void *arg, int64_t begin, int64_t end)
{
    const normalizer_args *a = arg;
    const un_grid *g = a->grid;
    const un_walls *walls = a->walls;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            double sum = 0;
            a->out[c] = 1; /* beyond a wall or an open side */
            if (is_padding(g, i, j, k, g->dim)) continue;
            uint32_t sight = (walls->parted ? walls->sight[c] : UN_SIGHT_ALL) & un_colour_reach(g);
            for (; sight; sight &= sight - 1) {
                int n = __builtin_ctz(sight);
                int64_t m = near_cell(g, c, n);
                /* seen from there, c lies the other way */
                sum += a->cut && a->cut[m] >= 0 ? (double)a->share[a->cut[m]][26 - n]
                                                : near_weight(g, n) * walls->volume[m];
            }
            a->out[c] = (float)sum;
        }
    }
}

un_status un_colour_normalizer(un_context *ctx, float *normalizer, const un_grid *grid,
                               const un_walls *walls)
{
    normalizer_args a = {.out = normalizer, .grid = grid, .walls = walls};
    un_status status = UN_OK;
    if (un_walls_cut(walls)) {
        UN_ALLOC_DONE(ctx, a.cut, grid->cell_count);
        UN_ALLOC_DONE(ctx, a.share, number_cut(&a) + 1);
        un_parallel_runs(ctx, un_grid_own_rows(grid, NORMALIZED_ROWS + 1), 64, share_rows, &a);
    }
    un_parallel_runs(ctx, un_grid_own_rows(grid, NORMALIZED_ROWS), 64, normalize_rows, &a);
done:
    un_free(ctx, a.cut);
    un_free(ctx, a.share);
    return status;
}

/* ---- colour and phi ---- */

typedef struct colour_args {
    float *phi, *colour;
    const un_grid *grid;
    const un_walls *walls;
    const float *normalizer;
    uint8_t *known; /* at cells near thin walls: phi is there, from this pass on */
    uint8_t pass;
} colour_args;

/* Below this share of it most of the kernel lies in a body, and the little it sees is not reliable:
 * phi is extended from the open cells around. Otherwise a cell that a solid almost fills would be a
 * pocket of air, and the water around it would rush in. What lies beyond a side of the domain does
 * not count: with it cells at a side lost their colour before those beside them, and the edge of
 * water on a slope was never level. */
#define NORMALIZER_MIN 0.5f
#define GAP_MIN 0.01f
/* Passes that extend phi next to thin walls; the last one is for closed cells. */
#define CLOSED 4
#define UNKNOWN 0xff

/* The share of a cell's kernel that lies within sides of the domain that do not cut the cell. */
static float share_within(const un_walls *walls, int64_t c)
{
    const un_grid *g = walls->grid;
    const bool *open = walls->scene->def.domain.open;
    double inside[3], share = 1;
    int32_t at[3] = {(int32_t)(c % g->n[0]), (int32_t)(c / g->stride[1] % g->n[1]),
                     g->dim == 2 ? 0 : (int32_t)(c / g->stride[2])};
    if (!un_walls_at_side(walls, at[0], at[1], at[2], inside)) return 1;
    for (int a = 0; a < g->dim; a++) {
        if (at[a] == 1 && !open[2 * a]) share *= 5.0 / 6;
        if (at[a] == g->n[a] - 2 && !open[2 * a + 1] && inside[a] == 1) share *= 5.0 / 6;
    }
    return (float)share;
}

static bool has_bodies(const colour_args *a)
{
    return a->walls->bodies->count > 0;
}

static bool has_colour(const colour_args *a, int64_t c)
{
    float share = a->normalizer[c];
    if (share > NORMALIZER_MIN) return true;
    if (!has_bodies(a)) return false;
    return share > 0.125f * NORMALIZER_MIN && share > NORMALIZER_MIN * share_within(a->walls, c);
}

/* In gaps narrower than that, farther in than phi is extended, its own particles are all that a
 * cell knows. Taken for air, water under a cup a quarter of a cell above the floor ran at 2.5 m/s.
 */
static bool in_gap(const colour_args *a, int64_t c)
{
    return has_bodies(a) && a->walls->volume[c] > 0 && a->normalizer[c] > GAP_MIN;
}

static void invert(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    double h = a->grid->h;
    for (int64_t c = begin; c < end; c++) {
        bool colour = has_colour(a, c);
        float value = colour || in_gap(a, c) ? a->colour[c] / a->normalizer[c] : 0;
        a->colour[c] = colour ? value : 0;
        a->phi[c] = (float)(h * (value <= 0 ? 1.5 : value >= 1 ? -1.5 : un_colour_distance(value)));
    }
}

/* ---- at walls ---- */

/* The level set that the colour of an open cell tells, in cells. */
static double distance_of(const colour_args *a, int64_t c)
{
    double value = a->colour[c];
    return value <= 0 ? 1.5 : value >= 1 ? -1.5 : un_colour_distance(value);
}

/* The slope of the level set at a cell next to the surface, from the open cells around it, without
 * padding. Deep inside, where particles lie unevenly, it is noise and not sought. Sides of the
 * domain alone are upright or level: without bodies it is zero across them. */
typedef struct slope {
    double along[3], trust[3]; /* 0: not known */
} slope;

/* A wall may hide the neighbour on one side. */
#define ONE_SIDED 0.01
/* Cells no farther from the surface, in cells, have some of the liquid in their kernel: it is next
 * to them even if all neighbours that can be seen are air. */
#define NEXT_TO 0.9

static bool find_slope(const colour_args *a, int64_t c, uint32_t sight, slope *out)
{
    static const int step[3] = {1, 3, 9};
    const un_grid *g = a->grid;
    double here = distance_of(a, c), squared = 0;
    bool bodies = has_bodies(a), liquid = here < (bodies ? NEXT_TO : 0), air = here >= 0;
    *out = (slope){{0}, {0}};
    for (int axis = 0; axis < g->dim; axis++) {
        int64_t s = g->stride[axis], at = c / s % g->n[axis];
        bool low = at > 1 && sight >> (13 - step[axis]) & 1 && has_colour(a, c - s);
        bool high = at < g->n[axis] - 2 && sight >> (13 + step[axis]) & 1 && has_colour(a, c + s);
        double below = low ? distance_of(a, c - s) : here,
               above = high ? distance_of(a, c + s) : here;
        liquid |= below < 0 || above < 0;
        air |= below >= 0 || above >= 0;
        bool both = low && high;
        if (bodies || both) out->along[axis] = (both ? 0.5 : 1) * (above - below);
        out->trust[axis] = both || !bodies ? 1 : low || high ? ONE_SIDED : 0;
        squared += out->along[axis] * out->along[axis];
    }
    for (int axis = 0; axis < g->dim; axis++) out->along[axis] /= fmax(1, sqrt(squared));
    return liquid && air && squared > 0;
}

/* The mean along each axis, of the slopes that know it best. */
static void add_slope(slope *sum, const slope *s, double weight)
{
    for (int axis = 0; axis < 3; axis++) {
        sum->along[axis] += weight * s->trust[axis] * s->along[axis];
        sum->trust[axis] += weight * s->trust[axis];
    }
}

static un_vec3 mean_slope(const slope *sum)
{
    double v[3] = {0};
    for (int axis = 0; axis < 3; axis++)
        if (sum->trust[axis] > 0) v[axis] = sum->along[axis] / sum->trust[axis];
    return un_v3(v[0], v[1], v[2]);
}

static uint32_t sight_of(const colour_args *a, int64_t c)
{
    return (a->walls->parted ? a->walls->sight[c] : UN_SIGHT_ALL) & un_colour_reach(a->grid);
}

static un_vec3 offset_of(const un_grid *g, int n)
{
    return un_v3(n % 3 - 1, n / 3 % 3 - 1, g->dim == 2 ? 0 : n / 9 - 1);
}

/* Adds what cell n of the block around (i, j, k) has of the kernel: its integral, and that of the
 * place from the kernel's centre, in cells. */
static void add_moments(const un_walls *walls, int32_t i, int32_t j, int32_t k, int n,
                        double *total, un_vec3 *sum)
{
    static const double w[3] = {1.0 / 6, 2.0 / 3, 1.0 / 6}, first[3] = {-0.125, 0, 0.125};
    const un_grid *g = walls->grid;
    int d[3] = {n % 3, n / 3 % 3, n / 9};
    int32_t at[3] = {i + d[0] - 1, j + d[1] - 1, k + d[2] - 1};
    int64_t m = un_grid_cell(g, at[0], at[1], at[2]);
    double open = walls->volume[m], z = g->dim == 2 ? 1 : w[d[2]];
    double sample[SAMPLES_MAX][3];
    int count = is_cut(walls, m) ? sample_open(walls, at[0], at[1], at[2], sample) : 0;
    if (count == 0) {
        *total += open * w[d[0]] * w[d[1]] * z;
        *sum = un_mad(*sum,
                      un_v3(first[d[0]] * w[d[1]] * z, w[d[0]] * first[d[1]] * z,
                            g->dim == 2 ? 0 : w[d[0]] * w[d[1]] * first[d[2]]),
                      open);
        return;
    }
    for (int s = 0; s < count; s++) {
        double share = open / count, place[3];
        for (int axis = 0; axis < g->dim; axis++) {
            double kernel[3];
            kernels_at(sample[s][axis], kernel);
            share *= kernel[2 - d[axis]];
            place[axis] = sample[s][axis] + d[axis] - 1;
        }
        *total += share;
        *sum = un_mad(*sum, un_v3(place[0], place[1], g->dim == 2 ? 0 : place[2]), share);
    }
}

/* A cell's slope, along an axis where a wall hides a neighbour that of the cells around. With zero
 * there water on a slope would not lie level. */
static bool whole_slope(const colour_args *a, int64_t c, uint32_t sight, un_vec3 *out)
{
    const un_grid *g = a->grid;
    slope own, sum = {{0}, {0}};
    if (!find_slope(a, c, sight, &own)) return false;
    bool whole = true;
    for (int axis = 0; axis < g->dim; axis++) whole = whole && own.trust[axis] == 1;
    add_slope(&sum, &own, 1);
    for (uint32_t left = whole ? 0 : sight & ~(1u << 13); left; left &= left - 1) {
        int64_t m = near_cell(g, c, __builtin_ctz(left));
        slope there;
        if (!has_colour(a, m) || !find_slope(a, m, sight_of(a, m), &there)) continue;
        for (int axis = 0; axis < g->dim; axis++)
            if (own.trust[axis] == 1) there.trust[axis] = 0;
        add_slope(&sum, &there, 1);
    }
    *out = mean_slope(&sum);
    *out = un_scale(*out, 1 / fmax(1, un_length(*out)));
    return true;
}

/* Where a solid cuts into the kernel, c is the value at the centre of the rest: phi is moved to the
 * cell's centre along its slope. Without this water would not lie level at a slanting wall. */
static void move_to_centres(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        if (is_padding(g, 1, j, k, g->dim)) continue;
        for (int32_t i = 1; i < g->n[0] - 1; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            if (!has_colour(a, c) || a->normalizer[c] > 0.999f || a->colour[c] <= 0.01f ||
                a->colour[c] >= 0.99f)
                continue;
            uint32_t sight = sight_of(a, c);
            un_vec3 at = {0, 0, 0}, along;
            double total = 0;
            bool cut = false;
            for (uint32_t left = sight; left && !cut; left &= left - 1)
                cut = is_cut(a->walls, near_cell(g, c, __builtin_ctz(left)));
            if (!cut || !whole_slope(a, c, inner_cells(g, i, j, k) & sight, &along)) continue;
            for (uint32_t left = sight; left; left &= left - 1)
                add_moments(a->walls, i, j, k, __builtin_ctz(left), &total, &at);
            a->phi[c] -= (float)(g->h * un_dot(along, at) / total);
        }
    }
}

/* Others may write this pass's number meanwhile, which counts as little as UNKNOWN. */
static uint8_t known_at(const colour_args *a, int64_t c)
{
    return __atomic_load_n(&a->known[c], __ATOMIC_RELAXED);
}

/* Cells without a colour of their own take the mean of the cells around them that have phi,
 * weighted by nearness. Next to the surface they take the mean of what these foretell: their mean
 * alone would bend a level surface at a slanting wall, where they lie higher or lower. */
static bool extend_cell(const colour_args *a, int64_t c, uint32_t sight, float *phi)
{
    static const double weight[4] = {0, 1, 0.5, 1.0 / 3}; /* by squared distance */
    const un_grid *g = a->grid;
    double sum = 0, total = 0, level = 0, level_total = 0;
    un_vec3 places = {0, 0, 0};
    slope around = {{0}, {0}};
    for (; sight; sight &= sight - 1) {
        int n = __builtin_ctz(sight), d[3] = {n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
        int64_t m = near_cell(g, c, n);
        bool there = a->known ? known_at(a, m) < a->pass : has_colour(a, m);
        if (n == 13 || !there) continue;
        double w = weight[d[0] * d[0] + d[1] * d[1] + d[2] * d[2]];
        slope own;
        sum += w * a->phi[m];
        total += w;
        if (!has_colour(a, m) || !find_slope(a, m, sight_of(a, m), &own)) continue;
        level += w * a->phi[m];
        add_slope(&around, &own, w);
        places = un_mad(places, offset_of(g, n), w);
        level_total += w;
    }
    if (level_total > 0)
        *phi = (float)((level - g->h * un_dot(mean_slope(&around), places)) / level_total);
    else if (total > 0)
        *phi = (float)(sum / total);
    return total > 0;
}

static void extend_rows(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        if (is_padding(g, 1, j, k, g->dim)) continue;
        for (int32_t i = 1; i < g->n[0] - 1; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            uint32_t sight = un_colour_reach(g);
            if (a->known ? a->known[c] != UNKNOWN : has_colour(a, c)) continue;
            if (a->known && a->pass < CLOSED) {
                if (!(a->walls->volume[c] > 0)) continue; /* closed cells come last */
                sight = sight_of(a, c);
            }
            sight &= inner_cells(g, i, j, k);
            if (extend_cell(a, c, sight, &a->phi[c]) && a->known)
                __atomic_store_n(&a->known[c], a->pass, __ATOMIC_RELAXED);
        }
    }
}

/* Next to thin walls phi is extended layer by layer, within a side. */
static un_status extend(un_context *ctx, colour_args *a)
{
    un_runs rows = un_grid_own_rows(a->grid, 0);
    un_layered fields[] = {{a->phi, sizeof *a->phi}, {a->known, 1}};
    a->pass = CLOSED;
    for (uint8_t pass = 1; a->known && pass <= CLOSED; pass++) {
        a->pass = pass;
        UN_TRY(un_grid_share(a->grid, fields, 2, 1));
        un_parallel_runs(ctx, rows, 64, extend_rows, a);
    }
    if (a->known) return UN_OK;
    UN_TRY(un_grid_share(a->grid, fields, 1, 1));
    un_parallel_runs(ctx, rows, 64, extend_rows, a);
    return UN_OK;
}

static void begin_known(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    for (int64_t c = begin; c < end; c++) a->known[c] = has_colour(a, c) ? 0 : UNKNOWN;
}

un_status un_colour_level_set(un_context *ctx, float *phi, float *colour, const un_grid *grid,
                              const un_bins *bins, const un_particles *particles,
                              const un_walls *walls, const float *normalizer)
{
    colour_args a = {
        .phi = phi, .colour = colour, .grid = grid, .walls = walls, .normalizer = normalizer};
    int64_t grain = un_block_grain(grid->cell_count);
    un_runs cells = un_grid_own_cells(grid, 0);
    if (walls->parted) UN_ALLOC(ctx, a.known, grid->cell_count);
    un_colour_sum(ctx, colour, grid, bins, particles, walls);
    un_parallel_runs(ctx, cells, grain, invert, &a);
    un_status status =
        un_grid_share(grid, &(un_layered){colour, sizeof *colour}, 1, 2); /* slopes ask for two */
    if (status == UN_OK && un_walls_cut(walls))
        un_parallel_runs(ctx, un_grid_own_rows(grid, 0), 64, move_to_centres, &a);
    if (a.known) un_parallel_runs(ctx, cells, grain, begin_known, &a);
    if (status == UN_OK) status = extend(ctx, &a);
    if (status == UN_OK)
        status = un_grid_share(grid, &(un_layered){phi, sizeof *phi}, 1, UN_PHI_REACH);
    un_free(ctx, a.known);
    return status;
}

/* ---- volume ---- */

typedef struct volume_args {
    const float *phi;
    const un_grid *grid;
    const un_walls *walls;
    const uint8_t *thick;
} volume_args;

/* A cut cell counts with its volume below the plane given by phi and its gradient. */
UN_KERNEL double volume_in(const volume_args *a, int64_t begin, int64_t end, double sum, int dim)
{
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t k = (int32_t)(row / g->n[1]), j = (int32_t)(row % g->n[1]);
        if (is_padding(g, 1, j, k, dim)) continue;
        for (int32_t i = 1; i < g->n[0] - 1; i++) {
            int64_t c = un_grid_cell(g, i, j, k);
            const float *phi = a->phi + c;
            double open = a->walls->volume[c], d = phi[0] / g->h;
            if (open <= 0 || d >= 0.87 || (a->thick && !a->thick[c])) continue;
            if (d <= -0.87) {
                sum += open;
                continue;
            }
            /* one-sided where a neighbour lies in a wall */
            double n[3] = {0};
            for (int axis = 0; axis < dim; axis++) {
                int64_t s = g->stride[axis];
                bool low = a->walls->volume[c - s] > 0, high = a->walls->volume[c + s] > 0;
                n[axis] = low && high ? 0.5 * (phi[s] - phi[-s])
                          : high      ? phi[s] - phi[0]
                          : low       ? phi[0] - phi[-s]
                                      : 0;
            }
            sum += open * un_cube_below_plane(un_normalize(un_v3(n[0], n[1], n[2])), -d);
        }
    }
    return sum;
}

static void volume_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const volume_args *a = arg;
    UN_BY_DIM(a->grid->dim, *sums = volume_in(a, begin, end, *sums, dim));
}

double un_colour_volume(un_context *ctx, const float *phi, const un_grid *grid,
                        const un_walls *walls, const uint8_t *thick)
{
    volume_args a = {phi, grid, walls, thick};
    double cells;
    un_grid_sums(ctx, grid, 1, 1, volume_rows, &a, &cells);
    return grid->dim == 2 ? cells * grid->volume : cells * grid->h * grid->h * grid->h;
}
