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
    if (!lengths || !places) MPI_Abort(MPI_COMM_WORLD, 1);
    *rank = mine;
    *count = all;
}

void un_link_end(void)
{
    MPI_Finalize();
    free(lengths);
    free(places);
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

/* In turn with each other rank, nearest first: at most two messages of a rank are under way. */
void un_link_exchange(const un_ranks *ranks, const un_letters *l)
{
    int32_t rank = ranks->rank, count = ranks->count;
    size_t out_next = 0, in_next = 0; /* letters lie in the order of ranks */
    for (int32_t r = 0; r < rank; r++) out_next += l->out_bytes[r];
    for (int32_t r = 0; r <= rank; r++) in_next += l->in_bytes[r];
    for (int32_t d = 0; d < count; d++) {
        int32_t to = (rank + d) % count, from = (rank + count - d) % count;
        size_t out_left = l->out_bytes[to], in_left = l->in_bytes[from];
        if (to == 0) out_next = 0;
        if (from == count - 1) {
            in_next = 0;
            for (int32_t r = 0; r < count; r++) in_next += l->in_bytes[r];
        }
        in_next -= in_left;
        size_t out_at = out_next, in_at = in_next;
        out_next += out_left;
        if (d == 0) {
            UN_ASSERT(out_left == in_left);
            if (out_left > 0) memcpy(l->in + in_at, l->out + out_at, out_left);
            continue;
        }
        while (out_left > 0 || in_left > 0) {
            size_t out = out_left < PIECE_BYTES ? out_left : PIECE_BYTES;
            size_t in = in_left < PIECE_BYTES ? in_left : PIECE_BYTES;
            MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            if (in > 0)
                MPI_Irecv(l->in + in_at, (int)in, MPI_BYTE, from, TAG_EXCHANGE, MPI_COMM_WORLD,
                          &requests[0]);
            if (out > 0)
                MPI_Isend(l->out + out_at, (int)out, MPI_BYTE, to, TAG_EXCHANGE, MPI_COMM_WORLD,
                          &requests[1]);
            TIMED(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            out_at += out, out_left -= out;
            in_at += in, in_left -= in;
        }
    }
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

/* Mail to the ranks that are next, then to those farther on: as many at a time as there is room
 * for. Both ends count a message's way alike, so it is in the same batch at both. */
#define BATCH 32

static int32_t post(const un_ranks *ranks, const un_mail *mail, int32_t count, int32_t first,
                    bool receive, MPI_Request *requests)
{
    int32_t posted = 0;
    for (int32_t k = 0; k < count; k++) {
        int32_t way = receive ? ranks->rank - mail[k].rank : mail[k].rank - ranks->rank;
        way = (way + ranks->count) % ranks->count;
        if (mail[k].bytes == 0 || way < first || way >= first + BATCH) continue;
        UN_ASSERT(mail[k].bytes <= PIECE_BYTES);
        if (receive)
            MPI_Irecv(mail[k].data, (int)mail[k].bytes, MPI_BYTE, mail[k].rank, TAG_TRADE,
                      MPI_COMM_WORLD, &requests[posted++]);
        else
            MPI_Isend(mail[k].data, (int)mail[k].bytes, MPI_BYTE, mail[k].rank, TAG_TRADE,
                      MPI_COMM_WORLD, &requests[posted++]);
    }
    return posted;
}

void un_link_trade(const un_ranks *ranks, const un_mail *in, int32_t in_count, const un_mail *out,
                   int32_t out_count)
{
    for (int32_t first = 0; first < ranks->count; first += BATCH) {
        MPI_Request requests[2 * BATCH];
        int32_t count = post(ranks, in, in_count, first, true, requests);
        count += post(ranks, out, out_count, first, false, requests + count);
        if (count == 0) continue;
        TIMED(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    }
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
