/* Projection on a grid that warps [Ibayashi18 section 6].
 *
 *     sum_cells int grad N_i . M grad N_j  x_j  =  sum_cells int grad N_i . u + N_i s,
 *     u <- u - mean of M grad x over the cell,           x = p dt / rho,
 *
 * with trilinear hat functions N_i at the nodes in the liquid, velocities u constant in each cell
 * (eq. 13, 16), and the divergence s wanted. Integrals run over the open part of a cell. Where a
 * solid moves with the velocity v, int grad N_i . (u - v) stands for int grad N_i . u: v has no
 * divergence, so the difference is what flows through the solid's surface, however little of a cell
 * is open. Thin walls have a pressure for each side (mesh/warp_parts.c).
 *
 * The surface may have a pressure P, given at nodes: with x = x' + P dt / rho, the gradient of P
 * acts on all cells like any force, and x' is zero at the surface.
 *
 * Departures from the paper:
 *  - M is found at every quadrature point, not once in a cell: a flat surface then holds still at
 *    any tilt, to round-off; with one M it moves by 0.4 g dt;
 *  - the first gradient of eq. 22 is that of max(0, phi), the second that of phi (the text swaps
 *    them), and b_y in eq. 36 is a_y;
 *  - solids cut cells exactly (warp_element.c) instead of weighing them by their open share, which
 *    turns flow along a wall by up to 23 %;
 *  - the mean gradient changes a cell's velocity, not the one at its centre;
 *  - cells with few corners in the liquid get their velocity from their neighbours: their own is
 *    hardly determined (un_warp_projection.known). */
#include "pressure/coupling.h"
#include "pressure/system.h"
#include "pressure/warp_system.h"

/* A node in the liquid is at least this deep, in cells. */
#define DEPTH_MIN 1e-6
/* Nodes on open sides are this far outside the liquid, in cells. */
#define SIDE_OUTSIDE 1e-3
/* Cells less open than this are next to a wall. */
#define WALL_OPEN 0.98
#define WIDTH_MAX 14

typedef un_warp_args args;

/* ---- nodes ---- */

static double depth_at(const args *s, const int32_t n[3], int64_t place)
{
    const un_grid *g = &s->warp->grid;
    const bool *open = s->in->walls->scene->def.domain.open;
    double psi = -s->in->phi[place];
    if (psi > 0) psi = fmax(psi, DEPTH_MIN * g->h);
    for (int a = 0; a < g->dim; a++)
        if ((n[a] == 1 && open[2 * a]) || (n[a] == g->n[a] - 1 && open[2 * a + 1]))
            psi = fmin(psi, -SIDE_OUTSIDE * g->h);
    return psi;
}

/* The body that moves and cuts a cell around node n, -1: none. */
static int16_t mover_at(const args *s, const int32_t n[3], int64_t node)
{
    const un_grid *g = &s->warp->grid;
    const un_walls *w = s->in->walls;
    int16_t body = w->body[node];
    if (body < 0 || !w->bodies->body[body].moves) return -1;
    for (int m = 0; m < 1 << g->dim; m++) {
        int64_t c = un_grid_cell(g, n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2));
        if (s->warp->jacobian[c] > 0 && w->volume[c] < 1) return body;
    }
    return -1;
}

static void find_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_grid *g = &s->warp->grid;
    int32_t rows = g->n[1] + 1;
    for (int64_t row = begin; row < end; row++) {
        int32_t n[3] = {0, (int32_t)(row % rows), (int32_t)(row / rows)};
        for (n[0] = 0; n[0] <= g->n[0]; n[0]++) {
            int64_t node = un_grid_node(g, n[0], n[1], n[2]);
            bool inside = true, open = false;
            for (int a = 0; a < g->dim; a++) inside = inside && n[a] >= 1 && n[a] < g->n[a];
            s->pr->index[node] = -1;
            if (s->mover) s->mover[node] = inside ? mover_at(s, n, node) : -1;
            s->depth[node] = inside ? depth_at(s, n, node) : 0;
            if (!(s->depth[node] > 0)) continue;
            for (int m = 0; m < 1 << g->dim && !open; m++) {
                int64_t c = un_grid_cell(g, n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2));
                open =
                    s->warp->jacobian[c] > 0 && s->in->walls->volume[c] > (float)UN_WARP_OPEN_MIN;
            }
            if (open) s->pr->index[node] = 0;
        }
    }
}

