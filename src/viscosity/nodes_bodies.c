/* Bodies that the liquid moves, in the viscous system of nodes.
 *
 * Nodes that stick to such a body have its velocity, u_n = R_n U with U its velocity and its spin
 * times a length L, R_n = [1, -[r_n]x / L]. The stress on them drags it: with dU the change of U,
 * and M_s their share of the liquid, which may slip before the solve,
 *
 *     (M + dt K) u + dt K R dU = b
 *     dt R^T K u + (M_body + R^T M_s R + dt R^T K R) dU = R^T M_s slip - dt R^T K R U
 *
 * Velocity and spin are two more rows of the block matrix. Forces on body and liquid are opposite,
 * and light bodies in thick liquid are as stable as heavy ones. In a tet with nodes of two bodies
 * only the first one is dragged, and the other moves as before. */
#include "viscosity/nodes.h"

un_status un_dragged_find(un_stress_nodes *s, un_arena *arena)
{
    const un_bodies *bodies = s->in->bodies;
    if (!bodies || bodies->free_count == 0 || !s->in->walls || !s->in->walls->body) return UN_OK;
    s->dragged = un_arena_alloc(arena, (size_t)bodies->free_count, sizeof *s->dragged);
    s->number = un_arena_alloc(arena, (size_t)bodies->count, sizeof *s->number);
    s->slip = un_arena_alloc(arena, (size_t)s->mesh->node_count + 1, sizeof *s->slip);
    if (!s->dragged || !s->number || !s->slip) return UN_ERROR_MEMORY;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *from = &bodies->body[b];
        s->number[b] = -1;
        if (!from->free) continue;
        un_vec3 size = un_sub(from->bounds.max, from->bounds.min);
        un_dragged *to = &s->dragged[s->dragged_count];
        *to = (un_dragged){.body = b,
                           .centre = un_pose_apply(&from->to, from->centre),
                           .length = 0.5 * fmax(size.x, fmax(size.y, size.z))};
        for (int i = 0; i < 3; i++) {
            to->moves[i] = from->inverse.along[i] > 0;
            to->moves[3 + i] = from->inverse.about[i][i] > 0;
        }
        s->number[b] = s->dragged_count++;
    }
    return UN_OK;
}

void un_dragged_motion(const un_stress_nodes *s, int32_t k, int64_t n, int which, double block[9])
{
    const un_dragged *d = &s->dragged[k];
    un_vec3 r = un_scale(un_sub(s->mesh->x[n], d->centre), 1 / d->length);
    double turn[9] = {0, r.z, -r.y, -r.z, 0, r.x, r.y, -r.x, 0};
    for (int c = 0; c < 9; c++) {
        block[c] = which == 1 ? turn[c] : c % 4 == 0;
        if (!d->moves[3 * which + c % 3]) block[c] = 0;
    }
}

/* The first body of those that the tet's nodes stick to. */
static void find_owners(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    const un_viscous_walls *w = s->in->walls;
    for (int64_t t = begin; t < end; t++) {
        s->owner[t] = -1;
        if (!(s->stiff[t] > 0)) continue;
        for (int i = 0; i < 4; i++) {
            int32_t n = s->mesh->tet[t][i];
            if (w->body[n] < 0 || w->kind[n] != UN_WALL_STICKS) continue;
            int32_t k = s->number[w->body[n]];
            if (s->owner[t] < 0 || k < s->owner[t]) s->owner[t] = k;
        }
    }
}

static bool is_dragged(const un_stress_nodes *s, int32_t k, int32_t n)
{
    const un_tets *m = s->mesh;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        if (un_dragged_in(s, t) == k) return true;
    }
    return false;
}

un_status un_dragged_gather(un_stress_nodes *s, un_arena *arena)
{
    int32_t nodes = s->mesh->node_count, count = 0;
    if (s->dragged_count == 0) return UN_OK;
    int32_t *body = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *body);
    s->owner = un_arena_alloc(arena, (size_t)s->mesh->tet_count + 1, sizeof *s->owner);
    if (!body || !s->owner) return UN_ERROR_MEMORY;
    un_parallel_for(s->v->ctx, s->mesh->tet_count, 8192, find_owners, s);
    for (int32_t n = 0; n < nodes; n++) {
        int32_t b = s->in->walls->body[n];
        body[n] = b >= 0 && s->in->walls->kind[n] == UN_WALL_STICKS ? s->number[b] : -1;
        if (body[n] >= 0 && !is_dragged(s, body[n], n)) body[n] = -1;
        if (body[n] >= 0) s->dragged[body[n]].count++;
    }
    for (int32_t k = 0; k < s->dragged_count; k++) {
        un_dragged *d = &s->dragged[k];
        d->first = count;
        count += d->count;
        for (int which = 0; which < 2; which++)
            s->v->index[un_dragged_place(s, k, which)] = d->count > 0 ? 0 : -1;
        d->count = 0;
    }
    s->member = un_arena_alloc(arena, (size_t)count + 1, sizeof *s->member);
    if (!s->member) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < nodes; n++) {
        if (body[n] < 0) continue;
        un_dragged *d = &s->dragged[body[n]];
        s->member[d->first + d->count++] = n;
    }
    return UN_OK;
}

