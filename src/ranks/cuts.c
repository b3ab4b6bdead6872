/* A curve divided among ranks by work.
 *
 * Cut r is the greatest key such that the work on keys before it is at most r / count of all. It is
 * found some bits at a time; all cuts at once, a sum over the ranks for each step: of the work
 * below all keys that these bits may lead to. */
#include "ranks/link.h"

/* Bits of a step, unless there are so many ranks that a sum of that many numbers takes longer than
 * another sum. */
#define BITS 6
#define SUMMED 4096

/* While a cut is found: the elements whose keys begin as it does. */
typedef struct stretch {
    int64_t begin, end;
} stretch;

/* The first element here, among these, whose key is not below `bound`. */
static int64_t find(const stretch *f, const uint64_t *key, uint64_t bound)
{
    return f->begin + un_lower_bound(key + f->begin, f->end - f->begin, bound);
}

static void find_cuts(un_context *ctx, uint64_t *cut, const uint64_t *key, const double *before,
                      double *below, stretch *found, int32_t left)
{
    int32_t rank_count = un_rank_count(ctx), most = BITS;
    while (most > 1 && (int64_t)rank_count << most > SUMMED) most--;
    double total = before[found[0].end];
    un_ranks_add(ctx, &total, 1);
    while (left > 0) {
        int32_t step = left < most ? left : most, keys = 1 << step;
        left -= step;
        for (int32_t r = 1; r < rank_count; r++)
            for (int32_t k = 1; k < keys; k++)
                below[r * keys + k] = before[find(&found[r], key, cut[r] | (uint64_t)k << left)];
        un_ranks_add(ctx, below, (int64_t)rank_count * keys);
        for (int32_t r = 1; r < rank_count; r++) {
            int32_t k = keys - 1;
            while (k > 0 && !(below[r * keys + k] <= total * r / rank_count)) k--;
            if (k < keys - 1)
                found[r].end = find(&found[r], key, cut[r] | ((uint64_t)k + 1) << left);
            cut[r] |= (uint64_t)k << left;
            found[r].begin = find(&found[r], key, cut[r]);
        }
    }
}

un_status un_ranks_cut(un_context *ctx, uint64_t *cut, const uint64_t *key, const double *work,
                       int64_t count, int32_t bits)
{
    size_t rank_count = (size_t)un_rank_count(ctx);
    double *before = un_alloc(ctx, (size_t)count + 1, sizeof *before);
    double *below = un_alloc_zero(ctx, rank_count << BITS, sizeof *below);
    stretch *found = un_alloc(ctx, rank_count, sizeof *found);
    un_status status = un_ranks_agree(ctx, before && below && found ? UN_OK : UN_ERROR_MEMORY);
    memset(cut, 0, rank_count * sizeof *cut);
    if (status == UN_OK) {
        before[0] = 0;
        for (int64_t i = 0; i < count; i++) {
            UN_ASSERT(i == 0 || key[i] >= key[i - 1]);
            before[i + 1] = before[i] + (work ? work[i] : 1);
        }
        for (size_t r = 0; r < rank_count; r++) found[r].begin = 0, found[r].end = count;
        find_cuts(ctx, cut, key, before, below, found, bits);
    }
    un_free(ctx, before);
    un_free(ctx, below);
    un_free(ctx, found);
    return status;
}
