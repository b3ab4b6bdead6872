/* Method `uniform`: FLIP on a uniform staggered grid [Zhu & Bridson 2005; Bridson, Fluid Simulation
 * for Computer Graphics, ch. 5 to 8]: what users have today, and the yardstick for the adaptive
 * methods.
 *
 * Where it departs from the textbook:
 *  - the level set comes from a wall-normalised colour function, not from spheres (colour.c);
 *  - the PIC share is a rate in 1/s, higher where the liquid is quiet, so that water settles
 *    whatever the step, and waves are not damped;
 *  - position correction keeps the particles apart [Ando13 section 3], and a ledger of volume
 *    drives a small bounded expansion of the liquid [Ibayashi18 section 9];
 *  - particles away from the liquid fly by themselves. */
#include "method/method.h"

#include "advect/advect.h"
#include "pressure/pressure.h"
#include "surface/surface.h"
#include "transfer/transfer.h"

/* Surface waves of the grid's own wavelength bound the explicit surface: dt sqrt(g / h). A wave of
 * two cells turns unstable at about 1.1; half of that keeps the period exact to a percent. */
#define WAVE_NUMBER 0.5
/* Rate at which quiet liquid relaxes to the grid's velocity, 1/s, and what counts as quiet: a
 * share of sqrt(g h), the speed at which a bump of one cell collapses. A 32-cell tank at rest starts
 * with 2.1 cm/s at 30, 1.8 at 60 and 1.6 at 200; a standing wave at 48 cells keeps its height. */
#define PIC_QUIET 200.0
#define QUIET_SHARE 0.1
/* Time in which a small volume error is corrected, s: gently, so that it does not stir a tank at
 * rest. An error of a percent is corrected forty times as fast; and the fastest correction, 1/s.
 */
#define VOLUME_TIME 1.0
#define VOLUME_ERROR 0.00025
#define VOLUME_RATE_MAX 0.5
/* Time in which crowded liquid evens out, s. */
#define CROWDING_TIME 0.1
/* Output surface: pairs of fairing steps. */
#define SMOOTHING 8
#define ITERATION_LIMIT 2000

enum {
    STAGE_WALLS,
    STAGE_CORRECT,
    STAGE_TO_GRID,
    STAGE_PRESSURE,
    STAGE_EXTRAPOLATE,
    STAGE_TO_PARTICLES,
    STAGE_ADVECT,
    STAGE_SOURCES,
    STAGE_SORT,
    STAGE_LEVEL_SET,
    STAGE_MEASURE
};
static const char *const stages[] = {"walls",       "correct",      "to_grid", "pressure",
                                     "extrapolate", "to_particles", "advect",  "sources",
                                     "sort",        "level_set",    "measure", NULL};

typedef struct emitter {
    un_vec3 shift; /* of its lattice so far */
    bool started;
} emitter;

typedef struct uniform {
    un_context *ctx;
    const un_scene *scene;
    const un_scene_def *def;
    un_grid grid;
    un_walls *walls;
    un_particles particles;
    un_bins *bins;
    un_pressure *pressure;
    un_arena arena;
    float *normalizer, *colour, *phi; /* at cells */
    double *u[3], *u_old[3];          /* at faces */
    uint8_t *known[3];                /* at faces: 1 projected, more: extrapolated */
    emitter *emitters;                /* by source */
    int32_t *source_cell;             /* submerged emission of the last step, per cell */
    double *source_volume;            /* m3 */
    int32_t source_count;
    size_t capacity_source_cell, capacity_source_volume;
    double time;
    int32_t step_count;
    /* ledger, m3 */
    double volume_start, volume_in, volume_out;
    double volume, volume_error;
    int64_t ballistic;
    double max_speed; /* of the liquid, along an axis */
    un_step last;
} uniform;

/* ---- parts of the step ---- */

/* Sorted particles, their level set, who flies, and how much volume there is: everything that the
 * next step and the outputs read. */
