/* Multigrid whose rows several ranks share: what a rank has to know of the others.
 *
 * A block of rows is one rank's. What is made block by block has the bits of one rank as soon as
 * the rank knows the rows beside its own:
 *
 *     set-up   two rings of rows around its own, with their couplings, and the rows at places that
 *              its own lie between (un_amg_know_rows, un_amg_ask); what these take their values
 *              from (un_amg_know_ways); contributions to coarse rows of other blocks, in the order
 *              of the blocks that they come from (un_amg_records_send);
 *     cycles   x of the first ring before each sweep over couplings between blocks, residuals of
 *              rows that add to own coarse rows, coarse values on the way up.
 *
 * Aggregates do not cross blocks, so plain aggregation needs less: the first ring and its
 * aggregates; and the sums of its K-cycles, block by block.
 *
 * Coarse rows begin where the fine rows that survive as them are, and move to where blocks of the
 * coarse level are cut (un_amg_divide_next). Levels of few rows are gathered on all ranks, each of
 * which does all that is left. */
#include "linalg/amg.h"

#include <stdlib.h>

static void forget_level(un_amg *amg, un_amg_level *level, bool finest)
{
    if (!finest) {
        un_halo_destroy(level->near);
        un_free(amg->ctx, level->cut);
    }
    un_halo_destroy(level->far);
    un_halo_destroy(level->down);
    un_halo_destroy(level->up);
    un_free(amg->ctx, level->gather);
    level->gather = NULL;
    level->near = level->far = level->down = level->up = NULL;
    level->cut = NULL;
    level->beside.count = 0;
}

void un_amg_forget_ranks(un_amg *amg)
{
    for (int32_t l = 0; l < UN_AMG_LEVELS_MAX; l++) forget_level(amg, &amg->level[l], l == 0);
}

static bool is_own(const un_amg_level *level, int32_t i)
{
    return i >= level->own.begin && i < level->own.end;
}

/* ---- rows around own ones ---- */

/* Rows around own ones tell which rows they lead to, and no more: so 1 stands for each coupling
 * that is not zero. Rows that the caller has, but which another rank sweeps, keep their values. */
static void set_values(const un_amg *amg, const un_amg_graph *g, const un_ids *rows,
                       const uint8_t *some)
{
    const int64_t *first = amg->spread->first + un_rank(amg->ctx);
    for (int64_t q = 0; q < rows->count; q++) {
        int32_t i = rows->id[q];
        if (g->val_a && i >= first[0] && i < first[1]) continue;
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
            if (g->val_a)
                ((double *)g->val_a)[k] = some[k] / g->scale;
            else
                ((float *)g->val)[k] = some[k];
    }
}

/* rows: those that come. */
static un_status share_graph(un_amg *amg, const un_amg_level *level, un_halo *halo,
                             const un_amg_graph *g, const un_ids *rows, const un_layered *with,
                             int32_t with_count)
{
    UN_AMG_NEED(amg->ctx, amg->some, amg->capacity_some, g->row[g->n] + 1);
    uint8_t *some = amg->some;
    for (int64_t i = level->own.begin; i < level->own.end; i++)
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) some[k] = un_amg_entry(g, k) != 0;
    un_layered entries[2] = {{(int32_t *)g->col, sizeof *g->col}, {some, sizeof *some}};
    un_status status = un_halo_share_rows(halo, (int32_t *)g->row, entries, 2, with, with_count);
    if (status == UN_OK) set_values(amg, g, rows, some);
    return status;
}

static un_status list_columns(un_amg *amg, const un_amg_level *level, const un_amg_graph *g,
                              int32_t i, un_ids *ids, un_recent *recent)
{
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
        if (!is_own(level, g->col[k]) && !un_is_recent(recent, 0, g->col[k]))
            UN_TRY(un_ids_add(amg->ctx, ids, g->col[k]));
    return UN_OK;
}

