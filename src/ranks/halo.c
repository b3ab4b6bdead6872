/* Copies of elements of full-length arrays, for ranks that want them.
 *
 * A plan lists, for each rank that wants something, which elements, and the elements that arrive
 * from each rank; only these ranks get messages. Made once, run often: a solver runs one many times
 * in each of its iterations, so running it needs no memory and cannot fail. */
#include "ranks/link.h"

/* Elements that go out, or that come in. */
typedef struct side {
    int32_t ranks; /* that there is mail to or from */
    int64_t total;
    un_mail *mail;  /* one block, in which stand, too: */
    int64_t *count; /* by mail: elements */
    int32_t *index; /* elements, mail by mail */
    char *room;     /* `size` bytes for each element, or more */
    size_t bytes;
} side;

struct un_halo {
    un_context *ctx;
    side out, in;
    size_t size;
};

void un_halo_destroy(un_halo *h)
{
    if (!h) return;
    void *blocks[] = {h->out.mail, h->in.mail, h->out.room, h->in.room};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(h->ctx, blocks[i]);
    un_free(h->ctx, h);
}

static un_status need_side(un_context *ctx, side *s, int64_t ranks, int64_t total)
{
    size_t mail = (size_t)ranks * sizeof *s->mail, count = (size_t)ranks * sizeof *s->count;
    char *block = un_alloc(ctx, mail + count + ((size_t)total + 1) * sizeof *s->index, 1);
    if (!block) return UN_ERROR_MEMORY;
    s->mail = (un_mail *)block;
    s->count = (int64_t *)(block + mail);
    s->index = (int32_t *)(block + mail + count);
    s->total = total;
    return UN_OK;
}

static void add_mail(side *s, int32_t rank, int64_t count)
{
    if (count == 0) return;
    s->mail[s->ranks] = (un_mail){rank, 0, NULL};
    s->count[s->ranks++] = count;
}

size_t un_halo_sent(const un_context *ctx)
{
    const un_ranks *ranks = un_context_ranks(ctx);
    return ranks ? ranks->halo_bytes : 0;
}

/* ---- making a plan ---- */

static un_status list_wanted(un_halo *h, const int64_t *first, const int32_t *wanted, int64_t count)
{
    int32_t ranks = un_rank_count(h->ctx), r = 0;
    UN_TRY(need_side(h->ctx, &h->in, un_min64(ranks, count), count));
    for (int64_t k = 0, begin = 0; k < count; k++) {
        UN_ASSERT(k == 0 || wanted[k] > wanted[k - 1]);
        UN_ASSERT(wanted[k] >= 0 && wanted[k] < first[ranks]);
        while (wanted[k] >= first[r + 1]) r++;
        UN_ASSERT(r != un_rank(h->ctx));
        h->in.index[k] = wanted[k];
        if (k + 1 < count && wanted[k + 1] < first[r + 1]) continue;
        add_mail(&h->in, r, k + 1 - begin);
        begin = k + 1;
    }
    return UN_OK;
}

/* Mail for an array whose elements have `size` bytes. */
static void address(side *s, char *room, size_t size)
{
    for (int32_t k = 0; k < s->ranks; k++) {
        s->mail[k].bytes = (size_t)s->count[k] * size;
        s->mail[k].data = room;
        room += s->mail[k].bytes;
    }
}

static void run(un_halo *h)
{
    un_ranks *ranks = un_context_ranks(h->ctx);
    un_link_trade(h->in.mail, h->in.ranks, h->out.mail, h->out.ranks);
    for (int32_t k = 0; k < h->out.ranks; k++) ranks->halo_bytes += h->out.mail[k].bytes;
    ranks->sent.messages += h->out.ranks;
}

static un_status need_room(un_halo *h, size_t out, size_t in)
{
    UN_TRY(un_array_need(h->ctx, (void **)&h->out.room, &h->out.bytes, out + 1, 1));
    return un_array_need(h->ctx, (void **)&h->in.room, &h->in.bytes, in + 1, 1);
}

un_status un_halo_reserve(un_halo *h, size_t size)
{
    if (!h || size <= h->size) return UN_OK;
    UN_TRY(need_room(h, (size_t)h->out.total * size, (size_t)h->in.total * size));
    h->size = size;
    return UN_OK;
}

