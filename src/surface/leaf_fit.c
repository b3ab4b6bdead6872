/* Fitting the initial surface on the leaves of an octree, as fit.c does on tets: where the shape is
 * flat, particles below the surface move until the level set lies on it. */
#include "surface/fit.h"

/* Less than on tets: a flat drop of 8 cells' radius would be inflated by 2 %. */
#define FIT_BENT 0.2

static void measure_shape(void *arg, int64_t begin, int64_t end)
{
    un_leaf_fit *a = arg;
    const un_leaves *m = a->leaves;
    for (int64_t c = begin; c < end; c++)
        a->distance[c] = fabs((double)a->phi[c]) < (UN_FIT_DEPTH + 2) * un_leaf_size(m, c)
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

static double sample_leaves(const void *arg, un_vec3 x)
{
    const un_leaf_fit *a = arg;
    return un_leaves_sample(a->leaves, a->phi, un_octree_find(a->leaves->tree, x), x);
}

static void fit_particles(void *arg, int64_t begin, int64_t end)
{
    un_leaf_fit *a = arg;
    const un_markers *s = a->markers;
    un_fit fit = {a->markers, a->walls, a->shape, a->leaves->tree->size, sample_leaves, a};
    for (int64_t q = begin; q < end; q++) {
        int32_t c = s->bins.tet[q];
        double h = un_leaf_size(a->leaves, c);
        if (!un_fit_is_near(&fit, q, h) || !(a->bent[c] < FIT_BENT)) continue;
        un_vec3 x = un_particle_position(&s->particles, q);
        un_vec3 m = un_v3(s->normal[0][q], s->normal[1][q], s->normal[2][q]);
        un_fit_move(&fit, q, h, m, un_leaves_slope(a->leaves, a->distance, c, x));
    }
}

un_status un_leaf_fit_begin(un_context *ctx, un_leaf_fit *fit)
{
    size_t count = (size_t)fit->leaves->count + 1;
    UN_ALLOC(ctx, fit->slope, count);
    UN_ALLOC(ctx, fit->distance, 2 * count);
    fit->bent = fit->distance + count;
    un_leaves_each(fit->leaves, 1024, measure_shape, fit);
    un_leaves_each(fit->leaves, 1024, measure_slope, fit);
    un_leaves_each(fit->leaves, 1024, measure_bend, fit);
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