/* Leaves out what is in the other list, too; both ascend. */
static void leave_out(un_ids *ids, const un_ids *known)
{
    int64_t kept = 0, at = 0;
    for (int64_t k = 0; k < ids->count; k++) {
        while (at < known->count && known->id[at] < ids->id[k]) at++;
        if (at == known->count || known->id[at] != ids->id[k]) ids->id[kept++] = ids->id[k];
    }
    ids->count = kept;
}

static un_owners owners_of(const un_amg *amg, const un_amg_level *level)
{
    return (un_owners){level->cut, un_rank_count(amg->ctx), 0};
}

/* Ranks whose rows own rows couple to want these. */
static un_status list_near(un_amg *amg, const un_amg_level *level, const un_amg_graph *g,
                           un_wishes *near)
{
    un_owners owners = owners_of(amg, level);
    for (int32_t i = (int32_t)level->own.begin; i < level->own.end; i++)
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
            if (!is_own(level, g->col[k]))
                UN_TRY(un_wishes_add(amg->ctx, near, un_owner_of(&owners, g->col[k]), i));
    return UN_OK;
}

static un_status list_beside(un_amg *amg, un_amg_level *level, const un_amg_graph *g)
{
    un_recent recent = {0};
    for (int64_t i = level->own.begin; i < level->own.end; i++)
        UN_TRY(list_columns(amg, level, g, (int32_t)i, &level->beside, &recent));
    un_ids_sort(&level->beside);
    return UN_OK;
}

/* Those of the finest level are there already. */
static un_status take_beside(un_amg *amg, un_amg_level *level)
{
    for (int64_t k = 0; k < amg->spread->beside.count; k++)
        UN_TRY(un_ids_add(amg->ctx, &level->beside, amg->spread->beside.id[k]));
    level->near = amg->spread->near;
    return UN_OK;
}

un_status un_amg_know_beside(un_amg *amg, int32_t l, const un_amg_graph *g)
{
    un_amg_level *level = &amg->level[l];
    if (l == 0) return take_beside(amg, level);
    UN_TRY(list_beside(amg, level, g));
    return un_halo_create(amg->ctx, level->cut, level->beside.id, level->beside.count,
                          &level->near);
}

/* Columns of row i that are this rank's, which a rank wants that has the row or a row next to it.
 */
static un_status add_columns(un_amg *amg, const un_amg_level *level, const un_amg_graph *g,
                             int32_t i, int32_t rank, un_wishes *second)
{
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
        if (is_own(level, g->col[k])) UN_TRY(un_wishes_add(amg->ctx, second, rank, g->col[k]));
    return UN_OK;
}

/* What other ranks want as their second ring: own columns of the rows of their first, which are own
 * rows, `near`, or rows of a third rank that own rows couple to. */
static un_status list_second(un_amg *amg, const un_amg_level *level, const un_amg_graph *g,
                             const un_wishes *near, un_wishes *second)
{
    un_owners of_row = owners_of(amg, level), of_column = of_row;
    for (int64_t n = 0; n < near->row.count; n++)
        UN_TRY(add_columns(amg, level, g, near->row.id[n], near->rank.id[n], second));
    for (int64_t n = 0; n < level->beside.count; n++) {
        int32_t i = level->beside.id[n], rank = un_owner_of(&of_row, i);
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
            if (is_own(level, g->col[k])) continue;
            int32_t other = un_owner_of(&of_column, g->col[k]);
            if (other != rank) UN_TRY(add_columns(amg, level, g, i, other, second));
        }
    }
    return UN_OK;
}

