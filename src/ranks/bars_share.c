/* Rows of bars from ranks to ranks.
 *
 * A rank sends the rows next to its borders to few others, and more often than anything else. Far
 * from the liquid these hold the same value everywhere. So a message has a bit for each element,
 * which tells whether it is another value than the one before, and the values that are. Where few
 * elements have changed since the last time, it has those alone (un_bars_share_marked).
 *
 * Rows that move to other ranks, and those that all ranks want, are sent as they are: they are many
 * and go seldom.
 *
 * What goes to whom, a way, is found once for each width of a halo and kept until bars are cut
 * again. Of two ranks, both list the rows that go from the one to the other in the same order: bars
 * along the curve, rows as they lie in the bar. */
#include "ranks/link.h"

#include <stdlib.h>

/* Other widths than those of halos: all rows to all; all that rank 0 has not; those of the next
 * cut. */
enum { TO_ALL = -1, TO_FIRST = -2, TO_NEXT = -3 };

/* No message of a halo is longer: MPI counts in 32 bits. */
#define HALO_BYTES ((size_t)1 << 30)

/* Rows to or from another rank: some of the runs of a way. */
typedef struct message {
    int32_t rank, first, end;
    int64_t rows;
} message;

/* What goes one way. */
typedef struct direction {
    message *message; /* by rank */
    int32_t count;
    un_part *run; /* of rows */
} direction;

struct un_bars_way {
    direction out, in;
};

/* What goes. */
typedef struct cargo {
    const un_layered *fields;
    int32_t count;
    int32_t group; /* fields in a group, of which the first holds marks; 0: all elements go */
    uint8_t mark;
} cargo;

/* ---- ways ---- */

/* Rows of a bar, a bit for each, that go to or come from a rank. */
typedef struct piece {
    int32_t rank, place;
    uint64_t rows;
} piece;

typedef struct piece_list {
    piece *piece;
    int32_t count;
    size_t room;
} piece_list;

static un_status add_piece(un_context *ctx, piece_list *l, int32_t rank, int32_t place,
                           uint64_t rows)
{
    UN_TRY(un_array_reserve(ctx, (void **)&l->piece, &l->room, (size_t)l->count + 1,
                            sizeof *l->piece));
    l->piece[l->count++] = (piece){rank, place, rows};
    return UN_OK;
}

static int by_rank(const void *a, const void *b)
{
    const piece *i = a, *j = b;
    if (i->rank != j->rank) return i->rank < j->rank ? -1 : 1;
    return (i->place > j->place) - (i->place < j->place);
}

/* From lo to hi along an axis: the rows of a bar no farther than `width` from one so many bars
 * away. */
static void near_rows(int32_t away, int32_t width, int32_t *lo, int32_t *hi)
{
    *lo = away > 0 ? un_clampi(UN_BAR * away - width, 0, UN_BAR) : 0;
    *hi = away < 0 ? un_clampi(UN_BAR + UN_BAR * away + width, 0, UN_BAR) : UN_BAR;
}

static uint64_t near_bar(int32_t dy, int32_t dz, int32_t width)
{
    int32_t lo[2], hi[2];
    uint64_t rows = 0;
    near_rows(dy, width, &lo[0], &hi[0]);
    near_rows(dz, width, &lo[1], &hi[1]);
    if (lo[0] >= hi[0]) return 0;
    for (int32_t k = lo[1]; k < hi[1]; k++)
        rows |= (((uint64_t)1 << (hi[0] - lo[0])) - 1) << (UN_BAR * k + lo[0]);
    return rows;
}

/* Bars around one whose rows may be within `width` of it, along y and z. */
typedef struct around {
    int32_t low[2], high[2], at[2];
} around;

static around around_bar(const un_bars *b, int32_t bar, int32_t width)
{
    int32_t reach = (width + UN_BAR - 1) / UN_BAR;
    around a = {.at = {bar % b->curve.bars[0], bar / b->curve.bars[0]}};
    for (int d = 0; d < 2; d++) {
        a.low[d] = (int32_t)un_max64((int64_t)a.at[d] - reach, 0);
        a.high[d] = (int32_t)un_min64((int64_t)a.at[d] + reach + 1, b->curve.bars[d]);
    }
    return a;
}

