/* What narrow bands of particles share, on grids that warp (warp_band.c) and on those that do not
 * (grid_band.c): where the liquid is deep.
 *
 * The depth of a cell is the number of cells to the surface, to a solid, to a source, to an open
 * side or to where flux is measured: near those particles fill the liquid. It is found anew from
 * the level set in each step, so that nothing drifts. */
#include "advect/advect.h"

/* Sources and probes are this many cells away, at least. */
#define CLEAR 2

un_status un_band_init(un_context *ctx, un_band *band, double width, const un_grid *grid,
                       bool warps)
{
    size_t cells = (size_t)grid->cell_count;
    *band = (un_band){.width = fmin(width, UN_BAND_MAX - 3)};
    if (!(width > 0)) return UN_OK;
    band->deep = un_alloc_zero(ctx, cells, 1);
    band->depth = un_alloc_zero(ctx, cells, 1);
    if (!band->deep || !band->depth) return UN_ERROR_MEMORY;
    if (warps) {
        band->was = un_alloc_zero(ctx, cells, sizeof *band->was);
        return band->was ? UN_OK : UN_ERROR_MEMORY;
    }
    for (int a = 0; a < grid->dim; a++) {
        band->u[a] = un_alloc_zero(ctx, cells, sizeof *band->u[a]);
        if (!band->u[a]) return UN_ERROR_MEMORY;
    }
    return un_curve_init(&band->curve, ctx, grid->n[1], grid->n[2]);
}

void un_band_free(un_context *ctx, un_band *band)
{
    un_free(ctx, band->deep);
    un_free(ctx, band->depth);
    un_free(ctx, band->was);
    for (int a = 0; a < 3; a++) un_free(ctx, band->u[a]);
    un_curve_free(ctx, &band->curve);
    *band = (un_band){0};
}

/* ---- how deep ---- */

typedef struct depth_args {
    const float *phi;
    const un_walls *walls;
    uint8_t *to;
    const uint8_t *from;
    int axis, most;
} depth_args;

static double box_distance(un_vec3 a, un_vec3 b, un_vec3 x)
{
    un_vec3 low = un_min3(a, b), high = un_max3(a, b);
    return un_length(un_max3(un_max3(un_sub(low, x), un_sub(x, high)), un_v3(0, 0, 0)));
}

/* Does something happen near a cell that only particles show? */
static bool is_busy(const depth_args *a, int64_t c, const int32_t at[3])
{
    const un_scene_def *def = &a->walls->scene->def;
    const un_grid *g = a->walls->grid;
    const un_warp *w = a->walls->warp;
    if (def->source_count == 0 && def->probe_count == 0) return false;
    double edge = !w ? 1 : g->dim == 2 ? sqrt(w->jacobian[c]) : cbrt(w->jacobian[c]);
    double reach = CLEAR * edge * g->h;
    un_vec3 centre = w ? w->centre[c] : un_grid_center(g, at[0], at[1], at[2]);
    for (int32_t i = 0; i < def->source_count; i++)
        if (un_shape_distance(def->sources[i].shape, centre) < reach) return true;
    for (int32_t i = 0; i < def->probe_count; i++) {
        const un_probe *probe = &def->probes[i];
        if (probe->kind == UN_PROBE_FLUX && box_distance(probe->at, probe->to, centre) < reach)
            return true;
    }
    return false;
}

static bool is_open_side(const un_walls *w, const int32_t at[3])
{
    const bool *open = w->scene->def.domain.open;
    for (int d = 0; d < w->grid->dim; d++)
        if ((at[d] == 0 && open[2 * d]) || (at[d] == w->grid->n[d] - 1 && open[2 * d + 1]))
            return true;
    return false;
}

/* Is a cell inside the domain? */
static bool is_inner(const un_grid *g, const int32_t at[3])
{
    for (int d = 0; d < g->dim; d++)
        if (at[d] == 0 || at[d] == g->n[d] - 1) return false;
    return true;
}