/* Those who want elements say which: the way back. */
static un_status take_requests(un_halo *h, bool agree, bool *any)
{
    un_context *ctx = h->ctx;
    un_ranks *ranks = un_context_ranks(ctx);
    int32_t count = un_rank_count(ctx), partners = 0;
    int64_t *mine = ranks->numbers, *theirs = ranks->numbers + count, total = 0;
    /* in the lowest bit: do I want any? */
    for (int32_t r = 0; r < count; r++) mine[r] = h->in.total > 0;
    for (int32_t k = 0; k < h->in.ranks; k++) mine[h->in.mail[k].rank] += 2 * h->in.count[k];
    un_link_count(ctx);
    un_link_swap(theirs, mine);
    for (int32_t r = 0; r < count; r++) {
        *any |= theirs[r] & 1;
        partners += theirs[r] > 1;
        total += theirs[r] / 2;
    }
    un_status status = need_side(ctx, &h->out, partners, total);
    if (status == UN_OK) status = un_halo_reserve(h, UN_HALO_SIZE);
    UN_TRY(agree ? un_ranks_agree(ctx, status) : status);
    for (int32_t r = 0; r < count; r++) add_mail(&h->out, r, theirs[r] / 2);
    address(&h->out, (char *)h->out.index, sizeof *h->out.index);
    address(&h->in, (char *)h->in.index, sizeof *h->in.index);
    un_link_trade(h->out.mail, h->out.ranks, h->in.mail, h->in.ranks);
    return UN_OK;
}

static un_status create(un_context *ctx, const int64_t *first, const int32_t *wanted,
                        int64_t wanted_count, bool agree, un_halo **halo, bool *any)
{
    un_halo *h = un_alloc_zero(ctx, 1, sizeof *h);
    un_status status = h ? UN_OK : UN_ERROR_MEMORY;
    *halo = NULL;
    *any = wanted_count > 0;
    if (h) {
        h->ctx = ctx;
        status = list_wanted(h, first, wanted, wanted_count);
    }
    if (agree) status = un_ranks_agree(ctx, status);
    if (status == UN_OK && un_rank_count(ctx) > 1) status = take_requests(h, agree, any);
    if (status == UN_OK) status = un_halo_reserve(h, UN_HALO_SIZE);
    if (status != UN_OK) {
        un_halo_destroy(h);
        return status;
    }
    *halo = h;
    return UN_OK;
}

un_status un_halo_create(un_context *ctx, const int64_t *first, const int32_t *wanted,
                         int64_t wanted_count, un_halo **halo)
{
    bool any;
    return create(ctx, first, wanted, wanted_count, false, halo, &any);
}

un_status un_halo_create_if_any(un_context *ctx, const int64_t *first, const int32_t *wanted,
                                int64_t wanted_count, un_halo **halo, bool *any)
{
    return create(ctx, first, wanted, wanted_count, false, halo, any);
}

un_status un_halo_create_agreed(un_context *ctx, const int64_t *first, const int32_t *wanted,
                                int64_t wanted_count, un_halo **halo)
{
    bool any;
    return create(ctx, first, wanted, wanted_count, true, halo, &any);
}

/* A plan of which both sides know their part, with room for what is given. */
static un_status begin_known(un_context *ctx, const int64_t *first, const int32_t *wanted,
                             int64_t wanted_count, const int64_t *given, un_halo **halo)
{
    int32_t partners = 0;
    int64_t total = 0;
    un_halo *h = *halo = un_alloc_zero(ctx, 1, sizeof *h);
    if (!h) return UN_ERROR_MEMORY;
    h->ctx = ctx;
    UN_TRY(list_wanted(h, first, wanted, wanted_count));
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        partners += given[r] > 0;
        total += given[r];
    }
    UN_TRY(need_side(ctx, &h->out, partners, total));
    for (int32_t r = 0; r < un_rank_count(ctx); r++) add_mail(&h->out, r, given[r]);
    return un_halo_reserve(h, UN_HALO_SIZE);
}

