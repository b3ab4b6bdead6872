/* A checkpoint of method `uniform`, read by several ranks: each keeps its own part.
 *
 * The file is read twice. First each rank finds the layers of all particles, two bytes each, and
 * from them the slabs, as the start of a run does. Then it keeps its own particles, with their
 * numbers among all, and its layers of the pressure and of what a narrow band carries. */
#include "method/uniform.h"

typedef struct sifting {
    un_context *ctx;
    un_grid grid;
    const char *axis;   /* the section with places across the slabs */
    uint16_t *unit;     /* by particle: its block of layers */
    uint8_t *mine;      /* by block: is it this rank's? */
    double *work;       /* by block */
    uint32_t *id;       /* of own particles */
    int64_t total, own; /* particles of all ranks, of this one */
    un_part cells;
    bool able; /* there was memory, and the checkpoint is one of this grid */
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
    if (strcmp(name, s->axis) != 0 || width != 8 || s->unit) return 0;
    s->total = count;
    s->unit = un_alloc(s->ctx, (size_t)count + 1, sizeof *s->unit);
    s->able = s->unit != NULL;
    return 0;
}

static int64_t see_places(void *arg, const char *name, void *elements, int64_t first, int64_t count,
                          int32_t width)
{
    sifting *s = arg;
    (void)width;
    const un_grid *g = &s->grid;
    const double *x = elements;
    if (strcmp(name, s->axis) != 0 || !s->able) return 0;
    double origin = g->dim == 2 ? g->origin.y : g->origin.z, last = g->n[g->dim - 1] - 1;
    for (int64_t i = 0; i < count; i++) {
        double at = (x[i] - origin) * (1 / g->h); /* as sorting finds it */
        s->unit[first + i] = (uint16_t)((int32_t)(at > 0 ? fmin(at, last) : 0) / UN_BLOCK);
        s->work[s->unit[first + i]] += 1;
    }
    return 0;
}

/* ---- then: what is this rank's ---- */

static int64_t count_own(void *arg, const char *name, int64_t count, int32_t width)
{
    const sifting *s = arg;
    (void)width;
    if (of_particles(name) && count == s->total) return s->own;
    if (of_cells(name) && count == s->grid.cell_count) return s->cells.end - s->cells.begin;
    return UN_SIEVE_ALL;
}

/* Constant sizes, so that copies become single instructions. */
#define KEEP_OWN(type)                                                                             \
    do {                                                                                           \
        type *e = elements;                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            if (s->mine[s->unit[first + i]]) e[kept++] = e[i];                                     \
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
    int64_t begin = un_max64(s->cells.begin - first, 0);
    int64_t end = un_min64(s->cells.end - first, count);
    if (end <= begin) return 0;
    memmove(p, p + begin * width, (size_t)((end - begin) * width));
    return end - begin;
}

/* ---- both ---- */

/* The slabs, and whose particle is whose. */
static un_status share_out(sifting *s, un_slabs **slabs)
{
    const un_grid *g = &s->grid;
    int32_t layers = un_grid_layer_count(g), units = (layers + UN_BLOCK - 1) / UN_BLOCK;
    int64_t cells = g->stride[g->dim - 1], at = 0;
    for (int32_t u = 0; u < units; u++)
        s->work[u] += UN_UNIFORM_CELL_WORK * (double)cells *
                      (double)un_min64(UN_BLOCK, layers - u * UN_BLOCK);
    UN_TRY(un_slabs_create(s->ctx, layers, cells, UN_BLOCK, s->work, slabs));
    un_part own = un_slabs_part(*slabs, 0);
    s->cells = (un_part){own.begin * cells, own.end * cells};
    for (int32_t u = 0; u < units; u++)
        s->mine[u] = u * UN_BLOCK >= own.begin && u * UN_BLOCK < own.end;
    for (int64_t i = 0; i < s->total; i++) s->own += s->mine[s->unit[i]];
    UN_ALLOC(s->ctx, s->id, s->own + 1);
    for (int64_t i = 0; i < s->total; i++)
        if (s->mine[s->unit[i]]) s->id[at++] = (uint32_t)i;
    return UN_OK;
}

static un_status add_part(const sifting *s, const un_slabs *slabs, un_state *in)
{
    int32_t ranks = un_rank_count(s->ctx) + 1;
    void *to;
    UN_TRY(un_state_add_own(in, "ranks.id", s->own, 4, &to));
    memcpy(to, s->id, (size_t)s->own * sizeof *s->id);
    UN_TRY(un_state_add_own(in, "ranks.first", ranks, 4, &to));
    memcpy(to, slabs->first, (size_t)ranks * sizeof *slabs->first);
    return un_state_add_integer(in, "ranks.total", s->total);
}

un_status un_uniform_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                          void *arg)
{
    const un_scene_def *def = &scene->def;
    sifting s = {.ctx = ctx, .grid = un_grid_make(def->domain.size, def->detail.finest)};
    un_sieve places = {&s, count_places, see_places}, own = {&s, count_own, keep_own};
    size_t units = (size_t)un_grid_layer_count(&s.grid) / UN_BLOCK + 1;
    un_slabs *slabs = NULL;
    un_state seen;
    un_status status = UN_OK;
    un_state_init(&seen, ctx);
    s.axis = s.grid.dim == 2 ? "particles.y" : "particles.z";
    UN_ALLOC_DONE(ctx, s.mine, units);
    s.work = un_alloc_zero(ctx, units, sizeof *s.work);
    if (!s.work) status = UN_ERROR_MEMORY;
    if (status == UN_OK) status = read(arg, &seen, &places);
    if (status == UN_OK && s.unit && s.total <= INT32_MAX) {
        UN_TRY_DONE(share_out(&s, &slabs));
        UN_TRY_DONE(read(arg, in, &own));
        UN_TRY_DONE(add_part(&s, slabs, in));
    } else if (status == UN_OK) { /* no checkpoint of this method, as others will find */
        status = read(arg, in, NULL);
    }
done:
    un_state_free(&seen);
    un_slabs_destroy(slabs);
    un_free(ctx, s.unit);
    un_free(ctx, s.mine);
    un_free(ctx, s.work);
    un_free(ctx, s.id);
    return status;
}
