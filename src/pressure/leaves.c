/* Projection on the leaves of an octree: pressure at centres, velocities on faces [Hong09].
 *
 *     u <- u - (dt / rho) grad p,   div u = sigma in the liquid,   p = 0 at the free surface,
 *     u.n = u_solid.n at walls
 *
 * Between leaves of one size this is project.c. Where a side of a large leaf L meets small ones s,
 * all faces there share one derivative along the way from L to s,
 *
 *     g = (sum_s a_s p_s - p_L) / (3/4 h_L),     a_s = A_s / sum A,
 *
 * A_s the open area of a face: exact for linear pressure, and symmetric, since the energy of the
 * side is sum A (3/4 h_L) g^2. The paper's differences for each face, over the large or the mean
 * spacing, are off by 0.24 to 0.43 g dt in still water wherever the surface crosses a change of
 * size. What replaces them (shared by no paper known to us):
 *
 *  - Ghosts by row. In the row of liquid leaf q, an air leaf z has p_q phi_z / phi_q. That changes
 *    diagonals only, and the matrix stays symmetric. Siblings couple with a positive sign.
 *  - A small face with liquid s takes row s's g. Faces between L and air take what is left, so that
 *    L's flux is that of row L.
 *  - Gravity is the same operator applied to g.x, at all centres (un_leaf_accelerate): walls that
 *    close some of the small faces tilt the difference, and the pressure's tilts in the same way.
 *
 * The surface's pressure P pushes all faces of the liquid by the same operator, and what is solved
 * for is the rest, which is 0 at the surface (as in project.c). Bodies that the liquid moves are
 * columns of the system (coupling.c). Over ranks: leaves_ranks.c.
 *
 * Where phi is uneven, a row may lose its diagonal to siblings in the air. Such a row counts them
 * as itself instead (`plain`). */
#include "pressure/coupling.h"
#include "pressure/crowding.h"
#include "pressure/leaves.h"

/* As in project.c. */
#define WALL_SHARE 0.02
/* Leaves hold fewer particles than cells of the grid, down to three: their fraction is less even.
 */
#define CROWDING_NOISE 0.1
#define CROWDING_HEAP 0.25
/* Next to walls that cut leaves the fraction is off by up to a tenth in still water, either way:
 * what is missing is no sign there. What runs into a wall in long steps must part again. */
#define CROWDING_CUT 0.25
/* Heaps come from steps in which liquid runs into a wall or into itself, not from the motion of
 * liquid: what parts them moves particles and gives them no speed. Else liquid that turns under a
 * lid gains with each step (12.0 m/s in bench/dam.lua at 64 cells and cfl 1, 11.1 now; 18.1 and
 * 13.5 at 128). They are parted no faster than within so many paces (un_scene_pace). Steps become
 * shorter where liquid is fast: if they alone set the rate, liquid that is pressed out of a corner
 * makes them shorter and is pressed the harder (a jet of 8 m/s left the lid with 20). */
#define HEAP_TIME 0.03
/* How closely that is solved for: the rate is a guess anyway. */
#define HEAP_TOLERANCE 1e-2
/* The volume fraction next to a change of size is uneven. */
#define CROWDING_GRADED 0.2
/* A row is uneven if its diagonal is less than this share of that without ghosts. */
#define DIAGONAL_MIN 0.05

/* Row q's derivative, as a multiple of its own pressure and those of others: sum. */
static double row_derivative(const un_leaf_args *s, const un_side_rule *r, int32_t q,
                             const double *x)
{
    const un_pressure *pr = s->pr;
    bool small = r->leaf[r->count - 1] != q;
    double sum = 0;
    for (int k = 0; k < r->count; k++) {
        int32_t z = r->leaf[k];
        double p = pr->index[z] >= 0
                       ? x[pr->index[z]]
                       : x[pr->index[q]] * un_leaf_ghost(s, q, z, small && k < r->count - 1);
        sum += r->weight[k] * p;
    }
    return sum / r->distance;
}

/* ---- assembly ---- */

