/* Eight or sixteen floats, four or eight doubles at once, in vector types of gcc and clang:
 * operations that these types lack. */
#ifndef UN_BASE_LANES_H
#define UN_BASE_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

/* Where the processor has no registers of this width, compilers warn that passing such vectors has
 * changed between versions; ours stay within one object file. */
#if !defined(__AVX512F__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/* Always inlined: some of these warnings have no place in the file, and the line above does not
 * reach them. */
#define UN_LANES static inline __attribute__((always_inline))

typedef float un_lanes8 __attribute__((vector_size(32), may_alias));
typedef int32_t un_bits8 __attribute__((vector_size(32)));

UN_LANES un_lanes8 un_lanes8_all(float v)
{
    return (un_lanes8){v, v, v, v, v, v, v, v};
}
UN_LANES un_lanes8 un_lanes8_load(const float *v)
{
    un_lanes8 out;
    memcpy(&out, v, sizeof out);
    return out;
}
UN_LANES void un_lanes8_store(float *to, un_lanes8 v)
{
    memcpy(to, &v, sizeof v);
}
UN_LANES un_lanes8 un_lanes8_max(un_lanes8 a, un_lanes8 b)
{
#if defined(__AVX__)
    return (un_lanes8)_mm256_max_ps((__m256)a, (__m256)b);
#else
    un_lanes8 out;
    for (int i = 0; i < 8; i++) out[i] = a[i] > b[i] ? a[i] : b[i];
    return out;
#endif
}
UN_LANES un_lanes8 un_lanes8_min(un_lanes8 a, un_lanes8 b)
{
#if defined(__AVX__)
    return (un_lanes8)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return -un_lanes8_max(-a, -b);
#endif
}
UN_LANES un_lanes8 un_lanes8_abs(un_lanes8 a)
{
    return (un_lanes8)((un_bits8)a & INT32_MAX);
}
/* a, or 0 if that is more. */
UN_LANES un_lanes8 un_lanes8_positive(un_lanes8 a)
{
    return un_lanes8_max(a, un_lanes8_all(0));
}
UN_LANES un_lanes8 un_lanes8_sqrt(un_lanes8 a)
{
#if defined(__AVX__)
    return (un_lanes8)_mm256_sqrt_ps((__m256)a);
#else
    un_lanes8 out;
    for (int i = 0; i < 8; i++) out[i] = sqrtf(a[i]);
    return out;
#endif
}
/* 1 / sqrt(a), to 2 units in the last place; not a number at 0. */
UN_LANES un_lanes8 un_lanes8_rsqrt(un_lanes8 a)
{
#if defined(__AVX512VL__)
    un_lanes8 y = (un_lanes8)_mm256_rsqrt14_ps((__m256)a);
    return y * (1.5f - 0.5f * a * y * y);
#else
    return 1 / un_lanes8_sqrt(a);
#endif
}
/* Of what is not negative, to 2 units in the last place; 0 of what is below the normal range. From
 * a third of the exponent, two steps of Halley's rule. */
