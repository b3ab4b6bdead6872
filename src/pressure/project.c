/* Projection on the staggered grid.
 *
 *     u <- u - (dt / rho) grad p,   div u = sigma in the liquid,   p = 0 at the free surface,
 *     u.n = u_solid.n at walls
 *
 * With q = p dt / rho, cell c, faces f with open fraction A_f [Batty, Bertails & Bridson 2007]:
 *
 *     sum_f A_f (q_c - q_n) = -h sum_f +-[A_f u_f + (1 - A_f) u_solid] + h^2 V_c sigma
 *
 * and q_c / theta instead of q_c - q_n towards air, theta = phi_c / (phi_c - phi_n) the distance
 * to the surface in cells [Gibou et al. 2002; Enright et al. 2003]: second order, and exact for
 * water at rest under a flat surface at any height. The matrix is symmetric positive
 * semi-definite. sigma is zero but for corrections of the volume and for sources.
 *
 * The surface may have a pressure P, given at cells and linear between them. With q = q' + P dt/rho
 * the crossing has q' = 0 as before, and P pushes the faces of liquid cells like any force:
 *
 *     (q_c - Q_crossing) / theta = q'_c / theta + Q_c - Q_n,   Q = P dt / rho
 *
 * which leaves the matrix as it is and no 1 / theta on the right-hand side.
 *
 * Where density differs from place to place, rho is that of the whole scene, and what faces take of
 * the gradient is rho over the density there (lightness).
 *
 * Walls push and do not pull (release.c): a cell that has let go of a wall has p = 0, and the
 * closed face between them moves as the face opposite does, but not into the wall. */
#include "pressure/coupling.h"
#include "pressure/crowding.h"
#include "pressure/system.h"

/* Least distance to the surface, in cells. The row's diagonal grows as 1 / theta, which the
 * preconditioner takes in its stride; this only keeps it finite. */
#define THETA_MIN 1e-6
/* Openings below this share are closed: they carry nothing, but spoil the matrix. */
#define AREA_MIN 1e-3
/* A cell with a face closed by more than this share is next to a wall. */
#define WALL_SHARE 0.02
/* Volume fractions of evenly spread particles differ from one by up to this much. */
#define CROWDING_NOISE 0.05
/* The excess that counts as a heap, see crowding.h. */
#define CROWDING_HEAP 0.25
/* Next to cells that a solid cuts the fraction is off by tens of per cent: there only liquid that
 * stands twice in one place counts. */
#define CROWDING_CUT 1.0

typedef struct assemble_args {
    un_pressure *pr;
    const un_projection *in;
    bool cut; /* walls cut some cells */
    /* by step along the curve, a row of cells each: */
    int64_t *row_count;   /* unknowns, then the first one's number */
    int64_t *entry_count; /* matrix entries, then the first one's place */
} assemble_args;

static inline double open_area(const un_walls *walls, int axis, int64_t f)
{
    double a = walls->area[axis][f];
    return a < AREA_MIN ? 0 : a;
}

static inline double ghost_theta(double phi_liquid, double phi_air)
{
    return fmax(phi_liquid / (phi_liquid - phi_air), THETA_MIN);
}

/* Of the face between cell f and the one below it, from those in the liquid. */
static inline double lightness(const un_pressure *pr, const un_projection *in, int64_t f,
                               int64_t stride)
{
    const float *rho = in->densities;
    if (!rho) return 1;
    bool above = pr->index[f] >= 0, below = pr->index[f - stride] >= 0;
    if (above && below) return 2 * in->density / ((double)rho[f] + (double)rho[f - stride]);
    return in->density / (double)(above ? rho[f] : rho[f - stride]);
}

/* Interior cells only: the padding lies beyond walls or open sides. */
UN_KERNEL bool is_unknown(const un_projection *in, const un_grid *g, int64_t c, int dim)
{
    if (!(in->phi[c] < 0)) return false;
    double open = 0;
    for (int a = 0; a < dim; a++)
        open += open_area(in->walls, a, c) + open_area(in->walls, a, c + g->stride[a]);
    return open > 0;
}

