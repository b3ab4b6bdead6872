/* Solids on a grid that warps. The sides of the domain are sides of cells, so that only bodies cut
 * cells. */
#include "mesh/mesh.h"

/* Distances below this share of a cell are a boundary that coincides with a node. */
#define SNAP 1e-6
/* Farther than this many cells, as large as they are there, the distance to a body's box is good
 * enough. */
#define BAND 4

un_status un_warp_walls_create(un_context *ctx, const un_warp *warp, const un_bodies *bodies,
                               un_walls **walls)
{
    un_walls *w;
    UN_TRY(un_walls_create(ctx, &warp->grid, bodies, false, &w));
    w->warp = warp;
    w->phi = un_alloc(ctx, (size_t)warp->grid.node_count, sizeof *w->phi);
    w->phi_static = w->phi;
    w->volume = un_alloc(ctx, (size_t)warp->grid.cell_count, sizeof *w->volume);
    w->body = un_alloc(ctx, (size_t)warp->grid.node_count, sizeof *w->body);
    un_status status = w->phi && w->volume && w->body ? UN_OK : UN_ERROR_MEMORY;
    for (int a = 0; a < warp->grid.dim && bodies->count > 0 && status == UN_OK; a++) {
        w->area[a] = un_alloc(ctx, (size_t)warp->grid.cell_count, sizeof *w->area[a]);
        if (!w->area[a]) status = UN_ERROR_MEMORY;
    }
    if (status == UN_OK) status = un_warp_walls_sample(w);
    if (status != UN_OK) {
        un_walls_destroy(w);
        return status;
    }
    *walls = w;
    return UN_OK;
}

static void sample_nodes(void *arg, int64_t begin, int64_t end)
{
    un_walls *w = arg;
    const un_warp *warp = w->warp;
    const un_grid *g = w->grid;
    int32_t rows = g->n[1] + 1;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % rows), k = (int32_t)(row / rows);
        for (int32_t i = 0; i <= g->n[0]; i++) {
            int64_t n = un_grid_node(g, i, j, k);
            un_vec3 x = un_warp_node(warp, i, j, k);
            double least = 1e30, near = BAND * un_warp_edge(warp, i, j, k);
            w->body[n] = -1;
            for (int32_t b = 0; b < w->bodies->count; b++) {
                const un_body *body = &w->bodies->body[b];
                double d = un_body_box_distance(body, x);
                if (d < near) d = un_body_distance(body, x);
                if (fabs(d) < SNAP * g->h) d = 0;
                if (d >= least) continue;
                least = d;
                w->body[n] = (int16_t)b;
            }
            w->phi[n] = (float)least;
        }
    }
}

/* The open share of the lower face along an axis of a cell with these distances. */
static double face_share(const double v[8], int axis, int dim)
{
    static const int face[3][4] = {{0, 2, 6, 4}, {0, 4, 5, 1}, {0, 1, 3, 2}};
    if (dim == 2) return un_walls_face_fraction((double[4]){v[0], v[axis == 0 ? 2 : 1]}, 2);
    const int *f = face[axis];
    return un_walls_face_fraction((double[4]){v[f[0]], v[f[1]], v[f[2]], v[f[3]]}, 3);
}

static void find_fractions(void *arg, int64_t begin, int64_t end)
{
    un_walls *w = arg;
    const un_grid *g = w->grid;
    const bool *open = w->scene->def.domain.open;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            double v[8], share = 1;
            for (int m = 0; m < 1 << g->dim; m++)
                v[m] = w->phi[un_grid_node(g, at[0] + (m & 1), at[1] + (m >> 1 & 1),
                                           at[2] + (m >> 2))];
            if (w->bodies->count > 0) share = un_walls_cell_fraction(v, g->dim);
            for (int a = 0; a < g->dim; a++)
                if ((at[a] == 0 && !open[2 * a]) || (at[a] == g->n[a] - 1 && !open[2 * a + 1]))
                    share = 0;
            w->volume[un_grid_cell(g, at[0], at[1], at[2])] = (float)share;
            for (int a = 0; a < g->dim && w->area[a]; a++)
                w->area[a][un_grid_cell(g, at[0], at[1], at[2])] = (float)face_share(v, a, g->dim);
        }
    }
}

