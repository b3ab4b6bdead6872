/* Small particles around giants, and too few to be liquid themselves. */
#include "particles/groups.h"
#include "particles/particles.h"

#include <stdatomic.h>

/* What counts as small, in a giant's radii, and how far around its centre. Sizes that the sizing
 * function makes do not change as fast as that. */
#define SMALL 0.2
#define AROUND 6.0

typedef struct drops_args {
    un_particles *particles;
    const un_groups *groups;
    const float *radius;
    const uint8_t *giant;
    atomic_uchar *drop; /* by particle */
} drops_args;

/* The volume of the small ones around a giant, up to its own; they are made drops. */
static double visit_small(const drops_args *a, int64_t q, bool make)
{
    const un_particles *p = a->particles;
    un_vec3 x = un_particle_position(p, q);
    double reach = AROUND * (double)a->radius[q], volume = 0;
    float small = (float)SMALL * a->radius[q];
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->groups, (un_box3){x, x}, reach, 0);
    for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
        for (int32_t i = g * UN_GROUP; i < (g + 1) * UN_GROUP && i < p->count; i++) {
            un_vec3 d = un_sub(un_particle_position(p, i), x);
            if (!(a->radius[i] < small) || !(un_dot(d, d) < reach * reach)) continue;
            if (p->flags[i] & UN_PARTICLE_APART) continue;
            volume += p->volume[i];
            if (make) atomic_store_explicit(&a->drop[i], 1, memory_order_relaxed);
            if (volume >= p->volume[q]) return volume;
        }
    return volume;
}

static double find_drops(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    double found = 0;
    for (int64_t q = begin; q < end; q++) {
        if (!a->giant[q]) continue;
        double volume = visit_small(a, q, false);
        if (!(volume > 0) || volume >= a->particles->volume[q]) continue;
        visit_small(a, q, true);
        found += 1;
    }
    return found;
}

static void take_drops(void *arg, int64_t begin, int64_t end)
{
    const drops_args *a = arg;
    for (int64_t q = begin; q < end; q++)
        if (atomic_load_explicit(&a->drop[q], memory_order_relaxed))
            a->particles->flags[q] |= UN_PARTICLE_LANDED;
}

un_status un_particles_part_drops(un_context *ctx, un_arena *arena, un_particles *particles,
                                  const un_groups *groups, const float *radius,
                                  const uint8_t *giant, bool *found)
{
    int64_t count = particles->count;
    drops_args a = {particles, groups, radius, giant, NULL};
    a.drop = un_arena_alloc(arena, (size_t)count + 1, sizeof *a.drop);
    if (!a.drop) return UN_ERROR_MEMORY;
    for (int64_t q = 0; q < count; q++) atomic_init(&a.drop[q], 0);
    *found = un_parallel_sum(ctx, count, find_drops, &a) > 0;
    if (*found) un_parallel_for(ctx, count, 16384, take_drops, &a);
    return UN_OK;
}
