/* Smoothed aggregation whose rows several ranks share: what a rank has to know of the others.
 *
 * A block of rows is one rank's, and sweeps and aggregates do not cross blocks. So a rank's numbers
 * are those of one rank once it knows, of the columns of its rows on other ranks,
 *
 *     set-up   their aggregates, their rigid motions, their rows of P and of A P: all fine rows
 *              that add to the coarse row of an aggregate are its own rows and those beside them;
 *     cycles   x before residuals, residuals before they go down, x before the sweep back.
 *
 * Coarse rows are made where their aggregates are, and move to where blocks of the coarse level are
 * cut. Levels of few rows are gathered on all ranks, each of which does all that is left. */
#include "linalg/block_sa.h"

/* Levels of fewer rows are gathered. Its rows have some 25 entries of 36 numbers, so a level of a
 * thousand takes as long as eight thousand rows of the first. */
#define GATHERED 1024
/* Floats of a row in cycles. */
#define ROW_BYTES (UN_SA_MODES * sizeof(float))

void un_sa_forget_ranks(un_sa *sa)
{
    for (int32_t k = 0; k < UN_SA_LEVELS_MAX; k++) {
        un_sa_level *l = &sa->level[k];
        if (k > 0) { /* the first ones belong to the system */
            un_halo_destroy(l->near);
            un_free(sa->ctx, l->cut);
        }
        un_halo_destroy(l->down);
        un_halo_destroy(l->up);
        un_free(sa->ctx, l->gather);
        l->near = l->down = l->up = NULL;
        l->cut = l->gather = NULL;
        l->beside.count = 0;
    }
}

void un_sa_divide_first(un_sa *sa)
{
    un_sa_level *l = &sa->level[0];
    l->own = un_spread_part(sa->spread, l->n);
    if (!sa->spread) return;
    l->cut = sa->spread->cut;
    l->near = sa->spread->near;
}

/* ---- rows beside own ones ---- */

un_status un_sa_know_beside(un_sa *sa, int32_t index)
{
    un_context *ctx = sa->ctx;
    un_sa_level *l = &sa->level[index];
    if (!l->cut) return UN_OK;
    for (int64_t k = l->row[l->own.begin]; k < l->row[l->own.end]; k++)
        if (l->col[k] < l->own.begin || l->col[k] >= l->own.end)
            UN_TRY(un_ids_add(ctx, &l->beside, l->col[k]));
    un_ids_sort(&l->beside);
    if (index == 0) return UN_OK;
    UN_TRY(un_halo_create(ctx, l->cut, l->beside.id, l->beside.count, &l->near));
    return un_halo_reserve(l->near, ROW_BYTES);
}

int64_t un_sa_known_before(const un_sa_level *l)
{
    int64_t before = 0;
    while (before < l->beside.count && l->beside.id[before] < l->own.begin) before++;
    return before;
}

/* ---- numbers over all ranks ---- */

void un_sa_number_entries(un_sa *sa, const un_sa_level *l, int32_t *row, un_part own, int32_t n)
{
    int64_t count = 0;
    for (int64_t i = own.begin; i < own.end; i++) count += row[i + 1];
    un_range range = {0, count, count};
    if (l->cut) range = un_ranks_range(sa->ctx, count);
    row[own.begin] = (int32_t)range.begin;
    for (int64_t i = own.begin; i < own.end; i++) row[i + 1] += row[i];
    row[n] = (int32_t)range.total;
}

void un_sa_share_counts(un_sa *sa, const un_sa_level *l, int32_t *counts)
{
    double all[UN_SA_BLOCKS_MAX];
    int64_t blocks = (l->n + l->grain - 1) / l->grain;
    if (!l->cut) return;
    for (int64_t b = 0; b < blocks; b++) all[b] = counts[b];
    un_ranks_add(sa->ctx, all, blocks);
    for (int64_t b = 0; b < blocks; b++) counts[b] = (int32_t)all[b];
}

/* ---- the next level ---- */