static void find_unknowns(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    const un_leaves *m = s->m;
    for (int64_t c = begin; c < end; c++) {
        double open = 0;
        if (s->in->phi[c] < 0)
            for (int side = 0; side < 2 * m->dim; side++) {
                int32_t f = m->side[c][side];
                for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++)
                    open += un_leaf_open_share(s->in, f < 0 ? m->group[~f][k] : f);
            }
        s->pr->index[c] = open > 0 ? 0 : -1;
        s->plain[c] = 0;
    }
}

/* What a row is while it is gathered. */
typedef struct row_sums {
    un_row row;
    double val[UN_ROW_MAX];
    bool distinct; /* no leaf is met twice */
    double own;    /* the diagonal */
    double plain;  /* without ghosts */
} row_sums;

static inline void add_entry(row_sums *t, int32_t z, double v)
{
    if (!t->distinct) {
        *un_row_at(&t->row, t->val, 1, z) += v;
        return;
    }
    t->row.place[t->row.count] = z;
    t->val[t->row.count++] = v;
}

/* The part of row q that comes from one derivative; factor: what one of it flows out by. */
static void add_rule(const un_leaf_args *s, row_sums *t, const un_side_rule *r, int32_t q,
                     double factor)
{
    bool small = r->leaf[r->count - 1] != q;
    for (int k = 0; k < r->count; k++) {
        int32_t z = r->leaf[k];
        double v = factor * r->weight[k] / r->distance;
        if (v == 0) continue;
        if (z == q)
            t->own += v;
        else if (s->pr->index[z] >= 0)
            add_entry(t, z, v);
        else
            t->own += v * un_leaf_ghost(s, q, z, small && k < r->count - 1);
        if (z == q || s->pr->index[z] < 0) t->plain += fabs(v);
    }
}

static void add_face(const un_leaf_args *s, row_sums *t, int32_t q, int32_t f)
{
    const un_leaves *m = s->m;
    double h = un_leaf_size(m, q), area = un_leaf_open_area(s, f);
    int32_t own = m->face_side[f] / 6, z = own == q ? m->face_other[f] : own;
    if (area == 0) return;
    double v = area / h;
    t->plain += v;
    if (z < 0) { /* the air beyond an open side begins at it */
        t->own += 2 * v;
    } else if (s->pr->index[z] >= 0) {
        t->own += v;
        add_entry(t, z, -v);
    } else {
        t->own += v * (1 - un_leaf_ghost(s, q, z, false));
    }
}

/* Do only leaves of its own size lie beyond the sides of leaf q? */
static bool has_equals(const un_leaves *m, int32_t q)
{
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[q][side], other;
        if (f < 0) return false;
        if (m->face_side[f] / 6 != q) continue;
        other = m->face_other[f];
        if (other >= 0 && m->tree->level[other] != m->tree->level[q]) return false;
    }
    return true;
}

/* How many entries the row of such a leaf has. */
static int32_t count_equals(const un_leaf_args *s, int32_t q)
{
    const un_leaves *m = s->m;
    int32_t count = 1;
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[q][side], own = m->face_side[f] / 6;
        int32_t z = own == q ? m->face_other[f] : own;
        count += z >= 0 && s->pr->index[z] >= 0 && un_leaf_open_share(s->in, f) > 0;
    }
    return count;
}

static void gather_row(const un_leaf_args *s, row_sums *t, int32_t q)
{
    const un_leaves *m = s->m;
    un_side_rule r;
    t->distinct = has_equals(m, q);
    t->row.count = 0;
    if (!t->distinct) un_row_begin(&t->row);
    t->own = t->plain = 0;
    add_entry(t, q, 0);
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[q][side];
        if (f < 0) {
            un_leaf_group_rule(s, q, ~f, &r);
            if (r.total > 0) add_rule(s, t, &r, q, -r.total);
            continue;
        }
        int32_t other = m->face_side[f] / 6 == q ? m->face_other[f] : -1;
        if (other < 0 || m->tree->level[other] == m->tree->level[q]) {
            add_face(s, t, q, f);
            continue;
        }
        double area = un_leaf_open_area(s, f);
        if (area == 0) continue;
        un_leaf_group_rule(s, other, ~m->side[other][side ^ 1], &r);
        add_rule(s, t, &r, q, area);
    }
    t->val[0] = t->own;
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    row_sums t;
    for (int64_t n = begin; n < end; n++) {
        int32_t q = s->pr->place[n];
        if (has_equals(s->m, q)) { /* ghosts add to its diagonal: it loses nothing */
            s->pr->matrix.row[n + 1] = count_equals(s, q);
            continue;
        }
        gather_row(s, &t, q);
        s->plain[q] = t.own < DIAGONAL_MIN * t.plain;
        s->pr->matrix.row[n + 1] = t.row.count;
    }
}

