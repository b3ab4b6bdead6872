/* The viscous system of nodes over ranks.
 *
 * A rank finds the rows of its own nodes, numbered as on one rank. All rows then go to all ranks,
 * and each solves the whole system: the same bits everywhere, and no messages within the solve. Its
 * memory and its time are those of one rank. */
#include "viscosity/nodes.h"

un_status un_viscous_share_unknowns(un_stress_nodes *s)
{
    const un_viscous_def *in = s->in;
    un_field fields[2] = {{"u", in->u, NULL, sizeof *in->u}, {"reached", in->reached, NULL, 1}};
    return un_tets_share(s->mesh, fields, in->reached ? 2 : 1);
}

un_status un_viscous_number(un_stress_nodes *s, int64_t places)
{
    un_viscosity *v = s->v;
    const un_tets *mesh = s->mesh;
    un_part own = un_tets_own_nodes(mesh);
    int64_t count = 0;
    if (!mesh->share) {
        UN_TRY(
            un_unknowns_number(v->ctx, v->index, places, &v->node, &v->capacity[1], &v->matrix.n));
        s->rows = (un_range){0, v->matrix.n, v->matrix.n};
        return UN_OK;
    }
    for (int64_t n = own.begin; n < own.end; n++) count += v->index[n] >= 0;
    s->rows = un_ranks_range(v->ctx, count);
    v->matrix.n = (int32_t)s->rows.total; /* no more than nodes, which 32 bits count */
    UN_TRY(un_tets_agree(mesh, un_array_need(v->ctx, (void **)&v->node, &v->capacity[1],
                                             (size_t)v->matrix.n + 1, sizeof *v->node)));
    int32_t row = (int32_t)s->rows.begin;
    for (int64_t n = own.begin; n < own.end; n++) {
        if (v->index[n] < 0) continue;
        v->node[row] = (int32_t)n;
        v->index[n] = row++;
    }
    un_field field = {"row", v->index, NULL, sizeof *v->index};
    return un_tets_share(mesh, &field, 1);
}

un_status un_viscous_join_counts(const un_stress_nodes *s)
{
    un_viscosity *v = s->v;
    un_layered field = {v->matrix.row + 1, sizeof *v->matrix.row};
    return s->mesh->share ? un_ranks_join(v->ctx, s->rows, &field, 1) : UN_OK;
}

un_status un_viscous_join_rows(const un_stress_nodes *s, bool has_free)
{
    un_viscosity *v = s->v;
    un_block_csr *m = &v->matrix;
    un_layered row[4] = {{v->b, sizeof *v->b},
                         {v->x, sizeof *v->x},
                         {v->place, sizeof *v->place},
                         {v->free, sizeof *v->free}};
    un_layered entry[2] = {{m->col, sizeof *m->col}, {m->val, sizeof *m->val}};
    if (!s->mesh->share) return UN_OK;
    UN_TRY(un_ranks_join(v->ctx, s->rows, row, has_free ? 4 : 3));
    un_range entries = {m->row[s->rows.begin], m->row[s->rows.end], m->row[m->n]};
    return un_ranks_join(v->ctx, entries, entry, 2);
}

un_status un_viscous_join_sides(const un_stress_nodes *s)
{
    un_layered field = {s->v->b, sizeof *s->v->b};
    return s->mesh->share ? un_ranks_join(s->v->ctx, s->rows, &field, 1) : UN_OK;
}

un_status un_viscous_share_velocities(const un_stress_nodes *s)
{
    un_field field = {"u", s->in->u, NULL, sizeof *s->in->u};
    return un_tets_share(s->mesh, &field, 1);
}
