/* Bodies that the liquid moves, in the viscous system of the grid.
 *
 * Strains next to such a body depend on its motion U, velocity and spin, as they do on faces: the
 * same work is minimised over both, with the body's own inertia,
 *
 *     (M + dt K) u + C dU = b,   C^T u + (M_body + S) dU = b_body,
 *
 * where dU is the change of U, C = sum of weight times coefficients of faces times those of the
 * body, and S the same of the body alone. Its velocity and its spin, times a length, are two more
 * rows of the block matrix. Forces on body and liquid are opposite, so that their momentum together
 * does not change, and light bodies in thick liquid are as stable as heavy ones. */
#include "viscosity/grid.h"

/* ---- which bodies ---- */

un_status un_stress_find_bodies(un_stress_grid *s, un_arena *arena)
{
    un_bodies *bodies = s->in->bodies;
    if (!bodies || bodies->free_count == 0) return UN_OK;
    s->body = un_arena_alloc(arena, (size_t)bodies->free_count, sizeof *s->body);
    s->number = un_arena_alloc(arena, (size_t)bodies->count, sizeof *s->number);
    if (!s->body || !s->number) return UN_ERROR_MEMORY;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *from = &bodies->body[b];
        s->number[b] = -1;
        if (!from->free) continue;
        s->number[b] = s->body_count;
        un_moved_body *to = &s->body[s->body_count++];
        un_vec3 size = un_sub(from->bounds.max, from->bounds.min);
        *to = (un_moved_body){.body = b,
                              .centre = un_pose_apply(&from->to, from->centre),
                              .length = 0.5 * fmax(size.x, size.y)};
    }
    return UN_OK;
}

void un_stress_move_bodies(const un_stress_grid *s)
{
    for (int32_t k = 0; k < s->body_count; k++) {
        const un_moved_body *from = &s->body[k];
        un_body *to = &s->in->bodies->body[from->body];
        const double *d = from->change;
        to->velocity = un_add(to->velocity, un_v3(d[0], d[1], d[2]));
        to->spin = un_mad(to->spin, un_v3(d[3], d[4], d[5]), 1 / from->length);
    }
}

/* ---- strains ---- */

void un_push_add(const un_stress_grid *s, un_push *push, int32_t body, int axis, un_vec3 x,
                 double times)
{
    int32_t k = body >= 0 && s->number ? s->number[body] : -1;
    if (k < 0 || (push->body > 0 && push->body != k + 1)) return;
    const un_moved_body *b = &s->body[k];
    un_vec3 axes = un_v3(axis == 0, axis == 1, axis == 2);
    un_vec3 turn = un_scale(un_cross(un_sub(x, b->centre), axes), times / b->length);
    push->body = k + 1;
    push->by[axis] += times;
    push->by[3] += turn.x;
    push->by[4] += turn.y;
    push->by[5] += turn.z;
}

/* Calls f for cells around the body, in the order in which they are numbered: those of this rank.
 */
typedef void visit(const un_stress_grid *s, int32_t k, const int32_t at[3], void *arg);
static void around(const un_stress_grid *s, int32_t k, visit *f, void *arg)
{
    const un_grid *g = s->g;
    un_part own = un_grid_own_steps(g, &s->v->curve);
    int32_t lo[3], end[3];
    un_walls_cells_around(s->in->walls, s->body[k].body, lo, end);
    for (int d = 0; d < 3; d++) end[d] += lo[d];
    for (int d = 0; d < g->dim; d++) {
        end[d] = (int32_t)un_min64(end[d] + 2, g->n[d]);
        lo[d] = lo[d] > 3 ? lo[d] - 2 : 1;
    }
    for (int64_t step = own.begin; step < own.end; step++) {
        int32_t at[3];
        if (!un_curve_row(&s->v->curve, step, &at[1], &at[2])) continue;
        if (at[1] < lo[1] || at[1] >= end[1] || at[2] < lo[2] || at[2] >= end[2]) continue;
        for (at[0] = lo[0]; at[0] < end[0]; at[0]++)
            if (s->near[un_grid_cell(g, at[0], at[1], at[2])]) f(s, k, at, arg);
    }
}

/* ---- rows: place 0 for the velocity, 1 for the spin ---- */

typedef struct body_entry {
    int32_t col;
    double val[9];
} body_entry;

typedef struct row_args {
    int which;
    int64_t count;
    body_entry *entry; /* NULL: only counts */
} row_args;

static int32_t place_of(const un_stress_grid *s, int32_t k, int which)
{
    return (int32_t)s->g->cell_count + 2 * k + which;
}

