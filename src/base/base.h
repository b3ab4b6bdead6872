/* Base: status, memory, arrays, files, vectors, parallel loops, timers, random numbers.
 *
 * Every folder includes it; it includes nothing of Undine but the public header. */
#ifndef UN_BASE_H
#define UN_BASE_H

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/morton.h"
#include "undine.h"

#define UN_PI 3.14159265358979323846

/* Programmer errors only: on in debug and sanitizer builds, gone in release. */
#ifdef NDEBUG
#define UN_ASSERT(condition) ((void)sizeof(condition))
#else
#include <assert.h>
#define UN_ASSERT(condition) assert(condition)
#endif

/* Two and three dimensions share one kernel, a function that is inlined with a constant `dim`.
 * UN_BY_DIM makes the call with dim = d, 2 or 3. */
#define UN_KERNEL static inline __attribute__((always_inline))
#define UN_BY_DIM(d, call)                                                                         \
    do {                                                                                           \
        if ((d) == 2) {                                                                            \
            enum { dim = 2 };                                                                      \
            call;                                                                                  \
        } else {                                                                                   \
            enum { dim = 3 };                                                                      \
            call;                                                                                  \
        }                                                                                          \
    } while (0)

#define UN_TRY(call)                                                                               \
    do {                                                                                           \
        un_status un_try_status = (call);                                                          \
        if (un_try_status != UN_OK) return un_try_status;                                          \
    } while (0)

/* For functions that release what they hold under the label `done`, with `un_status status`. */
#define UN_TRY_DONE(call)                                                                          \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != UN_OK) goto done;                                                            \
    } while (0)

/* ---- status and log (status.c) ---- */

/* Keeps the sentence in the context and returns the status. A sentence names what is wrong, where,
 * and the remedy. */