static inline double surface_at(const un_leaf_projection *in, int32_t q)
{
    return in->surface ? in->surface[q] : 0;
}

/* What flows out of a leaf, m3/s times the scale. */
static double outflow(const un_leaf_args *s, int32_t q)
{
    const un_leaves *m = s->m;
    double sum = 0;
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t g = m->side[q][side];
        for (int k = 0; k < (g < 0 ? un_leaves_group_size(m) : 1); k++) {
            int32_t f = g < 0 ? m->group[~g][k] : g;
            double share = un_leaf_open_share(s->in, f), area = s->scale * un_leaf_face_area(m, f);
            double solid = s->in->walls->velocity ? s->in->walls->velocity[f] : 0;
            sum += (side & 1 ? area : -area) * (share * s->in->u[f] + (1 - share) * solid);
        }
    }
    return sum;
}

/* Does a wall cut the leaf or one around it? The fraction is uneven there, or not known at all. */
static bool near_cut(const un_leaf_args *s, int32_t q)
{
    const int32_t *near = un_leaf_near(s->m, q);
    const float *open = s->in->walls->volume;
    for (int n = 0; n < s->m->near_count; n++)
        if (near[n] >= 0 && open[near[n]] > 0 && open[near[n]] < 1) return true;
    return false;
}

/* As in project.c: the divergence wanted in leaf q. *heap: beside it, all of what evens out a leaf
 * that is part of a heap. */
static double expansion_of(const un_leaf_args *s, int32_t q, double *heap)
{
    const un_leaf_projection *in = s->in;
    const un_leaves *m = s->m;
    double sigma = in->expansion;
    *heap = 0;
    if (in->emitted && in->walls->volume[q] > 0)
        sigma += in->emitted[q] / (in->walls->volume[q] * un_leaf_volume(m, q) * in->dt);
    if (!in->colour) return sigma;
    double crowding = in->colour[q] - 1, noise = m->even[q] ? CROWDING_NOISE : CROWDING_GRADED;
    const int32_t *near = un_leaf_near(m, q);
    for (int n = 0; n < m->near_count && noise == CROWDING_GRADED; n++)
        if (near[n] >= 0 && m->tree->level[near[n]] != m->tree->level[q])
            break;
        else if (n == m->near_count - 1)
            noise = CROWDING_NOISE; /* it lies at the brick's side */
    if (fabs(crowding) < noise) return sigma;
    if (near_cut(s, q)) {
        noise = CROWDING_CUT;
        if (crowding < noise) return sigma;
    }
    /* Next to air only too much is a sign. */
    if (crowding < 0 && in->phi[q] > (float)(-1.5 * un_leaf_size(m, q))) return sigma;
    double excess = fmax(0, crowding - fmax(noise, CROWDING_HEAP));
    crowding -= copysign(noise, crowding);
    if (excess == 0) return un_crowding_add(sigma, crowding, 0, in->dt, in->pace);
    *heap = excess / fmax(CROWDING_STEPS * in->dt, HEAP_TIME * in->pace);
    *heap = un_crowding_add(*heap, crowding, 0, in->dt, in->pace);
    return sigma;
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    const un_leaf_projection *in = s->in;
    un_pressure *pr = s->pr;
    row_sums t;
    for (int64_t n = begin; n < end; n++) {
        int32_t q = pr->place[n];
        gather_row(s, &t, q);
        un_row_store(&t.row, t.val, 1, pr->index, pr->matrix.col + pr->matrix.row[n],
                     pr->matrix.val + pr->matrix.row[n]);
        double volume = in->walls->volume[q] * s->scale * un_leaf_volume(s->m, q), heap;
        s->wanted[n] = expansion_of(s, q, &heap);
        pr->rhs[n] = volume * s->wanted[n] - outflow(s, q);
        s->heap[n] = volume * heap;
        pr->x[n] = (in->p[q] - surface_at(in, q)) * in->kick / in->density;
    }
}

