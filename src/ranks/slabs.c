/* Layers of a grid, a slab of them on each rank, and arrays of full length of which each rank knows
 * a part.
 *
 * Slabs are cut where units of layers meet, so that the work of the ranks before a cut is as near
 * as possible to its share. */
#include "ranks/link.h"

void un_ranks_add(un_context *ctx, double *values, int64_t count)
{
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

void un_ranks_window(un_context *ctx, un_range range, const void *array, size_t size, int64_t begin,
                     int64_t end, void *out)
{
    un_part mine = {un_max64(range.begin, begin), un_min64(range.end, end)};
    if (mine.end < mine.begin) mine.end = mine.begin;
    size_t bytes = (size_t)(mine.end - mine.begin) * size;
    const char *from = (const char *)array + (size_t)mine.begin * size;
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

static int64_t first_listed(const un_listed *l, int64_t id)
{
    int64_t low = 0, high = l->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (l->id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* to[k] = from[index[k]], of the sizes that there are. */
#define PICK(type)                                                                                 \
    for (int64_t k = 0; k < count; k++) ((type *)to)[k] = ((const type *)from)[index[k]]
static void pick(void *to, const void *from, const int32_t *index, int64_t count, size_t size)
{
    if (size == 8)
        PICK(uint64_t);
    else if (size == 4)
        PICK(uint32_t);
    else
        for (int64_t k = 0; k < count; k++)
            memcpy((char *)to + (size_t)k * size, (const char *)from + (size_t)index[k] * size,
                   size);
}

/* to[id[k] - begin] = from[k]. */
#define PLACE(type)                                                                                \
    for (int64_t k = 0; k < count; k++) ((type *)to)[id[k] - begin] = ((const type *)from)[k]
static void place(void *to, const void *from, const uint32_t *id, int64_t begin, int64_t count,
                  size_t size)
{
    if (size == 8)
        PLACE(uint64_t);
    else if (size == 4)
        PLACE(uint32_t);
    else
        for (int64_t k = 0; k < count; k++)
            memcpy((char *)to + (size_t)(id[k] - begin) * size,
                   (const char *)from + (size_t)k * size, size);
}

bool un_ranks_listed_window(un_context *ctx, const un_listed *l, const void *array, size_t size,
                            int64_t begin, int64_t end, void *out)
{
    int64_t first = first_listed(l, begin), count = first_listed(l, end) - first;
    size_t room = (size_t)(end - begin);
    /* rank 0: room for what another has of the window */
    uint32_t *id = un_alloc(ctx, room + 1, sizeof *id);
    char *values = un_alloc(ctx, room + 1, size);
    bool able = id && values;
    if (able) pick(values, array, l->index + first, count, size);
    if (able && un_rank(ctx) == 0) place(out, values, l->id + first, begin, count, size);
    if (able && un_rank(ctx) > 0) {
        un_link_send_bytes(0, &count, sizeof count);
        if (count > 0) send_long(0, (const char *)(l->id + first), (size_t)count * sizeof *id);
        if (count > 0) send_long(0, values, (size_t)count * size);
    }
    for (int32_t r = 1; able && un_rank(ctx) == 0 && r < un_rank_count(ctx); r++) {
        un_link_receive_bytes(r, &count, sizeof count);
        if (count > 0) receive_long(r, (char *)id, (size_t)count * sizeof *id);
        if (count > 0) receive_long(r, values, (size_t)count * size);
        place(out, values, id, begin, count, size);
    }
    un_free(ctx, id);
    un_free(ctx, values);
    return able;
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

static double work_before(const double *work, int32_t unit)
{
    double sum = 0;
    for (int32_t u = 0; u < unit; u++) sum += work[u];
    return sum;
}

/* Every rank gets a unit while there are any. */
static void cut(un_slabs *s, int32_t unit, const double *work)
{
    int32_t ranks = un_rank_count(s->ctx), units = (s->layer_count + unit - 1) / unit, u = 0;
    double total = work_before(work, units);
    for (int32_t r = 1; r < ranks; r++) {
        int32_t least = un_clampi(u + 1, 0, units),
                most = un_clampi(units - ranks + r, least, units);
        while (u < units && work_before(work, u) + 0.5 * work[u] < total * r / ranks) u++;
        u = un_clampi(u, least, most);
        s->first[r] = (int32_t)un_min64((int64_t)u * unit, s->layer_count);
    }
    s->first[ranks] = s->layer_count;
}

un_status un_slabs_create(un_context *ctx, int32_t layer_count, int64_t layer_cells, int32_t unit,
                          const double *work, un_slabs **slabs)
{
    int32_t ranks = un_rank_count(ctx);
    un_slabs *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->layer_count = layer_count;
    s->layer_cells = layer_cells;
    s->first = un_alloc_zero(ctx, (size_t)ranks + 1, sizeof *s->first);
    s->out_bytes = un_alloc_zero(ctx, (size_t)ranks, sizeof *s->out_bytes);
    s->in_bytes = un_alloc_zero(ctx, (size_t)ranks, sizeof *s->in_bytes);
    if (!s->first || !s->out_bytes || !s->in_bytes) {
        un_slabs_destroy(s);
        return UN_ERROR_MEMORY;
    }
    cut(s, unit, work);
    *slabs = s;
    return UN_OK;
}

void un_slabs_destroy(un_slabs *s)
{
    if (!s) return;
    un_free(s->ctx, s->first);
    un_free(s->ctx, s->out_bytes);
    un_free(s->ctx, s->in_bytes);
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

/* ---- layers from ranks to ranks ---- */

/* What a rank wants; width -1: rank 0 wants all, the others nothing. */
static un_part wanted(const un_slabs *s, int32_t rank, int32_t width)
{
    if (width >= 0) return un_slabs_part_of(s, rank, width);
    return (un_part){0, rank == 0 ? s->layer_count : 0};
}

/* The layers that `from` owns and `to` wants. */
static un_part message(const un_slabs *s, int32_t from, int32_t to, int32_t width)
{
    un_part own = un_slabs_part_of(s, from, 0), want = wanted(s, to, width);
    un_part out = {un_max64(own.begin, want.begin), un_min64(own.end, want.end)};
    if (from == to || out.end < out.begin) out.end = out.begin;
    return out;
}

/* Packs the layers for each rank, or unpacks those from each. */
static void copy_layers(const un_slabs *s, const un_layered *fields, int32_t count, int32_t width,
                        bool pack)
{
    int32_t me = un_rank(s->ctx);
    char *at = pack ? s->out : s->in;
    for (int32_t r = 0; r < un_rank_count(s->ctx); r++) {
        un_part m = pack ? message(s, me, r, width) : message(s, r, me, width);
        if (m.begin == m.end) continue;
        for (int32_t f = 0; f < count; f++) {
            size_t layer = (size_t)s->layer_cells * fields[f].size;
            size_t bytes = (size_t)(m.end - m.begin) * layer;
            char *place = (char *)fields[f].array + (size_t)m.begin * layer;
            memcpy(pack ? at : place, pack ? place : at, bytes);
            at += bytes;
        }
    }
}

static un_status trade(un_slabs *s, const un_layered *fields, int32_t count, int32_t width)
{
    int32_t me = un_rank(s->ctx), ranks = un_rank_count(s->ctx);
    size_t cell = 0, out = 0, in = 0;
    if (ranks == 1) return UN_OK;
    for (int32_t f = 0; f < count; f++) cell += fields[f].size;
    cell *= (size_t)s->layer_cells;
    for (int32_t r = 0; r < ranks; r++) {
        un_part send = message(s, me, r, width), take = message(s, r, me, width);
        out += s->out_bytes[r] = (size_t)(send.end - send.begin) * cell;
        in += s->in_bytes[r] = (size_t)(take.end - take.begin) * cell;
    }
    UN_TRY(un_array_need(s->ctx, (void **)&s->out, &s->out_room, out + 1, 1));
    UN_TRY(un_array_need(s->ctx, (void **)&s->in, &s->in_room, in + 1, 1));
    copy_layers(s, fields, count, width, true);
    un_letters letters = {s->out, s->in, s->out_bytes, s->in_bytes};
    un_link_exchange(un_context_ranks(s->ctx), &letters);
    copy_layers(s, fields, count, width, false);
    s->bytes += out;
    return UN_OK;
}

un_status un_slabs_share(un_slabs *s, const un_layered *fields, int32_t count, int32_t width)
{
    return trade(s, fields, count, width);
}

/* One by one: rank 0 needs room for one message more. */
un_status un_slabs_collect(un_slabs *s, const un_layered *fields, int32_t count)
{
    for (int32_t f = 0; f < count; f++) UN_TRY(trade(s, &fields[f], 1, -1));
    un_free(s->ctx, s->in);
    s->in = NULL;
    s->in_room = 0;
    return UN_OK;
}