/* Copies have open cells around them. */
static void find_copies(const args *s)
{
    const un_walls *w = s->in->walls;
    for (int64_t p = w->grid->node_count; p < w->parts.place_count; p++) {
        int32_t n[3];
        un_warp_node_indices(w->grid, un_warp_node_of(w, p), n);
        s->depth[p] = depth_at(s, n, p);
        s->pr->index[p] = s->depth[p] > 0 ? 0 : -1;
    }
}

/* ---- elements ---- */

/* The place of the coupling between corners m <= l in the stencil of the first. */
UN_KERNEL int stencil_place(int m, int l, int dim)
{
    int at = 0, unit = 1;
    for (int a = 0; a < dim; a++, unit *= 3) at += ((l >> a & 1) - (m >> a & 1)) * unit;
    return at;
}

/* The place of the coupling between corners m <= l in the matrix of a cell. */
UN_KERNEL int matrix_place(int m, int l)
{
    return m * (15 - m) / 2 + l;
}

/* What the solid next to a corner moves at x, unless the liquid moves it; closed sides stand
 * still. */
UN_KERNEL un_vec3 mover_velocity(const args *s, const int32_t c[3], int m, un_vec3 x, int dim)
{
    const un_grid *g = &s->warp->grid;
    int32_t n[3] = {c[0] + (m & 1), c[1] + (m >> 1 & 1), c[2] + (m >> 2)};
    int16_t body = s->mover ? s->mover[un_grid_node(g, n[0], n[1], n[2])] : -1;
    if (body < 0 || s->in->walls->bodies->body[body].free) return un_v3(0, 0, 0);
    un_vec3 v = un_body_velocity(&s->in->walls->bodies->body[body], x);
    if (n[0] == 1 || n[0] == g->n[0] - 1) v.x = 0;
    if (n[1] == 1 || n[1] == g->n[1] - 1) v.y = 0;
    if (dim == 2 || n[2] == 1 || n[2] == g->n[2] - 1) v.z = 0;
    return v;
}

/* The surface's pressure at the corners, as part of x; false if it is the same at all. */
UN_KERNEL bool load_surface(const args *s, const un_element *e, double out[8], int dim)
{
    bool varies = false;
    if (!s->in->surface) return false;
    for (int m = 0; m < 1 << dim; m++) {
        out[m] = s->in->surface[e->place[m]] * s->in->kick / s->in->density;
        varies |= out[m] != out[0];
    }
    return varies;
}

/* The gradient of what is given at corners. */
UN_KERNEL un_vec3 slope_of(const un_hats *h, const double v[8], int dim)
{
    un_vec3 slope = {0, 0, 0};
    for (int m = 0; m < 1 << dim; m++) slope = un_mad(slope, un_hats_grad(h, m), v[m]);
    return slope;
}

/* Integrals over a cell, by corner. */
typedef struct cell_sums {
    double matrix[8][8]; /* couplings; of corners m <= l count */
    double flow[8];      /* of the hat function's gradient and the velocity */
    double hat[8];
} cell_sums;

UN_KERNEL void add_point(cell_sums *sum, const un_element *e, const un_hats *h, double w,
                         const un_vec3 slip[8], bool cut, int dim)
{
    double image[3][8];
    memcpy(image, h->grad, sizeof image);
    if (cut) {
        un_ghost_matrix ghost = un_element_ghost(e, h, dim);
        for (int m = 0; m < 1 << dim; m++) {
            un_vec3 v = un_ghost_apply(&ghost, un_hats_grad(h, m));
            image[0][m] = v.x;
            image[1][m] = v.y;
            image[2][m] = v.z;
        }
    }
    for (int m = 0; m < 1 << dim; m++) {
        un_vec3 g = un_scale(un_hats_grad(h, m), w);
        sum->flow[m] += un_dot(g, slip[m]);
        sum->hat[m] += w * h->value[m];
        for (int l = 0; l < 1 << dim; l++)
            sum->matrix[m][l] += g.x * image[0][l] + g.y * image[1][l] + g.z * image[2][l];
    }
}

