/* What every method's state begins with. */
#include "method/core.h"

un_status un_core_init(un_core *c, un_context *ctx, const un_scene *scene, bool sampled)
{
    *c = (un_core){.ctx = ctx, .scene = scene, .def = &scene->def};
    c->grid = un_grid_make(c->def->domain.size, c->def->detail.finest);
    c->pace = un_scene_pace(c->def);
    un_arena_init(&c->arena, ctx);
    un_step_init(&c->last);
    UN_TRY(un_bodies_create(ctx, scene, &c->bodies));
    UN_TRY(un_walls_create(ctx, &c->grid, c->bodies, sampled, &c->walls));
    return un_sources_init(&c->sources, ctx, c->def, &c->grid, c->walls);
}

void un_core_free(un_core *c)
{
    if (!c->ctx) return;
    un_walls_destroy(c->walls);
    un_bodies_destroy(c->bodies);
    un_sources_free(&c->sources);
    un_arena_free(&c->arena);
}

un_status un_core_move_bodies(un_core *c, double dt)
{
    UN_TRY(un_bodies_update(c->bodies, c->time, dt));
    if (c->bodies->free_count > 0)
        un_bodies_begin(c->bodies, c->def->gravity, un_core_kick(c, dt), dt);
    return UN_OK;
}

un_status un_core_touch_bodies(un_core *c, double dt)
{
    return c->bodies->free_count > 0 ? un_bodies_touch(c->bodies, dt) : UN_OK;
}

void un_core_advance_bodies(un_core *c, double dt)
{
    if (c->bodies->free_count > 0) un_bodies_advance(c->bodies, dt);
}

un_status un_core_note(un_core *c, const un_particles *particles, un_vec3 **was)
{
    *was = NULL;
    if (c->bodies->free_count == 0) return UN_OK;
    *was = un_arena_alloc(&c->arena, (size_t)particles->count + 1, sizeof **was);
    if (!*was) return UN_ERROR_MEMORY;
    un_particles_note(c->ctx, *was, particles);
    return UN_OK;
}

void un_core_settle(un_core *c, un_particles *particles, const un_vec3 *was, const un_impulse *mesh,
                    double kick)
{
    if (was)
        un_particles_keep_momentum(c->ctx, particles, was, mesh, un_scale(c->def->gravity, kick),
                                   c->def->fluid.density);
}

