/* Viscous forces on nodal velocities: finite volumes of the full stress [Batty11 sections 3 and 4].
 *
 *     rho du/dt = div tau,   tau = mu (grad u + grad u^T),   tau n = 0 at the surface,
 *     u = u_solid at walls
 *
 * Velocity is linear in each tet, so stress is constant there. Testing with hat functions gives the
 * forces on nodes [eq. 7]; with backward Euler [eq. 8]
 *
 *     (M + dt K) v = M v_old,
 *     K_ij = sum_t mu_t V_liquid [ (g_i . g_j) 1 + g_j g_i^T ],   g_i = grad N_i in t
 *
 * symmetric, and positive definite because M is. Tets outside the liquid are left out, and those
 * that the surface cuts count only with the liquid in them: no forces from outside, that is, zero
 * traction.
 *
 * Departures from the paper:
 * - The mass of the liquid in a tet goes to nodes by the integrals of their hat functions, not
 *   evenly: its centre of mass is kept.
 * - A tet with a stuck node counts as a whole, not only its open part: stress between the nodes and
 *   the wall must reach it. It is stiffer by what the distance to the wall says (grip): the wall is
 *   where it is, not at the node.
 * - Bodies that the liquid moves are dragged (nodes_bodies.c).
 * - Walls may let the liquid slide [Navier]: u.n = u_solid.n, and along the wall the traction is
 *   mu / slip times the velocity relative to it. With P = 1 - n n^T, u = P v + c at such nodes,
 *   where c is the solid's part along n: rows and columns are projected, and the diagonal gets n
 *   n^T.
 * - The liquid may keep its volume by a pressure in the same solve (volume.c).
 * - A node has no equation if none of the liquid around it is viscous: water costs nothing.
 *
 * Over ranks each finds the rows of its own nodes (nodes_ranks.c). */
#include "viscosity/fit.h"

/* Tets with less than this share of liquid count as empty: their nodes would have almost no
 * mass. */
#define LIQUID_MIN 1e-3
/* Nodes very near to a wall stick to it, but not infinitely stiffly. */
#define GRIP_MAX 20.0
#define GRIP_MIN 0.5
/* SQUEEZED: divergence over strain at which volume is kept well enough; two or three rounds reach
 * it. Motion that cells cannot resolve leaves some 0.05 however many rounds there are. Liquid that
 * drags bodies goes on to SQUEEZED_DRAG: a third of the drag on a ball is pressure, and it sank 7 %
 * faster without. LOOSE: the
 * tolerance of the first round over that of the last; each round lowers it by FALL. */
#define SQUEEZED 0.1
#define SQUEEZED_DRAG 0.02
#define ROUNDS_MAX 4
#define ROUNDS_MAX_DRAG 8
#define LOOSE 30.0
#define FALL 10.0

static inline uint8_t wall_kind(const un_stress_nodes *s, int64_t n)
{
    return s->in->walls ? s->in->walls->kind[n] : UN_WALL_NONE;
}

/* ---- tets ---- */

/* How much stiffer a tet with stuck nodes is than a whole one of liquid. With phi the distance to
 * the wall, liquid near it has the velocity u_wall + phi s. Stuck nodes in the wall make that
 * u_wall
 * + phi+ s, with phi+ zero in the wall: too little strain. The stress is to be that of phi, so that
 * forces on the nodes outside balance as they do in the liquid. */