UN_KERNEL void count_rows_in(const assemble_args *s, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = s->pr->grid;
    for (int64_t step = begin; step < end; step++) {
        int32_t j, k;
        s->row_count[step] = 0;
        if (!un_curve_row(&s->pr->curve, step, &j, &k)) continue;
        int64_t first = un_grid_cell(g, 0, j, k), count = 0;
        bool padding = j == 0 || j == g->n[1] - 1;
        if (dim == 3) padding = padding || k == 0 || k == g->n[2] - 1;
        for (int32_t i = 0; i < g->n[0]; i++) {
            bool unknown =
                !padding && i > 0 && i < g->n[0] - 1 && is_unknown(s->in, g, first + i, dim);
            s->pr->index[first + i] = unknown ? 0 : -1;
            count += unknown;
        }
        s->row_count[step] = count;
    }
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    const assemble_args *s = arg;
    UN_BY_DIM(s->pr->grid->dim, count_rows_in(s, begin, end, dim));
}

static void number_rows(void *arg, int64_t begin, int64_t end)
{
    assemble_args *s = arg;
    const un_grid *g = s->pr->grid;
    for (int64_t step = begin; step < end; step++) {
        int32_t j, k, number = (int32_t)s->row_count[step];
        if (!un_curve_row(&s->pr->curve, step, &j, &k)) continue;
        int64_t c = un_grid_cell(g, 0, j, k);
        for (int32_t i = 0; i < g->n[0]; i++)
            if (s->pr->index[c + i] >= 0) {
                s->pr->place[number] = (int32_t)(c + i);
                s->pr->index[c + i] = number++;
            }
    }
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    assemble_args *s = arg;
    const un_grid *g = s->pr->grid;
    const int32_t *index = s->pr->index;
    for (int64_t step = begin; step < end; step++) {
        int64_t count = 0;
        for (int64_t n = s->row_count[step]; n < s->row_count[step + 1]; n++) {
            int64_t c = s->pr->place[n];
            count++;
            for (int a = 0; a < g->dim; a++)
                count += (index[c - g->stride[a]] >= 0 && open_area(s->in->walls, a, c) > 0) +
                         (index[c + g->stride[a]] >= 0 &&
                          open_area(s->in->walls, a, c + g->stride[a]) > 0);
        }
        s->entry_count[step] = count;
    }
}

/* What flows out of cell c through a face: sign +1 at the upper face, -1 at the lower. */
static inline double face_flux(const un_projection *in, int axis, int64_t f)
{
    double a = open_area(in->walls, axis, f);
    double solid = in->walls->velocity[axis] ? in->walls->velocity[axis][f] : 0;
    return a * in->u[axis][f] + (1 - a) * solid;
}

UN_KERNEL double cell_outflow(const un_projection *in, const un_grid *g, int64_t c, int dim)
{
    double flux = 0;
    for (int a = 0; a < dim; a++) flux += face_flux(in, a, c + g->stride[a]) - face_flux(in, a, c);
    return flux;
}

/* Cells that a wall cuts are weighed less exactly, and so is the fraction next to them. */
static bool near_cut_cell(const un_walls *walls, int64_t c)
{
    const un_grid *g = walls->grid;
    for (int n = 0; n < (g->dim == 2 ? 9 : 27); n++) {
        int64_t m = c + (n % 3 - 1) + (n / 3 % 3 - 1) * g->stride[1];
        if (g->dim == 3) m += (n / 9 - 1) * g->stride[2];
        if (walls->volume[m] > 0 && walls->volume[m] < 1) return true;
    }
    return false;
}

/* Divergence wanted in cell c: the ledger's, and what evens out crowding. Particles crowd where
 * liquid collides and thin out where it is torn; inside the liquid their volume fraction should be
 * one, and the difference, beyond the noise of their positions, is a divergence to be made. Next to
 * air only too much is a sign: the air itself lowers the fraction. */
