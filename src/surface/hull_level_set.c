/* The level set of hulls on a tet mesh [Ando13 section 5].
 *
 * Hulls say little about the inside: pruned to the exposed ones they form a shell some two radii
 * thick, and their distance is at least minus a radius. So nodes use only the sign. A node is
 * liquid in a hull, or in a sphere around a particle under the shell (hull_balls.c). On each edge
 * between nodes of different sign the crossing is then found by marching from the air, where the
 * distance is exact, and distances on both sides are measured from the surface through these
 * crossings (tet_distance.c). */
#include "surface/cut.h"
#include "surface/hulls.h"

/* How far from a node hulls are searched, in its finest leaves: farther than any edge there, except
 * at jumps of the mesh, where marching starts a little earlier. */
#define BAND 1.05
/* A crossing is found to this part of its edge, before the last secant step. */
#define CLOSE 4e-3
#define STEPS_MAX 8
/* Flatter rays do not use the tangent to predict where they meet the surface. */
#define SLOPE_MIN 0.15
#define NODE_GRAIN 512

/* What is known at nodes. */
typedef struct nodes {
    const un_vec3 *x;
    const uint8_t *level;
    float *value;      /* hull distance, or a lower bound in the air */
    float (*slope)[3]; /* its gradient; zero where unknown */
    float *phi;
    float *solid; /* distance to solids; NULL: there are none */
} nodes;

/* An edge between air and liquid, with what is known at its ends. */
typedef struct cut_edge {
    un_vec3 air, liquid;
    float value, slope[3]; /* in the air */
    float air_solid, liquid_solid;
} cut_edge;

typedef struct level_set {
    un_context *ctx;
    un_arena *arena;
    const un_hulls *hulls;
    const un_tets *mesh;
    un_cut *cut;
    nodes at;   /* the mesh's nodes */
    nodes line; /* nodes along the curve, the same ones; over ranks, those of whole blocks */
    int64_t line_count;
    un_blocks blocks;      /* over ranks: of the line */
    const cut_edge *edges; /* over ranks: those of whole blocks; NULL: ask the cut */
    un_vec3 *crossing;     /* by edge */
    un_hull_balls balls;
    const un_walls *walls; /* NULL: no solids */
    double gap;
    uint8_t *want; /* over ranks: blocks of hulls to get */
    const un_tet_graph *graph;
    uint8_t *air, *mark; /* at nodes */
    int32_t *narrow;     /* nodes in narrow air */
} level_set;

static un_status agree(const level_set *s, un_status status)
{
    return un_tets_agree(s->mesh, status);
}

/* ---- signs ---- */

static void find_balls(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    const nodes *at = &s->line;
    int64_t ball = -1;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = at->x[n];
        at->value[n] = -INFINITY;
        at->phi[n] = -1;
        at->slope[n][0] = at->slope[n][1] = at->slope[n][2] = 0;
        if (ball >= 0 && un_hull_balls_hold(&s->balls, ball, x))
            continue; /* in the same ball as the last node */
        int64_t found = un_hull_balls_at(&s->balls, x);
        if (found >= 0)
            ball = found;
        else
            at->phi[n] = 0; /* the hulls will tell */
    }
}

/* Nodes evaluated together: they are consecutive along the curve. */
#define BUNCH_MAX 24
/* A bunch is no wider than this, in finest leaves at its first node. */
#define BUNCH_WIDTH 1.6

typedef struct bunch {
    int32_t count, node[BUNCH_MAX];
    un_box3 box;
    double reach, width;
    un_hull_local local;
} bunch;

static void ask_bunch(level_set *s, bunch *b)
{
    if (b->count == 0) return;
    const nodes *at = &s->line;
    un_hulls_gather(s->hulls, b->box, b->reach, &b->local);
    for (int32_t i = 0; i < b->count; i++) {
        int32_t n = b->node[i];
        un_vec3 slope;
        double band = BAND * un_octree_size(s->mesh->tree, at->level[n]);
        double value = un_hull_local_distance(&b->local, at->x[n], band, &slope);
        at->slope[n][0] = (float)slope.x;
        at->slope[n][1] = (float)slope.y;
        at->slope[n][2] = (float)slope.z;
        at->value[n] = (float)value;
        at->phi[n] = value >= 0 ? 1 : -1;
    }
    b->count = 0;
}

