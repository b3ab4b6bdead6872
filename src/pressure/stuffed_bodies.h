/* Bodies that the liquid moves, on tets that conform to them; only src/pressure/stuffed*.c include
 * this. */
#ifndef UN_PRESSURE_STUFFED_BODIES_H
#define UN_PRESSURE_STUFFED_BODIES_H

#include "pressure/pressure.h"

typedef struct un_stuffed_bodies {
    un_pressure *pr;
    const un_stuffed_projection *in;
    un_vec3 reference;        /* where the weight is 0 */
    const double *air;        /* by face: NAN at walls */
    const un_vec3 *gradient;  /* by tet: of q dt / rho */
    un_vec3 *velocity, *spin; /* by body: before the projection */
    int32_t *chamfer; /* by place in mesh->boundary: whose water line it is at; -1: none's */
    double *hidden;   /* by place in mesh->boundary: of the body, outside the face, m3 */
} un_stuffed_bodies;

/* How fast a face goes along its normal by the body's velocity along x, y, z and its spin about
 * them. */
void un_stuffed_motion(double motion[6], const un_body *body, const un_stuffing *mesh, int32_t f);
/* Builds the columns. */
un_status un_stuffed_bodies_couple(un_stuffed_bodies *bodies, un_arena *arena);
/* Velocities with all that pushes the bodies but the columns. */
void un_stuffed_bodies_lean(const un_stuffed_bodies *bodies);

#endif
