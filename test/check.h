/* What every cmocka test includes. */
#ifndef UN_TEST_CHECK_H
#define UN_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"

/* Threads of a test that is not about threads. Results are the same for any number, and tests run
 * side by side: one is quickest. The thread sanitizer needs two to find a race. */
#ifdef __SANITIZE_THREAD__
#define CHECK_THREADS 2
#else
#define CHECK_THREADS 1
#endif

static inline un_context *check_context_threads(int32_t threads)
{
    un_context_def def = un_context_def_default();
    def.threads = threads;
    un_context *ctx = un_context_create(&def);
    assert_non_null(ctx);
    return ctx;
}
static inline un_context *check_context(void)
{
    return check_context_threads(CHECK_THREADS);
}

/* Every test ends with nothing left allocated. */
static inline void check_context_end(un_context *ctx)
{
    assert_int_equal(un_context_bytes(ctx), 0);
    un_context_destroy(ctx);
}

#define check_ok(ctx, call)                                                                        \
    do {                                                                                           \
        un_status check_status = (call);                                                           \
        if (check_status != UN_OK)                                                                 \
            fail_msg("%s: status %d: %s", #call, (int)check_status, un_context_message(ctx));      \
    } while (0)

#define check_near(a, b, tolerance)                                                                \
    do {                                                                                           \
        double check_a = (a), check_b = (b), check_t = (tolerance);                                \
        if (!(fabs(check_a - check_b) <= check_t))                                                 \
            fail_msg("%s = %.17g, %s = %.17g, differ by %.3g > %.3g", #a, check_a, #b, check_b,    \
                     fabs(check_a - check_b), check_t);                                            \
    } while (0)

#define check_below(a, limit)                                                                      \
    do {                                                                                           \
        double check_a = (a), check_l = (limit);                                                   \
        if (!(check_a < check_l)) fail_msg("%s = %.17g, not below %.17g", #a, check_a, check_l);   \
    } while (0)

/* A build with the address sanitizer looks for memory errors, one with the thread sanitizer for
 * races: tests whose numbers the plain build has checked may be shorter there. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define CHECK_RACES_ONLY 1
#else
#define CHECK_RACES_ONLY 0
#endif
#if CHECK_RACES_ONLY || defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define CHECK_SHORT 1
#else
#define CHECK_SHORT 0
#endif

/* Where only races are looked for, of a program's tests those whose names fit; and where only
 * memory errors are. */
static inline void check_races_in(const char *pattern)
{
    if (CHECK_RACES_ONLY) cmocka_set_test_filter(pattern);
}
static inline void check_memory_in(const char *pattern)
{
    if (CHECK_SHORT && !CHECK_RACES_ONLY) cmocka_set_test_filter(pattern);
}

/* Of a program's tests those that a plain build alone runs. */
static inline void check_once_in(const char *pattern)
{
    if (CHECK_SHORT) cmocka_set_skip_filter(pattern);
}

#define CHECK_LONG_WALK 20000
/* Walks a function through failure of its 1st, 2nd, ... allocation until it succeeds: each failure
 * must be UN_ERROR_MEMORY and must leave nothing behind. One thread does it, so where only races
 * are looked for it is left out. Short tests and long walks take every fifth, not the same ones,
 * and short ones of long walks every eleventh. */
static inline void check_allocation_failures(un_status (*body)(un_context *ctx, void *arg),
                                             void *arg, int64_t limit)
{
    bool is_long = limit > CHECK_LONG_WALK;
    int64_t stride = CHECK_SHORT ? (is_long ? 11 : 5) : is_long ? 5 : 1;
    for (int64_t n = CHECK_SHORT ? 3 : 1; n < limit + stride && !CHECK_RACES_ONLY; n += stride) {
        un_context_def def = un_context_def_default();
        def.threads = 1;
        def.fail_allocation = n;
        un_context *ctx = un_context_create(&def);
        un_status status = body(ctx, arg);
        assert_int_equal(un_context_bytes(ctx), 0);
        un_context_destroy(ctx);
        if (status == UN_OK) return;
        assert_int_equal(status, UN_ERROR_MEMORY);
    }
    if (!CHECK_RACES_ONLY) fail_msg("still failing after %d allocations", (int)limit);
}

#endif
