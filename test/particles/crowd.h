/* Particles all over a tank, for tests. */
#ifndef UN_TEST_PARTICLES_CROWD_H
#define UN_TEST_PARTICLES_CROWD_H

#include "mesh/tank.h"
#include "particles/particles.h"

static inline void fill_at_random(tank *t, un_particles *p, int32_t count)
{
    check_ok(t->ctx, un_particles_reserve(t->ctx, p, count));
    p->count = count;
    for (uint64_t q = 0; q < (uint64_t)count; q++) {
        p->x[0][q] = t->grid.size.x * un_random(q, 1);
        p->x[1][q] = t->grid.size.y * un_random(q, 2);
        p->x[2][q] = t->grid.size.z * un_random(q, 3);
        if (q < 8) /* corners of the domain */
            for (int a = 0; a < 3; a++) p->x[a][q] = q >> a & 1 ? 1 : 0;
        /* everything else follows from the position, so that a swap would show */
        p->v[0][q] = 2 * p->x[0][q];
        p->v[1][q] = p->x[0][q] - p->x[1][q];
        p->v[2][q] = p->x[2][q] * p->x[1][q];
        p->volume[q] = (float)(p->x[0][q] + 3 * p->x[2][q]);
        p->flags[q] = p->x[1][q] > 0.5;
    }
}

typedef struct crowd {
    tank tank;
    un_arena arena;
    un_bins *bins;
    un_particles particles;
    float *phi;
} crowd;

static inline void crowd_begin(crowd *c, int32_t threads, bool ball)
{
    memset(c, 0, sizeof *c);
    tank_begin(&c->tank, threads, un_v3(1, 1, 1), 10);
    un_shape *sphere = tank_sphere(&c->tank, un_v3(0.5, 0.5, 0.5), 0.2);
    if (ball) tank_solid(&c->tank, sphere, un_v3(0, 0, 0));
    tank_build(&c->tank);
    un_arena_init(&c->arena, c->tank.ctx);
    check_ok(c->tank.ctx, un_bins_create(c->tank.ctx, &c->tank.grid, &c->bins));
    c->phi = malloc((size_t)c->tank.grid.cell_count * sizeof *c->phi);
    for (int64_t n = 0; n < c->tank.grid.cell_count; n++) c->phi[n] = -1;
}

/* All over the tank, none ballistic. */
static inline un_particles *crowd_fill(crowd *c, int32_t count)
{
    crowd_begin(c, 2, false);
    fill_at_random(&c->tank, &c->particles, count);
    memset(c->particles.flags, 0, (size_t)count);
    return &c->particles;
}

static inline void crowd_correct(crowd *c)
{
    check_ok(c->tank.ctx, un_bins_sort(c->bins, &c->arena, &c->particles));
    check_ok(c->tank.ctx, un_particles_correct(c->tank.ctx, &c->arena, &c->particles, c->bins,
                                               c->phi, c->tank.walls, 0));
    un_arena_reset(&c->arena);
}

static inline void crowd_end(crowd *c)
{
    free(c->phi);
    un_particles_free(c->tank.ctx, &c->particles);
    un_bins_destroy(c->bins);
    un_arena_free(&c->arena);
    tank_end(&c->tank);
}

#endif
