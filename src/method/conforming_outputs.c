/* What method `conforming` reports and shows: surface, cells, probes, and what is known of a run
 * beforehand. */
#include "method/conforming.h"

un_status un_conforming_measure(un_conforming *s, un_step *report)
{
    un_core *c = &s->core;
    const un_stuffing *mesh = un_conforming_mesh(s);
    un_stuffing_sums sums;
    un_stuffing_velocities(c->ctx, s->u_tet, mesh, s->u);
    un_stuffing_sum(c->ctx, &sums, mesh, s->u_tet, &s->track, c->def->gravity,
                    c->def->fluid.density);
    report->step = c->step_count;
    report->time = c->time;
    report->cells = mesh->tet_count;
    report->nodes = mesh->node_count;
    report->work = mesh->tet_count;
    report->volume = c->sources.ledger.found;
    report->volume_particles = c->sources.ledger.found; /* there are none */
    report->volume_error = c->sources.ledger.error;
    /* The mesh is chamfered where the surface meets walls. */
    double share = sums.volume > 0 ? c->sources.ledger.found / sums.volume : 1;
    report->energy_kinetic = share * sums.energy_kinetic;
    report->energy_potential = share * sums.energy_potential;
    report->momentum = un_scale(sums.momentum, share);
    report->max_speed = sums.max_speed;
    s->rate = sums.rate;
    if (isfinite(sums.energy_kinetic)) return UN_OK;
    return un_fail(c->ctx, UN_ERROR_NUMERIC,
                   "velocities are no longer finite after step %d (t = %.6g s); lower solver.cfl",
                   report->step, report->time);
}

un_status un_conforming_surface(void *state, un_trimesh *mesh)
{
    un_conforming *s = state;
    un_context *ctx = s->core.ctx;
    UN_TRY(un_conforming_fit(s, INFINITY));
    UN_TRY(un_track_output(&s->track, &s->core.arena, s->solid, mesh));
    un_arena_reset(&s->core.arena);
    mesh->velocity = un_alloc(ctx, (size_t)mesh->vertex_count + 1, sizeof *mesh->velocity);
    if (!mesh->velocity) {
        un_trimesh_free(ctx, mesh);
        return UN_ERROR_MEMORY;
    }
    un_flow_to_points(ctx, mesh->velocity, &s->flow, mesh->position, mesh->vertex_count);
    return UN_OK;
}

/* At tets. */
static const double *pressure(const un_conforming *s)
{
    return s->p_total ? s->p_total : s->p;
}

un_status un_conforming_cells(const void *state, un_cells *out)
{
    const un_conforming *s = state;
    un_stuffing_cells in = {un_conforming_mesh(s), pressure(s), s->u_tet};
    return un_cells_from_stuffing(s->core.ctx, out, &in);
}

/* ---- probes ---- */

static double pressure_sample(const void *state, un_vec3 x, bool *wet)
{
    const un_conforming *s = state;
    un_vec3 weight = un_scale(s->core.def->gravity, s->core.def->fluid.density);
    return un_stuffed_pressure_at(un_conforming_mesh(s), pressure(s), x, weight, wet);
}

static double velocity_at(const un_conforming *s, const un_probe *which)
{
    const un_stuffing *mesh = un_conforming_mesh(s);
    un_tets_place place;
    if (mesh->tet_count == 0 || !un_stuffing_locate(mesh, which->at, -1, &place)) return NAN;
    return un_probe_component(s->u_tet[place.tet], which->axis);
}

double un_conforming_probe(const void *state, const un_probe *which)
{
    const un_conforming *s = state;
    bool wet;
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return un_track_front(&s->track, s->solid, which->axis, which->sign);
    case UN_PROBE_WET:
        return un_track_wet(&s->track, s->solid, s->core.def->gravity, which->axis, which->sign);
    case UN_PROBE_HEIGHT:
        return un_track_height(&s->track, s->core.bodies, which->at.x, which->at.z);
    case UN_PROBE_PRESSURE:
        return pressure_sample(s, which->at, &wet);
    case UN_PROBE_VELOCITY:
        return velocity_at(s, which);
    case UN_PROBE_FLUX:
        return un_stuffing_flux(s->core.ctx, un_conforming_mesh(s), s->u_tet, which->at, which->to,
                                which->axis);
    case UN_PROBE_FORCE:
        return un_core_force(&s->core, which, pressure_sample, s);
    }
    return NAN;
}

/* ---- before a run ---- */

/* What a step takes beyond the first state, per tet: a second mesh, the flow, the solver. */
#define STEP_BYTES 2200.0

un_status un_conforming_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    void *state;
    double before = (double)un_context_bytes(ctx);
    un_grid grid = un_grid_make(scene->def.domain.size, scene->def.detail.finest);
    *estimate =
        (un_estimate){.cells = {grid.n[0] - 2, grid.n[1] - 2, grid.n[2] - 2}, .cell_size = grid.h};
    UN_TRY(un_method_create(&un_method_conforming, ctx, scene, NULL, &state));
    estimate->cell_count = un_conforming_mesh(state)->tet_count;
    un_trimesh mesh;
    un_status status = un_conforming_surface(state, &mesh);
    if (status == UN_OK) un_trimesh_free(ctx, &mesh);
    estimate->bytes =
        (double)un_context_peak_bytes(ctx) - before + STEP_BYTES * (double)estimate->cell_count;
    un_method_destroy(&un_method_conforming, state);
    return status;
}
