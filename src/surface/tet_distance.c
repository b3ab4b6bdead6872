/* Distances on tets: every node finds the nearest point of the cut surface.
 *
 * A node keeps the triangle its nearest point lies in. From there the point is improved by walking
 * over the surface: while it lies on an edge or a corner of its triangle, the triangles beyond are
 * tried. Nodes of cut tets start from their own cut edges, all others from the best of their
 * neighbours' points, layer by layer away from the surface; then all try their neighbours' points
 * again while that helps. On a plane each walk ends at the foot of the perpendicular, so that a
 * flat surface keeps its distances to round-off on any mesh, near and far; the result is never less
 * than the true distance.
 *
 * This replaces the local solutions of |grad phi| = 1 that are usual on tets: they are exact for
 * flat fronts too, but only of first order where the surface is curved, and need acute angles.
 *
 * Over ranks, every rank has all of the surface (cut_ranks.c) and finds the points of its own
 * nodes. After each layer and sweep ghosts get those of their owners: 17 bytes, some twenty times
 * per level set. */
#include "surface/cut.h"

#include <stdatomic.h>

#define NODE_GRAIN 512

/* Upper bound on the steps of a walk, never reached (coarse nodes far away take some tens). */
#define WALK_MAX 512
/* Sweeps after the layers: the first over all nodes, later ones over nodes that may still
 * improve. */
#define SWEEPS_MAX 12
/* Smaller gains, as a share of the squared distance, are ignored. */
#define WORTHWHILE 1e-3f

/* The nearest point so far. Its position only serves to choose among neighbours. */
typedef struct foot {
    int32_t triangle;
    float x[3];
} foot;

typedef struct search {
    const un_cut *cut;
    const un_tets *mesh;
    const un_tet_graph *graph;
    int32_t *first, *around; /* by vertex: its triangles */
    foot *foot;              /* by node; infinitely far where there is none yet */
    uint8_t *done;           /* by node */
    _Atomic uint8_t *mark;   /* by node: next to one that is done */
    uint8_t *next;           /* by node: in the next layer */
    un_part own;             /* this rank's nodes */
    const int32_t *list;     /* nodes of the layer, from the first own one; NULL: all own ones */
    int64_t list_count;      /* of them */
    int64_t total;           /* the same of all ranks */
    foot *found;             /* by place in the list */
    uint8_t *fresh;          /* by node: found or improved in this layer or sweep; NULL: one rank */
    float *phi;
} search;

/* ---- a triangle ---- */

/* Where in its triangle a nearest point lies: 0..2 corner, 3..5 the edge that leaves this corner.
 */
enum { CORNER = 0, EDGE = 3, INSIDE = 6 };

typedef struct nearest {
    double square; /* of the distance */
    un_vec3 x;
    int32_t feature;
} nearest;

/* Tries the edge from corner c, with direction `edge`; `along` is its dot product with p - a. */
static void nearest_on_edge(nearest *best, un_vec3 p, un_vec3 a, un_vec3 edge, double along,
                            int32_t c)
{
    double length2 = un_dot(edge, edge);
    int32_t feature = along <= 0 ? c : along >= length2 ? (c + 1) % 3 : EDGE + c;
    double t = along <= 0 ? 0 : along >= length2 ? 1 : along / length2;
    un_vec3 x = un_mad(a, edge, t), d = un_sub(p, x);
    double square = un_dot(d, d);
    if (square < best->square) *best = (nearest){square, x, feature};
}

/* The nearest point is inside, or on one of the edges that p is beyond. Always a point of the
 * triangle, however thin that is. */
