/* Particles of many sizes for the tests of hulls. */
#ifndef UN_TEST_SURFACE_DROPS_H
#define UN_TEST_SURFACE_DROPS_H

#include "check.h"
#include "surface/surface.h"

typedef struct drops {
    int64_t count, capacity;
    double *x[3];
    float *radius, *depth;
    uint8_t *flags;
} drops;

static inline void drops_free(drops *d)
{
    for (int a = 0; a < 3; a++) free(d->x[a]);
    free(d->radius);
    free(d->depth);
    free(d->flags);
    memset(d, 0, sizeof *d);
}

static inline void drops_add(drops *d, un_vec3 x, double radius, double depth)
{
    if (d->count == d->capacity) {
        d->capacity = 2 * d->capacity + 64;
        size_t n = (size_t)d->capacity;
        for (int a = 0; a < 3; a++) d->x[a] = realloc(d->x[a], n * sizeof(double));
        d->radius = realloc(d->radius, n * sizeof(float));
        d->depth = realloc(d->depth, n * sizeof(float));
        d->flags = realloc(d->flags, n);
    }
    int64_t q = d->count++;
    d->x[0][q] = x.x;
    d->x[1][q] = x.y;
    d->x[2][q] = x.z;
    d->radius[q] = (float)radius;
    d->depth[q] = (float)depth;
    d->flags[q] = 0;
}

/* The wanted edge of the cube around a particle. */
typedef double drops_size(un_vec3 x);

/* Cubes of halving size fill a box below the plane y = top, which must be a multiple of some such
 * size; a particle in each, moved by up to
 * `jitter` radii. Depths are to the plane. Comes out in Morton order. */
static inline void drops_fill(drops *d, un_vec3 corner, double edge, double top, drops_size *size,
                              double jitter, uint64_t seed)
{
    un_vec3 center = un_v3(corner.x + edge / 2, corner.y + edge / 2, corner.z + edge / 2);
    if (corner.y >= top) return;
    if (corner.y + edge > top + 1e-12 || edge > size(center) * 1.0001) {
        for (int c = 0; c < 8; c++)
            drops_fill(d,
                       un_v3(corner.x + edge / 2 * (c & 1), corner.y + edge / 2 * (c >> 1 & 1),
                             corner.z + edge / 2 * (c >> 2)),
                       edge / 2, top, size, jitter, seed);
        return;
    }
    double r = edge / 2;
    uint64_t n = (uint64_t)d->count;
    un_vec3 shift =
        un_v3(un_random(n, seed) - 0.5, un_random(n, seed + 1) - 0.5, un_random(n, seed + 2) - 0.5);
    un_vec3 x = un_mad(center, shift, 2 * jitter * r);
    drops_add(d, x, r, x.y - top);
}

static inline un_groups drops_groups(un_context *ctx, un_arena *arena, const drops *d)
{
    un_groups groups;
    check_ok(ctx, un_groups_build(ctx, arena, &groups,
                                  (const double *const[3]){d->x[0], d->x[1], d->x[2]}, d->radius,
                                  d->count));
    return groups;
}

static inline un_hulls *drops_hulls(un_context *ctx, const drops *d, bool deep, double reach,
                                    un_hulls_report *report)
{
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_groups groups = drops_groups(ctx, &arena, d);
    un_hulls_def def = {.groups = &groups,
                        .radius = d->radius,
                        .flags = d->flags,
                        .depth = deep ? d->depth : NULL,
                        .reach = reach};
    un_hulls *hulls;
    check_ok(ctx, un_hulls_create(ctx, &arena, &def, &hulls, report));
    un_arena_free(&arena);
    return hulls;
}

#endif
