/* Which particles merge, over ranks: the pairs of one rank (pairs.c), by neighbours alone.
 *
 * Taking the closest of all wishes first comes to this: a wish comes true as soon as it is the
 * first, of those that are left, of both of its particles. The rank of a particle knows all wishes
 * that concern it, its own and those that others send. So wishes among its own particles are up to
 * it, unless one before them waits for another rank; and of a wish across a border both ranks tell
 * each other whether it is the first of their particle, waits, or has gone, until none is left
 * between them. The first of all wishes that are left never waits, so that ends.
 *
 * What rounding takes from a volume is carried to the next pair, in the order of all. Most volumes
 * are halves of halves, and their sums are exact: such a pair passes on what it gets. All ranks get
 * to know those pairs only that change it. */
#include "particles/pairs.h"

#include <stdlib.h>

/* What a rank says of a wish across a border: a byte. */
enum { WAITS, FIRST, DEAD };

typedef struct edge {
    un_pair_wish wish;
    int32_t rank;  /* of the particle that is not here; this one: both are */
    uint8_t state; /* as above, on this rank */
    bool chosen;
} edge;

/* A pair that changes the carry, or may. */
typedef struct link {
    uint32_t distance, i; /* bits; i: of the wish: both say where it stands among all */
    float vi, vj;
} link;

typedef struct matching {
    un_context *ctx;
    un_arena *arena;
    un_range own;      /* particles of this rank, by their numbers on one rank */
    edge *edges;       /* in the order in which all ranks take them */
    int32_t *live;     /* edges that are left */
    uint8_t *taken;    /* by own particle: TAKEN, BLOCKED */
    un_mail *out, *in; /* by rank of the others */
    char *said, *heard;
    int32_t *at;     /* by rank: its next byte */
    int32_t *across; /* by rank: wishes that are left between it and this one */
    int64_t count, live_count;
    int32_t me, ranks;
} matching;

enum { TAKEN = 1, BLOCKED = 2 };

static uint32_t bits_of(float distance)
{
    uint32_t bits; /* non-negative floats sort like their bits */
    memcpy(&bits, &distance, sizeof bits);
    return bits;
}

static bool is_own(const matching *m, uint32_t q)
{
    return (int64_t)q >= m->own.begin && (int64_t)q < m->own.end;
}

/* ---- wishes that concern this rank's particles ---- */

/* Those that came from ranks before, own ones, those from ranks after: as on one rank, particles
 * ascend. Then the closest first. */
static un_status sort_edges(matching *m, const un_pair_wish *mine, const int32_t *rank_of_j,
                            int64_t count, const edge *in, int64_t in_count)
{
    size_t room = (size_t)(count + in_count) + 1;
    edge *listed = un_arena_alloc(m->arena, room, sizeof *listed);
    uint32_t *keys = un_arena_alloc(m->arena, room, sizeof *keys);
    int32_t *order = un_arena_alloc(m->arena, room, sizeof *order);
    m->edges = un_arena_alloc(m->arena, room, sizeof *m->edges);
    m->live = un_arena_alloc(m->arena, room, sizeof *m->live);
    m->said = un_arena_alloc(m->arena, room, 1);
    m->heard = un_arena_alloc(m->arena, room, 1);
    m->count = 0;
    if (!listed || !keys || !order || !m->edges || !m->live || !m->said || !m->heard)
        return UN_ERROR_MEMORY;
    int64_t k = 0;
    for (; k < in_count && in[k].rank < m->me; k++) listed[m->count++] = in[k];
    for (int64_t n = 0; n < count; n++)
        listed[m->count++] = (edge){.wish = mine[n], .rank = rank_of_j[n]};
    for (; k < in_count; k++) listed[m->count++] = in[k];
    for (int64_t n = 0; n < m->count; n++) keys[n] = bits_of(listed[n].wish.distance);
    UN_TRY(un_parallel_sort(m->ctx, m->arena, order, keys, m->count, 32));
    for (int64_t n = 0; n < m->count; n++) {
        m->edges[n] = listed[order[n]];
        m->live[n] = (int32_t)n;
        if (m->edges[n].rank != m->me) m->across[m->edges[n].rank]++;
    }
    m->live_count = m->count;
    return UN_OK;
}

