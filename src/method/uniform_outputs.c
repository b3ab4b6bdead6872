/* What method `uniform` reports and shows: sums, surface, cells, probes. */
#include "method/uniform.h"
#include "transfer/transfer.h"

un_status un_uniform_measure(un_uniform *s, un_step *report)
{
    report->step = s->step_count;
    report->time = s->time;
    report->ballistic = s->ballistic;
    report->nodes = s->grid.node_count;
    report->volume = s->sources.ledger.found;
    report->volume_error = s->sources.ledger.error;
    UN_TRY(un_step_sum(s->ctx, report, &s->particles, s->def));
    /* Before the first step the grid knows nothing yet. */
    s->max_speed =
        s->step_count ? un_transfer_max_speed(s->ctx, s->u, s->known, &s->grid) : report->max_speed;
    return UN_OK;
}

un_status un_uniform_surface(void *state, un_trimesh *mesh)
{
    un_uniform *s = state;
    un_mesher mesher = {.grid = &s->grid,
                        .bins = s->bins,
                        .particles = &s->particles,
                        .walls = s->walls,
                        .phi = s->phi,
                        .u = s->u,
                        .resolution = s->def->detail.surface,
                        .smoothing = UN_SMOOTHING};
    return un_surface_mesh(s->ctx, mesh, &mesher);
}

un_status un_uniform_cells(const void *state, un_cells *out)
{
    const un_uniform *s = state;
    un_grid_cells in = {&s->grid, s->phi, s->walls->volume, s->pressure->p, s->u};
    return un_cells_from_grid(s->ctx, out, &in);
}

double un_uniform_probe(const void *state, const un_probe *which)
{
    const un_uniform *s = state;
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return un_grid_front(s->ctx, s->phi, &s->grid, which->axis, which->sign);
    case UN_PROBE_HEIGHT:
        return un_grid_height(s->phi, &s->grid, which->at);
    case UN_PROBE_PRESSURE:
        return un_pressure_at(s->pressure, which->at);
    }
    return NAN;
}
