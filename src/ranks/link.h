/* What ranks ask of MPI. mpi.c has it; alone.c takes its place in builds without MPI, where there
 * is one rank. With one rank nothing here is called but start, end and abort. Calls are collective
 * unless they say otherwise. A failure inside MPI ends all ranks with MPI's message. */
#ifndef UN_RANKS_LINK_H
#define UN_RANKS_LINK_H

#include "ranks/ranks.h"

struct un_ranks {
    int32_t rank, count;
    int32_t threads;   /* for this rank */
    bool agreed;       /* all ranks know of the last failure */
    bool apart;        /* doing a part of shared work */
    size_t halo_bytes; /* sent through halos */
    un_traffic sent;   /* but for those */
    int64_t *numbers;  /* room for two by rank */
    char unlike[320];  /* empty: all ranks compute alike */
};

/* What a rank tells of itself (alike.c). */
typedef struct un_alike {
    uint64_t bound, build, maths; /* hashes: of the machine and the processors that it may use; see
                    alike.c */
    char host[64];
} un_alike;
un_alike un_alike_find(void);
/* Sets a sentence about the first rank that is not like rank 0, empty if all are. */
void un_alike_compare(char *unlike, size_t size, const un_alike *all, int32_t count);

/* What a rank that got no memory tells the others in place of a count. */
#define UN_NO_MEMORY (-1)
/* A number of each rank to all, in the order of ranks, in ranks->numbers; false: one of them has no
 * memory. */
bool un_ranks_tell_number(un_context *ctx, int64_t mine);

/* Counts a call that waits for all ranks. */
static inline void un_link_count(const un_context *ctx)
{
    un_ranks *ranks = un_context_ranks(ctx);
    if (ranks) ranks->sent.calls++;
}

/* Fields' rows to the ranks that have them by bars->next (bars_share.c). */
un_status un_bars_move(un_bars *bars, const un_layered *fields, int32_t count);
/* What goes to whom is no longer as it was. */
void un_bars_forget_ways(un_bars *bars);

extern const bool un_link_available;

void un_link_start(int32_t *rank, int32_t *count);
void un_link_end(void);
void un_link_abort(int exit_status);
double un_link_seconds(void); /* of processor time inside MPI so far; not collective */

/* `bytes` of each rank, in the order of ranks, to all. */
void un_link_gather(void *all, const void *mine, size_t bytes);
void un_link_max(double *values, int32_t count); /* the largest of all ranks' values, to all */
int64_t un_link_total(int64_t value);
void un_link_add(double *values, size_t count); /* the sums of all ranks' values, to all */
void un_link_broadcast(void *values, size_t bytes, int32_t from);

/* A message from each rank to each, some of them empty. Bytes are those to or from each rank;
 * messages stand one after the other in the order of ranks. */
typedef struct un_letters {
    const char *out;
    char *in;
    const size_t *out_bytes, *in_bytes;
} un_letters;
void un_link_exchange(const un_ranks *ranks, const un_letters *letters);

/* Elements first[r] up to first[r + 1] of each rank r's array, to all. */
void un_link_spread(void *array, const int64_t *first, size_t size);
/* A number from each rank to each. */
void un_link_swap(int64_t *theirs, const int64_t *mine);

/* Messages between some ranks, all under way at once. Who sends knows that the other waits for it,
 * and for how much at most: a message may be shorter than the room for it, but not empty. Of two
 * ranks each has one message for the other at most. Not collective: ranks without messages need not
 * call. */
void un_link_trade(const un_mail *in, int32_t in_count, const un_mail *out, int32_t out_count);

/* ---- messages of two ranks, not collective ---- */

void un_link_send_bytes(int32_t to, const void *values, size_t bytes);
void un_link_receive_bytes(int32_t from, void *values, size_t bytes);

typedef struct un_note {
    int32_t what, number;
} un_note;
void un_link_send(int32_t to, un_note note);
/* The next note from any rank. If there is none: waits for it, or returns false. */
bool un_link_receive(int32_t *from, un_note *note, bool wait);

#endif
