/* Distances on tets: every node finds the nearest point of the cut surface.
 *
 * A node keeps the triangle its nearest point lies in. From there the point is improved by walking
 * over the surface (tet_walk.c). Nodes of cut tets start from their own cut edges, all others from
 * the best of their neighbours' points, layer by layer away from the surface; then all try their
 * neighbours' points again while that helps. On a plane each walk ends at the foot of the
 * perpendicular, so that a flat surface keeps its distances to round-off on any mesh, near and far;
 * the result is never less than the true distance.
 *
 * This replaces the local solutions of |grad phi| = 1 that are usual on tets: they are exact for
 * flat fronts too, but only of first order where the surface is curved, and need acute angles.
 *
 * Over ranks, each has the surface around its own nodes, and walks that leave it go on elsewhere
 * (distance_ranks.c). After each layer and sweep ghosts get the points of their owners: 21 bytes,
 * some twenty times per level set. */
#include "surface/distance.h"

#include <stdatomic.h>

#define NODE_GRAIN 512

/* Sweeps after the layers: the first over all nodes, later ones over nodes that may still
 * improve. */
#define SWEEPS_MAX 12
/* Smaller gains, as a share of the squared distance, are ignored. */
#define WORTHWHILE 1e-3f

static un_foot make_foot(int32_t triangle, un_vec3 x)
{
    return (un_foot){triangle, {(float)x.x, (float)x.y, (float)x.z}};
}

static inline float foot_square(const un_foot *f, const float p[3])
{
    float dx = p[0] - f->x[0], dy = p[1] - f->x[1], dz = p[2] - f->x[2];
    return dx * dx + dy * dy + dz * dz;
}

/* The sign stays: a liquid node on the surface is just inside it. */
static inline void set_distance(un_distances *s, int32_t n, double square)
{
    float distance = (float)sqrt(square);
    s->phi[n] = s->cut->liquid[n] ? -fmaxf(distance, FLT_MIN) : distance;
}

/* Marks a node for the next layer. All marks are the same, so it does not matter which thread sets
 * one, or how often. */
static inline void mark_node(un_distances *s, int32_t n)
{
    atomic_store_explicit(&s->mark[n], 1, memory_order_relaxed);
}

static void mark_around(un_distances *s, int32_t n)
{
    for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++)
        mark_node(s, s->graph->to[q]);
}

/* ---- walks of nodes ---- */

/* The nearest of the node's own cut edges. */
static int32_t nearest_vertex(const un_distances *s, int32_t n)
{
    const un_cut *cut = s->cut;
    int32_t vertex = -1;
    double least = INFINITY;
    for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++) {
        int32_t m = s->graph->to[q];
        if (cut->liquid[m] == cut->liquid[n]) continue;
        int32_t v = un_cut_vertex(cut, n, m);
        un_vec3 d = un_sub(cut->x[v], s->mesh->x[n]);
        if (un_dot(d, d) < least || vertex < 0) least = un_dot(d, d), vertex = v;
    }
    return vertex;
}

/* The neighbour whose point is nearest to node n, by less than the square root of `least`; -1 none.
 * Written without branches, because half of them would be mispredicted. */
static int32_t best_neighbour(const un_distances *s, int32_t n, float least)
{
    un_vec3 x = s->mesh->x[n];
    float p[3] = {(float)x.x, (float)x.y, (float)x.z};
    int32_t best = -1;
    for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++) {
        int32_t m = s->graph->to[q];
        float square = foot_square(&s->foot[m], p);
        best = square < least ? m : best;
        least = square < least ? square : least;
    }
    return best;
}

/* What a sweep's walk has to be nearer than, squared. */
static float worthwhile(const un_distances *s, int32_t n)
{
    return s->phi[n] * s->phi[n] * (1 - WORTHWHILE);
}

