/* Predictions before a run: size, memory, time, and probable problems. */
#include "run/run.h"

#include <stdio.h>

un_status un_run_method(un_context *ctx, const un_scene *scene, const un_method **method)
{
    *method = un_method_find(scene->def.method);
    if (*method) return UN_OK;
    return un_fail(ctx, UN_ERROR_UNAVAILABLE,
                   "method \"%s\" is not available in this version; use \"uniform\"",
                   scene->def.method);
}

/* Fraction of the cap to plan with: estimates are within a fifth, and a run that hits the cap is
 * lost. An adaptive method stays within it by itself, and may come closer. */
#define CAP_SHARE 0.8
#define CAP_SHARE_ADAPTIVE 0.88
/* Arenas and tables of an adaptive method, whatever the scene, and a few hundred particles. */
#define CAP_LEAST_ADAPTIVE 8e6

/* More than one cell along every side. */
static int32_t least_detail(const un_scene_def *def)
{
    un_vec3 size = def->domain.size;
    double narrow = fmin(size.x, size.y), longest = fmax(size.x, fmax(size.y, size.z));
    if (def->domain.dim == 3) narrow = fmin(narrow, size.z);
    return (int32_t)fmax(UN_FINEST_MIN, floor(longest / narrow + 1e-6) + 1);
}

un_status un_run_fit_budget(un_context *ctx, un_scene *scene, un_estimate *estimate)
{
    const un_method *method;
    un_scene_def *def = &scene->def;
    UN_TRY(un_run_method(ctx, scene, &method));
    double share = method->traits.adaptive ? CAP_SHARE_ADAPTIVE : CAP_SHARE;
    double cap = share * (double)un_memory_cap(ctx);
    bool capped = cap > 0 && !(def->budget.memory > 0 && def->budget.memory <= cap);
    if (capped) def->budget.memory = cap;
    if (method->traits.adaptive && cap > 0 && (double)un_memory_cap(ctx) < CAP_LEAST_ADAPTIVE)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "%s: the cap of %.1f MB is too small for method %s, which needs %.0f MB for "
                       "the smallest scene; raise --memory",
                       scene->path, (double)un_memory_cap(ctx) / 1e6, method->traits.name,
                       CAP_LEAST_ADAPTIVE / 1e6);
    if (method->traits.adaptive) {
        un_grid grid = un_grid_make(def->domain.size, def->detail.finest);
        *estimate = (un_estimate){.cells = {grid.n[0] - 2, grid.n[1] - 2, grid.n[2] - 2},
                                  .cell_size = grid.h};
        return UN_OK;
    }
    UN_TRY(method->estimate(ctx, scene, estimate));
    int32_t wanted = def->detail.finest, least = least_detail(def);
    for (;;) {
        double particles = (double)estimate->particle_count_max / def->budget.particles;
        double bytes = estimate->bytes / def->budget.memory, over = 1;
        if (def->budget.particles > 0) over = fmax(over, particles);
        if (def->budget.memory > 0) over = fmax(over, bytes);
        if (over <= 1) break;
        int32_t next =
            (int32_t)floor(def->detail.finest / (def->domain.dim == 2 ? sqrt(over) : cbrt(over)));
        if (next >= def->detail.finest) next = def->detail.finest - 1;
        if (next < least && capped)
            return un_fail(ctx, UN_ERROR_MEMORY,
                           "%s: the cap of %.1f MB is too small for this scene even at %d cells; "
                           "raise --memory",
                           scene->path, (double)un_memory_cap(ctx) / 1e6, least);
        if (next < least)
            return un_fail(ctx, UN_ERROR_SCENE,
                           "%s: the budget is too small for this scene even at %d cells; raise "
                           "budget.particles or budget.memory",
                           scene->path, least);
        def->detail.surface =
            (int32_t)fmax(next, (double)def->detail.surface * next / def->detail.finest);
        def->detail.finest = next;
        UN_TRY(method->estimate(ctx, scene, estimate));
    }
    if (def->detail.finest != wanted)
        un_log(ctx, UN_LOG_WARNING,
               "detail.finest lowered from %d to %d to stay within the budget (%.3g million "
               "particles, %.3g GB)",
               wanted, def->detail.finest, (double)estimate->particle_count_max / 1e6,
               estimate->bytes / 1e9);
    return UN_OK;
}

