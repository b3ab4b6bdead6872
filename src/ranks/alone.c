/* One rank, without MPI: there is nobody to send anything to. */
#include "ranks/link.h"

const bool un_link_available = false;

void un_link_start(int32_t *rank, int32_t *count)
{
    *rank = 0;
    *count = 1;
}

void un_link_end(void) {}

double un_link_seconds(void)
{
    return 0;
}

void un_link_abort(int exit_status)
{
    (void)exit_status;
}

void un_link_gather(void *all, const void *mine, size_t bytes)
{
    memcpy(all, mine, bytes);
}

void un_link_max(double *values, int32_t count)
{
    (void)values, (void)count;
}

int64_t un_link_total(int64_t value)
{
    return value;
}

void un_link_add(double *values, size_t count)
{
    (void)values, (void)count;
}

void un_link_broadcast(void *values, size_t bytes, int32_t from)
{
    (void)values, (void)bytes, (void)from;
}

void un_link_exchange(const un_ranks *ranks, const un_letters *letters)
{
    (void)ranks, (void)letters;
}

void un_link_spread(void *array, const int64_t *first, size_t size)
{
    (void)array;
    (void)first;
    (void)size;
}

void un_link_swap(int64_t *theirs, const int64_t *mine)
{
    *theirs = *mine;
}

void un_link_trade(const un_mail *in, int32_t in_count, const un_mail *out, int32_t out_count)
{
    (void)in, (void)in_count, (void)out, (void)out_count;
}

void un_link_send_bytes(int32_t to, const void *values, size_t bytes)
{
    (void)to, (void)values, (void)bytes;
}

void un_link_receive_bytes(int32_t from, void *values, size_t bytes)
{
    (void)from, (void)values, (void)bytes;
}

void un_link_send(int32_t to, un_note note)
{
    (void)to, (void)note;
}

bool un_link_receive(int32_t *from, un_note *note, bool wait)
{
    (void)from, (void)note, (void)wait;
    return false;
}
