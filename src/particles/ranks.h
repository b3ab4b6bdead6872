/* Internals of particles over ranks. */
#ifndef UN_PARTICLES_RANKS_H
#define UN_PARTICLES_RANKS_H

#include "particles/groups.h"
#include "particles/particles.h"

#define UN_PARTICLE_FIELDS 12
/* All that a particle has on tets; returns the number of arrays. */
int32_t un_particle_fields(un_field fields[UN_PARTICLE_FIELDS], const un_particles *from,
                           un_particles *to);

/* As un_tet_bins_sort, of particles whose tets stand in bins->tet already (tet_bins.c). */
un_status un_tet_bins_sort_known(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                                 un_particles *particles, const un_tets *mesh);

/* After sorting own particles on the mesh: copies of those that own nodes and own particles need,
 * and the bins and groups of all (ranks_copies.c). */
un_status un_markers_copy_around(un_context *ctx, un_arena *arena, un_markers *markers,
                                 const un_tets *mesh, const un_tree_share *tree);

#endif