static double grip(const un_stress_nodes *s, int32_t t)
{
    const un_tets *m = s->mesh;
    const int32_t *n = m->tet[t];
    const un_tet_walls *walls = s->in->tet_walls;
    double phi[4], positive[4];
    bool solid = false;
    for (int i = 0; i < 4 && walls && walls->phi_solid; i++)
        solid |= wall_kind(s, n[i]) == UN_WALL_STICKS && walls->phi_solid[n[i]] <= 0;
    if (!walls) return 1;
    for (int i = 0; i < 4; i++) {
        phi[i] = (double)(solid ? walls->phi_solid : walls->phi)[n[i]];
        positive[i] = fmax(phi[i], 0);
        if (phi[i] > 0 && wall_kind(s, n[i]) == UN_WALL_STICKS) return 1; /* an emitter or a side */
    }
    un_vec3 slope = un_tets_gradient(m, t, phi), stuck = un_tets_gradient(m, t, positive);
    double along = un_dot(slope, stuck), square = un_dot(stuck, stuck);
    return along < GRIP_MAX * square ? fmax(along / square, GRIP_MIN) : GRIP_MAX;
}

/* Between corner i of a tet and the others. */
static void measure_stress(double stress[4][9], const un_tet_shape *shape, int i, bool laplacian)
{
    for (int j = 0; j < 4; j++) {
        const double *g = shape->gradient[i], *h = shape->gradient[j];
        double dot = g[0] * h[0] + g[1] * h[1] + g[2] * h[2];
        for (int c = 0; c < 9; c++) {
            double cross = laplacian ? 0 : g[c % 3] * h[c / 3];
            stress[j][c] = shape->volume * (cross + (c % 4 == 0 ? dot : 0));
        }
    }
}

const double (*un_stress_of(const un_stress_nodes *s, int32_t t, int i, double (*room)[9]))[9]
{
    const un_tets *m = s->mesh;
    if (m->own_count == 0 || m->own_first[t + 1] == m->own_first[t])
        return s->v->stress[m->shape[t]] + (ptrdiff_t)4 * i;
    measure_stress(room, un_tets_shape(m, t), i, s->in->laplacian);
    return room;
}

static void make_table(un_stress_nodes *s)
{
    for (int32_t k = 0; k < s->mesh->shape_count; k++)
        for (ptrdiff_t i = 0; i < 4; i++)
            measure_stress(s->v->stress[k] + 4 * i, &s->mesh->shapes[k], (int)i, s->in->laplacian);
}

/* What a tet is to the liquid. */
typedef struct tet_look {
    double liquid, open; /* shares of its volume, and of that */
    double mu;           /* Pa s */
    bool stuck;          /* any of its nodes is */
} tet_look;

/* True if there is stress in it. */
static bool look_at_tet(const un_viscous_def *in, int64_t t, tet_look *look)
{
    const int32_t *n = in->mesh->tet[t];
    double depth[4];
    bool all_walls = true, told = true;
    *look = (tet_look){.open = in->tet_walls ? in->tet_walls->open[t] : 1};
    for (int i = 0; i < 4; i++) {
        bool sticks = in->walls && in->walls->kind[n[i]] == UN_WALL_STICKS;
        depth[i] = -(double)in->phi[n[i]];
        look->stuck |= sticks;
        all_walls &= sticks;
        told &= sticks || !in->told || in->told[n[i]];
    }
    look->liquid = un_tet_fraction(depth);
    look->mu = un_viscous_mean(in->viscosity, n, in->viscosity_all);
    return look->liquid >= LIQUID_MIN && look->open > 0 && !all_walls && told && look->mu > 0;
}

bool un_viscous_has_stress(const un_viscous_def *in, int32_t t)
{
    tet_look look;
    return look_at_tet(in, t, &look);
}

static double weigh_tets(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    const un_viscous_def *in = s->in;
    double count = 0;
    for (int64_t t = begin; t < end; t++) {
        tet_look look;
        bool stressed = look_at_tet(in, t, &look);
        s->share[t] = (float)(look.liquid * look.open);
        s->whole[t] = (float)(look.liquid * (look.stuck ? 1 : look.open));
        s->stiff[t] = 0;
        if (!stressed) continue;
        s->stiff[t] = in->dt * look.mu * look.liquid *
                      (look.stuck ? grip(s, (int32_t)t) : look.open) *
                      un_tets_size(s->mesh, (int32_t)t);
        count++;
    }
    return count;
}

