/* Layers of slabs from ranks to ranks.
 *
 * A rank sends the layers next to its borders to few others, and more often than anything else. Far
 * from the liquid these hold the same value everywhere. So a message has a bit for each element,
 * which tells whether it is another value than the one before, and the values that are. Where few
 * elements have changed since the last time, it has those alone (un_slabs_share_marked).
 *
 * Layers that move to other slabs, and those that all ranks want, are sent as they are: they are
 * many and go seldom. */
#include "ranks/link.h"

/* Other widths than those of halos: all that rank 0 has not; the slabs of the next cut. */
enum { TO_FIRST = -1, TO_NEXT = -2 };

/* No message of a halo is longer: MPI counts in 32 bits. */
#define HALO_BYTES ((size_t)1 << 30)

/* What goes. */
typedef struct cargo {
    const un_layered *fields;
    int32_t count, width;
    int32_t group; /* fields in a group, of which the first holds marks; 0: all elements go */
    uint8_t mark;
} cargo;

static un_part wanted(const un_slabs *s, int32_t rank, int32_t width)
{
    if (width >= s->layer_count) return (un_part){0, s->layer_count};
    if (width >= 0) return un_slabs_part_of(s, rank, width);
    if (width == TO_NEXT) return (un_part){s->next[rank], s->next[rank + 1]};
    return (un_part){0, rank == 0 ? s->layer_count : 0};
}

/* The layers that `from` owns and `to` wants. */
static un_part message(const un_slabs *s, int32_t from, int32_t to, int32_t width)
{
    un_part own = un_slabs_part_of(s, from, 0), want = wanted(s, to, width);
    un_part out = {un_max64(own.begin, want.begin), un_min64(own.end, want.end)};
    if (from == to || out.end < out.begin) out.end = out.begin;
    return out;
}

static void count_sent(un_slabs *s, size_t bytes, int32_t messages)
{
    un_traffic *sent = &un_context_ranks(s->ctx)->sent;
    s->bytes += bytes;
    sent->layers += (double)bytes;
    sent->messages += messages;
}

/* ---- as they are ---- */

/* Packs the layers for each rank, or unpacks those from each. */
static void copy_layers(const un_slabs *s, const cargo *c, bool pack)
{
    int32_t me = un_rank(s->ctx);
    char *at = pack ? s->out : s->in;
    for (int32_t r = 0; r < un_rank_count(s->ctx); r++) {
        un_part m = pack ? message(s, me, r, c->width) : message(s, r, me, c->width);
        if (m.begin == m.end) continue;
        for (int32_t f = 0; f < c->count; f++) {
            size_t layer = (size_t)s->layer_cells * c->fields[f].size;
            size_t bytes = (size_t)(m.end - m.begin) * layer;
            char *place = (char *)c->fields[f].array + (size_t)m.begin * layer;
            memcpy(pack ? at : place, pack ? place : at, bytes);
            at += bytes;
        }
    }
}

static size_t layer_bytes(const un_slabs *s, const cargo *c)
{
    size_t cell = 0;
    for (int32_t f = 0; f < c->count; f++) cell += c->fields[f].size;
    return cell * (size_t)s->layer_cells;
}

static un_status trade(un_slabs *s, const cargo *c)
{
    int32_t me = un_rank(s->ctx), ranks = un_rank_count(s->ctx), messages = 0;
    size_t layer = layer_bytes(s, c), out = 0, in = 0;
    if (ranks == 1) return UN_OK;
    for (int32_t r = 0; r < ranks; r++) {
        un_part send = message(s, me, r, c->width), take = message(s, r, me, c->width);
        out += s->out_bytes[r] = (size_t)(send.end - send.begin) * layer;
        in += s->in_bytes[r] = (size_t)(take.end - take.begin) * layer;
        messages += s->out_bytes[r] > 0;
    }
    UN_TRY(un_array_need(s->ctx, (void **)&s->out, &s->out_room, out + 1, 1));
    UN_TRY(un_array_need(s->ctx, (void **)&s->in, &s->in_room, in + 1, 1));
    copy_layers(s, c, true);
    un_letters letters = {s->out, s->in, s->out_bytes, s->in_bytes};
    un_link_exchange(un_context_ranks(s->ctx), &letters);
    copy_layers(s, c, false);
    count_sent(s, out, messages);
    return UN_OK;
}

