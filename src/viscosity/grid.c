/* Viscous forces on the faces of a staggered grid: full stress, in the variational form of [Batty &
 * Bridson 2008], which has the right surface by itself.
 *
 *     (M + dt K) u = M u_old
 *
 * minimises |u - u_old|^2 in M, halved, plus dt times the work of viscous stress,
 *
 *     sum of mu V [ du_a/da ]^2 over cells + 1/2 sum of mu V [ du_a/db + du_b/da ]^2 over edges,
 *
 * V the liquid in the cube around a cell or an edge, M that around a face. Nothing is assumed about
 * the surface: where liquid ends, so does its work, and no traction is left. Both strains vanish
 * for any rigid motion, which therefore costs nothing. M + dt K is symmetric positive definite, but
 * for motions of faces beyond the surface that no liquid feels. What the solve says of these is
 * held to what the faces around them do (hold_followers).
 *
 * The three lower faces of a cell are the unknowns of one block, at its centre: velocities of a
 * rigid motion depend on no face's place along its own axis, and along the others faces and centre
 * agree. So the block solver with its rigid motions (linalg/block_sa.c) serves faces as it does
 * nodes.
 *
 * Departures from the paper:
 * - Walls lie where they are, not at the nearest face (grid_strain.c), and may let liquid slide.
 * - Mass belongs to faces that the projection has made part of the liquid. Others around it have
 *   none to speak of, and follow as the stress at the surface demands.
 * - The liquid may keep its volume by a pressure in the same solve (grid_volume.c). */
#include "viscosity/grid.h"

/* The mass of faces that only follow, as a share: a drop of nothing else still has one. */
#define FOLLOWS 1e-6
/* As in nodes.c. Faces can keep the volume better than nodes: a rod is off by 1 % at 0.05. */
#define SQUEEZED 0.05
#define ROUNDS_MAX 4
/* The same where bodies are dragged, a third of which is pressure: a light ball that rises in syrup
 * was 30 % too fast without, and is 12 %. */
#define SQUEEZED_DRAG 0.01
#define ROUNDS_MAX_DRAG 8
#define LOOSE 30.0
#define FALL 10.0

/* ---- unknowns ---- */

/* Does the grid have edges on all sides of the lower face across axis a of this cell? */
static bool is_face(const un_grid *g, const int32_t at[3], int a)
{
    for (int b = 0; b < g->dim; b++)
        if (at[b] < 1 || at[b] > g->n[b] - (b == a ? 1 : 2)) return false;
    return true;
}

static bool touches_liquid(const un_stress_grid *s, int64_t c, int a)
{
    const un_viscous_grid *in = s->in;
    const float *mu = in->viscosity;
    int64_t sa = s->g->stride[a];
    if (un_stress_cell(s, c, mu, in->viscosity_all) > 0) return true;
    if (un_stress_cell(s, c - sa, mu, in->viscosity_all) > 0) return true;
    for (int b = 0; b < s->g->dim; b++) {
        if (b == a) continue;
        if (un_stress_edge(s, c, a, b, mu, in->viscosity_all) > 0) return true;
        if (un_stress_edge(s, c + s->g->stride[b], a, b, mu, in->viscosity_all) > 0) return true;
    }
    return false;
}

static void find_unknowns(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    const un_grid *g = s->g;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            s->solved[c] = 0;
            s->v->index[c] = -1;
            for (int a = 0; a < g->dim && s->near[c]; a++) {
                if (s->kind[a][c] != UN_FACE_OPEN || !is_face(g, at, a)) continue;
                if (touches_liquid(s, c, a)) s->solved[c] |= (uint8_t)(1 << a);
            }
            s->v->index[c] = s->solved[c] ? 0 : -1;
        }
    }
}

static void count_liquid(void *arg, int64_t begin, int64_t end, double *count)
{
    const un_stress_grid *s = arg;
    for (int64_t c = begin; c < end; c++) *count += s->near[c] && un_stress_cell(s, c, NULL, 1) > 0;
}

/* ---- rows ---- */

static inline bool is_solved(const un_stress_grid *s, int axis, int64_t c)
{
    return s->solved[c] >> axis & 1;
}

