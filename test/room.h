/* Files that may not grow beyond a limit stand for a disk that is full. */
#ifndef UN_TEST_ROOM_H
#define UN_TEST_ROOM_H

#include "check.h"

#include <signal.h>
#include <sys/resource.h>

/* From now on, bytes; RLIM_INFINITY: as large as ever. */
static inline void room_for_files(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#endif