typedef struct sending {
    int32_t *rank_of_j; /* by wish */
    int32_t *to;        /* by wish: -1: nowhere */
    edge *out;
} sending;

static un_status find_ranks(matching *m, const un_pair_wish *wishes, int64_t count, sending *s)
{
    int64_t *begins;
    UN_TRY(un_ranks_begins(m->ctx, m->own.begin, m->own.total, &begins));
    int32_t r = 0;
    for (int64_t n = 0; n < count; n++) {
        int64_t j = wishes[n].j;
        if (is_own(m, wishes[n].j))
            r = m->me;
        else if (j < begins[r] || j >= begins[r + 1])
            for (r = m->ranks - 1; j < begins[r];) r--; /* of those that begin there, the last */
        s->rank_of_j[n] = r;
        s->to[n] = r == m->me ? -1 : r;
        s->out[n] = (edge){.wish = wishes[n], .rank = m->me};
    }
    un_free(m->ctx, begins);
    return UN_OK;
}

/* Sends wishes to the ranks of their second particles. */
static un_status gather_edges(matching *m, const un_pair_wish *wishes, int64_t count)
{
    size_t room = (size_t)count + 1, ranks = (size_t)m->ranks;
    size_t own = (size_t)(m->own.end - m->own.begin);
    un_exchange *rounds = NULL;
    un_round round = {.count = count, .size = sizeof(edge)};
    sending s = {un_arena_alloc(m->arena, room, sizeof *s.rank_of_j),
                 un_arena_alloc(m->arena, room, sizeof *s.to),
                 un_arena_alloc(m->arena, room, sizeof *s.out)};
    m->taken = un_arena_alloc(m->arena, own + 1, 1);
    m->out = un_arena_alloc(m->arena, ranks, sizeof *m->out);
    m->in = un_arena_alloc(m->arena, ranks, sizeof *m->in);
    m->at = un_arena_alloc(m->arena, ranks, sizeof *m->at);
    m->across = un_arena_alloc(m->arena, ranks, sizeof *m->across);
    un_status status = un_exchange_create_rounds(m->ctx, &rounds);
    if (!s.rank_of_j || !s.to || !s.out || !m->taken || !m->out || !m->in || !m->at || !m->across)
        status = UN_ERROR_MEMORY;
    status = un_ranks_agree(m->ctx, status);
    if (status == UN_OK) {
        memset(m->taken, 0, own);
        memset(m->across, 0, ranks * sizeof *m->across);
        status = find_ranks(m, wishes, count, &s);
    }
    round.from = s.out;
    round.to = s.to;
    if (status == UN_OK) status = un_exchange_round(rounds, UN_OK, &round);
    if (status == UN_OK) {
        status = un_exchange_late(rounds);
        if (status == UN_OK)
            status = sort_edges(m, wishes, s.rank_of_j, count, round.in, round.in_count);
        status = un_ranks_agree(m->ctx, status);
    }
    un_exchange_destroy(rounds);
    return status;
}

/* ---- who merges ---- */

static uint8_t marks(const matching *m, uint32_t q)
{
    return is_own(m, q) ? m->taken[q - m->own.begin] : 0;
}

static void mark(matching *m, uint32_t q, uint8_t how)
{
    if (is_own(m, q)) m->taken[q - m->own.begin] |= how;
}

static void choose(matching *m, edge *e)
{
    e->chosen = true;
    mark(m, e->wish.i, TAKEN);
    mark(m, e->wish.j, TAKEN);
}

/* In the order of all: what can be said of the wishes that are left, as far as this rank knows. */
static void look(matching *m)
{
    for (int64_t k = 0; k < m->live_count; k++) {
        edge *e = &m->edges[m->live[k]];
        uint8_t marked = marks(m, e->wish.i) | marks(m, e->wish.j);
        e->state = marked & TAKEN ? DEAD : marked & BLOCKED ? WAITS : FIRST;
        if (e->state == DEAD) continue;
        if (e->state == FIRST && e->rank == m->me) {
            choose(m, e);
            continue;
        }
        mark(m, e->wish.i, BLOCKED);
        mark(m, e->wish.j, BLOCKED);
    }
}

