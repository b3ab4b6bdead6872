/* Level sets of a grid that warps: from its reference space, where particles make them as on any
 * grid, to space. */
#include "surface/surface.h"

/* The level set is a distance of reference space within this many cells of the surface; its slope
 * there tells the distance in space. */
#define BAND 1.2
/* Slopes in reference space below this are noise. */
#define SLOPE_MIN 0.3

typedef struct mirror_args {
    float *phi;
    const un_walls *walls;
} mirror_args;

static void mirror_rows(void *arg, int64_t begin, int64_t end)
{
    mirror_args *a = arg;
    const un_grid *g = a->walls->grid;
    const bool *open = a->walls->scene->def.domain.open;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            int32_t in[3] = {at[0], at[1], at[2]};
            bool closed = false, beyond = false;
            for (int d = 0; d < g->dim; d++) {
                in[d] = un_clampi(at[d], 1, g->n[d] - 2);
                if (at[d] == in[d]) continue;
                closed = closed || !open[2 * d + (at[d] > in[d])];
                beyond = beyond || open[2 * d + (at[d] > in[d])];
            }
            if (closed && !beyond)
                a->phi[un_grid_cell(g, at[0], at[1], at[2])] =
                    a->phi[un_grid_cell(g, in[0], in[1], in[2])];
        }
    }
}

void un_warp_mirror(un_context *ctx, float *phi, const un_walls *walls)
{
    mirror_args a = {phi, walls};
    un_parallel_for(ctx, (int64_t)walls->grid->n[1] * walls->grid->n[2], 64, mirror_rows, &a);
}

typedef struct level_args {
    double *out;
    const float *phi;
    const un_warp *warp;
} level_args;

UN_KERNEL void level_in(const level_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = &a->warp->grid;
    int32_t rows = g->n[1] + 1;
    for (int64_t row = begin; row < end; row++) {
        int32_t n[3] = {0, (int32_t)(row % rows), (int32_t)(row / rows)};
        for (n[0] = 0; n[0] <= g->n[0]; n[0]++) {
            int64_t node = un_grid_node(g, n[0], n[1], n[2]);
            bool inside = true;
            for (int d = 0; d < dim; d++) inside = inside && n[d] >= 1 && n[d] < g->n[d];
            if (!inside) {
                a->out[node] = 1.5 * g->h;
                continue;
            }
            un_vec3 xi = un_grid_node_position(g, n[0], n[1], n[2]);
            un_warp_point p = un_warp_locate_in(a->warp, a->warp->node[node], &xi, dim);
            double phi = 0, slope[3] = {0};
            for (int m = 0; m < 1 << dim; m++) {
                double v = a->phi[un_warp_corner(g, p.at.base, m, dim)];
                phi += v * un_warp_weight(&p.at, m, dim);
                for (int d = 0; d < dim; d++)
                    slope[d] += v * un_warp_slope(&p.at, m, d, dim) * g->inverse_h;
            }
            un_vec3 s = un_v3(slope[0], slope[1], slope[2]);
            double steep = un_length(s);
            /* elsewhere a sphere of the cell's volume tells the scale */
            double scale = dim == 2 ? sqrt(un_warp_det(&p)) : cbrt(un_warp_det(&p));
            if (fabs(phi) < BAND * g->h && steep > SLOPE_MIN)
                scale = 1 / un_length(un_warp_gradient(&p, un_scale(s, 1 / steep)));
            a->out[node] = phi * scale;
        }
    }
}

static void level_rows(void *arg, int64_t begin, int64_t end)
{
    const level_args *a = arg;
    UN_BY_DIM(a->warp->grid.dim, level_in(a, begin, end, dim));
}

void un_warp_level_set(un_context *ctx, double *node_phi, const float *phi, const un_warp *warp)
{
    level_args a = {node_phi, phi, warp};
    un_parallel_for(ctx, warp->grid.node_count / (warp->grid.n[0] + 1), 16, level_rows, &a);
}

typedef struct shape_args {
    float *phi;
    const un_warp *warp;
    const un_shape *shape;
} shape_args;

static void measure_shape(void *arg, int64_t begin, int64_t end)
{
    shape_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        a->phi[c] = (float)un_shape_distance(a->shape, a->warp->centre[c]);
}

void un_warp_level_set_shape(un_context *ctx, float *phi, const un_warp *warp,
                             const un_shape *shape)
{
    shape_args a = {phi, warp, shape};
    un_parallel_for(ctx, warp->grid.cell_count, 1024, measure_shape, &a);
}

typedef struct volume_args {
    float *volume;
    const un_walls *walls;
} volume_args;

static void weigh_cells(void *arg, int64_t begin, int64_t end)
{
    volume_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        a->volume[c] = a->walls->volume[c] * a->walls->warp->jacobian[c];
}

un_status un_warp_volume(un_context *ctx, un_arena *arena, double *volume, const float *phi,
                         const un_walls *walls, const uint8_t *thick)
{
    const un_grid *g = walls->grid;
    un_walls weighed = *walls;
    weighed.volume = un_arena_alloc(arena, (size_t)g->cell_count, sizeof *weighed.volume);
    if (!weighed.volume) return UN_ERROR_MEMORY;
    volume_args a = {weighed.volume, walls};
    un_parallel_for(ctx, g->cell_count, un_block_grain(g->cell_count), weigh_cells, &a);
    *volume = un_colour_volume(ctx, phi, g, &weighed, thick);
    return UN_OK;
}

typedef struct surface_args {
    un_trimesh *mesh;
    const un_warp *warp;
} surface_args;

static void move_vertices(void *arg, int64_t begin, int64_t end)
{
    surface_args *a = arg;
    un_trimesh *mesh = a->mesh;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 xi = mesh->position[v];
        un_warp_point p;
        UN_BY_DIM(a->warp->grid.dim, p = un_warp_point_in(a->warp, xi, dim));
        mesh->position[v] = p.x;
        if (mesh->normal) mesh->normal[v] = un_normalize(un_warp_gradient(&p, mesh->normal[v]));
    }
}

void un_warp_surface(un_context *ctx, un_trimesh *mesh, const un_warp *warp)
{
    surface_args a = {mesh, warp};
    un_parallel_for(ctx, mesh->vertex_count, 4096, move_vertices, &a);
}
