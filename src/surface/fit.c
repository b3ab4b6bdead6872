/* Fitting the initial surface.
 *
 * The particles' level set differs from a shape's surface by a few hundredths of a cell, and
 * differently for each size of cell: the steps of millimetres between them would slosh for seconds.
 * A few rounds of moving the particles below the surface remove that, where it is flat and away
 * from its edges. */
#include "surface/fit.h"

/* ---- on any mesh ---- */

#define FIT_ERROR 0.25  /* cells: larger errors have another cause */
#define FIT_ALIGNED 0.9 /* least cosine between the two normals */
#define FIT_STEEP 0.1   /* largest difference of |grad| of the shape's distance from 1 */

bool un_fit_is_near(const un_fit *f, int64_t q, double h)
{
    return f->markers->depth[q] > -UN_FIT_DEPTH * h;
}

/* How far the level set lies below the shape's surface near x; m: the direction. */
static double surface_error(const un_fit *f, un_vec3 x, un_vec3 m)
{
    for (int i = 0; i < 2; i++) {
        bool inside = x.x > 0 && x.y > 0 && x.x < f->size.x && x.y < f->size.y;
        if (f->size.z > 0) inside = inside && x.z > 0 && x.z < f->size.z;
        if (!inside) return INFINITY;
        x = un_mad(x, m, -f->sample(f->arg, x));
    }
    return -un_shape_distance(f->shape, x);
}

void un_fit_move(const un_fit *f, int64_t q, double h, un_vec3 m, un_vec3 g)
{
    un_particles *p = &f->markers->particles;
    un_vec3 x = un_particle_position(p, q);
    double depth = f->markers->depth[q], steep = un_length(g);
    if (!(fabs(steep - 1) < FIT_STEEP && un_dot(m, g) > FIT_ALIGNED * steep)) return;
    double error = surface_error(f, un_mad(x, m, -depth), m);
    if (!(fabs(error) < FIT_ERROR * h)) return;
    un_vec3 to = un_mad(x, g, error * fmin(1, 1 + depth / (UN_FIT_DEPTH * h)) / steep);
    if (!un_open_move(f->walls, x, to, 0.1 * (double)f->markers->radius[q])) return;
    /* in the wedge between surface and a slope the level set is lower whatever the particles do */
    double near = h;
    if (un_shape_distance(f->shape, to) > 0 && un_bodies_nearest(f->walls->bodies, to, &near) >= 0)
        return;
    un_particle_set_position(p, q, to);
}

/* ---- on tets ---- */

/* Largest change of the gradient of the shape's distance between tets that share a node. In a ball
 * of few cells the level set lies below the ball's surface whatever its particles do, and moving
 * them would only inflate it. */
#define FIT_BENT 0.35

static void measure_shape(void *arg, int64_t begin, int64_t end)
{
    un_surface_fit *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        double reach = (UN_FIT_DEPTH + 2) * un_octree_size(mesh->tree, mesh->node_level[n]);
        a->distance[n] = fabsf(a->phi[n]) < (float)reach
                             ? (float)un_shape_distance(a->shape, mesh->x[n])
                             : INFINITY;
    }
}

static void measure_bend(void *arg, int64_t begin, int64_t end)
{
    un_surface_fit *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 lo = un_v3(INFINITY, INFINITY, INFINITY), hi = un_scale(lo, -1);
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double d[4];
            for (int i = 0; i < 4; i++) d[i] = a->distance[mesh->tet[t][i]];
            un_vec3 g = un_tets_gradient(mesh, t, d);
            if (!un_finite3(g)) continue;
            lo = un_min3(lo, g);
            hi = un_max3(hi, g);
        }
        a->bent[n] = (float)un_length(un_sub(hi, lo));
    }
}

static double sample_tets(const void *arg, un_vec3 x)
{
    const un_surface_fit *a = arg;
    un_tets_place place;
    un_tets_locate(a->mesh, x, &place);
    return un_tet_sample(a->mesh, a->phi, &place);
}

static void fit_particles(void *arg, int64_t begin, int64_t end)
{
    un_surface_fit *a = arg;
    const un_markers *s = a->markers;
    un_fit fit = {a->markers, a->walls, a->shape, a->mesh->tree->size, sample_tets, a};
    for (int64_t q = begin; q < end; q++) {
        int32_t t = s->bins.tet[q];
        const int32_t *n = a->mesh->tet[t];
        double h = un_tets_size(a->mesh, t), now[4], wanted[4];
        if (!un_fit_is_near(&fit, q, h)) continue;
        bool known = true;
        for (int i = 0; i < 4; i++) {
            now[i] = a->phi[n[i]];
            wanted[i] = a->distance[n[i]];
            known &= wanted[i] < INFINITY && a->bent[n[i]] < FIT_BENT;
        }
        if (!known) continue;
        un_vec3 m = un_normalize(un_tets_gradient(a->mesh, t, now));
        un_fit_move(&fit, q, h, m, un_tets_gradient(a->mesh, t, wanted));
    }
}

un_status un_surface_fit_begin(un_context *ctx, un_surface_fit *fit)
{
    size_t count = (size_t)fit->mesh->node_count + 1;
    UN_ALLOC(ctx, fit->distance, 2 * count);
    fit->bent = fit->distance + count;
    un_parallel_for(ctx, fit->mesh->node_count, 4096, measure_shape, fit);
    un_parallel_for(ctx, fit->mesh->node_count, 4096, measure_bend, fit);
    return UN_OK;
}

void un_surface_fit_move(un_context *ctx, un_surface_fit *fit)
{
    un_parallel_for(ctx, fit->markers->particles.count, 4096, fit_particles, fit);
}

void un_surface_fit_end(un_context *ctx, un_surface_fit *fit)
{
    un_free(ctx, fit->distance);
    fit->distance = fit->bent = NULL;
}