static un_status number(un_leaf_args *s)
{
    UN_TRY(un_pressure_need_places(s->pr, s->m->count));
    if (un_leaves_in_parts(s->m)) {
        un_parallel_part(s->pr->ctx, un_leaves_own(s->m), 4096, find_unknowns, s);
        return UN_OK;
    }
    un_parallel_for(s->pr->ctx, s->m->count, 4096, find_unknowns, s);
    return un_pressure_number(s->pr, s->m->count);
}

/* Own rows; the matrix starts them all. */
static un_status assemble(un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    un_context *ctx = pr->ctx;
    un_parallel_part(ctx, s->own, 1024, count_entries, s);
    if (s->shared)
        UN_TRY(un_pressure_start_rows(pr));
    else
        UN_TRY(un_rows_start(ctx, pr->matrix.row, pr->matrix.n, "liquid cells"));
    un_status status = un_pressure_need_entries(pr, (size_t)pr->matrix.row[pr->matrix.n]);
    UN_TRY(s->shared ? un_ranks_agree(ctx, status) : status);
    un_parallel_part(ctx, s->own, 1024, fill_rows, s);
    if (!s->shared) return UN_OK;
    un_leaves_spread(s->m, s->plain, 1);
    return un_leaf_pressure_know_rows(s);
}

/* ---- the surface's pressure ---- */

/* Along the way from the leaf beyond a face to the one that it belongs to, Pa/m. */
static double surface_slope(const un_leaf_args *s, int32_t f)
{
    const un_leaves *m = s->m;
    const double *p = s->in->surface;
    int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, other = m->face_other[f];
    if (other < 0) return 0;
    if (m->tree->level[other] == m->tree->level[c]) return (p[c] - p[other]) / un_leaf_size(m, c);
    un_side_rule r;
    double sum = 0;
    un_leaf_group_rule(s, other, ~m->side[other][side ^ 1], &r);
    for (int k = 0; k < r.count; k++) sum += r.weight[k] * p[r.leaf[k]];
    return r.total > 0 ? sum / r.distance : 0;
}

static void press_faces(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    const int32_t *index = s->pr->index;
    for (int64_t f = begin; f < end; f++) {
        int32_t side = s->m->face_side[f], other = s->m->face_other[f];
        if (index[side / 6] < 0 && (other < 0 || index[other] < 0)) continue;
        if (un_leaf_open_share(s->in, (int32_t)f) == 0) continue;
        s->in->u[f] +=
            (side & 1 ? 1 : -1) * surface_slope(s, (int32_t)f) * s->in->kick / s->in->density;
    }
}

/* ---- velocity update ---- */

/* What faces between liquid L and air take, along the way from L. */
static double remainder_of(const un_leaf_args *s, const un_side_rule *r)
{
    const double *x = s->pr->x;
    int n = r->count - 1;
    double flux = r->total * row_derivative(s, r, r->leaf[n], x), air = 0;
    for (int k = 0; k < n; k++) {
        if (s->pr->index[r->leaf[k]] >= 0)
            flux -= r->area[k] * row_derivative(s, r, r->leaf[k], x);
        else
            air += r->area[k];
    }
    return flux / air;
}

/* The pressure's change along the face's axis, over the distance; the face is open and next to
 * liquid. */
