/* Memory of methods with particles on graded tets, and how it is kept inside a budget.
 *
 * What a step and an output surface take follows from particles, nodes and tets: constants measured
 * on dam breaks, figure 3 and tanks from 32 to 128 cells (test/validate/estimates.sh looks whether
 * they still hold). A budget of memory is thereby one of particles (sizing/budget.c). All of
 * this depends on the saved state alone and not on the bytes in use, so that a run that is resumed
 * goes the same way. */
#include "method/adaptive.h"

/* At the peak of a step: per particle, per node with its tets, and per tet in the liquid, for the
 * pressure's matrix; with scratch and the copy to go back to. */
#define STEP_PARTICLE 250.0
#define STEP_NODE 1530.0
#define STEP_WET 160.0
/* The same without scratch and copy, which is what is there while the output surface is made. */
#define STATE_PARTICLE 130.0
#define STATE_NODE 700.0
#define STATE_WET 150.0
/* The output surface with twice the resolution of the cells: per node and per particle that flies,
 * in a splash. Still water takes 1,000 per node. */
#define SURFACE_NODE 1730.0
#define SURFACE_DROP 2600.0
/* What a budget leaves to the output surface, per node. Where that is too little, the surface
 * becomes coarser. */
#define SURFACE_PLANNED 1650.0
#define SURFACE_LEAST 0.2 /* of the budget */
/* Of all nodes, those in liquid. */
#define VISCOUS_SHARE 0.6
#define USUAL_BYTES 2500.0 /* per particle in all, before there is a mesh */
/* Cap, bytes per particle: the nodes of the air around a few drops do not grow with their number.
 */
#define EACH_MAX 12e3

/* Of all ranks. */
static double particle_count(const un_adaptive *a)
{
    const un_particle_share *share = a->markers.share;
    return share ? (double)share->own.total : (double)a->markers.particles.count;
}
static double node_count(const un_adaptive *a)
{
    const un_tet_share *share = a->mesh.tets.share;
    return share ? (double)share->nodes.total : (double)a->mesh.tets.node_count;
}

static double viscous_bytes(const un_adaptive *a)
{
    return a->thick.any ? un_viscosity_bytes(VISCOUS_SHARE * node_count(a)) : 0;
}

static double state_bytes(const un_adaptive *a)
{
    return STATE_PARTICLE * particle_count(a) + STATE_NODE * node_count(a) +
           STATE_WET * (double)a->core.last.cells + viscous_bytes(a);
}

static double step_bytes(const un_adaptive *a)
{
    return STEP_PARTICLE * particle_count(a) + STEP_NODE * node_count(a) +
           STEP_WET * (double)a->core.last.cells + viscous_bytes(a);
}

/* Share of a surface's triangles, of those with twice the resolution of the cells. */
static double surface_share(const un_adaptive *a)
{
    double fine = fmin(1, a->core.def->detail.surface / (2.0 * a->core.def->detail.finest));
    return a->core.def->output.surface ? fine * fine : 0;
}

double un_adaptive_bytes(const void *state)
{
    const un_adaptive *a = state;
    double surface = SURFACE_NODE * node_count(a) + SURFACE_DROP * (double)a->markers.ballistic;
    surface = state_bytes(a) + surface_share(a) * surface;
    return UN_ADAPTIVE_FIXED_BYTES + fmax(step_bytes(a), surface);
}

/* The peak of steps and output surfaces, per particle, as the mesh is now. */
static double bytes_each(const un_adaptive *a)
{
    if (a->core.last.cells == 0 || particle_count(a) == 0) return USUAL_BYTES;
    double surface = state_bytes(a) + surface_share(a) * SURFACE_PLANNED * node_count(a);
    return fmin(fmax(step_bytes(a), surface) / particle_count(a), EACH_MAX);
}

double un_adaptive_surface_bytes(const un_adaptive *a)
{
    double budget = a->core.def->budget.memory - UN_ADAPTIVE_FIXED_BYTES;
    if (!(a->core.def->budget.memory > 0)) return 0;
    return fmax(budget - state_bytes(a), SURFACE_LEAST * a->core.def->budget.memory);
}

un_resize_def un_adaptive_resize_range(const un_adaptive *a)
{
    double least = 0.5 * a->mesh.tree.h, most = 0.5 * un_octree_size(&a->mesh.tree, 0);
    return (un_resize_def){.volume_min = least * least * least, .volume_max = most * most * most};
}

void un_adaptive_keep_budget(un_adaptive *a)
{
    const un_scene_def *def = a->core.def;
    un_resize_def range = un_adaptive_resize_range(a);
    double most = def->budget.particles;
    if (def->budget.memory > 0) {
        double fit = (def->budget.memory - UN_ADAPTIVE_FIXED_BYTES) / bytes_each(a);
        most = most > 0 ? fmin(most, fit) : fit;
    }
    un_budget_keep(a->core.ctx, &a->budget, &a->markers, &range, most, a->core.step_count);
}
