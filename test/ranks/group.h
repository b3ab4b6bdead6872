/* The ranks of a test: one without MPI, else those that mpirun started. */
#ifndef UN_TEST_GROUP_H
#define UN_TEST_GROUP_H

#include "check.h"
#include "ranks/ranks.h"

static un_ranks *group;

/* A context whose n-th allocation fails on one rank; 0: none fails. */
static inline un_context *group_context_failing(int32_t threads, int64_t allocation, int32_t rank)
{
    un_context_def def = un_context_def_default();
    def.threads = threads;
    def.ranks = group;
    if (un_ranks_rank(group) == rank) def.fail_allocation = allocation;
    un_context *ctx = un_context_create(&def);
    assert_non_null(ctx);
    return ctx;
}
static inline un_context *group_context(void)
{
    return group_context_failing(1, 0, 0);
}

#define group_run(tests)                                                                           \
    group = un_ranks_create();                                                                     \
    if (!group) return 1;                                                                          \
    int failed = cmocka_run_group_tests(tests, NULL, NULL);                                        \
    if (failed) un_ranks_abort(group, 1);                                                          \
    un_ranks_destroy(group);                                                                       \
    return failed

/* How `total` elements are spread: evenly, unevenly with ranks that have none, all on the last. */
enum { SPREAD_EVEN, SPREAD_ODD, SPREAD_LAST, SPREAD_COUNT };
static inline int64_t group_begin(int spread, int64_t total, int32_t rank)
{
    int32_t count = un_ranks_count(group);
    if (rank >= count) return total;
    if (spread == SPREAD_LAST) return 0;
    if (spread == SPREAD_EVEN) return total * rank / count;
    return total * (rank / 2 * 2) * rank / ((int64_t)count * count); /* ranks 0, 2, ... have more */
}
static inline un_range group_range(int spread, int64_t total)
{
    int32_t rank = un_ranks_rank(group);
    return (un_range){group_begin(spread, total, rank), group_begin(spread, total, rank + 1),
                      total};
}

#endif
