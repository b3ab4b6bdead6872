/* A viscous step on tets that conform to the liquid's surface and to walls [Batty11 sections 3, 4
 * and 5.2].
 *
 *     (M + dt K) v = M v_old,
 *     K_ij = sum_t mu V_t [ (g_i . g_j) 1 + g_j g_i^T ],   g_i = grad N_i in t,
 *
 * as in nodes.c, but tets are whole: the surface has no traction because they end there, and walls
 * are at nodes. Nodes on walls have the walls' velocity, or slide: u = P v + c with P = 1 - n n^T
 * and a drag of mu / slip times the area around them. Nodal velocities are given; normal velocities
 * on faces get the change of their three nodes, and what nodes do not see of them decays
 * (un_viscous_rest). The solve is repeated with a pressure that keeps the volume (volume.c has the
 * why); it starts from zero, as no node lasts from step to step.
 *
 * Bodies that the liquid sticks to and moves are dragged (stuffed_bodies.c).
 *
 * Where this departs from the paper: slip, the decay, the pressure, and bodies. */
#include "viscosity/stuffed.h"

/* As in nodes.c: divergence over strain that is little enough, rounds, and the tolerance of the
 * first round over that of the last. */
#define SQUEEZED 0.1
#define SQUEEZED_DRAG 0.02
#define ROUNDS_MAX 4
#define ROUNDS_MAX_DRAG 8
#define LOOSE 30.0
#define FALL 10.0

typedef un_stuffed_stress args;

/* ---- walls ---- */

static void hold(double free[9], un_vec3 n)
{
    un_vec3 m = un_block_times(free, n);
    if (un_length(m) < 1e-3) return;
    m = un_normalize(m);
    double v[3] = {m.x, m.y, m.z};
    for (int c = 0; c < 9; c++) free[c] -= v[c / 3] * v[c % 3];
}

/* A third of the area of the closed faces around node n, each over its slip length, m. */
static double area_over_slip(const args *s, int64_t n, double body_slip)
{
    const un_stuffing *m = s->mesh;
    const un_scene_def *def = s->in->def;
    double sum = 0;
    for (int32_t k = m->first[n]; k < m->first[n + 1]; k++) {
        int32_t t = m->corner[k] / 4, corner = m->corner[k] % 4;
        for (int i = 0; i < 4; i++) {
            int32_t f = m->tet_face[t][i];
            int side = m->face_behind[f] - UN_BEHIND_SIDE;
            if (i == corner || m->face_behind[f] < UN_BEHIND_WALL) continue;
            if (side >= 0 && def->domain.open[side]) continue;
            double slip = side >= 0 ? def->domain.slip[side] : body_slip;
            if (slip > 0) sum += un_length(m->area[f]) / (3 * slip);
        }
    }
    return sum;
}

static void find_walls(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->mesh;
    const un_scene_def *def = s->in->def;
    for (int64_t n = begin; n < end; n++) {
        double slip = INFINITY, body_slip = INFINITY, d = INFINITY, *free = s->free[n];
        bool any = false;
        memset(free, 0, sizeof s->free[n]);
        for (int c = 0; c < 9; c += 4) free[c] = 1;
        s->wall[n] = un_v3(0, 0, 0);
        s->kind[n] = UN_WALL_NONE;
        s->drag[n] = 0;
        if (s->stuck) s->stuck[n] = -1;
        for (int side = 0; side < 6; side++) {
            if (!(m->on[n] & UN_ON_SIDE << side) || def->domain.open[side]) continue;
            int a = side / 2;
            any = true;
            slip = fmin(slip, def->domain.slip[side]);
            hold(free, un_v3(a == 0, a == 1, a == 2));
        }
        if (m->on[n] & UN_ON_WALL && s->in->bodies->count > 0) {
            int32_t b = un_bodies_nearest(s->in->bodies, m->x[n], &d);
            const un_body *body = b >= 0 ? &s->in->bodies->body[b] : NULL;
            if (body) {
                any = true;
                body_slip = body->slip;
                s->wall[n] = un_body_velocity(body, m->x[n]);
                hold(free, un_body_normal(body, m->x[n]));
                if (s->stuck && !(body_slip > 0)) s->stuck[n] = s->dragged.number[b];
            }
        }
        if (!any) continue;
        slip = fmin(slip, body_slip);
        s->kind[n] = slip > 0 ? UN_WALL_SLIDES : UN_WALL_STICKS;
        if (slip > 0 && slip < INFINITY)
            s->drag[n] = s->in->dt * def->fluid.viscosity * area_over_slip(s, n, body_slip);
    }
}