/* ---- rows ---- */

/* Which body, and which row of it, an unknown is; -1: a node. */
static int32_t body_of(const un_stress_nodes *s, int32_t unknown, int *which)
{
    int32_t place = s->v->node[unknown] - s->mesh->node_count;
    *which = place & 1;
    return place < 0 ? -1 : place / 2;
}

/* The bodies that drag on node n: those in its tets, once each. */
static int find_beside(const un_stress_nodes *s, int32_t n, int32_t body[UN_ROW_MAX])
{
    const un_tets *m = s->mesh;
    int count = 0;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        int32_t k = un_dragged_in(s, t);
        bool is_new = k >= 0;
        for (int i = 0; i < count; i++) is_new &= body[i] != k;
        if (is_new) body[count++] = k;
    }
    return count;
}

static void flag_beside(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    int32_t body[UN_ROW_MAX];
    for (int64_t r = begin; r < end; r++) {
        int32_t n = s->v->node[r];
        s->beside[r] = n < s->mesh->node_count && find_beside(s, n, body) > 0;
    }
}

un_status un_dragged_count(un_stress_nodes *s, un_arena *arena)
{
    un_viscosity *v = s->v;
    int32_t n = v->matrix.n, body[UN_ROW_MAX], *row = v->matrix.row + 1;
    if (s->dragged_count == 0) return UN_OK;
    s->beside = un_arena_alloc(arena, (size_t)n + 1, sizeof *s->beside);
    s->next = un_arena_alloc(arena, 2 * (size_t)s->dragged_count, sizeof *s->next);
    if (!s->beside || !s->next) return UN_ERROR_MEMORY;
    un_parallel_for(v->ctx, n, un_block_grain(n), flag_beside, s);
    for (int32_t r = 0; r < n; r++) {
        if (s->beside[r] == 0) continue;
        s->beside[s->beside_count++] = r;
        int count = find_beside(s, v->node[r], body);
        for (int i = 0; i < count; i++)
            for (int which = 0; which < 2; which++)
                row[v->index[un_dragged_place(s, body[i], which)]]++;
    }
    for (int32_t k = 0; k < s->dragged_count; k++)
        for (int which = 0; which < 2; which++) {
            int32_t r = v->index[un_dragged_place(s, k, which)];
            if (r >= 0) row[r] += 2;
        }
    return UN_OK;
}

/* The inertia of what is free to move. */
static void find_inertia(const un_stress_nodes *s, const un_dragged *d, double mass[6][6])
{
    const un_inverse_mass *inverse = &s->in->bodies->body[d->body].inverse;
    double about[9];
    for (int i = 0; i < 3; i++) {
        mass[i][i] = d->moves[i] ? 1 / inverse->along[i] : 0;
        for (int j = 0; j < 3; j++) about[3 * i + j] = inverse->about[i][j];
    }
    un_small_inverse(about, 3, 1e-9);
    for (int c = 0; c < 9; c++) mass[3 + c / 3][3 + c % 3] = about[c] / (d->length * d->length);
}

/* own += R_n^T K R_m; motions as 3x3 blocks, K as one. */
static void add_pair(double own[6][6], const double left[2][9], const double *k,
                     const double right[2][9])
{
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    for (int a = 0; a < 3; a++)
                        for (int b = 0; b < 3; b++)
                            own[3 * p + i][3 * q + j] +=
                                left[p][3 * a + i] * k[3 * a + b] * right[q][3 * b + j];
}

static void add_force(double b[6], const double motion[2][9], un_vec3 force)
{
    double f[3] = {force.x, force.y, force.z};
    for (int i = 0; i < 6; i++)
        for (int a = 0; a < 3; a++) b[i] += motion[i / 3][3 * a + i % 3] * f[a];
}

static void find_motions(const un_stress_nodes *s, int32_t k, int64_t n, double motion[2][9])
{
    for (int which = 0; which < 2; which++) un_dragged_motion(s, k, n, which, motion[which]);
}

/* What node n, which sticks to body k, adds to the body's own equations. */
static void add_node(const un_stress_nodes *s, int32_t k, int32_t n, double own[6][6], double b[6])
{
    const un_tets *m = s->mesh;
    double here[2][9], there[2][9], room[4][9], mass[9] = {0};
    find_motions(s, k, n, here);
    for (int c = 0; c < 9; c += 4) mass[c] = s->mass[n];
    add_pair(own, here, mass, here);
    add_force(b, here, un_scale(s->slip[n], s->mass[n]));
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        if (un_dragged_in(s, t) != k) continue;
        const double(*stress)[9] = un_stress_of(s, t, m->corner[e] % 4, room);
        for (int j = 0; j < 4; j++) {
            int32_t other = m->tet[t][j];
            double block[9];
            if (s->v->index[other] >= 0) continue;
            for (int c = 0; c < 9; c++) block[c] = s->stiff[t] * stress[j][c];
            add_force(b, here, un_scale(un_block_times(block, s->in->u[other]), -1));
            if (!un_dragged_has(s, k, other)) continue;
            find_motions(s, k, other, there);
            add_pair(own, here, block, there);
        }
    }
}

