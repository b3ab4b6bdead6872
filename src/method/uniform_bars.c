/* Who has what where several ranks share a run of method `uniform`: bars of rows, columns of blocks
 * of the bins, cut by work, at the start, again while the liquid moves, and from a copy; and the
 * parts of solids that a rank knows. */
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

/* Rows beside own bars that stay: a bar, as un_bars_recut keeps. */
#define KEPT_ROWS UN_BAR

static void forget_far(un_uniform *s)
{
    const un_walls *w = s->core.walls;
    un_layered fields[5] = {{s->normalizer, sizeof *s->normalizer}, {w->volume, sizeof *w->volume}};
    for (int a = 0; a < s->core.grid.dim; a++)
        fields[2 + a] = (un_layered){w->area[a], sizeof *w->area[a]};
    for (int32_t f = 0; f < 2 + s->core.grid.dim; f++)
        un_bars_forget(s->ranks.bars, &fields[f], KEPT_ROWS);
}

/* Of rows that came to this rank. */
static un_status sample_walls(un_uniform *s)
{
    if (needs_all_walls(s)) return UN_OK;
    un_walls_find_fractions(s->core.walls, un_grid_own_rows(&s->core.grid, KEPT_ROWS));
    return un_colour_normalizer(s->core.ctx, s->normalizer, &s->core.grid, s->core.walls);
}

/* ---- bars ---- */

_Static_assert(UN_BAR == UN_BLOCK, "bars are columns of blocks");

/* Is there another rank's bar on this side of a bar? way: -1, 0 or 1 along y and z. */
static bool is_other(const un_bars *b, int32_t bar, int32_t way_y, int32_t way_z)
{
    int32_t y = bar % b->curve.bars[0] + way_y, z = bar / b->curve.bars[0] + way_z;
    bool inside = y >= 0 && z >= 0 && y < b->curve.bars[0] && z < b->curve.bars[1];
    return inside && b->owner[y + b->curve.bars[0] * z] != b->owner[bar];
}

/* Which side of its bar a row is at: -1, 0 or 1. */
static int32_t side_of(int32_t row)
{
    int32_t in = row % UN_BAR;
    return (in >= UN_BAR - UN_UNIFORM_BELOW) - (in < UN_UNIFORM_ABOVE);
}

/* Whose bars touch this one at a side. */
static void find_takers(const un_bars *b, int32_t bar, int32_t y, int32_t z, un_uniform_takers *t)
{
    *t = (un_uniform_takers){1, {b->owner[bar]}};
    for (int n = 1; n < 4; n++) {
        int32_t way_y = n & 1 ? y : 0, way_z = n & 2 ? z : 0;
        if (!is_other(b, bar, way_y, way_z)) continue;
        int32_t other = b->owner[bar + way_y + b->curve.bars[0] * way_z];
        bool known = false;
        for (int m = 1; m < t->count; m++) known |= t->rank[m] == other;
        if (!known) t->rank[t->count++] = other;
    }
}

/* Rows whose particles stay, and bars whose blocks are here. */
static void find_inner(un_uniform *s)
{
    const un_bars *b = s->ranks.bars;
    for (int32_t k = 0; k < b->curve.rows[1]; k++)
        for (int32_t j = 0; j < b->curve.rows[0]; j++) {
            int32_t bar = un_bar_of(&b->curve, j, k), y = side_of(j), z = side_of(k);
            s->ranks.inner[j + (int64_t)b->curve.rows[0] * k] =
                un_bars_owns(b, bar) && !is_other(b, bar, y, 0) && !is_other(b, bar, 0, z) &&
                !is_other(b, bar, y, z);
        }
    for (int32_t bar = 0; bar < b->curve.count; bar++) {
        for (int n = 0; n < UN_UNIFORM_SIDES; n++)
            find_takers(b, bar, n % 3 - 1, n / 3 - 1,
                        &s->ranks.takers[UN_UNIFORM_SIDES * (int64_t)bar + n]);
        s->ranks.held[bar] = un_bars_owns(b, bar);
        for (int n = 0; n < 9 && !s->ranks.held[bar]; n++) {
            int32_t y = bar % b->curve.bars[0] + n % 3 - 1, z = bar / b->curve.bars[0] + n / 3 - 1;
            bool inside = y >= 0 && z >= 0 && y < b->curve.bars[0] && z < b->curve.bars[1];
            s->ranks.held[bar] = inside && un_bars_owns(b, y + b->curve.bars[0] * z);
        }
    }
}

