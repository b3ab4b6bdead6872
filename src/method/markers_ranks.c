/* Markers on several ranks, between resizing and sorting: what is removed, what is emitted; and
 * their sums. Particles are known by the numbers that they have among those of all ranks. */
#include "method/core.h"

#include <stdlib.h>

/* ---- sources ---- */

typedef struct gone {
    uint32_t id;
    float volume;
} gone;

static int by_id(const void *a, const void *b)
{
    uint32_t i = ((const gone *)a)->id, j = ((const gone *)b)->id;
    return (i > j) - (i < j);
}

/* How many of those that are gone came before. */
static int64_t gone_before(const gone *all, int64_t count, uint32_t id)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (all[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

un_status un_core_remove_ranks(un_core *core, un_markers *markers)
{
    un_context *ctx = core->ctx;
    un_sources *sources = &core->sources;
    un_particle_share *s = markers->share;
    un_particles *p = &markers->particles;
    size_t room = (size_t)p->count + 1;
    if (!un_sources_any(sources)) return UN_OK;
    uint8_t *keep = un_arena_alloc(&core->arena, room, 1);
    gone *mine = un_arena_alloc(&core->arena, room, sizeof *mine), *all = NULL;
    int64_t count = 0, all_count = 0;
    int32_t kept = 0;
    UN_TRY(un_ranks_agree(ctx, keep && mine ? UN_OK : UN_ERROR_MEMORY));
    un_particles_sort_out(sources, keep, p, core->time);
    for (int32_t q = 0; q < p->count; q++)
        if (!keep[q]) mine[count++] = (gone){s->id[q], p->volume[q]};
    UN_TRY(un_ranks_list(ctx, mine, count, sizeof *mine, (void **)&all, &all_count));
    if (all_count > 0) qsort(all, (size_t)all_count, sizeof *all, by_id);
    double removed = 0; /* in the order of one rank */
    for (int64_t k = 0; k < all_count; k++) removed += all[k].volume;
    sources->ledger.out += removed;
    for (int32_t q = 0; q < p->count; q++)
        if (keep[q]) s->id[kept++] = s->id[q] - (uint32_t)gone_before(all, all_count, s->id[q]);
    s->id_total -= all_count;
    un_particles_filter(p, keep);
    un_free(ctx, all);
    un_arena_reset(&core->arena);
    return UN_OK;
}

/* All have emitted the same particles, from `first` on. */
static un_status adopt(un_core *core, un_markers *markers, int32_t first)
{
    un_particle_share *s = markers->share;
    un_particles *p = &markers->particles;
    int64_t count = p->count - first, rank = un_rank(core->ctx);
    int64_t ranks = un_rank_count(core->ctx);
    int64_t begin = count * rank / ranks, end = count * (rank + 1) / ranks;
    UN_TRY(un_array_reserve(core->ctx, (void **)&s->id, &s->capacity_id,
                            (size_t)(first + end - begin) + 1, sizeof *s->id));
    for (int64_t k = begin; k < end; k++) {
        if (begin > 0) un_particle_copy(p, first + k - begin, first + k);
        s->id[first + k - begin] = (uint32_t)(s->id_total + k);
    }
    p->count = first + (int32_t)(end - begin);
    s->id_total += count;
    return UN_OK;
}

/* What becomes of a particle depends on the level set where it comes from, which one rank knows: so
 * they are emitted twice, the first time to ask. */
typedef struct emitting {
    un_core *core;
    const un_emit_ranks *how;
    un_vec3 *from;
    double *phi;
    int64_t count;
    size_t capacity;
} emitting;

static un_status note_place(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    emitting *e = arg;
    (void)q, (void)first_filling;
    *keep = false;
    UN_TRY(un_array_reserve(e->core->ctx, (void **)&e->from, &e->capacity, (size_t)e->count + 1,
                            sizeof *e->from));
    e->from[e->count++] = from;
    return UN_OK;
}

static un_status settle(void *arg, int32_t q, un_vec3 from, bool first_filling, bool *keep)
{
    emitting *e = arg;
    (void)from;
    *keep = e->how->settle(e->how->arg, q, e->phi[e->count++], first_filling);
    return UN_OK;
}

static un_status note_places(emitting *e, un_particles *p, un_emission *before, double dt)
{
    un_sources *sources = &e->core->sources;
    size_t bytes = (size_t)e->core->def->source_count * sizeof *before;
    int32_t first = p->count;
    un_ledger ledger = sources->ledger;
    memcpy(before, sources->emission, bytes);
    UN_TRY(un_particles_emit(sources, p, e->core->time, dt, note_place, e));
    memcpy(sources->emission, before, bytes);
    sources->ledger = ledger;
    p->count = first;
    UN_ALLOC(e->core->ctx, e->phi, e->count + 1);
    return UN_OK;
}

static un_status emit_all(emitting *e, un_markers *markers, un_emission *before, double dt)
{
    un_core *core = e->core;
    un_particles *p = &markers->particles;
    int32_t first = p->count;
    UN_TRY(un_ranks_agree(core->ctx, note_places(e, p, before, dt)));
    UN_TRY(e->how->levels(e->how->arg, e->from, e->phi, e->count));
    un_ranks_add(core->ctx, e->phi, e->count);
    e->count = 0;
    un_status status = un_particles_emit(&core->sources, p, core->time, dt, settle, e);
    return status == UN_OK ? adopt(core, markers, first) : status;
}

un_status un_core_emit_ranks(un_core *core, un_markers *markers, double dt,
                             const un_emit_ranks *how)
{
    un_context *ctx = core->ctx;
    emitting e = {.core = core, .how = how};
    if (core->def->source_count == 0) return UN_OK;
    un_emission *before = un_alloc(ctx, (size_t)core->def->source_count, sizeof *before);
    UN_TRY(un_ranks_agree(ctx, before ? UN_OK : UN_ERROR_MEMORY));
    un_status status = emit_all(&e, markers, before, dt);
    un_free(ctx, before);
    un_free(ctx, e.from);
    un_free(ctx, e.phi);
    return un_ranks_agree(ctx, status);
}

/* ---- sums ---- */

typedef struct sum_args {
    const un_core *core;
    const un_markers *markers;
} sum_args;

static void add_sums(void *arg, int64_t begin, int64_t end, double *sums)
{
    const sum_args *a = arg;
    const un_particle_share *s = a->markers->share;
    int64_t off = s->begin - s->own.begin;
    un_particles_add_sums(&a->markers->particles, begin + off, end + off, a->core->def->gravity,
                          sums);
}

un_status un_core_measure_ranks(un_core *core, const un_markers *markers, un_step *report)
{
    un_context *ctx = core->ctx;
    const un_particle_share *s = markers->share;
    double sums[UN_PARTICLE_SUMS];
    un_particle_sums all;
    sum_args args = {core, markers};
    un_particles own = un_particles_part(&markers->particles, un_markers_own(markers));
    un_ranks_sums(ctx, s->own, UN_PARTICLE_SUMS, add_sums, &args, sums);
    double fastest = un_ranks_max(ctx, un_particles_fastest(ctx, &own));
    un_particles_set_sums(&all, sums, fastest, own.density ? 1 : core->def->fluid.density);
    return un_core_measure_sums(core, report, &all, s->own.total, markers->ballistic);
}
