/* Particles that fly by themselves [Ando13 section 3]: nobody within six radii. */
#include "particles/groups.h"

/* In radii of the particle, to the other's sphere [Ando13]. */
#define REACH 6.0

typedef struct lonely_args {
    un_particles *particles;
    const un_groups *groups;
    const float *radius;
} lonely_args;

static bool any_near(const lonely_args *a, int32_t group, int32_t i)
{
    const un_particles *p = a->particles;
    int32_t begin = group * UN_GROUP,
            end = begin + UN_GROUP < p->count ? begin + UN_GROUP : p->count;
    un_vec3 x = un_particle_position(p, i);
    for (int32_t j = begin; j < end; j++) {
        double reach = REACH * (double)a->radius[i] + (double)a->radius[j];
        un_vec3 d = un_sub(un_particle_position(p, j), x);
        if (j != i && un_dot(d, d) < reach * reach) return true;
    }
    return false;
}

static bool is_lonely(const lonely_args *a, int32_t i)
{
    int32_t own = i / UN_GROUP;
    if (any_near(a, own, i)) return false; /* nearly always */
    un_vec3 x = un_particle_position(a->particles, i);
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->groups, (un_box3){x, x}, REACH * (double)a->radius[i], 1);
    for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
        if (g != own && any_near(a, g, i)) return false;
    return true;
}

static double mark(void *arg, int64_t begin, int64_t end)
{
    const lonely_args *a = arg;
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        bool lonely = is_lonely(a, (int32_t)i);
        uint8_t others = a->particles->flags[i] & (uint8_t)~UN_PARTICLE_BALLISTIC;
        a->particles->flags[i] = lonely ? others | UN_PARTICLE_BALLISTIC : others;
        count += lonely;
    }
    return (double)count;
}

int64_t un_particles_mark_lonely(un_context *ctx, un_particles *particles, const un_groups *groups,
                                 const float *radius)
{
    lonely_args a = {particles, groups, radius};
    return (int64_t)un_parallel_sum(ctx, particles->count, mark, &a);
}
