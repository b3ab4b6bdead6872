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
 *  - crowded liquid gets a divergence of its own until it has evened out (project.c);
 *  - phi is extended into cells that solids nearly fill, so that they are no pockets of air
 *    (colour.c), and closed faces are constrained before and after the projection alike
 *    (constrain.c);
 *  - particles away from the liquid fly by themselves. */
#include "method/uniform.h"

#include "advect/advect.h"

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

static un_status step(void *state, double dt, un_step *report)
{
    un_uniform *s = state;
    un_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_bodies_update(s->bodies, s->time, dt)); /* 1 move the solids */
    un_walls_update(s->walls);
    un_stage_end(report, STAGE_WALLS, &clock);
    /* 2 spread the particles */
    UN_TRY(un_particles_correct(s->ctx, &s->arena, &s->particles, s->bins, s->phi, s->walls));
    un_arena_reset(&s->arena);
    un_stage_end(report, STAGE_CORRECT, &clock);
    UN_TRY(un_uniform_to_grid(s, dt)); /* 3 velocities, gravity */
    un_stage_end(report, STAGE_TO_GRID, &clock);
    UN_TRY(un_uniform_project(s, dt, &projection)); /* 4 pressure */
    un_stage_end(report, STAGE_PRESSURE, &clock);
    UN_TRY(un_uniform_extend(s, dt)); /* 5 beyond the surface */
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    un_uniform_to_particles(s, dt); /* 6 FLIP update */
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    un_advect_particles(s->ctx, &s->particles, s->u, s->walls, s->def->gravity, dt); /* 7 move */
    un_stage_end(report, STAGE_ADVECT, &clock);
    s->time += dt;
    s->step_count++;
    UN_TRY(un_uniform_remove(s));   /* 8 drains, open sides */
    UN_TRY(un_uniform_emit(s, dt)); /* 9 emitters */
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(un_uniform_sort(s)); /* 10 along the curve */
    un_stage_end(report, STAGE_SORT, &clock);
    un_uniform_level_set(s); /* 11 surface and volume */
    un_stage_end(report, STAGE_LEVEL_SET, &clock);

    UN_TRY(un_uniform_measure(s, report));
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
    const un_uniform *s = state;
    return un_step_limit(s->def, s->grid.h, s->max_speed / s->grid.h);
}

static const un_bodies *bodies(const void *state)
{
    return ((const un_uniform *)state)->bodies;
}

static const un_particles *particles(const void *state)
{
    return &((const un_uniform *)state)->particles;
}

/* ---- life ---- */

static void destroy(void *state)
{
    un_uniform *s = state;
    if (!s) return;
    un_walls_destroy(s->walls);
    un_bodies_destroy(s->bodies);
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
    un_sources_free(&s->sources);
    un_free(s->ctx, s->source_cell);
    un_free(s->ctx, s->source_volume);
    un_free(s->ctx, s);
}

static un_status allocate(un_uniform *s)
{
    un_context *ctx = s->ctx;
    size_t n = (size_t)s->grid.cell_count;
    UN_TRY(un_bodies_create(ctx, s->scene, &s->bodies));
    UN_TRY(un_walls_create(ctx, &s->grid, s->bodies, true, &s->walls));
    UN_TRY(un_bins_create(ctx, &s->grid, &s->bins));
    UN_TRY(un_pressure_create(ctx, &s->grid, &s->pressure));
    UN_TRY(un_pressure_configure(s->pressure->solver, s->def));
    UN_ALLOC(ctx, s->normalizer, n);
    UN_ALLOC(ctx, s->colour, n);
    UN_ALLOC(ctx, s->phi, n);
    for (int a = 0; a < s->grid.dim; a++) {
        s->u[a] = un_alloc_zero(ctx, n, sizeof *s->u[a]);
        s->u_old[a] = un_alloc_zero(ctx, n, sizeof *s->u_old[a]);
        s->known[a] = un_alloc_zero(ctx, n, 1);
        if (!s->u[a] || !s->u_old[a] || !s->known[a]) return UN_ERROR_MEMORY;
    }
    return un_sources_init(&s->sources, ctx, s->def, &s->grid, s->walls);
}

static un_status fill(un_uniform *s)
{
    un_step_init(&s->last);
    un_colour_normalizer(s->ctx, s->normalizer, &s->grid, s->walls);
    UN_TRY(un_particles_reserve(s->ctx, &s->particles, 1));
    if (s->def->liquid.shape) {
        un_seed_def def = {.grid = &s->grid,
                           .shape = s->def->liquid.shape,
                           .walls = s->walls,
                           .velocity = s->def->liquid.velocity};
        UN_TRY(un_particles_seed(s->ctx, &s->particles, &def, &s->sources.ledger.start));
    }
    UN_TRY(un_uniform_sort(s));
    un_uniform_level_set(s);
    UN_TRY(un_uniform_emit(s, 0));
    UN_TRY(un_uniform_sort(s));
    un_uniform_level_set(s);
    return un_uniform_measure(s, &s->last);
}

un_status un_uniform_begin(un_context *ctx, const un_scene *scene, un_uniform **state)
{
    un_uniform *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->scene = scene;
    s->def = &scene->def;
    s->grid = un_grid_make(s->def->domain.size, s->def->detail.finest);
    s->particles.flat = s->grid.dim == 2;
    un_arena_init(&s->arena, ctx);
    un_status status = allocate(s);
    if (status != UN_OK) {
        destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}

static un_status create(un_context *ctx, const un_scene *scene, void **state)
{
    un_uniform *s;
    UN_TRY(un_uniform_begin(ctx, scene, &s));
    un_status status = fill(s);
    if (status != UN_OK) {
        destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}

static void first(const void *state, un_step *report)
{
    *report = ((const un_uniform *)state)->last;
}

const un_method un_method_uniform = {.traits = {.name = "uniform", .particles = true, .flat = true},
                                     .stages = stages,
                                     .create = create,
                                     .destroy = destroy,
                                     .first = first,
                                     .step_limit = step_limit,
                                     .step = step,
                                     .particles = particles,
                                     .bodies = bodies,
                                     .surface = un_uniform_surface,
                                     .cells = un_uniform_cells,
                                     .probe = un_uniform_probe,
                                     .estimate = un_uniform_estimate,
                                     .save = un_uniform_save,
                                     .load = un_uniform_load};