static un_status refresh(uniform *s, un_step *report, double *clock)
{
    UN_TRY(un_bins_sort(s->bins, &s->arena, &s->particles));
    un_arena_reset(&s->arena);
    un_stage_end(report, STAGE_SORT, clock);
    if (s->walls->moving) un_colour_normalizer(s->ctx, s->normalizer, &s->grid, s->walls);
    un_colour_level_set(s->ctx, s->phi, s->colour, &s->grid, s->bins, &s->particles, s->normalizer);
    double inside;
    s->ballistic = un_transfer_mark_ballistic(s->ctx, &s->particles, s->phi, &s->grid, &inside);
    /* The ledger's expectation is what the particles carry. The liquid takes the volume where
     * phi < 0, and outside it every particle its own. */
    double expected = s->volume_start + s->volume_in - s->volume_out;
    double total = un_particles_volume(s->ctx, &s->particles);
    s->volume = un_colour_volume(s->ctx, s->phi, &s->grid, s->walls) + total - inside;
    s->volume_error = expected > 0 ? (s->volume - expected) / expected : 0;
    un_stage_end(report, STAGE_LEVEL_SET, clock);
    return UN_OK;
}

typedef struct force_args {
    uniform *s;
    double dt;
} force_args;

/* u_old <- u, u <- u + dt g; known marks faces that particles reach. */
static void keep_and_accelerate(void *arg, int64_t begin, int64_t end)
{
    force_args *a = arg;
    uniform *s = a->s;
    double g[3] = {s->def->gravity.x, s->def->gravity.y, s->def->gravity.z};
    for (int axis = 0; axis < 3; axis++)
        for (int64_t f = begin; f < end; f++) {
            s->u_old[axis][f] = s->u[axis][f];
            s->u[axis][f] += a->dt * g[axis];
        }
}

static void mark_reached(void *arg, int64_t begin, int64_t end)
{
    force_args *a = arg;
    for (int axis = 0; axis < 3; axis++)
        for (int64_t f = begin; f < end; f++)
            a->s->known[axis][f] = a->s->u_old[axis][f] > 0; /* still the weights */
}

static un_status particles_to_grid(uniform *s, double dt)
{
    force_args a = {s, dt};
    int64_t n = s->grid.cell_count, grain = un_block_grain(n);
    un_transfer_to_faces(s->ctx, s->u, s->u_old, &s->grid, s->bins, &s->particles);
    un_parallel_for(s->ctx, n, grain, mark_reached, &a);
    UN_TRY(un_transfer_extrapolate(s->ctx, &s->arena, s->u, NULL, s->known, &s->grid, 1));
    un_arena_reset(&s->arena);
    un_parallel_for(s->ctx, n, grain, keep_and_accelerate, &a);
    return UN_OK;
}

static un_status project(uniform *s, double dt, un_projection_report *report)
{
    double cell_volume = s->grid.h * s->grid.h * s->grid.h;
    for (int32_t i = 0; i < s->source_count; i++) s->source_volume[i] /= cell_volume * dt;
    double rate = (1 + fabs(s->volume_error) / VOLUME_ERROR) / VOLUME_TIME;
    double expansion = un_clamp(-s->volume_error * rate, -VOLUME_RATE_MAX, VOLUME_RATE_MAX);
    un_projection in = {.u = s->u,
                        .known = s->known,
                        .phi = s->phi,
                        .walls = s->walls,
                        .dt = dt,
                        .density = s->def->fluid.density,
                        .tolerance = s->def->solver.tolerance,
                        .iteration_limit = ITERATION_LIMIT,
                        .expansion = expansion,
                        .colour = s->colour,
                        .crowding_time = fmax(CROWDING_TIME, 2 * dt),
                        .source_cell = s->source_cell,
                        .source_rate = s->source_volume,
                        .source_count = s->source_count};
    UN_TRY(un_pressure_project(s->pressure, &in, report));
    s->source_count = 0;
    if (!report->solve.finite)
        return un_fail(s->ctx, UN_ERROR_NUMERIC,
                       "the pressure system of step %d (t = %.6g s) holds a value that is not "
                       "finite; lower solver.cfl or look for extreme velocities in the scene",
                       s->step_count + 1, s->time);
    if (!report->solve.converged)
        un_log(s->ctx, UN_LOG_WARNING,
               "step %d: the pressure solve stopped after %d iterations at a residual of %.2g "
               "(wanted %.2g)",
               s->step_count + 1, report->solve.iterations, report->solve.residual,
               s->def->solver.tolerance);
    return UN_OK;
}