static void weigh_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    const un_tets *m = s->mesh;
    const un_viscous_def *in = s->in;
    for (int64_t n = begin; n < end; n++) {
        double sum = 0;
        bool any = false;
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            if (!(s->share[t] > 0)) continue;
            const int32_t *node = m->tet[t];
            double depth[4], integral[4];
            for (int i = 0; i < 4; i++) depth[i] = -(double)in->phi[node[i]];
            un_tet_open_integrals(depth, integral);
            double open = in->tet_walls ? in->tet_walls->open[t] : 1;
            sum += integral[m->corner[e] % 4] * open * un_tets_volume(m, t) *
                   un_viscous_mean(in->density, node, in->density_all);
            any |= s->stiff[t] > 0;
        }
        s->mass[n] = in->fit ? sum * UN_FIT_FOLLOWS : sum;
        s->v->index[n] = any && wall_kind(s, n) != UN_WALL_STICKS ? 0 : -1;
        if (in->reached) in->reached[n] = any;
        /* At walls only nodes that touch viscous liquid get the wall's velocity. */
        if (!any || wall_kind(s, n) != UN_WALL_STICKS) continue;
        if (s->slip) s->slip[n] = un_sub(in->u[n], in->walls->u[n]);
        in->u[n] = in->walls->u[n];
    }
}

/* ---- rows ---- */

/* Rows are projected onto free directions. */
static bool has_free(const un_stress_nodes *s)
{
    return s->dragged_count > 0 || (s->in->walls && s->in->walls->slides);
}

/* Row of node n, itself first: couplings to unknowns go into the row, those to stuck nodes into b.
 * val NULL: only finds which nodes. */
static inline void gather_row(const un_stress_nodes *s, int64_t n, un_row *r, double (*val)[9],
                              un_vec3 *b)
{
    const un_tets *m = s->mesh;
    double own[4][9]; /* of a tet with a moved node */
    un_row_begin(r);
    un_row_find(r, (int32_t)n);
    if (val) memset(val[0], 0, sizeof val[0]);
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4, i = m->corner[e] % 4;
        double stiff = s->stiff[t];
        if (!(stiff > 0)) continue;
        const int32_t *node = m->tet[t];
        int32_t body = un_dragged_in(s, t);
        const double(*stress)[9] = un_stress_of(s, t, i, own);
        for (int j = 0; j < 4; j++) {
            const double *k = stress[j];
            if (s->v->index[node[j]] >= 0) {
                if (!val) {
                    un_row_find(r, node[j]);
                    continue;
                }
                double *at = un_row_at(r, val[0], 9, node[j]);
                for (int c = 0; c < 9; c++) at[c] += stiff * k[c];
            } else if (val) {
                un_vec3 u = s->in->u[node[j]];
                b->x -= stiff * (k[0] * u.x + k[1] * u.y + k[2] * u.z);
                b->y -= stiff * (k[3] * u.x + k[4] * u.y + k[5] * u.z);
                b->z -= stiff * (k[6] * u.x + k[7] * u.y + k[8] * u.z);
            }
            if (!un_dragged_has(s, body, node[j])) continue;
            for (int which = 0; which < 2; which++) {
                int32_t place = un_dragged_place(s, body, which);
                if (!val) {
                    un_row_find(r, place);
                    continue;
                }
                double motion[9], product[9], *at = un_row_at(r, val[0], 9, place);
                un_dragged_motion(&s->dragged[body], m->x[node[j]], which, motion);
                un_block_product(product, k, motion);
                for (int c = 0; c < 9; c++) at[c] += stiff * product[c];
            }
        }
    }
    if (s->in->fit) un_fit_row(s, n, r, val, b);
}

