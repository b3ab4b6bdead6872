/* What method `uniform` shows on several ranks: rank 0 gets what the others have, and shows it as
 * one rank would. */
#include "method/uniform.h"

/* Puts what arrived on rank 0 into its place. */
static void place_arrived(un_uniform_ranks *r)
{
    const un_particles *in = &r->arrived;
    un_particles *to = &r->whole;
    for (int32_t i = 0; i < in->count; i++) {
        uint32_t q = r->arrived_id[i];
        un_particle_set_position(to, q, un_particle_position(in, i));
        un_particle_set_velocity(to, q, un_particle_velocity(in, i));
        to->volume[q] = in->volume[i];
        to->flags[q] = in->flags[i];
        to->fall[q] = in->fall[i];
        if (to->mixed) to->density[q] = in->density[i];
        if (to->mixed) to->viscosity[q] = in->viscosity[i];
    }
}

/* In rounds, so that rank 0 needs little room beside that of all particles. */
#define ROUNDS 16

static un_status gather_particles(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    int32_t *order, count, next = 0;
    UN_TRY(un_uniform_list_own(s, &order, &count));
    uint32_t *id = un_arena_alloc(&s->core.arena, (size_t)s->particles.count + 1, sizeof *id);
    if (!id) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < count; i++) id[order[i]] = r->id[i];
    if (un_rank(ctx) == 0) UN_TRY(un_particles_reserve(ctx, &r->whole, un_max64(r->total, 1)));
    for (int64_t k = 1; k <= ROUNDS; k++) {
        int32_t first = next;
        un_uniform_list l;
        while (next < count && r->id[next] < r->total * k / ROUNDS) next++;
        UN_TRY(un_uniform_begin_list(s, &l, next - first));
        for (int32_t i = first; i < next; i++) un_uniform_add_to_list(&l, order[i], 0);
        UN_TRY(un_uniform_send_list(s, &l, id));
        place_arrived(r);
    }
    if (un_rank(ctx) == 0) r->whole.count = (int32_t)r->total;
    r->whole.lead = s->particles.lead;
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

static un_status gather_fields(un_uniform *s, unsigned what)
{
    const un_pressure *pr = s->pressure;
    un_layered fields[7];
    int32_t count = 0;
    if (what & UN_SHOW_LEVEL) fields[count++] = (un_layered){s->phi, sizeof *s->phi};
    if (what & UN_SHOW_PRESSURE) {
        fields[count++] = (un_layered){pr->p, sizeof *pr->p};
        fields[count++] = (un_layered){pr->index, sizeof *pr->index};
        if (s->thick.any) fields[count++] = (un_layered){s->thick.p, sizeof *s->thick.p};
    }
    for (int a = 0; a < s->core.grid.dim && what & UN_SHOW_VELOCITY; a++)
        fields[count++] = (un_layered){s->u[a], sizeof *s->u[a]};
    return un_bars_collect(s->ranks.bars, fields, count);
}

static un_status list_shown(un_uniform *s);

/* Probes that ask for particles: all ranks find them together. */
static un_status probe_one(un_uniform *s, const un_probe *p, double *value)
{
    const un_core *c = &s->core;
    if (p->kind == UN_PROBE_FLUX) {
        *value = un_uniform_flux(s, p);
        return UN_OK;
    }
    UN_TRY(list_shown(s));
    return un_particles_wet_listed(c->ctx, &s->particles, &s->ranks.shown, c->walls,
                                   c->def->gravity, p->axis, p->sign, value);
}