UN_KERNEL void add_cell(const args *s, const int32_t c[3], int dim)
{
    const un_walls *walls = s->in->walls;
    int64_t cell = un_grid_cell(&s->warp->grid, c[0], c[1], c[2]);
    int32_t parted = walls->parts.cell_count > 0 ? walls->parts.at[cell] : -1;
    un_element e;
    un_quadrature q;
    int32_t row[8];
    if (!(walls->volume[cell] > UN_WARP_OPEN_MIN)) return;
    un_warp_load_element(s, &e, c, dim);
    if (!un_warp_is_wet(s, &e, cell, dim)) return;
    for (int m = 0; m < 1 << dim; m++) row[m] = s->pr->index[e.place[m]];
    un_vec3 u = s->in->u[cell];
    un_hats h;
    cell_sums sum = {{{0}}, {0}, {0}};
    double source = s->in->source ? s->in->source[cell] : 0;
    un_warp_quadrature(s, &q, &e, cell, dim);
    bool cut = e.wet < 1 << dim && !s->in->first_order;
    double pressed[8] = {0};
    bool presses = load_surface(s, &e, pressed, dim);
    for (int i = 0; i < q.count; i++) {
        double w = un_element_hats(&e, q.at[i], &h, dim) * q.weight[i];
        un_vec3 slip[8], x = {0, 0, 0};
        un_vec3 flow = presses ? un_sub(u, slope_of(&h, pressed, dim)) : u;
        for (int m = 0; m < 1 << dim; m++) slip[m] = flow;
        if (s->mover) {
            for (int m = 0; m < 1 << dim; m++) x = un_mad(x, e.x[m], h.value[m]);
            for (int m = 0; m < 1 << dim; m++)
                slip[m] = un_sub(flow, mover_velocity(s, c, m, x, dim));
        }
        add_point(&sum, &e, &h, w, slip, cut, dim);
    }
    for (int m = 0; m < 1 << dim; m++) {
        if (row[m] < 0) continue;
        s->pr->rhs[row[m]] += sum.flow[m] + sum.hat[m] * source;
        s->hats[row[m]] += sum.hat[m];
        double *entry = s->stencil + (int64_t)row[m] * s->width;
        for (int l = m; l < 1 << dim; l++) {
            if (row[l] < 0) continue;
            double *to = parted < 0 ? &entry[stencil_place(m, l, dim)]
                                    : &s->matrix[parted][matrix_place(m, l)];
            *to += sum.matrix[m][l];
        }
    }
}

/* Is the cell full of liquid that nothing cuts and nothing pushes? node: its lowest one. */
UN_KERNEL bool is_plain(const args *s, int64_t cell, int64_t node)
{
    const un_grid *g = &s->warp->grid;
    const un_walls *w = s->in->walls;
    if (w->volume[cell] < 1 || (w->parts.cell_count > 0 && w->parts.at[cell] >= 0)) return false;
    for (int m = 0; m < 8; m++) {
        int64_t n =
            node + (m & 1) + (m >> 1 & 1) * g->node_stride[1] + (m >> 2) * g->node_stride[2];
        if (s->pr->index[n] < 0 || (s->mover && s->mover[n] >= 0)) return false;
        if (s->in->surface && s->in->surface[n] != s->in->surface[node]) return false;
    }
    return true;
}

/* Plain cells of a row, in 3D. */
typedef struct batch {
    int count;
    int64_t cell[8], node[8]; /* the last one again where there are fewer */
} batch;

UN_KERNEL bool batch_take(batch *b, int64_t cell, int64_t node)
{
    for (int n = b->count; n < 8; n++) {
        b->cell[n] = cell;
        b->node[n] = node;
    }
    return ++b->count == 8;
}

static void add_batch(const args *s, batch *b)
{
    const un_grid *g = &s->warp->grid;
    int64_t sy = g->node_stride[1], sz = g->node_stride[2];
    un_element_eight e;
    if (b->count == 0) return;
    un_element_eight_sums(&e, s->warp->node, b->node, sy, sz);
    for (int n = 0; n < b->count; n++) {
        un_vec3 u = s->in->u[b->cell[n]];
        double source = s->in->source ? s->in->source[b->cell[n]] : 0;
        for (int m = 0, k = 0; m < 8; m++) {
            int32_t row = s->pr->index[b->node[n] + (m & 1) + (m >> 1 & 1) * sy + (m >> 2) * sz];
            double *entry = s->stencil + (int64_t)row * s->width;
            s->pr->rhs[row] += e.flow[m][0][n] * u.x + e.flow[m][1][n] * u.y +
                               e.flow[m][2][n] * u.z + e.hat[m][n] * source;
            s->hats[row] += e.hat[m][n];
            for (int l = m; l < 8; l++, k++) entry[stencil_place(m, l, 3)] += e.matrix[k][n];
        }
    }
    b->count = 0;
}

