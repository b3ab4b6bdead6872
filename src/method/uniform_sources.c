/* Emitters, drains and open sides of method `uniform`. */
#include "method/uniform.h"

un_status un_uniform_remove(un_uniform *s)
{
    UN_TRY(un_particles_remove(&s->sources, &s->arena, &s->particles, s->time));
    un_arena_reset(&s->arena);
    return UN_OK;
}

/* New particles that appeared inside the liquid push it apart: their volume becomes a source in the
 * next projection. Those of a first filling are taken back instead, the place is taken. */
static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    un_uniform *s = arg;
    un_vec3 x = un_particle_position(&s->particles, q);
    int64_t c = un_grid_cell_at(&s->grid, x);
    if (!(s->phi[un_grid_cell_at(&s->grid, from)] < 0)) return UN_OK;
    *keep = !first_filling;
    if (first_filling) return UN_OK;
    size_t n = (size_t)s->source_count + 1;
    UN_TRY(un_array_reserve(s->ctx, (void **)&s->source_cell, &s->capacity_source_cell, n,
                            sizeof *s->source_cell));
    UN_TRY(un_array_reserve(s->ctx, (void **)&s->source_volume, &s->capacity_source_volume, n,
                            sizeof *s->source_volume));
    s->source_cell[s->source_count] = (int32_t)c;
    s->source_volume[s->source_count++] = s->particles.volume[q];
    return UN_OK;
}

un_status un_uniform_emit(un_uniform *s, double dt)
{
    return un_particles_emit(&s->sources, &s->particles, s->time, dt, settle, s);
}
