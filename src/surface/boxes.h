/* A tree of eight-wide boxes over any things that lie along a curve. */
#ifndef UN_SURFACE_BOXES_H
#define UN_SURFACE_BOXES_H

#include "particles/particles.h"
#include "surface/lanes.h"

typedef struct un_boxes {
    un_group_box
        *nodes; /* by level, the lowest first; empty lanes have a radius of NaN and no box */
    int32_t level_first[UN_LEVELS_MAX + 1];
    int32_t level_count;
    int64_t leaf_count;
    float room; /* round-off of boxes and of points to single precision, m */
} un_boxes;

/* How many nodes there will be; the caller sets `nodes` to room for them. */
int64_t un_boxes_plan(un_boxes *boxes, int64_t leaf_count);
/* Each leaf, in any order, eight of a node from one thread. */
void un_boxes_set(un_boxes *boxes, int64_t leaf, un_box3 box, double radius);
void un_boxes_set_empty(un_boxes *boxes, int64_t leaf);
/* Then the levels above them. */
void un_boxes_build(un_context *ctx, un_boxes *boxes);

#endif
