/* Loops over the rows of a rank: runs of rows that follow one another in arrays. */
#include "ranks/link.h"

/* Rows are looked for line by line in the smallest box, along y and z, that holds all of them. */

un_runs un_bars_runs(const un_bars *b, int64_t each, int32_t wide)
{
    un_runs r = {.bars = b, .each = each, .wide = wide};
    UN_ASSERT(wide < UN_BARS_FAR);
    for (int a = 0; a < 2 && b->low[0] < b->high[0]; a++) {
        r.low[a] = (int32_t)un_max64(b->low[a] - wide, 0);
        r.high[a] = (int32_t)un_min64(b->high[a] + wide, b->curve.rows[a]);
    }
    return r;
}

/* Places in the box. */
static int64_t box_size(const un_runs *r)
{
    return (int64_t)(r->high[0] - r->low[0]) * (r->high[1] - r->low[1]);
}

/* The next run in a line of the box, from *at up to `end`; false: there is none. */
static bool next_in_box(const un_runs *r, int64_t *at, int64_t end, un_part *run)
{
    int64_t width = r->high[0] - r->low[0];
    while (*at < end) {
        int64_t line = *at / width, last = un_min64((line + 1) * width, end) - line * width;
        int64_t first = (r->low[1] + line) * r->bars->curve.rows[0] + r->low[0];
        const uint8_t *far = r->bars->far + first;
        int64_t i = *at - line * width;
        while (i < last && far[i] > r->wide) i++;
        int64_t begin = i;
        while (i < last && far[i] <= r->wide) i++;
        *at = line * width + i;
        if (begin == i) continue;
        *run = (un_part){(first + begin) * r->each, (first + i) * r->each};
        return true;
    }
    return false;
}

bool un_runs_next(un_runs *r, un_part *run)
{
    if (r->bars) return next_in_box(r, &r->at, box_size(r), run);
    *run = (un_part){0, r->total};
    return r->at++ == 0;
}

int64_t un_runs_count(un_runs r)
{
    int64_t count = 0;
    for (un_part run; un_runs_next(&r, &run);) count += run.end - run.begin;
    return count;
}

typedef struct loop_args {
    const un_runs *runs;
    un_parallel_body *body;
    un_parallel_value *value;
    void *arg;
    double *largest;
    int64_t grain;
} loop_args;

static void loop_box(void *arg, int64_t begin, int64_t end)
{
    const loop_args *a = arg;
    for (un_part run; next_in_box(a->runs, &begin, end, &run);) a->body(a->arg, run.begin, run.end);
}

void un_parallel_runs(un_context *ctx, un_runs runs, int64_t grain, un_parallel_body *body,
                      void *arg)
{
    loop_args a = {.runs = &runs, .body = body, .arg = arg};
    if (!runs.bars)
        un_parallel_for(ctx, runs.total, grain, body, arg);
    else
        un_parallel_for(ctx, box_size(&runs), un_max64(grain / runs.each, 1), loop_box, &a);
}

static void find_largest(void *arg, int64_t begin, int64_t end)
{
    const loop_args *a = arg;
    double *largest = &a->largest[begin / a->grain];
    for (un_part run; next_in_box(a->runs, &begin, end, &run);) {
        double value = a->value(a->arg, run.begin, run.end);
        if (!(value <= *largest)) *largest = value;
    }
}

double un_runs_max(un_context *ctx, un_runs runs, un_parallel_value *value, void *arg)
{
    double largest[UN_BLOCKS_MAX] = {0};
    int64_t size = box_size(&runs), grain = un_max64((size + UN_BLOCKS_MAX - 1) / UN_BLOCKS_MAX, 1);
    loop_args a = {.runs = &runs, .value = value, .arg = arg, .largest = largest, .grain = grain};
    if (!runs.bars) return un_parallel_max(ctx, runs.total, value, arg);
    un_parallel_for(ctx, size, grain, find_largest, &a);
    for (int n = 1; n < UN_BLOCKS_MAX; n++)
        if (!(largest[n] <= largest[0])) largest[0] = largest[n];
    return largest[0];
}

