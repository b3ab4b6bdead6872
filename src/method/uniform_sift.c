/* A checkpoint of method `uniform`, read by several ranks: each keeps its own part.
 *
 * The file is read twice. First each rank finds the bars of all particles, two bytes each, and cuts
 * them as the start of a run does. Then it keeps its own particles, with their numbers among all,
 * and its rows of the pressure and of what a narrow band carries. */
#include "method/uniform.h"

typedef struct sifting {
    un_context *ctx;
    un_grid grid;
    uint16_t *bar; /* by particle */
    uint8_t *mine; /* by bar: is it this rank's? */
    double *work;  /* by bar */
    un_bars *bars;
    uint32_t *id;       /* of own particles */
    int64_t total, own; /* particles of all ranks, of this one */
    bool able;          /* there was memory, and the checkpoint is one of this grid */
} sifting;

static bool of_particles(const char *name)
{
    return strncmp(name, "particles.", 10) == 0;
}

static bool of_cells(const char *name)
{
    return strcmp(name, "pressure") == 0 || strcmp(name, "viscous_pressure") == 0 ||
           strcmp(name, "deep") == 0 || strncmp(name, "carried_", 8) == 0;
}

/* ---- first: where they are ---- */

static int64_t count_places(void *arg, const char *name, int64_t count, int32_t width)
{
    sifting *s = arg;
    if (strcmp(name, "particles.y") != 0 || width != 8 || s->bar) return 0;
    s->total = count;
    s->bar = un_alloc_zero(s->ctx, (size_t)count + 1, sizeof *s->bar);
    s->able = s->bar != NULL;
    return 0;
}

static int64_t see_places(void *arg, const char *name, void *elements, int64_t first, int64_t count,
                          int32_t width)
{
    sifting *s = arg;
    (void)width;
    const un_grid *g = &s->grid;
    const double *x = elements;
    bool y = strcmp(name, "particles.y") == 0, z = strcmp(name, "particles.z") == 0;
    if ((!y && !z) || !s->able) return 0;
    double origin = y ? g->origin.y : g->origin.z, last = g->n[y ? 1 : 2] - 1;
    int32_t step = un_uniform_bar(g, y ? UN_BAR : 0, y ? 0 : UN_BAR);
    for (int64_t i = 0; i < un_min64(count, s->total - first); i++) {
        double at = (x[i] - origin) * (1 / g->h); /* as sorting finds it */
        int32_t row = (int32_t)(at > 0 ? fmin(at, last) : 0);
        s->bar[first + i] = (uint16_t)(s->bar[first + i] + row / UN_BAR * step);
    }
    return 0;
}

/* ---- then: what is this rank's ---- */

static int64_t count_own(void *arg, const char *name, int64_t count, int32_t width)
{
    const sifting *s = arg;
    (void)width;
    if (of_particles(name) && count == s->total) return s->own;
    if (of_cells(name) && count == s->grid.cell_count)
        return un_runs_count(un_bars_runs(s->bars, s->grid.n[0], 0));
    return UN_SIEVE_ALL;
}

/* Constant sizes, so that copies become single instructions. */
#define KEEP_OWN(type)                                                                             \
    do {                                                                                           \
        type *e = elements;                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            if (s->mine[s->bar[first + i]]) e[kept++] = e[i];                                      \
    } while (0)

static int64_t keep_particles(const sifting *s, void *elements, int64_t first, int64_t count,
                              int32_t width)
{
    int64_t kept = 0;
    if (width == 1)
        KEEP_OWN(uint8_t);
    else if (width == 2)
        KEEP_OWN(uint16_t);
    else if (width == 4)
        KEEP_OWN(uint32_t);
    else
        KEEP_OWN(uint64_t);
    return kept;
}

static int64_t keep_own(void *arg, const char *name, void *elements, int64_t first, int64_t count,
                        int32_t width)
{
    const sifting *s = arg;
    if (of_particles(name)) return keep_particles(s, elements, first, count, width);
    char *p = elements;
    int64_t kept = 0;
    un_runs own = un_bars_runs(s->bars, s->grid.n[0], 0);
    for (un_part run; un_runs_next(&own, &run);) {
        int64_t begin = un_max64(run.begin - first, 0), end = un_min64(run.end - first, count);
        if (end <= begin) continue;
        memmove(p + kept * width, p + begin * width, (size_t)((end - begin) * width));
        kept += end - begin;
    }
    return kept;
}

/* ---- both ---- */

/* The bars, and whose particle is whose. */
static un_status share_out(sifting *s)
{
    const un_grid *g = &s->grid;
    int64_t at = 0;
    un_uniform_begin_work(g, s->work);
    for (int64_t i = 0; i < s->total; i++) s->work[s->bar[i]] += 1;
    UN_TRY(un_bars_create(s->ctx, g->n[1], g->n[2], g->n[0], s->work, &s->bars));
    for (int32_t bar = 0; bar < s->bars->curve.count; bar++)
        s->mine[bar] = un_bars_owns(s->bars, bar);
    for (int64_t i = 0; i < s->total; i++) s->own += s->mine[s->bar[i]];
    UN_ALLOC(s->ctx, s->id, s->own + 1);
    for (int64_t i = 0; i < s->total; i++)
        if (s->mine[s->bar[i]]) s->id[at++] = (uint32_t)i;
    return UN_OK;
}

static un_status add_part(const sifting *s, un_state *in)
{
    int32_t ranks = un_rank_count(s->ctx) + 1;
    void *to;
    UN_TRY(un_state_add_own(in, "ranks.id", s->own, 4, &to));
    memcpy(to, s->id, (size_t)s->own * sizeof *s->id);
    UN_TRY(un_state_add_own(in, "ranks.first", ranks, 4, &to));
    memcpy(to, s->bars->first, (size_t)ranks * sizeof *s->bars->first);
    return un_state_add_integer(in, "ranks.total", s->total);
}

un_status un_uniform_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                          void *arg)
{
    const un_scene_def *def = &scene->def;
    sifting s = {.ctx = ctx, .grid = un_grid_make(def->domain.size, def->detail.finest)};
    un_sieve places = {&s, count_places, see_places}, own = {&s, count_own, keep_own};
    size_t bars = (size_t)un_uniform_bar_count(&s.grid);
    un_state seen;
    un_status status = UN_OK;
    un_state_init(&seen, ctx);
    UN_ALLOC_DONE(ctx, s.mine, bars);
    s.work = un_alloc_zero(ctx, bars, sizeof *s.work);
    if (!s.work) status = UN_ERROR_MEMORY;
    if (status == UN_OK && bars <= UINT16_MAX) status = read(arg, &seen, &places);
    if (status == UN_OK && s.bar && s.total <= INT32_MAX) {
        UN_TRY_DONE(share_out(&s));
        UN_TRY_DONE(read(arg, in, &own));
        UN_TRY_DONE(add_part(&s, in));
    } else if (status == UN_OK) { /* no checkpoint of this method, as others will find; or too many
                                   * bars */
        status = read(arg, in, NULL);
    }
done:
    un_state_free(&seen);
    un_bars_destroy(s.bars);
    un_free(ctx, s.bar);
    un_free(ctx, s.mine);
    un_free(ctx, s.work);
    un_free(ctx, s.id);
    return status;
}
