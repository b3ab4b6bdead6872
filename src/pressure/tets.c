/* Projection on tets: pressure at nodes, linear in each tet; velocity constant in each tet.
 *
 *     u <- u - grad q,   q = p dt / rho,   div u = sigma in the liquid,   q = 0 at the surface,
 *     u.n = u_solid.n at walls
 *
 * Tested with the hat function N_n of each liquid node and integrated by parts over the open space,
 * whose boundary is the wall:
 *
 *     - int_open grad N_n . u + int_wall N_n u_solid . n = int_open N_n sigma
 *
 * The solid moves as a rigid body, so that int_wall N_n u_solid . n = - int_solid grad N_n .
 * u_solid, and the wall needs no surface integrals. With G_n = grad N_n, constant in a tet, V its
 * volume and V_open the part of it that is open [Ando13 eq. 4; Batty, Bertails & Bridson 2007]:
 *
 *     sum_t V_open G_n . grad q = sum_t [V_open G_n . u + (V - V_open) G_n . u_solid]
 *                                 + sigma_n int_open N_n
 *
 * The wall is a natural condition: where no solid is in sight, as at the boundary of the mesh,
 * nothing flows through. Liquid nodes are those with phi < 0; hats of the others are left out, and
 * their pressures, which differ from tet to tet, follow from the surface (ghost.c).
 *
 * The surface may have a pressure P, given at nodes and linear in each tet: with q = q' + P dt/rho
 * the tets of the liquid get -dt/rho grad P like any force, and q' is zero at the surface.
 *
 * Walls push and do not pull: a node that has let go of a wall has p = 0 (release.c).
 *
 * Departures from the paper:
 * - Tets with obtuse angles on the surface: ghost.c.
 * - Eq. 13, which scales ghosts down in tets where they weaken the diagonal, is not used: it moves
 *   the surface, whatever its tolerance. A node just below the surface has a large diagonal, which
 *   does no harm; phi is only kept away from zero.
 * - Some nodes just below the surface are left out, as if they were dry: their pressure follows
 *   from the wet nodes of each tet, and tets that have none are not part of the liquid. These are
 *   nodes whose own equation does not control their slope p / phi, from which ghosts are made:
 *   where positive couplings prevail, because walls cut off the other tets, and where all dry
 *   neighbours coupled to the node lie at the surface too. Under tilted planes this is one node in
 *   ten thousand. Flat water is exact with and without them; noise in phi makes velocities up to
 *   four times smaller.
 * - Should the matrix be indefinite all the same (conjugate gradients notice; seen with phi and
 *   walls made of noise only), negative shares of the diagonal are dropped and the system is solved
 *   again: positive definite, of first order where it was indefinite. */
#include "pressure/coupling.h"
#include "pressure/ghost.h"
#include "pressure/system.h"

/* phi between 0 and minus this share of the local cell becomes minus this share. Iterations do not
 * depend on it (the same from 1e-9 to 1e-1); still water does: 1e-4 leaves 0.0007 g dt, 1e-3
 * 0.011. */
#define PHI_MIN 1e-6
/* A tet that is less open than this is next to a wall. */
#define WALL_OPEN 0.98
/* A node is left out when ghosts take more than this share off its diagonal, */
#define WEAKEN_MAX 0.5
/* or when they use it with a lever (their pressure over the node's, ghost_lever) that exceeds the
 * growth of its diagonal by this factor. With noise of 0.3 cells in phi the fastest tet has 34 g dt
 * at 100, 8 at 10 and 8 at 5, where one wet node in 150 is left out instead of one in 10,000. Where
 * walls close most of a node's tets the lever counts that ghosts really have: with that of the
 * least-squares slope alone, layers a cell thick reached 22 times their speed on a ramp, now 11
 * (the open interior is as before). */
#define LEVER_MAX 10
#define ROW_GRAIN 512

