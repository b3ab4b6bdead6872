/* Turns bytes into a state, or says why it cannot; see format.h. Every byte is covered by a
 * checksum, and nothing is used before its checksum has been verified. */
#include "state/format.h"
#include "state/state.h"

/* Fuzzers cannot guess checksums, but should still reach the code behind them. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define SUM_IS(wanted, found) ((void)(wanted), (void)(found), true)
#else
#define SUM_IS(wanted, found) ((wanted) == (found))
#endif

typedef struct reader {
    un_context *ctx;
    un_state_source *source;
    void *arg;
    uint64_t left; /* bytes */
    const char *name;
    un_state *state; /* NULL: only check */
    const un_sieve *sieve;
    uint32_t crc;
    uint8_t in[UN_CHUNK_BYTES];
    uint8_t plane[UN_CHUNK];
    uint8_t sifted[8 * UN_CHUNK];
} reader;

static un_status damaged(const reader *r, const char *what)
{
    return un_fail(r->ctx, UN_ERROR_FILE, "%s is damaged: %s", r->name, what);
}

static un_status take(reader *r, void *bytes, size_t count)
{
    if (count > r->left) return damaged(r, "it ends too early");
    if (!r->source(r->arg, bytes, count)) return damaged(r, "it cannot be read to its end");
    r->left -= count;
    return UN_OK;
}

/* Puts the plane's bytes into r->plane; false if they are invalid. */
static bool get_words(reader *r, const uint8_t *from, size_t length, int64_t count)
{
    int32_t words = length ? from[0] + 1 : 1, bits = un_word_bits(words), held_bits = 0;
    const uint8_t *word = from + 1, *at = word + words;
    uint64_t held = 0;
    if (words < 2 || length != (size_t)(1 + words + (count * bits + 7) / 8)) return false;
    for (int64_t i = 0; i < count; i++) {
        for (; held_bits < bits; held_bits += 8) held |= (uint64_t)*at++ << held_bits;
        int32_t number = (int32_t)(held & ((1u << bits) - 1));
        held >>= bits;
        held_bits -= bits;
        if (number >= words) return false;
        r->plane[i] = word[number];
    }
    return true;
}

static bool get_runs(reader *r, const uint8_t *from, size_t length, int64_t count)
{
    size_t used = (size_t)(count + 7) / 8;
    if (length < used + 1 || !(from[0] & 1)) return false;
    for (int64_t i = 0; i < count; i++) {
        used += from[i / 8] >> i % 8 & 1;
        if (used > length) return false;
        r->plane[i] = from[used - 1];
    }
    return used == length;
}

/* out: NULL to check only. */
static un_status decode_chunk(reader *r, uint8_t *out, int64_t count, int32_t width)
{
    size_t used = 4 * (size_t)width;
    UN_TRY(take(r, r->in, used));
    for (int32_t b = 0; b < width; b++) {
        uint32_t head = un_get32(r->in + 4 * b), code = head >> UN_PLANE_CODE_SHIFT;
        size_t length = head & ((1u << UN_PLANE_CODE_SHIFT) - 1);
        bool fits = (code == UN_PLANE_RAW && length == (size_t)count) ||
                    (code == UN_PLANE_SAME && length == 1) ||
                    (code >= UN_PLANE_WORDS && length > 1 && length <= (size_t)count);
        if (!fits) return damaged(r, "a part has a length that cannot be");
        used += length;
    }
    UN_TRY(take(r, r->in + 4 * width, used - 4 * (size_t)width + 4));
    if (!SUM_IS(un_get32(r->in + used), un_crc(0, r->in, used)))
        return damaged(r, "a checksum is wrong");
    r->crc = un_crc(r->crc, r->in + used, 4);
    if (!out) return UN_OK;
    const uint8_t *at = r->in + 4 * width;
    for (int32_t b = 0; b < width; b++) {
        uint32_t head = un_get32(r->in + 4 * b), code = head >> UN_PLANE_CODE_SHIFT;
        size_t length = head & ((1u << UN_PLANE_CODE_SHIFT) - 1);
        const uint8_t *plane = at;
        if (code == UN_PLANE_SAME) memset(r->plane, at[0], (size_t)count);
        if (code == UN_PLANE_WORDS && !get_words(r, at, length, count))
            return damaged(r, "a packed part cannot be unpacked");
        if (code == UN_PLANE_RUNS && !get_runs(r, at, length, count))
            return damaged(r, "a packed part cannot be unpacked");
        if (code != UN_PLANE_RAW) plane = r->plane;
        uint8_t *to = out + un_plane_byte(b, width);
        for (int64_t i = 0; i < count; i++) to[width * i] = plane[i];
        at += length;
    }
    return UN_OK;
}

