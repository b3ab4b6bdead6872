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

typedef struct build_args {
    un_boxes *boxes;
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
            clear_lane(node, c);
            if (8 * n + c >= first - below) continue;
            const un_group_box *child = boxes->nodes + below + 8 * n + c;
            for (int32_t k = 0; k < 8; k++) {
                for (int32_t x = 0; x < 3; x++) {
                    node->lo[x][c] = fminf(node->lo[x][c], child->lo[x][k]);
                    node->hi[x][c] = fmaxf(node->hi[x][c], child->hi[x][k]);
                }
                node->radius[c] = fmaxf(node->radius[c], child->radius[k]);
            }
        }
    }
}

void un_boxes_build(un_context *ctx, un_boxes *boxes)
{
    if (boxes->level_count == 0) return;
    for (int64_t leaf = boxes->leaf_count; leaf % 8; leaf++) un_boxes_set_empty(boxes, leaf);
    build_args a = {boxes, 1};
    for (; a.level < boxes->level_count; a.level++)
        un_parallel_for(ctx, boxes->level_first[a.level + 1] - boxes->level_first[a.level],
                        NODE_GRAIN, build_nodes, &a);
    const un_group_box *top = boxes->nodes + boxes->level_first[boxes->level_count] - 1;
    boxes->room = 0;
    for (int32_t c = 0; c < 8; c++)
        for (int32_t x = 0; x < 3; x++)
            if (top->lo[x][c] <= top->hi[x][c])
                boxes->room =
                    fmaxf(boxes->room,
                          4 * FLT_EPSILON * fmaxf(fabsf(top->lo[x][c]), fabsf(top->hi[x][c])));
}
