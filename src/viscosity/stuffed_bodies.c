/* Bodies that the liquid moves, in the viscous system of tets that conform to them. The equations
 * stand in nodes_bodies.c. */
#include "viscosity/stuffed.h"

un_status un_stuffed_find_bodies(un_stuffed_stress *s, un_arena *arena)
{
    size_t nodes = (size_t)s->mesh->node_count + 1;
    if (s->in->bodies->free_count == 0) return UN_OK;
    s->stuck = un_arena_alloc(arena, nodes, sizeof *s->stuck);
    s->slip = un_arena_alloc(arena, nodes, sizeof *s->slip);
    if (!s->stuck || !s->slip) return UN_ERROR_MEMORY;
    return un_dragged_find_free(&s->dragged, arena, s->in->bodies);
}

/* Is node n in a tet whose stress drags the body that it sticks to? */
static bool is_dragged(const un_stuffed_stress *s, int32_t n)
{
    const un_stuffing *m = s->mesh;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++)
        if (un_stuffed_owner(s, m->corner[e] / 4) == s->stuck[n]) return true;
    return false;
}

un_status un_stuffed_gather(un_stuffed_stress *s, un_arena *arena)
{
    int32_t nodes = s->mesh->node_count, count = 0;
    if (s->dragged.count == 0) return UN_OK;
    for (int32_t n = 0; n < nodes; n++)
        if (s->stuck[n] >= 0 && is_dragged(s, n)) s->dragged.at[s->stuck[n]].count++;
    for (int32_t k = 0; k < s->dragged.count; k++) {
        un_dragged *d = &s->dragged.at[k];
        d->first = count;
        count += d->count;
        for (int which = 0; which < 2; which++)
            s->v->index[un_stuffed_place(s, k, which)] = d->count > 0 ? 0 : -1;
        d->count = 0;
    }
    s->member = un_arena_alloc(arena, (size_t)count + 1, sizeof *s->member);
    if (!s->member) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < nodes; n++) {
        if (s->stuck[n] < 0 || !is_dragged(s, n)) continue;
        un_dragged *d = &s->dragged.at[s->stuck[n]];
        s->member[d->first + d->count++] = n;
    }
    return UN_OK;
}

/* ---- rows ---- */

/* The bodies that drag on node n: those in its tets, once each. */
static int find_beside(const un_stuffed_stress *s, int32_t n, int32_t body[UN_ROW_MAX])
{
    const un_stuffing *m = s->mesh;
    int count = 0;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t k = un_stuffed_owner(s, m->corner[e] / 4);
        bool is_new = k >= 0;
        for (int i = 0; i < count; i++) is_new &= body[i] != k;
        if (is_new) body[count++] = k;
    }
    return count;
}

un_status un_stuffed_count(un_stuffed_stress *s, un_arena *arena)
{
    un_viscosity *v = s->v;
    int32_t rows = v->matrix.n, body[UN_ROW_MAX], *row = v->matrix.row + 1;
    if (s->dragged.count == 0) return UN_OK;
    s->beside = un_arena_alloc(arena, (size_t)rows + 1, sizeof *s->beside);
    s->next = un_arena_alloc(arena, 2 * (size_t)s->dragged.count, sizeof *s->next);
    if (!s->beside || !s->next) return UN_ERROR_MEMORY;
    for (int32_t r = 0; r < rows && v->node[r] < s->mesh->node_count; r++) {
        int count = find_beside(s, v->node[r], body);
        if (count > 0) s->beside[s->beside_count++] = r;
        for (int i = 0; i < 2 * count; i++)
            row[v->index[un_stuffed_place(s, body[i / 2], i % 2)]]++;
    }
    for (int32_t k = 0; k < 2 * s->dragged.count; k++) {
        int32_t r = v->index[un_stuffed_place(s, 0, k)];
        if (r >= 0) row[r] += 2;
    }
    return UN_OK;
}