/* Adds what strain e does to the face across axis a of cell c. val NULL: only finds which cells. */
static inline void add_strain(const un_stress_grid *s, const un_strain *e, int a, int64_t c,
                              un_row *r, double (*val)[9], double *b)
{
    double own = un_strain_of(e, a, c) * e->weight;
    if (own == 0) return;
    for (int k = 0; k < e->count; k++) {
        int64_t m = e->cell[k];
        if (!is_solved(s, e->axis[k], m)) continue;
        if (!val)
            un_row_find(r, (int32_t)m);
        else
            un_row_at(r, val[0], 9, (int32_t)m)[3 * a + e->axis[k]] += own * e->coef[k];
    }
    for (int n = 0; n < 2 && e->push.body > 0; n++) {
        int32_t place = (int32_t)s->g->cell_count + 2 * (e->push.body - 1) + n;
        if (!val) {
            un_row_find(r, place);
            continue;
        }
        double *at = un_row_at(r, val[0], 9, place);
        for (int m = 0; m < 3; m++)
            if (un_stress_body_moves(s, e->push.body - 1, 3 * n + m))
                at[3 * a + m] += own * e->push.by[3 * n + m];
    }
    if (val) b[a] -= own * e->constant;
}

void un_stress_row(const un_stress_grid *s, int64_t c, un_row *r, double (*val)[9], double b[3])
{
    const un_grid *g = s->g;
    int32_t at[3];
    un_strain e[UN_STRAINS_MAX];
    un_stress_at(g, c, at);
    un_row_begin(r);
    un_row_find(r, (int32_t)c);
    if (val) memset(val[0], 0, sizeof val[0]);
    for (int a = 0; a < g->dim; a++) {
        if (!is_solved(s, a, c)) continue;
        for (int side = 0; side < 2; side++) {
            int32_t next[3] = {at[0], at[1], at[2]};
            next[a] -= side;
            if (un_strain_cell(s, next, a, e)) add_strain(s, e, a, c, r, val, b);
            int count = s->sliding ? un_strain_wall(s, next, e) : 0;
            for (int k = 0; k < count; k++) add_strain(s, &e[k], a, c, r, val, b);
        }
        for (int other = 0; other < g->dim; other++)
            for (int side = 0; side < 2 && other != a; side++) {
                int32_t next[3] = {at[0], at[1], at[2]};
                next[other] += side;
                int count = un_strain_edge(s, next, a, other, e);
                for (int k = 0; k < count; k++) add_strain(s, &e[k], a, c, r, val, b);
            }
    }
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    un_row row;
    for (int64_t r = begin; r < end; r++) {
        int64_t c = s->v->node[r];
        if (c >= s->g->cell_count) continue;
        un_stress_row(s, c, &row, NULL, NULL);
        s->v->matrix.row[r + 1] = row.count;
    }
}

static double face_mass(const un_stress_grid *s, int64_t c, int a)
{
    const un_viscous_grid *in = s->in;
    double mass = un_stress_face(s, c, a, in->density, in->density_all);
    return (in->known[a][c] == 1 ? mass : FOLLOWS * mass) * s->g->volume;
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    const un_viscous_grid *in = s->in;
    un_viscosity *v = s->v;
    double *const *guess = in->guess ? in->guess : in->u;
    un_row row;
    double val[UN_ROW_MAX][9];
    for (int64_t r = begin; r < end; r++) {
        int64_t c = v->node[r];
        int32_t at[3];
        double b[3] = {0}, x[3] = {0}, largest = 0;
        if (c >= s->g->cell_count) continue;
        un_stress_row(s, c, &row, val, b);
        memset(v->free[r], 0, sizeof v->free[r]);
        for (int a = 0; a < s->g->dim; a++) {
            if (!is_solved(s, a, c)) continue;
            double mass = face_mass(s, c, a);
            val[0][4 * a] += mass;
            b[a] += mass * in->u[a][c];
            x[a] = guess[a][c];
            largest = fmax(largest, val[0][4 * a]);
            v->free[r][4 * a] = 1;
        }
        /* What is not solved for is zero. */
        for (int a = 0; a < 3; a++)
            if (!(v->free[r][4 * a] > 0)) val[0][4 * a] = largest;
        int32_t first = v->matrix.row[r];
        un_row_store(&row, val[0], 9, v->index, v->matrix.col + first, v->matrix.val[first]);
        un_stress_at(s->g, c, at);
        v->b[r] = un_v3(b[0], b[1], b[2]);
        v->x[r] = un_v3(x[0], x[1], x[2]);
        v->place[r] = un_grid_center(s->g, at[0], at[1], at[2]);
    }
}

static void store(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t c = s->v->node[r];
        double x[3] = {s->v->x[r].x, s->v->x[r].y, s->v->x[r].z};
        if (c >= s->g->cell_count) {
            int32_t k = (int32_t)(c - s->g->cell_count);
            memcpy(s->body[k / 2].change + (ptrdiff_t)3 * (k % 2), x, sizeof x);
            continue;
        }
        for (int a = 0; a < s->g->dim; a++)
            if (is_solved(s, a, c)) s->in->u[a][c] = x[a];
    }
}

