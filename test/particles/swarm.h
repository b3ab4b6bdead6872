/* Particles of many sizes with all that their manipulation asks for. */
#ifndef UN_TEST_PARTICLES_SWARM_H
#define UN_TEST_PARTICLES_SWARM_H

#include "mesh/tank.h"
#include "particles/leaves.h"
#include "particles/particles.h"

typedef struct swarm {
    tank tank;
    un_arena arena;
    un_particles p;
    un_groups groups;
    float *radius, *phi, *normal[3], *wall;
} swarm;

/* Then add solids, then swarm_build. */
static inline void swarm_begin(swarm *s, int32_t threads)
{
    memset(s, 0, sizeof *s);
    tank_begin(&s->tank, threads, un_v3(1, 1, 1), 16);
    un_arena_init(&s->arena, s->tank.ctx);
    s->p.sized = true;
}

static inline void swarm_drop_arrays(swarm *s)
{
    free(s->radius);
    free(s->phi);
    free(s->wall);
    for (int a = 0; a < 3; a++) free(s->normal[a]);
}

static inline void swarm_end(swarm *s)
{
    swarm_drop_arrays(s);
    un_particles_free(s->tank.ctx, &s->p);
    un_arena_free(&s->arena);
    tank_end(&s->tank);
}

/* Sorted along the Morton curve of cells of edge h. */
static inline void swarm_sort(swarm *s, double h)
{
    un_context *ctx = s->tank.ctx;
    un_particles *p = &s->p;
    uint32_t *keys = un_arena_alloc(&s->arena, (size_t)p->count + 1, sizeof *keys);
    int32_t *order = un_arena_alloc(&s->arena, (size_t)p->count + 1, sizeof *order);
    for (int32_t q = 0; q < p->count; q++)
        keys[q] = (uint32_t)un_morton((uint32_t)(p->x[0][q] / h), (uint32_t)(p->x[1][q] / h),
                                      (uint32_t)(p->x[2][q] / h));
    check_ok(ctx, un_parallel_sort(ctx, &s->arena, order, keys, p->count, 32));
    un_particles_reorder(ctx, p, order);
}

/* Radii, groups, and a level set far from the particles; `phi_at` if it is not. */
static inline void swarm_look(swarm *s, double (*phi_at)(un_vec3 x))
{
    un_context *ctx = s->tank.ctx;
    un_particles *p = &s->p;
    size_t room = (size_t)p->count + 1;
    swarm_drop_arrays(s);
    un_arena_reset(&s->arena);
    s->radius = malloc(room * sizeof(float));
    s->phi = malloc(room * sizeof(float));
    s->wall = malloc(room * sizeof(float));
    for (int a = 0; a < 3; a++) s->normal[a] = malloc(room * sizeof(float));
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q), n = {0, 0, 0};
        s->radius[q] = (float)(0.5 * un_particles_spacing(p, p->volume[q]));
        s->phi[q] = -1e3f;
        if (phi_at) {
            double e = 1e-5;
            s->phi[q] = (float)phi_at(x);
            n = un_normalize(
                un_v3(phi_at(un_v3(x.x + e, x.y, x.z)) - phi_at(un_v3(x.x - e, x.y, x.z)),
                      phi_at(un_v3(x.x, x.y + e, x.z)) - phi_at(un_v3(x.x, x.y - e, x.z)),
                      phi_at(un_v3(x.x, x.y, x.z + e)) - phi_at(un_v3(x.x, x.y, x.z - e))));
        }
        s->normal[0][q] = (float)n.x;
        s->normal[1][q] = (float)n.y;
        s->normal[2][q] = (float)n.z;
        s->wall[q] = (float)(0.9 * un_walls_distance_exact(s->tank.walls, x));
    }
    const double *const x[3] = {p->x[0], p->x[1], p->x[2]};
    check_ok(ctx, un_groups_build(ctx, &s->arena, &s->groups, x, s->radius, p->count));
}

static inline un_correct_def swarm_correct_def(const swarm *s)
{
    return (un_correct_def){.groups = &s->groups,
                            .dt = INFINITY,
                            .radius = s->radius,
                            .phi = s->phi,
                            .normal = {s->normal[0], s->normal[1], s->normal[2]},
                            .wall = s->wall,
                            .walls = s->tank.walls};
}

static inline un_resize_def swarm_resize_def(const swarm *s, uint64_t stream)
{
    return (un_resize_def){.groups = &s->groups,
                           .radius = s->radius,
                           .phi = s->phi,
                           .normal = {s->normal[0], s->normal[1], s->normal[2]},
                           .walls = s->tank.walls,
                           .volume_min = 1e-9,
                           .volume_max = 1e-2,
                           .stream = stream};
}

static inline void swarm_correct(swarm *s)
{
    un_correct_def def = swarm_correct_def(s);
    check_ok(s->tank.ctx, un_particles_correct_sized(s->tank.ctx, &s->arena, &s->p, &def));
}

static inline void swarm_seed(swarm *s, int32_t level_max, leaf_size *wanted, const un_shape *shape)
{
    double volume;
    un_octree tree = leaves_make(un_v3(1, 1, 1), 1, level_max, wanted);
    un_seed_leaves_def def = {.tree = &tree, .shape = shape, .walls = s->tank.walls};
    check_ok(s->tank.ctx, un_particles_seed_leaves(s->tank.ctx, &s->p, &def, &volume));
    leaves_free(&tree);
}

/* `count` particles at rest in the middle, to be placed. */
static inline void swarm_make(swarm *s, int32_t count)
{
    check_ok(s->tank.ctx, un_particles_reserve(s->tank.ctx, &s->p, count));
    s->p.count = count;
    for (int32_t q = 0; q < count; q++) {
        for (int a = 0; a < 3; a++) {
            s->p.x[a][q] = 0.5;
            s->p.v[a][q] = 0;
        }
        s->p.volume[q] = 1e-6f;
        s->p.flags[q] = 0;
        s->p.size[q] = 1;
    }
}

static inline void swarm_place(swarm *s, int32_t q, un_vec3 x, double radius)
{
    s->p.x[0][q] = x.x;
    s->p.x[1][q] = x.y;
    s->p.x[2][q] = x.z;
    s->p.volume[q] = (float)(8 * radius * radius * radius);
}

static inline un_vec3 swarm_point(uint64_t q, uint64_t stream)
{
    return un_v3(un_random(q, stream), un_random(q, stream + 1), un_random(q, stream + 2));
}

/* Positions, x first, for comparison. */
static inline double *swarm_copy(const un_particles *p)
{
    double *x = malloc((size_t)(3 * p->count + 1) * sizeof *x);
    for (int a = 0; a < 3; a++) memcpy(x + a * p->count, p->x[a], (size_t)p->count * sizeof *x);
    return x;
}

#endif
