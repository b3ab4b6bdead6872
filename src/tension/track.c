/* Surface tension of a carried surface, at points of it.
 *
 * The distance to the carried mesh is taken at the cells of a grid as fine as that mesh; from there
 * on as in grid.c. Curvatures of the level sets through the eight cells around a point give that of
 * the surface at the point, by linear interpolation: across the surface it is nearly linear. Areas
 * and angles of the mesh's own triangles, which contouring makes as it comes, tell curvature with a
 * noise of its own size.
 *
 * A grid as coarse as the tets would not do: smoothing hides waves of two or three tets from the
 * tension, nothing else damps them, and a drop of 4 cells' radius grows spikes within two periods.
 */
#include "tension/lattice.h"

typedef struct args {
    const un_tension_track *in;
    un_tension_lattice *l;
    float *phi;
} args;

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    const un_grid *g = s->in->grid;
    int32_t hint = -1;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int64_t j = row % g->n[1], k = row / g->n[1];
            un_vec3 x =
                un_v3(g->origin.x + g->h * (i + 0.5), g->origin.y + g->h * ((double)j + 0.5),
                      g->origin.z + g->h * ((double)k + 0.5));
            s->phi[row * g->n[0] + i] = (float)un_track_distance(s->in->track, x, &hint);
        }
}

static double curvature_at(const un_tension_lattice *l, un_vec3 x)
{
    const un_grid *g = l->in->grid;
    double at[3] = {(x.x - g->origin.x) * g->inverse_h, (x.y - g->origin.y) * g->inverse_h,
                    (x.z - g->origin.z) * g->inverse_h};
    double f[3], sum = 0, weight = 0;
    int64_t base = 0;
    for (int a = 0; a < 3; a++) {
        double s = un_clamp(at[a] - 0.5 + l->pad[a], 1, l->n[a] - 3);
        f[a] = s - floor(s);
        base += (int64_t)floor(s) * l->stride[a];
    }
    for (int q = 0; q < 8; q++) {
        int64_t c = base;
        double w = 1;
        for (int a = 0; a < 3; a++) {
            c += (q >> a & 1) * l->stride[a];
            w *= q >> a & 1 ? f[a] : 1 - f[a];
        }
        if (l->number[c] < 0) continue;
        sum += w * un_lattice_curvature(l, c);
        weight += w;
    }
    return weight > 0 ? sum / weight : 0;
}

static void press_points(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    const un_tension_track *in = s->in;
    double scale = in->def->fluid.surface_tension * in->grid->inverse_h;
    for (int64_t i = begin; i < end; i++)
        in->pressure[i] = isnan(in->x[i].x) ? 0 : scale * curvature_at(s->l, in->x[i]);
}

un_status un_tension_on_track(un_context *ctx, un_arena *arena, const un_tension_track *in)
{
    const un_grid *g = in->grid;
    float *phi = un_arena_alloc(arena, (size_t)g->cell_count, sizeof *phi);
    if (!phi) return UN_ERROR_MEMORY;
    un_tension_grid on = {.phi = phi, .grid = g, .walls = in->walls, .def = in->def};
    un_tension_lattice l = {.ctx = ctx, .in = &on};
    args s = {in, &l, phi};
    un_parallel_for(ctx, (int64_t)g->n[1] * g->n[2], 16, sample_rows, &s);
    UN_TRY(un_lattice_prepare(&l, arena));
    un_parallel_for(ctx, in->count, 256, press_points, &s);
    return UN_OK;
}