un_walk_outcome un_distance_walk(const un_distances *s, int32_t n, un_walk *w)
{
    bool ended;
    w->p = s->mesh->x[n];
    w->home = s->home ? un_rank(s->mesh->share->ctx) : 0;
    if (s->stage == UN_DISTANCE_START) {
        int32_t vertex = nearest_vertex(s, n);
        w->at[0] = vertex;
        if (s->walks.partial && s->walks.partial[vertex]) return UN_WALK_VERTEX_AWAY;
        ended = un_walk_around(&s->walks, w, vertex);
    } else {
        bool layer = s->stage == UN_DISTANCE_LAYERS;
        int32_t m = best_neighbour(s, n, layer ? FLT_MAX : worthwhile(s, n));
        if (m < 0) return UN_WALK_NONE; /* distances overflowed, or nothing is to be gained */
        w->triangle = s->foot[m].triangle;
        if (s->home && s->home[m] != w->home) {
            w->home = s->home[m];
            return UN_WALK_TRIANGLE_AWAY;
        }
        ended = un_walk_from(&s->walks, w, w->triangle);
    }
    return ended ? UN_WALK_ENDED : UN_WALK_STOPPED;
}

void un_distance_take(un_distances *s, int32_t n, const un_walk *w)
{
    int64_t i = n - s->own.begin;
    if (s->stage == UN_DISTANCE_SWEEPS && !(w->best.square < worthwhile(s, n))) return;
    s->found[i] = make_foot(w->triangle, w->best.x);
    if (s->home) s->found_home[i] = w->home;
    set_distance(s, n, w->best.square);
}

static void find_node(un_distances *s, int32_t n)
{
    un_walk w;
    s->found[n - s->own.begin].triangle = -1;
    un_walk_outcome outcome = un_distance_walk(s, n, &w);
    if (outcome == UN_WALK_ENDED)
        un_distance_take(s, n, &w);
    else if (outcome != UN_WALK_NONE)
        s->stopped[n - s->own.begin] = 1;
}

/* False: nothing was found. */
static bool take_found(un_distances *s, int32_t n)
{
    int64_t i = n - s->own.begin;
    if (s->found[i].triangle < 0) return false;
    s->foot[n] = s->found[i];
    if (s->home) s->home[n] = s->found_home[i];
    return true;
}

/* ---- nodes of cut tets ---- */

static void start_nodes(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t i = begin; i < end; i++) {
        mark_around(s, s->cut->node[i]);
        find_node(s, s->cut->node[i]);
    }
}

static void end_start(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = s->cut->node[i];
        take_found(s, n);
        s->done[n] = 1;
        if (s->fresh) s->fresh[n] = 1;
    }
}

/* ---- layers ---- */

static inline int32_t listed(const un_distances *s, int64_t i)
{
    return (int32_t)s->own.begin + (s->list ? s->list[i] : (int32_t)i);
}

static void find_layer(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t i = begin; i < end; i++) {
        mark_around(s, listed(s, i));
        find_node(s, listed(s, i));
    }
}

static void end_layer(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = listed(s, i);
        take_found(s, n);
        s->done[n] = 1;
        if (s->fresh) s->fresh[n] = 1;
    }
}

/* Marked, and not in a layer yet. */
static void choose_next(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    const uint8_t *mark = (const uint8_t *)s->mark;
    for (int64_t n = begin; n < end; n++) s->next[n] = mark[n] & ~s->done[n];
}

/* ---- sweeps ---- */

/* Tries the neighbours' points again. */
static void improve(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t i = begin; i < end; i++) find_node(s, listed(s, i));
}

/* Their neighbours may now improve too. */
static void end_improvement(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = listed(s, i);
        if (!take_found(s, n)) continue;
        if (s->fresh) s->fresh[n] = 1;
        mark_around(s, n);
    }
}

static void take_marks(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t n = begin; n < end; n++) {
        s->next[n] = ((const uint8_t *)s->mark)[n];
        atomic_store_explicit(&s->mark[n], 0, memory_order_relaxed);
    }
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t n = begin; n < end; n++) {
        s->foot[n] = (un_foot){-1, {INFINITY, INFINITY, INFINITY}};
        s->done[n] = 0;
        atomic_store_explicit(&s->mark[n], 0, memory_order_relaxed);
    }
}