/* ---- halos ---- */

/* Bits of n elements; writing goes up to an element beyond the end. */
static inline size_t bit_bytes(int64_t n)
{
    return (size_t)(n + 7) / 8;
}

/* The first value, bits, and each value that is another than the one before it. */
static inline char *pack_values(char *to, const char *value, int64_t n, size_t size)
{
    memcpy(to, value, size);
    uint8_t *bits = (uint8_t *)to + size;
    const char *before = value;
    to += size + bit_bytes(n);
    for (int64_t i = 0; i < n; i += 8) {
        unsigned eight = 0;
        for (int b = 0; b < 8 && i + b < n; b++) {
            unsigned other = memcmp(value, before, size) != 0;
            memcpy(to, value, size);
            to += other * size;
            eight |= other << b;
            before = value;
            value += size;
        }
        bits[i / 8] = (uint8_t)eight;
    }
    return to;
}

static inline const char *unpack_values(const char *from, char *value, int64_t n, size_t size)
{
    const char *last = from;
    const uint8_t *bits = (const uint8_t *)from + size;
    from += size + bit_bytes(n);
    for (int64_t i = 0; i < n; i++) {
        if (bits[i / 8] >> (i % 8) & 1) {
            last = from;
            from += size;
        }
        memcpy(value, last, size);
        value += size;
    }
    return from;
}

/* Constant sizes, so that copies become single instructions. */
static char *pack_field(char *to, const char *value, int64_t n, size_t size)
{
    switch (size) {
    case 1:
        return pack_values(to, value, n, 1);
    case 4:
        return pack_values(to, value, n, 4);
    case 8:
        return pack_values(to, value, n, 8);
    default:
        return pack_values(to, value, n, size);
    }
}
static const char *unpack_field(const char *from, char *value, int64_t n, size_t size)
{
    switch (size) {
    case 1:
        return unpack_values(from, value, n, 1);
    case 4:
        return unpack_values(from, value, n, 4);
    case 8:
        return unpack_values(from, value, n, 8);
    default:
        return unpack_values(from, value, n, size);
    }
}

/* Bits that tell which elements have the mark, and their values in the other fields. */
static char *pack_marked(char *to, const cargo *c, const un_layered *group, int64_t first,
                         int64_t n)
{
    const uint8_t *mark = (const uint8_t *)group->array + first;
    uint8_t *bits = (uint8_t *)to;
    to += bit_bytes(n);
    memset(bits, 0, bit_bytes(n));
    for (int64_t i = 0; i < n; i++) {
        if (mark[i] != c->mark) continue;
        bits[i / 8] |= (uint8_t)(1u << i % 8);
        for (int32_t f = 1; f < c->group; f++) {
            size_t size = group[f].size;
            memcpy(to, (const char *)group[f].array + (size_t)(first + i) * size, size);
            to += size;
        }
    }
    return to;
}

static const char *unpack_marked(const char *from, const cargo *c, const un_layered *group,
                                 int64_t first, int64_t n)
{
    uint8_t *mark = (uint8_t *)group->array + first;
    const uint8_t *bits = (const uint8_t *)from;
    from += bit_bytes(n);
    for (int64_t i = 0; i < n; i++) {
        if (!(bits[i / 8] >> (i % 8) & 1)) continue;
        mark[i] = c->mark;
        for (int32_t f = 1; f < c->group; f++) {
            size_t size = group[f].size;
            memcpy((char *)group[f].array + (size_t)(first + i) * size, from, size);
            from += size;
        }
    }
    return from;
}

static char *pack(const un_slabs *s, const cargo *c, un_part m, char *to)
{
    int64_t first = m.begin * s->layer_cells, n = (m.end - m.begin) * s->layer_cells;
    for (int32_t f = 0; f < c->count; f += c->group ? c->group : 1) {
        const un_layered *field = &c->fields[f];
        const char *value = (const char *)field->array + (size_t)first * field->size;
        to = c->group ? pack_marked(to, c, field, first, n) : pack_field(to, value, n, field->size);
    }
    return to;
}