UN_LANES un_lanes8 un_lanes8_cbrt(un_lanes8 a)
{
    un_bits8 bits = (un_bits8)a / 3 + 0x2a5137a0;
    un_lanes8 y = (un_lanes8)bits;
    for (int n = 0; n < 2; n++) {
        un_lanes8 y3 = y * y * y;
        y *= (y3 + (a + a)) / (y3 + y3 + a);
    }
    return (un_lanes8)((un_bits8)y & (a >= 1.2e-38f));
}
/* The lanes of a where the mask is set, zero in the others. */
UN_LANES un_lanes8 un_lanes8_where(un_bits8 bits, un_lanes8 a)
{
    return (un_lanes8)((un_bits8)a & bits);
}
/* Writes the lanes of the mask one after the other. Up to eight values are written. */
UN_LANES void un_lanes8_pack(float *to, un_lanes8 v, uint32_t mask)
{
#if defined(__AVX512VL__)
    un_lanes8_store(to, (un_lanes8)_mm256_maskz_compress_ps((__mmask8)mask, (__m256)v));
#else
    for (; mask; mask &= mask - 1) *to++ = v[__builtin_ctz(mask)];
#endif
}
UN_LANES void un_bits8_pack(int32_t *to, un_bits8 v, uint32_t mask)
{
#if defined(__AVX512VL__)
    __m256i packed = _mm256_maskz_compress_epi32((__mmask8)mask, (__m256i)v);
    memcpy(to, &packed, sizeof packed);
#else
    for (; mask; mask &= mask - 1) *to++ = v[__builtin_ctz(mask)];
#endif
}
/* values[at] in each lane. */
UN_LANES un_lanes8 un_lanes8_gather(const float *values, un_bits8 at)
{
#if defined(__AVX2__)
    return (un_lanes8)_mm256_i32gather_ps(values, (__m256i)at, 4);
#else
    un_lanes8 out;
    for (int i = 0; i < 8; i++) out[i] = values[at[i]];
    return out;
#endif
}
UN_LANES un_bits8 un_bits8_gather(const int32_t *values, un_bits8 at)
{
#if defined(__AVX2__)
    return (un_bits8)_mm256_i32gather_epi32(values, (__m256i)at, 4);
#else
    un_bits8 out;
    for (int i = 0; i < 8; i++) out[i] = values[at[i]];
    return out;
#endif
}
/* A bit for every lane that is set. */
UN_LANES uint32_t un_bits8_mask(un_bits8 bits)
{
#if defined(__AVX__)
    return (uint32_t)_mm256_movemask_ps((__m256)bits);
#else
    uint32_t mask = 0;
    for (int i = 0; i < 8; i++) mask |= (uint32_t)(bits[i] < 0) << i;
    return mask;
#endif
}
/* A bit for every lane with a < b. */
UN_LANES uint32_t un_lanes8_less(un_lanes8 a, un_lanes8 b)
{
    return un_bits8_mask((un_bits8)(a < b));
}