/* Rows of one colour share no node. */
UN_KERNEL void add_cells_in(const args *s, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = &s->warp->grid;
    int32_t rows = (g->n[1] - 1) / 2;
    batch plain = {.count = 0};
    for (int64_t row = begin; row < end; row++) {
        int32_t c[3] = {0, 1 + 2 * (int32_t)(row % rows) + (s->colour & 1), 0};
        if (dim == 3) c[2] = 1 + 2 * (int32_t)(row / rows) + (s->colour >> 1);
        if (c[1] > g->n[1] - 2 || (dim == 3 && c[2] > g->n[2] - 2)) continue;
        for (c[0] = 1; c[0] < g->n[0] - 1; c[0]++) {
            int64_t cell = un_grid_cell(g, c[0], c[1], c[2]);
            int64_t node = un_grid_node(g, c[0], c[1], c[2]);
            if (dim == 2 || !is_plain(s, cell, node))
                add_cell(s, c, dim);
            else if (batch_take(&plain, cell, node))
                add_batch(s, &plain);
        }
    }
    add_batch(s, &plain);
}

static void add_cells(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    UN_BY_DIM(s->warp->grid.dim, add_cells_in(s, begin, end, dim));
}

/* ---- rows ---- */

/* The coupling of a row's node to its o-th neighbour, 0 to 26 (2D: 8), ascending; *other: the
 * neighbour's row, -1: none. */
UN_KERNEL double coupling_at(const args *s, int32_t row, int o, int32_t *other, int dim)
{
    const un_grid *g = &s->warp->grid;
    int middle = dim == 2 ? 4 : 13;
    int64_t n = s->pr->place[row] + (o % 3 - 1) + (o / 3 % 3 - 1) * g->node_stride[1];
    if (dim == 3) n += (o / 9 - 1) * g->node_stride[2];
    *other = s->pr->index[n];
    if (*other < 0) return 0;
    return o >= middle ? s->stencil[(int64_t)row * s->width + o - middle]
                       : s->stencil[(int64_t)*other * s->width + middle - o];
}

#define ENTRIES_MAX (27 + 64)
typedef struct row_entries {
    int count;
    int32_t col[ENTRIES_MAX];
    double val[ENTRIES_MAX];
} row_entries;

/* Keeps columns ascending. */
static void add_entry(row_entries *r, int32_t col, double val)
{
    int at = r->count;
    while (at > 0 && r->col[at - 1] > col) at--;
    if (at > 0 && r->col[at - 1] == col) {
        r->val[at - 1] += val;
        return;
    }
    for (int i = r->count++; i > at; i--) {
        r->col[i] = r->col[i - 1];
        r->val[i] = r->val[i - 1];
    }
    r->col[at] = col;
    r->val[at] = val;
}

/* Adds couplings of cells that have copies as corners. */
UN_KERNEL void add_parted(const args *s, int64_t place, row_entries *r, int dim)
{
    const un_walls *w = s->in->walls;
    int32_t n[3];
    un_warp_node_indices(w->grid, un_warp_node_of(w, place), n);
    for (int o = 0; o < 1 << dim; o++) {
        int own = ~o & ((1 << dim) - 1);
        int32_t c[3] = {n[0] - (own & 1), n[1] - (own >> 1 & 1), n[2] - (own >> 2)};
        int32_t at = w->parts.at[un_grid_cell(w->grid, c[0], c[1], c[2])];
        if (at < 0 || w->parts.corner[at][own] != place) continue;
        for (int l = 0; l < 1 << dim; l++) {
            int32_t other = s->pr->index[w->parts.corner[at][l]];
            double v = s->matrix[at][own <= l ? matrix_place(own, l) : matrix_place(l, own)];
            if (other >= 0 && v != 0) add_entry(r, other, v);
        }
    }
}

