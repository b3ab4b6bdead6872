/* The pressure on leaves over ranks: each has the rows of its own leaves, and all solve for them
 * together (linalg/spread.c). Rows follow the leaves, so those of ranks follow one another. A rank
 * gets to know the pressure at leaves next to its own, and next to bodies. */
#include "pressure/coupling.h"
#include "pressure/leaves.h"

un_status un_leaf_pressure_number_parts(un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    un_context *ctx = pr->ctx;
    un_part leaves = un_leaves_own(s->m);
    int64_t count = 0;
    un_halo_destroy(pr->beside); /* of the last projection */
    pr->beside = NULL;
    for (int64_t c = leaves.begin; c < leaves.end; c++) count += pr->index[c] >= 0;
    un_range rows = un_ranks_range(ctx, count);
    pr->own = (un_part){rows.begin, rows.end};
    pr->matrix.n = (int32_t)rows.total;
    UN_TRY(un_ranks_agree(ctx, un_pressure_need_rows(pr, pr->matrix.n)));
    int32_t row = (int32_t)rows.begin;
    for (int64_t c = leaves.begin; c < leaves.end; c++) {
        if (pr->index[c] < 0) continue;
        pr->place[row] = (int32_t)c;
        pr->index[c] = row++;
    }
    un_leaves_spread(s->m, pr->index, sizeof *pr->index);
    return UN_OK;
}

/* All next to own ones: their pressure changes own faces, too; and those next to bodies. */
static un_status list_near(const un_leaf_args *s, un_ids *ids)
{
    const un_leaves *m = s->m;
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t c = un_leaves_run(m, k).begin; c < un_leaves_run(m, k).end; c++)
            if (m->share->ring[c] == 1 && s->pr->index[c] >= 0)
                UN_TRY(un_ids_add(s->pr->ctx, ids, s->pr->index[c]));
    UN_TRY(un_coupling_list_others(s->pr, ids));
    un_ids_sort(ids);
    return UN_OK;
}

un_status un_leaf_pressure_know_rows(const un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    un_ids ids = {0};
    un_status status = un_ranks_agree(pr->ctx, list_near(s, &ids));
    if (status == UN_OK) status = un_pressure_know_rows(pr, ids.id, ids.count);
    un_free(pr->ctx, ids.id);
    return status;
}