static void number_nodes(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t n = begin; n < end; n++) {
        bool sticks = s->kind[n] == UN_WALL_STICKS;
        bool moved = s->stuck && s->stuck[n] >= 0;
        s->v->index[n] = sticks ? -1 : 0;
        if (moved) s->slip[n] = un_sub(s->in->u_node[n], s->wall[n]);
        /* At a body that the liquid moves it has its own momentum, which the solve shares out. With
         * the body's, liquid around one that slows down was thrown back. */
        s->was[n] = sticks && !moved ? s->wall[n] : s->in->u_node[n];
        if (sticks) s->in->u_node[n] = s->wall[n];
    }
}

/* The part of a sliding node's velocity that the wall prescribes. */
un_vec3 un_stuffed_given(const args *s, int64_t n)
{
    return un_viscous_given(&(un_viscous_walls){.u = s->wall, .free = s->free}, n);
}

/* ---- rows ---- */

/* Gradients of the hat functions of a tet: its faces' areas inwards over three volumes. */
void un_stuffed_gradients(const un_stuffing *m, int32_t t, un_vec3 g[4])
{
    for (int i = 0; i < 4; i++)
        g[i] =
            un_scale(m->area[m->tet_face[t][i]], -un_stuffing_sign(m, t, i) / (3 * m->volume[t]));
}

static inline void add_stress(double *at, un_vec3 gi, un_vec3 gj, double stiff, bool laplacian)
{
    double a[3] = {gi.x, gi.y, gi.z}, b[3] = {gj.x, gj.y, gj.z}, dot = un_dot(gi, gj);
    for (int c = 0; c < 9; c++)
        at[c] += stiff * ((laplacian ? 0 : b[c / 3] * a[c % 3]) + (c % 4 == 0 ? dot : 0));
}

void un_stuffed_block(const args *s, int32_t t, const un_vec3 g[4], int i, int j, double block[9])
{
    double stiff = s->in->dt * s->in->def->fluid.viscosity * s->mesh->volume[t];
    memset(block, 0, 9 * sizeof *block);
    add_stress(block, g[i], g[j], stiff, s->in->laplacian);
}

/* Couples a row to body k, by its velocity at corner j of tet t. val NULL: only finds which. */
static void couple_body(const args *s, un_row *r, double (*val)[9], int32_t k, un_vec3 x,
                        const double block[9])
{
    for (int which = 0; which < 2; which++) {
        int32_t place = un_stuffed_place(s, k, which);
        if (!val) {
            un_row_find(r, place);
            continue;
        }
        double motion[9], product[9], *at = un_row_at(r, val[0], 9, place);
        un_dragged_motion(&s->dragged.at[k], x, which, motion);
        un_block_product(product, block, motion);
        for (int c = 0; c < 9; c++) at[c] += product[c];
    }
}

