/* Calming quiet liquid on tets.
 *
 * Half of all velocity modes pass the projection, and bumps one cell wide would ring for a long
 * time. With M the mean over neighbours and T a round trip through the particles:
 *
 *     u <- u - share quiet ((1 - waves) (1 - M) u + waves (1 - M)^2 u),   sharp = waves (u - T u)
 *
 * This removes most of any mode that alternates from node to node. Of waves ten cells long, still
 * water loses a share, moving water a thousandth. The particles use sharp. */
#include "transfer/transfer.h"

/* The rate at which quiet liquid loses velocity differences between cells, in a pace. */
#define CALM_RATE 400.0
/* Below about a third of the quiet speed waves no longer show, and every difference from the
 * surroundings is removed: still water has eddies of a few cells, driven by the noise of the level
 * set, that only this brings to rest. STILL is the square of stir at which half is kept. */
#define STILL 0.005
/* Nothing is done where viscosity leaves less than this share of the calming to do. */
#define NOISE_LEAST 0.02f

/* M u at quiet nodes, with M the consistent mass matrix over its row sums; u at others. */
typedef struct smooth_args {
    const un_tets *mesh;
    un_vec3 *out;
    const un_vec3 *u;   /* at nodes */
    const un_vec3 *tet; /* its means at tets */
    const float *quiet; /* at nodes: 1 at rest, 0 in motion */
} smooth_args;

static void smooth_nodes(void *arg, int64_t begin, int64_t end)
{
    smooth_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->out[n] = a->u[n];
        if (!(a->quiet[n] > 0)) continue;
        un_vec3 sum = {0, 0, 0};
        double total = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double w = un_tets_volume(mesh, t);
            sum = un_mad(sum, a->tet[t], w);
            total += w;
        }
        a->out[n] = un_mad(un_scale(a->u[n], 0.2), sum, 0.8 / total);
    }
}

static void find_quiet(void *arg, int64_t begin, int64_t end)
{
    const un_calm_def *a = arg;
    const un_tets *mesh = a->mesh;
    const un_octree *tree = mesh->tree;
    double quiet = a->quiet_speed;
    for (int64_t n = begin; n < end; n++) {
        double coarse = un_octree_size(tree, mesh->node_level[n]) / tree->h;
        double stir = un_dot(a->u_node[n], a->u_node[n]) / (quiet * quiet * coarse);
        a->quiet[n] = stir < 10 && a->known_node[n] ? (float)(1 / (1 + stir * stir)) : 0;
        if (!a->viscous) continue;
        double h = un_octree_size(tree, mesh->node_level[n]);
        a->quiet[n] *= (float)un_noise_share(un_mixture_thickness(a->mix, n), h, quiet);
        if (a->quiet[n] < NOISE_LEAST) a->quiet[n] = 0;
    }
}

typedef struct calm_args {
    const un_calm_def *def;
    const un_vec3 *once, *twice;
    un_vec3 *calm;
    double share;
} calm_args;

static void calm_nodes(void *arg, int64_t begin, int64_t end)
{
    calm_args *a = arg;
    const un_calm_def *d = a->def;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 u = d->u_node[n], fine = un_sub(u, a->once[n]);
        un_vec3 finest = un_sub(fine, un_sub(a->once[n], a->twice[n]));
        double waves = d->quiet[n] > 0 ? 1 - d->quiet[n] : 1; /* stir^2 / (1 + stir^2) */
        waves /= waves + STILL * (1 - waves);
        un_vec3 off = un_mad(un_scale(fine, 1 - waves), finest, waves);
        d->sharp[n] = un_scale(un_sub(u, d->sharp[n]), waves);
        a->calm[n] = un_mad(u, off, -a->share * d->quiet[n]);
    }
}

un_status un_transfer_calm(un_context *ctx, un_arena *arena, un_calm_def *d)
{
    size_t nodes = (size_t)d->mesh->node_count + 1, tets = (size_t)d->mesh->tet_count + 1;
    int64_t count = d->mesh->node_count;
    un_part own = un_tets_own_nodes(d->mesh);
    un_vec3 *mean = un_arena_alloc(arena, tets, sizeof *mean), *out[3];
    for (int i = 0; i < 3; i++) out[i] = un_arena_alloc(arena, nodes, sizeof **out);
    un_status status = mean && out[0] && out[1] && out[2] ? UN_OK : UN_ERROR_MEMORY;
    UN_TRY(d->mesh->share ? un_ranks_agree(ctx, status) : status);
    un_field once = {"once", out[0], NULL, sizeof **out};
    un_parallel_for(ctx, count, 2048, find_quiet, d);
    smooth_args m = {
        .mesh = d->mesh, .out = out[0], .u = d->u_node, .tet = d->u_tet, .quiet = d->quiet};
    un_parallel_part(ctx, own, 512, smooth_nodes, &m);
    UN_TRY(un_tets_share(d->mesh, &once, 1));
    un_transfer_nodes_to_tets(ctx, mean, out[0], d->known_node, d->mesh, NULL);
    m = (smooth_args){.mesh = d->mesh, .out = out[1], .u = out[0], .tet = mean, .quiet = d->quiet};
    un_parallel_part(ctx, own, 512, smooth_nodes, &m);
    UN_TRY(un_transfer_blur(ctx, arena, d->sharp, d->u_node, d->quiet, d->mesh, d->bins,
                            d->particles));
    calm_args c = {d, out[0], out[1], out[2], 1 - exp(-CALM_RATE * d->dt / d->pace)};
    un_parallel_part(ctx, own, 2048, calm_nodes, &c);
    un_field fields[2] = {{"sharp", d->sharp, NULL, sizeof *d->sharp},
                          {"calm", out[2], NULL, sizeof **out}};
    UN_TRY(un_tets_share(d->mesh, fields, 2));
    un_transfer_nodes_to_tets(ctx, d->u_tet, out[2], d->known_node, d->mesh, NULL);
    un_arena_reset(arena);
    return UN_OK;
}
