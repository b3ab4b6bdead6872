/* Particles of method `uniform` on their way from rank to rank, with their ids. */
#include "method/uniform.h"

un_status un_uniform_send(un_exchange *e, un_particles *to, uint32_t *to_id,
                          const un_particles *from, const uint32_t *id)
{
    int32_t field_count = 10, at = to->count;
    un_field fields[12] = {{"volume", from->volume, to->volume + at, sizeof *to->volume},
                           {"flags", from->flags, to->flags + at, 1},
                           {"fall", from->fall, to->fall + at, 1},
                           {"id", id, to_id + at, sizeof *id}};
    static const char *const names[6] = {"x", "y", "z", "vx", "vy", "vz"};
    for (int a = 0; a < 3; a++) {
        fields[4 + a] = (un_field){names[a], from->x[a], to->x[a] + at, sizeof(double)};
        fields[7 + a] = (un_field){names[3 + a], from->v[a], to->v[a] + at, sizeof(double)};
    }
    if (from->mixed) {
        fields[field_count++] =
            (un_field){"density", from->density, to->density + at, sizeof(float)};
        fields[field_count++] =
            (un_field){"viscosity", from->viscosity, to->viscosity + at, sizeof(float)};
    }
    UN_TRY(un_exchange_run(e, fields, field_count));
    to->count += (int32_t)un_exchange_count(e);
    to->lead = from->lead;
    return UN_OK;
}

static un_status need_arrived(un_uniform *s, int64_t count)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    r->arrived.count = 0;
    UN_TRY(un_particles_reserve(ctx, &r->arrived, un_max64(count, 1)));
    return un_array_need(ctx, (void **)&r->arrived_id, &r->arrived_room, (size_t)count + 1,
                         sizeof *r->arrived_id);
}

un_status un_uniform_find_id_order(un_uniform *s, const uint32_t *id, int64_t count,
                                   int32_t **order)
{
    bool sorted = true;
    int32_t bits = 1;
    *order = NULL;
    for (int64_t i = 1; i < count && sorted; i++) sorted = id[i - 1] < id[i];
    if (sorted) return UN_OK;
    *order = un_arena_alloc(&s->core.arena, (size_t)count + 1, sizeof **order);
    if (!*order) return UN_ERROR_MEMORY;
    while (bits < 32 && s->ranks.id_end >> bits) bits++;
    return un_parallel_sort(s->core.ctx, &s->core.arena, *order, id, count, bits);
}

/* Puts what arrived into the order of ids. */
static un_status order_by_id(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    un_particles *p = &r->arrived;
    int32_t *order;
    UN_TRY(un_uniform_find_id_order(s, r->arrived_id, p->count, &order));
    if (!order) return UN_OK;
    uint32_t *id = un_arena_alloc(&s->core.arena, (size_t)p->count + 1, sizeof *id);
    if (!id) return UN_ERROR_MEMORY;
    un_particles_reorder(s->core.ctx, p, order);
    memcpy(id, r->arrived_id, (size_t)p->count * sizeof *id);
    for (int32_t i = 0; i < p->count; i++) r->arrived_id[i] = id[order[i]];
    return UN_OK;
}

un_status un_uniform_begin_list(un_uniform *s, un_uniform_list *l, int64_t most)
{
    *l = (un_uniform_list){0};
    l->index = un_arena_alloc(&s->core.arena, (size_t)most + 1, sizeof *l->index);
    l->to = un_arena_alloc(&s->core.arena, (size_t)most + 1, sizeof *l->to);
    return l->index && l->to ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_uniform_send_list(un_uniform *s, const un_uniform_list *l, const uint32_t *id)
{
    un_uniform_ranks *r = &s->ranks;
    un_exchange *e = NULL;
    UN_TRY(un_exchange_create_copies(s->core.ctx, l->index, l->to, l->count, &e));
    un_status status = need_arrived(s, un_exchange_count(e));
    if (status == UN_OK) status = un_uniform_send(e, &r->arrived, r->arrived_id, &s->particles, id);
    un_exchange_destroy(e);
    return status;
}

un_status un_uniform_send_to_all(un_uniform *s, const int32_t *index, int64_t count)
{
    un_uniform_list l;
    int32_t ranks = un_rank_count(s->core.ctx);
    UN_TRY(un_uniform_begin_list(s, &l, count * ranks));
    for (int64_t i = 0; i < count; i++)
        for (int32_t n = 0; n < ranks; n++) un_uniform_add_to_list(&l, index[i], n);
    UN_TRY(un_uniform_send_list(s, &l, s->ranks.id));
    return order_by_id(s);
}
