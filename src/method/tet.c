/* Method `tet`: highly adaptive FLIP on graded BCC tetrahedra [Ando13].
 *
 * The step is Algorithm 1 of the paper, begun at its line 9: the mesh and the level set that a step
 * needs are made at the end of the one before, so that outputs show what the next step will see.
 *
 * Where it departs from the paper, and why:
 *  - The mesh is built anew every step and follows the particles' sizes; S(x) acts on the particles
 *    (line 8). A mesh that follows S at once has cells without particles until they have split.
 *    Calm liquid has more particles to a cell, and its surface runs through cells of one size.
 *  - Before the first step resizing comes to rest and particles move until the level set is the
 *    shape's (tet_start.c): else every change of cell size would start as a step in the water. What
 *    is thinner than the first samples gets finer ones.
 *  - The level set of the simulation comes from the particles' volume fraction (tet_colour.c), not
 *    from the union of hulls, whose bumps the pressure takes for waves; hulls make the output
 *    surface.
 *  - Particle velocities go to nodes by hat functions (transfer/tets.c): bounded weights, where
 *    the paper's kernel lets small particles outweigh all others. Particles too large for their
 *    cells are spread over these, and gather from them alike.
 *  - Inside the liquid only what is nearly empty is a bubble (surface/tet_colour.c).
 *  - Position correction comes after the transfer to particles (line 12), along the surface only
 *    and without the pull towards it, which loses volume; where nothing moves nothing is corrected.
 *  - The PIC share (eq. 14) is a rate, stronger where the liquid is quiet and of second order
 *    there; what differs from cell to cell is calmed. So water settles and waves are kept.
 *  - Wanted sizes shrink at once and grow slowly, and change slowly in space: nothing flickers, and
 *    small particles do not meet large cells. Those that still leave the liquid fly by themselves;
 *    the level set says which, not their distance from others (tet_mesh.c). Drops among much larger
 *    particles ask for no cells (tet_drops.c). Of the halves of particles at the surface not all
 *    stay there (resize.c). Shallow liquid and thin solids have sizing terms of their own
 *    (sizing.c).
 *  - Viscosity is solved for at nodes [Batty11], with the pressure before and after it
 *    (tet_viscous.c).
 *  - A ledger of volume drives a small bounded expansion [Ibayashi18 section 9], and crowded liquid
 *    evens out, as in method `uniform`. */
#include "method/tet.h"

/* Wanted sizes are found every so many steps. Particles split and merge in every step: three
 * splittings make a level, and a splash does not wait. */
#define SIZING_STEPS 2
/* Rounds of resizing and meshing before the first step. */
#define START_ROUNDS 6

enum {
    STAGE_WALLS,
    STAGE_TO_MESH,
    STAGE_PRESSURE,
    STAGE_EXTRAPOLATE,
    STAGE_TO_PARTICLES,
    STAGE_CORRECT,
    STAGE_ADVECT,
    STAGE_RESIZE,
    STAGE_SOURCES,
    STAGE_MESH,
    STAGE_SORT,
    STAGE_LEVEL_SET,
    STAGE_SIZING,
    STAGE_MEASURE,
    STAGE_VISCOSITY
};
static const char *const stages[] = {"walls",        "to_mesh", "pressure",  "extrapolate",
                                     "to_particles", "correct", "advect",    "resize",
                                     "sources",      "mesh",    "sort",      "level_set",
                                     "sizing",       "measure", "viscosity", NULL};

