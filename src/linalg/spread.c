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

/* Rows of `want` that are not in `have`. */
static un_status list_missing(un_context *ctx, un_ids *ids, un_part want, un_part have)
{
    for (int64_t i = want.begin; i < want.end; i++)
        if (i < have.begin || i >= have.end) UN_TRY(un_ids_add(ctx, ids, (int32_t)i));
    return UN_OK;
}

static un_status list_columns(un_context *ctx, un_ids *ids, const int32_t *row, const int32_t *col,
                              un_part rows, un_part have)
{
    for (int64_t i = rows.begin; i < rows.end; i++) {
        int32_t first = row[i], last = row[i + 1] - 1; /* columns ascend */
        if (col[first] >= have.begin && col[last] < have.end) continue;
        for (int32_t k = first; k <= last; k++)
            if (col[k] < have.begin || col[k] >= have.end) UN_TRY(un_ids_add(ctx, ids, col[k]));
    }
    return UN_OK;
}

static un_part part_of(const int64_t *cut, int32_t rank)
{
    return (un_part){cut[rank], cut[rank + 1]};
}

/* Copies of `want`, of which this rank has `have`, from those who have them by `cut`. */
static un_status plan_missing(un_context *ctx, const int64_t *cut, un_part want, un_halo **halo)
{
    un_ids ids = {0};
    un_status status = list_missing(ctx, &ids, want, part_of(cut, un_rank(ctx)));
    if (status == UN_OK) status = un_halo_create(ctx, cut, ids.id, ids.count, halo);
    un_free(ctx, ids.id);
    return status;
}

static un_status begin(un_spread *s, un_context *ctx, const un_range *rows)
{
    s->ctx = ctx;
    UN_TRY(un_array_need(ctx, (void **)&s->cut, &s->capacity[2], (size_t)un_rank_count(ctx) + 1,
                         sizeof *s->cut));
    return un_ranks_begins(ctx, rows->begin, rows->total, &s->first);
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
    return plan_missing(ctx, s->first, own, &s->shift);
}

static un_status know_beside(un_spread *s, const int32_t *row, const int32_t *col)
{
    un_part own = {s->rows.begin, s->rows.end};
    UN_TRY(list_columns(s->ctx, &s->beside, row, col, own, own));
    un_ids_sort(&s->beside);
    return un_halo_create(s->ctx, s->cut, s->beside.id, s->beside.count, &s->near);
}

un_status un_spread_begin(un_spread *s, un_context *ctx, const un_system *system, double *x,
                          int64_t grain)
{
    UN_TRY(begin(s, ctx, system->rows));
    UN_TRY(cut_rows(s, system->a->n, grain));
    UN_TRY(move_rows(s, system, x));
    return know_beside(s, system->a->row, system->a->col);
}

un_status un_spread_begin_blocks(un_spread *s, un_context *ctx, const un_block_system *system,
                                 un_vec3 *x, int64_t grain)
{
    const un_block_csr *a = system->a;
    un_layered entries[2] = {{a->col, sizeof *a->col}, {a->val, sizeof *a->val}};
    un_layered with[3] = {{x, sizeof *x},
                          {(void *)(uintptr_t)system->place, sizeof *system->place},
                          {(void *)(uintptr_t)system->free, sizeof *system->free}};
    UN_TRY(begin(s, ctx, system->rows));
    UN_TRY(cut_rows(s, a->n, grain));
    UN_TRY(un_halo_reserve(s->shift, sizeof *x));
    UN_TRY(un_halo_share_rows(s->shift, a->row, entries, 2, with, system->free ? 3 : 2));
    UN_TRY(know_beside(s, a->row, a->col));
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
                           size_t size)
{
    un_context *ctx = s->ctx;
    int32_t me = un_rank(ctx);
    un_part own = part_of(s->first, me), have = part_of(s->cut, me);
    un_ids ids = {0};
    un_halo *answer = NULL;
    un_status status = list_missing(ctx, &ids, own, have);
    if (status == UN_OK) status = list_columns(ctx, &ids, row, col, own, have);
    un_ids_sort(&ids);
    if (status == UN_OK) status = un_halo_create(ctx, s->cut, ids.id, ids.count, &answer);
    if (status == UN_OK) status = un_halo_reserve(answer, size);
    if (status == UN_OK) un_halo_share(answer, x, size);
    un_halo_destroy(answer);
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
    UN_TRY(begin(s, ctx, system->rows));
    s->cut[0] = 0;
    for (int32_t r = 1; r <= count; r++) s->cut[r] = n;
    UN_TRY(plan_missing(ctx, s->first, part_of(s->cut, un_rank(ctx)), &s->shift));
    UN_TRY(move_rows(s, system, x));
    UN_ALLOC_DONE(ctx, b, n + 1);
    un_spread_load(s, b, system->b, sizeof *b);
    if (un_rank(ctx) == 0) status = solve_whole(s, system, b, x, solve, arg, report);
    if (status != UN_OK) goto done;
    un_ranks_tell(un_context_ranks(ctx), report, sizeof *report);
    status = un_spread_answer(s, system->a->row, system->a->col, x, sizeof *x);
done:
    un_free(ctx, b);
    return status;
}