void un_runs_copy(void *to, const void *from, size_t size, un_runs runs)
{
    for (un_part run; un_runs_next(&runs, &run);)
        memcpy((char *)to + (size_t)run.begin * size, (const char *)from + (size_t)run.begin * size,
               (size_t)(run.end - run.begin) * size);
}

void un_runs_pack(void *to, const void *from, size_t size, un_runs runs)
{
    char *at = to;
    for (un_part run; un_runs_next(&runs, &run);) {
        size_t bytes = (size_t)(run.end - run.begin) * size;
        memcpy(at, (const char *)from + (size_t)run.begin * size, bytes);
        at += bytes;
    }
}

void un_runs_unpack(void *to, const void *from, size_t size, un_runs runs)
{
    const char *at = from;
    for (un_part run; un_runs_next(&runs, &run);) {
        size_t bytes = (size_t)(run.end - run.begin) * size;
        memcpy((char *)to + (size_t)run.begin * size, at, bytes);
        at += bytes;
    }
}

/* ---- sums ---- */

/* By bar, then over the bars in the order of their numbers. One process adds up so many at once;
 * several have room for all, so that one call is enough. */
#define SUMMED 512

typedef struct sum_args {
    const un_bars *bars;
    int32_t width, first;
    un_bar_values *values;
    void *arg;
    double *sums;
} sum_args;

static void sum_bars(void *arg, int64_t begin, int64_t end)
{
    const sum_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        int32_t bar = a->first + (int32_t)n;
        if (!a->bars || un_bars_owns(a->bars, bar)) a->values(a->arg, bar, a->sums + n * a->width);
    }
}

void un_bars_sum(un_context *ctx, const un_bars *bars, int32_t count, int32_t width,
                 un_bar_values *values, void *arg, double *sums)
{
    double some[SUMMED * UN_BARS_WIDTH];
    int32_t most = bars ? count : SUMMED;
    sum_args a = {bars, width, 0, values, arg, bars ? bars->sums : some};
    UN_ASSERT(width <= UN_BARS_WIDTH && (!bars || count == bars->curve.count));
    for (int32_t w = 0; w < width; w++) sums[w] = 0;
    for (; a.first < count; a.first += most) {
        int64_t here = un_min64(count - a.first, most);
        memset(a.sums, 0, (size_t)(here * width) * sizeof *sums);
        un_parallel_for(ctx, here, 1, sum_bars, &a);
        /* all but one of the numbers that are added are 0: exact in any order */
        if (bars) un_ranks_add_list(ctx, a.sums, here * width);
        for (int64_t n = 0; n < here; n++)
            for (int32_t w = 0; w < width; w++) sums[w] += a.sums[n * width + w];
    }
}

typedef struct row_args {
    const int32_t *rows;
    int64_t each;
    un_parallel_values *values;
    void *arg;
} row_args;

/* From the first row of a bar to its last. */
static void add_rows(void *arg, int32_t bar, double *sums)
{
    const row_args *a = arg;
    int32_t across = (a->rows[0] + UN_BAR - 1) / UN_BAR;
    int64_t j = bar % across * UN_BAR, k = bar / across * UN_BAR;
    int64_t above = un_min64(j + UN_BAR, a->rows[0]), front = un_min64(k + UN_BAR, a->rows[1]);
    for (; k < front; k++)
        a->values(a->arg, (j + k * a->rows[0]) * a->each, (above + k * a->rows[0]) * a->each, sums);
}

void un_bars_sums(un_context *ctx, const un_bars *bars, const int32_t rows[2], int64_t each,
                  int32_t width, un_parallel_values *values, void *arg, double *sums)
{
    row_args a = {rows, each, values, arg};
    int32_t count = (rows[0] + UN_BAR - 1) / UN_BAR * ((rows[1] + UN_BAR - 1) / UN_BAR);
    un_bars_sum(ctx, bars, count, width, add_rows, &a, sums);
}
