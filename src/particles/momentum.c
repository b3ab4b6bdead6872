/* Particles take from the mesh's change of velocity just the momentum that it stands for.
 *
 * The projection gives the liquid an impulse, sum_f m_f du_f with the mass m_f that it reckons
 * with, and the bodies in it the opposite. Particles take du from where they are, so that all
 * together they get sum_p m_p du(x_p) = sum_f W_f du_f, and their own mass W_f at a face differs
 * from m_f, by some per cent where solids and the surface cut cells. Mixing in PIC changes the sum
 * too. What is missing,
 *
 *     D = sum_f m_f (du_f - a) - sum_p m_p (dv_p - a),
 *
 * goes to the particles in proportion to |dv_p|. a is the share of gravity that the liquid follows
 * on the whole: the mesh's volume differs a little from the particles', and neither a fall nor rest
 * shall know. */
#include "particles/particles.h"

/* No particle's change is corrected by more than this share. */
#define SHARE_MAX 0.25

typedef struct settle_args {
    un_particles *particles;
    const un_vec3 *was;
    un_vec3 *note;
    un_vec3 push; /* in shares of the particle's change */
} settle_args;

static void note(void *arg, int64_t begin, int64_t end)
{
    const settle_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->note[q] = un_particle_middle(a->particles, q);
}

void un_particles_note(un_context *ctx, un_vec3 *was, const un_particles *particles)
{
    settle_args a = {.particles = (un_particles *)(uintptr_t)particles, .note = was};
    un_parallel_for(ctx, particles->count, 8192, note, &a);
}

static bool is_liquid(const un_particles *p, int64_t q)
{
    return !(p->flags[q] & UN_PARTICLE_BALLISTIC);
}

/* Mass, its change of momentum, and the sum of m |dv|. */
static void sum_changes(void *arg, int64_t begin, int64_t end, double *sums)
{
    const settle_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        if (!is_liquid(p, q)) continue;
        double mass = p->volume[q];
        if (p->density) mass *= (double)p->density[q];
        un_vec3 change = un_sub(un_particle_velocity(p, q), a->was[q]);
        sums[0] += mass;
        sums[1] += mass * change.x;
        sums[2] += mass * change.y;
        sums[3] += mass * change.z;
        sums[4] += mass * un_length(change);
    }
}

static void push(void *arg, int64_t begin, int64_t end)
{
    const settle_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        if (!is_liquid(p, q)) continue;
        un_vec3 v = un_particle_velocity(p, q);
        un_particle_set_velocity(p, q, un_mad(v, a->push, un_length(un_sub(v, a->was[q]))));
    }
}

/* s: the sums of changes. */
static void settle(un_context *ctx, settle_args *a, double s[5], const un_settling *def)
{
    un_particles *particles = a->particles;
    const un_impulse *mesh = def->mesh;
    un_vec3 gravity = def->gravity;
    double density = particles->mixed ? 1 : def->density, g2 = un_dot(gravity, gravity);
    for (int i = 0; i < 5; i++) s[i] *= density;
    if (!(s[4] > 0)) return;
    un_vec3 took = un_v3(s[1], s[2], s[3]);
    double follows = g2 > 0 ? un_clamp(un_dot(took, gravity) / (s[0] * g2), 0, 1) : 0;
    un_vec3 all = un_scale(gravity, follows);
    un_vec3 excess = un_sub(mesh->mass, un_v3(s[0], s[0], s[0]));
    un_vec3 lacks = un_sub(un_sub(mesh->momentum, took),
                           un_v3(excess.x * all.x, excess.y * all.y, excess.z * all.z));
    a->push = un_scale(lacks, 1 / s[4]);
    double share = un_length(a->push);
    if (!isfinite(share)) return;
    if (share > SHARE_MAX) a->push = un_scale(a->push, SHARE_MAX / share);
    un_parallel_for(ctx, particles->count, 8192, push, a);
}

un_status un_particles_keep_all(un_context *ctx, un_particles *particles, const un_settling *def)
{
    settle_args a = {.particles = particles, .was = def->was};
    double s[5];
    UN_TRY(def->sum(def->arg, 5, sum_changes, &a, s));
    settle(ctx, &a, s, def);
    return UN_OK;
}

void un_particles_keep_momentum(un_context *ctx, un_particles *particles, const un_vec3 *was,
                                const un_impulse *mesh, un_vec3 gravity, double density)
{
    settle_args a = {.particles = particles, .was = was};
    un_settling def = {.mesh = mesh, .gravity = gravity, .density = density};
    double s[5];
    un_parallel_sums(ctx, particles->count, 5, sum_changes, &a, s);
    settle(ctx, &a, s, &def);
}
