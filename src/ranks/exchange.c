/* Elements of arrays from ranks to ranks: halos, migration, gathering.
 *
 * A plan lists the local elements that go to each rank, one rank after the other, and how many come
 * from each. Running it packs all arrays that go to a rank into one message. The message begins
 * with a hash of the arrays' names and sizes, so that ranks whose calls have gone out of step find
 * out instead of reading each other's bytes as something else. */
#include "ranks/link.h"

#include <stdlib.h>

struct un_exchange {
    un_context *ctx;
    int32_t *index;                /* local elements to send, by receiver */
    int64_t *out_count, *in_count; /* elements to and from each rank */
    size_t *out_bytes, *in_bytes;  /* of the run under way */
    int64_t out_total, in_total;
    char *out, *in; /* packed messages; room is kept */
    size_t out_room, in_room;
    size_t element; /* bytes of an element for which there is room, on all ranks */
    size_t bytes;   /* sent to others so far */
    un_status late; /* of this rank: no memory for what arrived in the last round */
};

/* ---- plans ---- */

void un_exchange_destroy(un_exchange *e)
{
    if (!e) return;
    un_context *ctx = e->ctx;
    un_free(ctx, e->index);
    un_free(ctx, e->out_count);
    un_free(ctx, e->in_count);
    un_free(ctx, e->out_bytes);
    un_free(ctx, e->in_bytes);
    un_free(ctx, e->out);
    un_free(ctx, e->in);
    un_free(ctx, e);
}

int64_t un_exchange_count(const un_exchange *e)
{
    return e->in_total;
}
size_t un_exchange_bytes(const un_exchange *e)
{
    return e->bytes;
}

static un_status allocate(un_context *ctx, un_exchange **exchange)
{
    int32_t count = un_rank_count(ctx);
    un_exchange *e = *exchange = un_alloc_zero(ctx, 1, sizeof **exchange);
    if (!e) return UN_ERROR_MEMORY;
    e->ctx = ctx;
    e->out_count = un_alloc_zero(ctx, (size_t)count, sizeof *e->out_count);
    e->in_count = un_alloc_zero(ctx, (size_t)count, sizeof *e->in_count);
    e->out_bytes = un_alloc_zero(ctx, (size_t)count, sizeof *e->out_bytes);
    e->in_bytes = un_alloc_zero(ctx, (size_t)count, sizeof *e->in_bytes);
    return e->out_count && e->in_count && e->out_bytes && e->in_bytes ? UN_OK : UN_ERROR_MEMORY;
}

static void send_letters(un_exchange *e, const char *out, char *in)
{
    un_letters letters = {out, in, e->out_bytes, e->in_bytes};
    if (un_rank_count(e->ctx) > 1)
        un_link_exchange(un_context_ranks(e->ctx), &letters);
    else if (*e->out_bytes > 0)
        memcpy(in, out, *e->out_bytes);
}

/* A number from each rank to each. */
static void swap_counts(un_exchange *e, int64_t *theirs, const int64_t *mine)
{
    un_link_count(e->ctx);
    if (un_rank_count(e->ctx) > 1)
        un_link_swap(theirs, mine);
    else
        *theirs = *mine;
}

/* Destroys what one rank could not finish on all, and ends with the status they share. */
static un_status settle(un_context *ctx, un_exchange **exchange, un_status status)
{
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK) return UN_OK;
    un_exchange_destroy(*exchange);
    *exchange = NULL;
    return status;
}

/* Counts to and from each rank, and the status that all share, in one call. */
static un_status settle_counts(un_context *ctx, un_exchange **exchange, un_status status)
{
    un_exchange *e = *exchange;
    int32_t count = un_rank_count(ctx);
    if (count == 1) {
        UN_TRY(settle(ctx, exchange, status));
        *e->in_count = *e->out_count;
        return UN_OK;
    }
    int64_t *mine = un_context_ranks(ctx)->numbers, *theirs = mine + count;
    bool able = true;
    for (int32_t r = 0; r < count; r++) mine[r] = status == UN_OK ? e->out_count[r] : UN_NO_MEMORY;
    un_link_count(ctx);
    un_link_swap(theirs, mine);
    for (int32_t r = 0; r < count; r++) able &= theirs[r] != UN_NO_MEMORY;
    if (!able) return settle(ctx, exchange, status);
    memcpy(e->in_count, theirs, (size_t)count * sizeof *theirs);
    return UN_OK;
}