/* Work by bars, in the arena, so far without particles. */
static un_status begin_work(un_uniform *s, double **work)
{
    *work =
        un_arena_alloc(&s->core.arena, (size_t)un_uniform_bar_count(&s->core.grid), sizeof **work);
    if (*work) un_uniform_begin_work(&s->core.grid, *work);
    return *work ? UN_OK : UN_ERROR_MEMORY;
}

/* By place along the curve. */
static void find_owners(un_uniform *s)
{
    const un_bins *b = s->bins;
    un_uniform_ranks *r = &s->ranks;
    for (int32_t n = 0; n < b->block_count; n++)
        r->block_owner[n] = r->bars->owner[un_bins_bar(b, b->order[n])];
}

/* After bars were cut: who has what, and what this rank has no more to do with. */
static un_status settle(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    if (!r->inner) UN_ALLOC(ctx, r->inner, (size_t)s->core.grid.n[1] * (size_t)s->core.grid.n[2]);
    if (!r->held) UN_ALLOC(ctx, r->held, r->bars->curve.count);
    if (!r->takers) UN_ALLOC(ctx, r->takers, UN_UNIFORM_SIDES * (int64_t)r->bars->curve.count);
    find_inner(s);
    UN_TRY(un_bins_hold(s->bins, r->held));
    if (!r->block_owner) UN_ALLOC(ctx, r->block_owner, s->bins->block_count);
    if (!r->block_first) UN_ALLOC(ctx, r->block_first, s->bins->block_count + 1);
    find_owners(s);
    if (!needs_all_walls(s)) forget_far(s);
    return UN_OK;
}

/* By work; the caller settles them. */
static un_status create_bars(un_uniform *s, const double *work)
{
    un_context *ctx = s->core.ctx;
    const un_grid *g = &s->core.grid;
    int32_t bars = un_uniform_bar_count(g);
    UN_TRY(un_bars_create(ctx, g->n[1], g->n[2], g->n[0], work, &s->ranks.bars));
    if (un_rank_count(ctx) > bars)
        un_log(ctx, UN_LOG_WARNING,
               "%d processes are more than this grid has work for: %d rows of cells in %d bars of "
               "%d; %d do nothing",
               un_rank_count(ctx), g->n[1] * g->n[2], bars, g->dim == 2 ? UN_BAR : UN_BAR * UN_BAR,
               un_rank_count(ctx) - bars);
    un_arena_reset(&s->core.arena);
    s->core.grid.bars = s->ranks.bars;
    s->ranks.counted = false;
    return UN_OK;
}