/* Beyond the liquid as far as a particle may go in a step. */
static un_status extend_velocities(uniform *s, double dt)
{
    int32_t layers = (int32_t)ceil(s->def->solver.cfl) + 2;
    UN_TRY(un_transfer_extrapolate(s->ctx, &s->arena, s->u, s->u_old, s->known, &s->grid, layers));
    un_arena_reset(&s->arena);
    un_pressure_constrain(s->ctx, s->u, s->known, &s->grid, s->walls);
    un_pressure_constrain(s->ctx, s->u_old, s->known, &s->grid, s->walls);
    un_pressure_friction(s->ctx, s->u, &s->grid, s->walls, dt);
    return UN_OK;
}

static void grid_to_particles(uniform *s, double dt)
{
    double g = un_length(s->def->gravity), quiet = fmax(PIC_QUIET, s->def->solver.pic);
    un_flip flip = {.dt = dt,
                    .gravity = s->def->gravity,
                    .pic = 1 - exp(-s->def->solver.pic * dt),
                    .pic_quiet = 1 - exp(-quiet * dt),
                    .quiet_speed = QUIET_SHARE * sqrt(fmax(g, 1e-6) * s->grid.h)};
    un_transfer_to_particles(s->ctx, &s->particles, s->u, s->u_old, &s->grid, &flip);
}

/* ---- sources ---- */

typedef struct keep_args {
    uniform *s;
    uint8_t *keep;
    double time;
} keep_args;

static bool source_active(const un_source *source, double time)
{
    return time >= source->from && time <= source->to;
}

/* Out of the domain, or in an open drain: gone. In an emitter: carried along. */
static void sort_out(void *arg, int64_t begin, int64_t end)
{
    keep_args *a = arg;
    uniform *s = a->s;
    un_particles *p = &s->particles;
    un_vec3 size = s->grid.size;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        a->keep[q] =
            x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= size.x && x.y <= size.y && x.z <= size.z;
        for (int32_t n = 0; n < s->def->source_count; n++) {
            const un_source *source = &s->def->sources[n];
            if (!source_active(source, a->time)) continue;
            if (un_shape_distance(source->shape, x) >= 0) continue;
            if (source->kind == UN_SOURCE_DRAIN) {
                a->keep[q] = 0;
            } else {
                p->v[0][q] = source->velocity.x;
                p->v[1][q] = source->velocity.y;
                p->v[2][q] = source->velocity.z;
            }
        }
    }
}

static un_status remove_particles(uniform *s)
{
    bool any_open = false;
    for (int side = 0; side < 6; side++) any_open |= s->def->domain.open[side];
    if (!any_open && s->def->source_count == 0) return UN_OK;
    keep_args a = {.s = s, .time = s->time};
    a.keep = un_arena_alloc(&s->arena, (size_t)s->particles.count + 1, 1);
    if (!a.keep) return UN_ERROR_MEMORY;
    un_parallel_for(s->ctx, s->particles.count, 4096, sort_out, &a);
    s->volume_out += un_particles_filter(&s->particles, a.keep);
    un_arena_reset(&s->arena);
    return UN_OK;
}

/* New particles from `first` on that appeared inside the liquid push it apart: their volume becomes
 * a source in the next projection. Those of a first filling are taken back instead, the place is
 * taken. */
static un_status settle_emission(uniform *s, int32_t first, bool first_filling)
{
    un_particles *p = &s->particles;
    int32_t kept = first;
    for (int32_t q = first; q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q);
        int64_t c = un_grid_stencil(&s->grid, x, 0, 0, 0).base;
        if (s->phi[c] < 0 && first_filling) {
            s->volume_in -= p->volume[q];
            continue;
        }
        if (s->phi[c] < 0) {
            size_t n = (size_t)s->source_count + 1;
            UN_TRY(un_array_reserve(s->ctx, (void **)&s->source_cell, &s->capacity_source_cell, n,
                                    sizeof *s->source_cell));
            UN_TRY(un_array_reserve(s->ctx, (void **)&s->source_volume, &s->capacity_source_volume,
                                    n, sizeof *s->source_volume));
            s->source_cell[s->source_count] = (int32_t)c;
            s->source_volume[s->source_count++] = p->volume[q];
        }
        for (int a = 0; a < 3; a++) {
            p->x[a][kept] = p->x[a][q];
            p->v[a][kept] = p->v[a][q];
        }
        p->volume[kept] = p->volume[q];
        p->flags[kept++] = p->flags[q];
    }
    p->count = kept;
    return UN_OK;
}

