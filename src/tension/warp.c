/* Surface tension on a grid that warps.
 *
 * The surface is found in reference space, where cells are cubes (distance.c); from there on the
 * distance d to it is that of space, and smoothed by the grid's T = 2 S - S^2 (grid.c). So are the
 * places x of the cells, as d and x must stay a pair: T d = n.T x where the surface is a plane.
 * With J = dx/dxi,
 *
 *     p = grad_x d = J^-T grad_xi d,     H = J^-T (hess_xi d - sum_k p_k hess_xi x_k) J^-1,
 *     kappa = (tr H - n.Hn) / |p|,       n = p / |p|,
 *
 * by the same differences for d and x: a plane has no curvature, whatever the grid. From one level
 * set of d to the next kappa changes by - |S|^2, S being the derivative of n along the surface,
 * which brings it from a cell's centre to the surface. Nodes take the mean of the cells around
 * them, and further ones that of the nodes around. */
#include "tension/lattice.h"

/* In 1/cells, as on the grid. */
#define ROUNDEST 0.5
/* Rounds in which nodes take the mean of those around. */
#define SPREADS 2

/* ---- between the lattice and space ---- */

int64_t un_lattice_grid_cell(const un_tension_lattice *l, int64_t c)
{
    const un_grid *g = l->in->grid;
    double x[3];
    int32_t at[3] = {0};
    un_lattice_place(l, c, x);
    for (int a = 0; a < l->dim; a++) {
        at[a] = (int32_t)x[a] - l->pad[a];
        if (at[a] < 1 || at[a] > g->n[a] - 2) return -1;
    }
    return un_grid_cell(g, at[0], at[1], at[2]);
}

un_warp_point un_lattice_map(const un_tension_lattice *l, const double x[3])
{
    double in[3] = {x[0], x[1], x[2]};
    const un_vec3 size = l->warp->size;
    bool mirrored[3] = {false};
    for (int a = 0; a < l->dim; a++) {
        double side = x[a] < l->low[a] ? l->low[a] : l->high[a];
        mirrored[a] = x[a] < l->low[a] || x[a] > l->high[a];
        if (mirrored[a]) in[a] = 2 * side - x[a];
    }
    un_warp_point p;
    un_vec3 xi = un_warp_inside(l->in->grid, un_lattice_world(l, in));
    UN_BY_DIM(l->dim, p = un_warp_point_in(l->warp, xi, dim));
    if (mirrored[0]) p.x.x = (x[0] < l->low[0] ? 0 : 2 * size.x) - p.x.x;
    if (mirrored[1]) p.x.y = (x[1] < l->low[1] ? 0 : 2 * size.y) - p.x.y;
    if (mirrored[2]) p.x.z = (x[2] < l->low[2] ? 0 : 2 * size.z) - p.x.z;
    for (int a = 0; a < 3; a++) {
        if (mirrored[0] != mirrored[a]) p.column[a].x = -p.column[a].x;
        if (mirrored[1] != mirrored[a]) p.column[a].y = -p.column[a].y;
        if (mirrored[2] != mirrored[a]) p.column[a].z = -p.column[a].z;
    }
    return p;
}

void un_lattice_find(const un_tension_lattice *l, un_vec3 at, const double near[3], double x[3])
{
    const un_grid *g = l->in->grid;
    un_vec3 inside = un_min3(un_max3(at, un_v3(0, 0, 0)), l->warp->size);
    un_vec3 xi = un_warp_locate(l->warp, inside, un_lattice_world(l, near));
    x[0] = (xi.x - g->origin.x) * g->inverse_h - 0.5 + l->pad[0];
    x[1] = (xi.y - g->origin.y) * g->inverse_h - 0.5 + l->pad[1];
    x[2] = l->dim == 2 ? 0 : (xi.z - g->origin.z) * g->inverse_h - 0.5 + l->pad[2];
}

/* ---- distances in space ---- */

/* Steps towards the foot in space. */
#define STEPS 3
/* In cells: slides that need no more. */
#define CLOSE 0.02

/* The distance from x to the surface in space; y: its foot in reference space. */
static double measure(const un_tension_lattice *l, un_vec3 x, double y[3])
{
    double least = INFINITY, h = l->in->grid->h;
    for (int step = 0; step <= STEPS; step++) {
        double normal[3];
        bool found = un_lattice_settle(l, y, normal);
        un_warp_point p = un_lattice_map(l, y);
        un_vec3 to = un_sub(x, p.x);
        least = fmin(least, un_length(to));
        if (!found) return least;
        un_vec3 n = un_normalize(un_warp_gradient(&p, un_v3(normal[0], normal[1], normal[2])));
        un_vec3 slide = un_scale(un_warp_pull(&p, un_mad(to, n, -un_dot(to, n))), 1 / h);
        double length = un_length(slide);
        if (length < CLOSE) return least;
        slide = un_scale(slide, fmin(1, 1 / length));
        y[0] += slide.x;
        y[1] += slide.y;
        y[2] += slide.z;
    }
    return least;
}

