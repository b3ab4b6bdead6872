/* The table of methods, and what they share. */
#include "method/method.h"

static const un_method *const methods[] = {&un_method_uniform, &un_method_tet,
                                           &un_method_staggered};

const un_method *un_method_find(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i]->name, name) == 0) return methods[i];
    return NULL;
}

void un_step_init(un_step *step)
{
    *step = (un_step){0};
}

void un_stage_end(un_step *step, int32_t stage, double *clock)
{
    double now = un_seconds();
    step->stage_seconds[stage] += now - *clock;
    *clock = now;
}

/* Surface waves of the cells' own wavelength bound the explicit surface: dt sqrt(g / h). A wave of
 * two cells turns unstable at about 1.1; half of that keeps the period exact to a percent. */
#define WAVE_NUMBER 0.5

double un_step_limit(const un_scene_def *def, double h, double rate)
{
    double g = un_length(def->gravity);
    double limit = g > 0 ? WAVE_NUMBER * sqrt(h / g) : INFINITY;
    return rate > 0 ? fmin(limit, def->solver.cfl / rate) : limit;
}

un_status un_step_solved(un_context *ctx, const un_solve_report *solve, int32_t step, double time,
                         double tolerance)
{
    if (!solve->finite)
        return un_fail(ctx, UN_ERROR_NUMERIC,
                       "the pressure system of step %d (t = %.6g s) holds a value that is not "
                       "finite; lower solver.cfl or look for extreme velocities in the scene",
                       step, time);
    if (!solve->converged)
        un_log(ctx, UN_LOG_WARNING,
               "step %d: the pressure solve stopped after %d iterations at a residual of %.2g "
               "(wanted %.2g)",
               step, solve->iterations, solve->residual, tolerance);
    return UN_OK;
}

typedef struct sum_args {
    const un_particles *particles;
    un_vec3 gravity;
} sum_args;

static void sum_block(void *arg, int64_t begin, int64_t end, double *sums)
{
    const sum_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 v = un_particle_velocity(p, q);
        double volume = p->volume[q]; /* or mass, where that is not the same everywhere */
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
        if (!(speed <= max)) max = speed; /* a NaN must win, or it would go unseen */
    }
    return isnan(max) ? INFINITY : max;
}

un_status un_step_sum(un_context *ctx, un_step *step, const un_particles *particles,
                      const un_scene_def *def)
{
    sum_args a = {particles, def->gravity};
    double sums[5], density = particles->density ? 1 : def->fluid.density;
    un_parallel_sums(ctx, particles->count, 5, sum_block, &a, sums);
    double fastest = particles->count ? un_parallel_max(ctx, particles->count, speed_block, &a) : 0;
    step->particles = particles->count;
    step->energy_kinetic = 0.5 * density * sums[0];
    step->energy_potential = density * sums[1];
    step->momentum = un_scale(un_v3(sums[2], sums[3], sums[4]), density);
    step->max_speed = sqrt(fastest);
    if (isfinite(fastest) && isfinite(sums[1])) return UN_OK;
    return un_fail(ctx, UN_ERROR_NUMERIC,
                   "velocities are no longer finite after step %d (t = %.6g s); lower solver.cfl",
                   step->step, step->time);
}