/* Row of node n, itself first. val NULL: only finds which nodes. Returns the node's mass. */
static double gather_row(const args *s, int64_t n, un_row *r, double (*val)[9], un_vec3 *b)
{
    const un_stuffing *m = s->mesh;
    double mass = 0, mu = s->in->def->fluid.viscosity;
    un_row_begin(r);
    un_row_find(r, (int32_t)n);
    if (val) memset(val[0], 0, sizeof val[0]);
    for (int32_t k = m->first[n]; k < m->first[n + 1]; k++) {
        int32_t t = m->corner[k] / 4, i = m->corner[k] % 4;
        const int32_t *node = m->tet[t];
        int32_t body = un_stuffed_owner(s, t);
        un_vec3 g[4];
        mass += 0.25 * s->in->def->fluid.density * m->volume[t];
        if (val) un_stuffed_gradients(m, t, g);
        for (int j = 0; j < 4; j++) {
            double stiff = s->in->dt * mu * m->volume[t];
            if (s->v->index[node[j]] >= 0) {
                if (!val)
                    un_row_find(r, node[j]);
                else
                    add_stress(un_row_at(r, val[0], 9, node[j]), g[i], g[j], stiff,
                               s->in->laplacian);
                continue;
            }
            double block[9];
            if (val) {
                un_stuffed_block(s, t, g, i, j, block);
                *b = un_sub(*b, un_block_times(block, s->wall[node[j]]));
            }
            if (body >= 0 && s->stuck[node[j]] == body)
                couple_body(s, r, val, body, m->x[node[j]], block);
        }
    }
    return mass;
}

/* Adds the wall's drag, and projects the row onto the free directions on both sides. */
static void slide_row(const args *s, int64_t n, const un_row *r, double (*val)[9], un_vec3 *b)
{
    un_viscous_walls w = {.kind = s->kind, .u = s->wall, .free = s->free};
    for (int c = 0; c < 9; c += 4) val[0][c] += s->drag[n];
    *b = un_mad(*b, s->wall[n], s->drag[n]);
    un_viscous_free_row(&w, s->mesh->node_count, n, r, val, b);
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_row row;
    for (int64_t r = begin; r < end; r++) {
        bool is_node = s->v->node[r] < s->mesh->node_count;
        if (is_node) gather_row(s, s->v->node[r], &row, NULL, NULL);
        s->v->matrix.row[r + 1] = is_node ? row.count : 0;
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_viscosity *v = s->v;
    un_row row;
    double val[UN_ROW_MAX][9];
    for (int64_t r = begin; r < end; r++) {
        int64_t n = v->node[r];
        if (n >= s->mesh->node_count) continue;
        un_vec3 b = {0}, u = s->in->u_node[n];
        v->mass[r] = gather_row(s, n, &row, val, &b);
        b = un_mad(b, u, v->mass[r]);
        for (int c = 0; c < 9; c += 4) val[0][c] += v->mass[r];
        slide_row(s, n, &row, val, &b);
        memcpy(v->free[r], s->free[n], sizeof v->free[r]);
        int32_t first = v->matrix.row[r];
        un_row_store(&row, val[0], 9, v->index, v->matrix.col + first, v->matrix.val[first]);
        v->b[r] = b;
        v->x[r] = s->kind[n] == UN_WALL_SLIDES ? un_block_times(s->free[n], u) : u;
        v->place[r] = s->mesh->x[n];
    }
}

static void store(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = s->v->node[r];
        if (n >= s->mesh->node_count) continue;
        un_vec3 u = s->v->x[r];
        if (s->kind[n] == UN_WALL_SLIDES)
            u = un_add(un_block_times(s->free[n], u), un_stuffed_given(s, n));
        s->in->u_node[n] = u;
    }
}

static void change_faces(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->mesh;
    double nu = s->in->def->fluid.viscosity / s->in->def->fluid.density;
    for (int64_t f = begin; f < end; f++) {
        const int32_t *n = m->face[f];
        un_vec3 normal = un_scale(un_normalize(m->area[f]), 1.0 / 3), u = {0}, was = {0};
        for (int k = 0; k < 3; k++) {
            u = un_add(u, s->in->u_node[n[k]]);
            was = un_add(was, s->was[n[k]]);
        }
        double h = un_octree_size(&m->tree, m->level[m->face_tet[f][0]]);
        double rest = s->in->u[f] - un_dot(was, normal);
        s->in->u[f] = un_dot(u, normal) + un_viscous_rest(nu, h, s->in->dt) * rest;
    }
}

/* ---- volume ---- */

