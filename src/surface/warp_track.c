/* The level set that a grid carries which warps, in its reference space: made a distance again, and
 * its surface.
 *
 * Redistancing [Ibayashi18 eq. 23; Russo & Smereka 2000]: cells next to the surface get
 * phi / |grad phi|, which leaves the surface where it is; the others follow
 *
 *     d phi / d tau = sign(phi) (1 - |grad phi|)
 *
 * for a few steps in tau, with second-order one-sided differences: enough, since the level set was
 * a distance a step ago. */
#include "surface/mesher.h"

/* Of a cell, in tau. */
#define PACE 0.3
/* A surface's slope below this is that of a sheet or a ridge between cells. */
#define SLOPE_MIN 1e-3

typedef struct distance_args {
    const float *start; /* the level set, */
    const float *from;  /* a step in tau ago, */
    float *to;          /* and now */
    const un_grid *grid;
    bool first;
} distance_args;

/* A value some cells away; the last of the grid stands for those beyond. */
UN_KERNEL double value_at(const float *phi, const un_grid *g, const int32_t at[3], int d, int away)
{
    int32_t to[3] = {at[0], at[1], at[2]};
    to[d] = un_clampi(at[d] + away, 1, g->n[d] - 2);
    return phi[un_grid_cell(g, to[0], to[1], to[2])];
}

UN_KERNEL double smaller(double a, double b)
{
    return a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b;
}

/* Next to the surface: true and the distance. */
UN_KERNEL bool is_near(const distance_args *a, const int32_t at[3], double *distance, int dim)
{
    const un_grid *g = a->grid;
    double here = a->start[un_grid_cell(g, at[0], at[1], at[2])], least = INFINITY, square = 0;
    for (int d = 0; d < dim; d++) {
        double side[2];
        for (int s = 0; s < 2; s++) {
            side[s] = value_at(a->start, g, at, d, 2 * s - 1);
            if ((side[s] < 0) != (here < 0)) least = fmin(least, here / (here - side[s]));
        }
        square += 0.25 * (side[1] - side[0]) * (side[1] - side[0]);
    }
    if (!(least < INFINITY)) return false;
    double slope = sqrt(square) * g->inverse_h;
    if (slope > SLOPE_MIN) least = fmin(least, fabs(here) / slope * g->inverse_h);
    *distance = copysign(least * g->h, here);
    return true;
}

UN_KERNEL double follow(const distance_args *a, const int32_t at[3], int dim)
{
    const un_grid *g = a->grid;
    double here = a->from[un_grid_cell(g, at[0], at[1], at[2])], square = 0;
    double sign = a->start[un_grid_cell(g, at[0], at[1], at[2])] < 0 ? -1 : 1;
    for (int d = 0; d < dim; d++) {
        double v[5];
        for (int s = -2; s <= 2; s++) v[s + 2] = s == 0 ? here : value_at(a->from, g, at, d, s);
        double bend[3];
        for (int s = 0; s < 3; s++) bend[s] = v[s + 2] - 2 * v[s + 1] + v[s];
        double low = sign * (v[2] - v[1] + 0.5 * smaller(bend[0], bend[1]));
        double high = sign * (v[3] - v[2] - 0.5 * smaller(bend[1], bend[2]));
        double steep = fmax(fmax(low, 0), -fmin(high, 0));
        square += steep * steep;
    }
    double moved = here + sign * PACE * (g->h - sqrt(square));
    return moved * sign > 0 ? moved : here; /* no new surface */
}

UN_KERNEL void step_in(const distance_args *a, int64_t begin, int64_t end, int dim)
{
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {1, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        if (at[1] == 0 || at[1] == g->n[1] - 1) continue;
        if (dim == 3 && (at[2] == 0 || at[2] == g->n[2] - 1)) continue;
        for (; at[0] < g->n[0] - 1; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            double distance;
            bool near = is_near(a, at, &distance, dim);
            a->to[c] = (float)(near ? distance : a->first ? a->from[c] : follow(a, at, dim));
        }
    }
}