void un_uniform_keep_own(un_uniform *s, int32_t first)
{
    un_particles *p = &s->particles;
    int32_t kept = first, me = un_rank(s->core.ctx);
    for (int32_t q = first; q < p->count; q++) {
        if (s->ranks.bars->owner[un_uniform_bar_of(s, p, q)] != me) continue;
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

/* Before there are bars. */
static int32_t bar_of(const un_uniform *s, int64_t q)
{
    int32_t j, k;
    un_uniform_row_of(&s->core.grid, &s->particles, q, &j, &k);
    return un_uniform_bar(&s->core.grid, j, k);
}

un_status un_uniform_share_out(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    un_particles *p = &s->particles;
    double *work;
    if (un_rank_count(ctx) == 1) return UN_OK;
    UN_TRY(begin_work(s, &work));
    for (int32_t q = 0; q < p->count; q++) work[bar_of(s, q)] += 1;
    UN_TRY(create_bars(s, work));
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
    return un_state_add(out, "ranks.first", r->bars->first, un_rank_count(s->core.ctx) + 1, 4);
}

un_status un_uniform_ranks_take(un_uniform *s, const un_state *in)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    double *work;
    int64_t total;
    UN_TRY(begin_work(s, &work));
    UN_TRY(create_bars(s, work));
    UN_TRY(un_state_take(in, "ranks.first", r->bars->first, un_rank_count(ctx) + 1, 4));
    un_bars_settle(r->bars);
    UN_TRY(un_state_integer(in, "ranks.total", 0, INT32_MAX, &total));
    UN_TRY(sample_walls(s)); /* bars may have been cut in the step that is repeated */
    UN_TRY(settle(s));
    UN_TRY(un_uniform_need_ids(s, s->particles.count));
    r->id_end = (uint32_t)total;
    return un_state_take(in, "ranks.id", r->id, s->particles.count, 4);
}

/* Own rows of half cells with particles, which stay where their row's bar is; those that stray into
 * another go there when they are sorted. */
static un_status seed_own(un_uniform *s, const un_seed_def *def, const double *counts, int64_t rows)
{
    un_context *ctx = s->core.ctx;
    double total = 0;
    int64_t own = 0, at = 0;
    int64_t *list = un_arena_alloc(&s->core.arena, (size_t)rows + 1, sizeof *list);
    if (!list) return UN_ERROR_MEMORY;
    for (int64_t r = 0; r < rows; r++) {
        int32_t j, k;
        total += counts[r];
        if (counts[r] == 0) continue;
        un_particles_row_of_cells(def, r, &j, &k);
        if (un_grid_owns(&s->core.grid, j, k)) list[own++] = r;
    }
    if (total > INT32_MAX) return un_particles_reserve(ctx, &s->particles, (int64_t)total);
    UN_TRY(
        un_particles_seed_rows(ctx, &s->particles, def, list, own, &s->core.sources.ledger.start));
    s->ranks.id_end = (uint32_t)total;
    UN_TRY(un_uniform_need_ids(s, s->particles.count));
    uint32_t id = 0;
    int32_t q = 0;
    for (int64_t r = 0; r < rows; r++) {
        bool mine = at < own && list[at] == r;
        for (int64_t n = 0; mine && n < (int64_t)counts[r]; n++)
            s->ranks.id[q++] = id + (uint32_t)n;
        at += mine;
        id += (uint32_t)counts[r];
    }
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_uniform_ranks_seed(un_uniform *s, const un_seed_def *def)
{
    double *work, *counts = NULL;
    int64_t rows;
    UN_TRY(begin_work(s, &work));
    un_status status = un_particles_count_rows(s->core.ctx, def, &counts, &rows);
    for (int64_t r = 0; status == UN_OK && r < rows; r++) {
        int32_t j, k;
        if (counts[r] == 0) continue;
        un_particles_row_of_cells(def, r, &j, &k);
        work[un_uniform_bar(&s->core.grid, j, k)] += counts[r];
    }
    if (status == UN_OK) status = create_bars(s, work);
    if (status == UN_OK) status = settle(s);
    if (status == UN_OK) status = seed_own(s, def, counts, rows);
    un_free(s->core.ctx, counts);
    return status;
}

/* ---- cutting again ---- */

/* Bars are cut again when that takes this share off the largest part's work. Moving a part costs
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
        work[un_bins_bar(b, b->order[n])] +=
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
    UN_TRY(un_bars_recut(s->ranks.bars, work, RECUT_GAIN, fields, count, &changed));
    un_arena_reset(&s->core.arena);
    if (!changed) return UN_OK;
    s->ranks.portion.cuts++;
    if (s->band.width > 0)
        UN_TRY(un_grid_share(&s->core.grid, &(un_layered){s->band.deep, 1}, 1, UN_UNIFORM_BELOW));
    UN_TRY(sample_walls(s));
    return settle(s);
}
