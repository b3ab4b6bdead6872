/* Distances over ranks: walks that leave a rank's own surface.
 *
 * A rank has the triangles around its own nodes. All triangles around a vertex are known to the
 * rank of a node that the vertex lies on, or whose edge it lies on. A walk that comes to a vertex
 * of others goes on there as an errand, which passes from rank to rank and comes home when it has
 * ended; so does one that starts from a neighbour's point in a triangle of another rank. Triangles
 * are tried in the order of one rank, so walks end at the same points. Nothing grows with the
 * scene: an errand is 96 bytes, and deep liquid and air, whose nodes all look far, are coarse.
 *
 * The triangle before a step needs no name for the next rank: it would try it again, and find
 * nothing nearer. */
#include "surface/distance.h"

/* What is left to do, and that nothing is. */
enum { AROUND_VERTEX, FROM_TRIANGLE, GO_ON, ENDED };

/* The nodes, on one rank, of the edge that a vertex lies on; twice the same: it lies on the node.
 */
typedef struct vertex_name {
    uint32_t end[2];
} vertex_name;

typedef struct errand {
    un_vec3 p, x;
    double square;
    vertex_name at[2];      /* where to go on: a corner, or the edge from it to the second */
    int32_t home, triangle; /* that the best point lies in */
    int32_t from, node;     /* who asks for which */
    int32_t step, task;
} errand;

typedef struct un_distance_mail {
    un_exchange *rounds;
    errand *out, *in;
    int32_t *to; /* by errand in `out`: -1 none */
    size_t out_room, to_room;
    int64_t out_count, in_count;
    un_distances *s;
} mail;

un_status un_distance_ranks_begin(un_context *ctx, un_arena *arena, un_distances *s)
{
    const un_cut *cut = s->cut;
    size_t nodes = (size_t)s->mesh->node_count + 1, own = (size_t)(s->own.end - s->own.begin) + 1;
    s->fresh = un_arena_alloc(arena, nodes, 1);
    s->home = un_arena_alloc(arena, nodes, sizeof *s->home);
    s->found_home = un_arena_alloc(arena, own, sizeof *s->found_home);
    s->stopped = un_arena_alloc(arena, own, 1);
    s->walks.partial = un_arena_alloc(arena, (size_t)cut->vertex_count + 1, 1);
    s->mail = un_arena_alloc(arena, 1, sizeof *s->mail);
    if (s->mail) *s->mail = (mail){.s = s};
    if (!s->fresh || !s->home || !s->found_home || !s->stopped || !s->walks.partial || !s->mail)
        return UN_ERROR_MEMORY;
    memset(s->fresh, 0, nodes);
    memset(s->home, 0, nodes * sizeof *s->home);
    memset(s->stopped, 0, own);
    for (int32_t v = 0; v < cut->vertex_count; v++) {
        int32_t n = un_cut_next_to(cut, v), a = n < 0 ? cut->from[v] : n,
                b = n < 0 ? cut->to[v] : n;
        s->walks.partial[v] =
            (a < s->own.begin || a >= s->own.end) && (b < s->own.begin || b >= s->own.end);
    }
    return un_exchange_create_rounds(ctx, &s->mail->rounds);
}

void un_distance_ranks_end(un_context *ctx, un_distances *s)
{
    mail *m = s->mail;
    if (!m) return;
    un_exchange_destroy(m->rounds);
    un_free(ctx, m->out);
    un_free(ctx, m->to);
}

/* ---- names of vertices ---- */

static vertex_name name_of(const un_distances *s, int32_t v)
{
    const un_cut *cut = s->cut;
    if (v < 0) return (vertex_name){{UN_TET_SHARE_NOWHERE, UN_TET_SHARE_NOWHERE}};
    int32_t node = un_cut_next_to(cut, v);
    int32_t a = node < 0 ? cut->from[v] : node, b = node < 0 ? cut->to[v] : node;
    return (vertex_name){
        {un_tet_share_number(s->mesh->share, a), un_tet_share_number(s->mesh->share, b)}};
}

static bool same_name(vertex_name a, vertex_name b)
{
    return a.end[0] == b.end[0] && a.end[1] == b.end[1];
}

/* The rank that knows all triangles around it: of its node, or of the lesser one of its edge. */
static int32_t owner_of(const un_distances *s, int32_t v)
{
    int32_t node = un_cut_next_to(s->cut, v);
    return un_tets_node_owner(s->mesh, s->mesh->share->tree, node < 0 ? s->cut->from[v] : node);
}

/* The vertex of that name, where owner_of is this rank. */
static int32_t find_vertex(const un_distances *s, vertex_name name)
{
    const un_tet_share *share = s->mesh->share;
    int32_t n = (int32_t)(name.end[0] - share->nodes.begin) + share->node_begin;
    int32_t found = -1;
    for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1] && found < 0; q++) {
        int32_t m = s->graph->to[q];
        if (s->cut->liquid[m] == s->cut->liquid[n]) continue;
        int32_t v = un_cut_vertex(s->cut, n, m);
        if (same_name(name_of(s, v), name)) found = v;
    }
    UN_ASSERT(found >= 0);
    return found;
}

/* A corner of the triangles around a vertex; -2: none has that name. */
static int32_t find_beside(const un_distances *s, int32_t vertex, vertex_name name)
{
    const un_walks *w = &s->walks;
    for (int32_t q = w->first[vertex]; q < w->first[vertex + 1]; q++)
        for (int32_t c = 0; c < 3; c++) {
            int32_t v = s->cut->triangle[w->around[q]][c];
            if (same_name(name_of(s, v), name)) return v;
        }
    return -2;
}