/* Adds drag along the wall, and projects the row onto the free directions on both sides. */
static void slide_row(const un_stress_nodes *s, int64_t n, const un_row *r, double (*val)[9],
                      un_vec3 *b)
{
    const un_viscous_walls *w = s->in->walls;
    const un_tets *m = s->mesh;
    if (w->kind[n] == UN_WALL_SLIDES) {
        double drag = 0;
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            if (!(s->stiff[t] > 0)) continue;
            double mu = un_viscous_mean(s->in->viscosity, m->tet[t], s->in->viscosity_all);
            double liquid = s->share[t] / (double)s->in->tet_walls->open[t];
            drag += s->in->dt * mu * liquid *
                    un_viscous_wall_drag(s->in->tet_walls, t, m->corner[e] % 4);
        }
        for (int c = 0; c < 9; c += 4) val[0][c] += drag;
        *b = un_mad(*b, w->u[n], drag);
    }
    un_viscous_free_row(w, m->node_count, n, r, val, b);
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    un_row row;
    for (int64_t r = begin; r < end; r++) {
        row.count = 0;
        if (s->v->node[r] < s->mesh->node_count) gather_row(s, s->v->node[r], &row, NULL, NULL);
        s->v->matrix.row[r + 1] = row.count;
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    un_viscosity *v = s->v;
    const un_viscous_walls *w = s->in->walls;
    un_row row;
    double val[UN_ROW_MAX][9];
    for (int64_t r = begin; r < end; r++) {
        int64_t n = v->node[r];
        if (n >= s->mesh->node_count) return; /* bodies come last: nodes_bodies.c */
        un_vec3 u = s->in->u[n], b = un_scale(u, s->mass[n]);
        gather_row(s, n, &row, val, &b);
        for (int c = 0; c < 9; c += 4) val[0][c] += s->mass[n];
        if (has_free(s))
            for (int c = 0; c < 9; c++) v->free[r][c] = c % 4 == 0;
        if (w && w->slides) {
            slide_row(s, n, &row, val, &b);
            if (w->kind[n] == UN_WALL_SLIDES) memcpy(v->free[r], w->free[n], sizeof v->free[r]);
            if (w->kind[n] == UN_WALL_SLIDES) u = un_block_times(w->free[n], u);
        }
        int32_t first = v->matrix.row[r];
        un_row_store(&row, val[0], 9, v->index, v->matrix.col + first, v->matrix.val[first]);
        v->b[r] = b;
        v->x[r] = u;
        v->place[r] = s->mesh->x[n];
        v->mass[r] = s->mass[n];
    }
}

static void store(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    const un_viscous_walls *w = s->in->walls;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = s->v->node[r];
        if (n >= s->mesh->node_count) return;
        s->in->u[n] = s->v->x[r];
        if (w && w->kind[n] == UN_WALL_SLIDES)
            s->in->u[n] = un_add(un_block_times(w->free[n], s->v->x[r]), un_viscous_given(w, n));
    }
}

/* ---- the solve ---- */

#define NEED(v, array, which, count)                                                               \
    UN_TRY(un_array_need((v)->ctx, (void **)&(array), &(v)->capacity[which], (size_t)(count) + 1,  \
                         sizeof *(array)))

static un_status begin_unknowns(un_stress_nodes *s, un_arena *arena)
{
    un_viscosity *v = s->v;
    int64_t nodes = s->mesh->node_count, tets = s->mesh->tet_count;
    s->stiff = un_arena_alloc(arena, (size_t)tets + 1, sizeof *s->stiff);
    s->share = un_arena_alloc(arena, (size_t)tets + 1, sizeof *s->share);
    s->whole = un_arena_alloc(arena, (size_t)tets + 1, sizeof *s->whole);
    s->mass = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *s->mass);
    if (!s->stiff || !s->share || !s->whole || !s->mass) return UN_ERROR_MEMORY;
    v->shared = s->mesh->share != NULL;
    UN_TRY(un_dragged_find(s, arena));
    NEED(v, v->index, 0, nodes + 2 * s->dragged_count);
    NEED(v, v->stress, 8, s->mesh->shape_count);
    return UN_OK;
}

