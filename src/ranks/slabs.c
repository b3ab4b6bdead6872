/* Layers of a grid, a slab of them on each rank, and arrays of full length of which each rank knows
 * a part. Slabs are cut where units of layers meet. */
#include "ranks/link.h"

#include <math.h>

void un_ranks_add(un_context *ctx, double *values, int64_t count)
{
    un_link_count(ctx);
    if (un_rank_count(ctx) > 1) un_link_add(values, (size_t)count);
}

/* ---- parts of arrays ---- */

#define PIECE ((size_t)1 << 28)

static void send_long(int32_t to, const char *bytes, size_t count)
{
    for (size_t at = 0; at < count; at += PIECE)
        un_link_send_bytes(to, bytes + at, count - at < PIECE ? count - at : PIECE);
}

static void receive_long(int32_t from, char *bytes, size_t count)
{
    for (size_t at = 0; at < count; at += PIECE)
        un_link_receive_bytes(from, bytes + at, count - at < PIECE ? count - at : PIECE);
}

void un_ranks_collect(un_context *ctx, un_range range, void *array, size_t size)
{
    int64_t end = range.end;
    if (un_rank_count(ctx) == 1) return;
    if (un_rank(ctx) > 0) {
        un_link_send_bytes(0, &range, sizeof range);
        send_long(0, (char *)array + (size_t)range.begin * size,
                  (size_t)(range.end - range.begin) * size);
        return;
    }
    for (int32_t r = 1; r < un_rank_count(ctx); r++) {
        un_range theirs;
        un_link_receive_bytes(r, &theirs, sizeof theirs);
        UN_ASSERT(theirs.begin == end);
        receive_long(r, (char *)array + (size_t)theirs.begin * size,
                     (size_t)(theirs.end - theirs.begin) * size);
        end = theirs.end;
    }
}

void un_ranks_own_window(un_context *ctx, un_range range, const void *own, size_t size,
                         int64_t begin, int64_t end, void *out)
{
    un_part mine = {un_max64(range.begin, begin), un_min64(range.end, end)};
    if (mine.end < mine.begin) mine.end = mine.begin;
    size_t bytes = (size_t)(mine.end - mine.begin) * size;
    const char *from = bytes ? (const char *)own + (size_t)(mine.begin - range.begin) * size : NULL;
    if (un_rank(ctx) > 0) {
        un_link_send_bytes(0, &mine, sizeof mine);
        if (bytes > 0) send_long(0, from, bytes);
        return;
    }
    if (bytes > 0) memcpy((char *)out + (size_t)(mine.begin - begin) * size, from, bytes);
    for (int32_t r = 1; r < un_rank_count(ctx); r++) {
        un_link_receive_bytes(r, &mine, sizeof mine);
        bytes = (size_t)(mine.end - mine.begin) * size;
        if (bytes > 0) receive_long(r, (char *)out + (size_t)(mine.begin - begin) * size, bytes);
    }
}

un_status un_ranks_deal(un_context *ctx, un_part part, void *array, size_t size)
{
    if (un_rank_count(ctx) == 1) return UN_OK;
    size_t bytes = part.end > part.begin ? (size_t)(part.end - part.begin) * size : 0;
    if (un_rank(ctx) > 0) {
        un_link_send_bytes(0, &part, sizeof part);
        receive_long(0, (char *)array + (size_t)part.begin * size, bytes);
        return UN_OK;
    }
    for (int32_t r = 1; r < un_rank_count(ctx); r++) {
        un_part theirs;
        un_link_receive_bytes(r, &theirs, sizeof theirs);
        if (theirs.end > theirs.begin)
            send_long(r, (char *)array + (size_t)theirs.begin * size,
                      (size_t)(theirs.end - theirs.begin) * size);
    }
    return UN_OK;
}

/* ---- slabs ---- */

/* Where the slabs of all ranks begin is an array `first` of units; one more at the end. `before`:
 * the work before each unit. */

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

/* By rank: the earliest unit that it can begin with such that it and the ranks after it have at
 * most `most` of work each, and each a unit; false if rank 0 would have to begin after the first.
 */
static bool find_earliest(int32_t *earliest, const double *before, int32_t units, int32_t ranks,
                          double most)
{
    int32_t u = earliest[ranks] = units;
    for (int32_t r = ranks - 1; r >= 0; r--) {
        int32_t end = u--;
        if (u < r || work_in(before, u, end) > most) return false;
        while (u > r && work_in(before, u - 1, end) <= most) u--;
        earliest[r] = u;
    }
    return earliest[0] == 0;
}

/* The largest slab has as little work as whole units allow, and within that cuts are as near as
 * possible to equal shares. Every rank gets a unit while there are any. */
static void cut(int32_t *first, int32_t *earliest, const double *before, int32_t units,
                int32_t ranks)
{
    double total = before[units], low = total / ranks, high = total;
    first[0] = 0;
    for (int32_t r = 1; r <= ranks; r++) first[r] = (int32_t)un_min64(r, units);
    if (units <= ranks) return;
    if (find_earliest(earliest, before, units, ranks, low)) high = low;
    for (int i = 0; i < 60 && low < high; i++) {
        double middle = low + (high - low) / 2;
        if (find_earliest(earliest, before, units, ranks, middle))
            high = middle;
        else
            low = middle;
    }
    find_earliest(earliest, before, units, ranks, high);
    for (int32_t r = 1; r < ranks; r++) {
        int32_t begin = first[r - 1], u = un_clampi(earliest[r], begin + 1, units);
        while (u < units - ranks + r && work_in(before, begin, u + 1) <= high &&
               0.5 * (before[u] + before[u + 1]) < total * r / ranks)
            u++;
        first[r] = u;
    }
    first[ranks] = units;
}