static un_status list_copies(un_exchange *e, const int32_t *index, const int32_t *to, int64_t count)
{
    un_context *ctx = e->ctx;
    int32_t rank_count = un_rank_count(ctx);
    int64_t *at;
    for (int64_t k = 0; k < count; k++) {
        UN_ASSERT(to[k] < rank_count);
        if (to[k] >= 0) e->out_count[to[k]]++;
    }
    UN_ALLOC(ctx, at, rank_count);
    e->out_total = 0;
    for (int32_t r = 0; r < rank_count; r++) {
        at[r] = e->out_total;
        e->out_total += e->out_count[r];
    }
    e->index = un_alloc(ctx, (size_t)e->out_total + 1, sizeof *e->index);
    for (int64_t k = 0; e->index && k < count; k++)
        if (to[k] >= 0) e->index[at[to[k]]++] = index ? index[k] : (int32_t)k;
    un_free(ctx, at);
    return e->index ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_exchange_create_copies(un_context *ctx, const int32_t *index, const int32_t *to,
                                    int64_t count, un_exchange **exchange)
{
    un_status status = allocate(ctx, exchange);
    if (status == UN_OK) status = list_copies(*exchange, index, to, count);
    UN_TRY(settle_counts(ctx, exchange, status));
    un_exchange *e = *exchange;
    for (int32_t r = 0; r < un_rank_count(ctx); r++) e->in_total += e->in_count[r];
    return UN_OK;
}

un_status un_exchange_create_moves(un_context *ctx, const int32_t *to, int64_t count,
                                   un_exchange **exchange)
{
    return un_exchange_create_copies(ctx, NULL, to, count, exchange);
}

un_status un_exchange_create_gather(un_context *ctx, int64_t count, un_exchange **exchange)
{
    int32_t *to = un_alloc_zero(ctx, (size_t)count + 1, sizeof *to);
    UN_TRY(un_ranks_agree(ctx, to ? UN_OK : UN_ERROR_MEMORY));
    un_status status = un_exchange_create_copies(ctx, NULL, to, count, exchange);
    un_free(ctx, to);
    return status;
}

/* ---- halos: asked for by those who want them ---- */

/* How many of the wanted elements each rank holds; empty ranks hold none. */
static un_status count_wanted(un_exchange *e, const int64_t *begins, const int64_t *wanted,
                              int64_t count)
{
    int32_t r = 0, rank_count = un_rank_count(e->ctx);
    for (int64_t k = 0; k < count; k++) {
        UN_ASSERT(k == 0 || wanted[k] > wanted[k - 1]);
        if (wanted[k] < 0 || wanted[k] >= begins[rank_count])
            return un_fail(e->ctx, UN_ERROR_ARGUMENT, "a halo wants element %lld of %lld",
                           (long long)wanted[k], (long long)begins[rank_count]);
        while (wanted[k] >= begins[r + 1]) r++;
        e->in_count[r]++;
    }
    e->in_total = count;
    return UN_OK;
}

static un_status find_begins(un_context *ctx, un_range range, int64_t **begins)
{
    int32_t rank_count = un_rank_count(ctx);
    *begins = un_alloc(ctx, (size_t)rank_count + 1, sizeof **begins);
    UN_TRY(un_ranks_agree(ctx, *begins ? UN_OK : UN_ERROR_MEMORY));
    **begins = range.begin;
    if (rank_count > 1) un_link_gather(*begins, &range.begin, sizeof range.begin);
    (*begins)[rank_count] = range.total;
    return UN_OK;
}

/* What the others want of this rank. */
static un_status take_requests(un_exchange *e, un_range range, const int64_t *wanted)
{
    un_context *ctx = e->ctx;
    int32_t rank_count = un_rank_count(ctx);
    int64_t *asked = NULL;
    for (int32_t r = 0; r < rank_count; r++) e->out_total += e->out_count[r];
    e->index = un_alloc(ctx, (size_t)e->out_total + 1, sizeof *e->index);
    asked = un_alloc(ctx, (size_t)e->out_total + 1, sizeof *asked);
    un_status status = un_ranks_agree(ctx, asked && e->index ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) {
        for (int32_t r = 0; r < rank_count; r++) {
            e->out_bytes[r] = (size_t)e->in_count[r] * sizeof *wanted;
            e->in_bytes[r] = (size_t)e->out_count[r] * sizeof *asked;
        }
        send_letters(e, (const char *)wanted, (char *)asked);
        for (int64_t k = 0; k < e->out_total; k++) e->index[k] = (int32_t)(asked[k] - range.begin);
    }
    un_free(ctx, asked);
    return status;
}

un_status un_exchange_create_halo(un_context *ctx, un_range range, const int64_t *wanted,
                                  int64_t wanted_count, un_exchange **exchange)
{
    int64_t *begins = NULL;
    *exchange = NULL;
    un_status status = find_begins(ctx, range, &begins);
    if (status == UN_OK) {
        status = allocate(ctx, exchange);
        if (status == UN_OK) status = count_wanted(*exchange, begins, wanted, wanted_count);
        status = settle(ctx, exchange, status);
    }
    un_free(ctx, begins);
    UN_TRY(status);
    swap_counts(*exchange, (*exchange)->out_count, (*exchange)->in_count);
    status = take_requests(*exchange, range, wanted);
    if (status != UN_OK) {
        un_exchange_destroy(*exchange);
        *exchange = NULL;
    }
    return status;
}

/* ---- running a plan ---- */

static uint64_t hash_fields(const un_field *fields, int32_t count)
{
    uint64_t hash = (uint64_t)count;
    for (int32_t f = 0; f < count; f++) {
        for (const char *c = fields[f].name; *c; c++) hash = un_hash64(hash ^ (unsigned char)*c);
        hash = un_hash64(hash ^ fields[f].size);
    }
    return hash;
}

/* A message is the hash, then each array's elements; none if there are no elements. */
static size_t message_bytes(int64_t count, size_t element)
{
    return count > 0 ? sizeof(uint64_t) + (size_t)count * element : 0;
}

static un_status make_room(un_exchange *e, size_t element)
{
    size_t out = 0, in = 0;
    for (int32_t r = 0; r < un_rank_count(e->ctx); r++) {
        out += e->out_bytes[r] = message_bytes(e->out_count[r], element);
        in += e->in_bytes[r] = message_bytes(e->in_count[r], element);
    }
    UN_TRY(un_array_need(e->ctx, (void **)&e->out, &e->out_room, out + 1, 1));
    return un_array_need(e->ctx, (void **)&e->in, &e->in_room, in + 1, 1);
}

/* Constant sizes, so that copies become single instructions. */
static inline void pick(char *to, const char *from, const int32_t *index, int64_t count,
                        size_t size)
{
    for (int64_t k = 0; k < count; k++, to += size)
        memcpy(to, from + (size_t)index[k] * size, size);
}

static void pack_field(char *to, const un_field *field, const int32_t *index, int64_t count)
{
    switch (field->size) {
    case 1:
        pick(to, field->from, index, count, 1);
        break;
    case 4:
        pick(to, field->from, index, count, 4);
        break;
    case 8:
        pick(to, field->from, index, count, 8);
        break;
    default:
        pick(to, field->from, index, count, field->size);
    }
}

static void pack(un_exchange *e, uint64_t hash, const un_field *fields, int32_t field_count)
{
    char *to = e->out;
    const int32_t *index = e->index;
    for (int32_t r = 0; r < un_rank_count(e->ctx); index += e->out_count[r], r++) {
        if (e->out_count[r] == 0) continue;
        memcpy(to, &hash, sizeof hash);
        to += sizeof hash;
        for (int32_t f = 0; f < field_count; f++) {
            pack_field(to, &fields[f], index, e->out_count[r]);
            to += (size_t)e->out_count[r] * fields[f].size;
        }
    }
}

static un_status unpack(un_exchange *e, uint64_t hash, const un_field *fields, int32_t field_count)
{
    const char *from = e->in;
    size_t at = 0;
    for (int32_t r = 0; r < un_rank_count(e->ctx); r++) {
        size_t count = (size_t)e->in_count[r];
        uint64_t theirs;
        if (count == 0) continue;
        memcpy(&theirs, from, sizeof theirs);
        if (theirs != hash)
            return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                           "ranks %d and %d are out of step: rank %d expects `%s` and %d more "
                           "arrays, rank %d sends others",
                           un_rank(e->ctx), r, un_rank(e->ctx), fields[0].name, field_count - 1, r);
        from += sizeof theirs;
        for (int32_t f = 0; f < field_count; f++) {
            size_t size = fields[f].size;
            memcpy((char *)fields[f].to + at * size, from, count * size);
            from += count * size;
        }
        at += count;
    }
    return UN_OK;
}