static double derivative_at(const un_leaf_args *s, int32_t f)
{
    const un_leaves *m = s->m;
    const un_pressure *pr = s->pr;
    int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, other = m->face_other[f];
    double sign = side & 1 ? -1 : 1, h = un_leaf_size(m, c); /* from the other leaf to c */
    if (other >= 0 && m->tree->level[other] < m->tree->level[c]) {
        un_side_rule r;
        un_leaf_group_rule(s, other, ~m->side[other][side ^ 1], &r);
        double g = pr->index[c] >= 0 ? row_derivative(s, &r, c, pr->x) : remainder_of(s, &r);
        return sign * g;
    }
    int32_t own = pr->index[c], there = other < 0 ? -1 : pr->index[other];
    if (other < 0) return sign * 2 * pr->x[own] / h;
    if (own >= 0 && there >= 0) return sign * (pr->x[own] - pr->x[there]) / h;
    if (own >= 0) return sign * pr->x[own] * (1 - un_leaf_ghost(s, c, other, false)) / h;
    return -sign * pr->x[there] * (1 - un_leaf_ghost(s, other, c, false)) / h;
}

static void update_faces(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    const un_leaf_projection *in = s->in;
    const un_leaves *m = s->m;
    const int32_t *index = s->pr->index;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, other = m->face_other[f];
        in->known[f] = 0;
        if (index[c] < 0 && (other < 0 || index[other] < 0)) continue;
        if (un_leaf_open_share(in, (int32_t)f) == 0) {
            /* nothing crosses a side of the domain; solids are left to extrapolation */
            if (!un_leaf_face_on_side(m, f)) continue;
            in->u[f] = 0;
        } else {
            in->u[f] -= derivative_at(s, (int32_t)f);
        }
        in->known[f] = 1;
    }
}

/* ---- heaps ---- */

static void find_parting(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    const int32_t *index = s->pr->index;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = s->m->face_side[f] / 6, other = s->m->face_other[f];
        bool wet = index[c] >= 0 || (other >= 0 && index[other] >= 0);
        s->parting[f] =
            wet && un_leaf_open_share(s->in, (int32_t)f) > 0 ? -derivative_at(s, (int32_t)f) : 0;
    }
}

static double heap_rows(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    double most = 0;
    for (int64_t n = begin; n < end; n++) most = fmax(most, s->heap[s->own.begin + n]);
    return most;
}

/* Of the own rows of all ranks, counted from the first. */
static double most_of_rows(un_leaf_args *s, un_parallel_value *value)
{
    double most = un_parallel_max(s->pr->ctx, s->own.end - s->own.begin, value, s);
    return s->shared ? un_ranks_max(s->pr->ctx, most) : most;
}

/* A rank that has no memory for a system ends the run: it returns while others wait. */
static un_status solve(un_leaf_args *s, double tolerance, const un_release *release,
                       un_solve_report *report)
{
    return un_pressure_solve(s->pr, NULL, tolerance, s->in->iteration_limit, release, report);
}

/* The velocity that parts heaps, alone. It is solved for before the pressure, whose guess and
 * right-hand side are put aside meanwhile; s->parting stays NULL where there are no heaps. */
static un_status part_heaps(un_leaf_args *s, un_arena *arena)
{
    un_pressure *pr = s->pr;
    size_t first = (size_t)s->own.begin, rows = (size_t)s->own.end - first;
    if (s->in->again || pr->matrix.n == 0 || !(most_of_rows(s, heap_rows) > 0)) return UN_OK;
    double *rhs = un_arena_alloc(arena, rows + 1, sizeof *rhs);
    double *x = un_arena_alloc(arena, rows + 1, sizeof *x);
    double *parting = un_arena_alloc(arena, (size_t)s->m->face_count + 1, sizeof *parting);
    UN_TRY(un_leaves_agree(s->m, rhs && x && parting ? UN_OK : UN_ERROR_MEMORY));
    un_release none = {.on = false};
    un_solve_report report;
    memcpy(rhs, pr->rhs + first, rows * sizeof *rhs);
    memcpy(x, pr->x + first, rows * sizeof *x);
    memcpy(pr->rhs + first, s->heap + first, rows * sizeof *rhs);
    memset(pr->x + first, 0, rows * sizeof *x);
    UN_TRY(solve(s, fmax(HEAP_TOLERANCE, s->in->tolerance), &none, &report));
    pr->again = true; /* the pressure has the same matrix */
    if (report.finite) {
        s->parting = parting;
        un_parallel_part(pr->ctx, un_leaves_own_faces(s->m), 4096, find_parting, s);
        un_leaves_spread_faces(s->m, parting, sizeof *parting);
    }
    memcpy(pr->rhs + first, rhs, rows * sizeof *rhs);
    memcpy(pr->x + first, x, rows * sizeof *x);
    return UN_OK;
}

