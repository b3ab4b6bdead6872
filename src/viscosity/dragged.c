/* Bodies that the liquid sticks to and moves: their equations in a viscous system of nodes. What
 * they are stands in nodes_bodies.c, which has them on tets, as stuffed_bodies.c has on tets that
 * conform. */
#include "viscosity/dragged.h"

un_status un_dragged_find_free(un_dragged_list *list, un_arena *arena, const un_bodies *bodies)
{
    *list = (un_dragged_list){
        .at = un_arena_alloc(arena, (size_t)bodies->free_count, sizeof *list->at),
        .number = un_arena_alloc(arena, (size_t)bodies->count, sizeof *list->number)};
    if (!list->at || !list->number) return UN_ERROR_MEMORY;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *from = &bodies->body[b];
        list->number[b] = -1;
        if (!from->free) continue;
        un_vec3 size = un_sub(from->bounds.max, from->bounds.min);
        un_dragged *to = &list->at[list->count];
        *to = (un_dragged){.body = b,
                           .centre = un_pose_apply(&from->to, from->centre),
                           .length = 0.5 * fmax(size.x, fmax(size.y, size.z))};
        for (int i = 0; i < 3; i++) {
            to->moves[i] = from->inverse.along[i] > 0;
            to->moves[3 + i] = from->inverse.about[i][i] > 0;
        }
        list->number[b] = list->count++;
    }
    return UN_OK;
}

void un_dragged_motion(const un_dragged *d, un_vec3 x, int which, double block[9])
{
    un_vec3 r = un_scale(un_sub(x, d->centre), 1 / d->length);
    double turn[9] = {0, r.z, -r.y, -r.z, 0, r.x, r.y, -r.x, 0};
    for (int c = 0; c < 9; c++) {
        block[c] = which == 1 ? turn[c] : c % 4 == 0;
        if (!d->moves[3 * which + c % 3]) block[c] = 0;
    }
}

void un_dragged_motions(const un_dragged *d, un_vec3 x, double motion[2][9])
{
    for (int which = 0; which < 2; which++) un_dragged_motion(d, x, which, motion[which]);
}

/* ---- a body's own equations ---- */

void un_dragged_begin(un_dragged_own *own, const un_dragged *d, const un_bodies *bodies)
{
    const un_inverse_mass *inverse = &bodies->body[d->body].inverse;
    double about[9];
    *own = (un_dragged_own){0};
    for (int i = 0; i < 3; i++) {
        own->m[i][i] = d->moves[i] ? 1 / inverse->along[i] : 0;
        for (int j = 0; j < 3; j++) about[3 * i + j] = inverse->about[i][j];
    }
    un_small_inverse(about, 3, 1e-9);
    for (int c = 0; c < 9; c++) own->m[3 + c / 3][3 + c % 3] = about[c] / (d->length * d->length);
}

void un_dragged_add_pair(un_dragged_own *own, const double left[2][9], const double *k,
                         const double right[2][9])
{
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    for (int a = 0; a < 3; a++)
                        for (int b = 0; b < 3; b++)
                            own->m[3 * p + i][3 * q + j] +=
                                left[p][3 * a + i] * k[3 * a + b] * right[q][3 * b + j];
}

void un_dragged_add_force(un_dragged_own *own, const double motion[2][9], un_vec3 force)
{
    double f[3] = {force.x, force.y, force.z};
    for (int i = 0; i < 6; i++)
        for (int a = 0; a < 3; a++) own->b[i] += motion[i / 3][3 * a + i % 3] * f[a];
}

void un_dragged_set_rows(un_viscosity *v, const un_dragged *d, const int32_t row[2],
                         un_dragged_own *own)
{
    double largest = 0;
    for (int i = 0; i < 6; i++) largest = fmax(largest, own->m[i][i]);
    for (int i = 0; i < 6; i++)
        if (!d->moves[i]) own->m[i][i] = largest;
    for (int which = 0; which < 2; which++) {
        int32_t r = row[which], at = v->matrix.row[r + 1] - 2;
        for (int other = 0; other < 2; other++, at++) {
            v->matrix.col[at] = row[other];
            for (int c = 0; c < 9; c++)
                v->matrix.val[at][c] = own->m[3 * which + c / 3][3 * other + c % 3];
        }
        memset(v->free[r], 0, sizeof v->free[r]);
        /* rigid motions of multigrid know velocities, no spins */
        for (int i = 0; i < 3 && which == 0; i++) v->free[r][4 * i] = d->moves[i];
        v->b[r] = un_v3(own->b[3 * which], own->b[3 * which + 1], own->b[3 * which + 2]);
        v->x[r] = un_v3(0, 0, 0);
        v->place[r] = d->centre;
        v->mass[r] = 0;
    }
}

void un_dragged_couple(un_viscosity *v, int32_t nodes, int32_t body_count, const int32_t *beside,
                       int32_t beside_count, int32_t *next)
{
    un_block_csr *m = &v->matrix;
    for (int32_t p = 0; p < 2 * body_count; p++) {
        int32_t r = v->index[nodes + p];
        next[p] = r >= 0 ? m->row[r] : 0;
    }
    for (int32_t i = 0; i < beside_count; i++) {
        int32_t r = beside[i];
        for (int32_t e = m->row[r]; e < m->row[r + 1]; e++) {
            int32_t p = v->node[m->col[e]] - nodes;
            if (p < 0) continue;
            int32_t at = next[p]++;
            m->col[at] = r;
            for (int c = 0; c < 9; c++) m->val[at][c] = m->val[e][3 * (c % 3) + c / 3];
        }
    }
}

/* ---- after a solve ---- */

void un_dragged_take(un_dragged *d, un_vec3 along, un_vec3 about)
{
    double change[6] = {along.x, along.y, along.z, about.x, about.y, about.z};
    for (int i = 0; i < 6; i++) d->change[i] = d->moves[i] ? change[i] : 0;
}

void un_dragged_move(const un_dragged *dragged, int32_t count, un_bodies *bodies)
{
    for (int32_t k = 0; k < count; k++) {
        un_body *to = &bodies->body[dragged[k].body];
        const double *d = dragged[k].change;
        to->velocity = un_add(to->velocity, un_v3(d[0], d[1], d[2]));
        to->spin = un_mad(to->spin, un_v3(d[3], d[4], d[5]), 1 / dragged[k].length);
    }
}
