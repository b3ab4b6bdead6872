/* The private part of the context; only base/ includes this. */
#ifndef UN_BASE_CONTEXT_H
#define UN_BASE_CONTEXT_H

#include <stdatomic.h>

#include "base/base.h"

#define UN_THREADS_MAX 256

struct un_context {
    un_context_def def;
    char message[1024];
    atomic_size_t bytes, peak_bytes;
    atomic_int_fast64_t allocations;
    struct un_pool *pool; /* NULL with one thread */
};

bool un_pool_start(un_context *ctx);
void un_pool_stop(un_context *ctx);

#endif