/* Rows of a bar within `width` of some bar of the rank. */
static uint64_t asked_of(const un_bars *b, int32_t bar, int32_t rank, int32_t width)
{
    around a = around_bar(b, bar, width);
    uint64_t rows = 0;
    for (int32_t z = a.low[1]; z < a.high[1]; z++)
        for (int32_t y = a.low[0]; y < a.high[0]; y++)
            if (b->owner[y + b->curve.bars[0] * z] == rank)
                rows |= near_bar(y - a.at[0], z - a.at[1], width);
    return rows;
}

/* Those of an own bar that others ask for; those around it that this rank asks for. */
static un_status list_around(un_bars *b, int32_t bar, int32_t width, piece_list *out,
                             piece_list *in)
{
    around a = around_bar(b, bar, width);
    int32_t me = un_rank(b->ctx), first = out->count;
    for (int32_t z = a.low[1]; z < a.high[1]; z++)
        for (int32_t y = a.low[0]; y < a.high[0]; y++) {
            int32_t other = y + b->curve.bars[0] * z, rank = b->owner[other], n = first;
            uint64_t rows = near_bar(y - a.at[0], z - a.at[1], width);
            if (rank == me) continue;
            while (n < out->count && out->piece[n].rank != rank) n++;
            if (n < out->count)
                out->piece[n].rows |= rows;
            else if (rows)
                UN_TRY(add_piece(b->ctx, out, rank, b->curve.place[bar], rows));
            if (b->stamp[other]) continue;
            b->stamp[other] = 1;
            rows = asked_of(b, other, me, width);
            if (rows) UN_TRY(add_piece(b->ctx, in, rank, b->curve.place[other], rows));
        }
    return UN_OK;
}

static int32_t owner_of(const int32_t *first, int32_t place)
{
    int32_t r = 0;
    while (place >= first[r + 1]) r++;
    return r;
}

/* Whole bars: to rank 0, to all, or to those that have them next. */
static un_status list_whole(const un_bars *b, int32_t width, piece_list *out, piece_list *in)
{
    int32_t me = un_rank(b->ctx), ranks = un_rank_count(b->ctx);
    for (int32_t n = 0; n < b->curve.count; n++) {
        int32_t owner = b->owner[b->curve.bar[n]];
        int32_t next = width == TO_NEXT ? owner_of(b->next, n) : 0;
        bool wanted = width == TO_ALL || me == next;
        if (owner != me && wanted) UN_TRY(add_piece(b->ctx, in, owner, n, UINT64_MAX));
        for (int32_t r = 0; owner == me && r < ranks; r++)
            if (r != me && (width == TO_ALL || r == next))
                UN_TRY(add_piece(b->ctx, out, r, n, UINT64_MAX));
    }
    return UN_OK;
}

/* Adds the runs of a piece, or counts them. */
static int32_t add_runs(const un_bars *b, const piece *p, un_part *run, int32_t count,
                        int64_t *rows)
{
    int32_t bar = b->curve.bar[p->place], j = bar % b->curve.bars[0] * UN_BAR,
            k = bar / b->curve.bars[0] * UN_BAR;
    for (int32_t z = 0; z < UN_BAR && k + z < b->curve.rows[1]; z++) {
        uint64_t line = p->rows >> (UN_BAR * z) & 0xff;
        for (int32_t y = 0; y < UN_BAR && j + y < b->curve.rows[0]; y++) {
            if (!(line >> y & 1)) continue;
            int64_t row = j + y + (int64_t)b->curve.rows[0] * (k + z);
            bool more = y > 0 && line >> (y - 1) & 1;
            ++*rows;
            if (run && !more) run[count] = (un_part){row, row};
            if (!more) count++;
            if (run) run[count - 1].end = row + 1;
        }
    }
    return count;
}