/* Liquid in emitters and at walls that it sticks to. Faces whose centre lies in a wall may still be
 * open in part: if they kept the velocity of the projection before, liquid would slip there. */
static void store_held(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    for (int64_t c = begin; c < end; c++)
        for (int a = 0; a < s->g->dim && s->near[c]; a++) {
            int32_t at[3];
            if (s->kind[a][c] != UN_FACE_EMITS && s->kind[a][c] != UN_FACE_STICKS) continue;
            un_stress_at(s->g, c, at);
            if (is_face(s->g, at, a) && touches_liquid(s, c, a))
                s->in->u[a][c] = un_stress_held(s, a, at);
        }
}

/* ---- the solve ---- */

#define NEED(v, array, which, count)                                                               \
    UN_TRY(un_array_need((v)->ctx, (void **)&(array), &(v)->capacity[which], (size_t)(count) + 1,  \
                         sizeof *(array)))

static un_status begin(un_stress_grid *s, un_arena *arena, un_viscosity *v,
                       const un_viscous_grid *in)
{
    const un_grid *g = in->walls->grid;
    size_t cells = (size_t)g->cell_count;
    const un_bodies *bodies = in->walls->bodies;
    *s = (un_stress_grid){.in = in, .g = g, .v = v, .snap = 1e-6 * g->h};
    for (int32_t b = 0; b < bodies->count; b++) s->sliding |= bodies->body[b].slip > 0;
    s->near = un_arena_alloc(arena, cells, 1);
    if (!s->near) return UN_ERROR_MEMORY;
    UN_TRY(un_array_need(v->ctx, (void **)&v->solved, &v->capacity_solved, cells, 1));
    s->solved = v->solved;
    v->shared = g->bars != NULL;
    if (v->curve.rows[0] != g->n[1] || v->curve.rows[1] != g->n[2]) {
        un_curve_free(v->ctx, &v->curve);
        UN_TRY(un_curve_init(&v->curve, v->ctx, g->n[1], g->n[2]));
    }
    for (int a = 0; a < g->dim; a++) {
        s->kind[a] = un_arena_alloc(arena, cells, 1);
        if (!s->kind[a]) return UN_ERROR_MEMORY;
        if (!in->walls->body) continue;
        s->wall[a] = un_arena_alloc(arena, cells, sizeof *s->wall[a]);
        if (!s->wall[a]) return UN_ERROR_MEMORY;
    }
    return UN_OK;
}

/* What cells and faces are. */
static un_status look_around(un_stress_grid *s, un_arena *arena)
{
    s->share = un_arena_alloc(arena, (size_t)s->g->cell_count << s->g->dim, sizeof *s->share);
    s->open = un_arena_alloc(arena, (size_t)s->g->cell_count << s->g->dim, sizeof *s->open);
    if (!s->share || !s->open) return UN_ERROR_MEMORY;
    UN_TRY(un_stress_share_input(s));
    un_stress_find_shares(s);
    un_stress_spread(s, s->solved);
    un_stress_find_kinds(s);
    return UN_OK;
}

static un_status assemble(un_stress_grid *s, un_viscous_report *report)
{
    un_viscosity *v = s->v;
    un_block_csr *m = &v->matrix;
    int64_t places = s->g->cell_count + 2 * s->body_count;
    double liquid;
    NEED(v, v->index, 0, places);
    un_stress_over_rows(s, UN_STRESS_KINDS, find_unknowns, s);
    un_stress_sums(s, 1, count_liquid, s, &liquid);
    report->tet_count = (int32_t)liquid;
    UN_TRY(un_stress_number(s));
    report->node_count = m->n;
    NEED(v, m->row, 2, m->n);
    NEED(v, v->b, 3, m->n);
    NEED(v, v->x, 4, m->n);
    NEED(v, v->place, 5, m->n);
    UN_TRY(un_array_need(v->ctx, (void **)&v->free, &v->capacity_free, (size_t)m->n + 1,
                         sizeof *v->free));
    un_stress_over_unknowns(s, count_entries, s);
    un_stress_count_bodies(s);
    UN_TRY(un_stress_start_rows(s));
    NEED(v, m->col, 6, m->row[m->n]);
    NEED(v, m->val, 7, m->row[m->n]);
    un_stress_over_unknowns(s, fill_rows, s);
    return un_stress_fill_bodies(s);
}