/* Liquid moves apart and is none the faster for it: to particles, both fields have what parts. */
static void add_parting(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    for (int64_t f = begin; f < end; f++) {
        if (!s->in->known[f]) continue;
        s->in->u[f] += s->parting[f];
        if (s->in->before) s->in->before[f] += s->parting[f];
    }
}

/* ---- walls that let go ---- */

static bool limit_leaf(const void *arg, int32_t row, double *least, double *slack)
{
    const un_leaf_args *s = arg;
    const un_leaves *m = s->m;
    int32_t q = s->pr->place[row];
    double open = 1, speed = 0;
    for (int axis = 0; axis < m->dim; axis++) {
        double u[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            int32_t g = m->side[q][2 * axis + k];
            int n = g < 0 ? un_leaves_group_size(m) : 1;
            for (int i = 0; i < n; i++) {
                int32_t f = g < 0 ? m->group[~g][i] : g;
                open = fmin(open, un_leaf_open_share(s->in, f));
                u[k] += s->in->u[f] / n;
            }
        }
        speed = fmax(speed, 0.5 * fabs(u[0] + u[1]));
    }
    double there = surface_at(s->in, q) + (s->in->earlier ? s->in->earlier[q] : 0);
    *least = -there * s->in->kick / s->in->density;
    *slack =
        un_release_slack(s->in->let_go, speed, un_release_way(un_leaf_size(m, q), s->in->phi[q]));
    return open < 1 - WALL_SHARE;
}

/* The closed faces of leaves that have let go move as those opposite do, but not into the wall. */
static void release_leaf(const un_leaf_args *s, int32_t q)
{
    const un_leaf_projection *in = s->in;
    const un_leaves *m = s->m;
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[q][side], across = m->side[q][side ^ 1];
        if (f < 0 || across < 0) continue;
        int32_t own = m->face_side[f] / 6, beyond = own == q ? m->face_other[f] : own;
        if (un_leaf_open_share(in, f) > 0 || un_leaf_open_share(in, across) == 0) continue;
        if (beyond >= 0 && s->pr->index[beyond] >= 0 &&
            un_pressure_is_free(s->pr, s->pr->index[beyond]))
            continue;
        double u = in->u[across], wall = in->walls->velocity ? in->walls->velocity[f] : 0;
        in->u[f] = side & 1 ? fmin(u, wall) : fmax(u, wall);
        in->known[f] = 1;
    }
}

static void release_faces(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    for (int64_t n = begin; n < end; n++)
        if (un_pressure_is_free(s->pr, (int32_t)n)) release_leaf(s, s->pr->place[n]);
}

/* The same by leaf, for ranks that know some of them: a face may belong to the leaf beside. */
static void release_near(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    for (int64_t c = begin; c < end; c++) {
        if (s->m->share->ring[c] > 1) continue;
        int32_t n = s->pr->index[c];
        if (n >= 0 && un_pressure_is_free(s->pr, n)) release_leaf(s, (int32_t)c);
    }
}

static void release_all(un_leaf_args *s)
{
    const un_leaf_projection *in = s->in;
    un_pressure *pr = s->pr;
    if (pr->free_count == 0) return; /* of all ranks */
    if (!un_leaves_in_parts(s->m)) {
        un_parallel_for(pr->ctx, pr->matrix.n, un_block_grain(pr->matrix.n), release_faces, s);
        return;
    }
    un_leaves_each(s->m, 4096, release_near, s);
    un_leaves_spread_faces(s->m, in->u, sizeof *in->u);
    un_leaves_spread_faces(s->m, in->known, sizeof *in->known);
}

/* ---- the whole ---- */

static void store_pressure(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    double to_pascal = s->in->density / s->in->kick;
    for (int64_t c = begin; c < end; c++) {
        int32_t n = s->pr->index[c];
        s->in->p[c] = n >= 0 ? s->pr->x[n] * to_pascal + surface_at(s->in, (int32_t)c) : 0;
        if (n >= 0 && un_pressure_is_free(s->pr, n)) s->in->p[c] = -0.0;
    }
}