static void clear_phi(void *arg, int64_t begin, int64_t end)
{
    un_distances *s = arg;
    for (int64_t n = begin; n < end; n++) s->phi[n] = s->cut->liquid[n] ? -INFINITY : INFINITY;
}

/* ---- all of it ---- */

static un_status begin_search(un_context *ctx, un_distances *s, un_arena *arena)
{
    size_t nodes = (size_t)s->mesh->node_count + 1, own = (size_t)(s->own.end - s->own.begin) + 1;
    s->foot = un_arena_alloc(arena, nodes, sizeof *s->foot);
    s->found = un_arena_alloc(arena, own, sizeof *s->found);
    s->list_room = un_arena_alloc(arena, own, sizeof *s->list_room);
    s->done = un_arena_alloc(arena, nodes, 1);
    s->next = un_arena_alloc(arena, nodes, 1);
    s->mark = un_arena_alloc(arena, nodes, sizeof *s->mark);
    if (!s->foot || !s->found || !s->list_room || !s->done || !s->next || !s->mark)
        return UN_ERROR_MEMORY;
    UN_TRY(un_walks_build(&s->walks, arena, s->cut));
    return s->mesh->share ? un_distance_ranks_begin(ctx, arena, s) : UN_OK;
}

/* Ghosts get the points of their owners; nodes next to those that changed are marked, as next to
 * others. */
static un_status share_feet(un_distances *s)
{
    const un_tet_share *share = s->mesh->share;
    if (!share) return UN_OK;
    un_field fields[] = {{"foot", s->foot, NULL, sizeof *s->foot},
                         {"home", s->home, NULL, sizeof *s->home},
                         {"fresh", s->fresh, NULL, 1}};
    UN_TRY(un_tets_share(s->mesh, fields, 3));
    for (int32_t k = 0; k < share->ghost_count; k++)
        if (s->fresh[share->ghost[k]]) mark_around(s, share->ghost[k]);
    memset(s->fresh, 0, (size_t)s->mesh->node_count);
    return UN_OK;
}

/* Own nodes that are in `next`. */
static void list_next(un_context *ctx, un_distances *s)
{
    int64_t own = s->own.end - s->own.begin;
    s->list_count = un_cut_list_into(ctx, s->list_room, s->next + s->own.begin, own);
    s->list = s->list_room;
}

static un_status find_start(un_context *ctx, un_distances *s)
{
    s->stage = UN_DISTANCE_START;
    un_parallel_part(ctx, s->cut->own, NODE_GRAIN / 8, start_nodes, s);
    bool any = false;
    UN_TRY(un_distance_finish(ctx, s, &any));
    un_parallel_part(ctx, s->cut->own, NODE_GRAIN, end_start, s);
    return share_feet(s);
}

static un_status find_layers(un_context *ctx, un_distances *s)
{
    s->stage = UN_DISTANCE_LAYERS;
    for (bool any = true; any;) {
        un_parallel_part(ctx, s->own, 8 * NODE_GRAIN, choose_next, s);
        list_next(ctx, s);
        any = s->list_count > 0;
        un_parallel_for(ctx, s->list_count, NODE_GRAIN / 8, find_layer, s);
        UN_TRY(un_distance_finish(ctx, s, &any));
        un_parallel_for(ctx, s->list_count, NODE_GRAIN, end_layer, s);
        if (any) UN_TRY(share_feet(s));
    }
    return UN_OK;
}

static un_status sweep(un_context *ctx, un_distances *s)
{
    int64_t nodes = s->mesh->node_count;
    s->stage = UN_DISTANCE_SWEEPS;
    s->list = NULL;
    s->list_count = s->own.end - s->own.begin;
    un_parallel_for(ctx, nodes, 8 * NODE_GRAIN, take_marks, s);
    bool any = true;
    for (int32_t k = 0; any && k < SWEEPS_MAX; k++) {
        any = s->list_count > 0;
        un_parallel_for(ctx, s->list_count, NODE_GRAIN / 4, improve, s);
        UN_TRY(un_distance_finish(ctx, s, &any));
        un_parallel_for(ctx, s->list_count, NODE_GRAIN, end_improvement, s);
        if (!any) break;
        UN_TRY(share_feet(s));
        un_parallel_for(ctx, nodes, 8 * NODE_GRAIN, take_marks, s);
        list_next(ctx, s);
    }
    return UN_OK;
}

