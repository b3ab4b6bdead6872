/* Transfer: particles <-> mesh. */
#ifndef UN_TRANSFER_H
#define UN_TRANSFER_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "particles/particles.h"

/* Face velocities: the mean of the particles' weighted by volume and a linear kernel. Faces that no
 * particle reaches have weight 0 and velocity 0. */
void un_transfer_to_faces(un_context *ctx, double *const u[3], double *const weight[3],
                          const un_grid *grid, const un_bins *bins, const un_particles *particles);

/* known[a][f] != 0 marks faces with a value. Each of `layers` passes gives faces next to known
 * ones the mean of those and marks them: 2 after the first pass, 3 after the second, ... w may be
 * NULL: a second field that goes along. */
un_status un_transfer_extrapolate(un_context *ctx, un_arena *arena, double *const u[3],
                                  double *const w[3], uint8_t *const known[3], const un_grid *grid,
                                  int32_t layers);

/* v <- (1 - pic) (v + u_new - u_old) + pic u_new at each particle that is not ballistic; those get
 * gravity alone. pic: the share for this step where the liquid moves, and where it is quiet. */
typedef struct un_flip {
    double dt;
    un_vec3 gravity;
    double pic, pic_quiet; /* shares of this step */
    double quiet_speed;    /* m/s: at rest well below, in motion well above */
} un_flip;
void un_transfer_to_particles(un_context *ctx, un_particles *particles, double *const u_new[3],
                              double *const u_old[3], const un_grid *grid, const un_flip *flip);

/* Marks as ballistic the particles with no liquid cell (phi < 0) among the eight whose centres
 * surround them. Returns their number, and what volume of particles lies where phi < 0. */
int64_t un_transfer_mark_ballistic(un_context *ctx, un_particles *particles, const float *phi,
                                   const un_grid *grid, double *volume_inside);

#endif
