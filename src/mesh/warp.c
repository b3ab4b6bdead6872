/* A grid that warps: where its nodes are, the certificate against inversion, the inverse map.
 *
 * The certificate. If the symmetric part of the map's derivative is positive definite at all
 * corners of all cells, it is so everywhere in between, (x(a) - x(b)).(a - b) > 0 for any two
 * points, and the map is one to one. Both lattices are held to it: the nodes, on which pressure
 * lives, and the centres, by which points are located. The derivative is I + H with H linear in the
 * potential, so scaling the potential scales 1 - lambda: the least scaling that is safe is known at
 * once. */
#include "mesh/warp_internal.h"

/* ---- life ---- */

un_status un_warp_init(un_warp *w, un_context *ctx, un_vec3 size, int32_t finest)
{
    double longest = fmax(size.x, fmax(size.y, size.z)), h = longest / finest;
    double side[3] = {size.x, size.y, size.z}, whole[3] = {0};
    bool flat = !(size.z > 0);
    for (int a = 0; a < (flat ? 2 : 3); a++) whole[a] = h * fmax(1, round(side[a] / h));
    *w = (un_warp){.ctx = ctx, .size = size, .certificate = 1};
    w->grid = un_grid_make(un_v3(whole[0], whole[1], whole[2]), finest);
    w->stretch = un_v3(side[0] / whole[0], side[1] / whole[1], flat ? 1 : side[2] / whole[2]);
    size_t cells = (size_t)w->grid.cell_count, nodes = (size_t)w->grid.node_count;
    w->node = un_alloc_zero(ctx, nodes, sizeof *w->node);
    w->centre = un_alloc_zero(ctx, cells, sizeof *w->centre);
    w->jacobian = un_alloc_zero(ctx, cells, sizeof *w->jacobian);
    w->target = un_alloc_zero(ctx, cells, sizeof *w->target);
    w->potential = un_alloc_zero(ctx, cells, sizeof *w->potential);
    w->before = un_alloc_zero(ctx, cells, sizeof *w->before);
    if (!w->node || !w->centre || !w->jacobian || !w->target || !w->potential || !w->before)
        return UN_ERROR_MEMORY;
    UN_TRY(un_warp_levels(w));
    un_warp_place(w);
    return UN_OK;
}

void un_warp_free(un_warp *w)
{
    un_context *ctx = w->ctx;
    if (!ctx) return;
    void *arrays[] = {w->node, w->centre, w->jacobian, w->target, w->potential, w->before};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    for (int32_t l = 0; l < UN_WARP_LEVELS_MAX; l++) {
        un_warp_level *v = &w->level[l];
        un_free(ctx, v->x);
        un_free(ctx, v->b);
        un_free(ctx, v->r);
        for (int a = 0; a < 3; a++) {
            un_free(ctx, v->width[a]);
            un_free(ctx, v->link[a]);
            un_free(ctx, v->low[a]);
            un_free(ctx, v->high[a]);
            un_free(ctx, v->share[a]);
        }
    }
    *w = (un_warp){0};
}

/* ---- places ---- */

typedef struct place_args {
    un_warp *warp;
    const double *potential;
    un_vec3 *node;
} place_args;

/* Nodes move by the potential's gradient, from the cells around them; beyond the sides it is
 * mirrored. */
UN_KERNEL void place_nodes_in(const place_args *p, int64_t begin, int64_t end, int dim)
{
    const un_warp *w = p->warp;
    const un_grid *g = &w->grid;
    int32_t rows = g->n[1] - 1;
    double scale = g->inverse_h / (1 << (dim - 1));
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % rows) + 1, k = dim == 2 ? 0 : (int32_t)(row / rows) + 1;
        const double *from[4]; /* rows of cells around this one of nodes */
        for (int m = 0; m < 1 << (dim - 1); m++)
            from[m] = p->potential +
                      un_grid_cell(g, 0, un_clampi(j - 1 + (m & 1), 1, g->n[1] - 2),
                                   dim == 2 ? 0 : un_clampi(k - 1 + (m >> 1), 1, g->n[2] - 2));
        un_vec3 *node = p->node + un_grid_node(g, 0, j, k);
        for (int32_t i = 1; i < g->n[0]; i++) {
            int32_t low = i > 1 ? i - 1 : i, high = i < g->n[0] - 1 ? i : i - 1;
            double sx = 0, sy = 0, sz = 0;
            for (int m = 0; m < 1 << (dim - 1); m++) {
                double a = from[m][low], b = from[m][high];
                sx += b - a;
                sy += m & 1 ? a + b : -a - b;
                sz += m >> 1 ? a + b : -a - b;
            }
            un_vec3 x = un_grid_node_position(g, i, j, k);
            node[i] = un_v3(w->stretch.x * (x.x + scale * sx), w->stretch.y * (x.y + scale * sy),
                            dim == 2 ? 0 : w->stretch.z * (x.z + scale * sz));
        }
    }
}

