/* What fit.c does on any mesh; leaf_fit.c does it on an octree's leaves. */
#ifndef UN_SURFACE_FIT_H
#define UN_SURFACE_FIT_H

#include "surface/surface.h"

/* Cells: the move fades out over this depth. */
#define UN_FIT_DEPTH 3.0

typedef struct un_fit {
    un_markers *markers;
    const un_walls *walls;
    const un_shape *shape;
    un_vec3 size;                                 /* of the domain; z = 0 in 2D */
    double (*sample)(const void *arg, un_vec3 x); /* the level set inside it */
    const void *arg;
} un_fit;
/* Is particle q, in a cell of edge h, near enough to the surface to be moved? */
bool un_fit_is_near(const un_fit *fit, int64_t q, double h);
/* Moves it by as much as the level set, whose normal is m, lies off the shape's surface. g: the
 * gradient of the shape's distance. */
void un_fit_move(const un_fit *fit, int64_t q, double h, un_vec3 m, un_vec3 g);

#endif