static un_status search(un_context *ctx, un_distances *s)
{
    un_parallel_for(ctx, s->mesh->node_count, NODE_GRAIN, clear, s);
    un_parallel_part(ctx, s->own, NODE_GRAIN, clear_phi, s);
    int64_t total = s->cut->triangle_count;
    if (s->mesh->share) total = un_ranks_total(ctx, total);
    if (total > 0) {
        UN_TRY(find_start(ctx, s));
        UN_TRY(find_layers(ctx, s));
        UN_TRY(sweep(ctx, s));
    }
    un_field field = {"phi", s->phi, NULL, sizeof *s->phi};
    return un_tets_share(s->mesh, &field, 1);
}

un_status un_cut_distance(un_context *ctx, un_arena *arena, float *phi, const un_cut *cut,
                          const un_tet_graph *graph)
{
    un_distances s = {.cut = cut, .mesh = cut->mesh, .graph = graph, .phi = phi};
    s.own = un_tets_own_nodes(s.mesh);
    un_status status = un_tets_agree(s.mesh, begin_search(ctx, &s, arena));
    if (status == UN_OK) status = search(ctx, &s);
    un_distance_ranks_end(ctx, &s);
    return status;
}

un_status un_tets_redistance(un_context *ctx, un_arena *arena, float *phi, const un_tets *mesh)
{
    un_cut cut;
    un_tet_graph graph;
    UN_TRY(un_tets_agree(mesh, un_tet_graph_build(ctx, arena, &graph, mesh)));
    UN_TRY(un_tets_agree(mesh, un_cut_find(ctx, arena, &cut, phi, mesh, &graph)));
    un_cut_interpolate(ctx, &cut, phi, 0);
    un_status status = un_cut_merge(arena, &cut);
    if (status == UN_OK) status = un_cut_triangulate(ctx, arena, &cut);
    UN_TRY(un_tets_agree(mesh, status));
    return un_cut_distance(ctx, arena, phi, &cut, &graph);
}

/* ---- volume ---- */

typedef struct volume_args {
    const un_tets *mesh;
    const float *phi, *open;
    const uint8_t *thick;
    int64_t first; /* number on one rank of the rank's tet 0 */
} volume_args;

static void tet_volumes(void *arg, int64_t begin, int64_t end, double *sum)
{
    const volume_args *a = arg;
    for (int64_t t = begin - a->first; t < end - a->first; t++) {
        double v[4];
        int32_t liquid = 0;
        if (a->thick && !a->thick[t]) continue;
        for (int32_t c = 0; c < 4; c++) {
            float phi = a->phi[a->mesh->tet[t][c]];
            liquid += un_cut_liquid(phi);
            v[c] = isnan(phi) ? -1 : -un_clamp(phi, -FLT_MAX, FLT_MAX);
        }
        if (liquid == 0) continue;
        double share = liquid == 4 ? 1 : un_tet_fraction(v);
        if (a->open) share *= a->open[t];
        *sum += share * un_tets_volume(a->mesh, (int32_t)t);
    }
}

double un_tets_liquid_volume(un_context *ctx, const float *phi, const un_tets *mesh,
                             const float *open, const uint8_t *thick)
{
    const un_tet_share *share = mesh->share;
    volume_args a = {mesh, phi, open, thick, 0};
    double sum;
    if (share) {
        a.first = share->tets.begin - share->tet_begin;
        un_ranks_sums(ctx, share->tets, 1, tet_volumes, &a, &sum);
    } else {
        un_parallel_sums(ctx, mesh->tet_count, 1, tet_volumes, &a, &sum);
    }
    return sum;
}
