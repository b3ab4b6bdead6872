/* The counting allocator, growing arrays and the step arena. */
#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

/* Stands before each block; 64 bytes, so that blocks stay aligned for vector loads. malloc's own
 * alignment is made up for here: aligned_alloc cuts blocks off at both ends, which took a rank that
 * makes plans for a solve a tenth of its time. */
#define ALIGNED 64
typedef union block_head {
    struct {
        size_t bytes;
        void *whole; /* what malloc gave */
    };
    char pad[ALIGNED];
} block_head;

size_t un_context_bytes(const un_context *ctx)
{
    return atomic_load(&ctx->bytes);
}
size_t un_context_peak_bytes(const un_context *ctx)
{
    return atomic_load(&ctx->peak_bytes);
}

size_t un_memory_cap(const un_context *ctx)
{
    return ctx->def.memory_cap;
}

/* Counts `more` bytes against the cap; false if they do not fit. */
static bool book(un_context *ctx, size_t more)
{
    int64_t n = (int64_t)atomic_fetch_add(&ctx->allocations, 1) + 1;
    if (ctx->def.fail_allocation > 0 && n >= ctx->def.fail_allocation) return false;
    size_t now = atomic_fetch_add(&ctx->bytes, more) + more;
    if (ctx->def.memory_cap && now > ctx->def.memory_cap) {
        atomic_fetch_sub(&ctx->bytes, more);
        return false;
    }
    size_t peak = atomic_load(&ctx->peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&ctx->peak_bytes, &peak, now)) {
    }
    return true;
}

/* Fills new memory with NaN, so that reads of unset values show. Only in builds with asserts. */
static void poison(void *block, size_t bytes)
{
#ifdef NDEBUG
    (void)block, (void)bytes;
#else
    memset(block, 0xff, bytes);
#endif
}

static void *alloc_bytes(un_context *ctx, size_t bytes)
{
    if (bytes > SIZE_MAX / 2 || !book(ctx, bytes)) {
        un_fail_memory(ctx, bytes);
        return NULL;
    }
    char *whole = malloc(sizeof(block_head) + bytes + ALIGNED);
    if (!whole) {
        atomic_fetch_sub(&ctx->bytes, bytes);
        un_fail_memory(ctx, bytes);
        return NULL;
    }
    block_head *head = (block_head *)(((uintptr_t)whole + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
    head->bytes = bytes;
    head->whole = whole;
    poison(head + 1, bytes);
    return head + 1;
}

void *un_alloc(un_context *ctx, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        un_fail_memory(ctx, SIZE_MAX);
        return NULL;
    }
    return alloc_bytes(ctx, bytes);
}

/* Gives back the whole pages between two places of a block; where these begin and end. False if
 * there are none, or it cannot. */
static bool drop_pages(void *block, size_t *begin, size_t *end)
{
#ifdef __linux__
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)block;
    uintptr_t from = (at + *begin + page - 1) & ~(page - 1), to = (at + *end) & ~(page - 1);
    if (from >= to || madvise((void *)from, to - from, MADV_DONTNEED) != 0) return false;
    *begin = from - at;
    *end = to - at;
    return true;
#else
    (void)block, (void)begin, (void)end;
    return false;
#endif
}

/* Large blocks get pages that are zero once they are touched: a rank touches its part of an array
 * only, and the rest costs nothing. */
#define ZERO_PAGES_BYTES ((size_t)1 << 18)

static void clear(void *block, size_t bytes)
{
    size_t begin = 0, end = bytes;
    if (bytes >= ZERO_PAGES_BYTES && drop_pages(block, &begin, &end)) {
        memset(block, 0, begin);
        memset((char *)block + end, 0, bytes - end);
        return;
    }
    memset(block, 0, bytes);
}

void un_give_back(void *block, size_t begin, size_t end)
{
    if (block) drop_pages(block, &begin, &end);
}

void *un_alloc_zero(un_context *ctx, size_t count, size_t size)
{
    void *block = un_alloc(ctx, count, size);
    if (block) clear(block, count * size);
    return block;
}

void un_free(un_context *ctx, void *block)
{
    if (!block) return;
    block_head *head = (block_head *)block - 1;
    atomic_fetch_sub(&ctx->bytes, head->bytes);
    free(head->whole);
}

void *un_realloc(un_context *ctx, void *block, size_t count, size_t size)
{
    void *moved = un_alloc(ctx, count, size);
    if (!moved || !block) return moved;
    size_t old = ((block_head *)block - 1)->bytes;
    memcpy(moved, block, old < count * size ? old : count * size);
    un_free(ctx, block);
    return moved;
}

char *un_strdup(un_context *ctx, const char *text)
{
    size_t length = strlen(text) + 1;
    char *copy = un_alloc(ctx, length, 1);
    return copy ? memcpy(copy, text, length) : NULL;
}