un_status un_fail(un_context *ctx, un_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
un_status un_fail_memory(un_context *ctx, size_t bytes);
un_ranks *un_context_ranks(const un_context *ctx); /* NULL: alone */
void un_log(un_context *ctx, un_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- memory (memory.c) ---- */

/* One allocator per context counts bytes and keeps to the cap; safe from any thread. Blocks are
 * aligned to 64 bytes and not cleared. Returns NULL, with the message set, on failure. */
void *un_alloc(un_context *ctx, size_t count, size_t size);
void *un_alloc_zero(un_context *ctx, size_t count, size_t size);
void un_free(un_context *ctx, void *block); /* NULL is fine */
/* Like realloc; the old block stays valid when NULL is returned. */
void *un_realloc(un_context *ctx, void *block, size_t count, size_t size);
char *un_strdup(un_context *ctx, const char *text);
size_t un_memory_cap(const un_context *ctx); /* 0: none */

/* Allocates and leaves the enclosing function on failure:
 *     UN_ALLOC(ctx, array, count);             returns UN_ERROR_MEMORY
 *     UN_ALLOC_DONE(ctx, array, count);        goto done with status set */
#define UN_ALLOC(ctx, pointer, count)                                                              \
    do {                                                                                           \
        (pointer) = un_alloc((ctx), (size_t)(count), sizeof *(pointer));                           \
        if (!(pointer)) return UN_ERROR_MEMORY;                                                    \
    } while (0)
#define UN_ALLOC_DONE(ctx, pointer, count)                                                         \
    do {                                                                                           \
        (pointer) = un_alloc((ctx), (size_t)(count), sizeof *(pointer));                           \
        if (!(pointer)) {                                                                          \
            status = UN_ERROR_MEMORY;                                                              \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

/* Makes room for `count` elements, growing by half as much again; contents are kept. *array may
 * be NULL at the start. On failure array and capacity are unchanged. */
un_status un_array_reserve(un_context *ctx, void **array, size_t *capacity, size_t count,
                           size_t size);
/* As above, but the contents are lost: for scratch that is kept between steps. */
un_status un_array_need(un_context *ctx, void **array, size_t *capacity, size_t count, size_t size);
/* Gives back the pages of which all bytes lie in begin to end of a block: what they held is lost,
 * and they are zero when they are touched again. */
void un_give_back(void *block, size_t begin, size_t end);

/* Text that grows. After a failed allocation it stays failed; un_free frees the bytes. */
typedef struct un_text {
    un_context *ctx;
    char *bytes;
    size_t used, room;
    un_status status;
} un_text;
void un_text_add(un_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Step arena: temporaries that are all freed together. Blocks it has handed out never move. */
typedef struct un_arena {
    un_context *ctx;
    struct un_arena_chunk *chunks; /* newest first */
    size_t used, peak; /* bytes handed out since the last reset; the most between two resets */
    int32_t resets;
} un_arena;
void un_arena_init(un_arena *arena, un_context *ctx);
void un_arena_free(un_arena *arena);  /* gives all memory back */
void un_arena_reset(un_arena *arena); /* keeps as much room as was needed recently */
void un_arena_rest(un_arena *arena);  /* the same, but its pages are given back */
void *un_arena_alloc(un_arena *arena, size_t count, size_t size); /* 64-byte aligned, not cleared */

/* ---- files (file.c) ---- */

typedef struct un_file un_file;
/* Opens a file beside path; nothing appears under path before un_file_commit. All writes are
 * buffered; the first failure is kept, and commit reports it. Devices, pipes and folders are
 * refused. */
un_status un_file_create(un_context *ctx, const char *path, un_file **file);
void un_file_write(un_file *file, const void *bytes, size_t count);
/* `count` numbers of `size` bytes each, least significant byte first. */
void un_file_write_little(un_file *file, const void *values, size_t count, size_t size);
void un_to_little(void *values, size_t count, size_t size); /* the same in place */
void un_file_printf(un_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Flushes and returns the temporary name, under which a reader finds all that was written so far.
 * un_file_commit must still be called. */
const char *un_file_aside(un_file *file);
un_status un_file_status(const un_file *file); /* of the writes so far */
/* Flush, sync, rename, sync the folder; frees the handle in any case and removes the temporary file
 * on failure. */
un_status un_file_commit(un_file *file);
void un_file_discard(un_file *file);

/* One file of several processes (ranks/files.c): one creates it under a temporary name that no
 * other has, which ends in `ending`; the others join it. Who joined leaves it instead of
 * committing it. */
#define UN_FILE_ENDING 64
un_status un_file_create_shared(un_context *ctx, const char *path, char ending[UN_FILE_ENDING],
                                un_file **file);
un_status un_file_join(un_context *ctx, const char *path, const char *ending, un_file **file);
/* At once, and wherever other writes go. */
void un_file_write_at(un_file *file, uint64_t offset, const void *bytes, size_t count);
uint64_t un_file_size(const un_file *file); /* of all that other writes have written */
/* Brings what this process wrote to the disk. */
un_status un_file_sync(un_file *file);
un_status un_file_leave(un_file *file); /* syncs; frees the handle in any case */

/* Like mkdir -p. */
un_status un_directory_create(un_context *ctx, const char *path);
/* Whole file, NUL-terminated; size may be NULL. Free with un_free. */
un_status un_file_read(un_context *ctx, const char *path, char **text, size_t *size);
/* "cannot <verb> <path>: <the system's reason>; <remedy>", for an errno. verb: "read", "write". */
un_status un_file_fail(un_context *ctx, const char *verb, const char *path, int error);

/* ---- parallel loops (parallel.c, the only file that knows about threads, and loops.c) ---- */

/* [0, count) is cut into blocks of `grain` (a property of the loop, never of the thread count);
 * body gets one block at a time, in any order, from any thread. A body writes only data of its own
 * indices. Loops must not be nested. */
typedef void un_parallel_body(void *arg, int64_t begin, int64_t end);
void un_parallel_for(un_context *ctx, int64_t count, int64_t grain, un_parallel_body *body,
                     void *arg);
/* The same over [begin, end): of a longer loop, what this process has to do. */
typedef struct un_part {
    int64_t begin, end;
} un_part;
void un_parallel_part(un_context *ctx, un_part part, int64_t grain, un_parallel_body *body,
                      void *arg);
/* memcpy by all threads. */
void un_parallel_copy(un_context *ctx, void *to, const void *from, size_t bytes);

/* Block results are combined in block order, so any thread count gives the same bits. */
typedef double un_parallel_value(void *arg, int64_t begin, int64_t end);
double un_parallel_sum(un_context *ctx, int64_t count, un_parallel_value *value, void *arg);
double un_parallel_max(un_context *ctx, int64_t count, un_parallel_value *value, void *arg);
/* Several sums in one pass: value adds its block's results to sums[0..width), width <= 16. */
typedef void un_parallel_values(void *arg, int64_t begin, int64_t end, double *sums);
void un_parallel_sums(un_context *ctx, int64_t count, int32_t width, un_parallel_values *values,
                      void *arg, double *sums);
/* The length of the fixed blocks that sums cut [0, count) into: 1 to UN_BLOCKS_MAX blocks. */
#define UN_BLOCKS_MAX 256
int64_t un_block_grain(int64_t count);

/* Stable sort permutation of 32-bit keys: order[k] is the index of the k-th smallest key. keys is
 * not changed; scratch comes from the arena. key_bits: significant bits (1..32). */
un_status un_parallel_sort(un_context *ctx, un_arena *arena, int32_t *order, const uint32_t *keys,
                           int64_t count, int32_t key_bits);
/* The same for 64-bit keys (key_bits 1..64). */
un_status un_parallel_sort64(un_context *ctx, un_arena *arena, int32_t *order, const uint64_t *keys,
                             int64_t count, int32_t key_bits);
/* The index of the first of the ascending keys that is not below `key`; count if all are. */
static inline int64_t un_lower_bound(const uint64_t *keys, int64_t count, uint64_t key)
{
    int64_t lo = 0, hi = count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (keys[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
/* Sorts the keys themselves, in place. */
un_status un_parallel_sort_keys(un_context *ctx, un_arena *arena, uint64_t *keys, int64_t count,
                                int32_t key_bits);
/* Replaces each value by the sum of those before it; returns the sum of all. If the sum exceeds 32
 * bits, the values are meaningless but the returned sum is right. */
int64_t un_parallel_scan(un_context *ctx, int32_t *values, int64_t count);

/* ---- time (timer.c) ---- */

double un_seconds(void);           /* monotonic */
double un_processor_seconds(void); /* of all threads of the process */

/* ---- random numbers: without state, so they are the same for any order and any thread count, and
 * there is nothing to save. ---- */

static inline uint64_t un_hash64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
/* Uniform in [0, 1), a function of its two arguments only. */
static inline double un_random(uint64_t index, uint64_t stream)
{
    return (double)(un_hash64(un_hash64(stream) ^ index) >> 11) * 0x1p-53;
}

/* ---- vectors ---- */

typedef struct un_vec3 {
    double x, y, z;
} un_vec3;

/* Eight of them. */
typedef struct un_eight {
    double of[3][8]; /* by axis */
} un_eight;

typedef struct un_box3 {
    un_vec3 min, max;
} un_box3;

static inline un_vec3 un_v3(double x, double y, double z)
{
    return (un_vec3){x, y, z};
}
static inline un_vec3 un_add(un_vec3 a, un_vec3 b)
{
    return un_v3(a.x + b.x, a.y + b.y, a.z + b.z);
}
static inline un_vec3 un_sub(un_vec3 a, un_vec3 b)
{
    return un_v3(a.x - b.x, a.y - b.y, a.z - b.z);
}
static inline un_vec3 un_scale(un_vec3 a, double s)
{
    return un_v3(a.x * s, a.y * s, a.z * s);
}
static inline un_vec3 un_mad(un_vec3 a, un_vec3 b, double s)
{
    return un_v3(a.x + b.x * s, a.y + b.y * s, a.z + b.z * s);
}
static inline double un_dot(un_vec3 a, un_vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
static inline un_vec3 un_cross(un_vec3 a, un_vec3 b)
{
    return un_v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static inline double un_length(un_vec3 a)
{
    return sqrt(un_dot(a, a));
}
static inline un_vec3 un_min3(un_vec3 a, un_vec3 b)
{
    return un_v3(a.x < b.x ? a.x : b.x, a.y < b.y ? a.y : b.y, a.z < b.z ? a.z : b.z);
}
static inline un_vec3 un_max3(un_vec3 a, un_vec3 b)
{
    return un_v3(a.x > b.x ? a.x : b.x, a.y > b.y ? a.y : b.y, a.z > b.z ? a.z : b.z);
}
/* Zero stays zero. */
static inline un_vec3 un_normalize(un_vec3 a)
{
    double l = un_length(a);
    return l > 0 ? un_scale(a, 1 / l) : a;
}
static inline bool un_finite3(un_vec3 a)
{
    return isfinite(a.x) && isfinite(a.y) && isfinite(a.z);
}
static inline double un_clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}
static inline int32_t un_clampi(int32_t x, int32_t lo, int32_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}
static inline int64_t un_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t un_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A rigid motion with uniform scale: x -> translation + scale * (rotation x). Rows of a proper
 * rotation matrix. */
typedef struct un_pose {
    double rotation[3][3];
    un_vec3 translation;
    double scale;
} un_pose;

un_pose un_pose_identity(void);
/* Degrees, about x, then y, then z. */
un_pose un_pose_euler(un_vec3 degrees);
un_pose un_pose_axis(un_vec3 axis, double degrees);
un_pose un_pose_compose(const un_pose *outer, const un_pose *inner); /* inner first */
/* The rotation as a unit quaternion w, x, y, z with w >= 0; and a pose without scale from a
 * quaternion of any length. */
void un_pose_quaternion(const un_pose *pose, double q[4]);
un_pose un_pose_of_quaternion(const double q[4], un_vec3 translation);
static inline un_vec3 un_pose_rotate(const un_pose *pose, un_vec3 x)
{
    return un_v3(
        pose->rotation[0][0] * x.x + pose->rotation[0][1] * x.y + pose->rotation[0][2] * x.z,
        pose->rotation[1][0] * x.x + pose->rotation[1][1] * x.y + pose->rotation[1][2] * x.z,
        pose->rotation[2][0] * x.x + pose->rotation[2][1] * x.y + pose->rotation[2][2] * x.z);
}
static inline un_vec3 un_pose_unrotate(const un_pose *pose, un_vec3 x)
{
    return un_v3(
        pose->rotation[0][0] * x.x + pose->rotation[1][0] * x.y + pose->rotation[2][0] * x.z,
        pose->rotation[0][1] * x.x + pose->rotation[1][1] * x.y + pose->rotation[2][1] * x.z,
        pose->rotation[0][2] * x.x + pose->rotation[1][2] * x.y + pose->rotation[2][2] * x.z);
}
static inline un_vec3 un_pose_apply(const un_pose *pose, un_vec3 x)
{
    return un_mad(pose->translation, un_pose_rotate(pose, x), pose->scale);
}
static inline un_vec3 un_pose_invert(const un_pose *pose, un_vec3 x)
{
    return un_scale(un_pose_unrotate(pose, un_sub(x, pose->translation)), 1 / pose->scale);
}

#endif