static void add_cell(const un_stress_grid *s, int32_t k, const int32_t at[3], void *arg)
{
    row_args *to = arg;
    int64_t c = un_grid_cell(s->g, at[0], at[1], at[2]);
    un_row row;
    double val[UN_ROW_MAX][9], b[3] = {0};
    if (s->v->index[c] < 0) return;
    un_stress_row(s, c, &row, to->entry ? val : NULL, b);
    for (int m = 0; m < row.count; m++) {
        if (row.place[m] != place_of(s, k, to->which)) continue;
        if (to->entry) {
            body_entry *entry = &to->entry[to->count];
            entry->col = s->v->index[c];
            for (int e = 0; e < 9; e++) entry->val[e] = val[m][3 * (e % 3) + e / 3];
        }
        to->count++;
    }
}

static int64_t count_cells(const un_stress_grid *s, int32_t k, int which)
{
    row_args to = {.which = which};
    around(s, k, add_cell, &to);
    return to.count;
}

void un_stress_count_bodies(const un_stress_grid *s)
{
    const un_viscosity *v = s->v;
    for (int32_t m = 0; m < 2 * s->body_count; m++) {
        int64_t count = count_cells(s, m / 2, m % 2);
        if (v->shared) count = un_ranks_total(v->ctx, count);
        if (un_stress_has_bodies(s))
            v->matrix.row[v->index[place_of(s, 0, m)] + 1] = (int32_t)count + 2;
    }
}

/* Those of all ranks; allocated. */
static un_status list_cells(const un_stress_grid *s, int32_t k, int which, body_entry **all)
{
    un_context *ctx = s->v->ctx;
    int64_t count = count_cells(s, k, which), total;
    row_args to = {.which = which, .entry = un_alloc(ctx, (size_t)count + 1, sizeof *to.entry)};
    un_status status = un_ranks_agree(ctx, to.entry ? UN_OK : UN_ERROR_MEMORY);
    *all = to.entry;
    if (status != UN_OK) return status;
    around(s, k, add_cell, &to);
    if (!s->v->shared) return UN_OK;
    void *joined = NULL;
    status = un_ranks_list(ctx, to.entry, count, sizeof *to.entry, &joined, &total);
    un_free(ctx, to.entry);
    *all = joined;
    return status;
}

typedef struct own_args {
    double own[6][6], b[6];
    const double *p; /* at cells: what pushes; NULL: stress */
} own_args;

static void add_own(own_args *to, const un_strain *e, int32_t k, double p)
{
    const double *push = e->push.by;
    if (e->push.body != k + 1) return;
    for (int i = 0; i < 6; i++) {
        to->b[i] += to->p ? p * e->volume * push[i] : -e->weight * push[i] * e->constant;
        for (int j = 0; j < 6; j++) to->own[i][j] += e->weight * push[i] * push[j];
    }
}

static void add_strains(const un_stress_grid *s, int32_t k, const int32_t at[3], void *arg)
{
    own_args *to = arg;
    un_strain e[UN_STRAINS_MAX];
    double p = to->p ? to->p[un_grid_cell(s->g, at[0], at[1], at[2])] : 0;
    for (int a = 0; a < s->g->dim; a++)
        if (un_strain_cell(s, at, a, e)) add_own(to, e, k, p);
    if (to->p) return;
    for (int a = 0; a < s->g->dim; a++)
        for (int b = a + 1; b < s->g->dim; b++) {
            int count = un_strain_edge(s, at, a, b, e);
            for (int m = 0; m < count; m++) add_own(to, &e[m], k, p);
        }
    int count = s->sliding ? un_strain_wall(s, at, e) : 0;
    for (int m = 0; m < count; m++) add_own(to, &e[m], k, p);
}

/* Over the cells of all ranks, one after the other. */
static void sum_strains(const un_stress_grid *s, int32_t k, own_args *own)
{
    un_context *ctx = s->v->ctx;
    double sums[42];
    if (s->v->shared) un_ranks_begin_turn(ctx, sums, sizeof sums);
    if (s->v->shared && un_rank(ctx) > 0) {
        memcpy(own->own, sums, sizeof own->own);
        memcpy(own->b, sums + 36, sizeof own->b);
    }
    around(s, k, add_strains, own);
    memcpy(sums, own->own, sizeof own->own);
    memcpy(sums + 36, own->b, sizeof own->b);
    if (s->v->shared) un_ranks_end_turn(ctx, sums, sizeof sums);
    memcpy(own->own, sums, sizeof own->own);
    memcpy(own->b, sums + 36, sizeof own->b);
}

