/* Method `warp` to a checkpoint and back.
 *
 * Saved: the particles with their places in reference space, the potentials of the grid, velocities
 * (which tell the strain), the pressure, what was emitted inside the liquid and waits for the next
 * projection, the ledger, the fastest rate. Found again: places of the grid, walls, bins, level
 * set, volume. */
#include "method/warp.h"

static uint64_t found_hash(const un_warping *s)
{
    return un_saving_hash((uint64_t)s->particles.count, s->phi,
                          (size_t)s->warp.grid.cell_count * sizeof *s->phi);
}

un_status un_warping_save(const void *state, un_state *out)
{
    const un_warping *s = state;
    int64_t cells = s->warp.grid.cell_count;
    UN_TRY(un_save_particles(out, &s->particles, NULL));
    UN_TRY(un_core_save(&s->core, out));
    UN_TRY(un_state_add(out, "warp.target", s->warp.target, cells, 8));
    UN_TRY(un_state_add(out, "warp.potential", s->warp.potential, cells, 8));
    UN_TRY(un_state_add(out, "warp.before", s->warp.before, cells, 8));
    UN_TRY(un_state_add(out, "velocity", s->u, 3 * cells, 8));
    UN_TRY(un_state_add(out, "pressure", s->p, s->walls->parts.place_count, 8));
    UN_TRY(un_save_inflow(out, &s->inflow));
    UN_TRY(un_state_add_number(out, "rate", s->rate));
    if (s->band.width > 0) UN_TRY(un_state_add(out, "deep", s->band.deep, cells, 1));
    if (s->carried) UN_TRY(un_state_add(out, "surface", s->phi, cells, 4));
    return un_save_hash(out, found_hash(s));
}

un_status un_warping_load(void *state, const un_state *in)
{
    un_warping *s = state;
    int64_t cells = s->warp.grid.cell_count;
    UN_TRY(un_core_load(&s->core, in));
    UN_TRY(un_load_particles(&s->core, in, &s->particles));
    UN_TRY(un_state_take_finite(in, "warp.target", s->warp.target, cells));
    UN_TRY(un_state_take_finite(in, "warp.potential", s->warp.potential, cells));
    UN_TRY(un_state_take_finite(in, "warp.before", s->warp.before, cells));
    UN_TRY(un_state_take_finite(in, "velocity", &s->u->x, 3 * cells));
    UN_TRY(un_state_number(in, "rate", &s->rate));
    UN_TRY(un_load_inflow(s->core.ctx, in, &s->inflow, cells));
    /* without it the next step finds what is deep */
    if (s->band.width > 0 && un_state_find(in, "deep"))
        UN_TRY(un_state_take(in, "deep", s->band.deep, cells, 1));
    un_warp_place(&s->warp);
    UN_TRY(un_warping_find_walls(s));
    UN_TRY(un_state_take_finite(in, "pressure", s->p, s->walls->parts.place_count));
    UN_TRY(un_colour_normalizer(s->core.ctx, s->normalizer, &s->warp.grid, s->walls));
    UN_TRY(un_warping_bin(s)); /* they are sorted; this finds the bins */
    if (s->carried) UN_TRY(un_state_take(in, "surface", s->phi, cells, 4));
    UN_TRY(s->carried ? un_warping_track_weigh(s) : un_warping_level_set(s));
    un_step_init(&s->core.last);
    UN_TRY(un_warping_measure(s, &s->core.last));
    return un_load_hash(s->core.ctx, in, found_hash(s));
}

/* The grid is found again from the level set, as at the start of a run: not quite where it was,
 * since it follows the liquid with a delay, but with the same detail. */
#define TURNS 2

un_status un_warping_restore(void *state, const un_saved_particles *saved)
{
    un_warping *s = state;
    un_context *ctx = s->core.ctx;
    s->carried = false; /* frames have particles alone */
    UN_TRY(saved->place(saved->arg, s->core.bodies));
    UN_TRY(un_warping_find_walls(s));
    UN_TRY(un_colour_normalizer(ctx, s->normalizer, &s->warp.grid, s->walls));
    UN_TRY(un_particles_adopt(ctx, &s->particles, saved->particles, &s->warp));
    UN_TRY(un_warping_sort(s));
    UN_TRY(un_warping_level_set(s));
    for (int turn = 0; turn < TURNS; turn++) {
        UN_TRY(un_warping_settle_grid(s));
        UN_TRY(un_colour_normalizer(ctx, s->normalizer, &s->warp.grid, s->walls));
        UN_TRY(un_warping_sort(s));
        UN_TRY(un_warping_level_set(s));
    }
    return un_warping_to_grid(s, 0);
}
