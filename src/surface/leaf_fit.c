/* Fitting the initial surface on the leaves of an octree, as fit.c does on tets: where the shape is
 * flat, particles below the surface move until the level set lies on it. */
#include "surface/surface.h"

/* As in fit.c. */
#define FIT_DEPTH 3.0
#define FIT_ERROR 0.25
#define FIT_ALIGNED 0.9
#define FIT_STEEP 0.1
/* Less than there: a flat drop of 8 cells' radius would be inflated by 2 %. */
#define FIT_BENT 0.2

static void measure_shape(void *arg, int64_t begin, int64_t end)
{
    un_leaf_fit *a = arg;
    const un_leaves *m = a->leaves;
    for (int64_t c = begin; c < end; c++)
        a->distance[c] = fabs((double)a->phi[c]) < (FIT_DEPTH + 2) * un_leaf_size(m, c)
                             ? (float)un_shape_distance(a->shape, m->x[c])
                             : INFINITY;
}

static void measure_slope(void *arg, int64_t begin, int64_t end)
{
    un_leaf_fit *a = arg;
    const un_leaves *m = a->leaves;
    for (int64_t c = begin; c < end; c++)
        a->slope[c] = a->distance[c] < INFINITY
                          ? un_leaves_slope(m, a->distance, (int32_t)c, m->x[c])
                          : un_v3(INFINITY, 0, 0);
}

static void measure_bend(void *arg, int64_t begin, int64_t end)
{
    un_leaf_fit *a = arg;
    const un_leaves *m = a->leaves;
    for (int64_t c = begin; c < end; c++) {
        un_vec3 lo = un_v3(INFINITY, INFINITY, INFINITY), hi = un_scale(lo, -1);
        const int32_t *near = un_leaf_near(m, c);
        for (int n = 0; n < m->near_count; n++) {
            if (near[n] < 0 || !un_finite3(a->slope[near[n]])) continue;
            lo = un_min3(lo, a->slope[near[n]]);
            hi = un_max3(hi, a->slope[near[n]]);
        }
        a->bent[c] = (float)un_length(un_sub(hi, lo));
    }
}

/* How far the level set lies below the shape's surface near x; m: the direction. */
static double surface_error(const un_leaf_fit *a, un_vec3 x, un_vec3 m)
{
    const un_octree *tree = a->leaves->tree;
    for (int i = 0; i < 2; i++) {
        bool inside = x.x > 0 && x.y > 0 && x.x < tree->size.x && x.y < tree->size.y;
        if (tree->dim == 3) inside = inside && x.z > 0 && x.z < tree->size.z;
        if (!inside) return INFINITY;
        x = un_mad(x, m, -un_leaves_sample(a->leaves, a->phi, un_octree_find(tree, x), x));
    }
    return -un_shape_distance(a->shape, x);
}

static void fit_particles(void *arg, int64_t begin, int64_t end)
{
    un_leaf_fit *a = arg;
    un_markers *s = a->markers;
    un_particles *p = &s->particles;
    for (int64_t q = begin; q < end; q++) {
        int32_t c = s->bins.tet[q];
        un_vec3 x = un_particle_position(p, q);
        double h = un_leaf_size(a->leaves, c), depth = s->depth[q];
        if (!(depth > -FIT_DEPTH * h) || !(a->bent[c] < FIT_BENT)) continue;
        un_vec3 m = un_v3(s->normal[0][q], s->normal[1][q], s->normal[2][q]);
        un_vec3 g = un_leaves_slope(a->leaves, a->distance, c, x);
        double steep = un_length(g);
        if (!(fabs(steep - 1) < FIT_STEEP && un_dot(m, g) > FIT_ALIGNED * steep)) continue;
        double error = surface_error(a, un_mad(x, m, -depth), m);
        if (!(fabs(error) < FIT_ERROR * h)) continue;
        un_vec3 to = un_mad(x, g, error * fmin(1, 1 + depth / (FIT_DEPTH * h)) / steep);
        if (!un_open_move(a->walls, x, to, 0.1 * (double)s->radius[q])) continue;
        un_particle_set_position(p, q, to);
    }
}

un_status un_leaf_fit_begin(un_context *ctx, un_leaf_fit *fit)
{
    size_t count = (size_t)fit->leaves->count + 1;
    UN_ALLOC(ctx, fit->slope, count);
    UN_ALLOC(ctx, fit->distance, 2 * count);
    fit->bent = fit->distance + count;
    un_parallel_for(ctx, fit->leaves->count, 1024, measure_shape, fit);
    un_parallel_for(ctx, fit->leaves->count, 1024, measure_slope, fit);
    un_parallel_for(ctx, fit->leaves->count, 1024, measure_bend, fit);
    return UN_OK;
}

void un_leaf_fit_move(un_context *ctx, un_leaf_fit *fit)
{
    un_parallel_for(ctx, fit->markers->particles.count, 4096, fit_particles, fit);
}

void un_leaf_fit_end(un_context *ctx, un_leaf_fit *fit)
{
    un_free(ctx, fit->slope);
    un_free(ctx, fit->distance);
    fit->slope = NULL;
    fit->distance = fit->bent = NULL;
}
