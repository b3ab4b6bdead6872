/* How well would a run use more threads than this machine has? A program like undine that times
 * every block of every parallel loop on one thread, then lays the blocks out over THREADS threads
 * as the pool would (base/parallel.c: each takes the next block when it is done with one) and
 * prints what each stage of the method would gain.
 *
 *   bench_threads run bench/dam.lua --method tet --threads 1 ...      (THREADS=16 START=4)
 *
 * What is between loops is taken as it is, on one thread; START microseconds are what it costs to
 * start a loop and to wait for all of it. Memory is taken to be as fast for all threads together as
 * it is for one, so what it prints is a bound: real threads gain less. Times are the thread's own
 * processor time, so a busy machine does little harm. */
#include "base/base.h"
#include "method/method.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STAGES 40
#define THREADS_MAX 256
#define PLACES 4096

/* One body of loops, and all calls of it. */
typedef struct place {
    un_parallel_body *body;
    int64_t calls, blocks;
    double alone, shared;
} place;

static struct {
    int threads;
    un_parallel_body *inner; /* what the loop runs for another form of loop */
    double start;            /* s */
    double clock_cost;       /* s, of reading the clock */
    double last;             /* the clock at the last stage's end */
    double inside;           /* time in loops since then, on one thread */
    double shared;           /* the same on many threads */
    double timing;           /* the same on one, with what timing costs */
    double serial[STAGES], alone[STAGES], many[STAGES];
    place places[PLACES];
} all;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static place *find_place(un_parallel_body *body)
{
    size_t k = ((size_t)body >> 4) % PLACES;
    while (all.places[k].body && all.places[k].body != body) k = (k + 1) % PLACES;
    all.places[k].body = body;
    return &all.places[k];
}

/* The thread that is free first takes the next block. */
static void give(double *busy, double seconds)
{
    int first = 0;
    for (int t = 1; t < all.threads; t++)
        if (busy[t] < busy[first]) first = t;
    busy[first] += seconds;
}

void __real_un_parallel_for(un_context *, int64_t, int64_t, un_parallel_body *, void *);
void __wrap_un_parallel_for(un_context *, int64_t, int64_t, un_parallel_body *, void *);
void __wrap_un_parallel_for(un_context *ctx, int64_t count, int64_t grain, un_parallel_body *body,
                            void *arg)
{
    (void)ctx;
    double busy[THREADS_MAX] = {0}, total = 0, longest = 0, first = now(), from = first;
    if (grain < 1) grain = 1;
    for (int64_t begin = 0; begin < count; begin += grain) {
        body(arg, begin, un_min64(begin + grain, count));
        double to = now(), seconds = fmax(0, to - from - all.clock_cost);
        total += seconds;
        give(busy, seconds);
        from = to;
    }
    for (int t = 0; t < all.threads; t++) longest = fmax(longest, busy[t]);
    if (count > grain) longest += all.start;
    all.inside += total;
    all.shared += longest;
    place *p = find_place(all.inner ? all.inner : body);
    p->calls++;
    p->blocks += (count + grain - 1) / grain;
    p->alone += total;
    p->shared += longest;
    all.timing += now() - first + all.clock_cost;
}

void __real_un_parallel_part(un_context *, un_part, int64_t, un_parallel_body *, void *);
void __wrap_un_parallel_part(un_context *, un_part, int64_t, un_parallel_body *, void *);
void __wrap_un_parallel_part(un_context *ctx, un_part part, int64_t grain, un_parallel_body *body,
                             void *arg)
{
    all.inner = body;
    __real_un_parallel_part(ctx, part, grain, body, arg);
    all.inner = NULL;
}

void __real_un_stage_end(un_step *, int32_t, double *);
void __wrap_un_stage_end(un_step *, int32_t, double *);
void __wrap_un_stage_end(un_step *step, int32_t stage, double *clock)
{
    double t = now(), serial = fmax(0, t - all.last - all.timing);
    all.serial[stage] += serial;
    all.alone[stage] += serial + all.inside;
    all.many[stage] += serial + all.shared;
    all.inside = all.shared = all.timing = 0;
    __real_un_stage_end(step, stage, clock);
    all.last = now();
}

/* Before a step: what is made and written between steps is no stage of the method. */
void __real_un_step_init(un_step *);
void __wrap_un_step_init(un_step *);
void __wrap_un_step_init(un_step *step)
{
    __real_un_step_init(step);
    all.inside = all.shared = all.timing = 0;
    all.last = now();
}

static int by_loss(const void *a, const void *b)
{
    const place *p = a, *q = b;
    double x = p->shared - p->alone / all.threads, y = q->shared - q->alone / all.threads;
    return (x < y) - (x > y);
}

static void print_all(void)
{
    double alone = 0, many = 0, serial = 0;
    printf("stage      on one, s  %% not in loops  on %d, s   gain\n", all.threads);
    for (int s = 0; s < STAGES; s++) {
        if (!(all.alone[s] > 0)) continue;
        printf("%5d %14.3f %14.2f %11.3f %7.1f\n", s, all.alone[s],
               100 * all.serial[s] / all.alone[s], all.many[s], all.alone[s] / all.many[s]);
        alone += all.alone[s], many += all.many[s], serial += all.serial[s];
    }
    printf("all   %14.3f %14.2f %11.3f %7.1f\n", alone, 100 * serial / alone, many, alone / many);
    if (!getenv("PLACES")) return;
    qsort(all.places, PLACES, sizeof *all.places, by_loss);
    for (int k = 0; k < 40 && all.places[k].body; k++) {
        const place *p = &all.places[k];
        printf("%p %8lld calls %8.1f blocks %9.4f s alone %9.4f shared\n",
               (void *)(uintptr_t)p->body, (long long)p->calls,
               (double)p->blocks / (double)p->calls, p->alone, p->shared);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *threads = getenv("THREADS"), *start = getenv("START");
    all.threads = threads ? atoi(threads) : 16;
    if (all.threads < 1 || all.threads > THREADS_MAX) all.threads = 16;
    all.start = 1e-6 * (start ? atof(start) : 4);
    double from = now();
    for (int i = 0; i < 10000; i++) all.clock_cost = now();
    all.clock_cost = (all.clock_cost - from) / 10000;
    all.last = now();
    atexit(print_all);
}
