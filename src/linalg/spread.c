/* Rows of a system among ranks: where they are cut, who needs whose, and the way there and back. */
#include "linalg/spread.h"

/* ---- sums ---- */

void un_spread_sums(un_context *ctx, const un_spread *spread, int64_t n, int32_t width,
                    un_parallel_values *values, void *arg, double *sums)
{
    if (spread)
        un_ranks_sums(ctx, spread->rows, width, values, arg, sums);
    else
        un_parallel_sums(ctx, n, width, values, arg, sums);
}

void un_spread_sum_in_turn(const un_spread *spread, int32_t width, un_parallel_values *values,
                           void *arg, double *sums)
{
    memset(sums, 0, (size_t)width * sizeof *sums);
    un_ranks_begin_turn(spread->ctx, sums, (size_t)width * sizeof *sums);
    values(arg, spread->rows.begin, spread->rows.end, sums);
    un_ranks_end_turn(spread->ctx, sums, (size_t)width * sizeof *sums);
}

/* ---- whose row is whose ---- */

void un_spread_cut(int64_t *cut, const int64_t *first, int32_t rank_count, int64_t n, int64_t grain)
{
    for (int32_t r = 0; r < rank_count; r++) {
        int64_t near = (first[r] + grain / 2) / grain * grain;
        cut[r] = r == 0 ? 0 : un_min64(near, n);
    }
    cut[rank_count] = n;
}

