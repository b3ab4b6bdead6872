/* Turns a state into bytes; see format.h. Chunks are packed in parallel, a few at a time, by one
 * rank or by all. */
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

typedef struct packing {
    slot *slots;
    int64_t count;
} packing;

static void encode_slots(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) encode_chunk((slot *)arg + i);
}

static uint32_t encode_head(const un_section *section, uint32_t crc, un_state_sink *sink, void *arg)
{
    uint8_t head[UN_SECTION_BYTES];
    memcpy(head, section->name, UN_STATE_NAME);
    un_put32(head + 32, (uint32_t)section->width);
    un_put64(head + 36, (uint64_t)section->count);
    un_put32(head + 44, un_crc(0, head, 44));
    sink(arg, head, sizeof head);
    return un_crc(crc, head, sizeof head);
}

/* Elements that begin where a chunk does. */
static uint32_t encode_elements(un_context *ctx, const void *data, int64_t count, int32_t width,
                                const packing *p, uint32_t crc, un_state_sink *sink, void *arg)
{
    for (int64_t at = 0; at < count;) {
        int64_t taken = 0;
        for (; taken < p->count && at < count; taken++) {
            slot *s = &p->slots[taken];
            s->elements = (const uint8_t *)data + at * width;
            s->width = width;
            s->count = un_min64(UN_CHUNK, count - at);
            at += s->count;
        }
        un_parallel_for(ctx, taken, 1, encode_slots, p->slots);
        for (int64_t i = 0; i < taken; i++) {
            const slot *s = &p->slots[i];
            sink(arg, s->out, s->bytes);
            crc = un_crc(crc, s->out + s->bytes - 4, 4);
        }
    }
    return crc;
}

static un_status make_slots(const un_state *state, packing *p)
{
    int64_t chunks = 1;
    for (int32_t i = 0; i < state->count; i++)
        chunks = un_max64(chunks, (state->sections[i].count + UN_CHUNK - 1) / UN_CHUNK);
    p->count = un_min64(2 * (int64_t)un_context_threads(state->ctx), chunks);
    UN_ALLOC(state->ctx, p->slots, p->count);
    return UN_OK;
}

static uint32_t encode_begin(const un_state *state, un_state_sink *sink, void *arg)
{
    uint8_t head[UN_HEAD_BYTES];
    memcpy(head, UN_HEAD_MAGIC, 8);
    un_put32(head + 8, UN_FORMAT);
    un_put32(head + 12, (uint32_t)state->count);
    un_put32(head + 16, un_crc(0, head, 16));
    sink(arg, head, sizeof head);
    return un_crc(0, head, sizeof head);
}

static void encode_end(uint32_t crc, un_state_sink *sink, void *arg)
{
    uint8_t tail[UN_TAIL_BYTES];
    memcpy(tail, UN_TAIL_MAGIC, 8);
    un_put32(tail + 8, un_crc(crc, tail, 8));
    sink(arg, tail, sizeof tail);
}

un_status un_state_encode(const un_state *state, un_state_sink *sink, void *arg)
{
    packing p;
    UN_TRY(make_slots(state, &p));
    uint32_t crc = encode_begin(state, sink, arg);
    for (int32_t i = 0; i < state->count; i++) {
        const un_section *s = &state->sections[i];
        UN_ASSERT(!s->fetch);
        crc = encode_head(s, crc, sink, arg);
        crc =
            encode_elements(state->ctx, un_section_data(s), s->count, s->width, &p, crc, sink, arg);
    }
    encode_end(crc, sink, arg);
    un_free(state->ctx, p.slots);
    return UN_OK;
}

/* ---- by all ranks ---- */

/* In each round a rank packs a few chunks, the ranks one after the other. Rank 0 puts ahead of its
 * chunks what it has by itself: heads, and sections that are not fetched. */
#define ROUND_CHUNKS 16
#define AHEAD ((size_t)1 << 20) /* bytes, after which it writes that alone */

typedef struct joint {
    un_context *ctx;
    un_ranks_file *file;
    packing slots;
    uint8_t *bytes; /* not written yet */
    size_t used, room;
    bool alone; /* rank 0 is at what it has by itself */
    un_state_piece *pieces;
    int32_t piece_count;
    size_t piece_room;
    struct summed *sums; /* by rank */
    un_status status;    /* of the sink */
} joint;

/* Of a rank's chunks in a round: how many, and the crc of their crcs. */
typedef struct summed {
    uint32_t crc;
    int32_t count;
} summed;