/* Over ranks, before that. */
static void want_bunch(level_set *s, bunch *b)
{
    if (b->count > 0) un_hulls_want(s->hulls, b->box, b->reach, s->want);
    b->count = 0;
}

static bool add_to_bunch(bunch *b, int32_t n, un_vec3 x, double h)
{
    un_box3 box = {x, x};
    if (b->count == 0) {
        b->width = BUNCH_WIDTH * h;
        b->reach = 0;
    } else {
        box.min = un_min3(b->box.min, x);
        box.max = un_max3(b->box.max, x);
        un_vec3 size = un_sub(box.max, box.min);
        if (b->count == BUNCH_MAX || fmax(size.x, fmax(size.y, size.z)) > b->width) return false;
    }
    b->box = box;
    b->reach = fmax(b->reach, BAND * h);
    b->node[b->count++] = n;
    return true;
}

static void over_bunches(level_set *s, int64_t begin, int64_t end,
                         void (*act)(level_set *, bunch *))
{
    const nodes *at = &s->line;
    bunch b;
    b.count = 0;
    for (int64_t n = begin; n < end; n++) {
        if (at->phi[n] < 0) continue; /* in a ball */
        un_vec3 x = at->x[n];
        double h = un_octree_size(s->mesh->tree, at->level[n]);
        if (add_to_bunch(&b, (int32_t)n, x, h)) continue;
        act(s, &b);
        add_to_bunch(&b, (int32_t)n, x, h);
    }
    act(s, &b);
}

static void find_signs(void *arg, int64_t begin, int64_t end)
{
    over_bunches(arg, begin, end, ask_bunch);
}

static void want_signs(void *arg, int64_t begin, int64_t end)
{
    over_bunches(arg, begin, end, want_bunch);
}

/* Over ranks: gets the hulls that the elements of a loop will ask for. */
static un_status fetch_hulls(level_set *s, un_parallel_body *body, int64_t count)
{
    if (!s->hulls->here) return UN_OK;
    s->want = un_alloc_zero(s->ctx, (size_t)s->hulls->block_count + 1, 1);
    un_status status = un_ranks_agree(s->ctx, s->want ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) {
        un_parallel_for(s->ctx, count, NODE_GRAIN, body, s);
        status = un_hulls_fetch(s->hulls, s->want);
    }
    un_free(s->ctx, s->want);
    return status;
}

/* ---- gaps ---- */

/* Air that stays within this distance of the hulls, in longest edges of its nodes, is a gap between
 * particles unless it is connected to air farther away: 0.8 of a radius. */
#define GAP 0.2
/* The same where depths were only measured from the hulls themselves. */
#define GAP_UNKNOWN 0.5

enum { SOLID, NARROW, OPEN };

static double longest_edge(const level_set *s, int32_t n)
{
    double square = 0;
    for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++) {
        un_vec3 d = un_sub(s->mesh->x[s->graph->to[q]], s->mesh->x[n]);
        square = fmax(square, un_dot(d, d));
    }
    return sqrt(square);
}

static void find_narrow(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    for (int64_t n = begin; n < end; n++) {
        bool narrow = false;
        float value = s->at.value[n];
        if (s->at.phi[n] >= 0 && value < BAND * un_octree_size(s->mesh->tree, s->at.level[n]))
            narrow = value < s->gap * longest_edge(s, (int32_t)n);
        s->air[n] = s->at.phi[n] < 0 ? SOLID : narrow ? NARROW : OPEN;
        s->mark[n] = s->air[n] == NARROW;
    }
}