static double cell_expansion(const assemble_args *s, int64_t c)
{
    const un_pressure *pr = s->pr;
    const un_projection *in = s->in;
    const un_grid *g = pr->grid;
    double sigma = in->expansion;
    if (!in->colour || (in->depth && in->depth[c] > in->deepest)) return sigma;
    double crowding = in->colour[c] - 1;
    if (fabs(crowding) < CROWDING_NOISE) return sigma;
    if (s->cut && crowding < CROWDING_CUT && near_cut_cell(in->walls, c)) return sigma;
    for (int a = 0; a < g->dim && crowding < 0; a++) {
        int64_t low = c - g->stride[a], high = c + g->stride[a];
        if (pr->index[low] < 0 && open_area(in->walls, a, c) > 0) return sigma;
        if (pr->index[high] < 0 && open_area(in->walls, a, high) > 0) return sigma;
    }
    double heap = crowding - CROWDING_HEAP;
    crowding -= copysign(CROWDING_NOISE, crowding);
    return un_crowding_add(sigma, crowding, heap, in->dt, in->pace);
}

/* Does a row of cells have neighbours in another bar? */
static inline bool is_rim(int32_t j, int32_t k, int dim)
{
    int32_t y = j % UN_BAR, z = k % UN_BAR;
    return y == 0 || y == UN_BAR - 1 || (dim == 3 && (z == 0 || z == UN_BAR - 1));
}

/* Few entries, nearly in order. */
static void sort_row(un_csr *m, int64_t begin, int64_t end)
{
    for (int64_t e = begin + 1; e < end; e++) {
        int32_t col = m->col[e];
        double val = m->val[e];
        int64_t to = e;
        for (; to > begin && m->col[to - 1] > col; to--) {
            m->col[to] = m->col[to - 1];
            m->val[to] = m->val[to - 1];
        }
        m->col[to] = col;
        m->val[to] = val;
    }
}

