/* A state as bytes; see format.h. Chunks are packed in parallel, a few at a time. */
#include "state/format.h"
#include "state/state.h"

/* Packing pays when it saves at least this share of a plane. */
#define SAVING 0.06

void *un_zlib_alloc(void *arg, unsigned count, unsigned size)
{
    un_zlib_room *room = arg;
    size_t bytes = ((size_t)count * size + 63) & ~(size_t)63;
    if (bytes > room->size - room->used) return NULL;
    void *block = room->bytes + room->used;
    room->used += bytes;
    return block;
}

void un_zlib_free(void *room, void *block)
{
    (void)room, (void)block; /* all at once, with the room */
}

/* One chunk on its way. */
typedef struct slot {
    const uint8_t *elements;
    int64_t count;
    int32_t width;
    size_t bytes; /* of `out` */
    uint32_t crc;
    uint8_t planes[8 * UN_CHUNK];
    uint8_t out[UN_CHUNK_BYTES];
    uint8_t room[UN_PACK_ROOM];
} slot;

static void split_planes(slot *s)
{
    for (int32_t b = 0; b < s->width; b++) {
        const uint8_t *from = s->elements + un_plane_byte(b, s->width);
        uint8_t *to = s->planes + (int64_t)b * UN_CHUNK;
        switch (s->width) { /* a constant stride lets the compiler do several at once */
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

/* Bytes that Huffman's code could at best make of the plane. Runs, which it also packs, show up as
 * a low count of what differs from its neighbour. */
static double packed_estimate(const uint8_t *plane, int64_t count, bool *same)
{
    int32_t seen[4][256] = {{0}};
    int64_t i = 0, changes = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++) seen[k][plane[i + k]]++;
    for (; i < count; i++) seen[0][plane[i]]++;
    for (i = 1; i < count; i++) changes += plane[i] != plane[i - 1];
    double bits = 0;
    for (int v = 0; v < 256; v++) {
        double n = seen[0][v] + seen[1][v] + seen[2][v] + seen[3][v];
        if (n > 0) bits += n * log2((double)count / n);
    }
    *same = changes == 0;
    return fmin(bits / 8, (double)changes);
}

/* The length, 0 when it does not pay. */
static size_t pack_plane(slot *s, uint8_t *to, size_t room, const uint8_t *plane)
{
    un_zlib_room memory = {s->room, 0, sizeof s->room};
    z_stream z = {.zalloc = un_zlib_alloc, .zfree = un_zlib_free, .opaque = &memory};
    if (deflateInit2(&z, 1, Z_DEFLATED, -UN_WINDOW_BITS, UN_MEMORY_LEVEL, Z_RLE) != Z_OK) return 0;
    z.next_in = (Bytef *)plane;
    z.avail_in = (uInt)s->count;
    z.next_out = to;
    z.avail_out = (uInt)room;
    int end = deflate(&z, Z_FINISH);
    size_t length = room - z.avail_out;
    deflateEnd(&z);
    return end == Z_STREAM_END ? length : 0;
}

static void encode_chunk(slot *s)
{
    split_planes(s);
    size_t used = 4 * (size_t)s->width;
    for (int32_t b = 0; b < s->width; b++) {
        const uint8_t *plane = s->planes + (int64_t)b * UN_CHUNK;
        bool same;
        double most = (1 - SAVING) * (double)s->count;
        double packed = packed_estimate(plane, s->count, &same);
        uint32_t code = UN_PLANE_RAW;
        size_t length = 0;
        if (same) {
            code = UN_PLANE_SAME;
            length = 1;
            s->out[used] = plane[0];
        } else if (packed < most) {
            length = pack_plane(s, s->out + used, (size_t)most, plane);
            if (length) code = UN_PLANE_PACKED;
        }
        if (code == UN_PLANE_RAW) {
            length = (size_t)s->count;
            memcpy(s->out + used, plane, length);
        }
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

static uint32_t encode_section(const un_state *state, const un_section *section, slot *slots,
                               int64_t slot_count, uint32_t crc, un_state_sink *sink, void *arg)
{
    uint8_t head[UN_SECTION_BYTES];
    memcpy(head, section->name, UN_STATE_NAME);
    un_put32(head + 32, (uint32_t)section->width);
    un_put64(head + 36, (uint64_t)section->count);
    un_put32(head + 44, un_crc(0, head, 44));
    sink(arg, head, sizeof head);
    crc = un_crc(crc, head, sizeof head);
    const uint8_t *data = un_section_data(section);
    for (int64_t at = 0; at < section->count;) {
        int64_t taken = 0;
        for (; taken < slot_count && at < section->count; taken++) {
            slot *s = &slots[taken];
            s->elements = data + at * section->width;
            s->width = section->width;
            s->count = un_min64(UN_CHUNK, section->count - at);
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
    slot *slots;
    UN_ALLOC(state->ctx, slots, slot_count);
    uint8_t head[UN_HEAD_BYTES], tail[UN_TAIL_BYTES];
    memcpy(head, UN_HEAD_MAGIC, 8);
    un_put32(head + 8, UN_FORMAT);
    un_put32(head + 12, (uint32_t)state->count);
    un_put32(head + 16, un_crc(0, head, 16));
    sink(arg, head, sizeof head);
    uint32_t crc = un_crc(0, head, sizeof head);
    for (int32_t i = 0; i < state->count; i++)
        crc = encode_section(state, &state->sections[i], slots, slot_count, crc, sink, arg);
    memcpy(tail, UN_TAIL_MAGIC, 8);
    un_put32(tail + 8, un_crc(crc, tail, 8));
    sink(arg, tail, sizeof tail);
    un_free(state->ctx, slots);
    return UN_OK;
}
