/* What method `uniform` reports and shows: sums, surface, cells, probes. */
#include "method/uniform.h"
#include "transfer/transfer.h"

un_status un_uniform_measure(un_uniform *s, un_step *report)
{
    report->step = s->step_count;
    report->time = s->time;
    report->ballistic = s->ballistic;
    report->nodes = s->grid.node_count;
    report->volume = s->volume;
    report->volume_error = s->volume_error;
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
    const un_grid *g = &s->grid;
    int64_t n = 0;
    for (int64_t c = 0; c < g->cell_count; c++) n += s->phi[c] < 0 && s->walls->volume[c] > 0;
    UN_TRY(un_cells_alloc(s->ctx, out, n));
    out->flat = g->dim == 2;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                if (!(s->phi[c] < 0 && s->walls->volume[c] > 0)) continue;
                out->min[out->count] = un_grid_node_position(g, i, j, k);
                out->size[out->count] = g->h;
                out->level[out->count] = 0;
                out->pressure[out->count] = s->pressure->p[c];
                double v[3] = {0};
                for (int a = 0; a < g->dim; a++)
                    v[a] = 0.5 * (s->u[a][c] + s->u[a][c + g->stride[a]]);
                out->velocity[out->count++] = un_v3(v[0], v[1], v[2]);
            }
    return UN_OK;
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
