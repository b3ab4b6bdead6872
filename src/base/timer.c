#include "base/base.h"

#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double un_seconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double un_processor_seconds(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
