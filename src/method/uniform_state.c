/* Method `uniform` to a checkpoint and back.
 *
 * Saved: the particles, the pressure (the next guess), what was emitted inside the liquid and waits
 * for the next projection, the ledger, the fastest speed. Found again: bins, level set, volume.
 * Velocities of the grid are not needed: the next step makes them anew from the particles. */
#include "method/uniform.h"

static uint64_t found_hash(const un_uniform *s)
{
    return un_saving_hash((uint64_t)s->particles.count, s->phi,
                          (size_t)s->grid.cell_count * sizeof *s->phi);
}

un_status un_uniform_save(const void *state, un_state *out)
{
    const un_uniform *s = state;
    UN_TRY(un_save_particles(out, &s->particles, NULL));
    UN_TRY(un_save_sources(out, &s->sources));
    UN_TRY(un_state_add_number(out, "walls.time", s->bodies->time));
    UN_TRY(un_state_add_number(out, "walls.dt", s->bodies->dt));
    UN_TRY(un_state_add(out, "pressure", s->pressure->p, s->grid.cell_count, 8));
    UN_TRY(un_state_add(out, "emitted.cell", s->source_cell, s->source_count, 4));
    UN_TRY(un_state_add(out, "emitted.volume", s->source_volume, s->source_count, 8));
    UN_TRY(un_state_add_number(out, "time", s->time));
    UN_TRY(un_state_add_integer(out, "step", s->step_count));
    UN_TRY(un_state_add_number(out, "max_speed", s->max_speed));
    return un_save_hash(out, found_hash(s));
}

static un_status load_emitted(un_uniform *s, const un_state *in)
{
    const un_section *cells;
    UN_TRY(un_state_array(in, "emitted.cell", 4, &cells));
    if (cells->count > INT32_MAX)
        return un_fail(s->ctx, UN_ERROR_FILE, "the checkpoint has too many sources");
    size_t count = (size_t)cells->count;
    UN_TRY(un_array_need(s->ctx, (void **)&s->source_cell, &s->capacity_source_cell, count + 1,
                         sizeof *s->source_cell));
    UN_TRY(un_array_need(s->ctx, (void **)&s->source_volume, &s->capacity_source_volume, count + 1,
                         sizeof *s->source_volume));
    UN_TRY(un_state_take(in, "emitted.cell", s->source_cell, cells->count, 4));
    UN_TRY(un_state_take(in, "emitted.volume", s->source_volume, cells->count, 8));
    for (size_t i = 0; i < count; i++)
        if (s->source_cell[i] < 0 || s->source_cell[i] >= s->grid.cell_count)
            return un_fail(s->ctx, UN_ERROR_FILE, "the checkpoint has a source outside the grid");
    s->source_count = (int32_t)count;
    return UN_OK;
}

static un_status load(un_uniform *s, const un_state *in)
{
    int64_t step;
    UN_TRY(un_state_number(in, "time", &s->time));
    UN_TRY(un_state_integer(in, "step", 0, INT32_MAX, &step));
    s->step_count = (int32_t)step;
    double walls_time, walls_dt;
    UN_TRY(un_state_number(in, "walls.time", &walls_time));
    UN_TRY(un_state_number(in, "walls.dt", &walls_dt));
    UN_TRY(un_bodies_update(s->bodies, walls_time, walls_dt));
    un_walls_update(s->walls);
    un_colour_normalizer(s->ctx, s->normalizer, &s->grid, s->walls);
    UN_TRY(un_load_particles(s->ctx, in, &s->particles, s->def->domain.size));
    UN_TRY(un_load_sources(in, &s->sources));
    UN_TRY(un_state_take(in, "pressure", s->pressure->p, s->grid.cell_count, 8));
    un_pressure_forget(s->pressure);
    UN_TRY(load_emitted(s, in));
    UN_TRY(un_uniform_sort(s)); /* they are sorted; this finds the bins */
    un_uniform_level_set(s);
    un_step_init(&s->last);
    UN_TRY(un_uniform_measure(s, &s->last));
    UN_TRY(un_state_number(in, "max_speed", &s->max_speed));
    return un_load_hash(s->ctx, in, found_hash(s));
}

un_status un_uniform_load(un_context *ctx, const un_scene *scene, const un_state *in, void **state)
{
    un_uniform *s;
    UN_TRY(un_uniform_begin(ctx, scene, &s));
    un_status status = load(s, in);
    if (status != UN_OK) {
        un_method_uniform.destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}