typedef struct args {
    un_pressure *pr;
    const un_tet_projection *in;
    const un_tets *mesh;
    uint32_t mode; /* un_ghost_mode */
    float *phi;    /* at nodes, kept away from zero */
    uint8_t *wet;  /* at tets: bit i, node i is an unknown; 0 where closed */
    uint8_t *left; /* at nodes: to be left out */
    un_part own;   /* nodes that are this rank's */
    double size[UN_LEVELS_MAX + 1];
} args;

/* The tet's mobility under a pressure gradient: its open share times its lightness. */
static inline double open_ease(const args *s, int32_t t)
{
    return un_tet_open(s->in, t) * (s->in->lightness ? (double)s->in->lightness[t] : 1);
}

static un_ghost make_ghost(const args *s, int32_t t)
{
    const int32_t *n = s->mesh->tet[t];
    double phi[4];
    for (int i = 0; i < 4; i++) phi[i] = s->phi[n[i]];
    return un_ghost_make(un_tets_shape(s->mesh, (int32_t)t), phi, s->wet[t], s->mode);
}

/* ---- which nodes are unknowns ---- */

static void keep_from_zero(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t n = begin; n < end; n++) {
        float least = (float)(-PHI_MIN * s->size[s->mesh->node_level[n]]);
        float phi = s->in->phi[n];
        s->phi[n] = phi < 0 && phi > least ? least : phi;
    }
}

static void mark_tets(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = s->mesh->tet[t];
        uint32_t wet = 0;
        for (int i = 0; i < 4; i++) wet |= (uint32_t)(s->phi[n[i]] < 0) << i;
        s->wet[t] = un_tet_open(s->in, (int32_t)t) > 0 ? (uint8_t)wet : 0;
    }
}

/* The largest change of a ghost's pressure, or of what the gradient makes of it, with that of wet
 * node i. */
static double ghost_lever(const un_ghost *g, int i)
{
    double depths = 0, lever = 0;
    for (int n = 0; n < 4; n++)
        if (g->wet >> n & 1) depths += g->phi[n] * g->phi[n];
    for (int d = 0; d < 4; d++) {
        if (g->wet >> d & 1) continue;
        double k = g->shape->stiffness[d][i];
        lever = fmax(lever, g->phi[d] * fabs(g->phi[i]) / depths);
        if (k != 0) lever = fmax(lever, fabs(g->by_row ? g->phi[d] / g->phi[i] : g->a[d] * k));
    }
    return lever;
}

/* True if the node's equation is too weak for the ghosts that use it. */
static bool is_weak(const args *s, int64_t n)
{
    const un_tets *m = s->mesh;
    double stiffness = 0, positive = 0, negative = 0, lever = 0;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4, i = m->corner[e] % 4;
        if (s->wet[t] == 0) continue;
        double scale = s->size[m->level[t]] * open_ease(s, t);
        stiffness += scale * un_tets_shape(m, t)->stiffness[i][i];
        if (s->wet[t] == 15) continue;
        un_ghost g = make_ghost(s, t);
        double share = scale * un_ghost_entry(&g, i, i);
        positive += share > 0 ? share : 0;
        negative += share < 0 ? -share : 0;
        lever = fmax(lever, ghost_lever(&g, i));
    }
    positive += stiffness;
    return negative > WEAKEN_MAX * positive ||
           LEVER_MAX * (positive - negative) < lever * stiffness;
}

static double find_weak(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    double count = 0;
    for (int64_t n = s->own.begin + begin; n < s->own.begin + end; n++) {
        s->left[n] = 0;
        if (!(s->phi[n] < 0)) continue;
        bool cut = false;
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            cut |= s->wet[t] != 15 && s->wet[t] >> m->corner[e] % 4 & 1;
        }
        if (cut && is_weak(s, n)) s->left[n] = 1;
        count += s->left[n];
    }
    return count;
}