/* Couplings on levels of means are mutual, as those of the finest are: nobody needs to ask. */
un_status un_amg_know_rows(un_amg *amg, int32_t l, const un_amg_graph *g)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l];
    un_ids ids = {0};
    un_recent recent = {0};
    un_wishes near = {0}, second = {0};
    un_halo *halo = NULL;
    un_layered where[2] = {{amg->place[l % 2], sizeof *amg->place[0]},
                           {amg->scale_of[l % 2], sizeof *amg->scale_of[0]}};
    un_status status = list_near(amg, level, g, &near);
    if (status == UN_OK) status = l == 0 ? take_beside(amg, level) : list_beside(amg, level, g);
    if (status == UN_OK && l > 0)
        status = un_wishes_plan(ctx, &near, NULL, level->cut, &level->beside, &level->near);
    if (status == UN_OK && l == 0) status = un_wishes_sort(ctx, &near, NULL);
    UN_TRY_DONE(status);
    UN_TRY_DONE(share_graph(amg, level, level->near, g, &level->beside, where, 2));
    for (int64_t k = 0; k < level->beside.count; k++)
        UN_TRY_DONE(list_columns(amg, level, g, level->beside.id[k], &ids, &recent));
    un_ids_sort(&ids);
    leave_out(&ids, &level->beside);
    UN_TRY_DONE(list_second(amg, level, g, &near, &second));
    UN_TRY_DONE(un_wishes_plan(ctx, &second, &near, level->cut, &ids, &halo));
    status = share_graph(amg, level, halo, g, &ids, NULL, 0);
done:
    un_halo_destroy(halo);
    un_wishes_free(ctx, &near);
    un_wishes_free(ctx, &second);
    un_free(ctx, ids.id);
    return status;
}

/* ---- rows at places ---- */

static int compare_keys(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return (p > q) - (p < q);
}

typedef struct question {
    uint64_t key;
    int32_t rank;
} question;

/* The rank whose rows a place may be among: the last that begins not after it; -1: none. */
static int32_t owner_of(const int64_t *cut, const uint64_t *least, int32_t ranks, uint64_t key)
{
    int32_t owner = -1;
    for (int32_t r = 0; r < ranks; r++)
        if (cut[r] < cut[r + 1] && least[r] <= key) owner = r;
    return owner;
}

un_status un_amg_ask(un_amg *amg, const un_amg_level *level, const uint64_t *place,
                     un_amg_query *query, un_amg_row_at *row_at, const void *arg)
{
    un_context *ctx = amg->ctx;
    int32_t ranks = un_rank_count(ctx), *to = NULL, *back = NULL, *row = NULL;
    int64_t count = 0, asked = 0;
    uint64_t own = level->own.begin < level->own.end ? place[level->own.begin] : 0, *least = NULL;
    question *mine = NULL, *theirs = NULL;
    int32_t *answer = NULL;
    un_status status = UN_OK;
    if (query->count > 0) qsort(query->key, (size_t)query->count, sizeof *query->key, compare_keys);
    for (int64_t k = 0; k < query->count; k++)
        if (k == 0 || query->key[k] != query->key[k - 1]) query->key[count++] = query->key[k];
    query->count = count;
    UN_ALLOC_DONE(ctx, least, ranks);
    un_ranks_gather(ctx, least, &own, sizeof own);
    UN_ALLOC_DONE(ctx, to, count + 1);
    UN_ALLOC_DONE(ctx, mine, count + 1);
    UN_ALLOC_DONE(ctx, query->row, count + 1);
    for (int64_t k = 0; k < count; k++) {
        to[k] = owner_of(level->cut, least, ranks, query->key[k]);
        if (to[k] == un_rank(ctx)) to[k] = -1; /* between its last row and the next rank's first */
        mine[k] = (question){query->key[k], un_rank(ctx)};
    }
    UN_TRY_DONE(un_exchange_once(ctx, mine, to, count, sizeof *mine, (void **)&theirs, &asked));
    UN_ALLOC_DONE(ctx, back, asked + 1);
    UN_ALLOC_DONE(ctx, answer, asked + 1);
    for (int64_t k = 0; k < asked; k++) {
        back[k] = theirs[k].rank;
        answer[k] = row_at(arg, theirs[k].key);
    }
    UN_TRY_DONE(
        un_exchange_reply(ctx, answer, back, asked, sizeof *answer, to, count, (void **)&row));
    /* keys ascend, and so do the ranks that they went to: answers come in the same order */
    for (int64_t k = 0, a = 0; k < count; k++) query->row[k] = to[k] < 0 ? -1 : row[a++];
done:
    un_free(ctx, least);
    un_free(ctx, to);
    un_free(ctx, mine);
    un_free(ctx, theirs);
    un_free(ctx, back);
    un_free(ctx, answer);
    un_free(ctx, row);
    return status;
}