static double divergence_rows(void *arg, int64_t begin, int64_t end)
{
    const un_leaf_args *s = arg;
    double max = 0;
    for (int64_t n = s->own.begin + begin; n < s->own.begin + end; n++) {
        int32_t q = s->pr->place[n];
        if (un_pressure_is_free(s->pr, (int32_t)n)) continue;
        double left = outflow(s, q) / (s->scale * un_leaf_volume(s->m, q)) -
                      s->in->walls->volume[q] * s->wanted[n];
        max = fmax(max, fabs(left));
    }
    return max;
}

/* Of what projections need, all but the faces: rows, and the pressure in them. */
static un_status find_pressure(un_leaf_args *s, un_arena *arena, un_leaf_projection_report *report)
{
    const un_leaf_projection *in = s->in;
    un_pressure *pr = s->pr;
    s->heap = un_arena_alloc(arena, (size_t)pr->matrix.n + 1, sizeof *s->heap);
    s->wanted = un_arena_alloc(arena, (size_t)pr->matrix.n + 1, sizeof *s->wanted);
    un_status status = un_pressure_need_rows(pr, pr->matrix.n);
    UN_TRY(un_leaves_agree(s->m, s->heap && s->wanted ? status : UN_ERROR_MEMORY));
    UN_TRY(assemble(s));
    if (in->bodies) UN_TRY(un_leaf_couple(s));
    UN_TRY(part_heaps(s, arena));
    un_release release = {s, limit_leaf, in->surface || in->earlier ? INFINITY : 0,
                          in->earlier ? in->earlier : in->p, in->let_go > 0};
    return solve(s, in->tolerance, &release, &report->solve);
}

un_status un_leaf_pressure_project(un_pressure *pr, un_arena *arena, const un_leaf_projection *in,
                                   un_leaf_projection_report *report)
{
    un_context *ctx = pr->ctx;
    const un_leaves *m = in->leaves;
    un_leaf_args s = {.pr = pr,
                      .in = in,
                      .m = m,
                      .scale = m->dim == 2 ? 1 : 1 / m->tree->h,
                      .shared = un_leaves_in_parts(m)};
    *report = (un_leaf_projection_report){0};
    s.plain = un_arena_alloc(arena, (size_t)m->count + 1, 1);
    pr->coupling.columns.count = 0;
    pr->again = false;
    if (in->bodies) un_leaf_walls_find_velocities(in->walls, m);
    UN_TRY(un_leaves_agree(m, s.plain ? number(&s) : UN_ERROR_MEMORY));
    if (s.shared)
        UN_TRY(un_leaf_pressure_number_parts(&s));
    else
        pr->own = (un_part){0, pr->matrix.n};
    s.own = pr->own;
    if (in->surface) {
        un_parallel_part(ctx, un_leaves_own_faces(m), 4096, press_faces, &s);
        un_leaves_spread_faces(m, in->u, sizeof *in->u);
    }
    report->cell_count = pr->matrix.n;
    UN_TRY(find_pressure(&s, arena, report));
    if (in->bodies && report->solve.finite) {
        un_coupling_push(pr, in->bodies);
        un_leaf_walls_find_velocities(in->walls, m);
    }
    un_parallel_part(ctx, un_leaves_own_faces(m), 4096, update_faces, &s);
    un_leaves_spread_faces(m, in->u, sizeof *in->u);
    un_leaves_spread_faces(m, in->known, sizeof *in->known);
    release_all(&s);
    un_parallel_part(ctx, un_leaves_own(m), 8192, store_pressure, &s);
    if (s.shared && in->walls->walls->bodies->count > 0) /* un_pressure_calm_leaves looks there */
        un_leaves_spread(m, in->p, sizeof *in->p);
    if (pr->matrix.n > 0) report->max_divergence = most_of_rows(&s, divergence_rows);
    if (s.parting) un_leaves_each_face(m, 8192, add_parting, &s);
    return UN_OK;
}