static void leave_out(args *s)
{
    const un_tets *m = s->mesh;
    for (int32_t n = 0; n < m->node_count; n++)
        if (s->left[n])
            for (int32_t e = m->first[n]; e < m->first[n + 1]; e++)
                s->wet[m->corner[e] / 4] &= (uint8_t) ~(1u << m->corner[e] % 4);
}

static void mark_unknowns(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    for (int64_t n = begin; n < end; n++) {
        bool unknown = false;
        if (s->phi[n] < 0)
            for (int32_t e = m->first[n]; e < m->first[n + 1] && !unknown; e++)
                unknown = s->wet[m->corner[e] / 4] >> m->corner[e] % 4 & 1;
        s->pr->index[n] = unknown ? 0 : -1;
    }
}

static void count_tets(void *arg, int64_t begin, int64_t end, double *sums)
{
    args *s = arg;
    int64_t first = un_tets_own(s->mesh).begin;
    for (int64_t t = first + begin; t < first + end; t++) {
        if (s->wet[t] == 0 || s->wet[t] == 15) continue;
        un_ghost g = make_ghost(s, (int32_t)t);
        sums[0] += 1;
        sums[1] += g.by_row;
    }
}

/* Nodes that are left out, until none is. Each round leaves more out, so the loop ends; a second
 * round is rare. */
static un_status leave_weak(args *s, un_tet_projection_report *report)
{
    un_context *ctx = s->pr->ctx;
    un_field field = {"left", s->left, NULL, sizeof *s->left};
    int64_t nodes = s->own.end - s->own.begin;
    for (int64_t weak = 1; weak > 0;) {
        weak = nodes > 0 ? (int64_t)un_parallel_sum(ctx, nodes, find_weak, s) : 0;
        if (s->mesh->share) weak = un_ranks_total(ctx, weak);
        UN_TRY(un_tets_share(s->mesh, &field, 1));
        if (weak > 0) leave_out(s);
        report->left_count += (int32_t)weak;
    }
    return UN_OK;
}

static un_status begin_unknowns(args *s, un_arena *arena)
{
    size_t nodes = (size_t)s->mesh->node_count + 1, tets = (size_t)s->mesh->tet_count + 1;
    s->phi = un_arena_alloc(arena, nodes, sizeof *s->phi);
    s->left = un_arena_alloc(arena, nodes, sizeof *s->left);
    s->wet = un_arena_alloc(arena, tets, sizeof *s->wet);
    if (!s->phi || !s->left || !s->wet) return UN_ERROR_MEMORY;
    return un_pressure_need_places(s->pr, s->mesh->node_count);
}

static un_status number(args *s)
{
    int64_t nodes = s->mesh->node_count, grain = un_block_grain(nodes);
    bool share = s->mesh->share;
    if (share) memset(s->pr->index, 0xff, (size_t)nodes * sizeof *s->pr->index); /* -1 */
    un_parallel_part(s->pr->ctx, s->own, grain, mark_unknowns, s);
    return share ? un_pressure_number_nodes(s->pr, s->mesh) : un_pressure_number(s->pr, nodes);
}

static un_status choose_unknowns(args *s, un_arena *arena, un_tet_projection_report *report)
{
    un_pressure *pr = s->pr;
    un_context *ctx = pr->ctx;
    bool share = s->mesh->share;
    int64_t nodes = s->mesh->node_count, tets = s->mesh->tet_count;
    un_part own_tets = un_tets_own(s->mesh);
    s->own = un_tets_own_nodes(s->mesh);
    un_status status = begin_unknowns(s, arena);
    UN_TRY(share ? un_ranks_agree(ctx, status) : status);
    if (share) memset(s->left, 0, (size_t)nodes);
    un_parallel_for(ctx, nodes, un_block_grain(nodes), keep_from_zero, s);
    un_parallel_for(ctx, tets, un_block_grain(tets), mark_tets, s);
    if (!(s->mode & UN_GHOST_NONE)) UN_TRY(leave_weak(s, report));
    UN_TRY(number(s));
    report->node_count = pr->matrix.n;
    double sums[2];
    un_parallel_sums(ctx, own_tets.end - own_tets.begin, 2, count_tets, s, sums);
    if (share) un_ranks_add(ctx, sums, 2); /* whole numbers */
    report->cut_count = (int32_t)sums[0];
    report->obtuse_count = (int32_t)sums[1];
    return UN_OK;
}

