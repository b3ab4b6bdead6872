/* The parts of the step of method `uniform` that are more than one call. */
#include "method/uniform.h"
#include "transfer/transfer.h"

/* Time in which crowded liquid evens out, s. */
#define CROWDING_TIME 0.1
#define ITERATION_LIMIT 2000

un_status un_uniform_sort(un_uniform *s)
{
    UN_TRY(un_bins_sort(s->bins, &s->arena, &s->particles));
    un_arena_reset(&s->arena);
    return UN_OK;
}

void un_uniform_level_set(un_uniform *s)
{
    if (s->bodies->moving) un_colour_normalizer(s->ctx, s->normalizer, &s->grid, s->walls);
    un_colour_level_set(s->ctx, s->phi, s->colour, &s->grid, s->bins, &s->particles, s->normalizer);
    double inside;
    s->ballistic = un_transfer_mark_ballistic(s->ctx, &s->particles, s->phi, &s->grid, &inside);
    /* The ledger's expectation is what the particles carry. The liquid takes the volume where
     * phi < 0, and outside it every particle its own. */
    double total = un_particles_volume(s->ctx, &s->particles);
    double liquid = un_colour_volume(s->ctx, s->phi, &s->grid, s->walls);
    un_ledger_weigh(&s->sources.ledger, liquid + total - inside);
}

un_status un_uniform_to_grid(un_uniform *s, double dt)
{
    double *const *weight = s->u_old; /* until it keeps the velocities before gravity */
    un_transfer_to_faces(s->ctx, s->u, weight, &s->grid, s->bins, &s->particles);
    un_transfer_mark_reached(s->ctx, s->known, weight, &s->grid);
    UN_TRY(un_transfer_extrapolate(s->ctx, &s->arena, s->u, NULL, s->known, &s->grid, 1));
    un_arena_reset(&s->arena);
    un_transfer_accelerate(s->ctx, s->u, s->u_old, un_scale(s->def->gravity, dt), &s->grid);
    return UN_OK;
}

un_status un_uniform_project(un_uniform *s, double dt, un_projection_report *report)
{
    for (int32_t i = 0; i < s->source_count; i++) s->source_volume[i] /= s->grid.volume * dt;
    un_projection in = {.u = s->u,
                        .known = s->known,
                        .phi = s->phi,
                        .walls = s->walls,
                        .dt = dt,
                        .density = s->def->fluid.density,
                        .tolerance = s->def->solver.tolerance,
                        .iteration_limit = ITERATION_LIMIT,
                        .expansion = un_ledger_expansion(&s->sources.ledger),
                        .colour = s->colour,
                        .crowding_time = fmax(CROWDING_TIME, 2 * dt),
                        .source_cell = s->source_cell,
                        .source_rate = s->source_volume,
                        .source_count = s->source_count};
    UN_TRY(un_pressure_project(s->pressure, &in, report));
    s->source_count = 0;
    return un_step_solved(s->ctx, &report->solve, s->step_count + 1, s->time,
                          s->def->solver.tolerance);
}

/* Beyond the liquid as far as a particle may go in a step. */
un_status un_uniform_extend(un_uniform *s, double dt)
{
    int32_t layers = (int32_t)ceil(s->def->solver.cfl) + 2;
    UN_TRY(un_transfer_extrapolate(s->ctx, &s->arena, s->u, s->u_old, s->known, &s->grid, layers));
    un_arena_reset(&s->arena);
    un_pressure_constrain(s->ctx, s->u, s->known, &s->grid, s->walls);
    un_pressure_constrain(s->ctx, s->u_old, s->known, &s->grid, s->walls);
    un_pressure_friction(s->ctx, s->u, &s->grid, s->walls, dt);
    return UN_OK;
}

void un_uniform_to_particles(un_uniform *s, double dt)
{
    double g = un_length(s->def->gravity), quiet = fmax(UN_PIC_QUIET, s->def->solver.pic);
    un_flip flip = {.dt = dt,
                    .gravity = s->def->gravity,
                    .pic = 1 - exp(-s->def->solver.pic * dt),
                    .pic_quiet = 1 - exp(-quiet * dt),
                    .quiet_speed = un_quiet_speed(g, s->grid.h)};
    un_transfer_to_particles(s->ctx, &s->particles, s->u, s->u_old, &s->grid, &flip);
}
