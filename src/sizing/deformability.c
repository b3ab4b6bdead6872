/* Deformability [Hong09 section III.D and E].
 *
 *     Df = |(u . grad) u| / (nu |lap u|) (eq. 3.2)
 *
 * decides in the paper's layers C and D, deep in the liquid, whether particles merge up to the
 * largest radius of their layer (Df below the lower threshold) or split down to half of that (Df
 * above the upper one): its Table I. Here it decides which share of the size that depth allows is
 * granted, in between linearly, so that nothing flickers.
 *
 * Departures: the paper's nu is that of water, and so is ours where the scene has no viscosity. At
 * rest the measure is 0 / 0: liquid that does not accelerate is smooth. In moving water it is 1e3
 * to 1e5, far above the thresholds, so that by itself it keeps all that moves at half the size; the
 * scene's factor moves the thresholds there. Off unless the scene asks for it: sizing.c has depth
 * and strain for the same purpose.
 *
 * Derivatives are taken from the neighbours in the liquid, at distances d along unit vectors e:
 *
 *     lap u = 2 dim mean((u_m - u) / d^2),    (u . grad) u = dim mean((u . e) (u_m - u) / d),
 *
 * right where these lie evenly around; the measure needs no more. */
#include "sizing/sizing.h"

/* In finest edges, the paper's radii of layer B: where layers C and D begin. */
#define LAYER_C 4.0
#define LAYER_D 7.0
/* By layer: below, particles merge; above, they split. */
static const double merge_below[2] = {0.2, 0.05}, split_above[2] = {0.3, 0.1};
/* Table I: split min over merge max, 3 / 6 and 5 / 10. */
#define SPLIT_SHARE 0.5
/* Sums that are smaller than this share of their parts are zero but for rounding. */
#define NOISE 1e-6
/* m2/s: of water, as in the paper. */
#define WATER 8.9e-7

typedef struct measure_args {
    float *share;
    const un_sizing_def *def;
    double scale, nu;
} measure_args;

static double deformability(const measure_args *a, int64_t n)
{
    const un_sizing_nodes *nodes = a->def->nodes;
    un_vec3 u = a->def->velocity[n], laplacian = {0, 0, 0}, convection = {0, 0, 0};
    double all_laplacian = 0, all_convection = 0;
    for (int32_t k = 0; k < un_sizing_listed(nodes, n); k++) {
        int32_t m = nodes->near[nodes->near_first[n] + k];
        un_vec3 way = un_sub(nodes->x[m], nodes->x[n]);
        double d2 = un_dot(way, way);
        if (!(d2 > 0) || !(a->def->phi[m] < 0)) continue;
        un_vec3 change = un_sub(a->def->velocity[m], u);
        laplacian = un_mad(laplacian, change, 2 / d2);
        convection = un_mad(convection, change, un_dot(u, way) / d2);
        all_laplacian += un_length(change) * 2 / d2;
        all_convection += un_length(change) * un_length(u) / sqrt(d2);
    }
    double diffusion = a->nu * fmax(un_length(laplacian), NOISE * all_laplacian);
    double carried = un_length(convection);
    return carried > NOISE * all_convection ? carried / diffusion : 0;
}

static void find_shares(void *arg, int64_t begin, int64_t end)
{
    const measure_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        double depth = -(double)a->def->phi[n] / a->def->nodes->finest;
        a->share[n] = 1;
        if (!(depth > LAYER_C) || !a->def->nodes->used[n]) continue;
        int layer = depth > LAYER_D;
        double low = a->scale * merge_below[layer], high = a->scale * split_above[layer];
        double split = un_clamp((deformability(a, n) - low) / (high - low), 0, 1);
        a->share[n] = (float)(1 - (1 - SPLIT_SHARE) * split);
    }
}

void un_sizing_deformability(un_context *ctx, float *share, const un_sizing_def *def, double scale)
{
    const un_scene_def *scene = &def->scene->def;
    double nu = scene->fluid.viscosity / scene->fluid.density;
    measure_args a = {share, def, scale, nu > 0 ? nu : WATER};
    un_parallel_part(ctx, un_sizing_own(def->nodes), 4096, find_shares, &a);
}
