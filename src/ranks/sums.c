/* Sums in fixed blocks, over ranks.
 *
 * A block that begins in a rank's range is its own; the last one may go on in the next ranks. Each
 * of these takes the sums so far, adds its elements and passes them on, so a block is summed in the
 * order of its elements wherever they are.
 *
 * Elements that have numbers are added in rounds: of each block, the next of its stretches of
 * numbers in each. All ranks know the sums so far after each round, at 8 bytes by block and sum. */
#include "ranks/link.h"

#include <stdlib.h>

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

/* ---- elements that have numbers ---- */

/* Elements here whose numbers follow one another. */
typedef struct stretch {
    int64_t begin, end; /* numbers */
    int32_t first;      /* its first element on its rank */
    int32_t rank;
} stretch;

/* The part of a stretch of this rank that lies in a block. A block's stretches are added in rounds,
 * a stretch in each. */
typedef struct piece {
    int64_t first, end; /* elements here */
    int64_t block;
    int32_t round;
} piece;

typedef struct listed_args {
    un_parallel_values *values;
    void *arg;
    int32_t width, round;
    const piece *pieces;
    const double *so_far; /* by block */
    double *now;
} listed_args;

static int by_number(const void *a, const void *b)
{
    int64_t i = ((const stretch *)a)->begin, j = ((const stretch *)b)->begin;
    return (i > j) - (i < j);
}

/* All ranks' stretches in the order of numbers; allocated. */
static un_status list_stretches(un_context *ctx, const un_numbers *n, stretch **all, int64_t *count)
{
    int64_t mine_count = n->count > 0, m = -1;
    for (int64_t k = 1; k < n->count; k++) mine_count += n->id[k] != n->id[k - 1] + 1;
    stretch *mine = un_alloc(ctx, (size_t)mine_count + 1, sizeof *mine);
    for (int64_t k = 0; mine && k < n->count; k++) {
        if (k == 0 || n->id[k] != n->id[k - 1] + 1)
            mine[++m] = (stretch){n->id[k], n->id[k], (int32_t)k, un_rank(ctx)};
        mine[m].end++;
    }
    void *list = NULL;
    un_status status = un_ranks_agree(ctx, mine ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = un_ranks_list(ctx, mine, mine_count, sizeof *mine, &list, count);
    if (status == UN_OK) qsort(list, (size_t)*count, sizeof(stretch), by_number);
    un_free(ctx, mine);
    *all = list;
    return status;
}

/* This rank's pieces, listed unless NULL, and by block its number of rounds; returns the most. */
static int32_t list_pieces(const stretch *s, int64_t count, int64_t grain, int32_t rank,
                           piece *pieces, int64_t *piece_count, int32_t *rounds)
{
    int32_t most = 0;
    *piece_count = 0;
    memset(rounds, 0, UN_BLOCKS_MAX * sizeof *rounds);
    for (int64_t k = 0; k < count; k++) {
        UN_ASSERT(s[k].begin == (k > 0 ? s[k - 1].end : 0));
        for (int64_t from = s[k].begin, to; from < s[k].end; from = to) {
            int64_t block = from / grain, first = s[k].first + from - s[k].begin;
            int32_t round = rounds[block]++;
            to = un_min64((block + 1) * grain, s[k].end);
            if (round >= most) most = round + 1;
            if (s[k].rank != rank) continue;
            if (pieces) pieces[*piece_count] = (piece){first, first + to - from, block, round};
            ++*piece_count;
        }
    }
    return most;
}

static void add_pieces(void *arg, int64_t begin, int64_t end)
{
    const listed_args *a = arg;
    for (int64_t k = begin; k < end; k++) {
        const piece *p = &a->pieces[k];
        double *sums = a->now + p->block * a->width;
        if (p->round != a->round) continue;
        memcpy(sums, a->so_far + p->block * a->width, (size_t)a->width * sizeof *sums);
        a->values(a->arg, p->first, p->end, sums);
    }
}

un_status un_ranks_listed_sums(un_context *ctx, const un_numbers *numbers, int32_t width,
                               un_parallel_values *values, void *arg, double *sums)
{
    UN_ASSERT(width <= WIDTH_MAX);
    double so_far[UN_BLOCKS_MAX * WIDTH_MAX] = {0}, now[UN_BLOCKS_MAX * WIDTH_MAX];
    int32_t rounds[UN_BLOCKS_MAX], most = 0, rank = un_rank(ctx);
    int64_t grain = un_block_grain(numbers->total), count, piece_count;
    int64_t block_count = (numbers->total + grain - 1) / grain;
    size_t block = (size_t)width * sizeof(double);
    stretch *all;
    piece *pieces = NULL;
    un_status status = list_stretches(ctx, numbers, &all, &count);
    if (status == UN_OK) {
        list_pieces(all, count, grain, rank, NULL, &piece_count, rounds);
        pieces = un_alloc(ctx, (size_t)piece_count + 1, sizeof *pieces);
        status = un_ranks_agree(ctx, pieces ? UN_OK : UN_ERROR_MEMORY);
    }
    if (status == UN_OK) most = list_pieces(all, count, grain, rank, pieces, &piece_count, rounds);
    listed_args a = {values, arg, width, 0, pieces, so_far, now};
    for (; a.round < most; a.round++) {
        memset(now, 0, (size_t)block_count * block);
        un_parallel_for(ctx, piece_count, 1, add_pieces, &a);
        un_ranks_add(ctx, now, block_count * width); /* all but one of the numbers are 0 */
        for (int64_t b = 0; b < block_count; b++)
            if (a.round < rounds[b]) memcpy(so_far + b * width, now + b * width, block);
    }
    for (int32_t w = 0; w < width; w++) sums[w] = 0;
    for (int64_t b = 0; b < block_count; b++)
        for (int32_t w = 0; w < width; w++) sums[w] += so_far[b * width + w];
    un_free(ctx, pieces);
    un_free(ctx, all);
    return status;
}

double un_ranks_max(un_context *ctx, double value)
{
    un_ranks_most(ctx, &value, 1);
    return value;
}

void un_ranks_most(un_context *ctx, double *values, int32_t count)
{
    un_link_count(ctx);
    if (un_rank_count(ctx) > 1) un_link_max(values, count);
}

int64_t un_ranks_total(un_context *ctx, int64_t value)
{
    un_link_count(ctx);
    return un_rank_count(ctx) > 1 ? un_link_total(value) : value;
}

un_range un_ranks_range(un_context *ctx, int64_t count)
{
    if (un_rank_count(ctx) == 1) return (un_range){0, count, count};
    un_range range = {0, 0, 0};
    un_ranks_tell_number(ctx, count);
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        if (r == un_rank(ctx)) range.begin = range.total;
        range.total += un_context_ranks(ctx)->numbers[r];
    }
    range.end = range.begin + count;
    return range;
}

void un_ranks_gather(un_context *ctx, void *all, const void *mine, size_t bytes)
{
    int32_t ranks = un_rank_count(ctx);
    un_link_count(ctx);
    if (ranks == 1) {
        memcpy(all, mine, bytes);
        return;
    }
    un_link_gather(all, mine, bytes);
    un_context_ranks(ctx)->sent.listed += (double)bytes * ranks;
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