static un_status set_direction(const un_bars *b, piece_list *l, direction *d)
{
    int64_t rows = 0;
    int32_t runs = 0, ranks = 0;
    if (l->count > 0) qsort(l->piece, (size_t)l->count, sizeof *l->piece, by_rank);
    for (int32_t n = 0; n < l->count; n++) {
        runs = add_runs(b, &l->piece[n], NULL, runs, &rows);
        ranks += n == 0 || l->piece[n].rank != l->piece[n - 1].rank;
    }
    UN_ALLOC(b->ctx, d->run, runs + 1);
    UN_ALLOC(b->ctx, d->message, ranks + 1);
    runs = 0;
    for (int32_t n = 0; n < l->count; n++) {
        if (n == 0 || l->piece[n].rank != l->piece[n - 1].rank)
            d->message[d->count++] = (message){l->piece[n].rank, runs, runs, 0};
        message *m = &d->message[d->count - 1];
        m->end = runs = add_runs(b, &l->piece[n], d->run, runs, &m->rows);
    }
    return UN_OK;
}

static void free_way(const un_bars *b, un_bars_way *w)
{
    if (!w) return;
    direction *both[] = {&w->out, &w->in};
    for (int n = 0; n < 2; n++) {
        un_free(b->ctx, both[n]->run);
        un_free(b->ctx, both[n]->message);
    }
    un_free(b->ctx, w);
}

static un_status find_way(un_bars *b, int32_t width, un_bars_way **way)
{
    piece_list out = {0}, in = {0};
    int32_t me = un_rank(b->ctx);
    un_bars_way *w = un_alloc_zero(b->ctx, 1, sizeof *w);
    un_status status = w ? UN_OK : UN_ERROR_MEMORY;
    memset(b->stamp, 0, (size_t)b->curve.count);
    if (status == UN_OK && width < 0) status = list_whole(b, width, &out, &in);
    for (int32_t n = b->first[me]; status == UN_OK && width >= 0 && n < b->first[me + 1]; n++)
        status = list_around(b, b->curve.bar[n], width, &out, &in);
    if (status == UN_OK) status = set_direction(b, &out, &w->out);
    if (status == UN_OK) status = set_direction(b, &in, &w->in);
    un_free(b->ctx, out.piece);
    un_free(b->ctx, in.piece);
    if (status != UN_OK) {
        free_way(b, w);
        return status;
    }
    *way = w;
    return UN_OK;
}

void un_bars_forget_ways(un_bars *b)
{
    for (int n = 0; n < UN_BARS_WAYS; n++) {
        free_way(b, b->way[n]);
        b->way[n] = NULL;
    }
}

/* Of narrow halos the ways are kept; *mine: the caller frees this one. */
static un_status way_of(un_bars *b, int32_t width, const un_bars_way **way, un_bars_way **mine)
{
    *mine = NULL;
    if (width < 0 || width >= UN_BARS_WAYS) {
        UN_TRY(find_way(b, width, mine));
        *way = *mine;
        return UN_OK;
    }
    if (!b->way[width]) UN_TRY(find_way(b, width, &b->way[width]));
    *way = b->way[width];
    return UN_OK;
}

static void count_sent(un_bars *b, size_t bytes, int32_t messages)
{
    un_traffic *sent = &un_context_ranks(b->ctx)->sent;
    b->bytes += bytes;
    sent->layers += (double)bytes;
    sent->messages += messages;
}

/* ---- as they are ---- */

/* A field's rows of a message, one after the other, and back. */
static size_t copy_rows(const un_bars *b, const direction *d, const message *m,
                        const un_layered *field, char *packed, bool pack)
{
    size_t row = (size_t)b->row_cells * field->size, done = 0;
    for (int32_t n = m->first; n < m->end; n++) {
        char *place = (char *)field->array + (size_t)d->run[n].begin * row;
        size_t bytes = (size_t)(d->run[n].end - d->run[n].begin) * row;
        memcpy(pack ? packed + done : place, pack ? place : packed + done, bytes);
        done += bytes;
    }
    return done;
}

static size_t row_bytes(const un_bars *b, const cargo *c)
{
    size_t cell = 0;
    for (int32_t f = 0; f < c->count; f++) cell += c->fields[f].size;
    return cell * (size_t)b->row_cells;
}

static size_t count_bytes(const un_bars *b, const cargo *c, const direction *d, size_t *bytes)
{
    size_t row = row_bytes(b, c), total = 0;
    memset(bytes, 0, (size_t)un_rank_count(b->ctx) * sizeof *bytes);
    for (int32_t n = 0; n < d->count; n++)
        total += bytes[d->message[n].rank] = (size_t)d->message[n].rows * row;
    return total;
}

