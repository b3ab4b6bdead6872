/* Rows of a grid in bars, a stretch of the curve through them on each rank. */
#include "ranks/link.h"

#include <math.h>

/* ---- cuts ---- */

/* Where the parts of all ranks begin is an array `first` of places along the curve; one more at the
 * end. `before`: the work before each place. */

static double work_in(const double *before, int32_t begin, int32_t end)
{
    return before[end] - before[begin];
}

static double largest_work(const double *before, const int32_t *first, int32_t ranks)
{
    double largest = 0;
    for (int32_t r = 0; r < ranks; r++)
        largest = fmax(largest, work_in(before, first[r], first[r + 1]));
    return largest;
}

/* By rank: the earliest place that it can begin at such that it and the ranks after it have at most
 * `most` of work each, and each a bar; false if rank 0 would have to begin after the first. */
static bool find_earliest(int32_t *earliest, const double *before, int32_t places, int32_t ranks,
                          double most)
{
    int32_t u = earliest[ranks] = places;
    for (int32_t r = ranks - 1; r >= 0; r--) {
        int32_t end = u--;
        if (u < r || work_in(before, u, end) > most) return false;
        while (u > r && work_in(before, u - 1, end) <= most) u--;
        earliest[r] = u;
    }
    return earliest[0] == 0;
}

/* The largest part has as little work as whole bars allow, and within that cuts are as near as
 * possible to equal shares. Every rank gets a bar while there are any. */
static void cut(int32_t *first, int32_t *earliest, const double *before, int32_t places,
                int32_t ranks)
{
    double total = before[places], low = total / ranks, high = total;
    first[0] = 0;
    for (int32_t r = 1; r <= ranks; r++) first[r] = (int32_t)un_min64(r, places);
    if (places <= ranks) return;
    if (find_earliest(earliest, before, places, ranks, low)) high = low;
    for (int i = 0; i < 60 && low < high; i++) {
        double middle = low + (high - low) / 2;
        if (find_earliest(earliest, before, places, ranks, middle))
            high = middle;
        else
            low = middle;
    }
    find_earliest(earliest, before, places, ranks, high);
    for (int32_t r = 1; r < ranks; r++) {
        int32_t begin = first[r - 1], u = un_clampi(earliest[r], begin + 1, places);
        while (u < places - ranks + r && work_in(before, begin, u + 1) <= high &&
               0.5 * (before[u] + before[u + 1]) < total * r / ranks)
            u++;
        first[r] = u;
    }
    first[ranks] = places;
}

/* The work before each place, allocated. */
static double *work_before(const un_curve *c, un_context *ctx, const double *work)
{
    double *before = un_alloc(ctx, (size_t)c->count + 1, sizeof *before);
    if (before) before[0] = 0;
    for (int32_t n = 0; before && n < c->count; n++) before[n + 1] = before[n] + work[c->bar[n]];
    return before;
}

un_status un_curve_cut(const un_curve *c, un_context *ctx, const double *work, int32_t ranks,
                       int32_t *first)
{
    double *before = work_before(c, ctx, work);
    int32_t *earliest = un_alloc(ctx, (size_t)ranks + 1, sizeof *earliest);
    if (before && earliest) cut(first, earliest, before, c->count, ranks);
    un_status status = before && earliest ? UN_OK : UN_ERROR_MEMORY;
    un_free(ctx, before);
    un_free(ctx, earliest);
    return status;
}

/* The cut for this work; *gain: of the largest part's work, the share that it saves compared with
 * the parts as they are. */
static un_status find_cut(const un_bars *b, const double *work, int32_t *first, double *gain)
{
    int32_t ranks = un_rank_count(b->ctx);
    UN_TRY(un_curve_cut(&b->curve, b->ctx, work, ranks, first));
    double *before = work_before(&b->curve, b->ctx, work);
    if (!before) return UN_ERROR_MEMORY;
    double now = largest_work(before, b->first, ranks);
    *gain = now > 0 ? 1 - largest_work(before, first, ranks) / now : 0;
    un_free(b->ctx, before);
    return UN_OK;
}

/* ---- who has what ---- */

