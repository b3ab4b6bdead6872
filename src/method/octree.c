/* Method `octree`: adaptive particles on an octree, in 2D on a quadtree [Hong09].
 *
 * Resolution follows how deep a particle lies and how much the liquid around it is deformed;
 * particles split and merge towards it, and the cells follow the particles. Velocities are
 * staggered, as in method `uniform`; the two agree where all cells have one size.
 *
 * Numbers in brackets count the items of the list in the paper's section IV.B. A step begins at its
 * item 5, where the fields are complete: what items 1 to 4 make is made at the end of the step
 * before, so that outputs show what the next step sees.
 *
 * Where it departs from the paper, and why:
 *  - Cells hold about eight particles. The paper's rule gives 1.2, and leaves a tenth to a fifth of
 *    the inner cells empty (the "gap problem" that it names).
 *  - The pressure has one gradient for each large face, and ghosts by row (pressure/leaves.c).
 *    Still water stays still across changes of size, at any tilt and at walls. With the paper's
 *    differences its speed is 0.24 to 0.43 g dt after one step.
 *  - The level set comes from the particles' volume fraction (surface/leaf_colour.c). The paper's
 *    distance to particles is never negative. Away from the surface it is found by a front that
 *    moves along the leaves, by all threads, where the paper sweeps: good enough for depth, not
 *    for curvature.
 *  - Transfers reach at least one cell (transfer/leaves.c) and are continuous across changes of
 *    size (mesh/leaves_sample.c). The paper's kernel of one particle's radius misses faces.
 *  - Sizes are those of the other adaptive methods: depth, curvature, strain and the rest
 *    (sizing/sizing.c), with hysteresis. The paper's deformability, 0/0 at rest and huge in moving
 *    water, is a switch (sizing/deformability.c).
 *  - Particles split in opposite pairs, so that the centre of mass stays; the paper places the
 *    children at random.
 *  - Sizes are found in every fourth step, in 2D in every second; particles split and merge in the
 *    next, and are spread in the one after that. The paper does all in every step.
 *  - Surface tension is a pressure at the surface, from the curvature of the level set smoothed on
 *    the lattice of each level (tension/leaves.c). The paper's force near the surface is 17 to 32
 *    per cent too weak.
 *  - Bodies that the liquid moves are solved for with the pressure (pressure/coupling.c). With the
 *    paper's impulses from particles a crate of half the water's density sinks to the floor.
 *  - Viscosity is solved for on faces and on the nodes of graded tets at once, with the pressure
 *    before and after it (viscosity/leaves.c); the paper has none. Not in 2D.
 *  - What methods `uniform` and `tet` have for calm, volume, walls, drops and sheets: a PIC share
 *    that is a rate, position correction, the ledger, crowding, walls that do not pull, steps of a
 *    leapfrog.
 *
 * Several ranks may share a run (octree_ranks.c); its bits are those of one. */
#include "method/octree.h"

enum {
    STAGE_WALLS,
    STAGE_FORCES,
    STAGE_PRESSURE,
    STAGE_EXTRAPOLATE,
    STAGE_TO_PARTICLES,
    STAGE_SHEETS,
    STAGE_CORRECT,
    STAGE_ADVECT,
    STAGE_RESIZE,
    STAGE_SOURCES,
    STAGE_MESH,
    STAGE_SORT,
    STAGE_TO_MESH,
    STAGE_LEVEL_SET,
    STAGE_SIZING,
    STAGE_MEASURE,
    STAGE_VISCOSITY
};
static const char *const stages[] = {
    "walls",   "forces",    "pressure", "extrapolate", "to_particles", "sheets",
    "correct", "advect",    "resize",   "sources",     "mesh",         "sort",
    "to_mesh", "level_set", "sizing",   "measure",     "viscosity",    NULL};

/* Wanted sizes are found every so many steps; particles split and merge in the step after, and are
 * spread in the one after that; in 2D in the same as sizes are found again. Volume of a dam break
 * off by, at worst: with 2, 3 and 4 steps 0.90, 0.89 and 0.90 % in 3D (64 cells, 1 s), with 2 and 3
 * 1.1 and 1.3 % in 2D (128 cells). */
static int sizing_steps(const un_octree_flip *s)
{
    return s->tree.dim == 2 ? 2 : 4;
}