/* Counts the narrow nodes next to open ones, and marks them for the next round. */
static double find_opening(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    double count = 0;
    for (int64_t i = begin; i < end; i++) {
        int32_t n = s->narrow[i];
        s->mark[n] = s->air[n];
        if (s->air[n] != NARROW) continue;
        for (int32_t q = s->graph->first[n]; q < s->graph->first[n + 1]; q++)
            if (s->air[s->graph->to[q]] == OPEN) s->mark[n] = OPEN;
        count += s->mark[n] == OPEN;
    }
    return count;
}

static void set_opening(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    for (int64_t i = begin; i < end; i++) s->air[s->narrow[i]] = s->mark[s->narrow[i]];
}

static un_status share_air(const level_set *s)
{
    un_field field = {"air", s->air, NULL, 1};
    return un_tets_share(s->mesh, &field, 1);
}

static un_status list_narrow(level_set *s, int32_t *count)
{
    un_part own = un_tets_own_nodes(s->mesh);
    size_t room = (size_t)s->mesh->node_count + 1;
    s->air = un_arena_alloc(s->arena, room, 1);
    s->mark = un_arena_alloc(s->arena, room, 1);
    if (!s->air || !s->mark) return UN_ERROR_MEMORY;
    memset(s->mark, 0, (size_t)own.begin);
    memset(s->mark + own.end, 0, room - (size_t)own.end);
    un_parallel_part(s->ctx, own, NODE_GRAIN, find_narrow, s);
    return un_cut_list(s->ctx, s->arena, s->mark, s->mesh->node_count, &s->narrow, count);
}

/* Fills gaps. Hulls of particles of different sizes leave gaps inside the liquid, and spheres do
 * not fill them all if depths are unknown or old. */
static un_status fill_gaps(level_set *s)
{
    un_context *ctx = s->ctx;
    int32_t count = 0;
    UN_TRY(agree(s, list_narrow(s, &count)));
    for (;;) {
        UN_TRY(share_air(s));
        double opened = un_parallel_sum(ctx, count, find_opening, s);
        if (s->mesh->share) opened = (double)un_ranks_total(ctx, (int64_t)opened);
        if (!(opened > 0)) break;
        un_parallel_for(ctx, count, NODE_GRAIN, set_opening, s);
    }
    for (int32_t i = 0; i < count; i++)
        if (s->air[s->narrow[i]] == NARROW) s->at.phi[s->narrow[i]] = -1;
    un_field field = {"phi", s->at.phi, NULL, sizeof *s->at.phi};
    return un_tets_share(s->mesh, &field, 1);
}

/* ---- crossings ---- */

typedef struct ray {
    const level_set *set;
    const un_hull_local *local; /* all hulls that it may cross */
    un_vec3 from, way;
    double length;
} ray;

static un_vec3 ray_point(const ray *r, double t)
{
    return un_mad(r->from, r->way, t);
}

/* The end is not in a hull but in a ball: bisection. */
static double find_ball_crossing(const ray *r)
{
    double air = 0, liquid = 1;
    for (int32_t n = 0; n < STEPS_MAX; n++) {
        double t = 0.5 * (air + liquid);
        un_vec3 x = ray_point(r, t);
        if (un_hull_balls_at(&r->set->balls, x) >= 0 ||
            un_hull_local_distance(r->local, x, 0, NULL) < 0)
            liquid = t;
        else
            air = t;
    }
    return 0.5 * (air + liquid);
}

/* Where the hulls' distance d along the ray vanishes. At 0 it is d0 and falls at the rate `slope`;
 * nowhere does it fall faster than the distance travelled. For a flat surface the first step is
 * exact, or without a slope the second. */
