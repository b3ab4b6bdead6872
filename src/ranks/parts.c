/* Arrays of which each rank has a part: sums of them, and parts from and to rank 0. */
#include "ranks/link.h"

void un_ranks_add(un_context *ctx, double *values, int64_t count)
{
    un_link_count(ctx);
    if (un_rank_count(ctx) > 1) un_link_add(values, (size_t)count);
}

void un_ranks_add_list(un_context *ctx, double *values, int64_t count)
{
    un_ranks_add(ctx, values, count);
    if (un_rank_count(ctx) > 1)
        un_context_ranks(ctx)->sent.listed += (double)count * (double)sizeof *values;
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