/* Divergences of tets; the sum of the squared strain times the volume. */
static double look_at_tets(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->mesh;
    double strain = 0;
    for (int64_t t = begin; t < end; t++) {
        un_vec3 g[4];
        double d[3][3] = {{0}}, square = 0;
        un_stuffed_gradients(m, (int32_t)t, g);
        for (int i = 0; i < 4; i++) {
            un_vec3 u = s->in->u_node[m->tet[t][i]];
            double speed[3] = {u.x, u.y, u.z}, slope[3] = {g[i].x, g[i].y, g[i].z};
            for (int c = 0; c < 9; c++) d[c / 3][c % 3] += speed[c / 3] * slope[c % 3];
        }
        for (int c = 0; c < 9; c++) {
            double both = 0.5 * (d[c / 3][c % 3] + d[c % 3][c / 3]);
            square += both * both;
        }
        s->flux[t] = m->volume[t] * (d[0][0] + d[1][1] + d[2][2]);
        strain += m->volume[t] * square;
    }
    return strain;
}

/* The sum of the squared divergence times the volume. */
static double look_at_nodes(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->mesh;
    double squares = 0;
    for (int64_t n = begin; n < end; n++) {
        double sum = 0, total = 0;
        for (int32_t k = m->first[n]; k < m->first[n + 1]; k++) {
            sum += s->flux[m->corner[k] / 4];
            total += m->volume[m->corner[k] / 4];
        }
        double divergence = total > 0 ? sum / total : 0;
        s->push[n] = s->in->dt * s->in->def->fluid.viscosity * divergence;
        squares += 0.25 * total * divergence * divergence;
    }
    return squares;
}

static void next_step(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t n = begin; n < end; n++) {
        s->step[n] = s->last * s->step[n] - s->new * s->push[n];
        if (s->in->p) s->in->p[n] += s->step[n] / s->in->dt;
    }
}

static void push_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->mesh;
    for (int64_t r = begin; r < end; r++) {
        int32_t n = s->v->node[r];
        if (n >= m->node_count) continue;
        un_vec3 force = {0, 0, 0}, g[4];
        for (int32_t k = m->first[n]; k < m->first[n + 1]; k++) {
            int32_t t = m->corner[k] / 4;
            const int32_t *at = m->tet[t];
            double mean =
                0.25 * (s->step[at[0]] + s->step[at[1]] + s->step[at[2]] + s->step[at[3]]);
            un_stuffed_gradients(m, t, g);
            force = un_mad(force, g[m->corner[k] % 4], mean * m->volume[t]);
        }
        s->v->b[r] = un_add(s->v->b[r], un_block_times(s->free[n], force));
    }
}

/* ---- the step ---- */

#define NEED(array, which, count)                                                                  \
    UN_TRY(un_array_need(v->ctx, (void **)&(array), &v->capacity[which], (size_t)(count) + 1,      \
                         sizeof *(array)))

static un_status assemble(args *s, un_arena *arena)
{
    un_viscosity *v = s->v;
    un_block_csr *m = &v->matrix;
    size_t nodes = (size_t)s->mesh->node_count + 1;
    s->kind = un_arena_alloc(arena, nodes, sizeof *s->kind);
    s->wall = un_arena_alloc(arena, nodes, sizeof *s->wall);
    s->free = un_arena_alloc(arena, nodes, sizeof *s->free);
    s->drag = un_arena_alloc(arena, nodes, sizeof *s->drag);
    s->was = un_arena_alloc(arena, nodes, sizeof *s->was);
    if (!s->kind || !s->wall || !s->free || !s->drag || !s->was) return UN_ERROR_MEMORY;
    UN_TRY(un_stuffed_find_bodies(s, arena));
    int64_t places = s->mesh->node_count + 2 * s->dragged.count;
    NEED(v->index, 0, places);
    un_parallel_for(v->ctx, s->mesh->node_count, 1024, find_walls, s);
    un_parallel_for(v->ctx, s->mesh->node_count, 8192, number_nodes, s);
    UN_TRY(un_stuffed_gather(s, arena));
    UN_TRY(un_unknowns_number(v->ctx, v->index, places, &v->node, &v->capacity[1], &m->n));
    NEED(m->row, 2, m->n);
    NEED(v->b, 3, m->n);
    NEED(v->x, 4, m->n);
    NEED(v->place, 5, m->n);
    NEED(v->mass, 9, m->n);
    UN_TRY(un_array_need(v->ctx, (void **)&v->free, &v->capacity_free, (size_t)m->n + 1,
                         sizeof *v->free));
    un_parallel_for(v->ctx, m->n, un_block_grain(m->n), count_entries, s);
    UN_TRY(un_stuffed_count(s, arena));
    UN_TRY(un_rows_start(v->ctx, m->row, m->n, "nodes of viscous liquid"));
    NEED(m->col, 6, m->row[m->n]);
    NEED(m->val, 7, m->row[m->n]);
    un_parallel_for(v->ctx, m->n, un_block_grain(m->n), fill_rows, s);
    un_stuffed_fill(s);
    return UN_OK;
}