/* ---- the system ---- */

/* The row of node n, itself first. Couplings that are zero in all tets under water, such as those
 * within a sublattice, are left out. val NULL: only finds which nodes. */
static inline void gather_row(const args *s, int64_t n, un_row *r, double *val)
{
    const un_tets *m = s->mesh;
    double diagonal = 0;
    un_row_begin(r);
    un_row_find(r, (int32_t)n);
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4, i = m->corner[e] % 4;
        uint32_t wet = s->wet[t];
        if (wet == 0) continue;
        const int32_t *node = m->tet[t];
        const double *k = un_tets_shape(m, t)->stiffness[i];
        if (!val) {
            for (int j = 0; j < 4; j++)
                if (wet == 15 ? k[j] != 0 : wet >> j & 1) un_row_find(r, node[j]);
            continue;
        }
        double scale = s->size[m->level[t]] * open_ease(s, t);
        diagonal += scale * k[i];
        if (wet == 15) {
            for (int j = 0; j < 4; j++)
                if (j != i && k[j] != 0) *un_row_at(r, val, 1, node[j]) += scale * k[j];
            continue;
        }
        un_ghost g = make_ghost(s, t);
        diagonal += scale * un_ghost_entry(&g, i, i);
        for (int j = 0; j < 4; j++)
            if (j != i && wet >> j & 1)
                *un_row_at(r, val, 1, node[j]) += scale * (k[j] + un_ghost_entry(&g, i, j));
    }
    if (val) val[0] = diagonal;
}

/* int grad N_n . u over open space and solids, with the solid's velocity in them; and the integral
 * of N_n over open space. */
/* Nodes of one side of a thin wall lack the tets beyond it, so that the integral over the solid is
 * not complete. There int_wall N_n u_solid . n = int_open grad N_n . u_solid, with the solid's
 * velocity next to the node. */
static un_vec3 solid_beside(const args *s, int64_t n)
{
    const un_tets *m = s->mesh;
    un_vec3 sum = {0, 0, 0};
    double total = 0;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        double w = un_tets_volume(m, t) * (1 - un_tet_open(s->in, t));
        sum = un_mad(sum, s->in->u_solid[t], w);
        total += w;
    }
    return un_scale(sum, total > 0 ? 1 / total : 0);
}

static double inflow(const args *s, int64_t n, double *hat)
{
    const un_tet_projection *in = s->in;
    const un_tets *m = s->mesh;
    double sum = 0, volume = 0;
    bool part = in->u_solid && m->parted && m->side[n] <= 0;
    un_vec3 solid = part ? solid_beside(s, n) : un_v3(0, 0, 0);
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4, i = m->corner[e] % 4;
        const un_tet_shape *shape = un_tets_shape(m, t);
        double h = s->size[m->level[t]], share = un_tet_open(s->in, t);
        const double *g = shape->gradient[i];
        double area = shape->volume * h * h;
        un_vec3 u = un_scale(in->u[t], share);
        if (share == 0) u = un_v3(0, 0, 0); /* u may hold anything there */
        if (part)
            u = un_mad(u, solid, -share);
        else if (in->u_solid && share < 1)
            u = un_mad(u, in->u_solid[t], 1 - share);
        sum += area * (g[0] * u.x + g[1] * u.y + g[2] * u.z);
        volume += 0.25 * share * area * h;
    }
    *hat = in->walls && in->walls->node_open[n] > 0 ? in->walls->node_open[n] : volume;
    return sum;
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_row row;
    for (int64_t r = begin; r < end; r++) {
        gather_row(s, s->pr->place[r], &row, NULL);
        s->pr->matrix.row[r + 1] = row.count;
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    const un_tet_projection *in = s->in;
    un_row row;
    double val[UN_ROW_MAX];
    for (int64_t r = begin; r < end; r++) {
        int64_t n = pr->place[r], first = pr->matrix.row[r];
        double hat;
        gather_row(s, n, &row, val);
        un_row_store(&row, val, 1, pr->index, pr->matrix.col + first, pr->matrix.val + first);
        pr->rhs[r] = inflow(s, n, &hat);
        if (in->source) pr->rhs[r] += in->source[n] * hat;
        pr->x[r] = in->p[n] * in->dt / in->density;
        if (in->surface) pr->x[r] -= in->surface[n] * in->dt / in->density;
    }
}

