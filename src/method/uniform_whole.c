/* What method `uniform` shows on several ranks: rank 0 gets what the others have, and shows it as
 * one rank would. */
#include "method/uniform.h"

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
    return un_slabs_collect(s->ranks.slabs, fields, count);
}

un_status un_uniform_gather(void *state, unsigned what)
{
    un_uniform *s = state;
    un_uniform_ranks *r = &s->ranks;
    if (!r->slabs) return UN_OK;
    if (what & UN_SHOW_STATE) what |= UN_SHOW_LEVEL; /* for its hash */
    if (what & UN_SHOW_SURFACE) what |= UN_SHOW_ALL;
    if (what & UN_SHOW_FRONTS) what |= UN_SHOW_LEVEL | UN_SHOW_PARTICLES;
    what &= ~r->has;
    UN_TRY(gather_fields(s, what));
    if (what & UN_SHOW_PARTICLES) UN_TRY(un_uniform_ranks_gather(s));
    r->has |= what;
    return UN_OK;
}

/* ---- windows of all particles, and of cells ---- */

static un_status list_shown(un_uniform *s)
{
    if (s->ranks.shown.id) return UN_OK;
    return un_uniform_ranks_list_shown(s);
}

static bool window_of(const un_uniform *s, const void *array, size_t size, int64_t begin,
                      int64_t end, void *out)
{
    return un_ranks_listed_window(s->core.ctx, &s->ranks.shown, array, size, begin, end, out);
}

static un_status window(void *arg, unsigned fields, int64_t begin, int64_t end, un_particles *view)
{
    un_uniform *s = arg;
    un_particles *w = &s->ranks.window;
    const un_particles *p = &s->particles;
    bool able = true;
    if (un_rank(s->core.ctx) == 0) UN_TRY(un_particles_reserve(s->core.ctx, w, end - begin));
    for (int a = 0; a < 3 && fields & UN_PLACES; a++)
        able = able && window_of(s, p->x[a], sizeof *p->x[a], begin, end, w->x[a]);
    for (int a = 0; a < 3 && fields & UN_VELOCITIES; a++)
        able = able && window_of(s, p->v[a], sizeof *p->v[a], begin, end, w->v[a]);
    if (fields & UN_VOLUMES)
        able = able && window_of(s, p->volume, sizeof *p->volume, begin, end, w->volume);
    if (fields & UN_FLAGS) able = able && window_of(s, p->flags, 1, begin, end, w->flags);
    if (fields & UN_MATTER)
        able = able && window_of(s, p->density, 4, begin, end, w->density) &&
               window_of(s, p->viscosity, 4, begin, end, w->viscosity);
    w->lead = p->lead;
    w->count = (int32_t)(end - begin);
    *view = *w;
    return able ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_uniform_stream(void *state, un_particle_stream *stream)
{
    un_uniform *s = state;
    UN_TRY(list_shown(s));
    *stream = (un_particle_stream){s->ranks.total, s, window, s->particles.mixed, false};
    return UN_OK;
}

static un_status need_fetched(un_uniform *s, const un_section *section, int64_t count)
{
    return un_array_need(s->core.ctx, &s->ranks.fetched, &s->ranks.fetched_room,
                         (size_t)count * (size_t)section->width, 1);
}

static un_status fetch_particles(void *arg, const un_section *section, int64_t begin, int64_t end,
                                 const void **data)
{
    un_uniform *s = arg;
    UN_TRY(need_fetched(s, section, end - begin));
    *data = s->ranks.fetched;
    return window_of(s, section->data, (size_t)section->width, begin, end, s->ranks.fetched)
               ? UN_OK
               : UN_ERROR_MEMORY;
}

static un_status fetch_cells(void *arg, const un_section *section, int64_t begin, int64_t end,
                             const void **data)
{
    un_uniform *s = arg;
    un_part own = un_grid_own_cells(&s->core.grid, 0);
    UN_TRY(need_fetched(s, section, end - begin));
    *data = s->ranks.fetched;
    un_ranks_window(s->core.ctx, (un_range){own.begin, own.end, s->core.grid.cell_count},
                    section->data, (size_t)section->width, begin, end, s->ranks.fetched);
    return UN_OK;
}

un_status un_uniform_fetch_particles(const un_uniform *s, un_state *out, int32_t first)
{
    if (!s->ranks.slabs) return UN_OK;
    UN_TRY(list_shown((un_uniform *)s));
    un_state_fetch_from(out, first, s->ranks.total, fetch_particles, (void *)s);
    return UN_OK;
}

void un_uniform_fetch_cells(const un_uniform *s, un_state *out, int32_t first)
{
    if (s->ranks.slabs)
        un_state_fetch_from(out, first, s->core.grid.cell_count, fetch_cells, (void *)s);
}

void un_uniform_whole_forget(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    if (!r->slabs) return;
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
}

const un_particles *un_uniform_shown(const un_uniform *s)
{
    return s->ranks.slabs ? &s->ranks.whole : &s->particles;
}

/* The bins of all particles: they are sorted, this finds the cells' ranges. */
un_status un_uniform_whole_bins(un_uniform *s, const un_bins **bins)
{
    un_uniform_ranks *r = &s->ranks;
    *bins = s->bins;
    if (!r->slabs) return UN_OK;
    if (!r->whole_bins) {
        UN_TRY(un_bins_create(s->core.ctx, &s->core.grid, &r->whole_bins));
        UN_TRY(un_bins_sort(r->whole_bins, &s->core.arena, &r->whole));
        un_arena_reset(&s->core.arena);
    }
    *bins = r->whole_bins;
    return UN_OK;
}
