/* The viscous system of nodes over ranks.
 *
 * A rank finds the rows of its own nodes, numbered as on one rank, and the solver shares them
 * (linalg/block.h). What it finds at them, others get as ghosts. */
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
    v->shared = mesh->share != NULL;
    if (!v->shared) {
        UN_TRY(
            un_unknowns_number(v->ctx, v->index, places, &v->node, &v->capacity[1], &v->matrix.n));
        v->rows = (un_range){0, v->matrix.n, v->matrix.n};
        return UN_OK;
    }
    for (int64_t n = own.begin; n < own.end; n++) count += v->index[n] >= 0;
    v->rows = un_ranks_range(v->ctx, count);
    v->matrix.n = (int32_t)v->rows.total; /* no more than nodes, which 32 bits count */
    UN_TRY(un_tets_agree(mesh, un_array_need(v->ctx, (void **)&v->node, &v->capacity[1],
                                             (size_t)v->matrix.n + 1, sizeof *v->node)));
    int32_t row = (int32_t)v->rows.begin;
    for (int64_t n = own.begin; n < own.end; n++) {
        if (v->index[n] < 0) continue;
        v->node[row] = (int32_t)n;
        v->index[n] = row++;
    }
    un_field field = {"row", v->index, NULL, sizeof *v->index};
    return un_tets_share(mesh, &field, 1);
}

un_status un_viscous_share_velocities(const un_stress_nodes *s)
{
    un_field field = {"u", s->in->u, NULL, sizeof *s->in->u};
    return un_tets_share(s->mesh, &field, 1);
}