int32_t un_spread_owner(const int64_t *cut, int32_t rank_count, int64_t row)
{
    int32_t low = 0, high = rank_count - 1; /* the last rank whose first row is not after it */
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (cut[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Columns of own rows that are other ranks' rows. */
static un_status list_columns(un_context *ctx, un_ids *ids, const int32_t *row, const int32_t *col,
                              un_part own)
{
    for (int64_t i = own.begin; i < own.end; i++) {
        int32_t first = row[i], last = row[i + 1] - 1; /* columns ascend */
        if (col[first] >= own.begin && col[last] < own.end) continue;
        for (int32_t k = first; k <= last; k++)
            if (col[k] < own.begin || col[k] >= own.end) UN_TRY(un_ids_add(ctx, ids, col[k]));
    }
    return UN_OK;
}

static un_part part_of(const int64_t *cut, int32_t rank)
{
    return (un_part){cut[rank], cut[rank + 1]};
}

/* ---- what others want ---- */

un_status un_wishes_add(un_context *ctx, un_wishes *w, int32_t rank, int32_t row)
{
    if (un_is_recent(&w->recent, rank, row)) return UN_OK;
    UN_TRY(un_ids_append(ctx, &w->row, row));
    return un_ids_append(ctx, &w->rank, rank);
}

/* Leaves out what is in the other list, too; both ascend. */
static void leave_out(un_ids *ids, const int32_t *known, int64_t known_count)
{
    int64_t kept = 0, at = 0;
    for (int64_t k = 0; k < ids->count; k++) {
        while (at < known_count && known[at] < ids->id[k]) at++;
        if (at == known_count || known[at] != ids->id[k]) ids->id[kept++] = ids->id[k];
    }
    ids->count = kept;
}

un_status un_wishes_sort(un_context *ctx, un_wishes *w, const un_wishes *except)
{
    int32_t ranks = un_rank_count(ctx);
    int64_t kept = 0, left_out = 0;
    un_free(ctx, w->given);
    un_free(ctx, w->count);
    w->given = un_alloc(ctx, (size_t)w->row.count + 1, sizeof *w->given);
    w->count = un_alloc_zero(ctx, (size_t)ranks + 1, sizeof *w->count);
    if (!w->given || !w->count) return UN_ERROR_MEMORY;
    for (int64_t k = 0; k < w->row.count; k++) w->count[w->rank.id[k] + 1]++;
    for (int32_t r = 0; r < ranks; r++) w->count[r + 1] += w->count[r];
    for (int64_t k = 0; k < w->row.count; k++) w->given[w->count[w->rank.id[k]]++] = w->row.id[k];
    /* count[r] is where those of rank r end */
    for (int32_t r = 0, begin = 0; r < ranks; r++) {
        int32_t end = (int32_t)w->count[r];
        un_ids some = {w->given + begin, end - begin, 0};
        un_ids_sort(&some);
        if (except) {
            leave_out(&some, except->given + left_out, except->count[r]);
            left_out += except->count[r];
        }
        memmove(w->given + kept, some.id, (size_t)some.count * sizeof *w->given);
        kept += some.count;
        w->count[r] = some.count;
        begin = end;
    }
    return UN_OK;
}

un_status un_wishes_of_couplings(un_context *ctx, un_wishes *w, const int64_t *cut,
                                 const int32_t *row, const int32_t *col)
{
    un_part own = {cut[un_rank(ctx)], cut[un_rank(ctx) + 1]};
    un_owners owners = {cut, un_rank_count(ctx), 0};
    for (int64_t i = own.begin; i < own.end; i++) {
        if (col[row[i]] >= own.begin && col[row[i + 1] - 1] < own.end) continue; /* they ascend */
        for (int32_t k = row[i]; k < row[i + 1]; k++) {
            if (col[k] >= own.begin && col[k] < own.end) continue;
            UN_TRY(un_wishes_add(ctx, w, un_owner_of(&owners, col[k]), (int32_t)i));
        }
    }
    return UN_OK;
}

un_status un_wishes_plan(un_context *ctx, un_wishes *w, const un_wishes *except, const int64_t *cut,
                         const un_ids *wanted, un_halo **halo)
{
    UN_TRY(un_wishes_sort(ctx, w, except));
    un_given given = {w->given, w->count};
    return un_halo_create_known(ctx, cut, wanted->id, wanted->count, &given, halo);
}

void un_wishes_free(un_context *ctx, un_wishes *w)
{
    un_free(ctx, w->row.id);
    un_free(ctx, w->rank.id);
    un_free(ctx, w->given);
    un_free(ctx, w->count);
}

/* ---- life ---- */

/* first: by rank, its first row; NULL: not known. */
static un_status begin(un_spread *s, un_context *ctx, const un_range *rows, const int64_t *first)
{
    s->ctx = ctx;
    UN_TRY(un_array_need(ctx, (void **)&s->cut, &s->capacity[2], (size_t)un_rank_count(ctx) + 1,
                         sizeof *s->cut));
    if (!first) return un_ranks_begins(ctx, rows->begin, rows->total, &s->first);
    size_t count = (size_t)un_rank_count(ctx) + 1;
    UN_ALLOC(ctx, s->first, count);
    memcpy(s->first, first, count * sizeof *first);
    return UN_OK;
}

void un_spread_end(un_spread *s)
{
    un_halo_destroy(s->shift);
    un_halo_destroy(s->near);
    un_halo_destroy(s->pushed);
    un_free(s->ctx, s->first);
    s->shift = s->near = s->pushed = NULL;
    s->first = NULL;
    s->beside.count = 0;
}

void un_spread_free(un_spread *s)
{
    if (!s->ctx) return;
    un_spread_end(s);
    void *blocks[] = {s->cut, s->beside.id, s->place, s->scale};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(s->ctx, blocks[i]);
}

/* ---- rows to where they are solved ---- */

typedef struct places {
    un_spread *s;
    const un_sites *sites;
} places;

static void find_places(void *arg, int64_t from, int64_t to)
{
    const places *p = arg;
    const un_sites *sites = p->sites;
    bool bcc = sites->kind == UN_SITES_BCC;
    for (int64_t i = from; i < to; i++) {
        int32_t site = sites->site[i];
        p->s->place[i] = bcc ? sites->key[site] : un_sites_order_of(sites, site);
        p->s->scale[i] = bcc ? (uint8_t)(sites->level_max - sites->level[site]) : 0;
    }
}

/* Finds own places, and adds them to what goes with the rows. */
static un_status list_places(un_spread *s, const un_system *system, un_layered *with,
                             int32_t *with_count)
{
    size_t n = (size_t)system->a->n;
    if (!system->sites || system->sites->kind == UN_SITES_NONE) return UN_OK;
    UN_TRY(un_array_need(s->ctx, (void **)&s->place, &s->capacity[0], n, sizeof *s->place));
    UN_TRY(un_array_need(s->ctx, (void **)&s->scale, &s->capacity[1], n, sizeof *s->scale));
    places p = {s, system->sites};
    un_parallel_part(s->ctx, part_of(s->first, un_rank(s->ctx)), un_block_grain((int64_t)n),
                     find_places, &p);
    with[(*with_count)++] = (un_layered){s->place, sizeof *s->place};
    with[(*with_count)++] = (un_layered){s->scale, sizeof *s->scale};
    return UN_OK;
}

/* Rows, places and the guess. */
static un_status move_rows(un_spread *s, const un_system *system, double *x)
{
    const un_csr *a = system->a;
    un_layered entries[2] = {{a->col, sizeof *a->col}, {a->val, sizeof *a->val}};
    un_layered with[3] = {{x, sizeof *x}};
    int32_t with_count = 1;
    UN_TRY(list_places(s, system, with, &with_count));
    return un_halo_share_rows(s->shift, a->row, entries, 2, with, with_count);
}

void un_spread_load(un_spread *s, void *r, const void *b, size_t size)
{
    un_part own = part_of(s->first, un_rank(s->ctx));
    size_t from = (size_t)own.begin * size;
    memcpy((char *)r + from, (const char *)b + from, (size_t)(own.end - own.begin) * size);
    un_halo_share(s->shift, r, size);
}

/* Cuts them for the solve. */
static un_status cut_rows(un_spread *s, int64_t n, int64_t grain)
{
    un_context *ctx = s->ctx;
    un_spread_cut(s->cut, s->first, un_rank_count(ctx), n, grain);
    un_part own = part_of(s->cut, un_rank(ctx));
    s->rows = (un_range){own.begin, own.end, n};
    return un_halo_create_cut(ctx, s->first, s->cut, &s->shift);
}

/* Copies of the columns of own rows. asks: of rows of blocks, nobody knows who couples to them. */
static un_status know_beside(un_spread *s, const int32_t *row, const int32_t *col, bool asks)
{
    un_context *ctx = s->ctx;
    un_wishes wishes = {0};
    UN_TRY(list_columns(ctx, &s->beside, row, col, part_of(s->cut, un_rank(ctx))));
    un_ids_sort(&s->beside);
    if (asks) return un_halo_create(ctx, s->cut, s->beside.id, s->beside.count, &s->near);
    un_status status = un_wishes_of_couplings(ctx, &wishes, s->cut, row, col);
    if (status == UN_OK) status = un_wishes_plan(ctx, &wishes, NULL, s->cut, &s->beside, &s->near);
    un_wishes_free(ctx, &wishes);
    return status;
}

un_status un_spread_begin(un_spread *s, un_context *ctx, const un_system *system, double *x,
                          int64_t grain)
{
    UN_TRY(begin(s, ctx, system->rows, system->first));
    UN_TRY(cut_rows(s, system->a->n, grain));
    UN_TRY(move_rows(s, system, x));
    return know_beside(s, system->a->row, system->a->col, false);
}

un_status un_spread_begin_blocks(un_spread *s, un_context *ctx, const un_block_system *system,
                                 un_vec3 *x, int64_t grain)
{
    const un_block_csr *a = system->a;
    un_layered entries[2] = {{a->col, sizeof *a->col}, {a->val, sizeof *a->val}};
    un_layered with[3] = {{x, sizeof *x},
                          {(void *)(uintptr_t)system->place, sizeof *system->place},
                          {(void *)(uintptr_t)system->free, sizeof *system->free}};
    UN_TRY(begin(s, ctx, system->rows, NULL));
    UN_TRY(cut_rows(s, a->n, grain));
    UN_TRY(un_halo_reserve(s->shift, sizeof *x));
    UN_TRY(un_halo_share_rows(s->shift, a->row, entries, 2, with, system->free ? 3 : 2));
    UN_TRY(know_beside(s, a->row, a->col, true));
    return un_halo_reserve(s->near, sizeof *x);
}

void un_spread_guess(un_spread *s, void *x, size_t size)
{
    un_halo_share(s->shift, x, size);
}

un_status un_spread_know_columns(un_spread *s, const un_columns *c)
{
    un_ids ids = {0};
    un_status status = UN_OK;
    for (int32_t e = 0; status == UN_OK && e < c->first[c->count]; e++)
        if (c->row[e] < s->rows.begin || c->row[e] >= s->rows.end)
            status = un_ids_add(s->ctx, &ids, c->row[e]);
    un_ids_sort(&ids);
    if (status == UN_OK) status = un_halo_create(s->ctx, s->cut, ids.id, ids.count, &s->pushed);
    un_free(s->ctx, ids.id);
    return status;
}

un_status un_spread_answer(un_spread *s, const int32_t *row, const int32_t *col, void *x,
                           size_t size, un_halo *beside)
{
    un_context *ctx = s->ctx;
    un_ids ids = {0};
    un_halo *back = NULL, *columns = NULL;
    un_status status = un_halo_create_cut(ctx, s->cut, s->first, &back);
    if (status == UN_OK) status = un_halo_reserve(back, size);
    if (status == UN_OK && !beside) {
        status = list_columns(ctx, &ids, row, col, part_of(s->first, un_rank(ctx)));
        un_ids_sort(&ids);
        if (status == UN_OK) status = un_halo_create(ctx, s->first, ids.id, ids.count, &columns);
        if (status == UN_OK) status = un_halo_reserve(columns, size);
    }
    if (status == UN_OK) {
        un_halo_share(back, x, size);
        un_halo_share(beside ? beside : columns, x, size);
    }
    un_halo_destroy(back);
    un_halo_destroy(columns);
    un_free(ctx, ids.id);
    return status;
}

/* ---- rank 0 by itself ---- */

/* Sites that go by row. */
static un_status list_sites(const un_spread *s, const un_sites *sites, int32_t n, int32_t *site,
                            uint8_t *level, un_sites *out)
{
    *out = *sites;
    out->site = site;
    out->key = s->place;
    out->level = level;
    for (int32_t i = 0; i < n; i++) {
        site[i] = sites->kind == UN_SITES_BCC ? i : un_sites_of_order(sites, s->place[i]);
        level[i] = (uint8_t)(sites->level_max - s->scale[i]);
    }
    return UN_OK;
}

static un_status solve_whole(un_spread *s, const un_system *system, const double *b, double *x,
                             un_spread_solve *solve, void *arg, un_solve_report *report)
{
    un_context *ctx = s->ctx;
    un_system whole = {.a = system->a,
                       .b = b,
                       .columns = system->columns,
                       .weak = system->weak,
                       .again = system->again};
    un_sites sites;
    int32_t n = system->a->n, *site = NULL;
    uint8_t *level = NULL;
    un_status status = UN_OK;
    if (system->sites && system->sites->kind != UN_SITES_NONE) {
        UN_ALLOC_DONE(ctx, site, n + 1);
        UN_ALLOC_DONE(ctx, level, n + 1);
        list_sites(s, system->sites, n, site, level, &sites);
        whole.sites = &sites;
    }
    status = solve(arg, &whole, x, report);
done:
    un_free(ctx, site);
    un_free(ctx, level);
    return status;
}

un_status un_spread_on_first(un_spread *s, un_context *ctx, const un_system *system, double *x,
                             un_spread_solve *solve, void *arg, un_solve_report *report)
{
    int32_t count = un_rank_count(ctx);
    int64_t n = system->a->n;
    double *b = NULL;
    un_status status = UN_OK;
    UN_TRY(begin(s, ctx, system->rows, system->first));
    s->cut[0] = 0;
    for (int32_t r = 1; r <= count; r++) s->cut[r] = n;
    UN_TRY(un_halo_create_cut(ctx, s->first, s->cut, &s->shift));
    UN_TRY(move_rows(s, system, x));
    UN_ALLOC_DONE(ctx, b, n + 1);
    un_spread_load(s, b, system->b, sizeof *b);
    if (un_rank(ctx) == 0) status = solve_whole(s, system, b, x, solve, arg, report);
    if (status != UN_OK) goto done;
    un_ranks_tell(un_context_ranks(ctx), report, sizeof *report);
    status = un_spread_answer(s, system->a->row, system->a->col, x, sizeof *x, system->beside);
done:
    un_free(ctx, b);
    return status;
}