static un_status end_known(un_halo **halo, un_status status)
{
    if (status == UN_OK) return UN_OK;
    un_halo_destroy(*halo);
    *halo = NULL;
    return status;
}

un_status un_halo_create_known(un_context *ctx, const int64_t *first, const int32_t *wanted,
                               int64_t wanted_count, const un_given *given, un_halo **halo)
{
    un_status status = begin_known(ctx, first, wanted, wanted_count, given->count, halo);
    if (status == UN_OK && (*halo)->out.total > 0)
        memcpy((*halo)->out.index, given->given, (size_t)(*halo)->out.total * sizeof *given->given);
    return end_known(halo, status);
}

/* By rank: how many of this rank's elements it wants. */
static void count_cut(const un_context *ctx, const int64_t *first, const int64_t *cut,
                      int64_t *count)
{
    int32_t me = un_rank(ctx);
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        int64_t begin = un_max64(first[me], cut[r]), end = un_min64(first[me + 1], cut[r + 1]);
        count[r] = r == me ? 0 : un_max64(end - begin, 0);
    }
}

un_status un_halo_create_cut(un_context *ctx, const int64_t *first, const int64_t *cut,
                             un_halo **halo)
{
    int32_t me = un_rank(ctx), ranks = un_rank_count(ctx);
    un_part own = {first[me], first[me + 1]};
    int64_t wanted_count = 0, at = 0;
    *halo = NULL;
    int32_t *wanted = un_alloc(ctx, (size_t)(cut[me + 1] - cut[me]) + 1, sizeof *wanted);
    int64_t *count = un_alloc(ctx, (size_t)ranks, sizeof *count);
    un_status status = wanted && count ? UN_OK : UN_ERROR_MEMORY;
    for (int64_t i = cut[me]; status == UN_OK && i < cut[me + 1]; i++)
        if (i < own.begin || i >= own.end) wanted[wanted_count++] = (int32_t)i;
    if (status == UN_OK) {
        count_cut(ctx, first, cut, count);
        status = begin_known(ctx, first, wanted, wanted_count, count, halo);
    }
    for (int32_t r = 0; status == UN_OK && r < ranks; r++) {
        int64_t from = un_max64(own.begin, cut[r]);
        for (int64_t k = 0; k < count[r]; k++) (*halo)->out.index[at++] = (int32_t)(from + k);
    }
    un_free(ctx, wanted);
    un_free(ctx, count);
    return end_known(halo, status);
}

/* ---- running it ---- */

/* Constant sizes, so that copies become single instructions. */
#define COPY(type, to)                                                                             \
    for (int64_t k = 0; k < total; k++) ((type *)(to))[k] = ((const type *)array)[index[k]]
#define PLACE(type, from)                                                                          \
    for (int64_t k = 0; k < total; k++) ((type *)array)[index[k]] = ((const type *)(from))[k]

static void pack(char *to, const void *array, const int32_t *index, int64_t total, size_t size)
{
    if (size == 8)
        COPY(uint64_t, to);
    else if (size == 4)
        COPY(uint32_t, to);
    else
        for (int64_t k = 0; k < total; k++)
            memcpy(to + (size_t)k * size, (const char *)array + (size_t)index[k] * size, size);
}

static void unpack(const char *from, void *array, const int32_t *index, int64_t total, size_t size)
{
    if (size == 8)
        PLACE(uint64_t, from);
    else if (size == 4)
        PLACE(uint32_t, from);
    else
        for (int64_t k = 0; k < total; k++)
            memcpy((char *)array + (size_t)index[k] * size, from + (size_t)k * size, size);
}

void un_halo_share(un_halo *h, void *array, size_t size)
{
    if (!h) return;
    UN_ASSERT(size <= h->size);
    address(&h->out, h->out.room, size);
    address(&h->in, h->in.room, size);
    pack(h->out.room, array, h->out.index, h->out.total, size);
    run(h);
    unpack(h->in.room, array, h->in.index, h->in.total, size);
}

/* ---- several arrays in one message ---- */

