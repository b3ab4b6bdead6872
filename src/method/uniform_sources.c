/* Emitters, drains and open sides of method `uniform`. */
#include "method/uniform.h"

typedef struct keep_args {
    un_uniform *s;
    uint8_t *keep;
    double time;
} keep_args;

static bool source_active(const un_source *source, double time)
{
    return time >= source->from && time <= source->to;
}

/* Out of the domain, or in an open drain: gone. In an emitter: carried along. */
static void sort_out(void *arg, int64_t begin, int64_t end)
{
    keep_args *a = arg;
    un_uniform *s = a->s;
    un_particles *p = &s->particles;
    un_vec3 size = s->grid.size;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        a->keep[q] =
            x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= size.x && x.y <= size.y && x.z <= size.z;
        for (int32_t n = 0; n < s->def->source_count; n++) {
            const un_source *source = &s->def->sources[n];
            if (!source_active(source, a->time)) continue;
            if (un_shape_distance(source->shape, x) >= 0) continue;
            if (source->kind == UN_SOURCE_DRAIN) {
                a->keep[q] = 0;
            } else {
                p->v[0][q] = source->velocity.x;
                p->v[1][q] = source->velocity.y;
                p->v[2][q] = source->velocity.z;
            }
        }
    }
}

un_status un_uniform_remove(un_uniform *s)
{
    bool any_open = false;
    for (int side = 0; side < 6; side++) any_open |= s->def->domain.open[side];
    if (!any_open && s->def->source_count == 0) return UN_OK;
    keep_args a = {.s = s, .time = s->time};
    a.keep = un_arena_alloc(&s->arena, (size_t)s->particles.count + 1, 1);
    if (!a.keep) return UN_ERROR_MEMORY;
    un_parallel_for(s->ctx, s->particles.count, 4096, sort_out, &a);
    s->volume_out += un_particles_filter(&s->particles, a.keep);
    un_arena_reset(&s->arena);
    return UN_OK;
}

/* New particles from `first` on that appeared inside the liquid push it apart: their volume becomes
 * a source in the next projection. Those of a first filling are taken back instead, the place is
 * taken. */
static un_status settle_emission(un_uniform *s, int32_t first, bool first_filling)
{
    un_particles *p = &s->particles;
    int32_t kept = first;
    for (int32_t q = first; q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q);
        int64_t c = un_grid_stencil(&s->grid, x, 0, 0, 0).base;
        if (s->phi[c] < 0 && first_filling) {
            s->volume_in -= p->volume[q];
            continue;
        }
        if (s->phi[c] < 0) {
            size_t n = (size_t)s->source_count + 1;
            UN_TRY(un_array_reserve(s->ctx, (void **)&s->source_cell, &s->capacity_source_cell, n,
                                    sizeof *s->source_cell));
            UN_TRY(un_array_reserve(s->ctx, (void **)&s->source_volume, &s->capacity_source_volume,
                                    n, sizeof *s->source_volume));
            s->source_cell[s->source_count] = (int32_t)c;
            s->source_volume[s->source_count++] = p->volume[q];
        }
        for (int a = 0; a < 3; a++) {
            p->x[a][kept] = p->x[a][q];
            p->v[a][kept] = p->v[a][q];
        }
        p->volume[kept] = p->volume[q];
        p->flags[kept++] = p->flags[q];
    }
    p->count = kept;
    return UN_OK;
}

static un_seed_def seed_def(const un_uniform *s, const un_source *source)
{
    return (un_seed_def){
        .grid = &s->grid, .shape = source->shape, .walls = s->walls, .velocity = source->velocity};
}

un_status un_uniform_emit(un_uniform *s, double dt)
{
    for (int32_t n = 0; n < s->def->source_count; n++) {
        const un_source *source = &s->def->sources[n];
        un_emitter *e = &s->emitters[n];
        if (source->kind != UN_SOURCE_EMITTER || !source_active(source, s->time)) continue;
        un_seed_def def = seed_def(s, source);
        def.stream = (uint64_t)(n + 1) * 16;
        def.emitting = e->started;
        if (e->started) {
            def.step = un_scale(source->velocity, dt);
            e->shift = un_add(e->shift, def.step);
            def.shift = e->shift;
        }
        int32_t first = s->particles.count;
        double volume;
        UN_TRY(un_particles_seed(s->ctx, &s->particles, &def, &volume));
        s->volume_in += volume;
        UN_TRY(settle_emission(s, first, !e->started));
        e->started = true;
    }
    return UN_OK;
}
