/* Velocities at places that other ranks know.
 *
 * A place is first looked for in the tet that the question names, at the rank that named it, then
 * by the rank that has the place, or its seat next to thin walls: as on one rank, where a guess
 * that fits is not looked up again and weights are rounded accordingly. */
#include "transfer/transfer.h"

typedef struct letter {
    un_vec3 x;
    int32_t tet, from, number, found;
} letter;

typedef struct reply {
    un_vec3 value[UN_ASKED_MAX];
    int32_t tet, number, found;
} reply;

typedef struct asking {
    un_context *ctx;
    un_arena *arena;
    const un_tets *mesh;
    const un_tet_field *fields;
    int32_t field_count;
    un_exchange *rounds;
    un_status late; /* a failure that other ranks do not know of yet */
} asking;

static void answer_one(reply *r, const letter *l, const asking *a)
{
    un_tets_place place;
    memset(r, 0, sizeof *r);
    r->number = l->number;
    r->found = 1;
    if (l->tet >= 0)
        r->found = un_tets_locate_in(a->mesh, l->tet, l->x, &place);
    else
        un_tets_locate_closed(a->mesh, l->x, &place); /* a seat */
    if (!r->found) return;
    r->tet = place.tet;
    for (int32_t f = 0; f < a->field_count; f++)
        r->value[f] = un_tet_field_at(&a->fields[f], a->mesh, &place);
}

/* Answers to all questions that have arrived. */
static un_status answer_all(const asking *a, const un_round *asked, un_round *replies)
{
    size_t count = (size_t)asked->in_count;
    const letter *letters = asked->in;
    reply *mine = un_arena_alloc(a->arena, count + 1, sizeof *mine);
    int32_t *to = un_arena_alloc(a->arena, count + 1, sizeof *to);
    *replies = (un_round){.from = mine, .to = to, .size = sizeof *mine};
    if (!mine || !to) return UN_ERROR_MEMORY;
    replies->count = asked->in_count;
    for (size_t k = 0; k < count; k++) {
        answer_one(&mine[k], &letters[k], a);
        to[k] = letters[k].from;
    }
    return UN_OK;
}

/* Questions go to ranks to[k], -1: to none. *any: whether there were any. */
static un_status ask(asking *a, un_tet_question *questions, int64_t count, const int32_t *to,
                     const un_vec3 *seat, bool guessed, bool *any)
{
    un_context *ctx = a->ctx;
    letter *mine = un_arena_alloc(a->arena, (size_t)count + 1, sizeof *mine);
    un_status status = mine ? a->late : UN_ERROR_MEMORY;
    for (int64_t k = 0; k < count && mine; k++)
        mine[k] = (letter){seat ? seat[k] : questions[k].x, guessed ? questions[k].tet : -1,
                           un_rank(ctx), (int32_t)k, 0};
    un_round asked = {.from = mine, .to = to, .count = count, .size = sizeof *mine}, replies;
    UN_TRY(un_exchange_round(a->rounds, status, &asked));
    a->late = UN_OK;
    *any = asked.all > 0;
    if (!*any) return UN_OK;
    status = answer_all(a, &asked, &replies);
    UN_TRY(un_exchange_round(a->rounds, status, &replies));
    const reply *in = replies.in;
    for (int64_t k = 0; k < replies.in_count; k++) {
        un_tet_question *q = &questions[in[k].number];
        if (!in[k].found) continue;
        q->found = true;
        q->rank = to[in[k].number];
        q->tet = in[k].tet;
        memcpy(q->value, in[k].value, sizeof q->value);
    }
    a->late = un_exchange_late(a->rounds);
    return UN_OK;
}

/* Of those that are not answered yet. */
static un_status find_seats(const asking *a, const un_tet_question *questions, int64_t count,
                            un_vec3 **seat)
{
    un_vec3 *x = un_arena_alloc(a->arena, 2 * (size_t)count + 1, sizeof *x);
    int64_t left = 0;
    *seat = un_arena_alloc(a->arena, (size_t)count + 1, sizeof **seat);
    UN_TRY(un_ranks_agree(a->ctx, x && *seat ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < count; k++)
        if (!questions[k].found) x[left++] = questions[k].x;
    UN_TRY(un_tets_seats(a->mesh, x, left, x + left, NULL));
    for (int64_t k = 0, n = 0; k < count; k++)
        if (!questions[k].found) (*seat)[k] = x[left + n++];
    return UN_OK;
}

static un_status ask_all(asking *a, un_tet_question *questions, int64_t count)
{
    un_context *ctx = a->ctx;
    const un_tets *mesh = a->mesh;
    const un_tree_share *tree = mesh->share->tree;
    int32_t *to = un_arena_alloc(a->arena, (size_t)count + 1, sizeof *to);
    bool any;
    UN_TRY(un_ranks_agree(ctx, to ? un_exchange_create_rounds(ctx, &a->rounds) : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < count; k++) {
        questions[k].found = false;
        to[k] = questions[k].tet >= 0 ? questions[k].rank : -1;
    }
    UN_TRY(ask(a, questions, count, to, NULL, true, &any));
    un_vec3 *seat = NULL;
    if (mesh->parted) {
        UN_TRY(un_ranks_agree(ctx, a->late));
        UN_TRY(find_seats(a, questions, count, &seat));
    }
    for (int64_t k = 0; k < count; k++)
        to[k] = questions[k].found
                    ? -1
                    : un_ranks_owner(tree->first, un_rank_count(ctx),
                                     un_tets_place_key(mesh, seat ? seat[k] : questions[k].x));
    UN_TRY(ask(a, questions, count, to, seat, false, &any));
    return any ? un_ranks_agree(ctx, a->late) : UN_OK;
}

un_status un_tet_ask(un_context *ctx, un_arena *arena, const un_tets *mesh,
                     const un_tet_field *fields, int32_t field_count, un_tet_question *questions,
                     int64_t count)
{
    asking a = {ctx, arena, mesh, fields, field_count, NULL, UN_OK};
    un_status status = ask_all(&a, questions, count);
    un_exchange_destroy(a.rounds);
    return status;
}