/* Packs the rows for each rank, or unpacks those from each. */
static void copy_all(const un_bars *b, const cargo *c, const direction *d, char *at, bool pack)
{
    for (int32_t n = 0; n < d->count; n++)
        for (int32_t f = 0; f < c->count; f++)
            at += copy_rows(b, d, &d->message[n], &c->fields[f], at, pack);
}

static un_status trade(un_bars *b, const un_bars_way *w, const cargo *c)
{
    size_t out = count_bytes(b, c, &w->out, b->out_bytes);
    size_t in = count_bytes(b, c, &w->in, b->in_bytes);
    UN_TRY(un_array_need(b->ctx, (void **)&b->out, &b->out_room, out + 1, 1));
    UN_TRY(un_array_need(b->ctx, (void **)&b->in, &b->in_room, in + 1, 1));
    copy_all(b, c, &w->out, b->out, true);
    un_letters letters = {b->out, b->in, b->out_bytes, b->in_bytes};
    un_link_exchange(un_context_ranks(b->ctx), &letters);
    copy_all(b, c, &w->in, b->in, false);
    count_sent(b, out, w->out.count);
    return UN_OK;
}

/* ---- halos ---- */

/* Bits of n elements. */
static inline size_t bit_bytes(int64_t n)
{
    return (size_t)(n + 7) / 8;
}

/* The first value, bits, and each value that is another than the one before it. Of eight, mostly
 * all are, or none. */
static inline char *pack_values(char *to, const char *value, int64_t n, size_t size)
{
    memcpy(to, value, size);
    uint8_t *bits = (uint8_t *)to + size;
    const char *before = value;
    to += size + bit_bytes(n);
    for (int64_t i = 0; i < n; i += 8, value += 8 * size) {
        int count = (int)un_min64(n - i, 8);
        unsigned eight = memcmp(value, before, size) != 0;
        for (int b = 1; b < count; b++)
            eight |= (unsigned)(memcmp(value + b * size, value + (b - 1) * size, size) != 0) << b;
        before = value + (count - 1) * size;
        bits[i / 8] = (uint8_t)eight;
        if (eight == 0xff) {
            memcpy(to, value, 8 * size);
            to += 8 * size;
            continue;
        }
        for (; eight; eight &= eight - 1, to += size)
            memcpy(to, value + __builtin_ctz(eight) * size, size);
    }
    return to;
}

