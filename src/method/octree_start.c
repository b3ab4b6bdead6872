/* The first state of method `octree`, and its end. */
#include "method/octree.h"

/* As in adaptive_start.c: first samples and what they take each, rounds of refining, and of
 * resizing before the first step. */
#define START_PARTICLES 1e6
#define START_BYTES 560.0
#define SHAPE_PARTICLES 2e6
#define ROUNDS_MAX 24
#define START_ROUNDS 6
/* Of moving particles under the surface. With 8, scenes/rest_mixed.lua is uneven by 0.097 finest
 * cells instead of 0.103 at first, but water beside sides that cut cells moves at 0.14 m/s. */
#define FIT_ROUNDS 4

static un_status begin(un_octree_flip *s, un_context *ctx, const un_scene *scene)
{
    const un_scene_def *def = &scene->def;
    un_status status = un_core_init(&s->core, ctx, scene, false);
    s->budget.scale = 1;
    un_markers_init(ctx, &s->markers);
    un_octree_init(ctx, &s->tree, def->domain.size, def->detail.coarsest, def->detail.finest);
    s->tree.corners = true; /* fields are continuous then */
    s->leaves.ctx = s->walls.ctx = ctx;
    s->thick.any = un_scene_viscous(def);
    un_octree_thick_init(s);
    UN_TRY(status);
    if (s->thick.any) UN_TRY(un_viscosity_create(ctx, &s->thick.solver));
    UN_TRY(un_pressure_create(ctx, NULL, &s->pressure));
    UN_TRY(un_pressure_configure(s->pressure->solver, def));
    s->markers.particles.sized = true;
    s->markers.particles.flat = s->tree.dim == 2;
    return un_particles_reserve(ctx, &s->markers.particles, 1);
}

un_status un_octree_begin(void *state, un_context *ctx, const un_scene *scene)
{
    un_octree_flip *s = state;
    un_status status = begin(s, ctx, scene);
    s->ranks.wanted = un_rank_count(ctx) > 1;
    return s->ranks.wanted ? un_ranks_agree(ctx, status) : status;
}

/* Gives back everything that the next building of the mesh makes anew. */
static void release(un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    un_leaf_fields *a = &s->at;
    void *arrays[] = {a->phi, a->colour, a->size, a->p, a->centre, a->u, a->before, a->known};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(ctx, arrays[i]);
    *a = (un_leaf_fields){0};
    un_leaves_flow_free(ctx, &s->now);
    un_leaves_flow_free(ctx, &s->before);
    un_leaf_memory_free(ctx, &s->memory);
    un_emitted_free(ctx, &s->emitted);
    for (int axis = 0; axis < 3; axis++) {
        un_free(ctx, s->start[axis]);
        s->start[axis] = NULL;
        s->start_capacity[axis] = 0;
    }
    un_sheets_free(ctx, &s->sheets);
    un_octree_thick_free(s);
    un_node_memory_free(ctx, &s->thick.memory);
    un_octree_thick_init(s);
    un_leaf_walls_free(&s->walls);
    un_leaves_free(&s->leaves);
    un_octree_free(&s->tree);
    un_markers_release(ctx, &s->markers);
    un_arena_free(&s->core.arena);
    s->leaves.ctx = s->walls.ctx = ctx;
}

void un_octree_end(void *state)
{
    un_octree_flip *s = state;
    un_octree_ranks_free(s);
    release(s);
    un_octree_thick_free(s);
    un_viscosity_destroy(s->thick.solver);
    un_pressure_destroy(s->pressure);
    un_markers_free(s->core.ctx, &s->markers);
    un_core_free(&s->core);
}

/* What follows from the particles where they are. */
static un_status find_all(un_octree_flip *s)
{
    UN_TRY(un_octree_build_leaves(s));
    UN_TRY(un_octree_sort(s));
    UN_TRY(un_octree_gather(s));
    return un_octree_level_set(s);
}