static un_status step(void *state, double dt, un_step *report)
{
    un_octree_flip *s = state;
    un_leaf_projection_report projection;
    int every = sizing_steps(s);
    double clock = un_seconds(), start = clock;
    un_step_init(report);
    report->dt = dt;
    un_octree_begin_step(s);

    UN_TRY(un_octree_agree(s, un_octree_move_walls(s, dt))); /* solids, at the end of the step */
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_octree_accelerate(s, dt)); /* [5] gravity on faces */
    un_stage_end(report, STAGE_FORCES, &clock);
    UN_TRY(un_octree_project(s, dt, &projection)); /* [7] pressure */
    un_stage_end(report, STAGE_PRESSURE, &clock);
    if (s->thick.any) /* and [7] again */
        UN_TRY(un_octree_apply_viscosity(s, dt, &projection, &report->viscous_iterations));
    un_stage_end(report, STAGE_VISCOSITY, &clock);
    UN_TRY(un_octree_agree(s, un_core_touch_bodies(&s->core, dt)));
    un_stage_end(report, STAGE_PRESSURE, &clock);
    UN_TRY(un_octree_extend(s, dt)); /* beyond the liquid and at walls */
    un_stage_end(report, STAGE_EXTRAPOLATE, &clock);
    UN_TRY(un_octree_agree(s, un_octree_move_free(s, dt))); /* bodies that the liquid moves */
    un_stage_end(report, STAGE_WALLS, &clock);
    UN_TRY(un_octree_to_particles(s, dt)); /* [8] FLIP update */
    un_stage_end(report, STAGE_TO_PARTICLES, &clock);
    UN_TRY(un_octree_even_sheets(s, dt));
    un_stage_end(report, STAGE_SHEETS, &clock);
    if (s->core.step_count % every == 1)
        UN_TRY(un_octree_correct(s, every * dt)); /* spread the particles */
    un_stage_end(report, STAGE_CORRECT, &clock);
    UN_TRY(un_octree_advect(s, dt)); /* [1] */
    un_stage_end(report, STAGE_ADVECT, &clock);
    un_core_tick(&s->core, dt);
    if (s->core.step_count % every == 1) UN_TRY(un_octree_resize(s)); /* [10] split and merge */
    un_stage_end(report, STAGE_RESIZE, &clock);
    UN_TRY(un_octree_remove(s));
    UN_TRY(un_octree_emit(s, dt));
    un_stage_end(report, STAGE_SOURCES, &clock);
    UN_TRY(un_octree_build_tree(s)); /* [2, 3] cells around the particles */
    UN_TRY(un_octree_part_drops(s));
    UN_TRY(un_octree_build_leaves(s));
    un_stage_end(report, STAGE_MESH, &clock);
    UN_TRY(un_octree_sort(s));
    un_stage_end(report, STAGE_SORT, &clock);
    UN_TRY(un_octree_gather(s)); /* [5] velocities at faces, for the next step too */
    un_stage_end(report, STAGE_TO_MESH, &clock);
    UN_TRY(un_octree_level_set(s)); /* [4] surface, depth of each particle, volume */
    un_stage_end(report, STAGE_LEVEL_SET, &clock);
    if (s->core.step_count % every == 0)
        UN_TRY(un_octree_sizes(s, every * dt)); /* [9] deformability: depth, strain */
    un_stage_end(report, STAGE_SIZING, &clock);

    UN_TRY(un_octree_measure(s, report));
    un_stage_end(report, STAGE_MEASURE, &clock);
    un_core_report(&s->core, report, &projection.solve, projection.max_divergence, start);
    return UN_OK;
}

static double step_limit(void *state)
{
    const un_octree_flip *s = state;
    double rate = s->rate_max;
    if (s->core.bodies->free_count > 0)
        rate = fmax(rate, un_bodies_speed(s->core.bodies) / s->tree.h);
    return un_step_limit(s->core.def, s->tree.h, rate);
}

static const un_particles *particles(const void *state)
{
    return &un_octree_shown(state)->particles;
}

static const float *depth(const void *state)
{
    return un_octree_shown(state)->depth;
}

/* ---- life ---- */

const un_method un_method_octree = {.traits = {.name = "octree",
                                               .particles = true,
                                               .adaptive = true,
                                               .viscous = true,
                                               .tension = true,
                                               .bodies = true,
                                               .momentum = true,
                                               .flat = true,
                                               .thin_walls = true,
                                               .ranks = true},
                                    .stages = stages,
                                    .size = sizeof(un_octree_flip),
                                    .begin = un_octree_begin,
                                    .fill = un_octree_fill,
                                    .load = un_octree_load,
                                    .end = un_octree_end,
                                    .step_limit = step_limit,
                                    .step = step,
                                    .particles = particles,
                                    .depth = depth,
                                    .surface = un_octree_surface,
                                    .cells = un_octree_cells,
                                    .probe = un_octree_probe,
                                    .estimate = un_octree_estimate,
                                    .bytes = un_octree_bytes,
                                    .save = un_octree_save,
                                    .gather = un_octree_gather_ranks,
                                    .keep = un_octree_keep,
                                    .sift = un_octree_sift,
                                    .stream = un_octree_stream,
                                    .portion = un_octree_portion};
