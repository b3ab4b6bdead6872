/* Method `uniform` to a checkpoint and back.
 *
 * Saved: the particles, the pressure (the next guess), that of viscous liquid, what was emitted
 * inside the liquid and waits for the next projection, the ledger, the fastest speed; with a narrow
 * band which cells are deep, and the velocities that their faces have carried. Found again: bins,
 * level set, volume, depth. Other velocities of the grid are not needed: the next step makes them
 * anew from the particles. */
#include "method/uniform.h"

static const char *const carried[] = {"carried_x", "carried_y", "carried_z"};

static uint64_t found_hash(const un_uniform *s)
{
    bool shared = s->ranks.slabs != NULL;
    un_part own = un_grid_own_cells(&s->core.grid, 0);
    un_hashing h = {.hash = (uint64_t)(shared ? s->ranks.total : s->particles.count)};
    un_hashing_part(s->core.ctx, shared, &h, s->phi + own.begin,
                    (size_t)(own.end - own.begin) * sizeof *s->phi);
    return h.hash;
}

static un_status save_band(const un_band *band, un_part cells, un_state *out)
{
    int64_t from = cells.begin, count = cells.end - from;
    if (!(band->width > 0)) return UN_OK;
    for (int a = 0; a < 3 && band->u[a]; a++)
        UN_TRY(un_state_add(out, carried[a], band->u[a] + from, count, 8));
    return un_state_add(out, "deep", band->deep + from, count, 1);
}

static un_status load_band(un_band *band, un_part cells, const un_state *in)
{
    int64_t from = cells.begin, count = cells.end - from;
    if (!(band->width > 0) || !un_state_find(in, "deep")) return UN_OK;
    for (int a = 0; a < 3 && band->u[a]; a++)
        UN_TRY(un_state_take(in, carried[a], band->u[a] + from, count, 8));
    return un_state_take(in, "deep", band->deep + from, count, 1);
}

un_status un_uniform_save(const void *state, un_state *out)
{
    const un_uniform *s = state;
    int32_t first = out->count;
    UN_TRY(un_save_particles(out, &s->particles, NULL));
    UN_TRY(un_uniform_fetch_particles(s, out, first));
    UN_TRY(un_core_save(&s->core, out));
    first = out->count;
    UN_TRY(un_state_add(out, "pressure", s->pressure->p, s->core.grid.cell_count, 8));
    UN_TRY(save_band(&s->band, (un_part){0, s->core.grid.cell_count}, out));
    if (s->thick.any)
        UN_TRY(un_state_add(out, "viscous_pressure", s->thick.p, s->core.grid.cell_count, 8));
    un_uniform_fetch_cells(s, out, first);
    UN_TRY(un_save_inflow(out, &s->inflow));
    UN_TRY(un_state_add_number(out, "max_speed", s->max_speed));
    return un_save_hash(out, found_hash(s));
}

/* The same for one of several ranks. */
un_status un_uniform_keep(void *state, un_state *out)
{
    un_uniform *s = state;
    un_part own = un_grid_own_cells(&s->core.grid, 0);
    UN_TRY(un_uniform_ranks_keep(s, out));
    UN_TRY(un_core_save(&s->core, out));
    UN_TRY(un_state_add(out, "pressure", s->pressure->p + own.begin, own.end - own.begin, 8));
    UN_TRY(save_band(&s->band, own, out));
    if (s->thick.any)
        UN_TRY(
            un_state_add(out, "viscous_pressure", s->thick.p + own.begin, own.end - own.begin, 8));
    UN_TRY(un_save_inflow(out, &s->inflow));
    return un_state_add_number(out, "max_speed", s->max_speed);
}

/* The particles and the pressure, shared out. */
static un_status load_parts(un_uniform *s, const un_state *in)
{
    bool kept = un_state_find(in, "ranks.first") != NULL;
    UN_TRY(kept ? un_uniform_ranks_take(s, in) : un_uniform_share_out(s));
    un_part own = {0, s->core.grid.cell_count};
    if (kept) own = un_grid_own_cells(&s->core.grid, 0);
    UN_TRY(un_state_take(in, "pressure", s->pressure->p + own.begin, own.end - own.begin, 8));
    if (s->thick.any)
        UN_TRY(
            un_state_take(in, "viscous_pressure", s->thick.p + own.begin, own.end - own.begin, 8));
    UN_TRY(load_band(&s->band, own, in));
    if (!(s->band.width > 0)) return UN_OK;
    return un_grid_share(&s->core.grid, &(un_layered){s->band.deep, 1}, 1, UN_UNIFORM_HALO);
}

un_status un_uniform_load(void *state, const un_state *in)
{
    un_uniform *s = state;
    UN_TRY(un_core_load(&s->core, in));
    UN_TRY(un_walls_update(s->core.walls));
    UN_TRY(un_colour_normalizer(s->core.ctx, s->normalizer, &s->core.grid, s->core.walls));
    UN_TRY(un_load_particles(&s->core, in, &s->particles));
    un_pressure_forget(s->pressure);
    UN_TRY(un_load_inflow(s->core.ctx, in, &s->inflow, s->core.grid.cell_count));
    UN_TRY(load_parts(s, in));
    UN_TRY(un_uniform_sort(s)); /* they are sorted; this finds the bins */
    UN_TRY(un_uniform_level_set(s));
    un_step_init(&s->core.last);
    UN_TRY(un_uniform_measure(s, &s->core.last));
    UN_TRY(un_state_number(in, "max_speed", &s->max_speed));
    bool kept = un_state_find(in, "ranks.first") && !un_state_find(in, "found.hash");
    if (kept) return UN_OK; /* by this run */
    return un_load_hash(s->core.ctx, in, found_hash(s));
}
