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
    const un_walls *walls;
} level_args;

/* Cells less open than this tell nothing of the liquid. */
#define OPEN_MIN 1e-3f

/* The slope of the level set at a cell next to the surface, per cell, from the open cells around
 * it on its side; zero elsewhere, where it is noise. */
UN_KERNEL void slope_at(const level_args *a, int64_t c, double slope[3], int dim)
{
    static const int step[3] = {1, 3, 9};
    const un_grid *g = a->walls->grid;
    uint32_t sight = a->walls->parted ? a->walls->sight[c] : UN_SIGHT_ALL;
    double here = a->phi[c], length = 0;
    bool liquid = here < 0, air = here >= 0;
    for (int d = 0; d < dim; d++) {
        int64_t low = c - g->stride[d], high = c + g->stride[d], i = c / g->stride[d] % g->n[d];
        bool below = i > 0 && sight >> (13 - step[d]) & 1 && a->walls->volume[low] > OPEN_MIN;
        bool above =
            i < g->n[d] - 1 && sight >> (13 + step[d]) & 1 && a->walls->volume[high] > OPEN_MIN;
        double from = below ? a->phi[low] : here, to = above ? a->phi[high] : here;
        liquid |= from < 0 || to < 0;
        air |= from >= 0 || to >= 0;
        slope[d] = (to - from) / (below && above ? 2 : 1);
        length += slope[d] * slope[d];
    }
    double scale = liquid && air ? 1 / fmax(1, sqrt(length) * g->inverse_h) : 0;
    for (int d = 0; d < dim; d++) slope[d] *= scale;
}

/* The corner of a stencil that a closed one in the padding mirrors; others themselves. */
UN_KERNEL int mirrored(const un_walls *walls, int64_t base, int m, uint32_t open, int dim)
{
    const un_grid *g = walls->grid;
    int64_t at[3] = {base % g->n[0], base / g->n[0] % g->n[1], base / g->stride[2]};
    if (open >> m & 1) return m;
    for (int d = 0; d < dim; d++) {
        int64_t i = at[d] + (m >> d & 1);
        if (i == 0 || i == g->n[d] - 1) m ^= 1 << d;
    }
    return m;
}

/* The level set at the cells of a stencil. Those that are closed or not allowed take the mean of
 * what the others foretell there: what lies beyond a wall must not count, nor a side of the domain
 * that a solid fills. */
UN_KERNEL void load_cells(const level_args *a, int64_t base, uint32_t allowed, double v[8], int dim)
{
    const un_grid *g = a->walls->grid;
    uint32_t open = 0, all = (1u << (1 << dim)) - 1;
    for (int m = 0; m < 1 << dim; m++) {
        int64_t c = un_warp_corner(g, base, m, dim);
        v[m] = a->phi[c];
        open |= (uint32_t)(a->walls->volume[c] > OPEN_MIN) << m;
    }
    open &= allowed;
    if (open == all || open == 0 || a->walls->bodies->count == 0) return;
    double sum[8] = {0};
    int count = 0;
    for (int m = 0; m < 1 << dim; m++) {
        double s[3];
        if (!(open >> m & 1)) continue;
        slope_at(a, un_warp_corner(g, base, m, dim), s, dim);
        count++;
        for (int l = 0; l < 1 << dim; l++) {
            sum[l] += v[m];
            for (int d = 0; d < dim; d++) sum[l] += s[d] * ((l >> d & 1) - (m >> d & 1));
        }
    }
    for (int m = 0; m < 1 << dim; m++)
        if (!(open >> m & 1)) v[m] = sum[m] / count;
    for (int m = 0; m < 1 << dim; m++) v[m] = v[mirrored(a->walls, base, m, open, dim)];
}

#define ALL_CELLS 0xffu

/* The level set at a node in space, from those of the cells around it that are allowed. */
UN_KERNEL double level_at(const level_args *a, const int32_t n[3], uint32_t allowed, int dim)
{
    const un_warp *warp = a->walls->warp;
    const un_grid *g = &warp->grid;
    un_vec3 xi = un_grid_node_position(g, n[0], n[1], n[2]);
    un_warp_point p =
        un_warp_locate_in(warp, warp->node[un_grid_node(g, n[0], n[1], n[2])], &xi, dim);
    if (allowed != ALL_CELLS) { /* the node's own cells, even if it lies between others */
        int64_t base = p.at.base, at[3] = {base % g->n[0], base / g->n[0] % g->n[1], 0};
        at[2] = dim == 2 ? 1 : base / g->stride[2];
        p.at.base = un_grid_cell(g, n[0] - 1, n[1] - 1, dim == 2 ? 0 : n[2] - 1);
        for (int d = 0; d < dim; d++) p.at.f[d] += (double)(at[d] - (n[d] - 1));
    }
    double v[8], phi = 0, slope[3] = {0};
    load_cells(a, p.at.base, allowed, v, dim);
    for (int m = 0; m < 1 << dim; m++) {
        phi += v[m] * un_warp_weight(&p.at, m, dim);
        for (int d = 0; d < dim; d++)
            slope[d] += v[m] * un_warp_slope(&p.at, m, d, dim) * g->inverse_h;
    }
    un_vec3 s = un_v3(slope[0], slope[1], slope[2]);
    double steep = un_length(s);
    /* elsewhere a sphere of the cell's volume tells the scale */
    double scale = dim == 2 ? sqrt(un_warp_det(&p)) : cbrt(un_warp_det(&p));
    if (fabs(phi) < BAND * g->h && steep > SLOPE_MIN)
        scale = 1 / un_length(un_warp_gradient(&p, un_scale(s, 1 / steep)));
    return phi * scale;
}