/* Which motions are free, and the inertia of those. */
static void find_inertia(const un_stress_grid *s, int32_t k, double mass[6][6], bool moves[6])
{
    const un_moved_body *b = &s->body[k];
    const un_inverse_mass *inverse = &s->in->bodies->body[b->body].inverse;
    double about[9];
    memset(mass, 0, 36 * sizeof(double));
    for (int i = 0; i < 3; i++) {
        moves[i] = inverse->along[i] > 0;
        moves[3 + i] = inverse->about[i][i] > 0;
        mass[i][i] = moves[i] ? 1 / inverse->along[i] : 0;
        for (int j = 0; j < 3; j++) about[3 * i + j] = inverse->about[i][j];
    }
    un_small_inverse(about, 3, 1e-9);
    for (int c = 0; c < 9; c++) mass[3 + c / 3][3 + c % 3] = about[c] / (b->length * b->length);
}

/* The row from those of the cells, without their end: `count` of them. */
static void fill_row(const un_stress_grid *s, int32_t k, int which, const body_entry *cells)
{
    un_viscosity *v = s->v;
    int32_t row = v->index[place_of(s, k, which)], first = v->matrix.row[row];
    int32_t *col = v->matrix.col + first, count = v->matrix.row[row + 1] - first - 2;
    double(*val)[9] = v->matrix.val + first;
    for (int32_t m = 0; m < count; m++) {
        col[m] = cells[m].col;
        memcpy(val[m], cells[m].val, sizeof val[m]);
    }
    memset(v->free[row], 0, sizeof v->free[row]);
    v->x[row] = un_v3(0, 0, 0);
    v->place[row] = s->body[k].centre;
}

/* What a body is to itself and to its walls. */
static void fill_own(const un_stress_grid *s, int32_t k, int which, own_args own)
{
    un_viscosity *v = s->v;
    int32_t row = v->index[place_of(s, k, which)], end = v->matrix.row[row + 1] - 2;
    double mass[6][6], largest = 0, b[3];
    bool moves[6];
    find_inertia(s, k, mass, moves);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            own.own[i][j] = moves[i] && moves[j] ? own.own[i][j] + mass[i][j] : 0;
    for (int i = 0; i < 6; i++) largest = fmax(largest, own.own[i][i]);
    for (int i = 0; i < 6; i++)
        if (!moves[i]) own.own[i][i] = largest;
    for (int n = 0; n < 2; n++) {
        v->matrix.col[end + n] = v->index[place_of(s, k, n)];
        for (int c = 0; c < 9; c++)
            v->matrix.val[end + n][c] = own.own[3 * which + c / 3][3 * n + c % 3];
    }
    /* what is held couples to nothing */
    for (int32_t m = v->matrix.row[row]; m < end; m++)
        for (int c = 0; c < 9; c++)
            if (!moves[3 * which + c / 3]) v->matrix.val[m][c] = 0;
    for (int i = 0; i < 3; i++) {
        b[i] = moves[3 * which + i] ? own.b[3 * which + i] : 0;
        /* rigid motions of multigrid know velocities, no spins */
        if (which == 0 && moves[i]) v->free[row][4 * i] = 1;
    }
    v->b[row] = un_v3(b[0], b[1], b[2]);
}

un_status un_stress_fill_bodies(const un_stress_grid *s)
{
    for (int32_t k = 0; k < s->body_count; k++) {
        own_args own = {0};
        sum_strains(s, k, &own);
        for (int which = 0; which < 2; which++) {
            body_entry *cells;
            UN_TRY(list_cells(s, k, which, &cells));
            if (un_stress_has_bodies(s)) {
                fill_row(s, k, which, cells);
                fill_own(s, k, which, own);
            }
            un_free(s->v->ctx, cells);
        }
    }
    return UN_OK;
}

bool un_stress_body_moves(const un_stress_grid *s, int32_t k, int motion)
{
    const un_inverse_mass *m = &s->in->bodies->body[s->body[k].body].inverse;
    return motion < 3 ? m->along[motion] > 0 : m->about[motion - 3][motion - 3] > 0;
}

void un_stress_push_bodies(const un_stress_grid *s, const double *p)
{
    un_viscosity *v = s->v;
    for (int32_t k = 0; k < s->body_count; k++) {
        own_args own = {.p = p};
        sum_strains(s, k, &own);
        for (int m = 0; m < 6; m++)
            if (!un_stress_body_moves(s, k, m)) own.b[m] = 0;
        for (int which = 0; which < 2 && un_stress_has_bodies(s); which++) {
            const double *b = own.b + (ptrdiff_t)3 * which;
            un_vec3 *to = &v->b[v->index[place_of(s, k, which)]];
            *to = un_add(*to, un_v3(b[0], b[1], b[2]));
        }
    }
}