static un_status step(void *state, double dt, un_step *report)
{
    un_tet *s = state;
    un_tet_projection_report projection;
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;

    UN_TRY(un_walls_update(s->walls, s->time, dt)); /* solids, at the end of the step */
    if (s->walls->moving) un_tet_walls_move(&s->tet_walls);
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_tet_to_mesh(s, dt)); /* 9 mesh velocity from particle velocities */
    un_stage_end(report, STAGE_TO_MESH, &clock);
    UN_TRY(un_tet_project(s, dt, &projection)); /* 11 solve pressure, update velocity */
    un_stage_end(report, STAGE_PRESSURE, &clock);
    if (s->viscous) /* [Batty11], and 11 again */
        UN_TRY(un_tet_viscosity(s, dt, &projection, &report->viscous_iterations));
    un_stage_end(report, STAGE_VISCOSITY, &clock);
    UN_TRY(un_tet_extend(s, dt)); /* 10 extrapolate outside the liquid */
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    un_tet_to_particles(s, dt); /* 12 update particle velocities */
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    UN_TRY(un_tet_correct(s, dt)); /* 4 correct particle positions */
    un_stage_end(report, STAGE_CORRECT, &clock);
    un_tet_advect(s, dt); /* 13 advect particles */
    un_stage_end(report, STAGE_ADVECT, &clock);
    s->time += dt;
    s->step_count++;
    UN_TRY(un_tet_resize(s)); /* 8 merge and split */
    un_stage_end(report, STAGE_RESIZE, &clock);
    UN_TRY(un_tet_remove(s));
    UN_TRY(un_tet_emit(s, dt));
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(un_tet_build_tree(s)); /* 7 octree and BCC mesh */
    UN_TRY(un_tet_part_drops(s));
    UN_TRY(un_tet_build_mesh(s));
    UN_TRY(un_tet_place_emitted(s));
    un_stage_end(report, STAGE_MESH, &clock);
    UN_TRY(un_tet_sort(s));
    un_stage_end(report, STAGE_SORT, &clock);
    UN_TRY(un_tet_level_set(s)); /* 2, 3 simulation surface, phi for all particles */
    un_stage_end(report, STAGE_LEVEL_SET, &clock);
    if (s->step_count % SIZING_STEPS == 0)
        UN_TRY(un_tet_sizes(s, SIZING_STEPS * dt)); /* 6 sizing function at particles */
    un_stage_end(report, STAGE_SIZING, &clock);

    UN_TRY(un_tet_measure(s, report));
    report->max_divergence = projection.max_divergence;
    report->pressure_iterations = projection.solve.iterations;
    report->pressure_residual = projection.solve.residual;
    report->bytes = (double)un_context_bytes(s->ctx);
    un_stage_end(report, STAGE_MEASURE, &clock);
    report->seconds = un_seconds() - start;
    s->last = *report;
    return UN_OK;
}

static double step_limit(void *state)
{
    const un_tet *s = state;
    return un_step_limit(s->def, s->tree.h, s->rate_max);
}

static const un_particles *particles(const void *state)
{
    return &((const un_tet *)state)->particles;
}

static const float *depth(const void *state)
{
    return ((const un_tet *)state)->depth;
}

/* ---- life ---- */