static un_seed_def seed_def(const uniform *s, const un_source *source)
{
    return (un_seed_def){
        .grid = &s->grid, .shape = source->shape, .walls = s->walls, .velocity = source->velocity};
}

static un_status emit(uniform *s, double dt)
{
    for (int32_t n = 0; n < s->def->source_count; n++) {
        const un_source *source = &s->def->sources[n];
        emitter *e = &s->emitters[n];
        if (source->kind != UN_SOURCE_EMITTER || !source_active(source, s->time)) continue;
        un_seed_def def = seed_def(s, source);
        def.stream = (uint64_t)(n + 1) * 16;
        def.emitting = e->started;
        if (e->started) {
            def.step = un_scale(source->velocity, dt);
            e->shift = un_add(e->shift, def.step);
            def.shift = e->shift;
        }
        int32_t first = s->particles.count;
        double volume;
        UN_TRY(un_particles_seed(s->ctx, &s->particles, &def, &volume));
        s->volume_in += volume;
        UN_TRY(settle_emission(s, first, !e->started));
        e->started = true;
    }
    return UN_OK;
}

/* ---- what the step's report says ---- */

static void measure_block(void *arg, int64_t begin, int64_t end, double *sums)
{
    const uniform *s = arg;
    const un_particles *p = &s->particles;
    un_vec3 g = s->def->gravity;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 v = un_particle_velocity(p, q);
        double volume = p->volume[q];
        sums[0] += volume * un_dot(v, v);
        sums[1] -= volume * un_dot(g, un_particle_position(p, q));
        sums[2] += volume * v.x;
        sums[3] += volume * v.y;
        sums[4] += volume * v.z;
    }
}

/* Fastest liquid on the grid, squared by axis: faces that the projection has made valid. */
static double face_block(void *arg, int64_t begin, int64_t end)
{
    const uniform *s = arg;
    double max = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int64_t f = begin; f < end; f++) {
            double speed = fabs(s->u[axis][f]);
            if (s->known[axis][f] == 1 && !(speed <= max)) max = speed;
        }
    return max;
}

static double speed_block(void *arg, int64_t begin, int64_t end)
{
    const uniform *s = arg;
    double max = 0;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 v = un_particle_velocity(&s->particles, q);
        double speed = un_dot(v, v);
        if (!(speed <= max)) max = speed; /* a NaN must win, or it would go unseen */
    }
    return isnan(max) ? INFINITY : max;
}

static un_status measure(uniform *s, un_step *report)
{
    double sums[5], density = s->def->fluid.density;
    un_parallel_sums(s->ctx, s->particles.count, 5, measure_block, s, sums);
    double any =
        s->particles.count ? un_parallel_max(s->ctx, s->particles.count, speed_block, s) : 0;
    /* Before the first step the grid knows nothing yet. */
    s->max_speed =
        s->step_count ? un_parallel_max(s->ctx, s->grid.cell_count, face_block, s) : sqrt(any);
    report->step = s->step_count;
    report->time = s->time;
    report->particles = s->particles.count;
    report->ballistic = s->ballistic;
    report->nodes = s->grid.node_count;
    report->volume = s->volume;
    report->volume_error = s->volume_error;
    report->energy_kinetic = 0.5 * density * sums[0];
    report->energy_potential = density * sums[1];
    report->momentum = un_scale(un_v3(sums[2], sums[3], sums[4]), density);
    report->max_speed = sqrt(any);
    if (isfinite(any) && isfinite(sums[1])) return UN_OK;
    return un_fail(s->ctx, UN_ERROR_NUMERIC,
                   "velocities are no longer finite after step %d (t = %.6g s); lower solver.cfl",
                   s->step_count, s->time);
}

/* ---- the step ---- */