/* ---- what rows take their values from ---- */

/* Those that row i takes its value from, if it does not survive. */
static un_status list_ways(un_amg *amg, const un_amg_level *level, const un_amg_ways *w, int32_t i,
                           const un_ids *known, un_ids *more, un_recent *recent)
{
    if (w->aggregate[i] != UN_AMG_FREE) return UN_OK;
    for (int side = 0; side < 2; side++) {
        int32_t j = w->other[i][side];
        if (j < 0 || is_own(level, j) || un_is_recent(recent, 0, j)) continue;
        if (un_ids_find(known, j) >= 0) continue;
        UN_TRY(un_ids_add(amg->ctx, more, j));
    }
    return UN_OK;
}

/* Both ascend, and have nothing in common. */
static un_status merge(un_context *ctx, un_ids *ids, const un_ids *more)
{
    int64_t a = ids->count - 1, b = more->count - 1, to = a + b + 1;
    UN_TRY(un_array_reserve(ctx, (void **)&ids->id, &ids->room, (size_t)to + 2, sizeof *ids->id));
    ids->count = to + 1;
    for (; b >= 0; to--)
        ids->id[to] = a >= 0 && ids->id[a] > more->id[b] ? ids->id[a--] : more->id[b--];
    return UN_OK;
}

/* Own rows may be on the way, too: so the first round looks at all of them. */
static un_status know_more(un_amg *amg, const un_amg_level *level, const un_amg_ways *w,
                           un_ids *known, const un_ids *rows, bool *any)
{
    un_context *ctx = amg->ctx;
    un_halo *halo = NULL;
    UN_TRY(un_halo_create_if_any(ctx, level->cut, rows->id, rows->count, &halo, any));
    un_layered fields[4] = {{w->aggregate, sizeof *w->aggregate},
                            {w->other, sizeof *w->other},
                            {w->excess, sizeof *w->excess},
                            {w->diagonal, sizeof *w->diagonal}};
    un_status status = *any ? un_halo_share_fields(halo, fields, 4) : UN_OK;
    un_halo_destroy(halo);
    UN_TRY(status);
    return merge(ctx, known, rows);
}

un_status un_amg_know_ways(un_amg *amg, const un_amg_level *level, const un_amg_ways *w)
{
    un_context *ctx = amg->ctx;
    un_ids known = {0}, rows = {0}, next = {0};
    un_recent recent = {0}; /* known, or asked for already */
    un_status status = UN_OK;
    for (int64_t k = 0; k < level->beside.count; k++)
        UN_TRY_DONE(un_ids_add(ctx, &rows, level->beside.id[k]));
    for (int64_t i = level->own.begin; i < level->own.end; i++)
        UN_TRY_DONE(list_ways(amg, level, w, (int32_t)i, &known, &rows, &recent));
    un_ids_sort(&rows);
    for (bool any = true; any;) {
        UN_TRY_DONE(know_more(amg, level, w, &known, &rows, &any));
        next.count = 0;
        for (int64_t k = 0; k < rows.count; k++)
            UN_TRY_DONE(list_ways(amg, level, w, rows.id[k], &known, &next, &recent));
        un_ids_sort(&next);
        un_ids swap = rows;
        rows = next;
        next = swap;
    }
done:
    un_free(ctx, known.id);
    un_free(ctx, rows.id);
    un_free(ctx, next.id);
    return status;
}

void un_amg_share_counts(un_amg *amg, int32_t *counts, int64_t blocks)
{
    double all[UN_AMG_BLOCKS_MAX];
    for (int64_t b = 0; b < blocks; b++) all[b] = counts[b];
    un_ranks_add(amg->ctx, all, blocks);
    for (int64_t b = 0; b < blocks; b++) counts[b] = (int32_t)all[b];
}

/* ---- records for blocks of other ranks ---- */

un_status un_amg_record_add(un_amg *amg, un_amg_records *r, un_amg_record record)
{
    UN_TRY(un_array_reserve(amg->ctx, (void **)&r->record, &r->room, (size_t)r->count + 1,
                            sizeof record));
    record.rank = un_rank(amg->ctx);
    r->record[r->count++] = record;
    return UN_OK;
}