static void move_fields(const side *s, const un_layered *fields, int32_t count, bool in)
{
    const int32_t *index = s->index;
    char *room = s->room;
    for (int32_t k = 0; k < s->ranks; index += s->count[k], k++)
        for (int32_t f = 0; f < count; f++) {
            size_t size = fields[f].size;
            if (in)
                unpack(room, fields[f].array, index, s->count[k], size);
            else
                pack(room, fields[f].array, index, s->count[k], size);
            room += (size_t)s->count[k] * size;
        }
}

un_status un_halo_share_fields(un_halo *h, const un_layered *fields, int32_t count)
{
    size_t size = 0;
    if (!h) return UN_OK;
    for (int32_t f = 0; f < count; f++) size += fields[f].size;
    UN_TRY(need_room(h, (size_t)h->out.total * size, (size_t)h->in.total * size));
    address(&h->out, h->out.room, size);
    address(&h->in, h->in.room, size);
    move_fields(&h->out, fields, count, false);
    run(h);
    move_fields(&h->in, fields, count, true);
    return UN_OK;
}

/* ---- rows ---- */

/* Packs the entries of all rows that go out, rank by rank and array by array, or unpacks those that
 * come in; with `room` NULL it only measures. */
static size_t move_rows(side *s, const int32_t *row, const un_layered *entries, int32_t count,
                        char *room, bool in)
{
    const int32_t *index = s->index;
    size_t at = 0;
    for (int32_t m = 0; m < s->ranks; index += s->count[m], m++) {
        size_t begin = at;
        for (int32_t f = 0; f < count; f++)
            for (int64_t k = 0; k < s->count[m]; k++) {
                int32_t first = row[index[k]], end = row[index[k] + 1];
                size_t size = entries[f].size, bytes = (size_t)(end - first) * size;
                char *place = (char *)entries[f].array + (size_t)first * size;
                if (room) memcpy(in ? place : room + at, in ? room + at : place, bytes);
                at += bytes;
            }
        s->mail[m].bytes = at - begin;
        s->mail[m].data = room ? room + begin : NULL;
    }
    return at;
}

/* The mail of rows that come in, before they do. */
static void await_rows(side *s)
{
    char *room = s->room;
    for (int32_t k = 0; k < s->ranks; k++) {
        s->mail[k].data = room;
        room += s->mail[k].bytes;
    }
}

un_status un_halo_share_rows(un_halo *h, int32_t *row, const un_layered *entries, int32_t count,
                             const un_layered *with, int32_t with_count)
{
    un_layered fields[2 + UN_HALO_WITH];
    if (!h) return UN_OK;
    UN_ASSERT(with_count <= UN_HALO_WITH);
    fields[0] = (un_layered){row, sizeof *row};
    fields[1] = (un_layered){row + 1, sizeof *row};
    for (int32_t f = 0; f < with_count; f++) fields[2 + f] = with[f];
    UN_TRY(un_halo_share_fields(h, fields, 2 + with_count));
    size_t out = move_rows(&h->out, row, entries, count, NULL, false);
    size_t in = move_rows(&h->in, row, entries, count, NULL, true);
    UN_TRY(need_room(h, out, in));
    move_rows(&h->out, row, entries, count, h->out.room, false);
    await_rows(&h->in);
    run(h);
    move_rows(&h->in, row, entries, count, h->in.room, true);
    return UN_OK;
}

/* ---- lists of all ranks ---- */

un_status un_ranks_begins(un_context *ctx, int64_t begin, int64_t total, int64_t **begins)
{
    int32_t ranks = un_rank_count(ctx);
    *begins = un_alloc(ctx, (size_t)ranks + 1, sizeof **begins);
    un_status status = *begins ? UN_OK : UN_ERROR_MEMORY;
    if (ranks > 1 && !un_ranks_tell_number(ctx, *begins ? begin : UN_NO_MEMORY))
        status = un_ranks_agree(ctx, status);
    if (status != UN_OK) {
        un_free(ctx, *begins);
        *begins = NULL;
        return status;
    }
    **begins = begin;
    for (int32_t r = 0; r < ranks && ranks > 1; r++)
        (*begins)[r] = un_context_ranks(ctx)->numbers[r];
    (*begins)[ranks] = total;
    return UN_OK;
}