static nearest nearest_in_triangle(const search *s, int32_t t, un_vec3 p)
{
    const int32_t *v = s->cut->triangle[t];
    const un_vec3 *x = s->cut->x;
    un_vec3 a = x[v[0]], b = x[v[1]], c = x[v[2]];
    un_vec3 ab = un_sub(b, a), ac = un_sub(c, a), ap = un_sub(p, a);
    double bb = un_dot(ab, ab), bc = un_dot(ab, ac), cc = un_dot(ac, ac);
    double pb = un_dot(ap, ab), pc = un_dot(ap, ac);
    /* barycentric weights of b, c and a, times four times the square of the area */
    double area = bb * cc - bc * bc, wb = cc * pb - bc * pc, wc = bb * pc - bc * pb;
    double wa = area - wb - wc;
    if (wa >= 0 && wb >= 0 && wc >= 0 && area > 0) {
        double scale = 1 / area;
        un_vec3 y = un_mad(un_mad(a, ab, wb * scale), ac, wc * scale), d = un_sub(p, y);
        return (nearest){un_dot(d, d), y, INSIDE};
    }
    nearest best = {INFINITY, a, CORNER};
    bool thin = !(area > 0);
    if (wc < 0 || thin) nearest_on_edge(&best, p, a, ab, pb, 0);
    if (wa < 0 || thin)
        nearest_on_edge(&best, p, b, un_sub(c, b), un_dot(un_sub(p, b), un_sub(c, b)), 1);
    if (wb < 0 || thin) nearest_on_edge(&best, p, c, un_scale(ac, -1), cc - pc, 2);
    return best;
}

/* ---- walks ---- */

static void try_triangle(const search *s, un_vec3 p, int32_t t, nearest *best, int32_t *triangle)
{
    nearest found = nearest_in_triangle(s, t, p);
    if (found.square < best->square) *best = found, *triangle = t;
}

/* True if moving from a corner, at x, into the triangle leads nearer. */
static bool leads(const search *s, const int32_t *corner, un_vec3 x, un_vec3 way)
{
    const un_vec3 *y = s->cut->x;
    return un_dot(un_sub(y[corner[0]], x), way) > 0 || un_dot(un_sub(y[corner[1]], x), way) > 0 ||
           un_dot(un_sub(y[corner[2]], x), way) > 0;
}

/* Walks from `best` in `triangle` to a locally nearest point. */
static void walk(const search *s, un_vec3 p, nearest *best, int32_t *triangle)
{
    for (int32_t step = 0; step < WALK_MAX && best->feature != INSIDE; step++) {
        const int32_t *v = s->cut->triangle[*triangle];
        double before = best->square;
        int32_t from = *triangle;
        int32_t a = v[best->feature % 3], b = v[(best->feature + 1) % 3];
        bool edge = best->feature >= EDGE;
        un_vec3 at = best->x, way = un_sub(p, at);
        for (int32_t q = s->first[a]; q < s->first[a + 1]; q++) {
            int32_t t = s->around[q];
            const int32_t *w = s->cut->triangle[t];
            if (t == from || (edge && w[0] != b && w[1] != b && w[2] != b)) continue;
            if (!edge && !leads(s, w, at, way)) continue;
            try_triangle(s, p, t, best, triangle);
        }
        if (!(best->square < before)) return;
    }
}

static nearest walk_from(const search *s, un_vec3 p, int32_t *triangle)
{
    nearest best = nearest_in_triangle(s, *triangle, p);
    walk(s, p, &best, triangle);
    return best;
}

static foot make_foot(int32_t triangle, un_vec3 x)
{
    return (foot){triangle, {(float)x.x, (float)x.y, (float)x.z}};
}

static inline float foot_square(const foot *f, const float p[3])
{
    float dx = p[0] - f->x[0], dy = p[1] - f->x[1], dz = p[2] - f->x[2];
    return dx * dx + dy * dy + dz * dz;
}

/* The sign stays: a liquid node on the surface is just inside it. */
static inline void set_distance(search *s, int32_t n, double square)
{
    float distance = (float)sqrt(square);
    s->phi[n] = s->cut->liquid[n] ? -fmaxf(distance, FLT_MIN) : distance;
}

/* Marks a node for the next layer. All marks are the same, so it does not matter which thread sets
 * one, or how often. */