static void sort_records(un_amg_records *r, const un_amg_record *in, int64_t count, int64_t blocks,
                         int32_t me)
{
    int32_t at[UN_AMG_BLOCKS_MAX] = {0};
    memset(r->before, 0, sizeof r->before);
    for (int64_t k = 0; k < count; k++) {
        at[in[k].block]++;
        r->before[in[k].block] += in[k].rank < me;
    }
    r->first[0] = 0;
    for (int64_t b = 0; b < blocks; b++) {
        r->first[b + 1] = r->first[b] + at[b];
        at[b] = r->first[b];
    }
    for (int64_t k = 0; k < count; k++) r->sorted[at[in[k].block]++] = in[k];
    r->sorted_count = count;
}

un_status un_amg_records_send(un_amg *amg, const un_amg_level *level, un_amg_records *r)
{
    un_context *ctx = amg->ctx;
    int32_t ranks = un_rank_count(ctx), *to = NULL;
    un_amg_record *in = NULL;
    int64_t count = 0;
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, to, r->count + 1);
    for (int64_t k = 0; k < r->count; k++)
        to[k] = un_spread_owner(level->cut, ranks, r->record[k].block * level->grain);
    UN_TRY_DONE(un_exchange_once(ctx, r->record, to, r->count, sizeof *in, (void **)&in, &count));
    UN_TRY_DONE(un_array_need(ctx, (void **)&r->sorted, &r->sorted_room, (size_t)count + 1,
                              sizeof *r->sorted));
    sort_records(r, in, count, un_amg_blocks(level), un_rank(ctx));
done:
    un_free(ctx, to);
    un_free(ctx, in);
    return status;
}

void un_amg_records_free(un_amg *amg, un_amg_records *r)
{
    un_free(amg->ctx, r->record);
    un_free(amg->ctx, r->sorted);
}

/* ---- the next level ---- */

/* Coarse rows that own rows take their values from; aggregates do not cross blocks. */
static un_status list_aggregates(un_amg *amg, int32_t l, un_ids *ids)
{
    const un_amg_level *level = &amg->level[l];
    un_part blocks = un_amg_own_blocks(level);
    for (int32_t c = level->first[blocks.begin]; c < level->first[blocks.end]; c++)
        if (!is_own(level + 1, c)) UN_TRY(un_ids_add(amg->ctx, ids, c));
    return UN_OK;
}

un_status un_amg_list_parents(un_amg *amg, int32_t l)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l], *next = level + 1;
    const un_amg_means *p = &amg->means[l];
    un_ids ids = {0};
    un_recent recent = {0};
    un_status status = UN_OK;
    bool plain = amg->scheme == UN_AMG_PLAIN;
    if (plain) UN_TRY_DONE(list_aggregates(amg, l, &ids));
    for (int64_t i = level->own.begin; i < level->own.end && !plain; i++) {
        const int32_t *pair = p->pair[i];
        if (pair[0] <= UN_AMG_ODD) {
            int32_t odd = UN_AMG_ODD - pair[0];
            for (int32_t k = p->row[odd]; k < p->row[odd + 1]; k++)
                if (!is_own(next, p->col[k]) && !un_is_recent(&recent, 0, p->col[k]))
                    UN_TRY_DONE(un_ids_add(ctx, &ids, p->col[k]));
            continue;
        }
        for (int side = 0; side < 2; side++)
            if (pair[side] >= 0 && !is_own(next, pair[side]) &&
                !un_is_recent(&recent, 0, pair[side]))
                UN_TRY_DONE(un_ids_add(ctx, &ids, pair[side]));
    }
    un_ids_sort(&ids);
    status = un_halo_create(ctx, next->cut, ids.id, ids.count, &level->up);
done:
    un_free(ctx, ids.id);
    return status;
}