/* Appends what there is. *more: whether rank 0 will do so again without the others' bytes. */
static un_status append(joint *j, bool *more)
{
    un_state_piece piece = {.count = (uint32_t)j->used, .crc = un_crc(0, j->bytes, j->used)};
    UN_TRY(un_array_reserve(j->ctx, (void **)&j->pieces, &j->piece_room, (size_t)j->piece_count + 1,
                            sizeof *j->pieces));
    UN_TRY(un_ranks_file_append(j->file, j->bytes, j->used, more, &piece.offset));
    if (j->used > 0) j->pieces[j->piece_count++] = piece;
    j->used = 0;
    return UN_OK;
}

/* Ends what rank 0 does by itself; the others take part until then. */
static un_status join_first(joint *j)
{
    bool more = false;
    UN_TRY(j->status);
    j->alone = false;
    do UN_TRY(append(j, &more));
    while (more);
    return UN_OK;
}

static void to_joint(void *arg, const void *bytes, size_t count)
{
    joint *j = arg;
    bool more = true;
    if (j->status == UN_OK && j->alone && j->used > AHEAD) j->status = append(j, &more);
    if (j->status == UN_OK)
        j->status = un_array_reserve(j->ctx, (void **)&j->bytes, &j->room, j->used + count, 1);
    if (j->status != UN_OK) return;
    memcpy(j->bytes + j->used, bytes, count);
    j->used += count;
}

static un_status encode_fetched(joint *j, const un_section *s, uint32_t *crc)
{
    int64_t chunks = (s->count + UN_CHUNK - 1) / UN_CHUNK, ranks = un_rank_count(j->ctx);
    int64_t rounds = (chunks + ranks * ROUND_CHUNKS - 1) / (ranks * ROUND_CHUNKS);
    for (int64_t k = 0; k < rounds; k++) {
        int64_t first = chunks * k / rounds, last = chunks * (k + 1) / rounds;
        un_part mine = un_ranks_even(j->ctx, last - first);
        int64_t begin = un_min64((first + mine.begin) * UN_CHUNK, s->count);
        int64_t end = un_min64((first + mine.end) * UN_CHUNK, s->count);
        summed sum = {.count = (int32_t)(mine.end - mine.begin)};
        const void *data;
        bool more = false;
        UN_TRY(s->fetch(s->fetch_arg, s, begin, end, &data));
        sum.crc = encode_elements(j->ctx, data, end - begin, s->width, &j->slots, 0, to_joint, j);
        UN_TRY(j->status);
        UN_TRY(append(j, &more));
        un_ranks_gather(j->ctx, j->sums, &sum, sizeof sum);
        for (int64_t r = 0; r < ranks; r++)
            *crc = (uint32_t)crc32_combine(*crc, j->sums[r].crc, 4 * (z_off_t)j->sums[r].count);
    }
    return UN_OK;
}

static un_status encode_joint(joint *j, const un_state *state)
{
    bool first = un_rank(j->ctx) == 0;
    uint32_t crc = 0;
    j->alone = first;
    if (first) crc = encode_begin(state, to_joint, j);
    for (int32_t i = 0; i < state->count; i++) {
        const un_section *s = &state->sections[i];
        if (first) crc = encode_head(s, crc, to_joint, j);
        if (s->fetch) {
            UN_TRY(join_first(j));
            UN_TRY(encode_fetched(j, s, &crc));
            j->alone = first;
        } else if (first)
            crc = encode_elements(j->ctx, un_section_data(s), s->count, s->width, &j->slots, crc,
                                  to_joint, j);
    }
    if (first) encode_end(crc, to_joint, j);
    return join_first(j);
}

un_status un_state_encode_ranks(const un_state *state, un_ranks_file *file, un_state_piece **pieces,
                                int32_t *count)
{
    joint j = {.ctx = state->ctx, .file = file};
    j.sums = un_alloc(j.ctx, (size_t)un_rank_count(j.ctx), sizeof *j.sums);
    un_status status = j.sums ? make_slots(state, &j.slots) : UN_ERROR_MEMORY;
    status = un_ranks_agree(j.ctx, status);
    if (status == UN_OK) status = encode_joint(&j, state);
    un_free(j.ctx, j.slots.slots);
    un_free(j.ctx, j.sums);
    un_free(j.ctx, j.bytes);
    *pieces = j.pieces;
    *count = j.piece_count;
    return status;
}

bool un_state_piece_is(const un_state_piece *piece, const void *bytes)
{
    return un_crc(0, bytes, piece->count) == piece->crc;
}
