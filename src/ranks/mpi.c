/* Ranks by MPI; the only file that includes its header.
 *
 * MPI counts in 32 bits, so long messages go in pieces. Two ranks' messages with one tag keep their
 * order, so the pieces need no numbers. */
#include "ranks/link.h"

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#define PIECE_BYTES ((size_t)1 << 30)

enum { TAG_EXCHANGE = 1, TAG_NOTE, TAG_BYTES, TAG_TRADE };

const bool un_link_available = true;

/* Processor time inside MPI: waiting takes some, too. A process has one MPI, as it has one
 * MPI_COMM_WORLD; all calls come from one thread. */
static double inside;

/* By rank: of what un_link_spread sends. */
static int *lengths, *places;
/* Of messages under way: at most one to and one from each rank. */
static MPI_Request *requests;
static int under_way;

static double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#define TIMED(call)                                                                                \
    do {                                                                                           \
        double begun = clock_seconds();                                                            \
        call;                                                                                      \
        inside += clock_seconds() - begun;                                                         \
    } while (0)

double un_link_seconds(void)
{
    return inside;
}

void un_link_start(int32_t *rank, int32_t *count)
{
    int provided, mine, all;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    lengths = calloc((size_t)all, sizeof *lengths);
    places = calloc((size_t)all, sizeof *places);
    requests = calloc(2 * (size_t)all, sizeof *requests);
    if (!lengths || !places || !requests) MPI_Abort(MPI_COMM_WORLD, 1);
    *rank = mine;
    *count = all;
}

void un_link_end(void)
{
    MPI_Finalize();
    free(lengths);
    free(places);
    free(requests);
}

void un_link_abort(int exit_status)
{
    MPI_Abort(MPI_COMM_WORLD, exit_status);
}

void un_link_gather(void *all, const void *mine, size_t bytes)
{
    UN_ASSERT(bytes <= PIECE_BYTES);
    TIMED(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD));
}

void un_link_max(double *values, int32_t count)
{
    TIMED(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
}

int64_t un_link_total(int64_t value)
{
    int64_t total;
    TIMED(MPI_Allreduce(&value, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    return total;
}

void un_link_add(double *values, size_t count)
{
    UN_ASSERT(count <= INT32_MAX);
    TIMED(MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
}

void un_link_broadcast(void *values, size_t bytes, int32_t from)
{
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        TIMED(MPI_Bcast((char *)values + at, (int)piece, MPI_BYTE, from, MPI_COMM_WORLD));
    }
}

/* ---- messages, all under way at once ---- */

/* Posts what is next of a message, PIECE_BYTES at most; returns its bytes. */
static size_t post(void *data, size_t bytes, int32_t rank, int tag, bool receive)
{
    size_t piece = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    MPI_Request *request = &requests[under_way];
    if (piece == 0) return 0;
    if (receive)
        MPI_Irecv(data, (int)piece, MPI_BYTE, rank, tag, MPI_COMM_WORLD, request);
    else
        MPI_Isend(data, (int)piece, MPI_BYTE, rank, tag, MPI_COMM_WORLD, request);
    under_way++;
    return piece;
}

static void wait_for_all(void)
{
    if (under_way > 0) TIMED(MPI_Waitall(under_way, requests, MPI_STATUSES_IGNORE));
    under_way = 0;
}

/* Posts the next pieces of letters, of which `done` bytes each are there already, for the ranks
 * after this one first; true: there are more. They lie in the order of ranks. */
static bool post_letters(const un_ranks *ranks, const size_t *bytes, char *letters, size_t done,
                         bool receive)
{
    size_t at = 0, more = 0;
    for (int32_t r = 0; r <= ranks->rank; r++) at += bytes[r];
    for (int32_t d = 1; d < ranks->count; d++) {
        int32_t r = (ranks->rank + d) % ranks->count;
        if (r == 0) at = 0;
        if (bytes[r] > done) {
            size_t left = bytes[r] - done;
            more += left - post(letters + at + done, left, r, TAG_EXCHANGE, receive);
        }
        at += bytes[r];
    }
    return more > 0;
}

void un_link_exchange(const un_ranks *ranks, const un_letters *l)
{
    size_t out = 0, in = 0, mine = l->out_bytes[ranks->rank];
    for (int32_t r = 0; r < ranks->rank; r++) out += l->out_bytes[r], in += l->in_bytes[r];
    UN_ASSERT(mine == l->in_bytes[ranks->rank]);
    if (mine > 0) memcpy(l->in + in, l->out + out, mine);
    bool more = true;
    for (size_t done = 0; more; done += PIECE_BYTES) {
        more = post_letters(ranks, l->in_bytes, l->in, done, true);
        more |= post_letters(ranks, l->out_bytes, (char *)(uintptr_t)l->out, done, false);
        wait_for_all();
    }
}

void un_link_trade(const un_mail *in, int32_t in_count, const un_mail *out, int32_t out_count)
{
    for (int32_t k = 0; k < in_count + out_count; k++) {
        const un_mail *m = k < in_count ? &in[k] : &out[k - in_count];
        UN_ASSERT(m->bytes <= PIECE_BYTES);
        post(m->data, m->bytes, m->rank, TAG_TRADE, k < in_count);
    }
    wait_for_all();
}

/* At once where MPI can count the bytes, else each rank's in turn. */
void un_link_spread(void *array, const int64_t *first, size_t size)
{
    int count;
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    size_t begin = (size_t)first[0] * size, end = (size_t)first[count] * size;
    char *bytes = (char *)array + begin;
    if (end - begin <= PIECE_BYTES) {
        for (int r = 0; r < count; r++) {
            lengths[r] = (int)((size_t)(first[r + 1] - first[r]) * size);
            places[r] = (int)((size_t)first[r] * size - begin);
        }
        TIMED(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, bytes, lengths, places, MPI_BYTE,
                             MPI_COMM_WORLD));
        return;
    }
    for (int r = 0; r < count; r++)
        un_link_broadcast((char *)array + (size_t)first[r] * size,
                          (size_t)(first[r + 1] - first[r]) * size, r);
}

void un_link_swap(int64_t *theirs, const int64_t *mine)
{
    TIMED(MPI_Alltoall(mine, 1, MPI_INT64_T, theirs, 1, MPI_INT64_T, MPI_COMM_WORLD));
}

void un_link_send_bytes(int32_t to, const void *values, size_t bytes)
{
    UN_ASSERT(bytes <= PIECE_BYTES);
    TIMED(MPI_Send(values, (int)bytes, MPI_BYTE, to, TAG_BYTES, MPI_COMM_WORLD));
}

void un_link_receive_bytes(int32_t from, void *values, size_t bytes)
{
    TIMED(
        MPI_Recv(values, (int)bytes, MPI_BYTE, from, TAG_BYTES, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Eight bytes never wait for their receiver: every MPI sends them eagerly. */
void un_link_send(int32_t to, un_note note)
{
    TIMED(MPI_Send(&note, sizeof note, MPI_BYTE, to, TAG_NOTE, MPI_COMM_WORLD));
}

bool un_link_receive(int32_t *from, un_note *note, bool wait)
{
    MPI_Status status;
    int found = 1;
    if (!wait) MPI_Iprobe(MPI_ANY_SOURCE, TAG_NOTE, MPI_COMM_WORLD, &found, &status);
    if (!found) return false;
    TIMED(
        MPI_Recv(note, sizeof *note, MPI_BYTE, MPI_ANY_SOURCE, TAG_NOTE, MPI_COMM_WORLD, &status));
    *from = status.MPI_SOURCE;
    return true;
}