/* ---- errands ---- */

/* What a walk that has stopped leaves to do, and the rank to do it. */
static int32_t stop(const un_distances *s, errand *e, const un_walk *w)
{
    e->x = w->best.x;
    e->square = w->best.square;
    e->home = w->home;
    e->triangle = w->triangle;
    e->step = w->step;
    e->at[0] = name_of(s, w->at[0]);
    e->at[1] = name_of(s, w->at[1]);
    e->task = GO_ON;
    return owner_of(s, w->at[0]);
}

/* Of node n, whose walk does not end here: walks as far as before. */
static int32_t begin_errand(const un_distances *s, errand *e, int32_t n)
{
    un_walk w;
    un_walk_outcome outcome = un_distance_walk(s, n, &w);
    memset(e, 0, sizeof *e);
    e->p = w.p;
    e->from = un_rank(s->mesh->share->ctx);
    e->node = n;
    if (outcome == UN_WALK_STOPPED) return stop(s, e, &w);
    if (outcome == UN_WALK_VERTEX_AWAY) {
        e->task = AROUND_VERTEX;
        e->at[0] = name_of(s, w.at[0]);
        return owner_of(s, w.at[0]);
    }
    e->task = FROM_TRIANGLE;
    e->triangle = w.triangle;
    return w.home;
}

/* Goes on where the walk stopped; the best point's triangle may not be known here. */
static bool go_on(const un_distances *s, const errand *e, un_walk *w)
{
    int32_t a = find_vertex(s, e->at[0]), b = -1;
    w->best = (un_nearest){e->square, e->x, UN_CORNER};
    w->triangle = -1;
    w->step = e->step;
    if (e->at[1].end[0] != UN_TET_SHARE_NOWHERE) b = find_beside(s, a, e->at[1]);
    return b < -1 || un_walk_on(&s->walks, w, a, b);
}

/* Does what this rank can; returns the rank that it goes to. */
static int32_t run_errand(const un_distances *s, errand *e)
{
    un_walk w = {.p = e->p, .home = un_rank(s->mesh->share->ctx)};
    bool ended;
    if (e->task == AROUND_VERTEX)
        ended = un_walk_around(&s->walks, &w, find_vertex(s, e->at[0]));
    else if (e->task == FROM_TRIANGLE)
        ended = un_walk_from(&s->walks, &w, e->triangle);
    else
        ended = go_on(s, e, &w);
    if (w.triangle < 0) w.triangle = e->triangle, w.home = e->home;
    if (!ended) return stop(s, e, &w);
    e->x = w.best.x;
    e->square = w.best.square;
    e->home = w.home;
    e->triangle = w.triangle;
    e->task = ENDED;
    return e->from;
}

static void run_errands(void *arg, int64_t begin, int64_t end)
{
    const mail *m = arg;
    for (int64_t k = begin; k < end; k++) {
        errand *e = &m->in[k];
        if (e->task == ENDED) {
            un_walk w = {
                .best = {e->square, e->x, UN_INSIDE}, .triangle = e->triangle, .home = e->home};
            un_distance_take(m->s, e->node, &w);
        } else {
            m->to[k] = run_errand(m->s, e);
        }
    }
}

static un_status need_out(un_context *ctx, mail *m, int64_t count)
{
    UN_TRY(un_array_need(ctx, (void **)&m->out, &m->out_room, (size_t)count + 1, sizeof *m->out));
    return un_array_need(ctx, (void **)&m->to, &m->to_room, (size_t)count + 1, sizeof *m->to);
}

static un_status list_stopped(un_context *ctx, mail *m)
{
    un_distances *s = m->s;
    int64_t own = s->own.end - s->own.begin, count = 0;
    for (int64_t i = 0; i < own; i++) count += s->stopped[i];
    m->out_count = 0;
    UN_TRY(need_out(ctx, m, count));
    for (int64_t i = 0; i < own; i++) {
        if (!s->stopped[i]) continue;
        s->stopped[i] = 0;
        m->to[m->out_count] = begin_errand(s, &m->out[m->out_count], (int32_t)(s->own.begin + i));
        m->out_count++;
    }
    return UN_OK;
}

/* Errands that have arrived are done as far as they can be, and those that are left go out again.
 */
static un_status answer(un_context *ctx, mail *m)
{
    m->out_count = 0;
    UN_TRY(need_out(ctx, m, m->in_count));
    int64_t left = 0;
    for (int64_t k = 0; k < m->in_count; k++) m->to[k] = -1;
    un_parallel_for(ctx, m->in_count, 64, run_errands, m);
    for (int64_t k = 0; k < m->in_count; k++) {
        if (m->to[k] < 0) continue;
        m->to[left] = m->to[k];
        m->out[left++] = m->in[k];
    }
    m->out_count = left;
    return UN_OK;
}

un_status un_distance_finish(un_context *ctx, un_distances *s, bool *any)
{
    mail *m = s->mail;
    if (!m) return UN_OK;
    bool first = true;
    for (un_status status = list_stopped(ctx, m);; status = answer(ctx, m)) {
        un_round round = {.from = m->out,
                          .to = m->to,
                          .count = m->out_count,
                          .size = sizeof *m->out,
                          .any = first && *any};
        UN_TRY(un_exchange_round(m->rounds, status, &round));
        if (first) *any = round.any;
        first = false;
        if (round.all == 0) return UN_OK;
        m->in = round.in;
        m->in_count = round.in_count;
    }
}
