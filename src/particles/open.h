/* Ways that particles are moved along: never through a solid, however thin. */
#ifndef UN_PARTICLES_OPEN_H
#define UN_PARTICLES_OPEN_H

#include "particles/particles.h"

/* Does the straight way from a to b stay in the domain and out of solids, as they stand at the end
 * of the step? a does. */
bool un_open_way(const un_walls *walls, un_vec3 a, un_vec3 b);
/* As above, and b is not closer to a wall than margin, or at least no closer than a. */
bool un_open_move(const un_walls *walls, un_vec3 a, un_vec3 b, double margin);

#endif