static void count_sent(un_exchange *e)
{
    un_ranks *ranks = un_context_ranks(e->ctx);
    for (int32_t r = 0; r < un_rank_count(e->ctx); r++) {
        if (r == un_rank(e->ctx) || e->out_bytes[r] == 0) continue;
        e->bytes += e->out_bytes[r];
        ranks->sent.elements += (double)e->out_bytes[r];
        ranks->sent.messages++;
    }
}

un_status un_exchange_reserve(un_exchange *e, size_t element)
{
    UN_TRY(make_room(e, element));
    e->element = element;
    return UN_OK;
}

un_status un_exchange_run(un_exchange *e, const un_field *fields, int32_t field_count)
{
    UN_ASSERT(field_count >= 1 && field_count <= UN_FIELDS_MAX);
    size_t element = 0;
    for (int32_t f = 0; f < field_count; f++) element += fields[f].size;
    un_status status = make_room(e, element);
    if (element > e->element) { /* else nothing can have failed, anywhere */
        UN_TRY(un_ranks_agree(e->ctx, status));
        e->element = element;
    }
    uint64_t hash = hash_fields(fields, field_count);
    pack(e, hash, fields, field_count);
    send_letters(e, e->out, e->in);
    count_sent(e);
    return unpack(e, hash, fields, field_count); /* a rank that is out of step ends all */
}

