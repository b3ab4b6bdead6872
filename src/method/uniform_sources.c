/* Emitters, drains and open sides of method `uniform`. */
#include "method/uniform.h"

un_status un_uniform_remove(un_uniform *s)
{
    if (s->ranks.slabs) return un_uniform_ranks_remove(s);
    UN_TRY(un_particles_remove(&s->core.sources, &s->core.arena, &s->particles, s->core.time));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* New particles that appeared inside the liquid push it apart: their volume becomes a source in the
 * next projection. Those of a first filling are taken back instead, the place is taken. */
static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    un_uniform *s = arg;
    un_vec3 x = un_particle_position(&s->particles, q);
    int64_t c = un_grid_cell_at(&s->core.grid, x);
    if (!(s->phi[un_grid_cell_at(&s->core.grid, from)] < 0)) return UN_OK;
    *keep = !first_filling;
    if (first_filling) return UN_OK;
    return un_inflow_add(s->core.ctx, &s->inflow, c, s->particles.volume[q]);
}

un_status un_uniform_emit(un_uniform *s, double dt)
{
    int32_t first = s->particles.count;
    UN_TRY(un_particles_emit(&s->core.sources, &s->particles, s->core.time, dt, settle, s));
    return s->ranks.slabs ? un_uniform_ranks_adopt(s, first) : UN_OK;
}
