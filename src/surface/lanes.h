/* Eight numbers side by side. */
#ifndef UN_SURFACE_LANES_H
#define UN_SURFACE_LANES_H

#include <stdint.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

/* Loaded from and stored to arrays of float aligned to 32 bytes. Functions take pointers: by value
 * these would have another ABI on machines without the registers. */
typedef float lanes __attribute__((vector_size(32), may_alias));

static inline void lanes_set(lanes *v, float x)
{
    *v = (lanes){x, x, x, x, x, x, x, x};
}
static inline void lanes_raise(lanes *v, const lanes *least)
{
#if defined(__AVX__)
    *v = (lanes)_mm256_max_ps((__m256)*v, (__m256)*least);
#else
    for (int i = 0; i < 8; i++) (*v)[i] = (*v)[i] > (*least)[i] ? (*v)[i] : (*least)[i];
#endif
}
/* A bit for every lane with a < b. */
static inline uint32_t lanes_less(const lanes *a, const lanes *b)
{
#if defined(__AVX__)
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)*a, (__m256)*b, _CMP_LT_OQ));
#else
    uint32_t bits = 0;
    for (int i = 0; i < 8; i++) bits |= (uint32_t)((*a)[i] < (*b)[i]) << i;
    return bits;
#endif
}

/* Squares of the distances from the box [lo, hi] to eight boxes, given as in un_group_box. */
static inline void lanes_gaps(lanes *gap2, const float box_lo[3][8], const float box_hi[3][8],
                              const lanes lo[3], const lanes hi[3])
{
    lanes zero;
    lanes_set(&zero, 0);
    *gap2 = zero;
    for (int x = 0; x < 3; x++) {
        lanes below = *(const lanes *)box_lo[x] - hi[x], above = lo[x] - *(const lanes *)box_hi[x];
        lanes_raise(&below, &above);
        lanes_raise(&below, &zero);
        *gap2 += below * below;
    }
}

#endif