static void measure_cells(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    double inverse = l->in->grid->inverse_h;
    for (int64_t q = begin; q < end; q++) {
        double x[3], y[3] = {(double)l->foot[q][0], (double)l->foot[q][1], (double)l->foot[q][2]};
        un_lattice_place(l, l->cell[q], x);
        un_warp_point p = un_lattice_map(l, x);
        un_vec3 way = un_scale(un_sub(p.x, un_lattice_world(l, x)), inverse);
        l->way[0][q] = (float)way.x;
        l->way[1][q] = (float)way.y;
        l->way[2][q] = (float)way.z;
        l->d[0][q] = (float)copysign(measure(l, p.x, y) * inverse, (double)l->d[0][q]);
    }
}

un_status un_lattice_measure(un_tension_lattice *l, un_arena *arena)
{
    float *distance = l->d[0];
    for (int a = 0; a < 3; a++) {
        l->way[a] = un_arena_alloc(arena, (size_t)l->band_count + 1, sizeof *l->way[a]);
        if (!l->way[a]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(l->ctx, l->band_count, 1024, measure_cells, l);
    for (int a = 0; a < l->dim; a++) {
        l->d[0] = l->way[a];
        un_lattice_sharpen(l);
        l->way[a] = l->d[0];
    }
    l->d[0] = distance;
    return UN_OK;
}

/* ---- curvature ---- */

/* First and second differences, per cell, of the distance and of places, in cells. */
typedef struct slopes {
    un_warp_point map;
    un_vec3 bend[3][3]; /* second derivatives of x */
    double first[3];    /* of the distance */
    double second[3][3];
} slopes;

typedef struct sample {
    un_vec3 way;
    double d;
} sample;

/* c: a cell of the lattice next to one in the band; otherwise the same as there. */
static sample sample_at(const un_tension_lattice *l, int64_t c, int64_t instead)
{
    int32_t q = l->number[c] < 0 ? l->number[instead] : l->number[c];
    return (sample){
        {(double)l->way[0][q], (double)l->way[1][q], l->dim == 2 ? 0 : (double)l->way[2][q]},
        (double)l->d[0][q]};
}

UN_KERNEL void find_slopes(slopes *s, const un_tension_lattice *l, int64_t c, int dim)
{
    static const un_vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    sample here = sample_at(l, c, c);
    s->map.column[2] = axis[2];
    for (int a = 0; a < dim; a++) {
        sample low = sample_at(l, c - l->stride[a], c), high = sample_at(l, c + l->stride[a], c);
        s->first[a] = 0.5 * (high.d - low.d);
        s->second[a][a] = high.d - 2 * here.d + low.d;
        s->map.column[a] = un_mad(axis[a], un_sub(high.way, low.way), 0.5);
        s->bend[a][a] = un_mad(un_add(high.way, low.way), here.way, -2);
        for (int b = 0; b < a; b++) {
            int64_t p = l->stride[a] + l->stride[b], m = l->stride[a] - l->stride[b];
            sample pp = sample_at(l, c + p, c), nn = sample_at(l, c - p, c),
                   pn = sample_at(l, c + m, c), np = sample_at(l, c - m, c);
            s->second[a][b] = s->second[b][a] = 0.25 * (pp.d - pn.d - np.d + nn.d);
            s->bend[a][b] = s->bend[b][a] =
                un_scale(un_sub(un_add(pp.way, nn.way), un_add(pn.way, np.way)), 0.25);
        }
    }
}

/* The curvature of the surface next to cell c of the lattice, 1/cells. */
UN_KERNEL double curvature_in(const un_tension_lattice *l, int64_t c, int dim)
{
    slopes s;
    find_slopes(&s, l, c, dim);
    double size = un_lattice_size(&s.map, dim);
    double grad[3] = {0}, second[3][3] = {{0}}, hessian[3][3], most = ROUNDEST * (dim - 1) / size;
    memcpy(grad, s.first, (size_t)dim * sizeof *grad);
    un_vec3 p = un_warp_gradient(&s.map, un_v3(grad[0], grad[1], grad[2]));
    double length = fmax(un_length(p), 0.1);
    un_vec3 n = un_scale(p, 1 / length), row[3], column[3];
    for (int a = 0; a < dim; a++)
        for (int b = 0; b < dim; b++) second[a][b] = s.second[a][b] - un_dot(p, s.bend[a][b]);
    /* J^-T on both sides */
    for (int a = 0; a < 3; a++)
        row[a] = un_warp_gradient(&s.map, un_v3(second[a][0], second[a][1], second[a][2]));
    column[0] = un_warp_gradient(&s.map, un_v3(row[0].x, row[1].x, row[2].x));
    column[1] = un_warp_gradient(&s.map, un_v3(row[0].y, row[1].y, row[2].y));
    column[2] = un_warp_gradient(&s.map, un_v3(row[0].z, row[1].z, row[2].z));
    for (int a = 0; a < 3; a++) {
        hessian[0][a] = column[a].x / length;
        hessian[1][a] = column[a].y / length;
        hessian[2][a] = column[a].z / length;
    }
    /* along the surface */
    double m[3] = {n.x, n.y, n.z}, to[3] = {0}, twice = 0, trace = 0, square = 0;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            to[a] += hessian[a][b] * m[b];
            twice += m[a] * hessian[a][b] * m[b];
        }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double along = hessian[a][b] - m[a] * to[b] - to[a] * m[b] + m[a] * twice * m[b];
            square += along * along;
            if (a == b) trace += along;
        }
    double distance = (double)l->d[0][l->number[c]] / length;
    return un_clamp(trace + distance * fmin(square, most * most), -most, most);
}

