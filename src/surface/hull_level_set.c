/* The level set of hulls on a tet mesh [Ando13 section 5].
 *
 * Hulls say little about the inside: pruned to the exposed ones they form a shell some two radii
 * thick, and their distance is at least minus a radius. So nodes use only the sign. A node is
 * liquid in a hull, or in a sphere of radius SHARE times the depth around a particle; these spheres
 * fill the space under the shell (the paper's temporary radii; here they decide signs only, and
 * never reach the surface they were measured from). On each edge between nodes of different sign
 * the crossing is then found by marching from the air, where the distance is exact, and distances
 * on both sides are measured from the surface through these crossings (tet_distance.c). */
#include "base/lanes.h"
#include "surface/cut.h"
#include "surface/hulls.h"

/* The paper's k. */
#define SHARE 0.75f
/* These spheres reach behind the surface of a solid by so many radii: a thin wall is not passed. */
#define BEHIND 1.25f
/* How far from a node hulls are searched, in its finest leaves: farther than any edge there, except
 * at jumps of the mesh, where marching starts a little earlier. */
#define BAND 1.05
/* A crossing is found to this part of its edge, before the last secant step. */
#define CLOSE 4e-3
#define STEPS_MAX 8
/* Flatter rays do not use the tangent to predict where they meet the surface. */
#define SLOPE_MIN 0.15
#define NODE_GRAIN 512

typedef struct level_set {
    const un_hulls *hulls;
    const un_tets *mesh;
    const un_groups *groups;
    un_boxes balls; /* over the groups: boxes of their balls */
    un_cut *cut;
    float *value;      /* at nodes: hull distance, or a lower bound in the air */
    float (*slope)[3]; /* its gradient; zero where unknown */
    float *phi;
    float *ball;
    const float *radius, *depth;
    const un_walls *walls; /* NULL: no solids */
    float *solid;          /* at nodes: distance to solids; NULL: there are none */
    double gap;
    const un_tet_graph *graph;
    uint8_t *air, *mark; /* at nodes */
    int32_t *narrow;     /* nodes in narrow air */
} level_set;

/* ---- spheres ---- */

/* By group. */
static void size_balls(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    const un_groups *g = s->groups;
    for (int64_t n = begin; n < end; n++) {
        un_box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
        for (int64_t q = UN_GROUP * n; q < UN_GROUP * (n + 1) && q < g->count; q++) {
            float r = -SHARE * s->depth[q];
            un_vec3 x = un_v3(g->x[0][q], g->x[1][q], g->x[2][q]), out = un_v3(r, r, r);
            s->ball[q] = 0;
            if (!(r > s->radius[q] && isfinite(r)) || !un_finite3(x)) continue;
            if (s->walls) {
                double wall = r;
                un_bodies_nearest(s->walls->bodies, x, &wall);
                r = fminf(r, (float)fmax(0, wall) + BEHIND * s->radius[q]);
                out = un_v3(r, r, r);
            }
            s->ball[q] = r;
            box.min = un_min3(box.min, un_sub(x, out));
            box.max = un_max3(box.max, un_add(x, out));
        }
        if (box.min.x <= box.max.x)
            un_boxes_set(&s->balls, n, box, 0);
        else
            un_boxes_set_empty(&s->balls, n);
    }
}

typedef struct ball_query {
    const level_set *set;
    un_vec3 x;
    un_lanes8 at[3];
} ball_query;

static inline bool in_ball(const level_set *s, int64_t q, un_vec3 x)
{
    const un_groups *g = s->groups;
    double dx = g->x[0][q] - x.x, dy = g->x[1][q] - x.y, dz = g->x[2][q] - x.z;
    double r = s->ball[q];
    return dx * dx + dy * dy + dz * dz < r * r;
}

/* A particle whose ball contains x, -1: none. */
static int64_t find_ball(const ball_query *b, int32_t level, int32_t node)
{
    const un_groups *g = b->set->groups;
    const un_boxes *balls = &b->set->balls;
    const un_group_box *box = balls->nodes + balls->level_first[level] + node;
    un_lanes8 gap2 = un_boxes_gaps(box, b->at, b->at);
    un_lanes8 reach = un_lanes8_all(balls->room * balls->room + FLT_MIN);
    for (uint32_t left = un_lanes8_less(gap2, reach); left; left &= left - 1) {
        int32_t child = 8 * node + __builtin_ctz(left);
        if (level > 0) {
            int64_t q = find_ball(b, level - 1, child);
            if (q >= 0) return q;
            continue;
        }
        int64_t end = un_min64(g->count, UN_GROUP * ((int64_t)child + 1));
        for (int64_t q = UN_GROUP * (int64_t)child; q < end; q++)
            if (in_ball(b->set, q, b->x)) return q;
    }
    return -1;
}

