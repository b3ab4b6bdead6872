/* Velocities beyond the leaves that a rank knows, for paths that lead there.
 *
 * An errand goes to the rank of the leaf where its path was last: that one knows in which leaf the
 * path is now, unless another rank must say whether a thin wall is next to that leaf. It has the
 * velocity if it knows what is around that leaf, else the errand goes on to the leaf's rank, which
 * does. Answers return to the rank that asked. What is found is what one
 * rank finds: leaves are the same, and each of eight points has its velocity whatever the others
 * are. */
#include "advect/leaves_ranks.h"

enum { STEP, ENTER, HERE, ANSWER };

typedef struct errand {
    double v[3];               /* where; the answer: its velocity */
    int32_t leaf;              /* STEP, ENTER: where the path was last; HERE: that holds it */
    int32_t next;              /* ENTER: that holds it if no thin wall is near */
    int32_t state, slot, rank; /* query `slot` of that rank */
} errand;

typedef struct asking {
    un_context *ctx;
    const un_leaf_paths *paths;
    un_leaf_query *query;
    errand *out;
    int32_t *to;
    int64_t count; /* that go out */
    size_t room_out, room_to;
} asking;

static un_status send(asking *s, const errand *e, int32_t to)
{
    size_t room = (size_t)s->count + 1;
    UN_TRY(un_array_reserve(s->ctx, (void **)&s->out, &s->room_out, room, sizeof *s->out));
    UN_TRY(un_array_reserve(s->ctx, (void **)&s->to, &s->room_to, room, sizeof *s->to));
    s->out[s->count] = *e;
    s->to[s->count++] = to;
    return UN_OK;
}

static int32_t owner_of(const un_leaves *m, int32_t leaf)
{
    const int64_t *first = m->share->leaf;
    int32_t r = un_rank(m->share->ctx);
    if (leaf >= first[r] && leaf < first[r + 1]) return r;
    for (r = 0; leaf >= first[r + 1];) r++;
    return r;
}

static un_vec3 place_of(const errand *e)
{
    return un_v3(e->v[0], e->v[1], e->v[2]);
}

/* Finds the leaf; true if this rank can answer, else the next leaf whose rank is to be asked. */
static bool find_leaf(const un_leaves *m, errand *e, int32_t *next)
{
    if (e->state == STEP) {
        int32_t there = un_leaf_of_path(m, e->leaf, place_of(e));
        if (there < 0) {
            *next = e->next = ~there;
            e->state = ENTER;
            return false;
        }
        e->leaf = there;
    } else if (e->state == ENTER && !m->thin[e->next]) {
        e->leaf = e->next;
    }
    e->state = HERE;
    *next = e->leaf;
    return un_leaves_knows(m, e->leaf, 1);
}

/* Up to eight at once. */
static un_status answer(asking *s, un_flow_cache *cache, const errand *e, int count)
{
    un_eight x, u;
    int32_t leaf[8];
    for (int n = 0; n < 8; n++) {
        const errand *from = &e[n < count ? n : count - 1];
        leaf[n] = from->leaf;
        for (int a = 0; a < 3; a++) x.of[a][n] = from->v[a];
    }
    un_flow_cache_eight(&u, cache, leaf, &x, NULL, NULL);
    for (int n = 0; n < count; n++) {
        errand back = e[n];
        back.state = ANSWER;
        for (int a = 0; a < 3; a++) back.v[a] = u.of[a][n];
        UN_TRY(send(s, &back, back.rank));
    }
    return UN_OK;
}

static un_status run_errands(asking *s, const errand *in, int64_t count)
{
    const un_leaves *m = s->paths->flow->leaves;
    errand batch[8];
    int batched = 0;
    un_flow_cache cache;
    un_flow_cache_init(&cache, s->paths->flow);
    s->count = 0;
    for (int64_t i = 0; i < count; i++) {
        errand e = in[i];
        int32_t next;
        if (e.state == ANSWER) {
            un_leaf_query *q = &s->query[e.slot];
            memcpy(q->v, e.v, sizeof q->v);
            q->leaf = e.leaf;
        } else if (find_leaf(m, &e, &next)) {
            batch[batched++] = e;
            if (batched < 8) continue;
            UN_TRY(answer(s, &cache, batch, 8));
            batched = 0;
        } else {
            UN_TRY(send(s, &e, owner_of(m, next)));
        }
    }
    return batched > 0 ? answer(s, &cache, batch, batched) : UN_OK;
}

static un_status send_queries(asking *s, int64_t count)
{
    const un_leaves *m = s->paths->flow->leaves;
    for (int64_t i = 0; i < count; i++) {
        const un_leaf_query *q = &s->query[i];
        errand e = {.leaf = q->leaf, .state = STEP, .slot = (int32_t)i, .rank = un_rank(s->ctx)};
        memcpy(e.v, q->v, sizeof e.v);
        if (q->wanted) UN_TRY(send(s, &e, owner_of(m, e.leaf)));
    }
    return UN_OK;
}

un_status un_leaf_paths_ask(un_context *ctx, const un_leaf_paths *paths, un_leaf_query *query,
                            int64_t count)
{
    asking s = {.ctx = ctx, .paths = paths, .query = query};
    un_exchange *rounds;
    UN_TRY(un_exchange_create_rounds(ctx, &rounds));
    un_status status = send_queries(&s, count);
    for (int64_t all = 1; all > 0;) {
        un_round round = {.from = s.out, .to = s.to, .count = s.count, .size = sizeof *s.out};
        status = un_exchange_round(rounds, status, &round);
        if (status != UN_OK) break;
        all = round.all;
        status = run_errands(&s, round.in, round.in_count);
    }
    un_exchange_destroy(rounds);
    un_free(ctx, s.out);
    un_free(ctx, s.to);
    return status;
}