static void warn(un_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(un_check *check, const char *format, ...)
{
    if (check->warning_count < UN_WARNINGS_MAX) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(check->warnings[check->warning_count], sizeof check->warnings[0], format,
                  arguments);
        va_end(arguments);
    }
    check->warning_count++;
}

/* Along each side of a shape's box. */
#define DEPTH_SAMPLES 48
#define WALL_SAMPLES 64
/* A wall of a cell is not thinner than a cell for round-off. */
#define WALL_SLACK 0.99

static double shape_depth(un_context *ctx, const un_shape *shape, const un_shape *other,
                          un_vec3 size)
{
    return un_shape_depth(ctx, shape, other, size, DEPTH_SAMPLES);
}

/* Thinnest walls that keep the liquid on their two sides apart, in finest cells. */
#define WALL_CELLS 1.0
#define WALL_CELLS_ADAPTIVE 0.5
#define WALL_CELLS_JOINED 2.0 /* for methods that do not part thin walls */

static void check_walls(un_context *ctx, const un_scene_def *def, const un_solid *solid, double h,
                        un_check *check)
{
    bool adaptive = def->traits->adaptive, parts = def->traits->thin_walls;
    double cells = !parts ? WALL_CELLS_JOINED : adaptive ? WALL_CELLS_ADAPTIVE : WALL_CELLS;
    double limit = cells * h;
    double thickness =
        un_shape_thickness(ctx, solid->shape, def->domain.size, WALL_SLACK * limit, WALL_SAMPLES);
    if (!(thickness < INFINITY)) return;
    warn(
        check,
        "%s has walls about %.3g m thick, less than %s (%.3g m): liquid on their two sides may not "
        "be kept apart; make them thicker or raise detail.finest to %.0f",
        solid->label, thickness,
        !parts     ? "two cells"
        : adaptive ? "half a finest cell"
                   : "a cell",
        limit, ceil(def->detail.finest * limit / thickness));
}

static void check_solids(un_context *ctx, const un_scene *scene, un_check *check)
{
    const un_scene_def *def = &scene->def;
    double h = check->cell_size;
    for (int32_t s = 0; s < def->solid_count; s++) {
        const un_solid *solid = &def->solids[s];
        un_pose pose = un_pose_identity();
        if (solid->moves && un_scene_pose(scene, s, 0, &pose) != UN_OK)
            warn(check, "%s: %s", solid->label, un_context_message(ctx));
        double depth = shape_depth(ctx, solid->shape, NULL, def->domain.size);
        if (depth == 0 && !solid->moves)
            warn(check, "%s is outside the domain and has no effect", solid->label);
        else if (depth > 0)
            check_walls(ctx, def, solid, h, check);
        if (!solid->moves && def->liquid.shape &&
            shape_depth(ctx, solid->shape, def->liquid.shape, def->domain.size) > 0.5 * h)
            warn(check, "liquid overlaps %s; the part inside the solid is left out", solid->label);
    }
}

static void check_sources(un_context *ctx, const un_scene *scene, un_check *check)
{
    const un_scene_def *def = &scene->def;
    double h = check->cell_size, duration = def->frames.count / def->frames.rate;
    for (int32_t s = 0; s < def->source_count; s++) {
        const un_source *source = &def->sources[s];
        double depth = shape_depth(ctx, source->shape, NULL, def->domain.size);
        if (depth == 0)
            warn(check, "%s is outside the domain and has no effect", source->name);
        else if (2 * depth < h)
            warn(check,
                 "%s is smaller than a cell (%.3g m of %.3g m): make it larger or raise "
                 "detail.finest to %.0f",
                 source->name, 2 * depth, h, ceil(def->detail.finest * h / (2 * depth)));
        if (source->kind == UN_SOURCE_EMITTER && un_length(source->velocity) == 0)
            warn(check,
                 "%s has no velocity: it fills its shape once and then adds nothing; give it "
                 "a velocity",
                 source->name);
        if (source->from >= duration)
            warn(check, "%s starts at %g s, after the last frame (%g s)", source->name,
                 source->from, duration);
    }
}