/* Arrays of all ranks to all in one call: of each element, the fields side by side. */
static un_status spread_together(un_context *ctx, const int64_t *first, const un_layered *fields,
                                 int32_t count)
{
    int32_t me = un_rank(ctx);
    int64_t total = first[un_rank_count(ctx)];
    size_t size = 0, at = 0;
    char *all;
    for (int32_t f = 0; f < count; f++) size += fields[f].size;
    UN_ALLOC(ctx, all, (size_t)total * size + 1);
    for (int pass = 0; pass < 2; pass++, at = 0) {
        un_part in = pass == 0 ? (un_part){first[me], first[me + 1]} : (un_part){0, total};
        if (pass == 1) un_halo_spread(ctx, first, all, size);
        for (int32_t f = 0; f < count; at += fields[f++].size)
            for (int64_t i = in.begin; i < in.end; i++) {
                char *element = (char *)fields[f].array + (size_t)i * fields[f].size;
                char *there = all + (size_t)i * size + at;
                memcpy(pass == 0 ? there : element, pass == 0 ? element : there, fields[f].size);
            }
    }
    un_free(ctx, all);
    return UN_OK;
}

/* All ranks get all rows of the next level; entries are numbered over all ranks. */
static un_status gather_next(un_amg *amg, un_amg_level *level, un_amg_full *full, int slot)
{
    un_context *ctx = amg->ctx;
    int32_t ranks = un_rank_count(ctx);
    const int64_t *first = level->gather;
    un_layered rows[4] = {{full->row, sizeof *full->row},
                          {full->excess, sizeof *full->excess},
                          {amg->place[slot], sizeof *amg->place[slot]},
                          {amg->scale_of[slot], sizeof *amg->scale_of[slot]}};
    un_layered entries[2] = {{full->col, sizeof *full->col}, {full->val, sizeof *full->val}};
    int64_t *entry;
    UN_TRY(spread_together(ctx, first, rows, amg->scheme == UN_AMG_PLAIN ? 2 : 4));
    UN_ALLOC(ctx, entry, ranks + 1);
    for (int32_t r = 0; r <= ranks; r++) entry[r] = full->row[first[r]];
    un_status status = spread_together(ctx, entry, entries, 2);
    un_free(ctx, entry);
    return status;
}

/* Rows of the next level to the ranks whose blocks they are in there. */
static un_status move_next(un_amg *amg, un_amg_level *level, un_amg_full *full, int slot,
                           const int64_t *first)
{
    un_layered entries[2] = {{full->col, sizeof *full->col}, {full->val, sizeof *full->val}};
    un_layered with[3] = {{full->excess, sizeof *full->excess},
                          {amg->place[slot], sizeof *amg->place[slot]},
                          {amg->scale_of[slot], sizeof *amg->scale_of[slot]}};
    UN_TRY(un_halo_create_cut(amg->ctx, first, level[1].cut, &level->down));
    return un_halo_share_rows(level->down, full->row, entries, 2, with,
                              amg->scheme == UN_AMG_PLAIN ? 1 : 3);
}

un_status un_amg_divide_next(un_amg *amg, int32_t l, un_amg_full *full, int slot,
                             int32_t coarse_count)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l], *next = level + 1;
    int32_t ranks = un_rank_count(ctx), me = un_rank(ctx);
    bool small = un_amg_small(amg);
    int64_t *first;
    UN_ALLOC(ctx, first, ranks + 1);
    for (int32_t r = 0; r <= ranks; r++)
        first[r] = level->first[(level->cut[r] + level->grain - 1) / level->grain];
    next->own = (un_part){0, coarse_count};
    if (coarse_count <= un_amg_gathered(amg->level[0].n, small)) {
        level->gather = first;
        return gather_next(amg, level, full, slot);
    }
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, next->cut, ranks + 1);
    un_spread_cut(next->cut, first, ranks, coarse_count,
                  un_amg_grain(coarse_count, amg->level[0].n, small));
    next->own = (un_part){next->cut[me], next->cut[me + 1]};
    UN_TRY_DONE(move_next(amg, level, full, slot, first));
    status = un_amg_list_parents(amg, l);
done:
    un_free(ctx, first);
    return status;
}
