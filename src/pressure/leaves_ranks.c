/* The pressure on leaves over ranks: each has the rows of its own leaves, and all solve for them
 * together (linalg/spread.c). Rows follow the leaves, so those of ranks follow one another. Every
 * rank then knows all of the solution, as all that is known at leaves. Small systems every rank
 * solves by itself, and those of liquid that moves bodies: all would need their columns. */
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

static un_status list_columns(const un_pressure *pr, un_ids *ids)
{
    const un_csr *a = &pr->matrix;
    for (int32_t k = a->row[pr->own.begin]; k < a->row[pr->own.end]; k++)
        if (a->col[k] < pr->own.begin || a->col[k] >= pr->own.end)
            UN_TRY(un_ids_add(pr->ctx, ids, a->col[k]));
    un_ids_sort(ids);
    return UN_OK;
}

un_status un_leaf_pressure_know_rows(un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    un_ids ids = {0};
    un_leaves_spread(s->m, s->plain, 1);
    un_status status = un_ranks_agree(pr->ctx, list_columns(pr, &ids));
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
