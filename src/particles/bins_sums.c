/* Sums over sorted particles, by bars of the grid: the bits are the same for any number of ranks.
 */
#include "particles/particles.h"

typedef struct sums_args {
    const un_bins *bins;
    const int32_t *first;
    un_parallel_values *values;
    void *arg;
} sums_args;

static void add_bar(void *arg, int32_t bar, double *sums)
{
    const sums_args *a = arg;
    const un_bins *b = a->bins;
    for (int32_t i = 0; i < b->blocks[0]; i++) {
        int32_t block = bar * b->blocks[0] + i;
        const int32_t *in = b->begin + (int64_t)b->rank[block] * b->block_cells;
        int32_t begin = a->first ? a->first[block] : in[0], count = in[b->block_cells] - in[0];
        if (count > 0) a->values(a->arg, begin, (int64_t)begin + count, sums);
    }
}

void un_bins_sums(const un_bins *b, const int32_t *first, int32_t width, un_parallel_values *values,
                  void *arg, double *sums)
{
    sums_args a = {b, first, values, arg};
    un_bars_sum(b->ctx, b->grid->bars, b->blocks[1] * b->blocks[2], width, add_bar, &a, sums);
}
