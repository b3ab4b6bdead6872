/* The viscous system of nodes over ranks.
 *
 * A rank finds the rows of its own nodes, numbered as on one rank, and the solver shares them
 * (linalg/block.h). What it finds at them, others get as ghosts. Rows of bodies that the liquid
 * moves come last and belong to the last rank: their entries come from the ranks that have the
 * nodes beside them, and sums over a body's nodes go from rank to rank. */
#include "viscosity/nodes.h"

un_status un_viscous_share_unknowns(un_stress_nodes *s)
{
    const un_viscous_def *in = s->in;
    un_field fields[2] = {{"u", in->u, NULL, sizeof *in->u}, {"reached", in->reached, NULL, 1}};
    return un_tets_share(s->mesh, fields, in->reached ? 2 : 1);
}

un_status un_viscous_number(un_stress_nodes *s)
{
    un_viscosity *v = s->v;
    const un_tets *mesh = s->mesh;
    un_part own = un_tets_own_nodes(mesh);
    int64_t count = 0, bodies = 2 * s->dragged_count;
    if (!v->shared) {
        UN_TRY(un_unknowns_number(v->ctx, v->index, mesh->node_count + bodies, &v->node,
                                  &v->capacity[1], &v->matrix.n));
        v->rows = (un_range){0, v->matrix.n, v->matrix.n};
        return UN_OK;
    }
    for (int64_t n = own.begin; n < own.end; n++) count += v->index[n] >= 0;
    v->rows = un_ranks_range(v->ctx, count);
    UN_TRY(
        un_tets_agree(mesh, un_array_need(v->ctx, (void **)&v->node, &v->capacity[1],
                                          (size_t)(v->rows.total + bodies) + 1, sizeof *v->node)));
    v->matrix.n = (int32_t)v->rows.total; /* no more than nodes, which 32 bits count */
    int32_t row = (int32_t)v->rows.begin;
    for (int64_t n = own.begin; n < own.end; n++) {
        if (v->index[n] < 0) continue;
        v->node[row] = (int32_t)n;
        v->index[n] = row++;
    }
    for (int64_t place = mesh->node_count; place < mesh->node_count + bodies; place++) {
        if (v->index[place] < 0) continue;
        v->node[v->matrix.n] = (int32_t)place;
        v->index[place] = v->matrix.n++;
    }
    v->rows.total = v->matrix.n;
    if (un_viscous_last(s)) v->rows.end = v->matrix.n;
    un_field field = {"row", v->index, NULL, sizeof *v->index};
    return un_tets_share(mesh, &field, 1);
}

un_status un_viscous_share_velocities(const un_stress_nodes *s)
{
    un_field field = {"u", s->in->u, NULL, sizeof *s->in->u};
    return un_tets_share(s->mesh, &field, 1);
}

/* ---- bodies that the liquid moves ---- */

void un_viscous_add(const un_stress_nodes *s, double *values, int64_t count)
{
    if (s->v->shared) un_ranks_add(s->v->ctx, values, count);
}

void un_viscous_begin_turn(const un_stress_nodes *s, void *values, size_t bytes)
{
    if (s->v->shared) un_ranks_begin_turn(s->v->ctx, values, bytes);
}

void un_viscous_end_turn(const un_stress_nodes *s, void *values, size_t bytes)
{
    if (s->v->shared) un_ranks_end_turn(s->v->ctx, values, bytes);
}

typedef struct coupling {
    int32_t row, col; /* of a body; of a node beside it */
    double val[9];
} coupling;

/* Entries of own rows that couple to bodies, in the order of rows: columns from `first` on. out
 * NULL: only counts. */
static int64_t list_couplings(const un_stress_nodes *s, int32_t first, coupling *out)
{
    const un_block_csr *m = &s->v->matrix;
    int64_t count = 0;
    for (int32_t i = 0; i < s->beside_count; i++) {
        int32_t r = s->beside[i];
        for (int32_t e = m->row[r]; e < m->row[r + 1]; e++) {
            if (m->col[e] < first) continue;
            if (out) {
                out[count].row = m->col[e];
                out[count].col = r;
                for (int c = 0; c < 9; c++)
                    out[count].val[c] = m->val[e][(ptrdiff_t)3 * (c % 3) + c / 3];
            }
            count++;
        }
    }
    return count;
}

static void take_couplings(un_stress_nodes *s, int32_t first, const coupling *in, int64_t count)
{
    un_block_csr *m = &s->v->matrix;
    for (int32_t r = first; r < m->n; r++) s->next[r - first] = m->row[r];
    for (int64_t k = 0; k < count; k++) {
        int32_t at = s->next[in[k].row - first]++;
        m->col[at] = in[k].col;
        memcpy(m->val[at], in[k].val, sizeof in[k].val);
    }
}

un_status un_viscous_couple_bodies(un_stress_nodes *s)
{
    un_context *ctx = s->v->ctx;
    int32_t first = s->v->matrix.n, last = un_rank_count(ctx) - 1, *to = NULL;
    for (int32_t k = 0; k < s->dragged_count; k++) first -= s->dragged[k].any ? 2 : 0;
    int64_t count = list_couplings(s, first, NULL), in_count;
    coupling *mine = un_alloc(ctx, (size_t)count + 1, sizeof *mine);
    if (mine) to = un_alloc(ctx, (size_t)count + 1, sizeof *to);
    void *in = NULL;
    un_status status = un_ranks_agree(ctx, to ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) {
        list_couplings(s, first, mine);
        for (int64_t k = 0; k < count; k++) to[k] = last;
        status = un_exchange_send(ctx, "couplings", mine, to, count, sizeof *mine, &in, &in_count);
    }
    if (status == UN_OK) take_couplings(s, first, in, in_count);
    un_free(ctx, in);
    un_free(ctx, to);
    un_free(ctx, mine);
    return status;
}
