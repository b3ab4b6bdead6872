/* Viscosity in method `uniform`: solved for on faces, with the pressure before and after it. */
#include "method/uniform.h"

un_status un_uniform_thicken(un_uniform *s, double *const weight[3])
{
    un_thick_grid *thick = &s->thick;
    if (s->particles.mixed)
        UN_TRY(un_transfer_mix_cells(s->core.ctx, &s->core.arena, &thick->mix, &s->core.grid,
                                     s->bins, &s->particles));
    if (!thick->any) return UN_OK;
    return un_transfer_move_to_faces(s->core.ctx, &s->core.arena, s->u, weight,
                                     thick->mix.viscosity, &s->core.grid, s->bins, &s->particles);
}

static un_viscous_grid viscous_def(const un_uniform *s, double dt)
{
    const un_scene_def *def = s->core.def;
    return (un_viscous_grid){.u = s->u,
                             .known = s->known,
                             .guess = s->u_old,
                             .phi = s->phi,
                             .walls = s->core.walls,
                             .bodies = un_core_free_bodies(&s->core),
                             .viscosity = s->thick.mix.viscosity,
                             .density = s->thick.mix.density,
                             .viscosity_all = def->fluid.viscosity,
                             .density_all = def->fluid.density,
                             .time = s->core.time,
                             .dt = un_core_kick(&s->core, dt),
                             .tolerance = def->solver.tolerance,
                             .iteration_limit = UN_UNIFORM_ITERATIONS,
                             .keeps_volume = strcmp(def->solver.stress, "full") == 0,
                             .p = s->thick.p,
                             .laplacian = strcmp(def->solver.stress, "laplacian") == 0};
}

/* Velocities as they are now, from the arena; NULL where no body asks for them. */
static un_status keep_velocities(un_uniform *s, double *kept[3])
{
    size_t cells = (size_t)s->core.grid.cell_count;
    for (int a = 0; a < s->core.grid.dim && s->core.bodies->free_count > 0; a++) {
        kept[a] = un_arena_alloc(&s->core.arena, cells, sizeof *kept[a]);
        if (!kept[a]) return UN_ERROR_MEMORY;
        un_runs_copy(kept[a], s->u[a], sizeof *kept[a], un_grid_own_cells(&s->core.grid, 0));
    }
    return UN_OK;
}

/* The second pressure is small beside the first; outputs and the next guess have their sum. stress:
 * the impulse between them. */
static un_status project_again(un_uniform *s, double dt, un_vec3 stress,
                               un_projection_report *projection)
{
    un_vec3 got = un_add(s->impulse.momentum, stress);
    double *since[3] = {NULL, NULL, NULL};
    un_runs own = un_grid_own_cells(&s->core.grid, 0), left = own;
    double *p = s->pressure->p;
    int64_t cells = s->core.grid.cell_count;
    int32_t iterations = projection->solve.iterations;
    double *first = un_arena_alloc(&s->core.arena, (size_t)cells, sizeof *first);
    if (!first) return UN_ERROR_MEMORY;
    un_runs_copy(first, p, sizeof *first, own);
    for (un_part run; un_runs_next(&left, &run);)
        memset(p + run.begin, 0, (size_t)(run.end - run.begin) * sizeof *p);
    UN_TRY(keep_velocities(s, since));
    UN_TRY(un_uniform_apply_pressure(s, dt, first, since, projection));
    s->impulse.momentum = un_add(s->impulse.momentum, got);
    for (un_part run; un_runs_next(&own, &run);)
        un_pressure_add(s->core.ctx, p + run.begin, first + run.begin, run.end - run.begin);
    projection->solve.iterations += iterations;
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_uniform_apply_viscosity(un_uniform *s, double dt, un_projection_report *projection,
                                     int32_t *iterations)
{
    un_viscous_grid def = viscous_def(s, dt);
    un_viscous_report report;
    UN_TRY(un_viscosity_solve_grid(s->thick.solver, &s->core.arena, &def, &report));
    un_arena_reset(&s->core.arena);
    UN_TRY(un_core_viscous_solved(&s->core, &report.solve));
    *iterations = report.solve.iterations;
    UN_TRY(project_again(s, dt, report.impulse, projection));
    un_viscosity_mark_grid(s->thick.solver, &s->core.grid, s->known);
    return UN_OK;
}

un_cling un_uniform_cling(const un_uniform *s)
{
    const un_scene_def *def = s->core.def;
    return (un_cling){.viscous = s->thick.any,
                      .thickness = def->fluid.viscosity / def->fluid.density,
                      .tension = def->fluid.surface_tension / def->fluid.density,
                      .gravity = un_length(def->gravity),
                      .h = s->core.grid.h};
}

un_status un_uniform_stick(un_uniform *s, double dt)
{
    un_viscous_grid def = viscous_def(s, dt);
    un_layered fields[6];
    int32_t count = 0;
    for (int a = 0; a < s->core.grid.dim; a++) {
        fields[count++] = (un_layered){s->u[a], sizeof *s->u[a]};
        fields[count++] = (un_layered){s->u_old[a], sizeof *s->u_old[a]};
    }
    UN_TRY(un_grid_share(&s->core.grid, fields, count, 1));
    un_status status =
        un_viscosity_stick_grid(s->thick.solver, &s->core.arena, &def, s->u, s->u_old);
    un_arena_reset(&s->core.arena);
    return status;
}