UN_KERNEL void make_rows(const args *s, int64_t begin, int64_t end, bool fill, int dim)
{
    un_csr *a = &s->pr->matrix;
    int middle = dim == 2 ? 4 : 13;
    int64_t nodes = s->warp->grid.node_count;
    for (int32_t r = (int32_t)begin; r < end; r++) {
        int32_t at = fill ? a->row[r] : 0, other;
        row_entries e; /* not cleared: large */
        e.count = 0;
        if (s->pr->place[r] >= nodes) add_entry(&e, r, 0);
        for (int o = 0; o <= 2 * middle && s->pr->place[r] < nodes; o++) {
            double v = coupling_at(s, r, o, &other, dim);
            if (other >= 0 && (v != 0 || o == middle)) add_entry(&e, other, v);
        }
        if (s->matrix) add_parted(s, s->pr->place[r], &e, dim);
        for (int i = 0; i < e.count && fill; i++) {
            a->col[at + i] = e.col[i];
            a->val[at + i] = e.val[i];
        }
        if (!fill) a->row[r + 1] = e.count;
    }
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    UN_BY_DIM(s->warp->grid.dim, make_rows(s, begin, end, false, dim));
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    UN_BY_DIM(s->warp->grid.dim, make_rows(s, begin, end, true, dim));
}

static double surface_at(const args *s, int64_t place)
{
    return s->in->surface ? s->in->surface[place] : 0;
}

static void begin_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    double scale = s->in->kick / s->in->density;
    for (int64_t r = begin; r < end; r++) {
        s->pr->rhs[r] = 0;
        s->hats[r] = 0;
        s->pr->x[r] = (s->in->p[s->pr->place[r]] - surface_at(s, s->pr->place[r])) * scale;
        memset(s->stencil + r * s->width, 0, (size_t)s->width * sizeof *s->stencil);
    }
}

/* What emitters brought: shared out to the corners of its cell. */
static void add_inflow(args *s)
{
    const un_inflow *inflow = s->in->inflow;
    const un_grid *g = &s->warp->grid;
    for (int32_t i = 0; inflow && i < inflow->count; i++) {
        int64_t c = inflow->cell[i];
        int64_t at[3] = {c % g->n[0], c / g->n[0] % g->n[1], c / g->stride[2]};
        int32_t row[8], count = 0;
        int64_t place[8];
        un_warp_places(s->in->walls, (int32_t)at[0], (int32_t)at[1], (int32_t)at[2], place);
        for (int m = 0; m < 1 << g->dim; m++)
            if (s->pr->index[place[m]] >= 0) row[count++] = s->pr->index[place[m]];
        for (int32_t m = 0; m < count; m++)
            s->pr->rhs[row[m]] += inflow->volume[i] / (s->in->dt * count);
    }
}

static un_status assemble(args *s, un_arena *arena)
{
    un_pressure *pr = s->pr;
    const un_grid *g = &s->warp->grid;
    un_context *ctx = pr->ctx;
    const un_warp_parts *parts = &s->in->walls->parts;
    int64_t places = parts->place_count;
    UN_TRY(un_pressure_need_places(pr, places));
    s->depth = un_arena_alloc(arena, (size_t)places, sizeof *s->depth);
    if (!s->depth) return UN_ERROR_MEMORY;
    if (s->in->walls->bodies->moving) {
        s->mover = un_arena_alloc(arena, (size_t)g->node_count, sizeof *s->mover);
        if (!s->mover) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, g->node_count / (g->n[0] + 1), 32, find_rows, s);
    find_copies(s);
    UN_TRY(un_pressure_number(pr, places));
    int32_t n = pr->matrix.n;
    UN_TRY(un_pressure_need_rows(pr, n));
    s->width = g->dim == 2 ? 5 : WIDTH_MAX;
    s->stencil = un_arena_alloc(arena, (size_t)n * (size_t)s->width + 1, sizeof *s->stencil);
    s->hats = un_arena_alloc(arena, (size_t)n + 1, sizeof *s->hats);
    if (!s->stencil || !s->hats) return UN_ERROR_MEMORY;
    if (parts->cell_count > 0) {
        s->matrix = un_arena_alloc(arena, (size_t)parts->cell_count, sizeof *s->matrix);
        if (!s->matrix) return UN_ERROR_MEMORY;
        memset(s->matrix, 0, (size_t)parts->cell_count * sizeof *s->matrix);
    }
    un_parallel_for(ctx, n, un_block_grain(n), begin_rows, s);
    int64_t rows = (g->n[1] - 1) / 2 * (g->dim == 2 ? 1 : (int64_t)(g->n[2] - 1) / 2);
    for (s->colour = 0; s->colour < 1 << (g->dim - 1); s->colour++)
        un_parallel_for(ctx, rows, 4, add_cells, s);
    add_inflow(s);
    un_parallel_for(ctx, n, un_block_grain(n), count_rows, s);
    UN_TRY(un_rows_start(ctx, pr->matrix.row, n, "liquid nodes"));
    UN_TRY(un_pressure_need_entries(pr, (size_t)pr->matrix.row[n]));
    un_parallel_for(ctx, n, un_block_grain(n), fill_rows, s);
    return UN_OK;
}