static void check_liquid(un_context *ctx, const un_scene *scene, const un_method *method,
                         un_check *check)
{
    const un_scene_def *def = &scene->def;
    bool emitters = false;
    for (int32_t s = 0; s < def->source_count; s++)
        emitters |= def->sources[s].kind == UN_SOURCE_EMITTER;
    if (!def->liquid.shape) {
        if (!emitters) warn(check, "there is no liquid and no emitter: nothing will happen");
        return;
    }
    double depth = shape_depth(ctx, def->liquid.shape, NULL, def->domain.size);
    if (depth == 0 || (method->traits.particles && check->particle_count == 0))
        warn(check,
             "the liquid is outside the domain, inside solids, or smaller than a cell "
             "(%.3g m): there is none",
             check->cell_size);
    else if (2 * depth < check->cell_size)
        warn(check,
             "the liquid is about %.3g m thick, less than a cell (%.3g m): it will move as "
             "single particles; raise detail.finest",
             2 * depth, check->cell_size);
}

un_status un_scene_check(un_context *ctx, un_scene *scene, un_check *check)
{
    const un_method *method;
    un_estimate estimate;
    *check = (un_check){0};
    int32_t wanted = scene->def.detail.finest;
    UN_TRY(un_run_method(ctx, scene, &method));
    UN_TRY(un_run_fit_budget(ctx, scene, &estimate));
    if (method->traits.adaptive) UN_TRY(method->estimate(ctx, scene, &estimate));
    check->method = method->traits.name;
    memcpy(check->cells, estimate.cells, sizeof check->cells);
    check->cell_size = estimate.cell_size;
    check->cell_count = estimate.cell_count;
    check->particle_count = estimate.particle_count;
    check->particle_count_max = estimate.particle_count_max;
    check->bytes = estimate.bytes;
    for (int32_t n = 0; n < scene->note_count; n++) warn(check, "%s", scene->notes[n]);
    if (scene->def.detail.finest != wanted)
        warn(check, "detail.finest is lowered from %d to %d to stay within the budget", wanted,
             scene->def.detail.finest);
    check_liquid(ctx, scene, method, check);
    check_solids(ctx, scene, check);
    check_sources(ctx, scene, check);
    return un_run_rehearse(ctx, scene, method, check);
}

/* ---- several processes ---- */

/* What a process of several needs beside its share: MPI itself, and distances to solids, by cell;
 * where solids move or the surface pulls, all that is known of solids. A dam break of 96 cells: 318
 * MB are said for 2 and 184 for 4, measured 311 and 195; of one process 557 are said and 502
 * measured. A box of syrup of 48 cells: 181 and 129, measured 180 and 137; of one process 296 and
 * 286. */
#define RANK_BYTES 20e6
#define RANK_CELL_BYTES 8.0
#define RANK_SOLIDS_BYTES 24.0
/* Rows of copies beside own ones. */
#define RANK_HALO 1.125
/* Processor time of two processes over that of two threads. */
#define RANK_TIME 1.07
/* On a curve: the largest process has this much more than an even part for each doubling. A dam
 * break at a pillar of 96 cells: 1.07, 1.27 and 1.45 times an even part of what `tet` has on 2, 4
 * and 8; `octree`, and smaller scenes, less. */
#define CURVE_BYTES 0.15
/* The same for time: 1.05 to 1.2 times on 2 measured, 1.4 on a thousand by bench/ranks.py. */
#define CURVE_TIME 1.1
#define CURVE_TIME_DOUBLED 0.03
/* Of every particle, to each process that makes a part of a surface of hulls. */
#define HULL_BYTES 69.0

/* Rows of cells that a bar's rank has copies of at its sides: of each side that is another's. */
static double rows_beside(const un_curve *c, const int32_t *first, int32_t ranks, int32_t place)
{
    int32_t y = c->bar[place] % c->bars[0], z = c->bar[place] / c->bars[0], rank = 0;
    double rows = 0;
    while (rank < ranks - 1 && place >= first[rank + 1]) rank++;
    for (int side = 0; side < 4; side++) {
        int32_t to[2] = {y + (side == 1) - (side == 0), z + (side == 3) - (side == 2)};
        if (to[0] < 0 || to[1] < 0 || to[0] >= c->bars[0] || to[1] >= c->bars[1]) continue;
        int32_t other = c->place[to[0] + c->bars[0] * to[1]];
        bool own = other >= first[rank] && other < first[rank + 1];
        if (!own) rows += RANK_HALO * (c->shift == 3 ? 1 : UN_BAR);
    }
    return rows;
}