/* ---- once: rows of systems ---- */

/* counted: e->in_count is there already. */
static un_status move_once(un_exchange *e, const void *from, const int32_t *to, int64_t count,
                           size_t size, bool counted, void **in)
{
    un_context *ctx = e->ctx;
    UN_TRY(list_copies(e, NULL, to, count));
    if (!counted) swap_counts(e, e->in_count, e->out_count);
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        e->in_total += e->in_count[r];
        e->out_bytes[r] = (size_t)e->out_count[r] * size;
        e->in_bytes[r] = (size_t)e->in_count[r] * size;
    }
    *in = un_alloc(ctx, (size_t)e->in_total + 1, size);
    UN_TRY(un_array_need(ctx, (void **)&e->out, &e->out_room, (size_t)e->out_total * size + 1, 1));
    if (!*in) return UN_ERROR_MEMORY;
    for (int64_t k = 0; k < e->out_total; k++)
        memcpy(e->out + (size_t)k * size, (const char *)from + (size_t)e->index[k] * size, size);
    send_letters(e, e->out, *in);
    un_ranks *ranks = un_context_ranks(ctx);
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        if (r == un_rank(ctx) || e->out_bytes[r] == 0) continue;
        ranks->halo_bytes += e->out_bytes[r];
        ranks->sent.messages++;
    }
    return UN_OK;
}

un_status un_exchange_once(un_context *ctx, const void *from, const int32_t *to, int64_t count,
                           size_t size, void **in, int64_t *in_count)
{
    un_exchange *e = NULL;
    *in = NULL;
    un_status status = allocate(ctx, &e);
    if (status == UN_OK) status = move_once(e, from, to, count, size, false, in);
    *in_count = status == UN_OK ? e->in_total : 0;
    un_exchange_destroy(e);
    return status;
}