/* ---- pressure at nodes ---- */

typedef struct args {
    un_tension_lattice *l;
    const un_tension_warp *in;
    float *kappa;      /* at cells: times sigma; NaN where there is no surface */
    double *from, *to; /* at nodes */
    double mean;
} args;

static void press_cells(void *arg, int64_t begin, int64_t end)
{
    const args *a = arg;
    const un_tension_lattice *l = a->l;
    const un_grid *g = l->in->grid;
    double sigma = a->in->def->fluid.surface_tension * g->inverse_h;
    for (int64_t row = begin; row < end; row++) {
        int64_t j = row % g->n[1], k = row / g->n[1];
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t c = row * g->n[0] + i, at = i + l->pad[0] + (j + l->pad[1]) * l->stride[1] +
                                                (k + l->pad[2]) * l->stride[2];
            a->kappa[c] = NAN;
            if (l->near[at] != UN_NEAR || un_lattice_grid_cell(l, at) < 0) continue;
            UN_BY_DIM(l->dim, a->kappa[c] = (float)(sigma * curvature_in(l, at, dim)));
        }
    }
}

/* Cells around a node, of the domain: the sum of what is known of them, and how many. */
static double around(const args *a, const int32_t n[3], double *count)
{
    const un_grid *g = a->l->in->grid;
    double sum = 0;
    *count = 0;
    for (int m = 0; m < 1 << g->dim; m++) {
        int32_t c[3] = {n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2)};
        double v = (double)a->kappa[un_grid_cell(g, c[0], c[1], c[2])];
        if (isnan(v)) continue;
        sum += v;
        *count += 1;
    }
    return sum;
}

/* The indices of a node, and whether it lies inside the grid. */
static bool is_inside(const un_grid *g, int64_t node, int32_t n[3])
{
    un_warp_node_indices(g, node, n);
    bool inside = true;
    for (int a = 0; a < g->dim; a++) inside &= n[a] >= 1 && n[a] < g->n[a];
    return inside;
}

static void press_nodes(void *arg, int64_t begin, int64_t end)
{
    const args *a = arg;
    for (int64_t node = begin; node < end; node++) {
        int32_t n[3];
        double count = 0, sum = 0;
        if (is_inside(a->l->in->grid, node, n)) sum = around(a, n, &count);
        a->to[node] = count > 0 ? sum / count : NAN;
    }
}

static void spread_nodes(void *arg, int64_t begin, int64_t end)
{
    const args *a = arg;
    const un_grid *g = a->l->in->grid;
    for (int64_t node = begin; node < end; node++) {
        int32_t n[3];
        double sum = 0, count = 0;
        a->to[node] = a->from[node];
        if (!isnan(a->from[node]) || !is_inside(g, node, n)) continue;
        for (int d = 0; d < 2 * g->dim; d++) {
            double v = a->from[node + (d & 1 ? 1 : -1) * g->node_stride[d / 2]];
            if (isnan(v)) continue;
            sum += v;
            count += 1;
        }
        if (count > 0) a->to[node] = sum / count;
    }
}

static void sum_nodes(void *arg, int64_t begin, int64_t end, double *sums)
{
    const args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        if (isnan(a->from[n])) continue;
        sums[0] += a->from[n];
        sums[1] += 1;
    }
}

