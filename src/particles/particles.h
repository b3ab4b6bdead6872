/* Particles: structure of arrays, seeding, sorting along a space-filling curve, position
 * correction. */
#ifndef UN_PARTICLES_H
#define UN_PARTICLES_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "mesh/mesh.h"

enum { UN_PARTICLE_BALLISTIC = 1 };

typedef struct un_particles {
    int32_t count;
    size_t capacity;
    double *x[3]; /* position, m */
    double *v[3]; /* velocity, m/s */
    float *volume; /* m3 */
    uint8_t *flags;
} un_particles;

#endif