UN_KERNEL void fill_rows_in(const assemble_args *s, int64_t begin, int64_t end, int dim)
{
    un_pressure *pr = s->pr;
    const un_projection *in = s->in;
    const un_grid *g = pr->grid;
    const float *phi = in->phi;
    for (int64_t step = begin; step < end; step++) {
        int64_t entry = s->entry_count[step];
        int32_t j, k;
        bool rim = un_curve_row(&pr->curve, step, &j, &k) && is_rim(j, k, dim);
        for (int64_t n = s->row_count[step]; n < s->row_count[step + 1]; n++) {
            int64_t c = pr->place[n];
            double diagonal = 0, push = 0;
            pr->matrix.row[n] = (int32_t)entry;
            /* In a bar neighbours are numbered in this order: z-, y-, x-, itself, x+, y+, z+. */
            for (int side = -dim; side <= dim; side++) {
                if (side == 0) {
                    pr->matrix.col[entry++] = (int32_t)n;
                    continue;
                }
                int axis = (side < 0 ? -side : side) - 1;
                int64_t m = c + (side < 0 ? -g->stride[axis] : g->stride[axis]);
                double area = open_area(in->walls, axis, side < 0 ? c : m);
                if (area == 0) continue;
                if (in->densities) area *= lightness(pr, in, side < 0 ? c : m, g->stride[axis]);
                if (in->surface) push += area * (in->surface[m] - in->surface[c]);
                if (pr->index[m] >= 0) {
                    diagonal += area;
                    pr->matrix.col[entry] = pr->index[m];
                    pr->matrix.val[entry++] = -area;
                } else {
                    diagonal += area / ghost_theta(phi[c], fmaxf(phi[m], 0));
                }
            }
            for (int64_t e = pr->matrix.row[n]; e < entry; e++)
                if (pr->matrix.col[e] == n) pr->matrix.val[e] = diagonal;
            if (rim) sort_row(&pr->matrix, pr->matrix.row[n], entry);
            pr->rhs[n] = -g->h * cell_outflow(in, g, c, dim) +
                         g->h * g->h * in->walls->volume[c] * cell_expansion(s, c);
            pr->x[n] = pr->p[c] * in->kick / in->density;
            if (!in->surface) continue;
            pr->rhs[n] += push * in->kick / in->density;
            pr->x[n] -= in->surface[c] * in->kick / in->density;
        }
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    const assemble_args *s = arg;
    UN_BY_DIM(s->pr->grid->dim, fill_rows_in(s, begin, end, dim));
}

/* Counts become first places, after those of the ranks before this one; returns the place after the
 * last of all ranks. own: what this rank has of them. */
static int64_t accumulate(const un_pressure *pr, int64_t *counts, un_part steps, un_part *own)
{
    int64_t total = 0, first = 0;
    for (int64_t i = steps.begin; i < steps.end; i++) total += counts[i];
    own->end = total;
    if (pr->grid->bars) {
        un_range range = un_ranks_range(pr->ctx, total);
        first = range.begin;
        total = range.total;
        own->end = range.end;
    }
    own->begin = first;
    for (int64_t i = steps.begin; i < steps.end; i++) {
        int64_t count = counts[i];
        counts[i] = first;
        first += count;
    }
    counts[steps.end] = first;
    return total;
}

/* Of several ranks: rows next to this one's own, on other ranks, and those next to bodies. */
static un_status find_halo(un_pressure *pr)
{
    un_ids rows = {0};
    un_status status = UN_OK;
    un_runs wide = un_grid_own_cells(pr->grid, 1);
    if (!pr->grid->bars) return UN_OK;
    pr->near.count = 0;
    for (un_part run; un_runs_next(&wide, &run);)
        for (int64_t c = run.begin; c < run.end; c++) {
            int32_t r = pr->index[c];
            if (r < 0 || (r >= pr->own.begin && r < pr->own.end)) continue;
            pr->place[r] = (int32_t)c;
            UN_TRY_DONE(un_ids_add(pr->ctx, &pr->near, r));
            UN_TRY_DONE(un_ids_add(pr->ctx, &rows, r));
        }
    for (int32_t e = 0; un_coupling_any(pr) && e < pr->coupling.first[pr->coupling.columns.count];
         e++) {
        int32_t r = pr->coupling.row[e];
        if (r < pr->own.begin || r >= pr->own.end) UN_TRY_DONE(un_ids_add(pr->ctx, &rows, r));
    }
    un_ids_sort(&pr->near);
    un_ids_sort(&rows);
    status = un_pressure_know_rows(pr, rows.id, rows.count);
done:
    un_free(pr->ctx, rows.id);
    return status;
}

static un_status assemble(un_pressure *pr, const un_projection *in)
{
    un_context *ctx = pr->ctx;
    const un_grid *g = pr->grid;
    int64_t steps = un_curve_steps(&pr->curve);
    un_part own = un_grid_own_steps(g, &pr->curve), own_entries;
    assemble_args s = {.pr = pr, .in = in, .cut = un_walls_cut(in->walls)};
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, s.row_count, steps + 1);
    UN_ALLOC_DONE(ctx, s.entry_count, steps + 1);
    un_parallel_part(ctx, own, 64, count_rows, &s);
    size_t n = (size_t)accumulate(pr, s.row_count, own, &pr->own);
    UN_TRY_DONE(un_pressure_need_rows(pr, (int32_t)n));
    un_parallel_part(ctx, own, 64, number_rows, &s);
    UN_TRY_DONE(un_grid_share(g, &(un_layered){pr->index, sizeof *pr->index}, 1, 1));
    pr->matrix.n = (int32_t)n;
    UN_TRY_DONE(find_halo(pr));
    un_parallel_part(ctx, own, 64, count_entries, &s);
    size_t entries = (size_t)accumulate(pr, s.entry_count, own, &own_entries);
    if (entries > INT32_MAX) {
        status = un_fail(ctx, UN_ERROR_MEMORY,
                         "%.1f million liquid cells are too many for one "
                         "pressure system; lower detail.finest",
                         (double)n / 1e6);
        goto done;
    }
    UN_TRY_DONE(un_pressure_need_entries(pr, entries));
    un_csr *m = &pr->matrix;
    m->row[n] = (int32_t)entries;
    m->row[pr->own.end] = (int32_t)own_entries.end;
    un_parallel_part(ctx, own, 64, fill_rows, &s);
    for (int32_t i = 0; in->inflow && i < in->inflow->count; i++) {
        int32_t c = in->inflow->cell[i];
        int32_t row = c / g->n[0];
        int32_t unknown = un_grid_owns(g, row % g->n[1], row / g->n[1]) ? pr->index[c] : -1;
        double rate = in->inflow->volume[i] / (g->volume * in->dt);
        if (unknown >= 0) pr->rhs[unknown] += g->h * g->h * rate;
    }
done:
    un_free(ctx, s.row_count);
    un_free(ctx, s.entry_count);
    return status;
}

