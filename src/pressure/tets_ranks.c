/* The system of nodes over ranks: every rank has the rows of its own nodes, numbered as on one
 * rank, and knows the numbers of its ghosts' rows. */
#include "pressure/coupling.h"
#include "pressure/system.h"

static un_status list_rows(un_pressure *pr, const un_tet_share *share, un_ids *rows)
{
    for (int32_t k = 0; k < share->ghost_count; k++) {
        int32_t row = pr->index[share->ghost[k]];
        if (row >= 0) UN_TRY(un_ids_add(pr->ctx, rows, row));
    }
    UN_TRY(un_coupling_list_others(pr, rows));
    un_ids_sort(rows);
    return UN_OK;
}

un_status un_pressure_know_nodes(un_pressure *pr, const un_tets *mesh)
{
    un_ids rows = {0};
    un_status status = un_ranks_agree(pr->ctx, list_rows(pr, mesh->share, &rows));
    if (status == UN_OK) status = un_pressure_know_rows(pr, rows.id, rows.count);
    un_free(pr->ctx, rows.id);
    return status;
}

un_status un_pressure_number_nodes(un_pressure *pr, const un_tets *mesh)
{
    un_part own = un_tets_own_nodes(mesh);
    int64_t count = 0;
    for (int64_t n = own.begin; n < own.end; n++) count += pr->index[n] >= 0;
    un_range rows = un_ranks_range(pr->ctx, count);
    pr->own = (un_part){rows.begin, rows.end};
    pr->matrix.n = (int32_t)rows.total; /* no more than nodes, which 32 bits count */
    UN_TRY(un_ranks_agree(pr->ctx, un_pressure_need_rows(pr, pr->matrix.n)));
    int32_t row = (int32_t)rows.begin;
    for (int64_t n = own.begin; n < own.end; n++) {
        if (pr->index[n] < 0) continue;
        pr->place[row] = (int32_t)n;
        pr->index[n] = row++;
    }
    un_field field = {"row", pr->index, NULL, sizeof *pr->index};
    UN_TRY(un_tets_share(mesh, &field, 1));
    pr->coupling.columns.count = 0; /* no bodies yet */
    return un_pressure_know_nodes(pr, mesh);
}

un_status un_pressure_start_rows(un_pressure *pr)
{
    un_csr *m = &pr->matrix;
    int64_t count = 0;
    for (int64_t r = pr->own.begin; r < pr->own.end; r++) count += m->row[r + 1];
    un_range entries = un_ranks_range(pr->ctx, count);
    if (entries.total > INT32_MAX)
        return un_fail(pr->ctx, UN_ERROR_MEMORY,
                       "the pressure would have %.3g couplings of liquid nodes, more than 32-bit "
                       "indices can count; make detail.finest smaller",
                       (double)entries.total);
    int32_t at = (int32_t)entries.begin;
    for (int64_t r = pr->own.begin; r < pr->own.end; r++) {
        int32_t more = m->row[r + 1];
        m->row[r] = at;
        at += more;
    }
    m->row[pr->own.end] = at;
    m->row[m->n] = (int32_t)entries.total;
    return UN_OK;
}
