/* Who has what where several ranks share a run of method `uniform`: slabs of layers, made of whole
 * blocks of the bins and cut by work, at the start, again while the liquid moves, and from a copy;
 * and the parts of solids that a rank knows. */
#include "method/uniform.h"

/* ---- solids ---- */

/* Do outputs of rank 0 ask for them? */
static bool shows_walls(const un_scene_def *def)
{
    bool shows = def->output.mesh || (def->output.surface && def->domain.dim == 2);
    for (int32_t i = 0; i < def->probe_count; i++)
        shows |= def->probes[i].kind == UN_PROBE_PRESSURE || def->probes[i].kind == UN_PROBE_FORCE;
    return shows;
}

/* Shares of faces and cells that solids leave open, and what follows from them, serve the cells
 * that a rank computes. Those that move are found for all of the grid in each step; so are thin
 * walls. Rank 0 shows them; the surface's curvature is computed whole. */
static bool needs_all_walls(const un_uniform *s)
{
    const un_scene_def *def = s->core.def;
    return s->core.bodies->moving || s->core.walls->parted || def->fluid.surface_tension > 0 ||
           (shows_walls(def) && un_rank(s->core.ctx) == 0);
}

/* Layers on either side of a slab that stay: a unit, as un_slabs_recut keeps. */
#define KEPT_LAYERS UN_BLOCK

static void forget_far(un_uniform *s)
{
    const un_walls *w = s->core.walls;
    un_layered fields[5] = {{s->normalizer, sizeof *s->normalizer}, {w->volume, sizeof *w->volume}};
    for (int a = 0; a < s->core.grid.dim; a++)
        fields[2 + a] = (un_layered){w->area[a], sizeof *w->area[a]};
    for (int32_t f = 0; f < 2 + s->core.grid.dim; f++)
        un_slabs_forget(s->ranks.slabs, &fields[f], KEPT_LAYERS);
}

/* Of layers that came to this rank. */
static un_status sample_walls(un_uniform *s)
{
    if (needs_all_walls(s)) return UN_OK;
    un_walls_find_fractions(s->core.walls, un_slabs_part(s->ranks.slabs, KEPT_LAYERS));
    return un_colour_normalizer(s->core.ctx, s->normalizer, &s->core.grid, s->core.walls);
}

/* ---- slabs ---- */

/* By layer: its rank, and those that have copies of its particles; -1: none. Only the last slab may
 * have fewer layers than HALO, so there are two of these at most. */
static void find_takers(un_uniform_ranks *r)
{
    int32_t owner = 0, last = un_rank_count(r->slabs->ctx) - 1;
    for (int32_t k = 0; k < r->slabs->layer_count; k++) {
        int32_t *takers = r->takers[k], count = 1;
        while (k >= r->slabs->first[owner + 1]) owner++;
        takers[0] = owner;
        takers[1] = takers[2] = -1;
        for (int32_t n = un_clampi(owner - 2, 0, last); n <= un_clampi(owner + 2, 0, last); n++) {
            un_part wide = un_slabs_part_of(r->slabs, n, UN_UNIFORM_HALO);
            if (n != owner && k >= wide.begin && k < wide.end) takers[count++] = n;
        }
    }
}

/* Work by units of layers, in the arena, so far without particles. */
static un_status begin_work(un_uniform *s, double **work)
{
    const un_grid *g = &s->core.grid;
    int32_t layers = un_grid_layer_count(g), units = (layers + UN_BLOCK - 1) / UN_BLOCK;
    double cells = (double)g->stride[g->dim - 1];
    *work = un_arena_alloc(&s->core.arena, (size_t)units, sizeof **work);
    if (!*work) return UN_ERROR_MEMORY;
    for (int32_t u = 0; u < units; u++)
        (*work)[u] =
            UN_UNIFORM_CELL_WORK * cells * (double)un_min64(UN_BLOCK, layers - u * UN_BLOCK);
    return UN_OK;
}

/* By place along the curve. */
static void find_owners(un_uniform *s)
{
    const un_bins *b = s->bins;
    un_uniform_ranks *r = &s->ranks;
    for (int32_t n = 0; n < b->block_count; n++)
        r->block_owner[n] = r->takers[un_bins_layers(b, b->order[n]).begin][0];
}

