/* What method `uniform` reports and shows: sums, surface, cells, probes. */
#include "method/uniform.h"

un_status un_uniform_measure(un_uniform *s, un_step *report, double *divergence)
{
    un_particle_sums sums;
    enum { FASTEST, SPEED, DIVERGENCE, MOST };
    double most[MOST] = {un_particles_fastest(s->core.ctx, &s->particles),
                         un_transfer_max_speed(s->core.ctx, s->u, s->known, &s->core.grid),
                         *divergence};
    un_ranks_most(s->core.ctx, most, MOST);
    *divergence = most[DIVERGENCE];
    un_particles_set_sums(&sums, s->sums, most[FASTEST],
                          s->particles.mixed ? 1 : s->core.def->fluid.density);
    report->nodes = s->core.grid.node_count;
    int64_t count = s->ranks.bars ? s->ranks.total : s->particles.count;
    UN_TRY(un_core_measure_sums(&s->core, report, &sums, count, s->ballistic));
    /* Before the first step the grid knows nothing yet. */
    s->max_speed = s->core.step_count ? most[SPEED] : report->max_speed;
    return UN_OK;
}

/* In 2D, rank 0 alone, from all particles. */
static un_status mesh_flat_whole(un_uniform *s, un_trimesh *mesh, un_mesher *mesher)
{
    if (un_rank(s->core.ctx) > 0) return UN_OK;
    UN_TRY(un_uniform_whole_bins(s, &mesher->bins));
    un_arena_free(&s->core.arena); /* the surface has one of its own */
    un_bars *bars = s->core.grid.bars;
    s->core.grid.bars = NULL; /* all rows are here now */
    mesher->particles = un_uniform_shown(s);
    un_status status = un_surface_mesh(s->core.ctx, mesh, mesher);
    s->core.grid.bars = bars;
    return status;
}

un_status un_uniform_surface(void *state, un_trimesh *mesh)
{
    un_uniform *s = state;
    const un_uniform_ranks *r = &s->ranks;
    un_mesher mesher = {.grid = &s->core.grid,
                        .bins = s->bins,
                        .particles = &s->particles,
                        .walls = s->core.walls,
                        .phi = s->phi,
                        .u = s->u,
                        .resolution = s->core.def->detail.surface,
                        .smoothing = s->thick.any ? UN_SMOOTHING_THICK : UN_SMOOTHING};
    if (r->bars && s->core.grid.dim == 2) return mesh_flat_whole(s, mesh, &mesher);
    un_bins_share share = {r->block_owner, r->block_first, r->halo, r->slot, r->slot_count};
    un_particle_stream stream;
    if (r->bars) {
        UN_TRY(un_uniform_stream(s, &stream));
        mesher.share = &share;
        mesher.stream = &stream;
    }
    un_arena_free(&s->core.arena); /* the surface has one of its own */
    return un_surface_mesh(s->core.ctx, mesh, &mesher);
}

un_status un_uniform_cells(const void *state, un_cells *out)
{
    const un_uniform *s = state;
    un_grid_cells in = {.grid = &s->core.grid,
                        .phi = s->phi,
                        .open = s->core.walls->volume,
                        .p = s->pressure->p,
                        .u = s->u,
                        .more = s->thick.p};
    return un_cells_from_grid(s->core.ctx, out, &in);
}

static double pressure_sample(const void *state, un_vec3 x, bool *wet)
{
    const un_uniform *s = state;
    *wet =
        un_core_is_open(&s->core, x) && s->pressure->index[un_grid_cell_at(&s->core.grid, x)] >= 0;
    return *wet ? un_pressure_at(s->pressure, x) : 0;
}

static double probe_particles(const un_uniform *s, const un_probe *which)
{
    const double *found = NULL;
    if (s->ranks.has_probed) found = un_core_probed(&s->core, which, s->ranks.probed);
    if (found) return *found;
    return which->kind == UN_PROBE_FLUX ? un_uniform_flux(s, which)
                                        : un_core_probe(&s->core, which, un_uniform_shown(s));
}

double un_uniform_probe(const void *state, const un_probe *which)
{
    const un_uniform *s = state;
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return un_grid_front(s->core.ctx, s->phi, &s->core.grid, which->axis, which->sign);
    case UN_PROBE_HEIGHT:
        return un_grid_height(s->phi, &s->core.grid, which->at);
    case UN_PROBE_PRESSURE:
        return un_pressure_at(s->pressure, which->at);
    case UN_PROBE_VELOCITY:
        if (s->core.step_count == 0 || !(un_grid_sample(&s->core.grid, s->phi, which->at) < 0))
            return NAN;
        return un_probe_component(un_faces_sample(&s->core.grid, s->u, which->at), which->axis);
    case UN_PROBE_WET:
    case UN_PROBE_FLUX:
        return probe_particles(s, which);
    case UN_PROBE_FORCE:
        return un_core_force(&s->core, which, pressure_sample, s);
    }
    return NAN;
}