/* ---- after the solve ---- */

/* Cells with at least half of their corners in the liquid (2D: 2 of 4) have a velocity, unless a
 * solid leaves little of them open: water crept up the walls of a glass through such cells. */
UN_KERNEL void update_cell(const args *s, const int32_t c[3], int64_t cell, int dim)
{
    const un_walls *walls = s->in->walls;
    un_element e;
    un_quadrature q;
    un_vec3 sum = {0, 0, 0};
    un_hats h;
    double volume = 0, x[8];
    un_warp_load_element(s, &e, c, dim);
    if (2 * e.wet < 1 << dim || !un_warp_is_wet(s, &e, cell, dim)) return;
    un_warp_quadrature(s, &q, &e, cell, dim);
    for (int m = 0; m < 1 << dim; m++) {
        int32_t r = s->pr->index[e.place[m]];
        x[m] = r >= 0 ? s->pr->x[r] : 0;
    }
    bool cut = e.wet < 1 << dim && !s->in->first_order;
    double pressed[8] = {0};
    bool presses = load_surface(s, &e, pressed, dim);
    for (int i = 0; i < q.count; i++) {
        double w = un_element_hats(&e, q.at[i], &h, dim) * q.weight[i];
        un_vec3 slope = slope_of(&h, x, dim);
        if (cut) {
            un_ghost_matrix ghost = un_element_ghost(&e, &h, dim);
            slope = un_ghost_apply(&ghost, slope);
        }
        if (presses) slope = un_add(slope, slope_of(&h, pressed, dim));
        sum = un_mad(sum, slope, w);
        volume += w;
    }
    if (!(volume > 0)) return;
    s->in->u[cell] = un_mad(s->in->u[cell], sum, -1 / volume);
    s->in->known[cell] = !(walls->volume[cell] < UN_SLIVER);
}

static void update_batch(const args *s, batch *b)
{
    const un_grid *g = &s->warp->grid;
    int64_t sy = g->node_stride[1], sz = g->node_stride[2];
    double x[8][8];
    un_eight slope;
    if (b->count == 0) return;
    for (int m = 0; m < 8; m++)
        for (int n = 0; n < 8; n++)
            x[m][n] =
                s->pr->x[s->pr->index[b->node[n] + (m & 1) + (m >> 1 & 1) * sy + (m >> 2) * sz]];
    un_element_eight_slope(&slope, x, s->warp->node, b->node, sy, sz);
    for (int n = 0; n < b->count; n++) {
        s->in->u[b->cell[n]] = un_sub(s->in->u[b->cell[n]], un_eight_of(&slope, n));
        s->in->known[b->cell[n]] = 1;
    }
    b->count = 0;
}