static inline void mark_node(search *s, int32_t n)
{
    atomic_store_explicit(&s->mark[n], 1, memory_order_relaxed);
}

/* ---- nodes of cut tets ---- */

/* Starts from the nearest of the node's own cut edges, of which it has at least one. */
static void start_nodes(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    const un_cut *cut = s->cut;
    const un_tets *mesh = s->mesh;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = cut->node[i], vertex = -1;
        un_vec3 p = mesh->x[n];
        double least = INFINITY;
        for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++) {
            int32_t m = s->graph->to[q];
            mark_node(s, m);
            if (cut->liquid[m] == cut->liquid[n]) continue;
            int32_t v = un_cut_vertex(cut, n, m);
            un_vec3 d = un_sub(cut->x[v], p);
            if (un_dot(d, d) < least || vertex < 0) least = un_dot(d, d), vertex = v;
        }
        nearest best = {INFINITY, cut->x[vertex], CORNER};
        int32_t triangle = s->around[s->first[vertex]];
        for (int32_t q = s->first[vertex]; q < s->first[vertex + 1]; q++)
            try_triangle(s, p, s->around[q], &best, &triangle);
        walk(s, p, &best, &triangle);
        s->foot[n] = make_foot(triangle, best.x);
        s->done[n] = 1;
        if (s->fresh) s->fresh[n] = 1;
        set_distance(s, n, best.square);
    }
}

/* ---- layers ---- */

static inline int32_t listed(const search *s, int64_t i)
{
    return (int32_t)s->own.begin + (s->list ? s->list[i] : (int32_t)i);
}

/* The triangle of the neighbour whose point is nearest to node n, by less than the square root of
 * `least`; -1 none. Written without branches, because half of them would be mispredicted. */
static int32_t best_triangle(search *s, int32_t n, float least)
{
    un_vec3 x = s->mesh->x[n];
    float p[3] = {(float)x.x, (float)x.y, (float)x.z};
    int32_t best = -1;
    for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++) {
        int32_t m = s->graph->to[q];
        const foot *f = &s->foot[m];
        float square = foot_square(f, p);
        best = square < least ? f->triangle : best;
        least = square < least ? square : least;
    }
    return best;
}

static void find_layer(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = listed(s, i), triangle = best_triangle(s, n, FLT_MAX);
        for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++)
            mark_node(s, s->graph->to[q]);
        s->found[i].triangle = triangle;
        if (triangle < 0) continue; /* distances overflowed */
        nearest best = walk_from(s, s->mesh->x[n], &triangle);
        s->found[i] = make_foot(triangle, best.x);
        set_distance(s, n, best.square);
    }
}

static void end_layer(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = listed(s, i);
        if (s->found[i].triangle >= 0) s->foot[n] = s->found[i];
        s->done[n] = 1;
        if (s->fresh) s->fresh[n] = 1;
    }
}

/* Marked, and not in a layer yet. */
static void choose_next(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    const uint8_t *mark = (const uint8_t *)s->mark;
    for (int64_t n = begin; n < end; n++) s->next[n] = mark[n] & ~s->done[n];
}

/* ---- sweeps ---- */

/* Tries the neighbours' points again. */
static void improve(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = listed(s, i);
        float square = s->phi[n] * s->phi[n] * (1 - WORTHWHILE);
        int32_t triangle = best_triangle(s, n, square);
        s->found[i].triangle = -1;
        if (triangle < 0) continue;
        nearest best = walk_from(s, s->mesh->x[n], &triangle);
        if (!(best.square < square)) continue;
        s->found[i] = make_foot(triangle, best.x);
        set_distance(s, n, best.square);
    }
}

/* Their neighbours may now improve too. */
static void end_improvement(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t i = begin; i < end; i++) {
        if (s->found[i].triangle < 0) continue;
        int32_t n = listed(s, i);
        s->foot[n] = s->found[i];
        if (s->fresh) s->fresh[n] = 1;
        for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++)
            mark_node(s, s->graph->to[q]);
    }
}

