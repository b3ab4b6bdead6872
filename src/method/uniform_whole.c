/* What method `uniform` shows on several ranks: rank 0 gets what the others have, and shows it as
 * one rank would. */
#include "method/uniform.h"

static un_status gather_fields(un_uniform *s, unsigned what)
{
    const un_pressure *pr = s->pressure;
    un_layered fields[6];
    int32_t count = 0;
    if (what & UN_SHOW_LEVEL) fields[count++] = (un_layered){s->phi, sizeof *s->phi};
    if (what & UN_SHOW_PRESSURE) {
        fields[count++] = (un_layered){pr->p, sizeof *pr->p};
        fields[count++] = (un_layered){pr->index, sizeof *pr->index};
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
    what &= ~r->has;
    UN_TRY(gather_fields(s, what));
    if (what & UN_SHOW_PARTICLES) UN_TRY(un_uniform_ranks_gather(s));
    r->has |= what;
    return UN_OK;
}

void un_uniform_whole_forget(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    if (!r->slabs) return;
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