/* ---- velocity update ---- */

/* Does the face lie in or beyond a side of the domain across its axis? */
static bool on_side(const un_grid *g, int axis, int32_t j, int32_t k, int64_t i)
{
    double at = axis == 0   ? g->origin.x + g->h * (double)i
                : axis == 1 ? g->origin.y + g->h * j
                            : g->origin.z + g->h * k;
    double size = axis == 0 ? g->size.x : axis == 1 ? g->size.y : g->size.z;
    return at < 1e-6 * g->h || at > size - 1e-6 * g->h;
}

static void update_faces(void *arg, int64_t begin, int64_t end)
{
    assemble_args *s = arg;
    un_pressure *pr = s->pr;
    const un_projection *in = s->in;
    const un_grid *g = pr->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        for (int axis = 0; axis < g->dim; axis++) {
            int64_t first = un_grid_cell(g, 0, j, k), stride = g->stride[axis];
            memset(in->known[axis] + first, 0, (size_t)g->n[0]);
            if ((axis == 1 && j == 0) || (axis == 2 && k == 0)) continue;
            for (int64_t f = first + (axis == 0); f < first + g->n[0]; f++) {
                int32_t above = pr->index[f], below = pr->index[f - stride];
                if (above < 0 && below < 0) continue;
                if (open_area(in->walls, axis, f) == 0) {
                    /* nothing crosses a side of the domain; solids are left to extrapolation */
                    if (!on_side(g, axis, j, k, f - first)) continue;
                    in->u[axis][f] = 0;
                    in->known[axis][f] = 1;
                    continue;
                }
                double step;
                if (above >= 0 && below >= 0)
                    step = pr->x[above] - pr->x[below];
                else if (above >= 0)
                    step = pr->x[above] / ghost_theta(in->phi[f], fmaxf(in->phi[f - stride], 0));
                else
                    step = -pr->x[below] / ghost_theta(in->phi[f - stride], fmaxf(in->phi[f], 0));
                if (in->surface)
                    step += (in->surface[f] - in->surface[f - stride]) * in->kick / in->density;
                if (in->densities) step *= lightness(pr, in, f, stride);
                in->u[axis][f] -= step / g->h;
                in->known[axis][f] = 1;
            }
        }
    }
}

/* Cells next to walls may let go of them. */
static bool limit_cell(const void *arg, int32_t row, double *least, double *slack)
{
    const assemble_args *s = arg;
    const un_projection *in = s->in;
    const un_grid *g = s->pr->grid;
    int64_t c = s->pr->place[row];
    double open = 1, speed = 0;
    for (int a = 0; a < g->dim; a++) {
        int64_t high = c + g->stride[a];
        open = fmin(open, fmin(open_area(in->walls, a, c), open_area(in->walls, a, high)));
        speed = fmax(speed, 0.5 * fabs(in->u[a][c] + in->u[a][high]));
    }
    *least = in->surface ? -in->surface[c] * in->kick / in->density : 0;
    if (in->before) *least -= in->before[c] * in->kick / in->density;
    *slack = un_release_slack(in->let_go, speed, un_release_way(g->h, in->phi[c]));
    return open < 1 - WALL_SHARE;
}

