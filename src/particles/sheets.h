/* What sheets.c and evening.c share: thin particles and how they lie. */
#ifndef UN_PARTICLES_SHEETS_H
#define UN_PARTICLES_SHEETS_H

#include "particles/groups.h"
#include "particles/particles.h"

#include <stdatomic.h>

/* The sheet or thread around a thin particle, as its neighbours show it. */
typedef struct un_lay {
    double mass;      /* of the neighbours and the particle itself, weighted */
    float strength;   /* 0: neither a sheet nor a thread; 1: surely one */
    float across[6];  /* projector onto the directions across it: xx yy zz yz xz xy */
    double fit[3][3]; /* gradient of the velocity along it, 1/s */
    float spacing;    /* of an even layer of such particles, m */
    float flatten;    /* how far the particle stands out: 0 not at all, to 1 */
    float axis[3];    /* a sheet's normal, a thread's direction */
    bool rim, thread;
} un_lay;

/* Copies of the thin particles, sorted along a curve. */
typedef struct un_thin {
    int64_t count;
    int32_t *id;             /* of the particle */
    double *x[3], *v[3];     /* m, m/s */
    double *mass;            /* kg where the liquid is mixed, else m3 */
    double *volume, *radius; /* m3, m */
    float *single[3];        /* x in single precision */
    float room;              /* m: more than its rounding */
    float *half_reach;       /* m; two are neighbours within the sum of theirs */
    un_lay *lay;
    un_groups groups; /* with half_reach for a radius */
    /* By group: holds particles that are to change; is near such a group, so that its lay is
     * wanted. NULL: all do. */
    uint8_t *own;
    atomic_uchar *near;
} un_thin;

/* Groups that may hold neighbours of a group's particles: at most a chunk at a time. */
#define UN_THIN_CHUNK 64
typedef struct un_thin_chunk {
    int32_t count;
    int32_t group[UN_THIN_CHUNK];
} un_thin_chunk;

typedef struct un_thin_walk {
    const un_thin *thin;
    un_groups_walk walk;
} un_thin_walk;

void un_thin_walk_begin(un_thin_walk *walk, const un_thin *thin, int32_t group);
/* False after the last chunk, which it leaves as it is. */
bool un_thin_walk_next(un_thin_walk *walk, un_thin_chunk *chunk);
static inline un_vec3 un_thin_position(const un_thin *t, int64_t i)
{
    return un_v3(t->x[0][i], t->x[1][i], t->x[2][i]);
}
static inline un_vec3 un_thin_velocity(const un_thin *t, int64_t i)
{
    return un_v3(t->v[0][i], t->v[1][i], t->v[2][i]);
}
/* Finds thin->lay from the neighbours (sheets.c). */
void un_thin_find_lay(un_context *ctx, un_thin *thin, bool flat);
/* Changes of velocity and moves by particle in `thin` (evening.c). */
un_status un_thin_even(un_context *ctx, un_arena *arena, const un_thin *thin,
                       un_particles *particles, const un_sheets_def *def);

/* The radius of a particle, the same to the last bit in a scene of another size: the rounding of
 * cbrt depends on the sign of the exponent. */
static inline double un_thin_radius(double volume, bool flat)
{
    int exponent;
    double part = frexp(volume, &exponent);
    if (flat || !(volume > 0)) return 0.5 * sqrt(volume);
    int third = (exponent + 3000) / 3 - 1000;
    return ldexp(cbrt(ldexp(part, exponent - 3 * third)), third - 1);
}

#endif