static double find_crossing(const ray *r, double d0, double slope)
{
    double air = 0, d_air = d0, liquid = -1, d_liquid = 0;
    double t = d0 / (r->length * (slope > SLOPE_MIN ? slope : 1));
    for (int32_t n = 0; n < STEPS_MAX; n++) {
        if (t >= 1) {
            if (liquid < 0 && un_hull_local_distance(r->local, ray_point(r, 1), 0, NULL) >= 0)
                return find_ball_crossing(r);
            t = 1;
        }
        double bound = d_air + fabs(t - air) * r->length * 1.000001;
        double d = un_hull_local_distance(r->local, ray_point(r, t), bound, NULL);
        double before = air, d_before = d_air;
        if (d >= 0)
            air = t, d_air = d;
        else
            liquid = t, d_liquid = d;
        double next;
        if (liquid >= 0)
            next = air + (liquid - air) * d_air / (d_air - d_liquid);
        else
            next = t + fmax(d / r->length, d_before > d ? d * (t - before) / (d_before - d) : 0);
        if (fabs(d) < CLOSE * r->length) return un_clamp(next, 0, 1);
        /* bisect while regula falsi crawls from one side */
        if (liquid >= 0 && n > 3) next = 0.5 * (air + liquid);
        t = next;
    }
    return un_clamp(t, 0, 1);
}

/* ---- solids ---- */

/* Finds distances to solids at nodes in or next to the liquid; the others do not need any. Nodes in
 * a solid are air. */
static void find_solids(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    const nodes *at = &s->line;
    const un_bodies *bodies = s->walls->bodies;
    un_vec3 x[NODE_GRAIN];
    double d[NODE_GRAIN];
    int32_t node[NODE_GRAIN], count = 0;
    un_box3 bounds = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    double far = 0;
    for (int64_t n = begin; n < end; n++) {
        double h = un_octree_size(s->mesh->tree, at->level[n]);
        at->solid[n] = INFINITY;
        if (at->phi[n] >= 0 && at->value[n] > BAND * h) continue;
        node[count] = (int32_t)n;
        x[count++] = at->x[n];
        far = fmax(far, 2 * BAND * h);
        bounds.min = un_min3(bounds.min, at->x[n]);
        bounds.max = un_max3(bounds.max, at->x[n]);
    }
    if (count == 0) return;
    for (int32_t b = 0; b < bodies->count; b++) {
        if (!un_body_is_near(&bodies->body[b], bounds.min, bounds.max, far)) continue;
        un_body_distances(&bodies->body[b], x, count, d);
        for (int32_t i = 0; i < count; i++)
            at->solid[node[i]] = fminf(at->solid[node[i]], (float)d[i]);
    }
    for (int32_t i = 0; i < count; i++)
        if (!(at->solid[node[i]] > 0)) at->phi[node[i]] = 1;
}

/* ---- crossings of both ---- */

static cut_edge find_edge(const level_set *s, int64_t v)
{
    if (s->edges) return s->edges[v];
    const un_cut *cut = s->cut;
    const nodes *at = &s->at;
    int32_t a = cut->from[v], b = cut->to[v];
    if (cut->liquid[a]) a = cut->to[v], b = cut->from[v];
    cut_edge e = {.air = at->x[a], .liquid = at->x[b], .value = at->value[a]};
    memcpy(e.slope, at->slope[a], sizeof e.slope);
    e.air_solid = at->solid ? at->solid[a] : INFINITY;
    e.liquid_solid = at->solid ? at->solid[b] : INFINITY;
    return e;
}

static un_vec3 place_vertex(const level_set *s, const un_hull_local *local, const cut_edge *e)
{
    ray r = {.set = s, .local = local, .from = e->air};
    r.way = un_sub(e->liquid, r.from);
    r.length = un_length(r.way);
    double t = 0;
    if (e->value >= 0) {
        const float *g = e->slope;
        double slope = -(g[0] * r.way.x + g[1] * r.way.y + g[2] * r.way.z) / r.length;
        t = find_crossing(&r, e->value, slope);
    }
    if (e->air_solid <= 0 && isfinite(e->liquid_solid))
        t = fmax(t, e->air_solid / ((double)e->air_solid - e->liquid_solid));
    /* from the nearer end, so that planes of nodes keep their coordinate */
    return t < 0.5 ? ray_point(&r, t) : un_mad(e->liquid, r.way, t - 1);
}