/* The share of the rows, with copies, of the process that has most of them, as if the liquid were
 * spread evenly. *busy: processes that have any. */
static un_status largest_part(un_context *ctx, const un_check *check, int32_t dim, int32_t ranks,
                              int32_t *busy, double *part)
{
    int32_t n[2] = {check->cells[1] + 2, dim == 2 ? 1 : check->cells[2] + 2}, *first = NULL;
    double *work = NULL;
    un_curve c;
    un_status status = un_curve_init(&c, ctx, n[0], n[1]);
    *busy = ranks < c.count ? ranks : c.count;
    *part = 0;
    if (status == UN_OK) first = un_alloc(ctx, (size_t)*busy + 1, sizeof *first);
    if (status == UN_OK) work = un_alloc_zero(ctx, (size_t)c.count, sizeof *work);
    if (status == UN_OK && (!first || !work)) status = UN_ERROR_MEMORY;
    for (int32_t row = 0; status == UN_OK && row < n[0] * n[1]; row++)
        work[un_bar_of(&c, row % n[0], row / n[0])] += 1;
    if (status == UN_OK) status = un_curve_cut(&c, ctx, work, *busy, first);
    for (int32_t r = 0; status == UN_OK && r < *busy; r++) {
        double rows = 0;
        for (int32_t at = first[r]; at < first[r + 1]; at++)
            rows += work[c.bar[at]] + rows_beside(&c, first, *busy, at);
        *part = fmax(*part, fmin(rows / ((double)n[0] * n[1]), 1));
    }
    un_free(ctx, first);
    un_free(ctx, work);
    un_curve_free(ctx, &c);
    return status;
}

static bool knows_solids(const un_scene_def *def)
{
    bool moves = false;
    for (int32_t n = 0; n < def->solid_count; n++) moves |= def->solids[n].moves;
    return moves || def->fluid.surface_tension > 0;
}

/* Parts of a curve. */
static void share_curve(const un_scene_def *def, const un_check *check, int32_t ranks,
                        un_check_share *share)
{
    double doubled = log2(ranks);
    share->bytes = RANK_BYTES + check->bytes * fmin(1, (1 + CURVE_BYTES * doubled) / ranks);
    share->seconds_per_frame *= (CURVE_TIME + CURVE_TIME_DOUBLED * doubled) / ranks;
    if (!def->output.surface) return;
    if (def->domain.dim == 2)
        share->bytes = RANK_BYTES + check->bytes; /* rank 0 */
    else
        share->bytes += HULL_BYTES * (double)check->particle_count_max;
}

un_status un_scene_check_ranks(un_context *ctx, un_scene *scene, const un_check *check,
                               int32_t ranks, un_check_share *share)
{
    const un_method *method;
    UN_TRY(un_run_method(ctx, scene, &method));
    if (!method->traits.ranks)
        return un_fail(ctx, UN_ERROR_UNAVAILABLE, "method %s works in one process only",
                       method->traits.name);
    share->busy = ranks;
    share->bytes = check->bytes;
    share->seconds_per_frame = check->seconds_per_frame;
    if (ranks == 1) return UN_OK;
    if (method->traits.adaptive) {
        share_curve(&scene->def, check, ranks, share);
        return UN_OK;
    }
    double part;
    UN_TRY(largest_part(ctx, check, scene->def.domain.dim, ranks, &share->busy, &part));
    double each = knows_solids(&scene->def) ? RANK_SOLIDS_BYTES : RANK_CELL_BYTES;
    share->bytes = RANK_BYTES + each * (double)check->cell_count + check->bytes * part;
    if (scene->def.domain.dim == 2 && scene->def.output.surface)
        share->bytes = RANK_BYTES + check->bytes; /* rank 0 */
    share->seconds_per_frame *= RANK_TIME * part;
    return UN_OK;
}