static un_status choose_unknowns(un_stress_nodes *s, un_arena *arena, un_viscous_report *report)
{
    un_viscosity *v = s->v;
    un_context *ctx = v->ctx;
    int64_t tets = s->mesh->tet_count;
    UN_TRY(un_tets_agree(s->mesh, begin_unknowns(s, arena)));
    if (s->mesh->share) { /* nodes that nobody asks for have no unknowns */
        memset(v->index, 0xff, (size_t)s->mesh->node_count * sizeof *v->index);
        if (s->in->reached) memset(s->in->reached, 0, (size_t)s->mesh->node_count);
    }
    make_table(s);
    report->tet_count = tets > 0 ? (int32_t)un_parallel_sum(ctx, tets, weigh_tets, s) : 0;
    un_parallel_part(ctx, un_tets_own_nodes(s->mesh), 1024, weigh_nodes, s);
    UN_TRY(un_dragged_gather(s, arena));
    UN_TRY(un_viscous_share_unknowns(s));
    UN_TRY(un_viscous_number(s));
    report->node_count = v->matrix.n;
    return UN_OK;
}

static un_status need_rows(un_stress_nodes *s)
{
    un_viscosity *v = s->v;
    un_block_csr *m = &v->matrix;
    size_t n = (size_t)m->n;
    NEED(v, m->row, 2, n);
    NEED(v, v->b, 3, n);
    NEED(v, v->x, 4, n);
    NEED(v, v->place, 5, n);
    NEED(v, v->mass, 9, n);
    if (has_free(s))
        UN_TRY(un_array_need(v->ctx, (void **)&v->free, &v->capacity_free, n + 1, sizeof *v->free));
    return UN_OK;
}

static un_status start_rows(un_viscosity *v)
{
    static const char what[] = "nodes of viscous liquid";
    if (v->shared) return un_rows_start_own(v->ctx, v->matrix.row, v->rows, what);
    return un_rows_start(v->ctx, v->matrix.row, v->matrix.n, what);
}

static un_status need_entries(un_viscosity *v)
{
    un_block_csr *m = &v->matrix;
    NEED(v, m->col, 6, m->row[m->n]);
    NEED(v, m->val, 7, m->row[m->n]);
    return UN_OK;
}

static un_status assemble(un_stress_nodes *s, un_arena *arena)
{
    un_viscosity *v = s->v;
    un_part own = un_viscosity_rows(v);
    int64_t grain = un_block_grain(v->matrix.n);
    UN_TRY(un_tets_agree(s->mesh, need_rows(s)));
    un_parallel_part(v->ctx, own, grain, count_entries, s);
    UN_TRY(un_dragged_count(s, arena));
    UN_TRY(start_rows(v));
    UN_TRY(un_tets_agree(s->mesh, need_entries(v)));
    un_parallel_part(v->ctx, own, grain, fill_rows, s);
    return un_dragged_fill(s);
}

static un_status begin(un_stress_nodes *s, un_arena *arena, un_viscous_report *report)
{
    const un_viscous_def *in = s->in;
    double start = un_seconds();
    *report = (un_viscous_report){.solve = {.converged = true, .finite = true}};
    UN_ASSERT(in->dt >= 0 && (in->density || in->density_all > 0));
    UN_ASSERT(!in->walls || !in->walls->slides || in->tet_walls);
    UN_TRY(choose_unknowns(s, arena, report));
    UN_TRY(assemble(s, arena));
    report->seconds_assembly = un_seconds() - start;
    return UN_OK;
}

un_status un_viscosity_assemble(un_viscosity *v, un_arena *arena, const un_viscous_def *in,
                                un_viscous_report *report)
{
    un_stress_nodes s = {.v = v, .in = in, .mesh = in->mesh};
    return begin(&s, arena, report);
}