static un_status step(void *state, double dt, un_step *report)
{
    uniform *s = state;
    un_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_walls_update(s->walls, s->time, dt)); /* 1 move the solids */
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_particles_correct(s->ctx, &s->arena, &s->particles, s->bins, s->phi, s->walls));
    un_arena_reset(&s->arena); /* 2 spread particles */
    un_stage_end(report, STAGE_CORRECT, &clock);
    UN_TRY(particles_to_grid(s, dt)); /* 3 velocities, gravity */
    un_stage_end(report, STAGE_TO_GRID, &clock);
    UN_TRY(project(s, dt, &projection)); /* 4 pressure */
    un_stage_end(report, STAGE_PRESSURE, &clock);
    UN_TRY(extend_velocities(s, dt)); /* 5 beyond the surface */
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    grid_to_particles(s, dt); /* 6 FLIP update */
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    un_advect_particles(s->ctx, &s->particles, s->u, s->walls, s->def->gravity, dt); /* 7 move */
    un_stage_end(report, STAGE_ADVECT, &clock);
    s->time += dt;
    s->step_count++;
    UN_TRY(remove_particles(s)); /* 8 drains, open sides */
    UN_TRY(emit(s, dt));         /* 9 emitters */
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(refresh(s, report, &clock)); /* 10 sort, level set */

    UN_TRY(measure(s, report));
    report->cells = projection.cell_count;
    report->max_divergence = projection.max_divergence;
    report->pressure_iterations = projection.solve.iterations;
    report->pressure_residual = projection.solve.residual;
    report->bytes = (double)un_context_bytes(s->ctx);
    un_stage_end(report, STAGE_MEASURE, &clock);
    report->seconds = un_seconds() - start;
    s->last = *report;
    return UN_OK;
}

static double step_limit(void *state)
{
    const uniform *s = state;
    double h = s->grid.h, g = un_length(s->def->gravity);
    double limit = g > 0 ? WAVE_NUMBER * sqrt(h / g) : INFINITY;
    if (s->max_speed > 0) limit = fmin(limit, s->def->solver.cfl * h / s->max_speed);
    return limit;
}

/* ---- outputs ---- */

static const un_particles *particles(const void *state)
{
    return &((const uniform *)state)->particles;
}

static un_status surface(void *state, un_trimesh *mesh)
{
    uniform *s = state;
    un_mesher mesher = {.grid = &s->grid,
                        .bins = s->bins,
                        .particles = &s->particles,
                        .walls = s->walls,
                        .phi = s->phi,
                        .u = s->u,
                        .resolution = s->def->detail.surface,
                        .smoothing = SMOOTHING};
    return un_surface_mesh(s->ctx, mesh, &mesher);
}

static un_status cells(const void *state, un_cells *out)
{
    const uniform *s = state;
    const un_grid *g = &s->grid;
    int64_t n = 0;
    *out = (un_cells){0};
    for (int64_t c = 0; c < g->cell_count; c++) n += s->phi[c] < 0 && s->walls->volume[c] > 0;
    out->min = un_alloc(s->ctx, (size_t)n + 1, sizeof *out->min);
    out->size = un_alloc(s->ctx, (size_t)n + 1, sizeof *out->size);
    out->level = un_alloc(s->ctx, (size_t)n + 1, sizeof *out->level);
    out->pressure = un_alloc(s->ctx, (size_t)n + 1, sizeof *out->pressure);
    out->velocity = un_alloc(s->ctx, (size_t)n + 1, sizeof *out->velocity);
    if (!out->min || !out->size || !out->level || !out->pressure || !out->velocity) {
        un_cells_free(s->ctx, out);
        return UN_ERROR_MEMORY;
    }
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                if (!(s->phi[c] < 0 && s->walls->volume[c] > 0)) continue;
                out->min[out->count] = un_grid_node_position(g, i, j, k);
                out->size[out->count] = g->h;
                out->level[out->count] = 0;
                out->pressure[out->count] = s->pressure->p[c];
                out->velocity[out->count++] = un_v3(0.5 * (s->u[0][c] + s->u[0][c + 1]),
                                                    0.5 * (s->u[1][c] + s->u[1][c + g->stride[1]]),
                                                    0.5 * (s->u[2][c] + s->u[2][c + g->stride[2]]));
            }
    return UN_OK;
}

/* The farthest place along the axis that a cube of two cells reaches that lies in the liquid as a
 * whole. What is thinner, drops and the film ahead of a front, is below what the grid resolves, and
 * single particles would make the probe jump. A cube around a node is liquid when its eight cells'
 * centres are all at least half a cell deep. */