/* Rows of eight become columns. */
UN_LANES void un_lanes8_turn(un_lanes8 v[8])
{
    un_lanes8 a[8], b[8];
    for (int k = 0; k < 8; k += 2) {
        a[k] = __builtin_shufflevector(v[k], v[k + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        a[k + 1] = __builtin_shufflevector(v[k], v[k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int k = 0; k < 8; k += 4)
        for (int i = 0; i < 2; i++) {
            un_lanes8 low = a[k + i], high = a[k + i + 2];
            b[k + i] = __builtin_shufflevector(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
            b[k + i + 2] = __builtin_shufflevector(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* ---- sixteen floats ---- */

typedef float un_lanes4 __attribute__((vector_size(16), may_alias));
typedef float un_lanes16 __attribute__((vector_size(64), may_alias));
typedef int32_t un_bits16 __attribute__((vector_size(64)));

UN_LANES un_lanes16 un_lanes16_all(float v)
{
    return (un_lanes16){v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
}
UN_LANES un_lanes16 un_lanes16_load(const float *v)
{
    un_lanes16 out;
    memcpy(&out, v, sizeof out);
    return out;
}
UN_LANES void un_lanes16_store(float *to, un_lanes16 v)
{
    memcpy(to, &v, sizeof v);
}
UN_LANES un_lanes8 un_lanes16_low(un_lanes16 a)
{
    return __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7);
}
UN_LANES un_lanes8 un_lanes16_high(un_lanes16 a)
{
    return __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
}
UN_LANES un_lanes16 un_lanes16_of(un_lanes8 low, un_lanes8 high)
{
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
UN_LANES un_lanes16 un_lanes16_max(un_lanes16 a, un_lanes16 b)
{
#if defined(__AVX512F__)
    return (un_lanes16)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return un_lanes16_of(un_lanes8_max(un_lanes16_low(a), un_lanes16_low(b)),
                         un_lanes8_max(un_lanes16_high(a), un_lanes16_high(b)));
#endif
}
UN_LANES un_lanes16 un_lanes16_abs(un_lanes16 a)
{
    return (un_lanes16)((un_bits16)a & INT32_MAX);
}
/* a, or 0 if that is more. */
UN_LANES un_lanes16 un_lanes16_positive(un_lanes16 a)
{
    return un_lanes16_max(a, un_lanes16_all(0));
}
/* The lanes at first .. end - 1, if lane 0 is at `at`; zero in the others. */
UN_LANES un_lanes16 un_lanes16_within(un_lanes16 a, int64_t at, int64_t first, int64_t end)
{
    const un_bits16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    int32_t from = (int32_t)(first - at), to = (int32_t)(end - at < 16 ? end - at : 16);
    return (un_lanes16)((un_bits16)a & (lane >= from) & (lane < to));
}
/* a b + c, rounded once where the processor can. */
UN_LANES un_lanes16 un_lanes16_mad(un_lanes16 a, un_lanes16 b, un_lanes16 c)
{
#if defined(__AVX512F__)
    return (un_lanes16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return a * b + c;
#endif
}
/* 1 / sqrt(a), to 2 units in the last place; not a number at 0. */
UN_LANES un_lanes16 un_lanes16_rsqrt(un_lanes16 a)
{
#if defined(__AVX512F__)
    un_lanes16 y = (un_lanes16)_mm512_rsqrt14_ps((__m512)a);
    return y * un_lanes16_mad(a * y, -0.5f * y, un_lanes16_all(1.5f));
#else
    return un_lanes16_of(un_lanes8_rsqrt(un_lanes16_low(a)), un_lanes8_rsqrt(un_lanes16_high(a)));
#endif
}
/* 1 / a, to 2 units in the last place. */
UN_LANES un_lanes16 un_lanes16_inverse(un_lanes16 a)
{
#if defined(__AVX512F__)
    un_lanes16 y = (un_lanes16)_mm512_rcp14_ps((__m512)a);
    return y * un_lanes16_mad(-a, y, un_lanes16_all(2));
#else
    return 1 / a;
#endif
}
/* The sums of four vectors. */
UN_LANES void un_lanes16_sum4(float sum[4], const un_lanes16 of[4])
{
    un_lanes8 half[4];
    for (int i = 0; i < 4; i++) half[i] = un_lanes16_low(of[i]) + un_lanes16_high(of[i]);
    for (int i = 0; i < 4; i += 2)
        half[i / 2] = __builtin_shufflevector(half[i], half[i + 1], 0, 2, 8, 10, 4, 6, 12, 14) +
                      __builtin_shufflevector(half[i], half[i + 1], 1, 3, 9, 11, 5, 7, 13, 15);
    half[0] = __builtin_shufflevector(half[0], half[1], 0, 2, 8, 10, 4, 6, 12, 14) +
              __builtin_shufflevector(half[0], half[1], 1, 3, 9, 11, 5, 7, 13, 15);
    un_lanes4 all = __builtin_shufflevector(half[0], half[0], 0, 1, 2, 3) +
                    __builtin_shufflevector(half[0], half[0], 4, 5, 6, 7);
    memcpy(sum, &all, sizeof all);
}

/* ---- doubles ---- */

typedef double un_doubles2 __attribute__((vector_size(16), may_alias));
typedef double un_doubles4 __attribute__((vector_size(32), may_alias));

UN_LANES un_doubles4 un_doubles4_load(const double *v)
{
    un_doubles4 out;
    memcpy(&out, v, sizeof out);
    return out;
}

/* Three, and a last lane of 0. */
UN_LANES un_doubles4 un_doubles4_load3(const double *v)
{
#if defined(__AVX__)
    const __m256i three = _mm256_set_epi64x(0, -1, -1, -1);
    return (un_doubles4)_mm256_maskload_pd(v, three);
#else
    return (un_doubles4){v[0], v[1], v[2], 0};
#endif
}

/* Eight: two vectors where the processor has none of this width. */
typedef double un_doubles8 __attribute__((vector_size(64), may_alias));
typedef int64_t un_longs8 __attribute__((vector_size(64)));
typedef float un_floats8 __attribute__((vector_size(32)));
typedef float un_floats4 __attribute__((vector_size(16)));
typedef uint8_t un_bytes8 __attribute__((vector_size(8)));

/* values[at] in each lane. */
UN_LANES un_doubles8 un_doubles8_gather(const double *values, un_bits8 at)
{
#if defined(__AVX512F__)
    return (un_doubles8)_mm512_i32gather_pd((__m256i)at, values, 8);
#else
    un_doubles8 out;
    for (int i = 0; i < 8; i++) out[i] = values[at[i]];
    return out;
#endif
}
UN_LANES un_lanes8 un_doubles8_to_floats(un_doubles8 a)
{
    return (un_lanes8) __builtin_convertvector(a, un_floats8);
}
UN_LANES void un_doubles8_store(double *to, un_doubles8 v)
{
    memcpy(to, &v, sizeof v);
}
UN_LANES un_doubles8 un_doubles8_of_floats(un_lanes8 a)
{
    return __builtin_convertvector((un_floats8)a, un_doubles8);
}
/* n: 8, or 1 for the first alone. */
UN_LANES un_doubles8 un_doubles8_load(const double *v, int n)
{
    un_doubles8 out = {v[0]};
    if (n == 8) memcpy(&out, v, sizeof out);
    return out;
}
UN_LANES un_doubles8 un_doubles8_abs(un_doubles8 a)
{
    return (un_doubles8)((un_longs8)a & INT64_MAX);
}
UN_LANES un_doubles8 un_doubles8_all(double v)
{
    return (un_doubles8){v, v, v, v, v, v, v, v};
}
/* a b + c, rounded once where the processor can. */
UN_LANES un_doubles8 un_doubles8_mad(un_doubles8 a, un_doubles8 b, un_doubles8 c)
{
#if defined(__AVX512F__)
    return (un_doubles8)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#else
    return a * b + c;
#endif
}
UN_LANES un_doubles8 un_doubles8_max(un_doubles8 a, un_doubles8 b)
{
#if defined(__AVX512F__)
    return (un_doubles8)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
    un_longs8 more = a > b;
    return (un_doubles8)(((un_longs8)a & more) | ((un_longs8)b & ~more));
#endif
}
UN_LANES un_doubles8 un_doubles8_sqrt(un_doubles8 a)
{
#if defined(__AVX512F__)
    return (un_doubles8)_mm512_sqrt_pd((__m512d)a);
#else
    un_doubles8 out;
    for (int i = 0; i < 8; i++) out[i] = sqrt(a[i]);
    return out;
#endif
}
/* a where all bits of the lane are set, b where none are. */
UN_LANES un_doubles8 un_doubles8_choose(un_longs8 bits, un_doubles8 a, un_doubles8 b)
{
    return (un_doubles8)(((un_longs8)a & bits) | ((un_longs8)b & ~bits));
}
/* Truncated, and between 0 and hi: as a cast to an integer, but the number stays a double. */
UN_LANES un_doubles8 un_doubles8_place(un_doubles8 s, double hi)
{
#if defined(__AVX512F__)
    __m512d whole = _mm512_roundscale_pd((__m512d)s, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    whole = _mm512_max_pd(whole, _mm512_setzero_pd());
    return (un_doubles8)_mm512_min_pd(whole, _mm512_set1_pd(hi));
#else
    un_doubles8 whole = __builtin_convertvector(__builtin_convertvector(s, un_bits8), un_doubles8);
    whole = un_doubles8_choose(whole > 0, whole, un_doubles8_all(0));
    return un_doubles8_choose(whole < hi, whole, un_doubles8_all(hi));
#endif
}
/* A bit for every lane that is set, all bits of a lane being alike. */
UN_LANES uint32_t un_longs8_mask(un_longs8 bits)
{
#if defined(__AVX512DQ__)
    return _mm512_movepi64_mask((__m512i)bits);
#else
    uint32_t mask = 0;
    for (int i = 0; i < 8; i++) mask |= (uint32_t)(bits[i] < 0) << i;
    return mask;
#endif
}
UN_LANES bool un_longs8_all(un_longs8 bits)
{
    return un_longs8_mask(bits) == 0xff;
}
/* a, or 0 if that is more. */
UN_LANES un_doubles8 un_doubles8_positive(un_doubles8 a)
{
    return (un_doubles8)((un_longs8)a & (a > 0));
}
/* exp(a) of what is not above 0, to 1e-11 of it; at least exp(-700). 2^n exp(r), |r| up to half of
 * ln 2; n stands in the lowest bits of a sum with 1.5 2^52. */
UN_LANES un_doubles8 un_doubles8_exp(un_doubles8 a)
{
    const double shift = 6755399441055744.0;
    un_doubles8 least = a * 0 - 700;
    a = (un_doubles8)(((un_longs8)a & (a > least)) | ((un_longs8)least & (a <= least)));
    un_doubles8 t = a * 1.4426950408889634 + shift, n = t - shift;
    un_doubles8 r = (a - n * 0.693147180369123816) - n * 1.90821492927058770e-10;
    un_doubles8 y = r * (1.0 / 362880) + 1.0 / 40320;
    const double term[8] = {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1};
    for (int k = 0; k < 8; k++) y = y * r + term[k];
    return y * (un_doubles8)(((un_longs8)t << 52) + 0x3ff0000000000000);
}
/* Lanes 0, 1 and 2 of eight vectors. */
UN_LANES void un_doubles8_turn(un_doubles8 to[3], const un_doubles4 from[8])
{
    un_doubles4 even[4], odd[4]; /* lanes 0 and 2 of two vectors, 1 and 3 */
    for (int i = 0; i < 4; i++) {
        even[i] = __builtin_shufflevector(from[2 * i], from[2 * i + 1], 0, 4, 2, 6);
        odd[i] = __builtin_shufflevector(from[2 * i], from[2 * i + 1], 1, 5, 3, 7);
    }
    for (int a = 0; a < 3; a++) {
        const un_doubles4 *v = a == 1 ? odd : even;
        un_doubles4 low, high;
        if (a == 2) {
            low = __builtin_shufflevector(v[0], v[1], 2, 3, 6, 7);
            high = __builtin_shufflevector(v[2], v[3], 2, 3, 6, 7);
        } else {
            low = __builtin_shufflevector(v[0], v[1], 0, 1, 4, 5);
            high = __builtin_shufflevector(v[2], v[3], 0, 1, 4, 5);
        }
        to[a] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    }
}
UN_LANES double un_doubles8_sum(un_doubles8 a)
{
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* ---- floats, some of eight ---- */

/* n: 8, or 1 for the first alone. */
UN_LANES un_lanes8 un_lanes8_some(const float *v, int n)
{
    un_lanes8 out = {v[0]};
    if (n == 8) memcpy(&out, v, sizeof out);
    return out;
}
/* Compilers would take the bytes apart one by one. */
UN_LANES un_longs8 un_longs8_of_bytes(const uint8_t *v)
{
#if defined(__AVX512F__)
    return (un_longs8)_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)v));
#else
    un_bytes8 from;
    memcpy(&from, v, sizeof from);
    return __builtin_convertvector(from, un_longs8);
#endif
}
/* Whole numbers from 0 to 255. */
UN_LANES void un_doubles8_to_bytes(uint8_t *to, un_doubles8 a)
{
    un_bits8 whole = __builtin_convertvector(a, un_bits8);
#if defined(__AVX512VL__)
    _mm_storel_epi64((__m128i *)(void *)to, _mm256_cvtepi32_epi8((__m256i)whole));
#else
    un_bytes8 bytes = __builtin_convertvector(whole, un_bytes8);
    memcpy(to, &bytes, sizeof bytes);
#endif
}
UN_LANES un_lanes8 un_lanes8_of_bytes(const uint8_t *v, int n)
{
    un_bytes8 from = {v[0]};
    if (n == 8) memcpy(&from, v, sizeof from);
#if defined(__AVX2__)
    __m256i whole = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)from));
    return (un_lanes8)_mm256_cvtepi32_ps(whole);
#else
    return (un_lanes8) __builtin_convertvector(__builtin_convertvector(from, un_bits8), un_floats8);
#endif
}
/* The lanes at first .. end - 1, if lane 0 is at `at`; zero in the others. */
UN_LANES un_lanes8 un_lanes8_within(un_lanes8 a, int64_t at, int64_t first, int64_t end)
{
    const un_bits8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t from = (int32_t)(first - at), to = (int32_t)(end - at < 8 ? end - at : 8);
    return (un_lanes8)((un_bits8)a & (lane >= from) & (lane < to));
}
UN_LANES double un_lanes8_sum(un_lanes8 a)
{
    double b[8];
    for (int i = 0; i < 8; i++) b[i] = (double)a[i];
    return ((b[0] + b[1]) + (b[2] + b[3])) + ((b[4] + b[5]) + (b[6] + b[7]));
}

UN_LANES double un_lanes16_sum(un_lanes16 a)
{
    return un_lanes8_sum(un_lanes16_low(a) + un_lanes16_high(a));
}

/* Eight vectors of space, by component. */
typedef struct un_triple8 {
    un_doubles8 of[3];
} un_triple8;
UN_LANES un_triple8 un_triple8_cross(const un_triple8 *a, const un_triple8 *b)
{
    return (un_triple8){{a->of[1] * b->of[2] - a->of[2] * b->of[1],
                         a->of[2] * b->of[0] - a->of[0] * b->of[2],
                         a->of[0] * b->of[1] - a->of[1] * b->of[0]}};
}
UN_LANES un_doubles8 un_triple8_dot(const un_triple8 *a, const un_triple8 *b)
{
    return a->of[0] * b->of[0] + a->of[1] * b->of[1] + a->of[2] * b->of[2];
}

#endif