UN_KERNEL void update_in(const args *s, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = &s->warp->grid;
    const un_walls *walls = s->in->walls;
    batch plain = {.count = 0};
    for (int64_t row = begin; row < end; row++) {
        int32_t c[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (c[0] = 0; c[0] < g->n[0]; c[0]++) {
            int64_t cell = un_grid_cell(g, c[0], c[1], c[2]);
            int64_t node = un_grid_node(g, c[0], c[1], c[2]);
            s->in->known[cell] = 0;
            if (!(s->warp->jacobian[cell] > 0) || !(walls->volume[cell] > UN_WARP_OPEN_MIN))
                continue;
            if (dim == 2 || !is_plain(s, cell, node))
                update_cell(s, c, cell, dim);
            else if (batch_take(&plain, cell, node))
                update_batch(s, &plain);
        }
    }
    update_batch(s, &plain);
}

static void update(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    UN_BY_DIM(s->warp->grid.dim, update_in(s, begin, end, dim));
}

static bool limit_node(const void *arg, int32_t row, double *least, double *slack)
{
    const args *s = arg;
    const un_grid *g = &s->warp->grid;
    int32_t at[3];
    un_warp_node_indices(g, un_warp_node_of(s->in->walls, s->pr->place[row]), at);
    bool wall = false;
    double speed = 0;
    for (int a = 0; a < g->dim; a++) wall = wall || at[a] == 1 || at[a] == g->n[a] - 1;
    for (int m = 0; m < 1 << g->dim; m++) {
        int64_t c = un_grid_cell(g, at[0] - (m & 1), at[1] - (m >> 1 & 1), at[2] - (m >> 2));
        if (!(s->warp->jacobian[c] > 0)) continue;
        wall = wall || s->in->walls->volume[c] < (float)WALL_OPEN;
        speed = fmax(speed, un_length(s->in->u[c]));
    }
    *least = -surface_at(s, s->pr->place[row]) * s->in->kick / s->in->density;
    *slack = un_release_slack(s->in->let_go, speed, g->h);
    return wall;
}

static void store_pressure(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    double to_pascal = s->in->density / s->in->kick;
    for (int64_t n = begin; n < end; n++) {
        int32_t r = s->pr->index[n];
        s->in->p[n] = r >= 0 ? s->pr->x[r] * to_pascal + surface_at(s, n) : 0;
        if (r >= 0 && un_pressure_is_free(s->pr, r)) s->in->p[n] = -0.0;
    }
}

static double residual_rows(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    const un_csr *a = &s->pr->matrix;
    double most = 0;
    for (int64_t r = begin; r < end; r++) {
        double left = -s->pr->rhs[r];
        if (un_pressure_is_free(s->pr, (int32_t)r)) continue;
        for (int32_t k = a->row[r]; k < a->row[r + 1]; k++) left += a->val[k] * s->pr->x[a->col[k]];
        if (un_coupling_any(s->pr)) left += s->pr->coupling.together[r];
        if (s->hats[r] > 0) most = fmax(most, fabs(left) / s->hats[r]);
    }
    return most;
}

un_status un_warp_pressure_project(un_pressure *pr, un_arena *arena, const un_warp_projection *in,
                                   un_projection_report *report)
{
    const un_grid *g = &in->warp->grid;
    un_context *ctx = pr->ctx;
    args s = {.pr = pr, .in = in, .warp = in->warp};
    *report = (un_projection_report){0};
    UN_TRY(assemble(&s, arena));
    pr->coupling.columns.count = 0;
    if (in->bodies) UN_TRY(un_warp_couple(&s, arena));
    un_sites sites = {.kind = UN_SITES_GRID,
                      .size = {g->n[0] + 1, g->n[1] + 1, g->dim == 2 ? 1 : g->n[2] + 1},
                      .site = pr->place};
    un_release release = {&s, limit_node, in->surface ? INFINITY : 0, in->p, in->let_go > 0};
    /* copies are at the place of their node: no lattice */
    if (in->walls->parts.cell_count > 0) sites.kind = UN_SITES_NONE;
    UN_TRY(un_pressure_solve(pr, &sites, in->tolerance, in->iteration_limit, &release,
                             &report->solve));
    report->cell_count = pr->matrix.n;
    if (un_coupling_any(pr)) {
        UN_TRY(un_coupling_need_together(pr));
        un_coupling_find_together(pr);
        if (report->solve.finite) un_coupling_push(pr, in->bodies);
    }
    if (in->impulse) un_warp_find_impulse(&s);
    if (pr->matrix.n > 0)
        report->max_divergence = un_parallel_max(ctx, pr->matrix.n, residual_rows, &s);
    un_parallel_for(ctx, (int64_t)g->n[1] * g->n[2], 8, update, &s);
    int64_t places = in->walls->parts.place_count;
    un_parallel_for(ctx, places, un_block_grain(places), store_pressure, &s);
    return UN_OK;
}
