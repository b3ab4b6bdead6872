/* The pressure on leaves over ranks: each has the rows of its own leaves, and all solve for them
 * together (linalg/spread.c). Rows follow the leaves, so those of ranks follow one another. Every
 * rank then knows all of the solution, as all that is known at leaves. Small systems every rank
 * solves by itself, and, where it knows all leaves, those of liquid that moves bodies. */
#include "pressure/coupling.h"
#include "pressure/leaves.h"

static int64_t first_row(const un_pressure *pr, int64_t leaf)
{
    int64_t low = 0, high = pr->matrix.n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (pr->place[middle] < leaf)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

un_part un_leaf_pressure_own(un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    un_halo_destroy(pr->beside); /* of the last projection */
    pr->beside = NULL;
    pr->own = (un_part){0, pr->matrix.n};
    if (!s->shared) return pr->own;
    un_part leaves = un_leaves_own(s->m);
    pr->own = (un_part){first_row(pr, leaves.begin), first_row(pr, leaves.end)};
    return pr->own;
}

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

/* Of leaves in parts all next to own ones: their pressure changes own faces, too; and those next to
 * bodies. */
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

static un_status list_columns(const un_pressure *pr, un_ids *ids)
{
    const un_csr *a = &pr->matrix;
    for (int32_t k = a->row[pr->own.begin]; k < a->row[pr->own.end]; k++)
        if (a->col[k] < pr->own.begin || a->col[k] >= pr->own.end)
            UN_TRY(un_ids_add(pr->ctx, ids, a->col[k]));
    un_ids_sort(ids);
    return UN_OK;
}

un_status un_leaf_pressure_know_rows(const un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    un_ids ids = {0};
    un_status status = un_leaves_in_parts(s->m) ? list_near(s, &ids) : list_columns(pr, &ids);
    status = un_ranks_agree(pr->ctx, status);
    if (status == UN_OK) status = un_pressure_know_rows(pr, ids.id, ids.count);
    un_free(pr->ctx, ids.id);
    return status;
}

un_status un_leaf_pressure_tell(const un_leaf_args *s)
{
    const un_pressure *pr = s->pr;
    un_range rows = {pr->own.begin, pr->own.end, pr->matrix.n};
    un_layered fields[2] = {{pr->x, sizeof *pr->x}, {pr->free, sizeof *pr->free}};
    return un_ranks_join(pr->ctx, rows, fields, pr->free_count > 0 ? 2 : 1);
}