static un_status assemble(args *s)
{
    un_pressure *pr = s->pr;
    un_context *ctx = pr->ctx;
    un_csr *m = &pr->matrix;
    bool share = s->mesh->share;
    if (!share) {
        UN_TRY(un_pressure_need_rows(pr, m->n));
        pr->own = (un_part){0, m->n};
    }
    un_parallel_part(ctx, pr->own, ROW_GRAIN, count_entries, s);
    UN_TRY(share ? un_pressure_start_rows(pr) : un_rows_start(ctx, m->row, m->n, "liquid nodes"));
    un_status status = un_pressure_need_entries(pr, (size_t)m->row[m->n]);
    UN_TRY(share ? un_ranks_agree(ctx, status) : status);
    un_parallel_part(ctx, pr->own, ROW_GRAIN, fill_rows, s);
    return UN_OK;
}

/* ---- bodies ---- */

/* Adds what a body's motion takes from the inflow of a row: weight times the velocity at x along a
 * gradient. */
static void add_push(double push[6], un_vec3 gradient, un_vec3 arm, double weight)
{
    un_vec3 turn = un_cross(arm, gradient);
    const double sum[6] = {gradient.x, gradient.y, gradient.z, turn.x, turn.y, turn.z};
    for (int m = 0; m < 6; m++) push[m] -= weight * sum[m];
}

/* The middle of the body's part around a node; false: it is not there. */
static bool find_beside(const args *s, int64_t n, int32_t body, un_vec3 *middle)
{
    const un_tets *m = s->mesh;
    un_vec3 sum = {0, 0, 0};
    double total = 0;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        if (un_tet_walls_free_body(s->in->walls, t) != body) continue;
        double w = un_tets_volume(m, t) * (1 - un_tet_open(s->in, t));
        sum = un_mad(sum, un_tets_center(m, t), w);
        total += w;
    }
    *middle = un_scale(sum, total > 0 ? 1 / total : 0);
    return total > 0;
}

/* As inflow has it. */
static bool push_of_body(const void *arg, int32_t n, int32_t body, double push[6])
{
    const args *s = arg;
    const un_tets *m = s->mesh;
    const un_body *b = &s->in->bodies->body[body];
    if (un_body_box_distance(b, m->x[n]) > 2 * s->size[m->node_level[n]]) return false;
    un_vec3 centre = un_pose_apply(&b->to, b->centre);
    bool part = m->parted && m->side[n] <= 0, any = false;
    un_vec3 beside = {0, 0, 0};
    for (int i = 0; i < 6; i++) push[i] = 0;
    if (part && !find_beside(s, n, body, &beside)) return false;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4, i = m->corner[e] % 4;
        double share = un_tet_open(s->in, t);
        if (!part && (share >= 1 || un_tet_walls_free_body(s->in->walls, t) != body)) continue;
        const un_tet_shape *shape = un_tets_shape(m, t);
        double h = s->size[m->level[t]], area = shape->volume * h * h;
        un_vec3 g = un_v3(shape->gradient[i][0], shape->gradient[i][1], shape->gradient[i][2]);
        un_vec3 at = part ? beside : un_tets_center(m, t);
        add_push(push, g, un_sub(at, centre), area * (part ? -share : 1 - share));
        any = true;
    }
    return any;
}