static un_status seed(un_octree_flip *s)
{
    un_particles *particles = &s->markers.particles;
    un_seed_leaves_def def = {.tree = &s->tree,
                              .shape = s->core.def->liquid.shape,
                              .walls = s->core.walls,
                              .velocity = s->core.def->liquid.velocity,
                              .part = s->ranks.any ? &s->ranks.tree : NULL};
    particles->count = 0;
    UN_TRY(un_particles_seed_leaves(s->core.ctx, particles, &def, &s->core.sources.ledger.start));
    memset(particles->flags, UN_PARTICLE_CALM, (size_t)particles->count);
    UN_TRY(un_octree_number_new(s));
    UN_TRY(find_all(s));
    un_sizing_forget(particles);
    return un_octree_sizes(s, 0);
}

static double particle_limit(const un_octree_flip *s, double most)
{
    double memory = s->core.def->budget.memory, room = memory - UN_OCTREE_FIXED_BYTES;
    return memory > 0 ? fmin(most, room / START_BYTES) : most;
}

static un_status cover(un_octree_flip *s)
{
    const un_shape *shape = s->core.def->liquid.shape;
    un_arena *arena = &s->core.arena;
    UN_TRY(un_octree_cover(&s->tree, arena, un_shape_bounds(shape),
                           particle_limit(s, START_PARTICLES)));
    return un_octree_follow(&s->tree, arena, shape, particle_limit(s, SHAPE_PARTICLES));
}

/* The liquid is sampled evenly, then refined and coarsened to S a level at a time. */
static un_status first_mesh(un_octree_flip *s)
{
    const un_shape *shape = s->core.def->liquid.shape;
    un_context *ctx = s->core.ctx;
    un_arena *arena = &s->core.arena;
    un_octree *tree = &s->tree;
    UN_TRY(un_octree_agree(s, cover(s)));
    if (s->ranks.any) UN_TRY(un_particles_divide_tree(ctx, arena, tree, &s->ranks.tree, shape));
    un_arena_reset(arena);
    for (int round = 0;; round++) {
        UN_TRY(seed(s));
        bool done = round >= ROUNDS_MAX, settled_ok = round >= tree->level_max;
        un_status status =
            s->ranks.any
                ? un_particles_refine_tree_ranks(ctx, arena, tree, &s->ranks.tree, &s->markers,
                                                 tree->level, settled_ok, &done)
                : un_particles_refine_tree(ctx, arena, tree, &s->markers, tree->level, settled_ok,
                                           &done);
        un_arena_reset(arena);
        if (done || status != UN_OK) return status;
    }
}

/* Level sets of cells of different sizes differ by hundredths of a cell, and the steps between them
 * would slosh. */
static un_status fit_surface(un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    un_leaf_fit fit = {.markers = &s->markers,
                       .leaves = &s->leaves,
                       .shape = s->core.def->liquid.shape,
                       .walls = s->core.walls,
                       .phi = s->at.phi};
    un_status status = un_octree_agree(s, un_leaf_fit_begin(ctx, &fit));
    for (int round = 0; round < FIT_ROUNDS && status == UN_OK; round++) {
        un_leaf_fit_move(ctx, &fit);
        status = un_octree_number(s);
        if (status == UN_OK) status = un_octree_sort(s);
        if (status == UN_OK) status = un_octree_gather(s);
        if (status == UN_OK) status = un_octree_level_set(s);
    }
    un_leaf_fit_end(ctx, &fit);
    return status;
}

un_status un_octree_fill(void *state)
{
    un_octree_flip *s = state;
    un_octree_begin_share(s);
    if (s->core.def->liquid.shape) {
        UN_TRY(first_mesh(s));
        release(s); /* the first rounds sample more evenly, and take more room */
        UN_TRY(un_octree_agree(s, un_particles_trim(s->core.ctx, &s->markers.particles)));
    }
    for (int round = 0; round < START_ROUNDS; round++) {
        bool last = round == START_ROUNDS - 1;
        if (round > 0 && !last) UN_TRY(un_octree_resize(s));
        UN_TRY(un_octree_number(s));
        if (round == 1) UN_TRY(un_octree_emit(s, 0));
        UN_TRY(un_octree_build_tree(s));
        UN_TRY(find_all(s));
        if (round >= START_ROUNDS - 3 && !last && s->core.def->liquid.shape) UN_TRY(fit_surface(s));
        UN_TRY(un_octree_sizes(s, 0));
    }
    return un_octree_measure(s, &s->core.last);
}