static void unpack(const un_slabs *s, const cargo *c, un_part m, const char *from)
{
    int64_t first = m.begin * s->layer_cells, n = (m.end - m.begin) * s->layer_cells;
    for (int32_t f = 0; f < c->count; f += c->group ? c->group : 1) {
        const un_layered *field = &c->fields[f];
        char *value = (char *)field->array + (size_t)first * field->size;
        from = c->group ? unpack_marked(from, c, field, first, n)
                        : unpack_field(from, value, n, field->size);
    }
}

/* Of a message of so many layers, with room to write beyond its end. */
static size_t most_bytes(const un_slabs *s, const cargo *c, int64_t layers)
{
    int64_t n = layers * s->layer_cells;
    size_t bytes = (size_t)layers * layer_bytes(s, c) + sizeof(double);
    for (int32_t f = 0; f < c->count; f++) bytes += c->fields[f].size + bit_bytes(n);
    return bytes;
}

static un_status trade_halo(un_slabs *s, const cargo *c)
{
    int32_t me = un_rank(s->ctx), ranks = un_rank_count(s->ctx), out_count = 0, in_count = 0;
    size_t out = 0, in = 0, sent = 0;
    for (int32_t r = 0; r < ranks; r++) {
        un_part send = message(s, me, r, c->width), take = message(s, r, me, c->width);
        size_t room = most_bytes(s, c, send.end - send.begin);
        if (send.begin < send.end) s->out_mail[out_count++] = (un_mail){r, room, NULL};
        if (send.begin < send.end) out += room;
        room = most_bytes(s, c, take.end - take.begin);
        if (take.begin < take.end) s->in_mail[in_count++] = (un_mail){r, room, NULL};
        if (take.begin < take.end) in += room;
    }
    UN_TRY(un_array_need(s->ctx, (void **)&s->out, &s->out_room, out + 1, 1));
    UN_TRY(un_array_need(s->ctx, (void **)&s->in, &s->in_room, in + 1, 1));
    char *at = s->out;
    for (un_mail *m = s->out_mail; m < s->out_mail + out_count; m++) {
        m->data = at;
        m->bytes = (size_t)(pack(s, c, message(s, me, m->rank, c->width), at) - at);
        at += m->bytes;
        sent += m->bytes;
    }
    at = s->in;
    for (un_mail *m = s->in_mail; m < s->in_mail + in_count; m++) {
        m->data = at;
        at += m->bytes;
    }
    un_link_trade(un_context_ranks(s->ctx), s->in_mail, in_count, s->out_mail, out_count);
    for (const un_mail *m = s->in_mail; m < s->in_mail + in_count; m++)
        unpack(s, c, message(s, m->rank, me, c->width), m->data);
    count_sent(s, sent, out_count);
    return UN_OK;
}

un_status un_slabs_share(un_slabs *s, const un_layered *fields, int32_t count, int32_t width)
{
    cargo c = {.fields = fields, .count = count, .width = width};
    if (un_rank_count(s->ctx) == 1) return UN_OK;
    bool halo = width < s->layer_count && most_bytes(s, &c, width) <= HALO_BYTES;
    return halo ? trade_halo(s, &c) : trade(s, &c);
}

un_status un_slabs_share_marked(un_slabs *s, const un_layered *fields, int32_t count, int32_t group,
                                uint8_t mark, int32_t width)
{
    cargo c = {.fields = fields, .count = count, .width = width, .group = group, .mark = mark};
    if (un_rank_count(s->ctx) == 1) return UN_OK;
    bool halo = width < s->layer_count && most_bytes(s, &c, width) <= HALO_BYTES;
    return halo ? trade_halo(s, &c) : trade(s, &c);
}

un_status un_slabs_move(un_slabs *s, const un_layered *field)
{
    cargo c = {.fields = field, .count = 1, .width = TO_NEXT};
    return trade(s, &c);
}

/* One by one: rank 0 needs room for one message more. */
un_status un_slabs_collect(un_slabs *s, const un_layered *fields, int32_t count)
{
    for (int32_t f = 0; f < count; f++) {
        cargo c = {.fields = &fields[f], .count = 1, .width = TO_FIRST};
        UN_TRY(trade(s, &c));
    }
    un_free(s->ctx, s->in);
    s->in = NULL;
    s->in_room = 0;
    return UN_OK;
}