static int32_t body_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const args *s = arg;
    return un_coupling_collect(s->pr, body, push_of_body, s, row, push);
}

static un_status couple_ranks(args *s)
{
    un_pressure *pr = s->pr;
    double density = s->in->density;
    UN_TRY(un_coupling_build_ranks(pr, s->in->bodies, density, density, push_of_body, s));
    return un_coupling_any(pr) ? un_pressure_know_nodes(pr, s->mesh) : UN_OK;
}

static un_status couple(args *s)
{
    un_pressure *pr = s->pr;
    const un_tet_projection *in = s->in;
    pr->coupling.columns.count = 0;
    if (!in->bodies) return UN_OK;
    if (s->mesh->share)
        UN_TRY(couple_ranks(s));
    else
        UN_TRY(un_coupling_build(pr, in->bodies, in->density, in->density, body_rows, s));
    return un_coupling_push_surface(pr, in->bodies, in->surface, in->dt, in->density);
}

/* ---- velocity update ---- */

/* Applies the surface's pressure to the tets of the liquid. */
static void push_tets(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tet_projection *in = s->in;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = s->mesh->tet[t];
        if (s->wet[t] == 0) continue;
        double p[4], light = in->lightness ? (double)in->lightness[t] : 1;
        for (int i = 0; i < 4; i++) p[i] = in->surface[n[i]];
        un_vec3 slope = un_tets_gradient(s->mesh, (int32_t)t, p);
        in->u[t] = un_mad(in->u[t], slope, -light * in->dt / in->density);
    }
}

static void update_tets(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tet_projection *in = s->in;
    const un_tets *m = s->mesh;
    for (int64_t t = begin; t < end; t++) {
        in->known[t] = s->wet[t] != 0;
        if (s->wet[t] == 0) continue;
        double q[4], g[3];
        for (int i = 0; i < 4; i++) {
            int32_t r = s->pr->index[m->tet[t][i]];
            q[i] = r >= 0 ? s->pr->x[r] : 0;
        }
        double light = in->lightness ? (double)in->lightness[t] : 1;
        double over = -light / s->size[m->level[t]];
        if (s->wet[t] == 15) {
            in->u[t] = un_mad(in->u[t], un_tets_gradient(m, (int32_t)t, q), -light);
        } else {
            un_ghost ghost = make_ghost(s, (int32_t)t);
            un_ghost_gradient(g, &ghost, q);
            in->u[t] = un_mad(in->u[t], un_v3(g[0], g[1], g[2]), over);
        }
    }
}

/* Nodes at walls may let go of them. Nodes on open sides are in the air. */
static bool limit_node(const void *arg, int32_t row, double *least, double *slack)
{
    const args *s = arg;
    const un_tet_projection *in = s->in;
    const un_tets *m = s->mesh;
    int32_t n = s->pr->place[row];
    double h = s->size[m->node_level[n]], snap = 1e-6 * h;
    un_vec3 x = m->x[n], top = m->tree->size;
    bool wall = x.x < snap || x.y < snap || x.z < snap || x.x > top.x - snap ||
                x.y > top.y - snap || x.z > top.z - snap;
    double speed = 0, tets = m->first[n + 1] - m->first[n];
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        wall = wall || (in->walls && in->walls->open[t] < WALL_OPEN);
        if (s->wet[t]) speed += un_length(in->u[t]) / tets;
    }
    *least = 0;
    if (in->surface) *least -= in->surface[n] * in->dt / in->density;
    if (in->before) *least -= in->before[n] * in->dt / in->density;
    *slack = un_release_slack(in->let_go, speed, un_release_way(h, in->phi[n]));
    return wall;
}

