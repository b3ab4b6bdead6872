/* A curve divided among ranks by work.
 *
 * Cut r is the greatest key such that the work on keys before it is at most r / count of all. It is
 * found bit by bit; all cuts at once, a sum over the ranks for each bit. */
#include "ranks/link.h"

un_status un_ranks_cut(un_context *ctx, uint64_t *cut, const uint64_t *key, const double *work,
                       int64_t count, int32_t bits)
{
    int32_t rank_count = un_rank_count(ctx);
    double *before = un_alloc(ctx, (size_t)count + 1, sizeof *before);
    double *below = un_alloc_zero(ctx, (size_t)rank_count + 1, sizeof *below);
    un_status status = un_ranks_agree(ctx, before && below ? UN_OK : UN_ERROR_MEMORY);
    memset(cut, 0, (size_t)rank_count * sizeof *cut);
    if (status == UN_OK) {
        before[0] = 0;
        for (int64_t i = 0; i < count; i++) {
            UN_ASSERT(i == 0 || key[i] >= key[i - 1]);
            before[i + 1] = before[i] + (work ? work[i] : 1);
        }
        double total = before[count];
        un_ranks_add(ctx, &total, 1);
        for (int32_t bit = bits - 1; bit >= 0; bit--) {
            uint64_t half = (uint64_t)1 << bit;
            for (int32_t r = 1; r < rank_count; r++)
                below[r] = before[un_lower_bound(key, count, cut[r] | half)];
            un_ranks_add(ctx, below, rank_count);
            for (int32_t r = 1; r < rank_count; r++)
                if (below[r] <= total * r / rank_count) cut[r] |= half;
        }
    }
    un_free(ctx, before);
    un_free(ctx, below);
    return status;
}
