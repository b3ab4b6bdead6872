/* Emitters, drains and open sides. */
#include "method/sources.h"

typedef struct keep_args {
    const un_sources *s;
    un_particles *particles;
    uint8_t *keep;
    double time;
} keep_args;

static bool source_active(const un_source *source, double time)
{
    return time >= source->from && time <= source->to;
}

static bool in_domain(const un_sources *s, un_vec3 x)
{
    un_vec3 size = s->def->domain.size;
    return x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= size.x && x.y <= size.y && x.z <= size.z;
}

static void sort_out(void *arg, int64_t begin, int64_t end)
{
    keep_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        a->keep[q] = in_domain(a->s, x);
        for (int32_t n = 0; n < a->s->def->source_count; n++) {
            const un_source *source = &a->s->def->sources[n];
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

un_status un_sources_remove(un_sources *s, un_arena *arena, un_particles *particles, double time)
{
    bool any_open = false;
    for (int side = 0; side < 6; side++) any_open |= s->def->domain.open[side];
    if (!any_open && s->def->source_count == 0) return UN_OK;
    keep_args a = {.s = s, .particles = particles, .time = time};
    a.keep = un_arena_alloc(arena, (size_t)particles->count + 1, 1);
    if (!a.keep) return UN_ERROR_MEMORY;
    un_parallel_for(s->ctx, particles->count, 4096, sort_out, &a);
    s->volume_out += un_particles_filter(particles, a.keep);
    return UN_OK;
}

un_status un_sources_give_matter(un_sources *s, un_particles *p, int32_t first,
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

/* Out of walls nothing comes: a stream that starts there must be pushed. */
static un_vec3 came_from(const un_sources *s, un_vec3 x, un_vec3 step)
{
    un_vec3 from = un_sub(x, step);
    return in_domain(s, from) && un_walls_distance_exact(s->walls, from) > 0 ? from : x;
}

un_status un_sources_emit(un_sources *s, un_particles *p, double time, double dt,
                          un_sources_settle *settle, void *arg)
{
    for (int32_t n = 0; n < s->def->source_count; n++) {
        const un_source *source = &s->def->sources[n];
        un_emitter *e = &s->emitters[n];
        if (source->kind != UN_SOURCE_EMITTER || !source_active(source, time)) continue;
        un_seed_def def = {.grid = s->grid,
                           .shape = source->shape,
                           .walls = s->walls,
                           .velocity = source->velocity,
                           .stream = (uint64_t)(n + 1) * 16,
                           .emitting = e->started};
        if (e->started) {
            def.step = un_scale(source->velocity, dt);
            e->shift = un_add(e->shift, def.step);
            def.shift = e->shift;
        }
        int32_t kept = p->count;
        double volume;
        UN_TRY(un_particles_seed(s->ctx, p, &def, &volume));
        s->volume_in += volume;
        UN_TRY(un_sources_give_matter(s, p, kept, &source->matter));
        for (int32_t q = kept; q < p->count; q++) {
            bool keep = true;
            un_vec3 x = un_particle_position(p, q);
            UN_TRY(settle(arg, q, came_from(s, x, def.step), !e->started, &keep));
            if (keep)
                un_particle_copy(p, kept++, q);
            else
                s->volume_in -= p->volume[q];
        }
        p->count = kept;
        e->started = true;
    }
    return UN_OK;
}

un_status un_sources_init(un_sources *s, un_context *ctx, const un_scene_def *def,
                          const un_grid *grid, const un_walls *walls)
{
    *s = (un_sources){.ctx = ctx, .def = def, .grid = grid, .walls = walls};
    s->emitters = un_alloc_zero(ctx, (size_t)def->source_count + 1, sizeof *s->emitters);
    return s->emitters ? UN_OK : UN_ERROR_MEMORY;
}

void un_sources_free(un_sources *s)
{
    if (s->ctx) un_free(s->ctx, s->emitters);
    *s = (un_sources){0};
}