/* After slabs were cut: who has what, and what this rank has no more to do with. */
static un_status settle(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    un_part held = un_slabs_part(r->slabs, UN_UNIFORM_HALO);
    find_takers(r);
    UN_TRY(un_bins_hold(s->bins, held));
    if (!r->block_owner) UN_ALLOC(s->core.ctx, r->block_owner, s->bins->block_count);
    if (!r->block_first) UN_ALLOC(s->core.ctx, r->block_first, s->bins->block_count + 1);
    find_owners(s);
    if (!needs_all_walls(s)) forget_far(s);
    return UN_OK;
}

/* By work; the caller settles them. */
static un_status create_slabs(un_uniform *s, const double *work)
{
    un_context *ctx = s->core.ctx;
    const un_grid *g = &s->core.grid;
    int32_t layers = un_grid_layer_count(g), units = (layers + UN_BLOCK - 1) / UN_BLOCK;
    int64_t cells = g->stride[g->dim - 1];
    UN_ALLOC(ctx, s->ranks.takers, layers);
    UN_TRY(un_slabs_create(ctx, layers, cells, UN_BLOCK, work, &s->ranks.slabs));
    if (un_rank_count(ctx) > units)
        un_log(ctx, UN_LOG_WARNING,
               "%d processes are more than this grid has work for: %d layers of cells in blocks of "
               "%d; %d do nothing",
               un_rank_count(ctx), layers, UN_BLOCK, un_rank_count(ctx) - units);
    un_arena_reset(&s->core.arena);
    s->core.grid.slabs = s->ranks.slabs;
    s->ranks.counted = false;
    return UN_OK;
}

void un_uniform_keep_own(un_uniform *s, int32_t first)
{
    un_particles *p = &s->particles;
    int32_t kept = first, me = un_rank(s->core.ctx);
    for (int32_t q = first; q < p->count; q++) {
        if (s->ranks.takers[un_uniform_layer_of(s, p, q)][0] != me) continue;
        s->ranks.id[kept] = s->ranks.id[q];
        if (kept != q) un_particle_copy(p, kept, q);
        kept++;
    }
    p->count = kept;
}

un_status un_uniform_need_ids(un_uniform *s, int64_t count)
{
    return un_array_reserve(s->core.ctx, (void **)&s->ranks.id, &s->ranks.id_room,
                            (size_t)count + 1, sizeof *s->ranks.id);
}

un_status un_uniform_share_out(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    un_particles *p = &s->particles;
    double *work;
    if (un_rank_count(ctx) == 1) return UN_OK;
    UN_TRY(begin_work(s, &work));
    for (int32_t q = 0; q < p->count; q++) work[un_uniform_layer_of(s, p, q) / UN_BLOCK] += 1;
    UN_TRY(create_slabs(s, work));
    UN_TRY(settle(s));
    s->ranks.id_end = (uint32_t)p->count;
    UN_TRY(un_uniform_need_ids(s, p->count));
    for (int32_t q = 0; q < p->count; q++) s->ranks.id[q] = (uint32_t)q;
    un_uniform_keep_own(s, 0);
    return un_particles_trim(ctx, p);
}

un_status un_uniform_ranks_keep(un_uniform *s, un_state *out)
{
    un_uniform_ranks *r = &s->ranks;
    int32_t *order, count, first = out->count;
    UN_TRY(un_save_particles(out, &s->particles, NULL));
    UN_TRY(un_uniform_list_own(s, &order, &count));
    un_state_pick(out, first, order, count);
    UN_TRY(un_state_add(out, "ranks.id", r->id, count, 4));
    UN_TRY(un_state_add_integer(out, "ranks.total", r->total));
    return un_state_add(out, "ranks.first", r->slabs->first, un_rank_count(s->core.ctx) + 1, 4);
}

un_status un_uniform_ranks_take(un_uniform *s, const un_state *in)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    double *work;
    int64_t total;
    UN_TRY(begin_work(s, &work));
    UN_TRY(create_slabs(s, work));
    UN_TRY(un_state_take(in, "ranks.first", r->slabs->first, un_rank_count(ctx) + 1, 4));
    UN_TRY(un_state_integer(in, "ranks.total", 0, INT32_MAX, &total));
    UN_TRY(sample_walls(s)); /* slabs may have been cut in the step that is repeated */
    UN_TRY(settle(s));
    UN_TRY(un_uniform_need_ids(s, s->particles.count));
    r->id_end = (uint32_t)total;
    return un_state_take(in, "ranks.id", r->id, s->particles.count, 4);
}