/* Edges are sorted along the curve too. Returns the end of the bunch. */
static int64_t next_edges(const level_set *s, int64_t first, int64_t end, cut_edge *edge,
                          un_box3 *box)
{
    int64_t last = first;
    *box = (un_box3){{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (; last < end && last < first + 2 * BUNCH_MAX; last++) {
        cut_edge *e = &edge[last - first];
        *e = find_edge(s, last);
        un_vec3 a = e->air, b = e->liquid;
        un_box3 wider = {un_min3(box->min, un_min3(a, b)), un_max3(box->max, un_max3(a, b))};
        un_vec3 size = un_sub(wider.max, wider.min);
        double width = (BUNCH_WIDTH + 1) * un_length(un_sub(b, a));
        if (last > first && fmax(size.x, fmax(size.y, size.z)) > width) break;
        *box = wider;
    }
    return last;
}

/* The bound of a search on an edge is at most the distance that it begins with and its length. */
static void want_crossings(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    cut_edge edge[2 * BUNCH_MAX];
    un_box3 box;
    for (int64_t first = begin, last; first < end; first = last) {
        double reach = 0;
        last = next_edges(s, first, end, edge, &box);
        for (int64_t v = 0; v < last - first; v++)
            if (edge[v].value >= 0)
                reach = fmax(reach, edge[v].value + un_length(un_sub(edge[v].liquid, edge[v].air)));
        un_hulls_want(s->hulls, box, 1.0001 * reach, s->want);
    }
}

static void find_crossings(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    un_hull_local local;
    cut_edge edge[2 * BUNCH_MAX];
    un_box3 box;
    for (int64_t first = begin, last; first < end; first = last) {
        last = next_edges(s, first, end, edge, &box);
        un_hulls_gather(s->hulls, box, 0, &local);
        for (int64_t v = first; v < last; v++)
            s->crossing[v] = place_vertex(s, &local, &edge[v - first]);
    }
}

/* ---- over ranks ---- */

/* Bunches begin anew in each block of a loop, and which nodes and edges are in one decides the last
 * bits. So a rank takes whole blocks of one rank, with copies of what others have of them. */

static un_status need_line(level_set *s)
{
    const un_tet_share *share = s->mesh->share;
    size_t count = (size_t)s->line_count + 1, own = (size_t)(share->nodes.begin - s->blocks.begin);
    size_t own_count = (size_t)(share->nodes.end - share->nodes.begin);
    un_vec3 *x = un_arena_alloc(s->arena, count, sizeof *x);
    uint8_t *level = un_arena_alloc(s->arena, count, 1);
    s->line.value = un_arena_alloc(s->arena, count, sizeof *s->line.value);
    s->line.slope = un_arena_alloc(s->arena, count, sizeof *s->line.slope);
    s->line.phi = un_arena_alloc(s->arena, count, sizeof *s->line.phi);
    if (s->walls) s->line.solid = un_arena_alloc(s->arena, count, sizeof *s->line.solid);
    s->line.x = x;
    s->line.level = level;
    if (!x || !level || !s->line.value || !s->line.slope || !s->line.phi) return UN_ERROR_MEMORY;
    if (s->walls && !s->line.solid) return UN_ERROR_MEMORY;
    memcpy(x + own, s->mesh->x + share->node_begin, own_count * sizeof *x);
    memcpy(level + own, s->mesh->node_level + share->node_begin, own_count);
    return UN_OK;
}

static un_status begin_line(level_set *s)
{
    const un_tets *mesh = s->mesh;
    s->line = s->at;
    s->line_count = mesh->node_count;
    if (!mesh->share) return UN_OK;
    UN_TRY(un_blocks_create(s->ctx, &s->blocks, mesh->share->nodes, NODE_GRAIN));
    s->line_count = s->blocks.end - s->blocks.begin;
    UN_TRY(agree(s, need_line(s)));
    un_field fields[] = {{"x", s->line.x, NULL, sizeof *s->line.x},
                         {"level", s->line.level, NULL, 1}};
    UN_TRY(un_blocks_share(&s->blocks, fields, 2));
    for (int32_t n = 0; n < mesh->node_count; n++) s->at.phi[n] = 1, s->at.value[n] = INFINITY;
    memset(s->at.slope, 0, (size_t)mesh->node_count * sizeof *s->at.slope);
    return UN_OK;
}

/* Own nodes of the line, as an offset into it. */
static void copy_own(const level_set *s, void *to, const void *line, size_t size)
{
    const un_tet_share *share = s->mesh->share;
    memcpy((char *)to + (size_t)share->node_begin * size,
           (const char *)line + (size_t)(share->nodes.begin - s->blocks.begin) * size,
           (size_t)(share->nodes.end - share->nodes.begin) * size);
}

/* The line's signs and distances to own nodes and ghosts. */
static un_status spread_signs(level_set *s)
{
    if (!s->mesh->share) return UN_OK;
    copy_own(s, s->at.phi, s->line.phi, sizeof *s->at.phi);
    copy_own(s, s->at.value, s->line.value, sizeof *s->at.value);
    copy_own(s, s->at.slope, s->line.slope, sizeof *s->at.slope);
    un_field fields[] = {{"phi", s->at.phi, NULL, sizeof *s->at.phi},
                         {"value", s->at.value, NULL, sizeof *s->at.value},
                         {"slope", s->at.slope, NULL, sizeof *s->at.slope}};
    return un_tets_share(s->mesh, fields, 3);
}

static un_status need_solids(level_set *s)
{
    size_t count = (size_t)s->mesh->node_count;
    s->at.solid = un_arena_alloc(s->arena, count + 1, sizeof *s->at.solid);
    if (!s->at.solid) return UN_ERROR_MEMORY;
    if (!s->mesh->share) s->line.solid = s->at.solid;
    for (size_t n = 0; s->mesh->share && n < count; n++) s->at.solid[n] = INFINITY;
    return UN_OK;
}

static un_status cut_solids(level_set *s)
{
    const un_tet_share *share = s->mesh->share;
    UN_TRY(agree(s, need_solids(s)));
    un_field phi = {"phi", s->line.phi, NULL, sizeof *s->line.phi};
    if (share) {
        memcpy(s->line.phi + (share->nodes.begin - s->blocks.begin), s->at.phi + share->node_begin,
               (size_t)(share->nodes.end - share->nodes.begin) * sizeof *s->line.phi);
        UN_TRY(un_blocks_share(&s->blocks, &phi, 1));
    }
    un_parallel_for(s->ctx, s->line_count, NODE_GRAIN, find_solids, s);
    if (!share) return UN_OK;
    copy_own(s, s->at.phi, s->line.phi, sizeof *s->at.phi);
    copy_own(s, s->at.solid, s->line.solid, sizeof *s->at.solid);
    un_field fields[] = {{"phi", s->at.phi, NULL, sizeof *s->at.phi},
                         {"solid", s->at.solid, NULL, sizeof *s->at.solid}};
    return un_tets_share(s->mesh, fields, 2);
}

static un_status need_edges(level_set *s, const un_blocks *b, un_part own)
{
    un_cut *cut = s->cut;
    size_t count = (size_t)(b->end - b->begin) + 1;
    cut_edge *edges = un_arena_alloc(s->arena, count, sizeof *edges);
    s->crossing = un_arena_alloc(s->arena, count, sizeof *s->crossing);
    if (!edges || !s->crossing) return UN_ERROR_MEMORY;
    memset(edges, 0, count * sizeof *edges);
    for (int64_t v = own.begin; v < own.end; v++)
        edges[v - own.begin + b->own.begin - b->begin] = find_edge(s, v);
    /* those of others come with their vertices */
    for (int32_t v = 0; v < cut->vertex_count; v++) cut->x[v] = s->mesh->x[cut->from[v]];
    s->edges = edges;
    return UN_OK;
}

static un_status cross_ranks(level_set *s, un_blocks *b)
{
    un_cut *cut = s->cut;
    un_part own = un_cut_own_vertices(cut);
    un_range range = un_ranks_range(s->ctx, own.end - own.begin);
    UN_TRY(un_blocks_create(s->ctx, b, range, NODE_GRAIN));
    UN_TRY(agree(s, need_edges(s, b, own)));
    un_field field = {"edges", s->edges, NULL, sizeof *s->edges};
    UN_TRY(un_blocks_share(b, &field, 1));
    UN_TRY(fetch_hulls(s, want_crossings, b->end - b->begin));
    un_parallel_for(s->ctx, b->end - b->begin, NODE_GRAIN, find_crossings, s);
    memcpy(cut->x + own.begin, s->crossing + (range.begin - b->begin),
           (size_t)(own.end - own.begin) * sizeof *cut->x);
    return UN_OK;
}

static un_status cross(level_set *s)
{
    if (s->mesh->share) {
        un_blocks blocks = {0};
        un_status status = cross_ranks(s, &blocks);
        un_blocks_free(&blocks);
        return status;
    }
    s->crossing = s->cut->x;
    un_parallel_for(s->ctx, s->cut->vertex_count, NODE_GRAIN, find_crossings, s);
    return UN_OK;
}

/* ---- all of it ---- */

static un_status need_nodes(level_set *s, float *phi)
{
    const un_tets *mesh = s->mesh;
    size_t count = (size_t)mesh->node_count + 1;
    s->at = (nodes){.x = mesh->x, .level = mesh->node_level, .phi = phi};
    s->at.value = un_arena_alloc(s->arena, count, sizeof *s->at.value);
    s->at.slope = un_arena_alloc(s->arena, count, sizeof *s->at.slope);
    if (!s->at.value || !s->at.slope) return UN_ERROR_MEMORY;
    return un_hull_balls_build(s->ctx, s->arena, &s->balls);
}

static un_status cut_hulls(level_set *s, un_arena *arena, float *phi)
{
    UN_TRY(agree(s, need_nodes(s, phi)));
    UN_TRY(begin_line(s));
    un_parallel_for(s->ctx, s->line_count, NODE_GRAIN, find_balls, s);
    UN_TRY(fetch_hulls(s, want_signs, s->line_count));
    un_parallel_for(s->ctx, s->line_count, NODE_GRAIN, find_signs, s);
    UN_TRY(spread_signs(s));
    UN_TRY(fill_gaps(s));
    if (s->walls) UN_TRY(cut_solids(s));
    UN_TRY(agree(s, un_cut_find(s->ctx, arena, s->cut, phi, s->mesh, s->graph)));
    return cross(s);
}

un_status un_hulls_cut(un_context *ctx, un_arena *arena, un_arena *scratch,
                       const un_hulls_cut_def *def, float *phi, un_cut *cut)
{
    level_set s = {.ctx = ctx,
                   .arena = scratch,
                   .hulls = def->hulls,
                   .mesh = def->mesh,
                   .balls = {.groups = def->groups, .radius = def->radius},
                   .cut = cut,
                   .graph = def->graph};
    s.balls.depth = def->depth ? def->depth : def->hulls->depth;
    s.gap = def->depth ? GAP : GAP_UNKNOWN;
    s.walls = s.balls.walls = def->walls && def->walls->bodies->count ? def->walls : NULL;
    un_status status = cut_hulls(&s, arena, phi);
    un_blocks_free(&s.blocks);
    return status;
}

un_status un_hulls_level_set(un_context *ctx, un_arena *arena, float *phi, const un_tets *mesh,
                             const un_hulls *hulls, const un_groups *groups, const float *radius,
                             const float *depth)
{
    un_cut cut;
    un_tet_graph graph;
    UN_TRY(un_tets_agree(mesh, un_tet_graph_build(ctx, arena, &graph, mesh)));
    un_hulls_cut_def def = {.mesh = mesh,
                            .graph = &graph,
                            .hulls = hulls,
                            .groups = groups,
                            .radius = radius,
                            .depth = depth};
    UN_TRY(un_hulls_cut(ctx, arena, arena, &def, phi, &cut));
    UN_TRY(un_cut_share_vertices(ctx, &cut));
    un_status status = un_cut_merge(arena, &cut);
    if (status == UN_OK) status = un_cut_triangulate(ctx, arena, &cut);
    UN_TRY(un_tets_agree(mesh, status));
    return un_cut_distance(ctx, arena, phi, &cut, &graph);
}