static un_status solve_once(args *s, double tolerance, un_viscous_report *report)
{
    un_viscosity *v = s->v;
    UN_TRY(un_viscosity_round(v, true, tolerance, s->in->iteration_limit, &report->solve));
    if (!report->solve.finite) return UN_OK;
    un_parallel_for(v->ctx, v->matrix.n, un_block_grain(v->matrix.n), store, s);
    un_stuffed_store(s);
    return UN_OK;
}

static un_status solve_rounds(args *s, un_arena *arena, un_viscous_report *report)
{
    un_viscosity *v = s->v;
    int64_t nodes = s->mesh->node_count, tets = s->mesh->tet_count;
    double rho = 0;
    s->flux = un_arena_alloc(arena, (size_t)tets + 1, sizeof *s->flux);
    s->step = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *s->step);
    s->push = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *s->push);
    if (!s->flux || !s->step || !s->push) return UN_ERROR_MEMORY;
    memset(s->step, 0, (size_t)nodes * sizeof *s->step);
    for (double loose = LOOSE;;) {
        UN_TRY(solve_once(s, loose * s->in->tolerance, report));
        if (!report->solve.finite) return UN_OK;
        double strain = un_parallel_sum(v->ctx, tets, look_at_tets, s);
        double squares = un_parallel_sum(v->ctx, nodes, look_at_nodes, s);
        report->squeezed = strain > 0 ? sqrt(squares / strain) : 0;
        bool drags = s->beside_count > 0;
        bool enough = report->squeezed < (drags ? SQUEEZED_DRAG : SQUEEZED) ||
                      report->rounds == (drags ? ROUNDS_MAX_DRAG : ROUNDS_MAX);
        if (enough && loose == 1) return UN_OK;
        loose = enough ? 1 : fmax(1, loose / FALL);
        if (enough) continue;
        un_viscous_chebyshev(&rho, &s->last, &s->new);
        un_parallel_for(v->ctx, nodes, 16384, next_step, s);
        un_parallel_for(v->ctx, v->matrix.n, un_block_grain(v->matrix.n), push_rows, s);
        un_stuffed_push(s);
        report->rounds++;
    }
}

un_status un_viscosity_step_stuffed(un_viscosity *v, un_arena *arena, const un_viscous_stuffed *in,
                                    un_viscous_report *report)
{
    args s = {.v = v, .in = in, .mesh = in->mesh};
    *report = (un_viscous_report){.solve = {.converged = true, .finite = true}};
    if (in->p) memset(in->p, 0, (size_t)in->mesh->node_count * sizeof *in->p);
    if (in->mesh->tet_count == 0 || !(in->dt > 0)) return UN_OK;
    UN_TRY(assemble(&s, arena));
    report->node_count = v->matrix.n;
    report->tet_count = in->mesh->tet_count;
    if (v->matrix.n > 0 && in->keeps_volume)
        UN_TRY(solve_rounds(&s, arena, report));
    else if (v->matrix.n > 0)
        UN_TRY(solve_once(&s, in->tolerance, report));
    if (!report->solve.finite) return UN_OK;
    un_dragged_move(s.dragged.at, s.dragged.count, in->bodies);
    un_parallel_for(v->ctx, in->mesh->face_count, 4096, change_faces, &s);
    return UN_OK;
}