/* Farther than a row from this rank's own, numbers are those of earlier steps. Only faces of others
 * lie between. */
static bool knows_row(const un_pressure *pr, int32_t row)
{
    if (row >= pr->own.begin && row < pr->own.end) return true;
    return row >= 0 && un_ids_find(&pr->near, row) >= 0;
}

/* The closed faces of cells that have let go. */
static void release_faces(void *arg, int64_t begin, int64_t end)
{
    assemble_args *s = arg;
    const un_projection *in = s->in;
    const un_pressure *pr = s->pr;
    const un_grid *g = pr->grid;
    for (int64_t n = begin; n < end; n++) {
        int64_t c = pr->place[n];
        for (int side = 0; un_pressure_is_free(pr, (int32_t)n) && side < 2 * g->dim; side++) {
            int axis = side / 2;
            int64_t stride = g->stride[axis], high = c + stride;
            int64_t f = side % 2 ? high : c, opposite = side % 2 ? c : high;
            int32_t beyond = pr->index[side % 2 ? high : c - stride];
            if (!knows_row(pr, beyond)) beyond = -1;
            if (open_area(in->walls, axis, f) > 0 || open_area(in->walls, axis, opposite) == 0)
                continue;
            if (beyond >= 0 && un_pressure_is_free(pr, beyond)) continue;
            double u = in->u[axis][opposite];
            double wall = in->walls->velocity[axis] ? in->walls->velocity[axis][f] : 0;
            in->u[axis][f] = side % 2 ? fmin(u, wall) : fmax(u, wall);
            in->known[axis][f] = 1;
        }
    }
}

static void store_pressure(void *arg, int64_t begin, int64_t end)
{
    assemble_args *s = arg;
    double to_pascal = s->in->density / s->in->kick;
    for (int64_t c = begin; c < end; c++) {
        int32_t n = s->pr->index[c];
        s->pr->p[c] = n >= 0 ? s->pr->x[n] * to_pascal : 0;
        if (n >= 0 && s->in->surface) s->pr->p[c] += s->in->surface[c];
        if (n >= 0 && un_pressure_is_free(s->pr, n)) s->pr->p[c] = -0.0;
    }
}

/* Sources have their own divergence and are left out of the check, and so do voids at walls. */
static double divergence_rows(void *arg, int64_t begin, int64_t end)
{
    assemble_args *s = arg;
    const un_grid *g = s->pr->grid;
    double max = 0;
    for (int64_t n = begin; n < end; n++) {
        int64_t c = s->pr->place[n];
        if (un_pressure_is_free(s->pr, (int32_t)n)) continue;
        double outflow = g->dim == 2 ? cell_outflow(s->in, g, c, 2) : cell_outflow(s->in, g, c, 3);
        double left = outflow / g->h - s->in->walls->volume[c] * cell_expansion(s, c);
        max = fmax(max, fabs(left));
    }
    return max;
}

typedef struct own_args {
    assemble_args *all;
    int64_t first;
} own_args;

static double divergence_own(void *arg, int64_t begin, int64_t end)
{
    const own_args *a = arg;
    return divergence_rows(a->all, a->first + begin, a->first + end);
}

/* ---- bodies ---- */