/* All ranks get all of its rows; entries are numbered over all ranks. */
static un_status gather_next(un_sa *sa, const un_sa_level *l, un_sa_level *next)
{
    un_context *ctx = sa->ctx;
    int32_t ranks = un_rank_count(ctx);
    const size_t squares = UN_SA_MODES * UN_SA_MODES;
    un_layered by_row[] = {
        {next->row, sizeof *next->row},     {next->upper, sizeof *next->upper},
        {next->outer, sizeof *next->outer}, {next->place, sizeof *next->place},
        {next->scale, sizeof *next->scale}, {next->diagonal, squares * sizeof *next->diagonal}};
    int64_t *entry;
    for (size_t f = 0; f < sizeof by_row / sizeof *by_row; f++)
        un_halo_spread(ctx, l->gather, by_row[f].array, by_row[f].size);
    UN_ALLOC(ctx, entry, ranks + 1);
    for (int32_t r = 0; r <= ranks; r++) entry[r] = next->row[l->gather[r]];
    un_halo_spread(ctx, entry, next->col, sizeof *next->col);
    un_halo_spread(ctx, entry, next->val, squares * sizeof *next->val);
    un_free(ctx, entry);
    return UN_OK;
}

/* Its rows to the ranks whose blocks they are in there. */
static un_status move_next(un_sa *sa, un_sa_level *l, un_sa_level *next, const int64_t *first)
{
    un_context *ctx = sa->ctx;
    const size_t squares = UN_SA_MODES * UN_SA_MODES;
    un_ids ids = {0};
    un_status status = UN_OK;
    for (int64_t c = next->own.begin; c < next->own.end; c++)
        if (c < l->made.begin || c >= l->made.end) UN_TRY_DONE(un_ids_add(ctx, &ids, (int32_t)c));
    UN_TRY_DONE(un_halo_create(ctx, first, ids.id, ids.count, &l->down));
    un_layered entries[2] = {{next->col, sizeof *next->col},
                             {next->val, squares * sizeof *next->val}};
    un_layered with[4] = {{next->upper, sizeof *next->upper},
                          {next->outer, sizeof *next->outer},
                          {next->place, sizeof *next->place},
                          {next->scale, sizeof *next->scale}};
    un_layered diagonal = {next->diagonal, squares * sizeof *next->diagonal};
    UN_TRY_DONE(un_halo_share_rows(l->down, next->row, entries, 2, with, 4));
    UN_TRY_DONE(un_halo_share_fields(l->down, &diagonal, 1));
    status = un_halo_reserve(l->down, ROW_BYTES);
done:
    un_free(ctx, ids.id);
    return status;
}

/* Coarse rows that own rows take their motion from. */
static un_status list_parents(un_sa *sa, un_sa_level *l, const un_sa_level *next)
{
    un_context *ctx = sa->ctx;
    un_ids ids = {0};
    un_status status = UN_OK;
    for (int32_t k = l->p_row[l->own.begin]; k < l->p_row[l->own.end]; k++)
        if (l->p_col[k] < next->own.begin || l->p_col[k] >= next->own.end)
            UN_TRY_DONE(un_ids_add(ctx, &ids, l->p_col[k]));
    un_ids_sort(&ids);
    UN_TRY_DONE(un_halo_create(ctx, next->cut, ids.id, ids.count, &l->up));
    status = un_halo_reserve(l->up, ROW_BYTES);
done:
    un_free(ctx, ids.id);
    return status;
}

un_status un_sa_divide_next(un_sa *sa, int32_t index)
{
    un_context *ctx = sa->ctx;
    un_sa_level *l = &sa->level[index], *next = l + 1;
    int32_t ranks = un_rank_count(ctx), me = un_rank(ctx);
    int64_t *first;
    next->own = (un_part){0, next->n};
    if (!l->cut) return UN_OK;
    UN_ALLOC(ctx, first, ranks + 1);
    for (int32_t r = 0; r <= ranks; r++) first[r] = l->first[(l->cut[r] + l->grain - 1) / l->grain];
    if (next->n < GATHERED) {
        l->gather = first;
        return gather_next(sa, l, next);
    }
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, next->cut, ranks + 1);
    un_spread_cut(next->cut, first, ranks, next->n, next->grain);
    next->own = (un_part){next->cut[me], next->cut[me + 1]};
    UN_TRY_DONE(move_next(sa, l, next, first));
    UN_TRY_DONE(list_parents(sa, l, next));
    status = un_sa_know_beside(sa, index + 1);
done:
    un_free(ctx, first);
    return status;
}

/* ---- cycles ---- */

void un_sa_go_down(un_sa *sa, int32_t index)
{
    const un_sa_level *l = &sa->level[index];
    float *b = sa->level[index + 1].b;
    if (l->gather)
        un_halo_spread(sa->ctx, l->gather, b, ROW_BYTES);
    else
        un_halo_share(l->down, b, ROW_BYTES);
}

void un_sa_come_up(un_sa *sa, int32_t index)
{
    un_halo_share(sa->level[index].up, sa->level[index + 1].x, ROW_BYTES);
}
