/* A tree of eight-wide boxes over anything sorted along a curve. */
#ifndef UN_SURFACE_BOXES_H
#define UN_SURFACE_BOXES_H

#include "base/lanes.h"
#include "particles/particles.h"

typedef struct un_boxes {
    un_group_box
        *nodes; /* by level, the lowest first; empty lanes have a radius of NaN and no box */
    int32_t level_first[UN_LEVELS_MAX + 1];
    int32_t level_count;
    int64_t leaf_count;
    float room; /* round-off of boxes and of points to single precision, m */
} un_boxes;

/* Returns the number of nodes; the caller sets `nodes` to memory for them. */
int64_t un_boxes_plan(un_boxes *boxes, int64_t leaf_count);
/* Sets a leaf. Leaves may come in any order, but all eight of a node from one thread. */
void un_boxes_set(un_boxes *boxes, int64_t leaf, un_box3 box, double radius);
void un_boxes_set_empty(un_boxes *boxes, int64_t leaf);
/* Builds the levels above the leaves. */
void un_boxes_build(un_context *ctx, un_boxes *boxes);
/* The same where not all nodes of the lowest level are here, from the bounds of all of them. */
typedef struct un_box_bound {
    float lo[3], hi[3], radius;
} un_box_bound;
un_box_bound un_boxes_bound(const un_boxes *boxes, int64_t node);
void un_boxes_build_above(un_context *ctx, un_boxes *boxes, const un_box_bound *bound);

/* Squares of the distances from the box [lo, hi] to eight boxes. */
static inline un_lanes8 un_boxes_gaps(const un_group_box *box, const un_lanes8 lo[3],
                                      const un_lanes8 hi[3])
{
    un_lanes8 zero = un_lanes8_all(0), gap2 = zero;
    for (int x = 0; x < 3; x++) {
        un_lanes8 below = un_lanes8_load(box->lo[x]) - hi[x];
        un_lanes8 above = lo[x] - un_lanes8_load(box->hi[x]);
        un_lanes8 out = un_lanes8_max(un_lanes8_max(below, above), zero);
        gap2 += out * out;
    }
    return gap2;
}

#endif