static void place_nodes(void *arg, int64_t begin, int64_t end)
{
    const place_args *p = arg;
    UN_BY_DIM(p->warp->grid.dim, place_nodes_in(p, begin, end, dim));
}

static int64_t inner_node_rows(const un_grid *g)
{
    return (int64_t)(g->n[1] - 1) * (g->dim == 2 ? 1 : g->n[2] - 1);
}

void un_warp_place_nodes(un_warp *w, un_vec3 *node, const double *potential)
{
    place_args p = {w, potential, node};
    un_parallel_for(w->ctx, inner_node_rows(&w->grid), 16, place_nodes, &p);
}

/* The mean of the corners of the cell at node n, and the determinant of the derivative there,
 * without S. */
UN_KERNEL un_vec3 cell_in(const un_warp *w, const un_vec3 *node, int64_t n, double *det, int dim)
{
    const un_grid *g = &w->grid;
    int64_t sy = g->node_stride[1], sz = g->node_stride[2];
    un_warp_point p = {.column = {{0}, {0}, {0, 0, dim == 2}}};
    for (int k = 0; k < dim - 1; k++) {
        const un_vec3 *v = node + n + k * sz;
        un_vec3 low = un_add(v[0], v[1]), high = un_add(v[sy], v[sy + 1]), sum = un_add(low, high);
        p.column[0] = un_add(p.column[0], un_add(un_sub(v[1], v[0]), un_sub(v[sy + 1], v[sy])));
        p.column[1] = un_add(p.column[1], un_sub(high, low));
        if (dim == 3) p.column[2] = k == 0 ? un_sub(p.column[2], sum) : un_add(p.column[2], sum);
        p.x = un_add(p.x, sum);
    }
    double scale = g->inverse_h / (1 << (dim - 1)), stretch = w->stretch.x * w->stretch.y;
    *det = un_warp_det(&p) * scale * scale / stretch;
    if (dim == 3) *det *= scale / w->stretch.z;
    return un_scale(p.x, 1.0 / (1 << dim));
}

void un_warp_cell(const un_warp *w, const un_vec3 *node, int64_t n, un_vec3 *x, double *det)
{
    UN_BY_DIM(w->grid.dim, *x = cell_in(w, node, n, det, dim));
}

/* Mirrors of the inner cell's centre in the padding. */
static un_vec3 mirrored(const un_warp *w, un_vec3 x, const int32_t at[3])
{
    const un_grid *g = &w->grid;
    double side[3] = {w->size.x, w->size.y, w->size.z}, p[3] = {x.x, x.y, x.z};
    for (int a = 0; a < g->dim; a++)
        if (at[a] == 0 || at[a] == g->n[a] - 1) p[a] = at[a] == 0 ? -p[a] : 2 * side[a] - p[a];
    return un_v3(p[0], p[1], p[2]);
}

static void place_centres(void *arg, int64_t begin, int64_t end)
{
    un_warp *w = arg;
    const un_grid *g = &w->grid;
    double stretch = w->stretch.x * w->stretch.y * w->stretch.z, det[8];
    un_eight x;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        int32_t j = un_clampi(at[1], 1, g->n[1] - 2);
        int32_t k = g->dim == 2 ? 0 : un_clampi(at[2], 1, g->n[2] - 2), last = g->n[0] - 1;
        bool padding = j != at[1] || k != at[2];
        int64_t c = un_grid_cell(g, 0, at[1], at[2]);
        for (int32_t i = 1; i < last; i += 8) {
            int32_t count = last - i < 8 ? last - i : 8;
            un_warp_cells_eight(w, w->node, un_grid_node(g, i, j, k), count, &x, det);
            for (int32_t n = 0; n < count; n++) {
                at[0] = i + n;
                w->centre[c + i + n] = mirrored(w, un_eight_of(&x, n), at);
                w->jacobian[c + i + n] = padding ? 0 : (float)(det[n] * stretch);
            }
        }
        for (at[0] = 0; at[0] <= last; at[0] += last) {
            un_vec3 in = w->centre[c + (at[0] ? last - 1 : 1)];
            const int32_t along[3] = {at[0], 1, 1};
            w->centre[c + at[0]] = mirrored(w, in, along);
            w->jacobian[c + at[0]] = 0;
        }
    }
}

