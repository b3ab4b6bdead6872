/* Emitters, drains and open sides of method `uniform`.
 *
 * The level set of an emitter's surroundings decides what becomes of new particles. Every one of
 * several ranks emits all of them and keeps its own; so where there are emitters every rank has the
 * whole level set. */
#include "method/uniform.h"

/* ---- several ranks ---- */

static un_status remove_ranks(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    un_particles *p = &s->particles;
    if (!un_sources_any(&s->core.sources)) return UN_OK;
    uint8_t *keep = un_arena_alloc(&s->core.arena, (size_t)p->count + 1, 1);
    int32_t *index = un_arena_alloc(&s->core.arena, (size_t)p->count + 1, sizeof *index);
    int32_t gone = 0, kept = 0;
    double removed = 0;
    if (!keep || !index) return UN_ERROR_MEMORY;
    un_particles_sort_out(&s->core.sources, keep, p, s->core.time);
    for (int32_t q = 0; q < p->count; q++)
        if (!keep[q]) index[gone++] = q;
    UN_TRY(un_uniform_send_to_all(s, index, gone)); /* summed in the order of one rank */
    for (int32_t i = 0; i < r->arrived.count; i++) removed += r->arrived.volume[i];
    s->core.sources.ledger.out += removed;
    for (int32_t q = 0; q < p->count; q++)
        if (keep[q]) r->id[kept++] = r->id[q];
    un_particles_filter(p, keep);
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

/* The new ones, from `first` on, come after all others. */
static un_status adopt(un_uniform *s, int32_t first)
{
    un_uniform_ranks *r = &s->ranks;
    int32_t count = s->particles.count - first;
    UN_TRY(un_uniform_need_ids(s, s->particles.count));
    for (int32_t i = 0; i < count; i++) r->id[first + i] = r->id_end + (uint32_t)i;
    r->id_end += (uint32_t)count;
    un_uniform_keep_own(s, first);
    return UN_OK;
}

/* ---- one rank, or several ---- */

un_status un_uniform_remove(un_uniform *s)
{
    if (s->ranks.bars) return remove_ranks(s);
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
    return s->ranks.bars ? adopt(s, first) : UN_OK;
}

/* ---- particles that a narrow band takes away and brings ---- */

/* As one rank numbers them: old ones, then new ones by rows of cells, of which a rank's follow
 * those of the ranks before it. */
un_status un_uniform_ranks_carry(un_uniform *s, int32_t first, const un_bins_gone *gone)
{
    un_uniform_ranks *r = &s->ranks;
    un_particles *p = &s->particles;
    uint8_t *keep = un_arena_alloc(&s->core.arena, (size_t)p->count + 1, 1);
    int32_t kept = 0;
    if (!keep) return UN_ERROR_MEMORY;
    un_range range = un_ranks_range(s->core.ctx, p->count - first);
    UN_TRY(un_uniform_need_ids(s, p->count));
    for (int32_t q = first; q < p->count; q++)
        r->id[q] = r->id_end + (uint32_t)(range.begin + q - first);
    r->id_end += (uint32_t)range.total;
    memset(keep, 1, (size_t)p->count);
    for (int32_t i = 0; i < gone->count; i++) keep[gone->list[i]] = 0;
    for (int32_t q = 0; q < p->count; q++)
        if (keep[q]) r->id[kept++] = r->id[q];
    un_particles_filter(p, keep);
    un_arena_reset(&s->core.arena);
    return un_uniform_ranks_sort(s);
}
