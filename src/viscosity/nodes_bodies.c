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
    un_dragged_list list;
    if (!bodies || bodies->free_count == 0 || !s->in->walls || !s->in->walls->body) return UN_OK;
    s->slip = un_arena_alloc(arena, (size_t)s->mesh->node_count + 1, sizeof *s->slip);
    s->own = un_arena_alloc(arena, (size_t)bodies->free_count, sizeof *s->own);
    if (!s->slip || !s->own) return UN_ERROR_MEMORY;
    UN_TRY(un_dragged_find_free(&list, arena, bodies));
    s->dragged = list.at;
    s->dragged_count = list.count;
    s->number = list.number;
    return UN_OK;
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

/* Lists own nodes that stick to bodies. */
static un_status list_members(un_stress_nodes *s, un_arena *arena)
{
    int32_t count = 0;
    un_part own = un_tets_own_nodes(s->mesh);
    int32_t *body = un_arena_alloc(arena, (size_t)s->mesh->node_count + 1, sizeof *body);
    s->owner = un_arena_alloc(arena, (size_t)s->mesh->tet_count + 1, sizeof *s->owner);
    if (!body || !s->owner) return UN_ERROR_MEMORY;
    un_parallel_for(s->v->ctx, s->mesh->tet_count, 8192, find_owners, s);
    for (int64_t n = own.begin; n < own.end; n++) {
        int32_t b = s->in->walls->body[n];
        body[n] = b >= 0 && s->in->walls->kind[n] == UN_WALL_STICKS ? s->number[b] : -1;
        if (body[n] >= 0 && !is_dragged(s, body[n], (int32_t)n)) body[n] = -1;
        if (body[n] >= 0) s->dragged[body[n]].count++;
    }
    for (int32_t k = 0; k < s->dragged_count; k++) {
        s->dragged[k].first = count;
        count += s->dragged[k].count;
        s->dragged[k].count = 0;
    }
    s->member = un_arena_alloc(arena, (size_t)count + 1, sizeof *s->member);
    if (!s->member) return UN_ERROR_MEMORY;
    for (int64_t n = own.begin; n < own.end; n++) {
        if (body[n] < 0) continue;
        un_dragged *d = &s->dragged[body[n]];
        s->member[d->first + d->count++] = (int32_t)n;
    }
    return UN_OK;
}

un_status un_dragged_gather(un_stress_nodes *s, un_arena *arena)
{
    if (s->dragged_count == 0) return UN_OK;
    double *counts = un_arena_alloc(arena, (size_t)s->dragged_count, sizeof *counts);
    UN_TRY(un_tets_agree(s->mesh, counts ? list_members(s, arena) : UN_ERROR_MEMORY));
    for (int32_t k = 0; k < s->dragged_count; k++) counts[k] = s->dragged[k].count;
    un_viscous_add(s, counts, s->dragged_count);
    for (int32_t k = 0; k < s->dragged_count; k++) {
        s->dragged[k].any = counts[k] > 0;
        for (int which = 0; which < 2; which++)
            s->v->index[un_dragged_place(s, k, which)] = counts[k] > 0 ? 0 : -1;
    }
    return UN_OK;
}

/* ---- rows ---- */

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
    int32_t n = v->matrix.n, bodies = s->dragged_count, body[UN_ROW_MAX];
    un_part own = un_viscosity_rows(v);
    if (bodies == 0) return UN_OK;
    double *entries = un_arena_alloc(arena, (size_t)bodies, sizeof *entries);
    s->beside = un_arena_alloc(arena, (size_t)n + 1, sizeof *s->beside);
    s->next = un_arena_alloc(arena, 2 * (size_t)bodies, sizeof *s->next);
    UN_TRY(un_tets_agree(s->mesh, entries && s->beside && s->next ? UN_OK : UN_ERROR_MEMORY));
    memset(entries, 0, (size_t)bodies * sizeof *entries);
    un_parallel_part(v->ctx, own, un_block_grain(n), flag_beside, s);
    int32_t *beside = s->beside;
    s->beside += own.begin; /* the list takes the place of the flags */
    for (int32_t r = (int32_t)own.begin; r < own.end; r++) {
        if (beside[r] == 0) continue;
        s->beside[s->beside_count++] = r;
        int count = find_beside(s, v->node[r], body);
        for (int i = 0; i < count; i++) entries[body[i]]++;
    }
    un_viscous_add(s, entries, bodies);
    for (int32_t k = 0; k < bodies && un_viscous_last(s); k++)
        for (int which = 0; which < 2; which++) {
            int32_t r = v->index[un_dragged_place(s, k, which)];
            if (r >= 0) v->matrix.row[r + 1] = (int32_t)entries[k] + 2;
        }
    return UN_OK;
}