static int64_t ball_at(const level_set *s, un_vec3 x)
{
    if (s->balls.level_count == 0) return -1;
    ball_query b = {.set = s, .x = x};
    b.at[0] = un_lanes8_all((float)x.x);
    b.at[1] = un_lanes8_all((float)x.y);
    b.at[2] = un_lanes8_all((float)x.z);
    return find_ball(&b, s->balls.level_count - 1, 0);
}

/* ---- signs ---- */

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
    un_hulls_gather(s->hulls, b->box, b->reach, &b->local);
    for (int32_t i = 0; i < b->count; i++) {
        int32_t n = b->node[i];
        un_vec3 slope;
        double band = BAND * un_octree_size(s->mesh->tree, s->mesh->node_level[n]);
        double value = un_hull_local_distance(&b->local, s->mesh->x[n], band, &slope);
        s->slope[n][0] = (float)slope.x;
        s->slope[n][1] = (float)slope.y;
        s->slope[n][2] = (float)slope.z;
        s->value[n] = (float)value;
        if (value >= 0) s->phi[n] = 1;
    }
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

static void find_signs(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    const un_tets *mesh = s->mesh;
    bunch b;
    b.count = 0;
    int64_t ball = -1;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = mesh->x[n];
        s->value[n] = -INFINITY;
        s->phi[n] = -1;
        s->slope[n][0] = s->slope[n][1] = s->slope[n][2] = 0;
        if (ball >= 0 && in_ball(s, ball, x)) continue; /* in the same ball as the last node */
        int64_t found = ball_at(s, x);
        if (found >= 0) {
            ball = found;
            continue;
        }
        double h = un_octree_size(mesh->tree, mesh->node_level[n]);
        if (add_to_bunch(&b, (int32_t)n, x, h)) continue;
        ask_bunch(s, &b);
        add_to_bunch(&b, (int32_t)n, x, h);
    }
    ask_bunch(s, &b);
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
        if (s->phi[n] >= 0 &&
            s->value[n] < BAND * un_octree_size(s->mesh->tree, s->mesh->node_level[n]))
            narrow = s->value[n] < s->gap * longest_edge(s, (int32_t)n);
        s->air[n] = s->phi[n] < 0 ? SOLID : narrow ? NARROW : OPEN;
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

/* Fills gaps. Hulls of particles of different sizes leave gaps inside the liquid, and spheres do
 * not fill them all if depths are unknown or old. */
static un_status fill_gaps(un_context *ctx, un_arena *arena, level_set *s)
{
    int32_t count;
    size_t nodes = (size_t)s->mesh->node_count + 1;
    s->air = un_arena_alloc(arena, nodes, 1);
    s->mark = un_arena_alloc(arena, nodes, 1);
    if (!s->air || !s->mark) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, s->mesh->node_count, NODE_GRAIN, find_narrow, s);
    UN_TRY(un_cut_list(ctx, arena, s->mark, s->mesh->node_count, &s->narrow, &count));
    while (un_parallel_sum(ctx, count, find_opening, s) > 0)
        un_parallel_for(ctx, count, NODE_GRAIN, set_opening, s);
    for (int32_t i = 0; i < count; i++)
        if (s->air[s->narrow[i]] == NARROW) s->phi[s->narrow[i]] = -1;
    return UN_OK;
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
        if (ball_at(r->set, x) >= 0 || un_hull_local_distance(r->local, x, 0, NULL) < 0)
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
    const un_bodies *bodies = s->walls->bodies;
    un_vec3 x[NODE_GRAIN];
    double d[NODE_GRAIN];
    int32_t node[NODE_GRAIN], count = 0;
    un_box3 bounds = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    double far = 0;
    for (int64_t n = begin; n < end; n++) {
        double h = un_octree_size(s->mesh->tree, s->mesh->node_level[n]);
        s->solid[n] = INFINITY;
        if (s->phi[n] >= 0 && s->value[n] > BAND * h) continue;
        node[count] = (int32_t)n;
        x[count++] = s->mesh->x[n];
        far = fmax(far, 2 * BAND * h);
        bounds.min = un_min3(bounds.min, s->mesh->x[n]);
        bounds.max = un_max3(bounds.max, s->mesh->x[n]);
    }
    if (count == 0) return;
    for (int32_t b = 0; b < bodies->count; b++) {
        if (!un_body_is_near(&bodies->body[b], bounds.min, bounds.max, far)) continue;
        un_body_distances(&bodies->body[b], x, count, d);
        for (int32_t i = 0; i < count; i++)
            s->solid[node[i]] = fminf(s->solid[node[i]], (float)d[i]);
    }
    for (int32_t i = 0; i < count; i++)
        if (!(s->solid[node[i]] > 0)) s->phi[node[i]] = 1;
}

/* ---- crossings of both ---- */