/* Nodes of a row that are looked at together. */
#define RUN 64
/* Where the two cells around it along each axis, on both sides, are all in the liquid or all in the
 * air, no cell at the node is cut: only its sign matters. far: for nodes first .. first + count - 1
 * of row (j, k). */
UN_KERNEL void find_far(const level_args *a, bool far[RUN], int32_t first, int32_t count, int32_t j,
                        int32_t k, int dim)
{
    const un_grid *g = a->walls->grid;
    uint8_t signs[RUN + 3] = {0}; /* from cell first - 2 on: 1 liquid, 2 air */
    int32_t from = first >= 2 ? first - 2 : 0;
    int32_t to = first + count + 1 < g->n[0] ? first + count + 1 : g->n[0];
    for (int m = 0; m < 1 << (2 * (dim - 1)); m++) {
        int32_t y = un_clampi(j - 2 + (m & 3), 0, g->n[1] - 1);
        int32_t z = dim == 2 ? 0 : un_clampi(k - 2 + (m >> 2), 0, g->n[2] - 1);
        const float *phi = a->phi + un_grid_cell(g, 0, y, z);
        uint8_t *sign = signs + 2 - first;
        for (int32_t i = from; i < to; i++) sign[i] |= phi[i] < 0 ? 1 : 2;
    }
    for (int32_t i = 0; i < count; i++)
        far[i] = (signs[i] | signs[i + 1] | signs[i + 2] | signs[i + 3]) != 3;
}

/* At such nodes: the mean of the cells around. */
UN_KERNEL double far_level(const level_args *a, const int32_t n[3], int dim)
{
    const un_grid *g = a->walls->grid;
    double phi = 0, jacobian = 0;
    int count = 0;
    for (int m = 0; m < 1 << dim; m++) {
        int64_t c = un_grid_cell(g, n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2));
        double j = a->walls->warp->jacobian[c];
        phi += a->phi[c];
        jacobian += j;
        count += j > 0;
    }
    jacobian /= count;
    return phi / (1 << dim) * (dim == 2 ? sqrt(jacobian) : cbrt(jacobian));
}

UN_KERNEL void level_in(const level_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->walls->grid;
    int32_t rows = g->n[1] + 1, last = g->n[0];
    bool far[RUN];
    for (int64_t row = begin; row < end; row++) {
        int32_t n[3] = {0, (int32_t)(row % rows), (int32_t)(row / rows)};
        double *out = a->out + un_grid_node(g, 0, n[1], n[2]);
        bool inside = n[1] >= 1 && n[1] < g->n[1] && (dim == 2 || (n[2] >= 1 && n[2] < g->n[2]));
        for (int32_t i = 0; i <= last; i++) out[i] = 1.5 * g->h;
        for (int32_t first = 1; inside && first < last; first += RUN) {
            int32_t count = last - first < RUN ? last - first : RUN;
            find_far(a, far, first, count, n[1], n[2], dim);
            for (int32_t i = 0; i < count; i++) {
                n[0] = first + i;
                out[n[0]] = far[i] ? far_level(a, n, dim) : level_at(a, n, ALL_CELLS, dim);
            }
        }
    }
}

static void level_sides(void *arg, int64_t begin, int64_t end)
{
    const level_args *a = arg;
    const un_grid *g = a->walls->grid;
    for (int64_t i = begin; i < end; i++) {
        const un_warp_side *side = &a->walls->parts.side[i];
        int64_t rest = side->node / (g->n[0] + 1);
        int32_t n[3] = {(int32_t)(side->node % (g->n[0] + 1)), (int32_t)(rest % (g->n[1] + 1)),
                        (int32_t)(rest / (g->n[1] + 1))};
        UN_BY_DIM(g->dim, a->out[side->place] = level_at(a, n, side->cells, dim));
    }
}

static void level_rows(void *arg, int64_t begin, int64_t end)
{
    const level_args *a = arg;
    UN_BY_DIM(a->walls->grid->dim, level_in(a, begin, end, dim));
}

void un_warp_level_set(un_context *ctx, double *node_phi, const float *phi, const un_walls *walls)
{
    level_args a = {node_phi, phi, walls};
    const un_grid *g = walls->grid;
    un_parallel_for(ctx, g->node_count / (g->n[0] + 1), 16, level_rows, &a);
    un_parallel_for(ctx, walls->parts.side_count, 256, level_sides, &a);
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
