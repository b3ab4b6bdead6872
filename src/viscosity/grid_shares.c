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
            float *share = s->share + (c << dim);
            double open[8], liquid[8], sum = 0;
            for (int part = 0; part < 1 << dim; part++) share[part] = 0;
            if (padding || at[0] == 0 || at[0] == g->n[0] - 1) continue;
            if (!(s->in->walls->volume[c] > 0) || !liquid_parts(liquid, s, c, dim)) continue;
            open_parts(open, s, c, at, dim);
            for (int part = 0; part < 1 << dim; part++) sum += open[part] * liquid[part];
            if (sum < SHARE_MIN * (1 << dim)) continue;
            for (int part = 0; part < 1 << dim; part++)
                share[part] = (float)(open[part] * liquid[part]);
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
    un_parallel_for(s->v->ctx, (int64_t)s->g->n[1] * s->g->n[2], 16, shares, (void *)(uintptr_t)s);
}

/* Of the parts of cell c in the half (or quarter) on the given sides: side 0 lower, 1 upper. */
static inline double half_sum(const un_stress_grid *s, int64_t c, int mask, int sides,
                              const float *of, double all)
{
    const float *share = s->share + (c << s->g->dim);
    double sum = 0;
    for (int part = 0; part < 1 << s->g->dim; part++)
        if ((part & mask) == sides) sum += (double)share[part];
    if (!(sum > 0)) return 0;
    return sum * (of ? (double)of[c] : all) / (1 << s->g->dim);
}

double un_stress_cell(const un_stress_grid *s, int64_t c, const float *of, double all)
{
    return half_sum(s, c, 0, 0, of, all);
}

double un_stress_face(const un_stress_grid *s, int64_t c, int a, const float *of, double all)
{
    return half_sum(s, c, 1 << a, 0, of, all) +
           half_sum(s, c - s->g->stride[a], 1 << a, 1 << a, of, all);
}

double un_stress_edge(const un_stress_grid *s, int64_t c, int a, int b, const float *of, double all)
{
    int64_t below = c - s->g->stride[a];
    int mask = 1 << a | 1 << b;
    return half_sum(s, c, mask, 0, of, all) + half_sum(s, below, mask, 1 << a, of, all) +
           half_sum(s, c - s->g->stride[b], mask, 1 << b, of, all) +
           half_sum(s, below - s->g->stride[b], mask, mask, of, all);
}
