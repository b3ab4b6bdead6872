/* One particle for the liquid of a half cell: shared by seeding on a grid and on leaves. */
#ifndef UN_PARTICLES_FILL_H
#define UN_PARTICLES_FILL_H

#include "particles/particles.h"

/* Jitter of emitted particles and of those near the free surface, as a share of the half cell. */
#define UN_JITTER_SURFACE 0.05

/* Half cells with less liquid than this are left empty. */
#define UN_FRACTION_MIN 0.02

/* The region to fill: the shape, less walls, in the domain [0, size]. */
typedef struct un_fill {
    const un_shape *shape;
    const un_walls *walls;
    un_vec3 size;
    int32_t dim;
    double wall; /* walls are at least so far from the half cells' middles; -INFINITY: not known */
} un_fill;

typedef struct un_seed {
    un_vec3 x;
    double volume;
} un_seed;

static inline bool un_fill_in_domain(const un_fill *f, un_vec3 x)
{
    return x.x > 0 && x.y > 0 && x.x < f->size.x && x.y < f->size.y &&
           (f->dim == 2 || (x.z > 0 && x.z < f->size.z));
}
/* The particle of the half cell of edge s around x, if it has one. jitter: in [-0.5, 0.5]. */
bool un_fill_half_cell(const un_fill *fill, un_vec3 x, double s, un_vec3 jitter, un_seed *out);
/* The share of a half cell that leaves the emitter in this step. The half cell has edge s and moved
 * to x by `step`. 0 if it has not reached the emitter, or did so in an earlier step; x becomes the
 * middle of that share (stream.c). */
double un_stream_half_cell(const un_shape *shape, un_vec3 step, un_vec3 *x, double s, int32_t dim);
/* The distance of x to the stream's surface, below 0 inside; not found beyond -s. */
double un_stream_distance(const un_shape *shape, un_vec3 step, un_vec3 x, double s, int32_t dim);
/* Random numbers in [-0.5, 0.5], by half cell; in 2D the third is 0. */
un_vec3 un_fill_jitter(uint64_t index, uint64_t stream, int32_t dim);
/* Volume of a half cell of edge s. */
static inline double un_fill_volume(double s, int32_t dim)
{
    return dim == 2 ? s * s : s * s * s;
}
/* Stores the seed as particle `at`. Its wanted size, if particles have one, is the cell's. */
void un_fill_store(un_particles *particles, int64_t at, const un_seed *seed, un_vec3 velocity,
                   double cell);

/* Seeding in two passes over places to visit: the first counts seeds by block, the second stores
 * them where the counts say. */
typedef struct un_fill_pass {
    int64_t count, grain; /* places, and how many make a block */
    un_parallel_body *body;
    void *arg;
    un_particles *particles; /* NULL in the first pass */
    int64_t *begin;          /* by block: set to counts by the first pass, offsets in the second */
} un_fill_pass;

/* Appends the seeds. volume: the volume added. */
un_status un_fill_append(un_context *ctx, un_particles *particles, un_fill_pass *pass,
                         double *volume);

#endif
