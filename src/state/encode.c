/* Turns a state into bytes; see format.h. Chunks are packed in parallel, a few at a time. */
#include "state/format.h"
#include "state/state.h"

/* Packing pays when it saves at least this share of a plane. */
#define SAVING 0.06

/* A chunk being packed. */
typedef struct slot {
    const uint8_t *elements;
    int64_t count;
    int32_t width;
    size_t bytes; /* of `out` */
    uint32_t crc;
    uint8_t planes[8 * UN_CHUNK];
    uint8_t out[UN_CHUNK_BYTES];
} slot;

static void split_planes(slot *s)
{
    for (int32_t b = 0; b < s->width; b++) {
        const uint8_t *from = s->elements + un_plane_byte(b, s->width);
        uint8_t *to = s->planes + (int64_t)b * UN_CHUNK;
        switch (s->width) { /* a constant stride lets the compiler vectorise */
        case 1:
            memcpy(to, from, (size_t)s->count);
            break;
        case 4:
            for (int64_t i = 0; i < s->count; i++) to[i] = from[4 * i];
            break;
        case 8:
            for (int64_t i = 0; i < s->count; i++) to[i] = from[8 * i];
            break;
        default:
            for (int64_t i = 0; i < s->count; i++) to[i] = from[s->width * i];
        }
    }
}

/* ---- planes ---- */

/* Numbers the distinct bytes of a plane. */
typedef struct words {
    int32_t count;
    uint8_t word[256], number[256];
} words;

static int64_t examine(const uint8_t *plane, int64_t count, words *w)
{
    uint8_t seen[256] = {0};
    int64_t changes = 0;
    for (int64_t i = 0; i < count; i++) seen[plane[i]] = 1;
    for (int64_t i = 1; i < count; i++) changes += plane[i] != plane[i - 1];
    w->count = 0;
    for (int v = 0; v < 256; v++)
        if (seen[v]) {
            w->number[v] = (uint8_t)w->count;
            w->word[w->count++] = (uint8_t)v;
        }
    return changes;
}

static size_t put_words(uint8_t *to, const uint8_t *plane, int64_t count, const words *w)
{
    int32_t bits = un_word_bits(w->count), filled = 0;
    uint8_t *at = to;
    *at++ = (uint8_t)(w->count - 1);
    memcpy(at, w->word, (size_t)w->count);
    at += w->count;
    uint64_t held = 0;
    for (int64_t i = 0; i < count; i++) {
        held |= (uint64_t)w->number[plane[i]] << filled;
        filled += bits;
        if (filled < 32) continue;
        un_put32(at, (uint32_t)held);
        at += 4;
        held >>= 32;
        filled -= 32;
    }
    for (; filled > 0; filled -= 8, held >>= 8) *at++ = (uint8_t)held;
    return (size_t)(at - to);
}

static size_t put_runs(uint8_t *to, const uint8_t *plane, int64_t count)
{
    size_t map = (size_t)(count + 7) / 8, used = map;
    memset(to, 0, map);
    for (int64_t i = 0; i < count; i++) {
        bool other = i == 0 || plane[i] != plane[i - 1];
        to[i / 8] |= (uint8_t)(other << i % 8);
        to[used] = plane[i];
        used += other;
    }
    return used;
}

/* Writes the plane in the code that makes it smallest; returns the length. */
static size_t put_plane(uint8_t *to, const uint8_t *plane, int64_t count, uint32_t *code)
{
    words w;
    int64_t changes = examine(plane, count, &w);
    int64_t as_words = 1 + w.count + (count * un_word_bits(w.count) + 7) / 8;
    int64_t as_runs = (count + 7) / 8 + changes + 2; /* one more is written than kept */
    int64_t most = (int64_t)((1 - SAVING) * (double)count);
    if (w.count == 1) {
        *code = UN_PLANE_SAME;
        *to = plane[0];
        return 1;
    }
    if (as_runs < as_words && as_runs <= most) {
        *code = UN_PLANE_RUNS;
        return put_runs(to, plane, count);
    }
    if (as_words <= most) {
        *code = UN_PLANE_WORDS;
        return put_words(to, plane, count, &w);
    }
    *code = UN_PLANE_RAW;
    memcpy(to, plane, (size_t)count);
    return (size_t)count;
}