/* Everything that the next building of the mesh makes anew. */
static void release(un_tet *s)
{
    void **arrays[] = {
        (void **)&s->volume,        (void **)&s->colour,          (void **)&s->phi,
        (void **)&s->size,          (void **)&s->source,          (void **)&s->p[0],
        (void **)&s->u_node,        (void **)&s->d_node,          (void **)&s->u_tet,
        (void **)&s->d_tet,         (void **)&s->known_node,      (void **)&s->known_tet,
        (void **)&s->sharp,         (void **)&s->quiet,           (void **)&s->old_key,
        (void **)&s->old_p[0],      (void **)&s->radius,          (void **)&s->depth,
        (void **)&s->normal[0],     (void **)&s->normal[1],       (void **)&s->normal[2],
        (void **)&s->wall,          (void **)&s->emitted,         (void **)&s->flags_before,
        (void **)&s->mixed.density, (void **)&s->mixed.viscosity, (void **)&s->mixed.lightness,
        (void **)&s->p[1],          (void **)&s->old_p[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        un_free(s->ctx, *arrays[i]);
        *arrays[i] = NULL;
    }
    memset(s->node_capacity, 0, sizeof s->node_capacity);
    memset(s->tet_capacity, 0, sizeof s->tet_capacity);
    memset(s->old_capacity, 0, sizeof s->old_capacity);
    memset(s->particle_capacity, 0, sizeof s->particle_capacity);
    s->emitted_capacity = s->flags_capacity = s->viscous_capacity = 0;
    memset(s->mixed.capacity, 0, sizeof s->mixed.capacity);
    s->old_count = 0;
    un_viscous_walls_free(s->ctx, &s->viscous_walls);
    un_tet_walls_free(&s->tet_walls);
    un_tets_free(&s->mesh);
    un_tet_bins_free(s->ctx, &s->bins);
    un_arena_free(&s->arena);
    un_arena_free(&s->lists);
}

static void destroy(void *state)
{
    un_tet *s = state;
    if (!s) return;
    release(s);
    un_octree_free(&s->tree);
    un_walls_destroy(s->walls);
    un_pressure_destroy(s->pressure);
    un_viscosity_destroy(s->viscosity);
    un_particles_free(s->ctx, &s->particles);
    un_sources_free(&s->sources);
    un_free(s->ctx, s);
}

static un_status allocate(un_tet *s)
{
    un_step_init(&s->last);
    UN_TRY(un_walls_create(s->ctx, &s->grid, s->scene, false, &s->walls));
    un_tet_walls_init(s->ctx, &s->tet_walls, s->walls);
    UN_TRY(un_pressure_create(s->ctx, NULL, &s->pressure));
    UN_TRY(un_pressure_configure(s->pressure->solver, s->def));
    UN_TRY(un_sources_init(&s->sources, s->ctx, s->def, &s->grid, s->walls));
    if (s->viscous) UN_TRY(un_viscosity_create(s->ctx, &s->viscosity));
    s->particles.sized = true;
    s->particles.mixed = un_scene_mixed(s->def);
    return un_particles_reserve(s->ctx, &s->particles, 1);
}

static un_status fill(un_tet *s)
{
    if (s->def->liquid.shape) {
        UN_TRY(un_tet_first_mesh(s));
        release(s); /* the first rounds sample more evenly, and take more room */
        un_tets_init(s->ctx, &s->mesh);
        un_octree_free(&s->tree);
        UN_TRY(un_particles_trim(s->ctx, &s->particles));
    }
    /* Resizing comes to rest and the surface to its shape before the first step. */
    for (int round = 0; round < START_ROUNDS; round++) {
        bool last = round == START_ROUNDS - 1;
        if (round > 0 && !last) UN_TRY(un_tet_resize(s));
        if (round == 1) UN_TRY(un_tet_emit(s, 0));
        UN_TRY(un_tet_build_tree(s));
        UN_TRY(un_tet_build_mesh(s));
        UN_TRY(un_tet_sort(s));
        UN_TRY(un_tet_level_set(s));
        if (round >= START_ROUNDS - 3 && !last && s->def->liquid.shape)
            UN_TRY(un_tet_fit_surface(s));
        UN_TRY(un_tet_sizes(s, 0));
    }
    return un_tet_measure(s, &s->last);
}

un_status un_tet_begin(un_context *ctx, const un_scene *scene, un_tet **state)
{
    un_tet *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->scene = scene;
    s->def = &scene->def;
    s->scale = 1;
    s->viscous = un_scene_viscous(s->def);
    s->grid = un_grid_make(s->def->domain.size, s->def->detail.finest);
    un_arena_init(&s->arena, ctx);
    un_arena_init(&s->lists, ctx);
    un_octree_init(ctx, &s->tree, s->def->domain.size, s->def->detail.coarsest,
                   s->def->detail.finest);
    un_tets_init(ctx, &s->mesh);
    un_status status = allocate(s);
    if (status != UN_OK) {
        destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}

static un_status create(un_context *ctx, const un_scene *scene, void **state)
{
    un_tet *s;
    UN_TRY(un_tet_begin(ctx, scene, &s));
    un_status status = fill(s);
    if (status != UN_OK) {
        destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}

static void first(const void *state, un_step *report)
{
    *report = ((const un_tet *)state)->last;
}

const un_method un_method_tet = {.name = "tet",
                                 .adaptive = true,
                                 .stages = stages,
                                 .create = create,
                                 .destroy = destroy,
                                 .first = first,
                                 .step_limit = step_limit,
                                 .step = step,
                                 .particles = particles,
                                 .depth = depth,
                                 .surface = un_tet_surface,
                                 .cells = un_tet_cells,
                                 .probe = un_tet_probe,
                                 .estimate = un_tet_estimate,
                                 .bytes = un_tet_bytes,
                                 .save = un_tet_save,
                                 .load = un_tet_load};
