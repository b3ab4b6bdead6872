/* Sums over the particles of method `uniform`, by bars of the grid: the bits are the same for any
 * number of ranks. */
#include "method/uniform.h"

static un_status sum_sorted(void *bins, int32_t width, un_parallel_values *values, void *arg,
                            double *sums)
{
    un_bins_sums(bins, NULL, width, values, arg, sums);
    return UN_OK;
}

double un_uniform_flux(const un_uniform *s, const un_probe *p)
{
    double flux = 0;
    un_particles_flux_summed(&s->particles, sum_sorted, s->bins, p->at, p->to, p->axis,
                             s->core.grid.h, &flux); /* nothing in it can fail */
    return flux;
}

/* ---- before particles move ---- */

/* Those of each block of this rank, as they lie without copies between them. */
static un_status find_first(un_uniform *s, int32_t **first)
{
    const un_bins *b = s->bins;
    const un_uniform_ranks *r = &s->ranks;
    int64_t before = 0;
    *first = un_arena_alloc(&s->core.arena, (size_t)b->block_count + 1, sizeof **first);
    if (!*first) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < b->block_count; n++) {
        (*first)[b->order[n]] = (int32_t)before;
        if (r->block_owner[n] == un_rank(s->core.ctx))
            before += r->block_first[n + 1] - r->block_first[n];
    }
    return UN_OK;
}

un_status un_uniform_sum_own(void *state, int32_t width, un_parallel_values *values, void *arg,
                             double *sums)
{
    un_uniform *s = state;
    int32_t *first = NULL;
    if (s->ranks.bars) UN_TRY(find_first(s, &first));
    un_bins_sums(s->bins, first, width, values, arg, sums);
    return UN_OK;
}

/* ---- after sorting ---- */

/* What particles are weighed for, after the sums of all. */
enum { BALLISTIC = UN_PARTICLE_SUMS, INSIDE, VOLUME, SUMS };

typedef struct weighing {
    un_uniform *s;
    const uint8_t *thick;
    const un_cling *cling;
} weighing;

/* Marks particles that fly, and adds their number and the volume of those in the liquid. */
static void mark(const weighing *w, int64_t begin, int64_t end, double sums[2])
{
    un_uniform *s = w->s;
    un_transfer_mark_some(&s->particles, s->phi, &s->core.grid, w->thick, w->cling, begin, end,
                          sums);
}

static void weigh(void *arg, int64_t begin, int64_t end, double *sums)
{
    const weighing *w = arg;
    const un_particles *p = &w->s->particles;
    mark(w, begin, end, sums + BALLISTIC);
    un_particles_add_sums(p, begin, end, w->s->core.def->gravity, sums);
    double volume = sums[VOLUME];
    for (int64_t q = begin; q < end; q++) volume += p->volume[q];
    sums[VOLUME] = volume;
}

/* Other ranks' particles, which are their sums' business. */
static void mark_copies(void *arg, int64_t begin, int64_t end)
{
    const weighing *w = arg;
    const un_bins *b = w->s->bins;
    for (int64_t n = begin; n < end; n++) {
        int32_t block = b->coloured[n]; /* any order that lists every block once */
        const int32_t *first = b->begin + (int64_t)b->rank[block] * b->block_cells;
        double sums[2] = {0};
        if (!un_bins_owns(b, block)) mark(w, first[0], first[b->block_cells], sums);
    }
}

void un_uniform_weigh(un_uniform *s, const uint8_t *thick, const un_cling *cling, double *total,
                      double *inside)
{
    weighing w = {s, thick, cling};
    double sums[SUMS];
    if (s->ranks.bars) un_parallel_for(s->core.ctx, s->bins->held_count, 1, mark_copies, &w);
    un_bins_sums(s->bins, NULL, SUMS, weigh, &w, sums);
    memcpy(s->sums, sums, sizeof s->sums);
    s->ballistic = (int64_t)sums[BALLISTIC];
    *inside = sums[INSIDE];
    *total = sums[VOLUME];
}