static void encode_chunk(slot *s)
{
    split_planes(s);
    size_t used = 4 * (size_t)s->width;
    for (int32_t b = 0; b < s->width; b++) {
        const uint8_t *plane = s->planes + (int64_t)b * UN_CHUNK;
        uint32_t code;
        size_t length = put_plane(s->out + used, plane, s->count, &code);
        un_put32(s->out + 4 * b, code << UN_PLANE_CODE_SHIFT | (uint32_t)length);
        used += length;
    }
    s->crc = un_crc(0, s->out, used);
    un_put32(s->out + used, s->crc);
    s->bytes = used + 4;
}

static void encode_slots(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) encode_chunk((slot *)arg + i);
}

/* Elements that are fetched at once: whole chunks. */
#define FETCHED (16 * (int64_t)UN_CHUNK)

un_status un_state_follow(const un_state *state)
{
    const void *none;
    for (int32_t i = 0; i < state->count; i++) {
        const un_section *s = &state->sections[i];
        for (int64_t at = 0; s->fetch && at < s->count; at += FETCHED)
            UN_TRY(s->fetch(s->fetch_arg, s, at, un_min64(at + FETCHED, s->count), &none));
    }
    return UN_OK;
}

static uint32_t encode_section(const un_state *state, const un_section *section, slot *slots,
                               int64_t slot_count, uint32_t crc, un_state_sink *sink, void *arg,
                               un_status *status)
{
    uint8_t head[UN_SECTION_BYTES];
    memcpy(head, section->name, UN_STATE_NAME);
    un_put32(head + 32, (uint32_t)section->width);
    un_put64(head + 36, (uint64_t)section->count);
    un_put32(head + 44, un_crc(0, head, 44));
    sink(arg, head, sizeof head);
    crc = un_crc(crc, head, sizeof head);
    const uint8_t *data = section->fetch ? NULL : un_section_data(section);
    int64_t window_end = section->fetch ? 0 : section->count, window_begin = 0;
    for (int64_t at = 0; at < section->count;) {
        int64_t taken = 0;
        if (at == window_end) { /* fetched sections only */
            window_begin = at;
            window_end = un_min64(at + FETCHED, section->count);
            const void *window = NULL;
            *status = section->fetch(section->fetch_arg, section, at, window_end, &window);
            if (*status != UN_OK) return crc;
            data = window;
        }
        for (; taken < slot_count && at < window_end; taken++) {
            slot *s = &slots[taken];
            s->elements = data + (at - window_begin) * section->width;
            s->width = section->width;
            s->count = un_min64(UN_CHUNK, window_end - at);
            at += s->count;
        }
        un_parallel_for(state->ctx, taken, 1, encode_slots, slots);
        for (int64_t i = 0; i < taken; i++) {
            sink(arg, slots[i].out, slots[i].bytes);
            crc = un_crc(crc, slots[i].out + slots[i].bytes - 4, 4);
        }
    }
    return crc;
}

un_status un_state_encode(const un_state *state, un_state_sink *sink, void *arg)
{
    int64_t slot_count = 2 * (int64_t)un_context_threads(state->ctx), chunks = 1;
    for (int32_t i = 0; i < state->count; i++)
        chunks = un_max64(chunks, (state->sections[i].count + UN_CHUNK - 1) / UN_CHUNK);
    slot_count = un_min64(slot_count, chunks);
    un_status status = UN_OK;
    slot *slots;
    UN_ALLOC(state->ctx, slots, slot_count);
    uint8_t head[UN_HEAD_BYTES], tail[UN_TAIL_BYTES];
    memcpy(head, UN_HEAD_MAGIC, 8);
    un_put32(head + 8, UN_FORMAT);
    un_put32(head + 12, (uint32_t)state->count);
    un_put32(head + 16, un_crc(0, head, 16));
    sink(arg, head, sizeof head);
    uint32_t crc = un_crc(0, head, sizeof head);
    for (int32_t i = 0; i < state->count && status == UN_OK; i++)
        crc =
            encode_section(state, &state->sections[i], slots, slot_count, crc, sink, arg, &status);
    memcpy(tail, UN_TAIL_MAGIC, 8);
    un_put32(tail + 8, un_crc(crc, tail, 8));
    sink(arg, tail, sizeof tail);
    un_free(state->ctx, slots);
    return status;
}
