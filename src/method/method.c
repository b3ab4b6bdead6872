/* The table of methods, and what they share. */
#include "method/core.h"

/* All of them. */
#define METHODS(row) row(uniform) row(tet) row(staggered) row(octree) row(conforming) row(warp)

#define METHOD_ROW(name) &un_method_##name,
static const un_method *const methods[] = {METHODS(METHOD_ROW)};
#define METHOD_COUNT ((int32_t)(sizeof methods / sizeof *methods))

const un_method *un_method_at(int32_t index)
{
    return index >= 0 && index < METHOD_COUNT ? methods[index] : NULL;
}

const un_method *un_method_find(const char *name)
{
    for (int32_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(methods[i]->traits.name, name) == 0) return methods[i];
    return NULL;
}

/* ---- states ---- */

static un_status begin(const un_method *method, un_context *ctx, const un_scene *scene,
                       void **state)
{
    *state = un_alloc_zero(ctx, 1, method->size);
    if (!*state) return UN_ERROR_MEMORY;
    ((un_core *)*state)->ctx = ctx;
    return method->begin(*state, ctx, scene);
}

static un_status hand_out(const un_method *method, void *s, un_status status, void **state)
{
    if (status == UN_OK)
        *state = s;
    else
        un_method_destroy(method, s);
    return status;
}

un_status un_method_create(const un_method *method, un_context *ctx, const un_scene *scene,
                           const un_state *in, void **state)
{
    void *s;
    un_status status = begin(method, ctx, scene, &s);
    if (status == UN_OK) status = in ? method->load(s, in) : method->fill(s);
    return hand_out(method, s, status, state);
}

un_status un_method_restore(const un_method *method, un_context *ctx, const un_scene *scene,
                            const un_saved_particles *saved, void **state)
{
    void *s;
    un_status status = begin(method, ctx, scene, &s);
    if (status == UN_OK) status = method->restore(s, saved);
    return hand_out(method, s, status, state);
}

void un_method_destroy(const un_method *method, void *state)
{
    if (!state) return;
    un_context *ctx = ((un_core *)state)->ctx;
    method->end(state);
    un_free(ctx, state);
}

void un_method_first(const void *state, un_step *report)
{
    *report = ((const un_core *)state)->last;
}

const un_bodies *un_method_bodies(const void *state)
{
    return ((const un_core *)state)->bodies;
}

/* ---- scenes ---- */

#define TRAITS_ROW(name) &un_method_##name.traits,
static const un_traits *const traits[] = {METHODS(TRAITS_ROW) NULL};

un_status un_scene_load(un_context *ctx, const char *path, const char *const *overrides,
                        int32_t override_count, un_scene **scene)
{
    return un_scene_read(ctx, path, overrides, override_count, traits, scene);
}

/* ---- steps ---- */

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

double un_step_limit_flow(const un_scene_def *def, double h, double rate)
{
    double g = un_length(def->gravity);
    double limit = g > 0 ? WAVE_NUMBER * sqrt(h / g) : INFINITY;
    return rate > 0 ? fmin(limit, def->solver.cfl / rate) : limit;
}

double un_step_limit(const un_scene_def *def, double h, double rate)
{
    return fmin(un_step_limit_flow(def, h, rate), un_tension_step_limit(def, h));
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

un_status un_step_sum(un_context *ctx, un_step *step, const un_particle_sums *sums, int64_t count)
{
    step->particles = count;
    step->work = (double)count;
    step->energy_kinetic = sums->energy_kinetic;
    step->energy_potential = sums->energy_potential;
    step->momentum = sums->momentum;
    step->max_speed = sums->max_speed;
    if (sums->finite) return UN_OK;
    return un_fail(ctx, UN_ERROR_NUMERIC,
                   "velocities are no longer finite after step %d (t = %.6g s); lower solver.cfl",
                   step->step, step->time);
}
