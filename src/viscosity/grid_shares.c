/* How much liquid there is around cells, faces and edges of the grid.
 *
 * Each cell is cut into eight parts (2D: four), half a cell wide, and each part has its share of
 * open space times its share of liquid. Cubes around faces and edges are made of parts of the cells
 * that meet there, so every part is counted once among the cells, once among the faces of each
 * axis, and once among the edges of each. Between its samples the distance is taken as linear. */
#include "viscosity/grid.h"

/* Cells with less liquid than this share are empty: their faces would have hardly any mass. */
#define SHARE_MIN 1e-3

/* Fractions of the parts of a cell where values are positive, from those at its 27 (2D: 9) corners,
 * middles of edges and faces, and its centre, x fastest. */
UN_KERNEL void part_fractions(double out[8], const double *v, int dim)
{
    for (int part = 0; part < 1 << dim; part++) {
        int first = (part & 1) + 3 * (part >> 1 & 1) + 9 * (part >> 2);
        double corner[8];
        for (int m = 0; m < 1 << dim; m++)
            corner[m] = v[first + (m & 1) + 3 * (m >> 1 & 1) + 9 * (m >> 2)];
        out[part] = un_walls_cell_fraction(corner, dim);
    }
}

/* The mean of the values that `which` allows, of those from lo to hi along each axis in a block of
 * 3 x 3 x 3. */
UN_KERNEL double block_mean(const double *v, uint32_t which, const int lo[3], const int hi[3],
                            int dim)
{
    double sum = 0;
    int count = 0;
    for (int z = dim == 2 ? 0 : lo[2]; z <= (dim == 2 ? 0 : hi[2]); z++)
        for (int y = lo[1]; y <= hi[1]; y++)
            for (int x = lo[0]; x <= hi[0]; x++) {
                int n = x + 3 * y + 9 * z;
                if (!(which >> n & 1)) continue;
                sum += v[n];
                count++;
            }
    return sum / count;
}

/* Cells on the other side of a wall have no say: liquid meets walls at right angles. */
UN_KERNEL bool liquid_parts(double out[8], const un_stress_grid *s, int64_t c, int dim)
{
    const un_grid *g = s->g;
    const un_walls *w = s->in->walls;
    double depth[27], v[27];
    uint32_t which = 0;
    bool wet = false, dry = false;
    int middle = dim == 2 ? 4 : 13;
    for (int n = 0; n < (dim == 2 ? 9 : 27); n++) {
        int64_t m = c + n % 3 - 1 + (n / 3 % 3 - 1) * g->stride[1];
        if (dim == 3) m += (n / 9 - 1) * g->stride[2];
        bool sees = !w->parted || w->sees[c] >> (dim == 2 ? n + 9 : n) & 1;
        if (n != middle && (!sees || !(w->volume[m] > 0))) continue;
        which |= 1u << n;
        depth[n] = -(double)s->in->phi[m];
        wet |= depth[n] > 0;
        dry |= !(depth[n] > 0);
    }
    for (int part = 0; part < 8; part++) out[part] = wet;
    if (!wet || !dry) return wet;
    for (int n = 0; n < (dim == 2 ? 9 : 27); n++) {
        int lo[3] = {n % 3 == 0 ? 0 : 1, n / 3 % 3 == 0 ? 0 : 1, n / 9 == 0 ? 0 : 1};
        int hi[3] = {n % 3 == 2 ? 2 : 1, n / 3 % 3 == 2 ? 2 : 1, n / 9 == 2 ? 2 : 1};
        v[n] = block_mean(depth, which, lo, hi, dim);
    }
    part_fractions(out, v, dim);
    return true;
}

UN_KERNEL void open_parts(double out[8], const un_stress_grid *s, int64_t c, const int32_t at[3],
                          int dim)
{
    const un_walls *w = s->in->walls;
    double open = w->volume[c], v[27];
    for (int part = 0; part < 8; part++) out[part] = open;
    if (!(open > 0) || open >= 1) return;
    for (int n = 0; n < (dim == 2 ? 9 : 27); n++) {
        double sum = 0;
        for (int m = 0; m < 1 << dim; m++) {
            int i = n % 3 + (m & 1), j = n / 3 % 3 + (m >> 1 & 1), k = n / 9 + (m >> 2);
            sum += w->phi[un_grid_node(s->g, at[0] + i / 2, at[1] + j / 2, at[2] + k / 2)];
        }
        v[n] = sum / (1 << dim);
    }
    part_fractions(out, v, dim);
}

