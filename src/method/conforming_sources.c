/* Emitters and drains of method `conforming`.
 *
 * Inside an active emitter the surface is made liquid and velocities are the emitter's. Where that
 * fills air, the volume is there; where it would be liquid anyway, a divergence in the next
 * projection brings it. Drains empty their shape in every step; what they took is what flowed out
 * of the mesh there, since the flow in their air is an extrapolation and keeps no volume. */
#include "method/conforming.h"

/* An emitter that fills this share of its flow itself, in air, pushes nothing. */
#define FREE 0.9
/* Faces this near to a drain let liquid into it, in cells of the track. */
#define NEAR 1.5

void un_conforming_find_flows(un_conforming *s)
{
    const un_scene_def *def = s->core.def;
    for (int32_t n = 0; n < def->source_count; n++) {
        const un_source *source = &def->sources[n];
        if (source->kind != UN_SOURCE_EMITTER) continue;
        s->flow_rate[n] =
            un_length(source->velocity) *
            un_shape_shadow(s->core.ctx, source->shape, source->velocity, def->domain.size);
    }
}

un_status un_conforming_start(un_conforming *s)
{
    const un_scene_def *def = s->core.def;
    int32_t count = 0;
    const un_shape **shapes =
        un_arena_alloc(&s->core.arena, (size_t)def->source_count + 1, sizeof *shapes);
    if (!shapes) return UN_ERROR_MEMORY;
    if (def->liquid.shape) shapes[count++] = def->liquid.shape;
    for (int32_t n = 0; n < def->source_count; n++) {
        const un_source *source = &def->sources[n];
        if (source->kind != UN_SOURCE_EMITTER || !un_source_active(source, 0)) continue;
        shapes[count++] = source->shape;
        s->core.sources.emission[n].started = true;
    }
    UN_TRY(un_track_start(&s->track, shapes, count, &s->walls));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

void un_conforming_book(un_conforming *s, const un_surface_advection *in)
{
    un_ledger *ledger = &s->core.sources.ledger;
    ledger->out += un_advect_left(in);
    for (int32_t n = 0; n < in->def->source_count; n++) {
        const un_source *source = &in->def->sources[n];
        un_emission *emission = &s->core.sources.emission[n];
        s->pushed[n] = 0;
        if (!un_source_active(source, in->time)) continue;
        if (source->kind == UN_SOURCE_DRAIN && emission->started) {
            double rate = un_stuffing_drained(s->core.ctx, un_conforming_mesh(s), s->u,
                                              source->shape, NEAR * s->track.h);
            ledger->out += fmax(0, rate) * in->dt;
            continue;
        }
        double moved = un_advect_sourced(s->core.ctx, in, source);
        if (source->kind == UN_SOURCE_DRAIN) {
            ledger->out += moved;
            emission->started = true;
        } else if (!emission->started) {
            ledger->in += moved;
            emission->started = true;
        } else {
            double flow = s->flow_rate[n] * in->dt;
            s->pushed[n] = moved < FREE * flow ? flow - moved : 0;
            ledger->in += flow;
        }
    }
}

void un_conforming_emit(un_conforming *s, double dt)
{
    const un_scene_def *def = s->core.def;
    const un_stuffing *mesh = un_conforming_mesh(s);
    memset(s->source, 0, (size_t)mesh->tet_count * sizeof *s->source);
    for (int32_t n = 0; n < def->source_count; n++)
        if (def->sources[n].kind == UN_SOURCE_EMITTER &&
            un_source_active(&def->sources[n], s->core.time))
            un_stuffing_emit(s->core.ctx, s->u, s->source, mesh, &def->sources[n], s->pushed[n],
                             dt);
}
