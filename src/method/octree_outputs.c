/* Memory of method `octree`, how it is kept inside a budget, and what it shows: surface, cells,
 * probes, and what is known of a run beforehand. */
#include "method/octree.h"

/* At the peak of a step: per particle, per leaf with its faces, and per leaf in the liquid, for the
 * pressure's matrix; with scratch and the copy to go back to. Without them, while the output
 * surface is made. */
#define STEP_PARTICLE 250.0
#define STEP_LEAF 900.0
#define STEP_WET 700.0
#define STATE_PARTICLE 130.0
#define STATE_LEAF 700.0
#define STATE_WET 500.0
/* Where liquid is viscous: tets, per leaf; and nodes that are solved for, per leaf in it. */
#define THICK_LEAF 1100.0
#define THICK_NODES 2.5
/* The output surface with twice the resolution of the cells, per leaf and per drop. */
#define SURFACE_LEAF 2600.0
#define SURFACE_DROP 2600.0
#define SURFACE_LEAST 0.2  /* of the budget */
#define SURFACE_FLAT 60.0  /* in 2D, per point of the lattice */
#define USUAL_BYTES 2500.0 /* per particle in all, before there is a mesh */
#define EACH_MAX 12e3      /* bytes per particle: air does not grow with a few drops */

static double thick_bytes(const un_octree_flip *s)
{
    if (!s->thick.any) return 0;
    return THICK_LEAF * s->leaves.count +
           un_viscosity_bytes(THICK_NODES * (double)s->core.last.cells);
}

static double state_bytes(const un_octree_flip *s)
{
    return thick_bytes(s) + STATE_PARTICLE * (double)un_octree_particle_count(s) +
           STATE_LEAF * s->leaves.count + STATE_WET * (double)s->core.last.cells;
}

static double step_bytes(const un_octree_flip *s)
{
    return STEP_PARTICLE * (double)un_octree_particle_count(s) + STEP_LEAF * s->leaves.count +
           STEP_WET * (double)s->core.last.cells + s->tension_bytes + thick_bytes(s);
}

static double surface_bytes(const un_octree_flip *s)
{
    const un_scene_def *def = s->core.def;
    if (!def->output.surface) return 0;
    if (s->tree.dim == 2) return SURFACE_FLAT * def->detail.surface * def->detail.surface;
    double fine = fmin(1, def->detail.surface / (2.0 * def->detail.finest));
    return fine * fine *
           (SURFACE_LEAF * s->leaves.count + SURFACE_DROP * (double)s->markers.ballistic);
}

double un_octree_bytes(const void *state)
{
    const un_octree_flip *s = state;
    return UN_OCTREE_FIXED_BYTES + fmax(step_bytes(s), state_bytes(s) + surface_bytes(s));
}

static double bytes_each(const un_octree_flip *s)
{
    double count = (double)un_octree_particle_count(s);
    if (s->core.last.cells == 0 || count == 0) return USUAL_BYTES;
    double all = fmax(step_bytes(s), state_bytes(s) + surface_bytes(s));
    return fmin(all / count, EACH_MAX);
}

un_resize_def un_octree_resize_range(const un_octree_flip *s)
{
    double least = 0.5 * s->tree.h, most = 0.5 * un_octree_size(&s->tree, 0);
    bool flat = s->tree.dim == 2;
    return (un_resize_def){.volume_min = least * least * (flat ? 1 : least),
                           .volume_max = most * most * (flat ? 1 : most)};
}

void un_octree_keep_budget(un_octree_flip *s)
{
    const un_scene_def *def = s->core.def;
    un_resize_def range = un_octree_resize_range(s);
    double most = def->budget.particles;
    if (def->budget.memory > 0) {
        double fit = (def->budget.memory - UN_OCTREE_FIXED_BYTES) / bytes_each(s);
        most = most > 0 ? fmin(most, fit) : fit;
    }
    un_budget_keep(s->core.ctx, &s->budget, &s->markers, &range, most, s->core.step_count);
}

/* ---- surface and cells ---- */

static un_status flat_surface(un_octree_flip *s, un_trimesh *mesh)
{
    un_leaves_flow flow = {0};
    un_leaf_flat in = {.leaves = un_octree_shown_leaves(s),
                       .phi = s->at.phi,
                       .flow = &flow,
                       .markers = un_octree_shown(s),
                       .walls = s->core.walls,
                       .resolution = s->core.def->detail.surface,
                       .smoothing = UN_SMOOTHING};
    un_status status = un_leaves_flow_build(&flow, in.leaves, s->at.u, NULL);
    if (status == UN_OK) status = un_surface_mesh_flat(s->core.ctx, mesh, &in);
    un_leaves_flow_free(s->core.ctx, &flow);
    return status;
}

