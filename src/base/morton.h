/* Morton codes: three coordinates of 21 bits, interleaved. */
#ifndef UN_BASE_MORTON_H
#define UN_BASE_MORTON_H

#include <stdint.h>

/* pdep does it in one instruction; on AMD's first two Zen generations that takes hundreds of
 * cycles. By the name that both compilers have built in: the header with the other names would add
 * a tenth of a second to the time that every file takes to compile. */
#if defined(__BMI2__) && !defined(__znver1__) && !defined(__znver2__)
#define UN_MORTON_PDEP 1
#endif

/* Morton bits of x; shifted by one and two those of y and z. */
#define UN_MORTON_LANE 0x1249249249249249u

/* Spreads the lower 21 bits of a coordinate to every third bit. A code has bit 0 of x, y, z, then
 * bit 1, ... */
static inline uint64_t un_morton_spread(uint64_t v)
{
#ifdef UN_MORTON_PDEP
    return __builtin_ia32_pdep_di(v, UN_MORTON_LANE);
#else
    v &= 0x1fffff;
    v = (v | v << 32) & 0x1f00000000ffffu;
    v = (v | v << 16) & 0x1f0000ff0000ffu;
    v = (v | v << 8) & 0x100f00f00f00f00fu;
    v = (v | v << 4) & 0x10c30c30c30c30c3u;
    v = (v | v << 2) & UN_MORTON_LANE;
    return v;
#endif
}
static inline uint64_t un_morton(uint32_t x, uint32_t y, uint32_t z)
{
    return un_morton_spread(x) | un_morton_spread(y) << 1 | un_morton_spread(z) << 2;
}
static inline uint32_t un_morton_gather(uint64_t v)
{
#ifdef UN_MORTON_PDEP
    return (uint32_t)__builtin_ia32_pext_di(v, UN_MORTON_LANE);
#else
    v &= UN_MORTON_LANE;
    v = (v | v >> 2) & 0x10c30c30c30c30c3u;
    v = (v | v >> 4) & 0x100f00f00f00f00fu;
    v = (v | v >> 8) & 0x1f0000ff0000ffu;
    v = (v | v >> 16) & 0x1f00000000ffffu;
    v = (v | v >> 32) & 0x1fffffu;
    return (uint32_t)v;
#endif
}

/* Places from 0 to size of a lattice, both ends included, in the order of the cubes they belong to.
 * A coordinate counts twice; at the upper end, where no cube begins, it is lowered by one, into the
 * last cube. So the places in a cube follow one another wherever it is. place, size: Morton codes,
 * size up to 2^20 along each axis. */
static inline uint64_t un_morton_order(uint64_t place, uint64_t size)
{
    uint64_t order = place << 3;
    for (int a = 0; a < 3; a++) {
        uint64_t lane = UN_MORTON_LANE << a;
        if (((place ^ size) & lane) == 0)
            order = (order & ~lane) | (((order & lane) - ((uint64_t)1 << a)) & lane);
    }
    return order;
}
/* A coordinate of such a place, from its order shifted like a Morton code. */
static inline uint32_t un_morton_order_gather(uint64_t v)
{
    return (un_morton_gather(v) + 1) >> 1;
}

#endif