static double node_phi(const uniform *s, int64_t c)
{
    const un_grid *g = &s->grid;
    double phi = -INFINITY;
    for (int n = 0; n < 8; n++) {
        int64_t m = c;
        for (int a = 0; a < 3; a++)
            if ((n >> a & 1) && g->n[a] > 3) m -= g->stride[a]; /* a side of one cell has no two */
        phi = fmax(phi, s->phi[m]);
    }
    return phi + 0.5 * g->h;
}

typedef struct front_args {
    const uniform *s;
    int axis;
    double sign;
} front_args;

static double front_rows(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_grid *g = &f->s->grid;
    int a = f->axis, b = (a + 1) % 3, c = (a + 2) % 3;
    int32_t first = f->sign > 0 ? g->n[a] - 2 : 2, step = f->sign > 0 ? -1 : 1;
    double front = -INFINITY, origin = a == 0 ? g->origin.x : a == 1 ? g->origin.y : g->origin.z;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % g->n[b], k = row / g->n[b];
        if (i < un_min64(2, g->n[b] - 2) || k < un_min64(2, g->n[c] - 2) || i > g->n[b] - 2 ||
            k > g->n[c] - 2)
            continue;
        double beyond = g->h; /* as if the surface stood on the side itself */
        for (int32_t n = first; n >= 2 && n <= g->n[a] - 2; n += step) {
            double phi = node_phi(f->s, i * g->stride[b] + k * g->stride[c] + n * g->stride[a]);
            if (phi < 0) {
                double at = n - step * (phi / (phi - beyond) + 1);
                front = fmax(front, f->sign * (origin + g->h * at));
                break;
            }
            beyond = phi;
        }
    }
    return front;
}

static double probe_front(const uniform *s, const un_probe *probe)
{
    const un_grid *g = &s->grid;
    front_args f = {s, probe->axis, probe->sign};
    int64_t rows = (int64_t)g->n[(probe->axis + 1) % 3] * g->n[(probe->axis + 2) % 3];
    double front = un_parallel_max(s->ctx, rows, front_rows, &f);
    double size = probe->axis == 0 ? g->size.x : probe->axis == 1 ? g->size.y : g->size.z;
    return isfinite(front) ? un_clamp(probe->sign * front, 0, size) : NAN;
}

/* From the top down to the first liquid; 0 where it is dry. */
static double probe_height(const uniform *s, const un_probe *probe)
{
    const un_grid *g = &s->grid;
    un_vec3 at = un_min3(un_max3(probe->at, un_v3(0.5 * g->h, 0, 0.5 * g->h)),
                         un_sub(g->size, un_v3(0.5 * g->h, 0, 0.5 * g->h)));
    double above = INFINITY;
    for (int32_t j = g->n[1] - 2; j >= 1; j--) {
        un_vec3 x = un_v3(at.x, un_grid_center(g, 0, j, 0).y, at.z);
        double phi = un_grid_sample(g, s->phi, x);
        if (phi < 0)
            return fmin(x.y + (above > 1e9 ? 0.5 * g->h : g->h * phi / (phi - above)), g->size.y);
        above = phi;
    }
    return 0;
}

/* p and its gradient at the nearest liquid cell; 0 outside the liquid. */
static double probe_pressure(const uniform *s, const un_probe *probe)
{
    const un_grid *g = &s->grid;
    un_vec3 inner = un_v3(0.5 * g->h, 0.5 * g->h, 0.5 * g->h);
    un_vec3 x = un_min3(un_max3(probe->at, inner), un_sub(g->size, inner));
    un_stencil t = un_grid_stencil(g, x, 0, 0, 0);
    int64_t c = t.base;
    const int32_t *index = s->pressure->index;
    const double *p = s->pressure->p;
    if (index[c] < 0) return 0;
    double at[3] = {probe->at.x, probe->at.y, probe->at.z}, value = p[c];
    double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    for (int a = 0; a < 3; a++) {
        int64_t d = g->stride[a];
        int64_t i = c / d % g->n[a];
        double offset = (at[a] - origin[a]) / g->h - ((double)i + 0.5);
        bool low = index[c - d] >= 0, high = index[c + d] >= 0;
        double slope = low && high ? 0.5 * (p[c + d] - p[c - d])
                       : high      ? p[c + d] - p[c]
                       : low       ? p[c] - p[c - d]
                                   : 0;
        value += offset * slope;
    }
    return value;
}

