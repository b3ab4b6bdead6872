/* Windows of what ranks hold: each rank asks for elements of its own choice. */
#include "ranks/link.h"

/* What a rank has, and what it wants. */
typedef struct bid {
    int64_t begin, end;
    un_part wanted;
} bid;

typedef struct post {
    un_mail *out, *in; /* room for one to or from each rank */
    int32_t out_count, in_count;
    bid *bids; /* by rank */
} post;

static void post_free(un_context *ctx, post *p)
{
    un_free(ctx, p->out);
    un_free(ctx, p->in);
    un_free(ctx, p->bids);
}

/* All get to know what all have and want. able: this rank has the memory it needs so far. */
static un_status begin_post(un_context *ctx, post *p, bid mine, bool able)
{
    size_t ranks = (size_t)un_rank_count(ctx);
    *p = (post){.out = un_alloc(ctx, ranks, sizeof *p->out),
                .in = un_alloc(ctx, ranks, sizeof *p->in),
                .bids = un_alloc(ctx, ranks, sizeof *p->bids)};
    able = able && p->out && p->in && p->bids;
    un_status status = un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY);
    if (status != UN_OK) {
        post_free(ctx, p);
        return status;
    }
    un_ranks_gather(ctx, p->bids, &mine, sizeof mine);
    return UN_OK;
}

static void send_post(un_context *ctx, post *p)
{
    un_ranks *ranks = un_context_ranks(ctx);
    if (ranks) un_link_trade(p->in, p->in_count, p->out, p->out_count);
    if (ranks) ranks->sent.messages += p->out_count;
    for (int32_t k = 0; k < p->out_count; k++) ranks->sent.filed += (double)p->out[k].bytes;
}

static un_part overlap(int64_t begin, int64_t end, un_part with)
{
    un_part both = {un_max64(begin, with.begin), un_min64(end, with.end)};
    if (both.end < both.begin) both.end = both.begin;
    return both;
}

un_status un_ranks_windows(un_context *ctx, un_range range, const void *own, size_t size,
                           un_part wanted, void *out)
{
    int32_t rank = un_rank(ctx);
    post p;
    UN_TRY(begin_post(ctx, &p, (bid){range.begin, range.end, wanted}, true));
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        un_part to = overlap(range.begin, range.end, p.bids[r].wanted);
        un_part from = overlap(p.bids[r].begin, p.bids[r].end, wanted);
        size_t to_bytes = (size_t)(to.end - to.begin) * size;
        size_t from_bytes = (size_t)(from.end - from.begin) * size;
        const char *at =
            to_bytes ? (const char *)own + (size_t)(to.begin - range.begin) * size : own;
        char *place = from_bytes ? (char *)out + (size_t)(from.begin - wanted.begin) * size : out;
        if (r == rank && to_bytes > 0) memcpy(place, at, to_bytes);
        if (r == rank) continue;
        if (to_bytes > 0) p.out[p.out_count++] = (un_mail){r, to_bytes, (void *)at};
        if (from_bytes > 0) p.in[p.in_count++] = (un_mail){r, from_bytes, place};
    }
    send_post(ctx, &p);
    post_free(ctx, &p);
    return UN_OK;
}

/* ---- elements that are listed ---- */

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

/* A parcel: values, then their ids, each from a multiple of eight bytes on. */
static size_t values_bytes(int64_t count, size_t size)
{
    return ((size_t)count * size + 7) / 8 * 8;
}
static size_t parcel_bytes(int64_t count, size_t size)
{
    return values_bytes(count, size) + values_bytes(count, sizeof(uint32_t));
}

static void pack(char *parcel, const un_listed *l, int64_t first, int64_t count, const void *array,
                 size_t size)
{
    pick(parcel, array, l->index + first, count, size);
    memcpy(parcel + values_bytes(count, size), l->id + first, (size_t)count * sizeof *l->id);
}

static void unpack(const char *parcel, void *out, int64_t begin, int64_t count, size_t size)
{
    place(out, parcel, (const uint32_t *)(parcel + values_bytes(count, size)), begin, count, size);
}

/* By rank: how many elements go there, and how many come from there. */
static void count_listed(un_context *ctx, const post *p, const un_listed *l, int64_t *to,
                         int64_t *from)
{
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        un_part w = p->bids[r].wanted;
        to[r] = w.end > w.begin ? first_listed(l, w.end) - first_listed(l, w.begin) : 0;
    }
    un_link_count(ctx);
    un_link_swap(from, to);
}

un_status un_ranks_listed_windows(un_context *ctx, const un_listed *l, const void *array,
                                  size_t size, un_part wanted, void *out)
{
    int32_t ranks = un_rank_count(ctx), rank = un_rank(ctx);
    size_t out_bytes = 0, in_bytes = 0;
    post p;
    int64_t *to = un_alloc(ctx, 2 * (size_t)ranks, sizeof *to), *from = to ? to + ranks : NULL;
    un_status status = begin_post(ctx, &p, (bid){.wanted = wanted}, to);
    if (status != UN_OK) {
        un_free(ctx, to);
        return status;
    }
    count_listed(ctx, &p, l, to, from);
    for (int32_t r = 0; r < ranks; r++) {
        out_bytes += parcel_bytes(to[r], size);
        in_bytes += r == rank ? 0 : parcel_bytes(from[r], size);
    }
    char *packed = un_alloc(ctx, out_bytes + 1, 1);
    char *arrived = un_alloc(ctx, in_bytes + 1, 1), *at = packed, *in = arrived;
    status = un_ranks_agree(ctx, packed && arrived ? UN_OK : UN_ERROR_MEMORY);
    for (int32_t r = 0; r < ranks && status == UN_OK; r++) {
        size_t bytes = parcel_bytes(to[r], size);
        if (to[r] > 0) pack(at, l, first_listed(l, p.bids[r].wanted.begin), to[r], array, size);
        if (r == rank) unpack(at, out, wanted.begin, to[r], size);
        if (r != rank && to[r] > 0) p.out[p.out_count++] = (un_mail){r, bytes, at};
        at += bytes;
        if (r == rank || from[r] == 0) continue;
        bytes = parcel_bytes(from[r], size);
        p.in[p.in_count++] = (un_mail){r, bytes, in};
        in += bytes;
    }
    if (status == UN_OK) send_post(ctx, &p);
    for (int32_t k = 0; k < p.in_count; k++)
        unpack(p.in[k].data, out, wanted.begin, from[p.in[k].rank], size);
    un_free(ctx, packed);
    un_free(ctx, arrived);
    un_free(ctx, to);
    post_free(ctx, &p);
    return status;
}