un_status un_core_need_hits(un_core *c, const un_particles *particles, un_hit **hits)
{
    *hits = NULL;
    if (c->bodies->free_count == 0) return UN_OK;
    *hits = un_arena_alloc(&c->arena, (size_t)particles->count + 1, sizeof **hits);
    return *hits ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_core_push_bodies(un_core *c, un_particles *particles, const un_hit *hits)
{
    if (!hits) return UN_OK;
    return un_advect_push_bodies(c->ctx, particles, hits, NULL, c->bodies, c->def->fluid.density);
}

/* Without gravity hardly anything is quiet: this share of what the scene's size and pace give. */
#define QUIET_WEIGHTLESS 1e-6

double un_core_quiet_speed(const un_core *c, double h)
{
    un_vec3 size = c->def->domain.size;
    double g = un_length(c->def->gravity), longest = fmax(size.x, fmax(size.y, size.z));
    return un_quiet_speed(g > 0 ? g : QUIET_WEIGHTLESS * longest / (c->pace * c->pace), h);
}

/* In steps' worth of gravity: a quarter of a cell's depth is noise. */
#define LET_GO 0.25
/* Without gravity, in shares of the fastest speed. */
#define LET_GO_WEIGHTLESS 0.01

double un_core_let_go(const un_core *c, double dt)
{
    double gravity = un_length(c->def->gravity);
    if (c->def->solver.suction) return 0;
    double speed = gravity > 0 ? LET_GO * gravity * un_core_kick(c, dt)
                               : LET_GO_WEIGHTLESS * c->last.max_speed;
    return speed + un_tension_hold(c->def, c->grid.h, un_core_kick(c, dt));
}

/* The surface of liquid as deep as the domain is hastened by this share of gravity at most while
 * the ledger takes volume away. */
#define SINK 1.0

double un_core_expansion(un_core *c, double dt)
{
    un_vec3 g = c->def->gravity, size = c->def->domain.size;
    double gravity = un_length(g), sink = INFINITY;
    if (gravity > 0) {
        double height = un_dot(un_v3(fabs(g.x), fabs(g.y), fabs(g.z)), size) / gravity;
        sink = SINK * gravity * un_core_kick(c, dt) / height;
    }
    return un_ledger_expansion(&c->sources.ledger, c->pace, sink);
}

un_flip un_core_flip(const un_core *c, double h, double dt)
{
    const un_scene_def *def = c->def;
    return (un_flip){.dt = dt,
                     .gravity = def->gravity,
                     .pic = def->solver.pic,
                     .pic_quiet = fmax(UN_PIC_QUIET / c->pace, def->solver.pic),
                     .quiet_speed = un_core_quiet_speed(c, h),
                     .thickness = def->fluid.viscosity / def->fluid.density};
}

un_status un_core_measure(un_core *c, un_step *report, const un_particles *particles,
                          int64_t ballistic)
{
    un_particle_sums sums;
    un_particles_sum(c->ctx, &sums, particles, c->def->gravity, c->def->fluid.density);
    return un_core_measure_sums(c, report, &sums, particles->count, ballistic);
}

un_status un_core_measure_sums(un_core *c, un_step *report, const un_particle_sums *sums,
                               int64_t count, int64_t ballistic)
{
    report->step = c->step_count;
    report->time = c->time;
    report->ballistic = ballistic;
    report->volume = c->sources.ledger.found;
    report->volume_particles = c->sources.ledger.carried;
    report->volume_error = c->sources.ledger.error;
    return un_step_sum(c->ctx, report, sums, count);
}

un_status un_core_viscous_solved(const un_core *c, const un_block_report *solve)
{
    if (!solve->finite)
        return un_fail(c->ctx, UN_ERROR_NUMERIC,
                       "the viscous system of step %d (t = %.6g s) holds a value that is not "
                       "finite; lower solver.cfl or look for extreme velocities in the scene",
                       c->step_count + 1, c->time);
    if (!solve->converged)
        un_log(c->ctx, UN_LOG_WARNING,
               "step %d: the viscous solve stopped after %d iterations at a residual of %.2g "
               "(wanted %.2g)",
               c->step_count + 1, solve->iterations, solve->residual, c->def->solver.tolerance);
    return UN_OK;
}

void un_core_report(un_core *c, un_step *report, const un_solve_report *solve,
                    double max_divergence, double start)
{
    report->max_divergence = max_divergence;
    report->pressure_iterations = solve->iterations;
    report->pressure_residual = solve->residual;
    report->bytes = (double)un_context_bytes(c->ctx);
    report->seconds = un_seconds() - start;
    c->last = *report;
}

double un_core_probe(const un_core *c, const un_probe *which, const un_particles *particles)
{
    if (which->kind == UN_PROBE_FLUX)
        return un_particles_flux(c->ctx, particles, which->at, which->to, which->axis, c->grid.h);
    return un_particles_wet(c->ctx, particles, c->walls, c->def->gravity, which->axis, which->sign);
}

un_status un_core_probe_ranks(const un_core *c, const un_markers *markers, bool fronts,
                              double *probed)
{
    const un_scene_def *def = c->def;
    for (int32_t i = 0; i < def->probe_count; i++) {
        const un_probe *p = &def->probes[i];
        bool front = fronts && p->kind == UN_PROBE_FRONT;
        if (p->kind == UN_PROBE_FLUX)
            UN_TRY(un_markers_flux(c->ctx, markers, p->at, p->to, p->axis, c->grid.h, &probed[i]));
        else if (p->kind == UN_PROBE_WET || front)
            UN_TRY(un_markers_wet(c->ctx, markers, c->walls, def->gravity, p->axis, p->sign,
                                  &probed[front ? def->probe_count + i : i]));
    }
    return UN_OK;
}

const double *un_core_probed(const un_core *c, const un_probe *which, const double *probed)
{
    const un_scene_def *def = c->def;
    for (int32_t i = 0; i < def->probe_count; i++)
        if (which == &def->probes[i]) return &probed[i];
    for (int32_t i = 0; i < def->probe_count; i++) {
        const un_probe *p = &def->probes[i];
        bool alike = p->axis == which->axis && p->sign == which->sign;
        if (p->kind != UN_PROBE_FRONT || !alike) continue;
        if (which->kind == UN_PROBE_FRONT) return &probed[i];
        if (which->kind == UN_PROBE_WET) return &probed[def->probe_count + i];
    }
    return NULL;
}

static un_force force_on(const un_core *c, const un_probe *which, const void *state)
{
    return (un_force){.body = &c->bodies->body[which->solid],
                      .grid = &c->grid,
                      .gravity = c->def->gravity,
                      .density = c->def->fluid.density,
                      .axis = which->axis,
                      .state = state};
}

double un_core_force(const un_core *c, const un_probe *which, un_pressure_sample *pressure,
                     const void *state)
{
    un_force force = force_on(c, which, state);
    force.pressure = pressure;
    return un_pressure_force(c->ctx, &force);
}

un_status un_core_force_ranks(const un_core *c, const un_probe *which, const un_force_ranks *with,
                              const void *state, double *value)
{
    un_force force = force_on(c, which, state);
    return un_pressure_force_ranks(c->ctx, &force, with, value);
}