static void begin_rows(void *arg, int64_t begin, int64_t end)
{
    depth_args *a = arg;
    const un_grid *g = a->walls->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            bool inner = a->walls->warp ? a->walls->warp->jacobian[c] > 0 : is_inner(g, at);
            bool ends = inner ? !(a->phi[c] < 0) || a->walls->volume[c] < 1 || is_busy(a, c, at)
                              : is_open_side(a->walls, at);
            a->to[c] = (uint8_t)(ends ? 0 : a->most);
        }
    }
}

/* Cells to the nearest that ends the liquid, the largest of those along the axes: axis by axis. */
static void along_rows(void *arg, int64_t begin, int64_t end)
{
    depth_args *a = arg;
    const un_grid *g = a->walls->grid;
    int64_t stride = g->stride[a->axis];
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            int least = a->from[c], below = at[a->axis], above = g->n[a->axis] - 1 - below;
            for (int s = 1; s < least; s++) {
                int low = s <= below ? a->from[c - s * stride] : least;
                int high = s <= above ? a->from[c + s * stride] : least;
                int near = low < high ? low : high;
                if (near < least) least = near > s ? near : s;
            }
            a->to[c] = (uint8_t)least;
        }
    }
}

/* Cells around the domain are as deep as those next to them. */
static void mirror_rows(void *arg, int64_t begin, int64_t end)
{
    depth_args *a = arg;
    const un_grid *g = a->walls->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]), last = g->n[0] - 1;
        int32_t in = g->dim == 2 ? 0 : un_clampi(k, 1, g->n[2] - 2);
        const uint8_t *from = a->from + un_grid_cell(g, 0, un_clampi(j, 1, g->n[1] - 2), in);
        uint8_t *to = a->to + un_grid_cell(g, 0, j, k);
        memcpy(to, from, (size_t)g->n[0]);
        to[0] = to[1];
        to[last] = to[last - 1];
    }
}

/* Over ranks, cells that end the liquid may lie on others: passes along x and y take as many rows
 * beside own ones as a depth reaches, and the last one those along z alone. */
un_status un_band_measure(un_context *ctx, un_arena *arena, un_band *band, const float *phi,
                          const un_walls *walls)
{
    const un_grid *g = walls->grid;
    depth_args a = {.phi = phi, .walls = walls, .most = (int)ceil(band->width) + 3};
    if (!(band->width > 0)) return UN_OK;
    uint8_t *other = un_arena_alloc(arena, (size_t)g->cell_count, 1);
    if (!other) return UN_ERROR_MEMORY;
    /* after an even number of passes the result is in band->depth */
    uint8_t *from = g->dim == 2 ? other : band->depth, *to = g->dim == 2 ? band->depth : other;
    un_runs own = un_grid_own_rows(g, 0);
    a.to = from;
    un_parallel_runs(ctx, own, 32, begin_rows, &a);
    UN_TRY(un_grid_share(g, &(un_layered){from, 1}, 1, a.most));
    for (a.axis = 0; a.axis <= g->dim; a.axis++) {
        a.from = from;
        a.to = to;
        if (a.axis == g->dim) UN_TRY(un_grid_share(g, &(un_layered){from, 1}, 1, 1));
        un_parallel_runs(ctx, un_grid_own_rows(g, a.axis < g->dim - 1 ? a.most : 0), 32,
                         a.axis < g->dim ? along_rows : mirror_rows, &a);
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    return UN_OK;
}

/* ---- marks ---- */

typedef struct mark_args {
    un_particles *particles;
    const un_band *band;
    const un_grid *grid;
} mark_args;

static void mark(void *arg, int64_t begin, int64_t end)
{
    const mark_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        double *const *x = p->warped ? p->xi : p->x;
        un_vec3 at = un_v3(x[0][q], x[1][q], x[2][q]);
        if (a->band->deep[un_grid_cell_at(a->grid, at)] == 1) p->flags[q] |= UN_PARTICLE_DEEP;
    }
}

void un_band_mark(un_context *ctx, un_particles *particles, const un_band *band,
                  const un_grid *grid)
{
    mark_args a = {particles, band, grid};
    if (band->width > 0) un_parallel_for(ctx, particles->count, 4096, mark, &a);
}
