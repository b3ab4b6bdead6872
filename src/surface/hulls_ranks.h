/* What hull_mesher.c needs to be several (hull_ranks.c). */
#ifndef UN_SURFACE_HULLS_RANKS_H
#define UN_SURFACE_HULLS_RANKS_H

#include "surface/surface.h"

/* The particles of all ranks, as far as a surface needs them, with places and velocities rounded as
 * files have them. From the arena, but velocities from `motion`. */
typedef struct un_all_particles {
    un_particles particles;
    float *radius, *depth;
} un_all_particles;
un_status un_all_particles_get(un_context *ctx, un_arena *arena, un_arena *motion,
                               un_all_particles *all, const un_hull_mesher *in);
/* After `motion` is free: rank 0 gets velocities again. */
un_status un_all_velocities_get(un_context *ctx, un_arena *arena, un_all_particles *all,
                                const un_hull_mesher *in);
/* The same for a level set of hulls: as they are, without velocities, volumes and depths. */
typedef struct un_all_markers {
    const double *x[3];
    const float *radius;
    const uint8_t *flags;
    un_groups groups;
} un_all_markers;
un_status un_all_markers_get(un_context *ctx, un_arena *arena, un_all_markers *all,
                             const un_markers *markers);
/* The tree of the requests of all ranks, shared out evenly by requests. part: as for
 * un_octree_build_ranks. */
un_status un_hulls_build_tree(un_octree *tree, un_tree_share *part, un_arena *arena,
                              const un_octree_request *request);

#endif