static double probe(const void *state, const un_probe *which)
{
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return probe_front(state, which);
    case UN_PROBE_HEIGHT:
        return probe_height(state, which);
    case UN_PROBE_PRESSURE:
        return probe_pressure(state, which);
    }
    return NAN;
}

/* ---- life ---- */

static void destroy(void *state)
{
    uniform *s = state;
    if (!s) return;
    un_walls_destroy(s->walls);
    un_bins_destroy(s->bins);
    un_pressure_destroy(s->pressure);
    un_particles_free(s->ctx, &s->particles);
    un_arena_free(&s->arena);
    un_free(s->ctx, s->normalizer);
    un_free(s->ctx, s->colour);
    un_free(s->ctx, s->phi);
    for (int a = 0; a < 3; a++) {
        un_free(s->ctx, s->u[a]);
        un_free(s->ctx, s->u_old[a]);
        un_free(s->ctx, s->known[a]);
    }
    un_free(s->ctx, s->emitters);
    un_free(s->ctx, s->source_cell);
    un_free(s->ctx, s->source_volume);
    un_free(s->ctx, s);
}

static un_status allocate(uniform *s)
{
    un_context *ctx = s->ctx;
    size_t n = (size_t)s->grid.cell_count;
    UN_TRY(un_walls_create(ctx, &s->grid, s->scene, true, &s->walls));
    UN_TRY(un_bins_create(ctx, &s->grid, &s->bins));
    UN_TRY(un_pressure_create(ctx, &s->grid, &s->pressure));
    UN_ALLOC(ctx, s->normalizer, n);
    UN_ALLOC(ctx, s->colour, n);
    UN_ALLOC(ctx, s->phi, n);
    for (int a = 0; a < 3; a++) {
        s->u[a] = un_alloc_zero(ctx, n, sizeof *s->u[a]);
        s->u_old[a] = un_alloc_zero(ctx, n, sizeof *s->u_old[a]);
        s->known[a] = un_alloc_zero(ctx, n, 1);
        if (!s->u[a] || !s->u_old[a] || !s->known[a]) return UN_ERROR_MEMORY;
    }
    s->emitters = un_alloc_zero(ctx, (size_t)s->def->source_count + 1, sizeof *s->emitters);
    return s->emitters ? UN_OK : UN_ERROR_MEMORY;
}

static un_status fill(uniform *s)
{
    double clock = un_seconds();
    un_step_init(&s->last);
    un_colour_normalizer(s->ctx, s->normalizer, &s->grid, s->walls);
    UN_TRY(un_particles_reserve(s->ctx, &s->particles, 1));
    if (s->def->liquid.shape) {
        un_seed_def def = {.grid = &s->grid,
                           .shape = s->def->liquid.shape,
                           .walls = s->walls,
                           .velocity = s->def->liquid.velocity};
        UN_TRY(un_particles_seed(s->ctx, &s->particles, &def, &s->volume_start));
    }
    UN_TRY(refresh(s, &s->last, &clock));
    UN_TRY(emit(s, 0));
    UN_TRY(refresh(s, &s->last, &clock));
    return measure(s, &s->last);
}

static un_status create(un_context *ctx, const un_scene *scene, void **state)
{
    uniform *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->scene = scene;
    s->def = &scene->def;
    s->grid = un_grid_make(s->def->domain.size, s->def->detail.finest);
    un_arena_init(&s->arena, ctx);
    un_status status = allocate(s);
    if (status == UN_OK) status = fill(s);
    if (status != UN_OK) {
        destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}

static void first(const void *state, un_step *report)
{
    *report = ((const uniform *)state)->last;
}

const un_method un_method_uniform = {.name = "uniform",
                                     .stages = stages,
                                     .create = create,
                                     .destroy = destroy,
                                     .first = first,
                                     .step_limit = step_limit,
                                     .step = step,
                                     .particles = particles,
                                     .surface = surface,
                                     .cells = cells,
                                     .probe = probe,
                                     .estimate = un_uniform_estimate};