/* Rows of nodes have their couplings to bodies already; bodies get the transposes. */
static void couple(un_stress_nodes *s)
{
    un_block_csr *m = &s->v->matrix;
    for (int32_t p = 0; p < 2 * s->dragged_count; p++) {
        int32_t r = s->v->index[s->mesh->node_count + p];
        s->next[p] = r >= 0 ? m->row[r] : 0;
    }
    for (int32_t i = 0; i < s->beside_count; i++) {
        int32_t r = s->beside[i];
        for (int32_t e = m->row[r]; e < m->row[r + 1]; e++) {
            int which;
            int32_t k = body_of(s, m->col[e], &which);
            if (k < 0) continue;
            int32_t at = s->next[2 * k + which]++;
            m->col[at] = r;
            for (int c = 0; c < 9; c++) m->val[at][c] = m->val[e][3 * (c % 3) + c / 3];
        }
    }
}

static void fill_body(un_stress_nodes *s, int32_t k)
{
    un_viscosity *v = s->v;
    const un_dragged *d = &s->dragged[k];
    double own[6][6] = {{0}}, b[6] = {0}, largest = 0;
    find_inertia(s, d, own);
    for (int32_t i = 0; i < d->count; i++) add_node(s, k, s->member[d->first + i], own, b);
    for (int i = 0; i < 6; i++) largest = fmax(largest, own[i][i]);
    for (int i = 0; i < 6; i++)
        if (!d->moves[i]) own[i][i] = largest;
    for (int which = 0; which < 2; which++) {
        int32_t r = v->index[un_dragged_place(s, k, which)];
        int32_t at = v->matrix.row[r + 1] - 2;
        for (int other = 0; other < 2; other++, at++) {
            v->matrix.col[at] = v->index[un_dragged_place(s, k, other)];
            for (int c = 0; c < 9; c++)
                v->matrix.val[at][c] = own[3 * which + c / 3][3 * other + c % 3];
        }
        memset(v->free[r], 0, sizeof v->free[r]);
        /* rigid motions of multigrid know velocities, no spins */
        for (int i = 0; i < 3 && which == 0; i++) v->free[r][4 * i] = d->moves[i];
        v->b[r] = un_v3(b[3 * which], b[3 * which + 1], b[3 * which + 2]);
        v->x[r] = un_v3(0, 0, 0);
        v->place[r] = d->centre;
        v->mass[r] = 0;
    }
}

static void fill_bodies(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    for (int64_t k = begin; k < end; k++)
        if (s->dragged[k].count > 0) fill_body(s, (int32_t)k);
}

void un_dragged_fill(un_stress_nodes *s)
{
    if (s->dragged_count == 0) return;
    couple(s);
    un_parallel_for(s->v->ctx, s->dragged_count, 1, fill_bodies, s);
}

/* ---- after a solve ---- */

void un_dragged_store(un_stress_nodes *s)
{
    for (int32_t k = 0; k < s->dragged_count; k++) {
        un_dragged *d = &s->dragged[k];
        if (d->count == 0) continue;
        un_vec3 along = s->v->x[s->v->index[un_dragged_place(s, k, 0)]],
                about = s->v->x[s->v->index[un_dragged_place(s, k, 1)]];
        double change[6] = {along.x, along.y, along.z, about.x, about.y, about.z};
        for (int i = 0; i < 6; i++) d->change[i] = d->moves[i] ? change[i] : 0;
        for (int32_t i = 0; i < d->count; i++) {
            int32_t n = s->member[d->first + i];
            double motion[2][9];
            find_motions(s, k, n, motion);
            s->in->u[n] = un_add(s->in->walls->u[n], un_add(un_block_times(motion[0], along),
                                                            un_block_times(motion[1], about)));
        }
    }
}

void un_dragged_move(const un_stress_nodes *s)
{
    for (int32_t k = 0; k < s->dragged_count; k++) {
        const un_dragged *from = &s->dragged[k];
        un_body *to = &s->in->bodies->body[from->body];
        const double *d = from->change;
        to->velocity = un_add(to->velocity, un_v3(d[0], d[1], d[2]));
        to->spin = un_mad(to->spin, un_v3(d[3], d[4], d[5]), 1 / from->length);
    }
}

un_vec3 un_dragged_sum(const un_stress_nodes *s, int32_t k, int which, un_corner_force *force,
                       const void *arg)
{
    const un_tets *m = s->mesh;
    const un_dragged *d = &s->dragged[k];
    double sum[6] = {0}, motion[2][9];
    for (int32_t i = 0; i < d->count; i++) {
        int32_t n = s->member[d->first + i];
        un_vec3 here = {0, 0, 0};
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            if (un_dragged_in(s, t) == k) here = un_add(here, force(arg, t, m->corner[e] % 4));
        }
        find_motions(s, k, n, motion);
        add_force(sum, (const double(*)[9])motion, here);
    }
    return un_v3(sum[3 * which], sum[3 * which + 1], sum[3 * which + 2]);
}
