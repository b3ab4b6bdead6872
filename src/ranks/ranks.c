/* The group of ranks, and the status that they share. */
#include "ranks/link.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool un_ranks_available(void)
{
    return un_link_available;
}

/* ---- life ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (const unsigned char *b = bytes; count > 0; b++, count--) hash = un_hash64(hash ^ *b);
    return hash;
}

/* The processors that this process may use, divided by the number of ranks that may use the same
 * ones: all of a machine if MPI binds none, one if it binds each to its own. */
static int32_t find_threads(const un_ranks *ranks)
{
    char host[256] = {0};
    cpu_set_t bound;
    if (sched_getaffinity(0, sizeof bound, &bound) != 0) return 1;
    gethostname(host, sizeof host - 1);
    uint64_t mine = hash_bytes(hash_bytes(0, host, sizeof host), &bound, sizeof bound);
    if (ranks->count == 1) return CPU_COUNT(&bound);
    uint64_t *all = calloc((size_t)ranks->count, sizeof *all);
    if (!all) { /* the others wait for this rank */
        un_link_abort(1);
        return 1;
    }
    un_link_gather(all, &mine, sizeof mine);
    int32_t sharers = 0;
    for (int32_t r = 0; r < ranks->count; r++) sharers += all[r] == mine;
    free(all);
    return un_clampi(CPU_COUNT(&bound) / sharers, 1, CPU_SETSIZE);
}

un_ranks *un_ranks_create(void)
{
    un_ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks) return NULL;
    un_link_start(&ranks->rank, &ranks->count);
    ranks->numbers = calloc(2 * (size_t)ranks->count, sizeof *ranks->numbers);
    if (!ranks->numbers) un_link_abort(1); /* the others are there already */
    ranks->threads = find_threads(ranks);
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
    un_link_trade(ranks, in, in_count, out, out_count);
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