static void take_marks(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t n = begin; n < end; n++) {
        s->next[n] = ((const uint8_t *)s->mark)[n];
        atomic_store_explicit(&s->mark[n], 0, memory_order_relaxed);
    }
}

static void clear(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t n = begin; n < end; n++) {
        s->foot[n] = (foot){-1, {INFINITY, INFINITY, INFINITY}};
        s->done[n] = 0;
        atomic_store_explicit(&s->mark[n], 0, memory_order_relaxed);
    }
}

static void clear_phi(void *arg, int64_t begin, int64_t end)
{
    search *s = arg;
    for (int64_t n = begin; n < end; n++) s->phi[n] = s->cut->liquid[n] ? -INFINITY : INFINITY;
}

static bool is_point_or_line(const int32_t *v)
{
    return v[0] == v[1] || v[1] == v[2] || v[2] == v[0];
}

/* Triangles that have lost a corner are left out, unless a vertex has no others. */
static un_status build_around(search *s, un_arena *arena)
{
    const un_cut *cut = s->cut;
    size_t vertices = (size_t)cut->vertex_count, corners = 3 * (size_t)cut->triangle_count;
    uint8_t *whole = un_arena_alloc(arena, vertices + 1, 1);
    s->first = un_arena_alloc(arena, vertices + 2, sizeof *s->first);
    s->around = un_arena_alloc(arena, corners + 1, sizeof *s->around);
    if (!s->first || !s->around || !whole) return UN_ERROR_MEMORY;
    memset(whole, 0, vertices + 1);
    memset(s->first, 0, (vertices + 2) * sizeof *s->first);
    for (int32_t t = 0; t < cut->triangle_count; t++)
        if (!is_point_or_line(cut->triangle[t]))
            for (int32_t c = 0; c < 3; c++) whole[cut->triangle[t][c]] = 1;
    for (int32_t fill = 0; fill < 2; fill++) {
        for (int32_t t = 0; t < cut->triangle_count; t++) {
            bool flat = is_point_or_line(cut->triangle[t]);
            for (int32_t c = 0; c < 3; c++) {
                int32_t v = cut->triangle[t][c];
                if (flat && whole[v]) continue;
                if (fill)
                    s->around[s->first[v + 1]++] = t;
                else
                    s->first[v + 2]++;
            }
        }
        if (!fill)
            for (size_t v = 2; v < vertices + 2; v++) s->first[v] += s->first[v - 1];
    }
    return UN_OK;
}

/* ---- all of it ---- */

static un_status begin_search(search *s, un_arena *arena)
{
    size_t nodes = (size_t)s->mesh->node_count + 1;
    s->foot = un_arena_alloc(arena, nodes, sizeof *s->foot);
    s->found = un_arena_alloc(arena, nodes, sizeof *s->found);
    s->done = un_arena_alloc(arena, nodes, 1);
    s->next = un_arena_alloc(arena, nodes, 1);
    s->mark = un_arena_alloc(arena, nodes, sizeof *s->mark);
    if (!s->foot || !s->found || !s->done || !s->next || !s->mark) return UN_ERROR_MEMORY;
    if (s->mesh->share) {
        s->fresh = un_arena_alloc(arena, nodes, 1);
        if (!s->fresh) return UN_ERROR_MEMORY;
        memset(s->fresh, 0, nodes);
    }
    return build_around(s, arena);
}

/* Ghosts get the points of their owners; nodes next to those that changed are marked, as next to
 * others. */
static un_status share_feet(search *s)
{
    const un_tet_share *share = s->mesh->share;
    if (!share) return UN_OK;
    un_field fields[] = {{"foot", s->foot, NULL, sizeof *s->foot}, {"fresh", s->fresh, NULL, 1}};
    UN_TRY(un_tets_share(s->mesh, fields, 2));
    for (int32_t k = 0; k < share->ghost_count; k++) {
        int32_t n = share->ghost[k];
        if (!s->fresh[n]) continue;
        for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++)
            mark_node(s, s->graph->to[q]);
    }
    memset(s->fresh, 0, (size_t)s->mesh->node_count);
    return UN_OK;
}

