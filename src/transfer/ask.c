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

/* Answers what has arrived, and sends the answers back. */
static un_status send_back(const asking *a, const letter *asked, int64_t count, reply **replies,
                           int64_t *reply_count)
{
    un_context *ctx = a->ctx;
    reply *mine = un_arena_alloc(a->arena, (size_t)count + 1, sizeof *mine);
    int32_t *to = un_arena_alloc(a->arena, (size_t)count + 1, sizeof *to);
    UN_TRY(un_ranks_agree(ctx, mine && to ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < count; k++) {
        answer_one(&mine[k], &asked[k], a);
        to[k] = asked[k].from;
    }
    un_exchange *e;
    UN_TRY(un_exchange_create_moves(ctx, to, count, &e));
    *reply_count = un_exchange_count(e);
    *replies = un_arena_alloc(a->arena, (size_t)*reply_count + 1, sizeof **replies);
    un_status status = un_ranks_agree(ctx, *replies ? UN_OK : UN_ERROR_MEMORY);
    un_field field = {"replies", mine, *replies, sizeof *mine};
    if (status == UN_OK) status = un_exchange_run(e, &field, 1);
    un_exchange_destroy(e);
    return status;
}

/* One round: questions go to ranks to[k], -1: to none. */
static un_status ask(const asking *a, un_tet_question *questions, int64_t count, const int32_t *to,
                     const un_vec3 *seat, bool guessed)
{
    un_context *ctx = a->ctx;
    letter *mine = un_arena_alloc(a->arena, (size_t)count + 1, sizeof *mine), *asked;
    UN_TRY(un_ranks_agree(ctx, mine ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < count; k++)
        mine[k] = (letter){seat ? seat[k] : questions[k].x, guessed ? questions[k].tet : -1,
                           un_rank(ctx), (int32_t)k, 0};
    un_exchange *e;
    UN_TRY(un_exchange_create_moves(ctx, to, count, &e));
    int64_t asked_count = un_exchange_count(e), reply_count = 0;
    asked = un_arena_alloc(a->arena, (size_t)asked_count + 1, sizeof *asked);
    un_status status = un_ranks_agree(ctx, asked ? UN_OK : UN_ERROR_MEMORY);
    un_field field = {"questions", mine, asked, sizeof *mine};
    if (status == UN_OK) status = un_exchange_run(e, &field, 1);
    un_exchange_destroy(e);
    UN_TRY(status);
    reply *replies;
    UN_TRY(send_back(a, asked, asked_count, &replies, &reply_count));
    for (int64_t k = 0; k < reply_count; k++) {
        un_tet_question *q = &questions[replies[k].number];
        if (!replies[k].found) continue;
        q->found = true;
        q->rank = to[replies[k].number];
        q->tet = replies[k].tet;
        memcpy(q->value, replies[k].value, sizeof q->value);
    }
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

un_status un_tet_ask(un_context *ctx, un_arena *arena, const un_tets *mesh,
                     const un_tet_field *fields, int32_t field_count, un_tet_question *questions,
                     int64_t count)
{
    asking a = {ctx, arena, mesh, fields, field_count};
    const un_tree_share *tree = mesh->share->tree;
    int64_t guesses = 0, left = 0;
    int32_t *to = un_arena_alloc(arena, (size_t)count + 1, sizeof *to);
    UN_TRY(un_ranks_agree(ctx, to ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < count; k++) {
        questions[k].found = false;
        to[k] = questions[k].tet >= 0 ? questions[k].rank : -1;
        guesses += to[k] >= 0;
    }
    if (un_ranks_total(ctx, guesses) > 0) UN_TRY(ask(&a, questions, count, to, NULL, true));
    for (int64_t k = 0; k < count; k++) left += !questions[k].found;
    if (un_ranks_total(ctx, left) == 0) return UN_OK;
    un_vec3 *seat = NULL;
    if (mesh->parted) UN_TRY(find_seats(&a, questions, count, &seat));
    for (int64_t k = 0; k < count; k++)
        to[k] = questions[k].found
                    ? -1
                    : un_ranks_owner(tree->first, un_rank_count(ctx),
                                     un_tets_place_key(mesh, seat ? seat[k] : questions[k].x));
    return ask(&a, questions, count, to, seat, false);
}