un_status un_exchange_send(un_context *ctx, const char *name, const void *from, const int32_t *to,
                           int64_t count, size_t size, void **in, int64_t *in_count)
{
    un_exchange *e = NULL;
    *in = NULL;
    *in_count = 0;
    UN_TRY(un_exchange_create_moves(ctx, to, count, &e));
    int64_t arriving = un_exchange_count(e);
    *in = un_alloc(ctx, (size_t)arriving + 1, size);
    un_status status = un_ranks_agree(ctx, *in ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = un_exchange_run(e, &(un_field){name, from, *in, size}, 1);
    un_exchange_destroy(e);
    if (status != UN_OK) un_free(ctx, *in);
    if (status != UN_OK)
        *in = NULL;
    else
        *in_count = arriving;
    return status;
}

un_status un_exchange_reply(un_context *ctx, const void *from, const int32_t *to, int64_t count,
                            size_t size, const int32_t *from_rank, int64_t from_count, void **in)
{
    un_exchange *e = NULL;
    *in = NULL;
    un_status status = allocate(ctx, &e);
    for (int64_t k = 0; status == UN_OK && k < from_count; k++)
        if (from_rank[k] >= 0) e->in_count[from_rank[k]]++;
    if (status == UN_OK) status = move_once(e, from, to, count, size, true, in);
    un_exchange_destroy(e);
    return status;
}

/* ---- rounds: errands ---- */

un_status un_exchange_create_rounds(un_context *ctx, un_exchange **exchange)
{
    return allocate(ctx, exchange);
}

/* What each rank hears from each: how many elements come, how many that rank sends in all, and
 * whether it has something to do; -1: it has failed. */
#define BUSY ((int64_t)1 << 31)

static int64_t count_all(un_exchange *e, bool failed, bool *any)
{
    int64_t *said = (int64_t *)e->out_bytes, all = 0;
    int32_t ranks = un_rank_count(e->ctx);
    for (int32_t r = 0; r < ranks; r++)
        said[r] = failed ? -1 : e->out_total << 32 | (*any ? BUSY : 0) | e->out_count[r];
    swap_counts(e, e->in_count, said);
    e->in_total = 0;
    for (int32_t r = 0; r < ranks; r++) {
        failed |= e->in_count[r] < 0;
        *any |= (e->in_count[r] & BUSY) != 0;
        all += e->in_count[r] >> 32;
        e->in_count[r] &= BUSY - 1;
        e->in_total += e->in_count[r];
    }
    return failed ? -1 : all;
}

/* What arrives has to be put somewhere, even if there is no memory for it. */
static void take_letters(un_exchange *e, size_t size)
{
    e->late =
        un_array_need(e->ctx, (void **)&e->in, &e->in_room, (size_t)e->in_total * size + 1, 1);
    char *in = e->late == UN_OK ? e->in : malloc((size_t)e->in_total * size + 1);
    if (!in) un_ranks_abort(un_context_ranks(e->ctx), 1);
    send_letters(e, e->out, in);
    if (in != e->in) free(in);
    if (e->late != UN_OK) e->in_total = 0;
}

un_status un_exchange_round(un_exchange *e, un_status status, un_round *round)
{
    un_context *ctx = e->ctx;
    size_t size = round->size;
    int64_t count = round->count;
    UN_ASSERT(sizeof *e->out_bytes == sizeof *e->in_count && count <= INT32_MAX);
    un_free(ctx, e->index);
    e->index = NULL;
    memset(e->out_count, 0, (size_t)un_rank_count(ctx) * sizeof *e->out_count);
    if (status == UN_OK) status = e->late;
    e->late = UN_OK;
    if (status == UN_OK) status = list_copies(e, NULL, round->to, count);
    if (status == UN_OK)
        status =
            un_array_need(ctx, (void **)&e->out, &e->out_room, (size_t)e->out_total * size + 1, 1);
    round->any |= count > 0;
    round->all = count_all(e, status != UN_OK, &round->any);
    if (round->all < 0) return un_ranks_agree(ctx, status);
    round->in = NULL;
    round->in_count = 0;
    if (round->all == 0) return UN_OK;
    for (int32_t r = 0; r < un_rank_count(ctx); r++) {
        e->out_bytes[r] = (size_t)e->out_count[r] * size;
        e->in_bytes[r] = (size_t)e->in_count[r] * size;
    }
    for (int64_t k = 0; k < e->out_total; k++)
        memcpy(e->out + (size_t)k * size, (const char *)round->from + (size_t)e->index[k] * size,
               size);
    take_letters(e, size);
    count_sent(e);
    round->in = e->in;
    round->in_count = e->in_total;
    return UN_OK;
}

un_status un_exchange_late(const un_exchange *e)
{
    return e->late;
}