/* Own nodes that are in `next`. */
static un_status list_next(un_context *ctx, un_arena *arena, search *s)
{
    int32_t *list = NULL, count = 0;
    un_status status =
        un_cut_list(ctx, arena, s->next + s->own.begin, s->own.end - s->own.begin, &list, &count);
    UN_TRY(un_tets_agree(s->mesh, status));
    s->list = list;
    s->list_count = count;
    s->total = s->mesh->share ? un_ranks_total(ctx, count) : count;
    return UN_OK;
}

static un_status find_layers(un_context *ctx, un_arena *arena, search *s)
{
    while (s->total > 0) {
        un_parallel_part(ctx, s->own, 8 * NODE_GRAIN, choose_next, s);
        UN_TRY(list_next(ctx, arena, s));
        un_parallel_for(ctx, s->list_count, NODE_GRAIN / 8, find_layer, s);
        un_parallel_for(ctx, s->list_count, NODE_GRAIN, end_layer, s);
        UN_TRY(share_feet(s));
    }
    return UN_OK;
}

static un_status sweep(un_context *ctx, un_arena *arena, search *s)
{
    int64_t nodes = s->mesh->node_count;
    s->list = NULL;
    s->list_count = s->own.end - s->own.begin;
    s->total = nodes;
    un_parallel_for(ctx, nodes, 8 * NODE_GRAIN, take_marks, s);
    for (int32_t k = 0; s->total > 0 && k < SWEEPS_MAX; k++) {
        un_parallel_for(ctx, s->list_count, NODE_GRAIN / 4, improve, s);
        un_parallel_for(ctx, s->list_count, NODE_GRAIN, end_improvement, s);
        UN_TRY(share_feet(s));
        un_parallel_for(ctx, nodes, 8 * NODE_GRAIN, take_marks, s);
        UN_TRY(list_next(ctx, arena, s));
    }
    return UN_OK;
}

un_status un_cut_distance(un_context *ctx, un_arena *arena, float *phi, const un_cut *cut,
                          const un_tet_graph *graph)
{
    const un_tets *mesh = cut->mesh;
    search s = {.cut = cut, .mesh = mesh, .graph = graph, .phi = phi};
    s.own = un_tets_own_nodes(mesh);
    UN_TRY(un_tets_agree(mesh, begin_search(&s, arena)));
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, clear, &s);
    un_parallel_part(ctx, s.own, NODE_GRAIN, clear_phi, &s);
    un_parallel_part(ctx, cut->own, NODE_GRAIN / 8, start_nodes, &s);
    s.total = cut->triangle_count;
    if (s.total > 0) {
        UN_TRY(share_feet(&s));
        UN_TRY(find_layers(ctx, arena, &s));
        UN_TRY(sweep(ctx, arena, &s));
    }
    un_field field = {"phi", phi, NULL, sizeof *phi};
    return un_tets_share(mesh, &field, 1);
}

un_status un_tets_redistance(un_context *ctx, un_arena *arena, float *phi, const un_tets *mesh)
{
    un_cut cut;
    un_tet_graph graph;
    UN_TRY(un_tets_agree(mesh, un_tet_graph_build(ctx, arena, &graph, mesh)));
    UN_TRY(un_tets_agree(mesh, un_cut_find(ctx, arena, &cut, phi, mesh, &graph)));
    un_cut_interpolate(ctx, &cut, phi, 0);
    if (mesh->share) {
        UN_TRY(un_cut_unite(ctx, arena, &cut));
    } else {
        UN_TRY(un_cut_merge(arena, &cut));
        UN_TRY(un_cut_triangulate(ctx, arena, &cut));
    }
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
