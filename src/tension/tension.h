/* Surface tension: the pressure sigma kappa that a curved surface puts on the liquid under it. The
 * projections take it as the surface's pressure (pressure/pressure.h). */
#ifndef UN_TENSION_H
#define UN_TENSION_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "surface/surface.h"

/* ---- on the grid (grid.c, distance.c, contact.c, line.c) ---- */

typedef struct un_tension_grid {
    double *pressure; /* at cells, set everywhere, Pa: sigma kappa in the cells on both sides of the
                       * surface, a mean of these elsewhere */
    const float *phi; /* at cells; liquid where negative */
    const un_grid *grid;
    const un_walls *walls;
    const un_scene_def *def; /* tension, contact angles, open sides */
    un_bodies *bodies;       /* those of the walls: the surface pulls on the ones that the liquid
                              * moves (line.c); NULL: there are none */
    double kick;             /* s: for which it pulls */
} un_tension_grid;
un_status un_tension_on_grid(un_context *ctx, un_arena *arena, const un_tension_grid *in);

/* ---- on the leaves of an octree (leaves.c) ---- */

typedef struct un_tension_leaves {
    double *pressure; /* at leaves, set everywhere, Pa: as on the grid */
    const float *phi; /* at leaves; liquid where negative */
    const un_leaves *leaves;
    const un_leaf_walls *walls;
    const un_scene_def *def;
    un_bodies *bodies; /* and kick: as on the grid */
    double kick;
} un_tension_leaves;
/* All ranks call both. */
un_status un_tension_on_leaves(un_context *ctx, un_arena *arena, const un_tension_leaves *in);
/* Bytes that it takes, about. */
double un_tension_leaves_bytes(const un_leaves *leaves, const float *phi);

/* ---- on a grid that warps (warp.c) ---- */

typedef struct un_tension_warp {
    double *pressure; /* at places, set everywhere, Pa: as on the grid */
    const float *phi; /* at cells; liquid where negative */
    const un_walls *walls;
    const un_scene_def *def;
} un_tension_warp;
un_status un_tension_on_warp(un_context *ctx, un_arena *arena, const un_tension_warp *in);
/* The smallest distance of two cells along the surface, m; infinite without a surface. */
double un_tension_warp_spacing(un_context *ctx, const un_warp *warp, const float *phi);

/* ---- on tets (tets.c, line.c) ---- */

typedef struct un_tension_tets {
    double *pressure; /* at nodes, set everywhere, Pa: as on the grid */
    const float *phi; /* at nodes, a distance; liquid where negative */
    const un_tets *mesh;
    const un_tet_walls *walls;
    const un_scene_def *def;
    un_bodies *bodies; /* and kick: as on the grid */
    double kick;
} un_tension_tets;
/* Called by un_tension_on_tets. */
void un_tension_pull_on_tets(un_context *ctx, const un_tension_tets *in);
un_status un_tension_on_tets(un_context *ctx, un_arena *arena, const un_tension_tets *in);

/* ---- of a carried surface (track.c) ---- */

typedef struct un_tension_track {
    double *pressure; /* at points, Pa */
    const un_vec3 *x; /* on the surface; where x.x is NaN there is no pressure */
    int64_t count;
    const un_track *track;
    const un_grid *grid; /* cells as large as the surface's triangles */
    const un_walls *walls;
    const un_scene_def *def;
} un_tension_track;
un_status un_tension_on_track(un_context *ctx, un_arena *arena, const un_tension_track *in);

/* ---- time (limit.c) ---- */

/* How long a step may be where cells have the edge h, s; infinite without tension. */
double un_tension_step_limit(const un_scene_def *def, double h);
/* The strongest pull that a surface on cells of the edge h can have, as a speed in a kick, m/s:
 * walls hold the liquid against less. */
double un_tension_hold(const un_scene_def *def, double h, double kick);

#endif