/* ---- bodies that the liquid moves ---- */

/* Distances that are linear between nodes round off edges and corners, and a crate would float
 * lower: 0.1 cells at 24. So the distance to such a body is shifted until its cells hold its
 * volume; by how much at most, in cells. */
#define SHIFT_MAX 0.1
/* For the slope of the volume, in cells. */
#define SHIFT_TRIED 0.02

typedef struct body_fit {
    double now, shifted; /* volume, m3: as it is, and shifted by SHIFT_TRIED */
} body_fit;

static void add_cell_to_fit(body_fit *fit, const un_walls *w, const int32_t at[3])
{
    const un_grid *g = w->grid;
    double v[8], least = INFINITY;
    int64_t cell = un_grid_cell(g, at[0], at[1], at[2]), near = -1;
    for (int m = 0; m < 1 << g->dim; m++) {
        int64_t n = un_grid_node(g, at[0] + (m & 1), at[1] + (m >> 1 & 1), at[2] + (m >> 2));
        v[m] = w->phi[n];
        if (v[m] < least) near = n;
        least = fmin(least, v[m]);
    }
    if (!(least < SHIFT_TRIED * g->h) || w->body[near] < 0 || !w->bodies->body[w->body[near]].free)
        return;
    double volume = (double)w->warp->jacobian[cell] * g->volume;
    fit[w->body[near]].now += volume * (1 - un_walls_cell_fraction(v, g->dim));
    for (int m = 0; m < 1 << g->dim; m++) v[m] -= SHIFT_TRIED * g->h;
    fit[w->body[near]].shifted += volume * (1 - un_walls_cell_fraction(v, g->dim));
}

static bool is_within(const un_body *body, const un_warp *warp)
{
    const un_box3 *b = &body->bounds;
    bool flat = warp->grid.dim == 2;
    return b->min.x > 0 && b->min.y > 0 && b->max.x < warp->size.x && b->max.y < warp->size.y &&
           (flat || (b->min.z > 0 && b->max.z < warp->size.z));
}

static un_status fit_free_bodies(un_walls *w)
{
    const un_grid *g = w->grid;
    const un_bodies *bodies = w->bodies;
    body_fit *fit = un_alloc_zero(w->ctx, (size_t)bodies->count + 1, sizeof *fit);
    if (!fit) return UN_ERROR_MEMORY;
    int32_t first = g->dim == 2 ? 0 : 1, last = g->dim == 2 ? 1 : g->n[2] - 1, at[3];
    for (at[2] = first; at[2] < last; at[2]++)
        for (at[1] = 1; at[1] < g->n[1] - 1; at[1]++)
            for (at[0] = 1; at[0] < g->n[0] - 1; at[0]++) add_cell_to_fit(fit, w, at);
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *body = &bodies->body[b];
        double lacks = 0, gain = fit[b].shifted - fit[b].now;
        if (body->free && is_within(body, w->warp) && gain > 0)
            lacks = body->mass / bodies->scene->def.solids[b].density - fit[b].now;
        fit[b].now = gain > 0 ? un_clamp(lacks / gain * SHIFT_TRIED, -SHIFT_MAX, SHIFT_MAX) : 0;
    }
    for (int64_t n = 0; n < g->node_count; n++)
        if (w->body[n] >= 0) w->phi[n] -= (float)(fit[w->body[n]].now * g->h);
    un_free(w->ctx, fit);
    return UN_OK;
}

un_status un_warp_walls_sample(un_walls *w)
{
    const un_grid *g = w->grid;
    un_parallel_for(w->ctx, g->node_count / (g->n[0] + 1), 32, sample_nodes, w);
    if (w->bodies->free_count > 0) UN_TRY(fit_free_bodies(w));
    un_parallel_for(w->ctx, (int64_t)g->n[1] * g->n[2], 32, find_fractions, w);
    UN_TRY(un_walls_part(w));
    return un_warp_parts_find(w);
}
