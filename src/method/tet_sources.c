/* Emitters, drains and open sides of method `tet`. */
#include "method/tet.h"

un_status un_tet_remove(un_tet *s)
{
    UN_TRY(un_sources_remove(&s->sources, &s->arena, &s->particles, s->time));
    un_arena_reset(&s->arena);
    return UN_OK;
}

/* As in method `uniform`: what appears inside the liquid pushes it apart in the next projection,
 * unless it belongs to the first filling. The mesh is still that of the step; the place is found
 * again on the next one, in un_tet_place_emitted. */
static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    un_tet *s = arg;
    un_tets_place place;
    un_tets_locate(&s->mesh, from, &place);
    s->particles.flags[q] = UN_PARTICLE_SURFACE;
    s->particles.size[q] = (float)s->tree.h;
    if (!(un_tet_sample(&s->mesh, s->phi, &place) < 0)) return UN_OK;
    *keep = !first_filling;
    if (!first_filling) s->particles.flags[q] |= UN_PARTICLE_EMITTED;
    return UN_OK;
}

un_status un_tet_emit(un_tet *s, double dt)
{
    return un_sources_emit(&s->sources, &s->particles, s->time, dt, settle, s);
}

un_status un_tet_place_emitted(un_tet *s)
{
    un_particles *p = &s->particles;
    if (s->def->source_count == 0) return UN_OK;
    size_t nodes = (size_t)s->mesh.node_count;
    UN_TRY(un_array_need(s->ctx, (void **)&s->emitted, &s->emitted_capacity, nodes + 1,
                         sizeof *s->emitted));
    memset(s->emitted, 0, nodes * sizeof *s->emitted);
    s->has_emitted = true;
    for (int32_t q = 0; q < p->count; q++) {
        if (!(p->flags[q] & UN_PARTICLE_EMITTED)) continue;
        un_tets_place place;
        un_tets_locate(&s->mesh, un_particle_position(p, q), &place);
        for (int i = 0; i < 4; i++)
            s->emitted[s->mesh.tet[place.tet][i]] += place.w[i] * p->volume[q];
    }
    return UN_OK;
}