/* What ranks say of the wishes between them, in the same order on both sides. */
static void tell(matching *m)
{
    int32_t count = 0, byte = 0;
    for (int32_t r = 0; r < m->ranks; r++) {
        m->at[r] = byte;
        if (m->across[r] == 0) continue;
        m->out[count] = (un_mail){r, (size_t)m->across[r], m->said + byte};
        m->in[count++] = (un_mail){r, (size_t)m->across[r], m->heard + byte};
        byte += m->across[r];
    }
    for (int64_t k = 0; k < m->live_count; k++) {
        const edge *e = &m->edges[m->live[k]];
        if (e->rank != m->me) m->said[m->at[e->rank]++] = (char)e->state;
    }
    un_ranks_trade(m->ctx, m->in, count, m->out, count);
    for (int32_t k = 0; k < count; k++)
        m->at[m->in[k].rank] = (int32_t)((char *)m->in[k].data - m->heard);
}

/* Takes what both have said; keeps what is left. */
static void settle(matching *m)
{
    int64_t left = 0;
    for (int64_t k = 0; k < m->live_count; k++) {
        edge *e = &m->edges[m->live[k]];
        bool across = e->rank != m->me;
        uint8_t theirs = across ? (uint8_t)m->heard[m->at[e->rank]++] : e->state;
        bool ends = e->chosen || e->state == DEAD || theirs == DEAD;
        if (across && e->state == FIRST && theirs == FIRST) {
            choose(m, e);
            ends = true;
        }
        if (!ends)
            m->live[left++] = m->live[k];
        else if (across)
            m->across[e->rank]--;
    }
    m->live_count = left;
    for (int64_t q = 0; q < m->own.end - m->own.begin; q++) m->taken[q] &= TAKEN;
}

/* ---- their volumes ---- */

static int compare_links(const void *a, const void *b)
{
    const link *p = a, *q = b;
    if (p->distance != q->distance) return p->distance < q->distance ? -1 : 1;
    return (p->i > q->i) - (p->i < q->i);
}

typedef struct chain {
    link *mine;      /* this rank's pairs, in order */
    float *volume;   /* of these */
    uint8_t *listed; /* all ranks know it */
    int64_t count;
} chain;

static double sum_of(const link *l)
{
    return (double)l->vi + (double)l->vj;
}

/* Volumes, where all know the links that change the carry; those of this rank that change it, too,
 * are to be listed. Returns whether there are any. */
static bool carry_on(const chain *c, const link *all, int64_t all_count)
{
    double carry = 0; /* m3 lost to rounding so far */
    bool more = false;
    for (int64_t k = 0, n = 0; n < c->count; n++) {
        for (; k < all_count && compare_links(&all[k], &c->mine[n]) < 0; k++) {
            double v = sum_of(&all[k]) + carry;
            carry = v - (double)(float)v;
        }
        double v = sum_of(&c->mine[n]) + carry;
        c->volume[n] = (float)v;
        if (c->listed[n] || v - (double)c->volume[n] == carry) continue;
        c->listed[n] = 1;
        more = true;
    }
    return more;
}

static un_status list_links(matching *m, const chain *c, link *room, link **all, int64_t *count)
{
    int64_t listed = 0;
    void *list;
    for (int64_t n = 0; n < c->count; n++)
        if (c->listed[n]) room[listed++] = c->mine[n];
    UN_TRY(un_ranks_list(m->ctx, room, listed, sizeof *room, &list, count));
    *all = list;
    qsort(list, (size_t)*count, sizeof **all, compare_links);
    return UN_OK;
}

static un_status find_volumes(matching *m, const chain *c, link *room)
{
    carry_on(c, NULL, 0);
    for (bool more = true; more;) {
        link *all;
        int64_t count;
        UN_TRY(list_links(m, c, room, &all, &count));
        more = carry_on(c, all, count);
        un_free(m->ctx, all);
        if (count == 0) return UN_OK;
        more = un_ranks_max(m->ctx, more) > 0;
    }
    return UN_OK;
}

/* ---- all of it ---- */