static un_status solve_once(un_stress_nodes *s, double tolerance, un_viscous_report *report)
{
    un_viscosity *v = s->v;
    UN_TRY(un_tets_agree(s->mesh, un_viscosity_round(v, has_free(s), tolerance,
                                                     s->in->iteration_limit, &report->solve)));
    if (!report->solve.finite) return UN_OK;
    un_parallel_part(v->ctx, un_viscosity_rows(v), un_block_grain(v->matrix.n), store, s);
    un_dragged_store(s);
    return un_viscous_share_velocities(s);
}

static un_status solve_rounds(un_stress_nodes *s, un_arena *arena, un_viscous_report *report)
{
    const un_viscous_def *in = s->in;
    un_viscous_volume keep;
    double least = SQUEEZED;
    int32_t rounds = ROUNDS_MAX;
    for (int32_t k = 0; k < s->dragged_count; k++)
        if (s->dragged[k].any) {
            least = SQUEEZED_DRAG;
            rounds = ROUNDS_MAX_DRAG;
        }
    UN_TRY(un_viscous_volume_begin(&keep, arena, s));
    /* The first rounds need not be exact; the last one is. */
    for (double loose = LOOSE;;) {
        UN_TRY(solve_once(s, loose * in->tolerance, report));
        if (!report->solve.finite) return UN_OK;
        report->squeezed = un_viscous_volume_error(&keep, s);
        bool enough = report->squeezed < least || report->rounds == rounds;
        if (enough && loose == 1) return UN_OK;
        loose = enough ? 1 : fmax(1, loose / FALL);
        if (enough) continue;
        UN_TRY(un_viscous_volume_push(&keep, s));
        report->rounds++;
    }
}

un_status un_viscosity_solve(un_viscosity *v, un_arena *arena, const un_viscous_def *in,
                             un_viscous_report *report)
{
    un_stress_nodes s = {.v = v, .in = in, .mesh = in->mesh};
    UN_TRY(begin(&s, arena, report));
    un_vec3 before = un_dragged_momentum(&s, true);
    if (in->keeps_volume && v->matrix.n > 0) {
        UN_TRY(solve_rounds(&s, arena, report));
    } else {
        if (in->p) memset(in->p, 0, (size_t)in->mesh->node_count * sizeof *in->p);
        UN_TRY(solve_once(&s, in->tolerance, report));
    }
    if (!report->solve.finite) return UN_OK;
    if (s.dragged_count > 0)
        report->impulse = un_sub(un_sub(un_dragged_momentum(&s, false), before),
                                 un_viscosity_left_over(v, in->mesh->node_count));
    un_dragged_move(s.dragged, s.dragged_count, in->bodies);
    return UN_OK;
}

double un_viscosity_bytes(double nodes)
{
    /* rows of about 15 blocks; vectors; indices; pressure */
    return nodes * (15 * (72 + 4) + 4 * 24 + 16 + 4 * 8) + un_block_solver_bytes(nodes);
}

/* ---- life ---- */

un_status un_viscosity_create(un_context *ctx, un_viscosity **viscosity)
{
    un_viscosity *v = un_alloc_zero(ctx, 1, sizeof *v);
    if (!v) return UN_ERROR_MEMORY;
    v->ctx = ctx;
    un_status status = un_block_solver_create(ctx, &v->solver);
    if (status != UN_OK) {
        un_free(ctx, v);
        return status;
    }
    *viscosity = v;
    return UN_OK;
}

void un_viscosity_destroy(un_viscosity *v)
{
    if (!v) return;
    un_block_solver_destroy(v->solver);
    un_curve_free(v->ctx, &v->curve);
    void *blocks[] = {v->index, v->node,  v->matrix.row, v->matrix.col, v->matrix.val, v->b,
                      v->x,     v->place, v->free,       v->stress,     v->mass,       v->solved};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(v->ctx, blocks[i]);
    un_free(v->ctx, v);
}