static un_status solve_once(un_stress_grid *s, double tolerance, un_viscous_report *report)
{
    un_viscosity *v = s->v;
    UN_TRY(un_viscosity_round(v, true, tolerance, s->in->iteration_limit, &report->solve));
    if (!report->solve.finite) return UN_OK;
    un_stress_over_unknowns(s, store, s);
    un_stress_tell_bodies(s);
    return un_stress_share_velocities(s);
}

static un_status solve_rounds(un_stress_grid *s, un_arena *arena, un_viscous_report *report)
{
    const un_viscous_grid *in = s->in;
    un_grid_volume keep;
    double least = s->body_count > 0 ? SQUEEZED_DRAG : SQUEEZED;
    int32_t rounds = s->body_count > 0 ? ROUNDS_MAX_DRAG : ROUNDS_MAX;
    UN_TRY(un_grid_volume_begin(&keep, arena, s));
    /* The first rounds need not be exact; the last one is. */
    for (double loose = LOOSE;;) {
        UN_TRY(solve_once(s, loose * in->tolerance, report));
        if (!report->solve.finite) return UN_OK;
        report->squeezed = un_grid_volume_error(&keep, s);
        bool enough = report->squeezed < least || report->rounds == rounds;
        if (enough && loose == 1) return UN_OK;
        loose = enough ? 1 : fmax(1, loose / FALL);
        if (enough) continue;
        UN_TRY(un_grid_volume_push(&keep, s));
        report->rounds++;
    }
}

/* ---- faces that no liquid feels ---- */

/* Faces that only follow have hardly any mass. Three that meet in a corner may turn about it
 * without any strain, and then round-off says how fast: particles beyond the surface went at 1e8
 * m/s with them. Such a face takes no value farther from those of the liquid's faces within two
 * cells than these differ among themselves. */
static void hold_followers(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    const un_grid *g = s->g;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            for (int a = 0; a < g->dim && s->solved[c]; a++) {
                if (!is_solved(s, a, c) || s->in->known[a][c] == 1) continue;
                double *u = s->in->u[a], lo = INFINITY, hi = -INFINITY;
                for (int n = 0; n < (g->dim == 2 ? 25 : 125); n++) {
                    int32_t i = at[0] + n % 5 - 2, j = at[1] + n / 5 % 5 - 2, k = at[2];
                    if (g->dim == 3) k += n / 25 - 2;
                    if (i < 0 || j < 0 || k < 0 || i >= g->n[0] || j >= g->n[1] || k >= g->n[2])
                        continue;
                    int64_t m = un_grid_cell(g, i, j, k);
                    if (!is_solved(s, a, m) || s->in->known[a][m] != 1) continue;
                    lo = fmin(lo, u[m]);
                    hi = fmax(hi, u[m]);
                }
                if (lo <= hi)
                    u[c] = un_clamp(u[c], 2 * lo - hi, 2 * hi - lo);
                else if (s->in->guess)
                    u[c] = s->in->guess[a][c];
            }
        }
    }
}

static void sum_momentum(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_stress_grid *s = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t c = s->v->node[r];
        for (int a = 0; a < s->g->dim && c < s->g->cell_count; a++)
            if (is_solved(s, a, c)) sums[a] += face_mass(s, c, a) * s->in->u[a][c];
    }
}

/* Of the faces that are solved for, if there are bodies. */
static un_vec3 momentum(un_stress_grid *s)
{
    double sums[3] = {0, 0, 0};
    if (s->body_count > 0) un_viscosity_sums(s->v, 3, sum_momentum, s, sums);
    return un_v3(sums[0], sums[1], sums[2]);
}

un_status un_viscosity_solve_grid(un_viscosity *v, un_arena *arena, const un_viscous_grid *in,
                                  un_viscous_report *report)
{
    double start = un_seconds();
    un_stress_grid s;
    *report = (un_viscous_report){.solve = {.converged = true, .finite = true}};
    UN_ASSERT(in->dt >= 0 && (in->density || in->density_all > 0));
    UN_TRY(begin(&s, arena, v, in));
    UN_TRY(un_stress_find_bodies(&s, arena));
    UN_TRY(look_around(&s, arena));
    UN_TRY(assemble(&s, report));
    report->seconds_assembly = un_seconds() - start;
    un_vec3 before = momentum(&s);
    if (in->keeps_volume && v->matrix.n > 0) {
        UN_TRY(solve_rounds(&s, arena, report));
    } else {
        un_runs own = un_grid_own_cells(s.g, 0);
        for (un_part run; in->p && un_runs_next(&own, &run);)
            memset(in->p + run.begin, 0, (size_t)(run.end - run.begin) * sizeof *in->p);
        UN_TRY(solve_once(&s, in->tolerance, report));
    }
    if (!report->solve.finite) return UN_OK;
    if (s.body_count > 0)
        report->impulse =
            un_sub(un_sub(momentum(&s), before), un_viscosity_left_over(v, s.g->cell_count));
    un_stress_move_bodies(&s);
    un_stress_over_cells(&s, store_held, &s);
    un_stress_over_rows(&s, 0, hold_followers, &s);
    return un_stress_share_velocities(&s);
}