/* Planes follow the layers, so each rank's are a range; particles that stray into another rank's
 * layers go there when they are sorted. */
static un_status seed_own(un_uniform *s, const un_seed_def *def, const double *counts,
                          int64_t planes)
{
    un_part layers = un_slabs_part(s->ranks.slabs, 0), own = {planes, planes};
    double first = 0, total = 0;
    bool any = false;
    for (int64_t k = 0; k < planes; k++) {
        int32_t layer = un_particles_plane_layer(def, k);
        bool mine = layer >= layers.begin && layer < layers.end;
        if (mine && !any) own.begin = k;
        if (mine) own.end = k + 1;
        any |= mine;
        if (!any && layer < layers.begin) first += counts[k];
        total += counts[k];
    }
    if (total > INT32_MAX) return un_particles_reserve(s->core.ctx, &s->particles, (int64_t)total);
    UN_TRY(un_particles_seed_planes(s->core.ctx, &s->particles, def, own,
                                    &s->core.sources.ledger.start));
    s->ranks.id_end = (uint32_t)total;
    UN_TRY(un_uniform_need_ids(s, s->particles.count));
    for (int32_t q = 0; q < s->particles.count; q++) s->ranks.id[q] = (uint32_t)first + (uint32_t)q;
    return UN_OK;
}

un_status un_uniform_ranks_seed(un_uniform *s, const un_seed_def *def)
{
    double *work, *counts = NULL;
    int64_t planes;
    UN_TRY(begin_work(s, &work));
    un_status status = un_particles_count_planes(s->core.ctx, def, &counts, &planes);
    for (int64_t k = 0; status == UN_OK && k < planes; k++)
        work[un_particles_plane_layer(def, k) / UN_BLOCK] += counts[k];
    if (status == UN_OK) status = create_slabs(s, work);
    if (status == UN_OK) status = settle(s);
    if (status == UN_OK) status = seed_own(s, def, counts, planes);
    un_free(s->core.ctx, counts);
    return status;
}

/* ---- cutting again ---- */

/* Slabs are cut again when that takes this share off the largest one's work. Moving a slab costs
 * about as much as a tenth of a step. */
#define RECUT_GAIN 0.05

/* What a step leaves behind at cells and the next one, or probes, ask for. */
#define FIELDS_MAX 12
static int32_t list_fields(const un_uniform *s, un_layered fields[FIELDS_MAX])
{
    const un_pressure *pr = s->pressure;
    int32_t count = 0;
    fields[count++] = (un_layered){pr->p, sizeof *pr->p};
    fields[count++] = (un_layered){pr->index, sizeof *pr->index};
    if (s->thick.any) fields[count++] = (un_layered){s->thick.p, sizeof *s->thick.p};
    for (int a = 0; a < s->core.grid.dim; a++) {
        fields[count++] = (un_layered){s->u[a], sizeof *s->u[a]};
        fields[count++] = (un_layered){s->known[a], sizeof *s->known[a]};
        if (s->band.width > 0) fields[count++] = (un_layered){s->band.u[a], sizeof *s->band.u[a]};
    }
    if (s->band.width > 0) fields[count++] = (un_layered){s->band.deep, 1};
    return count;
}

/* By the particles of the last step: all ranks know how many each block had. */
static void add_particles(const un_uniform *s, double *work)
{
    const un_bins *b = s->bins;
    for (int32_t n = 0; n < b->block_count; n++)
        work[un_bins_layers(b, b->order[n]).begin / UN_BLOCK] +=
            (double)(s->ranks.block_first[n + 1] - s->ranks.block_first[n]);
}

un_status un_uniform_recut(un_uniform *s)
{
    un_layered fields[FIELDS_MAX];
    double *work;
    bool changed;
    if (!s->ranks.counted) return UN_OK; /* they have just been cut */
    UN_TRY(begin_work(s, &work));
    add_particles(s, work);
    int32_t count = list_fields(s, fields);
    UN_TRY(un_slabs_recut(s->ranks.slabs, work, RECUT_GAIN, fields, count, &changed));
    un_arena_reset(&s->core.arena);
    if (!changed) return UN_OK;
    s->ranks.portion.cuts++;
    if (s->band.width > 0)
        UN_TRY(un_grid_share(&s->core.grid, &(un_layered){s->band.deep, 1}, 1, UN_UNIFORM_HALO));
    UN_TRY(sample_walls(s));
    return settle(s);
}
