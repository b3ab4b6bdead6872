/* Parallel loops of other forms: over a part of a range, and reductions. */
#include "base/context.h"

typedef struct part_args {
    un_parallel_body *body;
    void *arg;
    int64_t first;
} part_args;

static void run_part(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    a->body(a->arg, a->first + begin, a->first + end);
}

void un_parallel_part(un_context *ctx, un_part part, int64_t grain, un_parallel_body *body,
                      void *arg)
{
    part_args a = {body, arg, part.begin};
    un_parallel_for(ctx, part.end - part.begin, grain, run_part, &a);
}

typedef struct copy_args {
    char *to;
    const char *from;
} copy_args;

static void copy_bytes(void *arg, int64_t begin, int64_t end)
{
    const copy_args *a = arg;
    memcpy(a->to + begin, a->from + begin, (size_t)(end - begin));
}

void un_parallel_copy(un_context *ctx, void *to, const void *from, size_t bytes)
{
    copy_args a = {to, from};
    un_parallel_for(ctx, (int64_t)bytes, 1 << 16, copy_bytes, &a);
}

/* ---- reductions: block partials, combined in block order ---- */

/* Small enough to balance two dozen threads, large enough that the loop's cost vanishes. */
int64_t un_block_grain(int64_t count)
{
    return un_max64(2048, (count + UN_BLOCKS_MAX - 1) / UN_BLOCKS_MAX);
}

typedef struct reduce_args {
    un_parallel_value *value;
    un_parallel_values *values;
    void *arg;
    int64_t grain;
    int32_t width;
    double *partials;
} reduce_args;

static void reduce_body(void *arg, int64_t begin, int64_t end)
{
    reduce_args *a = arg;
    double *partial = a->partials + begin / a->grain * a->width;
    if (a->value)
        *partial = a->value(a->arg, begin, end);
    else
        a->values(a->arg, begin, end, partial);
}

double un_parallel_sum(un_context *ctx, int64_t count, un_parallel_value *value, void *arg)
{
    double partials[UN_BLOCKS_MAX] = {0}, sum = 0;
    reduce_args a = {value, NULL, arg, un_block_grain(count), 1, partials};
    un_parallel_for(ctx, count, a.grain, reduce_body, &a);
    for (int64_t b = 0; b * a.grain < count; b++) sum += partials[b];
    return sum;
}

double un_parallel_max(un_context *ctx, int64_t count, un_parallel_value *value, void *arg)
{
    double partials[UN_BLOCKS_MAX] = {0}, max = -INFINITY;
    reduce_args a = {value, NULL, arg, un_block_grain(count), 1, partials};
    un_parallel_for(ctx, count, a.grain, reduce_body, &a);
    for (int64_t b = 0; b * a.grain < count; b++) max = fmax(max, partials[b]);
    return max;
}

void un_parallel_sums(un_context *ctx, int64_t count, int32_t width, un_parallel_values *values,
                      void *arg, double *sums)
{
    UN_ASSERT(width <= 16);
    double partials[UN_BLOCKS_MAX * 16];
    reduce_args a = {NULL, values, arg, un_block_grain(count), width, partials};
    memset(partials, 0, (size_t)((count + a.grain - 1) / a.grain * width) * sizeof *partials);
    un_parallel_for(ctx, count, a.grain, reduce_body, &a);
    for (int32_t w = 0; w < width; w++) sums[w] = 0;
    for (int64_t b = 0; b * a.grain < count; b++)
        for (int32_t w = 0; w < width; w++) sums[w] += partials[b * width + w];
}
