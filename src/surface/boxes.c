/* A tree of eight-wide boxes without pointers: node n of a level holds the boxes of nodes 8 n to 8
 * n + 7 of the level below; at the lowest level, of the leaves. */
#include "surface/boxes.h"

#define NODE_GRAIN 256

int64_t un_boxes_plan(un_boxes *boxes, int64_t leaf_count)
{
    int64_t total = 0;
    boxes->level_count = 0;
    for (int64_t width = leaf_count; width > 1 || (width == 1 && boxes->level_count == 0);) {
        width = (width + 7) / 8;
        boxes->level_first[boxes->level_count++] = (int32_t)total;
        total += width;
    }
    boxes->level_first[boxes->level_count] = (int32_t)total;
    boxes->leaf_count = leaf_count;
    return total;
}

static void clear_lane(un_group_box *node, int32_t c)
{
    for (int32_t a = 0; a < 3; a++) node->lo[a][c] = INFINITY, node->hi[a][c] = -INFINITY;
    node->radius[c] = NAN;
}

static float round_down(double v)
{
    float f = (float)v;
    return (double)f > v ? nextafterf(f, -INFINITY) : f;
}
static float round_up(double v)
{
    return -round_down(-v);
}

void un_boxes_set(un_boxes *boxes, int64_t leaf, un_box3 box, double radius)
{
    un_group_box *node = boxes->nodes + leaf / 8;
    int32_t c = leaf % 8;
    node->lo[0][c] = round_down(box.min.x), node->hi[0][c] = round_up(box.max.x);
    node->lo[1][c] = round_down(box.min.y), node->hi[1][c] = round_up(box.max.y);
    node->lo[2][c] = round_down(box.min.z), node->hi[2][c] = round_up(box.max.z);
    node->radius[c] = round_up(radius);
}

void un_boxes_set_empty(un_boxes *boxes, int64_t leaf)
{
    clear_lane(boxes->nodes + leaf / 8, leaf % 8);
}

static void widen(un_box_bound *b, const un_group_box *node)
{
    for (int32_t k = 0; k < 8; k++) {
        for (int32_t x = 0; x < 3; x++) {
            b->lo[x] = fminf(b->lo[x], node->lo[x][k]);
            b->hi[x] = fmaxf(b->hi[x], node->hi[x][k]);
        }
        b->radius = fmaxf(b->radius, node->radius[k]);
    }
}

un_box_bound un_boxes_bound(const un_boxes *boxes, int64_t node)
{
    un_box_bound b = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}, NAN};
    widen(&b, boxes->nodes + node);
    return b;
}

typedef struct build_args {
    un_boxes *boxes;
    const un_box_bound *bound; /* of the lowest level; NULL: its nodes are here */
    int32_t level;
} build_args;

static void build_nodes(void *arg, int64_t begin, int64_t end)
{
    build_args *a = arg;
    un_boxes *boxes = a->boxes;
    int32_t first = boxes->level_first[a->level], below = boxes->level_first[a->level - 1];
    for (int64_t n = begin; n < end; n++) {
        un_group_box *node = boxes->nodes + first + n;
        for (int32_t c = 0; c < 8; c++) {
            int64_t child = 8 * n + c;
            clear_lane(node, c);
            if (child >= first - below) continue;
            bool told = a->bound && a->level == 1;
            un_box_bound b = told ? a->bound[child] : un_boxes_bound(boxes, below + child);
            for (int32_t x = 0; x < 3; x++) node->lo[x][c] = b.lo[x], node->hi[x][c] = b.hi[x];
            node->radius[c] = b.radius;
        }
    }
}

static void build_levels(un_context *ctx, un_boxes *boxes, const un_box_bound *bound)
{
    build_args a = {boxes, bound, 1};
    for (; a.level < boxes->level_count; a.level++)
        un_parallel_for(ctx, boxes->level_first[a.level + 1] - boxes->level_first[a.level],
                        NODE_GRAIN, build_nodes, &a);
}

static void find_room(un_boxes *boxes, const un_box_bound *all)
{
    boxes->room = 0;
    for (int32_t x = 0; x < 3; x++)
        if (all->lo[x] <= all->hi[x])
            boxes->room =
                fmaxf(boxes->room, 4 * FLT_EPSILON * fmaxf(fabsf(all->lo[x]), fabsf(all->hi[x])));
}

void un_boxes_build(un_context *ctx, un_boxes *boxes)
{
    if (boxes->level_count == 0) return;
    for (int64_t leaf = boxes->leaf_count; leaf % 8; leaf++) un_boxes_set_empty(boxes, leaf);
    build_levels(ctx, boxes, NULL);
    un_box_bound all = un_boxes_bound(boxes, boxes->level_first[boxes->level_count] - 1);
    find_room(boxes, &all);
}

void un_boxes_build_above(un_context *ctx, un_boxes *boxes, const un_box_bound *bound)
{
    if (boxes->level_count == 0) return;
    build_levels(ctx, boxes, bound);
    un_box_bound all = bound[0];
    if (boxes->level_count > 1)
        all = un_boxes_bound(boxes, boxes->level_first[boxes->level_count] - 1);
    find_room(boxes, &all);
}