/* The cut for this work, in units; *gain: of the largest slab's work, the share that it saves
 * compared with the slabs as they are. */
static un_status find_cut(const un_slabs *s, const double *work, int32_t *first, double *gain)
{
    un_context *ctx = s->ctx;
    int32_t ranks = un_rank_count(ctx), units = (s->layer_count + s->unit - 1) / s->unit;
    double *before = un_alloc(ctx, (size_t)units + 1, sizeof *before);
    int32_t *other = un_alloc(ctx, (size_t)ranks + 1, sizeof *other);
    if (before && other) {
        before[0] = 0;
        for (int32_t u = 0; u < units; u++) before[u + 1] = before[u] + work[u];
        cut(first, other, before, units, ranks);
        for (int32_t r = 0; r <= ranks; r++) other[r] = (s->first[r] + s->unit - 1) / s->unit;
        double now = largest_work(before, other, ranks);
        *gain = now > 0 ? 1 - largest_work(before, first, ranks) / now : 0;
    }
    un_status status = before && other ? UN_OK : UN_ERROR_MEMORY;
    un_free(ctx, before);
    un_free(ctx, other);
    return status;
}

static void set_first(un_slabs *s, int32_t *to, const int32_t *units)
{
    for (int32_t r = 0; r <= un_rank_count(s->ctx); r++)
        to[r] = (int32_t)un_min64((int64_t)units[r] * s->unit, s->layer_count);
}

un_status un_slabs_create(un_context *ctx, int32_t layer_count, int64_t layer_cells, int32_t unit,
                          const double *work, un_slabs **slabs)
{
    int32_t ranks = un_rank_count(ctx);
    double gain;
    un_slabs *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->unit = unit;
    s->layer_count = layer_count;
    s->layer_cells = layer_cells;
    s->first = un_alloc_zero(ctx, (size_t)ranks + 1, sizeof *s->first);
    s->next = un_alloc_zero(ctx, (size_t)ranks + 1, sizeof *s->next);
    s->out_bytes = un_alloc_zero(ctx, (size_t)ranks, sizeof *s->out_bytes);
    s->in_bytes = un_alloc_zero(ctx, (size_t)ranks, sizeof *s->in_bytes);
    s->out_mail = un_alloc(ctx, (size_t)ranks, sizeof *s->out_mail);
    s->in_mail = un_alloc(ctx, (size_t)ranks, sizeof *s->in_mail);
    bool able = s->first && s->next && s->out_bytes && s->in_bytes && s->out_mail && s->in_mail;
    if (!able || find_cut(s, work, s->next, &gain) != UN_OK) {
        un_slabs_destroy(s);
        return UN_ERROR_MEMORY;
    }
    set_first(s, s->first, s->next);
    *slabs = s;
    return UN_OK;
}

void un_slabs_destroy(un_slabs *s)
{
    if (!s) return;
    un_free(s->ctx, s->first);
    un_free(s->ctx, s->next);
    un_free(s->ctx, s->out_bytes);
    un_free(s->ctx, s->in_bytes);
    un_free(s->ctx, s->out_mail);
    un_free(s->ctx, s->in_mail);
    un_free(s->ctx, s->out);
    un_free(s->ctx, s->in);
    un_free(s->ctx, s);
}

un_part un_slabs_part_of(const un_slabs *s, int32_t rank, int32_t wide)
{
    int64_t begin = s->first[rank], end = s->first[rank + 1];
    if (begin == end) return (un_part){begin, end};
    return (un_part){un_max64(begin - wide, 0), un_min64(end + wide, s->layer_count)};
}

un_part un_slabs_part(const un_slabs *s, int32_t wide)
{
    return un_slabs_part_of(s, un_rank(s->ctx), wide);
}

int32_t un_slabs_owner(const un_slabs *s, int32_t layer)
{
    int32_t r = 0;
    while (layer >= s->first[r + 1]) r++;
    return r;
}

typedef struct max_args {
    un_parallel_value *value;
    void *arg;
    int64_t first;
} max_args;

static double max_block(void *arg, int64_t begin, int64_t end)
{
    const max_args *a = arg;
    return a->value(a->arg, a->first + begin, a->first + end);
}

double un_slabs_max(const un_slabs *s, un_part part, un_parallel_value *value, void *arg)
{
    max_args a = {value, arg, part.begin};
    return un_ranks_max(s->ctx, un_parallel_max(s->ctx, part.end - part.begin, max_block, &a));
}

/* ---- layers that are gone ---- */

void un_slabs_forget(const un_slabs *s, const un_layered *field, int32_t wide)
{
    size_t layer = (size_t)s->layer_cells * field->size;
    un_part keep = un_slabs_part(s, wide);
    un_give_back(field->array, 0, (size_t)keep.begin * layer);
    un_give_back(field->array, (size_t)keep.end * layer, (size_t)s->layer_count * layer);
}

un_status un_slabs_recut(un_slabs *s, const double *work, double least, const un_layered *fields,
                         int32_t count, bool *changed)
{
    double gain = 0;
    *changed = false;
    UN_TRY(un_ranks_agree(s->ctx, find_cut(s, work, s->next, &gain)));
    if (!(gain >= least)) return UN_OK;
    set_first(s, s->next, s->next);
    for (int32_t f = 0; f < count; f++) UN_TRY(un_slabs_move(s, &fields[f]));
    memcpy(s->first, s->next, ((size_t)un_rank_count(s->ctx) + 1) * sizeof *s->first);
    for (int32_t f = 0; f < count; f++) un_slabs_forget(s, &fields[f], s->unit);
    *changed = true;
    return UN_OK;
}