static void spread(un_context *ctx, int32_t from, char *bytes, int64_t count)
{
    if (count > 0) un_link_broadcast(bytes, (size_t)count, from);
    if (from == un_rank(ctx))
        un_context_ranks(ctx)->sent.layers += (double)count * (un_rank_count(ctx) - 1);
}

void un_ranks_spread(un_context *ctx, const int64_t *first, void *array, size_t size)
{
    int32_t ranks = un_rank_count(ctx), me = un_rank(ctx);
    if (ranks == 1) return;
    un_link_count(ctx);
    un_link_spread(array, first, size);
    un_context_ranks(ctx)->sent.layers +=
        (double)(first[me + 1] - first[me]) * (double)size * (ranks - 1);
}

void un_halo_spread(un_context *ctx, const int64_t *first, void *array, size_t size)
{
    int32_t ranks = un_rank_count(ctx), me = un_rank(ctx);
    if (ranks == 1) return;
    un_link_count(ctx);
    un_link_spread(array, first, size);
    un_context_ranks(ctx)->sent.coarse +=
        (double)(first[ranks] - (first[me + 1] - first[me])) * (double)size;
}

un_part un_ranks_even(const un_context *ctx, int64_t count)
{
    int64_t ranks = un_rank_count(ctx), rank = un_rank(ctx);
    return (un_part){count * rank / ranks, count * (rank + 1) / ranks};
}

void un_ranks_spread_even(un_context *ctx, int64_t count, void *array, size_t size)
{
    int32_t ranks = un_rank_count(ctx);
    for (int32_t r = 0; r < ranks && ranks > 1; r++) {
        int64_t begin = count * r / ranks, end = count * (r + 1) / ranks;
        spread(ctx, r, (char *)array + (size_t)begin * size, (end - begin) * (int64_t)size);
    }
}

/* Lists of so many bytes have room before ranks know how long they are: few need more. */
#define LIST_BYTES 8192

un_status un_ranks_list(un_context *ctx, const void *mine, int64_t mine_count, size_t size,
                        void **all, int64_t *count)
{
    int32_t ranks = un_rank_count(ctx), me = un_rank(ctx);
    int64_t *first = un_alloc(ctx, (size_t)ranks + 1, sizeof *first);
    int64_t room = un_max64(LIST_BYTES / (int64_t)size, 1);
    *all = first ? un_alloc(ctx, (size_t)room, size) : NULL;
    *count = mine_count;
    un_status status = *all ? UN_OK : UN_ERROR_MEMORY;
    if (ranks > 1 && !un_ranks_tell_number(ctx, *all ? mine_count : UN_NO_MEMORY))
        status = un_ranks_agree(ctx, status);
    if (status == UN_OK) {
        first[0] = 0;
        first[1] = mine_count;
        for (int32_t r = 0; r < ranks; r++)
            first[r + 1] = first[r] + (ranks > 1 ? un_context_ranks(ctx)->numbers[r] : mine_count);
        *count = first[ranks];
    }
    if (status == UN_OK && *count > room) {
        un_free(ctx, *all);
        *all = un_alloc(ctx, (size_t)*count, size);
        status = un_ranks_agree(ctx, *all ? UN_OK : UN_ERROR_MEMORY);
    }
    if (status == UN_OK && mine_count > 0)
        memcpy((char *)*all + (size_t)first[me] * size, mine, (size_t)mine_count * size);
    if (status == UN_OK && ranks > 1 && *count > 0) {
        un_link_count(ctx);
        un_link_spread(*all, first, size);
        un_context_ranks(ctx)->sent.listed += (double)*count * (double)size;
    }
    un_free(ctx, first);
    if (status != UN_OK) {
        un_free(ctx, *all);
        *all = NULL;
    }
    return status;
}

un_status un_ranks_join(un_context *ctx, un_range range, const un_layered *fields, int32_t count)
{
    int64_t *begin;
    if (un_rank_count(ctx) == 1) return UN_OK;
    UN_TRY(un_ranks_begins(ctx, range.begin, range.total, &begin));
    for (int32_t f = 0; f < count; f++)
        un_ranks_spread(ctx, begin, fields[f].array, fields[f].size);
    un_free(ctx, begin);
    return UN_OK;
}
