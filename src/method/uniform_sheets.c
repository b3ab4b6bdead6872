/* Sheets and threads of method `uniform` on several ranks: thin particles go to all ranks, each of
 * which evens its own. */
#include "method/uniform.h"

/* Particles of sheets and threads in the order of ids, from the arena. */
static un_status list_thin(un_uniform *s, int32_t **thin, int64_t *thin_count)
{
    const un_particles *p = &s->particles;
    int64_t count = 0, at = 0;
    int32_t *order;
    for (int32_t q = 0; q < p->count; q++) count += (p->flags[q] & UN_PARTICLE_THIN) != 0;
    int32_t *index = un_arena_alloc(&s->core.arena, (size_t)count + 1, sizeof *index);
    uint32_t *id = un_arena_alloc(&s->core.arena, (size_t)count + 1, sizeof *id);
    if (!index || !id) return UN_ERROR_MEMORY;
    for (int32_t q = 0; q < p->count; q++)
        if (p->flags[q] & UN_PARTICLE_THIN) {
            index[at] = q;
            id[at++] = s->ranks.id[q];
        }
    *thin = index;
    *thin_count = count;
    UN_TRY(un_uniform_find_id_order(s, id, count, &order));
    if (!order) return UN_OK;
    for (int64_t i = 0; i < count; i++) order[i] = index[order[i]];
    *thin = order;
    return UN_OK;
}

/* Marks those that arrived that are this rank's, `index`, in the order of ids. */
static un_status mark_own(un_uniform *s, const int32_t *index, int64_t count, uint8_t **own)
{
    const un_uniform_ranks *r = &s->ranks;
    int64_t at = 0;
    *own = un_arena_alloc(&s->core.arena, (size_t)r->arrived.count + 1, 1);
    if (!*own) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < r->arrived.count; i++) {
        (*own)[i] = at < count && r->id[index[at]] == r->arrived_id[i];
        at += (*own)[i];
    }
    UN_ASSERT(at == count);
    return UN_OK;
}

un_status un_uniform_ranks_even_sheets(un_uniform *s, const un_sheets_def *def)
{
    un_uniform_ranks *r = &s->ranks;
    un_particles *p = &s->particles;
    un_sheets_def here = *def;
    int32_t *index;
    uint8_t *own;
    int64_t count, at = 0;
    UN_TRY(list_thin(s, &index, &count));
    UN_TRY(un_uniform_send_to_all(s, index, count));
    UN_TRY(mark_own(s, index, count, &own));
    here.own = own;
    if (count > 0)
        UN_TRY(un_particles_even_sheets(s->core.ctx, &s->core.arena, &r->arrived, &here, NULL));
    for (int32_t i = 0; i < r->arrived.count; i++) {
        if (!own[i]) continue;
        int32_t q = index[at++];
        un_particle_set_position(p, q, un_particle_position(&r->arrived, i));
        un_particle_set_velocity(p, q, un_particle_velocity(&r->arrived, i));
        p->flags[q] = r->arrived.flags[i];
        p->fall[q] = r->arrived.fall[i];
    }
    un_arena_reset(&s->core.arena);
    return UN_OK;
}