/* ---- the certificate ---- */

/* The smallest eigenvalue of a symmetric matrix, given by its diagonal and xy, yz, zx. */
static double smallest(const double d[3], const double o[3])
{
    double mean = (d[0] + d[1] + d[2]) / 3;
    double a = d[0] - mean, b = d[1] - mean, c = d[2] - mean;
    double off = o[0] * o[0] + o[1] * o[1] + o[2] * o[2];
    double p = sqrt((a * a + b * b + c * c + 2 * off) / 6);
    if (!(p > 0)) return mean;
    double det = a * (b * c - o[1] * o[1]) - o[0] * (o[0] * c - o[1] * o[2]) +
                 o[2] * (o[0] * o[1] - b * o[2]);
    double r = un_clamp(0.5 * det / (p * p * p), -1, 1);
    return mean + 2 * p * cos(acos(r) / 3 + 2 * UN_PI / 3);
}

typedef struct lattice_args {
    const un_warp *warp;
    const un_vec3 *at;
    int32_t lo[3], n[3]; /* its cells */
    int64_t stride[3];
    double scale[3]; /* derivatives without S, of differences */
    double least;    /* an eigenvalue that is known to be there: only smaller ones are looked for */
} lattice_args;

/* The smallest eigenvalue at the corners of a cell, if it is below `least`. */
UN_KERNEL double corner_least(const lattice_args *l, int64_t first, double least, int dim)
{
    const un_vec3 *at = l->at + first;
    double edge[3][4][3]; /* by axis, corner without that axis */
    static const double flat[3] = {0, 0, 1};
    for (int a = 0; a < dim; a++) {
        int b = a == 0 ? 1 : 0, c = a == 2 ? 1 : 2;
        for (int i = 0; i < 1 << (dim - 1); i++) {
            const un_vec3 *from = at + (i & 1) * l->stride[b] + (i >> 1) * l->stride[c];
            un_vec3 e = un_sub(from[l->stride[a]], *from);
            edge[a][i][0] = e.x * l->scale[0];
            edge[a][i][1] = e.y * l->scale[1];
            edge[a][i][2] = e.z * l->scale[2];
        }
    }
    for (int m = 0; m < 1 << dim; m++) {
        const double *j[3] = {edge[0][m >> 1], edge[1][(m & 1) | (m >> 2 << 1)],
                              dim == 2 ? flat : edge[2][m & 3]};
        double d[3] = {j[0][0], j[1][1], j[2][2]};
        double o[3] = {0.5 * (j[0][1] + j[1][0]), 0.5 * (j[1][2] + j[2][1]),
                       0.5 * (j[2][0] + j[0][2])};
        double r[3] = {fabs(o[0]) + fabs(o[2]), fabs(o[0]) + fabs(o[1]), fabs(o[1]) + fabs(o[2])};
        if (d[0] - r[0] >= least && d[1] - r[1] >= least && d[2] - r[2] >= least) continue;
        least = fmin(least, smallest(d, o));
    }
    return least;
}

UN_KERNEL double lattice_least(const lattice_args *l, int64_t begin, int64_t end, int dim)
{
    double least = l->least;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = l->lo[0] + (row % l->n[1] + l->lo[1]) * l->stride[1];
        if (dim == 3) first += (row / l->n[1] + l->lo[2]) * l->stride[2];
        for (int32_t i = 0; i < l->n[0]; i += dim == 2 ? 1 : 8) {
            uint32_t suspects = 1;
            if (dim == 3)
                suspects =
                    un_warp_suspects(l->at + first + i, l->stride, l->scale, l->n[0] - i, least);
            for (; suspects; suspects &= suspects - 1)
                least = corner_least(l, first + i + __builtin_ctz(suspects), least, dim);
        }
    }
    return least;
}