static void find_motions(const un_stress_nodes *s, int32_t k, int64_t n, double motion[2][9])
{
    un_dragged_motions(&s->dragged[k], s->mesh->x[n], motion);
}

/* What node n, which sticks to body k, adds to the body's own equations. */
static void add_node(const un_stress_nodes *s, int32_t k, int32_t n, un_dragged_own *own)
{
    const un_tets *m = s->mesh;
    double here[2][9], there[2][9], room[4][9], mass[9] = {0};
    find_motions(s, k, n, here);
    for (int c = 0; c < 9; c += 4) mass[c] = s->mass[n];
    un_dragged_add_pair(own, here, mass, here);
    un_dragged_add_force(own, here, un_scale(s->slip[n], s->mass[n]));
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        if (un_dragged_in(s, t) != k) continue;
        const double(*stress)[9] = un_stress_of(s, t, m->corner[e] % 4, room);
        for (int j = 0; j < 4; j++) {
            int32_t other = m->tet[t][j];
            double block[9];
            if (s->v->index[other] >= 0) continue;
            for (int c = 0; c < 9; c++) block[c] = s->stiff[t] * stress[j][c];
            un_dragged_add_force(own, here, un_scale(un_block_times(block, s->in->u[other]), -1));
            if (!un_dragged_has(s, k, other)) continue;
            find_motions(s, k, other, there);
            un_dragged_add_pair(own, here, block, there);
        }
    }
}

static void add_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_nodes *s = arg;
    for (int64_t k = begin; k < end; k++) {
        const un_dragged *d = &s->dragged[k];
        if (d->any && un_viscous_first(s)) un_dragged_begin(&s->own[k], d, s->in->bodies);
        for (int32_t i = 0; i < d->count; i++)
            add_node(s, (int32_t)k, s->member[d->first + i], &s->own[k]);
    }
}

static void set_rows(un_stress_nodes *s)
{
    for (int32_t k = 0; k < s->dragged_count; k++) {
        int32_t row[2];
        for (int which = 0; which < 2; which++)
            row[which] = s->v->index[un_dragged_place(s, k, which)];
        if (s->dragged[k].any) un_dragged_set_rows(s->v, &s->dragged[k], row, &s->own[k]);
    }
}

un_status un_dragged_fill(un_stress_nodes *s)
{
    size_t bytes = (size_t)s->dragged_count * sizeof *s->own;
    if (s->dragged_count == 0) return UN_OK;
    if (s->v->shared)
        UN_TRY(un_viscous_couple_bodies(s));
    else
        un_dragged_couple(s->v, s->mesh->node_count, s->dragged_count, s->beside, s->beside_count,
                          s->next);
    memset(s->own, 0, bytes);
    un_viscous_begin_turn(s, s->own, bytes);
    un_parallel_for(s->v->ctx, s->dragged_count, 1, add_nodes, s);
    un_viscous_end_turn(s, s->own, bytes);
    if (un_viscous_last(s)) set_rows(s);
    return UN_OK;
}

/* ---- after a solve ---- */

/* The rank that has the rows tells all. */
static void take_changes(const un_stress_nodes *s)
{
    size_t bytes = (size_t)s->dragged_count * sizeof *s->own;
    memset(s->own, 0, bytes);
    un_viscous_begin_turn(s, s->own, bytes);
    for (int32_t k = 0; k < s->dragged_count && un_viscous_last(s); k++)
        for (int which = 0; which < 2 && s->dragged[k].any; which++) {
            un_vec3 x = s->v->x[s->v->index[un_dragged_place(s, k, which)]];
            double change[3] = {x.x, x.y, x.z};
            memcpy(s->own[k].b + (ptrdiff_t)3 * which, change, sizeof change);
        }
    un_viscous_end_turn(s, s->own, bytes);
}

