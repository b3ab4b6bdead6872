/* Particles that emitters add, and that drains and open sides remove. */
#include "particles/particles.h"

typedef struct keep_args {
    const un_sources *s;
    un_particles *particles;
    uint8_t *keep;
    double time;
} keep_args;

static void sort_out(void *arg, int64_t begin, int64_t end)
{
    keep_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        a->keep[q] = un_sources_in_domain(a->s, x);
        for (int32_t n = 0; n < a->s->def->source_count; n++) {
            const un_source *source = &a->s->def->sources[n];
            if (!un_source_active(source, a->time)) continue;
            if (un_shape_distance(source->shape, x) >= 0) continue;
            if (source->kind == UN_SOURCE_DRAIN) {
                a->keep[q] = 0;
            } else {
                p->v[0][q] = source->velocity.x;
                p->v[1][q] = source->velocity.y;
                p->v[2][q] = source->velocity.z;
                p->fall[q] = UN_FALL_FREE;
            }
        }
    }
}

void un_particles_sort_out(un_sources *s, uint8_t *keep, un_particles *particles, double time)
{
    keep_args a = {.s = s, .particles = particles, .keep = keep, .time = time};
    un_parallel_for(s->ctx, particles->count, 4096, sort_out, &a);
}

un_status un_particles_remove(un_sources *s, un_arena *arena, un_particles *particles, double time)
{
    if (!un_sources_any(s)) return UN_OK;
    uint8_t *keep = un_arena_alloc(arena, (size_t)particles->count + 1, 1);
    if (!keep) return UN_ERROR_MEMORY;
    un_particles_sort_out(s, keep, particles, time);
    s->ledger.out += un_particles_filter(particles, keep);
    return UN_OK;
}

un_status un_particles_give_matter(un_sources *s, un_particles *p, int32_t first,
                                   const un_matter *matter)
{
    size_t count = (size_t)(p->count - first);
    un_vec3 *x;
    if (!p->density || count == 0) return UN_OK;
    UN_ALLOC(s->ctx, x, count);
    for (size_t i = 0; i < count; i++) x[i] = un_particle_position(p, first + (int64_t)i);
    un_status status = un_scene_matter(s->walls->scene, matter, x, (int64_t)count,
                                       p->density + first, p->viscosity + first);
    un_free(s->ctx, x);
    return status;
}

/* A round stream of few half cells is too wide on the lattice: their volumes are scaled so that it
 * brings what its cross-section and speed say. */
#define SHARE_MIN 0.5
#define SHARE_MAX 2.0

static double stream_share(const un_sources *s, const un_seed_def *def)
{
    if (!(un_length(def->velocity) > 0)) return 1;
    double found = un_particles_stream_area(s->ctx, def);
    double want = un_shape_shadow(s->ctx, def->shape, def->velocity, s->def->domain.size);
    return found > 0 && want > 0 ? un_clamp(want / found, SHARE_MIN, SHARE_MAX) : 1;
}

/* Share of a half cell within which emitted particles are placed: as in liquid that is there from
 * the start (fill.c). At 0.8 jets are uneven and jostle. */
#define STREAM_JITTER 0.5

un_status un_particles_emit(un_sources *s, un_particles *p, double time, double dt,
                            un_particles_settle *settle, void *arg)
{
    for (int32_t n = 0; n < s->def->source_count; n++) {
        const un_source *source = &s->def->sources[n];
        un_emission *e = &s->emission[n];
        if (source->kind != UN_SOURCE_EMITTER || !un_source_active(source, time)) continue;
        un_seed_def def = {.grid = s->grid,
                           .shape = source->shape,
                           .walls = s->walls,
                           .velocity = source->velocity,
                           .stream = (uint64_t)(n + 1) * 16,
                           .jitter = STREAM_JITTER * fmin(s->def->solver.sheets, 1),
                           .emitting = e->started};
        if (!(e->share > 0)) e->share = stream_share(s, &def);
        def.share = e->share;
        if (e->started) {
            def.step = un_scale(source->velocity, dt);
            e->shift = un_add(e->shift, def.step);
            def.shift = e->shift;
        }
        int32_t kept = p->count;
        double volume;
        UN_TRY(un_particles_seed(s->ctx, p, &def, &volume));
        s->ledger.in += volume;
        UN_TRY(un_particles_give_matter(s, p, kept, &source->matter));
        for (int32_t q = kept; q < p->count; q++) {
            bool keep = true;
            un_vec3 from = un_sources_came_from(s, un_particle_position(p, q), def.step);
            UN_TRY(settle(arg, q, from, !e->started, &keep));
            if (keep)
                un_particle_copy(p, kept++, q);
            else
                s->ledger.in -= p->volume[q];
        }
        p->count = kept;
        e->started = true;
    }
    return UN_OK;
}