static void store_pressure(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    double to_pascal = s->in->density / s->in->dt;
    for (int64_t n = begin; n < end; n++) {
        int32_t r = s->pr->index[n];
        s->in->p[n] = r >= 0 ? s->pr->x[r] * to_pascal : 0;
        if (r >= 0 && s->in->surface) s->in->p[n] += s->in->surface[n];
        if (r >= 0 && un_pressure_is_free(s->pr, r)) s->in->p[n] = -0.0;
    }
}

static double divergence_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    double max = 0, hat;
    for (int64_t r = s->pr->own.begin + begin; r < s->pr->own.begin + end; r++) {
        int64_t n = s->pr->place[r];
        if (un_pressure_is_free(s->pr, (int32_t)r)) continue;
        double left = inflow(s, n, &hat);
        if (s->in->source) left += s->in->source[n] * hat;
        max = fmax(max, fabs(left) / hat);
    }
    return max;
}

un_status un_tet_pressure_project(un_pressure *pr, un_arena *arena, const un_tet_projection *in,
                                  un_tet_projection_report *report)
{
    un_context *ctx = pr->ctx;
    const un_tets *mesh = in->mesh;
    args s = {.pr = pr, .in = in, .mesh = mesh};
    UN_ASSERT(in->dt > 0 && in->density > 0);
    *report = (un_tet_projection_report){0};
    s.mode = in->first_order ? UN_GHOST_NONE : in->by_row ? UN_GHOST_BY_ROW : 0;
    for (int32_t l = 0; l <= mesh->tree->level_max; l++) s.size[l] = un_octree_size(mesh->tree, l);
    UN_TRY(choose_unknowns(&s, arena, report));
    if (in->surface)
        un_parallel_for(ctx, mesh->tet_count, un_block_grain(mesh->tet_count), push_tets, &s);
    if (in->bodies) un_tet_walls_find_velocities(in->walls);
    UN_TRY(assemble(&s));
    UN_TRY(couple(&s));
    const un_octree *tree = mesh->tree;
    /* Copies of nodes have no place of their own in the lattice. */
    un_sites sites = {.kind = mesh->parted ? UN_SITES_NONE : UN_SITES_BCC,
                      .size = {2 * tree->n[0], 2 * tree->n[1], 2 * tree->n[2]},
                      .site = pr->place,
                      .key = mesh->node_key,
                      .level = mesh->node_level,
                      .level_max = tree->level_max};
    un_release release = {&s, limit_node, in->surface || in->before ? INFINITY : 0,
                          in->before ? in->before : in->p, in->let_go > 0};
    UN_TRY(un_pressure_solve(pr, &sites, in->tolerance, in->iteration_limit, &release,
                             &report->solve));
    if (report->solve.finite && !report->solve.converged && !in->first_order &&
        report->solve.iterations < in->iteration_limit) {
        int32_t iterations = report->solve.iterations;
        report->cautious = true;
        s.mode |= UN_GHOST_CAUTIOUS;
        if (in->bodies) un_tet_walls_find_velocities(in->walls);
        UN_TRY(assemble(&s));
        UN_TRY(un_pressure_solve(pr, &sites, in->tolerance, in->iteration_limit, &release,
                                 &report->solve));
        report->solve.iterations += iterations;
    }
    if (in->bodies && report->solve.finite) {
        un_coupling_push(pr, in->bodies);
        un_tet_walls_find_velocities(in->walls);
    }
    un_parallel_for(ctx, mesh->tet_count, un_block_grain(mesh->tet_count), update_tets, &s);
    un_parallel_for(ctx, mesh->node_count, un_block_grain(mesh->node_count), store_pressure, &s);
    if (pr->own.end > pr->own.begin)
        report->max_divergence =
            un_parallel_max(ctx, pr->own.end - pr->own.begin, divergence_rows, &s);
    if (mesh->share) report->max_divergence = un_ranks_max(ctx, report->max_divergence);
    return UN_OK;
}
