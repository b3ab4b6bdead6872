/* Parallel loops over fixed blocks.
 *
 * A loop is cut into blocks by its own grain, never by the number of threads, and each block is
 * computed by exactly one thread from the same inputs, so any thread count gives the same bits.
 * Workers spin briefly for the next loop (a solver starts one every few microseconds) and then
 * sleep. */
#include "base/context.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void)0)
#endif

/* Spins before a worker sleeps, about 20 us: longer starves other programs on small machines. */
#define SPIN_COUNT 400

typedef struct un_pool {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t threads[UN_THREADS_MAX];
    int32_t worker_count;
    atomic_uint_fast64_t generation; /* of the current loop */
    atomic_bool stop;
    atomic_int_fast32_t busy; /* workers still inside the current loop */
    /* the current loop */
    un_parallel_body *body;
    void *arg;
    int64_t count, grain;
    atomic_int_fast64_t next;
} un_pool;

static void take_blocks(un_pool *pool)
{
    int64_t block_count = (pool->count + pool->grain - 1) / pool->grain;
    for (;;) {
        int64_t b = (int64_t)atomic_fetch_add(&pool->next, 1);
        if (b >= block_count) return;
        int64_t begin = b * pool->grain;
        pool->body(pool->arg, begin, un_min64(begin + pool->grain, pool->count));
    }
}

static void *worker(void *arg)
{
    un_pool *pool = arg;
    uint_fast64_t seen = 0;
    for (;;) {
        for (int spin = 0; spin < SPIN_COUNT && atomic_load(&pool->generation) == seen; spin++)
            PAUSE();
        if (atomic_load(&pool->generation) == seen) {
            pthread_mutex_lock(&pool->mutex);
            while (atomic_load(&pool->generation) == seen)
                pthread_cond_wait(&pool->wake, &pool->mutex);
            pthread_mutex_unlock(&pool->mutex);
        }
        seen = atomic_load(&pool->generation);
        if (atomic_load(&pool->stop)) return NULL;
        take_blocks(pool);
        atomic_fetch_sub(&pool->busy, 1);
    }
}

static void announce(un_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

bool un_pool_start(un_context *ctx)
{
    if (ctx->def.threads == 1) return true;
    un_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return false;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    ctx->pool = pool;
    for (int32_t i = 0; i < ctx->def.threads - 1; i++) {
        if (pthread_create(&pool->threads[i], NULL, worker, pool) != 0) break;
        pool->worker_count++;
    }
    return true;
}

void un_pool_stop(un_context *ctx)
{
    un_pool *pool = ctx->pool;
    if (!pool) return;
    atomic_store(&pool->stop, true);
    announce(pool);
    for (int32_t i = 0; i < pool->worker_count; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
    ctx->pool = NULL;
}

void un_parallel_for(un_context *ctx, int64_t count, int64_t grain, un_parallel_body *body,
                     void *arg)
{
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    un_pool *pool = ctx->pool;
    if (!pool || pool->worker_count == 0 || count <= grain) {
        for (int64_t begin = 0; begin < count; begin += grain)
            body(arg, begin, un_min64(begin + grain, count));
        return;
    }
    pool->body = body;
    pool->arg = arg;
    pool->count = count;
    pool->grain = grain;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->busy, pool->worker_count);
    announce(pool);
    take_blocks(pool);
    for (int spin = 0; atomic_load(&pool->busy) > 0; spin++) {
        PAUSE();
        if (spin > SPIN_COUNT) sched_yield();
    }
}
