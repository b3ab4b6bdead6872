/* Distances on leaves away from the surface; leaf_colour.c calls it. */
#ifndef UN_SURFACE_LEAF_FRONT_H
#define UN_SURFACE_LEAF_FRONT_H

#include "surface/surface.h"

/* Where there is no surface at all, m. */
#define UN_LEAF_FAR 1e9f
/* Of `known`: deep in walls. */
#define UN_LEAF_UNKNOWN 255

typedef struct un_leaf_front {
    const un_leaves *leaves;
    float *phi;           /* keeps its sign; in the band, and where it is unknown, its value */
    const uint8_t *band;  /* next to the surface */
    const uint8_t *known; /* UN_LEAF_UNKNOWN, or anything else */
} un_leaf_front;
un_status un_leaf_front_run(un_context *ctx, un_arena *arena, const un_leaf_front *def);

#endif