static un_status probe_particles(un_uniform *s, bool fronts)
{
    const un_scene_def *def = s->core.def;
    un_uniform_ranks *r = &s->ranks;
    size_t count = 2 * (size_t)def->probe_count + 1;
    if (!r->probed) r->probed = un_alloc(s->core.ctx, count, sizeof *r->probed);
    UN_TRY(un_ranks_agree(s->core.ctx, r->probed ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t i = 0; i < def->probe_count; i++) {
        const un_probe *p = &def->probes[i];
        bool front = fronts && p->kind == UN_PROBE_FRONT;
        if (p->kind == UN_PROBE_FLUX || p->kind == UN_PROBE_WET || front)
            UN_TRY(probe_one(s, p, &r->probed[front ? def->probe_count + i : i]));
    }
    r->has_probed = true;
    return UN_OK;
}

un_status un_uniform_gather(void *state, unsigned what)
{
    un_uniform *s = state;
    un_uniform_ranks *r = &s->ranks;
    if (!r->bars) return UN_OK;
    if (what & UN_SHOW_FRONTS) what |= UN_SHOW_LEVEL;
    if (what & (UN_SHOW_PROBES | UN_SHOW_FRONTS)) {
        UN_TRY(probe_particles(s, what & UN_SHOW_FRONTS));
        what &= ~(unsigned)UN_SHOW_PARTICLES; /* they were for probes */
    }
    if (what & UN_SHOW_SURFACE && s->core.grid.dim == 2) what |= UN_SHOW_ALL; /* else shared */
    what &= ~r->has;
    UN_TRY(gather_fields(s, what));
    if (what & UN_SHOW_PARTICLES) UN_TRY(gather_particles(s));
    r->has |= what;
    return UN_OK;
}

/* ---- windows of all particles, and of cells ---- */

/* Own particles in order. */
static un_status copy_shown(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    int32_t *order, count;
    UN_TRY(un_uniform_list_own(s, &order, &count));
    UN_TRY(un_array_need(ctx, (void **)&r->shown_index, &r->shown_room, (size_t)count + 1,
                         sizeof *order));
    UN_TRY(un_array_need(ctx, (void **)&r->shown_id, &r->shown_id_room, (size_t)count + 1,
                         sizeof *r->id));
    memcpy(r->shown_index, order, (size_t)count * sizeof *order);
    memcpy(r->shown_id, r->id, (size_t)count * sizeof *r->id);
    r->shown = (un_listed){r->shown_id, r->shown_index, count};
    return UN_OK;
}

static un_status list_shown(un_uniform *s)
{
    if (s->ranks.shown.id) return UN_OK;
    un_status status = un_ranks_agree(s->core.ctx, copy_shown(s));
    if (status != UN_OK) s->ranks.shown = (un_listed){0};
    un_arena_reset(&s->core.arena);
    return status;
}

static un_status window_of(const un_uniform *s, const void *array, size_t size, un_part wanted,
                           void *out)
{
    return un_ranks_listed_windows(s->core.ctx, &s->ranks.shown, array, size, wanted, out);
}

static un_status window(void *arg, unsigned fields, int64_t begin, int64_t end, un_particles *view)
{
    un_uniform *s = arg;
    un_particles *w = &s->ranks.window;
    const un_particles *p = &s->particles;
    un_part part = {begin, end};
    UN_TRY(un_ranks_agree(s->core.ctx, un_particles_reserve(s->core.ctx, w, end - begin)));
    for (int a = 0; a < 3 && fields & UN_PLACES; a++)
        UN_TRY(window_of(s, p->x[a], sizeof *p->x[a], part, w->x[a]));
    for (int a = 0; a < 3 && fields & UN_VELOCITIES; a++)
        UN_TRY(window_of(s, p->v[a], sizeof *p->v[a], part, w->v[a]));
    if (fields & UN_VOLUMES) UN_TRY(window_of(s, p->volume, sizeof *p->volume, part, w->volume));
    if (fields & UN_FLAGS) UN_TRY(window_of(s, p->flags, 1, part, w->flags));
    if (fields & UN_MATTER) {
        UN_TRY(window_of(s, p->density, sizeof *p->density, part, w->density));
        UN_TRY(window_of(s, p->viscosity, sizeof *p->viscosity, part, w->viscosity));
    }
    w->lead = p->lead;
    w->count = (int32_t)(end - begin);
    *view = *w;
    return UN_OK;
}

/* Bars have particles from all over the order, so each rank gets its part from the others. */
un_status un_uniform_stream(void *state, un_particle_stream *stream)
{
    un_uniform *s = state;
    UN_TRY(list_shown(s));
    *stream = (un_particle_stream){.count = s->ranks.total,
                                   .part = un_ranks_even(s->core.ctx, s->ranks.total),
                                   .arg = s,
                                   .window = window,
                                   .mixed = s->particles.mixed};
    return UN_OK;
}

static un_status need_fetched(un_uniform *s, const un_section *section, int64_t count)
{
    return un_array_need(s->core.ctx, &s->ranks.fetched, &s->ranks.fetched_room,
                         (size_t)count * (size_t)section->width + 1, 1);
}

static un_status fetch_particles(void *arg, const un_section *section, int64_t begin, int64_t end,
                                 const void **data)
{
    un_uniform *s = arg;
    UN_TRY(un_ranks_agree(s->core.ctx, need_fetched(s, section, end - begin)));
    *data = s->ranks.fetched;
    return window_of(s, section->data, (size_t)section->width, (un_part){begin, end},
                     s->ranks.fetched);
}

static un_status fetch_cells(void *arg, const un_section *section, int64_t begin, int64_t end,
                             const void **data)
{
    un_uniform *s = arg;
    UN_TRY(un_ranks_agree(s->core.ctx, need_fetched(s, section, end - begin)));
    *data = s->ranks.fetched;
    return un_bars_windows(s->ranks.bars, section->data, (size_t)section->width,
                           (un_part){begin, end}, s->ranks.fetched);
}

un_status un_uniform_fetch_particles(const un_uniform *s, un_state *out, int32_t first)
{
    if (!s->ranks.bars) return UN_OK;
    UN_TRY(list_shown((un_uniform *)s));
    un_state_fetch_from(out, first, s->ranks.total, fetch_particles, (void *)s);
    return UN_OK;
}

void un_uniform_fetch_cells(const un_uniform *s, un_state *out, int32_t first)
{
    if (s->ranks.bars)
        un_state_fetch_from(out, first, s->core.grid.cell_count, fetch_cells, (void *)s);
}

void un_uniform_whole_forget(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    if (!r->bars) return;
    un_particles_free(s->core.ctx, &r->window);
    un_free(s->core.ctx, r->fetched);
    r->fetched = NULL;
    r->fetched_room = 0;
    un_free(s->core.ctx, r->shown_index);
    un_free(s->core.ctx, r->shown_id);
    r->shown_index = NULL;
    r->shown_id = NULL;
    r->shown_room = r->shown_id_room = 0;
    r->shown = (un_listed){0};
    un_particles_free(s->core.ctx, &r->whole);
    un_bins_destroy(r->whole_bins);
    r->whole_bins = NULL;
    r->has = 0;
    r->has_probed = false;
}

const un_particles *un_uniform_shown(const un_uniform *s)
{
    return s->ranks.bars ? &s->ranks.whole : &s->particles;
}

/* The bins of all particles: they are sorted, this finds the cells' ranges. */
un_status un_uniform_whole_bins(un_uniform *s, const un_bins **bins)
{
    un_uniform_ranks *r = &s->ranks;
    *bins = s->bins;
    if (!r->bars) return UN_OK;
    if (!r->whole_bins) {
        UN_TRY(un_bins_create(s->core.ctx, &s->core.grid, &r->whole_bins));
        UN_TRY(un_bins_sort(r->whole_bins, &s->core.arena, &r->whole));
        un_arena_reset(&s->core.arena);
    }
    *bins = r->whole_bins;
    return UN_OK;
}