static inline uint8_t nearer(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* Rows from the nearest own one: those next to a row are one farther at most. Once on the way up,
 * once on the way down. */
static void find_far(un_bars *b)
{
    int32_t n = b->curve.rows[0], rows = n * b->curve.rows[1];
    for (int32_t way = 1; way >= -1; way -= 2)
        for (int32_t at = 0; at < rows; at++) {
            int32_t row = way > 0 ? at : rows - 1 - at, j = row % n, k = row / n;
            bool low = way > 0 ? j > 0 : j<n - 1, high = way> 0 ? j < n - 1 : j > 0;
            bool behind = way > 0 ? k > 0 : k < b->curve.rows[1] - 1;
            uint8_t least = UN_BARS_FAR;
            if (low) least = nearer(least, b->far[row - way]);
            if (behind) least = nearer(least, b->far[row - way * n]);
            if (behind && low) least = nearer(least, b->far[row - way * (n + 1)]);
            if (behind && high) least = nearer(least, b->far[row - way * (n - 1)]);
            if (least < UN_BARS_FAR) b->far[row] = nearer(b->far[row], least + 1);
        }
}

void un_bars_settle(un_bars *b)
{
    int32_t me = un_rank(b->ctx), ranks = un_rank_count(b->ctx);
    for (int a = 0; a < 2; a++) {
        b->low[a] = b->curve.rows[a];
        b->high[a] = 0;
    }
    for (int32_t r = 0; r < ranks; r++)
        for (int32_t n = b->first[r]; n < b->first[r + 1]; n++) b->owner[b->curve.bar[n]] = r;
    for (int32_t k = 0; k < b->curve.rows[1]; k++)
        for (int32_t j = 0; j < b->curve.rows[0]; j++) {
            bool own = b->owner[un_bar_of(&b->curve, j, k)] == me;
            b->far[j + (int64_t)b->curve.rows[0] * k] = own ? 0 : UN_BARS_FAR;
            if (!own) continue;
            b->low[0] = j < b->low[0] ? j : b->low[0];
            b->low[1] = k < b->low[1] ? k : b->low[1];
            b->high[0] = j >= b->high[0] ? j + 1 : b->high[0];
            b->high[1] = k >= b->high[1] ? k + 1 : b->high[1];
        }
    find_far(b);
    un_bars_forget_ways(b);
}

un_status un_bars_create(un_context *ctx, int32_t rows_y, int32_t rows_z, int32_t row_cells,
                         const double *work, un_bars **bars)
{
    size_t ranks = (size_t)un_rank_count(ctx);
    double gain;
    un_bars *b = un_alloc_zero(ctx, 1, sizeof *b);
    if (!b) return UN_ERROR_MEMORY;
    b->ctx = ctx;
    b->row_cells = row_cells;
    un_status status = un_curve_init(&b->curve, ctx, rows_y, rows_z);
    b->first = un_alloc_zero(ctx, ranks + 1, sizeof *b->first);
    b->next = un_alloc_zero(ctx, ranks + 1, sizeof *b->next);
    b->owner = un_alloc_zero(ctx, (size_t)b->curve.count, sizeof *b->owner);
    b->stamp = un_alloc_zero(ctx, (size_t)b->curve.count, sizeof *b->stamp);
    b->sums = un_alloc(ctx, (size_t)b->curve.count * UN_BARS_WIDTH, sizeof *b->sums);
    b->far = un_alloc_zero(ctx, (size_t)rows_y * (size_t)rows_z, 1);
    b->out_bytes = un_alloc_zero(ctx, ranks, sizeof *b->out_bytes);
    b->in_bytes = un_alloc_zero(ctx, ranks, sizeof *b->in_bytes);
    b->out_mail = un_alloc(ctx, ranks, sizeof *b->out_mail);
    b->in_mail = un_alloc(ctx, ranks, sizeof *b->in_mail);
    bool able = status == UN_OK && b->first && b->next && b->owner && b->stamp && b->sums &&
                b->far && b->out_bytes && b->in_bytes && b->out_mail && b->in_mail;
    if (!able || find_cut(b, work, b->next, &gain) != UN_OK) {
        un_bars_destroy(b);
        return UN_ERROR_MEMORY;
    }
    memcpy(b->first, b->next, (ranks + 1) * sizeof *b->first);
    un_bars_settle(b);
    *bars = b;
    return UN_OK;
}

void un_bars_destroy(un_bars *b)
{
    if (!b) return;
    un_bars_forget_ways(b);
    un_curve_free(b->ctx, &b->curve);
    void *blocks[] = {b->first, b->next,      b->owner,    b->stamp,    b->sums,
                      b->far,   b->out_bytes, b->in_bytes, b->out_mail, b->in_mail,
                      b->out,   b->in,        b->packed};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(b->ctx, blocks[i]);
    un_free(b->ctx, b);
}

/* ---- rows that are gone ---- */

void un_bars_forget(const un_bars *b, const un_layered *field, int32_t wide)
{
    un_runs runs = un_bars_runs(b, b->row_cells, wide);
    size_t at = 0, size = field->size;
    size_t end = (size_t)b->row_cells * (size_t)b->curve.rows[0] * (size_t)b->curve.rows[1];
    for (un_part run; un_runs_next(&runs, &run); at = (size_t)run.end * size)
        un_give_back(field->array, at, (size_t)run.begin * size);
    un_give_back(field->array, at, end * size);
}

un_status un_bars_recut(un_bars *b, const double *work, double least, const un_layered *fields,
                        int32_t count, bool *changed)
{
    double gain = 0;
    *changed = false;
    UN_TRY(un_ranks_agree(b->ctx, find_cut(b, work, b->next, &gain)));
    if (!(gain >= least)) return UN_OK;
    UN_TRY(un_bars_move(b, fields, count));
    memcpy(b->first, b->next, ((size_t)un_rank_count(b->ctx) + 1) * sizeof *b->first);
    un_bars_settle(b);
    for (int32_t f = 0; f < count; f++) un_bars_forget(b, &fields[f], UN_BAR);
    *changed = true;
    return UN_OK;
}
