/* Sums in fixed blocks, over ranks.
 *
 * A block that begins in a rank's range is its own; the last one may go on in the next ranks. Each
 * of these takes the sums so far, adds its elements and passes them on, so a block is summed in the
 * order of its elements wherever they are. */
#include "ranks/link.h"

#define WIDTH_MAX 16

typedef struct block_args {
    un_parallel_values *values;
    void *arg;
    int64_t grain, end;
    int32_t width;
    double *partials; /* of all blocks */
    int64_t first;    /* block that begins here */
} block_args;

static void sum_blocks(void *arg, int64_t begin, int64_t end)
{
    const block_args *a = arg;
    for (int64_t b = a->first + begin; b < a->first + end; b++) {
        int64_t from = b * a->grain, to = un_min64(from + a->grain, a->end);
        a->values(a->arg, from, to, a->partials + b * a->width);
    }
}

/* Finishes the block that began on a rank before this one, and passes on the one that does not end
 * here. A block's sums end up on the rank that holds its last element and are 0 on the others. */
static void join_blocks(const un_ranks *ranks, un_range r, const block_args *all)
{
    size_t bytes = (size_t)all->width * sizeof(double);
    int64_t head = r.begin / all->grain, tail = r.end / all->grain;
    if (r.begin % all->grain != 0 && r.begin < r.total) {
        double *sums = all->partials + head * all->width;
        un_link_receive_bytes(ranks->rank - 1, sums, bytes);
        int64_t to = un_min64((head + 1) * all->grain, r.end);
        if (to > r.begin) all->values(all->arg, r.begin, to, sums);
    }
    if (r.end % all->grain != 0 && r.end < r.total) {
        double *sums = all->partials + tail * all->width;
        un_link_send_bytes(ranks->rank + 1, sums, bytes);
        memset(sums, 0, bytes);
    }
}

void un_ranks_sums(un_context *ctx, un_range r, int32_t width, un_parallel_values *values,
                   void *arg, double *sums)
{
    UN_ASSERT(width <= WIDTH_MAX);
    const un_ranks *ranks = un_context_ranks(ctx);
    double partials[UN_BLOCKS_MAX * WIDTH_MAX];
    int64_t grain = un_block_grain(r.total), block_count = (r.total + grain - 1) / grain;
    int64_t first = (r.begin + grain - 1) / grain, last = (r.end + grain - 1) / grain;
    block_args a = {values, arg, grain, r.end, width, partials, first};
    memset(partials, 0, (size_t)(block_count * width) * sizeof *partials);
    un_parallel_for(ctx, last - first, 1, sum_blocks, &a); /* those that begin here */
    if (un_ranks_count(ranks) > 1) {
        un_link_count(ctx);
        join_blocks(ranks, r, &a);
        /* all but one of the numbers that are added are 0: exact in any order */
        un_link_add(partials, (size_t)(block_count * width));
    }
    for (int32_t w = 0; w < width; w++) sums[w] = 0;
    for (int64_t b = 0; b < block_count; b++)
        for (int32_t w = 0; w < width; w++) sums[w] += partials[b * width + w];
}

double un_ranks_max(un_context *ctx, double value)
{
    un_link_count(ctx);
    return un_rank_count(ctx) > 1 ? un_link_max(value) : value;
}

int64_t un_ranks_total(un_context *ctx, int64_t value)
{
    un_link_count(ctx);
    return un_rank_count(ctx) > 1 ? un_link_total(value) : value;
}

un_range un_ranks_range(un_context *ctx, int64_t count)
{
    if (un_rank_count(ctx) == 1) return (un_range){0, count, count};
    un_link_count(ctx);
    int64_t end = un_link_until(count);
    return (un_range){end - count, end, un_link_total(count)};
}

void un_ranks_gather(un_context *ctx, void *all, const void *mine, size_t bytes)
{
    un_link_count(ctx);
    if (un_rank_count(ctx) > 1)
        un_link_gather(all, mine, bytes);
    else
        memcpy(all, mine, bytes);
}

void un_ranks_begin_turn(un_context *ctx, void *values, size_t bytes)
{
    if (un_rank(ctx) > 0) un_link_receive_bytes(un_rank(ctx) - 1, values, bytes);
}

void un_ranks_end_turn(un_context *ctx, void *values, size_t bytes)
{
    int32_t last = un_rank_count(ctx) - 1;
    un_link_count(ctx);
    if (un_rank(ctx) < last) un_link_send_bytes(un_rank(ctx) + 1, values, bytes);
    if (last > 0) un_link_broadcast(values, bytes, last);
}
