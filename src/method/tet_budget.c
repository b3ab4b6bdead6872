/* Memory of method `tet`, and how it is kept inside a budget.
 *
 * What a step and an output surface take follows from particles, nodes and tets: constants measured
 * on dam breaks, figure 3 and tanks from 32 to 128 cells (test/validate/estimates.sh looks whether
 * they still hold). A budget of memory is thereby one of particles. Whether it will be passed is
 * seen from the sizes that particles want, several steps before they have split that far; then all
 * wanted sizes are made larger at once, and shrink again slowly when there is room. All of this
 * depends on the saved state alone and not on the bytes in use, so that a run that is resumed goes
 * the same way. */
#include "method/tet.h"

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
/* What is left to it in a budget, per node: where that is too little the surface becomes coarser by
 * itself. */
#define SURFACE_PLANNED 1650.0
#define SURFACE_LEAST 0.2 /* of the budget */
/* Of all nodes, those in liquid. */
#define VISCOUS_SHARE 0.6
/* Nodes of the air around a few drops do not grow with their number. */
#define EACH_MAX 12e3

static double viscous_bytes(const un_tet *s)
{
    return s->viscous ? un_viscosity_bytes(VISCOUS_SHARE * s->mesh.node_count) : 0;
}

static double state_bytes(const un_tet *s)
{
    return STATE_PARTICLE * s->particles.count + STATE_NODE * s->mesh.node_count +
           STATE_WET * (double)s->last.cells + viscous_bytes(s);
}

static double step_bytes(const un_tet *s)
{
    return STEP_PARTICLE * s->particles.count + STEP_NODE * s->mesh.node_count +
           STEP_WET * (double)s->last.cells + viscous_bytes(s);
}

/* Share of a surface's triangles, of those with twice the resolution of the cells. */
static double surface_share(const un_tet *s)
{
    double fine = fmin(1, s->def->detail.surface / (2.0 * s->def->detail.finest));
    return s->def->output.surface ? fine * fine : 0;
}

double un_tet_bytes(const void *state)
{
    const un_tet *s = state;
    double surface = SURFACE_NODE * s->mesh.node_count + SURFACE_DROP * (double)s->ballistic;
    surface = state_bytes(s) + surface_share(s) * surface;
    return UN_TET_FIXED_BYTES + fmax(step_bytes(s), surface);
}

double un_tet_bytes_each(const un_tet *s)
{
    if (s->last.cells == 0 || s->particles.count == 0) return UN_TET_USUAL_BYTES;
    double surface = state_bytes(s) + surface_share(s) * SURFACE_PLANNED * s->mesh.node_count;
    return fmin(fmax(step_bytes(s), surface) / s->particles.count, EACH_MAX);
}

double un_tet_surface_bytes(const un_tet *s)
{
    double budget = s->def->budget.memory - UN_TET_FIXED_BYTES;
    if (!(s->def->budget.memory > 0)) return 0;
    return fmax(budget - state_bytes(s), SURFACE_LEAST * s->def->budget.memory);
}

un_resize_def un_tet_resize_range(const un_tet *s)
{
    double least = 0.5 * s->tree.h, most = 0.5 * un_octree_size(&s->tree, 0);
    return (un_resize_def){.volume_min = least * least * least, .volume_max = most * most * most};
}

static double expected(void *arg, double factor)
{
    un_tet *s = arg;
    un_resize_def def = un_tet_resize_range(s);
    return un_particles_expected(s->ctx, &s->particles, &def, factor);
}

typedef struct enlarge_args {
    un_tet *s;
    float factor;
} enlarge_args;

static void enlarge(void *arg, int64_t begin, int64_t end)
{
    enlarge_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->s->particles.size[q] *= a->factor;
}

void un_tet_keep_budget(un_tet *s)
{
    double was = s->scale, most = s->def->budget.particles;
    if (s->def->budget.memory > 0) {
        double fit = (s->def->budget.memory - UN_TET_FIXED_BYTES) / un_tet_bytes_each(s);
        most = most > 0 ? fmin(most, fit) : fit;
    }
    s->most = most != 0 ? fmax(most, 1) : 0;
    s->scale = un_sizing_budget(s->scale, s->most, expected, s);
    if (!(s->scale > was)) return;
    if (!s->scaled)
        un_log(s->ctx, UN_LOG_WARNING,
               "step %d: %.0f particles would come where the budget allows %.0f; cells are made "
               "larger to stay inside it",
               s->step_count, expected(s, 1), s->most);
    s->scaled = true;
    enlarge_args a = {s, (float)(s->scale / was)};
    un_parallel_for(s->ctx, s->particles.count, 16384, enlarge, &a);
}