UN_KERNEL void shares_in(const un_stress_grid *s, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = s->g;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        bool padding = at[1] == 0 || at[1] == g->n[1] - 1;
        if (dim == 3) padding = padding || at[2] == 0 || at[2] == g->n[2] - 1;
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            float *share = s->share + (c << dim), *space = s->open + (c << dim);
            double open[8], liquid[8], sum = 0;
            for (int part = 0; part < 1 << dim; part++) share[part] = space[part] = 0;
            s->near[c] = 0;
            if (padding || at[0] == 0 || at[0] == g->n[0] - 1) continue;
            if (!(s->in->walls->volume[c] > 0)) continue;
            open_parts(open, s, c, at, dim);
            for (int part = 0; part < 1 << dim; part++) space[part] = (float)open[part];
            if (!liquid_parts(liquid, s, c, dim)) continue;
            for (int part = 0; part < 1 << dim; part++) sum += open[part] * liquid[part];
            if (sum < SHARE_MIN * (1 << dim)) continue;
            for (int part = 0; part < 1 << dim; part++)
                share[part] = (float)(open[part] * liquid[part]);
            s->near[c] = !s->in->viscosity || s->in->viscosity[c] > 0;
        }
    }
}

static void shares(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    UN_BY_DIM(s->g->dim, shares_in(s, begin, end, dim));
}

void un_stress_find_shares(const un_stress_grid *s)
{
    un_stress_over_rows(s, UN_STRESS_SHARES, shares, (void *)(uintptr_t)s);
}

/* ---- what is near ---- */

typedef struct spread_args {
    uint8_t *to;
    const uint8_t *from;
    int64_t stride, count;
} spread_args;

static void spread(void *arg, int64_t begin, int64_t end)
{
    spread_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        uint8_t near = a->from[c];
        if (c >= a->stride) near |= a->from[c - a->stride];
        if (c + a->stride < a->count) near |= a->from[c + a->stride];
        a->to[c] = near;
    }
}

void un_stress_spread(un_stress_grid *s, uint8_t *scratch)
{
    uint8_t *from = s->near, *to = scratch;
    for (int a = 0; a < s->g->dim; a++) {
        spread_args args = {to, from, s->g->stride[a], s->g->cell_count};
        int32_t wide = a == 0 ? UN_STRESS_SHARES : UN_STRESS_SHARES - a;
        un_parallel_runs(s->v->ctx, un_grid_own_cells(s->g, wide), un_block_grain(s->g->cell_count),
                         spread, &args);
        uint8_t *last = from;
        from = to;
        to = last;
    }
    if (from != s->near) un_runs_copy(s->near, from, 1, un_grid_own_cells(s->g, UN_STRESS_KINDS));
}

/* ---- sums of parts ---- */

/* Parts of cell c on one side along a: side 0 lower, 1 upper. */
static inline double half_sum(const un_stress_grid *s, const float *share, int64_t c, int a,
                              int side)
{
    share += c << s->g->dim;
    int first = side << a, b = 1 << (a + 1) % s->g->dim;
    double sum = (double)share[first] + (double)share[first | b];
    if (s->g->dim == 2) return 0.25 * sum;
    int d = 1 << (a + 2) % 3;
    return 0.125 * (sum + (double)share[first | d] + (double)share[first | b | d]);
}

/* Parts on one side along a and one along b. */
static inline double quarter_sum(const un_stress_grid *s, const float *share, int64_t c, int a,
                                 int side_a, int b, int side_b)
{
    share += c << s->g->dim;
    int first = side_a << a | side_b << b;
    if (s->g->dim == 2) return 0.25 * (double)share[first];
    return 0.125 * ((double)share[first] + (double)share[first | 1 << (3 - a - b)]);
}

static inline double times(double sum, const float *of, double all, int64_t c)
{
    return sum > 0 ? sum * (of ? (double)of[c] : all) : 0;
}

double un_stress_cell(const un_stress_grid *s, int64_t c, const float *of, double all)
{
    return times(half_sum(s, s->share, c, 0, 0) + half_sum(s, s->share, c, 0, 1), of, all, c);
}

double un_stress_face(const un_stress_grid *s, int64_t c, int a, const float *of, double all)
{
    int64_t below = c - s->g->stride[a];
    return times(half_sum(s, s->share, c, a, 0), of, all, c) +
           times(half_sum(s, s->share, below, a, 1), of, all, below);
}

double un_stress_edge(const un_stress_grid *s, int64_t c, int a, int b, const float *of, double all)
{
    int64_t sa = s->g->stride[a], sb = s->g->stride[b];
    return times(quarter_sum(s, s->share, c, a, 0, b, 0), of, all, c) +
           times(quarter_sum(s, s->share, c - sa, a, 1, b, 0), of, all, c - sa) +
           times(quarter_sum(s, s->share, c - sb, a, 0, b, 1), of, all, c - sb) +
           times(quarter_sum(s, s->share, c - sa - sb, a, 1, b, 1), of, all, c - sa - sb);
}

double un_stress_cell_open(const un_stress_grid *s, int64_t c)
{
    return half_sum(s, s->open, c, 0, 0) + half_sum(s, s->open, c, 0, 1);
}

double un_stress_edge_open(const un_stress_grid *s, int64_t c, int a, int b)
{
    int64_t sa = s->g->stride[a], sb = s->g->stride[b];
    return quarter_sum(s, s->open, c, a, 0, b, 0) + quarter_sum(s, s->open, c - sa, a, 1, b, 0) +
           quarter_sum(s, s->open, c - sb, a, 0, b, 1) +
           quarter_sum(s, s->open, c - sa - sb, a, 1, b, 1);
}