void un_dragged_store(un_stress_nodes *s)
{
    if (s->dragged_count > 0) take_changes(s);
    for (int32_t k = 0; k < s->dragged_count; k++) {
        un_dragged *d = &s->dragged[k];
        const double *b = s->own[k].b;
        if (!d->any) continue;
        un_vec3 along = un_v3(b[0], b[1], b[2]), about = un_v3(b[3], b[4], b[5]);
        un_dragged_take(d, along, about);
        for (int32_t i = 0; i < d->count; i++) {
            int32_t n = s->member[d->first + i];
            double motion[2][9];
            find_motions(s, k, n, motion);
            s->in->u[n] = un_add(s->in->walls->u[n], un_add(un_block_times(motion[0], along),
                                                            un_block_times(motion[1], about)));
        }
    }
}

typedef struct push_args {
    const un_stress_nodes *s;
    un_corner_force *force;
    const void *arg;
} push_args;

static void push_body(const push_args *a, int32_t k)
{
    const un_stress_nodes *s = a->s;
    const un_tets *m = s->mesh;
    const un_dragged *d = &s->dragged[k];
    double motion[2][9];
    for (int32_t i = 0; i < d->count; i++) {
        int32_t n = s->member[d->first + i];
        un_vec3 here = {0, 0, 0};
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            if (un_dragged_in(s, t) == k)
                here = un_add(here, a->force(a->arg, t, m->corner[e] % 4));
        }
        find_motions(s, k, n, motion);
        un_dragged_add_force(&s->own[k], (const double(*)[9])motion, here);
    }
}

static void push_bodies(void *arg, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++) push_body(arg, (int32_t)k);
}

void un_dragged_push(const un_stress_nodes *s, un_corner_force *force, const void *arg)
{
    push_args a = {s, force, arg};
    size_t bytes = (size_t)s->dragged_count * sizeof *s->own;
    if (s->dragged_count == 0) return;
    memset(s->own, 0, bytes);
    un_viscous_begin_turn(s, s->own, bytes);
    un_parallel_for(s->v->ctx, s->dragged_count, 1, push_bodies, &a);
    un_viscous_end_turn(s, s->own, bytes);
    for (int32_t k = 0; k < s->dragged_count && un_viscous_last(s); k++)
        for (int which = 0; which < 2 && s->dragged[k].any; which++) {
            const double *b = s->own[k].b + (ptrdiff_t)3 * which;
            un_vec3 *to = &s->v->b[s->v->index[un_dragged_place(s, k, which)]];
            *to = un_add(*to, un_v3(b[0], b[1], b[2]));
        }
}

/* ---- momentum ---- */

static void sum_momentum(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_stress_nodes *s = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = s->v->node[r];
        if (n >= s->mesh->node_count) return;
        sums[0] += s->mass[n] * s->in->u[n].x;
        sums[1] += s->mass[n] * s->in->u[n].y;
        sums[2] += s->mass[n] * s->in->u[n].z;
    }
}

un_vec3 un_dragged_momentum(const un_stress_nodes *s, bool before)
{
    double sums[3];
    if (s->dragged_count == 0) return un_v3(0, 0, 0);
    un_viscosity_sums(s->v, 3, sum_momentum, (void *)(uintptr_t)s, sums);
    un_vec3 sum = un_v3(sums[0], sums[1], sums[2]);
    for (int32_t k = 0; k < s->dragged_count; k++) {
        const un_dragged *d = &s->dragged[k];
        if (!d->any) continue;
        un_viscous_begin_turn(s, &sum, sizeof sum);
        for (int32_t i = 0; i < d->count; i++) {
            int32_t n = s->member[d->first + i];
            un_vec3 u = before ? un_add(s->in->u[n], s->slip[n]) : s->in->u[n];
            sum = un_mad(sum, u, s->mass[n]);
        }
        un_viscous_end_turn(s, &sum, sizeof sum);
    }
    return sum;
}
