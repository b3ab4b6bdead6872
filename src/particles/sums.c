/* Sums over the particles, and whether their numbers are sound. */
#include "particles/particles.h"

typedef struct sum_args {
    const un_particles *particles;
    un_vec3 gravity, domain;
} sum_args;

static void sum_block(void *arg, int64_t begin, int64_t end, double *sums)
{
    const sum_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 v = un_particle_velocity(p, q);
        double volume = p->volume[q]; /* or mass, where density varies */
        if (p->density) volume *= (double)p->density[q];
        sums[0] += volume * un_dot(v, v);
        sums[1] -= volume * un_dot(a->gravity, un_particle_position(p, q));
        sums[2] += volume * v.x;
        sums[3] += volume * v.y;
        sums[4] += volume * v.z;
    }
}

static double speed_block(void *arg, int64_t begin, int64_t end)
{
    const sum_args *a = arg;
    double max = 0;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 v = un_particle_velocity(a->particles, q);
        double speed = un_dot(v, v);
        if (!(speed <= max)) max = speed; /* a NaN must win, or it would go unnoticed */
    }
    return isnan(max) ? INFINITY : max;
}

void un_particles_set_sums(un_particle_sums *out, const double sums[UN_PARTICLE_SUMS],
                           double fastest, double density)
{
    out->energy_kinetic = 0.5 * density * sums[0];
    out->energy_potential = density * sums[1];
    out->momentum = un_scale(un_v3(sums[2], sums[3], sums[4]), density);
    out->max_speed = sqrt(fastest);
    out->finite = isfinite(fastest) && isfinite(sums[1]);
}

double un_particles_fastest(un_context *ctx, const un_particles *particles)
{
    sum_args a = {.particles = particles};
    return particles->count ? un_parallel_max(ctx, particles->count, speed_block, &a) : 0;
}

void un_particles_sum(un_context *ctx, un_particle_sums *out, const un_particles *particles,
                      un_vec3 gravity, double density)
{
    sum_args a = {.particles = particles, .gravity = gravity};
    double sums[UN_PARTICLE_SUMS];
    if (particles->density) density = 1;
    un_parallel_sums(ctx, particles->count, UN_PARTICLE_SUMS, sum_block, &a, sums);
    un_particles_set_sums(out, sums, un_particles_fastest(ctx, particles), density);
}

void un_particles_add_sums(const un_particles *particles, int64_t begin, int64_t end,
                           un_vec3 gravity, double *sums)
{
    sum_args a = {.particles = particles, .gravity = gravity};
    sum_block(&a, begin, end, sums);
}

static double unsound(void *arg, int64_t begin, int64_t end)
{
    sum_args *a = arg;
    const un_particles *p = a->particles;
    double count = 0;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        bool inside = x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= a->domain.x &&
                      x.y <= a->domain.y && x.z <= a->domain.z;
        bool size = !p->sized || p->size[q] > 0; /* may be infinite */
        bool matter = !p->mixed || (p->density[q] > 0 && isfinite(p->density[q]) &&
                                    p->viscosity[q] >= 0 && isfinite(p->viscosity[q]));
        bool place =
            !p->warped || (isfinite(p->xi[0][q]) && isfinite(p->xi[1][q]) && isfinite(p->xi[2][q]));
        for (int i = 0; i < 9 && p->warped; i++) place = place && isfinite(p->affine[i][q]);
        count += !(inside && size && matter && place && un_finite3(un_particle_velocity(p, q)) &&
                   p->volume[q] > 0 && isfinite(p->volume[q]));
    }
    return count;
}

int64_t un_particles_unsound(un_context *ctx, const un_particles *particles, un_vec3 domain)
{
    sum_args a = {.particles = particles, .domain = domain};
    return (int64_t)un_parallel_sum(ctx, particles->count, unsound, &a);
}