/* What node n, which sticks to body k, adds to the body's own equations. */
static void add_node(const un_stuffed_stress *s, int32_t k, int32_t n, un_dragged_own *own)
{
    const un_stuffing *m = s->mesh;
    const un_dragged *d = &s->dragged.at[k];
    double here[2][9], there[2][9], mass[9] = {0}, kg = 0;
    un_dragged_motions(d, m->x[n], here);
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        un_vec3 g[4];
        kg += 0.25 * s->in->def->fluid.density * m->volume[t];
        if (un_stuffed_owner(s, t) != k) continue;
        un_stuffed_gradients(m, t, g);
        for (int j = 0; j < 4; j++) {
            int32_t other = m->tet[t][j];
            double block[9];
            un_stuffed_block(s, t, g, m->corner[e] % 4, j, block);
            un_vec3 u = s->kind[other] == UN_WALL_SLIDES ? un_stuffed_given(s, other)
                        : s->v->index[other] < 0         ? s->wall[other]
                                                         : un_v3(0, 0, 0);
            un_dragged_add_force(own, here, un_scale(un_block_times(block, u), -1));
            if (s->stuck[other] != k) continue;
            un_dragged_motions(d, m->x[other], there);
            un_dragged_add_pair(own, here, block, there);
        }
    }
    for (int c = 0; c < 9; c += 4) mass[c] = kg;
    un_dragged_add_pair(own, here, mass, here);
    un_dragged_add_force(own, here, un_scale(s->slip[n], kg));
}

static void fill_bodies(void *arg, int64_t begin, int64_t end)
{
    un_stuffed_stress *s = arg;
    for (int64_t k = begin; k < end; k++) {
        const un_dragged *d = &s->dragged.at[k];
        un_dragged_own own;
        if (d->count == 0) continue;
        un_dragged_begin(&own, d, s->in->bodies);
        for (int32_t i = 0; i < d->count; i++)
            add_node(s, (int32_t)k, s->member[d->first + i], &own);
        int32_t row[2] = {s->v->index[un_stuffed_place(s, (int32_t)k, 0)],
                          s->v->index[un_stuffed_place(s, (int32_t)k, 1)]};
        un_dragged_set_rows(s->v, d, row, &own);
    }
}

void un_stuffed_fill(un_stuffed_stress *s)
{
    if (s->dragged.count == 0) return;
    un_dragged_couple(s->v, s->mesh->node_count, s->dragged.count, s->beside, s->beside_count,
                      s->next);
    un_parallel_for(s->v->ctx, s->dragged.count, 1, fill_bodies, s);
}

/* ---- rounds ---- */

static void push_bodies(void *arg, int64_t begin, int64_t end)
{
    un_stuffed_stress *s = arg;
    const un_stuffing *m = s->mesh;
    for (int64_t k = begin; k < end; k++) {
        const un_dragged *d = &s->dragged.at[k];
        un_dragged_own sum = {0};
        double motion[2][9];
        if (d->count == 0) continue;
        for (int32_t i = 0; i < d->count; i++) {
            int32_t n = s->member[d->first + i];
            un_vec3 force = {0, 0, 0}, g[4];
            for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
                int32_t t = m->corner[e] / 4;
                const int32_t *at = m->tet[t];
                if (un_stuffed_owner(s, t) != k) continue;
                un_stuffed_gradients(m, t, g);
                double mean = s->step[at[0]] + s->step[at[1]] + s->step[at[2]] + s->step[at[3]];
                force = un_mad(force, g[m->corner[e] % 4], 0.25 * mean * m->volume[t]);
            }
            un_dragged_motions(d, m->x[n], motion);
            un_dragged_add_force(&sum, (const double(*)[9])motion, force);
        }
        for (int which = 0; which < 2; which++) {
            un_vec3 *b = &s->v->b[s->v->index[un_stuffed_place(s, (int32_t)k, which)]];
            const double *more = sum.b + 3 * which;
            *b = un_add(*b, un_v3(more[0], more[1], more[2]));
        }
    }
}

void un_stuffed_push(un_stuffed_stress *s)
{
    if (s->dragged.count > 0) un_parallel_for(s->v->ctx, s->dragged.count, 1, push_bodies, s);
}

void un_stuffed_store(un_stuffed_stress *s)
{
    for (int32_t k = 0; k < s->dragged.count; k++) {
        un_dragged *d = &s->dragged.at[k];
        if (d->count == 0) continue;
        un_vec3 along = s->v->x[s->v->index[un_stuffed_place(s, k, 0)]];
        un_vec3 about = s->v->x[s->v->index[un_stuffed_place(s, k, 1)]];
        un_dragged_take(d, along, about);
        for (int32_t i = 0; i < d->count; i++) {
            int32_t n = s->member[d->first + i];
            double motion[2][9];
            un_dragged_motions(d, s->mesh->x[n], motion);
            s->in->u_node[n] = un_add(s->wall[n], un_add(un_block_times(motion[0], along),
                                                         un_block_times(motion[1], about)));
        }
    }
}
