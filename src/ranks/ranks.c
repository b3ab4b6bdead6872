/* The group of ranks, and the status that they share. */
#include "ranks/link.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

bool un_ranks_available(void)
{
    return un_link_available;
}

/* ---- life ---- */

/* How many threads, and who else there is. The processors that this process may use are divided by
 * the number of ranks that may use the same ones: all of a machine if MPI binds none, one if it
 * binds each to its own. */
static void meet(un_ranks *ranks)
{
    cpu_set_t bound;
    bool known = sched_getaffinity(0, sizeof bound, &bound) == 0;
    if (!known) CPU_ZERO(&bound);
    int32_t processors = known ? CPU_COUNT(&bound) : 1, sharers = 0;
    ranks->threads = processors;
    if (ranks->count == 1) return;
    un_alike mine = un_alike_find(), *all = calloc((size_t)ranks->count, sizeof *all);
    if (!all) { /* the others wait for this rank */
        un_link_abort(1);
        return;
    }
    for (size_t k = 0; k < CPU_SETSIZE; k++)
        mine.bound = un_hash64(mine.bound ^ (uint64_t)(CPU_ISSET(k, &bound) != 0));
    un_link_gather(all, &mine, sizeof mine);
    for (int32_t r = 0; r < ranks->count; r++) sharers += all[r].bound == mine.bound;
    un_alike_compare(ranks->unlike, sizeof ranks->unlike, all, ranks->count);
    free(all);
    ranks->threads = un_clampi(processors / sharers, 1, CPU_SETSIZE);
}

un_ranks *un_ranks_create(void)
{
    un_ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks) return NULL;
    un_link_start(&ranks->rank, &ranks->count);
    ranks->numbers = calloc(2 * (size_t)ranks->count, sizeof *ranks->numbers);
    if (!ranks->numbers) un_link_abort(1); /* the others are there already */
    meet(ranks);
    return ranks;
}

void un_ranks_destroy(un_ranks *ranks)
{
    if (!ranks) return;
    un_link_end();
    free(ranks->numbers);
    free(ranks);
}

int32_t un_ranks_rank(const un_ranks *ranks)
{
    return ranks ? ranks->rank : 0;
}
int32_t un_ranks_count(const un_ranks *ranks)
{
    return ranks ? ranks->count : 1;
}
int32_t un_ranks_threads(const un_ranks *ranks)
{
    return ranks ? ranks->threads : 0;
}
const char *un_ranks_unlike(const un_ranks *ranks)
{
    return ranks && *ranks->unlike ? ranks->unlike : NULL;
}
bool un_ranks_agreed(const un_ranks *ranks)
{
    return !ranks || ranks->count == 1 || ranks->agreed;
}
bool un_ranks_apart(const un_ranks *ranks)
{
    return ranks && ranks->apart;
}

void un_ranks_abort(un_ranks *ranks, int exit_status)
{
    if (ranks) un_link_abort(exit_status);
}

void un_ranks_trade(un_context *ctx, const un_mail *in, int32_t in_count, const un_mail *out,
                    int32_t out_count)
{
    un_ranks *ranks = un_context_ranks(ctx);
    if (in_count == 0 && out_count == 0) return;
    un_link_trade(in, in_count, out, out_count);
    for (int32_t k = 0; k < out_count; k++) ranks->sent.elements += (double)out[k].bytes;
    ranks->sent.messages += out_count;
}

/* ---- what ranks agree on ---- */

/* Needs no memory: that may be what one of them has run out of. */
un_status un_ranks_agree(un_context *ctx, un_status status)
{
    un_ranks *ranks = un_context_ranks(ctx);
    if (un_ranks_count(ranks) == 1) return status;
    /* the first rank that failed, as the largest number of ranks from it on */
    double from = un_ranks_max(ctx, status == UN_OK ? 0 : ranks->count - ranks->rank);
    if (from == 0) return UN_OK;
    int32_t first = ranks->count - (int32_t)from;
    struct {
        un_status status;
        char message[1024];
    } said = {.status = status};
    snprintf(said.message, sizeof said.message, "%s", un_context_message(ctx));
    un_link_broadcast(&said, sizeof said, first);
    ranks->agreed = true;
    if (ranks->rank == first) return status;
    return un_fail(ctx, said.status, "%s", said.message);
}

bool un_ranks_tell_number(un_context *ctx, int64_t mine)
{
    const un_ranks *ranks = un_context_ranks(ctx);
    bool able = true;
    un_link_count(ctx);
    un_link_gather(ranks->numbers, &mine, sizeof mine);
    for (int32_t r = 0; r < ranks->count; r++) able &= ranks->numbers[r] != UN_NO_MEMORY;
    return able;
}

void un_ranks_tell(un_ranks *ranks, void *values, size_t bytes)
{
    if (un_ranks_count(ranks) > 1) un_link_broadcast(values, bytes, 0);
}

un_traffic un_ranks_traffic(const un_context *ctx)
{
    const un_ranks *ranks = un_context_ranks(ctx);
    un_traffic sent = ranks ? ranks->sent : (un_traffic){0};
    sent.rows = (double)un_halo_sent(ctx);
    sent.seconds = un_link_seconds();
    return sent;
}

void un_ranks_recover(un_context *ctx)
{
    if (un_rank_count(ctx) > 1) un_context_ranks(ctx)->agreed = false;
}

un_status un_ranks_refuse(un_context *ctx, const char *what)
{
    int32_t count = un_rank_count(ctx);
    if (count == 1) return UN_OK;
    un_context_ranks(ctx)->agreed = true;
    return un_fail(ctx, UN_ERROR_UNAVAILABLE,
                   "%s works in one process, not in %d; start it without mpirun", what, count);
}
