/* Inside of the pressure folder: how fast crowded liquid evens out, on any mesh.
 *
 * Inside the liquid the particles' volume fraction should be one. The difference, beyond the noise
 * of their positions, becomes a divergence. */
#ifndef UN_PRESSURE_CROWDING_H
#define UN_PRESSURE_CROWDING_H

#include "base/base.h"

/* Time in which crowded or thinned liquid evens out, and the fastest evening out, in paces of the
 * scene (un_scene_pace). */
#define CROWDING_TIME 0.1
#define CROWDING_RATE_MAX 4.0
/* Liquid that ran into a wall or into itself within a step piles up. The excess that counts as such
 * a heap is removed in this many steps, whatever their length. */
#define CROWDING_STEPS 4

/* Adds the rate to sigma, 1/s. crowding: the excess of the volume fraction beyond the noise; heap:
 * beyond what is a heap. */
static inline double un_crowding_add(double sigma, double crowding, double heap, double dt,
                                     double pace)
{
    double time = fmax(CROWDING_TIME * pace, 2 * dt), most = CROWDING_RATE_MAX / pace;
    sigma += fmax(0, heap) / (CROWDING_STEPS * dt);
    return sigma + un_clamp(crowding / time, -most, most);
}

#endif
