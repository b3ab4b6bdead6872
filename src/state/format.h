/* The bytes of a checkpoint; only src/state/ includes this. Numbers are little-endian.
 *
 *     head      "UNDSTATE", u32 format, u32 number of sections, u32 crc of the 16 bytes before
 *     section   name (32 bytes, zero-filled), u32 width, u64 count, u32 crc of the 44 bytes before,
 *               then chunks of UN_CHUNK elements, the last one shorter
 *     chunk     a u32 per byte plane: its code in the upper two bits and its length;
 *               the planes; u32 crc of the chunk up to here
 *     tail      "UNDSTEND", u32 crc of all chunk crcs and section heads
 *
 * A plane holds the first, second, ... byte of every element: exponents and leading digits of
 * neighbours resemble each other, trailing digits are noise. Where it pays, planes are packed with
 * codes that take little longer than copying; zlib made the whole 4 % smaller in seven times the
 * time. */
#ifndef UN_STATE_FORMAT_H
#define UN_STATE_FORMAT_H

#define UN_FORMAT 1u
#define UN_HEAD_MAGIC "UNDSTATE"
#define UN_TAIL_MAGIC "UNDSTEND"
#define UN_HEAD_BYTES 20
#define UN_SECTION_BYTES 48
#define UN_TAIL_BYTES 12
#define UN_SECTIONS_MAX 4096

#define UN_CHUNK 16384 /* elements */
#define UN_PLANE_CODE_SHIFT 30
enum {
    UN_PLANE_RAW,
    UN_PLANE_SAME,  /* one byte stands for all */
    UN_PLANE_WORDS, /* number of distinct bytes less one, these bytes, then the index of each
                       element's byte, in bits */
    UN_PLANE_RUNS   /* a bit per byte: does it differ from the last? then the bytes that do */
};

/* Most bytes that a chunk can take: its plane heads, planes and crc. */
#define UN_CHUNK_BYTES (8 * 4 + 8 * UN_CHUNK + 4)

#include <stdint.h>
#include <zlib.h>

static inline void un_put32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> 8 * i);
}
static inline void un_put64(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(v >> 8 * i);
}
static inline uint32_t un_get32(const uint8_t *from)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= (uint32_t)from[i] << 8 * i;
    return v;
}
static inline uint64_t un_get64(const uint8_t *from)
{
    return un_get32(from) | (uint64_t)un_get32(from + 4) << 32;
}
static inline uint32_t un_crc(uint32_t crc, const void *bytes, size_t count)
{
    return (uint32_t)crc32(crc, bytes, (uInt)count);
}
/* The byte of an element in memory that plane b holds: planes start at the least significant. */
static inline int32_t un_plane_byte(int32_t b, int32_t width)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    (void)width;
    return b;
#else
    return width - 1 - b;
#endif
}

/* Bits for the numbers 0 .. count - 1. */
static inline int32_t un_word_bits(int32_t count)
{
    int32_t bits = 1;
    while (1 << bits < count) bits++;
    return bits;
}

#endif