/* What a body's motion adds to the outflow of cell (i, j, k), as the right-hand side has it. */
static bool push_of_cell(const un_projection *in, int32_t body, int32_t i, int32_t j, int32_t k,
                         double push[6])
{
    const un_walls *w = in->walls;
    const un_grid *g = w->grid;
    const un_body *b = &w->bodies->body[body];
    un_vec3 centre = un_pose_apply(&b->to, b->centre);
    bool any = false;
    for (int m = 0; m < 6; m++) push[m] = 0;
    for (int side = 0; side < 2 * g->dim; side++) {
        int axis = side / 2;
        int32_t at[3] = {i, j, k};
        at[axis] += side & 1;
        double closed = 1 - open_area(w, axis, un_grid_cell(g, at[0], at[1], at[2]));
        if (closed == 0 || un_walls_free_body(w, at[0], at[1], at[2], axis) != body) continue;
        un_vec3 e = un_v3(axis == 0, axis == 1, axis == 2);
        un_vec3 r = un_sub(un_grid_face_center(g, axis, at[0], at[1], at[2]), centre);
        un_vec3 turn = un_body_pushing_turn(b, un_cross(r, e));
        double flux = (side & 1 ? g->h : -g->h) * closed;
        push[axis] += flux;
        push[3] += flux * turn.x;
        push[4] += flux * turn.y;
        push[5] += flux * turn.z;
        any = true;
    }
    return any;
}

/* Bar by bar, as unknowns are numbered. */
static int32_t body_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const assemble_args *s = arg;
    const un_grid *g = s->pr->grid;
    int32_t lo[3], n[3], count = 0;
    un_walls_cells_around(s->in->walls, body, lo, n);
    for (int d = 0; d < g->dim; d++) lo[d]--, n[d]++; /* both cells of the first faces */
    for (int64_t step = 0; step < un_curve_steps(&s->pr->curve); step++) {
        int32_t j, k;
        if (!un_curve_row(&s->pr->curve, step, &j, &k)) continue;
        if (j < lo[1] || j >= lo[1] + n[1] || k < lo[2] || k >= lo[2] + n[2]) continue;
        for (int32_t i = lo[0]; i < lo[0] + n[0]; i++) {
            int32_t r = s->pr->index[un_grid_cell(g, i, j, k)];
            double own[6];
            if (r < 0 || !push_of_cell(s->in, body, i, j, k, own)) continue;
            if (row) {
                row[count] = r;
                memcpy(push[count], own, sizeof own);
            }
            count++;
        }
    }
    return count;
}

/* All ranks know all rows next to bodies. */
static un_status know_places(un_pressure *pr)
{
    const un_grid *g = pr->grid;
    if (!g->bars) return UN_OK;
    UN_TRY(un_grid_share(g, &(un_layered){pr->index, sizeof *pr->index}, 1, UN_ALL_ROWS));
    for (int64_t c = 0; c < g->cell_count; c++)
        if (pr->index[c] >= 0) pr->place[pr->index[c]] = (int32_t)c;
    return UN_OK;
}

/* Columns for the bodies, and what the surface's pressure does to them. */
static un_status couple(un_pressure *pr, const un_projection *in)
{
    const un_grid *g = pr->grid;
    assemble_args s = {.pr = pr, .in = in};
    double unit = in->density * (g->dim == 2 ? 1 : g->h);
    UN_TRY(know_places(pr));
    UN_TRY(un_coupling_build(pr, in->bodies, in->density, unit, body_rows, &s));
    if (un_coupling_any(pr)) UN_TRY(find_halo(pr));
    return un_coupling_push_surface(pr, in->bodies, in->surface, in->kick, in->density);
}

static un_status share_faces(const un_projection *in, const un_grid *g)
{
    un_layered fields[3];
    for (int a = 0; a < g->dim; a++) fields[a] = (un_layered){in->u[a], sizeof *in->u[a]};
    return un_grid_share(g, fields, g->dim, 1);
}