/* Spare room of growing arrays: under a cap, each takes at most this share of the memory left. */
#define SPARE_SHARE 256

static size_t grown(const un_context *ctx, size_t capacity, size_t count, size_t size)
{
    size_t target = capacity + capacity / 2;
    if (target <= count) return count;
    size_t cap = ctx->def.memory_cap, now = un_context_bytes(ctx);
    size_t spare = cap > now ? (cap - now) / SPARE_SHARE / size : 0;
    return cap && target - count > spare ? count + spare : target;
}

un_status un_array_reserve(un_context *ctx, void **array, size_t *capacity, size_t count,
                           size_t size)
{
    if (count <= *capacity && *array) return UN_OK;
    size_t target = grown(ctx, *capacity, count, size);
    void *moved = un_realloc(ctx, *array, target, size);
    if (!moved) return UN_ERROR_MEMORY;
    *array = moved;
    *capacity = target;
    return UN_OK;
}

un_status un_array_need(un_context *ctx, void **array, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity && *array) return UN_OK;
    un_free(ctx, *array);
    *array = NULL;
    size_t target = *capacity ? grown(ctx, *capacity, count, size) : count;
    *capacity = 0;
    *array = un_alloc(ctx, target, size);
    if (!*array) return UN_ERROR_MEMORY;
    *capacity = target;
    return UN_OK;
}

/* ---- text ---- */

void un_text_add(un_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (t->status == UN_OK)
        t->status =
            un_array_reserve(t->ctx, (void **)&t->bytes, &t->room, t->used + (size_t)length + 1, 1);
    if (t->status != UN_OK) return;
    va_start(arguments, format);
    vsnprintf(t->bytes + t->used, (size_t)length + 1, format, arguments);
    va_end(arguments);
    t->used += (size_t)length;
}

/* ---- arena ---- */

typedef struct un_arena_chunk {
    struct un_arena_chunk *next;
    size_t used, capacity;
    char pad[64 - 3 * sizeof(size_t)];
} un_arena_chunk;

#define ARENA_CHUNK ((size_t)1 << 20)
/* The arena forgets how much was needed before this many resets. */
#define ARENA_MEMORY 64

void un_arena_init(un_arena *arena, un_context *ctx)
{
    *arena = (un_arena){.ctx = ctx};
}

static void free_chunks(un_arena *arena)
{
    while (arena->chunks) {
        un_arena_chunk *next = arena->chunks->next;
        un_free(arena->ctx, arena->chunks);
        arena->chunks = next;
    }
}

void un_arena_free(un_arena *arena)
{
    free_chunks(arena);
    un_arena_init(arena, arena->ctx);
}

/* A single chunk that was large enough stays. Several are freed, and the next request allocates one
 * as large as all of them: freeing and allocating the memory again every step costs a tenth of the
 * step in page faults. */
void un_arena_reset(un_arena *arena)
{
    arena->peak = arena->used > arena->peak ? arena->used : arena->peak;
    bool old = ++arena->resets % ARENA_MEMORY == 0;
    un_arena_chunk *chunk = arena->chunks;
    if (chunk && (chunk->next || (old && chunk->capacity > 2 * arena->peak)))
        free_chunks(arena);
    else if (chunk)
        chunk->used = 0;
    if (old) arena->peak = arena->used;
    arena->used = 0;
}

void un_arena_rest(un_arena *arena)
{
    un_arena_reset(arena);
    if (arena->chunks) un_give_back(arena->chunks + 1, 0, arena->chunks->capacity);
}

/* The size of a new chunk: `bytes` must fit and, if it is the first, everything that is likely to
 * follow. */
static size_t chunk_capacity(const un_arena *arena, size_t bytes)
{
    size_t least = bytes > ARENA_CHUNK ? bytes : ARENA_CHUNK;
    size_t whole = arena->peak + arena->peak / 8;
    if (arena->chunks || whole <= least) return least;
    size_t cap = un_memory_cap(arena->ctx), now = un_context_bytes(arena->ctx);
    return cap && now + whole + sizeof(un_arena_chunk) > cap ? least : whole;
}

void *un_arena_alloc(un_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4) {
        un_fail_memory(arena->ctx, SIZE_MAX);
        return NULL;
    }
    bytes = (bytes + 63) & ~(size_t)63;
    un_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->capacity - chunk->used < bytes) {
        size_t capacity = chunk_capacity(arena, bytes);
        chunk = un_alloc(arena->ctx, 1, sizeof *chunk + capacity);
        if (!chunk) return NULL;
        chunk->capacity = capacity;
        chunk->used = 0;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *block = (char *)(chunk + 1) + chunk->used;
    chunk->used += bytes;
    arena->used += bytes;
    poison(block, bytes);
    return block;
}