un_status un_octree_surface(void *state, un_trimesh *mesh)
{
    un_octree_flip *s = state;
    const un_scene_def *def = s->core.def;
    bool first = un_rank(s->core.ctx) == 0;
    un_hulls_report report;
    un_arena_free(&s->core.arena); /* the surface takes more than a step */
    if (s->tree.dim == 2) return first || !s->ranks.any ? flat_surface(s, mesh) : UN_OK;
    double memory = def->budget.memory, room = memory - UN_OCTREE_FIXED_BYTES - state_bytes(s);
    un_hull_mesher mesher = {.particles = &s->markers.particles,
                             .radius = s->markers.radius,
                             .depth = s->markers.depth,
                             .walls = s->core.walls,
                             .size = def->domain.size,
                             .coarsest = def->detail.coarsest,
                             .resolution = def->detail.surface,
                             .smoothing = s->thick.any ? UN_SMOOTHING_THICK : UN_SMOOTHING,
                             .bytes_max = memory > 0 ? fmax(room, SURFACE_LEAST * memory) : 0};
    if (s->ranks.any) {
        mesher.shared = true;
        mesher.own = (un_part){0, s->markers.particles.count};
        mesher.range = s->ranks.particles.own;
    }
    UN_TRY(un_surface_mesh_hulls(s->core.ctx, mesh, &mesher, &report));
    if (report.resolution < def->detail.surface && !s->surface_coarsened && first)
        un_log(s->core.ctx, UN_LOG_WARNING,
               "step %d: the output surface is made at %d instead of %d to stay inside the budget "
               "of memory",
               s->core.step_count, report.resolution, def->detail.surface);
    s->surface_coarsened |= report.resolution < def->detail.surface;
    return UN_OK;
}

un_status un_octree_cells(const void *state, un_cells *out)
{
    const un_octree_flip *s = state;
    un_leaf_cells in = {un_octree_shown_leaves(s), s->at.phi, un_octree_shown_walls(s)->volume,
                        un_octree_pressure(s), s->at.u};
    return un_cells_from_leaves(s->core.ctx, out, &in);
}

/* ---- probes ---- */

static double phi_at(const un_octree_flip *s, un_vec3 x)
{
    return un_leaves_sample(un_octree_shown_leaves(s), s->at.phi, un_octree_find(&s->tree, x), x);
}

static double pressure_sample(const void *state, un_vec3 x, bool *wet)
{
    const un_octree_flip *s = state;
    *wet = un_core_is_open(&s->core, x) && phi_at(s, x) < 0;
    return *wet
               ? un_leaf_pressure_at(un_octree_shown_leaves(s), un_octree_pressure(s), s->at.phi, x)
               : 0;
}

static double velocity_at(const un_octree_flip *s, const un_probe *which)
{
    if (!(phi_at(s, which->at) < 0)) return NAN;
    un_vec3 u = un_leaves_velocity_at(un_octree_shown_leaves(s), s->at.u, which->at);
    return un_probe_component(u, which->axis);
}

double un_octree_probe(const void *state, const un_probe *which)
{
    const un_octree_flip *s = state;
    const double *found = NULL;
    const un_leaves *leaves = un_octree_shown_leaves(s);
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return un_probe_front_leaves(s->core.ctx, s->at.phi, leaves, which->axis, which->sign);
    case UN_PROBE_HEIGHT:
        return un_probe_height_leaves(s->at.phi, leaves, which->at.x, which->at.z);
    case UN_PROBE_PRESSURE:
        return un_leaf_pressure_at(leaves, un_octree_pressure(s), s->at.phi, which->at);
    case UN_PROBE_VELOCITY:
        return velocity_at(s, which);
    case UN_PROBE_WET:
    case UN_PROBE_FLUX:
        if (s->ranks.has_probed) found = un_core_probed(&s->core, which, s->ranks.probed);
        return found ? *found : un_core_probe(&s->core, which, &un_octree_shown(s)->particles);
    case UN_PROBE_FORCE:
        return un_core_force(&s->core, which, pressure_sample, s);
    }
    return NAN;
}

/* ---- before a run ---- */

/* Its first state is made for that. How a run grows is told by a rehearsal (src/run/rehearse.c). */
un_status un_octree_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    UN_TRY(un_uniform_estimate(ctx, scene, estimate));
    double before = (double)un_context_bytes(ctx);
    un_octree_flip *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->core.ctx = ctx;
    un_status status = un_octree_begin(s, ctx, scene);
    s->ranks.wanted = false; /* every rank makes all of it */
    if (status == UN_OK) status = un_octree_fill(s);
    if (status == UN_OK) {
        estimate->cell_count = s->tree.leaf_count;
        estimate->particle_count = estimate->particle_count_max = s->markers.particles.count;
        /* Sampling the liquid evenly may take more than any step of it later. */
        estimate->bytes = fmax(un_octree_bytes(s), (double)un_context_peak_bytes(ctx) - before);
    }
    un_octree_end(s);
    un_free(ctx, s);
    return status;
}