un_status un_pressure_project(un_pressure *pr, const un_projection *in,
                              un_projection_report *report)
{
    un_context *ctx = pr->ctx;
    const un_grid *g = pr->grid;
    *report = (un_projection_report){0};
    if (in->bodies) un_walls_find_velocities(in->walls);
    pr->coupling.columns.count = 0;
    UN_TRY(assemble(pr, in));
    if (in->bodies) UN_TRY(couple(pr, in));
    report->cell_count = pr->matrix.n;
    un_sites sites = {.kind = UN_SITES_GRID,
                      .size = {g->n[0], g->n[1], g->n[2]},
                      .site = pr->place,
                      .curve = &pr->curve};
    assemble_args s = {.pr = pr, .in = in, .cut = un_walls_cut(in->walls)};
    un_release release = {&s, limit_cell, in->surface || in->before ? INFINITY : 0,
                          in->before ? in->before : pr->p, in->let_go > 0};
    UN_TRY(un_pressure_solve(pr, &sites, in->tolerance, in->iteration_limit, &release,
                             &report->solve));
    if (in->bodies && report->solve.finite) {
        un_coupling_push(pr, in->bodies);
        un_walls_find_velocities(in->walls);
    }
    un_parallel_runs(ctx, un_grid_own_rows(g, 0), 64, update_faces, &s);
    if (pr->free_count > 0) { /* cells beside this rank's own have faces of it */
        UN_TRY(share_faces(in, g));
        un_parallel_part(ctx, pr->own, un_block_grain(pr->matrix.n), release_faces, &s);
        for (int64_t r = 0; g->bars && r < pr->near.count; r++)
            release_faces(&s, pr->near.id[r], pr->near.id[r] + 1);
    }
    un_parallel_runs(ctx, un_grid_own_cells(g, 0), un_block_grain(g->cell_count), store_pressure,
                     &s);
    UN_TRY(share_faces(in, g));
    if (pr->matrix.n == 0) return UN_OK;
    own_args own = {&s, pr->own.begin};
    report->max_divergence =
        un_parallel_max(ctx, pr->own.end - pr->own.begin, divergence_own, &own);
    return UN_OK;
}

/* ---- what the liquid got ---- */

typedef struct impulse_args {
    assemble_args s;
    double *const *before;
} impulse_args;

/* By axis: momentum, mass. */
static void impulse_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const impulse_args *a = arg;
    const un_projection *in = a->s.in;
    const un_pressure *pr = a->s.pr;
    const un_grid *g = pr->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        int64_t first = un_grid_cell(g, 0, j, k);
        for (int axis = 0; axis < g->dim; axis++) {
            int64_t stride = g->stride[axis];
            if ((axis == 1 && j == 0) || (axis == 2 && k == 0)) continue;
            for (int64_t f = first + (axis == 0); f < first + g->n[0]; f++) {
                bool above = pr->index[f] >= 0, below = pr->index[f - stride] >= 0;
                double mass = above || below ? open_area(in->walls, axis, f) : 0;
                if (mass == 0) continue;
                if (!below) mass *= ghost_theta(in->phi[f], fmaxf(in->phi[f - stride], 0));
                if (!above) mass *= ghost_theta(in->phi[f - stride], fmaxf(in->phi[f], 0));
                mass *= in->density * g->volume / lightness(pr, in, f, stride);
                sums[axis] += mass * (in->u[axis][f] - a->before[axis][f]);
                sums[3 + axis] += mass;
            }
        }
    }
}

void un_pressure_impulse(const un_pressure *pr, const un_projection *in, double *const before[3],
                         un_impulse *out)
{
    impulse_args a = {{.pr = (un_pressure *)(uintptr_t)pr, .in = in}, before};
    double sums[6];
    un_grid_sums(pr->ctx, pr->grid, 1, 6, impulse_rows, &a, sums);
    out->momentum = un_v3(sums[0], sums[1], sums[2]);
    out->mass = un_v3(sums[3], sums[4], sums[5]);
}

double un_pressure_bytes(const un_grid *grid, double liquid_cells)
{
    /* p and index; cell, row, 7 entries, rhs, x; where walls let go, entries and rhs again; the
     * solver */
    return (double)grid->cell_count * (8 + 4) +
           liquid_cells * (4 + 4 + 7 * 12 + 8 + 8 + 1 + 7 * 8 + 8) + un_solver_bytes(liquid_cells);
}