double un_viscosity_grid_bytes(const un_grid *grid, double cells)
{
    /* shares, kinds, solved, index, pressures; rows of 13 (2D: 7) blocks, vectors, projections */
    double everywhere =
        (double)grid->cell_count * ((8 << grid->dim) + 2 + 5 * grid->dim + 4 + 3 * 8);
    double blocks = grid->dim == 2 ? 7 : 13, coarse = grid->dim == 2 ? 0.4 : 1; /* measured */
    return everywhere + cells * (blocks * (72 + 4) + 3 * 24 + 72 + 8) +
           coarse * un_block_solver_bytes(cells);
}

typedef struct mark_args {
    const un_viscosity *v;
    uint8_t *const *known;
} mark_args;

static void mark_cells(void *arg, int64_t begin, int64_t end)
{
    mark_args *m = arg;
    for (int64_t c = begin; c < end; c++)
        for (int a = 0; a < 3; a++)
            if (m->v->solved[c] >> a & 1 && !m->known[a][c]) m->known[a][c] = 2;
}

void un_viscosity_mark_grid(const un_viscosity *v, const un_grid *grid, uint8_t *const known[3])
{
    mark_args m = {v, known};
    un_parallel_runs(v->ctx, un_grid_own_cells(grid, 0), un_block_grain(grid->cell_count),
                     mark_cells, &m);
}

/* ---- walls as particles see them ---- */

typedef struct stick_args {
    un_stress_grid s;
    double *const *u;
} stick_args;

/* The ghost of a face in a wall: beyond the wall by so many cells for each cell before it. More
 * would blow up noise. */
#define GHOST_MAX 1.5

static void stick_rows(void *arg, int64_t begin, int64_t end)
{
    stick_args *k = arg;
    const un_stress_grid *s = &k->s;
    const un_grid *g = s->g;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            for (int a = 0; a < g->dim && s->near[c]; a++) {
                if (s->kind[a][c] != UN_FACE_STICKS) continue;
                double sum = 0, count = 0;
                for (int side = 0; side < 2 * g->dim; side++) {
                    int32_t next[3] = {at[0], at[1], at[2]};
                    int b = side / 2;
                    next[b] += side & 1 ? 1 : -1;
                    if (!is_face(g, next, a)) continue;
                    int64_t m = un_grid_cell(g, next[0], next[1], next[2]);
                    if (!is_solved(s, a, m)) continue;
                    un_ghost ghost = un_stress_ghost(s, a, b, next, at, side & 1 ? -1 : 1);
                    double beyond = fmin((1 - ghost.theta) / ghost.theta, GHOST_MAX);
                    sum += ghost.speed + beyond * (ghost.speed - k->u[a][m]);
                    count++;
                }
                if (count > 0) k->u[a][c] = sum / count;
            }
        }
    }
}

static void find_solved(void *arg, int64_t begin, int64_t end)
{
    un_stress_grid *s = arg;
    for (int64_t c = begin; c < end; c++) s->near[c] = s->solved[c] > 0;
}

un_status un_viscosity_stick_grid(un_viscosity *v, un_arena *arena, const un_viscous_grid *in,
                                  double *const u[3], double *const other[3])
{
    stick_args k = {.u = u};
    UN_TRY(begin(&k.s, arena, v, in));
    uint8_t *scratch = un_arena_alloc(arena, (size_t)k.s.g->cell_count, 1);
    if (!scratch) return UN_ERROR_MEMORY;
    un_runs wide = un_grid_own_cells(k.s.g, UN_STRESS_SHARES);
    for (un_part run; un_runs_next(&wide, &run);)
        memset(k.s.near + run.begin, 0, (size_t)(run.end - run.begin));
    un_parallel_runs(v->ctx, un_grid_own_cells(k.s.g, UN_STRESS_KINDS), 16384, find_solved, &k.s);
    un_stress_spread(&k.s, scratch);
    un_stress_find_kinds(&k.s);
    un_stress_over_rows(&k.s, 0, stick_rows, &k);
    k.u = other;
    if (other) un_stress_over_rows(&k.s, 0, stick_rows, &k);
    return UN_OK;
}