static inline const char *unpack_values(const char *from, char *value, int64_t n, size_t size)
{
    const char *last = from;
    const uint8_t *bits = (const uint8_t *)from + size;
    from += size + bit_bytes(n);
    for (int64_t i = 0; i < n; i += 8) {
        unsigned eight = bits[i / 8];
        if (eight == 0xff) {
            memcpy(value, from, 8 * size);
            value += 8 * size;
            from += 8 * size;
            last = from - size;
            continue;
        }
        for (int b = 0; b < 8 && i + b < n; b++, value += size) {
            last = eight >> b & 1 ? from : last;
            from += (eight >> b & 1) * size;
            memcpy(value, last, size);
        }
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

static char *pack(const un_bars *b, const cargo *c, const direction *d, const message *m, char *to)
{
    int64_t n = m->rows * b->row_cells;
    for (int32_t f = 0; f < c->count; f += c->group ? c->group : 1) {
        const un_layered *field = &c->fields[f];
        for (int32_t r = m->first; c->group && r < m->end; r++)
            to = pack_marked(to, c, field, d->run[r].begin * b->row_cells,
                             (d->run[r].end - d->run[r].begin) * b->row_cells);
        if (c->group) continue;
        copy_rows(b, d, m, field, b->packed, true);
        to = pack_field(to, b->packed, n, field->size);
    }
    return to;
}

static void unpack(const un_bars *b, const cargo *c, const direction *d, const message *m,
                   const char *from)
{
    int64_t n = m->rows * b->row_cells;
    for (int32_t f = 0; f < c->count; f += c->group ? c->group : 1) {
        const un_layered *field = &c->fields[f];
        for (int32_t r = m->first; c->group && r < m->end; r++)
            from = unpack_marked(from, c, field, d->run[r].begin * b->row_cells,
                                 (d->run[r].end - d->run[r].begin) * b->row_cells);
        if (c->group) continue;
        from = unpack_field(from, b->packed, n, field->size);
        copy_rows(b, d, m, field, b->packed, false);
    }
}

/* Of a message. */
static size_t most_bytes(const un_bars *b, const cargo *c, const message *m)
{
    size_t runs = (size_t)(m->end - m->first), bytes = 0;
    for (int32_t f = 0; f < c->count; f++)
        bytes += c->fields[f].size + bit_bytes(m->rows * b->row_cells) + runs;
    return bytes + (size_t)m->rows * row_bytes(b, c);
}

/* Room for all messages one way, and for a field of the longest. */
static size_t find_rooms(const un_bars *b, const cargo *c, const direction *d, un_mail *mail,
                         size_t *longest)
{
    size_t total = 0;
    for (int32_t n = 0; n < d->count; n++) {
        const message *m = &d->message[n];
        mail[n] = (un_mail){m->rank, most_bytes(b, c, m), NULL};
        total += mail[n].bytes;
        for (int32_t f = 0; f < c->count; f++) {
            size_t bytes = (size_t)(m->rows * b->row_cells) * c->fields[f].size;
            *longest = bytes > *longest ? bytes : *longest;
        }
    }
    return total;
}

static un_status trade_halo(un_bars *b, const un_bars_way *w, const cargo *c)
{
    size_t longest = 1, sent = 0, out = find_rooms(b, c, &w->out, b->out_mail, &longest);
    size_t in = find_rooms(b, c, &w->in, b->in_mail, &longest);
    UN_TRY(un_array_need(b->ctx, (void **)&b->out, &b->out_room, out + 1, 1));
    UN_TRY(un_array_need(b->ctx, (void **)&b->in, &b->in_room, in + 1, 1));
    UN_TRY(un_array_need(b->ctx, (void **)&b->packed, &b->packed_room, longest, 1));
    char *at = b->out;
    for (int32_t n = 0; n < w->out.count; n++) {
        un_mail *m = &b->out_mail[n];
        m->data = at;
        m->bytes = (size_t)(pack(b, c, &w->out, &w->out.message[n], at) - at);
        at += m->bytes;
        sent += m->bytes;
    }
    at = b->in;
    for (int32_t n = 0; n < w->in.count; n++) {
        b->in_mail[n].data = at;
        at += b->in_mail[n].bytes;
    }
    un_link_trade(b->in_mail, w->in.count, b->out_mail, w->out.count);
    for (int32_t n = 0; n < w->in.count; n++)
        unpack(b, c, &w->in, &w->in.message[n], b->in_mail[n].data);
    count_sent(b, sent, w->out.count);
    return UN_OK;
}

/* ---- what others call ---- */

static un_status share(un_bars *b, const cargo *c, int32_t width)
{
    const un_bars_way *way;
    un_bars_way *mine;
    const int32_t *rows = b->curve.rows;
    /* no message has more rows than the grid has within the halo of a bar, or more than all */
    int64_t most = un_min64((int64_t)rows[0] * rows[1], (int64_t)(rows[0] + rows[1]) * 4 * width);
    bool all = width >= rows[0] && width >= rows[1];
    bool halo = !all && (size_t)most * (row_bytes(b, c) + (size_t)c->count) <= HALO_BYTES / 2;
    if (un_rank_count(b->ctx) == 1) return UN_OK;
    UN_TRY(way_of(b, all ? TO_ALL : width, &way, &mine));
    un_status status = halo ? trade_halo(b, way, c) : trade(b, way, c);
    free_way(b, mine);
    return status;
}

un_status un_bars_share(un_bars *b, const un_layered *fields, int32_t count, int32_t width)
{
    cargo c = {.fields = fields, .count = count};
    return share(b, &c, width);
}

un_status un_bars_share_marked(un_bars *b, const un_layered *fields, int32_t count, int32_t group,
                               uint8_t mark, int32_t width)
{
    cargo c = {.fields = fields, .count = count, .group = group, .mark = mark};
    return share(b, &c, width);
}

/* One by one: ranks need room for one field more. */
static un_status trade_fields(un_bars *b, const un_layered *fields, int32_t count, int32_t width)
{
    un_bars_way *way = NULL;
    un_status status = un_ranks_agree(b->ctx, find_way(b, width, &way));
    if (status != UN_OK) return status;
    for (int32_t f = 0; status == UN_OK && f < count; f++) {
        cargo c = {.fields = &fields[f], .count = 1};
        status = trade(b, way, &c);
    }
    free_way(b, way);
    return status;
}

un_status un_bars_move(un_bars *b, const un_layered *fields, int32_t count)
{
    return trade_fields(b, fields, count, TO_NEXT);
}

un_status un_bars_collect(un_bars *b, const un_layered *fields, int32_t count)
{
    if (un_rank_count(b->ctx) == 1) return UN_OK;
    UN_TRY(trade_fields(b, fields, count, TO_FIRST));
    un_free(b->ctx, b->in);
    b->in = NULL;
    b->in_room = 0;
    return UN_OK;
}

/* ---- windows ---- */

/* Copies a rank's elements of a window: from the array to a message, or from a message to `out`.
 * Returns how many bytes. */
static size_t copy_window(const un_bars *b, int32_t rank, size_t size, un_part window,
                          const char *array, char *packed, char *out)
{
    size_t done = 0;
    for (int32_t n = b->first[rank]; n < b->first[rank + 1]; n++) {
        un_part run[UN_BAR];
        int64_t rows = 0;
        piece whole = {rank, n, UINT64_MAX};
        int32_t count = add_runs(b, &whole, run, 0, &rows);
        for (int32_t r = 0; r < count; r++) {
            int64_t begin = un_max64(run[r].begin * b->row_cells, window.begin);
            int64_t end = un_min64(run[r].end * b->row_cells, window.end);
            if (end <= begin) continue;
            size_t bytes = (size_t)(end - begin) * size;
            if (array && packed) memcpy(packed + done, array + (size_t)begin * size, bytes);
            if (out)
                memcpy(out + (size_t)(begin - window.begin) * size,
                       array ? array + (size_t)begin * size : packed + done, bytes);
            done += bytes;
        }
    }
    return done;
}

un_status un_bars_windows(un_bars *b, const void *array, size_t size, un_part wanted, void *out)
{
    un_context *ctx = b->ctx;
    int32_t me = un_rank(ctx), ranks = un_rank_count(ctx), out_count = 0, in_count = 0;
    size_t sent = 0, got = 0;
    un_part *parts = un_alloc(ctx, (size_t)ranks, sizeof *parts);
    if (!parts) return UN_ERROR_MEMORY;
    un_ranks_gather(ctx, parts, &wanted, sizeof wanted);
    for (int32_t r = 0; r < ranks; r++) {
        size_t to = copy_window(b, me, size, parts[r], NULL, NULL, NULL);
        size_t from = copy_window(b, r, size, wanted, NULL, NULL, NULL);
        if (r != me && to > 0) b->out_mail[out_count++] = (un_mail){r, to, NULL};
        if (r != me && from > 0) b->in_mail[in_count++] = (un_mail){r, from, NULL};
        sent += r != me ? to : 0;
        got += r != me ? from : 0;
    }
    un_status status = un_array_need(ctx, (void **)&b->out, &b->out_room, sent + 1, 1);
    if (status == UN_OK) status = un_array_need(ctx, (void **)&b->in, &b->in_room, got + 1, 1);
    if (status == UN_OK) {
        char *at = b->out;
        for (un_mail *m = b->out_mail; m < b->out_mail + out_count; at += m->bytes, m++) {
            m->data = at;
            copy_window(b, me, size, parts[m->rank], array, at, NULL);
        }
        at = b->in;
        for (un_mail *m = b->in_mail; m < b->in_mail + in_count; at += m->bytes, m++) m->data = at;
        un_link_trade(b->in_mail, in_count, b->out_mail, out_count);
        un_context_ranks(ctx)->sent.messages += out_count;
        un_context_ranks(ctx)->sent.filed += (double)sent;
        copy_window(b, me, size, wanted, array, NULL, out);
        for (const un_mail *m = b->in_mail; m < b->in_mail + in_count; m++)
            copy_window(b, m->rank, size, wanted, NULL, m->data, out);
    }
    un_free(ctx, parts);
    return status;
}