static un_status list_pairs(matching *m, un_pair **pairs, int64_t *pair_count)
{
    size_t room = (size_t)m->count + 1;
    chain c = {un_arena_alloc(m->arena, room, sizeof *c.mine),
               un_arena_alloc(m->arena, room, sizeof *c.volume), un_arena_alloc(m->arena, room, 1),
               0};
    link *list = un_arena_alloc(m->arena, room, sizeof *list);
    *pairs = un_arena_alloc(m->arena, room, sizeof **pairs);
    *pair_count = 0;
    bool able = c.mine && c.volume && c.listed && list && *pairs;
    UN_TRY(un_ranks_agree(m->ctx, able ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t n = 0; n < m->count; n++) {
        const un_pair_wish *w = &m->edges[n].wish;
        if (!m->edges[n].chosen) continue;
        un_pair pair = {.lower = w->i < w->j ? w->i : w->j,
                        .upper = w->i < w->j ? w->j : w->i,
                        .rank = m->edges[n].rank,
                        .asked_there = !is_own(m, w->i)};
        (*pairs)[(*pair_count)++] = pair;
        if (!is_own(m, pair.lower)) continue;
        c.listed[c.count] = 0;
        c.mine[c.count++] = (link){bits_of(w->distance), w->i, w->vi, w->vj};
    }
    UN_TRY(find_volumes(m, &c, list));
    for (int64_t n = 0, k = 0; n < *pair_count; n++)
        if (is_own(m, (*pairs)[n].lower)) (*pairs)[n].volume = c.volume[k++];
    return UN_OK;
}

un_status un_pairs_choose_ranks(un_context *ctx, un_arena *arena, un_range own,
                                const un_pair_wish *wishes, int64_t count, un_pair **pairs,
                                int64_t *pair_count)
{
    matching m = {
        .ctx = ctx, .arena = arena, .own = own, .me = un_rank(ctx), .ranks = un_rank_count(ctx)};
    UN_TRY(gather_edges(&m, wishes, count));
    while (m.live_count > 0) {
        look(&m);
        tell(&m);
        settle(&m);
    }
    return list_pairs(&m, pairs, pair_count);
}

/* ---- what one rank has to know of another's ---- */

/* One message to or from each rank that has any, of `at[r]` partners; at[r] becomes the first of
 * them. Returns the number of ranks. */
static int32_t address(un_mail *mail, un_partner *partners, int32_t *at, int32_t ranks)
{
    int32_t count = 0, next = 0;
    for (int32_t r = 0; r < ranks; r++) {
        int32_t n = at[r];
        at[r] = next;
        if (n > 0) mail[count++] = (un_mail){r, (size_t)n * sizeof *partners, partners + next};
        next += n;
    }
    return count;
}

un_status un_pairs_address(un_context *ctx, un_arena *arena, un_pairs_post *post, un_range own,
                           const un_pair *pairs, int64_t count)
{
    size_t room = (size_t)count + 1, ranks = (size_t)un_rank_count(ctx);
    int32_t *at[2], me = un_rank(ctx);
    for (int side = 0; side < 2; side++) {
        at[side] = un_arena_alloc(arena, ranks, sizeof *at[side]);
        if (!at[side]) return UN_ERROR_MEMORY;
        memset(at[side], 0, ranks * sizeof *at[side]);
    }
    post->slot = un_arena_alloc(arena, room, sizeof *post->slot);
    post->out = un_arena_alloc(arena, room, sizeof *post->out);
    post->in = un_arena_alloc(arena, room, sizeof *post->in);
    post->out_mail = un_arena_alloc(arena, ranks, sizeof *post->out_mail);
    post->in_mail = un_arena_alloc(arena, ranks, sizeof *post->in_mail);
    if (!post->slot || !post->out || !post->in || !post->out_mail || !post->in_mail)
        return UN_ERROR_MEMORY;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t n = 0; n < count; n++) {
            const un_pair *p = &pairs[n];
            int64_t lower = p->lower;
            bool in = lower >= own.begin && lower < own.end;
            bool sent = p->rank != me && p->asked_there == in;
            if (pass == 0 || sent) post->slot[n] = sent ? at[in][p->rank]++ : -1;
        }
        if (pass == 1) break;
        post->out_ranks = address(post->out_mail, post->out, at[0], (int32_t)ranks);
        post->in_ranks = address(post->in_mail, post->in, at[1], (int32_t)ranks);
    }
    return UN_OK;
}

void un_pairs_send(un_context *ctx, const un_pairs_post *post)
{
    un_ranks_trade(ctx, post->in_mail, post->in_ranks, post->out_mail, post->out_ranks);
}
