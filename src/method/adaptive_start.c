/* The first state of methods with particles on graded tets. */
#include "method/adaptive.h"

/* The liquid is first sampled evenly, as finely as this many particles or the memory allow, then
 * refined and coarsened to S a level at a time. */
#define START_PARTICLES 1e6
/* The peak of that, per particle. */
#define START_BYTES 560.0
/* Leaves around what is thinner than those samples may hold as many. */
#define SHAPE_PARTICLES 2e6
#define ROUNDS_MAX 24
/* Of moving particles under the surface. */
#define FIT_ROUNDS 4

static un_status seed(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    un_particles *particles = &a->markers.particles;
    un_seed_leaves_def def = {.tree = &a->mesh.tree,
                              .shape = a->core.def->liquid.shape,
                              .walls = a->core.walls,
                              .velocity = a->core.def->liquid.velocity,
                              .part = a->ranks.any ? &a->ranks.tree : NULL};
    particles->count = 0;
    UN_TRY(un_particles_seed_leaves(ctx, particles, &def, &a->core.sources.ledger.start));
    un_status status =
        un_particles_give_matter(&a->core.sources, particles, 0, &a->core.def->fluid.matter);
    if (status == UN_OK) {
        memset(particles->flags, UN_PARTICLE_CALM, (size_t)particles->count);
        status = un_tets_build(&a->mesh.tets, &a->core.arena, &a->mesh.tree);
    }
    un_arena_reset(&a->core.arena);
    UN_TRY(un_adaptive_agree(a, status));
    UN_TRY(un_adaptive_number(a));
    UN_TRY(un_adaptive_share_mesh(a));
    UN_TRY(un_tet_walls_sample(&a->mesh.walls, &a->core.arena, &a->mesh.tets));
    un_arena_reset(&a->core.arena);
    UN_TRY(un_adaptive_agree(a, un_adaptive_need_fields(a)));
    for (int k = 0; k < un_adaptive_pressures(a); k++)
        memset(a->node.p[k], 0, (size_t)a->mesh.tets.node_count * sizeof **a->node.p);
    UN_TRY(un_adaptive_sort(a));
    UN_TRY(un_adaptive_gather(a));
    UN_TRY(un_adaptive_level_set(a));
    un_sizing_forget(particles);
    return un_adaptive_sizes(a, 0);
}

static double particle_limit(const un_adaptive *a, double most)
{
    double memory = a->core.def->budget.memory, room = memory - UN_ADAPTIVE_FIXED_BYTES;
    return memory > 0 ? fmin(most, room / START_BYTES) : most;
}

un_status un_adaptive_first_mesh(un_adaptive *a)
{
    const un_shape *shape = a->core.def->liquid.shape;
    un_octree *tree = &a->mesh.tree;
    un_arena *arena = &a->core.arena;
    un_context *ctx = a->core.ctx;
    UN_TRY(
        un_octree_cover(tree, arena, un_shape_bounds(shape), particle_limit(a, START_PARTICLES)));
    UN_TRY(un_octree_follow(tree, arena, shape, particle_limit(a, SHAPE_PARTICLES)));
    if (a->ranks.any) UN_TRY(un_particles_divide_tree(ctx, arena, tree, &a->ranks.tree, shape));
    un_arena_reset(arena);
    for (int round = 0;; round++) {
        UN_TRY(seed(a));
        /* Coarsening alone takes as many rounds as there are levels. */
        bool done = round >= ROUNDS_MAX, settled_ok = round >= tree->level_max;
        const uint8_t *level = a->mesh.tets.level;
        un_status status =
            a->ranks.any
                ? un_particles_refine_tree_ranks(ctx, arena, tree, &a->ranks.tree, &a->markers,
                                                 level, settled_ok, &done)
                : un_particles_refine_tree(ctx, arena, tree, &a->markers, level, settled_ok, &done);
        un_arena_reset(arena);
        if (done || status != UN_OK) return status;
    }
}

un_status un_adaptive_fit_surface(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    un_surface_fit fit = {.markers = &a->markers,
                          .mesh = &a->mesh.tets,
                          .shape = a->core.def->liquid.shape,
                          .walls = a->core.walls,
                          .phi = a->node.phi};
    un_status status = un_surface_fit_begin(ctx, &fit);
    for (int round = 0; round < FIT_ROUNDS && status == UN_OK; round++) {
        status = un_surface_fit_move(ctx, &fit);
        if (status == UN_OK) status = un_adaptive_unshare(a);
        if (status == UN_OK) status = un_adaptive_sort(a);
        if (status == UN_OK) status = un_adaptive_gather(a);
        if (status == UN_OK) status = un_adaptive_level_set(a);
    }
    un_surface_fit_end(ctx, &fit);
    return status;
}