static double lattice_rows(void *arg, int64_t begin, int64_t end)
{
    const lattice_args *l = arg;
    return -(l->warp->grid.dim == 2 ? lattice_least(l, begin, end, 2)
                                    : lattice_least(l, begin, end, 3));
}

/* Rows that are looked at first, so that the rest need not be looked at closely. */
#define ROWS_FIRST 16

static double lattice_certify(lattice_args *l, double least)
{
    int64_t rows = (int64_t)l->n[1] * l->n[2], apart = rows / ROWS_FIRST + 1;
    l->least = least;
    for (int64_t row = apart / 2; row < rows; row += apart)
        l->least = -lattice_rows(l, row, row + 1);
    return -un_parallel_max(l->warp->ctx, rows, lattice_rows, l);
}

static double certify(const un_warp *w)
{
    const un_grid *g = &w->grid;
    lattice_args nodes = {.warp = w, .at = w->node}, centres = {.warp = w, .at = w->centre};
    double stretch[3] = {w->stretch.x, w->stretch.y, w->stretch.z};
    for (int a = 0; a < 3; a++) {
        bool flat = a >= g->dim;
        nodes.scale[a] = centres.scale[a] = g->inverse_h / stretch[a];
        nodes.lo[a] = flat ? 0 : 1;
        nodes.n[a] = flat ? 1 : g->n[a] - 2;
        nodes.stride[a] = g->node_stride[a];
        centres.n[a] = flat ? 1 : g->n[a] - 1;
        centres.stride[a] = g->stride[a];
    }
    return lattice_certify(&centres, lattice_certify(&nodes, 1));
}

typedef struct scale_args {
    double *potential, scale;
} scale_args;

static void scale_cells(void *arg, int64_t begin, int64_t end)
{
    scale_args *s = arg;
    for (int64_t c = begin; c < end; c++) s->potential[c] *= s->scale;
}

/* A scaled grid must pass: a hair more than needed. */
#define HAIR 1e-9

void un_warp_place(un_warp *w)
{
    int64_t rows = (int64_t)w->grid.n[1] * w->grid.n[2];
    for (int pass = 0; pass < 2; pass++) {
        un_warp_place_nodes(w, w->node, w->potential);
        un_parallel_for(w->ctx, rows, 16, place_centres, w);
        w->certificate = certify(w);
        if (w->certificate >= UN_WARP_LEAST) return;
        scale_args s = {w->potential, (1 - UN_WARP_LEAST - HAIR) / (1 - w->certificate)};
        un_parallel_for(w->ctx, w->grid.cell_count, un_block_grain(w->grid.cell_count), scale_cells,
                        &s);
    }
}

/* ---- points ---- */

un_vec3 un_warp_locate(const un_warp *w, un_vec3 x, un_vec3 xi)
{
    UN_BY_DIM(w->grid.dim, xi = un_warp_find_in(w, x, xi, dim));
    return xi;
}

un_vec3 un_warp_map(const un_warp *w, un_vec3 xi)
{
    return w->grid.dim == 2 ? un_warp_point_in(w, xi, 2).x : un_warp_point_in(w, xi, 3).x;
}

double un_monitor_at(const un_monitor *m, un_vec3 x)
{
    double at[3] = {x.x, x.y, x.z}, f[3] = {0}, sum = 0;
    int64_t stride[3] = {1, m->n[0], (int64_t)m->n[0] * m->n[1]}, base = 0;
    int dim = m->n[2] > 1 ? 3 : 2;
    for (int a = 0; a < dim; a++) {
        double s = un_clamp(at[a] / m->spacing[a], 0, m->n[a] - 1);
        int32_t i = un_clampi((int32_t)s, 0, m->n[a] - 2);
        f[a] = s - i;
        base += i * stride[a];
    }
    for (int c = 0; c < 1 << dim; c++) {
        double w = 1;
        int64_t n = base;
        for (int a = 0; a < dim; a++) {
            w *= c >> a & 1 ? f[a] : 1 - f[a];
            n += c >> a & 1 ? stride[a] : 0;
        }
        sum += w * m->density[n];
    }
    return sum;
}