static un_vec3 place_vertex(const level_set *s, const un_hull_local *local, int64_t v)
{
    const un_cut *cut = s->cut;
    int32_t a = cut->from[v], b = cut->to[v];
    if (cut->liquid[a]) a = cut->to[v], b = cut->from[v];
    ray r = {.set = s, .local = local, .from = s->mesh->x[a]};
    r.way = un_sub(s->mesh->x[b], r.from);
    r.length = un_length(r.way);
    double t = 0;
    if (s->value[a] >= 0) {
        const float *g = s->slope[a];
        double slope = -(g[0] * r.way.x + g[1] * r.way.y + g[2] * r.way.z) / r.length;
        t = find_crossing(&r, s->value[a], slope);
    }
    if (s->solid && s->solid[a] <= 0 && isfinite(s->solid[b]))
        t = fmax(t, s->solid[a] / ((double)s->solid[a] - s->solid[b]));
    /* from the nearer end, so that planes of nodes keep their coordinate */
    return t < 0.5 ? ray_point(&r, t) : un_mad(s->mesh->x[b], r.way, t - 1);
}

/* Edges are sorted along the curve too. */
static void find_crossings(void *arg, int64_t begin, int64_t end)
{
    level_set *s = arg;
    un_cut *cut = s->cut;
    un_hull_local local;
    for (int64_t first = begin, last; first < end; first = last) {
        un_box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
        for (last = first; last < end && last < first + 2 * BUNCH_MAX; last++) {
            un_vec3 a = s->mesh->x[cut->from[last]], b = s->mesh->x[cut->to[last]];
            un_box3 wider = {un_min3(box.min, un_min3(a, b)), un_max3(box.max, un_max3(a, b))};
            un_vec3 size = un_sub(wider.max, wider.min), edge = un_sub(b, a);
            double width = (BUNCH_WIDTH + 1) * un_length(edge);
            if (last > first && fmax(size.x, fmax(size.y, size.z)) > width) break;
            box = wider;
        }
        un_hulls_gather(s->hulls, box, 0, &local);
        for (int64_t v = first; v < last; v++) cut->x[v] = place_vertex(s, &local, v);
    }
}

un_status un_hulls_cut(un_context *ctx, un_arena *arena, un_arena *scratch,
                       const un_hulls_cut_def *def, float *phi, un_cut *cut)
{
    const un_tets *mesh = def->mesh;
    const un_groups *groups = def->groups;
    level_set s = {.hulls = def->hulls, .mesh = mesh, .groups = groups, .cut = cut, .phi = phi};
    s.radius = def->radius;
    s.depth = def->depth ? def->depth : def->hulls->depth;
    s.gap = def->depth ? GAP : GAP_UNKNOWN;
    s.walls = def->walls && def->walls->bodies->count ? def->walls : NULL;
    s.graph = def->graph;
    size_t nodes = (size_t)mesh->node_count + 1;
    s.ball = un_arena_alloc(scratch, (size_t)groups->count + 1, sizeof *s.ball);
    s.value = un_arena_alloc(scratch, nodes, sizeof *s.value);
    s.slope = un_arena_alloc(scratch, nodes, sizeof *s.slope);
    if (!s.ball || !s.value || !s.slope) return UN_ERROR_MEMORY;
    if (s.depth) {
        int64_t box_count = un_boxes_plan(&s.balls, groups->group_count);
        s.balls.nodes = un_arena_alloc(scratch, (size_t)box_count + 1, sizeof *s.balls.nodes);
        if (!s.balls.nodes) return UN_ERROR_MEMORY;
        un_parallel_for(ctx, groups->group_count, 512, size_balls, &s);
        un_boxes_build(ctx, &s.balls);
    }
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, find_signs, &s);
    UN_TRY(fill_gaps(ctx, scratch, &s));
    if (s.walls) {
        s.solid = un_arena_alloc(scratch, nodes, sizeof *s.solid);
        if (!s.solid) return UN_ERROR_MEMORY;
        un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, find_solids, &s);
    }
    UN_TRY(un_cut_find(ctx, arena, cut, phi, mesh, def->graph));
    un_parallel_for(ctx, cut->vertex_count, NODE_GRAIN, find_crossings, &s);
    return UN_OK;
}

un_status un_hulls_level_set(un_context *ctx, un_arena *arena, float *phi, const un_tets *mesh,
                             const un_hulls *hulls, const un_groups *groups, const float *radius,
                             const float *depth)
{
    un_cut cut;
    un_tet_graph graph;
    UN_TRY(un_tet_graph_build(ctx, arena, &graph, mesh));
    un_hulls_cut_def def = {.mesh = mesh,
                            .graph = &graph,
                            .hulls = hulls,
                            .groups = groups,
                            .radius = radius,
                            .depth = depth};
    UN_TRY(un_hulls_cut(ctx, arena, arena, &def, phi, &cut));
    UN_TRY(un_cut_merge(arena, &cut));
    UN_TRY(un_cut_triangulate(ctx, arena, &cut));
    return un_cut_distance(ctx, arena, phi, &cut, &graph);
}
