/* Groups of eight consecutive particles under a tree of boxes.
 *
 * Particles sorted along a space-filling curve lie close to their successors, so eight in a row
 * have a small box, eight such boxes again have a small one, and so on: a tree without pointers,
 * built in one pass per level. A node holds the boxes of its eight children side by side, so that
 * one vector comparison tests them all. Unlike cells, the tree copes with any ratio of sizes
 * (per-level hash grids cost over 100 us a query at radius ratios of 64, methods.md). */
#include "particles/groups.h"

#define BUILD_GRAIN 64 /* nodes: 4096 particles */

typedef struct build_args {
    un_groups *groups;
    int32_t level;
} build_args;

static void clear_lane(un_group_box *node, int c)
{
    for (int a = 0; a < 3; a++) {
        node->lo[a][c] = INFINITY;
        node->hi[a][c] = -INFINITY;
    }
    node->radius[c] = NAN;
}

/* The next number below (way = -1) or above (1) if that is wanted, without a branch: it is a
 * toss-up.
 */
static inline float step_if(bool wanted, float f, int32_t way)
{
    if (f == 0) return wanted ? way * 1e-45f : f;
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits += (int32_t)wanted * (f > 0 ? way : -way);
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float round_down(double x)
{
    float f = (float)x;
    return step_if((double)f > x, f, -1);
}
static inline float round_up(double x)
{
    float f = (float)x;
    return step_if((double)f < x, f, 1);
}

static void bound_particles(un_group_box *node, int c, const un_groups *g, int64_t group)
{
    int64_t begin = group * UN_GROUP, end = un_min64(begin + UN_GROUP, g->count);
    clear_lane(node, c);
    if (begin >= end) return;
    for (int a = 0; a < 3; a++) {
        double lo = g->x[a][begin], hi = lo;
        for (int64_t q = begin + 1; q < end; q++) {
            lo = g->x[a][q] < lo ? g->x[a][q] : lo;
            hi = g->x[a][q] > hi ? g->x[a][q] : hi;
        }
        node->lo[a][c] = round_down(lo);
        node->hi[a][c] = round_up(hi);
    }
    float radius = g->radius[begin];
    for (int64_t q = begin + 1; q < end; q++)
        radius = g->radius[q] > radius ? g->radius[q] : radius;
    node->radius[c] = radius;
}

static void bound_node(un_group_box *node, int c, const un_group_box *child)
{
    for (int a = 0; a < 3; a++) {
        float lo = child->lo[a][0], hi = child->hi[a][0];
        for (int k = 1; k < 8; k++) {
            lo = child->lo[a][k] < lo ? child->lo[a][k] : lo;
            hi = child->hi[a][k] > hi ? child->hi[a][k] : hi;
        }
        node->lo[a][c] = lo;
        node->hi[a][c] = hi;
    }
    float radius = child->radius[0];
    for (int k = 1; k < 8; k++) radius = child->radius[k] > radius ? child->radius[k] : radius;
    node->radius[c] = radius;
}

static void build_nodes(void *arg, int64_t begin, int64_t end)
{
    const build_args *b = arg;
    un_groups *g = b->groups;
    int32_t first = g->level_first[b->level];
    for (int64_t n = begin; n < end; n++) {
        un_group_box *node = g->boxes + first + n;
        for (int c = 0; c < 8; c++) {
            int64_t child = 8 * n + c;
            if (b->level == 0)
                bound_particles(node, c, g, child);
            else if (child < first - g->level_first[b->level - 1])
                bound_node(node, c, g->boxes + g->level_first[b->level - 1] + child);
            else
                clear_lane(node, c);
        }
    }
}

/* Room for the tree over group_count groups. */
static un_status make_levels(un_arena *arena, un_groups *groups)
{
    int64_t width = groups->group_count, total = 0;
    while (width > 1 || (width == 1 && groups->level_count == 0)) {
        width = (width + 7) / 8;
        groups->level_first[groups->level_count++] = (int32_t)total;
        total += width;
    }
    groups->level_first[groups->level_count] = (int32_t)total;
    groups->boxes = un_arena_alloc(arena, (size_t)total + 1, sizeof *groups->boxes);
    return groups->boxes ? UN_OK : UN_ERROR_MEMORY;
}

static void build_levels(un_context *ctx, un_groups *groups, int32_t first)
{
    for (int32_t l = first; l < groups->level_count; l++) {
        build_args b = {groups, l};
        un_parallel_for(ctx, groups->level_first[l + 1] - groups->level_first[l], BUILD_GRAIN,
                        build_nodes, &b);
    }
}

un_status un_groups_build(un_context *ctx, un_arena *arena, un_groups *groups,
                          const double *const x[3], const float *radius, int64_t count)
{
    *groups = (un_groups){.count = count, .x = {x[0], x[1], x[2]}, .radius = radius};
    groups->group_count = (int32_t)((count + UN_GROUP - 1) / UN_GROUP);
    UN_TRY(make_levels(arena, groups));
    build_levels(ctx, groups, 0);
    return UN_OK;
}

un_status un_groups_build_boxes(un_context *ctx, un_arena *arena, un_groups *groups,
                                const un_box3 *box, const float *radius, int64_t count)
{
    *groups = (un_groups){.group_count = (int32_t)count};
    UN_TRY(make_levels(arena, groups));
    for (int64_t g = 0; g < (count + 7) / 8 * 8; g++) {
        un_group_box *node = groups->boxes + g / 8;
        clear_lane(node, (int)(g % 8));
        if (g >= count) continue;
        const double lo[3] = {box[g].min.x, box[g].min.y, box[g].min.z};
        const double hi[3] = {box[g].max.x, box[g].max.y, box[g].max.z};
        for (int a = 0; a < 3; a++) {
            node->lo[a][g % 8] = round_down(lo[a]);
            node->hi[a][g % 8] = round_up(hi[a]);
        }
        node->radius[g % 8] = radius[g];
    }
    build_levels(ctx, groups, 1);
    return UN_OK;
}

/* Distances are compared in single precision. Reach is widened by this share, so that no neighbour
 * is missed. */
#define ROOM 2e-6

un_groups_query un_groups_query_make(un_box3 box, double reach, double factor)
{
    UN_ASSERT(reach >= 0 && factor >= 0);
    un_groups_query q;
    double lo[3] = {box.min.x, box.min.y, box.min.z}, hi[3] = {box.max.x, box.max.y, box.max.z};
    for (int a = 0; a < 3; a++) {
        q.lo[a] = un_lanes8_all(round_down(lo[a]));
        q.hi[a] = un_lanes8_all(round_up(hi[a]));
    }
    /* Never zero: touching boxes are within a reach of zero, and its square must not underflow. */
    q.reach = fmaxf((float)(reach * (1 + ROOM)), 1e-18f);
    q.factor = (float)(factor * (1 + ROOM));
    return q;
}

void un_groups_walk_begin(un_groups_walk *w, const un_groups *groups, un_box3 box, double reach,
                          double factor)
{
    w->groups = groups;
    w->query = un_groups_query_make(box, reach, factor);
    w->level = groups->level_count;
    if (w->level == 0) return;
    w->level--;
    w->node[w->level] = 0;
    w->left[w->level] = un_groups_reached(&w->query, un_groups_node(groups, w->level, 0));
}

int32_t un_groups_near(const un_groups *groups, un_box3 box, double reach, double factor,
                       int32_t *list, int32_t capacity)
{
    un_groups_walk walk;
    un_groups_walk_begin(&walk, groups, box, reach, factor);
    int32_t count = 0;
    for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0; count++)
        if (count < capacity) list[count] = g;
    return count <= capacity ? count : -1 - count;
}