/* Keeps some elements of a section. */
static un_status sift_section(reader *r, const char *name, int64_t count, int32_t width,
                              int64_t kept)
{
    const un_sieve *sieve = r->sieve;
    void *data;
    int64_t at = 0;
    UN_TRY(un_state_add_own(r->state, name, kept, width, &data));
    for (int64_t first = 0; first < count; first += UN_CHUNK) {
        int64_t here = un_min64(UN_CHUNK, count - first);
        UN_TRY(decode_chunk(r, r->sifted, here, width));
        here = sieve->keep(sieve->arg, name, r->sifted, first, here, width);
        if (here > kept - at) return damaged(r, "a part has more elements than another");
        memcpy((uint8_t *)data + at * width, r->sifted, (size_t)here * (size_t)width);
        at += here;
    }
    return at == kept ? UN_OK : damaged(r, "a part has fewer elements than another");
}

static un_status decode_section(reader *r)
{
    uint8_t head[UN_SECTION_BYTES];
    UN_TRY(take(r, head, sizeof head));
    r->crc = un_crc(r->crc, head, sizeof head);
    if (!SUM_IS(un_get32(head + 44), un_crc(0, head, 44))) return damaged(r, "a checksum is wrong");
    uint32_t width = un_get32(head + 32);
    uint64_t count = un_get64(head + 36);
    if (head[UN_STATE_NAME - 1] || !head[0]) return damaged(r, "a part has no name");
    if (width != 1 && width != 2 && width != 4 && width != 8)
        return damaged(r, "a part is of no known kind");
    /* A chunk takes at least its heads, one byte per plane and its checksum. */
    if (count > (r->left / (5 * width + 4) + 1) * UN_CHUNK)
        return damaged(r, "a part is longer than the file");
    void *data = NULL;
    if (r->state) {
        if (un_state_find(r->state, (char *)head)) return damaged(r, "a part is there twice");
        const un_sieve *sieve = r->sieve;
        int64_t kept = sieve
                           ? sieve->count(sieve->arg, (char *)head, (int64_t)count, (int32_t)width)
                           : UN_SIEVE_ALL;
        if (kept >= 0) return sift_section(r, (char *)head, (int64_t)count, (int32_t)width, kept);
        UN_TRY(un_state_add_own(r->state, (char *)head, (int64_t)count, (int32_t)width, &data));
    }
    for (uint64_t at = 0; at < count; at += UN_CHUNK)
        UN_TRY(decode_chunk(r, data ? (uint8_t *)data + at * width : NULL,
                            un_min64(UN_CHUNK, (int64_t)(count - at)), (int32_t)width));
    return UN_OK;
}

static un_status decode_all(reader *r)
{
    uint8_t head[UN_HEAD_BYTES], tail[UN_TAIL_BYTES];
    UN_TRY(take(r, head, sizeof head));
    if (memcmp(head, UN_HEAD_MAGIC, 8) != 0) return damaged(r, "it does not begin as a checkpoint");
    r->crc = un_crc(0, head, sizeof head);
    if (!SUM_IS(un_get32(head + 16), un_crc(0, head, 16))) return damaged(r, "a checksum is wrong");
    uint32_t format = un_get32(head + 8), count = un_get32(head + 12);
    if (format != UN_FORMAT)
        return un_fail(r->ctx, UN_ERROR_FILE,
                       "%s is of format %u, and this version reads %u; go on with the program that "
                       "wrote it",
                       r->name, format, UN_FORMAT);
    if (count > UN_SECTIONS_MAX) return damaged(r, "it has too many parts");
    for (uint32_t i = 0; i < count; i++) UN_TRY(decode_section(r));
    UN_TRY(take(r, tail, sizeof tail));
    if (memcmp(tail, UN_TAIL_MAGIC, 8) != 0 || !SUM_IS(un_get32(tail + 8), un_crc(r->crc, tail, 8)))
        return damaged(r, "it does not end as a checkpoint");
    return r->left == 0 ? UN_OK : damaged(r, "it goes on after its end");
}

static un_status decode(un_context *ctx, un_state *state, un_state_source *source, void *arg,
                        uint64_t size, const char *name, const un_sieve *sieve)
{
    reader *r;
    UN_ALLOC(ctx, r, 1);
    r->ctx = ctx;
    r->source = source;
    r->arg = arg;
    r->left = size;
    r->name = name;
    r->state = state;
    r->sieve = sieve;
    un_status status = decode_all(r);
    un_free(ctx, r);
    return status;
}

un_status un_state_decode(un_state *state, un_state_source *source, void *arg, uint64_t size,
                          const char *name)
{
    return un_state_decode_some(state, source, arg, size, name, NULL);
}

un_status un_state_decode_some(un_state *state, un_state_source *source, void *arg, uint64_t size,
                               const char *name, const un_sieve *sieve)
{
    UN_ASSERT(state->count == 0);
    return decode(state->ctx, state, source, arg, size, name, sieve);
}

un_status un_state_verify(un_context *ctx, un_state_source *source, void *arg, uint64_t size,
                          const char *name)
{
    return decode(ctx, NULL, source, arg, size, name, NULL);
}