static void fill_places(void *arg, int64_t begin, int64_t end)
{
    const args *a = arg;
    for (int64_t p = begin; p < end; p++) {
        double v = a->from[un_warp_node_of(a->in->walls, p)];
        a->in->pressure[p] = isnan(v) ? a->mean : v;
    }
}

un_status un_tension_on_warp(un_context *ctx, un_arena *arena, const un_tension_warp *in)
{
    const un_warp *warp = in->walls->warp;
    const un_grid *g = &warp->grid;
    un_tension_grid grid = {.phi = in->phi, .grid = g, .walls = in->walls, .def = in->def};
    un_tension_lattice l = {.ctx = ctx, .in = &grid, .warp = warp};
    size_t nodes = (size_t)g->node_count;
    args a = {.l = &l, .in = in};
    int64_t places = in->walls->parts.place_count;
    a.kappa = un_arena_alloc(arena, (size_t)g->cell_count, sizeof *a.kappa);
    a.from = un_arena_alloc(arena, nodes, sizeof *a.from);
    a.to = un_arena_alloc(arena, nodes, sizeof *a.to);
    if (!a.kappa || !a.from || !a.to) return UN_ERROR_MEMORY;
    UN_TRY(un_lattice_prepare(&l, arena));
    un_parallel_for(ctx, (int64_t)g->n[1] * g->n[2], 32, press_cells, &a);
    for (int round = 0; round <= SPREADS; round++) {
        un_parallel_for(ctx, g->node_count, 4096, round == 0 ? press_nodes : spread_nodes, &a);
        double *from = a.from;
        a.from = a.to;
        a.to = from;
    }
    double sums[2] = {0};
    un_parallel_sums(ctx, g->node_count, 2, sum_nodes, &a, sums);
    a.mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
    un_parallel_for(ctx, places, un_block_grain(places), fill_places, &a);
    return UN_OK;
}

/* ---- how far apart cells are along the surface ---- */

typedef struct spacing_args {
    const un_warp *warp;
    const float *phi;
} spacing_args;

/* The least stretch of the map along a surface with this slope in reference space, squared. */
static double least_stretch(const un_warp_point *p, un_vec3 slope, int dim)
{
    un_vec3 n = un_normalize(slope);
    un_vec3 s = un_normalize(un_cross(n, fabs(n.z) < 0.9 ? un_v3(0, 0, 1) : un_v3(1, 0, 0)));
    un_vec3 t = un_cross(n, s), u = {0, 0, 0}, v = {0, 0, 0};
    const double along[2][3] = {{s.x, s.y, s.z}, {t.x, t.y, t.z}};
    for (int a = 0; a < dim; a++) {
        u = un_mad(u, p->column[a], along[0][a]);
        v = un_mad(v, p->column[a], along[1][a]);
    }
    if (dim == 2) return un_dot(u, u);
    double uu = un_dot(u, u), vv = un_dot(v, v), uv = un_dot(u, v);
    return 0.5 * (uu + vv - sqrt((uu - vv) * (uu - vv) + 4 * uv * uv));
}

static double stretch_rows(void *arg, int64_t begin, int64_t end)
{
    const spacing_args *a = arg;
    const un_grid *g = &a->warp->grid;
    double most = 0; /* 1 over the least */
    for (int64_t row = begin; row < end; row++) {
        int64_t j = row % g->n[1], k = row / g->n[1];
        if (j == 0 || j == g->n[1] - 1 || (g->dim == 3 && (k == 0 || k == g->n[2] - 1))) continue;
        for (int64_t c = row * g->n[0] + 1; c < (row + 1) * g->n[0] - 1; c++) {
            un_warp_point p = {.column[2] = {0, 0, 1}};
            double slope[3] = {0};
            bool crossed = false;
            for (int d = 0; d < g->dim; d++) {
                int64_t s = g->stride[d];
                slope[d] = a->phi[c + s] - a->phi[c - s];
                crossed |= (a->phi[c + s] < 0) != (a->phi[c] < 0);
                crossed |= (a->phi[c - s] < 0) != (a->phi[c] < 0);
                p.column[d] = un_scale(un_sub(a->warp->centre[c + s], a->warp->centre[c - s]), 0.5);
            }
            un_vec3 n = {slope[0], slope[1], slope[2]};
            if (!crossed || !(un_dot(n, n) > 0)) continue;
            most = fmax(most, 1 / fmax(least_stretch(&p, n, g->dim), DBL_MIN));
        }
    }
    return most;
}

double un_tension_warp_spacing(un_context *ctx, const un_warp *warp, const float *phi)
{
    spacing_args a = {warp, phi};
    double most =
        un_parallel_max(ctx, (int64_t)warp->grid.n[1] * warp->grid.n[2], stretch_rows, &a);
    return most > 0 ? 1 / sqrt(most) : INFINITY;
}