static void step_rows(void *arg, int64_t begin, int64_t end)
{
    const distance_args *a = arg;
    UN_BY_DIM(a->grid->dim, step_in(a, begin, end, dim));
}

un_status un_warp_redistance(un_context *ctx, un_arena *arena, float *phi, const un_grid *g,
                             int32_t rounds)
{
    size_t bytes = (size_t)g->cell_count * sizeof *phi;
    float *start = un_arena_alloc(arena, (size_t)g->cell_count, sizeof *start);
    float *other = un_arena_alloc(arena, (size_t)g->cell_count, sizeof *other);
    if (!start || !other) return UN_ERROR_MEMORY;
    memcpy(start, phi, bytes);
    memcpy(other, phi, bytes);
    distance_args a = {.start = start, .from = other, .to = phi, .grid = g};
    for (int32_t round = 0; round <= rounds; round++) {
        a.first = round == 0;
        un_parallel_for(ctx, (int64_t)g->n[1] * g->n[2], 16, step_rows, &a);
        memcpy(other, phi, bytes);
    }
    return UN_OK;
}

/* ---- the surface ---- */

typedef struct contour_args {
    un_lattice *lattice;
    un_trimesh *mesh;
    const float *phi;
    const un_vec3 *u;
    const un_walls *walls;
} contour_args;

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    contour_args *a = arg;
    un_lattice *l = a->lattice;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < l->n[0]; i++) {
            un_vec3 x = un_lattice_point(l, i, (double)(row % l->n[1]), (double)(row / l->n[1]));
            double phi = un_grid_sample(a->walls->grid, a->phi, x);
            l->phi[row * l->n[0] + i] = (float)fmax(phi, -un_mesher_solid(a->walls, x));
        }
}

static void vertex_velocities(void *arg, int64_t begin, int64_t end)
{
    contour_args *a = arg;
    const un_warp *w = a->walls->warp;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 slope[3];
        UN_BY_DIM(w->grid.dim,
                  un_stencil t = un_grid_stencil_in(&w->grid, a->mesh->position[v], 0.5, dim);
                  a->mesh->velocity[v] = un_warp_blend_in(&w->grid, a->u, &t, slope, dim));
    }
}

un_status un_warp_contour(un_context *ctx, un_trimesh *mesh, const float *phi, const un_vec3 *u,
                          const un_walls *walls, int32_t resolution, int32_t smoothing)
{
    const un_grid *g = walls->grid;
    un_lattice l;
    contour_args a = {&l, mesh, phi, u, walls};
    *mesh = (un_trimesh){0};
    un_mesher_lattice(&l, g, resolution);
    l.phi = un_alloc(ctx, (size_t)l.n[0] * (size_t)l.n[1] * (size_t)l.n[2], sizeof *l.phi);
    if (!l.phi) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, (int64_t)l.n[1] * l.n[2], 16, sample_rows, &a);
    un_status status =
        g->dim == 2 ? un_surface_area(ctx, &l, smoothing, mesh) : un_surface_contour(ctx, &l, mesh);
    un_free(ctx, l.phi);
    if (status == UN_OK && g->dim == 3) status = un_surface_smooth(ctx, &l, mesh, smoothing);
    if (status == UN_OK && g->dim == 3) status = un_surface_normals_at_walls(ctx, &l, mesh);
    if (status == UN_OK) {
        mesh->velocity = un_alloc(ctx, (size_t)mesh->vertex_count + 1, sizeof *mesh->velocity);
        if (!mesh->velocity) status = UN_ERROR_MEMORY;
    }
    if (status == UN_OK) un_parallel_for(ctx, mesh->vertex_count, 1024, vertex_velocities, &a);
    if (status == UN_OK)
        un_warp_surface(ctx, mesh, walls->warp);
    else
        un_trimesh_free(ctx, mesh);
    return status;
}
